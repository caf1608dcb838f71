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

/// Each with the header in which it shows.
const STRANGERS: [(&str, &str, &str); 3] =
    [("evil-origin", "origin", EVIL_ORIGIN), ("null-origin", "origin", "null"), ("evil-host", "host", EVIL_HOST)];

/// Gives the strangers whose POST was refused.
pub(super) async fn take(visit: &mut Visit<'_>, questions: &Questions) -> Vec<&'static str> {
    knock(visit, questions).await;
    let mut refused = Vec::new();
    for (probe, name, value) in STRANGERS {
        let question = questions.plain(visit).with(name, value);
        let answer = visit.http(probe, None, &question).await;
        if answer.is_some_and(|answer| (400..500).contains(&answer.head.status)) {
            refused.push(probe);
        }
        if visit.kind() == TransportKind::Sse {
            let question = HttpQuestion { reads: Reads::Head, ..questions.stream() };
            visit.http(probe, Some("GET"), &question.with(name, value)).await;
        }
    }
    if refused.contains(&"evil-origin") {
        for origin in lookalikes(visit) {
            let question = questions.plain(visit).with("origin", &origin);
            visit.http("lookalike-origin", Some(&origin), &question).await;
        }
    }
    refused
}

/// The strangers whose POST was refused ask for a stream.
pub(super) async fn listen(visit: &mut Visit<'_>, questions: &Questions, refused: &[&str]) {
    if visit.is_modern() || visit.kind() != TransportKind::Http {
        return;
    }
    for (probe, name, value) in STRANGERS.into_iter().filter(|(probe, ..)| refused.contains(probe)) {
        let question = HttpQuestion { reads: Reads::Head, ..questions.stream() };
        visit.http(probe, Some("GET"), &question.with(name, value)).await;
    }
}

/// Origins that begin as the server's own does, and belong to somebody else.
fn lookalikes(visit: &Visit<'_>) -> Vec<String> {
    let Some(url) = visit.session().url() else { return Vec::new() };
    let own = url.host_str().filter(|_| !matches!(url.host(), Some(Host::Ipv6(_))));
    let names = if is_loopback(url) { vec!["localhost", "127.0.0.1"] } else { own.into_iter().collect() };
    names.into_iter().map(|name| format!("{}://{name}.{EVIL_HOST}", url.scheme())).collect()
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
