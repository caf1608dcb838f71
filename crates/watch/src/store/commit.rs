//! Results become facts: many finished probes in one transaction, with what they change about their targets, and with what
//! follows from that. Whoever lost its lease meanwhile writes nothing.

use super::results::{self, evidence_id, key};
use super::schedule::Lease;
use super::values::Values;
use super::{Dialect, Fence, SeenContract, Store, StoreFailure, contracts, incidents};
use crate::config::Config;
use crate::moment::Moment;
use crate::schedule::{Grid, Turn};
use crate::state::{self, Announcement, Effect, Observation, Policy, Verdict};
use sqlx::{AnyConnection, Row as _};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A probe that is over.
#[derive(Clone, Debug)]
pub struct Finished {
    pub lease: Lease,
    pub policy: Policy,
    pub observation: Observation,
    /// As [`super::ProbeEvidence::packed`] makes it; only of what somebody will want to look at.
    pub evidence: Option<Vec<u8>>,
    /// Those that the store is not known to have.
    pub contracts: Vec<SeenContract>,
}

/// What came of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Results that count now.
    pub written: usize,
    /// Results that came too late: somebody else has the lease.
    pub dropped: usize,
    /// Whether somebody is to be told something, or is to be probed out of turn.
    pub stirred: bool,
}

impl Store {
    /// Writes what was found, all or nothing. A result whose lease was taken over is dropped: it is the other one's to write.
    /// `config` says whom to tell of what follows.
    ///
    /// # Errors
    /// The database failed; nothing was written.
    pub async fn commit(&self, finished: &[Finished], config: &Config, now: Moment) -> Result<Committed, StoreFailure> {
        self.prepare_days(finished.iter().map(|one| one.observation.slot)).await?;
        let mut transaction = self.begin().await?;
        let owned = owned(&mut transaction, self.dialect, finished).await?;
        let is_ours = |one: &&Finished| self.fence == Fence::Down || owned.contains(&owner(&one.lease));
        let mut ours: Vec<&Finished> = finished.iter().filter(is_ours).collect();
        // In the order in which they were to be had, so that the states of several regions see them so.
        ours.sort_by_key(|one| (one.observation.slot, one.observation.attempt));
        let mut committed = Committed { dropped: finished.len() - ours.len(), ..Committed::default() };
        if ours.is_empty() {
            return Ok(committed);
        }
        let seen = ours.iter().flat_map(|one| one.contracts.iter().map(|seen| (one.lease.target.as_str(), one.observation.at, seen)));
        contracts::insert(&mut transaction, seen).await?;
        let written = results::insert(&mut transaction, ours.iter().map(|one| (&one.observation, one.evidence.as_ref()))).await?;
        committed.written = written.len();
        let names: BTreeSet<&str> = ours.iter().map(|one| one.lease.target.as_str()).collect();
        let mut targets = load(&mut transaction, self.dialect, &names).await?;
        let announced = announced(&mut transaction, now).await?;
        let mut turns = Values::new(self.dialect);
        for one in &ours {
            let Some(target) = targets.get_mut(&one.lease.target) else { continue };
            let effects = match written.contains(&key(&one.observation)) {
                true => target.fold(one, announced.get(&one.lease.target), now),
                false => Vec::new(),
            };
            let confirm = own_confirmation(&effects, &one.lease.region);
            let next = one.lease.turn.after(Grid::new(&one.lease.target, target.every), now, confirm);
            turns.row(|row| {
                row.add(one.lease.target.clone()).add(one.lease.region.clone());
                row.add(next.slot.0).add(i64::from(next.attempt)).add(next.due.0);
            });
            confirm_elsewhere(&mut transaction, &one.observation, &effects, now).await?;
            committed.stirred |= !effects.is_empty();
            target.turn.effects.extend(effects);
        }
        let statement = "UPDATE schedule SET slot = v.column3, attempt = v.column4, due = v.column5, lease_until = 0, worker = '' \
             FROM (VALUES {}) AS v WHERE schedule.target = v.column1 AND schedule.region = v.column2";
        turns.query(statement).execute(&mut *transaction).await?;
        let mut turns: Vec<incidents::Turn> =
            targets.into_values().map(|target| target.turn).filter(|turn| turn.last_slot.is_some()).collect();
        incidents::apply(&mut transaction, config, &mut turns, now).await?;
        transaction.commit().await?;
        Ok(committed)
    }
}

type Owner = (String, String, i64);

fn owner(lease: &Lease) -> Owner {
    (lease.target.clone(), lease.region.clone(), lease.epoch)
}

/// The leases that still are what they were. In Postgres nobody can take them over from here on until the end of the transaction.
async fn owned(connection: &mut AnyConnection, dialect: Dialect, finished: &[Finished]) -> Result<BTreeSet<Owner>, StoreFailure> {
    let mut values = Values::new(dialect);
    for Finished { lease, .. } in finished {
        values.row(|row| {
            row.add(lease.target.clone()).add(lease.region.clone()).add(lease.epoch);
        });
    }
    if values.is_empty() {
        return Ok(BTreeSet::new());
    }
    let statement = format!(
        "SELECT target, region, epoch FROM schedule WHERE (target, region, epoch) IN (VALUES {{}}) ORDER BY target, region {}",
        dialect.lock()
    );
    let rows = values.query(&statement).fetch_all(connection).await?;
    Ok(rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))).collect::<Result<_, sqlx::Error>>()?)
}

/// What the store remembers of a target, and what becomes of it.
struct Remembered {
    turn: incidents::Turn,
    every: Duration,
}

async fn load(
    connection: &mut AnyConnection,
    dialect: Dialect,
    names: &BTreeSet<&str>,
) -> Result<BTreeMap<String, Remembered>, StoreFailure> {
    let statement = format!("SELECT name, state, every FROM target WHERE name IN (VALUES {{}}) ORDER BY name {}", dialect.lock());
    let rows = Values::names(dialect, names.iter().copied()).query(&statement).fetch_all(connection).await?;
    let remembered = |row: &sqlx::any::AnyRow| {
        let (target, state): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let every: i64 = row.try_get(2)?;
        let turn = incidents::Turn {
            target: target.clone(),
            region: String::new(),
            // A state that nobody can read is one of which nothing is known.
            state: serde_json::from_str(&state).unwrap_or_default(),
            effects: Vec::new(),
            last_slot: None,
            last_result: None,
            evidence: None,
        };
        Ok((target, Remembered { turn, every: Duration::from_millis(every.unsigned_abs()) }))
    };
    Ok(rows.iter().map(remembered).collect::<Result<_, sqlx::Error>>()?)
}

impl Remembered {
    fn fold(&mut self, one: &Finished, announcement: Option<&Announcement>, now: Moment) -> Vec<Effect> {
        let (turn, observation) = (&mut self.turn, &one.observation);
        turn.region.clone_from(&observation.region);
        turn.last_slot = turn.last_slot.max(Some(observation.slot));
        // What changes nothing says nothing either: a target must not look as if it were seen.
        if observation.verdict != Verdict::Inconclusive && state::is_new(&turn.state, observation) {
            turn.last_result = turn.last_result.max(Some(observation.at));
        }
        turn.evidence = one.evidence.as_ref().map(|_| evidence_id(observation));
        state::observe(&mut turn.state, &one.policy, observation, announcement, now)
    }
}

/// The deployments that are under way, by target.
async fn announced(connection: &mut AnyConnection, now: Moment) -> Result<BTreeMap<String, Announcement>, StoreFailure> {
    let statement = "SELECT target, expected FROM deploy WHERE at <= $1 AND until >= $1 ORDER BY at";
    let rows = sqlx::query(statement).bind(now.0).fetch_all(connection).await?;
    Ok(rows.iter().map(|row| Ok((row.try_get(0)?, Announcement { expected: row.try_get(1)? }))).collect::<Result<_, sqlx::Error>>()?)
}

/// When the one who probed has to look again, if it has.
fn own_confirmation(effects: &[Effect], own: &str) -> Option<Duration> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Confirm { region, after } if region.as_deref().is_none_or(|region| region == own) => Some(*after),
            _ => None,
        })
        .min()
}

/// Another region is to probe the same slot once more. If it is at this target right now, that is soon enough.
async fn confirm_elsewhere(
    connection: &mut AnyConnection,
    observation: &Observation,
    effects: &[Effect],
    now: Moment,
) -> Result<(), StoreFailure> {
    for effect in effects {
        let Effect::Confirm { region: Some(region), after } = effect else { continue };
        if *region == observation.region {
            continue;
        }
        let turn = Turn { slot: observation.slot, attempt: observation.attempt + 1, due: now + *after };
        let statement = "UPDATE schedule SET slot = $1, attempt = $2, due = $3 WHERE target = $4 AND region = $5 \
             AND lease_until <= $6 AND (slot > $1 OR (slot = $1 AND attempt < $2))";
        let query = sqlx::query(statement).bind(turn.slot.0).bind(i64::from(turn.attempt)).bind(turn.due.0);
        query.bind(observation.target.as_str()).bind(region.as_str()).bind(now.0).execute(&mut *connection).await?;
    }
    Ok(())
}
