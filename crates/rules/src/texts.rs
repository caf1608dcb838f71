//! The texts of a server that a model reads, and the parts of them that a user cannot see. Knows characters and phrases, no rule.

use super::ConversationView;
use super::flaws::name_of;
use mcproof_protocol::methods;
use mcproof_record::FrameId;
use serde_json::Value;

/// A text that a server provides to models, with its place.
pub(super) struct ModelText<'c> {
    /// Such as ``tool `echo`, `description` ``.
    pub(super) place: String,
    pub(super) text: &'c str,
    pub(super) frame: FrameId,
}

/// Names, titles, descriptions, schemas: all texts of the lists, and the instructions of the handshake.
pub(super) fn texts_for_models<'c>(conversation: &'c ConversationView<'_>) -> Vec<ModelText<'c>> {
    let mut found = Vec::new();
    if let Some((result, frame)) = conversation.handshake() {
        for key in ["instructions", "serverInfo"] {
            collect(result.get(key), &mut vec![key.to_owned()], "the server", frame, &mut found);
        }
    }
    let lists = [
        (methods::TOOLS_LIST, "tools", "tool"),
        (methods::PROMPTS_LIST, "prompts", "prompt"),
        (methods::RESOURCES_LIST, "resources", "resource"),
        (methods::RESOURCES_TEMPLATES_LIST, "resourceTemplates", "resource template"),
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

/// The maximum depth of the search.
const DEEPEST: usize = 64;

fn collect<'c>(value: Option<&'c Value>, path: &mut Vec<String>, thing: &str, frame: FrameId, into: &mut Vec<ModelText<'c>>) {
    let model_text = |path: &[String], text| ModelText { place: format!("{thing}, `{}`", path.join(".")), text, frame };
    match value {
        Some(Value::String(text)) => into.push(model_text(path, text)),
        Some(Value::Object(object)) if path.len() < DEEPEST => {
            for (key, value) in object.iter().filter(|(key, _)| !matches!(key.as_str(), "icons" | "_meta" | "pattern")) {
                path.push(key.clone());
                // Models read the names of properties, too.
                into.push(model_text(path, key));
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
