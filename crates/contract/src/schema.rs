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
    let mut changes = Vec::new();
    let (bad, good) = match usage {
        Use::Arguments => (Direction::Narrowed, Direction::Widened),
        Use::Result => (Direction::Widened, Direction::Narrowed),
    };
    for (way, level) in [(bad, ChangeLevel::Breaking), (good, ChangeLevel::Compatible)] {
        let found = if way == Direction::Narrowed { &narrowed } else { &widened };
        for loss in &found.losses {
            let counterpart = if way == Direction::Narrowed { &widened } else { &narrowed };
            if let Some(types) = other_types(loss, counterpart) {
                if way == bad {
                    let CounterexampleKind::Types { lost, .. } = loss.what else { continue };
                    let (before, after) = if way == Direction::Narrowed { (lost, types) } else { (types, lost) };
                    let Phrase { code, reason } = wording::retyped(before, after, &loss.path, usage);
                    let pointer = if way == Direction::Narrowed { &loss.outer } else { &loss.inner };
                    push(&mut changes, SchemaChange { level, code, pointer: pointer.clone(), reason, old: None, new: None });
                }
                continue;
            }
            // Narrowed: the outer schema is the new one.
            let (now, then) = if way == Direction::Narrowed { (&loss.outer, &loss.inner) } else { (&loss.inner, &loss.outer) };
            let pointer = if now.is_empty() { then } else { now };
            let Phrase { code, reason } = wording::phrase(&loss.what, &loss.path, way, usage);
            push(&mut changes, SchemaChange { level, code, pointer: pointer.clone(), reason, old: None, new: None });
        }
    }
    for declared in &narrowed.declared {
        let level = match (declared.by, usage) {
            (By::Inner, Use::Arguments) => ChangeLevel::Breaking,
            _ => ChangeLevel::Compatible,
        };
        let Phrase { code, reason } = wording::declared(declared, usage);
        push(&mut changes, SchemaChange { level, code, pointer: declared.pointer.clone(), reason, old: None, new: None });
    }
    notes::compare(old, new, usage, &mut changes);
    if changes.iter().all(|change| change.level == ChangeLevel::Cosmetic) && stripped(old) != stripped(new) {
        let reason = "the schema is written differently but accepts the same values".to_owned();
        let code = "schema-rewritten".to_owned();
        changes.push(SchemaChange { level: ChangeLevel::Cosmetic, code, pointer: String::new(), reason, old: None, new: None });
    }
    changes
}

/// The types that took the place of those that were lost.
fn other_types(loss: &Counterexample, counterpart: &Findings) -> Option<Types> {
    let CounterexampleKind::Types { .. } = loss.what else { return None };
    counterpart.losses.iter().filter(|other| other.path == loss.path).find_map(|other| match other.what {
        CounterexampleKind::Types { lost, .. } => Some(lost),
        _ => None,
    })
}

/// Each change is reported once, although shared definitions are reached from many places.
fn push(changes: &mut Vec<SchemaChange>, change: SchemaChange) {
    let is_known = |known: &SchemaChange| known.pointer == change.pointer && (known.reason == change.reason || known.is_met_again(&change));
    if !changes.iter().any(is_known) {
        changes.push(change);
    }
}

impl SchemaChange {
    /// The same change of a definition, seen from another argument.
    fn is_met_again(&self, other: &Self) -> bool {
        let is_shared = ["/$defs/", "/definitions/"].iter().any(|place| self.pointer.contains(place));
        // What follows the name of the argument says what changed.
        let end = |reason: &str| reason.rsplit_once("` ").map(|(_, end)| end.to_owned());
        is_shared && self.code == other.code && end(&self.reason) == end(&other.reason)
    }
}

/// A change that both comparisons find is reported once, with the higher level.
fn reconcile(narrowed: &mut Findings, widened: &mut Findings, usage: Use) {
    let has = |findings: &Findings, path: &str, wanted: &dyn Fn(&CounterexampleKind) -> bool| {
        findings.losses.iter().any(|loss| loss.path == path && wanted(&loss.what))
    };
    let is_absence = |name: &str| {
        let name = name.to_owned();
        move |what: &CounterexampleKind| *what == CounterexampleKind::Absence(name.clone())
    };
    let is_member = |name: &str| {
        let name = name.to_owned();
        move |what: &CounterexampleKind| *what == CounterexampleKind::Member(name.clone())
    };
    match usage {
        Use::Arguments => {
            let declares = |by: By, path: &str, name: &str| {
                narrowed.declared.iter().any(|known: &Declared| known.by == by && known.path == path && known.name == name)
            };
            widened.losses.retain(|loss| match &loss.what {
                // A new argument is told as such, also where it was forbidden before.
                CounterexampleKind::Member(name) => !declares(By::Outer, &loss.path, name) && !has(narrowed, &loss.path, &is_absence(name)),
                // So is one that is gone.
                CounterexampleKind::Absence(name) => !declares(By::Inner, &loss.path, name) && !has(narrowed, &loss.path, &is_member(name)),
                _ => true,
            });
        }
        Use::Result => {
            narrowed.declared.retain(|known| match known.by {
                By::Outer => !has(widened, &known.path, &is_member(&known.name)),
                By::Inner => !has(widened, &known.path, &is_absence(&known.name)),
            });
            let told = |loss: &Counterexample| match &loss.what {
                CounterexampleKind::Absence(name) => has(widened, &loss.path, &is_member(name)),
                CounterexampleKind::Member(name) => has(widened, &loss.path, &is_absence(name)),
                _ => false,
            };
            narrowed.losses.retain(|loss| !told(loss));
        }
    }
    let (worse, better) = match usage {
        Use::Arguments => (narrowed, widened),
        Use::Result => (widened, narrowed),
    };
    better.losses.retain(|loss| !worse.losses.iter().any(|worse| is_other_half(worse, loss)));
}

/// Whether two losses, in opposite directions, are one change of one keyword.
fn is_other_half(one: &Counterexample, other: &Counterexample) -> bool {
    one.path == other.path
        && match (&one.what, &other.what) {
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
