//! Reads `maintenance:`: planned work. Whether a window is open, `maintenance` knows.

use super::leaves::{optional, read_items, read_texts, read_time, required};
use crate::moment::Moment;
use croner::Cron;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use mcproof_record::Diagnostic;
use mcproof_suite::document::Node;
use mcproof_suite::format::{Fault, Object, Shape};
use mcproof_suite::reader::Reader;
use mcproof_suite::source::Span;
use std::time::Duration;

/// Nobody is told meanwhile; what happens is written down all the same.
#[derive(Clone, Debug)]
pub struct Window {
    pub name: String,
    /// Empty: all.
    pub targets: Vec<String>,
    /// Empty: all. Otherwise only targets with one of these tags.
    pub tags: Vec<String>,
    pub when: When,
}

#[derive(Clone, Debug)]
pub enum When {
    Once {
        from: Moment,
        until: Moment,
    },
    /// A cron expression in a time zone of IANA.
    Cron {
        expression: String,
        zone: String,
        lasts: Duration,
    },
}

pub(super) static WINDOW: Object<WindowDraft> = Object {
    name: "a maintenance window",
    keys: &[
        required("name", "name of the work", Shape::Text, |reader, node, draft| {
            draft.name = reader.text(node)?;
            Ok(())
        }),
        optional("targets", "affected targets; default: all", Shape::TextOrTexts, |reader, node, draft| {
            draft.targets = read_texts(reader, node)?;
            draft.targets_span = node.span;
            Ok(())
        }),
        optional("tags", "only targets with one of these tags", Shape::TextOrTexts, |reader, node, draft| {
            draft.tags = read_items(reader, node)?;
            Ok(())
        }),
        optional("from", "start of a single window", Shape::Time, |reader, node, draft| {
            draft.from = Some((read_time(reader, node)?, reader.key));
            Ok(())
        }),
        optional("until", "end of a single window", Shape::Time, |reader, node, draft| {
            draft.until = Some((read_time(reader, node)?, reader.key));
            Ok(())
        }),
        optional("cron", "start of a recurring window: minute, hour, day, month, weekday", Shape::Text, |reader, node, draft| {
            draft.cron = Some((read_cron(reader, node)?, reader.key));
            Ok(())
        }),
        optional("zone", "time zone of `cron`, such as Europe/Vienna; default UTC", Shape::Text, |reader, node, draft| {
            draft.zone = Some((read_zone(reader, node)?, reader.key));
            Ok(())
        }),
        optional("lasts", "duration of a recurring window", Shape::Duration, |reader, node, draft| {
            draft.lasts = Some((reader.duration(node)?, reader.key));
            Ok(())
        }),
    ],
    later: &[],
};

#[derive(Default)]
pub(super) struct WindowDraft {
    name: String,
    targets: Vec<String>,
    targets_span: Span,
    tags: Vec<(String, Node)>,
    from: Option<(Moment, Span)>,
    until: Option<(Moment, Span)>,
    cron: Option<(String, Span)>,
    zone: Option<(String, Span)>,
    lasts: Option<(Duration, Span)>,
}

/// A window, where it stands, and the tags that it names.
type ReadWindow = (Window, Span, Vec<(String, Node)>);

/// The window, where its targets are named, and its tags.
pub(super) fn read_window(reader: &mut Reader<'_>, node: &Node) -> Option<ReadWindow> {
    let mut draft = WindowDraft::default();
    if !WINDOW.read(reader, node, &mut draft) {
        return None;
    }
    let WindowDraft { name, targets, targets_span, tags: named, from, until, cron, zone, lasts } = draft;
    let when = match (from, until, cron, lasts) {
        (Some((from, _)), Some((until, span)), None, None) => {
            if let Some((_, key)) = zone {
                reader.error("inapplicable-key", "`zone` requires `cron`", key);
                return None;
            }
            if until <= from {
                reader.error("bad-window", "this window ends before it begins", span);
                return None;
            }
            When::Once { from, until }
        }
        (None, None, Some((expression, _)), Some((lasts, _))) => {
            When::Cron { expression, zone: zone.map_or_else(|| "UTC".to_owned(), |(zone, _)| zone), lasts }
        }
        _ => {
            let diagnostic = Diagnostic::error("bad-window", format!("`{name}` has no time"));
            reader.report(diagnostic.hint("add `from` and `until`, or `cron` and `lasts`"), node.span);
            return None;
        }
    };
    let tags = named.iter().map(|(tag, _)| tag.clone()).collect();
    Some((Window { name, targets, tags, when }, targets_span, named))
}

pub(super) fn read_cron(reader: &mut Reader<'_>, node: &Node) -> Result<String, Fault> {
    let written = reader.text(node)?;
    match written.parse::<Cron>() {
        Ok(cron) if comes(&cron) => Ok(written),
        Ok(_) => {
            let diagnostic = Diagnostic::error("bad-cron", format!("`{written}` never comes: no month has this day"));
            reader.report(
                diagnostic.hint("minute, hour, day of the month, month, weekday; `0 3 L * *` is the last day of each month"),
                node.span,
            );
            Err(Fault::Reported)
        }
        Err(_) => {
            let diagnostic = Diagnostic::error("bad-cron", format!("`{written}` is not a cron expression: {}", wrong_field(&written)));
            reader.report(diagnostic.hint("minute, hour, day of the month, month, weekday: `0 3 * * sun`"), node.span);
            Err(Fault::Reported)
        }
    }
}

/// The fields of a cron expression, and their values.
const FIELDS: [(&str, &str); 5] = [
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31, or L"),
    ("month", "1 to 12, or jan to dec"),
    ("weekday", "0 to 7, or sun to sat"),
];

/// The field that makes an expression invalid: the one that does so by itself.
fn wrong_field(written: &str) -> String {
    let parts: Vec<&str> = written.split_whitespace().collect();
    if parts.len() != FIELDS.len() {
        return format!("expected {} fields, found {}", FIELDS.len(), parts.len());
    }
    let wrong = FIELDS.iter().zip(&parts).enumerate().find(|(at, (_, part))| {
        let mut alone = ["*"; FIELDS.len()];
        alone[*at] = **part;
        alone.join(" ").parse::<Cron>().is_err()
    });
    wrong.map_or_else(
        || "its fields contradict one another".to_owned(),
        |(_, ((name, range), part))| format!("{name} `{part}` is not within {range}"),
    )
}

/// Whether there is such a day at all. What a file means does not depend on the clock: any year will do.
fn comes(cron: &Cron) -> bool {
    let begin = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
    cron.find_next_occurrence(&begin, true).is_ok()
}

pub(super) fn read_zone(reader: &mut Reader<'_>, node: &Node) -> Result<String, Fault> {
    let written = reader.text(node)?;
    match TimeZone::get(&written) {
        Ok(_) => Ok(written),
        Err(_) => {
            let diagnostic = Diagnostic::error("unknown-zone", format!("`{written}` is not a time zone"));
            reader.report(diagnostic.hint("use a name such as `Europe/Vienna` or `UTC`"), node.span);
            Err(Fault::Reported)
        }
    }
}
