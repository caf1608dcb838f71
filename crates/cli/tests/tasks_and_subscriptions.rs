//! Tasks and subscriptions against real servers over stdio and HTTP: the official everything server for 2025-11-25, our
//! demo tracker (rmcp) for 2026-07-28.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod peers;

use mcproof_client::{
    Answers, Called, ConnectOptions, Elicitation, Endpoint, HostedTasks, Launch, Sampling, Session, Subscription, Tap, Target, TaskStatus,
    open_session,
};
use mcproof_protocol::{EraChoice, Transport};
use peers::Peer;
use serde_json::{Map, Value, json};
use std::time::Duration;
use url::Url;

/// Longer than anything here takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

const RELATED: &str = "/_meta/io.modelcontextprotocol~1related-task/taskId";

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// A port that was free just now.
async fn open(target: Target, era: EraChoice, answers: Answers) -> Session {
    let options = ConnectOptions { era, answers, timeout: Some(DEADLINE), ..ConnectOptions::default() };
    open_session(&target, &options, &Tap::new()).await.unwrap()
}

fn http(url: &str, launch: Launch) -> Target {
    let endpoint = Endpoint { url: Url::parse(url).unwrap(), headers: Vec::new() };
    Target::Http { endpoint, kind: Some(Transport::Http), launch: Some(launch), locate: None }
}

async fn everything(over: Transport, answers: Answers) -> Session {
    let name = if over == Transport::Stdio { "stdio" } else { "http" };
    let start = Peer::named("everything").start(name);
    let port = mcproof_testkit::free_port().to_string();
    let filled = |text: String| text.replace("${port}", &port);
    let env = start.env.into_iter().map(|(name, value)| (name, filled(value))).collect();
    let launch = Launch { command: start.command, env, ..Launch::default() };
    let target = match start.url {
        Some(url) => http(&filled(url), launch),
        None => Target::Stdio(launch),
    };
    open(target, EraChoice::Legacy, answers).await
}

async fn tracker(over: Transport) -> Session {
    let port = mcproof_testkit::free_port().to_string();
    let mut command = vec![env!("CARGO_BIN_EXE_mcproof"), "demo", "tracker"];
    if over == Transport::Http {
        command.extend(["--http", "--port", &port]);
    }
    let launch = Launch { command: command.into_iter().map(str::to_owned).collect(), ..Launch::default() };
    let target = match over {
        Transport::Http => http(&format!("http://127.0.0.1:{port}/mcp"), launch),
        _ => Target::Stdio(launch),
    };
    open(target, EraChoice::Modern, Answers::default()).await
}

/// Nothing that came was out of place.
async fn close(session: Session) {
    assert!(session.faults().is_empty(), "{:?}\n{:#?}", session.faults(), session.tap().transcript());
    session.close().await;
}

fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

const BOTH: [Transport; 2] = [Transport::Stdio, Transport::Http];

async fn research(session: &Session, ambiguous: bool) -> Value {
    let params = object(json!({ "name": "simulate-research-query", "arguments": { "topic": "python", "ambiguous": ambiguous } }));
    let end = session.finish_as_task(params, Some(DEADLINE), DEADLINE).await.unwrap();
    assert_eq!(end.status, TaskStatus::Completed);
    end.reply.unwrap().answer.unwrap()
}

#[tokio::test]
async fn tasks_of_the_everything_server_complete_also_with_a_question_on_the_way() {
    for over in BOTH {
        let interpretation = object(json!({ "interpretation": "snake" }));
        let session = everything(over, Answers { elicitation: Some(Elicitation::Accept(interpretation)), ..Answers::default() }).await;
        // Both at once: their questions and results must not mix.
        let (plain, asked) = tokio::join!(research(&session, false), research(&session, true));
        assert!(text(&plain).starts_with("# Research Report: python\n"), "{over}: {plain}");
        assert!(text(&asked).starts_with("# Research Report: python (snake)\n"), "{over}: {asked}");
        for result in [plain, asked] {
            assert!(result.pointer(RELATED).is_some_and(Value::is_string), "{over}: {result}");
        }
        close(session).await;
    }
}

#[tokio::test]
async fn a_task_of_the_everything_server_is_listed_and_cancelled() {
    for over in BOTH {
        let session = everything(over, Answers::default()).await;
        let params = object(json!({ "name": "simulate-research-query", "arguments": { "topic": "python" } }));
        let Called::Task(mut task) = session.call_as_task(params.clone(), None, DEADLINE).await.unwrap() else { panic!() };
        let listed = session.list_tasks(DEADLINE).await.unwrap();
        assert!(listed.items.iter().any(|item| item["taskId"] == task.id()), "{over}: {:?}", listed.items);
        task.cancel(&session, DEADLINE).await.unwrap();
        let end = task.finish(&session, DEADLINE).await.unwrap();
        assert_eq!((end.status, end.reply.is_none()), (TaskStatus::Cancelled, true), "{over}");
        let failure = session.finish_as_task(params, None, Duration::from_millis(500)).await.unwrap_err().to_string();
        assert!(failure.ends_with("and was canceled"), "{over}: {failure}");
        let params = object(json!({ "name": "echo", "arguments": { "message": "m" } }));
        let failure = session.call_as_task(params, None, DEADLINE).await.unwrap_err().to_string();
        assert!(failure.starts_with("tool `echo` must not be called as a task: its `execution.taskSupport` is"), "{over}: {failure}");
        close(session).await;
    }
}

#[tokio::test]
async fn the_everything_server_gives_our_client_tasks() {
    for over in BOTH {
        let answers = Answers {
            elicitation: Some(Elicitation::Accept(object(json!({ "name": "Ada" })))),
            sampling: Some(Sampling::Text("a poem".into())),
            tasks: Some(HostedTasks::default()),
            ..Answers::default()
        };
        let session = everything(over, answers).await;
        let call = async |name: &str, arguments: Value, expected: &[&str]| {
            let params = object(json!({ "name": name, "arguments": arguments }));
            let result = session.request("tools/call", Some(params), DEADLINE).await.unwrap().answer.unwrap();
            for part in expected {
                assert!(result["content"].to_string().contains(part), "{over} {name}: no {part} in {result:#}");
            }
        };
        tokio::join!(
            call("trigger-sampling-request-async", json!({ "prompt": "p" }), &["[COMPLETED]", "Poll 1: completed", "a poem"]),
            call("trigger-elicitation-request-async", json!({}), &["[COMPLETED]", "Poll 1: completed", "- Name: Ada"]),
        );
        close(session).await;
    }
}

#[tokio::test]
async fn legacy_subscribers_hear_of_updates() {
    const UPDATED: &str = "notifications/resources/updated";
    for over in BOTH {
        let session = everything(over, Answers::default()).await;
        let uri = "demo://resource/dynamic/text/1";
        session.subscribe(uri, DEADLINE).await.unwrap().answer.unwrap();
        let toggle = object(json!({ "name": "toggle-subscriber-updates", "arguments": {} }));
        session.request("tools/call", Some(toggle), DEADLINE).await.unwrap().answer.unwrap();
        let first = session.wait_for_notification(UPDATED, DEADLINE).await.unwrap();
        assert_eq!(first.params, Some(json!({ "uri": uri })), "{over}");
        // The next one is another one.
        let second = session.wait_for_notification(UPDATED, DEADLINE).await.unwrap();
        assert!(second.frame > first.frame, "{over}");
        session.unsubscribe(uri, DEADLINE).await.unwrap().answer.unwrap();
        let nothing = session.wait_for_notification("notifications/nothing", Duration::from_millis(50)).await.unwrap_err();
        assert_eq!(nothing.to_string(), "no `notifications/nothing` within 50 ms");
        close(session).await;
    }
}

async fn create_issue(session: &Session, project: &str) {
    let params = object(json!({ "name": "create_issue", "arguments": { "project": project, "title": "t" } }));
    session.request("tools/call", Some(params), DEADLINE).await.unwrap().answer.unwrap();
}

/// rmcp acknowledges before its handler listens, so that what happens at once may be missed: it happens until it is heard.
async fn heard(session: &Session, subscription: &mut Subscription) -> mcproof_client::Notification {
    for attempt in 0..200 {
        create_issue(session, &format!("project-{attempt}")).await;
        if let Ok(notification) = subscription.next(Duration::from_millis(50)).await {
            return notification;
        }
    }
    panic!("nothing was heard: {:#?}", session.tap().transcript());
}

#[tokio::test]
async fn modern_listeners_hear_what_they_asked_for_until_they_close() {
    for over in BOTH {
        let session = tracker(over).await;
        let filter = |uri: &str| object(json!({ "resourceSubscriptions": [uri] }));
        let mut projects = session.listen(filter("tracker://projects"), DEADLINE).await.unwrap();
        let mut other = session.listen(filter("tracker://issues/ISSUE-1"), DEADLINE).await.unwrap();
        assert_eq!(projects.granted(), Some(&json!({ "resourceSubscriptions": ["tracker://projects"] })), "{over}");
        let update = heard(&session, &mut projects).await;
        let params = update.params.unwrap();
        assert_eq!((update.method.as_str(), &params["uri"]), ("notifications/resources/updated", &json!("tracker://projects")));
        assert_eq!(params["_meta"]["io.modelcontextprotocol/subscriptionId"], json!(projects.id()), "{over}");
        assert_eq!(update.carried_by.is_some(), over == Transport::Http);
        let silence = other.next(Duration::from_millis(20)).await.unwrap_err();
        assert_eq!(silence.to_string(), "no notification of the subscription within 20 ms", "{over}");
        projects.close();
        // The session and the other subscription go on.
        create_issue(&session, "after").await;
        let mut again = session.listen(filter("tracker://projects"), DEADLINE).await.unwrap();
        heard(&session, &mut again).await;
        drop((again, other));
        close(session).await;
    }
}

#[test]
fn a_call_on_the_command_line_runs_as_a_task() {
    let start = Peer::named("everything").start("stdio");
    let call = |words: &[&str]| {
        let flags = ["--era", "legacy", "--task", "--timeout", "60s", "--"];
        let mut mcproof = std::process::Command::new(env!("CARGO_BIN_EXE_mcproof"));
        mcproof.arg("call").args(words).args(flags).args(&start.command).envs(start.env.clone()).output().unwrap()
    };
    let done = call(&["simulate-research-query", "topic=tides"]);
    let (stdout, stderr) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && stdout.contains("tides"), "{stdout}{stderr}");
    let refused = call(&["echo", "message=hello"]);
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(1) && stderr.contains("must not be called as a task"), "{stderr}");
}
