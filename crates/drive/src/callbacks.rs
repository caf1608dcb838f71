//! Server requests that the test library handles: elicitation, sampling and roots. Knows no session.

use crate::envelope;
use crate::error::DriveError;
use crate::outlet::Outlet;
use crate::redaction::Redaction;
use mcproof_client::jsonrpc::RpcError;
use mcproof_client::{Answers, Callback, CallbackResponse, Elicitation, Root, Sampling};
use mcproof_protocol::error_code::INTERNAL_ERROR;
use mcproof_record::drive::{AskedOfDriver, DriveAnswers};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// The server requests that were sent to the driver. Clones share them.
#[derive(Clone)]
pub(crate) struct Callbacks(Arc<Inner>);

struct Inner {
    outlet: Outlet,
    next: AtomicU64,
    waiting: Mutex<HashMap<String, oneshot::Sender<Result<Value, RpcError>>>>,
}

impl Callbacks {
    pub(crate) fn new(outlet: Outlet) -> Self {
        Self(Arc::new(Inner { outlet, next: AtomicU64::new(1), waiting: Mutex::default() }))
    }

    /// What the driver said. Of no consequence if nobody waits for it any more.
    pub(crate) fn answer(&self, id: &str, answer: Result<Value, RpcError>) {
        if let Some(waiting) = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(id) {
            let _ = waiting.send(answer);
        }
    }

    /// The policies of a session. Where the driver is to be asked, it gets that long.
    pub(crate) fn policies(
        &self,
        session: &str,
        redaction: &Redaction,
        answers: &DriveAnswers,
        patience: Duration,
    ) -> Result<Answers, DriveError> {
        let is_callback = |answer: &Option<Value>| answer.as_ref().and_then(Value::as_str) == Some("callback");
        let told = |answer: &Option<Value>| answer.clone().filter(|_| !is_callback(answer));
        let DriveAnswers { roots, elicitation, sampling } = answers;
        let callback = Callback {
            roots: is_callback(roots),
            elicitation: is_callback(elicitation),
            sampling: is_callback(sampling),
            ask: self.asking(session, redaction, patience),
        };
        let asks = callback.roots || callback.elicitation || callback.sampling;
        Ok(Answers {
            roots: told(roots).map(read_roots).transpose()?,
            elicitation: told(elicitation).map(read_elicitation).transpose()?,
            sampling: told(sampling).map(read_sampling).transpose()?,
            tasks: None,
            callback: asks.then_some(callback),
            asked: None,
            validate: None,
        })
    }

    fn asking(
        &self,
        session: &str,
        redaction: &Redaction,
        patience: Duration,
    ) -> Arc<dyn Fn(String, Value) -> CallbackResponse + Send + Sync> {
        let (callbacks, session, redaction) = (self.clone(), session.to_owned(), redaction.clone());
        Arc::new(move |method, params| {
            let (callbacks, session, params) = (callbacks.clone(), session.clone(), redaction.value(params));
            Box::pin(async move { callbacks.ask(AskedOfDriver { session, method, params }, patience).await })
        })
    }

    async fn ask(&self, question: AskedOfDriver, patience: Duration) -> Result<Value, RpcError> {
        let id = format!("ask-{}", self.0.next.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = oneshot::channel();
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), sender);
        self.0.outlet.send(envelope::request(&id, "session/ask", &question));
        let outcome = tokio::time::timeout(patience, answer).await;
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        let silent = || RpcError { code: INTERNAL_ERROR, message: format!("the test sent no response to {}", question.method), data: None };
        outcome.ok().and_then(Result::ok).unwrap_or_else(|| Err(silent()))
    }
}

fn read_roots(value: Value) -> Result<Vec<Root>, DriveError> {
    let roots = value.as_array().and_then(|roots| roots.iter().map(Root::of).collect());
    roots.ok_or_else(|| wrong("roots", "a list of URIs, or of maps with `uri` and `name`"))
}

fn read_elicitation(value: Value) -> Result<Elicitation, DriveError> {
    let expected = "an object of values, `accept`, `decline`, `cancel`, or `$result` with a whole result";
    Elicitation::of(value).ok_or_else(|| wrong("elicitation", expected))
}

fn read_sampling(value: Value) -> Result<Sampling, DriveError> {
    match value {
        Value::String(word) if word == "reject" => Ok(Sampling::Reject),
        Value::String(text) => Ok(Sampling::Text(text)),
        result @ Value::Object(_) => Ok(Sampling::Result(result)),
        _ => Err(wrong("sampling", "a text, a result, or `reject`")),
    }
}

fn wrong(name: &str, expected: &str) -> DriveError {
    DriveError::bad("bad-answers", format!("`answers.{name}` must be {expected}, or `callback`"))
}
