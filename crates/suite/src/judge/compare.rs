//! Compares a response with its expectation and reports every difference. Pure; knows no suites.

use super::matcher::{Matcher, Others, Test, TypeName, length_words};
use super::number::{equal, order};
use super::payload::{Origin, Payload};
use crate::interpolate;
use mcproof_analysis::did_you_mean;
use mcproof_analysis::differences::{MAXIMUM_DIFFERENCES, SHOWN, below, element, member, shown};
use mcproof_analysis::json_schema::Schema;
use mcproof_analysis::wording::shortened;
use mcproof_record::Difference;
use serde_json::{Map, Value};

impl Matcher {
    /// Every difference between the payload and this expectation, in the order of the expectation and bounded in number; none if it
    /// matches. `scope` holds the saved values.
    pub fn compare(&self, payload: &Payload, scope: &Map<String, Value>) -> Vec<Difference> {
        let raw = payload.text.as_deref().filter(|_| payload.origin == Origin::Text);
        let mut comparison = Comparison { scope, text: payload.text.as_deref(), differences: Vec::new(), undecided: false };
        comparison.compare(self, &payload.value, raw, "");
        comparison.differences.truncate(MAXIMUM_DIFFERENCES);
        comparison.differences
    }

    /// What of a list of expectations did not come: others may stand before, between and after. For anything but a list
    /// it is [`Matcher::compare`].
    pub fn compare_in_order(&self, came: &[Value], scope: &Map<String, Value>) -> Vec<Difference> {
        let Test::Elements(expected) = &self.test else {
            return self.compare(&Payload::of(Value::Array(came.to_vec())), scope);
        };
        let mut comparison = Comparison { scope, text: None, differences: Vec::new(), undecided: false };
        let mut rest = came;
        for matcher in expected {
            match rest.iter().position(|item| comparison.matches(matcher, item, None)) {
                Some(index) => rest = &rest[index + 1..],
                None => {
                    let index = came.len() - rest.len();
                    let actual = if index == 0 { "missing".to_owned() } else { format!("missing after {}", element("", index - 1)) };
                    comparison.push(matcher, "", matcher.describe(scope), actual);
                }
            }
        }
        comparison.differences
    }
}

struct Comparison<'a> {
    scope: &'a Map<String, Value>,
    /// The text of the whole response, for `$text`.
    text: Option<&'a str>,
    differences: Vec<Difference>,
    /// Some part could not be compared at all, so that its opposite is not proven either.
    undecided: bool,
}

impl Comparison<'_> {
    /// `raw` is the text that `actual` was parsed from.
    fn compare(&mut self, matcher: &Matcher, actual: &Value, raw: Option<&str>, path: &str) {
        if self.differences.len() >= MAXIMUM_DIFFERENCES {
            return;
        }
        match &matcher.test {
            Test::Equals(expected) => match interpolate(expected, self.scope) {
                Ok(expected) => {
                    let same = equal(&expected, actual) || raw.is_some_and(|raw| expected.as_str() == Some(raw));
                    self.require(same, matcher, actual, path);
                }
                Err(missing) => self.unusable(matcher, path, &missing.to_string()),
            },
            Test::Elements(expected) => self.compare_elements(matcher, expected, actual, path),
            Test::Members { members, others } => self.compare_members(matcher, members, *others, actual, path),
            Test::Every(tests) => {
                for test in tests {
                    self.compare(test, actual, raw, path);
                }
            }
            Test::Regex(pattern) => match pattern.regex(self.scope) {
                Ok(regex) => {
                    let text = actual.as_str().or(raw);
                    self.undecided |= actual.is_null() && text.is_none();
                    self.require(text.is_some_and(|text| regex.is_match(text)), matcher, actual, path);
                }
                Err(reason) => self.unusable(matcher, path, &reason),
            },
            Test::Order { order: relation, bound } => match interpolate(bound, self.scope) {
                Ok(bound) => {
                    let holds = order(actual, &bound).is_some_and(|ordering| relation.holds(ordering));
                    self.require(holds, matcher, actual, path);
                }
                Err(missing) => self.unusable(matcher, path, &missing.to_string()),
            },
            Test::Length(expected) => self.compare_length(matcher, expected, actual, raw, path),
            Test::Type(types) => {
                // JSON in a text is what it says, and a text.
                let holds = types.iter().any(|name| name.holds(actual) || (*name == TypeName::String && raw.is_some()));
                self.require(holds, matcher, actual, path);
            }
            Test::Any => {}
            Test::Absent => self.push(matcher, path, "no such key".to_owned(), shown(actual)),
            Test::All(expected) => match actual {
                // Of nothing everything is true.
                Value::Array(items) if items.is_empty() => self.nothing_in(matcher, actual, path),
                Value::Object(members) if members.is_empty() => self.nothing_in(matcher, actual, path),
                Value::Array(items) => {
                    for (index, item) in items.iter().enumerate() {
                        self.compare(expected, item, None, &element(path, index));
                    }
                }
                Value::Object(members) => {
                    for (key, value) in members {
                        self.compare(expected, value, None, &member(path, key));
                    }
                }
                other => self.require(false, matcher, other, path),
            },
            Test::Contains(expected) => {
                let contained = self.contains(expected, actual, raw);
                self.require(contained, matcher, actual, path);
            }
            Test::ContainsAll(parts) => {
                for part in parts {
                    if !self.contains(part, actual, raw) {
                        let wanted = format!("something that contains {}", part.describe(self.scope));
                        self.push(part, path, wanted, shown(actual));
                    }
                }
            }
            Test::Json(inner) => match actual.as_str().or(raw).map(serde_json::from_str::<Value>) {
                Some(Ok(value)) => self.compare(inner, &value, None, path),
                _ => self.require(false, matcher, actual, path),
            },
            Test::Not(unwanted) => {
                let before = self.undecided;
                let matches = self.matches(unwanted, actual, raw);
                if self.undecided && !before {
                    self.push(matcher, path, matcher.describe(self.scope), "what cannot be checked".to_owned());
                } else {
                    self.require(!matches, matcher, actual, path);
                }
            }
            Test::OneOf(choices) => {
                let any = choices.iter().any(|choice| self.matches(choice, actual, raw));
                self.require(any, matcher, actual, path);
            }
            Test::CloseTo { value, within } => {
                // A decimal such as 0.1 is not exact in binary: a value at the very edge counts as within.
                let slack = f64::EPSILON * value.abs().max(1.0);
                let close = actual.as_f64().is_some_and(|actual| (actual - value).abs() <= within + slack);
                self.require(close, matcher, actual, path);
            }
            Test::Uuid => {
                let valid = actual.as_str().is_some_and(|text| text.len() == 36 && uuid::Uuid::try_parse(text).is_ok());
                self.require(valid, matcher, actual, path);
            }
            Test::Datetime => self.require(actual.as_str().is_some_and(is_datetime), matcher, actual, path),
            Test::Schema { schema, compiled } => self.compare_schema(matcher, schema, compiled.as_deref(), actual, path),
            Test::Text(pattern) => match self.text {
                _ if let Err(reason) = pattern.usable(self.scope) => self.unusable(matcher, path, &reason),
                Some(text) if pattern.matches_exactly(text, self.scope) => {}
                Some(text) => {
                    let actual = shown(&Value::String(text.to_owned()));
                    self.push(matcher, path, pattern.describe_exactly(self.scope), actual);
                }
                None => {
                    self.undecided = true;
                    self.push(matcher, path, pattern.describe_exactly(self.scope), "missing; the response has no text".to_owned());
                }
            },
        }
    }

    fn compare_elements(&mut self, matcher: &Matcher, expected: &[Matcher], actual: &Value, path: &str) {
        let Value::Array(items) = actual else {
            return self.require(false, matcher, actual, path);
        };
        if items.len() != expected.len() {
            let actual = format!("{}: {}", elements(items.len()), shown(actual));
            self.push(matcher, path, elements(expected.len()), actual);
        }
        for (index, (expected, item)) in expected.iter().zip(items).enumerate() {
            self.compare(expected, item, None, &element(path, index));
        }
    }

    fn compare_members(&mut self, matcher: &Matcher, expected: &[(String, Matcher)], others: Others, actual: &Value, path: &str) {
        let Value::Object(members) = actual else {
            return self.require(false, matcher, actual, path);
        };
        for (key, expected) in expected {
            match members.get(key) {
                Some(value) => self.compare(expected, value, None, &member(path, key)),
                None if expected.accepts_missing() => {}
                None => {
                    let unnamed = members.keys().map(String::as_str).filter(|name| !self.names(matcher, name));
                    let actual = match did_you_mean(key, unnamed) {
                        Some(near) => format!("missing; there is `{near}`"),
                        None => "missing".to_owned(),
                    };
                    self.push(expected, &member(path, key), expected.describe(self.scope), actual);
                }
            }
        }
        if others == Others::Refused {
            for (key, value) in members {
                if !self.names(matcher, key) {
                    self.push(matcher, &member(path, key), "no such key".to_owned(), shown(value));
                }
            }
        }
    }

    fn names(&self, matcher: &Matcher, key: &str) -> bool {
        matches!(&matcher.test, Test::Members { members, .. } if members.iter().any(|(name, _)| name == key))
    }

    /// That every value of a list or an object is as expected says nothing if there is none.
    fn nothing_in(&mut self, matcher: &Matcher, actual: &Value, path: &str) {
        self.undecided = true;
        self.push(matcher, path, matcher.describe(self.scope), format!("{actual}, which has no value at all"));
    }

    fn compare_length(&mut self, matcher: &Matcher, expected: &Matcher, actual: &Value, raw: Option<&str>, path: &str) {
        let length = match (actual, raw) {
            (Value::String(text), _) => text.chars().count(),
            (Value::Array(items), _) => items.len(),
            (Value::Object(members), _) => members.len(),
            // A text that is a number by chance.
            (_, Some(text)) => text.chars().count(),
            (other, None) => return self.require(false, matcher, other, path),
        };
        let outer = std::mem::take(&mut self.differences);
        self.compare(expected, &Value::from(length), None, path);
        let differences = std::mem::replace(&mut self.differences, outer);
        for difference in differences {
            let actual = format!("a length of {length}: {}", shown(actual));
            self.differences.push(Difference { expected: length_words(&difference.expected), actual, ..difference });
        }
    }

    fn contains(&mut self, expected: &Matcher, actual: &Value, raw: Option<&str>) -> bool {
        let holds = match actual {
            Value::Array(items) => items.iter().any(|item| self.matches(expected, item, None)),
            Value::String(text) => match &expected.test {
                Test::Equals(part) => match interpolate(part, self.scope) {
                    Ok(Value::String(part)) => text.contains(&part),
                    Ok(_) => false,
                    Err(_) => {
                        self.undecided = true;
                        false
                    }
                },
                _ => self.matches(expected, actual, None),
            },
            Value::Object(members) if expected.is_about_an_object() => members.values().any(|value| self.matches(expected, value, None)),
            Value::Object(members) => members.keys().any(|key| self.matches(expected, &Value::String(key.clone()), None)),
            other => {
                self.undecided |= other.is_null() && raw.is_none();
                false
            }
        };
        // JSON in a text is a text as well.
        holds || raw.is_some_and(|raw| !actual.is_string() && self.contains(expected, &Value::from(raw), None))
    }

    fn compare_schema(&mut self, matcher: &Matcher, schema: &Value, compiled: Option<&Schema>, actual: &Value, path: &str) {
        let built;
        let validator = match compiled {
            Some(validator) => validator,
            None => {
                let filled = match interpolate(schema, self.scope) {
                    Ok(filled) => filled,
                    Err(missing) => return self.unusable(matcher, path, &missing.to_string()),
                };
                match Schema::of(&filled) {
                    Ok(schema) => built = schema,
                    Err(unusable) => return self.unusable(matcher, path, &unusable.to_string()),
                }
                &built
            }
        };
        let errors = match validator.errors(actual, MAXIMUM_DIFFERENCES) {
            Ok(errors) => errors,
            Err(too_costly) => return self.unusable(matcher, path, &too_costly.to_string()),
        };
        for error in errors {
            let pointer = error.instance_path().to_string();
            let at = actual.pointer(&pointer).unwrap_or(actual);
            let path = below(path, actual, &pointer);
            self.push(matcher, &path, format!("valid by its schema: {}", shortened(&error.to_string(), SHOWN)), shown(at));
        }
    }

    /// Whether a part matches on its own; its differences are of no interest.
    fn matches(&mut self, matcher: &Matcher, actual: &Value, raw: Option<&str>) -> bool {
        let mut part = Comparison { scope: self.scope, text: self.text, differences: Vec::new(), undecided: false };
        part.compare(matcher, actual, raw, "");
        self.undecided |= part.undecided;
        part.differences.is_empty()
    }

    fn require(&mut self, holds: bool, matcher: &Matcher, actual: &Value, path: &str) {
        if !holds {
            self.push(matcher, path, matcher.describe(self.scope), shown(actual));
        }
    }

    fn unusable(&mut self, matcher: &Matcher, path: &str, reason: &str) {
        self.undecided = true;
        self.push(matcher, path, "an expectation that can be checked".to_owned(), reason.to_owned());
    }

    fn push(&mut self, matcher: &Matcher, path: &str, expected: String, actual: String) {
        if self.differences.len() < MAXIMUM_DIFFERENCES {
            self.differences.push(Difference { path: path.to_owned(), expected, actual, place: Some(matcher.place.clone()) });
        }
    }
}

fn elements(count: usize) -> String {
    if count == 1 { "1 element".to_owned() } else { format!("{count} elements") }
}

/// RFC 3339, section 5.6: the shape first, then the calendar.
pub fn is_datetime(text: &str) -> bool {
    const SHAPE: &[u8] = b"dddd-dd-ddTdd:dd:dd";
    let fits = |byte: u8, shape: u8| match shape {
        b'd' => byte.is_ascii_digit(),
        b'T' => matches!(byte, b'T' | b't' | b' '),
        exact => byte == exact,
    };
    let bytes = text.as_bytes();
    if bytes.len() <= SHAPE.len() || !bytes.iter().zip(SHAPE).all(|(byte, shape)| fits(*byte, *shape)) {
        return false;
    }
    let rest = &text[SHAPE.len()..];
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
            if zone.len() == fraction.len() {
                return false;
            }
            zone
        }
        None => rest,
    };
    let is_offset =
        zone.len() == 6 && zone.starts_with(['+', '-']) && zone.bytes().zip(b"+dd:dd").skip(1).all(|(byte, shape)| fits(byte, *shape));
    // The fraction is checked already, and may be longer than any clock is exact.
    (matches!(zone, "Z" | "z") || is_offset) && format!("{}{zone}", &text[..SHAPE.len()]).parse::<jiff::Timestamp>().is_ok()
}
