//! Requests that go out at once: where the response may come before anybody waits for it, nothing is made ready for the wait.

use super::dispatcher::Waiting;
use super::wire::{Connection, TOO_LATE};
use super::{CallFailure, Deadline, Reply, Session, WaitOptions};
use mcproof_protocol::Era;
use mcproof_record::{Json, JsonObject};

/// A request that was sent.
pub struct Sent(SentState);

enum SentState {
    Waiting(Waiting),
    Over(Result<Reply<Json>, CallFailure>),
}

impl Session {
    /// Whether a request is one message and its response another, whatever they say, and goes out without waiting: so it is in memory, in the
    /// legacy era.
    pub fn sends_at_once(&self) -> bool {
        self.handshake.era == Era::Legacy && matches!(self.wire.connection, Connection::InMemory(_))
    }

    /// Sends a request without waiting for the response, where [`Session::sends_at_once`] says so. Of the deadline only counts here whether it
    /// has a maximum.
    pub fn send_at_once(&self, method: &str, params: Option<JsonObject>, deadline: Deadline) -> Sent {
        let begun = self.wire.begin(&self.dispatcher, self.outgoing(method, params), deadline);
        Sent(begun.map_or_else(|failure| SentState::Over(Err(failure)), SentState::Waiting))
    }

    /// Waits for the response; what is left of the deadline counts from when the request was sent.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub async fn wait_for(&self, sent: Sent, method: &str, terms: WaitOptions) -> Result<Reply<Json>, CallFailure> {
        match sent.0 {
            SentState::Waiting(waiting) => self.wire.wait(waiting, method, terms, self.handshake.era, TOO_LATE).await,
            SentState::Over(outcome) => outcome,
        }
    }
}

impl Sent {
    /// Whether the wait would be over at once.
    pub fn is_over(&mut self) -> bool {
        if let SentState::Waiting(waiting) = &mut self.0 {
            let Some(outcome) = waiting.reply_now() else { return false };
            self.0 = SentState::Over(outcome);
        }
        true
    }

    /// The response, if there is one; else what is to be waited for, which may have failed already.
    pub fn into_reply(self) -> Result<Reply<Json>, Self> {
        match self.0 {
            SentState::Over(Ok(reply)) => Ok(reply),
            other => Err(Self(other)),
        }
    }
}
