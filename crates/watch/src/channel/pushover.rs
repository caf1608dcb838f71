//! Pushover: <https://pushover.net/api>. What a server said is plain text there.

use super::Post;
use super::message::{Kind, Message, cut};
use crate::config::Secret;
use crate::incident::Severity;
use serde_json::json;

/// In characters.
const LONGEST_TITLE: usize = 250;
const LONGEST_MESSAGE: usize = 1_024;
const LONGEST_URL: usize = 512;

pub(super) fn pack(url: &str, token: &Secret, user: &Secret, message: &Message) -> Post {
    let priority = match (message.kind, message.severity) {
        (Kind::Acknowledge, _) => -1,
        (Kind::Resolve, _) | (_, Severity::Notify) => 0,
        // Past quiet hours.
        (_, Severity::Page | Severity::Security) => 1,
    };
    let text = match message.kind {
        Kind::Acknowledge => message.headline(),
        _ => message.details(),
    };
    let mut body = json!({
        "token": token.expose(),
        "user": user.expose(),
        "title": cut(&message.headline(), LONGEST_TITLE),
        "message": cut(&text, LONGEST_MESSAGE),
        "priority": priority,
        "timestamp": message.now.0.div_euclid(1_000),
    });
    if let Some(link) = message.link().filter(|link| link.len() <= LONGEST_URL) {
        body["url"] = link.into();
        body["url_title"] = "Incident".into();
    }
    Post { hidden: vec![token.clone(), user.clone()], ..Post::json(url, &body) }
}
