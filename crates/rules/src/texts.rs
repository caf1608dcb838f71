//! What a model reads of a server, and what in it a person does not see. Knows characters and phrases, no rule.

use super::ConversationView;
use super::flaws::name_of;
pub(crate) use mcproof_analysis::texts::{control_character, hidden_character, hidden_instruction};
use mcproof_record::FrameId;
use serde_json::Value;

/// A text that a server gives to models, with where it stands.
pub(super) struct Told<'c> {
    /// Such as ``tool `echo`, `description` ``.
    pub(super) place: String,
    pub(super) text: &'c str,
    pub(super) frame: FrameId,
}

/// Names, titles, descriptions, schemas: all texts of the lists, and the instructions of the handshake.
pub(super) fn told_to_models<'c>(conversation: &'c ConversationView<'_>) -> Vec<Told<'c>> {
    let mut found = Vec::new();
    if let Some((result, frame)) = conversation.handshake() {
        for key in ["instructions", "serverInfo"] {
            collect(result.get(key), &mut vec![key.to_owned()], "the server", frame, &mut found);
        }
    }
    let lists = [
        ("tools/list", "tools", "tool"),
        ("prompts/list", "prompts", "prompt"),
        ("resources/list", "resources", "resource"),
        ("resources/templates/list", "resourceTemplates", "resource template"),
    ];
    for (method, key, what) in lists {
        for (items, frame) in conversation.listed(method, key) {
            for item in items {
                collect(Some(item), &mut Vec::new(), &format!("{what} `{}`", name_of(item)), frame, &mut found);
            }
        }
    }
    found
}

/// Deeper than this nobody looks.
const DEEPEST: usize = 64;

fn collect<'c>(value: Option<&'c Value>, path: &mut Vec<String>, thing: &str, frame: FrameId, into: &mut Vec<Told<'c>>) {
    let told = |path: &[String], text| Told { place: format!("{thing}, `{}`", path.join(".")), text, frame };
    match value {
        Some(Value::String(text)) => into.push(told(path, text)),
        Some(Value::Object(object)) if path.len() < DEEPEST => {
            for (key, value) in object.iter().filter(|(key, _)| !matches!(key.as_str(), "icons" | "_meta" | "pattern")) {
                path.push(key.clone());
                // Names of properties are read by models, too.
                into.push(told(path, key));
                collect(Some(value), path, thing, frame, into);
                path.pop();
            }
        }
        Some(Value::Array(items)) if path.len() < DEEPEST => {
            for (index, item) in items.iter().enumerate() {
                path.push(index.to_string());
                collect(Some(item), path, thing, frame, into);
                path.pop();
            }
        }
        _ => {}
    }
}
