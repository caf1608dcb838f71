//! OTLP as JSON, with the names of the semantic conventions for MCP. A request that carries a `traceparent` in `_meta` joins the trace of
//! whoever sent it; all others of a session are one trace.

use super::ExportError;
use super::time::{after, start};
use crate::calls::{Call, CallKind, CallStatus};
use crate::manifest::{SessionInfo, SessionKey};
use crate::reader::Trace;
use crate::stream::{CallStream, Item};
use mcproof_record::Direction;
use serde_json::{Value, json};
use siphasher::sip128::{Hasher128 as _, SipHasher13};
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

/// Spans that are written together.
const GROUP: usize = 500;

/// Writes the requests and notifications of a trace as spans.
///
/// # Errors
/// If the trace cannot be read to its end, or the spans cannot be written.
pub fn write_otlp(trace: Trace, out: &mut dyn Write) -> Result<(), ExportError> {
    let manifest = trace.manifest().clone();
    let began = start(&manifest);
    let mut groups: BTreeMap<SessionKey, Vec<Value>> = BTreeMap::new();
    // Traces that were joined, by call: what happens during a call belongs there as well. Of many, the newest count.
    let mut joined: BTreeMap<u64, String> = BTreeMap::new();
    let mut is_first = true;
    write!(out, r#"{{"resourceSpans":["#)?;
    let mut stream = CallStream::new(trace);
    while let Some(item) = stream.next() {
        let Item::Call(call) = item? else { continue };
        if matches!(call.kind, CallKind::Unmatched) {
            continue;
        }
        let session = stream.session(call.session).cloned().unwrap_or_default();
        let parent = traceparent(&call);
        let own = format!("{:032x}", hash(&(&manifest.started_at, &manifest.command, call.session.0)).max(1));
        let inherited = call.parent.and_then(|parent| joined.get(&parent.0)).cloned();
        let trace_id = parent.as_ref().map(|(trace, _)| trace.clone()).or(inherited).unwrap_or_else(|| own.clone());
        if trace_id != own {
            joined.insert(call.key.0, trace_id.clone());
            if joined.len() > GROUP * 20 {
                joined.pop_first();
            }
        }
        let parent_id = parent.map(|(_, span)| span).or(call.parent.map(|parent| span_id(&own, parent.0)));
        let moment = |at: Duration| after(began, session.at + at).as_nanosecond().to_string();
        let name = call.target.as_ref().filter(|_| has_low_cardinality(&call.method));
        let mut span = json!({
            "traceId": trace_id,
            "spanId": span_id(&own, call.key.0),
            "name": name.map_or_else(|| call.method.clone(), |target| format!("{} {target}", call.method)),
            "kind": if call.direction == Direction::ToServer { 3 } else { 2 },
            "startTimeUnixNano": moment(call.start),
            "endTimeUnixNano": moment(call.end.unwrap_or(call.start)),
            "attributes": attributes(&call, &session, stream.facts(call.session)),
        });
        if let Some(parent) = parent_id {
            span["parentSpanId"] = parent.into();
        }
        if call.status.is_error() {
            span["status"] = json!({ "code": 2, "message": call.message.as_deref().unwrap_or(call.status.name()) });
        }
        let group = groups.entry(call.session).or_default();
        group.push(span);
        if group.len() >= GROUP {
            let spans = std::mem::take(group);
            write_group(out, &session, &manifest.mcproof, spans, &mut is_first)?;
        }
    }
    for (key, spans) in groups.into_iter().filter(|(_, spans)| !spans.is_empty()) {
        let session = stream.session(key).cloned().unwrap_or_default();
        write_group(out, &session, &manifest.mcproof, spans, &mut is_first)?;
    }
    out.write_all(b"\n]}\n")?;
    Ok(out.flush()?)
}

fn write_group(out: &mut dyn Write, session: &SessionInfo, version: &str, spans: Vec<Value>, is_first: &mut bool) -> std::io::Result<()> {
    let service = session.client.as_deref().unwrap_or("mcproof");
    let resource = json!({ "attributes": [text("service.name", service), text("mcproof.server", &session.server)] });
    let group = json!({ "resource": resource, "scopeSpans": [{ "scope": { "name": "mcproof", "version": version }, "spans": spans }] });
    let comma = if std::mem::take(is_first) { "" } else { "," };
    write!(out, "{comma}\n{group}")
}

fn attributes(call: &Call, session: &SessionInfo, facts: Option<&crate::calls::SessionFacts>) -> Vec<Value> {
    let mut all = Vec::new();
    let mut add = |name: &str, value: Option<&str>| all.extend(value.map(|value| text(name, value)));
    if call.kind == CallKind::Http {
        add("http.request.method", Some(&call.method));
    } else {
        add("mcp.method.name", Some(&call.method));
    }
    let revision = facts.and_then(|facts| facts.revision.as_deref()).or(session.revision.as_deref());
    add("mcp.protocol.version", revision);
    add("mcp.session.id", facts.and_then(|facts| facts.session_id.as_deref()));
    let target = call.target.as_deref();
    match call.method.as_str() {
        "tools/call" => {
            add("gen_ai.tool.name", target);
            add("gen_ai.operation.name", Some("execute_tool"));
        }
        "prompts/get" => add("gen_ai.prompt.name", target),
        method if method.starts_with("resources/") || method == "notifications/resources/updated" => add("mcp.resource.uri", target),
        _ => {}
    }
    let id = call.id.as_ref().map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned));
    add("jsonrpc.request.id", id.as_deref());
    let code = call.code.map(|code| code.to_string());
    add("rpc.response.status_code", code.as_deref());
    let http = call.http.as_ref();
    let error = match call.status {
        CallStatus::ToolError => Some("tool_error".to_owned()),
        CallStatus::RpcError => code.clone(),
        CallStatus::HttpError => http.and_then(|http| http.status).map(|status| status.to_string()),
        CallStatus::NoResponse => Some("no_response".to_owned()),
        _ => None,
    };
    add("error.type", error.as_deref());
    match session.transport.as_str() {
        "stdio" => add("network.transport", Some("pipe")),
        "http" | "sse" => {
            add("network.transport", Some("tcp"));
            add("network.protocol.name", Some("http"));
        }
        _ => {}
    }
    add("url.full", http.map(|http| http.url.as_str()));
    if let Some(status) = http.and_then(|http| http.status) {
        all.push(json!({ "key": "http.response.status_code", "value": { "intValue": status.to_string() } }));
    }
    all.push(json!({ "key": "mcproof.call", "value": { "intValue": call.key.0.to_string() } }));
    all.push(text("mcproof.status", call.status.name()));
    all
}

/// Whether what a method is about may stand in the name of a span: names may, URIs and tokens may not.
fn has_low_cardinality(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get")
}

fn text(name: &str, value: &str) -> Value {
    json!({ "key": name, "value": { "stringValue": value } })
}

/// The trace and span that a request names as its parents (W3C Trace Context).
fn traceparent(call: &Call) -> Option<(String, String)> {
    let request = call.request_json()?;
    let parent = request.pointer("/params/_meta/traceparent")?.as_str()?;
    let mut parts = parent.split('-');
    let (_, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
    let is_id = |id: &str, length: usize| {
        id.len() == length
            && id.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
            && id.bytes().any(|byte| byte != b'0')
    };
    (is_id(trace, 32) && is_id(span, 16)).then(|| (trace.to_owned(), span.to_owned()))
}

fn span_id(trace: &str, call: u64) -> String {
    let low = (hash(&(trace, call)) & u128::from(u64::MAX)).max(1);
    format!("{low:016x}")
}

fn hash(value: &impl std::hash::Hash) -> u128 {
    let mut hasher = SipHasher13::new();
    value.hash(&mut hasher);
    hasher.finish128().as_u128()
}
