//! The pages: what a identity asks for, read from the store and put into a template.

pub(super) mod audit;
pub(super) mod change;
pub(super) mod evidence;
pub(super) mod incident;
pub(super) mod login;
pub(super) mod maintenance;
pub(super) mod notices;
pub(super) mod overview;
pub(super) mod silences;
pub(super) mod status;
pub(super) mod target;
pub(super) mod tokens;

use super::guard::Identity;
use super::{LONGEST, State};
use crate::moment::Moment;
use crate::role::Role;
use crate::store::StoreFailure;
use crate::store::read::Strip;
use askama::Template;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// As long as somebody says in a form.
fn lasting(minutes: u32) -> Result<Duration, Fault> {
    let refuse = || Fault::Refused(StatusCode::UNPROCESSABLE_ENTITY, format!("the duration is out of range: use 1 to {LONGEST} minutes"));
    (1..=LONGEST).contains(&minutes).then(|| Duration::from_secs(u64::from(minutes) * 60)).ok_or_else(refuse)
}

/// What is around every page.
pub(super) struct Chrome {
    pub(super) title: String,
    /// Which entry of the menu it belongs to.
    pub(super) section: &'static str,
    pub(super) user: String,
    pub(super) seal: String,
    pub(super) may_write: bool,
    /// Tokens, and the audit log.
    pub(super) may_manage: bool,
    pub(super) may_leave: bool,
    pub(super) style: String,
    pub(super) script: String,
    /// The target whose changes make this page load anew; `*` for all, nothing for none.
    pub(super) follows: String,
    /// Our clock, in milliseconds.
    pub(super) now: i64,
}

impl Chrome {
    pub(super) fn new(state: &State, identity: &Identity, section: &'static str, title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            section,
            user: super::shown::plain(&identity.name),
            seal: identity.seal.clone(),
            may_write: identity.role >= Role::Operator,
            may_manage: identity.role == Role::Admin,
            may_leave: identity.may_leave,
            style: state.inner.assets.style.clone(),
            script: state.inner.assets.script.clone(),
            follows: String::new(),
            now: state.now().0,
        }
    }

    pub(super) fn following(self, target: &str) -> Self {
        Self { follows: target.to_owned(), ..self }
    }

    /// For pages that everybody may see.
    pub(super) fn public(state: &State, seal: &str, title: impl Into<String>) -> Self {
        let identity = Identity { name: String::new(), role: Role::Viewer, seal: seal.to_owned(), may_leave: false };
        Self::new(state, &identity, "", title)
    }
}

/// Hours of all targets, read again when they are a minute old.
#[derive(Default)]
pub(super) struct Overview {
    hours: Option<(Moment, Arc<BTreeMap<String, Strip>>)>,
    /// Numbers of tools by hash of the contract.
    tools: BTreeMap<String, usize>,
}

/// Why there is no page.
#[derive(Debug)]
pub(crate) enum Fault {
    NotFound(&'static str),
    Refused(StatusCode, String),
    Store(StoreFailure),
}

impl From<StoreFailure> for Fault {
    fn from(failure: StoreFailure) -> Self {
        Self::Store(failure)
    }
}

#[derive(Template)]
#[template(path = "fault.html")]
struct FaultPage {
    title: String,
    problem: String,
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let (status, title, problem) = match self {
            Self::NotFound(what) => (StatusCode::NOT_FOUND, "Not found".to_owned(), format!("Unknown {what}.")),
            Self::Refused(status, why) => (status, status.canonical_reason().unwrap_or("Refused").to_owned(), super::shown::plain(&why)),
            Self::Store(failure) => {
                (StatusCode::SERVICE_UNAVAILABLE, "The database does not respond".to_owned(), super::shown::plain(&failure.to_string()))
            }
        };
        let page = FaultPage { title, problem };
        (status, html(&page)).into_response()
    }
}

pub(super) async fn nothing() -> Fault {
    Fault::NotFound("page")
}

/// What a form has with commas between.
pub(super) fn comma_list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect()
}

pub(super) fn html(page: &impl Template) -> Response {
    match page.render() {
        Ok(text) => ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
