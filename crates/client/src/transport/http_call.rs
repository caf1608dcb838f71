//! One plain HTTP exchange, such as the delivery of a notification: no MCP, no transcript. The connection is made
//! first and the request sent later, so that the caller can check in between whether it may still send.

use super::pool::{AddressFailure, Lease, Pool};
use super::proxy::basic;
use super::{Broken, Limits, Network};
use crate::Tap;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request};
use url::Url;

/// A connection that waits for its one request. The caller sets the deadlines.
pub struct HttpCall {
    pool: Pool,
    lease: Lease,
    url: Url,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpCallResponse {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Cut where it is too long.
    pub body: Vec<u8>,
}

impl HttpCallResponse {
    /// The first header of that (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The rest of a longer body is not read.
const MAX_RESPONSE_BYTES: usize = 256 * 1024;

impl HttpCall {
    /// Connects: name, TCP, proxy and TLS.
    ///
    /// # Errors
    /// A readable sentence, without the URL: it may hold a secret.
    pub async fn connect(url: &Url, network: &Network) -> Result<Self, Broken> {
        let limits = Limits { body: MAX_RESPONSE_BYTES, ..Limits::default() };
        let pool = Pool::new(url, limits, network, &Tap::new()).map_err(|failure| {
            Broken::from(match failure {
                AddressFailure::Scheme(_) => "not an http:// or https:// URL".to_owned(),
                other => other.to_string(),
            })
        })?;
        let lease = pool.open().await?;
        Ok(Self { pool, lease, url: url.clone() })
    }

    /// Sends the request and waits for the whole response. User and password of the URL become a header.
    ///
    /// # Errors
    /// A readable sentence. Whether the request arrived is not known then.
    pub async fn send(self, method: &str, headers: &[(String, String)], body: Vec<u8>) -> Result<HttpCallResponse, Broken> {
        let (head, body, lease) = self.start(method, headers, body).await?;
        // The status tells enough where the body is too long or breaks off.
        let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await.map(|body| body.to_bytes().to_vec()).unwrap_or_default();
        drop(lease);
        Ok(HttpCallResponse { body, ..head })
    }

    /// The same without the body, neither of the request nor of the response.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub(crate) async fn send_for_head(self, method: &str, headers: &[(String, String)]) -> Result<HttpCallResponse, Broken> {
        self.start(method, headers, Vec::new()).await.map(|(head, ..)| head)
    }

    async fn start(self, method: &str, headers: &[(String, String)], body: Vec<u8>) -> Result<(HttpCallResponse, Incoming, Lease), Broken> {
        let unusable = |what: String| Broken::from(what);
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| unusable(format!("`{method}` is not a valid HTTP method")))?;
        let length = body.len();
        let path = &self.url[url::Position::BeforePath..url::Position::AfterQuery];
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.uri_mut() = path.parse().map_err(|_| unusable("the path of the URL cannot be sent".to_owned()))?;
        let named = request.headers_mut();
        if let Ok(host) = HeaderValue::from_str(&self.url[url::Position::BeforeHost..url::Position::BeforePath]) {
            named.insert(HOST, host);
        }
        if let Some(authorization) = basic(&self.url).and_then(|value| HeaderValue::from_str(&value).ok()) {
            named.insert(AUTHORIZATION, authorization);
        }
        if length > 0 || method == Method::POST {
            named.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        for (name, value) in headers {
            match (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
                (Ok(name), Ok(value)) => named.append(name, value),
                _ => return Err(unusable(format!("the header `{name}` cannot be sent"))),
            };
        }
        *request.method_mut() = method;
        let (response, lease) = self.pool.send_on(self.lease, request).await?;
        let (parts, body) = response.into_parts();
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = parts.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
        Ok((HttpCallResponse { status: parts.status.as_u16(), headers, body: Vec::new() }, body, lease))
    }
}
