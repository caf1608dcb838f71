//! What people decide while a database in memory stands in for the real one: it counts there at once, and is written to the real one once
//! that takes it. What others have decided there meanwhile stays.

use super::audit::IS_MUTE;
use super::incidents::{self, accept_contract, is_another_since, note};
use super::{Store, StoreFailure};
use crate::incident::Class;
use crate::moment::Moment;
use sqlx::{Any, AnyPool, Executor as _, Row as _, Transaction};
use std::collections::BTreeMap;

/// Only in memory: which targets were muted there, until when, and when somebody said so. Also those that are not probed from here.
const MUTED: &str = "CREATE TABLE muted (target TEXT PRIMARY KEY, until BIGINT NOT NULL, at BIGINT NOT NULL)";

/// Only in memory: as of when whoever acknowledged an incident there knew what it was.
const SEEN: &str = "CREATE TABLE acknowledged_as_seen (incident TEXT PRIMARY KEY, at BIGINT NOT NULL)";

impl Store {
    pub(super) async fn prepare_for_decisions(&self) -> Result<(), StoreFailure> {
        for table in [MUTED, SEEN] {
            self.writer.execute(table).await?;
        }
        Ok(())
    }

    /// As [`incidents::acknowledge_as_seen`], in memory: the database may know of something that came before.
    pub(crate) async fn acknowledge_in_memory(
        &self,
        incident: &str,
        who: &str,
        seen: Option<Moment>,
        now: Moment,
    ) -> Result<bool, StoreFailure> {
        let is_new = incidents::acknowledge_as_seen(self, incident, who, seen, now).await?;
        if is_new {
            let kept =
                "INSERT INTO acknowledged_as_seen (incident, at) VALUES ($1, $2) ON CONFLICT (incident) DO UPDATE SET at = excluded.at";
            sqlx::query(kept).bind(incident).bind(seen.map_or(now, |seen| seen.min(now)).0).execute(&self.writer).await?;
        }
        Ok(is_new)
    }

    /// As [`Store::mute`], in memory.
    pub(crate) async fn mute_in_memory(&self, target: &str, until: Moment, now: Moment) -> Result<(), StoreFailure> {
        let mut transaction = self.begin().await?;
        let known = "UPDATE target SET muted_until = $1 WHERE name = $2";
        sqlx::query(known).bind(until.0).bind(target).execute(&mut *transaction).await?;
        let kept = "INSERT INTO muted (target, until, at) VALUES ($1, $2, $3) \
             ON CONFLICT (target) DO UPDATE SET until = excluded.until, at = excluded.at";
        sqlx::query(kept).bind(target).bind(until.0).bind(now.0).execute(&mut *transaction).await?;
        Ok(transaction.commit().await?)
    }

    /// What [`Store::mute_in_memory`] was told, by target.
    pub(crate) async fn muted_in_memory(&self) -> Result<BTreeMap<String, Moment>, StoreFailure> {
        let rows: Vec<(String, i64)> = sqlx::query_as("SELECT target, until FROM muted").fetch_all(&self.pool).await?;
        Ok(rows.into_iter().map(|(target, until)| (target, Moment(until))).collect())
    }
}

/// Who has acknowledged what, and what is muted. Comes after the incidents of the memory and before their history, and before the audit
/// log of the memory.
pub(super) async fn write(transaction: &mut Transaction<'_, Any>, memory: &AnyPool) -> Result<(), sqlx::Error> {
    let statement = "SELECT id, acknowledged, acknowledged_by, \
                     COALESCE((SELECT at FROM acknowledged_as_seen WHERE incident = incident.id AND at < acknowledged), acknowledged) \
                     FROM incident WHERE acknowledged IS NOT NULL ORDER BY acknowledged, id";
    for row in sqlx::query(statement).fetch_all(memory).await? {
        let (id, at, who, seen): (String, i64, Option<String>, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
        if !is_another_since(transaction, &id, Moment(seen)).await? {
            acknowledge(transaction, &id, &who.unwrap_or_default(), Moment(at)).await?;
        }
    }
    // Whoever has said something else later, elsewhere, is right: the audit log knows.
    let later = format!("SELECT 1 FROM audit WHERE {IS_MUTE} AND subject = $2 AND at > $3 AND COALESCE(outcome, 'done') = 'done'");
    let statement = format!("UPDATE target SET muted_until = $1 WHERE name = $2 AND removed IS NULL AND NOT EXISTS ({later})");
    let muted: Vec<(String, i64, i64)> = sqlx::query_as("SELECT target, until, at FROM muted ORDER BY target").fetch_all(memory).await?;
    for (target, until, at) in muted {
        sqlx::query(sqlx::AssertSqlSafe(&*statement)).bind(until).bind(target).bind(at).execute(&mut **transaction).await?;
    }
    Ok(())
}

/// If nobody has acknowledged it before. A changed contract that is still open is what they have taken for good.
async fn acknowledge(transaction: &mut Transaction<'_, Any>, incident: &str, who: &str, at: Moment) -> Result<(), sqlx::Error> {
    let statement = "UPDATE incident SET acknowledged = $1, acknowledged_by = $2 WHERE id = $3 AND acknowledged IS NULL \
         RETURNING subject, class, resolved";
    let query = sqlx::query(statement).bind(at.0).bind(who).bind(incident);
    let Some(row) = query.fetch_optional(&mut **transaction).await? else { return Ok(()) };
    note(transaction, incident, at, "acknowledged", &format!("by {who}")).await?;
    let (subject, class, resolved): (String, String, Option<i64>) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    if class == Class::Contract.word() && resolved.is_none() {
        accept_contract(transaction, &subject, who, at).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::audit::AuditEvent;
    use crate::store::silences::Silence;

    const NOW: Moment = Moment(1_000_000);
    const LATER: Moment = Moment(1_060_000);
    const WRITTEN: Moment = Moment(1_120_000);

    async fn run(store: &Store, statement: &'static str) {
        store.writer.execute(statement).await.unwrap();
    }

    async fn texts(store: &Store, statement: &'static str) -> Vec<String> {
        sqlx::query_scalar(statement).fetch_all(&store.pool).await.unwrap()
    }

    /// A database with an open incident of `shop`, and silence `s`; and one that stands in for it.
    async fn both() -> (Store, Store) {
        let store = Store::in_memory().await.unwrap();
        for statement in [
            "INSERT INTO target (name, source, definition, host, every, tags, public, state, availability, surface, since) \
             VALUES ('shop', 'config', x'', 'a:1', 60000, '[]', 0, '{}', 'down', 'ok', 0)",
            "INSERT INTO schedule (target, region, slot, due) VALUES ('shop', 'here', 0, 0)",
            "INSERT INTO incident (id, subject, class, severity, title, detail, since, opened) \
             VALUES ('i', 'shop', 'availability', 'page', 'shop is down', '{\"message\":\"x\"}', 1, 1)",
            "INSERT INTO incident (id, subject, class, severity, title, detail, since, opened) \
             VALUES ('c', 'far', 'contract', 'page', 'far has another contract', '{\"message\":\"x\"}', 1, 1)",
            // Only another region probes it.
            "INSERT INTO target (name, source, definition, host, every, tags, public, state, availability, surface, since) \
             VALUES ('far', 'config', x'', 'a:2', 60000, '[]', 0, '{}', 'ok', 'breaking', 0)",
            "INSERT INTO outbox (id, incident, kind, route, created, due, delivered, delivered_by) \
             VALUES ('o', 'c', 'trigger', '[\"chat\"]', 1, 1, 1, 'chat')",
            "INSERT INTO silence (id, names, tags, author, reason, starts, ends) VALUES ('s', '[\"*\"]', '[]', 'ann', 'x', 1, 9000000)",
        ] {
            run(&store, statement).await;
        }
        let memory = Store::in_memory().await.unwrap();
        assert!(memory.read_from(&store, "here").await.unwrap().knows_states);
        (store, memory)
    }

    async fn write_twice(store: &Store, memory: &Store) {
        // A write of which nobody knows whether it was done is done again; and what comes late is written alone.
        for _ in 0..2 {
            store.write_from(memory, true, WRITTEN).await.unwrap();
            store.write_decisions_from(memory, WRITTEN).await.unwrap();
        }
    }

    #[tokio::test]
    async fn of_two_who_acknowledge_in_two_places_the_first_who_is_written_counts() {
        for is_known in [true, false] {
            let (store, memory) = both().await;
            if is_known {
                assert!(incidents::acknowledge(&store, "i", "bob", LATER).await.unwrap());
            }
            assert!(incidents::acknowledge(&memory, "i", "ann", NOW).await.unwrap());
            assert!(!incidents::acknowledge(&memory, "i", "eve", NOW).await.unwrap());
            write_twice(&store, &memory).await;
            let who = if is_known { "bob" } else { "ann" };
            assert_eq!(texts(&store, "SELECT acknowledged_by FROM incident WHERE id = 'i'").await, [who]);
            let history = texts(&store, "SELECT text FROM incident_event WHERE incident = 'i' AND kind = 'acknowledged'").await;
            assert_eq!(history, [format!("by {who}")]);
        }
    }

    #[tokio::test]
    async fn what_became_more_severe_in_one_place_is_not_acknowledged_by_what_somebody_said_before_in_the_other() {
        const RAISED: &str = "INSERT INTO incident_event (incident, at, kind, text) VALUES ('i', 1060000, 'raised', 'from notify to page')";
        let acknowledged = "SELECT COALESCE(acknowledged_by, 'nobody') FROM incident WHERE id = 'i'";
        // In the database, while somebody acknowledges it in memory.
        let (store, memory) = both().await;
        assert!(incidents::acknowledge(&memory, "i", "ann", NOW).await.unwrap());
        run(&store, RAISED).await;
        write_twice(&store, &memory).await;
        assert_eq!(texts(&store, acknowledged).await, ["nobody"]);
        // In memory, after somebody has acknowledged it in the database.
        let (store, memory) = both().await;
        assert!(incidents::acknowledge(&store, "i", "ann", NOW).await.unwrap());
        run(&memory, RAISED).await;
        write_twice(&store, &memory).await;
        assert_eq!(texts(&store, acknowledged).await, ["nobody"]);
        // It is still acknowledged by who says so later.
        assert!(incidents::acknowledge(&memory, "i", "bob", WRITTEN).await.unwrap());
        write_twice(&store, &memory).await;
        assert_eq!(texts(&store, acknowledged).await, ["bob"]);
    }

    #[tokio::test]
    async fn who_acknowledges_late_what_something_was_before_does_not_acknowledge_what_it_is() {
        const RAISED: &str = "INSERT INTO incident_event (incident, at, kind, text) VALUES ('i', 1060000, 'raised', 'from notify to page')";
        let acknowledged = "SELECT COALESCE(acknowledged_by, 'nobody') FROM incident WHERE id = 'i'";
        for (seen, expected) in [(Some(NOW), "nobody"), (Some(LATER), "nobody"), (Some(WRITTEN), "ann"), (None, "ann")] {
            // Only the database knows that it was raised, and somebody acknowledges it in memory, afterwards.
            let (store, memory) = both().await;
            run(&store, RAISED).await;
            assert!(memory.acknowledge_in_memory("i", "ann", seen, WRITTEN).await.unwrap());
            write_twice(&store, &memory).await;
            assert_eq!(texts(&store, acknowledged).await, [expected], "{seen:?}");
            // The memory knows of it, too.
            let (store, memory) = both().await;
            run(&memory, RAISED).await;
            assert_eq!(memory.acknowledge_in_memory("i", "ann", seen, WRITTEN).await.unwrap(), expected == "ann", "{seen:?}");
            write_twice(&store, &memory).await;
            assert_eq!(texts(&store, acknowledged).await, [expected], "{seen:?}");
        }
    }

    #[tokio::test]
    async fn who_takes_a_contract_of_another_region_for_good_ends_its_incident_when_that_is_written() {
        let (store, memory) = both().await;
        assert!(incidents::acknowledge(&memory, "c", "ann", NOW).await.unwrap());
        assert_eq!(texts(&memory, "SELECT id FROM incident WHERE resolved IS NOT NULL").await, [""; 0]);
        write_twice(&store, &memory).await;
        assert_eq!(texts(&store, "SELECT id FROM incident WHERE resolved IS NOT NULL").await, ["c"]);
        assert_eq!(texts(&store, "SELECT kind FROM outbox WHERE incident = 'c' ORDER BY kind").await, ["resolve", "trigger"]);
        let history = texts(&store, "SELECT kind FROM incident_event WHERE incident = 'c' ORDER BY kind").await;
        assert_eq!(history, ["acknowledged", "resolved"]);
    }

    #[tokio::test]
    async fn the_later_mute_counts_wherever_it_was_said() {
        for (action, elsewhere, outcome, expected) in [
            ("mute for 2 h", LATER, "done", 7),
            ("unmute", LATER, "done", 7),
            ("mute", LATER, "done", 7),
            ("mute for 2 h", LATER, "refused: 404", 5),
            ("mute for 2 h", Moment(NOW.0 - 1), "done", 5),
        ] {
            let (store, memory) = both().await;
            memory.mute_in_memory("shop", Moment(3), Moment(NOW.0 - 5)).await.unwrap();
            memory.mute_in_memory("shop", Moment(5), NOW).await.unwrap();
            memory.mute_in_memory("far", Moment(9), NOW).await.unwrap();
            memory
                .write_down_as("m", &AuditEvent { who: "ann", via: "login", action: "mute for 1 h", subject: "shop" }, NOW)
                .await
                .unwrap();
            let event = AuditEvent { who: "bob", via: "login", action, subject: "shop" };
            let entry = store.write_down(&event, elsewhere).await.unwrap();
            assert!(store.write_outcome(&entry, outcome).await.unwrap());
            store.mute("shop", Moment(7)).await.unwrap();
            write_twice(&store, &memory).await;
            let muted = texts(&store, "SELECT name || ' ' || muted_until FROM target ORDER BY name").await;
            assert_eq!(muted, ["far 9".to_owned(), format!("shop {expected}")], "{action} {elsewhere:?} {outcome}");
            assert_eq!(store.audit(None, 10).await.unwrap().len(), 2);
        }
    }

    #[tokio::test]
    async fn a_silence_that_somebody_has_ended_is_over_and_an_outcome_is_not_forgotten() {
        let (store, memory) = both().await;
        let silence = memory.silences(NOW).await.unwrap().remove(0).silence;
        memory.silence_as("t", &Silence { reason: "y".into(), ..silence }).await.unwrap();
        assert!(memory.end_silence("s", NOW).await.unwrap());
        let event = AuditEvent { who: "ann", via: "login", action: "end a silence", subject: "s" };
        memory.write_down_as("a", &event, NOW).await.unwrap();
        store.write_from(&memory, true, WRITTEN).await.unwrap();
        assert_eq!(store.audit(None, 10).await.unwrap()[0].outcome, None);
        // It was on its way while the rest was written.
        assert!(memory.write_outcome("a", "done").await.unwrap());
        assert!(store.end_silence("t", WRITTEN).await.unwrap());
        write_twice(&store, &memory).await;
        assert_eq!(store.audit(None, 10).await.unwrap()[0].outcome.as_deref(), Some("done"));
        assert!(store.silences(WRITTEN).await.unwrap().is_empty());
    }
}
