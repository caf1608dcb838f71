//! Arguments that a modern HTTP request mirrors into headers, as the tool's input schema says with `x-mcp-header`.
//! Source: 2026-07-28, basic/transports, Streamable HTTP, custom headers from tool parameters.

use super::Headers;
use super::modern::header_value;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// What has been learned from listed tools.
#[derive(Debug, Default)]
pub struct ParamHeaders(HashMap<String, Vec<Mirror>>);

#[derive(Debug, PartialEq, Eq)]
struct Mirror {
    /// In lower case, with its `mcp-param-` prefix.
    header: String,
    /// Keys that lead from the arguments to the value.
    path: Vec<String>,
}

const KEYWORD: &str = "x-mcp-header";
/// The largest integer that JavaScript keeps exactly.
const SAFE_INTEGER: i64 = (1 << 53) - 1;

/// Whether a tool's `x-mcp-header` annotations keep the rules.
///
/// # Errors
/// Why they do not; a client has to leave such a tool out.
pub fn check_param_headers(tool: &Value) -> Result<(), String> {
    mirrors(tool).map(drop)
}

/// The headers into which arguments of a tool go, in lower case.
///
/// # Errors
/// Why its annotations break the rules; a client has to leave such a tool out.
pub fn param_headers(tool: &Value) -> Result<Vec<String>, String> {
    Ok(mirrors(tool)?.into_iter().map(|mirror| mirror.header).collect())
}

fn mirrors(tool: &Value) -> Result<Vec<Mirror>, String> {
    let mut mirrors = Vec::new();
    if let Some(schema) = tool.get("inputSchema") {
        collect(schema, &mut Vec::new(), Reach::Static, &mut mirrors)?;
    }
    let mut seen = HashSet::new();
    match mirrors.iter().find(|mirror| !seen.insert(mirror.header.as_str())) {
        Some(twice) => Err(format!("two parameters share the header {}", twice.header)),
        None => Ok(mirrors),
    }
}

impl ParamHeaders {
    /// Takes in a listed tool.
    ///
    /// # Errors
    /// Why the tool's annotations break the rules; a client has to leave such a tool out.
    pub fn learn(&mut self, tool: &Value) -> Result<(), String> {
        let Some(name) = tool.get("name").and_then(Value::as_str) else { return Ok(()) };
        self.0.insert(name.to_owned(), mirrors(tool)?);
        Ok(())
    }

    /// The headers of a call with these parameters.
    pub fn of_call(&self, params: &Map<String, Value>) -> Headers {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        let header = |mirror: &Mirror| {
            let mut value = params.get("arguments")?;
            for key in &mirror.path {
                value = value.get(key)?;
            }
            Some((mirror.header.clone(), header_value(&text(value)?)))
        };
        self.0.get(name).into_iter().flatten().filter_map(header).collect()
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) => Some(value.to_string()),
        Value::Number(number) => number.as_i64().filter(|number| number.abs() <= SAFE_INTEGER).map(|number| number.to_string()),
        _ => None,
    }
}

/// Whether the way from the root leads through `properties` only.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Static,
    Dynamic,
}

fn collect(schema: &Value, path: &mut Vec<String>, reach: Reach, into: &mut Vec<Mirror>) -> Result<(), String> {
    let Some(object) = schema.as_object() else {
        // Lists of schemas, as in `anyOf`.
        return schema.as_array().into_iter().flatten().try_for_each(|schema| collect(schema, path, Reach::Dynamic, into));
    };
    if let Some(name) = object.get(KEYWORD) {
        let place = path.join(".");
        let wrong = |reason: &str| Err(format!("{KEYWORD} of `{place}` {reason}"));
        let Some(name) = name.as_str() else { return wrong("is not a string") };
        if name.is_empty() || !name.bytes().all(is_token) {
            return wrong("is not a valid header name");
        }
        if reach == Reach::Dynamic || path.is_empty() {
            return wrong("is not reachable through `properties` alone");
        }
        if !matches!(object.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
            return wrong("is on a parameter that is not a string, integer or boolean");
        }
        into.push(Mirror { header: format!("mcp-param-{}", name.to_ascii_lowercase()), path: path.clone() });
    }
    for (key, value) in object {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, schema) in properties {
                    path.push(name.clone());
                    collect(schema, path, reach, into)?;
                    path.pop();
                }
            }
            // Values, not schemas: what looks like the keyword there is data.
            ("default" | "const" | "enum" | "examples", _) => {}
            // `$defs` and its like hold schemas by name, all other keywords a schema or a list of them.
            (_, Value::Object(_) | Value::Array(_)) => collect(value, path, Reach::Dynamic, into)?,
            _ => {}
        }
    }
    Ok(())
}

/// A character of a header name (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(properties: Value) -> Value {
        json!({ "name": "t", "inputSchema": { "type": "object", "properties": properties } })
    }

    #[test]
    fn arguments_are_mirrored() {
        let mut headers = ParamHeaders::default();
        let properties = json!({
            "region": { "type": "string", "x-mcp-header": "Region" },
            "count": { "type": "integer", "x-mcp-header": "Count" },
            "dry": { "type": "boolean", "x-mcp-header": "Dry-Run" },
            "deep": { "type": "object", "properties": { "er": { "type": "string", "x-mcp-header": "Deep" } } },
            "query": { "type": "string" },
        });
        headers.learn(&tool(properties)).unwrap();
        let check = |arguments: Value, expected: &[(&str, &str)]| {
            let params = json!({ "name": "t", "arguments": arguments });
            let mut found = headers.of_call(params.as_object().unwrap());
            found.sort();
            let found: Vec<_> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(found, expected);
        };
        check(json!({}), &[]);
        check(json!({ "region": "eu", "query": "x" }), &[("mcp-param-region", "eu")]);
        check(json!({ "count": -7, "dry": true }), &[("mcp-param-count", "-7"), ("mcp-param-dry-run", "true")]);
        check(json!({ "deep": { "er": "ä" } }), &[("mcp-param-deep", "=?base64?w6Q=?=")]);
        check(json!({ "region": null, "count": 9_007_199_254_740_993_i64 }), &[]);
    }

    #[test]
    fn annotations_that_break_the_rules_are_named() {
        let check = |properties: Value, expected: &str| {
            assert_eq!(ParamHeaders::default().learn(&tool(properties)).unwrap_err(), expected);
        };
        let string = |name: &str| json!({ "type": "string", "x-mcp-header": name });
        check(json!({ "a": string("") }), "x-mcp-header of `a` is not a valid header name");
        check(json!({ "a": string("A B") }), "x-mcp-header of `a` is not a valid header name");
        check(json!({ "a": string("A\r\nB") }), "x-mcp-header of `a` is not a valid header name");
        check(
            json!({ "a": { "type": "number", "x-mcp-header": "A" } }),
            "x-mcp-header of `a` is on a parameter that is not a string, integer or boolean",
        );
        check(json!({ "a": string("A"), "b": string("a") }), "two parameters share the header mcp-param-a");
        check(json!({ "a": { "type": "array", "items": string("A") } }), "x-mcp-header of `a` is not reachable through `properties` alone");
        check(json!({ "a": { "anyOf": [string("A")] } }), "x-mcp-header of `a` is not reachable through `properties` alone");
    }

    #[test]
    fn data_that_looks_like_the_keyword_is_data() {
        let properties = json!({ "a": { "type": "object", "default": { "x-mcp-header": "" } } });
        assert_eq!(ParamHeaders::default().learn(&tool(properties)), Ok(()));
    }
}
