//! The API: what the dashboard shows and does, for programs. A refusal says what is wrong and what to do about it.

pub(super) mod notices;
pub(super) mod operations;
pub(super) mod silences;
pub(super) mod targets;

use crate::store::StoreFailure;
use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

/// Why something was not done.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    error: &'static str,
    problem: String,
    remedy: String,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, error: &'static str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { status, error, problem: problem.into(), remedy: remedy.into() }
    }

    pub(super) fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", format!("unknown {what}"), format!("list the existing ones, and check the {what}"))
    }

    pub(super) fn invalid(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", problem, remedy)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({ "error": self.error, "problem": self.problem, "remedy": self.remedy });
        let mut response = (self.status, Json(body)).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            let value = axum::http::HeaderValue::from_static("Bearer realm=\"mcproof watch\"");
            response.headers_mut().insert(axum::http::header::WWW_AUTHENTICATE, value);
        }
        response
    }
}

impl From<StoreFailure> for ApiError {
    fn from(failure: StoreFailure) -> Self {
        let problem = format!("the database does not respond: {failure}");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "database", problem, "try again later; `/healthz` shows when it does")
    }
}

pub(super) fn refuse(status: StatusCode, error: &'static str, problem: &str, remedy: &str) -> Response {
    ApiError::new(status, error, problem, remedy).into_response()
}

/// A body of JSON; what is wrong with it is told as any other refusal.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        match Json::<T>::from_request(request, state).await {
            Ok(Json(value)) => Ok(Self(value)),
            Err(rejection) => {
                let remedy = "send JSON as described in docs/guide/monitoring-api.md, with `content-type: application/json`";
                Err(ApiError::new(rejection.status(), "invalid", rejection.body_text(), remedy))
            }
        }
    }
}

/// Parameters behind the `?`.
pub(super) struct QueryParameters<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParameters<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(value)) => Ok(Self(value)),
            Err(rejection) => {
                let remedy = "use the parameters that are described in docs/guide/monitoring-api.md";
                Err(ApiError::new(rejection.status(), "invalid", rejection.body_text(), remedy))
            }
        }
    }
}

/// The name or id in the path.
pub(super) struct PathName(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for PathName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Self(name)),
            Err(rejection) => {
                Err(ApiError::new(rejection.status(), "invalid", rejection.body_text(), "write the name as UTF-8, percent-encoded"))
            }
        }
    }
}

pub(super) fn answer(status: StatusCode, body: impl Serialize) -> Response {
    (status, Json(body)).into_response()
}

pub(super) async fn nothing() -> ApiError {
    ApiError::not_found("path")
}

/// A path of ours, and nothing that is done there.
pub(super) async fn other_method(method: Method) -> ApiError {
    let problem = format!("{method} is not allowed here");
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method", problem, "use one of the methods in the `Allow` header")
}
