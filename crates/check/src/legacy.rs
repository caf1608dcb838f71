//! A client of the legacy era: the handshake, everything that it may ask, and the versions that it may offer.

use super::visit::{Answered, Visit};
use super::{Eras, Inquiry, Talked, features, tour};
use mcproof_client::{ConnectFailure, ConnectOptions, EraChoice, TransportKind};
use mcproof_record::{Opened, Take};
use serde_json::json;

/// No revision of the protocol.
const UNKNOWN_VERSION: &str = "1999-01-01";

const NEWEST: &str = mcproof_client::revision::LEGACY[0];

pub(super) async fn talk(inquiry: &Inquiry, eras: &Eras) -> Talked {
    let options = ConnectOptions { era: EraChoice::Legacy, ..inquiry.options.clone() };
    let opened = Visit::open(inquiry, "legacy", options).await;
    eras.tell_legacy(opened.is_ok());
    match opened {
        Ok(visit) => {
            let kind = Some(visit.kind());
            Talked { takes: vec![main(visit).await], kind, failure: None }
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
    let mut visit = Visit::bare(inquiry, "early", kind, NEWEST).await.ok()?;
    if !visit.is_there().await {
        return None;
    }
    ask_early(&mut visit).await;
    visit.initialize("early-request-after", NEWEST).await;
    Some(visit.end().await)
}

/// Nothing else has this id, neither by itself nor where a server garbles the ids of others.
const EARLY_ID: u32 = 714_025;

async fn ask_early(visit: &mut Visit<'_>) {
    visit.tell("early-request", json!({ "jsonrpc": "2.0", "id": EARLY_ID, "method": "tools/list", "params": {} })).await;
}

/// Of the conversation in which a revision is offered that does not exist.
const STRANGER: &str = "unknown version";

/// Over stdio, one who knows no order, and offers a revision that does not exist, in the process that refused to be modern.
/// It goes on as any client that the server agreed with. `None` if they did not agree.
pub(super) async fn agree<'a>(inquiry: &Inquiry, refused: Visit<'a>) -> Option<(Vec<Take>, Visit<'a>)> {
    let mut visit = refused.begins_anew(STRANGER);
    ask_early(&mut visit).await;
    let mut visit = visit.propose("unknown-version", UNKNOWN_VERSION).await?;
    visit.also("early-request-after");
    let offered = visit.revision().to_owned();
    let (take, well) = visit.hand_over().await;
    let strangers = std::iter::once(Take { opened: Opened::Bare, ..take }).chain(take_up(inquiry, TransportKind::Stdio, &offered).await);
    Some((strangers.collect(), well?))
}

/// The same over stdio for whom nobody left a process. Where that does not go well, each has a process of its own.
pub(super) async fn strangers(inquiry: &Inquiry) -> Vec<Take> {
    let kind = TransportKind::Stdio;
    if let Ok(mut visit) = Visit::bare(inquiry, STRANGER, kind, NEWEST).await {
        ask_early(&mut visit).await;
        let offered = offered(visit.initialize("unknown-version", UNKNOWN_VERSION).await).filter(|_| !visit.is_over());
        if offered.is_some() {
            visit.also("early-request-after");
        }
        let take = visit.end().await;
        if let Some(offered) = offered {
            return [take].into_iter().chain(take_up(inquiry, kind, &offered).await).collect();
        }
    }
    let (early, versions) = tokio::join!(early(inquiry, kind), versions(inquiry, kind));
    early.into_iter().chain(versions).collect()
}

/// Offers a revision that does not exist, and then the one that the server offers instead.
pub(super) async fn versions(inquiry: &Inquiry, kind: TransportKind) -> Vec<Take> {
    let Ok(mut visit) = Visit::bare(inquiry, STRANGER, kind, NEWEST).await else { return Vec::new() };
    let offered = offered(visit.initialize("unknown-version", UNKNOWN_VERSION).await);
    let mut takes = vec![visit.end().await];
    if let Some(offered) = offered {
        takes.extend(take_up(inquiry, kind, &offered).await);
    }
    takes
}

/// What the server offered instead.
fn offered(answer: Answered) -> Option<String> {
    Some(answer?.ok()?.get("protocolVersion")?.as_str()?.to_owned())
}

/// Offers what the server offered in place of a revision that does not exist. The main conversation began with the newest.
async fn take_up(inquiry: &Inquiry, kind: TransportKind, offered: &str) -> Option<Take> {
    if offered == NEWEST || !mcproof_client::revision::LEGACY.contains(&offered) {
        return None;
    }
    let mut visit = Visit::bare(inquiry, "offered version", kind, NEWEST).await.ok()?;
    visit.initialize("offered-version", offered).await;
    Some(visit.end().await)
}
