//! From two answers to what is expected of the next one: what was the same both times by its value, what differed by its type.
//! Knows values and the matchers of suites, no sessions.

use super::fleeting::{self, grows, is_fleeting};
use super::now::Now;
use super::{BaseEnvironment, yaml};
use mcproof_suite::judge::{Payload, is_datetime, looks_like_a_pattern};
use serde_json::{Map, Value, json};

/// Longer texts are told by their first line.
const LONGEST_TEXT: usize = 160;
/// Characters of that line.
const EXCERPT: usize = 80;
/// Shorter values of variables are common words.
const SHORTEST_VALUE: usize = 4;
/// Elements that are matched one by one.
const MOST_ELEMENTS: usize = 8;
const MOST_KEYS: usize = 16;
const LONGEST_KEY: usize = 100;
/// An object with so many names of our variables is the environment of the server.
const AN_ENVIRONMENT: usize = 3;
/// Objects inside each other that are looked into.
const DEEPEST: usize = 4;
/// Characters of a whole expectation, and of one array in it.
const LARGEST: usize = 2_000;
const LARGEST_ARRAY: usize = 500;

/// What is known besides the answers.
pub(super) struct Known<'a> {
    /// The arguments of the call: what is repeated of them depends on nothing else.
    pub(super) arguments: &'a Value,
    pub(super) now: &'a Now,
    pub(super) surroundings: &'a BaseEnvironment,
    /// Whether the answer comes from beyond the server, so that it may be another one tomorrow.
    pub(super) is_open: bool,
    /// Whether both answers came from the server. Otherwise, the second was made from the first: another client may get a longer text.
    pub(super) was_repeated: bool,
}

impl Known<'_> {
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
    if is_told && !says_more(first) {
        return ("expect", of_values(&one.value, &two.value, known));
    }
    let blocks = |result: &Value| result.get("content").and_then(Value::as_array).cloned().unwrap_or_default();
    let kinds = |result: &Value| blocks(result).iter().map(kind).collect::<Vec<_>>();
    let (kinds_one, kinds_two) = (kinds(first), kinds(second));
    let mut result = Map::new();
    if kinds_one != kinds_two {
        result.insert("content".into(), json!({ "$type": "array" }));
    } else {
        let said = blocks(first).iter().zip(&blocks(second)).map(|(first, second)| [said(first), said(second)]).collect::<Vec<_>>();
        let block = |(mut kind, [first, second]): (Value, [Map<String, Value>; 2])| {
            if let (Some(kind), false) = (kind.as_object_mut(), first.is_empty()) {
                kind.extend(of_values(&json!(first), &json!(second), known).as_object().cloned().unwrap_or_default());
            }
            kind
        };
        result.insert("content".into(), kinds_one.into_iter().zip(said).map(block).collect());
    }
    if let (true, Some(structured)) = (is_told, first.get("structuredContent")) {
        let second = second.get("structuredContent").unwrap_or(&Value::Null);
        result.insert("structuredContent".into(), of_values(structured, second, known));
    }
    ("result", Value::Object(result))
}

/// Whether the texts of a result are something else than its structured content.
fn says_more(result: &Value) -> bool {
    let Some(structured) = result.get("structuredContent").filter(|structured| !structured.is_null()) else { return false };
    let texts: Vec<&str> = result["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect();
    let is_in_it = |text: &str| match serde_json::from_str::<Value>(text) {
        Ok(value) => holds(structured, &value) || value.is_object() || value.is_array(),
        Err(_) => holds(structured, &json!(text)),
    };
    !texts.iter().all(|text| is_in_it(text))
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

/// What a block says, apart from its kind and from data.
fn said(block: &Value) -> Map<String, Value> {
    let members = ["text", "uri", "name"].into_iter().filter_map(|name| Some((name.to_owned(), block.get(name)?.clone())));
    let mut said: Map<String, Value> = members.collect();
    if let Some(resource) = block.get("resource").and_then(Value::as_object) {
        let members = ["uri", "mimeType", "text"].into_iter().filter_map(|name| Some((name.to_owned(), resource.get(name)?.clone())));
        said.insert("resource".into(), Value::Object(members.collect()));
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
    if yaml::flow(&whole).len() <= LARGEST { whole } else { types(&[first, second]) }
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
            (Value::Bool(_), Value::Bool(_)) | (Value::Number(_), Value::Number(_)) if first == second && self.is_steady(first) => {
                first.clone()
            }
            (Value::String(first), Value::String(second)) => self.text(first, second),
            (Value::Array(first), Value::Array(second)) => self.array(first, second, depth),
            (Value::Object(first), Value::Object(second)) if depth < DEEPEST => self.object(first, second, depth),
            _ => types(&[first, second]),
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
        if first.chars().count() <= LONGEST_TEXT {
            return literal(first);
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
        if self.known.was_repeated && !is_fleeting(first) {
            matcher.insert("$len".into(), json!(first.chars().count()));
        }
        Value::Object(matcher)
    }

    /// What two texts have in common that differ in numbers, dates and ids alone.
    fn form(&self, first: &str, second: &str) -> Option<Value> {
        let may_be_told =
            !self.known.was_repeated && !self.known.is_open && !self.known.is_private(first) && first.chars().count() <= LONGEST_TEXT;
        let form = may_be_told.then(|| fleeting::form(first)).flatten()?;
        (fleeting::form(second).as_ref() == Some(&form)).then(|| json!({ "$regex": form }))
    }

    fn array(&self, first: &[Value], second: &[Value], depth: usize) -> Value {
        if first.len() == second.len() && first.len() <= MOST_ELEMENTS {
            let beside = self.beside(first.iter().chain(second));
            let elements = first.iter().zip(second).map(|(first, second)| self.inner(&beside, first, second, depth + 1));
            let elements: Vec<Value> = elements.collect();
            let elements = Value::Array(elements);
            if yaml::flow(&elements).len() <= LARGEST_ARRAY {
                return elements;
            }
        }
        let mut matcher = Map::from_iter([("$type".to_owned(), json!("array"))]);
        if !first.is_empty() && !second.is_empty() {
            let stays = self.stays == Stays::Everything && first.len() == second.len();
            matcher.insert("$len".into(), if stays { json!(first.len()) } else { json!({ "$gte": 1 }) });
            matcher.insert("$all".into(), types(&first.iter().chain(second).collect::<Vec<_>>()));
            if stays && first == second {
                let ends: Vec<Value> = [&first[0], &first[first.len() - 1]].map(|end| self.merged(end, end, depth + 1)).into();
                let ends = json!(if ends[0] == ends[1] { &ends[..1] } else { &ends });
                if yaml::flow(&ends).len() <= LARGEST_ARRAY {
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
                true => types(&[first, second]),
                false => self.inner(&beside, first, second, depth + 1),
            };
            (key, value)
        };
        let members: Map<String, Value> = both.take(MOST_KEYS).map(merged).collect();
        if members.is_empty() { json!({ "$type": "object" }) } else { Value::Object(members) }
    }
}

/// The types of some values and, where all are objects, of what they have in common.
fn types(values: &[&Value]) -> Value {
    let objects: Option<Vec<&Map<String, Value>>> = values.iter().map(|value| value.as_object()).collect();
    if let Some([first, others @ ..]) = objects.as_deref() {
        let common = first.iter().filter(|(key, _)| others.iter().all(|other| other.contains_key(*key)));
        let typed = |(key, value): (&String, &Value)| {
            let all: Vec<&Value> = std::iter::once(value).chain(others.iter().map(|other| &other[key])).collect();
            Some((member(key)?, named_types(&all)))
        };
        let members: Map<String, Value> = common.filter_map(typed).take(MOST_KEYS).collect();
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
