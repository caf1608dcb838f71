//! A run as one HTML file that opens offline: everything is in it, and nothing is fetched. The data is embedded as JSON, and the
//! script of the page shows it as text; text of a server is never markup.

mod view;

use crate::style::count;
use crate::{Reporter, words};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcproof_record::{CaseId, CasePlan, Counts, Coverage, Diagnostic, Event};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;
use view::Budget;
pub use view::{ShownFrame, Wire, wire};

/// Colors and fonts of all pages, for the light and the dark theme.
pub const TOKENS: &str = include_str!("html/tokens.css");
const STYLE: &str = concat!(include_str!("html/tokens.css"), include_str!("html/report.css"));
const SCRIPT: &str = include_str!("html/report.js");

/// A sink of events that writes the page when the run has finished.
pub struct Html<W> {
    writer: W,
    planned: Vec<CasePlan>,
    /// Each as JSON for the page, already cut: transcripts are not stored.
    outcomes: BTreeMap<CaseId, String>,
    budget: Budget,
    notices: Vec<Diagnostic>,
    specific: Vec<Value>,
    coverage: Vec<Coverage>,
}

impl<W: Write> Html<W> {
    pub fn new(writer: W) -> Self {
        Self {
            writer,
            planned: Vec::new(),
            outcomes: BTreeMap::new(),
            budget: Budget::default(),
            notices: Vec::new(),
            specific: Vec::new(),
            coverage: Vec::new(),
        }
    }

    pub fn into_inner(self) -> W {
        self.writer
    }

    /// Written piece by piece: the page may be large.
    fn write(&mut self, counts: &Counts, duration: Duration) -> io::Result<()> {
        let policy =
            format!("default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'", hash(SCRIPT), hash(STYLE));
        let title = words::counts(counts, duration);
        let head = json!({
            "counts": counts,
            "summary": title,
            "tests": count(self.planned.len() as u64, "test"),
            "notices": self.notices.iter().map(view::diagnostic).collect::<Vec<_>>(),
            "specific": self.specific,
            "coverage": self.coverage.iter().map(view::coverage).collect::<Vec<_>>(),
        });
        let out = &mut self.writer;
        write!(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")?;
        writeln!(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">")?;
        writeln!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
        writeln!(out, "<meta name=\"color-scheme\" content=\"light dark\">\n<title>mcproof: {title}</title>")?;
        write!(
            out,
            "<style>{STYLE}</style>\n</head>\n<body>\n<noscript>This report needs JavaScript. The script is part of this file.</noscript>\n"
        )?;
        writeln!(out, "<script type=\"application/json\" id=\"run\">{}</script>", embedded(&head.to_string()))?;
        write!(out, "<script type=\"application/json\" id=\"tests\">[")?;
        for (index, plan) in self.planned.iter().enumerate() {
            let outcome = self.outcomes.remove(&plan.id).unwrap_or_else(|| view::canceled().to_string());
            let separator = if index == 0 { "" } else { ",\n" };
            write!(out, "{separator}{{\"plan\":{},\"outcome\":{}}}", embedded(&view::plan(plan).to_string()), embedded(&outcome))?;
        }
        write!(out, "]</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n")?;
        out.flush()
    }
}

impl<W: Write> Reporter for Html<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::RunStarted { cases, .. } => self.planned.clone_from(cases),
            Event::CaseFinished(outcome) => {
                self.outcomes.insert(outcome.id, view::outcome(outcome, &mut self.budget).to_string());
            }
            Event::TransportSpecific { suite, name, failed, passed, parting } => {
                let text = |text: &str| crate::escape(text).into_owned();
                let verdicts = words::transport_specific(failed, passed);
                let parting = parting.as_deref().map(words::parting).into_iter().flatten();
                let parting: Vec<Value> =
                    parting.map(|(label, received)| json!([label, crate::escape_line(&received, view::LINE)])).collect();
                self.specific.push(json!({ "suite": text(suite), "name": text(name), "verdicts": text(&verdicts), "parting": parting }));
            }
            Event::Notice { diagnostic } => self.notices.push(diagnostic.clone()),
            Event::Covered(coverage) => self.coverage.push(coverage.clone()),
            Event::RunFinished { counts, duration } => return self.write(counts, *duration),
            Event::CaseStarted { .. } => {}
        }
        Ok(())
    }
}

/// As a content security policy names a script or a style.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

/// JSON that an HTML parser reads as plain text: it contains neither `</script` nor `<!--`.
fn embedded(json: &str) -> String {
    json.replace('<', "\\u003c")
}
