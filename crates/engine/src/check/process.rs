//! A supervisor: ends the server, if it is ours, by SIGTERM.

use super::visit::Visit;
use super::{Found, Inquiry};
use mcproof_client::ProcessSignal;
use mcproof_record::Take;

pub(super) async fn talk(inquiry: &Inquiry, found: Found) -> Vec<Take> {
    if inquiry.target.command().is_none() {
        return Vec::new();
    }
    match Visit::open_in(inquiry, "supervisor", found).await {
        Ok(mut visit) => {
            visit.signal("terminate", ProcessSignal::TERMINATE).await;
            vec![visit.end().await]
        }
        Err(failed) => vec![failed.0],
    }
}
