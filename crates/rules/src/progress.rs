//! Progress and cancellation, wherever they appear.
//! Source: basic/utilities/progress and cancellation; 2026-07-28, basic/patterns.

use super::ConversationView;
use super::answers::{Heard, Meaning, Pairing, gathered, messages, shown};
use super::rule_definition::{Area, Judge, Judgment, On, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use mcproof_analysis::probes::PARALLEL_TOKEN;
use mcproof_analysis::{Answer, Asked};
use mcproof_record::{FrameId, Probed};
use serde_json::Value;
use std::time::Duration;

const PROGRESS: &[RequirementSource] = &[
    RequirementSource {
        revisions: revisions::LEGACY,
        level: RequirementLevel::Must,
        source: "basic/utilities/progress#behavior-requirements",
    },
    RequirementSource {
        revisions: revisions::MODERN,
        level: RequirementLevel::Must,
        source: "basic/patterns/progress#behavior-requirements",
    },
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "progress-has-known-token",
        area: Area::Progress,
        requirement: "progress names a token that a request has brought",
        sources: PROGRESS,
        on: On::Any,
        tolerance: None,
        judge: Judge::Each(tokens_are_known),
        why: "the client cannot tell what it is that goes on, and drops it; a request whose deadline it would have extended times out",
        remedy: "send progress only for requests with `_meta.progressToken`, with that very value: a string stays a string",
        sdks: &[("TypeScript", "`extra._meta?.progressToken`"), ("Python", "`ctx.report_progress(…)` does it")],
        bad: r#"
            > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","_meta":{"progressToken":7}}}
            < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"7","progress":1}}
            < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#,
        good: r#"
            > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","_meta":{"progressToken":7}}}
            < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}
            < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#,
    },
    Rule {
        id: "progress-increases",
        area: Area::Progress,
        requirement: "the progress of a request grows with each notification",
        sources: &[
            RequirementSource {
                revisions: revisions::LEGACY,
                level: RequirementLevel::Must,
                source: "basic/utilities/progress#progress-flow",
            },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Must,
                source: "basic/patterns/progress#progress-flow",
            },
        ],
        on: On::Any,
        tolerance: None,
        judge: Judge::Each(progress_grows),
        why: "a bar that jumps back looks broken, and clients that wait for more progress take the request for stuck",
        remedy: "send a number that only grows, and nothing when nothing has changed",
        sdks: &[],
        bad: r#"
            > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","_meta":{"progressToken":7}}}
            < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":2}}
            < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}
            < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#,
        good: r#"
            > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","_meta":{"progressToken":7}}}
            < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}
            < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":2.5}}
            < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#,
    },
    Rule {
        id: "progress-ends-with-response",
        area: Area::Progress,
        requirement: "there is no progress of a request that was answered",
        sources: &[
            RequirementSource {
                revisions: revisions::LEGACY,
                level: RequirementLevel::Must,
                source: "basic/utilities/progress#implementation-notes",
            },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Must,
                source: "basic/patterns/progress#implementation-notes",
            },
        ],
        on: On::Any,
        tolerance: None,
        judge: Judge::Each(progress_ends),
        why: "clients forget the token with the answer; what comes later is an error in their log, or counts for another request",
        remedy: "stop timers and wait for what sends progress before the answer goes out",
        sdks: &[],
        bad: r#"
            > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","_meta":{"progressToken":7}}}
            < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
            < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#,
        good: r#"
            > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","_meta":{"progressToken":7}}}
            < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}
            < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#,
    },
    Rule {
        id: "progress-tokens-are-unique",
        area: Area::Progress,
        requirement: "two requests of a server that are open at the same time have different progress tokens",
        sources: &[RequirementSource {
            revisions: revisions::LEGACY,
            level: RequirementLevel::Must,
            source: "basic/utilities/progress#progress-flow",
        }],
        on: On::Any,
        tolerance: None,
        judge: Judge::Each(tokens_are_unique),
        why: "a client that reports progress does so by the token, and the server takes that of one request for that of the other",
        remedy: "take a new token for each request, such as its id",
        sdks: &[],
        bad: r#"
            > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}
            < {"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{"messages":[],"maxTokens":5,"_meta":{"progressToken":1}}}
            < {"jsonrpc":"2.0","id":"s2","method":"sampling/createMessage","params":{"messages":[],"maxTokens":5,"_meta":{"progressToken":1}}}"#,
        good: r#"
            > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}
            < {"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{"messages":[],"maxTokens":5,"_meta":{"progressToken":1}}}
            > {"jsonrpc":"2.0","id":"s1","error":{"code":-32601,"message":"Method not found"}}
            < {"jsonrpc":"2.0","id":"s2","method":"sampling/createMessage","params":{"messages":[],"maxTokens":5,"_meta":{"progressToken":1}}}"#,
    },
    Rule {
        id: "canceled-request-gets-no-response",
        area: Area::Progress,
        requirement: "a request that was cancelled is not answered any more",
        sources: &[
            RequirementSource {
                revisions: revisions::LEGACY,
                level: RequirementLevel::Should,
                source: "basic/utilities/cancellation#behavior-requirements",
            },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Should,
                source: "basic/patterns/cancellation#behavior-requirements",
            },
        ],
        on: On::Any,
        tolerance: None,
        judge: Judge::Each(cancelled_stays_silent),
        why: "an answer that comes much later shows that the work went on, and cost what it costs, though nobody wants it",
        remedy: "pass the cancellation on to what the handler waits for, and send nothing once it has come",
        sdks: &[("TypeScript", "`extra.signal`"), ("Python", "let `CancelledError` pass"), ("Go", "the handler's `ctx`")],
        bad: r#"
            > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}
            > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
            > {"jsonrpc":"2.0","id":2,"method":"ping"}
            < {"jsonrpc":"2.0","id":2,"result":{}}
            ~ 3000
            < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#,
        good: r#"
            > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}
            > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
            ~ 3000
            > {"jsonrpc":"2.0","id":2,"method":"ping"}
            < {"jsonrpc":"2.0","id":2,"result":{}}"#,
    },
];

/// A progress notification, with its token.
fn progress<'c>(conversation: &'c ConversationView<'_>) -> Vec<(Heard<'c>, &'c Value)> {
    let all = messages(conversation).filter(|heard| heard.method() == Some("notifications/progress"));
    all.filter_map(|heard| Some((heard, heard.value.pointer("/params/progressToken")?))).collect()
}

const NONE_CAME: &str = "no progress was told";

/// The requests that brought a token before this notification.
fn owners<'p>(pairing: &'p Pairing<'_>, heard: &'p Heard<'_>, token: &'p Value) -> impl Iterator<Item = usize> + 'p {
    let brings = move |index: &usize| {
        let request = &pairing.requests[*index];
        request.frame < heard.frame && request.value.pointer("/params/_meta/progressToken") == Some(token)
    };
    (0..pairing.requests.len()).filter(brings)
}

/// The request that brought a token, if no other one did: a client that uses one twice cannot tell whose progress it is.
fn owner(pairing: &Pairing<'_>, heard: &Heard<'_>, token: &Value) -> Option<usize> {
    let mut owners = owners(pairing, heard, token);
    owners.next().filter(|_| owners.next().is_none())
}

fn tokens_are_known(conversation: &ConversationView<'_>) -> Judgment {
    let progress = progress(conversation);
    if progress.is_empty() {
        return Judgment::NotApplicable(NONE_CAME.into());
    }
    let pairing = Pairing::of(conversation);
    // Whoever knows one of these has it from us: from another conversation with the same process.
    let is_ours = |token: &Value| token.as_str().is_some_and(|token| token.starts_with(PARALLEL_TOKEN));
    let unknown = progress.iter().filter(|(heard, token)| !is_ours(token) && owners(&pairing, heard, token).next().is_none());
    let violations = unknown.map(|(heard, token)| {
        Violation::new(format!("progress has the token {}, which no request has brought", shown(token)), [heard.frame])
    });
    Judgment::from_violations(gathered(violations.collect()))
}

fn progress_grows(conversation: &ConversationView<'_>) -> Judgment {
    let progress = progress(conversation);
    if progress.is_empty() {
        return Judgment::NotApplicable(NONE_CAME.into());
    }
    let pairing = Pairing::of(conversation);
    let mut known: Vec<(usize, Heard<'_>, f64)> = Vec::new();
    let mut violations = Vec::new();
    for (heard, token) in progress {
        let (Some(owner), Some(value)) = (owner(&pairing, &heard, token), heard.value.pointer("/params/progress").and_then(Value::as_f64))
        else {
            continue;
        };
        // What comes on two streams may arrive in either order.
        let before = known.iter().rfind(|(of, earlier, _)| *of == owner && earlier.exchange == heard.exchange);
        if let Some((_, earlier, before)) = before.filter(|(_, _, before)| *before >= value) {
            let message = format!("the progress of `{}` goes from {before} to {value}", pairing.requests[owner].method());
            violations.push(Violation::new(message, [earlier.frame, heard.frame]));
        }
        known.push((owner, heard, value));
    }
    Judgment::of(gathered(violations), known.len(), "no progress of a request of ours was told")
}

fn progress_ends(conversation: &ConversationView<'_>) -> Judgment {
    let progress = progress(conversation);
    if progress.is_empty() {
        return Judgment::NotApplicable(NONE_CAME.into());
    }
    let pairing = Pairing::of(conversation);
    let mut seen = 0;
    let mut violations = Vec::new();
    for (heard, token) in progress {
        let Some(owner) = owner(&pairing, &heard, token) else { continue };
        let Some(answer) = pairing.answer_to(owner) else { continue };
        // A task goes on after the answer that names it.
        if answer.value.pointer("/result/task").is_some() || answer.value.pointer("/result/taskId").is_some() {
            continue;
        }
        seen += 1;
        if answer.frame < heard.frame && answer.exchange == heard.exchange {
            let message = format!("progress of `{}` is told after its answer", pairing.requests[owner].method());
            violations.push(Violation::new(message, [answer.frame, heard.frame]));
        }
    }
    Judgment::of(gathered(violations), seen, "no request with progress was answered")
}

fn tokens_are_unique(conversation: &ConversationView<'_>) -> Judgment {
    let asked = messages(conversation).filter(Heard::is_request);
    let asked = asked.filter_map(|heard| Some((heard, heard.value.pointer("/params/_meta/progressToken")?)));
    let answers: Vec<(FrameId, &Value)> =
        conversation.from_client().filter(|said| said.is_answer()).filter_map(|said| Some((said.frame.id, said.id()?))).collect();
    let (mut seen, mut violations) = (Vec::<(Heard<'_>, &Value)>::new(), Vec::new());
    for (heard, token) in asked {
        // Whoever had an answer of ours by then, or was cancelled, is not open any more.
        let is_open = |earlier: &Heard<'_>| {
            let id = earlier.value.get("id");
            let is_cancelled = messages(conversation).any(|said| {
                said.method() == Some("notifications/cancelled")
                    && said.value.pointer("/params/requestId") == id
                    && said.frame < heard.frame
            });
            !is_cancelled && !answers.iter().any(|(frame, of)| Some(*of) == id && earlier.frame < *frame && *frame < heard.frame)
        };
        if let Some((earlier, _)) = seen.iter().find(|(earlier, known)| *known == token && is_open(earlier)) {
            let message = format!("two requests of the server that are open have the progress token {}", shown(token));
            violations.push(Violation::new(message, [earlier.frame, heard.frame]));
        }
        seen.push((heard, token));
    }
    match seen.is_empty() {
        true => Judgment::NotApplicable("the server asks for no progress".into()),
        false => Judgment::from_violations(gathered(violations)),
    }
}

/// An answer may have been under way when the cancellation came, unless it is known that the request takes longer. Silence is
/// told from luck only after that.
const RACE: Duration = Duration::from_secs(1);

fn cancelled_stays_silent(conversation: &ConversationView<'_>) -> Judgment {
    let cancelled = conversation.from_client().filter(|said| said.method() == Some("notifications/cancelled"));
    let pairing = Pairing::of(conversation);
    let mut seen = 0;
    let mut violations = Vec::new();
    for said in cancelled {
        let Some(id) = said.param("/requestId") else { continue };
        let asked = pairing.requests.iter().position(|request| request.id() == id && request.frame < said.frame.id);
        let Some(request) = asked else { continue };
        let answers = pairing.replies.iter().find(|reply| matches!(reply.meaning, Meaning::Answer { request: of } if of == request));
        let is_in_midst = in_midst(conversation, said.frame.id);
        let race = if is_in_midst { Duration::ZERO } else { RACE };
        // A server that answers what was asked later has read the cancellation: it is not just slow to read.
        let has_read = |until| {
            pairing.replies.iter().any(|reply| {
                let of_later = matches!(reply.meaning, Meaning::Answer { request: of } if pairing.requests[of].frame > said.frame.id);
                of_later && reply.frame < until
            })
        };
        let late = |frame| conversation.elapsed(said.frame.id, frame).filter(|late| *late > race);
        match answers {
            None => seen += usize::from(pairing.replies.iter().any(|reply| late(reply.frame).is_some())),
            Some(answer) if answer.frame > said.frame.id => {
                seen += 1;
                let was_read = || has_read(answer.frame) || is_in_midst && is_cut_short(conversation, answer.value);
                if let Some(late) = late(answer.frame).filter(|_| was_read()) {
                    let method = pairing.requests[request].method();
                    let message = format!("`{method}` is answered {:.1} s after it was cancelled", late.as_secs_f64());
                    violations.push(Violation::new(message, [pairing.requests[request].frame, said.frame.id, answer.frame]));
                }
            }
            Some(_) => {}
        }
    }
    Judgment::of(gathered(violations), seen, "no request was cancelled while it was under way")
}

/// Whether a call that is known to succeed with some content is answered with none, or with an error: that answers its
/// cancellation.
fn is_cut_short(conversation: &ConversationView<'_>, answer: &Value) -> bool {
    let has_content = |result: &Value| {
        let is_error = result.get("isError").is_some_and(|is_error| is_error == true);
        !is_error && result.get("content").and_then(Value::as_array).is_some_and(|content| !content.is_empty())
    };
    let usual = conversation.probes("call-slow").last().map(|asked| asked.answer);
    matches!(usual, Some(Answer::Result { value, .. }) if has_content(value)) && !answer.get("result").is_some_and(has_content)
}

/// Whether a cancellation came when the same call, the last one made before, was far from its end.
fn in_midst(conversation: &ConversationView<'_>, cancellation: FrameId) -> bool {
    let within = |probed: &Probed| probed.first <= cancellation && cancellation < probed.end;
    let Some(cancelled) = conversation.probes("cancel").find(|asked| within(asked.probed)) else { return false };
    let took = |asked: Asked<'_, '_>| conversation.elapsed(asked.request?.frame.id, asked.answer.frame()?);
    let usual = conversation.probes("call-slow").last().and_then(took);
    let waited = cancelled.request.and_then(|request| conversation.elapsed(request.frame.id, cancellation));
    matches!((usual, waited), (Some(usual), Some(waited)) if waited < usual / 2)
}
