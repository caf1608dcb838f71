//! Clients that speak HTTP beside the protocol: other methods, other headers, browsers, attackers.

use super::{Found, Inquiry};
use mcproof_record::Take;

pub(super) async fn talk(_inquiry: &Inquiry, _found: Found) -> Vec<Take> {
    Vec::new()
}
