//! Two clients of a server whose requests have the same id, as those of any two clients may that count from 0 or 1: only the session and
//! the HTTP request tell them apart. Each is a conversation of its own.

use super::super::calls::{self, Callable, Tools};
use super::super::concurrent_requests::only_text;
use super::super::explorer::Explorer;
use super::super::{CheckOptions, Permission};
use super::sessions::BESIDE_OTHERS;
use mcproof_analysis::probes::{AT_ONCE, SAME_ID};
use mcproof_client::Session;
use mcproof_protocol::{EraChoice, methods};
use mcproof_record::{Conversation, FrameBody};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Requests that meet in the server only by chance meet in one of so many rounds.
const ROUNDS: usize = 4;
/// Of calls, which last long enough to meet. A response that is missing once may be late.
const CALL_ROUNDS: usize = 2;
/// Tools that are called.
const MOST_TOOLS: usize = 2;
/// How long a response is waited for, of which the other client may have got it.
const PATIENCE: Duration = Duration::from_secs(2);
/// What the first client asks, as far as it is declared.
const LISTS: [(&str, &str); 3] =
    [("tools", methods::TOOLS_LIST), ("prompts", methods::PROMPTS_LIST), ("resources", methods::RESOURCES_LIST)];

/// A method with its params.
type Asked = (&'static str, Value);

/// Nothing, if a session of the server was not seen to last beside others, or it has no lists.
pub(super) async fn explore(check_options: &CheckOptions, era: EraChoice, talked: &Conversation) -> Vec<Conversation> {
    if has_session(talked) && !lasts_beside_others(talked) {
        return Vec::new();
    }
    let Ok(first) = Explorer::open_in(check_options, "first of two clients", era).await else { return Vec::new() };
    let Ok(second) = Explorer::open_in(check_options, "second of two clients", era).await else {
        first.end().await;
        return Vec::new();
    };
    let mut clients = [first, second];
    let list = LISTS.into_iter().find(|(capability, _)| clients[0].declares(capability)).map(|(_, method)| (method, json!({})));
    let other = if clients[0].is_modern() { methods::SERVER_DISCOVER } else { methods::PING };
    if let Some(list) = list {
        for round in 1..=ROUNDS {
            let id = format!("mcproof-same-{round}");
            if ask_both(&mut clients, &id, [&list, &(other, json!({}))], Duration::ZERO).await != [true, true] {
                break;
            }
        }
        for tool in tools(talked, &check_options.calls) {
            call(&mut clients, &tool, &list).await;
        }
    }
    let [first, second] = clients;
    vec![first.end().await, second.end().await]
}

/// Those whose results tell whose they are come first.
fn tools(talked: &Conversation, permission: &Permission) -> Vec<Callable> {
    let mut tools = Tools::in_takes(std::slice::from_ref(talked), permission).0;
    tools.sort_by_key(|tool| only_text(&tool.tool).is_none());
    tools.truncate(MOST_TOOLS);
    tools
}

/// Both clients call a tool; or one does, where its result does not tell whose it is, and the other asks for a list. The same requests with
/// ids of their own, before and after that, tell whether they are answered at all.
async fn call(clients: &mut [Explorer<'_>; 2], tool: &Callable, list: &Asked) {
    let call = |arguments: Value| (methods::TOOLS_CALL, json!({ "name": tool.name, "arguments": arguments }));
    let pair = match only_text(&tool.tool) {
        Some(argument) => ["one", "two"].map(|who| {
            let mut arguments = tool.arguments.clone();
            arguments[argument] = json!(format!("{AT_ONCE}{who}"));
            call(arguments)
        }),
        None => [call(tool.arguments.clone()), list.clone()],
    };
    let mut took = Duration::ZERO;
    for (explorer, asked) in clients.iter_mut().zip(&pair) {
        if explorer.is_modern() {
            // The session learns which arguments go into headers.
            calls::list(explorer).await;
        }
        let began = Instant::now();
        if !ask_alone(explorer, asked).await {
            return;
        }
        took = took.max(began.elapsed());
    }
    // One that works on one call after the other needs more time for two of them.
    if took > PATIENCE / 4 {
        return;
    }
    for round in 1..=CALL_ROUNDS {
        // The other request comes in the midst of the call.
        ask_both(clients, &format!("mcproof-same-{}-{round}", tool.name), [&pair[0], &pair[1]], took / 2).await;
    }
    for (explorer, asked) in clients.iter_mut().zip(&pair) {
        ask_alone(explorer, asked).await;
    }
}

fn has_session(talked: &Conversation) -> bool {
    let names_one = |name: &str| name.eq_ignore_ascii_case("mcp-session-id");
    talked.transcript.frames.iter().any(|frame| match &frame.body {
        FrameBody::HttpResponse { headers, .. } => headers.iter().any(|(name, _)| names_one(name)),
        _ => false,
    })
}

/// Whether a request was served in a session while there were others. Of a server with one session only, another rule tells.
fn lasts_beside_others(talked: &Conversation) -> bool {
    let Some(probed) = talked.probes.iter().find(|probed| probed.probe == BESIDE_OTHERS) else { return false };
    talked.transcript.frames.iter().filter(|frame| probed.contains(frame.id)).any(|frame| match &frame.body {
        FrameBody::HttpResponse { status, .. } => (200..300).contains(status),
        _ => false,
    })
}

/// Whether there was a response.
async fn ask_alone(explorer: &mut Explorer<'_>, (method, params): &Asked) -> bool {
    let params = params.as_object().cloned();
    let work = async |session: &Session, most: Duration| session.request(method, params, PATIENCE.min(most)).await.is_ok();
    explorer.together("id-of-its-own", work).await
}

/// Which of the two had a response. The second one asks after `later`.
async fn ask_both(clients: &mut [Explorer<'_>; 2], id: &str, asked: [&Asked; 2], later: Duration) -> [bool; 2] {
    let [first, second] = clients;
    let asking_later = async {
        sleep(later).await;
        ask(second, id, asked[1], asked[0]).await
    };
    let (one, two) = tokio::join!(ask(first, id, asked[0], asked[1]), asking_later);
    [one, two]
}

/// Whether there was a response. `other` is what the other client asks meanwhile.
async fn ask(explorer: &mut Explorer<'_>, id: &str, (method, params): &Asked, other: &Asked) -> bool {
    let Value::Object(message) = explorer.build_request(json!(id), method, params.clone()) else { return false };
    let other = json!({ "method": other.0, "params": other.1 }).to_string();
    let work = async |session: &Session, most: Duration| session.send_message(&message, PATIENCE.min(most)).await.is_ok();
    explorer.together_on(SAME_ID, Some(&other), work).await
}
