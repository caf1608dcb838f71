//! The dashboard, the status page and the API: shows what the store knows, and writes down what people decide. Never probes,
//! and never decides what a result means.

mod api;
mod assets;
mod chart;
mod connections;
mod decisions;
mod guard;
mod hooks;
mod known;
mod live;
mod pages;
mod push;
mod rendered;
mod shown;
mod subscribe;

pub use guard::is_open;
pub(crate) use pages::Fault;
pub(crate) use shown::span;

use crate::config::Config;
use crate::incident::Class;
use crate::metrics::Metrics;
use crate::moment::Moment;
use crate::store::Store;
use crate::worker::WorkerHealth;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{any, delete, get, post};
use mcproof_client::Network;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::{Notify, broadcast, watch};
use tokio::task::JoinSet;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

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
    pub now: Arc<dyn Fn() -> Moment + Send + Sync>,
    /// The names of targets of which something changed. Whoever knows first rings it; we do so, too.
    pub bell: broadcast::Sender<String>,
    pub metrics: Arc<Metrics>,
    /// Rung when the API added, changed or removed a target.
    pub targets_changed: Arc<Notify>,
    /// How the worker of this process is, if it has one.
    pub worker_health: WorkerHealth,
    /// The way to a collector of OTLP.
    pub network: Network,
    /// What the collector knows this process by.
    pub instance: String,
    inner: Arc<Inner>,
}

struct Inner {
    started: Moment,
    /// When results were last seen to be written, whatever the clock on the wall says.
    news: Mutex<Instant>,
    /// Why the store could not be looked at the last time.
    unread: Mutex<Option<String>>,
    /// What was open when that could be read last: what each incident is about. It may be opened anew under another id.
    open: Mutex<BTreeMap<String, (String, Class)>>,
    /// Signs what forms carry.
    key: ring::hmac::Key,
    assets: assets::Assets,
    glance: Mutex<pages::Overview>,
    rendered: rendered::Rendered,
    spans: crate::otlp::Queue,
    refusals: guard::Refusals,
    /// What was refused and written down.
    refused: guard::Refusals,
    /// Requests for subscriptions.
    subscribing: guard::Refusals,
    /// Tells endless answers that we are about to end.
    closing: watch::Sender<bool>,
}

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

impl Peer {
    fn address(self) -> IpAddr {
        self.0.ip().to_canonical()
    }

    /// What is counted as one: an address, or with IPv6 the 64 bits of the network, of which one house has all addresses.
    fn client_network(self) -> IpAddr {
        match self.address() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            address => address,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ServeFailure {
    #[error("{0} is reachable from other machines, but `login` is not set")]
    Open(SocketAddr),
    #[error("cannot listen: {0}")]
    Listen(#[from] std::io::Error),
}

impl ServeFailure {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Open(_) => "set `login.tokens`, `login.users` or `login.proxy`, or listen on a loopback address such as `127.0.0.1:7130`",
            Self::Listen(_) => "use another address for `listen`",
        }
    }
}

impl State {
    pub fn new(store: Store, config: Current, now: impl Fn() -> Moment + Send + Sync + 'static, bell: broadcast::Sender<String>) -> Self {
        let inner = Inner {
            started: now(),
            news: Mutex::new(Instant::now()),
            unread: Mutex::default(),
            open: Mutex::default(),
            key: guard::key(&config()),
            assets: assets::Assets::default(),
            glance: Mutex::default(),
            rendered: rendered::Rendered::default(),
            spans: crate::otlp::Queue::default(),
            refusals: guard::Refusals::default(),
            refused: guard::Refusals::default(),
            subscribing: guard::Refusals::default(),
            closing: watch::Sender::new(false),
        };
        Self {
            store,
            config,
            now: Arc::new(now),
            bell,
            metrics: Arc::default(),
            targets_changed: Arc::default(),
            worker_health: WorkerHealth::default(),
            network: Network::default(),
            instance: "local".into(),
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
        .route("/api/targets/{name}/deploys", post(api::operations::deploy))
        .route("/api/targets/{name}/mute", post(api::operations::mute))
        .route("/api/incidents", get(api::operations::incidents))
        .route("/api/incidents/{id}/acknowledge", post(api::operations::acknowledge))
        .route("/api/maintenance", get(api::operations::maintenance).post(api::operations::announce))
        .route("/api/maintenance/{id}", delete(api::operations::end))
        .route("/api/silences", get(api::silences::list).post(api::silences::add))
        .route("/api/silences/{id}", delete(api::silences::end))
        .route("/api/notices", get(api::notices::list).post(api::notices::post))
        .route("/api/notices/{id}", delete(api::notices::withdraw))
        .route("/api/notices/{id}/updates", post(api::notices::add))
        .route("/api/audit", get(api::operations::audit))
        .route("/api/results", get(api::operations::results))
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
        .route("/silences", get(pages::silences::page).post(pages::silences::add))
        .route("/silences/{id}/end", post(pages::silences::end))
        .route("/notices", get(pages::notices::page).post(pages::notices::post))
        .route("/notices/{id}/updates", post(pages::notices::add))
        .route("/notices/{id}/withdraw", post(pages::notices::withdraw))
        .route("/audit", get(pages::audit::page))
        .route("/tokens", get(pages::tokens::page).post(pages::tokens::add))
        .route("/tokens/{name}/remove", post(pages::tokens::remove))
        .route("/logout", post(pages::login::leave))
        .route("/events", get(live::events))
        .route("/metrics", get(crate::metrics::page))
        .merge(api)
        .layer(from_fn_with_state(state.clone(), guard::admit));
    let jobs = Router::new()
        .route("/push/{token}", get(push::succeeded).post(push::succeeded).put(push::succeeded))
        .route("/push/{token}/{word}", get(push::other).post(push::other).put(push::other));
    let services = Router::new().route("/hooks/{channel}", post(hooks::take)).layer(DefaultBodyLimit::max(hooks::LARGEST));
    // Whoever sends these is known by nothing but a link.
    let subscriptions = Router::new()
        .route("/subscribe", post(subscribe::request))
        .route("/subscribe/{token}", get(subscribe::confirm_page).post(subscribe::confirm))
        .route("/unsubscribe/{token}", get(subscribe::leave_page).post(subscribe::leave))
        .layer(DefaultBodyLimit::max(subscribe::LARGEST));
    let public = Router::new()
        .route("/login", get(pages::login::page).post(pages::login::enter))
        .route("/status", get(pages::status::page))
        .route("/status.atom", get(pages::status::feed))
        .route("/status/{name}", get(pages::status::one))
        .route("/badge/{file}", get(pages::status::badge))
        .route("/healthz", get(live::health))
        .route("/assets/{file}", get(assets::file))
        .layer(from_fn_with_state(state.clone(), guard::greet));
    // Quick rather than small: probes wait for the same thread. Event streams are left as they are. What forms are sealed with
    // is worth no guessing by sizes: other sites cannot have a page that holds the seal of a identity (`SameSite=Strict`).
    let compression = CompressionLayer::new().quality(CompressionLevel::Fastest);
    private
        .merge(public)
        .merge(jobs)
        .merge(services)
        .merge(subscriptions)
        .fallback(pages::nothing)
        .layer(from_fn(guard::harden))
        .layer(compression)
        .with_state(state)
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
    let mut connections = JoinSet::new();
    let router = router(state.clone());
    let is_proxy = |address| guard::is_proxy(&state.config().login, address);
    let accept = connections::answer(&listener, &router, connections::USUAL, is_proxy, &closing, &mut connections);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_house_are_counted_as_one() {
        for (address, expected) in [
            ("192.0.2.7:80", "192.0.2.7"),
            ("[::ffff:192.0.2.7]:80", "192.0.2.7"),
            ("[2001:db8:1:2:3:4:5:6]:80", "2001:db8:1:2::"),
            ("[2001:db8:1:2::1]:80", "2001:db8:1:2::"),
            ("[2001:db8:1:3::1]:80", "2001:db8:1:3::"),
        ] {
            assert_eq!(Peer(address.parse().unwrap()).client_network(), expected.parse::<IpAddr>().unwrap(), "{address}");
        }
    }
}
