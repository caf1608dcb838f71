//! What of the `answers` of a step the server did not ask for: a misspelled field tests something else than what is written.

use crate::plan::Step;
use mcproof_analysis::did_you_mean;
use mcproof_client::{Answers, Asked, Elicitation};
use mcproof_protocol::methods;
use mcproof_record::Diagnostic;

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
