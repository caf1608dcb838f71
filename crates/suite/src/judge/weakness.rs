//! Expectations that cannot fail, or that say something else than they look like. Warnings, never mistakes.

use super::matcher::{Matcher, Order, Others, Test};
use mcproof_record::Diagnostic;
use serde_json::Value;

impl Matcher {
    /// What in this expectation proves nothing, each with its place.
    pub fn weaknesses(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        self.look(Depth::Root, &mut found);
        found
    }

    fn look(&self, depth: Depth, found: &mut Vec<Diagnostic>) {
        if let Some(why) = self.weakness(depth) {
            found.push(Diagnostic::warning("cannot-fail", why).at(self.place.clone()));
            return;
        }
        match &self.test {
            Test::Elements(parts) | Test::ContainsAll(parts) | Test::OneOf(parts) => {
                parts.iter().for_each(|part| part.look(Depth::Inside, found));
            }
            Test::Every(parts) => parts.iter().for_each(|part| part.look(depth, found)),
            Test::Members { members, .. } => members.iter().for_each(|(_, member)| member.look(Depth::Inside, found)),
            Test::Length(part) | Test::All(part) | Test::Contains(part) | Test::Json(part) => part.look(Depth::Inside, found),
            Test::Not(part) => part.look(Depth::Inside, found),
            Test::Equals(Value::String(text)) if looks_like_a_pattern(text) => {
                let warning = Diagnostic::warning("literal-pattern", "this is compared as text, not as a pattern").at(self.place.clone());
                found.push(warning.hint(match depth {
                    Depth::Root => format!("a pattern is written `{{ $text: {text} }}`"),
                    Depth::Inside => format!("a pattern is written `{{ $regex: {text} }}`"),
                }));
            }
            _ => {}
        }
    }

    fn weakness(&self, depth: Depth) -> Option<&'static str> {
        match &self.test {
            // Inside of an object it proves that there is such a key.
            Test::Any if depth == Depth::Root => Some("every response is accepted"),
            Test::Members { members, others: Others::Allowed } if members.is_empty() && depth == Depth::Root => {
                Some("every object is accepted, whatever it holds")
            }
            Test::Length(length) => match &length.test {
                Test::Order { order, bound } if order.holds_for_all_lengths(bound) => Some("no length is below 0"),
                _ => None,
            },
            Test::Regex(pattern) if pattern.matches_everything() => Some("this pattern matches every text"),
            Test::Text(pattern) => pattern.weakness(),
            Test::OneOf(choices) if choices.iter().any(|choice| matches!(choice.test, Test::Any)) => {
                Some("one of the choices accepts every value")
            }
            Test::Schema { schema, .. } if schema == &Value::Bool(true) || schema.as_object().is_some_and(serde_json::Map::is_empty) => {
                Some("this schema allows every value")
            }
            _ => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Root,
    Inside,
}

impl Order {
    fn holds_for_all_lengths(self, bound: &Value) -> bool {
        let bound = bound.as_f64();
        match self {
            Self::AtLeast => bound.is_some_and(|bound| bound <= 0.0),
            Self::Above => bound.is_some_and(|bound| bound < 0.0),
            Self::Below | Self::AtMost => false,
        }
    }
}

/// `/B/i` or `/Ann/`, but no path of several parts such as `/usr/bin/`.
pub fn looks_like_a_pattern(text: &str) -> bool {
    let Some((body, flags)) = text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/')) else { return false };
    !body.is_empty() && flags.chars().all(|flag| "imsx".contains(flag)) && !body.contains('/') && !text.contains("${")
}
