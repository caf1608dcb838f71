//! The headers that mirror a modern message (2026-07-28, basic/transports/streamable-http#request-metadata). Knows headers and
//! one message.

use crate::mock::server::{Call, Mock};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use mcproof_protocol::Revision;
use mcproof_protocol::error_code::HEADER_MISMATCH;
use serde_json::{Value, json};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Checks all headers that mirror the message. What the message itself lacks is told later.
///
/// # Errors
/// One is missing, malformed, or says something else: the error object.
pub(super) fn check(mock: &Mock, call: &Call, headers: &HeaderMap) -> Result<(), Value> {
    let Some(version) = call.meta(VERSION).and_then(Value::as_str) else { return Ok(()) };
    mirrors(headers, "MCP-Protocol-Version", version)?;
    if version != Revision::MODERN.as_str() {
        return Ok(());
    }
    mirrors(headers, "Mcp-Method", &call.method)?;
    let name = match call.method.as_str() {
        "tools/call" | "prompts/get" => call.params.get("name"),
        "resources/read" => call.params.get("uri"),
        _ => return Ok(()),
    };
    if let Some(name) = name.filter(|name| name.is_string()) {
        encoded(headers, "Mcp-Name", name)?;
    }
    match call.method.as_str() {
        "tools/call" => parameters(mock, call, headers),
        _ => Ok(()),
    }
}

/// The header has to be there and to say exactly this.
fn mirrors(headers: &HeaderMap, header: &str, body: &str) -> Result<(), Value> {
    match headers.get(header).map(|value| value.to_str().unwrap_or_default()) {
        Some(value) if value == body => Ok(()),
        Some(value) => Err(mismatch(format!("{header} is '{value}', the body says '{body}'"))),
        None => Err(mismatch(format!("{header} is missing"))),
    }
}

/// The headers of the arguments that the tool marks with `x-mcp-header`.
fn parameters(mock: &Mock, call: &Call, headers: &HeaderMap) -> Result<(), Value> {
    let tool = call.params.get("name").and_then(Value::as_str).and_then(|name| mock.tool(name));
    let Some(tool) = tool else { return Ok(()) };
    let arguments = call.params.get("arguments");
    for (name, schema) in tool["inputSchema"]["properties"].as_object().into_iter().flatten() {
        let Some(mark) = schema["x-mcp-header"].as_str() else { continue };
        let header = format!("Mcp-Param-{mark}");
        match arguments.and_then(|arguments| arguments.get(name)).filter(|value| !value.is_null()) {
            Some(value) => encoded(headers, &header, value)?,
            None if headers.contains_key(&header) => return Err(mismatch(format!("{header} mirrors nothing in the body"))),
            None => {}
        }
    }
    Ok(())
}

/// As `mirrors`, for a header that may be encoded.
fn encoded(headers: &HeaderMap, header: &str, body: &Value) -> Result<(), Value> {
    let value = headers.get(header).ok_or_else(|| mismatch(format!("{header} is missing")))?;
    let value = value.to_str().map_err(|_| mismatch(format!("{header} has characters that no header may have")))?;
    let inner = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let decoded = match inner {
        Some(inner) => {
            let bytes = STANDARD.decode(inner).map_err(|_| mismatch(format!("{header} is not Base64")))?;
            String::from_utf8(bytes).map_err(|_| mismatch(format!("{header} is not UTF-8")))?
        }
        None => value.to_owned(),
    };
    let is_same = match body {
        Value::String(text) => *text == decoded,
        // "Compare the header value and the body value numerically rather than as strings."
        Value::Number(number) => decoded.parse::<f64>().ok() == number.as_f64(),
        other => *other == decoded,
    };
    if is_same { Ok(()) } else { Err(mismatch(format!("{header} is '{decoded}', the body says {body}"))) }
}

fn mismatch(what: String) -> Value {
    json!({ "code": HEADER_MISMATCH, "message": format!("Header mismatch: {what}") })
}
