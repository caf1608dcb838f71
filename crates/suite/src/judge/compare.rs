//! Compares a response with its expectation and reports every difference. Pure; knows no suites.

use super::header_names::{lower_names, lower_names_of_headers};
use super::matcher::{Matcher, Others, Test, TypeName, length_words};
use super::number::{equality, is_close, order};
use super::payload::{Numbers, Origin, Payload};
use super::text::Pattern;
use crate::interpolate;
use mcproof_analysis::did_you_mean;
use mcproof_analysis::differences::{MAXIMUM_DIFFERENCES, SHOWN, below, element, member, shown};
use mcproof_analysis::json_schema::Schema;
use mcproof_analysis::wording::shortened;
use mcproof_record::Difference;
use regex::Regex;
use serde_json::{Map, Value};
use std::borrow::Cow;

impl Matcher {
    /// Every difference between the payload and this expectation, in the order of the expectation and bounded in number; none if it
    /// matches. `scope` holds the saved values.
    pub fn compare(&self, payload: &Payload, scope: &Map<String, Value>) -> Vec<Difference> {
        let raw = payload.text.as_deref().filter(|_| payload.origin == Origin::Text);
        let mut comparison = Comparison { text: payload.text.as_deref(), numbers: payload.numbers, ..Comparison::new(scope) };
        comparison.http = Some(&payload.value).filter(|_| payload.origin == Origin::Http);
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
        let mut comparison = Comparison::new(scope);
        let mut rest = came;
        for matcher in expected {
            match rest.iter().position(|item| comparison.part(matcher, item, None) == Part::Matches) {
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
    /// The whole response, if it is one over HTTP: the names of its headers have no case.
    http: Option<&'a Value>,
    /// What is compared is the name of a header.
    is_header_name: bool,
    numbers: Numbers,
    differences: Vec<Difference>,
    /// One of the differences was found by comparing. The others are of what could not be compared at all, so that its opposite is not
    /// proven either.
    is_decided: bool,
}

/// Why nothing can be concluded from a part without characters.
const EMPTY: &str = "every text contains the empty text";

/// What the opposite of a matcher finds that is for other values.
const UNCHECKED: &str = "what cannot be checked: ";

/// What a part comes to that is judged on its own.
#[derive(PartialEq, Eq)]
enum Part {
    Matches,
    Differs,
    /// It cannot be compared, for this reason.
    Undecided(String),
}

impl<'a> Comparison<'a> {
    fn new(scope: &'a Map<String, Value>) -> Self {
        let (differences, numbers) = (Vec::new(), Numbers::default());
        Self { scope, text: None, http: None, is_header_name: false, numbers, differences, is_decided: false }
    }

    /// For a part of the same response.
    fn of_part(&self) -> Self {
        Self { differences: Vec::new(), is_decided: false, ..*self }
    }

    fn is_headers(&self, actual: &Value) -> bool {
        self.http.and_then(|response| response.get("headers")).is_some_and(|headers| std::ptr::eq(headers, actual))
    }

    /// `raw` is the text that `actual` was parsed from.
    fn compare(&mut self, matcher: &Matcher, actual: &Value, raw: Option<&str>, path: &str) {
        if self.differences.len() >= MAXIMUM_DIFFERENCES {
            return;
        }
        match &matcher.test {
            Test::Equals(expected) => match interpolate(expected, self.scope) {
                Ok(expected) => {
                    let is_name = || self.is_header_name && is_same_name(expected.as_str(), actual.as_str());
                    let equality = equality(&expected, actual, self.numbers);
                    if equality.is_none() {
                        return self.rounded(matcher, actual, path);
                    }
                    let same = equality == Some(true) || raw.is_some_and(|raw| expected.as_str() == Some(raw)) || is_name();
                    let is_comparable = expected.is_null() || are_alike(&expected, actual) || (expected.is_string() && raw.is_some());
                    self.require_of(is_comparable, same, matcher, actual, path);
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
            Test::Regex(pattern) => match self.regex(pattern) {
                Ok(regex) => {
                    let text = actual.as_str().or(raw);
                    self.require_of(text.is_some(), text.is_some_and(|text| regex.is_match(text)), matcher, actual, path);
                }
                Err(reason) => self.unusable(matcher, path, &reason),
            },
            Test::Order { order: relation, bound } => match interpolate(bound, self.scope) {
                Ok(bound) => {
                    let ordering = order(actual, &bound, self.numbers);
                    if ordering.is_none() && actual.is_number() && bound.is_number() {
                        return self.rounded(matcher, actual, path);
                    }
                    let holds = ordering.is_some_and(|ordering| relation.holds(ordering));
                    self.require_of(ordering.is_some(), holds, matcher, actual, path);
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
                other => self.incomparable(matcher, other, path),
            },
            Test::Contains(expected) if self.is_in_every_text(expected, actual, raw) => self.unusable(matcher, path, EMPTY),
            Test::Contains(expected) => {
                let contained = self.contains(expected, actual, raw);
                self.require_part(contained, matcher, actual, path);
            }
            Test::ContainsAll(parts) => {
                for part in parts {
                    if self.is_in_every_text(part, actual, raw) {
                        self.unusable(part, path, EMPTY);
                        continue;
                    }
                    let wanted = format!("something that contains {}", part.describe(self.scope));
                    match self.contains(part, actual, raw) {
                        Part::Matches => {}
                        Part::Differs => self.push(part, path, wanted, shown(actual)),
                        Part::Undecided(_) => self.push_undecided(part, path, wanted, shown(actual)),
                    }
                }
            }
            Test::Json(inner) => match actual.as_str().or(raw).map(serde_json::from_str::<Value>) {
                Some(Ok(value)) => {
                    let outer = std::mem::replace(&mut self.numbers, actual.as_str().or(raw).map_or(Numbers::Exact, Numbers::of));
                    self.compare(inner, &value, None, path);
                    self.numbers = outer;
                }
                // That a text is JSON, whatever it says, can be denied.
                found => self.require_of(found.is_some() && matches!(inner.test, Test::Any), false, matcher, actual, path),
            },
            Test::Not(unwanted) => match self.part(unwanted, actual, raw) {
                Part::Matches => self.require(false, matcher, actual, path),
                Part::Differs => {}
                Part::Undecided(reason) => {
                    let reason = reason.trim_start_matches(UNCHECKED);
                    self.push_undecided(matcher, path, matcher.describe(self.scope), format!("{UNCHECKED}{reason}"));
                }
            },
            Test::OneOf(choices) => {
                let any = self.any_of(choices, actual, raw);
                self.require_part(any, matcher, actual, path);
            }
            Test::CloseTo { value, within } => {
                let close = actual.as_number().is_some_and(|actual| is_close(actual, value, *within));
                self.require_of(actual.is_number(), close, matcher, actual, path);
            }
            Test::Uuid => {
                let valid = actual.as_str().is_some_and(|text| text.len() == 36 && uuid::Uuid::try_parse(text).is_ok());
                self.require_of(actual.is_string(), valid, matcher, actual, path);
            }
            Test::Datetime => self.require_of(actual.is_string(), actual.as_str().is_some_and(is_datetime), matcher, actual, path),
            Test::Schema { schema, compiled } => self.compare_schema(matcher, schema, compiled.as_deref(), actual, path),
            Test::Text(pattern) => match self.text {
                _ if let Err(reason) = pattern.usable(self.scope) => self.unusable(matcher, path, &reason),
                Some(text) if pattern.matches_exactly(text, self.scope) => {}
                Some(text) => {
                    let actual = shown(&Value::String(text.to_owned()));
                    self.push(matcher, path, pattern.describe_exactly(self.scope), actual);
                }
                None => {
                    let actual = "missing; the response has no text".to_owned();
                    self.push_undecided(matcher, path, pattern.describe_exactly(self.scope), actual);
                }
            },
        }
    }

    fn regex<'p>(&self, pattern: &'p Pattern) -> Result<Cow<'p, Regex>, String> {
        match self.is_header_name {
            true => pattern.regex_without_case(self.scope).map(Cow::Owned),
            false => pattern.regex(self.scope),
        }
    }

    fn compare_elements(&mut self, matcher: &Matcher, expected: &[Matcher], actual: &Value, path: &str) {
        let Value::Array(items) = actual else {
            return self.incomparable(matcher, actual, path);
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
            return self.incomparable(matcher, actual, path);
        };
        let is_headers = self.is_headers(actual);
        let are_same = |one: &str, other: &str| one == other || (is_headers && one.eq_ignore_ascii_case(other));
        let is_named = |key: &str| expected.iter().any(|(name, _)| are_same(name, key));
        for (key, expected) in expected {
            let found = match is_headers {
                true => members.iter().find(|(name, _)| are_same(name, key)).map(|(_, value)| value),
                false => members.get(key),
            };
            match found {
                Some(value) => self.compare(expected, value, None, &member(path, key)),
                None if expected.accepts_missing() => {}
                None => {
                    let unnamed = members.keys().map(String::as_str).filter(|name| !is_named(name));
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
                if !is_named(key) {
                    self.push(matcher, &member(path, key), "no such key".to_owned(), shown(value));
                }
            }
        }
    }

    /// That every value of a list or an object is as expected says nothing if there is none.
    fn nothing_in(&mut self, matcher: &Matcher, actual: &Value, path: &str) {
        self.push_undecided(matcher, path, matcher.describe(self.scope), format!("{actual}, which has no value at all"));
    }

    fn compare_length(&mut self, matcher: &Matcher, expected: &Matcher, actual: &Value, raw: Option<&str>, path: &str) {
        let length = match (actual, raw) {
            (Value::String(text), _) => text.chars().count(),
            (Value::Array(items), _) => items.len(),
            (Value::Object(members), _) => members.len(),
            // A text that is a number by chance.
            (_, Some(text)) => text.chars().count(),
            (other, None) => return self.incomparable(matcher, other, path),
        };
        let outer = std::mem::take(&mut self.differences);
        self.compare(expected, &Value::from(length), None, path);
        let differences = std::mem::replace(&mut self.differences, outer);
        for difference in differences {
            let actual = format!("a length of {length}: {}", shown(actual));
            self.differences.push(Difference { expected: length_words(&difference.expected), actual, ..difference });
        }
    }

    /// Whether it is a variable without text, of which a text tells nothing.
    fn is_in_every_text(&self, expected: &Matcher, actual: &Value, raw: Option<&str>) -> bool {
        let is_empty = |part: &Value| interpolate(part, self.scope).is_ok_and(|part| part.as_str() == Some(""));
        (actual.is_string() || raw.is_some()) && matches!(&expected.test, Test::Equals(part) if is_empty(part))
    }

    fn contains(&self, expected: &Matcher, actual: &Value, raw: Option<&str>) -> Part {
        let found = match actual {
            Value::Array(items) => self.among(expected, items.iter()),
            Value::String(text) => match &expected.test {
                Test::Equals(part) => match interpolate(part, self.scope) {
                    Ok(Value::String(part)) if text.contains(&part) => Part::Matches,
                    Ok(Value::String(part)) if self.is_header_name && text.contains(&part.to_ascii_lowercase()) => Part::Matches,
                    Ok(Value::String(_)) => Part::Differs,
                    Ok(_) => Part::Undecided(shown(actual)),
                    Err(missing) => Part::Undecided(missing.to_string()),
                },
                _ => self.part(expected, actual, None),
            },
            Value::Object(members) if expected.is_about_an_object() => self.among(expected, members.values()),
            Value::Object(members) => {
                let keys: Vec<Value> = members.keys().map(|key| Value::String(key.clone())).collect();
                let names = Self { is_header_name: self.is_headers(actual), ..self.of_part() };
                names.among(expected, keys.iter())
            }
            other => Part::Undecided(shown(other)),
        };
        // JSON in a text is a text as well.
        match (found, raw.filter(|_| !actual.is_string())) {
            (Part::Matches, _) => Part::Matches,
            (found, Some(raw)) => match self.contains(expected, &Value::from(raw), None) {
                Part::Undecided(_) => found,
                of_text => of_text,
            },
            (found, None) => found,
        }
    }

    /// Whether one of these is as expected. One that cannot be compared is another one, unless none can.
    fn among<'v>(&self, expected: &Matcher, values: impl Iterator<Item = &'v Value>) -> Part {
        let (mut is_decided, mut undecided) = (false, None);
        for value in values {
            match self.part(expected, value, None) {
                Part::Matches => return Part::Matches,
                Part::Differs => is_decided = true,
                Part::Undecided(reason) => undecided = undecided.or(Some(reason)),
            }
        }
        undecided.filter(|_| !is_decided).map_or(Part::Differs, Part::Undecided)
    }

    /// Whether one of the choices matches. Plain values are one choice: one of them has to be of the type of the value.
    fn any_of(&self, choices: &[Matcher], actual: &Value, raw: Option<&str>) -> Part {
        let (mut is_plain_decided, mut of_plain, mut of_others) = (false, None, None);
        for choice in choices {
            let plain = match &choice.test {
                Test::Equals(plain) => interpolate(plain, self.scope).ok(),
                _ => None,
            };
            match (self.part(choice, actual, raw), plain) {
                (Part::Matches, _) => return Part::Matches,
                // Everything differs from it.
                (Part::Differs, Some(Value::Null) | None) => {}
                (Part::Differs, Some(_)) => is_plain_decided = true,
                (Part::Undecided(reason), Some(_)) => of_plain = of_plain.or(Some(reason)),
                (Part::Undecided(reason), None) => of_others = of_others.or(Some(reason)),
            }
        }
        of_others.or(of_plain.filter(|_| !is_plain_decided)).map_or(Part::Differs, Part::Undecided)
    }

    fn compare_schema(&mut self, matcher: &Matcher, schema: &Value, compiled: Option<&Schema>, actual: &Value, path: &str) {
        let built;
        let lower_names: Option<fn(&mut Value)> = match self.http {
            Some(_) if self.is_headers(actual) => Some(lower_names),
            Some(response) if std::ptr::eq(response, actual) => Some(lower_names_of_headers),
            _ => None,
        };
        let validator = match compiled.filter(|_| lower_names.is_none()) {
            Some(validator) => validator,
            None => {
                let mut filled = match interpolate(schema, self.scope) {
                    Ok(filled) => filled,
                    Err(missing) => return self.unusable(matcher, path, &missing.to_string()),
                };
                if let Some(lower_names) = lower_names {
                    lower_names(&mut filled);
                }
                match Schema::with_formats(&filled) {
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

    /// Whether a part matches on its own; where its differences are is of no interest.
    fn part(&self, matcher: &Matcher, actual: &Value, raw: Option<&str>) -> Part {
        let mut part = self.of_part();
        part.compare(matcher, actual, raw, "");
        match part.differences.into_iter().next() {
            None => Part::Matches,
            Some(_) if part.is_decided => Part::Differs,
            Some(undecided) => Part::Undecided(undecided.actual),
        }
    }

    fn require(&mut self, holds: bool, matcher: &Matcher, actual: &Value, path: &str) {
        self.require_of(true, holds, matcher, actual, path);
    }

    /// The same of a value that may not be one of those that the matcher is for.
    fn require_of(&mut self, is_comparable: bool, holds: bool, matcher: &Matcher, actual: &Value, path: &str) {
        match (holds, is_comparable) {
            (true, _) => {}
            (false, true) => self.push(matcher, path, matcher.describe(self.scope), shown(actual)),
            (false, false) => self.incomparable(matcher, actual, path),
        }
    }

    fn require_part(&mut self, part: Part, matcher: &Matcher, actual: &Value, path: &str) {
        self.require_of(!matches!(part, Part::Undecided(_)), part == Part::Matches, matcher, actual, path);
    }

    /// The matcher is for values of another kind.
    fn incomparable(&mut self, matcher: &Matcher, actual: &Value, path: &str) {
        self.push_undecided(matcher, path, matcher.describe(self.scope), shown(actual));
    }

    /// It is not known which number it was.
    fn rounded(&mut self, matcher: &Matcher, actual: &Value, path: &str) {
        let actual = format!("{}, which does not fit 64 bits and cannot be compared exactly", shown(actual));
        self.push_undecided(matcher, path, matcher.describe(self.scope), actual);
    }

    fn unusable(&mut self, matcher: &Matcher, path: &str, reason: &str) {
        self.push_undecided(matcher, path, "an expectation that can be checked".to_owned(), reason.to_owned());
    }

    fn push(&mut self, matcher: &Matcher, path: &str, expected: String, actual: String) {
        self.is_decided = true;
        self.push_undecided(matcher, path, expected, actual);
    }

    /// What proves nothing of the opposite either.
    fn push_undecided(&mut self, matcher: &Matcher, path: &str, expected: String, actual: String) {
        if self.differences.len() < MAXIMUM_DIFFERENCES {
            self.differences.push(Difference { path: path.to_owned(), expected, actual, place: Some(matcher.place.clone()) });
        }
    }
}

/// Whether both are names, and the same one to HTTP.
fn is_same_name(one: Option<&str>, other: Option<&str>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one.eq_ignore_ascii_case(other))
}

/// Whether both are of the same JSON type.
fn are_alike(one: &Value, other: &Value) -> bool {
    matches!(
        (one, other),
        (Value::Null, Value::Null)
            | (Value::Bool(_), Value::Bool(_))
            | (Value::Number(_), Value::Number(_))
            | (Value::String(_), Value::String(_))
            | (Value::Array(_), Value::Array(_))
            | (Value::Object(_), Value::Object(_))
    )
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
    if !(matches!(zone, "Z" | "z") || is_offset && &zone[1..3] <= "23" && &zone[4..] <= "59") {
        return false;
    }
    // A leap second follows the last one of a day in UTC.
    let (minute, second) = text[..SHAPE.len()].split_at(SHAPE.len() - 2);
    let is_leap = second == "60";
    // The fraction is checked already, and may be longer than any clock is exact.
    let instant = format!("{minute}{}{zone}", if is_leap { "59" } else { second }).parse::<jiff::Timestamp>();
    instant.is_ok_and(|instant| !is_leap || instant.as_second().rem_euclid(SECONDS_OF_DAY) == SECONDS_OF_DAY - 1)
}

const SECONDS_OF_DAY: i64 = 86_400;
