//! What subscribers of the status page are sent: mails with a link to unsubscribe (RFC 2369, RFC 8058), and signed webhooks.

use super::mail::Mail;
use super::webhook::{SIGNATURE_HEADER, signature};
use super::{Payload, Post, message::cut};
use crate::config::{Secret, SubscriptionMail};
use crate::moment::Moment;
use crate::news::NewsItem;
use lettre::Message as Letter;
use lettre::message::Mailbox;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::time::{Duration, UNIX_EPOCH};

const VERSION: u32 = 1;
const LONGEST_SUBJECT: usize = 200;

/// A mail to one subscriber.
pub(crate) struct SubscriberMail<'a> {
    pub(crate) id: &'a str,
    pub(crate) to: &'a str,
    pub(crate) subject: &'a str,
    pub(crate) text: &'a str,
    /// Where the mail itself offers to unsubscribe.
    pub(crate) unsubscribe: Option<&'a str>,
}

/// # Errors
/// Says why no mail can be written for this sender and this address.
pub(crate) fn mail(sender: &SubscriptionMail, mail: &SubscriberMail<'_>, now: Moment) -> Result<Payload, String> {
    let unusable = |what: &str, error: &dyn std::fmt::Display| format!("cannot write the mail: {what}: {error}");
    let from: Mailbox = sender.from.parse().map_err(|error| unusable("its sender", &error))?;
    let id = format!("<{}@{}>", mail.id, from.email.domain());
    let date = UNIX_EPOCH + Duration::from_millis(u64::try_from(now.0).unwrap_or(0));
    let raw = |name: &'static str, value: String| HeaderValue::new(HeaderName::new_from_ascii_str(name), value);
    let mut letter = Letter::builder()
        .from(from)
        .to(mail.to.parse().map_err(|error| unusable("who gets it", &error))?)
        .date(date)
        .message_id(Some(id))
        .subject(cut(mail.subject, LONGEST_SUBJECT))
        // So that no program responds to it (RFC 3834).
        .raw_header(raw("Auto-Submitted", "auto-generated".into()));
    if let Some(link) = mail.unsubscribe {
        letter = letter.raw_header(raw("List-Unsubscribe", format!("<{link}>")));
        letter = letter.raw_header(raw("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".into()));
    }
    let letter = letter.header(ContentType::TEXT_PLAIN).body(mail.text.to_owned()).map_err(|error| unusable("its text", &error))?;
    Ok(Payload::Mail(Box::new(Mail { relay: sender.relay.clone(), envelope: letter.envelope().clone(), letter: letter.formatted() })))
}

/// What a webhook has to return, to show that whoever reads it wants it.
pub(crate) fn challenge(url: &str, secret: &Secret, id: &str, challenge: &str, now: Moment) -> Payload {
    post(url, secret, id, &json!({ "version": VERSION, "id": id, "kind": "challenge", "challenge": challenge }), now)
}

pub(crate) fn webhook(url: &str, secret: &Secret, id: &str, item: &NewsItem, links: &Links<'_>, now: Moment) -> Payload {
    let body = json!({
        "version": VERSION,
        "id": id,
        "kind": item.kind,
        "title": item.title,
        "text": item.text,
        "targets": item.targets,
        "at": item.at.to_string(),
        "status_url": links.status,
        "unsubscribe_url": links.unsubscribe,
    });
    post(url, secret, id, &body, now)
}

/// What a message leads to.
pub(crate) struct Links<'a> {
    pub(crate) status: &'a str,
    pub(crate) unsubscribe: &'a str,
}

fn post(url: &str, secret: &Secret, id: &str, body: &Value, now: Moment) -> Payload {
    let post = Post::json(url, body).header("idempotency-key", id);
    let signed = signature(secret, now, &post.body);
    Payload::Post(post.header(SIGNATURE_HEADER, &signed))
}
