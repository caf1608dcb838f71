//! Serves a handler over any rmcp transport: a pair of byte streams, or the queue of an HTTP+SSE session. The demos are served
//! so, and `mcproof mcp`. Knows when a connection opens and ends, not what is asked on it.

use std::{collections::HashSet, future::Future, io, sync::Arc, time::Duration};

use rmcp::{
    RoleServer, ServerHandler, ServiceExt,
    model::{ClientJsonRpcMessage, ClientNotification, ClientRequest, GetMeta, ProtocolVersion, RequestId, ServerJsonRpcMessage},
    service::{RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::{sync::watch, time::Instant};

/// How long the requests that are under way may take when the peer ends the connection.
const GRACE: Duration = Duration::from_secs(1);

/// Serves `handler` until the peer ends the connection or `stop` resolves. `phase` is told how far the connection is, so that
/// requests of the handler that wait for something can give up in time.
///
/// # Errors
/// If the transport breaks.
pub async fn serve_transport<H, T>(handler: H, phase: Phase, transport: T, stop: impl Future<Output = ()>) -> io::Result<()>
where
    H: ServerHandler,
    T: Transport<RoleServer> + 'static,
{
    let transport = Patient { transport, phase: phase.clone(), begun: Begun::Not, pending: Pending::default() };
    let mut stop = std::pin::pin!(stop);
    let running = tokio::select! {
        running = handler.serve(transport) => running,
        () = &mut stop => return Ok(()),
    };
    let running = match running {
        Ok(running) => running,
        // A peer that left, or was refused, before it opened a session did nothing wrong to us.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::InitializeFailed(_)) => {
            return Ok(());
        }
        Err(error) => return Err(io::Error::other(error)),
    };
    let cancellation = running.cancellation_token();
    let mut ended = std::pin::pin!(running.waiting());
    let ended = tokio::select! {
        ended = &mut ended => ended,
        () = stop => {
            phase.end();
            cancellation.cancel();
            ended.await
        }
    };
    ended.map(drop).map_err(io::Error::other)
}

/// How far a connection is. rmcp waits for every request that is under way when a connection ends, and does not tell
/// the request: so that one that waits for something looks here.
#[derive(Clone)]
pub struct Phase(Arc<watch::Sender<Stage>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Open,
    /// The peer will say no more. What it asked is still answered.
    Closing,
    /// Nothing more is answered.
    Closed,
}

impl Default for Phase {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Stage::Open)))
    }
}

impl Phase {
    /// The peer will say no more.
    fn close(&self) {
        self.advance(Stage::Closing);
    }

    /// Time is up.
    fn end(&self) {
        self.advance(Stage::Closed);
    }

    /// Resolves when there is no point in waiting for an event any longer.
    pub async fn closing(&self) {
        self.reached(Stage::Closing).await;
    }

    /// Resolves when there is no point in finishing work any longer.
    pub async fn closed(&self) {
        self.reached(Stage::Closed).await;
    }

    fn advance(&self, to: Stage) {
        self.0.send_if_modified(|stage| {
            let advances = *stage < to;
            *stage = to.max(*stage);
            advances
        });
    }

    async fn reached(&self, stage: Stage) {
        let mut changes = self.0.subscribe();
        // `self` owns the sender, so that it outlives this wait.
        let _owned = changes.wait_for(|now| *now >= stage).await;
    }
}

/// A transport that spares rmcp what it takes badly, at both ends of a connection. Before the session is open, a
/// notification or an answer would end it; nothing may be said to either, so that they are withheld. And when the peer
/// has said its last word, rmcp sends no notification any more, so that a request that sends one would hang: the end
/// is withheld until what is under way is answered.
struct Patient<T> {
    transport: T,
    phase: Phase,
    begun: Begun,
    pending: Pending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begun {
    Not,
    Yes,
    /// And the peer has said its last word; requests have until then to be answered.
    Over(Instant),
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Patient<T> {
    type Error = T::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &item {
            ServerJsonRpcMessage::Response(response) => Some(response.id.clone()),
            ServerJsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let sending = self.transport.send(item);
        let pending = self.pending.clone();
        async move {
            let sent = sending.await;
            if let Some(id) = answered {
                pending.remove(&id);
            }
            sent
        }
    }

    /// Cancel safe: what a message changes is changed in the poll in which it arrived, and the wait at the end
    /// begins anew with the same deadline.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Begun::Over(deadline) = self.begun {
                // Either all is answered, or it is too late for that.
                let _late = tokio::time::timeout_at(deadline, self.pending.none()).await;
                self.phase.end();
                return None;
            }
            let Some(message) = self.transport.receive().await else {
                self.phase.close();
                self.begun = Begun::Over(Instant::now() + GRACE);
                continue;
            };
            match &message {
                ClientJsonRpcMessage::Request(request) => {
                    self.pending.insert(request.id.clone());
                    if self.begun == Begun::Not && opens(&request.request) {
                        self.begun = Begun::Yes;
                    }
                }
                _ if self.begun == Begun::Not => continue,
                ClientJsonRpcMessage::Notification(notification) => {
                    // A cancelled request is not answered.
                    if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                        && let Some(id) = &cancelled.params.request_id
                    {
                        self.pending.remove(id);
                    }
                }
                _ => {}
            }
            return Some(message);
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.transport.close()
    }
}

/// The requests that are not answered yet.
#[derive(Clone)]
struct Pending(Arc<watch::Sender<HashSet<RequestId>>>);

impl Default for Pending {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(HashSet::new())))
    }
}

impl Pending {
    fn insert(&self, id: RequestId) {
        self.0.send_modify(|ids| {
            ids.insert(id);
        });
    }

    fn remove(&self, id: &RequestId) {
        self.0.send_modify(|ids| {
            ids.remove(id);
        });
    }

    async fn none(&self) {
        let mut changes = self.0.subscribe();
        // `self` owns the sender, so that it outlives this wait.
        let _owned = changes.wait_for(HashSet::is_empty).await;
    }
}

/// Whether a request begins a session: `initialize`, or a modern request that carries all that it must. A
/// `server/discover` only asks what could be begun.
fn opens(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => false,
        request => {
            let meta = request.get_meta();
            meta.protocol_version().is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version))
                && meta.missing_required_keys(&ProtocolVersion::NO_INITIALIZE).is_empty()
        }
    }
}
