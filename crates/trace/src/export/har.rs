//! HAR 1.2. An HTTP exchange is an entry as it was. What went over pipes has no HTTP: there, each request is an entry that is made up, with
//! a URL like `stdio://server/tools/call/name`, and `_mcproof.mapped` says so.

use super::ExportError;
use super::time::{after, milliseconds, start};
use crate::calls::{Call, CallKind};
use crate::line::TracedFrame;
use crate::manifest::SessionKey;
use crate::reader::Trace;
use crate::stream::{CallStream, Item};
use jiff::Timestamp;
use mcproof_record::{Direction, ExchangeId, FrameBody, Raw};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

/// Bytes of the events of one response that its entry has.
const LONGEST_STREAM: usize = 4 << 20;

/// Writes a trace as HAR, entry by entry.
///
/// # Errors
/// If the trace cannot be read to its end, or the entries cannot be written.
pub fn write_har(trace: Trace, out: &mut dyn Write) -> Result<(), ExportError> {
    let began = start(trace.manifest());
    let version = trace.manifest().mcproof.clone();
    let creator = json!({ "name": "mcproof", "version": version });
    write!(out, r#"{{"log":{{"version":"1.2","creator":{creator},"pages":[],"entries":["#)?;
    let mut writing = Entries { out, count: 0 };
    let mut exchanges: BTreeMap<(SessionKey, ExchangeId), Exchange> = BTreeMap::new();
    let mut stream = CallStream::new(trace);
    while let Some(item) = stream.next() {
        match item? {
            Item::Frame(frame) => {
                let offset = stream.session(frame.session).map_or(Duration::ZERO, |session| session.at);
                if let Some(ended) = gather(&mut exchanges, frame) {
                    writing.entry(&ended.entry(began, offset))?;
                }
            }
            Item::Call(call) if call.http.is_none() && call.kind == CallKind::Request => {
                let session = stream.session(call.session);
                let (server, transport) =
                    session.map_or(("server", "stdio"), |session| (session.server.as_str(), session.transport.as_str()));
                let offset = session.map_or(Duration::ZERO, |session| session.at);
                writing.entry(&mapped(&call, server, transport, after(began, offset + call.start)))?;
            }
            _ => {}
        }
    }
    for ((session, _), exchange) in exchanges {
        let offset = stream.session(session).map_or(Duration::ZERO, |session| session.at);
        writing.entry(&exchange.entry(began, offset))?;
    }
    writing.out.write_all(b"\n]}}\n")?;
    Ok(writing.out.flush()?)
}

struct Entries<'a> {
    out: &'a mut dyn Write,
    count: u64,
}

impl Entries<'_> {
    fn entry(&mut self, entry: &Value) -> Result<(), ExportError> {
        let comma = if self.count == 0 { "" } else { "," };
        self.count += 1;
        Ok(write!(self.out, "{comma}\n{entry}")?)
    }
}

/// An HTTP exchange, as far as it was seen.
struct Exchange {
    session: SessionKey,
    start: Duration,
    first: Option<Duration>,
    end: Duration,
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Raw,
    status: u16,
    response_headers: Vec<(String, String)>,
    content: Vec<u8>,
    size: usize,
    error: Option<String>,
}

fn gather(exchanges: &mut BTreeMap<(SessionKey, ExchangeId), Exchange>, frame: TracedFrame) -> Option<Exchange> {
    let TracedFrame { session, at, body, .. } = frame;
    if let FrameBody::HttpRequest { exchange, method, url, headers, body } = body {
        let begun = Exchange {
            session,
            start: at,
            first: None,
            end: at,
            method,
            url,
            headers,
            body,
            status: 0,
            response_headers: Vec::new(),
            content: Vec::new(),
            size: 0,
            error: None,
        };
        exchanges.insert((session, exchange), begun);
        return None;
    }
    let (id, bytes) = match body {
        FrameBody::HttpResponse { exchange, status, headers } => {
            let known = exchanges.get_mut(&(session, exchange))?;
            (known.status, known.response_headers, known.first, known.end) = (status, headers, Some(at), at);
            return None;
        }
        FrameBody::HttpBody { exchange, bytes } | FrameBody::SseEvent { exchange, bytes, .. } => (exchange, bytes),
        FrameBody::HttpEnd { exchange, error } => {
            let mut ended = exchanges.remove(&(session, exchange))?;
            (ended.end, ended.error) = (at, error);
            return Some(ended);
        }
        _ => return None,
    };
    let known = exchanges.get_mut(&(session, id))?;
    known.end = at;
    known.size += bytes.len();
    let room = LONGEST_STREAM.saturating_sub(known.content.len());
    // A body is there as a whole; of a stream that never ends, the beginning is.
    if known.content.is_empty() || bytes.len() <= room {
        known.content.extend_from_slice(bytes.as_bytes());
    }
    None
}

impl Exchange {
    fn entry(&self, began: Timestamp, offset: Duration) -> Value {
        let wait = self.first.unwrap_or(self.end).saturating_sub(self.start);
        let receive = self.end.saturating_sub(self.first.unwrap_or(self.end));
        let mut note = json!({ "session": self.session, "mapped": false });
        if let Some(error) = &self.error {
            note["error"] = error.as_str().into();
        }
        let mut request = json!({
            "method": self.method, "url": self.url, "httpVersion": "HTTP/1.1", "cookies": [], "headers": pairs(&self.headers),
            "queryString": query(&self.url), "headersSize": -1, "bodySize": self.body.len(),
        });
        if !self.body.is_empty() {
            let kind = header(&self.headers, "content-type").unwrap_or("application/octet-stream");
            request["postData"] = json!({ "mimeType": kind, "params": [], "text": self.body.to_text() });
        }
        let kind = header(&self.response_headers, "content-type").unwrap_or("");
        json!({
            "startedDateTime": after(began, offset + self.start).to_string(),
            "time": milliseconds(wait) + milliseconds(receive),
            "request": request,
            "response": {
                "status": self.status, "statusText": "", "httpVersion": "HTTP/1.1", "cookies": [], "headers": pairs(&self.response_headers),
                "content": content(&self.content, kind),
                "redirectURL": header(&self.response_headers, "location").unwrap_or(""), "headersSize": -1, "bodySize": self.size,
            },
            "cache": {},
            "timings": { "send": 0, "wait": milliseconds(wait), "receive": milliseconds(receive) },
            "_mcproof": note,
        })
    }
}

/// A request without HTTP.
fn mapped(call: &Call, server: &str, transport: &str, began: Timestamp) -> Value {
    let time = call.duration().map_or(0.0, milliseconds);
    let encoded = |text: &str| text.bytes().map(encode).collect::<String>();
    let target = call.target.as_deref().map(|target| format!("/{}", encoded(target))).unwrap_or_default();
    let url = format!("{transport}://{}/{}{target}", encoded(if server.is_empty() { "server" } else { server }), call.method);
    let response = call.response.clone().unwrap_or_default();
    let (status, text) = if call.response.is_some() { (200, "OK") } else { (0, "") };
    json!({
        "startedDateTime": began.to_string(),
        "time": time,
        "request": {
            "method": "POST", "url": url, "httpVersion": "HTTP/1.1", "cookies": [], "headers": [], "queryString": [],
            "headersSize": -1, "bodySize": call.request.len(),
            "postData": { "mimeType": "application/json", "params": [], "text": call.request.to_text() },
        },
        "response": {
            "status": status, "statusText": text, "httpVersion": "HTTP/1.1", "cookies": [], "headers": [],
            "content": content(response.as_bytes(), "application/json"),
            "redirectURL": "", "headersSize": -1, "bodySize": response.len(),
        },
        "cache": {},
        "timings": { "send": 0, "wait": time, "receive": 0 },
        "_mcproof": {
            "session": call.session, "call": call.key, "mapped": true, "status": call.status.name(), "method": call.method,
            "from": if call.direction == Direction::ToServer { "client" } else { "server" },
        },
    })
}

fn content(bytes: &[u8], kind: &str) -> Value {
    json!({ "size": bytes.len(), "mimeType": kind, "text": String::from_utf8_lossy(bytes) })
}

fn pairs(headers: &[(String, String)]) -> Value {
    headers.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
}

fn header<'a>(headers: &'a [(String, String)], wanted: &str) -> Option<&'a str> {
    headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.as_str())
}

fn query(url: &str) -> Value {
    let Some((_, query)) = url.split('#').next().and_then(|url| url.split_once('?')) else { return json!([]) };
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        json!({ "name": name, "value": value })
    };
    query.split('&').filter(|part| !part.is_empty()).map(pair).collect()
}

fn encode(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    }
}
