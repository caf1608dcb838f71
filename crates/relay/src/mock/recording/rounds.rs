//! Joins the rounds of a multi round-trip request (2026-07-28, basic/patterns/mrtr) into one request whose steps are questions, so
//! that it can be played in either era.

use super::{Outcome, Question, RecordedRequest, Step, TimedStep};
use crate::mock::matching;
use serde_json::{Value, json};
use std::time::Duration;

/// How many requests later the next round is looked for.
const FARTHEST: usize = 1_000;

pub(super) fn join(requests: &mut Vec<RecordedRequest>) {
    let mut slots: Vec<Option<RecordedRequest>> = std::mem::take(requests).into_iter().map(Some).collect();
    for place in 0..slots.len() {
        while let Some(next) = next_round(&slots, place) {
            let Some(later) = slots[next].take() else { break };
            let Some(earlier) = &mut slots[place] else { break };
            let Outcome::Result(asked) = std::mem::replace(&mut earlier.outcome, later.outcome) else { break };
            let delay = std::mem::replace(&mut earlier.delay, later.delay);
            earlier.steps.push(TimedStep { delay, step: Step::Ask(questions(&asked, later.params.get("inputResponses"))) });
            earlier.steps.extend(later.steps);
            earlier.after.extend(later.after);
            earlier.ended = later.ended;
        }
    }
    requests.extend(slots.into_iter().flatten());
    // A question that the recorded client never answered.
    for request in requests {
        if let Outcome::Result(result) = &request.outcome
            && wants_input(result)
        {
            request.steps.push(TimedStep { delay: request.delay, step: Step::Ask(questions(result, None)) });
            request.outcome = Outcome::Silence;
            request.delay = Duration::ZERO;
        }
    }
}

fn wants_input(result: &Value) -> bool {
    result.get("resultType").and_then(Value::as_str) == Some("input_required")
}

/// Where the request stands that goes on with this one.
fn next_round(slots: &[Option<RecordedRequest>], place: usize) -> Option<usize> {
    let request = slots[place].as_ref()?;
    let Outcome::Result(result) = &request.outcome else { return None };
    if !wants_input(result) {
        return None;
    }
    let state = result.get("requestState");
    let continues = |later: &RecordedRequest| {
        let names_state = later.params.get("requestState") == state;
        let goes_on = later.params.get("inputResponses").is_some() || state.is_some();
        later.method == request.method && names_state && goes_on && matching::normal(&later.params) == matching::normal(&request.params)
    };
    (place + 1..slots.len()).take(FARTHEST).find(|next| slots[*next].as_ref().is_some_and(continues))
}

fn questions(result: &Value, responses: Option<&Value>) -> Vec<Question> {
    let asked = result.get("inputRequests").and_then(Value::as_object);
    let question = |(key, request): (&String, &Value)| Question {
        key: Some(key.clone()),
        method: request.get("method").and_then(Value::as_str).unwrap_or_default().to_owned(),
        params: request.get("params").cloned().unwrap_or_else(|| json!({})),
        response: responses.and_then(|responses| responses.get(key)).map(|response| json!({ "result": response })),
    };
    asked.into_iter().flatten().map(question).collect()
}
