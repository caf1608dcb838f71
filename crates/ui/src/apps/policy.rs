//! What an app may load and reach: a content security policy that is made from what its server declares (MCP Apps 2026-01-26, content
//! security policy), never wider than that. Knows no HTTP server.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// `_meta.ui.csp` of a resource.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Declared {
    pub(crate) connect_domains: Vec<String>,
    pub(crate) resource_domains: Vec<String>,
    pub(crate) frame_domains: Vec<String>,
    pub(crate) base_uri_domains: Vec<String>,
}

/// How much of what is declared a host grants, and what else it allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HostProfile {
    /// All that is declared, and storage.
    #[default]
    Specification,
    /// As `examples/basic-host` of modelcontextprotocol/ext-apps: also `eval`, and scripts, workers, images, fonts and media from `blob:` and
    /// `data:`.
    Reference,
    /// As measured and reported of Claude: also `eval`, and scripts, workers, images and media from `blob:`; no nested frames, no base, and no
    /// schemes among the domains.
    Claude,
    /// No domains, no storage.
    Strict,
}

/// A declared domain that is not granted.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Withheld {
    key: &'static str,
    value: String,
    why: &'static str,
}

/// What came of a declaration.
pub(crate) struct Policy {
    pub(crate) header: String,
    pub(crate) withheld: Vec<Withheld>,
}

/// Domains of one list that count: a policy of megabytes is no policy.
const MOST_DOMAINS: usize = 64;

const NOT_GRANTED: &str = "this host profile does not grant it";

/// The policy for a view at this address, which may only stand in frames of these origins.
pub(crate) fn policy(declared: &Declared, profile: HostProfile, address: SocketAddr, ancestors: &[String]) -> Policy {
    let mut withheld = Vec::new();
    let no_frames = matches!(profile, HostProfile::Claude | HostProfile::Strict);
    let nothing = profile == HostProfile::Strict;
    let no_schemes = profile == HostProfile::Claude;
    let mut granted = |key, values: &[String], is_withheld: bool| {
        let mut sources = String::new();
        for (index, value) in values.iter().enumerate() {
            let why = match is_withheld {
                true => Some(NOT_GRANTED),
                false if no_schemes && is_scheme(value) => Some(NOT_GRANTED),
                false if index >= MOST_DOMAINS => Some("more domains than any app requires"),
                false => flaw(value),
            };
            match why {
                Some(why) => withheld.push(Withheld { key, value: value.chars().take(200).collect(), why }),
                None => {
                    sources.push(' ');
                    sources.push_str(value.trim_end_matches('/'));
                }
            }
        }
        sources
    };
    let connect = granted("connectDomains", &declared.connect_domains, nothing);
    let resource = granted("resourceDomains", &declared.resource_domains, nothing);
    let frame = granted("frameDomains", &declared.frame_domains, no_frames);
    let base = granted("baseUriDomains", &declared.base_uri_domains, no_frames);
    let or_none = |sources: &str| if sources.is_empty() { " 'none'".to_owned() } else { sources.to_owned() };
    let origin = format!("http://{address}");
    let storage = if nothing { "" } else { " allow-same-origin" };
    let (scripts, styles, pictures, fonts, workers) = match profile {
        HostProfile::Specification | HostProfile::Strict => ("", "", "", "", String::new()),
        HostProfile::Reference => {
            (" 'unsafe-eval' blob: data:", " blob: data:", " blob:", " data: blob:", format!("worker-src 'self' blob:{resource}; "))
        }
        HostProfile::Claude => (" 'unsafe-eval' blob: data:", "", " blob:", "", format!("worker-src 'self' blob:{resource}; ")),
    };
    let header = format!(
        "default-src 'none'; script-src 'self' 'unsafe-inline'{scripts}{resource}; style-src 'self' 'unsafe-inline'{styles}{resource}; \
         img-src 'self' data:{pictures}{resource}; media-src 'self' data:{pictures}{resource}; font-src{fonts}; {workers}\
         connect-src{connect}; frame-src{frame}; base-uri 'self'{base}; object-src 'none'; form-action 'none'; \
         frame-ancestors {origin} {ancestors}; sandbox allow-scripts allow-forms{storage}",
        fonts = or_none(&format!("{fonts}{resource}")),
        connect = or_none(&connect),
        frame = or_none(&frame),
        ancestors = ancestors.join(" "),
    );
    Policy { header, withheld }
}

fn is_scheme(value: &str) -> bool {
    matches!(value, "data:" | "blob:")
}

/// Why a declared domain is none. What is granted stands in a header, so it consists of the letters of an origin only.
fn flaw(value: &str) -> Option<&'static str> {
    if is_scheme(value) {
        return None;
    }
    let Some((scheme, rest)) = value.split_once("://") else { return Some("not an origin, such as https://example.com") };
    if !matches!(scheme, "https" | "http" | "wss" | "ws") {
        return Some("not an origin of http, https, ws or wss");
    }
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    if port.is_some_and(|port| port != "*" && port.parse::<u16>().is_err()) {
        return Some("the port is not a number");
    }
    let name = host.strip_prefix("*.").unwrap_or(host);
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
    if !is_name || name.starts_with('.') {
        return Some("not an origin: a scheme, a host and perhaps a port, without a path");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(declared: &Declared, profile: HostProfile) -> Policy {
        policy(declared, profile, "127.0.0.1:7001".parse().unwrap(), &["http://127.0.0.1:7000".to_owned()])
    }

    fn list(values: &[&str]) -> Vec<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    #[test]
    fn nothing_is_reached_that_is_not_declared() {
        let Policy { header, withheld } = made(&Declared::default(), HostProfile::Specification);
        for part in ["default-src 'none'", "connect-src 'none'", "frame-src 'none'", "object-src 'none'", "font-src 'none'"] {
            assert!(header.contains(part), "{part}: {header}");
        }
        assert!(header.contains("sandbox allow-scripts allow-forms allow-same-origin"), "{header}");
        assert_eq!(withheld, []);
    }

    #[test]
    fn declared_origins_are_granted_in_their_directives() {
        let declared = Declared {
            connect_domains: list(&["https://api.example.com", "wss://live.example.com:8443"]),
            resource_domains: list(&["https://*.cdn.example.com/"]),
            frame_domains: list(&["https://player.example.com"]),
            base_uri_domains: list(&["https://base.example.com"]),
        };
        let Policy { header, withheld } = made(&declared, HostProfile::Specification);
        for part in [
            "connect-src https://api.example.com wss://live.example.com:8443;",
            "script-src 'self' 'unsafe-inline' https://*.cdn.example.com;",
            "font-src https://*.cdn.example.com;",
            "frame-src https://player.example.com;",
            "base-uri 'self' https://base.example.com;",
        ] {
            assert!(header.contains(part), "{part}: {header}");
        }
        assert_eq!(withheld, []);
        let claude = made(&declared, HostProfile::Claude);
        assert!(claude.header.contains("frame-src 'none'") && claude.header.contains("api.example.com"), "{}", claude.header);
        let strict = made(&declared, HostProfile::Strict);
        assert!(!strict.header.contains("example.com") && !strict.header.contains("same-origin"), "{}", strict.header);
        assert_eq!(strict.withheld.len(), 5);
    }

    #[test]
    fn eval_and_workers_are_for_hosts_that_allow_them() {
        let declared =
            Declared { connect_domains: list(&["blob:"]), resource_domains: list(&["https://a.example"]), ..Declared::default() };
        let header = |profile| made(&declared, profile).header;
        for profile in [HostProfile::Specification, HostProfile::Strict] {
            assert!(!header(profile).contains("eval") && !header(profile).contains("worker-src"), "{}", header(profile));
        }
        for part in [
            "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob: data: https://a.example;",
            "worker-src 'self' blob: https://a.example;",
            "font-src data: blob: https://a.example;",
            "connect-src blob:;",
        ] {
            assert!(header(HostProfile::Reference).contains(part), "{part}: {}", header(HostProfile::Reference));
        }
        for part in ["'unsafe-eval'", "worker-src 'self' blob: https://a.example;", "connect-src 'none';", "font-src https://a.example;"] {
            assert!(header(HostProfile::Claude).contains(part), "{part}: {}", header(HostProfile::Claude));
        }
        assert_eq!(made(&declared, HostProfile::Claude).withheld.len(), 1);
    }

    #[test]
    fn what_is_no_origin_stays_out_of_the_header() {
        for value in [
            "*",
            "https:",
            "https://",
            "'unsafe-eval'",
            "'self'",
            "https://a.example; script-src *",
            "https://a.example\r\nset-cookie: a=b",
            "https://a.example, https://b.example",
            "https://a.example/path",
            "https://a.example:x",
            "https://*",
            "https://.",
            "https://a.example 'unsafe-eval'",
            "javascript://a",
            "file:///etc",
            "filesystem:",
            "",
        ] {
            let declared = Declared { connect_domains: list(&[value]), ..Declared::default() };
            let Policy { header, withheld } = made(&declared, HostProfile::Specification);
            assert_eq!(withheld.len(), 1, "{value}");
            assert!(header.contains("connect-src 'none'") && !header.contains('\n'), "{value}: {header}");
        }
    }

    #[test]
    fn lists_without_end_are_cut() {
        let many: Vec<String> = (0..500).map(|number| format!("https://a{number}.example")).collect();
        let declared = Declared { connect_domains: many, ..Declared::default() };
        assert_eq!(made(&declared, HostProfile::Specification).withheld.len(), 500 - MOST_DOMAINS);
    }
}
