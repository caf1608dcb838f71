//! A client of the legacy era: the handshake, everything that it may ask, and the versions that it may offer.

use super::visit::Visit;
use super::{Inquiry, Talked, features, tour};
use mcproof_client::{ConnectFailure, ConnectOptions, EraChoice, TransportKind};
use mcproof_record::{Opened, Take};
use serde_json::json;

/// No revision of the protocol.
const UNKNOWN_VERSION: &str = "1999-01-01";

pub(super) async fn talk(inquiry: &Inquiry) -> Talked {
    let options = ConnectOptions { era: EraChoice::Legacy, ..inquiry.options.clone() };
    match Visit::open(inquiry, "legacy", options).await {
        Ok(visit) => {
            let kind = visit.kind();
            let takes = match kind {
                TransportKind::Stdio | TransportKind::InMemory => {
                    let (main, early, versions) = tokio::join!(main(visit), early(inquiry, kind), versions(inquiry, kind));
                    [main].into_iter().chain(early).chain(versions).collect()
                }
                // What else there is to try may need the server to be started again.
                TransportKind::Http | TransportKind::Sse => vec![main(visit).await],
            };
            Talked { takes, kind: Some(kind), failure: None }
        }
        Err(failed) => {
            let (mut take, failure) = *failed;
            if let ConnectFailure::Refused { .. } = failure {
                take.opened = Opened::OtherEra;
            }
            Talked { takes: vec![take], kind: None, failure: Some(failure) }
        }
    }
}

async fn main(mut visit: Visit<'_>) -> Take {
    tour::take(&mut visit).await;
    features::set_log_level(&mut visit).await;
    visit.end().await
}

/// Asks for the tools before the handshake, and shakes hands then.
pub(super) async fn early(inquiry: &Inquiry, kind: TransportKind) -> Option<Take> {
    let mut visit = Visit::bare(inquiry, "early", kind, mcproof_client::revision::LEGACY[0]).await.ok()?;
    if !visit.is_there().await {
        return None;
    }
    visit.tell("early-request", json!({ "jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": {} })).await;
    visit.initialize("early-request-after", mcproof_client::revision::LEGACY[0]).await;
    Some(visit.end().await)
}

/// Offers a revision that does not exist, and then the one that the server offers instead.
pub(super) async fn versions(inquiry: &Inquiry, kind: TransportKind) -> Vec<Take> {
    let newest = mcproof_client::revision::LEGACY[0];
    let Ok(mut visit) = Visit::bare(inquiry, "unknown version", kind, newest).await else { return Vec::new() };
    let offered = visit.initialize("unknown-version", UNKNOWN_VERSION).await;
    let mut takes = vec![visit.end().await];
    let offered = offered.and_then(Result::ok);
    let offered = offered.as_ref().and_then(|result| result.get("protocolVersion")?.as_str());
    // The main conversation began with the newest.
    if let Some(offered) = offered.filter(|offered| *offered != newest && mcproof_client::revision::LEGACY.contains(offered))
        && let Ok(mut visit) = Visit::bare(inquiry, "offered version", kind, newest).await
    {
        visit.initialize("offered-version", offered).await;
        takes.push(visit.end().await);
    }
    takes
}
