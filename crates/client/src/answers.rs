//! How the client answers what a server asks of it: roots, sampling, elicitation. What has a policy is declared as a
//! capability; what has none is refused. Knows no transport.
//! Source: 2025-11-25 and 2026-07-28, client/roots, client/sampling, client/elicitation.

mod asked;
mod callback;

pub use asked::{Asked, AskedLog, ResponseJudge};
pub use callback::{Callback, CallbackResponse};

use crate::jsonrpc::RpcError;
use mcproof_protocol::{error_code::METHOD_NOT_FOUND, methods};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The policies of a session. By default a server may ask for nothing but `ping`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    /// What `roots/list` gives.
    pub roots: Option<Vec<Root>>,
    pub elicitation: Option<Elicitation>,
    pub sampling: Option<Sampling>,
    /// Whether elicitation and sampling may be asked as tasks, in 2025-11-25, the one revision that has them.
    pub tasks: Option<HostedTasks>,
    /// Goes before the policies above, where it covers what is asked.
    pub callback: Option<Callback>,
    /// Where to note what was asked.
    pub asked: Option<AskedLog>,
    /// Whether a response has to be one that a host sends: so it is if nothing is said. Responses go out in any case.
    pub validate: Option<bool>,
}

/// A place where a server may work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    pub uri: String,
    pub name: Option<String>,
}

impl Root {
    /// `None` for what is neither a URI nor an object with one.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(uri) => Some(Self::from(uri.as_str())),
            Value::Object(members) => {
                let text = |value: &Value| value.as_str().map(str::to_owned);
                let is_known = members.keys().all(|name| name == "uri" || name == "name");
                let name = members.get("name").map(text);
                Some(Self { uri: members.get("uri").and_then(text)?, name: name.unwrap_or_default() })
                    .filter(|root| is_known && root.name.is_some() == members.contains_key("name"))
            }
            _ => None,
        }
    }

    /// As `roots/list` has it.
    fn listed(&self) -> Value {
        match &self.name {
            Some(name) => json!({ "uri": self.uri, "name": name }),
            None => json!({ "uri": self.uri }),
        }
    }

    /// As `answers:` of a suite has it.
    fn written(&self) -> Value {
        if self.name.is_some() { self.listed() } else { Value::from(self.uri.as_str()) }
    }
}

impl From<&str> for Root {
    fn from(uri: &str) -> Self {
        Self { uri: uri.to_owned(), name: None }
    }
}

/// How long what a server asks as a task is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostedTasks {
    /// From the request to the response, for which the server has to poll.
    pub takes: Duration,
    /// What the server is told about how often to poll.
    pub poll_interval: Duration,
}

impl Default for HostedTasks {
    fn default() -> Self {
        Self { takes: Duration::from_millis(100), poll_interval: Duration::from_millis(100) }
    }
}

/// What the user would do with a form or a URL.
#[derive(Clone, Debug, PartialEq)]
pub enum Elicitation {
    /// Accepts with these values, and with the schema's defaults for what they leave out.
    Accept(Map<String, Value>),
    Decline,
    Cancel,
    /// A whole `ElicitResult`, which is sent as it is: without defaults, and whatever the form says.
    Result(Map<String, Value>),
}

impl Elicitation {
    /// The name under which a whole result is written.
    pub const RESULT: &str = "$result";

    /// As people write it: values, a word, or `$result` with a whole result. `None` for what is none of these.
    pub fn of(value: Value) -> Option<Self> {
        match value {
            Value::Object(mut values) => match values.remove(Self::RESULT) {
                None => Some(Self::Accept(values)),
                Some(Value::Object(result)) if values.is_empty() => Some(Self::Result(result)),
                Some(_) => None,
            },
            Value::String(word) => match word.as_str() {
                "accept" => Some(Self::Accept(Map::new())),
                "decline" => Some(Self::Decline),
                "cancel" => Some(Self::Cancel),
                _ => None,
            },
            _ => None,
        }
    }
}

/// What the model would say.
#[derive(Clone, Debug, PartialEq)]
pub enum Sampling {
    Text(String),
    /// A whole `CreateMessageResult`.
    Result(Value),
    /// The user rejects the request.
    Reject,
}

impl Elicitation {
    /// As `answers:` of a suite has it.
    fn written(&self) -> Value {
        match self {
            Self::Accept(values) if !values.is_empty() => Value::Object(values.clone()),
            Self::Accept(_) => Value::from("accept"),
            Self::Decline => Value::from("decline"),
            Self::Cancel => Value::from("cancel"),
            Self::Result(result) => json!({ (Self::RESULT): result }),
        }
    }
}

impl Sampling {
    /// As `answers:` of a suite has it.
    fn written(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(text.as_str()),
            Self::Result(result) => result.clone(),
            Self::Reject => Value::from("reject"),
        }
    }

    /// The `CreateMessageResult` that is sent; `None` if the request is rejected.
    pub fn result(&self) -> Option<Value> {
        match self {
            Self::Text(text) => Some(json!({
                "role": "assistant",
                "content": { "type": "text", "text": text },
                "model": "mcproof",
                "stopReason": "endTurn",
            })),
            Self::Result(result) => Some(result.clone()),
            Self::Reject => None,
        }
    }
}

/// "User rejected sampling request" (client/sampling, error handling).
const REJECTED: i64 = -1;

impl Answers {
    /// These, and where they say nothing, the others.
    #[must_use]
    pub fn or(self, others: &Self) -> Self {
        Self {
            roots: self.roots.or_else(|| others.roots.clone()),
            elicitation: self.elicitation.or_else(|| others.elicitation.clone()),
            sampling: self.sampling.or_else(|| others.sampling.clone()),
            tasks: self.tasks.or(others.tasks),
            callback: self.callback.or_else(|| others.callback.clone()),
            asked: self.asked.or_else(|| others.asked.clone()),
            validate: self.validate.or(others.validate),
        }
    }

    /// The same, for a server in the legacy era that may ask without end: what it asks of the user and the model gets `most` responses, and
    /// is left without one after that, as by a user who has gone. Tasks and a callback know an end of their own.
    #[must_use]
    pub fn up_to(self, most: usize) -> Self {
        let (elicitation, sampling) = (self.elicitation.is_some(), self.sampling.is_some());
        if self.callback.is_some() || self.tasks.is_some() || !(elicitation || sampling) {
            return self;
        }
        let (policies, given) = (Self { asked: None, ..self.clone() }, AtomicUsize::new(0));
        let ask = move |method: String, params: Value| -> CallbackResponse {
            match given.fetch_add(1, Ordering::Relaxed) < most {
                true => Box::pin(std::future::ready(policies.answer(&method, &params))),
                false => Box::pin(std::future::pending::<Result<Value, RpcError>>()),
            }
        };
        Self { callback: Some(Callback { roots: false, elicitation, sampling, ask: Arc::new(ask) }), ..self }
    }

    /// The policies as `answers:` of a suite has them. Tasks and a callback are none of them.
    pub fn written(&self) -> Map<String, Value> {
        let roots = self.roots.as_ref().map(|roots| roots.iter().map(Root::written).collect::<Value>());
        let policies = [
            ("roots", roots),
            ("elicitation", self.elicitation.as_ref().map(Elicitation::written)),
            ("sampling", self.sampling.as_ref().map(Sampling::written)),
        ];
        policies.into_iter().filter_map(|(name, policy)| Some((name.to_owned(), policy?))).collect()
    }

    /// The capabilities that these policies can keep.
    pub fn capabilities(&self) -> Map<String, Value> {
        let mut capabilities = Map::new();
        let asks = |method| self.callback.as_ref().is_some_and(|callback| callback.covers(method));
        if self.roots.is_some() || asks(methods::ROOTS_LIST) {
            capabilities.insert("roots".into(), json!({}));
        }
        if self.elicitation.is_some() || asks(methods::ELICITATION_CREATE) {
            capabilities.insert("elicitation".into(), json!({ "form": {}, "url": {} }));
        }
        if self.sampling.is_some() || asks(methods::SAMPLING_CREATE_MESSAGE) {
            capabilities.insert("sampling".into(), json!({ "tools": {} }));
        }
        capabilities
    }

    /// The capability `tasks`, for the one revision that has it.
    pub(crate) fn tasks_capability(&self) -> Option<Value> {
        self.tasks.as_ref()?;
        let mut requests = Map::new();
        if self.elicitation.is_some() {
            requests.insert("elicitation".into(), json!({ "create": {} }));
        }
        if self.sampling.is_some() {
            requests.insert("sampling".into(), json!({ "createMessage": {} }));
        }
        (!requests.is_empty()).then(|| json!({ "list": {}, "cancel": {}, "requests": requests }))
    }

    /// What to wait for, where a callback covers the method.
    pub(crate) fn consult(&self, method: &str, params: &Value) -> Option<CallbackResponse> {
        let callback = self.callback.as_ref().filter(|callback| callback.covers(method))?;
        self.note(method, params, None);
        Some((callback.ask)(method.to_owned(), params.clone()))
    }

    /// The response to one request of the server, whoever gives it.
    ///
    /// # Errors
    /// The JSON-RPC error to answer with.
    pub(crate) async fn give(&self, method: &str, params: &Value) -> Result<Value, RpcError> {
        match self.consult(method, params) {
            Some(consulted) => consulted.await,
            None => self.answer(method, params),
        }
    }

    /// The response to one request of the server, as the policies have it.
    ///
    /// # Errors
    /// The JSON-RPC error to answer with.
    pub fn answer(&self, method: &str, params: &Value) -> Result<Value, RpcError> {
        let given = self.as_written(method, params);
        // A whole result is meant, whatever the form says.
        let is_meant = method == methods::ELICITATION_CREATE && matches!(self.elicitation, Some(Elicitation::Result(_)));
        self.note(method, params, given.as_ref().ok().filter(|_| !is_meant));
        given
    }

    fn as_written(&self, method: &str, params: &Value) -> Result<Value, RpcError> {
        match (method, self) {
            (methods::PING, _) => Ok(json!({})),
            (methods::ROOTS_LIST, Self { roots: Some(roots), .. }) => {
                let roots: Vec<Value> = roots.iter().map(Root::listed).collect();
                Ok(json!({ "roots": roots }))
            }
            (methods::ELICITATION_CREATE, Self { elicitation: Some(policy), .. }) => Ok(elicited(policy, params)),
            (methods::SAMPLING_CREATE_MESSAGE, Self { sampling: Some(policy), .. }) => sampled(policy),
            _ => Err(RpcError { code: METHOD_NOT_FOUND, message: format!("this client does not offer {method}"), data: None }),
        }
    }

    fn note(&self, method: &str, params: &Value, given: Option<&Value>) {
        if let Some(asked) = &self.asked {
            asked.note(method, params, given);
        }
    }
}

fn elicited(policy: &Elicitation, params: &Value) -> Value {
    match policy {
        Elicitation::Decline => json!({ "action": "decline" }),
        Elicitation::Cancel => json!({ "action": "cancel" }),
        Elicitation::Result(result) => Value::Object(result.clone()),
        // The content of a URL elicitation never passes through the client.
        Elicitation::Accept(_) if params.get("mode").and_then(Value::as_str) == Some("url") => json!({ "action": "accept" }),
        Elicitation::Accept(values) => {
            let properties = params.pointer("/requestedSchema/properties").and_then(Value::as_object);
            let defaults =
                properties.into_iter().flatten().filter_map(|(name, schema)| Some((name.clone(), schema.get("default")?.clone())));
            let mut content: Map<String, Value> = defaults.collect();
            content.extend(values.clone());
            json!({ "action": "accept", "content": content })
        }
    }
}

fn sampled(policy: &Sampling) -> Result<Value, RpcError> {
    policy.result().ok_or_else(|| RpcError { code: REJECTED, message: "user rejected sampling request".into(), data: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_answers_what_it_declares() {
        let answers = Answers {
            roots: Some(vec!["file:///a".into(), Root { uri: "file:///b".into(), name: Some("b".into()) }]),
            elicitation: Some(Elicitation::Accept(Map::from_iter([("b".into(), json!(2))]))),
            sampling: Some(Sampling::Text("hi".into())),
            tasks: Some(HostedTasks::default()),
            ..Answers::default()
        };
        assert_eq!(answers.capabilities().keys().collect::<Vec<_>>(), ["roots", "elicitation", "sampling"]);
        let requests = json!({ "elicitation": { "create": {} }, "sampling": { "createMessage": {} } });
        assert_eq!(answers.tasks_capability(), Some(json!({ "list": {}, "cancel": {}, "requests": requests })));
        let check = |method, params: Value, expected: Value| assert_eq!(answers.answer(method, &params), Ok(expected), "{method}");
        check("ping", Value::Null, json!({}));
        check("roots/list", Value::Null, json!({ "roots": [{ "uri": "file:///a" }, { "uri": "file:///b", "name": "b" }] }));
        let schema =
            json!({ "properties": { "a": { "type": "integer", "default": 1 }, "b": { "default": 0 }, "c": { "type": "string" } } });
        check("elicitation/create", json!({ "requestedSchema": schema }), json!({ "action": "accept", "content": { "a": 1, "b": 2 } }));
        check("elicitation/create", json!({ "mode": "url", "url": "https://a" }), json!({ "action": "accept" }));
        assert_eq!(answers.answer("sampling/createMessage", &Value::Null).unwrap()["content"]["text"], "hi");
    }

    #[test]
    fn policies_are_written_as_suites_have_them() {
        let check = |answers: Answers, expected: Value| assert_eq!(Value::Object(answers.written()), expected);
        check(Answers::default(), json!({}));
        let roots = Some(vec!["file:///a".into(), Root { uri: "file:///b".into(), name: Some("b".into()) }]);
        check(Answers { roots, ..Answers::default() }, json!({ "roots": ["file:///a", { "uri": "file:///b", "name": "b" }] }));
        for (elicitation, expected) in [
            (Elicitation::Accept(Map::new()), json!("accept")),
            (Elicitation::Accept(Map::from_iter([("a".into(), json!(1))])), json!({ "a": 1 })),
            (Elicitation::Decline, json!("decline")),
            (Elicitation::Cancel, json!("cancel")),
        ] {
            check(Answers { elicitation: Some(elicitation), ..Answers::default() }, json!({ "elicitation": expected }));
        }
        for (sampling, expected) in [
            (Sampling::Text("hi".into()), json!("hi")),
            (Sampling::Result(json!({ "model": "m" })), json!({ "model": "m" })),
            (Sampling::Reject, json!("reject")),
        ] {
            check(Answers { sampling: Some(sampling), ..Answers::default() }, json!({ "sampling": expected }));
        }
    }

    #[test]
    fn an_elicitation_is_read_as_it_is_written() {
        let params = json!({ "requestedSchema": { "properties": { "a": { "type": "integer", "default": 1 } } } });
        let check = |written: Value, sent: Option<Value>| {
            let answer = |policy| Answers { elicitation: Some(policy), ..Answers::default() }.answer(methods::ELICITATION_CREATE, &params);
            assert_eq!(Elicitation::of(written.clone()).map(|policy| answer(policy).unwrap()), sent, "{written}");
        };
        check(json!({ "b": 2 }), Some(json!({ "action": "accept", "content": { "a": 1, "b": 2 } })));
        check(json!("accept"), Some(json!({ "action": "accept", "content": { "a": 1 } })));
        check(json!("decline"), Some(json!({ "action": "decline" })));
        check(json!("cancel"), Some(json!({ "action": "cancel" })));
        let exact = json!({ "action": "accept", "content": { "b": "2" }, "_meta": {} });
        check(json!({ "$result": exact, "b": 2 }), None);
        check(json!({ "$result": exact }), Some(exact));
        check(json!({ "$result": "accept" }), None);
        check(json!("maybe"), None);
        check(json!(3), None);
    }

    #[tokio::test]
    async fn who_asks_without_end_is_left_without_a_response() {
        let asked = AskedLog::default();
        let policies = Answers { elicitation: Some(Elicitation::Decline), asked: Some(asked.clone()), ..Answers::default() };
        let answers = policies.clone().up_to(2);
        assert_eq!(answers.capabilities(), policies.capabilities());
        for _ in 0..2 {
            let given = answers.give(methods::ELICITATION_CREATE, &Value::Null).await;
            assert_eq!(given, Ok(json!({ "action": "decline" })));
        }
        let third = tokio::time::timeout(Duration::ZERO, answers.give(methods::ELICITATION_CREATE, &Value::Null)).await;
        assert!(third.is_err());
        assert_eq!(asked.all().len(), 3);
        assert_eq!(answers.give(methods::PING, &Value::Null).await, Ok(json!({})));
    }

    #[test]
    fn what_has_no_policy_is_refused() {
        for method in ["roots/list", "elicitation/create", "sampling/createMessage", "tasks/get"] {
            assert_eq!(Answers::default().answer(method, &Value::Null).unwrap_err().code, METHOD_NOT_FOUND, "{method}");
        }
        assert!(Answers::default().capabilities().is_empty());
        assert_eq!(Answers::default().tasks_capability(), None);
        assert_eq!(Answers { tasks: Some(HostedTasks::default()), ..Answers::default() }.tasks_capability(), None);
    }
}
