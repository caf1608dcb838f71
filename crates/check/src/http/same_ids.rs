//! Two clients of a server without sessions, whose requests have the same id, as those of any two clients may: only the HTTP request tells
//! them apart. Each is a conversation of its own.

use super::super::CheckOptions;
use super::super::explorer::Explorer;
use mcproof_client::Session;
use mcproof_protocol::{EraChoice, methods};
use mcproof_record::{Conversation, FrameBody};
use serde_json::{Value, json};
use std::time::Duration;

/// Requests that meet in the server only by chance meet in one of so many rounds.
const ROUNDS: usize = 4;
/// How long a response is waited for, of which the other client may have got it.
const PATIENCE: Duration = Duration::from_secs(2);
/// What the first client asks, as far as it is declared.
const LISTS: [(&str, &str); 3] =
    [("tools", methods::TOOLS_LIST), ("prompts", methods::PROMPTS_LIST), ("resources", methods::RESOURCES_LIST)];

/// Nothing, if the server has sessions, by which it tells clients apart, or no lists.
pub(super) async fn explore(check_options: &CheckOptions, era: EraChoice, talked: &Conversation) -> Vec<Conversation> {
    if has_session(talked) {
        return Vec::new();
    }
    let Ok(mut first) = Explorer::open_in(check_options, "first of two clients", era).await else { return Vec::new() };
    let Ok(mut second) = Explorer::open_in(check_options, "second of two clients", era).await else {
        first.end().await;
        return Vec::new();
    };
    let list = LISTS.into_iter().find(|(capability, _)| first.declares(capability)).map(|(_, method)| method);
    let other = if first.is_modern() { methods::SERVER_DISCOVER } else { methods::PING };
    for round in 1..=ROUNDS {
        let Some(list) = list else { break };
        let id = format!("mcproof-same-{round}");
        let both = tokio::join!(ask(&mut first, &id, list, other), ask(&mut second, &id, other, list));
        if both != (true, true) {
            break;
        }
    }
    vec![first.end().await, second.end().await]
}

fn has_session(talked: &Conversation) -> bool {
    let names_one = |name: &str| name.eq_ignore_ascii_case("mcp-session-id");
    talked.transcript.frames.iter().any(|frame| match &frame.body {
        FrameBody::HttpResponse { headers, .. } => headers.iter().any(|(name, _)| names_one(name)),
        _ => false,
    })
}

/// Whether there was a response. `other` is what the other client asks meanwhile.
async fn ask(explorer: &mut Explorer<'_>, id: &str, method: &str, other: &str) -> bool {
    let Value::Object(message) = explorer.build_request(json!(id), method, json!({})) else { return false };
    let work = async |session: &Session, most: Duration| session.send_message(&message, PATIENCE.min(most)).await.is_ok();
    explorer.together_on("same-id", Some(other), work).await
}
