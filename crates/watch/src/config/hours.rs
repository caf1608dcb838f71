//! Reads `hours:` of a route, and knows when they are: days of the week and times of the day in a time zone. Wall clocks go by the
//! zone, so that a change to summer time moves nothing.

use super::leaves::optional;
use super::window::read_zone;
use crate::moment::Moment;
use jiff::civil::{Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _, Zoned};
use mcproof_record::Diagnostic;
use mcproof_suite::document::{Kind, Node};
use mcproof_suite::format::{Fault, Object, Shape};
use mcproof_suite::reader::Reader;
use mcproof_suite::source::Span;
use std::fmt;

/// Minutes of a day.
const DAY: u16 = 24 * 60;

const DAYS: [(&str, Weekday); 7] = [
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
    ("sun", Weekday::Sunday),
];

/// When a route is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hours {
    /// Those on which it begins, from Monday on.
    days: [bool; 7],
    /// In minutes since midnight. An end that is not after the begin is on the next day.
    from: u16,
    until: u16,
    zone: TimeZone,
}

impl Hours {
    pub(crate) fn is_open(&self, now: Moment) -> bool {
        let Some(now) = self.local(now) else { return false };
        let minute = u16::try_from(now.hour()).unwrap_or(0) * 60 + u16::try_from(now.minute()).unwrap_or(0);
        let today = self.begins_on(now.weekday());
        match self.from < self.until {
            true => today && (self.from..self.until).contains(&minute),
            false => (today && minute >= self.from) || (self.begins_on(now.weekday().previous()) && minute < self.until),
        }
    }

    /// When they begin next.
    pub(crate) fn next(&self, now: Moment) -> Option<Moment> {
        let today = self.local(now)?.date();
        let from = Time::new(i8::try_from(self.from / 60).ok()?, i8::try_from(self.from % 60).ok()?, 0, 0).ok()?;
        let begins = (0..=8).filter_map(|days| {
            let date = today.checked_add(days.days()).ok().filter(|date| self.begins_on(date.weekday()))?;
            let begin = date.to_datetime(from).to_zoned(self.zone.clone()).ok()?;
            Some(Moment(begin.timestamp().as_millisecond()))
        });
        begins.filter(|begin| *begin > now).min()
    }

    fn begins_on(&self, day: Weekday) -> bool {
        usize::try_from(day.to_monday_zero_offset()).is_ok_and(|day| self.days[day])
    }

    fn local(&self, now: Moment) -> Option<Zoned> {
        Some(Timestamp::from_millisecond(now.0).ok()?.to_zoned(self.zone.clone()))
    }
}

/// As people write them: `mon-fri 08:00-18:00 (Europe/Vienna)`.
impl fmt::Display for Hours {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clock = |minutes: u16| format!("{:02}:{:02}", minutes / 60, minutes % 60);
        let zone = self.zone.iana_name().unwrap_or("UTC");
        if self.days != [true; 7] {
            write!(formatter, "{} ", stretches(self.days).join(", "))?;
        }
        write!(formatter, "{}-{} ({zone})", clock(self.from), clock(self.until))
    }
}

/// Days that follow each other, as `mon-fri`.
fn stretches(days: [bool; 7]) -> Vec<String> {
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    for day in (0..days.len()).filter(|day| days[*day]) {
        match stretches.last_mut() {
            Some((_, last)) if *last + 1 == day => *last = day,
            _ => stretches.push((day, day)),
        }
    }
    let shown = |(first, last): (usize, usize)| match first == last {
        true => DAYS[first].0.to_owned(),
        false => format!("{}-{}", DAYS[first].0, DAYS[last].0),
    };
    stretches.into_iter().map(shown).collect()
}

pub(super) static HOURS: Object<HoursDraft> = Object {
    name: "hours",
    keys: &[
        optional("days", "days of the week, such as `mon-fri` or `[sat, sun]`; default: all", Shape::TextOrTexts, |reader, node, draft| {
            let mut days = [false; 7];
            let items = match &node.kind {
                Kind::Seq(items) => items.as_slice(),
                _ => std::slice::from_ref(node),
            };
            for item in items {
                read_days(reader, item, &mut days)?;
            }
            if days == [false; 7] {
                let diagnostic = Diagnostic::error("bad-hours", "hours on no day are never open");
                reader.report(diagnostic.hint("name a day, or remove `days`: then they are open on all of them"), node.span);
                return Err(Fault::Reported);
            }
            draft.days = Some(days);
            Ok(())
        }),
        optional("from", "time of the day at which they begin, such as 08:00; default 00:00", Shape::Text, |reader, node, draft| {
            draft.from = Some((read_clock(reader, node)?, node.span));
            Ok(())
        }),
        optional(
            "until",
            "time of the day at which they end, 24:00 at most; default 24:00. If it is not after `from`, they end on the next day",
            Shape::Text,
            |reader, node, draft| {
                draft.until = Some((read_clock(reader, node)?, node.span));
                Ok(())
            },
        ),
        optional("zone", "time zone, such as Europe/Vienna; default UTC", Shape::Text, |reader, node, draft| {
            draft.zone = Some(read_zone(reader, node)?);
            Ok(())
        }),
    ],
    later: &[],
};

#[derive(Default)]
pub(super) struct HoursDraft {
    days: Option<[bool; 7]>,
    from: Option<(u16, Span)>,
    until: Option<(u16, Span)>,
    zone: Option<String>,
}

/// One, or a list of several.
pub(super) fn read_hours(reader: &mut Reader<'_>, node: &Node) -> Result<Vec<Hours>, Fault> {
    let items = match &node.kind {
        Kind::Seq(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    if items.is_empty() {
        let diagnostic = Diagnostic::error("bad-hours", "a route without hours is never used");
        reader.report(diagnostic.hint("name hours, or remove `hours`: then the route is always used"), node.span);
        return Err(Fault::Reported);
    }
    items.iter().map(|item| read_one(reader, item)).collect()
}

fn read_one(reader: &mut Reader<'_>, node: &Node) -> Result<Hours, Fault> {
    let mut draft = HoursDraft::default();
    if !HOURS.read(reader, node, &mut draft) {
        return Err(Fault::Reported);
    }
    let (from, until) = (draft.from.map_or(0, |(from, _)| from), draft.until.map_or(DAY, |(until, _)| until));
    if let Some((_, span)) = draft.from.filter(|(from, _)| *from == DAY) {
        let diagnostic = Diagnostic::error("bad-hours", "hours begin at 23:59 at the latest");
        reader.report(diagnostic.hint("midnight at the start of a day is 00:00"), span);
        return Err(Fault::Reported);
    }
    if from == until || (from == 0 && until == 0) {
        let span = draft.until.or(draft.from).map_or(node.span, |(_, span)| span);
        let diagnostic = Diagnostic::error("bad-hours", "these hours end when they begin");
        reader.report(diagnostic.hint("for the whole day, remove `from` and `until`"), span);
        return Err(Fault::Reported);
    }
    // The name was read before.
    let zone = draft.zone.and_then(|zone| TimeZone::get(&zone).ok()).unwrap_or(TimeZone::UTC);
    Ok(Hours { days: draft.days.unwrap_or([true; 7]), from, until, zone })
}

/// `mon`, `Monday`, or `mon-fri`; from Friday to Monday are four days.
fn read_days(reader: &mut Reader<'_>, node: &Node, days: &mut [bool; 7]) -> Result<(), Fault> {
    let written = reader.text(node)?;
    let (first, last) = written.split_once('-').unwrap_or((&written, &written));
    let (Some(first), Some(last)) = (day(first), day(last)) else {
        let diagnostic = Diagnostic::error("unknown-day", format!("`{written}` is not a day of the week"));
        reader.report(diagnostic.hint("write mon, tue, wed, thu, fri, sat or sun, or a range such as mon-fri"), node.span);
        return Err(Fault::Reported);
    };
    let count = (last + 7 - first) % 7;
    (0..=count).for_each(|step| days[(first + step) % 7] = true);
    Ok(())
}

fn day(word: &str) -> Option<usize> {
    let word = word.trim().to_ascii_lowercase();
    let long = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    (0..7).find(|day| DAYS[*day].0 == word || long[*day] == word)
}

/// In minutes since midnight.
fn read_clock(reader: &mut Reader<'_>, node: &Node) -> Result<u16, Fault> {
    let written = reader.text(node)?;
    let parsed = || {
        let (hours, minutes) = written.split_once(':')?;
        let digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
        if !digits(hours) || !matches!(hours.len(), 1 | 2) || !digits(minutes) || minutes.len() != 2 {
            return None;
        }
        let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
        Some(hours * 60 + minutes).filter(|all| minutes < 60 && *all <= DAY)
    };
    parsed().ok_or_else(|| {
        let diagnostic = Diagnostic::error("bad-clock", format!("`{written}` is not a time of the day"));
        reader.report(diagnostic.hint("write it from 00:00 to 24:00, such as 08:30"), node.span);
        Fault::Reported
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(days: &[usize], from: u16, until: u16) -> Hours {
        let mut all = [false; 7];
        days.iter().for_each(|day| all[*day] = true);
        Hours { days: all, from: from * 60, until: until * 60, zone: TimeZone::get("Europe/Vienna").unwrap() }
    }

    fn moment(text: &str) -> Moment {
        Moment(text.parse::<Timestamp>().unwrap().as_millisecond())
    }

    #[test]
    fn hours_are_open_on_their_days_from_their_begin_until_their_end() {
        let work = hours(&[0, 1, 2, 3, 4], 8, 18);
        let night = hours(&[4], 18, 6);
        for (hours, at, expected) in [
            // The 20th of November 2026 is a Friday; Vienna is an hour ahead in winter, and two in summer.
            (&work, "2026-11-20T06:59:59Z", false),
            (&work, "2026-11-20T07:00:00Z", true),
            (&work, "2026-11-20T16:59:59Z", true),
            (&work, "2026-11-20T17:00:00Z", false),
            (&work, "2026-07-17T06:00:00Z", true),
            (&work, "2026-07-17T16:00:00Z", false),
            (&work, "2026-11-21T10:00:00Z", false),
            (&night, "2026-11-20T16:59:00Z", false),
            (&night, "2026-11-20T17:00:00Z", true),
            (&night, "2026-11-21T04:59:00Z", true),
            (&night, "2026-11-21T05:00:00Z", false),
            (&night, "2026-11-21T17:00:00Z", false),
            (&night, "2026-11-20T04:00:00Z", false),
        ] {
            assert_eq!(hours.is_open(moment(at)), expected, "{hours} at {at}");
        }
    }

    #[test]
    fn the_next_begin_is_on_the_next_of_their_days_whatever_the_clocks_do() {
        let work = hours(&[0, 1, 2, 3, 4], 8, 18);
        for (at, expected) in [
            ("2026-11-20T03:00:00Z", "2026-11-20T07:00:00Z"),
            ("2026-11-20T07:00:00Z", "2026-11-23T07:00:00Z"),
            ("2026-11-21T12:00:00Z", "2026-11-23T07:00:00Z"),
            // Summer time begins on a Sunday.
            ("2027-03-26T18:00:00Z", "2027-03-29T06:00:00Z"),
        ] {
            assert_eq!(work.next(moment(at)), Some(moment(expected)), "{at}");
        }
        assert_eq!(hours(&[4], 8, 18).next(moment("2026-11-20T08:00:00Z")), Some(moment("2026-11-27T07:00:00Z")));
    }

    #[test]
    fn hours_are_shown_as_they_are_written() {
        assert_eq!(hours(&[0, 1, 2, 3, 4, 6], 8, 18).to_string(), "mon-fri, sun 08:00-18:00 (Europe/Vienna)");
        assert_eq!(Hours { days: [true; 7], from: 0, until: DAY, zone: TimeZone::UTC }.to_string(), "00:00-24:00 (UTC)");
    }
}
