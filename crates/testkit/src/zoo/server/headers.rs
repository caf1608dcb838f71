//! The headers that mirror a modern message (2026-07-28, basic/transports/streamable-http#request-metadata).

use super::message::{Received, RpcError};
use super::modern;
use crate::raw_http::Request;
use crate::zoo::InternalDeviation;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

const HEADER_MISMATCH: i64 = -32020;

/// Checks the revision, in the header and in `_meta`, and all headers that mirror the message.
///
/// # Errors
/// One is missing, malformed, or says something else.
pub(super) fn check(received: &Received, request: &Request) -> Result<(), RpcError> {
    let server = &received.server;
    modern::check_handshake(&received.message)?;
    modern::check_meta(&received.message)?;
    let asked = modern::version(&received.message).unwrap_or_default();
    if !server.deviates(InternalDeviation::VersionHeaderUnchecked) {
        mirrors(request, "MCP-Protocol-Version", asked)?;
    }
    modern::check_version(asked)?;
    let is_free_call = received.method() == "tools/call" && server.deviates(InternalDeviation::MethodHeaderUncheckedForCalls);
    let is_free_subscription =
        received.method() == "subscriptions/listen" && server.deviates(InternalDeviation::MethodHeaderUncheckedForSubscriptions);
    if !server.deviates(InternalDeviation::MethodHeaderUnchecked) && !is_free_call && !is_free_subscription {
        mirrors(request, "Mcp-Method", received.method())?;
    }
    let name = match received.method() {
        "tools/call" | "prompts/get" => &received.params()["name"],
        "resources/read" => &received.params()["uri"],
        _ => return Ok(()),
    };
    if let Some(name) = name.as_str()
        && !server.deviates(InternalDeviation::NameHeaderUnchecked)
    {
        let is_alike = request.header("Mcp-Name").is_some_and(|value| value.eq_ignore_ascii_case(name));
        if !(is_alike && server.deviates(InternalDeviation::NameHeaderInAnyCase)) {
            encoded(request, "Mcp-Name", &Value::from(name), server.deviates(InternalDeviation::Base64Undecoded))?;
        }
    }
    if received.method() == "tools/call" && !server.deviates(InternalDeviation::ParameterHeadersUnchecked) {
        parameters(received, request)?;
    }
    Ok(())
}

/// The header has to be there and to say exactly this.
fn mirrors(request: &Request, header: &str, body: &str) -> Result<(), RpcError> {
    match request.header(header) {
        Some(value) if value == body => Ok(()),
        Some(value) => Err(mismatch(format!("{header} is '{value}', the body says '{body}'"))),
        None => Err(mismatch(format!("{header} is missing"))),
    }
}

/// The headers of the arguments that the tool marks with `x-mcp-header`. Those of this server are all at the top.
fn parameters(received: &Received, request: &Request) -> Result<(), RpcError> {
    let Some(tool) = received.server.catalogue.tool(received.name()) else { return Ok(()) };
    for (name, schema) in tool["inputSchema"]["properties"].as_object().into_iter().flatten() {
        let Some(mark) = schema["x-mcp-header"].as_str() else { continue };
        let value = &received.params()["arguments"][name];
        let header = format!("Mcp-Param-{mark}");
        let wants_null =
            received.server.deviates(InternalDeviation::ParameterExpectedForNull) && received.params()["arguments"].get(name).is_some();
        if received.server.deviates(InternalDeviation::ParameterInAnyLetters)
            && value.as_str().is_some_and(|value| request.header(&header) == Some(value))
        {
            continue;
        }
        if !value.is_null() || wants_null {
            // Written in another way, it is another text.
            let as_text = received.server.deviates(InternalDeviation::ParameterNumbersAreTexts) && value.is_number();
            let value = if as_text { &Value::from(value.to_string()) } else { value };
            encoded(request, &header, value, false)?;
        } else if request.header(&header).is_some() {
            return Err(mismatch(format!("{header} mirrors nothing in the body")));
        }
    }
    Ok(())
}

/// As `mirrors`, for a header that may be encoded.
fn encoded(request: &Request, header: &str, body: &Value, literally: bool) -> Result<(), RpcError> {
    let value = request.header(header).ok_or_else(|| mismatch(format!("{header} is missing")))?;
    if !value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
        return Err(mismatch(format!("{header} has characters that no header may have")));
    }
    let inner = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let decoded = match inner {
        Some(inner) if !literally => {
            let bytes = STANDARD.decode(inner).map_err(|_| mismatch(format!("{header} is no Base64")))?;
            String::from_utf8(bytes).map_err(|_| mismatch(format!("{header} is no UTF-8")))?
        }
        _ => value.to_owned(),
    };
    let same = match body {
        Value::String(text) => *text == decoded,
        // "Compare the header value and the body value numerically rather than as strings."
        Value::Number(number) => decoded.parse::<f64>().ok() == number.as_f64(),
        other => other.to_string().as_str() == decoded,
    };
    if same { Ok(()) } else { Err(mismatch(format!("{header} is '{decoded}', the body says {body}"))) }
}

fn mismatch(what: String) -> RpcError {
    RpcError::new(HEADER_MISMATCH, format!("Header mismatch: {what}"))
}
