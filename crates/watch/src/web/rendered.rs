//! Pages that are the same for everybody: made once for all who read them, as long as what they are made from is the same. Bounded in
//! bytes, however many pages there are. Knows no page.

use super::pages::Fault;
use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Of all pages together.
const LARGEST: usize = 16 * 1024 * 1024;

#[derive(Default)]
pub(super) struct Rendered {
    /// The one that was asked for last is the last one.
    kept: Mutex<VecDeque<CachedPage>>,
    /// One page is made at a time: what that takes is taken once, however many wait for it.
    making: tokio::sync::Mutex<()>,
}

struct CachedPage {
    name: String,
    version: String,
    page: Page,
}

/// As it is sent to those who take gzip, and to all others. Clones share the bytes.
#[derive(Clone)]
pub(super) struct Page {
    packed: Bytes,
    plain: Bytes,
}

impl Rendered {
    /// The page of this name. It is made anew if what is kept of it is of another version.
    pub(super) async fn page(&self, name: &str, version: &str, make: impl AsyncFnOnce() -> Result<String, Fault>) -> Result<Page, Fault> {
        if let Some(page) = self.known(name, version) {
            return Ok(page);
        }
        let _making = self.making.lock().await;
        if let Some(page) = self.known(name, version) {
            return Ok(page);
        }
        let page = Page::new(make().await?);
        self.keep(CachedPage { name: name.to_owned(), version: version.to_owned(), page: page.clone() });
        Ok(page)
    }

    fn known(&self, name: &str, version: &str) -> Option<Page> {
        let mut kept = self.lock();
        let at = kept.iter().position(|kept| kept.name == name && kept.version == version)?;
        let found = kept.remove(at)?;
        let page = found.page.clone();
        kept.push_back(found);
        Some(page)
    }

    fn keep(&self, new: CachedPage) {
        let mut kept = self.lock();
        kept.retain(|kept| kept.name != new.name);
        kept.push_back(new);
        while kept.iter().map(|kept| kept.page.size()).sum::<usize>() > LARGEST {
            kept.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<CachedPage>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Page {
    fn new(text: String) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let written = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
        Self { packed: written.expect("a Vec takes all bytes").into(), plain: text.into() }
    }

    fn size(&self) -> usize {
        self.packed.len() + self.plain.len()
    }

    pub(super) fn response(&self, asked: &HeaderMap) -> Response {
        let is_packed = takes_gzip(asked);
        let body = if is_packed { &self.packed } else { &self.plain };
        let mut response = Body::from(body.clone()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        if is_packed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
        response
    }
}

/// RFC 9110, 12.5.3.
fn takes_gzip(asked: &HeaderMap) -> bool {
    let all = asked.get_all(header::ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && parts.all(|part| part.strip_prefix("q=").is_none_or(|weight| weight.parse::<f32>().is_ok_and(|weight| weight > 0.0)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[tokio::test]
    async fn a_page_is_made_once_for_all_and_again_when_it_is_another_one() {
        let rendered = Rendered::default();
        let made = Cell::new(0);
        let ask = async |name: &str, version: &str| {
            let make = async || {
                made.set(made.get() + 1);
                tokio::task::yield_now().await;
                Ok("page".repeat(100))
            };
            rendered.page(name, version, make).await.unwrap()
        };
        let all = futures_util::future::join_all((0..50).map(|_| ask("1", "a"))).await;
        assert_eq!(made.get(), 1);
        assert!(all.iter().all(|page| page.plain.as_ptr() == all[0].plain.as_ptr()), "they share the bytes");
        ask("2", "a").await;
        ask("1", "b").await;
        ask("1", "b").await;
        assert_eq!(made.get(), 3);
        assert_eq!(rendered.lock().len(), 2, "what is out of date is forgotten");
    }

    #[tokio::test]
    async fn what_was_not_asked_for_lately_makes_room() {
        let rendered = Rendered::default();
        let large = || async { Ok("x".repeat(LARGEST / 3)) };
        for name in ["1", "2", "1", "3"] {
            rendered.page(name, "a", async || large().await).await.unwrap();
        }
        let names: Vec<String> = rendered.lock().iter().map(|kept| kept.name.clone()).collect();
        assert_eq!(names, ["1", "3"]);
    }

    #[test]
    fn gzip_is_for_those_who_take_it() {
        for (value, expected) in [
            ("gzip", true),
            ("br, GZIP", true),
            ("gzip;q=0.5", true),
            ("gzip; q=0", false),
            ("gzip;q=0.000", false),
            ("br", false),
            ("", false),
            ("gzipped", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, value.parse().unwrap())]);
            assert_eq!(takes_gzip(&headers), expected, "{value}");
        }
    }
}
