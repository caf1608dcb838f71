//! Whole messages past the streams of a session in memory, at once: no task is woken for them. The streams carry the rest, and
//! tell the end. Knows no message.

use super::Inbox;
use crate::Tap;
use mcproof_record::{Direction, FrameBody};
use std::sync::{Arc, OnceLock};

/// Takes what our client writes to the server, in order. Calls are short and never wait.
pub trait Carrier: Send + Sync + 'static {
    /// A message, without a line feed.
    fn carry(&self, message: &[u8]);

    /// Bytes as a test sends them, whatever they are.
    fn carry_bytes(&self, bytes: &[u8]);
}

/// The way of messages between a session in memory and whoever is its transport.
pub struct DirectChannel {
    carrier: Box<dyn Carrier>,
    session: OnceLock<Reached>,
}

/// Where in a session messages arrive.
struct Reached {
    inbox: Arc<dyn Inbox>,
    tap: Tap,
    /// Bytes of a message.
    limit: usize,
}

impl DirectChannel {
    pub fn new(carrier: impl Carrier) -> Arc<Self> {
        Arc::new(Self { carrier: Box::new(carrier), session: OnceLock::new() })
    }

    /// Delivers a message of the server, unless it has to take the stream: the session is not there yet, or it is longer than
    /// a line may be. No bytes may be under way on the stream, which it would overtake.
    pub fn deliver(&self, message: &[u8]) -> bool {
        let Some(Reached { inbox, tap, .. }) = self.session.get().filter(|reached| message.len() <= reached.limit) else { return false };
        let frame = tap.record(Direction::FromServer, FrameBody::Line { bytes: message.into(), unterminated: false });
        inbox.message(message, frame, None, None);
        true
    }

    pub(crate) fn reach(&self, inbox: Arc<dyn Inbox>, tap: Tap, limit: usize) {
        // It leads to one session only.
        let _ = self.session.set(Reached { inbox, tap, limit });
    }

    pub(crate) fn carrier(&self) -> &dyn Carrier {
        &*self.carrier
    }
}
