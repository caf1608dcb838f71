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
        Ok(mut visit) => {
            let kind = visit.kind();
            tour::take(&mut visit).await;
            features::set_log_level(&mut visit).await;
            let mut takes = vec![visit.end().await];
            takes.extend(early(inquiry, kind).await);
            takes.extend(unknown_version(inquiry, kind).await);
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

/// Asks for the tools before the handshake, and shakes hands then.
async fn early(inquiry: &Inquiry, kind: TransportKind) -> Option<Take> {
    let mut visit = Visit::bare(inquiry, "early", kind, mcproof_client::revision::LEGACY[0]).await.ok()?;
    visit.tell("early-request", json!({ "jsonrpc": "2.0", "id": "early", "method": "tools/list", "params": {} })).await;
    visit.initialize("early-request-after", mcproof_client::revision::LEGACY[0]).await;
    Some(visit.end().await)
}

/// Offers a revision that does not exist, and then the one that the server offers instead.
async fn unknown_version(inquiry: &Inquiry, kind: TransportKind) -> Option<Take> {
    let mut visit = Visit::bare(inquiry, "unknown version", kind, mcproof_client::revision::LEGACY[0]).await.ok()?;
    visit.initialize("unknown-version", UNKNOWN_VERSION).await;
    Some(visit.end().await)
}
