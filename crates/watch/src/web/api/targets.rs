//! Targets: listed all, and written where they are the API's own. Those of the configuration file are changed there.

use super::{Refusal, answer};
use crate::moment::Moment;
use crate::store::read::TargetRow;
use crate::web::State;
use axum::extract::{Path, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

fn shown(row: &TargetRow) -> Value {
    let time = |moment: Moment| (moment.0 > 0).then(|| moment.to_string());
    json!({
        "name": row.name, "source": row.source, "host": row.host, "every_ms": row.every, "tags": row.tags, "public": row.public,
        "availability": row.availability.word(), "surface": row.surface.word(), "contract": row.contract,
        "last_result": time(row.last_result), "muted_until": time(row.muted_until),
    })
}

pub(in crate::web) async fn list(Shared(state): Shared<State>) -> Result<Response, Refusal> {
    let rows: Vec<Value> = state.store.targets().await?.iter().map(shown).collect();
    Ok(answer(StatusCode::OK, json!({ "targets": rows })))
}

pub(in crate::web) async fn one(Shared(state): Shared<State>, Path(name): Path<String>) -> Result<Response, Refusal> {
    let row = state.store.target(&name).await?.ok_or_else(|| Refusal::not_found("target"))?;
    Ok(answer(StatusCode::OK, shown(&row)))
}
