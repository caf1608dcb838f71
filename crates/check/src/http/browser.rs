//! A web page that is meant to talk to the server: preflights, and answers that it may read.

use super::super::visit::Visit;
use super::attack::EVIL_ORIGIN;
use super::question::{Questions, Varied as _};
use mcproof_client::{HttpQuestion, Reads, TransportKind};

/// Where the protocol's own inspector is served.
const PAGE: &str = "http://localhost:6274";

const LEGACY_HEADERS: &str = "content-type, authorization, last-event-id, mcp-protocol-version, mcp-session-id";
const MODERN_HEADERS: &str = "content-type, authorization, mcp-method, mcp-name, mcp-protocol-version";

/// The subject of the preflight says whether somebody asked for a browser: if not, its judges have to see for themselves
/// whether this is a server for browsers.
pub(super) const AS_ASKED: &str = "as a browser";

pub(super) async fn take(visit: &mut Visit<'_>, questions: &Questions) {
    let names = if visit.is_modern() { MODERN_HEADERS } else { LEGACY_HEADERS };
    let preflight = HttpQuestion { method: "OPTIONS".into(), body: Vec::new(), headers: Vec::new(), ..questions.post("") };
    let preflight = preflight.with("access-control-request-method", "POST").with("access-control-request-headers", names).anonymous();
    let asked = visit.inquiry.as_browser;
    let answer = visit.http("preflight", asked.then_some(AS_ASKED), &preflight.clone().with("origin", PAGE)).await;
    let welcomes_pages = answer.is_some_and(|answer| answer.head.headers.iter().any(|(name, _)| name.starts_with("access-control-allow-")));
    if !asked && !welcomes_pages {
        return;
    }
    visit.http("preflight-evil", None, &preflight.with("origin", EVIL_ORIGIN)).await;
    let plain = questions.plain(visit).with("origin", PAGE);
    visit.http("page", None, &plain).await;
    match visit.kind() {
        TransportKind::Sse => {
            let stream = HttpQuestion { reads: Reads::Head, ..questions.stream().with("origin", PAGE) };
            visit.http("page", Some("GET"), &stream).await;
        }
        _ if !visit.is_modern() => {
            let initialize = questions.initialize(visit).with("origin", PAGE);
            let opened = visit.http("page", Some("initialize"), &initialize).await;
            if let Some(id) = opened.as_ref().and_then(|answer| answer.head.header("mcp-session-id")) {
                let question = questions.bare("DELETE").with("mcp-session-id", id);
                visit.http("tidy-up", None, &question).await;
            }
        }
        _ => {}
    }
    visit.http("page-error", None, &questions.post("{").with("origin", PAGE)).await;
    let anonymous = questions.plain(visit).with("origin", PAGE).anonymous();
    visit.http("page-anonymous", None, &anonymous).await;
}
