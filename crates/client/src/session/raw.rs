//! What a test sends on purpose and no client would: messages as they stand, bytes, HTTP requests beside the protocol, the
//! end of stdin, signals. Nothing of it is completed or corrected.

use super::modern::header_value;
use super::wire::Connection;
use super::{CallFailure, ConnectOptions, Headers, Reply, Session, VERSION_HEADER};
use crate::Tap;
use crate::jsonrpc::RequestId;
use crate::transport::{
    Beside, Broken, Endpoint, Envelope, Exchanger, Exit, HeaderCase, Process, ProcessSignal, Purpose, Repeat, Resume, Reuse, Unanswered,
    Way, exited,
};
use mcproof_protocol::{Era, methods};
use serde_json::{Map, Value};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::timeout;
use url::Url;

/// Whether a response is expected of what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// A response that comes all the same is of no consequence.
    Nothing,
    Answer,
}

/// An HTTP request to the origin of the endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawHttpRequest {
    pub method: String,
    /// With its query; the endpoint's own if there is none.
    pub path: Option<String>,
    /// They win over those of the endpoint.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Whether the headers of the session go along.
    pub in_session: bool,
    /// Whether the headers of the endpoint and the token stay behind.
    pub is_anonymous: bool,
    pub reads: Reads,
    pub sends: Sends,
}

/// How the body goes out over HTTP/1.1. In any form but the usual one it gets a connection of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sends {
    /// With its length.
    #[default]
    Whole,
    /// In the chunked transfer coding, as one chunk, which ends a moment later. HTTP/2 has no such coding (RFC 9113, 8.2.2): there it goes
    /// out as usual.
    Chunked,
    /// With its length, in two writes, the second of which begins with this byte, a moment later.
    InTwo { at: usize },
}

/// How much of an event stream is read that answers a question. Other bodies are read to their end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
    #[default]
    FirstEvent,
    /// Nothing: it is closed once its head is there.
    Head,
    /// All, until it ends.
    All,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawHttpResponse {
    pub head: std::sync::Arc<crate::transport::HttpHead>,
    /// Of an event stream the data of its first event, if that was read.
    pub body: Vec<u8>,
    pub elapsed: Duration,
}

impl Session {
    /// Sends a message as it stands. A request waits for its response; anything else gives `None` once an HTTP server has
    /// taken it.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub async fn send_message(&self, message: &Map<String, Value>, deadline: Duration) -> Result<Option<Reply>, CallFailure> {
        let headers = self.headers_of(Some(message));
        let body = Value::Object(message.clone()).to_string().into_bytes();
        let (resume, repeat) = (self.resumes(), repeat_of(message));
        let is_request = message.contains_key("id") && message.contains_key("method");
        if is_request {
            let mut waiting = self.dispatcher.expect_response_to(id_of(message))?;
            let purpose = Purpose::Request(waiting.id.clone());
            waiting.sent(self.wire.connection.send(Envelope { body, purpose, headers, resume, repeat }));
            return waiting
                .answer(deadline.into())
                .await
                .unwrap_or_else(|| Err(silent("the raw message", deadline)))
                .map(|reply| Some(reply.read()));
        }
        let (done, taken) = oneshot::channel();
        let purpose = if message.contains_key("method") { Purpose::Notification(done) } else { Purpose::Anything(done) };
        self.wire.connection.send(Envelope { body, purpose, headers, resume, repeat });
        // On stdio it is out once it is queued.
        let _ = timeout(deadline, taken).await;
        Ok(None)
    }

    /// Sends bytes as they stand: to stdin, or as the body of a POST.
    ///
    /// # Errors
    /// As [`Session::request`], where a response is waited for.
    pub async fn send_bytes(&self, bytes: Vec<u8>, wait_for: WaitFor, deadline: Duration) -> Result<Option<Reply>, CallFailure> {
        let mut messages: Vec<Map<String, Value>> =
            bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let headers = self.headers_of(messages.first());
        let awaited = if wait_for == WaitFor::Answer { messages.pop() } else { None };
        self.dispatcher.expect_nothing_of(messages.iter().filter_map(id_of), wait_for == WaitFor::Nothing);
        if wait_for == WaitFor::Nothing {
            let (done, taken) = oneshot::channel();
            self.deliver(bytes, None, Purpose::Anything(done), headers);
            let _ = timeout(deadline, taken).await;
            return Ok(None);
        }
        let mut waiting = self.dispatcher.expect_response_to(awaited.as_ref().and_then(id_of))?;
        waiting.sent(self.deliver(bytes, None, Purpose::Request(waiting.id.clone()), headers));
        waiting.answer(deadline.into()).await.unwrap_or_else(|| Err(silent("the bytes", deadline))).map(|reply| Some(reply.read()))
    }

    /// Sends a request as it stands, on stdio in two writes, the second of which begins with the byte `at`, a moment later.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub async fn send_in_two(&self, message: &Map<String, Value>, at: usize, deadline: Duration) -> Result<Option<Reply>, CallFailure> {
        let headers = self.headers_of(Some(message));
        let mut bytes = Value::Object(message.clone()).to_string().into_bytes();
        bytes.push(b'\n');
        let mut waiting = self.dispatcher.expect_response_to(id_of(message))?;
        waiting.sent(self.deliver(bytes, Some(at), Purpose::Request(waiting.id.clone()), headers));
        waiting.answer(deadline.into()).await.unwrap_or_else(|| Err(silent("the raw message", deadline))).map(|reply| Some(reply.read()))
    }

    /// `cut`: the byte with which a second write begins, on stdio.
    fn deliver(&self, bytes: Vec<u8>, cut: Option<usize>, purpose: Purpose, headers: Headers) -> mcproof_record::FrameId {
        match &self.wire.connection {
            Connection::Stdio(stdio) => stdio.send_bytes(bytes, cut, purpose),
            Connection::InMemory(channel) => channel.send_bytes(bytes, cut, purpose),
            http => http.send(Envelope { body: bytes, purpose, headers, resume: self.resumes(), repeat: Repeat::Never }),
        }
    }

    /// What the session does with any request: what is said in another way is to be heard like the rest. Revision 2026-07-28 has no ids of
    /// events.
    fn resumes(&self) -> Resume {
        match self.handshake.era {
            Era::Legacy => Resume::FromLastEvent,
            Era::Modern => Resume::Never,
        }
    }

    /// The headers that go with a message: those of the session, or those that mirror it.
    fn headers_of(&self, message: Option<&Map<String, Value>>) -> Headers {
        if self.handshake.era == Era::Legacy {
            return self.wire.headers();
        }
        let at = |pointer: &str| message.and_then(|message| message.get("params")?.pointer(pointer)?.as_str());
        let version = at("/_meta/io.modelcontextprotocol~1protocolVersion").unwrap_or(&self.handshake.protocol_version);
        let mut headers = vec![(VERSION_HEADER.to_owned(), version.to_owned())];
        let method = message.and_then(|message| message.get("method")?.as_str());
        headers.extend(method.map(|method| ("mcp-method".to_owned(), method.to_owned())));
        let name = match method {
            Some(methods::TOOLS_CALL | methods::PROMPTS_GET) => at("/name"),
            Some(methods::RESOURCES_READ) => at("/uri"),
            _ => None,
        };
        headers.extend(name.map(|name| ("mcp-name".to_owned(), header_value(name))));
        headers
    }

    /// Sends an HTTP request beside the protocol. `None` if the server is not reached over HTTP.
    ///
    /// # Errors
    /// No response came.
    pub async fn ask_over_http(&self, question: &RawHttpRequest, deadline: Duration) -> Option<Result<RawHttpResponse, CallFailure>> {
        self.exchange(question, HeaderCase::Lower, Way::Any, deadline).await
    }

    /// Like [`Session::ask_over_http`], with the names of headers in another spelling.
    ///
    /// # Errors
    /// No response came.
    pub async fn ask_over_http_spelled(
        &self,
        question: &RawHttpRequest,
        spelling: HeaderCase,
        deadline: Duration,
    ) -> Option<Result<RawHttpResponse, CallFailure>> {
        self.exchange(question, spelling, Way::Any, deadline).await
    }

    /// Sends a request on a new connection, and if that succeeds a second one on the same connection, unless HTTP/1.0 ended it.
    /// Returns what came of the last one that was sent; `None` if the server is not reached over HTTP.
    ///
    /// # Errors
    /// No response came, or the connection was closed after the first one.
    pub async fn ask_in_row(&self, questions: [&RawHttpRequest; 2], deadline: Duration) -> Option<Result<RawHttpResponse, CallFailure>> {
        match self.exchange(questions[0], HeaderCase::Lower, Way::New, deadline).await? {
            Ok(first) if first.head.is_last_on_connection() => Some(Ok(first)),
            Ok(_) => self.exchange(questions[1], HeaderCase::Lower, Way::Kept, deadline).await,
            failed => Some(failed),
        }
    }

    /// Where the server is, if it is reached over HTTP: the endpoint of Streamable HTTP, the stream of HTTP+SSE.
    pub fn url(&self) -> Option<&Url> {
        match &self.wire.connection {
            Connection::Http(http) => Some(http.endpoint().1),
            Connection::Sse(sse) => Some(sse.endpoint().1),
            Connection::Stdio(_) | Connection::InMemory(_) => None,
        }
    }

    /// Over Streamable HTTP, asks on a new connection while another one, which had its response, is open: `beside` asks for an event stream
    /// there, or the same was asked. `patience`: for each response.
    pub async fn ask_beside(&self, beside: Option<&RawHttpRequest>, question: &RawHttpRequest, patience: Duration) -> Option<Beside> {
        let Connection::Http(http) = &self.wire.connection else { return None };
        let (exchanger, url) = http.endpoint();
        Some(exchanger.ask_beside(beside, question, url, patience).await)
    }

    /// What becomes of the connections to the server from now on. Those that are at rest are closed.
    pub fn reuse_connections(&self, reuse: Reuse) {
        if let Connection::Http(http) = &self.wire.connection {
            http.endpoint().0.reuse(reuse);
        }
    }

    /// Closes the stream for what the server says unasked. False if there is none.
    pub fn stop_listening(&self) -> bool {
        matches!(&self.wire.connection, Connection::Http(http) if http.stop_listening())
    }

    /// Opens the stream again that [`Session::stop_listening`] has closed.
    pub fn listen_again(&self) {
        if let Connection::Http(http) = &self.wire.connection {
            drop(http.listen(self.wire.headers()));
        }
    }

    /// Whether the server is reached over HTTP/2.
    pub fn speaks_http2(&self) -> bool {
        match &self.wire.connection {
            Connection::Http(http) => http.endpoint().0.speaks_http2(),
            Connection::Sse(sse) => sse.endpoint().0.speaks_http2(),
            Connection::Stdio(_) | Connection::InMemory(_) => false,
        }
    }

    async fn exchange(
        &self,
        question: &RawHttpRequest,
        spelling: HeaderCase,
        way: Way,
        deadline: Duration,
    ) -> Option<Result<RawHttpResponse, CallFailure>> {
        let (exchanger, endpoint) = match &self.wire.connection {
            Connection::Http(http) => http.endpoint(),
            Connection::Sse(sse) => sse.endpoint(),
            Connection::Stdio(_) | Connection::InMemory(_) => return None,
        };
        let path = question.path.as_ref();
        let url = match path.map(|path| endpoint.join(path)) {
            None => endpoint.clone(),
            Some(Ok(url)) if url.origin() == endpoint.origin() => url,
            Some(_) => return Some(Err(unreachable(format!("`{}` is not a valid path", path.map_or("", String::as_str)).into()))),
        };
        let mut all = if question.in_session { self.headers_of(None) } else { Headers::new() };
        all.extend(question.headers.iter().cloned());
        let question = RawHttpRequest { headers: all, ..question.clone() };
        let spelled = (spelling != HeaderCase::Lower).then(|| exchanger.spelled(spelling));
        let is_of_message = question.method == "POST" && matches!(self.wire.connection, Connection::Http(_));
        let resume = if is_of_message { self.resumes() } else { Resume::Never };
        Some(ask(spelled.as_ref().unwrap_or(exchanger), &url, &question, way, resume, deadline).await)
    }

    /// Closes the stdin of a server that is reached over stdio, and goes on listening. `false` if it is not.
    pub fn close_stdin(&self) -> bool {
        match &self.wire.connection {
            Connection::Stdio(stdio) => {
                stdio.close_stdin();
                true
            }
            _ => false,
        }
    }

    /// Sends a signal to the server's process group. `false` if we did not start it.
    pub fn signal(&self, signal: ProcessSignal) -> bool {
        self.process().inspect(|process| process.signal(signal)).is_some()
    }

    /// Sends a signal to the server's process and not to its children. `false` if we did not start it.
    pub fn signal_alone(&self, signal: ProcessSignal) -> bool {
        self.process().inspect(|process| process.signal_alone(signal)).is_some()
    }

    /// Waits for the end of the process that we started; `None` if it lives on, or is not ours.
    pub async fn wait_for_exit(&self, patience: Duration) -> Option<Exit> {
        let mut exit = self.process()?.watch_exit();
        timeout(patience, exited(&mut exit)).await.ok().flatten()
    }

    fn process(&self) -> Option<&Process> {
        match (&self.wire.connection, &self.spawned) {
            (Connection::Stdio(stdio), _) => Some(stdio.process()),
            (_, Some(spawned)) => Some(&spawned.process),
            _ => None,
        }
    }
}

/// Sends an HTTP request to any origin, with nothing of a session: neither its connections nor its credentials.
///
/// # Errors
/// No response came.
pub async fn request_elsewhere(
    url: &Url,
    question: &RawHttpRequest,
    options: &ConnectOptions,
    tap: &Tap,
    deadline: Duration,
) -> Result<RawHttpResponse, CallFailure> {
    let endpoint = Endpoint { url: url.clone(), headers: Vec::new() };
    let exchanger = Exchanger::new(&endpoint, options.limits, &options.network, tap);
    let exchanger = exchanger.map_err(|failure| unreachable(failure.to_string().into()))?;
    ask(&exchanger, url, question, Way::New, Resume::Never, deadline).await
}

async fn ask(
    exchanger: &Exchanger,
    url: &Url,
    question: &RawHttpRequest,
    way: Way,
    resume: Resume,
    deadline: Duration,
) -> Result<RawHttpResponse, CallFailure> {
    let started = Instant::now();
    let repeat = match question.method.as_str() {
        "GET" | "HEAD" | "OPTIONS" => Repeat::Once,
        "POST" => serde_json::from_slice(&question.body).map_or(Repeat::Never, |message: Map<String, Value>| repeat_of(&message)),
        _ => Repeat::Never,
    };
    match timeout(deadline, exchanger.ask(question, url, way, repeat, resume)).await {
        Ok(Ok((head, body))) => Ok(RawHttpResponse { head, body, elapsed: started.elapsed() }),
        Ok(Err(reason)) => Err(unreachable(reason)),
        Err(_) => Err(silent(&format!("{} {}", question.method, url.path()), deadline)),
    }
}

/// Whether a message may go out again that stands as it is.
fn repeat_of(message: &Map<String, Value>) -> Repeat {
    message.get("method").and_then(Value::as_str).map_or(Repeat::Never, Repeat::of_message)
}

fn unreachable(reason: Broken) -> CallFailure {
    CallFailure::Unanswered(Unanswered::Unreachable(reason))
}

fn id_of(message: &Map<String, Value>) -> Option<RequestId> {
    match message.get("id")? {
        Value::String(text) => Some(RequestId::Text(text.clone())),
        number => number.as_i64().map(RequestId::Number),
    }
}

fn silent(what: &str, after: Duration) -> CallFailure {
    CallFailure::TimedOut { method: what.to_owned(), after, stage: None }
}
