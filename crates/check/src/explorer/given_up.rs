//! What a client does about requests that it gave up: it lets the server come to rest before it counts another wait, and sends them once
//! more before the conversation ends, each by itself. Knows requests and times, not what is right.

use super::{AT_ONCE, Explorer, NEVER, ParallelRequest, with_patience};
use crate::state;
use mcproof_analysis::arguments::Unusual;
use mcproof_analysis::probes::{EXPLORED_IN_PART, LOST_AT_ONCE, LOST_REFUSAL, LOST_REQUEST};
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
/// A request that was given up sooner had no time.
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
/// What is sent again elsewhere and has marks of its own there, and what may wait as long as it likes.
const WITH_MARKS: [&str; 8] =
    ["call", "call-again", "call-slow", "call-patiently", "call-unusual-again", "task-result", AGAIN, AGAIN_AT_ONCE];
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

impl Explorer<'_> {
    /// A request of several got no response in time. `number`: of its progress token.
    pub(super) fn give_up(&mut self, request: &ParallelRequest, frame: FrameId, number: Option<usize>, waited: Duration) {
        self.owe(1);
        let probe = request.probe;
        let has_marks = WITH_MARKS.contains(&probe)
            || probe.starts_with("fixture")
            || Unusual::EVERY.into_iter().any(|unusual| unusual.probe() == probe);
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
        let mut again = 0;
        for one in given_up {
            if self.session.closed_because().is_some() {
                return;
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
                self.mark_lost(LOST_REQUEST, &one, one.frame);
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
                    self.mark_lost(LOST_REQUEST, &one, frame);
                    // Of one that is dead, nothing more is learnt.
                    if matches!(self.come_to_rest().await, Rest::NotReached(_)) {
                        return;
                    }
                }
                // The time was over.
                (None, None) if self.session.closed_because().is_none() => self.mark_lost(LOST_REQUEST, &one, one.frame),
                (None, _) => {}
            }
        }
    }

    /// As many as may have been under way when the first one was lost.
    async fn send_several_at_once(&mut self, one: &GivenUp) {
        let patience = PATIENCE.min(self.check_options.timeout);
        let again = vec![ParallelRequest { probe: AGAIN_AT_ONCE, ..one.request.clone() }; AT_ONCE];
        let outcomes = self.request_in_parallel(&again, patience, Instant::now() + patience + MOMENT).await;
        let lost = outcomes.iter().filter(|outcome| outcome.response.is_none() && outcome.took >= patience).count();
        let frame = self.probes.iter().rfind(|probed| probed.probe == AGAIN_AT_ONCE && probed.outcome == ProbeOutcome::Silent);
        if let Some(frame) = frame.map(|probed| probed.first).filter(|_| lost > 0) {
            self.mark_lost(LOST_AT_ONCE, one, frame);
        }
    }

    fn mark_lost(&mut self, mark: &str, lost: &GivenUp, frame: FrameId) {
        let is_refusal = mark == LOST_REQUEST && WRONG.contains(&lost.request.probe);
        let mark = if is_refusal { LOST_REFUSAL } else { mark };
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
