//! What the client does in each scenario: which requests it makes, in which order. Knows no wire.

use crate::{Failure, Task};
use mcproof_client::{Session, Tap};
use serde_json::{Map, Value, json};
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(10);

pub(crate) async fn run(task: &Task) -> Result<(), Failure> {
    let tap = Tap::new();
    let outcome = converse(task, &tap).await;
    task.show(&tap);
    outcome
}

async fn converse(task: &Task, tap: &Tap) -> Result<(), Failure> {
    let form = match task.scenario.as_str() {
        "sep-2322-client-request-state" => Map::from_iter([("confirmed".to_owned(), json!(true))]),
        _ => Map::new(),
    };
    let mut options = task.options(form);
    if task.scenario.starts_with("auth/") {
        options.authorization = Some(task.authorization()?);
    }
    let session = task.open(&options, tap).await?;
    let outcome = speak(task, &session).await;
    session.close().await;
    outcome
}

async fn speak(task: &Task, session: &Session) -> Result<(), Failure> {
    match task.scenario.as_str() {
        "initialize" | "request-metadata" | "json-schema-ref-no-deref" => {
            session.list("tools/list", "tools", DEADLINE).await?;
        }
        "tools_call" => call_listed(session, "add_numbers", json!({ "a": 5, "b": 3 })).await?,
        "elicitation-sep1034-client-defaults" => call_listed(session, "test_client_elicitation_defaults", json!({})).await?,
        "sse-retry" => call_listed(session, "test_reconnection", json!({})).await?,
        "sep-2322-client-request-state" => rounds(session).await?,
        "http-standard-headers" => everything(session).await?,
        "http-custom-headers" => calls_of_context(session, &task.context).await?,
        "http-invalid-tool-headers" => call_what_is_left(session).await?,
        "json-schema-2020-12-preservation" => echo_schema(session).await?,
        name if name.starts_with("auth/") => call_listed(session, "test-tool", json!({})).await?,
        other => return Err(format!("no scenario is called {other}").into()),
    }
    Ok(())
}

/// Lists the tools, as a host does before it calls one, and calls one.
async fn call_listed(session: &Session, tool: &str, arguments: Value) -> Result<(), Failure> {
    session.list("tools/list", "tools", DEADLINE).await?;
    call(session, tool, arguments).await
}

async fn call(session: &Session, tool: &str, arguments: Value) -> Result<(), Failure> {
    ask(session, "tools/call", json!({ "name": tool, "arguments": arguments })).await
}

/// A response is good if it is a result without an error, and requests no input.
async fn ask(session: &Session, method: &str, params: Value) -> Result<(), Failure> {
    let reply = session.request_rounds(method, params.as_object().cloned(), DEADLINE).await?;
    let result = reply.answer.map_err(|error| format!("{method} {params}: {error}"))?;
    let complete = result.get("resultType").is_none_or(|kind| kind == "complete");
    let failed = result.get("isError") == Some(&Value::Bool(true));
    if complete && !failed { Ok(()) } else { Err(format!("{method} {params}: {result}").into()) }
}

/// Four tools at once: the input of one must not reach the call of another.
async fn rounds(session: &Session) -> Result<(), Failure> {
    session.list("tools/list", "tools", DEADLINE).await?;
    let call = |tool| call(session, tool, json!({}));
    tokio::try_join!(
        call("test_mrtr_echo_state"),
        call("test_mrtr_no_state"),
        call("test_mrtr_unrelated"),
        call("test_mrtr_no_result_type"),
    )?;
    // And once more after the others are done.
    call("test_mrtr_unrelated").await
}

/// Every list, and every item of it.
async fn everything(session: &Session) -> Result<(), Failure> {
    for (list, key, method, name) in [
        ("tools/list", "tools", "tools/call", "name"),
        ("resources/list", "resources", "resources/read", "uri"),
        ("prompts/list", "prompts", "prompts/get", "name"),
    ] {
        for item in session.list(list, key, DEADLINE).await?.items {
            ask(session, method, json!({ name: item[name] })).await?;
        }
    }
    Ok(())
}

async fn calls_of_context(session: &Session, context: &Value) -> Result<(), Failure> {
    session.list("tools/list", "tools", DEADLINE).await?;
    let calls = context["toolCalls"].as_array().ok_or("the context has no toolCalls")?;
    for named in calls {
        call(session, named["name"].as_str().ok_or("a call without a name")?, named["arguments"].clone()).await?;
    }
    Ok(())
}

/// The client removes the tools that it must not call; all others are called.
async fn call_what_is_left(session: &Session) -> Result<(), Failure> {
    let listed = session.list("tools/list", "tools", DEADLINE).await?;
    if listed.rejected.is_empty() {
        return Err("no tool was rejected".into());
    }
    for tool in &listed.items {
        let properties = tool["inputSchema"]["properties"].as_object();
        let arguments: Map<String, Value> = properties.into_iter().flatten().map(|(name, schema)| (name.clone(), sample(schema))).collect();
        call(session, tool["name"].as_str().ok_or("a tool without a name")?, arguments.into()).await?;
    }
    Ok(())
}

fn sample(schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("text"),
    }
}

async fn echo_schema(session: &Session) -> Result<(), Failure> {
    let tools = session.list("tools/list", "tools", DEADLINE).await?.items;
    let tool = tools.iter().find(|tool| tool["name"] == "json_schema_2020_12_tool").ok_or("the tool is not listed")?;
    call(session, "json_schema_echo", json!({ "schema": tool["inputSchema"] })).await
}
