//! A connection as a session uses it: requests with deadlines, notifications, answers to the server.

use super::dispatcher::{Dispatcher, ServerRequest};
use super::{CallFailure, Deadline, Headers, Reply, SESSION_HEADER};
use crate::answers::Answers;
use crate::auth::{Attempts, Authorizer, wants_authorization};
use crate::jsonrpc::{self, RequestId};
use crate::revision::Era;
use crate::transport::{Envelope, HttpConnection, HttpHead, LineChannel, Purpose, Resume, SseConnection, StdioConnection, Unanswered};
use mcproof_record::FrameId;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

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
    pub(super) params: Option<Map<String, Value>>,
    pub(super) headers: Headers,
    pub(super) resume: Resume,
}

/// The task that answers the server's requests. Ends with its session.
pub(super) struct Answering(JoinHandle<()>);

impl Answering {
    pub(super) fn start(queue: mpsc::UnboundedReceiver<ServerRequest>, wire: &Arc<Wire>, answers: Answers) -> Self {
        Self(tokio::spawn(answer_requests(queue, Arc::downgrade(wire), answers)))
    }

    /// Ends the task and waits until it has let go of the connection.
    pub(super) async fn end(mut self) {
        self.0.abort();
        let _ = (&mut self.0).await;
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.abort();
    }
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
        self.headers().iter().any(|(name, _)| name == SESSION_HEADER)
    }

    /// Sends a request and waits for its answer. When the deadline passes, the request is cancelled. A request that is
    /// refused for want of authorization was not taken: with a token it goes out anew, with a deadline of its own.
    pub(super) async fn ask(
        &self,
        dispatcher: &Dispatcher,
        outgoing: Outgoing<'_>,
        deadline: Deadline,
        era: Era,
    ) -> Result<Reply, CallFailure> {
        let Some(authorizer) = &self.authorizer else { return self.ask_once(dispatcher, outgoing, deadline, era).await };
        let operation = operation(&outgoing);
        let mut attempts = Attempts::default();
        loop {
            authorizer.freshen().await;
            let token = authorizer.bearer().token();
            let outcome = self.ask_once(dispatcher, outgoing.clone(), deadline, era).await;
            let Some(head) = refusal(&outcome) else { return outcome };
            let answered = authorizer.answer(&operation, &head, token.as_ref(), &mut attempts).await;
            answered.map_err(|failure| CallFailure::Unauthorized { head, failure })?;
        }
    }

    async fn ask_once(&self, dispatcher: &Dispatcher, outgoing: Outgoing<'_>, deadline: Deadline, era: Era) -> Result<Reply, CallFailure> {
        let Outgoing { method, mut params, headers, resume } = outgoing;
        let mut waiting = dispatcher.expect_answer()?;
        if deadline.maximum.is_some() {
            ask_for_progress(params.get_or_insert_default(), &waiting.id);
        }
        let body = jsonrpc::request(&waiting.id, method, params.as_ref());
        waiting.sent(self.connection.send(Envelope { body, purpose: Purpose::Request(waiting.id.clone()), headers, resume }));
        match waiting.answer(deadline).await {
            Some(answered) => answered,
            None => {
                let stage = match &self.connection {
                    Connection::Http(http) => http.stage(&waiting.id),
                    _ => None,
                };
                // `initialize` must not be cancelled, and a probe is not worth it.
                if !matches!(method, "initialize" | "server/discover") {
                    self.cancel(&waiting.id, era);
                }
                Err(CallFailure::TimedOut { method: method.to_owned(), after: deadline.maximum.unwrap_or(deadline.idle), stage })
            }
        }
    }

    /// Sends a notification and waits, at most that long, until an HTTP server has taken it: what is sent next must not
    /// overtake it on another connection.
    pub(super) async fn notify(&self, method: &str, deadline: Duration) {
        let mut attempts = Attempts::default();
        loop {
            let token = self.authorizer.as_ref().and_then(|authorizer| authorizer.bearer().token());
            let (done, taken) = oneshot::channel();
            self.send_notification(method, None, Purpose::Notification(done));
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
    fn cancel(&self, id: &RequestId, era: Era) {
        match (&self.connection, era) {
            (Connection::Http(http), Era::Modern) => http.abandon(id),
            _ => {
                let params = json!({ "requestId": id, "reason": "no answer in time" });
                self.send_notification("notifications/cancelled", params.as_object(), Purpose::Response);
            }
        }
    }

    fn send_notification(&self, method: &str, params: Option<&Map<String, Value>>, purpose: Purpose) {
        let body = jsonrpc::notification(method, params);
        self.connection.send(Envelope { body, purpose, headers: self.headers(), resume: Resume::Never });
    }
}

/// The response by which a server asks for authorization; some put a JSON-RPC error into it.
pub(super) fn refusal(outcome: &Result<Reply, CallFailure>) -> Option<Arc<HttpHead>> {
    let head = match outcome {
        Ok(reply) => reply.http.as_ref(),
        Err(CallFailure::Unanswered(Unanswered::Response { head, .. })) => Some(head),
        Err(_) => None,
    };
    head.filter(|head| wants_authorization(head)).cloned()
}

/// What a request is about: scopes may differ from tool to tool.
fn operation(outgoing: &Outgoing<'_>) -> String {
    let about = outgoing.params.as_ref().and_then(|params| params.get("name").or_else(|| params.get("uri"))?.as_str());
    about.map_or_else(|| outgoing.method.to_owned(), |about| format!("{} {about}", outgoing.method))
}

/// The id serves as the token: both are unique among the requests in flight.
fn ask_for_progress(params: &mut Map<String, Value>, id: &RequestId) {
    if let Some(meta) = params.entry("_meta").or_insert_with(|| json!({})).as_object_mut() {
        meta.entry("progressToken").or_insert_with(|| json!(id));
    }
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

/// Answers what the server asks, as the policies say.
async fn answer_requests(mut queue: mpsc::UnboundedReceiver<ServerRequest>, wire: Weak<Wire>, answers: Answers) {
    while let Some(ServerRequest { id, method, params }) = queue.recv().await {
        let Some(wire) = wire.upgrade() else { return };
        let body = jsonrpc::response(&id, answers.answer(&method, &params));
        wire.connection.send(Envelope { body, purpose: Purpose::Response, headers: wire.headers(), resume: Resume::Never });
    }
}
