//! Runs the commands of mcproof on the published servers of `field/`, in the form that a person types, and writes `docs/field.md`.
//! Knows exit codes and the JSON of a check, nothing of MCP.

mod page;
mod servers;

use crate::peers;
use serde_json::{Value, json};
use servers::{Place, Start};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// No command may take longer: then it has no end, which is a finding about mcproof.
const LIMIT: Duration = Duration::from_secs(180);
/// How many servers are tried at the same time.
const AT_ONCE: usize = 2;
/// In this order: `test` runs what `init` wrote, `verify` reads what `lock` wrote.
const VERBS: [&str; 6] = ["probe", "check", "init", "test", "lock", "verify"];

/// Every command in every form, and the servers of each SDK: the tests that the test command leaves out.
///
/// # Errors
/// What failed, in a line; cargo has said more.
pub(crate) fn forms(root: &Path) -> Result<(), String> {
    peers::install(root, &[])?;
    let status = Command::new("cargo")
        .args(["test", "--workspace", "--test", "forms", "--", "--include-ignored"])
        .current_dir(root)
        .status()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("a form of a server says something else than the others".into()) }
}

/// Tries the named servers, or all of them, and writes the page from what is known of all.
///
/// # Errors
/// What was typed wrong, could not be installed, or was found without an argument.
pub(crate) fn field(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut words = arguments.iter().copied();
    let (mut names, mut program, mut only_page, mut verbs) = (Vec::new(), None, false, VERBS.to_vec());
    while let Some(word) = words.next() {
        match word {
            "--program" => program = Some(PathBuf::from(words.next().ok_or("--program needs a path")?)),
            "--page" => only_page = true,
            "--verbs" => {
                let wanted: Vec<&str> = words.next().ok_or("--verbs needs a list such as probe,check")?.split(',').collect();
                if let Some(unknown) = wanted.iter().find(|word| !VERBS.contains(word)) {
                    return Err(format!("`{unknown}` is none of {}", VERBS.join(", ")));
                }
                verbs.retain(|verb| wanted.contains(verb));
            }
            name => names.push(name),
        }
    }
    let target = root.join("target/field");
    if !only_page {
        peers::install(root, &["node22"])?;
        peers::install_set(root, "field", &[])?;
        let program = program.map_or_else(|| build(root), Ok)?;
        let program = fs::canonicalize(&program).map_err(|error| format!("cannot find {}: {error}", program.display()))?;
        let bench = Bench { verbs, ..Bench::new(root, &target, program)? };
        let places = servers::read(root)?;
        if let Some(unknown) = names.iter().find(|name| places.iter().all(|place| place.name != **name)) {
            return Err(format!("no server of the field is called `{unknown}`; field/servers.json has their names"));
        }
        bench.try_all(places.into_iter().filter(|place| names.is_empty() || names.contains(&place.name.as_str())).collect())?;
    }
    page::write(root, &target, servers::read(root)?)
}

fn build(root: &Path) -> Result<PathBuf, String> {
    let status = Command::new("cargo").args(["build", "--package", "mcproof", "--bin", "mcproof"]).current_dir(root).status();
    match status {
        Ok(status) if status.success() => Ok(root.join("target/debug/mcproof")),
        Ok(_) => Err("mcproof cannot be built".into()),
        Err(error) => Err(format!("cannot start cargo: {error}")),
    }
}

/// Where servers are tried: a folder and a home of their own, and the Node.js that the newest of them need.
struct Bench {
    program: PathBuf,
    /// `debug` or `release`: the folder that Cargo has put it into.
    build: String,
    target: PathBuf,
    path: String,
    /// What is tried, in order.
    verbs: Vec<&'static str>,
}

/// What a command did.
struct Did {
    /// `None` if it had to be ended.
    code: Option<i32>,
    stdout: String,
    stderr: String,
    seconds: f64,
}

impl Bench {
    fn new(root: &Path, target: &Path, program: PathBuf) -> Result<Self, String> {
        for folder in ["home", "work", "results"] {
            let folder = target.join(folder);
            fs::create_dir_all(&folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        }
        let node = root.join("target/peers/node/node22/node_modules/.bin");
        #[expect(clippy::disallowed_methods, reason = "a chore has no settings of its own")]
        let inherited = std::env::var("PATH").unwrap_or_default();
        let build = program.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        let verbs = VERBS.to_vec();
        Ok(Self { program, verbs, build, target: target.to_owned(), path: format!("{}:{inherited}", node.display()) })
    }

    fn try_all(&self, places: Vec<Place>) -> Result<(), String> {
        let queue = Mutex::new(places);
        let failures = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    loop {
                        let Some(place) = queue.lock().expect("no worker panics").pop() else { break };
                        if let Err(why) = self.try_one(&place) {
                            failures.lock().expect("no worker panics").push(why);
                        }
                    }
                });
            }
        });
        let failures = failures.into_inner().expect("no worker panics");
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
    }

    /// Every verb on one server, over one transport after the other.
    fn try_one(&self, place: &Place) -> Result<(), String> {
        for (transport, start) in &place.starts {
            let file = self.target.join("results").join(format!("{}-{transport}.json", place.name));
            // What is not tried now stands as it was found before.
            let is_kept = |verb: &str| !self.verbs.contains(&verb);
            let before: Value = fs::read_to_string(&file).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
            let kept = before["verbs"].as_object().into_iter().flatten().filter(|(verb, _)| is_kept(verb));
            let mut verbs: serde_json::Map<String, Value> = kept.map(|(verb, did)| (verb.clone(), did.clone())).collect();
            let (mut findings, mut gaps) =
                if is_kept("check") { (before["findings"].clone(), before["gaps"].clone()) } else { (Value::Null, Value::Null) };
            let reason_before = before["why"].as_str().filter(|why| why.split_once(':').is_some_and(|(verb, _)| is_kept(verb)));
            let mut why = reason_before.unwrap_or_default().to_owned();
            for verb in self.verbs.iter().copied() {
                let did = self.run(place, transport, start, verb)?;
                println!("field: {} {transport} {verb}: {} in {:.1} s", place.name, page::verdict(did.code), did.seconds);
                verbs.insert(verb.into(), json!({"code": did.code, "seconds": (did.seconds * 10.0).round() / 10.0}));
                if verb == "check" {
                    let report = serde_json::from_str(&did.stdout).unwrap_or_default();
                    (findings, gaps) = (findings_of(&report), gaps_of(&report));
                    let file = self.target.join("results").join(format!("{}-{transport}.check.json", place.name));
                    fs::write(&file, &did.stdout).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
                }
                if did.code != Some(0) && verb != "check" && why.is_empty() {
                    why = format!("{verb}: {}", reason(&did));
                }
                // What is out of reach for the first command is so for all of them; what it did not write can't be tested.
                if verb == "probe" && did.code == Some(3) && self.run(place, transport, start, "ping")?.code == Some(3) {
                    break;
                }
            }
            let result = json!({"build": self.build, "verbs": verbs, "findings": findings, "gaps": gaps, "why": why});
            let text = serde_json::to_string_pretty(&result).expect("a result has text keys only");
            fs::write(&file, text + "\n").map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        }
        Ok(())
    }

    fn run(&self, place: &Place, transport: &str, start: &Start, verb: &str) -> Result<Did, String> {
        let folder = self.target.join("work").join(format!("{}-{transport}", place.name));
        if verb == "init" {
            let _ = fs::remove_dir_all(&folder);
        }
        fs::create_dir_all(&folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        let mut command = Command::new(&self.program);
        command.current_dir(&folder).env("PATH", &self.path).env("HOME", self.target.join("home")).env("NO_COLOR", "1").env_remove("CI");
        match verb {
            // What `init` wrote takes secrets from the environment, and all of ours are the same.
            "test" => {
                command.arg("test").envs(secrets(&folder)).envs(start.env.iter().map(|(key, value)| (key, value)));
            }
            _ => {
                match verb {
                    "verify" => command.args(["lock", "--verify", "--output", "own.lock"]),
                    "lock" => command.args(["lock", "--output", "own.lock"]),
                    "check" => command.args(["check", "--json"]),
                    verb => command.arg(verb),
                };
                command.args(&start.url);
                command.args(start.env.iter().flat_map(|(key, value)| ["-e".to_owned(), format!("{key}={value}")]));
                command.args(start.headers.iter().flat_map(|(key, value)| ["--header".to_owned(), format!("{key}: {value}")]));
                command.arg("--").args(&start.command);
            }
        }
        bounded(&mut command, &folder.join(verb))
    }
}

/// The variables that the suites in a folder take from the environment.
fn secrets(folder: &Path) -> BTreeMap<String, &'static str> {
    let files = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let suites = files.filter(|file| file.to_string_lossy().ends_with(".mcproof.yaml"));
    let text: String = suites.filter_map(|file| fs::read_to_string(file).ok()).collect();
    text.split("${env.").skip(1).filter_map(|rest| Some((rest.split(['}', ':']).next()?.to_owned(), "dummy"))).collect()
}

/// Runs a command to its end or to the limit. What it says goes to files: nobody has to read along, and it can be read afterwards.
fn bounded(command: &mut Command, files: &Path) -> Result<Did, String> {
    let open = |kind: &str| {
        let file = files.with_extension(kind);
        fs::File::create(&file).map_err(|error| format!("cannot write {}: {error}", file.display()))
    };
    let began = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(open("stdout")?).stderr(open("stderr")?).spawn();
    let mut child = child.map_err(|error| format!("cannot start mcproof: {error}"))?;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if began.elapsed() < LIMIT => thread::sleep(Duration::from_millis(20)),
            // Its guardian ends the servers.
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
        }
    };
    let said = |kind: &str| String::from_utf8_lossy(&fs::read(files.with_extension(kind)).unwrap_or_default()).into_owned();
    let (code, seconds) = (status.and_then(|status| status.code()), began.elapsed().as_secs_f64());
    Ok(Did { code, stdout: said("stdout"), stderr: said("stderr"), seconds })
}

/// Of a check: rule, severity and message of each finding that does not follow from another one, and the SDK whose known defect it is.
/// `null` if it wrote no report.
fn findings_of(report: &Value) -> Value {
    let Some(rules) = report["rules"].as_array() else { return Value::Null };
    let mut found = BTreeMap::new();
    for ruling in rules {
        let findings = ruling["judged"]["findings"].as_array().into_iter().flatten();
        for finding in findings.filter(|finding| finding["cause"].is_null()) {
            let key = (finding["severity"].to_string(), ruling["rule"].to_string(), finding["message"].to_string());
            let sdk = &finding["defect"]["sdk"]["package"];
            found.insert(key, json!({"severity": finding["severity"], "rule": ruling["rule"], "message": finding["message"], "sdk": sdk}));
        }
    }
    Value::Array(found.into_values().collect())
}

/// Of a check: why it is inconclusive, unless a finding says why.
fn gaps_of(report: &Value) -> Value {
    let findings =
        || report["rules"].as_array().into_iter().flatten().filter_map(|ruling| ruling["judged"]["findings"].as_array()).flatten();
    let is_told =
        |gap: &&Value| !findings().any(|finding| finding["severity"] == "error" && finding["conversation"] == gap["conversation"]);
    report["gaps"].as_array().into_iter().flatten().filter(is_told).map(|gap| gap["message"].clone()).collect()
}

/// Why a command failed: the line that says so, or its first one.
fn reason(did: &Did) -> &str {
    let lines = || did.stderr.lines().chain(did.stdout.lines()).filter(|line| !line.trim().is_empty());
    let tells = |line: &&str| ["error", "FAIL", "✗ FAIL", "breaking", "compatible"].iter().any(|word| line.trim_start().starts_with(word));
    lines().find(tells).or_else(|| lines().next()).unwrap_or_default().trim()
}
