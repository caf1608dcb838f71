//! What a response is expected to look like, compiled, and how to say it in words. Knows neither files nor responses.

use super::text::{Pattern, TextPattern};
use crate::interpolate;
use mcproof_analysis::json_schema::Schema;
use mcproof_record::Place;
use serde_json::{Map, Number, Value};
use std::cmp::Ordering;
use std::sync::Arc;

/// An expectation of one value. Every part of it knows its place in the suite.
#[derive(Clone, Debug)]
pub struct Matcher {
    pub(super) test: Test,
    pub(super) place: Place,
    /// As it was written, for messages.
    pub(super) written: Value,
}

impl Matcher {
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Whether it says something of this member of an object, in any of its parts.
    pub fn speaks_of(&self, member: &str) -> bool {
        match &self.test {
            Test::Members { members, .. } => members.iter().any(|(name, _)| name == member),
            Test::Every(tests) | Test::OneOf(tests) => tests.iter().any(|test| test.speaks_of(member)),
            Test::Not(unwanted) => unwanted.speaks_of(member),
            Test::Schema { schema, .. } => names(schema, member),
            // Of all of them.
            Test::Equals(_) => true,
            _ => false,
        }
    }

    /// Whether it is a list without more to it: what has to come, in this order.
    pub fn is_sequence(&self) -> bool {
        matches!(&self.test, Test::Elements(elements) if !elements.is_empty())
    }
}

/// Whether a schema names a member in any of its parts: as a key, or as a text such as those in `required`.
fn names(schema: &Value, member: &str) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(key, part)| key == member || names(part, member)),
        Value::Array(parts) => parts.iter().any(|part| names(part, member)),
        Value::String(text) => text == member,
        _ => false,
    }
}

#[derive(Clone, Debug)]
pub(super) enum Test {
    /// A scalar; a text may be a template.
    Equals(Value),
    /// All of these, element by element.
    Elements(Vec<Matcher>),
    Members {
        members: Vec<(String, Matcher)>,
        others: Others,
    },
    /// All of these, on the same value.
    Every(Vec<Matcher>),
    Regex(Pattern),
    /// `bound` is a number, a text or a template.
    Order {
        order: Order,
        bound: Value,
    },
    Length(Box<Matcher>),
    Type(Vec<TypeName>),
    Any,
    Absent,
    All(Box<Matcher>),
    Contains(Box<Matcher>),
    ContainsAll(Vec<Matcher>),
    /// Of what a text holds as JSON.
    Json(Box<Matcher>),
    Not(Box<Matcher>),
    OneOf(Vec<Matcher>),
    CloseTo {
        value: Number,
        /// Not negative.
        within: f64,
    },
    Uuid,
    Datetime,
    Schema {
        schema: Value,
        compiled: Option<Arc<Schema>>,
    },
    Text(TextPattern),
}

impl Test {
    /// Whether only texts and numbers can pass.
    pub(super) fn is_for_scalars(&self) -> bool {
        matches!(self, Self::Regex(_) | Self::Order { .. } | Self::CloseTo { .. } | Self::Uuid | Self::Datetime | Self::Json(_))
    }
}

/// Whether an object may have keys that the expectation does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    Allowed,
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Above,
    AtLeast,
    Below,
    AtMost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TypeName {
    String,
    Number,
    Integer,
    Boolean,
    Array,
    Object,
    Null,
}

impl Matcher {
    /// What it asks for, in words.
    pub(super) fn describe(&self, scope: &Map<String, Value>) -> String {
        let filled = || interpolate(&self.written, scope).unwrap_or_else(|_| self.written.clone());
        match &self.test {
            Test::Equals(value) => interpolate(value, scope).unwrap_or_else(|_| value.clone()).to_string(),
            Test::Elements(_) => format!("a list like {}", filled()),
            Test::Members { others: Others::Allowed, .. } => format!("an object like {}", filled()),
            Test::Members { others: Others::Refused, .. } => format!("exactly {}", filled()),
            Test::Every(tests) => tests.iter().map(|test| test.describe(scope)).collect::<Vec<_>>().join(" and "),
            Test::Regex(pattern) => format!("a string that matches {}", pattern.describe(scope)),
            Test::Order { order, bound } => {
                let bound = interpolate(bound, scope).unwrap_or_else(|_| bound.clone());
                let kind = if bound.is_string() { "a string" } else { "a number" };
                format!("{kind} {} {bound}", order.words())
            }
            Test::Length(inner) => length_words(&inner.describe(scope)),
            Test::Type(types) => types.iter().map(|name| name.words()).collect::<Vec<_>>().join(" or "),
            Test::Any => "any value".to_owned(),
            Test::Absent => "no such key".to_owned(),
            Test::All(inner) => format!("a list or an object whose every value is {}", inner.describe(scope)),
            Test::Contains(inner) => format!("something that contains {}", inner.describe(scope)),
            Test::ContainsAll(parts) => {
                format!("something that contains {}", parts.iter().map(|part| part.describe(scope)).collect::<Vec<_>>().join(" and "))
            }
            Test::Json(inner) => format!("a text that is JSON: {}", inner.describe(scope)),
            Test::Not(inner) => format!("not {}", inner.describe(scope)),
            Test::OneOf(choices) => {
                format!("one of {}", choices.iter().map(|choice| choice.describe(scope)).collect::<Vec<_>>().join(", "))
            }
            Test::CloseTo { value, within } => format!("a number within {within} of {value}"),
            Test::Uuid => "a UUID".to_owned(),
            Test::Datetime => "a date and time such as 2025-11-25T08:30:00Z".to_owned(),
            Test::Schema { .. } => "a value that its schema allows".to_owned(),
            Test::Text(pattern) => pattern.describe_exactly(scope),
        }
    }

    /// Whether it names keys that the value has to have.
    pub(super) fn is_about_an_object(&self) -> bool {
        match &self.test {
            Test::Members { .. } => true,
            Test::Every(tests) => tests.iter().any(Self::is_about_an_object),
            _ => false,
        }
    }

    /// Whether a key that is not there satisfies this.
    pub(super) fn accepts_missing(&self) -> bool {
        match &self.test {
            Test::Absent => true,
            Test::Every(tests) => tests.iter().all(Self::accepts_missing),
            Test::OneOf(choices) => choices.iter().any(Self::accepts_missing),
            _ => false,
        }
    }
}

/// What a length has to be, from the words for the number.
pub(super) fn length_words(number: &str) -> String {
    match number.strip_prefix("a number ") {
        Some(relation) => format!("a length {relation}"),
        None => format!("a length of {number}"),
    }
}

impl Order {
    pub(super) fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Above => ordering.is_gt(),
            Self::AtLeast => ordering.is_ge(),
            Self::Below => ordering.is_lt(),
            Self::AtMost => ordering.is_le(),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Above => "above",
            Self::AtLeast => "of at least",
            Self::Below => "below",
            Self::AtMost => "of at most",
        }
    }
}

impl TypeName {
    pub(super) const ALL: [(&'static str, Self); 7] = [
        ("string", Self::String),
        ("number", Self::Number),
        ("integer", Self::Integer),
        ("boolean", Self::Boolean),
        ("array", Self::Array),
        ("object", Self::Object),
        ("null", Self::Null),
    ];

    pub(super) fn holds(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            Self::Integer => value.as_number().is_some_and(super::number::is_whole),
            Self::Boolean => value.is_boolean(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
            Self::Null => value.is_null(),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::String => "a string",
            Self::Number => "a number",
            Self::Integer => "an integer",
            Self::Boolean => "a boolean",
            Self::Array => "an array",
            Self::Object => "an object",
            Self::Null => "null",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::names;
    use serde_json::{Value, json};

    #[test]
    fn a_schema_names_members_in_all_of_its_parts() {
        let check = |schema: Value, expected: bool| assert_eq!(names(&schema, "code"), expected, "{schema}");
        check(json!({ "properties": { "code": { "const": 3 } } }), true);
        check(json!({ "required": ["code"] }), true);
        check(json!({ "allOf": [{ "properties": { "code": { "minimum": 1 } } }] }), true);
        check(json!({ "properties": { "stdout": { "const": "the code" } } }), false);
        check(json!(true), false);
    }
}
