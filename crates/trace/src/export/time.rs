//! Moments of a trace as dates and as nanoseconds.

use crate::manifest::Manifest;
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

/// When a trace began; 1970 if that is not known.
pub(super) fn start(manifest: &Manifest) -> Timestamp {
    manifest.started_at.as_deref().and_then(|text| text.parse().ok()).unwrap_or(Timestamp::UNIX_EPOCH)
}

pub(super) fn after(start: Timestamp, duration: Duration) -> Timestamp {
    let later = SignedDuration::try_from(duration).ok().and_then(|duration| start.checked_add(duration).ok());
    later.unwrap_or(start)
}

pub(super) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
