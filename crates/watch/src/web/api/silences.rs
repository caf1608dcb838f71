//! Silences, as the dashboard has them.

use super::{ApiError, Body, PathName, answer};
use crate::moment::Moment;
use crate::store::silences::{Silence, SilenceRow, new_id};
use crate::web::decisions::Decision;
use crate::web::guard::Identity;
use crate::web::{LONGEST, State};
use axum::extract::{Extension, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct Add {
    /// Patterns; empty: all.
    #[serde(default)]
    names: Vec<String>,
    /// Patterns; empty: all.
    #[serde(default)]
    tags: Vec<String>,
    reason: String,
    /// RFC 3339; now if missing.
    #[serde(default)]
    starts: Option<jiff::Timestamp>,
    minutes: u32,
    /// Patterns may match no target yet.
    #[serde(default)]
    future: bool,
}

pub(in crate::web) async fn list(Shared(state): Shared<State>) -> Result<Response, ApiError> {
    let rows: Vec<Value> = state.live().silences(state.now()).await?.iter().map(shown).collect();
    Ok(answer(StatusCode::OK, json!({ "silences": rows })))
}

fn shown(row: &SilenceRow) -> Value {
    let Silence { names, tags, author, reason, starts, ends } = &row.silence;
    json!({
        "id": row.id, "names": names, "tags": tags, "author": author, "reason": reason,
        "starts": starts.to_string(), "ends": ends.to_string(),
    })
}

pub(in crate::web) async fn add(
    Shared(state): Shared<State>,
    Extension(identity): Extension<Identity>,
    Body(body): Body<Add>,
) -> Result<Response, ApiError> {
    let now = state.now();
    if !(1..=LONGEST).contains(&body.minutes) {
        return Err(ApiError::invalid(format!("`minutes` is out of range: {}", body.minutes), format!("use 1 to {LONGEST} minutes")));
    }
    let starts = body.starts.map_or(now, |starts| Moment(starts.as_millisecond()));
    let ends = starts + Duration::from_secs(u64::from(body.minutes) * 60);
    if ends <= now {
        return Err(ApiError::invalid("the silence is over already", "check `starts`, or omit it"));
    }
    let silence = Silence { names: body.names, tags: body.tags, author: identity.name, reason: body.reason, starts, ends };
    if let Some(flaw) = silence.flaw() {
        return Err(ApiError::invalid(flaw.problem, flaw.remedy));
    }
    if let Some(unmatched) = state.unmatched(&silence).await.filter(|_| !body.future) {
        let remedy = format!("{} For targets to come, add `\"future\": true`", unmatched.remedy);
        return Err(ApiError::invalid(unmatched.problem, remedy));
    }
    let id = new_id(now);
    let decided = state.decide(Decision::Silence { id: &id, silence: &silence }).await?;
    Ok(answer(StatusCode::CREATED, decided.tell(shown(&SilenceRow { id, silence }))))
}

pub(in crate::web) async fn end(Shared(state): Shared<State>, PathName(id): PathName) -> Result<Response, ApiError> {
    let decided = state.decide(Decision::EndSilence { id: &id }).await?;
    if !decided.is_done {
        return Err(ApiError::not_found("silence"));
    }
    Ok(answer(StatusCode::OK, decided.tell(json!({ "id": id }))))
}
