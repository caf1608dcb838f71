//! What the waits of a check may take: a deadline for all of it, and less patience with a server that has been silent before.
//! Knows times and methods, not what is asked.

use mcproof_analysis::probes;
use mcproof_client::Reuse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// How long a check may take unless it is told otherwise.
const DEADLINE: Duration = Duration::from_secs(60);

/// How long the first request without a response is waited for, besides what a slow server gets.
const FIRST_SILENCE: Duration = Duration::from_secs(8);

/// What a server that was silent once still gets.
const NEXT_SILENCE: Duration = Duration::from_secs(1);

/// What a method gets that was not answered before.
const KNOWN_SILENCE: Duration = Duration::from_millis(300);

/// What all waits for nothing may take together, in conversations that follow one another.
const IN_VAIN: Duration = Duration::from_secs(14);

/// How many times longer than the slowest response so far a wait lasts.
const SLOWNESS: u32 = 3;

/// How many times longer than the slowest start so far the next one may take.
const SLOWNESS_OF_START: u32 = 8;

/// Every start gets at least this, if the user gives it so long.
const LEAST_START: Duration = Duration::from_secs(10);

/// What a server gets to answer in another era than one that it speaks, besides what a slow one gets.
const OTHER_ERA: Duration = Duration::from_secs(5);

/// A list of more tools is not asked for again and again.
const MANY: usize = 500;

/// A conversation of several that follow one another gets this part of the time that is left.
const SHARE: u32 = 3;

/// How long one process waits for the end of another that has to end first.
const LONGEST_WAIT_FOR_START_SLOT: Duration = Duration::from_secs(15);

/// A share is not made smaller than this.
const LEAST_SHARE: Duration = Duration::from_secs(8);

/// The time of one check. Its copies share what was used.
#[derive(Clone, Debug)]
pub struct Budget {
    deadline: Duration,
    shared: Arc<Shared>,
    /// Where processes have to run one after the other: whose turn it is.
    turns: Option<Arc<Semaphore>>,
}

#[derive(Debug, Default)]
struct Shared {
    end: OnceLock<Instant>,
    /// The slowest start that led to a conversation.
    start: Mutex<Option<Duration>>,
    starts: Mutex<StartCounts>,
    /// Set if the server accepted connections before it responded to any.
    listens_early: OnceLock<()>,
    /// Set once it is known how connections may be used, so that the rest of the check waits for none.
    reuse: OnceLock<Reuse>,
    has_examined_connections: AtomicBool,
    known: Arc<Mutex<Known>>,
    /// Waits of conversations that follow one another.
    in_vain: Arc<Mutex<Duration>>,
}

/// What came of the starts of processes, several of which ran at the same time.
#[derive(Clone, Copy, Debug, Default)]
struct StartCounts {
    /// A process ended by itself before it had said anything.
    died: bool,
    /// A handshake of the legacy era succeeded; another one failed.
    succeeded: bool,
    failed: bool,
}

impl Default for Budget {
    fn default() -> Self {
        Self::of(DEADLINE)
    }
}

impl Budget {
    pub fn of(deadline: Duration) -> Self {
        Self { deadline, shared: Arc::default(), turns: None }
    }

    /// What is left of this one, for a server of which one process runs at a time. What was learned is forgotten.
    pub(super) fn one_at_a_time(&self) -> Self {
        let shared = Shared { end: self.shared.end.clone(), ..Shared::default() };
        Self { deadline: self.deadline, shared: Arc::new(shared), turns: Some(Arc::new(Semaphore::new(1))) }
    }

    pub(super) fn is_one_at_a_time(&self) -> bool {
        self.turns.is_some()
    }

    /// Held as long as a process runs.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        let turns = Arc::clone(self.turns.as_ref()?);
        timeout(LONGEST_WAIT_FOR_START_SLOT, turns.acquire_owned()).await.ok()?.ok()
    }

    pub(super) fn listens_early(&self) {
        // Whoever knows it first is as good as another.
        let _ = self.shared.listens_early.set(());
    }

    /// Whether a process has to be asked until it responds, although it accepts connections.
    pub(super) fn is_known_to_listen_early(&self) -> bool {
        self.shared.listens_early.get().is_some()
    }

    /// What becomes of the connections to the server.
    pub(super) fn reuse(&self) -> Option<Reuse> {
        self.shared.reuse.get().copied()
    }

    pub(super) fn limit_connections(&self, reuse: Reuse) {
        // Whoever knows it first is as good as another.
        let _ = self.shared.reuse.set(reuse);
    }

    /// Whether it has been looked at how connections may be used.
    pub(super) fn has_examined_connections(&self) -> bool {
        self.shared.has_examined_connections.load(Ordering::Relaxed)
    }

    pub(super) fn mark_connections_examined(&self) {
        self.shared.has_examined_connections.store(true, Ordering::Relaxed);
    }

    pub(super) fn died_at_start(&self) {
        lock(&self.shared.starts).died = true;
    }

    /// What came of a handshake of the legacy era.
    pub(super) fn shook_hands(&self, succeeded: bool) {
        let mut starts = lock(&self.shared.starts);
        (starts.succeeded, starts.failed) = (starts.succeeded || succeeded, starts.failed || !succeeded);
    }

    /// Whether some processes did not come about that may have been in the way of one another.
    pub(super) fn were_in_the_way(&self) -> bool {
        let starts = *lock(&self.shared.starts);
        starts.died || starts.succeeded && starts.failed
    }

    /// From when on time is counted: the first caller counts.
    pub(super) fn begin(&self) {
        self.shared.end.get_or_init(|| Instant::now() + self.deadline);
    }

    pub(super) fn end(&self) -> Instant {
        *self.shared.end.get_or_init(|| Instant::now() + self.deadline)
    }

    pub(super) fn left(&self) -> Duration {
        self.end().saturating_duration_since(Instant::now())
    }

    /// The end of what begins now and is followed by others.
    pub(super) fn share(&self) -> Instant {
        let left = self.left();
        Instant::now() + left.min((left / SHARE).max(LEAST_SHARE))
    }

    /// Why rules are not tested for want of time: a lowercase fragment.
    pub(super) fn reason(&self) -> String {
        let deadline = mcproof_record::duration::readable(self.deadline);
        match self.left().is_zero() {
            true => format!("{} {deadline} had passed", probes::DEADLINE),
            false => format!("the conversation's part of {} {deadline} had passed", probes::DEADLINE),
        }
    }

    /// How long a start may take that the user gives `most`.
    pub(super) fn start(&self, most: Duration) -> Duration {
        if self.has_started() { most.min(self.fair_start()) } else { most }
    }

    /// A start that takes longer than this is too slow, or will not come about.
    pub(super) fn fair_start(&self) -> Duration {
        LEAST_START + lock(&self.shared.start).unwrap_or_default() * SLOWNESS_OF_START
    }

    /// How long a server that speaks another era may take to say that it does not speak this one.
    pub(super) fn other_era(&self) -> Option<Duration> {
        lock(&self.shared.start).map(|known| OTHER_ERA + known * SLOWNESS)
    }

    pub(super) fn lists_many(&self) -> bool {
        lock(&self.shared.known).lists_many
    }

    pub(super) fn listed(&self, tools: usize) {
        lock(&self.shared.known).lists_many |= tools > MANY;
    }

    pub(super) fn has_started(&self) -> bool {
        lock(&self.shared.start).is_some()
    }

    pub(super) fn started(&self, took: Duration) {
        let mut start = lock(&self.shared.start);
        *start = Some(start.map_or(took, |known| known.max(took)));
    }

    /// For a conversation that follows others.
    pub(super) fn one_by_one(&self) -> Waits {
        Waits { known: Arc::clone(&self.shared.known), in_vain: Arc::clone(&self.shared.in_vain) }
    }

    /// For a conversation that is held at the same time as others.
    pub(super) fn beside_others(&self) -> Waits {
        Waits { known: Arc::clone(&self.shared.known), in_vain: Arc::default() }
    }
}

/// What a long wait waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LongWait {
    Call,
    /// Of a call with wrong arguments.
    Refusal,
}

/// What is known of the server from earlier waits.
#[derive(Debug, Default)]
struct Known {
    /// Methods of requests without a response.
    silent: BTreeSet<String>,
    slowest: Duration,
    /// Methods of requests without a response where one was only to show that the server is at rest.
    ignored: BTreeSet<String>,
    /// How long the slowest call of each tool took that got a response.
    calls: BTreeMap<String, Duration>,
    /// The tools that were waited for long: how, with how many calls at once, and whether there was time for the whole wait.
    waited_long: BTreeSet<(LongWait, String, usize, bool)>,
    /// Tools of which such a wait showed that they respond late at times.
    slow_at_times: BTreeSet<String>,
    /// It lists so many tools that another request serves as well wherever any will do.
    lists_many: bool,
}

/// What came of the waits of a conversation, and of those before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    known: Arc<Mutex<Known>>,
    in_vain: Arc<Mutex<Duration>>,
}

impl Waits {
    /// How long a response is waited for; `None` if too much time has been lost already. `pace` is what the start took.
    pub(super) fn patience(&self, method: &str, pace: Duration) -> Option<Duration> {
        let known = lock(&self.known);
        let slow = known.slowest.max(pace) * SLOWNESS;
        if *lock(&self.in_vain) >= IN_VAIN + slow {
            return None;
        }
        Some(match (known.silent.is_empty(), known.silent.contains(method)) {
            (true, _) => FIRST_SILENCE + slow,
            (false, false) => NEXT_SILENCE + slow,
            (false, true) => KNOWN_SILENCE + slow,
        })
    }

    pub(super) fn is_silent(&self, method: &str) -> bool {
        lock(&self.known).silent.contains(method)
    }

    /// It is not asked again whether the server is at rest by this method, and nothing is held against the server.
    pub(super) fn ignored(&self, method: &str) {
        lock(&self.known).ignored.insert(method.to_owned());
    }

    pub(super) fn is_ignored(&self, method: &str) -> bool {
        lock(&self.known).ignored.contains(method)
    }

    pub(super) fn was_ever_silent(&self) -> bool {
        !lock(&self.known).silent.is_empty()
    }

    pub(super) fn answered(&self, took: Duration) {
        let mut known = lock(&self.known);
        known.slowest = known.slowest.max(took);
    }

    /// A call among others, which may have waited for its turn.
    pub(super) fn called(&self, tool: &str, took: Duration) {
        let mut known = lock(&self.known);
        let slowest = known.calls.entry(tool.to_owned()).or_default();
        *slowest = took.max(*slowest);
    }

    pub(super) fn slowest_call(&self) -> Duration {
        lock(&self.known).calls.values().max().copied().unwrap_or_default()
    }

    pub(super) fn slowest_call_of(&self, tool: &str) -> Duration {
        lock(&self.known).calls.get(tool).copied().unwrap_or_default()
    }

    /// Whether nobody has waited so long for so many of this at once so far: such a wait takes long, and says the same to the whole check.
    pub(super) fn begin_long_wait(&self, kind: LongWait, tool: &str, times: usize, is_whole: bool) -> bool {
        lock(&self.known).waited_long.insert((kind, tool.to_owned(), times, is_whole))
    }

    pub(super) fn was_slow_at_times(&self, tool: &str) {
        lock(&self.known).slow_at_times.insert(tool.to_owned());
    }

    pub(super) fn is_slow_at_times(&self, tool: &str) -> bool {
        lock(&self.known).slow_at_times.contains(tool)
    }

    pub(super) fn was_silent(&self, method: &str, after: Duration) {
        lock(&self.known).silent.insert(method.to_owned());
        *lock(&self.in_vain) += after;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_lowers_patience_until_there_is_none() {
        let (waits, pace) = (Waits::default(), Duration::ZERO);
        assert_eq!(waits.patience("ping", pace), Some(FIRST_SILENCE));
        waits.was_silent("ping", FIRST_SILENCE);
        assert_eq!(waits.patience("ping", pace), Some(KNOWN_SILENCE));
        assert_eq!(waits.patience("tools/list", pace), Some(NEXT_SILENCE));
        waits.answered(Duration::from_secs(3));
        assert_eq!(waits.patience("tools/list", pace), Some(NEXT_SILENCE + Duration::from_secs(9)));
        waits.was_silent("tools/list", IN_VAIN + Duration::from_secs(9));
        assert_eq!(waits.patience("prompts/list", pace), None);
    }

    #[test]
    fn what_a_long_wait_showed_is_known_to_every_conversation() {
        let budget = Budget::default();
        let (first, second) = (budget.beside_others(), budget.beside_others());
        let begins = |waits: &Waits, times: usize| waits.begin_long_wait(LongWait::Call, "search", times, true);
        assert!(begins(&first, 6));
        assert!(!begins(&second, 6) && begins(&second, 1));
        assert!(second.begin_long_wait(LongWait::Refusal, "search", 6, true));
        assert!(!second.is_slow_at_times("search"));
        first.was_slow_at_times("search");
        assert!(second.is_slow_at_times("search"));
    }

    #[test]
    fn a_start_gets_what_earlier_ones_took_several_times() {
        let (budget, most) = (Budget::default(), Duration::from_secs(30));
        assert_eq!(budget.start(most), most);
        budget.started(Duration::from_secs(1));
        assert_eq!(budget.start(most), Duration::from_secs(18));
        budget.started(Duration::from_secs(5));
        assert_eq!(budget.start(most), most);
    }
}
