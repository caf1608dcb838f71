//! The built page, which is part of this program.

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};

struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! asset {
    ($name:literal, $kind:literal) => {
        Asset { name: $name, kind: $kind, bytes: include_bytes!(concat!("../assets/", $name)) }
    };
}

const PAGE: Asset = asset!("index.html", "text/html; charset=utf-8");
const ASSETS: [Asset; 2] = [asset!("app.js", "text/javascript; charset=utf-8"), asset!("app.css", "text/css; charset=utf-8")];

/// The script of the page.
pub(crate) fn script() -> &'static str {
    text(&ASSETS[0])
}

/// Its style sheet.
pub(crate) fn style() -> &'static str {
    text(&ASSETS[1])
}

fn text(asset: &Asset) -> &'static str {
    std::str::from_utf8(asset.bytes).expect("the built page is UTF-8")
}

pub(crate) async fn page() -> Response {
    served(&PAGE)
}

pub(crate) async fn asset(Path(name): Path<String>) -> Response {
    match ASSETS.iter().find(|asset| asset.name == name) {
        Some(asset) => served(asset),
        None => (StatusCode::NOT_FOUND, "there is no such file").into_response(),
    }
}

fn served(asset: &'static Asset) -> Response {
    ([(header::CONTENT_TYPE, asset.kind)], asset.bytes).into_response()
}
