//! Equality and order of JSON values as people mean them: 2 equals 2.0, and integers are compared exactly. One that does not fit 64 bits was
//! rounded when it was read, so that it may be another one than it seems to be.

use super::payload::Numbers;
use mcproof_analysis::differences::{element, member};
use serde_json::{Number, Value};
use std::cmp::Ordering;

/// Equal in every part; numbers by their value. `None` if that is not known, because of numbers that were rounded.
pub(crate) fn equality(left: &Value, right: &Value, numbers: Numbers) -> Option<bool> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right, numbers).map(Ordering::is_eq),
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            all(left.iter().zip(right).map(|(left, right)| equality(left, right, numbers)))
        }
        (Value::Object(left), Value::Object(right)) if left.len() == right.len() => {
            all(left.iter().map(|(key, value)| right.get(key).map_or(Some(false), |other| equality(value, other, numbers))))
        }
        _ => Some(left == right),
    }
}

/// Numbers among themselves, and texts among themselves. `None` also if it is not known, because of numbers that were rounded.
pub(crate) fn order(left: &Value, right: &Value, numbers: Numbers) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right, numbers),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

pub(crate) fn is_whole(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
}

/// Whether one number is no farther from the other than `within`, which is not negative.
pub(crate) fn is_close(one: &Number, other: &Number, within: f64) -> bool {
    if let (Some(one), Some(other)) = (whole(one), whole(other)) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates, and is not negative")]
        let most = within.floor() as u128;
        return one.abs_diff(other) <= most;
    }
    let (Some(one), Some(other)) = (one.as_f64(), other.as_f64()) else { return false };
    // A decimal such as 0.1 is not exact in binary: a value at the very edge counts as within.
    (one - other).abs() <= within + f64::EPSILON * other.abs().max(1.0)
}

/// Whether a number is in it that may stand for an integer which does not fit 64 bits.
pub fn has_large_number(value: &Value) -> bool {
    match value {
        Value::Number(number) => is_large(number),
        Value::Array(items) => items.iter().any(has_large_number),
        Value::Object(members) => members.values().any(has_large_number),
        _ => false,
    }
}

/// Where the first such number is.
pub(crate) fn large_number(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::Array(items) => {
            let (index, item) = items.iter().enumerate().find(|(_, item)| has_large_number(item))?;
            large_number(item, &element(path, index))
        }
        Value::Object(members) => {
            let (key, value) = members.iter().find(|(_, value)| has_large_number(value))?;
            large_number(value, &member(path, key))
        }
        other => has_large_number(other).then(|| path.to_owned()),
    }
}

/// Whether some JSON has an integer that does not fit 64 bits, and is rounded when it is read.
pub fn has_long_integer(json: &str) -> bool {
    let mut rest = json;
    while let Some(at) = rest.find(|next: char| next == '"' || next == '-' || next.is_ascii_digit()) {
        rest = &rest[at..];
        if let Some(text) = rest.strip_prefix('"') {
            rest = after_text(text);
            continue;
        }
        let end = rest.find(|next: char| !matches!(next, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')).unwrap_or(rest.len());
        if is_long(&rest[..end]) {
            return true;
        }
        rest = &rest[end..];
    }
    false
}

/// What follows the end of a text whose beginning was read.
fn after_text(text: &str) -> &str {
    let mut escaped = false;
    for (at, next) in text.char_indices() {
        match next {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

/// Whether this is written as an integer, and fits neither kind.
pub(crate) fn is_long(number: &str) -> bool {
    let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
    let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err()
}

fn all(parts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = Some(true);
    for part in parts {
        match part {
            Some(false) => return Some(false),
            Some(true) => {}
            None => known = None,
        }
    }
    known
}

fn compare_numbers(left: &Number, right: &Number, numbers: Numbers) -> Option<Ordering> {
    let ordering = match (whole(left), whole(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?)?,
    };
    // What differs after it was rounded differed before.
    let may_differ = numbers == Numbers::Rounded && (is_large(left) || is_large(right));
    (ordering.is_ne() || !may_differ).then_some(ordering)
}

/// Whether it may stand for an integer that does not fit 64 bits: those that fit are no floats.
fn is_large(number: &Number) -> bool {
    const ABOVE: f64 = 18_446_744_073_709_551_616.0;
    const BELOW: f64 = -9_223_372_036_854_775_808.0;
    !number.is_i64() && !number.is_u64() && number.as_f64().is_some_and(|float| float >= ABOVE || float <= BELOW)
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn long_integers_are_found_outside_of_texts() {
        let check = |json: &str, expected: bool| assert_eq!(has_long_integer(json), expected, "{json}");
        check(r#"{"a": 18446744073709551616}"#, true);
        check(r#"[1, -9223372036854775809]"#, true);
        check("18446744073709551616", true);
        check(r#"{"18446744073709551616": "a\"18446744073709551616", "b": [18446744073709551615, -9223372036854775808]}"#, false);
        check("[1e30, 1000000000000000000000.5, -1E+40, 6.02e23]", false);
        check(r#"["unclosed 18446744073709551616"#, false);
        check("-", false);
    }

    #[test]
    fn an_object_is_known_to_differ_although_parts_of_it_are_not() {
        let check = |left: Value, right: Value, expected: Option<bool>| {
            assert_eq!(equality(&left, &right, Numbers::Rounded), expected, "{left} {right}");
        };
        check(json!({ "a": 1e30, "b": 1 }), json!({ "a": 1e30, "b": 1 }), None);
        check(json!({ "a": 1e30, "b": 1 }), json!({ "a": 1e30, "b": 2 }), Some(false));
        check(json!([1e30]), json!([2e30]), Some(false));
        check(json!([1e18]), json!([1_000_000_000_000_000_000_u64]), Some(true));
        assert_eq!(equality(&json!([1e30]), &json!([1e30]), Numbers::Exact), Some(true));
        assert_eq!(large_number(&json!({ "a": [1, { "b": 1e30 }] }), ""), Some("a[1].b".to_owned()));
    }
}
