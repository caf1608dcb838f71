//! One case on one transport: its attempts, its steps in order and what surrounds them, and the evidence.

use super::address_locks::AddressLocks;
use super::aftermath;
use super::audit::{Audits, CaseAudit, Target};
use super::expand::{GroupKey, Work, binding};
use super::group::{GroupState, Groups, Last};
use super::leaks::LeakCheck;
use super::parity::Wire;
use super::sessions::{Open, SessionRecord, Sessions};
use super::starting::StartingSession;
use super::starts::{NOT_STARTED_AGAIN, Starts};
use super::step::{StepRun, run_step};
use super::traffic::{self, SessionsOfCase};
use super::{RunOptions, Transcripts, snapshot};
use crate::interpolate_text;
use crate::plan::{Action, Case, Fault, Leaks, Skip, Step};
use backon::{BackoffBuilder as _, ExponentialBuilder};
use mcproof_analysis::diagnosis::{self, Audience};
use mcproof_client::{Exit, Fault as ClientFault, FaultCount, Schedule, Session};
use mcproof_protocol::{Era, Transport, methods};
use mcproof_record::{CaseOutcome, Diagnostic, Proof, SessionTranscript, Severity, StepOutcome, Transcript, Verdict};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::time::timeout;

/// What to think of where a call misses what another one left.
const WITHOUT_SESSIONS: &str = "the modern era has no sessions: if the test is about what a session remembers, write `era: legacy` beside the server, or give --era legacy";

/// A case that has its verdict, and what is left to end.
pub(super) struct Finished {
    pub(super) outcome: CaseOutcome,
    pub(super) leftovers: OpenSessions,
    pub(super) group: Option<GroupKey>,
    /// Its responses, to compare them with those on other transports.
    pub(super) wire: Wire,
}

/// Sessions of a case that is over; its servers end while the next case runs.
#[derive(Default)]
pub(super) struct OpenSessions {
    open: BTreeMap<String, Open>,
    /// Held until no server can use it any more.
    tmp: Option<Arc<TempDir>>,
    /// The last case that they served, if it has passed so far: what comes late fails it.
    last: Option<(Work, Arc<RunOptions>)>,
}

impl OpenSessions {
    /// Of which nobody asks what comes late.
    fn unjudged(open: BTreeMap<String, Open>, tmp: Option<Arc<TempDir>>) -> Self {
        Self { open, tmp, last: None }
    }

    /// Ends all sessions, and gives what their servers did wrong after the last case was judged.
    pub(super) async fn end(self) -> Vec<Diagnostic> {
        let mut late = Vec::new();
        // The first session of a server ends the server, and comes before the others in the order of their names.
        for (name, open) in self.open.into_iter().rev() {
            let record = SessionRecord { since: open.judged, ..open.record() };
            let is_judged = open.injector.is_none();
            let Open { session, tap, turn, judged, .. } = open;
            let fault = session.faults().into_iter().find(|fault| fault.frame >= judged);
            session.close().await;
            drop(turn);
            let Some((work, options)) = self.last.as_ref() else { continue };
            let found = match fault {
                Some(fault) => vec![of_fault(&fault, &tap.transcript()).at(work.case().place.clone())],
                None if is_judged => traffic::judge_rest(work, options, &name, record),
                None => Vec::new(),
            };
            late.extend(found.into_iter().map(|diagnostic| unless_allowed(work.case(), diagnostic)));
        }
        drop(self.tmp);
        late
    }
}

/// What all cases of a run have in common.
#[derive(Clone)]
pub(super) struct RunContext {
    pub(super) options: Arc<RunOptions>,
    pub(super) turns: AddressLocks,
    pub(super) groups: Groups,
    pub(super) audits: Audits,
    pub(super) starts: Starts,
}

/// Runs a case until it passes or its attempts are used up.
pub(super) async fn run_case(work: Work, world: RunContext, mut warm: Option<StartingSession>) -> Finished {
    let group = work.group();
    let retries = work.case().retries;
    let mut delays = ExponentialBuilder::new()
        .with_min_delay(retries.delay)
        .with_max_times(usize::try_from(retries.most).unwrap_or(usize::MAX))
        .with_jitter()
        .build();
    let mut attempts = 1;
    let mut earlier: Vec<Diagnostic> = Vec::new();
    let mut taken = group.as_ref().map(|key| world.groups.take(key, &work));
    loop {
        let (handed, last) = taken.unwrap_or_default();
        let retry = (work.case().retries.most >= attempts).then(|| delays.next()).flatten();
        let Attempt { mut outcome, leftovers, kept, wire } = run_attempt(&work, &world, handed, last, warm.take()).await;
        // Where its server is given up, another attempt would start nothing.
        let retry = retry.filter(|_| !outcome.diagnostics.iter().any(|found| found.code == NOT_STARTED_AGAIN));
        if let (Verdict::Fail, Some(delay)) = (outcome.verdict, retry) {
            earlier = outcome.diagnostics;
            leftovers.end().await;
            tokio::time::sleep(delay).await;
            attempts += 1;
            taken = Some((kept, last));
            continue;
        }
        outcome.attempts = attempts;
        if outcome.verdict == Verdict::Pass && attempts > 1 {
            outcome.verdict = Verdict::Flaky;
            let warned = |diagnostic| Diagnostic { severity: Severity::Warning, ..diagnostic };
            outcome.diagnostics.extend(earlier.into_iter().map(warned));
        }
        if let Some(key) = &group {
            world.groups.put(key, kept);
        }
        return Finished { outcome, leftovers, group, wire };
    }
}

/// Gives a session to `ask`, on a server of its own that is opened as the case would, after its setup and before its teardown. What it finds
/// has the texts of the server, and passes `clean`, which knows the secrets, before it is handed on.
pub(super) async fn visit<T>(
    work: &Work,
    world: &RunContext,
    server: &str,
    ask: impl AsyncFnOnce(&Open) -> T,
    clean: impl FnOnce(T, &Sessions<'_>) -> T,
) -> Result<T, Diagnostic> {
    let mut case = Running::new(work, world, GroupState::default(), None, Instant::now());
    case.sessions.injects = false;
    let hooks = &work.case().hooks;
    let shared = work.group().map(|_| &work.suite.shared);
    for setup in shared.map(|shared| &shared.setup).into_iter().chain([&hooks.setup]) {
        case.run_until_failure(setup).await;
    }
    case.diagnostics.retain(|diagnostic| diagnostic.severity == Severity::Error);
    let asked = match case.diagnostics.pop() {
        Some(failure) => Err(failure),
        None => match case.sessions.of(server).await {
            Ok(open) => Ok(ask(open).await),
            Err(failure) => Err(*failure),
        },
    };
    let asked = asked.map(|found| clean(found, &case.sessions));
    for teardown in [&hooks.teardown].into_iter().chain(shared.map(|shared| &shared.teardown)) {
        for step in teardown {
            case.run_teardown(step, true).await;
        }
    }
    let Sessions { open, tmp, .. } = case.sessions;
    OpenSessions::unjudged(open, tmp).end().await;
    asked
}

/// Ends what a group shares, where its last case will not run, and gives what went wrong with its teardown.
pub(super) async fn end_group(work: Work, world: RunContext, handed: GroupState) -> Vec<Diagnostic> {
    let mut case = Running::new(&work, &world, handed, None, Instant::now());
    // What its setup did not get to save is no news.
    case.end_group(true).await;
    let Running { sessions: Sessions { open, tmp, .. }, mut diagnostics, .. } = case;
    OpenSessions::unjudged(open, tmp).end().await;
    name_shared_teardown(&mut diagnostics);
    diagnostics
}

/// Says where it went wrong, where nothing else does: the case at hand is not to blame.
fn name_shared_teardown(diagnostics: &mut [Diagnostic]) {
    for diagnostic in diagnostics {
        diagnostic.message = format!("in the shared teardown: {}", diagnostic.message);
    }
}

struct Attempt {
    outcome: CaseOutcome,
    leftovers: OpenSessions,
    /// For the next case of its group.
    kept: GroupState,
    wire: Wire,
}

async fn run_attempt(work: &Work, world: &RunContext, handed: GroupState, last: Last, warm: Option<StartingSession>) -> Attempt {
    let started = Instant::now();
    if let Some(skip) = skipped_unasked(work) {
        let outcome = skipped(work, &skip, started.elapsed());
        let wire = Wire::of(work.transport, &outcome, &BTreeMap::new());
        // What its group shares is for the cases that run.
        return Attempt { outcome, leftovers: OpenSessions::default(), kept: handed, wire };
    }
    let shares = work.group().is_some();
    let mut case = Running::new(work, world, handed, warm, started);
    let ran = case.run().await;
    if last == Last::Yes {
        let (failed_before, known) = (case.has_failed(), case.diagnostics.len());
        case.end_group(failed_before).await;
        if matches!(ran, Ran::Skipped(_)) {
            name_shared_teardown(&mut case.diagnostics[known..]);
        }
    }
    let duration = started.elapsed();
    let Running { sessions, steps, diagnostics, set_up, owes_teardown, .. } = case;
    let Sessions { mut open, past, renewed, tmp, allowed, .. } = sessions;
    let mut outcome = match &ran {
        Ran::ToItsEnd => CaseOutcome { diagnostics, steps, ..CaseOutcome::new(work.plan.id, Verdict::Pass, duration) },
        Ran::Skipped(skip) => {
            let mut outcome = skipped(work, skip, duration);
            outcome.diagnostics.splice(0..0, diagnostics);
            outcome
        }
    };
    if matches!(ran, Ran::ToItsEnd) {
        open.values_mut().for_each(|open| open.judged = open.tap.mark());
        outcome.diagnostics.extend(allowed);
        judge_wire(work.case(), &open, &mut outcome);
        traffic::judge(work, &world.options, SessionsOfCase { open: &open, past: &past, renewed: &renewed }, &mut outcome);
    }
    if outcome.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        outcome.verdict = Verdict::Fail;
        outcome.aftermath = aftermath::probe(work, &open, &past).await;
    }
    if outcome.verdict == Verdict::Fail || world.options.transcripts == Transcripts::OfAll {
        let transcripts = past.into_iter().map(|past| past.transcript);
        outcome.transcripts = transcripts.filter(|session| !session.transcript.frames.is_empty()).collect();
        outcome.transcripts.extend(open.iter().map(|(name, open)| transcript_of(name, open)));
    }
    let wire = Wire::of(work.transport, &outcome, &open);
    let is_usable = |open: &Open| open.session.closed_because().is_none() && open.session.exit().is_none();
    let waits = shares && last == Last::No;
    let keeps = waits && open.values().all(is_usable);
    let kept = match keeps {
        true => GroupState { open: std::mem::take(&mut open), tmp: tmp.clone(), set_up, owes_teardown },
        false => GroupState { owes_teardown: waits && owes_teardown, ..GroupState::default() },
    };
    let tmp = if keeps { None } else { tmp };
    let last = (outcome.verdict == Verdict::Pass).then(|| (work.clone(), Arc::clone(&world.options)));
    Attempt { outcome, leftovers: OpenSessions { open, tmp, last }, kept, wire }
}

/// A case while it runs.
struct Running<'a> {
    work: &'a Work,
    sessions: Sessions<'a>,
    started: Instant,
    scope: Map<String, Value>,
    steps: Vec<StepOutcome>,
    diagnostics: Vec<Diagnostic>,
    /// What the setup of its group saved.
    set_up: Option<Map<String, Value>>,
    owes_teardown: bool,
    audit: Option<CaseAudit>,
}

enum Ran {
    ToItsEnd,
    Skipped(Skip),
}

impl<'a> Running<'a> {
    fn new(work: &'a Work, world: &'a RunContext, handed: GroupState, warm: Option<StartingSession>, started: Instant) -> Self {
        let GroupState { mut open, mut tmp, set_up, owes_teardown } = handed;
        open.values_mut().for_each(|open| open.begin_case(work.plan.id));
        let mut diagnostics = Vec::new();
        if work.suite.uses_tmp && tmp.is_none() {
            match tempfile::Builder::new().prefix("mcproof-").tempdir() {
                Ok(folder) => tmp = Some(Arc::new(folder)),
                Err(error) => diagnostics.push(Diagnostic::error("no-temporary-folder", format!("no temporary folder: {error}"))),
            }
        }
        let sessions = Sessions::new(work, world, open, tmp, warm);
        let mut scope = work.case().variables.clone();
        scope.extend(sessions.builtins());
        scope.extend(set_up.clone().unwrap_or_default());
        let audit = open_audit(work, world, &scope).unwrap_or_else(|diagnostic| {
            diagnostics.push(diagnostic);
            None
        });
        Self { work, sessions, started, scope, steps: Vec::new(), diagnostics, set_up, owes_teardown, audit }
    }

    /// Setup, steps and teardown.
    async fn run(&mut self) -> Ran {
        let (work, suite) = (self.work, &self.work.suite);
        let case = work.case();
        let shares = work.group().is_some();
        if !self.diagnostics.is_empty() {
            return Ran::ToItsEnd;
        }
        let limit = case.timeout.unwrap_or(Duration::MAX);
        let main = async {
            if shares && self.set_up.is_none() {
                self.owes_teardown = true;
                if self.run_until_failure(&suite.shared.setup).await {
                    self.set_up = Some(saved_by(&suite.shared.setup, &self.scope));
                }
            }
            if self.has_failed() {
                return Ran::ToItsEnd;
            }
            if let Some(skip) = self.skipped_by_session().await {
                return Ran::Skipped(skip);
            }
            if self.run_until_failure(&case.hooks.setup).await {
                let before = self.scope.clone();
                if self.run_until_failure(&case.steps).await
                    && let Some(leaks) = &case.leaks
                {
                    self.check_leaks(leaks, &before).await;
                }
            }
            Ran::ToItsEnd
        };
        let ran = match timeout(limit, main).await {
            Ok(ran) => ran,
            Err(_) => {
                let doing = self.steps.len();
                let all = || case.hooks.setup.iter().chain(&case.steps);
                let step = all().nth(doing.min(all().count().saturating_sub(1)));
                let message = format!("the test was not done within {}", show(limit));
                let diagnostic = Diagnostic::error("test-timeout", message).at(step.map_or(&case.place, |step| &step.place).clone());
                self.diagnostics.push(diagnostic.hint("raise `timeout` of the test, or `timeouts: { test }`"));
                Ran::ToItsEnd
            }
        };
        if matches!(ran, Ran::Skipped(_)) {
            return ran;
        }
        let failed_before = self.has_failed();
        if !failed_before {
            self.diagnostics.extend(unhit_faults(work, &self.sessions.open));
            self.diagnostics.extend(ended_unasked(case, &self.sessions.open));
        }
        for step in &case.hooks.teardown {
            self.run_teardown(step, failed_before).await;
        }
        ran
    }

    /// The shared teardown, where the shared setup has begun.
    async fn end_group(&mut self, failed_before: bool) {
        if std::mem::take(&mut self.owes_teardown) {
            for step in &self.work.suite.shared.teardown {
                self.run_teardown(step, failed_before).await;
            }
        }
    }

    fn has_failed(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Steps after one that fails mostly build on it, but not on what has to be reviewed: so one run shows all of that.
    async fn run_until_failure(&mut self, steps: &[Step]) -> bool {
        let mut is_well = true;
        for step in steps {
            let diagnostics = self.run_one(step).await;
            is_well &= diagnostics.is_empty();
            let goes_on = diagnostics.iter().all(snapshot::waits_for_review);
            self.diagnostics.extend(diagnostics);
            if !goes_on {
                break;
            }
        }
        is_well
    }

    /// A teardown that needs what a failed case never saved has nothing to say.
    async fn run_teardown(&mut self, step: &Step, failed_before: bool) {
        let mut diagnostics = self.run_one(step).await;
        if failed_before {
            diagnostics.retain(|diagnostic| diagnostic.code != "unknown-variable");
        }
        self.diagnostics.extend(diagnostics);
    }

    async fn run_one(&mut self, step: &Step) -> Vec<Diagnostic> {
        let at = self.started.elapsed();
        let StepRun { diagnostics, warnings, exchanges } = run_step(step, &mut self.sessions, &mut self.scope).await;
        let mut diagnostics: Vec<Diagnostic> =
            diagnostics.into_iter().map(|diagnostic| self.sessions.without_secrets(diagnostic)).collect();
        if let Some(diagnostic) = diagnostics.iter_mut().find(|diagnostic| diagnostic.hint.is_none())
            && self.may_want_a_session(step)
        {
            diagnostic.hint = Some(WITHOUT_SESSIONS.to_owned());
        }
        let mut outcome = StepOutcome {
            title: step.action.title(),
            server: step.leaves().iter().find_map(Step::conversation).unwrap_or_default(),
            place: step.place.clone(),
            at,
            duration: self.started.elapsed().saturating_sub(at),
            passed: diagnostics.is_empty(),
            exchanges,
        };
        if let Some(audit) = &self.audit {
            let (open, server) = (&self.sessions.open, &outcome.server);
            let written = self.sessions.audits.write(audit, self.work, &outcome, |exchange| {
                // A federation names the server of each exchange as its target.
                let name = if server.is_empty() { exchange.target.as_ref()? } else { server };
                Some(Target::of(name, open.get(name)?, exchange))
            });
            diagnostics.extend(written.err());
        }
        self.sessions.hide_secrets(&mut outcome.exchanges);
        self.steps.push(outcome);
        self.diagnostics.extend(warnings.into_iter().map(|warning| self.sessions.without_secrets(warning)));
        diagnostics
    }

    /// Repeats the steps in fresh sessions, and compares what the servers hold before and after.
    async fn check_leaks(&mut self, leaks: &Leaks, scope: &Map<String, Value>) {
        let told = self.steps.len();
        let mut check = LeakCheck::default();
        let mut renewed = check.renew(&mut self.sessions).await;
        check.begin(&self.sessions).await;
        for repeat in 1..=leaks.repeat {
            if renewed.is_err() {
                break;
            }
            self.scope.clone_from(scope);
            if !self.run_until_failure(&self.work.case().steps).await {
                for diagnostic in &mut self.diagnostics {
                    diagnostic.message += &format!(" (in repeat {repeat} of {} for `leaks`)", leaks.repeat);
                }
                return;
            }
            // All repeats are alike: the first time tells what the steps do.
            self.steps.truncate(told);
            renewed = check.renew(&mut self.sessions).await;
        }
        match renewed {
            Ok(()) => self.diagnostics.extend(check.finish(leaks, &self.sessions).await),
            Err(diagnostic) => self.diagnostics.push(diagnostic),
        }
    }

    /// Whether a call that failed may have relied on what calls before it left in their session, where there is none.
    fn may_want_a_session(&self, step: &Step) -> bool {
        let (Action::Call { .. }, Some(conversation)) = (&step.action, step.conversation()) else { return false };
        let Some(open) = self.sessions.open.get(&conversation) else { return false };
        let handshake = open.session.handshake();
        let is_call =
            |earlier: &StepOutcome| earlier.passed && earlier.exchanges.iter().any(|exchange| exchange.method == methods::TOOLS_CALL);
        handshake.era == Era::Modern
            && handshake.transport == Transport::Http
            && self.steps.iter().any(|earlier| (step.session.is_some() || earlier.server == conversation) && is_call(earlier))
    }

    /// The first reason not to run the case that only its session can tell.
    async fn skipped_by_session(&mut self) -> Option<Skip> {
        let asks = |skip: &&Skip| (skip.era.is_some() || skip.lacks.is_some()) && applies(skip, self.work);
        let skips: Vec<Skip> = self.work.case().skips.iter().filter(asks).cloned().collect();
        if skips.is_empty() {
            return None;
        }
        let server = self.work.plan.servers.first().or(self.work.suite.servers.keys().next())?;
        // A server that does not start fails the first step, which says so.
        let session = &self.sessions.of(server).await.ok()?.session;
        let handshake = session.handshake();
        skips.into_iter().find(|skip| {
            skip.era.is_none_or(|era| era == handshake.era) && skip.lacks.as_ref().is_none_or(|capability| !declares(session, capability))
        })
    }
}

fn open_audit(work: &Work, world: &RunContext, scope: &Map<String, Value>) -> Result<Option<CaseAudit>, Diagnostic> {
    let of_suite = match &work.suite.audit {
        Some(audit) => {
            let file = interpolate_text(&audit.file, scope);
            let file = file.map_err(|missing| Diagnostic::error("unknown-variable", missing.to_string()))?;
            Some((audit, work.suite.folder.join(file)))
        }
        None => None,
    };
    let opened = world.audits.open(world.options.audit.as_deref(), of_suite);
    opened.map_err(|diagnostic| diagnostic.at(work.case().place.clone()))
}

/// Faults that never came about: a test that asks for one proves nothing without it. One that is left to chance has to have had the chance.
fn unhit_faults(work: &Work, open: &BTreeMap<String, Open>) -> Vec<Diagnostic> {
    let of_case = &work.case().faults;
    let by_chance = |fault: &Fault| matches!(fault.rule.schedule, Schedule::Probability(_));
    let is_spared = |fault: &Fault, count: &FaultCount| by_chance(fault) && count.selected > 0;
    let mut counts = vec![FaultCount::default(); of_case.len()];
    let mut found = Vec::new();
    let mut is_disturbed = false;
    for (name, Open { injector, .. }) in open {
        let Some(injector) = injector else { continue };
        is_disturbed = true;
        let all = injector.counts();
        let (of_server, of_this_case) = all.split_at(all.len() - of_case.len());
        for (sum, count) in counts.iter_mut().zip(of_this_case) {
            *sum = FaultCount { selected: sum.selected + count.selected, hit: sum.hit + count.hit };
        }
        let faults = &binding(&work.suite.servers[name], work.transport).reach.faults;
        let has_hit = of_server.iter().any(|count| count.hit > 0);
        let are_spared = faults.iter().zip(of_server).all(|(fault, count)| is_spared(fault, count));
        if let Some(first) = faults.first().filter(|_| !has_hit && !are_spared) {
            let message = format!("no fault of `{name}` hit anything in this test");
            found.push(Diagnostic::warning("fault-not-injected", message).at(first.place.clone()));
        }
    }
    for (fault, count) in of_case.iter().zip(counts).filter(|(_, count)| is_disturbed && count.hit == 0) {
        if is_spared(fault, &count) {
            let messages = if count.selected == 1 { "message" } else { "messages" };
            let message = format!("by chance, this fault hit none of {} {messages} over {}", count.selected, work.transport);
            let note = Diagnostic { severity: Severity::Note, ..Diagnostic::error("fault-not-injected", message) };
            found.push(note.at(fault.place.clone()).hint("raise `probability`, or choose another `seed`"));
            continue;
        }
        let message = format!("this fault hit nothing over {}, so that the test proves nothing", work.transport);
        let hint = format!("check `method`, `tool` and `to`, or add `skip_if: {{ transport: {} }}`", work.transport);
        found.push(Diagnostic::error("fault-not-injected", message).at(fault.place.clone()).hint(hint));
    }
    found
}

/// Servers that are gone although no step has ended them, nor expects it: no response after that would say so.
fn ended_unasked(case: &Case, open: &BTreeMap<String, Open>) -> Vec<Diagnostic> {
    let steps = || case.hooks.setup.iter().chain(&case.steps).flat_map(Step::leaves);
    if !case.faults.is_empty() || steps().any(Step::may_end_server) {
        return Vec::new();
    }
    let ended = open.values().filter(|open| open.injector.is_none() && !open.told_to_end.load(Ordering::Relaxed)).filter_map(|open| {
        let exit = open.session.exit()?;
        // The command of a server at a URL may only have started it.
        (open.session.handshake().transport == Transport::Stdio || exit.code != Some(0)).then_some(exit)
    });
    let message = |exit: Exit| Diagnostic::error("server-exited", format!("{exit}, after its last response")).at(case.place.clone());
    ended.map(message).collect()
}

/// What the steps save, out of the whole scope.
fn saved_by(steps: &[Step], scope: &Map<String, Value>) -> Map<String, Value> {
    let names = steps.iter().flat_map(Step::leaves).flat_map(|step| step.save.iter().map(|(name, _)| name));
    names.filter_map(|name| Some((name.clone(), scope.get(name)?.clone()))).collect()
}

/// The first reason not to run the case that is known without its server.
pub(super) fn skipped_unasked(work: &Work) -> Option<Skip> {
    let skipped = |skip: &&Skip| skip.era.is_none() && skip.lacks.is_none() && applies(skip, work);
    work.case().skips.iter().find(skipped).cloned().or_else(|| unusable(work))
}

/// Whether a step means nothing over the transport of its case.
fn unusable(work: &Work) -> Option<Skip> {
    let missing = |step: &Step| {
        let needs = step.needs()?;
        let server = work.suite.servers.get(step.server.as_ref()?)?;
        let what = step.session.as_ref().map_or_else(|| step.action.title(), |session| format!("session: {session}"));
        (!binding(server, work.transport).offers(needs)).then(|| format!("`{what}` needs {}", needs.noun()))
    };
    let reason = work.case().steps.iter().flat_map(Step::leaves).find_map(missing)?;
    Some(Skip { reason, transports: Vec::new(), era: None, lacks: None })
}

fn applies(skip: &Skip, work: &Work) -> bool {
    skip.transports.is_empty() || skip.transports.contains(&work.transport)
}

fn declares(session: &Session, capability: &str) -> bool {
    let capabilities = &session.handshake().capabilities;
    let found = capability.split('.').try_fold(capabilities, |value, name| value.get(name));
    found.is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)))
}

fn skipped(work: &Work, skip: &Skip, duration: Duration) -> CaseOutcome {
    let note = Diagnostic { severity: Severity::Note, ..Diagnostic::error("skipped", skip.reason.clone()) };
    CaseOutcome { diagnostics: vec![note], ..CaseOutcome::new(work.plan.id, Verdict::Skipped, duration) }
}

/// What the wire proves, and the first thing on it that no conforming server sends.
fn judge_wire(case: &Case, open: &BTreeMap<String, Open>, outcome: &mut CaseOutcome) {
    for (name, Open { since, session, tap, .. }) in open {
        let handshake = session.handshake();
        outcome.proof.push(Proof {
            server: name.clone(),
            transport: handshake.transport.to_string(),
            era: handshake.era.to_string(),
            protocol_version: handshake.protocol_version.clone(),
        });
        // One is enough: a server that prints noise prints it often. A missing response is blamed on its fault already.
        let fault = session.faults().into_iter().find(|fault| fault.frame >= *since);
        if let Some(fault) = fault.filter(|_| !outcome.diagnostics.iter().any(diagnosis::names_fault)) {
            outcome.diagnostics.push(unless_allowed(case, of_fault(&fault, &tap.transcript())));
        }
    }
}

/// A fault that fails a test, with the key that accepts it.
pub(super) fn of_fault(fault: &ClientFault, transcript: &Transcript) -> Diagnostic {
    let diagnostic = diagnosis::of_fault(fault, transcript, Audience::Suite);
    let accept = "accept it with `allow_faults: true` if it is known";
    let hint = diagnostic.hint.as_ref().map_or_else(|| accept.to_owned(), |hint| format!("{hint}; {accept}"));
    diagnostic.hint(hint)
}

/// What a server did wrong outside its responses: where the suite accepts that, it is told and fails nothing.
pub(super) fn unless_allowed(case: &Case, diagnostic: Diagnostic) -> Diagnostic {
    if !case.allows_faults || diagnostic.severity != Severity::Error {
        return diagnostic;
    }
    let warning = Diagnostic { severity: Severity::Warning, evidence: None, ..diagnostic };
    warning.hint("accepted by `allow_faults`: remove the key when the server is fixed")
}

/// What was on the wire while the case ran.
fn transcript_of(name: &str, open: &Open) -> SessionTranscript {
    let mut transcript = open.tap.transcript();
    transcript.frames.retain(|frame| frame.id >= open.since);
    SessionTranscript { server: name.to_owned(), transcript }
}

fn show(duration: Duration) -> String {
    format!("{} ms", duration.as_millis())
}
