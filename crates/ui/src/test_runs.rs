//! The tests of `mcproof test --ui`: runs them in a process of its own, so that each run reads the suites anew, and keeps what came of each.
//! Knows the events of a run, not what a suite is.

use crate::hub::{Hub, State};
use mcproof_record::{CaseId, Diagnostic};
use serde::Serialize;
use serde_json::{Value, json};
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Starts `mcproof test`.
pub trait TestRunner: Send + Sync + 'static {
    /// The command for all tests, or for those that a filter expression selects. It prints the events of the run as JSON lines.
    fn command(&self, filter: Option<&str>) -> std::process::Command;

    /// Which of these tests a filter expression selects.
    ///
    /// # Errors
    /// Says what is wrong with the expression.
    fn select(&self, filter: &str, cases: &[mcproof_record::CasePlan]) -> Result<Vec<bool>, Box<Diagnostic>>;

    /// Asks a run to end its servers and itself.
    fn stop(&self, process: u32);
}

/// Text on stderr that is shown, such as what is wrong with a suite.
const LONGEST_TALK: u64 = 64 << 10;
/// How long a run that was stopped may take to end its servers.
const STOPPING: Duration = Duration::from_secs(15);
/// Bytes of the traffic of all tests; that of the tests that ended first makes room.
const MOST_TRAFFIC: usize = 256 << 20;

/// All tests, and the run that is under way.
pub(crate) struct Tests {
    is_running: bool,
    runs: u64,
    stop: Arc<Notify>,
    cases: Vec<TestCase>,
    /// Why the last run could not begin, or broke off.
    problem: Option<String>,
    /// How many tests have ended, in all runs: a number names one outcome of one test for ever.
    ended: u64,
}

struct TestCase {
    id: u64,
    /// By which the run that is under way names it.
    of_run: Option<u64>,
    plan: CasePlan,
    state: String,
    /// The event that ended it, without its traffic.
    finished: Option<Value>,
    traffic: Option<Arc<Value>>,
    size: usize,
    /// Whether its traffic was there, and made room for that of others.
    is_dropped: bool,
    /// In which order the tests ended, in all runs; 0 for one that has not.
    ended: u64,
}

/// What came of one test.
#[derive(Serialize)]
pub(crate) struct Details {
    /// Which outcome of the test this is: another one may have come since the page asked.
    ended: u64,
    finished: Value,
    transcripts: Option<Arc<Value>>,
    /// Whether there was traffic, which made room for that of other tests.
    #[serde(rename = "dropped")]
    is_dropped: bool,
}

#[derive(Clone, PartialEq, Eq, Serialize)]
struct CasePlan {
    suite: String,
    name: String,
    transport: String,
    line: u64,
    tags: Vec<String>,
    servers: Vec<String>,
}

impl CasePlan {
    fn of(plan: &Value) -> Self {
        let text = |key: &str| plan[key].as_str().unwrap_or_default().to_owned();
        let texts = |key: &str| plan[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        Self {
            suite: text("suite"),
            name: text("name"),
            transport: text("transport"),
            line: plan["line"].as_u64().unwrap_or_default(),
            tags: texts("tags"),
            servers: texts("servers"),
        }
    }

    /// As a filter expression looks at it.
    fn recorded(&self) -> mcproof_record::CasePlan {
        mcproof_record::CasePlan {
            id: CaseId(0),
            suite: self.suite.clone(),
            name: self.name.clone(),
            transport: self.transport.clone(),
            line: u32::try_from(self.line).unwrap_or(u32::MAX),
            repetition: 0,
            tags: self.tags.clone(),
            servers: self.servers.clone(),
        }
    }

    /// A test that was edited is the same one.
    fn is_same_test(&self, other: &Self) -> bool {
        (&self.suite, &self.name, &self.transport) == (&other.suite, &other.name, &other.transport)
    }
}

impl Tests {
    pub(crate) fn new() -> Self {
        Self { is_running: false, runs: 0, stop: Arc::default(), cases: Vec::new(), problem: None, ended: 0 }
    }

    /// As the page gets them.
    pub(crate) fn shown(&self) -> Value {
        let cases = self.cases.iter().map(|case| {
            let duration = case.finished.as_ref().map(|event| event["duration_ms"].clone());
            json!({
                "id": case.id, "suite": case.plan.suite, "name": case.plan.name, "transport": case.plan.transport, "line": case.plan.line,
                "tags": case.plan.tags,
                "state": case.state, "durationMs": duration, "ended": case.ended,
            })
        });
        json!({ "running": self.is_running, "runs": self.runs, "problem": self.problem, "cases": cases.collect::<Vec<_>>() })
    }

    /// The tests by their ids, as a filter expression looks at them.
    pub(crate) fn plans(&self) -> (Vec<u64>, Vec<mcproof_record::CasePlan>) {
        self.cases.iter().map(|case| (case.id, case.plan.recorded())).unzip()
    }

    /// What came of one test.
    pub(crate) fn details(&self, id: u64) -> Option<Details> {
        let case = self.cases.iter().find(|case| case.id == id)?;
        let finished = case.finished.clone().unwrap_or_default();
        Some(Details { ended: case.ended, finished, transcripts: case.traffic.clone(), is_dropped: case.is_dropped })
    }

    fn begin(&mut self, plans: &[Value], scope: Scope, new_id: &mut dyn FnMut() -> u64) {
        let mut before = std::mem::take(&mut self.cases);
        let mut taken = Vec::new();
        for plan in plans {
            let of_run = plan["id"].as_u64();
            let plan = CasePlan::of(plan);
            let known = before.iter().position(|case| case.of_run.is_none() && case.plan.is_same_test(&plan));
            let id = known.map_or_else(&mut *new_id, |at| before[at].id);
            let state = "waiting".to_owned();
            let fresh = TestCase { id, of_run, plan, state, finished: None, traffic: None, size: 0, is_dropped: false, ended: 0 };
            match (known, scope) {
                (Some(at), Scope::Some) => before[at] = fresh,
                (Some(at), Scope::All) => {
                    before.remove(at);
                    taken.push(fresh);
                }
                (None, _) => taken.push(fresh),
            }
        }
        // A run of all tests lists them anew; what is no longer there is gone.
        self.cases = if scope == Scope::All { Vec::new() } else { before };
        self.cases.extend(taken);
    }

    fn take(&mut self, mut event: Value, size: usize) {
        let id = event["id"].as_u64();
        let Some(case) = self.cases.iter_mut().find(|case| case.of_run.is_some() && case.of_run == id) else { return };
        match event["event"].as_str() {
            Some("test-started") => "running".clone_into(&mut case.state),
            Some("test-finished") => {
                case.state = event["verdict"].as_str().unwrap_or("unknown").to_owned();
                case.traffic = event.as_object_mut().and_then(|event| event.remove("transcripts")).map(Arc::new);
                case.finished = Some(event);
                case.size = size;
                self.ended += 1;
                case.ended = self.ended;
            }
            _ => {}
        }
        while self.cases.iter().map(|case| case.size).sum::<usize>() > MOST_TRAFFIC {
            let Some(oldest) = self.cases.iter_mut().filter(|case| case.size > 0).min_by_key(|case| case.ended) else { break };
            oldest.is_dropped = oldest.traffic.take().is_some();
            oldest.size = 0;
        }
    }

    fn end(&mut self, problem: Option<String>) {
        self.is_running = false;
        self.problem = problem;
        for case in &mut self.cases {
            case.of_run = None;
            if matches!(case.state.as_str(), "waiting" | "running") {
                "not run".clone_into(&mut case.state);
            }
        }
    }
}

/// Which tests a run has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    Some,
}

/// Begins a run. False if one is under way, or there are no tests here.
pub(crate) fn start(hub: &Arc<Hub>, runner: Arc<dyn TestRunner>, filter: Option<String>) -> bool {
    let begun = hub.change(|state| {
        let tests = state.tests.as_mut()?;
        if tests.is_running {
            return None;
        }
        tests.is_running = true;
        tests.runs += 1;
        tests.problem = None;
        tests.stop = Arc::default();
        Some(Arc::clone(&tests.stop))
    });
    let Some(stop) = begun else { return false };
    let hub = Arc::clone(hub);
    tokio::spawn(async move {
        let problem =
            run(&hub, &*runner, filter.as_deref(), &stop).await.unwrap_or_else(|error| Some(format!("cannot run the tests: {error}")));
        change(&hub, |tests| tests.end(problem));
    });
    true
}

/// Ends the run that is under way.
pub(crate) fn stop(hub: &Hub) {
    change(hub, |tests| tests.stop.notify_one());
}

/// Waits until the run has ended its servers.
pub(crate) async fn ended(hub: &Hub) {
    let mut bell = hub.bell();
    let is_running = || hub.state().tests.as_ref().is_some_and(|tests| tests.is_running);
    let quiet = async { while is_running() && bell.changed().await.is_ok() {} };
    // A run that does not end in time is killed with its task.
    let _ = timeout(STOPPING, quiet).await;
}

fn change(hub: &Hub, change: impl FnOnce(&mut Tests)) {
    hub.change(|state| state.tests.as_mut().map(change));
}

/// Gives what is to be told to the user of a run that has no results.
async fn run(hub: &Hub, runner: &dyn TestRunner, filter: Option<&str>, stop: &Notify) -> io::Result<Option<String>> {
    let mut command = Command::from(runner.command(filter));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child: Child = command.spawn()?;
    let (stdout, stderr) = child.stdout.take().zip(child.stderr.take()).expect("both are piped");
    let talk = tokio::spawn(async move {
        let mut text = Vec::new();
        let mut stderr = stderr;
        let _ = (&mut stderr).take(LONGEST_TALK).read_to_end(&mut text).await;
        // What is longer is read, so that the process does not wait for us.
        let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut lines = BufReader::new(stdout).lines();
    let mut stopped = false;
    loop {
        let line = tokio::select! {
            line = lines.next_line() => line?,
            () = stop.notified(), if !stopped => {
                stopped = true;
                child.id().into_iter().for_each(|process| runner.stop(process));
                continue;
            }
        };
        let Some(line) = line else { break };
        let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
        let scope = if filter.is_some() { Scope::Some } else { Scope::All };
        hub.change(|state| {
            let State { tests: Some(tests), next_id, .. } = state else { return };
            if event["event"] == "run-started" {
                let plans = event["tests"].as_array().cloned().unwrap_or_default();
                tests.begin(&plans, scope, &mut || {
                    *next_id += 1;
                    *next_id
                });
            } else {
                tests.take(event, line.len());
            }
        });
    }
    let exit = timeout(STOPPING, child.wait()).await;
    let said = timeout(STOPPING, talk).await.ok().and_then(Result::ok).unwrap_or_default();
    Ok(match exit {
        _ if stopped => None,
        Ok(Ok(exit)) if matches!(exit.code(), Some(0 | 1)) => None,
        Ok(Ok(exit)) => Some(if said.trim().is_empty() { format!("mcproof test ended with {exit}") } else { said }),
        _ => Some("mcproof test does not end".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plans(names: &[&str]) -> Vec<Value> {
        names
            .iter()
            .enumerate()
            .map(|(id, name)| json!({ "id": id, "suite": "a", "name": name, "transport": "stdio", "line": id }))
            .collect()
    }

    fn states(tests: &Tests) -> Vec<(String, String)> {
        tests.cases.iter().map(|case| (case.plan.name.clone(), case.state.clone())).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, state)| ((*name).to_owned(), (*state).to_owned())).collect()
    }

    #[test]
    fn a_run_of_some_tests_leaves_the_others_as_they_were() {
        let mut next = 0;
        let mut new_id = || {
            next += 1;
            next
        };
        let mut tests = Tests::new();
        tests.begin(&plans(&["one", "two", "two", "gone"]), Scope::All, &mut new_id);
        for id in 0..4 {
            tests.take(json!({ "event": "test-finished", "id": id, "verdict": "fail", "transcripts": [] }), 10);
        }
        tests.end(None);
        let ids: Vec<u64> = tests.cases.iter().map(|case| case.id).collect();
        tests.begin(&plans(&["two", "two"]), Scope::Some, &mut new_id);
        tests.take(json!({ "event": "test-started", "id": 0 }), 10);
        tests.take(json!({ "event": "test-finished", "id": 1, "verdict": "pass" }), 10);
        assert_eq!(states(&tests), pairs(&[("one", "fail"), ("two", "running"), ("two", "pass"), ("gone", "fail")]));
        tests.end(None);
        assert_eq!(states(&tests), pairs(&[("one", "fail"), ("two", "not run"), ("two", "pass"), ("gone", "fail")]));
        assert_eq!(tests.cases.iter().map(|case| case.id).collect::<Vec<_>>(), ids);
        tests.begin(&plans(&["one", "new", "two", "two"]), Scope::All, &mut new_id);
        assert_eq!(states(&tests), pairs(&[("one", "waiting"), ("new", "waiting"), ("two", "waiting"), ("two", "waiting")]));
        assert_eq!(tests.cases[0].id, ids[0]);
    }

    #[test]
    fn tests_keep_what_filters_ask_for() {
        let mut tests = Tests::new();
        let plan = json!({ "id": 0, "suite": "a", "name": "one", "transport": "stdio", "line": 3, "tags": ["bulk"], "servers": ["shop"] });
        tests.begin(&[plan], Scope::All, &mut || 7);
        let (ids, plans) = tests.plans();
        assert_eq!(
            (ids, plans[0].tags.clone(), plans[0].servers.clone(), plans[0].line),
            (vec![7], vec!["bulk".to_owned()], vec!["shop".to_owned()], 3)
        );
        assert_eq!(tests.shown()["cases"][0]["tags"], json!(["bulk"]));
    }

    #[test]
    fn traffic_of_old_tests_makes_room() {
        let mut tests = Tests::new();
        let mut next = 0;
        tests.begin(&plans(&["one", "two"]), Scope::All, &mut || {
            next += 1;
            next
        });
        for id in 0..2 {
            tests.take(json!({ "event": "test-finished", "id": id, "verdict": "pass", "transcripts": [] }), MOST_TRAFFIC / 2 + 1);
        }
        assert!(tests.cases[0].traffic.is_none() && tests.cases[1].traffic.is_some());
        let dropped = |id| tests.details(id).map(|details| (details.transcripts.is_some(), details.is_dropped));
        assert_eq!((dropped(1), dropped(2)), (Some((false, true)), Some((true, false))));
    }

    #[test]
    fn no_two_outcomes_have_one_number() {
        let mut tests = Tests::new();
        let mut numbers = Vec::new();
        for scope in [Scope::All, Scope::All, Scope::Some] {
            tests.begin(&plans(&["one", "two"]), scope, &mut || 7);
            assert!(tests.cases.iter().all(|case| case.ended == 0));
            for id in [1, 0] {
                tests.take(json!({ "event": "test-finished", "id": id, "verdict": "fail" }), 10);
            }
            tests.end(None);
            numbers.extend(tests.cases.iter().map(|case| case.ended));
        }
        assert_eq!(numbers, [2, 1, 4, 3, 6, 5]);
    }

    #[test]
    fn a_test_without_traffic_has_lost_none() {
        let mut tests = Tests::new();
        tests.begin(&plans(&["one"]), Scope::All, &mut || 1);
        tests.take(json!({ "event": "test-finished", "id": 0, "verdict": "skip" }), 10);
        assert!(tests.details(1).is_some_and(|details| details.transcripts.is_none() && !details.is_dropped));
    }
}
