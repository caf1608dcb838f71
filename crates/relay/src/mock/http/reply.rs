//! The response to a POST: a body if its answer comes first, else an event stream; and the streams that a GET opens.

use super::guard::Accepts;
use super::{Site, json_response, set, whole};
use crate::mock::player::Started;
use crate::mock::session::{Outgoing, Outlet, Session};
use bytes::Bytes;
use hyper::Response;
use hyper::body::{Body as HttpBody, Frame};
use mcproof_protocol::Era;
use mcproof_protocol::error_code::METHOD_NOT_FOUND;
use serde_json::Value;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Interval, MissedTickBehavior, interval_at};

/// The connection breaks here, as it did when it was recorded.
#[derive(Debug, thiserror::Error)]
#[error("the connection breaks off as recorded")]
pub(super) struct Broken;

pub(super) type Responded = Result<Response<Body>, Broken>;

/// How often a stream that has nothing to say says so.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// A client lacks a capability (2026-07-28, basic#_meta).
const MISSING_CAPABILITY: i64 = -32021;

pub(super) enum Body {
    Whole(Option<Bytes>),
    Events(Box<Events>),
}

/// Messages as server-sent events.
pub(super) struct Events {
    /// What goes first.
    first: Option<Bytes>,
    outgoing: mpsc::Receiver<Outgoing>,
    heartbeat: Interval,
    /// What plays, and ends with the stream.
    owner: Owner,
}

/// Ends what it owns.
#[derive(Default)]
struct Owner {
    task: Option<AbortHandle>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(events) => events.poll_next(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        match self {
            Self::Whole(bytes) => hyper::body::SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Events(_) => hyper::body::SizeHint::default(),
        }
    }
}

impl Events {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        match self.outgoing.poll_recv(context) {
            Poll::Ready(Some(Outgoing::Message { message, .. })) => return Poll::Ready(Some(Ok(Frame::data(event(&message))))),
            Poll::Ready(Some(Outgoing::Break | Outgoing::Http { .. })) => return Poll::Ready(Some(Err(Broken))),
            Poll::Ready(None) => {
                // What still plays belongs to the session.
                self.owner.task = None;
                return Poll::Ready(None);
            }
            Poll::Pending => {}
        }
        match self.heartbeat.poll_tick(context) {
            Poll::Ready(_) => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b": the stream is open\n\n"))))),
            Poll::Pending => Poll::Pending,
        }
    }
}

pub(super) fn event(message: &Value) -> Bytes {
    Bytes::from(format!("event: message\ndata: {message}\n\n"))
}

fn events(first: Option<Bytes>, outgoing: mpsc::Receiver<Outgoing>, owner: Owner) -> Response<Body> {
    let mut heartbeat = interval_at(tokio::time::Instant::now() + HEARTBEAT, HEARTBEAT);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut response = Response::new(Body::Events(Box::new(Events { first, outgoing, heartbeat, owner })));
    set(&mut response, "content-type", "text/event-stream");
    set(&mut response, "cache-control", "no-cache");
    // Proxies are to pass each event on at once.
    set(&mut response, "x-accel-buffering", "no");
    response
}

/// A stream for what belongs to no request of the session, which may begin with an event of its own.
pub(super) fn open_stream(site: &Site, session: Arc<Session>, first: Option<Bytes>) -> Response<Body> {
    let (outlet, outgoing) = Outlet::new();
    // What has waited may be more than fits before anybody reads.
    let task = site.own(async move {
        session.attach(outlet.clone()).await;
        tokio::select! {
            () = session.until_end() => {}
            () = outlet.closed() => {}
        }
    });
    events(first, outgoing, Owner { task: Some(task) })
}

/// Plays a request and responds with what comes.
pub(super) async fn respond(site: &Site, started: Started, accepts: Accepts, session: Option<&str>) -> Responded {
    let (outlet, outgoing) = Outlet::new();
    let (player, era) = (Arc::clone(&site.mock), started.era());
    respond_with(site, async move { started.play(&player, outlet).await }, outgoing, accepts, era, session).await
}

/// The same for whatever sends there.
pub(super) async fn respond_with(
    site: &Site,
    play: impl Future<Output = ()> + Send + 'static,
    mut outgoing: mpsc::Receiver<Outgoing>,
    accepts: Accepts,
    era: Era,
    session: Option<&str>,
) -> Responded {
    let mut owner = Owner { task: Some(site.own(play)) };
    let mut response = loop {
        break match outgoing.recv().await {
            // It was canceled: nothing is left to say.
            None | Some(Outgoing::Break) => return Err(Broken),
            Some(Outgoing::Http { status, headers, body, .. }) => {
                let mut response = whole(status, "text/plain", body);
                headers.iter().for_each(|(name, value)| set(&mut response, name, value));
                response
            }
            Some(Outgoing::Message { message, status }) if is_response(&message) && (accepts.json || !accepts.events) => {
                let status = status.unwrap_or_else(|| status_of(&message, era));
                json_response(status, &message)
            }
            // What comes before the response has no place in a body.
            Some(Outgoing::Message { .. }) if !accepts.events => continue,
            Some(Outgoing::Message { message, .. }) => {
                let mut response = events(Some(event(&message)), outgoing, std::mem::take(&mut owner));
                set_session(&mut response, session);
                return Ok(response);
            }
        };
    };
    // What still plays belongs to the session.
    owner.task = None;
    set_session(&mut response, session);
    Ok(response)
}

fn set_session(response: &mut Response<Body>, session: Option<&str>) {
    if let Some(session) = session {
        set(response, "mcp-session-id", session);
    }
}

/// The status of a body with this response, where the recording has none.
fn status_of(message: &Value, era: Era) -> u16 {
    match (era, message.get("error").and_then(|error| error["code"].as_i64())) {
        (Era::Modern, Some(METHOD_NOT_FOUND)) => 404,
        (Era::Modern, Some(MISSING_CAPABILITY)) => 400,
        _ => 200,
    }
}

fn is_response(message: &Value) -> bool {
    message.is_array() || message.get("method").is_none()
}
