//! Who may use the inspector: whoever has the token of this start, from a page of this very address. A page of another site has neither,
//! whatever name of the address it was reached by (DNS rebinding).

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use std::net::SocketAddr;
use std::sync::Arc;

/// The token of one start.
#[derive(Clone)]
pub struct Token(String);

#[derive(Debug, thiserror::Error)]
pub enum AccessFailure {
    #[error("cannot obtain random numbers")]
    NoRandomness,
    #[error("the token has fewer than {SHORTEST_TOKEN} characters")]
    ShortToken,
    #[error("the token has characters other than letters, digits, `-` and `_`")]
    BadToken,
}

/// Characters of a token that a user chooses.
const SHORTEST_TOKEN: usize = 16;

impl Token {
    /// A new one.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn random() -> Result<Self, AccessFailure> {
        let mut bytes = [0; 24];
        SystemRandom::new().fill(&mut bytes).map_err(|_| AccessFailure::NoRandomness)?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// One that the user chose.
    ///
    /// # Errors
    /// It is too short to be a secret, or does not fit into a URL as it is.
    pub fn chosen(text: &str) -> Result<Self, AccessFailure> {
        if text.len() < SHORTEST_TOKEN {
            return Err(AccessFailure::ShortToken);
        }
        if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')) {
            return Err(AccessFailure::BadToken);
        }
        Ok(Self(text.to_owned()))
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }

    /// In a time that does not tell how much of it is right.
    fn fits(&self, given: &str) -> bool {
        let digest = |text: &str| ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        let differing =
            digest(&self.0).as_ref().iter().zip(digest(given).as_ref()).fold(0, |differing, (one, other)| differing | (one ^ other));
        differing == 0
    }
}

/// The token, and the names by which this address may be reached.
pub struct Access {
    token: Token,
    hosts: Vec<String>,
}

impl Access {
    /// `hosts` are names with their ports, besides those of loopback, by which a user reaches the page.
    pub fn new(token: Token, hosts: Vec<String>) -> Self {
        Self { token, hosts }
    }

    pub(crate) fn token(&self) -> &str {
        &self.token.0
    }

    /// Once the port is known.
    pub(crate) fn at(mut self, address: SocketAddr) -> Self {
        let port = address.port();
        self.hosts.extend(["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}")));
        if !address.ip().is_unspecified() {
            self.hosts.push(address.to_string());
        }
        self
    }

    /// Those of the page, for who asks which pages a frame may stand in.
    pub(crate) fn origins(&self) -> Vec<String> {
        // Policies know no addresses of IPv6.
        self.hosts
            .iter()
            .filter(|host| !host.contains('['))
            .flat_map(|host| [format!("http://{host}"), format!("https://{host}")])
            .collect()
    }

    fn knows(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    }

    /// Why a request is refused.
    fn refusal(&self, method: &Method, path: &str, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
        let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|value| value.to_str().ok());
        if hosts.next().is_some() || !host.is_some_and(|host| self.knows(host)) {
            return Some((StatusCode::MISDIRECTED_REQUEST, "this Host is not the address that the inspector listens at"));
        }
        let is_own = |origin: &str| origin.split_once("://").is_some_and(|(_, authority)| self.knows(authority));
        if headers.contains_key(header::ORIGIN) && !text(header::ORIGIN).is_some_and(is_own) {
            return Some((StatusCode::FORBIDDEN, "requests of other sites are refused"));
        }
        let site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
        if path.starts_with("/api/") && site.is_some_and(|site| site != "same-origin") {
            return Some((StatusCode::FORBIDDEN, "requests of other sites are refused"));
        }
        if !path.starts_with("/api/") {
            let is_read = matches!(*method, Method::GET | Method::HEAD);
            return (!is_read).then_some((StatusCode::METHOD_NOT_ALLOWED, "the page is read with GET"));
        }
        let given = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        if !given.is_some_and(|given| self.token.fits(given)) {
            return Some((
                StatusCode::UNAUTHORIZED,
                "the token of this start is missing or wrong: open the address that `mcproof ui` prints",
            ));
        }
        let is_json =
            text(header::CONTENT_TYPE).is_some_and(|kind| kind.split(';').next().is_some_and(|kind| kind.trim() == "application/json"));
        if *method != Method::GET && !is_json {
            return Some((StatusCode::UNSUPPORTED_MEDIA_TYPE, "send JSON, as application/json"));
        }
        None
    }
}

/// Only the page's own files run, load or are reached, and markup is only made by the sanitizer. What is framed are the apps of servers, each
/// server on a port of its own (see [`crate::apps`]).
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      media-src data:; frame-src http://127.0.0.1:*; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types dompurify";

/// Refuses strangers, and puts the security headers on whatever is sent.
pub(crate) async fn guard(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let mut response = match access.refusal(request.method(), request.uri().path(), request.headers()) {
        Some((status, why)) => (status, why).into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()"),
        ("cache-control", "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        Access::new(Token::chosen("0123456789abcdef").unwrap(), vec![]).at("127.0.0.1:7000".parse().unwrap())
    }

    fn check(method: Method, path: &str, headers: &[(&'static str, &str)], expected: Option<StatusCode>) {
        let headers: HeaderMap =
            headers.iter().map(|(name, value)| (header::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())).collect();
        let refused = access().refusal(&method, path, &headers).map(|(status, _)| status);
        assert_eq!(refused, expected, "{method} {path} {headers:?}");
    }

    #[test]
    fn only_the_own_page_with_the_token_gets_through() {
        let token = ("authorization", "Bearer 0123456789abcdef");
        let (here, own, json) = (("host", "127.0.0.1:7000"), ("origin", "http://127.0.0.1:7000"), ("content-type", "application/json"));
        check(Method::GET, "/", &[here], None);
        check(Method::GET, "/", &[("host", "localhost:7000")], None);
        check(Method::GET, "/", &[("host", "evil.example:7000")], Some(StatusCode::MISDIRECTED_REQUEST));
        check(Method::GET, "/", &[("host", "127.0.0.1")], Some(StatusCode::MISDIRECTED_REQUEST));
        check(Method::GET, "/", &[], Some(StatusCode::MISDIRECTED_REQUEST));
        check(Method::POST, "/", &[here], Some(StatusCode::METHOD_NOT_ALLOWED));
        check(Method::GET, "/api/state", &[here], Some(StatusCode::UNAUTHORIZED));
        check(Method::GET, "/api/state", &[here, ("authorization", "Bearer 0123456789abcdeF")], Some(StatusCode::UNAUTHORIZED));
        check(Method::GET, "/api/state", &[here, ("authorization", "0123456789abcdef")], Some(StatusCode::UNAUTHORIZED));
        check(Method::GET, "/api/state", &[here, token], None);
        check(Method::GET, "/api/state", &[here, token, ("origin", "http://evil.example")], Some(StatusCode::FORBIDDEN));
        check(Method::GET, "/api/state", &[here, token, ("origin", "null")], Some(StatusCode::FORBIDDEN));
        check(Method::GET, "/api/state", &[here, token, ("sec-fetch-site", "cross-site")], Some(StatusCode::FORBIDDEN));
        check(Method::GET, "/api/state", &[here, token, ("sec-fetch-site", "same-site")], Some(StatusCode::FORBIDDEN));
        check(Method::POST, "/api/connections", &[here, own, token, json], None);
        check(Method::POST, "/api/connections", &[here, own, token], Some(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        check(
            Method::POST,
            "/api/connections",
            &[here, own, token, ("content-type", "text/plain")],
            Some(StatusCode::UNSUPPORTED_MEDIA_TYPE),
        );
        check(Method::POST, "/api/connections", &[here, ("origin", "http://127.0.0.1:7001"), token, json], Some(StatusCode::FORBIDDEN));
    }

    #[test]
    fn tokens_are_long_and_never_the_same() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_eq!(one.0.len(), 32);
        assert_ne!(one.0, other.0);
        assert!(Token::chosen("short").is_err());
        assert!(Token::chosen("has spaces in the middle").is_err());
    }
}
