//! A connection as a session uses it: requests with deadlines, and notifications.

use super::dispatcher::{Dispatcher, Waiting};
use super::{CallFailure, Deadline, Headers, Reply, SESSION_HEADER, WaitOptions};
use crate::auth::{Attempts, Authorizer, Secret, wants_authorization};
use crate::jsonrpc::{self, RequestId};
use crate::transport::{
    Envelope, HttpConnection, HttpHead, LineChannel, Purpose, Repeat, Resume, SseConnection, StdioConnection, Unanswered,
};
use mcproof_protocol::{Era, methods};
use mcproof_record::{FrameId, Json, JsonObject};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The reason of a cancellation after a timeout.
pub(super) const TOO_LATE: &str = "no response in time";

/// The connection, shared with the task that answers the server's requests.
pub(super) struct Wire {
    pub(super) connection: Connection,
    /// Set where refused requests get a token and go out again.
    authorizer: Option<Arc<Authorizer>>,
    /// Legacy HTTP: what each message after the handshake carries.
    headers: Mutex<Headers>,
}

pub(super) enum Connection {
    Stdio(StdioConnection),
    Http(HttpConnection),
    Sse(SseConnection),
    InMemory(LineChannel),
}

/// A request on its way.
#[derive(Clone)]
pub(super) struct Outgoing<'a> {
    pub(super) method: &'a str,
    pub(super) params: Option<JsonObject>,
    pub(super) headers: Headers,
    pub(super) resume: Resume,
}

impl Wire {
    pub(super) fn new(connection: Connection, authorizer: Option<Arc<Authorizer>>) -> Self {
        Self { connection, authorizer, headers: Mutex::default() }
    }

    pub(super) fn headers(&self) -> Headers {
        self.headers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_headers(&self, headers: Headers) {
        *self.headers.lock().unwrap_or_else(PoisonError::into_inner) = headers;
    }

    /// Whether the server gave us a session id.
    pub(super) fn has_session(&self) -> bool {
        self.headers.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|(name, _)| name == SESSION_HEADER)
    }

    /// Sends a request and waits for its response. When the deadline passes, the request is canceled, for this `reason`. A
    /// request that is refused for want of authorization was not taken: with a token it goes out anew, with a deadline of its own.
    pub(super) async fn ask(
        &self,
        dispatcher: &Arc<Dispatcher>,
        outgoing: Outgoing<'_>,
        terms: WaitOptions,
        era: Era,
        reason: &str,
    ) -> Result<Reply<Json>, CallFailure> {
        let Some(mut permission) = self.permission(&outgoing) else {
            return self.ask_once(dispatcher, outgoing, terms, era, reason).await;
        };
        loop {
            // Boxed, so that a request does not carry the room that only logins need.
            Box::pin(permission.prepare()).await;
            let outcome = self.ask_once(dispatcher, outgoing.clone(), terms.clone(), era, reason).await;
            match refusal(&outcome) {
                Some(head) => Box::pin(permission.obtain(head)).await?,
                None => return outcome,
            }
        }
    }

    /// What a request needs where the session obtains tokens.
    pub(super) fn permission(&self, outgoing: &Outgoing<'_>) -> Option<Permission<'_>> {
        let authorizer = self.authorizer.as_deref()?;
        Some(Permission { authorizer, operation: operation(outgoing), token: None, attempts: Attempts::default() })
    }

    /// Sends a request; whoever holds what is given waits for its response. With a maximum, progress is requested.
    ///
    /// # Errors
    /// The connection has ended already.
    pub(super) fn begin(&self, dispatcher: &Arc<Dispatcher>, outgoing: Outgoing<'_>, deadline: Deadline) -> Result<Waiting, CallFailure> {
        let Outgoing { method, mut params, headers, resume } = outgoing;
        let mut waiting = dispatcher.expect_response()?;
        if deadline.maximum.is_some() {
            let token = request_progress(params.get_or_insert_default().get_mut(), &waiting.id);
            waiting.expect_progress_of(token);
        }
        let body = jsonrpc::request(&waiting.id, method, params.as_ref());
        let (purpose, repeat) = (Purpose::Request(waiting.id.clone()), Repeat::of_message(method));
        waiting.sent(self.connection.send(Envelope { body, purpose, headers, resume, repeat }));
        Ok(waiting)
    }

    async fn ask_once(
        &self,
        dispatcher: &Arc<Dispatcher>,
        outgoing: Outgoing<'_>,
        terms: WaitOptions,
        era: Era,
        reason: &str,
    ) -> Result<Reply<Json>, CallFailure> {
        let method = outgoing.method;
        let waiting = self.begin(dispatcher, outgoing, terms.deadline)?;
        self.wait(waiting, method, terms, era, reason).await
    }

    /// Waits for the response to a request that has begun.
    pub(super) async fn wait(
        &self,
        mut waiting: Waiting,
        method: &str,
        terms: WaitOptions,
        era: Era,
        reason: &str,
    ) -> Result<Reply<Json>, CallFailure> {
        let WaitOptions { deadline, cancellation } = terms;
        let cancelled = async {
            match cancellation {
                Some(cancellation) => cancellation.asked().await,
                None => std::future::pending().await,
            }
        };
        let answered = tokio::select! {
            biased;
            answered = waiting.answer(deadline) => answered,
            reason = cancelled => {
                self.cancel(&waiting.id, era, &reason);
                return Err(CallFailure::Cancelled { method: method.to_owned(), after: waiting.began.elapsed() });
            }
        };
        match answered {
            Some(answered) => answered,
            None => {
                let stage = match &self.connection {
                    Connection::Http(http) => http.stage(&waiting.id),
                    _ => None,
                };
                // `initialize` must not be canceled, and a probe is not worth it.
                if !matches!(method, methods::INITIALIZE | methods::SERVER_DISCOVER) {
                    self.cancel(&waiting.id, era, reason);
                }
                // It may have been given up sooner.
                let after = deadline.maximum.unwrap_or(deadline.idle).min(waiting.began.elapsed());
                Err(CallFailure::TimedOut { method: method.to_owned(), after, stage })
            }
        }
    }

    /// Sends a notification and waits, at most that long, until an HTTP server has taken it: what is sent next must not
    /// overtake it on another connection.
    pub(super) async fn notify(&self, method: &str, deadline: Duration) {
        self.notify_with(method, None, self.headers(), deadline).await;
    }

    /// Like [`Wire::notify`], with what else it carries.
    pub(super) async fn notify_with(&self, method: &str, params: Option<&Map<String, Value>>, headers: Headers, deadline: Duration) {
        let mut attempts = Attempts::default();
        loop {
            let token = self.authorizer.as_ref().and_then(|authorizer| authorizer.bearer().token());
            let (done, taken) = oneshot::channel();
            self.send_notification(method, params, headers.clone(), Purpose::Notification(done));
            let Ok(Ok(Unanswered::Response { head, .. })) = timeout(deadline, taken).await else { return };
            let Some(authorizer) = self.authorizer.as_ref().filter(|_| wants_authorization(&head)) else { return };
            // If there is no token to be had, the next request will say why.
            if authorizer.answer(method, &head, token.as_ref(), &mut attempts).await.is_err() {
                return;
            }
        }
    }

    /// 2025-11-25, basic/utilities/cancellation; 2026-07-28, basic/patterns/cancellation: over HTTP the modern era closes
    /// the response stream, everywhere else a notification says it.
    pub(super) fn cancel(&self, id: &RequestId, era: Era, reason: &str) {
        match (&self.connection, era) {
            (Connection::Http(http), Era::Modern) => http.abandon(id),
            _ => {
                let params = json!({ "requestId": id, "reason": reason });
                self.send_notification(methods::notifications::CANCELLED, params.as_object(), self.headers(), Purpose::Response);
            }
        }
    }

    fn send_notification(&self, method: &str, params: Option<&Map<String, Value>>, headers: Headers, purpose: Purpose) {
        let body = jsonrpc::notification(method, params);
        self.connection.send(Envelope { body, purpose, headers, resume: Resume::Never, repeat: Repeat::of_message(method) });
    }
}

/// The tokens of one request, from its first attempt to the one that is let in.
pub(super) struct Permission<'a> {
    authorizer: &'a Authorizer,
    operation: String,
    /// What the last attempt went out with.
    token: Option<Secret>,
    attempts: Attempts,
}

impl Permission<'_> {
    /// Before each attempt.
    pub(super) async fn prepare(&mut self) {
        self.authorizer.freshen().await;
        self.token = self.authorizer.bearer().token();
    }

    /// After an attempt that was refused.
    ///
    /// # Errors
    /// There is no token to be had, or none that helps.
    pub(super) async fn obtain(&mut self, head: Arc<HttpHead>) -> Result<(), CallFailure> {
        let answered = self.authorizer.answer(&self.operation, &head, self.token.as_ref(), &mut self.attempts).await;
        answered.map_err(|failure| CallFailure::Unauthorized { head, failure })
    }
}

/// The response by which a server requests authorization; some put a JSON-RPC error into it.
pub(super) fn refusal<A>(outcome: &Result<Reply<A>, CallFailure>) -> Option<Arc<HttpHead>> {
    let head = match outcome {
        Ok(reply) => reply.http.as_ref(),
        Err(CallFailure::Unanswered(Unanswered::Response { head, .. })) => Some(head),
        Err(_) => None,
    };
    head.filter(|head| wants_authorization(head)).cloned()
}

/// What a request is about: scopes may differ from tool to tool.
fn operation(outgoing: &Outgoing<'_>) -> String {
    let params = outgoing.params.as_ref().map(Json::read);
    let about = params.as_ref().and_then(|params| params.get("name").or_else(|| params.get("uri"))?.as_str());
    about.map_or_else(|| outgoing.method.to_owned(), |about| format!("{} {about}", outgoing.method))
}

/// The id serves as the token, unless there is one: both are unique among the requests in flight. Returns the token.
fn request_progress(params: &mut Map<String, Value>, id: &RequestId) -> Option<Value> {
    let meta = params.entry("_meta").or_insert_with(|| json!({})).as_object_mut()?;
    Some(meta.entry("progressToken").or_insert_with(|| json!(id)).clone())
}

impl Connection {
    pub(super) fn send(&self, envelope: Envelope) -> FrameId {
        match self {
            Self::Stdio(stdio) => stdio.send(envelope),
            Self::Http(http) => http.send(envelope),
            Self::Sse(sse) => sse.send(envelope),
            Self::InMemory(channel) => channel.send(envelope),
        }
    }
}
