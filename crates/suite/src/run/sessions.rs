//! The sessions of a case: opened when a step first needs them, each on a fresh server.

use super::RunOptions;
use super::address_locks::{AddressLock, AddressLocks};
use super::audit::{Audits, rewrite};
use super::case::{RunContext, of_fault, unless_allowed};
use super::expand::{Work, binding};
use super::locate::locate;
use super::resilience::RetryState;
use super::starting::StartingSession;
use super::starts::{Start, StartKey, Starts, is_of_start};
use super::step::{Outputs, Waiting};
use super::subscriptions::Subscriptions;
use crate::plan::{self, Action, BESIDE, Binding, Inherited, Isolation, Server, Step};
use crate::{TMP, interpolate_text};
use mcproof_analysis::diagnosis::{self, Audience};
use mcproof_client::auth::{Authorization, TokenStore};
use mcproof_client::{
    Answers, BaseEnvironment, ConnectFailure, ConnectOptions, Deadline, Destinations, Endpoint, EraEvidence, FaultInjector, FaultRule,
    FrameObserver, Handshake, Launch, ListedHost, Network, Proxies, Session, SessionEnd, ShutdownTimeouts, Tap, TapBounds, Target,
    URL_HINT, open_session, server_url,
};
use mcproof_protocol::{Era, EraChoice};
use mcproof_record::{CaseId, Diagnostic, Exchange, Frame, FrameId, Place, SessionTranscript, Severity, Transcript};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// A session that is open.
pub(super) struct Open {
    /// The first frame of the case that uses it now: what came after the judgment of the one before is its own.
    pub(super) since: FrameId,
    /// The first frame that no judgment has seen yet.
    pub(super) judged: FrameId,
    pub(super) session: Session,
    pub(super) tap: Tap,
    /// Kept until the server has left its fixed address.
    pub(super) turn: Option<AddressLock>,
    pub(super) outputs: Outputs,
    pub(super) subscriptions: Subscriptions,
    pub(super) target: Target,
    /// Unique in the run.
    pub(super) number: u64,
    pub(super) guard: RetryState,
    /// Set where faults are asked for.
    pub(super) injector: Option<FaultInjector>,
    /// Messages that were disturbed before the case that uses it now.
    pub(super) injected_before: u64,
    /// A step has closed its stdin, or sent a signal.
    pub(super) told_to_end: AtomicBool,
    /// The last step that did so while it was running.
    pub(super) ended_by: Mutex<Option<Place>>,
    /// Its handshake, where cases before the one that uses it now have used it.
    pub(super) opening: Option<Arc<[Frame]>>,
    /// The first frame after its handshake.
    opened: FrameId,
    /// Its first frame: after those of a session in whose place it is.
    pub(super) begins: FrameId,
    user: SessionUser,
}

/// The case that uses a session now, by the number of its id.
type SessionUser = Arc<AtomicU32>;

impl Open {
    /// Hands it on to another case.
    pub(super) fn begin_case(&mut self, case: CaseId) {
        self.user.store(case.0, Ordering::Relaxed);
        if self.opening.is_none() {
            let mut opening = self.tap.transcript().frames;
            opening.retain(|frame| frame.id < self.opened);
            self.opening = Some(opening.into());
        }
        self.since = self.judged;
        self.injected_before = injected(self.injector.as_ref());
    }

    /// What is left to judge of it once it has ended.
    pub(super) fn record(&self) -> SessionRecord {
        let Self { since, tap, opening, begins, .. } = self;
        SessionRecord { since: *since, begins: *begins, tap: tap.clone(), opening: opening.clone(), spoke: self.spoke() }
    }

    /// Transport and revision.
    pub(super) fn spoke(&self) -> (String, String) {
        let handshake = self.session.handshake();
        (handshake.transport.to_string(), handshake.protocol_version.clone())
    }

    /// The same, if all of its traffic is of this case, and undisturbed.
    fn spoke_alone(&self) -> Option<(String, String)> {
        (self.injector.is_none() && self.begins == FrameId(0) && self.opening.is_none()).then(|| self.spoke())
    }

    /// How many messages of this case were disturbed.
    pub(super) fn injected(&self) -> u64 {
        injected(self.injector.as_ref()) - self.injected_before
    }
}

/// What went over a session, which may have ended.
pub(super) struct SessionRecord {
    /// The first frame that is to be judged.
    pub(super) since: FrameId,
    pub(super) begins: FrameId,
    pub(super) tap: Tap,
    pub(super) opening: Option<Arc<[Frame]>>,
    /// Transport and revision.
    pub(super) spoke: (String, String),
}

/// A session that is no more.
pub(super) struct EndedSession {
    pub(super) transcript: SessionTranscript,
    pub(super) life: SessionOutcome,
    /// Transport and revision, where rules can be held against it.
    pub(super) spoke: Option<(String, String)>,
}

/// A session in whose place another one is.
pub(super) struct Renewed {
    /// Transport and revision.
    pub(super) spoke: (String, String),
    pub(super) transcript: Transcript,
}

/// How far a session got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionOutcome {
    /// It was open, and was ended in order.
    Ended,
    NeverOpened,
    /// It did not open, and faults were injected on the way.
    NeverOpenedUnderFaults,
}

impl EndedSession {
    fn never_opened(server: &Server, transcript: Transcript, injector: Option<&FaultInjector>) -> Self {
        let life = if injected(injector) > 0 { SessionOutcome::NeverOpenedUnderFaults } else { SessionOutcome::NeverOpened };
        Self { transcript: SessionTranscript { server: server.name.clone(), transcript }, life, spoke: None }
    }
}

/// The server of a session, as [`Step::conversation`] names it.
pub(super) fn server_of(conversation: &str) -> &str {
    conversation.split_once(BESIDE).map_or(conversation, |(server, _)| server)
}

/// How many messages were disturbed so far.
pub(super) fn injected(injector: Option<&FaultInjector>) -> u64 {
    injector.map(|injector| injector.hits().iter().sum()).unwrap_or_default()
}

/// The sessions of a case, opened when a step first needs them.
pub(super) struct Sessions<'a> {
    pub(super) work: &'a Work,
    pub(super) options: &'a RunOptions,
    pub(super) turns: AddressLocks,
    pub(super) open: BTreeMap<String, Open>,
    /// Sessions that did not open, or are over.
    pub(super) past: Vec<EndedSession>,
    /// What went over the last session that another one took the place of, for each server.
    pub(super) renewed: BTreeMap<String, Renewed>,
    /// `${tmp}`, if the suite speaks of it.
    pub(super) tmp: Option<Arc<TempDir>>,
    /// A session that is being opened since before the case had its turn.
    pub(super) warm: Option<StartingSession>,
    pub(super) audits: Audits,
    /// Faults of earlier sessions that the case accepts.
    pub(super) allowed: Vec<Diagnostic>,
    starts: Starts,
    /// Whether the faults that the plan asks for are injected.
    pub(super) injects: bool,
    /// Of servers that are being started again: their faults go on where they were.
    injectors: BTreeMap<String, FaultInjector>,
    /// Knows the secrets of commands that were run, and tells them to the taps of servers, which know their own ones.
    pub(super) keeper: Tap,
}

impl<'a> Sessions<'a> {
    pub(super) fn new(
        work: &'a Work,
        world: &'a RunContext,
        open: BTreeMap<String, Open>,
        tmp: Option<Arc<TempDir>>,
        warm: Option<StartingSession>,
    ) -> Self {
        let (options, turns, audits, starts) = (&world.options, world.turns.clone(), world.audits.clone(), world.starts.clone());
        let (past, injectors) = (Vec::new(), BTreeMap::new());
        let keeper = Tap::with(TapBounds::default(), options.secrets.clone(), None);
        let (renewed, allowed) = (BTreeMap::new(), Vec::new());
        Self { work, options, turns, open, past, renewed, tmp, warm, audits, allowed, starts, injects: true, injectors, keeper }
    }

    pub(super) async fn of(&mut self, name: &str) -> Result<&Open, Box<Diagnostic>> {
        if !self.open.contains_key(name) {
            let server = self.work.suite.servers.get(name).expect("the parser takes no step with an unknown server");
            let open = match self.warm.take_if(|warm| warm.server() == name) {
                Some(warm) => warm.open(&mut self.past).await?,
                None => self.open(server).await?,
            };
            self.open.insert(name.to_owned(), open);
        }
        Ok(&self.open[name])
    }

    /// Opens what a step uses.
    pub(super) async fn ready(&mut self, step: &Step) -> Result<(), Box<Diagnostic>> {
        let (Some(server), Some(key)) = (&step.server, step.conversation()) else { return Ok(()) };
        self.of(server).await?;
        if self.open.contains_key(&key) {
            return Ok(());
        }
        // The first session knows where the server listens.
        let reached = self.open[server].session.reached().cloned();
        let server = &self.work.suite.servers[server];
        let binding = binding(server, self.work.transport);
        let fail = |diagnostic: Diagnostic| Box::new(diagnostic.at(step.place.clone()));
        let Some((endpoint, kind)) = reached else {
            return Err(fail(Diagnostic::error("one-session", "over this transport a server has one session")));
        };
        let target = Target::Http { endpoint, kind: Some(kind), launch: None, locate: None };
        let (tap, user) = self.new_tap(&key, binding, &target);
        match open_session(&target, &self.connect_options(server, binding, &target), &tap).await {
            Ok(session) => {
                let open = self.opened_on(session, (tap, user), None, target, None, FrameId(0));
                self.open.insert(key, open);
                Ok(())
            }
            Err(failure) => Err(fail(self.never_opened(server, &failure, &target, &tap, None))),
        }
    }

    /// Ends the sessions with a server that are not its first one.
    async fn end_others(&mut self, name: &str) {
        let others: Vec<String> = self.open.keys().filter(|key| server_of(key) == name && *key != name).cloned().collect();
        for key in others {
            let Some(open) = self.open.remove(&key) else { continue };
            let spoke = open.spoke_alone();
            let Open { session, tap, subscriptions, .. } = open;
            drop(subscriptions);
            session.close().await;
            self.past.push(EndedSession {
                transcript: SessionTranscript { server: key, transcript: tap.transcript() },
                life: SessionOutcome::Ended,
                spoke,
            });
        }
    }

    /// A session that [`Sessions::of`] has opened.
    pub(super) fn opened(&self, name: &str) -> &Open {
        &self.open[name]
    }

    /// How long a step may take.
    pub(super) fn deadline(&self, step: &Step) -> Deadline {
        let timeouts = &self.work.suite.timeouts;
        let of_tool = match &step.action {
            Action::Call { tool, .. } => timeouts.tools.get(tool).copied(),
            _ => None,
        };
        let idle = step.timeout.or(of_tool).or(self.options.request_timeout).unwrap_or(timeouts.request);
        Deadline { idle, maximum: step.max_timeout.or(timeouts.max) }
    }

    /// How long the step waits for what is to follow.
    pub(super) fn waiting(&self, step: &Step) -> Waiting {
        Waiting { deadline: self.deadline(step).idle, settle: self.work.suite.timeouts.settle }
    }

    /// Ends the server in order and starts it anew. What was wrong with its first life is reported now.
    pub(super) async fn restart(&mut self, name: &str) -> Result<(), Box<Diagnostic>> {
        self.end_others(name).await;
        if let Some(open) = self.open.remove(name) {
            let spoke = open.spoke_alone();
            let Open { session, tap, turn, subscriptions, since, injector, .. } = open;
            drop(subscriptions);
            self.injectors.extend(injector.map(|injector| (name.to_owned(), injector)));
            let fault = session.faults().into_iter().find(|fault| fault.frame >= since);
            session.close().await;
            drop(turn);
            let transcript = tap.transcript();
            let fault = fault.map(|fault| of_fault(&fault, &transcript));
            let transcript = SessionTranscript { server: name.to_owned(), transcript };
            self.past.push(EndedSession { transcript, life: SessionOutcome::Ended, spoke });
            if let Some(fault) = fault {
                self.allow(fault)?;
            }
        }
        self.of(name).await.map(drop)
    }

    /// Keeps a fault as a warning, unless the case is to fail for it.
    fn allow(&mut self, fault: Diagnostic) -> Result<(), Box<Diagnostic>> {
        let judged = unless_allowed(self.work.case(), fault);
        if judged.severity == Severity::Error {
            return Err(Box::new(judged));
        }
        self.allowed.push(judged);
        Ok(())
    }

    /// What a step found, without the secrets of its servers and commands: values are compared as they came, and only the wire has been
    /// cleaned before.
    pub(super) fn without_secrets(&self, diagnostic: Diagnostic) -> Diagnostic {
        diagnostic.map_text(|text| self.cleaned(text))
    }

    /// The same for a value that is to be kept.
    pub(super) fn without_secrets_in(&self, value: Value) -> Value {
        rewrite(value, &|text| self.cleaned(text))
    }

    /// The same for what a step sent.
    pub(super) fn hide_secrets(&self, exchanges: &mut [Exchange]) {
        for exchange in exchanges {
            exchange.target = exchange.target.take().map(|target| self.cleaned(target));
            let sent = std::mem::take(&mut exchange.arguments);
            exchange.arguments = sent.into_iter().map(|(name, value)| (self.cleaned(name), self.without_secrets_in(value))).collect();
        }
    }

    fn cleaned(&self, text: String) -> String {
        self.open.values().map(|open| &open.tap).chain([&self.keeper]).fold(text, |text, tap| tap.redacted(text))
    }

    pub(super) async fn open(&mut self, server: &Server) -> Result<Open, Box<Diagnostic>> {
        let binding = binding(server, self.work.transport);
        let fail = |diagnostic: Diagnostic| Box::new(diagnostic.at(binding.place.clone()));
        let (target, turn) = self.target(binding).await.map_err(fail)?;
        let (tap, user) = self.new_tap(&server.name, binding, &target);
        let injector = self.injector(&server.name, binding);
        let mut connect = ConnectOptions { faults: injector.clone(), ..self.connect_options(server, binding, &target) };
        let start = match injector {
            // Faults may be why it fails, and are no reason not to start it.
            Some(_) => None,
            None => self.begin_start(server, binding).await.map_err(fail)?,
        };
        if connect.era == EraChoice::Auto && connect.protocol_version.is_none() && start.as_ref().is_some_and(Start::ignores_discovery) {
            tap.note("the server did not respond to `server/discover` at its last two starts: `initialize` is sent first");
            connect.era = EraChoice::Legacy;
        }
        match open_session(&target, &connect, &tap).await {
            Ok(session) => {
                let Handshake { era_evidence, lost_to_discovery, .. } = session.handshake();
                let ignored_discovery = *era_evidence == EraEvidence::Assumed && !lost_to_discovery.is_zero();
                start.into_iter().for_each(|start| start.opened(ignored_discovery));
                Ok(self.opened_on(session, (tap, user), turn, target, injector, FrameId(0)))
            }
            Err(failure) => {
                let diagnostic = self.never_opened(server, &failure, &target, &tap, injector.as_ref());
                if let Some(start) = start.filter(|_| is_of_start(&failure)) {
                    start.failed(&self.work.plan, &diagnostic);
                }
                Err(fail(diagnostic))
            }
        }
    }

    /// Says that a server is being started. `None` where a command of the case may make it another one than that of other cases, and
    /// where there is nothing to start.
    async fn begin_start(&mut self, server: &Server, binding: &Binding) -> Result<Option<Start>, Diagnostic> {
        let (case, suite) = (self.work.case(), &self.work.suite);
        let steps = [&case.hooks, &suite.shared].into_iter().flat_map(|hooks| hooks.setup.iter().chain(&hooks.teardown));
        let runs_commands = steps.chain(&case.steps).flat_map(Step::leaves).any(|step| matches!(step.action, Action::Run(_)));
        let Some(launch) = binding.launch.clone().filter(|_| !runs_commands) else { return Ok(None) };
        let timeout = self.options.connect_timeout.unwrap_or(suite.timeouts.connect);
        let handshake = format!("{:?}", (server.era, &server.protocol_version, &case.answers, self.later_answers(), timeout));
        let key = StartKey { launch, url: binding.url.clone(), transport: binding.transport, handshake };
        let attempts = case.retries.most.saturating_add(1);
        match self.starts.begin(key, attempts).await {
            Ok(start) => Ok(Some(start)),
            Err(first) => {
                self.past.push(EndedSession::never_opened(server, Transcript::default(), None));
                Err(first.diagnostic())
            }
        }
    }

    /// For a session that the case calls by this name.
    fn new_tap(&self, name: &str, binding: &Binding, target: &Target) -> (Tap, SessionUser) {
        let user = SessionUser::new(AtomicU32::new(self.work.plan.id.0));
        let observer = self.options.watcher.clone().map(|watcher| -> FrameObserver {
            let (user, name) = (Arc::clone(&user), name.to_owned());
            Box::new(move |frame| watcher(CaseId(user.load(Ordering::Relaxed)), &name, frame))
        });
        let tap = Tap::with(self.options.limits.or(binding.reach.limits).tap_bounds(), target.secrets(), observer);
        tap.keep_secrets_of(&self.keeper);
        (tap, user)
    }

    /// Keeps the wire of a session that did not open, and reports why.
    fn never_opened(
        &mut self,
        server: &Server,
        failure: &ConnectFailure,
        target: &Target,
        tap: &Tap,
        injector: Option<&FaultInjector>,
    ) -> Diagnostic {
        let transcript = tap.transcript();
        let mut diagnostic = diagnosis::of_connect_failure(failure, target, &transcript, Audience::Suite);
        // Where the server says why it ended, it is not because others run at the same time.
        let is_explained = || diagnosis::missing_piece(&transcript, |name| Some(name.to_owned())).is_some();
        if self.options.jobs > 1 && matches!(failure, ConnectFailure::Exited { .. }) && !is_explained() {
            diagnostic.hint = diagnostic.hint.map(|hint| hint + "; use --jobs 1 if the server cannot run more than once at the same time");
        }
        self.past.push(EndedSession::never_opened(server, transcript, injector));
        diagnostic.map_text(|text| tap.redacted(text))
    }

    fn opened_on(
        &self,
        session: Session,
        (tap, user): (Tap, SessionUser),
        turn: Option<AddressLock>,
        target: Target,
        injector: Option<FaultInjector>,
        since: FrameId,
    ) -> Open {
        let (outputs, subscriptions) = (Outputs::default(), Subscriptions::default());
        let (number, guard) = (self.audits.next_session(), RetryState::default());
        let told_to_end = AtomicBool::new(false);
        let opened = tap.mark();
        Open {
            since,
            judged: since,
            session,
            tap,
            turn,
            outputs,
            subscriptions,
            target,
            number,
            guard,
            injector,
            injected_before: 0,
            told_to_end,
            ended_by: Mutex::default(),
            opening: None,
            opened,
            begins: FrameId(0),
            user,
        }
    }

    fn connect_options(&self, server: &Server, binding: &Binding, target: &Target) -> ConnectOptions {
        ConnectOptions {
            era: self.options.era.unwrap_or(server.era),
            protocol_version: self.options.protocol_version.clone().or_else(|| server.protocol_version.clone()),
            timeout: Some(self.options.connect_timeout.unwrap_or(self.work.suite.timeouts.connect)),
            startup: self.options.startup,
            patience: self.patience(),
            guardian: self.options.guardian.clone(),
            answers: self.work.case().answers.clone(),
            later_answers: self.later_answers(),
            limits: self.options.limits.or(binding.reach.limits).limits(),
            network: self.network(binding, target),
            authorization: self.authorization(binding),
            ..ConnectOptions::default()
        }
    }

    /// All that a step lets a server ask for, of all cases that share it: a legacy server is told once, when a session opens.
    fn later_answers(&self) -> Answers {
        let (case, suite) = (self.work.case(), &self.work.suite);
        let beside = suite.cases.iter().filter(|other| case.isolation == Isolation::File && other.isolation == Isolation::File);
        let cases = || [case].into_iter().chain(beside.clone());
        let hooks = cases().map(|case| &case.hooks).chain([&suite.shared]);
        let around = hooks.flat_map(|hooks| hooks.setup.iter().chain(&hooks.teardown));
        let of_steps = cases().flat_map(|case| &case.steps).chain(around).filter_map(|step| step.answers.as_ref());
        cases().map(|case| &case.answers).chain(of_steps).fold(Answers::default(), Answers::or)
    }

    /// The faults of the transport, then those of the case.
    fn injector(&mut self, server: &str, binding: &Binding) -> Option<FaultInjector> {
        let faults = binding.reach.faults.iter().chain(&self.work.case().faults);
        let rules: Vec<FaultRule> = faults.map(|fault| fault.rule.clone()).collect();
        let fresh = || (self.injects && !rules.is_empty()).then(|| FaultInjector::new(rules));
        self.injectors.remove(server).or_else(fresh)
    }

    /// Puts a fresh session in the place of one that is open, on the same server process where the transport allows.
    pub(super) async fn renew(&mut self, name: &str) -> Result<SessionEnd, Box<Diagnostic>> {
        let Some(open) = self.open.get(name).filter(|_| server_of(name) == name) else { return Ok(SessionEnd::NoSession) };
        // It would go away with the session.
        let fault = open.session.faults().into_iter().find(|fault| fault.frame >= open.since);
        if let Some(fault) = fault.map(|fault| of_fault(&fault, &open.tap.transcript())) {
            self.allow(fault)?;
        }
        let server = self.work.suite.servers.get(name).expect("only servers of the suite are open");
        let binding = binding(server, self.work.transport);
        let Some(open) = self.open.remove(name) else { return Ok(SessionEnd::NoSession) };
        if self.options.judge.is_some() && open.injector.is_none() {
            let transcript = open.tap.transcript_since(open.begins);
            self.renewed.insert(name.to_owned(), Renewed { spoke: open.spoke(), transcript });
        }
        let Open { since, session, tap, turn, target, injector, subscriptions, user, .. } = open;
        drop(subscriptions);
        let era = match session.handshake().era {
            Era::Legacy => EraChoice::Legacy,
            Era::Modern => EraChoice::Modern,
        };
        let connect = ConnectOptions { era, faults: injector.clone(), ..self.connect_options(server, binding, &target) };
        let begins = tap.mark();
        match session.renew(&connect, &tap).await {
            Ok((session, farewell)) => {
                let open = Open { begins, ..self.opened_on(session, (tap, user), turn, target, injector, since) };
                self.open.insert(name.to_owned(), open);
                Ok(farewell)
            }
            Err(failure) => {
                let diagnostic = self.never_opened(server, &failure, &target, &tap, injector.as_ref());
                Err(Box::new(diagnostic.at(binding.place.clone())))
            }
        }
    }

    /// What the command line asks for goes before what the suite declares; the environment goes last.
    fn network(&self, binding: &Binding, target: &Target) -> Network {
        let reach = &binding.reach;
        let Network { proxies, tls, connect, destinations, reuse } = self.options.network.clone();
        let proxies = match (&reach.proxy, proxies) {
            (Some(proxy), Proxies::Variables(_)) => proxy.clone(),
            (_, proxies) => proxies,
        };
        let destinations = if reach.destinations == Destinations::Any { destinations } else { reach.destinations.clone() };
        // What is started for the case listens on a port that nothing could list; one that the server chooses itself joins when it is known.
        let destinations = match target {
            Target::Http { endpoint, locate: None, .. } if binding.launch.is_some() => {
                ListedHost::of(&endpoint.url).into_iter().fold(destinations, Destinations::with)
            }
            _ => destinations,
        };
        Network { proxies, tls: reach.tls.clone().unwrap_or(tls), connect, destinations, reuse }
    }

    fn authorization(&self, binding: &Binding) -> Option<Authorization> {
        match binding.reach.authorization.clone() {
            // A server of this case alone may have an authorization server of its own, and its client is another there.
            Some(authorization) if binding.launch.is_some() => Some(Authorization { store: TokenStore::default(), ..authorization }),
            Some(authorization) => Some(authorization),
            None => self.options.authorization.clone().filter(|_| {
                // Somebody is let in there already.
                !binding.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
            }),
        }
    }

    fn patience(&self) -> ShutdownTimeouts {
        let shutdown = self.work.suite.timeouts.shutdown;
        shutdown.map_or(self.options.patience, |time| ShutdownTimeouts { end_of_input: time, terminate: time })
    }

    /// What steps and commands may use besides what they save.
    pub(super) fn builtins(&self) -> Map<String, Value> {
        self.tmp.iter().map(|tmp| (TMP.to_owned(), json!(tmp.path().to_string_lossy()))).collect()
    }

    fn launch(&self, planned: &plan::Launch, scope: &Map<String, Value>) -> Result<Launch, Diagnostic> {
        let launch = fill_launch(planned, self.options.mcproof.as_deref(), scope)?;
        match &self.options.launcher {
            Some(launcher) => launcher(Launch { folder: launch.folder.filter(|_| planned.cwd.is_some()), ..launch }),
            None => Ok(launch),
        }
    }

    /// Fills in the port, and waits for the turn at a fixed address.
    async fn target(&self, binding: &Binding) -> Result<(Target, Option<AddressLock>), Diagnostic> {
        let mut scope = self.builtins();
        if binding.port_from.is_none() && needs_port(binding) {
            scope.insert("port".into(), json!(free_port()?));
        }
        let launch = binding.launch.as_ref().map(|launch| self.launch(launch, &scope)).transpose()?;
        let target = reached(binding, launch, &scope)?;
        let turn = match &target {
            Target::Http { endpoint, .. } if is_fixed(binding) => {
                Some(self.turns.at(&endpoint.url[url::Position::BeforeHost..url::Position::AfterPort]).await)
            }
            _ => None,
        };
        Ok((target, turn))
    }
}

/// Where a server is, once its command is filled in.
fn reached(binding: &Binding, launch: Option<Launch>, scope: &Map<String, Value>) -> Result<Target, Diagnostic> {
    let Some(template) = &binding.url else {
        return Ok(Target::Stdio(launch.expect("the parser takes no binding without command and url")));
    };
    let parse = |text: &str| server_url(text).map_err(|bad| Diagnostic::error("bad-url", format!("`{text}` {bad}")).hint(URL_HINT));
    let (url, locate) = match &binding.port_from {
        Some(pattern) => {
            let locate = locate(pattern.clone(), template.clone());
            // Only its form counts: the real port is not known before the server tells it.
            let scope = Map::from_iter([("port".to_owned(), json!(1))]);
            (parse(&fill(template, &scope)?)?, Some(locate))
        }
        None => (parse(&fill(template, scope)?)?, None),
    };
    let endpoint = Endpoint { url, headers: binding.headers.clone() };
    Ok(Target::Http { endpoint, kind: Some(binding.transport), launch, locate })
}

/// The server of a binding outside of a run, such as one that is monitored. Where it is started by us, its port is a free one.
///
/// # Errors
/// The binding has variables that nobody knows there, or is not a valid URL; or there is no free port.
pub fn target_of(binding: &Binding, own_binary: Option<&Path>) -> Result<Target, Diagnostic> {
    let mut scope = Map::new();
    if binding.port_from.is_none() && needs_port(binding) {
        scope.insert("port".into(), json!(free_port()?));
    }
    let launch = binding.launch.as_ref().map(|launch| fill_launch(launch, own_binary, &scope)).transpose()?;
    reached(binding, launch, &scope)
}

fn free_port() -> Result<u16, Diagnostic> {
    mcproof_client::free_port().map_err(|error| Diagnostic::error("no-free-port", format!("no free port on 127.0.0.1: {error}")))
}

/// The command with its variables filled in.
pub(super) fn fill_launch(launch: &plan::Launch, own_binary: Option<&Path>, scope: &Map<String, Value>) -> Result<Launch, Diagnostic> {
    let mut command = launch.command.iter().map(|word| fill(word, scope)).collect::<Result<Vec<_>, _>>()?;
    if let (Some(program), Some(own)) = (command.first_mut().filter(|program| *program == "mcproof"), own_binary) {
        *program = own.to_string_lossy().into_owned();
    }
    let env = launch.env.iter().map(|(name, value)| Ok((name.clone(), fill(value, scope)?))).collect::<Result<_, Diagnostic>>()?;
    let folder = match &launch.cwd {
        Some(cwd) => launch.folder.join(fill(cwd, scope)?),
        None => launch.folder.clone(),
    };
    Ok(match &launch.inherited {
        Inherited::All => Launch { command, env, folder: Some(folder), ..Launch::default() },
        Inherited::Only(inherited) => {
            let env = inherited.iter().cloned().chain(env).collect();
            Launch { command, env, folder: Some(folder), surroundings: BaseEnvironment::Nothing }
        }
    })
}

fn fill(text: &str, scope: &Map<String, Value>) -> Result<String, Diagnostic> {
    interpolate_text(text, scope).map_err(|missing| Diagnostic::error("unknown-variable", missing.to_string()))
}

/// Whether a server has to be started at this very address, so that only one can run at a time.
pub(super) fn is_fixed(binding: &Binding) -> bool {
    binding.launch.is_some() && binding.url.is_some() && binding.port_from.is_none() && !needs_port(binding)
}

fn needs_port(binding: &Binding) -> bool {
    let mentions = |text: &String| text.contains("${port}");
    binding.launch.as_ref().is_some_and(|launch| launch.command.iter().chain(launch.env.iter().map(|(_, value)| value)).any(mentions))
        || binding.url.as_ref().is_some_and(mentions)
}
