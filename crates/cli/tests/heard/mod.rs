//! What a server that is written by hand hears over HTTP/1.1.

use serde_json::Value;
use std::io::BufRead;

/// The message of the next request. `None` if the client has left, or what it sends is no request with a body.
pub(crate) fn message(stream: &mut impl BufRead) -> Option<Value> {
    let (mut length, mut line) = (0, String::new());
    while line != "\r\n" {
        line.clear();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).unwrap_or_default())
}
