//! Variables are resolved in the same way while a suite is read and while it runs, within the limits of a suite. The first line is an object of
//! variables, the rest the text with the variables.

use crate::lines_of;
use mcproof_suite::plan::Action;
use mcproof_suite::{self as suite, Environment, interpolate, interpolate_text};
use serde_json::{Map, Value, json};
use std::path::Path;

/// # Panics
/// If a property does not hold.
pub fn check(bytes: &[u8]) {
    let (variables, text) = lines_of(bytes);
    let Ok(variables) = serde_json::from_slice::<Map<String, Value>>(variables) else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let as_value = interpolate(&Value::from(text), &variables);
    let as_text = interpolate_text(text, &variables);
    // What is one variable alone keeps its type; all else is the same text.
    match (&as_value, &as_text) {
        (Ok(Value::String(value)), Ok(text)) => assert_eq!(value, text),
        (Ok(value), Ok(text)) => assert_eq!(&value.to_string(), text),
        (value, text) => assert_eq!(value.as_ref().err(), text.as_ref().err()),
    }
    if !text.contains("${") {
        assert_eq!(as_text.as_deref(), Ok(text));
    }
    let suite = json!({
        "server": { "stdio": "never" },
        "vars": variables,
        "tests": [{ "name": "a", "steps": [{ "call": "t", "with": { "a": text } }] }],
    });
    let read = suite::load("fuzzed.mcproof.yaml", &suite.to_string(), Path::new("/"), &Environment::default());
    let Ok(suite) = read else { return };
    let plain = !Value::Object(variables.clone()).to_string().contains("${");
    // Variables of the environment, and defaults, are for reading only.
    if let (true, Ok(meant)) = (plain && !text.contains("env.") && !text.contains(":-"), as_value) {
        let Action::Call { arguments: found, .. } = &suite.cases[0].steps[0].action else { panic!("the suite has one call") };
        assert_eq!(interpolate(&found["a"], &Map::new()), Ok(meant), "{variables:?} in {text:?}");
    }
}
