//! Stub
use serde_json::Value;
#[derive(Clone, Debug, PartialEq)]
pub struct Payload { pub value: Value, pub text: Option<String> }
impl Payload {
    /// From the `result` of a `tools/call`.
    pub fn from_call_result(result: &Value) -> Self { Self { value: result.clone(), text: None } }
    /// Anything but a tool's answer: the value as it is.
    pub fn of(value: Value) -> Self { Self { value, text: None } }
}
