//! What the modern era adds to each request: `_meta`, and over HTTP the headers that mirror it.

use super::{ClientProfile, Headers, VERSION_HEADER};
use mcproof_protocol::methods;
use serde_json::{Map, Value, json};

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The extension that brings tasks.
pub(super) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Declares on one request that we understand tasks. Without it a server must not answer with one, so that ordinary calls
/// are not surprised.
pub(super) fn declare_tasks(client: &ClientProfile, params: &mut Map<String, Value>) {
    let meta = params.entry("_meta").or_insert_with(|| json!({}));
    let Some(meta) = meta.as_object_mut() else { return };
    let capabilities = meta.entry(CAPABILITIES).or_insert_with(|| Value::Object(client.capabilities.clone()));
    let Some(capabilities) = capabilities.as_object_mut() else { return };
    if let Some(extensions) = capabilities.entry("extensions").or_insert_with(|| json!({})).as_object_mut() {
        extensions.entry(TASKS).or_insert_with(|| json!({}));
    }
}

/// The parameters and headers of a modern request (2026-07-28, basic, `_meta`, and Streamable HTTP, request metadata).
pub(super) fn mirrored(
    client: &ClientProfile,
    version: &str,
    method: &str,
    params: Option<Map<String, Value>>,
) -> (Map<String, Value>, Headers) {
    let mut params = params.unwrap_or_default();
    let headers = request_headers(version, method, &params);
    let own = [
        ("io.modelcontextprotocol/protocolVersion", Value::from(version)),
        ("io.modelcontextprotocol/clientInfo", client.info()),
        (CAPABILITIES, Value::Object(client.capabilities.clone())),
    ];
    let meta = params.entry("_meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        for (key, value) in own {
            // What a plan says stands: it may want to send something wrong.
            meta.entry(key).or_insert(value);
        }
    }
    (params, headers)
}

/// The headers that mirror a request (2026-07-28, Streamable HTTP, request metadata).
pub fn request_headers(version: &str, method: &str, params: &Map<String, Value>) -> Headers {
    let mut headers = vec![(VERSION_HEADER.to_owned(), version.to_owned()), ("mcp-method".to_owned(), method.to_owned())];
    let name = match method {
        methods::TOOLS_CALL | methods::PROMPTS_GET => params.get("name"),
        methods::RESOURCES_READ => params.get("uri"),
        // Extension io.modelcontextprotocol/tasks, routing headers.
        methods::TASKS_GET | methods::TASKS_UPDATE | methods::TASKS_CANCEL => params.get("taskId"),
        _ => None,
    };
    headers.extend(name.and_then(Value::as_str).map(|name| ("mcp-name".to_owned(), header_value(name))));
    headers
}

/// A value as a header can carry it, else in the Base64 sentinel form (2026-07-28, Streamable HTTP, value encoding).
pub(super) fn header_value(value: &str) -> String {
    let plain = value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let padded = value.starts_with([' ', '\t']) || value.ends_with([' ', '\t']);
    let looks_encoded = value.starts_with("=?base64?") && value.ends_with("?=");
    if plain && !padded && !looks_encoded {
        return value.to_owned();
    }
    use base64::Engine as _;
    format!("=?base64?{}?=", base64::engine::general_purpose::STANDARD.encode(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_values_are_encoded_when_they_have_to_be() {
        let check = |value, expected| assert_eq!(header_value(value), expected);
        check("us-west1", "us-west1");
        check("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?=");
        check(" padded ", "=?base64?IHBhZGRlZCA=?=");
        check("line1\nline2", "=?base64?bGluZTEKbGluZTI=?=");
        check("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=");
    }
}
