//! How fast a target uses up the failures that its objective leaves it: burn rates over two pairs of windows, as the SRE
//! workbook of Google describes them (chapter "Alerting on SLOs").

use super::{Effect, Observation, Policy};
use crate::incident::{Class, Detail, Severity};
use crate::moment::Moment;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Milliseconds of one bucket.
const BUCKET: i64 = 300_000;
/// Six hours of them.
const BUCKETS: usize = 72;
/// Long window, short window (in buckets), and the rate at which both have to burn.
const WINDOWS: [(usize, usize, f64); 2] = [(12, 1, 14.4), (72, 6, 6.0)];
/// Fewer failures than that say nothing about a rate.
const LEAST_FAILURES: u32 = 3;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Course {
    /// Start, good, bad; the oldest first.
    buckets: VecDeque<(i64, u32, u32)>,
    is_burning: bool,
}

impl Course {
    /// `is_told`: people know already that the target is down.
    pub(super) fn fold(&mut self, policy: &Policy, observation: &Observation, is_told: bool, now: Moment) -> Option<Effect> {
        let objective = policy.objective?;
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
        let horizon = start - BUCKET * i64::try_from(BUCKETS).unwrap_or(i64::MAX);
        while self.buckets.front().is_some_and(|(at, ..)| *at <= horizon) {
            self.buckets.pop_front();
        }
        let budget = (100.0 - objective) / 100.0;
        let burning = WINDOWS.iter().find_map(|(long, short, rate)| {
            let (over_long, failures) = self.burn(start, *long, budget);
            let (over_short, _) = self.burn(start, *short, budget);
            (failures >= LEAST_FAILURES && over_long >= *rate && over_short >= *rate).then_some((over_long, *long))
        });
        match (burning, self.is_burning) {
            (Some((rate, long)), false) => {
                self.is_burning = true;
                let target = &observation.target;
                let title = format!("{target} uses up its failures {rate:.0} times as fast as {objective} % allows");
                let message =
                    format!("over the last {} minutes; at this rate the budget of a month lasts {:.1} days", long * 5, 30.0 / rate);
                let severity = if is_told { Severity::Notify } else { Severity::Page };
                let detail = Detail { message, ..Detail::default() };
                Some(Effect::Open { class: Class::Objective, severity, title, detail, since: now })
            }
            (None, true) => {
                self.is_burning = false;
                let reason = "failures are within what the objective allows again".into();
                Some(Effect::Resolve { class: Class::Objective, reason })
            }
            _ => None,
        }
    }

    /// How many times too fast, and the failures, over the last so many buckets.
    fn burn(&self, newest: i64, buckets: usize, budget: f64) -> (f64, u32) {
        let from = newest - BUCKET * (i64::try_from(buckets).unwrap_or(i64::MAX) - 1);
        let within = || self.buckets.iter().filter(move |(at, ..)| *at >= from);
        let bad: u32 = within().map(|(_, _, bad)| bad).sum();
        let all: u32 = within().map(|(_, good, bad)| good + bad).sum();
        if all == 0 { (0.0, 0) } else { (f64::from(bad) / f64::from(all) / budget, bad) }
    }
}
