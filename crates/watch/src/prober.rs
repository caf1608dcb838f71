//! One probe of a target, and what it says about the target: facts for the state machines, evidence for people. What a probe is,
//! only the engine knows; here is decided whose fault a failure is.

mod health;
mod ours;
mod secrets;
mod sessions;
mod suite;

use crate::config::{TargetKind, TargetSpec};
use crate::moment::Moment;
use crate::push::Judgment;
use crate::state::{Observation, Policy, ProcessFacts, Verdict};
use crate::store::{Finished, Lease, ProbeEvidence, SeenContract};
use health::HealthProblem;
use mcproof_analysis::diagnosis::Audience;
use mcproof_analysis::wording::shortened;
use mcproof_client::{
    ConnectOptions, Endpoint, EraEvidence, Guardian, Network, RawHttpRequest, ShutdownTimeouts, Tap, TapBounds, Target, inherited_secrets,
    request_elsewhere,
};
use mcproof_contract as contract;
use mcproof_contract::probe::{ProbeExtent, ProbePlan, Probed, Promise, visit};
use mcproof_record::{Contract, Diagnostic, Phase, ProbeReport, ProbeVerdict, Severity};
use mcproof_suite::plan::{Binding, Server, Suite};
use mcproof_suite::run::target_of;
use ours::Canaries;
use sessions::{Earlier, KeptSessions};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::timeout;
use url::Url;

/// Of the wire of a probe that is kept: enough to see what went wrong, and little enough for thousands at once.
const KEPT: TapBounds = TapBounds { first: 64, bytes: 200 << 10 };
/// Of what a server said, as people are told it.
const MOST_CHARACTERS: usize = 500;
/// What the contract is told by, and not by whether the server works.
const DRIFT: &str = "contract-changed";

/// How probes reach the world. Clones share what they know.
#[derive(Clone)]
pub struct Prober {
    network: Network,
    guardian: Guardian,
    /// What a command that begins with `mcproof` starts.
    own_binary: Option<PathBuf>,
    canaries: Arc<Canaries>,
    prepared: Arc<Mutex<BTreeMap<String, Arc<Prepared>>>>,
    /// The contract of each target that was written last.
    written: Arc<Mutex<BTreeMap<String, String>>>,
    kept: Arc<KeptSessions>,
    /// For suites, which may name them.
    variables: Arc<BTreeMap<String, String>>,
}

/// A target with all that does not change from probe to probe.
struct Prepared {
    spec: Arc<TargetSpec>,
    options: ConnectOptions,
    promise: Result<Option<Promise>, String>,
    /// The last suite without errors.
    suite: Mutex<Option<Arc<Suite>>>,
}

/// What a probe came to, before it is somebody's result.
struct Outcome {
    verdict: Verdict,
    layer: Option<String>,
    report: ProbeReport,
    contract: Option<(Contract, EraEvidence)>,
    process: Option<ProcessFacts>,
}

impl Prober {
    /// `canaries` are `host:port` that is reachable while the monitor's own network works.
    pub fn new(mut network: Network, guardian: Guardian, own_binary: Option<PathBuf>, canaries: Vec<String>) -> Self {
        // Whoever comes back with a ticket is not shown the certificate.
        network.tls.drop_tickets();
        let canaries = Arc::new(Canaries::new(canaries));
        Self {
            network,
            guardian,
            own_binary,
            canaries,
            prepared: Arc::default(),
            written: Arc::default(),
            kept: Arc::default(),
            variables: Arc::default(),
        }
    }

    /// What `${env.NAME}` is in the suites of targets.
    #[must_use]
    pub fn with_variables(self, variables: BTreeMap<String, String>) -> Self {
        Self { variables: Arc::new(variables), ..self }
    }

    /// What is known of targets that are no more, and their processes if those lived on.
    pub(crate) fn forget_others(&self, targets: &BTreeMap<String, Arc<TargetSpec>>) {
        self.kept.end_others(targets);
        lock(&self.prepared).retain(|name, _| targets.contains_key(name));
        lock(&self.written).retain(|name, _| targets.contains_key(name));
    }

    /// Probes within the deadline of the target, whatever the server does.
    pub async fn probe(&self, spec: &Arc<TargetSpec>, lease: &Lease, now: Moment) -> Finished {
        let prepared = self.prepared(spec);
        let (earlier, mut tap) = (self.kept.take(spec), Tap::with(KEPT, Vec::new(), None));
        if let Earlier::Alive(session) = &earlier {
            tap = session.tap().clone();
        }
        let outcome = match timeout(spec.deadline(), self.attempt(&prepared, earlier, &tap, now)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                if spec.keep {
                    self.kept.died(spec);
                }
                hung(spec, &tap)
            }
        };
        self.finished(&prepared, lease, now, outcome, &tap)
    }

    /// What follows from what a job has said.
    pub(crate) fn judged(&self, spec: &Arc<TargetSpec>, lease: &Lease, now: Moment, judgement: Result<Judgment, String>) -> Finished {
        let prepared = self.prepared(spec);
        let mut report = ProbeReport::new(spec.name.clone());
        let (verdict, layer) = match judgement {
            Ok(Judgment::Well) => (Verdict::Up, None),
            Ok(Judgment::Waiting) => {
                report.blame(
                    Diagnostic::warning("job-report-pending", "the job has not reported yet; its first report is not due"),
                    ProbeVerdict::Warning,
                );
                (Verdict::Warning, None)
            }
            Ok(Judgment::Wrong { code, message, hint }) => {
                report.blame(Diagnostic::error(code, message).hint(hint), ProbeVerdict::Unhealthy);
                (Verdict::Down, Some("report".to_owned()))
            }
            Ok(Judgment::Unknown(why)) => {
                let diagnostic = Diagnostic::error("job-schedule-unreadable", format!("cannot evaluate the schedule of the job: {why}"));
                report.blame(
                    diagnostic.hint("correct `cron` or `zone`, or install the time zone database on this machine"),
                    ProbeVerdict::Unreachable,
                );
                (Verdict::Inconclusive, None)
            }
            Err(why) => {
                let diagnostic = Diagnostic::error("job-report-unreadable", format!("cannot read the report of the job: {why}"));
                report.blame(diagnostic, ProbeVerdict::Unreachable);
                (Verdict::Inconclusive, None)
            }
        };
        let outcome = Outcome { verdict, layer, report, contract: None, process: None };
        self.finished(&prepared, lease, now, outcome, &Tap::with(KEPT, Vec::new(), None))
    }

    /// The contract that came with a result is in the store: it need not be sent again.
    pub fn remember(&self, finished: &Finished) {
        if let (Some(hash), false) = (&finished.observation.contract, finished.contracts.is_empty()) {
            lock(&self.written).insert(finished.lease.target.clone(), hash.clone());
        }
    }

    fn prepared(&self, spec: &Arc<TargetSpec>) -> Arc<Prepared> {
        let mut prepared = lock(&self.prepared);
        match prepared.get(&spec.name) {
            Some(known) if Arc::ptr_eq(&known.spec, spec) => Arc::clone(known),
            _ => {
                let fresh = Arc::new(self.prepare(spec));
                prepared.insert(spec.name.clone(), Arc::clone(&fresh));
                fresh
            }
        }
    }

    fn prepare(&self, spec: &Arc<TargetSpec>) -> Prepared {
        let mut options = ConnectOptions {
            timeout: Some(spec.timeout),
            guardian: self.guardian.clone(),
            network: Network { connect: spec.timeout.min(self.network.connect), ..self.network.clone() },
            ..ConnectOptions::default()
        };
        let mut promise = Ok(None);
        if let TargetKind::Server(server) = &spec.kind {
            let reach = server.bindings.first().map(|binding| binding.reach.clone()).unwrap_or_default();
            (options.era, options.protocol_version) = (server.era, server.protocol_version.clone());
            options.limits = reach.limits.limits();
            options.authorization = reach.authorization;
            if let Some(mut tls) = reach.tls {
                tls.drop_tickets();
                options.network.tls = tls;
            }
            options.network.proxies = reach.proxy.unwrap_or(options.network.proxies);
            options.network.destinations = reach.destinations.clone();
            promise = self.promise(spec, server);
        }
        Prepared { spec: Arc::clone(spec), options, promise, suite: Mutex::default() }
    }

    /// What a lock promises, as far as one conversation can show it.
    fn promise(&self, spec: &TargetSpec, server: &Server) -> Result<Option<Promise>, String> {
        let Some(path) = &spec.lock else { return Ok(None) };
        let shown = path.display().to_string();
        let text = mcproof_suite::bounds::read_text(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
        let lock = contract::parse(&text).map_err(|failure| format!("{shown} is not a lock file: {failure}"))?;
        let binding = server.bindings.first().ok_or("there is no way to the server")?;
        let target = target_of(binding, self.own_binary.as_deref()).map_err(|diagnostic| diagnostic.message)?;
        let promise = Promise::choose(&shown, &lock, &target, server.era);
        promise.map(Some).ok_or_else(|| format!("{shown} has no contract for this transport and era"))
    }

    async fn attempt(&self, prepared: &Arc<Prepared>, earlier: Earlier, tap: &Tap, now: Moment) -> Outcome {
        let spec = &prepared.spec;
        match &spec.kind {
            TargetKind::Monitor(url) => self.ask_monitor(prepared, url, tap).await,
            // Nobody is asked.
            TargetKind::Push { .. } => not_ours(spec, Diagnostic::error("job-unknown", "the report of the job has not been read")),
            TargetKind::Server(server) => {
                let Some(binding) = server.bindings.first() else {
                    return not_ours(spec, Diagnostic::error("no-binding", "there is no way to the server"));
                };
                match target_of(binding, self.own_binary.as_deref()) {
                    Ok(target) => self.ask_server(prepared, (server, binding), target, earlier, tap, now).await,
                    Err(diagnostic) => not_ours(spec, diagnostic),
                }
            }
        }
    }

    async fn ask_server(
        &self,
        prepared: &Arc<Prepared>,
        (server, binding): (&Server, &Binding),
        target: Target,
        earlier: Earlier,
        tap: &Tap,
        now: Moment,
    ) -> Outcome {
        target.secrets().iter().for_each(|secret| tap.keep_secret(secret));
        secrets::of(&target, &self.variables).iter().for_each(|secret| tap.keep_secret(secret));
        if binding.launch.is_some() {
            inherited_secrets(&*self.variables).iter().for_each(|secret| tap.keep_secret(secret));
        }
        let plan = ProbePlan {
            name: prepared.spec.name.clone(),
            target,
            options: prepared.options.clone(),
            timeout: prepared.spec.timeout,
            least_days: None,
            promise: prepared.promise.clone().unwrap_or_default(),
            extent: ProbeExtent::Contract,
            oddities: prepared.spec.oddities,
            audience: Audience::Monitor,
        };
        let time = UNIX_EPOCH + Duration::from_millis(now.0.unsigned_abs());
        let was_kept = !matches!(earlier, Earlier::Never);
        let (earlier, is_gone) = match earlier {
            Earlier::Alive(session) => (Some(*session), false),
            Earlier::Dead => (None, true),
            Earlier::Never => (None, false),
        };
        let (Probed { mut report, failure, contract, era_evidence }, session) = visit(&plan, earlier, tap, time).await;
        let mut process = None;
        if let Some(session) = session {
            let resident = session.resource_usage().map(|usage| usage.resident);
            process = resident.filter(|_| prepared.spec.keep).map(|resident| ProcessFacts { resident, restarted: was_kept && is_gone });
            match prepared.spec.keep && report.verdict.is_up() {
                true => self.kept.keep(&prepared.spec, session),
                false => drop(session.close_within(ShutdownTimeouts::default()).await),
            }
        }
        if prepared.spec.keep && !report.verdict.is_up() {
            self.kept.died(&prepared.spec);
        }
        if let Err(reason) = &prepared.promise {
            let diagnostic = Diagnostic::warning("lock-unusable", reason.clone()).hint("lock the contract again, or remove `lock`");
            report.blame(diagnostic, ProbeVerdict::Warning);
        }
        let mut of_suite = None;
        if let (Some(path), true) = (&prepared.spec.suite, verdict_of(&report).is_up())
            && let Some((verdict, diagnostic)) = self.run_suite(prepared, path, server, time).await
        {
            of_suite = Some(verdict);
            let told = if verdict == Verdict::Warning { ProbeVerdict::Warning } else { ProbeVerdict::Unhealthy };
            report.blame(diagnostic, told);
        }
        let is_remote = binding.launch.is_none();
        let url = match &plan.target {
            Target::Http { endpoint, .. } => Some(&endpoint.url),
            Target::Stdio(_) => None,
        };
        let (verdict, layer) = match verdict_of(&report) {
            Verdict::Down if of_suite == Some(Verdict::Inconclusive) => (Verdict::Inconclusive, None),
            Verdict::Down if of_suite.is_some() => (Verdict::Down, Some("suite".into())),
            Verdict::Down => {
                let is_ours = ours::is_ours(failure.as_ref(), tap)
                    || is_remote && report.verdict == ProbeVerdict::Unreachable && self.cut_off(url, tap).await;
                let verdict = if is_ours { Verdict::Inconclusive } else { Verdict::Down };
                (verdict, Some(layer_of(&report, url, failure.is_some(), tap)))
            }
            verdict => (verdict, None),
        };
        Outcome { verdict, layer, report, contract: contract.map(|contract| (contract, era_evidence)), process }
    }

    /// Another monitor: what counts is that it says that it is well.
    async fn ask_monitor(&self, prepared: &Prepared, url: &str, tap: &Tap) -> Outcome {
        let mut report = ProbeReport::new(prepared.spec.name.clone());
        let Ok(url) = Url::parse(url) else {
            return not_ours(&prepared.spec, Diagnostic::error("bad-url", format!("`{url}` is not a valid URL")));
        };
        let endpoint = Endpoint { url: url.clone(), headers: Vec::new() };
        let target = Target::Http { endpoint, kind: None, launch: None, locate: None };
        target.secrets().iter().for_each(|secret| tap.keep_secret(secret));
        let question = RawHttpRequest { method: "GET".into(), ..RawHttpRequest::default() };
        let asked = request_elsewhere(&url, &question, &prepared.options, tap, prepared.spec.timeout).await;
        report.duration = tap.elapsed();
        let (verdict, layer) = match asked {
            Ok(answer) if answer.head.status == 200 => match health::problem(&answer.body) {
                None => (Verdict::Up, None),
                Some(HealthProblem { message, hint }) => {
                    report.blame(Diagnostic::error("monitor-unhealthy", message).hint(hint), ProbeVerdict::Unhealthy);
                    (Verdict::Down, Some("status".to_owned()))
                }
            },
            Ok(answer) => {
                let text = String::from_utf8_lossy(&answer.body);
                let message = format!("status {}: {}", answer.head.status, text.lines().next().unwrap_or_default());
                report.blame(Diagnostic::error("monitor-unhealthy", message), ProbeVerdict::Unhealthy);
                (Verdict::Down, Some("status".to_owned()))
            }
            Err(failure) => {
                report.blame(Diagnostic::error("unreachable", failure.to_string()), ProbeVerdict::Unreachable);
                let is_ours = ours::is_ours(None, tap) || self.cut_off(Some(&url), tap).await;
                let verdict = if is_ours { Verdict::Inconclusive } else { Verdict::Down };
                (verdict, Some(layer_of(&report, Some(&url), true, tap)))
            }
        };
        Outcome { verdict, layer, report, contract: None, process: None }
    }

    /// Whether nothing at all can be reached, or the system says that there is no way.
    async fn cut_off(&self, url: Option<&Url>, tap: &Tap) -> bool {
        let is_loopback = url.is_some_and(ours::is_loopback);
        let has_connected = tap.connections().iter().any(|dialed| dialed.tcp.is_some());
        if is_loopback || has_connected {
            return false;
        }
        match self.canaries.reachable().await {
            Some(is_reachable) => !is_reachable,
            None => ours::has_no_route(tap),
        }
    }

    fn finished(&self, prepared: &Prepared, lease: &Lease, now: Moment, outcome: Outcome, tap: &Tap) -> Finished {
        let Outcome { verdict, layer, report, contract, process } = outcome;
        let (contract, era_evidence) = contract.unzip();
        let report = without_secrets(report, tap);
        let cause = cause_of(&report);
        let hash = contract.as_ref().map(|contract| contract.hashes.full.clone());
        let is_new = hash.is_some() && lock(&self.written).get(&lease.target) != hash.as_ref();
        let observation = Observation {
            target: lease.target.clone(),
            slot: lease.turn.slot,
            region: lease.region.clone(),
            attempt: lease.turn.attempt,
            at: now,
            verdict,
            reason: cause.map(|cause| cause.code.clone()).unwrap_or_default(),
            layer,
            message: cause.map(|cause| shortened(&cause.message, MOST_CHARACTERS)).unwrap_or_default(),
            hint: cause.and_then(|cause| cause.hint.as_deref()).map(|hint| shortened(hint, MOST_CHARACTERS)),
            duration: report.duration,
            phases: report.phases.iter().map(|phase| (phase.phase, phase.duration)).collect(),
            contract: hash,
            era_evidence: era_evidence.unwrap_or_default(),
            certificate_ends: report.tls.as_ref().and_then(|tls| ends(&tls.certificate.as_ref()?.not_after)),
            process,
        };
        let promised = prepared.promise.as_ref().ok().and_then(Option::as_ref).map(Promise::contract);
        let locked = promised.map(|promised| promised.hashes.full.clone());
        let spec = &prepared.spec;
        let policy = Policy {
            every: spec.every,
            regions: spec.regions.clone(),
            objective: spec.objective,
            locked,
            thresholds: spec.thresholds.clone(),
        };
        let evidence = (!verdict.is_up() || is_new).then(|| ProbeEvidence { report, transcript: tap.transcript() }.packed());
        // What was promised as well, so that people are told in what the two differ.
        let contracts = contract.iter().chain(promised).filter(|_| is_new).map(SeenContract::new).collect();
        Finished { lease: lease.clone(), policy, observation, evidence, contracts }
    }
}

/// A server may repeat in its errors what it was sent.
fn without_secrets(report: ProbeReport, tap: &Tap) -> ProbeReport {
    let value = tap.redacted_value(serde_json::to_value(&report).expect("a report has text keys only"));
    serde_json::from_value(value).unwrap_or(report)
}

/// What is wrong with the server. That it promises something else is not: others tell that, and by more than one sighting.
fn verdict_of(report: &ProbeReport) -> Verdict {
    match cause_of(report).map(|cause| cause.severity) {
        Some(Severity::Error) => Verdict::Down,
        Some(Severity::Warning) => Verdict::Warning,
        Some(Severity::Note) | None => Verdict::Up,
    }
}

/// The first error, or else the first warning.
fn cause_of(report: &ProbeReport) -> Option<&Diagnostic> {
    let of = |severity| report.diagnostics.iter().find(|diagnostic| diagnostic.severity == severity && diagnostic.code != DRIFT);
    of(Severity::Error).or_else(|| of(Severity::Warning))
}

/// How far it came.
fn layer_of(report: &ProbeReport, url: Option<&Url>, has_no_session: bool, tap: &Tap) -> String {
    let reached = |phase: Phase| report.phases.iter().any(|one| one.phase == phase);
    let code = cause_of(report).map(|cause| cause.code.as_str());
    let phase = match url {
        _ if code == Some("certificate-expires") => Phase::Tls,
        _ if code == Some("lists-change") => return "contract".into(),
        _ if !has_no_session => Phase::List,
        None if !reached(Phase::Spawn) => Phase::Spawn,
        None => Phase::Handshake,
        Some(url) => {
            let connections = tap.connections();
            let any = |is_there: fn(&mcproof_client::ConnectionTiming) -> bool| connections.iter().any(is_there);
            match () {
                () if connections.is_empty() && reached(Phase::Spawn) => Phase::Listen,
                () if any(|dialed| dialed.ready.is_some()) => Phase::Handshake,
                () if any(|dialed| dialed.tcp.is_some()) => Phase::Tls,
                () if url.domain().is_some() && !any(|dialed| dialed.name.is_some()) => Phase::Dns,
                () => Phase::Connect,
            }
        }
    };
    phase.to_string()
}

/// The configuration is at fault, or this machine.
fn not_ours(spec: &TargetSpec, diagnostic: Diagnostic) -> Outcome {
    let mut report = ProbeReport::new(spec.name.clone());
    report.blame(diagnostic, ProbeVerdict::Unreachable);
    Outcome { verdict: Verdict::Inconclusive, layer: None, report, contract: None, process: None }
}

/// What should have ended by itself did not.
fn hung(spec: &TargetSpec, tap: &Tap) -> Outcome {
    let mut report = ProbeReport::new(spec.name.clone());
    let message = format!("the probe did not finish within {} s", spec.deadline().as_secs());
    report.blame(Diagnostic::error("probe-hung", message).hint("see in the transcript what it waited for"), ProbeVerdict::Unhealthy);
    report.duration = tap.elapsed();
    Outcome { verdict: Verdict::Down, layer: Some(Phase::Handshake.to_string()), report, contract: None, process: None }
}

fn ends(not_after: &str) -> Option<Moment> {
    let time: jiff::Timestamp = not_after.parse().ok()?;
    Some(Moment::from(SystemTime::from(time)))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
