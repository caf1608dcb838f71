//! Who may talk to a demo over HTTP: the checks of `Host` and `Origin`, and the CORS answers for browsers.
//! Knows headers, neither MCP messages nor sessions.

use std::net::IpAddr;

use axum::{
    body::Body,
    extract::{Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri,
        header::{
            ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
            ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW, HOST, ORIGIN, VARY,
        },
        uri::Authority,
    },
    middleware::Next,
    response::{IntoResponse, Response},
};

/// What a browser may send, in every revision.
const ALLOWED_HEADERS: &str = "content-type, accept, authorization, mcp-session-id, mcp-protocol-version, \
                               last-event-id, mcp-method, mcp-name";
/// Headers that name an argument of a tool (2026-07-28); browsers know no wildcard for them.
const PARAMETER_PREFIX: &str = "mcp-param-";
/// What a script in a browser may read of an answer.
const EXPOSED_HEADERS: &str = "mcp-session-id, mcp-protocol-version, www-authenticate";

/// The rules of one listening demo.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    /// The name that the demo was told to bind, as a client may write it in `Host`.
    host: String,
    /// The methods of the endpoint, as `Allow` lists them.
    methods: &'static str,
}

impl Guard {
    pub(crate) fn new(host: &str, methods: &'static str) -> Self {
        Self { host: host.trim_matches(['[', ']']).to_ascii_lowercase(), methods }
    }

    /// A page of another site that resolves its own name to this machine is told apart by its `Host`
    /// (DNS rebinding). A demo that listens on all addresses cannot know its names and accepts any.
    fn accepts_host(&self, headers: &HeaderMap) -> bool {
        if self.host.parse().is_ok_and(|address: IpAddr| address.is_unspecified()) {
            return true;
        }
        host_of(headers).is_some_and(|authority| {
            let name = bare(&authority);
            is_local(&name) || name == self.host
        })
    }

    /// "Servers MUST validate the `Origin` header on all incoming connections … If the `Origin` header is present
    /// and invalid, servers MUST respond with HTTP 403 Forbidden" (2025-11-25, basic/transports#security-warning).
    fn accepts_origin(&self, origin: &HeaderValue) -> bool {
        let uri = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok());
        uri.is_some_and(|uri| {
            let web = matches!(uri.scheme_str(), Some("http" | "https"));
            web && uri.authority().is_some_and(|authority| {
                let name = bare(authority);
                is_local(&name) || name == self.host
            })
        })
    }

    fn preflight(&self, headers: &HeaderMap) -> Response {
        let mut allowed = ALLOWED_HEADERS.to_owned();
        let requested = headers.get(ACCESS_CONTROL_REQUEST_HEADERS).and_then(|names| names.to_str().ok());
        for name in requested.unwrap_or_default().split(',').map(|name| name.trim().to_ascii_lowercase()) {
            if name.starts_with(PARAMETER_PREFIX) && HeaderName::try_from(&*name).is_ok() {
                allowed.push_str(", ");
                allowed.push_str(&name);
            }
        }
        let allowed = HeaderValue::try_from(allowed).expect("header names make a header value");
        let mut response = StatusCode::NO_CONTENT.into_response();
        let headers = response.headers_mut();
        headers.insert(ALLOW, HeaderValue::from_static(self.methods));
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(self.methods));
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        response
    }
}

/// Lets a request through, answers a preflight, or refuses. Credentials are not looked at: a preflight has none.
pub(crate) async fn check(State(guard): State<Guard>, request: Request<Body>, next: Next) -> Response {
    if host_of(request.headers()).is_none() {
        return (StatusCode::BAD_REQUEST, "Bad Request: one valid Host is required").into_response();
    }
    if !guard.accepts_host(request.headers()) {
        return (StatusCode::FORBIDDEN, "Forbidden: this Host is not served here").into_response();
    }
    let origin = request.headers().get(ORIGIN).cloned();
    if origin.as_ref().is_some_and(|origin| !guard.accepts_origin(origin)) {
        return (StatusCode::FORBIDDEN, "Forbidden: this Origin may not call a local server").into_response();
    }
    let mut response = if request.method() == Method::OPTIONS { guard.preflight(request.headers()) } else { next.run(request).await };
    let headers = response.headers_mut();
    headers.append(VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED_HEADERS));
    }
    response
}

/// The one `Host`; none or several are invalid (RFC 9112, 3.2).
fn host_of(headers: &HeaderMap) -> Option<Authority> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next()?.to_str().ok()?.parse().ok()?;
    hosts.next().is_none().then_some(host)
}

fn bare(authority: &Authority) -> String {
    authority.host().trim_matches(['[', ']']).to_ascii_lowercase()
}

fn is_local(name: &str) -> bool {
    name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_origin(host: &str, origin: &str, expected: bool) {
        let guard = Guard::new(host, "POST");
        let value = HeaderValue::from_str(origin).unwrap();
        assert_eq!(guard.accepts_origin(&value), expected, "{origin} at {host}");
    }

    #[test]
    fn only_local_web_origins_may_call() {
        for origin in ["http://localhost", "http://localhost:3000", "https://LOCALHOST:8443", "http://127.0.0.1:1", "http://[::1]:9"] {
            check_origin("127.0.0.1", origin, true);
        }
        for origin in [
            "null",
            "",
            "https://evil.example",
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example",
            "ftp://localhost",
            "localhost",
            "file:///",
        ] {
            check_origin("127.0.0.1", origin, false);
        }
        check_origin("demo.internal", "http://demo.internal:80", true);
    }

    fn check_host(bound: &str, host: Option<&str>, expected: bool) {
        let mut headers = HeaderMap::new();
        if let Some(host) = host {
            headers.insert(HOST, HeaderValue::from_str(host).unwrap());
        }
        assert_eq!(Guard::new(bound, "POST").accepts_host(&headers), expected, "{host:?} at {bound}");
    }

    #[test]
    fn only_local_hosts_are_served() {
        check_host("127.0.0.1", Some("127.0.0.1:8080"), true);
        check_host("127.0.0.1", Some("localhost"), true);
        check_host("::1", Some("[::1]:8080"), true);
        check_host("127.0.0.1", Some("evil.example"), false);
        check_host("127.0.0.1", Some("localhost.evil.example:80"), false);
        check_host("127.0.0.1", None, false);
        check_host("0.0.0.0", Some("build-box:8080"), true);
        check_host("192.0.2.7", Some("192.0.2.7:8080"), true);
    }
}
