//! How roots are declared that may become others while the session lives, in both eras.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mcproof_client::{Answers, ConnectOptions, Tap, open_in_memory};
use mcproof_protocol::EraChoice;
use mcproof_record::{Direction, FrameBody};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex};

async fn serve(stream: DuplexStream) {
    let (input, mut output) = tokio::io::split(stream);
    let mut lines = BufReader::new(input).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let result = match message["method"].as_str() {
            Some("initialize") => {
                json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "s", "version": "1" } })
            }
            Some("server/discover") => json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {} }),
            _ => continue,
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        output.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    }
}

/// What the first message of a session declares at this place.
async fn declared(era: EraChoice, answers: Answers, roots_change: bool, place: &str) -> Value {
    let (ours, theirs) = duplex(1 << 16);
    tokio::spawn(serve(theirs));
    let options = ConnectOptions { era, answers, roots_change, ..ConnectOptions::default() };
    let (tap, (input, output)) = (Tap::new(), tokio::io::split(ours));
    let session = open_in_memory(input, output, &options, &tap).await.unwrap();
    session.close().await;
    let frames = tap.transcript().frames;
    let first = frames.iter().find_map(|frame| match &frame.body {
        FrameBody::Line { bytes, .. } if frame.direction == Direction::ToServer => serde_json::from_slice::<Value>(bytes.as_bytes()).ok(),
        _ => None,
    });
    first.unwrap().pointer(place).unwrap()["roots"].clone()
}

#[tokio::test]
async fn only_a_legacy_server_is_told_that_it_will_hear_of_changes() {
    let roots = || Answers { roots: Some(vec!["file:///a".into()]), ..Answers::default() };
    let initialize = "/params/capabilities";
    let discover = "/params/_meta/io.modelcontextprotocol~1clientCapabilities";
    assert_eq!(declared(EraChoice::Legacy, roots(), true, initialize).await, json!({ "listChanged": true }));
    assert_eq!(declared(EraChoice::Legacy, roots(), false, initialize).await, json!({}));
    assert_eq!(declared(EraChoice::Legacy, Answers::default(), true, initialize).await, Value::Null);
    assert_eq!(declared(EraChoice::Modern, roots(), true, discover).await, json!({}));
}
