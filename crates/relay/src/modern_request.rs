//! What every request of 2026-07-28 carries: its `_meta`, and over HTTP the headers that mirror it. Knows one message.

use super::mock::era;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use mcproof_protocol::Revision;
use mcproof_protocol::error_code::{HEADER_MISMATCH, INVALID_PARAMS, UNSUPPORTED_VERSION};
pub(crate) use mcproof_protocol::meta::LOG_LEVEL;
use serde_json::{Value, json};

pub(crate) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// Checks what a request says of itself (basic#_meta).
///
/// # Errors
/// The error object; over HTTP it goes with status 400.
pub(crate) fn check_meta(method: &str, params: &Value) -> Result<(), Value> {
    let meta = |key: &str| params.get("_meta").and_then(|meta| meta.get(key));
    let unsupported = |asked: &str| {
        let data = json!({ "supported": [Revision::MODERN.as_str()], "requested": asked });
        Err(json!({ "code": UNSUPPORTED_VERSION, "message": "Unsupported protocol version", "data": data }))
    };
    let invalid = |message: &str| Err(json!({ "code": INVALID_PARAMS, "message": message }));
    let version = meta(VERSION);
    if method == "initialize" && version.is_none() {
        return unsupported(params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default());
    }
    let Some(version) = version.and_then(Value::as_str) else {
        return invalid("`_meta` must have `io.modelcontextprotocol/protocolVersion`, a string");
    };
    if version != Revision::MODERN.as_str() {
        return unsupported(version);
    }
    if !meta(CAPABILITIES).is_some_and(Value::is_object) {
        return invalid("`_meta` must have `io.modelcontextprotocol/clientCapabilities`, an object");
    }
    if meta(LOG_LEVEL).is_some_and(|level| level.as_str().and_then(era::log_rank).is_none()) {
        return invalid("unknown log level");
    }
    Ok(())
}

/// Checks all headers that mirror the message (basic/transports/streamable-http#request-metadata). What the message itself lacks is told
/// later. `tool` finds the description of a tool.
///
/// # Errors
/// One is missing, malformed, or says something else: the error object.
pub(crate) fn check_headers(tool: impl Fn(&str) -> Option<Value>, method: &str, params: &Value, headers: &HeaderMap) -> Result<(), Value> {
    let Some(version) = params.get("_meta").and_then(|meta| meta.get(VERSION)).and_then(Value::as_str) else { return Ok(()) };
    mirrors(headers, "MCP-Protocol-Version", version)?;
    if version != Revision::MODERN.as_str() {
        return Ok(());
    }
    mirrors(headers, "Mcp-Method", method)?;
    let name = match method {
        "tools/call" | "prompts/get" => params.get("name"),
        "resources/read" => params.get("uri"),
        _ => return Ok(()),
    };
    if let Some(name) = name.filter(|name| name.is_string()) {
        encoded(headers, "Mcp-Name", name)?;
    }
    match method {
        "tools/call" => parameters(tool, params, headers),
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
fn parameters(tool: impl Fn(&str) -> Option<Value>, params: &Value, headers: &HeaderMap) -> Result<(), Value> {
    let tool = params.get("name").and_then(Value::as_str).and_then(tool);
    let Some(tool) = tool else { return Ok(()) };
    let arguments = params.get("arguments");
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
