//! What a server asked of the client, noted for whoever wrote the answers.

use mcproof_protocol::methods;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};

/// One request of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub method: String,
    /// The part of its capability that the client has to declare: the mode of an elicitation, and `tools` for sampling with tools.
    pub part: Option<&'static str>,
    /// The fields of the form, of an elicitation that has one.
    pub fields: Vec<String>,
}

/// Requests that are noted; nobody reads more.
const MOST: usize = 100;
/// Fields that are noted of each.
const MOST_FIELDS: usize = 200;

/// Requests of a server, in their order. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct AskedLog(Arc<Mutex<Vec<Asked>>>);

impl AskedLog {
    pub(super) fn note(&self, method: &str, params: &Value) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MOST {
            let properties = params.pointer("/requestedSchema/properties").and_then(Value::as_object);
            let fields = properties.into_iter().flatten().map(|(name, _)| name.clone()).take(MOST_FIELDS).collect();
            all.push(Asked { method: method.to_owned(), part: part_of(method, params), fields });
        }
    }

    pub fn all(&self) -> Vec<Asked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl PartialEq for AskedLog {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

fn part_of(method: &str, params: &Value) -> Option<&'static str> {
    match method {
        methods::ELICITATION_CREATE => Some(if params.get("mode").is_some_and(|mode| mode == "url") { "url" } else { "form" }),
        methods::SAMPLING_CREATE_MESSAGE => params.get("tools").map(|_| "tools"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_request_needs_of_a_capability_is_noted() {
        let log = AskedLog::default();
        for (method, params, part) in [
            ("elicitation/create", json!({ "requestedSchema": { "properties": { "a": {} } } }), Some("form")),
            ("elicitation/create", json!({ "mode": "url", "url": "https://a" }), Some("url")),
            ("sampling/createMessage", json!({ "tools": [] }), Some("tools")),
            ("sampling/createMessage", json!({ "messages": [] }), None),
            ("roots/list", Value::Null, None),
        ] {
            log.note(method, &params);
            let last = log.all().pop().unwrap();
            assert_eq!((last.method.as_str(), last.part), (method, part), "{params}");
        }
        assert_eq!(log.all()[0].fields, ["a"]);
    }
}
