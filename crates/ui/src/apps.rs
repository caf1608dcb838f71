//! Where the apps of servers run (MCP Apps, `ui://` resources): each server has an origin of its own, a port of loopback that is bound once
//! one of its apps is opened. A view is a page for one app: a frame that passes messages on, and in it the app's HTML under its policy. Knows
//! nothing of the messages; the page is their host.

mod policy;

use crate::access::{AccessFailure, Token};
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use policy::{Declared, HostProfile, Policy, Withheld, policy};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Between the page and the app.
const PROXY_SCRIPT: &str = include_str!("apps/proxy.js");
/// In front of the app's own scripts: tells what goes wrong in it.
const REPORT_SCRIPT: &str = include_str!("apps/report.js");

/// Views of one server that are kept; the oldest makes room.
const MOST_VIEWS: usize = 16;
/// Bytes of the HTML of an app.
const LARGEST_APP: usize = 16 << 20;

/// An app as the page wants it shown.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NewView {
    html: String,
    #[serde(default)]
    csp: Declared,
    #[serde(default)]
    profile: HostProfile,
}

/// Where it is.
#[derive(Serialize)]
pub(crate) struct Opened {
    url: String,
    policy: String,
    withheld: Vec<Withheld>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum AppFailure {
    #[error("the HTML of the app has more than {} MB", LARGEST_APP >> 20)]
    TooLarge,
    #[error("cannot listen for apps: {0}")]
    Listen(#[from] std::io::Error),
    #[error(transparent)]
    Token(#[from] AccessFailure),
}

struct View {
    id: String,
    html: String,
    policy: String,
}

/// The origin of one server's apps. It ends with this.
pub(crate) struct Sandbox {
    rooms: Arc<Rooms>,
    serving: JoinHandle<()>,
}

struct Rooms {
    address: SocketAddr,
    /// The origins of the page.
    ancestors: Vec<String>,
    views: Mutex<VecDeque<View>>,
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Sandbox {
    /// Binds a free port of loopback.
    pub(crate) async fn bind(ancestors: Vec<String>) -> Result<Self, AppFailure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let rooms = Arc::new(Rooms { address: listener.local_addr()?, ancestors, views: Mutex::default() });
        let router = Router::new()
            .route("/proxy.js", get(script))
            .route("/{id}", get(outer))
            .route("/{id}/view", get(inner))
            .fallback(|| async { StatusCode::NOT_FOUND })
            .layer(axum::middleware::from_fn_with_state(Arc::clone(&rooms), guard))
            .with_state(Arc::clone(&rooms));
        let serving = tokio::spawn(async move {
            // A listener of loopback that fails takes the apps of one server with it, and the page says that they do not load.
            let _ = axum::serve(listener, router.into_make_service()).await;
        });
        Ok(Self { rooms, serving })
    }

    pub(crate) fn open(&self, view: NewView) -> Result<Opened, AppFailure> {
        let NewView { html, csp, profile } = view;
        if html.len() > LARGEST_APP {
            return Err(AppFailure::TooLarge);
        }
        let Policy { header, withheld } = policy(&csp, profile, self.rooms.address, &self.rooms.ancestors);
        let id = Token::random()?.into_text();
        let opened = Opened { url: format!("http://{}/{id}", self.rooms.address), policy: header.clone(), withheld };
        let mut views = self.rooms.views();
        views.push_back(View { id, html: with_report(&html), policy: header });
        while views.len() > MOST_VIEWS {
            views.pop_front();
        }
        Ok(opened)
    }
}

impl Rooms {
    fn views(&self) -> std::sync::MutexGuard<'_, VecDeque<View>> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The app with our script in front of its own, behind its document type, whose absence or place changes how it is drawn.
fn with_report(html: &str) -> String {
    let mut at = html.len() - html.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).len();
    while html[at..].starts_with("<!--") {
        let Some(end) = html[at..].find("-->") else { break };
        at += end + 3;
        at += html[at..].len() - html[at..].trim_start().len();
    }
    let is_doctype = html[at..].get(..9).is_some_and(|begin| begin.eq_ignore_ascii_case("<!doctype"));
    let place = html[at..].find('>').filter(|_| is_doctype).map_or(0, |end| at + end + 1);
    format!("{}<script>{REPORT_SCRIPT}</script>{}", &html[..place], &html[place..])
}

/// Only who knows this very address gets anything; a name that was rebound to it does not.
async fn guard(State(rooms): State<Arc<Rooms>>, request: Request, next: axum::middleware::Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    // A worker would outlive the view that it belongs to.
    let is_worker = request.headers().contains_key("service-worker");
    let is_ours = !is_worker && host.is_some_and(|host| host == rooms.address.to_string());
    let mut response = if is_ours { next.run(request).await } else { StatusCode::MISDIRECTED_REQUEST.into_response() };
    let headers = response.headers_mut();
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
        ("x-dns-prefetch-control", "off"),
        ("permissions-policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=(), display-capture=()"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn script() -> Response {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], PROXY_SCRIPT).into_response()
}

/// The frame that passes messages on. Nothing runs in it but our script, and nothing loads in it but the one view.
async fn outer(State(rooms): State<Arc<Rooms>>, Path(id): Path<String>) -> Response {
    if !rooms.views().iter().any(|view| view.id == id) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let policy = format!(
        "default-src 'none'; script-src http://{address}/proxy.js; frame-src http://{address}/{id}/view; base-uri 'none'; \
         form-action 'none'; frame-ancestors {ancestors}; require-trusted-types-for 'script'; trusted-types 'none'",
        address = rooms.address,
        ancestors = rooms.ancestors.join(" "),
    );
    page(
        &policy,
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>app</title><script src=\"/proxy.js\"></script></html>".to_owned(),
    )
}

async fn inner(State(rooms): State<Arc<Rooms>>, Path(id): Path<String>) -> Response {
    let found = rooms.views().iter().find(|view| view.id == id).map(|view| (view.policy.clone(), view.html.clone()));
    match found {
        Some((policy, html)) => page(&policy, html),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn page(policy: &str, html: String) -> Response {
    let mut headers = HeaderMap::new();
    let policy = HeaderValue::from_str(policy).expect("policies consist of origins, which are visible ASCII");
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    (headers, html).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_stands_behind_the_document_type() {
        let check = |html: &str, before: &str| {
            let made = with_report(html);
            assert!(made.starts_with(&format!("{before}<script>")), "{html}: {made}");
            assert!(made.ends_with(&html[before.len()..]));
        };
        check("<!doctype html><html>", "<!doctype html>");
        check("\u{feff}\n<!DOCTYPE HTML>\n<p>", "\u{feff}\n<!DOCTYPE HTML>");
        check("<!-- a > b -->\n<!doctype html><p>", "<!-- a > b -->\n<!doctype html>");
        check("<p>no type", "");
        check("<!-- never ends <!doctype html>", "");
        check("", "");
        check("é", "");
    }

    #[test]
    fn reports_end_where_their_element_does() {
        assert!(!REPORT_SCRIPT.contains("</script"));
    }
}
