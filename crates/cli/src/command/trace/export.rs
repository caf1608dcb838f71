//! `mcproof trace export FILE --FORMAT`.

#[cfg(feature = "ui")]
use super::html;
use super::{contract, markdown, open, suite, told, unreadable};
use crate::ci_commands::BrokenUp;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::whole_file::WholeFile;
use mcproof_trace::export::{ExportError, write_har, write_lines, write_otlp};
use mcproof_trace::{Ending, Trace};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Convert a trace: HAR, OpenTelemetry, Markdown, HTML, a suite, a lock, JSON lines
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof trace export a.mcptrace --har --output a.har
  mcproof trace export a.mcptrace --markdown >> \"$GITHUB_STEP_SUMMARY\"
  mcproof trace export a.mcptrace --suite --output recorded.mcproof.yaml
  mcproof trace export a.mcptrace --lock --output mcproof.lock
  mcproof trace export a.mcptrace --jsonl | jq -c 'select(.frame) | .frame.body'")]
pub(super) struct Arguments {
    /// Trace file, or `-` for stdin
    file: PathBuf,
    #[command(flatten)]
    format: Format,
    /// File to write [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Name of the server that the suite tests, or that the lock is of, if the trace has several
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Format {
    /// HAR 1.2, for browsers and proxies; what went over stdio is mapped and marked
    #[arg(long)]
    har: bool,
    /// OpenTelemetry spans as OTLP/JSON, with the semantic conventions of MCP
    #[arg(long)]
    otlp: bool,
    /// A summary for a pull request
    #[arg(long)]
    markdown: bool,
    /// One page that opens offline, with what `mcproof ui FILE` shows
    #[cfg(feature = "ui")]
    #[arg(long)]
    html: bool,
    /// A test suite that repeats the recorded requests
    #[arg(long)]
    suite: bool,
    /// The contract of the server as a lock, as far as the clients of the trace have listed it
    #[arg(long)]
    lock: bool,
    /// The trace as plain JSON lines; see `mcproof schema trace`
    #[arg(long)]
    jsonl: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { file, format, output, server } = arguments;
    if server.is_some() && !format.suite && !format.lock {
        return Err(Failure::bad_input("bad-arguments", "`--server` requires --suite or --lock"));
    }
    if format.suite {
        return suite::run(file, output.as_deref(), server.as_deref());
    }
    if format.lock {
        return contract::run(file, output.as_deref(), server.as_deref());
    }
    let trace = open(file)?;
    match output {
        None => {
            // A page has no other way to write these characters, and nobody prints one in a job.
            let outcome = match format.html {
                true => write(format, trace, &mut BufWriter::new(Stdout)),
                false => write(format, trace, &mut BufWriter::new(BrokenUp::new(Stdout))),
            };
            settle(file, outcome)?;
        }
        Some(path) => {
            let cannot = |error: io::Error| Failure::cannot_write(path, &error);
            let exported = WholeFile::begin(path).map_err(cannot)?;
            let mut writer = exported.writer().map_err(cannot)?;
            let outcome = write(format, trace, &mut writer);
            settle(file, outcome)?;
            writer.flush().and_then(|()| exported.keep()).map_err(cannot)?;
        }
    }
    Ok(Exit::Passed)
}

/// Gives how the trace ends.
fn write(format: &Format, trace: Trace, out: &mut dyn Write) -> Result<Option<Ending>, ExportError> {
    if format.har {
        write_har(trace, out)?;
    } else if format.otlp {
        write_otlp(trace, out)?;
    } else if format.jsonl {
        write_lines(trace, out)?;
    } else {
        #[cfg(feature = "ui")]
        if format.html {
            return html::write(trace, out).map(Some);
        }
        return markdown::write(trace, out).map(Some);
    }
    Ok(None)
}

fn settle(file: &Path, outcome: Result<Option<Ending>, ExportError>) -> Result<(), Failure> {
    match outcome {
        Ok(ending) => {
            ending.and_then(told).into_iter().for_each(output::talk);
            Ok(())
        }
        Err(ExportError::Read(error)) => Err(unreadable(file, &error)),
        // A reader that has seen enough, such as `head`, is no failure.
        Err(ExportError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error @ ExportError::Write(_)) => Err(Failure::bad_input("cannot-write", error.to_string())),
    }
}

/// The data that a command prints.
struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = output::data(bytes).map_err(|failure| io::Error::other(failure.diagnostic.message.clone()));
        written.and_then(|()| if output::is_abandoned() { Err(ErrorKind::BrokenPipe.into()) } else { Ok(bytes.len()) })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
