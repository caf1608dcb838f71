//! Who did what, the newest first.

use super::{Chrome, Fault, html};
use crate::web::State;
use crate::web::guard::Identity;
use crate::web::shown::{self, Html};
use askama::Template;
use axum::extract::{Extension, Query, State as Shared};
use axum::response::Response;
use serde::Deserialize;

const PAGE: i64 = 100;

#[derive(Debug, Default, Deserialize)]
pub(in crate::web) struct Look {
    /// The last entry of the page before.
    before: Option<String>,
}

#[derive(Template)]
#[template(path = "audit.html")]
struct Page {
    chrome: Chrome,
    entries: Vec<Entry>,
    before: Option<String>,
}

struct Entry {
    at: Html,
    who: String,
    via: String,
    action: String,
    subject: String,
    outcome: String,
}

pub(in crate::web) async fn page(
    Shared(state): Shared<State>,
    Extension(identity): Extension<Identity>,
    Query(look): Query<Look>,
) -> Result<Response, Fault> {
    let rows = state.audit(look.before.as_deref(), PAGE).await?;
    let is_full = i64::try_from(rows.len()).is_ok_and(|count| count >= PAGE);
    let page = Page {
        chrome: Chrome::new(&state, &identity, "audit", "Audit log"),
        before: rows.last().filter(|_| is_full).map(|last| shown::segment(&last.id)),
        entries: rows
            .iter()
            .map(|row| Entry {
                at: shown::at(row.at),
                who: shown::plain(&row.who),
                via: shown::plain(&row.via),
                action: shown::plain(&row.action),
                subject: shown::plain(&row.subject),
                outcome: row.outcome.as_deref().map_or_else(|| "unknown".to_owned(), shown::plain),
            })
            .collect(),
    };
    Ok(html(&page))
}
