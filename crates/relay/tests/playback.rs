//! The mock over a pair of streams, from transcripts that are written here.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mcproof_protocol::Era;
use mcproof_record::{Direction, Frame, FrameBody, FrameId, Transcript};
use mcproof_relay::mock::{Ignored, Mock, MockEvent, MockOptions, RecordedAnswers, Recording, Repetition, ResponseCheck, serve_stdio};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split};
use tokio::task::JoinHandle;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A session over stdio: `>` what the client sent, `<` what the server sent.
fn transcript(lines: &[(char, Value)]) -> Transcript {
    let frame = |(number, (sender, value)): (usize, &(char, Value))| Frame {
        id: FrameId(number as u64),
        at: Duration::from_millis(number as u64),
        direction: if *sender == '>' { Direction::ToServer } else { Direction::FromServer },
        body: FrameBody::Line { bytes: value.to_string().as_str().into(), unterminated: false },
    };
    Transcript { frames: lines.iter().enumerate().map(frame).collect(), dropped: 0 }
}

fn handshake() -> Vec<(char, Value)> {
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} }, "clientInfo": { "name": "c", "version": "1" } });
    let result = json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": { "listChanged": true } },
        "serverInfo": { "name": "s", "version": "1" } });
    vec![
        ('>', json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })),
        ('<', json!({ "jsonrpc": "2.0", "id": 0, "result": result })),
        ('>', json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })),
    ]
}

fn call(id: u64, query: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "search", "arguments": { "query": query } } })
}

fn said(id: u64, text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [{ "type": "text", "text": text }] } })
}

/// A call during which the server reports progress and asks the user.
fn asking() -> Vec<(char, Value)> {
    let mut first = call(1, "a");
    first["params"]["_meta"] = json!({ "progressToken": "recorded" });
    let mut lines = handshake();
    lines.extend([
        ('>', first),
        ('<', json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": "recorded", "progress": 1 } })),
        ('<', json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": { "message": "Who?" } })),
        ('>', json!({ "jsonrpc": "2.0", "id": "q", "result": { "action": "accept", "content": { "name": "Ada" } } })),
        ('<', said(1, "hello Ada")),
    ]);
    lines
}

struct Talk {
    mock: Arc<Mock>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
    served: JoinHandle<std::io::Result<()>>,
}

impl Talk {
    fn with(transcripts: &[Transcript], repetition: Repetition, options: MockOptions) -> Self {
        Self::told(transcripts, repetition, options, |_| {})
    }

    fn told(
        transcripts: &[Transcript],
        repetition: Repetition,
        options: MockOptions,
        tell: impl Fn(MockEvent) + Send + Sync + 'static,
    ) -> Self {
        let answers = RecordedAnswers::new(Recording::of(transcripts), Ignored::default(), repetition);
        let mock = Mock::new(Box::new(answers), options, tell);
        let (near, far) = duplex(1 << 16);
        let (input, output) = split(far);
        let served = tokio::spawn({
            let mock = Arc::clone(&mock);
            async move { serve_stdio(&mock, input, output).await }
        });
        let (input, output) = split(near);
        Self { mock, lines: BufReader::new(input).lines(), output, served }
    }

    fn of(lines: Vec<(char, Value)>) -> Self {
        Self::with(&[transcript(&lines)], Repetition::LastAnswer, MockOptions::default())
    }

    async fn send(&mut self, message: &Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(20), self.lines.next_line()).await.expect("the mock says something");
        serde_json::from_str(&line.unwrap().expect("the mock has not ended")).unwrap()
    }

    async fn ask(&mut self, message: &Value) -> Value {
        self.send(message).await;
        self.next().await
    }

    async fn shake_hands(&mut self) {
        for (_, message) in handshake().iter().filter(|(sender, _)| *sender == '>') {
            self.send(message).await;
        }
        assert_eq!(self.next().await["result"]["serverInfo"]["name"], "s");
    }

    /// The number of misses, once the mock has ended because the client closed its stream.
    async fn end(mut self) -> u64 {
        self.output.shutdown().await.unwrap();
        drop((self.output, self.lines));
        self.served.await.unwrap().unwrap();
        self.mock.misses()
    }
}

fn twice() -> Vec<(char, Value)> {
    let mut lines = handshake();
    lines.extend([('>', call(1, "a")), ('<', said(1, "first")), ('>', call(2, "a")), ('<', said(2, "second"))]);
    lines
}

#[tokio::test]
async fn the_nth_request_gets_the_nth_answer_and_the_last_one_repeats() {
    let mut talk = Talk::of(twice());
    talk.shake_hands().await;
    for (id, text) in [(7, "first"), (8, "second"), (9, "second")] {
        assert_eq!(talk.ask(&call(id, "a")).await, said(id, text));
    }
    assert_eq!(talk.end().await, 0);
}

#[tokio::test]
async fn a_strict_mock_misses_what_is_sent_more_often_than_recorded() {
    let mut talk = Talk::with(&[transcript(&twice())], Repetition::Miss, MockOptions::default());
    talk.shake_hands().await;
    talk.ask(&call(7, "a")).await;
    talk.ask(&call(8, "a")).await;
    let refused = talk.ask(&call(9, "a")).await;
    assert_eq!(refused["error"]["message"], "mock: `tools/call search` was recorded 2 times, and is sent once more");
    assert_eq!(talk.end().await, 1);
}

/// A client that asked for each of these, and what it was told.
fn session_of(told: &[(&str, &str)]) -> Transcript {
    let mut lines = handshake();
    for (id, (query, text)) in (1..).zip(told) {
        lines.extend([('>', call(id, query)), ('<', said(id, text))]);
    }
    transcript(&lines)
}

/// Two clients with a cart each: what is in it depends on what they have added.
fn carts() -> [Transcript; 2] {
    [session_of(&[("apple", "1"), ("list", "apple")]), session_of(&[("pear", "1"), ("plum", "2"), ("list", "pear, plum")])]
}

#[tokio::test]
async fn a_client_plays_the_session_that_has_what_it_asked_for() {
    // In either order: the sessions are told apart by what is asked for, not by who comes first.
    for (asked, told) in [(&["apple", "list"][..], &["1", "apple"][..]), (&["pear", "plum", "list"][..], &["1", "2", "pear, plum"][..])] {
        let mut talk = Talk::with(&carts(), Repetition::Miss, MockOptions::default());
        talk.shake_hands().await;
        for (id, (query, text)) in (7..).zip(asked.iter().zip(told)) {
            assert_eq!(talk.ask(&call(id, query)).await, said(id, text));
        }
        assert_eq!(talk.end().await, 0);
    }
}

#[tokio::test]
async fn answers_of_two_sessions_are_mixed_only_where_that_is_told() {
    let text = "`tools/call search` was not recorded in the session that this client plays: it is request 2, of another session";
    let (sender, notes) = std::sync::mpsc::channel();
    let mut talk = Talk::told(&carts(), Repetition::LastAnswer, MockOptions::default(), move |event| sender.send(event).unwrap());
    talk.shake_hands().await;
    for (id, (query, answer)) in (7..).zip([("pear", "1"), ("list", "pear, plum"), ("apple", "1")]) {
        assert_eq!(talk.ask(&call(id, query)).await, said(id, answer));
    }
    assert_eq!(talk.end().await, 0);
    assert_eq!(notes.try_iter().collect::<Vec<_>>(), [MockEvent::Note(text.to_owned())]);
    let mut talk = Talk::with(&carts(), Repetition::Miss, MockOptions::default());
    talk.shake_hands().await;
    talk.ask(&call(7, "pear")).await;
    assert_eq!(talk.ask(&call(8, "apple")).await["error"]["message"], format!("mock: {text}"));
    assert_eq!(talk.end().await, 1);
}

#[tokio::test]
async fn a_miss_names_the_nearest_recording_and_the_pointer() {
    let mut talk = Talk::of(twice());
    talk.shake_hands().await;
    let refused = talk.ask(&call(7, "b")).await;
    assert_eq!(refused["error"]["code"], -32602);
    assert_eq!(
        refused["error"]["message"],
        "mock: `tools/call search` was not recorded with these parameters: the nearest is request 2, which differs at /arguments/query \
         (recorded \"a\", received \"b\")"
    );
    assert_eq!(refused["error"]["data"]["pointer"], "/arguments/query");
    assert_eq!(talk.end().await, 1);
}

#[tokio::test]
async fn what_is_not_declared_is_refused_and_no_miss() {
    let mut talk = Talk::of(twice());
    talk.shake_hands().await;
    let refused = talk.ask(&json!({ "jsonrpc": "2.0", "id": 7, "method": "prompts/list" })).await;
    assert_eq!(refused["error"]["code"], -32601);
    assert_eq!(talk.end().await, 0);
}

#[tokio::test]
async fn progress_has_the_token_of_the_client_and_a_question_waits_for_its_response() {
    let mut talk = Talk::of(asking());
    talk.shake_hands().await;
    let mut first = call(41, "a");
    first["params"]["_meta"] = json!({ "progressToken": "live" });
    let progress = talk.ask(&first).await;
    assert_eq!((&progress["method"], &progress["params"]["progressToken"]), (&json!("notifications/progress"), &json!("live")));
    let question = talk.next().await;
    assert_eq!((&question["method"], &question["params"]), (&json!("elicitation/create"), &json!({ "message": "Who?" })));
    assert_ne!(question["id"], "q", "ids are the mock's own");
    let response = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": { "name": "Ada" } } });
    assert_eq!(talk.ask(&response).await, said(41, "hello Ada"));
    assert_eq!(talk.end().await, 0);
}

#[tokio::test]
async fn a_strict_mock_misses_a_response_that_was_not_recorded() {
    let options = MockOptions { responses: ResponseCheck::Miss, ..MockOptions::default() };
    let mut talk = Talk::with(&[transcript(&asking())], Repetition::Miss, options);
    talk.shake_hands().await;
    let question = talk.ask(&call(41, "a")).await;
    let response = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "decline" } });
    let refused = talk.ask(&response).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("in a way that was not recorded"), "{refused}");
    assert_eq!(talk.end().await, 1);
}

/// Sessions of three clients: one that accepts, one that declines, and one that is not asked.
fn answers_of_three() -> [Transcript; 3] {
    let with_end = |mut lines: Vec<(char, Value)>, end: &str| {
        lines.extend([('>', call(2, "b")), ('<', said(2, end))]);
        transcript(&lines)
    };
    let mut declined = asking();
    let place = declined.iter().position(|(_, message)| message["result"]["action"] == "accept").unwrap();
    declined[place].1 = json!({ "jsonrpc": "2.0", "id": "q", "result": { "action": "decline" } });
    declined[place + 1].1 = said(1, "hello nobody");
    let mut unasked = handshake();
    unasked.extend([('>', call(1, "a")), ('<', said(1, "hello"))]);
    [with_end(asking(), "bye Ada"), with_end(declined, "bye nobody"), with_end(unasked, "bye")]
}

#[tokio::test]
async fn a_client_that_responds_as_in_another_session_goes_on_with_that_one() {
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let tell = {
        let told = Arc::clone(&told);
        move |event| told.lock().unwrap().push(event)
    };
    let mut talk = Talk::told(&answers_of_three(), Repetition::LastAnswer, MockOptions::default(), tell);
    talk.shake_hands().await;
    talk.send(&call(1, "a")).await;
    let question = talk.next().await;
    let response = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "decline" } });
    assert_eq!(talk.ask(&response).await, said(1, "hello nobody"));
    assert_eq!(talk.ask(&call(2, "b")).await, said(2, "bye nobody"));
    assert_eq!(talk.end().await, 0);
    assert_eq!(*told.lock().unwrap(), Vec::new());
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_plays_a_session_in_which_nothing_was() {
    let mut talk = Talk::with(&answers_of_three(), Repetition::LastAnswer, MockOptions::default());
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    let hello = talk.ask(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
    assert_eq!(hello["result"]["serverInfo"]["name"], "s");
    assert_eq!(talk.ask(&call(1, "a")).await, said(1, "hello"));
    assert_eq!(talk.ask(&call(2, "b")).await, said(2, "bye"));
    assert_eq!(talk.end().await, 0);
}

#[tokio::test]
async fn a_question_of_the_legacy_era_is_input_that_a_modern_request_requires() {
    let options = MockOptions { eras: vec![Era::Modern], ..MockOptions::default() };
    let mut talk = Talk::with(&[transcript(&asking())], Repetition::LastAnswer, options);
    let mut first = call(1, "a");
    first["params"]["_meta"] = json!({ VERSION: "2026-07-28", CAPABILITIES: { "elicitation": {} } });
    let required = talk.ask(&first).await["result"].take();
    assert_eq!(required["resultType"], "input_required");
    let (key, question) = required["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["method"], "elicitation/create");
    first["id"] = json!(2);
    first["params"]["requestState"] = required["requestState"].clone();
    first["params"]["inputResponses"] = json!({ key: { "action": "accept", "content": { "name": "Ada" } } });
    let result = talk.ask(&first).await["result"].take();
    assert_eq!((&result["resultType"], &result["content"][0]["text"]), (&json!("complete"), &json!("hello Ada")));
    assert_eq!(talk.end().await, 0);
}

#[tokio::test]
async fn a_change_is_announced_after_what_it_followed() {
    let mut lines = handshake();
    lines.push(('<', json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })));
    let mut talk = Talk::of(lines);
    talk.shake_hands().await;
    assert_eq!(talk.next().await["method"], "notifications/tools/list_changed");
    assert_eq!(talk.end().await, 0);
}

#[tokio::test]
async fn a_change_is_announced_before_the_response_that_it_preceded() {
    let mut lines = handshake();
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    lines.extend([('>', call(1, "a")), ('<', changed), ('<', said(1, "first"))]);
    let mut talk = Talk::of(lines);
    talk.shake_hands().await;
    assert_eq!(talk.ask(&call(1, "a")).await["method"], "notifications/tools/list_changed");
    assert_eq!(talk.next().await["result"]["content"][0]["text"], "first");
    assert_eq!(talk.end().await, 0);
}

#[tokio::test]
async fn requests_at_the_same_time_are_answered_in_the_recorded_order() {
    let mut lines = handshake();
    lines.extend(["a", "b", "c"].into_iter().zip(1..).map(|(query, id)| ('>', call(id, query))));
    lines.extend([(2, "b"), (3, "c"), (1, "a")].map(|(id, text)| ('<', said(id, text))));
    let mut talk = Talk::of(lines.clone());
    talk.shake_hands().await;
    for (id, query) in [(1, "a"), (2, "b"), (3, "c")] {
        talk.send(&call(id, query)).await;
    }
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(talk.next().await["id"].clone());
    }
    assert_eq!(ids, [2, 3, 1]);
    assert_eq!(talk.end().await, 0);
    // A client that waits for each response gets it.
    let mut talk = Talk::of(lines);
    talk.shake_hands().await;
    assert_eq!(talk.ask(&call(1, "a")).await["result"]["content"][0]["text"], "a");
    assert_eq!(talk.end().await, 0);
}

/// Some clients ask one process what it is, and use another one.
#[tokio::test]
async fn the_handshake_may_be_in_a_session_of_its_own() {
    let meta = json!({ VERSION: "2026-07-28", CAPABILITIES: {} });
    let asked = json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": { "_meta": meta } });
    let server = json!({ "io.modelcontextprotocol/serverInfo": { "name": "s", "version": "1" } });
    let told = json!({ "jsonrpc": "2.0", "id": 1, "result": { "resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": { "tools": {} }, "instructions": "Read me.", "_meta": server } });
    let list = |id: u64, method: &str| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": { "_meta": meta } });
    let tools = json!({ "jsonrpc": "2.0", "id": 2, "result": { "resultType": "complete", "tools": [] } });
    let refused = json!({ "jsonrpc": "2.0", "id": 3, "error": { "code": -32601, "message": "no resources" } });
    let used = [('>', list(2, "tools/list")), ('<', tools), ('>', list(3, "resources/list")), ('<', refused)];
    let probe = transcript(&[('>', asked.clone()), ('<', told)]);
    for transcripts in [vec![probe.clone(), transcript(&used)], vec![transcript(&used), probe]] {
        let mut talk = Talk::with(&transcripts, Repetition::LastAnswer, MockOptions::default());
        let found = talk.ask(&asked).await["result"].take();
        assert_eq!((&found["instructions"], &found["capabilities"]), (&json!("Read me."), &json!({ "tools": {} })));
        assert!(talk.ask(&list(2, "tools/list")).await["result"]["tools"].is_array());
        assert_eq!(talk.end().await, 0);
    }
    // Alone, what was refused is no sign of a capability.
    let mut talk = Talk::with(&[transcript(&used)], Repetition::LastAnswer, MockOptions::default());
    assert_eq!(talk.ask(&asked).await["result"]["capabilities"], json!({ "tools": {} }));
    assert_eq!(talk.end().await, 0);
}

#[tokio::test]
async fn a_line_that_is_no_json_is_answered_and_the_next_one_as_well() {
    let mut talk = Talk::of(twice());
    talk.output.write_all(b"{nonsense\n").await.unwrap();
    assert_eq!(talk.next().await["error"]["code"], -32700);
    talk.shake_hands().await;
    assert_eq!(talk.ask(&call(7, "a")).await, said(7, "first"));
    assert_eq!(talk.end().await, 0);
}

#[tokio::test]
async fn a_server_that_discovers_only_earlier_revisions_is_a_legacy_one() {
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    let discover = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "server/discover", "params": { "_meta": meta } });
    for response in [
        json!({ "result": { "resultType": "complete", "supportedVersions": ["2025-11-25"], "capabilities": {} } }),
        json!({ "error": { "code": -32601, "message": "what is that?" } }),
    ] {
        let said = |id: u64| {
            let mut said = response.clone();
            said["jsonrpc"] = json!("2.0");
            said["id"] = json!(id);
            said
        };
        let mut lines = vec![('>', discover(1)), ('<', said(1))];
        lines.extend(twice());
        let mut talk = Talk::of(lines);
        assert_eq!(talk.ask(&discover(5)).await, said(5));
        talk.shake_hands().await;
        assert_eq!(talk.ask(&call(7, "a")).await["id"], 7);
        assert_eq!(talk.end().await, 0);
    }
}
