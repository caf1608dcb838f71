//! What other tools find in the zoo: the official conformance suite and MCP Inspector's CLI, with each broken server for which
//! they can run. They have no name for what they notice, so it counts as noticed if they fail where they pass the correct
//! server. Run by hand, because it takes long: `cargo test -p mcproof --test zoo -- --others` writes `docs/detection.md`.

use super::peers::{installed, root};
use super::{Era, broken_servers, listen, word};
use mcproof_testkit::zoo::BrokenServer;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What another tool reports about a broken server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Noticed,
    Passed,
    /// It does not speak that transport.
    CannotRun,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Noticed => "noticed",
            Self::Passed => "-",
            Self::CannotRun => "cannot run",
        }
    }
}

/// Servers that are not in the zoo, tried by hand.
const OTHER_SERVERS: &str = include_str!("other_servers.md");

struct Row {
    broken_server: &'static BrokenServer,
    places: usize,
    found: usize,
    conformance: Verdict,
    inspector: Verdict,
}

pub(crate) fn compare() {
    let correct: BTreeMap<&str, Failures> =
        [Era::Legacy, Era::Modern].map(|era| (word(era), conformance("none", era))).into_iter().collect();
    let all: Vec<&'static BrokenServer> = broken_servers().collect();
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(broken_server) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let row = row(broken_server, &correct);
                    rows.lock().unwrap().push(row);
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap();
    rows.sort_by_key(|row| (row.broken_server.rule, row.broken_server.name));
    std::fs::write(root().join("docs/detection.md"), page(&rows)).unwrap();
}

fn row(broken_server: &'static BrokenServer, correct: &BTreeMap<&str, Failures>) -> Row {
    let places: Vec<(&'static str, Era)> = broken_server.places().collect();
    let is_found = |(transport, era): &&(&'static str, Era)| {
        super::check(broken_server.name, transport, &[word(*era)]).findings.iter().any(|(_, rule, _)| rule == broken_server.rule)
    };
    let over_http = places.iter().find(|(transport, _)| *transport == "http");
    let conformance = over_http.map_or(Verdict::CannotRun, |(_, era)| {
        let (usual, found) = (&correct[word(*era)], conformance(broken_server.name, *era));
        let is_worse = |(scenario, failed): (&String, &usize)| found.get(scenario).is_none_or(|now| now > failed);
        if usual.iter().any(is_worse) { Verdict::Noticed } else { Verdict::Passed }
    });
    let inspector = if inspector_passes(broken_server.name, places[0]) { Verdict::Passed } else { Verdict::Noticed };
    Row { broken_server, places: places.len(), found: places.iter().filter(is_found).count(), conformance, inspector }
}

/// Scenarios, and how many checks of each failed.
type Failures = BTreeMap<String, usize>;

fn conformance(name: &str, era: Era) -> Failures {
    let revision = match era {
        Era::Legacy => "2025-11-25",
        Era::Modern => "2026-07-28",
    };
    let (mut server, url) = listen(&server(name, "http", era));
    let Some(url) = url else { return Failures::new() };
    let folder = tempfile::tempdir().unwrap();
    let output = limited(&installed("conformance"))
        .args(["server", "--url", &url, "--requirements", revision, "-o"])
        .arg(folder.path())
        .output()
        .unwrap();
    let _ = server.kill();
    let _ = server.wait();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = |line: &str| {
        let (scenario, counts) = line.trim().strip_prefix(['✓', '✗'])?.trim().split_once(": ")?;
        let failed = counts.split_once(", ")?.1.strip_suffix(" failed")?;
        Some((scenario.to_owned(), failed.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// Lists the tools and calls one, as a person with that tool would.
fn inspector_passes(name: &str, (transport, era): (&'static str, Era)) -> bool {
    let methods: [&[&str]; 2] =
        [&["--method", "tools/list"], &["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=hello"]];
    methods.iter().all(|method| {
        let mut command = limited(&installed("inspector"));
        let mut listening = None;
        if transport == "stdio" {
            command.args(server(name, transport, era));
        } else {
            let (child, url) = listen(&server(name, transport, era));
            listening = Some(child);
            command.args(url).args(["--transport", transport]);
        }
        command.args(*method).args(["--protocol-era", word(era), "--connect-timeout", "5000"]);
        let Output { status, .. } = command.stdin(Stdio::null()).output().unwrap();
        if let Some(mut server) = listening {
            let _ = server.kill();
            let _ = server.wait();
        }
        status.success()
    })
}

/// Some of them wait for minutes.
fn limited(words: &[String]) -> Command {
    let mut command = Command::new("timeout");
    command.arg("20").args(words);
    command
}

fn server(name: &str, transport: &str, era: Era) -> Vec<String> {
    let mut words = vec![std::env::current_exe().unwrap().to_str().unwrap().to_owned(), "--zoo".into(), name.into()];
    words.push(format!("--{transport}"));
    words.extend((transport != "stdio").then(|| "0".to_owned()));
    words.extend(["--era".to_owned(), word(era).to_owned()]);
    words
}

fn page(rows: &[Row]) -> String {
    let count = |wanted: fn(&Row) -> bool| rows.iter().filter(|row| wanted(row)).count();
    let (places, found): (usize, usize) = rows.iter().fold((0, 0), |(places, found), row| (places + row.places, found + row.found));
    let mut text = format!(
        "# Detection\n\nThe zoo of the testkit: {} servers, each with one flaw. Generated by `cargo test -p mcproof --test zoo -- \
         --others`; that every row is found, with the right rule and no other failure, is a test of every run.\n\n\
         - `mcproof check`: {found} of {places} (server, transport and era), each with the id of its rule\n\
         - official conformance suite: notices {} of the {} that it can talk to (Streamable HTTP only)\n\
         - MCP Inspector's CLI (`tools/list` and one `tools/call`): notices {} of {}\n\n\
         The others have no name for what they notice: that they fail where they pass the correct server counts.\n\n\
         | rule | server | does | mcproof | conformance | Inspector |\n|---|---|---|---|---|---|\n",
        rows.len(),
        count(|row| row.conformance == Verdict::Noticed),
        count(|row| row.conformance != Verdict::CannotRun),
        count(|row| row.inspector == Verdict::Noticed),
        count(|row| row.inspector != Verdict::CannotRun),
    );
    for Row { broken_server, places, found, conformance, inspector } in rows {
        writeln!(
            text,
            "| [{0}](rules/{0}.md) | {1} | {2} | {found}/{places} | {3} | {4} |",
            broken_server.rule,
            broken_server.name,
            broken_server.does.replace('|', "\\|"),
            conformance.word(),
            inspector.word()
        )
        .unwrap();
    }
    text += "\n";
    text += OTHER_SERVERS;
    text
}
