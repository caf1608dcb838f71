//! Bodies on their way through: each piece goes on as it comes, and what passed becomes frames. Knows event streams, not messages.
//! Where faults are injected, what passes is what is left of a body.

use super::endpoint::EndpointRewriter;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame as BodyFrame, Incoming, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Request, Uri};
use mcproof_client::transport::{ContentReader, DisturbedBody, Event, EventParser, Lease, Pool};
use mcproof_client::{Limits, Tap};
use mcproof_record::{Direction, ExchangeId, FrameBody, FrameId};
use std::borrow::Cow;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use url::Url;

/// Why a body breaks off.
pub(super) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// Writes the frame of a request once its body is there, or once that no longer matters.
#[derive(Clone)]
pub(super) struct RequestObserver(Arc<Mutex<Option<ObservedRequest>>>);

struct ObservedRequest {
    exchange: ExchangeId,
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    limit: usize,
    tap: Tap,
}

impl RequestObserver {
    pub(super) fn new<B>(exchange: ExchangeId, request: &Request<B>, server: &Url, limit: usize, tap: &Tap) -> Self {
        let observed = ObservedRequest {
            exchange,
            method: request.method().to_string(),
            url: whole_url(server, request.uri()),
            headers: named(request.headers()),
            body: Vec::new(),
            limit,
            tap: tap.clone(),
        };
        Self(Arc::new(Mutex::new(Some(observed))))
    }

    pub(super) fn take(&self, bytes: &[u8]) {
        if let Some(observed) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            let room = observed.limit - observed.body.len();
            observed.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    pub(super) fn conclude(&self) {
        let observed = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ObservedRequest { exchange, method, url, headers, body, limit, tap }) = observed {
            let mut reader = ContentReader::new(&headers);
            let mut content = Vec::new();
            for piece in reader.pieces(&body) {
                let room = limit - content.len();
                keep(reader.read(piece, room), room, &mut content, &tap);
            }
            let room = limit - content.len();
            keep(reader.rest(room).map(Cow::from), room, &mut content, &tap);
            let body = content;
            tap.record(Direction::ToServer, FrameBody::HttpRequest { exchange, method, url, headers, body: body.into() });
        }
    }
}

fn whole_url(server: &Url, uri: &Uri) -> String {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    format!("{}{path}", server[..url::Position::BeforePath].trim_end_matches('/'))
}

pub(super) fn named(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

/// The body of a request.
pub(super) struct RequestStream {
    body: Passing,
    observer: RequestObserver,
}

/// A body as it comes, or as faults left it.
enum Passing {
    Arriving(Incoming),
    Whole(Full<Bytes>),
    Disturbed(DisturbedStream),
}

/// A disturbed body, read by a task that ends with it.
pub(super) struct DisturbedStream {
    pieces: mpsc::Receiver<Result<Bytes, BodyError>>,
    task: AbortHandle,
}

/// How long a response may be kept from its client: no longer than any client waits.
pub(super) const LOST: Duration = Duration::from_secs(600);

impl DisturbedStream {
    pub(super) fn new(mut body: DisturbedBody) -> Self {
        let (sender, pieces) = mpsc::channel(1);
        let task = tokio::spawn(async move {
            loop {
                let piece = match timeout(LOST, body.next()).await {
                    Ok(Some(piece)) => piece.map_err(|broken| broken.to_string().into()),
                    Ok(None) => return,
                    Err(_) => Err("lost by an injected fault".into()),
                };
                let is_last = piece.is_err();
                // Nobody reads on after a failure.
                if sender.send(piece).await.is_err() || is_last {
                    return;
                }
            }
        });
        Self { pieces, task: task.abort_handle() }
    }
}

impl Drop for DisturbedStream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Passing {
    fn frame_poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<BodyFrame<Bytes>, BodyError>>> {
        match self {
            Self::Arriving(body) => Pin::new(&mut body.frame()).poll(context).map_err(Into::into),
            Self::Whole(body) => Pin::new(&mut body.frame()).poll(context).map_err(|never| match never {}),
            Self::Disturbed(stream) => stream.pieces.poll_recv(context).map_ok(BodyFrame::data),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Arriving(body) => body.is_end_stream(),
            Self::Whole(body) => body.is_end_stream(),
            Self::Disturbed(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Arriving(body) => body.size_hint(),
            Self::Whole(body) => body.size_hint(),
            Self::Disturbed(_) => SizeHint::default(),
        }
    }
}

impl RequestStream {
    pub(super) fn new(body: Incoming, observer: RequestObserver) -> Self {
        Self::of(Passing::Arriving(body), observer)
    }

    /// A body that was read before it goes on. Its frame is written by whoever has read it.
    pub(super) fn whole(body: Full<Bytes>, observer: RequestObserver) -> Self {
        Self { body: Passing::Whole(body), observer }
    }

    fn of(body: Passing, observer: RequestObserver) -> Self {
        // Nobody polls a body that is known to be empty.
        if body.is_end_stream() {
            observer.conclude();
        }
        Self { body, observer }
    }
}

impl Body for RequestStream {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<BodyFrame<Bytes>, BodyError>>> {
        let frame = ready!(self.body.frame_poll(context));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.observer.take(data);
        }
        if frame.is_none() || self.body.is_end_stream() {
            self.observer.conclude();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// How an exchange ends that its client gave up, which proves nothing about the server.
pub const CLIENT_LEFT: &str = "the client closed the connection before the response had ended";

/// How the note begins that says why content is not in the frames.
pub const UNREAD_NOTE: &str = "the rest of a body is not recorded: ";

fn unread(tap: &Tap, problem: &str) {
    tap.note(format!("{UNREAD_NOTE}{problem}"));
}

/// Adds what could be read of a body, at most `room` bytes, or notes why it could not.
fn keep(content: Result<Cow<'_, [u8]>, String>, room: usize, kept: &mut Vec<u8>, tap: &Tap) {
    match content {
        Ok(content) => kept.extend_from_slice(&content[..content.len().min(room)]),
        Err(problem) => unread(tap, &problem),
    }
}

/// Frames of a response, with its content as it was before it was compressed. Dropped before its end, it says that the client left.
pub(super) struct ResponseRecord {
    exchange: ExchangeId,
    content: ContentReader,
    limits: Limits,
    tap: Tap,
    ended: bool,
}

impl ResponseRecord {
    pub(super) fn new(exchange: ExchangeId, limits: Limits, tap: &Tap) -> Self {
        Self { exchange, content: ContentReader::new(&[]), limits, tap: tap.clone(), ended: false }
    }

    pub(super) fn head(&mut self, status: u16, headers: &HeaderMap) -> FrameId {
        let headers = named(headers);
        self.content = ContentReader::new(&headers);
        self.tap.record(Direction::FromServer, FrameBody::HttpResponse { exchange: self.exchange, status, headers })
    }

    pub(super) fn content(&mut self) -> &mut ContentReader {
        &mut self.content
    }

    pub(super) fn ended(mut self) {
        self.end(None);
    }

    pub(super) fn failed(mut self, error: &str) {
        self.end(Some(error.to_owned()));
    }

    fn record(&self, body: FrameBody) {
        self.tap.record(Direction::FromServer, body);
    }

    /// The whole body of a response that is no stream.
    pub(super) fn body(&self, bytes: &[u8]) {
        self.record(FrameBody::HttpBody { exchange: self.exchange, bytes: bytes.into() });
    }

    pub(super) fn event(&self, mut event: Event) {
        let (bytes, data) = event.take_bytes();
        self.record(FrameBody::SseEvent { exchange: self.exchange, bytes, event: event.name, id: event.id, data });
    }

    fn end(&mut self, error: Option<String>) {
        if !std::mem::replace(&mut self.ended, true) {
            self.tap.record(Direction::Local, FrameBody::HttpEnd { exchange: self.exchange, error });
        }
    }
}

impl Drop for ResponseRecord {
    fn drop(&mut self) {
        self.end(Some(CLIENT_LEFT.into()));
    }
}

/// The connection that a response comes on.
pub(super) struct Lent {
    pool: Arc<Pool<RequestStream>>,
    lease: Option<Lease<RequestStream>>,
}

impl Lent {
    pub(super) fn new(pool: &Arc<Pool<RequestStream>>, lease: Lease<RequestStream>) -> Self {
        Self { pool: Arc::clone(pool), lease: Some(lease) }
    }

    fn give_back(&mut self) {
        if let Some(lease) = self.lease.take() {
            self.pool.give_back(lease);
        }
    }
}

/// The body of a response.
pub(super) struct ResponseStream {
    body: Passing,
    seen: Seen,
    record: ResponseRecord,
    rewriter: EndpointRewriter,
    lent: Lent,
}

enum Seen {
    Whole(Vec<u8>),
    Events(Box<EventParser>),
    /// An event is longer than the limit.
    TooLong,
}

impl ResponseStream {
    pub(super) fn new(body: Incoming, record: ResponseRecord, rewriter: EndpointRewriter, lent: Lent) -> Self {
        Self::of(Passing::Arriving(body), record, rewriter, lent)
    }

    pub(super) fn disturbed(body: DisturbedBody, record: ResponseRecord, rewriter: EndpointRewriter, lent: Lent) -> Self {
        Self::of(Passing::Disturbed(DisturbedStream::new(body)), record, rewriter, lent)
    }

    fn of(body: Passing, record: ResponseRecord, rewriter: EndpointRewriter, lent: Lent) -> Self {
        let seen = if rewriter.is_event_stream() { Seen::Events(Box::default()) } else { Seen::Whole(Vec::new()) };
        let mut stream = Self { body, seen, record, rewriter, lent };
        // Nobody polls a body that is known to be empty.
        if stream.body.is_end_stream() {
            stream.finish(None);
        }
        stream
    }

    /// Records what passes, which is what the server sent, not what the client gets in the place of its address.
    fn saw(&mut self, bytes: &[u8]) {
        let Self { seen, record, .. } = self;
        for piece in record.content.pieces(bytes) {
            match seen {
                Seen::Whole(whole) => {
                    let room = record.limits.body - whole.len();
                    keep(record.content.read(piece, room), room, whole, &record.tap);
                }
                Seen::Events(parser) => {
                    match record.content.read(piece, record.limits.event) {
                        Ok(content) => parser.feed(&content, |event| record.event(event)),
                        Err(problem) => unread(&record.tap, &problem),
                    }
                    if parser.pending() > record.limits.event {
                        let most = record.limits.event;
                        record.tap.note(format!("an event is longer than {most} bytes: the rest of its stream is not recorded"));
                        *seen = Seen::TooLong;
                    }
                }
                Seen::TooLong => return,
            }
        }
    }

    fn finish(&mut self, error: Option<String>) {
        match std::mem::replace(&mut self.seen, Seen::TooLong) {
            Seen::Whole(mut bytes) => {
                if error.is_none() {
                    let room = self.record.limits.body - bytes.len();
                    keep(self.record.content.rest(room).map(Cow::from), room, &mut bytes, &self.record.tap);
                }
                self.record.body(&bytes);
            }
            Seen::Events(parser) => {
                if let Some(event) = parser.finish(self.record.limits.event) {
                    self.record.event(event);
                }
            }
            Seen::TooLong => {}
        }
        if error.is_none() {
            self.lent.give_back();
        }
        self.record.end(error);
    }
}

impl Body for ResponseStream {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<BodyFrame<Bytes>, BodyError>>> {
        loop {
            if self.record.ended {
                return Poll::Ready(self.rewriter.rest().map(|bytes| Ok(BodyFrame::data(bytes))));
            }
            match ready!(self.body.frame_poll(context)) {
                Some(Ok(frame)) => {
                    let data = match frame.into_data() {
                        Ok(data) => data,
                        Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                    };
                    self.saw(&data);
                    if self.body.is_end_stream() {
                        self.finish(None);
                    }
                    let passing = self.rewriter.pass(data);
                    if !passing.is_empty() {
                        return Poll::Ready(Some(Ok(BodyFrame::data(passing))));
                    }
                }
                Some(Err(error)) => {
                    self.finish(Some(error.to_string()));
                    return Poll::Ready(Some(Err(error)));
                }
                None => self.finish(None),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.record.ended && self.rewriter.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        match self.rewriter.is_passive() {
            true => self.body.size_hint(),
            false => SizeHint::default(),
        }
    }
}

/// Whether a response is an event stream.
pub(super) fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
}
