//! Which proxy leads to a URL, and the tunnel through it. Knows the rules of the usual variables, but reads none.

use super::pool::AddressFailure;
use base64::Engine as _;
use std::fmt;
use std::net::IpAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use url::{Host, Url};

/// Which proxy to go through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Proxies {
    #[default]
    None,
    /// This one, for every URL.
    Always(Proxy),
    /// As these variables say.
    Variables(ProxyVariables),
}

/// The values of `HTTP_PROXY` and its kin, as they stand in the environment.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProxyVariables {
    pub http: Option<String>,
    pub https: Option<String>,
    /// Where the variable of the scheme is not set.
    pub all: Option<String>,
    /// Hosts that are reached without a proxy.
    pub no: Option<String>,
}

/// An HTTP proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    pub(super) host: String,
    pub(super) port: u16,
    /// What `proxy-authorization` is to say.
    pub(super) authorization: Option<String>,
}

impl Proxy {
    /// # Errors
    /// The text is no `http://` URL of a proxy, or `host:port`.
    pub fn parse(text: &str) -> Result<Self, AddressFailure> {
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        // The text may hold a password, so that it is never repeated.
        let url = Url::parse(&with_scheme).map_err(|error| AddressFailure::Proxy(format!("its URL is not valid: {error}")))?;
        if url.scheme() != "http" {
            return Err(AddressFailure::Proxy(format!("`{}://` proxies are not supported, only `http://`", url.scheme())));
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| AddressFailure::Proxy("its URL names no host".into()))?;
        let authorization = basic(&url);
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port: url.port().unwrap_or(80), authorization })
    }

    pub(super) fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// The header that says what a URL says of a user (RFC 7617).
pub(super) fn basic(url: &Url) -> Option<String> {
    (!url.username().is_empty()).then(|| {
        let credentials = [decoded(url.username()), b":".to_vec(), decoded(url.password().unwrap_or_default())].concat();
        format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(credentials))
    })
}

/// Undoes percent-encoding, with which the user info of a URL is written.
fn decoded(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut decoded = Vec::with_capacity(rest.len());
    while let [first, after @ ..] = rest {
        let escape = after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match escape.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(escaped) => {
                decoded.push(escaped);
                rest = &after[2..];
            }
            None => {
                decoded.push(*first);
                rest = after;
            }
        }
    }
    decoded
}

impl fmt::Debug for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Proxy({})", self.address())
    }
}

impl fmt::Debug for ProxyVariables {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Their values may hold passwords.
        formatter.debug_struct("ProxyVariables").field("no", &self.no).finish_non_exhaustive()
    }
}

impl Proxies {
    /// The proxy for a URL, if there is to be one.
    pub(super) fn for_url(&self, url: &Url) -> Result<Option<Proxy>, AddressFailure> {
        match self {
            Self::None => Ok(None),
            Self::Always(proxy) => Ok(Some(proxy.clone())),
            Self::Variables(variables) => variables.for_url(url),
        }
    }
}

impl ProxyVariables {
    fn for_url(&self, url: &Url) -> Result<Option<Proxy>, AddressFailure> {
        let of_scheme = if url.scheme() == "https" { &self.https } else { &self.http };
        let set = |value: &Option<String>| value.clone().filter(|value| !value.trim().is_empty());
        let Some(value) = set(of_scheme).or_else(|| set(&self.all)) else { return Ok(None) };
        // A proxy for the world outside says nothing of this machine, where most servers under test run.
        if is_loopback(url) || self.no.as_deref().is_some_and(|no| exempts(no, url)) {
            return Ok(None);
        }
        Proxy::parse(value.trim()).map(Some)
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
        }
        Some(Host::Ipv4(address)) => address.is_loopback() || address.is_unspecified(),
        Some(Host::Ipv6(address)) => address.is_loopback() || address.is_unspecified(),
        None => false,
    }
}

/// Whether a `NO_PROXY` list names the host: `*`, a domain with all below it, an address, a network, each with a port if
/// it is to be that port only.
fn exempts(list: &str, url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    let address: Option<IpAddr> = host.parse().ok();
    list.split([',', ' ']).map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
        if entry == "*" {
            return true;
        }
        if let (Some(address), Some((network, bits))) = (address, entry.split_once('/')) {
            return in_network(address, network, bits);
        }
        let (name, port) = match entry.rsplit_once(':') {
            // More colons belong to an IPv6 address, which has brackets where a port follows.
            Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, Some(port)),
            _ => (entry, None),
        };
        if port.is_some_and(|port| port.parse().ok() != url.port_or_known_default()) {
            return false;
        }
        let name = name.trim_start_matches('[').trim_end_matches(']');
        if let Some(address) = address {
            return name.parse() == Ok(address);
        }
        let domain = name.trim_start_matches("*.").trim_start_matches('.').to_ascii_lowercase();
        let host = host.to_ascii_lowercase();
        host == domain || host.strip_suffix(&domain).is_some_and(|rest| rest.ends_with('.'))
    })
}

fn in_network(address: IpAddr, network: &str, bits: &str) -> bool {
    let Ok(bits) = bits.parse::<u32>() else { return false };
    match (address, network.parse()) {
        (IpAddr::V4(address), Ok(IpAddr::V4(network))) if bits <= 32 => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            address.to_bits() & mask == network.to_bits() & mask
        }
        (IpAddr::V6(address), Ok(IpAddr::V6(network))) if bits <= 128 => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            address.to_bits() & mask == network.to_bits() & mask
        }
        _ => false,
    }
}

/// The longest answer of a proxy to CONNECT that is read.
const MAX_HEAD_BYTES: usize = 16 << 10;

/// Asks the proxy at the other end of `stream` for a tunnel (RFC 9110, 9.3.6); the caller sets the deadline.
pub(super) async fn open_tunnel(stream: &mut TcpStream, proxy: &Proxy, target: &str) -> Result<(), String> {
    let broken = |reason: &dyn fmt::Display| format!("the proxy {} opened no tunnel to {target}: {reason}", proxy.address());
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n");
    if let Some(authorization) = &proxy.authorization {
        request += &format!("proxy-authorization: {authorization}\r\n");
    }
    request += "\r\n";
    stream.write_all(request.as_bytes()).await.map_err(|error| broken(&error))?;
    let mut head = Vec::new();
    // The server speaks only after our first words in the tunnel, so that nothing of it can follow this head.
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        let count = stream.read_buf(&mut head).await.map_err(|error| broken(&error))?;
        if count == 0 {
            return Err(broken(&"it closed the connection"));
        }
        if head.len() > MAX_HEAD_BYTES {
            return Err(broken(&format!("the head of its response is larger than {MAX_HEAD_BYTES} bytes")));
        }
    }
    let first = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
    let status = first.strip_prefix("HTTP/1.").and_then(|rest| rest.split_once(' ')).map(|(_, status)| status.trim());
    match status {
        Some(status) if status.starts_with('2') => Ok(()),
        Some(status) => Err(broken(&format!("HTTP {status}"))),
        None => Err(broken(&"its response is not HTTP")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_variables_mean_what_they_usually_mean() {
        let check = |url: &str, no: &str, expected: Option<&str>| {
            let variables =
                ProxyVariables { http: Some("http://plain:3128".into()), https: None, all: Some("other:8080".into()), no: Some(no.into()) };
            let found = Proxies::Variables(variables).for_url(&Url::parse(url).unwrap()).unwrap();
            assert_eq!(found.map(|proxy| proxy.address()).as_deref(), expected, "{url} with NO_PROXY={no}");
        };
        let (plain, other) = (Some("plain:3128"), Some("other:8080"));
        check("http://example.com/", "", plain);
        check("https://example.com/", "", other);
        for local in ["localhost", "api.localhost", "127.0.0.1", "127.8.8.8", "[::1]", "0.0.0.0", "LOCALHOST."] {
            check(&format!("http://{local}:3000/"), "", None);
        }
        check("http://localhost.example.com/", "", plain);
        check("http://example.com/", "*", None);
        check("http://example.com/", "example.com", None);
        check("http://a.example.com/", "example.com", None);
        check("http://a.example.com/", " other.org, .Example.com", None);
        check("http://a.example.com/", "*.example.com", None);
        check("http://badexample.com/", "example.com", plain);
        check("http://example.com:81/", "example.com:80", plain);
        check("http://example.com/", "example.com:80", None);
        check("https://example.com/", "example.com:443", None);
        check("http://10.1.2.3/", "10.0.0.0/8", None);
        check("http://11.1.2.3/", "10.0.0.0/8", plain);
        check("http://11.1.2.3/", "0.0.0.0/0", None);
        check("http://10.1.2.3/", "10.1.2.3", None);
        check("http://10.1.2.3/", "2.3", plain);
        check("http://[fd00::1]/", "fd00::/8", None);
        check("http://[fd00::1]:90/", "[fd00::1]:90", None);
        check("http://[fd00::1]/", "fd00::1", None);
        check("http://[fe00::1]/", "fd00::1", plain);
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_refused_without_repeating_its_password() {
        let check = |text: &str, expected: &str| {
            assert_eq!(Proxy::parse(text).unwrap_err().to_string(), format!("the proxy cannot be used: {expected}"));
        };
        check("socks5://u:hunter2@h:1", "`socks5://` proxies are not supported, only `http://`");
        check("https://u:hunter2@h:1", "`https://` proxies are not supported, only `http://`");
        check("http://u:hunter2@", "its URL is not valid: empty host");
        check("http://u:hunter2@h:99999", "its URL is not valid: invalid port number");
    }

    #[test]
    fn credentials_of_a_proxy_are_sent_and_never_shown() {
        let proxy = Proxy::parse("http://user:p%40ss@proxy.test").unwrap();
        assert_eq!(format!("{proxy:?}"), "Proxy(proxy.test:80)");
        // `user:p@ss`
        assert_eq!(proxy.authorization.as_deref(), Some("Basic dXNlcjpwQHNz"));
        assert_eq!(Proxy::parse("h:3128").unwrap().authorization, None);
    }
}
