//! What a step saves of a response: the value at a path, or the part of a text that a pattern finds, as people type it: `id`,
//! `/order (\d+)/`, `result.content[1].text /order (\d+)/`.

use super::text::Pattern;
use super::{JsonPath, Origin, PathError, Payload};
use crate::document::Node;
use crate::source::Source;
use mcproof_record::Diagnostic;
use serde_json::{Map, Number, Value};

/// A path to one value, and the pattern of what is meant of it, if that is a part of its text.
#[derive(Clone, Debug)]
pub struct Selector {
    path: JsonPath,
    part: Option<Pattern>,
}

/// A group of this name is saved as a number.
const NUMBER: &str = "number";

impl Selector {
    /// A path, a pattern over the whole payload, or a path and a pattern with a blank between them.
    pub(crate) fn compile(written: &str, node: &Node, source: &Source, diagnostics: &mut Vec<Diagnostic>) -> Option<Self> {
        let (path, pattern) = halves(written.trim());
        let path = match JsonPath::parse(path) {
            Ok(path) => path,
            Err(error) => {
                let diagnostic = Diagnostic::error("bad-path", error.message).at(source.place(node.span));
                diagnostics.push(error.hint.into_iter().fold(diagnostic, Diagnostic::hint));
                return None;
            }
        };
        let part = match pattern {
            Some(pattern) => Some(Pattern::compile(pattern, node, source, diagnostics)?),
            None => None,
        };
        Some(Self { path, part })
    }

    /// Where the value is, as it is written.
    pub(crate) fn path(&self) -> String {
        self.path.to_string()
    }

    /// A text in which its pattern finds a part, if it has one.
    pub(crate) fn example(&self, scope: &Map<String, Value>) -> Option<String> {
        self.part.as_ref()?.example(scope)
    }

    /// The value, or the part of its text: the group `number` as a number, else the first group, else all that the pattern finds.
    ///
    /// # Errors
    /// When there is no such value, or no such part of it.
    pub fn select(&self, payload: &Payload, result: &Value) -> Result<Value, PathError> {
        let value = self.path.select(payload, result)?;
        let Some(pattern) = &self.part else { return Ok(value.clone()) };
        let wrong = |message: String| PathError { message, hint: None };
        // The text as it came, where it happens to be JSON.
        let raw = payload.text.as_deref().filter(|_| payload.origin == Origin::Text && self.path.is_whole_payload());
        let text = value
            .as_str()
            .or(raw)
            .ok_or_else(|| wrong(format!("what is at `{}` is no text, in which a pattern could find a part", self.path)))?;
        let scope = Map::new();
        let regex = pattern.regex(&scope).map_err(wrong)?;
        let found = regex.captures(text).ok_or_else(|| wrong(format!("nothing in the text matches {}", pattern.describe(&scope))))?;
        if let Some(number) = found.name(NUMBER) {
            let number = number.as_str();
            return serde_json::from_str::<Number>(number).map(Value::Number).map_err(|_| wrong(format!("`{number}` is not a number")));
        }
        let part = found.get(1).or_else(|| found.get(0));
        Ok(Value::String(part.map_or_else(String::new, |part| part.as_str().to_owned())))
    }
}

/// The path and the pattern.
fn halves(written: &str) -> (&str, Option<&str>) {
    let is_pattern = |text: &str| text.len() > 2 && text.starts_with('/') && text[1..].contains('/');
    if is_pattern(written) {
        return ("$", Some(written));
    }
    match written.find(" /").map(|place| (written[..place].trim_end(), &written[place + 1..])) {
        Some((path, pattern)) if is_pattern(pattern) => (path, Some(pattern)),
        _ => (written, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Kind;
    use crate::source::Span;
    use serde_json::json;

    fn compile(written: &str) -> Result<Selector, Vec<Diagnostic>> {
        let mut diagnostics = Vec::new();
        let node = Node { kind: Kind::Text(written.into()), span: Span { file: 0, line: 1, column: 1, length: 1 } };
        Selector::compile(written, &node, &Source::new("f", written), &mut diagnostics).ok_or(diagnostics)
    }

    #[test]
    fn a_value_or_a_part_of_a_text_is_selected() {
        let result = json!({ "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "at http://a/b?c=1 now" }] });
        let check = |payload: Value, written: &str, expected: Result<Value, &str>| {
            let found = compile(written).unwrap().select(&Payload::of(payload), &result);
            assert_eq!(found.map_err(|error| error.message), expected.map_err(str::to_owned), "{written}");
        };
        let told = json!("Created order 8037363 for you.\nKeep order 9.");
        check(told.clone(), "/order (\\d+)/", Ok(json!("8037363")));
        check(told.clone(), "/order (?<number>\\d+)/", Ok(json!(8_037_363)));
        check(told.clone(), "$ /ORDER \\d+/i", Ok(json!("order 8037363")));
        check(told.clone(), "/order (?<number>\\d+ for)/", Err("`8037363 for` is not a number"));
        check(told, "/invoice (\\d+)/", Err("nothing in the text matches /invoice (\\d+)/"));
        check(json!({ "said": { "a": "no. 12" } }), "said.a /no\\. (\\d+)/", Ok(json!("12")));
        check(json!({ "said": 12 }), "said /\\d+/", Err("what is at `said` is no text, in which a pattern could find a part"));
        check(json!({ "said": 12 }), "said", Ok(json!(12)));
        check(json!("x"), "result.content[1].text /http://a/(\\S+)/", Ok(json!("b?c=1")));
        check(json!({ "a /b": 1 }), "a /b", Ok(json!(1)));
    }

    #[test]
    fn a_text_that_is_json_has_parts_as_well() {
        let check = |text: &str, written: &str, expected: Result<Value, &str>| {
            let result = json!({ "content": [{ "type": "text", "text": text }] });
            let found = compile(written).unwrap().select(&Payload::from_call_result(&result), &result);
            assert_eq!(found.map_err(|error| error.message), expected.map_err(str::to_owned), "{text} {written}");
        };
        check("8037", "/^(\\d\\d)/", Ok(json!("80")));
        check("{\"id\": 12}", "/\"id\": (?<number>\\d+)/", Ok(json!(12)));
        check("\"order 9\"", "/^order (\\d)/", Ok(json!("9")));
        check("{\"id\": 12}", "id /1/", Err("what is at `id` is no text, in which a pattern could find a part"));
    }

    #[test]
    fn what_is_wrong_with_it_is_said() {
        let check = |written: &str, code: &str| {
            let codes: Vec<String> = compile(written).unwrap_err().into_iter().map(|diagnostic| diagnostic.code).collect();
            assert_eq!(codes, [code], "{written}");
        };
        check("a..", "bad-path");
        check("a.. /b/", "bad-path");
        check("a /(/", "bad-regex");
    }
}
