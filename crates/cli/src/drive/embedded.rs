//! A drive in the process of its driver, for servers that live there as well: the lines are those of the pipe, and a turn does all
//! that can be done without waiting. It waits for nothing itself, so whoever holds it comes again. Knows no sockets.

use super::outlet::Outlet;
use super::{Drive, targets::Targets};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

/// What `mcproof drive` does, without a process of its own. Of the servers it takes those that the driver relays.
pub struct Embedded {
    // Dropped in this order: tasks first, which still need the runtime.
    tasks: LocalSet,
    drive: Rc<Drive>,
    idle: Arc<Idle>,
    runtime: Runtime,
}

impl Embedded {
    /// # Errors
    /// A text for people: the system has no room for it.
    pub fn new() -> Result<Self, String> {
        let idle = Arc::new(Idle::default());
        let told = Arc::clone(&idle);
        let runtime = Builder::new_current_thread().enable_time().on_thread_park(move || told.tell()).build();
        let runtime = runtime.map_err(|error| format!("the system gives no resources: {error}"))?;
        let drive = Rc::new(Drive::new(Outlet::kept(), Targets::relays_only()));
        Ok(Self { tasks: LocalSet::new(), drive, idle, runtime })
    }

    /// Takes lines of the driver, does what they ask for and what is due by now, and gives the lines for the driver. To be called
    /// again with nothing from time to time, as long as anything is unanswered: deadlines pass then.
    pub fn turn(&self, lines: &[u8]) -> Vec<u8> {
        self.tasks.block_on(&self.runtime, async {
            for line in lines.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end) {
                if !line.is_empty() {
                    self.drive.accept(line);
                }
            }
            self.idle.reached().await;
            if lines.is_empty() {
                // The clock was looked at only when nothing else was to be done.
                self.idle.reached().await;
            }
        });
        self.drive.outlet.take()
    }
}

/// Whether a runtime has nothing left to do but wait.
#[derive(Default)]
struct Idle(Mutex<State>);

#[derive(Default)]
struct State {
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
