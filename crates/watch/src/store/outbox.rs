//! The rows of the outbox: what is due, who has it, and what became of it. Whoever leases a row raises its epoch; what came of
//! sending it is written only while the epoch is still the same. Knows no channels.
//!
//! Messages of one incident go out in their order: its begin, then what came of it, then its end. `repeat` rows are no
//! messages of their own: they keep an alert alive where it is forgotten otherwise, and never count as waiting. Nor does what is left of a
//! mail for single `recipients`: others have it, and nothing waits for it.

use super::incidents::{note, raised};
use super::read::{self, IncidentRow};
use super::{Store, StoreFailure, ids};
use crate::channel::Kind;
use crate::incident::{Class, Detail, Severity};
use crate::moment::{Moment, millis, span};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row as _};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// In the outbox only: sent as a trigger, again and again.
pub(crate) const REPEAT: &str = "repeat";

/// Before what a server refused for a moment is sent to single recipients again.
const RECIPIENTS_REST: Duration = Duration::from_secs(2);

/// In the history of an incident: a channel that keeps alerts may have taken a message, and nobody knows. See [`unconfirmed`].
pub(crate) const UNCONFIRMED: &str = "unconfirmed";

/// A row that this process has leased, with its incident.
#[derive(Clone, Debug)]
pub(crate) struct LeasedDelivery {
    pub(crate) id: String,
    pub(crate) incident: IncidentRow,
    /// When the incident became more severe. It may be even more severe by now than this says, and never less.
    pub(crate) raised: Vec<Moment>,
    pub(crate) kind: Kind,
    /// It goes on after it was delivered.
    pub(crate) repeats: bool,
    /// The names of channels in their order.
    pub(crate) route: Vec<String>,
    /// Counts on when the route begins anew.
    pub(crate) hop: i64,
    pub(crate) created: Moment,
    pub(crate) epoch: i64,
    /// On this hop.
    pub(crate) attempts: i64,
    pub(crate) tried_since: Option<Moment>,
    /// Addresses; only of a mail that others have.
    pub(crate) recipients: Option<Vec<String>>,
    /// Where the first of the route led when it was told, if that is known.
    pub(crate) destination: Option<String>,
}

/// Who has taken a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taker<'a> {
    /// The name of the channel.
    pub(crate) by: &'a str,
    /// Where it leads.
    pub(crate) destination: Option<&'a str>,
    /// What it said.
    pub(crate) said: &'a str,
}

/// A message of the same kind about the same moment of the same incident as another one, for somebody else.
#[derive(Clone, Debug)]
pub(crate) struct Beside {
    pub(crate) id: String,
    pub(crate) channel: String,
    /// Where it led, if that is known.
    pub(crate) destination: Option<String>,
}

/// When a row is tried again, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Retry {
    pub(crate) due: Moment,
    pub(crate) hop: i64,
    pub(crate) attempts: i64,
    pub(crate) tried_since: Moment,
}

/// An incident that nobody has acknowledged, and when people were told first.
#[derive(Clone, Debug)]
pub(crate) struct Unacknowledged {
    pub(crate) incident: String,
    pub(crate) subject: String,
    pub(crate) class: Class,
    pub(crate) severity: Severity,
    /// Of the target, or those by which the route of a group was found.
    pub(crate) tags: Vec<String>,
    pub(crate) muted_until: Moment,
    pub(crate) told: Moment,
}

/// An incident that nobody has acknowledged, of which everything was told but reminders.
#[derive(Clone, Debug)]
pub(crate) struct Unanswered {
    pub(crate) incident: Unacknowledged,
    /// Each with its own time, so that an escalation puts off nobody's reminder.
    pub(crate) ways: Vec<Way>,
}

/// A way by which people were told of an incident: by the messages that were meant for the same channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// The first of their route.
    pub(crate) channel: String,
    /// When the last of them was taken, and by whom.
    pub(crate) told: Moment,
    pub(crate) told_by: String,
    /// Whether a reminder is on its way.
    pub(crate) waits: bool,
}

impl Unanswered {
    /// Where a reminder of `way` goes: to its channel, else to the one that took the last message, else on along `route`. Those
    /// that are reminded on their own are left out.
    pub(crate) fn reminder_route(&self, way: &Way, route: &[String]) -> Vec<String> {
        let mut channels = vec![way.channel.clone()];
        for channel in [&way.told_by].into_iter().chain(route) {
            if !channels.contains(channel) && self.ways.iter().all(|other| other.channel != *channel) {
                channels.push(channel.clone());
            }
        }
        channels
    }
}

/// The place of a row among those of its incident, for the row `$`.
macro_rules! rank {
    ($row:literal) => {
        concat!("CASE ", $row, ".kind WHEN 'trigger' THEN 0 WHEN 'escalation' THEN 0 WHEN 'resolve' THEN 2 ELSE 1 END")
    };
}

/// No row of the incident has to go before the row `candidate`, at the time `$1`: none of an earlier part of its story, and of the
/// same part none that goes the same way. Ways do not wait for each other.
const UNBLOCKED: &str = concat!(
    "NOT EXISTS (SELECT 1 FROM outbox earlier WHERE earlier.incident = candidate.incident AND earlier.id <> candidate.id AND (",
    "(earlier.delivered IS NULL AND earlier.recipients IS NULL AND (",
    rank!("earlier"),
    " < ",
    rank!("candidate"),
    " OR (",
    rank!("earlier"),
    " = ",
    rank!("candidate"),
    " AND earlier.route = candidate.route AND earlier.id < candidate.id))) ",
    "OR (candidate.kind = 'resolve' AND earlier.kind = 'repeat' AND earlier.lease_until > $1)))"
);

/// Pages of the row `candidate` go first, however many others wait.
const MATTERS: &str = "CASE (SELECT severity FROM incident WHERE incident.id = candidate.incident) WHEN 'notify' THEN 1 ELSE 0 END";

/// Which rows are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Those that nobody has taken.
    Waiting,
    /// Those that are sent again as long as their incident is open.
    Repeating,
}

impl Rows {
    /// The row `candidate` is one of them. Each has an index of its own.
    fn condition(self) -> &'static str {
        match self {
            Self::Waiting => "candidate.delivered IS NULL",
            Self::Repeating => {
                "candidate.kind = 'repeat' AND NOT EXISTS \
                 (SELECT 1 FROM outbox later WHERE later.incident = candidate.incident AND later.kind = 'resolve') \
                 AND EXISTS (SELECT 1 FROM incident WHERE incident.id = candidate.incident AND incident.resolved IS NULL)"
            }
        }
    }
}

const COLUMNS: &str = "outbox.id, outbox.incident, outbox.kind, outbox.route, outbox.hop, outbox.created, outbox.epoch, \
    outbox.attempts, outbox.tried_since, outbox.recipients, outbox.destination";

impl Store {
    /// Leases what is due and not blocked, at most one row of each incident.
    pub(crate) async fn lease_outbox(
        &self,
        which: Rows,
        now: Moment,
        lease: Duration,
        most: i64,
    ) -> Result<Vec<LeasedDelivery>, sqlx::Error> {
        let waits = which.condition();
        let locked = self.dialect.skip_locked();
        let set_back = set_back(lease);
        let statement = format!(
            "WITH due AS (SELECT candidate.id FROM outbox candidate WHERE candidate.due <= $1 \
             AND (candidate.lease_until <= $1 OR {set_back}) AND {waits} AND {UNBLOCKED} \
             ORDER BY {MATTERS}, candidate.due, candidate.id LIMIT $3 {locked}) \
             UPDATE outbox SET lease_until = $2, epoch = outbox.epoch + 1 FROM due WHERE outbox.id = due.id RETURNING {COLUMNS}"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(now.0).bind((now + lease).0).bind(most);
        let rows = query.fetch_all(&self.writer).await?;
        let mut leased = Vec::with_capacity(rows.len());
        for row in &rows {
            let id: String = row.try_get("incident")?;
            // Before the incident: what it is may go out under the key of what it was, but not the other way round.
            let raised = raised(&self.pool, &id).await?;
            match read::incident(&self.pool, &id).await? {
                Some(incident) => leased.push(leased_row(row, incident, raised)?),
                // Nobody can be told of what nobody knows any more.
                None => self.forget(&row.try_get::<String, _>("id")?, now).await?,
            }
        }
        leased.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(leased)
    }

    async fn forget(&self, id: &str, now: Moment) -> Result<(), sqlx::Error> {
        let statement = "UPDATE outbox SET delivered = $1, last_error = 'its incident is gone' WHERE id = $2 AND delivered IS NULL";
        sqlx::query(statement).bind(now.0).bind(id).execute(&self.writer).await.map(drop)
    }

    /// When there is something to lease next. What is leased now is looked at again when its lease is over.
    pub(crate) async fn next_outbox(&self, which: Rows, now: Moment, lease: Duration) -> Result<Option<Moment>, sqlx::Error> {
        let waits = which.condition();
        let set_back = set_back(lease);
        let statement = format!(
            "SELECT MIN(CASE WHEN candidate.due > candidate.lease_until OR {set_back} THEN candidate.due \
             ELSE candidate.lease_until END) \
             FROM outbox candidate WHERE {waits} AND {UNBLOCKED}"
        );
        let query = sqlx::query_scalar(sqlx::AssertSqlSafe(statement)).bind(now.0).bind((now + lease).0);
        let next: Option<i64> = query.fetch_one(&self.pool).await?;
        Ok(next.map(Moment))
    }

    /// It was taken; of a mail, for all but those who are `left`, whom a row of its own is for. False if the row is somebody else's by now:
    /// then nothing is written.
    pub(crate) async fn mark_delivered(
        &self,
        row: &LeasedDelivery,
        taker: Taker<'_>,
        now: Moment,
        again: Option<Moment>,
        left: &[String],
    ) -> Result<bool, sqlx::Error> {
        let Taker { by, destination, said } = taker;
        let destination = destination.map(str::to_owned);
        let mut transaction = self.begin().await?;
        if row.repeats {
            let statement = "UPDATE outbox SET due = $1, lease_until = 0, attempts = 0, hop = 0, tried_since = NULL, last_error = NULL \
                             WHERE id = $2 AND epoch = $3";
            let query = sqlx::query(statement).bind(again.unwrap_or(now).0).bind(&row.id).bind(row.epoch);
            let is_ours = query.execute(&mut *transaction).await?.rows_affected() > 0;
            transaction.commit().await?;
            return Ok(is_ours);
        }
        let statement = "UPDATE outbox SET delivered = $1, delivered_by = $2, destination = $5, lease_until = 0, attempts = attempts + 1, \
                         last_error = NULL WHERE id = $3 AND epoch = $4 AND delivered IS NULL";
        let query = sqlx::query(statement).bind(now.0).bind(by).bind(&row.id).bind(row.epoch).bind(destination.clone());
        if query.execute(&mut *transaction).await?.rows_affected() == 0 {
            return Ok(false);
        }
        note(&mut transaction, &row.incident.id, now, "sent", &format!("{} by {by}: {said}", row.kind)).await?;
        if let Some(again) = again {
            let statement = "INSERT INTO outbox (id, incident, kind, route, created, due, delivered, destination) \
                             SELECT $1, $2, $3, $4, $5, $6, $5, $7 \
                             WHERE NOT EXISTS (SELECT 1 FROM outbox WHERE incident = $2 AND kind = $3 AND route = $4) \
                             ON CONFLICT DO NOTHING";
            sqlx::query(statement)
                .bind(ids::derived(row.created, &[&row.incident.id, REPEAT, by]))
                .bind(&row.incident.id)
                .bind(REPEAT)
                .bind(in_json(&[by]))
                .bind(now.0)
                .bind(again.0)
                .bind(destination.clone())
                .execute(&mut *transaction)
                .await?;
        }
        if !left.is_empty() {
            let statement = "INSERT INTO outbox (id, incident, kind, route, created, due, attempts, tried_since, recipients, destination) \
                             VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $8, $9) ON CONFLICT DO NOTHING";
            sqlx::query(statement)
                .bind(ids::derived(now, &[&row.id, "recipients"]))
                .bind(&row.incident.id)
                .bind(row.kind.word())
                .bind(in_json(&[by]))
                .bind(row.created.0)
                .bind((now + RECIPIENTS_REST).0)
                .bind(now.0)
                .bind(serde_json::to_string(left).expect("addresses are text"))
                .bind(destination)
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(true)
    }

    /// The first of the alerts of an incident that this channel may have been told: how often it had become more severe by then.
    pub(crate) async fn first_alert(&self, row: &LeasedDelivery, channel: &str, destination: &str) -> Result<usize, sqlx::Error> {
        if row.raised.is_empty() {
            return Ok(0);
        }
        let unsure = unconfirmed_takers(&mut *self.pool.acquire().await?, &row.incident.id).await?;
        let this = (channel.to_owned(), Some(destination.to_owned()));
        let names: Vec<String> = unsure.into_iter().filter(|other| is_same_taker(other, &this)).map(|(name, _)| name).collect();
        let statement = "SELECT created, delivered_by, destination, route FROM outbox WHERE incident = $1 \
                         AND kind IN ('trigger', 'update', 'escalation', 'reminder') ORDER BY created, id";
        for told in &sqlx::query(statement).bind(&row.incident.id).fetch_all(&self.pool).await? {
            let (by, place): (Option<String>, Option<String>) = (told.try_get("delivered_by")?, told.try_get("destination")?);
            let route: Vec<String> = serde_json::from_str(&told.try_get::<String, _>("route")?).unwrap_or_default();
            let may_have_it = route.iter().any(|one| names.contains(one));
            if may_have_it || by.as_deref() == Some(channel) || place.as_deref() == Some(destination) {
                let first: i64 = told.try_get("created")?;
                return Ok(row.raised.iter().filter(|at| at.0 <= first).count());
            }
        }
        Ok(0)
    }

    /// The other messages of the kind of this one about the same moment of its incident, each for one channel, that were not given up.
    pub(crate) async fn beside(&self, row: &LeasedDelivery) -> Result<Vec<Beside>, sqlx::Error> {
        let statement = "SELECT id, route, destination FROM outbox WHERE incident = $1 AND kind = $2 AND created = $3 AND id <> $4 \
                         AND recipients IS NULL AND (delivered IS NULL OR delivered_by IS NOT NULL)";
        let query = sqlx::query_as(statement).bind(&row.incident.id).bind(row.kind.word()).bind(row.created.0).bind(&row.id);
        let rows: Vec<(String, String, Option<String>)> = query.fetch_all(&self.pool).await?;
        let one = |(id, route, destination): (String, String, Option<String>)| {
            let [channel] = <[String; 1]>::try_from(serde_json::from_str::<Vec<String>>(&route).ok()?).ok()?;
            Some(Beside { id, channel, destination })
        };
        Ok(rows.into_iter().filter_map(one).collect())
    }

    /// When an incident became more severe, each time, in this order.
    ///
    /// # Errors
    /// The database does not respond.
    pub(crate) async fn raised(&self, incident: &str) -> Result<Vec<Moment>, StoreFailure> {
        Ok(raised(&self.pool, incident).await?)
    }

    /// It was not taken, and is tried again on this route. `event` is for the history of the incident. False as above.
    pub(crate) async fn mark_failed(
        &self,
        row: &LeasedDelivery,
        route: &[String],
        retry: &Retry,
        error: &str,
        events: &[(&str, String)],
        now: Moment,
    ) -> Result<bool, sqlx::Error> {
        let mut transaction = self.begin().await?;
        let statement = "UPDATE outbox SET due = $1, hop = $2, attempts = $3, tried_since = $4, last_error = $5, route = $6, lease_until = 0 \
                         WHERE id = $7 AND epoch = $8";
        let query = sqlx::query(statement)
            .bind(retry.due.0)
            .bind(retry.hop)
            .bind(retry.attempts)
            .bind(retry.tried_since.0)
            .bind(error)
            .bind(serde_json::to_string(route).expect("names are text"))
            .bind(&row.id)
            .bind(row.epoch);
        if query.execute(&mut *transaction).await?.rows_affected() == 0 {
            return Ok(false);
        }
        for (kind, text) in events {
            if *kind == UNCONFIRMED {
                // Once is enough, however often it is tried.
                let statement = "SELECT count(*) FROM incident_event WHERE incident = $1 AND kind = $2 AND text = $3";
                let query = sqlx::query_scalar(statement).bind(&row.incident.id).bind(UNCONFIRMED).bind(text);
                let known: i64 = query.fetch_one(&mut *transaction).await?;
                if known > 0 {
                    continue;
                }
            }
            note(&mut transaction, &row.incident.id, now, kind, text).await?;
        }
        transaction.commit().await?;
        Ok(true)
    }

    /// Nobody will take it any more. False as above.
    pub(crate) async fn give_up(&self, row: &LeasedDelivery, why: &str, now: Moment) -> Result<bool, sqlx::Error> {
        let mut transaction = self.begin().await?;
        let statement =
            "UPDATE outbox SET delivered = $1, last_error = $2, lease_until = 0 WHERE id = $3 AND epoch = $4 AND delivered IS NULL";
        let query = sqlx::query(statement).bind(now.0).bind(why).bind(&row.id).bind(row.epoch);
        if query.execute(&mut *transaction).await?.rows_affected() == 0 {
            return Ok(false);
        }
        note(&mut transaction, &row.incident.id, now, "given-up", &format!("{}: {why}", row.kind)).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Gives a resolve one row for each channel that was told, or that may have been and keeps an alert then. The row itself is freed for
    /// the first of them. False if nobody was told.
    pub(crate) async fn spread_resolve(&self, row: &LeasedDelivery, now: Moment) -> Result<bool, sqlx::Error> {
        let mut transaction = self.begin().await?;
        let told = "SELECT delivered_by, destination FROM outbox WHERE incident = $1 AND delivered_by IS NOT NULL ORDER BY delivered, id";
        let told: Vec<(String, Option<String>)> = sqlx::query_as(told).bind(&row.incident.id).fetch_all(&mut *transaction).await?;
        let unsure = unconfirmed_takers(&mut transaction, &row.incident.id).await?;
        let mut channels: Vec<(String, Option<String>)> = Vec::new();
        for taker in told.into_iter().chain(unsure) {
            if !channels.iter().any(|other| is_same_taker(other, &taker)) {
                channels.push(taker);
            }
        }
        let Some(((first, destination), others)) = channels.split_first() else { return Ok(false) };
        let statement =
            "UPDATE outbox SET route = $1, hop = 0, tried_since = $2, lease_until = 0, destination = $5 WHERE id = $3 AND epoch = $4";
        let query = sqlx::query(statement).bind(in_json(&[first])).bind(now.0).bind(&row.id).bind(row.epoch).bind(destination.clone());
        if query.execute(&mut *transaction).await?.rows_affected() > 0 {
            for (channel, destination) in others {
                let statement = "INSERT INTO outbox (id, incident, kind, route, created, due, tried_since, destination) \
                                 VALUES ($1, $2, 'resolve', $3, $4, $5, $5, $6) ON CONFLICT DO NOTHING";
                let place = destination.as_deref().unwrap_or_default();
                sqlx::query(statement)
                    .bind(ids::derived(row.created, &[&row.incident.id, "resolve", channel, place]))
                    .bind(&row.incident.id)
                    .bind(in_json(&[channel]))
                    .bind(row.created.0)
                    .bind(now.0)
                    .bind(destination.clone())
                    .execute(&mut *transaction)
                    .await?;
            }
        }
        transaction.commit().await?;
        Ok(true)
    }

    /// Gives an end whose channel is gone those of these channels that no other end of its incident has, and gives its route. Nothing if they
    /// are all told anyway. `present` gives what a channel that led to a place is called now. Whoever does the same for another end of the
    /// incident, in whichever process, waits for it: no two get the same one.
    pub(crate) async fn reroute_end(
        &self,
        row: &LeasedDelivery,
        routed: &[String],
        present: impl Fn(&str, Option<&str>) -> String,
    ) -> Result<Option<Vec<String>>, sqlx::Error> {
        let mut transaction = self.begin().await?;
        let locked = format!("SELECT id FROM incident WHERE id = $1 {}", self.dialect.lock());
        sqlx::query(sqlx::AssertSqlSafe(locked)).bind(&row.incident.id).fetch_optional(&mut *transaction).await?;
        let statement = "SELECT route, destination FROM outbox WHERE incident = $1 AND kind = 'resolve' AND id <> $2";
        let query = sqlx::query_as(statement).bind(&row.incident.id).bind(&row.id);
        let others: Vec<(String, Option<String>)> = query.fetch_all(&mut *transaction).await?;
        let mut told: Vec<String> = Vec::new();
        for (route, destination) in others {
            let route: Vec<String> = serde_json::from_str(&route).unwrap_or_default();
            told.extend(route.first().map(|first| present(first, destination.as_deref())));
            told.extend(route.into_iter().skip(1));
        }
        let new: Vec<&String> = routed.iter().filter(|channel| !told.contains(channel) && !row.route.contains(channel)).collect();
        if new.is_empty() && routed.iter().any(|channel| told.contains(channel)) {
            return Ok(None);
        }
        let route: Vec<String> = row.route.iter().chain(new).cloned().collect();
        let statement = "UPDATE outbox SET route = $1 WHERE id = $2 AND epoch = $3";
        let query = sqlx::query(statement).bind(serde_json::to_string(&route).expect("names are text")).bind(&row.id).bind(row.epoch);
        query.execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(Some(route))
    }

    /// What was to be told meanwhile is not told after the end.
    pub(crate) async fn supersede(&self, now: Moment) -> Result<(), sqlx::Error> {
        // A begin that one way did not take, while another one did, is not told after the end either.
        // Whoever is only told because nobody takes care of it need not be told once somebody does; nor is anybody told of an
        // acknowledgement that no longer counts.
        const LATE: &str = "delivered IS NULL AND lease_until <= $1 AND ((kind NOT IN ('trigger', 'resolve') \
                            OR (kind = 'trigger' AND (hop > 0 OR attempts > 0) AND EXISTS (SELECT 1 FROM outbox told \
                            WHERE told.incident = outbox.incident AND told.kind = 'trigger' AND told.delivered_by IS NOT NULL))) \
                            AND EXISTS (SELECT 1 FROM outbox later WHERE later.incident = outbox.incident AND later.kind = 'resolve') \
                            OR (kind = 'escalation' AND EXISTS (SELECT 1 FROM incident \
                            WHERE incident.id = outbox.incident AND incident.acknowledged IS NOT NULL)) \
                            OR (kind = 'acknowledge' AND EXISTS (SELECT 1 FROM incident \
                            WHERE incident.id = outbox.incident AND incident.acknowledged IS NULL)))";
        // Whoever only reads does not wait for those who write.
        let statement = format!("SELECT id FROM outbox WHERE {LATE} LIMIT 1");
        let found: Option<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(statement)).bind(now.0).fetch_optional(&self.pool).await?;
        if found.is_none() {
            return Ok(());
        }
        let statement =
            format!("UPDATE outbox SET delivered = $1, epoch = epoch + 1, last_error = 'it was over before this was taken' WHERE {LATE}");
        sqlx::query(sqlx::AssertSqlSafe(statement)).bind(now.0).execute(&self.writer).await.map(drop)
    }

    /// Tells everybody who was told of an incident that somebody has acknowledged it; once more if that had to be done again.
    pub(crate) async fn tell_acknowledged(&self, now: Moment) -> Result<(), sqlx::Error> {
        let statement = "SELECT DISTINCT incident.id AS incident, incident.acknowledged AS acknowledged, outbox.delivered_by AS channel, \
                         outbox.destination AS destination FROM incident \
                         JOIN outbox ON outbox.incident = incident.id AND outbox.delivered_by IS NOT NULL \
                         WHERE incident.acknowledged IS NOT NULL AND incident.resolved IS NULL AND NOT EXISTS \
                         (SELECT 1 FROM outbox told WHERE told.incident = incident.id AND told.kind = 'acknowledge' \
                         AND told.created >= incident.acknowledged)";
        let rows = sqlx::query(statement).fetch_all(&self.pool).await?;
        if rows.is_empty() {
            return Ok(());
        }
        let mut transaction = self.begin().await?;
        let mut takers: BTreeMap<String, Vec<(String, Option<String>)>> = BTreeMap::new();
        for row in rows {
            let (incident, channel): (String, String) = (row.try_get("incident")?, row.try_get("channel")?);
            let destination: Option<String> = row.try_get("destination")?;
            let (known, taker) = (takers.entry(incident.clone()).or_default(), (channel.clone(), destination.clone()));
            if known.iter().any(|other| is_same_taker(other, &taker)) {
                continue;
            }
            known.push(taker);
            let acknowledged = Moment(row.try_get("acknowledged")?);
            // It may have been acknowledged after this pass began.
            let created = now.max(acknowledged);
            let id = ids::derived(created, &[&incident, "acknowledge", &channel, destination.as_deref().unwrap_or_default()]);
            let statement = "INSERT INTO outbox (id, incident, kind, route, created, due, destination) \
                             SELECT $1, $2, 'acknowledge', $3, $4, $4, $6 \
                             WHERE NOT EXISTS (SELECT 1 FROM outbox WHERE incident = $2 AND kind = 'acknowledge' AND route = $3 \
                             AND COALESCE(destination, '') = COALESCE($6, '') AND created >= $5)";
            let query = sqlx::query(statement).bind(id).bind(&incident).bind(in_json(&[&channel])).bind(created.0);
            query.bind(acknowledged.0).bind(destination).execute(&mut *transaction).await?;
        }
        transaction.commit().await
    }

    /// What nobody has acknowledged, and of which everything that was written has been told, but for reminders.
    pub(crate) async fn unanswered(&self) -> Result<Vec<Unanswered>, sqlx::Error> {
        let waiting = "SELECT incident, route FROM outbox WHERE kind = 'reminder' AND delivered IS NULL AND recipients IS NULL";
        let mut reminders: BTreeSet<(String, String)> = BTreeSet::new();
        for row in sqlx::query(waiting).fetch_all(&self.pool).await? {
            reminders.insert((row.try_get("incident")?, first_of_route(&row)?));
        }
        // Of the messages with the same route, the newest one.
        let statement = "SELECT incident.id, incident.subject, incident.class, incident.detail, incident.severity, \
                         target.tags, target.muted_until, outbox.delivered, outbox.delivered_by, outbox.route FROM incident \
                         JOIN outbox ON outbox.incident = incident.id AND outbox.delivered_by IS NOT NULL AND outbox.recipients IS NULL \
                         AND outbox.kind IN ('trigger', 'update', 'escalation', 'reminder') \
                         LEFT JOIN target ON target.name = incident.subject \
                         WHERE incident.resolved IS NULL AND incident.acknowledged IS NULL AND incident.parent IS NULL \
                         AND NOT EXISTS (SELECT 1 FROM outbox open WHERE open.incident = incident.id AND open.delivered IS NULL \
                         AND open.recipients IS NULL AND open.kind <> 'reminder') \
                         AND NOT EXISTS (SELECT 1 FROM outbox later WHERE later.incident = incident.id AND later.route = outbox.route \
                         AND later.kind IN ('trigger', 'update', 'escalation', 'reminder') \
                         AND later.delivered_by IS NOT NULL AND later.recipients IS NULL AND (later.delivered > outbox.delivered \
                         OR (later.delivered = outbox.delivered AND later.id > outbox.id))) \
                         ORDER BY incident.id, outbox.delivered, outbox.id";
        let mut found: Vec<Unanswered> = Vec::new();
        for row in &sqlx::query(statement).fetch_all(&self.pool).await? {
            let incident = unanswered_row(row)?;
            let channel = first_of_route(row)?;
            let waits = reminders.contains(&(incident.incident.clone(), channel.clone()));
            let way = Way { channel, told: incident.told, told_by: row.try_get("delivered_by")?, waits };
            match found.last_mut().filter(|last| last.incident.incident == incident.incident) {
                Some(last) => {
                    last.ways.retain(|earlier| earlier.channel != way.channel);
                    last.ways.push(way);
                }
                None => found.push(Unanswered { incident, ways: vec![way] }),
            }
        }
        Ok(found)
    }

    /// What nobody has acknowledged, with the time of its first page, taken or not: the first one since it became as severe as it is, if it
    /// was told as less before. A message that waited then says how severe it is when it is sent, and counts from then on.
    pub(crate) async fn unacknowledged(&self) -> Result<Vec<Unacknowledged>, sqlx::Error> {
        const RAISED: &str = "COALESCE((SELECT MAX(raised.at) FROM incident_event raised WHERE raised.incident = incident.id \
                              AND raised.kind = 'raised'), 0)";
        let statement = format!(
            "SELECT incident.id, incident.subject, incident.class, incident.detail, incident.severity, target.tags, target.muted_until, \
             MIN(CASE WHEN outbox.created < {RAISED} THEN {RAISED} ELSE outbox.created END) AS delivered FROM incident \
             JOIN outbox ON outbox.incident = incident.id AND outbox.kind IN ('trigger', 'update') AND outbox.recipients IS NULL \
             AND (outbox.created >= {RAISED} OR outbox.delivered IS NULL OR outbox.delivered >= {RAISED}) \
             LEFT JOIN target ON target.name = incident.subject \
             WHERE incident.resolved IS NULL AND incident.acknowledged IS NULL AND incident.parent IS NULL \
             GROUP BY incident.id, incident.subject, incident.class, incident.detail, incident.severity, target.tags, target.muted_until"
        );
        sqlx::query(sqlx::AssertSqlSafe(statement)).fetch_all(&self.pool).await?.iter().map(unanswered_row).collect()
    }

    /// Tells somebody else of what nobody has acknowledged. It is the same row whoever writes it.
    pub(crate) async fn escalate(
        &self,
        unanswered: &Unacknowledged,
        due: Moment,
        route: &[String],
        now: Moment,
    ) -> Result<(), sqlx::Error> {
        let id = ids::derived(due, &[&unanswered.incident, "escalation", &route.join("\n")]);
        let known: i64 = sqlx::query_scalar("SELECT count(*) FROM outbox WHERE id = $1").bind(&id).fetch_one(&self.pool).await?;
        if known > 0 {
            return Ok(());
        }
        let mut transaction = self.begin().await?;
        // Whoever acknowledges it right now goes first.
        let statement = "INSERT INTO outbox (id, incident, kind, route, created, due) SELECT $1, $2, 'escalation', $3, $4, $4 \
                         WHERE EXISTS (SELECT 1 FROM incident WHERE id = $2 AND acknowledged IS NULL AND resolved IS NULL) \
                         ON CONFLICT DO NOTHING";
        let route_text = serde_json::to_string(route).expect("names are text");
        let query = sqlx::query(statement).bind(id).bind(&unanswered.incident).bind(route_text).bind(now.0);
        if query.execute(&mut *transaction).await?.rows_affected() > 0 {
            let text = format!("not acknowledged for {}; notifying {}", span(now.since(unanswered.told)), route[0]);
            note(&mut transaction, &unanswered.incident, now, "escalated", &text).await?;
        }
        transaction.commit().await
    }

    /// Writes a reminder of one way. It is the same row whoever writes it.
    pub(crate) async fn remind(&self, unanswered: &Unacknowledged, way: &Way, route: &[String], now: Moment) -> Result<(), sqlx::Error> {
        let mut transaction = self.begin().await?;
        let told = way.told.0.to_string();
        let statement =
            "INSERT INTO outbox (id, incident, kind, route, created, due) VALUES ($1, $2, 'reminder', $3, $4, $4) ON CONFLICT DO NOTHING";
        let written = sqlx::query(statement)
            // The time of the last one, so that the clock of whoever is first does not matter.
            .bind(ids::derived(way.told + Duration::from_millis(1), &[&unanswered.incident, "reminder", &told, &way.channel]))
            .bind(&unanswered.incident)
            .bind(serde_json::to_string(route).expect("names are text"))
            .bind(now.0)
            .execute(&mut *transaction)
            .await?;
        if written.rows_affected() > 0 {
            let text = format!("not acknowledged; notifying {}", way.channel);
            note(&mut transaction, &unanswered.incident, now, "reminded", &text).await?;
        }
        transaction.commit().await
    }
}

/// The row `candidate` has a lease that was written by a clock which has been set back since, at the time whose leases end at `$2`:
/// it ends far later than any lease can. Whoever is a little behind the others must not take it for that.
fn set_back(lease: Duration) -> String {
    format!("candidate.lease_until > $2 + {}", millis(lease))
}

/// Whether two channels, each with where it led, are the same: one place may have had two names, and one name two places. Of one whose
/// place is not known, the name counts.
fn is_same_taker((name, place): &(String, Option<String>), (other, elsewhere): &(String, Option<String>)) -> bool {
    match (place, elsewhere) {
        (Some(place), Some(elsewhere)) => place == elsewhere,
        _ => name == other,
    }
}

/// As the history keeps it: what the channel is called, and where it leads.
pub(crate) fn unconfirmed(channel: &str, destination: &str) -> String {
    format!("{channel} {destination}")
}

/// The channel of such a text, and where it leads, if that was written down.
pub(crate) fn unconfirmed_taker(text: &str) -> (&str, Option<&str>) {
    let is_hash = |word: &str| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    match text.rsplit_once(' ') {
        Some((channel, destination)) if is_hash(destination) => (channel, Some(destination)),
        _ => (text, None),
    }
}

/// Channels that may have taken something of an incident.
async fn unconfirmed_takers(connection: &mut AnyConnection, incident: &str) -> Result<Vec<(String, Option<String>)>, sqlx::Error> {
    let statement = "SELECT text FROM incident_event WHERE incident = $1 AND kind = $2 ORDER BY at, text";
    let texts: Vec<String> = sqlx::query_scalar(statement).bind(incident).bind(UNCONFIRMED).fetch_all(connection).await?;
    let takers = texts.iter().map(|text| unconfirmed_taker(text));
    Ok(takers.map(|(channel, destination)| (channel.to_owned(), destination.map(str::to_owned))).collect())
}

fn in_json(names: &[&str]) -> String {
    serde_json::to_string(names).expect("names are text")
}

fn unanswered_row(row: &AnyRow) -> Result<Unacknowledged, sqlx::Error> {
    let tags: Option<String> = row.try_get("tags")?;
    let of_group = || serde_json::from_str::<Detail>(&row.try_get::<String, _>("detail").ok()?).ok().map(|detail| detail.tags);
    Ok(Unacknowledged {
        incident: row.try_get("id")?,
        subject: row.try_get("subject")?,
        severity: Severity::of_word(&row.try_get::<String, _>("severity")?).unwrap_or(Severity::Page),
        class: Class::of_word(&row.try_get::<String, _>("class")?).unwrap_or(Class::Availability),
        tags: tags.and_then(|tags| serde_json::from_str(&tags).ok()).or_else(of_group).unwrap_or_default(),
        muted_until: Moment(row.try_get::<Option<i64>, _>("muted_until")?.unwrap_or(0)),
        told: Moment(row.try_get("delivered")?),
    })
}

/// The channel that a message was meant for.
fn first_of_route(row: &AnyRow) -> Result<String, sqlx::Error> {
    let route: Vec<String> = serde_json::from_str(&row.try_get::<String, _>("route")?).unwrap_or_default();
    Ok(route.into_iter().next().unwrap_or_default())
}

fn leased_row(row: &AnyRow, incident: IncidentRow, raised: Vec<Moment>) -> Result<LeasedDelivery, sqlx::Error> {
    let kind: String = row.try_get("kind")?;
    Ok(LeasedDelivery {
        id: row.try_get("id")?,
        incident,
        raised,
        repeats: kind == REPEAT,
        kind: Kind::of_word(&kind).unwrap_or(Kind::Trigger),
        route: serde_json::from_str(&row.try_get::<String, _>("route")?).unwrap_or_default(),
        hop: row.try_get("hop")?,
        created: Moment(row.try_get("created")?),
        epoch: row.try_get("epoch")?,
        attempts: row.try_get("attempts")?,
        tried_since: row.try_get::<Option<i64>, _>("tried_since")?.map(Moment),
        recipients: row.try_get::<Option<String>, _>("recipients")?.map(|list| serde_json::from_str(&list).unwrap_or_default()),
        destination: row.try_get("destination")?,
    })
}
