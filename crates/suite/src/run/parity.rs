//! Where a test that fails on one transport and passes on another got its first different response. Reads no clock, asks nobody.

use super::sessions::Open;
use mcproof_protocol::Transport;
use mcproof_record::{Branch, CaseOutcome, CasePlan, Event, Frame, FrameBody, Parting, Verdict};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// The answers of a case on one transport, in the order of its requests.
pub(super) struct Wire {
    transport: String,
    verdict: Verdict,
    answers: Vec<Heard>,
}

struct Heard {
    step: String,
    frame: Option<Frame>,
    /// What is compared: without ids, times and the like, which differ between any two runs.
    content: Option<Value>,
}

impl Wire {
    pub(super) fn of(transport: Transport, outcome: &CaseOutcome, open: &BTreeMap<String, Open>) -> Self {
        let mut answers = Vec::new();
        for step in &outcome.steps {
            let tap = open.get(&step.server).map(|open| &open.tap);
            for exchange in &step.exchanges {
                let frame = exchange.frame.and_then(|id| tap?.frame(id));
                let content = frame.as_ref().and_then(content);
                answers.push(Heard { step: step.title.clone(), frame, content });
            }
        }
        Self { transport: transport.to_string(), verdict: outcome.verdict, answers }
    }
}

/// The wires of all tests, kept until the verdicts on all their transports are known.
pub(super) struct Wires(HashMap<Test, Expected>);

/// Suite and name.
type Test = (String, String);

#[derive(Default)]
struct Expected {
    transports: usize,
    wires: Vec<Wire>,
}

impl Wires {
    pub(super) fn of(planned: &[CasePlan]) -> Self {
        let mut tests: HashMap<Test, Expected> = HashMap::new();
        for case in planned {
            tests.entry((case.suite.clone(), case.name.clone())).or_default().transports += 1;
        }
        tests.retain(|_, expected| expected.transports > 1);
        Self(tests)
    }

    /// Once all transports of a test agree, nothing is left to compare.
    pub(super) fn add(&mut self, case: &CasePlan, wire: Wire) {
        let key = (case.suite.clone(), case.name.clone());
        let Some(expected) = self.0.get_mut(&key) else { return };
        expected.wires.push(wire);
        let passed = expected.wires.iter().filter(|wire| wire.verdict.is_success()).count();
        if expected.wires.len() == expected.transports && (passed == 0 || passed == expected.transports) {
            self.0.remove(&key);
        }
    }

    /// Says in a `TransportSpecific` event where the wires part.
    pub(super) fn explain(&self, event: &mut Event) {
        let Event::TransportSpecific { suite, name, parting, .. } = event else { return };
        let Some(Expected { wires, .. }) = self.0.get(&(suite.clone(), name.clone())) else { return };
        let failed = wires.iter().find(|wire| wire.verdict == Verdict::Fail);
        let passed = wires.iter().find(|wire| wire.verdict.is_success());
        if let (Some(failed), Some(passed)) = (failed, passed) {
            *parting = part(failed, passed).map(Box::new);
        }
    }
}

fn part(failed: &Wire, passed: &Wire) -> Option<Parting> {
    let last = failed.answers.len().checked_sub(1)?;
    let differs = |index: &usize| passed.answers.get(*index).is_some_and(|other| other.content != failed.answers[*index].content);
    // The last response is the one that failed, even if only its time or its headers did.
    let index = (0..=last).find(differs).unwrap_or(last);
    let branch =
        |wire: &Wire| Branch { transport: wire.transport.clone(), frame: wire.answers.get(index).and_then(|heard| heard.frame.clone()) };
    Some(Parting { step: failed.answers[index].step.clone(), failed: branch(failed), passed: branch(passed) })
}

/// The result or error of a response.
fn content(frame: &Frame) -> Option<Value> {
    let text = match &frame.body {
        FrameBody::Line { bytes, .. } | FrameBody::HttpBody { bytes, .. } => bytes.to_text(),
        FrameBody::SseEvent { data, .. } => data.as_ref()?.to_text(),
        _ => return None,
    };
    let message: Value = serde_json::from_str(&text).ok()?;
    let part = |name: &str| message.get(name).cloned().map(steady);
    Some(json!({ "result": part("result"), "error": part("error") }))
}

/// The value with a word in place of each text that no two runs share.
fn steady(value: Value) -> Value {
    match value {
        Value::String(text) if uuid::Uuid::parse_str(&text).is_ok() => "a uuid".into(),
        Value::String(text) if text.parse::<jiff::Timestamp>().is_ok() => "a time".into(),
        Value::String(text) => match serde_json::from_str::<Value>(&text) {
            // A payload that is JSON in a text block.
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => steady(inner),
            _ => Value::String(text),
        },
        Value::Array(items) => items.into_iter().map(steady).collect(),
        Value::Object(members) => Value::Object(members.into_iter().map(|(name, value)| (name, steady(value))).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_record::{Direction, FrameId};
    use std::time::Duration;

    fn wire(transport: &str, verdict: Verdict, answers: &[Option<&str>]) -> Wire {
        let frame = |text: &str| Frame {
            id: FrameId(0),
            at: Duration::ZERO,
            direction: Direction::FromServer,
            body: FrameBody::Line { bytes: text.into(), unterminated: false },
        };
        let heard = |(index, text): (usize, &Option<&str>)| {
            let frame = text.map(frame);
            Heard { step: format!("step {index}"), content: frame.as_ref().and_then(content), frame }
        };
        Wire { transport: transport.into(), verdict, answers: answers.iter().enumerate().map(heard).collect() }
    }

    #[test]
    fn the_first_answer_that_differs_is_where_the_wires_part() {
        let check = |failed: &[Option<&str>], passed: &[Option<&str>], step: &str| {
            let found = part(&wire("http", Verdict::Fail, failed), &wire("stdio", Verdict::Pass, passed));
            assert_eq!(found.map(|parting| parting.step).as_deref(), Some(step), "{failed:?} {passed:?}");
        };
        let result = |text: &'static str| Some(text);
        check(&[result(r#"{"id":1,"result":{"n":1}}"#)], &[result(r#"{"id":9,"result":{"n":2}}"#)], "step 0");
        let time = r#"{"id":1,"result":{"t":"2026-01-01T00:00:00Z"}}"#;
        let later = r#"{"id":1,"result":{"t":"2027-01-01T00:00:00Z"}}"#;
        check(&[result(time), result(r#"{"result":1}"#)], &[result(later), result(r#"{"result":2}"#)], "step 1");
        check(&[result(time), None], &[result(later), result(r#"{"result":2}"#), result("{}")], "step 1");
        check(&[result(time), result(time)], &[result(later), result(later)], "step 1");
    }
}
