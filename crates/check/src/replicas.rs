//! A client behind a balancer without affinity: asks another instance of the server what it would have asked the first.

use super::explorer::Explorer;
use super::{CheckOptions, DetectedServer};
use crate::sdk::DetectedSdks;
use mcproof_client::{ConnectOptions, Target};
use mcproof_protocol::{EraChoice, Transport, methods};
use mcproof_record::Conversation;
use serde_json::{Value, json};
use url::Url;

/// The conversation with an instance that was never introduced.
pub(super) const REPLICA: &str = "replica";

pub(super) async fn explore(check_options: &CheckOptions, found: DetectedServer) -> Vec<Conversation> {
    let mut conversations = Vec::new();
    if found.kind != Transport::Http {
        return conversations;
    }
    for url in &check_options.replicas {
        for (era, speaks) in [(EraChoice::Modern, found.is_modern), (EraChoice::Legacy, found.is_legacy)] {
            if speaks {
                conversations.extend(hop(check_options, era, url).await);
            }
        }
    }
    conversations
}

/// Begins at the first instance, and goes on at the other one, as if it were the same.
async fn hop(check_options: &CheckOptions, era: EraChoice, url: &Url) -> Vec<Conversation> {
    let mut first = match Explorer::open(check_options, "replica's twin", ConnectOptions { era, ..check_options.options.clone() }).await {
        Ok(explorer) => explorer,
        Err(failed) => return vec![failed.0],
    };
    let cursor = match first.send_request("list-for-calls", Some(methods::TOOLS_LIST), methods::TOOLS_LIST, json!({})).await {
        Some(Ok(result)) => result.get("nextCursor").and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    let headers = first.session().headers();
    let version = first.session().handshake().protocol_version.clone();
    let has_session = headers.iter().any(|(name, _)| name == "mcp-session-id");
    let mut conversations = Vec::new();
    if let (false, Target::Http { endpoint, .. }) = (has_session, &check_options.target) {
        let mut endpoint = endpoint.clone();
        endpoint.url = url.clone();
        let target = Target::Http { endpoint, kind: Some(Transport::Http), launch: None, locate: None };
        let elsewhere = CheckOptions { target, replicas: Vec::new(), detected_sdks: DetectedSdks::default(), ..check_options.clone() };
        if let Ok(mut second) = Explorer::bare(&elsewhere, REPLICA, Transport::Http, &version).await {
            second.session().set_headers(headers);
            second.send_request("replica-list", Some(url.as_str()), methods::TOOLS_LIST, json!({})).await;
            if let Some(cursor) = cursor {
                second.send_request("replica-next-page", Some(url.as_str()), methods::TOOLS_LIST, json!({ "cursor": cursor })).await;
            }
            conversations.push(second.end().await);
        }
    }
    conversations.insert(0, first.end().await);
    conversations
}
