//! The list of hostile servers and what each does.

use super::wire::Wire;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::{self, Write as _};
use std::process::Command;

/// A hostile server.
pub struct HostileServer {
    pub name: &'static str,
    /// What it does, in words.
    pub does: &'static str,
    /// The transports on which it is possible.
    pub transports: &'static [&'static str],
    /// Called with the id of `tools/list`.
    pub(super) attack: fn(&mut Wire, i64) -> io::Result<()>,
}

/// This one attacks while it handles `initialize`.
const EARLY: &str = "answer-before-request";
/// This one waits until the request is canceled.
const LATE: &str = "answer-after-cancel";

const ALL: &[&str] = &["stdio", "http", "sse"];
const STDIO: &[&str] = &["stdio"];
const HTTP: &[&str] = &["http"];
const GIGABYTE: u64 = 1 << 30;

/// Every hostile server.
pub fn hostile_servers() -> &'static [HostileServer] {
    const fn peer(
        name: &'static str,
        does: &'static str,
        transports: &'static [&'static str],
        attack: fn(&mut Wire, i64) -> io::Result<()>,
    ) -> HostileServer {
        HostileServer { name, does, transports, attack }
    }
    const HOSTILE_SERVERS: &[HostileServer] = &[
        peer("endless-message", "1 GB of one message that never ends", ALL, |wire, id| {
            wire.begin(answer_up_to_text(id).as_bytes())?;
            wire.repeat(b"a", GIGABYTE)
        }),
        peer("endless-line-ends", "1 GB of nothing but line feeds", ALL, |wire, _| {
            wire.begin(b"\n\n")?;
            wire.repeat(b"\n", GIGABYTE)
        }),
        peer("endless-json-body", "1 GB of one JSON body", HTTP, |wire, id| {
            wire.raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2000000000\r\n\r\n")?;
            wire.raw(answer_up_to_text(id).as_bytes())?;
            wire.repeat(b"a", GIGABYTE)
        }),
        peer("endless-chunk-size", "1 GB of the size of a chunk", HTTP, |wire, _| {
            wire.raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")?;
            wire.repeat(b"0", GIGABYTE)
        }),
        peer("endless-head", "1 GB of one header", HTTP, |wire, _| {
            wire.raw(b"HTTP/1.1 200 OK\r\nx-endless: ")?;
            wire.repeat(b"a", GIGABYTE)
        }),
        peer("endless-headers", "headers without end", HTTP, |wire, _| {
            wire.raw(b"HTTP/1.1 200 OK\r\n")?;
            wire.repeat(b"a: b\r\n", GIGABYTE)
        }),
        peer("endless-interim", "`100 Continue` without end", HTTP, |wire, _| wire.repeat(b"HTTP/1.1 100 Continue\r\n\r\n", GIGABYTE)),
        peer("gzip-bomb", "1 GB of spaces, compressed, as a JSON body", HTTP, |wire, _| bomb(wire, "application/json", b" ")),
        peer("gzip-bomb-event", "1 GB of one event, compressed", HTTP, |wire, _| bomb(wire, "text/event-stream", b"data: {}\n")),
        peer("notification-flood", "100,000 notifications, then the answer", ALL, |wire, id| {
            let notification = log("tick");
            wire.send_all(std::iter::repeat_n(notification.as_slice(), 100_000))?;
            wire.send(&tools(id, json!([])))
        }),
        peer("large-notifications", "100 notifications of 4 MB, then the answer", ALL, |wire, id| {
            let notification = log(&"x".repeat(4 << 20));
            wire.send_all(std::iter::repeat_n(notification.as_slice(), 100))?;
            wire.send(&tools(id, json!([])))
        }),
        peer("large-unknown-ids", "200 answers to ids of 4 MB that nobody used", ALL, |wire, _| {
            let answer = message(&json!({ "id": "x".repeat(4 << 20), "result": {} }));
            wire.send_all(std::iter::repeat_n(answer.as_slice(), 200))?;
            wire.stay()
        }),
        peer("large-event-names", "50 events with names of 4 MB", &["http", "sse"], |wire, _| {
            wire.open_stream()?;
            let event = ["event: ", &"x".repeat(4 << 20), "\ndata: {}\n\n"].concat();
            for _ in 0..50 {
                wire.raw(event.as_bytes())?;
            }
            wire.stay()
        }),
        peer("ping-flood", "asks for pings without end and reads no answer", ALL, |wire, _| {
            let ping = message(&json!({ "id": "x".repeat(1000), "method": "ping" }));
            wire.send_all(std::iter::repeat_n(ping.as_slice(), 400_000))?;
            wire.stay()
        }),
        peer("stderr-flood", "1 GB on stderr before it answers", STDIO, |wire, id| {
            let line = [vec![b'e'; 99], vec![b'\n']].concat().repeat(1000);
            for _ in 0..GIGABYTE / line.len() as u64 {
                io::stderr().write_all(&line)?;
            }
            wire.send(&tools(id, json!([])))
        }),
        peer("large-answer", "an answer of 12 MB, which is within the bounds", ALL, |wire, id| {
            wire.send(&tools(id, json!([{ "name": "t", "description": "x".repeat(12 << 20), "inputSchema": { "type": "object" } }])))
        }),
        peer("many-values", "an answer of 8 MB that holds four million numbers", ALL, |wire, id| {
            let answer = [answer_up_to(id, r#"{"tools":["#).as_str(), &"0,".repeat(4_000_000), "0]}}"].concat();
            wire.send(answer.as_bytes())
        }),
        peer("many-tools", "a list of 60,000 tools", ALL, |wire, id| {
            let tool = |number: u32| json!({ "name": format!("t{number}"), "description": "d", "inputSchema": { "type": "object", "properties": {} } });
            wire.send(&tools(id, (0..60_000).map(tool).collect()))
        }),
        peer("deep-json", "an answer 10,000 levels deep", ALL, |wire, id| {
            let answer = [answer_up_to(id, "").as_str(), &"[".repeat(10_000), &"]".repeat(10_000), "}"].concat();
            wire.send(answer.as_bytes())
        }),
        peer("slow-drip", "a byte of its answer now and then", ALL, |wire, id| {
            wire.begin(answer_up_to_text(id).as_bytes())?;
            wire.drip(b'a')
        }),
        peer("slow-head", "a byte of the head of its response now and then", HTTP, |wire, _| {
            wire.raw(b"HTTP/1.1 200 OK\r\nx-slow: ")?;
            wire.drip(b'a')
        }),
        peer("silent", "takes the request and never answers", ALL, |wire, _| wire.stay()),
        peer("head-only", "answers with a head and nothing else", HTTP, |wire, _| {
            wire.raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n")?;
            wire.stay()
        }),
        peer("invalid-utf8", "an answer that is no UTF-8", ALL, |wire, id| {
            let mut answer = answer_up_to_text(id).into_bytes();
            answer.extend(b"\xff\xfe\"}}");
            wire.send(&answer)
        }),
        peer(EARLY, "answers the next request before it was sent", ALL, |wire, id| wire.send(&tools(id, json!([])))),
        peer("duplicate-answer", "answers twice", ALL, |wire, id| {
            let answer = tools(id, json!([]));
            wire.send_all([answer.as_slice(), answer.as_slice()])
        }),
        peer("wrong-id-type", "answers with the id as a string", ALL, |wire, id| {
            wire.send(&message(&json!({ "id": id.to_string(), "result": { "tools": [] } })))?;
            wire.stay()
        }),
        peer(LATE, "answers when the request is cancelled", ALL, |_, _| Ok(())),
        peer("escapes-in-names", "a tool whose name and title write to the terminal", ALL, |wire, id| {
            let tool = json!({ "name": format!("t{ESCAPES}"), "title": ESCAPES, "inputSchema": { "type": "object" } });
            wire.send(&tools(id, json!([tool])))
        }),
        peer("escapes-in-errors", "an error that writes to the terminal", ALL, |wire, id| {
            wire.send(&message(&json!({ "id": id, "error": { "code": -1, "message": ESCAPES, "data": { ESCAPES: ESCAPES } } })))
        }),
        peer("escapes-on-stderr", "writes to the terminal through its stderr, and dies", STDIO, |_, _| {
            io::stderr().write_all(ESCAPES.as_bytes())?;
            Err(io::ErrorKind::Other.into())
        }),
        peer("left-child", "ends, but a child of it holds its pipes", STDIO, |_, _| {
            Command::new("sleep").arg("3600").spawn()?;
            Err(io::ErrorKind::Other.into())
        }),
    ];
    HOSTILE_SERVERS
}

/// Clears the screen, sets the window title, adds a link, hides text, reverses the reading direction.
const ESCAPES: &str = "\x1b[2J\x1b]0;title\x07\x1b]8;;http://example.invalid\x1b\\\x1b[8m\u{9b}31m\u{202e}\u{2066}\r\u{8}\0";

/// What to do with a message of the client.
pub(super) enum Reaction {
    Nothing,
    /// One message, or several on separate lines.
    Respond(Vec<u8>),
    Attack(i64),
}

pub(super) fn reaction(peer: &HostileServer, bytes: &[u8]) -> Reaction {
    let asked: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let id = asked["id"].as_i64();
    match (asked["method"].as_str(), id) {
        (Some("initialize"), Some(id)) => {
            let capabilities = json!({ "tools": {}, "logging": {} });
            let server = json!({ "name": peer.name, "version": "1" });
            let result = json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": server });
            let answer = message(&json!({ "id": id, "result": result }));
            match peer.name == EARLY {
                true => Reaction::Respond([answer.as_slice(), b"\n", &tools(id + 1, json!([]))].concat()),
                false => Reaction::Respond(answer),
            }
        }
        (Some("tools/list"), Some(id)) => Reaction::Attack(id),
        (Some("notifications/cancelled"), None) if peer.name == LATE => match asked["params"]["requestId"].as_i64() {
            Some(id) => Reaction::Respond(tools(id, json!([]))),
            None => Reaction::Nothing,
        },
        (Some(_), Some(id)) => Reaction::Respond(message(&json!({ "id": id, "error": { "code": -32601, "message": "method not found" } }))),
        _ => Reaction::Nothing,
    }
}

fn message(members: &Value) -> Vec<u8> {
    let mut message = json!({ "jsonrpc": "2.0" });
    if let (Some(message), Some(members)) = (message.as_object_mut(), members.as_object()) {
        message.extend(members.clone());
    }
    message.to_string().into_bytes()
}

fn tools(id: i64, tools: Value) -> Vec<u8> {
    message(&json!({ "id": id, "result": { "tools": tools } }))
}

fn log(text: &str) -> Vec<u8> {
    message(&json!({ "method": "notifications/message", "params": { "level": "info", "data": text } }))
}

/// The beginning of a response, up to what follows `"result":`.
fn answer_up_to(id: i64, beginning: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{beginning}"#)
}

fn answer_up_to_text(id: i64) -> String {
    answer_up_to(id, r#"{"tools":[],"text":""#)
}

/// A small HTTP response whose content is 1 GB.
fn bomb(wire: &mut Wire, kind: &str, content: &[u8]) -> io::Result<()> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&content.repeat((1 << 20) / content.len()))?;
    // A body may consist of many members (RFC 1952, 2.2).
    let body = encoder.finish()?.repeat(1 << 10);
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-encoding: gzip\r\ncontent-length: {length}\r\n\r\n");
    wire.raw(&[head.as_bytes(), &body].concat())
}
