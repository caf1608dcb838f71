//! GET and DELETE beside POST, and the stream that answers a POST.

use super::super::DetectedServer;
use super::super::explorer::Explorer;
use super::request_variants::Questions;
use mcproof_client::{RawHttpRequest, Reads};
use mcproof_protocol::Transport;
use mcproof_record::{FrameBody, Transcript};
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

/// How long a stream may last after its answer, and the head of one may be waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asks for something, and waits whether the stream ends that answers it.
pub(super) async fn watch_a_stream(explorer: &mut Explorer<'_>) {
    if explorer.kind() != Transport::Http {
        return;
    }
    explorer.send_request("stream-end", None, explorer.any_method(), json!({})).await;
    let mut waited = Duration::ZERO;
    while waited < PATIENCE && has_open_answer(&explorer.transcript()) {
        let pause = Duration::from_millis(20);
        sleep(pause).await;
        waited += pause;
    }
}

/// Whether the last POST has an answer that has not ended.
fn has_open_answer(transcript: &Transcript) -> bool {
    let mut open = None;
    for frame in &transcript.frames {
        match &frame.body {
            FrameBody::HttpRequest { exchange, method, .. } if method == "POST" => open = Some(*exchange),
            FrameBody::HttpEnd { exchange, .. } if open == Some(*exchange) => open = None,
            _ => {}
        }
    }
    open.is_some()
}

pub(super) async fn take(explorer: &mut Explorer<'_>, http_requests: &Questions, found: DetectedServer) {
    // In the modern era the law is about servers of that era alone.
    let is_concerned = if explorer.is_modern() { !found.is_legacy } else { explorer.kind() == Transport::Http };
    if !is_concerned {
        return;
    }
    let stream = RawHttpRequest { reads: Reads::Head, ..http_requests.stream() };
    explorer.http_within("get", &stream, PATIENCE).await;
    if explorer.is_modern() {
        explorer.http("delete", None, &http_requests.bare("DELETE")).await;
    }
}
