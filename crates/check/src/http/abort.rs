//! A client that goes before it has its answer.

use super::super::explorer::{Explorer, initialized};
use super::request_variants::Questions;
use mcproof_analysis::probes::{AFTER_ABORT_IN_SESSION, BEFORE_ABORT_IN_SESSION};
use mcproof_client::RawHttpRequest;
use mcproof_protocol::{Transport, methods};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// When the client disconnects, each time a little later: the response time of a server is not known.
const START_SLOTS: [usize; 4] = [2, 8, 30, 100];
const MOMENTS: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(15)];

/// How long a server has to notice that the client is gone.
const NOTICES: Duration = Duration::from_millis(200);

/// Calls that are left at most.
const MOST_CALLS: usize = 3;

pub(super) async fn take(explorer: &mut Explorer<'_>) {
    let http_requests = Questions::of_session(explorer);
    if explorer.is_over() || !explorer.is_alive_after("before-abort").await {
        return;
    }
    let listed = explorer.send_request("list-before-abort", None, methods::TOOLS_LIST, json!({})).await;
    let tools = listed.and_then(Result::ok).and_then(|result| result.get("tools")?.as_array().cloned()).unwrap_or_default();
    let permission = explorer.check_options.calls.clone();
    let mut callable: Vec<&Value> = tools.iter().filter(|tool| permission.allows(tool)).collect();
    // Those that refuse to begin without arguments are soonest done.
    callable.sort_by_key(|tool| tool.pointer("/inputSchema/required").and_then(Value::as_array).is_some_and(|names| !names.is_empty()));
    let names: Vec<&str> = callable.into_iter().filter_map(|tool| tool.get("name")?.as_str()).take(MOST_CALLS).collect();
    leave_each(explorer, &http_requests, &names).await;
    if explorer.kind() == Transport::Sse || !explorer.is_modern() {
        explorer.http_within("abort", &http_requests.stream(), MOMENTS[0]).await;
    }
    sleep(NOTICES).await;
    // The connection that was kept may be closed; the next request makes a new one.
    if !explorer.is_alive_after("abort").await {
        explorer.is_alive_after("abort").await;
    }
    if http_requests.session().is_some() && explorer.kind() == Transport::Http {
        let http_request = http_requests.plain(explorer);
        let answer = explorer.http("session-after-abort", None, &http_request).await;
        if answer.is_some_and(|answer| matches!(answer.head.status, 400 | 404 | 410)) {
            leave_in_session_of_its_own(explorer, &http_requests, &names).await;
        }
    }
}

/// A session may end at any time: one that has served nothing else, and ends as well, has ended for the connections that were closed.
async fn leave_in_session_of_its_own(explorer: &mut Explorer<'_>, http_requests: &Questions, names: &[&str]) {
    let http_request = http_requests.initialize(explorer);
    let opened = explorer.http("session-for-abort", None, &http_request).await;
    let Some(id) = opened.as_ref().and_then(|answer| answer.head.header("mcp-session-id")) else { return };
    let http_requests = http_requests.in_session(id);
    explorer.http("session-initialized", None, &http_requests.post(initialized().to_string())).await;
    let http_request = http_requests.plain(explorer);
    explorer.http(BEFORE_ABORT_IN_SESSION, None, &http_request).await;
    leave_each(explorer, &http_requests, names).await;
    sleep(NOTICES).await;
    let http_request = http_requests.plain(explorer);
    let mut after = explorer.http(AFTER_ABORT_IN_SESSION, None, &http_request).await;
    if after.is_none() {
        let http_request = http_requests.plain(explorer);
        after = explorer.http(AFTER_ABORT_IN_SESSION, None, &http_request).await;
    }
    if after.is_some_and(|answer| answer.head.status < 400) {
        explorer.http("tidy-up", None, &http_requests.bare("DELETE")).await;
    }
}

/// Leaves a call of each tool, and a request that any server can answer.
async fn leave_each(explorer: &mut Explorer<'_>, http_requests: &Questions, names: &[&str]) {
    for name in names {
        leave(explorer, |explorer| call(http_requests, explorer, name)).await;
    }
    leave(explorer, |explorer| http_requests.plain(explorer)).await;
}

/// A call that asks for progress: what is said on the way is written to a connection that is closed.
fn call(http_requests: &Questions, explorer: &mut Explorer<'_>, name: &str) -> RawHttpRequest {
    let mut http_request = http_requests.request(explorer, methods::TOOLS_CALL, json!({ "name": name, "arguments": {} }));
    if let Ok(mut message) = serde_json::from_slice::<Value>(&http_request.body) {
        message["params"]["_meta"]["progressToken"] = message["id"].clone();
        http_request.body = message.to_string().into_bytes();
    }
    http_request.headers.extend(explorer.is_modern().then(|| ("mcp-name".to_owned(), name.to_owned())));
    http_request
}

/// Asks and goes, several times, each time with a request of its own.
async fn leave(explorer: &mut Explorer<'_>, ask: impl Fn(&mut Explorer<'_>) -> RawHttpRequest) {
    for turns in START_SLOTS {
        let http_request = ask(explorer);
        explorer.http_left("abort", &http_request, turns).await;
    }
    for moment in MOMENTS {
        let http_request = ask(explorer);
        explorer.http_within("abort", &http_request, moment).await;
    }
}
