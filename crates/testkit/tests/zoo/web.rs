//! Records a server over both HTTP transports, as bytes, because a client would tolerate deviations.

use crate::Record;
use crate::process::{Cause, end, opened, patience, spawn};
use crate::script::{self, MODERN, Step};
use mcproof_protocol::Era;
use mcproof_testkit::zoo::TOKEN;
use regex::Regex;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

const CHANCES: u32 = 2;
/// How long a stream is watched after which nothing is expected.
const GLANCE: Duration = Duration::from_millis(50);

pub(crate) fn look(name: &str, transport: &str, era: Era) -> Record {
    let flag = format!("--{transport}");
    let mut child = spawn(name, &[&flag, "0"], era);
    let patience = patience(name);
    let Some(port) = listening(&mut child) else { return vec![end(child, Cause::Signal, patience)] };
    let version = if era == Era::Modern { MODERN } else { "2025-11-25" };
    let mut web = Web { port, era, version, patience, chances: CHANCES, token: name == "guarded", session: None, record: Vec::new() };
    if transport == "sse" {
        web.look_at_sse()
    } else {
        web.look_at_http()
    }
    let mut record = web.record;
    record.push(opened(&child));
    record.push(end(child, Cause::Signal, patience));
    let names = [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID"),
        (&format!(":{port}"), ":PORT"),
        (r"[0-9a-f]+\\r\\n\{", "SIZE{"),
    ];
    for (pattern, name) in names {
        let pattern = Regex::new(pattern).unwrap();
        for line in &mut record {
            *line = pattern.replace_all(line, name).into_owned();
        }
    }
    record
}

/// The port from the server's stderr; none if it exits before.
fn listening(child: &mut Child) -> Option<u16> {
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while said.read_line(&mut line).is_ok_and(|count| count > 0) {
        if let Some((_, rest)) = line.trim_end().rsplit_once("listening on http://127.0.0.1:") {
            return rest.split('/').next().unwrap().parse().ok();
        }
        line.clear();
    }
    None
}

struct Web {
    port: u16,
    era: Era,
    version: &'static str,
    patience: Duration,
    chances: u32,
    token: bool,
    session: Option<String>,
    record: Record,
}

impl Web {
    fn look_at_http(&mut self) {
        let kinds = "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n";
        // Whether there is a guard, and what it tells those without a token, or with a wrong one.
        let list = self.bytes_of(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} }));
        for extra in ["", "authorization: Bearer wrong\r\n", "origin: http://localhost:1\r\n"] {
            self.exchange("POST", "/mcp", &format!("{kinds}{extra}"), &list);
        }
        for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server", "/mcp/", "/elsewhere"] {
            self.exchange("GET", path, "", b"");
        }
        self.look_at_origins("/mcp");
        let (mut ids, mut held) = (Vec::new(), None);
        if self.era == Era::Legacy {
            for version in ["1999-01-01", "2025-06-18", "2025-11-25"] {
                ids.push(self.initialize(version));
            }
            let different = ids[0] != ids[2] && ids[2].is_some();
            self.record.push(format!("session ids differ: {different}; are like {:?}", ids[2].as_ref().map(String::len)));
            self.session = ids[2].take();
            held = Some(self.hold("GET", "/mcp", "accept: text/event-stream\r\n"));
            // Another client, whose responses are nothing to this stream.
            let own = std::mem::replace(&mut self.session, ids[0].take());
            self.exchange("POST", "/mcp", kinds, &list);
            self.session = own;
        }
        for step in script::main(self.version).iter().skip(usize::from(self.era == Era::Legacy)) {
            self.step(step);
        }
        for extra in self.odd_headers() {
            let kinds = if extra.contains("accept:") { "content-type: application/json\r\n" } else { kinds };
            let own = self.headers_of("tools/list", None);
            self.exchange("POST", "/mcp", &format!("{kinds}{own}{extra}"), &self.request("tools/list", json!({})));
        }
        if self.era == Era::Legacy {
            let list = self.request("tools/list", json!({}));
            self.exchange("POST", "/mcp", &format!("{kinds}MCP-Protocol-Version: 2025-11-25\r\n"), &list);
        }
        self.look_at_modern_headers(kinds);
        self.look_at_bodies("/mcp", kinds);
        self.look_at_framing(kinds);
        self.look_at_connections(kinds);
        if self.era == Era::Legacy {
            // What a stream begins with is enough.
            let held = self.hold("GET", "/mcp", "accept: text/event-stream\r\nmcp-protocol-version: 1900-01-01\r\n");
            held.wait_until(|text| text.contains("\r\n\r\n"));
            self.record.push(held.end().lines().next().unwrap_or_default().to_owned());
            self.exchange("DELETE", "/mcp", "mcp-protocol-version: 1900-01-01\r\n", b"");
        }
        self.exchange("DELETE", "/mcp", "", b"");
        self.exchange("POST", "/mcp", kinds, &list);
        if self.era == Era::Legacy {
            // What a stream begins with is enough.
            let held = self.hold("GET", "/mcp", "accept: text/event-stream\r\n");
            held.wait_until(|text| text.contains("\r\n\r\n"));
            self.record.push(held.end().lines().next().unwrap_or_default().to_owned());
        }
        self.session = Some("0b7c1f52-0000-4a36-9c55-3f0e8d2a6b91".to_owned());
        self.exchange("POST", "/mcp", kinds, &list);
        self.exchange("DELETE", "/mcp", "", b"");
        self.session = None;
        self.exchange("GET", "/mcp", "accept: text/event-stream\r\n", b"");
        if let Some(held) = held {
            // It ends with its session.
            held.wait_until(|text| text.ends_with("\r\n0\r\n\r\n") || !text.contains("text/event-stream"));
            self.record.push(held.end());
        }
    }

    fn look_at_sse(&mut self) {
        self.look_at_origins("/sse");
        for step in script::beginnings() {
            self.converse_over_sse(&[step]);
        }
        let steps = script::main("2025-11-25");
        self.converse_over_sse(&steps);
        self.look_at_two_streams();
    }

    /// Who hears the answer to what one of two clients asks, and what is said to one that has no stream.
    fn look_at_two_streams(&mut self) {
        let [first, second] = [0; 2].map(|_: i32| self.hold("GET", "/sse", "accept: text/event-stream\r\n"));
        for held in [&first, &second] {
            held.wait_until(|text| text.contains("data: "));
        }
        let paths = [&first, &second].map(|held| {
            let said = held.said();
            said.split_once("/messages").map(|(_, path)| format!("/messages{}", path.split(['\r', '\n']).next().unwrap()))
        });
        if let [Some(path), Some(path_of_second)] = paths {
            let ping = |id: u32| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string();
            self.exchange("POST", &path, "content-type: application/json\r\n", ping(1).as_bytes());
            first.wait_until(|text| text.contains("\"id\":1"));
            // Behind whatever the second stream gets of the first request.
            self.exchange("POST", &path_of_second, "content-type: application/json\r\n", ping(2).as_bytes());
            second.wait_until(|text| text.contains("\"id\":2"));
            let nobodys = path.split_once('=').map(|(name, _)| format!("{name}=0b7c1f52-0000-4a36-9c55-3f0e8d2a6b91"));
            self.exchange("POST", &nobodys.unwrap_or(path), "content-type: application/json\r\n", ping(1).as_bytes());
        }
        let heard = [first, second].map(|held| held.end().contains("\"id\":1"));
        self.record.push(format!("of two clients these hear the answer to the first: {heard:?}"));
    }

    fn converse_over_sse(&mut self, steps: &[Step]) {
        let held = self.hold("GET", "/sse", "accept: text/event-stream\r\n");
        held.wait_until(|text| text.contains("data: "));
        let said = held.said();
        let Some((_, path)) = said.split_once("/messages") else {
            self.record.push(said);
            return;
        };
        let path = format!("/messages{}", path.split(['\r', '\n']).next().unwrap());
        let kinds = "content-type: application/json\r\n";
        for step in steps {
            let (messages, cancels) = match step {
                Step::Send(message) | Step::Listen(message) => (vec![message.clone()], false),
                Step::Together(messages) => (messages.clone(), false),
                Step::Cancelled(message) => (vec![message.clone()], true),
                Step::Raw(bytes) => {
                    self.exchange("POST", &path, kinds, bytes);
                    continue;
                }
            };
            let before = held.said().len();
            for message in &messages {
                self.exchange("POST", &path, kinds, message.to_string().as_bytes());
            }
            let ids: Vec<String> = messages.iter().filter_map(|message| message.get("id").map(|id| format!("\"id\":{id},"))).collect();
            if cancels {
                held.wait_until(|text| text[before..].contains("\"progress\":1"));
                let params = json!({ "requestId": messages[0]["id"] });
                let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
                self.exchange("POST", &path, kinds, cancel.to_string().as_bytes());
                // As long as the call would have taken; whether an answer comes is what is looked at.
                sleep(Duration::from_millis(800));
            } else if self.chances > 0 && !held.wait_until(|text| ids.iter().all(|id| text[before..].contains(id))) {
                self.chances -= 1;
            }
        }
        if steps.len() > 1 {
            let kinds = "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n";
            self.look_at_bodies(&path, kinds);
            self.look_at_connections(kinds);
        }
        // Calls at once may be answered in any order.
        let mut events = without_chance(&held.end());
        events.sort_unstable();
        self.record.extend(events);
    }

    fn look_at_origins(&mut self, path: &str) {
        let preflight = "access-control-request-method: POST\r\naccess-control-request-headers: content-type\r\n";
        self.exchange("OPTIONS", path, &format!("origin: http://localhost:1\r\n{preflight}"), b"");
        for origin in ["http://localhost:1", "http://evil.example", "http://localhost.evil.example", "null"] {
            self.exchange("DELETE", "/elsewhere", &format!("origin: {origin}\r\n"), b"");
            // What a stream begins with is enough.
            let held = self.hold("GET", path, &format!("accept: text/event-stream\r\norigin: {origin}\r\n"));
            held.wait_until(|text| text.contains("\r\n\r\n"));
            let seen = held.end();
            // How much of a stream has come by now is chance.
            let head = seen.split_once("\r\n\r\n").filter(|(head, _)| head.contains("text/event-stream"));
            self.record.push(head.map_or(seen.as_str(), |(head, _)| head).to_owned());
        }
        for host in ["evil.example".to_owned(), format!("evil.example:{}", self.port), "localhost.evil.example".to_owned()] {
            let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)) else { continue };
            let head = format!("DELETE {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(head.as_bytes());
            self.record.push(read_all(stream, self.patience));
        }
        // Another address of this machine, where only a server on all interfaces listens.
        let elsewhere = TcpStream::connect((Ipv4Addr::new(127, 0, 0, 2), self.port));
        self.record.push(format!("listens elsewhere: {}", elsewhere.is_ok()));
    }

    fn look_at_bodies(&mut self, path: &str, kinds: &str) {
        let own = self.headers_of("tools/list", None);
        let large = json!({ "jsonrpc": "2.0", "method": "notifications/initialized", "params": { "text": "a".repeat(2 << 20) } });
        for body in [&b"{ no JSON"[..], b"[]", br#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#, large.to_string().as_bytes()] {
            self.exchange("POST", path, &format!("{kinds}{own}"), body);
        }
        let other = kinds.replace("application/json\r\n", "text/plain\r\n");
        let initialized = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        self.exchange("POST", path, &format!("{other}{own}"), initialized);
        let named = kinds.replace("application/json\r\n", "application/json; charset=utf-8\r\n");
        self.exchange("POST", path, &format!("{named}{own}"), initialized);
    }

    /// A body in chunks, and one in two segments, cut within a character.
    fn look_at_framing(&mut self, kinds: &str) {
        let body = self.request("tools/call", json!({ "name": "no-such-道具", "arguments": {} }));
        let head = self.head("POST", "/mcp", &format!("{kinds}{}", self.headers_of("tools/call", Some("=?base64?bm8tc3VjaC3pgZPlhbc=?="))));
        let chunked = [format!("{:x}\r\n", body.len()).as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
        let (first, second) = body.split_at(body.iter().position(|byte| !byte.is_ascii()).unwrap() + 1);
        let length = format!("content-length: {}", body.len());
        for (framing, first, second) in [("transfer-encoding: chunked", &chunked[..], &b""[..]), (length.as_str(), first, second)] {
            let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)) else { continue };
            // A server that dies of this does not read it all.
            let _ = stream.write_all(&[format!("{head}{framing}\r\n\r\n").as_bytes(), first].concat());
            sleep(GLANCE);
            let _ = stream.write_all(second);
            self.record.push(read_all(stream, self.patience));
        }
    }

    fn look_at_modern_headers(&mut self, kinds: &str) {
        if self.era == Era::Legacy {
            return;
        }
        let list = self.request("tools/list", json!({}));
        let echo = self.request("tools/call", json!({ "name": "echo", "arguments": { "text": "a" } }));
        let find = self.request("tools/call", json!({ "name": "find_animals", "arguments": { "region": "asia" } }));
        let odd = |arguments: Value| self.request("tools/call", json!({ "name": "find_animals", "arguments": arguments }));
        let (most, accented, null) =
            (odd(json!({ "region": "asia", "most": 3 })), odd(json!({ "region": "für" })), odd(json!({ "region": null })));
        let call = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n";
        for (headers, body) in [
            ("mcp-protocol-version: 2025-11-25\r\nmcp-method: tools/list\r\n", &list),
            ("mcp-protocol-version: 2026-07-28\r\n", &list),
            ("mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n", &list),
            ("mcp-protocol-version: 2026-07-28\r\nMCP-METHOD: tools/list\r\n", &list),
            ("mcp-protocol-version: 2026-07-28\r\nmcp-method:  tools/list \r\n", &list),
            (call, &echo),
            (&format!("{call}mcp-name: add\r\n"), &echo),
            (&format!("{call}mcp-name: Echo\r\n"), &echo),
            ("mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/list\r\nmcp-name: echo\r\n", &echo),
            (&format!("{call}mcp-name: =?base64?ZWNobw==?=\r\n"), &echo),
            (&format!("{call}mcp-name: find_animals\r\n"), &find),
            (&format!("{call}mcp-name: find_animals\r\nmcp-param-region: africa\r\n"), &find),
            (&format!("{call}mcp-name: find_animals\r\nmcp-param-region: asia\r\n"), &find),
            (&format!("{call}mcp-name: find_animals\r\nmcp-param-region: asia\r\nmcp-param-most: 3.0\r\n"), &most),
            (&format!("{call}mcp-name: find_animals\r\nmcp-param-region: für\r\n"), &accented),
            (&format!("{call}mcp-name: find_animals\r\n"), &null),
        ] {
            self.exchange("POST", "/mcp", &format!("{kinds}{headers}"), body);
        }
        let listen = self.request("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
        let held = self.hold_with("POST", "/mcp", &format!("{kinds}{}", self.headers_of("tools/list", None)), &listen);
        held.wait_until(|text| text.contains("\r\n\r\n"));
        let seen = held.end();
        self.record.push(seen.lines().next().unwrap_or_default().to_owned());
    }

    /// A connection that is kept, and one that is closed in the middle of a call.
    fn look_at_connections(&mut self, kinds: &str) {
        let elsewhere = format!("DELETE /elsewhere HTTP/1.1\r\nhost: 127.0.0.1:{}\r\n\r\n", self.port);
        let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)) else { return };
        stream.set_read_timeout(Some(self.patience)).unwrap();
        let answers = [0; 2].map(|_: i32| {
            // A connection that the server has closed takes it or not, and gives nothing back.
            let _ = stream.write_all(elsewhere.as_bytes());
            read_response(&mut stream).len()
        });
        self.record.push(format!("is kept: {}", answers[0] == answers[1]));

        let patrol = json!({ "name": "patrol", "arguments": { "steps": 3 }, "_meta": { "progressToken": "p" } });
        let body = self.request("tools/call", patrol);
        let own = self.headers_of("tools/call", Some("patrol"));
        let held = self.hold_with("POST", "/mcp", &format!("{kinds}{own}"), &body);
        held.wait_until(|text| text.contains("\"progress\":1"));
        held.end();
        sleep(Duration::from_millis(400));
        self.exchange("DELETE", "/elsewhere", "", b"");
    }

    fn odd_headers(&self) -> Vec<&'static str> {
        let mut odd = vec![
            "",
            "origin: http://localhost:1\r\n",
            "accept: */*\r\n",
            "accept: text/event-stream, application/json\r\n",
            "accept: application/json, text/event-stream;q=0.9\r\n",
            "accept: application/json,text/event-stream\r\n",
        ];
        if self.era == Era::Legacy {
            odd.extend(["mcp-protocol-version: 1900-01-01\r\n", "mcp-protocol-version: 2025-11-25\r\n"]);
        }
        odd
    }

    fn initialize(&mut self, version: &str) -> Option<String> {
        let params =
            json!({ "protocolVersion": version, "capabilities": { "roots": {} }, "clientInfo": { "name": "look", "version": "1" } });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string();
        let kinds = "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n";
        let said = self.exchange("POST", "/mcp", kinds, body.as_bytes());
        let line = said.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        line.map(|id| id.trim_end_matches('\r').to_owned())
    }

    fn step(&mut self, step: &Step) {
        let kinds = "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n";
        match step {
            Step::Raw(bytes) => {
                let own = self.headers_of("tools/list", None);
                self.exchange("POST", "/mcp", &format!("{kinds}{own}"), bytes);
            }
            Step::Send(message) => {
                let headers = format!("{kinds}{}", self.mirrored(message));
                self.exchange("POST", "/mcp", &headers, message.to_string().as_bytes());
            }
            Step::Together(messages) => {
                let sent = |message: &Value| {
                    self.hold_with("POST", "/mcp", &format!("{kinds}{}", self.mirrored(message)), message.to_string().as_bytes())
                };
                let held: Vec<Held> = messages.iter().map(sent).collect();
                for held in held {
                    held.wait_until(|text| text.contains("\r\n0\r\n\r\n"));
                    self.record.push(held.end());
                }
            }
            // Closing the stream is the cancellation of the modern era.
            Step::Cancelled(message) | Step::Listen(message) => {
                let headers = format!("{kinds}{}", self.mirrored(message));
                let held = self.hold_with("POST", "/mcp", &headers, message.to_string().as_bytes());
                held.wait_until(|text| text.contains("\"progress\":1") || text.contains("acknowledged"));
                if self.era == Era::Legacy {
                    let params = json!({ "requestId": message["id"] });
                    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string();
                    self.exchange("POST", "/mcp", kinds, cancel.as_bytes());
                    held.wait_until(|text| text.contains("\r\n0\r\n\r\n"));
                } else {
                    sleep(GLANCE);
                }
                self.record.extend(without_chance(&held.end()));
            }
        }
    }

    fn request(&self, method: &str, params: Value) -> Vec<u8> {
        self.bytes_of(&json!({ "jsonrpc": "2.0", "id": "odd", "method": method, "params": params }))
    }

    fn bytes_of(&self, message: &Value) -> Vec<u8> {
        let mut message = message.clone();
        if self.era == Era::Modern {
            message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
            message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        message.to_string().into_bytes()
    }

    /// The headers that mirror a message.
    fn mirrored(&self, message: &Value) -> String {
        let name = message["params"]["name"].as_str().or(message["params"]["uri"].as_str());
        let mut headers = self.headers_of(message["method"].as_str().unwrap_or_default(), name);
        if self.era == Era::Modern {
            let version = message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str().unwrap_or(MODERN);
            headers = headers.replace(MODERN, version);
            if let Some(region) = message["params"]["arguments"]["region"].as_str() {
                headers.push_str(&format!("mcp-param-region: {region}\r\n"));
            }
        }
        headers
    }

    fn headers_of(&self, method: &str, name: Option<&str>) -> String {
        if self.era == Era::Legacy {
            return String::new();
        }
        let name = name.map(|name| format!("mcp-name: {name}\r\n")).unwrap_or_default();
        format!("mcp-protocol-version: {MODERN}\r\nmcp-method: {method}\r\n{name}")
    }

    /// One request and its whole response.
    fn exchange(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> String {
        let patience = if self.chances > 0 { self.patience } else { GLANCE };
        let begin = Instant::now();
        let said = match self.open(method, path, headers, body) {
            Some(stream) => read_all(stream, patience),
            None => "nobody is there".to_owned(),
        };
        if begin.elapsed() >= patience {
            self.chances = self.chances.saturating_sub(1);
        }
        self.record.push(said.clone());
        said
    }

    fn hold(&self, method: &str, path: &str, headers: &str) -> Held {
        self.hold_with(method, path, headers, b"")
    }

    /// A request whose response is watched while other things happen.
    fn hold_with(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Held {
        let said = Arc::new(Mutex::new(Vec::new()));
        let stream = self.open(method, path, headers, body);
        let over = Arc::new(AtomicBool::new(stream.is_none()));
        if let Some(stream) = &stream {
            let (mut stream, said, over) = (stream.try_clone().unwrap(), Arc::clone(&said), Arc::clone(&over));
            thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut bytes) {
                    said.lock().unwrap().extend_from_slice(&bytes[..count]);
                }
                over.store(true, Ordering::Release);
            });
        }
        Held { stream, said, over, patience: self.patience }
    }

    fn open(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Option<TcpStream> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok()?;
        let mut head = self.head(method, path, headers);
        head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        // A server that dies of this does not read it all.
        let _ = stream.write_all(&[head.as_bytes(), body].concat());
        Some(stream)
    }

    /// All but the header that tells where the body ends.
    fn head(&self, method: &str, path: &str, headers: &str) -> String {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nconnection: close\r\n{headers}", self.port);
        if self.token && !headers.contains("authorization") {
            head.push_str(&format!("authorization: Bearer {TOKEN}\r\n"));
        }
        if let Some(session) = self.session.as_ref().filter(|_| !path.contains("session=")) {
            head.push_str(&format!("mcp-session-id: {session}\r\n"));
        }
        head
    }
}

struct Held {
    stream: Option<TcpStream>,
    said: Arc<Mutex<Vec<u8>>>,
    /// The server has said all that it will.
    over: Arc<AtomicBool>,
    patience: Duration,
}

impl Held {
    fn said(&self) -> String {
        String::from_utf8_lossy(&self.said.lock().unwrap()).into_owned()
    }

    fn wait_until(&self, holds: impl Fn(&str) -> bool) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < self.patience {
            let over = self.over.load(Ordering::Acquire);
            if holds(&self.said()) {
                return true;
            }
            if over {
                return false;
            }
            sleep(Duration::from_millis(2));
        }
        false
    }

    fn end(self) -> String {
        if let Some(stream) = &self.stream {
            // It may have ended already.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        self.said()
    }
}

/// The chunks of an event stream, without those that tell how far a cancelled call had come.
fn without_chance(said: &str) -> Vec<String> {
    said.split("\n\n\r\n").filter(|event| !script::is_chance(event)).map(str::to_owned).collect()
}

/// Everything until the server closes the connection, or has been silent for so long.
fn read_all(mut stream: TcpStream, patience: Duration) -> String {
    stream.set_read_timeout(Some(patience)).unwrap();
    let mut said = Vec::new();
    let mut bytes = [0; 65_536];
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        said.extend_from_slice(&bytes[..count]);
    }
    String::from_utf8_lossy(&said).into_owned()
}

/// One response that tells its length, or what there is of it.
fn read_response(stream: &mut TcpStream) -> String {
    let mut said = Vec::new();
    let mut bytes = [0; 4096];
    while !is_whole(&said) {
        match stream.read(&mut bytes) {
            Ok(count @ 1..) => said.extend_from_slice(&bytes[..count]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&said).into_owned()
}

fn is_whole(response: &[u8]) -> bool {
    let text = String::from_utf8_lossy(response);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    length.is_none_or(|length: usize| body.len() >= length)
}
