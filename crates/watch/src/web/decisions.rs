//! Where what somebody decides goes: to the database, or, while that takes nothing, to the one in memory that stands in for it. There it
//! counts at once, for whoever tells people, and is written to the database later.

use super::State;
use crate::moment::Moment;
use crate::store::audit::AuditEvent;
use crate::store::silences::Silence;
use crate::store::{Store, StoreFailure, incidents};
use crate::worker::LONGEST_ANSWER;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// For somebody to stand in for a database that did not take a decision: they read what they can of it first.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks whether they do.
const LOOK: Duration = Duration::from_millis(20);
/// What whoever decides something is told.
pub(super) const UNSTORED: &str = "kept in memory until the database accepts it; lost if the monitor ends before";

/// What whoever acknowledges something is told that has become something else since they have looked at it.
pub(super) const HAS_CHANGED: &str = "it has changed since: look at it, and acknowledge it as it is now";

/// What is wanted in the moment in which a database fails.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decision<'a> {
    /// Before anything else is done.
    WriteDown {
        entry: &'a str,
        event: AuditEvent<'a>,
    },
    WriteOutcome {
        entry: &'a str,
        event: AuditEvent<'a>,
        outcome: &'a str,
    },
    Acknowledge {
        incident: &'a str,
        who: &'a str,
        /// As of when they knew what it was; nothing if they look at it now.
        seen: Option<Moment>,
    },
    Mute {
        target: &'a str,
        until: Moment,
    },
    Silence {
        id: &'a str,
        silence: &'a Silence,
    },
    EndSilence {
        id: &'a str,
    },
    TakeCall {
        id: &'a str,
    },
    GiveBackCall {
        id: &'a str,
    },
}

/// What came of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decided {
    /// False if there was nothing to be done.
    pub(super) is_done: bool,
    /// In the database.
    pub(super) is_stored: bool,
}

impl Decided {
    /// Says in a response of the API if it is not stored yet.
    pub(super) fn tell(self, mut response: Value) -> Value {
        if !self.is_stored {
            response["stored"] = json!(false);
            response["note"] = json!(UNSTORED);
        }
        response
    }
}

/// Whether paths of this kind decide something that is kept in memory if it has to be.
pub(super) fn is_kept_in_memory(matched: &str) -> bool {
    let path = matched.strip_prefix("/api").unwrap_or(matched);
    matches!(path, "/targets/{name}/mute" | "/incidents/{id}/acknowledge" | "/silences" | "/silences/{id}/end" | "/silences/{id}")
}

impl State {
    /// Does it in one place. What the database does not take, or does not respond to, is done as soon as somebody stands in for it.
    pub(super) async fn decide(&self, decision: Decision<'_>) -> Result<Decided, StoreFailure> {
        let has_standby = self.worker_health.has_standby();
        let mut failure = {
            let _place = self.worker_health.keep_place().await;
            match self.worker_health.stand_in() {
                Some(Some(memory)) => return self.decide_in_memory(&memory, decision).await,
                None if !has_standby => {
                    return decision.write(&self.store, self.now()).await.map(|is_done| Decided { is_done, is_stored: true });
                }
                None if !self.worker_health.is_summoned() => match timeout(LONGEST_ANSWER, decision.write(&self.store, self.now())).await {
                    Ok(Ok(is_done)) => return Ok(Decided { is_done, is_stored: true }),
                    Ok(Err(failure)) => failure,
                    Err(_) => StoreFailure::Database(sqlx::Error::PoolTimedOut),
                },
                _ => StoreFailure::Database(sqlx::Error::PoolTimedOut),
            }
        };
        self.worker_health.summon(&failure);
        let asked = Instant::now();
        while asked.elapsed() < PATIENCE {
            {
                let _place = self.worker_health.keep_place().await;
                match self.worker_health.stand_in() {
                    Some(Some(memory)) => return self.decide_in_memory(&memory, decision).await,
                    // It came and went meanwhile: the database takes again what it is asked, or at least the rest.
                    None if !self.worker_health.is_summoned() => match decision.write(&self.store, self.now()).await {
                        Ok(is_done) => return Ok(Decided { is_done, is_stored: true }),
                        Err(again) => {
                            self.worker_health.summon(&again);
                            failure = again;
                        }
                    },
                    _ => {}
                }
            }
            sleep(LOOK).await;
        }
        Err(failure)
    }

    /// Whether an incident is still to be acknowledged.
    pub(super) async fn is_waiting(&self, incident: &str) -> bool {
        let found = self.incident(incident).await.ok().flatten();
        found.is_some_and(|found| found.resolved.is_none() && found.acknowledged.is_none())
    }

    async fn decide_in_memory(&self, memory: &Store, decision: Decision<'_>) -> Result<Decided, StoreFailure> {
        let is_done = match decision {
            Decision::Acknowledge { incident, who, seen } => memory.acknowledge_in_memory(incident, who, seen, self.now()).await?,
            Decision::Mute { target, until } => memory.mute_in_memory(target, until, self.now()).await.map(|()| true)?,
            // What was taken before the database failed is known there only, if it can be read.
            Decision::TakeCall { id } if self.store.has_taken_call(id).await.unwrap_or(false) => false,
            // It may have been written down before somebody stood in.
            Decision::WriteOutcome { entry, event, outcome } => {
                memory.write_down_as(entry, &event, self.now()).await?;
                memory.write_outcome(entry, outcome).await?
            }
            decision => decision.write(memory, self.now()).await?,
        };
        Ok(Decided { is_done, is_stored: false })
    }
}

impl Decision<'_> {
    async fn write(self, store: &Store, now: Moment) -> Result<bool, StoreFailure> {
        match self {
            Self::WriteDown { entry, event } => store.write_down_as(entry, &event, now).await.map(|()| true),
            Self::WriteOutcome { entry, outcome, .. } => store.write_outcome(entry, outcome).await,
            Self::Acknowledge { incident, who, seen } => incidents::acknowledge_as_seen(store, incident, who, seen, now).await,
            Self::Mute { target, until } => store.mute(target, until).await,
            Self::Silence { id, silence } => store.silence_as(id, silence).await.map(|()| true),
            Self::EndSilence { id } => store.end_silence(id, now).await,
            Self::TakeCall { id } => store.take_call(id, now).await,
            Self::GiveBackCall { id } => store.give_back_call(id).await.map(|()| true),
        }
    }
}
