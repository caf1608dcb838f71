//! Notices: what the readers of the status page are told, and forms to tell them more.

use super::{Chrome, Fault, comma_list, html};
use crate::store::notices::{InvalidNotice, Notice, NoticeUpdate, Progress};
use crate::web::State;
use crate::web::guard::Identity;
use crate::web::shown::{self, Html, Mark};
use askama::Template;
use axum::Form;
use axum::extract::{Extension, Path, State as Shared};
use axum::http::StatusCode;
use axum::response::{Redirect, Response};
use serde::Deserialize;

#[derive(Template)]
#[template(path = "notices.html")]
struct Page {
    chrome: Chrome,
    notices: Vec<ShownNotice>,
}

/// A notice as pages show it; the latest update first.
pub(super) struct ShownNotice {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) targets: String,
    pub(super) mark: Mark,
    pub(super) updates: Vec<ShownUpdate>,
}

pub(super) struct ShownUpdate {
    pub(super) word: &'static str,
    /// One for each line that the author wrote.
    pub(super) lines: Vec<String>,
    pub(super) at: Html,
    pub(super) author: String,
}

impl ShownNotice {
    pub(super) fn new(notice: &Notice) -> Self {
        let update = |update: &NoticeUpdate| ShownUpdate {
            word: mark(update.progress).word,
            lines: update.text.lines().map(|line| mcproof_report::escape_line(line, line.len())).collect(),
            at: shown::at(update.at),
            author: shown::plain(&update.author),
        };
        Self {
            id: shown::segment(&notice.id),
            title: shown::plain(&notice.title),
            targets: notice.targets.iter().map(|target| shown::plain(target)).collect::<Vec<_>>().join(", "),
            mark: mark(notice.latest().map_or(Progress::Information, |update| update.progress)),
            updates: notice.updates.iter().rev().map(update).collect(),
        }
    }
}

fn mark(progress: Progress) -> Mark {
    let (class, shape) = match progress {
        Progress::Investigating => ("bad", "■"),
        Progress::Identified => ("warn", "▲"),
        Progress::Monitoring => ("warn", "◑"),
        Progress::Resolved => ("good", "●"),
        Progress::Information => ("idle", "○"),
    };
    Mark { class, shape, word: progress.word() }
}

pub(in crate::web) async fn page(Shared(state): Shared<State>, Extension(identity): Extension<Identity>) -> Result<Response, Fault> {
    let notices = state.store.notices(state.now()).await?;
    let page =
        Page { chrome: Chrome::new(&state, &identity, "notices", "Notices"), notices: notices.iter().map(ShownNotice::new).collect() };
    Ok(html(&page))
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct Post {
    title: String,
    /// Names with commas between them.
    #[serde(default)]
    targets: String,
    progress: String,
    text: String,
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct Add {
    progress: String,
    text: String,
}

impl From<InvalidNotice> for Fault {
    fn from(invalid: InvalidNotice) -> Self {
        Self::Refused(StatusCode::UNPROCESSABLE_ENTITY, format!("{}: {}", invalid.problem, invalid.remedy))
    }
}

pub(in crate::web) async fn post(
    Shared(state): Shared<State>,
    Extension(identity): Extension<Identity>,
    Form(form): Form<Post>,
) -> Result<Redirect, Fault> {
    let targets = comma_list(&form.targets);
    state.store.review_subject(&form.title, &targets).await??;
    let first = NoticeUpdate::read(state.now(), identity.name, &form.progress, &form.text)?;
    state.store.post_notice(form.title.trim(), &targets, &first).await?;
    Ok(Redirect::to("/notices"))
}

pub(in crate::web) async fn add(
    Shared(state): Shared<State>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
    Form(form): Form<Add>,
) -> Result<Redirect, Fault> {
    let update = NoticeUpdate::read(state.now(), identity.name, &form.progress, &form.text)?;
    if !state.store.update_notice(&id, &update).await? {
        return Err(Fault::NotFound("notice"));
    }
    Ok(Redirect::to("/notices"))
}

pub(in crate::web) async fn withdraw(Shared(state): Shared<State>, Path(id): Path<String>) -> Result<Redirect, Fault> {
    state.store.withdraw_notice(&id).await?;
    Ok(Redirect::to("/notices"))
}
