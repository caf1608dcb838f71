//! HTTP+SSE of 2024-11-05: one long event stream brings everything, POSTs to the endpoint that it names carry what we say.
//! Source: 2024-11-05, basic/transports, HTTP with SSE.

use super::faults::FaultInjector;
use super::http::{EVENT_STREAM, Exchanger, deliver, excerpt, fault_of, media_type};
use super::pool::AddressFailure;
use super::sse_events::Event;
use super::{Broken, Closed, Endpoint, Envelope, HttpHead, Inbox, Limits, Network, Repeat, Unanswered, ViolationKind};
use crate::Tap;
use crate::auth::{AuthorizationFailure, Bearer};
use hyper::Method;
use mcproof_record::FrameId;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use url::Url;

/// How long the response to a request may take to come on the stream that is in the body of the response to its POST.
const ALSO_ON_STREAM: Duration = Duration::from_secs(1);

const LOOK: Duration = Duration::from_millis(10);

pub(crate) struct SseConnection {
    exchanger: Arc<Exchanger>,
    stream: Url,
    messages: Url,
    inbox: Arc<dyn Inbox>,
    /// Reads the stream for as long as the connection lives.
    _stream: AbortOnDrop,
    posts: Mutex<JoinSet<()>>,
}

/// Why no HTTP+SSE connection came about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseFailure {
    #[error(transparent)]
    Address(#[from] AddressFailure),
    #[error("{0}")]
    Unreachable(Broken),
    #[error("GET returned status {} and `{}`, not an event stream", .0.status, .0.header("content-type").unwrap_or("no content type"))]
    NoStream(Arc<HttpHead>),
    #[error("server requires authorization (HTTP {}), which failed: {failure}", .head.status)]
    Unauthorized { head: Arc<HttpHead>, failure: AuthorizationFailure },
    #[error("the event stream ended before its `endpoint` event{}", .0.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Ended(Option<Broken>),
    #[error("server sent {0}, before any `endpoint` event")]
    Flawed(ViolationKind),
    #[error("the first event is `{0}`, not `endpoint`")]
    OtherEvent(String),
    #[error("the endpoint `{0}` is not a URL of the same origin")]
    BadEndpoint(String),
}

impl SseConnection {
    /// Opens the stream and waits for its endpoint; the caller sets the deadline.
    pub(crate) async fn open(
        endpoint: &Endpoint,
        limits: Limits,
        network: &Network,
        bearer: Option<&Bearer>,
        faults: Option<&FaultInjector>,
        tap: &Tap,
        inbox: Arc<dyn Inbox>,
    ) -> Result<Self, SseFailure> {
        let exchanger = Arc::new(Exchanger::new(endpoint, limits, network, tap)?.bearing(bearer).disturbed(faults));
        let headers = vec![("accept".to_owned(), EVENT_STREAM.to_owned())];
        let (exchange, _, prepared) = exchanger.prepare(Method::GET, &endpoint.url, &headers, Vec::new(), Repeat::Once);
        let open = exchanger
            .open(exchange, prepared.map_err(|reason| SseFailure::Unreachable(reason.into()))?)
            .await
            .map_err(SseFailure::Unreachable)?;
        if open.head.status != 200 || media_type(&open.head) != EVENT_STREAM {
            return Err(SseFailure::NoStream(open.head));
        }
        let (announce, announced) = oneshot::channel();
        let stream = AbortOnDrop(tokio::spawn({
            let (exchanger, inbox) = (Arc::clone(&exchanger), Arc::clone(&inbox));
            async move {
                let head = Arc::clone(&open.head);
                let mut announce = Some(announce);
                let seen = |event: &Event, frame: FrameId| {
                    let first = event.data.as_ref().filter(|_| !event.unfinished).and_then(|data| Some((announce.take()?, data)));
                    match first {
                        Some((announce, data)) => {
                            let name = event.name.clone().unwrap_or_else(|| "message".into());
                            let _ = announce.send(Ok((name, String::from_utf8_lossy(data).into_owned())));
                        }
                        None => {
                            if let Some(flaw) = event.flaw()
                                && let Some(announce) = announce.take()
                            {
                                let _ = announce.send(Err(SseFailure::Flawed(fault_of(&flaw))));
                            }
                            deliver(&*inbox, event, frame, &head, None);
                        }
                    }
                    ControlFlow::Continue(())
                };
                let broken = exchanger.events(open, Some(&*inbox), seen).await;
                if let Some(announce) = announce.take() {
                    let _ = announce.send(Err(SseFailure::Ended(broken.clone())));
                }
                inbox.closed(broken.map_or(Closed::StreamEnded, Closed::StreamBroken));
            }
        }));
        let (name, data) = announced.await.unwrap_or(Err(SseFailure::Ended(None)))?;
        if name != "endpoint" {
            return Err(SseFailure::OtherEvent(name));
        }
        let messages = endpoint.url.join(data.trim()).map_err(|_| SseFailure::BadEndpoint(data.clone()))?;
        // Credentials and messages must not follow an endpoint to another origin.
        if messages.origin() != endpoint.url.origin() {
            return Err(SseFailure::BadEndpoint(data));
        }
        Ok(Self { exchanger, stream: endpoint.url.clone(), messages, inbox, _stream: stream, posts: Mutex::default() })
    }

    /// Where its stream is, and what talks to it.
    pub(crate) fn endpoint(&self) -> (&Exchanger, &Url) {
        (&self.exchanger, &self.stream)
    }

    /// Whether a new connection can be made.
    pub(crate) async fn accepts(&self) -> bool {
        self.exchanger.accepts().await.is_ok()
    }

    pub(crate) fn send(&self, envelope: Envelope) -> FrameId {
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        headers.extend(envelope.headers);
        // Its response may be on the stream already, whatever became of the connection of the POST.
        let (exchange, frame, prepared) = self.exchanger.prepare(Method::POST, &self.messages, &headers, envelope.body, Repeat::Never);
        let (exchanger, inbox) = (Arc::clone(&self.exchanger), Arc::clone(&self.inbox));
        let mut posts = self.posts.lock().unwrap_or_else(PoisonError::into_inner);
        while posts.try_join_next().is_some() {}
        posts.spawn(async move {
            let open = match prepared {
                Ok(prepared) => exchanger.open(exchange, prepared).await,
                Err(reason) => Err(reason.into()),
            };
            let unanswered = match open {
                Err(reason) => Unanswered::Unreachable(reason),
                Ok(open) => {
                    let head = Arc::clone(&open.head);
                    let (bytes, broken, frame) = exchanger.body(open).await;
                    // The response is to come on the stream.
                    if let Some(request) = envelope.purpose.request().filter(|_| (200..300).contains(&head.status)) {
                        if matches!(bytes.as_bytes().trim_ascii(), [b'{', .., b'}']) {
                            inbox.fault(frame, ViolationKind::AnswerOffStream);
                            // Clients pass over the body: what counts is whether the response is on the stream as well.
                            let until = Instant::now() + ALSO_ON_STREAM;
                            while inbox.waits_for(request) && Instant::now() < until {
                                sleep(LOOK).await;
                            }
                            if inbox.waits_for(request) {
                                inbox.lost(frame, ViolationKind::AnswerOffStream, bytes.as_bytes(), Some(request));
                            }
                        }
                        return;
                    }
                    Unanswered::Response { head, excerpt: excerpt(bytes.as_bytes()), broken }
                }
            };
            envelope.purpose.conclude(&*inbox, unanswered);
        });
        frame
    }

    /// Waits until each POST has its whole response. False if some have not when the time is over.
    pub(crate) async fn settle(&self, patience: Duration) -> bool {
        let next = || poll_fn(|context| self.posts.lock().unwrap_or_else(PoisonError::into_inner).poll_join_next(context));
        timeout(patience, async { while next().await.is_some() {} }).await.is_ok()
    }
}

/// A task that ends with its owner.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
