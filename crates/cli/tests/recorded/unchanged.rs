//! The bytes on both sides of the proxy, hashed while a client of others uses a server of others: over stdio the streams as they are, over
//! HTTP each request and each response with its headers and its body.

use super::peers::Start;
use super::servers::{Client, Conversation, Folder};
use super::started::{Listening, proxy};
use super::{kept, mcproof};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What passed on one side.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Passed {
    /// Hashes of what was sent and of what came back: of each exchange, or of the streams.
    exchanges: Vec<[String; 2]>,
    to_server: u64,
    from_server: u64,
}

/// What came of a comparison.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Compared {
    pub(crate) exchanges: usize,
    pub(crate) to_server: u64,
    pub(crate) from_server: u64,
    pub(crate) wrong: Vec<String>,
}

pub(crate) fn compare(server: &str, transport: &str, client: Client) -> Compared {
    let conversation = Conversation { server: server.to_owned(), transport: transport.to_owned(), client };
    let folder = Folder::of(&format!("{}-unchanged", conversation.label('-')));
    folder.fresh();
    let (start, steps) = conversation.in_folder(&folder.0);
    let hashes = ["outside", "inside"].map(|side| kept(&format!("{}-{side}.json", conversation.label('-'))));
    hashes.iter().for_each(|file| drop(fs::remove_file(file)));
    let ran = match transport {
        "stdio" => over_pipes(&conversation, &start, &steps, &folder.0, &hashes),
        _ => over_http(&conversation, &start, &steps, &folder.0, &hashes),
    };
    let mut compared = Compared::default();
    let read = |file: &PathBuf| serde_json::from_str::<Passed>(&fs::read_to_string(file).unwrap_or_default()).ok();
    match (ran, read(&hashes[0]), read(&hashes[1])) {
        (Ok(()), Some(outside), Some(inside)) => {
            (compared.exchanges, compared.to_server, compared.from_server) =
                (outside.exchanges.len(), outside.to_server, outside.from_server);
            if outside != inside {
                let other = outside.exchanges.iter().filter(|exchange| !inside.exchanges.contains(exchange)).count();
                let bytes = |passed: &Passed| format!("{} bytes and {}", passed.to_server, passed.from_server);
                compared.wrong.push(format!(
                    "{}: {other} of {} exchanges differ; outside {}, inside {}",
                    conversation.label(' '),
                    outside.exchanges.len(),
                    bytes(&outside),
                    bytes(&inside)
                ));
            }
            if outside.from_server == 0 {
                compared.wrong.push(format!("{}: nothing passed", conversation.label(' ')));
            }
        }
        (Err(why), ..) => compared.wrong.push(format!("{}: {why}", conversation.label(' '))),
        _ => compared.wrong.push(format!("{}: no hashes were written", conversation.label(' '))),
    }
    compared
}

fn tee(file: &Path, server: &[String]) -> Vec<String> {
    let words = ["python3", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorded/tee.py"), file.to_str().unwrap()];
    words.into_iter().map(str::to_owned).chain(server.iter().cloned()).collect()
}

fn over_pipes(
    conversation: &Conversation,
    start: &Start,
    steps: &[serde_json::Value],
    folder: &Path,
    hashes: &[PathBuf; 2],
) -> Result<(), String> {
    let proxy = [mcproof(), "proxy", "--no-trace", "--"].map(str::to_owned);
    let inside = tee(&hashes[1], &start.command);
    let outside = tee(&hashes[0], &[&proxy[..], &inside].concat());
    succeeded(&conversation.run_client(steps, &outside, &start.env, folder))
}

fn over_http(
    conversation: &Conversation,
    start: &Start,
    steps: &[serde_json::Value],
    folder: &Path,
    hashes: &[PathBuf; 2],
) -> Result<(), String> {
    let server = Listening::server(start, folder)?;
    let listening = |words: Vec<String>| Listening::announced(Command::new(&words[0]).args(&words[1..]));
    let inside = listening(tee(&hashes[1], std::slice::from_ref(&server.url)))?;
    let before = Start { command: Vec::new(), env: Vec::new(), cwd: None, url: Some(inside.url.clone()) };
    let proxy = proxy(&before, None, folder)?;
    let outside = listening(tee(&hashes[0], std::slice::from_ref(&proxy.url)))?;
    let url = [conversation.transport.clone(), outside.url.clone()];
    let ran = succeeded(&conversation.run_client(steps, &url, &[], folder));
    for side in [outside, proxy, inside] {
        side.end();
    }
    ran
}

fn succeeded(output: &std::process::Output) -> Result<(), String> {
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}
