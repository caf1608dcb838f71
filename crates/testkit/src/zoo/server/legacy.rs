//! The legacy era: the handshake, and the methods that only it has.

use super::message::{Fault, Heard, INVALID_REQUEST, Outlet};
use super::session::{LEGACY, rank};
use super::ticket::Ticket;
use super::{features, legacy_tasks};
use crate::zoo::Slip;
use crate::zoo::changes::remove;
use serde_json::{Value, json};
use std::sync::Arc;

/// The result of a request; `None` if it was cancelled.
pub(super) fn answer(heard: &Arc<Heard>, ticket: &Ticket, outlet: &dyn Outlet) -> Result<Option<Value>, Fault> {
    let uri = || heard.params()["uri"].as_str().ok_or_else(|| Fault::invalid_params("`uri` must be a string"));
    Ok(Some(match heard.method() {
        "initialize" => initialize(heard)?,
        "ping" => json!({}),
        _ if heard.session.version().is_none() => return Err(Fault::new(INVALID_REQUEST, "the first request must be `initialize`")),
        "logging/setLevel" => {
            let level = heard.params()["level"].as_str().and_then(rank).ok_or_else(|| Fault::invalid_params("Unknown log level"))?;
            heard.session.set_level(level);
            json!({})
        }
        "resources/subscribe" => {
            let uri = uri()?;
            if !features::is_resource(heard, uri) {
                return Err(features::no_resource(heard, uri));
            }
            heard.session.subscribe(uri, heard);
            json!({})
        }
        "resources/unsubscribe" => {
            heard.session.unsubscribe(uri()?);
            json!({})
        }
        _ => return features::answer(heard, ticket, outlet),
    }))
}

fn initialize(heard: &Heard) -> Result<Value, Fault> {
    let params = heard.params();
    let Some(asked) = params["protocolVersion"].as_str() else {
        return Err(Fault::invalid_params("`protocolVersion` must be a string"));
    };
    if heard.session.version().is_some() {
        return Err(Fault::new(INVALID_REQUEST, "the session is initialized already"));
    }
    let known = match heard.server.slips(Slip::BatchesRefused) {
        true => &LEGACY[..2],
        false => &LEGACY[..],
    };
    let newest = known[known.len() - 1];
    let version = known.iter().copied().find(|known| *known == asked).unwrap_or(newest);
    heard.session.agree_on(version);
    heard.session.meet(&params["capabilities"]);
    let catalogue = &heard.server.catalogue;
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
