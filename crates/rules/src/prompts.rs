//! Prompts, and the completion of arguments.
//! Source: server/prompts, server/utilities/completion.

use super::calls::{error_message, is_refused_as_unknown, quotes_an_argument};
use super::resources::of_listed;
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{Attempt, AttemptOutcome, ConversationView};
use mcproof_analysis::named;
use mcproof_analysis::probes::COMPLETE_TYPED;
use mcproof_protocol::error_code;
use mcproof_record::counted;
use serde_json::Value;

const ERRORS: &[RequirementSource] =
    &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Should, source: "server/prompts#error-handling" }];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "listed-prompt-is-retrievable",
        area: Area::Resources,
        requirement: "a listed prompt that requires no arguments can be retrieved",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Should,
            source: "server/prompts#getting-a-prompt",
        }],
        judge: Judge::Each(listed_is_retrievable),
        why: "hosts offer listed prompts as commands; their users get an error",
        remedy: "return a result from `prompts/get` for each listed name; mark the arguments that it needs as required",
        ..Rule::DEFAULT
    },
    Rule {
        id: "prompt-unknown-is-refused",
        area: Area::Resources,
        requirement: "getting a prompt that does not exist returns an error",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Must, source: "server/prompts#security" }],
        judge: Judge::Each(unknown_is_refused),
        why: "a result, even an empty one, goes to a model as if it were a real prompt",
        remedy: "respond with -32602 to a name that is not listed",
        ..Rule::DEFAULT
    },
    Rule {
        id: "prompt-unknown-code",
        area: Area::Resources,
        requirement: "the error for a prompt that does not exist is -32602",
        sources: ERRORS,
        judge: Judge::Each(unknown_code),
        why: "the code lets a client distinguish a wrong name from a failing server",
        remedy: "respond with -32602 (invalid params)",
        sdks: &[("Python", "the low-level server turns a `ValueError` into code 0; raise an `McpError` with the code")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "prompt-missing-argument-is-refused",
        area: Area::Resources,
        requirement: "getting a prompt without a required argument returns an error",
        sources: ERRORS,
        judge: Judge::Each(missing_argument_is_refused),
        why: "an incomplete prompt goes to a model without anyone noticing",
        remedy: "check that all required arguments are present, and respond with -32602 if not",
        ..Rule::DEFAULT
    },
    Rule {
        id: "prompt-takes-listed-arguments",
        area: Area::Resources,
        requirement: "a prompt accepts a request with all arguments that its entry in the list requires",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Should, source: "" }],
        judge: Judge::Each(listed_arguments_suffice),
        why: "hosts ask their users for the listed arguments, so that nobody can use the prompt",
        remedy: "make the names in `arguments` of `prompts/list` those that `prompts/get` reads",
        ..Rule::DEFAULT
    },
    Rule {
        id: "listed-reference-is-completable",
        area: Area::Resources,
        requirement: "a completion for a listed prompt or template succeeds",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Should, source: "" }],
        judge: Judge::Each(listed_is_completable),
        why: "hosts ask for completions of what is listed, and their users get an error, or no help",
        remedy: "compare the name or the URI template of the reference with the list, and respond with an empty list of values where there is \
                 nothing to complete",
        ..Rule::DEFAULT
    },
    Rule {
        id: "completion-has-at-most-100",
        area: Area::Resources,
        requirement: "a completion has at most 100 values",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Must,
            source: "server/utilities/completion#completion-results",
        }],
        judge: Judge::Each(completion_has_at_most_100),
        why: "clients reject a longer list as invalid, and show no completions",
        remedy: "send the first 100 values, and indicate the others with `total` and `hasMore`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "completion-total-is-consistent",
        area: Area::Resources,
        requirement: "`total` of a completion counts its values, and `hasMore` is true only if there are more than those",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Should,
            source: "server/utilities/completion#completion-results",
        }],
        judge: Judge::Each(completion_total_is_consistent),
        why: "a host shows that there are more values where there are none, or hides that there are",
        remedy: "set `total` to the number of all values that match and `hasMore` to whether some of them are left out, or omit both",
        ..Rule::DEFAULT
    },
    Rule {
        id: "completion-unknown-reference-is-refused",
        area: Area::Resources,
        requirement: "a completion for a prompt that does not exist is refused with error -32602",
        sources: &[RequirementSource {
            revisions: revisions::SINCE_2025_03,
            level: RequirementLevel::Should,
            source: "server/utilities/completion#error-handling",
        }],
        tolerance: Some("most servers return an empty list"),
        judge: Judge::Each(unknown_reference_is_refused),
        why: "a client with a misspelled name sees an empty list instead of an error",
        remedy: "respond with -32602 if the reference names no existing prompt or template",
        ..Rule::DEFAULT
    },
];

fn listed_is_retrievable(conversation: &ConversationView<'_>) -> Judgment {
    if let Some(judgment) = crate::rule_definition::unless_declared(conversation, "prompts") {
        return judgment;
    }
    if let Some(unknown) = conversation.probe("unknown-prompt")
        && let Some(attempt) = conversation.probes("get-prompt-made-up").find(|attempt| is_refused_as_unknown(attempt, &unknown))
    {
        let message = format!("`{}` is in `prompts/list`, but is refused as unknown", attempt.subject());
        return Judgment::Broken(vec![Violation::new(message, attempt.frames())]);
    }
    of_listed(conversation, "get-prompt", "the server lists no prompt without required arguments", |refused, count| {
        let of = if count == 1 { String::new() } else { format!(" of {count} listed prompts") };
        format!("getting {}{of}", named(refused))
    })
}

/// Sentences about prompts that broke inside over arguments that were made up. They may refuse these, whatever the code.
pub(super) fn in_part(conversations: &[ConversationView<'_>]) -> Vec<String> {
    let made_up = conversations.iter().flat_map(|one| one.probes("get-prompt-made-up"));
    let broken = made_up.filter(|attempt| {
        let is_refusal = error_message(attempt).is_some_and(|message| quotes_an_argument(attempt, message));
        attempt.answer.code() == Some(error_code::INTERNAL_ERROR) && !is_refusal
    });
    broken
        .map(|attempt| format!("without the prompt `{}`: with made-up arguments it got {}", attempt.subject(), attempt.answer.describe()))
        .collect()
}

fn unknown_is_refused(conversation: &ConversationView<'_>) -> Judgment {
    if let Some(judgment) = crate::rule_definition::unless_declared(conversation, "prompts") {
        return judgment;
    }
    let Some(attempt) = conversation.probe("unknown-prompt") else { return Judgment::Untestable("no unknown prompt was requested".into()) };
    match attempt.answer {
        AttemptOutcome::Error { .. } => Judgment::Pass,
        AttemptOutcome::Result { .. } => {
            Judgment::Broken(vec![Violation::new("a prompt that does not exist got a result", attempt.frames())])
        }
        answer => Judgment::Untestable(format!("an unknown prompt got {}", answer.describe())),
    }
}

fn unknown_code(conversation: &ConversationView<'_>) -> Judgment {
    if let Some(judgment) = crate::rule_definition::unless_declared(conversation, "prompts") {
        return judgment;
    }
    let Some(attempt) = conversation.probe("unknown-prompt") else { return Judgment::Untestable("no unknown prompt was requested".into()) };
    match attempt.answer.code() {
        Some(error_code::INVALID_PARAMS) => Judgment::Pass,
        // The prompt is not what it refuses, but the method: declared-capability-is-implemented.
        Some(error_code::METHOD_NOT_FOUND) if !conversation.gives_results("prompts/") => {
            Judgment::Untestable("the server does not implement prompts".into())
        }
        Some(code) => {
            Judgment::Broken(vec![Violation::new(format!("a prompt that does not exist got error {code}, not -32602"), attempt.frames())])
        }
        None => Judgment::Untestable(format!("an unknown prompt got {}", attempt.answer.describe())),
    }
}

fn missing_argument_is_refused(conversation: &ConversationView<'_>) -> Judgment {
    if let Some(judgment) = crate::rule_definition::unless_declared(conversation, "prompts") {
        return judgment;
    }
    let attempt: Vec<_> = conversation.probes("prompt-missing-argument").collect();
    if attempt.is_empty() && conversation.handshake().is_some() {
        return Judgment::NotApplicable("no prompt requires an argument".into());
    }
    let answered =
        attempt.iter().filter(|attempt| matches!(attempt.answer, AttemptOutcome::Result { .. } | AttemptOutcome::Error { .. })).count();
    // The server may also request the missing argument.
    let is_complete = |value: &Value| value.get("resultType").and_then(Value::as_str) != Some("input_required");
    let given: Vec<_> =
        attempt.iter().filter(|attempt| matches!(attempt.answer, AttemptOutcome::Result { value, .. } if is_complete(value))).collect();
    let violations = given.first().map(|first| {
        let names: Vec<String> = given.iter().map(|attempt| attempt.subject().to_owned()).collect();
        Violation::new(format!("{} returned a result without the required arguments", named(&names)), first.frames())
    });
    Judgment::of(violations.into_iter().collect(), answered, "no prompt was requested without its arguments")
}

fn listed_arguments_suffice(conversation: &ConversationView<'_>) -> Judgment {
    if let Some(judgment) = crate::rule_definition::unless_declared(conversation, "prompts") {
        return judgment;
    }
    let bare: Vec<_> = conversation.probes("prompt-missing-argument").collect();
    if bare.is_empty() && conversation.handshake().is_some() {
        return Judgment::NotApplicable("no prompt requires an argument".into());
    }
    let given = || ["get-prompt", "get-prompt-made-up"].into_iter().flat_map(|probe| conversation.probes(probe));
    let (mut seen, mut violations) = (0, Vec::new());
    for without in &bare {
        for with in given().filter(|with| with.subject() == without.subject()) {
            seen += usize::from(matches!(with.answer, AttemptOutcome::Result { .. } | AttemptOutcome::Error { .. }));
            // That a value is refused, which is made up, is no flaw. That the same is missing as without any value is one.
            let (Some(lacking), Some(refused)) = (error_of(&without.answer), error_of(&with.answer)) else { continue };
            let told = refused.get("message").and_then(Value::as_str).unwrap_or_default().to_lowercase();
            let is_about_params = with.answer.code() == Some(error_code::INVALID_PARAMS);
            if is_about_params && lacking == refused && ["missing", "required"].iter().any(|word| told.contains(word)) {
                let message = format!(
                    "`{}` got each argument that it lists as required, and the same error as without any: {}",
                    with.subject(),
                    with.answer.describe()
                );
                violations.push(Violation::new(message, without.frames().into_iter().chain(with.frames())));
            }
        }
    }
    Judgment::of(violations, seen, "no prompt was requested with its arguments")
}

fn error_of<'a>(answer: &AttemptOutcome<'a>) -> Option<&'a Value> {
    match answer {
        AttemptOutcome::Error { error, .. } => Some(error),
        _ => None,
    }
}

/// The completion of an argument, with another one that is known.
const WITH_CONTEXT: &str = "complete-with-context";

fn listed_is_completable(conversation: &ConversationView<'_>) -> Judgment {
    if let Some(judgment) = crate::rule_definition::unless_declared(conversation, "completions") {
        return judgment;
    }
    let completed: Vec<_> = ["complete", COMPLETE_TYPED, WITH_CONTEXT].into_iter().flat_map(|probe| conversation.probes(probe)).collect();
    let completes = completed.iter().any(|attempt| matches!(attempt.answer, AttemptOutcome::Result { .. }));
    if completed.is_empty() && conversation.handshake().is_some() {
        return Judgment::NotApplicable("no listed prompt and no listed template has an argument".into());
    }
    let Some(unknown) = conversation.probe("complete-unknown") else {
        return Judgment::Untestable("no completion for an unknown prompt was requested".into());
    };
    let of = |attempt: &Attempt<'_, '_>| {
        let reference = attempt.request?.param("/ref")?;
        ["name", "uri"].into_iter().find_map(|key| reference.get(key)?.as_str()).map(str::to_owned)
    };
    let (mut seen, mut violations) = (0, Vec::new());
    for attempt in &completed {
        seen += usize::from(matches!(attempt.answer, AttemptOutcome::Result { .. } | AttemptOutcome::Error { .. }));
        let (Some(error), Some(model), Some(name)) = (error_of(&attempt.answer), error_of(&unknown.answer), of(attempt)) else { continue };
        // A server that completes nothing is told by another rule.
        let is_about_params = attempt.answer.code() == Some(error_code::INVALID_PARAMS);
        let (refusal, of_unknown) = (error.to_string(), model.to_string());
        let told = attempt.answer.describe();
        let addition = match attempt.probed.probe.as_str() {
            WITH_CONTEXT => Some("with `context`"),
            COMPLETE_TYPED => Some("with the beginning of a value"),
            _ => None,
        };
        let message = if let Some(addition) = addition {
            Some(format!("the completion of `{}` for `{name}` got {told} {addition}, and a result without it", attempt.subject()))
        } else if is_about_params && of_unknown.replace(unknown.subject(), &name) == refusal {
            Some(format!("`{name}` is listed, and its completion is refused like that of an unknown prompt: {told}"))
        } else {
            // One that has nothing to offer for this argument gives an empty list, as it does for the others.
            (is_about_params && completes)
                .then(|| format!("`{name}` is listed, and the completion of `{}` for it got {told}", attempt.subject()))
        };
        if let Some(message) = message {
            violations.push(Violation::new(message, attempt.frames().into_iter().chain(unknown.frames())));
        }
    }
    violations.dedup_by(|later, first| later.message == first.message);
    let has_failed = |attempt: &&&Attempt<'_, '_>| attempt.answer.code() == Some(error_code::INTERNAL_ERROR);
    let plain: Vec<&Attempt<'_, '_>> = completed.iter().filter(|attempt| attempt.probed.probe == "complete").collect();
    let failed: Vec<&Attempt<'_, '_>> = plain.iter().filter(has_failed).copied().collect();
    if let Some(first) = failed.first() {
        let mut names: Vec<String> = failed.iter().filter_map(|attempt| of(attempt)).collect();
        names.dedup();
        let what = match failed.len() == plain.len() {
            // It declares completions, and fails at each of them.
            true => "each completion of what is listed".to_owned(),
            false => format!("the completion of `{}` for the listed {}", first.subject(), named(&names)),
        };
        violations.push(Violation::new(format!("{what} got {}", first.answer.describe()), first.frames()));
    }
    Judgment::of(violations, seen, "no completion got a response")
}

/// The first of several, with how many others there are: one function answers for all arguments.
fn as_one(mut violations: Vec<Violation>) -> Vec<Violation> {
    let more = violations.len().saturating_sub(1);
    violations.truncate(1);
    if let (Some(first), true) = (violations.first_mut(), more > 0) {
        first.message += &format!(", and {more} more like it");
    }
    violations
}

/// The maximum number of values.
const MOST_VALUES: usize = 100;

fn completion_has_at_most_100(conversation: &ConversationView<'_>) -> Judgment {
    let (mut seen, mut violations) = (0, Vec::new());
    for attempt in conversation.probes("complete").chain(conversation.probes(COMPLETE_TYPED)) {
        let AttemptOutcome::Result { value, .. } = attempt.answer else { continue };
        let Some(values) = value.pointer("/completion/values").and_then(Value::as_array) else { continue };
        seen += 1;
        if values.len() > MOST_VALUES {
            violations
                .push(Violation::new(format!("the completion of `{}` has {} values", attempt.subject(), values.len()), attempt.frames()));
        }
    }
    match (seen, crate::rule_definition::unless_declared(conversation, "completions")) {
        (0, Some(judgment)) => judgment,
        _ => Judgment::of(as_one(violations), seen, "no completion got a result"),
    }
}

fn completion_total_is_consistent(conversation: &ConversationView<'_>) -> Judgment {
    let (mut answered, mut seen, mut violations) = (0, 0, Vec::new());
    for attempt in conversation.probes("complete").chain(conversation.probes(COMPLETE_TYPED)) {
        let AttemptOutcome::Result { value, .. } = attempt.answer else { continue };
        answered += 1;
        let member = |name: &str| value.get("completion").and_then(|completion| completion.get(name));
        let Some(count) = member("values").and_then(Value::as_array).map(Vec::len) else { continue };
        let Some(total) = member("total").and_then(Value::as_u64) else { continue };
        seen += 1;
        let count = count as u64;
        let flaw = match member("hasMore").and_then(Value::as_bool) {
            _ if total < count => format!("{}, but a `total` of {total}", counted(count, "value")),
            Some(false) if total > count => format!("{count} of {total} values, but `hasMore` is false"),
            Some(true) if total == count => format!("all {}, but `hasMore` is true", counted(total, "value")),
            _ => continue,
        };
        violations.push(Violation::new(format!("the completion of `{}` has {flaw}", attempt.subject()), attempt.frames()));
    }
    match (answered, seen, crate::rule_definition::unless_declared(conversation, "completions")) {
        (0, _, Some(judgment)) => judgment,
        (1.., 0, _) => Judgment::NotApplicable("no completion has a `total`".into()),
        _ => Judgment::of(as_one(violations), seen, "no completion got a result"),
    }
}

fn unknown_reference_is_refused(conversation: &ConversationView<'_>) -> Judgment {
    if let Some(judgment) = crate::rule_definition::unless_declared(conversation, "completions") {
        return judgment;
    }
    let Some(attempt) = conversation.probe("complete-unknown") else {
        return Judgment::Untestable("no completion for an unknown prompt was requested".into());
    };
    match attempt.answer {
        AttemptOutcome::Error { .. } => Judgment::Pass,
        AttemptOutcome::Result { .. } => {
            Judgment::Broken(vec![Violation::new("a completion for a prompt that does not exist got a result", attempt.frames())])
        }
        answer => Judgment::Untestable(format!("a completion for an unknown prompt got {}", answer.describe())),
    }
}
