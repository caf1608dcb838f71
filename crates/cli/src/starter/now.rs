//! What of an answer is about the present, so that it will be another one tomorrow. Knows days and clocks, no servers.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _, Zoned};
use serde_json::Value;
use std::collections::BTreeSet;
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
    /// Numbers that such a day is told by: years, months, days, and days and weeks of the year.
    numbers: BTreeSet<i64>,
}

/// Words that follow from the time of the day or the year.
const WORDS: [&str; 21] = [
    "morning",
    "noon",
    "afternoon",
    "evening",
    "night",
    "midnight",
    "day",
    "today",
    "tomorrow",
    "yesterday",
    "now",
    "ago",
    "am",
    "pm",
    "open",
    "closed",
    "spring",
    "summer",
    "autumn",
    "fall",
    "winter",
];

/// Names of months and weekdays are told by these.
const NAMES: [&str; 19] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "mon", "tue", "wed", "thu", "fri", "sat", "sun"];

impl Now {
    pub(super) fn of(time: SystemTime) -> Self {
        let Ok(now) = Timestamp::try_from(time) else { return Self { days: Vec::new(), seconds: 0.0, numbers: BTreeSet::new() } };
        let today = now.to_zoned(TimeZone::UTC);
        let around: Vec<Zoned> = [-1, 0, 1].into_iter().filter_map(|days| today.checked_add(days.days()).ok()).collect();
        let days = around.iter().flat_map(|day| FORMS.map(|form| day.strftime(form).to_string())).collect();
        let numbers = around.iter().flat_map(|day| {
            let week = day.date().iso_week_date();
            let parts =
                [day.month(), day.day(), week.week(), week.weekday().to_monday_one_offset(), week.weekday().to_sunday_zero_offset()];
            let parts = parts.map(i64::from).into_iter();
            parts.chain([i64::from(day.year()), i64::from(day.day_of_year()), i64::from(day.hour())])
        });
        Self { days, seconds: now.as_second() as f64, numbers: numbers.collect() }
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

    /// Whether a value may follow from the present day: a part of a date, the name of a month or of a weekday, a word such
    /// as "today", or yes and no.
    pub(super) fn may_tell(&self, value: &Value) -> bool {
        match value {
            Value::Bool(_) => true,
            Value::Number(number) => self.is_in(value) || number.as_i64().is_some_and(|number| self.numbers.contains(&number)),
            Value::String(text) => {
                let words = text.split(|character: char| !character.is_alphanumeric());
                let mut words = words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase);
                let is_name = |word: &str| word.get(..3).is_some_and(|begin| NAMES.contains(&begin)) && word.len() <= "wednesday".len();
                let is_number = |word: &str| word.parse().is_ok_and(|number| self.numbers.contains(&number));
                self.is_in(value) || words.any(|word| is_name(&word) || WORDS.contains(&word.as_str()) || is_number(&word))
            }
            _ => false,
        }
    }

    /// Seconds, milli-, micro- or nanoseconds since 1970.
    fn is_near(&self, number: f64) -> bool {
        self.seconds > 0.0 && [1.0, 1e3, 1e6, 1e9].iter().any(|unit| (number / unit - self.seconds).abs() < AROUND)
    }
}
