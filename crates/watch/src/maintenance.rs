//! Planned work and silences: when nobody is told. Windows stand in the configuration, or were announced over the API.

use crate::config::{Config, When, Window};
use crate::moment::Moment;
use crate::store::silences::fits;
use croner::Cron;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use sqlx::AnyConnection;
use std::str::FromStr as _;

pub(crate) const UNDER_MAINTENANCE: &str = "under maintenance";

/// What is open of which nobody is to be told: a window that was announced over the API, or a silence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    targets: Vec<String>,
    tags: Vec<String>,
    kind: Kind,
    pub(crate) ends: Moment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Names and tags are what they are.
    Work,
    /// They are patterns.
    Silence,
}

impl Planned {
    /// What it is, as something that a target is.
    pub(crate) fn word(&self) -> &'static str {
        match self.kind {
            Kind::Work => UNDER_MAINTENANCE,
            Kind::Silence => "silenced",
        }
    }

    pub(crate) fn means(&self, target: &str, tags: &[String]) -> bool {
        match self.kind {
            Kind::Work => means(&self.targets, &self.tags, target, tags),
            Kind::Silence => {
                let is_one = |patterns: &[String], text: &str| patterns.iter().any(|pattern| fits(pattern, text));
                (self.targets.is_empty() || is_one(&self.targets, target))
                    && (self.tags.is_empty() || tags.iter().any(|tag| is_one(&self.tags, tag)))
            }
        }
    }
}

pub(crate) async fn announced(connection: &mut AnyConnection, now: Moment) -> Result<Vec<Planned>, sqlx::Error> {
    let statements = [
        (Kind::Work, "SELECT targets, tags, ends FROM maintenance WHERE starts <= $1 AND ends > $1"),
        (Kind::Silence, "SELECT names, tags, ends FROM silence WHERE starts <= $1 AND ends > $1"),
    ];
    let list = |text: &str| serde_json::from_str::<Vec<String>>(text).unwrap_or_default();
    let mut all = Vec::new();
    for (kind, statement) in statements {
        let rows: Vec<(String, String, i64)> = sqlx::query_as(statement).bind(now.0).fetch_all(&mut *connection).await?;
        let planned =
            |(targets, tags, ends): &(String, String, i64)| Planned { targets: list(targets), tags: list(tags), kind, ends: Moment(*ends) };
        all.extend(rows.iter().map(planned));
    }
    Ok(all)
}

/// Whether nobody is to be told of a target: it is under maintenance, or silenced.
pub(crate) fn covers(config: &Config, planned: &[Planned], target: &str, tags: &[String], now: Moment) -> bool {
    planned.iter().any(|planned| planned.means(target, tags)) || planned_until(&config.maintenance, target, tags, now).is_some()
}

/// When the last window of a target ends that is open now.
pub(crate) fn planned_until(windows: &[Window], target: &str, tags: &[String], now: Moment) -> Option<Moment> {
    let of_target = windows.iter().filter(|window| means(&window.targets, &window.tags, target, tags));
    of_target.filter_map(|window| open_until(window, now)).max()
}

fn means(targets: &[String], among: &[String], target: &str, tags: &[String]) -> bool {
    let is_named = targets.is_empty() || targets.iter().any(|name| name == target);
    is_named && (among.is_empty() || among.iter().any(|tag| tags.contains(tag)))
}

/// Whether a window is open; one whose expression cannot be read never is: the reader of the configuration refuses it.
pub fn is_open(window: &Window, now: Moment) -> bool {
    open_until(window, now).is_some()
}

/// When a window ends that is open.
fn open_until(window: &Window, now: Moment) -> Option<Moment> {
    let (from, until) = match &window.when {
        When::Once { from, until } => (*from, *until),
        When::Cron { expression, zone, lasts } => {
            let now = Timestamp::from_millisecond(now.0).ok()?.to_zoned(TimeZone::get(zone).ok()?);
            let begin = Cron::from_str(expression).ok()?.find_previous_occurrence(&now, true).ok()?;
            let begin = Moment(begin.timestamp().as_second() * 1_000);
            (begin, begin + *lasts)
        }
    };
    (from..until).contains(&now).then_some(until)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn check(when: When, at: &str, expected: bool) {
        let now = Moment(at.parse::<Timestamp>().unwrap().as_millisecond());
        let window = Window { name: "w".into(), targets: Vec::new(), tags: Vec::new(), when: when.clone() };
        assert_eq!(is_open(&window, now), expected, "{when:?} at {at}");
    }

    #[test]
    fn a_window_is_open_from_its_begin_until_its_end() {
        let nightly =
            |lasts| When::Cron { expression: "30 2 * * *".into(), zone: "Europe/Berlin".into(), lasts: Duration::from_secs(lasts) };
        for (at, expected) in [
            ("2026-11-21T01:29:59Z", false),
            ("2026-11-21T01:30:00Z", true),
            ("2026-11-21T02:29:59Z", true),
            ("2026-11-21T02:30:00Z", false),
            // In summer it is an hour earlier.
            ("2026-07-21T00:30:00Z", true),
            ("2026-07-21T01:45:00Z", false),
        ] {
            check(nightly(3_600), at, expected);
        }
        // Longer than a day: always.
        check(nightly(90_000), "2026-11-21T15:00:00Z", true);
        let once = When::Once { from: Moment(1_000), until: Moment(2_000) };
        check(once.clone(), "1970-01-01T00:00:01Z", true);
        check(once, "1970-01-01T00:00:02Z", false);
        let broken = When::Cron { expression: "what".into(), zone: "UTC".into(), lasts: Duration::from_secs(60) };
        check(broken, "2026-11-21T01:30:00Z", false);
    }

    #[test]
    fn a_window_means_the_targets_that_it_names() {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        for (targets, among, expected) in [
            (&[][..], &[][..], true),
            (&["shop"], &[], true),
            (&["other"], &[], false),
            (&[], &["prod"], true),
            (&[], &["test"], false),
            (&["shop"], &["test"], false),
        ] {
            assert_eq!(means(&words(targets), &words(among), "shop", &words(&["prod"])), expected, "{targets:?} {among:?}");
        }
    }
}
