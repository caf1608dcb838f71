//! The property behind "nothing broken is green": whatever single thing is changed in what the correct server says, a check of
//! it is not green, or the change stands on the reviewed list of what is legal (`legal_mutations.txt`). The mutations are made
//! from a journal of what the server said in a check, as a user types it: a command after `--`, or a URL alone.
//!
//! A sample is part of the tests. `cargo xtask mutations` tries all of them, in as many parts as wanted: what came of each is kept in
//! `target/mutations.tsv`, and what is there is not tried again. `--page` writes `docs/mutations.md` from it.

use super::listen;
use super::peers::root;
use mcproof_testkit::zoo::catalogue;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// How a server is reached, and the era that it speaks.
pub(crate) type Place = (&'static str, &'static str);

pub(crate) const PLACES: [Place; 5] = [("stdio", "legacy"), ("stdio", "modern"), ("http", "legacy"), ("http", "modern"), ("sse", "legacy")];

/// In place of an era: the server speaks both.
const BOTH: &str = "both";

/// Checks at the same time: they wait most of their time.
const AT_ONCE: usize = 12;

/// Longer than any check may take.
const LONGEST: Duration = Duration::from_secs(180);

/// Which `mcproof` checks, if another one than cargo built with the tests (`--program FILE`): a release build takes a third of the time.
static PROGRAM: OnceLock<String> = OnceLock::new();

/// What is legal, one row a line: mutations, places, the page with the sentence that allows it, and its words.
const LEGAL: &str = include_str!("legal_mutations.txt");

/// What earlier runs tried whose results were not kept.
const EARLIER: &str = include_str!("earlier_mutations.md");

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
    if era != BOTH {
        server.extend(["--era".to_owned(), era.to_owned()]);
    }
    server.extend(["--witness", witness.to_str().unwrap()].iter().chain(words).map(|&word| word.to_owned()));
    let mut command = Command::new(PROGRAM.get().map_or(env!("CARGO_BIN_EXE_mcproof"), String::as_str));
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

/// Discoveries that no client can use, of a server whose legacy era is well: that does not make up for the modern one.
pub(crate) fn lost_discoveries_of_both_eras_are_told() -> Result<(), libtest_mimic::Failed> {
    const LOST: [(&str, &str); 6] = [
        ("http", "response:POST:server/discover:200 head:change content-type"),
        ("http", "response:POST:server/discover:200 head:delete content-type"),
        ("http", "result:server/discover drop"),
        ("http", "result:server/discover change /result/supportedVersions/0"),
        ("stdio", "result:server/discover drop"),
        ("stdio", "result:server/discover change /result/supportedVersions/0"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let tries = LOST.map(|(transport, mutation)| ((transport, BOTH), mutation.to_owned()));
    let outcomes = all_of(&tries, folder.path(), |_| {});
    let green: Vec<String> = outcomes
        .iter()
        .filter(|(_, _, outcome)| outcome.is_green() || !outcome.changed)
        .map(|((transport, _), mutation, outcome)| format!("{transport} {mutation}: {}", outcome.describe()))
        .collect();
    if green.is_empty() { Ok(()) } else { Err(green.join("\n").into()) }
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

/// What came of a mutation, as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Told,
    Green,
    /// Green, since the server did not say that thing this time.
    Unchanged,
    /// The check did not end.
    Missing,
}

impl Verdict {
    const NAMES: [(Self, &str); 4] =
        [(Self::Told, "told"), (Self::Green, "GREEN"), (Self::Unchanged, "UNCHANGED"), (Self::Missing, "NO VERDICT")];

    fn of(outcome: &Outcome) -> Self {
        match (outcome.is_green(), outcome.changed) {
            (true, true) => Self::Green,
            (true, false) => Self::Unchanged,
            (false, _) if outcome.code.is_none() => Self::Missing,
            (false, _) => Self::Told,
        }
    }

    fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(verdict, _)| *verdict == self).unwrap().1
    }
}

/// Verdicts by place and mutation, as a line of the file names them.
type Kept = HashMap<String, Verdict>;

fn kept(path: &Path) -> Kept {
    let lines = std::fs::read_to_string(path).unwrap_or_default();
    let row = |line: &str| {
        let mut columns = line.split('\t');
        let (mutation, verdict) = (columns.next()?, columns.next()?);
        Some((mutation.to_owned(), Verdict::NAMES.into_iter().find(|(_, name)| *name == verdict)?.0))
    };
    lines.lines().filter_map(row).collect()
}

fn key((transport, era): Place, mutation: &str) -> String {
    format!("{transport} {era} {mutation}")
}

/// Tries the mutations that are not kept yet, of those that contain the words, or `--sample N` of them, and says what came of each as it
/// goes.
pub(crate) fn try_all(words: &[String]) {
    let folder = tempfile::tempdir().unwrap();
    let after = |flag: &str| words.iter().position(|word| word == flag).and_then(|at| words.get(at + 1)).cloned();
    let is_set = |flag: &str| words.iter().any(|word| word == flag);
    if let Some(program) = after("--program") {
        PROGRAM.set(program).unwrap();
    }
    let (only, place, sample) = (after("--only"), after("--place"), after("--sample").and_then(|count| count.parse::<usize>().ok()));
    let path = root().join("target/mutations.tsv");
    let known = kept(&path);
    let legal = legal();
    let mut all: Vec<(Place, String)> = Vec::new();
    for known in PLACES.into_iter().filter(|known| place.as_ref().is_none_or(|wanted| *wanted == format!("{} {}", known.0, known.1))) {
        match mutations(known, folder.path()) {
            Ok(mutations) => all.extend(mutations.into_iter().map(|mutation| (known, mutation))),
            Err(why) => say(&why),
        }
    }
    if is_set("--page") {
        std::fs::write(root().join("docs/mutations.md"), page(&all, &known, &legal)).unwrap();
        return;
    }
    let is_wanted = |place: Place, mutation: &String| {
        only.as_ref().is_none_or(|only| mutation.contains(only.as_str()))
            && (is_set("--with-legal") || !legal.iter().any(|row| row.is_about(place, mutation)))
            && (is_set("--again") || !known.contains_key(&key(place, mutation)))
    };
    let mut tries: Vec<(Place, String)> = all.iter().filter(|(place, mutation)| is_wanted(*place, mutation)).cloned().collect();
    if let Some(count) = sample {
        tries.sort_by_key(|(_, mutation)| hash(mutation));
        tries.truncate(count);
    }
    say(&format!("{} mutations, {} to be tried", all.len(), tries.len()));
    if is_set("--list") {
        tries.iter().for_each(|(place, mutation)| say(&key(*place, mutation)));
        return;
    }
    let file = Mutex::new(std::fs::File::options().create(true).append(true).open(path).unwrap());
    all_of(&tries, folder.path(), |(place, mutation, outcome)| {
        let line = format!("{}\t{}\t{}", key(*place, mutation), Verdict::of(outcome).name(), outcome.describe());
        say(&line);
        writeln!(file.lock().unwrap(), "{line}").unwrap();
    });
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

const INTRODUCTION: &str = "# Mutations\n\nWhatever single thing is changed in what a correct server says, `mcproof check` must not be \
green, or the change must be legal. This page is written by `cargo xtask mutations --page`: a hand-made correct server is started with one \
mutation, checked as a user would (`mcproof check -- COMMAND`, `mcproof check URL`), and called green if the exit code is 0 and there is \
neither an error nor a warning. The mutations are generated from what the server says in a check: every member of every kind of message is \
deleted, made null, given another type, another value, or written twice; every message is dropped and doubled; every status and header is \
changed; every delimiter is cut.\n\n";

const LEGEND: &str = "\nLegal: on the list below. Found: `check` reported it or was inconclusive. Open: it stayed green, and stands on the \
list of those below. Not reviewed: it stayed green and stands on no list. Not tried: no result is kept.\n\n";

/// How many there are of each.
#[derive(Default)]
struct Count {
    all: usize,
    legal: usize,
    found: usize,
    open: usize,
    unreviewed: usize,
    unchanged: usize,
    untried: usize,
}

fn page(all: &[(Place, String)], known: &Kept, legal: &[Row]) -> String {
    let open = rows(OPEN, 3);
    let mut places: BTreeMap<Place, Count> = BTreeMap::new();
    let mut kinds: BTreeMap<String, Count> = BTreeMap::new();
    let mut unreviewed = Vec::new();
    for (place, mutation) in all {
        let verdict = known.get(&key(*place, mutation));
        for count in [places.entry(*place).or_default(), kinds.entry(kind(mutation)).or_default()] {
            count.all += 1;
            *match verdict {
                _ if legal.iter().any(|row| row.is_about(*place, mutation)) => &mut count.legal,
                _ if open.iter().any(|row| row.is_about(*place, mutation)) => &mut count.open,
                Some(Verdict::Told) => &mut count.found,
                Some(Verdict::Green | Verdict::Missing) => &mut count.unreviewed,
                Some(Verdict::Unchanged) => &mut count.unchanged,
                None => &mut count.untried,
            } += 1;
        }
        let is_known = legal.iter().chain(&open).any(|row| row.is_about(*place, mutation));
        if !is_known && matches!(verdict, Some(Verdict::Green | Verdict::Missing)) {
            unreviewed.push(key(*place, mutation));
        }
    }
    let mut text = INTRODUCTION.to_owned();
    text += &table("where", places.into_iter().map(|((transport, era), count)| (format!("{transport}, {era}"), count)));
    text += LEGEND;
    text += EARLIER;
    text.push('\n');
    text += &table("what is changed", kinds.into_iter());
    if !unreviewed.is_empty() {
        text.push_str("\n## Green, and not reviewed\n\n");
        unreviewed.iter().for_each(|mutation| text += &format!("- `{mutation}`\n"));
    }
    text.push_str(
        "\n## Open\n\nWhat is not legal and stays green, with the reason: [`open_mutations.txt`](../crates/cli/tests/zoo/open_mutations.txt).\n\n\
         | mutation | where | why |\n|---|---|---|\n",
    );
    listed(&open, &mut text);
    text.push_str(
        "\n## Legal\n\nReviewed in [`legal_mutations.txt`](../crates/cli/tests/zoo/legal_mutations.txt). `*` stands for anything.\n\n\
         | mutation | where | allowed by | its words |\n|---|---|---|---|\n",
    );
    listed(legal, &mut text);
    text
}

fn listed(rows: &[Row], text: &mut String) {
    for Row { mutations, places, rest } in rows {
        let _ = writeln!(text, "| `{mutations}` | {places} | {} |", rest.join(" | "));
    }
}

fn table(first: &str, counts: impl Iterator<Item = (String, Count)>) -> String {
    let mut text = format!(
        "| {first} | mutations | legal | found | open | not reviewed | did not come about | not tried |\n|---|---:|---:|---:|---:|---:|---:|---:|\n"
    );
    for (name, Count { all, legal, found, open, unreviewed, unchanged, untried }) in counts {
        let _ = writeln!(text, "| {name} | {all} | {legal} | {found} | {open} | {unreviewed} | {unchanged} | {untried} |");
    }
    text
}
