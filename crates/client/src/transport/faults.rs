//! Faults that a plan requests, injected between the tap and the server: what a bad network or a tired server does. The
//! tap shows what our client really sent and got; a note says what was done to it. The one part of the transports that
//! looks at methods, and it is active only when faults are requested.

mod body;
mod lines;
mod refusal;
mod request;
mod subject;

pub use body::DisturbedBody;
pub(super) use body::Reading;
pub use lines::DisturbedLines;
pub use refusal::Refusal;
pub use request::{Admission, admit};
pub use subject::Subject;

use fastrand::Rng;
use refusal::Revoked;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use subject::OpenRequests;
use tokio::sync::watch;

/// How the note of an injected fault begins.
pub const FAULT_NOTE: &str = "fault: ";
/// How it begins if the fault only delayed a message.
pub const DELAY_NOTE: &str = "fault: delay: ";

/// One kind of fault, and which messages it hits.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultRule {
    pub disturbance: InjectedFault,
    pub toward: FaultDirection,
    /// Only requests of this method and their responses, or notifications of it. Without it the handshake is spared.
    pub method: Option<String>,
    /// Only calls of this tool and their responses.
    pub tool: Option<String>,
    pub schedule: Schedule,
    /// Of the dice for jitter and probability.
    pub seed: u64,
}

/// What is done to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// It comes later, by `delay` and up to `jitter` more.
    Latency {
        delay: Duration,
        jitter: Duration,
    },
    /// It comes in small pieces, at this rate.
    Throttle {
        bytes_per_second: u64,
    },
    /// It comes in small pieces, spread over this time.
    Drip {
        over: Duration,
    },
    Drop,
    Duplicate,
    /// The next message overtakes it.
    Reorder,
    /// Its second half is missing.
    Truncate,
    /// The connection breaks in the middle of it.
    Cut,
    /// The connection breaks in place of it; over stdio both pipes close.
    Reset,
    /// So many notifications of changed tools come before it.
    ListChanges {
        count: u32,
    },
    /// It and what follows it is held back until there are so many bytes, or the stream ends.
    Buffer {
        bytes: usize,
    },
    /// Only over HTTP: the server has forgotten the session, now and from here on.
    EndSession,
    /// Only over HTTP: the token is refused, now and from here on.
    ExpireToken,
    /// The connection breaks once nothing has passed for this time, whatever the messages are about.
    IdleCut {
        after: Duration,
    },
    /// Only over HTTP: the request is answered with this status, and the server never sees it.
    Status {
        code: u16,
        retry_after: Option<Duration>,
    },
}

impl InjectedFault {
    /// Whether a response of ours takes the place of the server's, which only HTTP has.
    pub fn refuses_requests(self) -> bool {
        matches!(self, Self::Status { .. } | Self::EndSession | Self::ExpireToken)
    }

    /// Its direction, where it has only one.
    pub fn only_toward(self) -> Option<FaultDirection> {
        match self {
            _ if self.refuses_requests() => Some(FaultDirection::Server),
            Self::ListChanges { .. } => Some(FaultDirection::Client),
            _ => None,
        }
    }
}

/// On which way a message is hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultDirection {
    Server,
    Client,
}

/// Which of the messages that a rule names are hit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Schedule {
    Always,
    First(u64),
    /// Each `n`th one.
    Every(u64),
    /// Each one with this chance, from 0 to 1.
    Probability(f64),
}

/// Decides which messages are hit. Clones share one state, so that the faults of a test go on where they were when a
/// connection is made anew.
#[derive(Clone, Debug)]
pub struct FaultInjector {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    rules: Vec<FaultRule>,
    state: Mutex<State>,
    paused: AtomicBool,
    /// Counts what went by, for those that are to be overtaken: toward the server, toward the client.
    passed: [watch::Sender<u64>; 2],
}

#[derive(Debug)]
struct State {
    rules: Vec<RuleState>,
    asked: OpenRequests,
    revoked: Revoked,
    /// What was done, in words, newest last.
    done: Vec<String>,
}

#[derive(Debug)]
struct RuleState {
    /// Messages that the rule names.
    named: u64,
    /// Messages that it hit.
    hit: u64,
    dice: Rng,
}

/// How many messages one rule was about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCount {
    /// Those that its conditions select, whether or not its schedule hits them.
    pub selected: u64,
    /// Those that it hit.
    pub hit: u64,
}

/// What is to be done to one message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MessageFaults {
    pub(super) delay: Duration,
    pub(super) bytes_per_second: Option<u64>,
    /// It takes this long from its first piece to its last.
    pub(super) spread_over: Option<Duration>,
    pub(super) planned: Option<PlannedFault>,
}

/// A disturbance of which a message suffers at most one, with the rule that requests it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    pub(super) disturbance: InjectedFault,
    rule: usize,
}

/// How long a message waits for another one to overtake it.
pub(super) const OVERTAKEN_WITHIN: Duration = Duration::from_millis(500);
/// Deeds told apart; after that they are only counted.
const MOST_TOLD: usize = 1000;
/// A throttled message comes in this many pieces a second.
const PIECES_PER_SECOND: u64 = 20;

/// How a message comes in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// Bytes of a piece.
    pub(super) size: usize,
    /// After each piece.
    pub(super) pause: Duration,
}

impl MessageFaults {
    /// How a message of this length goes out, if not at once.
    pub(super) fn pace(&self, length: usize) -> Option<Pace> {
        if let Some(over) = self.spread_over {
            let most = (over.as_secs_f64() * PIECES_PER_SECOND as f64).max(1.0) as usize;
            let size = length.div_ceil(most.min(length.max(1))).max(1);
            let pieces = u32::try_from(length.div_ceil(size)).unwrap_or(u32::MAX).max(1);
            return Some(Pace { size, pause: over / pieces });
        }
        let rate = self.bytes_per_second?.max(1);
        let size = (rate / PIECES_PER_SECOND).max(1);
        let pause = Duration::from_secs_f64(size as f64 / rate as f64);
        Some(Pace { size: usize::try_from(size).unwrap_or(usize::MAX), pause })
    }
}

impl FaultInjector {
    pub fn new(rules: Vec<FaultRule>) -> Self {
        let states = rules.iter().map(|rule| RuleState { named: 0, hit: 0, dice: Rng::with_seed(rule.seed) }).collect();
        let state = State { rules: states, asked: OpenRequests::default(), revoked: Revoked::default(), done: Vec::new() };
        let passed = [watch::Sender::new(0), watch::Sender::new(0)];
        Self { shared: Arc::new(Shared { rules, state: Mutex::new(state), paused: AtomicBool::new(false), passed }) }
    }

    /// How often each rule has hit something, in the order of the rules.
    pub fn hits(&self) -> Vec<u64> {
        self.state().rules.iter().map(|rule| rule.hit).collect()
    }

    /// How many messages each rule has selected and hit, in the order of the rules.
    pub fn counts(&self) -> Vec<FaultCount> {
        self.state().rules.iter().map(|rule| FaultCount { selected: rule.named, hit: rule.hit }).collect()
    }

    /// What was done so far, in words.
    pub fn done(&self) -> Vec<String> {
        self.state().done.clone()
    }

    /// Lets everything pass until it is resumed: for questions that are no part of a test.
    pub fn pause(&self) {
        self.shared.paused.store(true, Ordering::Relaxed);
    }

    pub fn resume(&self) {
        self.shared.paused.store(false, Ordering::Relaxed);
    }

    /// What to do to a message. Rules that it meets count it; actions count as hits once they are [`FaultInjector::did`].
    pub(super) fn treat(&self, toward: FaultDirection, subject: &Subject) -> MessageFaults {
        let mut treatment = MessageFaults::default();
        if self.shared.paused.load(Ordering::Relaxed) || *subject == Subject::Unknown {
            return treatment;
        }
        let mut state = self.state();
        for (index, rule) in self.shared.rules.iter().enumerate() {
            let way = rule.disturbance.only_toward().unwrap_or(rule.toward);
            // A status answers a request; nothing else has a response. Silence has no message.
            let fits = match rule.disturbance {
                InjectedFault::IdleCut { .. } => false,
                disturbance => !disturbance.refuses_requests() || matches!(subject, Subject::Request { .. }),
            };
            if way != toward || !fits || !subject.is_named_by(rule) {
                continue;
            }
            let RuleState { named, hit, dice } = &mut state.rules[index];
            *named += 1;
            let is_due = match rule.schedule {
                Schedule::Always => true,
                Schedule::First(count) => *named <= count,
                Schedule::Every(count) => named.is_multiple_of(count),
                Schedule::Probability(chance) => dice.f64() < chance,
            };
            if !is_due {
                continue;
            }
            match rule.disturbance {
                InjectedFault::Latency { delay, jitter } => {
                    *hit += 1;
                    treatment.delay += delay + jitter.mul_f64(dice.f64());
                }
                InjectedFault::Throttle { bytes_per_second } => {
                    *hit += 1;
                    let slowest = treatment.bytes_per_second.map_or(bytes_per_second, |other| other.min(bytes_per_second));
                    treatment.bytes_per_second = Some(slowest);
                }
                InjectedFault::Drip { over } => {
                    *hit += 1;
                    treatment.spread_over = Some(treatment.spread_over.map_or(over, |other| other.max(over)));
                }
                disturbance if treatment.planned.is_none() => treatment.planned = Some(PlannedFault { disturbance, rule: index }),
                _ => {}
            }
        }
        if treatment != MessageFaults::default() {
            state.asked.disturb(subject);
        }
        treatment
    }

    /// Reads a message on its way. Requests are remembered, so that their responses are known.
    pub(super) fn read(&self, toward: FaultDirection, bytes: &[u8]) -> Subject {
        self.state().asked.read(toward, bytes)
    }

    /// Whether something that this message belongs to was disturbed: then what is odd about it is our doing.
    pub(super) fn is_disturbed(&self, subject: &Subject) -> bool {
        self.state().asked.is_disturbed(subject)
    }

    /// An action was done; gives the words for the transcript.
    pub(super) fn did(&self, planned: PlannedFault, words: String) -> String {
        let mut state = self.state();
        state.rules[planned.rule].hit += 1;
        state.tell(words)
    }

    /// The words for what delays a message.
    pub(super) fn delayed(&self, treatment: &MessageFaults, subject: &Subject) -> Option<String> {
        let mut parts = Vec::new();
        if !treatment.delay.is_zero() {
            parts.push(format!("held {subject} back for {} ms", treatment.delay.as_millis()));
        }
        if let Some(rate) = treatment.bytes_per_second {
            parts.push(format!("slowed {subject} down to {rate} bytes a second"));
        }
        if let Some(over) = treatment.spread_over {
            parts.push(format!("spread {subject} over {} ms", over.as_millis()));
        }
        (!parts.is_empty()).then(|| self.state().tell(format!("delay: {}", parts.join(" and "))))
    }

    /// After how much silence a connection breaks, if it does.
    pub fn idle_cut(&self) -> Option<(Duration, PlannedFault)> {
        let cut = |(rule, known): (usize, &FaultRule)| match known.disturbance {
            InjectedFault::IdleCut { after } => Some((after, PlannedFault { disturbance: known.disturbance, rule })),
            _ => None,
        };
        self.shared.rules.iter().enumerate().filter_map(cut).min_by_key(|(after, _)| *after)
    }

    /// A connection breaks because of silence; gives the words for the transcript.
    pub fn cut_idle(&self, after: Duration, planned: PlannedFault) -> String {
        self.did(planned, format!("closed a connection that was silent for {} ms", after.as_millis()))
    }

    /// A message went by.
    pub(super) fn pass(&self, toward: FaultDirection) {
        self.shared.passed[index(toward)].send_modify(|count| *count += 1);
    }

    /// Changes when another message has gone by.
    pub(super) fn passing(&self, toward: FaultDirection) -> watch::Receiver<u64> {
        self.shared.passed[index(toward)].subscribe()
    }

    /// Waits until another message has gone by; `false` if none does.
    pub(super) async fn overtaken(&self, toward: FaultDirection) -> bool {
        let mut passing = self.passing(toward);
        tokio::time::timeout(OVERTAKEN_WITHIN, passing.changed()).await.is_ok_and(|changed| changed.is_ok())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tell(&mut self, words: String) -> String {
        let note = format!("{FAULT_NOTE}{words}");
        if self.done.len() < MOST_TOLD {
            self.done.push(words);
        }
        note
    }
}

/// A notification that the tools have changed.
const LIST_CHANGED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

fn index(toward: FaultDirection) -> usize {
    match toward {
        FaultDirection::Server => 0,
        FaultDirection::Client => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#;

    fn rule(disturbance: InjectedFault, schedule: Schedule) -> FaultRule {
        FaultRule { disturbance, toward: FaultDirection::Server, method: None, tool: None, schedule, seed: 1 }
    }

    /// Which of eight calls are hit.
    fn check(rule: FaultRule, expected: &str) -> FaultInjector {
        let injector = FaultInjector::new(vec![rule]);
        let subject = injector.read(FaultDirection::Server, CALL);
        let hit: String =
            (0..8).map(|_| if injector.treat(FaultDirection::Server, &subject) == MessageFaults::default() { '.' } else { 'x' }).collect();
        assert_eq!(hit, expected);
        injector
    }

    #[test]
    fn a_schedule_says_which_messages_are_hit() {
        check(rule(InjectedFault::Drop, Schedule::Always), "xxxxxxxx");
        check(rule(InjectedFault::Drop, Schedule::First(2)), "xx......");
        check(rule(InjectedFault::Drop, Schedule::Every(3)), "..x..x..");
        check(rule(InjectedFault::Drop, Schedule::Probability(0.0)), "........");
        check(rule(InjectedFault::Drop, Schedule::Probability(1.0)), "xxxxxxxx");
    }

    #[test]
    fn a_rule_names_its_messages() {
        let drop = rule(InjectedFault::Drop, Schedule::Always);
        let to = |tool: &str| FaultRule { tool: Some(tool.into()), ..drop.clone() };
        check(to("echo"), "xxxxxxxx");
        check(to("other"), "........");
        check(FaultRule { method: Some("tools/call".into()), ..drop.clone() }, "xxxxxxxx");
        check(FaultRule { method: Some("ping".into()), ..drop.clone() }, "........");
        check(FaultRule { toward: FaultDirection::Client, ..drop.clone() }, "........");
        check(
            FaultRule { toward: FaultDirection::Client, ..rule(InjectedFault::Status { code: 503, retry_after: None }, Schedule::Always) },
            "xxxxxxxx",
        );
    }

    #[test]
    fn what_chance_spares_is_selected_all_the_same() {
        let selected = |tool: &str| {
            let rule = FaultRule { tool: Some(tool.into()), ..rule(InjectedFault::Drop, Schedule::Probability(0.0)) };
            check(rule, "........").counts()
        };
        assert_eq!(selected("echo"), [FaultCount { selected: 8, hit: 0 }]);
        assert_eq!(selected("other"), [FaultCount::default()]);
    }

    #[test]
    fn the_same_seed_gives_the_same_faults() {
        let hits = |seed| {
            let injector = FaultInjector::new(vec![FaultRule { seed, ..rule(InjectedFault::Drop, Schedule::Probability(0.5)) }]);
            let subject = injector.read(FaultDirection::Server, CALL);
            (0..64).map(|_| injector.treat(FaultDirection::Server, &subject).planned.is_some()).collect::<Vec<_>>()
        };
        assert_eq!(hits(7), hits(7));
        assert_ne!(hits(7), hits(8));
        assert!(hits(7).contains(&true) && hits(7).contains(&false));
    }

    #[test]
    fn the_handshake_is_spared_unless_it_is_named() {
        let injector = |method: Option<&str>| {
            FaultInjector::new(vec![FaultRule { method: method.map(str::to_owned), ..rule(InjectedFault::Drop, Schedule::Always) }])
        };
        let hits = |injector: FaultInjector, message: &[u8]| {
            let subject = injector.read(FaultDirection::Server, message);
            injector.treat(FaultDirection::Server, &subject).planned.is_some()
        };
        let initialize = br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;
        assert!(!hits(injector(None), initialize));
        assert!(hits(injector(Some("initialize")), initialize));
        assert!(!hits(injector(None), b"noise"));
    }

    #[test]
    fn what_an_answer_belongs_to_is_remembered() {
        let injector =
            FaultInjector::new(vec![FaultRule { toward: FaultDirection::Client, ..rule(InjectedFault::Duplicate, Schedule::Always) }]);
        injector.read(FaultDirection::Server, CALL);
        let answer = injector.read(FaultDirection::Client, br#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert_eq!(answer.to_string(), "the response to `tools/call echo` (request 1)");
        assert!(!injector.is_disturbed(&answer));
        let treatment = injector.treat(FaultDirection::Client, &answer);
        let planned = treatment.planned.unwrap();
        assert_eq!(injector.hits(), [0]);
        assert_eq!(
            injector.did(planned, format!("sent {answer} twice")),
            "fault: sent the response to `tools/call echo` (request 1) twice"
        );
        assert_eq!(injector.hits(), [1]);
        assert!(injector.is_disturbed(&answer));
    }
}
