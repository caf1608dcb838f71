//! Values that a response brought and a later request sent, alone or in a text: what of a response a suite saves, and where it is sent.
//! Knows requests and responses, no steps.

use super::{expectation, fleeting};
use mcproof_suite::judge::{Payload, has_large_number, looks_like_a_pattern};
use mcproof_trace::calls::{Call, CallStatus};
use regex::Regex;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// Characters below which a text that a request sends may equal one of a response by chance.
const SHORTEST_SAVED: usize = 4;
/// The same for numbers.
const SMALLEST_SAVED: f64 = 100.0;
/// Digits that a part of a text has at least, so that it is no word.
const FEWEST_DIGITS: usize = 2;
/// Bytes of a text that is looked through for values of later requests.
const LONGEST_SEARCHED: usize = 64 << 10;
/// Places of all responses that are looked through for values of later requests.
const MOST_LEAVES: usize = 4_000;
/// Characters before and behind a part of a text, by which it is found.
const LONGEST_BEFORE: usize = 40;
const LONGEST_BEHIND: usize = 20;

/// What may be an id in the middle of a text.
static TOKENS: LazyLock<Regex> = LazyLock::new(|| Regex::new("[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?").expect("the pattern is valid"));

/// Values that come from a response and are sent later.
pub(super) struct Saved {
    values: Vec<SavedValue>,
    /// Those that stand in a text in which no pattern finds them: which call sends them.
    stale: Vec<(usize, String)>,
}

struct SavedValue {
    name: String,
    value: Value,
    /// What selects it in the payload of the call that brings it.
    selector: String,
    brought_by: usize,
}

/// What the responses so far have brought.
#[derive(Default)]
struct Brought {
    /// With what selects them.
    values: Vec<(usize, String, Value)>,
    texts: Vec<(usize, String, String)>,
    /// What is in a response of which no step saves anything, such as an error.
    unsaved: Vec<String>,
}

impl Brought {
    /// `is_saved`: whether a step of the suite has this response and may save parts of it.
    fn add(&mut self, index: usize, call: &Call, is_saved: bool) {
        // What describes the server has examples in it, of which none is an id.
        if matches!(call.method.as_str(), "initialize" | "server/discover" | "tools/list" | "prompts/list" | "resources/templates/list") {
            return;
        }
        let response = call.response_json().unwrap_or_default();
        let Some(result) = response.get("result").filter(|_| is_saved && call.status == CallStatus::Ok) else {
            leaves(&response, &mut String::new(), &mut |_, value| {
                let text = value.as_str().filter(|text| self.unsaved.len() < MOST_LEAVES && is_searched(text));
                self.unsaved.extend(text.map(str::to_owned));
            });
            return;
        };
        // What a list names is mostly there before anybody asks; an id that the server has made up is not.
        let origin = if call.method == "resources/list" { Origin::List } else { Origin::Response };
        if call.method == "tools/call" {
            let payload = Payload::from_call_result(result).value;
            let is_whole = !payload.is_object() && !payload.is_array();
            leaves(&payload, &mut String::new(), &mut |path, value| match path.trim_start_matches('.') {
                _ if is_whole => self.take(index, "", value, origin),
                // It would be a path of the raw result, which finds it as well.
                path if path.strip_prefix("result").is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '['])) => {}
                path => self.take(index, path, value, origin),
            });
        }
        leaves(result, &mut "result".to_owned(), &mut |path, value| self.take(index, path, value, origin));
    }

    fn take(&mut self, index: usize, path: &str, value: &Value, origin: Origin) {
        // `is_path` keeps what a path of a suite can say.
        if self.values.len() + self.texts.len() >= MOST_LEAVES || !is_path(path) {
            return;
        }
        // The list of a suite has all pages, and no cursor.
        let is_made_up = path.starts_with("result.resources[") && value.as_str().is_some_and(fleeting::is_made_up);
        if origin == Origin::List && !is_made_up {
            return;
        }
        if !path.is_empty() && is_telling(value) && !self.values.iter().any(|(_, _, known)| known == value) {
            self.values.push((index, path.to_owned(), value.clone()));
        }
        if let Some(text) = value.as_str().filter(|text| is_searched(text)) {
            self.texts.push((index, path.to_owned(), text.to_owned()));
        }
    }

    /// Where a value comes from: the call, what selects it there, and a word for it.
    fn origin(&self, value: &Value) -> Option<(usize, String, String)> {
        if let Some((index, path, _)) = self.values.iter().find(|(_, _, known)| known == value) {
            return Some((*index, path.clone(), path.clone()));
        }
        self.texts.iter().find_map(|(index, path, text)| {
            let Part { pattern, word } = Part::find(text, value)?;
            let selector = if path.is_empty() { pattern } else { format!("{path} {pattern}") };
            Some((*index, selector, word))
        })
    }

    /// Whether a response had it in a place that no selector finds.
    fn has(&self, part: &str) -> bool {
        self.texts.iter().map(|(_, _, text)| text).chain(&self.unsaved).any(|text| text.contains(part))
    }
}

/// Where a value stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    List,
    Response,
}

/// Whether a text is looked through for values of later requests.
fn is_searched(text: &str) -> bool {
    text.len() <= LONGEST_SEARCHED && text.contains(|symbol: char| symbol.is_ascii_digit())
}

/// A part of a text as a suite finds it.
struct Part {
    /// With slashes around it.
    pattern: String,
    /// What the text calls it.
    word: String,
}

impl Part {
    /// By what stands around it, if in this text that finds nothing else before it.
    fn find(text: &str, value: &Value) -> Option<Self> {
        let (part, group) = match value {
            Value::String(part) => (part.clone(), ""),
            Value::Number(number) => (number.to_string(), "?<number>"),
            _ => return None,
        };
        if !is_id(&part) || part.contains(char::is_whitespace) {
            return None;
        }
        let place = text.match_indices(&part).map(|(place, _)| place).find(|place| is_alone(text, *place, part.len()))?;
        let (head, tail) = (&text[..place], &text[place + part.len()..]);
        let (before, behind) = (steady_end(head), steady_start(tail));
        let is_told = |text: &str| text.chars().any(char::is_alphabetic);
        let start = if head.is_empty() { "^".to_owned() } else { regex::escape(before) };
        let (greedy, lazy) = if part.bytes().all(|byte| byte.is_ascii_digit()) {
            ("[0-9]+", "[0-9]+")
        } else if part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')) {
            ("[A-Za-z0-9_-]+", "[A-Za-z0-9_-]+")
        } else {
            (r"\S+", r"\S+?")
        };
        let candidates = [(greedy, "", head.is_empty() || is_told(before)), (lazy, behind, is_told(before) || is_told(behind))];
        let pattern = candidates.into_iter().filter(|(_, _, is_told)| *is_told).find_map(|(form, behind, _)| {
            let pattern = format!("{start}({group}{form}){}", regex::escape(behind));
            let found = Regex::new(&pattern).ok()?.captures(text)?.get(1)?;
            (found.start() == place && found.as_str() == part).then_some(pattern)
        })?;
        let word = before.rsplit(|symbol: char| !symbol.is_ascii_alphanumeric()).find(|word| !word.is_empty()).unwrap_or_default();
        Some(Self { pattern: format!("/{pattern}/"), word: word.to_ascii_lowercase() })
    }
}

/// The end of a text that will be the same next time: of its last line, without numbers.
fn steady_end(text: &str) -> &str {
    let places = text.char_indices().rev().take(LONGEST_BEFORE).take_while(|(_, symbol)| is_steady(*symbol));
    places.last().map_or("", |(place, _)| &text[place..])
}

fn steady_start(text: &str) -> &str {
    let places = text.char_indices().take(LONGEST_BEHIND).take_while(|(_, symbol)| is_steady(*symbol));
    places.last().map_or("", |(place, symbol)| &text[..place + symbol.len_utf8()])
}

fn is_steady(symbol: char) -> bool {
    !symbol.is_control() && !symbol.is_ascii_digit()
}

/// Whether what stands there is no part of a longer word or number.
fn is_alone(text: &str, place: usize, length: usize) -> bool {
    let goes_on = |symbol: Option<char>| symbol.is_some_and(|symbol| symbol.is_alphanumeric() || matches!(symbol, '_' | '-'));
    !goes_on(text[..place].chars().next_back()) && !goes_on(text[place + length..].chars().next())
}

impl Saved {
    pub(super) fn nothing() -> Self {
        Self { values: Vec::new(), stale: Vec::new() }
    }

    /// `is_saved` says of each call whether a step of the suite has its response and may save parts of it.
    pub(super) fn find(calls: &[&Call], is_saved: &[bool]) -> Self {
        let mut saved = Self::nothing();
        let mut chosen_by_client: Vec<Value> = Vec::new();
        let mut brought = Brought::default();
        for (index, call) in calls.iter().enumerate() {
            let mut sent = Vec::new();
            leaves(&call.arguments(), &mut String::new(), &mut |_, value| sent.push(value.clone()));
            for value in sent {
                if saved.take(&value, &chosen_by_client, &brought) {
                    continue;
                }
                let mut has_saved = false;
                for token in ids_in(&value) {
                    if saved.take(&token, &chosen_by_client, &brought) {
                        has_saved = true;
                    } else if !chosen_by_client.contains(&token) && !saved.is_stale(&token, index, &brought) {
                        chosen_by_client.push(token);
                    }
                }
                if has_saved || !is_telling(&value) || chosen_by_client.contains(&value) || saved.is_stale(&value, index, &brought) {
                    continue;
                }
                chosen_by_client.push(value);
            }
            brought.add(index, call, is_saved.get(index).copied().unwrap_or_default());
        }
        saved
    }

    /// Whether the server made a value that is sent and that nothing saves, which is kept then.
    fn is_stale(&mut self, value: &Value, index: usize, brought: &Brought) -> bool {
        let made = value.as_str().filter(|text| is_telling(value) && fleeting::is_fleeting(text) && brought.has(text));
        self.stale.extend(made.map(|text| (index, text.to_owned())));
        made.is_some()
    }

    /// Whether a value that is sent comes from a response.
    fn take(&mut self, value: &Value, chosen_by_client: &[Value], brought: &Brought) -> bool {
        if !is_telling(value) || chosen_by_client.contains(value) {
            return false;
        }
        if self.values.iter().any(|known| known.value == *value) {
            return true;
        }
        let Some((brought_by, selector, word)) = brought.origin(value) else { return false };
        let name = name_for(&word, &self.values);
        self.values.push(SavedValue { name, value: value.clone(), selector, brought_by });
        true
    }

    /// What a call sends as it was recorded, although the server had made it.
    pub(super) fn stale_at(&self, index: usize) -> Vec<String> {
        self.stale.iter().filter(|(call, _)| *call == index).map(|(_, value)| value.clone()).collect()
    }

    fn used(&self, value: &Value, index: usize) -> Option<&str> {
        self.values.iter().find(|known| known.brought_by < index && known.value == *value).map(|known| known.name.as_str())
    }

    /// The name of a saved value that a text says.
    fn said(&self, token: &str, index: usize) -> Option<&str> {
        let is_said = |known: &&SavedValue| match &known.value {
            Value::String(text) => text == token,
            Value::Number(number) => number.to_string() == token,
            _ => false,
        };
        let known = self.values.iter().filter(|known| known.brought_by < index && is_id(token)).find(is_said)?;
        Some(&known.name)
    }

    /// Arguments with variables in them, and whether there are any.
    pub(super) fn filled(&self, arguments: &Value, index: usize) -> (Value, bool) {
        match arguments {
            Value::Object(members) => {
                let mut uses = false;
                let filled = members.iter().map(|(name, value)| {
                    let (value, used) = self.filled(value, index);
                    uses |= used;
                    (name.clone(), value)
                });
                (Value::Object(filled.collect()), uses)
            }
            Value::Array(items) => {
                let (filled, used): (Vec<_>, Vec<_>) = items.iter().map(|item| self.filled(item, index)).unzip();
                (Value::Array(filled), used.into_iter().any(|used| used))
            }
            Value::String(text) => self.filled_text(text, index),
            leaf => match self.used(leaf, index) {
                Some(name) => (json!(format!("${{{name}}}")), true),
                None => (leaf.clone(), false),
            },
        }
    }

    /// The same for a text, which may say a saved value among others.
    pub(super) fn filled_text(&self, text: &str, index: usize) -> (Value, bool) {
        if let Some(name) = self.used(&json!(text), index) {
            return (json!(format!("${{{name}}}")), true);
        }
        let (mut written, mut end) = (String::new(), 0);
        // One that is all of the text may be of another type.
        for token in TOKENS.find_iter(text).filter(|token| token.len() < text.len() && text.len() <= LONGEST_SEARCHED) {
            let Some(name) = self.said(token.as_str(), index) else { continue };
            written += &text[end..token.start()].replace("${", "$${");
            written += &format!("${{{name}}}");
            end = token.end();
        }
        written += &text[end..].replace("${", "$${");
        (json!(written), end > 0)
    }

    /// What a call saves.
    pub(super) fn of(&self, index: usize) -> Map<String, Value> {
        let saves = self.values.iter().filter(|known| known.brought_by == index);
        saves.map(|known| (known.name.clone(), json!(known.selector))).collect()
    }

    /// Expects by their names the values that this call sends and that its response repeats.
    pub(super) fn name_repeated(&self, expected: &mut Value, found: &Value, arguments: &Value, index: usize) {
        match (expected, found) {
            (Value::Object(expected), Value::Object(found)) => {
                for (name, value) in found {
                    if let Some(expected) = expected.get_mut(name) {
                        self.name_repeated(expected, value, arguments, index);
                    }
                }
            }
            (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
                expected.iter_mut().zip(found).for_each(|(expected, found)| self.name_repeated(expected, found, arguments, index));
            }
            (expected, Value::String(text)) if expected.get("$regex").is_some() && !expectation::holds(arguments, &json!(text)) => {
                if let Some(whole) = self.named_in(text, arguments, index) {
                    *expected = json!(whole);
                }
            }
            (expected, found) if expected.is_object() && expectation::holds(arguments, found) => {
                if let Some(name) = self.used(found, index) {
                    *expected = json!(format!("${{{name}}}"));
                }
            }
            _ => {}
        }
    }

    /// A text with the name of the saved value that it repeats, if all the rest of it is steady.
    fn named_in(&self, text: &str, arguments: &Value, index: usize) -> Option<String> {
        let repeated = |known: &&SavedValue| {
            let is_part = known.value.as_str().is_some_and(|value| text.contains(value));
            is_part && known.brought_by < index && expectation::holds(arguments, &known.value)
        };
        let known = self.values.iter().find(repeated)?;
        let parts: Vec<&str> = text.split(known.value.as_str()?).collect();
        let is_steady = parts.iter().all(|part| fleeting::changed(&json!(part), "", &self.values_at(index)) == json!(part));
        let written: Vec<String> = parts.iter().map(|part| part.replace("${", "$${")).collect();
        (is_steady && !looks_like_a_pattern(text)).then(|| written.join(&format!("${{{}}}", known.name)))
    }

    /// Values that will be others when this call is repeated.
    pub(super) fn values_at(&self, index: usize) -> Vec<&Value> {
        self.values.iter().filter(|known| known.brought_by <= index).map(|known| &known.value).collect()
    }
}

/// Whether two equal values have the same origin.
fn is_telling(value: &Value) -> bool {
    match value {
        Value::String(text) => text.chars().count() >= SHORTEST_SAVED && text.chars().any(|symbol| symbol.is_ascii_digit()),
        Value::Number(number) => number.as_f64().is_some_and(|number| number >= SMALLEST_SAVED) && !has_large_number(value),
        _ => false,
    }
}

/// The same for a part of a text.
fn is_id(part: &str) -> bool {
    part.chars().count() >= SHORTEST_SAVED && part.chars().filter(char::is_ascii_digit).count() >= FEWEST_DIGITS
}

/// What a text says besides other words, and may have from a response.
fn ids_in(value: &Value) -> Vec<Value> {
    let text = value.as_str().filter(|text| text.len() <= LONGEST_SEARCHED).unwrap_or_default();
    let tokens = TOKENS.find_iter(text).map(|token| token.as_str()).filter(|token| *token != text && is_id(token));
    tokens.map(|token| json!(token)).collect()
}

fn is_path(path: &str) -> bool {
    // A pattern begins with a slash.
    let is_plain = |symbol: char| symbol.is_ascii_alphanumeric() || matches!(symbol, '_' | '-' | '/' | '.' | '[' | ']');
    !path.starts_with('/') && path.chars().all(is_plain)
}

fn name_for(path: &str, saved: &[SavedValue]) -> String {
    let last = path.rsplit(['.', '/']).next().unwrap_or_default();
    let word: String = last.chars().take_while(|symbol| symbol.is_ascii_alphanumeric() || *symbol == '_').collect();
    let word = if word.starts_with(|first: char| first.is_ascii_alphabetic()) { word } else { "value".to_owned() };
    let mut name = word.clone();
    let mut number = 2;
    while saved.iter().any(|known| known.name == name) || matches!(name.as_str(), "env" | "port" | "tmp" | "n") {
        name = format!("{word}_{number}");
        number += 1;
    }
    name
}

fn leaves(value: &Value, path: &mut String, found: &mut impl FnMut(&str, &Value)) {
    let length = path.len();
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                *path += &format!(".{name}");
                leaves(value, path, found);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                *path += &format!("[{index}]");
                leaves(value, path, found);
                path.truncate(length);
            }
        }
        leaf => found(path, leaf),
    }
}

/// What was recorded is no variable.
pub(super) fn escaped(value: &Value) -> Value {
    match value {
        Value::String(text) => json!(text.replace("${", "$${")),
        Value::Array(items) => Value::Array(items.iter().map(escaped).collect()),
        Value::Object(members) => Value::Object(members.iter().map(|(name, value)| (name.clone(), escaped(value))).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_record::Direction;
    use mcproof_trace::SessionKey;
    use mcproof_trace::calls::{CallKey, CallKind};
    use std::time::Duration;

    #[test]
    fn a_part_of_a_text_is_found_by_what_stands_around_it() {
        let check = |text: &str, value: Value, expected: Option<(&str, &str)>| {
            let found = Part::find(text, &value).map(|part| (part.pattern, part.word));
            assert_eq!(found, expected.map(|(pattern, word)| (pattern.to_owned(), word.to_owned())), "{text}");
        };
        let told = "Created order 8037363 for you.";
        check(told, json!("8037363"), Some(("/Created order ([0-9]+)/", "order")));
        check(told, json!(8_037_363), Some(("/Created order (?<number>[0-9]+)/", "order")));
        check("8037363 was created", json!("8037363"), Some(("/^([0-9]+)/", "")));
        check("id: ORD-17a.\nother", json!("ORD-17a"), Some(("/id: ([A-Za-z0-9_-]+)/", "id")));
        check("see http://a.test/x?id=12, or not", json!("http://a.test/x?id=12"), Some((r"/see (\S+?), or not/", "see")));
        check("- tea 1042\n- mugs 1043", json!("1043"), Some((r"/\- mugs ([0-9]+)/", "mugs")));
        // A part of another number, two equal beginnings, a word, and what is not there.
        check("order 80373631", json!("8037363"), None);
        check("order 1041 and\norder 1042", json!("1042"), None);
        check("version v2", json!("v2"), None);
        check(told, json!("1234567"), None);
    }

    #[test]
    fn any_response_may_bring_what_is_sent_later() {
        const ID: &str = "3f2c9a52-7d1b-4a86-9d0e-5b8c6a1f2e41";
        let call = |method: &str, status: CallStatus, params: &Value, response: &Value| Call {
            key: CallKey(1),
            session: SessionKey(1),
            kind: CallKind::Request,
            direction: Direction::ToServer,
            method: method.to_owned(),
            target: None,
            id: None,
            start: Duration::ZERO,
            end: None,
            status,
            code: None,
            message: None,
            http: None,
            parent: None,
            previous: None,
            frames: Vec::new(),
            request: json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string().as_str().into(),
            response: Some(response.to_string().as_str().into()),
        };
        let check = |method: &str, status: CallStatus, response: Value, expected: Option<&str>, stale: usize| {
            let first = call(method, status, &json!({}), &response);
            let second = call("tools/call", CallStatus::Ok, &json!({ "name": "use", "arguments": { "id": ID } }), &json!({}));
            let saved = Saved::find(&[&first, &second], &[status == CallStatus::Ok, true]);
            let selectors: Vec<&str> = saved.values.iter().map(|value| value.selector.as_str()).collect();
            assert_eq!((selectors.first().copied(), saved.stale_at(1).len()), (expected, stale), "{method} {response}");
        };
        let said = |said: &str| json!({ "type": "text", "text": said });
        let told = format!("Use id {ID} please");
        let brings = |method: &str, result: Value, selector: &str| {
            check(method, CallStatus::Ok, json!({ "jsonrpc": "2.0", "id": 1, "result": result }), Some(selector), 0);
        };
        brings("tools/call", json!({ "content": [said(&json!({ "id": ID }).to_string())] }), "id");
        brings("tools/call", json!({ "content": [], "_meta": { "a/session": ID } }), "result._meta.a/session");
        brings("tools/call", json!({ "content": [], "structuredContent": { "result": ID } }), "result.structuredContent.result");
        let link = json!({ "type": "resource_link", "uri": format!("doc://{ID}"), "name": "d" });
        brings("tools/call", json!({ "content": [link] }), "result.content[0].uri /doc://([A-Za-z0-9_-]+)/");
        brings("resources/list", json!({ "resources": [{ "uri": ID, "name": "static-1" }] }), "result.resources[0].uri");
        brings("resources/read", json!({ "contents": [{ "uri": "a", "text": ID }] }), "result.contents[0].text");
        let message = json!({ "role": "user", "content": said(&told) });
        brings("prompts/get", json!({ "messages": [message] }), "result.messages[0].content.text /Use id ([A-Za-z0-9_-]+)/");
        brings("completion/complete", json!({ "completion": { "values": [ID] } }), "result.completion.values[0]");
        let error = json!({ "isError": true, "content": [said(&told)] });
        check("tools/call", CallStatus::ToolError, json!({ "jsonrpc": "2.0", "id": 1, "result": error }), None, 1);
    }

    #[test]
    fn a_text_says_what_was_saved() {
        let values = vec![SavedValue { name: "order".into(), value: json!(8_037_363), selector: String::new(), brought_by: 0 }];
        let saved = Saved { values, ..Saved::nothing() };
        let check = |text: &str, index: usize, expected: &str| {
            assert_eq!(saved.filled_text(text, index), (json!(expected), expected.contains("${order}")), "{text}");
        };
        check("order://8037363/${x}", 1, "order://${order}/$${x}");
        check("order://8037363", 0, "order://8037363");
        check("80373630", 1, "80373630");
    }
}
