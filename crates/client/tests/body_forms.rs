//! The forms in which the body of a request goes out, as a server reads them from its socket.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mcproof_client::{ConnectOptions, RawHttpRequest, Sends, Tap, request_elsewhere};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use url::Url;

const BODY: &str = r#"{"name":"道具"}"#;

/// The request as it comes, in lower case.
async fn received(sends: Sends) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = Vec::new();
        let end: &[u8] = if sends == Sends::Chunked { b"\r\n0\r\n\r\n" } else { b"\"}" };
        while !bytes.ends_with(end) {
            assert!(stream.read_buf(&mut bytes).await.unwrap() > 0);
        }
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        String::from_utf8(bytes).unwrap().to_lowercase()
    });
    let question = RawHttpRequest { method: "POST".into(), body: BODY.into(), sends, ..RawHttpRequest::default() };
    let options = ConnectOptions::default();
    let response = request_elsewhere(&url, &question, &options, &Tap::new(), Duration::from_secs(10)).await.unwrap();
    assert_eq!(response.head.status, 204);
    server.await.unwrap()
}

#[tokio::test]
async fn a_body_is_whole_in_each_form() {
    let with_length = format!("content-length: {}\r\n", BODY.len());
    for sends in [Sends::Whole, Sends::InTwo { at: 10 }, Sends::InTwo { at: BODY.len() + 1 }] {
        let request = received(sends).await;
        assert!(request.ends_with(&format!("\r\n\r\n{BODY}")) && request.contains(&with_length), "{sends:?} {request}");
        assert!(!request.contains("transfer-encoding"), "{sends:?} {request}");
    }
    let request = received(Sends::Chunked).await;
    let chunk = format!("\r\n\r\n{:x}\r\n{BODY}\r\n0\r\n\r\n", BODY.len());
    assert!(request.ends_with(&chunk) && request.contains("transfer-encoding: chunked\r\n"), "{request}");
    assert!(!request.contains("content-length"), "{request}");
}
