//! Serves a demo over HTTP+SSE, the transport of 2024-11-05: GET `/sse` opens a stream, whose first event names
//! where to POST. Written here because rmcp has none any more. Knows sessions and events, not what is asked.

use std::{
    collections::HashMap,
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, HttpBody, to_bytes},
    extract::{Query, Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use hyper::body::Frame;
use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, ErrorData},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde::Deserialize;
use tokio::{
    sync::mpsc,
    task::AbortHandle,
    time::{Interval, MissedTickBehavior, interval_at},
};

use super::{
    handler::Demo,
    http::{LARGEST_BODY, health, is_json, refuse, well_formed},
};
use crate::patient::serve_transport;

/// The methods of the endpoints.
pub(crate) const METHODS: &str = "GET, POST, OPTIONS";

/// How many messages may wait in each direction before the sender waits as well.
const QUEUE: usize = 64;

/// How often an idle stream says that it is still there: well below the idle limits of proxies.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The routes, and what ends every open stream.
pub(crate) fn routes(demo: Demo) -> (Router, impl FnOnce() + Send + use<>) {
    let sessions = Sessions::default();
    let closing = sessions.clone();
    let router = Router::new()
        .route("/sse", get(open))
        .route("/messages", post(accept))
        .route("/health", get(async || health()))
        .with_state(Hub { demo, sessions });
    (router, move || closing.close())
}

#[derive(Clone)]
struct Hub {
    demo: Demo,
    sessions: Sessions,
}

/// The open sessions by id: where their messages go, and the task that serves each.
#[derive(Clone, Default)]
struct Sessions(Arc<Mutex<HashMap<String, Session>>>);

struct Session {
    inbox: mpsc::Sender<ClientJsonRpcMessage>,
    service: AbortHandle,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, id: &str) {
        if let Some(session) = self.lock().remove(id) {
            session.service.abort();
        }
    }

    /// Ends every session, and with each its stream.
    fn close(&self) {
        for (_, session) in self.lock().drain() {
            session.service.abort();
        }
    }
}

async fn open(State(hub): State<Hub>) -> Response {
    let id = uuid::Uuid::new_v4().to_string();
    let (inbox, received) = mpsc::channel(QUEUE);
    let (outbox, sent) = mpsc::channel(QUEUE);
    let handler = hub.demo.connect();
    let phase = handler.phase().clone();
    let service = tokio::spawn(async move {
        // The stream ends with its queue; a peer that broke the session needs no other word.
        let _broken = serve_transport(handler, phase, Queue { received, outbox }, std::future::pending()).await;
    });
    hub.sessions.lock().insert(id.clone(), Session { inbox, service: service.abort_handle() });
    let first = format!("event: endpoint\ndata: /messages?session_id={id}\n\n");
    let mut keep_alive = interval_at(tokio::time::Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
    keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let stream = Stream { first: Some(first.into()), sent, keep_alive, id, sessions: hub.sessions };
    let headers =
        [(header::CONTENT_TYPE.as_str(), "text/event-stream"), (header::CACHE_CONTROL.as_str(), "no-cache"), ("x-accel-buffering", "no")];
    (headers, Body::new(stream)).into_response()
}

#[derive(Deserialize)]
struct Address {
    session_id: Option<String>,
}

async fn accept(State(hub): State<Hub>, Query(address): Query<Address>, request: Request) -> Response {
    let Some(id) = address.session_id else {
        return (StatusCode::BAD_REQUEST, "Bad Request: session_id is required").into_response();
    };
    let inbox = hub.sessions.lock().get(&id).map(|session| session.inbox.clone());
    let Some(inbox) = inbox else {
        return (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response();
    };
    if !is_json(request.headers()) {
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, "Unsupported Media Type: Content-Type must be application/json").into_response();
    }
    let Ok(body) = to_bytes(request.into_body(), LARGEST_BODY).await else {
        return (StatusCode::PAYLOAD_TOO_LARGE, "Payload Too Large").into_response();
    };
    if let Err(error) = well_formed(&body) {
        return refuse(&error);
    }
    let Ok(message) = serde_json::from_slice(&body) else {
        return refuse(&ErrorData::invalid_request("The message is not one that MCP knows", None));
    };
    match inbox.send(message).await {
        Ok(()) => (StatusCode::ACCEPTED, "Accepted").into_response(),
        // The service has ended, and its session with it.
        Err(_) => (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response(),
    }
}

/// The two queues between rmcp and one session.
struct Queue {
    received: mpsc::Receiver<ClientJsonRpcMessage>,
    outbox: mpsc::Sender<Bytes>,
}

/// The stream that an answer was for has ended.
#[derive(Debug, thiserror::Error)]
#[error("the event stream has ended")]
struct StreamEnded;

impl Transport<RoleServer> for Queue {
    type Error = StreamEnded;

    fn send(&mut self, item: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let outbox = self.outbox.clone();
        async move {
            let message = serde_json::to_string(&item).expect("rmcp's messages are JSON");
            let event = format!("event: message\ndata: {message}\n\n");
            outbox.send(event.into()).await.map_err(|_| StreamEnded)
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.received.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.received.close();
        Ok(())
    }
}

/// The body of the answer to GET `/sse`. When it is dropped, the peer has gone, and its session ends.
struct Stream {
    first: Option<Bytes>,
    sent: mpsc::Receiver<Bytes>,
    keep_alive: Interval,
    id: String,
    sessions: Sessions,
}

impl HttpBody for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        match self.sent.poll_recv(context) {
            Poll::Ready(Some(event)) => {
                self.keep_alive.reset();
                Poll::Ready(Some(Ok(Frame::data(event))))
            }
            Poll::Ready(None) => Poll::Ready(None),
            // A comment, which no parser takes for a message.
            Poll::Pending => self.keep_alive.poll_tick(context).map(|_| Some(Ok(Frame::data(Bytes::from_static(b": keep-alive\n\n"))))),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.sessions.end(&self.id);
    }
}
