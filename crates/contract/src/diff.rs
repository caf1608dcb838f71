//! What changed between two contracts, and what each change means for a caller. Knows contracts, not where they come from.

mod capabilities;
mod items;
mod suspicion;
mod tools;

use super::profile::{Profile, Visitor};
use mcproof_protocol::{Era, methods};
use mcproof_record::{ChangeLevel, Contract, ContractChange, ContractDiff, FORMAT_VERSION};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// One of the two sides.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// As a person would name it.
    pub name: &'a str,
    pub contracts: &'a BTreeMap<String, Contract>,
    pub extent: Extent,
}

/// How much of its contracts a side shows. A contract that is marked as partial is so on any side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Whole,
    /// What happened to be asked, by some client.
    Part,
}

impl Side<'_> {
    /// Whether it shows only a part of the contract with this key.
    fn is_part(self, key: &str) -> bool {
        self.extent == Extent::Part || self.contracts.get(key).is_some_and(Contract::is_partial)
    }

    /// Whether a contract that it does not have may exist.
    fn may_have_more(self) -> bool {
        self.extent == Extent::Part || self.contracts.values().any(Contract::is_partial)
    }
}

/// One of two contracts with the same kind of client.
struct Shown<'a> {
    /// That of the side.
    name: &'a str,
    contract: &'a Contract,
    is_part: bool,
}

impl Shown<'_> {
    /// Whether the server did not return this list.
    fn has_failed(&self, method: &str) -> bool {
        self.contract.partial.as_ref().is_some_and(|partial| partial.failed.iter().any(|failed| failed == method))
    }
}

/// What a comparison leaves open.
#[derive(Default)]
struct LeftOpen {
    not_compared: Vec<String>,
    is_inconclusive: bool,
}

/// How many names of items are listed one by one.
const MOST_NAMES: usize = 6;

/// Every difference between the contracts with the same kinds of clients.
pub fn diff(old: Side<'_>, new: Side<'_>) -> ContractDiff {
    let mut changes = Changes::default();
    let mut keys = Vec::new();
    let mut open = LeftOpen::default();
    let partners = pair(old, new);
    for (before, after) in &partners {
        keys.push((*after).clone());
        changes.key = (*after).clone();
        let (mut one, mut other) = (old.contracts[*before].clone(), new.contracts[*after].clone());
        let shown = format!("{} shows what `{before}` is offered, {} what `{after}` is", old.name, new.name);
        for set_aside in [
            may_be_offered_more(before, after).then(|| leave_common(&mut one, &other)),
            may_be_offered_more(after, before).then(|| leave_common(&mut other, &one)),
        ] {
            open.not_compared.extend(set_aside.filter(|names| !names.is_empty()).map(|names| format!("{}: {shown}", enumerated(&names))));
        }
        let before = Shown { name: old.name, contract: &one, is_part: old.is_part(before) };
        let after = Shown { name: new.name, contract: &other, is_part: new.is_part(after) };
        compare(&before, &after, &mut changes, &mut open);
    }
    let era = |key: &str| Visitor::of_key(key).ok().map(|(visitor, _)| visitor.era);
    let eras = |side: Side<'_>| side.contracts.keys().filter_map(|key| era(key)).collect::<BTreeSet<Era>>();
    let (eras_before, eras_after) = (eras(old), eras(new));
    let sides = [
        (old, new, &eras_after, ChangeLevel::Breaking, "era-removed", "is no longer supported"),
        (new, old, &eras_before, ChangeLevel::Compatible, "era-added", "is supported now"),
    ];
    for (side, other, others, level, code, reason) in sides {
        let is_paired = |key: &String| partners.iter().any(|(before, after)| *before == key || *after == key);
        for key in side.contracts.keys().filter(|key| !is_paired(key)) {
            match era(key) {
                Some(era) if !other.may_have_more() && !others.contains(&era) => {
                    changes.key = key.clone();
                    changes.add(level, code, &format!("the {era} era"), "", reason.to_owned());
                }
                // What some client asked is compared with one kind of client; that there are others says nothing.
                Some(era) if (side.is_part(key) || other.may_have_more()) && others.contains(&era) => {}
                _ => open.not_compared.push(format!("{} shows nothing of `{key}`", other.name)),
            }
        }
    }
    let mut changes = changes.all;
    changes.sort_by_key(|change| std::cmp::Reverse((change.level, change.suspicion.is_some())));
    let name = |side: Side<'_>| side.name.to_owned();
    let LeftOpen { not_compared, is_inconclusive } = open;
    ContractDiff { version: FORMAT_VERSION, old: name(old), new: name(new), keys, not_compared, inconclusive: is_inconclusive, changes }
}

/// The keys that are compared with each other. A side that shows what some client happened to ask is compared with any
/// client of its era.
fn pair<'a>(old: Side<'a>, new: Side<'a>) -> Vec<(&'a String, &'a String)> {
    let mut pairs: Vec<(&String, &String)> =
        old.contracts.keys().filter_map(|key| Some((key, new.contracts.get_key_value(key)?.0))).collect();
    let era = |key: &str| Visitor::of_key(key).ok().map(|(visitor, _)| visitor.era);
    for before in old.contracts.keys() {
        let is_free = |after: &String| !pairs.iter().any(|(known, other)| *known == before || *other == after);
        let may_pair = |after: &&String| era(after) == era(before) && (old.is_part(before) || new.is_part(after)) && is_free(after);
        if let Some(after) = new.contracts.keys().find(may_pair) {
            pairs.push((before, after));
        }
    }
    pairs
}

/// Whether the first kind of client may be offered what the second one is not.
fn may_be_offered_more(first: &str, second: &str) -> bool {
    let profile = |key: &str| Visitor::of_key(key).ok().map(|(visitor, _)| visitor.profile);
    first != second && profile(first) != Some(Profile::Minimal) && profile(second) != Some(Profile::Full)
}

/// Leaves of a contract only what the other one has as well, in the lists that both have. Gives the names of the rest.
fn leave_common(contract: &mut Contract, other: &Contract) -> Vec<String> {
    let Contract { tools, prompts, resources, resource_templates, .. } = contract;
    let lists = [
        (tools, &other.tools, "name"),
        (prompts, &other.prompts, "name"),
        (resources, &other.resources, "uri"),
        (resource_templates, &other.resource_templates, "uriTemplate"),
    ];
    let mut others = Vec::new();
    for (items, known, key) in lists {
        let (Some(items), Some(known)) = (items, known) else { continue };
        let known = by_name(known, key);
        let is_known = |item: &Value| known.contains_key(item.get(key).and_then(Value::as_str).unwrap_or_default());
        others.extend(items.iter().filter(|item| !is_known(item)).map(|item| format!("`{}`", item[key].as_str().unwrap_or_default())));
        items.retain(is_known);
    }
    others
}

fn enumerated(names: &[String]) -> String {
    let more = names.len().saturating_sub(MOST_NAMES);
    let named = names[..names.len() - more].join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}

fn compare(before: &Shown<'_>, after: &Shown<'_>, changes: &mut Changes, open: &mut LeftOpen) {
    let (old, new) = (before.contract, after.contract);
    let is_same = old.hashes.full == new.hashes.full;
    if !is_same {
        let part = [before, after].into_iter().find(|side| side.is_part);
        match part {
            None => capabilities::versions(&old.protocol_versions, &new.protocol_versions, changes),
            Some(_) if old.protocol_versions == new.protocol_versions => {}
            Some(part) => open.not_compared.push(format!("revisions: {} shows only those that its client used", part.name)),
        }
        capabilities::compare(&old.capabilities, &new.capabilities, changes);
        text(changes, "the server", "/instructions", "instructions", old.instructions.as_deref(), new.instructions.as_deref());
    }
    let mut list = |name: &str, method: &str, lists: [&Option<Vec<Value>>; 2], compare: fn(&[Value], &[Value], &mut Changes)| {
        let sides = || [before, after].into_iter().zip(lists).filter(|(_, list)| list.is_none()).map(|(side, _)| side);
        if let Some(side) = sides().find(|side| side.has_failed(method)) {
            open.is_inconclusive = true;
            open.not_compared.push(format!("{name}: `{method}` failed in {}", side.name));
        } else if is_same {
            // Nothing in it differs.
        } else if let Some(side) = sides().find(|side| side.is_part && lists.iter().any(|list| list.is_some())) {
            open.not_compared.push(format!("{name}: not listed in {}", side.name));
        } else {
            let [old, new] = lists.map(|list| list.as_deref().unwrap_or_default());
            compare(old, new, changes);
        }
    };
    list("tools", methods::TOOLS_LIST, [&old.tools, &new.tools], tools::compare);
    list("prompts", methods::PROMPTS_LIST, [&old.prompts, &new.prompts], items::prompts);
    list("resources", methods::RESOURCES_LIST, [&old.resources, &new.resources], items::resources);
    let templates = [&old.resource_templates, &new.resource_templates];
    list("resource templates", methods::RESOURCES_TEMPLATES_LIST, templates, items::templates);
    capabilities::server(old.server.as_ref(), new.server.as_ref(), changes);
}

/// The changes so far.
#[derive(Default)]
pub(super) struct Changes {
    /// Of the contracts that are being compared.
    key: String,
    all: Vec<ContractChange>,
    /// Where those of a subject, a place in it and a reason are.
    places: HashMap<(String, String, String), Vec<usize>>,
}

impl Changes {
    fn add(&mut self, level: ChangeLevel, code: &str, subject: &str, pointer: &str, reason: String) {
        self.add_values(level, code, subject, pointer, reason, None, None);
    }

    #[expect(clippy::too_many_arguments, reason = "a change has that many parts")]
    fn add_values(
        &mut self,
        level: ChangeLevel,
        code: &str,
        subject: &str,
        pointer: &str,
        reason: String,
        old: Option<Value>,
        new: Option<Value>,
    ) {
        let suspicion = match (&old, &new) {
            (before, Some(Value::String(text))) => suspicion::of(before.as_ref().and_then(Value::as_str), text),
            _ => None,
        };
        let change = ContractChange {
            level,
            code: code.to_owned(),
            keys: vec![self.key.clone()],
            subject: subject.to_owned(),
            pointer: pointer.to_owned(),
            reason,
            suspicion,
            old,
            new,
        };
        let is_same = |known: &ContractChange| {
            (known.level, &known.code, &known.suspicion) == (change.level, &change.code, &change.suspicion)
                && (&known.old, &known.new) == (&change.old, &change.new)
        };
        let there = self.places.entry((change.subject.clone(), change.pointer.clone(), change.reason.clone())).or_default();
        match there.iter().copied().find(|place| is_same(&self.all[*place])) {
            Some(place) if self.all[place].keys.contains(&self.key) => {}
            // The same change for another kind of client.
            Some(place) => self.all[place].keys.push(self.key.clone()),
            None => {
                there.push(self.all.len());
                self.all.push(change);
            }
        }
    }
}

/// Tells of a text in an item that speaks to models, where no change told of it: it may stand anywhere in a schema. `before` is
/// how many changes were known when the item began.
fn suspicious(changes: &mut Changes, before: usize, subject: &str, old: &Value, new: &Value) {
    if changes.all[before..].iter().any(|change| change.suspicion.is_some()) {
        return;
    }
    if let Some((pointer, text)) = suspicion::anywhere(old, new) {
        let code = "suspicious-text";
        changes.add_values(ChangeLevel::Cosmetic, code, subject, &pointer, "a text is new".into(), None, Some(text.into()));
    }
}

/// A text for people and models.
fn text(changes: &mut Changes, subject: &str, pointer: &str, what: &str, old: Option<&str>, new: Option<&str>) {
    let (code, reason) = match (old, new) {
        (old, new) if old == new => return,
        (None, Some(_)) => (format!("{what}-added"), format!("{what} are new")),
        (Some(_), None) => (format!("{what}-removed"), format!("{what} are gone")),
        _ => (format!("{what}-changed"), format!("{what} changed")),
    };
    let reason = if what == "instructions" { reason } else { reason.replace(" are ", " is ") };
    changes.add_values(ChangeLevel::Cosmetic, &code, subject, pointer, reason, old.map(Value::from), new.map(Value::from));
}

/// Members of an item of which only the name is reported.
fn others(changes: &mut Changes, subject: &str, old: &Value, new: &Value, told: &[&str]) {
    let names = |item: &Value| item.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect::<BTreeSet<String>>();
    for name in names(old).union(&names(new)).filter(|name| !told.contains(&name.as_str())) {
        let (before, after) = (old.get(name), new.get(name));
        if before != after {
            let pointer = super::schema::below("", name);
            let reason = match (before, after) {
                (None, _) => format!("`{name}` is new"),
                (_, None) => format!("`{name}` is gone"),
                _ => format!("`{name}` changed"),
            };
            let (before, after) = (before.cloned(), after.cloned());
            changes.add_values(
                ChangeLevel::Cosmetic,
                &format!("{}-changed", name.trim_start_matches('_').to_lowercase()),
                subject,
                &pointer,
                reason,
                before,
                after,
            );
        }
    }
}

/// Items by their name; those that share one are told apart by nothing, so the first counts.
fn by_name<'a>(items: &'a [Value], key: &str) -> BTreeMap<&'a str, &'a Value> {
    let mut named = BTreeMap::new();
    for item in items {
        named.entry(item.get(key).and_then(Value::as_str).unwrap_or_default()).or_insert(item);
    }
    named
}

#[cfg(test)]
mod tests;
