//! Broken servers that write server-sent events wrongly. Most do so with the list of tools only, so that the rest of a
//! conversation can be judged.

use super::changes::lists_tools;
use super::deviation::{Deviation, endpoint, event};
use super::framing::in_latin_1;
use super::internal_deviation::InternalDeviation;
use super::server::Part;
use super::{BOTH, BrokenServer, HTTP, LEGACY, SSE, WEB, broken_server};
use serde_json::Value;
use std::thread;
use std::time::Duration;
use uuid::Uuid;

/// Until the next heartbeat.
const HEARTBEAT: Duration = Duration::from_millis(1200);

pub(super) const BROKEN_SERVERS: &[BrokenServer] = &[
    broken_server(
        "data-prefix-missing",
        "writes the message without `data:`",
        "sse-lines-are-fields-or-comments",
        WEB,
        BOTH,
        Deviation::Event(|message, json| match lists_tools(message) {
            true => format!("event: message\n{json}\n\n").into_bytes(),
            false => event(&json),
        }),
    ),
    broken_server(
        "line-ends-escaped",
        "writes a backslash and an `n` in place of each line feed of an event",
        "sse-lines-are-fields-or-comments",
        HTTP,
        BOTH,
        Deviation::Event(|message, json| match lists_tools(message) {
            true => format!("event: message\\ndata: {json}\\n\\n").into_bytes(),
            false => event(&json),
        }),
    ),
    broken_server(
        "bare-lines",
        "writes the message as a line, as stdio has it",
        "sse-lines-are-fields-or-comments",
        WEB,
        BOTH,
        Deviation::Event(|message, json| match lists_tools(message) {
            true => format!("{json}\n").into_bytes(),
            false => event(&json),
        }),
    ),
    broken_server(
        "blank-line-missing",
        "does not end an event with a blank line",
        "sse-event-is-terminated",
        WEB,
        BOTH,
        Deviation::Event(|message, json| match lists_tools(message) {
            true => format!("event: message\ndata: {json}\n").into_bytes(),
            false => event(&json),
        }),
    ),
    broken_server(
        "blank-lines-missing",
        "ends no event with a blank line",
        "sse-event-is-terminated",
        SSE,
        LEGACY,
        Deviation::Wire(|part, bytes| match part {
            Part::Chunk => without_blank_line(&bytes),
            _ => bytes,
        }),
    ),
    broken_server(
        "blank-line-from-heartbeat",
        "does not end an event with a blank line, so that it lasts until the next heartbeat",
        "sse-event-is-terminated",
        WEB,
        LEGACY,
        Deviation::Event(|message, json| match lists_tools(message) {
            true => {
                thread::sleep(HEARTBEAT);
                format!("event: message\ndata: {json}\n: heartbeat\n\n").into_bytes()
            }
            false => event(&json),
        }),
    ),
    broken_server(
        "heartbeat-event",
        "sends a heartbeat as an event",
        "sse-data-is-one-message",
        WEB,
        BOTH,
        Deviation::Event(|message, json| match lists_tools(message) {
            true => [b"data: ping\n\n".as_slice(), &event(&json)].concat(),
            false => event(&json),
        }),
    ),
    broken_server(
        "heartbeat-object",
        "sends an empty object as a heartbeat",
        "sse-data-is-one-message",
        WEB,
        BOTH,
        Deviation::Event(|message, json| match lists_tools(message) {
            true => [b"data: {}\n\n".as_slice(), &event(&json)].concat(),
            false => event(&json),
        }),
    ),
    broken_server(
        "message-in-two-events",
        "spreads a message over two events",
        "sse-data-is-one-message",
        WEB,
        BOTH,
        Deviation::Event(|message, json| match (lists_tools(message), json.split_once("\"tools\"")) {
            (true, Some((first, second))) => [event(first), event(&format!("\"tools\"{second}"))].concat(),
            _ => event(&json),
        }),
    ),
    broken_server(
        "done-event",
        "ends with the event `[DONE]`, as completions of language models do",
        "sse-data-is-one-message",
        WEB,
        BOTH,
        Deviation::Event(|message, json| match lists_tools(message) {
            true => [event(&json).as_slice(), b"data: [DONE]\n\n"].concat(),
            false => event(&json),
        }),
    ),
    broken_server(
        "event-named-otherwise",
        "names an event `response`",
        "sse-event-is-named-message",
        WEB,
        BOTH,
        Deviation::Event(|message, json| match lists_tools(message) {
            true => format!("event: response\ndata: {json}\n\n").into_bytes(),
            false => event(&json),
        }),
    ),
    broken_server(
        "events-in-latin-1",
        "writes a description in Latin-1",
        "sse-is-utf8",
        WEB,
        BOTH,
        Deviation::Event(|message, json| if lists_tools(message) { in_latin_1(event(&json)) } else { event(&json) }),
    ),
    broken_server(
        "events-with-carriage-returns",
        "ends the lines of events with a carriage return and a line feed",
        "sse-ends-lines-with-lf",
        WEB,
        BOTH,
        Deviation::Event(|_: &Value, json| format!("event: message\r\ndata: {json}\r\n\r\n").into_bytes()),
    ),
    broken_server(
        "stream-unprimed",
        "gives its messages ids, and begins with the first of them",
        "sse-resumable-stream-starts-with-id",
        HTTP,
        LEGACY,
        Deviation::Event(|message, json| match lists_tools(message) {
            true => format!("id: {}\ndata: {json}\n\n", Uuid::new_v4()).into_bytes(),
            false => event(&json),
        }),
    ),
    broken_server(
        "event-ids-repeat",
        "gives all events the same id",
        "sse-event-ids-are-unique",
        HTTP,
        LEGACY,
        Deviation::Event(|_: &Value, json| format!("event: message\nid: 1\ndata: {json}\n\n").into_bytes()),
    ),
    broken_server(
        "resumes-all-streams",
        "brings the messages of all streams to whoever resumes one",
        "sse-resumed-stream-has-only-its-messages",
        HTTP,
        LEGACY,
        Deviation::Internal(InternalDeviation::ResumesAllStreams),
    ),
    broken_server(
        "streams-stay-open",
        "does not end an event stream with the answer",
        "sse-stream-ends-after-response",
        HTTP,
        BOTH,
        Deviation::Internal(InternalDeviation::StreamsStayOpen),
    ),
    broken_server(
        "streams-of-calls-stay-open",
        "does not end the event stream of a call with the answer, and those of lists only",
        "sse-stream-ends-after-response",
        HTTP,
        BOTH,
        Deviation::Internal(InternalDeviation::StreamsOfCallsStayOpen),
    ),
    broken_server(
        "endpoint-late",
        "says something else before it tells the endpoint",
        "sse-endpoint-comes-first",
        SSE,
        LEGACY,
        Deviation::Endpoint(|_, path| [event(r#"{"jsonrpc":"2.0","id":"first","method":"ping"}"#), endpoint(path)].concat()),
    ),
    broken_server(
        "endpoint-unnamed",
        "tells the endpoint in an event without a name",
        "sse-endpoint-comes-first",
        SSE,
        LEGACY,
        Deviation::Endpoint(|_, path| format!("data: {path}\n\n").into_bytes()),
    ),
    broken_server(
        "endpoint-in-quotes",
        "puts the endpoint into quotes, as JSON has texts",
        "sse-endpoint-comes-first",
        SSE,
        LEGACY,
        Deviation::Endpoint(|_, path| endpoint(&Value::from(path).to_string())),
    ),
    broken_server(
        "endpoint-in-json",
        "tells the endpoint as a member of an object",
        "sse-endpoint-comes-first",
        SSE,
        LEGACY,
        Deviation::Endpoint(|_, path| endpoint(&serde_json::json!({ "uri": path }).to_string())),
    ),
    broken_server(
        "endpoint-elsewhere",
        "tells an endpoint of another origin",
        "sse-endpoint-has-same-origin",
        SSE,
        LEGACY,
        Deviation::Endpoint(|host, path| {
            // The same server under its other name, so that the rest works.
            let other =
                if host.starts_with("localhost") { host.replace("localhost", "127.0.0.1") } else { host.replace("127.0.0.1", "localhost") };
            endpoint(&format!("http://{other}{path}"))
        }),
    ),
    broken_server(
        "post-not-accepted",
        "answers a message with 500, and does what it asks",
        "sse-post-is-accepted",
        SSE,
        LEGACY,
        Deviation::Response(|request, response| {
            if String::from_utf8_lossy(&request.body).contains("\"tools/list\"") {
                response.status = 500;
            }
        }),
    ),
];

/// A chunk without the blank line at its end.
fn without_blank_line(chunk: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(chunk);
    let content = text.split_once("\r\n").and_then(|(_, content)| content.strip_suffix("\n\r\n")).unwrap_or_default();
    format!("{:x}\r\n{content}\r\n", content.len()).into_bytes()
}
