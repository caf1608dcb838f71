//! An incoming webhook of Webex: <https://apphub.webex.com/applications/incoming-webhooks-cisco-systems-38054-23307-75252>. What is sent
//! as `text` has neither Markdown nor mentions.

use super::message::{Kind, Message};
use super::{Post, fit};
use crate::config::Secret;
use serde_json::json;

/// In bytes; a message has 7439.
const LONGEST: usize = 7_000;

pub(super) fn pack(url: &Secret, message: &Message) -> Post {
    let text = match message.kind {
        Kind::Acknowledge => message.headline(),
        _ => format!("{}\n{}", message.headline(), message.plain()),
    };
    Post::json(url.expose(), &json!({ "text": fit(&text, LONGEST) }))
}
