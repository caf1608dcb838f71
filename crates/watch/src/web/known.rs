//! What is known of targets and incidents now. While a database in memory stands in for the real one, that is there: what the real one
//! says was so when it was last written, and is not shown as if it still were.

use super::State;
use crate::moment::Moment;
use crate::state::Availability;
use crate::store::audit::AuditRow;
use crate::store::read::{IncidentRow, Place, PublicState, TargetRow, Which};
use crate::store::silences::{Silence, Unmatched};
use crate::store::{Store, StoreFailure};
use crate::worker::LONGEST_ANSWER;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::PoisonError;
use tokio::time::timeout;

/// What to do where an incident is known in the database only, and that cannot be read.
pub(super) const UNREAD_INCIDENT: &str = "an incident that is still open is opened again in memory with the next probe, and its alert is sent \
                                          again: acknowledge the one that the list of incidents has then";

/// Incidents that are read of each of two databases.
const MOST: i64 = 1_000;

impl State {
    /// Whether a database in memory stands in for the real one.
    pub(super) fn stands_in(&self) -> bool {
        self.memory().is_some()
    }

    fn memory(&self) -> Option<Store> {
        self.worker_health.stand_in().flatten()
    }

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

    /// All targets, by name. If the database cannot be read, those that are probed from here.
    pub(crate) async fn targets(&self) -> Result<Vec<TargetRow>, StoreFailure> {
        match (self.store.targets().await, self.memory()) {
            (Err(_), Some(memory)) => memory.targets().await,
            (found, _) => self.as_of_now(found?).await,
        }
    }

    /// What a silence names and no target has. Nothing if the targets cannot be read: what somebody decides is not refused for that.
    pub(super) async fn unmatched(&self, silence: &Silence) -> Option<Unmatched> {
        let targets = timeout(LONGEST_ANSWER, self.targets()).await.ok()?.ok()?;
        let targets: Vec<(&str, &[String])> = targets.iter().map(|target| (target.name.as_str(), target.tags.as_slice())).collect();
        silence.unmatched(&targets)
    }

    pub(crate) async fn target(&self, name: &str) -> Result<Option<TargetRow>, StoreFailure> {
        match (self.store.target(name).await, self.memory()) {
            (Err(_), Some(memory)) => memory.target(name).await,
            (found, _) => Ok(self.as_of_now(found?.into_iter().collect()).await?.pop()),
        }
    }

    /// An incident that somebody takes care of. If it is known only in a database that cannot be read, the one that was opened anew in
    /// memory for the same reason, under an id of its own.
    pub(super) async fn incident(&self, id: &str) -> Result<Option<IncidentRow>, StoreFailure> {
        let found = async { self.knowing(id).await?.incident(id).await }.await;
        let (Err(_), Some(memory)) = (&found, self.memory()) else { return found };
        let seen = self.inner.open.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        let Some((subject, class)) = seen else { return found };
        let again = memory.incidents(Which::Open, None, MOST).await?;
        again.into_iter().find(|again| again.subject == subject && again.class == class).map_or(found, |again| Ok(Some(again)))
    }

    /// When an incident became more severe, each time, in this order.
    pub(super) async fn raised(&self, incident: &str) -> Result<Vec<Moment>, StoreFailure> {
        self.knowing(incident).await?.raised(incident).await
    }

    /// What is shown beside other things; nothing of it while it cannot be read and a database in memory stands in.
    pub(super) fn if_readable<T: Default>(&self, found: Result<T, StoreFailure>) -> Result<T, StoreFailure> {
        match found {
            Err(_) if self.stands_in() => Ok(T::default()),
            found => found,
        }
    }

    /// The newest first; with a place, those that come after it.
    pub(super) async fn incidents(&self, which: Which, after: Option<&Place>, limit: i64) -> Result<Vec<IncidentRow>, StoreFailure> {
        let Some(memory) = self.memory() else { return self.store.incidents(which, after, limit).await };
        // What the database says is open may be over by what is known in memory, and leaves room for others.
        let known = self.store.incidents(which, after, MOST).await;
        let mut incidents = newest(known, memory.incidents(Which::All, after, MOST).await?);
        incidents.retain(|incident| which == Which::All || incident.resolved.is_none());
        incidents.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(incidents)
    }

    /// Of one target, the newest first.
    pub(super) async fn incidents_of(&self, subject: &str, limit: i64) -> Result<Vec<IncidentRow>, StoreFailure> {
        let known = self.store.incidents_of(subject, limit).await;
        let Some(memory) = self.memory() else { return known };
        let mut incidents = newest(known, memory.incidents_of(subject, limit).await?);
        incidents.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(incidents)
    }

    /// Whether the database knows who has acknowledged it.
    pub(super) async fn is_acknowledgement_stored(&self, incident: &IncidentRow) -> bool {
        let is_known = |known: IncidentRow| known.acknowledged == incident.acknowledged;
        !self.stands_in() || self.store.incident(&incident.id).await.is_ok_and(|known| known.is_some_and(is_known))
    }

    /// The newest first; those before an entry, if one is named. What is not in the database yet is above the newest there.
    pub(super) async fn audit(&self, before: Option<&str>, limit: i64) -> Result<Vec<AuditRow>, StoreFailure> {
        let known = self.store.audit(before, limit).await;
        let Some(memory) = self.memory().filter(|_| before.is_none()) else { return known };
        let mut entries = memory.audit(None, limit).await?;
        let written: Vec<AuditRow> =
            known.unwrap_or_default().into_iter().filter(|row| entries.iter().all(|entry| entry.id != row.id)).collect();
        entries.extend(written);
        Ok(entries)
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
        let (known, muted) = match stand_in {
            Some(memory) => (memory.targets().await?, memory.muted_in_memory().await?),
            None => (Vec::new(), BTreeMap::new()),
        };
        let known: BTreeMap<String, TargetRow> = known.into_iter().map(|row| (row.name.clone(), row)).collect();
        for row in &mut rows {
            if let Some(until) = muted.get(&row.name) {
                row.muted_until = *until;
            }
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

/// What is known in memory goes before what was written before. If that cannot be read, it is what there is.
fn newest(known: Result<Vec<IncidentRow>, StoreFailure>, in_memory: Vec<IncidentRow>) -> Vec<IncidentRow> {
    let all = known.unwrap_or_default().into_iter().chain(in_memory).map(|incident| (incident.id.clone(), incident));
    let mut all: Vec<IncidentRow> = all.collect::<BTreeMap<String, IncidentRow>>().into_values().collect();
    all.sort_by(|one, other| (other.opened, &other.id).cmp(&(one.opened, &one.id)));
    all
}
