//! The chore: does all of it, or the named parts, keeps what came of them, and writes the page from what is kept.

#![expect(clippy::print_stderr, reason = "a chore tells how far it is")]

use super::cost::{self, Delay, Memory};
use super::kills::{self, Kills};
use super::servers::{self, Client, Conversation, Row, Thoroughness};
use super::unchanged::{self, Compared};
use super::{PROGRAM, keep, peers, read_kept};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const KILLS: usize = 200;
const SEED: u64 = 22;
/// Conversations at the same time: most of each is waiting.
const AT_ONCE: usize = 2;
/// Servers whose bytes are hashed on both sides.
const HASHED: [(&str, &str, Client); 8] = [
    ("everything", "stdio", Client::TypeScript),
    ("git", "stdio", Client::Python2),
    ("everything", "http", Client::TypeScript),
    ("kubernetes", "http", Client::Python2),
    ("context7", "http", Client::Python1),
    ("fastmcp", "http", Client::Python2),
    ("everything", "sse", Client::TypeScript),
    ("fastmcp", "sse", Client::Python1),
];

/// `servers [TEXT]`, `bytes`, `kills`, `delay`, `memory`, `page`; nothing is all of them.
///
/// `--program PATH` before them is another mcproof, such as a release build.
pub(crate) fn chore(words: &[String]) -> ExitCode {
    let words = match words {
        [flag, program, rest @ ..] if flag == "--program" => {
            // Cargo starts this program in the folder of its package, and whoever types a path is at the top of the checkout.
            let program = peers::root().join(program).canonicalize().unwrap_or_else(|error| panic!("{program}: {error}"));
            PROGRAM.set(program.display().to_string()).unwrap();
            rest
        }
        words => words,
    };
    let wanted = |part: &str| words.is_empty() || words[0] == part;
    let mut wrong = 0;
    if wanted("servers") {
        wrong += all_servers(words.get(1).map(String::as_str));
    }
    if wanted("bytes") {
        let compared: BTreeMap<String, Compared> = HASHED
            .into_iter()
            .map(|(server, transport, client)| {
                let compared = unchanged::compare(server, transport, client);
                eprintln!("bytes: {server} {transport} {}: {}", client.name(), if compared.wrong.is_empty() { "equal" } else { "differ" });
                (format!("{server}, {transport}, {}", client.name()), compared)
            })
            .collect();
        wrong += told(compared.values().flat_map(|compared| &compared.wrong));
        keep("bytes.json", &compared);
    }
    if wanted("kills") {
        let kills = kills::run(KILLS, SEED);
        wrong += told(&kills.wrong);
        keep("kills.json", &kills);
    }
    if wanted("delay") {
        keep("delay.json", &cost::delays());
    }
    if wanted("memory") {
        keep("memory.json", &cost::memory());
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recorded.md");
    std::fs::write(page, rendered()).unwrap();
    eprintln!("docs/recorded.md is written; {wrong} not as they should be");
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn told<'a>(wrong: impl IntoIterator<Item = &'a String>) -> usize {
    wrong.into_iter().inspect(|why| eprintln!("    {why}")).count()
}

fn all_servers(only: Option<&str>) -> usize {
    let all: Vec<Conversation> = Conversation::all();
    let chosen: Vec<&Conversation> = all.iter().filter(|talk| only.is_none_or(|only| talk.label(' ').contains(only))).collect();
    let (next, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(talk) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let row = servers::record_and_use(talk, Thoroughness::Whole);
                    eprintln!("{}: {}", talk.label(' '), if row.wrong.is_empty() { "passed" } else { "failed" });
                    wrong.fetch_add(told(&row.wrong), Ordering::Relaxed);
                    keep(&format!("{}.json", talk.label(' ')), &row);
                }
            });
        }
    });
    wrong.into_inner()
}

fn of<T: DeserializeOwned>(name: &str) -> Option<T> {
    serde_json::from_value(read_kept(name)?).ok()
}

fn rendered() -> String {
    let mut page = String::from(
        "# Recorded servers\n\nReal servers that real clients use through `mcproof proxy`, what the proxy leaves unchanged, and what it costs. \
         Written by `cargo xtask recorded`, which keeps what it found, so that it can be run in parts: `cargo xtask recorded servers git`. \
         mcproof was an unoptimized build, on a machine of two cores that did other work as well.\n",
    );
    servers_section(&mut page);
    bytes_section(&mut page);
    kills_section(&mut page);
    cost_section(&mut page);
    page
}

fn servers_section(page: &mut String) {
    *page += "\n## Servers\n\nEach row is a server over a transport. Each client does what `peers/conversations.json` says: it lists, calls with arguments, \
        reads, gets prompts, and makes mistakes. Inspector's command line does one thing for each start: the first of each kind, and a call that \
        fails. With each client, four things have to hold:\n\n\
        - the client prints the same through the proxy as without it, but for times, numbers and hashes;\n\
        - `mcproof trace export --suite` writes a suite;\n\
        - `mcproof test` runs it on the same server, and it passes;\n\
        - `mcproof mock` in place of the server makes the client print exactly what it printed when it was recorded.\n\n\
        | server | transport |";
    for client in Client::ALL {
        write!(page, " {} |", client.name()).unwrap();
    }
    *page += "\n|---|---|";
    Client::ALL.iter().for_each(|_| *page += "---|");
    *page += "\n";
    let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
    let (mut passed, mut known, mut places) = (0, 0, Vec::new());
    for talk in Conversation::all() {
        let place = (talk.server, talk.transport);
        if places.last() != Some(&place) {
            places.push(place);
        }
    }
    for (server, transport) in &places {
        write!(page, "| {server} | {transport} |").unwrap();
        for client in Client::ALL {
            let talk = Conversation { server: server.clone(), transport: transport.clone(), client };
            if talk.is_beyond_the_specification() {
                *page += " not run: they speak 2026-07-28, which has no HTTP+SSE |";
                continue;
            }
            let Some(row) = of::<Row>(&format!("{}.json", talk.label(' '))) else {
                *page += " not run |";
                continue;
            };
            known += 1;
            passed += usize::from(row.wrong.is_empty());
            for line in &row.left_out {
                let Some((count, why)) = line.trim_start_matches("left out ").split_once(": ") else { continue };
                let count = count.split(' ').next().and_then(|count| count.parse::<usize>().ok()).unwrap_or(1);
                *left_out.entry(why.to_owned()).or_default() += count;
            }
            let verdict = if row.wrong.is_empty() { "passed" } else { "**failed**" };
            write!(page, " {verdict}: {} requests, {} steps |", row.requests, row.steps).unwrap();
        }
        *page += "\n";
    }
    let servers = peers::names().len();
    writeln!(page, "\n{passed} of {known} conversations with {servers} servers passed.").unwrap();
    if !left_out.is_empty() {
        *page += "\nRequests that became no step of a suite:\n\n";
        for (why, count) in left_out {
            writeln!(page, "- {count}: {why}").unwrap();
        }
    }
}

fn bytes_section(page: &mut String) {
    let Some(compared) = of::<BTreeMap<String, Compared>>("bytes.json") else { return };
    *page += "\n## Bytes\n\nThe same traffic, hashed on both sides of the proxy: over stdio both streams; over HTTP each request and response with its \
        headers and body, without `host`, `connection` and the framing of the body.\n\n\
        | server, transport, client | exchanges | bytes to the server | bytes to the client | hashes |\n|---|--:|--:|--:|---|\n";
    for (label, row) in compared {
        let verdict = if row.wrong.is_empty() { "equal" } else { "**differ**" };
        writeln!(page, "| {label} | {} | {} | {} | {verdict} |", row.exchanges, row.to_server, row.from_server).unwrap();
    }
}

fn kills_section(page: &mut String) {
    let Some(kills) = of::<Kills>("kills.json") else { return };
    let count = |word: &str| kills.done.iter().filter(|(label, _)| label.contains(word)).map(|(_, count)| count).sum::<usize>();
    write!(
        page,
        "\n## Kills\n\n{} kills at random moments of the first second of a conversation: {} of the client, {} of the proxy, {} of the server; {} by SIGKILL, \
         {} by SIGTERM, {} by SIGINT; over stdio, over HTTP, and over both bridges between them. Every second pair of servers ignores signals, and so does a \
         child of it. A proxy that listens is ended by SIGTERM afterwards, since it outlives its clients and its server.\n\n\
         Processes left: {}. The last process was gone after at most {:.1} s.\n",
        kills.rounds,
        count("client,"),
        count("proxy,"),
        count("server,"),
        count("SIGKILL"),
        count("SIGTERM"),
        count("SIGINT"),
        kills.left,
        kills.slowest.as_secs_f64()
    )
    .unwrap();
}

fn cost_section(page: &mut String) {
    if let Some(delays) = of::<Vec<Delay>>("delay.json") {
        *page += "\n## Delay\n\nRound trips of a call in microseconds, in alternating blocks with and without the proxy, which writes a trace. The server \
            responds at once. The load is that of the machine; above that of its two cores, p99 includes the wait for one of them.\n\n\
            | transport | load | round trips | p50 without | with | added | ratio | p99 without | with | added | ratio |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";
        for Delay { transport, round_trips, p50, p99, load } in delays {
            let cells = |[without, with]: [f64; 2]| format!("{without:.0} | {with:.0} | {:.0} | {:.1}", with - without, with / without);
            writeln!(page, "| {transport} | {load:.1} | {round_trips} | {} | {} |", cells(p50), cells(p99)).unwrap();
        }
    }
    if let Some(memory) = of::<Vec<Memory>>("memory.json") {
        *page += "\n## Memory\n\nThe most memory that the proxy had until so many frames had passed and were written to its trace.\n\n\
            | transport | frames | peak |\n|---|--:|--:|\n";
        for Memory { transport, frames, peak } in memory {
            writeln!(page, "| {transport} | {frames} | {:.1} MB |", peak as f64 / 1024.0).unwrap();
        }
    }
}
