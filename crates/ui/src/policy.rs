//! How what a server asks is answered without the user: by the `answers:` of suites, set for a connection. Knows no syntax; a
//! [`crate::spec::Connector`] reads it.

use crate::asks;
use crate::connection::Live;
use crate::hub::{Hub, HubFailure};
use mcproof_client::jsonrpc::RpcError;
use mcproof_client::{Answers, Callback, Root};
use mcproof_protocol::{Era, methods};
use mcproof_record::Diagnostic;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// What is set for one connection. By default there are no roots, and the user answers everything else.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Policy {
    /// As the user has written it.
    text: String,
    answers: Answers,
}

/// Who answers a question.
#[derive(Debug, PartialEq)]
pub(crate) enum Decision {
    /// The policy, which a suite writes like this.
    Policy {
        answer: Result<Value, RpcError>,
        written: Value,
    },
    User(Option<Unfinished>),
}

/// What a policy has for a form, and the required fields for which it has no value: a server would reject that.
#[derive(Debug, PartialEq)]
pub(crate) struct Unfinished {
    content: Value,
    missing: Vec<String>,
}

/// How long an HTTP server may take to accept a notification.
const NOTIFIED: Duration = Duration::from_secs(5);

impl Policy {
    /// With these roots alone.
    pub(crate) fn of_roots(uris: &[String]) -> Self {
        if uris.is_empty() {
            return Self::default();
        }
        let answers = Answers { roots: Some(uris.iter().map(|uri| Root::from(uri.as_str())).collect()), ..Answers::default() };
        Self { text: Value::Object(answers.written()).to_string(), answers }
    }

    fn read(hub: &Hub, text: String) -> Result<Self, Box<Diagnostic>> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let answers = hub.connector.answers(&text)?;
        if answers.tasks.is_some() {
            let diagnostic = Diagnostic::error("only-in-suites", "`tasks` is a key of suites only: here, no question becomes a task");
            return Err(Box::new(diagnostic.hint("remove `tasks`")));
        }
        Ok(Self { text, answers })
    }

    pub(crate) fn shown(&self) -> Value {
        json!({ "text": self.text, "answers": self.answers.written() })
    }

    pub(crate) fn has_roots(&self) -> bool {
        self.answers.roots.is_some()
    }

    pub(crate) fn has_same_roots(&self, other: &Self) -> bool {
        self.answers.roots == other.answers.roots
    }

    /// What a session answers: the roots by itself, and the rest as the callback says.
    pub(crate) fn responses(&self, callback: Callback) -> Answers {
        Answers { roots: self.answers.roots.clone(), callback: Some(callback), ..Answers::default() }
    }

    pub(crate) fn decide(&self, method: &str, params: &Value) -> Decision {
        let name = match method {
            methods::ELICITATION_CREATE => "elicitation",
            methods::SAMPLING_CREATE_MESSAGE => "sampling",
            _ => return Decision::User(None),
        };
        let Some(written) = self.answers.written().get(name).cloned() else { return Decision::User(None) };
        let answer = self.answers.answer(method, params);
        let unfinished = answer.as_ref().ok().and_then(|answer| Unfinished::of(params, answer));
        match unfinished {
            Some(unfinished) => Decision::User(Some(unfinished)),
            None => Decision::Policy { answer, written },
        }
    }
}

impl Unfinished {
    fn of(params: &Value, answer: &Value) -> Option<Self> {
        let content = answer.get("content").filter(|content| content.is_object())?;
        let required = params.pointer("/requestedSchema/required")?.as_array()?.iter().filter_map(Value::as_str);
        let missing: Vec<String> = required.filter(|name| content.get(name).is_none()).map(str::to_owned).collect();
        (!missing.is_empty()).then(|| Self { content: content.clone(), missing })
    }

    pub(crate) fn shown(&self) -> Value {
        json!({ "content": self.content, "missing": self.missing })
    }
}

/// Sets the policies of a connection, from now on. A legacy server that was offered roots is told if they are others now; a modern one
/// is told nothing, and asks for them when it needs them.
pub(crate) async fn set(hub: &Arc<Hub>, id: u64, text: String) -> Result<Result<(), Box<Diagnostic>>, HubFailure> {
    let policy = match Policy::read(hub, text) {
        Ok(policy) => policy,
        Err(diagnostic) => return Ok(Err(diagnostic)),
    };
    let (before, live) = hub.change(|state| {
        let connection = state.connection(id).ok_or(HubFailure::NoConnection)?;
        // For whatever connects beside this session, such as a check.
        connection.spec.roots = policy.answers.roots.iter().flatten().map(|root| root.uri.clone()).collect();
        Ok::<_, HubFailure>((std::mem::replace(&mut connection.policy, policy.clone()), connection.live.clone()))
    })?;
    if let Some(live) = live.filter(|_| !policy.has_same_roots(&before)) {
        tell_roots(hub, id, live, &policy).await;
    }
    Ok(Ok(()))
}

/// Lets an open session answer with other roots, and tells its server.
pub(crate) async fn tell_roots(hub: &Arc<Hub>, id: u64, live: Live, policy: &Policy) {
    let Live { recorded, session, declares_roots, .. } = live;
    let Some(tap) = hub.recorded(recorded).ok().and_then(|recorded| recorded.frames.tap()) else { return };
    let held = session.read_owned().await;
    let Some(session) = held.as_ref() else { return };
    session.set_client_responses(policy.responses(asks::callback(hub, id, recorded, tap)));
    if declares_roots && session.handshake().era == Era::Legacy {
        session.notify(methods::notifications::ROOTS_LIST_CHANGED, None, NOTIFIED).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_client::{Elicitation, Sampling};
    use serde_json::Map;

    fn of(answers: Answers) -> Policy {
        Policy { text: String::new(), answers }
    }

    #[test]
    fn a_policy_answers_what_it_has_an_answer_for() {
        let policy = of(Answers { elicitation: Some(Elicitation::Decline), ..Answers::default() });
        let declined = Decision::Policy { answer: Ok(json!({ "action": "decline" })), written: json!("decline") };
        assert_eq!(policy.decide("elicitation/create", &json!({})), declined);
        assert_eq!(policy.decide("sampling/createMessage", &json!({})), Decision::User(None));
        let policy = of(Answers { sampling: Some(Sampling::Text("hi".into())), ..Answers::default() });
        assert!(matches!(policy.decide("sampling/createMessage", &json!({})), Decision::Policy { answer: Ok(_), .. }));
    }

    #[test]
    fn a_form_with_a_required_field_that_no_policy_fills_is_for_the_user() {
        let policy = of(Answers { elicitation: Some(Elicitation::Accept(Map::new())), ..Answers::default() });
        let form = |required: Value| json!({ "requestedSchema": { "properties": { "a": { "default": 1 }, "b": { "type": "string" } }, "required": required } });
        let accepted = Decision::Policy { answer: Ok(json!({ "action": "accept", "content": { "a": 1 } })), written: json!("accept") };
        assert_eq!(policy.decide("elicitation/create", &form(json!(["a"]))), accepted);
        let unfinished = Unfinished { content: json!({ "a": 1 }), missing: vec!["b".to_owned()] };
        assert_eq!(policy.decide("elicitation/create", &form(json!(["a", "b"]))), Decision::User(Some(unfinished)));
        let url = Decision::Policy { answer: Ok(json!({ "action": "accept" })), written: json!("accept") };
        assert_eq!(policy.decide("elicitation/create", &json!({ "mode": "url", "url": "https://a" })), url);
    }

    #[test]
    fn roots_that_were_typed_are_set() {
        let policy = Policy::of_roots(&["file:///a".to_owned()]);
        assert_eq!(policy.shown(), json!({ "text": r#"{"roots":["file:///a"]}"#, "answers": { "roots": ["file:///a"] } }));
        assert!(policy.has_roots() && !Policy::of_roots(&[]).has_roots());
    }
}
