//! Real clients that use real servers through `mcproof proxy`: their recordings become suites that pass at once, and mocks by which the
//! same clients print the same. What the proxy costs, whether bytes pass unchanged, and what is left after kills.
//!
//! The tests are a sample. `cargo xtask recorded` runs all of it (`--chore`), in parts if names are given, and writes `docs/recorded.md`
//! from what is kept in `target/recorded`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(target_os = "linux")]

#[path = "recorded/cost.rs"]
mod cost;
#[path = "recorded/kills.rs"]
mod kills;
#[path = "recorded/page.rs"]
mod page;
mod peers;
mod processes;
#[path = "recorded/servers.rs"]
mod servers;
#[path = "recorded/started.rs"]
mod started;
#[path = "recorded/unchanged.rs"]
mod unchanged;

use libtest_mimic::{Arguments, Failed, Trial};
use serde::Serialize;
use serde_json::Value;
use servers::{Client, Conversation};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

/// Of the servers, transports and clients a few of each.
const SAMPLE: [(&str, &str, Client); 6] = [
    ("everything", "stdio", Client::TypeScript),
    ("everything", "sse", Client::Python1),
    ("kubernetes", "http", Client::Python2),
    ("fastmcp", "http", Client::TypeScript),
    ("git", "stdio", Client::Python2),
    ("memory", "stdio", Client::Inspector),
];
const KILLS: usize = 12;

/// The program that is tried: the one of this checkout, unless the chore names another.
fn mcproof() -> &'static str {
    PROGRAM.get().map_or(env!("CARGO_BIN_EXE_mcproof"), String::as_str)
}

static PROGRAM: OnceLock<String> = OnceLock::new();

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("--chore", words)) = words.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return page::chore(words);
    }
    let mut trials: Vec<Trial> = SAMPLE
        .into_iter()
        .map(|(server, transport, client)| {
            let conversation = Conversation { server: server.to_owned(), transport: transport.to_owned(), client };
            Trial::test(format!("{}_becomes_a_suite_and_a_mock", conversation.label('_')), move || {
                let row = servers::record_and_use(&conversation, servers::Thoroughness::Sample);
                told(row.wrong)
            })
        })
        .collect();
    trials.push(Trial::test("nothing_is_left_after_kills", || told(kills::run(KILLS, 7).wrong)));
    for transport in ["stdio", "http", "sse"] {
        trials.push(Trial::test(format!("bytes_pass_unchanged_over_{transport}"), move || {
            told(unchanged::compare("everything", transport, Client::Python1).wrong)
        }));
    }
    let mut arguments = Arguments::from_args();
    // Most of it is waiting for the starts of servers and clients.
    arguments.test_threads.get_or_insert(2);
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn told(wrong: Vec<String>) -> Result<(), Failed> {
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Where results are kept.
fn kept(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("recorded");
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

fn keep(name: &str, value: &impl Serialize) {
    std::fs::write(kept(name), serde_json::to_string_pretty(value).unwrap()).unwrap();
}

fn read_kept(name: &str) -> Option<Value> {
    serde_json::from_str(&std::fs::read_to_string(kept(name)).ok()?).ok()
}
