//! What the same exchange costs whoever does nothing else: a new connection, the two requests of a probe as hyper sends them, and
//! their answers, which nobody reads. Over TLS each handshake is a full one.

use super::figures::cpu;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Exchanges that are measured.
const COUNT: u32 = 4_000;
/// At the same time, as a monitor has many under way.
const AT_ONCE: u32 = 32;
/// As long as the ones of a probe.
const PARAMS: &str = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bare","version":"0.1.0"},"io.modelcontextprotocol/clientCapabilities":{}}}"#;

/// Seconds of CPU for each, over HTTP, or over TLS if there is an authority (PEM) to trust.
pub(crate) async fn exchange(address: SocketAddr, authority: Option<&[u8]>) -> f64 {
    let connector = authority.map(connector);
    // The first ones warm up what every later one finds warm.
    many(address, connector.as_ref(), COUNT / 10).await;
    let before = cpu();
    many(address, connector.as_ref(), COUNT).await;
    (cpu() - before) / f64::from(COUNT)
}

fn connector(authority: &[u8]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider())).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.resumption = Resumption::disabled();
    TlsConnector::from(Arc::new(config))
}

async fn many(address: SocketAddr, connector: Option<&TlsConnector>, count: u32) {
    let line = async || {
        for _ in 0..count / AT_ONCE {
            let stream = TcpStream::connect(address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            match connector {
                None => converse(stream, address).await,
                Some(connector) => {
                    let name = ServerName::from(address.ip());
                    converse(connector.connect(name, stream).await.unwrap(), address).await;
                }
            }
        }
    };
    futures_util::future::join_all((0..AT_ONCE).map(|_| line())).await;
}

async fn converse(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, address: SocketAddr) {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    let driven = tokio::spawn(connection);
    for method in ["server/discover", "tools/list"] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{PARAMS}}}"#);
        let request = Request::post("/bare")
            .header("host", address.to_string())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method);
        let response = sender.send_request(request.body(Full::new(Bytes::from(body))).unwrap()).await.unwrap();
        assert!(!response.into_body().collect().await.unwrap().to_bytes().is_empty());
    }
    drop(sender);
    driven.await.unwrap().unwrap();
}
