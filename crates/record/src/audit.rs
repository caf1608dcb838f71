//! One line of an audit: a request, its response, and the test and server that it belongs to. Secrets are redacted before.

use crate::{AnswerKind, millis};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditLine {
    /// [`crate::FORMAT_VERSION`].
    pub version: u32,
    /// When the step that sent it ended, in RFC 3339.
    pub time: String,
    /// The suite file as the user named it.
    pub suite: String,
    pub test: String,
    /// What the step did, in words.
    pub step: String,
    /// The name of the server in the suite.
    pub server: String,
    pub transport: String,
    /// `legacy` or `modern`.
    pub era: String,
    /// Numbers the sessions of a run.
    pub session: u64,
    pub method: String,
    /// The name of the tool or prompt, or the URI of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
    pub answer: AnswerKind,
    /// The result or the error; if it is large, its beginning as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The size in bytes of a result of which only the beginning is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<u64>,
    #[serde(rename = "duration_ms", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub duration: Duration,
    /// Whether the step met its expectations with this request; false for one that was retried.
    pub passed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_version_1_can_be_read() {
        let text = r#"{"version":1,"time":"2026-01-02T03:04:05Z","suite":"s.yaml","test":"a","step":"call echo","server":"server","transport":"http","era":"modern","session":3,"method":"tools/call","target":"echo","arguments":{"message":"hi"},"answer":"result","result":{"content":[]},"duration_ms":1.5,"passed":true}"#;
        let line: AuditLine = serde_json::from_str(text).unwrap();
        assert_eq!((line.session, line.duration), (3, Duration::from_micros(1500)));
        assert_eq!(serde_json::to_string(&line).unwrap(), text);
    }
}
