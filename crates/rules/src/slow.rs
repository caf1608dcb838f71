//! Slow is not silent: where other responses to the same method came late, one that is missing may still have been on its way. The
//! step after judging that takes back what was found about it. Pure, like all judges.

use super::ConversationView;
use super::answers::Pairing;
use mcproof_protocol::methods;
use mcproof_record::duration::readable;
use mcproof_record::{Finding, FrameId};
use std::collections::BTreeMap;
use std::time::Duration;

/// The rules that tell of missing responses, by the words that say so.
const SILENCE: [&str; 2] = ["initialize-gets-result", "request-gets-response"];
const NO_RESPONSE: &str = "got no response";

/// How many times as long as for the slowest response to a method the wait is that shows silence.
const PATIENCE: u32 = 2;

/// Takes back the findings about responses that were not waited for long enough, before any of them is told together with others.
/// Gives the reason, if there were any.
pub(super) fn forgive(rule: &str, findings: &mut Vec<Finding>, conversations: &[ConversationView<'_>]) -> Option<String> {
    if findings.is_empty() || !SILENCE.contains(&rule) {
        return None;
    }
    let slowest = slowest(conversations);
    let mut longest = None;
    findings.retain(|finding| {
        let took = late(finding, conversations, &slowest);
        longest = longest.max(took);
        took.is_none()
    });
    longest.map(|took| format!("other responses took up to {}: a missing one may only be late", readable(took)))
}

/// How long the slowest response to the same method took, if the wait for this one proves nothing.
fn late(finding: &Finding, conversations: &[ConversationView<'_>], slowest: &BTreeMap<String, Duration>) -> Option<Duration> {
    let conversation = conversations.get(finding.conversation)?;
    let request = *finding.frames.first().filter(|_| finding.message.contains(NO_RESPONSE))?;
    let method = conversation.from_client().find(|message| message.frame.id == request)?.method()?;
    let took = *slowest.get(kind(method))?;
    (waited(conversation, request)? < took * PATIENCE).then_some(took)
}

/// `None` if nothing shows it: over HTTP, nothing is recorded when a wait ends.
fn waited(conversation: &ConversationView<'_>, request: FrameId) -> Option<Duration> {
    let probe = conversation.conversation.probes.iter().find(|probe| probe.contains(request));
    let end = probe.map_or(conversation.frames().last()?.id, |probe| FrameId(probe.end.0.saturating_sub(1)));
    conversation.elapsed(request, end).filter(|_| end > request)
}

fn slowest(conversations: &[ConversationView<'_>]) -> BTreeMap<String, Duration> {
    let mut slowest = BTreeMap::<String, Duration>::new();
    for conversation in conversations {
        let pairing = Pairing::of(conversation);
        for (index, request) in pairing.requests.iter().enumerate() {
            let Some(took) = pairing.answer_to(index).and_then(|answer| conversation.elapsed(request.frame, answer.frame)) else {
                continue;
            };
            let known = slowest.entry(kind(request.method()).to_owned()).or_default();
            *known = (*known).max(took);
        }
    }
    slowest
}

/// The first request to a process waits for its start, whichever it is.
fn kind(method: &str) -> &str {
    if method == methods::SERVER_DISCOVER { methods::INITIALIZE } else { method }
}

#[cfg(test)]
mod tests {
    use super::super::{Strictness, example, find, judging};
    use mcproof_record::{Conversation, Judged};

    const INITIALIZE: &str = r#"> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    const INITIALIZED: &str =
        r#"< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"a","version":"1"}}}"#;

    fn check(rule: &str, conversations: &[String], expected: Option<&str>) {
        let recorded: Vec<Conversation> = conversations.iter().map(|text| example::read(text, "stdio", "2025-11-25")).collect();
        let results = judging::judge(&[find(rule).unwrap()], &recorded, Strictness::Tolerant);
        match (&results[0].judged, expected) {
            (Judged::Broken { findings }, Some(part)) => assert!(findings[0].message.contains(part), "{findings:?}"),
            (Judged::Untestable { why }, None) => assert!(why.contains("may only be late"), "{why}"),
            (other, _) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_handshake_that_others_waited_long_for_is_late() {
        let silent = format!("{INITIALIZE}\n~ 30000\n! signal SIGTERM");
        let after = |milliseconds: u32| format!("{INITIALIZE}\n~ {milliseconds}\n{INITIALIZED}");
        let discovered = "> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}\n~ 29000\n< {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"no\"}}";
        let check =
            |others: &[String], expected| check("initialize-gets-result", &[std::slice::from_ref(&silent), others].concat(), expected);
        check(&[], Some("no response"));
        check(&[after(500)], Some("no response"));
        check(&[after(29_000)], None);
        check(&[discovered.to_owned()], None);
    }

    #[test]
    fn a_request_that_others_waited_long_for_is_late() {
        let list = "> {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}";
        let silent = format!("{INITIALIZE}\n{INITIALIZED}\n@ list! tools\n{list}\n~ 8000\n! signal SIGTERM");
        let after = |milliseconds: u32| {
            format!(
                "{INITIALIZE}\n{INITIALIZED}\n@ list tools\n{list}\n~ {milliseconds}\n< {{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{{\"tools\":[]}}}}"
            )
        };
        let check =
            |others: &[String], expected| check("request-gets-response", &[std::slice::from_ref(&silent), others].concat(), expected);
        check(&[after(100)], Some("no response"));
        check(&[after(7_000)], None);
        // Another method, of which nothing ever came, is told all the same.
        let prompts = silent.replace("tools", "prompts").replace("\"id\":2", "\"id\":3");
        check(&[after(7_000), prompts], Some("`prompts/list` got no response"));
    }
}
