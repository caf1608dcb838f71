//! Whether the server starts in the environment of a desktop host.

use crate::rule_definition::{Judgment, Violation};
use mcproof_analysis::ConversationView;
use mcproof_analysis::probes::HOST_START;
use mcproof_record::ProbeOutcome;

pub(super) fn starts(conversation: &ConversationView<'_>) -> Judgment {
    let Some(attempt) = conversation.probe(HOST_START) else {
        return Judgment::Untestable("the server was not started in the environment of a desktop host".into());
    };
    match (attempt.probed.outcome, &attempt.probed.subject) {
        (ProbeOutcome::Done, _) => Judgment::Pass,
        (ProbeOutcome::Gone, Some(why)) => Judgment::Broken(vec![Violation::new(why.clone(), [attempt.probed.first])]),
        _ => Judgment::Untestable("there was no time to start the server in the environment of a desktop host".into()),
    }
}
