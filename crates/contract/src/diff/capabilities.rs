//! The result of the handshake: capabilities, revisions, the identity of the server.

use super::{ChangeLevel, Changes, others};
use crate::schema::below;
use serde_json::{Map, Value};

const SUBJECT: &str = "the server";

pub(super) fn versions(old: &[String], new: &[String], changes: &mut Changes) {
    for version in old.iter().filter(|version| !new.contains(version)) {
        let reason = format!("revision {version} of the protocol is no longer supported");
        changes.add(ChangeLevel::Breaking, "protocol-version-removed", SUBJECT, "/protocol_versions", reason);
    }
    for version in new.iter().filter(|version| !old.contains(version)) {
        let reason = format!("revision {version} of the protocol is supported now");
        changes.add(ChangeLevel::Compatible, "protocol-version-added", SUBJECT, "/protocol_versions", reason);
    }
}

pub(super) fn compare(old: &Map<String, Value>, new: &Map<String, Value>, changes: &mut Changes) {
    members(old, new, "/capabilities", "", changes);
}

fn members(old: &Map<String, Value>, new: &Map<String, Value>, pointer: &str, path: &str, changes: &mut Changes) {
    let inside = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    // Absent, false and null say the same.
    let of = |members: &Map<String, Value>, name: &str| {
        members.get(name).filter(|value| !matches!(value, Value::Bool(false) | Value::Null)).cloned()
    };
    let mut names: Vec<&String> = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))).collect();
    names.sort();
    for name in names {
        let pointer = below(pointer, name);
        let capability = inside(name);
        match (of(old, name), of(new, name)) {
            (Some(Value::Object(before)), Some(Value::Object(after))) => members(&before, &after, &pointer, &capability, changes),
            (Some(before), Some(after)) if before != after => {
                let reason = format!("the capability `{capability}` changed");
                changes.add_values(ChangeLevel::Breaking, "capability-changed", SUBJECT, &pointer, reason, Some(before), Some(after));
            }
            (Some(_), None) => {
                changes.add(
                    ChangeLevel::Breaking,
                    "capability-removed",
                    SUBJECT,
                    &pointer,
                    format!("the capability `{capability}` is gone"),
                );
            }
            (None, Some(_)) => {
                changes.add(
                    ChangeLevel::Compatible,
                    "capability-added",
                    SUBJECT,
                    &pointer,
                    format!("the capability `{capability}` is new"),
                );
            }
            _ => {}
        }
    }
}

pub(super) fn server(old: Option<&Value>, new: Option<&Value>, changes: &mut Changes) {
    others(changes, SUBJECT, old.unwrap_or(&Value::Null), new.unwrap_or(&Value::Null), &[]);
}
