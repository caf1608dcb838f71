//! TLS, HTTP/2 and proxies, against servers on loopback whose certificates are made when the test runs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mcproof_client::{ConnectOptions, Endpoint, HttpCall, Network, Proxies, Proxy, Session, Tap, Target, Tls, Verification, open_session};
use mcproof_protocol::EraChoice;
use mcproof_record::FrameBody;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use url::Url;

/// A certificate authority, made for one test.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
struct Issued {
    certificate: String,
    key: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    fn issue(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Issued {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        change(&mut params);
        Issued { certificate: params.signed_by(&key, &self.issuer).unwrap().pem(), key: key.serialize_pem() }
    }
}

const BOTH: &[&[u8]] = &[b"h2", b"http/1.1"];
const HTTP1: &[&[u8]] = &[b"http/1.1"];

/// What a server speaks, and whom it lets in.
struct Serving {
    issued: Issued,
    alpn: &'static [&'static [u8]],
    clients: Option<String>,
}

/// A running server.
struct Served {
    port: u16,
    connections: Arc<AtomicUsize>,
    /// Version, URI and `host` header of each request.
    requests: Arc<Mutex<Vec<(Version, String, bool)>>>,
}

impl Serving {
    fn new(issued: Issued) -> Self {
        Self { issued, alpn: BOTH, clients: None }
    }

    async fn start(self) -> Served {
        let chain = vec![CertificateDer::from_pem_slice(self.issued.certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(self.issued.key.as_bytes()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions().unwrap();
        let builder = match &self.clients {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
                builder.with_client_cert_verifier(WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap())
            }
        };
        let mut config = builder.with_single_cert(chain, key).unwrap();
        config.alpn_protocols = self.alpn.iter().map(|name| name.to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let served = Served { port: listener.local_addr().unwrap().port(), connections: Arc::default(), requests: Arc::default() };
        let (connections, requests) = (Arc::clone(&served.connections), Arc::clone(&served.requests));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, connections, requests) = (acceptor.clone(), Arc::clone(&connections), Arc::clone(&requests));
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    connections.fetch_add(1, Ordering::SeqCst);
                    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    let service = service_fn(move |request| answer(request, Arc::clone(&requests)));
                    let stream = TokioIo::new(stream);
                    if http2 {
                        let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await;
                    } else {
                        let _ = hyper::server::conn::http1::Builder::new().serve_connection(stream, service).await;
                    }
                });
            }
        });
        served
    }
}

type Seen = Arc<Mutex<Vec<(Version, String, bool)>>>;

async fn answer(request: Request<Incoming>, seen: Seen) -> Result<Response<Full<Bytes>>, Infallible> {
    seen.lock().unwrap().push((request.version(), request.uri().to_string(), request.headers().contains_key("host")));
    let filler = if request.uri().path() == "/large" { "x".repeat(100_000) } else { String::new() };
    let silent = request.uri().path() == "/silent";
    let body = request.into_body().collect().await.unwrap().to_bytes();
    if silent {
        std::future::pending::<()>().await;
    }
    Ok(Response::builder()
        .header("content-type", "application/json")
        .header("x-filler", filler)
        .body(Full::from(result_for(&body)))
        .unwrap())
}

/// A modern server in one function.
fn result_for(body: &[u8]) -> String {
    let message: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let result = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}"#;
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, message["id"])
}

async fn open(url: &str, network: Network, tap: &Tap) -> Result<Session, String> {
    let endpoint = Endpoint { url: Url::parse(url).unwrap(), headers: Vec::new() };
    let target = Target::Http { endpoint, kind: None, launch: None, locate: None };
    let options = ConnectOptions { era: EraChoice::Modern, timeout: Some(Duration::from_secs(5)), network, ..ConnectOptions::default() };
    open_session(&target, &options, tap).await.map_err(|failure| failure.to_string())
}

fn trusting(authority: &Authority) -> Tls {
    let mut tls = Tls::default();
    tls.trust(authority.pem.as_bytes()).unwrap();
    tls
}

/// Opens a session with `host`, and tells how that went, with the port left out.
async fn outcome(served: &Served, host: &str, tls: Tls) -> String {
    let url = format!("https://{host}:{}/mcp", served.port);
    let opened = open(&url, Network { tls, ..Network::default() }, &Tap::new()).await;
    match opened {
        Ok(session) => session.handshake().protocol_version.clone(),
        Err(failure) => failure.replace(&served.port.to_string(), "PORT").trim_start_matches("`server/discover`: ").to_owned(),
    }
}

const OPEN: &str = "2026-07-28";

#[tokio::test]
async fn a_certificate_is_checked_and_what_is_wrong_with_it_is_said() {
    let authority = Authority::new("ours");
    let check = async |issued: Issued, host: &str, tls: Tls, expected: &str| {
        assert_eq!(outcome(&Serving::new(issued).start().await, host, tls).await, expected);
    };
    let good = || authority.issue(&["localhost", "127.0.0.1"], |_| {});
    check(good(), "localhost", trusting(&authority), OPEN).await;
    check(good(), "127.0.0.1", trusting(&authority), OPEN).await;
    let unknown = "the certificate of localhost:PORT is from an authority that this machine does not trust";
    check(good(), "localhost", Tls::default(), unknown).await;
    check(good(), "localhost", trusting(&Authority::new("another")), unknown).await;
    let namesake =
        "the certificate of localhost:PORT was not signed by the authority that it names, perhaps by another one of the same name";
    check(good(), "localhost", trusting(&Authority::new("ours")), namesake).await;
    let other_host = authority.issue(&["a.example", "*.b.example"], |_| {});
    let wrong_host = "the certificate of localhost:PORT is not for `localhost`, only for `a.example`, `*.b.example`";
    check(other_host, "localhost", trusting(&authority), wrong_host).await;
    let expired = authority.issue(&["localhost"], |params| params.not_after = date_time_ymd(2001, 1, 1));
    let found = outcome(&Serving::new(expired).start().await, "localhost", trusting(&authority)).await;
    let days = found.strip_prefix("the certificate of localhost:PORT expired ").and_then(|rest| rest.strip_suffix(" days ago"));
    assert!(days.unwrap_or(&found).parse::<u32>().is_ok_and(|days| days > 9000), "{found}");
    let early = authority.issue(&["localhost"], |params| params.not_before = date_time_ymd(3000, 1, 1));
    let found = outcome(&Serving::new(early).start().await, "localhost", trusting(&authority)).await;
    assert!(found.starts_with("the certificate of localhost:PORT is not valid yet, but "), "{found}");
}

#[tokio::test]
async fn a_certificate_made_for_itself_counts_where_it_is_named() {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap().pem();
    let mut tls = Tls::default();
    tls.trust(certificate.as_bytes()).unwrap();
    let served = Serving::new(Issued { certificate, key: key.serialize_pem() }).start().await;
    assert_eq!(outcome(&served, "localhost", tls.clone()).await, OPEN);
    let wrong_host = "the certificate of 127.0.0.1:PORT is not for `127.0.0.1`, only for `localhost`";
    assert_eq!(outcome(&served, "127.0.0.1", tls).await, wrong_host);
    let refused = outcome(&served, "localhost", Tls::default()).await;
    assert!(refused.contains("is one of an authority (`CA:TRUE`)"), "{refused}");
}

#[tokio::test]
async fn an_insecure_session_opens_and_the_transcript_says_so() {
    let issued = Authority::new("ours").issue(&["elsewhere.example"], |params| params.not_after = date_time_ymd(2001, 1, 1));
    let served = Serving::new(issued).start().await;
    let mut tls = Tls::default();
    tls.set_verification(Verification::Off);
    let tap = Tap::new();
    open(&format!("https://localhost:{}/", served.port), Network { tls, ..Network::default() }, &tap).await.unwrap();
    let expected = format!("connected to localhost:{}: TLS 1.3, HTTP/2; its certificate is not checked", served.port);
    assert_eq!(notes(&tap), [expected]);
}

fn notes(tap: &Tap) -> Vec<String> {
    let note = |body| match body {
        FrameBody::Note { text } => Some(text),
        _ => None,
    };
    tap.transcript().frames.into_iter().filter_map(|frame| note(frame.body)).collect()
}

#[tokio::test]
async fn a_client_certificate_is_shown_where_it_is_asked_for() {
    let authority = Authority::new("ours");
    for alpn in [BOTH, HTTP1] {
        let issued = authority.issue(&["localhost"], |_| {});
        let served = Serving { alpn, clients: Some(authority.pem.clone()), ..Serving::new(issued) }.start().await;
        let mut tls = trusting(&authority);
        assert_eq!(outcome(&served, "localhost", tls.clone()).await, "localhost:PORT wants a client certificate");
        let stranger = Authority::new("another").issue(&["me"], |_| {});
        tls.identify(stranger.certificate.as_bytes(), stranger.key.as_bytes()).unwrap();
        let refused = outcome(&served, "localhost", tls.clone()).await;
        assert!(refused.starts_with("localhost:PORT does not accept the client certificate"), "{refused}");
        let ours = authority.issue(&["me"], |_| {});
        tls.identify(ours.certificate.as_bytes(), ours.key.as_bytes()).unwrap();
        assert_eq!(outcome(&served, "localhost", tls).await, OPEN);
    }
}

#[test]
fn files_that_cannot_be_used_are_told_apart() {
    let authority = Authority::new("ours");
    let (one, other) = (authority.issue(&["a"], |_| {}), authority.issue(&["b"], |_| {}));
    let mut tls = Tls::default();
    assert_eq!(tls.trust(b"").unwrap_err().to_string(), "there is no PEM certificate in it");
    assert_eq!(tls.trust(one.key.as_bytes()).unwrap_err().to_string(), "there is no PEM certificate in it");
    let mut check = |certificate: &str, key: &str, expected: &str| {
        let failure = tls.identify(certificate.as_bytes(), key.as_bytes()).unwrap_err();
        assert_eq!(failure.to_string(), expected);
    };
    check(&one.key, &one.key, "there is no PEM certificate in it");
    check(&one.certificate, &one.certificate, "there is no PEM private key in it");
    check(&one.certificate, &other.key, "the private key does not belong to the certificate");
    assert!(tls.trust(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").is_err());
}

#[tokio::test]
async fn requests_share_one_connection_over_http2_and_none_over_http1() {
    let authority = Authority::new("ours");
    for (alpn, version, connections) in [(BOTH, Version::HTTP_2, 1..=1), (HTTP1, Version::HTTP_11, 1..=17)] {
        let served = Serving { alpn, ..Serving::new(authority.issue(&["localhost"], |_| {})) }.start().await;
        let network = Network { tls: trusting(&authority), ..Network::default() };
        let session = Arc::new(open(&format!("https://localhost:{}/mcp?x=1", served.port), network, &Tap::new()).await.unwrap());
        let mut asking = tokio::task::JoinSet::new();
        for _ in 0..16 {
            let session = Arc::clone(&session);
            asking.spawn(async move { session.request("tools/list", None, Duration::from_secs(5)).await.unwrap().answer.unwrap() });
        }
        assert_eq!(asking.join_all().await.len(), 16);
        assert!(connections.contains(&served.connections.load(Ordering::SeqCst)));
        let requests = served.requests.lock().unwrap();
        assert_eq!(requests.len(), 17);
        let uri = if version == Version::HTTP_2 { format!("https://localhost:{}/mcp?x=1", served.port) } else { "/mcp?x=1".to_owned() };
        assert_eq!(requests[16], (version, uri, version == Version::HTTP_11));
    }
}

#[tokio::test]
async fn what_a_server_does_over_http2_is_bounded_as_well() {
    let authority = Authority::new("ours");
    for (alpn, too_large) in [
        (BOTH, "the response breaks a rule of HTTP/2, or its head is larger than 65536 bytes"),
        (HTTP1, "the head of the response is larger than 65536 bytes, or has more than 100 headers"),
    ] {
        let served = Serving { alpn, ..Serving::new(authority.issue(&["localhost"], |_| {})) }.start().await;
        let fail = async |path: &str| {
            let network = Network { tls: trusting(&authority), ..Network::default() };
            let url = format!("https://localhost:{}{path}", served.port);
            let endpoint = Endpoint { url: Url::parse(&url).unwrap(), headers: Vec::new() };
            let target = Target::Http { endpoint, kind: None, launch: None, locate: None };
            let timeout = Some(Duration::from_millis(500));
            let options = ConnectOptions { era: EraChoice::Modern, timeout, network, ..ConnectOptions::default() };
            open_session(&target, &options, &Tap::new()).await.err().unwrap().to_string()
        };
        assert_eq!(fail("/large").await, format!("`server/discover`: {too_large}"));
        let silent = fail("/silent").await;
        assert!(silent.ends_with(" ms: no response began"), "{silent}");
    }
}

#[tokio::test]
async fn what_is_no_tls_or_hangs_up_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let served = Served { port: listener.local_addr().unwrap().port(), connections: Arc::default(), requests: Arc::default() };
    let answers: [Option<&[u8]>; 3] = [Some(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n"), Some(b""), None];
    let (closed, stuck) = tokio::sync::oneshot::channel::<()>();
    tokio::spawn(async move {
        let mut silent = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut hello = [0; 4096];
            assert!(stream.read(&mut hello).await.unwrap() > 0);
            match answer {
                Some(answer) => stream.write_all(answer).await.unwrap(),
                None => silent.push(stream),
            }
        }
        let _ = stuck.await;
    });
    let check = async |connect, expected: &str| {
        let network = Network { connect, ..Network::default() };
        let failure = open(&format!("https://127.0.0.1:{}/", served.port), network, &Tap::new()).await.err().unwrap();
        assert_eq!(failure.replace(&served.port.to_string(), "PORT"), format!("`server/discover`: {expected}"));
    };
    let patient = Duration::from_secs(5);
    check(patient, "127.0.0.1:PORT does not speak TLS: if it is an http:// server, use an http:// URL").await;
    check(patient, "127.0.0.1:PORT closed the connection during the TLS handshake").await;
    check(Duration::from_millis(100), "the TLS handshake with 127.0.0.1:PORT was not finished within 100 ms").await;
    drop(closed);
}

/// Reads a head; gives its lines.
async fn head(stream: &mut BufReader<TcpStream>) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        match line.trim_end() {
            "" => return lines,
            line => lines.push(line.to_ascii_lowercase()),
        }
    }
}

/// A proxy that answers everything with `refusal`, or opens tunnels if there is none. Keeps the heads that it was sent.
async fn proxy(refusal: Option<&'static str>) -> (u16, Arc<Mutex<Vec<Vec<String>>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let heads = Arc::<Mutex<Vec<_>>>::default();
    let seen = Arc::clone(&heads);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufReader::new(stream);
            let lines = head(&mut stream).await;
            let first = lines[0].clone();
            seen.lock().unwrap().push(lines);
            let mut stream = stream.into_inner();
            match refusal {
                Some(refusal) => stream.write_all(refusal.as_bytes()).await.unwrap(),
                None => {
                    let target = first.split(' ').nth(1).unwrap();
                    let mut server = TcpStream::connect(target).await.unwrap();
                    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
                    let _ = copy_bidirectional(&mut stream, &mut server).await;
                }
            }
        }
    });
    (port, heads)
}

#[tokio::test]
async fn https_goes_through_a_tunnel_and_the_password_into_no_transcript() {
    let authority = Authority::new("ours");
    let served = Serving::new(authority.issue(&["localhost"], |_| {})).start().await;
    let (port, heads) = proxy(None).await;
    let proxies = Proxies::Always(Proxy::parse(&format!("http://user:hunter2@127.0.0.1:{port}")).unwrap());
    let tap = Tap::new();
    let network = Network { tls: trusting(&authority), proxies, ..Network::default() };
    open(&format!("https://localhost:{}/mcp", served.port), network, &tap).await.unwrap();
    let target = format!("localhost:{}", served.port);
    // `user:hunter2`
    let expected =
        [format!("connect {target} http/1.1"), format!("host: {target}"), "proxy-authorization: basic dxnlcjpodw50zxiy".to_owned()];
    assert_eq!(*heads.lock().unwrap(), [expected]);
    assert_eq!(notes(&tap), [format!("connected to {target} through the proxy 127.0.0.1:{port}: TLS 1.3, HTTP/2")]);
    assert!(!serde_json::to_string(&tap.transcript()).unwrap().contains("hunter2"));
}

#[tokio::test]
async fn http_is_asked_of_the_proxy_by_its_whole_url() {
    let (port, heads) = proxy(Some("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")).await;
    let proxies = Proxies::Always(Proxy::parse(&format!("http://user:hunter2@127.0.0.1:{port}")).unwrap());
    let failure = open("http://server.example:8080/mcp?x=1", Network { proxies, ..Network::default() }, &Tap::new()).await.err().unwrap();
    assert!(failure.contains("HTTP 502"), "{failure}");
    let heads = heads.lock().unwrap();
    assert_eq!(heads[0][0], "post http://server.example:8080/mcp?x=1 http/1.1");
    assert!(heads[0].contains(&"host: server.example:8080".to_owned()), "{heads:?}");
    assert!(heads[0].contains(&"proxy-authorization: basic dxnlcjpodw50zxiy".to_owned()), "{heads:?}");
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named() {
    let check = async |answer: &'static str, expected: &str| {
        let (port, _) = proxy(Some(answer)).await;
        let proxies = Proxies::Always(Proxy::parse(&format!("127.0.0.1:{port}")).unwrap());
        let failure = open("https://server.example/", Network { proxies, ..Network::default() }, &Tap::new()).await.err().unwrap();
        let expected = format!("`server/discover`: the proxy 127.0.0.1:{port} opened no tunnel to server.example:443: {expected}");
        assert_eq!(failure, expected);
    };
    check("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n<html>", "HTTP 407 Proxy Authentication Required").await;
    check("", "it closed the connection").await;
    check("SSH-2.0-x\r\n\r\n", "its response is not HTTP").await;
}

#[tokio::test]
async fn an_http_call_goes_the_same_ways_and_says_nothing_before_it_is_sent() {
    let authority = Authority::new("ours");
    for alpn in [BOTH, HTTP1] {
        let served = Serving { alpn, ..Serving::new(authority.issue(&["localhost"], |_| {})) }.start().await;
        let network = Network { tls: trusting(&authority), ..Network::default() };
        let url = Url::parse(&format!("https://localhost:{}/hook?key=1", served.port)).unwrap();
        let call = HttpCall::connect(&url, &network).await.unwrap();
        assert!(served.requests.lock().unwrap().is_empty());
        let headers = [("content-type".to_owned(), "application/json".to_owned())];
        let answer = call.send("POST", &headers, br#"{"id":7}"#.to_vec()).await.unwrap();
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        assert!(String::from_utf8(answer.body).unwrap().contains("\"id\":7"));
        let uri = served.requests.lock().unwrap()[0].1.clone();
        assert!(uri.ends_with("/hook?key=1"), "{uri}");
        let refused = HttpCall::connect(&url, &Network::default()).await.err().unwrap().to_string();
        assert!(refused.contains("does not trust"), "{refused}");
    }
    let (port, heads) = proxy(Some("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")).await;
    let proxies = Proxies::Always(Proxy::parse(&format!("127.0.0.1:{port}")).unwrap());
    let url = Url::parse("http://ann:pa%3Ass@server.example:8080/ping").unwrap();
    let call = HttpCall::connect(&url, &Network { proxies, ..Network::default() }).await.unwrap();
    assert_eq!(call.send("GET", &[], Vec::new()).await.unwrap().status, 204);
    let head = heads.lock().unwrap()[0].clone();
    assert_eq!(head[0], "get http://server.example:8080/ping http/1.1");
    // `ann:pa:ss`
    for line in ["host: server.example:8080", "authorization: basic yw5uonbhonnz"] {
        assert!(head.iter().any(|said| said == line), "{head:?}");
    }
}
