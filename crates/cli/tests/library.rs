//! The library for Rust tests against the demo servers, over every transport: what its users write.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mcproof::{Client, ConnectOptions, Failure, Program, Transport};
use mcproof_demo::{DemoName, DemoOptions, serve_stream};
use serde::Deserialize;
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::Duration;

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");

fn program() -> Program {
    Program::new([MCPROOF, "demo", "shop"])
        .http(["--http", "--port", "${port}"], "http://127.0.0.1:${port}/mcp")
        .sse(["--sse", "--port", "${port}"], "http://127.0.0.1:${port}/sse")
}

async fn shop(transport: Transport) -> Result<Client, Failure> {
    if transport != Transport::InMemory {
        return program().over(transport).await;
    }
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    tokio::spawn(async move {
        let (input, output) = tokio::io::split(theirs);
        serve_stream(&DemoOptions::new(DemoName::Shop), input, output, std::future::pending()).await
    });
    let (input, output) = tokio::io::split(ours);
    Client::over(input, output, &ConnectOptions::default()).await
}

#[derive(Deserialize)]
struct Inventory {
    available: u32,
}

#[mcproof::test(server = shop, transports = [in_memory, stdio, http, sse])]
async fn an_order_reduces_the_stock(client: &Client) -> Result<(), Failure> {
    let stock = async || client.call("check_inventory", json!({ "product_id": "PROD-123" })).await;
    stock().await?.expect(json!({ "available": 10 })).within(Duration::from_secs(10));
    let order = client.call("create_order", json!({ "product_id": "PROD-123", "quantity": 2 })).await?;
    order.expect(json!({ "status": "pending", "id": { "$regex": "^ORD-" } })).expect_result(json!({ "isError": { "$not": true } }));
    assert_eq!(order.structured()["quantity"], 2);
    assert_eq!(stock().await?.json::<Inventory>().available, 8);
    assert!(stock().await?.text().contains("available"));
    client.call("create_order", json!({ "product_id": "PROD-123", "quantity": 999 })).await?.expect_error("insufficient inventory");
    client.call("no_such_tool", json!({})).await?.expect_error("unknown tool");
    assert!(client.tools().await?.iter().any(|tool| tool["name"] == "create_order"));
    client.assert_rules();
    Ok(())
}

/// What a failed assertion prints.
fn panic_of(assertion: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(assertion)).unwrap_err();
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[mcproof::test(server = shop, transports = [in_memory, stdio, http])]
async fn a_failed_assertion_shows_the_difference_and_the_wire(client: &Client) -> Result<(), Failure> {
    let found = client.call("check_inventory", json!({ "product_id": "PROD-123" })).await?;
    let refused = client.call("create_order", json!({ "product_id": "PROD-123", "quantity": 999 })).await?;
    let unknown = client.call("no_such_tool", json!({})).await?;
    let check = |assertion: &dyn Fn(), parts: &[&str]| {
        let said = panic_of(assertion);
        for part in parts {
            assert!(said.contains(part), "{part:?} is not in {said}");
        }
    };
    check(&|| _ = found.expect(json!({ "available": { "$gte": 11 } })), &["at least 11", "check_inventory", "  wire  "]);
    check(&|| _ = found.expect(json!({ "available": { "$gt3": 11 } })), &["unknown matcher `$gt3`"]);
    check(&|| _ = found.expect_error("x"), &["expected that `check_inventory` fails"]);
    check(&|| _ = found.within(Duration::ZERO), &["the response took"]);
    check(&|| _ = found.json::<String>(), &["is not a valid alloc::string::String", "available"]);
    check(&|| _ = refused.payload(), &["found an `isError` result", "  wire  "]);
    check(&|| _ = refused.expect_error("out of milk"), &["does not contain \"out of milk\""]);
    check(&|| _ = unknown.text(), &["expected a result of `no_such_tool`, found JSON-RPC error"]);
    Ok(())
}

#[tokio::test(flavor = "current_thread")]
async fn clients_share_a_server_that_ends_with_its_fixture() {
    for transport in [Transport::Http, Transport::Sse] {
        let server = program().serve(transport).await.unwrap();
        let (one, two) = (server.client().await.unwrap(), server.client().await.unwrap());
        one.call("create_order", json!({ "product_id": "PROD-123", "quantity": 3 })).await.unwrap().expect(json!({ "quantity": 3 }));
        two.call("check_inventory", json!({ "product_id": "PROD-123" })).await.unwrap().expect(json!({ "available": 7 }));
        one.close().await;
        two.close().await;
        let url = server.url().to_owned();
        server.stop().await;
        let opened = if transport == Transport::Http { Client::http(&url).await } else { Client::sse(&url).await };
        let failure = opened.err().unwrap();
        assert!(format!("{failure:?}").contains("refused"), "{failure:?}");
    }
    let failure = Client::stdio(["sh", "-c", "echo no database >&2; exit 3"]).await.err().unwrap();
    assert_eq!(failure.code(), "server-exited");
    assert!(format!("{failure:?}").contains("no database"), "{failure:?}");
    assert_eq!(program().serve(Transport::Stdio).await.err().unwrap().code(), "bad-program");
}

#[tokio::test(flavor = "current_thread")]
async fn contracts_and_rules_are_assertions() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("mcproof.lock");
    let locked = Command::new(MCPROOF).args(["lock", "--output"]).arg(&lock).args(["--", MCPROOF, "demo", "shop"]).output().unwrap();
    assert!(locked.status.success(), "{locked:?}");
    let client = shop(Transport::Stdio).await.unwrap();
    client.assert_contract(&lock).await.unwrap();
    assert_eq!(client.assert_contract(folder.path().join("none.lock")).await.unwrap_err().code(), "bad-lock");
    let other = Client::stdio([MCPROOF, "demo", "tracker"]).await.unwrap();
    let broken = tokio::task::LocalSet::new();
    let said = broken.run_until(async { tokio::task::spawn_local(async move { other.assert_contract(&lock).await }).await }).await;
    let panic = said.unwrap_err().into_panic();
    let said = panic.downcast_ref::<String>().unwrap();
    assert!(said.contains("the server breaks the contract") && said.contains("create_order"), "{said}");
    let noise = format!("echo noise; exec {MCPROOF} demo shop");
    let noisy = Client::stdio(["sh", "-c", &noise]).await.unwrap();
    let said = panic_of(|| noisy.assert_rules());
    assert!(said.contains("stdio-only-messages-on-stdout") && said.contains("noise"), "{said}");
    mcproof::assert_check(program().target(Transport::Stdio).unwrap(), ConnectOptions::default()).await.unwrap();
}
