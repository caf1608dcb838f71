//! Which era a server is taken to live in, for each response that was seen in the wild. The servers are canned HTTP
//! responses on a real socket.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mcproof_client::{ConnectOptions, Endpoint, Session, Tap, Target, open_session};
use mcproof_protocol::EraChoice;
use mcproof_record::FrameBody;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

type Respond = Arc<dyn Fn(&str, &str, &str) -> String + Send + Sync>;

/// A server that answers each request with what `respond` makes of its HTTP method, JSON-RPC method and id.
async fn serve(respond: Respond) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(converse(stream, Arc::clone(&respond)));
        }
    });
    url
}

async fn converse(stream: TcpStream, respond: Respond) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        let mut length = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line.trim().is_empty() {
                break;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.ok()?;
        let message: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let method = message["method"].as_str().unwrap_or_default();
        let response = respond(head.split(' ').next().unwrap_or_default(), method, &message["id"].to_string());
        stream.write_all(response.as_bytes()).await.ok()?;
    }
}

fn http(status: &str, kind: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn json(status: &str, body: &str) -> String {
    http(status, "application/json", body)
}

const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}"#;
const INITIALIZED: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;

fn result(id: &str, result: &str) -> String {
    json("200 OK", &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
}

fn error(status: &str, id: &str, code: i32, data: &str) -> String {
    json(status, &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"m","data":{data}}}}}"#))
}

async fn open(respond: Respond, era: EraChoice) -> Result<Session, String> {
    let endpoint = Endpoint { url: serve(respond).await, headers: Vec::new() };
    let target = Target::Http { endpoint, kind: None, launch: None, locate: None };
    let options = ConnectOptions { era, timeout: Some(Duration::from_secs(5)), ..ConnectOptions::default() };
    open_session(&target, &options, &Tap::new()).await.map_err(|failure| failure.to_string())
}

/// `discover` is the response to the probe; `initialize` and notifications are answered as a legacy server does.
async fn check(discover: impl Fn(&str) -> String + Send + Sync + 'static, expected: &str) {
    let respond: Respond = Arc::new(move |_, method, id| match method {
        "server/discover" => discover(id),
        "initialize" => result(id, INITIALIZED),
        _ => http("202 Accepted", "text/plain", ""),
    });
    let found = match open(respond, EraChoice::Auto).await {
        Ok(session) => format!("{} {}", session.handshake().era, session.handshake().protocol_version),
        Err(failure) => failure,
    };
    assert_eq!(found, expected);
}

#[tokio::test]
async fn the_answer_to_the_probe_tells_the_era() {
    let legacy = "legacy 2025-06-18";
    let modern = "modern 2026-07-28";
    check(|id| result(id, DISCOVERED), modern).await;
    check(
        |id| http("200 OK", "text/event-stream", &format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{DISCOVERED}}}\r\n\r\n")),
        modern,
    )
    .await;
    check(|_| error("400 Bad Request", "null", -32000, "null"), legacy).await;
    check(|id| error("200 OK", id, -32601, "null"), legacy).await;
    check(|id| error("400 Bad Request", id, -32602, "null"), legacy).await;
    check(|_| http("400 Bad Request", "text/plain", "no"), legacy).await;
    check(|_| http("404 Not Found", "text/html", "<html>"), legacy).await;
    check(|_| http("500 Oops", "text/plain", ""), legacy).await;
    check(|id| result(id, "{}"), legacy).await;
    // A modern server without `server/discover`: it must have it, but what it is shows all the same.
    check(|id| error("404 Not Found", id, -32601, "null"), modern).await;
    // Dual-era, but not of our modern revision: the handshake is the way to what it offers.
    check(|id| error("400 Bad Request", id, -32022, r#"{"supported":["2025-06-18"]}"#), legacy).await;
    check(
        |id| error("400 Bad Request", id, -32022, r#"{"supported":["2031-01-01"]}"#),
        "server supports no revision that mcproof knows, only 2031-01-01",
    )
    .await;
    check(|_| http("401 Unauthorized", "text/plain", ""), "server requires authorization: HTTP 401 for `server/discover`").await;
}

#[tokio::test]
async fn a_modern_server_that_refuses_our_version_once_is_asked_again() {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let discover = move |id: &str| match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        0 => error("400 Bad Request", id, -32022, r#"{"supported":["2026-07-28"],"requested":"2026-07-28"}"#),
        _ => result(id, DISCOVERED),
    };
    check(discover, "modern 2026-07-28").await;
}

#[tokio::test]
async fn a_stream_server_is_found_behind_its_url() {
    let respond: Respond = Arc::new(|http_method, _, _| match http_method {
        "GET" => "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: endpoint\ndata: http://elsewhere.example/messages\n\n"
            .to_owned(),
        _ => http("404 Not Found", "text/html", "Cannot POST /sse"),
    });
    // An endpoint on another origin would carry credentials away.
    let failure = open(respond, EraChoice::Auto).await.err().unwrap();
    assert_eq!(failure, "HTTP+SSE: the endpoint `http://elsewhere.example/messages` is not a URL of the same origin");
}

#[tokio::test]
async fn a_response_without_an_answer_says_what_it_is() {
    let respond: Respond = Arc::new(|_, method, id| match method {
        "initialize" => result(id, INITIALIZED),
        "tools/list" => "HTTP/1.1 307 Temporary Redirect\r\nlocation: /mcp/\r\ncontent-length: 0\r\n\r\n".to_owned(),
        _ => http("202 Accepted", "text/plain", ""),
    });
    let session = open(respond, EraChoice::Legacy).await.unwrap();
    let failure = session.request("tools/list", None, Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(failure.to_string(), "HTTP 307: not an MCP response, no content type, to /mcp/");
    let failure = session.request("ping", None, Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(failure.to_string(), "HTTP 202: not an MCP response, text/plain");
}

#[tokio::test]
async fn a_session_is_open_when_the_server_knows_that_we_listen() {
    let respond: Respond = Arc::new(|http_method, method, id| match (http_method, method) {
        ("GET", _) => "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: welcome\n\n".to_owned(),
        (_, "initialize") => result(id, INITIALIZED),
        _ => http("202 Accepted", "text/plain", ""),
    });
    let session = open(respond, EraChoice::Legacy).await.unwrap();
    let transcript = session.tap().transcript();
    let streams = transcript.frames.iter().filter(|frame| match &frame.body {
        FrameBody::HttpResponse { headers, .. } => headers.iter().any(|(_, value)| value == "text/event-stream"),
        _ => false,
    });
    assert_eq!(streams.count(), 1);
}
