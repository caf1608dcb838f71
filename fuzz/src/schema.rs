//! A schema of somebody else's and a value are judged within the budget of steps, alike in each way in which they are asked about, and
//! arguments that are made from a schema are accepted by it. The first line is the schema, the rest the value.

use crate::lines_of;
use mcproof_engine::fuzzed;
use serde_json::Value;

/// # Panics
/// If a property does not hold.
pub fn check(bytes: &[u8]) {
    let (schema, value) = lines_of(bytes);
    let Ok(schema) = serde_json::from_slice::<Value>(schema) else { return };
    let value = serde_json::from_slice::<Value>(value).unwrap_or_default();
    if let Some((is_valid, errors)) = fuzzed::held_against(&schema, &value) {
        assert_eq!(is_valid, errors == 0, "{schema} and {value}: {errors} errors");
    }
    if let Some(made) = fuzzed::arguments(&schema) {
        let held = fuzzed::held_against(&schema, &made);
        assert_eq!(held.map(|(is_valid, _)| is_valid), Some(true), "{made} was made from {schema}");
    }
}
