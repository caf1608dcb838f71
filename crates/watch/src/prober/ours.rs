//! Faults on our own side: they say nothing about a target. Told by the numbers of the system, never by words.

use mcproof_client::{ConnectFailure, StartFailure, Tap};
use mcproof_system::errors;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::timeout;
use url::{Host, Url};

/// For a canary to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// What a canary showed holds for so long: a storm of failures asks once.
const FRESH: Duration = Duration::from_secs(2);

/// Whether this machine had too little of something to probe at all.
pub(super) fn is_ours(failure: Option<&ConnectFailure>, tap: &Tap) -> bool {
    let of_start = match failure {
        Some(ConnectFailure::Start(StartFailure::Other { number, .. })) => *number,
        _ => None,
    };
    of_start.into_iter().chain(refusals(tap)).any(errors::is_exhausted)
}

pub(super) fn has_no_route(tap: &Tap) -> bool {
    refusals(tap).any(errors::has_no_route)
}

fn refusals(tap: &Tap) -> impl Iterator<Item = i32> {
    tap.connections().into_iter().filter_map(|dialed| dialed.refusal)
}

pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

/// What can be reached as long as our own network works.
pub(super) struct Canaries {
    addresses: Vec<String>,
    /// What the last look showed.
    seen: Mutex<Option<(Instant, bool)>>,
}

impl Canaries {
    pub(super) fn new(addresses: Vec<String>) -> Self {
        Self { addresses, seen: Mutex::default() }
    }

    /// Whether any of them can be reached; nobody knows where there is none.
    pub(super) async fn reachable(&self) -> Option<bool> {
        if self.addresses.is_empty() {
            return None;
        }
        let mut seen = self.seen.lock().await;
        if let Some((_, is_reachable)) = seen.filter(|(when, _)| when.elapsed() < FRESH) {
            return Some(is_reachable);
        }
        let attempts = self.addresses.iter().map(|address| {
            Box::pin(async move {
                let connected = timeout(PATIENCE, TcpStream::connect(address.as_str())).await;
                matches!(connected, Ok(Ok(_))).then_some(()).ok_or(())
            })
        });
        let is_reachable = futures_util::future::select_ok(attempts).await.is_ok();
        *seen = Some((Instant::now(), is_reachable));
        Some(is_reachable)
    }
}
