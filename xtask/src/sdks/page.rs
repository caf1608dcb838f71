//! Writes `docs/sdks.md` from the table of known defects and what the last runs found.

use super::{Row, Trial};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const HEAD: &str = "\
# SDKs: what mcproof finds on the smallest correct server

Written by `cargo xtask sdks`; not to be edited. Each version of each SDK runs the server of `sdks/servers`, which has one tool, one
resource and one prompt (in Rust no resource: its SDK leaves all of the responses to the author) and whose author wrote nothing wrong.
What `mcproof check` finds on it is the SDK's doing, and stands in `crates/rules/src/sdk/known.tsv`. On any server that is made with such
a version, findings of the same rule with the same message are folded: they are told in one paragraph at the end of the report.

A version is known from outside: from the packages whose modules a Node.js script or a Python interpreter has loaded, from the build
information of a Go executable, and from the paths of crates in a Rust executable. That takes Linux, and a server that mcproof started
itself; of a server behind a URL, nothing is known and nothing is folded.

\"Fixed in\" is the first version that was tried and does not have the defect; – says that the newest one that was tried still has it.
";

pub(super) fn write(root: &Path, rows: &[Row], found: &[(&Trial, Vec<Value>)]) -> Result<(), String> {
    let mut text = HEAD.to_owned();
    text += "\n## Versions\n\n| SDK | version | transports | failures | warnings | notes |\n|---|---|---|---|---|---|\n";
    for (trial, findings) in found {
        let count = |severity: &str| findings.iter().filter(|finding| finding["severity"] == severity).count();
        let Trial { package, version, transports, .. } = trial;
        let counts = [count("error"), count("warning"), count("note")].map(|count| count.to_string()).join(" | ");
        let _ = writeln!(text, "| {} | {version} | {} | {counts} |", package.replace(':', " "), transports.join(", "));
    }
    text +=
        "\n## Known defects\n\n| SDK | rule | part of the message | first seen in | last seen in | fixed in | transports | what helps |\n";
    text += "|---|---|---|---|---|---|---|---|\n";
    for row in rows {
        let findings = found.iter().filter(|(trial, _)| trial.package == row.package).flat_map(|(_, findings)| findings);
        let transports: BTreeSet<&str> =
            findings.filter(|finding| row.explains(finding)).filter_map(|finding| finding["transport"].as_str()).collect();
        let transports = if transports.is_empty() { "–".to_owned() } else { transports.into_iter().collect::<Vec<_>>().join(", ") };
        let Row { package, first, last, fixed, rule, says, advice } = row;
        let helps = match (fixed.as_str(), advice.as_str()) {
            ("-", "-") => "nothing so far".to_owned(),
            (_, "-") => "update".to_owned(),
            ("-", advice) => advice.to_owned(),
            (_, advice) => format!("update, or {advice}"),
        };
        let (package, says) = (package.replace(':', " "), says.replace('|', "\\|"));
        let fixed = if fixed == "-" { "–" } else { fixed };
        let _ =
            writeln!(text, "| {package} | [`{rule}`](rules/{rule}.md) | {says} | {first} | {last} | {fixed} | {transports} | {helps} |");
    }
    let file = root.join("docs/sdks.md");
    fs::write(&file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
}
