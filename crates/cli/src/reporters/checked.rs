//! The reporters of a check. Most reporters of runs render it as a run; terminal, JSON and SARIF have a separate format.

use super::destination::Destination;
use super::{ReportFormat, ReporterArgs, Writer, Written, all, reporter, settle};
use crate::failure::Failure;
use crate::{output, settings};
use mcproof_record::{CheckReport, Conclusion};
use mcproof_report::json::{self, Visible};
use mcproof_report::terminal::Detail;
use mcproof_report::{Color, Repeat, Reporter, Style, agent, check, sarif};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

pub(crate) struct CheckReporters {
    sinks: Vec<Sink>,
}

struct Sink {
    name: String,
    shape: Shape,
    destination: Destination,
}

enum Shape {
    Stdout,
    Text(Writer),
    Agent(Writer),
    Document(Writer),
    Sarif(Writer),
    Run(Box<dyn Reporter>),
}

impl ReporterArgs {
    /// Opens all of them, so that a mistyped path costs no check. `used` are the files that the check reads, or writes otherwise.
    pub(crate) fn open_for_check(&self, used: impl FnOnce() -> Result<Vec<PathBuf>, Failure>) -> Result<CheckReporters, Failure> {
        let (wanted, shares_stdout) = self.checked(used)?;
        let mut sinks = Vec::new();
        for wanted in &wanted {
            let destination = wanted.destination()?;
            let shape = match (wanted.form, &wanted.file) {
                (ReportFormat::Terminal, None) => Shape::Stdout,
                (ReportFormat::Terminal, Some(_)) => Shape::Text(destination.writer()?),
                (ReportFormat::Agent, _) => Shape::Agent(destination.writer()?),
                (ReportFormat::Json, _) => Shape::Document(destination.writer()?),
                (ReportFormat::Sarif, _) => Shape::Sarif(destination.writer()?),
                _ => Shape::Run(reporter(wanted, &destination, Detail::Normal, &Repeat::default(), shares_stdout)?),
            };
            sinks.push(Sink { name: wanted.name(), shape, destination });
        }
        Ok(CheckReporters { sinks })
    }
}

impl CheckReporters {
    /// Writes every report. `file` is where findings are shown by services that want a file.
    pub(crate) fn write(
        self,
        report: &CheckReport,
        conclusion: Conclusion,
        repeat: &Repeat,
        duration: Duration,
        file: &str,
    ) -> Result<Written, Failure> {
        let mut settled = Vec::new();
        for Sink { name, shape, destination } in self.sinks {
            let outcome = match shape {
                Shape::Stdout => {
                    output::show(&check::render(report, &settings::style()))?;
                    Ok(())
                }
                Shape::Text(mut writer) => {
                    let style = Style { color: Color::Plain, width: settings::WIDTH, ..settings::style() };
                    writer.write_all(check::render(report, &style).as_bytes()).and_then(|()| writer.flush())
                }
                Shape::Agent(writer) => agent::write_check(writer, report, conclusion, repeat),
                Shape::Document(mut writer) => json::write_check(&mut writer, report),
                Shape::Sarif(writer) => document(writer, &sarif::document(report, file)),
                Shape::Run(mut reporter) => check::as_run(report, duration).iter().try_for_each(|event| reporter.event(event)),
            };
            settled.push(settle(&name, outcome.and_then(|()| destination.keep())));
        }
        Ok(all(settled.into_iter()))
    }
}

fn document(mut writer: Writer, value: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer(Visible(&mut writer), value)?;
    writer.write_all(b"\n")?;
    writer.flush()
}
