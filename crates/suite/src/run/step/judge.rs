//! Holds a response against the expectations of its step. No I/O.

use super::act::{Answer, ErrorResponse, show};
use crate::judge::{Numbers, Origin, Payload, has_large_number, large_number, mismatch, pretty};
use crate::plan::{Action, Expectations, ExpectedFailure, RetryCause, Spanned, Step};
use mcproof_record::Diagnostic;
use serde_json::{Map, Value};

pub(super) fn judge(step: &Step, answer: &Answer, scope: &Map<String, Value>) -> Vec<Diagnostic> {
    let Expectations { payload, result, names, failure, .. } = &step.expect;
    let mut diagnostics = Vec::new();
    // Only tools have results that say that they failed.
    let may_fail = !matches!(step.action, Action::Read { .. } | Action::Prompt { .. } | Action::Complete { .. } | Action::List(_));
    let is_error = may_fail && answer.result.as_ref().is_ok_and(is_tool_error);
    let outcome = judge_outcome(failure.as_ref().map(|failure| &failure.value), answer, is_error, scope);
    if let Err(mut diagnostic) = outcome {
        diagnostic.place = Some(failure.as_ref().map_or(&step.place, |failure| &failure.place).clone());
        // What a failure lacks in its result is no news.
        return vec![diagnostic];
    }
    if let Some(matcher) = payload {
        let differences = matcher.compare(&answer.payload, scope);
        diagnostics.extend(mismatch("response", differences, &answer.payload.value).map(|found| found.at(matcher.place().clone())));
    }
    if let (Some(matcher), Ok(raw)) = (result, &answer.result) {
        // What stands in a text is another value than the result.
        let (origin, numbers) = match answer.payload.origin {
            Origin::Text => (Origin::Json, Numbers::Rounded),
            origin => (origin, answer.payload.numbers),
        };
        let differences = matcher.compare(&Payload { value: raw.clone(), text: None, origin, numbers }, scope);
        diagnostics.extend(mismatch("result", differences, raw).map(|found| found.at(matcher.place().clone())));
    }
    if let (Some(names), Value::Object(found)) = (names, &answer.payload.value) {
        diagnostics.extend(judge_names(&names.value, found).map(|diagnostic| diagnostic.at(names.place.clone())));
    }
    if let Some(within) = step.within.as_ref().filter(|within| answer.elapsed > within.value) {
        let message = format!("the response took {}, longer than {}", show(answer.elapsed), show(within.value));
        diagnostics.push(Diagnostic::error("too-slow", message).at(within.place.clone()));
    }
    diagnostics
}

/// What is odd about an expectation that was met: a name that has to be absent, where there is one that is almost the same.
pub(super) fn near_names(step: &Step, answer: &Answer) -> Vec<Diagnostic> {
    // The names of headers have no case, and many are alike.
    if answer.payload.origin == Origin::Http {
        return Vec::new();
    }
    let of_payload = step.expect.payload.iter().flat_map(|matcher| matcher.near_names(&answer.payload.value));
    let raw = answer.result.as_ref().ok();
    of_payload.chain(step.expect.result.iter().zip(raw).flat_map(|(matcher, raw)| matcher.near_names(raw))).collect()
}

/// Whether the step expects that no response comes, for this reason.
pub(super) fn expects(step: &Step, retry_cause: RetryCause) -> bool {
    matches!(&step.expect.failure, Some(Spanned { value: ExpectedFailure::NoAnswer(retry_causes), .. }) if retry_causes.contains(&retry_cause))
}

/// Whether the action succeeded or failed as the step expects it.
fn judge_outcome(
    expected: Option<&ExpectedFailure>,
    answer: &Answer,
    is_error: bool,
    scope: &Map<String, Value>,
) -> Result<(), Diagnostic> {
    let text = || answer.payload.text.clone().unwrap_or_else(|| answer.payload.value.to_string());
    let unexpected = |message: String| {
        Err(Diagnostic { actual: Some(pretty(&answer.payload.value)), ..Diagnostic::error("unexpected-outcome", message) })
    };
    match (expected, &answer.result) {
        (None | Some(ExpectedFailure::Tool(_)), Err(refusal)) => {
            let wanted = if expected.is_some() { "expected an `isError` result" } else { "expected a result" };
            unexpected(format!("{wanted}, found {refusal}"))
        }
        (None, Ok(_)) if is_error => unexpected(format!("expected success, found an `isError` result: {}", text())),
        (Some(ExpectedFailure::NoAnswer(_)), Ok(_)) => unexpected("expected no response, found one".into()),
        (Some(ExpectedFailure::NoAnswer(_)), Err(refusal)) => unexpected(format!("expected no response, found {refusal}")),
        (Some(ExpectedFailure::Either), Err(_)) | (None, Ok(_)) => Ok(()),
        (Some(ExpectedFailure::Either), Ok(_)) if is_error => Ok(()),
        (Some(ExpectedFailure::Either), Ok(_)) => unexpected("expected a failure, but the call succeeded".into()),
        (Some(ExpectedFailure::Tool(_)), Ok(_)) if !is_error => unexpected("expected an `isError` result, but the call succeeded".into()),
        (Some(ExpectedFailure::Tool(pattern)), Ok(_)) => match pattern {
            Some(pattern) if answer.payload.text.is_none() => {
                unexpected(format!("expected {}, but the error has no text", pattern.describe_within(scope)))
            }
            Some(pattern) if let Err(reason) = pattern.usable_within(scope) => {
                unexpected(format!("the error text cannot be checked, because {reason}: {}", text()))
            }
            Some(pattern) if !pattern.matches_within(&text(), scope) => {
                unexpected(format!("the error text does not match {}: {}", pattern.describe_within(scope), text()))
            }
            _ => Ok(()),
        },
        (Some(ExpectedFailure::Rpc(_)), Ok(_)) => {
            unexpected(format!("expected a JSON-RPC error, found {}", if is_error { "an `isError` result" } else { "a result" }))
        }
        (Some(ExpectedFailure::Rpc(_)), Err(ErrorResponse::Status(_))) => {
            let found = answer.result.as_ref().err().map(ToString::to_string).unwrap_or_default();
            unexpected(format!("expected a JSON-RPC error, found {found}"))
        }
        (Some(ExpectedFailure::Rpc(matcher)), Err(ErrorResponse::Rpc(error))) => {
            let error = error.to_value();
            let differences = matcher.as_ref().map(|matcher| matcher.compare(&Payload::of(error.clone()), scope)).unwrap_or_default();
            mismatch("JSON-RPC error", differences, &error).map_or(Ok(()), Err)
        }
    }
}

fn judge_names(expected: &[String], found: &Map<String, Value>) -> Option<Diagnostic> {
    let missing: Vec<&str> = expected.iter().map(String::as_str).filter(|name| !found.contains_key(*name)).collect();
    let extra: Vec<&str> = found.keys().map(String::as_str).filter(|name| !expected.iter().any(|known| known == name)).collect();
    let part = |names: &[&str], label: &str| (!names.is_empty()).then(|| format!("{label} {}", names.join(", ")));
    let parts: Vec<String> = [part(&missing, "missing:"), part(&extra, "not expected:")].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| Diagnostic::error("unexpected-names", format!("list does not match: {}", parts.join("; "))))
}

/// What the step saves of its response, and what it cannot.
pub(super) fn save(step: &Step, answer: &Answer) -> (Map<String, Value>, Vec<Diagnostic>) {
    let result = answer.result.as_ref().map_or(Value::Null, Clone::clone);
    let (mut saved, mut diagnostics) = (Map::new(), Vec::new());
    let Payload { origin, numbers, .. } = answer.payload;
    // Only the text was looked at.
    let is_beside_text = |path: &str| origin == Origin::Text && path.starts_with("result");
    for (name, selector) in &step.save {
        match selector.value.select(&answer.payload, &result) {
            Ok(value) if has_large_number(&value) && (numbers == Numbers::Rounded || is_beside_text(&selector.value.path())) => {
                let large = large_number(&value, &selector.value.path()).unwrap_or_default();
                let message = format!("`{name}` cannot be saved: `{large}` does not fit 64 bits, so that it is not known exactly");
                let hint = "have the server return it as text, or save what is beside it";
                diagnostics.push(Diagnostic::error("nothing-to-save", message).hint(hint).at(selector.place.clone()));
            }
            Ok(value) => {
                saved.insert(name.clone(), value);
            }
            Err(error) => {
                let mut diagnostic =
                    Diagnostic::error("nothing-to-save", format!("`{name}` cannot be saved: {error}")).at(selector.place.clone());
                diagnostic.actual = Some(pretty(&answer.payload.value));
                diagnostic.hint = error.hint;
                diagnostics.push(diagnostic);
            }
        }
    }
    (saved, diagnostics)
}

pub(super) fn is_tool_error(result: &Value) -> bool {
    result.get("isError") == Some(&Value::Bool(true))
}
