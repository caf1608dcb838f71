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

/// A hash, or an id that is written like one: at least eleven digits, of both kinds, wherever the first letter stands.
const HEX: &str = concat!(
    r"\b(?:[0-9a-f]{8,}(?:\d[a-f]|[a-f]\d)[0-9a-f]*|[0-9a-f]{6,}(?:\d[a-f]|[a-f]\d)[0-9a-f]{2,}|[0-9a-f]{4,}(?:\d[a-f]|[a-f]\d)[0-9a-f]{4,}",
    r"|[0-9a-f]{2,}(?:\d[a-f]|[a-f]\d)[0-9a-f]{6,}|[0-9a-f]*(?:\d[a-f]|[a-f]\d)[0-9a-f]{8,})\b"
);
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

/// Ids that nobody chooses.
static IDS: LazyLock<Regex> = LazyLock::new(|| any_of(&[r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-", HEX, r"\d{8,}"]));

fn any_of(patterns: &[&str]) -> Regex {
    Regex::new(&patterns.join("|")).expect("all of them are patterns")
}

/// Letters that a form has at least, so that it tells one text from another.
const FEWEST_LETTERS: usize = 3;
/// Parts of a text that may be others: each of them takes memory in a pattern.
const MOST_PARTS: usize = 20;

/// What may be another part of a text: numbers, dates, times, ids, places, and names of days and months.
static PARTS: LazyLock<Regex> = LazyLock::new(|| {
    any_of(&[
        r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
        r"\d{4}-\d{2}-\d{2}([T ]\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?(Z|UTC|[+-]\d{2}:?\d{2}))?)?",
        &format!(r#"({PLACES})[^\s"'`<>,;)\]]*"#),
        HEX,
        r"\d+([.,]\d+)? ?(ms|µs|s|secs?|seconds?|milliseconds?|mins?|minutes?|hours?|days?|weeks?|months?|years?|bytes|[KMGkmg]i?B)\b",
        r"\d+([.,:]\d+)*( ?([ap]m|[AP]M)\b)?",
        r"\b(Mon|Tues?|Wed|Thu(rs)?|Fri|Sat|Sun|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b",
        r"\b(?i:(mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|(septem|octo|novem|decem)ber)\b",
        r"\bMay\b",
    ])
});

/// A pattern as it grows.
#[derive(Default)]
struct Form {
    text: String,
    /// In what has to be the same.
    letters: usize,
    /// Parts that may be others.
    parts: usize,
}

impl Form {
    fn constant(&mut self, text: &str) {
        self.letters += letters(text);
        self.text += &regex::escape(text);
    }

    fn other(&mut self, pattern: &str) {
        self.parts += 1;
        self.text += pattern;
    }

    fn append(&mut self, form: Self) {
        self.letters += form.letters;
        self.parts += form.parts;
        self.text += &form.text;
    }

    /// A line of two texts.
    fn line(&mut self, first: &str, second: &str) {
        if first == second {
            return self.constant(first);
        }
        let form = Self::of(first);
        if form.parts > 0 && form.parts <= MOST_PARTS && form.text == Self::of(second).text {
            return self.append(form);
        }
        let (one, two): (Vec<&str>, Vec<&str>) = (first.split(' ').collect(), second.split(' ').collect());
        let (head, tail) = common_ends(&one, &two);
        let others = one.iter().zip(&two).filter(|(first, second)| first != second).count();
        if one.len() == two.len() && others <= MOST_PARTS {
            for (index, (first, second)) in one.iter().zip(&two).enumerate() {
                self.text += if index > 0 { " " } else { "" };
                let is_word = |text: &str| text.starts_with(|symbol: char| !symbol.is_whitespace());
                match first == second {
                    true => self.constant(first),
                    false => self.other(if is_word(first) && is_word(second) { r"\S.*" } else { ".*" }),
                }
            }
            return;
        }
        self.constant(&one[..head].join(" "));
        self.other(".*");
        self.constant(&one[one.len() - tail..].join(" "));
    }

    /// A line with everything in it that may be another part.
    fn of(line: &str) -> Self {
        let (mut form, mut end) = (Self::default(), 0);
        for part in PARTS.find_iter(line) {
            form.constant(&line[end..part.start()]);
            form.other(if part.as_str().bytes().all(|byte| byte.is_ascii_digit()) { "[0-9]+" } else { r"\S.*" });
            end = part.end();
        }
        form.constant(&line[end..]);
        form
    }
}

fn letters(text: &str) -> usize {
    text.chars().filter(|symbol| symbol.is_alphabetic()).count()
}

/// How many elements two lists have in common at their beginnings, and how many of the others at their ends.
fn common_ends(one: &[&str], two: &[&str]) -> (usize, usize) {
    let head = one.iter().zip(two).take_while(|(first, second)| first == second).count();
    let tail = one[head..].iter().rev().zip(two[head..].iter().rev()).take_while(|(first, second)| first == second).count();
    (head, tail)
}

/// The pattern of two texts: none if nothing in them differs, or too little is the same.
pub(super) fn common_form(first: &str, second: &str) -> Option<String> {
    let (one, two): (Vec<&str>, Vec<&str>) = (first.split('\n').collect(), second.split('\n').collect());
    let mut form = Form::default();
    if one.len() == two.len() {
        for (index, (first, second)) in one.iter().zip(&two).enumerate() {
            form.text += if index > 0 { "\n" } else { "" };
            form.line(first, second);
        }
    } else {
        let (head, tail) = common_ends(&one, &two);
        form.constant(&one[..head].join("\n"));
        form.other(r"[\s\S]*");
        form.constant(&one[one.len() - tail..].join("\n"));
    }
    (form.letters >= FEWEST_LETTERS && (1..=MOST_PARTS).contains(&form.parts)).then(|| format!("^{}$", form.text))
}

/// What two texts have in common: lines, those that follow each other as one text, and parts of the others.
pub(super) fn common_parts(first: &str, second: &str) -> Vec<String> {
    let (one, two): (Vec<&str>, Vec<&str>) = (first.split('\n').collect(), second.split('\n').collect());
    let (head, tail) = common_ends(&one, &two);
    let is_common = |index: usize| match one.len() == two.len() {
        true => one[index] == two[index],
        false => index < head || index >= one.len() - tail,
    };
    let (mut parts, mut lines) = (Vec::new(), Vec::new());
    for (index, line) in one.iter().enumerate() {
        if is_common(index) {
            lines.push(*line);
            continue;
        }
        parts.push(std::mem::take(&mut lines).join("\n"));
        parts.extend(PARTS.split(line).map(str::trim).filter(|part| second.contains(part)).map(str::to_owned));
    }
    parts.push(lines.join("\n"));
    parts.retain(|part| letters(part) >= FEWEST_LETTERS);
    parts
}

/// The same text with other numbers, dates, times, ids, places and names of days.
pub(super) fn varied(text: &str) -> String {
    let other_digit = |symbol: char| match symbol {
        '7' => '8',
        '0'..='9' => '7',
        symbol => symbol,
    };
    let other = |part: &regex::Captures<'_>| match &part[0] {
        part if part.contains(|symbol: char| symbol.is_ascii_digit()) => part.chars().map(other_digit).collect::<String>(),
        part if part.contains(['/', '\\']) => format!("{part}7"),
        part if part.len() <= 4 && part != "May" => (if part == "Fri" { "Mon" } else { "Fri" }).to_owned(),
        "Friday" => "Monday".to_owned(),
        _ => "Friday".to_owned(),
    };
    PARTS.replace_all(text, other).into_owned()
}

/// The same text as another run might bring it: other parts in those lines that have some that another run brings otherwise, and other
/// values for those that are saved.
pub(super) fn another(text: &str, saved: &[&Value]) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| if is_fleeting(line) { varied(line) } else { line.to_owned() }).collect();
    let replace = |text: String, value: &&Value| match value {
        Value::String(part) if text.contains(part.as_str()) => text.replace(part.as_str(), &format!("another-{part}")),
        Value::Number(number) => text.replace(&number.to_string(), &format!("another-{number}")),
        _ => text,
    };
    saved.iter().fold(lines.join("\n"), replace)
}

/// Whether a text is data in Base64, in which nothing that looks like a number is one.
fn is_data(key: &str, text: &str) -> bool {
    const SHORTEST: usize = 32;
    let is_symbol = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    matches!(key, "data" | "blob") && text.len() >= SHORTEST && text.len().is_multiple_of(4) && text.bytes().all(is_symbol)
}

/// Whether a number of this name is another one a second later.
pub(super) fn grows(key: &str) -> bool {
    names_one_of(&GROWING, key)
}

/// Whether a text has a part in it that another run may bring otherwise.
pub(super) fn is_fleeting(text: &str) -> bool {
    FORMS.is_match(text)
}

/// Whether a text has an id in it that a server made up, such as a UUID.
pub(super) fn is_made_up(text: &str) -> bool {
    IDS.is_match(text)
}

/// The same value as another run might bring it. `key` names it, and `saved` are values of earlier responses.
pub(super) fn changed(value: &Value, key: &str, saved: &[&Value]) -> Value {
    if saved.contains(&value) {
        return another_saved(value);
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
            _ if is_data(key, text) => value.clone(),
            _ if is_datetime(text) || uuid::Uuid::try_parse(text).is_ok() => other(value),
            _ if is_fleeting(text) || holds(text, saved) => {
                let another = another(text, saved);
                if another == *text { other(value) } else { json!(another) }
            }
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

/// Another value in the place of a saved one: it has the same form if it has an id that nobody chooses, else nobody knows its form.
fn another_saved(value: &Value) -> Value {
    match value {
        Value::String(text) if is_datetime(text) || uuid::Uuid::try_parse(text).is_ok() => other(value),
        Value::String(text) if is_made_up(text) => json!(varied(text)),
        Value::String(_) => json!("another"),
        _ => other(value),
    }
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
