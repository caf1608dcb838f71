//! Paths to one value of a response, as people type them: `id`, `items[0].name`, `result._meta.operation_id`.

use super::{Origin, Payload};
use mcproof_analysis::{did_you_mean, listed};
use serde_json::Value;
use std::fmt;

/// A path to one value, in the payload or, where it begins with `result`, in the raw result.
#[derive(Clone, Debug)]
pub struct JsonPath {
    written: String,
    root: Root,
    path: serde_json_path::JsonPath,
    /// The same in an HTTP response, if it leads to a header: in lower case.
    of_header: Option<serde_json_path::JsonPath>,
}

/// Why a path is none, or does not lead to one value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PathError {
    pub message: String,
    pub hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Root {
    Payload,
    Result,
}

impl JsonPath {
    /// RFC 9535, with a leading `$.` implied, and with any key in dot notation that has none of `. [ ] * ? ' "` in it.
    ///
    /// # Errors
    /// Says what is wrong with the path.
    pub fn parse(written: &str) -> Result<Self, PathError> {
        let trimmed = written.trim();
        let (root, rest) = match trimmed.strip_prefix("result") {
            Some("") => {
                return Err(PathError {
                    message: "`result` alone could mean two things".to_owned(),
                    hint: Some(
                        "write `$.result` for that key of the payload, or a longer path such as `result.content[0].text`".to_owned(),
                    ),
                });
            }
            Some(rest) if rest.starts_with(['.', '[']) => (Root::Result, rest),
            _ => (Root::Payload, trimmed),
        };
        let parse = |path: &str| serde_json_path::JsonPath::parse(path).ok();
        let normalized = normalize(rest);
        match normalized.as_deref().and_then(parse) {
            Some(path) => {
                let of_header = normalized.as_deref().and_then(in_lower_case).as_deref().and_then(parse);
                Ok(Self { written: trimmed.to_owned(), root, path, of_header })
            }
            None => Err(PathError {
                message: format!("`{written}` is not a valid path"),
                hint: Some("a path is written `id`, `items[0].name` or `result._meta.key`; `$` is the whole payload".to_owned()),
            }),
        }
    }

    /// The one value at this path.
    ///
    /// # Errors
    /// When there is none or more than one.
    pub fn select<'a>(&self, payload: &'a Payload, result: &'a Value) -> Result<&'a Value, PathError> {
        let (name, root) = match self.root {
            Root::Payload => ("payload", &payload.value),
            Root::Result => ("result", result),
        };
        let path = self.of_header.as_ref().filter(|_| payload.origin == Origin::Http).unwrap_or(&self.path);
        let found = path.query(root).all();
        match found.as_slice() {
            [only] => Ok(only),
            [] => Err(PathError { message: format!("nothing is at `{}`", self.written), hint: self.advice(name, root) }),
            many => Err(PathError {
                message: format!("`{}` finds {} values, not one", self.written, many.len()),
                hint: Some("choose one, such as the first with `[0]`".to_owned()),
            }),
        }
    }

    /// Whether it is `$`.
    pub(super) fn is_whole_payload(&self) -> bool {
        self.root == Root::Payload && self.written == "$"
    }

    fn advice(&self, name: &str, root: &Value) -> Option<String> {
        let Value::Object(members) = root else {
            let kind = if root.is_array() { "a list" } else { "no object" };
            return Some(format!("the {name} is {kind}; `$` is the whole payload"));
        };
        let rest = match self.root {
            Root::Payload => self.written.as_str(),
            Root::Result => self.written.trim_start_matches("result"),
        };
        let first = rest.trim_start_matches(['$', '.']).split(['.', '[']).next().unwrap_or_default();
        if members.contains_key(first) {
            return None;
        }
        match did_you_mean(first, members.keys().map(String::as_str)) {
            Some(near) => Some(format!("did you mean `{near}`?")),
            None if members.is_empty() => Some(format!("the {name} is an empty object")),
            None => Some(format!("the {name} has {}", listed(members.keys().map(String::as_str)))),
        }
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.written)
    }
}

/// A path to a header of an HTTP response, whose names are in lower case.
fn in_lower_case(path: &str) -> Option<String> {
    const BEGINNINGS: [&str; 3] = ["$['headers']", "$.headers", "$[\"headers\"]"];
    let name = BEGINNINGS.iter().find_map(|beginning| path.strip_prefix(beginning))?;
    Some(format!("{}{}", &path[..path.len() - name.len()], name.to_ascii_lowercase()))
}

/// Makes a standard path of what a person typed; keys are quoted, so that dashes and spaces need no care.
fn normalize(written: &str) -> Option<String> {
    if written.is_empty() {
        return None;
    }
    let rest = written.strip_prefix('$').unwrap_or(written);
    if rest == "." {
        return None;
    }
    if rest.contains(['*', '?', '\'', '"']) || rest.contains("..") {
        let dot = if rest.is_empty() || rest.starts_with(['.', '[']) { "" } else { "." };
        return Some(format!("${dot}{rest}"));
    }
    let mut path = "$".to_owned();
    let mut rest = rest.strip_prefix('.').unwrap_or(rest);
    while !rest.is_empty() {
        if let Some(bracket) = rest.strip_prefix('[') {
            let (index, after) = bracket.split_once(']')?;
            path.push_str(&format!("[{index}]"));
            rest = after;
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (key, after) = rest.split_at(end);
            if key.is_empty() || key.contains([']', '\\']) {
                return None;
            }
            path.push_str(&format!("['{key}']"));
            rest = after;
        }
        if let Some(after) = rest.strip_prefix('.') {
            if after.is_empty() || after.starts_with(['.', '[']) {
                return None;
            }
            rest = after;
        } else if !rest.is_empty() && !rest.starts_with('[') {
            return None;
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_leads_to_exactly_one_value() {
        let value = json!({"id": "ORD-1", "a-b": {"c d": 1}, "items": [{"n": 1}, {"n": 2}], "result": 3, "none": null, "über": 4});
        let payload = Payload::of(value.clone());
        let result = json!({"_meta": {"operation_id": "op", "a.com/key": 1}, "content": [{"text": "t"}]});
        let check = |path: &str, expected: Result<Value, &str>| {
            let found = JsonPath::parse(path).and_then(|path| path.select(&payload, &result).cloned());
            let found = found.map_err(|error| format!("{} ({})", error.message, error.hint.unwrap_or_default()));
            assert_eq!(found, expected.map_err(str::to_owned), "{path}");
        };
        check("id", Ok(json!("ORD-1")));
        check("$.id", Ok(json!("ORD-1")));
        check(" id ", Ok(json!("ORD-1")));
        check("$", Ok(value.clone()));
        check("a-b.c d", Ok(json!(1)));
        check("items[1].n", Ok(json!(2)));
        check("items[-1].n", Ok(json!(2)));
        check("['a-b']['c d']", Ok(json!(1)));
        check("items[?@.n == 2].n", Ok(json!(2)));
        check("none", Ok(json!(null)));
        check("über", Ok(json!(4)));
        check("$.result", Ok(json!(3)));
        check("result._meta.operation_id", Ok(json!("op")));
        check("result._meta['a.com/key']", Ok(json!(1)));
        check("result.content[0].text", Ok(json!("t")));
        check("results", Err("nothing is at `results` (did you mean `result`?)"));
        check("ids", Err("nothing is at `ids` (did you mean `id`?)"));
        check("wrong", Err("nothing is at `wrong` (the payload has `id`, `a-b`, `items`, `result`, `none`, `über`)"));
        check("result.contents", Err("nothing is at `result.contents` (did you mean `content`?)"));
        check("items[9].n", Err("nothing is at `items[9].n` ()"));
        check("items[*].n", Err("`items[*].n` finds 2 values, not one (choose one, such as the first with `[0]`)"));
        let how = "(a path is written `id`, `items[0].name` or `result._meta.key`; `$` is the whole payload)";
        for bad in ["", "a..", "a.", "[", "a[", "a[x]", "a]b", "a[0]b", ".", "$..", "a.[0]"] {
            check(bad, Err(&format!("`{bad}` is not a valid path {how}")));
        }
        let response = Payload { origin: Origin::Http, ..Payload::of(json!({"status": 200, "headers": {"x-a": "1"}, "body": {"A": 2}})) };
        for (path, expected) in
            [("headers.X-A", json!("1")), ("$.headers['X-a']", json!("1")), ("$[\"headers\"][\"X-A\"]", json!("1")), ("body.A", json!(2))]
        {
            assert_eq!(JsonPath::parse(path).unwrap().select(&response, &json!(null)), Ok(&expected), "{path}");
        }
        let ambiguous = "(write `$.result` for that key of the payload, or a longer path such as `result.content[0].text`)";
        check("result", Err(&format!("`result` alone could mean two things {ambiguous}")));
    }
}
