//! Tokens of the API: who has one, and a form to give one away. A token is shown once.

use super::{Chrome, Fault, html};
use crate::role::Role;
use crate::web::State;
use crate::web::guard::{self, Identity};
use crate::web::shown::{self, Html};
use askama::Template;
use axum::Form;
use axum::extract::{Extension, Path, State as Shared};
use axum::http::StatusCode;
use axum::response::{Redirect, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

#[derive(Template)]
#[template(path = "tokens.html")]
struct Page {
    chrome: Chrome,
    tokens: Vec<Token>,
    fresh: Option<String>,
}

struct Token {
    name: String,
    link: String,
    role: &'static str,
    created: Html,
}

pub(in crate::web) async fn page(Shared(state): Shared<State>, Extension(identity): Extension<Identity>) -> Result<Response, Fault> {
    show(&state, &identity, None).await
}

async fn show(state: &State, identity: &Identity, fresh: Option<String>) -> Result<Response, Fault> {
    let now = state.now();
    let tokens = state.store.tokens().await?;
    let page = Page {
        chrome: Chrome::new(state, identity, "tokens", "Tokens"),
        tokens: tokens
            .iter()
            .map(|token| Token {
                name: shown::plain(&token.name),
                link: shown::segment(&token.name),
                role: token.role.word(),
                created: shown::when(now, token.created),
            })
            .collect(),
        fresh,
    };
    Ok(html(&page))
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct Add {
    name: String,
    role: String,
}

pub(in crate::web) async fn add(
    Shared(state): Shared<State>,
    Extension(identity): Extension<Identity>,
    Form(form): Form<Add>,
) -> Result<Response, Fault> {
    let refuse = |why: &str| Fault::Refused(StatusCode::UNPROCESSABLE_ENTITY, why.to_owned());
    let name = form.name.trim();
    let role = Role::of_word(&form.role).ok_or_else(|| refuse("the role must be `viewer`, `operator` or `admin`"))?;
    if name.is_empty() || name.len() > 100 {
        return Err(refuse("the name of a token must have 1 to 100 bytes"));
    }
    let secret = format!("mcproof_{}", URL_SAFE_NO_PAD.encode(guard::random::<32>()));
    if !state.store.add_token(name, &secret, role, state.now()).await? {
        return Err(refuse("a token with this name already exists"));
    }
    show(&state, &identity, Some(secret)).await
}

pub(in crate::web) async fn remove(Shared(state): Shared<State>, Path(name): Path<String>) -> Result<Redirect, Fault> {
    state.store.remove_token(&name).await?;
    Ok(Redirect::to("/tokens"))
}
