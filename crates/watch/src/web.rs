//! The dashboard, the status page and the API: shows what the store knows, and writes down what people decide. Never probes,
//! and never decides what a result means.

mod api;
mod assets;
mod chart;
mod guard;
mod live;
mod pages;
mod shown;

pub use guard::is_open;
pub(crate) use pages::Fault;

use crate::config::Config;
use crate::metrics::Metrics;
use crate::moment::Moment;
use crate::store::Store;
use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{any, delete, get, post};
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use mcproof_client::Network;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore, broadcast, watch};
use tokio::task::JoinSet;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

/// For a browser to send the head of a request.
const HEAD: Duration = Duration::from_secs(15);
/// Connections at a time; others wait.
const CONNECTIONS: usize = 512;
/// For connections to end after a shutdown was asked for.
const FAREWELL: Duration = Duration::from_secs(5);
/// Minutes: nothing is muted, planned or expected for longer by a slip.
const LONGEST: u32 = 60 * 24 * 60;

/// Asked for each request: the configuration may be exchanged while we run.
pub type Current = Arc<dyn Fn() -> Arc<Config> + Send + Sync>;

/// What the pages are made from.
#[derive(Clone)]
pub struct State {
    pub store: Store,
    pub config: Current,
    pub now: fn() -> Moment,
    /// The names of targets of which something changed. Whoever knows first rings it; we do so, too.
    pub bell: broadcast::Sender<String>,
    pub metrics: Arc<Metrics>,
    /// Rung when the API added, changed or removed a target.
    pub targets_changed: Arc<Notify>,
    /// The way to a collector of OTLP.
    pub network: Network,
    inner: Arc<Inner>,
}

struct Inner {
    started: Moment,
    /// Signs what forms carry.
    key: ring::hmac::Key,
    assets: assets::Assets,
    glance: Mutex<pages::Glance>,
    spans: crate::otlp::Queue,
    refusals: guard::Refusals,
    /// Tells endless answers that we are about to end.
    closing: watch::Sender<bool>,
}

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

#[derive(Debug, thiserror::Error)]
pub enum ServeFailure {
    #[error("{0} can be reached from other machines, and nobody has to log in")]
    Open(SocketAddr),
    #[error("cannot listen: {0}")]
    Listen(#[from] std::io::Error),
}

impl ServeFailure {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Open(_) => "set `login.tokens` or `login.proxy_header`, or let `listen` be a loopback address such as `127.0.0.1:9180`",
            Self::Listen(_) => "choose another address for `listen`",
        }
    }
}

impl State {
    pub fn new(store: Store, config: Current, now: fn() -> Moment, bell: broadcast::Sender<String>) -> Self {
        let inner = Inner {
            started: now(),
            key: guard::key(&config()),
            assets: assets::Assets::default(),
            glance: Mutex::default(),
            spans: crate::otlp::Queue::default(),
            refusals: guard::Refusals::default(),
            closing: watch::Sender::new(false),
        };
        Self {
            store,
            config,
            now,
            bell,
            metrics: Arc::default(),
            targets_changed: Arc::default(),
            network: Network::default(),
            inner: Arc::new(inner),
        }
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        (self.config)()
    }

    pub(crate) fn now(&self) -> Moment {
        (self.now)()
    }
}

pub fn router(state: State) -> Router {
    let api = Router::new()
        .route("/api/targets", get(api::targets::list))
        .route(
            "/api/targets/{name}",
            get(api::targets::one).post(api::targets::add).put(api::targets::replace).delete(api::targets::remove),
        )
        .route("/api/targets/{name}/deploys", post(api::desk::deploy))
        .route("/api/targets/{name}/mute", post(api::desk::mute))
        .route("/api/incidents", get(api::desk::incidents))
        .route("/api/incidents/{id}/acknowledge", post(api::desk::acknowledge))
        .route("/api/maintenance", get(api::desk::maintenance).post(api::desk::announce))
        .route("/api/maintenance/{id}", delete(api::desk::end))
        .route("/api/results", get(api::desk::results))
        .route("/api/", any(api::nothing))
        .route("/api/{*rest}", any(api::nothing))
        .method_not_allowed_fallback(api::other_method);
    let private = Router::new()
        .route("/", get(pages::overview::page))
        .route("/rows", get(pages::overview::rows))
        .route("/targets/{name}", get(pages::target::page))
        .route("/targets/{name}/mute", post(pages::target::mute))
        .route("/targets/{name}/deploys", post(pages::target::deploy))
        .route("/incidents", get(pages::incident::list))
        .route("/incidents/{id}", get(pages::incident::page))
        .route("/incidents/{id}/acknowledge", post(pages::incident::acknowledge))
        .route("/evidence/{id}", get(pages::evidence::page))
        .route("/changes/{id}", get(pages::change::page))
        .route("/maintenance", get(pages::maintenance::page).post(pages::maintenance::announce))
        .route("/maintenance/{id}/end", post(pages::maintenance::end))
        .route("/tokens", get(pages::tokens::page).post(pages::tokens::add))
        .route("/tokens/{name}/remove", post(pages::tokens::remove))
        .route("/logout", post(pages::login::leave))
        .route("/events", get(live::events))
        .route("/metrics", get(crate::metrics::page))
        .merge(api)
        .layer(from_fn_with_state(state.clone(), guard::admit));
    let public = Router::new()
        .route("/login", get(pages::login::page).post(pages::login::enter))
        .route("/status", get(pages::status::page))
        .route("/status/{name}", get(pages::status::one))
        .route("/badge/{file}", get(pages::status::badge))
        .route("/healthz", get(live::health))
        .route("/assets/{file}", get(assets::file))
        .layer(from_fn_with_state(state.clone(), guard::greet));
    // Quick rather than small: probes wait for the same thread. Event streams are left as they are. What forms are sealed with
    // is worth no guessing by sizes: other sites cannot have a page that holds the seal of a visitor (`SameSite=Strict`).
    let compression = CompressionLayer::new().quality(CompressionLevel::Fastest);
    private.merge(public).fallback(pages::nothing).layer(from_fn(guard::harden)).layer(compression).with_state(state)
}

/// Answers requests, and follows what is written to the store, until `shutdown`.
///
/// # Errors
/// Other machines could reach a dashboard that nobody has to log in to, or the listener is broken.
pub async fn serve(listener: TcpListener, state: State, shutdown: impl Future<Output = ()>) -> Result<(), ServeFailure> {
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() && is_open(&state.config()) {
        return Err(ServeFailure::Open(address));
    }
    let closing = state.inner.closing.subscribe();
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    let router = router(state.clone());
    let accept = async {
        loop {
            let permit = room.clone().acquire_owned().await.expect("nobody closes it");
            while connections.try_join_next().is_some() {}
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(_) => {
                    // Out of file descriptors, or gone before we came to it: the next one may do better.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let _ = stream.set_nodelay(true);
            let inner = TowerToHyperService::new(router.clone());
            let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
                request.extensions_mut().insert(Peer(peer));
                inner.call(request)
            });
            let mut closing = closing.clone();
            connections.spawn(async move {
                let connection = hyper::server::conn::http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEAD)
                    .serve_connection(TokioIo::new(stream), service);
                tokio::pin!(connection);
                tokio::select! {
                    _ = connection.as_mut() => {}
                    () = closed(&mut closing) => {
                        connection.as_mut().graceful_shutdown();
                        let _ = connection.await;
                    }
                }
                drop(permit);
            });
        }
    };
    tokio::select! {
        () = shutdown => {}
        () = live::follow(&state) => {}
        () = live::export(&state) => {}
        () = accept => {}
    }
    state.inner.closing.send_replace(true);
    let _ = tokio::time::timeout(FAREWELL, async { while connections.join_next().await.is_some() {} }).await;
    connections.shutdown().await;
    Ok(())
}

/// Resolves once we are about to end.
async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}
