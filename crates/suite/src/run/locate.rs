//! Where a server listens that chooses its port by itself: a pattern over the lines that it prints. Starts nothing.

use crate::interpolate_text;
use crate::judge::regex_reason;
use mcproof_client::UrlFinder;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use url::Url;

/// Takes the port from the first group of a pattern, and makes the URL with it: `template` has `${port}` in its place.
///
/// # Errors
/// Why the pattern is none.
pub fn locate_by(pattern: &str, template: &str) -> Result<UrlFinder, String> {
    match regex::bytes::Regex::new(pattern) {
        Ok(pattern) if pattern.captures_len() > 1 => Ok(locate(pattern, template.to_owned())),
        Ok(_) => Err("it has no group for the port, such as (\\d+)".into()),
        Err(error) => Err(regex_reason(&error)),
    }
}

pub(super) fn locate(pattern: regex::bytes::Regex, template: String) -> UrlFinder {
    Arc::new(move |line| {
        let port: u16 = std::str::from_utf8(pattern.captures(line)?.get(1)?.as_bytes()).ok()?.parse().ok()?;
        let scope: Map<String, Value> = Map::from_iter([("port".to_owned(), json!(port))]);
        Url::parse(&interpolate_text(&template, &scope).ok()?).ok()
    })
}
