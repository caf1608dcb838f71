//! Bodies that are no message, none of this revision, or very large.

use super::super::visit::Visit;
use super::question::{Questions, Varied as _};
use mcproof_client::{HttpQuestion, TransportKind};
use serde_json::{Value, json};

const LARGE: usize = 4 << 20;

pub(super) async fn take(visit: &mut Visit<'_>, questions: &Questions) {
    let malformed = questions.post(r#"{"jsonrpc":"2.0","id":1,"method":"#);
    let malformed = if visit.is_modern() { malformed.with("mcp-method", "tools/list") } else { malformed };
    visit.http("malformed-body", None, &malformed).await;
    let padding = "x".repeat(LARGE);
    let large = questions.request(visit, "tools/list", json!({}));
    if let Ok(mut message) = serde_json::from_slice::<Value>(&large.body) {
        message["params"]["_meta"]["io.mcproof/padding"] = json!(padding);
        let large = HttpQuestion { body: message.to_string().into_bytes(), ..large };
        visit.http("large-body", None, &large).await;
    }
    if visit.kind() != TransportKind::Http {
        return;
    }
    let one = questions.plain(visit);
    let batch = [b"[".as_slice(), &one.body, b"]"].concat();
    let batch = HttpQuestion { body: batch, ..one };
    visit.http("http-batch", None, &batch).await;
    let mut null = questions.plain(visit);
    if let Ok(mut message) = serde_json::from_slice::<Value>(&null.body) {
        message["id"] = json!(null);
        null.body = message.to_string().into_bytes();
    }
    visit.http("null-id", None, &null).await;
}
