//! The property behind "nothing broken is green": whatever single thing is changed in what the correct server says, a check of
//! it is not green, or the change stands on the reviewed list of what is legal (`legal_mutations.txt`). The mutations are made
//! from a journal of what the server said in a check, as a user types it: a command after `--`, or a URL alone.
//!
//! A sample is part of the tests. All of them take an hour, and write `docs/mutations.md`: `cargo xtask mutations`.

use super::listen;
use super::peers::root;
use mcproof_testkit::zoo::catalogue;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How a server is reached, and the era that it speaks.
pub(crate) type Place = (&'static str, &'static str);

pub(crate) const PLACES: [Place; 5] = [("stdio", "legacy"), ("stdio", "modern"), ("http", "legacy"), ("http", "modern"), ("sse", "legacy")];

/// Checks at the same time: they wait most of their time.
const AT_ONCE: usize = 12;

/// Longer than any check may take.
const LONGEST: Duration = Duration::from_secs(180);

/// What is legal, one row a line: mutations, places, the page with the sentence that allows it, and its words.
const LEGAL: &str = include_str!("legal_mutations.txt");

/// What is not legal and stays green all the same: mutations, places, why.
const OPEN: &str = include_str!("open_mutations.txt");

struct Row {
    mutations: &'static str,
    places: &'static str,
    rest: Vec<&'static str>,
}

fn rows(table: &'static str, columns: usize) -> Vec<Row> {
    let lines = table.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    let row = |line: &'static str| {
        let mut all = line.split(" | ").map(str::trim);
        let row = Row { mutations: all.next().unwrap(), places: all.next().unwrap_or_default(), rest: all.collect() };
        assert_eq!(row.rest.len() + 2, columns, "the columns of `{line}`");
        row
    };
    lines.map(row).collect()
}

fn legal() -> Vec<Row> {
    rows(LEGAL, 4)
}

impl Row {
    fn is_about(&self, (transport, era): Place, mutation: &str) -> bool {
        let both = format!("{transport} {era}");
        let is_here = self.places.split(", ").any(|place| [transport, era, both.as_str(), "any"].contains(&place));
        is_here && fits(self.mutations, mutation)
    }
}

/// `*` stands for anything.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => {
            text.strip_prefix(start).is_some_and(|text| (0..=text.len()).any(|at| text.is_char_boundary(at) && fits(rest, &text[at..])))
        }
    }
}

/// What came of one check.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    code: Option<i32>,
    /// Of errors and warnings.
    findings: Vec<String>,
    /// What could not be judged.
    gaps: Vec<String>,
    /// Whether anything was changed.
    changed: bool,
    took: Duration,
    stderr: String,
}

impl Outcome {
    fn is_green(&self) -> bool {
        self.code == Some(0) && self.findings.is_empty()
    }

    fn describe(&self) -> String {
        let code = self.code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit {code}"));
        format!(
            "{code} after {:.1} s, {} {}",
            self.took.as_secs_f64(),
            self.findings.join("; "),
            self.stderr.lines().next().unwrap_or_default()
        )
    }
}

/// Checks the correct server, changed by what the words say, as a user would.
fn check((transport, era): Place, words: &[&str], witness: &Path) -> Outcome {
    let this = std::env::current_exe().unwrap();
    let mut server = vec![this.to_str().unwrap().to_owned(), "--zoo".into(), "none".into()];
    server.extend(match transport {
        "stdio" => vec!["--stdio".to_owned()],
        other => vec![format!("--{other}"), "0".into()],
    });
    server.extend(["--era", era, "--witness", witness.to_str().unwrap()].iter().chain(words).map(|&word| word.to_owned()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcproof"));
    command.args(["check", "--json"]);
    let mut listening = None;
    match transport {
        "stdio" => drop(command.arg("--").args(&server)),
        _ => {
            let (child, url) = listen(&server);
            command.arg(url.expect("the server of the zoo listens"));
            if transport == "sse" {
                command.args(["--transport", "sse"]);
            }
            listening = Some(child);
        }
    }
    let began = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (code, stdout, stderr) = within(child, LONGEST);
    if let Some(mut server) = listening {
        let _ = server.kill();
        let _ = server.wait();
    }
    let report: Value = serde_json::from_slice(&stdout).unwrap_or_default();
    let mut findings = Vec::new();
    for ruling in report["rules"].as_array().into_iter().flatten() {
        let all = ruling["judged"]["findings"].as_array().into_iter().flatten();
        let counts = |finding: &&Value| matches!(finding["severity"].as_str(), Some("error" | "warning"));
        findings.extend(
            all.filter(counts)
                .map(|finding| format!("{} {}: {}", text(&finding["severity"]), text(&ruling["rule"]), text(&finding["message"]))),
        );
    }
    let gaps = report["gaps"].as_array().into_iter().flatten().map(|gap| text(&gap["message"]).to_owned()).collect();
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    Outcome { code, findings, gaps, changed: witness.exists(), took: began.elapsed(), stderr }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What a process says and how it ends; killed when it takes too long.
fn within(mut child: Child, longest: Duration) -> (Option<i32>, Vec<u8>, Vec<u8>) {
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let out = thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stdout.read_to_end(&mut bytes);
        bytes
    });
    let err = thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stderr.read_to_end(&mut bytes);
        bytes
    });
    let end = Instant::now() + longest;
    let code = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status.code(),
            None if Instant::now() > end => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            None => thread::sleep(Duration::from_millis(50)),
        }
    };
    (code, out.join().unwrap(), err.join().unwrap())
}

/// What can be changed at a place, from what the server says there in a check that has to be green.
fn mutations(place: Place, folder: &Path) -> Result<Vec<String>, String> {
    let journal = folder.join(format!("{}-{}.journal", place.0, place.1));
    let outcome = check(place, &["--journal", journal.to_str().unwrap()], &folder.join("no-witness"));
    if !outcome.is_green() {
        return Err(format!("the correct server is not green over {} {}: {}", place.0, place.1, outcome.describe()));
    }
    let mutations = catalogue(&std::fs::read_to_string(journal).unwrap());
    if mutations.is_empty() { Err("the journal shows nothing".to_owned()) } else { Ok(mutations) }
}

fn tried(place: Place, mutation: &str, folder: &Path) -> Outcome {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let witness = folder.join(format!("witness-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
    check(place, &["--mutate", mutation], &witness)
}

/// A call that never gets a response is no failure, since a tool may take its time; but the check is not green.
pub(crate) fn a_silent_tool_is_told(place: Place) -> Result<(), libtest_mimic::Failed> {
    let folder = tempfile::tempdir().unwrap();
    let outcome = tried(place, "result:tools/call#echo drop", folder.path());
    let gap = "no call of `echo` got a response";
    match outcome.code == Some(1) && outcome.findings.is_empty() && outcome.gaps.iter().any(|told| told.starts_with(gap)) {
        true => Ok(()),
        false => Err(format!("{place:?}: {} {:?}", outcome.describe(), outcome.gaps).into()),
    }
}

/// A sample of a place: the same for as long as the server says the same.
pub(crate) fn sample(place: Place, count: usize) -> Result<(), libtest_mimic::Failed> {
    let folder = tempfile::tempdir().unwrap();
    let known: Vec<Row> = legal().into_iter().chain(rows(OPEN, 3)).collect();
    let mut mutations = mutations(place, folder.path())?;
    mutations.retain(|mutation| !known.iter().any(|row| row.is_about(place, mutation)));
    mutations.sort_by_key(|mutation| hash(mutation));
    mutations.truncate(count);
    let outcomes = all_of(&mutations.into_iter().map(|mutation| (place, mutation)).collect::<Vec<_>>(), folder.path(), |_| {});
    let green: Vec<String> = outcomes
        .iter()
        .filter(|(_, _, outcome)| outcome.is_green())
        .map(|(_, mutation, outcome)| format!("{mutation}{}", if outcome.changed { "" } else { " (changed nothing)" }))
        .collect();
    if green.is_empty() { Ok(()) } else { Err(format!("green over {} {}:\n{}", place.0, place.1, green.join("\n")).into()) }
}

/// The same everywhere (FNV-1a).
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

type Tried = (Place, String, Outcome);

fn all_of(mutations: &[(Place, String)], folder: &Path, tell: impl Fn(&Tried) + Sync) -> Vec<Tried> {
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(mutations.len()) {
            scope.spawn(|| {
                while let Some((place, mutation)) = mutations.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let one = (*place, mutation.clone(), tried(*place, mutation, folder));
                    tell(&one);
                    all.lock().unwrap().push(one);
                }
            });
        }
    });
    let mut all = all.into_inner().unwrap();
    all.sort_by(|(a, b, _), (c, d, _)| (a, b).cmp(&(c, d)));
    all
}

/// Tries all mutations that contain the words, or `--sample N` of them, and says what came of each as it goes.
pub(crate) fn try_all(words: &[String]) {
    let folder = tempfile::tempdir().unwrap();
    let after = |flag: &str| words.iter().position(|word| word == flag).and_then(|at| words.get(at + 1)).cloned();
    let (only, place, sample) = (after("--only"), after("--place"), after("--sample").and_then(|count| count.parse::<usize>().ok()));
    let (again, is_listed, with_legal) =
        (after("--again"), words.iter().any(|word| word == "--list"), words.iter().any(|word| word == "--with-legal"));
    let legal = legal();
    let mut all: Vec<(Place, String)> = Vec::new();
    for known in PLACES.into_iter().filter(|known| place.as_ref().is_none_or(|wanted| *wanted == format!("{} {}", known.0, known.1))) {
        match mutations(known, folder.path()) {
            Ok(mutations) => all.extend(mutations.into_iter().map(|mutation| (known, mutation))),
            Err(why) => say(&why),
        }
    }
    let total = all.len();
    // A run again of the lines that another one said.
    if let Some(path) = again {
        let wanted: BTreeSet<String> =
            std::fs::read_to_string(path).unwrap().lines().filter_map(|line| Some(line.split('\t').next()?.to_owned())).collect();
        all.retain(|((transport, era), mutation)| wanted.contains(&format!("{transport} {era} {mutation}")));
    }
    all.retain(|(_, mutation)| only.as_ref().is_none_or(|only| mutation.contains(only.as_str())));
    let tries: Vec<(Place, String)> =
        all.iter().filter(|(place, mutation)| with_legal || !legal.iter().any(|row| row.is_about(*place, mutation))).cloned().collect();
    let mut tries = tries;
    if let Some(count) = sample {
        tries.sort_by_key(|(_, mutation)| hash(mutation));
        tries.truncate(count);
    }
    say(&format!("{total} mutations, {} to be tried", tries.len()));
    if is_listed {
        tries.iter().for_each(|((transport, era), mutation)| say(&format!("{transport} {era} {mutation}")));
        return;
    }
    let done = all_of(&tries, folder.path(), |((transport, era), mutation, outcome)| {
        let verdict = match (outcome.is_green(), outcome.changed) {
            (true, true) => "GREEN",
            (true, false) => "UNCHANGED",
            (false, _) if outcome.code.is_none() => "NO VERDICT",
            (false, _) => "told",
        };
        say(&format!("{transport} {era} {mutation}\t{verdict}\t{}", outcome.describe()));
    });
    if words.iter().any(|word| word == "--write") {
        std::fs::write(root().join("docs/mutations.md"), page(&all, &done, &legal)).unwrap();
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// What a mutation changes, in a word.
fn kind(mutation: &str) -> String {
    let mut words = mutation.splitn(3, ' ');
    let (subject, operation) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let what = subject.split(':').next().unwrap_or_default();
    match operation.split_once(':') {
        Some((form, _)) => format!("framing: {form}"),
        None if matches!(operation, "drop" | "double") => format!("{what}: {operation}"),
        None => format!("{what}: {operation} a member"),
    }
}

fn page(all: &[(Place, String)], done: &[Tried], legal: &[Row]) -> String {
    let mut kinds: BTreeMap<String, [usize; 4]> = BTreeMap::new();
    for (place, mutation) in all {
        let row = kinds.entry(kind(mutation)).or_default();
        row[0] += 1;
        row[1] += usize::from(legal.iter().any(|row| row.is_about(*place, mutation)));
    }
    let open: Vec<&Tried> = done.iter().filter(|(.., outcome)| outcome.is_green() && outcome.changed).collect();
    for (_, mutation, outcome) in done {
        let row = kinds.entry(kind(mutation)).or_default();
        row[2] += usize::from(!outcome.is_green());
        row[3] += usize::from(outcome.is_green() && outcome.changed);
    }
    let mut text = String::from(
        "# Mutations\n\nWhatever single thing is changed in what a correct server says, `mcproof check` must not be green, or the \
         change must be legal. This page is written by `cargo xtask mutations`: a hand-made correct server is started with one \
         mutation, checked as a user would (`mcproof check -- COMMAND`, `mcproof check URL`), and called green if the exit code is 0 \
         and there is neither an error nor a warning. The mutations are generated from what the server says in a check: every \
         member of every kind of message is deleted, made null, given another type, another value, or written twice; every message \
         is dropped and doubled; every status and header is changed; every delimiter is cut.\n\n",
    );
    let legal_count = kinds.values().map(|row| row[1]).sum::<usize>();
    let unchanged = done.iter().filter(|(.., outcome)| outcome.is_green() && !outcome.changed).count();
    let _ = writeln!(
        text,
        "{} mutations over stdio, Streamable HTTP and HTTP+SSE in both eras: {legal_count} are legal, {} were tried, {} of these were \
         found, {} stayed green, and {unchanged} did not come about, because the server did not say that thing again.\n",
        all.len(),
        done.len(),
        done.iter().filter(|(.., outcome)| !outcome.is_green()).count(),
        open.len(),
    );
    text.push_str("| what is changed | mutations | legal | found | green |\n|---|---:|---:|---:|---:|\n");
    for (kind, [all, legal, found, green]) in &kinds {
        let _ = writeln!(text, "| {kind} | {all} | {legal} | {found} | {green} |");
    }
    text.push_str("\n## Green, and not known to be legal\n\n");
    if open.is_empty() {
        text.push_str("None.\n");
    }
    for ((transport, era), mutation, _) in &open {
        let _ = writeln!(text, "- {transport}, {era}: `{mutation}`");
    }
    text.push_str(
        "\n## Legal\n\nReviewed in [`legal_mutations.txt`](../crates/cli/tests/zoo/legal_mutations.txt). `*` stands for anything.\n\n\
         | mutation | where | allowed by | its words |\n|---|---|---|---|\n",
    );
    for Row { mutations, places, rest } in legal {
        let _ = writeln!(text, "| `{mutations}` | {places} | {} |", rest.join(" | "));
    }
    text
}
