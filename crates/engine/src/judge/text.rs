//! Stub
use serde_json::{Map, Value};
#[derive(Clone, Debug)]
pub struct TextPattern {}
impl TextPattern {
    /// The whole text.
    pub fn matches_exactly(&self, _text: &str, _scope: &Map<String, Value>) -> bool { false }
    /// Somewhere in the text.
    pub fn matches_within(&self, _text: &str, _scope: &Map<String, Value>) -> bool { false }
    /// For `Difference::expected`: `text that contains "…"`, `text that matches /…/`.
    pub fn describe_within(&self, _scope: &Map<String, Value>) -> String { String::new() }
}
