//! The official conformance suite's client mode against `mcproof_client`: every scenario that a revision scores, and the ones
//! that it runs without scoring. The client under test is the binary `conformance-client`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Instant;

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Measures the time between the end of a stream and the client's next attempt, so it must run alone.
const ALONE: (&str, &str) = ("2025-11-25", "sse-retry");

/// Scenarios that do not pass yet, and why. One that passes has to be removed.
const OPEN: &[(&str, &str)] = &[("auth/dpop", "sender-constrained tokens are not implemented")];

/// Scenarios that the client has to give up, with a word of the reason.
const REFUSED: &[(&str, &str)] = &[
    ("auth/scope-retry-limit", "requires the scopes"),
    ("auth/iss-normalized", "is of the issuer"),
    ("auth/iss-unexpected", "is of the issuer"),
    ("auth/iss-wrong-issuer", "is of the issuer"),
    ("auth/iss-supported-missing", "names no issuer"),
    ("auth/metadata-issuer-mismatch", "is of the issuer"),
    ("auth/resource-mismatch", "not for the server"),
];

#[test]
fn our_client_passes_every_scored_scenario() {
    let started = Instant::now();
    let suite = Suite::installed();
    let mut results: BTreeMap<(String, String), Outcome> = BTreeMap::new();
    let runs = thread::scope(|scope| {
        let suite = &suite;
        let runs = REVISIONS.map(|revision| scope.spawn(move || (revision, suite.run(revision, &["--requirements", revision], ""))));
        runs.map(|run| run.join().unwrap())
    });
    for (revision, outcomes) in runs {
        results.extend(outcomes.into_iter().map(|(scenario, outcome)| ((revision.to_owned(), scenario), outcome)));
    }
    let (revision, scenario) = ALONE;
    for (scenario, outcome) in suite.run(revision, &["--scenario", scenario, "--spec-version", revision], "-alone") {
        results.insert((revision.to_owned(), scenario), outcome);
    }

    let mut table = String::new();
    let mut wrong = Vec::new();
    for revision in REVISIONS {
        let scored = suite.scored(revision);
        let run: BTreeSet<&String> = results.keys().filter(|(found, _)| found == revision).map(|(_, scenario)| scenario).collect();
        wrong
            .extend(scored.iter().filter(|scenario| !run.contains(scenario)).map(|scenario| format!("{revision} {scenario}: did not run")));
        let _ = writeln!(table, "\n{revision}");
        for ((_, scenario), outcome) in results.iter().filter(|((found, _), _)| found == revision) {
            let open = OPEN.iter().find(|(prefix, _)| scenario.starts_with(prefix)).map(|(_, reason)| *reason);
            let note = match (scored.contains(scenario), open) {
                (true, None) => String::new(),
                (true, Some(reason)) => format!("open: {reason}"),
                (false, None) => "not scored".to_owned(),
                (false, Some(reason)) => format!("not scored, open: {reason}"),
            };
            let Outcome { passed, failed, skipped, .. } = outcome;
            let _ = writeln!(table, "  {scenario:<40} {passed:>3} passed {failed:>3} failed {skipped:>3} skipped  {note}");
            match (outcome.problem(scenario), open) {
                (Some(problem), None) => wrong.push(format!("{revision} {scenario}: {problem}")),
                (None, Some(_)) => wrong.push(format!("{revision} {scenario} passes: take it off the list of open ones")),
                _ => {}
            }
        }
    }
    println!("{table}\nconformance suite, client mode: {:.1} s", started.elapsed().as_secs_f64());
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), table);
}

/// The outcome of one scenario.
struct Outcome {
    passed: usize,
    failed: usize,
    skipped: usize,
    /// Failed checks and warnings, as the suite reports them.
    complaints: Vec<String>,
    /// The client's last line.
    ending: String,
}

impl Outcome {
    fn read(folder: &Path) -> Self {
        let text = fs::read_to_string(folder.join("checks.json")).unwrap();
        let checks: Vec<Value> = serde_json::from_str(&text).unwrap();
        let with = |status: &str| checks.iter().filter(|check| check["status"] == status).collect::<Vec<_>>();
        let bad = [with("FAILURE"), with("WARNING")].concat();
        let complaint = |check: &&Value| {
            let why = check["errorMessage"].as_str().or(check["details"]["message"].as_str());
            format!("{} ({})", check["name"].as_str().unwrap_or_default(), why.unwrap_or_default())
        };
        let output = fs::read_to_string(folder.join("stdout.txt")).unwrap_or_default();
        Self {
            passed: with("SUCCESS").len(),
            failed: bad.len(),
            skipped: with("SKIPPED").len(),
            complaints: bad.iter().map(complaint).collect(),
            ending: output.lines().last().unwrap_or("no word").to_owned(),
        }
    }

    fn problem(&self, scenario: &str) -> Option<String> {
        let refused = REFUSED.iter().find(|(name, _)| *name == scenario);
        let ended_well = match refused {
            Some((_, word)) => self.ending.starts_with("failed: ") && self.ending.contains(word),
            None => self.ending == "done",
        };
        // A scenario whose checks were all skipped proves nothing.
        (self.failed > 0 || self.passed == 0 || !ended_well)
            .then(|| format!("{} passed; {}; the client said: {}", self.passed, self.complaints.join("; "), self.ending))
    }
}

struct Suite {
    command: Vec<String>,
    root: PathBuf,
}

impl Suite {
    fn installed() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        let clients: Value = serde_json::from_str(&fs::read_to_string(root.join("peers/clients.json")).unwrap()).unwrap();
        let peers = root.join("target/peers");
        let command: Vec<String> = clients["conformance"]["command"]
            .as_array()
            .unwrap()
            .iter()
            .map(|word| word.as_str().unwrap().replace("${peers}", peers.to_str().unwrap()))
            .collect();
        for file in &command {
            assert!(Path::new(file).exists(), "{file} is not there: run `cargo xtask peers` first");
        }
        Self { command, root }
    }

    /// Runs scenarios in parallel, and returns their outcomes.
    fn run(&self, revision: &str, what: &[&str], suffix: &str) -> BTreeMap<String, Outcome> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("conformance-{revision}{suffix}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let Output { stdout, stderr, .. } = Command::new(&self.command[0])
            .args(&self.command[1..])
            .args(["client", "--command", env!("CARGO_BIN_EXE_conformance-client"), "-o"])
            .arg(&folder)
            .args(what)
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let mut outcomes = BTreeMap::new();
        collect(&folder, "", &mut outcomes);
        let said = || format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(!outcomes.is_empty(), "the suite ran nothing:\n{}", said());
        outcomes
    }

    /// The scenarios of a revision for clients, from the list that comes with the suite.
    fn scored(&self, revision: &str) -> BTreeSet<String> {
        let package = Path::new(self.command.last().unwrap()).parent().and_then(Path::parent).unwrap();
        let list = fs::read_to_string(package.join("requirements").join(revision).with_extension("yaml")).unwrap();
        let client = list.lines().skip_while(|line| *line != "client:").skip(1);
        let scored: BTreeSet<String> = client.map_while(|line| line.strip_prefix("  - ")).map(str::to_owned).collect();
        assert!(!scored.is_empty(), "no client scenarios in the requirements of {revision}");
        scored
    }
}

/// A result folder is called after its scenario, which may have a slash, and the time.
fn collect(folder: &Path, prefix: &str, into: &mut BTreeMap<String, Outcome>) {
    const TIME: usize = "-2026-01-01T00-00-00-000Z".len();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.join("checks.json").exists() {
            into.insert(format!("{prefix}{}", &name[..name.len() - TIME]), Outcome::read(&path));
        } else if path.is_dir() {
            collect(&path, &format!("{prefix}{name}/"), into);
        }
    }
}
