//! A web page somewhere that talks to the server behind its user's back, and a neighbour on the network.

use super::super::visit::Visit;
use super::question::{Questions, Varied as _};
use if_addrs::get_if_addrs;
use mcproof_client::{HttpQuestion, Reads, TransportKind};
use std::net::IpAddr;
use url::{Host, Url};

/// Nobody's friend (RFC 2606 reserves the name).
pub(super) const EVIL_ORIGIN: &str = "https://mcproof-evil.example";
const EVIL_HOST: &str = "mcproof-evil.example";

pub(super) async fn take(visit: &mut Visit<'_>, questions: &Questions) {
    knock(visit, questions).await;
    for (probe, name, value) in
        [("evil-origin", "origin", EVIL_ORIGIN), ("null-origin", "origin", "null"), ("evil-host", "host", EVIL_HOST)]
    {
        let question = questions.plain(visit).with(name, value);
        visit.http(probe, None, &question).await;
        if visit.kind() == TransportKind::Sse {
            let question = HttpQuestion { reads: Reads::Head, ..questions.stream() };
            visit.http(probe, Some("GET"), &question.with(name, value)).await;
        }
    }
}

/// Asks without an origin, as clients do that are no browsers, and with the server's own if that fails; and at another
/// address of this machine.
pub(super) async fn knock(visit: &mut Visit<'_>, questions: &Questions) {
    let question = questions.plain(visit);
    let answer = visit.http("plain", None, &question).await;
    let refused = answer.is_some_and(|answer| (400..500).contains(&answer.head.status));
    if let (true, Some(origin)) = (refused, visit.session().url().map(|url| url.origin().ascii_serialization())) {
        let question = questions.plain(visit).with("origin", &origin);
        visit.http("own-origin", None, &question).await;
    }
    if let Some(url) = other_address(visit) {
        let question = HttpQuestion { reads: Reads::Head, ..questions.stream() };
        visit.http_elsewhere("other-interface", &url, &question).await;
    }
}

/// The URL of a server that is told by loopback, by an address of this machine that others can reach.
fn other_address(visit: &Visit<'_>) -> Option<Url> {
    let url = visit.session().url()?;
    if !is_loopback(url) {
        return None;
    }
    let interfaces = get_if_addrs().unwrap_or_default();
    let address = interfaces.into_iter().map(|interface| interface.ip()).find_map(|address| match address {
        IpAddr::V4(address) if !address.is_loopback() && !address.is_link_local() => Some(address),
        _ => None,
    })?;
    let mut other = url.clone();
    other.set_ip_host(address.into()).ok()?;
    Some(other)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
