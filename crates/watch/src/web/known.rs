//! What is known of targets and incidents now. While a database in memory stands in for the real one, that is there: what the real one
//! says was so when it was last written, and is not shown as if it still were.

use super::State;
use crate::moment::Moment;
use crate::state::Availability;
use crate::store::read::{PublicState, TargetRow};
use crate::store::{Store, StoreFailure};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

impl State {
    /// The database that results are written to.
    pub(crate) fn live(&self) -> Store {
        self.worker_health.stand_in().flatten().unwrap_or_else(|| self.store.clone())
    }

    /// The database that knows this incident, as far as it is known at all.
    pub(super) async fn knowing(&self, incident: &str) -> Result<Store, StoreFailure> {
        let live = self.live();
        Ok(if live.incident(incident).await?.is_some() { live } else { self.store.clone() })
    }

    /// The evidence of a probe, wherever it is.
    pub(super) async fn evidence(&self, id: &str) -> Result<Option<(String, Moment, Box<RawValue>)>, StoreFailure> {
        match self.live().kept_evidence(id).await? {
            Some(found) => Ok(Some(found)),
            None => self.store.kept_evidence(id).await,
        }
    }

    /// All targets, by name.
    pub(crate) async fn targets(&self) -> Result<Vec<TargetRow>, StoreFailure> {
        self.as_of_now(self.store.targets().await?).await
    }

    pub(crate) async fn target(&self, name: &str) -> Result<Option<TargetRow>, StoreFailure> {
        let found = self.store.target(name).await?.into_iter().collect();
        Ok(self.as_of_now(found).await?.pop())
    }

    /// Some of the public targets: those that do not work first, then by name.
    pub(super) async fn public_targets(&self, limit: usize, offset: usize) -> Result<Vec<TargetRow>, StoreFailure> {
        if self.worker_health.stand_in().is_none() {
            return self.store.public_targets(limit, offset).await;
        }
        let mut rows = self.all_public().await?;
        rows.sort_by_key(|row| match row.availability {
            Availability::Down => 0,
            Availability::Flapping => 1,
            Availability::Recovering => 2,
            _ => 3,
        });
        Ok(rows.into_iter().skip(offset).take(limit).collect())
    }

    /// In which states the public targets are.
    pub(super) async fn public_states(&self) -> Result<Vec<PublicState>, StoreFailure> {
        if self.worker_health.stand_in().is_none() {
            return self.store.public_states().await;
        }
        let mut states: BTreeMap<&str, PublicState> = BTreeMap::new();
        for TargetRow { availability, since, .. } in self.all_public().await? {
            let state = states.entry(availability.word()).or_insert(PublicState { availability, count: 0, since: 0 });
            state.count += 1;
            state.since = state.since.saturating_add(since.0);
        }
        Ok(states.into_values().collect())
    }

    async fn all_public(&self) -> Result<Vec<TargetRow>, StoreFailure> {
        Ok(self.targets().await?.into_iter().filter(|row| row.public).collect())
    }

    /// Of what only others probe, and as long as nothing stands in yet, nobody here knows anything.
    async fn as_of_now(&self, mut rows: Vec<TargetRow>) -> Result<Vec<TargetRow>, StoreFailure> {
        let Some(stand_in) = self.worker_health.stand_in() else { return Ok(rows) };
        let known = match stand_in {
            Some(memory) => memory.targets().await?,
            None => Vec::new(),
        };
        let known: BTreeMap<String, TargetRow> = known.into_iter().map(|row| (row.name.clone(), row)).collect();
        for row in &mut rows {
            match known.get(&row.name) {
                Some(TargetRow { availability, surface, since, last_slot, last_result, .. }) => {
                    (row.availability, row.surface, row.since) = (*availability, *surface, *since);
                    (row.last_slot, row.last_result) = (*last_slot, *last_result);
                }
                None => row.availability = Availability::Unknown,
            }
        }
        Ok(rows)
    }
}
