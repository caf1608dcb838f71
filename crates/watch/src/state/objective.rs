//! How fast a target uses up the failures that its objective leaves it: burn rates over two pairs of windows, as the SRE
//! workbook of Google describes them (chapter "Alerting on SLOs").

use super::{Effect, Observation, Policy};
use crate::incident::{Class, Detail, Severity};
use crate::moment::Moment;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Milliseconds of one bucket.
const BUCKET: i64 = 300_000;
/// Six hours of them.
const BUCKETS: usize = 72;
/// Long window, short window (in buckets), and the rate at which both have to burn.
const WINDOWS: [(usize, usize, f64); 2] = [(12, 1, 14.4), (72, 6, 6.0)];
/// Fewer failures than that say nothing about a rate.
const LEAST_FAILURES: u32 = 3;
/// Nor do results of less than this share of the long window: what was begun to be watched a minute ago has no rate yet.
const LEAST_SHARE: f64 = 0.5;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Tracker {
    /// Start, good, bad; the oldest first.
    buckets: VecDeque<(i64, u32, u32)>,
    /// Of them, by start: failures since nobody was told that the target is down. An outage is paged for once.
    #[serde(rename = "untold")]
    unsent: BTreeMap<i64, u32>,
    is_burning: bool,
}

/// What was counted within a window.
#[derive(Clone, Copy, Default)]
struct Count {
    good: u32,
    bad: u32,
    unsent: u32,
}

impl Tracker {
    /// `is_told`: people know already that the target is down.
    pub(super) fn fold(&mut self, policy: &Policy, observation: &Observation, is_told: bool, now: Moment) -> Option<Effect> {
        let objective = policy.objective?;
        if is_told {
            self.unsent.clear();
        }
        // What confirms a failure is no further failure.
        if observation.attempt > 0 {
            return None;
        }
        let start = observation.slot.0.div_euclid(BUCKET) * BUCKET;
        if self.buckets.back().is_none_or(|(last, ..)| *last < start) {
            self.buckets.push_back((start, 0, 0));
        }
        if let Some((_, good, bad)) = self.buckets.iter_mut().find(|(at, ..)| *at == start) {
            *(if observation.verdict.is_up() { good } else { bad }) += 1;
        }
        if !observation.verdict.is_up() && !is_told {
            *self.unsent.entry(start).or_default() += 1;
        }
        let horizon = start - BUCKET * i64::try_from(BUCKETS).unwrap_or(i64::MAX);
        while self.buckets.front().is_some_and(|(at, ..)| *at <= horizon) {
            self.buckets.pop_front();
        }
        self.unsent.retain(|at, _| *at > horizon);
        let budget = (100.0 - objective) / 100.0;
        // What goes on is measured by all failures; what is told, by those that nobody was paged for.
        if self.is_burning {
            let burns = |(long, short, rate): &(usize, usize, f64)| {
                let (long, short) = (self.count(start, *long), self.count(start, *short));
                long.bad >= LEAST_FAILURES && long.rate(long.bad, budget) >= *rate && short.rate(short.bad, budget) >= *rate
            };
            self.is_burning = WINDOWS.iter().any(burns);
            let reason = "failures are within the error budget again".into();
            return (!self.is_burning).then_some(Effect::Resolve { class: Class::Objective, reason });
        }
        let (rate, long) = WINDOWS.iter().find_map(|(buckets, short, least)| {
            let (long, short) = (self.count(start, *buckets), self.count(start, *short));
            let (rate, recent) = (long.rate(long.unsent, budget), short.rate(short.unsent, budget));
            let is_fast = long.unsent >= LEAST_FAILURES && rate >= *least && recent >= *least;
            (is_fast && long.covers(*buckets, policy)).then_some((rate, *buckets))
        })?;
        self.is_burning = true;
        let target = &observation.target;
        let title = format!("{target} burns its error budget {rate:.0} times as fast as {objective} % allows");
        let message = format!("over the last {} minutes; at this rate the budget of a month lasts {:.1} days", long * 5, 30.0 / rate);
        let detail = Detail { message, ..Detail::default() };
        Some(Effect::Open { class: Class::Objective, severity: Severity::Page, title, detail, since: now })
    }

    pub(super) fn set_back(&mut self, now: Moment) {
        self.buckets.retain(|(start, ..)| *start <= now.0);
        self.unsent.retain(|start, _| *start <= now.0);
    }

    /// Over the last so many buckets.
    fn count(&self, newest: i64, buckets: usize) -> Count {
        let from = newest - BUCKET * (i64::try_from(buckets).unwrap_or(i64::MAX) - 1);
        let within = self.buckets.iter().filter(|(at, ..)| *at >= from);
        let unsent = self.unsent.range(from..).map(|(_, failures)| failures).sum();
        within.fold(Count { unsent, ..Count::default() }, |count, (_, good, bad)| Count {
            good: count.good + good,
            bad: count.bad + bad,
            ..count
        })
    }
}

impl Count {
    /// How many times as fast as the budget allows so many of them are.
    fn rate(self, failures: u32, budget: f64) -> f64 {
        let all = self.good + self.bad;
        if all == 0 { 0.0 } else { f64::from(failures) / f64::from(all) / budget }
    }

    /// Whether there are results of enough of these buckets.
    fn covers(self, buckets: usize, policy: &Policy) -> bool {
        let window = Duration::from_millis(BUCKET.unsigned_abs()).as_secs_f64() * f64::from(u32::try_from(buckets).unwrap_or(u32::MAX));
        let places = f64::from(u32::try_from(policy.regions.len().max(1)).unwrap_or(u32::MAX));
        f64::from(self.good + self.bad) / places * policy.every.as_secs_f64() >= window * LEAST_SHARE
    }
}
