//! Silences: which there are, and a form for another one.

use super::{Chrome, Fault, comma_list, html, lasting};
use crate::store::silences::{Silence, new_id};
use crate::web::State;
use crate::web::decisions::Decision;
use crate::web::guard::Identity;
use crate::web::shown::{self, Html};
use askama::Template;
use axum::Form;
use axum::extract::{Extension, Path, State as Shared};
use axum::http::StatusCode;
use axum::response::{Redirect, Response};
use serde::Deserialize;

#[derive(Template)]
#[template(path = "silences.html")]
struct Page {
    chrome: Chrome,
    silences: Vec<Shown>,
}

struct Shown {
    id: String,
    whom: String,
    author: String,
    reason: String,
    ends: Html,
}

pub(in crate::web) async fn page(Shared(state): Shared<State>, Extension(identity): Extension<Identity>) -> Result<Response, Fault> {
    let now = state.now();
    let silences = state.live().silences(now).await?;
    let page = Page {
        chrome: Chrome::new(&state, &identity, "silences", "Silences"),
        silences: silences
            .iter()
            .map(|row| Shown {
                id: shown::segment(&row.id),
                whom: whom(&row.silence),
                author: shown::plain(&row.silence.author),
                reason: shown::plain(&row.silence.reason),
                ends: shown::when(now, row.silence.ends),
            })
            .collect(),
    };
    Ok(html(&page))
}

fn whom(silence: &Silence) -> String {
    let list = |patterns: &[String]| patterns.iter().map(|pattern| shown::plain(pattern)).collect::<Vec<_>>().join(", ");
    let parts = [("", &silence.names), ("tagged ", &silence.tags)];
    parts
        .iter()
        .filter(|(_, patterns)| !patterns.is_empty())
        .map(|(word, patterns)| format!("{word}{}", list(patterns)))
        .collect::<Vec<_>>()
        .join(", ")
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct Add {
    /// Patterns with commas between them.
    #[serde(default)]
    names: String,
    #[serde(default)]
    tags: String,
    reason: String,
    minutes: u32,
    /// There if the box is checked.
    #[serde(default)]
    future: Option<String>,
}

pub(in crate::web) async fn add(
    Shared(state): Shared<State>,
    Extension(identity): Extension<Identity>,
    Form(form): Form<Add>,
) -> Result<Redirect, Fault> {
    let now = state.now();
    let silence = Silence {
        names: comma_list(&form.names),
        tags: comma_list(&form.tags),
        author: identity.name,
        reason: form.reason.trim().to_owned(),
        starts: now,
        ends: now + lasting(form.minutes)?,
    };
    if let Some(flaw) = silence.flaw() {
        return Err(Fault::Refused(StatusCode::UNPROCESSABLE_ENTITY, format!("{}: {}", flaw.problem, flaw.remedy)));
    }
    if let Some(unmatched) = state.unmatched(&silence).await.filter(|_| form.future.is_none()) {
        let text = format!("{}: {} For targets to come, check the box below the tags", unmatched.problem, unmatched.remedy);
        return Err(Fault::Refused(StatusCode::UNPROCESSABLE_ENTITY, text));
    }
    state.decide(Decision::Silence { id: &new_id(now), silence: &silence }).await?;
    Ok(Redirect::to("/silences"))
}

pub(in crate::web) async fn end(Shared(state): Shared<State>, Path(id): Path<String>) -> Result<Redirect, Fault> {
    state.decide(Decision::EndSilence { id: &id }).await?;
    Ok(Redirect::to("/silences"))
}
