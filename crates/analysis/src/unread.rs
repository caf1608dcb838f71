//! What a server sent that no client reads, though it looks like what was asked for: the remedy for each. Knows transcripts only.

use mcproof_protocol::methods;
use mcproof_record::{ExchangeId, FrameBody, Raw, Transcript};
use serde_json::Value;

/// The remedy for a handshake that failed.
pub(crate) fn of_handshake(transcript: &Transcript) -> Option<&'static str> {
    of_endpoint(transcript).or_else(|| of_events(transcript)).or_else(|| of_discovery(transcript))
}

/// The endpoint of HTTP+SSE, as a JSON text or object in place of a URL.
fn of_endpoint(transcript: &Transcript) -> Option<&'static str> {
    let is_quoted = |body: &FrameBody| match body {
        FrameBody::SseEvent { event: Some(name), data: Some(data), .. } if name == "endpoint" => {
            data.as_bytes().trim_ascii_start().starts_with(b"{") || data.as_bytes().trim_ascii_start().starts_with(b"\"")
        }
        _ => false,
    };
    let is_told = transcript.frames.iter().any(|frame| is_quoted(&frame.body));
    is_told.then_some("the data of the `endpoint` event is not a URL: send the path itself, without quotes or JSON")
}

/// The remedy for events that cannot be told apart.
pub(crate) fn of_events(transcript: &Transcript) -> Option<&'static str> {
    let is_escaped = |body: &FrameBody| matches!(body, FrameBody::SseEvent { bytes, .. } if has_escaped_line_end(bytes.as_bytes()));
    let is_told = transcript.frames.iter().any(|frame| is_escaped(&frame.body));
    is_told.then_some("write line feeds into events, not a backslash and an `n`")
}

/// Whether fields follow one another after the two characters of an escape in place of a line feed: `event: message\ndata: {}\n\n`.
pub fn has_escaped_line_end(bytes: &[u8]) -> bool {
    const BEFORE_DATA: &[u8] = b"\\ndata:";
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.starts_with(b"event:") && line.windows(BEFORE_DATA.len()).any(|part| part == BEFORE_DATA)
        || bytes.starts_with(b"data:") && bytes.trim_ascii_end().ends_with(b"\\n\\n")
}

/// A response to `server/discover` that is one of the modern era, and does not do, so that the server was taken for an older one.
fn of_discovery(transcript: &Transcript) -> Option<&'static str> {
    let mut found = None;
    for frame in &transcript.frames {
        match &frame.body {
            FrameBody::HttpRequest { exchange, body, .. } if is_request_of(body, methods::SERVER_DISCOVER) => {
                found = found.or(of_discovery_over_http(transcript, *exchange));
            }
            FrameBody::Line { bytes, .. } => found = found.or(of_versions(bytes)),
            _ => {}
        }
    }
    found
}

fn of_discovery_over_http(transcript: &Transcript, asked: ExchangeId) -> Option<&'static str> {
    let mut media_type = None;
    let is_cut =
        transcript.frames.iter().any(|frame| matches!(&frame.body, FrameBody::HttpEnd { exchange, error: Some(_) } if *exchange == asked));
    if is_cut {
        return None;
    }
    transcript.frames.iter().find_map(|frame| match &frame.body {
        FrameBody::HttpResponse { exchange, status: 200, headers } if *exchange == asked => {
            let header = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
            media_type = header.map(|(_, value)| value.to_ascii_lowercase());
            None
        }
        FrameBody::HttpBody { exchange, bytes } if *exchange == asked => {
            let is_json = media_type.as_deref().is_some_and(|media_type| media_type.starts_with("application/json"));
            match result_of(bytes) {
                Some(_) if !is_json => Some("set `Content-Type: application/json` for the response to `server/discover`, which is JSON"),
                _ => of_versions(bytes),
            }
        }
        FrameBody::SseEvent { exchange, data: Some(data), .. } if *exchange == asked => match serde_json::from_slice::<serde::de::IgnoredAny>(data.as_bytes()) {
            Ok(_) => of_versions(data),
            Err(_) => Some("the event with the response to `server/discover` is not JSON: write the whole message on lines that begin with `data: `"),
        },
        _ => None,
    })
}

/// What is wrong with the result of `server/discover`, if a message is that.
fn of_versions(message: &Raw) -> Option<&'static str> {
    let result = result_of(message)?;
    let is_of_discovery = result.get("supportedVersions").is_some() || result.get("resultType").is_some();
    let lists_versions = result.get("supportedVersions").is_some_and(Value::is_array);
    (is_of_discovery && !lists_versions)
        .then_some("list the revisions that the server supports in `supportedVersions` of the result of `server/discover`")
}

fn result_of(message: &Raw) -> Option<Value> {
    read(message)?.get_mut("result").map(Value::take)
}

/// A message of a usual size: a tree takes many times the memory of its text.
fn read(message: &Raw) -> Option<Value> {
    const LONGEST: usize = 64 * 1024;
    let bytes = message.as_bytes();
    (bytes.len() <= LONGEST).then(|| serde_json::from_slice(bytes).ok()).flatten()
}

pub(crate) fn is_request_of(message: &Raw, method: &str) -> bool {
    read(message).is_some_and(|message| message.get("method").is_some_and(|named| named == method))
}
