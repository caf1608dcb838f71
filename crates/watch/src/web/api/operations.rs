//! Results, incidents, planned work, deploys: read and written as the pages do.

use super::{ApiError, Body, PathName, QueryParameters, answer};
use crate::incident::Detail;
use crate::moment::{Moment, millis};
use crate::store::StoreFailure;
use crate::store::audit::AuditRow;
use crate::store::operations::{Announcement, is_full_hash};
use crate::store::read::{IncidentRow, MaintenanceRow, Place, ResultRow, Which};
use crate::web::decisions::Decision;
use crate::web::guard::Identity;
use crate::web::known::UNREAD_INCIDENT;
use crate::web::{LONGEST, State};
use axum::extract::{Extension, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::time::Duration;

const MOST: i64 = 1_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct Deploy {
    #[serde(default = "quarter")]
    minutes: u32,
    /// The full hash that the contract will have.
    #[serde(default)]
    expected: Option<String>,
    #[serde(default)]
    note: String,
}

fn quarter() -> u32 {
    15
}

fn minutes(minutes: u32) -> Result<Duration, ApiError> {
    if (1..=LONGEST).contains(&minutes) {
        return Ok(Duration::from_secs(u64::from(minutes) * 60));
    }
    Err(ApiError::invalid(format!("`minutes` is out of range: {minutes}"), format!("use 1 to {LONGEST} minutes")))
}

pub(in crate::web) async fn deploy(
    Shared(state): Shared<State>,
    PathName(name): PathName,
    Body(deploy): Body<Deploy>,
) -> Result<Response, ApiError> {
    if let Some(expected) = deploy.expected.as_deref().filter(|hash| !is_full_hash(hash)) {
        let remedy = "use `sha256:` and 64 hexadecimal digits, as `mcproof hash --full` prints them";
        return Err(ApiError::invalid(format!("`expected` is `{expected}`"), remedy));
    }
    let now = state.now();
    state.store.target(&name).await?.ok_or_else(|| ApiError::not_found("target"))?;
    let until = now + minutes(deploy.minutes)?;
    let id = state.store.announce_deploy(&name, now, until, deploy.expected.as_deref(), &deploy.note).await?;
    Ok(answer(StatusCode::CREATED, json!({ "id": id, "target": name, "at": now.to_string(), "until": until.to_string() })))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct Mute {
    /// 0 ends it.
    minutes: u32,
}

pub(in crate::web) async fn mute(
    Shared(state): Shared<State>,
    PathName(name): PathName,
    Body(mute): Body<Mute>,
) -> Result<Response, ApiError> {
    let until = if mute.minutes == 0 { Moment(0) } else { state.now() + minutes(mute.minutes)? };
    state.target(&name).await?.ok_or_else(|| ApiError::not_found("target"))?;
    let decided = state.decide(Decision::Mute { target: &name, until }).await?;
    if !decided.is_done {
        return Err(ApiError::not_found("target"));
    }
    let _ = state.bell.send(name.clone());
    let until = (until.0 > 0).then(|| until.to_string());
    Ok(answer(StatusCode::OK, decided.tell(json!({ "target": name, "muted_until": until }))))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct Look {
    /// `open` (the usual) or `all`.
    #[serde(default)]
    state: String,
    limit: Option<i64>,
    /// `next` of the answer before this one.
    before: Option<String>,
}

pub(in crate::web) async fn incidents(
    Shared(state): Shared<State>,
    QueryParameters(look): QueryParameters<Look>,
) -> Result<Response, ApiError> {
    let which = match look.state.as_str() {
        "" | "open" => Which::Open,
        "all" => Which::All,
        _ => return Err(ApiError::invalid("`state` is not `open` or `all`", "use one of them")),
    };
    let before = look.before.as_deref().map(str::parse::<Place>).transpose();
    let before = before
        .map_err(|_| ApiError::invalid("`before` is not a position in the list", "use `next` of the previous response, or omit it"))?;
    let limit = look.limit.unwrap_or(100).clamp(1, MOST);
    let incidents = state.incidents(which, before.as_ref(), limit).await?;
    let next = Place::after(&incidents, limit).map(|place| place.to_string());
    let incidents: Vec<Incident> = incidents.into_iter().map(Incident::from).collect();
    Ok(answer(StatusCode::OK, json!({ "incidents": incidents, "next": next })))
}

#[derive(Serialize)]
struct Incident {
    id: String,
    subject: String,
    class: &'static str,
    severity: &'static str,
    title: String,
    detail: Detail,
    since: String,
    opened: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledged: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledged_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<String>,
}

impl From<IncidentRow> for Incident {
    fn from(row: IncidentRow) -> Self {
        let time = |moment: Option<Moment>| moment.map(|moment| moment.to_string());
        Self {
            class: row.class.word(),
            severity: row.severity.word(),
            since: row.since.to_string(),
            opened: row.opened.to_string(),
            resolved: time(row.resolved),
            acknowledged: time(row.acknowledged),
            acknowledged_by: row.acknowledged_by,
            id: row.id,
            subject: row.subject,
            title: row.title,
            detail: row.detail,
            parent: row.parent,
            evidence: row.evidence,
        }
    }
}

pub(in crate::web) async fn acknowledge(
    Shared(state): Shared<State>,
    Extension(identity): Extension<Identity>,
    PathName(id): PathName,
) -> Result<Response, ApiError> {
    let incident = match state.incident(&id).await {
        Ok(found) => found.ok_or_else(|| ApiError::not_found("incident"))?,
        Err(failure) if state.stands_in() => return Err(ApiError { remedy: UNREAD_INCIDENT.to_owned(), ..ApiError::from(failure) }),
        Err(failure) => return Err(failure.into()),
    };
    let id = incident.id;
    let decided = state.decide(Decision::Acknowledge { incident: &id, who: &identity.name, seen: None }).await?;
    if !decided.is_done {
        let problem = "it is resolved or already acknowledged";
        return Err(ApiError::new(StatusCode::CONFLICT, "conflict", problem, "nothing to do"));
    }
    let _ = state.bell.send(incident.subject);
    Ok(answer(StatusCode::OK, decided.tell(json!({ "id": id, "acknowledged_by": identity.name }))))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct Announce {
    name: String,
    /// Empty: all.
    #[serde(default)]
    targets: Vec<String>,
    /// Empty: all.
    #[serde(default)]
    tags: Vec<String>,
    /// RFC 3339; now if missing.
    #[serde(default)]
    starts: Option<jiff::Timestamp>,
    minutes: u32,
    /// Tags may be those of targets to come.
    #[serde(default)]
    future: bool,
}

/// Of these tags, one that no target has.
pub(in crate::web) async fn unknown_tag<'a>(state: &State, tags: &'a [String]) -> Result<Option<&'a str>, StoreFailure> {
    if tags.is_empty() {
        return Ok(None);
    }
    let targets = state.store.targets().await?;
    Ok(tags.iter().find(|tag| !targets.iter().any(|target| target.tags.contains(tag))).map(String::as_str))
}

pub(in crate::web) async fn announce(Shared(state): Shared<State>, Body(body): Body<Announce>) -> Result<Response, ApiError> {
    let now = state.now();
    if body.name.trim().is_empty() {
        return Err(ApiError::invalid("`name` is empty", "describe the work"));
    }
    for target in &body.targets {
        if state.store.target(target).await?.is_none() {
            return Err(ApiError::invalid(format!("unknown target `{target}`"), "check the names in `targets`"));
        }
    }
    if let Some(tag) = unknown_tag(&state, &body.tags).await?.filter(|_| !body.future) {
        let remedy = "check the names in `tags`; for targets to come, add `\"future\": true`";
        return Err(ApiError::invalid(format!("no target has the tag `{tag}`"), remedy));
    }
    let starts = body.starts.map_or(now, |starts| Moment(starts.as_millisecond()));
    let ends = starts + minutes(body.minutes)?;
    if ends <= now {
        return Err(ApiError::invalid("the planned work is over already", "check `starts`, or omit it"));
    }
    let work = Announcement { name: body.name, targets: body.targets, tags: body.tags, starts, ends };
    let id = state.store.announce(&work, now).await?;
    Ok(answer(StatusCode::CREATED, json!({ "id": id, "starts": starts.to_string(), "ends": ends.to_string() })))
}

pub(in crate::web) async fn maintenance(Shared(state): Shared<State>) -> Result<Response, ApiError> {
    let shown = |row: MaintenanceRow| {
        json!({
            "id": row.id, "name": row.name, "targets": row.targets, "tags": row.tags,
            "starts": row.starts.to_string(), "ends": row.ends.to_string(),
        })
    };
    let rows: Vec<Value> = state.store.maintenance(state.now()).await?.into_iter().map(shown).collect();
    Ok(answer(StatusCode::OK, json!({ "maintenance": rows })))
}

pub(in crate::web) async fn end(Shared(state): Shared<State>, PathName(id): PathName) -> Result<Response, ApiError> {
    if !state.store.end_maintenance(&id, state.now()).await? {
        return Err(ApiError::not_found("planned work"));
    }
    Ok(answer(StatusCode::OK, json!({ "id": id })))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct Entries {
    limit: Option<i64>,
    /// The last entry of the answer before this one.
    before: Option<String>,
}

pub(in crate::web) async fn audit(
    Shared(state): Shared<State>,
    QueryParameters(asked): QueryParameters<Entries>,
) -> Result<Response, ApiError> {
    let rows = state.audit(asked.before.as_deref(), asked.limit.unwrap_or(100)).await?;
    let shown = |row: &AuditRow| {
        json!({
            "id": row.id, "at": row.at.to_string(), "who": row.who, "via": row.via, "action": row.action, "subject": row.subject,
            "outcome": row.outcome,
        })
    };
    Ok(answer(StatusCode::OK, json!({ "entries": rows.iter().map(shown).collect::<Vec<_>>() })))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct Past {
    target: String,
    /// RFC 3339; an hour ago if missing.
    from: Option<jiff::Timestamp>,
    /// RFC 3339; now if missing.
    until: Option<jiff::Timestamp>,
    limit: Option<i64>,
}

pub(in crate::web) async fn results(
    Shared(state): Shared<State>,
    QueryParameters(past): QueryParameters<Past>,
) -> Result<Response, ApiError> {
    let now = state.now();
    state.store.target(&past.target).await?.ok_or_else(|| ApiError::not_found("target"))?;
    let moment = |time: Option<jiff::Timestamp>, usual: Moment| time.map_or(usual, |time| Moment(time.as_millisecond()));
    let (from, until) =
        (moment(past.from, now - Duration::from_secs(3_600)), moment(past.until, Moment(now.0 + millis(Duration::from_secs(1)))));
    let rows = state.store.results(&past.target, from, until, past.limit.unwrap_or(MOST)).await?;
    let rows: Vec<Value> = rows.iter().map(shown_result).collect();
    Ok(answer(StatusCode::OK, json!({ "target": past.target, "results": rows })))
}

fn shown_result(row: &ResultRow) -> Value {
    let ms = |micros: i64| micros as f64 / 1e3;
    let phases: Map<String, Value> = row.phases.iter().map(|(phase, micros)| (phase.clone(), ms(*micros).into())).collect();
    let mut shown = json!({
        "slot": row.slot.to_string(), "attempt": row.attempt, "region": row.region, "at": row.at.to_string(),
        "verdict": row.verdict.word(), "duration_ms": ms(row.duration), "phases_ms": phases,
    });
    let optional = [
        ("reason", Some(&row.reason).filter(|reason| !reason.is_empty())),
        ("contract", row.contract.as_ref()),
        ("evidence", row.evidence.as_ref()),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            shown[name] = value.clone().into();
        }
    }
    shown
}
