//! A driver inside the process of the test library, for servers in that process: the lines are those of the pipe, and a turn does all
//! work that needs no waiting. It never waits, so its owner must call it again. Knows no sockets.

use crate::Drive;
use crate::outlet::Outlet;
use crate::targets::{Settings, Targets};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

/// What `mcproof drive` does, without a process of its own. Of the servers it takes those that the driver relays.
pub struct Embedded {
    // Dropped in this order: tasks first, which still need the runtime.
    tasks: RefCell<LocalSet>,
    drive: Rc<Drive>,
    /// Set when a task of the drive has something to do.
    woken: Arc<Woken>,
    waker: Waker,
    idle: Arc<Idle>,
    /// Since the clock was looked at.
    turns: Cell<u32>,
    runtime: Runtime,
}

/// Deadlines pass at least so often, however busy the driver is.
const TURNS_A_LOOK: u32 = 64;

impl Embedded {
    /// # Errors
    /// A text for people: the system has no room for it.
    pub fn new(settings: Settings) -> Result<Self, String> {
        let idle = Arc::new(Idle::default());
        let told = Arc::clone(&idle);
        let runtime = Builder::new_current_thread().enable_time().on_thread_park(move || told.tell()).build();
        let runtime = runtime.map_err(|error| format!("cannot start the async runtime: {error}"))?;
        let drive = Drive { passing: Some(RefCell::default()), ..Drive::new(Outlet::kept(), Targets::relays_only(settings)) };
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        Ok(Self { tasks: RefCell::default(), drive: Rc::new(drive), woken, waker, idle, turns: Cell::new(0), runtime })
    }

    /// Takes lines of the driver, does what they ask for and what is due by now, and gives the lines for the driver. To be called
    /// again with nothing from time to time, as long as anything is unanswered: deadlines pass then.
    pub fn turn(&self, lines: &[u8]) -> Vec<u8> {
        let _runtime = self.runtime.enter();
        {
            let tasks = self.tasks.borrow();
            let _tasks = tasks.enter();
            for line in lines.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end) {
                if !line.is_empty() {
                    self.drive.accept(line);
                }
            }
            if lines.is_empty() {
                self.drive.wait_for_passing();
            }
        }
        // The tasks of the drive need no more than to be polled: the runtime is asked for its own, and for the time.
        let turns = self.turns.get() + 1;
        self.drive.has_begun.set(false);
        let is_busy = self.poll_tasks() || self.runtime.metrics().global_queue_depth() > 0;
        if is_busy || lines.is_empty() || turns == TURNS_A_LOOK {
            self.turns.set(0);
            self.run(lines.is_empty());
        } else {
            self.turns.set(turns);
        }
        let tasks = self.tasks.borrow();
        let _tasks = tasks.enter();
        self.drive.answer_passing();
        self.drive.outlet.take()
    }

    /// Polls the tasks of the drive until they wait; gives up where they do not.
    fn poll_tasks(&self) -> bool {
        let mut tasks = self.tasks.borrow_mut();
        let mut context = Context::from_waker(&self.waker);
        for _ in 0..MOST_POLLS {
            self.woken.0.store(false, Ordering::Relaxed);
            let _ = Pin::new(&mut *tasks).poll(&mut context);
            if !self.woken.0.load(Ordering::Relaxed) {
                return false;
            }
        }
        true
    }

    /// Runs everything until nothing is left to do but wait.
    fn run(&self, to_the_end: bool) {
        self.tasks.borrow().block_on(&self.runtime, async {
            self.idle.reached().await;
            if to_the_end {
                // The clock was looked at only when nothing else was to be done.
                self.idle.reached().await;
            }
        });
    }
}

/// A bound against tasks that wake each other for ever.
const MOST_POLLS: usize = 32;

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whether a runtime has nothing left to do but wait.
#[derive(Default)]
struct Idle(Mutex<IdleState>);

#[derive(Default)]
struct IdleState {
    is_reached: bool,
    waiting: Option<Waker>,
}

impl Idle {
    /// The runtime is about to wait.
    fn tell(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_reached = true;
        if let Some(waiting) = state.waiting.take() {
            waiting.wake();
        }
    }

    /// Waits for the next time that it is so.
    async fn reached(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_reached = false;
        poll_fn(|context| {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if state.is_reached {
                return Poll::Ready(());
            }
            state.waiting = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
