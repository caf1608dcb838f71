//! Differences between a value and what it has to be, with their places. Knows no matchers.

use crate::json_schema::{Schema, TooCostly, Unusable};
use crate::wording::shortened;
use mcproof_record::Difference;
use serde_json::Value;

/// More differences than a person reads.
pub const MAXIMUM_DIFFERENCES: usize = 50;
/// Characters of an actual value that a difference shows.
pub const SHOWN: usize = 600;

/// Where a value breaks a JSON Schema; `root` is what the value is called. A schema whose references lead out of it is not
/// judged.
///
/// # Errors
/// If the schema is none, or costs too much.
pub fn schema_differences(schema: &Value, actual: &Value, root: &str) -> Result<Vec<Difference>, Unusable> {
    let judged = Schema::of(schema)?;
    let difference = |error: jsonschema::ValidationError<'_>| {
        let pointer = error.instance_path().to_string();
        let at = actual.pointer(&pointer).unwrap_or(actual);
        let expected = format!("valid by its schema: {}", shortened(&error.to_string(), SHOWN));
        Difference { path: below(root, actual, &pointer), expected, actual: shown(at), place: None }
    };
    let errors = judged.errors(actual, MAXIMUM_DIFFERENCES)?;
    Ok(errors.into_iter().map(difference).collect())
}

/// What the result of a call owes to the tool's `outputSchema`.
#[derive(Debug)]
pub enum OutputFlaw {
    /// It has no `structuredContent`.
    Missing,
    Differs(Vec<Difference>),
    /// Why the schema is none.
    NoSchema(String),
    /// It is not known whether the result fits.
    TooCostly(TooCostly),
}

/// Holds a result against an `outputSchema` (2025-06-18 to 2026-07-28, server/tools, output schema).
pub fn output_flaw(schema: &Value, result: &Value) -> Option<OutputFlaw> {
    let Some(structured) = result.get("structuredContent") else { return Some(OutputFlaw::Missing) };
    match schema_differences(schema, structured, "structuredContent") {
        Ok(differences) if differences.is_empty() => None,
        Ok(_) if structured.is_null() => Some(OutputFlaw::Missing),
        Ok(differences) => Some(OutputFlaw::Differs(differences)),
        Err(Unusable::TooCostly(too_costly)) => Some(OutputFlaw::TooCostly(too_costly)),
        Err(Unusable::Invalid(why)) => Some(OutputFlaw::NoSchema(shortened(&why, SHOWN))),
        Err(Unusable::LeadsOut(_)) => None,
    }
}

pub fn element(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}

pub fn member(path: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|character| character.is_alphanumeric() || matches!(character, '_' | '-' | '$'));
    match (plain, path) {
        (true, "") => key.to_owned(),
        (true, path) => format!("{path}.{key}"),
        (false, path) => format!("{path}[{}]", Value::from(key)),
    }
}

/// Translates a JSON pointer below `path`.
pub fn below(path: &str, root: &Value, pointer: &str) -> String {
    let mut path = path.to_owned();
    let mut at = Some(root);
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        path = match (at, token.parse()) {
            (Some(Value::Array(_)), Ok(index)) => element(&path, index),
            _ => member(&path, &token),
        };
        at = at.and_then(|value| match value {
            Value::Array(items) => items.get(token.parse::<usize>().ok()?),
            other => other.get(&token),
        });
    }
    path
}

pub fn shown(value: &Value) -> String {
    shortened(&value.to_string(), SHOWN)
}
