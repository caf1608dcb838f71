//! Whether a target is much slower than it usually is.

use super::{Effect, Observation};
use crate::incident::{Class, Detail, Severity};
use crate::moment::Moment;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;

/// Probes until it is known what is usual.
const LEARNING: u32 = 60;
/// Of which the median is looked at.
const RECENT: usize = 10;
/// The weight of one more probe in what is usual.
const WEIGHT: f64 = 1.0 / 200.0;
/// Slow is both: so many times what is usual, and so many milliseconds more.
const FACTOR: f64 = 2.5;
const MARGIN: f64 = 100.0;
/// No longer slow.
const CALM: f64 = 1.5;
/// After this time it is the new usual.
const ADOPTION: Duration = Duration::from_secs(86_400);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Tracker {
    /// Milliseconds.
    usual: f64,
    learned: u32,
    recent: VecDeque<f64>,
    slow_since: Option<Moment>,
}

impl Tracker {
    pub(super) fn fold(&mut self, observation: &Observation, now: Moment) -> Option<Effect> {
        if !observation.verdict.is_up() || observation.attempt > 0 {
            return None;
        }
        let took = observation.duration.as_secs_f64() * 1000.0;
        self.recent.push_back(took);
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        let median = median(&self.recent);
        if let Some(since) = self.slow_since {
            if now.since(since) >= ADOPTION {
                (self.usual, self.slow_since) = (median, None);
                let reason = format!("slow for a day: {median:.0} ms is the new baseline");
                return Some(Effect::Resolve { class: Class::Latency, reason });
            }
            if median <= self.usual * CALM {
                self.slow_since = None;
                return Some(Effect::Resolve { class: Class::Latency, reason: format!("{median:.0} ms again") });
            }
            return None;
        }
        if self.learned < LEARNING {
            self.learned += 1;
            self.usual += (took - self.usual) / f64::from(self.learned);
            return None;
        }
        if self.recent.len() == RECENT && median > self.usual * FACTOR && median > self.usual + MARGIN {
            self.slow_since = Some(now);
            let (target, usual) = (&observation.target, self.usual);
            let slowest = observation.phases.iter().max_by_key(|(_, took)| *took);
            let title = format!("{target} is slow: {median:.0} ms, usually {usual:.0} ms");
            let detail = Detail {
                layer: slowest.map(|(phase, _)| phase.to_string()),
                message: format!("the median of the last {RECENT} probes is {median:.0} ms; the baseline is {usual:.0} ms"),
                ..Detail::default()
            };
            return Some(Effect::Open { class: Class::Latency, severity: Severity::Notify, title, detail, since: now });
        }
        // One outlier must not move what is usual.
        self.usual += (took.min(self.usual * FACTOR + MARGIN) - self.usual) * WEIGHT;
        None
    }

    pub(super) fn set_back(&mut self, now: Moment) {
        self.slow_since = self.slow_since.map(|since| now.min(since));
    }
}

fn median(values: &VecDeque<f64>) -> f64 {
    let mut sorted: Vec<f64> = values.iter().copied().collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
