//! Whose frames are whose: a proxy that listens serves several clients, one after the other or at the same time, and records them together.
//! Knows frames and the headers of sessions, no messages but the first ones.

use crate::{Direction, ExchangeId, Frame, FrameBody, read_message};
use mcproof_protocol::Revision;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// The frames of each client, in the order in which they came. A session over HTTP has an id, an event stream an endpoint; without either it
/// begins with `initialize`. What belongs to nobody (processes, other requests) is in all of them.
pub fn frames_of_clients(frames: &[Frame]) -> Vec<Vec<Frame>> {
    let owners = Owners::of(frames);
    if owners.count < 2 {
        return vec![frames.to_vec()];
    }
    let owner = |frame: &Frame| frame.body.exchange().and_then(|exchange| owners.of_exchange.get(&exchange).copied());
    // What belongs to nobody is in all of them, unless somebody has made it so much that the copies would be what is kept.
    let nobodys = frames.iter().filter(|frame| owner(frame).is_none()).count();
    let sharers = if nobodys.saturating_mul(owners.count) > MOST_COPIES { 1 } else { owners.count };
    let mut of_clients: Vec<Vec<Frame>> = vec![Vec::new(); owners.count];
    for frame in frames {
        match owner(frame) {
            Some(owner) => of_clients[owner].push(frame.clone()),
            None => of_clients.iter_mut().take(sharers).for_each(|frames| frames.push(frame.clone())),
        }
    }
    of_clients
}

/// Copies of frames that belong to nobody.
const MOST_COPIES: usize = 1_000_000;

/// Event streams whose endpoints are remembered.
const MOST_ENDPOINTS: usize = 1_000;

/// Tells the frames of each client while they come. A frame of an event stream waits until the stream has named its endpoint.
#[derive(Debug, Default)]
pub struct ClientStream {
    owners: Owners,
    /// Exchanges of which frames were given out already, with the client they were given to.
    settled: HashMap<ExchangeId, Option<usize>>,
    waiting: BTreeMap<ExchangeId, Vec<Frame>>,
}

impl ClientStream {
    /// The frames whose client is known by now, in the order in which they came: its number from 0, or `None` for what belongs to nobody.
    pub fn feed(&mut self, frame: Frame) -> Vec<(Option<usize>, Frame)> {
        let could_begin = self.owners.count == 0 || !self.owners.endpoints.is_empty();
        self.owners.look(&frame);
        let Some(exchange) = frame.body.exchange() else { return vec![(None, frame)] };
        let owner = self.owners.of_exchange.get(&exchange).copied();
        if let Some(mut frames) = self.waiting.remove(&exchange) {
            let may_follow = owner.is_none() && may_precede_endpoint(&frame.body);
            frames.push(frame);
            if may_follow {
                self.waiting.insert(exchange, frames);
                return Vec::new();
            }
            return frames.into_iter().map(|frame| self.settle(exchange, owner, frame)).collect();
        }
        let is_new = !self.settled.contains_key(&exchange);
        if is_new && owner.is_none() && could_begin && matches!(&frame.body, FrameBody::HttpRequest { method, .. } if method == "GET") {
            self.waiting.insert(exchange, vec![frame]);
            return Vec::new();
        }
        vec![self.settle(exchange, owner, frame)]
    }

    /// What still waits when no frame comes any more.
    pub fn finish(&mut self) -> Vec<Frame> {
        std::mem::take(&mut self.waiting).into_values().flatten().collect()
    }

    /// Whether a client has only asked for a discovery so far, so that its era is not known.
    pub fn is_undecided(&self, client: usize) -> bool {
        self.owners.discovering.is_some_and(|(known, _)| known == client)
    }

    /// All frames of an exchange go where its first one went.
    fn settle(&mut self, exchange: ExchangeId, owner: Option<usize>, frame: Frame) -> (Option<usize>, Frame) {
        let owner = *self.settled.entry(exchange).or_insert(owner);
        if matches!(frame.body, FrameBody::HttpEnd { .. }) {
            self.settled.remove(&exchange);
            self.owners.of_exchange.remove(&exchange);
        }
        (owner, frame)
    }
}

/// Whether the endpoint of HTTP+SSE may still come in the exchange (2024-11-05, basic/transports#http-with-sse: it is the first event).
fn may_precede_endpoint(body: &FrameBody) -> bool {
    match body {
        FrameBody::HttpResponse { status, headers, .. } => {
            let is_stream = |(name, value): &(String, String)| {
                name.eq_ignore_ascii_case("content-type") && value.to_ascii_lowercase().starts_with("text/event-stream")
            };
            (200..300).contains(status) && headers.iter().any(is_stream)
        }
        FrameBody::SseEvent { data, .. } => data.is_none(),
        _ => false,
    }
}

/// All requests of 2026-07-28 without a session: what its clients send does not tell one from the other.
const MODERN: &str = "modern";

#[derive(Debug, Default)]
struct Owners {
    /// Numbers of clients, in their order.
    names: HashMap<String, usize>,
    count: usize,
    of_exchange: BTreeMap<ExchangeId, usize>,
    /// Addresses to which clients of HTTP+SSE send their messages.
    endpoints: Vec<(String, usize)>,
    /// The client of a server without sessions.
    latest: Option<usize>,
    /// A client that has only asked whether the server speaks 2026-07-28, and its last exchange: if it does not, the client goes on with
    /// `initialize` (2026-07-28, basic/versioning, backward compatibility).
    discovering: Option<(usize, ExchangeId)>,
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
                let message = read_message(body.as_bytes()).unwrap_or_default();
                // Of streams with the same endpoint, the newest is the one that is still open.
                let of_endpoint = self.endpoints.iter().rev().find(|(address, _)| url.ends_with(address.as_str())).map(|(_, owner)| *owner);
                let owner = match session_id(headers) {
                    Some(id) => Some(self.named(id)),
                    None if of_endpoint.is_some() => of_endpoint,
                    None if is_modern(&message) => Some(self.modern(*exchange, &message)),
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
                        None if self.of_exchange.contains_key(exchange) => {}
                        None => {
                            let owner = self.named(id);
                            self.of_exchange.insert(*exchange, owner);
                        }
                    }
                }
            }
            FrameBody::HttpBody { exchange, bytes } | FrameBody::SseEvent { exchange, data: Some(bytes), .. }
                if self.discovering.is_some_and(|(_, asked)| asked == *exchange) && supports_modern(bytes.as_bytes()) =>
            {
                self.discovering = None;
            }
            FrameBody::SseEvent { exchange, event: Some(name), data: Some(data), .. } if name == "endpoint" => {
                let owner = match self.of_exchange.get(exchange) {
                    Some(owner) => *owner,
                    None => self.named(format!("stream {}", exchange.0)),
                };
                self.of_exchange.insert(*exchange, owner);
                self.endpoints.push((path_of(&data.to_text()), owner));
                if self.endpoints.len() > MOST_ENDPOINTS {
                    self.endpoints.remove(0);
                }
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

    fn modern(&mut self, exchange: ExchangeId, message: &Value) -> usize {
        let is_known = self.names.contains_key(MODERN);
        let owner = self.named(MODERN.to_owned());
        let is_discovery = message["method"] == "server/discover" && (!is_known || self.discovering.is_some());
        self.discovering = is_discovery.then_some((owner, exchange));
        owner
    }

    fn opening(&mut self, exchange: ExchangeId) {
        if let Some((owner, _)) = self.discovering.take() {
            self.names.remove(MODERN);
            self.names.insert(opening_name(exchange), owner);
        }
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

/// Whether a response to `server/discover` leaves no reason for `initialize`.
fn supports_modern(bytes: &[u8]) -> bool {
    let response = read_message(bytes).unwrap_or_default();
    let versions = response.pointer("/result/supportedVersions").and_then(Value::as_array);
    versions.is_some_and(|versions| versions.iter().any(|version| version == Revision::MODERN.as_str()))
}

/// Without scheme and host.
fn path_of(address: &str) -> String {
    let address = address.trim();
    match address.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or_else(String::new, |place| rest[place..].to_owned()),
        None => address.to_owned(),
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
            id: crate::FrameId(number as u64),
            at: Duration::from_millis(number as u64),
            direction,
            body,
        };
        let frames: Vec<Frame> = frames.into_iter().enumerate().map(frame).collect();
        let of = |frames: &Vec<Frame>| {
            let mut all: Vec<u64> = frames.iter().filter_map(|frame| Some(frame.body.exchange()?.0)).collect();
            all.dedup();
            all
        };
        assert_eq!(frames_of_clients(&frames).iter().map(of).collect::<Vec<_>>(), expected);
        // While they come, they are told apart in the same way, but for what belongs to nobody.
        let mut stream = ClientStream::default();
        let mut told: BTreeMap<usize, Vec<Frame>> = BTreeMap::new();
        for frame in frames {
            for (owner, frame) in stream.feed(frame) {
                if let Some(owner) = owner {
                    told.entry(owner).or_default().push(frame);
                }
            }
        }
        assert!(stream.finish().is_empty());
        if let [only] = expected {
            assert!(told.values().all(|frames| of(frames).iter().all(|exchange| only.contains(exchange))));
            return;
        }
        let told: Vec<Vec<u64>> = told.values().map(of).collect();
        let without_nobodys: Vec<Vec<u64>> = expected
            .iter()
            .map(|all| all.iter().copied().filter(|one| !expected.iter().all(|other| other.contains(one))).collect())
            .collect();
        assert_eq!(told, without_nobodys);
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

    /// A client of both eras asks for a discovery first, which is a request of the modern era.
    #[test]
    fn a_client_that_falls_back_to_the_legacy_era_is_one_client() {
        let of =
            |method: &str| json!({ "method": method, "params": { "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } } });
        let (discover, initialize) = (of("server/discover"), json!({ "method": "initialize" }));
        let body = |exchange, body: &Value| {
            (Direction::FromServer, FrameBody::HttpBody { exchange: ExchangeId(exchange), bytes: body.to_string().into_bytes().into() })
        };
        let refused = json!({ "error": { "code": -32601 } });
        let falls_back = |first: u64| {
            vec![
                request(first, None, &discover),
                body(first, &refused),
                request(first + 1, None, &initialize),
                response(first + 1, Some("a")),
            ]
        };
        let second = vec![request(3, Some("a"), &json!({ "method": "tools/list" })), request(4, None, &initialize), response(4, Some("b"))];
        check([falls_back(1), second].concat(), &[&[1, 2, 3], &[4]]);
        // A server of both eras has told that it speaks the modern one: who comes with `initialize` is somebody else.
        let supported = json!({ "result": { "supportedVersions": ["2026-07-28", "2025-11-25"] } });
        check(vec![request(1, None, &discover), body(1, &supported), request(2, None, &initialize), response(2, Some("a"))], &[&[1], &[2]]);
        check(
            vec![request(1, None, &discover), request(2, None, &of("tools/list")), request(3, None, &initialize), response(3, Some("a"))],
            &[&[1, 2], &[3]],
        );
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
        let open = |exchange| {
            let (method, url) = ("GET".to_owned(), "http://127.0.0.1:1/sse".to_owned());
            (
                Direction::ToServer,
                FrameBody::HttpRequest { exchange: ExchangeId(exchange), method, url, headers: Vec::new(), body: b"".to_vec().into() },
            )
        };
        let begun = |exchange| {
            let headers = vec![("Content-Type".to_owned(), "text/event-stream".to_owned())];
            (Direction::FromServer, FrameBody::HttpResponse { exchange: ExchangeId(exchange), status: 200, headers })
        };
        let opened = vec![open(1), open(2), begun(2), begun(1), endpoint(2, "/m?s=2"), endpoint(1, "/m?s=1"), post(3, "/m?s=1")];
        check(opened, &[&[2], &[1, 3]]);
        let frames =
            vec![endpoint(1, "/m?s=1"), post(2, "/m?s=1"), endpoint(3, "http://127.0.0.1:1/m?s=2"), post(4, "/m?s=2"), post(5, "/m?s=1")];
        check(frames, &[&[1, 2, 5], &[3, 4]]);
    }
}
