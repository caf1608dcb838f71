//! An open session as a test uses it.

use crate::called::CallResult;
use crate::failure::{Failure, rendered};
use mcproof_analysis::diagnosis::{self, Audience, Scene};
use mcproof_check::take_of;
use mcproof_client::{
    BadServerUrl, CallFailure, ConnectFailure, ConnectOptions, Endpoint, Exit, Launch, ListFailure, Reply, Session, Tap, Target, URL_HINT,
    server_url,
};
use mcproof_protocol::{Era, Transport, methods};
use mcproof_record::{Conversation, Diagnostic, Finding, FrameId};
use mcproof_report::{Style, diagnostic};
use mcproof_rules::{self as rules, Tester, TrafficScope};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// Longest wait for a response, if the test does not say.
const TIMEOUT: Duration = Duration::from_secs(30);
/// What a server that is quick to answer needs to say what else it has to say.
const SETTLING: Duration = Duration::from_millis(500);

/// An open session with a server. Dropping it kills a server that it started, with its whole process group, and judges nothing; closing
/// it does.
pub struct Client {
    session: Session,
    timeout: Duration,
    allows_faults: bool,
    /// Rules that its traffic is not judged by.
    skipped: Vec<String>,
    /// It did what no client does that keeps to the specification: its traffic says nothing about the server.
    is_odd: AtomicBool,
    /// The last request got no response: the server is not asked what else it has to say.
    unanswered: AtomicBool,
    /// The test looked at the end of the server.
    expects_end: AtomicBool,
}

impl Client {
    /// Connects to any rmcp server handler in this process.
    ///
    /// # Errors
    /// The server did not do the handshake.
    #[cfg(feature = "rmcp")]
    pub async fn in_memory<S: rmcp::Service<rmcp::RoleServer>>(server: S) -> Result<Self, Failure> {
        use rmcp::ServiceExt as _;
        let (ours, theirs) = tokio::io::duplex(BUFFER);
        // Ends when our half is dropped.
        tokio::spawn(async move {
            if let Ok(running) = server.serve(theirs).await {
                let _ = running.waiting().await;
            }
        });
        let (input, output) = tokio::io::split(ours);
        Self::over(input, output, &ConnectOptions::default()).await
    }

    /// Connects over any pair of byte streams: `input` is what the server writes.
    ///
    /// # Errors
    /// The server did not do the handshake.
    pub async fn over(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        options: &ConnectOptions,
    ) -> Result<Self, Failure> {
        let tap = Tap::new();
        let nowhere = Target::Stdio(Launch::default());
        let opened = mcproof_client::open_in_memory(input, output, options, &tap).await;
        opened.map(|session| Self::of(session, options)).map_err(|failure| explain(&failure, &nowhere, &tap))
    }

    /// Starts a command and talks to it over stdio.
    ///
    /// # Errors
    /// It did not start, or did not do the handshake.
    pub async fn stdio(command: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, Failure> {
        let launch = Launch { command: command.into_iter().map(Into::into).collect(), ..Launch::default() };
        Self::connect(&Target::Stdio(launch), &ConnectOptions::default()).await
    }

    /// Talks Streamable HTTP to the server at a URL.
    ///
    /// # Errors
    /// The URL is none, or the server did not do the handshake.
    pub async fn http(url: &str) -> Result<Self, Failure> {
        Self::at(url, Transport::Http).await
    }

    /// Talks HTTP+SSE to the server whose event stream is at a URL.
    ///
    /// # Errors
    /// The URL is none, or the server did not do the handshake.
    pub async fn sse(url: &str) -> Result<Self, Failure> {
        Self::at(url, Transport::Sse).await
    }

    async fn at(url: &str, kind: Transport) -> Result<Self, Failure> {
        let target = Target::Http { endpoint: endpoint(url)?, kind: Some(kind), launch: None, locate: None };
        Self::connect(&target, &ConnectOptions::default()).await
    }

    /// Connects to any target, in any way.
    ///
    /// # Errors
    /// The server did not start, could not be reached, or did not do the handshake.
    pub async fn connect(target: &Target, options: &ConnectOptions) -> Result<Self, Failure> {
        let tap = Tap::with(mcproof_client::TapBounds::default(), target.secrets(), None);
        let opened = mcproof_client::open_session(target, options, &tap).await;
        opened.map(|session| Self::of(session, options)).map_err(|failure| explain(&failure, target, &tap))
    }

    fn of(session: Session, options: &ConnectOptions) -> Self {
        Self {
            session,
            timeout: TIMEOUT,
            allows_faults: false,
            skipped: Vec::new(),
            is_odd: AtomicBool::new(options.faults.is_some()),
            unanswered: AtomicBool::new(false),
            expects_end: AtomicBool::new(false),
        }
    }

    /// Lets [`Client::close`] pass over what no conforming server sends, and over a server that ended unasked.
    #[must_use]
    pub fn allow_faults(self) -> Self {
        Self { allows_faults: true, ..self }
    }

    /// Judges the traffic without these rules: ids, areas, or globs such as `progress-*`; `*` for all.
    ///
    /// # Panics
    /// No rule has one of these names.
    #[must_use]
    #[track_caller]
    pub fn skip_rules<'a>(self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: Vec<&str> = names.into_iter().collect();
        if let Err(unknown) = rules::of_traffic(true, &names) {
            panic!("\n{}", rendered(&unknown.diagnostic()));
        }
        Self { skipped: names.into_iter().map(str::to_owned).collect(), ..self }
    }

    /// How the server ended that this client started, if it has. A test that looks at that expects it.
    pub fn ended(&self) -> Option<Exit> {
        let exit = self.session.exit();
        self.expects_end.fetch_or(exit.is_some(), Ordering::Relaxed);
        exit
    }

    /// Sends a message as it stands; see [`Session::send_message`]. The traffic of this client is not judged by rules then.
    ///
    /// # Errors
    /// No response came to a request.
    pub async fn send_message(&self, message: &Map<String, Value>, deadline: Duration) -> Result<Option<Reply>, CallFailure> {
        self.is_odd.store(true, Ordering::Relaxed);
        self.session.send_message(message, deadline).await
    }

    /// Waits no longer than this for each response from here on.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Calls a tool. An error is a response: see [`CallResult::expect_error`].
    ///
    /// # Errors
    /// No response came.
    ///
    /// # Panics
    /// The arguments are no object.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<CallResult, Failure> {
        assert!(arguments.is_object(), "the arguments of a tool are an object, found {arguments}");
        let params = Map::from_iter([("name".to_owned(), json!(tool)), ("arguments".to_owned(), arguments)]);
        let reply = self.ask(methods::TOOLS_CALL, Some(params)).await?;
        Ok(CallResult::new(tool, reply, self.session.tap()))
    }

    /// All tools, from all pages.
    ///
    /// # Errors
    /// No list came.
    pub async fn tools(&self) -> Result<Vec<Value>, Failure> {
        self.list_all(methods::TOOLS_LIST, "tools").await
    }

    /// All resources, from all pages.
    ///
    /// # Errors
    /// No list came.
    pub async fn resources(&self) -> Result<Vec<Value>, Failure> {
        self.list_all(methods::RESOURCES_LIST, "resources").await
    }

    /// All prompts, from all pages.
    ///
    /// # Errors
    /// No list came.
    pub async fn prompts(&self) -> Result<Vec<Value>, Failure> {
        self.list_all(methods::PROMPTS_LIST, "prompts").await
    }

    /// Reads a resource: the result of `resources/read`.
    ///
    /// # Errors
    /// No response came, or a JSON-RPC error.
    pub async fn read(&self, uri: &str) -> Result<Value, Failure> {
        self.result(methods::RESOURCES_READ, json!({ "uri": uri })).await
    }

    /// Gets a prompt: the result of `prompts/get`.
    ///
    /// # Errors
    /// No response came, or a JSON-RPC error.
    pub async fn prompt(&self, name: &str, arguments: Value) -> Result<Value, Failure> {
        self.result(methods::PROMPTS_GET, json!({ "name": name, "arguments": arguments })).await
    }

    async fn result(&self, method: &str, params: Value) -> Result<Value, Failure> {
        let reply = self.ask(method, params.as_object().cloned()).await?;
        reply.answer.map_err(|error| {
            let evidence = diagnosis::evidence(&self.session.tap().transcript(), Some(reply.frame));
            Failure::new(Diagnostic::error("rpc-error", format!("server refused `{method}`: {error}")).evidence(evidence))
        })
    }

    async fn ask(&self, method: &str, params: Option<Map<String, Value>>) -> Result<Reply, Failure> {
        let answered = self.session.request_rounds(method, params, self.timeout).await;
        self.unanswered.store(answered.is_err(), Ordering::Relaxed);
        match answered {
            Ok(reply) => Ok(reply),
            Err(failure) => Err(Failure::new(diagnosis::of_call_failure(&failure, method, &self.scene().await))),
        }
    }

    async fn list_all(&self, method: &str, key: &str) -> Result<Vec<Value>, Failure> {
        match self.session.list(method, key, self.timeout).await {
            Ok(listed) => Ok(listed.items),
            Err(failure) => Err(self.no_list(&failure, method).await),
        }
    }

    pub(crate) async fn no_list(&self, failure: &ListFailure, method: &str) -> Failure {
        self.unanswered.store(true, Ordering::Relaxed);
        Failure::new(diagnosis::of_list_failure(failure, method, &self.scene().await))
    }

    async fn scene(&self) -> Scene {
        Scene::of(&self.session, self.session.tap(), Audience::Suite).await
    }

    /// Everything that was on the wire so far, a line for each frame.
    pub fn transcript(&self) -> String {
        diagnostic::render_frames(&self.session.tap().transcript().frames, &Style::default())
    }

    /// Ends the session, and the server if it started it.
    ///
    /// # Panics
    /// The server sent what no conforming server sends (noise on stdout, a second response, a malformed message) until it had ended, or ended
    /// unasked; or there was so much of it that it could not be judged. After [`Client::allow_faults`] it does not panic.
    pub async fn close(self) {
        if let Some(fault) = self.end().await {
            panic!("\n{fault}");
        }
    }

    /// Ends it, and gives the first thing that was wrong on its wire.
    pub(crate) async fn end(self) -> Option<Failure> {
        if self.allows_faults {
            self.session.close().await;
            return None;
        }
        let found = self.fault().await;
        let is_odd = self.is_odd.load(Ordering::Relaxed);
        let (conversation, tap, skipped) = (take_of(&self.session), self.session.tap().clone(), self.skipped);
        self.session.close().await;
        match found {
            None if !is_odd => broken(&Conversation { transcript: tap.transcript(), ..conversation }, &skipped),
            found => found,
        }
    }

    async fn fault(&self) -> Option<Failure> {
        let handshake = self.session.handshake();
        let unanswered = self.unanswered.load(Ordering::Relaxed);
        // What a server writes right behind its response comes before its response to a ping.
        if handshake.transport == Transport::Stdio && !unanswered && self.session.closed_because().is_none() {
            let method = match handshake.era {
                Era::Legacy => methods::PING,
                Era::Modern => methods::SERVER_DISCOVER,
            };
            if self.session.request(method, None, SETTLING).await.is_err() {
                self.session.settle().await;
            }
        }
        let transcript = self.session.tap().transcript();
        if let Some(fault) = self.session.faults().first() {
            return Some(Failure::new(diagnosis::of_fault(fault, &transcript, Audience::Suite)));
        }
        // The command of a server at a URL may only have started it.
        let exit = self.session.exit().filter(|exit| handshake.transport == Transport::Stdio || exit.code != Some(0))?;
        if self.expects_end.load(Ordering::Relaxed) {
            return None;
        }
        let when = if unanswered { "instead of sending a response" } else { "after its last response" };
        let exited = Diagnostic::error("server-exited", format!("{exit}, {when}")).hint(END_EXPECTED);
        Some(Failure::new(exited.evidence(diagnosis::evidence(&transcript, None))))
    }
}

/// That a request fails does not say that the server may end.
const END_EXPECTED: &str = "a test that expects the end of its server has to look at `Client::ended`";
const MORE_CLIENTS: &str = "use several clients, each for a part of the traffic, or `Client::allow_faults`";
/// Frames that are shown of a broken rule.
const SHOWN: usize = 8;

/// The first rule that a whole conversation breaks, or that it cannot be judged.
fn broken(conversation: &Conversation, skipped: &[String]) -> Option<Failure> {
    let (skipped, told): (Vec<&str>, _) = (skipped.iter().map(String::as_str).collect(), BTreeSet::new());
    if let dropped @ 1.. = conversation.transcript.dropped {
        let message = format!("not judged: {dropped} frames of this session were not kept, because they exceed the transcript limit");
        return Some(Failure::new(Diagnostic::error("not-judged", message).hint(MORE_CLIENTS)));
    }
    let (since, tester) = (FrameId(0), Tester::Library);
    let scope = TrafficScope { is_whole: true, is_over: true, since, skipped: &skipped, told: &told, tester };
    let errors = rules::errors_of_traffic(conversation, &scope).expect("unknown rules were refused");
    let (rule, Finding { message, remedy, frames, .. }) = errors.into_iter().next()?;
    let hint = format!("{remedy}; see `mcproof explain {rule}`, or leave it out with `Client::skip_rules`");
    let evidence = conversation.transcript.around(frames.into_iter().max(), SHOWN, 0);
    Some(Failure::new(Diagnostic::error(rule, message).hint(hint).evidence(evidence)))
}

impl Deref for Client {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

pub(crate) fn explain(failure: &ConnectFailure, target: &Target, tap: &Tap) -> Failure {
    Failure::new(diagnosis::of_connect_failure(failure, target, &tap.transcript(), Audience::Suite))
}

pub(crate) fn endpoint(url: &str) -> Result<Endpoint, Failure> {
    let refused = |bad: BadServerUrl| Failure::new(Diagnostic::error("bad-url", format!("`{url}` {bad}")).hint(URL_HINT));
    let url = server_url(url).map_err(refused)?;
    Ok(Endpoint { url, headers: Vec::new() })
}

/// Bytes in flight each way: as much as a pipe holds.
#[cfg(feature = "rmcp")]
const BUFFER: usize = 64 << 10;
