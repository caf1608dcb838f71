//! What a mock keeps for one client, and the ways on which messages go to it. Knows no transport.

use super::answers::SessionState;
use super::recording::{ACKNOWLEDGED, LISTEN};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot, watch};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// Messages that wait for a stream on which they can go.
const MOST_WAITING: usize = 1000;
/// Messages on their way to a client that does not read.
pub(crate) const MOST_QUEUED: usize = 256;
/// Responses that are remembered for those that come after them.
const MOST_ANSWERED: usize = 10_000;
/// Subscriptions of one client.
const MOST_LISTENERS: usize = 100;

/// What goes to a client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outgoing {
    /// A message; if it is an error, over HTTP with this status.
    Message { message: Value, status: Option<u16> },
    /// An HTTP response without a message, to the request with this id.
    Http { id: Value, status: u16, headers: Vec<(String, String)>, body: Vec<u8> },
    /// The connection breaks.
    Break,
}

/// A way on which messages go to the client.
#[derive(Clone, Debug)]
pub(crate) struct Outlet(mpsc::Sender<Outgoing>);

impl Outlet {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Outgoing>) {
        let (sender, receiver) = mpsc::channel(MOST_QUEUED);
        (Self(sender), receiver)
    }

    /// False once the client has gone.
    pub(crate) async fn send(&self, outgoing: Outgoing) -> bool {
        self.0.send(outgoing).await.is_ok()
    }

    pub(crate) async fn message(&self, message: Value) -> bool {
        self.send(Outgoing::Message { message, status: None }).await
    }

    /// Returns when the client has gone.
    pub(crate) async fn closed(&self) {
        self.0.closed().await;
    }
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    inner: Mutex<Inner>,
    ended: watch::Sender<bool>,
    /// Where the requests were recorded that have got their response.
    answered: watch::Sender<HashSet<(usize, usize)>>,
}

#[derive(Debug, Default)]
struct Inner {
    state: SessionState,
    version: Option<String>,
    capabilities: Value,
    /// Requests of the server, by id.
    asked: HashMap<String, oneshot::Sender<Value>>,
    asked_so_far: u64,
    /// Requests of the client, by a number of ours: several clients without a session may use the same id.
    running: HashMap<u64, Running>,
    begun_so_far: u64,
    outlet: Option<Outlet>,
    waiting: VecDeque<Value>,
    listeners: Vec<Listener>,
}

#[derive(Debug)]
struct Running {
    id: Value,
    canceled: watch::Sender<bool>,
}

#[derive(Debug)]
struct Listener {
    number: u64,
    id: Value,
    filter: Value,
    outlet: Outlet,
}

impl Session {
    pub(crate) fn new(id: String) -> Arc<Self> {
        Arc::new(Self { id, inner: Mutex::default(), ended: watch::Sender::new(false), answered: watch::Sender::default() })
    }

    /// A request that was recorded there has got its response.
    pub(crate) fn answered(&self, place: (usize, usize)) {
        self.answered.send_modify(|answered| {
            if answered.len() >= MOST_ANSWERED {
                answered.clear();
            }
            answered.insert(place);
        });
    }

    /// Waits until requests that were recorded there have got their responses.
    pub(crate) async fn until_answered(&self, places: &[(usize, usize)]) {
        let mut receiver = self.answered.subscribe();
        // The sender is here as long as this session is.
        let _ = receiver.wait_for(|answered| places.iter().all(|place| answered.contains(place))).await;
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn with_state<T>(&self, work: impl FnOnce(&mut SessionState) -> T) -> T {
        work(&mut self.inner().state)
    }

    /// The revision of the legacy era that was agreed on.
    pub(crate) fn version(&self) -> Option<String> {
        self.inner().version.clone()
    }

    pub(crate) fn agree(&self, version: &str, capabilities: Value) {
        let mut inner = self.inner();
        inner.version = Some(version.to_owned());
        inner.capabilities = capabilities;
    }

    /// What the client declared in `initialize`.
    pub(crate) fn capabilities(&self) -> Value {
        self.inner().capabilities.clone()
    }

    /// From now on, what answers no request goes there. What has waited for it goes first.
    pub(crate) async fn attach(&self, outlet: Outlet) {
        let waiting = {
            let mut inner = self.inner();
            inner.outlet = Some(outlet.clone());
            std::mem::take(&mut inner.waiting)
        };
        for message in waiting {
            outlet.message(message).await;
        }
    }

    /// The stream on which everything goes that has no other way.
    pub(crate) fn outlet(&self) -> Option<Outlet> {
        self.inner().outlet.clone()
    }

    /// A request of the server begins: its id, and the response to wait for.
    pub(crate) fn ask(&self) -> (Value, oneshot::Receiver<Value>) {
        let (sender, receiver) = oneshot::channel();
        let mut inner = self.inner();
        inner.asked_so_far += 1;
        let id = json!(format!("mock-{}", inner.asked_so_far));
        inner.asked.insert(id.to_string(), sender);
        (id, receiver)
    }

    pub(crate) fn forget(&self, id: &Value) {
        self.inner().asked.remove(&id.to_string());
    }

    /// A response of the client.
    pub(crate) fn respond(&self, message: Value) {
        let sender = message.get("id").and_then(|id| self.inner().asked.remove(&id.to_string()));
        if let Some(sender) = sender {
            // Whoever asked may have gone.
            let _ = sender.send(message);
        }
    }

    /// A request begins: its number, and the receiver that tells when it is canceled.
    pub(crate) fn begin(&self, id: &Value) -> (u64, watch::Receiver<bool>) {
        let (canceled, receiver) = watch::channel(false);
        let mut inner = self.inner();
        inner.begun_so_far += 1;
        let number = inner.begun_so_far;
        inner.running.insert(number, Running { id: id.clone(), canceled });
        (number, receiver)
    }

    pub(crate) fn finish(&self, number: u64) {
        let mut inner = self.inner();
        inner.running.remove(&number);
        inner.listeners.retain(|listener| listener.number != number);
    }

    pub(crate) fn cancel(&self, id: &Value) {
        for running in self.inner().running.values().filter(|running| running.id == *id) {
            running.canceled.send_replace(true);
        }
    }

    pub(crate) fn end(&self) {
        self.ended.send_replace(true);
        let mut inner = self.inner();
        for running in inner.running.values() {
            running.canceled.send_replace(true);
        }
        inner.outlet = None;
        inner.asked.clear();
    }

    pub(crate) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    pub(crate) async fn until_end(&self) {
        // The sender lives as long as the session.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// A subscription begins (2026-07-28, basic/patterns/subscriptions); false if there are too many.
    pub(crate) fn listen(&self, number: u64, id: &Value, filter: &Value, outlet: &Outlet) -> bool {
        let mut inner = self.inner();
        if inner.listeners.len() >= MOST_LISTENERS {
            return false;
        }
        inner.listeners.push(Listener { number, id: id.clone(), filter: filter.clone(), outlet: outlet.clone() });
        true
    }

    /// A message that belongs to no request: to all subscriptions that name it, or to the session's own stream.
    pub(crate) async fn announce(&self, method: &str, params: &Value) {
        let listeners: Vec<(Value, Outlet)> = {
            let inner = self.inner();
            let concerned = inner.listeners.iter().filter(|listener| names(&listener.filter, method, params));
            concerned.map(|listener| (listener.id.clone(), listener.outlet.clone())).collect()
        };
        for (id, outlet) in listeners {
            outlet.message(notification(method, subscribed(params, &id))).await;
        }
        if self.version().is_some() {
            let mut params = params.clone();
            without_subscription(&mut params);
            self.push(notification(method, params)).await;
        }
    }

    /// A message on the session's own stream; kept until there is one.
    pub(crate) async fn push(&self, message: Value) -> bool {
        let outlet = {
            let mut inner = self.inner();
            if inner.outlet.is_none() {
                if inner.waiting.len() < MOST_WAITING {
                    inner.waiting.push_back(message.clone());
                }
                return true;
            }
            inner.outlet.clone()
        };
        match outlet {
            Some(outlet) => outlet.message(message).await,
            None => false,
        }
    }
}

/// What a subscription to these things is told first.
pub(crate) fn acknowledgement(id: &Value, honored: &Value) -> Value {
    notification(ACKNOWLEDGED, subscribed(&json!({ "notifications": honored }), id))
}

pub(crate) fn notification(method: &str, params: Value) -> Value {
    match params.as_object().is_some_and(serde_json::Map::is_empty) {
        true => json!({ "jsonrpc": "2.0", "method": method }),
        false => json!({ "jsonrpc": "2.0", "method": method, "params": params }),
    }
}

fn subscribed(params: &Value, id: &Value) -> Value {
    let mut params = params.clone();
    if let Some(members) = params.as_object_mut() {
        let meta = members.entry("_meta").or_insert_with(|| json!({}));
        meta[SUBSCRIPTION] = id.clone();
    }
    params
}

fn without_subscription(params: &mut Value) {
    let Some(members) = params.as_object_mut() else { return };
    if let Some(Value::Object(meta)) = members.get_mut("_meta") {
        meta.shift_remove(SUBSCRIPTION);
        if meta.is_empty() {
            members.shift_remove("_meta");
        }
    }
}

/// Whether a filter of `subscriptions/listen` names such a notification.
fn names(filter: &Value, method: &str, params: &Value) -> bool {
    let listed = |key: &str, member: &str| {
        let values = filter.get(key).and_then(Value::as_array);
        values.is_some_and(|values| params.get(member).is_some_and(|value| values.contains(value)))
    };
    let wants = |key: &str| filter.get(key) == Some(&Value::Bool(true));
    match method {
        "notifications/tools/list_changed" => wants("toolsListChanged"),
        "notifications/prompts/list_changed" => wants("promptsListChanged"),
        "notifications/resources/list_changed" => wants("resourcesListChanged"),
        "notifications/resources/updated" => listed("resourceSubscriptions", "uri"),
        "notifications/tasks" | "notifications/tasks/status" => listed("taskIds", "taskId"),
        _ => false,
    }
}

/// Whether a method is a subscription.
pub(crate) fn is_listen(method: &str) -> bool {
    method == LISTEN
}
