//! Results of probes, and the evidence of those that somebody will want to look at.

use super::values::Values;
use super::{Dialect, Store, StoreFailure, packed};
use crate::state::Observation;
use mcproof_record::{Phase, ProbeReport, Transcript};
use serde::{Deserialize, Serialize};
use siphasher::sip128::{Hasher128 as _, SipHasher13};
use sqlx::{AnyConnection, Row as _};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher as _;
use std::time::Duration;

/// What a probe saw: its report, and what was on the wire.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProbeEvidence {
    pub report: ProbeReport,
    pub transcript: Transcript,
}

impl ProbeEvidence {
    /// JSON, deflated.
    pub fn packed(&self) -> Vec<u8> {
        packed::pack(self)
    }
}

/// The key of a result's evidence: the same whoever asks, and whenever.
pub fn evidence_id(observation: &Observation) -> String {
    let mut hasher = SipHasher13::new();
    for text in [observation.target.as_str(), observation.region.as_str()] {
        hasher.write(text.as_bytes());
        hasher.write_u8(0xff);
    }
    hasher.write_i64(observation.slot.0);
    hasher.write_u32(observation.attempt);
    format!("{:032x}", hasher.finish128().as_u128())
}

impl Store {
    /// What a probe saw, if that was kept.
    ///
    /// # Errors
    /// The database failed.
    pub async fn evidence(&self, id: &str) -> Result<Option<ProbeEvidence>, StoreFailure> {
        let statement = "SELECT body FROM evidence WHERE id = $1";
        let body: Option<Vec<u8>> = sqlx::query_scalar(statement).bind(id).fetch_optional(&self.pool).await?;
        Ok(body.as_deref().and_then(packed::unpack))
    }
}

/// Which result it is, among those of a target.
pub(super) type Key = (String, i64, String, i64);

pub(super) fn key(observation: &Observation) -> Key {
    (observation.target.clone(), observation.slot.0, observation.region.clone(), i64::from(observation.attempt))
}

/// Writes results that are not there yet, and says which were not. A clock that was set back shows the same slots once more: what
/// another probe finds in one of them takes the place of what was found before.
pub(super) async fn insert(
    connection: &mut AnyConnection,
    results: impl Iterator<Item = (&Observation, Option<&Vec<u8>>)>,
) -> Result<BTreeSet<Key>, StoreFailure> {
    let dialect = Dialect::of(connection);
    let (mut values, mut evidence) = (Values::new(dialect), Values::new(dialect));
    for (observation, body) in results {
        let id = body.map(|_| evidence_id(observation));
        if let (Some(body), Some(id)) = (body, &id) {
            evidence.row(|row| {
                row.add(id.clone()).add(observation.target.clone()).add(observation.at.0).add(body.clone());
            });
        }
        values.row(|row| {
            row.add(observation.target.clone()).add(observation.slot.0).add(observation.region.clone());
            row.add(i64::from(observation.attempt)).add(observation.at.0).add(observation.verdict.word()).add(observation.reason.clone());
            row.add(micros(observation.duration)).add(phases(&observation.phases)).add(observation.contract.clone()).add(id);
        });
    }
    if !evidence.is_empty() {
        let statement = "INSERT INTO evidence (id, target, at, body) VALUES {} \
             ON CONFLICT (id) DO UPDATE SET at = excluded.at, body = excluded.body";
        evidence.query(statement).execute(&mut *connection).await?;
    }
    let statement = "INSERT INTO result (target, slot, region, attempt, at, verdict, reason, duration, phases, contract, evidence) \
         VALUES {} ON CONFLICT (target, slot, region, attempt) DO UPDATE SET at = excluded.at, verdict = excluded.verdict, \
         reason = excluded.reason, duration = excluded.duration, phases = excluded.phases, contract = excluded.contract, \
         evidence = excluded.evidence WHERE result.at <> excluded.at OR result.duration <> excluded.duration \
         RETURNING target, slot, region, attempt";
    let rows = values.query(statement).fetch_all(connection).await?;
    Ok(rows
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?)))
        .collect::<Result<_, sqlx::Error>>()?)
}

/// Microseconds by phase. What was not reached is not there.
fn phases(phases: &[(Phase, Duration)]) -> String {
    let phases: BTreeMap<Phase, i64> = phases.iter().map(|(phase, duration)| (*phase, micros(*duration))).collect();
    serde_json::to_string(&phases).expect("phases have names")
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
