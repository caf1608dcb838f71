//! Expectations that are values of a program and not lines of a suite, and what a failed one looks like. Knows no suites.

use super::{Matcher, Payload, Subject};
use crate::document::{self, Entry, Kind, Node};
use crate::source::{Source, Span};
use mcproof_analysis::wording::shortened;
use mcproof_record::{Diagnostic, Difference};
use serde_json::{Map, Value};

/// What an expectation that stands in no file is called.
const NAME: &str = "expectation";

/// The difference between a payload and what is expected of it, as a failed test tells it; none if it matches. `vars` fill
/// `${name}`; without them there are no templates, and `${` is text.
///
/// # Errors
/// All mistakes of the expectation.
pub fn expect(
    expectation: &Value,
    payload: &Payload,
    what: &str,
    vars: Option<&Map<String, Value>>,
) -> Result<Option<Diagnostic>, Vec<Diagnostic>> {
    let written = serde_json::to_string_pretty(expectation).unwrap_or_default();
    let source = Source::new(NAME, &written);
    let node = match document::parse(&source, 0) {
        (Some(node), mistakes) if mistakes.is_empty() && node.to_value() == *expectation => node,
        // JSON that is no YAML, such as very long keys: then nothing can be pointed at.
        _ => Node::from_value(expectation, Span { line: 1, column: 1, ..Span::default() }),
    };
    let node = if vars.is_some() { node } else { literal(node) };
    let mut mistakes = Vec::new();
    let matcher = Matcher::compile(&node, Subject::Payload, &source, &mut mistakes).ok_or(mistakes)?;
    let differences = matcher.compare(payload, vars.unwrap_or(&Map::new()));
    Ok(mismatch(what, differences, &payload.value).map(|found| found.at(matcher.place().clone())))
}

/// What to say of differences, if there are any.
pub fn mismatch(what: &str, differences: Vec<Difference>, actual: &Value) -> Option<Diagnostic> {
    let message = match differences.len() {
        0 => return None,
        1 => format!("{what} does not match"),
        count => format!("{what} does not match in {count} places"),
    };
    // Paths of `save` may begin with it.
    let begins_above = |difference: &Difference| difference.path == "result" || difference.path.starts_with("result.");
    let hint = (actual.get("result").is_none() && differences.iter().any(begins_above))
        .then(|| format!("there is no `result` in the {what}: if it was put around the expectation, leave it out"));
    Some(Diagnostic { differences, actual: Some(pretty(actual)), hint, ..Diagnostic::error("unexpected-value", message) })
}

/// Indented JSON, cut where nobody reads on.
pub fn pretty(value: &Value) -> String {
    const MOST: usize = 4000;
    shortened(&serde_json::to_string_pretty(value).unwrap_or_default(), MOST)
}

/// The same with all texts escaped that would be templates.
fn literal(node: Node) -> Node {
    let kind = match node.kind {
        Kind::Text(text) => Kind::Text(text.replace("${", "$${")),
        Kind::Seq(items) => Kind::Seq(items.into_iter().map(literal).collect()),
        Kind::Map(entries) => Kind::Map(entries.into_iter().map(|Entry { key, value }| Entry { key, value: literal(value) }).collect()),
        other => other,
    };
    Node { kind, span: node.span }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_expectation_is_a_value_in_the_language_of_suites() {
        let check = |expectation: Value, value: Value, vars: Option<Value>, paths: &[&str]| {
            let vars = vars.and_then(|vars| vars.as_object().cloned());
            let found = expect(&expectation, &Payload::of(value), "response", vars.as_ref()).unwrap();
            let found: Vec<String> = found.into_iter().flat_map(|found| found.differences).map(|found| found.path).collect();
            assert_eq!(found, paths, "{expectation}");
        };
        check(json!({ "a": 1 }), json!({ "a": 1, "b": 2 }), None, &[]);
        check(json!({ "a": { "$gte": 2 }, "b": ["x"] }), json!({ "a": 1, "b": ["y"] }), None, &["a", "b[0]"]);
        check(json!("${a}"), json!("${a}"), None, &[]);
        check(json!("${a}"), json!(7), Some(json!({ "a": 7 })), &[]);
        check(json!({ "k".repeat(2000): 1 }), json!({ "k".repeat(2000): 1 }), None, &[]);
        check(json!("a\u{7f}\n\t\"ä"), json!("a\u{7f}\n\t\"ä"), None, &[]);
    }

    #[test]
    fn a_result_around_the_payload_is_told() {
        let hint = |expectation: Value, value: Value| {
            expect(&expectation, &Payload::of(value), "response", None).unwrap().and_then(|found| found.hint).unwrap_or_default()
        };
        let leave_out = "there is no `result` in the response: if it was put around the expectation, leave it out";
        assert_eq!(hint(json!({ "result": { "tools": [] } }), json!({ "tools": [] })), leave_out);
        assert_eq!(hint(json!({ "result": 1 }), json!({ "result": 2 })), "");
        assert_eq!(hint(json!({ "a": 1 }), json!({ "b": 2 })), "");
    }

    #[test]
    fn a_mistake_in_an_expectation_is_told_with_its_place() {
        let mistakes = expect(&json!({ "a": { "$regx": "x" } }), &Payload::of(json!(1)), "response", None).unwrap_err();
        let mistake = &mistakes[0];
        assert_eq!((mistake.code.as_str(), mistake.place.as_ref().map(|place| place.line)), ("unknown-matcher", Some(3)));
    }
}
