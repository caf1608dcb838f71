//! The handshakes of both eras as messages: what `initialize` offers, and what its response and that of `server/discover` say.

use super::dispatcher::Dispatcher;
use super::wire::{Connection, Outgoing, TOO_LATE, Wire, refusal};
use super::{CallFailure, ClientProfile, ConnectFailure, EraEvidence, Handshake, Reply, SESSION_HEADER, VERSION_HEADER};
use crate::transport::{Resume, Unanswered, measured};
use mcproof_protocol::{Era, Revision, Transport, methods};
use mcproof_record::Json;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

pub(super) const INITIALIZE: &str = methods::INITIALIZE;

/// The longest wait for the head of the stream on which a legacy server speaks unasked.
const LISTENING: Duration = Duration::from_millis(250);

/// How long the end of the handshake waits for the response to its notification, unless that to `initialize` took a tenth as long or more. What
/// does not come by then is not worth the time of everything that follows.
const TAKEN: Duration = Duration::from_secs(5);

/// What a legacy handshake offers.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    /// Else our newest legacy one.
    pub(super) version: Option<String>,
    /// No other revision is accepted than this one; else any that exists.
    pub(super) insists: bool,
    pub(super) budget: Duration,
    /// Declared where it exists.
    pub(super) tasks: Option<Value>,
    /// Whether the server will be told when the roots that are declared become others.
    pub(super) roots_change: bool,
}

/// The handshake of the legacy era (2025-11-25, basic/lifecycle).
pub(super) async fn initialize(
    wire: &Wire,
    dispatcher: &Arc<Dispatcher>,
    client: &ClientProfile,
    offer: &Offer,
    transport: Transport,
) -> Result<Handshake, ConnectFailure> {
    let pinned = offer.version.as_deref();
    let offered = pinned.unwrap_or(Revision::LATEST_LEGACY.as_str());
    let mut capabilities = client.capabilities.clone();
    capabilities.extend(offer.tasks.clone().filter(|_| Revision::at(offered).has_tasks()).map(|tasks| ("tasks".to_owned(), tasks)));
    // The modern era has no such notification: a server asks for the roots when it needs them (2026-07-28, client/roots).
    if offer.roots_change
        && let Some(Value::Object(roots)) = capabilities.get_mut("roots")
    {
        roots.entry("listChanged").or_insert(Value::Bool(true));
    }
    let params = json!({ "protocolVersion": offered, "capabilities": capabilities, "clientInfo": client.info() });
    let outgoing = Outgoing {
        method: INITIALIZE,
        params: params.as_object().cloned().map(Json::from),
        headers: Vec::new(),
        resume: Resume::FromLastEvent,
    };
    let outcome = wire.ask(dispatcher, outgoing, offer.budget.into(), Era::Legacy, TOO_LATE).await.map(Reply::read);
    if let Some(head) = refusal(&outcome) {
        return Err(ConnectFailure::Unauthorized { method: INITIALIZE, head });
    }
    let reply = match outcome {
        Ok(reply) => reply,
        Err(CallFailure::Unanswered(Unanswered::Response { head, .. })) if matches!(head.status, 401 | 403) => {
            return Err(ConnectFailure::Unauthorized { method: INITIALIZE, head });
        }
        Err(failure) => return Err(ConnectFailure::Unanswered { method: INITIALIZE, failure, faults: dispatcher.faults() }),
    };
    // Kept before anything is found wrong with the response: a session that was begun has to be ended.
    let session = reply.http.as_ref().and_then(|head| head.header(SESSION_HEADER)).map(|id| (SESSION_HEADER.to_owned(), id.to_owned()));
    wire.set_headers(session.iter().cloned().collect());
    let (answered, took) = (reply.frame, reply.elapsed);
    let result = reply.answer.map_err(|error| ConnectFailure::Refused { method: INITIALIZE, error })?;
    let bad = |reason: &str| ConnectFailure::BadResult { method: INITIALIZE, reason: reason.to_owned() };
    bounded(&result).map_err(|reason| bad(&reason))?;
    let version = result.get("protocolVersion").and_then(Value::as_str).ok_or_else(|| bad("has no `protocolVersion`"))?.to_owned();
    // All legacy revisions require both; SDK clients refuse a response without them.
    if !result.get("capabilities").is_some_and(Value::is_object) {
        return Err(bad("has no object `capabilities`"));
    }
    if !result.get("serverInfo").is_some_and(Value::is_object) {
        return Err(bad("has no object `serverInfo`"));
    }
    match pinned.filter(|_| offer.insists) {
        Some(wanted) if wanted != version => return Err(ConnectFailure::OtherVersion { wanted: wanted.to_owned(), found: version }),
        None if Era::of(&version).is_none() && !dispatcher.takes_revision(&version, answered) => {
            return Err(ConnectFailure::UnknownVersion { found: version });
        }
        _ => {}
    }
    let mut headers = Vec::new();
    if matches!(transport, Transport::Http | Transport::Sse) && Revision::at(&version).has_version_header() {
        headers.push((VERSION_HEADER.to_owned(), version.clone()));
    }
    headers.extend(session);
    wire.set_headers(headers.clone());
    wire.notify(methods::notifications::INITIALIZED, offer.budget.min(TAKEN.max(took * 10))).await;
    if let Connection::Http(http) = &wire.connection {
        // What the server says before it knows that we listen is lost, in most SDKs. One that sends no head before its
        // first event must not cost more than this.
        let _ = timeout(LISTENING.min(offer.budget), http.listen(headers)).await;
    }
    Ok(Handshake {
        era: Era::Legacy,
        transport,
        protocol_version: version,
        server_info: result.get("serverInfo").cloned(),
        capabilities: result.get("capabilities").cloned().unwrap_or_else(|| json!({})),
        instructions: text(result.get("instructions")),
        result,
        era_evidence: EraEvidence::Shown,
        lost_to_discovery: Duration::ZERO,
    })
}

/// Bytes of the texts in the result of a handshake, and its values: copies of it live as long as the session, of a check with many sessions.
const MOST_BYTES: usize = 4 << 20;
const MOST_VALUES: usize = 10_000;

/// Refuses the result of a handshake that no server needs.
///
/// # Errors
/// It is larger than that, in words for [`ConnectFailure::BadResult`].
pub(super) fn bounded(result: &Value) -> Result<(), String> {
    let (bytes, values) = measured(result);
    match (bytes > MOST_BYTES, values > MOST_VALUES) {
        (true, _) => Err(format!("is larger than {MOST_BYTES} bytes")),
        (false, true) => Err(format!("has more than {MOST_VALUES} JSON values")),
        (false, false) => Ok(()),
    }
}

pub(super) fn discovered(result: Value, transport: Transport) -> Handshake {
    Handshake {
        era: Era::Modern,
        transport,
        protocol_version: Revision::MODERN.as_str().to_owned(),
        server_info: result.pointer("/_meta/io.modelcontextprotocol~1serverInfo").cloned(),
        capabilities: result.get("capabilities").cloned().unwrap_or_else(|| json!({})),
        instructions: text(result.get("instructions")),
        result,
        era_evidence: EraEvidence::Shown,
        lost_to_discovery: Duration::ZERO,
    }
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

pub(super) fn names(value: Option<&Value>) -> Vec<String> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}
