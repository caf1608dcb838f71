//! Animals whose sessions over HTTP are otherwise.

use super::http::renumber;
use super::server::{Part, Server};
use super::slip::Slip;
use super::twist::Twist;
use super::{Animal, HTTP, LEGACY, SSE, animal};
use serde_json::json;
use uuid::Uuid;

pub(super) const ANIMALS: &[Animal] = &[
    animal(
        "session-id-with-blank",
        "puts a blank into session ids",
        "session-id-is-visible-ascii",
        HTTP,
        LEGACY,
        Twist::SessionId(|_| format!("zoo {}", Uuid::new_v4())),
    ),
    animal(
        "session-id-with-umlaut",
        "puts an umlaut into session ids",
        "session-id-is-visible-ascii",
        HTTP,
        LEGACY,
        Twist::SessionId(|_| format!("gehög-{}", Uuid::new_v4())),
    ),
    animal(
        "session-id-in-latin-1",
        "puts an umlaut into session ids, in a byte that is no UTF-8",
        "session-id-is-visible-ascii",
        HTTP,
        LEGACY,
        Twist::Wire(|part, mut bytes| {
            const HEADER: &[u8] = b"mcp-session-id: ";
            let value = bytes.windows(HEADER.len()).position(|window| window == HEADER).map(|start| start + HEADER.len());
            if let (Part::Head, Some(value)) = (part, value) {
                bytes[value] = 0xf6;
            }
            bytes
        }),
    ),
    animal(
        "one-session-id",
        "gives all clients the same session id",
        "session-ids-differ",
        HTTP,
        LEGACY,
        Twist::SessionId(|_| "0b7c1f52-7d1e-4a36-9c55-3f0e8d2a6b91".to_owned()),
    ),
    animal("session-ids-count", "counts its sessions", "session-id-is-unguessable", HTTP, LEGACY, Twist::SessionId(numbered)),
    animal(
        "session-ids-are-short",
        "gives session ids of four digits",
        "session-id-is-unguessable",
        HTTP,
        LEGACY,
        Twist::SessionId(|_| Uuid::new_v4().simple().to_string()[..4].to_owned()),
    ),
    animal(
        "unknown-session-gets-400",
        "answers with 400 for a session that never was",
        "session-unknown-gets-404",
        HTTP,
        LEGACY,
        Twist::Slip(Slip::UnknownSessionsGet400),
    ),
    animal(
        "unknown-session-served",
        "serves whoever invents a session id",
        "session-unknown-gets-404",
        HTTP,
        LEGACY,
        Twist::Slip(Slip::UnknownSessionsServed),
    ),
    animal(
        "ended-session-gets-400",
        "answers with 400 for a session that was deleted",
        "session-ended-gets-404",
        HTTP,
        LEGACY,
        Twist::Slip(Slip::EndedSessionsGet400),
    ),
    animal(
        "ended-session-served",
        "does not end a session that is deleted",
        "session-ended-gets-404",
        HTTP,
        LEGACY,
        Twist::Slip(Slip::SessionsOutliveTheirEnd),
    ),
    animal(
        "missing-session-served",
        "serves requests that name no session",
        "session-missing-gets-400",
        HTTP,
        LEGACY,
        Twist::Slip(Slip::MissingSessionsServed),
    ),
    animal(
        "missing-session-gets-422",
        "answers with 422 where the session id is missing",
        "session-missing-gets-400",
        HTTP,
        LEGACY,
        Twist::Response(|request, response| {
            let names_none = request.header("mcp-session-id").is_none();
            if names_none
                && request.method == "POST"
                && serde_json::from_slice::<serde_json::Value>(&request.body).is_ok_and(|message| message.is_object())
            {
                renumber(response, 400, 422);
            }
        }),
    ),
    animal(
        "answers-go-to-the-last",
        "keeps one stream in a variable, so that every response goes to the client that came last",
        "sse-response-is-on-session-stream",
        SSE,
        LEGACY,
        Twist::Slip(Slip::AnswersGoToTheLast),
    ),
    animal(
        "answers-go-to-all",
        "sends every response on all streams",
        "sse-response-is-on-session-stream",
        SSE,
        LEGACY,
        Twist::Slip(Slip::AnswersGoToAll),
    ),
    animal(
        "streams-count",
        "counts its streams, and names the number in the endpoint",
        "sse-session-is-unguessable",
        SSE,
        LEGACY,
        Twist::SessionId(numbered),
    ),
    animal(
        "unknown-stream-accepted",
        "takes messages to endpoints that no stream has",
        "sse-unknown-session-is-refused",
        SSE,
        LEGACY,
        Twist::Response(|request, response| {
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
