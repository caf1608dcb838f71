//! Clients that speak HTTP beside the protocol: other methods, other headers, browsers, attackers. Knows what is worth
//! trying on a server over HTTP, not what is right.

mod abort;
mod attack;
mod authorization;
mod bodies;
mod browser;
mod headers;
mod methods;
pub(crate) mod question;
mod sessions;
pub(crate) mod streams;

use super::visit::Visit;
use super::{Found, Inquiry};
use mcproof_client::revision::LEGACY;
use mcproof_client::{ConnectOptions, EraChoice, Target, TransportKind};
use mcproof_record::{Opened, Take};
use question::Questions;

/// In each era that the server speaks. What it may not survive comes last.
pub(super) async fn talk(inquiry: &Inquiry, found: Found) -> Vec<Take> {
    let mut takes = if found.kind == TransportKind::Sse { streams::talk(inquiry).await } else { Vec::new() };
    let eras = [(found.is_legacy, EraChoice::Legacy), (found.is_modern, EraChoice::Modern)];
    for (_, era) in eras.into_iter().filter(|(is_spoken, _)| *is_spoken) {
        takes.push(talk_in(inquiry, found, era).await);
    }
    // A server that died is not to die once more.
    if found.kind == TransportKind::Http && found.is_legacy && takes.iter().all(|take| take.opened == Opened::Yes) {
        takes.extend(streams::talk(inquiry).await);
    }
    takes
}

async fn talk_in(inquiry: &Inquiry, found: Found, era: EraChoice) -> Take {
    let mut visit = match Visit::open(inquiry, "http", ConnectOptions { era, ..inquiry.options.clone() }).await {
        Ok(visit) => visit,
        Err(failed) => return failed.0,
    };
    methods::watch_a_stream(&mut visit).await;
    let questions = Questions::prepare(&mut visit).await;
    let refused = attack::take(&mut visit, &questions).await;
    methods::take(&mut visit, &questions, found).await;
    attack::listen(&mut visit, &questions, &refused).await;
    headers::take(&mut visit, &questions).await;
    bodies::take(&mut visit, &questions).await;
    browser::take(&mut visit, &questions).await;
    authorization::take(&mut visit, &questions).await;
    sessions::take(&mut visit, &questions).await;
    abort::take(&mut visit).await;
    visit.end().await
}

/// A server that let nobody in: where it sends those who want to get in, and what it lets in instead.
pub(super) async fn talk_outside(inquiry: &Inquiry) -> Option<Take> {
    let Target::Http { .. } = inquiry.target else { return None };
    let version = inquiry.options.protocol_version.as_deref().unwrap_or(LEGACY[0]);
    let mut visit = Visit::bare(inquiry, "outside", TransportKind::Http, version).await.ok()?;
    let questions = Questions::outside(&visit);
    attack::knock(&mut visit, &questions).await;
    browser::take(&mut visit, &questions).await;
    authorization::take(&mut visit, &questions).await;
    Some(visit.end().await)
}
