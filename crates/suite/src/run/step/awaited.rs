//! What is to follow an action: notifications, and the end of the server's process. Waits for facts, within a deadline.

use crate::judge::{Matcher, Payload, mismatch};
use crate::plan::{Action, ExpectedExit, Spanned};
use crate::run::sessions::Open;
use mcproof_client::{Exit, Notification};
use mcproof_record::duration::readable;
use mcproof_record::{Diagnostic, Difference, FrameId};
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long a step waits for what is to follow.
#[derive(Clone, Copy)]
pub(in crate::run) struct Waiting {
    /// For what has to come.
    pub(in crate::run) deadline: Duration,
    /// For what must not come.
    pub(in crate::run) settle: Duration,
}

/// Waits until the notifications that came after `since` are as expected. Where more of them could change that, none may come for a while.
pub(super) async fn notifications(
    matcher: &Matcher,
    open: &Open,
    since: Option<FrameId>,
    scope: &Map<String, Value>,
    waiting: Waiting,
) -> Option<Diagnostic> {
    let Waiting { deadline, settle } = waiting;
    let end = Instant::now() + deadline;
    let may_grow = matcher.is_sequence() || matcher.survives_growth();
    let mut arrivals = open.session.arrivals();
    loop {
        arrivals.mark_unchanged();
        // Asked first: what came before the end is in the list then.
        let is_over = open.session.closed_because().is_some();
        let came: Vec<Value> = open.session.notifications().into_iter().filter(|found| Some(found.frame) > since).map(as_value).collect();
        let count = came.len();
        let differences = compare(matcher, &came, scope);
        let matches = differences.is_empty();
        if matches && (may_grow || is_over) {
            return None;
        }
        let is_lost = !matches && !matcher.is_sequence() && matcher.is_lost(&came, scope);
        let until = if matches { end.min(Instant::now() + settle) } else { end };
        let has_changed = !is_over && !is_lost && matches!(timeout_at(until, arrivals.changed()).await, Ok(Ok(())));
        if !has_changed {
            let earlier = if matches { None } else { came_before(matcher, open, since, &came, scope) };
            // None if it is complete, and matches.
            let mut diagnostic = mismatch("list of notifications", differences, &Value::Array(came))?.at(matcher.place().clone());
            if count == 0 {
                diagnostic.message = match open.session.closed_because() {
                    Some(closed) => format!("no notification came before the connection ended: {closed}"),
                    None => format!("no notification came within {}", readable(deadline)),
                };
            }
            if let Some(at) = earlier {
                let what = format!("what is expected came at +{:.3}s, before this step began", at.as_secs_f64());
                diagnostic.hint = Some(format!("{what}: wait for it in the step that causes it, or run both steps in `parallel`"));
            }
            return Some(diagnostic);
        }
    }
}

pub(super) fn compare(matcher: &Matcher, came: &[Value], scope: &Map<String, Value>) -> Vec<Difference> {
    match matcher.is_sequence() {
        true => matcher.compare_in_order(came, scope),
        false => matcher.compare(&Payload::of(Value::Array(came.to_vec())), scope),
    }
}

/// Notifications before a step that are looked at.
const MOST_EARLIER: usize = 16;

/// When the notifications began that would be as expected, where some of them came before the step, in the same test.
fn came_before(matcher: &Matcher, open: &Open, since: Option<FrameId>, came: &[Value], scope: &Map<String, Value>) -> Option<Duration> {
    let is_earlier = |found: &Notification| found.frame >= open.since && Some(found.frame) <= since;
    let earlier: Vec<Notification> = open.session.notifications().into_iter().filter(is_earlier).collect();
    let with = |first: usize| -> Vec<Value> { earlier[first..].iter().cloned().map(as_value).chain(came.iter().cloned()).collect() };
    let mut newest = (earlier.len().saturating_sub(MOST_EARLIER)..earlier.len()).rev();
    let first = newest.find(|first| compare(matcher, &with(*first), scope).is_empty())?;
    let frames = open.tap.transcript_since(earlier[first].frame).frames;
    frames.first().map(|frame| frame.at)
}

fn as_value(notification: Notification) -> Value {
    let mut value = json!({ "method": notification.method });
    if let (Some(object), Some(params)) = (value.as_object_mut(), notification.params) {
        object.insert("params".into(), params);
    }
    value
}

/// Waits for the end of the server's process.
pub(super) async fn exit(expected: &Spanned<ExpectedExit>, action: &Action, open: &Open, scope: &Map<String, Value>) -> Option<Diagnostic> {
    let ExpectedExit { code, signal, within } = &expected.value;
    let at = |diagnostic: Diagnostic| diagnostic.at(expected.place.clone());
    let Some(exit) = open.session.wait_for_exit(*within).await else {
        let message = format!("the server still runs, {} after `{}`", readable(*within), action.title());
        let diagnostic = at(Diagnostic::error("still-running", message));
        return Some(match action {
            Action::CloseStdin => diagnostic.hint("end the process when its stdin ends"),
            Action::Signal(_) => diagnostic.hint("end the process in the signal's handler, or do not catch the signal"),
            _ => diagnostic,
        });
    };
    let wrong = |wanted: String| Some(at(Diagnostic::error("unexpected-exit", format!("expected {wanted}, found: {exit}"))));
    match (code, signal, exit) {
        (Some(matcher), _, Exit { code: Some(code), .. }) => {
            let differences = matcher.compare(&Payload::of(json!(code)), scope);
            let mut diagnostic = mismatch("exit code", differences, &json!(code))?.at(matcher.place().clone());
            diagnostic.code = "unexpected-exit".into();
            Some(diagnostic)
        }
        (Some(_), _, _) => wrong("an exit code".into()),
        (None, Some(signal), found) if found.signal != Some(signal.number()) => wrong(format!("that {signal} ends the server")),
        _ => None,
    }
}
