//! The messages in a transcript, in order, with what HTTP says of them. Knows frames, no sessions.

use mcproof_record::{Direction, Frame, FrameBody, FrameId, Transcript, read_message};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    Client,
    Server,
    /// Not a message: the process or the connection ended.
    Nobody,
}

pub(super) struct WireMessage {
    pub(super) frame: FrameId,
    pub(super) at: Duration,
    pub(super) sender: Sender,
    pub(super) value: Value,
    /// The HTTP exchange that carried it.
    pub(super) exchange: Option<u64>,
    /// Of the HTTP response that carried it.
    pub(super) status: Option<u16>,
    /// An HTTP response that carried no message.
    pub(super) plain: Option<PlainResponse>,
}

pub(super) struct PlainResponse {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// What a client can do something with; the others are about the connection or the body as it was.
const HEADERS_KEPT: [&str; 3] = ["content-type", "www-authenticate", "retry-after"];

pub(super) fn read(transcript: &Transcript) -> Vec<WireMessage> {
    let is_endpoint = |frame: &Frame| matches!(&frame.body, FrameBody::SseEvent { event: Some(event), .. } if event == "endpoint");
    let is_sse = transcript.frames.iter().any(is_endpoint);
    let mut heads: HashMap<u64, (u16, Vec<(String, String)>)> = HashMap::new();
    let (mut found, mut sent_again) = (Vec::new(), HashSet::new());
    for frame in &transcript.frames {
        let sender = match frame.direction {
            Direction::ToServer => Sender::Client,
            Direction::FromServer => Sender::Server,
            Direction::Local => Sender::Nobody,
        };
        let mut push = |sender, exchange: Option<u64>, status, bytes: &[u8]| {
            let messages = values(bytes);
            let is_message = !messages.is_empty();
            for value in messages {
                found.push(WireMessage { frame: frame.id, at: frame.at, sender, value, exchange, status, plain: None });
            }
            is_message
        };
        match &frame.body {
            FrameBody::Line { bytes, .. } => drop(push(sender, None, None, bytes.as_bytes())),
            FrameBody::HttpRequest { exchange, body, .. } => drop(push(Sender::Client, Some(exchange.0), None, body.as_bytes())),
            FrameBody::HttpResponse { exchange, status, headers } => {
                heads.insert(exchange.0, (*status, headers.clone()));
            }
            FrameBody::HttpBody { exchange, bytes } => {
                let head = heads.remove(&exchange.0);
                let status = head.as_ref().map(|(status, _)| *status);
                if !push(Sender::Server, Some(exchange.0), status, bytes.as_bytes())
                    && let Some((status, headers)) = head
                    && !is_acknowledgement(status, is_sse)
                {
                    found.push(plain(frame, exchange.0, status, &headers, bytes.as_bytes()));
                }
            }
            FrameBody::SseEvent { exchange, event, data: Some(data), .. } if event.as_deref() != Some("endpoint") => {
                heads.remove(&exchange.0);
                push(Sender::Server, Some(exchange.0), None, data.as_bytes());
            }
            // What came of it is in the exchange in which it went out again.
            FrameBody::HttpEnd { exchange, .. } if frame.body.sent_again().is_some() => {
                sent_again.insert(exchange.0);
            }
            FrameBody::HttpEnd { exchange, error } => {
                let head = heads.remove(&exchange.0);
                match (error, head) {
                    (Some(_), _) => found.push(nobody(frame, Some(exchange.0))),
                    (None, Some((status, headers))) if status >= 400 => found.push(plain(frame, exchange.0, status, &headers, b"")),
                    (None, _) => {}
                }
            }
            FrameBody::Exited { .. } => found.push(nobody(frame, None)),
            _ => {}
        }
    }
    found.retain(|message: &WireMessage| message.exchange.is_none_or(|exchange| !sent_again.contains(&exchange)));
    found
}

/// A message was taken, and is answered elsewhere if at all. What servers say then is no response to a request: over HTTP+SSE "Accepted" or "OK".
fn is_acknowledgement(status: u16, is_sse: bool) -> bool {
    status == 202 || (is_sse && (200..300).contains(&status))
}

fn plain(frame: &Frame, exchange: u64, status: u16, headers: &[(String, String)], body: &[u8]) -> WireMessage {
    let kept = headers.iter().filter(|(name, _)| HEADERS_KEPT.iter().any(|known| name.eq_ignore_ascii_case(known)));
    let plain = PlainResponse { status, headers: kept.cloned().collect(), body: body.to_vec() };
    WireMessage {
        frame: frame.id,
        at: frame.at,
        sender: Sender::Server,
        value: Value::Null,
        exchange: Some(exchange),
        status: None,
        plain: Some(plain),
    }
}

fn nobody(frame: &Frame, exchange: Option<u64>) -> WireMessage {
    WireMessage { frame: frame.id, at: frame.at, sender: Sender::Nobody, value: Value::Null, exchange, status: None, plain: None }
}

/// The messages in some bytes: none, one, or a batch of them.
fn values(bytes: &[u8]) -> Vec<Value> {
    match read_message(bytes) {
        Ok(Value::Array(values)) => values.into_iter().filter(Value::is_object).collect(),
        Ok(value @ Value::Object(_)) if value.get("jsonrpc").is_some() => vec![value],
        _ => Vec::new(),
    }
}
