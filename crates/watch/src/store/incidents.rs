//! Turns what the state machines ask for into incidents and into what people are to be told, in the transaction of the caller:
//! a page is written together with the change of state that it tells of, or not at all.
//!
//! Many targets that fail at once make one incident, the storm, and those of the single targets become parts of it that nobody
//! is told of. So are those of a group (`group`), and what is down because of something else (`dependency`) is told only if it
//! outlasts that. During maintenance, and while a target is muted, incidents are kept all the same; what is still open afterwards
//! is told then ([`tell_what_is_owed`]).

mod dependency;
mod drift;
mod group;
pub(super) mod overtaken;
mod silent_region;
mod storm;
pub(super) mod unread;

use super::values::Values;
use super::{Dialect, Store, StoreFailure, ids};
use crate::config::Config;
use crate::incident::{Class, Detail, Severity};
use crate::maintenance::{self, Planned};
use crate::moment::Moment;
use crate::state::{Effect, TargetState};
pub use group::end_empty_groups;
pub use silent_region::sweep_regions;
use sqlx::any::AnyRow;
use sqlx::{Any, AnyPool, Row as _, Transaction};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;
pub use storm::end_storms;
use storm::{Others, Seen};
use uuid::ContextV7;

/// What came of the results of one target: its new state, and what follows.
#[derive(Debug)]
pub struct Turn {
    pub target: String,
    /// Where the results came from.
    pub region: String,
    pub state: TargetState,
    pub effects: Vec<Effect>,
    /// The scheduled time of the newest result.
    pub last_slot: Option<Moment>,
    /// When the newest result came that says anything about the target.
    pub last_result: Option<Moment>,
    /// Of the newest result, if it was kept.
    pub evidence: Option<String>,
}

/// What the incidents of one transaction have in common.
struct IncidentContext<'a> {
    config: &'a Config,
    now: Moment,
    ids: Mutex<ContextV7>,
    planned: Vec<Planned>,
    seen: Seen,
}

/// An incident that nobody was told of.
struct UnsentIncident<'a> {
    id: &'a str,
    target: &'a str,
    class: Class,
    severity: Severity,
    /// When the first sign of it was seen.
    since: Moment,
    opened: Moment,
}

/// What is known of a target besides its state.
#[derive(Clone)]
struct Subject {
    host: String,
    tags: Vec<String>,
    /// Between two probes.
    every: Duration,
    is_quiet: bool,
}

/// Writes the states, and everything that follows from the effects. `Confirm` and `Baseline` are the caller's.
///
/// # Errors
/// The database refused.
pub async fn apply(transaction: &mut Transaction<'_, Any>, config: &Config, turns: &mut [Turn], now: Moment) -> Result<(), sqlx::Error> {
    let mut context = IncidentContext::new(config, now);
    if turns.iter().any(|turn| turn.effects.iter().any(is_followed)) {
        context.planned = maintenance::announced(transaction, now).await?;
    }
    let mut drifts = Vec::new();
    for turn in &mut *turns {
        drifts.push(drift::weigh(transaction, &context, turn).await?);
    }
    write_states(transaction, turns, now).await?;
    for (turn, drifts) in turns.iter().zip(drifts) {
        let effects: Vec<&Effect> = turn.effects.iter().chain(&drifts).filter(|effect| is_followed(effect)).collect();
        if effects.is_empty() {
            continue;
        }
        let Some(subject) = context.subject(transaction, &turn.target).await? else { continue };
        for effect in effects {
            context.follow(transaction, turn, &subject, effect).await?;
        }
    }
    Ok(())
}

fn is_followed(effect: &Effect) -> bool {
    !matches!(effect, Effect::Confirm { .. } | Effect::Baseline { .. })
}

/// Many rows for one statement: both databases take only so many values.
const ROWS: usize = 100;

async fn write_states(transaction: &mut Transaction<'_, Any>, turns: &[Turn], now: Moment) -> Result<(), sqlx::Error> {
    const STATEMENT: &str = "UPDATE target SET state = v.column2, availability = v.column3, surface = v.column4, \
        contract = COALESCE(v.column5, target.contract), \
        last_slot = CASE WHEN v.column6 > target.last_slot THEN v.column6 ELSE target.last_slot END, \
        last_result = CASE WHEN v.column7 > target.last_result THEN v.column7 ELSE target.last_result END, \
        since = CASE WHEN v.column3 <> target.availability THEN v.column8 ELSE target.since END \
        FROM (VALUES {}) AS v WHERE target.name = v.column1";
    for some in turns.chunks(ROWS) {
        let mut values = Values::new(Dialect::of(transaction));
        for turn in some {
            values.row(|row| {
                row.add(turn.target.clone()).add(serde_json::to_string(&turn.state).expect("a state has text keys only"));
                row.add(turn.state.availability().word()).add(turn.state.surface().word());
                row.add(turn.state.contract().map(str::to_owned));
                row.add(turn.last_slot.map_or(0, |slot| slot.0)).add(turn.last_result.map_or(0, |at| at.0)).add(now.0);
            });
        }
        values.query(STATEMENT).execute(&mut **transaction).await?;
    }
    Ok(())
}

/// The event of an incident that was told before, and became worse while nobody was to be told.
const WITHHELD: &str = "withheld";
/// The event of an incident that matters more than people knew, or than somebody has acknowledged: from here on it is to be acknowledged
/// anew, and escalation counts from what is told of it then.
const RAISED: &str = "raised";

/// The event of one that is more severe than people knew, who have yet to acknowledge it, and of which escalation goes on.
const WORSE: &str = "worse";
/// The event of an incident that is something else now, and of a storm that has grown.
const CHANGED: &str = "changed";
/// The event of a group that has a part more.
const JOINED: &str = "joined";

/// What is to be opened.
struct Opening<'a> {
    subject: &'a str,
    class: Class,
    severity: Severity,
    title: &'a str,
    detail: &'a Detail,
    since: Moment,
    parent: Option<String>,
    evidence: Option<&'a str>,
}

impl<'a> IncidentContext<'a> {
    fn new(config: &'a Config, now: Moment) -> Self {
        Self { config, now, ids: Mutex::new(ContextV7::new()), planned: Vec::new(), seen: Seen::default() }
    }

    async fn subject(&self, transaction: &mut Transaction<'_, Any>, target: &str) -> Result<Option<Subject>, sqlx::Error> {
        let row = sqlx::query("SELECT host, tags, every, muted_until FROM target WHERE name = $1")
            .bind(target)
            .fetch_optional(&mut **transaction)
            .await?;
        row.map(|row| self.read_subject(target, &row)).transpose()
    }

    fn read_subject(&self, target: &str, row: &AnyRow) -> Result<Subject, sqlx::Error> {
        let tags: Vec<String> = serde_json::from_str(&row.try_get::<String, _>("tags")?).unwrap_or_default();
        let is_muted = row.try_get::<i64, _>("muted_until")? > self.now.0;
        let is_quiet = is_muted || maintenance::covers(self.config, &self.planned, target, &tags, self.now);
        let every = Duration::from_millis(row.try_get::<i64, _>("every")?.unsigned_abs());
        Ok(Subject { host: row.try_get("host")?, tags, every, is_quiet })
    }

    async fn follow(
        &self,
        transaction: &mut Transaction<'_, Any>,
        turn: &Turn,
        subject: &Subject,
        effect: &Effect,
    ) -> Result<(), sqlx::Error> {
        match effect {
            Effect::Open { class, severity, title, detail, since } => {
                let failure = storm::Failure { region: &turn.region, class: *class, since: *since };
                let parent = storm::of(transaction, self, subject, &failure, Others::SeenSince).await?;
                let (class, severity, since) = (*class, *severity, *since);
                let evidence = turn.evidence.as_deref();
                let opening = Opening { subject: &turn.target, class, severity, title, detail, since, parent, evidence };
                let Some(incident) = self.open(transaction, &opening).await? else {
                    return self.reopen(transaction, &opening, subject).await;
                };
                if opening.parent.is_some() {
                    return Ok(());
                }
                if self.route(severity, &subject.tags).is_none() {
                    if let Some((_, opens)) =
                        self.config.next_route(severity, &subject.tags, self.now).filter(|(_, opens)| *opens > self.now)
                    {
                        let text = format!("alerts wait until {opens}, when the hours of a route begin");
                        self.note(transaction, &incident, "suppressed", &text).await?;
                    }
                    return Ok(());
                }
                if subject.is_quiet {
                    let text = "no alerts are sent during maintenance, or while it is muted or silenced";
                    self.note(transaction, &incident, "suppressed", text).await?;
                } else {
                    let unsent = UnsentIncident { id: &incident, target: &turn.target, class, severity, since, opened: self.now };
                    self.tell(transaction, &unsent, subject).await?;
                }
            }
            Effect::Escalate { class, severity, title } => {
                let statement = "SELECT id, severity, parent, since, opened FROM incident \
                                 WHERE subject = $1 AND class = $2 AND resolved IS NULL";
                let query = sqlx::query(statement).bind(&turn.target).bind(class.word());
                if let Some(row) = query.fetch_optional(&mut **transaction).await? {
                    let incident: String = row.try_get("id")?;
                    let known = Severity::of_word(&row.try_get::<String, _>("severity")?).unwrap_or(*severity);
                    let statement = "UPDATE incident SET severity = $1, title = $2 WHERE id = $3";
                    let query = sqlx::query(statement).bind(severity.word()).bind(title).bind(&incident);
                    query.execute(&mut **transaction).await?;
                    self.note(transaction, &incident, "escalated", title).await?;
                    self.raise(transaction, &incident, known, *severity).await?;
                    let (since, opened) = (Moment(row.try_get("since")?), Moment(row.try_get("opened")?));
                    let raised = UnsentIncident { id: &incident, target: &turn.target, class: *class, severity: *severity, since, opened };
                    let parent: Option<String> = row.try_get("parent")?;
                    self.tell_again(transaction, &raised, parent.as_deref(), subject).await?;
                }
            }
            Effect::Resolve { class, reason } => self.resolve(transaction, &turn.target, *class, reason).await?,
            Effect::AskNeighbours => storm::ask_neighbours(transaction, self, turn, subject).await?,
            Effect::Confirm { .. } | Effect::Baseline { .. } | Effect::Drift(_) => {}
        }
        Ok(())
    }

    /// Tells people of an incident that nobody was told of: on its own, or together with others of its group. While it is down because
    /// of something else, nobody is told, and [`tell_what_is_owed`] looks again. False if nobody was told.
    async fn tell(
        &self,
        transaction: &mut Transaction<'_, Any>,
        unsent: &UnsentIncident<'_>,
        subject: &Subject,
    ) -> Result<bool, sqlx::Error> {
        let Some(route) = self.config.route(unsent.severity, &subject.tags, self.now).filter(|route| !route.channels.is_empty()) else {
            return Ok(false);
        };
        match dependency::of(transaction, self, unsent).await? {
            dependency::Cause::Unknown => return Ok(false),
            dependency::Cause::Incident { id, target } => {
                dependency::hold(transaction, self, unsent.id, &id, &target).await?;
                return Ok(false);
            }
            dependency::Cause::None => {}
        }
        match route.group(&subject.tags) {
            Some(tag) => group::join(transaction, self, unsent, &subject.tags, route, tag).await?,
            None => self.send(transaction, unsent.id, "trigger", &in_json(&route.channels)).await?,
        }
        Ok(true)
    }

    /// What is open matters more than it did, or is something else: whoever was told of it is told again, once nobody wants it quiet.
    async fn tell_again(
        &self,
        transaction: &mut Transaction<'_, Any>,
        raised: &UnsentIncident<'_>,
        parent: Option<&str>,
        subject: &Subject,
    ) -> Result<(), sqlx::Error> {
        let was_told = self.was_told(transaction, raised.id).await?;
        if subject.is_quiet {
            // What nobody was told of at all is owed anyway.
            if was_told || parent.is_some() {
                let text = "this change is told after the maintenance, or when it is no longer muted or silenced";
                self.note(transaction, raised.id, WITHHELD, text).await?;
            }
            return Ok(());
        }
        let told = "UPDATE incident_event SET kind = 'suppressed' WHERE incident = $1 AND kind = $2";
        sqlx::query(told).bind(raised.id).bind(WITHHELD).execute(&mut **transaction).await?;
        // Who was told is told of this as soon as a route is open again.
        let Some((route, opens)) = self.config.next_route(raised.severity, &subject.tags, self.now) else { return Ok(()) };
        if route.channels.is_empty() {
            return Ok(());
        }
        if let Some(parent) = parent {
            group::changed(transaction, self, parent, raised.id, raised.severity).await
        } else if was_told {
            self.send_after(transaction, raised.id, "update", &in_json(&route.channels), opens.since(self.now)).await
        } else {
            self.tell(transaction, raised, subject).await.map(drop)
        }
    }

    /// One of its class is open already: that is raised, if this matters more, or is another change of the contract. What was worse before
    /// stays as severe as it was.
    async fn reopen(&self, transaction: &mut Transaction<'_, Any>, opening: &Opening<'_>, subject: &Subject) -> Result<(), sqlx::Error> {
        let statement = "SELECT id, severity, title, detail, parent, since, opened FROM incident \
                         WHERE subject = $1 AND class = $2 AND resolved IS NULL";
        let query = sqlx::query(statement).bind(opening.subject).bind(opening.class.word());
        let Some(row) = query.fetch_optional(&mut **transaction).await? else { return Ok(()) };
        let known = Severity::of_word(&row.try_get::<String, _>("severity")?).unwrap_or(opening.severity);
        let detail = serde_json::to_string(opening.detail).expect("a detail has text keys only");
        // Of a fleet that is mixed anyway, a contract that breaks nobody is no news.
        let is_weighed = match opening.class {
            Class::Contract => true,
            Class::MixedFleet => opening.severity > Severity::Notify,
            _ => false,
        };
        let is_another = is_weighed && row.try_get::<String, _>("detail")? != detail;
        if opening.severity <= known && !is_another {
            return Ok(());
        }
        let (id, severity): (String, Severity) = (row.try_get("id")?, known.max(opening.severity));
        // Each change of a mixed fleet is told by itself: what is worse stays on top.
        let worse: Option<Detail> = match opening.class {
            Class::MixedFleet if opening.severity < known => serde_json::from_str(&row.try_get::<String, _>("detail")?).ok(),
            _ => None,
        };
        let (title, detail) = match worse {
            Some(worse) if !worse.message.contains(&opening.detail.message) => {
                let message = format!("{}\n{}", worse.message, opening.detail.message);
                let both = Detail { message, ..worse };
                (row.try_get("title")?, serde_json::to_string(&both).expect("a detail has text keys only"))
            }
            Some(_) => return Ok(()),
            None => (opening.title.to_owned(), detail),
        };
        let statement = "UPDATE incident SET severity = $1, title = $2, detail = $3, evidence = COALESCE($4, evidence) WHERE id = $5";
        let query = sqlx::query(statement).bind(severity.word()).bind(title).bind(detail).bind(opening.evidence).bind(&id);
        query.execute(&mut **transaction).await?;
        self.note(transaction, &id, if severity > known { "escalated" } else { CHANGED }, opening.title).await?;
        self.raise(transaction, &id, known, severity).await?;
        let (since, opened) = (Moment(row.try_get("since")?), Moment(row.try_get("opened")?));
        let raised = UnsentIncident { id: &id, target: opening.subject, class: opening.class, severity, since, opened };
        let parent: Option<String> = row.try_get("parent")?;
        self.tell_again(transaction, &raised, parent.as_deref(), subject).await
    }

    /// It is as severe as this now, after it was less: whoever acknowledged what it was has not acknowledged what it is.
    async fn raise(
        &self,
        transaction: &mut Transaction<'_, Any>,
        incident: &str,
        before: Severity,
        severity: Severity,
    ) -> Result<(), sqlx::Error> {
        if severity <= before {
            return Ok(());
        }
        let statement = "UPDATE incident SET acknowledged = NULL, acknowledged_by = NULL WHERE id = $1 AND acknowledged IS NOT NULL";
        let was_acknowledged = sqlx::query(statement).bind(incident).execute(&mut **transaction).await?.rows_affected() > 0;
        let again = if was_acknowledged { ": it has to be acknowledged again" } else { "" };
        let kind = if was_acknowledged || before == Severity::Notify { RAISED } else { WORSE };
        self.note(transaction, incident, kind, &format!("from {before} to {severity}{again}")).await
    }

    /// Nothing if one of its class is open already.
    async fn open(&self, transaction: &mut Transaction<'_, Any>, opening: &Opening<'_>) -> Result<Option<String>, sqlx::Error> {
        let id = self.id();
        let statement = "INSERT INTO incident (id, subject, class, severity, title, detail, since, opened, parent, evidence) \
                         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING";
        let written = sqlx::query(statement)
            .bind(&id)
            .bind(opening.subject)
            .bind(opening.class.word())
            .bind(opening.severity.word())
            .bind(opening.title)
            .bind(serde_json::to_string(opening.detail).expect("a detail has text keys only"))
            .bind(opening.since.0)
            .bind(self.now.0)
            .bind(opening.parent.as_deref())
            .bind(opening.evidence)
            .execute(&mut **transaction)
            .await?;
        if written.rows_affected() == 0 {
            return Ok(None);
        }
        self.note(transaction, &id, "opened", opening.title).await?;
        Ok(Some(id))
    }

    /// Ends what is open of this class, and the storm that it was the last part of.
    async fn resolve(&self, transaction: &mut Transaction<'_, Any>, subject: &str, class: Class, reason: &str) -> Result<(), sqlx::Error> {
        let statement = "UPDATE incident SET resolved = $1 WHERE subject = $2 AND class = $3 AND resolved IS NULL RETURNING id, parent";
        let query = sqlx::query(statement).bind(self.now.0).bind(subject).bind(class.word());
        let Some(row) = query.fetch_optional(&mut **transaction).await? else { return Ok(()) };
        self.ended(transaction, &row.try_get::<String, _>("id")?, reason).await?;
        if let Some(parent) = row.try_get::<Option<String>, _>("parent")? {
            let statement = "UPDATE incident SET resolved = $1 WHERE id = $2 AND resolved IS NULL AND class IN ('storm', 'group') \
                             AND NOT EXISTS (SELECT 1 FROM incident part WHERE part.parent = $2 AND part.resolved IS NULL) RETURNING class";
            let query = sqlx::query_scalar::<_, String>(statement).bind(self.now.0).bind(&parent);
            if let Some(class) = query.fetch_optional(&mut **transaction).await? {
                let reason = if class == Class::Group.word() {
                    group::LAST
                } else {
                    "none of its targets is left: they are up again, or no longer monitored"
                };
                self.ended(transaction, &parent, reason).await?;
            }
        }
        Ok(())
    }

    /// Ends a storm or a group, whatever is left of it. False if it had ended before.
    async fn end_storm(&self, transaction: &mut Transaction<'_, Any>, storm: &str, reason: &str) -> Result<bool, sqlx::Error> {
        let statement = "UPDATE incident SET resolved = $1 WHERE id = $2 AND resolved IS NULL";
        let ended = sqlx::query(statement).bind(self.now.0).bind(storm).execute(&mut **transaction).await?.rows_affected() > 0;
        if ended {
            self.ended(transaction, storm, reason).await?;
        }
        Ok(ended)
    }

    /// What is left of one storm is a part of another one.
    async fn adopt(&self, transaction: &mut Transaction<'_, Any>, older: &str, storm: &str) -> Result<(), sqlx::Error> {
        let statement = "UPDATE incident SET parent = $1 WHERE parent = $2 AND resolved IS NULL";
        sqlx::query(statement).bind(storm).bind(older).execute(&mut **transaction).await.map(drop)
    }

    /// Tells those who were told of its begin, whichever way each of them was.
    async fn ended(&self, transaction: &mut Transaction<'_, Any>, incident: &str, reason: &str) -> Result<(), sqlx::Error> {
        self.note(transaction, incident, "resolved", reason).await?;
        let statement = "SELECT route FROM outbox WHERE incident = $1 AND kind = 'trigger' ORDER BY id LIMIT 1";
        let route: Option<String> = sqlx::query_scalar(statement).bind(incident).fetch_optional(&mut **transaction).await?;
        match route {
            Some(route) => self.send(transaction, incident, "resolve", &route).await,
            None => Ok(()),
        }
    }

    async fn was_told(&self, transaction: &mut Transaction<'_, Any>, incident: &str) -> Result<bool, sqlx::Error> {
        let statement = "SELECT count(*) FROM outbox WHERE incident = $1";
        Ok(sqlx::query_scalar::<_, i64>(statement).bind(incident).fetch_one(&mut **transaction).await? > 0)
    }

    async fn send(&self, transaction: &mut Transaction<'_, Any>, incident: &str, kind: &str, route: &str) -> Result<(), sqlx::Error> {
        self.send_after(transaction, incident, kind, route, Duration::ZERO).await
    }

    /// Not before so much time has passed.
    async fn send_after(
        &self,
        transaction: &mut Transaction<'_, Any>,
        incident: &str,
        kind: &str,
        route: &str,
        wait: Duration,
    ) -> Result<(), sqlx::Error> {
        let statement = "INSERT INTO outbox (id, incident, kind, route, created, due) VALUES ($1, $2, $3, $4, $5, $6)";
        let query = sqlx::query(statement).bind(self.id()).bind(incident).bind(kind).bind(route);
        query.bind(self.now.0).bind((self.now + wait).0).execute(&mut **transaction).await.map(drop)
    }

    async fn note(&self, transaction: &mut Transaction<'_, Any>, incident: &str, kind: &str, text: &str) -> Result<(), sqlx::Error> {
        note(transaction, incident, self.now, kind, text).await
    }

    /// Whom to tell now, as the outbox keeps it.
    fn route(&self, severity: Severity, tags: &[String]) -> Option<String> {
        let route = self.config.route(severity, tags, self.now)?;
        (!route.channels.is_empty()).then(|| in_json(&route.channels))
    }

    /// In the order in which they are made.
    fn id(&self) -> String {
        ids::new(&self.ids, self.now)
    }
}

fn in_json(names: &[String]) -> String {
    serde_json::to_string(names).expect("names are text")
}

/// Ends whatever is open of a target that is no longer monitored. That is no recovery, and whoever is told of the end has to know.
pub(super) async fn end_all(transaction: &mut Transaction<'_, Any>, subject: &str, now: Moment) -> Result<(), sqlx::Error> {
    let query = sqlx::query_as("SELECT id, class, detail FROM incident WHERE subject = $1 AND resolved IS NULL");
    let open: Vec<(String, String, String)> = query.bind(subject).fetch_all(&mut **transaction).await?;
    // The end goes the way that the begin has gone, whatever routes there are.
    let config = Config::default();
    let context = IncidentContext::new(&config, now);
    for (id, class, detail) in open {
        let Some(class) = Class::of_word(&class) else { continue };
        let detail = Detail { is_unmonitored: true, ..serde_json::from_str(&detail).unwrap_or_default() };
        let query = sqlx::query("UPDATE incident SET detail = $1 WHERE id = $2");
        let detail = serde_json::to_string(&detail).expect("a detail has text keys only");
        query.bind(detail).bind(&id).execute(&mut **transaction).await?;
        context.resolve(transaction, subject, class, "it is no longer monitored").await?;
    }
    Ok(())
}

/// Adds a line to the history of an incident.
pub(super) async fn note(
    transaction: &mut Transaction<'_, Any>,
    incident: &str,
    now: Moment,
    kind: &str,
    text: &str,
) -> Result<(), sqlx::Error> {
    let statement = "INSERT INTO incident_event (incident, at, kind, text) VALUES ($1, $2, $3, $4)";
    sqlx::query(statement).bind(incident).bind(now.0).bind(kind).bind(text).execute(&mut **transaction).await.map(drop)
}

/// Writes the pages that were held back, for what is still open, no longer under maintenance or muted, within the hours of a route, and
/// explained by nothing else any more. Many that failed meanwhile and share a host, or a place that they are probed from, are one storm and
/// one page here, too; and where a storm was told before, those who know of it are told that these are a part of it. True if there were any.
///
/// # Errors
/// The database refused.
pub async fn tell_what_is_owed(store: &Store, config: &Config, now: Moment) -> Result<bool, sqlx::Error> {
    let mut transaction = store.begin().await?;
    let mut context = IncidentContext::new(config, now);
    // Of what is a part of a storm or of a group nobody is told as long as that is open.
    let statement = "SELECT incident.id, incident.subject, incident.class, incident.severity, incident.since, incident.opened, \
                     incident.parent, whole.class AS whole_class, whole.subject AS whole_subject, whole.resolved AS whole_resolved, \
                     target.host, target.tags, target.every, target.muted_until, target.availability, target.last_result, \
                     (SELECT MIN(region) FROM schedule WHERE schedule.target = target.name) AS region \
                     FROM incident JOIN target ON target.name = incident.subject LEFT JOIN incident whole ON whole.id = incident.parent \
                     WHERE incident.resolved IS NULL AND incident.acknowledged IS NULL \
                     AND (whole.id IS NULL OR whole.resolved IS NOT NULL OR whole.class NOT IN ('storm', 'group')) \
                     AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.incident = incident.id) ORDER BY incident.id";
    let owed = sqlx::query(statement).fetch_all(&mut *transaction).await?;
    let storms = storm::unannounced(&mut transaction).await?;
    let before = storm::open(&mut transaction).await?;
    let statement = "SELECT incident.id, incident.subject, incident.class, incident.severity, incident.since, incident.opened, \
                     incident.parent, target.host, target.tags, target.every, target.muted_until \
                     FROM incident JOIN target ON target.name = incident.subject WHERE incident.resolved IS NULL AND EXISTS \
                     (SELECT 1 FROM incident_event WHERE incident_event.incident = incident.id AND incident_event.kind = $1) \
                     ORDER BY incident.id";
    let withheld = sqlx::query(statement).bind(WITHHELD).fetch_all(&mut *transaction).await?;
    if owed.is_empty() && storms.is_empty() && withheld.is_empty() {
        return Ok(false);
    }
    context.planned = maintenance::announced(&mut transaction, now).await?;
    let mut is_any = false;
    for storm in &storms {
        is_any |= storm::tell(&mut transaction, &context, storm).await?;
    }
    for row in withheld {
        let name: String = row.try_get("subject")?;
        let subject = context.read_subject(&name, &row)?;
        let severity = Severity::of_word(&row.try_get::<String, _>("severity")?).unwrap_or(Severity::Page);
        let (Some(_), false) = (context.route(severity, &subject.tags), subject.is_quiet) else { continue };
        let (id, parent): (String, Option<String>) = (row.try_get("id")?, row.try_get("parent")?);
        let class = Class::of_word(&row.try_get::<String, _>("class")?).unwrap_or(Class::Availability);
        let (since, opened) = (Moment(row.try_get("since")?), Moment(row.try_get("opened")?));
        let raised = UnsentIncident { id: &id, target: &name, class, severity, since, opened };
        context.tell_again(&mut transaction, &raised, parent.as_deref(), &subject).await?;
        is_any = true;
    }
    // Whoever was told of a storm was not told of those that only now are a part of it.
    let mut joined: BTreeMap<String, Vec<(String, Subject)>> = BTreeMap::new();
    for row in owed {
        let name: String = row.try_get("subject")?;
        let subject = context.read_subject(&name, &row)?;
        let severity = Severity::of_word(&row.try_get::<String, _>("severity")?).unwrap_or(Severity::Page);
        let (Some(_), false) = (context.route(severity, &subject.tags), subject.is_quiet) else { continue };
        let id: String = row.try_get("id")?;
        // What a newer version wrote is told as the most common kind.
        let class = Class::of_word(&row.try_get::<String, _>("class")?).unwrap_or(Class::Availability);
        let (since, opened) = (Moment(row.try_get("since")?), Moment(row.try_get("opened")?));
        let unsent = UnsentIncident { id: &id, target: &name, class, severity, since, opened };
        if row.try_get::<Option<String>, _>("parent")?.is_some()
            && !dependency::is_released(&mut transaction, &context, &unsent, &row).await?
        {
            continue;
        }
        let region: Option<String> = row.try_get("region")?;
        let storm = match region {
            Some(region) => {
                let failure = storm::Failure { region: &region, class, since };
                storm::of(&mut transaction, &context, &subject, &failure, Others::Known).await?
            }
            None => None,
        };
        match storm {
            Some(storm) => {
                let statement = "UPDATE incident SET parent = $1 WHERE id = $2";
                sqlx::query(statement).bind(&storm).bind(&id).execute(&mut *transaction).await?;
                if before.contains(&storm) {
                    joined.entry(storm).or_default().push((name, subject));
                }
                is_any = true;
            }
            None => is_any |= context.tell(&mut transaction, &unsent, &subject).await?,
        }
    }
    for (storm, targets) in &joined {
        storm::tell_of_more(&mut transaction, &context, storm, targets).await?;
    }
    transaction.commit().await?;
    Ok(is_any)
}

/// A storm as it is now, for those who are reminded of it.
///
/// # Errors
/// The database refused.
pub(crate) async fn freshen(store: &Store, storm: &str, detail: &mut Detail) -> Result<(), sqlx::Error> {
    let (failing, recovered) = storm::left_of(store, storm, &detail.members).await?;
    let works = if recovered == 1 { "works" } else { "work" };
    detail.message = format!("{} of its {} targets still fail, {recovered} {works} again", failing.len(), failing.len() + recovered);
    detail.members = failing;
    Ok(())
}

/// A group as it is now, for those who are reminded of it.
///
/// # Errors
/// The database refused.
pub(crate) async fn freshen_group(store: &Store, group: &str, detail: &mut Detail) -> Result<(), sqlx::Error> {
    let parts = group::parts_of(&mut *store.pool.acquire().await?, group).await?;
    detail.message = group::told(&parts);
    detail.members = group::members(&parts);
    Ok(())
}

/// Whether nobody is to be told of anything that is open in a group.
///
/// # Errors
/// The database refused.
pub(crate) async fn is_group_quiet(
    store: &Store,
    config: &Config,
    planned: &[Planned],
    group: &str,
    now: Moment,
) -> Result<bool, sqlx::Error> {
    let statement = "SELECT target.name, target.tags, target.muted_until FROM incident JOIN target ON target.name = incident.subject \
                     WHERE incident.parent = $1 AND incident.resolved IS NULL";
    let rows: Vec<(String, String, i64)> = sqlx::query_as(statement).bind(group).fetch_all(&store.pool).await?;
    let is_quiet = |(name, tags, muted_until): &(String, String, i64)| {
        let tags: Vec<String> = serde_json::from_str(tags).unwrap_or_default();
        Moment(*muted_until) > now || maintenance::covers(config, planned, name, &tags, now)
    };
    Ok(!rows.is_empty() && rows.iter().all(is_quiet))
}

/// A person takes care of an incident: there are no more reminders. Who takes a changed contract for good ends its incident.
/// False if it is not open, or was acknowledged before.
///
/// # Errors
/// The database refused.
pub async fn acknowledge(store: &Store, incident: &str, who: &str, now: Moment) -> Result<bool, StoreFailure> {
    acknowledge_as_seen(store, incident, who, None, now).await
}

/// As [`acknowledge`], by somebody who knew what it was at that moment: false also if it has become something else since.
///
/// # Errors
/// The database refused.
pub async fn acknowledge_as_seen(
    store: &Store,
    incident: &str,
    who: &str,
    seen: Option<Moment>,
    now: Moment,
) -> Result<bool, StoreFailure> {
    let mut transaction = store.begin().await?;
    // Whoever raises it has done so, or waits: what the next statement sees of its history is all that there is.
    let locked = format!("SELECT id FROM incident WHERE id = $1 {}", store.dialect.lock());
    sqlx::query(sqlx::AssertSqlSafe(locked)).bind(incident).fetch_optional(&mut *transaction).await?;
    if let Some(seen) = seen
        && is_another_since(&mut transaction, incident, seen).await?
    {
        return Ok(false);
    }
    let statement = "UPDATE incident SET acknowledged = $1, acknowledged_by = $2 \
                     WHERE id = $3 AND acknowledged IS NULL AND resolved IS NULL RETURNING subject, class";
    let query = sqlx::query(statement).bind(now.0).bind(who).bind(incident);
    let Some(row) = query.fetch_optional(&mut *transaction).await? else { return Ok(false) };
    note(&mut transaction, incident, now, "acknowledged", &format!("by {who}")).await?;
    if row.try_get::<String, _>("class")? == Class::Contract.word() {
        accept_contract(&mut transaction, &row.try_get::<String, _>("subject")?, who, now).await?;
    }
    transaction.commit().await?;
    Ok(true)
}

/// Whether an incident became something else at that moment or later: more severe, another change of a contract, or a group with one part
/// more. Whoever acknowledged what it was before has not acknowledged what it is. A storm that grows stays the same one.
pub(super) async fn is_another_since(transaction: &mut Transaction<'_, Any>, incident: &str, seen: Moment) -> Result<bool, sqlx::Error> {
    let statement = "SELECT count(*) FROM incident_event JOIN incident ON incident.id = incident_event.incident \
                     WHERE incident.id = $1 AND at >= $2 AND (kind IN ($3, $4, $5) OR (kind = $6 AND class <> 'storm'))";
    let query = sqlx::query_scalar::<_, i64>(statement).bind(incident).bind(seen.0).bind(RAISED).bind(WORSE).bind(JOINED).bind(CHANGED);
    Ok(query.fetch_one(&mut **transaction).await? > 0)
}

/// When an incident became more severe, each time, in this order.
pub(super) async fn raised(pool: &AnyPool, incident: &str) -> Result<Vec<Moment>, sqlx::Error> {
    let statement = "SELECT at FROM incident_event WHERE incident = $1 AND kind IN ($2, $3) ORDER BY at";
    let found: Vec<i64> = sqlx::query_scalar(statement).bind(incident).bind(RAISED).bind(WORSE).fetch_all(pool).await?;
    Ok(found.into_iter().map(Moment).collect())
}

/// The contract that a target has now is the one that it is to have. A database in memory that does not know the target leaves that to
/// the real one.
pub(super) async fn accept_contract(
    transaction: &mut Transaction<'_, Any>,
    target: &str,
    who: &str,
    now: Moment,
) -> Result<(), sqlx::Error> {
    let locked = format!("SELECT state FROM target WHERE name = $1 {}", Dialect::of(transaction).lock());
    let state: Option<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(locked)).bind(target).fetch_optional(&mut **transaction).await?;
    let Some(state) = state else { return Ok(()) };
    let mut state: TargetState = serde_json::from_str(&state).unwrap_or_default();
    state.agree();
    let target = target.to_owned();
    let turn = Turn { target, region: String::new(), state, effects: Vec::new(), last_slot: None, last_result: None, evidence: None };
    write_states(transaction, std::slice::from_ref(&turn), now).await?;
    // Its end goes the way that its begin has gone.
    let config = Config::default();
    let reason = format!("{who} accepted the current contract");
    IncidentContext::new(&config, now).resolve(transaction, &turn.target, Class::Contract, &reason).await
}

#[cfg(test)]
mod tests;
