//! What a change of a JSON Schema means for those who fill it in or read by it. Knows schemas, neither tools nor servers.

mod admits;
mod branch;
mod contains;
mod document;
mod formats;
mod notes;
mod overlap;
mod patterns;
mod wording;

pub(super) use document::below;

use branch::Types;
use contains::{By, Counterexample, CounterexampleKind, Declared, Findings, losses};
use document::{Document, stripped};
use mcproof_record::ChangeLevel;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use wording::{Direction, Phrase};

/// On which side of a schema the caller stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// The caller writes what it describes.
    Arguments,
    /// The caller reads what it describes.
    Result,
}

/// One change of a schema.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SchemaChange {
    pub(super) level: ChangeLevel,
    pub(super) code: String,
    /// In the new schema; in the old one if it is gone.
    pub(super) pointer: String,
    pub(super) reason: String,
    pub(super) old: Option<Value>,
    pub(super) new: Option<Value>,
}

/// All changes from one schema to the other.
pub(super) fn compare(old: &Value, new: &Value, usage: Use) -> Vec<SchemaChange> {
    if old == new {
        return Vec::new();
    }
    let (before, after) = (Document::new(old), Document::new(new));
    let mut narrowed = losses(&before, &after);
    let mut widened = losses(&after, &before);
    reconcile(&mut narrowed, &mut widened, usage);
    let mut changes = Changes::default();
    let (narrowed_types, widened_types) = (lost_types(&narrowed), lost_types(&widened));
    let (bad, good) = match usage {
        Use::Arguments => (Direction::Narrowed, Direction::Widened),
        Use::Result => (Direction::Widened, Direction::Narrowed),
    };
    for (way, level) in [(bad, ChangeLevel::Breaking), (good, ChangeLevel::Compatible)] {
        let found = if way == Direction::Narrowed { &narrowed } else { &widened };
        for loss in &found.losses {
            let counterpart = if way == Direction::Narrowed { &widened_types } else { &narrowed_types };
            // The types that took the place of those that were lost.
            if let CounterexampleKind::Types { lost, .. } = loss.what
                && let Some(types) = counterpart.get(loss.path.as_str()).copied()
            {
                if way == bad {
                    let (before, after) = if way == Direction::Narrowed { (lost, types) } else { (types, lost) };
                    let Phrase { code, reason } = wording::retyped(before, after, &loss.path, usage);
                    let pointer = if way == Direction::Narrowed { &loss.outer } else { &loss.inner };
                    changes.add(SchemaChange { level, code, pointer: pointer.clone(), reason, old: None, new: None });
                }
                continue;
            }
            // Narrowed: the outer schema is the new one.
            let (now, then) = if way == Direction::Narrowed { (&loss.outer, &loss.inner) } else { (&loss.inner, &loss.outer) };
            let pointer = if now.is_empty() { then } else { now };
            let Phrase { code, reason } = wording::phrase(&loss.what, &loss.path, way, usage);
            changes.add(SchemaChange { level, code, pointer: pointer.clone(), reason, old: None, new: None });
        }
    }
    for declared in &narrowed.declared {
        let level = match (declared.by, usage) {
            (By::Inner, Use::Arguments) => ChangeLevel::Breaking,
            _ => ChangeLevel::Compatible,
        };
        let Phrase { code, reason } = wording::declared(declared, usage);
        changes.add(SchemaChange { level, code, pointer: declared.pointer.clone(), reason, old: None, new: None });
    }
    let mut changes = changes.all;
    notes::compare(old, new, usage, &mut changes);
    if changes.iter().all(|change| change.level == ChangeLevel::Cosmetic) && stripped(old) != stripped(new) {
        let reason = "the schema is written differently but accepts the same values".to_owned();
        let code = "schema-rewritten".to_owned();
        changes.push(SchemaChange { level: ChangeLevel::Cosmetic, code, pointer: String::new(), reason, old: None, new: None });
    }
    changes
}

/// The types that are lost at each path.
fn lost_types(findings: &Findings) -> HashMap<&str, Types> {
    let mut all = HashMap::new();
    for loss in &findings.losses {
        if let CounterexampleKind::Types { lost, .. } = loss.what {
            all.entry(loss.path.as_str()).or_insert(lost);
        }
    }
    all
}

/// Each change is reported once, although shared definitions are reached from many places.
#[derive(Default)]
struct Changes {
    all: Vec<SchemaChange>,
    /// Places, with the reasons of their changes.
    known: HashSet<(String, String)>,
    /// Places in shared definitions, with the code and the end of the reason, which says what changed, whatever argument it was seen
    /// from.
    shared: HashSet<(String, String, Option<String>)>,
}

impl Changes {
    fn add(&mut self, change: SchemaChange) {
        let SchemaChange { pointer, code, reason, .. } = &change;
        let is_shared = ["/$defs/", "/definitions/"].iter().any(|place| pointer.contains(place));
        let end = || reason.rsplit_once("` ").map(|(_, end)| end.to_owned());
        let is_new = self.known.insert((pointer.clone(), reason.clone()))
            && (!is_shared || self.shared.insert((pointer.clone(), code.clone(), end())));
        if is_new {
            self.all.push(change);
        }
    }
}

/// What was found about members, by their path and name.
struct Members<'f> {
    absent: HashSet<(&'f str, &'f str)>,
    lost: HashSet<(&'f str, &'f str)>,
}

impl<'f> Members<'f> {
    fn of(losses: &'f [Counterexample]) -> Self {
        let mut found = Self { absent: HashSet::new(), lost: HashSet::new() };
        for Counterexample { path, what, .. } in losses {
            match what {
                CounterexampleKind::Absence(name) => found.absent.insert((path, name)),
                CounterexampleKind::Member(name) => found.lost.insert((path, name)),
                _ => false,
            };
        }
        found
    }
}

/// A change that both comparisons find is reported once, with the higher level.
fn reconcile(narrowed: &mut Findings, widened: &mut Findings, usage: Use) {
    match usage {
        Use::Arguments => {
            let known = Members::of(&narrowed.losses);
            let declared: HashSet<(bool, &str, &str)> =
                narrowed.declared.iter().map(|known| (known.by == By::Inner, known.path.as_str(), known.name.as_str())).collect();
            widened.losses.retain(|Counterexample { path, what, .. }| match what {
                // A new argument is told as such, also where it was forbidden before.
                CounterexampleKind::Member(name) => !declared.contains(&(false, path, name)) && !known.absent.contains(&(path, name)),
                // So is one that is gone.
                CounterexampleKind::Absence(name) => !declared.contains(&(true, path, name)) && !known.lost.contains(&(path, name)),
                _ => true,
            });
        }
        Use::Result => {
            let known = Members::of(&widened.losses);
            narrowed.declared.retain(|Declared { path, name, by, .. }| match by {
                By::Outer => !known.lost.contains(&(path, name)),
                By::Inner => !known.absent.contains(&(path, name)),
            });
            narrowed.losses.retain(|Counterexample { path, what, .. }| match what {
                CounterexampleKind::Absence(name) => !known.lost.contains(&(path, name)),
                CounterexampleKind::Member(name) => !known.absent.contains(&(path, name)),
                _ => true,
            });
        }
    }
    let (worse, better) = match usage {
        Use::Arguments => (narrowed, widened),
        Use::Result => (widened, narrowed),
    };
    let mut halves: HashMap<(&str, &str), Vec<&CounterexampleKind>> = HashMap::new();
    for Counterexample { path, what, .. } in &worse.losses {
        if let Some(keyword) = keyword_with_two_halves(what) {
            halves.entry((path, keyword)).or_default().push(what);
        }
    }
    better.losses.retain(|Counterexample { path, what, .. }| {
        let others = keyword_with_two_halves(what).and_then(|keyword| halves.get(&(path.as_str(), keyword)));
        !others.is_some_and(|others| others.iter().any(|worse| is_other_half(worse, what)))
    });
}

/// What losses in both directions can be one change of.
fn keyword_with_two_halves(what: &CounterexampleKind) -> Option<&'static str> {
    match what {
        CounterexampleKind::Tighter { keyword, .. } | CounterexampleKind::Uncertain(keyword) => Some(keyword),
        CounterexampleKind::TooComplex => Some(""),
        _ => None,
    }
}

/// Whether two losses at one path, in opposite directions, are one change of one keyword.
fn is_other_half(one: &CounterexampleKind, other: &CounterexampleKind) -> bool {
    match (one, other) {
        (
            CounterexampleKind::Tighter { keyword, inner, outer },
            CounterexampleKind::Tighter { keyword: known, inner: other_inner, outer: other_outer },
        ) => keyword == known && inner == other_outer && outer == other_inner,
        (CounterexampleKind::Uncertain(keyword), CounterexampleKind::Uncertain(known)) => keyword == known,
        (CounterexampleKind::TooComplex, CounterexampleKind::TooComplex) => true,
        _ => false,
    }
}

#[cfg(test)]
mod generated;
#[cfg(test)]
mod tests;
