//! A bot of Telegram, by `sendMessage`: <https://core.telegram.org/bots/api#sendmessage>. What a server said stands in `<code>`, where
//! Telegram looks for no mentions and no links.

use super::Post;
use super::message::{Kind, Message, cut};
use crate::config::Secret;
use serde_json::json;

/// In characters, each of which may count as two: a message has 4096.
const LONGEST_HEADLINE: usize = 250;
const LONGEST_TEXT: usize = 1_500;

pub(super) fn pack(url: &str, token: &Secret, chat: &str, message: &Message) -> Post {
    let code = |text: &str, most: usize| format!("<code>{}</code>", escaped(&cut(text, most)));
    let mut parts = vec![code(&message.headline(), LONGEST_HEADLINE)];
    if message.kind != Kind::Acknowledge {
        parts.push(format!("<pre>{}</pre>", escaped(&cut(&message.details(), LONGEST_TEXT))));
    }
    let links = [("incident", message.link()), ("transcript", message.transcript())];
    let links: Vec<String> =
        links.into_iter().filter_map(|(text, link)| Some(format!("<a href=\"{}\">{text}</a>", escaped(&link?)))).collect();
    parts.extend((!links.is_empty()).then(|| links.join(" · ")));
    let body = json!({
        "chat_id": chat,
        "text": parts.join("\n"),
        "parse_mode": "HTML",
        "link_preview_options": { "is_disabled": true },
        "disable_notification": matches!(message.kind, Kind::Acknowledge),
    });
    let url = format!("{}/bot{}/sendMessage", url.trim_end_matches('/'), token.expose());
    Post { hidden: vec![token.clone()], ..Post::json(&url, &body) }
}

/// The four characters that Telegram names.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
