//! An MCP server of the modern era, just large enough to be probed, and quick enough for thousands of them. The first part of the
//! path says which server is asked.

#![allow(dead_code, reason = "each test program uses some of these")]

use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

/// How a server is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Well,
    /// It hangs up before it answers.
    Broken,
}

/// Whoever is asked by this name.
pub(crate) type Moods = Arc<dyn Fn(&str) -> Mood + Send + Sync>;

/// Serves for as long as the runtime lives.
pub(crate) async fn serve(listener: TcpListener, moods: Moods) {
    while let Ok((stream, _)) = listener.accept().await {
        let moods = Arc::clone(&moods);
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            // Who hangs up in the middle is no concern of ours.
            let _ = converse(stream, &moods).await;
        });
    }
}

/// One connection, whatever it is made of.
pub(crate) async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin, moods: &Moods) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let path = line.split_whitespace().nth(1).unwrap_or_default();
        let name = path.split('/').nth(1).unwrap_or_default().to_owned();
        let mut length = 0;
        loop {
            line.clear();
            stream.read_line(&mut line).await?;
            if line.trim().is_empty() {
                break;
            }
            if let Some((key, value)) = line.split_once(':').filter(|(key, _)| key.eq_ignore_ascii_case("content-length")) {
                assert!(!key.is_empty());
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        if moods(&name) == Mood::Broken {
            return Ok(());
        }
        let answer = answer(&serde_json::from_slice(&body).unwrap_or_default());
        let text = answer.to_string();
        let response = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}", text.len());
        stream.write_all(response.as_bytes()).await?;
    }
}

pub(crate) fn answer(request: &Value) -> Value {
    let result = match request["method"].as_str() {
        Some("server/discover") => json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} },
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "small", "version": "1" } },
        }),
        Some("tools/list") => json!({
            "resultType": "complete",
            "tools": [{ "name": "look", "inputSchema": { "type": "object" } }],
            "ttlMs": 0,
            "cacheScope": "private",
        }),
        _ => return json!({ "jsonrpc": "2.0", "id": request["id"], "error": { "code": -32601, "message": "no such method" } }),
    };
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
}
