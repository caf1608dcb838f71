//! An HTTP server behind an address of ours: each request goes to the same path of the server, and its response comes back as it
//! arrives. Knows HTTP and the `endpoint` event of HTTP+SSE, not MCP.
//!
//! What is not byte-equal: the `host` header names the server; hop-by-hop framing (chunks, `connection` over HTTP/2) belongs to each
//! connection; headers of one name stand together; an `endpoint` event with an absolute URL of the server names the proxy.

use super::bodies::{LOST, Lent, RequestObserver, RequestStream, ResponseRecord, ResponseStream};
use super::endpoint::{EndpointRewriter, Origins};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use mcproof_client::transport::{
    AddressFailure, Admission, DisturbedBody, FaultInjector, Lease, Pool, Refusal, Subject, admit as admit_faulty,
};
use mcproof_client::{Broken, HttpHead, Limits, Network, Tap};
use mcproof_record::{Direction, ExchangeId, FrameBody};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::{Host, Url};

/// Connections of clients at the same time; the next ones wait.
const MOST_CONNECTIONS: usize = 1024;
/// How long a client may take for the head of a request. Kept connections are closed after it.
const HEAD_DEADLINE: Duration = Duration::from_secs(75);

/// Sends what clients request to one server.
pub struct HttpRelay {
    pool: Arc<Pool<RequestStream>>,
    server: Url,
    headers: Vec<(HeaderName, HeaderValue)>,
    limits: Limits,
    tap: Tap,
    faults: Option<FaultInjector>,
}

/// Why a client gets no response: its connection closes.
#[derive(Debug, thiserror::Error)]
#[error("closed by an injected fault")]
struct ConnectionClosed;

/// Where the clients of a relay connect.
pub struct RelayListener {
    pub(super) listener: TcpListener,
    pub(super) address: SocketAddr,
}

type ResponseBody = Either<ResponseStream, Full<Bytes>>;

impl RelayListener {
    /// # Errors
    /// The address cannot be listened on.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Whether only this machine reaches it.
    pub fn is_loopback(&self) -> bool {
        self.address.ip().is_loopback()
    }

    /// The URL at which clients find what the server has at its own.
    pub fn url_of(&self, server: &Url) -> Url {
        let mut url = server.clone();
        let host = if self.address.ip().is_unspecified() { "127.0.0.1".to_owned() } else { self.address.ip().to_string() };
        let host = if self.address.is_ipv6() && !self.address.ip().is_unspecified() { format!("[{host}]") } else { host };
        // An IP address and a port fit into every http URL.
        let _ = url.set_scheme("http");
        let _ = url.set_host(Some(&host));
        let _ = url.set_port(Some(self.address.port()));
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url
    }
}

impl HttpRelay {
    /// # Errors
    /// The URL cannot be reached in principle.
    /// `headers` go to the server with each request, in the place of those that a client sends of the same names.
    pub fn new(server: &Url, headers: &[(String, String)], limits: Limits, network: &Network, tap: &Tap) -> Result<Self, AddressFailure> {
        let tap = tap.finding_credentials();
        let pair = |(name, value): &(String, String)| Some((HeaderName::try_from(name.as_str()).ok()?, HeaderValue::from_str(value).ok()?));
        let headers = headers.iter().filter_map(pair).collect();
        Ok(Self {
            pool: Arc::new(Pool::for_relay(server, limits, network, &tap)?),
            server: server.clone(),
            headers,
            limits,
            tap,
            faults: None,
        })
    }

    /// What passes is disturbed as this says.
    pub fn disturbed(self, faults: Option<FaultInjector>) -> Self {
        Self { faults, ..self }
    }

    /// Serves clients until this is dropped.
    ///
    /// # Errors
    /// The listener broke.
    pub async fn serve(self, listener: RelayListener) -> io::Result<Infallible> {
        let RelayListener { listener, address } = listener;
        let relay = Arc::new(self);
        let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            let permit = Arc::clone(&room).acquire_owned().await.map_err(io::Error::other)?;
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            match accepted {
                Ok((stream, _)) => {
                    let relay = Arc::clone(&relay);
                    connections.spawn(async move {
                        relay.attend(stream, address).await;
                        drop(permit);
                    });
                }
                // The client is gone again, or we are short of descriptors for a moment.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    async fn attend(self: Arc<Self>, stream: TcpStream, address: SocketAddr) {
        let _ = stream.set_nodelay(true);
        let own = stream.local_addr().unwrap_or(address);
        let tap = self.tap.clone();
        // Where responses may never come, the end of a request is the end of its client.
        let is_open_ended = self.faults.is_none();
        let service = service_fn(move |request| {
            let relay = Arc::clone(&self);
            async move { relay.respond(request, own).await }
        });
        let mut builder = auto::Builder::new(TokioExecutor::new());
        let head = u32::try_from(64_usize << 10).unwrap_or(u32::MAX);
        builder.http1().preserve_header_case(true).auto_date_header(false).half_close(is_open_ended).timer(TokioTimer::new());
        builder.http1().header_read_timeout(HEAD_DEADLINE).max_buf_size(128 << 10);
        builder.http2().auto_date_header(false).max_header_list_size(head).timer(TokioTimer::new());
        if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
            tap.note(format!("connection of a client ended: {error}"));
        }
    }

    async fn respond(&self, mut request: Request<Incoming>, own: SocketAddr) -> Result<Response<ResponseBody>, ConnectionClosed> {
        let foreign = admit(&request, own).err();
        if let Some(host) = foreign.as_ref().filter(|_| !self.is_as_open_as_its_server()) {
            self.tap.note(format!("a request with the host `{host}` was refused"));
            let text = format!("mcproof proxy: the Host header `{host}` is not an address of this proxy; use {own}\n");
            return Ok(told(StatusCode::FORBIDDEN, text));
        }
        let exchange = self.tap.next_exchange();
        let origins = Origins::new(&self.server, request.headers().get(HOST), own);
        self.direct(&mut request, foreign.is_none().then_some(origins.server_authority.as_str()));
        let observer = RequestObserver::new(exchange, &request, &self.server, self.limits.body, &self.tap);
        let mut record = ResponseRecord::new(exchange, self.limits, &self.tap);
        if let Some(faults) = &self.faults {
            return self.respond_disturbed(request, exchange, observer, record, origins, faults).await;
        }
        let method = request.method().clone();
        let request = request.map(|body| RequestStream::new(body, observer.clone()));
        let sent = self.pool.forward(request).await;
        // What the server sent before it had all of the request still comes after the request.
        observer.conclude();
        Ok(match sent {
            Ok((response, lease)) => {
                let rewriter = EndpointRewriter::for_response(&method, &response, origins);
                let (mut parts, body) = response.into_parts();
                parts.version = Version::HTTP_11;
                record.head(parts.status.as_u16(), &parts.headers);
                let stream = ResponseStream::new(body, record, rewriter, Lent::new(&self.pool, lease));
                Response::from_parts(parts, Either::Left(stream))
            }
            Err(broken) => {
                let text = format!("mcproof proxy: {broken}\n");
                record.failed(&broken.to_string());
                told(StatusCode::BAD_GATEWAY, text)
            }
        })
    }

    /// The same for a request that faults may hit: it is read as a whole before it goes on.
    async fn respond_disturbed(
        &self,
        request: Request<Incoming>,
        exchange: ExchangeId,
        observer: RequestObserver,
        record: ResponseRecord,
        origins: Origins,
        faults: &FaultInjector,
    ) -> Result<Response<ResponseBody>, ConnectionClosed> {
        let method = request.method().clone();
        let (parts, body) = request.into_parts();
        let body = match Limited::new(body, self.limits.body).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => {
                observer.conclude();
                let text = format!("mcproof proxy: the request was not read: {error}\n");
                record.failed(&error.to_string());
                return Ok(told(StatusCode::PAYLOAD_TOO_LARGE, text));
            }
        };
        observer.take(&body);
        observer.conclude();
        let lost = |record: ResponseRecord| {
            record.failed("closed by an injected fault");
            Err(ConnectionClosed)
        };
        let admitted = timeout(LOST, admit_faulty(faults, &self.tap, Request::from_parts(parts, Full::new(body)))).await;
        let (request, subject, is_doubled) = match admitted {
            Ok(Admission::Sent { request, subject }) => (request, subject, false),
            Ok(Admission::SentTwice { request, subject }) => (request, subject, true),
            Ok(Admission::Refused(refusal)) => return Ok(self.refused(exchange, refusal, record)),
            Ok(Admission::Reset) | Err(_) => return lost(record),
        };
        if is_doubled {
            self.send_in_vain(request.clone(), &observer);
        }
        let sending = self.pool.forward(request.map(|body| RequestStream::whole(body, observer)));
        let sent = match faults.idle_cut() {
            None => sending.await,
            Some((after, planned)) => match timeout(after, sending).await {
                Ok(sent) => sent,
                Err(_) => {
                    self.tap.note(faults.cut_idle(after, planned));
                    return lost(record);
                }
            },
        };
        match sent {
            Ok((response, lease)) => Ok(self.disturb(&method, exchange, (response, lease), record, origins, (subject, faults))),
            Err(broken) => {
                let text = format!("mcproof proxy: {broken}\n");
                record.failed(&broken.to_string());
                Ok(told(StatusCode::BAD_GATEWAY, text))
            }
        }
    }

    fn disturb(
        &self,
        method: &hyper::Method,
        exchange: ExchangeId,
        (response, lease): (Response<Incoming>, Lease<RequestStream>),
        mut record: ResponseRecord,
        origins: Origins,
        (subject, faults): (Subject, &FaultInjector),
    ) -> Response<ResponseBody> {
        let rewriter = EndpointRewriter::for_response(method, &response, origins);
        let (mut parts, body) = response.into_parts();
        parts.version = Version::HTTP_11;
        // How long the body is, a fault may change.
        parts.headers.remove(CONTENT_LENGTH);
        let headers = super::bodies::named(&parts.headers);
        let frame = record.head(parts.status.as_u16(), &parts.headers);
        let head = HttpHead { exchange, frame, status: parts.status.as_u16(), headers, is_http_1_0: false };
        let most = self.limits.body.max(self.limits.event).saturating_add(1);
        let body = DisturbedBody::new(body, &head, subject, faults, &self.tap, most);
        let stream = ResponseStream::disturbed(body, record, rewriter, Lent::new(&self.pool, lease));
        Response::from_parts(parts, Either::Left(stream))
    }

    /// Sends a request whose response nobody gets: it is read to its end, so that the server does not take it for canceled.
    fn send_in_vain(&self, request: Request<Full<Bytes>>, observer: &RequestObserver) {
        let (pool, observer) = (Arc::clone(&self.pool), observer.clone());
        tokio::spawn(timeout(LOST, async move {
            let sent: Result<_, Broken> = pool.forward(request.map(|body| RequestStream::whole(body, observer))).await;
            if let Ok((mut response, lease)) = sent {
                while let Some(Ok(_)) = response.body_mut().frame().await {}
                drop(lease);
            }
        }));
    }

    fn refused(&self, exchange: ExchangeId, refusal: Refusal, mut record: ResponseRecord) -> Response<ResponseBody> {
        let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
        let mut response = told(status, INJECTED.to_owned());
        response.headers_mut().extend(refusal.headers());
        let frame = record.head(refusal.status, response.headers());
        self.tap.excuse_frame(frame);
        let body = FrameBody::HttpBody { exchange, bytes: INJECTED.as_bytes().into() };
        self.tap.excuse_frame(self.tap.record(Direction::FromServer, body));
        record.ended();
        response
    }

    /// Whether a page in a browser reaches the server without us just as well: on this machine, and without credentials of ours. Then it
    /// is the server that has to refuse a foreign host, and whoever looks at its traffic is to see whether it does.
    fn is_as_open_as_its_server(&self) -> bool {
        let is_local = match self.server.host() {
            Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        is_local && self.headers.is_empty() && self.server.username().is_empty() && self.server.password().is_none()
    }

    /// To the same path of the server. The headers stay as they are, but for the name of the host, unless there is no other for it.
    fn direct(&self, request: &mut Request<Incoming>, host: Option<&str>) {
        // Over HTTP/2 it is no header.
        let named = request.uri().authority().map(ToString::to_string);
        let host = host.map(str::to_owned).or(named);
        let path = request.uri().path_and_query().cloned();
        let path = path.unwrap_or_else(|| hyper::http::uri::PathAndQuery::from_static("/"));
        *request.uri_mut() = path.into();
        *request.version_mut() = Version::HTTP_11;
        if let Some(Ok(host)) = host.map(|host| HeaderValue::from_str(&host)) {
            request.headers_mut().insert(HOST, host);
        }
        for (name, value) in &self.headers {
            request.headers_mut().insert(name.clone(), value.clone());
        }
    }
}

/// A page on the web can reach loopback by a name that it had resolve to it, and the server behind us would take its requests for
/// ours: the name has to be an address of this listener.
pub(super) fn admit(request: &Request<Incoming>, own: SocketAddr) -> Result<(), String> {
    let named = request.uri().authority().map(ToString::to_string);
    let host = named.or_else(|| request.headers().get(HOST).and_then(|host| host.to_str().ok()).map(str::to_owned)).unwrap_or_default();
    let name =
        host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit())).map_or(host.as_str(), |(name, _)| name);
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let is_local = own.ip().is_loopback() && bare.eq_ignore_ascii_case("localhost");
    let is_address =
        bare.parse::<std::net::IpAddr>().is_ok_and(|address| address == own.ip() || (own.ip().is_loopback() && address.is_loopback()));
    // On another interface the machine has names that we do not know.
    if is_local || is_address || !own.ip().is_loopback() { Ok(()) } else { Err(host.chars().take(100).collect()) }
}

/// The body of a response that a fault made.
const INJECTED: &str = "an injected fault\n";

/// A response of our own, where there is none of the server.
fn told(status: StatusCode, text: String) -> Response<ResponseBody> {
    let mut response = Response::new(Either::Right(Full::new(Bytes::from(text))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
