//! Runs the monitor until it is asked to end: probing, telling, and the look at its own file. Owns the loops and their end; what
//! a pass does, the parts know.

use super::log::{Form, Level};
use super::reading::{self, Read};
use super::{Arguments, Part, of_store};
use crate::conversation::{self, Interrupts};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{network, output, settings};
use mcproof_client::{Guardian, Network};
use mcproof_record::Diagnostic;
use mcproof_report::escape;
use mcproof_system::files;
use mcproof_system::signals::ReloadRequests;
use mcproof_watch::channel::DeliveryClient;
use mcproof_watch::clock::Clock;
use mcproof_watch::config::Config;
use mcproof_watch::heartbeat::{HeartbeatOutcome, HeartbeatSender};
use mcproof_watch::metrics::Metrics;
use mcproof_watch::moment::Moment;
use mcproof_watch::monitor::{Monitor, Reach, Role, keep_passing};
use mcproof_watch::notifier::{Notifier, Sent};
use mcproof_watch::standby::{News, Standby};
use mcproof_watch::state::Availability;
use mcproof_watch::store::StoreFailure;
use mcproof_watch::store::read::{TargetRow, Which};
use mcproof_watch::subscribers::{FailedMessage, Subscribers};
use mcproof_watch::web::{self, ServeFailure};
use mcproof_watch::worker::{Plan, Trouble};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::net::TcpListener;
use tokio::sync::{Notify, broadcast, watch};
use tokio::time::{Instant, sleep, timeout};

/// Targets that one line of the log names.
const MOST_NAMED: usize = 10;
/// How often another process may have written what is to be told.
const POLL: Duration = Duration::from_secs(1);
/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Changes that an open page may be behind.
const BELL: usize = 256;
/// For what is on its way when everything ends: a message that was not taken by then is sent again by the next process.
const LAST_CALL: Duration = Duration::from_secs(1);
/// For giving back leases after that.
const LAST_WORDS: Duration = Duration::from_millis(700);
/// What is told after `--once` at the most: time for five channels that do not respond.
const LAST_MESSAGES: Duration = Duration::from_secs(60);
/// Of a database that was opened with a damaged log.
const LOST_LOG: [(&str, &str); 2] = [
    ("why", "the write-ahead log of the database was damaged: what was written last is lost, such as incidents and acknowledgements"),
    ("hint", "check the disk; if more is missing than that, end the monitor and put a backup in place"),
];
/// Open incidents that are looked through for the reason why a target is down.
const MOST_INCIDENTS: i64 = 1_000;

/// The parts that are told about the end.
struct Services {
    monitor: Monitor,
    notifier: Notifier,
    subscribers: Subscribers,
    heartbeat_sender: HeartbeatSender,
    delivery_client: DeliveryClient,
    clock: Clock,
    log: Form,
    /// What the database did not do the last time, by what it was asked for.
    complaints: Mutex<BTreeMap<&'static str, String>>,
}

/// `seen` are the files as they were before they were read.
pub(super) fn run(path: &Path, arguments: &Arguments, config: Config, seen: Seen) -> Result<Exit, Failure> {
    let log = if arguments.json { Form::Json } else { Form::Text };
    conversation::run(async {
        let mut interrupts = if arguments.once { Interrupts::new()? } else { Interrupts::but_hangup()? };
        // Before anything is written: an address that is taken must not cost a database.
        let listener = match config.listen.filter(|_| arguments.role == Part::Serve && !arguments.once) {
            Some(address) => Some(listen(address, &config).await?),
            None => None,
        };
        // From here on, SIGHUP means to read the file again, also while the database is opened.
        let hung_up = if arguments.once { None } else { ReloadRequests::new() };
        let house = open(config, log, arguments).await?;
        if arguments.once {
            let exit = tokio::select! {
                exit = house.once() => exit?,
                exit = interrupts.next() => exit,
            };
            // What cannot be taken out of the database is forgotten in time.
            let _ = timeout(LAST_WORDS, house.monitor.give_back()).await;
            Ok(exit)
        } else {
            house.stay(path, arguments, seen, listener, interrupts, hung_up).await
        }
    })?
}

async fn open(config: Config, log: Form, arguments: &Arguments) -> Result<Services, Failure> {
    let network = Network { proxies: network::of_environment(), ..Network::default() };
    let clock = Clock::of_machine(settings::now);
    let reach = Reach {
        network: network.clone(),
        guardian: Guardian::of_whole_process(),
        own_binary: settings::own_binary(),
        variables: settings::variables(),
        name: format!("{}-{}", std::process::id(), clock.now().0),
    };
    // Only who does everything, and stays, can stand in for a database.
    let monitor = if arguments.role == Part::Serve && !arguments.once {
        let (monitor, failure) = Monitor::open_or_stand_by(config, reach, &clock).await.map_err(|failure| of_store(&failure))?;
        if let Some(failure) = failure {
            let hint = failure.hint().map(|hint| ("hint", hint));
            let why = failure.to_string();
            let said: Vec<_> = [("while", "starting"), ("why", why.as_str())].into_iter().chain(hint).collect();
            log.say(Level::Error, "database", &said);
        }
        monitor
    } else {
        Monitor::open(config, reach, &clock).await.map_err(|failure| of_store(&failure))?
    };
    if monitor.store.has_lost_log() {
        log.say(Level::Error, "database", &[&[("while", "starting")][..], &LOST_LOG].concat());
    }
    let name = format!("{}-{}", std::process::id(), clock.now().0);
    let subscribers = Subscribers::new(monitor.store.clone(), monitor.plan(), network.clone(), name);
    let delivery_client = DeliveryClient::new(network);
    let notifier = Notifier::new(monitor.store.clone(), monitor.plan(), delivery_client.clone());
    let notifier = if arguments.once { notifier.in_passing() } else { notifier };
    let heartbeat_sender =
        HeartbeatSender::new(monitor.store.clone(), monitor.plan(), delivery_client.clone(), monitor.worker_health.clone());
    Ok(Services { monitor, notifier, subscribers, heartbeat_sender, delivery_client, clock, log, complaints: Mutex::default() })
}

impl Services {
    async fn once(&self) -> Result<Exit, Failure> {
        let start = self.clock.now();
        self.monitor.once(&self.clock).await.map_err(|failure| of_store(&failure))?;
        let began = Instant::now();
        loop {
            let now = self.clock.now();
            let round = self.notifier.pass(now).await.map_err(|error| of_store(&error.into()))?;
            self.tell(&round.sent);
            let Some(next) = round.next else { break };
            let rest = next.since(self.clock.now());
            if began.elapsed() + rest > LAST_MESSAGES {
                break;
            }
            sleep(rest).await;
        }
        // A database that fails is told by what comes next.
        let _ = self.beat(self.clock.now(), &mut None).await;
        let mut exit = Exit::Passed;
        let plan = self.monitor.plan();
        let plan = Arc::clone(&plan.borrow());
        let is_ours = |name: &str| plan.targets.get(name).is_some_and(|spec| spec.is_probed_from(&plan.config.region));
        let store = &self.monitor.store;
        let targets = store.targets().await.map_err(|failure| of_store(&failure))?;
        if targets.is_empty() {
            output::talk("there are no targets, so nothing was probed\n");
            exit = Exit::NothingSelected;
        }
        let open = store.incidents(Which::Open, None, MOST_INCIDENTS).await.map_err(|failure| of_store(&failure))?;
        let inconclusive = store.inconclusive(start).await.map_err(|failure| of_store(&failure))?;
        for TargetRow { name, availability, surface, last_result, .. } in targets {
            // What came of an earlier run says nothing about this one.
            let is_unknown = is_ours(&name) && last_result < start;
            let incident = open.iter().filter(|incident| incident.subject == name).max_by_key(|incident| incident.severity);
            let why = match incident {
                _ if is_unknown && inconclusive.contains_key(&name) => format!("  inconclusive: {}", escape(&inconclusive[&name])),
                _ if is_unknown => "  (no result: a problem of this machine, or another process is probing it)".to_owned(),
                Some(incident) => format!("  {}", escape(&incident.title)),
                None => String::new(),
            };
            let state = if is_unknown { "unknown" } else { availability.word() };
            output::show(&format!("{state:11} {:8} {}{why}\n", surface.word(), escape(&name)))?;
            if is_unknown || !matches!(availability, Availability::Ok | Availability::Recovering) {
                exit = Exit::Failed;
            }
        }
        if let Some((why, hint)) = idle(&plan) {
            // What others know of these targets is no result of this run.
            output::talk(&format!("{why}, so nothing was probed: {hint}\n"));
            exit = Exit::NothingSelected;
        }
        if let Some(trouble) = self.monitor.worker_health.report().trouble {
            let hint = trouble.hint.unwrap_or("check `database` in the configuration");
            self.log.say(Level::Error, "results-not-written", &[("why", &trouble.why), ("hint", hint)]);
            exit = Exit::Failed;
        }
        if self.monitor.store.oldest_unsent_page().await.map_err(|failure| of_store(&failure))?.is_some() {
            self.log.say(Level::Error, "not-told", &[("why", "no channel accepted the alert"), ("hint", "retried in the next run")]);
            exit = Exit::Failed;
        }
        Ok(exit)
    }

    async fn stay(
        &self,
        path: &Path,
        arguments: &Arguments,
        seen: Seen,
        listener: Option<TcpListener>,
        mut interrupts: Interrupts,
        hung_up: Option<ReloadRequests>,
    ) -> Result<Exit, Failure> {
        let role = role_of(arguments.role);
        let (ended, _) = watch::channel(false);
        let stopped = || {
            let mut ended = ended.subscribe();
            async move { drop(ended.wait_for(|ended| *ended).await) }
        };
        let stopping = async {
            let exit = interrupts.next().await;
            self.log.say(Level::Info, "ending", &[]);
            ended.send_replace(true);
            exit
        };
        let targets = self.monitor.plan().borrow().targets.len().to_string();
        self.log.say(Level::Info, "started", &[("targets", &targets), ("role", arguments.role.word())]);
        self.point_out_idleness(role);
        let telling = async {
            if role != Role::Worker {
                // Several at the same time: a service that hangs keeps only one of them from the others.
                let teller = || keep_passing(async |now| self.notify(now).await, &self.monitor.stirred, &self.clock, stopped());
                tokio::join!(teller(), teller(), teller());
            }
        };
        let beating = async {
            if role == Role::Serve {
                let mut last = None;
                let never = Notify::new();
                keep_passing(async |now| self.beat(now, &mut last).await, &never, &self.clock, stopped()).await;
            }
        };
        let telling_subscribers = async {
            if role != Role::Worker {
                let never = Notify::new();
                keep_passing(async |now| self.tell_subscribers(now).await, &never, &self.clock, stopped()).await;
            }
        };
        let bound = listener.as_ref().and_then(|listener| listener.local_addr().ok());
        let showing = async {
            if let Some(listener) = listener {
                self.show(listener, stopped()).await;
            }
        };
        let reading = self.read_again(path, arguments, bound, seen, hung_up, stopped());
        let complaining = self.complain(stopped());
        let probing = self.monitor.run(role, &self.clock, stopped());
        let standing_by = async {
            if role == Role::Serve {
                let standby = Standby::new(self.monitor.clone(), self.delivery_client.clone()).after(&self.notifier);
                standby.run(&self.clock, |news| self.tell_of_standby(&news), stopped()).await;
            }
        };
        let working = async { tokio::join!(probing, telling, telling_subscribers, beating, showing, reading, complaining) };
        let last_call = async {
            stopped().await;
            sleep(LAST_CALL).await;
        };
        let working = async {
            tokio::select! {
                _ = working => {}
                () = last_call => {}
            }
        };
        // Whoever stands in for the database ends in a time of its own: what it knows is nowhere else.
        let (exit, (), ()) = tokio::join!(stopping, working, standing_by);
        // A database that is gone has no leases either; one that does not answer lets them end.
        let _ = timeout(LAST_WORDS, self.monitor.give_back()).await;
        Ok(exit)
    }

    /// Serves the dashboard.
    async fn show(&self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let address = listener.local_addr().map(|address| format!("http://{address}")).unwrap_or_default();
        self.log.say(Level::Info, "dashboard", &[("at", &address)]);
        let plan = self.monitor.plan();
        let (bell, _) = broadcast::channel(BELL);
        let clock = self.clock.clone();
        let mut state =
            web::State::new(self.monitor.store.clone(), Arc::new(move || Arc::clone(&plan.borrow().config)), move || clock.now(), bell);
        state.network.proxies = network::of_environment();
        state.worker_health = self.monitor.worker_health.clone();
        state.instance = format!("{}/{}/{}", self.monitor.worker.region, settings::host_name(), std::process::id());
        let metrics = Arc::clone(&state.metrics);
        let mut stop = std::pin::pin!(stop);
        let changed = Arc::clone(&state.targets_changed);
        let refreshing = async {
            loop {
                changed.notified().await;
                if let Err(failure) = self.monitor.refresh(self.clock.now()).await {
                    self.log.say(Level::Error, "database", &[("while", "reading targets"), ("why", &failure.to_string())]);
                }
            }
        };
        tokio::select! {
            served = web::serve(listener, state, &mut stop) => if let Err(failure) = served {
                self.log.say(Level::Error, "dashboard-ended", &[("why", &failure.to_string()), ("hint", failure.hint())]);
            },
            () = refreshing => {}
            () = self.complain_of_collector(&metrics) => {}
        }
    }

    /// Says so when the collector of OTLP does not take what it is sent, and when it does again.
    async fn complain_of_collector(&self, metrics: &Metrics) {
        let mut trouble: Option<String> = None;
        loop {
            sleep(POLL).await;
            let now = metrics.trouble_with_collector();
            match (&trouble, &now) {
                (None, Some(why)) => self.log.say(Level::Warning, "otlp-failed", &[("why", why)]),
                (Some(_), None) => self.log.say(Level::Info, "otlp-works-again", &[]),
                _ => {}
            }
            trouble = now;
        }
    }

    /// Says so once, as long as it is the same.
    fn complain_once(&self, task: &'static str, failure: &StoreFailure) {
        let failure = if self.monitor.store.is_displaced() { &StoreFailure::Displaced } else { failure };
        let why = failure.to_string();
        if self.lock_complaints().insert(task, why.clone()).as_ref() != Some(&why) {
            let hint = failure.hint().map(|hint| ("hint", hint));
            let said: Vec<_> = [("while", task), ("why", why.as_str())].into_iter().chain(hint).collect();
            self.log.say(Level::Error, "database", &said);
        }
    }

    fn works_again(&self, task: &'static str) {
        self.lock_complaints().remove(task);
    }

    fn lock_complaints(&self) -> MutexGuard<'_, BTreeMap<&'static str, String>> {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_of_standby(&self, news: &News) {
        match news {
            News::Began => self.log.say(Level::Warning, "standby", &[("why", "cannot write to the database: results are kept in memory")]),
            News::Unread(why) => self.log.say(Level::Warning, "standby", &[("while", "reading the database"), ("why", why)]),
            News::Sent(sent) => self.tell(sent),
            News::Ended => self.log.say(Level::Info, "standby-ended", &[("why", "what was kept in memory was written to the database")]),
            News::LostLog => self.log.say(Level::Error, "database", &[&[("while", "opening it")][..], &LOST_LOG].concat()),
            News::Lost(why) => {
                let why =
                    format!("the database does not accept what was kept in memory, so results, acknowledgements and mutes are lost: {why}");
                self.log.say(Level::Error, "standby-lost", &[("why", &why), ("hint", "acknowledge and mute again after the restart")]);
            }
        }
    }

    async fn notify(&self, now: Moment) -> Result<Option<Moment>, ()> {
        if self.monitor.worker_health.report().is_replaced {
            return Ok(Some(now + POLL));
        }
        match self.notifier.pass(now).await {
            Ok(round) => {
                self.works_again("telling");
                self.tell(&round.sent);
                let poll = now + POLL;
                Ok(Some(round.next.map_or(poll, |next| next.min(poll))))
            }
            Err(error) => {
                self.complain_once("telling", &error.into());
                Err(())
            }
        }
    }

    async fn tell_subscribers(&self, now: Moment) -> Result<Option<Moment>, ()> {
        match self.subscribers.pass(now).await {
            Ok((failed, next)) => {
                self.works_again("telling subscribers");
                for FailedMessage { message, why } in &failed {
                    self.log.say(Level::Warning, "subscriber-not-told", &[("message", message), ("why", why)]);
                }
                Ok(Some(next))
            }
            Err(failure) => {
                self.complain_once("telling subscribers", &failure);
                Err(())
            }
        }
    }

    fn tell(&self, sent: &[Sent]) {
        for Sent { incident, subject, kind, channel, outcome } in sent {
            let of_all =
                [("target", subject.as_str()), ("kind", kind.word()), ("channel", channel.as_str()), ("incident", incident.as_str())];
            match outcome {
                Ok(answer) => self.log.say(Level::Info, "sent", &[of_all.as_slice(), &[("answer", answer)]].concat()),
                Err(why) => self.log.say(Level::Warning, "not-sent", &[of_all.as_slice(), &[("why", why)]].concat()),
            }
        }
    }

    async fn beat(&self, now: Moment, last: &mut Option<HeartbeatOutcome>) -> Result<Option<Moment>, ()> {
        let (beat, next) = match self.heartbeat_sender.pass(now).await {
            Ok(beaten) => {
                self.works_again("heartbeat");
                beaten
            }
            Err(failure) => {
                self.complain_once("heartbeat", &failure);
                return Err(());
            }
        };
        if beat != HeartbeatOutcome::Waited && last.as_ref() != Some(&beat) {
            match &beat {
                HeartbeatOutcome::Fetched => self.log.say(Level::Info, "heartbeat", &[]),
                HeartbeatOutcome::Silent(why) => self.log.say(Level::Warning, "heartbeat-silent", &[("why", why)]),
                HeartbeatOutcome::Failed(why) => self.log.say(Level::Warning, "heartbeat-failed", &[("why", why)]),
                HeartbeatOutcome::Waited => {}
            }
            *last = Some(beat);
        }
        // A configuration that is read again may bring one.
        Ok(Some(next.unwrap_or(now + POLL)))
    }

    /// Takes over what the file says when it or a file of it changes, or on SIGHUP; what the database did not take is tried again.
    /// `bound` is where the dashboard listens.
    async fn read_again(
        &self,
        path: &Path,
        arguments: &Arguments,
        bound: Option<SocketAddr>,
        mut seen: Seen,
        mut hung_up: Option<ReloadRequests>,
        stop: impl Future<Output = ()>,
    ) {
        let mut stop = std::pin::pin!(stop);
        let mut refused: Option<String> = None;
        loop {
            let asked = tokio::select! {
                biased;
                () = &mut stop => return,
                Some(()) = async { hung_up.as_mut()?.next().await } => true,
                () = sleep(LOOK) => false,
            };
            if seen.is_current(path) && !asked && refused.is_none() {
                continue;
            }
            seen = look(path);
            let read = match reading::read(path, &arguments.instead) {
                Ok(read) => read,
                Err(failure) => Read::Mistaken(vec![*failure.diagnostic]),
            };
            match read {
                Read::Flawless(loaded) => {
                    if let Some(failure) = bound.and_then(|address| opened(address, &loaded.config)) {
                        refused = None;
                        self.monitor.reject(&failure.to_string(), self.clock.now()).await;
                        self.log.say(Level::Error, "not-reloaded", &[("why", &failure.to_string()), ("hint", failure.hint())]);
                        continue;
                    }
                    if refused.is_none() {
                        self.point_out(Level::Warning, &loaded.warnings);
                    }
                    self.monitor.worker_health.reject(None);
                    match self.monitor.reload(loaded.config, self.clock.now()).await {
                        Ok(_) => {
                            let targets = self.monitor.plan().borrow().targets.len().to_string();
                            self.log.say(Level::Info, "reloaded", &[("targets", &targets)]);
                            self.point_out_idleness(role_of(arguments.role));
                            refused = None;
                        }
                        Err(failure) => {
                            let why = failure.to_string();
                            self.monitor.worker_health.reject(Some(&format!("the database does not take it: {why}")));
                            if refused.as_ref() != Some(&why) {
                                let hint = "retried until the database accepts it";
                                self.log.say(Level::Error, "not-reloaded", &[("why", &why), ("hint", hint)]);
                            }
                            refused = Some(why);
                        }
                    }
                }
                Read::Mistaken(mistakes) => {
                    refused = None;
                    self.point_out(Level::Error, &mistakes);
                    self.monitor.reject(&reading::in_short(&mistakes), self.clock.now()).await;
                    self.log.say(Level::Error, "not-reloaded", &[("why", "the configuration has errors: the previous one stays in use")]);
                }
            }
        }
    }

    /// Says so if nothing is probed from here, although there are targets.
    fn point_out_idleness(&self, role: Role) {
        let plan = self.monitor.plan();
        let plan = Arc::clone(&plan.borrow());
        if let Some((why, hint)) = idle(&plan).filter(|_| role != Role::Notifier) {
            self.log.say(Level::Warning, "nothing-to-probe", &[("why", &why), ("hint", &hint)]);
        }
    }

    /// What is to be said about the file.
    fn point_out(&self, level: Level, found: &[Diagnostic]) {
        reading::point_out(self.log, level, found);
    }

    /// Says so when the database does not do what it is asked, and when it does again.
    async fn complain(&self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut trouble: Option<Trouble> = None;
        let mut neglected: Option<String> = None;
        let mut of_others = self.monitor.targets_of_others();
        let mut unreadable = self.monitor.unreadable_targets();
        of_others.mark_changed();
        unreadable.mark_changed();
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return,
                () = sleep(POLL) => {}
            }
            let named = |names: &BTreeSet<String>| names.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(" ");
            if of_others.has_changed().unwrap_or(false) {
                let targets = named(&of_others.borrow_and_update());
                let why = "a process with another configuration uses this database; alerts are sent by either of them";
                let hint = "give all processes of a database the same configuration, or each configuration a database of its own";
                if !targets.is_empty() {
                    self.log.say(Level::Warning, "other-configuration", &[("targets", &targets), ("why", why), ("hint", hint)]);
                }
            }
            if unreadable.has_changed().unwrap_or(false) {
                let targets = named(&unreadable.borrow_and_update());
                let why =
                    "they were added over the API, and cannot be opened with this `seal_key`, or are at an address that is not allowed";
                let hint = "nobody probes them: set the `seal_key` that they were added with, or add them again";
                if !targets.is_empty() {
                    self.log.say(Level::Error, "targets-unreadable", &[("targets", &targets), ("why", why), ("hint", hint)]);
                }
            }
            let report = self.monitor.worker_health.report();
            let now_neglected = report.neglect();
            // While nothing can be written, that is told.
            if report.trouble.is_none() && now_neglected != neglected {
                match &now_neglected {
                    Some(why) => self.log.say(Level::Error, "upkeep", &[("why", why)]),
                    None => self.log.say(Level::Info, "upkeep-works-again", &[]),
                }
                neglected = now_neglected;
            }
            let now = report.trouble;
            if now != trouble {
                match &now {
                    Some(Trouble { why, hint, .. }) => {
                        let hint = hint.map(|hint| ("hint", hint));
                        let said: Vec<_> = [("while", "probing"), ("why", why.as_str())].into_iter().chain(hint).collect();
                        self.log.say(Level::Error, "database", &said);
                    }
                    None => self.log.say(Level::Info, "database-works-again", &[]),
                }
                trouble = now;
            }
        }
    }
}

fn role_of(part: Part) -> Role {
    match part {
        Part::Serve => Role::Serve,
        Part::Worker => Role::Worker,
        Part::Notifier => Role::Notifier,
    }
}

/// Why none of the targets is probed from here, and what to do about it.
fn idle(plan: &Plan) -> Option<(String, String)> {
    let region = &plan.config.region;
    if plan.targets.is_empty() || plan.targets.values().any(|spec| spec.is_probed_from(region)) {
        return None;
    }
    let regions: BTreeSet<&str> = plan.targets.values().flat_map(|spec| &spec.regions).map(String::as_str).collect();
    let named = regions.into_iter().map(|region| format!("`{}`", escape(region))).collect::<Vec<_>>().join(", ");
    let why = format!("no target is probed from the region `{}`", escape(region));
    Some((why, format!("the targets name {named}; check --region, and `region` and `regions` in the configuration")))
}

async fn listen(address: SocketAddr, config: &Config) -> Result<TcpListener, Failure> {
    may_listen(address, config)?;
    TcpListener::bind(address).await.map_err(|error| no_dashboard(&error.into()))
}

/// Whether the dashboard may be served there.
pub(super) fn may_listen(address: SocketAddr, config: &Config) -> Result<(), Failure> {
    opened(address, config).map_or(Ok(()), |failure| Err(no_dashboard(&failure)))
}

fn no_dashboard(failure: &ServeFailure) -> Failure {
    Failure::bad_input("no-dashboard", format!("no dashboard: {failure}")).hint(failure.hint())
}

/// Whether a dashboard that listens there would be everybody's.
fn opened(address: SocketAddr, config: &Config) -> Option<ServeFailure> {
    (!address.ip().is_loopback() && web::is_open(config)).then_some(ServeFailure::Open(address))
}

/// The files of a configuration, as they were when somebody looked.
pub(super) struct Seen {
    /// Besides the configuration itself.
    others: Vec<PathBuf>,
    states: Vec<FileState>,
}

/// What differs when a file was written, or another one put in its place; nothing if there is none.
type FileState = Option<(u64, Option<SystemTime>, u64)>;

impl Seen {
    fn is_current(&self, path: &Path) -> bool {
        self.states == states(path, &self.others)
    }
}

/// Reads what other files belong to a configuration, and looks at all of them.
pub(super) fn look(path: &Path) -> Seen {
    // A configuration that changes while its files are looked at is another one the next time.
    let own = state(path);
    let others = reading::other_files(path);
    let mut states = states(path, &others);
    states[0] = own;
    Seen { others, states }
}

fn states(path: &Path, others: &[PathBuf]) -> Vec<FileState> {
    std::iter::once(path).chain(others.iter().map(PathBuf::as_path)).map(state).collect()
}

fn state(path: &Path) -> FileState {
    let seen = |about: Metadata| (about.len(), about.modified().ok(), files::identity(&about));
    std::fs::metadata(path).ok().map(seen)
}
