//! What a server has to survive: after invalid or unusual input, the next request gets a response.

use super::ConversationView;
use super::answers::{Pairing, death, garbled, messages};
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use mcproof_analysis::AttemptOutcome;
use mcproof_analysis::probes::CONTROL;
use mcproof_protocol::Revision;
use mcproof_record::FrameId;

/// Probes that servers parse differently: a server may find no id in them, or a different one.
pub(super) const UNREADABLE: [&str; 4] = ["batch", "malformed-json", "invalid-utf8", "huge-message"];

const MESSAGES: &[RequirementSource] = &[
    RequirementSource { revisions: revisions::FIRST, level: RequirementLevel::Should, source: "basic/messages" },
    RequirementSource { revisions: revisions::SINCE_2025_03, level: RequirementLevel::Should, source: "basic#messages" },
];
const CANCELLATION: &[RequirementSource] = &[
    RequirementSource {
        revisions: revisions::LEGACY,
        level: RequirementLevel::Should,
        source: "basic/utilities/cancellation#error-handling",
    },
    RequirementSource {
        revisions: revisions::MODERN,
        level: RequirementLevel::Should,
        source: "basic/patterns/cancellation#error-handling",
    },
];
const LINES: &[RequirementSource] = &[
    RequirementSource { revisions: revisions::LEGACY, level: RequirementLevel::Should, source: "basic/transports#stdio" },
    RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Should, source: "basic/transports/stdio" },
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "malformed-json-is-survived",
        area: Area::Robustness,
        requirement: "after a message that is not valid JSON, the next request gets a response",
        sources: super::jsonrpc::MESSAGES,
        judge: Judge::Together(|all| survives(all, "malformed-json", "a message that is not valid JSON")),
        why: "a single truncated line ends the whole session",
        remedy: "catch the parse error, respond with -32700 or not at all, and continue with the next line",
        ..Rule::DEFAULT
    },
    Rule {
        id: "batch-is-survived",
        area: Area::Robustness,
        requirement: "after an array of messages, the next request gets a response",
        sources: MESSAGES,
        judge: Judge::Together(|all| survives(all, "batch", "an array of messages")),
        why: "clients of 2025-03-26 and generic JSON-RPC clients send batches",
        remedy: "respond to an array with an error, with an array, or not at all; but continue reading",
        ..Rule::DEFAULT
    },
    Rule {
        id: "batch-gets-response",
        area: Area::JsonRpc,
        requirement: "an array of requests gets a response, in the revision that has batches",
        sources: &[RequirementSource {
            revisions: Revision::V2025_03_26..=Revision::V2025_03_26,
            level: RequirementLevel::Must,
            source: "basic#batching",
        }],
        tolerance: Some("most servers of that revision do not accept batches"),
        judge: Judge::Each(batch_gets_response),
        why: "a client of this revision may put several requests into one array, and waits for their responses",
        remedy: "handle each message of an array, and respond to the requests among them; or support only later revisions, which have no batches",
        ..Rule::DEFAULT
    },
    Rule {
        id: "unknown-notification-is-survived",
        area: Area::Robustness,
        requirement: "after an unknown notification, the next request gets a response",
        sources: MESSAGES,
        judge: Judge::Together(|all| survives(all, "unknown-notification", "an unknown notification")),
        why: "newer clients send newer notifications without negotiation",
        remedy: "ignore unknown notifications",
        ..Rule::DEFAULT
    },
    Rule {
        id: "unknown-cancel-is-survived",
        area: Area::Robustness,
        requirement: "after a cancellation of a request that is not under way, the next request gets a response",
        sources: CANCELLATION,
        judge: Judge::Together(|all| survives(all, "unknown-cancel", "a cancellation of nothing")),
        why: "a cancellation and a response often cross, so every client sends such a cancellation sooner or later",
        remedy: "ignore cancellations of unknown requests",
        ..Rule::DEFAULT
    },
    Rule {
        id: "huge-message-is-survived",
        area: Area::Robustness,
        requirement: "after a message of 4 MiB, the next request gets a response",
        sources: MESSAGES,
        judge: Judge::Together(|all| survives(all, "huge-message", "a message of 4 MiB")),
        why: "arguments with a file or an image are that large; a reader with a fixed buffer fails or never finds the next line",
        remedy: "read lines without a length limit, or refuse the message and skip the rest of its line",
        sdks: &[
            ("Python", "asyncio's `readline` stops at 64 KiB: pass a larger `limit`"),
            ("Go", "`bufio.Scanner` stops at 64 KiB: use `bufio.Reader`"),
        ],
        ..Rule::DEFAULT
    },
    Rule {
        id: "invalid-utf8-is-survived",
        area: Area::Robustness,
        requirement: "after a message that is not valid UTF-8, the next request gets a response",
        sources: MESSAGES,
        judge: Judge::Together(|all| survives(all, "invalid-utf8", "a message that is not valid UTF-8")),
        why: "a path or a text in a legacy encoding ends the whole session",
        remedy: "decode each line separately, and continue with the next one if decoding fails",
        sdks: &[("Python", "`TextIOWrapper(sys.stdin.buffer, encoding=\"utf-8\", errors=\"replace\")`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "early-request-is-survived",
        area: Area::Robustness,
        requirement: "after a request before `initialize`, the handshake still works",
        sources: &[RequirementSource {
            revisions: revisions::LEGACY,
            level: RequirementLevel::Should,
            source: "basic/lifecycle#initialization",
        }],
        judge: Judge::Together(|all| survives(all, "early-request", "a request before `initialize`")),
        why: "clients that support both eras send `server/discover` first, and fall back to `initialize` on the same connection",
        remedy: "respond to early requests with an error, and wait for `initialize`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "duplicate-id-is-survived",
        area: Area::Robustness,
        requirement: "after two requests with the same id, the next request gets a response",
        sources: MESSAGES,
        judge: Judge::Together(|all| survives(all, "duplicate-id", "two requests with the same id")),
        why: "a client that restarts behind a proxy numbers its requests from one again",
        remedy: "respond to the second one with an error, or to both; a request table must not fail on an existing key",
        ..Rule::DEFAULT
    },
    Rule {
        id: "blank-line-is-survived",
        area: Area::Robustness,
        requirement: "after a blank line, the next request gets a response",
        sources: LINES,
        on: AppliesTo::Stdio,
        judge: Judge::Together(|all| survives(all, "blank-line", "a blank line")),
        why: "people who test a server by hand send empty lines, and some clients end messages with two line feeds",
        remedy: "skip blank lines",
        ..Rule::DEFAULT
    },
];

/// Judged by the response with the id of the request in the array; a separate rule judges whether the server still works afterwards.
fn batch_gets_response(conversation: &ConversationView<'_>) -> Judgment {
    let Some(attempt) = conversation.probe("batch") else { return Judgment::NotTried("no array was sent".into()) };
    let sent =
        conversation.from_client().find(|wire_message| wire_message.value.is_array() && attempt.probed.first <= wire_message.frame.id);
    let Some(sent) = sent else { return Judgment::Untestable("no array was sent".into()) };
    let id = sent.value.pointer("/0/id");
    let answer = messages(conversation).find(|server_message| server_message.is_answer() && server_message.id == id);
    if answer.is_some_and(|server_message| server_message.value.get("result").is_some()) {
        return Judgment::Pass;
    }
    let is_well = conversation.probe("batch-after").is_some_and(|after| matches!(after.answer, AttemptOutcome::Result { .. }));
    if !is_well {
        return Judgment::Untestable("the server did not work after an array of messages".into());
    }
    let refusal = attempt.http.and_then(|http| http.response).map(|response| response.frame.id);
    let frames = [sent.frame.id].into_iter().chain(answer.map(|server_message| server_message.frame).or(refusal));
    Judgment::Broken(vec![Violation::new("a request in an array got no result", frames)])
}

/// Whether the request after a probe got any response. A failure that does not repeat has another
/// cause.
fn survives(all: &[&ConversationView<'_>], probe: &str, what: &str) -> Judgment {
    let judged: Vec<(usize, Judgment)> =
        all.iter().enumerate().filter_map(|(position, one)| Some((position, survives_in(one, probe, what)?))).collect();
    let passes = judged.iter().any(|(_, judgment)| *judgment == Judgment::Pass);
    let broken = judged.iter().find_map(|(position, judgment)| match judgment {
        Judgment::Broken(violations) => Some((*position, violations)),
        _ => None,
    });
    match (passes, broken) {
        (true, Some((_, violations))) => {
            let how = violations.first().map(|violation| violation.message.clone()).unwrap_or_default();
            Judgment::Untestable(format!("{how}, but not in another attempt"))
        }
        (true, None) => Judgment::Pass,
        (false, Some((conversation, violations))) => {
            Judgment::Broken(violations.iter().map(|violation| Violation { conversation, ..violation.clone() }).collect())
        }
        (false, None) => judged.into_iter().next().map(|(_, judgment)| judgment).unwrap_or_else(|| {
            let was_broken = all.iter().any(|one| one.probe(&format!("{CONTROL}-after")).is_some_and(|attempt| !is_well(&attempt.answer)));
            match was_broken {
                true => Judgment::Untestable("the server did not respond to an ordinary request before it either".into()),
                false => Judgment::Untestable(format!("{what} was not tried")),
            }
        }),
    }
}

fn is_well(answer: &AttemptOutcome<'_>) -> bool {
    match answer {
        AttemptOutcome::Result { .. } | AttemptOutcome::Error { .. } | AttemptOutcome::None => true,
        AttemptOutcome::Status { status, .. } => *status < 500,
        AttemptOutcome::Silence | AttemptOutcome::Gone => false,
    }
}

/// `None` if it was not tried.
fn survives_in(conversation: &ConversationView<'_>, probe: &str, what: &str) -> Option<Judgment> {
    let tried = conversation.conversation.probes.iter().find(|probed| probed.probe == probe)?;
    let after = format!("{probe}-after");
    let Some(attempt) = conversation.probes(&after).find(|attempt| attempt.probed.first >= tried.end) else {
        return Some(Judgment::Untestable(format!("no request was sent after {what}")));
    };
    let frames = |last: Option<FrameId>| {
        let evidence = std::iter::once(tried.first).chain(attempt.request.map(|request| request.frame.id)).chain(last);
        let mut evidence: Vec<FrameId> = evidence.collect();
        evidence.sort();
        evidence.dedup();
        evidence
    };
    let method = attempt.request.and_then(mcproof_analysis::WireMessage::method).unwrap_or("the next request");
    Some(match attempt.answer {
        AttemptOutcome::Status { status, frame } if status >= 500 => {
            Judgment::Broken(vec![Violation::new(format!("after {what} `{method}` got status {status}"), frames(Some(frame)))])
        }
        AttemptOutcome::Result { .. } | AttemptOutcome::Error { .. } | AttemptOutcome::None | AttemptOutcome::Status { .. } => {
            Judgment::Pass
        }
        AttemptOutcome::Silence | AttemptOutcome::Gone if garbled(conversation).is_some() || Pairing::of(conversation).is_off() => {
            Judgment::Untestable("the output of the server could not be read".into())
        }
        AttemptOutcome::Silence => Judgment::Broken(vec![Violation::new(format!("after {what} `{method}` got no response"), frames(None))]),
        AttemptOutcome::Gone => {
            let death = death(conversation);
            let how = death.as_ref().map_or_else(|| "the connection ended".to_owned(), |death| death.how.clone());
            Judgment::Broken(vec![Violation::new(format!("after {what} {how}"), frames(death.map(|death| death.frame)))])
        }
    })
}
