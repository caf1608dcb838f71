//! Event streams that break and are taken up again by a GET (2025-03-26 to 2025-11-25, transports, resumability). The
//! server is a raw socket that plays a script.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mcproof_client::{ConnectOptions, Endpoint, RawHttpRequest, Session, Tap, Target, open_session};
use mcproof_protocol::EraChoice;
use mcproof_record::FrameBody;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use url::Url;

const DEADLINE: Duration = Duration::from_secs(10);

/// What the server does with a GET that takes a stream up again, by the id of its last event.
type Resume = Arc<dyn Fn(&str) -> Resumed + Send + Sync>;

struct Resumed {
    /// Sent at once.
    events: String,
    stream: Ending,
}

enum Ending {
    Closed,
    Open,
}

/// A server whose `tools/call` breaks off after an event with the id `broken-<name of the tool>`.
struct Server {
    url: Url,
    /// The last event ids of streams that the client has closed.
    left: mpsc::UnboundedReceiver<String>,
}

impl Server {
    async fn start(resume: Resume) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
        let (leaving, left) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(stream, Arc::clone(&resume), leaving.clone()));
            }
        });
        Self { url, left }
    }

    async fn open(&self) -> Session {
        let endpoint = Endpoint { url: self.url.clone(), headers: Vec::new() };
        let target = Target::Http { endpoint, kind: None, launch: None, locate: None };
        let options = ConnectOptions { era: EraChoice::Legacy, ..ConnectOptions::default() };
        open_session(&target, &options, &Tap::new()).await.unwrap()
    }
}

/// Ends when the client has closed the connection, at the latest.
async fn converse(stream: TcpStream, resume: Resume, leaving: mpsc::UnboundedSender<String>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut head, mut line) = (String::new(), String::new());
        while line != "\r\n" {
            line.clear();
            if stream.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            head.push_str(&line);
        }
        let header =
            |name: &str| head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix(name).map(|value| value.trim().to_owned()));
        let mut body = vec![0; header("content-length:").map_or(0, |length| length.parse().unwrap())];
        stream.read_exact(&mut body).await.ok()?;
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let events = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        match (message["method"].as_str(), header("last-event-id:")) {
            (None, Some(id)) => {
                let Resumed { events: said, stream: ending } = resume(&id);
                stream.write_all(format!("{events}{said}").as_bytes()).await.ok()?;
                if let Ending::Open = ending {
                    let _closed = stream.read_u8().await;
                    leaving.send(id).ok()?;
                }
                return None;
            }
            (None, None) => {
                // The stream for what the server says unasked.
                stream.write_all(format!("{events}: welcome\n\n").as_bytes()).await.ok()?;
                let _closed = stream.read_u8().await;
                leaving.send("general".into()).ok()?;
            }
            (Some("initialize"), _) => {
                let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "s", "version": "1" } });
                let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
                let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", answer.len());
                stream.write_all(format!("{head}{answer}").as_bytes()).await.ok()?;
            }
            (Some("tools/call"), _) => {
                let name = format!("{}.{}", message["params"]["name"].as_str().unwrap(), message["id"]);
                // Of what a tool called `cut…` sends, the second event ends in the middle, before its blank line.
                let cut = if name.starts_with("cut") { format!("id: half-{name}\nretry: 600000\ndata: {{}}\n") } else { String::new() };
                stream.write_all(format!("{events}id: {name}\nretry: 5\ndata:\n\n{cut}").as_bytes()).await.ok()?;
                return None;
            }
            _ => stream.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").await.ok()?,
        }
    }
}

fn event(message: &Value) -> String {
    format!("data: {message}\n\n")
}

fn call(tool: &str) -> Option<serde_json::Map<String, Value>> {
    json!({ "name": tool }).as_object().cloned()
}

/// The tool and the request that a stream was for.
fn parts(id: &str) -> (&str, i64) {
    let (tool, request) = id.split_once('.').unwrap();
    (tool, request.parse().unwrap())
}

#[tokio::test]
async fn an_error_without_an_id_on_a_resumed_stream_reaches_its_request() {
    let resume: Resume = Arc::new(|_| Resumed {
        events: event(&json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32603, "message": "lost" } })),
        stream: Ending::Closed,
    });
    let session = Server::start(resume).await.open().await;
    let reply = session.request("tools/call", call("a"), DEADLINE).await.unwrap();
    assert_eq!((reply.anonymous, reply.answer.unwrap_err().message), (true, "lost".to_owned()));
    assert!(session.faults().is_empty(), "{:?}", session.faults());
}

#[tokio::test]
async fn a_stream_is_taken_up_after_the_last_event_that_was_whole() {
    let resume: Resume = Arc::new(|id| {
        let (tool, request) = parts(id);
        match tool.split_once('-') {
            Some(_) => {
                let answer = json!({ "jsonrpc": "2.0", "id": request, "result": { "after": tool } });
                Resumed { events: event(&answer), stream: Ending::Open }
            }
            // It breaks once more, in the middle of the line with the id.
            None => Resumed { events: format!("id: {tool}-again.{request}\ndata:\n\nid: {tool}-ag"), stream: Ending::Closed },
        }
    });
    let session = Server::start(resume).await.open().await;
    let reply = session.request("tools/call", call("cut"), DEADLINE).await.unwrap();
    assert_eq!(reply.answer.unwrap()["after"], "cut-again");
}

#[tokio::test]
async fn a_resumed_stream_is_closed_after_the_answer_and_the_general_one_stays() {
    let resume: Resume = Arc::new(|id| {
        let (_, request) = parts(id);
        let progress = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": 1 } });
        let answer = json!({ "jsonrpc": "2.0", "id": request, "result": {} });
        Resumed { events: event(&progress) + &event(&answer), stream: Ending::Open }
    });
    let mut server = Server::start(resume).await;
    let session = server.open().await;
    session.request("tools/call", call("a"), DEADLINE).await.unwrap().answer.unwrap();
    let first = timeout(DEADLINE, server.left.recv()).await.expect("the resumed stream is closed").unwrap();
    assert!(first.starts_with("a."), "{first}");
    assert_eq!(session.notifications().len(), 1);
    let closed = "the event stream is closed: its request has its response";
    let frames = session.tap().transcript().frames;
    assert!(frames.iter().any(|frame| matches!(&frame.body, FrameBody::Note { text } if text == closed)), "{frames:?}");
    // The session goes on, and so does the stream that belongs to no request.
    session.request("tools/call", call("b"), DEADLINE).await.unwrap().answer.unwrap();
    assert!(timeout(DEADLINE, server.left.recv()).await.unwrap().unwrap().starts_with("b."));
    session.close().await;
    assert_eq!(timeout(DEADLINE, server.left.recv()).await.unwrap().unwrap(), "general");
}

#[tokio::test]
async fn streams_that_are_resumed_at_the_same_time_do_not_mix() {
    // Each breaks once more before it answers, so that many are under way at once.
    let resume: Resume = Arc::new(|id| match id.strip_prefix("again-") {
        None => Resumed { events: format!("id: again-{id}\nretry: 5\ndata:\n\n"), stream: Ending::Closed },
        Some(id) => {
            let (tool, request) = parts(id);
            // Without ids, only the stream tells whose error it is.
            let answer = match request % 2 {
                0 => json!({ "jsonrpc": "2.0", "id": request, "result": { "tool": tool } }),
                _ => json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -1, "message": tool } }),
            };
            Resumed { events: event(&answer), stream: Ending::Open }
        }
    });
    let server = Server::start(resume).await;
    let session = Arc::new(server.open().await);
    let calls: Vec<_> = (0..20)
        .map(|number| {
            let session = Arc::clone(&session);
            tokio::spawn(async move {
                let tool = format!("tool-{number}");
                let reply = session.request("tools/call", call(&tool), DEADLINE).await.unwrap();
                let found = match reply.answer {
                    Ok(result) => result["tool"].as_str().unwrap().to_owned(),
                    Err(error) => error.message,
                };
                assert_eq!(found, tool);
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert!(session.faults().is_empty(), "{:?}", session.faults());
}

#[tokio::test]
async fn what_is_sent_as_it_stands_is_taken_up_again_like_a_request() {
    let resume: Resume = Arc::new(|id| match id.strip_prefix("again-") {
        None => Resumed { events: format!("id: again-{id}\nretry: 5\ndata:\n\n"), stream: Ending::Closed },
        Some(id) => {
            let (tool, request) = parts(id);
            let answer = json!({ "jsonrpc": "2.0", "id": request, "result": { "tool": tool } });
            Resumed { events: event(&answer), stream: Ending::Open }
        }
    });
    let session = Server::start(resume).await.open().await;
    let message = json!({ "jsonrpc": "2.0", "id": 901, "method": "tools/call", "params": { "name": "a" } });
    let reply = session.send_message(message.as_object().unwrap(), DEADLINE).await.unwrap().unwrap();
    assert_eq!(reply.answer.unwrap()["tool"], "a");
    let body = message.to_string().replace("901", "902").into_bytes();
    let question = RawHttpRequest { method: "POST".into(), body, in_session: true, ..RawHttpRequest::default() };
    let response = session.ask_over_http(&question, DEADLINE).await.unwrap().unwrap();
    let answer: Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!((&answer["id"], &answer["result"]["tool"]), (&json!(902), &json!("a")));
    // A GET opens a stream of its own.
    let question = RawHttpRequest { method: "GET".into(), body: Vec::new(), ..question };
    assert!(session.ask_over_http(&question, Duration::from_millis(200)).await.unwrap().is_err());
}
