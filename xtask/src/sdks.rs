//! Tries the smallest correct server with every pinned version of every SDK (`sdks/`), compares what `mcproof check` finds with the table of
//! known defects, and writes `docs/sdks.md`. Knows the JSON of a check and the columns of the table, nothing of MCP.

mod page;

use crate::peers;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Origin and Host are for the author of a server to check, wherever an SDK leaves it open.
const LEFT_TO_AUTHORS: [&str; 2] = ["origin-is-validated", "host-is-validated"];

/// Which interfaces there are is the machine's.
const OF_THE_MACHINE: &str = "http-listens-on-loopback";

/// One version of an SDK, with the server that is made with it.
struct Trial {
    /// Ecosystem and package.
    package: String,
    version: String,
    server: String,
    /// What is installed besides, as the installer names it.
    with: Vec<String>,
    transports: Vec<String>,
}

/// A row of the table of known defects.
struct Row {
    package: String,
    first: String,
    last: String,
    fixed: String,
    rule: String,
    says: String,
    advice: String,
}

/// Tries the named packages, or all of them.
///
/// # Errors
/// What was typed wrong or could not be installed, and where the table differs from what was found.
pub(crate) fn sdks(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut words = arguments.iter().copied();
    let (mut names, mut program, mut only_page) = (Vec::new(), root.join("target/debug/mcproof"), false);
    while let Some(word) = words.next() {
        match word {
            "--program" => program = PathBuf::from(words.next().ok_or("--program needs a path")?),
            "--page" => only_page = true,
            name => names.push(name),
        }
    }
    let trials = trials(root)?;
    if let Some(unknown) = names.iter().find(|name| trials.iter().all(|trial| trial.package != **name)) {
        return Err(format!("no package is called `{unknown}`; sdks/versions.json has their names, such as npm:fastmcp"));
    }
    if !only_page {
        let program = fs::canonicalize(&program).map_err(|error| format!("cannot find {}: {error}", program.display()))?;
        for trial in trials.iter().filter(|trial| names.is_empty() || names.contains(&trial.package.as_str())) {
            trial.run(root, &program)?;
        }
    }
    let rows = table(root)?;
    let found: Vec<(&Trial, Vec<Value>)> = trials.iter().map(|trial| (trial, trial.found(root))).collect();
    page::write(root, &rows, &found)?;
    let differences = compare(&rows, &found);
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
}

fn trials(root: &Path) -> Result<Vec<Trial>, String> {
    let file = root.join("sdks/versions.json");
    let text = fs::read_to_string(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let all: Vec<Value> = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    let texts =
        |value: &Value| value.as_array().into_iter().flatten().filter_map(|text| Some(text.as_str()?.to_owned())).collect::<Vec<_>>();
    let of = |entry: &Value| {
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let (package, server, with, mut transports) = (text("package"), text("server"), texts(&entry["with"]), texts(&entry["transports"]));
        if transports.is_empty() {
            transports = vec!["stdio".into(), "http".into()];
        }
        let trial = |version: String| Trial {
            package: package.clone(),
            version,
            server: server.clone(),
            with: with.clone(),
            transports: transports.clone(),
        };
        texts(&entry["versions"]).into_iter().map(trial).collect::<Vec<_>>()
    };
    Ok(all.iter().flat_map(of).collect())
}

fn table(root: &Path) -> Result<Vec<Row>, String> {
    let file = root.join("crates/rules/src/sdk/known.tsv");
    let text = fs::read_to_string(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let row = |line: &str| {
        let columns: Vec<String> = line.split('\t').map(str::to_owned).collect();
        let [package, first, last, fixed, rule, says, advice] = columns.try_into().map_err(|_| format!("not seven columns: {line}"))?;
        Ok(Row { package, first, last, fixed, rule, says, advice })
    };
    text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(row).collect()
}

impl Trial {
    fn name(&self) -> String {
        format!("{}-{}", self.package.replace([':', '/', '@'], "-"), self.version)
    }

    fn ecosystem(&self) -> &str {
        self.package.split_once(':').map_or("", |(ecosystem, _)| ecosystem)
    }

    fn folder(&self, root: &Path) -> PathBuf {
        root.join("target/sdks").join(self.name())
    }

    fn results(&self, root: &Path, transport: &str) -> PathBuf {
        root.join("target/sdks/results").join(format!("{}-{transport}.json", self.name()))
    }

    fn run(&self, root: &Path, program: &Path) -> Result<(), String> {
        let folder = self.folder(root);
        self.install(root, &folder)?;
        let server = folder.join(&self.server);
        fs::copy(root.join("sdks/servers").join(&self.server), &server)
            .map_err(|error| format!("cannot write {}: {error}", server.display()))?;
        let command = match self.ecosystem() {
            "npm" => vec![PathBuf::from("node"), server],
            "crates.io" => vec![self.build(root, &folder)?],
            _ => vec![folder.join("bin/python"), server],
        };
        for transport in &self.transports {
            let mut check = Command::new(program);
            check.args(["check", "--json", "--connect-timeout", "30s", "--skip", OF_THE_MACHINE]).current_dir(&folder);
            if transport == "http" {
                check.arg("http://127.0.0.1:${port}/mcp").arg("--").args(&command).arg("${port}");
            } else {
                check.arg("--").args(&command);
            }
            let output = check.output().map_err(|error| format!("cannot start mcproof: {error}"))?;
            let report: Value = serde_json::from_slice(&output.stdout)
                .map_err(|_| format!("{} over {transport}: {}", self.name(), String::from_utf8_lossy(&output.stderr)))?;
            let found = findings(&report);
            println!("sdks: {} {} over {transport}: {} findings", self.package, self.version, found.len());
            let file = self.results(root, transport);
            fs::create_dir_all(root.join("target/sdks/results")).map_err(|error| format!("cannot create target/sdks/results: {error}"))?;
            let text = serde_json::to_string_pretty(&found).expect("a result has text keys only");
            fs::write(&file, text + "\n").map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        }
        Ok(())
    }

    /// Unless it is there. No script of a stranger's package runs at installation.
    fn install(&self, root: &Path, folder: &Path) -> Result<(), String> {
        let stamp = folder.join("installed");
        let wanted = format!("{} {} {}\n", self.package, self.version, self.with.join(" "));
        if fs::read_to_string(&stamp).is_ok_and(|present| present == wanted) {
            return Ok(());
        }
        let cannot = |error: std::io::Error| format!("cannot write to {}: {error}", folder.display());
        fs::create_dir_all(folder).map_err(cannot)?;
        let (ecosystem, package) = self.package.split_once(':').unwrap_or_default();
        if ecosystem == "crates.io" {
            let template = root.join("sdks/servers").join(&self.server).with_extension("toml");
            let text = fs::read_to_string(&template).map_err(|error| format!("cannot read {}: {error}", template.display()))?;
            fs::write(folder.join("Cargo.toml"), text.replace("{version}", &self.version)).map_err(cannot)?;
        } else if ecosystem == "npm" {
            fs::write(folder.join("package.json"), "{ \"private\": true }\n").map_err(cannot)?;
            let mut npm = Command::new("npm");
            npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact"]).current_dir(folder);
            peers::run(npm.arg(format!("{package}@{}", self.version)).args(&self.with))?;
        } else {
            peers::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
            let mut pip = Command::new(folder.join("bin/python"));
            peers::run(pip.args(["-m", "pip", "install", "--quiet"]).arg(format!("{package}=={}", self.version)).args(&self.with))?;
        }
        fs::write(stamp, wanted).map_err(cannot)
    }

    /// Compiles the server of a crate. All versions share what they depend on; the program is copied away before the next one is made.
    fn build(&self, root: &Path, folder: &Path) -> Result<PathBuf, String> {
        let target = root.join("target/sdks/cargo");
        peers::run(Command::new("cargo").args(["build", "--quiet", "--target-dir"]).arg(&target).current_dir(folder))?;
        let program = folder.join("smallest");
        fs::copy(target.join("debug/smallest"), &program).map_err(|error| format!("cannot write {}: {error}", program.display()))?;
        Ok(program)
    }

    /// What the last run found, over all transports.
    fn found(&self, root: &Path) -> Vec<Value> {
        let of = |transport: &String| {
            let text = fs::read_to_string(self.results(root, transport)).unwrap_or_default();
            let mut found: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
            found.iter_mut().for_each(|finding| finding["transport"] = json!(transport));
            found
        };
        self.transports.iter().flat_map(of).collect()
    }
}

/// What is told of a server, by rule.
fn findings(report: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    for gap in report["gaps"].as_array().into_iter().flatten() {
        found.push(json!({ "rule": "inconclusive", "severity": "error", "message": gap["message"], "explained": false }));
    }
    for ruling in report["rules"].as_array().into_iter().flatten() {
        for finding in ruling["judged"]["findings"].as_array().into_iter().flatten() {
            let explained = finding["defect"].is_object() || finding["cause"].is_string();
            let (severity, message) = (&finding["severity"], &finding["message"]);
            found.push(json!({ "rule": ruling["rule"], "severity": severity, "message": message, "explained": explained }));
        }
    }
    found
}

impl Row {
    fn explains(&self, finding: &Value) -> bool {
        finding["rule"] == self.rule.as_str() && finding["message"].as_str().is_some_and(|message| message.contains(&self.says))
    }

    /// The versions that have it, by their position among those that were tried.
    fn seen<'t>(&self, found: &'t [(&'t Trial, Vec<Value>)]) -> (Vec<&'t str>, Vec<bool>) {
        let of_package = || found.iter().filter(|(trial, _)| trial.package == self.package);
        let versions = of_package().map(|(trial, _)| trial.version.as_str()).collect();
        (versions, of_package().map(|(_, findings)| findings.iter().any(|finding| self.explains(finding))).collect())
    }
}

/// Rules of which a row comes from the source of an SDK: the smallest server cannot show it.
const NOT_SHOWN: [&str; 2] = ["call-structured-has-text", "mime-type-is-valid"];

/// In which the table and what was found differ.
fn compare(rows: &[Row], found: &[(&Trial, Vec<Value>)]) -> Vec<String> {
    let mut differences = Vec::new();
    for (trial, findings) in found {
        for finding in findings.iter().filter(|finding| finding["explained"] == false) {
            let rule = finding["rule"].as_str().unwrap_or_default();
            // A conversation that an SDK broke off is told by the finding that did it.
            let is_explained =
                rule == "inconclusive" && findings.iter().any(|finding| finding["explained"] == true && finding["severity"] == "error");
            if !LEFT_TO_AUTHORS.contains(&rule) && !is_explained {
                differences.push(format!("{} {}: no row explains {rule}: {}", trial.package, trial.version, finding["message"]));
            }
        }
    }
    for row in rows {
        let (versions, has_it) = row.seen(found);
        if versions.is_empty() || NOT_SHOWN.contains(&row.rule.as_str()) {
            continue;
        }
        let first = has_it.iter().position(|has| *has);
        let last = has_it.iter().rposition(|has| *has);
        let told = match (first, last) {
            (Some(first), Some(last)) => [versions[first], versions[last], versions.get(last + 1).copied().unwrap_or("-")],
            _ => {
                differences.push(format!("{} {}: no version shows it any more ({})", row.package, row.rule, row.says));
                continue;
            }
        };
        if told != [row.first.as_str(), &row.last, &row.fixed] {
            let [first, last, fixed] = told;
            differences.push(format!("{} {} ({}): found in {first} to {last}, fixed in {fixed}", row.package, row.rule, row.says));
        }
    }
    differences
}
