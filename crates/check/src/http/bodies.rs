//! Bodies that are no message, none of this revision, or very large.

use super::super::explorer::Explorer;
use super::request_variants::{Questions, RequestVariants as _};
use mcproof_client::RawHttpRequest;
use mcproof_protocol::{Transport, methods};
use serde_json::{Value, json};

const LARGE: usize = 4 << 20;

pub(super) async fn take(explorer: &mut Explorer<'_>, http_requests: &Questions) {
    let malformed = http_requests.post(r#"{"jsonrpc":"2.0","id":1,"method":"#);
    let malformed = if explorer.is_modern() { malformed.with("mcp-method", methods::TOOLS_LIST) } else { malformed };
    explorer.http("malformed-body", None, &malformed).await;
    let padding = "x".repeat(LARGE);
    let large = http_requests.request(explorer, methods::TOOLS_LIST, json!({}));
    if let Ok(mut message) = serde_json::from_slice::<Value>(&large.body) {
        message["params"]["_meta"]["io.mcproof/padding"] = json!(padding);
        let large = RawHttpRequest { body: message.to_string().into_bytes(), ..large };
        explorer.http("large-body", None, &large).await;
    }
    if explorer.kind() != Transport::Http {
        return;
    }
    let one = http_requests.plain(explorer);
    let batch = [b"[".as_slice(), &one.body, b"]"].concat();
    let batch = RawHttpRequest { body: batch, ..one };
    explorer.http("http-batch", None, &batch).await;
    let mut null = http_requests.plain(explorer);
    if let Ok(mut message) = serde_json::from_slice::<Value>(&null.body) {
        message["id"] = json!(null);
        null.body = message.to_string().into_bytes();
    }
    explorer.http("null-id", None, &null).await;
}
