//! Writes `docs/field.md` from what the last runs of the field found, with the argument for each kind of finding.

use super::servers::Place;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::rc::Rc;

/// How many servers a kind of finding names.
const NAMED: usize = 6;

/// One server over one transport, as it was found.
struct Row {
    place: Rc<Place>,
    transport: String,
    found: Value,
}

impl Row {
    fn why(&self) -> &str {
        self.found["why"].as_str().unwrap_or_default()
    }

    fn verdict(&self, verb: &str) -> String {
        let done = &self.found["verbs"][verb];
        let code = done["code"].as_i64().and_then(|code| i32::try_from(code).ok());
        if done.is_object() { verdict(code) } else { "–".into() }
    }

    fn findings(&self, severity: &str) -> impl Iterator<Item = &Value> {
        self.found["findings"].as_array().into_iter().flatten().filter(move |finding| finding["severity"] == severity)
    }

    fn is_reached(&self) -> bool {
        self.found["verbs"]["probe"]["code"] == 0
    }
}

/// What an exit code says.
pub(super) fn verdict(code: Option<i32>) -> String {
    match code {
        Some(0) => "passed".into(),
        Some(1) => "failed".into(),
        Some(2) => "bad input".into(),
        Some(3) => "out of reach".into(),
        Some(4) => "nothing to test".into(),
        Some(other) => format!("exit code {other}"),
        None => "**no end**".into(),
    }
}

/// # Errors
/// A finding has no argument, or a file cannot be read or written.
pub(super) fn write(root: &Path, target: &Path, places: Vec<Place>) -> Result<(), String> {
    let rows = read(&target.join("results"), places);
    let file = root.join("field/arguments.json");
    let text = fs::read_to_string(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let arguments: BTreeMap<String, String> = serde_json::from_str::<Value>(&text)
        .map_err(|error| format!("{} is not valid JSON: {error}", file.display()))?
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(rule, argument)| Some((rule.clone(), argument.as_str()?.to_owned())))
        .collect();
    let page = root.join("docs/field.md");
    fs::write(&page, rendered(&rows, &arguments)).map_err(|error| format!("cannot write {}: {error}", page.display()))?;
    println!("field: {} written", page.display());
    let kinds: BTreeSet<&str> = rows
        .iter()
        .flat_map(|row| row.findings("error").chain(row.findings("warning")))
        .filter_map(|finding| finding["rule"].as_str())
        .collect();
    let unargued: Vec<&str> = kinds.into_iter().filter(|rule| !arguments.contains_key(*rule)).collect();
    if unargued.is_empty() { Ok(()) } else { Err(format!("field/arguments.json has no argument for: {}", unargued.join(", "))) }
}

/// What is known of each server over each transport; nothing of those that were never tried.
fn read(folder: &Path, places: Vec<Place>) -> Vec<Row> {
    let mut rows = Vec::new();
    for place in places.into_iter().map(Rc::new) {
        for (transport, _) in &place.starts {
            let file = folder.join(format!("{}-{transport}.json", place.name));
            let found = fs::read_to_string(file).ok().and_then(|text| serde_json::from_str(&text).ok());
            rows.extend(found.map(|found| Row { place: Rc::clone(&place), transport: transport.clone(), found }));
        }
    }
    rows
}

fn rendered(rows: &[Row], arguments: &BTreeMap<String, String>) -> String {
    let servers: BTreeSet<&str> = rows.iter().map(|row| row.place.name.as_str()).collect();
    let builds: BTreeSet<&str> = rows.iter().filter_map(|row| row.found["build"].as_str()).collect();
    let builds = if builds.contains("debug") { " of a debug build" } else { "" };
    let mut page = format!(
        "# The field: mcproof on {} published servers\n\n\
         Written by `cargo xtask field`; not to be edited. The packages are pinned by the lock files in `field/`, `field/servers.json` \
         tells how they are started. They run without a network and with keys that open nothing. Each command runs as a person types it: \
         `mcproof COMMAND -- …` for stdio, `mcproof COMMAND URL -- …` for Streamable HTTP and HTTP+SSE, with transport and era left open. \
         `test` runs the suite that `init` wrote, `verify` is `lock --verify` after `lock`; seconds are those of `check`{builds}, on \
         a machine that was busy with other work. Each row is what the last run of its server found; – is what was not run. Findings that \
         follow from another one are not counted.\n\n",
        servers.len()
    );
    let reached = rows.iter().filter(|row| row.is_reached()).count();
    let _ = writeln!(page, "{} servers and transports, {reached} of them in reach.\n", rows.len());
    page += "## Servers\n\n| server | package | SDK | transport | probe | check | errors | warnings | init | test | lock | verify | seconds |\n";
    page += "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
    for row in rows {
        let count = |severity| row.findings(severity).count();
        let seconds = row.found["verbs"]["check"]["seconds"].as_f64().map_or_else(|| "–".into(), |seconds| format!("{seconds:.1}"));
        let [probe, check, init, test, lock, verify] = ["probe", "check", "init", "test", "lock", "verify"].map(|verb| row.verdict(verb));
        let _ = writeln!(
            page,
            "| {} | {} {} {} | {} | {} | {probe} | {check} | {} | {} | {init} | {test} | {lock} | {verify} | {seconds} |",
            row.place.name,
            row.place.from,
            row.place.package,
            row.place.version,
            row.place.sdk,
            row.transport,
            count("error"),
            count("warning"),
        );
    }
    for (severity, title) in [("error", "Errors"), ("warning", "Warnings")] {
        let _ = writeln!(
            page,
            "\n## {title}\n\n| rule | found | of an SDK | where, and one of the messages | argument |\n|---|---|---|---|---|"
        );
        for (rule, found) in kinds(rows, severity) {
            let names: Vec<&String> = found.iter().map(|found| &found.server).collect::<BTreeSet<_>>().into_iter().collect();
            let of_sdks = found.iter().filter(|found| found.is_of_sdk).map(|found| &found.server).collect::<BTreeSet<_>>().len();
            let more = names.len().saturating_sub(NAMED);
            let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
            let message = found.first().map_or("", |found| &found.message);
            let argument = arguments.get(&rule).map_or("**none**", String::as_str);
            let _ = writeln!(
                page,
                "| `{rule}` | {} | {of_sdks} | {}{tail}: {} | {} |",
                names.len(),
                names.iter().take(NAMED).map(|name| name.as_str()).collect::<Vec<_>>().join(", "),
                cell(message),
                cell(argument)
            );
        }
    }
    page += "\n## Inconclusive\n\n| server | transport | what could not be judged |\n|---|---|---|\n";
    for row in rows {
        for gap in row.found["gaps"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let _ = writeln!(page, "| {} | {} | {} |", row.place.name, row.transport, cell(gap));
        }
    }
    page += "\n## Out of reach, or a command failed\n\n| server | transport | the first that failed |\n|---|---|---|\n";
    for row in rows.iter().filter(|row| !row.why().is_empty()) {
        let _ = writeln!(page, "| {} | {} | {} |", row.place.name, row.transport, cell(row.why()));
    }
    page
}

/// One finding of a kind.
struct Found {
    /// With the transport.
    server: String,
    message: String,
    /// Whether it is a known defect of the server's SDK.
    is_of_sdk: bool,
}

/// By rule, where it was found.
fn kinds(rows: &[Row], severity: &str) -> BTreeMap<String, Vec<Found>> {
    let mut kinds: BTreeMap<String, Vec<Found>> = BTreeMap::new();
    for row in rows {
        for finding in row.findings(severity) {
            let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
            let server = format!("{} {}", row.place.name, row.transport);
            kinds.entry(text("rule")).or_default().push(Found { server, message: text("message"), is_of_sdk: finding["sdk"].is_string() });
        }
    }
    kinds
}

/// Text that others wrote, in a cell of a table: one line, no markup, and nobody's folders.
fn cell(text: &str) -> String {
    let folder = std::env::current_dir().unwrap_or_default().display().to_string();
    let text = text.replace(&folder, "").replace('|', "\\|").replace('<', "&lt;").replace(['\n', '\r'], " ");
    let mut short: String = text.chars().take(400).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
