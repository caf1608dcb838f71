//! Whether a target promises what it promised. What is new has to be seen twice, what comes and goes is a fleet with two
//! versions, and what a deployment announced is no surprise. Knows hashes, not contracts.

mod fleet;

use super::{Effect, Observation, Policy, Surface};
use crate::incident::Class;
use crate::moment::Moment;
use fleet::Fleet;
use mcproof_client::EraEvidence;
use mcproof_record::ChangeLevel;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// Until what is new is looked at once more.
const SECOND_LOOK: Duration = Duration::from_secs(5);
/// Sightings that are remembered, to tell a change from a fleet with two versions.
const REMEMBERED: usize = 10;
/// So often has the contract of the last sighting to differ from the one before.
const ALTERNATIONS: usize = 3;
/// A server that was too slow to show its era so many times in a row never shows it.
const NO_ACCIDENT: u32 = 10;
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
    fleet: Fleet,
    recent: VecDeque<String>,
    baseline: Baseline,
    doubtful: Option<Doubtful>,
}

/// How far the contract that was seen first is known to be the one that is promised. Until it is, another one takes its place, and
/// nobody is told: a server that has only just started, or was slow, may not have shown all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Baseline {
    /// Also what older versions have written.
    #[default]
    Certain,
    SeenOnce,
    /// The era was assumed, so many times in a row.
    Assumed(u32),
}

/// A contract other than the accepted one, of a server that was too slow to say of which era it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Doubtful {
    contract: String,
    /// In a row.
    times: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Changed {
    from: String,
    /// Over by itself then; never if missing.
    until: Option<Moment>,
    /// Something on the way broke what a comparison with `from` does not show: only people end that.
    #[serde(default)]
    stays: bool,
}

/// A deployment that was announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The hash that it will have, if that is known.
    pub expected: Option<String>,
}

/// How much of a change counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Whole,
    /// Texts that say what only an attacker writes. Anything else was seen only once, changes by itself, or was there from the start.
    Suspicion,
}

/// A contract that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    pub old: String,
    pub new: String,
    /// What else is known: the new one is compared with the one that it is most like.
    pub others: Vec<String>,
    /// The contract that people agreed to, if one change of it is open already.
    pub agreed: Option<String>,
    /// Both are seen by turns.
    pub is_mixed: bool,
    /// It is another one each time, or was until now.
    pub is_unstable: bool,
    /// The fleet was mixed before; this contract is new in it.
    pub is_added: bool,
    pub counted: Counted,
    pub is_announced: bool,
}

impl Baseline {
    fn first(evidence: EraEvidence) -> Self {
        match evidence {
            EraEvidence::Shown => Self::SeenOnce,
            EraEvidence::Assumed => Self::Assumed(1),
        }
    }

    fn again(self, evidence: EraEvidence) -> Self {
        match self {
            Self::Assumed(times) if evidence == EraEvidence::Assumed && times + 1 < NO_ACCIDENT => Self::Assumed(times + 1),
            _ => Self::Certain,
        }
    }
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
        let evidence = observation.era_evidence;
        if evidence == EraEvidence::Assumed && self.is_doubtful(seen) {
            return Vec::new();
        }
        if evidence == EraEvidence::Shown || self.accepted.as_ref() == Some(seen) {
            self.doubtful = None;
        }
        self.recent.push_back(seen.clone());
        if self.recent.len() > REMEMBERED {
            self.recent.pop_front();
        }
        let mut effects = Vec::new();
        if self.changed.as_ref().is_some_and(|changed| changed.until.is_some_and(|until| now >= until)) {
            self.settle("unchanged for a day, with no breaking change", &mut effects);
        }
        if self.accepted.is_none() {
            self.baseline = if policy.locked.is_some() { Baseline::Certain } else { Baseline::first(evidence) };
            self.accepted = policy.locked.clone().or_else(|| Some(seen.clone()));
            effects.push(Effect::Baseline { hash: seen.clone() });
        } else if self.baseline != Baseline::Certain && !self.is_mixed && !self.alternates() {
            if self.accepted.as_ref() == Some(seen) {
                self.baseline = self.baseline.again(evidence);
            } else {
                self.baseline = Baseline::first(evidence);
                self.accepted = Some(seen.clone());
                effects.push(Effect::Baseline { hash: seen.clone() });
            }
        }
        let accepted = self.accepted.clone().expect("set just now");
        if !self.is_mixed {
            let is_certain = self.baseline == Baseline::Certain;
            self.fleet.forget(|known| !is_certain || !self.recent.contains(known));
        }
        self.fleet.know(&accepted);
        let is_expected = announcement.is_some_and(|announcement| announcement.expected.as_ref().is_none_or(|expected| expected == seen));
        if !self.is_mixed && announcement.is_none() && self.alternates() {
            self.begin_mixed(&accepted, seen, &mut effects);
            return effects;
        }
        if self.is_mixed {
            if self.is_all(seen) {
                self.is_mixed = false;
                self.baseline = Baseline::Certain;
                effects.push(Effect::Resolve { class: Class::MixedFleet, reason: "the same contract each time".into() });
                let fleet = std::mem::take(&mut self.fleet);
                if !is_expected && let Some(drift) = self.end_mixed(fleet, &accepted, seen) {
                    effects.push(Effect::Drift(drift));
                    return effects;
                }
            } else if !is_expected {
                self.candidate = None;
                effects.extend(self.fleet.meet(&accepted, seen).map(Effect::Drift));
                return effects;
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
            let mut agreed = None;
            if is_expected {
                // What was seen by turns meanwhile was the deployment.
                self.recent = VecDeque::from([seen.clone()]);
                self.fleet.origins.clear();
                self.settle("a deployment announced this contract", &mut effects);
            } else {
                let before = self.changed.take();
                agreed = before.as_ref().map(|changed| changed.from.clone());
                let stays = before.is_some_and(|changed| changed.stays);
                self.changed = Some(Changed { from: agreed.clone().unwrap_or_else(|| accepted.clone()), until: None, stays });
            }
            effects.push(Effect::Drift(Drift {
                old: accepted,
                new: seen.clone(),
                others: Vec::new(),
                agreed,
                is_mixed: false,
                is_unstable: false,
                is_added: false,
                counted: Counted::Whole,
                is_announced: is_expected,
            }));
        } else {
            self.candidate = Some(seen.clone());
            effects.push(Effect::Baseline { hash: seen.clone() });
            effects.push(Effect::Confirm { region: None, after: SECOND_LOOK });
        }
        effects
    }

    /// Contracts come and go from now on.
    fn begin_mixed(&mut self, accepted: &str, seen: &str, effects: &mut Vec<Effect>) {
        self.is_mixed = true;
        self.candidate = None;
        let other = self.recent.iter().rev().find(|hash| *hash != accepted).map_or(seen, String::as_str).to_owned();
        effects.push(Effect::Baseline { hash: other.clone() });
        let is_back = self.changed.as_ref().is_some_and(|changed| changed.from == other);
        self.fleet.is_unstable = self.is_unstable();
        if self.baseline != Baseline::Certain {
            self.fleet.origins = self.recent.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
        }
        effects.push(Effect::Drift(Drift {
            old: accepted.to_owned(),
            new: other.clone(),
            others: Vec::new(),
            agreed: None,
            is_mixed: true,
            is_unstable: self.fleet.is_unstable,
            is_added: false,
            counted: Counted::Whole,
            is_announced: false,
        }));
        effects.extend(self.fleet.begin(accepted, &other, &self.recent).into_iter().map(Effect::Drift));
        // What alternates between two others is still not what people agreed to.
        if is_back {
            self.settle("it comes and goes", effects);
        }
    }

    /// A fleet has one contract now. If it was mixed from the start, nobody knows which one was promised: one that was there from the start
    /// is as good as another unless its texts are suspicious, and any other one is a change of all that were there. Nothing if there was a
    /// contract before: that is what the new one is compared with.
    fn end_mixed(&mut self, fleet: Fleet, accepted: &str, seen: &String) -> Option<Drift> {
        let is_origin = fleet.origins.contains(seen);
        // The accepted one is the first of them.
        let mut origins: Vec<String> = fleet.origins.into_iter().filter(|origin| origin != seen).collect();
        origins.sort_by_key(|origin| origin != accepted);
        let mut origins = origins.into_iter();
        let old = origins.next()?;
        self.candidate = None;
        self.accepted = Some(seen.clone());
        self.changed = Some(Changed { from: old.clone(), until: None, stays: false });
        Some(Drift {
            old,
            new: seen.clone(),
            others: origins.collect(),
            agreed: None,
            is_mixed: false,
            is_unstable: fleet.is_unstable,
            is_added: false,
            counted: if is_origin { Counted::Suspicion } else { Counted::Whole },
            is_announced: false,
        })
    }

    /// `step`: compared with the contract before; `whole`: with the one that people agreed to.
    pub(super) fn weigh(&mut self, step: ChangeLevel, whole: ChangeLevel, now: Moment) {
        if let Some(changed) = &mut self.changed {
            changed.stays |= step == ChangeLevel::Breaking && whole != ChangeLevel::Breaking;
            changed.until = (whole != ChangeLevel::Breaking && !changed.stays).then_some(now + NOTICE);
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

    /// Whether this says nothing: of a server that is too slow to be asked for its era, the other era's contract is no change. What is
    /// seen so often in a row is no matter of speed.
    fn is_doubtful(&mut self, seen: &String) -> bool {
        if self.accepted.as_ref().is_none_or(|accepted| accepted == seen) || matches!(self.baseline, Baseline::Assumed(_)) {
            return false;
        }
        let times =
            self.doubtful.take().filter(|doubtful| doubtful.contract == *seen).map_or(1, |doubtful| doubtful.times.saturating_add(1));
        self.doubtful = Some(Doubtful { contract: seen.clone(), times });
        times < NO_ACCIDENT
    }

    fn settle(&mut self, reason: &str, effects: &mut Vec<Effect>) {
        if self.changed.take().is_some() {
            effects.push(Effect::Resolve { class: Class::Contract, reason: reason.into() });
        }
    }

    /// Whether none of the last sightings was like another.
    fn is_unstable(&self) -> bool {
        self.recent.len() == REMEMBERED && self.recent.iter().collect::<BTreeSet<_>>().len() == REMEMBERED
    }

    /// Whether the last sightings go back and forth between contracts that were seen before, or are all different.
    fn alternates(&self) -> bool {
        if self.is_unstable() {
            return true;
        }
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
