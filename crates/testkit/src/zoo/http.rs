//! Broken servers that send wrong HTTP responses.

use super::changes::lists_tools;
use super::deviation::Deviation;
use super::internal_deviation::InternalDeviation;
use super::server::{Body, Part, Response};
use super::{BOTH, BrokenServer, HTTP, LEGACY, MODERN, SSE, WEB, broken_server};
use crate::raw_http::Request;
use serde_json::Value;

pub(super) const BROKEN_SERVERS: &[BrokenServer] = &[
    broken_server(
        "page-for-calls",
        "answers every call of a tool with status 500 and a page of HTML",
        "request-gets-response",
        HTTP,
        BOTH,
        Deviation::Response(|request, response| {
            if asks(request, "tools/call") {
                *response = Response::text(500, "<h1>Internal Server Error</h1>");
                response.set("content-type", "text/html");
            }
        }),
    ),
    broken_server(
        "json-as-html",
        "calls the list of prompts text/html",
        "http-response-content-type",
        HTTP,
        BOTH,
        Deviation::Response(|request, response| {
            if asks(request, "prompts/list") {
                response.set("content-type", "text/html");
            }
        }),
    ),
    broken_server(
        "json-as-nothing",
        "does not tell the content type of the list of prompts",
        "http-response-content-type",
        HTTP,
        BOTH,
        Deviation::Response(|request, response| {
            if asks(request, "prompts/list") {
                response.remove("content-type");
            }
        }),
    ),
    broken_server(
        "events-as-text",
        "calls an event stream text/plain",
        "http-response-content-type",
        HTTP,
        BOTH,
        Deviation::Response(|request, response| {
            if asks(request, "tools/list") && response.streams() {
                response.set("content-type", "text/plain");
            }
        }),
    ),
    broken_server(
        "events-as-json",
        "calls every event stream that answers a request application/json",
        "http-body-is-json",
        HTTP,
        BOTH,
        Deviation::Response(|request, response| {
            if request.method == "POST" && response.streams() {
                response.set("content-type", "application/json");
            }
        }),
    ),
    broken_server(
        "events-declared-as-latin-1",
        "says that its event streams are ISO-8859-1, as older servlets do by default",
        "http-charset-is-utf-8",
        WEB,
        BOTH,
        Deviation::Response(|_, response| {
            if response.streams() {
                response.set("content-type", "text/event-stream;charset=ISO-8859-1");
            }
        }),
    ),
    broken_server(
        "json-in-utf-16",
        "says that the list of prompts is UTF-16",
        "http-charset-is-utf-8",
        HTTP,
        BOTH,
        Deviation::Response(|request, response| {
            if asks(request, "prompts/list") {
                response.set("content-type", "application/json; charset=utf-16");
            }
        }),
    ),
    broken_server(
        "encoding-that-is-none",
        "says that the list of prompts is compressed, which it is not",
        "http-content-encoding-is-right",
        HTTP,
        BOTH,
        Deviation::Response(|request, response| {
            if asks(request, "prompts/list") {
                response.set("content-encoding", "gzip");
            }
        }),
    ),
    broken_server(
        "json-guarded",
        "puts a line before the JSON of a list that keeps scripts from reading it",
        "http-body-is-json",
        HTTP,
        BOTH,
        Deviation::Response(|request, response| {
            if let (true, Body::Bytes(bytes)) = (asks(request, "prompts/list"), &mut response.body) {
                bytes.splice(0..0, *b")]}',\n");
            }
        }),
    ),
    broken_server(
        "header-name-malformed",
        "sends a header whose name holds blanks with the list of prompts",
        "http-response-is-well-formed",
        HTTP,
        BOTH,
        Deviation::Response(|request, response| {
            if asks(request, "prompts/list") {
                // The name of a header cannot hold a blank.
                response.headers.push(("x served by".to_owned(), "zoo".to_owned()));
            }
        }),
    ),
    broken_server(
        "content-type-twice",
        "sends the content type of a list twice, as a framework and a middleware do",
        "http-header-is-not-repeated",
        HTTP,
        BOTH,
        Deviation::Response(|request, response| {
            if asks(request, "prompts/list") {
                response.headers.push(("content-type".to_owned(), "application/json".to_owned()));
            }
        }),
    ),
    broken_server(
        "get-events-as-text",
        "calls the stream of HTTP+SSE text/plain",
        "http-response-content-type",
        SSE,
        LEGACY,
        Deviation::Response(|_, response| {
            if response.streams() {
                response.set("content-type", "text/plain");
            }
        }),
    ),
    broken_server(
        "result-with-201",
        "answers with status 201",
        "http-result-has-status-200",
        HTTP,
        BOTH,
        Deviation::Response(|request, response| {
            if asks(request, "prompts/list") {
                response.status = 201;
            }
        }),
    ),
    broken_server(
        "result-with-500",
        "answers with status 500, and a result",
        "http-result-has-status-200",
        HTTP,
        BOTH,
        Deviation::Response(|request, response| {
            if asks(request, "prompts/list") {
                response.status = 500;
            }
        }),
    ),
    broken_server(
        "unknown-method-gets-400",
        "refuses an unknown method with status 400",
        "http-error-has-status-200",
        HTTP,
        LEGACY,
        Deviation::Response(|request, response| {
            if asks(request, "mcproof/no-such-method") {
                response.status = 400;
            }
        }),
    ),
    broken_server(
        "refusals-as-text",
        "calls the error for a method of earlier revisions text/plain",
        "http-response-content-type",
        HTTP,
        MODERN,
        Deviation::Response(|request, response| {
            if asks(request, "logging/setLevel") {
                response.set("content-type", "text/plain");
            }
        }),
    ),
    broken_server(
        "refusals-twice",
        "writes the error for a method of earlier revisions twice",
        "http-body-is-json",
        HTTP,
        MODERN,
        Deviation::Response(|request, response| {
            if let (true, Body::Bytes(bytes)) = (asks(request, "logging/setLevel"), &mut response.body) {
                bytes.extend_from_within(..);
            }
        }),
    ),
    broken_server(
        "names-with-semicolons",
        "puts a semicolon between the names in `Vary`",
        "http-list-header-is-well-formed",
        WEB,
        BOTH,
        Deviation::Response(|_, response| {
            if response.header("vary").is_some() {
                response.set("vary", "Origin; Accept");
            }
        }),
    ),
    broken_server(
        "cancellation-gets-nothing",
        "does not respond to the POST of a cancellation",
        "http-notification-gets-202",
        HTTP,
        BOTH,
        Deviation::Raw(leave_cancellations),
    ),
    broken_server(
        "cancellation-gets-nothing-over-sse",
        "does not respond to the POST of a cancellation",
        "sse-post-is-accepted",
        SSE,
        LEGACY,
        Deviation::Raw(leave_cancellations),
    ),
    broken_server(
        "cancellation-gets-400",
        "answers each cancellation with 400",
        "http-notification-gets-202",
        HTTP,
        BOTH,
        Deviation::Rejects(|request| asks(request, "notifications/cancelled").then(|| Response::new(400))),
    ),
    broken_server(
        "notification-gets-200",
        "answers notifications with 200",
        "http-notification-gets-202",
        HTTP,
        BOTH,
        Deviation::Response(|_, response| renumber(response, 202, 200)),
    ),
    broken_server(
        "response-gets-200",
        "answers the response to its ping with 200 and an empty object",
        "http-notification-gets-202",
        HTTP,
        LEGACY,
        Deviation::Internal(InternalDeviation::AnswersGet200),
    ),
    broken_server(
        "notification-gets-204",
        "answers notifications with 204",
        "http-notification-gets-202",
        HTTP,
        BOTH,
        Deviation::Response(|_, response| renumber(response, 202, 204)),
    ),
    broken_server(
        "notification-gets-result",
        "answers notifications with 202 and a result",
        "http-notification-response-is-empty",
        HTTP,
        BOTH,
        Deviation::Response(|_, response| {
            if response.status == 202 {
                response.set("content-type", "application/json");
                response.body = Body::Bytes(br#"{"jsonrpc":"2.0","id":null,"result":{}}"#.to_vec());
            }
        }),
    ),
    broken_server(
        "notification-gets-line-end",
        "answers notifications with 202 and a line end",
        "http-notification-response-is-empty",
        HTTP,
        BOTH,
        Deviation::Response(|_, response| {
            if response.status == 202 {
                response.body = Body::Bytes(b"\n".to_vec());
            }
        }),
    ),
    broken_server(
        "get-gets-404",
        "answers a GET with 404",
        "http-get-opens-stream-or-405",
        HTTP,
        BOTH,
        Deviation::Rejects(|request| (request.method == "GET").then(|| Response::text(404, "Cannot GET /mcp"))),
    ),
    broken_server(
        "get-gets-page",
        "answers a GET with a page",
        "http-get-opens-stream-or-405",
        HTTP,
        BOTH,
        Deviation::Rejects(|request| {
            let page = || Response {
                body: Body::Bytes(b"<!doctype html><h1>Zoo".to_vec()),
                ..Response::new(200).with("content-type", "text/html")
            };
            (request.method == "GET").then(page)
        }),
    ),
    broken_server(
        "405-without-allow",
        "does not say with status 405 which methods there are",
        "http-405-has-allow",
        HTTP,
        MODERN,
        Deviation::Response(|_, response| {
            if response.status == 405 {
                response.remove("allow");
            }
        }),
    ),
    broken_server(
        "refusal-of-no-type",
        "loses a line end after the content type of refusals",
        "http-content-type-is-media-type",
        WEB,
        BOTH,
        Deviation::Response(|_, response| {
            if (400..500).contains(&response.status) && response.header("content-type").is_some_and(|kind| kind.starts_with("text/plain")) {
                response.set("content-type", "text/plaindate: today");
            }
        }),
    ),
    broken_server(
        "discovery-gets-204",
        "responds to the discovery of the modern era with 204",
        "http-unknown-era-is-refused",
        HTTP,
        LEGACY,
        Deviation::Rejects(|request| asks(request, "server/discover").then(|| Response::new(204))),
    ),
    broken_server(
        "errors-with-404",
        "responds with 404 to the POST of an unknown method, and with the error on the stream",
        "sse-answered-post-succeeds",
        SSE,
        LEGACY,
        Deviation::Response(|request, response| {
            if response.status == 202 && asks(request, "mcproof/no-such-method") {
                response.status = 404;
            }
        }),
    ),
    broken_server(
        "unknown-stream-gets-500",
        "responds with 500 to a message for a stream that is not there",
        "sse-refused-post-is-4xx",
        SSE,
        LEGACY,
        Deviation::Response(|request, response| {
            if response.status == 404 && request.method == "POST" {
                response.status = 500;
            }
        }),
    ),
    broken_server(
        "delete-gets-no-response",
        "never responds to a DELETE",
        "http-request-gets-response",
        HTTP,
        LEGACY,
        Deviation::Rejects(|request| (request.method == "DELETE").then(never)),
    ),
    broken_server(
        "preflight-gets-no-response",
        "never responds to a preflight",
        "http-request-gets-response",
        WEB,
        BOTH,
        Deviation::Rejects(|request| (request.method == "OPTIONS").then(never)),
    ),
    broken_server(
        "delete-gets-500",
        "answers a DELETE with 500",
        "http-delete-ends-session-or-405",
        HTTP,
        BOTH,
        Deviation::Rejects(|request| (request.method == "DELETE").then(|| Response::text(500, "not implemented"))),
    ),
    broken_server(
        "unknown-version-gets-429",
        "refuses an unknown MCP-Protocol-Version as if there were too many requests",
        "http-unknown-version-gets-400",
        HTTP,
        LEGACY,
        Deviation::Response(|request, response| {
            if request.header("mcp-protocol-version").is_some_and(|version| !version.starts_with("202")) {
                renumber(response, 400, 429);
            }
        }),
    ),
    broken_server(
        "any-version-header",
        "takes any MCP-Protocol-Version",
        "http-unknown-version-gets-400",
        HTTP,
        LEGACY,
        Deviation::Internal(InternalDeviation::VersionHeaderUnchecked),
    ),
    broken_server(
        "any-version-header-on-get",
        "opens a stream for any MCP-Protocol-Version",
        "http-unknown-version-gets-400",
        HTTP,
        LEGACY,
        Deviation::Internal(InternalDeviation::VersionHeaderUncheckedForGet),
    ),
    broken_server(
        "any-version-header-on-delete",
        "ends a session for any MCP-Protocol-Version",
        "http-unknown-version-gets-400",
        HTTP,
        LEGACY,
        Deviation::Internal(InternalDeviation::VersionHeaderUncheckedForDelete),
    ),
    broken_server(
        "version-header-demanded",
        "refuses requests of a session without MCP-Protocol-Version",
        "http-version-header-is-optional",
        HTTP,
        LEGACY,
        Deviation::Rejects(|request| {
            let lacks = request.header("mcp-protocol-version").is_none() && request.header("mcp-session-id").is_some();
            (lacks && request.method == "POST").then(|| Response::text(400, "MCP-Protocol-Version is missing"))
        }),
    ),
    broken_server(
        "malformed-body-gets-500",
        "answers a body that is no JSON with 500",
        "http-malformed-body-is-4xx",
        WEB,
        BOTH,
        Deviation::Response(|request, response| {
            if is_malformed(request) {
                renumber(response, 400, 500);
            }
        }),
    ),
    broken_server(
        "malformed-body-gets-200",
        "answers a body that is no JSON with 200",
        "http-malformed-body-is-refused",
        WEB,
        BOTH,
        Deviation::Response(|request, response| {
            if is_malformed(request) {
                renumber(response, 400, 200);
            }
        }),
    ),
    broken_server(
        "any-content-type",
        "takes messages of any content type",
        "http-wrong-content-type-is-4xx",
        WEB,
        BOTH,
        Deviation::Internal(InternalDeviation::ContentTypeUnchecked),
    ),
    broken_server(
        "batch-gets-202",
        "accepts a batch, and does nothing about it",
        "http-batch-is-4xx",
        HTTP,
        BOTH,
        Deviation::Response(|request, response| {
            if request.body.starts_with(b"[") && response.status == 400 {
                *response = Response::new(202);
            }
        }),
    ),
    broken_server(
        "content-length-too-long",
        "announces more bytes than come",
        "http-body-length-is-correct",
        HTTP,
        BOTH,
        Deviation::Response(|request, response| {
            if let (true, Body::Bytes(bytes)) = (asks(request, "prompts/list"), &response.body) {
                let length = bytes.len() + 10;
                response.set("content-length", &length.to_string());
            }
        }),
    ),
    broken_server(
        "content-length-too-short",
        "announces fewer bytes than come",
        "http-body-length-is-correct",
        HTTP,
        BOTH,
        Deviation::Response(|request, response| {
            if let (true, Body::Bytes(bytes)) = (asks(request, "prompts/list"), &response.body) {
                let length = bytes.len() - 10;
                response.set("content-length", &length.to_string());
            }
        }),
    ),
    broken_server(
        "chunk-size-wrong",
        "tells the size of a chunk in decimal",
        "http-body-length-is-correct",
        HTTP,
        BOTH,
        Deviation::Wire(|part, bytes| match part {
            Part::Chunk if find(&bytes, b"\"tools\":[").is_some() => {
                let content = &bytes[find(&bytes, b"\r\n").map_or(0, |end| end + 2)..];
                [format!("{}\r\n", content.len() - 2).as_bytes(), content].concat()
            }
            _ => bytes,
        }),
    ),
    broken_server(
        "two-lengths",
        "sends an event stream in chunks, and a `Content-Length` as well",
        "http-body-length-is-correct",
        HTTP,
        BOTH,
        Deviation::Response(|request, response| {
            if asks(request, "tools/list") && response.streams() {
                response.set("content-length", "20000");
            }
        }),
    ),
    broken_server(
        "unknown-tool-gets-error-page",
        "answers a call of an unknown tool with the error page of its framework",
        "request-gets-response",
        HTTP,
        LEGACY,
        Deviation::Response(|request, response| {
            if asks(request, "tools/call")
                && [&b"no-such-thing"[..], b"no_such_tool"].iter().any(|name| find(&request.body, name).is_some())
            {
                *response = Response::text(500, "<h1>Internal Server Error</h1>");
                response.set("content-type", "text/html");
            }
        }),
    ),
    broken_server(
        "chunk-unterminated",
        "does not end the chunk with the last message of a stream that stays open",
        "http-body-length-is-correct",
        HTTP,
        MODERN,
        Deviation::Wire(|part, bytes| match part {
            Part::Chunk if find(&bytes, b"subscriptions/acknowledged").is_some() => bytes.strip_suffix(b"\r\n").unwrap_or(&bytes).to_vec(),
            _ => bytes,
        }),
    ),
    broken_server(
        "stream-breaks-off",
        "closes the connection instead of ending a chunked body",
        "http-body-length-is-correct",
        HTTP,
        BOTH,
        Deviation::Wire(|part, bytes| if part == Part::End { Vec::new() } else { bytes }),
    ),
    broken_server(
        "connection-closes",
        "closes connections without saying so",
        "http-connection-is-reusable",
        WEB,
        BOTH,
        Deviation::Internal(InternalDeviation::ConnectionsCloseUnsaid),
    ),
    broken_server(
        "wildcard-refused",
        "refuses a client that accepts anything",
        "http-accepts-wildcard",
        HTTP,
        BOTH,
        Deviation::Rejects(|request| {
            let anything = request.method == "POST" && request.header("accept") == Some("*/*");
            anything.then(|| Response::text(406, "accept application/json and text/event-stream"))
        }),
    ),
    broken_server(
        "accept-order-demanded",
        "refuses a client that names event streams before JSON in what it accepts",
        "http-accept-is-a-list",
        HTTP,
        BOTH,
        Deviation::Rejects(|request| refuse_accept(request, |accept| accept.starts_with("text/") && accept.contains("json"))),
    ),
    broken_server(
        "accept-weights-refused",
        "refuses a client that gives a weight to a media type",
        "http-accept-is-a-list",
        HTTP,
        BOTH,
        Deviation::Rejects(|request| refuse_accept(request, |accept| accept.contains(";q="))),
    ),
    broken_server(
        "accept-blank-demanded",
        "refuses a client that puts no blank between two media types",
        "http-accept-is-a-list",
        HTTP,
        BOTH,
        Deviation::Rejects(|request| refuse_accept(request, |accept| accept.contains(",a") || accept.contains(",t"))),
    ),
    broken_server(
        "chunks-refused",
        "refuses a body in chunks with 400",
        "http-accepts-chunked-body",
        HTTP,
        BOTH,
        Deviation::Rejects(|request| {
            let is_chunked = request.header("transfer-encoding").is_some();
            is_chunked.then(|| Response::text(400, "Content-Length is missing"))
        }),
    ),
    broken_server(
        "first-segment-only",
        "reads of a body what has come with its first segment",
        "message-in-pieces-is-read",
        HTTP,
        BOTH,
        Deviation::Internal(InternalDeviation::BodiesEndAtPauses),
    ),
    broken_server(
        "charset-refused",
        "refuses a JSON body whose charset is named",
        "http-accepts-charset",
        HTTP,
        BOTH,
        Deviation::Rejects(|request| {
            let is_named = request.method == "POST" && request.header("content-type").is_some_and(|kind| kind.contains("charset"));
            is_named.then(|| Response::text(415, "messages are application/json"))
        }),
    ),
    broken_server(
        "slash-redirects",
        "redirects from the path with a slash",
        "http-serves-trailing-slash",
        HTTP,
        BOTH,
        Deviation::Rejects(|request| request.path().ends_with('/').then(|| Response::new(307).with("location", "/mcp"))),
    ),
    broken_server(
        "broadcasts",
        "sends the list of tools to the stream of the GET, too",
        "http-message-is-sent-once",
        HTTP,
        LEGACY,
        Deviation::Outgoing(|received, message| {
            if lists_tools(&message) {
                received.session.send(&message);
            }
            vec![message]
        }),
    ),
    broken_server(
        "abort-kills",
        "dies when a client goes before it has its answer",
        "http-abort-is-survived",
        HTTP,
        BOTH,
        Deviation::Internal(InternalDeviation::AbortsKill),
    ),
    broken_server(
        "abort-ends-session",
        "ends the session of a client that goes before it has its answer",
        "http-abort-is-survived",
        HTTP,
        LEGACY,
        Deviation::Internal(InternalDeviation::AbortsEndSessions),
    ),
    broken_server(
        "listens-everywhere",
        "listens on all interfaces",
        "http-listens-on-loopback",
        WEB,
        BOTH,
        Deviation::Internal(InternalDeviation::ListensEverywhere),
    ),
    broken_server(
        "null-id-accepted",
        "takes a request with the id null for a notification",
        "http-null-id-is-refused",
        HTTP,
        BOTH,
        Deviation::Response(|request, response| {
            let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            if message.get("id").is_some_and(Value::is_null) && response.status == 400 {
                *response = Response::new(202);
            }
        }),
    ),
    broken_server(
        "large-body-gets-500",
        "answers a large body with 500",
        "http-large-body-is-not-5xx",
        WEB,
        BOTH,
        Deviation::Rejects(|request| (request.body.len() > 1 << 20).then(|| Response::text(500, "Internal Server Error"))),
    ),
    broken_server(
        "large-body-gets-nothing",
        "answers a large body with 200 and nothing else",
        "request-gets-response",
        HTTP,
        BOTH,
        Deviation::Rejects(|request| (request.body.len() > 2 << 20).then(|| Response::new(200))),
    ),
    broken_server(
        "buffering-allowed",
        "lets proxies buffer event streams",
        "http-stream-disables-buffering",
        HTTP,
        MODERN,
        Deviation::Response(|_, response| response.remove("x-accel-buffering")),
    ),
    broken_server(
        "body-in-latin-1",
        "writes a JSON body in Latin-1",
        "http-body-is-utf8",
        HTTP,
        BOTH,
        Deviation::Response(|request, response| {
            if let (true, Body::Bytes(bytes)) = (asks(request, "prompts/list"), &mut response.body)
                && let Some(at) = find(bytes, b"evening")
            {
                bytes[at] = 0xe8;
            }
        }),
    ),
    broken_server(
        "body-with-nan",
        "writes NaN into a JSON body, as Python's `json.dumps` does",
        "http-body-is-json",
        HTTP,
        BOTH,
        Deviation::Response(|request, response| {
            if let (true, Body::Bytes(bytes)) = (asks(request, "prompts/list"), &mut response.body)
                && let Some(at) = find(bytes, b":false")
            {
                bytes.splice(at..at + 6, *b":NaN");
            }
        }),
    ),
    broken_server(
        "progress-on-another-stream",
        "tells progress on the stream of the GET",
        "http-progress-is-on-request-stream",
        HTTP,
        LEGACY,
        Deviation::Outgoing(|received, message| match message["method"] == "notifications/progress" {
            true => {
                received.session.send(&message);
                Vec::new()
            }
            false => vec![message],
        }),
    ),
    broken_server(
        "answers-go-to-other-sessions",
        "sends each list of tools on the streams of all other sessions as well",
        "http-get-stream-has-no-responses",
        HTTP,
        LEGACY,
        Deviation::Outgoing(|received, message| {
            if message["result"].get("tools").is_some() {
                let others = received.server.all_sessions().into_iter().filter(|session| session.id != received.session.id);
                others.for_each(|session| session.send(&message));
            }
            vec![message]
        }),
    ),
    broken_server(
        "hangs-up-on-calls",
        "closes the connection of each call without a response",
        "request-gets-response",
        HTTP,
        BOTH,
        Deviation::Internal(InternalDeviation::CallsHangUp),
    ),
    broken_server(
        "hangs-up-on-notifications",
        "closes the connection of each notification without a response",
        "http-notification-gets-202",
        HTTP,
        LEGACY,
        Deviation::Internal(InternalDeviation::NotificationsHangUp),
    ),
    broken_server(
        "answers-on-another-stream",
        "answers a request on the stream of the GET",
        "http-get-stream-has-no-responses",
        HTTP,
        LEGACY,
        Deviation::Outgoing(|received, message| match received.calls("add") && message.get("result").is_some() {
            true => {
                received.session.send(&message);
                Vec::new()
            }
            false => vec![message],
        }),
    ),
];

/// Whether this is a POST with a request of that method.
pub(super) fn asks(request: &Request, method: &str) -> bool {
    let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    message["method"] == method
}

/// Refuses a POST for what it accepts.
fn refuse_accept(request: &Request, is_wrong: fn(&str) -> bool) -> Option<Response> {
    let is_refused = request.method == "POST" && request.header("accept").is_some_and(is_wrong);
    is_refused.then(|| Response::text(406, "accept application/json, text/event-stream"))
}

fn is_malformed(request: &Request) -> bool {
    request.method == "POST" && serde_json::from_slice::<Value>(&request.body).is_err()
}

/// Another status in place of this one.
pub(super) fn renumber(response: &mut Response, from: u16, to: u16) {
    if response.status == from {
        response.status = to;
    }
}

fn find(bytes: &[u8], word: &[u8]) -> Option<usize> {
    bytes.windows(word.len()).position(|window| window == word)
}

/// Longer than any client waits.
fn leave_cancellations(bytes: &[u8]) {
    let names = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
    if names(b"notifications/cancelled") && names(b"mcproof-never-asked") {
        std::thread::sleep(std::time::Duration::from_secs(60));
    }
}

/// A response that comes when no client waits for it any longer.
fn never() -> Response {
    std::thread::sleep(std::time::Duration::from_secs(60));
    Response::text(500, "too late")
}
