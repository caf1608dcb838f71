//! Tasks of both eras, and subscriptions, against servers that follow a script: what real servers do seldom or never.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mcproof_client::{
    Answers, Called, ConnectOptions, Elicitation, HostedTasks, ListenFailure, Sampling, Session, SubscriptionEnd, SubscriptionFailure, Tap,
    TaskEnd, TaskFailure, TaskStatus, open_in_memory,
};
use mcproof_protocol::EraChoice;
use mcproof_record::{Direction, FrameBody};
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex};

const DEADLINE: Duration = Duration::from_secs(10);
/// For what is to run into it.
const SHORT: Duration = Duration::from_millis(150);
const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// What a server says to a message of the client: everything but the handshake, which is the same for all.
type Script = Box<dyn FnMut(&Value) -> Vec<Value> + Send>;

struct Scene {
    session: Session,
    tap: Tap,
}

impl Scene {
    async fn open(version: &str, capabilities: Value, answers: Answers, script: impl FnMut(&Value) -> Vec<Value> + Send + 'static) -> Self {
        let (ours, theirs) = duplex(1 << 16);
        tokio::spawn(serve(theirs, version.to_owned(), capabilities, Box::new(script)));
        let era = if version == MODERN { EraChoice::Modern } else { EraChoice::Legacy };
        let options = ConnectOptions { era, answers, ..ConnectOptions::default() };
        let (tap, (input, output)) = (Tap::new(), tokio::io::split(ours));
        let session = open_in_memory(input, output, &options, &tap).await.unwrap();
        Self { session, tap }
    }

    /// The messages that the client sent.
    fn sent(&self) -> Vec<Value> {
        let frames = self.tap.transcript().frames;
        let sent = frames.iter().filter(|frame| frame.direction == Direction::ToServer).filter_map(|frame| match &frame.body {
            FrameBody::Line { bytes, .. } => serde_json::from_slice(bytes.as_bytes()).ok(),
            _ => None,
        });
        sent.collect()
    }

    /// The methods that it sent after the handshake; a response is a dash.
    fn methods(&self) -> Vec<String> {
        let method = |message: &Value| message["method"].as_str().unwrap_or("-").to_owned();
        let methods = self.sent().iter().map(method).collect::<Vec<_>>();
        methods
            .into_iter()
            .filter(|method| !matches!(method.as_str(), "initialize" | "notifications/initialized" | "server/discover"))
            .collect()
    }

    async fn call(&self) -> Result<TaskEnd, TaskFailure> {
        self.session.finish_as_task(tool(), Some(Duration::from_secs(60)), DEADLINE).await
    }
}

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

async fn serve(stream: DuplexStream, version: String, capabilities: Value, mut script: Script) {
    let (input, mut output) = tokio::io::split(stream);
    let mut lines = BufReader::new(input).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let said = match message["method"].as_str() {
            Some("initialize") => {
                let server = json!({ "name": "s", "version": "1" });
                vec![answer(&message, json!({ "protocolVersion": version, "capabilities": capabilities, "serverInfo": server }))]
            }
            Some("server/discover") => {
                vec![answer(&message, json!({ "resultType": "complete", "supportedVersions": [version], "capabilities": capabilities }))]
            }
            Some("notifications/initialized") => Vec::new(),
            Some("tools/list") => {
                let tool = |name: &str, support: &str| json!({ "name": name, "inputSchema": { "type": "object" }, "execution": { "taskSupport": support } });
                vec![answer(&message, json!({ "tools": [tool("slow", "required"), tool("quick", "forbidden")] }))]
            }
            _ => script(&message),
        };
        for message in said {
            if output.write_all(format!("{message}\n").as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

fn answer(message: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })
}

fn error(message: &Value, code: i64) -> Value {
    json!({ "jsonrpc": "2.0", "id": message["id"], "error": { "code": code, "message": "no" } })
}

fn legacy_capabilities() -> Value {
    json!({ "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } } })
}

fn modern_capabilities() -> Value {
    json!({ "extensions": { EXTENSION: {} } })
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn tool() -> Map<String, Value> {
    object(json!({ "name": "slow", "arguments": { "a": 1 } }))
}

/// A task of 2025-11-25 that wants to be polled at once.
fn legacy_task(status: &str) -> Value {
    json!({ "taskId": "t1", "status": status, "createdAt": "2025-11-25T10:30:00Z", "lastUpdatedAt": "2025-11-25T10:30:00Z",
        "ttl": 60_000, "pollInterval": 1 })
}

fn modern_task(kind: &str, status: &str, rest: Value) -> Value {
    let mut task = object(json!({ "resultType": kind, "taskId": "t1", "status": status, "createdAt": "2026-07-28T10:30:00Z",
        "lastUpdatedAt": "2026-07-28T10:30:00Z", "ttlMs": null, "pollIntervalMs": 1 }));
    task.extend(object(rest));
    Value::Object(task)
}

/// A legacy server whose task goes through these states, one for each poll, and then has this result.
fn legacy_script(states: &'static [&'static str], result: fn(&Value) -> Value) -> impl FnMut(&Value) -> Vec<Value> + Send + 'static {
    let mut states = states.iter();
    let mut last = "working";
    move |message| match message["method"].as_str().unwrap() {
        "tools/call" => vec![answer(message, json!({ "task": legacy_task("working") }))],
        "tasks/get" => {
            last = states.next().copied().unwrap_or(last);
            vec![answer(message, legacy_task(last))]
        }
        "tasks/result" => vec![result(message)],
        "tasks/cancel" => vec![answer(message, legacy_task("cancelled"))],
        _ => Vec::new(),
    }
}

fn finished(message: &Value) -> Value {
    answer(message, json!({ "content": [], "_meta": { RELATED: { "taskId": "t1", "more": 1 } } }))
}

#[tokio::test]
async fn a_legacy_task_is_polled_and_its_result_fetched() {
    let scene = Scene::open(LEGACY, legacy_capabilities(), Answers::default(), legacy_script(&["working", "completed"], finished)).await;
    let end = scene.call().await.unwrap();
    let reply = end.reply.unwrap();
    assert_eq!(end.status, TaskStatus::Completed);
    assert_eq!(reply.answer.unwrap(), json!({ "content": [], "_meta": { RELATED: { "taskId": "t1", "more": 1 } } }));
    assert_eq!(scene.methods(), ["tools/list", "tools/call", "tasks/get", "tasks/get", "tasks/result"]);
    let sent = scene.sent();
    let call = sent.iter().find(|message| message["method"] == "tools/call").unwrap();
    assert_eq!(call["params"], json!({ "name": "slow", "arguments": { "a": 1 }, "task": { "ttl": 60_000 } }));
    // What is known of the tools is remembered.
    let Called::Task(task) = scene.session.call_as_task(tool(), None, DEADLINE).await.unwrap() else { panic!() };
    assert_eq!((task.id(), task.state().poll_interval), ("t1", Some(Duration::from_millis(1))));
    assert_eq!(scene.sent().last().unwrap()["params"]["task"], json!({}));
    assert_eq!(scene.methods().iter().filter(|method| *method == "tools/list").count(), 1);
}

#[tokio::test]
async fn the_end_of_a_legacy_task_is_told_as_it_came() {
    let check = async |states, result: fn(&Value) -> Value, expected: TaskStatus, code: Option<i64>| {
        let scene = Scene::open(LEGACY, legacy_capabilities(), Answers::default(), legacy_script(states, result)).await;
        let end = scene.call().await.unwrap();
        let found = end.reply.and_then(|reply| reply.answer.err()).map(|error| error.code);
        assert_eq!((end.status, found), (expected, code), "{states:?}");
        scene.methods()
    };
    let failed = check(&["failed"], |message| error(message, -32000), TaskStatus::Failed, Some(-32000)).await;
    assert_eq!(failed.last().unwrap(), "tasks/result");
    // There is no result to fetch.
    let cancelled = check(&["cancelled"], finished, TaskStatus::Cancelled, None).await;
    assert_eq!(cancelled.last().unwrap(), "tasks/get");
    // The result comes before the news that there is one.
    check(&["input_required", "completed"], finished, TaskStatus::Completed, None).await;
    // It should have waited for the end: nothing is made up.
    check(&["input_required"], finished, TaskStatus::InputRequired, None).await;
}

#[tokio::test]
async fn a_question_on_the_way_is_answered_as_part_of_the_task() {
    let (mut status, mut asked) = ("input_required", Value::Null);
    let script = move |message: &Value| match message["method"].as_str() {
        Some("tools/call") => vec![answer(message, json!({ "task": legacy_task("working") }))],
        Some("tasks/get") => vec![answer(message, legacy_task(status))],
        Some("tasks/result") => {
            asked = message.clone();
            let params = json!({ "message": "Who?", "requestedSchema": { "type": "object", "properties": {} }, "_meta": { RELATED: { "taskId": "t1" } } });
            vec![json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params })]
        }
        // The client's answer.
        None => {
            status = "completed";
            vec![answer(&asked, json!({ "content": [{ "type": "text", "text": message["result"]["action"] }] }))]
        }
        _ => Vec::new(),
    };
    let answers = Answers { elicitation: Some(Elicitation::Decline), ..Answers::default() };
    let scene = Scene::open(LEGACY, legacy_capabilities(), answers, script).await;
    let end = scene.call().await.unwrap();
    assert_eq!(end.status, TaskStatus::Completed);
    assert_eq!(end.reply.unwrap().answer.unwrap()["content"][0]["text"], "decline");
    let response = scene.sent().into_iter().find(|message| message["id"] == "q").unwrap();
    assert_eq!(response["result"], json!({ "action": "decline", "_meta": { RELATED: { "taskId": "t1" } } }));
    assert_eq!(scene.methods().iter().filter(|method| *method == "tasks/result").count(), 1);
    assert!(scene.session.faults().is_empty());
}

#[tokio::test]
async fn a_task_that_takes_too_long_is_cancelled() {
    // It is never time for a poll, so that what is sent does not depend on how fast the machine is.
    let check = async |capabilities: Value, status: &'static str, expected: &[&str], text: &str| {
        let script = move |message: &Value| match message["method"].as_str() {
            Some("tools/call") => {
                let mut task = legacy_task(status);
                task["pollInterval"] = json!(3_600_000);
                vec![answer(message, json!({ "task": task }))]
            }
            Some("tasks/cancel") => vec![answer(message, legacy_task("cancelled"))],
            _ => Vec::new(),
        };
        let scene = Scene::open(LEGACY, capabilities, Answers::default(), script).await;
        let Called::Task(mut task) = scene.session.call_as_task(tool(), None, DEADLINE).await.unwrap() else { panic!() };
        let failure = task.finish(&scene.session, SHORT).await.unwrap_err();
        assert_eq!(failure.to_string(), text);
        assert_eq!(scene.methods()[2..], *expected);
        task.state().status
    };
    let text = "task `t1` is still working after 150 ms, and was canceled";
    assert_eq!(check(legacy_capabilities(), "working", &["tasks/cancel"], text).await, TaskStatus::Cancelled);
    // The request for its result is under way, and is canceled as well.
    let text = "task `t1` is still input_required after 150 ms, and was canceled";
    check(legacy_capabilities(), "input_required", &["tasks/result", "notifications/cancelled", "tasks/cancel"], text).await;
    let mut capabilities = legacy_capabilities();
    capabilities["tasks"].as_object_mut().unwrap().remove("cancel");
    let text = "task `t1` is still working after 150 ms, and could not be canceled: server does not declare the capability `tasks.cancel`";
    check(capabilities, "working", &[], text).await;
}

#[tokio::test]
async fn what_may_not_become_a_task_is_not_asked_for_as_one() {
    let check = async |version, capabilities: Value, params: Value, expected: &str| {
        let scene = Scene::open(version, capabilities, Answers::default(), |_| Vec::new()).await;
        let failure = scene.session.call_as_task(object(params), None, DEADLINE).await.unwrap_err();
        assert_eq!(failure.to_string(), expected);
        assert!(!scene.methods().contains(&"tools/call".to_owned()));
    };
    let slow = || json!({ "name": "slow" });
    check("2025-06-18", legacy_capabilities(), slow(), "revision 2025-06-18 has no tasks: they came with 2025-11-25").await;
    check(LEGACY, json!({}), slow(), "server does not declare the capability `tasks.requests.tools.call`").await;
    let forbidden = "tool `quick` must not be called as a task: its `execution.taskSupport` is `forbidden`";
    check(LEGACY, legacy_capabilities(), json!({ "name": "quick" }), forbidden).await;
    let unlisted = "tool `other` must not be called as a task: it is not in tools/list";
    check(LEGACY, legacy_capabilities(), json!({ "name": "other" }), unlisted).await;
    let undeclared = "server does not declare the extension `io.modelcontextprotocol/tasks`";
    check(MODERN, legacy_capabilities(), slow(), undeclared).await;
    let scene = Scene::open(MODERN, modern_capabilities(), Answers::default(), |_| Vec::new()).await;
    let failure = scene.session.list_tasks(DEADLINE).await.unwrap_err();
    assert_eq!(failure.to_string(), "server does not declare `tasks/list`, which the modern era does not have");
}

#[tokio::test]
async fn answers_that_are_no_tasks_are_refused() {
    let check = async |created: Value, state: Value, expected: &str| {
        let script = move |message: &Value| match message["method"].as_str() {
            Some("tools/call") => vec![answer(message, json!({ "task": created }))],
            Some("tasks/get") if state.is_i64() => vec![error(message, state.as_i64().unwrap())],
            _ => vec![answer(message, state.clone())],
        };
        let scene = Scene::open(LEGACY, legacy_capabilities(), Answers::default(), script).await;
        assert_eq!(scene.call().await.unwrap_err().to_string(), expected);
    };
    let working = || legacy_task("working");
    check(json!({ "taskId": "t1" }), json!({}), "the response to tools/call is not a task: it has no string `status`").await;
    check(working(), json!({ "status": "working" }), "the response to tasks/get is not a task: it has no string `taskId`").await;
    let other = json!({ "taskId": "t2", "status": "working" });
    check(working(), other, "the response to tasks/get is not a task: it is for task `t2`, not `t1`").await;
    check(working(), json!(-32602), "tasks/get returned JSON-RPC error -32602: no").await;
}

#[tokio::test]
async fn a_status_notification_ends_the_wait_for_the_next_poll() {
    for (version, capabilities, method) in
        [(LEGACY, legacy_capabilities(), "notifications/tasks/status"), (MODERN, modern_capabilities(), "notifications/tasks")]
    {
        let task = move |status: &str| match version {
            MODERN => modern_task("task", status, json!({ "pollIntervalMs": 3_600_000, "result": {} })),
            _ => {
                let mut task = legacy_task(status);
                task["pollInterval"] = json!(3_600_000);
                task
            }
        };
        let script = move |message: &Value| match message["method"].as_str() {
            Some("tools/call") => {
                let created = if version == MODERN { task("working") } else { json!({ "task": task("working") }) };
                let says = |id: &str, status: &str| {
                    let mut params = task(status);
                    params["taskId"] = json!(id);
                    json!({ "jsonrpc": "2.0", "method": method, "params": params })
                };
                vec![answer(message, created), says("t2", "completed"), says("t1", "working"), says("t1", "completed")]
            }
            Some("tasks/get") => vec![answer(message, task("completed"))],
            _ => vec![answer(message, json!({}))],
        };
        let scene = Scene::open(version, capabilities, Answers::default(), script).await;
        assert_eq!(scene.call().await.unwrap().status, TaskStatus::Completed);
        assert_eq!(scene.methods().iter().filter(|method| *method == "tasks/get").count(), 1, "{:?}", scene.methods());
    }
}

#[tokio::test]
async fn tasks_are_listed_over_all_pages_and_found_by_their_id() {
    let script = |message: &Value| {
        let page = match message["params"]["cursor"].as_str() {
            None => json!({ "tasks": [legacy_task("working")], "nextCursor": "2" }),
            Some(_) => json!({ "tasks": [legacy_task("failed")] }),
        };
        let result = if message["method"] == "tasks/list" { page } else { legacy_task("completed") };
        vec![answer(message, result)]
    };
    let scene = Scene::open(LEGACY, legacy_capabilities(), Answers::default(), script).await;
    let listed = scene.session.list_tasks(DEADLINE).await.unwrap();
    assert_eq!((listed.items.len(), listed.pages), (2, 2));
    let mut task = scene.session.task("t1", DEADLINE).await.unwrap();
    assert_eq!(task.refresh(&scene.session, DEADLINE).await.unwrap().status, TaskStatus::Completed);
    let other = scene.session.task("t2", DEADLINE).await.unwrap_err();
    assert_eq!(other.to_string(), "the response to tasks/get is not a task: it is for task `t1`, not `t2`");
}

#[tokio::test]
async fn a_modern_task_is_given_what_it_asks_for_once() {
    let mut polls = 0;
    let script = move |message: &Value| match message["method"].as_str().unwrap() {
        "tools/call" => vec![answer(message, modern_task("task", "working", json!({})))],
        "tasks/get" => {
            polls += 1;
            let question = |key: &str| json!({ key: { "method": "elicitation/create", "params": { "mode": "url", "url": "https://a" } } });
            let task = match polls {
                1 | 2 => modern_task("complete", "input_required", json!({ "inputRequests": question("one") })),
                3 => modern_task("complete", "input_required", json!({ "inputRequests": question("two") })),
                4 => modern_task("complete", "working", json!({})),
                _ => modern_task("complete", "completed", json!({ "result": { "content": [] } })),
            };
            vec![answer(message, task)]
        }
        _ => vec![answer(message, json!({ "resultType": "complete" }))],
    };
    let answers = Answers { elicitation: Some(Elicitation::Accept(Map::new())), ..Answers::default() };
    let scene = Scene::open(MODERN, modern_capabilities(), answers, script).await;
    let end = scene.call().await.unwrap();
    assert_eq!((end.status, end.reply.unwrap().answer.unwrap()), (TaskStatus::Completed, json!({ "content": [] })));
    let expected = ["tools/call", "tasks/get", "tasks/update", "tasks/get", "tasks/get", "tasks/update", "tasks/get", "tasks/get"];
    assert_eq!(scene.methods(), expected);
    let sent = scene.sent();
    let updates = sent.iter().filter(|message| message["method"] == "tasks/update");
    let given: Vec<Value> = updates.map(|update| update["params"]["inputResponses"].clone()).collect();
    assert_eq!(given, [json!({ "one": { "action": "accept" } }), json!({ "two": { "action": "accept" } })]);
    let declared = "/params/_meta/io.modelcontextprotocol~1clientCapabilities/extensions";
    for message in sent.iter().filter(|message| message["method"] != "server/discover") {
        assert_eq!(message.pointer(declared), Some(&json!({ EXTENSION: {} })), "{message}");
    }
    // An ordinary call does not ask for a task.
    let _ = scene.session.request("tools/call", Some(tool()), DEADLINE).await.unwrap();
    assert_eq!(scene.sent().last().unwrap().pointer(declared), None);
}

/// How a task ended, with the result or the code of the error, if there is any.
type Ended = (TaskStatus, Option<Result<Value, i64>>);

#[tokio::test]
async fn the_end_of_a_modern_task_is_told_as_it_came() {
    let check = async |created: Value, state: Value, expected: Result<Ended, &str>| {
        let script = move |message: &Value| match message["method"].as_str().unwrap() {
            "tools/call" => vec![answer(message, created.clone())],
            _ => vec![answer(message, state.clone())],
        };
        let scene = Scene::open(MODERN, modern_capabilities(), Answers::default(), script).await;
        let found = scene.call().await.map(|end| (end.status, end.reply.map(|reply| reply.answer.map_err(|error| error.code))));
        assert_eq!(found.map_err(|failure| failure.to_string()), expected.map_err(str::to_owned));
    };
    let working = || modern_task("task", "working", json!({}));
    let now = json!({ "resultType": "complete", "content": [] });
    check(now.clone(), json!({}), Ok((TaskStatus::Completed, Some(Ok(now))))).await;
    let failed = modern_task("complete", "failed", json!({ "error": { "code": -32603, "message": "m" } }));
    check(working(), failed.clone(), Ok((TaskStatus::Failed, Some(Err(-32603))))).await;
    // A task may be over when it is created; its result comes with the first poll.
    check(modern_task("task", "failed", json!({})), failed, Ok((TaskStatus::Failed, Some(Err(-32603))))).await;
    check(working(), modern_task("complete", "cancelled", json!({})), Ok((TaskStatus::Cancelled, None))).await;
    let empty = modern_task("complete", "completed", json!({}));
    check(working(), empty, Err("the response to tasks/get is not a task: it is completed and has no `result`")).await;
    let vague = modern_task("complete", "failed", json!({ "error": "m" }));
    check(working(), vague, Err("the response to tasks/get is not a task: `error` is not an object")).await;
    let requests = json!({ "inputRequests": { "k": { "method": "sampling/createMessage", "params": {} } } });
    let asks = modern_task("complete", "input_required", requests);
    let text = "task `t1` requests input that no client response covers: sampling/createMessage (`k`)";
    check(working(), asks, Err(text)).await;
}

#[tokio::test]
async fn the_server_s_own_tasks_are_hosted_if_a_policy_says_so() {
    let hosting = Some(HostedTasks { takes: Duration::from_millis(20), poll_interval: Duration::from_millis(5) });
    for (tasks, expected) in [(hosting, "completed"), (None, "at once")] {
        let mut call = Value::Null;
        let script = move |message: &Value| {
            let ask =
                |id: &str, method: &str, params: Value| vec![json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })];
            let done = |text: &str, call: &Value| vec![answer(call, json!({ "content": [], "how": text, "result": message["result"] }))];
            let named = || json!({ "taskId": message["result"]["taskId"] });
            match (message["method"].as_str(), message["id"].as_str()) {
                (Some("tools/call"), _) => {
                    call = message.clone();
                    ask("create", "sampling/createMessage", json!({ "messages": [], "maxTokens": 1, "task": { "ttl": 1000 } }))
                }
                (None, Some("create")) => match message["result"].get("task") {
                    Some(task) => ask("get", "tasks/get", json!({ "taskId": task["taskId"] })),
                    None => done("at once", &call),
                },
                (None, Some("get")) => ask("result", "tasks/result", named()),
                (None, Some("result")) => done("completed", &call),
                _ => Vec::new(),
            }
        };
        let answers = Answers { sampling: Some(Sampling::Text("four".into())), tasks, ..Answers::default() };
        let scene = Scene::open(LEGACY, json!({}), answers, script).await;
        let reply = scene.session.request("tools/call", Some(tool()), DEADLINE).await.unwrap();
        let result = reply.answer.unwrap();
        assert_eq!((&result["how"], &result["result"]["content"]["text"]), (&json!(expected), &json!("four")));
        let declared = &scene.sent()[0]["params"]["capabilities"]["tasks"];
        let capability = json!({ "list": {}, "cancel": {}, "requests": { "sampling": { "createMessage": {} } } });
        assert_eq!(*declared, if tasks.is_some() { capability } else { Value::Null });
    }
    // No other revision has such tasks.
    let answers = || Answers { sampling: Some(Sampling::Reject), tasks: hosting, ..Answers::default() };
    let modern = Scene::open(MODERN, json!({}), answers(), |_| Vec::new()).await;
    assert!(!modern.sent()[0].to_string().contains("tasks"), "{}", modern.sent()[0]);
}

fn tagged(method: &str, id: &Value, more: Value) -> Value {
    let mut params = object(more);
    params.insert("_meta".into(), json!({ "io.modelcontextprotocol/subscriptionId": id }));
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

const CHANGED: &str = "notifications/tools/list_changed";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

#[tokio::test]
async fn two_subscriptions_are_told_apart_and_end_each_in_its_way() {
    let mut first = Value::Null;
    let script = move |message: &Value| match message["method"].as_str().unwrap() {
        "subscriptions/listen" => {
            let id = &message["id"];
            let granted = json!({ "notifications": { "toolsListChanged": true } });
            let mut said = vec![tagged(ACKNOWLEDGED, id, granted)];
            if first.is_null() {
                first = id.clone();
                said.push(tagged(CHANGED, id, json!({ "number": 1 })));
            } else {
                // Mixed with those of the first, and ended by the response.
                said.push(tagged(CHANGED, &first, json!({ "number": 2 })));
                said.push(tagged(CHANGED, id, json!({ "number": 3 })));
                said.push(answer(message, json!({ "resultType": "complete" })));
                said.push(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": first } }));
            }
            said
        }
        _ => Vec::new(),
    };
    let scene = Scene::open(MODERN, json!({}), Answers::default(), script).await;
    let filter = || object(json!({ "toolsListChanged": true, "promptsListChanged": true }));
    let mut one = scene.session.listen(filter(), DEADLINE).await.unwrap();
    assert_eq!(one.granted(), Some(&json!({ "toolsListChanged": true })));
    let mut two = scene.session.listen(filter(), DEADLINE).await.unwrap();
    let number = |notification: mcproof_client::Notification| notification.params.unwrap()["number"].as_i64();
    assert_eq!(number(two.next(DEADLINE).await.unwrap()), Some(3));
    let ended = two.next(DEADLINE).await.unwrap_err();
    assert!(matches!(ended, SubscriptionFailure::Ended(SubscriptionEnd::Answered(_))), "{ended}");
    assert_eq!(two.next(DEADLINE).await.unwrap_err().to_string(), "the server ended the subscription with its answer");
    assert_eq!(number(one.next(DEADLINE).await.unwrap()), Some(1));
    assert_eq!(number(one.next(DEADLINE).await.unwrap()), Some(2));
    assert_eq!(one.next(DEADLINE).await.unwrap_err().to_string(), "the server canceled the subscription");
    drop((one, two));
    // Both had ended: there was nothing to cancel.
    assert_eq!(scene.methods(), ["subscriptions/listen", "subscriptions/listen"]);
    let again = scene.session.listen(filter(), DEADLINE).await.unwrap();
    let id = json!(again.id());
    again.close();
    let last = scene.sent().pop().unwrap();
    assert_eq!((&last["method"], &last["params"]["requestId"]), (&json!("notifications/cancelled"), &id));
}

#[tokio::test]
async fn a_subscription_that_does_not_begin_with_its_acknowledgement_is_refused() {
    let check = async |version, said: fn(&Value) -> Vec<Value>, deadline, expected: &str, cancelled: bool| {
        let scene = Scene::open(version, json!({}), Answers::default(), said).await;
        let failure = scene.session.listen(Map::new(), deadline).await.unwrap_err();
        assert_eq!(failure.to_string(), expected);
        assert_eq!(scene.methods().contains(&"notifications/cancelled".to_owned()), cancelled, "{expected}");
        failure
    };
    let early = "the subscription begins with `notifications/tools/list_changed` instead of its acknowledgement";
    check(MODERN, |message| vec![tagged(CHANGED, &message["id"], json!({}))], DEADLINE, early, true).await;
    let never = "`subscriptions/listen` returned a response without acknowledging the subscription";
    check(MODERN, |message| vec![answer(message, json!({}))], DEADLINE, never, false).await;
    let refused = "`subscriptions/listen` returned JSON-RPC error -32601: no";
    check(MODERN, |message| vec![error(message, -32601)], DEADLINE, refused, false).await;
    check(MODERN, |_| Vec::new(), SHORT, "no response to `subscriptions/listen` within 150 ms", true).await;
    let legacy = "`subscriptions/listen` came with 2026-07-28; this server speaks 2025-11-25, which uses `resources/subscribe` instead";
    let failure = check(LEGACY, |_| Vec::new(), DEADLINE, legacy, false).await;
    assert!(matches!(failure, ListenFailure::NotInThisRevision { .. }));
}

#[tokio::test]
async fn a_subscription_to_tasks_declares_the_extension() {
    let script = |message: &Value| {
        let granted = message["params"]["notifications"].clone();
        vec![tagged(ACKNOWLEDGED, &message["id"], json!({ "notifications": granted }))]
    };
    let scene = Scene::open(MODERN, modern_capabilities(), Answers::default(), script).await;
    let subscription = scene.session.listen(object(json!({ "taskIds": ["t1"] })), DEADLINE).await.unwrap();
    assert_eq!(subscription.granted(), Some(&json!({ "taskIds": ["t1"] })));
    let sent = scene.sent().pop().unwrap();
    assert!(sent.pointer("/params/_meta/io.modelcontextprotocol~1clientCapabilities/extensions/io.modelcontextprotocol~1tasks").is_some());
}
