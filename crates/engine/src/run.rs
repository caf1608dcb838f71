//! Runs plans against real servers and emits events. The order of events is the order in which things happened.

mod aftermath;
mod case;
mod command;
mod coverage;
mod expand;
mod group;
mod parity;
mod ports;
mod sessions;
pub mod snapshot;
mod step;
mod subscriptions;

use crate::suite::plan::{LimitChoices, Suite};
use case::{Finished, World};
use coverage::Collector;
pub use coverage::Covering;
use expand::{Work, expand};
use group::{Busy, Groups};
use mcproof_client::auth::Authorization;
use mcproof_client::{EraChoice, Guardian, Network, Patience, TransportKind};
use mcproof_record::{CaseOutcome, CasePlan, Event, FORMAT_VERSION, Summary, fold};
use parity::Wires;
use ports::Addresses;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::{JoinError, JoinSet};

/// How to run.
#[derive(Clone)]
pub struct RunOptions {
    /// Cases at the same time; at least 1.
    pub jobs: usize,
    /// Only these transports; all that the suite declares if empty.
    pub transports: Vec<TransportKind>,
    /// In place of what the suite says.
    pub era: Option<EraChoice>,
    pub protocol_version: Option<String>,
    pub connect_timeout: Option<Duration>,
    pub request_timeout: Option<Duration>,
    /// What a command that begins with `mcproof` starts: this very binary, also where none is on the PATH.
    pub mcproof: Option<PathBuf>,
    pub patience: Patience,
    pub guardian: Guardian,
    /// In place of what the suite says.
    pub limits: LimitChoices,
    pub network: Network,
    /// For HTTP servers that are not let in by their suite.
    pub authorization: Option<Authorization>,
    pub transcripts: Transcripts,
    pub coverage: Covering,
    pub snapshots: Snapshots,
}

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

/// What a run would execute.
pub fn cases(suites: &[Arc<Suite>], transports: &[TransportKind]) -> Vec<CasePlan> {
    expand(suites, transports).into_iter().map(|work| work.plan).collect()
}

/// Runs all cases until they are done or `stop` resolves, and gives what came of them. Each event goes to `sink` as it
/// happens. Every server that was started has ended when this returns.
pub async fn run(suites: Vec<Arc<Suite>>, options: RunOptions, stop: impl Future<Output = ()>, sink: &mut dyn FnMut(&Event)) -> Summary {
    let started = Instant::now();
    let mut waiting: VecDeque<Work> = expand(&suites, &options.transports).into();
    let collector = (options.coverage == Covering::Servers).then(|| Collector::of(waiting.iter().cloned()));
    let mut recorder = Recorder { summary: Summary::default(), collector, sink };
    recorder.record(Event::RunStarted { version: FORMAT_VERSION, cases: waiting.iter().map(|work| work.plan.clone()).collect() });
    for notice in suites.iter().flat_map(|suite| &suite.notices) {
        recorder.record(Event::Notice { diagnostic: notice.clone() });
    }
    waiting.iter().for_each(snapshot::forget_pending);
    let jobs = options.jobs.max(1);
    let world = World { options: Arc::new(options), addresses: Addresses::default(), groups: Groups::of(waiting.iter()) };
    let mut busy = Busy::default();
    let mut wires = Wires::of(&recorder.summary.planned);
    let mut running: JoinSet<Finished> = JoinSet::new();
    let mut ending: JoinSet<()> = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        while running.len() < jobs
            && ending.len() < jobs * ENDING_PER_JOB
            && let Some(next) = waiting.iter().position(|work| busy.is_free(work))
            && let Some(work) = waiting.remove(next)
        {
            busy.start(&work);
            recorder.record(Event::CaseStarted { id: work.plan.id });
            running.spawn(case::run_case(work, world.clone()));
        }
        if running.is_empty() && ending.is_empty() {
            break;
        }
        tokio::select! {
            biased;
            () = &mut stop => {
                // Dropping the cases kills their servers at once.
                running.shutdown().await;
                ending.shutdown().await;
                recorder.collector = None;
                break;
            }
            Some(finished) = running.join_next() => {
                let Finished { outcome, leftovers, group, wire } = unless_panicked(finished);
                busy.finish(group.as_ref());
                wires.add(&recorder.summary.planned[outcome.id.0 as usize], wire);
                recorder.record(Event::CaseFinished(outcome));
                ending.spawn(leftovers.end());
            }
            Some(ended) = ending.join_next() => unless_panicked(ended),
        }
    }
    for mut event in recorder.summary.transport_specific() {
        wires.explain(&mut event);
        recorder.record(event);
    }
    for diagnostic in suites.iter().filter_map(|suite| snapshot::leftovers(suite)) {
        recorder.record(Event::Notice { diagnostic });
    }
    if let Some(collector) = recorder.collector.take() {
        let covered = tokio::select! {
            biased;
            () = &mut stop => Vec::new(),
            covered = collector.events(&world) => covered,
        };
        covered.into_iter().for_each(|event| recorder.record(event));
    }
    let counts = recorder.summary.counts();
    recorder.record(Event::RunFinished { counts, duration: started.elapsed() });
    recorder.summary
}

/// Servers that may still be on their way out, for each that runs. They cost memory, not time.
const ENDING_PER_JOB: usize = 8;

/// A panic in a case is our bug: it must not look like a verdict.
fn unless_panicked<T>(joined: Result<T, JoinError>) -> T {
    joined.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// Folds the summary and feeds the sink.
struct Recorder<'a> {
    summary: Summary,
    /// Where coverage is asked for.
    collector: Option<Collector>,
    sink: &'a mut dyn FnMut(&Event),
}

impl Recorder<'_> {
    fn record(&mut self, event: Event) {
        (self.sink)(&event);
        // Transcripts are evidence for the sinks; the summary would only keep them in memory.
        match event {
            Event::CaseFinished(outcome) => {
                if let Some(collector) = &mut self.collector {
                    collector.take(&outcome);
                }
                fold(&mut self.summary, &Event::CaseFinished(CaseOutcome { transcripts: Vec::new(), ..outcome }));
            }
            other => fold(&mut self.summary, &other),
        }
    }
}
