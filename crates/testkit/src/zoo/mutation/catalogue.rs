//! Every mutation of what a journal shows: each member of each kind of message, each header and status, each delimiter.

use super::bytes::{OF_BODIES, OF_CHUNKS, OF_ENDS, OF_EVENTS, OF_HEADERS, OF_HEADS, OF_LINES, STATUSES};
use super::message::{OF_MEMBERS, OF_MESSAGES, changed};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The mutations of what was said, by name and in order. Of the items of a list, the first that has a member stands for all.
#[must_use]
pub fn catalogue(journal: &str) -> Vec<String> {
    let mut mutations = BTreeSet::new();
    // By subject, what is known to be changed, with the indices left out.
    let mut members: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in journal.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let (Some(form), Some(subject)) = (entry["form"].as_str(), entry["subject"].as_str()) else { continue };
        let mut all = |operations: &[&str]| mutations.extend(operations.iter().map(|operation| format!("{subject} {operation}")));
        match form {
            "message" => {
                all(&OF_MESSAGES);
                let known = members.entry(subject.to_owned()).or_default();
                for (pointer, value) in places(&entry["value"]) {
                    let kinds = OF_MEMBERS.into_iter().filter(|operation| *operation != "change" || changed(value) != *value);
                    let kinds: Vec<&str> = kinds.filter(|operation| known.insert(format!("{operation} {}", pattern(&pointer)))).collect();
                    let named: Vec<String> = kinds.into_iter().map(|operation| format!("{operation} {pointer}")).collect();
                    all(&named.iter().map(String::as_str).collect::<Vec<_>>());
                }
            }
            "line" => all(&OF_LINES),
            "event" => all(&OF_EVENTS),
            "chunk" => all(&OF_CHUNKS),
            "end" => all(&OF_ENDS),
            "body" => all(&OF_BODIES),
            "head" => {
                all(&OF_HEADS);
                all(&STATUSES.map(|status| format!("head:status {status}")).each_ref().map(String::as_str));
                let text = entry["value"].as_str().unwrap_or_default();
                for name in text.lines().skip(1).filter_map(|line| line.split_once(':')).map(|(name, _)| name) {
                    all(&OF_HEADERS.map(|operation| format!("{operation} {name}")).each_ref().map(String::as_str));
                }
            }
            _ => {}
        }
    }
    mutations.into_iter().filter(|mutation| !changes_nothing(mutation)).collect()
}

/// A status that is changed to itself; a member that cannot stand twice, because it is an item.
fn changes_nothing(mutation: &str) -> bool {
    let words: Vec<&str> = mutation.splitn(3, ' ').collect();
    match words[..] {
        [subject, "head:status", status] => subject.ends_with(&format!(":{status}")),
        [_, "twice", pointer] => pointer.rsplit('/').next().is_some_and(|step| step.parse::<usize>().is_ok()),
        _ => false,
    }
}

/// The places of members, with their values.
fn places(message: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    walk(message, String::new(), &mut found);
    found
}

/// A place with `*` for each index.
fn pattern(pointer: &str) -> String {
    let plain = |step: &str| if step.parse::<usize>().is_ok() { "*".to_owned() } else { step.to_owned() };
    pointer.split('/').map(plain).collect::<Vec<_>>().join("/")
}

fn walk<'a>(value: &'a Value, pointer: String, found: &mut Vec<(String, &'a Value)>) {
    if !pointer.is_empty() {
        found.push((pointer.clone(), value));
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let step = name.replace('~', "~0").replace('/', "~1");
                walk(member, format!("{pointer}/{step}"), found);
            }
        }
        Value::Array(items) => items.iter().enumerate().for_each(|(index, item)| walk(item, format!("{pointer}/{index}"), found)),
        _ => {}
    }
}
