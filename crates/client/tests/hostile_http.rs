//! What HTTP servers do to a client that they should not: each ends by its deadline or its bound, with a sentence of its
//! own. The servers are raw sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use mcproof_client::{ConnectOptions, Endpoint, Limits, Session, Tap, Target, open_session};
use mcproof_protocol::EraChoice;
use mcproof_record::{ExchangeId, FrameBody, Transcript};
use std::io::Write as _;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use url::Url;

/// What the server does instead of answering `tools/list`.
#[derive(Clone)]
enum Attack {
    /// Says this and closes the connection.
    Hangs(Vec<u8>),
    /// Says this and waits.
    Stays(Vec<u8>),
    /// Says the first at once and the second byte by byte.
    Drips(Vec<u8>, Vec<u8>),
    /// Says the first, and the second again and again.
    Repeats(Vec<u8>, Vec<u8>),
}

async fn serve(attack: Attack) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(converse(stream, attack.clone()));
        }
    });
    url
}

/// Ends when the client has closed the connection, at the latest.
async fn converse(stream: TcpStream, attack: Attack) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut length, mut line) = (0, String::new());
        while line != "\r\n" {
            line.clear();
            if stream.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.ok()?;
        let message: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let method = message["method"].as_str().unwrap_or_default();
        if method == "tools/list" {
            return perform(stream, attack).await;
        }
        let result = r#"{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;
        let response = match method {
            "initialize" | "ping" => answer("", format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, message["id"]).as_bytes()),
            "" => b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n".to_vec(),
            _ => b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_vec(),
        };
        stream.write_all(&response).await.ok()?;
    }
}

async fn perform(mut stream: BufReader<TcpStream>, attack: Attack) -> Option<()> {
    match attack {
        Attack::Hangs(bytes) => stream.write_all(&bytes).await.ok()?,
        Attack::Stays(bytes) => {
            stream.write_all(&bytes).await.ok()?;
            stream.read_u8().await.ok()?;
        }
        Attack::Drips(head, bytes) => {
            stream.write_all(&head).await.ok()?;
            for byte in bytes {
                sleep(Duration::from_millis(20)).await;
                stream.write_all(&[byte]).await.ok()?;
            }
        }
        Attack::Repeats(head, bytes) => {
            stream.write_all(&head).await.ok()?;
            loop {
                stream.write_all(&bytes).await.ok()?;
            }
        }
    }
    Some(())
}

const BOUND: usize = 100_000;
const DEADLINE: Duration = Duration::from_millis(400);

async fn open(attack: Attack) -> Session {
    let endpoint = Endpoint { url: serve(attack).await, headers: Vec::new() };
    let target = Target::Http { endpoint, kind: None, launch: None, locate: None };
    let limits = Limits { body: BOUND, event: BOUND, head: 16 << 10, ..Limits::default() };
    let options = ConnectOptions { era: EraChoice::Legacy, limits, ..ConnectOptions::default() };
    open_session(&target, &options, &Tap::new()).await.unwrap()
}

/// Asks for the tools, and gives the response or the failure as text, with what was recorded.
async fn asked(attack: Attack, deadline: Duration) -> (String, Transcript) {
    let session = open(attack).await;
    let started = Instant::now();
    let text = match session.request("tools/list", None, deadline).await {
        Ok(reply) => reply.answer.unwrap().to_string(),
        Err(failure) => failure.to_string(),
    };
    assert!(started.elapsed() < deadline + Duration::from_secs(2), "{text}: {:?}", started.elapsed());
    (text, session.tap().transcript())
}

async fn check(attack: Attack, expected: &str) {
    assert_eq!(asked(attack, Duration::from_secs(10)).await.0, expected);
}

/// The same where only the deadline can end it.
async fn check_timeout(attack: Attack, expected: &str) {
    let (found, _) = asked(attack, DEADLINE).await;
    let how_far = found.strip_prefix("no response to `tools/list` within 400 ms: ").unwrap_or(&found);
    assert_eq!(how_far, expected);
}

/// The id of the request comes from the course of [`open`]: `initialize` is the first.
const ANSWER: &[u8] = br#"{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#;
const ANSWERED: &str = r#"{"tools":[]}"#;

fn answer(headers: &str, body: &[u8]) -> Vec<u8> {
    response(&format!("content-type: application/json\r\ncontent-length: {}\r\n{headers}", body.len()), body)
}

fn response(headers: &str, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\n{headers}\r\n").as_bytes(), body].concat()
}

fn stream(body: &[u8]) -> Vec<u8> {
    response("content-type: text/event-stream\r\n", body)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn heads_are_bounded_and_checked() {
    let too_large = "the head of the response is larger than 16384 bytes, or has more than 100 headers";
    let start = || b"HTTP/1.1 200 OK\r\n".to_vec();
    check(Attack::Repeats(start(), b"x-filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n".to_vec()), too_large).await;
    check(Attack::Repeats(b"HTTP/1.1 200 OK\r\nx-endless: ".to_vec(), b"aaaaaaaaaaaaaaaa".to_vec()), too_large).await;
    check(Attack::Stays(response(&"a: b\r\n".repeat(101), b"")), too_large).await;
    check(Attack::Stays(response("x-bell: ding\x07\r\n", b"")), "the response is not valid HTTP: invalid HTTP header parsed").await;
    check(Attack::Stays(response("bad name: x\r\n", b"")), "the response is not valid HTTP: invalid HTTP header parsed").await;
    check(Attack::Stays(b"SSH-2.0-OpenSSH_9.9\r\n".to_vec()), "the response is not valid HTTP: invalid HTTP version parsed").await;
    check(Attack::Hangs(b"HTTP/1.1 200 OK\r\ncontent-".to_vec()), "connection closed before message completed").await;
    check(Attack::Hangs(Vec::new()), "connection closed before message completed").await;
}

#[tokio::test]
async fn a_body_that_is_cut_off_is_no_answer() {
    let cut = |reason: &str| format!("HTTP 200: not an MCP response, application/json, broken off ({reason})");
    let short = cut("error reading a body from connection: end of file before message length reached");
    let json = "content-type: application/json\r\n";
    check(Attack::Hangs(response(&format!("{json}content-length: 500\r\n"), ANSWER)), &short).await;
    let chunked = response(&format!("{json}transfer-encoding: chunked\r\n"), &[b"2f\r\n", ANSWER].concat());
    let found = asked(Attack::Hangs(chunked), DEADLINE).await.0;
    assert!(found.contains("broken off (error reading a body from connection: "), "{found}");
    let bad_chunk = response(&format!("{json}transfer-encoding: chunked\r\n"), b"zz\r\n");
    let found = asked(Attack::Stays(bad_chunk), DEADLINE).await.0;
    assert!(found.contains("broken off (error reading a body from connection: "), "{found}");
}

#[tokio::test]
async fn what_follows_a_body_is_noted_and_belongs_to_no_answer() {
    let (found, _) = asked(Attack::Stays([&answer("", ANSWER)[..], b"surplus"].concat()), DEADLINE).await;
    assert_eq!(found, ANSWERED);
    let session = open(Attack::Stays([&answer("", ANSWER)[..], b"surplus"].concat())).await;
    session.request("tools/list", None, DEADLINE).await.unwrap();
    // Goes out on another connection.
    session.request("ping", None, DEADLINE).await.unwrap();
    let notes = notes(&session.tap().transcript());
    assert!(notes.iter().any(|note| note.ends_with("abandoned: received unexpected message from connection")), "{notes:?}");
}

fn notes(transcript: &Transcript) -> Vec<String> {
    let note = |body: &FrameBody| match body {
        FrameBody::Note { text } => Some(text.clone()),
        _ => None,
    };
    transcript.frames.iter().filter_map(|frame| note(&frame.body)).collect()
}

#[tokio::test]
async fn interim_responses_are_no_answer() {
    let interim = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
    check(Attack::Stays([&interim[..], b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", &answer("", ANSWER)].concat()), ANSWERED).await;
    check_timeout(Attack::Repeats(Vec::new(), interim), "no response began").await;
}

#[tokio::test]
async fn a_deadline_says_how_far_the_server_came() {
    check_timeout(Attack::Stays(Vec::new()), "no response began").await;
    check_timeout(Attack::Stays(b"HTTP/1.1 200 OK\r\ncontent-".to_vec()), "no response began").await;
    check_timeout(Attack::Drips(Vec::new(), answer("", ANSWER)), "no response began").await;
    let json = "content-type: application/json\r\ncontent-length: 500\r\n";
    check_timeout(Attack::Stays(response(json, b"")), "a response began, but nothing of its body came").await;
    check_timeout(Attack::Stays(response(json, b"{\"json")), "a response began, and 6 bytes of its body came").await;
    let (found, _) = asked(Attack::Drips(response(json, b""), vec![b' '; 500]), DEADLINE).await;
    assert!(found.starts_with("no response to `tools/list` within 400 ms: a response began, and "), "{found}");
    check_timeout(Attack::Stays(stream(b": hello\n\n")), "a response began, and 9 bytes of its body came").await;
}

#[tokio::test]
async fn bodies_are_bounded_before_and_after_they_are_decoded() {
    let large = format!("HTTP 200: not an MCP response, application/json, broken off (the body is larger than {BOUND} bytes)");
    let json = "content-type: application/json\r\n";
    check(Attack::Repeats(response(json, b""), vec![b' '; 4096]), &large).await;
    for (coding, bomb) in [("gzip", gzip(&vec![b' '; 50_000_000])), ("deflate", zlib(&vec![b' '; 50_000_000]))] {
        check(Attack::Stays(answer(&format!("content-encoding: {coding}\r\n"), &bomb)), &large).await;
    }
    let bomb = gzip(&b"data: {}\n\n".repeat(1_000_000));
    let found = asked(Attack::Stays(response("content-type: text/event-stream\r\ncontent-encoding: gzip\r\n", &bomb)), DEADLINE).await.0;
    assert!(found.ends_with("broken off (an event is larger than 100000 bytes)"), "{found}");
}

/// Every event as it was recorded: its bytes and what they mean.
fn events(transcript: &Transcript) -> Vec<FrameBody> {
    let is_event = |body: &&FrameBody| matches!(body, FrameBody::SseEvent { .. });
    transcript.frames.iter().map(|frame| &frame.body).filter(is_event).cloned().collect()
}

#[tokio::test]
async fn events_are_the_same_wherever_the_chunks_of_a_body_are_cut() {
    let notification = br#"{"jsonrpc":"2.0","method":"n"}"#;
    let parts: [&[u8]; 5] = [b": hi\r\n\r\nid: 1\r\ndata: ", notification, b"\r\n\r\nevent: message\ndata: ", ANSWER, b"\r\r\n"];
    let body = parts.concat();
    let chunk = |bytes: &[u8]| [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    let chunked = |chunks: &[&[u8]]| {
        let chunks: Vec<u8> = chunks.iter().flat_map(|bytes| chunk(bytes)).collect();
        response("content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n", &[&chunks[..], b"0\r\n\r\n"].concat())
    };
    let (found, uncut) = asked(Attack::Stays(chunked(&[&body])), DEADLINE).await;
    assert_eq!((found.as_str(), events(&uncut).len()), (ANSWERED, 3));
    for cut in 1..body.len() {
        let (found, transcript) = asked(Attack::Stays(chunked(&[&body[..cut], &body[cut..]])), DEADLINE).await;
        assert_eq!(found, ANSWERED, "cut at {cut}");
        assert_eq!(without_exchanges(events(&transcript)), without_exchanges(events(&uncut)), "cut at {cut}");
    }
}

/// A session may have had another exchange before.
fn without_exchanges(mut bodies: Vec<FrameBody>) -> Vec<FrameBody> {
    for body in &mut bodies {
        if let FrameBody::SseEvent { exchange, .. } = body {
            *exchange = ExchangeId(0);
        }
    }
    bodies
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn compressed_answers_are_read() {
    let mut bare = DeflateEncoder::new(Vec::new(), Compression::best());
    bare.write_all(ANSWER).unwrap();
    // `br` by hand: the response as one uncompressed meta-block.
    let header = (u32::try_from(ANSWER.len()).unwrap() - 1) << 4 | 1 << 20;
    let brotli = [&header.to_le_bytes()[..3], ANSWER, &[3]].concat();
    for (coding, body) in [("gzip", gzip(ANSWER)), ("deflate", zlib(ANSWER)), ("deflate", bare.finish().unwrap()), ("br", brotli)] {
        check(Attack::Stays(answer(&format!("content-encoding: {coding}\r\n"), &body)), ANSWERED).await;
    }
    let events = gzip(&[b"data: ", ANSWER, b"\n\n"].concat());
    check(Attack::Stays(response("content-type: text/event-stream\r\ncontent-encoding: gzip\r\n", &events)), ANSWERED).await;
    let (_, transcript) = asked(Attack::Stays(answer("content-encoding: gzip\r\n", &gzip(ANSWER))), DEADLINE).await;
    let expected = format!("the body is decoded: {} bytes of gzip on the wire, {} bytes of content", gzip(ANSWER).len(), ANSWER.len());
    assert!(notes(&transcript).contains(&expected), "{:?}", notes(&transcript));
}

#[tokio::test]
async fn codings_that_are_unknown_or_broken_are_named() {
    let broken = |reason: &str| format!("HTTP 200: not an MCP response, application/json, broken off ({reason})");
    let unknown = broken("unsupported content-encoding `zstd` (supported: gzip, deflate, br)");
    check(Attack::Stays(answer("content-encoding: zstd\r\n", ANSWER)), &unknown).await;
    check(Attack::Stays(answer("content-encoding: gzip\r\n", ANSWER)), &broken("the body is not valid gzip")).await;
    let cut = &gzip(ANSWER)[..20];
    check(Attack::Stays(answer("content-encoding: gzip\r\n", cut)), &broken("the body ends in the middle of its gzip")).await;
}

#[tokio::test]
async fn a_huge_event_is_refused_and_only_its_beginning_kept() {
    let (found, transcript) = asked(Attack::Repeats(stream(b"data: "), vec![b'x'; 4096]), Duration::from_secs(10)).await;
    assert!(found.ends_with("broken off (an event is larger than 100000 bytes)"), "{found}");
    let kept = transcript.frames.iter().find_map(|frame| match &frame.body {
        FrameBody::SseEvent { bytes, .. } => Some(bytes.len()),
        _ => None,
    });
    assert_eq!(kept, Some(64 << 10));
}

#[tokio::test]
async fn nothing_that_listens_is_named_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let endpoint = Endpoint { url: Url::parse(&format!("http://{address}/")).unwrap(), headers: Vec::new() };
    let target = Target::Http { endpoint, kind: None, launch: None, locate: None };
    let failure = open_session(&target, &ConnectOptions::default(), &Tap::new()).await.err().unwrap();
    assert_eq!(failure.to_string(), format!("`server/discover`: connection to {address} refused"));
}
