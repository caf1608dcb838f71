//! The extension `io.modelcontextprotocol/tasks` against a server that others wrote: rmcp's task manager, in memory and
//! over HTTP.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mcproof_client::{
    Answers, Called, ConnectOptions, Elicitation, Endpoint, Session, Tap, Target, TaskEnd, TaskFailure, TaskStatus, open_in_memory,
    open_session,
};
use mcproof_protocol::{EraChoice, Transport};
use mcproof_record::FrameBody;
use mcproof_testkit::workshop::{Workshop, serve};
use rmcp::ServiceExt as _;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::io::{duplex, split};
use tokio::net::TcpListener;
use url::Url;

const DEADLINE: Duration = Duration::from_secs(10);

async fn open(over: Transport, era: EraChoice) -> Session {
    let answers = Answers { elicitation: Some(Elicitation::Accept(Map::new())), ..Answers::default() };
    let options = ConnectOptions { era, answers, ..ConnectOptions::default() };
    let workshop = Workshop::default();
    if over == Transport::InMemory {
        let (ours, theirs) = duplex(1 << 16);
        tokio::spawn(async move { workshop.serve(theirs).await.unwrap().waiting().await });
        let (input, output) = split(ours);
        return open_in_memory(input, output, &options, &Tap::new()).await.unwrap();
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(serve(workshop, listener));
    let target = Target::Http { endpoint: Endpoint { url, headers: Vec::new() }, kind: Some(over), launch: None, locate: None };
    open_session(&target, &options, &Tap::new()).await.unwrap()
}

fn call(tool: &str) -> Map<String, Value> {
    json!({ "name": tool, "arguments": {} }).as_object().unwrap().clone()
}

const BOTH: [Transport; 2] = [Transport::InMemory, Transport::Http];

#[tokio::test]
async fn tasks_of_rmcp_come_to_their_end() {
    for over in BOTH {
        let session = open(over, EraChoice::Modern).await;
        let check = async |tool: &str, expected: (TaskStatus, Result<&str, i64>)| {
            let TaskEnd { status, reply } = session.finish_as_task(call(tool), None, DEADLINE).await.unwrap();
            let answer = reply.unwrap().answer;
            let text = answer.map(|result| result["content"][0]["text"].as_str().unwrap().to_owned()).map_err(|error| error.code);
            assert_eq!((status, text), (expected.0, expected.1.map(str::to_owned)), "{tool} over {over}");
        };
        check("now", (TaskStatus::Completed, Ok("at once"))).await;
        check("work", (TaskStatus::Completed, Ok("done"))).await;
        check("ask", (TaskStatus::Completed, Ok("Ada"))).await;
        check("fail", (TaskStatus::Failed, Err(-32603))).await;
        assert!(session.faults().is_empty(), "{:?}", session.faults());
        session.close().await;
    }
}

#[tokio::test]
async fn a_task_of_rmcp_is_cancelled_by_hand_and_by_its_deadline() {
    for over in BOTH {
        let session = open(over, EraChoice::Modern).await;
        let Called::Task(mut task) = session.call_as_task(call("endless"), None, DEADLINE).await.unwrap() else { panic!() };
        assert_eq!(task.refresh(&session, DEADLINE).await.unwrap().status, TaskStatus::Working);
        task.cancel(&session, DEADLINE).await.unwrap();
        let end = task.finish(&session, DEADLINE).await.unwrap();
        assert_eq!((end.status, end.reply.is_some()), (TaskStatus::Cancelled, false));
        let failure = session.finish_as_task(call("endless"), None, Duration::from_millis(200)).await.unwrap_err();
        let TaskFailure::TimedOut { id, cancelled: Ok(()), .. } = &failure else { panic!("{failure}") };
        // Found again by its id, it has ended.
        let mut task = session.task(id, DEADLINE).await.unwrap();
        assert_eq!(task.finish(&session, DEADLINE).await.unwrap().status, TaskStatus::Cancelled);
        let unknown = session.task("none", DEADLINE).await.unwrap_err();
        assert!(matches!(unknown, TaskFailure::Rpc { .. }), "{unknown}");
        session.close().await;
    }
}

/// Which routes requests to the instance that has the task.
#[tokio::test]
async fn requests_about_a_task_name_it_in_a_header() {
    let session = open(Transport::Http, EraChoice::Modern).await;
    let Called::Task(mut task) = session.call_as_task(call("ask"), None, DEADLINE).await.unwrap() else { panic!() };
    task.finish(&session, DEADLINE).await.unwrap();
    let mut methods = Vec::new();
    for frame in session.tap().transcript().frames {
        let FrameBody::HttpRequest { headers, .. } = frame.body else { continue };
        let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let method = header("mcp-method").unwrap();
        if method.starts_with("tasks/") {
            assert_eq!(header("mcp-name").as_deref(), Some(task.id()), "{method}");
            methods.push(method);
        }
    }
    assert!(methods.contains(&"tasks/get".to_owned()) && methods.contains(&"tasks/update".to_owned()), "{methods:?}");
}

/// rmcp knows no tasks of 2025-11-25, and says so.
#[tokio::test]
async fn a_legacy_session_with_rmcp_has_no_tasks() {
    let session = open(Transport::InMemory, EraChoice::Legacy).await;
    let failure = session.call_as_task(call("work"), None, DEADLINE).await.unwrap_err();
    assert_eq!(failure.to_string(), "server does not declare the capability `tasks.requests.tools.call`");
}
