//! Streamable HTTP: each message is a POST of its own, answered by JSON or by an event stream.
//! Source: 2025-11-25 and 2026-07-28, basic/transports, Streamable HTTP. Knows no methods and no versions: what a
//! request's headers say is decided by the session.

use super::cut_body::CutBody;
use super::decode::{Coding, DECODED_AT_ONCE, DecodeFailure};
use super::faults::{Admission, DisturbedBody, FaultInjector, Reading, Refusal, admit};
use super::pool::{AddressFailure, HeaderCase, Lease, NoResponse, Pool, Way};
use super::progress::{Progress, Stage};
use super::sse_events::{Event, EventFlaw, EventParser};
use super::stream::LastRead;
use super::{Bound, Broken, Envelope, HttpHead, Inbox, Limits, Network, Repeat, Resume, Reuse, Unanswered, ViolationKind};
use crate::Tap;
use crate::auth::{Bearer, wants_authorization};
use crate::jsonrpc::{self, RequestId};
use crate::session::{Headers, RawHttpRequest, Reads, Sends};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, Version};
use mcproof_protocol::methods;
use mcproof_record::{Direction, ExchangeId, FrameBody, FrameId, Raw, SENT_AGAIN};
use std::cell::Cell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinSet, consume_budget};
use tokio::time::{sleep, timeout};
use url::Url;

/// Where an HTTP server listens, and what to send along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub url: Url,
    /// Sent with each request, as the user wrote them.
    pub headers: Vec<(String, String)>,
}

/// Everything that exchanges with one origin share.
pub(crate) struct Exchanger {
    pool: Pool,
    headers: Vec<(String, String)>,
    /// Set where the session obtains tokens.
    bearer: Option<Bearer>,
    faults: Option<FaultInjector>,
    limits: Limits,
    tap: Tap,
}

/// A request that was recorded and waits to be sent.
pub(crate) struct Prepared {
    request: Request<Full<Bytes>>,
    /// What was recorded of it, where it may go out again.
    again: Option<Box<FrameBody>>,
}

/// What a request got: the exchange that brought it, the head, and the connection.
type Sent = (ExchangeId, Response<Incoming>, Lease);

/// What came of a request on a connection that was made beside another one, which had its response and stayed open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    Served,
    /// It had no response in time, and got it when the other connection was closed.
    ServedAfterClose,
    NotServed,
    /// Not even the request on the first connection had a response in time.
    NoneServed,
    /// A connection was refused or ended.
    Broken,
}

/// A response whose body has not been read.
pub(crate) struct OpenExchange {
    pub(crate) head: Arc<HttpHead>,
    body: Reading,
    /// None for a response that we made up.
    lease: Option<Lease>,
    progress: Arc<Progress>,
}

impl Exchanger {
    pub(crate) fn new(endpoint: &Endpoint, limits: Limits, network: &Network, tap: &Tap) -> Result<Self, AddressFailure> {
        let pool = Pool::new(&endpoint.url, limits, network, tap)?;
        Ok(Self { pool, headers: endpoint.headers.clone(), bearer: None, faults: None, limits, tap: tap.clone() })
    }

    /// Each request is to carry this token.
    pub(crate) fn bearing(self, bearer: Option<&Bearer>) -> Self {
        Self { bearer: bearer.cloned(), ..self }
    }

    /// What goes through is disturbed as this says.
    pub(crate) fn disturbed(self, faults: Option<&FaultInjector>) -> Self {
        Self { faults: faults.cloned(), ..self }
    }

    /// The same on connections of its own, with headers written in another way.
    pub(crate) fn spelled(&self, spelling: HeaderCase) -> Self {
        // Some servers take one connection at a time.
        self.pool.close_idle();
        Self {
            pool: self.pool.spelled(spelling),
            headers: self.headers.clone(),
            bearer: self.bearer.clone(),
            faults: self.faults.clone(),
            limits: self.limits,
            tap: self.tap.clone(),
        }
    }

    pub(crate) async fn accepts(&self) -> std::io::Result<()> {
        self.pool.accepts().await
    }

    pub(crate) fn speaks_http2(&self) -> bool {
        self.pool.speaks_http2()
    }

    /// What becomes of connections from now on.
    pub(crate) fn reuse(&self, reuse: Reuse) {
        self.pool.reuse(reuse);
    }

    /// Asks on a new connection while another one, which had its response, is open: `beside` asks for an event stream there, or the same was
    /// asked. `patience`: for each response.
    pub(crate) async fn ask_beside(
        &self,
        beside: Option<&RawHttpRequest>,
        question: &RawHttpRequest,
        url: &Url,
        patience: Duration,
    ) -> Beside {
        let (first, second) = (self.spelled(HeaderCase::Lower), self.spelled(HeaderCase::Lower));
        first.reuse(Reuse::Kept);
        let opened = async {
            match beside {
                Some(stream) => first.hold(stream, url).await.map(Some),
                None => first.ask(question, url, Way::New, Repeat::Never, Resume::Never).await.map(|_| None),
            }
        };
        let held = match timeout(patience, opened).await {
            Ok(Ok(held)) => held,
            Ok(Err(_)) => return Beside::Broken,
            Err(_) => return Beside::NoneServed,
        };
        let mut asked = pin!(second.ask(question, url, Way::New, Repeat::Never, Resume::Never));
        let is_served = timeout(patience, &mut asked).await;
        if let Some(held) = held {
            let exchange = held.head.exchange;
            drop(held);
            self.end(exchange, None);
        }
        match is_served {
            Ok(Ok(_)) => return Beside::Served,
            Ok(Err(_)) => return Beside::Broken,
            Err(_) => {}
        }
        first.pool.close_idle();
        self.tap.note("the other connection, which had its response, is closed by the client");
        match timeout(patience, asked).await {
            Ok(Ok(_)) => Beside::ServedAfterClose,
            Ok(Err(_)) => Beside::Broken,
            Err(_) => Beside::NotServed,
        }
    }

    /// Records the request, and gives its exchange and frame together with the request to send.
    pub(crate) fn prepare(
        &self,
        method: Method,
        url: &Url,
        headers: &Headers,
        body: Vec<u8>,
        repeat: Repeat,
    ) -> (ExchangeId, FrameId, Result<Prepared, String>) {
        let mut all: Vec<(String, String)> = vec![("host".into(), authority(url))];
        all.extend(headers.iter().cloned());
        all.extend(self.bearer.as_ref().and_then(Bearer::header));
        // What the user requests replaces what we would send.
        replace(&mut all, &self.headers);
        self.record(method, url, all, body, Sends::Whole, repeat)
    }

    fn record(
        &self,
        method: Method,
        url: &Url,
        mut all: Vec<(String, String)>,
        body: Vec<u8>,
        sends: Sends,
        repeat: Repeat,
    ) -> (ExchangeId, FrameId, Result<Prepared, String>) {
        let exchange = self.tap.next_exchange();
        if !body.is_empty() {
            all.push(match sends {
                Sends::Chunked => ("transfer-encoding".into(), "chunked".into()),
                Sends::Whole | Sends::InTwo { .. } => ("content-length".into(), body.len().to_string()),
            });
        }
        let recorded = FrameBody::HttpRequest {
            exchange,
            method: method.to_string(),
            url: url.to_string(),
            headers: all.clone(),
            body: body.as_slice().into(),
        };
        let again = (repeat == Repeat::Once).then(|| Box::new(recorded.clone()));
        let frame = self.tap.record(Direction::ToServer, recorded);
        let mut request = Request::builder().method(method).uri(&url[url::Position::BeforePath..url::Position::AfterQuery]);
        for (name, value) in &all {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from(body))).map_err(|error| format!("the request cannot be sent: {error}"));
        (exchange, frame, request.map(|request| Prepared { request, again }))
    }

    /// One request that belongs to no message; its headers win over all others. Of an event stream the data of its
    /// first event is given, and as much read as the request says, since it may never end. One that ends before it is taken up again, where
    /// `resume` has it so.
    pub(crate) async fn ask(
        &self,
        question: &RawHttpRequest,
        url: &Url,
        way: Way,
        repeat: Repeat,
        resume: Resume,
    ) -> Result<(Arc<HttpHead>, Vec<u8>), Broken> {
        let RawHttpRequest { method, body, reads, sends, .. } = question;
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| format!("`{method}` is not a valid HTTP method"))?;
        let all = self.headers_of(question, url);
        let (exchange, _, prepared) = self.record(method, url, all, body.clone(), *sends, repeat);
        // What a server makes of a body in an unusual form may be left on its connection, which is closed after the response.
        let (open, _lease) = match (way, sends) {
            (_, Sends::Chunked | Sends::InTwo { .. }) => {
                let at = if let Sends::InTwo { at } = sends { *at } else { body.len() };
                // Some servers take one connection at a time.
                self.pool.close_idle();
                let request = prepared?.request.map(|_| CutBody::new(body.clone(), at));
                let sent = self.pool.apart().send(request, &Progress::default()).await;
                let (response, lease) = sent.inspect_err(|error| self.end(exchange, Some(error)))?;
                let (head, body) = self.head(exchange, response);
                (OpenExchange { head, body: Reading::Plain(body), lease: None, progress: Arc::default() }, Some(lease))
            }
            (Way::Any, Sends::Whole) => (self.open(exchange, prepared?).await?, None),
            (way, Sends::Whole) => {
                let sent = self.pool.send_by(way, prepared?.request, &Progress::default()).await;
                let (response, lease) = sent.inspect_err(|error| self.end(exchange, Some(error)))?;
                let (head, body) = self.head(exchange, response);
                (OpenExchange { head, body: Reading::Plain(body), lease: Some(lease), progress: Arc::default() }, None)
            }
        };
        let head = Arc::clone(&open.head);
        if media_type(&head) != EVENT_STREAM {
            let (body, broken, _) = self.body(open).await;
            return broken.map_or_else(|| Ok((head, body.as_bytes().to_vec())), Err);
        }
        if *reads == Reads::Head {
            return Ok((head, Vec::new()));
        }
        let mut beginning = Beginning { first: None, position: Position::default(), reads: *reads };
        let broken = self.events(open, None, |event: &Event, _| beginning.pass(event)).await;
        if resume == Resume::FromLastEvent && beginning.is_resumable() {
            // On the heap: the usual exchange does not carry the room for it along.
            Box::pin(self.take_up(question, url, &mut beginning)).await;
        }
        let first = beginning.first;
        match (first, broken) {
            (Some(data), _) => Ok((head, data)),
            (None, None) => Ok((head, Vec::new())),
            (None, Some(broken)) => Err(broken),
        }
    }

    /// Takes up the stream of a request that ended before its first message, again and again, until there is one or the server offers no
    /// stream (2025-11-25, transports, sending messages to the server: a server may close the connection after an event with an id).
    async fn take_up(&self, question: &RawHttpRequest, url: &Url, beginning: &mut Beginning) {
        let is_kept = |name: &str| !["accept", "content-type", "content-length"].iter().any(|replaced| name.eq_ignore_ascii_case(replaced));
        let kept: Headers = question.headers.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
        let mut fruitless = 0;
        while fruitless < FRUITLESS_ATTEMPTS && beginning.is_resumable() {
            sleep(beginning.position.retry.unwrap_or(RETRY)).await;
            let mut headers = kept.clone();
            headers.push(("accept".to_owned(), EVENT_STREAM.to_owned()));
            headers.extend(beginning.position.last_event.clone().map(|id| ("last-event-id".to_owned(), id)));
            let stream = RawHttpRequest { method: "GET".into(), headers, body: Vec::new(), ..question.clone() };
            let all = self.headers_of(&stream, url);
            let (exchange, _, prepared) = self.record(Method::GET, url, all, Vec::new(), Sends::Whole, Repeat::Once);
            let Ok(prepared) = prepared else { return };
            let Ok(open) = self.open(exchange, prepared).await else { return };
            if open.head.status != 200 || media_type(&open.head) != EVENT_STREAM {
                self.body(open).await;
                return;
            }
            beginning.position.moved = false;
            self.events(open, None, |event: &Event, _| beginning.pass(event)).await;
            fruitless = if beginning.position.moved { 0 } else { fruitless + 1 };
        }
    }

    /// An event stream that stays open until it is dropped.
    async fn hold(&self, question: &RawHttpRequest, url: &Url) -> Result<OpenExchange, Broken> {
        let all = self.headers_of(question, url);
        let (exchange, _, prepared) = self.record(Method::GET, url, all, Vec::new(), Sends::Whole, Repeat::Never);
        let open = self.open(exchange, prepared?).await?;
        if open.head.status == 200 && media_type(&open.head) == EVENT_STREAM {
            return Ok(open);
        }
        self.body(open).await;
        Err("the response is not an event stream".to_owned().into())
    }

    /// All headers of a request that belongs to no message.
    fn headers_of(&self, question: &RawHttpRequest, url: &Url) -> Headers {
        let mut all = vec![("host".to_owned(), authority(url))];
        if !question.is_anonymous {
            all.extend(self.bearer.as_ref().and_then(Bearer::header));
            replace(&mut all, &self.headers);
        }
        replace(&mut all, &question.headers);
        all
    }

    /// Sends a prepared request and waits for the head of its response.
    pub(crate) async fn open(&self, exchange: ExchangeId, prepared: Prepared) -> Result<OpenExchange, Broken> {
        self.open_watched(exchange, prepared, Arc::default()).await
    }

    /// Like [`Exchanger::open`], and notes in `progress` how far it came, also while the body is read.
    pub(crate) async fn open_watched(
        &self,
        exchange: ExchangeId,
        prepared: Prepared,
        progress: Arc<Progress>,
    ) -> Result<OpenExchange, Broken> {
        if let Some(faults) = &self.faults {
            // On the heap: the usual exchange does not carry the room for it along.
            return Box::pin(self.open_disturbed(exchange, prepared, progress, faults)).await;
        }
        let (exchange, response, lease) = self.sent(exchange, prepared, &progress).await?;
        let (head, body) = self.head(exchange, response);
        Ok(OpenExchange { head, body: Reading::Plain(body), lease: Some(lease), progress })
    }

    async fn sent(&self, exchange: ExchangeId, prepared: Prepared, progress: &Progress) -> Result<Sent, Broken> {
        let Prepared { request, again } = prepared;
        let again = again.map(|recorded| (recorded, request.clone()));
        let NoResponse { reason, is_of_kept_connection } = match self.pool.send_or_tell(request, progress).await {
            Ok((response, lease)) => return Ok((exchange, response, lease)),
            Err(failure) => failure,
        };
        match again.filter(|_| is_of_kept_connection) {
            // On the heap: the usual exchange does not carry the room for it along.
            Some((recorded, request)) => Box::pin(self.sent_again(exchange, reason, *recorded, request, progress)).await,
            None => {
                self.end(exchange, Some(&reason));
                Err(reason)
            }
        }
    }

    /// Sends a request once more, over a new connection and as an exchange of its own. `reason`: why the first one ended.
    async fn sent_again(
        &self,
        first: ExchangeId,
        reason: Broken,
        mut recorded: FrameBody,
        request: Request<Full<Bytes>>,
        progress: &Progress,
    ) -> Result<Sent, Broken> {
        self.tap.record(Direction::Local, FrameBody::HttpEnd { exchange: first, error: Some(format!("{reason}{SENT_AGAIN}")) });
        let second = self.tap.next_exchange();
        if let FrameBody::HttpRequest { exchange, .. } = &mut recorded {
            *exchange = second;
        }
        self.tap.record(Direction::ToServer, recorded);
        match self.pool.send_anew(request, progress).await {
            Ok((response, lease)) => Ok((second, response, lease)),
            Err(error) => {
                self.end(second, Some(&error));
                // A server that cannot be reached any more is told by what it did with the request.
                let was_reached = matches!(progress.stage(), Stage::Asked | Stage::Responder { .. });
                Err(if was_reached { error } else { reason })
            }
        }
    }

    async fn open_disturbed(
        &self,
        exchange: ExchangeId,
        prepared: Prepared,
        progress: Arc<Progress>,
        faults: &FaultInjector,
    ) -> Result<OpenExchange, Broken> {
        let Prepared { request, again } = prepared;
        let (request, subject) = match admit(faults, &self.tap, request).await {
            Admission::Sent { request, subject } => (request, subject),
            Admission::SentTwice { request, subject } => {
                let (_, first, lease) = self.sent(exchange, Prepared { request: request.clone(), again: None }, &progress).await?;
                drop((first, lease));
                (request, subject)
            }
            Admission::Reset => {
                let broken = Broken::from("connection reset by peer (an injected fault)".to_owned());
                self.end(exchange, Some(&broken));
                return Err(broken);
            }
            Admission::Refused(refusal) => return Ok(self.made_up(exchange, refusal, progress)),
        };
        let prepared = Prepared { request, again };
        let (exchange, response, lease) = match faults.idle_cut() {
            None => self.sent(exchange, prepared, &progress).await?,
            Some((after, planned)) => match timeout(after, self.sent(exchange, prepared, &progress)).await {
                Ok(sent) => sent?,
                Err(_) => {
                    self.tap.note(faults.cut_idle(after, planned));
                    let broken = Broken::from("the connection was closed after a silence (an injected fault)".to_owned());
                    self.end(exchange, Some(&broken));
                    return Err(broken);
                }
            },
        };
        let (head, body) = self.head(exchange, response);
        let most = self.limits.body.max(self.limits.event).saturating_add(1);
        let body = DisturbedBody::new(body, &head, subject, faults, &self.tap, most);
        Ok(OpenExchange { head, body: Reading::Disturbed(Box::new(body)), lease: Some(lease), progress })
    }

    /// A response that no server sent.
    fn made_up(&self, exchange: ExchangeId, refusal: Refusal, progress: Arc<Progress>) -> OpenExchange {
        let mut headers = vec![("content-type".to_owned(), "text/plain".to_owned())];
        let text = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        headers.extend(refusal.headers().iter().map(|(name, value)| (name.as_str().to_owned(), text(value))));
        let status = refusal.status;
        let frame = self.tap.record(Direction::FromServer, FrameBody::HttpResponse { exchange, status, headers: headers.clone() });
        self.tap.excuse_frame(frame);
        let head = Arc::new(HttpHead { exchange, frame, status, headers, is_http_1_0: false });
        OpenExchange { head, body: Reading::Made(Some(Bytes::from_static(b"an injected fault"))), lease: None, progress }
    }

    fn head(&self, exchange: ExchangeId, response: Response<Incoming>) -> (Arc<HttpHead>, Incoming) {
        let (parts, body) = response.into_parts();
        let text = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers: Vec<_> = parts.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
        let status = parts.status.as_u16();
        let frame = self.tap.record(Direction::FromServer, FrameBody::HttpResponse { exchange, status, headers: headers.clone() });
        (Arc::new(HttpHead { exchange, frame, status, headers, is_http_1_0: parts.version == Version::HTTP_10 }), body)
    }

    /// Reads the whole body and undoes its content-encoding. Returns what came before it broke, and why it did.
    pub(crate) async fn body(&self, open: OpenExchange) -> (Raw, Option<Broken>, FrameId) {
        let OpenExchange { head, mut body, lease, progress } = open;
        let mut coding = Coding::of(&head);
        let mut bytes = Vec::new();
        let unfinished = UnfinishedBody { tap: &self.tap, head: &head, received: Cell::new(0) };
        let mut received = 0;
        let mut broken = None;
        while let Some(data) = body.next().await {
            let data = match data {
                Ok(data) => data,
                Err(error) => {
                    let is_plain = matches!(body, Reading::Plain(_)) && error.bound.is_none();
                    broken = Some(if is_plain && head.ends_with_connection() { RESET_AT_CLOSE.to_owned().into() } else { error });
                    break;
                }
            };
            let data = &data[..];
            progress.came(data.len());
            received += data.len();
            unfinished.received.set(received);
            match &mut coding {
                Coding::Compressed(decoder) => {
                    for piece in data.chunks(DECODED_AT_ONCE) {
                        match decoder.feed(piece, self.limits.body - bytes.len()) {
                            Ok(decoded) => bytes.extend_from_slice(&decoded),
                            Err(failure) => {
                                broken = Some(self.not_decoded(&failure));
                                break;
                            }
                        }
                    }
                }
                Coding::Plain | Coding::Unknown(_) => {
                    let room = self.limits.body - bytes.len();
                    bytes.extend_from_slice(&data[..data.len().min(room)]);
                }
            }
            if received > self.limits.body {
                broken = Some(self.too_large());
            }
            if broken.is_some() {
                break;
            }
        }
        std::mem::forget(unfinished);
        match &mut coding {
            Coding::Compressed(decoder) if broken.is_none() => {
                match decoder.finish(self.limits.body - bytes.len()) {
                    Ok(decoded) => bytes.extend_from_slice(&decoded),
                    Err(failure) => broken = Some(self.not_decoded(&failure)),
                }
                self.tap.note(format!(
                    "the body is decoded: {received} bytes of {} on the wire, {} bytes of content",
                    decoder.name(),
                    bytes.len()
                ));
            }
            Coding::Unknown(reason) => broken = broken.or_else(|| Some(reason.clone().into())),
            Coding::Compressed(_) | Coding::Plain => {}
        }
        let bytes = Raw::from(bytes);
        let frame = self.tap.record(Direction::FromServer, FrameBody::HttpBody { exchange: head.exchange, bytes: bytes.clone() });
        if let (None, Some(lease)) = (&broken, lease) {
            self.pool.give_back(lease);
        }
        self.end(head.exchange, broken.as_ref());
        (bytes, broken, frame)
    }

    /// Reads an event stream to its end, calling `deliver` for each event, or closes it when that says so. `inbox` is notified of an
    /// event that does not end. Gives why it broke, if it did.
    pub(crate) async fn events(
        &self,
        open: OpenExchange,
        inbox: Option<&dyn Inbox>,
        mut deliver: impl FnMut(&Event, FrameId) -> ControlFlow<()>,
    ) -> Option<Broken> {
        let OpenExchange { head, mut body, lease, progress } = open;
        let exchange = head.exchange;
        let mut coding = Coding::of(&head);
        let is_chunked = head.header("transfer-encoding").is_some_and(|coding| coding.trim().eq_ignore_ascii_case("chunked"));
        let chunks = lease.as_ref().filter(|_| is_chunked).and_then(Lease::last_read);
        let mut parser = Parsing { parser: Some(EventParser::default()), exchange, chunks, tap: self.tap.clone() };
        let mut broken = match &coding {
            Coding::Unknown(reason) => Some(reason.clone().into()),
            Coding::Plain | Coding::Compressed(_) => None,
        };
        let mut enough = false;
        let mut record = |mut event: Event| {
            // Nobody behind this requests the raw bytes: a large event is not to be there more often than needed.
            let (bytes, data) = event.take_bytes();
            let seen = FrameBody::SseEvent { exchange, bytes, event: event.name.clone(), id: event.id.clone(), data };
            let frame = self.tap.record(Direction::FromServer, seen);
            deliver(&event, frame)
        };
        let mut is_told = false;
        while broken.is_none() {
            let data = {
                let watched = if is_told || parser.get().pending() == 0 { None } else { inbox };
                let mut next = pin!(body.next());
                match watched {
                    None => next.await,
                    Some(inbox) => match timeout(PAUSE, &mut next).await {
                        Ok(data) => data,
                        Err(_) => {
                            is_told = true;
                            self.tell_begun(inbox, exchange, parser.get());
                            next.await
                        }
                    },
                }
            };
            let data = match data {
                None => break,
                Some(Ok(data)) => data,
                Some(Err(error)) => {
                    broken = Some(error);
                    break;
                }
            };
            let data = &data[..];
            progress.came(data.len());
            let at_once = if matches!(coding, Coding::Compressed(_)) { DECODED_AT_ONCE } else { data.len().max(1) };
            for encoded in data.chunks(at_once) {
                let decoded;
                let content = match &mut coding {
                    // A piece never holds more than one of the largest events, if it is no bomb.
                    Coding::Compressed(decoder) => {
                        decoded = decoder.feed(encoded, self.limits.event).unwrap_or_else(|failure| {
                            broken = Some(match failure {
                                DecodeFailure::TooLarge => self.event_too_large(),
                                failure => failure.to_string().into(),
                            });
                            Vec::new()
                        });
                        &decoded[..]
                    }
                    Coding::Plain | Coding::Unknown(_) => encoded,
                };
                // A flood of small events must not keep deadlines from passing.
                for piece in content.chunks(EVENTS_AT_ONCE) {
                    parser.get().feed(piece, &mut |event| {
                        if let (true, Some(inbox)) = (std::mem::take(&mut is_told), inbox) {
                            inbox.event_ended(exchange);
                        }
                        enough |= record(event).is_break();
                    });
                    consume_budget().await;
                    // Looked at between pieces: what a bomb holds after that is never put together.
                    if parser.get().pending() > self.limits.event {
                        broken = Some(self.event_too_large());
                        break;
                    }
                }
                if broken.is_some() {
                    break;
                }
            }
            if enough {
                parser.finish();
                self.tap.note("the event stream is closed: its request has its response");
                self.end(exchange, None);
                return None;
            }
        }
        if let (true, Some(inbox)) = (is_told, inbox) {
            inbox.event_ended(exchange);
        }
        if let Some(unfinished) = parser.finish() {
            // There is nothing left to close.
            let _ = record(unfinished);
        }
        if let (None, Some(lease)) = (&broken, lease) {
            self.pool.give_back(lease);
        }
        self.end(exchange, broken.as_ref());
        broken
    }

    /// Told once for an event: one that is written slowly is legal, one that never ends explains a silence.
    fn tell_begun(&self, inbox: &dyn Inbox, exchange: ExchangeId, parser: &EventParser) {
        let Some(event) = parser.begun() else { return };
        let Some(flaw) = event.flaw() else { return };
        let content = content_of(&event, &flaw);
        let text = format!("an event of {} bytes has no blank line so far: {}", parser.pending(), excerpt(content));
        inbox.event_begun(exchange, content, &|| (self.tap.note(text.clone()), fault_of(&flaw)));
    }

    fn not_decoded(&self, failure: &DecodeFailure) -> Broken {
        match failure {
            DecodeFailure::TooLarge => self.too_large(),
            other => other.to_string().into(),
        }
    }

    fn too_large(&self) -> Broken {
        Broken::at(Bound::Body, format!("the body is larger than {} bytes", self.limits.body))
    }

    fn event_too_large(&self) -> Broken {
        Broken::at(Bound::Event, format!("an event is larger than {} bytes", self.limits.event))
    }

    fn end(&self, exchange: ExchangeId, broken: Option<&Broken>) {
        self.tap.record(Direction::Local, FrameBody::HttpEnd { exchange, error: broken.map(ToString::to_string) });
    }
}

/// The parser of a stream. When the stream is given up in the middle of an event, what there is of it is recorded, because
/// an event that was never ended may be why.
struct Parsing {
    /// Nothing once it has finished.
    parser: Option<EventParser>,
    exchange: ExchangeId,
    /// Of a stream in chunks.
    chunks: Option<LastRead>,
    tap: Tap,
}

impl Parsing {
    fn get(&mut self) -> &mut EventParser {
        self.parser.get_or_insert_default()
    }

    fn finish(&mut self) -> Option<Event> {
        self.parser.take()?.finish(SHOWN_OF_UNFINISHED_EVENT)
    }
}

impl Drop for Parsing {
    fn drop(&mut self) {
        let Some(parser) = self.parser.take() else { return };
        let exchange = self.exchange;
        if let Some(mut event) = parser.finish(SHOWN_OF_UNFINISHED_EVENT) {
            let (bytes, data) = event.take_bytes();
            let Event { name, id, .. } = event;
            self.tap.record(Direction::FromServer, FrameBody::SseEvent { exchange, bytes, event: name, id, data });
        } else if self.chunks.as_ref().is_some_and(|last| last.lacks_line_end(PAUSE)) {
            // The event is whole, and with it its chunk, which nothing ended.
            let error = Some(OPEN_CHUNK.to_owned());
            self.tap.record(Direction::Local, FrameBody::HttpEnd { exchange, error });
        }
    }
}

/// Why a stream counts as broken that was given up after a chunk without its line end.
pub const OPEN_CHUNK: &str = "the last chunk has no line end";

/// Why a body counts as broken that has no length, and whose connection did not end in order.
pub const RESET_AT_CLOSE: &str = "the connection whose end is the end of this HTTP/1.0 body was reset";

/// How long an event may stand open before that is told.
const PAUSE: Duration = Duration::from_millis(200);
/// Bytes that are searched for events in one go.
const EVENTS_AT_ONCE: usize = 4 << 10;
/// Bytes of an event without an end that are kept.
const SHOWN_OF_UNFINISHED_EVENT: usize = 64 << 10;

/// Puts headers in the place of those of the same name.
fn replace(all: &mut Vec<(String, String)>, headers: &[(String, String)]) {
    all.retain(|(known, _)| !headers.iter().any(|(name, _)| known.eq_ignore_ascii_case(name)));
    all.extend(headers.iter().cloned());
}

fn authority(url: &Url) -> String {
    url[url::Position::BeforeHost..url::Position::AfterPort].to_owned()
}

/// The media type of a response, without parameters, in lower case.
pub(crate) fn media_type(head: &HttpHead) -> String {
    let value = head.header("content-type").unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

pub(crate) fn is_json(media_type: &str) -> bool {
    media_type == "application/json" || media_type.ends_with("+json")
}

/// JSON of any announced type: some clients look at the body.
fn is_like_a_message(bytes: &[u8]) -> bool {
    matches!(bytes.trim_ascii(), [b'{', .., b'}']) && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// A connection to a Streamable HTTP endpoint.
pub(crate) struct HttpConnection {
    shared: Arc<Shared>,
    tasks: Mutex<Tasks>,
}

struct Shared {
    exchanger: Exchanger,
    url: Url,
    inbox: Arc<dyn Inbox>,
    /// Whether streams are opened for what the server says unasked.
    listens: bool,
}

/// One task an exchange. Aborted together when the connection is dropped.
#[derive(Default)]
struct Tasks {
    all: JoinSet<()>,
    requests: HashMap<RequestId, ActiveExchange>,
    /// Listens for what the server says unasked.
    listening: Option<AbortHandle>,
}

/// The exchange of a request.
struct ActiveExchange {
    task: AbortHandle,
    progress: Arc<Progress>,
}

/// How long to wait before a stream is taken up again, where the server does not say.
const RETRY: Duration = Duration::from_secs(1);
/// The longest wait that a server may ask for.
const LONGEST_RETRY: Duration = Duration::from_secs(60);
/// Attempts to take up a stream that bring no event at all.
const FRUITLESS_ATTEMPTS: usize = 5;

impl HttpConnection {
    pub(crate) fn new(
        endpoint: &Endpoint,
        limits: Limits,
        network: &Network,
        bearer: Option<&Bearer>,
        faults: Option<&FaultInjector>,
        tap: &Tap,
        inbox: Arc<dyn Inbox>,
    ) -> Result<Self, AddressFailure> {
        let exchanger = Exchanger::new(endpoint, limits, network, tap)?.bearing(bearer).disturbed(faults);
        let listens = network.reuse != Reuse::Alone;
        Ok(Self { shared: Arc::new(Shared { exchanger, url: endpoint.url.clone(), inbox, listens }), tasks: Mutex::default() })
    }

    /// Posts the message in the background; whatever comes back goes to the inbox.
    pub(crate) fn send(&self, envelope: Envelope) -> FrameId {
        let Envelope { body, purpose, headers, resume, repeat } = envelope;
        let mut all = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("accept".to_owned(), format!("application/json, {EVENT_STREAM}")),
        ];
        all.extend(headers.iter().cloned());
        let (exchange, frame, prepared) = self.shared.exchanger.prepare(Method::POST, &self.shared.url, &all, body, repeat);
        let shared = Arc::clone(&self.shared);
        let request = purpose.request().cloned();
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.all.try_join_next().is_some() {}
        if tasks.requests.len() > 2 * tasks.all.len() {
            tasks.requests.retain(|_, underway| !underway.task.is_finished());
        }
        let progress = Arc::<Progress>::default();
        let watched = Arc::clone(&progress);
        let task = tasks.all.spawn(async move {
            let unanswered = match prepared {
                Err(reason) => Unanswered::Unreachable(reason.into()),
                Ok(prepared) => match shared.exchanger.open_watched(exchange, prepared, watched).await {
                    Err(reason) => Unanswered::Unreachable(reason),
                    Ok(open) => shared.receive(open, purpose.request(), resume, &headers).await,
                },
            };
            purpose.conclude(&*shared.inbox, unanswered);
        });
        if let Some(request) = request {
            tasks.requests.insert(request, ActiveExchange { task, progress });
        }
        frame
    }

    /// Where it is, and what talks to it.
    pub(crate) fn endpoint(&self) -> (&Exchanger, &Url) {
        (&self.shared.exchanger, &self.shared.url)
    }

    /// How far the exchange of a request has come.
    pub(crate) fn stage(&self, request: &RequestId) -> Option<Stage> {
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.requests.get(request).map(|underway| underway.progress.stage())
    }

    /// Closes the exchange of a request, which cancels it in the modern era (2026-07-28, Streamable HTTP, cancellation).
    pub(crate) fn abandon(&self, request: &RequestId) {
        let underway = self.tasks.lock().unwrap_or_else(PoisonError::into_inner).requests.remove(request);
        if let Some(ActiveExchange { task, .. }) = underway {
            task.abort();
            self.shared.exchanger.tap.note(format!("the HTTP exchange of request {request} is closed by the client"));
        }
    }

    /// Opens the stream for what the server says unasked (2025-03-26 to 2025-11-25, transports, listening for messages),
    /// and keeps it open. A server that offers none answers 405. The receiver resolves (to an error, as nothing is sent)
    /// once the server has answered the first attempt.
    pub(crate) fn listen(&self, headers: Headers) -> oneshot::Receiver<Infallible> {
        let (answered, receiver) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        if shared.listens {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            let listening = tasks.all.spawn(async move { shared.follow(&headers, Position::default(), None, Some(answered)).await });
            tasks.listening = Some(listening);
        }
        receiver
    }

    /// Closes the stream for what the server says unasked. False if there is none.
    pub(crate) fn stop_listening(&self) -> bool {
        let listening = self.tasks.lock().unwrap_or_else(PoisonError::into_inner).listening.take();
        let Some(listening) = listening.filter(|listening| !listening.is_finished()) else { return false };
        listening.abort();
        self.shared.exchanger.tap.note("the event stream is closed by the client");
        true
    }

    /// Whether a new connection can be made.
    pub(crate) async fn accepts(&self) -> bool {
        self.shared.exchanger.accepts().await.is_ok()
    }

    /// Asks the server to end the session (2025-03-26 and later, session management), and waits shortly for the response;
    /// gives its status.
    pub(crate) async fn delete(&self, headers: &Headers, patience: Duration) -> Option<u16> {
        self.status(Method::DELETE, headers, Vec::new(), Repeat::Never, patience).await
    }

    /// The status of the response to a ping with these headers.
    pub(crate) async fn ask_with(&self, headers: &Headers, patience: Duration) -> Option<u16> {
        let mut all = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("accept".to_owned(), format!("application/json, {EVENT_STREAM}")),
        ];
        all.extend(headers.iter().cloned());
        let body = jsonrpc::request(&RequestId::Text("after the end".into()), methods::PING, None);
        self.status(Method::POST, &all, body, Repeat::of_message(methods::PING), patience).await
    }

    async fn status(&self, method: Method, headers: &Headers, body: Vec<u8>, repeat: Repeat, patience: Duration) -> Option<u16> {
        let Shared { exchanger, url, .. } = &*self.shared;
        let (exchange, _, prepared) = exchanger.prepare(method, url, headers, body, repeat);
        let prepared = prepared.ok()?;
        let exchange = async {
            let open = exchanger.open(exchange, prepared).await.ok()?;
            let status = open.head.status;
            exchanger.body(open).await;
            Some(status)
        };
        timeout(patience, exchange).await.ok().flatten()
    }
}

/// For how long an event stream is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamLifetime {
    /// Until the server ends it: what it says after its response is evidence.
    Open,
    UntilAnswered,
}

/// How far an event stream was read.
#[derive(Default)]
struct Position {
    last_event: Option<String>,
    retry: Option<Duration>,
    /// Whether anything came since the stream was last opened.
    moved: bool,
}

impl Position {
    fn pass(&mut self, event: &Event) {
        self.moved = true;
        // WHATWG HTML, interpretation of an event stream: an event that is cut off is discarded, and its last line may be half a line.
        if event.unfinished {
            return;
        }
        if event.id.is_some() {
            self.last_event.clone_from(&event.id);
        }
        if let Some(millis) = event.retry {
            self.retry = Some(Duration::from_millis(millis).min(LONGEST_RETRY));
        }
    }
}

/// What was read of the stream of a request that belongs to no message.
struct Beginning {
    /// The data of its first event that has any.
    first: Option<Vec<u8>>,
    position: Position,
    reads: Reads,
}

impl Beginning {
    /// Whether more is to be read.
    fn pass(&mut self, event: &Event) -> ControlFlow<()> {
        self.position.pass(event);
        match &event.data {
            Some(data) if !data.is_empty() => {
                self.first.get_or_insert_with(|| data.clone());
                if self.reads == Reads::All { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            }
            _ => ControlFlow::Continue(()),
        }
    }

    /// Whether no message came, and there is an event from which the stream can be taken up.
    fn is_resumable(&self) -> bool {
        self.first.is_none() && self.position.last_event.as_ref().is_some_and(|id| !id.is_empty())
    }
}

/// Notes how much of a body came, if it is dropped before the end of the body.
struct UnfinishedBody<'a> {
    tap: &'a Tap,
    head: &'a HttpHead,
    received: Cell<usize>,
}

impl Drop for UnfinishedBody<'_> {
    fn drop(&mut self) {
        let announced = self.head.header("content-length").map(|length| format!(" of {}", excerpt(length.as_bytes()))).unwrap_or_default();
        self.tap.note(format!("the body had not ended after {}{announced} bytes", self.received.get()));
    }
}

impl Shared {
    /// Takes in one response; gives what to tell a request that it did not answer.
    async fn receive(&self, open: OpenExchange, request: Option<&RequestId>, resume: Resume, headers: &Headers) -> Unanswered {
        let head = Arc::clone(&open.head);
        let media_type = media_type(&head);
        if media_type == EVENT_STREAM {
            let mut position = Position::default();
            let broken = self.read(open, request, &mut position, StreamLifetime::Open).await;
            let waits = request.is_some_and(|request| self.inbox.waits_for(request));
            if waits && resume == Resume::FromLastEvent && position.last_event.is_some() {
                sleep(position.retry.unwrap_or(RETRY)).await;
                self.follow(headers, position, request, None).await;
            }
            return Unanswered::Response { head, excerpt: String::new(), broken };
        }
        let (bytes, broken, frame) = self.exchanger.body(open).await;
        if is_json(&media_type) && broken.is_none() && !bytes.is_empty() {
            self.inbox.message(bytes.as_bytes(), frame, Some(&head), request);
        } else if self.inbox.is_tolerant() && broken.is_none() && head.status < 300 && is_like_a_message(bytes.as_bytes()) {
            let named = if media_type.is_empty() { "no `Content-Type`".to_owned() } else { format!("`Content-Type: {media_type}`") };
            self.inbox.fault(frame, ViolationKind::OtherMediaType(named));
            self.inbox.message(bytes.as_bytes(), frame, Some(&head), request);
        }
        Unanswered::Response { head, excerpt: excerpt(bytes.as_bytes()), broken }
    }

    async fn read(
        &self,
        open: OpenExchange,
        request: Option<&RequestId>,
        position: &mut Position,
        stays: StreamLifetime,
    ) -> Option<Broken> {
        let head = Arc::clone(&open.head);
        let seen = |event: &Event, frame| {
            position.pass(event);
            deliver(&*self.inbox, event, frame, &head, request);
            match request {
                Some(request) if stays == StreamLifetime::UntilAnswered && !self.inbox.waits_for(request) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        };
        self.exchanger.events(open, Some(&*self.inbox), seen).await
    }

    /// Opens a stream by GET, again and again, until the server offers none, or `request` has its response. `answered` is
    /// dropped when the server has answered for the first time.
    async fn follow(
        &self,
        headers: &Headers,
        mut position: Position,
        request: Option<&RequestId>,
        mut answered: Option<oneshot::Sender<Infallible>>,
    ) {
        let mut fruitless = 0;
        while fruitless < FRUITLESS_ATTEMPTS {
            let mut all = vec![("accept".to_owned(), EVENT_STREAM.to_owned())];
            all.extend(headers.iter().cloned());
            all.extend(position.last_event.clone().map(|id| ("last-event-id".to_owned(), id)));
            let renewal = self.exchanger.bearer.as_ref().map(Bearer::renewal);
            let (exchange, _, prepared) = self.exchanger.prepare(Method::GET, &self.url, &all, Vec::new(), Repeat::Once);
            let Ok(prepared) = prepared else { return };
            position.moved = false;
            let opened = self.exchanger.open(exchange, prepared).await;
            drop(answered.take());
            if let Ok(open) = opened {
                if open.head.status != 200 || media_type(&open.head) != EVENT_STREAM {
                    let refused = wants_authorization(&open.head);
                    self.exchanger.body(open).await;
                    match renewal.filter(|_| refused) {
                        // The next request gets a token, or a better one, and this stream needs it as well.
                        Some(mut renewal) => renewal.renewed().await,
                        None => return,
                    }
                    continue;
                }
                // For a request this is a stream that we opened for its response alone.
                self.read(open, request, &mut position, StreamLifetime::UntilAnswered).await;
            }
            if request.is_some_and(|request| !self.inbox.waits_for(request)) {
                return;
            }
            fruitless = if position.moved { 0 } else { fruitless + 1 };
            sleep(position.retry.unwrap_or(RETRY)).await;
        }
    }
}

/// Hands the message in an event to the inbox, if clients would read it (WHATWG HTML, dispatch of an event).
pub(crate) fn deliver(inbox: &dyn Inbox, event: &Event, frame: FrameId, head: &Arc<HttpHead>, request: Option<&RequestId>) {
    if let Some(flaw) = event.flaw() {
        return inbox.lost(frame, fault_of(&flaw), content_of(event, &flaw), request);
    }
    // Without data it is a comment, or only moves the position.
    let Some(data) = event.data.as_ref().filter(|data| !data.is_empty()) else { return };
    match event.name.as_deref() {
        None | Some("" | "message") => inbox.message(data, frame, Some(head), request),
        // No more of it than anybody is told: it may be as large as an event.
        Some(name) => inbox.lost(frame, ViolationKind::OtherEvent(name.chars().take(MOST_OF_NAME).collect()), data, request),
    }
}

/// Characters of the name of an event that are passed on.
const MOST_OF_NAME: usize = 1000;

/// What an event with this flaw seems to say.
fn content_of<'e>(event: &'e Event, flaw: &'e EventFlaw) -> &'e [u8] {
    match flaw {
        EventFlaw::NoData(line) => &line[memchr::memchr(b'{', line).unwrap_or_default()..],
        EventFlaw::Unfinished => event.data.as_deref().unwrap_or_default(),
    }
}

pub(crate) fn fault_of(flaw: &EventFlaw) -> ViolationKind {
    match flaw {
        EventFlaw::NoData(line) => ViolationKind::EventWithoutData(excerpt(line)),
        EventFlaw::Unfinished => ViolationKind::UnfinishedEvent,
    }
}

/// The beginning of a body, for users.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    const MOST: usize = 300;
    String::from_utf8_lossy(&bytes[..bytes.len().min(MOST)]).into_owned()
}
