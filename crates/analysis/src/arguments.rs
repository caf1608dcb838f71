//! Arguments made from a JSON Schema: the least that it accepts, and what it does not. Knows schemas, no tools.
//!
//! Whatever is made is held against the schema before it is given out, so that a schema that asks for more than is
//! understood here gives nothing rather than something wrong.

mod texts;

use crate::json_schema::Schema;
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::collections::HashSet;
pub use texts::WORD;

/// Schemas inside each other that are followed.
const DEEPEST: usize = 24;
/// Schemas that are looked at for one value; references may multiply without end.
const MOST_STEPS: usize = 5_000;
/// What a tool can count up to without taking its time.
const MOST_AT_ONCE: f64 = 100_000.0;
/// Items of an array, or characters beyond what is natural, that a schema may ask for.
const MOST_ITEMS: u64 = 1_000;

/// Arguments with one thing about them, and the property that has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    pub property: String,
    pub arguments: Value,
}

/// What is unusual and no mistake of a client, or one that a server has to bear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusual {
    /// A property that nobody declared.
    Extra,
    Null,
    /// The least and the greatest number, the shortest text, no items.
    Boundary,
    Unicode,
    /// A text of one mebibyte.
    Large,
}

impl Unusual {
    pub const EVERY: [Self; 5] = [Self::Extra, Self::Null, Self::Boundary, Self::Unicode, Self::Large];

    /// The probe under which a rule finds that it was tried.
    pub fn probe(self) -> &'static str {
        match self {
            Self::Extra => "call-extra-argument",
            Self::Null => "call-null-argument",
            Self::Boundary => "call-boundary-argument",
            Self::Unicode => "call-unicode-argument",
            Self::Large => "call-large-argument",
        }
    }

    /// Behind "a call with".
    pub fn told(self) -> &'static str {
        match self {
            Self::Extra => "an undeclared argument",
            Self::Null => "`null` for an argument",
            Self::Boundary => "the least values of its arguments",
            Self::Unicode => "a string of unusual characters",
            Self::Large => "a string of 1 MiB",
        }
    }

    /// Whether a tool that answers at once may well take its time with this: to count up to the greatest number, or to wait.
    pub fn may_take_long(self, variant: &Variant) -> bool {
        let numbers = || variant.arguments.as_object().into_iter().flatten().filter(|(_, value)| value.is_number());
        self == Self::Boundary
            && numbers().any(|(name, value)| is_amount(name) || value.as_f64().is_some_and(|number| number > MOST_AT_ONCE))
    }
}

/// The arguments that a schema accepts, with required properties only; `None` if none were found.
pub fn minimal(schema: &Value) -> Option<Value> {
    let judged = Schema::of(schema).ok()?;
    [Source::Suggested, Source::Types].into_iter().find_map(|source| {
        let maker = Maker { root: schema, source, steps: Cell::new(MOST_STEPS) };
        let made = maker.value(schema, "", 0)?;
        (made.is_object() && judged.is_valid(&made) == Ok(true)).then_some(made)
    })
}

/// Valid arguments in which made-up numbers differ from one another and from what changes nothing in a sum, a product or a power, made-up texts
/// differ from one another, and made-up lists have an item: so that it shows if a tool mixes up its arguments, or passes over them. Where
/// there are two such numbers, once more the other way round: the first of a pair may have to be the greater one. Empty if there is nothing
/// to change.
pub fn telling(schema: &Value, valid: &Value) -> Vec<Value> {
    let mut reversed = TELLING;
    reversed.swap(0, 1);
    let mut made: Vec<Value> = [TELLING, reversed].iter().filter_map(|numbers| telling_with(schema, valid, numbers)).collect();
    made.dedup();
    made
}

fn telling_with(schema: &Value, valid: &Value, numbers: &[i64]) -> Option<Value> {
    let judged = Schema::of(schema).ok()?;
    let maker = Maker { root: schema, source: Source::Suggested, steps: Cell::new(MOST_STEPS) };
    let mut arguments = valid.clone();
    let (mut numbers, mut amounts, mut texts) = (numbers.iter(), 1.., 1..);
    for (property, value) in valid.as_object()?.iter().take(MOST_PROPERTIES) {
        let Some(inner) = property_schema(schema, property).and_then(Value::as_object).and_then(|inner| maker.flattened(inner, 0)) else {
            continue;
        };
        let is_meant = ["const", "enum", "examples", "example", "default"].iter().any(|keyword| inner.contains_key(*keyword));
        let other = match value {
            _ if is_meant || is_place(property) => None,
            Value::Number(_) if begins(property) => Some(json!(LOW)),
            Value::Number(_) if ends(property) => Some(json!(HIGH)),
            Value::Number(_) if is_amount(property) => amounts.next().map(|amount: i64| json!(amount)),
            Value::Number(_) => numbers.next().map(|number| json!(number)),
            Value::String(text) if *text == WORD => {
                texts.next().filter(|number| *number > 1).map(|number: i64| json!(format!("{WORD}{number}")))
            }
            Value::Array(items) if items.is_empty() => maker.filled(&inner, property, 1),
            _ => None,
        };
        if let Some(changed) = other.and_then(|other| valid_with(&judged, &arguments, property, other)) {
            arguments = changed.arguments;
        }
    }
    (arguments != *valid).then_some(arguments)
}

/// The first for a number that is alone. Two of them are more often a beginning and an end than the other way round.
const TELLING: [i64; 5] = [3, 5, 2, 7, 11];

/// Of what begins at one number and ends at another one.
const LOW: i64 = 2;
const HIGH: i64 = 9;

/// Whether a number of this name is the lower one of two.
fn begins(name: &str) -> bool {
    words(name).iter().any(|word| ["start", "begin", "from", "min", "minimum", "low", "lower"].contains(&word.as_str()))
}

/// Whether it is the higher one.
fn ends(name: &str) -> bool {
    words(name).iter().any(|word| ["end", "to", "until", "max", "maximum", "high", "upper", "total"].contains(&word.as_str()))
}

/// `start_line` and `startLine` in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in name.chars() {
        let begins_word = !letter.is_alphanumeric() || letter.is_uppercase();
        match words.last_mut() {
            Some(word) if !begins_word => word.push(letter),
            _ => words.push(letter.to_lowercase().filter(|letter| letter.is_alphanumeric()).collect()),
        }
    }
    words
}

/// Whether a number of this name says how much is done or how long it takes, or names something that may not be there: the least are
/// the best.
fn is_amount(name: &str) -> bool {
    const AMOUNTS: [&str; 17] = [
        "second",
        "minutes",
        "hours",
        "milli",
        "delay",
        "timeout",
        "duration",
        "wait",
        "sleep",
        "interval",
        "count",
        "limit",
        "times",
        "repeat",
        "depth",
        "iteration",
        "steps",
    ];
    let folded = name.to_ascii_lowercase();
    let is_id = folded == "id" || folded.ends_with("_id") || folded.ends_with("-id") || name.ends_with("Id");
    is_id || folded.ends_with("ms") || AMOUNTS.iter().any(|amount| folded.contains(amount))
}

/// Whether a number of this name is a place among things of which there may be no more than one.
fn is_place(name: &str) -> bool {
    let folded = name.to_ascii_lowercase();
    ["page", "offset", "index", "port"].iter().any(|place| folded.contains(place))
}

/// Valid arguments with every declared property that takes a value beside the others; `None` if there is nothing to add.
pub fn complete(schema: &Value, valid: &Value) -> Option<Value> {
    let judged = Schema::of(schema).ok()?;
    let maker = Maker { root: schema, source: Source::Other, steps: Cell::new(MOST_STEPS) };
    let mut arguments = valid.clone();
    for property in properties(schema, valid).into_iter().take(MOST_PROPERTIES) {
        let value = property_schema(schema, &property).and_then(|inner| maker.value(inner, &property, 1));
        if valid.get(&property).is_none()
            && let Some(more) = value.and_then(|value| valid_with(&judged, &arguments, &property, value))
        {
            arguments = more.arguments;
        }
    }
    (arguments != *valid).then_some(arguments)
}

/// Valid arguments in which every declared property has another of its values each time: of an enumeration, of a choice of schemas,
/// true and false, below zero and with a fraction, no items, one and two. As many as the property with the most of them needs, but no
/// more than `most`.
pub fn alternatives(schema: &Value, valid: &Value, most: usize) -> Vec<Value> {
    let Ok(judged) = Schema::of(schema) else { return Vec::new() };
    let maker = Maker { root: schema, source: Source::Other, steps: Cell::new(MOST_STEPS) };
    let base = complete(schema, valid).unwrap_or_else(|| valid.clone());
    let mut values = Vec::new();
    for property in properties(schema, valid).into_iter().take(MOST_PROPERTIES) {
        let known = base.get(&property);
        let choices = property_schema(schema, &property).map(|inner| maker.choices(inner, &property)).unwrap_or_default();
        let other = choices.into_iter().filter(|choice| Some(choice) != known);
        let other: Vec<Value> = other.filter(|choice| valid_with(&judged, &base, &property, choice.clone()).is_some()).collect();
        if !other.is_empty() {
            values.push((property, other));
        }
    }
    let rounds = values.iter().map(|(_, other)| other.len()).max().unwrap_or_default().min(most);
    let mut variants = Vec::new();
    for round in 0..rounds {
        let mut arguments = base.clone();
        for (property, other) in &values {
            // Of more than there are rounds for, a sample over all of them.
            let index = if other.len() > rounds { round * other.len() / rounds } else { round % other.len() };
            if let Some(changed) = valid_with(&judged, &arguments, property, other[index].clone()) {
                arguments = changed.arguments;
            }
        }
        if arguments != base && arguments != *valid && !variants.contains(&arguments) {
            variants.push(arguments);
        }
    }
    variants
}

/// Properties of which each is left out or mistyped once.
const MOST_PROPERTIES: usize = 100;

/// Valid arguments without one property that is declared and required, and has no default.
pub fn missing(schema: &Value, valid: &Value) -> Vec<Variant> {
    let Ok(judged) = Schema::of(schema) else { return Vec::new() };
    let without = |(property, _): (&String, &Value)| {
        let is_demanded = property_schema(schema, property).is_some_and(|schema| schema.get("default").is_none());
        let mut arguments = valid.clone();
        arguments.as_object_mut()?.shift_remove(property);
        let is_refused = is_demanded && judged.is_valid(&arguments) == Ok(false);
        is_refused.then(|| Variant { property: property.clone(), arguments })
    };
    valid.as_object().into_iter().flatten().take(MOST_PROPERTIES).filter_map(without).collect()
}

/// Valid arguments with one value of a type that no server can take for the right one: an object for a text, a number for
/// an object. What is often converted (`"2"` for 2, 1 for true) is not among them.
pub fn mistyped(schema: &Value, valid: &Value) -> Vec<Variant> {
    let Ok(judged) = Schema::of(schema) else { return Vec::new() };
    let with = |property: String| wrong_types().into_iter().find_map(|wrong| invalid_with(&judged, valid, &property, wrong));
    properties(schema, valid).into_iter().take(MOST_PROPERTIES).filter_map(with).collect()
}

/// The same inside of a value: an item of an array, or a property of an object.
pub fn mistyped_inside(schema: &Value, valid: &Value) -> Vec<Variant> {
    let Ok(judged) = Schema::of(schema) else { return Vec::new() };
    let maker = Maker { root: schema, source: Source::Types, steps: Cell::new(MOST_STEPS) };
    let with = |property: String| {
        let inner = maker.flattened(property_schema(schema, &property)?.as_object()?, 0)?;
        let values: Vec<Value> = match kind(&inner) {
            "array" => wrong_types().map(|wrong| json!([wrong])).into(),
            "object" => {
                let made = maker.object(&inner, 1)?;
                let names = inner.get("properties")?.as_object()?.keys();
                names
                    .flat_map(|name| wrong_types().into_iter().filter_map(|wrong| Some(with_value(&made, name, wrong)?.arguments)))
                    .collect()
            }
            _ => return None,
        };
        values.into_iter().find_map(|value| invalid_with(&judged, valid, &property, value))
    };
    properties(schema, valid).into_iter().take(MOST_PROPERTIES).filter_map(with).collect()
}

/// Values of which at least one is of another type than any other value.
fn wrong_types() -> [Value; 3] {
    [json!({ "mcproof": ["wrong type"] }), json!(["mcproof", ["wrong type"]]), json!(42)]
}

/// Valid arguments with one value just outside of what its property allows: below a minimum, above a maximum, too short, too long,
/// not one of an enumeration. Each kind of bound once for the first property that has it, and then again for the others.
pub fn out_of_range(schema: &Value, valid: &Value) -> Vec<Variant> {
    let Ok(judged) = Schema::of(schema) else { return Vec::new() };
    let (mut known, mut first, mut others) = (HashSet::new(), Vec::new(), Vec::new());
    for property in properties(schema, valid).into_iter().take(MOST_PROPERTIES) {
        for (keyword, value) in property_schema(schema, &property).map(just_outside).unwrap_or_default() {
            if let Some(variant) = invalid_with(&judged, valid, &property, value) {
                if known.insert(keyword) { &mut first } else { &mut others }.push(variant);
            }
        }
    }
    first.extend(others);
    first
}

/// Valid arguments with another value for a property.
fn with_value(valid: &Value, property: &str, value: Value) -> Option<Variant> {
    let mut arguments = valid.clone();
    arguments.as_object_mut()?.insert(property.to_owned(), value);
    Some(Variant { property: property.to_owned(), arguments })
}

/// The same; `None` if the schema does not allow it.
fn valid_with(schema: &Schema, valid: &Value, property: &str, value: Value) -> Option<Variant> {
    with_value(valid, property, value).filter(|variant| schema.is_valid(&variant.arguments) == Ok(true))
}

/// The same; `None` if the schema allows it.
fn invalid_with(schema: &Schema, valid: &Value, property: &str, value: Value) -> Option<Variant> {
    with_value(valid, property, value).filter(|variant| schema.is_valid(&variant.arguments) == Ok(false))
}

/// Values that miss a bound of a schema by one, with the keyword of the bound.
fn just_outside(schema: &Value) -> Vec<(&'static str, Value)> {
    /// Longer texts than this are not made.
    const LONGEST: u64 = 10_000;
    let number = |keyword: &'static str, step: i64| {
        let bound = schema.get(keyword)?;
        let whole = bound.as_i64().and_then(|bound| bound.checked_add(step)).map(Value::from);
        Some((keyword, whole.or_else(|| Some(json!(bound.as_f64()? + step as f64)))?))
    };
    let length = |keyword: &str| schema.get(keyword).and_then(Value::as_u64).filter(|length| *length < LONGEST);
    let text = |length: u64| Value::from("m".repeat(usize::try_from(length).unwrap_or_default()));
    [
        number("minimum", -1),
        number("exclusiveMinimum", 0),
        number("maximum", 1),
        number("exclusiveMaximum", 0),
        // An empty text has a probe of its own.
        length("minLength").filter(|least| *least > 1).map(|least| ("minLength", text(least - 1))),
        length("maxLength").map(|most| ("maxLength", text(most + 1))),
        schema.get("enum").map(|_| ("enum", Value::from("mcproof-no-such-value"))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Valid arguments with something unusual; none if there is no place for it.
pub fn unusual(schema: &Value, valid: &Value, what: Unusual) -> Vec<Variant> {
    let set = |property: Option<String>, value: Value| with_value(valid, &property?, value);
    let all = || properties(schema, valid).into_iter();
    let text = || all().find(|property| property_schema(schema, property).is_some_and(takes_any_text));
    let variants = match what {
        Unusual::Extra => [set(Some("mcproofExtra".into()), json!({ "mcproof": [1, null, "extra"] })), None],
        Unusual::Null => {
            let optional = all().find(|property| valid.get(property).is_none());
            [set(all().next().filter(|first| optional.as_ref() != Some(first)), Value::Null), set(optional, Value::Null)]
        }
        Unusual::Boundary => [at_the_edge(schema, valid, least), at_the_edge(schema, valid, greatest)],
        Unusual::Unicode => [set(text(), json!(ALL_KINDS)), None],
        Unusual::Large => [set(text(), json!("mcproof ".repeat((1 << 20) / 8))), None],
    };
    variants.into_iter().flatten().collect()
}

/// NUL and other controls, turned around and combined characters, some of several code points and beyond 16 bits.
const ALL_KINDS: &str = "mcproof \u{0} \u{7} \u{202e}olleh\u{202c} \u{1f469}\u{200d}\u{1f680} \u{10ffff} z\u{300}\u{301} \u{feff}";

fn at_the_edge(schema: &Value, valid: &Value, edge: impl Fn(&Value) -> Option<Value>) -> Option<Variant> {
    let mut arguments = valid.clone();
    let mut changed = Vec::new();
    for property in properties(schema, valid) {
        let value = property_schema(schema, &property).filter(|schema| is_free(schema)).and_then(&edge);
        if let (Some(value), Some(arguments)) = (value, arguments.as_object_mut()) {
            arguments.insert(property.clone(), value);
            changed.push(property);
        }
    }
    (!changed.is_empty()).then(|| Variant { property: changed.join(", "), arguments })
}

fn is_free(schema: &Value) -> bool {
    ["enum", "const", "pattern", "format"].iter().all(|keyword| schema.get(keyword).is_none())
}

fn least(schema: &Value) -> Option<Value> {
    let takes_none = |keyword: &str| schema.get(keyword).and_then(Value::as_u64).is_none_or(|least| least == 0);
    match schema.get("type").and_then(Value::as_str)? {
        "integer" | "number" => Some(schema.get("minimum").filter(|bound| bound.is_number()).cloned().unwrap_or(json!(-1))),
        "string" => takes_none("minLength").then(|| json!("")),
        "array" => takes_none("minItems").then(|| json!([])),
        _ => None,
    }
}

/// Without a bound, just beyond 32 bits: much more, and a tool that counts up to it would keep a good server busy for ever.
fn greatest(schema: &Value) -> Option<Value> {
    match schema.get("type").and_then(Value::as_str)? {
        "integer" | "number" if schema.get("exclusiveMaximum").is_none() => {
            Some(schema.get("maximum").filter(|bound| bound.is_number()).cloned().unwrap_or(json!(1_i64 << 32)))
        }
        _ => None,
    }
}

/// Properties at the top, those first that are in the valid arguments.
fn properties(schema: &Value, valid: &Value) -> Vec<String> {
    let mut names: Vec<String> = valid.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    let declared = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let others = declared.filter(|(name, _)| valid.get(name.as_str()).is_none());
    names.extend(others.map(|(name, _)| name.clone()));
    names
}

fn property_schema<'a>(schema: &'a Value, property: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(property)
}

fn takes_any_text(schema: &Value) -> bool {
    let is_text = schema.get("type") == Some(&json!("string"));
    is_text && ["enum", "const", "pattern", "format", "maxLength"].iter().all(|keyword| schema.get(keyword).is_none())
}

/// Where values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// `examples` and `default` first: whoever wrote them meant something that works.
    Suggested,
    /// The types and bounds alone, for where a suggestion does not fit its own schema.
    Types,
    /// `examples`, or what is likely to be no default: the last of the options, and what is true.
    Other,
}

struct Maker<'a> {
    root: &'a Value,
    source: Source,
    steps: Cell<usize>,
}

impl Maker<'_> {
    /// A list with an item, or two numbers, whatever is inside of it too.
    fn filled(&self, list: &Map<String, Value>, name: &str, depth: usize) -> Option<Value> {
        let schema = list.get("items").filter(|items| items.is_object())?;
        let item = self.value(schema, name, depth + 1)?;
        let inner = schema.as_object().and_then(|items| self.flattened(items, depth));
        let is_meant =
            inner.as_ref().is_some_and(|inner| ["const", "enum", "minimum", "maximum"].iter().any(|keyword| inner.contains_key(*keyword)));
        match item {
            Value::Number(_) if !is_meant && !list.contains_key("maxItems") => Some(json!([TELLING[0], TELLING[1]])),
            Value::Array(items) if items.is_empty() => {
                let inner = inner.filter(|_| depth < DEEPEST).and_then(|inner| self.filled(&inner, name, depth + 1));
                Some(json!([inner.unwrap_or_else(|| json!([]))]))
            }
            item => Some(json!([item])),
        }
    }

    /// `name` is that of the property, if it is one.
    fn value(&self, schema: &Value, name: &str, depth: usize) -> Option<Value> {
        self.steps.set(self.steps.get().checked_sub(1)?);
        if depth > DEEPEST || *schema == Value::Bool(false) {
            return None;
        }
        let Some(schema) = schema.as_object() else { return Some(json!(WORD)) };
        let schema = self.flattened(schema, depth)?;
        if let Some(fixed) = schema.get("const") {
            return Some(fixed.clone());
        }
        if let Some(options) = schema.get("enum").and_then(Value::as_array) {
            let mut options = options.iter().filter(|option| !option.is_null());
            let last = if self.source == Source::Other { options.next_back() } else { options.next() };
            return last.cloned().or(Some(Value::Null));
        }
        if self.source != Source::Types {
            let examples = schema.get("examples").and_then(Value::as_array).and_then(|examples| examples.first());
            let default = || schema.get("default").filter(|_| self.source == Source::Suggested);
            let suggested = examples.or_else(|| schema.get("example")).or_else(default);
            if let Some(suggested) = suggested.filter(|suggested| !suggested.is_null()) {
                return Some(suggested.clone());
            }
        }
        if schema.contains_key("if") {
            return self.conditional(&schema, name, depth);
        }
        for keyword in ["oneOf", "anyOf"] {
            if let Some(options) = schema.get(keyword).and_then(Value::as_array) {
                return self.one_of(&schema, keyword, options, name, depth);
            }
        }
        let (made, others) = match kind(&schema) {
            "object" => (self.object(&schema, depth), Vec::new()),
            "array" => (self.array(&schema, name, depth), vec![json!([WORD])]),
            "integer" => (number(&schema, Whole::Yes), vec![json!(0), json!(2), json!(3)]),
            "number" => (number(&schema, Whole::No), vec![json!(0), json!(2), json!(0.5)]),
            "boolean" => (Some(json!(self.source == Source::Other)), vec![json!(self.source != Source::Other)]),
            "null" => (Some(Value::Null), Vec::new()),
            _ => (text(&schema), vec![json!(format!("{WORD}2")), json!("")]),
        };
        if !schema.contains_key("not") {
            return made;
        }
        made.into_iter().chain(others).find(|value| self.holds(&schema, value))
    }

    /// With the branch of `if` that applies to what is made.
    fn conditional(&self, schema: &Map<String, Value>, name: &str, depth: usize) -> Option<Value> {
        let mut beside = schema.clone();
        for keyword in ["if", "then", "else"] {
            beside.shift_remove(keyword);
        }
        let ways: [&[&str]; 4] = [&[], &["then"], &["if", "then"], &["else"]];
        ways.iter().find_map(|keywords| {
            let mut whole = beside.clone();
            for keyword in *keywords {
                match schema.get(*keyword) {
                    Some(Value::Object(part)) => merge(&mut whole, self.flattened(part, depth + 1)?),
                    Some(Value::Bool(false)) => return None,
                    _ => {}
                }
            }
            self.value(&Value::Object(whole), name, depth + 1).filter(|made| self.holds(schema, made))
        })
    }

    /// Whether a value is right by a schema that stands somewhere inside of the whole one.
    fn holds(&self, schema: &Map<String, Value>, value: &Value) -> bool {
        let of_root = |keyword: &str| Some((keyword.to_owned(), self.root.get(keyword)?.clone()));
        let text = Value::Object(schema.clone()).to_string();
        let refers = text.contains("\"$ref\"") || text.contains("\"$dynamicRef\"");
        let definitions = ["$defs", "definitions"].into_iter().filter(|_| refers).filter_map(of_root);
        let whole: Map<String, Value> = schema.clone().into_iter().chain(definitions).collect();
        // Of one that refers elsewhere, the whole decides.
        Schema::of(&Value::Object(whole)).ok().is_none_or(|schema| schema.is_valid(value) == Ok(true))
    }

    /// The schema of a member of an object.
    fn member(&self, schema: &Map<String, Value>, name: &str) -> Value {
        let declared = schema.get("properties").and_then(|declared| declared.get(name));
        let mut patterns = schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
        let by_pattern = || patterns.find(|(pattern, _)| matches_pattern(name, pattern)).map(|(_, inner)| inner);
        declared.or_else(by_pattern).or_else(|| schema.get("additionalProperties")).cloned().unwrap_or_else(|| json!({}))
    }

    /// Values of a schema that differ in kind.
    fn choices(&self, schema: &Value, name: &str) -> Vec<Value> {
        let Some(schema) = schema.as_object().and_then(|schema| self.flattened(schema, 0)) else { return Vec::new() };
        if let Some(options) = schema.get("enum").and_then(Value::as_array) {
            return options.clone();
        }
        for keyword in ["oneOf", "anyOf"] {
            if let Some(options) = schema.get(keyword).and_then(Value::as_array) {
                return options.iter().filter_map(|option| self.value(option, name, 1)).collect();
            }
        }
        let of_kind = match kind(&schema) {
            "boolean" => vec![json!(false), json!(true)],
            // What JSON Schema takes for a whole number, some parsers do not.
            "integer" => vec![json!(-1), json!(2.0), json!(0)],
            "number" => vec![json!(-1.5), json!(2.0), json!(0)],
            "array" => {
                let items = schema.get("items").filter(|items| !items.is_array()).cloned().unwrap_or_else(|| json!({}));
                match self.value(&items, name, 1) {
                    Some(item) => vec![json!([item]), json!([item, item]), json!([])],
                    None => vec![json!([])],
                }
            }
            _ => Vec::new(),
        };
        let is_nullable = schema.get("type").and_then(Value::as_array).is_some_and(|types| types.contains(&json!("null")));
        of_kind.into_iter().chain(is_nullable.then_some(Value::Null)).collect()
    }

    /// The schema with what `$ref` and `allOf` add to it.
    fn flattened(&self, schema: &Map<String, Value>, depth: usize) -> Option<Map<String, Value>> {
        self.steps.set(self.steps.get().checked_sub(1)?);
        if depth > DEEPEST {
            return None;
        }
        // Definitions are found from the root.
        let kept = |keyword: &str| !matches!(keyword, "$defs" | "definitions");
        let mut flat: Map<String, Value> =
            schema.iter().filter(|(keyword, _)| kept(keyword)).map(|(keyword, value)| (keyword.clone(), value.clone())).collect();
        let mut parts = Vec::new();
        if let Some(reference) = flat.shift_remove("$ref") {
            parts.push(self.root.pointer(reference.as_str()?.strip_prefix('#')?)?.clone());
        }
        if let Some(Value::Array(all)) = flat.shift_remove("allOf") {
            parts.extend(all);
        }
        for part in parts {
            match part {
                Value::Object(part) => merge(&mut flat, self.flattened(&part, depth + 1)?),
                Value::Bool(true) => {}
                _ => return None,
            }
        }
        Some(flat)
    }

    /// The first option that gives a value, together with what stands beside the options; `null` only if nothing else does.
    fn one_of(&self, schema: &Map<String, Value>, keyword: &str, options: &[Value], name: &str, depth: usize) -> Option<Value> {
        let mut beside = schema.clone();
        beside.shift_remove(keyword);
        let is_null = |option: &&Value| option.get("type") == Some(&json!("null"));
        let ordered = options.iter().filter(|option| !is_null(option)).chain(options.iter().filter(is_null));
        let mut found = ordered.filter_map(|option| {
            let option = match option {
                Value::Object(option) => self.flattened(option, depth + 1)?,
                Value::Bool(true) => Map::new(),
                _ => return None,
            };
            let mut whole = beside.clone();
            merge(&mut whole, option);
            self.value(&Value::Object(whole), name, depth + 1)
        });
        found.next()
    }

    fn object(&self, schema: &Map<String, Value>, depth: usize) -> Option<Value> {
        let declared = schema.get("properties").and_then(Value::as_object);
        let mut made = Map::new();
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        for name in required {
            made.insert(name.to_owned(), self.value(&self.member(schema, name), name, depth + 1)?);
        }
        self.add_dependent(&mut made, schema, depth)?;
        let least = schema.get("minProperties").and_then(Value::as_u64).unwrap_or(0).min(MOST_ITEMS) as usize;
        for (name, inner) in declared.into_iter().flatten() {
            if made.len() < least && !made.contains_key(name) {
                made.insert(name.clone(), self.value(inner, name, depth + 1)?);
            }
        }
        // A name that a pattern allows may be the only one that is allowed.
        let patterns = schema.get("patternProperties").and_then(Value::as_object).filter(|patterns| !patterns.is_empty());
        let allowed = patterns.and_then(|patterns| texts::matching(patterns.keys().next()?));
        for number in made.len()..least {
            let name = match &allowed {
                Some(allowed) if !made.contains_key(allowed) => allowed.clone(),
                Some(allowed) => format!("{allowed}{number}"),
                None => format!("{WORD}{number}"),
            };
            let value = self.value(&self.member(schema, &name), &name, depth + 1)?;
            made.insert(name, value);
        }
        self.add_dependent(&mut made, schema, depth)?;
        Some(Value::Object(made))
    }

    /// Adds what members ask for that are there.
    fn add_dependent(&self, made: &mut Map<String, Value>, schema: &Map<String, Value>, depth: usize) -> Option<()> {
        // Up to draft 7, both kinds of them were `dependencies`.
        let keywords = ["dependentRequired", "dependencies"];
        loop {
            let dependent = keywords.iter().filter_map(|keyword| schema.get(*keyword)?.as_object()).flatten();
            let asked = dependent.filter(|(name, _)| made.contains_key(*name)).filter_map(|(_, names)| names.as_array()).flatten();
            let missing = asked.filter_map(Value::as_str).find(|name| !made.contains_key(*name)).map(str::to_owned);
            let Some(name) = missing else { return Some(()) };
            let value = self.value(&self.member(schema, &name), &name, depth + 1)?;
            made.insert(name, value);
        }
    }

    fn array(&self, schema: &Map<String, Value>, name: &str, depth: usize) -> Option<Value> {
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(MOST_ITEMS) as usize;
        let free = json!({});
        // Before 2020-12 a list of `items` was what `prefixItems` is now.
        let first = schema.get("prefixItems").or_else(|| schema.get("items")).and_then(Value::as_array);
        let rest = schema.get("items").filter(|items| !items.is_array()).unwrap_or(&free);
        let is_unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
        let mut items = Vec::new();
        for index in 0..least {
            let inner = first.and_then(|first| first.get(index)).unwrap_or(rest);
            let item = match inner.get("enum").and_then(Value::as_array).filter(|_| is_unique) {
                Some(options) => options.get(index)?.clone(),
                None => self.value(inner, name, depth + 1)?,
            };
            items.push(match (is_unique && items.contains(&item), item) {
                (true, Value::String(text)) => json!(format!("{text}{index}")),
                (true, Value::Number(number)) => json!(number.as_i64()? + index as i64),
                (_, item) => item,
            });
        }
        if let Some(contained) = schema.get("contains") {
            let count = schema.get("minContains").and_then(Value::as_u64).unwrap_or(1).min(MOST_ITEMS) as usize;
            items.truncate(least.saturating_sub(count));
            let inner = self.both(rest, contained, depth)?;
            for _ in 0..count {
                items.push(self.value(&inner, name, depth + 1)?);
            }
        }
        Some(Value::Array(items))
    }

    /// What is right by both schemas.
    fn both(&self, one: &Value, other: &Value, depth: usize) -> Option<Value> {
        let (Value::Object(one), Value::Object(other)) = (one, other) else { return Some(other.clone()) };
        let mut whole = self.flattened(one, depth + 1)?;
        merge(&mut whole, self.flattened(other, depth + 1)?);
        Some(Value::Object(whole))
    }
}

/// The second schema is demanded besides the first.
fn merge(schema: &mut Map<String, Value>, other: Map<String, Value>) {
    for (keyword, value) in other {
        match (keyword.as_str(), schema.get_mut(&keyword), value) {
            ("properties" | "$defs" | "definitions", Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
            ("required", Some(Value::Array(known)), Value::Array(more)) => {
                more.into_iter().for_each(|name| {
                    if !known.contains(&name) {
                        known.push(name);
                    }
                });
            }
            ("minimum" | "minLength" | "minItems" | "exclusiveMinimum", Some(known), value) => {
                if value.as_f64() > known.as_f64() {
                    *known = value;
                }
            }
            ("maximum" | "maxLength" | "maxItems" | "exclusiveMaximum", Some(known), value) => {
                if value.as_f64() < known.as_f64() {
                    *known = value;
                }
            }
            (_, _, value) => {
                schema.insert(keyword, value);
            }
        }
    }
}

/// The type that a schema names, or that its keywords are about.
fn kind(schema: &Map<String, Value>) -> &str {
    let named = match schema.get("type") {
        Some(Value::String(name)) => Some(name.as_str()),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).find(|name| *name != "null").or(Some("null")),
        _ => None,
    };
    let has = |keywords: &[&str]| keywords.iter().any(|keyword| schema.contains_key(*keyword));
    match named {
        Some(name) => name,
        None if has(&["properties", "required", "minProperties", "additionalProperties"]) => "object",
        None if has(&["patternProperties", "dependentRequired"]) => "object",
        None if has(&["items", "prefixItems", "minItems", "contains"]) => "array",
        None if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) => "number",
        None => "string",
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    Yes,
    No,
}

fn number(schema: &Map<String, Value>, whole: Whole) -> Option<Value> {
    let at = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    // Draft 4: `exclusiveMinimum: true` makes the minimum exclusive.
    let is_exclusive = |keyword: &str| schema.get(keyword) == Some(&Value::Bool(true));
    let step = at("multipleOf").filter(|step| *step > 0.0);
    let above = at("exclusiveMinimum").or_else(|| at("minimum").filter(|_| is_exclusive("exclusiveMinimum")));
    let below = at("exclusiveMaximum").or_else(|| at("maximum").filter(|_| is_exclusive("exclusiveMaximum")));
    let fits = |value: &f64| {
        at("minimum").is_none_or(|least| *value >= least)
            && at("maximum").is_none_or(|most| *value <= most)
            && above.is_none_or(|bound| *value > bound)
            && below.is_none_or(|bound| *value < bound)
            && (whole == Whole::No || value.fract() == 0.0)
            && step.is_none_or(|step| (value / step - (value / step).round()).abs() < 1e-9)
    };
    let (least, most) = (above.or(at("minimum")), below.or(at("maximum")));
    let mut candidates = vec![1.0, 0.0];
    for bound in [least, most].into_iter().flatten() {
        candidates.extend([bound, bound.ceil(), bound.floor(), bound + 1.0, bound - 1.0]);
    }
    if let (Some(least), Some(most)) = (least, most) {
        candidates.push(f64::midpoint(least, most));
    }
    if let Some(step) = step {
        let from = least.unwrap_or(0.0);
        candidates.extend([step, (from / step).ceil() * step, ((from / step).floor() + 1.0) * step]);
    }
    // Of the greatest numbers, the next one is more than 1 away.
    candidates.extend([least, most].into_iter().flatten().flat_map(|bound| [bound.next_up(), bound.next_down()]));
    let found = candidates.into_iter().find(fits)?;
    let is_exact = found.fract() == 0.0 && found.abs() < 9e18;
    Some(if is_exact { json!(found as i64) } else { json!(found) })
}

fn matches_pattern(text: &str, pattern: &str) -> bool {
    Schema::of(&json!({ "pattern": pattern })).is_ok_and(|schema| schema.is_valid(&json!(text)) == Ok(true))
}

fn text(schema: &Map<String, Value>) -> Option<Value> {
    let count = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
    let formatted = schema.get("format").and_then(Value::as_str).and_then(texts::of_format).map(str::to_owned);
    let pattern = schema.get("pattern").and_then(Value::as_str);
    let fits = |text: &String| pattern.is_none_or(|pattern| matches_pattern(text, pattern));
    let matching = pattern.and_then(texts::matching);
    let mut text = formatted.clone().filter(fits).or(matching).or(formatted).unwrap_or_else(|| WORD.to_owned());
    let least = count("minLength").unwrap_or(0).min(1 << 20) as usize;
    let length = text.chars().count();
    text.extend(std::iter::repeat_n('x', least.saturating_sub(length)));
    if let Some(most) = count("maxLength") {
        text = text.chars().take(most as usize).collect();
    }
    Some(json!(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_values_tell_whether_they_are_used() {
        let check = |properties: Value, expected: &[Value]| {
            let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
            let schema = json!({ "type": "object", "properties": properties, "required": required });
            assert_eq!(telling(&schema, &minimal(&schema).unwrap()), expected, "{schema}");
        };
        let number = json!({ "type": "number" });
        let text = json!({ "type": "string" });
        let list = |items: &Value| json!({ "type": "array", "items": items });
        check(json!({ "a": number, "b": number }), &[json!({ "a": 3, "b": 5 }), json!({ "a": 5, "b": 3 })]);
        check(json!({ "base": number }), &[json!({ "base": 3 }), json!({ "base": 5 })]);
        check(
            json!({ "a": number, "seconds": number, "user_id": number, "page": number, "b": { "type": "integer", "maximum": 4 } }),
            &[
                json!({ "a": 3, "seconds": 1, "user_id": 2, "page": 1, "b": 1 }),
                json!({ "a": 5, "seconds": 1, "user_id": 2, "page": 1, "b": 3 }),
            ],
        );
        check(json!({ "hour": number, "minute": number }), &[json!({ "hour": 3, "minute": 5 }), json!({ "hour": 5, "minute": 3 })]);
        check(json!({ "a": { "type": "number", "default": 1 }, "text": text }), &[]);
        check(json!({ "text": text, "from": text, "to": text }), &[json!({ "text": "mcproof", "from": "mcproof2", "to": "mcproof3" })]);
        check(json!({ "start_line": number, "endLine": number }), &[json!({ "start_line": 2, "endLine": 9 })]);
        check(json!({ "names": list(&text) }), &[json!({ "names": ["mcproof"] })]);
        check(json!({ "names": { "type": "array", "items": { "type": "string" }, "maxItems": 0 } }), &[]);
        check(json!({ "rows": list(&list(&number)) }), &[json!({ "rows": [[3, 5]] })]);
        check(json!({ "ids": list(&json!({ "type": "integer", "maximum": 1 })) }), &[json!({ "ids": [1] })]);
    }

    #[test]
    fn the_least_that_a_schema_accepts_is_made() {
        let check = |schema: Value, expected: Value| {
            let schema = json!({ "type": "object", "properties": { "a": schema }, "required": ["a"] });
            assert_eq!(minimal(&schema), Some(json!({ "a": expected })), "{schema}");
        };
        check(json!({}), json!("mcproof"));
        check(json!(true), json!("mcproof"));
        check(json!({ "type": "string" }), json!("mcproof"));
        check(json!({ "type": "string", "minLength": 9 }), json!("mcproofxx"));
        check(json!({ "type": "string", "maxLength": 3 }), json!("mcp"));
        check(json!({ "type": "string", "format": "date" }), json!("2026-01-31"));
        check(json!({ "type": "string", "format": "uuid" }), json!("3f2c9a52-7d1b-4a86-9d0e-5b8c6a1f2e47"));
        check(json!({ "type": "string", "pattern": "^[A-Z]{3}-\\d+$" }), json!("AAA-0"));
        check(json!({ "type": "string", "pattern": "(foo|bar)?z" }), json!("z"));
        check(json!({ "type": "string", "default": "d", "examples": ["e"] }), json!("e"));
        check(json!({ "type": "string", "default": 5 }), json!("mcproof"));
        check(json!({ "type": "string", "default": null }), json!("mcproof"));
        check(json!({ "enum": [null, "x"] }), json!("x"));
        check(json!({ "const": { "k": 1 } }), json!({ "k": 1 }));
        check(json!({ "type": "integer" }), json!(1));
        check(json!({ "type": "integer", "minimum": 5 }), json!(5));
        check(json!({ "type": "integer", "exclusiveMinimum": 5, "multipleOf": 4 }), json!(8));
        check(json!({ "type": "integer", "maximum": -3 }), json!(-3));
        check(json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 }), json!(0.5));
        check(json!({ "type": "boolean" }), json!(false));
        check(json!({ "type": "null" }), json!(null));
        check(json!({ "type": ["null", "integer"] }), json!(1));
        check(json!({ "type": "array", "items": { "type": "string" } }), json!([]));
        check(json!({ "type": "array", "minItems": 2, "uniqueItems": true }), json!(["mcproof", "mcproof1"]));
        check(json!({ "type": "array", "minItems": 2, "prefixItems": [{ "type": "integer" }, { "const": 7 }] }), json!([1, 7]));
        check(json!({ "type": "object", "properties": { "b": { "type": "integer" } }, "required": ["b"] }), json!({ "b": 1 }));
        check(json!({ "type": "object", "minProperties": 1 }), json!({ "mcproof0": "mcproof" }));
        check(json!({ "properties": { "b": {} } }), json!({}));
        check(json!({ "anyOf": [{ "type": "null" }, { "type": "integer", "minimum": 3 }] }), json!(3));
        check(
            json!({ "oneOf": [{ "type": "object", "properties": { "k": { "const": "one" } }, "required": ["k"] }] }),
            json!({ "k": "one" }),
        );
        check(json!({ "allOf": [{ "type": "integer", "minimum": 2 }, { "minimum": 4 }] }), json!(4));
        check(json!({ "minimum": 2.5 }), json!(2.5));
        check(json!({ "type": "array", "contains": { "const": 5 } }), json!([5]));
        check(json!({ "items": { "type": "integer" }, "minItems": 2, "contains": { "minimum": 7 }, "minContains": 1 }), json!([1, 7]));
        let two = json!({ "a": { "type": "string" }, "b": { "type": "integer" } });
        check(
            json!({ "type": "object", "properties": two, "required": ["a"], "dependentRequired": { "a": ["b"] } }),
            json!({ "a": "mcproof", "b": 1 }),
        );
        let more = json!({ "properties": { "n": { "type": "integer" } }, "required": ["n"] });
        let is_x = json!({ "properties": { "k": { "const": "x" } } });
        check(
            json!({ "type": "object", "properties": { "k": { "enum": ["x", "y"] } }, "required": ["k"], "if": is_x, "then": more }),
            json!({ "k": "x", "n": 1 }),
        );
        check(json!({ "type": "integer", "not": { "const": 1 } }), json!(0));
        let begins = json!({ "^b": { "type": "integer" } });
        check(
            json!({ "type": "object", "patternProperties": begins, "additionalProperties": false, "minProperties": 1 }),
            json!({ "b": 1 }),
        );
        check(json!({ "type": "integer", "exclusiveMinimum": 9_007_199_254_740_992_i64 }), json!(9_007_199_254_740_994_i64));
        check(json!({ "type": "string", "format": "date-time", "pattern": "Z$" }), json!("2026-01-31T12:00:00Z"));
    }

    #[test]
    fn optional_properties_are_added_as_long_as_the_schema_accepts_the_whole() {
        let check = |schema: Value, expected: Option<Value>| {
            let valid = minimal(&schema).unwrap();
            assert_eq!(complete(&schema, &valid), expected, "{schema}");
        };
        let of = |properties: Value| json!({ "type": "object", "properties": properties, "required": ["a"] });
        check(of(json!({ "a": { "type": "integer" } })), None);
        check(
            of(json!({ "b": { "type": "string", "default": "x" }, "a": {}, "c": { "$ref": "#/properties/b" } })),
            Some(json!({ "a": "mcproof", "b": "mcproof", "c": "mcproof" })),
        );
        check(of(json!({ "a": {}, "b": false, "c": { "type": "boolean" } })), Some(json!({ "a": "mcproof", "c": true })));
        let either = json!({ "type": "object", "properties": { "a": {}, "b": {} }, "maxProperties": 1 });
        check(either, Some(json!({ "a": "mcproof" })));
    }

    #[test]
    fn each_value_that_a_property_may_have_is_in_some_of_the_alternatives() {
        let check = |properties: Value, expected: Value| {
            let schema = json!({ "type": "object", "properties": properties, "required": ["a"] });
            let valid = minimal(&schema).unwrap();
            assert_eq!(json!(alternatives(&schema, &valid, 3)), expected, "{schema}");
        };
        check(json!({ "a": { "type": "string" } }), json!([]));
        check(json!({ "a": { "enum": ["x", "y", "z"] } }), json!([{ "a": "y" }, { "a": "z" }]));
        check(json!({ "a": {}, "b": { "type": "boolean" } }), json!([{ "a": "mcproof", "b": false }]));
        check(json!({ "a": { "type": "integer", "minimum": 0 } }), json!([{ "a": 2.0 }, { "a": 0 }]));
        check(json!({ "a": { "type": ["number", "null"] } }), json!([{ "a": -1.5 }, { "a": 2.0 }, { "a": 0 }]));
        check(
            json!({ "a": { "type": "array", "items": { "type": "string" }, "maxItems": 1 }, "b": { "enum": [1, 2, 3] } }),
            json!([{ "a": ["mcproof"], "b": 1 }, { "a": ["mcproof"], "b": 2 }]),
        );
        check(
            json!({ "a": { "anyOf": [{ "type": "string" }, { "$ref": "#/properties/b" }] }, "b": { "const": 7 } }),
            json!([{ "a": 7, "b": 7 }]),
        );
        let many: Vec<usize> = (0..30).collect();
        check(json!({ "a": { "enum": many } }), json!([{ "a": 1 }, { "a": 10 }, { "a": 20 }]));
    }

    #[test]
    fn wrong_types_are_put_inside_of_arrays_and_objects() {
        let check = |property: Value, expected: Value| {
            let schema = json!({ "type": "object", "properties": { "a": property } });
            let found: Vec<Value> =
                mistyped_inside(&schema, &json!({})).into_iter().map(|variant| variant.arguments["a"].clone()).collect();
            assert_eq!(json!(found), expected, "{schema}");
        };
        check(json!({ "type": "string" }), json!([]));
        check(json!({ "type": "array" }), json!([]));
        check(json!({ "type": "array", "items": { "type": "string" } }), json!([[{ "mcproof": ["wrong type"] }]]));
        check(
            json!({ "type": "object", "properties": { "b": { "type": "object" }, "c": { "type": "integer" } }, "required": ["c"] }),
            json!([{ "c": 1, "b": ["mcproof", ["wrong type"]] }]),
        );
    }

    #[test]
    fn references_are_followed_within_bounds() {
        let node = json!({ "type": "object", "properties": { "next": { "$ref": "#/$defs/node" }, "v": { "$ref": "#/$defs/v" } }, "required": ["v"] });
        let schema = json!({ "type": "object", "$defs": { "node": node, "v": { "type": "integer" } }, "properties": { "n": { "$ref": "#/$defs/node" } }, "required": ["n"] });
        assert_eq!(minimal(&schema), Some(json!({ "n": { "v": 1 } })));
        let endless = json!({ "type": "object", "properties": { "a": { "$ref": "#" } }, "required": ["a"] });
        assert_eq!(minimal(&endless), None);
        assert_eq!(minimal(&json!({ "type": "object", "not": {} })), None);
        assert_eq!(minimal(&json!({ "type": "object" })), Some(json!({})));
    }

    #[test]
    fn wrong_arguments_are_wrong_by_the_schema_itself() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": { "type": "string" },
                "b": { "type": "array" },
                "c": { "type": "integer", "default": 3 },
                "d": {},
                "e": { "type": "string", "maxLength": 3 },
            },
            "required": ["a", "b", "c"],
        });
        let valid = minimal(&schema).unwrap();
        let names = |variants: Vec<Variant>| variants.into_iter().map(|variant| variant.property).collect::<Vec<_>>();
        assert_eq!(names(missing(&schema, &valid)), ["a", "b"]);
        assert_eq!(names(mistyped(&schema, &valid)), ["a", "b", "c", "e"]);
        let of = |what| unusual(&schema, &valid, what).swap_remove(0);
        assert_eq!(of(Unusual::Boundary).property, "a, b, c, e");
        assert_eq!(of(Unusual::Null).property, "a");
        assert_eq!(of(Unusual::Large).arguments["a"].as_str().map(str::len), Some(1 << 20));
        assert_eq!(unusual(&schema, &valid, Unusual::Boundary)[1].arguments["c"], json!(1_i64 << 32));
        assert_eq!(unusual(&json!({ "type": "object" }), &json!({}), Unusual::Large), []);
    }

    #[test]
    fn values_just_outside_of_their_bounds_are_made() {
        let check = |property: Value, valid: Value, expected: Value| {
            let schema = json!({ "type": "object", "properties": { "a": property } });
            let found: Vec<Value> =
                out_of_range(&schema, &json!({ "a": valid })).into_iter().map(|variant| variant.arguments["a"].clone()).collect();
            assert_eq!(Value::from(found), expected, "{schema}");
        };
        check(json!({ "type": "integer", "minimum": 1, "maximum": 9 }), json!(5), json!([0, 10]));
        check(json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 0.5 }), json!(0.1), json!([0, 1.5]));
        check(json!({ "type": "string", "minLength": 2, "maxLength": 3 }), json!("ab"), json!(["m", "mmmm"]));
        check(json!({ "enum": ["x", "y"] }), json!("x"), json!(["mcproof-no-such-value"]));
        check(json!({ "type": "integer", "minimum": i64::MIN }), json!(5), json!([]));
        check(json!({ "type": "string", "minLength": 1 }), json!("a"), json!([]));
    }

    #[test]
    fn each_kind_of_bound_is_missed_before_any_is_missed_again() {
        let count = json!({ "type": "integer", "minimum": 1, "maximum": 9 });
        let order = json!({ "enum": ["up", "down"] });
        let schema = json!({ "type": "object", "properties": { "a": count, "b": count, "c": order } });
        let found: Vec<Value> = out_of_range(&schema, &json!({ "a": 5 })).into_iter().map(|variant| variant.arguments).collect();
        let first = [json!({ "a": 0 }), json!({ "a": 10 }), json!({ "a": 5, "c": "mcproof-no-such-value" })];
        assert_eq!(found, [&first[..], &[json!({ "a": 5, "b": 0 }), json!({ "a": 5, "b": 10 })]].concat());
    }
}
