//! What was found out by somebody who could not read what was known before. What was known goes on from where it was; only what
//! people were told meanwhile takes the place of what they were told before.

use super::{IncidentContext, ROWS, Turn, write_states};
use crate::config::Config;
use crate::incident::Class;
use crate::moment::Moment;
use crate::state::TargetState;
use crate::store::Dialect;
use crate::store::values::Values;
use sqlx::{Any, AnyPool, Row as _, Transaction};
use std::collections::{BTreeMap, BTreeSet};

const REASON: &str = "the monitor could not read whether this had been sent, and sent it again";

/// What is open in memory.
struct Told {
    ids: BTreeSet<String>,
    /// By its subject.
    classes: BTreeMap<String, Vec<Class>>,
    /// Storms and groups: by class and subject, the incident.
    wholes: BTreeMap<(Class, String), String>,
}

/// Brings what is in this memory about targets together with what is known of them. Comes before the incidents of the memory are
/// written: what is open of the same kind ends here.
pub(in crate::store) async fn take_over(transaction: &mut Transaction<'_, Any>, memory: &AnyPool, now: Moment) -> Result<(), sqlx::Error> {
    // The end goes the way that the begin has gone, whatever routes there are.
    let config = Config::default();
    let context = IncidentContext::new(&config, now);
    let told = told(memory).await?;
    let statement = "SELECT name, state, last_slot, last_result FROM target WHERE last_slot > 0 ORDER BY name";
    let found = sqlx::query(statement).fetch_all(memory).await?;
    for some in found.chunks(ROWS) {
        let names = some.iter().map(|row| row.try_get::<String, _>("name")).collect::<Result<Vec<_>, _>>()?;
        let dialect = Dialect::of(transaction);
        let statement =
            format!("SELECT name, state FROM target WHERE name IN (VALUES {{}}) AND removed IS NULL ORDER BY name {}", dialect.lock());
        let known = Values::names(dialect, names.iter().map(String::as_str)).query(&statement).fetch_all(&mut **transaction).await?;
        let known =
            known.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect::<Result<BTreeMap<String, String>, sqlx::Error>>()?;
        let mut turns = Vec::new();
        for (row, target) in some.iter().zip(names) {
            let Some(known) = known.get(&target) else { continue };
            let mut state: TargetState = serde_json::from_str(known).unwrap_or_default();
            if let Some(classes) = told.classes.get(&target) {
                let found: TargetState = serde_json::from_str(&row.try_get::<String, _>("state")?).unwrap_or_default();
                let replaced = state.take_over(found, classes);
                end(transaction, &context, &target, &replaced, &told.ids).await?;
            }
            let (last_slot, last_result) = (Some(Moment(row.try_get("last_slot")?)), Some(Moment(row.try_get("last_result")?)));
            turns.push(Turn { target, region: String::new(), state, effects: Vec::new(), last_slot, last_result, evidence: None });
        }
        write_states(transaction, &turns, now).await?;
    }
    for ((class, subject), storm) in &told.wholes {
        let statement = "SELECT id FROM incident WHERE subject = $1 AND class = $2 AND resolved IS NULL AND id <> $3";
        let query = sqlx::query_scalar(statement).bind(subject).bind(class.word()).bind(storm);
        let older: Option<String> = query.fetch_optional(&mut **transaction).await?;
        if let Some(older) = older {
            context.end_storm(transaction, &older, REASON).await?;
            context.adopt(transaction, &older, storm).await?;
        }
    }
    Ok(())
}

async fn told(memory: &AnyPool) -> Result<Told, sqlx::Error> {
    let statement = "SELECT id, subject, class FROM incident WHERE resolved IS NULL ORDER BY id";
    let mut told = Told { ids: BTreeSet::new(), classes: BTreeMap::new(), wholes: BTreeMap::new() };
    for row in sqlx::query(statement).fetch_all(memory).await? {
        let (id, subject, class): (String, String, String) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        match Class::of_word(&class) {
            Some(class @ (Class::Storm | Class::Group)) => drop(told.wholes.insert((class, subject), id.clone())),
            Some(class) => told.classes.entry(subject).or_default().push(class),
            None => {}
        }
        told.ids.insert(id);
    }
    Ok(told)
}

/// Ends what is open of a target and of these classes, except for what is the memory's own and was written before.
async fn end(
    transaction: &mut Transaction<'_, Any>,
    context: &IncidentContext<'_>,
    target: &str,
    classes: &[Class],
    own: &BTreeSet<String>,
) -> Result<(), sqlx::Error> {
    let query = sqlx::query_as("SELECT id, class FROM incident WHERE subject = $1 AND resolved IS NULL ORDER BY id");
    let open: Vec<(String, String)> = query.bind(target).fetch_all(&mut **transaction).await?;
    for (id, class) in open {
        let Some(class) = Class::of_word(&class).filter(|class| classes.contains(class)) else { continue };
        if !own.contains(&id) {
            context.resolve(transaction, target, class, REASON).await?;
        }
    }
    Ok(())
}
