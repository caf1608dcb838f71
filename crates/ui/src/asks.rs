//! What servers ask the user (elicitation, sampling), until the user answers in the page, or a policy that the user has set.

use crate::hub::{Hub, State};
use crate::policy::{Decision, Unfinished};
use mcproof_client::jsonrpc::RpcError;
use mcproof_client::{Callback, CallbackResponse, Tap};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// A question that waits.
pub(crate) struct Ask {
    id: u64,
    connection: u64,
    session: u64,
    method: String,
    params: Value,
    asked_ms: u64,
    /// What the policy has for it, if that is not enough.
    unfinished: Option<Unfinished>,
    answer: oneshot::Sender<Result<Value, RpcError>>,
}

/// A person may be away for lunch, but the server must not wait for ever.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// Questions that wait at the same time.
const MAX_ASKS: usize = 64;

/// What a note says of an answer that no user gave. The page reads it.
const BY_POLICY: &str = "is answered by policy:";

/// The error with which questions are refused that nobody answers.
const REFUSED: i64 = -1;

impl Ask {
    pub(crate) fn shown(&self) -> Value {
        json!({
            "id": self.id,
            "connection": self.connection,
            "session": self.session,
            "method": self.method,
            "params": self.params,
            "askedMs": self.asked_ms,
            "unfinished": self.unfinished.as_ref().map(Unfinished::shown),
        })
    }
}

/// Puts what the server of this session asks before the user, unless a policy answers it: a note in the traffic says so then, with the policy
/// as a suite has it.
pub(crate) fn callback(hub: &Arc<Hub>, connection: u64, session: u64, tap: Tap) -> Callback {
    let hub = Arc::downgrade(hub);
    let ask = move |method: String, params: Value| -> CallbackResponse {
        let (hub, tap) = (hub.clone(), tap.clone());
        Box::pin(async move {
            let Some(hub) = hub.upgrade() else { return Err(refusal("the inspector has ended")) };
            let policy = hub.state().connection(connection).map(|connection| connection.policy.clone()).unwrap_or_default();
            let unfinished = match policy.decide(&method, &params) {
                Decision::Policy { answer, written } => {
                    tap.note(format!("{method} {BY_POLICY} {written}"));
                    return answer;
                }
                Decision::User(unfinished) => unfinished,
            };
            let (answer, answered) = oneshot::channel();
            let asked_ms = hub.now_ms();
            let id = hub.change(|state| {
                if state.asks.len() >= MAX_ASKS {
                    return None;
                }
                let id = state.new_id();
                state.asks.push(Ask { id, connection, session, method, params, asked_ms, unfinished, answer });
                Some(id)
            });
            let Some(id) = id else { return Err(refusal("too many questions wait for the user")) };
            // Also when the server takes its question back, which ends this future.
            let _withdrawn = Withdrawn { hub: &hub, ask: id };
            let answered = tokio::time::timeout(LONGEST_WAIT, answered).await;
            match answered {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) => Err(refusal("the session was closed before the user answered")),
                Err(_) => Err(refusal("the user did not answer in time")),
            }
        })
    };
    Callback { roots: false, elicitation: true, sampling: true, ask: Arc::new(ask) }
}

/// Takes a question from the page when nobody waits for its answer any more. Whoever answered has taken it already.
struct Withdrawn<'a> {
    hub: &'a Hub,
    ask: u64,
}

impl Drop for Withdrawn<'_> {
    fn drop(&mut self) {
        if self.hub.state().asks.iter().any(|ask| ask.id == self.ask) {
            self.hub.change(|state| state.asks.retain(|ask| ask.id != self.ask));
        }
    }
}

fn refusal(why: &str) -> RpcError {
    RpcError { code: REFUSED, message: why.to_owned(), data: None }
}

/// Gives the user's answer. No frame of the session has the secrets in it. False if nobody waits for it any more.
pub(crate) fn answer(hub: &Hub, id: u64, given: Result<Value, RpcError>, secrets: &[String]) -> bool {
    let session = hub.state().asks.iter().find(|ask| ask.id == id).map(|ask| ask.session);
    let tap = session.and_then(|session| hub.recorded(session).ok()).and_then(|recorded| recorded.frames.tap());
    tap.iter().for_each(|tap| secrets.iter().for_each(|secret| tap.keep_secret(secret)));
    let ask = hub.change(|state| {
        let position = state.asks.iter().position(|ask| ask.id == id)?;
        Some(state.asks.remove(position))
    });
    ask.is_some_and(|ask| ask.answer.send(given).is_ok())
}

/// The session is over: nobody waits any more.
pub(crate) fn withdraw(state: &mut State, session: u64) {
    state.asks.retain(|ask| ask.session != session);
}
