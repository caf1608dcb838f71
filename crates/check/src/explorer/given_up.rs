//! What a client does about requests that it gave up: it lets the server come to rest before it counts another wait, and sends them once
//! more before the conversation ends, each by itself. Knows requests and times, not what is right.

use super::{AT_ONCE, Explorer, NEVER, ParallelOutcome, ParallelRequest, with_patience};
use crate::budget::LongWait;
use crate::state;
use mcproof_analysis::arguments::Unusual;
use mcproof_analysis::probes::{EXPLORED_IN_PART, LOST_AT_ONCE, LOST_REFUSAL, LOST_REQUEST, SLOW_AT_TIMES};
use mcproof_protocol::methods;
use mcproof_record::duration::readable;
use mcproof_record::{Direction, FrameBody, FrameId, ProbeOutcome, Probed};
use serde_json::{Map, Value};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// What each call that was given up may still take, if nothing is known of it.
const REST_OF_A_CALL: Duration = Duration::from_secs(4);
/// The most that it is given, however slow a tool is.
const LONGEST_REST_OF_A_CALL: Duration = Duration::from_secs(15);
/// How long a request is waited for that is sent again. One that was given up after so long is not.
const PATIENCE: Duration = Duration::from_secs(5);
/// A wait that shows that a request was lost lasts so long at least, unless the user gives each request less: latency varies.
const LONG_WAIT: Duration = Duration::from_secs(15);
/// A request that was given up sooner had no time. A response that takes as long is late.
const LEAST_WAIT: Duration = Duration::from_millis(600);
/// How many times as long as its response takes by itself a request was waited for that was lost among others.
const TIMES: u32 = 10;
/// The same of one that was not waited for so many times as long, and may only be late.
const TIMES_LATE: u32 = 3;
/// Until a request goes out, on a machine that is busy.
const MOMENT: Duration = Duration::from_millis(200);
/// Requests of different kinds that are sent again.
const MOST: usize = 4;

/// Of a request that is sent again by itself, and of several like it at once.
const AGAIN: &str = "sent-again";
const AGAIN_AT_ONCE: &str = "sent-again-at-once";
/// Of a call that is waited for as long as [`Explorer::longest_wait`].
const PATIENTLY: &str = "call-patiently";
/// What is sent again elsewhere and has marks of its own there, and what may wait as long as it likes.
const WITH_MARKS: [&str; 8] = ["call", "call-again", "call-slow", PATIENTLY, "call-unusual-again", "task-result", AGAIN, AGAIN_AT_ONCE];
/// Calls whose arguments are wrong: who refuses them does nothing.
const WRONG: [&str; 3] = ["call-missing-argument", "call-wrong-type", "call-out-of-range-argument"];
/// Methods whose requests get a response at once, or after some work.
const SERVED: [&str; 7] = [
    methods::TOOLS_CALL,
    methods::TOOLS_LIST,
    methods::PROMPTS_LIST,
    methods::PROMPTS_GET,
    methods::RESOURCES_LIST,
    methods::RESOURCES_READ,
    methods::COMPLETION_COMPLETE,
];

/// Whether a server responds again after calls that were given up, and how long that was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    Reached(Duration),
    NotReached(Duration),
}

impl Rest {
    pub(crate) fn waited(self) -> Duration {
        match self {
            Self::Reached(waited) | Self::NotReached(waited) => waited,
        }
    }
}

/// A request that got no response in time.
#[derive(Clone, Debug)]
pub(super) struct GivenUp {
    request: ParallelRequest,
    frame: FrameId,
    waited: Duration,
}

impl GivenUp {
    /// What one request stands for: those of a tool that are right, or wrong, or of one other probe.
    fn kind(&self) -> (String, &'static str) {
        let probe = self.request.probe;
        (name_of(&self.request), if WRONG.contains(&probe) { WRONG[0] } else { probe })
    }
}

/// A request that was given up, and lost again when it was sent again, if it was.
struct LostAgain {
    given_up: GivenUp,
    /// Of the last attempt.
    frame: FrameId,
    waited: Duration,
}

impl LostAgain {
    fn request(&self) -> &ParallelRequest {
        &self.given_up.request
    }

    fn is_refusal(&self) -> bool {
        WRONG.contains(&self.request().probe)
    }
}

/// The tool that is called, or what else was asked for.
fn name_of(request: &ParallelRequest) -> String {
    request.params["name"].as_str().unwrap_or(&request.subject).to_owned()
}

/// Whether a number may tell how long something takes.
fn has_number(value: &Value) -> bool {
    match value {
        Value::Number(_) => true,
        Value::Array(items) => items.iter().any(has_number),
        Value::Object(members) => members.values().any(has_number),
        _ => false,
    }
}

fn is_unusual(probe: &str) -> bool {
    Unusual::EVERY.into_iter().any(|unusual| unusual.probe() == probe)
}

/// Whether a server may have refused a call for its arguments, so that its tool was never reached.
pub(super) fn is_refused(request: &ParallelRequest, answer: &Result<Value, i64>) -> bool {
    let has_failed = answer.as_ref().map_or(true, |result| result["isError"] == true);
    has_failed && (WRONG.contains(&request.probe) || is_unusual(request.probe))
}

impl Explorer<'_> {
    /// A request of several got no response in time. `number`: of its progress token.
    pub(super) fn give_up(&mut self, request: &ParallelRequest, frame: FrameId, number: Option<usize>, waited: Duration) {
        self.owe(1);
        let probe = request.probe;
        let has_marks = WITH_MARKS.contains(&probe) || probe.starts_with("fixture") || is_unusual(probe);
        if has_marks || waited < LEAST_WAIT || !SERVED.contains(&request.method) {
            return;
        }
        // Whoever still reports progress works on it.
        if number.is_some_and(|number| self.reports_progress(frame, number, waited / 2)) {
            return;
        }
        self.given_up.push(GivenUp { request: request.clone(), frame, waited });
    }

    /// The server may still have so many calls to do, although nobody waits for them.
    pub(crate) fn owe(&mut self, calls: usize) {
        self.owed = self.owed.saturating_add(u32::try_from(calls).unwrap_or(u32::MAX));
    }

    /// Whether the server reported progress of a request that long after it was sent.
    fn reports_progress(&self, first: FrameId, number: usize, after: Duration) -> bool {
        let Some(sent) = self.tap.frame(first).map(|frame| frame.at) else { return false };
        let frames = (first.0..self.tap.mark().0).filter_map(|id| self.tap.frame(FrameId(id)));
        frames.filter(|frame| frame.direction == Direction::FromServer && frame.at >= sent + after).any(|frame| match &frame.body {
            FrameBody::Line { bytes, .. } | FrameBody::SseEvent { bytes, .. } => super::number_in(bytes.as_bytes()) == Some(number),
            _ => false,
        })
    }

    /// Waits until the server responds after calls that were given up: one that does them one by one comes to what is asked next only then,
    /// and its wait would be counted otherwise.
    pub(crate) async fn come_to_rest(&mut self) -> Rest {
        let (owed, started) = (std::mem::take(&mut self.owed), Instant::now());
        if self.is_restless {
            return Rest::NotReached(Duration::ZERO);
        }
        if owed == 0 || self.is_over() || !self.may_send() {
            return Rest::Reached(Duration::ZERO);
        }
        let each = (self.waits.slowest_call() * 3 / 2).clamp(REST_OF_A_CALL, LONGEST_REST_OF_A_CALL);
        let most = each.saturating_mul(owed).min(self.time_left() / 2);
        let methods: &[&str] = match (self.is_modern(), self.check_options.budget.lists_many()) {
            (true, _) => &[methods::SERVER_DISCOVER, methods::TOOLS_LIST],
            (false, true) => &[methods::PING],
            (false, false) => &[methods::PING, methods::TOOLS_LIST],
        };
        // Who never responds to one of them may respond to the other.
        let methods: Vec<&str> =
            methods.iter().copied().filter(|method| !self.waits.is_silent(method) && !self.waits.is_ignored(method)).collect();
        let each = most / u32::try_from(methods.len()).unwrap_or(u32::MAX).max(1);
        let mut late = None;
        for method in &methods {
            // What came of it is in the transcript.
            if with_patience(method, each, self.session.request(method, Some(Map::new()), NEVER)).await.is_err() {
                late = Some(*method);
                continue;
            }
            // It may have waited for its turn: at rest, one that responds does so at once.
            if let Some(late) = late
                && with_patience(late, MOMENT * 5, self.session.request(late, Some(Map::new()), NEVER)).await.is_err()
            {
                self.waits.ignored(late);
            }
            return Rest::Reached(started.elapsed());
        }
        self.is_restless = !methods.is_empty();
        Rest::NotReached(started.elapsed())
    }

    /// Sends what was given up once more, each kind by itself, and what gets its response then several times at once, if it was lost among
    /// others. Marks what is lost again.
    pub(super) async fn send_given_up_again(&mut self) {
        let mut given_up = std::mem::take(&mut self.given_up);
        // The longest wait says most.
        given_up.sort_by_key(|one| Reverse(one.waited));
        let mut kinds = BTreeSet::new();
        given_up.retain(|one| kinds.insert(one.kind()));
        let lost = self.send_each_again(given_up).await;
        self.mark_after_long_waits(lost).await;
    }

    /// Gives what is lost again, or was not sent again: it was waited for as long before, its tool is slow, or no time is left.
    async fn send_each_again(&mut self, given_up: Vec<GivenUp>) -> Vec<LostAgain> {
        let (mut again, mut lost) = (0, Vec::new());
        for one in given_up {
            if self.session.closed_because().is_some() {
                return lost;
            }
            let name = name_of(&one.request);
            // A call that has an effect is not repeated for its own sake.
            if one.request.probe.starts_with(state::CALL) {
                let message =
                    format!("a call of `{name}` got no response within {}, so that its effect was not checked", readable(one.waited));
                self.record_observation(EXPLORED_IN_PART, &message);
                continue;
            }
            // A tool that is known to be slow is told as such.
            let is_slow = self.waits.slowest_call_of(&name) * TIMES_LATE >= one.waited && !WRONG.contains(&one.request.probe);
            let usual = PATIENCE.max(self.check_options.call_patience.unwrap_or_default());
            if one.waited >= usual || is_slow || self.is_over() {
                lost.push(LostAgain { frame: one.frame, waited: one.waited, given_up: one });
                continue;
            }
            if again == MOST {
                let message = format!("`{name}` got no response within {}, and was not asked again", readable(one.waited));
                self.record_observation(EXPLORED_IN_PART, &message);
                continue;
            }
            again += 1;
            let patience = usual.max(self.waits.slowest_call() * 2).min(self.check_options.timeout).max(one.waited);
            let request = ParallelRequest { probe: AGAIN, ..one.request.clone() };
            let before = self.probes.len();
            let outcomes = self.request_in_parallel(&[request], patience, Instant::now() + patience + MOMENT).await;
            let Some(outcome) = outcomes.into_iter().next() else { continue };
            // Nothing, if there was no time to send it.
            let sent = self.probes[before..].iter().rfind(|probed| probed.probe == AGAIN).map(|probed| (probed.first, probed.outcome));
            match (outcome.response, sent) {
                (Some(_), _) if outcome.took * TIMES <= one.waited && !WRONG.contains(&one.request.probe) => {
                    self.send_several_at_once(&one).await;
                }
                (Some(_), _) => {}
                // Its arguments may say how long it takes.
                (None, Some((_, ProbeOutcome::Silent))) if is_other_number(&one.request) => {
                    let message = format!("`{name}` got no response within {} to a call with other numbers", readable(outcome.took));
                    self.record_observation(EXPLORED_IN_PART, &message);
                }
                (None, Some((frame, ProbeOutcome::Silent))) => {
                    lost.push(LostAgain { frame, waited: outcome.took, given_up: one });
                    // Of one that is dead, nothing more is learnt.
                    if matches!(self.come_to_rest().await, Rest::NotReached(_)) {
                        return lost;
                    }
                }
                // The time was over.
                (None, None) if self.session.closed_because().is_none() => {
                    lost.push(LostAgain { frame: one.frame, waited: one.waited, given_up: one });
                }
                (None, _) => {}
            }
        }
        lost
    }

    /// Marks what is lost, once it was waited for as long as [`Self::longest_wait`]: a tool that is slow now and then loses nothing.
    async fn mark_after_long_waits(&mut self, mut lost: Vec<LostAgain>) {
        let longest = self.longest_wait();
        let is_open = |one: &LostAgain| one.request().method == methods::TOOLS_CALL && one.waited < longest;
        if self.session.closed_because().is_none() {
            let refusals = lost.iter_mut().filter(|one| one.is_refusal() && is_open(one));
            self.wait_for_refusals(refusals.collect()).await;
            // A response of the same tool that was late as well explains one that was not waited for as long.
            lost.retain(|one| !one.is_refusal() || self.is_long(one.waited) || !self.is_slow_at_times(&name_of(one.request())));
            // One that never responded is waited for where tools are called first.
            let responds = |one: &LostAgain| !self.waits.slowest_call_of(&name_of(one.request())).is_zero();
            let calls = lost.iter().filter(|one| !one.is_refusal() && is_open(one) && responds(one));
            let calls: Vec<ParallelRequest> = calls.map(|one| one.request().clone()).collect();
            self.wait_for_silent(&calls, AT_ONCE).await;
        }
        // The judges know the slowest call of each tool.
        for one in lost {
            self.mark_lost(LOST_REQUEST, &one.given_up, one.frame, one.waited);
        }
    }

    /// Sends calls with wrong arguments at the same time, each tool's once in a check, and notes how long they were waited for.
    async fn wait_for_refusals(&mut self, mut lost: Vec<&mut LostAgain>) {
        if self.is_over() {
            return;
        }
        let mut room = AT_ONCE;
        lost.retain(|one| {
            let is_new = room > 0 && self.begin_long_wait(LongWait::Refusal, &name_of(one.request()), 1);
            room -= usize::from(is_new);
            is_new
        });
        if lost.is_empty() {
            return;
        }
        let again: Vec<ParallelRequest> = lost.iter().map(|one| ParallelRequest { probe: AGAIN, ..one.request().clone() }).collect();
        let (patience, before) = (self.longest_wait(), self.probes.len());
        let outcomes = self.request_in_parallel(&again, patience, Instant::now() + patience + MOMENT).await;
        for (one, outcome) in lost.into_iter().zip(outcomes) {
            let name = name_of(one.request());
            let is_its = |probed: &&Probed| probed.probe == AGAIN && probed.subject.as_ref() == Some(&one.request().subject);
            let sent = self.probes[before..].iter().find(is_its).map(|probed| (probed.first, probed.outcome));
            match (outcome.response, sent) {
                (Some(_), _) if outcome.took >= LEAST_WAIT => self.mark_slow(&name),
                (None, Some((frame, ProbeOutcome::Silent))) => (one.frame, one.waited) = (frame, outcome.took),
                _ => {}
            }
        }
    }

    /// Calls tools that were silent, each so many times at once if there are not too many, and waits as long as [`Self::longest_wait`]. Marks
    /// those that are slow, at times at least, and gives all that respond. A tool is waited for once in a check for each number of calls at
    /// once, and once more if the first wait had to be short.
    pub(crate) async fn wait_for_silent(&mut self, calls: &[ParallelRequest], times: usize) -> BTreeSet<String> {
        let is_new = |call: &&ParallelRequest| {
            let name = name_of(call);
            // What never responded is not slow at times, and is told as that.
            let has_responded = !self.waits.slowest_call_of(&name).is_zero();
            has_responded && !self.waits.is_slow_at_times(&name) && self.begin_long_wait(LongWait::Call, &name, times)
        };
        let new: Vec<&ParallelRequest> = if self.is_over() { Vec::new() } else { calls.iter().filter(is_new).take(AT_ONCE).collect() };
        let count = (new.len() * times).min(AT_ONCE);
        let again: Vec<ParallelRequest> =
            new.into_iter().cycle().take(count).map(|call| ParallelRequest { probe: PATIENTLY, ..call.clone() }).collect();
        let mut responding = BTreeSet::new();
        if !again.is_empty() {
            let patience = self.longest_wait();
            let outcomes = self.request_in_parallel(&again, patience, Instant::now() + patience + MOMENT).await;
            for (call, outcome) in again.iter().zip(outcomes) {
                let name = name_of(call);
                if outcome.response.is_none() {
                    // What one usual call does not get in this time, several do not get either.
                    if times == 1 && outcome.took >= patience {
                        self.begin_long_wait(LongWait::Call, &name, AT_ONCE);
                    }
                    continue;
                }
                if outcome.took >= LEAST_WAIT {
                    self.mark_slow(&name);
                }
                responding.insert(name);
            }
        }
        responding.extend(calls.iter().map(name_of).filter(|name| self.waits.is_slow_at_times(name)));
        responding
    }

    /// As long as the user gives a call, else a while that shows enough, if that leaves time for the rest.
    fn longest_wait(&self) -> Duration {
        let left = self.time_left();
        let enough = self.check_options.call_patience.unwrap_or(LONG_WAIT).min(self.check_options.timeout);
        enough.min((left / 2).max(LONG_WAIT.min(left * 3 / 4)).max(PATIENCE))
    }

    /// Whether only what was lost gets no response for so long. What was given up sooner may be on its way.
    fn is_long(&self, waited: Duration) -> bool {
        waited >= LONG_WAIT.min(self.check_options.timeout)
    }

    /// Whether nobody has waited so long for so many of this at once. A conversation that has little time left does not take the turn of a
    /// whole wait.
    fn begin_long_wait(&self, kind: LongWait, tool: &str, times: usize) -> bool {
        self.waits.begin_long_wait(kind, tool, times, self.is_long(self.longest_wait()))
    }

    /// Whether a long wait in any conversation of the check had a late response of a tool.
    pub(crate) fn is_slow_at_times(&self, tool: &str) -> bool {
        self.waits.is_slow_at_times(tool)
    }

    pub(crate) fn mark_slow(&mut self, tool: &str) {
        if !self.waits.is_slow_at_times(tool) {
            self.waits.was_slow_at_times(tool);
            self.record_observation(SLOW_AT_TIMES, tool);
        }
    }

    /// As many as may have been under way when the first one was lost.
    async fn send_several_at_once(&mut self, one: &GivenUp) {
        let name = name_of(&one.request);
        let is_first = self.begin_long_wait(LongWait::Call, &name, AT_ONCE);
        let patience = if is_first { self.longest_wait() } else { PATIENCE.min(self.check_options.timeout) };
        let again = vec![ParallelRequest { probe: AGAIN_AT_ONCE, ..one.request.clone() }; AT_ONCE];
        let outcomes = self.request_in_parallel(&again, patience, Instant::now() + patience + MOMENT).await;
        let lost = outcomes.iter().filter(|outcome| outcome.response.is_none() && outcome.took >= patience).count();
        let is_late = |outcome: &ParallelOutcome| outcome.response.is_some() && outcome.took >= LEAST_WAIT;
        if one.request.method == methods::TOOLS_CALL && outcomes.iter().any(is_late) {
            self.mark_slow(&name);
        }
        let frame = self.probes.iter().rfind(|probed| probed.probe == AGAIN_AT_ONCE && probed.outcome == ProbeOutcome::Silent);
        if let Some(frame) = frame.map(|probed| probed.first).filter(|_| lost > 0) {
            self.mark_lost(LOST_AT_ONCE, one, frame, patience);
        }
    }

    fn mark_lost(&mut self, mark: &str, lost: &GivenUp, frame: FrameId, waited: Duration) {
        let mark = match mark {
            _ if !self.is_long(waited) => LOST_REQUEST,
            LOST_REQUEST if WRONG.contains(&lost.request.probe) => LOST_REFUSAL,
            mark => mark,
        };
        let (probe, subject) = (mark.into(), Some(name_of(&lost.request)));
        self.probes.push(Probed { probe, subject, first: frame, end: FrameId(frame.0 + 1), outcome: ProbeOutcome::Silent });
    }

    /// A call that was waited for as long as any request, in a probe of its own.
    pub(super) fn give_up_call(&mut self, params: Value, frame: FrameId, waited: Duration) {
        let subject = params["name"].as_str().unwrap_or_default().to_owned();
        let request = ParallelRequest { probe: "call-alone", subject, method: methods::TOOLS_CALL, params };
        self.give_up(&request, frame, None, waited);
    }
}

/// Whether a call has numbers that others of its tool need not have.
fn is_other_number(request: &ParallelRequest) -> bool {
    let is_other = ["call-other-arguments", "call-all-arguments", "call-out-of-range-argument"].contains(&request.probe);
    is_other && has_number(&request.params["arguments"])
}
