//! One change of a contract: what it means for those who call the server, in the words of `mcproof diff`.

use super::{Chrome, Fault, html};
use crate::web::State;
use crate::web::guard::Identity;
use crate::web::shown::{self, Html, Mark};
use askama::Template;
use axum::extract::{Extension, Path, State as Shared};
use axum::response::Response;
use mcproof_record::{ChangeLevel, ContractChange, ContractDiff};
use mcproof_report::contract;
use serde_json::Value;

const CHANGES: usize = 1_000;
/// Characters of an old or a new text.
const LONGEST: usize = 6_000;

#[derive(Template)]
#[template(path = "change.html")]
struct Page {
    chrome: Chrome,
    target: String,
    link: String,
    at: Html,
    mark: Mark,
    announced: bool,
    old: String,
    new: String,
    summary: String,
    readable: bool,
    changes: Vec<Difference>,
    more: usize,
    not_compared: Vec<String>,
}

struct Difference {
    mark: Mark,
    subject: String,
    pointer: String,
    reason: String,
    code: String,
    only_for: Option<String>,
    suspicion: Option<String>,
    old: Option<String>,
    new: Option<String>,
}

pub(in crate::web) async fn page(
    Shared(state): Shared<State>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<Response, Fault> {
    let (row, diff) = state.store.change(&id).await?.ok_or(Fault::NotFound("change"))?;
    let changes = diff.iter().flat_map(|diff| diff.changes.iter().map(move |change| difference(diff, change))).take(CHANGES).collect();
    let page = Page {
        chrome: Chrome::new(&state, &identity, "overview", format!("Contract of {}", shown::plain(&row.target))),
        link: shown::segment(&row.target),
        target: shown::plain(&row.target),
        at: shown::at(row.at),
        mark: shown::level(&row.level),
        announced: row.announced,
        old: shown::short_hash(&row.old_hash),
        new: shown::short_hash(&row.new_hash),
        summary: diff.as_ref().map(contract::summary).unwrap_or_default(),
        readable: diff.is_some(),
        more: diff.as_ref().map_or(0, |diff| diff.changes.len().saturating_sub(CHANGES)),
        not_compared: diff.iter().flat_map(|diff| &diff.not_compared).map(|reason| shown::plain(reason)).collect(),
        changes,
    };
    Ok(html(&page))
}

fn difference(diff: &ContractDiff, change: &ContractChange) -> Difference {
    let (class, shape) = match change.level {
        ChangeLevel::Breaking => ("bad", "■"),
        ChangeLevel::Compatible => ("good", "●"),
        ChangeLevel::Cosmetic => ("idle", "○"),
    };
    Difference {
        mark: Mark { class, shape, word: contract::word(change.level) },
        subject: shown::plain(&change.subject),
        pointer: shown::plain(&change.pointer),
        reason: shown::plain(&change.reason),
        code: shown::plain(&change.code),
        only_for: contract::only_for(diff, change).map(|keys| shown::plain(&keys)),
        suspicion: change.suspicion.as_deref().map(shown::plain),
        old: change.old.as_ref().map(text),
        new: change.new.as_ref().map(text),
    }
}

fn text(value: &Value) -> String {
    let text = match value {
        Value::Object(_) | Value::Array(_) => serde_json::to_string_pretty(value).unwrap_or_default(),
        _ => contract::readable(value),
    };
    mcproof_report::escape_block(&text).chars().take(LONGEST).collect()
}
