//! From two answers to what is expected of the next one: what was the same both times by its value, what differed by its type.
//! Knows values and the matchers of suites, no sessions.

use super::fleeting::{self, grows, is_fleeting};
use super::now::Now;
use super::{BaseEnvironment, yaml};
use mcproof_suite::judge::{Payload, has_large_number, is_datetime, looks_like_a_pattern};
use serde_json::{Map, Value, json};

/// Characters of a longer text that are expected.
const EXCERPT: usize = 80;
/// Shorter values of variables are common words.
const SHORTEST_VALUE: usize = 4;
const LONGEST_KEY: usize = 100;
/// An object with so many names of our variables is the environment of the server.
const AN_ENVIRONMENT: usize = 3;
/// Characters of a text that becomes a pattern: patterns take memory wherever they run.
const LONGEST_PATTERN: usize = 400;

/// How much of an answer is expected value by value.
struct Bounds {
    /// Characters of a text. Longer ones are told by their first line.
    text: usize,
    /// Elements that are matched one by one.
    elements: usize,
    keys: usize,
    /// Objects inside each other that are looked into.
    depth: usize,
    /// Characters of a whole expectation, and of one array in it.
    whole: usize,
    array: usize,
}

/// A first suite is one that a person reads and goes on with.
const OF_STARTER: Bounds = Bounds { text: 160, elements: 8, keys: 16, depth: 4, whole: 2_000, array: 500 };
/// A recording is repeated to find out what has changed.
const OF_RECORDING: Bounds = Bounds { text: 10_000, elements: 500, keys: 500, depth: 30, whole: 60_000, array: 60_000 };

/// What is known besides the answers.
pub(super) struct Known<'a> {
    /// The arguments of the call: what is repeated of them depends on nothing else.
    pub(super) arguments: &'a Value,
    pub(super) now: &'a Now,
    pub(super) surroundings: &'a BaseEnvironment,
    /// Whether the answer comes from beyond the server, so that it may be another one tomorrow.
    pub(super) is_open: bool,
    /// Whether both answers came from the server. Otherwise the first was recorded, and the second is made from it.
    pub(super) was_repeated: bool,
}

impl Known<'_> {
    fn bounds(&self) -> &'static Bounds {
        if self.was_repeated { &OF_STARTER } else { &OF_RECORDING }
    }

    fn is_private(&self, text: &str) -> bool {
        is_private(text, self.surroundings)
    }
}

/// Whether a text is about this machine or this user.
pub(super) fn is_private(text: &str, surroundings: &BaseEnvironment) -> bool {
    let BaseEnvironment { private, environment, .. } = surroundings;
    let is_value = text.len() >= SHORTEST_VALUE && environment.values().any(|value| value == text);
    is_value || private.iter().any(|private| text.contains(private)) || surroundings.holds_secret(text)
}

/// What the next result of the same call has to be, under the key of a step.
pub(super) fn of_call(first: &Value, second: &Value, known: &Known<'_>) -> (&'static str, Value) {
    let (one, two) = (Payload::from_call_result(first), Payload::from_call_result(second));
    let is_told = !one.value.is_null() && !two.value.is_null();
    let blocks = |result: &Value| result.get("content").and_then(Value::as_array).cloned().unwrap_or_default();
    let kinds = |result: &Value| blocks(result).iter().map(kind).collect::<Vec<_>>();
    let (kinds_one, kinds_two) = (kinds(first), kinds(second));
    if is_told && (!says_more(first, known) || kinds_one != kinds_two) {
        return ("expect", of_values(&one.value, &two.value, known));
    }
    let mut result = Map::new();
    if kinds_one != kinds_two {
        result.insert("content".into(), json!({ "$type": "array" }));
    } else {
        let said = |block: &Value| said(block, known);
        let said = blocks(first).iter().zip(&blocks(second)).map(|(first, second)| [said(first), said(second)]).collect::<Vec<_>>();
        let block = |(mut kind, [first, second]): (Value, [Map<String, Value>; 2])| {
            if let (Some(kind), false) = (kind.as_object_mut(), first.is_empty()) {
                kind.extend(of_values(&json!(first), &json!(second), known).as_object().cloned().unwrap_or_default());
            }
            kind
        };
        result.insert("content".into(), kinds_one.into_iter().zip(said).map(block).collect());
    }
    if let Some(structured) = first.get("structuredContent").filter(|structured| is_told && !structured.is_null()) {
        let second = second.get("structuredContent").unwrap_or(&Value::Null);
        result.insert("structuredContent".into(), of_values(structured, second, known));
    }
    ("result", Value::Object(result))
}

/// Whether a result has more than its payload: blocks that are no text, or texts that say something else than its structured content.
fn says_more(result: &Value, known: &Known<'_>) -> bool {
    let blocks = || result["content"].as_array().into_iter().flatten();
    if blocks().any(|block| block["type"] != "text") {
        return true;
    }
    let Some(structured) = result.get("structuredContent").filter(|structured| !structured.is_null()) else { return false };
    let is_in_it = |text: &str| match serde_json::from_str::<Value>(text) {
        Ok(value) => holds(structured, &value) || (known.was_repeated && (value.is_object() || value.is_array())),
        Err(_) => holds(structured, &json!(text)),
    };
    !blocks().filter_map(|block| block["text"].as_str()).all(is_in_it)
}

/// What kind of block it is.
fn kind(block: &Value) -> Value {
    let mut kind = json!({ "type": block.get("type").cloned().unwrap_or_default() });
    if let Some(mime_type) = block.get("mimeType").filter(|mime_type| mime_type.is_string()) {
        kind["mimeType"] = mime_type.clone();
    }
    if block.get("data").and_then(Value::as_str).is_some_and(|data| !data.is_empty()) {
        kind["data"] = json!({ "$len": { "$gte": 1 } });
    }
    kind
}

/// What a block says, apart from its kind. Data is the same in a recording; of another machine, an image may be another one.
fn said(block: &Value, known: &Known<'_>) -> Map<String, Value> {
    let is_said = |name: &str| !matches!(name, "type" | "mimeType" | "_meta") && (name != "data" || !known.was_repeated);
    let mut said: Map<String, Value> = block.as_object().cloned().unwrap_or_default();
    said.retain(|name, _| is_said(name));
    if let Some(Value::Object(resource)) = said.get_mut("resource") {
        resource.retain(|name, _| name != "_meta" && (name != "blob" || !known.was_repeated));
    }
    said
}

/// What the next value has to be.
pub(super) fn of_values(first: &Value, second: &Value, known: &Known<'_>) -> Value {
    let stays = match known.is_open {
        true => Stays::Nothing,
        false if known.now.is_in(first) || known.now.is_in(second) => Stays::WhatNoDateTells,
        false => Stays::Everything,
    };
    let whole = Comparison { known, stays }.merged(first, second, 0);
    if yaml::flow(&whole).len() <= known.bounds().whole { whole } else { types(&[first, second], known.bounds().keys) }
}

/// Places of a recorded value that an expectation does not compare, or by their type or a part only. Empty for the value itself.
pub(super) fn uncompared(expected: &Value, found: &Value) -> Vec<String> {
    let mut places = Vec::new();
    look(expected, found, "", &mut places);
    places
}

fn look(expected: &Value, found: &Value, path: &str, places: &mut Vec<String>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (expected, found) {
        (Value::Object(matcher), _) if matcher.keys().any(|key| key.starts_with('$') && !key.starts_with("$$")) => {
            let inner = found.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
            if let (Some(expected), Some(found)) = (matcher.get("$json"), inner) {
                look(expected, &found, path, places);
            }
            let is_empty = matcher.get("$len") == Some(&json!(0));
            let is_part = ["$type", "$contains", "$contains_all", "$any", "$len"].iter().any(|key| matcher.contains_key(*key));
            if is_part && !is_empty {
                places.push(path.to_owned());
            }
        }
        (Value::Object(expected), Value::Object(found)) => {
            for (name, value) in found {
                match member(name).and_then(|name| expected.get(&name)) {
                    Some(expected) => look(expected, value, &below(name), places),
                    None => places.push(below(name)),
                }
            }
        }
        (Value::Array(expected), Value::Array(found)) => {
            for (index, (expected, found)) in expected.iter().zip(found).enumerate() {
                look(expected, found, &format!("{path}[{index}]"), places);
            }
        }
        _ => {}
    }
}

/// A text as an expectation.
pub(super) fn literal(text: &str) -> Value {
    if looks_like_a_pattern(text) { json!({ "$type": "string" }) } else { json!(text) }
}

/// A key in an expectation, where `$` begins a matcher; `None` if it is too long to be read.
pub(super) fn member(key: &str) -> Option<String> {
    let written = if key.starts_with('$') { format!("${key}") } else { key.to_owned() };
    (key.chars().count() <= LONGEST_KEY).then_some(written)
}

#[derive(Clone, Copy)]
struct Comparison<'a> {
    known: &'a Known<'a>,
    stays: Stays,
}

/// What will be the same tomorrow if it was the same twice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stays {
    Everything,
    /// The answer tells the present time: what stands beside that may follow from it, and so may what looks like a part of a date.
    WhatNoDateTells,
    /// It stands beside the present time in a recording, of which nobody knows how it would be next time: words that tell no time.
    Words,
    /// The answer comes from elsewhere, or stands beside the present time.
    Nothing,
}

impl Comparison<'_> {
    fn merged(&self, first: &Value, second: &Value, depth: usize) -> Value {
        match (first, second) {
            (Value::Null, Value::Null) => Value::Null,
            // It cannot be compared exactly.
            (Value::Number(_), Value::Number(_)) if has_large_number(first) => types(&[first, second], self.known.bounds().keys),
            (Value::Bool(_), Value::Bool(_)) | (Value::Number(_), Value::Number(_)) if first == second && self.is_steady(first) => {
                first.clone()
            }
            (Value::String(first), Value::String(second)) => self.text(first, second),
            (Value::Array(first), Value::Array(second)) => self.array(first, second, depth),
            (Value::Object(first), Value::Object(second)) if depth < self.known.bounds().depth => self.object(first, second, depth),
            _ => types(&[first, second], self.known.bounds().keys),
        }
    }

    fn is_steady(&self, value: &Value) -> bool {
        let stays = match self.stays {
            Stays::Everything => true,
            Stays::WhatNoDateTells => !self.known.now.may_tell(value),
            Stays::Words => {
                value.as_str().is_some_and(|text| !self.known.now.may_tell(value) && !text.contains(|c: char| c.is_ascii_digit()))
            }
            Stays::Nothing => false,
        };
        stays || holds(self.known.arguments, value)
    }

    /// For what stands directly in a list or an object: nothing stays beside the present time.
    fn beside<'v>(&self, values: impl IntoIterator<Item = &'v Value>) -> Self {
        let tells = |value: &Value| !value.is_array() && !value.is_object() && self.known.now.is_in(value);
        match self.stays == Stays::WhatNoDateTells && values.into_iter().any(tells) {
            true if self.known.was_repeated => Self { stays: Stays::Nothing, ..*self },
            true => Self { stays: Stays::Words, ..*self },
            false => *self,
        }
    }

    /// One of them. What is inside of it is not beside the others.
    fn inner(&self, beside: &Self, first: &Value, second: &Value, depth: usize) -> Value {
        let is_plain = !first.is_array() && !first.is_object();
        if is_plain { beside } else { self }.merged(first, second, depth)
    }

    fn text(&self, first: &str, second: &str) -> Value {
        let is_uuid = |text: &str| text.len() == 36 && uuid::Uuid::try_parse(text).is_ok();
        if first != second || self.known.is_private(first) || !self.is_steady(&json!(first)) {
            return match () {
                () if is_datetime(first) && is_datetime(second) => json!({ "$datetime": true }),
                () if is_uuid(first) && is_uuid(second) => json!({ "$uuid": true }),
                () => self.form(first, second).unwrap_or_else(|| json!({ "$type": "string" })),
            };
        }
        if first.chars().count() <= self.known.bounds().text {
            return match looks_like_a_pattern(first) && !self.known.was_repeated {
                true => json!({ "$regex": format!("^{}$", regex::escape(first)) }),
                false => literal(first),
            };
        }
        let line = first.lines().map(str::trim).find(|line| line.chars().count() > 2).unwrap_or_default();
        let excerpt: String = line.chars().take(EXCERPT).collect();
        let excerpt = excerpt.trim();
        // One endless word is data, of which nobody reads a part.
        let is_data = excerpt.chars().count() > EXCERPT / 2 && !excerpt.contains(' ');
        let mut matcher = match excerpt.is_empty() || is_data || looks_like_a_pattern(excerpt) {
            true => Map::from_iter([("$type".to_owned(), json!("string"))]),
            false => Map::from_iter([("$contains".to_owned(), json!(excerpt))]),
        };
        // Of a duration or an address in it, another run may bring another one with more digits.
        if !is_fleeting(first) {
            matcher.insert("$len".into(), json!(first.chars().count()));
        }
        Value::Object(matcher)
    }

    /// What two texts have in common that differ in numbers, dates, ids, places or words.
    fn form(&self, first: &str, second: &str) -> Option<Value> {
        if self.known.was_repeated || self.known.is_open || self.known.is_private(first) {
            return None;
        }
        let is_nested = |value: &Value| value.is_object() || value.is_array();
        let nested = |text: &str| serde_json::from_str::<Value>(text).ok().filter(is_nested);
        if let (Some(first), Some(second)) = (nested(first), nested(second)) {
            return Some(json!({ "$json": self.merged(&first, &second, 0) }));
        }
        // What is not steady although it is the same may be another one in all that is no word.
        let varied = (first == second).then(|| fleeting::varied(first));
        let second = varied.as_deref().unwrap_or(second);
        if first == second {
            return None;
        }
        if first.chars().count() <= LONGEST_PATTERN {
            let form = fleeting::common_form(first, second).map(|form| json!({ "$regex": form }));
            if form.is_some() {
                return form;
            }
        }
        let parts = fleeting::common_parts(first, second);
        let is_short = parts.iter().map(String::len).sum::<usize>() <= self.known.bounds().text;
        (!parts.is_empty() && is_short).then(|| json!({ "$contains_all": parts }))
    }

    fn array(&self, first: &[Value], second: &[Value], depth: usize) -> Value {
        let Bounds { elements, array, keys, .. } = self.known.bounds();
        if first.len() == second.len() && first.len() <= *elements {
            let beside = self.beside(first.iter().chain(second));
            let elements = first.iter().zip(second).map(|(first, second)| self.inner(&beside, first, second, depth + 1));
            let elements: Vec<Value> = elements.collect();
            let elements = Value::Array(elements);
            if yaml::flow(&elements).len() <= *array {
                return elements;
            }
        }
        let mut matcher = Map::from_iter([("$type".to_owned(), json!("array"))]);
        if !first.is_empty() && !second.is_empty() {
            let stays = self.stays == Stays::Everything && first.len() == second.len();
            matcher.insert("$len".into(), if stays { json!(first.len()) } else { json!({ "$gte": 1 }) });
            matcher.insert("$all".into(), types(&first.iter().chain(second).collect::<Vec<_>>(), *keys));
            if stays && first == second {
                let mut ends: Vec<Value> = [&first[0], &first[first.len() - 1]].map(|end| self.merged(end, end, depth + 1)).into();
                ends.dedup();
                // That something holds an empty text proves nothing.
                ends.retain(|end| end.as_str() != Some(""));
                let is_empty = ends.is_empty();
                let ends = Value::Array(ends);
                if !is_empty && yaml::flow(&ends).len() <= *array {
                    matcher.insert("$contains_all".into(), ends);
                }
            }
        }
        Value::Object(matcher)
    }

    fn object(&self, first: &Map<String, Value>, second: &Map<String, Value>, depth: usize) -> Value {
        if first.is_empty() && second.is_empty() {
            return json!({ "$type": "object", "$len": 0 });
        }
        let is_of_environment = |key: &str| key == key.to_ascii_uppercase() && self.known.surroundings.environment.contains_key(key);
        if first.keys().filter(|key| is_of_environment(key)).count() >= AN_ENVIRONMENT {
            return json!({ "$type": "object" });
        }
        let both = first.iter().filter(|(key, _)| !is_of_environment(key));
        let both = both.filter_map(|(key, value)| Some((member(key)?, value, second.get(key)?)));
        let beside = self.beside(first.values().chain(second.values()));
        let merged = |(key, first, second): (String, &Value, &Value)| {
            let value = match first.is_number() && grows(&key) {
                true => types(&[first, second], self.known.bounds().keys),
                false => self.inner(&beside, first, second, depth + 1),
            };
            (key, value)
        };
        let members: Map<String, Value> = both.take(self.known.bounds().keys).map(merged).collect();
        if members.is_empty() { json!({ "$type": "object" }) } else { Value::Object(members) }
    }
}

/// The types of some values and, where all are objects, of what they have in common: of so many keys.
fn types(values: &[&Value], keys: usize) -> Value {
    let objects: Option<Vec<&Map<String, Value>>> = values.iter().map(|value| value.as_object()).collect();
    if let Some([first, others @ ..]) = objects.as_deref() {
        let common = first.iter().filter(|(key, _)| others.iter().all(|other| other.contains_key(*key)));
        let typed = |(key, value): (&String, &Value)| {
            let all: Vec<&Value> = std::iter::once(value).chain(others.iter().map(|other| &other[key])).collect();
            Some((member(key)?, named_types(&all)))
        };
        let members: Map<String, Value> = common.filter_map(typed).take(keys).collect();
        if !members.is_empty() {
            return Value::Object(members);
        }
    }
    named_types(values)
}

fn named_types(values: &[&Value]) -> Value {
    let mut names: Vec<&str> = Vec::new();
    for value in values {
        let name = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names.as_slice() {
        [only] => json!({ "$type": only }),
        several => json!({ "$type": several }),
    }
}

/// Whether a value stands somewhere in another.
pub(super) fn holds(whole: &Value, part: &Value) -> bool {
    whole == part
        || match whole {
            Value::Array(items) => items.iter().any(|item| holds(item, part)),
            Value::Object(members) => members.values().any(|value| holds(value, part)),
            _ => false,
        }
}
