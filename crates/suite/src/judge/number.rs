//! Equality and order of JSON values as people mean them: 2 equals 2.0, and large integers are compared exactly.

use serde_json::{Number, Value};
use std::cmp::Ordering;

/// Equal in every part; numbers by their value.
pub(crate) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right) == Some(Ordering::Equal),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len() && left.iter().all(|(key, value)| right.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => left == right,
    }
}

/// Numbers among themselves, and texts among themselves.
pub(crate) fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

pub(crate) fn is_whole(number: &Number) -> bool {
    whole(number).is_some()
}

fn compare_numbers(left: &Number, right: &Number) -> Option<Ordering> {
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

/// The exact integer, if the number is one and fits.
fn whole(number: &Number) -> Option<i128> {
    const EXACT: f64 = 1e30;
    if let Some(integer) = number.as_i128() {
        return Some(integer);
    }
    let float = number.as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "a whole float below 1e30 is an i128 exactly")]
    (float.fract() == 0.0 && float.abs() < EXACT).then_some(float as i128)
}
