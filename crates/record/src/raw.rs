//! Bytes as they were on the wire, serialized legibly. Knows nothing of their meaning.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::sync::Arc;

/// Bytes exactly as they were seen. Cheap to clone.
///
/// Serialized as a JSON string when they are UTF-8, else as `{"base64": "…"}`, so that nothing is lost and most
/// transcripts stay readable.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Raw(Arc<[u8]>);

impl Raw {
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes as text, with U+FFFD where they are not UTF-8. For people, never for judging.
    pub fn to_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl From<&[u8]> for Raw {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl From<Vec<u8>> for Raw {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
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
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => Encoded { base64: STANDARD.encode(&self.0) }.serialize(serializer),
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
    fn bytes_survive_serialization() {
        check(b"", r#""""#);
        check(br#"{"id":1}"#, r#""{\"id\":1}""#);
        check("\u{1b}[31m\u{202e}".as_bytes(), "\"\\u001b[31m\u{202e}\"");
        check(b"\xff\xfe{", r#"{"base64":"//57"}"#);
    }
}
