//! The modern era: every request carries what it needs, results say what they are and how long they hold.

use super::Server;
use super::message::{Outlet, Received, RpcError, notification};
use super::session::{MODERN, rank};
use super::ticket::Ticket;
use super::{features, tasks};
use serde_json::{Map, Value, json};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const LEVEL: &str = "io.modelcontextprotocol/logLevel";
const SERVER: &str = "io.modelcontextprotocol/serverInfo";
pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

const UNSUPPORTED_VERSION: i64 = -32022;

/// How often a subscription looks whether it is over.
const TICK: Duration = Duration::from_millis(50);

/// Methods whose results may be cached (server/utilities/caching).
const CACHEABLE: [&str; 6] =
    ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"];

/// A `subscriptions/listen` that is open.
pub(crate) struct Listener {
    received: Arc<Received>,
    outlet: Arc<dyn Outlet>,
    uris: Vec<String>,
    tools: bool,
}

impl Listener {
    fn notify(&self, method: &str, mut params: Value) {
        params["_meta"] = json!({ SUBSCRIPTION: self.received.id() });
        self.received.send(notification(method, params), self.outlet.as_ref());
    }
}

/// Whether a message carries something of the modern era.
pub(crate) fn is_modern(message: &Value) -> bool {
    let meta = &message["params"]["_meta"];
    [VERSION, CAPABILITIES, CLIENT].iter().any(|key| meta.get(key).is_some())
}

/// The revision that a request says it is in.
pub(crate) fn version(message: &Value) -> Option<&str> {
    message["params"]["_meta"][VERSION].as_str()
}

/// What every request has to carry (2026-07-28, basic#_meta).
///
/// # Errors
/// It is not there, or not known.
pub(crate) fn check_meta(message: &Value) -> Result<(), RpcError> {
    let meta = &message["params"]["_meta"];
    if !meta[VERSION].is_string() {
        return Err(RpcError::invalid_params(format!("`_meta` must have `{VERSION}`, a string")));
    }
    if !meta[CAPABILITIES].is_object() {
        return Err(RpcError::invalid_params(format!("`_meta` must have `{CAPABILITIES}`, an object")));
    }
    if meta.get(CLIENT).is_some_and(|client| !(client["name"].is_string() && client["version"].is_string())) {
        return Err(RpcError::invalid_params(format!("`{CLIENT}` must have a name and a version")));
    }
    if meta.get(LEVEL).is_some_and(|level| level.as_str().and_then(rank).is_none()) {
        return Err(RpcError::invalid_params("Unknown log level"));
    }
    Ok(())
}

/// A legacy client has no other way to learn what is spoken here (basic/versioning).
///
/// # Errors
/// It is one, and shakes hands.
pub(crate) fn check_handshake(message: &Value) -> Result<(), RpcError> {
    if message["method"] == "initialize" && !is_modern(message) {
        return check_version(message["params"]["protocolVersion"].as_str().unwrap_or_default());
    }
    Ok(())
}

/// # Errors
/// The revision is another.
pub(crate) fn check_version(asked: &str) -> Result<(), RpcError> {
    if asked == MODERN {
        return Ok(());
    }
    Err(RpcError::new(UNSUPPORTED_VERSION, "Unsupported protocol version").with(json!({ "supported": [MODERN], "requested": asked })))
}

/// The result of a request whose `_meta` was checked; `None` if it was cancelled.
pub(super) fn answer(received: &Arc<Received>, ticket: &Ticket, outlet: &Arc<dyn Outlet>) -> Result<Option<Value>, RpcError> {
    let catalogue = &received.server.catalogue;
    let result = match received.method() {
        "server/discover" => Some(json!({
            "supportedVersions": [MODERN],
            "capabilities": catalogue.capabilities,
            "instructions": catalogue.instructions,
        })),
        "subscriptions/listen" => {
            listen(received, ticket, outlet)?;
            None
        }
        _ => features::answer(received, ticket, outlet.as_ref())?,
    };
    Ok(result.map(|result| complete(received, result)))
}

/// Adds what every result of the era has.
fn complete(received: &Received, mut result: Value) -> Value {
    let mut whole = Map::from_iter([("resultType".to_owned(), json!("complete"))]);
    if let Some(members) = result.as_object_mut() {
        whole.append(members);
    }
    if CACHEABLE.contains(&received.method()) {
        // The notes change at any time.
        let lasts = if received.method() == "resources/read" { 0 } else { 60_000 };
        whole.insert("ttlMs".to_owned(), json!(lasts));
        whole.insert("cacheScope".to_owned(), json!("public"));
    }
    whole.insert("_meta".to_owned(), json!({ SERVER: received.server.catalogue.server }));
    Value::Object(whole)
}

/// Tells the client what it asked for until it wants no more.
fn listen(received: &Arc<Received>, ticket: &Ticket, outlet: &Arc<dyn Outlet>) -> Result<(), RpcError> {
    let filter =
        received.params()["notifications"].as_object().ok_or_else(|| RpcError::invalid_params("`notifications` must be an object"))?;
    let asked = filter.get("resourceSubscriptions").and_then(Value::as_array);
    let uris: Vec<String> = asked.into_iter().flatten().filter_map(|uri| uri.as_str().map(str::to_owned)).collect();
    // Only fixtures have tasks, and tools that change.
    let has_tasks = received.server.catalogue.capabilities.pointer(tasks::EXTENSION).is_some();
    let followed = filter.get("taskIds").filter(|_| has_tasks);
    if followed.is_some() && !received.client_can(tasks::EXTENSION) {
        return Err(tasks::needs_extension());
    }
    let may_change = received.server.catalogue.capabilities["tools"]["listChanged"] == true;
    let tools = may_change && filter.get("toolsListChanged") == Some(&Value::Bool(true));
    let mut honored = if asked.is_some() { json!({ "resourceSubscriptions": uris }) } else { json!({}) };
    if tools {
        honored["toolsListChanged"] = json!(true);
    }
    if let Some(followed) = followed {
        // Whether anything is told of them is up to the server.
        honored["taskIds"] = followed.clone();
    }
    let listener = Arc::new(Listener { received: Arc::clone(received), outlet: Arc::clone(outlet), uris, tools });
    {
        // It hears of each change after the acknowledgement, and of none before it.
        let mut known = listeners(&received.server);
        listener.notify("notifications/subscriptions/acknowledged", json!({ "notifications": honored }));
        known.push(Arc::clone(&listener));
    }
    while ticket.is_wanted(true, outlet.as_ref()) {
        sleep(TICK);
    }
    listeners(&received.server).retain(|known| !Arc::ptr_eq(known, &listener));
    Ok(())
}

/// Tells all who listen to this resource that it has changed.
pub(super) fn tell_listeners(server: &Server, uri: &str) {
    let concerned: Vec<Arc<Listener>> =
        listeners(server).iter().filter(|known| known.uris.iter().any(|known| known == uri)).cloned().collect();
    for listener in concerned {
        listener.notify("notifications/resources/updated", json!({ "uri": uri }));
    }
}

/// Tells all who listen to the tools that they have changed.
pub(super) fn tools_changed(server: &Server) {
    let concerned: Vec<Arc<Listener>> = listeners(server).iter().filter(|known| known.tools).cloned().collect();
    for listener in concerned {
        listener.notify("notifications/tools/list_changed", json!({}));
    }
}

fn listeners(server: &Server) -> MutexGuard<'_, Vec<Arc<Listener>>> {
    server.listeners.lock().unwrap_or_else(PoisonError::into_inner)
}
