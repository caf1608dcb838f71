//! Broken servers whose handshake is wrong, or that exit too early.

use super::changes::{ask, is_handshake, lists_tools, refuse, remove};
use super::deviation::{Deviation, die};
use super::internal_deviation::InternalDeviation;
use super::server::{LEGACY as REVISIONS, result};
use super::{ALL, BOTH, BrokenServer, LEGACY, MODERN, WEB, broken_server};
use serde_json::{Value, json};
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) const BROKEN_SERVERS: &[BrokenServer] = &[
    broken_server(
        "exits-at-start",
        "exits with code 1 and a reason on stderr",
        "server-starts",
        ALL,
        BOTH,
        Deviation::Start(|_| {
            writeln!(io::stderr(), "Error: DATABASE_URL is not set")?;
            die(1)
        }),
    ),
    broken_server(
        "aborts-at-start",
        "is killed by a signal, without a word",
        "server-starts",
        ALL,
        BOTH,
        Deviation::Start(|_| std::process::abort()),
    ),
    broken_server(
        "port-taken",
        "finds its port taken, and exits",
        "server-starts",
        WEB,
        BOTH,
        Deviation::Start(|_| {
            writeln!(io::stderr(), "Error: listen EADDRINUSE: address already in use 127.0.0.1")?;
            die(1)
        }),
    ),
    broken_server(
        "initialize-refused",
        "answers `initialize` with an internal error",
        "initialize-gets-result",
        ALL,
        LEGACY,
        Deviation::Outgoing(|received, message| match received.method() {
            "initialize" => vec![refuse(received, -32603, "Internal error")],
            _ => vec![message],
        }),
    ),
    broken_server(
        "initialize-unanswered",
        "says nothing upon `initialize`",
        "initialize-gets-result",
        ALL,
        LEGACY,
        Deviation::Outgoing(|received, message| match received.method() {
            "initialize" => Vec::new(),
            _ => vec![message],
        }),
    ),
    broken_server(
        "version-echoed",
        "agrees to any version",
        "initialize-negotiates-version",
        ALL,
        LEGACY,
        Deviation::Outgoing(|received, mut message| {
            if received.method() == "initialize" {
                message["result"]["protocolVersion"] = received.params()["protocolVersion"].clone();
            }
            vec![message]
        }),
    ),
    broken_server(
        "version-refused",
        "refuses a version that it does not know instead of offering one",
        "initialize-negotiates-version",
        ALL,
        LEGACY,
        Deviation::Outgoing(|received, message| match asks_for_unknown_version(received.params()) && received.method() == "initialize" {
            true => vec![refuse(received, -32602, "Unsupported protocol version")],
            false => vec![message],
        }),
    ),
    broken_server(
        "version-offered-but-not-kept",
        "offers 2025-06-18 to those who ask for an unknown version, and 2025-03-26 to those who ask for 2025-06-18",
        "initialize-version-is-consistent",
        ALL,
        LEGACY,
        Deviation::Outgoing(|received, mut message| {
            if received.method() == "initialize" {
                let asked = &received.params()["protocolVersion"];
                if asks_for_unknown_version(received.params()) {
                    message["result"]["protocolVersion"] = json!("2025-06-18");
                } else if asked == "2025-06-18" {
                    message["result"]["protocolVersion"] = json!("2025-03-26");
                }
            }
            vec![message]
        }),
    ),
    broken_server(
        "version-never-published",
        "agrees on a version that was never published, whatever it is asked for",
        "initialize-version-is-consistent",
        ALL,
        LEGACY,
        Deviation::Result("initialize", |_, result| result["protocolVersion"] = json!("2025-09-31")),
    ),
    broken_server(
        "version-left-out",
        "answers `initialize` without `protocolVersion`",
        "message-matches-schema",
        ALL,
        LEGACY,
        Deviation::Result("initialize", |_, result| remove(result, "protocolVersion")),
    ),
    broken_server(
        "server-info-left-out",
        "answers `initialize` without `serverInfo`",
        "message-matches-schema",
        ALL,
        LEGACY,
        Deviation::Result("initialize", |_, result| remove(result, "serverInfo")),
    ),
    broken_server(
        "capabilities-are-a-list",
        "declares its capabilities as an empty list",
        "message-matches-schema",
        ALL,
        BOTH,
        Deviation::Outgoing(|_, mut message| {
            if is_handshake(&message) {
                message["result"]["capabilities"] = json!([]);
            }
            vec![message]
        }),
    ),
    broken_server(
        "version-unpublished",
        "offers a version that was never published",
        "initialize-version-is-consistent",
        ALL,
        LEGACY,
        Deviation::Outgoing(|received, mut message| {
            if received.method() == "initialize" && asks_for_unknown_version(received.params()) {
                message["result"]["protocolVersion"] = json!("2025-01-01");
            }
            vec![message]
        }),
    ),
    broken_server(
        "asks-before-initialized",
        "asks the client for something that it declared, before it has answered `initialize`",
        "no-server-requests-before-initialized",
        ALL,
        LEGACY,
        Deviation::Extra(|received| match received.method() {
            "initialize" => vec![request_of("zoo-1", |kind| received.params()["capabilities"].get(kind).is_some())],
            _ => Vec::new(),
        }),
    ),
    broken_server(
        "dies-when-asked-for-tools",
        "exits with code 3 when the tools are listed",
        "server-stays-alive",
        ALL,
        BOTH,
        Deviation::Outgoing(|_, message| match lists_tools(&message) {
            true => die(3),
            false => vec![message],
        }),
    ),
    broken_server(
        "dies-after-answer",
        "answers `prompts/list`, and crashes when it is asked next",
        "server-stays-alive",
        ALL,
        BOTH,
        Deviation::Extra(|received| {
            let mut memory = received.server.memory();
            if *memory == json!("doomed") && !received.id().is_null() {
                std::process::abort();
            }
            if received.method() == "prompts/list" {
                *memory = json!("doomed");
            }
            Vec::new()
        }),
    ),
    broken_server(
        "prompts-unanswered",
        "never answers `prompts/list`",
        "request-gets-response",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| if received.method() == "prompts/list" { Vec::new() } else { vec![message] }),
    ),
    broken_server(
        "calls-unanswered",
        "never answers a call of a tool",
        "request-gets-response",
        ALL,
        BOTH,
        Deviation::Outgoing(|received, message| if received.method() == "tools/call" { Vec::new() } else { vec![message] }),
    ),
    broken_server(
        "unknown-methods-unanswered",
        "says nothing upon a method that it does not know",
        "unknown-method-is-refused",
        ALL,
        BOTH,
        Deviation::Outgoing(|_, message| if message["error"]["code"] == -32601 { Vec::new() } else { vec![message] }),
    ),
    broken_server(
        "asks-what-was-not-declared",
        "asks for the first thing that the client has not declared",
        "client-capabilities-are-respected",
        ALL,
        LEGACY,
        Deviation::Extra(|received| {
            let mut memory = received.server.memory();
            match received.method() {
                "initialize" => *memory = received.params()["capabilities"].clone(),
                "tools/list" if memory.is_object() => {
                    static ASKED: AtomicU64 = AtomicU64::new(0);
                    let id = format!("zoo-{}", ASKED.fetch_add(1, Ordering::Relaxed));
                    return vec![request_of(&id, |kind| memory.get(kind).is_none())];
                }
                _ => {}
            }
            Vec::new()
        }),
    ),
    broken_server(
        "asks-in-words-of-its-own",
        "sends a request that no revision has",
        "client-capabilities-are-respected",
        ALL,
        LEGACY,
        Deviation::Extra(|received| {
            let mut memory = received.server.memory();
            match received.method() {
                "initialize" => *memory = json!("initialized"),
                "tools/list" if memory.is_string() => {
                    static ASKED: AtomicU64 = AtomicU64::new(0);
                    let id = format!("zoo-{}", ASKED.fetch_add(1, Ordering::Relaxed));
                    return vec![ask(json!(id), "zoo/hello", json!({}))];
                }
                _ => {}
            }
            Vec::new()
        }),
    ),
    broken_server(
        "pages-for-any-elicitation",
        "sends users to a page if the client declares elicitation, be it of forms only",
        "client-capabilities-are-respected",
        ALL,
        LEGACY,
        Deviation::Internal(InternalDeviation::PagesForAnyElicitation),
    ),
    broken_server(
        "tools-for-any-sampling",
        "gives tools to the model if the client declares sampling, be it without tools",
        "client-capabilities-are-respected",
        ALL,
        LEGACY,
        Deviation::Internal(InternalDeviation::ToolsForAnySampling),
    ),
    broken_server(
        "needs-what-was-not-declared",
        "answers a call with a question that the client has not declared to answer",
        "client-capabilities-are-respected",
        ALL,
        MODERN,
        Deviation::Outgoing(|received, message| {
            if received.method() != "tools/call" || message.get("result").is_none() {
                return vec![message];
            }
            let declared = &received.params()["_meta"]["io.modelcontextprotocol/clientCapabilities"];
            let mut question = request_of("", |kind| declared.get(kind).is_none());
            remove(&mut question, "id");
            remove(&mut question, "jsonrpc");
            let needed = json!({ "resultType": "input_required", "inputRequests": { "question": question } });
            vec![result(received.id(), needed)]
        }),
    ),
    broken_server(
        "ping-is-answered-with-more",
        "answers `ping` with a result that is not empty",
        "ping-gets-empty-result",
        ALL,
        LEGACY,
        Deviation::Result("ping", |_, result| result["pong"] = json!(true)),
    ),
    broken_server(
        "ping-unsupported",
        "does not know `ping`",
        "ping-gets-empty-result",
        ALL,
        LEGACY,
        Deviation::Outgoing(|received, message| match received.method() {
            "ping" => vec![refuse(received, -32601, "Method not found: ping")],
            _ => vec![message],
        }),
    ),
    broken_server(
        "offers-its-oldest-version",
        "offers its oldest version to a client that it does not know",
        "initialize-offers-latest-version",
        ALL,
        LEGACY,
        Deviation::Outgoing(|received, mut message| {
            let is_known = REVISIONS.iter().any(|known| received.params()["protocolVersion"] == **known);
            if received.method() == "initialize" && !is_known && message["result"].is_object() {
                message["result"]["protocolVersion"] = json!("2024-11-05");
            }
            vec![message]
        }),
    ),
];

fn asks_for_unknown_version(params: &Value) -> bool {
    params["protocolVersion"].as_str().is_none_or(|version| !REVISIONS.contains(&version))
}

/// A request for the first capability of clients that is wanted; for roots if none is.
fn request_of(id: &str, wanted: impl Fn(&str) -> bool) -> Value {
    let form = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let message = json!({ "role": "user", "content": { "type": "text", "text": "What do okapis eat?" } });
    let pending_requests = [
        ("elicitation", "elicitation/create", json!({ "mode": "form", "message": "Who are you?", "requestedSchema": form })),
        ("sampling", "sampling/createMessage", json!({ "messages": [message], "maxTokens": 100 })),
        ("roots", "roots/list", json!({})),
    ];
    let [.., roots] = pending_requests.clone();
    let (_, method, params) = pending_requests.into_iter().find(|(kind, ..)| wanted(kind)).unwrap_or(roots);
    ask(json!(id), method, params)
}
