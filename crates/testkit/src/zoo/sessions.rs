//! Broken servers whose sessions over HTTP are wrong.

use super::deviation::Deviation;
use super::http::renumber;
use super::internal_deviation::InternalDeviation;
use super::server::{Part, Response, Server};
use super::{BrokenServer, HTTP, LEGACY, SSE, broken_server};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

pub(super) const BROKEN_SERVERS: &[BrokenServer] = &[
    broken_server(
        "session-id-with-blank",
        "puts a blank into session ids",
        "session-id-is-visible-ascii",
        HTTP,
        LEGACY,
        Deviation::SessionId(|_| format!("zoo {}", Uuid::new_v4())),
    ),
    broken_server(
        "session-id-with-umlaut",
        "puts an umlaut into session ids",
        "session-id-is-visible-ascii",
        HTTP,
        LEGACY,
        Deviation::SessionId(|_| format!("gehög-{}", Uuid::new_v4())),
    ),
    broken_server(
        "session-id-in-latin-1",
        "puts an umlaut into session ids, in a byte that is no UTF-8",
        "session-id-is-visible-ascii",
        HTTP,
        LEGACY,
        Deviation::Wire(|part, mut bytes| {
            const HEADER: &[u8] = b"mcp-session-id: ";
            let value = bytes.windows(HEADER.len()).position(|window| window == HEADER).map(|start| start + HEADER.len());
            if let (Part::Head, Some(value)) = (part, value) {
                bytes[value] = 0xf6;
            }
            bytes
        }),
    ),
    broken_server(
        "one-session-id",
        "gives all clients the same session id",
        "session-ids-differ",
        HTTP,
        LEGACY,
        Deviation::SessionId(|_| "0b7c1f52-7d1e-4a36-9c55-3f0e8d2a6b91".to_owned()),
    ),
    broken_server("session-ids-count", "counts its sessions", "session-id-is-unguessable", HTTP, LEGACY, Deviation::SessionId(numbered)),
    broken_server(
        "session-ids-are-short",
        "gives session ids of four digits",
        "session-id-is-unguessable",
        HTTP,
        LEGACY,
        Deviation::SessionId(|_| Uuid::new_v4().simple().to_string()[..4].to_owned()),
    ),
    broken_server(
        "session-id-changes",
        "names a new session with each response",
        "session-id-does-not-change",
        HTTP,
        LEGACY,
        Deviation::Response(|request, response| {
            if request.header("mcp-session-id").is_some() && response.status < 300 {
                response.set("mcp-session-id", &Uuid::new_v4().to_string());
            }
        }),
    ),
    broken_server(
        "unknown-session-gets-400",
        "answers with 400 for a session that never was",
        "session-unknown-gets-404",
        HTTP,
        LEGACY,
        Deviation::Internal(InternalDeviation::UnknownSessionsGet400),
    ),
    broken_server(
        "unknown-session-served",
        "serves whoever invents a session id",
        "session-unknown-gets-404",
        HTTP,
        LEGACY,
        Deviation::Internal(InternalDeviation::UnknownSessionsServed),
    ),
    broken_server(
        "ended-session-gets-400",
        "answers with 400 for a session that was deleted",
        "session-ended-gets-404",
        HTTP,
        LEGACY,
        Deviation::Internal(InternalDeviation::EndedSessionsGet400),
    ),
    broken_server(
        "ended-session-served",
        "does not end a session that is deleted",
        "session-ended-gets-404",
        HTTP,
        LEGACY,
        Deviation::Internal(InternalDeviation::SessionsOutliveTheirEnd),
    ),
    broken_server(
        "ended-session-opens-stream",
        "opens event streams in sessions that were deleted, where nothing will ever come",
        "session-ended-gets-404",
        HTTP,
        LEGACY,
        Deviation::Internal(InternalDeviation::StreamsInEndedSessions),
    ),
    broken_server(
        "missing-session-served",
        "serves requests that name no session",
        "session-missing-gets-400",
        HTTP,
        LEGACY,
        Deviation::Internal(InternalDeviation::MissingSessionsServed),
    ),
    broken_server(
        "missing-session-gets-422",
        "answers with 422 where the session id is missing",
        "session-missing-gets-400",
        HTTP,
        LEGACY,
        Deviation::Response(|request, response| {
            let names_none = request.header("mcp-session-id").is_none();
            if names_none
                && request.method == "POST"
                && serde_json::from_slice::<serde_json::Value>(&request.body).is_ok_and(|message| message.is_object())
            {
                renumber(response, 400, 422);
            }
        }),
    ),
    broken_server(
        "session-header-has-a-case",
        "finds Mcp-Session-Id and MCP-Protocol-Version only in lower case",
        "header-names-are-case-insensitive",
        HTTP,
        LEGACY,
        Deviation::Rejects(|request| {
            let is_missed = |name: &str| {
                let is_other = |other: &str| other != name && other.eq_ignore_ascii_case(name);
                request.headers.iter().any(|(other, _)| is_other(other))
            };
            let misses_one = ["mcp-session-id", "mcp-protocol-version"].into_iter().any(is_missed);
            misses_one.then(|| Response::text(400, "Mcp-Session-Id is missing"))
        }),
    ),
    broken_server(
        "session-in-cookie",
        "tells the session id in a cookie, and in no header of its own",
        "requests-continue-to-be-served",
        HTTP,
        LEGACY,
        Deviation::Response(|_, response| {
            if let Some((name, value)) = response.headers.iter_mut().find(|(name, _)| name == "mcp-session-id") {
                *name = "set-cookie".to_owned();
                *value = format!("session={value}");
            }
        }),
    ),
    broken_server(
        "session-lost-now-and-then",
        "does not know a session at each third request, as behind a load balancer without affinity",
        "requests-continue-to-be-served",
        HTTP,
        LEGACY,
        Deviation::Rejects(|request| {
            static REQUESTS: AtomicUsize = AtomicUsize::new(0);
            request.header("mcp-session-id")?;
            let count = REQUESTS.fetch_add(1, Ordering::Relaxed);
            let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32001, "message": "Session not found" } });
            (count % 3 == 2).then(|| Response::json(404, &error))
        }),
    ),
    broken_server(
        "session-is-lost-after-ten-requests",
        "forgets each session after ten requests",
        "requests-continue-to-be-served",
        HTTP,
        LEGACY,
        Deviation::Rejects(|request| {
            static REQUESTS: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());
            let session = request.header("mcp-session-id")?;
            let mut requests = REQUESTS.lock().unwrap_or_else(PoisonError::into_inner);
            let count = requests.entry(session.to_owned()).or_default();
            *count += 1;
            let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32001, "message": "Session not found" } });
            (*count > 10).then(|| Response::json(404, &error))
        }),
    ),
    broken_server(
        "new-session-ends-others",
        "keeps one session in a variable, so that whoever connects ends that of everybody else",
        "sessions-exist-side-by-side",
        HTTP,
        LEGACY,
        Deviation::Internal(InternalDeviation::NewSessionsEndOthers),
    ),
    broken_server(
        "delete-ends-all-sessions",
        "ends the sessions of all clients when one of them is deleted",
        "session-end-spares-others",
        HTTP,
        LEGACY,
        Deviation::Internal(InternalDeviation::EndsAllSessions),
    ),
    broken_server(
        "second-client-gets-500",
        "fails with 500 at the handshake of another client as long as there is a session",
        "second-client-is-not-5xx",
        HTTP,
        LEGACY,
        Deviation::Rejects(|request| {
            static SESSION: AtomicBool = AtomicBool::new(false);
            if request.method == "DELETE" {
                SESSION.store(false, Ordering::Relaxed);
            }
            let begins = request.method == "POST" && request.body.windows(12).any(|window| window == b"\"initialize\"");
            (begins && SESSION.swap(true, Ordering::Relaxed)).then(|| Response::text(500, "already connected to a transport"))
        }),
    ),
    broken_server(
        "second-client-refused",
        "keeps one session in a variable, and takes no other client as long as that is there",
        "sessions-exist-side-by-side",
        HTTP,
        LEGACY,
        Deviation::Rejects(|request| {
            static SESSION: AtomicBool = AtomicBool::new(false);
            if request.method == "DELETE" {
                SESSION.store(false, Ordering::Relaxed);
            }
            let begins = request.method == "POST" && request.body.windows(12).any(|window| window == b"\"initialize\"");
            let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32600, "message": "Server already initialized" } });
            (begins && SESSION.swap(true, Ordering::Relaxed)).then(|| Response::json(400, &error))
        }),
    ),
    broken_server(
        "answers-go-to-the-last",
        "keeps one stream in a variable, so that every response goes to the client that came last",
        "sse-response-is-on-session-stream",
        SSE,
        LEGACY,
        Deviation::Internal(InternalDeviation::AnswersGoToTheLast),
    ),
    broken_server(
        "answers-go-to-all",
        "sends every response on all streams",
        "sse-response-is-on-session-stream",
        SSE,
        LEGACY,
        Deviation::Internal(InternalDeviation::AnswersGoToAll),
    ),
    broken_server(
        "streams-count",
        "counts its streams, and names the number in the endpoint",
        "sse-session-is-unguessable",
        SSE,
        LEGACY,
        Deviation::SessionId(numbered),
    ),
    broken_server(
        "unknown-stream-accepted",
        "takes messages to endpoints that no stream has",
        "sse-unknown-session-is-refused",
        SSE,
        LEGACY,
        Deviation::Response(|request, response| {
            if request.method == "POST" {
                renumber(response, 404, 202);
            }
        }),
    ),
];

fn numbered(server: &Server) -> String {
    let mut memory = server.memory();
    let count = memory.as_u64().unwrap_or_default() + 1;
    *memory = json!(count);
    format!("session-{count}")
}
