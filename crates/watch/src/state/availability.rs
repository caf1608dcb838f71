//! Whether a target works. A first failure is confirmed before anybody is told, recovery takes two passes, several regions
//! vote, a minority that is outvoted is told of more quietly, and who goes up and down all the time is told of once.

use super::{Availability, Effect, Observation, Policy, Thresholds, Verdict};
use crate::incident::{Class, Detail, Severity};
use crate::moment::{Moment, span};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Until what came up again is looked at once more.
const SECOND_LOOK: Duration = Duration::from_secs(5);
/// Out of turn, for one slot, besides confirmations: our own faults must not keep a target busy.
const MORE_ATTEMPTS: u32 = 4;
/// When something was not found out because of ourselves.
const ANOTHER_LOOK: Duration = Duration::from_secs(15);
/// An outage of this length is no flapping.
const LASTING: Duration = Duration::from_secs(600);
/// Scheduled probes that are looked back on, and how many of them may fail without being an outage.
const LOOKED_BACK: u32 = 20;
const TOO_MANY: u32 = 6;
/// Nothing is calm before so many good probes.
const CALM_INTERVALS: u32 = 6;
/// A vote counts for so many intervals.
const FRESH_INTERVALS: u32 = 2;
const FRESH_MARGIN: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Tracker {
    stage: Stage,
    /// The newest conclusive result of each region.
    votes: BTreeMap<String, Vote>,
    /// When each of the last outages began that were told or would have been.
    outages: Vec<Moment>,
    flapping: Option<Flapping>,
    /// When and where each of the last scheduled probes was made of which nobody was told, and whether it went well.
    recent: VecDeque<(Moment, bool, String)>,
    blind_since: Option<Moment>,
    /// The regions of which people were told that they see it down, while most do not.
    partial: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Stage {
    #[default]
    Unknown,
    Ok,
    Suspect {
        since: Moment,
        failures: u32,
    },
    Down {
        since: Moment,
    },
    Recovering {
        since: Moment,
        /// In a row.
        #[serde(default = "one")]
        passes: u32,
    },
}

fn one() -> u32 {
    1
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Vote {
    at: Moment,
    is_up: bool,
    /// In a row; once they are confirmed, it takes two passes to end them.
    failures: u32,
    passes: u32,
    /// When the first of the failures was seen.
    since: Moment,
}

impl Vote {
    /// The next result of the same region.
    fn next(self, thresholds: &Thresholds, observation: &Observation) -> Self {
        let at = observation.at;
        if !observation.verdict.is_up() {
            let since = if self.failures == 0 { at } else { self.since };
            return Self { at, is_up: false, failures: self.failures.saturating_add(1), passes: 0, since };
        }
        let passes = self.passes.saturating_add(1);
        let is_over = !self.is_confirmed(thresholds) || passes >= thresholds.recoveries;
        Self { at, is_up: true, failures: if is_over { 0 } else { self.failures }, passes, since: self.since }
    }

    fn is_confirmed(self, thresholds: &Thresholds) -> bool {
        self.failures >= thresholds.failures()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Flapping {
    last_failure: Moment,
    /// Since when it has not worked at all.
    failing_since: Option<Moment>,
}

impl Tracker {
    /// Confirmations count from the first failure.
    pub(super) fn set_forward(&mut self, by: Duration) {
        if let Stage::Suspect { since, .. } = &mut self.stage {
            *since = *since + by;
        }
        for vote in self.votes.values_mut().filter(|vote| vote.failures > 0) {
            vote.since = vote.since + by;
        }
    }

    pub(super) fn shown(&self) -> Availability {
        if self.blind_since.is_some() {
            return Availability::Blind;
        }
        if self.flapping.is_some() {
            return Availability::Flapping;
        }
        match self.stage {
            Stage::Unknown => Availability::Unknown,
            Stage::Ok => Availability::Ok,
            Stage::Suspect { .. } => Availability::Suspect,
            Stage::Down { .. } => Availability::Down,
            Stage::Recovering { .. } => Availability::Recovering,
        }
    }

    /// Whether people know already that it does not work.
    pub(super) fn is_told(&self) -> bool {
        self.flapping.is_some() || matches!(self.stage, Stage::Down { .. } | Stage::Recovering { .. })
    }

    pub(super) fn fold(&mut self, policy: &Policy, observation: &Observation, now: Moment) -> Vec<Effect> {
        if observation.verdict == Verdict::Inconclusive {
            // What we were about to learn is still to be learned.
            let is_waiting = matches!(self.stage, Stage::Suspect { .. } | Stage::Recovering { .. });
            let again = Effect::Confirm { region: None, after: ANOTHER_LOOK };
            return if is_waiting && observation.attempt < policy.thresholds.failures() + MORE_ATTEMPTS - 1 {
                vec![again]
            } else {
                Vec::new()
            };
        }
        let mut effects = Vec::new();
        if self.blind_since.take().is_some() {
            effects.push(Effect::Resolve { class: Class::Blind, reason: "results arrive again".into() });
        }
        // What is probed from elsewhere now begins anew if it is probed from there again.
        self.votes.retain(|region, _| policy.regions.is_empty() || policy.regions.contains(region));
        let vote = self.votes.entry(observation.region.clone()).or_default();
        *vote = vote.next(&policy.thresholds, observation);
        if self.flapping.is_some() {
            self.fold_flapping(policy, observation, now, &mut effects);
        } else if observation.verdict.is_up() {
            self.pass(policy, now, &mut effects);
        } else {
            self.fail(policy, observation, now, &mut effects);
        }
        self.fold_partial(policy, observation, now, &mut effects);
        self.fold_recent(policy, observation, now, &mut effects);
        effects
    }

    fn pass(&mut self, policy: &Policy, now: Moment, effects: &mut Vec<Effect>) {
        match self.stage {
            Stage::Unknown | Stage::Ok => self.stage = Stage::Ok,
            // One place that sees it working is no proof while most others do not.
            Stage::Suspect { .. } if self.most_fail(policy, now) => {}
            Stage::Suspect { .. } => {
                self.stage = Stage::Ok;
                effects.extend(self.look_where_it_failed(policy, now));
            }
            Stage::Down { .. } | Stage::Recovering { .. } if self.most_failed(policy, now) => {}
            Stage::Down { since } if policy.thresholds.recoveries > 1 => {
                self.stage = Stage::Recovering { since, passes: 1 };
                effects.push(Effect::Confirm { region: None, after: SECOND_LOOK });
            }
            Stage::Recovering { since, passes } if passes + 1 < policy.thresholds.recoveries => {
                self.stage = Stage::Recovering { since, passes: passes + 1 };
                effects.push(Effect::Confirm { region: None, after: SECOND_LOOK });
            }
            Stage::Down { since } | Stage::Recovering { since, .. } => {
                self.stage = Stage::Ok;
                effects.push(Effect::Resolve { class: Class::Availability, reason: format!("up again after {}", span(now.since(since))) });
            }
        }
    }

    fn fail(&mut self, policy: &Policy, observation: &Observation, now: Moment, effects: &mut Vec<Effect>) {
        match self.stage {
            // It is known that some regions see it so.
            Stage::Unknown | Stage::Ok if self.partial.contains(&observation.region) && !self.most_fail(policy, now) => {}
            Stage::Unknown | Stage::Ok => {
                self.suspect(policy, observation, observation.at, 1, now, effects);
                if matches!(self.stage, Stage::Suspect { .. }) {
                    effects.push(Effect::AskNeighbours);
                }
            }
            Stage::Suspect { since, failures } => self.suspect(policy, observation, since, failures + 1, now, effects),
            Stage::Recovering { since, .. } => self.stage = Stage::Down { since },
            Stage::Down { .. } => {}
        }
    }

    /// It has failed so often in a row.
    fn suspect(
        &mut self,
        policy: &Policy,
        observation: &Observation,
        since: Moment,
        failures: u32,
        now: Moment,
        effects: &mut Vec<Effect>,
    ) {
        self.stage = Stage::Suspect { since, failures };
        if failures < policy.thresholds.failures() {
            let after = policy.thresholds.next(failures, now.since(since));
            effects.push(Effect::Confirm { region: elsewhere(policy, &observation.region), after });
        } else if self.most_fail(policy, now) {
            self.stage = Stage::Down { since };
            self.go_down(policy, observation, since, now, effects);
        }
    }

    fn go_down(&mut self, policy: &Policy, observation: &Observation, since: Moment, now: Moment, effects: &mut Vec<Effect>) {
        let Thresholds { outages, within, .. } = policy.thresholds;
        self.outages.retain(|began| now.since(*began) <= within);
        self.outages.push(since);
        if u32::try_from(self.outages.len()).is_ok_and(|count| count < outages) {
            effects.push(outage(observation, since));
            return;
        }
        self.flapping = Some(Flapping { last_failure: now, failing_since: Some(since) });
        let first = self.outages[0];
        effects.push(Effect::Open {
            class: Class::Flapping,
            severity: Severity::Page,
            title: format!("{} is flapping: down {} times since {first}", observation.target, self.outages.len()),
            detail: detail(observation),
            since: first,
        });
    }

    /// What fails again and again, but never so often in a row that it is an outage, is flapping too: one of several instances may be
    /// broken. An objective says itself how much of that is too much.
    fn fold_recent(&mut self, policy: &Policy, observation: &Observation, now: Moment, effects: &mut Vec<Effect>) {
        if self.is_told() || policy.objective.is_some() {
            self.recent.clear();
            return;
        }
        // What confirms a failure is no further failure, and what one region sees for good is told as that.
        let is_known = self.votes.get(&observation.region).is_some_and(|vote| vote.is_confirmed(&policy.thresholds));
        if observation.attempt > 0 || is_known {
            return;
        }
        self.recent.push_back((observation.at, observation.verdict.is_up(), observation.region.clone()));
        // What failed long ago is no part of it, as after a pause of the monitor.
        let regions = u32::try_from(policy.regions.len().max(1)).unwrap_or(u32::MAX);
        let longest = policy.every.saturating_mul(2 * LOOKED_BACK).saturating_mul(regions);
        self.recent.retain(|(at, ..)| now.since(*at) <= longest);
        if self.recent.len() > LOOKED_BACK as usize {
            self.recent.pop_front();
        }
        let failed: Vec<Moment> = self.recent.iter().filter(|(_, is_up, _)| !is_up).map(|(at, ..)| *at).collect();
        let too_many = TOO_MANY.max(policy.thresholds.failures().saturating_mul(2));
        if observation.verdict.is_up() || u32::try_from(failed.len()).is_ok_and(|count| count < too_many) {
            return;
        }
        // Where most regions never see it, it may be the way from the others.
        let failing: BTreeSet<&String> = self.recent.iter().filter(|(_, is_up, _)| !is_up).map(|(.., region)| region).collect();
        let is_minority = policy.regions.len() > 1 && failing.len() * 2 <= policy.regions.len();
        let count = format!("{} of the last {} scheduled probes failed", failed.len(), self.recent.len());
        let message = format!("{count}, the last one with: {}", observation.message);
        effects.push(Effect::Open {
            class: Class::Flapping,
            severity: if is_minority { Severity::Notify } else { Severity::Page },
            title: format!("{} fails again and again: {count}", observation.target),
            detail: Detail { message, ..detail(observation) },
            since: failed[0],
        });
        self.flapping = Some(Flapping { last_failure: now, failing_since: Some(observation.at) });
        self.recent.clear();
    }

    /// Meanwhile only what lasts is told: that it is down for good, or that it is calm again.
    fn fold_flapping(&mut self, policy: &Policy, observation: &Observation, now: Moment, effects: &mut Vec<Effect>) {
        let Some(flapping) = &mut self.flapping else { return };
        if observation.verdict.is_up() {
            flapping.failing_since = None;
            let calm = policy.thresholds.calm.max(policy.every * CALM_INTERVALS);
            let is_calm = now.since(flapping.last_failure) >= calm;
            if is_calm && self.last(policy, now).all(|(_, vote)| vote.is_up) {
                self.flapping = None;
                self.outages.clear();
                self.stage = Stage::Ok;
                let reason = format!("no failure for {}", span(calm));
                effects.push(Effect::Resolve { class: Class::Flapping, reason });
            }
            return;
        }
        flapping.last_failure = now;
        let since = *flapping.failing_since.get_or_insert(observation.at);
        if now.since(since) >= LASTING {
            self.flapping = None;
            self.stage = Stage::Down { since };
            effects.push(outage(observation, since));
            effects.push(Effect::Resolve { class: Class::Flapping, reason: format!("still down, for {}", span(now.since(since))) });
        }
    }

    /// Another region sees it working: is it the place that it is probed from?
    fn look_where_it_failed(&self, policy: &Policy, now: Moment) -> Option<Effect> {
        let is_asked =
            |(region, vote): &(&String, &Vote)| !vote.is_up && !vote.is_confirmed(&policy.thresholds) && policy.regions.contains(region);
        let (region, vote) = self.fresh(policy, now).find(is_asked)?;
        let after = policy.thresholds.next(vote.failures.max(1), now.since(vote.since));
        Some(Effect::Confirm { region: Some(region.clone()), after })
    }

    /// Some regions see it down for good and most do not: that is told, but nobody is woken for it.
    fn fold_partial(&mut self, policy: &Policy, observation: &Observation, now: Moment, effects: &mut Vec<Effect>) {
        let is_known = |vote: &Vote| vote.is_confirmed(&policy.thresholds) && policy.regions.len() > 1;
        // A region that is not heard any more has not seen it recover.
        let is_heard = |region: &String, vote: &Vote| self.partial.contains(region) || is_fresh(policy, vote, now);
        let failing = self.last(policy, now).filter(|(region, vote)| is_known(vote) && is_heard(region, vote));
        let failing: Vec<String> = failing.map(|(region, _)| region.clone()).collect();
        if self.is_told() || failing.is_empty() {
            let told = std::mem::take(&mut self.partial);
            if told.is_empty() {
                return;
            }
            let is_seen = |told: &String| policy.regions.contains(told);
            let reason = if self.is_told() {
                "down from most regions".to_owned()
            } else if told.iter().all(is_seen) {
                format!("up again from {}", told.join(" and "))
            } else {
                format!("no longer probed from {}", told.join(" and "))
            };
            effects.push(Effect::Resolve { class: Class::Partial, reason });
            return;
        }
        let is_new = failing.iter().any(|region| !self.partial.contains(region));
        if observation.verdict.is_up() {
            if self.partial.contains(&observation.region) && failing.contains(&observation.region) {
                effects.push(Effect::Confirm { region: None, after: SECOND_LOOK });
            }
        } else if is_new && !self.most_fail(policy, now) {
            let working: Vec<&str> = self.fresh(policy, now).filter(|(_, vote)| vote.is_up).map(|(region, _)| region.as_str()).collect();
            let title = format!("{} is down from {}, not from {}", observation.target, failing.join(" and "), working.join(" and "));
            let (class, severity) = (Class::Partial, Severity::Notify);
            effects.push(if self.partial.is_empty() {
                let since = self.votes.get(&failing[0]).map_or(observation.at, |vote| vote.since);
                Effect::Open { class, severity, title, detail: detail(observation), since }
            } else {
                Effect::Escalate { class, severity, title }
            });
            self.partial = failing;
        }
    }

    /// The strict majority of those votes that are fresh.
    fn most_fail(&self, policy: &Policy, now: Moment) -> bool {
        self.fresh(policy, now).filter(|(_, vote)| !vote.is_up).count() * 2 > self.fresh(policy, now).count()
    }

    /// As above, of what each region has seen last: one that is not heard any more has not seen it recover.
    fn most_failed(&self, policy: &Policy, now: Moment) -> bool {
        self.last(policy, now).filter(|(_, vote)| !vote.is_up).count() * 2 > self.last(policy, now).count()
    }

    /// However long ago; where no regions are named, those that are fresh.
    fn last(&self, policy: &Policy, now: Moment) -> impl Iterator<Item = (&String, &Vote)> {
        self.votes.iter().filter(move |(region, vote)| match policy.regions.as_slice() {
            [] => is_fresh(policy, vote, now),
            regions => regions.contains(region),
        })
    }

    fn fresh(&self, policy: &Policy, now: Moment) -> impl Iterator<Item = (&String, &Vote)> {
        self.votes.iter().filter(move |(_, vote)| is_fresh(policy, vote, now))
    }

    pub(super) fn heard_from(&self, region: &str) -> Option<Moment> {
        self.votes.get(region).map(|vote| vote.at)
    }

    pub(super) fn set_back(&mut self, now: Moment) {
        self.votes.retain(|_, vote| vote.at <= now);
        self.outages.retain(|began| *began <= now);
        self.recent.retain(|(at, ..)| *at <= now);
        if let Stage::Suspect { since, .. } | Stage::Down { since } | Stage::Recovering { since, .. } = &mut self.stage {
            *since = now.min(*since);
        }
        if let Some(flapping) = &mut self.flapping {
            flapping.last_failure = now.min(flapping.last_failure);
            flapping.failing_since = flapping.failing_since.map(|since| now.min(since));
        }
    }

    pub(super) fn go_blind(&mut self, target: &str, last_result: Moment, now: Moment) -> Vec<Effect> {
        if self.blind_since.is_some() {
            return Vec::new();
        }
        self.blind_since = Some(now);
        let message = format!("no result since {last_result}: its state is unknown");
        vec![Effect::Open {
            class: Class::Blind,
            severity: Severity::Page,
            title: format!("monitoring of {target} is blind"),
            detail: Detail { message, hint: Some("check the monitor first: its network, its load, its logs".into()), ..Detail::default() },
            since: last_result,
        }]
    }
}

fn is_fresh(policy: &Policy, vote: &Vote, now: Moment) -> bool {
    now.since(vote.at) <= policy.every * FRESH_INTERVALS + FRESH_MARGIN
}

/// Another region where there is one.
fn elsewhere(policy: &Policy, region: &str) -> Option<String> {
    let at = policy.regions.iter().position(|one| one == region)?;
    let next = &policy.regions[(at + 1) % policy.regions.len()];
    (next != region).then(|| next.clone())
}

fn outage(observation: &Observation, since: Moment) -> Effect {
    let layer = observation.layer.as_deref().map(|layer| format!(" ({layer})")).unwrap_or_default();
    Effect::Open {
        class: Class::Availability,
        severity: Severity::Page,
        title: format!("{} is down: {}{layer}", observation.target, observation.message),
        detail: detail(observation),
        since,
    }
}

pub(super) fn detail(observation: &Observation) -> Detail {
    Detail {
        layer: observation.layer.clone(),
        reason: Some(observation.reason.clone()).filter(|reason| !reason.is_empty()),
        message: observation.message.clone(),
        hint: observation.hint.clone(),
        ..Detail::default()
    }
}
