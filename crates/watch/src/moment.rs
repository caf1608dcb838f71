//! Points in time. The monitor reads no clock: whoever drives it says what time it is, so that a day can pass in a minute.

use mcproof_record::duration::readable;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, Sub};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970 in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(pub i64);

impl Moment {
    /// Zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The begin of the stretch of this width that it is in. Stretches of a day begin at midnight UTC.
    #[must_use]
    pub fn floor(self, width: Duration) -> Self {
        let width = millis(width);
        Self(self.0.div_euclid(width) * width)
    }

    /// Whole days since 1970.
    pub fn day(self) -> i64 {
        self.0.div_euclid(millis(DAY))
    }
}

/// Widths of rollups, the finest first.
pub const FIVE_MINUTES: Duration = Duration::from_secs(300);
pub const HOUR: Duration = Duration::from_secs(3_600);
pub const DAY: Duration = Duration::from_secs(86_400);

/// The duration in whole milliseconds, as the store keeps them.
pub fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A duration for people, in whole seconds.
pub fn span(duration: Duration) -> String {
    readable(Duration::from_secs(duration.as_secs()))
}

impl Add<Duration> for Moment {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;
    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }
}

impl From<SystemTime> for Moment {
    fn from(time: SystemTime) -> Self {
        Self(time.duration_since(UNIX_EPOCH).map_or(0, millis))
    }
}

/// RFC 3339, in UTC.
impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(formatter, "{time:.0}"),
            Err(_) => write!(formatter, "{} ms", self.0),
        }
    }
}
