//! Mail. All that belongs to an incident is one conversation in a mailbox, by `Message-ID` and `References`.

use super::message::{Kind, Message, cut};
use crate::config::Secret;
use lettre::Message as Letter;
use lettre::address::{Address, Envelope};
use lettre::message::Mailbox;
use lettre::message::header::{ContentType, InReplyTo, References};
use std::time::{Duration, UNIX_EPOCH};

/// In characters.
const LONGEST_SUBJECT: usize = 200;

/// A mail, and the server that takes it.
#[derive(Clone, Debug)]
pub struct Mail {
    /// `smtp://` or `smtps://`, with user and password.
    pub relay: Secret,
    pub envelope: Envelope,
    /// With its header, as it goes over the wire.
    pub letter: Vec<u8>,
}

impl Mail {
    /// The same letter for those of its recipients who are among these addresses. Nothing if none is.
    pub(crate) fn only(self, addresses: &[String]) -> Option<Self> {
        let to: Vec<Address> = self.envelope.to().iter().filter(|to| addresses.contains(&to.to_string())).cloned().collect();
        let envelope = Envelope::new(self.envelope.from().cloned(), to).ok()?;
        Some(Self { envelope, ..self })
    }
}

pub(super) fn pack(relay: &Secret, from: &str, to: &[String], message: &Message) -> Result<Mail, String> {
    let unusable = |what: &str, error: &dyn std::fmt::Display| format!("cannot write the mail: {what}: {error}");
    let from: Mailbox = from.parse().map_err(|error| unusable("its sender", &error))?;
    let domain = from.email.domain().to_owned();
    let thread = format!("<{}@{domain}>", message.incident);
    let date = UNIX_EPOCH + Duration::from_millis(u64::try_from(message.now.0).unwrap_or(0));
    let mut letter = Letter::builder().from(from).date(date).subject(cut(&message.headline(), LONGEST_SUBJECT));
    for address in to {
        letter = letter.to(address.parse().map_err(|error| unusable("who gets it", &error))?);
    }
    letter = match message.kind {
        Kind::Trigger => letter.message_id(Some(thread)),
        Kind::Update | Kind::Reminder | Kind::Escalation | Kind::Acknowledge | Kind::Resolve => letter
            .message_id(Some(format!("<{}@{domain}>", message.id)))
            .header(InReplyTo::from(thread.clone()))
            .header(References::from(thread)),
    };
    let letter = letter.header(ContentType::TEXT_PLAIN).body(message.plain()).map_err(|error| unusable("its text", &error))?;
    Ok(Mail { relay: relay.clone(), envelope: letter.envelope().clone(), letter: letter.formatted() })
}
