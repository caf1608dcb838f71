//! Prompts, resources and templates.

use super::{ChangeLevel, Changes, by_name, others, suspicious, text};
use crate::schema::below;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

pub(super) fn prompts(old: &[Value], new: &[Value], changes: &mut Changes) {
    each(old, new, "name", "prompt", changes, &["name", "description", "arguments"], |subject, old, new, changes| {
        arguments(subject, old, new, changes);
    });
}

pub(super) fn resources(old: &[Value], new: &[Value], changes: &mut Changes) {
    each(old, new, "uri", "resource", changes, &["uri", "description", "mimeType"], media_type);
}

pub(super) fn templates(old: &[Value], new: &[Value], changes: &mut Changes) {
    each(old, new, "uriTemplate", "resource template", changes, &["uriTemplate", "description", "mimeType"], media_type);
}

type Compare = fn(&str, &Value, &Value, &mut Changes);

/// What is gone, what is new, what has another name only, and what of the rest changed.
fn each(old: &[Value], new: &[Value], key: &str, kind: &str, changes: &mut Changes, told: &[&str], compare: Compare) {
    let (before, after) = (by_name(old, key), by_name(new, key));
    let mut renamed = renamed(&before, &after, key);
    for (name, item) in &before {
        let subject = format!("{kind} `{name}`");
        let known = changes.all.len();
        match (after.get(name), renamed.remove(name)) {
            (Some(now), _) => {
                let description = |item: &Value| item.get("description").and_then(Value::as_str).map(str::to_owned);
                text(changes, &subject, "/description", "description", description(item).as_deref(), description(now).as_deref());
                compare(&subject, item, now, changes);
                others(changes, &subject, item, now, told);
                suspicious(changes, known, &subject, item, now);
            }
            (None, Some(now)) => {
                let reason = format!("it is `{now}` now, and otherwise the same");
                changes.add(ChangeLevel::Breaking, &code(kind, "renamed"), &subject, "", reason);
            }
            (None, None) => changes.add(ChangeLevel::Breaking, &code(kind, "removed"), &subject, "", "it is gone".into()),
        }
    }
    let taken: Vec<&str> = self::renamed(&before, &after, key).into_values().collect();
    for (name, item) in after.iter().filter(|(name, _)| !before.contains_key(*name) && !taken.contains(name)) {
        let subject = format!("{kind} `{name}`");
        let known = changes.all.len();
        changes.add_values(ChangeLevel::Compatible, &code(kind, "added"), &subject, "", "it is new".into(), None, Some((*item).clone()));
        suspicious(changes, known, &subject, &Value::Null, item);
    }
}

fn code(kind: &str, what: &str) -> String {
    format!("{}-{what}", kind.replace(' ', "-"))
}

/// Old names with the new one of an item that is the same in everything else. Where several are, nobody can tell.
fn renamed<'a>(before: &BTreeMap<&'a str, &Value>, after: &BTreeMap<&'a str, &Value>, key: &str) -> BTreeMap<&'a str, &'a str> {
    let rest = |item: &Value| -> Map<String, Value> {
        let members = item.as_object().into_iter().flatten().filter(|(name, _)| *name != key && *name != "title");
        members.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let gone: Vec<(&str, Map<String, Value>)> =
        before.iter().filter(|(name, _)| !after.contains_key(*name)).map(|(name, item)| (*name, rest(item))).collect();
    let new: Vec<(&str, Map<String, Value>)> =
        after.iter().filter(|(name, _)| !before.contains_key(*name)).map(|(name, item)| (*name, rest(item))).collect();
    let mut renamed = BTreeMap::new();
    for (name, item) in gone.iter().filter(|(_, item)| !item.is_empty()) {
        let alike = new.iter().filter(|(_, other)| other == item).map(|(name, _)| *name).collect::<Vec<_>>();
        let is_only = gone.iter().filter(|(_, other)| other == item).count() == 1;
        if let ([now], true) = (alike.as_slice(), is_only) {
            renamed.insert(*name, *now);
        }
    }
    renamed
}

fn arguments(subject: &str, old: &Value, new: &Value, changes: &mut Changes) {
    let list = |item: &Value| item.get("arguments").and_then(Value::as_array).cloned().unwrap_or_default();
    let (before, after) = (list(old), list(new));
    let index = |items: &[Value], name: &str| items.iter().position(|item| item.get("name").and_then(Value::as_str) == Some(name));
    let pointer = |items: &[Value], name: &str| below("/arguments", &index(items, name).unwrap_or_default().to_string());
    let is_required = |item: &Value| item.get("required") == Some(&Value::Bool(true));
    let (known, found) = (by_name(&before, "name"), by_name(&after, "name"));
    for (name, argument) in &known {
        let Some(now) = found.get(name) else {
            let reason = format!("argument `{name}` is gone");
            changes.add(ChangeLevel::Breaking, "argument-removed", subject, &pointer(&before, name), reason);
            continue;
        };
        let at = pointer(&after, name);
        match (is_required(argument), is_required(now)) {
            (false, true) => {
                changes.add(ChangeLevel::Breaking, "argument-required", subject, &at, format!("argument `{name}` is required now"));
            }
            (true, false) => {
                changes.add(ChangeLevel::Compatible, "argument-optional", subject, &at, format!("argument `{name}` may be left out now"));
            }
            _ => {}
        }
        let description = |item: &Value| item.get("description").and_then(Value::as_str).map(str::to_owned);
        text(changes, subject, &format!("{at}/description"), "description", description(argument).as_deref(), description(now).as_deref());
    }
    for (name, argument) in found.iter().filter(|(name, _)| !known.contains_key(*name)) {
        let (level, code, reason) = match is_required(argument) {
            true => (ChangeLevel::Breaking, "argument-required", format!("argument `{name}` is new and required")),
            false => (ChangeLevel::Compatible, "argument-added", format!("argument `{name}` is new and optional")),
        };
        changes.add(level, code, subject, &pointer(&after, name), reason);
    }
}

fn media_type(subject: &str, old: &Value, new: &Value, changes: &mut Changes) {
    let (before, after) = (old.get("mimeType"), new.get("mimeType"));
    if before != after {
        // Who was told nothing had to look; who was told something may rely on it.
        let level = if before.is_none() { ChangeLevel::Compatible } else { ChangeLevel::Breaking };
        let shown = |kind: Option<&Value>| kind.and_then(Value::as_str).map_or("not told".to_owned(), |kind| format!("`{kind}`"));
        let reason = format!("the media type is {} instead of {}", shown(after), shown(before));
        changes.add(level, "media-type-changed", subject, "/mimeType", reason);
    }
}
