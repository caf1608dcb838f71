//! A foreign schema and a value are judged within the budget of steps, with the same result from each function, and a schema
//! accepts the arguments that are generated from it. The first line is the schema, the rest the value.

use crate::lines_of;
use mcproof_analysis::arguments as made;
use mcproof_analysis::json_schema::Schema;
use serde_json::Value;

/// # Panics
/// If a property does not hold.
pub fn check(bytes: &[u8]) {
    let (schema, value) = lines_of(bytes);
    let Ok(schema) = serde_json::from_slice::<Value>(schema) else { return };
    let value = serde_json::from_slice::<Value>(value).unwrap_or_default();
    if let Some((is_valid, errors)) = held_against(&schema, &value) {
        assert_eq!(is_valid, errors == 0, "{schema} and {value}: {errors} errors");
    }
    if let Some(made) = arguments(&schema) {
        let held = held_against(&schema, &made);
        assert_eq!(held.map(|(is_valid, _)| is_valid), Some(true), "{made} was made from {schema}");
    }
}

/// Whether a schema accepts a value, and the number of errors; `None` if the schema or the value is rejected.
fn held_against(schema: &Value, value: &Value) -> Option<(bool, usize)> {
    let schema = Schema::of(schema).ok()?;
    let is_valid = schema.is_valid(value).ok()?;
    Some((is_valid, schema.errors(value, 10).ok()?.len()))
}

/// Arguments that a schema accepts; the invalid and unusual ones are generated as well.
fn arguments(schema: &Value) -> Option<Value> {
    let valid = made::minimal(schema)?;
    let _ = (made::missing(schema, &valid), made::mistyped(schema, &valid));
    for what in made::Unusual::EVERY {
        let _ = made::unusual(schema, &valid, what);
    }
    Some(valid)
}
