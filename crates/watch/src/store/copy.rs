//! Copies between the real database and one in memory that stands in for it: what is needed to go on there, and what was found out
//! meanwhile back again.

use super::incidents::{overtaken, unread};
use super::values::Values;
use super::{Admission, Dialect, Store, StoreFailure, decisions};
use crate::moment::{DAY, FIVE_MINUTES, Moment, millis};
use futures_util::future::join_all;
use sqlx::any::AnyRow;
use sqlx::{Any, AnyPool, AssertSqlSafe, Row as _, Transaction};
use std::collections::BTreeSet;
use std::time::Duration;
use uuid::Uuid;

/// Rows in one statement.
const ROWS: usize = 200;
/// The results of so long, and their evidence, are in memory twice while they are written.
const SLICE: Duration = FIVE_MINUTES;

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Number,
    Bytes,
}
use Kind::{Bytes, Number, Text};

struct Table {
    name: &'static str,
    columns: &'static [(&'static str, Kind)],
}

const TARGET: Table = Table {
    name: "target",
    columns: &[
        ("name", Text),
        ("state", Text),
        ("availability", Text),
        ("surface", Text),
        ("contract", Text),
        ("last_slot", Number),
        ("last_result", Number),
        ("since", Number),
        ("source", Text),
        ("definition", Bytes),
        ("host", Text),
        ("every", Number),
        ("tags", Text),
        ("public", Number),
        ("muted_until", Number),
        ("created", Number),
    ],
};
/// Of its columns, those that results change.
const CHANGED: usize = 8;

const SCHEDULE: Table = Table {
    name: "schedule",
    columns: &[("target", Text), ("region", Text), ("slot", Number), ("attempt", Number), ("due", Number), ("patience", Number)],
};

const INCIDENT: Table = Table {
    name: "incident",
    columns: &[
        ("id", Text),
        ("subject", Text),
        ("class", Text),
        ("severity", Text),
        ("title", Text),
        ("detail", Text),
        ("since", Number),
        ("opened", Number),
        ("resolved", Number),
        ("acknowledged", Number),
        ("acknowledged_by", Text),
        ("parent", Text),
        ("evidence", Text),
    ],
};

const OUTBOX: Table = Table {
    name: "outbox",
    columns: &[
        ("id", Text),
        ("incident", Text),
        ("kind", Text),
        ("route", Text),
        ("hop", Number),
        ("created", Number),
        ("due", Number),
        ("attempts", Number),
        ("tried_since", Number),
        ("delivered", Number),
        ("delivered_by", Text),
        ("last_error", Text),
        ("recipients", Text),
        ("destination", Text),
    ],
};

const CONTRACT: Table = Table { name: "contract", columns: &[("target", Text), ("hash", Text), ("first_seen", Number), ("body", Bytes)] };

const DEPLOY: Table = Table {
    name: "deploy",
    columns: &[("id", Text), ("target", Text), ("at", Number), ("until", Number), ("expected", Text), ("note", Text)],
};

const MAINTENANCE: Table = Table {
    name: "maintenance",
    columns: &[("id", Text), ("name", Text), ("targets", Text), ("tags", Text), ("starts", Number), ("ends", Number)],
};

const SILENCE: Table = Table {
    name: "silence",
    columns: &[("id", Text), ("names", Text), ("tags", Text), ("author", Text), ("reason", Text), ("starts", Number), ("ends", Number)],
};

const NOTICE: Table =
    Table { name: "notice", columns: &[("id", Text), ("title", Text), ("targets", Text), ("updated", Number), ("resolved", Number)] };

const NOTICE_UPDATE: Table = Table {
    name: "notice_update",
    columns: &[("notice", Text), ("number", Number), ("at", Number), ("author", Text), ("progress", Text), ("text", Text)],
};

const PUSH: Table =
    Table { name: "push", columns: &[("target", Text), ("started", Number), ("succeeded", Number), ("failed", Number), ("message", Text)] };

const RESULT: Table = Table {
    name: "result",
    columns: &[
        ("target", Text),
        ("slot", Number),
        ("region", Text),
        ("attempt", Number),
        ("at", Number),
        ("verdict", Text),
        ("reason", Text),
        ("duration", Number),
        ("phases", Text),
        ("contract", Text),
        ("evidence", Text),
    ],
};

const EVIDENCE: Table = Table { name: "evidence", columns: &[("id", Text), ("target", Text), ("at", Number), ("body", Bytes)] };

const CHANGE: Table = Table {
    name: "contract_change",
    columns: &[
        ("id", Text),
        ("target", Text),
        ("at", Number),
        ("old_hash", Text),
        ("new_hash", Text),
        ("level", Text),
        ("announced", Number),
        ("diff", Bytes),
    ],
};

const EVENT: Table = Table { name: "incident_event", columns: &[("incident", Text), ("at", Number), ("kind", Text), ("text", Text)] };

const AUDIT: Table = Table {
    name: "audit",
    columns: &[("id", Text), ("at", Number), ("who", Text), ("via", Text), ("action", Text), ("subject", Text), ("outcome", Text)],
};

const TAKEN_CALL: Table = Table { name: "taken_call", columns: &[("id", Text), ("at", Number)] };

impl Table {
    fn names(&self) -> String {
        self.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    async fn read(&self, pool: &AnyPool, condition: &str) -> Result<Vec<AnyRow>, sqlx::Error> {
        let statement = format!("SELECT {} FROM {} WHERE {condition}", self.names(), self.name);
        sqlx::query(AssertSqlSafe(statement)).fetch_all(pool).await
    }

    /// The first columns of these rows.
    fn values(&self, dialect: Dialect, rows: &[&AnyRow], columns: usize) -> Result<Values, sqlx::Error> {
        let mut values = Values::new(dialect);
        for source in rows {
            let mut failed = None;
            values.row(|row| {
                for (at, (_, kind)) in self.columns.iter().take(columns).enumerate() {
                    let added = match kind {
                        Text => source.try_get::<Option<String>, _>(at).map(|value| {
                            row.add(value);
                        }),
                        Number => source.try_get::<Option<i64>, _>(at).map(|value| {
                            row.add(value);
                        }),
                        Bytes => source.try_get::<Option<Vec<u8>>, _>(at).map(|value| {
                            row.add(value);
                        }),
                    };
                    failed = failed.take().or(added.err());
                }
            });
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Ok(values)
    }

    async fn write(&self, to: &mut Transaction<'_, Any>, rows: &[AnyRow], conflict: &str) -> Result<(), sqlx::Error> {
        let dialect = Dialect::of(to);
        let rows: Vec<&AnyRow> = rows.iter().collect();
        for some in rows.chunks(ROWS) {
            let statement = format!("INSERT INTO {} ({}) VALUES {{}} {conflict}", self.name, self.names());
            self.values(dialect, some, self.columns.len())?.query(&statement).execute(&mut **to).await?;
        }
        Ok(())
    }
}

const AS_IT_IS: &str = "ON CONFLICT DO NOTHING";

/// What could be read of a database.
#[derive(Debug)]
pub(crate) struct Reading {
    /// Whether what is known of targets is there, with their incidents and what people were told.
    pub(crate) knows_states: bool,
    /// Why not everything is there.
    pub(crate) unread: Option<StoreFailure>,
}

impl Store {
    /// A database in memory, which ends with its last clone.
    pub(crate) async fn in_memory() -> Result<Self, StoreFailure> {
        sqlx::any::install_default_drivers();
        let dialect = Dialect::Sqlite;
        // Without a name, each connection would have a database of its own.
        let address = format!("sqlite:file:standby-{}?mode=memory&cache=shared", Uuid::now_v7());
        let connect = || dialect.pool(1).min_connections(1).idle_timeout(None).max_lifetime(None).connect(&address);
        let (anchor, pool) = (Some(connect().await?), connect().await?);
        let store = Self { anchor, ..Self::of_pools(dialect, pool.clone(), pool, Admission::new(true)) };
        store.prepare().await?;
        store.prepare_for_decisions().await?;
        Ok(store)
    }

    /// Whether anything can be written.
    pub(crate) async fn prove_writable(&self, now: Moment) -> Result<(), StoreFailure> {
        let mut transaction = self.begin().await?;
        let statement =
            "INSERT INTO chore (name, last_run) VALUES ('write', $1) ON CONFLICT (name) DO UPDATE SET last_run = excluded.last_run";
        sqlx::query(statement).bind(now.0).execute(&mut *transaction).await?;
        Ok(transaction.commit().await?)
    }

    /// Begins with what is known in another database of the targets that are probed from this region, as far as it can be read.
    pub(crate) async fn read_from(&self, other: &Self, region: &str) -> Result<Reading, StoreFailure> {
        let mine = format!("SELECT target FROM schedule WHERE region = '{}'", region.replace('\'', "''"));
        let open = "incident.resolved IS NULL";
        let parts = [
            // Of these, some without the others would be worse than nothing: ends without a begin, begins without an end.
            vec![
                (TARGET, format!("removed IS NULL AND name IN ({mine})")),
                (SCHEDULE, format!("target IN ({mine})")),
                (INCIDENT, open.to_owned()),
                (OUTBOX, format!("delivered IS NULL OR incident IN (SELECT incident.id FROM incident WHERE {open})")),
                (INCIDENT, "resolved IS NOT NULL AND id IN (SELECT incident FROM outbox WHERE delivered IS NULL)".to_owned()),
                // Who may have been told without saying so is told of the end; and escalation, and who
                // acknowledges late, go by when it became what it is.
                (
                    EVENT,
                    format!(
                        "kind IN ('unconfirmed', 'raised', 'worse', 'changed', 'joined') AND (incident IN (SELECT incident.id FROM incident WHERE {open}) \
                         OR incident IN (SELECT incident FROM outbox WHERE delivered IS NULL))"
                    ),
                ),
            ],
            vec![(
                CONTRACT,
                "EXISTS (SELECT 1 FROM target WHERE target.name = contract.target AND target.contract = contract.hash)".to_owned(),
            )],
            vec![(DEPLOY, "id <> ''".to_owned())],
            vec![(MAINTENANCE, "id <> ''".to_owned())],
            vec![(SILENCE, "id <> ''".to_owned())],
            vec![(NOTICE, "id <> ''".to_owned()), (NOTICE_UPDATE, "number >= 0".to_owned())],
            vec![(PUSH, format!("target IN ({mine})"))],
        ];
        // Each may wait for a connection as long as the others.
        let parts = join_all(parts.into_iter().map(|part| read_all(&other.pool, part))).await;
        let mut reading = Reading { knows_states: parts.first().is_some_and(Result::is_ok), unread: None };
        let mut transaction = self.begin().await?;
        for part in parts {
            match part {
                Ok(tables) => {
                    for (table, rows) in tables {
                        table.write(&mut transaction, &rows, AS_IT_IS).await?;
                    }
                }
                Err(failure) => reading.unread = reading.unread.or(Some(failure.into())),
            }
        }
        transaction.commit().await?;
        Ok(reading)
    }

    /// Takes over what people have decided and jobs have said in a database that stood in for this one, besides what was taken over before:
    /// all of it, or nothing.
    pub(crate) async fn write_decisions_from(&self, memory: &Self, now: Moment) -> Result<(), StoreFailure> {
        let mut transaction = self.begin().await?;
        decisions::write(&mut transaction, &memory.pool).await?;
        write_records(&mut transaction, &memory.pool).await?;
        overtaken::end_removed(&mut transaction, now).await?;
        Ok(transaction.commit().await?)
    }

    /// Takes over what was found out in a database that stood in for this one: all of it, or nothing. If that did not know the
    /// states of this one, they stay what they are where nobody was told anything else.
    pub(crate) async fn write_from(&self, memory: &Self, knows_states: bool, now: Moment) -> Result<(), StoreFailure> {
        let all = "1 = 1";
        let days = format!("SELECT DISTINCT slot - slot % {} FROM result", millis(DAY));
        let days: Vec<i64> = sqlx::query_scalar(AssertSqlSafe(days)).fetch_all(&memory.pool).await?;
        self.prepare_days(days.into_iter().map(Moment)).await?;
        let first: Option<i64> = sqlx::query_scalar("SELECT MIN(slot) FROM result").fetch_one(&memory.pool).await?;
        let incidents = INCIDENT.read(&memory.pool, all).await?;
        let outbox = OUTBOX.read(&memory.pool, all).await?;
        let mut transaction = self.begin().await?;
        for table in [CONTRACT, CHANGE] {
            let rows = table.read(&memory.pool, all).await?;
            table.write(&mut transaction, &rows, AS_IT_IS).await?;
        }
        let mut next = first;
        while let Some(from) = next {
            let until = from + millis(SLICE);
            let slice = format!("slot >= {from} AND slot < {until}");
            let evidence = EVIDENCE.read(&memory.pool, &format!("id IN (SELECT evidence FROM result WHERE {slice})")).await?;
            EVIDENCE.write(&mut transaction, &evidence, AS_IT_IS).await?;
            RESULT.write(&mut transaction, &RESULT.read(&memory.pool, &slice).await?, AS_IT_IS).await?;
            let statement = "SELECT MIN(slot) FROM result WHERE slot >= $1";
            next = sqlx::query_scalar(statement).bind(until).fetch_one(&memory.pool).await?;
        }
        if let Some(first) = first {
            // Whoever counts right now did not see them: its end is nobody's.
            let anew = "UPDATE chore SET last_run = CASE WHEN last_run > $1 THEN $1 ELSE last_run END, lease_until = 0, holder = '' \
                 WHERE name = 'count' AND (last_run > $1 OR lease_until > $2)";
            sqlx::query(anew).bind(first).bind(now.0).execute(&mut *transaction).await?;
        }
        match knows_states {
            true => {
                write_states(&mut transaction, &memory.pool).await?;
                overtaken::settle(&mut transaction, &memory.pool, now).await?;
            }
            false => unread::take_over(&mut transaction, &memory.pool, now).await?,
        }
        // What ended in memory has to end before something of its kind that began there can be open.
        let columns = INCIDENT.columns.len();
        let rows: Vec<&AnyRow> = incidents.iter().collect();
        for some in rows.chunks(ROWS) {
            let statement = "UPDATE incident SET severity = v.column4, title = v.column5, resolved = v.column9, parent = v.column12 \
                 FROM (VALUES {}) AS v WHERE incident.id = v.column1 AND incident.resolved IS NULL";
            INCIDENT.values(self.dialect, some, columns)?.query(statement).execute(&mut *transaction).await?;
        }
        INCIDENT.write(&mut transaction, &incidents, AS_IT_IS).await?;
        OUTBOX
            .write(
                &mut transaction,
                &outbox,
                "ON CONFLICT (id) DO UPDATE SET route = excluded.route, hop = excluded.hop, due = excluded.due, \
                 attempts = excluded.attempts, tried_since = excluded.tried_since, delivered = excluded.delivered, \
                 delivered_by = excluded.delivered_by, destination = excluded.destination, \
                 last_error = excluded.last_error, lease_until = 0, epoch = outbox.epoch + 1 \
                 WHERE outbox.delivered IS NULL",
            )
            .await?;
        end_doubles(&mut transaction, &incidents, now).await?;
        decisions::write(&mut transaction, &memory.pool).await?;
        write_records(&mut transaction, &memory.pool).await?;
        let events = EVENT.read(&memory.pool, all).await?;
        write_events(&mut transaction, &events).await?;
        // What became more severe in memory is to be acknowledged anew.
        let anew = "UPDATE incident SET acknowledged = NULL, acknowledged_by = NULL WHERE acknowledged IS NOT NULL AND resolved IS NULL \
             AND EXISTS (SELECT 1 FROM incident_event raised WHERE raised.incident = incident.id AND raised.kind IN ('raised', 'worse') \
             AND raised.at > incident.acknowledged)";
        sqlx::query(anew).execute(&mut *transaction).await?;
        overtaken::end_removed(&mut transaction, now).await?;
        Ok(transaction.commit().await?)
    }
}

/// What jobs have said, what people have silenced, and what they did. An end of a silence counts wherever somebody has ended it.
async fn write_records(transaction: &mut Transaction<'_, Any>, memory: &AnyPool) -> Result<(), sqlx::Error> {
    const EARLIER_END: &str =
        "ON CONFLICT (id) DO UPDATE SET ends = CASE WHEN excluded.ends < silence.ends THEN excluded.ends ELSE silence.ends END";
    const WITH_OUTCOME: &str = "ON CONFLICT (id) DO UPDATE SET outcome = COALESCE(excluded.outcome, audit.outcome)";
    write_pushes(transaction, memory).await?;
    for (table, conflict) in [(SILENCE, EARLIER_END), (AUDIT, WITH_OUTCOME), (TAKEN_CALL, AS_IT_IS)] {
        table.write(transaction, &table.read(memory, "1 = 1").await?, conflict).await?;
    }
    Ok(())
}

/// What jobs have said. Other processes may have been told something else meanwhile: what came last counts.
async fn write_pushes(transaction: &mut Transaction<'_, Any>, memory: &AnyPool) -> Result<(), sqlx::Error> {
    let later = |column: &str| {
        format!(
            "{column} = CASE WHEN excluded.{column} IS NULL OR push.{column} >= excluded.{column} THEN push.{column} ELSE excluded.{column} END"
        )
    };
    let merged = ["started", "succeeded", "failed"].map(later).join(", ");
    let merged = format!("ON CONFLICT (target) DO UPDATE SET {merged}, message = excluded.message");
    PUSH.write(transaction, &PUSH.read(memory, "1 = 1").await?, &merged).await
}

async fn read_all(pool: &AnyPool, tables: Vec<(Table, String)>) -> Result<Vec<(Table, Vec<AnyRow>)>, sqlx::Error> {
    let mut all = Vec::new();
    for (table, condition) in tables {
        let rows = table.read(pool, &condition).await?;
        all.push((table, rows));
    }
    Ok(all)
}

/// The states that began with those of this database, and went on.
async fn write_states(transaction: &mut Transaction<'_, Any>, memory: &AnyPool) -> Result<(), sqlx::Error> {
    let targets = TARGET.read(memory, "last_slot > 0").await?;
    let targets: Vec<&AnyRow> = targets.iter().collect();
    let dialect = Dialect::of(transaction);
    for some in targets.chunks(ROWS) {
        let statement = "UPDATE target SET state = v.column2, availability = v.column3, surface = v.column4, \
             contract = COALESCE(v.column5, target.contract), last_slot = v.column6, last_result = v.column7, since = v.column8 \
             FROM (VALUES {}) AS v WHERE target.name = v.column1 AND v.column6 >= target.last_slot";
        TARGET.values(dialect, some, CHANGED)?.query(statement).execute(&mut **transaction).await?;
    }
    Ok(())
}

/// Those that are not there yet. Of two who have acknowledged an incident in two places, the history has the one who counts.
async fn write_events(transaction: &mut Transaction<'_, Any>, events: &[AnyRow]) -> Result<(), sqlx::Error> {
    let events: Vec<&AnyRow> = events.iter().collect();
    let dialect = Dialect::of(transaction);
    for some in events.chunks(ROWS) {
        let statement = "INSERT INTO incident_event (incident, at, kind, text) \
             SELECT v.column1, v.column2, v.column3, v.column4 FROM (VALUES {}) AS v WHERE NOT EXISTS (SELECT 1 FROM incident_event known \
             WHERE known.incident = v.column1 AND known.at = v.column2 AND known.kind = v.column3 AND known.text = v.column4) \
             AND NOT EXISTS (SELECT 1 FROM incident WHERE incident.id = v.column1 AND v.column3 = 'acknowledged' \
             AND incident.acknowledged <> v.column2)";
        EVENT.values(dialect, some, EVENT.columns.len())?.query(statement).execute(&mut **transaction).await?;
    }
    Ok(())
}

/// What could not be read was paged once more: that page ends, and the one before stays.
async fn end_doubles(transaction: &mut Transaction<'_, Any>, incidents: &[AnyRow], now: Moment) -> Result<(), sqlx::Error> {
    let written: Vec<String> = sqlx::query_scalar("SELECT id FROM incident").fetch_all(&mut **transaction).await?;
    let written: BTreeSet<String> = written.into_iter().collect();
    for row in incidents {
        let id: String = row.try_get("id")?;
        if written.contains(&id) {
            continue;
        }
        let dialect = Dialect::of(transaction);
        // It may not be open beside the other one.
        let statement = "INSERT INTO incident (id, subject, class, severity, title, detail, since, opened, resolved) \
             SELECT v.column1, v.column2, v.column3, v.column4, v.column5 || ' (alerted twice: the other alert stays open)', v.column6, \
             v.column7, v.column8, v.column8 FROM (VALUES {}) AS v";
        INCIDENT.values(dialect, &[row], 8)?.query(statement).execute(&mut **transaction).await?;
        let end = "INSERT INTO outbox (id, incident, kind, route, created, due) \
             SELECT id || '-end', incident, 'resolve', route, $1, $1 FROM outbox WHERE incident = $2 AND kind = 'trigger'";
        sqlx::query(end).bind(now.0).bind(&id).execute(&mut **transaction).await?;
    }
    Ok(())
}
