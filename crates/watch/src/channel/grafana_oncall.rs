//! A formatted webhook of Grafana IRM or OnCall: <https://grafana.com/docs/oncall/latest/configure/integrations/references/webhook/>. The
//! key is the incident, and a new one each time that it becomes more severe. Messages are shown as Markdown, in which what a server said
//! stands in a code block.

use super::Post;
use super::message::{Kind, Message, cut, fenced};
use crate::config::Secret;
use serde_json::json;

/// In characters; none is documented.
const LONGEST_TITLE: usize = 250;
const LONGEST_MESSAGE: usize = 10_000;

/// Nothing for an acknowledgement, of which there is none.
pub(super) fn pack(url: &Secret, message: &Message) -> Option<Post> {
    let state = match message.kind {
        Kind::Acknowledge => return None,
        Kind::Resolve => "ok",
        Kind::Trigger | Kind::Update | Kind::Reminder | Kind::Escalation => "alerting",
    };
    let mut event = json!({
        "alert_uid": message.alert_key(),
        "title": cut(&message.headline(), LONGEST_TITLE),
        "state": state,
        "message": fenced(&cut(&message.plain(), LONGEST_MESSAGE)),
        "severity": message.severity.word(),
    });
    if let Some(link) = message.link() {
        event["link_to_upstream_details"] = link.into();
    }
    Some(Post::json(url.expose(), &event))
}
