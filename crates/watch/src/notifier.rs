//! Tells people: leases what is due in the outbox, sends it, and writes down what came of it. At least once, with the incident
//! as the key: between a service that has taken a message and the row that says so, a process can die, and then the message is
//! sent once more under the same key. A process that lives, and whose database failed in between, does not send it again.
//!
//! Nothing is sent when half of the lease is over: whoever froze in between lets go, because somebody else may have sent by
//! then what comes after.

mod former;
mod lines;
mod plan;
mod receipts;

use crate::channel::{DeliveryClient, DeliveryFailure, Kind, Message, Payload, pack};
use crate::config::{ChannelSpec, Config};
use crate::incident::{Class, Severity};
use crate::maintenance::{self, Planned};
use crate::moment::Moment;
use crate::store::outbox::{LeasedDelivery, Rows, Taker, UNCONFIRMED, Unacknowledged, unconfirmed};
use crate::store::read::IncidentRow;
use crate::store::{Store, incidents};
use crate::worker::Plan;
use former::FormerChannels;
use futures_util::future::join_all;
use lines::Lines;
use plan::{Next, PATIENCE, Tried, after};
use receipts::Receipt;
pub(crate) use receipts::Receipts;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// For how long one notifier has a message to itself.
const LEASE: Duration = Duration::from_secs(30);
/// Messages that one pass sends at the same time.
const AT_ONCE: i64 = 32;
/// For a message whose channel another one waits for.
const CLOGGED_REST: Duration = Duration::from_secs(10);
/// So long a mail is tried for those of its recipients for whom the server does not take it yet, and an end for those of its alerts.
const RECIPIENTS_LAST: Duration = Duration::from_secs(24 * 3600);
/// How often an Alertmanager is told again of what is open.
const REPEATED_EVERY: Duration = Duration::from_secs(60);
/// See [`Notifier::in_passing`].
const PATIENCE_IN_PASSING: Duration = Duration::from_secs(3);
/// How often a reminder that waits for the end of maintenance is looked at.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// Of an end that goes to another place than the begin, where that keeps alerts.
const MOVED: &str = "the place that was told of the begin is not in the configuration any more: close the alert there if it is still open";

#[derive(Clone, Debug)]
pub struct Notifier {
    store: Store,
    plan: watch::Receiver<Arc<Plan>>,
    delivery_client: DeliveryClient,
    guard: Guard,
    lease: Duration,
    /// So long a channel is tried before the next one is.
    patience: Duration,
    lines: Lines,
    former_channels: FormerChannels,
    /// What was taken, and is not in the database yet.
    receipts: Receipts,
    /// That of whom this one stands in for.
    earlier: Receipts,
}

/// Whether half of a lease is the last moment for a send to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    Up,
    /// Only to show in a test that it is needed.
    Down,
}

/// What came of one message, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub incident: String,
    /// The target, or what else it is about.
    pub subject: String,
    pub kind: Kind,
    pub channel: String,
    /// What the service answered, or why it did not take the message.
    pub outcome: Result<String, String>,
}

/// What a pass did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    pub sent: Vec<Sent>,
    /// When there is work again, if that is known.
    pub next: Option<Moment>,
}

impl Notifier {
    pub fn new(store: Store, plan: watch::Receiver<Arc<Plan>>, delivery_client: DeliveryClient) -> Self {
        Self {
            store,
            plan,
            delivery_client,
            guard: Guard::Up,
            lease: LEASE,
            patience: PATIENCE,
            lines: Lines::default(),
            former_channels: FormerChannels::default(),
            receipts: Receipts::default(),
            earlier: Receipts::default(),
        }
    }

    /// One that goes on with what another one has sent and could not write down.
    #[must_use]
    pub(crate) fn after(self, earlier: Receipts) -> Self {
        Self { earlier, ..self }
    }

    /// What it has sent and could not write down.
    pub(crate) fn receipts(&self) -> Receipts {
        self.receipts.clone()
    }

    /// With another lease than 30 s, and with a third of it for each message.
    #[must_use]
    pub fn leasing(self, lease: Duration) -> Self {
        Self { lease, delivery_client: self.delivery_client.within(lease / 3), ..self }
    }

    /// For a process that does not stay: a channel that fails gives way to the next one after 3 s instead of 120 s.
    #[must_use]
    pub fn in_passing(self) -> Self {
        Self { patience: PATIENCE_IN_PASSING, ..self }
    }

    #[must_use]
    pub fn guarded(self, guard: Guard) -> Self {
        Self { guard, ..self }
    }

    /// Sends what is due. It says that there is work at once if there was any: something else may have waited for it.
    ///
    /// # Errors
    /// The database refused. What was sent and not written down is sent again.
    pub async fn pass(&self, now: Moment) -> Result<Round, sqlx::Error> {
        // Before anything is leased, so that the time of the statement counts, too.
        let began = Instant::now();
        self.former_channels.follow(&self.config());
        let late = self.record_late().await;
        self.store.supersede(now).await?;
        self.store.tell_acknowledged(now).await?;
        let mut leased = Vec::new();
        let mut next = self.remind(now).await?.into_iter().chain(self.escalate(now).await?).min();
        for which in self.rows() {
            // Whoever only reads does not wait for those who write.
            let due = self.store.next_outbox(which, now, self.lease).await?;
            if due.is_some_and(|due| due <= now) {
                leased.extend(self.store.lease_outbox(which, now, self.lease, AT_ONCE).await?);
            }
            next = next.into_iter().chain(due).min();
        }
        if leased.is_empty() {
            return Ok(Round { sent: late, next });
        }
        let sent = join_all(leased.iter().map(|row| self.send(row, now, began))).await;
        let sent = sent.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(Round { sent: late.into_iter().chain(sent.into_iter().flatten()).collect(), next: Some(now) })
    }

    /// Sends one message. Nothing if there was nothing to send, or no right to.
    async fn send(&self, row: &LeasedDelivery, begin: Moment, began: Instant) -> Result<Option<Sent>, sqlx::Error> {
        // What is sent again and again is due anew.
        let counts = |told: &Receipt| told.again.is_none_or(|again| begin < again);
        if let Some(told) = self.receipts.of(&row.id).or_else(|| self.earlier.of(&row.id)).filter(counts) {
            let told = Receipt { row: row.clone(), ..told };
            self.receipts.keep(told.clone());
            let is_ours = self.record(&told).await?;
            return Ok(is_ours.then(|| sent(row, &told.by, Ok(told.said.clone()))));
        }
        if row.kind == Kind::Resolve && row.tried_since.is_none() {
            if !self.store.spread_resolve(row, begin).await? {
                self.store.give_up(row, "no notification of its start was sent", begin).await?;
            }
            return Ok(None);
        }
        let Some(channel) = row.channel() else {
            self.store.give_up(row, "its route has no channels", begin).await?;
            return Ok(None);
        };
        let config = self.config();
        let wanted = row.wanted_destination();
        let is_end = matches!(row.kind, Kind::Acknowledge | Kind::Resolve);
        // With the key that led there, as long as the service takes it.
        let former = wanted.filter(|_| is_end && row.hop == 0).and_then(|place| self.former_channels.leading_to(place, &config));
        let (channel, known) = match &former {
            Some(spec) => (channel, Some(spec)),
            None => leading_to(&config, channel, wanted),
        };
        let is_elsewhere = known.is_some_and(|spec| wanted != Some(spec.destination().as_str()));
        if is_end && is_elsewhere && self.is_told_anyway(row, channel, &config).await? {
            let why = "the place it is for is not in the configuration any more, and its channel is told anyway";
            self.store.give_up(row, why, begin).await?;
            return Ok(None);
        }
        let outcome = match (known, self.lines.enter(channel)) {
            (Some(spec), Some(line)) => {
                let alerts = self.alerts(row, channel, spec).await?;
                let connecting = Instant::now();
                let outcome = self.deliver(row, channel, spec, alerts, begin, began).await;
                match &outcome {
                    Err(DeliveryFailure::Passing { .. }) => line.leave(connecting.elapsed() >= self.delivery_client.slow()),
                    // It was not tried.
                    Err(DeliveryFailure::TooLate) => drop(line),
                    Ok(_) | Err(DeliveryFailure::Refused(_) | DeliveryFailure::Partly { .. }) => line.leave(false),
                }
                outcome
            }
            // It waits as if it had been sent, so that the next channel has its turn in time.
            (Some(spec), None) => {
                let why = "the channel does not respond, and another message waits for it";
                let clogged = DeliveryFailure::Passing { why: why.into(), after: Some(CLOGGED_REST), maybe_taken: false };
                self.fail(row, channel, Some(spec), &clogged, why, begin + began.elapsed()).await?;
                return Ok(None);
            }
            (None, _) => Err(DeliveryFailure::Refused(format!("unknown channel `{channel}`"))),
        };
        let now = begin + began.elapsed();
        let report = |outcome| Some(sent(row, channel, outcome));
        // Who has it has it; the others are told in a message of their own.
        let (outcome, left) = match outcome {
            Err(DeliveryFailure::Partly { said, left }) if left.is_empty() => (Ok(said), left),
            Err(DeliveryFailure::Partly { said, left }) => (Ok(format!("{said}; tried again for {}", left.join(", "))), left),
            outcome => (outcome, Vec::new()),
        };
        match outcome {
            Ok(said) => {
                let is_moved = is_elsewhere && wanted.is_some() && row.kind == Kind::Resolve;
                let said = match known {
                    Some(spec) if is_moved && spec.keeps_alerts_for_ever() => format!("{said}; {MOVED}"),
                    _ => said,
                };
                // What was told to others first, as something less severe, begins here with an update.
                let begins = matches!(row.kind, Kind::Trigger | Kind::Update | Kind::Escalation);
                let repeats = row.repeats || (begins && matches!(known, Some(ChannelSpec::Alertmanager { .. })));
                let again = repeats.then(|| now + REPEATED_EVERY);
                let (by, destination) = (channel.to_owned(), known.map(ChannelSpec::destination));
                let receipt = Receipt { row: row.clone(), by, destination, said: said.clone(), at: now, again, left, is_owed: false };
                // Whoever has the row next, while this one still waits for the database, need not send it.
                self.receipts.keep(receipt.clone());
                let is_ours = self.record(&receipt).await?;
                Ok(report(Ok(said)).filter(|_| is_ours))
            }
            // Somebody else has it, or will have it.
            Err(DeliveryFailure::TooLate) => Ok(None),
            Err(delivery_failure) => {
                let (DeliveryFailure::Passing { why, .. } | DeliveryFailure::Refused(why)) = &delivery_failure else { return Ok(None) };
                self.fail(row, channel, known, &delivery_failure, why, now).await?;
                Ok(report(Err(why.clone())))
            }
        }
    }

    /// Writes down that a message was taken. False if the row is somebody else's by now.
    async fn record(&self, receipt: &Receipt) -> Result<bool, sqlx::Error> {
        let Receipt { row, by, destination, said, at, again, left, .. } = receipt;
        let taker = Taker { by, destination: destination.as_deref(), said };
        let is_ours = self.store.mark_delivered(row, taker, *at, *again, left).await;
        match is_ours {
            Ok(_) => self.receipts.forget(&row.id),
            Err(_) => self.receipts.owe(&row.id),
        }
        is_ours
    }

    /// Writes down what was taken while the database failed, before others may take it for unsent.
    async fn record_late(&self) -> Vec<Sent> {
        let mut late = Vec::new();
        for receipt in self.receipts.owed() {
            match self.record(&receipt).await {
                Ok(true) => late.push(sent(&receipt.row, &receipt.by, Ok(receipt.said.clone()))),
                Ok(false) => {}
                // Whoever asks next hears of it, too.
                Err(_) => break,
            }
        }
        late
    }

    /// Whether another message of this kind leads to this channel, so that this one, which does so only by its name, need not.
    async fn is_told_anyway(&self, row: &LeasedDelivery, channel: &str, config: &Config) -> Result<bool, sqlx::Error> {
        let others = self.store.beside(row).await?;
        Ok(others.iter().any(|other| {
            let (name, spec) = leading_to(config, &other.channel, other.destination.as_deref());
            let is_its_place = spec.is_some_and(|spec| other.destination.as_deref() == Some(spec.destination().as_str()));
            name == channel && (is_its_place || other.id < row.id)
        }))
    }

    /// The alerts that a message is about, where the channel keeps them.
    async fn alerts(&self, row: &LeasedDelivery, channel: &str, spec: &ChannelSpec) -> Result<RangeInclusive<usize>, sqlx::Error> {
        let is_end = matches!(row.kind, Kind::Acknowledge | Kind::Resolve);
        let first = match is_end && spec.shows_unknown_ends() {
            true => self.store.first_alert(row, channel, &spec.destination()).await?,
            false => 0,
        };
        Ok(first..=row.raised.len())
    }

    async fn deliver(
        &self,
        row: &LeasedDelivery,
        channel: &str,
        spec: &ChannelSpec,
        alerts: RangeInclusive<usize>,
        begin: Moment,
        began: Instant,
    ) -> Result<String, DeliveryFailure> {
        let mut message = self.message(row, channel, alerts, begin, begin + began.elapsed());
        if matches!(row.kind, Kind::Reminder | Kind::Escalation) {
            // Without it people are told what was so when it began, and that is better than nothing.
            let _ = match message.class {
                Class::Storm => incidents::freshen(&self.store, &message.incident, &mut message.detail).await,
                Class::Group => incidents::freshen_group(&self.store, &message.incident, &mut message.detail).await,
                _ => Ok(()),
            };
        }
        let now = begin + began.elapsed();
        message.now = now;
        let payload = match (pack(spec, &message).map_err(DeliveryFailure::Refused)?, &row.recipients) {
            (Payload::Mail(mail), Some(addresses)) => {
                let gone = || DeliveryFailure::Refused("the channel no longer has this recipient".to_owned());
                Payload::Mail(Box::new(mail.only(addresses).ok_or_else(gone)?))
            }
            (Payload::Posts(posts), Some(alerts)) => {
                let left: Vec<_> = posts.into_iter().filter(|(key, _)| alerts.contains(key)).collect();
                if left.is_empty() {
                    return Err(DeliveryFailure::Refused("the channel no longer has this alert".to_owned()));
                }
                Payload::Posts(left)
            }
            // Neither addresses nor alerts are anything to it.
            (Payload::Post(_), Some(_)) => return Err(DeliveryFailure::Refused("the channel is another service now".to_owned())),
            (payload, _) => payload,
        };
        let may_send = || began.elapsed() < self.lease / 2 || self.guard == Guard::Down;
        self.delivery_client.deliver(&payload, now, &may_send).await
    }

    async fn fail(
        &self,
        row: &LeasedDelivery,
        channel: &str,
        spec: Option<&ChannelSpec>,
        delivery_failure: &DeliveryFailure,
        why: &str,
        now: Moment,
    ) -> Result<(), sqlx::Error> {
        let LeasedDelivery { kind, created, hop, attempts, .. } = *row;
        // Others have it, so that no other channel is told in their place.
        let is_over = matches!(delivery_failure, DeliveryFailure::Refused(_)) || now.since(created) > RECIPIENTS_LAST;
        if let Some(addresses) = row.recipients.as_ref().filter(|_| is_over) {
            let why = format!("not sent to {}: {why}", addresses.join(", "));
            return self.store.give_up(row, &why, now).await.map(drop);
        }
        let tried_since = row.tried_since.unwrap_or(now);
        let route = match (kind, spec) {
            (Kind::Resolve, None) => match self.end_as_routed_now(row, now).await? {
                Some(route) => route,
                None => return self.store.give_up(row, "its channel is gone, and the others are told", now).await.map(drop),
            },
            _ => self.widened(row),
        };
        let tried = Tried { kind, created, channels: route.len(), hop, attempts, tried_since, patience: self.patience };
        let retry = match after(&tried, delivery_failure, now) {
            Next::GiveUp => return self.store.give_up(row, why, now).await.map(drop),
            Next::Again(retry) => retry,
        };
        let mut events = Vec::new();
        let moves = retry.hop != hop && route.len() > 1;
        if moves {
            let next = LeasedDelivery { hop: retry.hop, route: route.clone(), ..row.clone() };
            let next = next.channel().unwrap_or_default();
            events.push(("failed-over", format!("{channel} did not accept the {kind} ({why}); trying {next}")));
        }
        // It may hold an alert open that nobody else would close, whether or not this is tried again before the end.
        let maybe_taken = matches!(delivery_failure, DeliveryFailure::Passing { maybe_taken: true, .. });
        let opens = maybe_taken && !matches!(kind, Kind::Acknowledge | Kind::Resolve);
        if let Some(spec) = spec.filter(|spec| opens && spec.keeps_alerts()) {
            events.push((UNCONFIRMED, unconfirmed(channel, &spec.destination())));
        }
        let route = if retry.hop != hop { &route } else { &row.route };
        self.store.mark_failed(row, route, &retry, why, &events, now).await.map(drop)
    }

    /// The route of a message. A page that the last of its channels is offered goes on to all others that there are.
    fn widened(&self, row: &LeasedDelivery) -> Vec<String> {
        let mut route = row.route.clone();
        let is_page =
            matches!(row.kind, Kind::Trigger | Kind::Update | Kind::Escalation) && row.incident.severity > Severity::Notify && !row.repeats;
        if is_page && row.recipients.is_none() && i64::try_from(route.len()).is_ok_and(|count| row.hop + 1 >= count) {
            let config = self.config();
            let others: Vec<String> = config.channels.keys().filter(|channel| !route.contains(channel)).cloned().collect();
            route.extend(others);
        }
        route
    }

    /// The route of an end whose channel is gone: those that would be told of the incident now take its place. Nothing if they are told of
    /// this end anyway.
    async fn end_as_routed_now(&self, row: &LeasedDelivery, now: Moment) -> Result<Option<Vec<String>>, sqlx::Error> {
        let incident = &row.incident;
        let tags = match incident.class {
            Class::Group => incident.detail.tags.clone(),
            // Of a storm, and of what is monitored no longer, there are none.
            _ => self.store.target(&incident.subject).await.ok().flatten().map(|target| target.tags).unwrap_or_default(),
        };
        let config = self.config();
        let routed = config.next_route(incident.severity, &tags, now).map_or(&[][..], |(route, _)| route.channels.as_slice());
        let present = |name: &str, destination: Option<&str>| leading_to(&config, name, destination).0.to_owned();
        self.store.reroute_end(row, routed, present).await
    }

    /// Reminds of what nobody has acknowledged. Gives when the next reminder is due.
    async fn remind(&self, now: Moment) -> Result<Option<Moment>, sqlx::Error> {
        let config = self.config();
        if config.routes.iter().all(|route| route.remind_every.is_none()) {
            return Ok(None);
        }
        let mut next: Option<Moment> = None;
        let planned = maintenance::announced(&mut *self.store.pool.acquire().await?, now).await?;
        for unanswered in self.store.unanswered().await? {
            let incident = &unanswered.incident;
            // At other times somebody else is reminded, or nobody.
            let next_route = config.next_route(incident.severity, &incident.tags, now);
            let Some((route, opens)) = next_route else { continue };
            if opens > now {
                next = Some(next.map_or(opens, |next| next.min(opens)));
                continue;
            }
            let Some(every) = route.remind_every else { continue };
            let is_quiet = self.is_quiet(&config, &planned, incident, now).await?;
            for way in unanswered.ways.iter().filter(|way| !way.waits) {
                let due = way.told + every;
                if due > now || is_quiet {
                    let due = if is_quiet { due.max(now + LOOK_AGAIN) } else { due };
                    next = Some(next.map_or(due, |next| next.min(due)));
                } else {
                    self.store.remind(incident, way, &unanswered.reminder_route(way, &route.channels), now).await?;
                }
            }
        }
        Ok(next)
    }

    /// Tells others of what nobody has acknowledged. Gives when the next ones are to be told.
    async fn escalate(&self, now: Moment) -> Result<Option<Moment>, sqlx::Error> {
        let config = self.config();
        if config.routes.iter().all(|route| route.escalate.is_empty()) {
            return Ok(None);
        }
        let mut next: Option<Moment> = None;
        let planned = maintenance::announced(&mut *self.store.pool.acquire().await?, now).await?;
        for unanswered in self.store.unacknowledged().await? {
            let Some((route, opens)) = config.next_route(unanswered.severity, &unanswered.tags, now) else { continue };
            if opens > now {
                next = Some(next.map_or(opens, |next| next.min(opens)));
                continue;
            }
            if self.is_quiet(&config, &planned, &unanswered, now).await? {
                next = Some(next.map_or(now + LOOK_AGAIN, |next| next.min(now + LOOK_AGAIN)));
                continue;
            }
            // Of a step that came several times meanwhile, the last one.
            let mut reached: BTreeMap<usize, Moment> = BTreeMap::new();
            for (after, number) in route.steps() {
                let due = unanswered.told + after;
                if due > now {
                    next = Some(next.map_or(due, |next| next.min(due)));
                    break;
                }
                reached.insert(number, due);
            }
            for (number, due) in reached {
                self.store.escalate(&unanswered, due, &route.escalate[number].channels, now).await?;
            }
        }
        Ok(next)
    }

    /// Whether nobody is to be told of it now.
    async fn is_quiet(&self, config: &Config, planned: &[Planned], unanswered: &Unacknowledged, now: Moment) -> Result<bool, sqlx::Error> {
        match unanswered.class {
            Class::Group => incidents::is_group_quiet(&self.store, config, planned, &unanswered.incident, now).await,
            _ => Ok(unanswered.muted_until > now || maintenance::covers(config, planned, &unanswered.subject, &unanswered.tags, now)),
        }
    }

    fn rows(&self) -> Vec<Rows> {
        let repeats = self.config().channels.values().any(|channel| matches!(channel, ChannelSpec::Alertmanager { .. }));
        if repeats { vec![Rows::Waiting, Rows::Repeating] } else { vec![Rows::Waiting] }
    }

    /// As it is now.
    fn config(&self) -> Arc<Config> {
        Arc::clone(&self.plan.borrow().config)
    }

    fn message(&self, row: &LeasedDelivery, channel: &str, alerts: RangeInclusive<usize>, known_at: Moment, now: Moment) -> Message {
        let incident = row.incident.clone();
        Message {
            id: row.id.clone(),
            kind: row.kind,
            incident: incident.id,
            alerts,
            subject: incident.subject,
            class: incident.class,
            severity: incident.severity,
            title: incident.title,
            detail: incident.detail,
            since: incident.since,
            resolved: incident.resolved,
            acknowledged_by: incident.acknowledged_by,
            evidence: incident.evidence,
            public_url: self.config().public_url.clone(),
            templates: self.config().templates.get(channel).cloned(),
            known_at,
            now,
        }
    }
}

/// The channel that leads to this place, whatever it is called by now; else, or if that is not known, the one of this name.
fn leading_to<'c>(config: &'c Config, name: &'c str, destination: Option<&str>) -> (&'c str, Option<&'c ChannelSpec>) {
    let of_name = config.channels.get(name);
    let Some(destination) = destination else { return (name, of_name) };
    if of_name.is_some_and(|spec| spec.destination() == destination) {
        return (name, of_name);
    }
    let found = config.channels.iter().find(|(_, spec)| spec.destination() == destination);
    found.map_or((name, of_name), |(name, spec)| (name.as_str(), Some(spec)))
}

/// As the log says it.
fn sent(row: &LeasedDelivery, channel: &str, outcome: Result<String, String>) -> Sent {
    let IncidentRow { id, subject, .. } = &row.incident;
    Sent { incident: id.clone(), subject: subject.clone(), kind: row.kind, channel: channel.to_owned(), outcome }
}

impl LeasedDelivery {
    /// Where the channel led whose turn it is, if that is known.
    fn wanted_destination(&self) -> Option<&str> {
        self.destination.as_deref().filter(|_| self.channel() == self.route.first().map(String::as_str))
    }

    /// Whose turn it is.
    fn channel(&self) -> Option<&str> {
        let count = i64::try_from(self.route.len()).ok().filter(|count| *count > 0)?;
        usize::try_from(self.hop.rem_euclid(count)).ok().and_then(|hop| self.route.get(hop)).map(String::as_str)
    }
}
