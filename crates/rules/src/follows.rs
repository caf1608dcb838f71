//! Pairs of rules of which one sentence follows from the other: what breaks the first, and would break the second whatever the server
//! does about that, is one finding. Pure, like all judges.

use super::ConversationView;
use super::events::has_unreadable_message;
use mcproof_record::{Finding, FrameId, Judged, RuleResult};
use std::collections::BTreeSet;

/// When a finding follows.
enum When {
    /// It cites a frame that the cause cites too.
    SameFrame,
    /// Both are found; the messages say this.
    Says { cause: &'static str, follows: &'static str },
}

struct Pair {
    cause: &'static str,
    follows: &'static str,
    when: When,
}

const META: When = When::Says { cause: "without `_meta` got a result", follows: "got a result" };
const WRONG_STATUS: When = When::Says { cause: "error -32020 with status 200", follows: "got error -32020 with status 200" };
const UNREAD_STREAM: When = When::Says { cause: "is an event stream", follows: "not acknowledged in time" };

/// The TypeScript SDK keeps the first event of a stream, which has no data, as this.
const OTHERS_PRIMER: When = When::Says { cause: "of another stream", follows: "not a message: `{}`" };

/// The end that the first rule tells was not due to an unusual argument.
const AFTER_CALL: When = When::Says { cause: "`tools/call`", follows: "after such a call" };

const PAIRS: &[Pair] = &[
    Pair { cause: "message-has-each-member-once", follows: "message-matches-schema", when: When::SameFrame },
    Pair { cause: "message-has-each-member-once", follows: "response-has-result-or-error", when: When::SameFrame },
    Pair { cause: "error-code-is-defined-in-revision", follows: "resource-unknown-code", when: When::SameFrame },
    Pair { cause: "message-matches-schema", follows: "input-required-only-where-allowed", when: When::SameFrame },
    Pair { cause: "message-matches-schema", follows: "call-structured-has-text", when: When::SameFrame },
    Pair { cause: "call-output-matches-schema", follows: "call-structured-has-text", when: When::SameFrame },
    Pair { cause: "sse-lines-are-fields-or-comments", follows: "sse-data-is-one-message", when: When::SameFrame },
    Pair { cause: "sse-resumed-stream-has-only-its-messages", follows: "sse-data-is-one-message", when: OTHERS_PRIMER },
    Pair { cause: "sse-endpoint-comes-first", follows: "sse-post-is-accepted", when: When::Says { cause: "", follows: "" } },
    Pair { cause: "sse-endpoint-comes-first", follows: "initialize-gets-result", when: When::Says { cause: "", follows: "got status" } },
    Pair { cause: "initialize-gets-result", follows: "sse-post-is-accepted", when: When::SameFrame },
    Pair { cause: "meta-is-required", follows: "meta-version-is-required", when: META },
    Pair { cause: "meta-is-required", follows: "meta-capabilities-are-required", when: META },
    Pair { cause: "server-stays-alive", follows: "call-extra-argument-is-survived", when: AFTER_CALL },
    Pair { cause: "server-stays-alive", follows: "call-null-argument-is-survived", when: AFTER_CALL },
    Pair { cause: "server-stays-alive", follows: "call-boundary-argument-is-survived", when: AFTER_CALL },
    Pair { cause: "server-stays-alive", follows: "call-unicode-argument-is-survived", when: AFTER_CALL },
    Pair { cause: "server-stays-alive", follows: "call-large-argument-is-survived", when: AFTER_CALL },
    Pair { cause: "http-body-is-json", follows: "listen-is-acknowledged-first", when: UNREAD_STREAM },
    Pair { cause: "error-has-http-status-400", follows: "header-method-is-checked", when: WRONG_STATUS },
    Pair { cause: "error-has-http-status-400", follows: "header-name-is-checked", when: WRONG_STATUS },
];

/// Rules about the form of event streams: of a stream that has no message that can be read, they tell why.
const OF_EVENTS: [&str; 4] =
    ["sse-lines-are-fields-or-comments", "sse-event-is-terminated", "sse-data-is-one-message", "sse-event-is-named-message"];

/// Puts findings that follow from another one under it.
pub(super) fn fold(results: &mut [RuleResult], conversations: &[ConversationView<'_>]) {
    for pair in PAIRS {
        let causes: Vec<Finding> = open(results, pair.cause).cloned().collect();
        if causes.is_empty() {
            continue;
        }
        let follows = |finding: &Finding| match pair.when {
            When::SameFrame => causes
                .iter()
                .any(|cause| cause.conversation == finding.conversation && cause.frames.iter().any(|frame| finding.frames.contains(frame))),
            When::Says { cause, follows } => finding.message.contains(follows) && causes.iter().any(|known| known.message.contains(cause)),
        };
        put_under(results, pair.cause, |result, finding| result == pair.follows && follows(finding));
    }
    if let Some(cause) = OF_EVENTS.into_iter().find(|cause| open(results, cause).next().is_some()) {
        let unreadable: Vec<BTreeSet<FrameId>> = conversations.iter().map(frames_of_unreadable_streams).collect();
        put_under(results, cause, |rule, finding| {
            !OF_EVENTS.contains(&rule) && finding.frames.iter().any(|frame| unreadable[finding.conversation].contains(frame))
        });
    }
}

/// The findings of a rule that follow from no other one.
fn open<'r>(results: &'r [RuleResult], rule: &str) -> impl Iterator<Item = &'r Finding> {
    let broken = results.iter().find(|result| result.rule == rule).and_then(|result| match &result.judged {
        Judged::Broken { findings } => Some(findings),
        _ => None,
    });
    broken.into_iter().flatten().filter(|finding| finding.cause.is_none())
}

fn put_under(results: &mut [RuleResult], cause: &str, follows: impl Fn(&str, &Finding) -> bool) {
    for result in results.iter_mut().filter(|result| result.rule != cause) {
        let Judged::Broken { findings } = &mut result.judged else { continue };
        for finding in findings.iter_mut().filter(|finding| finding.cause.is_none()) {
            if follows(&result.rule, finding) {
                finding.cause = Some(cause.to_owned());
            }
        }
    }
}

/// The frames of requests whose responses are event streams in which no message can be read.
fn frames_of_unreadable_streams(conversation: &ConversationView<'_>) -> BTreeSet<FrameId> {
    let unreadable = conversation.exchanges.values().filter(|exchange| exchange.method == "POST" && has_unreadable_message(exchange));
    unreadable.flat_map(|exchange| exchange.heads().into_iter().chain(exchange.events.iter().map(|frame| frame.id))).collect()
}
