//! The demos over byte streams, as a client that writes every byte itself sees them: both eras, line by line.

#![expect(clippy::unwrap_used, reason = "a test fails where it stands, helpers included")]

use mcproof_protocol::Era;
use std::time::Duration;

use mcproof_demo::{DemoError, DemoName, DemoOptions, NAMES, serve_stream};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, split},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};

/// Longer than any answer takes, so that a missing one fails the test rather than hangs it.
const DEADLINE: Duration = Duration::from_secs(10);

struct Peer {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    served: JoinHandle<Result<(), DemoError>>,
    stop: oneshot::Sender<()>,
}

impl Peer {
    fn start(options: DemoOptions) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(async move {
            let (input, output) = split(theirs);
            serve_stream(&options, input, output, async {
                // A test that ends the input instead keeps the sender.
                let _stopped = stopped.await;
            })
            .await
        });
        let (reader, writer) = split(ours);
        Self { lines: BufReader::new(reader).lines(), writer, served, stop }
    }

    async fn send(&mut self, line: &str) {
        self.writer.write_all(line.as_bytes()).await.unwrap();
        self.writer.write_all(b"\n").await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = timeout(DEADLINE, self.lines.next_line()).await.expect("a line in time").unwrap();
        serde_json::from_str(&line.expect("the stream is open")).expect("a line is one JSON message")
    }

    async fn request(&mut self, message: Value) -> Value {
        self.send(&message.to_string()).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], message["id"], "{answer}");
        answer
    }

    async fn legacy(options: DemoOptions) -> Self {
        let mut peer = Self::start(options);
        let answer = peer.request(initialize("2025-11-25")).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
        peer.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        peer
    }

    async fn call(&mut self, era: Era, tool: &str, arguments: Value) -> Value {
        let mut params = json!({ "name": tool, "arguments": arguments });
        if era == Era::Modern {
            params["_meta"] = modern_meta();
        }
        self.request(json!({ "jsonrpc": "2.0", "id": tool, "method": "tools/call", "params": params })).await
    }
}

fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

fn initialize(version: &str) -> Value {
    json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": { "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } },
    })
}

fn prompt(name: DemoName) -> DemoOptions {
    DemoOptions { slow: Duration::from_millis(2), ..DemoOptions::new(name) }
}

#[tokio::test]
async fn every_revision_is_negotiated_and_an_unknown_one_is_answered_with_a_known_one() {
    for (offered, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ] {
        let mut peer = Peer::start(prompt(DemoName::Shop));
        let answer = peer.request(initialize(offered)).await;
        assert_eq!(answer["result"]["protocolVersion"], agreed, "{offered}");
        assert_eq!(answer["result"]["serverInfo"]["name"], "mcproof-demo-shop");
    }
}

#[tokio::test]
async fn a_modern_client_discovers_and_calls_without_a_handshake() {
    for name in NAMES {
        let mut peer = Peer::start(prompt(name));
        let params = json!({ "_meta": modern_meta() });
        let discovered = peer.request(json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": params })).await;
        let versions = discovered["result"]["supportedVersions"].as_array().unwrap();
        assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2024-11-05")));
        let info = &discovered["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
        assert_eq!(*info, format!("mcproof-demo-{name}"));
        let listed = peer.request(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": params })).await;
        assert_eq!(listed["result"]["resultType"], "complete");
        for tool in listed["result"]["tools"].as_array().unwrap() {
            assert_eq!(tool["inputSchema"]["type"], "object");
            assert!(tool["inputSchema"]["required"].as_array().is_some_and(|names| !names.is_empty()));
            assert!(tool["description"].is_string() && tool["annotations"]["readOnlyHint"].is_boolean());
        }
    }
}

#[tokio::test]
async fn discovery_first_and_the_handshake_afterwards_work_on_one_connection() {
    let mut peer = Peer::start(prompt(DemoName::Tracker));
    peer.request(json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": { "_meta": modern_meta() } })).await;
    // A client that gave up on its probe may cancel it before it falls back.
    peer.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await;
    let answer = peer.request(initialize("2025-06-18")).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
}

/// Calls `tool` in both eras, each on a fresh server, and looks for `expected` as a subset of the answer.
async fn check(name: DemoName, tool: &str, arguments: Value, expected: Value) {
    for era in [Era::Legacy, Era::Modern] {
        let mut peer = match era {
            Era::Legacy => Peer::legacy(prompt(name)).await,
            Era::Modern => Peer::start(prompt(name)),
        };
        let answer = peer.call(era, tool, arguments.clone()).await;
        assert_subset(&expected, &answer, &format!("{tool} {arguments} {era:?}: {answer}"));
    }
}

fn assert_subset(expected: &Value, actual: &Value, about: &str) {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            for (key, value) in expected {
                assert_subset(value, actual.get(key).unwrap_or(&Value::Null), about);
            }
        }
        _ => assert_eq!(expected, actual, "{about}"),
    }
}

#[tokio::test]
async fn tools_answer_alike_in_both_eras() {
    use DemoName::{DataSource, MlAnalysis, Report, Shop, Tracker};
    let says = |text: &str| json!({ "result": { "content": [{ "type": "text", "text": text }] } });
    let refuses = |text: &str| json!({ "result": { "isError": true, "content": [{ "type": "text", "text": text }] } });
    let found = |value: Value| json!({ "result": { "isError": false, "structuredContent": value } });
    let rows = [
        (Tracker, "echo", json!({ "message": "hi" }), says("hi")),
        (Tracker, "echo", json!({}), refuses("Invalid arguments for echo: missing field `message`")),
        (Tracker, "echo", json!({ "message": 1 }), json!({ "result": { "isError": true } })),
        (Tracker, "echo", json!({ "message": "hi", "mesage": "hi" }), json!({ "result": { "isError": true } })),
        (Tracker, "no_such_tool", json!({}), json!({ "error": { "code": -32602 } })),
        (Tracker, "get_issue", json!({ "id": "none" }), refuses("Issue not found: none")),
        (Tracker, "get_issue", json!({ "id": "ISSUE-2" }), found(json!({ "title": "Add a dark mode", "body": "" }))),
        (Tracker, "create_issue", json!({ "project": "p", "title": "t" }), found(json!({ "id": "ISSUE-4" }))),
        (Tracker, "list_issues", json!({ "project": "empty" }), says("[]")),
        (Shop, "check_inventory", json!({ "product_id": "PROD-123" }), found(json!({ "available": 10, "reserved": 0 }))),
        (Shop, "check_inventory", json!({ "product_id": "other" }), found(json!({ "available": 0 }))),
        (
            Shop,
            "create_order",
            json!({ "product_id": "PROD-123", "quantity": 2 }),
            found(json!({ "id": "ORD-1", "product_id": "PROD-123", "quantity": 2, "status": "pending" })),
        ),
        (Shop, "create_order", json!({ "product_id": "PROD-123", "quantity": 11 }), refuses("Insufficient inventory")),
        (Shop, "create_order", json!({ "product_id": "PROD-123", "quantity": 0 }), json!({ "result": { "isError": true } })),
        (Shop, "create_order", json!({ "product_id": "PROD-123", "quantity": -1 }), json!({ "result": { "isError": true } })),
        (Shop, "process_payment", json!({ "order_id": "ORD-9", "amount": 1 }), refuses("Order not found")),
        (Shop, "calculate", json!({ "a": 5, "b": 3 }), says("Result: 8")),
        (Shop, "calculate", json!({ "a": i64::MAX, "b": 1 }), refuses("The sum is too large")),
        (Shop, "long_operation", json!({ "id": 3 }), says("Complete 3")),
        (Shop, "long_operation", json!({ "id": "x" }), says("Complete x")),
        (Shop, "get_context", json!({ "key": "k" }), refuses("No value for key: k")),
        (Shop, "process", json!({ "data_id": "data-1", "operation": "o" }), refuses("Data not found: data-1")),
        (Shop, "validate", json!({ "process_id": "proc-0" }), refuses("Process not found: proc-0")),
        (
            DataSource,
            "fetch_dataset",
            json!({ "dataset_id": "d" }),
            found(json!({ "id": "d", "records": 1000, "format": "parquet", "location": "s3://test-bucket/d" })),
        ),
        (
            MlAnalysis,
            "run_analysis",
            json!({ "dataset_location": "s3://d", "model": "gradient_boost" }),
            found(json!({ "model": "gradient_boost", "accuracy": 0.94, "confidence_intervals": [0.92, 0.96] })),
        ),
        (MlAnalysis, "run_analysis", json!({ "dataset_location": "", "model": "m" }), refuses("Model not found: m")),
        (
            Report,
            "generate_report",
            json!({ "analysis_results": { "accuracy": 0.94, "model": "m" } }),
            says("Analysis complete: 94.00% accuracy"),
        ),
        (Report, "generate_report", json!({ "analysis_results": {} }), json!({ "result": { "isError": true } })),
    ];
    for (name, tool, arguments, expected) in rows {
        check(name, tool, arguments, expected).await;
    }
}

#[tokio::test]
async fn an_order_reduces_the_stock_and_a_miscounting_shop_by_one_too_many() {
    for (miscount, left) in [(false, 8), (true, 7)] {
        let mut peer = Peer::legacy(DemoOptions { miscount, ..prompt(DemoName::Shop) }).await;
        let order = json!({ "product_id": "PROD-123", "quantity": 2 });
        peer.call(Era::Legacy, "create_order", order).await;
        let payment = json!({ "order_id": "ORD-1", "amount": 99.99 });
        let paid = peer.call(Era::Legacy, "process_payment", payment.clone()).await;
        assert_eq!(paid["result"]["structuredContent"]["status"], "success");
        let again = peer.call(Era::Legacy, "process_payment", payment).await;
        assert_eq!(again["result"]["isError"], true);
        let stock = peer.call(Era::Legacy, "check_inventory", json!({ "product_id": "PROD-123" })).await;
        assert_eq!(stock["result"]["structuredContent"]["available"], left);
    }
}

#[tokio::test]
async fn a_chain_of_tools_keeps_its_context() {
    let mut peer = Peer::legacy(prompt(DemoName::Shop)).await;
    let data = peer.call(Era::Legacy, "fetch_data", json!({ "source": "database" })).await;
    let data_id = &data["result"]["content"][0]["text"];
    let process = json!({ "data_id": data_id, "operation": "transform" });
    let processed = peer.call(Era::Legacy, "process", process).await;
    let process_id = &processed["result"]["_meta"]["process_id"];
    let valid = peer.call(Era::Legacy, "validate", json!({ "process_id": process_id })).await;
    assert_eq!(valid["result"]["_meta"], json!({ "status": "success", "context_preserved": true }));
    peer.call(Era::Legacy, "set_context", json!({ "key": "user_id", "value": "123" })).await;
    let stored = peer.call(Era::Legacy, "get_context", json!({ "key": "user_id" })).await;
    assert_eq!(stored["result"]["content"][0]["text"], "123");
}

#[tokio::test]
async fn ten_operations_at_once_have_ids_of_their_own() {
    let mut peer = Peer::legacy(prompt(DemoName::Shop)).await;
    for id in 0..10 {
        let params = json!({ "name": "long_operation", "arguments": { "id": id }, "_meta": { "progressToken": id } });
        peer.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()).await;
    }
    let (mut operations, mut progressed) = (std::collections::BTreeSet::new(), 0);
    while operations.len() < 10 {
        let message = peer.next().await;
        if message["method"] == "notifications/progress" {
            progressed += 1;
            continue;
        }
        assert_eq!(message["result"]["content"][0]["text"], format!("Complete {}", message["id"]));
        assert!(operations.insert(message["result"]["_meta"]["operation_id"].to_string()), "{message}");
    }
    assert_eq!(progressed, 10);
}

#[tokio::test]
async fn the_tracker_serves_every_method_and_the_shop_only_tools() {
    let resource = |uri: &str| json!({ "uri": uri });
    let completion = json!({
        "ref": { "type": "ref/prompt", "name": "triage" }, "argument": { "name": "issue", "value": "ISSUE-3" },
    });
    let rows = [
        ("ping", json!({}), json!({ "result": {} }), false),
        ("resources/list", json!({}), json!({ "result": {} }), true),
        ("resources/templates/list", json!({}), json!({ "result": {} }), true),
        ("resources/read", resource("tracker://issues/ISSUE-1"), json!({ "result": {} }), true),
        ("resources/read", resource("tracker://nothing"), json!({ "error": { "code": -32002 } }), true),
        ("resources/read", json!({}), json!({ "error": { "code": -32602 } }), true),
        ("resources/subscribe", resource("tracker://projects"), json!({ "result": {} }), true),
        ("resources/unsubscribe", resource("tracker://projects"), json!({ "result": {} }), true),
        ("prompts/list", json!({}), json!({ "result": {} }), true),
        ("prompts/get", json!({ "name": "triage", "arguments": { "issue": "ISSUE-1" } }), json!({ "result": {} }), true),
        ("prompts/get", json!({ "name": "triage" }), json!({ "error": { "code": -32602 } }), true),
        ("prompts/get", json!({ "name": "none" }), json!({ "error": { "code": -32602 } }), true),
        ("completion/complete", completion, json!({ "result": { "completion": { "values": ["ISSUE-3"] } } }), true),
        ("logging/setLevel", json!({ "level": "info" }), json!({ "result": {} }), true),
        ("tools/list", json!({ "cursor": "bogus" }), json!({ "error": { "code": -32602 } }), false),
        ("tools/call", json!({}), json!({ "error": { "code": -32602 } }), false),
        ("no/such/method", json!({}), json!({ "error": { "code": -32601 } }), false),
    ];
    let mut tracker = Peer::legacy(prompt(DemoName::Tracker)).await;
    let mut shop = Peer::legacy(prompt(DemoName::Shop)).await;
    for (method, params, expected, only_tracker) in rows {
        let request = json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params });
        let answer = tracker.request(request.clone()).await;
        assert_subset(&expected, &answer, &format!("tracker {request} {answer}"));
        let answer = shop.request(request.clone()).await;
        let expected = if only_tracker { json!({ "error": { "code": -32601 } }) } else { expected };
        assert_subset(&expected, &answer, &format!("shop {request} {answer}"));
    }
}

#[tokio::test]
async fn a_subscriber_hears_of_a_new_issue_before_it_is_answered() {
    let mut peer = Peer::legacy(prompt(DemoName::Tracker)).await;
    let level = json!({ "level": "info" });
    peer.request(json!({ "jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": level })).await;
    let projects = json!({ "uri": "tracker://projects" });
    peer.request(json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": projects })).await;
    let params = json!({ "name": "create_issue", "arguments": { "project": "p", "title": "t" } });
    peer.send(&json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params }).to_string()).await;
    assert_eq!(peer.next().await["method"], "notifications/message");
    assert_eq!(peer.next().await["params"], projects);
    assert_eq!(peer.next().await["id"], 3);
}

#[tokio::test]
async fn a_modern_listener_hears_only_what_it_asked_for() {
    let mut peer = Peer::start(prompt(DemoName::Tracker));
    let params = json!({
        "_meta": modern_meta(),
        "notifications": { "resourceSubscriptions": ["tracker://projects"], "toolsListChanged": true },
    });
    peer.send(&json!({ "jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": params }).to_string()).await;
    let acknowledged = peer.next().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["notifications"], json!({ "resourceSubscriptions": ["tracker://projects"] }));
    let arguments = json!({ "project": "p", "title": "t" });
    let params = json!({ "_meta": modern_meta(), "name": "create_issue", "arguments": arguments });
    peer.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }).to_string()).await;
    let (first, second) = (peer.next().await, peer.next().await);
    let update = if first["method"].is_string() { first } else { second };
    assert_eq!(update["method"], "notifications/resources/updated");
    assert_eq!(update["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "l");
}

#[tokio::test]
async fn what_was_asked_is_answered_before_the_server_ends_with_its_input() {
    let mut peer = Peer::legacy(prompt(DemoName::Shop)).await;
    let params = json!({ "name": "long_operation", "arguments": { "id": 7 }, "_meta": { "progressToken": 7 } });
    peer.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }).to_string()).await;
    peer.writer.shutdown().await.unwrap();
    assert_eq!(peer.next().await["method"], "notifications/progress");
    assert_eq!(peer.next().await["id"], 7);
    timeout(DEADLINE, peer.served).await.expect("the server ends").unwrap().unwrap();
}

/// On a clock that moves only while everybody waits: rmcp alone would wait two seconds for a call that is under way.
#[tokio::test(start_paused = true)]
async fn stop_ends_an_open_session_a_listener_and_a_call_that_is_under_way() {
    for method in ["", "subscriptions/listen", "tools/call"] {
        let options = DemoOptions { slow: DEADLINE * 10, ..DemoOptions::new(DemoName::Shop) };
        let options = if method == "subscriptions/listen" { DemoOptions::new(DemoName::Tracker) } else { options };
        let mut peer = Peer::start(options);
        let params = match method {
            "tools/call" => json!({ "_meta": modern_meta(), "name": "long_operation", "arguments": { "id": 1 } }),
            _ => json!({ "_meta": modern_meta(), "notifications": {} }),
        };
        if !method.is_empty() {
            peer.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()).await;
        }
        // A later answer proves that the request is under way.
        peer.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": params }).to_string()).await;
        while peer.next().await["id"] != 2 {}
        peer.stop.send(()).unwrap();
        let stopped = tokio::time::Instant::now();
        peer.served.await.unwrap().unwrap();
        assert!(stopped.elapsed() < Duration::from_millis(200), "{method}: {:?}", stopped.elapsed());
    }
}
