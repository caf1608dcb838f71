//! Several clients of a server without sessions, whose requests have the same id, as those of any two clients may: only the HTTP request
//! tells them apart.

use super::super::explorer::Explorer;
use super::request_variants::{Questions, RequestVariants as _};
use mcproof_client::RawHttpRequest;
use mcproof_protocol::{Transport, methods};
use serde_json::json;
use std::time::Duration;

/// Requests that meet in the server only by chance meet in one of so many rounds.
const ROUNDS: usize = 4;
/// One that lost its response does not keep the others waiting.
const PATIENCE: Duration = Duration::from_secs(2);
/// What is asked, where it is declared.
const LISTS: [(&str, &str); 3] =
    [("tools", methods::TOOLS_LIST), ("prompts", methods::PROMPTS_LIST), ("resources", methods::RESOURCES_LIST)];

pub(super) async fn take(explorer: &mut Explorer<'_>, questions: &Questions) {
    if questions.session().is_some() || explorer.kind() != Transport::Http {
        return;
    }
    let declared = LISTS.into_iter().filter(|(capability, _)| explorer.declares(capability)).map(|(_, method)| method);
    let other = if explorer.is_modern() { methods::SERVER_DISCOVER } else { methods::PING };
    let asked: Vec<&str> = declared.chain([other]).take(2).collect();
    if asked.len() < 2 {
        return;
    }
    for round in 1..=ROUNDS {
        let requests: Vec<RawHttpRequest> = asked.iter().chain(&asked).map(|method| request(explorer, questions, method, round)).collect();
        explorer
            .together("same-id", async |session, deadline| {
                let patience = PATIENCE.min(deadline);
                futures_util::future::join_all(requests.iter().map(|request| session.ask_over_http(request, patience))).await
            })
            .await;
    }
}

fn request(explorer: &Explorer<'_>, questions: &Questions, method: &str, round: usize) -> RawHttpRequest {
    let id = json!(format!("{}same {round}", mcproof_analysis::probes::POSTED));
    let http_request = questions.post(explorer.build_request(id, method, json!({})).to_string());
    if explorer.is_modern() { http_request.with("mcp-method", method) } else { http_request }
}
