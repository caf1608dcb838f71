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

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_client::{Limits, TapBounds};
    use serde_json::{Value, json};

    fn settings() -> Settings {
        let talk = |text: &str| panic!("{text}");
        Settings { limits: Limits::default(), tap: TapBounds::default(), secrets: Vec::new(), talk }
    }

    /// A driver that is the server as well.
    struct Driver(Embedded);

    impl Driver {
        /// With a legacy session `s` that is open.
        fn new() -> Self {
            let driver = Self(Embedded::new(settings()).unwrap());
            let target = json!({ "relay": "messages" });
            let open = request(1, "open", &json!({ "session": "s", "target": target, "era": "legacy" }));
            let [initialize] = driver.turn(&[open]).try_into().unwrap();
            let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "a", "version": "1" } });
            let opened = driver.turn(&[answer(&initialize["params"]["message"], &result.to_string())]);
            assert_eq!(opened.iter().map(|line| &line["id"]).collect::<Vec<_>>(), [&json!(null), &json!(1)], "{opened:?}");
            driver
        }

        fn turn(&self, lines: &[String]) -> Vec<Value> {
            let told = String::from_utf8(self.0.turn(lines.concat().as_bytes())).unwrap();
            told.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        }

        /// Comes again, as whoever holds an engine does, until there is something.
        fn come_again(&self) -> Vec<Value> {
            let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
            loop {
                let told = self.turn(&[]);
                if !told.is_empty() {
                    return told;
                }
                assert!(std::time::Instant::now() < end, "nothing came");
            }
        }

        /// A call that the server does not answer yet, and the message of it.
        fn call(&self, id: u32, params: &Value) -> Value {
            let [written] = self.turn(&[request(id, "call", params)]).try_into().unwrap();
            written["params"]["message"].clone()
        }
    }

    fn line(message: &Value) -> String {
        format!("{message}\n")
    }

    /// Its members in the usual order.
    fn request(id: u32, method: &str, params: &Value) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#) + "\n"
    }

    fn notification(method: &str, params: &Value) -> String {
        line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    fn received(message: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","method":"relay/received","params":{{"session":"s","message":{message}}}}}"#) + "\n"
    }

    fn answer(message: &Value, result: &str) -> String {
        received(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, message["id"]))
    }

    fn messages(told: &[Value]) -> Vec<&str> {
        told.iter().filter_map(|line| line["params"]["message"]["method"].as_str()).collect()
    }

    /// The kind of trouble that the only line tells of request `id`.
    fn trouble(told: &[Value], id: u32) -> &str {
        let [line] = told else { panic!("{told:?}") };
        assert_eq!(line["id"], id);
        line["error"]["data"]["kind"].as_str().unwrap_or_else(|| panic!("{line}"))
    }

    const HANG: &str = "hang";

    #[test]
    fn a_question_and_its_answer_take_a_turn_each() {
        let driver = Driver::new();
        let message = driver.call(2, &json!({ "session": "s", "tool": "add", "arguments": { "a": 1 } }));
        assert_eq!(message["params"], json!({ "name": "add", "arguments": { "a": 1 } }));
        let result = r#"{"content": [], "structuredContent": {"sum": 12345678901234567890123}}"#;
        let told = String::from_utf8(driver.0.turn(answer(&message, result).as_bytes())).unwrap();
        assert!(told.contains(&format!(r#""id":2,"result":{{"result":{result},"payload""#)), "{told}");
        let unasked = driver.turn(&[answer(&message, "{}")]);
        assert_eq!(unasked, Vec::<Value>::new());
    }

    #[test]
    fn many_questions_are_answered_as_their_answers_come() {
        let driver = Driver::new();
        let asked: Vec<String> = (2..50).map(|id| request(id, "request", &json!({ "session": "s", "method": "ping" }))).collect();
        let mut written = driver.turn(&asked);
        written.reverse();
        let answers: Vec<String> = written.iter().map(|line| answer(&line["params"]["message"], "{}")).collect();
        let (some, others) = answers.split_at(7);
        let told = [driver.turn(some), driver.turn(&[]), driver.turn(others)].concat();
        let mut ids: Vec<u64> = told.iter().filter_map(|line| line["id"].as_u64()).collect();
        ids.sort_unstable();
        assert_eq!(ids, (2..50).collect::<Vec<u64>>());
    }

    #[test]
    fn a_question_does_not_overtake_what_came_before_it() {
        let driver = Driver::new();
        let notify = request(2, "notify", &json!({ "session": "s", "method": "notifications/a" }));
        let told = driver.turn(&[notify, request(3, "request", &json!({ "session": "s", "method": "b" }))]);
        assert_eq!(messages(&told), ["notifications/a", "b"]);
    }

    #[test]
    fn a_question_in_passing_may_be_cancelled_late_or_given_up() {
        let driver = Driver::new();
        driver.call(2, &json!({ "session": "s", "tool": HANG }));
        let mut told = driver.turn(&[notification("cancel", &json!({ "id": 2 }))]);
        assert_eq!(messages(&told), ["notifications/cancelled"]);
        assert_eq!(trouble(&told.split_off(1), 2), "cancelled");

        driver.call(3, &json!({ "session": "s", "tool": HANG, "timeout_ms": 1 }));
        let mut told = driver.come_again();
        assert_eq!(messages(&told), ["notifications/cancelled"]);
        assert_eq!(trouble(&told.split_off(1), 3), "unanswered");

        driver.call(4, &json!({ "session": "s", "tool": HANG }));
        let told = driver.turn(&[request(5, "close", &json!({ "session": "s" }))]);
        assert_eq!(trouble(&told[..1], 4), "unanswered");
    }

    #[test]
    fn a_server_that_refuses_or_hangs_up_is_told_of() {
        let driver = Driver::new();
        let message = driver.call(2, &json!({ "session": "s", "tool": "none" }));
        let error = json!({ "jsonrpc": "2.0", "id": message["id"], "error": { "code": -32602, "message": "no such tool" } });
        assert_eq!(trouble(&driver.turn(&[received(&error.to_string())]), 2), "refused");
        let message = driver.call(3, &json!({ "session": "s", "tool": "fails", "raise_errors": true }));
        assert_eq!(trouble(&driver.turn(&[answer(&message, r#"{"isError":true,"content":[]}"#)]), 3), "refused");
        driver.call(4, &json!({ "session": "s", "tool": HANG }));
        let mut told = driver.turn(&[notification("relay/closed", &json!({ "session": "s" }))]);
        while told.len() < 2 {
            told.extend(driver.come_again());
        }
        assert!(told.iter().any(|line| line["id"] == 4 && line["error"].is_object()), "{told:?}");
    }

    #[test]
    fn progress_comes_before_the_answer() {
        let driver = Driver::new();
        let message = driver.call(2, &json!({ "session": "s", "tool": "slow", "progress": true }));
        let token = &message["params"]["_meta"]["progressToken"];
        let params = json!({ "progressToken": token, "progress": 1 });
        let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
        let told = driver.turn(&[received(&progress.to_string()), answer(&message, "{}")]);
        let told: Vec<(&Value, &Value)> = told.iter().map(|line| (&line["method"], &line["id"])).collect();
        assert_eq!(told[0].0, "session/progress");
        assert_eq!(told.last().unwrap().1, 2);
    }
}
