//! What more elements at the end of a list change: whether it goes on to match, and whether it can still come to match. Knows lists, not
//! what is in them.

use super::Payload;
use super::matcher::{Matcher, Order, Test};
use serde_json::{Map, Value};

impl Matcher {
    /// Whether a list that matches this does so whatever is added to it. Where that is not known, it is not so.
    pub fn survives_growth(&self) -> bool {
        match &self.test {
            Test::Any | Test::Type(_) | Test::Contains(_) | Test::ContainsAll(_) => true,
            Test::Length(length) => length.is_lower_bound(),
            Test::Every(tests) | Test::OneOf(tests) => tests.iter().all(Self::survives_growth),
            _ => false,
        }
    }

    /// Whether no list that begins with this one, which does not match, matches. Where that is not known, it is not so.
    pub fn is_lost(&self, list: &[Value], scope: &Map<String, Value>) -> bool {
        let matches = |matcher: &Self, value: Value| matcher.compare(&Payload::of(value), scope).is_empty();
        match &self.test {
            Test::Elements(elements) => {
                list.len() > elements.len() || elements.iter().zip(list).any(|(element, value)| !matches(element, value.clone()))
            }
            Test::Length(length) => length.upper_bound().is_some_and(|most| list.len() > most),
            Test::All(element) => list.iter().any(|value| !matches(element, value.clone())),
            Test::Not(unwanted) => unwanted.survives_growth() && matches(unwanted, Value::Array(list.to_vec())),
            Test::Every(tests) => tests.iter().any(|test| test.is_lost(list, scope)),
            Test::OneOf(choices) => choices.iter().all(|choice| choice.is_lost(list, scope)),
            _ => false,
        }
    }

    /// Whether a number that matches is followed by others that do.
    fn is_lower_bound(&self) -> bool {
        match &self.test {
            Test::Order { order: Order::Above | Order::AtLeast, .. } => true,
            Test::Every(tests) => tests.iter().all(Self::is_lower_bound),
            _ => false,
        }
    }

    /// No number above it matches.
    fn upper_bound(&self) -> Option<usize> {
        match &self.test {
            Test::Equals(most) | Test::Order { order: Order::AtMost | Order::Below, bound: most } => usize::try_from(most.as_u64()?).ok(),
            Test::Every(tests) => tests.iter().find_map(Self::upper_bound),
            _ => None,
        }
    }
}
