//! `docs/detection.md`: what `mcproof check` finds in the zoo at every place, and what other tools do: the official conformance
//! suite and MCP Inspector's CLI, with each broken server for which they can run. They have no name for what they notice, so it
//! counts as noticed if they fail where they pass the correct server. Both take long, so each is a chore of its own that replaces
//! its columns of the page: `cargo xtask zoo`, and `cargo xtask zoo --others`.

use super::peers::{installed, root};
use super::{Era, broken_servers, listen, word};
use mcproof_testkit::zoo::BrokenServer;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const NOTICED: &str = "noticed";
const PASSED: &str = "-";
/// It does not speak that transport.
const CANNOT_RUN: &str = "cannot run";
const NOT_RUN: &str = "not run";

/// Servers that are not in the zoo, tried by hand.
const OTHER_SERVERS: &str = include_str!("other_servers.md");

/// The cells of the page for one server.
struct Row {
    /// The places where `mcproof check` found what is broken and nothing else, and all of them: `5/5`.
    check: String,
    conformance: String,
    inspector: String,
}

impl Row {
    fn unknown() -> Self {
        let [check, conformance, inspector] = [NOT_RUN; 3].map(str::to_owned);
        Self { check, conformance, inspector }
    }
}

/// Tries the other tools, and replaces their columns.
pub(crate) fn compare() {
    let correct: BTreeMap<&str, Failures> =
        [Era::Legacy, Era::Modern].map(|era| (word(era), conformance("none", era))).into_iter().collect();
    let all: Vec<&'static BrokenServer> = broken_servers().collect();
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(known(&fs::read_to_string(path()).unwrap())));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(broken_server) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (conformance, inspector) = others(broken_server, &correct);
                    let mut rows = rows.lock().unwrap();
                    let row = rows.entry(broken_server.name.to_owned()).or_insert_with(Row::unknown);
                    (row.conformance, row.inspector) = (conformance.to_owned(), inspector.to_owned());
                }
            });
        }
    });
    fs::write(path(), page(&rows.into_inner().unwrap())).unwrap();
}

/// Replaces the column of `mcproof check` by what was found at every place.
pub(crate) fn write(found: &[super::Row]) {
    let mut rows = known(&fs::read_to_string(path()).unwrap());
    for broken_server in broken_servers() {
        let places = || found.iter().filter(|row| row.broken_server == broken_server.name);
        let right = places().filter(|row| row.found && row.unrelated == 0).count();
        rows.entry(broken_server.name.to_owned()).or_insert_with(Row::unknown).check = format!("{right}/{}", places().count());
    }
    fs::write(path(), page(&rows)).unwrap();
}

fn path() -> PathBuf {
    root().join("docs/detection.md")
}

/// What the page says of each server.
fn known(page: &str) -> BTreeMap<String, Row> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.strip_prefix("| [")?.strip_suffix(" |")?.split(" | ").collect();
        let [_rule, server, _does, check, conformance, inspector] = cells[..] else { return None };
        let row = Row { check: check.to_owned(), conformance: conformance.to_owned(), inspector: inspector.to_owned() };
        Some((server.to_owned(), row))
    };
    page.lines().filter_map(row).collect()
}

fn others(broken_server: &'static BrokenServer, correct: &BTreeMap<&str, Failures>) -> (&'static str, &'static str) {
    let places: Vec<(&'static str, Era)> = broken_server.places().collect();
    let over_http = places.iter().find(|(transport, _)| *transport == "http");
    let conformance = over_http.map_or(CANNOT_RUN, |(_, era)| {
        let (usual, found) = (&correct[word(*era)], conformance(broken_server.name, *era));
        let is_worse = |(scenario, failed): (&String, &usize)| found.get(scenario).is_none_or(|now| now > failed);
        if usual.iter().any(is_worse) { NOTICED } else { PASSED }
    });
    (conformance, if inspector_passes(broken_server.name, places[0]) { PASSED } else { NOTICED })
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

fn page(rows: &BTreeMap<String, Row>) -> String {
    let mut servers: Vec<(&'static BrokenServer, &Row)> =
        broken_servers().filter_map(|broken_server| Some((broken_server, rows.get(broken_server.name)?))).collect();
    servers.sort_by_key(|(broken_server, _)| (broken_server.rule, broken_server.name));
    let count = |is_counted: &dyn Fn(&Row) -> bool| servers.iter().filter(|(_, row)| is_counted(row)).count();
    let ran = |cell: &str| cell != CANNOT_RUN && cell != NOT_RUN;
    let places = |at: usize| -> usize {
        servers.iter().filter_map(|(_, row)| row.check.split('/').nth(at)).filter_map(|count| count.parse::<usize>().ok()).sum()
    };
    let mut text = format!(
        "# Detection\n\nThe zoo of the testkit: {} servers, each with one flaw. Generated by `cargo xtask zoo`, which checks each \
         server at every place (transport and era); a test of every run checks each at one of them. The columns of the other tools \
         come from `cargo xtask zoo --others`, which takes hours.\n\n\
         - `mcproof check`: at {} of {} places the rule that is broken was found, and no other failure\n\
         - official conformance suite: notices {} of the {} with which it was run (Streamable HTTP only)\n\
         - MCP Inspector's CLI (`tools/list` and one `tools/call`): notices {} of the {} with which it was run\n\n\
         The others have no name for what they notice: that they fail where they pass the correct server counts.\n\n\
         | rule | server | does | mcproof | conformance | Inspector |\n|---|---|---|---|---|---|\n",
        servers.len(),
        places(0),
        places(1),
        count(&|row| row.conformance == NOTICED),
        count(&|row| ran(&row.conformance)),
        count(&|row| row.inspector == NOTICED),
        count(&|row| ran(&row.inspector)),
    );
    for (broken_server, Row { check, conformance, inspector }) in &servers {
        let does = broken_server.does.replace('|', "\\|");
        writeln!(
            text,
            "| [{0}](rules/{0}.md) | {1} | {does} | {check} | {conformance} | {inspector} |",
            broken_server.rule, broken_server.name
        )
        .unwrap();
    }
    text += "\n";
    text += OTHER_SERVERS;
    text
}
