//! Every message that `mcproof_client` sends is valid in the official JSON Schema of its revision. Without the schemas the tests are
//! ignored, not passed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "schemas/mod.rs"]
mod schemas;

use mcproof_client::{
    Answers, ConnectOptions, Deadline, Elicitation, Endpoint, HostedTasks, Sampling, Session, Tap, Target, jsonrpc, open_in_memory,
    open_session,
};
use mcproof_demo::{self as demo, DEFAULT_HOST, DemoOptions, DemoTransport};
use mcproof_protocol::{Era, EraChoice, Revision, Transport};
use mcproof_record::{Direction, FrameBody, Transcript};
use schemas::{Schemas, revisions};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex};
use url::Url;

const DEADLINE: Duration = Duration::from_secs(10);

/// A server that sends all requests that its revision has, so that the client has to send all responses.
#[tokio::test]
#[cfg_attr(not(official_schemas), ignore = "the official schemas are not beside the checkout (../shared/spec)")]
async fn what_we_send_to_an_inquisitive_server_fits_the_schema() {
    let schemas = Schemas::read();
    for version in revisions() {
        for elicitation in [Elicitation::Accept(Map::from_iter([("name".into(), json!("Ada"))])), Elicitation::Decline, Elicitation::Cancel]
        {
            for sampling in [Sampling::Text("four".into()), Sampling::Reject] {
                let answers = Answers { elicitation: Some(elicitation.clone()), sampling: Some(sampling), ..everything() };
                let tap = Tap::new();
                let (ours, theirs) = duplex(1 << 16);
                let server = tokio::spawn(inquisitive_server(theirs, version));
                let (input, output) = tokio::io::split(ours);
                let session = open_in_memory(input, output, &options(version, answers), &tap).await.unwrap();
                exercise(&session).await;
                let reply =
                    session.request_rounds("tools/call", object(json!({ "name": "ask", "arguments": {} })), DEADLINE).await.unwrap();
                assert!(reply.answer.is_ok(), "{version}: {:?}", reply.answer);
                let silent = object(json!({ "name": "silent" }));
                session.request_and_cancel("tools/call", silent, Duration::from_millis(20), "no longer needed").await.unwrap_err();
                run_tasks(&session, version).await;
                session.request("tools/list", None, DEADLINE).await.unwrap();
                session.close().await;
                server.await.unwrap();
                let methods = schemas.check_sent(version, &tap.transcript());
                for method in ["tools/call", "notifications/cancelled", "resources/read", "completion/complete"] {
                    assert!(methods.contains_key(method), "{version}: no {method} was sent");
                }
                if version != Revision::MODERN.as_str() {
                    for answer in
                        ["answer to roots/list", "answer to sampling/createMessage", "answer to elicitation/create", "answer to ping"]
                    {
                        assert!(methods.contains_key(answer), "{version}: no {answer} was sent: {methods:?}");
                    }
                }
                for method in task_methods(version) {
                    assert!(methods.contains_key(*method), "{version}: no {method} was sent: {methods:?}");
                }
            }
        }
    }
}

#[tokio::test]
#[cfg_attr(not(official_schemas), ignore = "the official schemas are not beside the checkout (../shared/spec)")]
async fn what_we_send_to_the_demo_servers_fits_the_schema() {
    let schemas = Schemas::read();
    for name in demo::NAMES {
        for version in revisions() {
            let options = options(version, everything());
            let demo = DemoOptions { slow: Duration::from_millis(1), ..DemoOptions::new(name) };
            for over in [Transport::InMemory, Transport::Http, Transport::Sse] {
                if (over, version) == (Transport::Sse, Revision::MODERN.as_str()) {
                    continue;
                }
                let tap = Tap::new();
                let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
                let stopped = async {
                    let _stopped = stopped.await;
                };
                let (session, server) = match over {
                    Transport::InMemory => {
                        let (ours, theirs) = duplex(1 << 16);
                        let (theirs_in, theirs_out) = tokio::io::split(theirs);
                        let demo = demo.clone();
                        let server = tokio::spawn(async move { demo::serve_stream(&demo, theirs_in, theirs_out, stopped).await.unwrap() });
                        let (input, output) = tokio::io::split(ours);
                        (open_in_memory(input, output, &options, &tap).await.unwrap(), server)
                    }
                    _ => {
                        let host = DEFAULT_HOST.to_owned();
                        let transport = match over {
                            Transport::Http => DemoTransport::Http { host, port: 0 },
                            _ => DemoTransport::Sse { host, port: 0 },
                        };
                        let listening = demo::bind(&DemoOptions { transport, ..demo.clone() }).await.unwrap();
                        let endpoint = Endpoint { url: Url::parse(&listening.url()).unwrap(), headers: Vec::new() };
                        let server = tokio::spawn(async move { listening.serve(stopped).await.unwrap() });
                        let target = Target::Http { endpoint, kind: Some(over), launch: None, locate: None };
                        (open_session(&target, &options, &tap).await.unwrap(), server)
                    }
                };
                assert_eq!(session.handshake().protocol_version, version);
                exercise(&session).await;
                session.close().await;
                drop(stop);
                server.await.unwrap();
                assert!(schemas.check_sent(version, &tap.transcript()).len() > 3, "{version} {over}");
            }
        }
    }
}

/// The examples of the specification: each fits the definition that it is an example of, and each whole message is one
/// to our parser.
#[test]
#[cfg_attr(not(official_schemas), ignore = "the official schemas are not beside the checkout (../shared/spec)")]
fn the_official_examples_fit_the_schema_and_our_parser() {
    let schemas = Schemas::read();
    let (mut examples, mut messages) = (0, 0);
    for folder in std::fs::read_dir(schemas::folder().join("examples-2026-07-28")).unwrap() {
        let folder = folder.unwrap().path();
        let definition = folder.file_name().unwrap().to_str().unwrap();
        for file in std::fs::read_dir(&folder).unwrap() {
            let file = file.unwrap().path();
            let bytes = std::fs::read(&file).unwrap();
            let example: Value = serde_json::from_slice(&bytes).unwrap();
            schemas.assert_fits(Revision::MODERN.as_str(), definition, &example, &file.display());
            examples += 1;
            if example.get("jsonrpc").is_some() {
                messages += 1;
                assert!(jsonrpc::parse(&bytes).is_ok(), "{}: {:?}", file.display(), jsonrpc::parse(&bytes));
            }
        }
    }
    println!("{examples} examples, {messages} of them whole messages");
    assert!(examples >= 88 && messages > 20, "{examples} examples, {messages} messages");
}

fn options(version: &str, answers: Answers) -> ConnectOptions {
    let era = match Era::of(version).unwrap() {
        Era::Legacy => EraChoice::Legacy,
        Era::Modern => EraChoice::Modern,
    };
    let protocol_version = (era == EraChoice::Legacy).then(|| version.to_owned());
    ConnectOptions { era, protocol_version, answers, timeout: Some(DEADLINE), ..ConnectOptions::default() }
}

fn everything() -> Answers {
    Answers {
        roots: Some(vec!["file:///work".into()]),
        elicitation: Some(Elicitation::Accept(Map::new())),
        sampling: Some(Sampling::Text("four".into())),
        tasks: Some(HostedTasks { takes: Duration::from_millis(5), poll_interval: Duration::from_millis(5) }),
        ..Answers::default()
    }
}

fn object(value: Value) -> Option<Map<String, Value>> {
    value.as_object().cloned()
}

/// One request of each method that the era has. What a server answers to them does not matter here.
async fn exercise(session: &Session) {
    let legacy = session.handshake().era == Era::Legacy;
    for (method, key) in [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        // A server without prompts answers an error.
        let _ = session.list(method, key, DEADLINE).await;
    }
    let uri = json!({ "uri": "tracker://projects" });
    let completion = json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "v" } });
    let mut requests = vec![
        ("resources/read", Some(uri.clone())),
        ("prompts/get", Some(json!({ "name": "p", "arguments": { "a": "b" } }))),
        ("completion/complete", Some(completion)),
        ("tools/call", Some(json!({ "name": "check_inventory", "arguments": { "product_id": "PROD-123" } }))),
    ];
    if legacy {
        requests.extend([
            ("ping", None),
            ("logging/setLevel", Some(json!({ "level": "info" }))),
            ("resources/subscribe", Some(uri.clone())),
            ("resources/unsubscribe", Some(uri)),
        ]);
    }
    let patient = Deadline { idle: DEADLINE, maximum: Some(2 * DEADLINE) };
    for (method, params) in requests {
        for deadline in [patient, DEADLINE.into()] {
            let _ = session.request_rounds(method, params.clone().and_then(object), deadline).await.unwrap();
        }
    }
    if !legacy {
        let listen = object(json!({ "notifications": { "toolsListChanged": true } }));
        let _ = session.request_and_cancel("subscriptions/listen", listen, Duration::from_millis(20), "no longer needed").await;
    }
}

/// Everything about tasks that a revision has: ours to the server, and, in 2025-11-25, those that the server gives us.
async fn run_tasks(session: &Session, version: &str) {
    if task_methods(version).is_empty() {
        return;
    }
    let params = |name: &str| object(json!({ "name": name, "arguments": {} })).unwrap();
    let ended = session.finish_as_task(params("task"), Some(DEADLINE), DEADLINE).await.unwrap();
    assert!(ended.reply.unwrap().answer.is_ok());
    let cut_short = session.finish_as_task(params("task-silent"), None, Duration::from_millis(50)).await.unwrap_err();
    assert!(cut_short.to_string().ends_with("and was canceled"), "{cut_short}");
    if version == Revision::MODERN.as_str() {
        let filter = object(json!({ "toolsListChanged": true, "taskIds": ["t1"] })).unwrap();
        session.listen(filter, DEADLINE).await.unwrap().close();
    } else {
        session.list_tasks(DEADLINE).await.unwrap();
        session.request("tools/call", Some(params("host")), DEADLINE).await.unwrap().answer.unwrap();
    }
}

/// Messages about tasks, in both roles.
fn task_methods(version: &str) -> &'static [&'static str] {
    match version {
        "2025-11-25" => &[
            "tasks/get",
            "tasks/result",
            "tasks/cancel",
            "tasks/list",
            "task for sampling/createMessage",
            "task for elicitation/create",
            "answer to tasks/get",
            "answer to tasks/result",
            "answer to tasks/cancel",
            "answer to tasks/list",
        ],
        "2026-07-28" => &["tasks/get", "tasks/update", "tasks/cancel", "subscriptions/listen"],
        _ => &[],
    }
}

/// Answers any request; a call of `ask` first sends all requests to the client, a call of `silent` is never
/// answered. `task` and `task-silent` become tasks, of which the latter never ends; `host` creates some at the client.
async fn inquisitive_server(stream: DuplexStream, version: &str) {
    let (input, mut output) = tokio::io::split(stream);
    let mut lines = BufReader::new(input).lines();
    let questions = questions(version);
    let mut modern = false;
    let mut asked = None;
    let mut hosting = None;
    let mut polls = 0;
    while let Some(line) = lines.next_line().await.unwrap() {
        let message: Value = serde_json::from_str(&line).unwrap();
        let (id, params) = (&message["id"], &message["params"]);
        let mut say = Vec::new();
        let answer = |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
        match message["method"].as_str() {
            Some("server/discover") => {
                modern = true;
                let capabilities = json!({ "extensions": { TASKS_EXTENSION: {} } });
                say.push(answer(
                    json!({ "resultType": "complete", "supportedVersions": [Revision::MODERN.as_str()], "capabilities": capabilities }),
                ));
            }
            Some("initialize") => {
                let server = json!({ "name": "inquisitive", "version": "1" });
                let tasks = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
                let capabilities = json!({ "tasks": tasks });
                say.push(answer(
                    json!({ "protocolVersion": params["protocolVersion"], "capabilities": capabilities, "serverInfo": server }),
                ));
            }
            Some("tools/call") if params["name"] == "task" || params["name"] == "task-silent" => {
                polls = 0;
                let task = task_state(params["name"].as_str().unwrap(), "working", modern);
                say.push(answer(if modern { task } else { json!({ "task": task }) }));
            }
            Some("tasks/get" | "tasks/cancel" | "tasks/list" | "tasks/result" | "tasks/update") => {
                polls += 1;
                let name = params["taskId"].as_str().unwrap_or("task");
                let status = match (name, polls) {
                    ("task-silent", _) => "working",
                    (_, 1) => "input_required",
                    _ => "completed",
                };
                let mut state = task_state(name, status, modern);
                state["resultType"] = json!("complete");
                say.push(answer(match message["method"].as_str().unwrap() {
                    "tasks/list" => json!({ "tasks": [state] }),
                    "tasks/result" => json!({ "content": [] }),
                    _ => state,
                }));
            }
            Some("subscriptions/listen") if params["notifications"].get("taskIds").is_some() => {
                let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
                let params = json!({ "_meta": meta, "notifications": params["notifications"] });
                say.push(json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params }));
            }
            Some("tools/call") if params["name"] == "host" => {
                hosting = Some(Hosting::new(id.clone()));
                say.extend(hosting.as_mut().and_then(|hosting| hosting.next(&Value::Null)));
            }
            Some("tools/call") if params["name"] == "ask" && modern && params.get("inputResponses").is_none() => {
                let mut requests = questions.clone();
                requests.remove("ping");
                say.push(answer(json!({ "resultType": "input_required", "inputRequests": requests, "requestState": "s" })));
            }
            Some("tools/call") if params["name"] == "ask" && !modern => {
                let ask = |(key, question): (&String, &Value)| json!({ "jsonrpc": "2.0", "id": key, "method": question["method"], "params": question["params"] });
                say.extend(questions.iter().map(ask));
                asked = Some((id.clone(), questions.len()));
            }
            Some("tools/call") if params["name"] == "silent" => {}
            Some("tools/list") if params.get("cursor").is_none() => say.push(answer(json!({ "tools": [], "nextCursor": "2" }))),
            Some("tools/list") => {
                let tool = |name| json!({ "name": name, "inputSchema": { "type": "object" }, "execution": { "taskSupport": "optional" } });
                say.push(answer(json!({ "resultType": "complete", "tools": [tool("task"), tool("task-silent")] })));
            }
            Some(_) if !id.is_null() => say.push(answer(json!({ "resultType": "complete", "content": [] }))),
            Some(_) => {}
            None if hosting.is_some() => say.extend(hosting.as_mut().and_then(|hosting| hosting.next(&message["result"]))),
            None => {
                let (call, left) = asked.take().unwrap();
                match left {
                    1 => say.push(json!({ "jsonrpc": "2.0", "id": call, "result": { "content": [] } })),
                    _ => asked = Some((call, left - 1)),
                }
            }
        }
        for message in say {
            // The client may have closed already.
            let _ = output.write_all(format!("{message}\n").as_bytes()).await;
        }
    }
}

const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The state of a task in the form of its era, with an input request if it needs input.
fn task_state(name: &str, status: &str, modern: bool) -> Value {
    let (ttl, interval) = if modern { ("ttlMs", "pollIntervalMs") } else { ("ttl", "pollInterval") };
    let form = json!({ "message": "Who?", "requestedSchema": { "type": "object", "properties": {} } });
    let request = json!({ "form": { "method": "elicitation/create", "params": form } });
    let mut state = json!({ "resultType": "task", "taskId": name, "status": status, "createdAt": "2026-07-28T10:00:00Z",
        "lastUpdatedAt": "2026-07-28T10:00:00Z", ttl: 60_000, interval: 5, "result": { "content": [] } });
    if modern && status == "input_required" {
        state["inputRequests"] = request;
    }
    state
}

/// Gives our client two tasks, one after the other, and asks all there is to ask about them.
struct Hosting {
    call: Value,
    step: usize,
    task: Value,
}

impl Hosting {
    fn new(call: Value) -> Self {
        Self { call, step: 0, task: Value::Null }
    }

    /// The next message, after the client's result of the one before.
    fn next(&mut self, result: &Value) -> Option<Value> {
        if let Some(task) = result.get("task") {
            self.task = json!({ "taskId": task["taskId"] });
        }
        self.step += 1;
        let ask = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": format!("host-{}", self.step), "method": method, "params": params });
        let message = json!({ "role": "user", "content": { "type": "text", "text": "2 + 2?" } });
        let form = json!({ "type": "object", "properties": {} });
        Some(match self.step {
            1 => ask("sampling/createMessage", json!({ "messages": [message], "maxTokens": 10, "task": { "ttl": 60_000 } })),
            2 => ask("tasks/get", self.task.clone()),
            3 => ask("tasks/result", self.task.clone()),
            4 => ask("elicitation/create", json!({ "mode": "form", "message": "Who?", "requestedSchema": form, "task": {} })),
            5 => ask("tasks/cancel", self.task.clone()),
            6 => ask("tasks/list", json!({})),
            7 => json!({ "jsonrpc": "2.0", "id": self.call, "result": { "content": [] } }),
            _ => return None,
        })
    }
}

/// The requests of a server, by a short name.
fn questions(version: &str) -> Map<String, Value> {
    let mut properties = json!({
        "name": { "type": "string" }, "count": { "type": "integer", "default": 3 }, "sure": { "type": "boolean", "default": true },
    });
    // A choice of several came with 2025-11-25.
    if version >= "2025-11-25" {
        properties["colours"] = json!({ "type": "array", "items": { "type": "string", "enum": ["red", "blue"] }, "default": ["red"] });
    }
    let message = json!({ "role": "user", "content": { "type": "text", "text": "2 + 2?" } });
    let questions = json!({
        "roots": { "method": "roots/list", "params": {} },
        "sampling": { "method": "sampling/createMessage", "params": { "messages": [message], "maxTokens": 10 } },
        "form": { "method": "elicitation/create", "params": {
            "mode": "form", "message": "Who?", "requestedSchema": { "type": "object", "properties": properties } } },
        "url": { "method": "elicitation/create", "params": {
            "mode": "url", "message": "Sign in", "url": "https://example.com/sign-in", "elicitationId": "e1" } },
        "ping": { "method": "ping", "params": {} },
    });
    object(questions).unwrap()
}

/// The client's messages, against the schema.
trait Sent {
    fn check_sent(&self, version: &str, transcript: &Transcript) -> BTreeMap<String, usize>;
    fn check_input(&self, version: &str, message: &Value);
}

impl Sent for Schemas {
    /// Checks all messages to the server, and returns how often each kind was sent.
    fn check_sent(&self, version: &str, transcript: &Transcript) -> BTreeMap<String, usize> {
        assert_eq!(transcript.dropped, 0);
        let mut asked: BTreeMap<String, (String, bool)> = BTreeMap::new();
        let mut seen = BTreeMap::new();
        for frame in &transcript.frames {
            let bytes = match &frame.body {
                FrameBody::Line { bytes, .. } | FrameBody::HttpBody { bytes, .. } => bytes.as_bytes().to_vec(),
                FrameBody::HttpRequest { body, .. } => body.as_bytes().to_vec(),
                FrameBody::SseEvent { data: Some(data), .. } => data.as_bytes().to_vec(),
                _ => continue,
            };
            let Ok(message) = serde_json::from_slice::<Value>(&bytes) else { continue };
            let method = message["method"].as_str();
            match (frame.direction, method) {
                (Direction::FromServer, Some(method)) => {
                    asked.insert(message["id"].to_string(), (method.to_owned(), message.pointer("/params/task").is_some()));
                }
                // There is no schema of the extension: these are requests like any other, as far as can be checked.
                (Direction::ToServer, Some(method)) if version == Revision::MODERN.as_str() && method.starts_with("tasks/") => {
                    self.assert_fits(version, "JSONRPCRequest", &message, &frame.id.0);
                    self.assert_fits(version, "RequestParams", &message["params"], &frame.id.0);
                    self.check_input(version, &message);
                    *seen.entry(method.to_owned()).or_default() += 1;
                }
                (Direction::ToServer, Some(method)) => {
                    let definition = self.definition_of(version, method);
                    self.assert_fits(version, &definition, &message, &frame.id.0);
                    self.assert_fits(version, "JSONRPCMessage", &message, &frame.id.0);
                    self.check_input(version, &message);
                    *seen.entry(method.to_owned()).or_default() += 1;
                }
                (Direction::ToServer, None) => {
                    let (method, augmented) = &asked[&message["id"].to_string()];
                    self.assert_fits(version, "JSONRPCMessage", &message, &frame.id.0);
                    // Only 2025-11-25 has tasks; elsewhere the request is answered as any other.
                    let created = *augmented && message["result"].get("task").is_some();
                    if let Some(result) = message.get("result") {
                        let definition = if created { "CreateTaskResult" } else { result_definition(method) };
                        // Revisions before elicitation or sampling with tools know less; they cannot ask for it either.
                        if self.document(version).1.get(definition).is_some() {
                            self.assert_fits(version, definition, result, &frame.id.0);
                        }
                    }
                    let kind = if created { "task for" } else { "answer to" };
                    *seen.entry(format!("{kind} {method}")).or_default() += 1;
                }
                _ => {}
            }
        }
        seen
    }

    /// The input responses in a request, by the kind of input.
    fn check_input(&self, version: &str, message: &Value) {
        for (key, response) in message.pointer("/params/inputResponses").and_then(Value::as_object).into_iter().flatten() {
            let definition = result_definition(questions(version)[key]["method"].as_str().unwrap());
            self.assert_fits(version, definition, response, key);
        }
    }
}

/// The response to a request of the server.
fn result_definition(method: &str) -> &'static str {
    match method {
        "roots/list" => "ListRootsResult",
        "sampling/createMessage" => "CreateMessageResult",
        "elicitation/create" => "ElicitResult",
        "tasks/get" => "GetTaskResult",
        "tasks/cancel" => "CancelTaskResult",
        "tasks/list" => "ListTasksResult",
        "tasks/result" => "GetTaskPayloadResult",
        _ => "EmptyResult",
    }
}
