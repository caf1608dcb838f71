//! Progress and cancellation, in both directions.
//! Source: basic/utilities/progress and cancellation; 2026-07-28, basic/patterns.

use super::ConversationView;
use super::answers::{Meaning, Pairing, ServerMessage, gathered, messages, shown};
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use mcproof_analysis::probes::is_parallel_token;
use mcproof_analysis::{Attempt, AttemptOutcome};
use mcproof_protocol::methods;
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
        requirement: "progress has a token that a request provided",
        sources: PROGRESS,
        judge: Judge::Each(tokens_are_known),
        why: "the client cannot assign the progress to a request, and drops it; a request whose deadline it would extend times out",
        remedy: "send progress only for requests with `_meta.progressToken`, with the same value and type: a string stays a string",
        sdks: &[("TypeScript", "`extra._meta?.progressToken`"), ("Python", "`ctx.report_progress(…)` does it")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "progress-increases",
        area: Area::Progress,
        requirement: "the progress of a request increases with each notification",
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
        judge: Judge::Each(progress_grows),
        why: "a progress bar that jumps back looks broken, and clients that wait for more progress treat the request as stuck",
        remedy: "send a number that only increases, and no notification when nothing has changed",
        ..Rule::DEFAULT
    },
    Rule {
        id: "progress-ends-with-response",
        area: Area::Progress,
        requirement: "a request has no progress after its response",
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
        judge: Judge::Each(progress_ends),
        why: "clients discard the token with the response; later progress is an error in their log, or is assigned to another request",
        remedy: "stop timers, and wait for tasks that send progress before sending the response",
        ..Rule::DEFAULT
    },
    Rule {
        id: "progress-tokens-are-unique",
        area: Area::Progress,
        requirement: "requests of a server that are open at the same time have different progress tokens",
        sources: &[RequirementSource {
            revisions: revisions::LEGACY,
            level: RequirementLevel::Must,
            source: "basic/utilities/progress#progress-flow",
        }],
        judge: Judge::Each(tokens_are_unique),
        why: "a client reports progress by token, so the server assigns the progress of one request to the other",
        remedy: "use a new token for each request, such as its id",
        ..Rule::DEFAULT
    },
    Rule {
        id: "canceled-request-gets-no-response",
        area: Area::Progress,
        requirement: "a canceled request gets no response",
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
        judge: Judge::Each(canceled_gets_no_response),
        why: "a response long after the cancellation shows that the server kept working, at full cost, on a result that is discarded",
        remedy: "pass the cancellation on to the operations that the handler awaits, and send no response after it",
        sdks: &[("TypeScript", "`extra.signal`"), ("Python", "let `CancelledError` pass"), ("Go", "the handler's `ctx`")],
        ..Rule::DEFAULT
    },
];

/// A progress notification, with its token.
fn progress<'c>(conversation: &'c ConversationView<'_>) -> Vec<(ServerMessage<'c>, &'c Value)> {
    let all = messages(conversation).filter(|server_message| server_message.method() == Some(methods::notifications::PROGRESS));
    all.filter_map(|server_message| Some((server_message, server_message.value.pointer("/params/progressToken")?))).collect()
}

const NO_PROGRESS: &str = "the server sent no progress";

/// The requests that provided a token before this notification.
fn owners<'p>(pairing: &'p Pairing<'_>, server_message: &'p ServerMessage<'_>, token: &'p Value) -> impl Iterator<Item = usize> + 'p {
    let brings = move |index: &usize| {
        let request = &pairing.requests[*index];
        let provided = request.value.pointer("/params/_meta/progressToken");
        request.frame < server_message.frame && provided.is_some_and(|provided| is_same_token(provided, token))
    };
    (0..pairing.requests.len()).filter(brings)
}

/// Whether two tokens are the same value of the same JSON type. A number is the same with a fraction of zero.
fn is_same_token(one: &Value, other: &Value) -> bool {
    one == other || one.as_f64().zip(other.as_f64()).is_some_and(|(one, other)| one.total_cmp(&other).is_eq())
}

/// The request that provided a token, if no other one did: a client that uses a token twice cannot assign its progress.
fn owner(pairing: &Pairing<'_>, server_message: &ServerMessage<'_>, token: &Value) -> Option<usize> {
    let mut owners = owners(pairing, server_message, token);
    owners.next().filter(|_| owners.next().is_none())
}

fn tokens_are_known(conversation: &ConversationView<'_>) -> Judgment {
    let progress = progress(conversation);
    if progress.is_empty() {
        return Judgment::NotApplicable(NO_PROGRESS.into());
    }
    let pairing = Pairing::of(conversation);
    // Such a token is from the client: from another conversation with the same process.
    let is_known = |server_message: &ServerMessage<'_>, token: &Value| {
        is_parallel_token(token) || owners(&pairing, server_message, token).next().is_some()
    };
    let unknown = progress.iter().filter(|(server_message, token)| !is_known(server_message, token));
    let violations = unknown.map(|(server_message, token)| {
        Violation::new(format!("progress has the token {}, which no request provided", shown(token)), [server_message.frame])
    });
    Judgment::from_violations(gathered(violations.collect()))
}

fn progress_grows(conversation: &ConversationView<'_>) -> Judgment {
    let progress = progress(conversation);
    if progress.is_empty() {
        return Judgment::NotApplicable(NO_PROGRESS.into());
    }
    let pairing = Pairing::of(conversation);
    let mut known: Vec<(usize, ServerMessage<'_>, &serde_json::Number)> = Vec::new();
    let mut violations = Vec::new();
    for (server_message, token) in progress {
        let (Some(owner), Some(Value::Number(value))) =
            (owner(&pairing, &server_message, token), server_message.value.pointer("/params/progress"))
        else {
            continue;
        };
        // Messages on two streams may arrive in either order.
        let before = known.iter().rfind(|(of, earlier, _)| *of == owner && earlier.exchange == server_message.exchange);
        if let Some((_, earlier, before)) = before.filter(|(_, _, before)| !is_less(before, value)) {
            let message = format!("the progress of `{}` goes from {before} to {value}", pairing.requests[owner].method());
            violations.push(Violation::new(message, [earlier.frame, server_message.frame]));
        }
        known.push((owner, server_message, value));
    }
    Judgment::of(gathered(violations), known.len(), "no request of the client got progress")
}

/// Whole numbers are compared as such: not all of them are floating-point numbers.
fn is_less(before: &serde_json::Number, after: &serde_json::Number) -> bool {
    match (before.as_i128(), after.as_i128()) {
        (Some(before), Some(after)) => before < after,
        _ => before.as_f64() < after.as_f64(),
    }
}

fn progress_ends(conversation: &ConversationView<'_>) -> Judgment {
    let progress = progress(conversation);
    if progress.is_empty() {
        return Judgment::NotApplicable(NO_PROGRESS.into());
    }
    let pairing = Pairing::of(conversation);
    let mut seen = 0;
    let mut violations = Vec::new();
    for (server_message, token) in progress {
        let Some(owner) = owner(&pairing, &server_message, token) else { continue };
        let Some(answer) = pairing.answer_to(owner) else { continue };
        // A task continues after the response that names it.
        if answer.value.pointer("/result/task").is_some() || answer.value.pointer("/result/taskId").is_some() {
            continue;
        }
        seen += 1;
        if answer.frame < server_message.frame && answer.exchange == server_message.exchange {
            let message = format!("progress of `{}` was sent after its response", pairing.requests[owner].method());
            violations.push(Violation::new(message, [answer.frame, server_message.frame]));
        }
    }
    Judgment::of(gathered(violations), seen, "no request with progress got a response")
}

fn tokens_are_unique(conversation: &ConversationView<'_>) -> Judgment {
    let attempt = messages(conversation).filter(ServerMessage::is_request);
    let attempt = attempt.filter_map(|server_message| Some((server_message, server_message.value.pointer("/params/_meta/progressToken")?)));
    let answers: Vec<(FrameId, &Value)> = conversation
        .from_client()
        .filter(|wire_message| wire_message.is_answer())
        .filter_map(|wire_message| Some((wire_message.frame.id, wire_message.id()?)))
        .collect();
    let (mut seen, mut violations) = (Vec::<(ServerMessage<'_>, &Value)>::new(), Vec::new());
    for (server_message, token) in attempt {
        // A request that got its client response by then, or was canceled, is not open any more.
        let is_open = |earlier: &ServerMessage<'_>| {
            let id = earlier.id;
            let is_cancelled = messages(conversation).any(|wire_message| {
                wire_message.method() == Some(methods::notifications::CANCELLED)
                    && wire_message.value.pointer("/params/requestId") == id
                    && wire_message.frame < server_message.frame
            });
            !is_cancelled && !answers.iter().any(|(frame, of)| Some(*of) == id && earlier.frame < *frame && *frame < server_message.frame)
        };
        if let Some((earlier, _)) = seen.iter().find(|(earlier, known)| *known == token && is_open(earlier)) {
            let message = format!("two open requests of the server have the progress token {}", shown(token));
            violations.push(Violation::new(message, [earlier.frame, server_message.frame]));
        }
        seen.push((server_message, token));
    }
    match seen.is_empty() {
        true => Judgment::NotApplicable("the server requests no progress".into()),
        false => Judgment::from_violations(gathered(violations)),
    }
}

/// A response may have been under way when the cancellation arrived, unless the request is known to take longer. Silence is
/// evidence only after this time.
const RACE: Duration = Duration::from_secs(1);

fn canceled_gets_no_response(conversation: &ConversationView<'_>) -> Judgment {
    let cancelled = conversation.from_client().filter(|wire_message| wire_message.method() == Some(methods::notifications::CANCELLED));
    let pairing = Pairing::of(conversation);
    let mut seen = 0;
    let mut violations = Vec::new();
    // Of requests of a check that were cancelled because their time was up.
    let mut impatient: Vec<(usize, Violation)> = Vec::new();
    for wire_message in cancelled {
        let Some(id) = wire_message.param("/requestId") else { continue };
        let attempt = pairing.requests.iter().position(|request| request.id() == id && request.frame < wire_message.frame.id);
        let Some(request) = attempt else { continue };
        let answers = pairing.replies.iter().find(|reply| matches!(reply.meaning, Meaning::Response { request: of } if of == request));
        let is_in_midst = in_midst(conversation, wire_message.frame.id);
        let race = if is_in_midst { Duration::ZERO } else { RACE };
        // A server that responds to a later request has read the cancellation; it is not just slow to read.
        let has_read = |until| {
            pairing.replies.iter().any(|reply| {
                let of_later =
                    matches!(reply.meaning, Meaning::Response { request: of } if pairing.requests[of].frame > wire_message.frame.id);
                of_later && reply.frame < until
            })
        };
        let late = |frame| conversation.elapsed(wire_message.frame.id, frame).filter(|late| *late > race);
        match answers {
            None => seen += usize::from(pairing.replies.iter().any(|reply| late(reply.frame).is_some())),
            Some(answer) if answer.frame > wire_message.frame.id => {
                seen += 1;
                let was_read = || has_read(answer.frame) || is_in_midst && is_cut_short(conversation, answer.value);
                if let Some(late) = late(answer.frame).filter(|_| was_read()) {
                    let method = pairing.requests[request].method();
                    let message = format!("`{method}` got a response {:.1} s after it was canceled", late.as_secs_f64());
                    let frames = [pairing.requests[request].frame, wire_message.frame.id, answer.frame];
                    let violation = Violation::new(message, frames);
                    match !is_in_midst && conversation.conversation.probes.iter().any(|probed| probed.contains(frames[0])) {
                        true => impatient.push((request, violation)),
                        false => violations.push(violation),
                    }
                }
            }
            Some(_) => {}
        }
    }
    let is_late = !impatient.is_empty();
    violations.extend(repeated(conversation, &pairing, impatient));
    if violations.is_empty() && is_late {
        return Judgment::Untestable("a canceled call was answered late, but not each time: the machine or the server was busy".into());
    }
    Judgment::of(gathered(violations), seen, "no request was canceled while it was under way")
}

/// A call that takes no longer is not slow.
const QUICK: Duration = Duration::from_millis(300);

/// Those of calls that are slow each time, and were answered late more than once. On a busy machine, any call is late now and then; and
/// a call with other arguments is another one: what is refused at once says nothing about the work.
fn repeated(conversation: &ConversationView<'_>, pairing: &Pairing<'_>, late: Vec<(usize, Violation)>) -> Vec<Violation> {
    let subject = |request: usize| {
        let request = &pairing.requests[request];
        (request.method(), request.value.pointer("/params/name"), request.value.pointer("/params/arguments"))
    };
    let took = |request: usize| conversation.elapsed(pairing.requests[request].frame, pairing.answer_to(request)?.frame);
    let is_slow = |one: usize| {
        let same = (0..pairing.requests.len()).filter(|other| subject(*other) == subject(one));
        same.filter_map(took).all(|took| took > QUICK)
    };
    let requests: Vec<usize> = late.iter().map(|(request, _)| *request).collect();
    let is_repeated = |one: usize| requests.iter().filter(|other| subject(**other) == subject(one)).count() > 1;
    late.into_iter().filter(|(request, _)| is_repeated(*request) && is_slow(*request)).map(|(_, violation)| violation).collect()
}

/// Whether a call that is known to return content gets a result without content, or an error: that is a response to its
/// cancellation.
fn is_cut_short(conversation: &ConversationView<'_>, answer: &Value) -> bool {
    let has_content = |result: &Value| {
        let is_error = result.get("isError").is_some_and(|is_error| is_error == true);
        !is_error && result.get("content").and_then(Value::as_array).is_some_and(|content| !content.is_empty())
    };
    let usual = conversation.probes("call-slow").last().map(|attempt| attempt.answer);
    matches!(usual, Some(AttemptOutcome::Result { value, .. }) if has_content(value)) && !answer.get("result").is_some_and(has_content)
}

/// Whether a cancellation came when the same call was far from its end.
fn in_midst(conversation: &ConversationView<'_>, cancellation: FrameId) -> bool {
    let within = |probed: &Probed| probed.contains(cancellation);
    let Some(cancelled) = conversation.probes("cancel").find(|attempt| within(attempt.probed)) else { return false };
    let took = |attempt: Attempt<'_, '_>| conversation.elapsed(attempt.request?.frame.id, attempt.answer.frame()?);
    // It was called before, more than once; of the times that it took, the shortest counts.
    let Some(slow) = conversation.probes("call-slow").last().map(|attempt| attempt.subject().to_owned()) else { return false };
    let usual = conversation.probes("call-slow").filter(|attempt| attempt.subject() == slow).filter_map(took).min();
    let waited = cancelled.request.and_then(|request| conversation.elapsed(request.frame.id, cancellation));
    matches!((usual, waited), (Some(usual), Some(waited)) if waited < usual / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_analysis::example;

    #[test]
    fn a_token_keeps_its_value_and_its_type() {
        let check = |provided: &str, reported: &str, expected: Result<(), &str>| {
            let call = format!(r#"{{"name":"a","_meta":{{"progressToken":{provided}}}}}"#);
            let text = format!(
                r#"> {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{call}}}
                < {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{reported},"progress":1}}}}"#
            );
            let judged = tokens_are_known(&ConversationView::new(&example::read(&text, "stdio", "2025-11-25")));
            let seen = match &judged {
                Judgment::Pass => Ok(()),
                Judgment::Broken(violations) => Err(violations[0].message.clone()),
                other => panic!("{other:?}"),
            };
            assert_eq!(seen, expected.map_err(str::to_owned), "{provided} {reported}");
        };
        check("0", "0", Ok(()));
        check("7", "7.0", Ok(()));
        check(r#""7""#, r#""7""#, Ok(()));
        check("0", r#""0""#, Err(r#"progress has the token "0", which no request provided"#));
        check(r#""7""#, "7", Err("progress has the token 7, which no request provided"));
        // Of another conversation with the same process, and as it was sent.
        check(r#""a""#, "1460000003", Ok(()));
        check(r#""a""#, r#""mcproof-parallel-3-Größe""#, Ok(()));
        let cut = r#"progress has the token "mcproof-parallel-3-gr", which no request provided"#;
        check(r#""mcproof-parallel-3-Größe""#, r#""mcproof-parallel-3-gr""#, Err(cut));
        let text = r#"progress has the token "1460000003", which no request provided"#;
        check("1460000003", r#""1460000003""#, Err(text));
    }
}
