//! The routes. Everything below `/api/` needs the token; see [`crate::access`].

use crate::access::{Access, guard};
use crate::apps::{NewView, Opened};
use crate::comparison::{Comparison, ComparisonFailure};
use crate::connection::Tokens;
use crate::hub::{Hub, HubFailure};
use crate::requests::{self, Message, Outcome, Request};
use crate::spec::{NewTest, OTHER_SERVER, SavedTest, ServerSpec, SessionSteps, SharedSession, SuiteChange, check_choices};
use crate::viewer::{ShownSession, Viewer};
use crate::{asks, assets, check, comparison, connection, policy, sign_in, stream, subscriptions, tasks, test_runs};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use mcproof_client::jsonrpc::RpcError;
use mcproof_record::Diagnostic;
use serde::{Deserialize, Serialize};
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
        .route("/api/connections/{id}/subscription", post(subscribe))
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
        .route("/api/sessions/{id}/steps", get(steps))
        .route("/api/sessions/{id}/page", get(page))
        .route("/api/tests/run", post(run_tests))
        .route("/api/tests/stop", post(stop_tests))
        .route("/api/tests/select", post(select_tests))
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
    /// What the configuration file sets, and the user has removed.
    without_env: Vec<String>,
    without_headers: Vec<String>,
    /// An empty one is none.
    client_id: Option<String>,
    /// An empty one stays as it is, if the client does.
    client_secret: Option<String>,
    /// An empty one is what the server names.
    scope: Option<String>,
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
    /// `resolved` is what the configuration file said when the server was started last, if a file has it.
    fn apply(self, spec: &mut ServerSpec, resolved: Option<&ServerSpec>) {
        let Self {
            era,
            transport,
            revision,
            name,
            env,
            headers,
            without_env,
            without_headers,
            client_id,
            client_secret,
            scope,
            cwd,
            target,
            sign_in_anew: _,
        } = self;
        // What the file has said of a server that becomes another one is from now on said here.
        let mut file = resolved.filter(|_| spec.server.is_some());
        if let Some(NewTarget { command, url }) = target {
            if let Some(file) = file.take() {
                (spec.env, spec.headers) = (file.env.clone(), file.headers.clone());
            }
            (spec.command, spec.url, spec.server, spec.config) = (command, url, None, None);
        }
        spec.era = era.or(spec.era.take());
        spec.transport = transport.or(spec.transport.take());
        spec.revision = revision.or(spec.revision.take()).filter(|revision| !revision.is_empty());
        spec.name = name.unwrap_or(std::mem::take(&mut spec.name));
        if let Some(id) = client_id.map(|id| Some(id).filter(|id| !id.is_empty())).filter(|id| *id != spec.client_id) {
            (spec.client_id, spec.client_secret) = (id, None);
        }
        if let Some(secret) = client_secret.filter(|secret| !secret.is_empty() && spec.client_id.is_some()) {
            spec.client_secret = Some(secret);
        }
        spec.scope = scope.or(spec.scope.take()).filter(|scope| !scope.is_empty());
        spec.cwd = cwd.or(spec.cwd.take()).filter(|cwd| !cwd.is_empty());
        let of_file = spec.server.is_some();
        let said = |pairs: fn(&ServerSpec) -> &Pairs| match file {
            _ if !of_file => Said::Nothing,
            None => Said::Unknown,
            Some(file) => Said::Names(pairs(file).iter().map(|(name, _)| name.clone()).collect()),
        };
        let (in_env, in_headers) = (said(|file| &file.env), said(|file| &file.headers));
        change_pairs(&mut spec.env, &mut spec.without_env, env, without_env, &in_env, |one, other| one == other);
        change_pairs(&mut spec.headers, &mut spec.without_headers, headers, without_headers, &in_headers, str::eq_ignore_ascii_case);
    }
}

type Pairs = Vec<(String, String)>;

/// Which names the configuration file of a server sets.
enum Said {
    /// No file has this server.
    Nothing,
    /// It has never been read.
    Unknown,
    Names(Vec<String>),
}

/// The page does not know the values, and sends an empty one for what stays as it is: what was set here before, or what the configuration file
/// says, which is not repeated here. What is removed here, and not given again, is left out of what the file says.
fn change_pairs(
    pairs: &mut Pairs,
    left_out: &mut Vec<String>,
    given: Option<Pairs>,
    removed: Vec<String>,
    said: &Said,
    same: fn(&str, &str) -> bool,
) {
    left_out.extend(removed);
    if let Some(given) = given {
        let stays = |name: &str| match said {
            Said::Nothing => false,
            Said::Unknown => true,
            Said::Names(names) => names.iter().chain(left_out.iter()).any(|known| same(known, name)),
        };
        let keep = |(name, value): (String, String)| {
            if !value.is_empty() {
                return Some((name, value));
            }
            match pairs.iter().rfind(|(known, _)| same(known, &name)) {
                Some((_, kept)) => Some((name, kept.clone())),
                None => (!stays(&name)).then_some((name, value)),
            }
        };
        let names: Vec<String> = given.iter().map(|(name, _)| name.clone()).collect();
        let kept: Pairs = given.into_iter().filter_map(keep).collect();
        *pairs = kept;
        left_out.retain(|name| !names.iter().any(|listed| same(listed, name)));
    }
    if matches!(said, Said::Nothing) {
        left_out.clear();
    }
    left_out.sort();
    left_out.dedup();
}

async fn open(State(hub): Shared, Path(id): Path<u64>, Json(changes): Json<Changes>) -> Result<Json<Value>, Refused> {
    let known = hub.state().connection(id).map(|connection| (connection.spec.clone(), connection.resolved.clone()));
    let (mut spec, resolved) = known.ok_or(HubFailure::NoConnection)?;
    let tokens = if changes.sign_in_anew { Tokens::Discarded } else { Tokens::Kept };
    changes.apply(&mut spec, resolved.as_ref());
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

/// In the modern era; before it, a subscription is a request.
async fn subscribe(State(hub): Shared, Path(id): Path<u64>, Json(wish): Json<subscriptions::Wish>) -> Result<Json<Outcome>, Refused> {
    let subscribing = tokio::spawn(async move { subscriptions::change(&hub, id, wish).await });
    Ok(Json(subscribing.await.map_err(|_| internal())??))
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

/// The requests of a session as the steps of a test.
async fn steps(State(hub): Shared, Path(session): Path<u64>) -> Result<Json<SessionSteps>, Refused> {
    let session = hub.shared(session)?;
    let written = tokio::task::spawn_blocking(move || hub.connector.steps(&session)).await.map_err(|_| internal())?;
    written.map(Json).map_err(|diagnostic| unwritten(&diagnostic))
}

/// A session as one file that opens in a browser without a server.
async fn page(State(hub): Shared, Path(id): Path<u64>) -> Result<Response, Refused> {
    let SharedSession { title, transport, transcript, .. } = hub.shared(id)?;
    let version = hub.version();
    let written = tokio::task::spawn_blocking(move || {
        let mut page = Vec::new();
        let mut viewer = Viewer::begin(&mut page, version)?;
        viewer.frames(id, &transcript.frames)?;
        viewer.end(&[ShownSession { id, title, transport }], &[])?;
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

/// A filter expression, as that of `mcproof test --filter`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Selection {
    filter: String,
}

async fn select_tests(State(hub): Shared, Json(Selection { filter }): Json<Selection>) -> Result<Json<Value>, Refused> {
    let runner = hub.runner().ok_or_else(|| Refused(StatusCode::NOT_FOUND, "there are no tests here".to_owned()))?;
    let (ids, plans) = hub.state().tests.as_ref().map(test_runs::Tests::plans).unwrap_or_default();
    let selected = runner.select(&filter, &plans).map_err(|diagnostic| unwritten(&diagnostic))?;
    let tests: Vec<u64> = ids.into_iter().zip(selected).filter_map(|(id, is_selected)| is_selected.then_some(id)).collect();
    Ok(Json(json!({ "tests": tests })))
}

async fn stop_tests(State(hub): Shared) -> Json<Value> {
    test_runs::stop(&hub);
    Json(json!({}))
}

async fn test(State(hub): Shared, Path(id): Path<u64>) -> Result<Json<test_runs::Details>, Refused> {
    let found = hub.state().tests.as_ref().and_then(|tests| tests.details(id));
    found.map(Json).ok_or_else(|| Refused(StatusCode::NOT_FOUND, "there is no such test".to_owned()))
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

/// What came of saving a test. That it is refused is an answer, and no failure of the request: browsers log those as errors of the page.
#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Saving {
    Saved(SavedTest),
    Refused {
        refused: String,
        /// Whether the user may insist on it.
        may_insist: bool,
    },
}

async fn save(State(hub): Shared, Json(test): Json<NewTest>) -> Result<Json<Saving>, Refused> {
    let saved = tokio::task::spawn_blocking(move || {
        // One after another: each reads the file that it writes.
        let _turn = hub.saving.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        hub.connector.save(&test)
    });
    Ok(Json(match saved.await.map_err(|_| internal())? {
        Ok(saved) => Saving::Saved(saved),
        Err(diagnostic) => {
            let Refused(_, refused) = unwritten(&diagnostic);
            Saving::Refused { refused, may_insist: diagnostic.code == OTHER_SERVER }
        }
    }))
}

/// The user's answer to what a server asked: one of a result and an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    #[serde(default)]
    result: Option<Map<String, Value>>,
    #[serde(default)]
    error: Option<Refusal>,
    /// Values in it that the form declares as passwords.
    #[serde(default)]
    secrets: Vec<String>,
}

#[derive(Deserialize)]
struct Refusal {
    code: i64,
    message: String,
}

async fn answer(State(hub): Shared, Path(id): Path<u64>, Json(answer): Json<Answer>) -> Result<Json<Value>, Refused> {
    let given = match (answer.result, answer.error) {
        (Some(result), None) => Ok(Value::Object(result)),
        (None, Some(Refusal { code, message })) => Err(RpcError { code, message, data: None }),
        _ => return Err(Refused(StatusCode::UNPROCESSABLE_ENTITY, "an answer is a result or an error".to_owned())),
    };
    match asks::answer(&hub, id, given, &answer.secrets) {
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
            changes.apply(&mut spec, None);
            spec
        };
        let spec =
            changed(Changes { env: Some(vec![pair("STAGE", ""), pair("NEW", "n")]), cwd: Some("sub".to_owned()), ..Changes::default() });
        assert_eq!(spec.env, [pair("STAGE", "one"), pair("NEW", "n")]);
        assert_eq!((spec.headers, spec.cwd), (before.headers.clone(), Some("sub".to_owned())));
        let spec = changed(Changes { headers: Some(vec![pair("X-Key", "")]), cwd: Some(String::new()), ..Changes::default() });
        assert_eq!((spec.env, spec.headers, spec.cwd), (before.env.clone(), before.headers.clone(), None));
    }

    #[test]
    fn what_a_configuration_file_sets_stays_until_it_is_removed() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let file = ServerSpec {
            command: names(&["node", "server.js"]),
            env: vec![pair("TOKEN", "secret"), pair("STAGE", "one"), pair("STAGE", "two")],
            headers: vec![pair("X-Key", "k")],
            ..ServerSpec::default()
        };
        let before = ServerSpec { server: Some("one".to_owned()), env: vec![pair("STAGE", "two")], ..ServerSpec::default() };
        let changed = |before: &ServerSpec, changes: Changes| {
            let mut spec = before.clone();
            changes.apply(&mut spec, Some(&file));
            spec
        };
        let listed = |all: &[(&str, &str)]| Some(all.iter().map(|(name, value)| pair(name, value)).collect::<Vec<_>>());
        // An empty line keeps, and a new name may be empty.
        let spec = changed(&before, Changes { env: listed(&[("TOKEN", ""), ("STAGE", ""), ("NEW", "")]), ..Changes::default() });
        assert_eq!((spec.env, spec.without_env), (vec![pair("STAGE", "two"), pair("NEW", "")], Vec::new()));
        let spec = changed(&before, Changes { headers: listed(&[("x-key", "")]), ..Changes::default() });
        assert!(spec.headers.is_empty());
        // A line that is removed removes, until it is there again.
        let without = changed(
            &before,
            Changes {
                env: listed(&[("STAGE", "")]),
                without_env: names(&["TOKEN"]),
                without_headers: names(&["X-Key"]),
                ..Changes::default()
            },
        );
        assert_eq!((&without.env, &without.without_env), (&before.env, &names(&["TOKEN"])));
        assert_eq!(without.without_headers, ["X-Key"]);
        let spec = changed(&without, Changes { env: listed(&[("TOKEN", ""), ("STAGE", "")]), ..Changes::default() });
        assert_eq!((spec.env, spec.without_env), (before.env.clone(), Vec::new()));
        // Another command gets what the file said, where the lines are still there.
        let target = Some(NewTarget { command: names(&["deno"]), url: None });
        let spec = changed(&before, Changes { target, env: listed(&[("TOKEN", ""), ("STAGE", ""), ("NEW", "")]), ..Changes::default() });
        assert_eq!((spec.server, spec.env), (None, vec![pair("TOKEN", "secret"), pair("STAGE", "two"), pair("NEW", "")]));
    }

    #[test]
    fn a_secret_belongs_to_its_client() {
        let text = |text: &str| Some(text.to_owned());
        let mut spec = ServerSpec::default();
        let mut changed = |client_id: Option<String>, client_secret: Option<String>| {
            Changes { client_id, client_secret, ..Changes::default() }.apply(&mut spec, None);
            (spec.client_id.clone(), spec.client_secret.clone())
        };
        assert_eq!(changed(None, text("s")), (None, None));
        assert_eq!(changed(text("one"), text("s")), (text("one"), text("s")));
        assert_eq!(changed(text("one"), text("")), (text("one"), text("s")));
        assert_eq!(changed(None, None), (text("one"), text("s")));
        assert_eq!(changed(text("two"), text("")), (text("two"), None));
        assert_eq!(changed(text(""), None), (None, None));
        assert_eq!(ServerSpec { client_secret: text("s"), ..ServerSpec::default() }.masked().client_secret, text(""));
    }
}
