//! A room of Matrix: <https://spec.matrix.org/v1.11/client-server-api/#put_matrixclientv3roomsroomidsendeventtypetxnid>. The message is
//! the transaction, so that what is sent again comes once. What a server said is plain text, and mentions nobody.

use super::message::{Kind, Message};
use super::{Post, below, fit};
use crate::config::Secret;
use serde_json::json;

/// In bytes: an event has 65,536, with all that is around it and with control characters escaped.
const LONGEST: usize = 8_000;

pub(super) fn pack(url: &str, token: &Secret, room: &str, message: &Message) -> Result<Post, String> {
    let url = below(url, &["_matrix", "client", "v3", "rooms", room, "send", "m.room.message", &message.id])?;
    let text = match message.kind {
        Kind::Acknowledge => message.headline(),
        _ => format!("{}\n{}", message.headline(), message.plain()),
    };
    let body = json!({ "msgtype": "m.text", "body": fit(&text, LONGEST), "m.mentions": {} });
    let post = Post { method: "PUT", ..Post::json(url.as_str(), &body) };
    Ok(post.header("authorization", &format!("Bearer {}", token.expose())))
}
