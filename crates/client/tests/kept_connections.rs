//! A connection that was kept and ends just as it is used again: what may go out again does so once, over a new connection, and the
//! transcript shows both.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mcproof_client::{Beside, ConnectOptions, Endpoint, RawHttpRequest, Session, Tap, Target, open_session};
use mcproof_protocol::EraChoice;
use mcproof_record::{Frame, FrameBody};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

const DEADLINE: Duration = Duration::from_secs(5);

/// Which requests get the end of their connection in place of a response.
#[derive(Clone, Copy)]
enum Closes {
    /// All after the first one.
    TheSecond,
    /// All but `server/discover`, on whatever connection.
    AllAfterHandshake,
    /// The second one, after a byte of its response.
    TheSecondWithAByte,
    /// None.
    Nothing,
}

/// Whether connections wait for the end of one another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Serving {
    SideBySide,
    OneByOne,
}

/// How often each method was requested.
type Requests = Arc<Mutex<BTreeMap<String, usize>>>;

async fn serve(closes: Closes, serving: Serving) -> (Url, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
    let requests = Requests::default();
    let seen = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let served = tokio::spawn(converse(stream, closes, Arc::clone(&seen)));
            if serving == Serving::OneByOne {
                served.await.unwrap();
            }
        }
    });
    (url, requests)
}

/// A modern server in one function. Ends when the client has closed the connection, at the latest.
async fn converse(stream: TcpStream, closes: Closes, requests: Requests) -> Option<()> {
    let mut stream = BufReader::new(stream);
    for number in 0.. {
        let (mut length, mut line) = (0, String::new());
        let mut first = None;
        while line != "\r\n" {
            line.clear();
            if stream.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            first.get_or_insert_with(|| line.split(' ').next().unwrap_or_default().to_owned());
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.ok()?;
        let message: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let method = message["method"].as_str().map_or_else(|| first.unwrap_or_default(), str::to_owned);
        *requests.lock().unwrap().entry(method.clone()).or_default() += 1;
        match closes {
            Closes::TheSecond | Closes::TheSecondWithAByte if number == 0 => {}
            Closes::AllAfterHandshake if method == "server/discover" => {}
            Closes::Nothing => {}
            Closes::TheSecond | Closes::AllAfterHandshake => return None,
            Closes::TheSecondWithAByte => {
                stream.write_all(b"H").await.ok()?;
                return None;
            }
        }
        let result = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"tools":[],"content":[]}"#;
        let response = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, message["id"]);
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", response.len());
        stream.write_all(format!("{head}{response}").as_bytes()).await.ok()?;
    }
    None
}

async fn open(closes: Closes) -> (Session, Requests) {
    open_at(serve(closes, Serving::SideBySide).await).await
}

async fn open_at((url, requests): (Url, Requests)) -> (Session, Requests) {
    let target = Target::Http { endpoint: Endpoint { url, headers: Vec::new() }, kind: None, launch: None, locate: None };
    let options = ConnectOptions { era: EraChoice::Modern, ..ConnectOptions::default() };
    (open_session(&target, &options, &Tap::new()).await.unwrap(), requests)
}

/// How often a method was requested, and how often the transcript has its request and tells that one went out again.
fn counted(session: &Session, requests: &Requests, method: &str) -> (usize, usize, usize) {
    let frames = session.tap().transcript().frames;
    let is_sent = |frame: &&Frame| match &frame.body {
        FrameBody::HttpRequest { method: verb, body, .. } => verb == method || body.to_text().contains(&format!("\"method\":\"{method}\"")),
        _ => false,
    };
    let sent = frames.iter().filter(is_sent).count();
    let again = frames.iter().filter(|frame| frame.body.sent_again().is_some()).count();
    (requests.lock().unwrap().get(method).copied().unwrap_or_default(), sent, again)
}

#[tokio::test]
async fn what_changes_nothing_goes_out_again_and_is_recorded() {
    let (session, requests) = open(Closes::TheSecond).await;
    session.request("tools/list", None, DEADLINE).await.unwrap().answer.unwrap();
    assert_eq!(counted(&session, &requests, "tools/list"), (2, 2, 1));
    session.request("tools/list", None, DEADLINE).await.unwrap().answer.unwrap();
    assert_eq!(counted(&session, &requests, "tools/list"), (4, 4, 2));
    let get = RawHttpRequest { method: "GET".into(), ..RawHttpRequest::default() };
    session.ask_over_http(&get, DEADLINE).await.unwrap().unwrap();
    assert_eq!(counted(&session, &requests, "GET"), (2, 2, 3));
}

#[tokio::test]
async fn a_call_does_not_go_out_again() {
    let (session, requests) = open(Closes::TheSecond).await;
    let call = serde_json::json!({ "name": "t", "arguments": {} });
    let failure = session.request("tools/call", call.as_object().cloned(), DEADLINE).await.unwrap_err();
    assert_eq!(failure.to_string(), "connection closed before message completed");
    assert_eq!(counted(&session, &requests, "tools/call"), (1, 1, 0));
}

#[tokio::test]
async fn nothing_goes_out_again_on_a_new_connection_or_after_a_byte_of_a_response() {
    let (session, requests) = open(Closes::AllAfterHandshake).await;
    for count in [2, 3] {
        let failure = session.request("tools/list", None, DEADLINE).await.unwrap_err();
        assert_eq!(failure.to_string(), "connection closed before message completed");
        // The connection of the handshake was kept; the one of the second attempt was not.
        assert_eq!(counted(&session, &requests, "tools/list"), (count, count, 1));
    }
    let (session, requests) = open(Closes::TheSecondWithAByte).await;
    session.request("tools/list", None, DEADLINE).await.unwrap_err();
    assert_eq!(counted(&session, &requests, "tools/list"), (1, 1, 0));
}

#[tokio::test]
async fn a_connection_that_is_in_the_way_of_another_one_is_told() {
    let ping = RawHttpRequest {
        method: "POST".into(),
        body: br#"{"jsonrpc":"2.0","id":"beside","method":"ping"}"#.to_vec(),
        ..RawHttpRequest::default()
    };
    for (serving, expected) in [(Serving::SideBySide, Beside::Served), (Serving::OneByOne, Beside::ServedAfterClose)] {
        let (session, _) = open_at(serve(Closes::Nothing, serving).await).await;
        assert_eq!(session.ask_beside(None, &ping, Duration::from_millis(500)).await, Some(expected));
        // There is no stream to be beside.
        assert_eq!(session.ask_beside(Some(&ping), &ping, Duration::from_millis(500)).await, Some(Beside::Broken));
    }
}
