//! Whether all that one schema accepts is accepted by another, and what is not. What cannot be shown counts as not accepted.
//! Knows sets of values; what it means for a caller that something was lost is for others to say.

use super::admits::{admits, is_multiple};
use super::branch::{ARRAY, BOOLEAN, Bound, Branch, FRACTION, NULL, NUMBER, OBJECT, STRING, TooComplex, Types, concerns, expand};
use super::document::{Document, Node, below, has_reference};
use super::formats;
use super::patterns;
use mcproof_analysis::json_schema::explodes;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};

/// Something that the inner schema accepts and the outer one does not.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Counterexample {
    /// Where it stands in each document, as far as it stands there.
    pub(super) inner: String,
    pub(super) outer: String,
    /// The member that it is about, such as `address.lines[].text`; empty for the whole.
    pub(super) path: String,
    pub(super) what: CounterexampleKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum CounterexampleKind {
    Types {
        lost: Types,
        kept: Types,
    },
    Value(Value),
    /// Values beyond those that are listed.
    Unlisted,
    Alternative,
    /// A keyword that is tighter: as it is in the inner schema, and in the outer.
    Tighter {
        keyword: &'static str,
        inner: Value,
        outer: Value,
    },
    Repetition,
    /// A member that may be missing in the inner schema.
    Absence(String),
    /// A member that the inner schema declares.
    Member(String),
    /// Undeclared members.
    Undeclared,
    /// Only compared as it stands, and it stands differently.
    Uncertain(&'static str),
    TooComplex,
}

/// A member that only one of the schemas declares, and that takes nothing from what is accepted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Declared {
    pub(super) pointer: String,
    /// The path of the object, and the name.
    pub(super) path: String,
    pub(super) name: String,
    pub(super) by: By,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Inner,
    Outer,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Findings {
    pub(super) losses: Vec<Counterexample>,
    pub(super) declared: Vec<Declared>,
}

/// Comparisons of two schemas that are made for one answer.
const MOST_STEPS: usize = 20_000;
/// Values of two schemas that are compared with each other.
const MOST_PAIRS: usize = 4_000_000;
/// Schemas inside each other that are compared.
const DEEPEST: usize = 64;

/// Everything that `inner` accepts and `outer` does not.
pub(super) fn losses(inner: &Document<'_>, outer: &Document<'_>) -> Findings {
    if explodes(inner.root().value) || explodes(outer.root().value) {
        return Findings::of(String::new(), String::new(), "", CounterexampleKind::TooComplex);
    }
    let mut comparison = Comparison { inner, outer, steps: 0, depth: 0, assumed: 0, running: HashSet::new(), contained: HashSet::new() };
    comparison.compare(&[inner.root()], &[outer.root()], "")
}

type Pair = (Vec<String>, Vec<String>);

struct Comparison<'d, 'i, 'o> {
    inner: &'d Document<'i>,
    outer: &'d Document<'o>,
    steps: usize,
    depth: usize,
    /// How often a comparison that is under way was taken to succeed.
    assumed: usize,
    running: HashSet<Pair>,
    /// What is contained beyond doubt.
    contained: HashSet<Pair>,
}

impl<'i, 'o> Comparison<'_, 'i, 'o> {
    fn compare(&mut self, inner: &[Node<'i>], outer: &[Node<'o>], path: &str) -> Findings {
        if outer.is_empty() || self.are_identical(inner, outer) {
            return Findings::default();
        }
        let pointers = |nodes: Vec<&String>| nodes.into_iter().cloned().collect::<Vec<_>>();
        let pair = (pointers(inner.iter().map(|node| &node.pointer).collect()), pointers(outer.iter().map(|node| &node.pointer).collect()));
        if self.contained.contains(&pair) {
            return Findings::default();
        }
        // A schema that refers to itself is contained if nothing else speaks against it.
        if self.running.contains(&pair) {
            self.assumed += 1;
            return Findings::default();
        }
        self.steps += 1;
        if self.steps > MOST_STEPS || self.depth > DEEPEST {
            return Findings::of(place(inner), place(outer), path, CounterexampleKind::TooComplex);
        }
        let assumed = self.assumed;
        self.running.insert(pair.clone());
        self.depth += 1;
        let found = self
            .expanded(inner, outer, path)
            .unwrap_or_else(|TooComplex| Findings::of(place(inner), place(outer), path, CounterexampleKind::TooComplex));
        self.depth -= 1;
        self.running.remove(&pair);
        if found == Findings::default() && assumed == self.assumed {
            self.contained.insert(pair);
        }
        found
    }

    fn are_identical(&self, inner: &[Node<'i>], outer: &[Node<'o>]) -> bool {
        self.inner.dialect() == self.outer.dialect()
            && inner.len() == outer.len()
            && inner.iter().zip(outer).all(|(inner, outer)| inner.value == outer.value && !has_reference(inner.value))
    }

    fn expanded(&mut self, inner: &[Node<'i>], outer: &[Node<'o>], path: &str) -> Result<Findings, TooComplex> {
        let (ours, theirs) = (expand(self.inner, inner)?, expand(self.outer, outer)?);
        let values = |branches: &[Branch<'_>]| branches.iter().filter_map(|branch| branch.values.as_ref()).map(Vec::len).sum::<usize>();
        if values(&ours).saturating_mul(values(&ours) + values(&theirs)) > MOST_PAIRS {
            return Err(TooComplex);
        }
        let mut found = Findings::default();
        let all = |branches: &[Types]| branches.iter().fold(0, |all, types| all | types);
        let ours_in_all = all(&ours.iter().map(|branch| branch.types).collect::<Vec<_>>());
        let theirs_in_all = all(&theirs.iter().map(|branch| branch.types).collect::<Vec<_>>());
        let lost = ours_in_all & !theirs_in_all;
        if lost != 0 {
            found.add(place(inner), place(outer), path, CounterexampleKind::Types { lost, kept: ours_in_all & theirs_in_all });
        }
        for branch in &ours {
            let known: Vec<Value> = match &branch.values {
                Some(values) => values.iter().map(|value| (*value).clone()).collect(),
                None => finite(branch.types),
            };
            for value in known {
                let is_lost_already = super::branch::type_of(&value) & lost != 0;
                let is_theirs =
                    is_lost_already || admits(self.inner, inner, &value) == Some(false) || admits(self.outer, outer, &value) == Some(true);
                if !is_theirs {
                    found.add(place(inner), place(outer), path, CounterexampleKind::Value(value));
                }
            }
        }
        for class in [NUMBER, STRING, ARRAY, OBJECT] {
            let of = |branches: &[Branch<'_>]| -> Vec<usize> {
                branches.iter().enumerate().filter(|(_, branch)| branch.types & class & !lost != 0).map(|(index, _)| index).collect()
            };
            let ours: Vec<&Branch<'i>> = of(&ours).into_iter().map(|index| &ours[index]).filter(|branch| branch.values.is_none()).collect();
            let theirs: Vec<&Branch<'o>> = of(&theirs).into_iter().map(|index| &theirs[index]).collect();
            self.class(class & !lost, &ours, &theirs, path, &mut found)?;
        }
        Ok(found)
    }

    /// Finds for each alternative of ours one of theirs that contains it.
    fn class(
        &mut self,
        class: Types,
        ours: &[&Branch<'i>],
        theirs: &[&Branch<'o>],
        path: &str,
        found: &mut Findings,
    ) -> Result<(), TooComplex> {
        let mut failed = Vec::new();
        let mut taken = BTreeSet::new();
        for branch in ours {
            let types = branch.types & class;
            let mut tried = Vec::new();
            for (index, candidate) in theirs.iter().enumerate() {
                let result = self.alternative(types, branch, candidate, path)?;
                if result.losses.is_empty() {
                    taken.insert(index);
                    found.declared.extend(result.declared);
                    tried.clear();
                    break;
                }
                tried.push((index, result));
            }
            if !tried.is_empty() {
                failed.push((*branch, tried));
            }
        }
        for (branch, mut tried) in failed {
            if ours.len() > 1 {
                tried.retain(|(index, _)| !taken.contains(index));
            }
            match tried.into_iter().min_by_key(|(_, result)| result.losses.len()) {
                Some((_, result)) => found.extend(result),
                None => {
                    let inner = branch.alternative.clone().unwrap_or_else(|| branch.places.last().cloned().unwrap_or_default());
                    found.add(inner, String::new(), path, CounterexampleKind::Alternative);
                }
            }
        }
        Ok(())
    }

    /// What of one alternative, and these of its types, is lost in another.
    fn alternative(&mut self, types: Types, ours: &Branch<'i>, theirs: &Branch<'o>, path: &str) -> Result<Findings, TooComplex> {
        let mut found = Findings::default();
        let at = |keyword: &str| (self.place_of(self.inner, &ours.places, keyword), self.place_of(self.outer, &theirs.places, keyword));
        let mut lose = |keyword: &str, what: CounterexampleKind| {
            let (inner, outer) = at(keyword);
            found.add(inner, outer, path, what);
        };
        let lost = types & !theirs.types;
        if lost != 0 {
            lose("type", CounterexampleKind::Types { lost, kept: types & theirs.types });
        }
        if theirs.values.is_some() {
            lose("enum", CounterexampleKind::Unlisted);
            return Ok(found);
        }
        for (keyword, value) in theirs.opaque.iter().filter(|(keyword, _)| concerns(keyword, types)) {
            let is_ours = ours.opaque.iter().any(|(known, ours)| known == keyword && ours == value);
            if !is_ours || (has_reference(value) && self.inner.root().value != self.outer.root().value) {
                lose(keyword, CounterexampleKind::Uncertain(keyword));
            }
        }
        let mut count = |keyword: &'static str, ours: Value, theirs: Value, is_tighter: bool| {
            if is_tighter {
                lose(keyword, CounterexampleKind::Tighter { keyword, inner: ours, outer: theirs });
            }
        };
        let is_less = |ours: Option<u64>, theirs: Option<u64>| theirs.is_some_and(|theirs| ours.is_none_or(|ours| ours > theirs));
        match types {
            STRING => {
                count("minLength", json!(ours.shortest), json!(theirs.shortest), ours.shortest < theirs.shortest);
                count("maxLength", json!(ours.longest), json!(theirs.longest), is_less(ours.longest, theirs.longest));
                for pattern in theirs.patterns.difference(&ours.patterns) {
                    let is_implied = ours.patterns.iter().any(|known| patterns::is_contained(known, pattern) == Some(true));
                    count("pattern", text_of(&ours.patterns), json!(pattern), !is_implied);
                }
                for format in theirs.formats.iter().filter(|format| formats::is_known(format)) {
                    let is_implied = ours.formats.iter().any(|known| formats::implies(known, format));
                    count("format", text_of(&ours.formats), json!(format), !is_implied);
                }
            }
            ARRAY => {
                count("minItems", json!(ours.fewest_items), json!(theirs.fewest_items), ours.fewest_items < theirs.fewest_items);
                count("maxItems", json!(ours.most_items), json!(theirs.most_items), is_less(ours.most_items, theirs.most_items));
                if theirs.is_unique && !ours.is_unique {
                    lose("uniqueItems", CounterexampleKind::Repetition);
                }
                self.items(ours, theirs, path, &mut found)?;
            }
            OBJECT => {
                count(
                    "minProperties",
                    json!(ours.fewest_members),
                    json!(theirs.fewest_members),
                    ours.fewest_members < theirs.fewest_members,
                );
                count(
                    "maxProperties",
                    json!(ours.most_members),
                    json!(theirs.most_members),
                    is_less(ours.most_members, theirs.most_members),
                );
                for name in theirs.required.difference(&ours.required) {
                    lose("required", CounterexampleKind::Absence((*name).to_owned()));
                }
                self.members(ours, theirs, path, &mut found)?;
            }
            _ => {
                let is_whole = types & FRACTION == 0;
                let (ours_low, theirs_low) =
                    (of_whole(ours.lowest, is_whole, f64::ceil, 1.0), of_whole(theirs.lowest, is_whole, f64::ceil, 1.0));
                let (ours_high, theirs_high) =
                    (of_whole(ours.highest, is_whole, f64::floor, -1.0), of_whole(theirs.highest, is_whole, f64::floor, -1.0));
                count("minimum", shown(ours.lowest), shown(theirs.lowest), is_tighter(ours_low, theirs_low, |ours, theirs| ours < theirs));
                count(
                    "maximum",
                    shown(ours.highest),
                    shown(theirs.highest),
                    is_tighter(ours_high, theirs_high, |ours, theirs| ours > theirs),
                );
                for step in &theirs.steps {
                    let is_kept = ours.steps.iter().any(|ours| is_multiple(*ours, *step)) || (is_whole && is_multiple(1.0, *step));
                    count("multipleOf", json!(ours.steps.first()), number(*step), !is_kept);
                }
            }
        }
        Ok(found)
    }

    fn items(&mut self, ours: &Branch<'i>, theirs: &Branch<'o>, path: &str, found: &mut Findings) -> Result<(), TooComplex> {
        let places = ours.places_of_items().max(theirs.places_of_items());
        let can_have = |index: usize| ours.most_items.is_none_or(|most| index < usize::try_from(most).unwrap_or(usize::MAX));
        for index in 0..places {
            let item = ours.item(index);
            // Where no item can stand, none can stand behind it.
            if !can_have(index) || expand(self.inner, &item)?.is_empty() {
                return Ok(());
            }
            found.extend(self.compare(&item, &theirs.item(index), &format!("{path}[{index}]")));
        }
        if can_have(places) {
            found.extend(self.compare(&ours.rest(), &theirs.rest(), &format!("{path}[]")));
        }
        Ok(())
    }

    fn members(&mut self, ours: &Branch<'i>, theirs: &Branch<'o>, path: &str, found: &mut Findings) -> Result<(), TooComplex> {
        let (in_ours, in_theirs) = (ours.declared(), theirs.declared());
        for name in in_ours.union(&in_theirs).copied().collect::<BTreeSet<&str>>() {
            let inside = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            let (member, counterpart) = (ours.member(name)?, theirs.member(name)?);
            let inner = self.place_of(self.inner, &ours.places, &format!("properties{}", below("", name)));
            let outer = self.place_of(self.outer, &theirs.places, &format!("properties{}", below("", name)));
            let note = |pointer: &str, by| Declared { pointer: pointer.to_owned(), path: path.to_owned(), name: name.to_owned(), by };
            match (in_ours.contains(name), in_theirs.contains(name)) {
                (true, both) => {
                    if expand(self.inner, &member)?.is_empty() {
                        continue;
                    }
                    if expand(self.outer, &counterpart)?.is_empty() {
                        found.add(inner, outer, path, CounterexampleKind::Member(name.to_owned()));
                        continue;
                    }
                    if !both {
                        found.declared.push(note(&inner, By::Inner));
                    }
                    found.extend(self.compare(&member, &counterpart, &inside));
                }
                (false, _) => {
                    // Nobody sends what was never declared, so it does not count what the outer schema makes of it.
                    if member.iter().any(|schema| *schema.value != Value::Bool(true)) {
                        found.extend(self.compare(&member, &counterpart, &inside));
                    }
                    if !theirs.required.contains(name) || ours.required.contains(name) {
                        found.declared.push(note(&outer, By::Outer));
                    }
                }
            }
        }
        let others = if path.is_empty() { "*".to_owned() } else { format!("{path}.*") };
        let mut undeclared: Vec<(Vec<Node<'i>>, Vec<Node<'o>>)> = vec![(ours.others(), theirs.others())];
        for pattern in ours.name_patterns() {
            undeclared.push((ours.named_like(pattern), theirs.named_like(pattern)));
        }
        if theirs.name_patterns().len().saturating_mul(ours.name_patterns().len()) > MOST_STEPS {
            return Err(TooComplex);
        }
        for pattern in theirs.name_patterns().difference(&ours.name_patterns()) {
            undeclared.push((ours.others(), theirs.named_like(pattern)));
            for known in ours.name_patterns() {
                undeclared.push((ours.named_like(known), theirs.named_like(pattern)));
            }
        }
        for (some, counterpart) in undeclared {
            if !expand(self.inner, &some)?.is_empty() && expand(self.outer, &counterpart)?.is_empty() {
                let place = |document: &Document<'_>, places: &[String]| self.place_of(document, places, "additionalProperties");
                found.add(place(self.inner, &ours.places), place(self.outer, &theirs.places), path, CounterexampleKind::Undeclared);
            } else {
                found.extend(self.compare(&some, &counterpart, &others));
            }
        }
        Ok(())
    }

    /// Where a keyword stands, among the schemas that make up an alternative.
    fn place_of(&self, document: &Document<'_>, places: &[String], keyword: &str) -> String {
        let at = |place: &String| format!("{place}/{keyword}");
        let found = places.iter().map(at).find(|pointer| document.has(pointer));
        // `exclusiveMinimum` does the work of `minimum`, `const` that of `enum`.
        let instead = match keyword {
            "minimum" => "exclusiveMinimum",
            "maximum" => "exclusiveMaximum",
            "enum" => "const",
            _ => keyword,
        };
        found.or_else(|| places.iter().map(|place| format!("{place}/{instead}")).find(|pointer| document.has(pointer))).unwrap_or_default()
    }
}

impl Findings {
    fn of(inner: String, outer: String, path: &str, what: CounterexampleKind) -> Self {
        Self { losses: vec![Counterexample { inner, outer, path: path.to_owned(), what }], declared: Vec::new() }
    }

    fn add(&mut self, inner: String, outer: String, path: &str, what: CounterexampleKind) {
        self.losses.push(Counterexample { inner, outer, path: path.to_owned(), what });
    }

    fn extend(&mut self, other: Self) {
        self.losses.extend(other.losses);
        self.declared.extend(other.declared);
    }
}

fn place(nodes: &[Node<'_>]) -> String {
    nodes.first().map(|node| node.pointer.clone()).unwrap_or_default()
}

/// All values of the types that have few.
fn finite(types: Types) -> Vec<Value> {
    let mut values = Vec::new();
    if types & NULL != 0 {
        values.push(Value::Null);
    }
    if types & BOOLEAN != 0 {
        values.extend([json!(true), json!(false)]);
    }
    values
}

/// A bound as whole numbers know it: the next one that it lets through.
fn of_whole(bound: Option<Bound>, is_whole: bool, round: fn(f64) -> f64, inward: f64) -> Option<Bound> {
    bound.map(|bound| match is_whole {
        true if bound.is_exclusive && round(bound.value) == bound.value => Bound { value: bound.value + inward, is_exclusive: false },
        true => Bound { value: round(bound.value), is_exclusive: false },
        false => bound,
    })
}

fn is_tighter(ours: Option<Bound>, theirs: Option<Bound>, is_beyond: fn(f64, f64) -> bool) -> bool {
    match (ours, theirs) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(ours), Some(theirs)) => {
            is_beyond(ours.value, theirs.value) || (ours.value == theirs.value && theirs.is_exclusive && !ours.is_exclusive)
        }
    }
}

/// A bound as people write it.
fn shown(bound: Option<Bound>) -> Value {
    match bound {
        None => Value::Null,
        Some(Bound { value, is_exclusive: false }) => number(value),
        Some(Bound { value, is_exclusive: true }) => json!(format!("{} (exclusive)", number(value))),
    }
}

fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}

fn text_of(set: &BTreeSet<&str>) -> Value {
    match set.iter().collect::<Vec<_>>().as_slice() {
        [] => Value::Null,
        [one] => json!(one),
        several => json!(several),
    }
}
