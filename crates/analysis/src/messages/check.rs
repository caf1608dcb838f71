//! Compares a value with its shape and describes each flaw in a sentence. Knows the types of the tables, and no message.

use super::shape::{Kind, Member, Presence, Shape, Tags, Variant};
use super::{MessageFlaw, is_misspelt};
use crate::wording::shortened;
use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine as _};
use mcproof_protocol::Revision;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Bounds the memory that a peer can fill with invalid values.
const MOST_FLAWS: usize = 100;
/// The number of characters of a value that a sentence quotes.
const MOST_SHOWN: usize = 40;

pub(super) struct Check {
    revision: Revision,
    focus: Focus,
    flaws: Vec<MessageFlaw>,
}

/// What is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Focus {
    Shape,
    /// Only whether what has to be base64 is.
    Base64,
}

/// Where a value is: a chain up to the message. Costs nothing as long as there are no flaws.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Message,
    Member(&'a str),
    Item(usize),
    /// Not a step, but a name for the value at this place, so that the sentence can use it instead of an index.
    Named(&'static str, &'a str),
}

impl Check {
    pub(super) fn new(revision: Revision, focus: Focus) -> Self {
        Self { revision, focus, flaws: Vec::new() }
    }

    pub(super) fn into_flaws(self) -> Vec<MessageFlaw> {
        self.flaws
    }

    /// The member called `name` in the table, if this revision has it.
    pub(super) fn known(&self, members: &'static [Member], name: &str) -> Option<&'static Member> {
        members.iter().find(|member| member.name == name && self.knows(member))
    }

    pub(super) fn knows(&self, member: &Member) -> bool {
        member.span.has(self.revision)
    }

    pub(super) fn shape(&mut self, shape: &'static Shape, object: &Map<String, Value>, place: &Place<'_>) {
        let name = shape.noun.zip(object.get("name").and_then(Value::as_str));
        match name {
            Some((noun, name)) => {
                let named = Place { parent: Some(place), step: Step::Named(noun, name) };
                self.members(shape, object, &named);
            }
            None => self.members(shape, object, place),
        }
    }

    pub(super) fn member(&mut self, member: &'static Member, object: &Map<String, Value>, place: &Place<'_>) {
        let here = place.member(member.name);
        match object.get(member.name) {
            Some(value) => self.value(&member.kind, value, &here),
            None if member.presence == Presence::Required => self.missing(&here, &expectation(&member.kind)),
            // The schema allows members of its own; but one that differs in its spelling only is one that no client reads.
            None => {
                if let Some(key) = object.keys().find(|key| is_misspelt(key, member.name)) {
                    self.flaw(&here, &format!("is called `{}`, a name that no client reads,", shortened(key, MOST_SHOWN)));
                }
            }
        }
    }

    pub(super) fn value(&mut self, kind: &'static Kind, value: &Value, place: &Place<'_>) {
        let fits = match kind {
            Kind::Any => true,
            Kind::Text | Kind::Base64 if !value.is_string() => false,
            Kind::Text => true,
            Kind::Base64 => {
                self.base64(value, place);
                true
            }
            Kind::Uri => value.as_str().is_some_and(|text| fluent_uri::Uri::parse(text).is_ok()),
            Kind::Timestamp => value.as_str().is_some_and(is_timestamp),
            Kind::Flag => value.is_boolean(),
            Kind::Number => value.is_number(),
            Kind::Fraction => value.as_f64().is_some_and(|number| (0.0..=1.0).contains(&number)),
            Kind::Integer => is_integer(value),
            Kind::Count => is_integer(value) && value.as_f64().is_some_and(|number| number >= 0.0),
            Kind::IntegerOrNull => value.is_null() || is_integer(value),
            Kind::Id => value.is_string() || is_integer(value),
            Kind::Exactly(text) => value == text,
            Kind::OneOf(texts) => value.as_str().is_some_and(|text| texts.contains(&text)),
            Kind::Object(shape) => self.within_object(value, |check, object| check.shape(shape, object, place)),
            Kind::Meta(shape) => self.within_object(value, |check, object| {
                check.meta_keys(object, place);
                check.members(shape, object, place);
            }),
            Kind::Map(kind) => self.within_object(value, |check, object| {
                for (key, value) in object {
                    check.value(kind, value, &place.member(key));
                }
            }),
            Kind::List(kind) => self.items(kind, value, place),
            Kind::ListOfAtMost(most, kind) => {
                if let Some(items) = value.as_array().filter(|items| items.len() > *most) {
                    self.flaw(place, &format!("has {} items; it may have {most}", items.len()));
                }
                self.items(kind, value, place)
            }
            Kind::OneOrList(kind) if value.is_array() => self.items(kind, value, place),
            Kind::OneOrList(kind) => {
                self.value(kind, value, place);
                true
            }
            Kind::Tagged(tags) => self.within_object(value, |check, object| check.tagged(tags, object, value, place)),
            Kind::Choice(variants) => self.within_object(value, |check, _| check.choice(variants, value, place)),
        };
        if !fits {
            self.flaw(place, &format!("is {}; it has to be {}", shown(value), expectation(kind)));
        }
    }

    pub(super) fn missing(&mut self, place: &Place<'_>, expected: &str) {
        self.flaw(place, &format!("is missing; it has to be {expected}"));
    }

    /// What is wrong at a place; `predicate` follows the name of the place.
    pub(super) fn flaw(&mut self, place: &Place<'_>, predicate: &str) {
        if self.focus == Focus::Shape {
            self.add(place, predicate);
        }
    }

    fn add(&mut self, place: &Place<'_>, predicate: &str) {
        if self.flaws.len() >= MOST_FLAWS {
            return;
        }
        let message = format!("{} {predicate}", place.subject());
        let flaw = MessageFlaw { pointer: place.pointer(), message, predicate: predicate.to_owned() };
        // The members of all messages are judged separately from those of a method, so both may report the same flaw.
        if !self.flaws.contains(&flaw) {
            self.flaws.push(flaw);
        }
    }

    fn members(&mut self, shape: &'static Shape, object: &Map<String, Value>, place: &Place<'_>) {
        for member in shape.members {
            if self.knows(member) {
                self.member(member, object, place);
            }
        }
    }

    fn within_object(&mut self, value: &Value, judge: impl FnOnce(&mut Self, &Map<String, Value>)) -> bool {
        value.as_object().map(|object| judge(self, object)).is_some()
    }

    fn items(&mut self, kind: &'static Kind, value: &Value, place: &Place<'_>) -> bool {
        let Some(items) = value.as_array() else { return false };
        for (index, item) in items.iter().enumerate() {
            self.value(kind, item, &Place { parent: Some(place), step: Step::Item(index) });
        }
        true
    }

    fn tagged(&mut self, tags: &'static Tags, object: &Map<String, Value>, value: &Value, place: &Place<'_>) {
        let tag = match object.get(tags.by) {
            Some(tag) => tag.as_str(),
            None => tags.otherwise,
        };
        match tag.and_then(|tag| self.known(tags.variants, tag)) {
            Some(variant) => self.value(&variant.kind, value, place),
            None => {
                let here = place.member(tags.by);
                let expected = one_of(tags.variants.iter().filter(|variant| self.knows(variant)).map(|variant| variant.name));
                match object.get(tags.by) {
                    Some(found) => {
                        let elsewhere = tag.is_some_and(|tag| tags.variants.iter().any(|variant| variant.name == tag));
                        let which = if elsewhere { format!(", which {} does not have", self.revision) } else { String::new() };
                        self.flaw(&here, &format!("is {}{which}; it has to be {expected}", shown(found)));
                    }
                    None => self.missing(&here, &expected),
                }
            }
        }
    }

    /// Any variant may match. If none does, the flaws are reported for the variant that was intended.
    fn choice(&mut self, variants: &'static [Variant], value: &Value, place: &Place<'_>) {
        let mut meant = None;
        for variant in variants.iter().filter(|variant| variant.span.has(self.revision)) {
            let mut attempt = Self::new(self.revision, Focus::Shape);
            attempt.value(&variant.kind, value, place);
            let marked = value.pointer(variant.mark).is_some();
            if attempt.flaws.is_empty() {
                meant = Some((variant, attempt));
                break;
            }
            if marked && meant.is_none() {
                meant = Some((variant, attempt));
            }
        }
        match meant {
            Some((variant, _)) if self.focus == Focus::Base64 => self.value(&variant.kind, value, place),
            Some((_, attempt)) => {
                let room = MOST_FLAWS.saturating_sub(self.flaws.len());
                self.flaws.extend(attempt.flaws.into_iter().take(room));
            }
            None => {
                let marks = variants.iter().map(|variant| format!("`{}`", variant.mark.trim_start_matches('/'))).collect::<Vec<_>>();
                self.flaw(place, &format!("has none of {}", marks.join(", ")));
            }
        }
    }

    /// The syntax of keys in `_meta` came with 2025-06-18 (basic/index, general fields).
    fn meta_keys(&mut self, object: &Map<String, Value>, place: &Place<'_>) {
        if self.revision < Revision::V2025_06_18 {
            return;
        }
        for key in object.keys().filter(|key| !is_meta_key(key)) {
            self.flaw(
                &place.member(key),
                "is not a valid key for `_meta`; it has to begin and end with a letter or a digit, after a prefix such as `com.example/` if any",
            );
        }
    }

    fn base64(&mut self, value: &Value, place: &Place<'_>) {
        if self.focus != Focus::Base64 {
            return;
        }
        let Some(text) = value.as_str() else { return };
        let why = match STANDARD.decode(text) {
            Ok(_) => return,
            Err(DecodeError::InvalidByte(_, b'-' | b'_')) => "it uses the base64url alphabet; use `+` and `/`".to_owned(),
            Err(DecodeError::InvalidByte(offset, _)) => format!("its byte {offset} is outside the alphabet"),
            Err(DecodeError::InvalidLength(_) | DecodeError::InvalidPadding) => "it is truncated, or lacks padding".to_owned(),
            Err(DecodeError::InvalidLastSymbol { .. }) => "it ends with bits that do not form a byte".to_owned(),
        };
        self.add(place, &format!("is not valid base64: {why}"));
    }
}

impl<'a> Place<'a> {
    pub(super) const MESSAGE: Place<'static> = Place { parent: None, step: Step::Message };

    pub(super) fn member(&'a self, name: &'a str) -> Self {
        Place { parent: Some(self), step: Step::Member(name) }
    }

    /// RFC 6901.
    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in self.steps() {
            match step {
                Step::Member(name) => {
                    pointer.push('/');
                    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                }
                Step::Item(index) => write!(pointer, "/{index}").expect("a string can be written to"),
                Step::Message | Step::Named(..) => {}
            }
        }
        pointer
    }

    /// The place as a sentence names it: starting at the last named item, or at the result or the params.
    fn subject(&self) -> String {
        let steps = self.steps();
        let named = steps.iter().rposition(|step| matches!(step, Step::Named(..)));
        let envelope = usize::from(matches!(steps.get(1), Some(Step::Member("result" | "params"))) && steps.len() > 2);
        let from = named.unwrap_or(envelope) + 1;
        let mut path = String::new();
        for step in &steps[from.min(steps.len())..] {
            match step {
                Step::Member(name) if path.is_empty() => path.push_str(&shortened(name, MOST_SHOWN)),
                Step::Member(name) => write!(path, ".{}", shortened(name, MOST_SHOWN)).expect("a string can be written to"),
                Step::Item(index) => write!(path, "[{index}]").expect("a string can be written to"),
                Step::Message | Step::Named(..) => {}
            }
        }
        match named.map(|index| steps[index]) {
            Some(Step::Named(noun, name)) => format!("`{path}` of {noun} `{}`", shortened(name, MOST_SHOWN)),
            _ if path.is_empty() => "the message".to_owned(),
            _ => format!("`{path}`"),
        }
    }

    fn steps(&self) -> Vec<Step<'a>> {
        let mut steps: Vec<_> = std::iter::successors(Some(self), |place| place.parent).map(|place| place.step).collect();
        steps.reverse();
        steps
    }
}

fn expectation(kind: &Kind) -> String {
    match kind {
        Kind::Any => "some JSON".to_owned(),
        Kind::Text => "a string".to_owned(),
        Kind::Uri => "an absolute URI".to_owned(),
        Kind::Timestamp => "a date with a time (ISO 8601)".to_owned(),
        Kind::Base64 => "a string of base64".to_owned(),
        Kind::Flag => "true or false".to_owned(),
        Kind::Number => "a number".to_owned(),
        Kind::Fraction => "a number from 0 to 1".to_owned(),
        Kind::Integer => "an integer".to_owned(),
        Kind::Count => "an integer of 0 or more".to_owned(),
        Kind::IntegerOrNull => "an integer or null".to_owned(),
        Kind::Id => "a string or an integer".to_owned(),
        Kind::Exactly(text) => format!("\"{text}\""),
        Kind::OneOf(texts) => one_of(texts.iter().copied()),
        Kind::Object(_) | Kind::Meta(_) | Kind::Map(_) | Kind::Tagged(_) | Kind::Choice(_) => "an object".to_owned(),
        Kind::List(_) | Kind::ListOfAtMost(..) => "an array".to_owned(),
        Kind::OneOrList(kind) => format!("{} or an array", expectation(kind)),
    }
}

fn one_of<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut quoted: Vec<String> = texts.map(|text| format!("\"{text}\"")).collect();
    match quoted.pop() {
        Some(last) if quoted.is_empty() => last,
        Some(last) => format!("{} or {last}", quoted.join(", ")),
        None => "nothing".to_owned(),
    }
}

/// A value as a sentence quotes it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => Value::from(shortened(text, MOST_SHOWN)).to_string(),
        plain => plain.to_string(),
    }
}

/// Whether a number is whole, also when it is written as `1.0`.
fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// Any time that is valid in both ISO 8601 and RFC 3339, with or without an offset.
fn is_timestamp(text: &str) -> bool {
    text.parse::<jiff::Timestamp>().is_ok() || text.parse::<jiff::civil::DateTime>().is_ok()
}

/// A name, with or without a prefix of labels (2025-06-18 and later, basic/index, general fields).
fn is_meta_key(key: &str) -> bool {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    prefix.is_none_or(|prefix| prefix.split('.').all(is_meta_label)) && (name.is_empty() || is_meta_name(name))
}

fn is_meta_label(label: &str) -> bool {
    label.starts_with(|first: char| first.is_ascii_alphabetic())
        && label.ends_with(|last: char| last.is_ascii_alphanumeric())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_meta_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.ends_with(|last: char| last.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}
