//! What will be another value next time, as far as one value and its name tell. Knows values, no sessions.

use mcproof_suite::judge::is_datetime;
use regex::Regex;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// Members whose numbers grow while a server runs, or tell how fast it was.
const GROWING: [&str; 5] = ["uptime", "elapsed", "duration", "latency", "took"];
/// Others whose numbers are rarely the same twice.
const FLEETING: [&str; 14] =
    ["time", "date", "pid", "memory", "rss", "cpu", "port", "nonce", "random", "token", "cursor", "etag", "seed", "requestid"];
/// Endings of such names, behind another word.
const ENDINGS: [&str; 4] = ["_ms", "Ms", "_at", "At"];
/// Seconds since 2001 and above: a moment, or an id.
const LARGE: f64 = 1e9;

/// A hash, or an id that is written like one.
const HEX: &str = r"\b[0-9a-f]*[a-f][0-9a-f]*\d[0-9a-f]{8,}\b";
/// Where files of one machine are.
const PLACES: &str = r"/tmp/|/home/|/root/|/Users/|/var/|[A-Z]:\\";

static FORMS: LazyLock<Regex> = LazyLock::new(|| {
    any_of(&[
        r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-",
        r"\d{4}-\d{2}-\d{2}",
        r"\d{1,2}:\d{2}(:\d{2})?\b",
        HEX,
        r"\d{8,}",
        r"\d\.\d{3,}",
        PLACES,
        r"(127\.0\.0\.1|localhost):\d+",
        r"\b\d+(\.\d+)? ?(ms|µs|s|sec|seconds|milliseconds|bytes|KB|KiB|MB|MiB)\b",
    ])
});

fn any_of(patterns: &[&str]) -> Regex {
    Regex::new(&patterns.join("|")).expect("all of them are patterns")
}

/// Letters that a form has at least, so that it tells one text from another.
const FEWEST_LETTERS: usize = 3;

/// The pattern of a text in which numbers, dates, times and ids may be others: none if nothing else is in it, or if it tells a path or a day
/// by its name.
pub(super) fn form(text: &str) -> Option<String> {
    static PARTS: LazyLock<Regex> = LazyLock::new(|| {
        any_of(&[
            r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
            r"\d{4}-\d{2}-\d{2}([T ]\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?(Z|UTC|[+-]\d{2}:?\d{2}))?)?",
            HEX,
            r"\d+([.,]\d+)? ?(ms|µs|s|secs?|seconds?|milliseconds?|mins?|minutes?|hours?|days?|weeks?|months?|years?|bytes|[KMGkmg]i?B)\b",
            r"\d+([.,:]\d+)*",
        ])
    });
    static NAMED: LazyLock<Regex> = LazyLock::new(|| {
        let names = r"(?i)\b(mon|tues?|wed(nes)?|thu(rs)?|fri|sat(ur)?|sun)(day)?\b|\b(jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\b";
        any_of(&[names, PLACES, r"\b(am|pm)\b"])
    });
    if NAMED.is_match(text) {
        return None;
    }
    let (mut form, mut end, mut letters) = (String::from("^"), 0, 0);
    for part in PARTS.find_iter(text) {
        let between = &text[end..part.start()];
        letters += between.chars().filter(|symbol| symbol.is_alphabetic()).count();
        form += &regex::escape(between);
        form += if part.as_str().bytes().all(|byte| byte.is_ascii_digit()) { r"\d+" } else { r"\S.*" };
        end = part.end();
    }
    letters += text[end..].chars().filter(|symbol| symbol.is_alphabetic()).count();
    form += &regex::escape(&text[end..]);
    form.push('$');
    (letters >= FEWEST_LETTERS && end > 0).then_some(form)
}

/// Whether a number of this name is another one a second later.
pub(super) fn grows(key: &str) -> bool {
    names_one_of(&GROWING, key)
}

/// Whether a text has a part in it that another run may bring otherwise.
pub(super) fn is_fleeting(text: &str) -> bool {
    FORMS.is_match(text)
}

/// The same value as another run might bring it. `key` names it, and `saved` are values of earlier responses.
pub(super) fn changed(value: &Value, key: &str, saved: &[&Value]) -> Value {
    if saved.contains(&value) {
        return other(value);
    }
    match value {
        Value::Object(members) => Value::Object(members.iter().map(|(name, value)| (name.clone(), changed(value, name, saved))).collect()),
        Value::Array(items) => Value::Array(items.iter().map(|item| changed(item, key, saved)).collect()),
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            // The text of a block that is JSON.
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => {
                let changed = changed(&inner, key, saved);
                if changed == inner { value.clone() } else { json!(changed.to_string()) }
            }
            _ if is_fleeting(text) && form(text).is_some() && !holds(text, saved) => {
                let other_digit = |symbol: char| match symbol {
                    '7' => '8',
                    '0'..='9' => '7',
                    symbol => symbol,
                };
                json!(text.chars().map(other_digit).collect::<String>())
            }
            _ if is_fleeting(text) || holds(text, saved) => other(value),
            _ => value.clone(),
        },
        Value::Number(number) => {
            let is_named = grows(key) || names_one_of(&FLEETING, key) || ENDINGS.iter().any(|ending| key.ends_with(ending)) || key == "ms";
            let number = number.as_f64().unwrap_or(0.0);
            let is_fine = (number * 1000.0).fract() != 0.0;
            if is_named || number.abs() >= LARGE || is_fine { other(value) } else { value.clone() }
        }
        _ => value.clone(),
    }
}

fn names_one_of(words: &[&str], key: &str) -> bool {
    let folded: String = key.chars().filter(char::is_ascii_alphanumeric).map(|symbol| symbol.to_ascii_lowercase()).collect();
    words.iter().any(|word| folded.contains(word))
}

fn holds(text: &str, saved: &[&Value]) -> bool {
    saved.iter().any(|value| match value {
        Value::String(part) => text.contains(part.as_str()),
        Value::Number(number) => text.contains(&number.to_string()),
        _ => false,
    })
}

/// Another value of the same type and form.
fn other(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64().unwrap_or(0.0) + 1.5),
        Value::String(text) if is_datetime(text) => json!("1999-12-31T23:59:58Z"),
        Value::String(text) if uuid::Uuid::try_parse(text).is_ok() => json!("00000000-0000-4000-8000-000000000000"),
        Value::String(text) => json!(format!("another {text}")),
        other => other.clone(),
    }
}
