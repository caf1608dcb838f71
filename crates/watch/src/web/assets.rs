//! The style and the script of all pages: they stand in this binary, and browsers keep them as long as they are the same.

use super::State;
use axum::extract::{Path, State as Shared};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};

const STYLE: &str = include_str!("assets/watch.css");
const SCRIPT: &str = include_str!("assets/watch.js");

/// A proof mark.
const ICON: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\"><rect width=\"16\" height=\"16\" rx=\"4\" fill=\"#0b5cad\"/>\
    <path d=\"M4 8.5l2.7 2.7L12 5.5\" fill=\"none\" stroke=\"#fff\" stroke-width=\"2\"/></svg>";

/// The names of the files hold a hash of what is in them.
pub(super) struct Assets {
    style_text: String,
    pub(super) style: String,
    pub(super) script: String,
}

impl Default for Assets {
    fn default() -> Self {
        let style_text = format!("{}{STYLE}", mcproof_report::html::TOKENS);
        Self { style: format!("watch-{}.css", hash(&style_text)), script: format!("watch-{}.js", hash(SCRIPT)), style_text }
    }
}

pub(super) async fn file(Shared(state): Shared<State>, Path(file): Path<String>) -> Response {
    let assets = &state.inner.assets;
    let (forever, once) = ("public, max-age=31536000, immutable", "no-cache");
    let (kind, text, keep) = match file {
        file if file == assets.style => ("text/css; charset=utf-8", assets.style_text.clone(), forever),
        file if file == assets.script => ("text/javascript; charset=utf-8", SCRIPT.to_owned(), forever),
        file if file == "icon.svg" => ("image/svg+xml", ICON.to_owned(), once),
        // For the pages that tell of a fault and know nothing else.
        file if file == "watch.css" => ("text/css; charset=utf-8", assets.style_text.clone(), once),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, keep)], text).into_response()
}

fn hash(text: &str) -> String {
    Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
