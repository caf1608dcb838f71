//! A schema as alternatives, each of which is a plain list of what has to hold. Knows keywords, not what is compared.

use super::document::{Dialect, Document, Node, stripped};
use super::overlap;
use crate::hash::canonical;
use regex::Regex;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A set of JSON types; whole numbers and fractions count as two.
pub(super) type Types = u8;

pub(super) const NULL: Types = 1;
pub(super) const BOOLEAN: Types = 2;
pub(super) const INTEGER: Types = 4;
pub(super) const FRACTION: Types = 8;
pub(super) const STRING: Types = 16;
pub(super) const ARRAY: Types = 32;
pub(super) const OBJECT: Types = 64;
pub(super) const NUMBER: Types = INTEGER | FRACTION;
const EVERY: Types = 127;

/// More alternatives than this are not distinguished.
const MOST_BRANCHES: usize = 256;

/// A schema that has too many alternatives to be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooComplex;

/// The least or the largest number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound {
    pub(super) value: f64,
    pub(super) is_exclusive: bool,
}

/// What one alternative demands.
#[derive(Clone, Debug)]
pub(super) struct Branch<'a> {
    pub(super) types: Types,
    /// `enum` and `const`.
    pub(super) values: Option<Vec<&'a Value>>,
    pub(super) lowest: Option<Bound>,
    pub(super) highest: Option<Bound>,
    pub(super) steps: Vec<f64>,
    pub(super) shortest: u64,
    pub(super) longest: Option<u64>,
    pub(super) patterns: BTreeSet<&'a str>,
    pub(super) formats: BTreeSet<&'a str>,
    pub(super) fewest_items: u64,
    pub(super) most_items: Option<u64>,
    pub(super) is_unique: bool,
    pub(super) arrays: Vec<ArrayPart<'a>>,
    pub(super) required: BTreeSet<&'a str>,
    pub(super) fewest_members: u64,
    pub(super) most_members: Option<u64>,
    pub(super) objects: Vec<ObjectPart<'a>>,
    /// What is only compared as it stands: the keyword, and its value without annotations.
    pub(super) opaque: Vec<(&'static str, Value)>,
    /// Where the keywords came from, and the alternative itself if it is one.
    pub(super) places: Vec<String>,
    pub(super) alternative: Option<String>,
}

/// What one schema requires of the items of an array.
#[derive(Clone, Debug)]
pub(super) struct ArrayPart<'a> {
    pub(super) first: Vec<Node<'a>>,
    pub(super) rest: Option<Node<'a>>,
}

/// What one schema requires of the members of an object.
#[derive(Clone, Debug)]
pub(super) struct ObjectPart<'a> {
    node: Node<'a>,
    patterns: BTreeMap<&'a str, Option<Regex>>,
    pub(super) additional: Option<Node<'a>>,
}

impl Default for Branch<'_> {
    fn default() -> Self {
        Self {
            types: EVERY,
            values: None,
            lowest: None,
            highest: None,
            steps: Vec::new(),
            shortest: 0,
            longest: None,
            patterns: BTreeSet::new(),
            formats: BTreeSet::new(),
            fewest_items: 0,
            most_items: None,
            is_unique: false,
            arrays: Vec::new(),
            required: BTreeSet::new(),
            fewest_members: 0,
            most_members: None,
            objects: Vec::new(),
            opaque: Vec::new(),
            places: Vec::new(),
            alternative: None,
        }
    }
}

/// The alternatives of schemas that all have to hold. None at all accept nothing.
pub(super) fn expand<'a>(document: &Document<'a>, all: &[Node<'a>]) -> Result<Vec<Branch<'a>>, TooComplex> {
    let mut branches = vec![Branch::default()];
    for node in all {
        branches = with(document, branches, node, &mut Vec::new())?;
    }
    Ok(branches)
}

/// As [`expand`], inside of what some references led to.
pub(super) fn expand_below<'a>(
    document: &Document<'a>,
    node: &Node<'a>,
    following: &mut Vec<String>,
) -> Result<Vec<Branch<'a>>, TooComplex> {
    with(document, vec![Branch::default()], node, following)
}

fn with<'a>(
    document: &Document<'a>,
    mut branches: Vec<Branch<'a>>,
    node: &Node<'a>,
    following: &mut Vec<String>,
) -> Result<Vec<Branch<'a>>, TooComplex> {
    let keywords = match node.value {
        Value::Bool(false) => return Ok(Vec::new()),
        Value::Object(keywords) => keywords,
        _ => return Ok(branches),
    };
    if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
        match document.resolve(reference) {
            // A schema that is nothing but itself demands nothing.
            Some(target) if following.contains(&target.pointer) => {}
            Some(target) => {
                following.push(target.pointer.clone());
                branches = with(document, branches, &target, following)?;
                following.pop();
            }
            None => branches.iter_mut().for_each(|branch| branch.opaque.push(("$ref", reference.into()))),
        }
        if document.dialect() == Dialect::Draft7 {
            return Ok(branches);
        }
    }
    let own = Branch::of(document.dialect(), node, keywords);
    branches = branches.into_iter().filter_map(|branch| branch.and(&own)).collect();
    for part in node.each("allOf") {
        branches = with(document, branches, &part, following)?;
    }
    for keyword in ["anyOf", "oneOf"] {
        let options = node.each(keyword);
        if options.is_empty() {
            continue;
        }
        let is_apart = keyword == "anyOf" || overlap::are_apart(document, &options, following)?;
        let mut all = Vec::new();
        for option in options {
            for mut branch in with(document, branches.clone(), &option, following)? {
                branch.alternative = Some(option.pointer.clone());
                if !is_apart {
                    branch.opaque.push(("oneOf", stripped(&keywords[keyword])));
                }
                all.push(branch);
            }
            if all.len() > MOST_BRANCHES {
                return Err(TooComplex);
            }
        }
        branches = all;
    }
    Ok(branches)
}

/// Keywords that are compared as they stand, with the types that they are about.
const OPAQUE: [(&str, Types); 12] = [
    ("not", EVERY),
    ("if", EVERY),
    ("then", EVERY),
    ("else", EVERY),
    ("$dynamicRef", EVERY),
    ("contains", ARRAY),
    ("minContains", ARRAY),
    ("maxContains", ARRAY),
    ("unevaluatedItems", ARRAY),
    ("propertyNames", OBJECT),
    ("dependentRequired", OBJECT),
    ("dependentSchemas", OBJECT),
];
const OPAQUE_ELSEWHERE: [(&str, Types); 4] =
    [("dependencies", OBJECT), ("unevaluatedProperties", OBJECT), ("$recursiveRef", EVERY), ("oneOf", EVERY)];

/// Whether a keyword applies to any of these types.
pub(super) fn concerns(keyword: &str, types: Types) -> bool {
    OPAQUE.iter().chain(&OPAQUE_ELSEWHERE).find(|(known, _)| *known == keyword).is_none_or(|(_, about)| about & types != 0)
}

impl<'a> Branch<'a> {
    fn of(dialect: Dialect, node: &Node<'a>, keywords: &'a Map<String, Value>) -> Self {
        let count = |keyword: &str| keywords.get(keyword).and_then(Value::as_f64).filter(|count| *count >= 0.0).map(|count| count as u64);
        let text = |keyword: &str| keywords.get(keyword).and_then(Value::as_str);
        let fixed = keywords.get("const").map(|value| vec![value]);
        let listed = keywords.get("enum").and_then(Value::as_array).map(|values| values.iter().collect::<Vec<_>>());
        let required = keywords.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let (first, rest) = items(dialect, node);
        let arrays = if first.is_empty() && rest.is_none() { Vec::new() } else { vec![ArrayPart { first, rest }] };
        let has_members = ["properties", "patternProperties", "additionalProperties"].iter().any(|keyword| keywords.contains_key(*keyword));
        let opaque = OPAQUE.iter().chain(&OPAQUE_ELSEWHERE[..3]).filter_map(|(keyword, _)| {
            let value = keywords.get(*keyword)?;
            let is_idle = match *keyword {
                "then" | "else" => !keywords.contains_key("if"),
                "if" => !keywords.contains_key("then") && !keywords.contains_key("else"),
                "minContains" | "maxContains" => !keywords.contains_key("contains"),
                "unevaluatedItems" | "unevaluatedProperties" | "propertyNames" => *value == Value::Bool(true),
                _ => false,
            };
            (!is_idle).then(|| (*keyword, stripped(value)))
        });
        let mut own = Self {
            types: keywords.get("type").map_or(EVERY, types),
            values: listed,
            lowest: bound(keywords, "minimum", "exclusiveMinimum", f64::max),
            highest: bound(keywords, "maximum", "exclusiveMaximum", f64::min),
            steps: keywords.get("multipleOf").and_then(Value::as_f64).filter(|step| *step > 0.0).into_iter().collect(),
            shortest: count("minLength").unwrap_or(0),
            longest: count("maxLength"),
            patterns: text("pattern").into_iter().collect(),
            formats: text("format").into_iter().collect(),
            fewest_items: count("minItems").unwrap_or(0),
            most_items: count("maxItems"),
            is_unique: keywords.get("uniqueItems") == Some(&Value::Bool(true)),
            arrays,
            required: required.collect(),
            fewest_members: count("minProperties").unwrap_or(0),
            most_members: count("maxProperties"),
            objects: if has_members { vec![ObjectPart::of(node)] } else { Vec::new() },
            opaque: opaque.collect(),
            places: vec![node.pointer.clone()],
            alternative: None,
        };
        if let Some(fixed) = fixed {
            own.values = Some(both(own.values, Some(fixed)).unwrap_or_default());
        }
        own
    }

    /// What both demand; `None` if nothing can fulfil it.
    fn and(mut self, other: &Self) -> Option<Self> {
        self.types &= other.types;
        self.values = both(self.values, other.values.clone());
        self.lowest = tighter(self.lowest, other.lowest, |one, two| one > two);
        self.highest = tighter(self.highest, other.highest, |one, two| one < two);
        self.steps.extend(&other.steps);
        self.shortest = self.shortest.max(other.shortest);
        self.longest = least(self.longest, other.longest);
        self.patterns.extend(&other.patterns);
        self.formats.extend(&other.formats);
        self.fewest_items = self.fewest_items.max(other.fewest_items);
        self.most_items = least(self.most_items, other.most_items);
        self.is_unique |= other.is_unique;
        self.arrays.extend(other.arrays.iter().cloned());
        self.required.extend(&other.required);
        self.fewest_members = self.fewest_members.max(other.fewest_members);
        self.most_members = least(self.most_members, other.most_members);
        self.objects.extend(other.objects.iter().cloned());
        self.opaque.extend(other.opaque.iter().cloned());
        self.places.extend(other.places.iter().cloned());
        if let Some(values) = &mut self.values {
            values.retain(|value| type_of(value) & self.types != 0);
            self.types &= values.iter().fold(0, |types, value| types | type_of(value));
        }
        (self.types != 0).then_some(self)
    }

    /// What has to hold for an item of an array.
    pub(super) fn item(&self, index: usize) -> Vec<Node<'a>> {
        self.arrays.iter().filter_map(|part| part.first.get(index).or(part.rest.as_ref()).cloned()).collect()
    }

    /// What has to hold for all items behind those that have places of their own.
    pub(super) fn rest(&self) -> Vec<Node<'a>> {
        self.arrays.iter().filter_map(|part| part.rest.clone()).collect()
    }

    pub(super) fn places_of_items(&self) -> usize {
        self.arrays.iter().map(|part| part.first.len()).max().unwrap_or(0)
    }

    /// Members that have a name.
    pub(super) fn declared(&self) -> BTreeSet<&'a str> {
        let named = |part: &ObjectPart<'a>| part.node.value.get("properties").and_then(Value::as_object);
        self.objects.iter().filter_map(named).flatten().map(|(name, _)| name.as_str()).collect()
    }

    /// Patterns of names.
    pub(super) fn name_patterns(&self) -> BTreeSet<&'a str> {
        self.objects.iter().flat_map(|part| part.patterns.keys().copied()).collect()
    }

    /// What has to hold for a member of this name.
    pub(super) fn member(&self, name: &str) -> Result<Vec<Node<'a>>, TooComplex> {
        let mut all = Vec::new();
        for part in &self.objects {
            all.extend(part.member(name)?);
        }
        Ok(all)
    }

    /// What has to hold for members whose names fit this pattern and are not declared.
    pub(super) fn named_like(&self, pattern: &str) -> Vec<Node<'a>> {
        let of = |part: &ObjectPart<'a>| part.node.named("patternProperties", pattern).or_else(|| part.additional.clone());
        self.objects.iter().filter_map(of).collect()
    }

    /// What has to hold for all other members.
    pub(super) fn others(&self) -> Vec<Node<'a>> {
        self.objects.iter().filter_map(|part| part.additional.clone()).collect()
    }
}

impl<'a> ObjectPart<'a> {
    fn of(node: &Node<'a>) -> Self {
        let patterns = node.value.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
        Self {
            patterns: patterns.map(|(pattern, _)| (pattern.as_str(), Regex::new(pattern).ok())).collect(),
            additional: node.below("additionalProperties"),
            node: node.clone(),
        }
    }

    fn member(&self, name: &str) -> Result<Vec<Node<'a>>, TooComplex> {
        let mut found: Vec<Node<'a>> = self.node.named("properties", name).into_iter().collect();
        for (pattern, compiled) in &self.patterns {
            if compiled.as_ref().ok_or(TooComplex)?.is_match(name) {
                found.extend(self.node.named("patternProperties", pattern));
            }
        }
        if found.is_empty() {
            found.extend(self.additional.clone());
        }
        Ok(found)
    }
}

/// The type that a value has.
pub(super) fn type_of(value: &Value) -> Types {
    match value {
        Value::Null => NULL,
        Value::Bool(_) => BOOLEAN,
        Value::Number(number) if number.as_f64().is_none_or(|number| number.fract() == 0.0) => INTEGER,
        Value::Number(_) => FRACTION,
        Value::String(_) => STRING,
        Value::Array(_) => ARRAY,
        Value::Object(_) => OBJECT,
    }
}

/// Whether two values are equal in JSON Schema: 1 and 1.0 are, and the order of members does not count.
pub(super) fn are_equal(one: &Value, two: &Value) -> bool {
    one == two || canonical(one) == canonical(two)
}

fn types(named: &Value) -> Types {
    let one = |name: &Value| match name.as_str() {
        Some("null") => NULL,
        Some("boolean") => BOOLEAN,
        Some("integer") => INTEGER,
        Some("number") => NUMBER,
        Some("string") => STRING,
        Some("array") => ARRAY,
        Some("object") => OBJECT,
        _ => 0,
    };
    match named {
        Value::Array(names) => names.iter().fold(0, |types, name| types | one(name)),
        name => one(name),
    }
}

/// Items with a place of their own, and all others. Before 2020-12 a list of `items` was what `prefixItems` is now.
fn items<'a>(dialect: Dialect, node: &Node<'a>) -> (Vec<Node<'a>>, Option<Node<'a>>) {
    match node.value.get("items") {
        Some(Value::Array(_)) => (node.each("items"), node.below("additionalItems")),
        _ if dialect == Dialect::Draft7 => (Vec::new(), node.below("items")),
        _ => (node.each("prefixItems"), node.below("items")),
    }
}

/// A bound and its exclusive form, which draft-04 has as a boolean.
fn bound(keywords: &Map<String, Value>, plain: &str, exclusive: &str, tighter: fn(f64, f64) -> f64) -> Option<Bound> {
    let number = |keyword: &str| keywords.get(keyword).and_then(Value::as_f64);
    let is_exclusive = keywords.get(exclusive) == Some(&Value::Bool(true));
    match (number(plain), number(exclusive)) {
        (Some(plain), Some(exclusive)) if tighter(plain, exclusive) != exclusive => Some(Bound { value: plain, is_exclusive: false }),
        (_, Some(exclusive)) => Some(Bound { value: exclusive, is_exclusive: true }),
        (Some(plain), None) => Some(Bound { value: plain, is_exclusive }),
        (None, None) => None,
    }
}

fn tighter(one: Option<Bound>, two: Option<Bound>, is_tighter: fn(f64, f64) -> bool) -> Option<Bound> {
    match (one, two) {
        (Some(one), Some(two)) if is_tighter(one.value, two.value) => Some(one),
        (Some(one), Some(two)) if one.value == two.value => {
            Some(Bound { value: one.value, is_exclusive: one.is_exclusive | two.is_exclusive })
        }
        (one, two) => two.or(one),
    }
}

fn least(one: Option<u64>, two: Option<u64>) -> Option<u64> {
    one.into_iter().chain(two).min()
}

/// The values that are in both lists.
fn both<'a>(one: Option<Vec<&'a Value>>, two: Option<Vec<&'a Value>>) -> Option<Vec<&'a Value>> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.into_iter().filter(|value| two.iter().any(|known| are_equal(known, value))).collect()),
        (one, two) => one.or(two),
    }
}
