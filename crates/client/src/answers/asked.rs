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
    /// What is wrong with the response, where somebody looks.
    pub flaw: Option<String>,
}

/// Says what is wrong with a response of the client: of the method of the request, its params, and the result.
pub type ResponseJudge = fn(&str, &Value, &Value) -> Option<String>;

/// Requests that are noted; nobody reads more.
const MOST: usize = 100;
/// Fields that are noted of each.
const MOST_FIELDS: usize = 200;

/// Requests of a server, in their order. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct AskedLog {
    requests: Arc<Mutex<Vec<Asked>>>,
    judge: Option<ResponseJudge>,
}

impl AskedLog {
    /// One that says of each response what is wrong with it.
    pub fn judged_by(judge: ResponseJudge) -> Self {
        Self { judge: Some(judge), ..Self::default() }
    }

    pub(super) fn note(&self, method: &str, params: &Value, given: Option<&Value>) {
        let flaw = self.judge.zip(given).and_then(|(judge, given)| judge(method, params, given));
        let mut all = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new_flaw = flaw.is_some() && all.iter().all(|asked| asked.flaw.is_none());
        if all.len() < MOST || is_new_flaw {
            let properties = params.pointer("/requestedSchema/properties").and_then(Value::as_object);
            let fields = properties.into_iter().flatten().map(|(name, _)| name.clone()).take(MOST_FIELDS).collect();
            all.push(Asked { method: method.to_owned(), part: part_of(method, params), fields, flaw });
        }
    }

    pub fn all(&self) -> Vec<Asked> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl PartialEq for AskedLog {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.requests, &other.requests)
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
            log.note(method, &params, None);
            let last = log.all().pop().unwrap();
            assert_eq!((last.method.as_str(), last.part), (method, part), "{params}");
        }
        assert_eq!(log.all()[0].fields, ["a"]);
    }

    #[test]
    fn a_flaw_is_noted_however_much_was_asked_before() {
        let log = AskedLog::judged_by(|method, _, given| given.is_null().then(|| format!("nothing for {method}")));
        (0..MOST + 5).for_each(|_| log.note("ping", &Value::Null, Some(&json!({}))));
        assert!(log.all().len() == MOST && log.all().iter().all(|asked| asked.flaw.is_none()));
        (0..5).for_each(|_| log.note("ping", &Value::Null, Some(&Value::Null)));
        assert_eq!((log.all().len(), log.all()[MOST].flaw.as_deref()), (MOST + 1, Some("nothing for ping")));
    }
}
