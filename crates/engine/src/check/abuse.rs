//! A client that sends what it must not, and looks whether the server still answers afterwards. A server that does not
//! survive is started again for what comes next.

use super::visit::Visit;
use super::{Found, Inquiry};
use mcproof_client::TransportKind;
use mcproof_record::Take;

/// What is sent as it stands: the probe, and the bytes.
fn abuses() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("malformed-json", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\n".to_vec()),
        ("batch", b"[{\"jsonrpc\":\"2.0\",\"id\":\"batch\",\"method\":\"ping\"}]\n".to_vec()),
    ]
}

pub(super) async fn talk(inquiry: &Inquiry, found: Found) -> Vec<Take> {
    let mut takes = Vec::new();
    let mut visit: Option<Visit<'_>> = None;
    for (probe, bytes) in abuses() {
        if found.kind != TransportKind::Stdio {
            break;
        }
        let mut current = match visit.take() {
            Some(open) => open,
            None => match Visit::open_in(inquiry, "abuse", found).await {
                Ok(open) => open,
                Err(failed) => {
                    takes.push(failed.0);
                    return takes;
                }
            },
        };
        current.bytes(probe, bytes).await;
        if current.is_alive_after(probe).await {
            visit = Some(current);
        } else {
            takes.push(current.end().await);
        }
    }
    if let Some(visit) = visit {
        takes.push(visit.end().await);
    }
    takes
}
