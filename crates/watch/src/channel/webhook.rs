//! Any service that takes JSON. The body is versioned; with a secret it is signed together with the time, so that it can be
//! neither forged nor sent again later.

use super::Post;
use super::message::{Message, short};
use crate::config::Secret;
use crate::moment::Moment;
use ring::hmac;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// `t=SECONDS,v1=HEX`: HMAC-SHA-256 over the seconds, a dot and the body.
pub const SIGNATURE_HEADER: &str = "x-mcproof-signature";
const VERSION: u32 = 1;
const LONGEST_TEXT: usize = 4000;
const LONGEST_NAME: usize = 120;
/// Of the targets of a storm.
const MOST_MEMBERS: usize = 1000;

/// The value of the header that signs a body.
pub fn signature(secret: &Secret, now: Moment, body: &[u8]) -> String {
    let seconds = now.0.div_euclid(1000);
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
    let mut context = hmac::Context::with_key(&key);
    context.update(format!("{seconds}.").as_bytes());
    context.update(body);
    let mut text = format!("t={seconds},v1=");
    for byte in context.sign().as_ref() {
        write!(text, "{byte:02x}").expect("a String takes all text");
    }
    text
}

pub(super) fn pack(url: &Secret, secret: Option<&Secret>, message: &Message) -> Post {
    let post = Post::json(url.expose(), &body(message)).header("idempotency-key", &message.id);
    match secret {
        Some(secret) => {
            let signed = signature(secret, message.now, &post.body);
            post.header(SIGNATURE_HEADER, &signed)
        }
        None => post,
    }
}

fn body(message: &Message) -> Value {
    let text = |text: &str| short(text, LONGEST_TEXT);
    let optional = |given: &Option<String>| given.as_deref().map(text);
    json!({
        "version": VERSION,
        "id": message.id,
        "kind": message.kind.word(),
        "incident": message.incident,
        "target": text(&message.subject),
        "class": message.class.word(),
        "severity": message.severity.word(),
        "title": text(&message.title()),
        "message": text(&message.detail.message),
        "layer": optional(&message.detail.layer),
        "reason": optional(&message.detail.reason),
        "hint": optional(&message.detail.hint),
        "targets": message.detail.members.iter().take(MOST_MEMBERS).map(|member| short(member, LONGEST_NAME)).collect::<Vec<_>>(),
        "since": message.since.to_string(),
        "resolved": message.resolved.map(|resolved| resolved.to_string()),
        "lasted_seconds": message.resolved.map(|resolved| resolved.since(message.since).as_secs()),
        "acknowledged_by": optional(&message.acknowledged_by),
        "url": message.link(),
        "transcript_url": message.transcript(),
        "replay": message.evidence.as_ref().map(|_| message.replay()),
        "sent": message.now.to_string(),
    })
}
