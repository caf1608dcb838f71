//! Opens a session: starts or finds the server, finds out its era, does the handshake.
//! Source of the era rules: 2026-07-28, basic/versioning and basic/transports, "backward compatibility".

use super::dispatcher::{Dispatcher, ServerRequests};
use super::endpoint_search::search_endpoint;
use super::handshake::{Offer, bounded, discovered, initialize, names};
use super::modern::mirrored;
use super::responder::{Responder, ResponsePolicies};
use super::silence::{Intake, Silence};
use super::wire::{Connection, Outgoing, TOO_LATE, Wire, refusal};
use super::{
    CallFailure, ClientProfile, ConnectFailure, ConnectOptions, EraEvidence, Handshake, Reply, Session, Spawned, Startup, Target, UrlFinder,
};
use crate::Tap;
use crate::auth::{Attempts, Authorizer, Bearer, Fallback, wants_authorization};
use crate::jsonrpc::RpcError;
use crate::transport::{
    AddressFailure, Destinations, DirectChannel, Ending, Endpoint, Exchanger, HttpConnection, Inbox, Launch, LineChannel, ListedHost,
    Network, OutputWatcher, Process, Resume, ShutdownTimeouts, SseConnection, SseFailure, StdinUse, StdioConnection, Stream, Unanswered,
    copy_output, exited,
};
use mcproof_protocol::{Era, EraChoice, Revision, Transport, error_code, methods};
use mcproof_system::pipes::PipeGauge;
use mcproof_system::{OtherListener, listening_addresses, listens_at, other_listener};
use serde_json::json;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Lines of a server that is starting after which it is looked whether it listens by now.
const MAX_HEARD: usize = 20;

/// How long another process may listen at the server's port: our server, which cannot listen there, too, most likely ends meanwhile. A process
/// that listens for containers counts as the server after that.
const OTHER_LISTENER: Duration = Duration::from_secs(2);
/// How long a port may be held by what was just ended: Windows ends processes without waiting, and children outlive those who held them.
const LETS_GO: Duration = Duration::from_secs(1);

/// The port of a URL of this machine, and its address; none stands for `localhost`.
fn local_port(url: &Url) -> Option<(u16, Option<IpAddr>)> {
    let host = match url.host()? {
        url::Host::Domain(name) if name == "localhost" || name.ends_with(".localhost") => None,
        url::Host::Domain(_) => return None,
        url::Host::Ipv4(address) => Some(IpAddr::from(address)),
        url::Host::Ipv6(address) => Some(IpAddr::from(address)),
    };
    let port = url.port_or_known_default()?;
    host.is_none_or(|address| address.is_loopback()).then_some((port, host))
}

/// Who else listens at a URL of this machine.
fn other_at(url: &Url, server: i32) -> Option<OtherListener> {
    let (port, host) = local_port(url)?;
    other_listener(port, host, server)
}

/// Opens a session. Whatever happens on the way is in the tap, also when it fails; then nothing is left running.
///
/// # Errors
/// Says what kept the session from opening.
pub async fn open_session(target: &Target, options: &ConnectOptions, tap: &Tap) -> Result<Session, ConnectFailure> {
    let opening = Opening::new(options, tap);
    match target {
        Target::Stdio(launch) => opening.stdio(launch).await,
        Target::Http { endpoint, kind, launch, locate } => opening.http(endpoint, *kind, launch.as_ref(), locate.as_ref()).await,
    }
}

/// Opens a session over any pair of byte streams, such as the two halves of `tokio::io::duplex`: `input` is what the
/// server writes. Messages are framed as on stdio, so that a server in this process is tested with its framing.
///
/// # Errors
/// As [`open_session`].
pub async fn open_in_memory(
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    options: &ConnectOptions,
    tap: &Tap,
) -> Result<Session, ConnectFailure> {
    open_channel(options, tap, |inbox| {
        LineChannel::open(input, output, Ending::Stream, options.limits, options.faults.as_ref(), tap, inbox)
    })
    .await
}

/// Like [`open_in_memory`], but whole messages go past the streams, where no faults are requested.
///
/// # Errors
/// As [`open_session`].
pub async fn open_relayed(
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    shortcut: Arc<DirectChannel>,
    options: &ConnectOptions,
    tap: &Tap,
) -> Result<Session, ConnectFailure> {
    if options.faults.is_some() {
        return open_in_memory(input, output, options, tap).await;
    }
    open_channel(options, tap, |inbox| LineChannel::open_with(input, output, shortcut, options.limits, tap, inbox)).await
}

async fn open_channel(
    options: &ConnectOptions,
    tap: &Tap,
    open: impl FnOnce(Arc<dyn Inbox>) -> LineChannel,
) -> Result<Session, ConnectFailure> {
    let opening = Opening::new(options, tap);
    let (dispatcher, queue) = Dispatcher::new(tap, options);
    let channel = open(Arc::clone(&dispatcher) as _);
    let attempt = opening.attempt(Connection::InMemory(channel), None, dispatcher, queue);
    let handshake = match opening.shake_hands_on_a_pipe(&attempt, Transport::InMemory, None).await {
        Ok(handshake) => handshake,
        Err(HandshakeError::Lasting(failure) | HandshakeError::ProbeOutcome(Some(failure), _)) => return Err(failure),
        // Nothing is there to be started again.
        Err(HandshakeError::ProbeOutcome(None, era_evidence)) => {
            Handshake { era_evidence, ..opening.initialize(&attempt, Transport::InMemory, None).await? }
        }
    };
    Ok(opening.session(attempt, None, handshake))
}

/// Errors by which a modern server shows that it is one (2026-07-28, basic, error codes).
const MODERN_ERRORS: [i64; 3] = [error_code::HEADER_MISMATCH, error_code::MISSING_CAPABILITY, error_code::UNSUPPORTED_VERSION];

pub(super) struct Opening<'a> {
    options: &'a ConnectOptions,
    /// With what its responses let it declare.
    client: ClientProfile,
    tap: &'a Tap,
    pub(super) budget: Duration,
    began: Instant,
    /// Where the server said that it listens.
    located: Mutex<Option<ListedHost>>,
}

/// A connection without a handshake.
pub(super) struct Attempt {
    pub(super) wire: Arc<Wire>,
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) policies: ResponsePolicies,
    pub(super) answering: Responder,
}

/// What a probe with `server/discover` told.
enum ProbeOutcome {
    Modern(Box<Handshake>),
    /// Legacy; the same connection may go on.
    Legacy(EraEvidence),
    /// Legacy or broken; a process that was asked is of no more use.
    Silent(EraEvidence),
}

/// Why there was no handshake on a pair of streams.
enum HandshakeError {
    /// For a reason that will not go away.
    Lasting(ConnectFailure),
    /// The question for the era may be to blame. What `initialize` failed with, if it was tried.
    ProbeOutcome(Option<ConnectFailure>, EraEvidence),
}

impl From<ConnectFailure> for HandshakeError {
    fn from(failure: ConnectFailure) -> Self {
        Self::Lasting(failure)
    }
}

impl<'a> Opening<'a> {
    pub(super) fn new(options: &'a ConnectOptions, tap: &'a Tap) -> Self {
        let mut client = options.client.clone();
        client.declare(options.all_answers().capabilities());
        Self { options, client, tap, budget: options.timeout.unwrap_or(CONNECT_TIMEOUT), began: Instant::now(), located: Mutex::default() }
    }

    fn era(&self) -> EraChoice {
        match self.options.protocol_version.as_deref().and_then(Era::of) {
            Some(Era::Modern) => EraChoice::Modern,
            Some(Era::Legacy) => EraChoice::Legacy,
            None => self.options.era,
        }
    }

    /// A server that cannot be reached must be told from one that is silent: no connection outlasts a probe.
    pub(super) fn network(&self) -> Network {
        let network = self.options.network.clone();
        let located = self.located.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let destinations = located.into_iter().fold(network.destinations, Destinations::with);
        Network { connect: network.connect.min(self.budget * 2 / 5), destinations, ..network }
    }

    /// How long the probe may take: a slow start must not pass for a legacy server that is silent.
    fn probe_budget(&self) -> Duration {
        match self.era() {
            EraChoice::Modern => self.budget,
            _ => self.budget / 2,
        }
    }

    async fn stdio(&self, launch: &Launch) -> Result<Session, ConnectFailure> {
        let (attempt, gauge) = self.start_stdio(launch).await?;
        let era_evidence = match self.shake_hands_on_a_pipe(&attempt, Transport::Stdio, gauge).await {
            Ok(handshake) => return Ok(self.session(attempt, None, handshake)),
            Err(HandshakeError::Lasting(failure)) => return Err(self.failed(attempt, None, failure, None).await),
            Err(HandshakeError::ProbeOutcome(_, evidence)) => evidence,
        };
        self.tap.note("the server is restarted, to try `initialize` on a process that was not probed");
        attempt.discard(self.options.patience).await;
        let lost_to_discovery = self.began.elapsed();
        let attempt = self.start_stdio(launch).await?.0;
        match self.initialize(&attempt, Transport::Stdio, None).await {
            Ok(handshake) => Ok(self.session(attempt, None, Handshake { era_evidence, lost_to_discovery, ..handshake })),
            Err(failure) => Err(self.failed(attempt, None, failure, None).await),
        }
    }

    /// The handshake on a pair of streams, where a server may take long to start before it reads a line. So `initialize` follows on the
    /// same streams once the server has read `server/discover` and was silent for a moment, or after half of the time (2026-07-28,
    /// transports/stdio, backward compatibility: no response within a reasonable time means legacy). A response to either request counts,
    /// that to `server/discover` first: it comes late from a server that is only slow. One that leaves `initialize` unread is stuck in
    /// the request that it does not know.
    async fn shake_hands_on_a_pipe(
        &self,
        attempt: &Attempt,
        transport: Transport,
        gauge: Option<PipeGauge>,
    ) -> Result<Handshake, HandshakeError> {
        match self.era() {
            EraChoice::Legacy => return Ok(self.initialize(attempt, transport, None).await?),
            EraChoice::Modern => return Ok(self.discover(attempt, transport, None).await?),
            EraChoice::Auto => {}
        }
        let mut probe = pin!(self.probe(attempt, transport, None, self.budget));
        let silence = Silence::after_request(gauge, self.budget);
        let intake = tokio::select! {
            biased;
            probed = &mut probe => match probed {
                Ok(ProbeOutcome::Modern(handshake)) => return Ok(*handshake),
                Ok(ProbeOutcome::Legacy(era_evidence)) => {
                    return Ok(Handshake { era_evidence, ..self.initialize(attempt, transport, None).await? });
                }
                Ok(ProbeOutcome::Silent(evidence)) => return Err(HandshakeError::ProbeOutcome(None, evidence)),
                Err(failure) => return Err(failure.into()),
            },
            intake = silence.falls() => intake,
        };
        self.tap.note("no response to `server/discover` so far: `initialize` follows, and either response counts");
        // Any client would have waited for a server that was still starting.
        let mut lost_to_discovery = if intake == Intake::Begun { silence.elapsed() } else { Duration::ZERO };
        let mut initialize = pin!(self.initialize(attempt, transport, None));
        let initialized = tokio::select! {
            biased;
            probed = &mut probe => match probed {
                Ok(ProbeOutcome::Modern(handshake)) => {
                    attempt.dispatcher.forgo_responses();
                    return Ok(*handshake);
                }
                // It has responded after all: it was slow.
                _ => {
                    lost_to_discovery = Duration::ZERO;
                    initialize.await
                }
            },
            initialized = &mut initialize => match initialized {
                Err(failure) if attempt.dispatcher.closed_because().is_none() => match probe.await {
                    Ok(ProbeOutcome::Modern(handshake)) => return Ok(*handshake),
                    _ => Err(failure),
                },
                initialized => initialized,
            },
            () = silence.sticks(intake) => return Err(HandshakeError::ProbeOutcome(None, EraEvidence::Assumed)),
        };
        attempt.dispatcher.forgo_responses();
        let assumed = |handshake| Handshake { era_evidence: EraEvidence::Assumed, lost_to_discovery, ..handshake };
        initialized.map(assumed).map_err(|failure| match failure {
            ConnectFailure::Refused { .. } | ConnectFailure::Unanswered { failure: CallFailure::Closed(_), .. } => {
                HandshakeError::ProbeOutcome(Some(failure), EraEvidence::Assumed)
            }
            _ => HandshakeError::Lasting(failure),
        })
    }

    /// Starts a server. What it has not read is known where the system tells it; the gauge has to be dropped before the server is to see the
    /// end of its input.
    pub(super) async fn start_stdio(&self, launch: &Launch) -> Result<(Attempt, Option<PipeGauge>), ConnectFailure> {
        let (dispatcher, queue) = Dispatcher::new(self.tap, self.options);
        let (connection, gauge) = StdioConnection::open(
            launch,
            &self.options.guardian,
            self.options.limits,
            self.options.faults.as_ref(),
            self.tap,
            Arc::clone(&dispatcher) as _,
        )
        .await?;
        Ok((self.attempt(Connection::Stdio(connection), None, dispatcher, queue), gauge))
    }

    async fn http(
        &self,
        endpoint: &Endpoint,
        kind: Option<Transport>,
        launch: Option<&Launch>,
        locate: Option<&UrlFinder>,
    ) -> Result<Session, ConnectFailure> {
        if kind == Some(Transport::Sse) && self.era() == EraChoice::Modern {
            return Err(ConnectFailure::NoModernSse);
        }
        let mut endpoint = endpoint.clone();
        let spawned = match launch {
            Some(launch) => {
                let (spawned, url) = self.serve(launch, &endpoint, locate).await?;
                endpoint.url = url;
                Some(spawned)
            }
            None => None,
        };
        self.connect(&endpoint, kind, spawned).await
    }

    /// Opens a session with a server that listens.
    pub(super) async fn connect(
        &self,
        endpoint: &Endpoint,
        kind: Option<Transport>,
        spawned: Option<Spawned>,
    ) -> Result<Session, ConnectFailure> {
        let session = self.shake_hands(endpoint, kind, spawned).await?;
        let transport = session.handshake.transport;
        Ok(Session { reached: Some((endpoint.clone(), transport)), ..session })
    }

    async fn shake_hands(&self, endpoint: &Endpoint, kind: Option<Transport>, spawned: Option<Spawned>) -> Result<Session, ConnectFailure> {
        let authorizer = self.authorizer(endpoint);
        let (dispatcher, queue) = Dispatcher::new(self.tap, self.options);
        if kind == Some(Transport::Sse) {
            return self.sse(endpoint, spawned, authorizer, dispatcher, queue).await;
        }
        let bearer = authorizer.as_ref().map(|authorizer| authorizer.bearer());
        let inbox = Arc::clone(&dispatcher) as _;
        let connection =
            HttpConnection::new(endpoint, self.options.limits, &self.network(), bearer, self.options.faults.as_ref(), self.tap, inbox)?;
        let attempt = self.attempt(Connection::Http(connection), authorizer.clone(), dispatcher, queue);
        let mut era_evidence = EraEvidence::Shown;
        if self.era() != EraChoice::Legacy {
            match self.probe(&attempt, Transport::Http, spawned.as_ref(), self.probe_budget()).await {
                Ok(ProbeOutcome::Modern(handshake)) => return Ok(self.session(attempt, spawned, *handshake)),
                Ok(ProbeOutcome::Legacy(evidence) | ProbeOutcome::Silent(evidence)) => era_evidence = evidence,
                Err(failure) => return Err(self.failed(attempt, spawned, failure, Some(endpoint)).await),
            }
        }
        let failure = match self.initialize(&attempt, Transport::Http, spawned.as_ref()).await {
            Ok(handshake) => return Ok(self.session(attempt, spawned, Handshake { era_evidence, ..handshake })),
            Err(failure) => failure,
        };
        let may_be_sse = kind.is_none()
            && matches!(&failure, ConnectFailure::Unanswered { failure: CallFailure::Unanswered(Unanswered::Response { head, .. }), .. }
                if matches!(head.status, 400 | 404 | 405));
        if !may_be_sse {
            return Err(self.failed(attempt, spawned, failure, Some(endpoint)).await);
        }
        let (dispatcher, queue) = Dispatcher::new(self.tap, self.options);
        match self.sse(endpoint, spawned, authorizer, dispatcher, queue).await {
            // Neither transport: what Streamable HTTP said is the better story.
            Err(ConnectFailure::Sse(SseFailure::NoStream(_))) => Err(failure),
            Err(ConnectFailure::WrongPath { url, .. }) => Err(ConnectFailure::WrongPath { url, failure: Box::new(failure) }),
            other => other,
        }
    }

    async fn sse(
        &self,
        endpoint: &Endpoint,
        spawned: Option<Spawned>,
        authorizer: Option<Arc<Authorizer>>,
        dispatcher: Arc<Dispatcher>,
        queue: ServerRequests,
    ) -> Result<Session, ConnectFailure> {
        let network = self.network();
        let bearer = authorizer.as_ref().map(|authorizer| authorizer.bearer());
        let mut attempts = Attempts::default();
        let began = Instant::now();
        let deadline = began + self.budget;
        let mut pauses = RetryPauses::default();
        let opened = loop {
            let token = bearer.and_then(Bearer::token);
            let inbox = Arc::clone(&dispatcher) as _;
            let opening =
                SseConnection::open(endpoint, self.options.limits, &network, bearer, self.options.faults.as_ref(), self.tap, inbox);
            let opened = tokio::select! {
                opened = timeout_at(deadline, opening) => opened.ok(),
                () = dispatcher.lacks_end_of_first_event() => None,
            };
            match (opened, &authorizer) {
                (Some(Err(failure)), _) if self.is_starting(spawned.as_ref(), StartupError::of_stream(&failure)) => pauses.next().await,
                (Some(Err(SseFailure::NoStream(head))), Some(authorizer)) if wants_authorization(&head) => {
                    let answered = authorizer.answer("the event stream", &head, token.as_ref(), &mut attempts).await;
                    if let Err(failure) = answered {
                        break Some(Err(SseFailure::Unauthorized { head, failure }));
                    }
                }
                (opened, _) => break opened,
            }
        };
        let failure = match opened {
            Some(Ok(connection)) => {
                let attempt = self.attempt(Connection::Sse(connection), authorizer, dispatcher, queue);
                return match self.initialize(&attempt, Transport::Sse, spawned.as_ref()).await {
                    Ok(handshake) => Ok(self.session(attempt, spawned, handshake)),
                    // There is a stream at this path: what fails is at that of its endpoint.
                    Err(failure) => Err(self.failed(attempt, spawned, failure, None).await),
                };
            }
            Some(Err(failure)) => failure.into(),
            None => ConnectFailure::SseTimedOut { after: began.elapsed(), faults: dispatcher.faults() },
        };
        let failure = self.search(failure, Some(endpoint)).await;
        Err(self.blame_process(spawned, failure, "its HTTP+SSE stream was open").await)
    }

    /// Whether something accepts connections there, and goes on: what was killed may hold its port for a moment.
    async fn stays_taken(&self, url: Url) -> Result<bool, ConnectFailure> {
        let exchanger = self.exchanger(url)?;
        let began = Instant::now();
        while exchanger.accepts().await.is_ok() {
            if began.elapsed() >= LETS_GO {
                return Ok(true);
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(false)
    }

    /// Starts an HTTP server and waits until something accepts connections at its address.
    pub(super) async fn serve(
        &self,
        launch: &Launch,
        endpoint: &Endpoint,
        locate: Option<&UrlFinder>,
    ) -> Result<(Spawned, Url), ConnectFailure> {
        let deadline = Instant::now() + self.budget;
        let (found, mut location) = mpsc::channel(1);
        let spoke = Arc::new(Notify::new());
        let (speaks, locates) = (Arc::clone(&spoke), locate.cloned());
        let watcher: OutputWatcher = Arc::new(move |line: &[u8]| {
            if let Some(url) = locates.as_ref().and_then(|locate| locate(line)) {
                // Full means that an earlier line told it.
                let _ = found.try_send(url);
            }
            speaks.notify_one();
        });
        // Otherwise we would test whatever listens there, and call it this server.
        if locate.is_none() && self.stays_taken(endpoint.url.clone()).await? {
            return Err(ConnectFailure::AddressTaken { url: endpoint.url.to_string() });
        }
        let (process, stdin, stdout) = Process::start(launch, &self.options.guardian, self.tap, Some(Arc::clone(&watcher))).await?;
        // Ends with the pipe, at the latest when the whole process group is ended.
        tokio::spawn(copy_output(stdout, self.tap.clone(), Stream::Stdout, Some(watcher)));
        let mut spawned = Spawned { process, stdin, other: None };
        let mut exit = spawned.process.watch_exit();
        let mut known = locate.is_none().then(|| endpoint.url.clone());
        let mut other = None;
        let ready = async {
            let url = match &known {
                Some(url) => url.clone(),
                None => location.recv().await.ok_or(ConnectFailure::NotLocated { after: self.budget })?,
            };
            known = Some(url.clone());
            if locate.is_some() {
                *self.located.lock().unwrap_or_else(PoisonError::into_inner) = ListedHost::of(&url);
            }
            let exchanger = self.exchanger(url.clone())?;
            let started = Instant::now();
            let mut heard = 0;
            let mut other_since = None;
            loop {
                // Never at once, and seldom where a server takes its time: each attempt costs both of us. Most print something
                // as soon as they listen, though others never stop.
                let pause = sleep((started.elapsed() / 4).clamp(Duration::from_millis(2), Duration::from_millis(50)));
                tokio::select! {
                    () = spoke.notified(), if heard < MAX_HEARD => heard += 1,
                    () = pause => {}
                }
                // A line may tell the port of somebody else, who gets no request. Only the free port was nobody's before.
                if locate.is_some() && self.is_of_others(&url, spawned.process.group()) {
                    continue;
                }
                if exchanger.accepts().await.is_ok() {
                    other = other_at(&url, spawned.process.group());
                    if other.is_none() || other_since.get_or_insert_with(Instant::now).elapsed() >= OTHER_LISTENER {
                        break;
                    }
                }
            }
            Ok(url)
        };
        let outcome = tokio::select! {
            biased;
            Some(exit) = exited(&mut exit) => Err(ConnectFailure::Exited { exit, stage: "it accepted connections".into() }),
            ready = timeout_at(deadline, ready) => ready.unwrap_or_else(|_| Err(match &known {
                None => ConnectFailure::NotLocated { after: self.budget },
                Some(url) => ConnectFailure::NotListening {
                    url: url.to_string(),
                    after: self.budget,
                    elsewhere: listening_addresses(spawned.process.group()),
                },
            })),
        };
        let outcome = match (outcome, &other) {
            (Ok(url), Some(owner)) if !owner.forwards_to_containers() => {
                Err(ConnectFailure::OtherListens { url: url.to_string(), owner: owner.to_string(), failure: None })
            }
            (outcome, _) => outcome,
        };
        match outcome {
            Ok(url) => {
                if let Some(owner) = &other {
                    self.tap.note(format!("{owner} listens at {url}, and no process of the server that was started"));
                }
                spawned.other = other.map(|owner| (url.to_string(), owner.to_string()));
                Ok((spawned, url))
            }
            Err(failure) => {
                spawned.discard(self.options.patience).await;
                Err(failure)
            }
        }
    }

    /// Whether something listens there that is surely not the server. Where any host may be reached, that of a container may.
    fn is_of_others(&self, url: &Url, server: i32) -> bool {
        let Some((port, host)) = local_port(url) else { return false };
        let is_container = || other_listener(port, host, server).is_some_and(|owner| owner.forwards_to_containers());
        listens_at(port, host, server) == Some(false) && (self.options.network.destinations != Destinations::Any || !is_container())
    }

    fn exchanger(&self, url: Url) -> Result<Exchanger, AddressFailure> {
        Exchanger::new(&Endpoint { url, headers: Vec::new() }, self.options.limits, &self.network(), self.tap)
    }

    /// A handshake of the modern era, and of no other.
    pub(super) async fn discover(
        &self,
        attempt: &Attempt,
        transport: Transport,
        spawned: Option<&Spawned>,
    ) -> Result<Handshake, ConnectFailure> {
        match self.probe(attempt, transport, spawned, self.probe_budget()).await? {
            ProbeOutcome::Modern(handshake) => Ok(*handshake),
            ProbeOutcome::Legacy(_) | ProbeOutcome::Silent(_) => {
                Err(ConnectFailure::BadResult { method: methods::SERVER_DISCOVER, reason: "is not a modern server's".into() })
            }
        }
    }

    /// Asks `server/discover`, and tells from the response which era the server lives in.
    async fn probe(
        &self,
        attempt: &Attempt,
        transport: Transport,
        spawned: Option<&Spawned>,
        budget: Duration,
    ) -> Result<ProbeOutcome, ConnectFailure> {
        let deadline = Instant::now() + budget;
        let pinned = self.era() == EraChoice::Modern;
        let mut retried = false;
        let mut pauses = RetryPauses::default();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let (params, headers) = mirrored(&self.client, Revision::MODERN.as_str(), methods::SERVER_DISCOVER, None);
            let outgoing = Outgoing { method: methods::SERVER_DISCOVER, params: Some(params.into()), headers, resume: Resume::Never };
            let reply = attempt.wire.ask(&attempt.dispatcher, outgoing, left.into(), Era::Modern, TOO_LATE).await.map(Reply::read);
            if let Some(head) = refusal(&reply) {
                return Err(ConnectFailure::Unauthorized { method: methods::SERVER_DISCOVER, head });
            }
            let Reply { answer, http, .. } = match reply {
                Ok(reply) => reply,
                Err(failure) => match &failure {
                    CallFailure::Unanswered(Unanswered::Response { head, .. }) if matches!(head.status, 401 | 403) => {
                        return Err(ConnectFailure::Unauthorized { method: methods::SERVER_DISCOVER, head: Arc::clone(head) });
                    }
                    CallFailure::Unanswered(why) if self.is_starting(spawned, StartupError::of_request(why)) && !left.is_zero() => {
                        pauses.next().await;
                        continue;
                    }
                    CallFailure::Unanswered(Unanswered::Unreachable(_)) => {
                        return Err(ConnectFailure::Unanswered {
                            method: methods::SERVER_DISCOVER,
                            failure,
                            faults: attempt.dispatcher.faults(),
                        });
                    }
                    CallFailure::Unauthorized { .. } => {
                        return Err(ConnectFailure::Unanswered {
                            method: methods::SERVER_DISCOVER,
                            failure,
                            faults: attempt.dispatcher.faults(),
                        });
                    }
                    _ if pinned => {
                        return Err(ConnectFailure::Unanswered {
                            method: methods::SERVER_DISCOVER,
                            failure,
                            faults: attempt.dispatcher.faults(),
                        });
                    }
                    // Overloaded, or behind a gateway that is: nobody has said anything about eras.
                    CallFailure::Unanswered(Unanswered::Response { head, .. })
                        if head.status >= 500 || matches!(head.status, 408 | 429) =>
                    {
                        return Ok(ProbeOutcome::Legacy(EraEvidence::Assumed));
                    }
                    CallFailure::Lost(_) => return Ok(ProbeOutcome::Legacy(EraEvidence::Assumed)),
                    CallFailure::Unanswered(_) | CallFailure::NotAnAnswer(_) => return Ok(ProbeOutcome::Legacy(EraEvidence::Shown)),
                    CallFailure::TimedOut { .. } | CallFailure::Cancelled { .. } | CallFailure::Closed(_) => {
                        return Ok(ProbeOutcome::Silent(EraEvidence::Assumed));
                    }
                },
            };
            if let Ok(result) = &answer {
                bounded(result).map_err(|reason| ConnectFailure::BadResult { method: methods::SERVER_DISCOVER, reason })?;
            }
            let supported = match &answer {
                Ok(result) => names(result.get("supportedVersions")),
                Err(error) => names(error.data.as_ref().and_then(|data| data.get("supported"))),
            };
            let offers = |version: &str| supported.iter().any(|known| known == version);
            return match answer {
                Ok(result) if offers(Revision::MODERN.as_str()) => Ok(ProbeOutcome::Modern(Box::new(discovered(result, transport)))),
                Err(error) if MODERN_ERRORS.contains(&error.code) && offers(Revision::MODERN.as_str()) && !retried => {
                    retried = true;
                    continue;
                }
                Err(error) if http.as_ref().is_some_and(|head| head.status == 404) && error.code == error_code::METHOD_NOT_FOUND => {
                    // A modern server without discovery. It must have it; but a client may do without.
                    Ok(ProbeOutcome::Modern(Box::new(discovered(json!({}), transport))))
                }
                // Modern, or at least a reader of our `_meta`, but of other revisions; the handshake is the way to the legacy ones.
                Ok(_) | Err(RpcError { .. }) if !pinned && Revision::LEGACY.iter().any(|revision| offers(revision.as_str())) => {
                    Ok(ProbeOutcome::Silent(EraEvidence::Shown))
                }
                Err(error) if MODERN_ERRORS.contains(&error.code) => match supported.is_empty() {
                    true => Err(ConnectFailure::Refused { method: methods::SERVER_DISCOVER, error }),
                    false => Err(ConnectFailure::NoCommonVersion { supported }),
                },
                Ok(_) if !supported.is_empty() => Err(ConnectFailure::NoCommonVersion { supported }),
                Ok(_) if pinned => {
                    Err(ConnectFailure::BadResult { method: methods::SERVER_DISCOVER, reason: "has no `supportedVersions`".into() })
                }
                Err(error) if pinned => Err(ConnectFailure::Refused { method: methods::SERVER_DISCOVER, error }),
                Ok(_) | Err(_) => Ok(ProbeOutcome::Legacy(EraEvidence::Shown)),
            };
        }
    }

    pub(super) async fn initialize(
        &self,
        attempt: &Attempt,
        transport: Transport,
        spawned: Option<&Spawned>,
    ) -> Result<Handshake, ConnectFailure> {
        let mut pauses = RetryPauses::default();
        loop {
            let mut offer = self.offer();
            if self.era() != EraChoice::Legacy || pauses.begun() {
                // The probe was part of the handshake. A start that took all the time still leaves some for a response.
                offer.budget = self.budget.saturating_sub(self.began.elapsed()).max(self.budget / 4);
            }
            match self.propose(attempt, transport, &offer).await {
                Err(ConnectFailure::Unanswered { failure: CallFailure::Unanswered(why), .. })
                    if self.is_starting(spawned, StartupError::of_request(&why)) =>
                {
                    pauses.next().await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Whether to ask again, because a server that accepts connections may not answer yet: ready is who has answered.
    fn is_starting(&self, spawned: Option<&Spawned>, trouble: StartupError) -> bool {
        let patience = match (spawned, self.options.startup) {
            (Some(spawned), _) if spawned.process.exit().is_some() => return false,
            (Some(_), _) => self.budget,
            (None, Startup::Awaited(patience)) => patience,
            (None, Startup::Over) => return false,
        };
        // What we do to the messages ourselves passes with no waiting.
        trouble == StartupError::Passing && self.options.faults.is_none() && self.began.elapsed() < patience
    }

    pub(super) async fn propose(&self, attempt: &Attempt, transport: Transport, offer: &Offer) -> Result<Handshake, ConnectFailure> {
        initialize(&attempt.wire, &attempt.dispatcher, &self.client, offer, transport).await
    }

    pub(super) fn offer(&self) -> Offer {
        let version = self.options.protocol_version.clone();
        let (tasks, roots_change) = (self.options.all_answers().tasks_capability(), self.options.roots_change);
        Offer { version, insists: true, budget: self.budget, tasks, roots_change }
    }

    /// `None` also where the user sends a token of their own.
    fn authorizer(&self, endpoint: &Endpoint) -> Option<Arc<Authorizer>> {
        let options = self.options.authorization.as_ref()?;
        if endpoint.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            self.tap.note("no token is requested: the `Authorization` header is set");
            return None;
        }
        let (fallback, version) = match self.era() {
            EraChoice::Modern => (Fallback::None, Revision::MODERN),
            EraChoice::Legacy => (Fallback::OwnAuthorizationServer, Revision::LATEST_LEGACY),
            EraChoice::Auto => (Fallback::OwnAuthorizationServer, Revision::MODERN),
        };
        let version = self.options.protocol_version.as_deref().unwrap_or(version.as_str());
        let authorizer = Authorizer::new(options, &endpoint.url, fallback, self.options.limits, self.network(), self.tap, version);
        Some(Arc::new(authorizer.with_patience(self.budget)))
    }

    pub(super) fn attempt(
        &self,
        connection: Connection,
        authorizer: Option<Arc<Authorizer>>,
        dispatcher: Arc<Dispatcher>,
        queue: ServerRequests,
    ) -> Attempt {
        let wire = Arc::new(Wire::new(connection, authorizer));
        let policies = ResponsePolicies::new(self.options.answers.clone());
        let answering = Responder::start(queue, &wire, policies.clone(), self.options.all_answers().tasks);
        Attempt { wire, dispatcher, policies, answering }
    }

    pub(super) fn session(&self, attempt: Attempt, spawned: Option<Spawned>, handshake: Handshake) -> Session {
        let Attempt { wire, dispatcher, policies, answering } = attempt;
        Session {
            wire,
            spawned,
            reached: None,
            dispatcher,
            handshake,
            declared: self.client.clone(),
            client: self.options.client.clone(),
            policies,
            offer: self.offer(),
            param_headers: Mutex::default(),
            task_support: Mutex::default(),
            tap: self.tap.clone(),
            patience: self.options.patience,
            answering,
        }
    }

    /// Ends what was started, and blames the process where it is the cause.
    async fn failed(
        &self,
        attempt: Attempt,
        spawned: Option<Spawned>,
        failure: ConnectFailure,
        endpoint: Option<&Endpoint>,
    ) -> ConnectFailure {
        let exit = match &attempt.wire.connection {
            Connection::Stdio(stdio) => {
                stdio.settle().await;
                stdio.exit()
            }
            _ => None,
        };
        attempt.discard(self.options.patience).await;
        match (exit, failure) {
            // It broke a limit, was not read any further, and ended for that reason.
            (Some(_), failure) if failure.is_of_limit() => failure,
            (Some(exit), ConnectFailure::Unanswered { method, failure: CallFailure::Closed(_) | CallFailure::TimedOut { .. }, .. }) => {
                ConnectFailure::Exited { exit, stage: format!("responding to `{method}`") }
            }
            (_, failure) => {
                let failure = self.search(failure, endpoint).await;
                self.blame_process(spawned, failure, "the handshake was done").await
            }
        }
    }

    /// Whoever waits for the start of a server means to use it, and gets to know where it is. A monitor or a check only looks.
    async fn search(&self, failure: ConnectFailure, endpoint: Option<&Endpoint>) -> ConnectFailure {
        match (endpoint, self.options.startup) {
            (Some(endpoint), Startup::Awaited(_)) => search_endpoint(failure, endpoint, &self.network()).await,
            _ => failure,
        }
    }

    async fn blame_process(&self, spawned: Option<Spawned>, failure: ConnectFailure, stage: &str) -> ConnectFailure {
        let Some(spawned) = spawned else { return failure };
        spawned.process.settle().await;
        let exit = spawned.process.exit();
        let other = spawned.other.clone();
        spawned.discard(self.options.patience).await;
        match (exit, other) {
            (Some(_), _) if failure.is_of_limit() => failure,
            (Some(exit), _) => ConnectFailure::Exited { exit, stage: stage.to_owned() },
            (None, Some((url, owner))) => ConnectFailure::OtherListens { url, owner, failure: Some(Box::new(failure)) },
            (None, None) => failure,
        }
    }
}

impl Attempt {
    async fn discard(self, patience: ShutdownTimeouts) {
        let Self { wire, .. } = self;
        // A handshake that failed after its first response leaves a session behind.
        if let Connection::Http(http) = &wire.connection
            && wire.has_session()
        {
            http.delete(&wire.headers(), patience.end_of_input).await;
        }
        if let Some(Connection::Stdio(stdio)) = Arc::into_inner(wire).map(|wire| wire.connection) {
            stdio
                .close(ShutdownTimeouts { end_of_input: patience.end_of_input.min(ShutdownTimeouts::SHORT.end_of_input), ..patience })
                .await;
        }
    }
}

/// What a server does that does not answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StartupError {
    /// What those do that have not quite started: connections are refused or reset, or a gateway says so.
    Passing,
    Lasting,
}

impl StartupError {
    fn of_request(why: &Unanswered) -> Self {
        match why {
            Unanswered::Unreachable(broken) if broken.bound.is_none() => Self::Passing,
            Unanswered::Response { head, .. } if is_gateway(head.status) => Self::Passing,
            _ => Self::Lasting,
        }
    }

    fn of_stream(failure: &SseFailure) -> Self {
        match failure {
            SseFailure::Unreachable(broken) if broken.bound.is_none() => Self::Passing,
            SseFailure::NoStream(head) if is_gateway(head.status) => Self::Passing,
            _ => Self::Lasting,
        }
    }
}

/// Statuses that speak of a server behind the one that answers, or of one that is not ready.
pub fn is_gateway(status: u16) -> bool {
    matches!(status, 502..=504)
}

/// Between attempts at a server that is about to start: growing, since each of them costs both sides.
#[derive(Default)]
struct RetryPauses(u32);

impl RetryPauses {
    async fn next(&mut self) {
        const FIRST: Duration = Duration::from_millis(50);
        const LONGEST: Duration = Duration::from_millis(500);
        sleep((FIRST * (self.0 + 1)).min(LONGEST)).await;
        self.0 += 1;
    }

    fn begun(&self) -> bool {
        self.0 > 0
    }
}

impl Spawned {
    async fn discard(self, patience: ShutdownTimeouts) {
        let Self { process, stdin, .. } = self;
        process.shut_down(async { drop(stdin) }, StdinUse::Held, patience).await;
    }
}
