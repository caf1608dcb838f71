//! How long the certificate of a target is still good. Where several instances have different ones, the one that ends first counts.

use super::{Effect, Observation};
use crate::incident::{Class, Detail, Severity};
use crate::moment::Moment;
use serde::{Deserialize, Serialize};

const DAY: i64 = 86_400_000;
/// Days that are left, and how much that matters; each is told once.
const STEPS: [(i64, Severity); 3] = [(21, Severity::Notify), (7, Severity::Page), (1, Severity::Page)];
/// Behind one address there may be several instances: a certificate is gone when so many probes in a row have seen another one, and so
/// many more if it has come back before.
const GONE_AFTER: u32 = 10;
const GONE_FOR_GOOD_AFTER: u32 = 60;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Tracker {
    /// How many of the steps were told.
    told: usize,
    /// Of the one that ends first.
    pub(super) ends: Option<Moment>,
    /// Probes in a row that have seen another one instead, which ends later.
    others: u32,
    /// When the first of those ends.
    others_end: Option<Moment>,
    /// It was seen again after another one.
    is_by_turns: bool,
}

impl Tracker {
    pub(super) fn fold(&mut self, observation: &Observation, now: Moment) -> Option<Effect> {
        let ends = self.see(observation.certificate_ends?);
        let left = (ends.0 - now.0).div_euclid(DAY);
        let reached = STEPS.iter().filter(|(days, _)| left < *days).count();
        let told = std::mem::replace(&mut self.told, reached);
        let target = &observation.target;
        if reached == 0 {
            let reason = format!("the certificate is valid until {ends}");
            return (told > 0).then_some(Effect::Resolve { class: Class::Certificate, reason });
        }
        if reached <= told {
            return None;
        }
        let (_, severity) = STEPS[reached - 1];
        let title = match left {
            ..0 => format!("the certificate of {target} expired at {ends}"),
            0 => format!("the certificate of {target} expires within a day, at {ends}"),
            days => format!("the certificate of {target} expires in {}, at {ends}", mcproof_record::counted(days, "day")),
        };
        Some(if told == 0 {
            let hint = Some("renew it; the automatic renewal did not".into());
            let detail = Detail { layer: Some("tls".into()), message: title.clone(), hint, ..Detail::default() };
            Effect::Open { class: Class::Certificate, severity, title, detail, since: now }
        } else {
            Effect::Escalate { class: Class::Certificate, severity, title }
        })
    }

    /// When the one that counts ends.
    fn see(&mut self, seen: Moment) -> Moment {
        let Some(known) = self.ends.filter(|known| *known < seen) else {
            let is_by_turns = self.is_by_turns || self.others > 0;
            *self = Self { told: self.told, ends: Some(seen), is_by_turns, ..Self::default() };
            return seen;
        };
        let first = self.others_end.map_or(seen, |first| first.min(seen));
        self.others = self.others.saturating_add(1);
        self.others_end = Some(first);
        let gone_after = if self.is_by_turns { GONE_FOR_GOOD_AFTER } else { GONE_AFTER };
        if self.others < gone_after {
            return known;
        }
        *self = Self { told: self.told, ends: Some(first), ..Self::default() };
        first
    }
}
