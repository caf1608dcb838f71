//! ntfy, by its JSON: <https://docs.ntfy.sh/publish/#publish-as-json>. What a server said is plain text there.

use super::message::{Kind, Message, cut};
use super::{Post, fit};
use crate::config::Secret;
use crate::incident::Severity;
use serde_json::{Value, json};

/// In characters.
const LONGEST_TITLE: usize = 200;
/// In bytes: longer messages become files.
const LONGEST_MESSAGE: usize = 4_000;

pub(super) fn pack(url: &str, topic: &str, token: Option<&Secret>, message: &Message) -> Post {
    let (priority, tag) = match (message.kind, message.severity) {
        (Kind::Resolve, _) => (3, "white_check_mark"),
        (Kind::Acknowledge, _) => (2, "eyes"),
        (_, Severity::Notify) => (3, "warning"),
        (_, Severity::Page | Severity::Security) => (5, "rotating_light"),
    };
    let text = if message.kind == Kind::Acknowledge { message.headline() } else { message.plain() };
    let mut body = json!({
        "topic": topic,
        "title": cut(&message.headline(), LONGEST_TITLE),
        "message": fit(&text, LONGEST_MESSAGE),
        "priority": priority,
        "tags": [tag],
    });
    let links = [("Incident", message.link()), ("Transcript", message.transcript())];
    let actions: Vec<Value> =
        links.into_iter().filter_map(|(label, link)| Some(json!({ "action": "view", "label": label, "url": link? }))).collect();
    if let Some(link) = message.link() {
        body["click"] = link.into();
    }
    if !actions.is_empty() {
        body["actions"] = actions.into();
    }
    let post = Post { hidden: token.cloned().into_iter().collect(), ..Post::json(url, &body) };
    match token {
        Some(token) => post.header("authorization", &format!("Bearer {}", token.expose())),
        None => post,
    }
}
