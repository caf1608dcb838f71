//! Tools: their names, schemas, annotations, and how they may be called.

use super::{ChangeLevel, Changes, by_name, others, suspicious, text};
use crate::hash::canonical;
use crate::schema::{self, Use};
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn compare(old: &[Value], new: &[Value], changes: &mut Changes) {
    let (before, after) = (by_name(old, "name"), by_name(new, "name"));
    let renamed = renamed(&before, &after);
    for (name, tool) in &before {
        let subject = format!("tool `{name}`");
        match (after.get(name), renamed.get(name)) {
            (Some(now), _) => one(&subject, tool, now, changes),
            (None, Some(now)) => {
                changes.add(
                    ChangeLevel::Breaking,
                    "tool-renamed",
                    &subject,
                    "",
                    format!("it is called `{now}` now, with the same arguments"),
                );
                one(&format!("tool `{now}`"), tool, after[now], changes);
            }
            (None, None) => changes.add(ChangeLevel::Breaking, "tool-removed", &subject, "", "it is gone".into()),
        }
    }
    for (name, tool) in after.iter().filter(|(name, _)| !before.contains_key(*name) && !renamed.values().any(|now| now == *name)) {
        let subject = format!("tool `{name}`");
        let known = changes.all.len();
        changes.add_values(ChangeLevel::Compatible, "tool-added", &subject, "", "it is new".into(), None, Some((*tool).clone()));
        suspicious(changes, known, &subject, &Value::Null, tool);
    }
}

/// Old names with the new one of a tool with the same input schema. Tools that take nothing are all alike, so their
/// descriptions have to be the same as well.
fn renamed<'a>(before: &BTreeMap<&'a str, &Value>, after: &BTreeMap<&'a str, &Value>) -> BTreeMap<&'a str, &'a str> {
    let likeness = |tool: &Value| {
        let schema = tool.get("inputSchema").cloned().unwrap_or_default();
        let takes_nothing = schema.get("properties").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty);
        let description = if takes_nothing { tool.get("description").map(canonical).unwrap_or_default() } else { String::new() };
        (!takes_nothing || !description.is_empty()).then(|| (canonical(&schema), description))
    };
    let only = |some: &BTreeMap<&'a str, &Value>, others: &BTreeMap<&'a str, &Value>| {
        let mut found: BTreeMap<(String, String), Vec<&'a str>> = BTreeMap::new();
        for (name, tool) in some.iter().filter(|(name, _)| !others.contains_key(*name)) {
            if let Some(likeness) = likeness(tool) {
                found.entry(likeness).or_default().push(name);
            }
        }
        found
    };
    let (gone, new) = (only(before, after), only(after, before));
    let pairs = gone.iter().filter_map(|(likeness, names)| match (names.as_slice(), new.get(likeness).map(Vec::as_slice)) {
        ([was], Some([now])) => Some((*was, *now)),
        _ => None,
    });
    pairs.collect()
}

fn one(subject: &str, old: &Value, new: &Value, changes: &mut Changes) {
    let known = changes.all.len();
    let string = |tool: &Value, name: &str| tool.get(name).and_then(Value::as_str).map(str::to_owned);
    text(changes, subject, "/description", "description", string(old, "description").as_deref(), string(new, "description").as_deref());
    let nothing = Value::Object(serde_json::Map::new());
    let input = |tool: &'_ Value| tool.get("inputSchema").cloned().unwrap_or_else(|| nothing.clone());
    schemas(changes, subject, "/inputSchema", &input(old), &input(new), Use::Arguments);
    match (old.get("outputSchema"), new.get("outputSchema")) {
        (Some(before), Some(after)) => schemas(changes, subject, "/outputSchema", before, after, Use::Result),
        (Some(_), None) => {
            let reason = "the output schema is gone, so callers can no longer rely on the shape of results".to_owned();
            changes.add(ChangeLevel::Breaking, "output-schema-removed", subject, "/outputSchema", reason);
        }
        (None, Some(_)) => {
            changes.add(
                ChangeLevel::Compatible,
                "output-schema-added",
                subject,
                "/outputSchema",
                "results have an output schema now".into(),
            );
        }
        (None, None) => {}
    }
    annotations(subject, old, new, changes);
    tasks(subject, old, new, changes);
    others(changes, subject, old, new, &["name", "description", "inputSchema", "outputSchema", "annotations", "execution"]);
    suspicious(changes, known, subject, old, new);
}

fn schemas(changes: &mut Changes, subject: &str, place: &str, old: &Value, new: &Value, usage: Use) {
    for change in schema::compare(old, new, usage) {
        let pointer = format!("{place}{}", change.pointer);
        changes.add_values(change.level, &change.code, subject, &pointer, change.reason, change.old, change.new);
    }
}

/// What the hints of a tool come to (2025-11-25, schema, ToolAnnotations): those that are not given have defaults, and of a
/// tool that only reads some mean nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Hints {
    writes: bool,
    destroys: bool,
    may_not_be_repeated: bool,
    reaches_out: bool,
}

impl Hints {
    fn of(tool: &Value) -> Self {
        let hint = |name: &str, default| tool.pointer(&format!("/annotations/{name}")).and_then(Value::as_bool).unwrap_or(default);
        let writes = !hint("readOnlyHint", false);
        Self {
            writes,
            destroys: writes && hint("destructiveHint", true),
            may_not_be_repeated: writes && !hint("idempotentHint", false),
            reaches_out: hint("openWorldHint", true),
        }
    }
}

fn annotations(subject: &str, old: &Value, new: &Value, changes: &mut Changes) {
    let (before, after) = (Hints::of(old), Hints::of(new));
    let told = [
        ("readOnlyHint", before.writes, after.writes, "it is no longer read-only", "it is read-only now"),
        ("destructiveHint", before.destroys, after.destroys, "it may be destructive now", "it is no longer destructive"),
        ("idempotentHint", before.may_not_be_repeated, after.may_not_be_repeated, "it is no longer idempotent", "it is idempotent now"),
        (
            "openWorldHint",
            before.reaches_out,
            after.reaches_out,
            "it interacts with external systems now",
            "it no longer interacts with external systems",
        ),
    ];
    for (name, was_risky, is_risky, worse, better) in told {
        let pointer = format!("/annotations/{name}");
        match (was_risky, is_risky) {
            (false, true) => changes.add(ChangeLevel::Breaking, "annotation-flipped", subject, &pointer, worse.to_owned()),
            (true, false) => changes.add(ChangeLevel::Compatible, "annotation-flipped", subject, &pointer, better.to_owned()),
            _ => {}
        }
    }
    let (written_before, written_now) = (old.get("annotations"), new.get("annotations"));
    if written_before != written_now && before == after {
        let reason = "the annotations are written differently but mean the same".to_owned();
        changes.add_values(
            ChangeLevel::Cosmetic,
            "annotations-changed",
            subject,
            "/annotations",
            reason,
            written_before.cloned(),
            written_now.cloned(),
        );
    }
}

/// Whether a tool may, must or must not be called as a task (2025-11-25, server/tools, execution).
fn tasks(subject: &str, old: &Value, new: &Value, changes: &mut Changes) {
    let support = |tool: &Value| tool.pointer("/execution/taskSupport").and_then(Value::as_str).unwrap_or("forbidden").to_owned();
    let (before, after) = (support(old), support(new));
    if before == after {
        if old.get("execution") != new.get("execution") {
            changes.add(ChangeLevel::Cosmetic, "execution-changed", subject, "/execution", "`execution` changed".into());
        }
        return;
    }
    let level = if after == "optional" { ChangeLevel::Compatible } else { ChangeLevel::Breaking };
    let reason = format!("calling it as a task is {after} now, and it was {before} before");
    changes.add(level, "task-support-changed", subject, "/execution/taskSupport", reason);
}
