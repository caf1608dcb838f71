//! The suite format as tables for its reference page, made from the tables that read it. Knows no Markdown.

use super::format::{Described, Presence, Shape};
use super::parse::SUITE;
use super::plan::{Retry, Timeouts};
use super::retries::RETRY_DELAY;
use super::schema::definition_name;
use crate::judge::MATCHER_KEYS;
use mcproof_client::{HostedTasks, Limits, TapBounds};
use mcproof_record::duration::typed;

/// One kind of object.
pub struct Table {
    /// With its article: `a step`.
    pub title: &'static str,
    /// Names the table in links and its example: `step`.
    pub name: String,
    pub rows: Vec<Row>,
}

/// One key.
pub struct Row {
    pub key: &'static str,
    pub takes: String,
    pub presence: Presence,
    /// What holds if the key is left out, where that is a value.
    pub default: Option<String>,
    pub about: &'static str,
    /// The table of the object that it takes.
    pub object: Option<String>,
}

/// All objects of a suite, each once, in the order in which a reader of the tables meets them.
pub fn tables() -> Vec<Table> {
    let mut open: Vec<&dyn Described> = vec![&SUITE];
    let mut tables: Vec<Table> = Vec::new();
    let mut at = 0;
    while let Some(object) = open.get(at).copied() {
        at += 1;
        let mut rows = Vec::new();
        for (key, about, shape, presence) in object.keys() {
            let nested = nested(shape);
            if let Some(nested) = nested.filter(|nested| open.iter().all(|known| known.name() != nested.name())) {
                open.push(nested);
            }
            let default = default(object.name(), key);
            rows.push(Row {
                key,
                takes: shape.expected(),
                presence,
                default,
                about,
                object: nested.map(|object| definition_name(object.name())),
            });
        }
        tables.push(Table { title: object.name(), name: definition_name(object.name()), rows });
    }
    let matchers = MATCHER_KEYS.iter().map(|key| Row {
        key: key.name,
        takes: String::new(),
        presence: Presence::Optional,
        default: None,
        about: key.doc,
        object: None,
    });
    tables.push(Table { title: "a matcher", name: "matcher".to_owned(), rows: matchers.collect() });
    tables
}

fn nested(shape: Shape) -> Option<&'static dyn Described> {
    match shape {
        Shape::Object(object)
        | Shape::ObjectOrList(object)
        | Shape::ObjectOrFlag(object)
        | Shape::ObjectOrNumber(object)
        | Shape::ObjectOrText(object)
        | Shape::Objects(object)
        | Shape::List(object) => Some(object),
        _ => None,
    }
}

/// The value that a key has if it is left out.
fn default(object: &str, key: &str) -> Option<String> {
    let Limits { line, body, event, head, json } = Limits::default();
    let text = match (object, key) {
        ("a suite" | "a test", "validate_output") => "true".to_owned(),
        ("a suite", "isolation") => "test".to_owned(),
        ("a server", "era") => "auto".to_owned(),
        ("`timeouts`", "connect") => typed(Timeouts::default().connect),
        ("`timeouts`", "request") => typed(Timeouts::default().request),
        ("`timeouts`", "settle") => typed(Timeouts::default().settle),
        ("`limits`", "line") => size(line),
        ("`limits`", "body") => size(body),
        ("`limits`", "event") => size(event),
        ("`limits`", "head") => size(head),
        ("`limits`", "depth") => json.depth.to_string(),
        ("`limits`", "values") => json.values.to_string(),
        ("`limits`", "transcript") => size(TapBounds::default().bytes),
        ("`retries`", "delay") => typed(RETRY_DELAY),
        ("`retry`", "delay") => typed(Retry::default().delay),
        ("`tasks`", "takes") => typed(HostedTasks::default().takes),
        ("`tasks`", "poll_interval") => typed(HostedTasks::default().poll_interval),
        ("a fault", "to") => "client".to_owned(),
        ("a step", "concurrency" | "times") => "1".to_owned(),
        _ => return None,
    };
    Some(text)
}

fn size(bytes: usize) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1 << 20) => format!("{}MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{}KiB", bytes >> 10),
        _ => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_has_one_table() {
        let tables = tables();
        let mut names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for row in tables.iter().flat_map(|table| &table.rows) {
            assert!(row.object.as_deref().is_none_or(|object| names.contains(&object)), "{} has no table", row.key);
        }
        assert!(count > 20, "{count}");
    }

    #[test]
    fn defaults_are_those_that_the_reader_uses() {
        let find = |table: &str, key: &str| {
            let tables = tables();
            tables.iter().find(|found| found.name == table).unwrap().rows.iter().find(|row| row.key == key).unwrap().default.clone()
        };
        assert_eq!(find("timeouts", "request").as_deref(), Some("30s"));
        assert_eq!(find("limits", "head").as_deref(), Some("64KiB"));
        assert_eq!(find("retries", "max"), None);
    }
}
