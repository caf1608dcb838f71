//! Clients that speak HTTP beside the protocol: other methods, other headers, browsers, attackers. Knows what is worth
//! trying on a server over HTTP, not what is right.

mod abort;
mod attack;
mod authorization;
mod bodies;
mod body_forms;
mod browser;
mod header_names;
mod headers;
mod methods;
pub(crate) mod request_variants;
mod resumption;
mod same_ids;
mod sessions;
pub(crate) mod streams;

use super::explorer::Explorer;
use super::{CheckOptions, DetectedServer};
use mcproof_client::{ConnectOptions, Target};
use mcproof_protocol::{EraChoice, Revision, Transport};
use mcproof_record::{Conversation, ExchangeId, FrameBody, Opened, Transcript};
use request_variants::Questions;

/// In each era that the server speaks. What it may not survive comes last.
pub(super) async fn explore(check_options: &CheckOptions, found: DetectedServer) -> Vec<Conversation> {
    let mut conversations = if found.kind == Transport::Sse { streams::explore(check_options).await } else { Vec::new() };
    let eras = [(found.is_legacy, EraChoice::Legacy), (found.is_modern, EraChoice::Modern)];
    for (_, era) in eras.into_iter().filter(|(is_spoken, _)| *is_spoken) {
        let talked = talk_in(check_options, found, era).await;
        if found.kind == Transport::Http && talked.opened == Opened::Yes {
            conversations.extend(same_ids::explore(check_options, era, &talked).await);
        }
        conversations.push(talked);
    }
    // A server that died is not to die once more.
    if found.kind == Transport::Http && found.is_legacy && conversations.iter().all(|take| take.opened == Opened::Yes) {
        conversations.extend(streams::explore(check_options).await);
    }
    conversations
}

async fn talk_in(check_options: &CheckOptions, found: DetectedServer, era: EraChoice) -> Conversation {
    let mut explorer = match Explorer::open(check_options, "http", ConnectOptions { era, ..check_options.options.clone() }).await {
        Ok(explorer) => explorer,
        Err(failed) => return failed.0,
    };
    methods::watch_a_stream(&mut explorer).await;
    let questions = Questions::prepare(&mut explorer).await;
    let refused = attack::take(&mut explorer, &questions).await;
    methods::take(&mut explorer, &questions, found).await;
    attack::listen(&mut explorer, &questions, &refused).await;
    headers::take(&mut explorer, &questions).await;
    header_names::take(&mut explorer, &questions).await;
    bodies::take(&mut explorer, &questions).await;
    browser::take(&mut explorer, &questions).await;
    authorization::take(&mut explorer, &questions).await;
    resumption::take(&mut explorer, &questions).await;
    sessions::take(&mut explorer, &questions, &refused).await;
    abort::take(&mut explorer).await;
    explorer.end().await
}

/// Whether a connection that was kept takes another request, where a message got no response: that may have been the second one on its
/// connection.
pub(super) async fn try_kept_connection(explorer: &mut Explorer<'_>) {
    if explorer.kind() != Transport::Http || !has_unanswered_post(&explorer.transcript()) {
        return;
    }
    let http_requests = Questions::of_session(explorer);
    let (first, second) = (http_requests.notification(explorer), http_requests.notification(explorer));
    explorer.http_in_row("kept-connection", [&first, &second]).await;
}

fn has_unanswered_post(transcript: &Transcript) -> bool {
    let frames = || transcript.frames.iter().map(|frame| &frame.body);
    let has_ended = |exchange: ExchangeId| {
        frames().any(|body| match body {
            FrameBody::HttpResponse { exchange: other, .. } | FrameBody::HttpEnd { exchange: other, .. } => *other == exchange,
            _ => false,
        })
    };
    frames().any(|body| matches!(body, FrameBody::HttpRequest { exchange, method, .. } if method == "POST" && !has_ended(*exchange)))
}

/// A server that let nobody in: where it sends those who want to get in, and what it lets in instead.
pub(super) async fn explore_without_handshake(check_options: &CheckOptions) -> Option<Conversation> {
    let Target::Http { .. } = check_options.target else { return None };
    let version = check_options.options.protocol_version.as_deref().unwrap_or(Revision::LATEST_LEGACY.as_str());
    let mut explorer = Explorer::bare(check_options, "outside", Transport::Http, version).await.ok()?;
    let questions = Questions::outside(&explorer);
    attack::knock(&mut explorer, &questions).await;
    browser::take(&mut explorer, &questions).await;
    authorization::take(&mut explorer, &questions).await;
    Some(explorer.end().await)
}
