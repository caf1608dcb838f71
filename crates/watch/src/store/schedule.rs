//! Who is probed when, and by whom: targets and their turns. A turn is leased for a while; who leased it is told by the epoch.

use super::values::Values;
use super::{Dialect, Store, StoreFailure, incidents, processes};
use crate::config::{TargetKind, TargetSpec};
use crate::moment::{Moment, millis};
use crate::schedule::{Grid, Turn};
use sqlx::{Any, AnyConnection, Row as _, Transaction};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use url::Url;

/// The host of what runs on this machine.
pub(super) const THIS_MACHINE: &str = "local";
/// The host of what reports in, wherever it runs.
pub(super) const JOBS: &str = "jobs";
/// Rows in one statement.
const ROWS: usize = 400;
/// Of targets that are new at once: so many probes in a second, on top of those that are due anyway.
const FIRST_PROBES: u32 = 500;
/// For a probe to be committed after it has ended.
const MARGIN: Duration = Duration::from_secs(10);

/// A turn that is ours until the lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub target: String,
    pub region: String,
    pub turn: Turn,
    pub epoch: i64,
    pub until: Moment,
}

/// Where a target comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Config,
    Api,
}

impl Source {
    fn word(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Api => "api",
        }
    }
}

/// What a change of the targets came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    pub added: usize,
    pub changed: usize,
    pub removed: usize,
}

impl TargetSpec {
    /// Whether processes of this region probe it.
    pub fn is_probed_from(&self, region: &str) -> bool {
        self.regions.is_empty() || self.regions.iter().any(|named| named == region)
    }

    pub fn grid(&self) -> Grid {
        Grid::new(&self.name, self.every)
    }

    /// What it shares with others when that fails: `host:port`, the machine, or the way of jobs to this monitor.
    pub fn host(&self) -> String {
        let text = match &self.kind {
            TargetKind::Server(server) => {
                server.bindings.first().filter(|binding| binding.launch.is_none()).and_then(|one| one.url.as_deref())
            }
            TargetKind::Monitor(url) => Some(url.as_str()),
            TargetKind::Push { .. } => return JOBS.to_owned(),
        };
        let url = text.and_then(|text| Url::parse(text).ok());
        let host = url.as_ref().and_then(|url| Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?)));
        host.unwrap_or_else(|| THIS_MACHINE.to_owned())
    }

    /// Longest time of a probe: the handshake and the lists have their time each, the suite has its own, and what ends a session
    /// takes a little.
    pub fn deadline(&self) -> Duration {
        let suite = if self.suite.is_some() { self.suite_time() } else { Duration::ZERO };
        self.timeout * 2 + suite + Duration::from_secs(2)
    }

    /// Longest time of all cases of its suite.
    pub fn suite_time(&self) -> Duration {
        self.timeout * 4
    }

    fn lease(&self) -> Duration {
        self.deadline() + MARGIN
    }

    /// Where it is probed from.
    fn places<'a>(&'a self, own: &'a str) -> Vec<&'a str> {
        if self.regions.is_empty() { vec![own] } else { self.regions.iter().map(String::as_str).collect() }
    }
}

impl Store {
    /// Makes the targets of the configuration those that are given. What did not change keeps its turns, what became shorter or
    /// longer goes on without a gap, and what no process names any more is probed no more. `region` is our own.
    ///
    /// # Errors
    /// The database failed.
    pub async fn sync_targets(&self, targets: &[&TargetSpec], region: &str, now: Moment) -> Result<Synced, StoreFailure> {
        let mut transaction = self.begin().await?;
        let known = known(&mut transaction).await?;
        let is_new = |target: &&&TargetSpec| known.get(&target.name).is_none_or(|known| known.removed);
        let new = targets.iter().filter(is_new).count();
        let arrival = Arrival { source: Source::Config, region, now, spread: spread(new) };
        let mut synced = Synced::default();
        for part in targets.chunks(ROWS) {
            let rows = part.iter().map(|target| (*target, &[] as &[u8]));
            let one = put(&mut transaction, self.dialect, rows, &arrival, &known).await?;
            synced = Synced { added: synced.added + one.added, changed: synced.changed + one.changed, ..synced };
        }
        let named: BTreeSet<&str> = targets.iter().map(|target| target.name.as_str()).collect();
        let held = processes::held(&mut transaction, self.kept_since(), now).await?;
        let is_gone = |(name, known): &(&String, &Known)| {
            let is_named = named.contains(name.as_str()) || held.contains(*name);
            known.source == Source::Config.word() && !known.removed && !is_named
        };
        for (name, _) in known.iter().filter(is_gone) {
            remove(&mut transaction, name, now).await?;
            synced.removed += 1;
        }
        transaction.commit().await?;
        Ok(synced)
    }

    /// Adds a target over the API, or changes it. `definition` is what it is made from again after a restart.
    ///
    /// # Errors
    /// The database failed.
    pub async fn put_target(&self, target: &TargetSpec, definition: &[u8], region: &str, now: Moment) -> Result<(), StoreFailure> {
        let mut transaction = self.begin().await?;
        let known = known(&mut transaction).await?;
        let arrival = Arrival { source: Source::Api, region, now, spread: Duration::ZERO };
        put(&mut transaction, self.dialect, [(target, definition)].into_iter(), &arrival, &known).await?;
        Ok(transaction.commit().await?)
    }

    /// A target is probed no more. What is known of it stays.
    ///
    /// # Errors
    /// The database failed.
    pub async fn remove_target(&self, name: &str, now: Moment) -> Result<(), StoreFailure> {
        let mut transaction = self.begin().await?;
        remove(&mut transaction, name, now).await?;
        Ok(transaction.commit().await?)
    }

    /// Takes up to `limit` turns that are due, the oldest first. What is leased to somebody else is left alone until that lease
    /// has ended.
    ///
    /// # Errors
    /// The database failed.
    pub async fn lease(&self, region: &str, worker: &str, now: Moment, limit: usize) -> Result<Vec<Lease>, StoreFailure> {
        let skip = self.dialect.skip_locked();
        let (left_alone, others) = self.left_alone(5);
        let statement = format!(
            "UPDATE schedule SET lease_until = $1 + patience, worker = $2, epoch = epoch + 1 WHERE (target, region) IN \
             (SELECT target, region FROM schedule WHERE region = $3 AND due <= $1 AND lease_until <= $1{others} ORDER BY due LIMIT $4 {skip}) \
             RETURNING target, slot, attempt, due, epoch, lease_until"
        );
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let query = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(now.0).bind(worker).bind(region).bind(limit);
        let query = left_alone.into_iter().fold(query, |query, names| query.bind(names));
        let rows = query.fetch_all(&self.writer).await?;
        rows.iter()
            .map(|row| {
                Ok(Lease {
                    target: row.try_get(0)?,
                    region: region.to_owned(),
                    turn: turn(row, 1)?,
                    epoch: row.try_get(4)?,
                    until: Moment(row.try_get(5)?),
                })
            })
            .collect()
    }

    /// When there is something to lease next: a turn becomes due, or a lease ends.
    ///
    /// # Errors
    /// The database failed.
    pub async fn next_due(&self, region: &str, now: Moment) -> Result<Option<Moment>, StoreFailure> {
        let (left_alone, others) = self.left_alone(3);
        let free = format!("SELECT due FROM schedule WHERE region = $1 AND lease_until <= $2{others} ORDER BY due LIMIT 1");
        let leased = format!(
            "SELECT lease_until FROM schedule WHERE region = $1 AND due <= $2 AND lease_until > $2{others} ORDER BY lease_until LIMIT 1"
        );
        let mut next: Option<i64> = None;
        for statement in [free, leased] {
            let query = sqlx::query_scalar(sqlx::AssertSqlSafe(statement)).bind(region).bind(now.0);
            let query = left_alone.iter().cloned().fold(query, |query, names| query.bind(names));
            let found: Option<i64> = query.fetch_optional(&self.pool).await?;
            next = next.into_iter().chain(found).min();
        }
        Ok(next.map(Moment))
    }

    /// When the next failure or recovery is looked at again, if one is.
    ///
    /// # Errors
    /// The database failed.
    pub async fn next_confirmation(&self, region: &str) -> Result<Option<Moment>, StoreFailure> {
        let (left_alone, others) = self.left_alone(2);
        let statement = format!("SELECT due FROM schedule WHERE region = $1 AND attempt > 0{others} ORDER BY due LIMIT 1");
        let query = sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe(statement)).bind(region);
        let query = left_alone.into_iter().fold(query, |query, names| query.bind(names));
        Ok(query.fetch_optional(&self.pool).await?.map(Moment))
    }

    /// The targets that came over the API, with what they are made from.
    ///
    /// # Errors
    /// The database failed.
    pub async fn api_targets(&self) -> Result<Vec<(String, Vec<u8>)>, StoreFailure> {
        let statement = "SELECT name, definition FROM target WHERE source = 'api' AND removed IS NULL ORDER BY name";
        let rows = sqlx::query(statement).fetch_all(&self.pool).await?;
        Ok(rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect::<Result<_, sqlx::Error>>()?)
    }

    /// Leases that were not used are given back, as if they had never been taken.
    ///
    /// # Errors
    /// The database failed.
    pub async fn release(&self, leases: &[Lease]) -> Result<(), StoreFailure> {
        for part in leases.chunks(ROWS) {
            let mut values = Values::new(self.dialect);
            for lease in part {
                values.row(|row| {
                    row.add(lease.target.as_str()).add(lease.region.as_str()).add(lease.epoch);
                });
            }
            let statement = "UPDATE schedule SET lease_until = 0 FROM (VALUES {}) AS v \
                 WHERE schedule.target = v.column1 AND schedule.region = v.column2 AND schedule.epoch = v.column3";
            values.query(statement).execute(&self.writer).await?;
        }
        Ok(())
    }

    /// Whatever a process has leased is free: it ends, and writes nothing any more.
    ///
    /// # Errors
    /// The database failed.
    pub async fn give_back(&self, worker: &str) -> Result<(), StoreFailure> {
        let statement = "UPDATE schedule SET lease_until = 0, epoch = epoch + 1 WHERE worker = $1 AND lease_until > 0";
        sqlx::query(statement).bind(worker).execute(&self.writer).await?;
        Ok(())
    }

    /// A process that has SQLite for itself has also all leases that an earlier one left behind.
    ///
    /// # Errors
    /// The database failed.
    pub async fn free_leases(&self) -> Result<(), StoreFailure> {
        if self.dialect == Dialect::Sqlite {
            sqlx::query("UPDATE schedule SET lease_until = 0, epoch = epoch + 1 WHERE lease_until > 0").execute(&self.writer).await?;
        }
        Ok(())
    }

    /// Everybody's turn is now, for whoever wants results at once. What is probed counts for the slot before the one that waits,
    /// as its next attempt.
    ///
    /// # Errors
    /// The database failed.
    pub async fn hurry(&self, region: &str, now: Moment) -> Result<(), StoreFailure> {
        // The slot of what is new is running already.
        let new = "UPDATE schedule SET due = $1 WHERE region = $2 AND attempt = 0 AND due > $1 AND slot <= $1 AND lease_until <= $1";
        sqlx::query(new).bind(now.0).bind(region).execute(&self.writer).await?;
        let statement = "UPDATE schedule SET slot = o.slot, attempt = o.attempt, due = $1 FROM (\
             SELECT p.target, p.region, p.epoch, p.slot, (SELECT COALESCE(MAX(r.attempt), 0) + 1 FROM result r \
             WHERE r.target = p.target AND r.slot = p.slot AND r.region = p.region) AS attempt \
             FROM (SELECT s.target, s.region, s.epoch, {} AS slot FROM schedule s JOIN target t ON t.name = s.target \
             WHERE s.region = $2 AND s.attempt = 0 AND s.due > $1 AND s.lease_until <= $1) AS p) AS o \
             WHERE schedule.target = o.target AND schedule.region = o.region AND schedule.epoch = o.epoch";
        let statement = statement.replace("{}", &before_its_turn("s.slot", "t"));
        sqlx::query(sqlx::AssertSqlSafe(statement)).bind(now.0).bind(region).execute(&self.writer).await?;
        Ok(())
    }
}

/// The slot of a probe before the turn of a target, whose next slot is the column `slot` and whose row is `target`: the one before. If
/// the interval was shorter until now there are results of later slots, and what is older than these would say nothing.
pub(super) fn before_its_turn(slot: &str, target: &str) -> String {
    format!("CASE WHEN {target}.last_slot > {slot} - {target}.every THEN {target}.last_slot ELSE {slot} - {target}.every END")
}

/// What the store knows of a target, as far as a change of its configuration matters.
struct Known {
    source: String,
    /// Milliseconds.
    every: i64,
    last_slot: Moment,
    removed: bool,
    turns: BTreeMap<String, KnownTurn>,
}

struct KnownTurn {
    turn: Turn,
    patience: i64,
    epoch: i64,
}

async fn known(connection: &mut AnyConnection) -> Result<BTreeMap<String, Known>, StoreFailure> {
    let mut known = BTreeMap::new();
    for row in sqlx::query("SELECT name, source, every, last_slot, removed FROM target").fetch_all(&mut *connection).await? {
        let removed: Option<i64> = row.try_get(4)?;
        let (source, every, last_slot) = (row.try_get(1)?, row.try_get(2)?, Moment(row.try_get(3)?));
        let one = Known { source, every, last_slot, removed: removed.is_some(), turns: BTreeMap::new() };
        known.insert(row.try_get(0)?, one);
    }
    let turns = "SELECT target, region, slot, attempt, due, patience, epoch FROM schedule";
    for row in sqlx::query(turns).fetch_all(&mut *connection).await? {
        let (target, region): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        if let Some(one) = known.get_mut(&target) {
            one.turns.insert(region, KnownTurn { turn: turn(&row, 2)?, patience: row.try_get(5)?, epoch: row.try_get(6)? });
        }
    }
    Ok(known)
}

/// Slot, attempt and due, in three columns from `first` on.
fn turn(row: &sqlx::any::AnyRow, first: usize) -> Result<Turn, sqlx::Error> {
    let attempt: i64 = row.try_get(first + 1)?;
    let attempt = u32::try_from(attempt).unwrap_or_default();
    Ok(Turn { slot: Moment(row.try_get(first)?), attempt, due: Moment(row.try_get(first + 2)?) })
}

/// For the first probes of so many targets.
pub(super) fn spread(count: usize) -> Duration {
    Duration::from_secs(1) * u32::try_from(count).unwrap_or(u32::MAX).saturating_sub(1) / FIRST_PROBES
}

/// How targets are made known.
struct Arrival<'a> {
    source: Source,
    /// Our own.
    region: &'a str,
    now: Moment,
    /// For the first probes of those that are new.
    spread: Duration,
}

async fn put<'a>(
    connection: &mut AnyConnection,
    dialect: Dialect,
    targets: impl Iterator<Item = (&'a TargetSpec, &'a [u8])>,
    arrival: &Arrival<'_>,
    known: &BTreeMap<String, Known>,
) -> Result<Synced, StoreFailure> {
    let Arrival { source, region, now, spread } = *arrival;
    let mut synced = Synced::default();
    let (mut rows, mut turns, mut patience) = (Values::new(dialect), Values::new(dialect), Values::new(dialect));
    for (target, definition) in targets {
        let (every, grid, lease) = (millis(target.every), target.grid(), millis(target.lease()));
        let before = known.get(&target.name);
        match before {
            Some(before) if !before.removed => synced.changed += usize::from(before.every != every),
            _ => synced.added += 1,
        }
        let tags = serde_json::to_string(&target.tags).expect("names are JSON");
        rows.row(|row| {
            row.add(target.name.as_str()).add(source.word()).add(definition.to_vec()).add(target.host()).add(every).add(tags);
            row.add(i64::from(target.public)).add("{}").add("unknown").add("unknown").add(now.0).add(now.0);
        });
        let places = target.places(region);
        for place in &places {
            let turn = match before.and_then(|before| Some((before, before.turns.get(*place)?))) {
                None => first(grid, before, spread, now),
                Some((before, turn)) if before.every != every => {
                    let moved = turn.turn.moved(grid, now);
                    if moved != turn.turn {
                        move_turn(connection, &target.name, place, moved, turn.epoch, now).await?;
                    }
                    turn.turn
                }
                Some((_, turn)) => turn.turn,
            };
            turns.row(|row| {
                row.add(target.name.as_str())
                    .add((*place).to_owned())
                    .add(turn.slot.0)
                    .add(i64::from(turn.attempt))
                    .add(turn.due.0)
                    .add(lease);
            });
        }
        for (place, turn) in before.iter().flat_map(|before| &before.turns) {
            if !places.contains(&place.as_str()) && !target.regions.is_empty() {
                let delete = "DELETE FROM schedule WHERE target = $1 AND region = $2";
                sqlx::query(delete).bind(target.name.as_str()).bind(place.as_str()).execute(&mut *connection).await?;
            } else if turn.patience != lease {
                patience.row(|row| {
                    row.add(target.name.as_str()).add(place.as_str()).add(lease);
                });
            }
        }
    }
    if !rows.is_empty() {
        // A row that says the same is not written again, so that a reload of thousands costs no more than reading them.
        let same = match dialect {
            Dialect::Sqlite => "IS NOT",
            Dialect::Postgres => "IS DISTINCT FROM",
        };
        let statement = format!(
            "INSERT INTO target (name, source, definition, host, every, tags, public, state, availability, surface, since, created) \
             VALUES {{}} ON CONFLICT (name) DO UPDATE SET source = excluded.source, definition = excluded.definition, host = excluded.host, \
             every = excluded.every, tags = excluded.tags, public = excluded.public, removed = NULL, \
             created = CASE WHEN target.removed IS NULL THEN target.created ELSE excluded.created END \
             WHERE (target.source, target.definition, target.host, target.every, target.tags, target.public) {same} \
             (excluded.source, excluded.definition, excluded.host, excluded.every, excluded.tags, excluded.public) \
             OR target.removed IS NOT NULL"
        );
        rows.query(&statement).execute(&mut *connection).await?;
    }
    if !turns.is_empty() {
        let statement = "INSERT INTO schedule (target, region, slot, attempt, due, patience) VALUES {} ON CONFLICT DO NOTHING";
        turns.query(statement).execute(&mut *connection).await?;
    }
    if !patience.is_empty() {
        let statement = "UPDATE schedule SET patience = v.column3 FROM (VALUES {}) AS v \
             WHERE schedule.target = v.column1 AND schedule.region = v.column2";
        patience.query(statement).execute(&mut *connection).await?;
    }
    Ok(synced)
}

/// A target that was removed and came back is not probed twice in a slot.
fn first(grid: Grid, before: Option<&Known>, spread: Duration, now: Moment) -> Turn {
    let turn = Turn::first(grid, now, spread);
    if before.is_some_and(|before| before.last_slot >= turn.slot) { Turn::resumed(grid, now) } else { turn }
}

/// Unless somebody has leased it meanwhile: what follows from that probe is on the new grid anyway.
async fn move_turn(
    connection: &mut AnyConnection,
    target: &str,
    region: &str,
    turn: Turn,
    epoch: i64,
    now: Moment,
) -> Result<(), StoreFailure> {
    let statement = "UPDATE schedule SET slot = $1, due = $2 WHERE target = $3 AND region = $4 AND epoch = $5 AND lease_until <= $6";
    sqlx::query(statement).bind(turn.slot.0).bind(turn.due.0).bind(target).bind(region).bind(epoch).bind(now.0).execute(connection).await?;
    Ok(())
}

/// Whoever was told of it is told that it is over; if it comes back, nothing is known of it.
async fn remove(transaction: &mut Transaction<'_, Any>, name: &str, now: Moment) -> Result<(), StoreFailure> {
    let forget = "UPDATE target SET removed = $1, state = '{}', availability = 'unknown', surface = 'unknown', since = $1 WHERE name = $2";
    sqlx::query(forget).bind(now.0).bind(name).execute(&mut **transaction).await?;
    sqlx::query("DELETE FROM schedule WHERE target = $1").bind(name).execute(&mut **transaction).await?;
    Ok(incidents::end_all(transaction, name, now).await?)
}
