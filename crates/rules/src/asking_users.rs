//! What a server asks of the user and of the model: forms, pages, samples; in a request of its own, or in a result with `input_required`.
//! Source: client/elicitation and client/sampling.

use super::answers::{ServerMessage, gathered, messages};
use super::calls::texts;
use super::lifecycle::of_what_was_never_said;
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{Attempt, AttemptOutcome, ConversationView, WireMessage};
use mcproof_analysis::named;
use mcproof_analysis::probes::{
    CALL_AS_CANCELING_HOST, CALL_AS_HOST, CALL_WITH_CANCEL, CALL_WITH_INPUT, INPUT_ROUNDS, LOST_REQUEST, SAME_QUESTIONS,
};
use mcproof_analysis::wording::excerpt;
use mcproof_protocol::error_code::INTERNAL_ERROR;
use mcproof_protocol::{Revision, methods};
use mcproof_record::FrameId;
use regex::Regex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use url::Url;

const SECRETS: &[RequirementSource] = &[
    RequirementSource {
        revisions: Revision::V2025_06_18..=Revision::V2025_06_18,
        level: RequirementLevel::Must,
        source: "client/elicitation#security-considerations",
    },
    RequirementSource {
        revisions: revisions::SINCE_2025_11,
        level: RequirementLevel::Must,
        source: "client/elicitation#form-mode-security",
    },
];
/// "Servers should handle each state appropriately"; before there were forms, what a model says has to end a call as well.
const CLIENT_RESPONSES: &[RequirementSource] = &[
    RequirementSource { revisions: Revision::V2024_11_05..=Revision::V2025_03_26, level: RequirementLevel::Should, source: "" },
    RequirementSource {
        revisions: Revision::V2025_06_18..=Revision::V2025_11_25,
        level: RequirementLevel::Should,
        source: "client/elicitation#response-actions",
    },
];
const fn since_2025_11(keyword: RequirementLevel, source: &'static str) -> RequirementSource {
    RequirementSource { revisions: revisions::SINCE_2025_11, level: keyword, source }
}

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "form-requests-no-secrets",
        area: Area::Security,
        requirement: "a form requests no passwords, keys, tokens or card numbers",
        sources: SECRETS,
        judge: Judge::Each(forms_ask_no_secrets),
        why: "form input passes through the client, its logs and often the model",
        remedy: "use URL mode, so the user enters it on your own page, which the client does not see",
        ..Rule::DEFAULT
    },
    Rule {
        id: "form-has-no-links",
        area: Area::Security,
        requirement: "the texts of a form contain no URLs",
        sources: &[since_2025_11(RequirementLevel::Should, "client/elicitation#safe-url-handling")],
        judge: Judge::Each(forms_have_no_links),
        why: "a link in a form takes users to a page without the consent that URL mode requires",
        remedy: "use URL mode, with the address in `url`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "elicitation-url-is-https",
        area: Area::Security,
        requirement: "a URL that a user is sent to is HTTPS",
        sources: &[since_2025_11(RequirementLevel::Should, "client/elicitation#safe-url-handling")],
        judge: Judge::Each(pages_are_https),
        why: "anyone on the network path can read what the user enters on a page without TLS",
        remedy: "serve the page over HTTPS, and send its `https://` address; plain HTTP is acceptable only on loopback",
        ..Rule::DEFAULT
    },
    Rule {
        id: "elicitation-complete-has-known-id",
        area: Area::Calls,
        requirement: "a `notifications/elicitation/complete` has the `elicitationId` with which the server sent the user to a page",
        sources: &[RequirementSource {
            revisions: Revision::V2025_11_25..=Revision::V2025_11_25,
            level: RequirementLevel::Must,
            source: "client/elicitation#completion-notifications-for-url-mode-elicitation",
        }],
        judge: Judge::Together(completions_name_elicitations),
        why: "clients ignore an id that they do not know, so that a call which waits for the user is never retried",
        remedy: "keep the `elicitationId` of the request, or of error -32042, and send the same one when the user is done",
        ..Rule::DEFAULT
    },
    Rule {
        id: "input-response-is-processed",
        area: Area::Calls,
        requirement: "a call that is retried with the input that it required ends, also if the user declines: it neither gets an internal \
                      error nor requires input endlessly",
        sources: &[RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Should, source: "" }],
        judge: Judge::Each(input_is_processed),
        why: "a client retries with each response of its user, who is asked the same question endlessly, or whose response is lost",
        remedy: "respond to the retry with a result; if the user has declined, with one that says what was not done",
        ..Rule::DEFAULT
    },
    Rule {
        id: "client-response-is-processed",
        area: Area::Calls,
        requirement: "a call that asks the user or the model ends, also if the user declines: it neither breaks nor asks endlessly",
        sources: CLIENT_RESPONSES,
        judge: Judge::Each(client_responses_are_processed),
        why: "users decline, and then see an error of the program, or cannot leave the dialog",
        remedy: "look at `action` before `content`, which only `accept` has; if the user has declined, end with a result that says what \
                 was not done",
        ..Rule::DEFAULT
    },
    Rule {
        id: "sampling-context-is-declared",
        area: Area::Capabilities,
        requirement: "a server requests the context of servers only if the client has declared `sampling.context`",
        sources: &[since_2025_11(RequirementLevel::Should, "client/sampling#capabilities")],
        judge: Judge::Each(sampling_context_is_declared),
        why: "`thisServer` and `allServers` are deprecated: most clients ignore them, so the model lacks the context",
        remedy: "leave out `includeContext`, and put the context into the messages",
        ..Rule::DEFAULT
    },
];

/// Elicitations may be completed in another conversation than the one in which they began.
fn completions_name_elicitations(all: &[&ConversationView<'_>]) -> Judgment {
    let known: BTreeSet<&str> = all.iter().flat_map(|conversation| conversation.from_server()).flat_map(elicitation_ids).collect();
    let (mut seen, mut violations) = (0, Vec::new());
    for (position, conversation) in all.iter().enumerate() {
        let is_completion = |message: &&WireMessage<'_>| {
            message.is_notification() && message.method() == Some(methods::notifications::ELICITATION_COMPLETE)
        };
        let mut unknown = Vec::new();
        for message in conversation.from_server().filter(is_completion) {
            seen += 1;
            // One without an id is told by its shape.
            if let Some(id) = message.param("/elicitationId").and_then(Value::as_str).filter(|id| !known.contains(id)) {
                let told = format!("an elicitation with the id `{}` is said to be complete, and none began with it", excerpt(id));
                unknown.push(Violation { conversation: position, ..Violation::new(told, [message.frame.id]) });
            }
        }
        violations.extend(gathered(unknown));
    }
    match seen {
        0 => Judgment::NotApplicable("the server completed no elicitation".into()),
        _ => of_what_was_never_said(all, violations),
    }
}

/// The ids of elicitations that a message begins: in a request, or in an error that requires them.
fn elicitation_ids<'m>(message: &'m WireMessage<'_>) -> impl Iterator<Item = &'m str> {
    let requested = message.param("/elicitationId").filter(|_| message.method() == Some(methods::ELICITATION_CREATE));
    let required = message.value.pointer("/error/data/elicitations").and_then(Value::as_array).into_iter().flatten();
    requested.into_iter().chain(required.filter_map(|required| required.get("elicitationId"))).filter_map(Value::as_str)
}

fn input_is_processed(conversation: &ConversationView<'_>) -> Judgment {
    let retries: Vec<Attempt<'_, '_>> = conversation.probes(CALL_WITH_INPUT).collect();
    let (mut seen, mut violations) = (0, Vec::new());
    for (position, retry) in retries.iter().enumerate() {
        let requires_more =
            matches!(retry.answer, AttemptOutcome::Result { value, .. } if value.get("resultType") == Some(&Value::from("input_required")));
        seen += usize::from(retry.answer.frame().is_some());
        let rounds = retries[..=position].iter().filter(|earlier| earlier.subject() == retry.subject()).count();
        let flaw = match retry.answer.code() {
            Some(INTERNAL_ERROR) => format!("requires input, and a retry in which the user declines got error {INTERNAL_ERROR}"),
            _ if requires_more && rounds == INPUT_ROUNDS => {
                format!("still requires input after {rounds} retries in which the user declined")
            }
            _ => continue,
        };
        violations.push(Violation::new(format!("`{}` {flaw}", retry.subject()), retry.frames()));
    }
    for canceled in conversation.probes(CALL_WITH_CANCEL).filter(|retry| retry.answer.code() == Some(INTERNAL_ERROR)) {
        let message = format!("`{}` requires input, and a retry in which the user canceled got error {INTERNAL_ERROR}", canceled.subject());
        violations.push(Violation::new(message, canceled.frames()));
    }
    let declines = |given: &Value| matches!(given["action"].as_str(), Some("decline" | "cancel"));
    let is_retry = |call: &Attempt<'_, '_>| {
        let given = call.request.and_then(|request| request.param("/inputResponses"));
        given.and_then(Value::as_object).is_some_and(|given| given.values().any(declines))
    };
    let is_lost = |call: &Attempt<'_, '_>| call.request.is_some_and(|request| conversation.answer_to(request).is_none());
    for lost in conversation.probes(LOST_REQUEST).filter(|call| is_retry(call) && is_lost(call)) {
        let message = format!("`{}` requires input, and a retry in which the user gave none got no response", lost.subject());
        violations.push(Violation::new(message, lost.frames()));
    }
    if retries.is_empty() && conversation.handshake().is_some() {
        return Judgment::NotApplicable("no call required input".into());
    }
    Judgment::of(violations, seen, "no call with the input that it required got a response")
}

/// Something that was asked in the midst of calls, in a request of its own.
struct AskedInCall<'c> {
    value: &'c Value,
    frame: FrameId,
    /// The response of the client, and its frame.
    response: Option<(&'c Value, FrameId)>,
    /// The calls that it may belong to, by position: the one on whose stream it came, else all that were under way.
    callers: Vec<usize>,
}

impl<'c> AskedInCall<'c> {
    /// Else it is for the model.
    fn is_for_user(&self) -> bool {
        self.value.get("method").and_then(Value::as_str) == Some(methods::ELICITATION_CREATE)
    }

    fn is_declined(&self) -> bool {
        let action = self.response.and_then(|(response, _)| response.pointer("/result/action")?.as_str());
        matches!(action, Some("decline" | "cancel"))
    }

    /// What is the same where the same is asked again: the form, whatever its message counts, or the messages to the model.
    fn what(&self) -> &'c Value {
        let pointer = if self.is_for_user() { "/params/requestedSchema" } else { "/params/messages" };
        self.value.pointer(pointer).unwrap_or(&Value::Null)
    }
}

fn asked_in_calls<'c>(conversation: &'c ConversationView<'_>, calls: &[Attempt<'_, '_>]) -> Vec<AskedInCall<'c>> {
    let is_question = |message: &ServerMessage<'_>| {
        message.is_request() && matches!(message.method(), Some(methods::ELICITATION_CREATE | methods::SAMPLING_CREATE_MESSAGE))
    };
    let asked = messages(conversation).filter(is_question).map(|message| {
        let is_own =
            |call: &Attempt<'_, '_>| message.exchange.is_some() && call.request.is_some_and(|request| request.exchange == message.exchange);
        let is_under_way = |call: &Attempt<'_, '_>| {
            let request = call.request.filter(|request| request.frame.id < message.frame);
            request.is_some_and(|request| {
                let canceled = request.id().and_then(|id| conversation.cancellation_of(id));
                let end = conversation.answer_to(request).or(canceled);
                end.is_none_or(|end| end.frame.id > message.frame)
            })
        };
        let callers = match calls.iter().position(is_own) {
            Some(own) => vec![own],
            None => (0..calls.len()).filter(|index| is_under_way(&calls[*index])).collect(),
        };
        let mut later = conversation.from_client().filter(|answer| answer.is_answer() && answer.frame.id > message.frame);
        let answer = later.find(|answer| answer.id() == message.id);
        let response = answer.map(|answer| (&*answer.value, answer.frame.id));
        AskedInCall { value: message.value, frame: message.frame, response, callers }
    });
    asked.filter(|asked| !asked.callers.is_empty()).collect()
}

fn client_responses_are_processed(conversation: &ConversationView<'_>) -> Judgment {
    let calls = [CALL_AS_HOST, CALL_AS_CANCELING_HOST].into_iter().flat_map(|probe| conversation.probes(probe));
    let calls: Vec<Attempt<'_, '_>> = calls.collect();
    let asked = asked_in_calls(conversation, &calls);
    if asked.is_empty() && conversation.handshake().is_some() {
        return Judgment::NotApplicable("no call asked the user or the model".into());
    }
    let is_answered = |caller: &usize| calls[*caller].request.is_some_and(|request| conversation.answer_to(request).is_some());
    let mut violations = broken_after_decline(&calls, &asked);
    violations.extend(lost_after_responses(conversation));
    let of_silent = asked.iter().filter(|asked| !asked.callers.iter().all(is_answered));
    violations.extend(endless_questions(&calls, of_silent, is_answered));
    let is_sound = |caller: &usize| is_answered(caller) && breakage(&calls[*caller]).is_none();
    let seen = asked.iter().filter(|asked| asked.response.is_some() && asked.callers.iter().all(is_sound)).count();
    Judgment::of(violations, seen, "no call that asks the user or the model got a response")
}

/// Calls that broke after a form of theirs was declined, each tool once. Where several calls were under way, none is named.
fn broken_after_decline(calls: &[Attempt<'_, '_>], asked: &[AskedInCall<'_>]) -> Vec<Violation> {
    let mut tools = BTreeSet::new();
    let broken = calls.iter().enumerate().filter_map(|(index, call)| {
        let declined = asked.iter().rfind(|asked| asked.callers == [index] && asked.is_for_user() && asked.is_declined())?;
        let message = format!("after the user declined, `{}` got {}", call.subject(), breakage(call)?);
        if !tools.insert(call.subject()) {
            return None;
        }
        let mut frames = call.frames();
        frames.extend([Some(declined.frame), declined.response.map(|(_, frame)| frame)].into_iter().flatten());
        frames.sort_unstable();
        Some(Violation::new(message, frames))
    });
    broken.collect()
}

/// Calls that asked for something, and got no response after the client had given it, each time.
fn lost_after_responses(conversation: &ConversationView<'_>) -> Vec<Violation> {
    let calls: Vec<Attempt<'_, '_>> = conversation.probes(LOST_REQUEST).collect();
    let asked = asked_in_calls(conversation, &calls);
    let lost = calls.iter().enumerate().filter_map(|(index, call)| {
        let is_lost = call.request.is_some_and(|request| conversation.answer_to(request).is_none());
        // With what the user or the model gave, a tool may work as long as it likes; without, nothing is left to do.
        let declined =
            asked.iter().rfind(|asked| asked.callers == [index]).filter(|last| is_lost && last.is_for_user() && last.is_declined());
        let last = declined?;
        let (_, response) = last.response?;
        let message = format!("after the user declined, `{}` got no response", call.subject());
        let mut frames = call.frames();
        frames.extend([last.frame, response]);
        frames.sort_unstable();
        Some(Violation::new(message, frames))
    });
    lost.collect()
}

/// What runtimes say, in lower case, where the content is read that a form has only if it is accepted.
const WITHOUT_CONTENT: [&str; 9] = [
    "cannot read propert",
    "undefined (reading",
    "undefined is not an object",
    "null is not an object",
    "'nonetype' object",
    "object has no attribute",
    "keyerror",
    "nullpointerexception",
    "nil pointer dereference",
];

/// How a call ended that broke inside.
fn breakage(call: &Attempt<'_, '_>) -> Option<String> {
    if call.answer.code() == Some(INTERNAL_ERROR) {
        return Some(format!("error {INTERNAL_ERROR}"));
    }
    let AttemptOutcome::Result { value, .. } = call.answer else { return None };
    let text = if call.answer.is_refusal() { texts(value) } else { String::new() };
    let lower = text.to_lowercase();
    WITHOUT_CONTENT.iter().any(|words| lower.contains(words)).then(|| format!("\"{}\"", excerpt(&text)))
}

/// What calls that got no response asked for again and again, although there was a response each time.
fn endless_questions<'q, 'c: 'q>(
    calls: &[Attempt<'_, '_>],
    asked: impl Iterator<Item = &'q AskedInCall<'c>>,
    is_answered: impl Fn(&usize) -> bool,
) -> Vec<Violation> {
    let mut same: BTreeMap<(bool, String), Vec<&AskedInCall<'_>>> = BTreeMap::new();
    let is_done = |asked: &&AskedInCall<'_>| asked.response.is_some() && (asked.is_declined() || !asked.is_for_user());
    for asked in asked.filter(is_done) {
        same.entry((asked.is_for_user(), asked.what().to_string())).or_default().push(asked);
    }
    // Each call that was under way may have asked as often.
    let is_endless = |asked: &[&AskedInCall<'_>]| {
        asked.len() >= SAME_QUESTIONS * asked.iter().map(|asked| asked.callers.len()).max().unwrap_or_default().max(1)
    };
    let endless = same.into_iter().filter(|(_, asked)| is_endless(asked)).filter_map(|((is_for_user, _), asked)| {
        // Others were under way at first.
        let callers: Vec<&Attempt<'_, '_>> =
            asked.last()?.callers.iter().filter(|caller| !is_answered(caller)).map(|caller| &calls[*caller]).collect();
        let names: BTreeSet<String> = callers.iter().map(|call| call.subject().to_owned()).collect();
        let who = if names.len() == 1 { "" } else { "one of " };
        let names = named(&names.into_iter().collect::<Vec<_>>());
        let what = match is_for_user {
            true => format!("asks the user for the same again after {SAME_QUESTIONS} declines"),
            false => format!("asks the model for the same again after {SAME_QUESTIONS} responses"),
        };
        let requests = callers.iter().filter_map(|call| call.request).map(|request| request.frame.id);
        let mut frames: Vec<FrameId> = requests.chain(asked.iter().take(SAME_QUESTIONS).map(|asked| asked.frame)).collect();
        frames.sort_unstable();
        Some(Violation::new(format!("{who}{names} {what}, and gets no response"), frames))
    });
    endless.collect()
}

/// Something that was asked of the client, with what the client had declared.
pub(super) struct Question<'c> {
    method: &'c str,
    pub(super) params: &'c Value,
    capabilities: &'c Value,
    frame: FrameId,
}

/// Requests of the server, those inside of results, and the pages that an error sends the user to.
pub(super) fn questions<'c>(conversation: &'c ConversationView<'_>) -> Vec<Question<'c>> {
    let mut all = Vec::new();
    for server_message in messages(conversation) {
        let inside = server_message.value.pointer("/result/inputRequests").and_then(Value::as_object);
        let inside = inside.into_iter().flat_map(|requests| requests.values());
        for request in inside.chain(server_message.value.get("id").map(|_| server_message.value)) {
            let (Some(method), Some(params)) = (request.get("method").and_then(Value::as_str), request.get("params")) else { continue };
            all.push(Question {
                method,
                params,
                capabilities: declared_before(conversation, server_message.frame),
                frame: server_message.frame,
            });
        }
        let required = server_message.value.get("error").filter(|error| error["code"] == URL_ELICITATION_REQUIRED);
        for params in required.and_then(|error| error.pointer("/data/elicitations")?.as_array()).into_iter().flatten() {
            let capabilities = declared_before(conversation, server_message.frame);
            all.push(Question { method: methods::ELICITATION_CREATE, params, capabilities, frame: server_message.frame });
        }
    }
    all
}

/// What the client declared last: in the handshake, or with a request.
fn declared_before<'c>(conversation: &'c ConversationView<'_>, frame: FrameId) -> &'c Value {
    let declared = |value: &'c Value| {
        value
            .pointer("/params/capabilities")
            .or_else(|| value.get("params")?.get("_meta")?.get("io.modelcontextprotocol/clientCapabilities"))
    };
    let before = conversation.from_client().filter(|wire_message| wire_message.frame.id < frame);
    before.filter_map(|wire_message| declared(&wire_message.value)).next_back().unwrap_or(&Value::Null)
}

pub(super) fn judged(questions: &[Question<'_>], kind: &str, wrong: impl Fn(&Question<'_>) -> Option<String>) -> Judgment {
    let attempt: Vec<_> = questions.iter().filter(|question| question.method == kind).collect();
    let violations: Vec<Violation> =
        attempt.iter().filter_map(|question| Some(Violation::new(wrong(question)?, [question.frame]))).take(1).collect();
    match attempt.len() {
        0 => Judgment::NotApplicable("the server sent no such request".into()),
        seen => Judgment::of(violations, seen, ""),
    }
}

/// Of 2025-11-25 only.
const URL_ELICITATION_REQUIRED: i64 = -32042;
pub(super) const SAMPLING: &str = methods::SAMPLING_CREATE_MESSAGE;

fn is_form(question: &Question<'_>) -> bool {
    question.params.get("mode").and_then(Value::as_str) != Some("url")
}

/// Whole names of fields, so that `maxTokens` is none.
static SECRET_NAMES: LazyLock<Regex> = LazyLock::new(|| {
    let names = r"(?i)^(?:[a-z]+[ _-]?)?(?:password|passwd|passphrase|api[ _-]?key|access[ _-]?token|refresh[ _-]?token|auth[ _-]?token|bearer[ _-]?token|client[ _-]?secret|secret[ _-]?key|private[ _-]?key|credit[ _-]?card(?:[ _-]?number)?|card[ _-]?number|cvv|cvc)$";
    Regex::new(names).expect("patterns of the program are valid")
});

/// Whether a field of that name or title takes a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    SECRET_NAMES.is_match(name.trim())
}

fn fields<'c>(question: &Question<'c>) -> impl Iterator<Item = (&'c String, &'c Value)> {
    let properties = question.params.pointer("/requestedSchema/properties").and_then(Value::as_object);
    properties.into_iter().flatten()
}

fn forms_ask_no_secrets(conversation: &ConversationView<'_>) -> Judgment {
    judged(&questions(conversation), methods::ELICITATION_CREATE, |question| {
        let is_secret = |(name, field): &(&String, &Value)| {
            is_secret_name(name) || field.get("title").and_then(Value::as_str).is_some_and(is_secret_name)
        };
        let (name, _) = fields(question).filter(|_| is_form(question)).find(is_secret)?;
        Some(format!("a form requests `{}`", excerpt(name)))
    })
}

fn forms_have_no_links(conversation: &ConversationView<'_>) -> Judgment {
    judged(&questions(conversation), methods::ELICITATION_CREATE, |question| {
        let message = question.params.get("message");
        let of_fields = fields(question).flat_map(|(_, field)| ["title", "description"].map(|key| field.get(key)));
        let texts = [message].into_iter().chain(of_fields).flatten().filter_map(Value::as_str);
        let linked = texts.filter(|_| is_form(question)).find(|text| text.contains("https://") || text.contains("http://"))?;
        Some(format!("a form contains `{}`", excerpt(linked)))
    })
}

fn pages_are_https(conversation: &ConversationView<'_>) -> Judgment {
    judged(&questions(conversation), methods::ELICITATION_CREATE, |question| {
        let url = Url::parse(question.params.get("url").filter(|_| !is_form(question))?.as_str()?).ok()?;
        let is_local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        (url.scheme() == "http" && !is_local).then(|| format!("the user is sent to {}", excerpt(url.as_str())))
    })
}

fn sampling_context_is_declared(conversation: &ConversationView<'_>) -> Judgment {
    judged(&questions(conversation), SAMPLING, |question| {
        let context = question.params.get("includeContext")?.as_str().filter(|context| *context != "none")?;
        let is_declared = question.capabilities.pointer("/sampling/context").is_some();
        (!is_declared).then(|| format!("`includeContext` is `{}`, and the client did not declare `sampling.context`", excerpt(context)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::{ConversationView, Strictness, example, find, judge_one};
    use super::is_secret_name;
    use mcproof_record::Judged;

    #[test]
    fn a_call_that_asks_ends_whatever_the_user_says() {
        let handshake = r#"> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}
            < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}"#;
        let rule = find("client-response-is-processed").unwrap();
        let check = |text: &str, expected: Result<&str, &str>| {
            let take = example::read(&format!("{handshake}\n{text}"), "stdio", "2025-11-25");
            let judged = judge_one(rule, &[ConversationView::new(&take)], Strictness::Tolerant).judged;
            let seen = match &judged {
                Judged::Pass => Ok("pass"),
                Judged::Untestable { .. } => Ok("untestable"),
                Judged::NotApplicable { .. } => Ok("not applicable"),
                Judged::Broken { findings } => Err(findings[0].message.as_str()),
            };
            assert_eq!(seen, expected, "{text}");
        };
        let call = |id: u32, tool: &str| {
            let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#);
            format!("@ call-as-host {tool}\n> {request}\n")
        };
        let asked = |id: u32, method: &str, params: &str, result: &str| {
            let question = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
            format!("< {question}\n> {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n")
        };
        let declined = |id: u32| {
            let form = format!(r#"{{"message":"try {id}","requestedSchema":{{"type":"object","properties":{{}}}}}}"#);
            asked(id, "elicitation/create", &form, r#"{"action":"decline"}"#)
        };
        let internal = |id: u32| format!("< {{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32603,\"message\":\"no\"}}}}\n");
        let done = |id: u32| format!("< {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[]}}}}\n");

        check(&(call(2, "book") + &done(2)), Ok("not applicable"));
        check(&(call(2, "book") + &declined(70) + &done(2)), Ok("pass"));
        check(&(call(2, "book") + &declined(70) + &internal(2)), Err("after the user declined, `book` got error -32603"));
        check(&(call(2, "book") + &internal(2) + &call(3, "pay") + &declined(70) + &done(3)), Ok("pass"));
        // Which of two calls asked is not known until one of them is made alone.
        let both = call(2, "book") + &call(3, "pay") + &declined(70) + &done(3) + &internal(2);
        check(&both, Ok("untestable"));
        let alone = both + &call(4, "book") + &declined(71) + &internal(4);
        check(&alone, Err("after the user declined, `book` got error -32603"));

        let times = |many: u32, one: &dyn Fn(u32) -> String| (70..70 + many).map(one).collect::<String>();
        let endless = "`book` asks the user for the same again after 4 declines, and gets no response";
        check(&(call(2, "book") + &times(9, &declined)), Err(endless));
        check(&(call(2, "book") + &times(3, &declined)), Ok("untestable"));
        check(&(call(2, "book") + &times(9, &declined) + &done(2)), Ok("pass"));
        check(&(call(2, "book") + &call(3, "pay") + &times(3, &declined) + &done(3) + &times(5, &|id| declined(id + 10))), Err(endless));
        let one_of = "one of `book` and `pay` asks the user for the same again after 4 declines, and gets no response";
        check(&(call(2, "book") + &call(3, "pay") + &times(9, &declined)), Err(one_of));
        let sampled = |id: u32| asked(id, "sampling/createMessage", r#"{"messages":[{"role":"user"}]}"#, r#"{"role":"assistant"}"#);
        let endless = "`book` asks the model for the same again after 4 responses, and gets no response";
        check(&(call(2, "book") + &times(9, &sampled)), Err(endless));
        let grows = |id: u32| asked(id, "sampling/createMessage", &format!(r#"{{"messages":[{id}]}}"#), r#"{"role":"assistant"}"#);
        check(&(call(2, "book") + &times(9, &grows)), Ok("untestable"));
    }

    #[test]
    fn an_elicitation_may_have_begun_in_what_was_not_kept() {
        let text = r#"> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}
            < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
            < {"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"a"}}"#;
        let rule = find("elicitation-complete-has-known-id").unwrap();
        let mut take = example::read(text, "stdio", "2025-11-25");
        let judged = judge_one(rule, &[ConversationView::new(&take)], Strictness::Tolerant).judged;
        assert!(matches!(judged, Judged::Broken { .. }), "{judged:?}");
        take.transcript.dropped = 1;
        let judged = judge_one(rule, &[ConversationView::new(&take)], Strictness::Tolerant).judged;
        assert!(matches!(judged, Judged::Untestable { .. }), "{judged:?}");
    }

    #[test]
    fn names_of_secrets_are_told_from_others() {
        for secret in ["password", "Password", "new_password", "apiKey", "API key", "openai_api_key", "access_token", "cardNumber", "cvv"] {
            assert!(is_secret_name(secret), "{secret}");
        }
        for plain in ["name", "maxTokens", "token", "passwordless", "key", "apiKeyName", "tokens", "passport", "secretary"] {
            assert!(!is_secret_name(plain), "{plain}");
        }
    }
}
