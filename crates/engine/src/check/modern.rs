//! A client of the modern era: stateless requests with their metadata, and what is wrong with requests that lack it.

use super::visit::Visit;
use super::{Inquiry, Talked, tour};
use mcproof_client::{ConnectFailure, ConnectOptions, EraChoice};
use mcproof_record::Opened;

pub(super) async fn talk(inquiry: &Inquiry) -> Talked {
    let options = ConnectOptions { era: EraChoice::Modern, ..inquiry.options.clone() };
    match Visit::open(inquiry, "modern", options).await {
        Ok(mut visit) => {
            let kind = visit.kind();
            tour::take(&mut visit).await;
            Talked { takes: vec![visit.end().await], kind: Some(kind), failure: None }
        }
        Err(failed) => {
            let (mut take, failure) = *failed;
            // A legacy server answers with any error, or not at all.
            take.opened = match failure {
                ConnectFailure::BadResult { .. } => take.opened,
                _ => Opened::OtherEra,
            };
            Talked { takes: vec![take], kind: None, failure: Some(failure) }
        }
    }
}
