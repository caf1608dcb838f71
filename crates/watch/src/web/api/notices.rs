//! Notices of the status page, as the dashboard has them.

use super::{ApiError, Body, PathName, answer};
use crate::store::notices::{InvalidNotice, Notice, NoticeUpdate};
use crate::web::State;
use crate::web::guard::Identity;
use axum::extract::{Extension, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct Post {
    title: String,
    /// Names; empty if it is not said what is affected.
    #[serde(default)]
    targets: Vec<String>,
    progress: String,
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct Add {
    progress: String,
    text: String,
}

impl From<InvalidNotice> for ApiError {
    fn from(invalid: InvalidNotice) -> Self {
        Self::invalid(invalid.problem, invalid.remedy)
    }
}

pub(in crate::web) async fn list(Shared(state): Shared<State>) -> Result<Response, ApiError> {
    let notices: Vec<Value> = state.store.notices(state.now()).await?.iter().map(shown).collect();
    Ok(answer(StatusCode::OK, json!({ "notices": notices })))
}

fn shown(notice: &Notice) -> Value {
    let update = |update: &NoticeUpdate| json!({ "at": update.at.to_string(), "author": update.author, "progress": update.progress.word(), "text": update.text });
    let updates: Vec<Value> = notice.updates.iter().map(update).collect();
    json!({ "id": notice.id, "title": notice.title, "targets": notice.targets, "resolved": notice.is_resolved(), "updates": updates })
}

pub(in crate::web) async fn post(
    Shared(state): Shared<State>,
    Extension(identity): Extension<Identity>,
    Body(body): Body<Post>,
) -> Result<Response, ApiError> {
    let Post { title, targets, progress, text } = body;
    state.store.review_subject(&title, &targets).await??;
    let first = NoticeUpdate::read(state.now(), identity.name, &progress, &text)?;
    let id = state.store.post_notice(title.trim(), &targets, &first).await?;
    Ok(answer(StatusCode::CREATED, shown(&Notice { id, title, targets, updates: vec![first] })))
}

pub(in crate::web) async fn add(
    Shared(state): Shared<State>,
    Extension(identity): Extension<Identity>,
    PathName(id): PathName,
    Body(body): Body<Add>,
) -> Result<Response, ApiError> {
    let update = NoticeUpdate::read(state.now(), identity.name, &body.progress, &body.text)?;
    if !state.store.update_notice(&id, &update).await? {
        return Err(ApiError::not_found("notice"));
    }
    Ok(answer(StatusCode::CREATED, json!({ "id": id, "at": update.at.to_string(), "progress": update.progress.word() })))
}

pub(in crate::web) async fn withdraw(Shared(state): Shared<State>, PathName(id): PathName) -> Result<Response, ApiError> {
    if !state.store.withdraw_notice(&id).await? {
        return Err(ApiError::not_found("notice"));
    }
    Ok(answer(StatusCode::OK, json!({ "id": id })))
}
