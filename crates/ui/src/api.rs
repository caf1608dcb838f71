//! The routes. Everything below `/api/` needs the token; see [`crate::access`].

use crate::access::{Access, guard};
use crate::apps::{NewView, Opened};
use crate::comparison::{Comparison, ComparisonFailure};
use crate::connection::Tokens;
use crate::hub::{Hub, HubFailure};
use crate::requests::{self, Message, Outcome, Request};
use crate::spec::{NewTest, SavedTest, ServerSpec, SharedSession, SuiteChange, check_choices};
use crate::viewer::{ShownSession, Viewer};
use crate::{asks, assets, check, comparison, connection, policy, sign_in, stream, tasks, test_runs};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use mcproof_client::jsonrpc::RpcError;
use mcproof_record::Diagnostic;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Bytes of a request of the page: files are sent to tools as Base64.
const LARGEST_BODY: usize = 32 << 20;

pub(crate) fn router(hub: Arc<Hub>, access: Arc<Access>) -> Router {
    Router::new()
        .route("/", get(assets::page))
        .route("/{name}", get(assets::asset))
        .route("/api/stream", get(|State(hub): State<Arc<Hub>>| async move { stream::stream(hub) }))
        .route("/api/connections", post(add))
        .route("/api/connections/{id}/open", post(open))
        .route("/api/connections/{id}/close", post(close))
        .route("/api/connections/{id}/remove", post(remove))
        .route("/api/connections/{id}/request", post(request))
        .route("/api/connections/{id}/message", post(message))
        .route("/api/connections/{id}/cancel", post(cancel))
        .route("/api/connections/{id}/task", post(task))
        .route("/api/connections/{id}/authorization", post(authorization))
        .route("/api/connections/{id}/views", post(open_view))
        .route("/api/connections/{id}/check", post(run_check))
        .route("/api/connections/{id}/doctor", post(run_doctor))
        .route("/api/connections/{id}/answers", post(set_answers))
        .route("/api/compare", post(compare))
        .route("/api/contracts", get(contract_files))
        .route("/api/sessions/{id}/findings", get(findings))
        .route("/api/sessions/{id}/trace", get(trace))
        .route("/api/sessions/{id}/page", get(page))
        .route("/api/tests/run", post(run_tests))
        .route("/api/tests/stop", post(stop_tests))
        .route("/api/tests/{id}", get(test))
        .route("/api/suites/text", get(suite_text).post(change_suite))
        .route("/api/suites", get(suites).post(save))
        .route("/api/asks/{id}", post(answer))
        .fallback(|| async { (StatusCode::NOT_FOUND, "there is nothing here") })
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .layer(middleware::from_fn_with_state(access, guard))
        .with_state(hub)
}

/// Why a request of the page is refused.
struct Refused(StatusCode, String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "message": self.1 }))).into_response()
    }
}

impl From<HubFailure> for Refused {
    fn from(failure: HubFailure) -> Self {
        let status = match failure {
            HubFailure::NoConnection | HubFailure::NoSession => StatusCode::NOT_FOUND,
            HubFailure::NotOpen | HubFailure::TooMany => StatusCode::CONFLICT,
        };
        Self(status, failure.to_string())
    }
}

impl From<ComparisonFailure> for Refused {
    fn from(failure: ComparisonFailure) -> Self {
        match failure {
            ComparisonFailure::Hub(failure) => failure.into(),
            ComparisonFailure::Side(why) => Self(StatusCode::UNPROCESSABLE_ENTITY, why),
            ComparisonFailure::Internal => internal(),
        }
    }
}

type Shared = State<Arc<Hub>>;

async fn add(State(hub): Shared, Json(spec): Json<ServerSpec>) -> Result<Json<Value>, Refused> {
    check_choices(&spec).map_err(|why| Refused(StatusCode::UNPROCESSABLE_ENTITY, why))?;
    let id = hub.try_add(spec)?;
    hub.open(id, Tokens::Kept);
    Ok(Json(json!({ "id": id })))
}

/// What to connect with from now on, where it differs from before.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Changes {
    era: Option<String>,
    transport: Option<String>,
    /// An empty one lets the server choose.
    revision: Option<String>,
    name: Option<String>,
    env: Option<Vec<(String, String)>>,
    headers: Option<Vec<(String, String)>>,
    /// An empty one is that of `mcproof ui`.
    cwd: Option<String>,
    /// Another command, or another URL.
    target: Option<NewTarget>,
    /// Whether to discard the stored tokens of the server first. Only for this once.
    sign_in_anew: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewTarget {
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    url: Option<String>,
}

impl Changes {
    fn apply(self, spec: &mut ServerSpec) {
        let Self { era, transport, revision, name, env, headers, cwd, target, sign_in_anew: _ } = self;
        if let Some(NewTarget { command, url }) = target {
            (spec.command, spec.url, spec.server, spec.config) = (command, url, None, None);
        }
        spec.era = era.or(spec.era.take());
        spec.transport = transport.or(spec.transport.take());
        spec.revision = revision.or(spec.revision.take()).filter(|revision| !revision.is_empty());
        spec.name = name.unwrap_or(std::mem::take(&mut spec.name));
        spec.cwd = cwd.or(spec.cwd.take()).filter(|cwd| !cwd.is_empty());
        let (known_env, known_headers) = (std::mem::take(&mut spec.env), std::mem::take(&mut spec.headers));
        spec.env = env.map_or_else(|| known_env.clone(), |env| merged(env, &known_env));
        spec.headers = headers.map_or_else(|| known_headers.clone(), |headers| merged(headers, &known_headers));
    }
}

/// The page does not know the values, and sends an empty one for what stays as it is.
fn merged(given: Vec<(String, String)>, known: &[(String, String)]) -> Vec<(String, String)> {
    let keep = |(name, value): (String, String)| match known.iter().find(|(known, _)| *known == name) {
        Some((_, kept)) if value.is_empty() => (name, kept.clone()),
        _ => (name, value),
    };
    given.into_iter().map(keep).collect()
}

async fn open(State(hub): Shared, Path(id): Path<u64>, Json(changes): Json<Changes>) -> Result<Json<Value>, Refused> {
    let mut spec = hub.state().connection(id).ok_or(HubFailure::NoConnection)?.spec.clone();
    let tokens = if changes.sign_in_anew { Tokens::Discarded } else { Tokens::Kept };
    changes.apply(&mut spec);
    check_choices(&spec).map_err(|why| Refused(StatusCode::UNPROCESSABLE_ENTITY, why))?;
    hub.change(|state| state.connection(id).map(|connection| connection.spec = spec)).ok_or(HubFailure::NoConnection)?;
    hub.open(id, tokens);
    Ok(Json(json!({})))
}

async fn close(State(hub): Shared, Path(id): Path<u64>) -> Json<Value> {
    connection::close(&hub, id).await;
    Json(json!({}))
}

async fn remove(State(hub): Shared, Path(id): Path<u64>) -> Json<Value> {
    connection::remove(&hub, id).await;
    Json(json!({}))
}

async fn request(State(hub): Shared, Path(id): Path<u64>, Json(request): Json<Request>) -> Result<Json<Outcome>, Refused> {
    // In a task of its own: a page that goes away has not canceled what it sent.
    let sending = tokio::spawn(async move { requests::send(&hub, id, request).await });
    Ok(Json(sending.await.map_err(|_| internal())??))
}

async fn message(State(hub): Shared, Path(id): Path<u64>, Json(message): Json<Message>) -> Result<Json<Outcome>, Refused> {
    Ok(Json(requests::send_message(&hub, id, message).await?))
}

#[derive(Deserialize)]
struct Cancel {
    key: String,
}

async fn cancel(State(hub): Shared, Path(id): Path<u64>, Json(Cancel { key }): Json<Cancel>) -> Result<Json<Value>, Refused> {
    Ok(Json(json!({ "canceled": requests::cancel(&hub, id, &key)? })))
}

async fn task(State(hub): Shared, Path(id): Path<u64>, Json(request): Json<tasks::TaskRequest>) -> Result<Json<Outcome>, Refused> {
    let asking = tokio::spawn(async move { tasks::request(&hub, id, request).await });
    Ok(Json(asking.await.map_err(|_| internal())??))
}

/// How an authorization goes on.
#[derive(Deserialize)]
struct GoOn {
    go: sign_in::Decision,
}

async fn authorization(State(hub): Shared, Path(id): Path<u64>, Json(GoOn { go }): Json<GoOn>) -> Result<Json<Value>, Refused> {
    match sign_in::go_on(&hub, id, go)? {
        true => Ok(Json(json!({}))),
        false => Err(Refused(StatusCode::GONE, "no authorization waits for this".to_owned())),
    }
}

async fn open_view(State(hub): Shared, Path(id): Path<u64>, Json(view): Json<NewView>) -> Result<Json<Opened>, Refused> {
    let opened = connection::open_app(&hub, id, view).await?;
    opened.map(Json).map_err(|failure| Refused(StatusCode::UNPROCESSABLE_ENTITY, failure.to_string()))
}

async fn run_check(State(hub): Shared, Path(id): Path<u64>) -> Result<Response, Refused> {
    let checking = tokio::spawn(async move { check::check(&hub, id).await });
    Ok(Json(checking.await.map_err(|_| internal())??).into_response())
}

async fn run_doctor(State(hub): Shared, Path(id): Path<u64>) -> Result<Json<Value>, Refused> {
    let examining = tokio::spawn(async move { check::examine(&hub, id).await });
    Ok(Json(examining.await.map_err(|_| internal())??))
}

/// The `answers:` of a suite, for what the server asks from now on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewAnswers {
    text: String,
}

async fn set_answers(State(hub): Shared, Path(id): Path<u64>, Json(NewAnswers { text }): Json<NewAnswers>) -> Result<Json<Value>, Refused> {
    let several = text.trim_end().contains('\n');
    policy::set(&hub, id, text).await?.map_err(|diagnostic| {
        let Refused(status, message) = unwritten(&diagnostic);
        let line = diagnostic.place.as_ref().filter(|_| several).map(|place| format!("line {}: ", place.line));
        Refused(status, line.unwrap_or_default() + &message)
    })?;
    Ok(Json(json!({})))
}

async fn compare(State(hub): Shared, Json(comparison): Json<Comparison>) -> Result<Json<Value>, Refused> {
    Ok(Json(comparison::compare(hub, comparison).await?))
}

async fn contract_files(State(hub): Shared) -> Json<Value> {
    let listed = tokio::task::spawn_blocking(move || hub.connector.contract_files()).await;
    Json(json!({ "files": listed.unwrap_or_default() }))
}

async fn findings(State(hub): Shared, Path(session): Path<u64>) -> Result<Json<Value>, Refused> {
    Ok(Json(check::findings(&hub, session).await?))
}

/// A session as a trace file.
async fn trace(State(hub): Shared, Path(session): Path<u64>) -> Result<Response, Refused> {
    let session = hub.shared(session)?;
    let written = tokio::task::spawn_blocking(move || hub.connector.trace(&session)).await.map_err(|_| internal())?;
    let bytes = written.map_err(|diagnostic| unwritten(&diagnostic))?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

/// A session as one file that opens in a browser without a server.
async fn page(State(hub): Shared, Path(id): Path<u64>) -> Result<Response, Refused> {
    let SharedSession { title, transport, transcript, .. } = hub.shared(id)?;
    let version = hub.version();
    let written = tokio::task::spawn_blocking(move || {
        let mut page = Vec::new();
        let mut viewer = Viewer::begin(&mut page, version)?;
        viewer.frames(id, &transcript.frames)?;
        viewer.end(&[ShownSession { id, title, transport }])?;
        Ok::<_, std::io::Error>(page)
    });
    let page = written.await.map_err(|_| internal())?.map_err(|_| internal())?;
    Ok(([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    /// An expression of `mcproof test --filter`; all tests without one.
    #[serde(default)]
    filter: Option<String>,
}

async fn run_tests(State(hub): Shared, Json(Run { filter }): Json<Run>) -> Result<Json<Value>, Refused> {
    let runner = hub.runner().ok_or_else(|| Refused(StatusCode::NOT_FOUND, "there are no tests here".to_owned()))?;
    match test_runs::start(&hub, runner, filter) {
        true => Ok(Json(json!({}))),
        false => Err(Refused(StatusCode::CONFLICT, "tests are running already".to_owned())),
    }
}

async fn stop_tests(State(hub): Shared) -> Json<Value> {
    test_runs::stop(&hub);
    Json(json!({}))
}

async fn test(State(hub): Shared, Path(id): Path<u64>) -> Result<Json<Value>, Refused> {
    let found = hub.state().tests.as_ref().and_then(|tests| tests.details(id));
    let (finished, transcripts) = found.ok_or_else(|| Refused(StatusCode::NOT_FOUND, "there is no such test".to_owned()))?;
    Ok(Json(json!({ "finished": finished, "transcripts": transcripts })))
}

#[derive(Deserialize)]
struct Named {
    file: String,
}

async fn suite_text(State(hub): Shared, Query(Named { file }): Query<Named>) -> Result<Json<Value>, Refused> {
    let read = tokio::task::spawn_blocking(move || hub.connector.suite_text(&file)).await.map_err(|_| internal())?;
    read.map(|text| Json(json!({ "text": text }))).map_err(|diagnostic| unwritten(&diagnostic))
}

async fn change_suite(State(hub): Shared, Json(change): Json<SuiteChange>) -> Result<Json<Value>, Refused> {
    let changed = tokio::task::spawn_blocking(move || {
        let _turn = hub.saving.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        hub.connector.change_suite(&change)
    });
    changed.await.map_err(|_| internal())?.map_err(|diagnostic| unwritten(&diagnostic))?;
    Ok(Json(json!({})))
}

fn unwritten(diagnostic: &Diagnostic) -> Refused {
    let hint = diagnostic.hint.as_ref().map(|hint| format!(": {hint}")).unwrap_or_default();
    Refused(StatusCode::UNPROCESSABLE_ENTITY, format!("{}{hint}", diagnostic.message))
}

async fn suites(State(hub): Shared) -> Json<Value> {
    let listed = tokio::task::spawn_blocking(move || hub.connector.suites()).await;
    Json(json!({ "suites": listed.unwrap_or_default() }))
}

async fn save(State(hub): Shared, Json(test): Json<NewTest>) -> Result<Json<SavedTest>, Refused> {
    let saved = tokio::task::spawn_blocking(move || {
        // One after another: each reads the file that it writes.
        let _turn = hub.saving.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        hub.connector.save(&test)
    });
    saved.await.map_err(|_| internal())?.map(Json).map_err(|diagnostic| unwritten(&diagnostic))
}

/// The user's answer to what a server asked.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Answer {
    Result(Map<String, Value>),
    Error { code: i64, message: String },
}

async fn answer(State(hub): Shared, Path(id): Path<u64>, Json(answer): Json<Answer>) -> Result<Json<Value>, Refused> {
    let given = match answer {
        Answer::Result(result) => Ok(Value::Object(result)),
        Answer::Error { code, message } => Err(RpcError { code, message, data: None }),
    };
    match asks::answer(&hub, id, given) {
        true => Ok(Json(json!({}))),
        false => Err(Refused(StatusCode::GONE, "the server no longer waits for this answer".to_owned())),
    }
}

fn internal() -> Refused {
    Refused(StatusCode::INTERNAL_SERVER_ERROR, "internal error in mcproof".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_the_page_does_not_know_is_kept() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let before =
            ServerSpec { env: vec![pair("STAGE", "one"), pair("OLD", "x")], headers: vec![pair("X-Key", "k")], ..ServerSpec::default() };
        let changed = |changes: Changes| {
            let mut spec = before.clone();
            changes.apply(&mut spec);
            spec
        };
        let spec =
            changed(Changes { env: Some(vec![pair("STAGE", ""), pair("NEW", "n")]), cwd: Some("sub".to_owned()), ..Changes::default() });
        assert_eq!(spec.env, [pair("STAGE", "one"), pair("NEW", "n")]);
        assert_eq!((spec.headers, spec.cwd), (before.headers.clone(), Some("sub".to_owned())));
        let spec = changed(Changes { headers: Some(vec![pair("X-Key", "")]), cwd: Some(String::new()), ..Changes::default() });
        assert_eq!((spec.env, spec.headers, spec.cwd), (before.env.clone(), before.headers.clone(), None));
    }
}
