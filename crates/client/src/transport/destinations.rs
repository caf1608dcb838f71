//! Which addresses a connection may have. A URL that somebody else chose must not reach what only this machine, or this network,
//! can reach: not by its address, and not by a name that is looked up to one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which addresses a connection may have, whatever name was looked up to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Destinations {
    #[default]
    Any,
    /// Only those of the public internet: for URLs that somebody else chose. Behind a proxy, names are the proxy's to look up.
    Public,
}

impl Destinations {
    pub fn allow(self, address: IpAddr) -> bool {
        match (self, address) {
            (Self::Any, _) => true,
            (Self::Public, IpAddr::V4(address)) => is_public_v4(address),
            (Self::Public, IpAddr::V6(address)) => is_public_v6(address),
        }
    }
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
