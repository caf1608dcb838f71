//! What was found out in memory by somebody who was overtaken: while they wrote it down, others had gone on with the database. Whatever
//! people were told in memory has to be what the states go on from, or nobody would ever be told of its end.

use super::{ROWS, Turn, end_all, write_states};
use crate::incident::Class;
use crate::moment::Moment;
use crate::state::TargetState;
use crate::store::Dialect;
use crate::store::values::Values;
use sqlx::{Any, AnyPool, Row as _, Transaction};
use std::collections::BTreeMap;

/// An incident of the memory.
struct ToldIncident {
    id: String,
    class: Class,
    is_open: bool,
}

/// Brings the states of targets of which the database knows newer results together with what people were told in memory. Comes before
/// the incidents of the memory are written.
pub(in crate::store) async fn settle(transaction: &mut Transaction<'_, Any>, memory: &AnyPool, now: Moment) -> Result<(), sqlx::Error> {
    let told = told(memory).await?;
    let statement = "SELECT name, state, last_slot FROM target WHERE last_slot > 0 ORDER BY name";
    let found = sqlx::query(statement).fetch_all(memory).await?;
    let mut turns = Vec::new();
    for some in found.chunks(ROWS) {
        let names = some.iter().map(|row| row.try_get::<String, _>("name")).collect::<Result<Vec<_>, _>>()?;
        let dialect = Dialect::of(transaction);
        let statement = format!(
            "SELECT name, state, last_slot FROM target WHERE name IN (VALUES {{}}) AND removed IS NULL ORDER BY name {}",
            dialect.lock()
        );
        let known = Values::names(dialect, names.iter().map(String::as_str)).query(&statement).fetch_all(&mut **transaction).await?;
        for known in known {
            let target: String = known.try_get("name")?;
            let (Some(told), Some(row)) = (told.get(&target), some.get(names.partition_point(|name| *name < target))) else { continue };
            if known.try_get::<i64, _>("last_slot")? <= row.try_get::<i64, _>("last_slot")? {
                continue;
            }
            let classes = overtaken(transaction, &target, told).await?;
            if classes.is_empty() {
                continue;
            }
            let mut state: TargetState = serde_json::from_str(&known.try_get::<String, _>("state")?).unwrap_or_default();
            let found: TargetState = serde_json::from_str(&row.try_get::<String, _>("state")?).unwrap_or_default();
            state.take_over(found, &classes);
            turns.push(Turn {
                target,
                region: String::new(),
                state,
                effects: Vec::new(),
                last_slot: None,
                last_result: None,
                evidence: None,
            });
        }
    }
    write_states(transaction, &turns, now).await
}

/// By target.
async fn told(memory: &AnyPool) -> Result<BTreeMap<String, Vec<ToldIncident>>, sqlx::Error> {
    let mut told: BTreeMap<String, Vec<ToldIncident>> = BTreeMap::new();
    let statement = "SELECT id, subject, class, resolved FROM incident ORDER BY id";
    for row in sqlx::query(statement).fetch_all(memory).await? {
        let Some(class) = Class::of_word(&row.try_get::<String, _>("class")?) else { continue };
        let is_open = row.try_get::<Option<i64>, _>("resolved")?.is_none();
        told.entry(row.try_get("subject")?).or_default().push(ToldIncident { id: row.try_get("id")?, class, is_open });
    }
    Ok(told)
}

/// Classes of which people were told something that the state in the database does not know: the begin of what is not open there, or the
/// end of what is.
async fn overtaken(transaction: &mut Transaction<'_, Any>, target: &str, told: &[ToldIncident]) -> Result<Vec<Class>, sqlx::Error> {
    let statement = "SELECT id, class, resolved FROM incident WHERE subject = $1";
    let known: Vec<(String, String, Option<i64>)> = sqlx::query_as(statement).bind(target).fetch_all(&mut **transaction).await?;
    let is_overtaken = |told: &&ToldIncident| {
        let same = known.iter().find(|(id, _, _)| *id == told.id);
        match (told.is_open, same) {
            (false, Some((_, _, resolved))) => resolved.is_none(),
            (true, None) => !known.iter().any(|(_, class, resolved)| resolved.is_none() && class == told.class.word()),
            (true, Some(_)) | (false, None) => false,
        }
    };
    Ok(told.iter().filter(is_overtaken).map(|told| told.class).collect())
}

/// Ends what is open of targets that were taken out of the configuration meanwhile: no result will ever end it.
pub(in crate::store) async fn end_removed(transaction: &mut Transaction<'_, Any>, now: Moment) -> Result<(), sqlx::Error> {
    let statement = "SELECT DISTINCT incident.subject FROM incident JOIN target ON target.name = incident.subject \
         WHERE incident.resolved IS NULL AND target.removed IS NOT NULL ORDER BY incident.subject";
    let subjects: Vec<String> = sqlx::query_scalar(statement).fetch_all(&mut **transaction).await?;
    for subject in subjects {
        end_all(transaction, &subject, now).await?;
    }
    Ok(())
}
