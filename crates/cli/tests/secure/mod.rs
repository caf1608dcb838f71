//! A server behind TLS.

#![allow(dead_code, reason = "each test binary uses some of these")]

#[path = "../../../watch/tests/authority/mod.rs"]
mod authority;

use super::heard;
use authority::Authority;
use rcgen::CertificateParams;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;

/// A modern server with one tool, on a thread that ends with the test. Writes its authority to `ca.pem` in the folder.
pub(crate) fn serve(folder: &Path) -> u16 {
    serve_with(folder, |_| {})
}

/// The same with a certificate of one's own.
pub(crate) fn serve_with(folder: &Path, change: impl FnOnce(&mut CertificateParams)) -> u16 {
    let config = Authority::new(folder).server(change);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            std::thread::spawn(move || converse(stream, config));
        }
    });
    port
}

fn converse(stream: TcpStream, config: Arc<ServerConfig>) -> Option<()> {
    let mut stream = BufReader::new(StreamOwned::new(ServerConnection::new(config).ok()?, stream));
    loop {
        let message = heard::message(&mut stream)?;
        let tool = r#"{"name":"echo","inputSchema":{"type":"object"}}"#;
        let result = match message["method"].as_str() {
            Some("tools/list") => format!(r#"{{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{tool}]}}"#),
            _ => r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#.to_owned(),
        };
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, message["id"]);
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", answer.len());
        stream.get_mut().write_all((head + &answer).as_bytes()).ok()?;
    }
}
