//! A web page somewhere that talks to the server behind its user's back, and a neighbour on the network.

use super::super::explorer::Explorer;
use super::request_variants::{Questions, RequestVariants as _};
use if_addrs::get_if_addrs;
use mcproof_client::{RawHttpRequest, Reads};
use mcproof_protocol::Transport;
use std::net::IpAddr;
use url::{Host, Url};

/// Nobody's friend (RFC 2606 reserves the name).
pub(super) const EVIL_ORIGIN: &str = "https://mcproof-evil.example";
const EVIL_HOST: &str = "mcproof-evil.example";

/// Each with the header in which it shows. After DNS rebinding, a browser names the host of the page with the port of the server.
fn attackers(explorer: &Explorer<'_>) -> [(&'static str, &'static str, String); 3] {
    let host = explorer.session().url().map_or_else(|| EVIL_HOST.to_owned(), |url| with_port_of(url, EVIL_HOST));
    [("evil-origin", "origin", EVIL_ORIGIN.to_owned()), ("null-origin", "origin", "null".to_owned()), ("evil-host", "host", host)]
}

/// As it stands in `Host`.
fn with_port_of(url: &Url, name: &str) -> String {
    url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"))
}

/// Gives the attackers whose POST was refused.
pub(super) async fn take(explorer: &mut Explorer<'_>, http_requests: &Questions) -> Vec<&'static str> {
    knock(explorer, http_requests).await;
    let mut refused = Vec::new();
    for (probe, name, value) in &attackers(explorer) {
        let (probe, name) = (*probe, *name);
        let http_request = http_requests.plain(explorer).with(name, value);
        let answer = explorer.http(probe, None, &http_request).await;
        if answer.is_some_and(|answer| (400..500).contains(&answer.head.status)) {
            refused.push(probe);
        }
        if explorer.kind() == Transport::Sse {
            let http_request = RawHttpRequest { reads: Reads::Head, ..http_requests.stream() };
            explorer.http(probe, Some("GET"), &http_request.with(name, value)).await;
        }
    }
    if refused.contains(&"evil-origin") {
        for origin in lookalikes(explorer) {
            let http_request = http_requests.plain(explorer).with("origin", &origin);
            explorer.http("lookalike-origin", Some(&origin), &http_request).await;
        }
    }
    if refused.contains(&"evil-host") {
        for host in lookalike_hosts(explorer) {
            let http_request = http_requests.plain(explorer).with("host", &host);
            explorer.http("evil-host", None, &http_request).await;
        }
    }
    refused
}

/// The attackers whose POST was refused ask for a stream.
pub(super) async fn listen(explorer: &mut Explorer<'_>, http_requests: &Questions, refused: &[&str]) {
    if explorer.is_modern() || explorer.kind() != Transport::Http {
        return;
    }
    for (probe, name, value) in attackers(explorer).into_iter().filter(|(probe, ..)| refused.contains(probe)) {
        let http_request = RawHttpRequest { reads: Reads::Head, ..http_requests.stream() };
        explorer.http(probe, Some("GET"), &http_request.with(name, &value)).await;
    }
}

/// Foreign origins that begin like the server's own.
fn lookalikes(explorer: &Explorer<'_>) -> Vec<String> {
    let Some(url) = explorer.session().url() else { return Vec::new() };
    let own = url.host_str().filter(|_| !matches!(url.host(), Some(Host::Ipv6(_))));
    let names = if is_loopback(url) { vec!["localhost", "127.0.0.1"] } else { own.into_iter().collect() };
    names.into_iter().map(|name| format!("{}://{name}.{EVIL_HOST}", url.scheme())).collect()
}

/// Foreign hosts that begin like those of a local server.
fn lookalike_hosts(explorer: &Explorer<'_>) -> Vec<String> {
    let Some(url) = explorer.session().url().filter(|url| is_loopback(url)) else { return Vec::new() };
    ["localhost", "127.0.0.1"].map(|name| with_port_of(url, &format!("{name}.{EVIL_HOST}"))).into()
}

/// Asks without an origin, as clients do that are no browsers, and with the server's own if that fails; and at another
/// address of this machine.
pub(super) async fn knock(explorer: &mut Explorer<'_>, http_requests: &Questions) {
    let http_request = http_requests.plain(explorer);
    let answer = explorer.http("plain", None, &http_request).await;
    let refused = answer.is_some_and(|answer| (400..500).contains(&answer.head.status));
    if let (true, Some(origin)) = (refused, explorer.session().url().map(|url| url.origin().ascii_serialization())) {
        let http_request = http_requests.plain(explorer).with("origin", &origin);
        explorer.http("own-origin", None, &http_request).await;
    }
    if let Some(url) = other_address(explorer) {
        let http_request = RawHttpRequest { reads: Reads::Head, ..http_requests.stream() };
        explorer.http_elsewhere("other-interface", &url, &http_request).await;
    }
}

/// The URL of a server that is told by loopback, by an address of this machine that others can reach.
fn other_address(explorer: &Explorer<'_>) -> Option<Url> {
    let url = explorer.session().url()?;
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
