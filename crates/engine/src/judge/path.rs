//! Stub
use super::Payload;
use serde_json::Value;
#[derive(Clone, Debug)]
pub struct JsonPath {}
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PathError { pub message: String, pub hint: Option<String> }
impl JsonPath {
    pub fn parse(_text: &str) -> Result<Self, PathError> { Ok(Self {}) }
    /// The one value at this path in the payload, or in the raw result where the path begins with `result`.
    pub fn select<'a>(&self, payload: &'a Payload, _result: &'a Value) -> Result<&'a Value, PathError> { Ok(&payload.value) }
}
impl std::fmt::Display for JsonPath { fn fmt(&self, _f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { Ok(()) } }
