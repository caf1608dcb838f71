//! An incoming webhook of Slack. What a server said stands in plain text, in which Slack sees neither mentions nor links;
//! only our own links are markup.

use super::Post;
use super::message::{Kind, Message, cut};
use crate::config::Secret;
use serde_json::{Value, json};

/// In characters.
const LONGEST_HEADER: usize = 150;
const LONGEST_FIELD: usize = 2000;
const LONGEST_SECTION: usize = 3000;
/// Fields in one section.
const MOST_FIELDS: usize = 10;

/// What the button is called in what Slack tells us of it. Its value is the incident, and, behind a blank, when that was as the message
/// says, in milliseconds.
pub const ACKNOWLEDGE: &str = "acknowledge";

/// Whether a message has a button by which people acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Button {
    Shown,
    /// Nobody would hear of it.
    Left,
}

pub(super) fn pack(url: &Secret, message: &Message, button: Button) -> Post {
    let headline = message.headline();
    let plain = |text: &str, most: usize| json!({ "type": "plain_text", "text": cut(text, most), "emoji": false });
    let mut blocks = vec![json!({ "type": "header", "text": plain(&headline, LONGEST_HEADER) })];
    if message.kind != Kind::Acknowledge {
        let text = message.text();
        if !text.is_empty() {
            blocks.push(json!({ "type": "section", "text": plain(&text, LONGEST_SECTION) }));
        }
        let fields: Vec<Value> =
            message.facts().iter().take(MOST_FIELDS).map(|fact| plain(&format!("{}: {}", fact.label, fact.text), LONGEST_FIELD)).collect();
        // An empty section is refused.
        if !fields.is_empty() {
            blocks.push(json!({ "type": "section", "fields": fields }));
        }
    }
    let links = [("incident", message.link()), ("transcript", message.transcript())];
    let links: Vec<String> = links.into_iter().filter_map(|(text, link)| Some(format!("<{}|{text}>", link?))).collect();
    if !links.is_empty() {
        blocks.push(json!({ "type": "context", "elements": [{ "type": "mrkdwn", "text": links.join(" · ") }] }));
    }
    let is_open = !matches!(message.kind, Kind::Acknowledge | Kind::Resolve) && message.acknowledged_by.is_none();
    if button == Button::Shown && is_open {
        let value = format!("{} {}", message.incident, message.known_at.0);
        let button = json!({
            "type": "button", "action_id": ACKNOWLEDGE, "value": value, "text": plain("Acknowledge", LONGEST_HEADER),
        });
        blocks.push(json!({ "type": "actions", "elements": [button] }));
    }
    // What a notification on a phone shows.
    let fallback = cut(&entities(&headline), LONGEST_SECTION);
    Post::json(url.expose(), &json!({ "text": fallback, "mrkdwn": false, "unfurl_links": false, "blocks": blocks }))
}

/// The three characters that mean something in a text of Slack: no `<!channel>`, no `<@U…>`, no link.
fn entities(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
