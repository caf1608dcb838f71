//! The legacy era: the handshake, and the methods that only it has.

use super::message::{INVALID_REQUEST, Outlet, Received, RpcError};
use super::session::{LEGACY, rank};
use super::ticket::Ticket;
use super::{features, legacy_tasks};
use crate::zoo::InternalDeviation;
use crate::zoo::changes::remove;
use serde_json::{Value, json};
use std::sync::Arc;

/// The result of a request; `None` if it was cancelled.
pub(super) fn answer(received: &Arc<Received>, ticket: &Ticket, outlet: &dyn Outlet) -> Result<Option<Value>, RpcError> {
    let uri = || received.params()["uri"].as_str().ok_or_else(|| RpcError::invalid_params("`uri` must be a string"));
    Ok(Some(match received.method() {
        "initialize" => initialize(received)?,
        "ping" => json!({}),
        _ if received.session.version().is_none() => return Err(RpcError::new(INVALID_REQUEST, "the first request must be `initialize`")),
        "logging/setLevel" => {
            let level = received.params()["level"].as_str().and_then(rank).ok_or_else(|| RpcError::invalid_params("Unknown log level"))?;
            received.session.set_level(level);
            json!({})
        }
        "resources/subscribe" => {
            let uri = uri()?;
            if !features::is_resource(received, uri) {
                return Err(features::no_resource(received, uri));
            }
            received.session.subscribe(uri, received);
            json!({})
        }
        "resources/unsubscribe" => {
            received.session.unsubscribe(uri()?);
            json!({})
        }
        _ => return features::answer(received, ticket, outlet),
    }))
}

fn initialize(received: &Received) -> Result<Value, RpcError> {
    let params = received.params();
    let Some(asked) = params["protocolVersion"].as_str() else {
        return Err(RpcError::invalid_params("`protocolVersion` must be a string"));
    };
    if received.session.version().is_some() {
        return Err(RpcError::new(INVALID_REQUEST, "the session is initialized already"));
    }
    let known = match received.server.deviates(InternalDeviation::BatchesRefused) {
        true => &LEGACY[..2],
        false => &LEGACY[..],
    };
    let newest = known[known.len() - 1];
    let version = known.iter().copied().find(|known| *known == asked).unwrap_or(newest);
    received.session.agree_on(version);
    received.session.meet(&params["capabilities"]);
    let catalogue = &received.server.catalogue;
    let mut capabilities = catalogue.capabilities.clone();
    // This era has no extensions.
    remove(&mut capabilities, "extensions");
    if version == newest && catalogue.tool(legacy_tasks::TOOLS[0].0).is_some() {
        capabilities["tasks"] = legacy_tasks::capability();
    }
    Ok(json!({
        "protocolVersion": version,
        "capabilities": capabilities,
        "serverInfo": catalogue.server,
        "instructions": catalogue.instructions,
    }))
}
