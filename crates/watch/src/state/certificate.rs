//! How long the certificate of a target is still good.

use super::{Effect, Observation};
use crate::incident::{Class, Detail, Severity};
use crate::moment::Moment;
use serde::{Deserialize, Serialize};

const DAY: i64 = 86_400_000;
/// Days that are left, and how much that matters; each is told once.
const STEPS: [(i64, Severity); 3] = [(21, Severity::Notify), (7, Severity::Page), (1, Severity::Page)];

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Tracker {
    /// How many of the steps were told.
    told: usize,
    /// As it was seen last.
    pub(super) ends: Option<Moment>,
}

impl Tracker {
    pub(super) fn fold(&mut self, observation: &Observation, now: Moment) -> Option<Effect> {
        let ends = observation.certificate_ends?;
        self.ends = Some(ends);
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
            days => format!("the certificate of {target} expires in {days} days, at {ends}"),
        };
        Some(if told == 0 {
            let hint = Some("renew it; the automatic renewal did not".into());
            let detail = Detail { layer: Some("tls".into()), message: title.clone(), hint, ..Detail::default() };
            Effect::Open { class: Class::Certificate, severity, title, detail, since: now }
        } else {
            Effect::Escalate { class: Class::Certificate, severity, title }
        })
    }
}
