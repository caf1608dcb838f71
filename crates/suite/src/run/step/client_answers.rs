//! Whether the `answers` of a step are those that the server asked for: what no host sends, and a field that no form has, test something
//! else than what is written.

use crate::plan::Step;
use mcproof_analysis::did_you_mean;
use mcproof_analysis::json_schema::Schema;
use mcproof_analysis::messages::sampling_result_flaws;
use mcproof_analysis::wording::shortened;
use mcproof_client::{Answers, Asked, Elicitation};
use mcproof_protocol::methods;
use mcproof_record::Diagnostic;
use serde_json::Value;
use std::collections::BTreeSet;

/// What is wrong with a response that the client gave: values that the form of the server does not allow, or no result of sampling.
pub(super) fn flaw(method: &str, params: &Value, given: &Value) -> Option<String> {
    const MOST: usize = 200;
    match method {
        methods::ELICITATION_CREATE => {
            // A schema that is none is a flaw of the server.
            let schema = Schema::of(params.get("requestedSchema")?).ok()?;
            let content = given.get("content")?;
            let errors = schema.errors(content, 1).ok()?;
            let error = errors.first()?;
            let field = error.instance_path().to_string();
            let place = if field.is_empty() { String::new() } else { format!(", at `{}`", field.trim_start_matches('/')) };
            Some(format!("the answer does not fit the form of the server: {}{place}", shortened(&error.to_string(), MOST)))
        }
        methods::SAMPLING_CREATE_MESSAGE => {
            let flaws = sampling_result_flaws(given);
            Some(format!("the answer is not a result of sampling: {}", flaws.first()?.message))
        }
        _ => None,
    }
}

/// Responses that no host sends.
pub(super) fn invalid(step: &Step, answers: &Answers, asked: &[Asked]) -> Vec<Diagnostic> {
    if answers.validate == Some(false) {
        return Vec::new();
    }
    let flaws: BTreeSet<&str> = asked.iter().filter_map(|asked| asked.flaw.as_deref()).collect();
    let hint = "hosts send no such response; `answers: { …, validate: false }` sends it on purpose";
    let tell = |flaw: &str| Diagnostic::error("invalid-answer", flaw).hint(hint).at(step.place.clone());
    flaws.into_iter().map(tell).collect()
}

/// A value for a field that no form has, where a form has one with almost this name and got no value for it. Answers of a test or of the
/// suite may be for other forms: they are only a warning.
pub(super) fn misspelled(step: &Step, answers: &Answers, asked: &[Asked]) -> Option<Diagnostic> {
    let Some(Elicitation::Accept(values)) = &answers.elicitation else { return None };
    let fields = || asked.iter().flat_map(|asked| &asked.fields).map(String::as_str);
    let unknown = values.keys().filter(|name| !fields().any(|field| field == *name));
    let mut meant = unknown.filter_map(|name| Some((name, did_you_mean(name, fields().filter(|field| !values.contains_key(*field)))?)));
    let (name, near) = meant.next()?;
    let message = format!("the form of the server has no field `{name}`: did you mean `{near}`?");
    let hint = "the value in `answers: { elicitation: … }` was sent, but the server did not ask for it";
    let is_own = step.answers.as_ref().is_some_and(|answers| answers.elicitation.is_some());
    let new = if is_own { Diagnostic::error } else { Diagnostic::warning };
    Some(new("unknown-field", message).hint(hint).at(step.place.clone()))
}

/// Answers of this very step that nothing asked for.
pub(super) fn unused(step: &Step, asked: &[Asked]) -> Vec<Diagnostic> {
    let Some(answers) = &step.answers else { return Vec::new() };
    let written = [
        ("elicitation", answers.elicitation.is_some(), methods::ELICITATION_CREATE),
        ("sampling", answers.sampling.is_some(), methods::SAMPLING_CREATE_MESSAGE),
        ("roots", answers.roots.is_some(), methods::ROOTS_LIST),
    ];
    let unused = written.into_iter().filter(|(_, is_written, method)| *is_written && asked.iter().all(|asked| asked.method != *method));
    let tell = |(name, _, method): (&str, bool, &str)| {
        let message = format!("the answer for `{name}` was not used: the server sent no `{method}` during this step");
        let hint = "remove it, or move it to the `answers` of the test if the server asks only sometimes";
        Diagnostic::warning("unused-client-response", message).hint(hint).at(step.place.clone())
    };
    unused.map(tell).collect()
}
