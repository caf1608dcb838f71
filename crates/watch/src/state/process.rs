//! Whether a server that lives on between probes grows, or dies again and again.

use super::{Effect, Observation};
use crate::incident::{Class, Detail, Severity};
use crate::moment::Moment;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;

/// Samples of memory that are kept.
const SAMPLES: usize = 120;
/// The least of so many samples stands for a time: what is freed again is no growth.
const WINDOW: usize = 10;
/// Grown is both: by this factor, and by so many bytes.
const FACTOR: f64 = 1.5;
const MARGIN: u64 = 16 << 20;
/// So many starts within this time are a cycle.
const RESTARTS: usize = 3;
const CYCLE: Duration = Duration::from_secs(900);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Tracker {
    /// Bytes.
    memory: VecDeque<u64>,
    has_grown: bool,
    restarts: VecDeque<Moment>,
    is_cycling: bool,
}

impl Tracker {
    pub(super) fn fold(&mut self, observation: &Observation, now: Moment) -> Vec<Effect> {
        let Some(facts) = observation.process else { return Vec::new() };
        let target = &observation.target;
        let mut effects = Vec::new();
        if facts.restarted {
            self.restarts.push_back(now);
            self.memory.clear();
            if std::mem::take(&mut self.has_grown) {
                effects.push(Effect::Resolve { class: Class::Memory, reason: "the process was restarted".into() });
            }
        }
        self.restarts.retain(|at| now.since(*at) <= CYCLE);
        if self.restarts.len() >= RESTARTS && !self.is_cycling {
            self.is_cycling = true;
            let title = format!("the process of {target} keeps crashing: {} starts in 15 minutes", self.restarts.len());
            let detail = Detail { layer: Some("spawn".into()), message: title.clone(), ..Detail::default() };
            let since = self.restarts.front().copied().unwrap_or(now);
            effects.push(Effect::Open { class: Class::Restarts, severity: Severity::Page, title, detail, since });
        } else if self.restarts.is_empty() && std::mem::take(&mut self.is_cycling) {
            effects.push(Effect::Resolve { class: Class::Restarts, reason: "the same process for 15 minutes".into() });
        }
        self.memory.push_back(facts.resident);
        if self.memory.len() > SAMPLES {
            self.memory.pop_front();
        }
        if let (Some(before), Some(after)) = (least(self.memory.iter()), least(self.memory.iter().rev()))
            && !self.has_grown
            && self.memory.len() >= 2 * WINDOW
            && after > before.saturating_add(MARGIN)
            && is_grown(before, after)
        {
            self.has_grown = true;
            let title = format!("the memory of {target} grows: {} MiB, from {} MiB", after >> 20, before >> 20);
            let detail = Detail { message: title.clone(), hint: Some("it may leak memory".into()), ..Detail::default() };
            effects.push(Effect::Open { class: Class::Memory, severity: Severity::Notify, title, detail, since: now });
        }
        effects
    }

    pub(super) fn set_back(&mut self, now: Moment) {
        self.restarts.retain(|at| *at <= now);
    }
}

fn least<'a>(samples: impl Iterator<Item = &'a u64>) -> Option<u64> {
    samples.take(WINDOW).min().copied()
}

#[expect(clippy::cast_precision_loss, reason = "a ratio of bytes needs no more")]
fn is_grown(before: u64, after: u64) -> bool {
    after as f64 >= before as f64 * FACTOR
}
