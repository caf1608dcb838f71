//! A client of the legacy era: the handshake, everything that it may ask, and the versions that it may offer.

use super::explorer::{Explorer, ResponseOutcome};
use super::modern::FUTURE_VERSION;
use super::optional_members::{WITH_FURTHER_INFO, WITH_OPEN_CAPABILITIES, may_be_about_client, with_further_info, with_open_capabilities};
use super::{CheckOptions, EraOutcome, EraSupport, features, http, listing};
use mcproof_analysis::probes::LEGAL_FORM;
use mcproof_client::{ConnectFailure, ConnectOptions};
use mcproof_protocol::{Era, EraChoice, Revision, Transport};
use mcproof_record::{Conversation, FrameId, Opened, ProbeOutcome, Probed};
use serde_json::json;

/// No revision of the protocol, and later than all: what a newer client offers. Servers that ask for "at least" take it for one.
const UNKNOWN_VERSION: &str = FUTURE_VERSION;

const NEWEST: &str = Revision::LATEST_LEGACY.as_str();

pub(super) async fn explore(check_options: &CheckOptions, eras: &EraSupport) -> EraOutcome {
    let options = ConnectOptions { era: EraChoice::Legacy, ..check_options.options.clone() };
    let offered = Revision::at(options.protocol_version.as_deref().unwrap_or(NEWEST));
    let declaring = with_open_capabilities(&options);
    let mut opened = Explorer::open(check_options, "legacy", with_further_info(declaring.clone(), offered)).await;
    let mut refused = None;
    // Without one of the two after the other, to know which is refused.
    for (form, less) in [(WITH_FURTHER_INFO, declaring), (WITH_OPEN_CAPABILITIES, options)] {
        opened = match opened {
            Err(failed) if is_about_client(&failed.1) => {
                refused = Some((form, failed.0));
                Explorer::open(check_options, "legacy", less).await
            }
            opened => opened,
        };
    }
    eras.report_legacy(opened.is_ok());
    match opened {
        Ok(explorer) => {
            let kind = Some(explorer.kind());
            let refused = refused.map(|(form, refused)| as_legal_form(form, refused));
            EraOutcome { conversations: std::iter::once(main(explorer).await).chain(refused).collect(), kind, failure: None }
        }
        Err(failed) => {
            let (mut take, failure) = *failed;
            if let ConnectFailure::Refused { .. } = failure {
                take.opened = Opened::OtherEra;
            }
            EraOutcome { conversations: vec![take], kind: None, failure: Some(failure) }
        }
    }
}

fn is_about_client(failure: &ConnectFailure) -> bool {
    matches!(failure, ConnectFailure::Refused { error, .. } if may_be_about_client(error.code))
}

/// A handshake that was refused for what the client said of itself: without that, the next one succeeded.
fn as_legal_form(form: &str, refused: Conversation) -> Conversation {
    let end = refused.transcript.frames.last().map_or(FrameId(0), |last| FrameId(last.id.0 + 1));
    let subject = Some(form.to_owned());
    let probe = Probed { probe: LEGAL_FORM.into(), subject, first: FrameId(0), end, outcome: ProbeOutcome::Done };
    Conversation { name: "refused handshake".into(), opened: Opened::Bare, probes: vec![probe], ..refused }
}

async fn main(mut explorer: Explorer<'_>) -> Conversation {
    http::examine_connections(&mut explorer, FrameId(0)).await;
    listing::explore(&mut explorer).await;
    features::set_log_level(&mut explorer).await;
    explorer.end().await
}

/// Asks for the tools before the handshake, and shakes hands then.
pub(super) async fn early(check_options: &CheckOptions, kind: Transport) -> Option<Conversation> {
    let mut explorer = Explorer::bare(check_options, "early", kind, NEWEST).await.ok()?;
    if !explorer.is_reachable().await {
        return None;
    }
    ask_early(&mut explorer).await;
    explorer.initialize("early-request-after", NEWEST).await;
    Some(explorer.end().await)
}

/// Nothing else has this id, neither by itself nor where a server garbles the ids of others.
const EARLY_ID: u32 = 714_025;

async fn ask_early(explorer: &mut Explorer<'_>) {
    explorer.send_without_wait("early-request", json!({ "jsonrpc": "2.0", "id": EARLY_ID, "method": "tools/list", "params": {} })).await;
}

/// Of the conversation in which a revision is offered that does not exist.
const OFFERS_UNKNOWN: &str = "unknown version";

/// Over stdio, one who knows no order, and offers a revision that does not exist, in the process that refused to be modern.
/// It goes on as any client that the server agreed with. `None` if they did not agree.
pub(super) async fn agree<'a>(check_options: &CheckOptions, refused: Explorer<'a>) -> Option<(Vec<Conversation>, Explorer<'a>)> {
    let mut explorer = refused.restarted_as(OFFERS_UNKNOWN);
    ask_early(&mut explorer).await;
    let mut explorer = explorer.propose("unknown-version", UNKNOWN_VERSION).await?;
    explorer.record_also_as("early-request-after");
    let offered = explorer.revision().to_owned();
    let (take, well) = explorer.hand_over().await;
    let conversations =
        std::iter::once(Conversation { opened: Opened::Bare, ..take }).chain(take_up(check_options, Transport::Stdio, &offered).await);
    Some((conversations.collect(), well?))
}

/// The same over stdio for whom nobody left a process. Where that does not go well, each has a process of its own.
pub(super) async fn offering_unknown(check_options: &CheckOptions) -> Vec<Conversation> {
    let kind = Transport::Stdio;
    if let Ok(mut explorer) = Explorer::bare(check_options, OFFERS_UNKNOWN, kind, NEWEST).await {
        ask_early(&mut explorer).await;
        let offered = offered(explorer.initialize("unknown-version", UNKNOWN_VERSION).await).filter(|_| !explorer.is_over());
        if offered.is_some() {
            explorer.record_also_as("early-request-after");
        }
        let take = explorer.end().await;
        if let Some(offered) = offered {
            return [take].into_iter().chain(take_up(check_options, kind, &offered).await).collect();
        }
    }
    let (early, versions) = tokio::join!(early(check_options, kind), versions(check_options, kind));
    early.into_iter().chain(versions).collect()
}

/// Offers a revision that does not exist, and then the one that the server offers instead.
pub(super) async fn versions(check_options: &CheckOptions, kind: Transport) -> Vec<Conversation> {
    let Ok(mut explorer) = Explorer::bare(check_options, OFFERS_UNKNOWN, kind, NEWEST).await else { return Vec::new() };
    let offered = offered(explorer.initialize("unknown-version", UNKNOWN_VERSION).await);
    let mut conversations = vec![explorer.end().await];
    if let Some(offered) = offered {
        conversations.extend(take_up(check_options, kind, &offered).await);
    }
    conversations
}

/// What the server offered instead.
fn offered(answer: ResponseOutcome) -> Option<String> {
    Some(answer?.ok()?.get("protocolVersion")?.as_str()?.to_owned())
}

/// Offers what the server offered in place of a revision that does not exist. The main conversation began with the newest.
async fn take_up(check_options: &CheckOptions, kind: Transport, offered: &str) -> Option<Conversation> {
    if offered == NEWEST || Era::of(offered) != Some(Era::Legacy) {
        return None;
    }
    let mut explorer = Explorer::bare(check_options, "offered version", kind, NEWEST).await.ok()?;
    explorer.initialize("offered-version", offered).await;
    Some(explorer.end().await)
}
