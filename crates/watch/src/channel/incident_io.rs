//! Alert events of incident.io, from an HTTP source: <https://docs.incident.io/api-reference/alert-events-v2/createhttp>. The key is
//! the incident, and a new one each time that it becomes more severe. Descriptions are Markdown, in which what a server said stands in a
//! code block.

use super::message::{Kind, Message, cut, fenced};
use super::{Post, Success};
use crate::config::Secret;
use serde_json::{Map, Value, json};

/// In characters; none is documented.
const LONGEST_TITLE: usize = 250;
const LONGEST_DESCRIPTION: usize = 10_000;

/// Nothing for an acknowledgement, of which there is none.
pub(super) fn pack(url: &str, token: &Secret, message: &Message) -> Option<Post> {
    let status = match message.kind {
        Kind::Acknowledge => return None,
        Kind::Resolve => "resolved",
        Kind::Trigger | Kind::Update | Kind::Reminder | Kind::Escalation => "firing",
    };
    let mut metadata: Map<String, Value> =
        message.facts().into_iter().map(|fact| (fact.label.replace(' ', "_"), fact.text.into())).collect();
    metadata.insert("severity".to_owned(), message.severity.word().into());
    let mut event = json!({
        "title": cut(&message.headline(), LONGEST_TITLE),
        "status": status,
        "deduplication_key": message.alert_key(),
        "description": fenced(&cut(&message.plain(), LONGEST_DESCRIPTION)),
        "metadata": metadata,
    });
    if let Some(link) = message.link() {
        event["source_url"] = link.into();
    }
    let post = Post { hidden: vec![token.clone()], success: Success::AcceptedOrJson, ..Post::json(url, &event) };
    Some(post.header("authorization", &format!("Bearer {}", token.expose())))
}
