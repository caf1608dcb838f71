//! A client that goes before it has its answer.

use super::super::visit::Visit;
use super::question::Questions;
use mcproof_client::{HttpQuestion, TransportKind};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// When it goes, each time a little later: nobody knows how long a server takes.
const TURNS: [usize; 4] = [2, 8, 30, 100];
const MOMENTS: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(15)];

/// How long a server gets to notice that nobody is there.
const NOTICES: Duration = Duration::from_millis(200);

/// Calls that are left at most.
const MOST_CALLS: usize = 3;

pub(super) async fn take(visit: &mut Visit<'_>) {
    let questions = Questions::of_session(visit);
    if visit.is_over() || !visit.is_alive_after("before-abort").await {
        return;
    }
    let listed = visit.ask("list-before-abort", None, "tools/list", json!({})).await;
    let tools = listed.and_then(Result::ok).and_then(|result| result.get("tools")?.as_array().cloned()).unwrap_or_default();
    let permission = visit.inquiry.calls.clone();
    let mut callable: Vec<&Value> = tools.iter().filter(|tool| permission.allows(tool)).collect();
    // Those that refuse to begin without arguments are soonest done.
    callable.sort_by_key(|tool| tool.pointer("/inputSchema/required").and_then(Value::as_array).is_some_and(|names| !names.is_empty()));
    for name in callable.into_iter().filter_map(|tool| tool.get("name").and_then(Value::as_str)).take(MOST_CALLS) {
        leave(visit, |visit| call(&questions, visit, name)).await;
    }
    leave(visit, |visit| questions.plain(visit)).await;
    if visit.kind() == TransportKind::Sse || !visit.is_modern() {
        visit.http_within("abort", &questions.stream(), MOMENTS[0]).await;
    }
    sleep(NOTICES).await;
    // The connection that was kept may be closed; the next request makes a new one.
    if !visit.is_alive_after("abort").await {
        visit.is_alive_after("abort").await;
    }
}

/// A call that asks for progress: what is said on the way is written to a connection that is closed.
fn call(questions: &Questions, visit: &mut Visit<'_>, name: &str) -> HttpQuestion {
    let mut question = questions.request(visit, "tools/call", json!({ "name": name, "arguments": {} }));
    if let Ok(mut message) = serde_json::from_slice::<Value>(&question.body) {
        message["params"]["_meta"]["progressToken"] = message["id"].clone();
        question.body = message.to_string().into_bytes();
    }
    question.headers.extend(visit.is_modern().then(|| ("mcp-name".to_owned(), name.to_owned())));
    question
}

/// Asks and goes, several times, each time with a request of its own.
async fn leave(visit: &mut Visit<'_>, ask: impl Fn(&mut Visit<'_>) -> HttpQuestion) {
    for turns in TURNS {
        let question = ask(visit);
        visit.http_left("abort", &question, turns).await;
    }
    for moment in MOMENTS {
        let question = ask(visit);
        visit.http_within("abort", &question, moment).await;
    }
}
