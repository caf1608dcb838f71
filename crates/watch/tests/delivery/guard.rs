//! Two notifiers that freeze, die and are answered badly, in a time that only this test moves. Whatever arrives has to arrive
//! while its sender has the message to itself: that is what the guard promises, and all order follows from it. A notifier is
//! frozen by not being polled any more, as a process is that the system has stopped: its connections stay open.

use super::{BEGIN, INCIDENT, World, hooks, seconds};
use crate::frozen::{Freezable, breathe};
use crate::receiver::{Heard, Receiver, Reply};
use mcproof_client::Network;
use mcproof_watch::channel::{DeliveryClient, Kind};
use mcproof_watch::config::{ChannelSpec, Config, Secret};
use mcproof_watch::moment::Moment;
use mcproof_watch::notifier::{Guard, Notifier, Round};
use mcproof_watch::worker::Plan;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Of the notifiers, as it is in production.
const LEASE: Duration = seconds(30);
/// A message of each kind for each of them.
const INCIDENTS: usize = 3;
/// For everything to be told, in the time of the test.
const LONGEST: Duration = seconds(3_600);
/// In the time of the machine: whoever was not woken for so long waits for the time of the test.
const STILL: Duration = Duration::from_millis(15);

pub(crate) async fn what_arrives_arrives_while_its_sender_has_it_to_itself(address: String) {
    let mut frozen = 0;
    for seed in 0..6 {
        let told = tell(&address, Guard::Up, seed).await;
        assert_eq!(told.findings, Vec::<String>::new(), "seed {seed}");
        frozen += told.frozen;
    }
    assert!(frozen > 3, "only {frozen} were frozen before they sent");
}

pub(crate) async fn without_the_guard_somebody_hears_of_a_begin_after_its_end(address: String) {
    let mut findings = Vec::new();
    for seed in 0..200 {
        findings.extend(tell(&address, Guard::Down, seed).await.findings);
        let is_found = |what: &str| findings.iter().any(|finding| finding.contains(what));
        if is_found("after its lease") && is_found("after its end") {
            return;
        }
    }
    panic!("nobody noticed that the guard was down: {findings:?}");
}

/// What came of one run.
struct Told {
    findings: Vec<String>,
    /// How often a notifier froze that had something to send.
    frozen: usize,
}

/// What happens to a pass after it was polled so often, unless it has sent something by then. So nobody dies or freezes within
/// a transaction, which is for another test.
#[derive(Clone, Copy)]
enum Fate {
    Lives,
    Freezes { after: usize, lasts: Duration },
    Dies { after: usize },
}

struct Sender {
    running: Option<Running>,
    /// When it looks for work again.
    next: Instant,
}

struct Running {
    pass: Freezable<'static, Result<Round, sqlx::Error>>,
    number: usize,
    polls: usize,
    fate: Fate,
    frozen_until: Option<Instant>,
}

/// One outage after the other, told by two notifiers.
struct IncidentContext {
    world: World,
    pager: Receiver,
    guard: Guard,
    config: Config,
    random: fastrand::Rng,
    began: Instant,
    /// When each pass began, by its number, which is the path that it posts to.
    passes: Vec<Instant>,
    frozen: usize,
}

async fn tell(address: &str, guard: Guard, seed: u64) -> Told {
    tokio::time::pause();
    // As long as a thread is busy, time stands still unless it is moved.
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let busy = tokio::task::spawn_blocking(move || ended.recv().is_err());
    let pager = Receiver::http().await;
    let world = World::new(address, &hooks(&[("pager", &pager)])).await;
    let mut random = fastrand::Rng::with_seed(seed);
    pager.will((0..1_000).map(|_| match random.u8(..10) {
        0..5 => Reply::Accept,
        5..7 => Reply::Drop,
        7..9 => Reply::Status(500, ""),
        _ => Reply::Hang,
    }));
    let began = Instant::now();
    let mut scene = IncidentContext { world, pager, guard, config: Config::default(), random, began, passes: Vec::new(), frozen: 0 };
    scene.play().await;
    let findings = scene.findings().await;
    drop(end);
    assert!(busy.await.unwrap());
    tokio::time::resume();
    Told { findings, frozen: scene.frozen }
}

impl IncidentContext {
    async fn play(&mut self) {
        let mut messages = self.messages().await;
        let mut senders = [(); 2].map(|()| Sender { running: None, next: self.began });
        while self.began.elapsed() < LONGEST {
            let is_idle = senders.iter().all(|sender| sender.running.as_ref().is_none_or(Running::is_frozen));
            let is_due = |(at, ..): &(Duration, String, Kind)| *at <= self.began.elapsed();
            let is_more = messages.last().is_some_and(is_due);
            // We write while nobody else does, since we wait for it.
            if is_more && is_idle {
                let (_, incident, kind) = messages.pop().unwrap();
                self.write(&incident, kind).await;
                continue;
            }
            let mut moved = false;
            for sender in senders.iter_mut().filter(|sender| !is_more || sender.running.is_some()) {
                moved |= self.step(sender).await;
            }
            if moved {
                let by = Duration::from_millis(self.random.u64(..40));
                self.advance(by).await;
            } else if !is_idle {
                self.wait(&senders).await;
            } else if messages.is_empty() && senders.iter().all(|sender| sender.running.is_none()) && self.world.open().await == 0 {
                return;
            } else {
                self.advance(seconds(1)).await;
            }
        }
    }

    /// What is to be told and when, the first one last.
    async fn messages(&mut self) -> Vec<(Duration, String, Kind)> {
        let mut messages = Vec::new();
        for number in 0..INCIDENTS {
            let incident = format!("{INCIDENT}-{number}");
            let statement = "INSERT INTO incident (id, subject, class, severity, title, detail, since, opened) \
                             VALUES ($1, $1, 'availability', 'page', 'down', '{}', $2, $2) ON CONFLICT DO NOTHING";
            sqlx::query(statement).bind(&incident).bind(BEGIN.0).execute(&self.world.rows).await.unwrap();
            let mut at = Duration::ZERO;
            for kind in [Kind::Trigger, Kind::Update, Kind::Resolve] {
                at += Duration::from_millis(self.random.u64(..15_000));
                messages.push((at, incident.clone(), kind));
            }
        }
        messages.sort_by_key(|(at, ..)| std::cmp::Reverse(*at));
        messages
    }

    /// An end is written as it is when it was found out who is to be told.
    async fn write(&mut self, incident: &str, kind: Kind) {
        self.world.now = self.now();
        self.world.write(kind, &["pager"]).await;
        let statement = "UPDATE outbox SET incident = $1, tried_since = CASE WHEN kind = 'resolve' THEN created END WHERE incident = $2";
        sqlx::query(statement).bind(incident).bind(INCIDENT).execute(&self.world.rows).await.unwrap();
    }

    /// Lets a notifier go on for a little, if it can. False if it cannot.
    async fn step(&mut self, sender: &mut Sender) -> bool {
        let Some(running) = &mut sender.running else {
            let is_time = sender.next <= Instant::now();
            if is_time {
                sender.running = Some(self.begin());
            }
            return is_time;
        };
        if !running.can_go_on() {
            return false;
        }
        running.frozen_until = None;
        running.polls += 1;
        if let Poll::Ready(round) = running.pass.poll() {
            // Whoever comes back after a long time finds its connection gone, or that there are too many.
            let next = round.ok().and_then(|round| round.next).map_or(seconds(5), |next| next.since(self.now()).min(seconds(5)));
            *sender = Sender { running: None, next: Instant::now() + next };
            return true;
        }
        match running.fate {
            Fate::Freezes { after, lasts } if running.polls == after && !self.has_sent(running.number).await => {
                running.frozen_until = Some(Instant::now() + lasts);
                self.frozen += 1;
            }
            Fate::Dies { after } if running.polls == after && !self.has_sent(running.number).await => {
                *sender = Sender { running: None, next: Instant::now() + seconds(1) };
            }
            _ => {}
        }
        true
    }

    fn begin(&mut self) -> Running {
        let number = self.passes.len();
        self.passes.push(Instant::now());
        let channel = ChannelSpec::Webhook { url: Secret::new(self.pager.url(&format!("/{number}"))), secret: None };
        let config = Config { channels: [("pager".to_owned(), channel)].into(), ..self.config.clone() };
        let (_, plan) = watch::channel(Arc::new(Plan { config: Arc::new(config), targets: BTreeMap::new() }));
        let notifier = Notifier::new(self.world.store.clone(), plan, DeliveryClient::new(Network::default())).guarded(self.guard);
        let now = self.now();
        let after = self.random.usize(1..30);
        let fate = match self.random.u8(..6) {
            0..3 => Fate::Lives,
            3 => Fate::Dies { after },
            _ => Fate::Freezes { after, lasts: Duration::from_millis(self.random.u64(10_000..300_000)) },
        };
        Running { pass: Freezable::new(async move { notifier.pass(now).await }), number, polls: 0, fate, frozen_until: None }
    }

    /// Whether something of this pass has arrived, once what was sent had its time to.
    async fn has_sent(&self, number: usize) -> bool {
        let began = std::time::Instant::now();
        while began.elapsed() < Duration::from_millis(3) {
            breathe().await;
        }
        self.pager.heard().iter().any(|heard| pass_of(heard) == number)
    }

    /// Until somebody can go on. If nobody can, then all of them wait for time to pass.
    async fn wait(&self, senders: &[Sender]) {
        let began = std::time::Instant::now();
        while !senders.iter().any(|sender| sender.running.as_ref().is_some_and(Running::can_go_on)) {
            if began.elapsed() > STILL {
                return self.advance(seconds(1)).await;
            }
            breathe().await;
        }
    }

    async fn advance(&self, by: Duration) {
        breathe().await;
        tokio::time::advance(by).await;
    }

    fn now(&self) -> Moment {
        BEGIN + self.began.elapsed()
    }

    async fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        let heard = self.pager.heard();
        for one in &heard {
            let number = pass_of(one);
            let late = one.at - self.passes[number];
            if late >= LEASE {
                findings.push(format!("a {} came after its lease: {late:?} after pass {number} had begun", one.json()["kind"]));
            }
        }
        for number in 0..INCIDENTS {
            let incident = format!("{INCIDENT}-{number}");
            let of_it: Vec<Heard> = heard.iter().filter(|heard| heard.json()["incident"] == incident.as_str()).cloned().collect();
            let kinds: Vec<String> = of_it.iter().map(|heard| heard.json()["kind"].as_str().unwrap().to_owned()).collect();
            let first = |kind: &str| kinds.iter().position(|found| found == kind);
            match (first("trigger"), first("resolve")) {
                (Some(begin), Some(end)) if begin < end => {
                    if kinds[end..].iter().any(|kind| kind != "resolve") {
                        findings.push(format!("of {incident} something came after its end: {kinds:?}"));
                    }
                }
                _ => findings.push(format!("of {incident} the begin did not come, or not before the end: {kinds:?}")),
            }
        }
        if self.world.open().await > 0 {
            findings.push(format!("not everything was told within {LONGEST:?}"));
        }
        findings
    }
}

impl Running {
    fn is_frozen(&self) -> bool {
        self.frozen_until.is_some_and(|until| until > Instant::now())
    }

    fn can_go_on(&self) -> bool {
        !self.is_frozen() && self.pass.is_woken()
    }
}

fn pass_of(heard: &Heard) -> usize {
    heard.path[1..].parse().unwrap()
}
