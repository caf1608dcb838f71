//! What of an answer is about the present, so that it will be another one tomorrow. Knows days and clocks, no servers.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde_json::Value;
use std::time::SystemTime;

/// How days are written. Short names alone are common words.
const FORMS: [&str; 13] = [
    "%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%b %d", "%d %b", "%b %-d", "%-d %b", "%b %e", "%B %-d", "%-d %B",
];
/// A day around now, in seconds: servers have time zones.
const AROUND: f64 = 2.0 * 86_400.0;

pub(super) struct Now {
    /// Yesterday, today and tomorrow.
    days: Vec<String>,
    /// Since 1970.
    seconds: f64,
}

impl Now {
    pub(super) fn of(time: SystemTime) -> Self {
        let Ok(now) = Timestamp::try_from(time) else { return Self { days: Vec::new(), seconds: 0.0 } };
        let today = now.to_zoned(TimeZone::UTC);
        let around = [-1, 0, 1].into_iter().filter_map(|days| today.checked_add(days.days()).ok());
        let days = around.flat_map(|day| FORMS.map(|form| day.strftime(form).to_string())).collect();
        Self { days, seconds: now.as_second() as f64 }
    }

    /// Whether anything in a value tells the present day or time.
    pub(super) fn is_in(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.days.iter().any(|day| text.contains(day)) || text.parse().is_ok_and(|number| self.is_near(number)),
            Value::Number(number) => number.as_f64().is_some_and(|number| self.is_near(number)),
            Value::Array(items) => items.iter().any(|item| self.is_in(item)),
            Value::Object(members) => members.values().any(|value| self.is_in(value)),
            Value::Null | Value::Bool(_) => false,
        }
    }

    /// Seconds, milli-, micro- or nanoseconds since 1970.
    fn is_near(&self, number: f64) -> bool {
        self.seconds > 0.0 && [1.0, 1e3, 1e6, 1e9].iter().any(|unit| (number / unit - self.seconds).abs() < AROUND)
    }
}
