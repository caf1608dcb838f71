//! Reads `depends_on:`: what a target cannot work without. Names and tags become the names of targets once all of them are known.

use super::TargetSpec;
use super::reader::unknown;
use super::tags::KnownTags;
use mcproof_record::Diagnostic;
use mcproof_suite::document::Node;
use mcproof_suite::reader::Reader;
use std::collections::{BTreeMap, BTreeSet};

/// What a target cannot work without.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// Targets of the configuration.
    pub names: BTreeSet<String>,
    /// Targets that were added through the API and have one of these tags.
    pub tags: BTreeSet<String>,
}

impl Dependencies {
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.tags.is_empty()
    }
}

/// What stands before the name of a tag; names of targets have no colon.
const TAG: &str = "tag:";

pub(super) const DEPENDS_ON_DOC: &str = "targets that it cannot work without, by name, or `tag:NAME` for all with this tag; \
    while one of them is down, nobody is told of this one";

/// Where each target names what it depends on.
pub(super) type Named = BTreeMap<String, Vec<(String, Node)>>;

/// Fills in what each target depends on. `is_written` says of a name whether it stands in the file with a mistake of its own.
pub(super) fn resolve(
    reader: &mut Reader<'_>,
    targets: &mut BTreeMap<String, TargetSpec>,
    named: &Named,
    is_written: impl Fn(&str) -> bool,
) {
    let names: Vec<String> = targets.keys().cloned().collect();
    let mut found: BTreeMap<String, Dependencies> = BTreeMap::new();
    for (target, items) in named {
        let all = found.entry(target.clone()).or_default();
        for (item, node) in items {
            match item.strip_prefix(TAG) {
                Some(tag) => {
                    KnownTags::of(targets).check(reader, tag, TAG, node.span);
                    let of_tag = targets.values().filter(|other| other.name != *target && other.tags.iter().any(|known| known == tag));
                    all.names.extend(of_tag.map(|other| other.name.clone()));
                    all.tags.insert(tag.to_owned());
                }
                None if names.contains(item) => drop(all.names.insert(item.clone())),
                None if is_written(item) => {}
                None => unknown(reader, item, node, &names, "target"),
            }
        }
    }
    for (target, dependencies) in &found {
        let Some(path) = way_back(&found, target) else { continue };
        // Each target of a circle would say so.
        if path.iter().min() != Some(target) {
            continue;
        }
        let node = named.get(target).and_then(|items| items.first()).map(|(_, node)| node.span);
        let path: Vec<String> = path.iter().chain([target]).map(|name| format!("`{name}`")).collect();
        let message = format!("{} depends on itself: {}", path[0], path.join(" → "));
        if let Some(span) = node {
            let hint = "remove one of these dependencies: while all are down, each would wait for another";
            reader.report(Diagnostic::error("circular-dependency", message).hint(hint), span);
        }
        debug_assert!(!dependencies.is_empty());
    }
    for (target, dependencies) in found {
        if let Some(spec) = targets.get_mut(&target) {
            spec.depends_on = dependencies;
        }
    }
}

/// The targets from this one to itself, if there is such a way; without the last one.
fn way_back(all: &BTreeMap<String, Dependencies>, target: &str) -> Option<Vec<String>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut waiting = vec![target];
    while let Some(name) = waiting.pop() {
        for next in all.get(name).into_iter().flat_map(|dependencies| &dependencies.names) {
            if next == target {
                let mut path = vec![name.to_owned()];
                let mut at = name;
                while let Some(before) = came_from.get(at).filter(|_| at != target) {
                    at = before;
                    path.push(at.to_owned());
                }
                path.reverse();
                return Some(path);
            }
            if !came_from.contains_key(next.as_str()) {
                came_from.insert(next, name);
                waiting.push(next);
            }
        }
    }
    None
}
