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
use mcproof_analysis::probes::{BESIDE, BESIDE_STREAM, KEPT_CONNECTION};
use mcproof_client::{Beside, ConnectOptions, Reuse, Target};
use mcproof_protocol::{EraChoice, Revision, Transport};
use mcproof_record::{Conversation, ExchangeId, FrameBody, FrameId, Opened, Transcript};
use request_variants::Questions;
use std::pin::Pin;

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

/// Attempts of a server that has to notice first that a stream was closed.
const NOTICES_CLOSED_STREAM: usize = 3;

/// Whether connections are to blame where a message that was sent from this frame on got no response: once in a check. What comes of it holds
/// for the rest of the check, which would wait in vain again and again.
pub(super) fn examine_connections<'e>(explorer: &'e mut Explorer<'_>, since: FrameId) -> Pin<Box<dyn Future<Output = ()> + Send + 'e>> {
    // Without its type: what a check awaits is nested almost as deeply as the compiler follows.
    Box::pin(async move {
        let is_open = explorer.kind() == Transport::Http && !explorer.is_over() && !explorer.speaks_http2();
        let is_examined = explorer.check_options.budget.has_examined_connections();
        if is_examined || !is_open || !has_unanswered_post(&explorer.transcript(), since) {
            return;
        }
        explorer.check_options.budget.mark_connections_examined();
        // What still gets its response is not to leave its connection open.
        explorer.session().reuse_connections(Reuse::Never);
        let mut had_stream = false;
        let reuse = connections_in_the_way(explorer, &mut had_stream).await;
        explorer.session().reuse_connections(reuse.unwrap_or_default());
        match reuse {
            Some(reuse) => explorer.check_options.budget.limit_connections(reuse),
            // The stream was not in the way, and what the server says unasked is to be heard.
            None if had_stream && !explorer.is_over() => explorer.session().listen_again(),
            None => {}
        }
    })
}

/// How connections may be used at most, if that is less than clients use them. `had_stream` is set if a stream was closed to find it out.
async fn connections_in_the_way(explorer: &mut Explorer<'_>, had_stream: &mut bool) -> Option<Reuse> {
    let http_requests = Questions::of_session(explorer);
    let (notification, stream) = (http_requests.notification(explorer), http_requests.stream());
    let mut beside = explorer.http_beside(BESIDE, None, &notification).await?;
    *had_stream = beside == Beside::NoneServed && explorer.session().stop_listening();
    for _ in 0..NOTICES_CLOSED_STREAM {
        if *had_stream && beside == Beside::NoneServed {
            beside = explorer.http_beside(BESIDE, None, &notification).await?;
        }
    }
    let (probe, stream) = match beside {
        Beside::ServedAfterClose => (BESIDE, None),
        Beside::Served if *had_stream => (BESIDE_STREAM, Some(&stream)),
        Beside::Served => {
            explorer.session().reuse_connections(Reuse::Kept);
            // What happens once may be chance.
            for _ in 0..2 {
                let tried = explorer.probe_count();
                explorer.http_in_row(KEPT_CONNECTION, [&notification, &notification]).await;
                if explorer.probe_count() == tried || !explorer.was_last_silent(KEPT_CONNECTION) {
                    return None;
                }
            }
            return Some(Reuse::Never);
        }
        Beside::NotServed | Beside::NoneServed | Beside::Broken => return None,
    };
    // What happens once may be chance.
    let more = if stream.is_some() { 2 } else { 1 };
    for _ in 0..more {
        if explorer.http_beside(probe, stream, &notification).await? != Beside::ServedAfterClose {
            return None;
        }
    }
    Some(if *had_stream { Reuse::Alone } else { Reuse::Never })
}

fn has_unanswered_post(transcript: &Transcript, since: FrameId) -> bool {
    let frames = || transcript.frames.iter().filter(|frame| frame.id >= since).map(|frame| &frame.body);
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
