//! A supervisor: ends the server by SIGTERM.

use super::visit::Visit;
use super::{Found, Inquiry};
use mcproof_client::ProcessSignal;
use mcproof_record::Take;

pub(super) async fn talk(inquiry: &Inquiry, found: Found) -> Vec<Take> {
    match Visit::open_in(inquiry, "supervisor", found).await {
        Ok(mut visit) => {
            visit.signal("terminate", ProcessSignal::TERMINATE).await;
            vec![visit.end().await]
        }
        Err(failed) => vec![failed.0],
    }
}
