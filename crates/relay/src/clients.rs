//! Whose frames are whose: a proxy that listens serves several clients, one after the other or at the same time, and records them together.
//! Knows frames and the headers of sessions, no messages but the first one.

use mcproof_record::{Direction, ExchangeId, Frame, FrameBody};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// The frames of each client, in the order in which they came. A session over HTTP has an id, an event stream an endpoint; without either it
/// begins with `initialize`. What belongs to nobody (processes, other requests) is in all of them.
pub fn frames_of_clients(frames: &[Frame]) -> Vec<Vec<Frame>> {
    let owners = Owners::of(frames);
    if owners.count < 2 {
        return vec![frames.to_vec()];
    }
    let owner = |frame: &Frame| exchange_of(&frame.body).and_then(|exchange| owners.of_exchange.get(&exchange).copied());
    let of_client = |client: usize| frames.iter().filter(move |frame| owner(frame).is_none_or(|owner| owner == client)).cloned().collect();
    (0..owners.count).map(of_client).collect()
}

/// All requests of 2026-07-28 without a session: what its clients send does not tell one from the other.
const MODERN: &str = "modern";

#[derive(Default)]
struct Owners {
    /// Numbers of clients, in their order.
    names: HashMap<String, usize>,
    count: usize,
    of_exchange: BTreeMap<ExchangeId, usize>,
    /// Addresses to which clients of HTTP+SSE send their messages.
    endpoints: Vec<(String, usize)>,
    /// The client of a server without sessions.
    latest: Option<usize>,
}

impl Owners {
    fn of(frames: &[Frame]) -> Self {
        let mut owners = Self::default();
        frames.iter().for_each(|frame| owners.look(frame));
        owners
    }

    fn look(&mut self, frame: &Frame) {
        match &frame.body {
            FrameBody::HttpRequest { exchange, url, headers, body, .. } if frame.direction == Direction::ToServer => {
                let message = serde_json::from_slice::<Value>(body.as_bytes()).unwrap_or_default();
                let of_endpoint = self.endpoints.iter().find(|(address, _)| url.ends_with(address.as_str())).map(|(_, owner)| *owner);
                let owner = match session_id(headers) {
                    Some(id) => Some(self.named(id)),
                    None if of_endpoint.is_some() => of_endpoint,
                    None if is_modern(&message) => Some(self.named(MODERN.to_owned())),
                    // Its response may have an id.
                    None if message["method"] == "initialize" => None,
                    None if message.is_object() || message.is_array() => self.latest,
                    None => None,
                };
                if let Some(owner) = owner {
                    self.of_exchange.insert(*exchange, owner);
                } else if message["method"] == "initialize" {
                    self.opening(*exchange);
                }
            }
            FrameBody::HttpResponse { exchange, headers, .. } => {
                if let Some(id) = session_id(headers) {
                    let opening = self.names.get(&opening_name(*exchange)).copied();
                    match opening {
                        // What was begun without an id has one from here on.
                        Some(owner) => {
                            self.names.remove(&opening_name(*exchange));
                            self.names.insert(id, owner);
                            self.latest = None;
                        }
                        None => {
                            let owner = self.named(id);
                            self.of_exchange.entry(*exchange).or_insert(owner);
                        }
                    }
                }
            }
            FrameBody::SseEvent { exchange, event: Some(name), data: Some(data), .. } if name == "endpoint" => {
                let owner = match self.of_exchange.get(exchange) {
                    Some(owner) => *owner,
                    None => self.named(format!("stream {}", exchange.0)),
                };
                self.of_exchange.insert(*exchange, owner);
                self.endpoints.push((path_of(&data.to_text()), owner));
            }
            _ => {}
        }
    }

    fn named(&mut self, name: String) -> usize {
        let count = &mut self.count;
        *self.names.entry(name).or_insert_with(|| {
            *count += 1;
            *count - 1
        })
    }

    fn opening(&mut self, exchange: ExchangeId) {
        let owner = self.named(opening_name(exchange));
        self.of_exchange.insert(exchange, owner);
        self.latest = Some(owner);
    }
}

fn opening_name(exchange: ExchangeId) -> String {
    format!("opened by {}", exchange.0)
}

fn session_id(headers: &[(String, String)]) -> Option<String> {
    headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id")).map(|(_, id)| format!("id {id}"))
}

fn is_modern(message: &Value) -> bool {
    message.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion").is_some()
}

/// Without scheme and host.
fn path_of(address: &str) -> String {
    let address = address.trim();
    match address.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or_else(String::new, |place| rest[place..].to_owned()),
        None => address.to_owned(),
    }
}

fn exchange_of(body: &FrameBody) -> Option<ExchangeId> {
    match body {
        FrameBody::HttpRequest { exchange, .. }
        | FrameBody::HttpResponse { exchange, .. }
        | FrameBody::HttpBody { exchange, .. }
        | FrameBody::SseEvent { exchange, .. }
        | FrameBody::HttpEnd { exchange, .. } => Some(*exchange),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    fn request(exchange: u64, session: Option<&str>, body: &Value) -> (Direction, FrameBody) {
        let headers = session.into_iter().map(|id| ("Mcp-Session-Id".to_owned(), id.to_owned())).collect();
        let (method, url) = ("POST".to_owned(), "http://127.0.0.1:1/mcp".to_owned());
        (
            Direction::ToServer,
            FrameBody::HttpRequest { exchange: ExchangeId(exchange), method, url, headers, body: body.to_string().into_bytes().into() },
        )
    }

    fn response(exchange: u64, session: Option<&str>) -> (Direction, FrameBody) {
        let headers = session.into_iter().map(|id| ("mcp-session-id".to_owned(), id.to_owned())).collect();
        (Direction::FromServer, FrameBody::HttpResponse { exchange: ExchangeId(exchange), status: 200, headers })
    }

    /// The exchanges of each client.
    fn check(frames: Vec<(Direction, FrameBody)>, expected: &[&[u64]]) {
        let frame = |(number, (direction, body))| Frame {
            id: mcproof_record::FrameId(number as u64),
            at: Duration::from_millis(number as u64),
            direction,
            body,
        };
        let frames: Vec<Frame> = frames.into_iter().enumerate().map(frame).collect();
        let of = |frames: &Vec<Frame>| {
            let mut all: Vec<u64> = frames.iter().filter_map(|frame| Some(exchange_of(&frame.body)?.0)).collect();
            all.dedup();
            all
        };
        assert_eq!(frames_of_clients(&frames).iter().map(of).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn sessions_are_told_apart_by_ids_or_by_their_beginnings() {
        let (initialize, call) = (json!({ "method": "initialize" }), json!({ "method": "tools/call" }));
        let modern = json!({ "method": "tools/call", "params": { "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } } });
        check(
            vec![
                request(1, None, &initialize),
                response(1, Some("b")),
                request(2, None, &initialize),
                response(2, Some("a")),
                request(3, Some("b"), &call),
                request(4, Some("a"), &call),
                request(5, None, &modern),
                request(6, None, &Value::Null),
            ],
            &[&[1, 3, 6], &[2, 4, 6], &[5, 6]],
        );
        // Without ids, what comes later belongs to who came last.
        check(
            vec![
                request(1, None, &initialize),
                response(1, None),
                request(2, None, &call),
                request(3, None, &initialize),
                response(3, None),
                request(4, None, &call),
            ],
            &[&[1, 2], &[3, 4]],
        );
        check(vec![request(1, None, &call), request(2, None, &modern)], &[&[1, 2]]);
    }

    #[test]
    fn clients_of_event_streams_are_told_apart_by_their_endpoints() {
        let endpoint = |exchange, address: &str| {
            let (event, data) = (Some("endpoint".to_owned()), Some(address.as_bytes().to_vec().into()));
            (
                Direction::FromServer,
                FrameBody::SseEvent { exchange: ExchangeId(exchange), bytes: b"".to_vec().into(), event, data, id: None },
            )
        };
        let post = |exchange, address: &str| {
            let (method, url) = ("POST".to_owned(), format!("http://127.0.0.1:1{address}"));
            (
                Direction::ToServer,
                FrameBody::HttpRequest { exchange: ExchangeId(exchange), method, url, headers: Vec::new(), body: b"{}".to_vec().into() },
            )
        };
        let frames =
            vec![endpoint(1, "/m?s=1"), post(2, "/m?s=1"), endpoint(3, "http://127.0.0.1:1/m?s=2"), post(4, "/m?s=2"), post(5, "/m?s=1")];
        check(frames, &[&[1, 2, 5], &[3, 4]]);
    }
}
