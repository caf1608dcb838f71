//! Requests that got a result: those that an exploration made for it, or all of a client that explores nothing. Judges nothing.

use super::{Attempt, AttemptOutcome, ConversationView};
use mcproof_record::FrameId;
use serde_json::Value;

/// A request that got a result.
pub(super) struct Served<'c> {
    pub(super) params: &'c Value,
    pub(super) result: &'c Value,
    pub(super) frames: Vec<FrameId>,
}

/// Those of a method. Without any probe, the conversation is of a client that has purposes of its own.
pub(super) fn served<'c>(conversation: &'c ConversationView<'_>, method: &str, probes: &[&str]) -> Vec<Served<'c>> {
    if conversation.conversation.probes.is_empty() {
        let requests = conversation.requests().filter(|(request, _)| request.method() == Some(method));
        let served = requests.filter_map(|(request, response)| {
            let response = response?;
            let frames = vec![request.frame.id, response.frame.id];
            Some(Served { params: &request.value["params"], result: response.value.get("result")?, frames })
        });
        return served.collect();
    }
    let attempts = probes.iter().flat_map(|probe| conversation.probes(probe));
    attempts.filter_map(of_attempt).collect()
}

fn of_attempt<'c>(attempt: Attempt<'_, 'c>) -> Option<Served<'c>> {
    let AttemptOutcome::Result { value, .. } = attempt.answer else { return None };
    Some(Served { params: &attempt.request?.value["params"], result: value, frames: attempt.frames() })
}
