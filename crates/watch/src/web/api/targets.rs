//! Targets: listed all, and written where they are the API's own. Those of the configuration file are changed there.

use super::{ApiError, Body, PathName, answer};
use crate::api_target::Definition;
use crate::moment::Moment;
use crate::store::read::TargetRow;
use crate::web::State;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::Response;
use mcproof_analysis::listed;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn shown(row: &TargetRow) -> Value {
    let time = |moment: Moment| (moment.0 > 0).then(|| moment.to_string());
    json!({
        "name": row.name, "source": row.source, "host": row.host, "every_ms": row.every, "tags": row.tags, "public": row.public,
        "availability": row.availability.word(), "contract_state": row.surface.word(), "contract": row.contract,
        "last_result": time(row.last_result), "muted_until": time(row.muted_until),
    })
}

pub(in crate::web) async fn list(Shared(state): Shared<State>) -> Result<Response, ApiError> {
    let rows: Vec<Value> = state.targets().await?.iter().map(shown).collect();
    Ok(answer(StatusCode::OK, json!({ "targets": rows })))
}

pub(in crate::web) async fn one(Shared(state): Shared<State>, PathName(name): PathName) -> Result<Response, ApiError> {
    let row = state.target(&name).await?.ok_or_else(|| ApiError::not_found("target"))?;
    let mut body = shown(&row);
    if row.source == "api"
        && let Some(key) = &state.config().seal
        && let Some(sealed) = state.store.definition(&name).await?
        && let Some(definition) = key.open(&sealed).ok().and_then(|plain| serde_json::from_slice::<Definition>(&plain).ok())
    {
        body["definition"] = definition.shown();
    }
    Ok(answer(StatusCode::OK, body))
}

pub(in crate::web) async fn add(
    Shared(state): Shared<State>,
    PathName(name): PathName,
    Body(body): Body<Definition>,
) -> Result<Response, ApiError> {
    if state.store.target(&name).await?.is_some() {
        let problem = format!("target `{name}` already exists");
        return Err(ApiError::new(StatusCode::CONFLICT, "conflict", problem, "use PUT to replace it, or another name"));
    }
    put(&state, &name, &body).await?;
    Ok(answer(StatusCode::CREATED, json!({ "name": name })))
}

pub(in crate::web) async fn replace(
    Shared(state): Shared<State>,
    PathName(name): PathName,
    Body(body): Body<Definition>,
) -> Result<Response, ApiError> {
    own(&state, &name).await?;
    put(&state, &name, &body).await?;
    Ok(answer(StatusCode::OK, json!({ "name": name })))
}

pub(in crate::web) async fn remove(Shared(state): Shared<State>, PathName(name): PathName) -> Result<Response, ApiError> {
    own(&state, &name).await?;
    state.store.remove_target(&name, state.now()).await?;
    changed(&state, &name);
    Ok(answer(StatusCode::OK, json!({ "name": name })))
}

/// Only what the API has made may be changed by it.
async fn own(state: &State, name: &str) -> Result<(), ApiError> {
    let row = state.store.target(name).await?.ok_or_else(|| ApiError::not_found("target"))?;
    if row.source != "api" {
        let problem = format!("`{name}` is defined in the configuration file");
        return Err(ApiError::new(StatusCode::CONFLICT, "conflict", problem, "change it there; the file is reloaded when it changes"));
    }
    Ok(())
}

async fn put(state: &State, name: &str, definition: &Definition) -> Result<(), ApiError> {
    let config = state.config();
    if config.targets.contains_key(name) {
        let problem = format!("`{name}` is defined in the configuration file");
        return Err(ApiError::new(StatusCode::CONFLICT, "conflict", problem, "use another name"));
    }
    let destinations = crate::api_target::allowed(&config);
    let refusal = |refusal: crate::api_target::InvalidDefinition| ApiError::invalid(refusal.problem, refusal.remedy);
    let spec = definition.spec(name, destinations.clone()).map_err(refusal)?;
    check_regions(state, &definition.regions).await?;
    definition.look_up(destinations).await.map_err(refusal)?;
    let Some(key) = &config.seal else {
        let problem = "there is no key to encrypt the stored target";
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "no-key",
            problem,
            "set `seal_key` in the configuration to 32 random bytes from a variable or a file",
        ));
    };
    let plain = serde_json::to_vec(definition).expect("a definition has text keys only");
    let sealed = key
        .seal(&plain)
        .map_err(|failure| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "seal", failure.to_string(), "look at the log"))?;
    state.store.put_target(&spec, &sealed, &config.region, state.now()).await?;
    changed(state, name);
    Ok(())
}

/// Nobody probes from a region that has no worker.
async fn check_regions(state: &State, regions: &[String]) -> Result<(), ApiError> {
    let config = state.config();
    let mut known: BTreeSet<String> = state.store.regions().await?.into_iter().collect();
    known.insert(config.region.clone());
    known.extend(config.targets.values().flat_map(|target| target.regions.iter().cloned()));
    let Some(unknown) = regions.iter().find(|region| !known.contains(*region)) else { return Ok(()) };
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let problem = format!("no worker probes from the region `{unknown}`");
    Err(ApiError::invalid(problem, format!("use one of {}, or start a worker with `--region {unknown}` first", listed(known.into_iter()))))
}

/// Open pages are told, and whoever schedules probes.
fn changed(state: &State, name: &str) {
    let _ = state.bell.send(name.to_owned());
    state.targets_changed.notify_one();
}
