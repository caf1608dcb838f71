//! Headers that are legal, wrong, or missing, and another spelling of the path.

use super::super::visit::Visit;
use super::question::{Questions, Varied as _};
use mcproof_client::TransportKind;

/// No revision of the protocol.
const BAD_VERSIONS: [&str; 2] = ["1900-01-01", "not-a-version"];

pub(super) async fn take(visit: &mut Visit<'_>, questions: &Questions) {
    let text = questions.plain(visit).with("content-type", "text/plain");
    visit.http("text-body", None, &text).await;
    let (first, second) = (questions.notification(visit), questions.notification(visit));
    visit.http_in_row("kept-connection", [&first, &second]).await;
    if visit.kind() != TransportKind::Http {
        return;
    }
    let wildcard = questions.plain(visit).with("accept", "*/*");
    visit.http("accept-wildcard", None, &wildcard).await;
    if let Some(path) = other_spelling(visit) {
        let mut other = questions.plain(visit);
        other.path = Some(path.clone());
        visit.http("other-slash", Some(&path), &other).await;
    }
    if !visit.is_modern() && visit.revision() >= "2025-06-18" {
        for version in BAD_VERSIONS {
            let question = questions.plain(visit).with("mcp-protocol-version", version);
            visit.http("bad-version", Some(version), &question).await;
        }
        let question = questions.plain(visit).without("mcp-protocol-version");
        visit.http("no-version", None, &question).await;
    }
}

/// The path of the endpoint with a slash at its end, or without it.
fn other_spelling(visit: &Visit<'_>) -> Option<String> {
    let url = visit.session().url()?;
    let path = match url.path() {
        "/" => return None,
        path => path.strip_suffix('/').map_or_else(|| format!("{path}/"), str::to_owned),
    };
    Some(url.query().map_or_else(|| path.clone(), |query| format!("{path}?{query}")))
}
