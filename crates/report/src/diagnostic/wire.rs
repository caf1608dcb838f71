//! Frames as one line each: time, direction and content, cut to the width. Reads messages only to show them shorter.

use crate::Style;
use crate::escape::columns;
use crate::style::{CYAN, DIM, GREEN, RED, count};
use mcproof_record::{Direction, Evidence, ExchangeId, Frame, FrameBody, Raw};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Rows for a fact that neither side sent.
const FACT_ROWS: usize = 3;

pub(super) fn lines(evidence: &Evidence, style: &Style, room: usize) -> Vec<String> {
    all(&evidence.frames, evidence.omitted, style, room)
}

/// A line for each frame, and one for those that were left out before them.
pub(super) fn all(frames: &[Frame], omitted: u64, style: &Style, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if omitted > 0 {
        let text = format!("{} {}", style.ellipsis(), count(omitted, "earlier frame"));
        lines.push(style.paint(DIM, &text));
    }
    let times: Vec<String> = frames.iter().map(|frame| format!("+{:.3}s", frame.at.as_secs_f64())).collect();
    let widest = times.iter().map(String::len).max().unwrap_or_default();
    for (index, (frame, time)) in frames.iter().zip(&times).enumerate() {
        let earlier = &frames[..index];
        let Some(line) = describe(frame, earlier) else { continue };
        let (arrow, color) = match frame.direction {
            Direction::ToServer => (style.pick("→", "->"), CYAN),
            Direction::FromServer => (style.pick("←", "<-"), GREEN),
            Direction::Local => (style.pick("•", "* "), DIM),
        };
        let time = style.paint(DIM, &format!("{time:>widest$}"));
        let indent = widest + 1 + columns(arrow) + 1;
        // The differences usually show the message already; a local fact is shown only here.
        let rows = if frame.direction == Direction::Local { FACT_ROWS } else { 1 };
        let mut head = format!("{time} {} ", style.paint(color, arrow));
        for row in style.wrap(&line.text, room.saturating_sub(indent).max(10), rows) {
            let row = if line.is_bad { style.paint(RED, &row) } else { row };
            lines.push(format!("{head}{row}"));
            head = " ".repeat(indent);
        }
    }
    lines
}

/// A frame in one line, not yet safe, and whether it is likely the problem. None if there is nothing to show.
pub(crate) fn summary(frame: &Frame, all: &[Frame]) -> Option<(String, bool)> {
    let earlier = &all[..all.partition_point(|other| other.id < frame.id)];
    describe(frame, earlier).map(|line| (line.text, line.is_bad))
}

struct FrameLine {
    text: String,
    /// It is likely the problem.
    is_bad: bool,
}

fn describe(frame: &Frame, earlier: &[Frame]) -> Option<FrameLine> {
    let mut is_bad = false;
    let text = match &frame.body {
        FrameBody::Line { bytes, unterminated } => {
            is_bad = *unterminated;
            let end = if *unterminated { "(no line feed at the end) " } else { "" };
            format!("{end}{}", line(bytes))
        }
        FrameBody::Stderr { bytes } => format!("stderr: {}", bytes.to_text()),
        FrameBody::Stdout { bytes } => format!("stdout: {}", bytes.to_text()),
        FrameBody::HttpRequest { method, url, headers, body, .. } => {
            let unusual = unusual_headers(url, headers, body);
            format!("{method} {}{unusual} {}", path_of(url), document(body)).trim_end().to_owned()
        }
        FrameBody::HttpResponse { exchange, status, headers } => {
            is_bad = *status >= 400;
            let content_type = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
            let content_type = match content_type {
                Some((_, value)) => format!(" {value}"),
                // Others, such as 202, mostly have no content.
                None if *status == 200 => " (no content type)".to_owned(),
                None => String::new(),
            };
            let time = since_request(frame, *exchange, earlier).map(|time| format!(" {time}")).unwrap_or_default();
            format!("{}{status}{content_type}{time}", request_of(*exchange, earlier))
        }
        FrameBody::HttpBody { bytes, .. } if bytes.is_empty() => return None,
        FrameBody::HttpBody { bytes, .. } => document(bytes),
        FrameBody::SseEvent { bytes, event, data, .. } => match (event.as_deref(), data.as_ref().map(Raw::to_text)) {
            (None | Some("message"), Some(data)) => message(&data).unwrap_or_else(|| format!("data: {data}")),
            (Some(event), Some(data)) => format!("event {event}: {data}"),
            // Clients ignore it: a comment that keeps the connection open, or a malformed event, which is shown raw.
            (_, None) => bytes.to_text().trim_end().to_owned(),
        },
        FrameBody::HttpEnd { exchange, error: Some(error) } => {
            is_bad = true;
            let time = since_request(frame, *exchange, earlier).map(|time| format!("failed after {time}: ")).unwrap_or_default();
            format!("{}{time}{error}", request_of(*exchange, earlier))
        }
        FrameBody::HttpEnd { exchange, error: None } => {
            if !is_event_stream(*exchange, earlier) {
                return None;
            }
            "the event stream ended".to_owned()
        }
        FrameBody::Spawned { command, .. } => format!("started {}", command.join(" ")),
        FrameBody::Exited { code, signal } => {
            is_bad = *code != Some(0);
            exit(*code, *signal)
        }
        FrameBody::Closed { pipe } => match pipe.as_str() {
            "stdin" => "mcproof closed the stdin of the server".to_owned(),
            pipe => format!("the server closed its {pipe}"),
        },
        FrameBody::Signalled { signal } => format!("mcproof sent {signal}"),
        FrameBody::Note { text } => text.clone(),
    };
    Some(FrameLine { text, is_bad })
}

/// A line of a stdio server. One with anything around its JSON is shown raw, since that may be what is wrong with it.
fn line(bytes: &Raw) -> String {
    let text = bytes.to_text();
    let is_bare = text.starts_with('{') && text.ends_with('}');
    message(&text).filter(|_| is_bare).unwrap_or_else(|| text.into_owned())
}

fn document(bytes: &Raw) -> String {
    let text = bytes.to_text();
    message(&text).unwrap_or_else(|| text.trim_end().to_owned())
}

fn exit(code: Option<i32>, signal: Option<i32>) -> String {
    match (code, signal) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => match signal_name(signal) {
            Some(name) => format!("killed by {name}"),
            None => format!("killed by signal {signal}"),
        },
        (None, None) => "exited".to_owned(),
    }
}

/// The signals whose number is the same on every supported system.
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return None,
    })
}

/// ` [origin: https://a.example]`: the headers in which a request differs from what most clients send.
fn unusual_headers(url: &str, headers: &[(String, String)], body: &Raw) -> String {
    let header = |wanted: &str| headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.as_str());
    let shown = |name: &str, value: &str| format!(" [{name}: {value}]");
    let mut text = header("origin").map(|origin| shown("origin", origin)).unwrap_or_default();
    // Through a proxy, clients name the proxy.
    let is_foreign = |host: &&str| !host.eq_ignore_ascii_case(authority_of(url)) && !LOOPBACK.iter().any(|name| host.starts_with(name));
    text += &header("host").filter(is_foreign).map(|host| shown("host", host)).unwrap_or_default();
    if message(&body.to_text()).is_none() {
        return text;
    }
    let is_usual = |accept: &str| ["application/json", "text/event-stream"].iter().all(|kind| accept.contains(kind));
    text += &match header("accept") {
        Some(accept) if is_usual(accept) => String::new(),
        Some(accept) => shown("accept", accept),
        // Without any header, nothing is known of them.
        None if headers.is_empty() => String::new(),
        None => " [no accept]".to_owned(),
    };
    let other_type = header("content-type").filter(|kind| !kind.eq_ignore_ascii_case("application/json"));
    text += &other_type.map(|kind| shown("content-type", kind)).unwrap_or_default();
    // No version is older.
    let strange = header("mcp-protocol-version").filter(|version| version.len() != "2024-11-05".len() || *version < "2024-11-05");
    text + &strange.map(|version| shown("mcp-protocol-version", version)).unwrap_or_default()
}

const LOOPBACK: [&str; 3] = ["127.", "localhost", "[::1]"];

/// `127.0.0.1:8000` of `http://127.0.0.1:8000/mcp`.
fn authority_of(url: &str) -> &str {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = after_scheme.split('/').next().unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// `/mcp` of `http://127.0.0.1:8000/mcp`.
fn path_of(url: &str) -> &str {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    after_scheme.find('/').map_or("/", |slash| &after_scheme[slash..])
}

/// `POST /mcp: `, so that an HTTP response shows its request.
fn request_of(exchange: ExchangeId, earlier: &[Frame]) -> String {
    earlier
        .iter()
        .find_map(|frame| match &frame.body {
            FrameBody::HttpRequest { exchange: id, method, url, .. } if *id == exchange => Some(format!("{method} {}: ", path_of(url))),
            _ => None,
        })
        .unwrap_or_default()
}

fn since_request(frame: &Frame, exchange: ExchangeId, earlier: &[Frame]) -> Option<String> {
    let sent = earlier.iter().find(|earlier| matches!(&earlier.body, FrameBody::HttpRequest { exchange: id, .. } if *id == exchange))?;
    Some(format!("{} ms", frame.at.saturating_sub(sent.at).as_millis()))
}

fn is_event_stream(exchange: ExchangeId, earlier: &[Frame]) -> bool {
    earlier.iter().any(|frame| matches!(&frame.body, FrameBody::SseEvent { exchange: id, .. } if *id == exchange))
}

/// A JSON-RPC message without its envelope: `tools/call #2 {…}`, `#2 result {…}`. None for everything that is not exactly such a
/// message, so that everything else is shown as received.
fn message(text: &str) -> Option<String> {
    let message: Envelope = serde_json::from_str(text).ok()?;
    let id = message.id.map(|id| format!("#{}", id.get()));
    if message.jsonrpc.get() != r#""2.0""# {
        return None;
    }
    let (head, body) = match (message.method, id, message.result, message.error) {
        (Some(method), Some(id), None, None) => (format!("{} {id}", plain(method)?), message.params),
        (Some(method), None, None, None) => (plain(method)?, message.params),
        (None, Some(id), Some(result), None) if message.params.is_none() => (format!("{id} result"), Some(result)),
        (None, Some(id), None, Some(error)) if message.params.is_none() => (format!("{id} error"), Some(error)),
        _ => return None,
    };
    Some(body.map_or_else(|| head.clone(), |body| format!("{head} {}", compact(body.get()))))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: &'a RawValue,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// A member that is `null` is present, unlike one that is missing.
fn present<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn plain(method: &RawValue) -> Option<String> {
    serde_json::from_str(method.get()).ok()
}

/// JSON without the white space between its tokens; nothing else is changed.
fn compact(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut in_string = false;
    let mut is_escaped = false;
    for character in json.chars() {
        if in_string {
            in_string = is_escaped || character != '"';
            is_escaped = !is_escaped && character == '\\';
        } else if character.is_ascii_whitespace() {
            continue;
        } else {
            in_string = character == '"';
        }
        text.push(character);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(message(text).as_deref(), expected, "{text}");
    }

    #[test]
    fn a_message_is_shown_without_its_envelope() {
        check(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}"#, Some(r#"tools/call #2 {"name":"a"}"#));
        check(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, Some("notifications/initialized"));
        check(r#"{"jsonrpc":"2.0","id":"x","result":{ "b" : [ 1.50, "a \" b" ] }}"#, Some(r#"#"x" result {"b":[1.50,"a \" b"]}"#));
        check(r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no"}}"#, Some(r#"#2 error {"code":-32602,"message":"no"}"#));
        check(r#"{"jsonrpc":"2.0","id":2,"result":123456789012345678901234567890}"#, Some("#2 result 123456789012345678901234567890"));
        check(r#"{"jsonrpc":"2.0","id":2,"method":"a","params":null}"#, Some("a #2 null"));
    }

    #[test]
    fn other_text_is_shown_as_received() {
        check("", None);
        check("Server listening", None);
        check(r#"{"id":2,"result":{}}"#, None);
        check(r#"{"jsonrpc":2.0,"id":2,"result":{}}"#, None);
        check(r#"{"jsonrpc":"2.0","id":2,"result":{},"error":{}}"#, None);
        check(r#"{"jsonrpc":"2.0","id":2,"result":{},"extra":1}"#, None);
        check(r#"{"jsonrpc":"2.0","id":2,"id":3,"result":{}}"#, None);
        check(r#"[{"jsonrpc":"2.0","id":2,"result":{}}]"#, None);
    }

    #[test]
    fn what_a_request_is_tried_with_is_shown() {
        let check = |headers: &[(&str, &str)], body: &str, expected: &str| {
            let headers: Vec<(String, String)> = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            assert_eq!(unusual_headers("http://127.0.0.1:8000/mcp", &headers, &Raw::from(body)), expected);
        };
        let (ping, both) = (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, ("accept", "application/json, text/event-stream"));
        let usual = [("host", "127.0.0.1:8000"), ("content-type", "application/json"), both, ("mcp-protocol-version", "2025-11-25")];
        check(&[], ping, "");
        check(&usual, ping, "");
        check(&[("origin", "https://a.example"), both], ping, " [origin: https://a.example]");
        check(&[("Host", "a.example"), both], ping, " [host: a.example]");
        check(&[("host", "127.0.0.1:8000")], ping, " [no accept]");
        check(&[("accept", "application/json")], ping, " [accept: application/json]");
        check(&[("content-type", "text/plain"), both], ping, " [content-type: text/plain]");
        check(&[both, ("mcp-protocol-version", "1900-01-01")], ping, " [mcp-protocol-version: 1900-01-01]");
        check(&[("accept", "text/html")], "a=b", "");
    }

    #[test]
    fn a_path_is_what_follows_the_authority() {
        assert_eq!(path_of("http://127.0.0.1:8000/mcp?x=1"), "/mcp?x=1");
        assert_eq!(path_of("http://127.0.0.1:8000"), "/");
        assert_eq!(path_of("/messages"), "/messages");
    }
}
