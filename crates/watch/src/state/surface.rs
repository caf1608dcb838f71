//! Whether a target promises what it promised. What is new has to be seen twice, what comes and goes is a fleet with two
//! versions, and what a deployment announced is no surprise. Knows hashes, not contracts.

use super::{Effect, Observation, Policy, Surface};
use crate::incident::Class;
use crate::moment::Moment;
use mcproof_record::ChangeLevel;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;

/// Until what is new is looked at once more.
const SECOND_LOOK: Duration = Duration::from_secs(5);
/// Sightings that are remembered, to tell a change from a fleet with two versions.
const REMEMBERED: usize = 10;
/// So often has the contract of the last sighting to differ from the one before.
const ALTERNATIONS: usize = 3;
/// What breaks nobody is told, and then taken for what it is now.
const NOTICE: Duration = Duration::from_secs(86_400);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Tracker {
    accepted: Option<String>,
    /// Seen once.
    candidate: Option<String>,
    /// What the last change came from, as long as it is no more than told.
    changed: Option<Changed>,
    is_mixed: bool,
    recent: VecDeque<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Changed {
    from: String,
    /// Over by itself then; never if missing.
    until: Option<Moment>,
}

/// A deployment that was announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The hash that it will have, if that is known.
    pub expected: Option<String>,
}

/// A contract that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    pub old: String,
    pub new: String,
    /// Both are seen by turns.
    pub is_mixed: bool,
    pub is_announced: bool,
}

impl Tracker {
    pub(super) fn shown(&self) -> Surface {
        match self {
            Self { accepted: None, .. } => Surface::Unknown,
            Self { is_mixed: true, .. } => Surface::Mixed,
            Self { candidate: Some(_), .. } => Surface::Suspect,
            Self { changed: Some(_), .. } => Surface::Changed,
            _ => Surface::Ok,
        }
    }

    pub(super) fn accepted(&self) -> Option<&str> {
        self.accepted.as_deref()
    }

    pub(super) fn fold(
        &mut self,
        policy: &Policy,
        observation: &Observation,
        announcement: Option<&Announcement>,
        now: Moment,
    ) -> Vec<Effect> {
        let Some(seen) = &observation.contract else { return Vec::new() };
        self.recent.push_back(seen.clone());
        if self.recent.len() > REMEMBERED {
            self.recent.pop_front();
        }
        let mut effects = Vec::new();
        if self.changed.as_ref().is_some_and(|changed| changed.until.is_some_and(|until| now >= until)) {
            self.settle("unchanged for a day, with no breaking change", &mut effects);
        }
        if self.accepted.is_none() {
            self.accepted = policy.locked.clone().or_else(|| Some(seen.clone()));
            effects.push(Effect::Baseline { hash: seen.clone() });
        }
        let accepted = self.accepted.clone().expect("set just now");
        let is_expected = announcement.is_some_and(|announcement| announcement.expected.as_ref().is_none_or(|expected| expected == seen));
        if !self.is_mixed && announcement.is_none() && self.alternates() {
            self.is_mixed = true;
            self.candidate = None;
            let other = self.recent.iter().rev().find(|hash| **hash != accepted).unwrap_or(seen).clone();
            effects.push(Effect::Baseline { hash: other.clone() });
            effects.push(Effect::Drift(Drift { old: accepted, new: other, is_mixed: true, is_announced: false }));
            self.settle("it comes and goes", &mut effects);
            return effects;
        }
        if self.is_mixed {
            let is_one = self.is_all(seen);
            if !is_one && announcement.is_none() {
                return effects;
            }
            if is_one {
                self.is_mixed = false;
                effects.push(Effect::Resolve { class: Class::MixedFleet, reason: "the same contract each time".into() });
            }
        }
        if *seen == accepted {
            self.candidate = None;
        } else if self.candidate.as_ref() == Some(seen) || self.is_all(seen) {
            self.candidate = None;
            self.accepted = Some(seen.clone());
            if self.changed.as_ref().is_some_and(|changed| changed.from == *seen) {
                self.settle("the contract is back to what it was", &mut effects);
                return effects;
            }
            if is_expected {
                // What was seen by turns meanwhile was the deployment.
                self.recent = VecDeque::from([seen.clone()]);
                self.settle("a deployment announced this contract", &mut effects);
            } else {
                let from = self.changed.take().map_or_else(|| accepted.clone(), |changed| changed.from);
                self.changed = Some(Changed { from, until: None });
            }
            effects.push(Effect::Drift(Drift { old: accepted, new: seen.clone(), is_mixed: false, is_announced: is_expected }));
        } else {
            self.candidate = Some(seen.clone());
            effects.push(Effect::Baseline { hash: seen.clone() });
            effects.push(Effect::Confirm { region: None, after: SECOND_LOOK });
        }
        effects
    }

    pub(super) fn weigh(&mut self, level: ChangeLevel, now: Moment) {
        if let Some(changed) = &mut self.changed
            && level != ChangeLevel::Breaking
        {
            changed.until = Some(now + NOTICE);
        }
    }

    pub(super) fn set_back(&mut self, now: Moment) {
        if let Some(until) = self.changed.as_mut().and_then(|changed| changed.until.as_mut()) {
            *until = (now + NOTICE).min(*until);
        }
    }

    pub(super) fn agree(&mut self) {
        self.changed = None;
    }

    fn settle(&mut self, reason: &str, effects: &mut Vec<Effect>) {
        if self.changed.take().is_some() {
            effects.push(Effect::Resolve { class: Class::Contract, reason: reason.into() });
        }
    }

    /// Whether the last sightings go back and forth between contracts that were seen before.
    fn alternates(&self) -> bool {
        let changes = self.recent.iter().zip(self.recent.iter().skip(1)).filter(|(one, next)| one != next).count();
        let mut known: Vec<&String> = self.recent.iter().collect();
        known.sort_unstable();
        known.dedup();
        changes >= ALTERNATIONS && changes > known.len().saturating_sub(1)
    }

    /// Whether nothing else is remembered.
    fn is_all(&self, seen: &String) -> bool {
        self.recent.len() == REMEMBERED && self.recent.iter().all(|hash| hash == seen)
    }
}
