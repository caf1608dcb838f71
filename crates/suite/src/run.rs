//! Runs plans against real servers and emits events. The order of events is the order in which things happened.

mod address_locks;
mod aftermath;
mod audit;
mod case;
mod command;
mod coverage;
mod expand;
mod federation;
mod filter;
mod group;
mod leaks;
mod locate;
mod parity;
mod queue;
mod resilience;
mod selection;
mod sessions;
mod shard;
pub mod snapshot;
mod starting;
mod starts;
mod step;
mod subscriptions;
mod traffic;

use crate::NO_EXPECTATION;
use crate::plan::LimitChoices;
use address_locks::AddressLocks;
use audit::Audits;
use case::{Finished, RunContext};
use coverage::Collector;
pub use coverage::CoverageMode;
use expand::Work;
pub use filter::{FILTER_HELP, Filter};
use group::Groups;
pub use locate::locate_by;
use mcproof_client::auth::Authorization;
use mcproof_client::{Guardian, Launch, Network, ShutdownTimeouts, Startup};
use mcproof_protocol::EraChoice;
use mcproof_record::{CaseId, CaseOutcome, Diagnostic, Event, FORMAT_VERSION, Frame, Place, Severity, Summary, Verdict, fold};
use parity::Wires;
use queue::Queue;
pub use selection::{Order, Pick, Plan, Selection, plan};
pub use sessions::target_of;
pub use shard::{Shard, case_key, folder_name};
use starts::Starts;
use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
pub use step::{MadeEvent, MadeExchange, MadeSession, Rehearsal, UnmadeStep, rehearse};
use tokio::task::{JoinError, JoinSet};
pub use traffic::{BrokenRule, Traffic, TrafficJudge};

/// How to run.
#[derive(Clone)]
pub struct RunOptions {
    /// Cases at the same time; at least 1.
    pub jobs: usize,
    /// After so many failures no further case is started.
    pub fail_fast: Option<NonZeroU32>,
    pub start: Start,
    /// In place of what the suite declares.
    pub era: Option<EraChoice>,
    pub protocol_version: Option<String>,
    pub connect_timeout: Option<Duration>,
    /// For servers that the suite does not start.
    pub startup: Startup,
    pub request_timeout: Option<Duration>,
    /// What a command that begins with `mcproof` starts: this very binary, also where none is on the PATH.
    pub mcproof: Option<PathBuf>,
    /// Changes how each server is started; the folder is there if the suite names one.
    pub launcher: Option<Launcher>,
    pub patience: ShutdownTimeouts,
    pub guardian: Guardian,
    /// In place of what the suite declares.
    pub limits: LimitChoices,
    pub network: Network,
    /// For HTTP servers that are not let in by their suite.
    pub authorization: Option<Authorization>,
    pub transcripts: Transcripts,
    /// Holds the traffic of each case against rules; none does not.
    pub judge: Option<TrafficJudge>,
    pub coverage: CoverageMode,
    pub snapshots: Snapshots,
    /// Every request is written down there, and not where a suite says.
    pub audit: Option<PathBuf>,
    /// What servers inherit and nobody is to see, besides what their targets hold.
    pub secrets: Vec<String>,
    /// The time of day.
    pub began: SystemTime,
    /// Who sees the wire of each case while it runs.
    pub watcher: Option<FrameWatcher>,
}

/// Sees a frame as it comes: the case that uses its session now, and what that calls the session. The first frame of each session has the id 0.
/// A session that cases share comes to the later ones without its beginning.
pub type FrameWatcher = Arc<dyn Fn(CaseId, &str, &Frame) + Send + Sync>;

/// Changes how a server is started, or says why it cannot be.
pub type Launcher = Arc<dyn Fn(Launch) -> Result<Launch, Diagnostic> + Send + Sync>;

/// What a payload that differs from its snapshot does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Snapshots {
    /// It fails its case, and waits for a review.
    #[default]
    Compare,
    /// It takes the place of the snapshot.
    Update,
}

/// Of which cases the whole wire is given to the sink. Their failures carry their evidence in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transcripts {
    OfFailures,
    OfAll,
}

/// When the servers of a case are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The first one ahead, while the cases before it run: at most one for each job.
    Warm,
    /// When a step needs them.
    Cold,
}

/// The time that servers have to end by themselves after a run was stopped, in which nothing is concluded from what they do: over when this
/// resolves.
pub struct Grace<G>(pub G);

/// Runs all cases until they are done or `stop` resolves, and gives what came of them. Each event goes to `sink` as it
/// happens. Every server that was started has ended when this returns.
pub async fn run<G: Future<Output = ()>>(
    plan: &Plan,
    options: RunOptions,
    stop: impl Future<Output = Grace<G>>,
    sink: &mut dyn FnMut(&Event),
) -> Summary {
    let started = Instant::now();
    let collector = (options.coverage == CoverageMode::Servers).then(|| Collector::of(plan.cases.iter().cloned()));
    let mut recorder = Recorder { summary: Summary::default(), failures: 0, collector, sink };
    recorder.record(Event::RunStarted {
        version: FORMAT_VERSION,
        cases: plan.cases.iter().map(|work| work.plan.clone()).collect(),
        left_out: plan.left_out,
        seed: plan.seed(),
    });
    let (later, at_once): (Vec<_>, Vec<_>) = plan.notices.iter().cloned().partition(|notice| notice.code == NO_EXPECTATION);
    for diagnostic in at_once {
        recorder.record(Event::Notice { diagnostic });
    }
    plan.cases.iter().for_each(snapshot::forget_pending);
    let jobs = options.jobs.max(1);
    // One test at a time is one server at a time: it may be one that cannot run twice.
    let most_ending = if jobs == 1 { 1 } else { jobs * ENDING_PER_JOB };
    let start = if jobs == 1 { Start::Cold } else { options.start };
    let audits = Audits::new(options.began);
    let (turns, groups, starts) = (AddressLocks::default(), Groups::of(plan.cases.iter()), Starts::default());
    let world = RunContext { options: Arc::new(options), turns, groups, audits, starts };
    let mut queue = Queue::of(plan.in_order());
    let mut wires = Wires::of(&recorder.summary.planned);
    let mut running: JoinSet<Finished> = JoinSet::new();
    let mut ending: JoinSet<Ended> = JoinSet::new();
    // Cases whose servers are on their way out: what these do wrong until then fails them.
    let mut passed: BTreeMap<CaseId, CaseOutcome> = BTreeMap::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        while running.len() < jobs
            && ending.len() < most_ending
            && let Some((work, warm)) = queue.next()
        {
            recorder.record(Event::CaseStarted { id: work.plan.id });
            running.spawn(case::run_case(work, world.clone(), warm));
        }
        if start == Start::Warm {
            queue.warm_up(jobs, &world);
        }
        if running.is_empty() && ending.is_empty() {
            break;
        }
        tokio::select! {
            biased;
            Grace(over) = &mut stop => {
                over.await;
                // Dropping the cases kills what is left of their servers.
                running.shutdown().await;
                ending.shutdown().await;
                queue.clear().await;
                std::mem::take(&mut passed).into_values().for_each(|outcome| recorder.record(Event::CaseFinished(outcome)));
                recorder.collector = None;
                break;
            }
            Some(finished) = running.join_next() => {
                let Finished { outcome, leftovers, group, wire } = unless_panicked(finished);
                queue.finished(group.as_ref());
                wires.add(&recorder.summary.planned[outcome.id.0 as usize], wire);
                let id = outcome.id;
                let case = matches!(outcome.verdict, Verdict::Pass | Verdict::Flaky).then_some(id);
                match case {
                    Some(id) => drop(passed.insert(id, outcome)),
                    None => recorder.record(Event::CaseFinished(outcome)),
                }
                ending.spawn(async move { Ended { case, diagnostics: leftovers.end().await } });
            }
            Some(ended) = ending.join_next() => {
                let Ended { case, mut diagnostics } = unless_panicked(ended);
                match case.and_then(|id| passed.remove(&id)) {
                    Some(mut outcome) => {
                        if diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
                            outcome.verdict = Verdict::Fail;
                        }
                        // That traffic exceeds the limit, say, was told with the case.
                        diagnostics.retain(|late| outcome.diagnostics.iter().all(|known| known.message != late.message));
                        outcome.diagnostics.splice(0..0, diagnostics);
                        recorder.record(Event::CaseFinished(outcome));
                    }
                    None => diagnostics.into_iter().for_each(|diagnostic| recorder.record(Event::Notice { diagnostic })),
                }
            }
        }
        let failures = recorder.failures;
        if world.options.fail_fast.is_some_and(|most| failures >= most.get()) {
            let left = queue.clear().await;
            recorder.stopped_early(failures, left);
            if running.is_empty() {
                // The shared servers wait for cases that do not come.
                for (work, handed) in world.groups.rest() {
                    let ended = case::end_group(work, world.clone(), handed);
                    ending.spawn(async move { Ended { case: None, diagnostics: ended.await } });
                }
            }
        }
    }
    for mut event in recorder.summary.transport_specific() {
        wires.explain(&mut event);
        recorder.record(event);
    }
    let failed = recorder.places_of_failures(plan);
    // Where the test failed, it is no news how little it expects.
    for diagnostic in later.into_iter().filter(|notice| !notice.place.as_ref().is_some_and(|place| failed.contains(&beginning(place)))) {
        recorder.record(Event::Notice { diagnostic });
    }
    for diagnostic in plan.suites().filter_map(snapshot::leftovers) {
        recorder.record(Event::Notice { diagnostic });
    }
    if let Some(collector) = recorder.collector.take() {
        let mut events = std::pin::pin!(collector.events(&world));
        let covered = tokio::select! {
            biased;
            Grace(over) = &mut stop => {
                over.await;
                Vec::new()
            }
            covered = &mut events => covered,
        };
        covered.into_iter().for_each(|event| recorder.record(event));
    }
    let counts = recorder.summary.counts();
    recorder.record(Event::RunFinished { counts, duration: started.elapsed() });
    recorder.summary
}

/// What came of the end of some servers.
struct Ended {
    /// The last case that they served, if it has no verdict yet.
    case: Option<CaseId>,
    diagnostics: Vec<Diagnostic>,
}

/// Servers that may still be on their way out, for each that runs. They cost memory, not time.
const ENDING_PER_JOB: usize = 8;

/// A panic in a case is our bug: it must not look like a verdict.
fn unless_panicked<T>(joined: Result<T, JoinError>) -> T {
    joined.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// Where a place begins: no two tests begin at the same.
fn beginning(place: &Place) -> (String, u32, u32) {
    (place.file.clone(), place.line, place.column)
}

/// Folds the summary and feeds the sink.
struct Recorder<'a> {
    summary: Summary,
    failures: u32,
    /// Where coverage is asked for.
    collector: Option<Collector>,
    sink: &'a mut dyn FnMut(&Event),
}

impl Recorder<'_> {
    fn stopped_early(&mut self, failures: u32, left: usize) {
        if left > 0 {
            let count = |number: usize, noun: &str| if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") };
            let failed = count(failures as usize, "failure");
            let message = format!("stopped after {failed}, before {} ran", count(left, "further test"));
            let diagnostic = Diagnostic { severity: Severity::Note, ..Diagnostic::error("stopped-early", message) };
            self.record(Event::Notice { diagnostic: diagnostic.hint("leave out --fail-fast to run all") });
        }
    }

    fn places_of_failures(&self, plan: &Plan) -> HashSet<(String, u32, u32)> {
        let failed = |work: &&Work| self.summary.outcomes.get(&work.plan.id).is_some_and(|outcome| outcome.verdict == Verdict::Fail);
        plan.cases.iter().filter(failed).map(|work| beginning(&work.case().place)).collect()
    }

    fn record(&mut self, event: Event) {
        (self.sink)(&event);
        // Transcripts are evidence for the sinks; the summary would only keep them in memory.
        match event {
            Event::CaseFinished(outcome) => {
                self.failures += u32::from(outcome.verdict == Verdict::Fail);
                if let Some(collector) = &mut self.collector {
                    collector.take(&outcome);
                }
                fold(&mut self.summary, &Event::CaseFinished(CaseOutcome { transcripts: Vec::new(), ..outcome }));
            }
            other => fold(&mut self.summary, &other),
        }
    }
}
