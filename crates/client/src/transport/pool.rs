//! Connections to one origin: made when needed, kept while the server keeps them. Over TLS, HTTP/2 where the server
//! chooses it: then one connection serves all requests. Knows HTTP, not MCP.

use super::connection_timing::ConnectionTimer;
use super::progress::{Progress, Stage};
use super::proxy::{self, Proxy};
use super::stream::{LastRead, Stream, Trouble};
use super::tls::{self, Tls, Verification};
use super::uppercase_headers::UppercaseHeaders;
use super::{Bound, Broken, Destinations, Limits, Network, Reuse};
use crate::Tap;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::client::conn::{TrySendError, http1, http2};
use hyper::header::{HOST, HeaderValue, PROXY_AUTHORIZATION};
use hyper::http::uri::{Authority, PathAndQuery, Scheme, Uri};
use hyper::rt::{Executor, Read, Write};
use hyper::{Request, Response};
use mcproof_record::duration::readable;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use url::Url;

/// What a request may carry.
pub trait RequestBody: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + Unpin + 'static {}

impl<T: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + Unpin + 'static> RequestBody for T {}

/// Connections to one origin.
pub struct Pool<B = Full<Bytes>> {
    host: String,
    port: u16,
    proxy: Option<Proxy>,
    /// Set for `https`.
    tls: Option<Tls>,
    connect: Duration,
    destinations: Destinations,
    head_limit: usize,
    tap: Tap,
    spelling: HeaderCase,
    idle: Mutex<Vec<Single<B>>>,
    shared: Mutex<Option<Shared<B>>>,
    /// Over TLS the first connection shows whether it can be shared; until then the other requests wait for it.
    turn: tokio::sync::Mutex<()>,
    /// Set when a connection over TLS cannot be shared.
    one_each: AtomicBool,
    /// Whether a connection stays open after its response.
    keeps: AtomicBool,
}

/// A connection in use. Give it back once the body was read to its end; drop it to close it.
pub struct Lease<B = Full<Bytes>>(Sender<B>);

enum Sender<B> {
    Single(Single<B>),
    Shared(Shared<B>),
}

impl<B> Lease<B> {
    /// What the connection brought last; none where it may have been for another exchange.
    pub(super) fn last_read(&self) -> Option<LastRead> {
        match &self.0 {
            Sender::Single(single) => Some(single.last_read.clone()),
            Sender::Shared(_) => None,
        }
    }
}

/// HTTP/1.1: one exchange at a time.
struct Single<B> {
    sender: http1::SendRequest<B>,
    /// Set over TLS.
    trouble: Option<Trouble>,
    last_read: LastRead,
}

/// HTTP/2: any number of exchanges.
struct Shared<B> {
    sender: http2::SendRequest<B>,
    trouble: Option<Trouble>,
}

impl<B> Clone for Shared<B> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), trouble: self.trouble.clone() }
    }
}

/// How the names of headers are written over HTTP/1.1; HTTP/2 has lower case only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderCase {
    Lower,
    /// `Like-This`.
    Title,
    /// `LIKE-THIS`.
    Capitals,
    /// As the client of a relay wrote them.
    Kept,
}

/// The connection that a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// A kept one if there is any, else a new one.
    Any,
    /// A new one; those that were kept are closed, so that the next one kept is this.
    New,
    /// The one that was kept last.
    Kept,
}

/// Whether a connection has carried a request before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Age {
    Fresh,
    Kept,
}

/// Why a request that was sent has no response.
pub(super) struct NoResponse {
    pub(super) reason: Broken,
    /// Whether the connection had been kept, and ended before a byte of the response. A server may close it at any time, also just
    /// before the request comes (RFC 9112, 9.3.1).
    pub(super) is_of_kept_connection: bool,
}

impl From<String> for NoResponse {
    fn from(reason: String) -> Self {
        Self { reason: reason.into(), is_of_kept_connection: false }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressFailure {
    #[error("`{0}` is not an http:// or https:// URL")]
    Scheme(String),
    #[error("the URL names no host")]
    NoHost,
    #[error("the proxy cannot be used: {0}")]
    Proxy(String),
    /// See [`Destinations::Listed`].
    #[error("{0} is not an allowed host: add it with --allow-host")]
    NotListed(String),
}

impl<B: RequestBody> Pool<B> {
    pub(crate) fn new(url: &Url, limits: Limits, network: &Network, tap: &Tap) -> Result<Self, AddressFailure> {
        let tls = match url.scheme() {
            "http" => None,
            "https" => Some(network.tls.clone()),
            _ => return Err(AddressFailure::Scheme(url.as_str().to_owned())),
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(AddressFailure::NoHost)?;
        let port = url.port_or_known_default().ok_or(AddressFailure::NoHost)?;
        if !network.destinations.admit(host, port) {
            return Err(AddressFailure::NotListed(format!("{host}:{port}")));
        }
        Ok(Self {
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port,
            proxy: network.proxies.for_url(url)?,
            tls,
            connect: network.connect,
            destinations: network.destinations.clone(),
            head_limit: limits.head,
            tap: tap.clone(),
            spelling: HeaderCase::Lower,
            idle: Mutex::default(),
            shared: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            one_each: AtomicBool::new(false),
            keeps: AtomicBool::new(network.reuse == Reuse::Kept),
        })
    }

    /// Connections of their own to the same origin, on which headers are written in another way.
    pub(crate) fn spelled(&self, spelling: HeaderCase) -> Self {
        Self { spelling, ..self.apart() }
    }

    /// Whether the connection that is kept serves all requests, as over HTTP/2.
    pub(crate) fn speaks_http2(&self) -> bool {
        lock(&self.shared).is_some()
    }

    /// From now on connections stay open after their response, or not; none is left that does.
    pub(crate) fn reuse(&self, reuse: Reuse) {
        self.keeps.store(reuse == Reuse::Kept, Ordering::Relaxed);
        self.close_idle();
    }

    /// Closes the connections that wait for the next request.
    pub(crate) fn close_idle(&self) {
        lock(&self.idle).clear();
    }

    /// Connections of their own to the same origin, for bodies of any kind.
    pub(crate) fn apart<C: RequestBody>(&self) -> Pool<C> {
        Pool {
            host: self.host.clone(),
            port: self.port,
            proxy: self.proxy.clone(),
            tls: self.tls.clone(),
            connect: self.connect,
            destinations: self.destinations.clone(),
            head_limit: self.head_limit,
            tap: self.tap.clone(),
            spelling: self.spelling,
            idle: Mutex::default(),
            shared: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            one_each: AtomicBool::new(false),
            keeps: AtomicBool::new(self.keeps.load(Ordering::Relaxed)),
        }
    }

    /// Sends a request and gives the head of its response.
    ///
    /// A request on a kept connection that the server has closed meanwhile was never sent, so it goes out on another;
    /// nothing is sent twice here.
    ///
    /// # Errors
    /// A readable sentence: refused, reset, not trusted, or what of the response was no HTTP.
    pub(crate) async fn send(&self, request: Request<B>, progress: &Progress) -> Result<(Response<Incoming>, Lease<B>), Broken> {
        self.send_or_tell(request, progress).await.map_err(|failure| failure.reason)
    }

    /// Like [`Pool::send`], and tells whether a kept connection is to blame.
    ///
    /// # Errors
    /// As [`Pool::send`].
    pub(super) async fn send_or_tell(
        &self,
        mut request: Request<B>,
        progress: &Progress,
    ) -> Result<(Response<Incoming>, Lease<B>), NoResponse> {
        loop {
            let (mut sender, age) = self.sender(progress).await?;
            self.address(&mut request, &sender);
            progress.enter(Stage::Asked);
            let received = sender.received();
            match sender.send(request).await {
                Ok(response) => {
                    progress.enter(Stage::Responder { bytes: 0 });
                    return Ok((response, Lease(sender)));
                }
                Err(mut error) => match error.take_message() {
                    Some(unsent) if age == Age::Kept => request = unsent,
                    _ => {
                        let error = error.into_error();
                        let is_of_kept_connection = age == Age::Kept && sender.ended_in_silence(received, &error);
                        return Err(NoResponse { reason: self.explain(&sender, &error), is_of_kept_connection });
                    }
                },
            }
        }
    }

    /// Sends a request on a new connection.
    ///
    /// # Errors
    /// As [`Pool::send`].
    pub(super) async fn send_anew(&self, mut request: Request<B>, progress: &Progress) -> Result<(Response<Incoming>, Lease<B>), Broken> {
        let mut sender = self.connect(progress).await?;
        self.address(&mut request, &sender);
        progress.enter(Stage::Asked);
        match sender.send(request).await {
            Ok(response) => {
                progress.enter(Stage::Responder { bytes: 0 });
                Ok((response, Lease(sender)))
            }
            Err(error) => Err(self.explain(&sender, &error.into_error())),
        }
    }

    /// Sends a request on a connection that was chosen, and only there.
    ///
    /// # Errors
    /// As [`Pool::send`]; or no connection was kept.
    pub(crate) async fn send_by(
        &self,
        way: Way,
        mut request: Request<B>,
        progress: &Progress,
    ) -> Result<(Response<Incoming>, Lease<B>), Broken> {
        let kept = match way {
            Way::Any => return self.send(request, progress).await,
            Way::New => {
                self.close_idle();
                None
            }
            Way::Kept => Some(self.kept().ok_or_else(|| Broken::from("server closed the connection after its response".to_owned()))?),
        };
        let mut sender = match kept {
            Some(kept) => kept,
            None => Box::pin(self.fresh(progress)).await?.0,
        };
        self.address(&mut request, &sender);
        match sender.send(request).await {
            Ok(response) => Ok((response, Lease(sender))),
            Err(error) => Err(self.explain(&sender, &error.into_error())),
        }
    }

    /// A new connection, ready for a request that is sent later, or not at all.
    ///
    /// # Errors
    /// A readable sentence: refused, not trusted, or too slow.
    pub(crate) async fn open(&self) -> Result<Lease<B>, Broken> {
        Ok(Lease(self.connect(&Progress::default()).await?))
    }

    /// Sends a request on a connection that [`Pool::open`] made.
    ///
    /// # Errors
    /// As [`Pool::send`].
    pub(crate) async fn send_on(&self, lease: Lease<B>, mut request: Request<B>) -> Result<(Response<Incoming>, Lease<B>), Broken> {
        let Lease(mut sender) = lease;
        self.address(&mut request, &sender);
        match sender.send(request).await {
            Ok(response) => Ok((response, Lease(sender))),
            Err(error) => Err(self.explain(&sender, &error.into_error())),
        }
    }

    /// Connections for requests that other programs made: they go out with their headers as those programs wrote them. Notes
    /// about connections go to the tap.
    ///
    /// # Errors
    /// The URL cannot be reached in principle.
    pub fn for_relay(url: &Url, limits: Limits, network: &Network, tap: &Tap) -> Result<Self, AddressFailure> {
        Self::new(url, limits, network, tap).map(|pool| Self { spelling: HeaderCase::Kept, ..pool })
    }

    /// Sends a request of another program. There is no deadline: that program has its own, and ends the request by dropping this.
    ///
    /// # Errors
    /// A readable sentence: refused, reset, not trusted, or what of the response was no HTTP.
    pub async fn forward(&self, request: Request<B>) -> Result<(Response<Incoming>, Lease<B>), Broken> {
        self.send(request, &Progress::default()).await
    }

    /// The connection may carry the next request: the body of the response was read to its end.
    pub fn give_back(&self, lease: Lease<B>) {
        if let Sender::Single(single) = lease.0
            && !single.sender.is_closed()
            && self.keeps.load(Ordering::Relaxed)
        {
            lock(&self.idle).push(single);
        }
    }

    /// Whether anything accepts connections there.
    pub(crate) async fn accepts(&self) -> io::Result<()> {
        TcpStream::connect((self.host.as_str(), self.port)).await.map(drop)
    }

    async fn sender(&self, progress: &Progress) -> Result<(Sender<B>, Age), String> {
        match self.kept() {
            Some(kept) => Ok((kept, Age::Kept)),
            // On the heap, so that requests on kept connections do not carry the room for a handshake along.
            None => Box::pin(self.fresh(progress)).await,
        }
    }

    async fn fresh(&self, progress: &Progress) -> Result<(Sender<B>, Age), String> {
        if self.tls.is_none() || self.one_each.load(Ordering::Relaxed) {
            return Ok((self.connect(progress).await?, Age::Fresh));
        }
        let _turn = self.turn.lock().await;
        match self.kept() {
            Some(kept) => Ok((kept, Age::Kept)),
            None => Ok((self.connect(progress).await?, Age::Fresh)),
        }
    }

    fn kept(&self) -> Option<Sender<B>> {
        if self.tls.is_some() {
            let mut shared = lock(&self.shared);
            match &*shared {
                Some(open) if !open.sender.is_closed() => return Some(Sender::Shared(open.clone())),
                _ => *shared = None,
            }
        }
        lock(&self.idle).pop().map(Sender::Single)
    }

    async fn connect(&self, progress: &Progress) -> Result<Sender<B>, String> {
        progress.enter(Stage::Connecting);
        timeout(self.connect, self.dial(progress)).await.unwrap_or_else(|_| {
            let (server, within) = (self.authority(), readable(self.connect));
            Err(match (progress.stage(), &self.proxy) {
                (Stage::Securing, _) => format!("the TLS handshake with {server} was not finished within {within}"),
                (Stage::Tunnelling, Some(proxy)) => format!("the proxy {} opened no tunnel to {server} within {within}", proxy.address()),
                (_, Some(proxy)) => format!("no connection to the proxy {} within {within}", proxy.address()),
                (_, None) => format!("no connection to {server} within {within}"),
            })
        })
    }

    async fn dial(&self, progress: &Progress) -> Result<Sender<B>, String> {
        let (host, port) = self.proxy.as_ref().map_or((self.host.as_str(), self.port), |proxy| (proxy.host.as_str(), proxy.port));
        // The proxy is the user's own, wherever it is; where it goes is for it to decide.
        let destinations = if self.proxy.is_some() { &Destinations::Any } else { &self.destinations };
        let mut dialing = ConnectionTimer::begin(&self.tap);
        let mut stream = reach(host, port, destinations, &mut dialing).await.map_err(|error| {
            dialing.refused(&error);
            let whom = self.proxy.as_ref().map_or_else(|| self.authority(), |proxy| format!("the proxy {}", proxy.address()));
            match error.kind() {
                io::ErrorKind::ConnectionRefused => format!("connection to {whom} refused"),
                _ => format!("connection to {whom} failed: {error}"),
            }
        })?;
        // A request is one small write: waiting for more would only cost time.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else {
            dialing.ready();
            let stream = Stream::new(stream);
            let last_read = stream.last_read();
            let sender = self.single(stream).await?;
            return Ok(Sender::Single(Single { sender, trouble: None, last_read }));
        };
        let server = self.authority();
        if let Some(proxy) = &self.proxy {
            progress.enter(Stage::Tunnelling);
            proxy::open_tunnel(&mut stream, proxy, &server).await?;
            dialing.tunnelled();
        }
        progress.enter(Stage::Securing);
        let secured = tls.secure(stream, &self.host, &server).await?;
        let shareable = tls::speaks_http2(&secured);
        let version = tls::version(&secured);
        dialing.secured(version, tls::certificate(&secured), tls.verification() == Verification::Full);
        dialing.ready();
        let through = self.proxy.as_ref().map(|proxy| format!(" through the proxy {}", proxy.address())).unwrap_or_default();
        let http = if shareable { HTTP2 } else { ", HTTP/1.1" };
        let unverified = if tls.verification() == Verification::Off { "; its certificate is not checked" } else { "" };
        self.tap.note(format!("{CONNECTED}{server}{through}: {version}{http}{unverified}"));
        let trouble = Trouble::default();
        let explain = Box::new(move |error: &io::Error| tls::explain_later(error, &server));
        let stream = Stream::explained(secured, Arc::clone(&trouble), explain);
        if !shareable {
            self.one_each.store(true, Ordering::Relaxed);
            let last_read = stream.last_read();
            let sender = self.single(stream).await?;
            return Ok(Sender::Single(Single { sender, trouble: Some(trouble), last_read }));
        }
        let shared = Shared { sender: self.shared(stream).await?, trouble: Some(trouble) };
        *lock(&self.shared) = Some(shared.clone());
        Ok(Sender::Shared(shared))
    }

    async fn single(&self, stream: impl Read + Write + Send + Unpin + 'static) -> Result<http1::SendRequest<B>, String> {
        let buffer = self.head_limit.max(LEAST_BUFFER);
        let mut builder = http1::Builder::new();
        builder.max_buf_size(buffer).title_case_headers(self.spelling == HeaderCase::Title);
        builder.preserve_header_case(self.spelling == HeaderCase::Kept);
        if self.spelling == HeaderCase::Capitals {
            let (sender, connection) = builder.handshake(UppercaseHeaders::new(stream)).await.map_err(|error| describe(&error))?;
            self.keep(connection);
            return Ok(sender);
        }
        let (sender, connection) = builder.handshake(stream).await.map_err(|error| describe(&error))?;
        self.keep(connection);
        Ok(sender)
    }

    async fn shared(&self, stream: impl Read + Write + Send + Unpin + 'static) -> Result<http2::SendRequest<B>, String> {
        let limit = u32::try_from(self.head_limit).unwrap_or(u32::MAX);
        let handshake = http2::Builder::new(Spawn).max_header_list_size(limit).handshake(stream).await;
        let (sender, connection) = handshake.map_err(|error| describe(&error))?;
        self.keep(connection);
        Ok(sender)
    }

    /// Drives a connection. It ends by itself when its senders are dropped or the server closes it.
    fn keep(&self, connection: impl Future<Output = hyper::Result<()>> + Send + 'static) {
        let (tap, server) = (self.tap.clone(), self.authority());
        tokio::spawn(async move {
            // Errors that concern an exchange are told there; this is what came between two of them.
            if let Err(error) = connection.await {
                tap.note(format!("connection to {server} abandoned: {}", describe(&error)));
            }
        });
    }

    /// Gives a request the form that the way to the server requests.
    fn address(&self, request: &mut Request<B>, sender: &Sender<B>) {
        let forwarded = self.tls.is_none() && self.proxy.is_some();
        match sender {
            // The usual case: the path, and a `host` header.
            Sender::Single(_) if !forwarded && request.uri().authority().is_none() => {}
            Sender::Single(_) => {
                let headers = request.headers();
                let authority = headers.get(HOST).cloned().or_else(|| HeaderValue::from_str(request.uri().authority()?.as_str()).ok());
                *request.uri_mut() = if forwarded { self.absolute(request) } else { path(request).into() };
                if let Some(authority) = authority {
                    request.headers_mut().insert(HOST, authority);
                }
                let authorization = self.proxy.as_ref().filter(|_| forwarded).and_then(|proxy| proxy.authorization.as_deref());
                if let Some(Ok(authorization)) = authorization.map(HeaderValue::from_str) {
                    request.headers_mut().insert(PROXY_AUTHORIZATION, authorization);
                }
            }
            Sender::Shared(_) => {
                *request.uri_mut() = self.absolute(request);
                // Its place is taken by `:authority` (RFC 9113, 8.3.1).
                request.headers_mut().remove(HOST);
            }
        }
    }

    /// The whole URL of a request, whose `host` header may be the user's.
    fn absolute(&self, request: &Request<B>) -> Uri {
        let scheme = if self.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP };
        let host = request.headers().get(HOST).and_then(|host| Authority::try_from(host.as_bytes()).ok());
        let authority = host.or_else(|| request.uri().authority().cloned()).or_else(|| self.authority().parse().ok());
        let mut parts = hyper::http::uri::Parts::default();
        parts.scheme = Some(scheme);
        parts.authority = authority;
        parts.path_and_query = Some(path(request));
        Uri::from_parts(parts).unwrap_or_else(|_| request.uri().clone())
    }

    /// `host:port`, as people know the server.
    fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    fn explain(&self, sender: &Sender<B>, error: &hyper::Error) -> Broken {
        let trouble = match sender {
            Sender::Single(Single { trouble, .. }) | Sender::Shared(Shared { trouble, .. }) => trouble.as_ref(),
        };
        match trouble.and_then(|trouble| trouble.get()) {
            Some(trouble) => trouble.clone().into(),
            None if error.is_parse_too_large() => Broken::at(
                Bound::Head,
                format!("the head of the response is larger than {} bytes, or has more than {MAX_HEADERS} headers", self.head_limit),
            ),
            None => match std::error::Error::source(error).and_then(|source| source.downcast_ref::<h2::Error>()) {
                Some(error) => self.explain_http2(error),
                None if error.is_parse() => format!("{NOT_HTTP}: {}", describe(error)).into(),
                None => describe(error).into(),
            },
        }
    }

    fn explain_http2(&self, error: &h2::Error) -> Broken {
        match error.reason() {
            // We ended the stream; h2 does not say over which rule.
            Some(h2::Reason::PROTOCOL_ERROR) if error.is_library() => Broken::at(
                Bound::Head,
                format!("the response breaks a rule of HTTP/2, or its head is larger than {} bytes", self.head_limit),
            ),
            Some(reason) if error.is_remote() && error.is_reset() => format!("server broke off the HTTP/2 stream: {reason:?}").into(),
            Some(reason) if error.is_remote() && error.is_go_away() => format!("server closed the HTTP/2 connection: {reason:?}").into(),
            _ => format!("HTTP/2 failed: {error}").into(),
        }
    }
}

/// How it is told that what came is no response of HTTP, in which judges find it again.
pub const NOT_HTTP: &str = "the response is not valid HTTP";

/// How a note about a connection over TLS begins, and where it tells HTTP/2.
const CONNECTED: &str = "connected to ";
const HTTP2: &str = ", HTTP/2";

/// Whether a note says that a connection is HTTP/2.
pub fn tells_http2(note: &str) -> bool {
    note.starts_with(CONNECTED) && note.contains(HTTP2)
}

/// hyper's own bounds: it reads no head into less, and no more headers.
const LEAST_BUFFER: usize = 8192;
const MAX_HEADERS: usize = 100;

/// The name is looked up first, and by itself, because how long each of the two takes is another story.
async fn reach(host: &str, port: u16, destinations: &Destinations, dialing: &mut ConnectionTimer<'_>) -> io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = match host.parse::<IpAddr>() {
        Ok(address) => vec![(address, port).into()],
        Err(_) => {
            let addresses = lookup_host((host, port)).await.map_err(|error| host_not_found(host, &error))?.collect();
            dialing.named();
            addresses
        }
    };
    // All of them: one that leads inside is reason enough not to trust the others.
    if let Some(inside) = addresses.iter().find(|address| !destinations.allow(address.ip())) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} is not a public address", inside.ip())));
    }
    let stream = TcpStream::connect(addresses.as_slice()).await?;
    dialing.connected();
    Ok(stream)
}

/// What the standard library says before the words of the system says less than the name of the host.
fn host_not_found(host: &str, error: &io::Error) -> io::Error {
    let told = error.to_string();
    let reason = told.strip_prefix("failed to lookup address information: ").unwrap_or(&told);
    io::Error::new(error.kind(), format!("host `{host}` was not found (DNS): {reason}"))
}

fn path<B>(request: &Request<B>) -> PathAndQuery {
    request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B: RequestBody> Sender<B> {
    async fn send(&mut self, request: Request<B>) -> Result<Response<Incoming>, TrySendError<Request<B>>> {
        match self {
            Self::Single(single) => single.sender.try_send_request(request).await,
            Self::Shared(shared) => shared.sender.try_send_request(request).await,
        }
    }

    /// How many bytes the connection has brought; over HTTP/2 they may be for other exchanges.
    fn received(&self) -> Option<u64> {
        match self {
            Self::Single(single) => Some(single.last_read.count()),
            Self::Shared(_) => None,
        }
    }

    /// Whether a request whose sending failed so got no byte of a response, because the connection ended. `received`: what it had brought before.
    fn ended_in_silence(&self, received: Option<u64>, error: &hyper::Error) -> bool {
        match self {
            Self::Single(_) => self.received() == received,
            // RFC 9113, 6.8: a server that closes a connection announces it first.
            Self::Shared(_) => match std::error::Error::source(error).and_then(|source| source.downcast_ref::<h2::Error>()) {
                Some(error) => error.is_io() || error.is_remote() && error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR),
                None => error.is_canceled() || error.is_closed(),
            },
        }
    }
}

/// Runs the tasks of an HTTP/2 connection; they end with it.
#[derive(Clone, Copy)]
struct Spawn;

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for Spawn {
    fn execute(&self, future: F) {
        tokio::spawn(future);
    }
}

/// hyper's error with its cause, which holds the useful half.
pub(crate) fn describe(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
