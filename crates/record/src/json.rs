//! JSON that is passed on more often than it is parsed. Does not interpret it.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// JSON as its original text, parsed on first use.
#[derive(Clone, Debug)]
pub enum Json<T = Value> {
    /// On one line. Reading it does not fail.
    Unread(Box<RawValue>),
    Read(T),
}

/// Some JSON that is an object, such as params.
pub type JsonObject = Json<Map<String, Value>>;

/// What JSON can be read as.
pub trait Shape: DeserializeOwned {
    /// Whether a text that is JSON has this shape.
    fn fits(text: &str) -> bool;
}

impl Shape for Value {
    fn fits(_: &str) -> bool {
        true
    }
}

impl Shape for Map<String, Value> {
    fn fits(text: &str) -> bool {
        text.starts_with('{')
    }
}

impl<T: Shape + Clone> Json<T> {
    pub fn read(&self) -> Cow<'_, T> {
        match self {
            Self::Unread(text) => Cow::Owned(parse(text)),
            Self::Read(value) => Cow::Borrowed(value),
        }
    }

    pub fn into_inner(self) -> T {
        match self {
            Self::Unread(text) => parse(&text),
            Self::Read(value) => value,
        }
    }

    /// The value, which may be changed.
    pub fn get_mut(&mut self) -> &mut T {
        if let Self::Unread(text) = self {
            *self = Self::Read(parse(text));
        }
        match self {
            Self::Read(value) => value,
            Self::Unread(_) => unreachable!("it was just read"),
        }
    }
}

fn parse<T: Shape>(text: &RawValue) -> T {
    serde_json::from_str(text.get()).expect("plain JSON of the right shape can be read")
}

/// Whether what is JSON at first sight can be read for sure. Else a closer look may find half of a surrogate pair, a number beyond all
/// bounds, or too many levels; or it is not on one line.
pub fn is_plain(text: &[u8]) -> bool {
    const DIGITS: usize = 300;
    const LEVELS: usize = 100;
    // Whole passes without a branch: what is short is mostly plain.
    let any = |odd: fn(u8) -> bool| text.iter().fold(false, |found, byte| found | odd(*byte));
    let exponent = |pair: &[u8]| pair[0].is_ascii_digit() & (pair[1] | 0x20 == b'e');
    let opens = |byte: &&u8| matches!(byte, b'[' | b'{');
    !any(|byte| matches!(byte, b'\\' | b'\n' | b'\r'))
        && !text.windows(2).fold(false, |found, pair| found | exponent(pair))
        && text.iter().filter(opens).count() <= LEVELS
        // A number that long fills a part, wherever it begins.
        && !text.chunks_exact(DIGITS / 2).any(|part| part.iter().all(u8::is_ascii_digit))
}

/// JSON with a replacement character in the place of each half of a surrogate pair, which remains where a text is cut within a character;
/// `None` if there is none. The grammar of JSON allows it (RFC 8259, section 8.2), and not every program reads it.
pub fn without_half_surrogates(text: &[u8]) -> Option<Vec<u8>> {
    let mut mended: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(offset) = text.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        let escape = at + offset;
        at = match code_unit(text, escape) {
            Some(0xd800..=0xdbff) if matches!(code_unit(text, escape + 6), Some(0xdc00..=0xdfff)) => escape + 12,
            Some(0xd800..=0xdfff) => {
                mended.get_or_insert_with(|| text.to_vec())[escape..escape + 6].copy_from_slice(b"\\ufffd");
                escape + 6
            }
            // The next character is escaped, be it a backslash.
            _ => escape + 2,
        };
    }
    mended
}

/// A message as most programs read it: half of a surrogate pair is no reason to pass over the rest, and becomes a replacement character.
///
/// # Errors
///
/// As the JSON parser has it, if the bytes are not JSON otherwise.
pub fn read_message(bytes: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(bytes).or_else(|error| match without_half_surrogates(bytes) {
        Some(mended) => serde_json::from_slice(&mended),
        None => Err(error),
    })
}

/// The code unit of an escape that begins there.
fn code_unit(text: &[u8], at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

impl<T> From<T> for Json<T> {
    fn from(value: T) -> Self {
        Self::Read(value)
    }
}

impl<T: Default> Default for Json<T> {
    fn default() -> Self {
        Self::Read(T::default())
    }
}

impl<T: Shape + PartialEq + Clone> PartialEq for Json<T> {
    fn eq(&self, other: &Self) -> bool {
        self.read() == other.read()
    }
}

impl<T: Serialize> Serialize for Json<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unread(text) => text.serialize(serializer),
            Self::Read(value) => value.serialize(serializer),
        }
    }
}

impl<'de, T: Shape> Deserialize<'de> for Json<T> {
    /// Only from JSON.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Box<RawValue>>::deserialize(deserializer)?;
        if is_plain(text.get().as_bytes()) && T::fits(text.get()) {
            return Ok(Self::Unread(text));
        }
        serde_json::from_str(text.get()).map(Self::Read).map_err(D::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl<T: schemars::JsonSchema> schemars::JsonSchema for Json<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_surrogate_pair_is_replaced_and_nothing_else() {
        let check = |text: &str, expected: Option<&str>| {
            let mended = without_half_surrogates(text.as_bytes()).map(|mended| String::from_utf8(mended).unwrap());
            assert_eq!(mended.as_deref(), expected, "{text}");
        };
        check(r#"{"a":"cut \ud83d"}"#, Some(r#"{"a":"cut \ufffd"}"#));
        check(r#""\ude00 \uD83D\uD83D\ude00""#, Some(r#""\ufffd \ufffd\uD83D\ude00""#));
        for whole in [r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\u00e4\n""#, "\"\\", r#""\ud8"#, "{}"] {
            check(whole, None);
        }
    }

    fn check<T: Shape + Clone + Serialize + std::fmt::Debug>(text: &str, expected: &str) {
        let found = serde_json::from_str::<Json<T>>(text);
        let value = match &found {
            Ok(json @ Json::Unread(_)) => format!("unread {}", serde_json::to_string(json).unwrap()),
            Ok(json @ Json::Read(_)) => format!("read {}", serde_json::to_string(json).unwrap()),
            Err(error) => error.to_string(),
        };
        assert_eq!(value, expected, "{text}");
        if let Ok(json) = found {
            // This is what must not fail.
            let _ = json.into_inner();
        }
    }

    #[test]
    fn what_is_plain_stays_as_it_was_written() {
        check::<Value>(r#"{"b": 1.0, "a": [true, null, "ä"]}"#, r#"unread {"b": 1.0, "a": [true, null, "ä"]}"#);
        check::<Map<String, Value>>(r#"{"a":1}"#, r#"unread {"a":1}"#);
        check::<Value>("12345678901234567890123", "unread 12345678901234567890123");
    }

    #[test]
    fn what_needs_a_closer_look_gets_one_at_once() {
        check::<Value>("{\"a\":\n1}", r#"read {"a":1}"#);
        check::<Value>(r#""\u00e4""#, r#"read "ä""#);
        check::<Value>(r#""\ud800""#, "unexpected end of hex escape at line 1 column 8");
        check::<Value>("[1e2]", "read [100.0]");
        check::<Value>("[1e999]", "number out of range at line 1 column 6");
        check::<Value>(&"9".repeat(400), "number out of range at line 1 column 400");
        check::<Value>(&format!("[{:>150}{}]", "", "9".repeat(309)), "number out of range at line 1 column 460");
        check::<Value>(&format!("{}{}", "[".repeat(200), "]".repeat(200)), "recursion limit exceeded at line 1 column 128");
        check::<Map<String, Value>>("[1]", "invalid type: sequence, expected a map at line 1 column 0");
        check::<Value>("[1", "EOF while parsing a list at line 1 column 2");
    }
}
