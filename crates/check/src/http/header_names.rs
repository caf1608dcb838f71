//! The names of headers in other letters, as HTTP libraries write them. Knows what is worth trying, not what is right.

use super::super::explorer::Explorer;
use super::super::modern_headers::titled;
use super::request_variants::Questions;
use mcproof_client::HeaderCase;
use mcproof_protocol::Transport;

/// How names are written: in words, in what is recorded, and on the wire.
type Spelling = (&'static str, fn(&str) -> String, HeaderCase);

const SPELLINGS: [Spelling; 2] = [("Like-This", titled, HeaderCase::Title), ("LIKE-THIS", str::to_ascii_uppercase, HeaderCase::Capitals)];

/// In the legacy era: that of today has headers of its own, which are spelled in other ways where they are tried.
pub(super) async fn take(explorer: &mut Explorer<'_>, http_requests: &Questions) {
    if explorer.is_modern() || explorer.kind() != Transport::Http {
        return;
    }
    for (subject, spell, spelling) in SPELLINGS {
        let http_request = http_requests.plain(explorer);
        let Ok(message) = serde_json::from_slice(&http_request.body) else { continue };
        let headers = http_request.headers.iter().map(|(name, value)| (spell(name), value.clone())).collect();
        explorer.post("header-case", subject, &message, headers, spelling).await;
    }
}
