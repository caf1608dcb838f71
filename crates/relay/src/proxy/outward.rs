//! A client over stdio in front of a server at a URL: each line becomes a POST, and what comes back becomes lines. Knows of messages
//! what their headers need: method, id, session and version. Content passes unchanged, but for line feeds between JSON tokens.
//! Source: 2025-11-25 and 2026-07-28, basic/transports, Streamable HTTP.

use super::bodies::{ResponseRecord, is_event_stream, named};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request, Response};
use mcproof_client::transport::{AddressFailure, Event, EventParser, Lease, Line, LineReader, Pool};
use mcproof_client::{Limits, Network, ParamHeaders, Tap, request_headers};
use mcproof_protocol::{Revision, methods};
use mcproof_record::{Direction, FrameBody};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use url::Url;

/// Requests of the client that are open at the same time; the next ones wait.
const MOST_OPEN: usize = 1000;
/// Lines that wait until the client reads.
const QUEUE: usize = 256;
/// How long the server may take to accept a message that has no response. The next message waits for it, to keep their order.
const ACCEPTED_WITHIN: Duration = Duration::from_secs(30);
/// How long responses may take once the client has closed stdin.
const LINGER: Duration = Duration::from_secs(2);
/// Between two attempts to open the stream of the server.
const RECONNECT: Duration = Duration::from_secs(1);
const LEAST_RECONNECT: Duration = Duration::from_millis(10);
const LONGEST_RECONNECT: Duration = Duration::from_secs(30);
/// A server error of our own (JSON-RPC, reserved for implementations).
const NO_RESPONSE: i64 = -32000;
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Sends what a client says over stdio to a server at a URL.
pub struct OutwardBridge {
    pool: Pool<Full<Bytes>>,
    server: Url,
    headers: Vec<(HeaderName, HeaderValue)>,
    limits: Limits,
    tap: Tap,
    facts: Mutex<Facts>,
}

/// What later requests need of earlier ones.
#[derive(Default)]
struct Facts {
    session: Option<HeaderValue>,
    /// Of the legacy era, as the handshake agreed on it.
    version: Option<String>,
    /// Whether a request has named its version itself.
    is_modern: bool,
    mirrors: ParamHeaders,
    open: HashMap<String, AbortHandle>,
}

/// A line of the client.
struct Spoken {
    bytes: Vec<u8>,
    id: Option<Value>,
    method: Option<String>,
    params: Map<String, Value>,
}

type Lines = mpsc::Sender<Vec<u8>>;

impl OutwardBridge {
    /// `headers` go to the server with each request.
    ///
    /// # Errors
    /// The URL cannot be reached in principle.
    pub fn new(
        server: &Url,
        headers: &[(String, String)],
        limits: Limits,
        network: &Network,
        tap: &Tap,
    ) -> Result<Arc<Self>, AddressFailure> {
        let tap = tap.finding_credentials();
        let pair = |(name, value): &(String, String)| Some((HeaderName::try_from(name.as_str()).ok()?, HeaderValue::from_str(value).ok()?));
        let pool = Pool::for_relay(server, limits, network, &tap)?;
        let headers = headers.iter().filter_map(pair).collect();
        Ok(Arc::new(Self { pool, server: server.clone(), headers, limits, tap, facts: Mutex::default() }))
    }

    /// Carries messages until the client closes its end.
    ///
    /// # Errors
    /// A pipe of the client cannot be read or written.
    pub async fn carry(
        self: &Arc<Self>,
        input: impl AsyncRead + Unpin,
        mut output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> io::Result<()> {
        let (lines, mut outgoing) = mpsc::channel::<Vec<u8>>(QUEUE);
        let writer = tokio::spawn(async move {
            while let Some(line) = outgoing.recv().await {
                output.write_all(&line).await?;
                output.flush().await?;
            }
            Ok(())
        });
        let mut reader = LineReader::new(input, self.limits.line);
        let (mut open, mut stream) = (JoinSet::new(), JoinSet::new());
        loop {
            let line = tokio::select! {
                line = reader.next() => match line? {
                    Line::Whole(bytes) | Line::Unterminated(bytes) => bytes.to_vec(),
                    Line::TooLong(_) => {
                        self.say(&lines, error_of(&Value::Null, "the line is too long")).await;
                        break;
                    }
                    Line::End => break,
                },
                Some(_) = open.join_next(), if !open.is_empty() => continue,
                () = lines.closed() => break,
            };
            if !line.trim_ascii().is_empty() {
                self.pass(Spoken::of(line), &lines, &mut open, &mut stream).await;
            }
            while open.len() >= MOST_OPEN && open.join_next().await.is_some() {}
        }
        let all = async { while open.join_next().await.is_some() {} };
        let _ = timeout(LINGER, all).await;
        open.shutdown().await;
        stream.shutdown().await;
        self.end_session().await;
        drop(lines);
        writer.await.unwrap_or(Ok(()))
    }

    /// Tells the server that the session is over.
    pub async fn end_session(&self) {
        if self.facts().session.is_none() {
            return;
        }
        let headers = self.facts().of_session();
        // Whoever has no DELETE forgets sessions by itself.
        if let Ok(Ok((record, ..))) = timeout(LINGER, self.send(Method::DELETE, headers, Bytes::new())).await {
            record.ended();
        }
        self.facts().session = None;
    }

    async fn pass(self: &Arc<Self>, spoken: Spoken, lines: &Lines, open: &mut JoinSet<()>, stream: &mut JoinSet<()>) {
        let method = spoken.method.as_deref().unwrap_or_default();
        let begins_listening = method == methods::notifications::INITIALIZED;
        let is_request = spoken.id.is_some() && !method.is_empty();
        if method == methods::notifications::CANCELLED && self.facts().is_modern {
            // There, the end of the exchange is what cancels it.
            let canceled = spoken.params.get("requestId").and_then(|id| self.facts().open.remove(&id.to_string()));
            return canceled.iter().for_each(AbortHandle::abort);
        }
        if is_request && method != methods::INITIALIZE {
            let key = spoken.id.as_ref().map(ToString::to_string).unwrap_or_default();
            let (bridge, lines, known) = (Arc::clone(self), lines.clone(), key.clone());
            let task = open.spawn(async move {
                bridge.exchange(spoken, &lines).await;
                bridge.facts().open.remove(&known);
            });
            self.facts().open.insert(key, task);
            return;
        }
        // A notification that overtakes a request, or a request that overtakes the handshake, would be another conversation.
        let exchange = self.exchange(spoken, lines);
        match is_request {
            true => exchange.await,
            false => drop(timeout(ACCEPTED_WITHIN, exchange).await),
        }
        if begins_listening && !self.facts().is_modern && stream.is_empty() {
            let (bridge, lines) = (Arc::clone(self), lines.clone());
            stream.spawn(async move { bridge.listen(&lines).await });
        }
    }

    async fn exchange(&self, spoken: Spoken, lines: &Lines) {
        let id = spoken.id.clone().filter(|_| spoken.method.is_some());
        let headers = self.headers_of(&spoken);
        let sent = self.send(Method::POST, headers, spoken.bytes.clone().into()).await;
        let missing = match sent {
            Err(reason) => Some(reason),
            Ok((record, response, lease)) => self.receive(&spoken, record, response, lease, lines).await.err(),
        };
        match (missing, id) {
            (Some(reason), Some(id)) => self.say(lines, error_of(&id, &reason)).await,
            (Some(reason), None) => drop(self.tap.note(format!("a message of the client was not accepted: {reason}"))),
            (None, _) => {}
        }
    }

    /// Passes on what a response holds.
    ///
    /// # Errors
    /// Why it does not hold what the client waits for.
    async fn receive(
        &self,
        spoken: &Spoken,
        record: ResponseRecord,
        mut response: Response<Incoming>,
        lease: Lease<Full<Bytes>>,
        lines: &Lines,
    ) -> Result<(), String> {
        let status = response.status();
        if spoken.method.as_deref() == Some(methods::INITIALIZE) && status.is_success() {
            self.facts().session = response.headers().get("mcp-session-id").cloned();
        }
        let waits_for = spoken.id.as_ref().filter(|_| spoken.method.is_some());
        if is_event_stream(response.headers()) && status.is_success() {
            let seen = self.events(&mut response, record, lines, Some(spoken)).await;
            return match (seen.is_answered || waits_for.is_none(), seen.broken) {
                (true, _) => Ok(()),
                (false, Some(reason)) => Err(format!("the event stream broke before the response: {reason}")),
                (false, None) => Err("the event stream ended before the response".into()),
            };
        }
        let body = self.body(response, record).await?;
        self.pool.give_back(lease);
        if body.trim_ascii().is_empty() && status.is_success() {
            return if waits_for.is_none() { Ok(()) } else { Err(format!("HTTP {status} without a body")) };
        }
        let message: Option<Value> =
            serde_json::from_slice(&body).ok().filter(|message: &Value| message.is_array() || message.get("jsonrpc").is_some());
        match (message, waits_for) {
            // An error of the transport names no request, but its exchange does.
            (Some(mut message), Some(id)) if !status.is_success() && message.get("id").is_none_or(Value::is_null) => {
                message["id"] = id.clone();
                self.say(lines, message.to_string().into_bytes()).await;
                Ok(())
            }
            (Some(_), Some(_)) => {
                self.hear(spoken, &body);
                self.say(lines, body).await;
                Ok(())
            }
            (_, None) if status.is_success() => Ok(()),
            (_, _) => {
                let excerpt: String = String::from_utf8_lossy(&body).chars().take(200).collect();
                Err(format!("HTTP {status}: {excerpt}"))
            }
        }
    }

    /// The stream on which a server of the legacy era says what answers no request. A server need not have one.
    async fn listen(&self, lines: &Lines) {
        let mut last: Option<String> = None;
        let mut pause = RECONNECT;
        loop {
            let mut headers = self.facts().of_session();
            headers.push((ACCEPT, HeaderValue::from_static("text/event-stream")));
            if let Some(id) = last.as_deref().and_then(|id| HeaderValue::from_str(id).ok()) {
                headers.push((HeaderName::from_static("last-event-id"), id));
            }
            if let Ok((record, mut response, _lease)) = self.send(Method::GET, headers, Bytes::new()).await {
                if !response.status().is_success() || !is_event_stream(response.headers()) {
                    record.ended();
                    return;
                }
                let seen = self.events(&mut response, record, lines, None).await;
                last = seen.last.or(last);
                pause = seen.retry.unwrap_or(RECONNECT).clamp(LEAST_RECONNECT, LONGEST_RECONNECT);
            }
            sleep(pause).await;
        }
    }

    async fn send(
        &self,
        method: Method,
        headers: Vec<(HeaderName, HeaderValue)>,
        body: Bytes,
    ) -> Result<(ResponseRecord, Response<Incoming>, Lease<Full<Bytes>>), String> {
        let exchange = self.tap.next_exchange();
        let mut request = Request::new(Full::new(body.clone()));
        *request.method_mut() = method.clone();
        let path = &self.server[url::Position::BeforePath..url::Position::AfterQuery];
        *request.uri_mut() = path.parse().map_err(|error| format!("the URL cannot be requested: {error}"))?;
        let authority = &self.server[url::Position::BeforeHost..url::Position::BeforePath];
        let all = request.headers_mut();
        all.extend(HeaderValue::from_str(authority).ok().map(|host| (HOST, host)));
        all.extend(headers);
        self.headers.iter().for_each(|(name, value)| drop(all.insert(name.clone(), value.clone())));
        let headers = named(all);
        let url = self.server.to_string();
        let recorded = FrameBody::HttpRequest { exchange, method: method.to_string(), url, headers, body: body.to_vec().into() };
        self.tap.record(Direction::ToServer, recorded);
        let mut record = ResponseRecord::new(exchange, self.limits, &self.tap);
        match self.pool.forward(request).await {
            Ok((response, lease)) => {
                record.head(response.status().as_u16(), response.headers());
                Ok((record, response, lease))
            }
            Err(broken) => {
                let reason = format!("no response from {}: {broken}", self.server);
                record.failed(&broken.to_string());
                Err(reason)
            }
        }
    }

    fn headers_of(&self, spoken: &Spoken) -> Vec<(HeaderName, HeaderValue)> {
        let mut facts = self.facts();
        let mut headers = facts.of_session();
        headers.push((CONTENT_TYPE, HeaderValue::from_static("application/json")));
        headers.push((ACCEPT, HeaderValue::from_static("application/json, text/event-stream")));
        let meta = spoken.params.get("_meta").and_then(|meta| meta.get(VERSION)).and_then(Value::as_str);
        let version = meta.or((facts.is_modern && facts.version.is_none()).then_some(Revision::MODERN.as_str())).map(str::to_owned);
        if let (Some(version), Some(method)) = (version, &spoken.method) {
            facts.is_modern |= facts.version.is_none();
            headers.retain(|(name, _)| name != "mcp-protocol-version");
            let mut mirrored = request_headers(&version, method, &spoken.params);
            if method == methods::TOOLS_CALL {
                mirrored.extend(facts.mirrors.of_call(&spoken.params));
            }
            let pair =
                |(name, value): &(String, String)| Some((HeaderName::try_from(name.as_str()).ok()?, HeaderValue::from_str(value).ok()?));
            headers.extend(mirrored.iter().filter_map(pair));
        }
        headers
    }

    /// Learns from a message of the server; gives whether it is the response that is waited for.
    fn hear(&self, spoken: &Spoken, data: &[u8]) -> bool {
        let Ok(message) = serde_json::from_slice::<Value>(data) else { return false };
        if message.get("method").is_some() || message.get("id") != spoken.id.as_ref() {
            return false;
        }
        match spoken.method.as_deref() {
            Some(methods::INITIALIZE) => {
                let version = message.pointer("/result/protocolVersion").and_then(Value::as_str);
                let mut facts = self.facts();
                facts.version = version.map(str::to_owned);
                // A client of both eras may have asked for the modern one before.
                facts.is_modern = false;
            }
            Some(methods::TOOLS_LIST) => {
                let tools = message.pointer("/result/tools").and_then(Value::as_array);
                for tool in tools.into_iter().flatten() {
                    // The client hears of a tool that breaks the rules as well: it may leave it out.
                    let _ = self.facts().mirrors.learn(tool);
                }
            }
            _ => {}
        }
        true
    }

    /// Passes on the data of each event, up to the end of the stream.
    async fn events(
        &self,
        response: &mut Response<Incoming>,
        mut record: ResponseRecord,
        lines: &Lines,
        spoken: Option<&Spoken>,
    ) -> SeenEvents {
        let mut parser = EventParser::default();
        let mut seen = SeenEvents::default();
        loop {
            let piece = match response.body_mut().frame().await {
                Some(Ok(piece)) => piece.into_data().unwrap_or_default(),
                Some(Err(error)) => {
                    record.failed(&error.to_string());
                    seen.broken = Some(error.to_string());
                    return seen;
                }
                None => {
                    record.ended();
                    return seen;
                }
            };
            let mut events = Vec::new();
            let mut problem = None;
            for piece in record.content().pieces(&piece) {
                match record.content().read(piece, self.limits.event) {
                    Ok(content) => parser.feed(&content, |event| events.push(event)),
                    Err(reason) => problem = Some(reason),
                }
            }
            for event in events {
                let Event { name, id, data, retry, .. } = &event;
                seen.last = id.clone().or(seen.last);
                seen.retry = retry.map(Duration::from_millis).or(seen.retry);
                let data = data.clone().filter(|data| !data.is_empty() && name.as_deref().is_none_or(|name| name == "message"));
                record.event(event);
                if let Some(data) = data {
                    seen.is_answered |= spoken.is_some_and(|spoken| self.hear(spoken, &data));
                    self.say(lines, data).await;
                }
            }
            if parser.pending() > self.limits.event {
                problem = Some(format!("an event is longer than {} bytes", self.limits.event));
            }
            if let Some(reason) = problem {
                record.failed(&reason);
                seen.broken = Some(reason);
                return seen;
            }
        }
    }

    async fn body(&self, mut response: Response<Incoming>, mut record: ResponseRecord) -> Result<Vec<u8>, String> {
        let mut body = Vec::new();
        while let Some(piece) = response.body_mut().frame().await {
            match piece {
                Ok(piece) => {
                    let piece = piece.into_data().unwrap_or_default();
                    for piece in record.content().pieces(&piece) {
                        let room = self.limits.body.saturating_add(1).saturating_sub(body.len());
                        match record.content().read(piece, room) {
                            Ok(content) => body.extend_from_slice(&content),
                            Err(reason) => return Err(not_read(record, &reason)),
                        }
                    }
                }
                Err(error) => {
                    record.failed(&error.to_string());
                    return Err(format!("the response broke off: {error}"));
                }
            }
            if body.len() > self.limits.body {
                let reason = format!("the response is larger than {} bytes", self.limits.body);
                record.failed(&reason);
                return Err(reason);
            }
        }
        match record.content().rest(self.limits.body.saturating_sub(body.len())) {
            Ok(rest) => body.extend(rest),
            Err(reason) => return Err(not_read(record, &reason)),
        }
        record.body(&body);
        record.ended();
        Ok(body)
    }

    /// A message as a line: between its tokens, JSON may have line feeds.
    async fn say(&self, lines: &Lines, mut message: Vec<u8>) {
        message.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        message.push(b'\n');
        // The client may be gone.
        let _ = lines.send(message).await;
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_read(record: ResponseRecord, reason: &str) -> String {
    record.failed(reason);
    format!("the response cannot be read: {reason}")
}

/// What a stream said of itself.
#[derive(Default)]
struct SeenEvents {
    last: Option<String>,
    retry: Option<Duration>,
    /// The response was among them.
    is_answered: bool,
    /// Why the stream broke, if it did.
    broken: Option<String>,
}

impl Facts {
    fn of_session(&self) -> Vec<(HeaderName, HeaderValue)> {
        let version = self.version.as_deref().and_then(|version| HeaderValue::from_str(version).ok());
        let session = self.session.clone().map(|session| (HeaderName::from_static("mcp-session-id"), session));
        session.into_iter().chain(version.map(|version| (HeaderName::from_static("mcp-protocol-version"), version))).collect()
    }
}

impl Spoken {
    /// What is no message is sent as it is: the server will say so.
    fn of(bytes: Vec<u8>) -> Self {
        let message: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let id = message.get("id").filter(|id| !id.is_null()).cloned();
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        let params = message.get("params").and_then(Value::as_object).cloned().unwrap_or_default();
        Self { bytes, id, method, params }
    }
}

fn error_of(id: &Value, reason: &str) -> Vec<u8> {
    let error = json!({ "code": NO_RESPONSE, "message": format!("mcproof proxy: {reason}") });
    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into_bytes()
}
