//! Which addresses a connection may have. A URL of untrusted origin must not reach what only this machine, or this network,
//! can reach: not by its address, and not by a name that is looked up to one. Or it must not reach any host but those that are listed.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use url::Url;

/// Where connections may go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Destinations {
    #[default]
    Any,
    /// Only those of the public internet, whatever name was looked up to them: for URLs of untrusted origin. Behind a proxy, names
    /// are the proxy's to look up.
    Public,
    /// Only hosts that are listed, by the names that URLs have for them, behind a proxy as well.
    Listed(Vec<ListedHost>),
}

/// A host, as `HOST`, `HOST:PORT`, or `*` for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedHost {
    /// In lower case, without brackets and without a dot at its end. `None` for all.
    name: Option<String>,
    /// `None` for all.
    port: Option<u16>,
}

impl Destinations {
    /// Whether a name that was looked up may have led to this address.
    pub fn allow(&self, address: IpAddr) -> bool {
        match (self, address) {
            (Self::Any | Self::Listed(_), _) => true,
            (Self::Public, IpAddr::V4(address)) => is_public_v4(address),
            (Self::Public, IpAddr::V6(address)) => is_public_v6(address),
        }
    }

    /// Whether a URL may name this host.
    pub fn admit(&self, host: &str, port: u16) -> bool {
        match self {
            Self::Any | Self::Public => true,
            Self::Listed(hosts) => hosts.iter().any(|listed| listed.covers(host, port)),
        }
    }

    /// These, and this host where only listed ones are admitted.
    #[must_use]
    pub fn with(self, host: ListedHost) -> Self {
        match self {
            Self::Listed(mut hosts) => {
                hosts.push(host);
                Self::Listed(hosts)
            }
            other => other,
        }
    }
}

impl ListedHost {
    /// The host of a URL, with its port. `None` where the URL has none.
    pub fn of(url: &Url) -> Option<Self> {
        Some(Self { name: Some(normal(url.host_str()?)), port: Some(url.port_or_known_default()?) })
    }

    fn covers(&self, host: &str, port: u16) -> bool {
        self.name.as_ref().is_none_or(|name| *name == normal(host)) && self.port.is_none_or(|known| known == port)
    }
}

impl fmt::Display for ListedHost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            None => formatter.write_str("*")?,
            Some(name) if name.contains(':') => write!(formatter, "[{name}]")?,
            Some(name) => formatter.write_str(name)?,
        }
        self.port.map_or(Ok(()), |port| write!(formatter, ":{port}"))
    }
}

/// A text that is no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected HOST, HOST:PORT, or * for all")]
pub struct NoHost;

impl FromStr for ListedHost {
    type Err = NoHost;

    fn from_str(text: &str) -> Result<Self, NoHost> {
        if text == "*" {
            return Ok(Self { name: None, port: None });
        }
        // Only what leaves nothing to a URL but a host and a port.
        if text.is_empty() || text.contains(['/', '@', '?', '#', '\\']) || text.contains(char::is_whitespace) {
            return Err(NoHost);
        }
        let url = Url::parse(&format!("http://{text}/")).map_err(|_| NoHost)?;
        let name = url.host_str().ok_or(NoHost)?;
        // URLs leave out the port 80, which may have been written.
        let port = url.port().or_else(|| text.ends_with(":80").then_some(80));
        Ok(Self { name: Some(normal(name)), port })
    }
}

fn normal(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase()
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match (a, b, c) {
        // "This network", and addresses that carriers, laboratories and the future keep for themselves.
        (0 | 240..=255, ..) | (100, 64..=127, _) | (192, 0, 0) | (192, 88, 99) | (198, 18..=19, _) => true,
        _ => false,
    };
    !(special
        || address.is_private()
        || address.is_loopback()
        // The metadata services of clouds are among these.
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match segments {
        // An IPv4 address in another spelling: mapped, translated (NAT64), 6to4.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            is_public_v4(embedded(high, low))
        }
        // Teredo, documentation, benchmarks and other special purposes below 2001::/23.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // Only 2000::/3 is given out for the internet.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_hosts_are_admitted() {
        let check = |listed: &[&str], url: &str, expected: bool| {
            let destinations = Destinations::Listed(listed.iter().map(|host| host.parse().unwrap()).collect());
            let url = Url::parse(url).unwrap();
            let admitted = destinations.admit(url.host_str().unwrap(), url.port_or_known_default().unwrap());
            assert_eq!(admitted, expected, "{listed:?} {url}");
        };
        check(&["example.com"], "https://example.com/mcp", true);
        check(&["example.com"], "https://EXAMPLE.com.:8443/mcp", true);
        check(&["example.com:443"], "https://example.com/mcp", true);
        check(&["example.com:443"], "http://example.com/mcp", false);
        check(&["example.com:80"], "http://example.com/mcp", true);
        check(&["example.com:80"], "https://example.com/mcp", false);
        check(&["example.com"], "https://example.com.evil.test/", false);
        check(&["example.com"], "https://example.com@evil.test/", false);
        check(&["example.com"], "https://sub.example.com/", false);
        check(&["127.0.0.1:80"], "http://2130706433/", true);
        check(&["127.0.0.1:8080"], "http://127.0.0.1:8081/", false);
        check(&["[::1]:8080"], "http://[::1]:8080/", true);
        check(&["*"], "http://anything:1/", true);
        check(&[], "http://anything:1/", false);
        for wrong in ["", "a/b", "a b", "u@a", "http://a", "a:99999", "[::1", "a\\b"] {
            assert!(wrong.parse::<ListedHost>().is_err(), "{wrong}");
        }
        let shown = ["A.test", "a:80", "[::1]:8080", "*"].map(|host| host.parse::<ListedHost>().unwrap().to_string());
        assert_eq!(shown, ["a.test", "a:80", "[::1]:8080", "*"]);
    }

    #[test]
    fn only_the_public_internet_is_public() {
        for (address, expected) in [
            ("93.184.216.34", true),
            ("1.1.1.1", true),
            ("2606:4700::1111", true),
            ("2a00:1450::1", true),
            ("64:ff9b::1.1.1.1", true),
            ("2002:101:101::1", true),
            ("127.0.0.1", false),
            ("127.255.255.254", false),
            ("10.0.0.1", false),
            ("172.16.0.1", false),
            ("172.32.0.1", true),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("100.100.100.200", false),
            ("0.0.0.0", false),
            ("255.255.255.255", false),
            ("224.0.0.1", false),
            ("192.0.2.1", false),
            ("198.18.0.1", false),
            ("::", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:169.254.169.254", false),
            ("::127.0.0.1", false),
            ("64:ff9b::10.0.0.1", false),
            ("2002:7f00:1::1", false),
            ("2002:a9fe:a9fe::1", false),
            ("2001::1", false),
            ("2001:db8::1", false),
            ("fd00::1", false),
            ("fd00:ec2::254", false),
            ("fe80::1", false),
            ("ff02::1", false),
        ] {
            assert_eq!(Destinations::Public.allow(address.parse().unwrap()), expected, "{address}");
            assert!(Destinations::Any.allow(address.parse().unwrap()));
        }
    }
}
