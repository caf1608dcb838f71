//! In with a token, and out again.

use super::{Chrome, Fault, html};
use crate::store::audit::{self, AuditEvent};
use crate::web::decisions::Decision;
use crate::web::guard::{self, Anonymous};
use crate::web::{Peer, State};
use askama::Template;
use axum::Form;
use axum::extract::{Extension, Query, State as Shared};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;

#[derive(Template)]
#[template(path = "login.html")]
struct Page {
    chrome: Chrome,
    next: String,
    problem: &'static str,
    takes_tokens: bool,
}

#[derive(Debug, Default, Deserialize)]
pub(in crate::web) struct Next {
    #[serde(default)]
    next: String,
}

pub(in crate::web) async fn page(
    Shared(state): Shared<State>,
    Extension(anonymous): Extension<Anonymous>,
    Query(query): Query<Next>,
) -> Response {
    // Where nobody has to log in, there is nothing to do here.
    if guard::is_open(&state.config()) {
        return Redirect::to(own(&query.next)).into_response();
    }
    show(&state, &anonymous, &query.next, "")
}

fn show(state: &State, anonymous: &Anonymous, next: &str, problem: &'static str) -> Response {
    html(&Page {
        chrome: Chrome::public(state, &anonymous.seal, "Log in"),
        next: own(next).to_owned(),
        problem,
        takes_tokens: state.config().login.takes_tokens(),
    })
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct Enter {
    token: String,
    #[serde(default)]
    next: String,
}

pub(in crate::web) async fn enter(
    Shared(state): Shared<State>,
    Extension(anonymous): Extension<Anonymous>,
    peer: Option<Extension<Peer>>,
    Form(form): Form<Enter>,
) -> Result<Response, Fault> {
    let now = state.now();
    match guard::session(&state.config(), form.token.trim(), now) {
        Some((name, cookie)) => {
            let event = AuditEvent { who: &name, via: "login", action: "log in", subject: "" };
            let entry = &audit::new_id(now);
            state.decide(Decision::WriteDown { entry, event }).await?;
            state.decide(Decision::WriteOutcome { entry, event, outcome: "done" }).await?;
            Ok(([(header::SET_COOKIE, cookie)], Redirect::to(own(&form.next))).into_response())
        }
        None if state.inner.refusals.count(peer.map(|Extension(peer)| peer), now) => {
            let why = "too many wrong tokens: wait a minute, or use a valid one";
            Err(Fault::Refused(StatusCode::TOO_MANY_REQUESTS, why.to_owned()))
        }
        None => {
            let page = show(&state, &anonymous, &form.next, "This token is not valid.");
            Ok((StatusCode::FORBIDDEN, page).into_response())
        }
    }
}

/// Ends the login here and in every copy of it.
pub(in crate::web) async fn leave(Shared(state): Shared<State>, headers: HeaderMap) -> Result<Response, Fault> {
    if let Some((session, until)) = guard::current(&headers) {
        state.store.end_login(session, until).await?;
    }
    Ok(([(header::SET_COOKIE, guard::no_session(&state.config()))], Redirect::to("/login")).into_response())
}

/// A path of ours; nobody is sent elsewhere.
fn own(next: &str) -> &str {
    let is_own = next.starts_with('/') && !next[1..].starts_with(['/', '\\']) && !next.contains(|character: char| character.is_control());
    if is_own { next } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_to_another_site() {
        for (next, expected) in [
            ("/targets/a?span=7d", "/targets/a?span=7d"),
            ("", "/"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("javascript:alert(1)", "/"),
            ("/\t/evil.example", "/"),
        ] {
            assert_eq!(own(next), expected, "{next}");
        }
    }
}
