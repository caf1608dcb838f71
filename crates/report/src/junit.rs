//! A run as JUnit XML, in the form that CI systems read: a `testsuite` for each suite file and transport. What that form has no
//! place for (era, protocol version, steps) stands in properties and in `system-out`. Knows no CI system.

use crate::escape::{self, Lines};
use crate::{Reporter, Style, diagnostic, words};
use mcproof_record::{CaseOutcome, CasePlan, Diagnostic, Event, Summary, Verdict, fold};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event as Xml};
use std::io::{self, Write};
use std::time::Duration;

/// A sink of events that writes the whole report when the run has finished.
pub struct Junit<W> {
    writer: W,
    summary: Summary,
    notices: Vec<Diagnostic>,
}

impl<W: Write> Junit<W> {
    pub fn new(writer: W) -> Self {
        Self { writer, summary: Summary::default(), notices: Vec::new() }
    }

    pub fn into_inner(self) -> W {
        self.writer
    }

    /// The cases of each suite file on each transport, in the order of the plan.
    fn suites(&self) -> Vec<Suite<'_>> {
        let mut suites: Vec<Suite> = Vec::new();
        for plan in &self.summary.planned {
            let case = Case { plan, outcome: self.summary.outcomes.get(&plan.id) };
            match suites.iter_mut().find(|suite| suite.file == plan.suite && suite.transport == plan.transport) {
                Some(suite) => suite.cases.push(case),
                None => suites.push(Suite { file: &plan.suite, transport: &plan.transport, cases: vec![case] }),
            }
        }
        suites
    }

    fn document(&self, duration: Duration) -> io::Result<Vec<u8>> {
        let suites = self.suites();
        let all: Vec<&Case> = suites.iter().flat_map(|suite| &suite.cases).collect();
        let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
        xml.write_event(Xml::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
        let attributes = [
            ("name", "mcproof".to_owned()),
            ("tests", all.len().to_string()),
            ("failures", with(&all, Verdict::Fail).to_string()),
            ("errors", with(&all, Verdict::Canceled).to_string()),
            ("time", seconds(duration)),
        ];
        element(&mut xml, "testsuites", &attributes, |xml| {
            suites.iter().enumerate().try_for_each(|(index, suite)| {
                // The format has no element for notices of a whole run: the first suite gets them.
                suite.write(xml, if index == 0 { &self.notices } else { &[] })
            })
        })?;
        let mut document = xml.into_inner();
        document.push(b'\n');
        Ok(document)
    }
}

impl<W: Write> Reporter for Junit<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::CaseFinished(outcome) => fold(&mut self.summary, &Event::CaseFinished(outcome.clone_without_transcripts())),
            Event::Notice { diagnostic } => self.notices.push(diagnostic.clone()),
            other => fold(&mut self.summary, other),
        }
        if let Event::RunFinished { duration, .. } = event {
            self.writer.write_all(&self.document(*duration)?)?;
            self.writer.flush()?;
        }
        Ok(())
    }
}

type Out = Writer<Vec<u8>>;

struct Suite<'a> {
    file: &'a str,
    transport: &'a str,
    cases: Vec<Case<'a>>,
}

struct Case<'a> {
    plan: &'a CasePlan,
    /// None where the run was stopped before the case had one.
    outcome: Option<&'a CaseOutcome>,
}

impl Case<'_> {
    fn verdict(&self) -> Verdict {
        self.outcome.map_or(Verdict::Canceled, |outcome| outcome.verdict)
    }
}

fn with<'a>(cases: impl IntoIterator<Item = &'a &'a Case<'a>>, verdict: Verdict) -> usize {
    cases.into_iter().filter(|case| case.verdict() == verdict).count()
}

impl Suite<'_> {
    fn write(&self, xml: &mut Out, notices: &[Diagnostic]) -> io::Result<()> {
        let cases: Vec<&Case> = self.cases.iter().collect();
        let time: Duration = cases.iter().filter_map(|case| case.outcome).map(|outcome| outcome.duration).sum();
        let attributes = [
            ("name", format!("{} [{}]", self.file, self.transport)),
            ("tests", cases.len().to_string()),
            ("failures", with(&cases, Verdict::Fail).to_string()),
            ("errors", with(&cases, Verdict::Canceled).to_string()),
            ("skipped", with(&cases, Verdict::Skipped).to_string()),
            ("time", seconds(time)),
            ("file", self.file.to_owned()),
        ];
        element(xml, "testsuite", &attributes, |xml| {
            element(xml, "properties", &[], |xml| {
                self.properties()
                    .into_iter()
                    .try_for_each(|(name, value)| empty(xml, "property", &[("name", name.into()), ("value", value)]))
            })?;
            cases.iter().try_for_each(|case| case.write(xml))?;
            if notices.is_empty() { Ok(()) } else { text(xml, "system-err", &diagnostic::render_all(notices, &style())) }
        })
    }

    /// What the wire proved about the cases; several values where they differ.
    fn properties(&self) -> Vec<(&'static str, String)> {
        let proof = || self.cases.iter().filter_map(|case| case.outcome).flat_map(|outcome| &outcome.proof);
        let mut tags: Vec<&str> = self.cases.iter().flat_map(|case| &case.plan.tags).map(String::as_str).collect();
        tags.sort_unstable();
        tags.dedup();
        let mut properties = vec![("transport", self.transport.to_owned())];
        properties.extend(distinct("era", proof().map(|proof| proof.era.as_str())));
        properties.extend(distinct("protocol-version", proof().map(|proof| proof.protocol_version.as_str())));
        properties.extend(distinct("tags", tags.into_iter()));
        properties
    }
}

impl Case<'_> {
    fn write(&self, xml: &mut Out) -> io::Result<()> {
        let CasePlan { suite, transport, tags, .. } = self.plan;
        let mut attributes = vec![("name", words::case_name(self.plan)), ("classname", class_name(suite, transport))];
        attributes.push(("time", seconds(self.outcome.map(|outcome| outcome.duration).unwrap_or_default())));
        if !tags.is_empty() {
            attributes.push(("group", tags.join(",")));
        }
        element(xml, "testcase", &attributes, |xml| {
            self.verdict_element(xml)?;
            let Some(outcome) = self.outcome else { return Ok(()) };
            let output = output(outcome);
            if !output.is_empty() {
                text(xml, "system-out", &output)?;
            }
            let stderr: Vec<String> = outcome
                .diagnostics
                .iter()
                .filter_map(|found| found.evidence.as_ref())
                .flat_map(|evidence| &evidence.stderr)
                .map(|line| safe(line, Lines::One))
                .collect();
            if stderr.is_empty() { Ok(()) } else { text(xml, "system-err", &stderr.join("\n")) }
        })
    }

    fn verdict_element(&self, xml: &mut Out) -> io::Result<()> {
        let diagnostics = self.outcome.map_or(&[][..], |outcome| &outcome.diagnostics);
        let first = diagnostics.first();
        let message = first.map(|diagnostic| diagnostic.message.clone()).unwrap_or_default();
        let code = first.map_or("failed", |diagnostic| &diagnostic.code).to_owned();
        match self.verdict() {
            Verdict::Pass => Ok(()),
            Verdict::Fail => {
                let attributes = [("type", code), ("message", message)];
                element(xml, "failure", &attributes, |xml| characters(xml, &diagnostic::render_all(diagnostics, &style())))
            }
            Verdict::Flaky => {
                let attempts = self.outcome.map_or(1, |outcome| outcome.attempts);
                (1..attempts).try_for_each(|attempt| {
                    let attributes = [("type", "flaky".into()), ("message", format!("attempt {attempt} of {attempts} failed"))];
                    let shown = diagnostic::render_all(diagnostics, &style());
                    element(xml, "flakyFailure", &attributes, |xml| if shown.is_empty() { Ok(()) } else { text(xml, "stackTrace", &shown) })
                })
            }
            Verdict::Skipped => empty(xml, "skipped", &[("message", message)]),
            Verdict::Canceled => {
                let message = if message.is_empty() { "the run was stopped before this test was done".into() } else { message };
                empty(xml, "error", &[("type", "canceled".into()), ("message", message)])
            }
        }
    }
}

/// What happened, in lines: the transport and era that were used, the steps, and the state of the server afterwards.
fn output(outcome: &CaseOutcome) -> String {
    let mut lines: Vec<String> = outcome.proof.iter().map(words::proof).collect();
    if outcome.verdict == Verdict::Flaky {
        lines.push(words::attempts(outcome.attempts));
    }
    lines.extend(outcome.steps.iter().map(|step| {
        let mark = if step.passed { "ok" } else { "failed" };
        format!("+{:.3} s {} {mark} in {:.3} s", step.at.as_secs_f64(), step.title, step.duration.as_secs_f64())
    }));
    if outcome.verdict == Verdict::Pass && !outcome.diagnostics.is_empty() {
        lines.extend(diagnostic::render_all(&outcome.diagnostics, &style()).lines().map(str::to_owned));
    }
    lines.extend(words::aftermath(&outcome.aftermath, &outcome.diagnostics));
    lines.iter().map(|line| safe(line, Lines::One)).collect::<Vec<_>>().join("\n")
}

fn style() -> Style {
    Style::default()
}

/// `suites.shop.stdio` for `suites/shop.mcproof.yaml` over stdio: CI systems build a tree from its dots.
fn class_name(suite: &str, transport: &str) -> String {
    let stem = suite.trim_start_matches("./").trim_end_matches(".yaml").trim_end_matches(".yml").trim_end_matches(".mcproof");
    format!("{}.{transport}", stem.replace(['/', '\\'], ".").trim_start_matches('.'))
}

fn distinct<'a>(name: &'static str, values: impl Iterator<Item = &'a str>) -> Option<(&'static str, String)> {
    let mut seen: Vec<&str> = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    (!seen.is_empty()).then(|| (name, seen.join(", ")))
}

fn seconds(duration: Duration) -> String {
    format!("{:.3}", duration.as_secs_f64())
}

fn element(
    xml: &mut Out,
    name: &str,
    attributes: &[(&'static str, String)],
    content: impl FnOnce(&mut Out) -> io::Result<()>,
) -> io::Result<()> {
    let attributes: Vec<(&str, String)> = attributes.iter().map(|(name, value)| (*name, safe(value, Lines::One))).collect();
    let attributes = attributes.iter().map(|(name, value)| (*name, value.as_str()));
    xml.create_element(name).with_attributes(attributes).write_inner_content(content).map(drop)
}

fn empty(xml: &mut Out, name: &str, attributes: &[(&'static str, String)]) -> io::Result<()> {
    let attributes: Vec<(&str, String)> = attributes.iter().map(|(name, value)| (*name, safe(value, Lines::One))).collect();
    xml.create_element(name).with_attributes(attributes.iter().map(|(name, value)| (*name, value.as_str()))).write_empty().map(drop)
}

fn text(xml: &mut Out, name: &str, text: &str) -> io::Result<()> {
    element(xml, name, &[], |xml| characters(xml, text))
}

fn characters(xml: &mut Out, text: &str) -> io::Result<()> {
    xml.write_event(Xml::Text(BytesText::new(&safe(text, Lines::Many))))
}

/// Text without characters that XML 1.0 does not allow, even escaped, and without invisible ones.
fn safe(text: &str, lines: Lines) -> String {
    escape::escape_also(text, lines, |character| matches!(character, '\u{fffe}' | '\u{ffff}'))
}
