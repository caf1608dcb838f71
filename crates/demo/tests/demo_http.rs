//! The demos over both HTTP transports, byte by byte: what a browser, a stranger and a client of either era get.

#![expect(clippy::unwrap_used, reason = "a test fails where it stands, helpers included")]

use std::{net::SocketAddr, time::Duration};

use mcproof_demo::{DEFAULT_HOST, DemoError, DemoName, DemoOptions, DemoTransport, bind};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};

/// Longer than any answer takes, so that a missing one fails the test rather than hangs it.
const DEADLINE: Duration = Duration::from_secs(10);

type Headers<'a> = &'a [(&'a str, &'a str)];

struct Server {
    address: SocketAddr,
    served: JoinHandle<Result<(), DemoError>>,
    stop: oneshot::Sender<()>,
}

#[derive(Clone, Copy)]
enum Over {
    Http,
    Sse,
}

impl Server {
    async fn start(name: DemoName, over: Over) -> Self {
        let host = DEFAULT_HOST.to_owned();
        let transport = match over {
            Over::Http => DemoTransport::Http { host, port: 0 },
            Over::Sse => DemoTransport::Sse { host, port: 0 },
        };
        let options = DemoOptions { transport, slow: Duration::from_millis(2), ..DemoOptions::new(name) };
        let listening = bind(&options).await.unwrap();
        let address = listening.address();
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(listening.serve(async {
            // A test that does not stop the server keeps the sender.
            let _stopped = stopped.await;
        }));
        Self { address, served, stop }
    }

    /// Sends one request and reads until the server has closed the connection.
    async fn send(&self, start: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = self.open(start, headers, body, "close").await;
        let mut bytes = Vec::new();
        timeout(DEADLINE, stream.read_to_end(&mut bytes)).await.expect("an answer in time").unwrap();
        Answer(String::from_utf8(bytes).expect("an answer is text"))
    }

    async fn open(&self, start: &str, headers: &[(&str, &str)], body: &str, connection: &str) -> TcpStream {
        let mut request = format!("{start} HTTP/1.1\r\nconnection: {connection}\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            request += &format!("host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("content-length: {}\r\n\r\n{body}", body.len());
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn post(&self, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut all = vec![("content-type", "application/json")];
        if !headers.iter().any(|(name, _)| *name == "accept") {
            all.push(("accept", "application/json, text/event-stream"));
        }
        all.extend(headers);
        self.send("POST /mcp", &all, body).await
    }

    /// Opens a legacy session and returns its id.
    async fn session(&self) -> String {
        let answer = self.post(&[], &initialize("2025-11-25")).await;
        assert_eq!(answer.message()["result"]["protocolVersion"], "2025-11-25");
        let id = answer.header("mcp-session-id").expect("a session has an id").to_owned();
        let opened = self.post(&session_headers(&id), r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        assert_eq!((opened.status(), opened.body()), (202, ""));
        id
    }
}

fn session_headers(id: &str) -> [(&str, &str); 2] {
    [("mcp-session-id", id), ("mcp-protocol-version", "2025-11-25")]
}

fn initialize(version: &str) -> String {
    json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": { "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } },
    })
    .to_string()
}

/// An answer as it came, head and body.
struct Answer(String);

impl Answer {
    fn status(&self) -> u16 {
        self.0.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status line")
    }

    fn header(&self, name: &str) -> Option<&str> {
        let head = self.0.split("\r\n\r\n").next().unwrap();
        head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    fn body(&self) -> &str {
        self.0.split_once("\r\n\r\n").expect("a head ends with an empty line").1
    }

    /// The last JSON-RPC message in the body, which is either JSON or a chunked stream of events.
    fn message(&self) -> Value {
        let body = self.body();
        let json = body.lines().filter_map(|line| line.strip_prefix("data: ")).rfind(|data| !data.is_empty());
        serde_json::from_str(json.unwrap_or(body)).unwrap_or_else(|error| panic!("{error}: {}", self.0))
    }
}

#[tokio::test]
async fn a_legacy_session_lives_from_initialize_to_delete() {
    let server = Server::start(DemoName::Shop, Over::Http).await;
    let (id, other) = (server.session().await, server.session().await);
    assert!(id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)) && id != other);
    let call = |tool: &str, arguments: Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params }).to_string()
    };
    let headers = session_headers(&id);
    let answer = server.post(&headers, &call("set_context", json!({ "key": "user_id", "value": "123" }))).await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(answer.header("x-accel-buffering"), Some("no"));
    assert_eq!(answer.message()["id"], "c");
    let get = call("get_context", json!({ "key": "user_id" }));
    let answer = server.post(&headers, &get).await;
    assert_eq!(answer.message()["result"]["content"][0]["text"], "123");
    let answer = server.post(&session_headers(&other), &get).await;
    assert_eq!(answer.message()["result"]["isError"], true, "sessions do not share their context");
    let order = json!({ "product_id": "PROD-123", "quantity": 2 });
    let answer = server.post(&headers, &call("create_order", order)).await;
    assert_eq!(answer.message()["result"]["structuredContent"]["id"], "ORD-1");
    let stock = call("check_inventory", json!({ "product_id": "PROD-123" }));
    let answer = server.post(&session_headers(&other), &stock).await;
    assert_eq!(answer.message()["result"]["structuredContent"]["available"], 8, "sessions share the stock");

    assert_eq!(server.send("DELETE /mcp", &headers, "").await.status(), 202);
    assert_eq!(server.send("DELETE /mcp", &headers, "").await.status(), 404);
    assert_eq!(server.post(&headers, &get).await.status(), 404);
    assert_eq!(server.send("GET /mcp", &[headers[0], ("accept", "text/event-stream")], "").await.status(), 404);
    assert_eq!(server.post(&session_headers(&other), &get).await.status(), 200);
}

#[tokio::test]
async fn a_modern_request_is_answered_without_a_session() {
    let server = Server::start(DemoName::Shop, Over::Http).await;
    let check = async |method: &str, name: &str, params: Value, status: u16, pointer: &str, expected: Value| {
        let mut params = params;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
        if !name.is_empty() {
            headers.push(("mcp-name", name));
        }
        let answer = server.post(&headers, &body).await;
        assert_eq!(answer.status(), status, "{}", answer.0);
        assert_eq!(answer.header("mcp-session-id"), None);
        let message = answer.message();
        assert_eq!(message.pointer(pointer), Some(&expected), "{message}");
        assert_eq!(message["id"], 1);
    };
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let sum = call("calculate", json!({ "a": 5, "b": 3 }));
    check("server/discover", "", json!({}), 200, "/result/supportedVersions/4", json!("2026-07-28")).await;
    check("tools/list", "", json!({}), 200, "/result/resultType", json!("complete")).await;
    check("tools/call", "calculate", sum.clone(), 200, "/result/content/0/text", json!("Result: 8")).await;
    check("tools/call", "", sum.clone(), 400, "/error/code", json!(-32020)).await;
    check("tools/call", "other", sum, 400, "/error/code", json!(-32020)).await;
    check("tools/call", "none", call("none", json!({})), 200, "/error/code", json!(-32602)).await;
    check("tools/call", "calculate", call("calculate", json!({})), 200, "/result/isError", json!(true)).await;
    let entry = json!({ "key": "user_id", "value": "123" });
    check("tools/call", "set_context", call("set_context", entry), 200, "/result/isError", json!(false)).await;
    let key = call("get_context", json!({ "key": "user_id" }));
    check("tools/call", "get_context", key, 200, "/result/content/0/text", json!("123")).await;
    let long = call("long_operation", json!({ "id": 1 }));
    check("tools/call", "long_operation", long, 200, "/result/_meta/operation_id", json!("op-1")).await;
    for gone in ["ping", "initialize", "logging/setLevel", "resources/list", "no/such/method"] {
        check(gone, "", json!({}), 404, "/error/code", json!(-32601)).await;
    }
    for method in ["GET", "DELETE"] {
        let headers = [("mcp-protocol-version", "2026-07-28"), ("accept", "text/event-stream")];
        assert_eq!(server.send(&format!("{method} /mcp"), &headers, "").await.status(), 405);
    }
}

#[tokio::test]
async fn wrong_requests_get_the_status_that_the_specification_names() {
    let server = Server::start(DemoName::Tracker, Over::Http).await;
    let id = server.session().await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let session = ("mcp-session-id", &*id);
    let code = |code: i64| format!("\"code\":{code}");
    let rows: [(Headers, &str, u16, String); 15] = [
        (&[session], ping, 200, "\"result\":{}".to_owned()),
        (&[session, ("accept", "*/*")], ping, 200, "\"result\":{}".to_owned()),
        (&[session, ("accept", "application/json")], ping, 406, String::new()),
        (&[session, ("mcp-protocol-version", "1900-01-01")], ping, 400, String::new()),
        (&[session, ("mcp-protocol-version", "not-a-version")], ping, 400, String::new()),
        (&[("mcp-session-id", "00000000")], ping, 404, String::new()),
        (&[], ping, 400, String::new()),
        (&[session], "{", 400, code(-32700)),
        (&[session], "\u{1}", 400, code(-32700)),
        (&[session], "[]", 400, code(-32600)),
        (&[session], r#"{"id":1,"method":"ping"}"#, 400, code(-32600)),
        (&[session], r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, 400, code(-32600)),
        (&[session], r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, 400, code(-32600)),
        (&[session], r#"{"jsonrpc":"2.0","id":1}"#, 400, code(-32600)),
        (&[session], r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#, 202, String::new()),
    ];
    for (headers, body, status, contained) in rows {
        let answer = server.post(headers, body).await;
        assert_eq!(answer.status(), status, "{headers:?} {body}: {}", answer.0);
        assert!(answer.body().contains(&contained), "{headers:?} {body}: {}", answer.0);
    }
    let text = server.send("POST /mcp", &[session, ("accept", "*/*"), ("content-type", "text/plain")], ping).await;
    assert_eq!(text.status(), 415);
    assert_eq!(server.send("PUT /mcp", &[], "").await.status(), 405);
    assert_eq!(server.send("GET /health", &[], "").await.status(), 200);
    assert_eq!(server.send("GET /elsewhere", &[], "").await.status(), 404);
}

#[tokio::test]
async fn strangers_are_refused_and_local_browsers_get_cors() {
    for (over, path) in [(Over::Http, "/mcp"), (Over::Sse, "/messages")] {
        let server = Server::start(DemoName::Tracker, over).await;
        let rows: [(Headers, u16); 7] = [
            (&[("origin", "https://evil.example")], 403),
            (&[("origin", "null")], 403),
            (&[("origin", "http://localhost.evil.example")], 403),
            (&[("host", "evil.example")], 403),
            (&[("host", "evil.example"), ("origin", "http://localhost")], 403),
            (&[("origin", "http://localhost:3000")], 204),
            (&[], 204),
        ];
        for (headers, status) in rows {
            let answer = server.send(&format!("OPTIONS {path}"), headers, "").await;
            assert_eq!(answer.status(), status, "OPTIONS {path} {headers:?}");
            if status == 403 {
                assert_eq!(server.send(&format!("POST {path}"), headers, "{}").await.status(), 403);
                assert_eq!(server.send(&format!("GET {path}"), headers, "").await.status(), 403);
                assert_eq!(answer.header("access-control-allow-origin"), None);
            }
        }
        let asked = [("origin", "http://localhost:3000"), ("access-control-request-headers", "Mcp-Param-Region, x-other")];
        let preflight = server.send(&format!("OPTIONS {path}"), &asked, "").await;
        assert_eq!(preflight.header("access-control-allow-origin"), Some("http://localhost:3000"));
        assert_eq!(preflight.header("vary"), Some("origin"));
        assert!(preflight.header("access-control-allow-methods").unwrap().contains("POST"));
        let allowed: Vec<&str> = preflight.header("access-control-allow-headers").unwrap().split(", ").collect();
        for name in [
            "content-type",
            "accept",
            "authorization",
            "mcp-session-id",
            "mcp-protocol-version",
            "last-event-id",
            "mcp-method",
            "mcp-name",
            "mcp-param-region",
        ] {
            assert!(allowed.contains(&name), "{name} in {allowed:?}");
        }
        assert!(!allowed.contains(&"x-other"));
    }
    let server = Server::start(DemoName::Tracker, Over::Http).await;
    let answer = server.post(&[("origin", "http://127.0.0.1:5173")], &initialize("2025-06-18")).await;
    assert_eq!(answer.header("access-control-allow-origin"), Some("http://127.0.0.1:5173"));
    let exposed = answer.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("mcp-session-id") && exposed.contains("www-authenticate"));
}

/// Reads from a stream until it holds `text`, and returns all that came.
async fn read_until(stream: &mut TcpStream, mut so_far: String, text: &str) -> String {
    while !so_far.contains(text) {
        let mut bytes = [0; 4096];
        let count = timeout(DEADLINE, stream.read(&mut bytes)).await.expect("more in time").unwrap();
        assert_ne!(count, 0, "the stream ended before {text}: {so_far}");
        so_far.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
    }
    so_far
}

#[tokio::test]
async fn the_old_transport_answers_on_its_stream() {
    let server = Server::start(DemoName::Shop, Over::Sse).await;
    let mut stream = server.open("GET /sse", &[("accept", "text/event-stream")], "", "keep-alive").await;
    let head = read_until(&mut stream, String::new(), "\n\n\r\n").await;
    assert!(head.contains("content-type: text/event-stream\r\n"), "{head}");
    let (_, after) = head.split_once("event: endpoint\ndata: ").expect("the first event names the endpoint");
    let endpoint = after.split('\n').next().unwrap().to_owned();
    assert!(endpoint.starts_with("/messages?session_id="), "{endpoint}");

    let post = async |target: &str, body: &str| {
        server.send(&format!("POST {target}"), &[("content-type", "application/json")], body).await.status()
    };
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(post("/messages?session_id=unknown", ping).await, 404);
    assert_eq!(post("/messages", ping).await, 400);
    assert_eq!(post(&endpoint, "{").await, 400);
    assert_eq!(post(&endpoint, r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#).await, 400);
    // What no session has asked for yet must not end it.
    assert_eq!(post(&endpoint, r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#).await, 202);

    assert_eq!(post(&endpoint, &initialize("2024-11-05")).await, 202);
    let events = read_until(&mut stream, String::new(), "\n\n").await;
    assert!(events.contains("event: message\ndata: {") && events.contains(r#""protocolVersion":"2024-11-05""#), "{events}");
    assert_eq!(post(&endpoint, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await, 202);
    let call = json!({
        "jsonrpc": "2.0", "id": "c", "method": "tools/call",
        "params": { "name": "calculate", "arguments": { "a": 5, "b": 3 } },
    });
    assert_eq!(post(&endpoint, &call.to_string()).await, 202);
    let events = read_until(&mut stream, String::new(), "\n\n").await;
    assert!(events.contains(r#""id":"c""#) && events.contains("Result: 8"), "{events}");

    // When the stream goes, its session goes with it; until the server has noticed, messages are accepted.
    drop(stream);
    let gone = async { while post(&endpoint, ping).await != 404 {} };
    timeout(DEADLINE, gone).await.expect("the session ends");
}

#[tokio::test]
async fn stop_ends_open_streams_and_frees_the_port() {
    for (over, start) in [(Over::Http, "GET /mcp"), (Over::Sse, "GET /sse")] {
        let server = Server::start(DemoName::Tracker, over).await;
        let id = if let Over::Http = over { server.session().await } else { String::from("none") };
        let headers = [("accept", "text/event-stream"), ("mcp-session-id", &*id)];
        let mut stream = server.open(start, &headers, "", "keep-alive").await;
        read_until(&mut stream, String::new(), "\r\n\r\n").await;
        let address = server.address;
        server.stop.send(()).unwrap();
        let mut rest = Vec::new();
        timeout(DEADLINE, stream.read_to_end(&mut rest)).await.expect("the stream ends").unwrap();
        assert!(rest.ends_with(b"0\r\n\r\n"), "a stream ends as a whole: {}", String::from_utf8_lossy(&rest));
        timeout(DEADLINE, server.served).await.expect("the server ends").unwrap().unwrap();
        assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
    }
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let server = Server::start(DemoName::Tracker, Over::Http).await;
    let transport = DemoTransport::Sse { host: DEFAULT_HOST.to_owned(), port: server.address.port() };
    let error = match bind(&DemoOptions { transport, ..DemoOptions::new(DemoName::Tracker) }).await {
        Ok(listening) => panic!("{} is taken", listening.url()),
        Err(error) => error,
    };
    assert!(matches!(error, DemoError::Bind { .. }));
    assert!(error.to_string().starts_with(&format!("cannot listen on {}", server.address)), "{error}");
}
