//! A server in this process is tested with the bytes that a pipe would carry.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mcproof::{Client, ConnectOptions, Era, EraChoice, FaultDirection, FaultInjector, FaultRule, InjectedFault, Schedule};
use mcproof_demo::{DemoName, DemoOptions, serve_stream};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

async fn open(era: EraChoice) -> Client {
    open_with(ConnectOptions { era, ..ConnectOptions::default() }).await
}

async fn open_with(options: ConnectOptions) -> Client {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    tokio::spawn(async move {
        let (input, output) = tokio::io::split(theirs);
        serve_stream(&DemoOptions::new(DemoName::Tracker), input, output, std::future::pending()).await
    });
    let (input, output) = tokio::io::split(ours);
    Client::over(input, output, &options).await.unwrap()
}

async fn echo(client: &Client) -> Value {
    let params = json!({ "name": "echo", "arguments": { "message": "hi" } });
    let reply = client.request("tools/call", params.as_object().cloned(), Duration::from_secs(5)).await.unwrap();
    reply.answer.unwrap()["content"][0]["text"].clone()
}

#[tokio::test]
async fn both_eras_work_over_a_pair_of_streams() {
    for (choice, era) in [(EraChoice::Auto, Era::Modern), (EraChoice::Legacy, Era::Legacy)] {
        let client = open(choice).await;
        assert_eq!(client.handshake().era, era);
        assert_eq!(echo(&client).await, "hi");
        assert!(client.faults().is_empty());
        client.close().await;
    }
}

#[tokio::test]
async fn faults_hit_a_server_in_memory_as_well() {
    let rule = FaultRule {
        disturbance: InjectedFault::Duplicate,
        toward: FaultDirection::Client,
        method: None,
        tool: Some("echo".into()),
        schedule: Schedule::First(1),
        seed: 1,
    };
    let injector = FaultInjector::new(vec![rule]);
    let faults = Some(injector.clone());
    let client = open_with(ConnectOptions { era: EraChoice::Legacy, faults, ..ConnectOptions::default() }).await;
    assert_eq!(echo(&client).await, "hi");
    // Its response comes after the second one to the first request.
    assert_eq!(echo(&client).await, "hi");
    assert_eq!(injector.hits(), [1]);
    assert!(client.faults().is_empty(), "{:?}", client.faults());
    client.close().await;
}

/// A client of a server that writes a line that is no message before each response to a call.
async fn open_noisy() -> Client {
    open_faulty("debug: called\n", json!({ "type": "text", "text": "hi" })).await
}

/// A client of a server that writes this before each response to a call, which has one block of content.
async fn open_faulty(noise: &'static str, block: Value) -> Client {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    tokio::spawn(async move {
        let (input, mut output) = tokio::io::split(theirs);
        let mut lines = BufReader::new(input).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            let result = match message["method"].as_str() {
                Some("initialize") => json!({
                    "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "noisy", "version": "1" }
                }),
                Some("tools/call") => {
                    output.write_all(noise.as_bytes()).await.unwrap();
                    json!({ "content": [block] })
                }
                _ => continue,
            };
            let response = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            output.write_all(format!("{response}\n").as_bytes()).await.unwrap();
        }
    });
    let (input, output) = tokio::io::split(ours);
    let options = ConnectOptions { era: EraChoice::Legacy, ..ConnectOptions::default() };
    Client::over(input, output, &options).await.unwrap()
}

#[tokio::test]
#[should_panic(expected = "not an MCP message")]
async fn closing_fails_for_noise_on_the_wire() {
    let client = open_noisy().await;
    assert_eq!(echo(&client).await, "hi");
    client.close().await;
}

#[tokio::test]
async fn noise_on_the_wire_may_be_allowed() {
    let client = open_noisy().await.allow_faults();
    assert_eq!(echo(&client).await, "hi");
    client.close().await;
}

#[tokio::test]
#[should_panic(expected = "`content[0].text` is missing")]
async fn closing_fails_for_a_malformed_message() {
    let client = open_faulty("", json!({ "type": "text" })).await;
    echo(&client).await;
    client.close().await;
}

#[tokio::test]
async fn rules_may_be_left_out() {
    let client = open_faulty("", json!({ "type": "text" })).await.skip_rules(["message-matches-schema"]);
    echo(&client).await;
    client.close().await;
}

/// More than the transcript of a session keeps.
async fn talk_too_much(client: &Client) {
    for _ in 0..8 {
        echo(client).await;
    }
}

#[tokio::test]
#[should_panic(expected = "not judged: ")]
async fn closing_fails_if_there_was_too_much_to_be_judged() {
    let client = open_faulty("", json!({ "type": "text", "text": "x".repeat(4 << 20) })).await;
    talk_too_much(&client).await;
    client.close().await;
}

#[tokio::test]
async fn what_cannot_be_judged_may_be_allowed() {
    let client = open_faulty("", json!({ "type": "text", "text": "x".repeat(4 << 20) })).await.allow_faults();
    talk_too_much(&client).await;
    client.close().await;
}

#[tokio::test]
#[should_panic(expected = "did you mean `message-matches-schema`?")]
async fn a_rule_that_is_left_out_exists() {
    let _ = open_noisy().await.skip_rules(["message-matches-shema"]);
}

/// Ends when a tool is called.
const CRASHING: &str = r#"
read discover; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}'
read initialize
echo '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}'
read initialized; read call; exit 3
"#;

#[tokio::test]
#[should_panic(expected = "instead of sending a response")]
async fn a_crash_is_no_refusal() {
    let client = Client::stdio(["sh", "-c", CRASHING]).await.unwrap();
    assert!(client.call("echo", json!({})).await.is_err());
    client.close().await;
}

#[tokio::test]
async fn a_crash_may_be_expected() {
    let client = Client::stdio(["sh", "-c", CRASHING]).await.unwrap();
    assert!(client.call("echo", json!({})).await.is_err());
    assert_eq!(client.ended().unwrap().code, Some(3));
    client.close().await;
}

#[cfg(feature = "rmcp")]
mod rmcp_handler {
    use super::*;
    use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ServerCapabilities, ServerConfig};
    use rmcp::service::RequestContext;
    use rmcp::{ErrorData, RoleServer, ServerHandler};

    struct Echo;

    impl ServerHandler for Echo {
        fn get_info(&self) -> ServerConfig {
            ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
        }

        async fn call_tool(&self, _: CallToolRequestParams, _: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
            let result: CallToolResult = serde_json::from_value(json!({ "content": [{ "type": "text", "text": "hi" }] })).unwrap();
            Ok(result.into())
        }
    }

    #[tokio::test]
    async fn an_rmcp_handler_is_one_line_away() {
        let client = Client::in_memory(Echo).await.unwrap();
        assert_eq!(echo(&client).await, "hi");
        client.close().await;
    }
}
