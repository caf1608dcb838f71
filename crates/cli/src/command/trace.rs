//! `mcproof trace`: looks into recorded sessions, offline. The formats are those of the crate `mcproof-trace`.

mod attach;
mod contract;
mod diff;
mod export;
mod grep;
#[cfg(feature = "ui")]
mod html;
mod lines;
mod markdown;
mod redact;
mod show;
pub(super) mod suite;
mod view;

use crate::exit::Exit;
use crate::failure::Failure;
use mcproof_record::{Diagnostic, Place, Transcript};
use mcproof_trace::filter::Filter;
use mcproof_trace::{Ending, SessionKey, Trace, TraceError, TraceLine, TraceRoom};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use tempfile::NamedTempFile;

/// Show, view, search, compare, export and redact traces, and add files to them
///
/// A trace is what `--trace FILE` of the other commands writes: all traffic with its times, as it was. `-` reads one from stdin.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("Examples:
  mcproof call search query=coffee --trace a.mcptrace -- node server.js
  mcproof trace show a.mcptrace
  mcproof trace show a.mcptrace 2
  mcproof trace view
  mcproof trace grep 'method:tools/call status:error' a.mcptrace
  mcproof trace diff before.mcptrace after.mcptrace
  mcproof trace export a.mcptrace --har --output a.har
  mcproof trace export a.mcptrace --lock --output mcproof.lock

{FILTERS}"))]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const FILTERS: &str = "\
Filters:
  method:tools/call  tool:search  prompt:NAME  uri:FILE  target:NAME   `*` matches any text; quote values with spaces
  status:error       or ok, pending, input-required, tool-error, rpc-error, http-error, canceled, no-response
  duration:>500ms    at:>1.2s at:<2s  (since the session began)  code:-32602  http:>=400  id:7  call:12  session:2
  dir:in|out         from or to the server; kind:request|notification|http|unmatched
  server:  transport:  client:  test:  text:WORD or just WORD
  A B, A OR B, -A, (…)";

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show the calls of a trace, or one of them as a whole
    Show(show::Arguments),
    /// View a trace in the terminal, also while it is being written
    View(view::Arguments),
    /// Search for calls: exit code 0 if there are any, 1 if there are none
    Grep(grep::Arguments),
    /// Compare two traces: exit code 1 if they differ
    Diff(diff::Arguments),
    /// Convert a trace: HAR, OpenTelemetry, Markdown, HTML, a suite, a lock, JSON lines
    Export(export::Arguments),
    /// Replace secrets in a trace
    ///
    /// Finds each secret in every form: as it is, escaped, as hexadecimal digits and in Base64.
    Redact(redact::Arguments),
    /// Add files to a trace, such as screenshots
    ///
    /// They are kept as they are: secrets in them are not replaced. `mcproof trace show` lists them, and `unzip FILE 'attachments/*'` gets them out.
    Attach(attach::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.command {
        Command::Show(arguments) => show::run(arguments),
        Command::View(arguments) => view::run(arguments),
        Command::Grep(arguments) => grep::run(arguments),
        Command::Diff(arguments) => diff::run(arguments),
        Command::Export(arguments) => export::run(arguments),
        Command::Redact(arguments) => redact::run(arguments),
        Command::Attach(arguments) => attach::run(arguments),
    }
}

/// Opens a trace; `-` is stdin.
fn open(path: &Path) -> Result<Trace, Failure> {
    let opened = if path == Path::new("-") { Trace::from_reader(Box::new(io::stdin())) } else { Trace::open(path) };
    opened.map_err(|error| unreadable(path, &error))
}

/// A trace that is read more than once: the file itself, or a copy of stdin that goes with the value.
enum Reopenable<'a> {
    Named(&'a Path),
    Copied(NamedTempFile),
}

impl<'a> Reopenable<'a> {
    fn of(path: &'a Path) -> Result<Self, Failure> {
        if path != Path::new("-") {
            return Ok(Self::Named(path));
        }
        let copied = NamedTempFile::new().and_then(|mut file| io::copy(&mut io::stdin(), &mut file).map(|_| file));
        copied.map(Self::Copied).map_err(|error| unreadable(path, &TraceError::Io(error)))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Named(path) => path,
            Self::Copied(file) => file.path(),
        }
    }
}

type Sessions = BTreeMap<SessionKey, Transcript>;

/// The sessions of a trace, all of it no larger than this, and the attachment of this name if it has one.
pub(crate) fn sessions_with(path: &Path, name: &str, room: TraceRoom) -> Result<(Sessions, Option<Vec<u8>>), Failure> {
    let cannot = |error: TraceError| unreadable(path, &error);
    let (mut sessions, mut found) = (Sessions::new(), None);
    for line in Trace::open(path).map_err(cannot)?.within(room) {
        match line.map_err(cannot)? {
            TraceLine::Session(session) => drop(sessions.entry(session.key).or_default()),
            TraceLine::Frame(frame) => sessions.entry(frame.session).or_default().frames.push(frame.into_frame()),
            TraceLine::Omitted(omitted) => sessions.entry(omitted.session).or_default().dropped += omitted.frames,
            TraceLine::Attachment(file) if file.name == name => found = Some(file.bytes.as_bytes().to_vec()),
            _ => {}
        }
    }
    Ok((sessions, found))
}

/// What to do with a trace that is too large for a command that keeps it in memory.
const CUT: &str = "use a part of it, which is a trace as well: `mcproof trace export FILE --jsonl | head -n 50000 > part.jsonl`";

pub(crate) fn unreadable(path: &Path, error: &TraceError) -> Failure {
    let shown = if path == Path::new("-") { "stdin".into() } else { path.display().to_string() };
    let failure = Failure::bad_input("cannot-read-trace", format!("cannot read {shown}: {error}"));
    match error {
        TraceError::NotATrace(_) => failure.hint("write one with --trace FILE.mcptrace"),
        TraceError::TooNew { .. } => failure.hint("update mcproof"),
        TraceError::TooLarge { .. } => failure.hint(CUT),
        TraceError::Io(_) | TraceError::Damaged(_) => failure,
    }
}

/// A filter as typed, with its mistake shown in it.
fn filter(text: &str) -> Result<Filter, Failure> {
    Filter::parse(text).map_err(|error| {
        let place = Place {
            file: "filter".into(),
            line: 1,
            column: u32::try_from(error.column + 1).unwrap_or(u32::MAX),
            length: u32::try_from(error.length).unwrap_or(1),
            text: text.to_owned(),
        };
        let mut diagnostic = Diagnostic::error("bad-filter", error.message);
        diagnostic.hint = error.hint;
        Failure::new(Exit::BadInput, diagnostic).at(place)
    })
}

/// What is said of a trace that does not end as it should.
fn told(ending: Ending) -> Option<&'static str> {
    (ending == Ending::CutOff).then_some("the trace is cut off: whoever wrote it was killed, or still writes it\n")
}
