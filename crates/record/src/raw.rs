//! Bytes as they were on the wire, serialized legibly. Knows nothing of their meaning.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Bytes exactly as they were seen. Cheap to clone, and so is a part of them.
///
/// Serialized as a JSON string when they are UTF-8, else as `{"base64": "…"}`, so that nothing is lost and most
/// transcripts stay readable.
#[derive(Clone, Default)]
pub struct Raw {
    /// Those that parts have in common.
    shared: Arc<[u8]>,
    start: usize,
    end: usize,
}

impl Raw {
    pub fn as_bytes(&self) -> &[u8] {
        &self.shared[self.start..self.end]
    }

    pub fn len(&self) -> usize {
        self.end - self.start
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A part of these bytes, which takes no memory of its own. It keeps all of them alive.
    ///
    /// # Panics
    /// The range goes beyond the end.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len(), "a part lies within the whole");
        Self { shared: Arc::clone(&self.shared), start: self.start + range.start, end: self.start + range.end }
    }

    /// Whether both have their memory in common.
    pub fn shares_memory(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// The bytes as text, with U+FFFD where they are not UTF-8. For people, never for judging.
    pub fn to_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.as_bytes())
    }
}

impl PartialEq for Raw {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Raw {}

impl From<Arc<[u8]>> for Raw {
    fn from(shared: Arc<[u8]>) -> Self {
        Self { start: 0, end: shared.len(), shared }
    }
}

impl From<&[u8]> for Raw {
    fn from(bytes: &[u8]) -> Self {
        Arc::<[u8]>::from(bytes).into()
    }
}

impl From<Vec<u8>> for Raw {
    fn from(bytes: Vec<u8>) -> Self {
        Arc::<[u8]>::from(bytes).into()
    }
}

impl From<&str> for Raw {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

impl std::fmt::Debug for Raw {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?}", self.to_text())
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(self.as_bytes()) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => Encoded { base64: STANDARD.encode(self.as_bytes()) }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => Ok(text.as_str().into()),
            other => {
                let encoded: Encoded = serde_json::from_value(other).map_err(de::Error::custom)?;
                let bytes = STANDARD.decode(encoded.base64).map_err(de::Error::custom)?;
                Ok(bytes.into())
            }
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Raw {
    fn schema_name() -> Cow<'static, str> {
        "Raw".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Bytes as they were seen: text where they are UTF-8, else in base64.",
            "anyOf": [
                { "type": "string" },
                {
                    "type": "object",
                    "properties": { "base64": { "type": "string", "contentEncoding": "base64" } },
                    "required": ["base64"],
                    "additionalProperties": false
                }
            ]
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Encoded {
    base64: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], json: &str) {
        let raw = Raw::from(bytes);
        assert_eq!(serde_json::to_string(&raw).unwrap(), json);
        assert_eq!(serde_json::from_str::<Raw>(json).unwrap(), raw);
    }

    #[test]
    fn a_part_is_like_bytes_of_its_own() {
        let raw = Raw::from("data: {}");
        let part = raw.part(6..8);
        assert_eq!(part, Raw::from("{}"));
        assert_eq!((part.len(), part.part(1..2)), (2, Raw::from("}")));
        assert!(part.shares_memory(&raw) && !part.shares_memory(&Raw::from("{}")));
        assert_eq!(serde_json::to_string(&part).unwrap(), r#""{}""#);
        assert!(raw.part(3..3).is_empty());
    }

    #[test]
    fn bytes_survive_serialization() {
        check(b"", r#""""#);
        check(br#"{"id":1}"#, r#""{\"id\":1}""#);
        check("\u{1b}[31m\u{202e}".as_bytes(), "\"\\u001b[31m\u{202e}\"");
        check(b"\xff\xfe{", r#"{"base64":"//57"}"#);
    }
}
