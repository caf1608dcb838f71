//! Calls derived from frames: one row of frames, one line for each call.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use mcproof_record::{Direction, ExchangeId, Frame, FrameBody, FrameId};
use mcproof_trace::SessionKey;
use mcproof_trace::calls::{Call, CallKind, CallStatus, CallTracker, Update};
use std::time::Duration;

/// `>` to the server, `<` from it, and `!` what neither sent.
fn frame(id: usize, text: &str) -> Frame {
    let (side, rest) = text.split_at(1);
    let direction = match side {
        ">" => Direction::ToServer,
        "<" => Direction::FromServer,
        _ => Direction::Local,
    };
    let number = |text: &str| ExchangeId(text.parse().unwrap());
    let words: Vec<&str> = rest.splitn(3, ' ').collect();
    let body = match words[..] {
        ["POST", exchange, body] => FrameBody::HttpRequest {
            exchange: number(exchange),
            method: "POST".into(),
            url: "http://localhost/mcp".into(),
            headers: vec![],
            body: body.into(),
        },
        ["GET", exchange] => FrameBody::HttpRequest {
            exchange: number(exchange),
            method: "GET".into(),
            url: "http://localhost/mcp?a=1".into(),
            headers: vec![],
            body: "".into(),
        },
        ["HEAD", exchange, status] => {
            FrameBody::HttpResponse { exchange: number(exchange), status: status.parse().unwrap(), headers: vec![] }
        }
        ["BODY", exchange, bytes] => FrameBody::HttpBody { exchange: number(exchange), bytes: bytes.into() },
        ["EVENT", exchange, data] => {
            FrameBody::SseEvent { exchange: number(exchange), bytes: "".into(), event: None, id: None, data: Some(data.into()) }
        }
        ["END", exchange] => FrameBody::HttpEnd { exchange: number(exchange), error: None },
        ["END", exchange, error] => FrameBody::HttpEnd { exchange: number(exchange), error: Some(error.into()) },
        ["EXIT"] => FrameBody::Exited { code: Some(1), signal: None },
        ["SPAWN"] => FrameBody::Spawned { pid: 1, command: vec![] },
        _ => FrameBody::Line { bytes: rest.into(), unterminated: false },
    };
    Frame { id: FrameId(id as u64), at: Duration::from_millis(id as u64), direction, body }
}

fn calls_of(frames: &[&str]) -> Vec<Call> {
    let mut tracker = CallTracker::new();
    let mut updates: Vec<_> = frames.iter().enumerate().flat_map(|(id, text)| tracker.feed(SessionKey(1), &frame(id, text))).collect();
    updates.extend(tracker.finish());
    assert_eq!(tracker.all_open().count(), 0);
    let ended = updates.into_iter().filter_map(|update| if let Update::Ended(call) = update { Some(*call) } else { None });
    let mut calls: Vec<_> = ended.collect();
    calls.sort_by_key(|call| call.key);
    calls
}

fn line(call: &Call) -> String {
    let arrow = if call.direction == Direction::ToServer { ">" } else { "<" };
    let mut text = format!("{}{arrow} {}", call.key, call.method);
    if let Some(target) = &call.target {
        text += &format!(" {target}");
    }
    if call.kind != CallKind::Request {
        text += &format!(" [{}]", serde_json::to_value(call.kind).unwrap().as_str().unwrap());
    }
    text += &format!(" {}", call.status.name());
    if let Some(code) = call.code {
        text += &format!(" {code}");
    }
    if let Some(message) = &call.message {
        text += &format!(" ({message})");
    }
    if let Some(parent) = call.parent {
        text += &format!(" in {parent}");
    }
    if let Some(previous) = call.previous {
        text += &format!(" after {previous}");
    }
    text + &format!(" frames {}", call.frames.iter().map(|frame| frame.0.to_string()).collect::<Vec<_>>().join(","))
}

fn check(frames: &[&str], expected: &[&str]) {
    assert_eq!(calls_of(frames).iter().map(line).collect::<Vec<_>>(), expected, "{frames:#?}");
}

#[test]
fn requests_over_stdio_have_their_responses() {
    check(
        &[
            r#">{"id":1,"method":"tools/call","params":{"name":"a"}}"#,
            r#">{"id":"1","method":"tools/call","params":{"name":"b"}}"#,
            r#"<{"id":"1","result":{"isError":true,"content":[{"type":"text","text":"no"}]}}"#,
            "<noise",
            r#"<{"id":1,"error":{"code":-32602,"message":"bad"}}"#,
        ],
        &["1> tools/call a rpc-error -32602 (bad) frames 0,4", "2> tools/call b tool-error (no) frames 1,2"],
    );
}

#[test]
fn what_happens_during_a_request_belongs_to_it() {
    check(
        &[
            r#">{"id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"t"}}}"#,
            r#">{"id":2,"method":"ping"}"#,
            r#"<{"method":"notifications/progress","params":{"progressToken":"t","progress":1}}"#,
            r#"<{"id":2,"result":{}}"#,
            r#"<{"id":1,"method":"sampling/createMessage","params":{}}"#,
            r#">{"id":1,"result":{}}"#,
            r#"<{"id":1,"result":{}}"#,
        ],
        &[
            "1> tools/call a ok frames 0,6",
            "2> ping ok frames 1,3",
            "3< notifications/progress t [notification] ok in 1 frames 2",
            "4< sampling/createMessage ok in 1 frames 4,5",
        ],
    );
}

#[test]
fn late_and_second_responses_are_told_apart_from_unknown_ones() {
    check(
        &[
            r#">{"id":1,"method":"ping"}"#,
            r#">{"method":"notifications/cancelled","params":{"requestId":1,"reason":"too slow"}}"#,
            r#"<{"id":1,"result":{}}"#,
            r#"<{"id":9,"result":{}}"#,
        ],
        &[
            "1> ping canceled (too slow) frames 0,1",
            "2> notifications/cancelled 1 [notification] ok in 1 frames 1",
            "3< response [unmatched] ok (the request had already ended) in 1 frames 2",
            "4< response [unmatched] ok (no request has this id) frames 3",
        ],
    );
}

#[test]
fn requests_without_a_response_say_why() {
    check(
        &[r#">{"id":1,"method":"ping"}"#, "!EXIT", "!SPAWN", r#">{"id":1,"method":"ping"}"#],
        &["1> ping no-response (the server exited with code 1) frames 0", "2> ping no-response (the session ended) frames 3"],
    );
}

#[test]
fn an_http_exchange_belongs_to_its_request() {
    check(
        &[
            r#">POST 1 {"id":1,"method":"tools/call","params":{"name":"a"}}"#,
            "<HEAD 1 200",
            r#"<EVENT 1 {"method":"notifications/message","params":{"level":"info"}}"#,
            r#"<EVENT 1 {"id":7,"method":"roots/list"}"#,
            r#">POST 2 {"id":7,"result":{"roots":[]}}"#,
            "<HEAD 2 202",
            "!END 2",
            r#"<EVENT 1 {"id":1,"result":{}}"#,
            "!END 1",
        ],
        &[
            "1> tools/call a ok frames 0,1,7,8",
            "2< notifications/message info [notification] ok in 1 frames 2",
            "3< roots/list ok in 1 frames 3,4",
        ],
    );
}

#[test]
fn http_errors_and_failed_connections_end_a_request() {
    check(
        &[
            r#">POST 1 {"id":1,"method":"ping"}"#,
            "!END 1 connection refused",
            r#">POST 2 {"id":2,"method":"ping"}"#,
            "<HEAD 2 404",
            "<BODY 2 not found",
            "!END 2",
            r#">POST 3 {"id":3,"method":"ping"}"#,
            "<HEAD 3 400",
            r#"<BODY 3 {"id":3,"error":{"code":-32600,"message":"bad"}}"#,
            "!END 3",
            r#">POST 4 {"method":"notifications/initialized"}"#,
            "<HEAD 4 202",
            "!END 4",
            ">GET 5",
            "<HEAD 5 405",
            "!END 5",
        ],
        &[
            "1> ping no-response (connection refused) frames 0,1",
            "2> ping http-error (HTTP status 404) frames 2,3,4,5",
            "3> ping rpc-error -32600 (bad) frames 6,7,8,9",
            "4> notifications/initialized [notification] ok frames 10,11,12",
            "5> GET /mcp?a=1 [http] http-error (HTTP status 405) frames 13,14,15",
        ],
    );
}

#[test]
fn a_response_on_the_stream_of_http_with_sse_finds_its_request() {
    check(
        &[">GET 1", "<HEAD 1 200", r#">POST 2 {"id":1,"method":"ping"}"#, "<HEAD 2 202", "!END 2", r#"<EVENT 1 {"id":1,"result":{}}"#],
        &["1> GET /mcp?a=1 [http] ok frames 0,1", "2> ping ok frames 2,3,4,5"],
    );
}

#[test]
fn batches_are_calls_of_their_own() {
    check(
        &[r#">[{"id":1,"method":"ping"},{"id":2,"method":"ping"}]"#, r#"<[{"id":2,"result":{}},{"id":1,"result":{}}]"#],
        &["1> ping ok frames 0,1", "2> ping ok frames 0,1"],
    );
}

#[test]
fn a_request_that_brings_input_names_the_one_that_asked() {
    check(
        &[
            r#">{"id":1,"method":"tools/call","params":{"name":"a"}}"#,
            r#"<{"id":1,"result":{"resultType":"input_required","requestState":"s"}}"#,
            r#">{"id":2,"method":"tools/call","params":{"name":"a","requestState":"s"}}"#,
            r#"<{"id":2,"result":{"resultType":"complete"}}"#,
        ],
        &["1> tools/call a input-required frames 0,1", "2> tools/call a ok after 1 frames 2,3"],
    );
}

#[test]
fn memory_depends_on_what_is_open() {
    let mut tracker = CallTracker::new();
    for id in 0..10_020_usize {
        tracker.feed(SessionKey(1), &frame(id, &format!(r#">{{"id":{id},"method":"ping"}}"#)));
    }
    assert_eq!(tracker.all_open().count(), 10_000);
}

#[test]
fn a_discovery_agrees_on_nothing_before_it_is_answered() {
    let check = |texts: &[&str], expected: Option<&str>| {
        let mut tracker = CallTracker::new();
        for (id, text) in texts.iter().enumerate() {
            tracker.feed(SessionKey(1), &frame(id, text));
        }
        assert_eq!(tracker.facts(SessionKey(1)).and_then(|facts| facts.era()), expected, "{texts:?}");
    };
    let discover = r#">{"id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    let initialize = r#">{"id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    let initialized = r#"<{"id":2,"result":{"protocolVersion":"2025-11-25"}}"#;
    check(&[discover], None);
    check(&[discover, r#"<{"id":1,"error":{"code":-32601,"message":"no"}}"#], None);
    check(&[discover, r#"<{"id":1,"result":{"supportedVersions":["2025-11-25"]}}"#], None);
    check(&[discover, r#"<{"id":1,"result":{"supportedVersions":["2026-07-28"]}}"#], Some("modern"));
    check(&[discover, r#"<{"id":1,"error":{"code":-32601,"message":"no"}}"#, initialize, initialized], Some("legacy"));
}

#[test]
fn open_requests_have_a_bound_however_large_they_are() {
    let body = "x".repeat(4 << 20);
    let request = |id: usize| format!(r#">{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{body}"}}}}"#);
    let frames: Vec<String> = (0..20).map(request).collect();
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    let ended = calls_of(&frames).into_iter().filter(|call| call.message.as_deref() == Some("too many requests are open")).count();
    assert_eq!(ended, 17);
}

/// As many as would take minutes if each response were looked for among all that came before.
#[test]
fn one_id_for_all_requests_is_followed_in_one_pass() {
    let request = |_| r#">{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":1}}}"#;
    let response = |_| r#"<{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let frames: Vec<&str> = (0..100_000).map(request).chain((0..100_000).map(response)).collect();
    let calls = calls_of(&frames);
    assert_eq!(calls.iter().filter(|call| call.kind == CallKind::Unmatched).count(), 99_999);
    // A batch ends with its responses.
    let batch: Vec<String> = (0..2_000).map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).collect();
    let answers: Vec<String> = (0..2_000).map(|id| format!(r#"<EVENT 1 {{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)).collect();
    let post = format!(">POST 1 [{}]", batch.join(","));
    let frames: Vec<&str> =
        [post.as_str(), "<HEAD 1 200"].into_iter().chain(answers.iter().map(String::as_str)).chain(["!END 1"]).collect();
    let calls = calls_of(&frames);
    assert!(calls.len() == 2_000 && calls.iter().all(|call| call.status == CallStatus::Ok), "{}", calls.len());
}
