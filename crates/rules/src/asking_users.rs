//! What a server asks of the user and of the model: forms, pages, samples; in a request of its own, or in a result with `input_required`.
//! Source: client/elicitation and client/sampling.

use super::answers::messages;
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{Attempt, AttemptOutcome, ConversationView};
use mcproof_analysis::probes::{CALL_WITH_INPUT, INPUT_ROUNDS};
use mcproof_analysis::wording::excerpt;
use mcproof_protocol::error_code::INTERNAL_ERROR;
use mcproof_protocol::{Revision, methods};
use mcproof_record::FrameId;
use regex::Regex;
use serde_json::Value;
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
    if retries.is_empty() && conversation.handshake().is_some() {
        return Judgment::NotApplicable("no call required input".into());
    }
    Judgment::of(violations, seen, "no call with the input that it required got a response")
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
    use super::is_secret_name;

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
