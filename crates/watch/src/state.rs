//! What is known of a target, and what one more result changes about it. Pure: reads no clock, and does no I/O.

mod availability;
mod certificate;
mod latency;
mod objective;
mod observation;
mod process;
mod surface;
mod thresholds;
mod words;

pub use observation::{Observation, ProcessFacts, Verdict};
pub use surface::{Announcement, Counted, Drift};
pub use thresholds::Thresholds;
pub use words::{Availability, Surface};

use crate::incident::{Class, Detail, Severity};
use crate::moment::Moment;
use mcproof_record::ChangeLevel;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Everything that is remembered of a target between two results. Kept in the store, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetState {
    #[serde(rename = "course")]
    availability: availability::Tracker,
    surface: surface::Tracker,
    certificate: certificate::Tracker,
    latency: latency::Tracker,
    objective: objective::Tracker,
    process: process::Tracker,
    /// The last result of each region, so that none counts twice.
    last: BTreeMap<String, (Moment, u32)>,
}

/// What is expected of a target.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub every: Duration,
    /// Where it is probed from; one place if empty.
    pub regions: Vec<String>,
    /// Share of good probes that is promised, in percent.
    pub objective: Option<f64>,
    /// The hash of the contract that a lock promises.
    pub locked: Option<String>,
    pub thresholds: Thresholds,
}

/// What has to follow from a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Probe it again out of turn.
    Confirm {
        /// From there; from the same place if missing.
        region: Option<String>,
        after: Duration,
    },
    /// Look at those that share a host with it, out of turn: is it alone?
    AskNeighbours,
    Open {
        class: Class,
        severity: Severity,
        title: String,
        detail: Detail,
        /// When the first sign of it was seen.
        since: Moment,
    },
    /// What is open of this class matters more than it did.
    Escalate {
        class: Class,
        severity: Severity,
        title: String,
    },
    Resolve {
        class: Class,
        reason: String,
    },
    /// Remember the contract that was seen; nobody is told.
    Baseline {
        hash: String,
    },
    /// The contract changed: what that means is for those who can read contracts.
    Drift(Drift),
}

impl TargetState {
    pub fn availability(&self) -> Availability {
        self.availability.shown()
    }

    pub fn surface(&self) -> Surface {
        self.surface.shown()
    }

    /// The hash of the contract that it has, as far as that was agreed or seen twice.
    pub fn contract(&self) -> Option<&str> {
        self.surface.accepted()
    }

    /// When its certificate ends; of several, the first.
    pub fn certificate_ends(&self) -> Option<Moment> {
        self.certificate.ends
    }

    /// When the last result from this region came that says anything about the target.
    pub fn heard_from(&self, region: &str) -> Option<Moment> {
        self.availability.heard_from(region)
    }

    /// A change of the contract was looked at: `step` is how much it matters next to the contract before, `whole` next to the one that
    /// people agreed to. What does not break anybody is told, and forgotten after a day.
    pub fn weigh(&mut self, step: ChangeLevel, whole: ChangeLevel, now: Moment) {
        self.surface.weigh(step, whole, now);
    }

    /// The clock was set back: what is remembered of times that have not come yet is forgotten.
    pub fn set_back(&mut self, now: Moment) {
        self.last.retain(|_, (slot, _)| *slot <= now);
        self.availability.set_back(now);
        self.surface.set_back(now);
        self.latency.set_back(now);
        self.objective.set_back(now);
        self.process.set_back(now);
    }

    /// The clock was set forward by so much: what waits to be confirmed began as much later.
    pub fn set_forward(&mut self, by: Duration) {
        self.availability.set_forward(by);
    }

    /// Takes from another state what these incidents came from, and says of which classes nothing of its own is left.
    pub(crate) fn take_over(&mut self, other: Self, classes: &[Class]) -> Vec<Class> {
        let mut taken = Vec::new();
        let mut take = |part: &[Class]| {
            let is_taken = part.iter().any(|class| classes.contains(class));
            if is_taken {
                taken.extend_from_slice(part);
            }
            is_taken
        };
        if take(&[Class::Availability, Class::Partial, Class::Flapping, Class::Blind]) {
            self.availability = other.availability;
        }
        if take(&[Class::Contract, Class::MixedFleet]) {
            self.surface = other.surface;
        }
        if take(&[Class::Certificate]) {
            self.certificate = other.certificate;
        }
        if take(&[Class::Latency]) {
            self.latency = other.latency;
        }
        if take(&[Class::Objective]) {
            self.objective = other.objective;
        }
        if take(&[Class::Memory, Class::Restarts]) {
            self.process = other.process;
        }
        for (region, seen) in other.last {
            let last = self.last.entry(region).or_insert(seen);
            *last = seen.max(*last);
        }
        taken
    }

    /// A person agrees with the contract as it is now.
    pub fn agree(&mut self) {
        self.surface.agree();
    }
}

/// Whether a result was not folded before, and is not older than one of the same region.
pub fn is_new(state: &TargetState, observation: &Observation) -> bool {
    state.last.get(&observation.region).is_none_or(|last| *last < (observation.slot, observation.attempt))
}

/// Folds one result into the state. Results that were folded before, or that are older than one of the same region, change
/// nothing.
pub fn observe(
    state: &mut TargetState,
    policy: &Policy,
    observation: &Observation,
    announcement: Option<&Announcement>,
    now: Moment,
) -> Vec<Effect> {
    if !is_new(state, observation) {
        return Vec::new();
    }
    state.last.insert(observation.region.clone(), (observation.slot, observation.attempt));
    let mut effects = state.availability.fold(policy, observation, now);
    if observation.verdict == Verdict::Inconclusive {
        return effects;
    }
    effects.extend(state.surface.fold(policy, observation, announcement, now));
    effects.extend(state.certificate.fold(observation, now));
    effects.extend(state.latency.fold(observation, now));
    let is_told = state.availability.is_told();
    effects.extend(state.objective.fold(policy, observation, is_told, now));
    effects.extend(state.process.fold(observation, now));
    effects
}

/// There has been no result for too long.
pub fn go_blind(state: &mut TargetState, target: &str, last_result: Moment, now: Moment) -> Vec<Effect> {
    state.availability.go_blind(target, last_result, now)
}

#[cfg(test)]
mod tests;
