//! `mcproof trace redact FILE`: what was not known to be a secret when it was recorded.

use super::{open, told, unreadable};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{output, recording, settings};
use mcproof_client::FrameRedactor;
use mcproof_client::redaction::Redactor;
use mcproof_trace::{CONTRACT, Manifest, MarkBody, SessionInfo, SessionKey, TraceLine, TraceWriter};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof trace redact a.mcptrace --secret env:API_TOKEN --output clean.mcptrace")]
pub(super) struct Arguments {
    /// Trace file, or `-` for stdin
    file: PathBuf,
    /// Where the secret is: env:NAME or file:PATH; may be repeated
    #[arg(long, required = true, value_name = "WHERE")]
    secret: Vec<String>,
    /// File to write; not the trace itself
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let secrets = arguments.secret.iter().map(|place| secret(place)).collect::<Result<Vec<_>, _>>()?;
    let is_same = |path: &Path| path.canonicalize().ok();
    if is_same(&arguments.output).is_some_and(|output| is_same(&arguments.file) == Some(output)) {
        return Err(Failure::bad_input("same-file", "--output is the trace itself").hint("write another file, then replace the trace"));
    }
    let mut trace = open(&arguments.file)?;
    let redactor = Redactor::new(secrets.clone());
    let text = |value: &str| redactor.text(value).into_owned();
    let manifest = trace.manifest().clone();
    let manifest = Manifest { command: manifest.command.iter().map(|word| text(word)).collect(), ..manifest };
    let mut copy =
        Copy { writer: recording::create(&arguments.output, manifest)?, keys: BTreeMap::new(), frames: BTreeMap::new(), secrets };
    for line in &mut trace {
        copy.line(line.map_err(|error| unreadable(&arguments.file, &error))?, &redactor);
    }
    told(trace.ending()).into_iter().for_each(output::talk);
    recording::finish(copy.writer, &arguments.output)?;
    Ok(Exit::Passed)
}

struct Copy {
    writer: TraceWriter,
    /// What the sessions are called in the copy.
    keys: BTreeMap<SessionKey, SessionKey>,
    frames: BTreeMap<SessionKey, FrameRedactor>,
    secrets: Vec<String>,
}

impl Copy {
    fn line(&mut self, line: TraceLine, redactor: &Redactor) {
        let text = |value: String| redactor.text(&value).into_owned();
        match line {
            TraceLine::Session(session) => {
                let known = self.keys.get(&session.key).copied();
                let clean = SessionInfo {
                    server: text(session.server),
                    client: session.client.map(text),
                    test: session.test.map(text),
                    cwd: session.cwd.map(text),
                    ..session
                };
                match known {
                    Some(key) => self.writer.describe_session(SessionInfo { key, ..clean }),
                    None => drop(self.keys.insert(clean.key, self.writer.begin_session(clean.clone()))),
                }
            }
            TraceLine::Frame(frame) => {
                let key = self.key(frame.session);
                let clean = self.frames.entry(frame.session).or_insert_with(|| FrameRedactor::new(self.secrets.clone()));
                self.writer.frame(key, &clean.frame(frame.into_frame()));
            }
            TraceLine::Mark(mut mark) => {
                mark.session = self.key(mark.session);
                match &mut mark.body {
                    MarkBody::Step { title, place, .. } => {
                        (*title, place.text) = (text(std::mem::take(title)), text(std::mem::take(&mut place.text)));
                    }
                    MarkBody::Finding { message, .. } | MarkBody::Verdict { message, .. } => *message = text(std::mem::take(message)),
                    MarkBody::Note { text: note } => *note = text(std::mem::take(note)),
                }
                self.writer.mark(mark);
            }
            // Its hashes are those of what it says.
            TraceLine::Attachment(file) if file.name == CONTRACT => {
                let clean = redactor.bytes(file.bytes.as_bytes());
                match std::str::from_utf8(&clean).ok().and_then(mcproof_contract::rehashed) {
                    Some(lock) => self.writer.attach(CONTRACT, lock.as_bytes()),
                    None => output::talk(&format!("{CONTRACT} was left out: after redaction it is not a valid lock\n")),
                }
            }
            TraceLine::Attachment(file) => self.writer.attach(&text(file.name), &redactor.bytes(file.bytes.as_bytes())),
            TraceLine::Omitted(omitted) => {
                let key = self.key(omitted.session);
                self.writer.omit(key, omitted.frames, &text(omitted.reason));
            }
            TraceLine::Trace(_) | TraceLine::End(_) => {}
        }
    }

    fn key(&mut self, session: SessionKey) -> SessionKey {
        // A frame without a session line: a fragment of a trace.
        *self.keys.entry(session).or_insert_with(|| self.writer.begin_session(SessionInfo::default()))
    }
}

fn secret(place: &str) -> Result<String, Failure> {
    let found = match place.split_once(':') {
        Some(("env", name)) => settings::variable(name)
            .ok_or_else(|| Failure::bad_input("no-secret", format!("--secret {place}: the environment has no variable {name}")))?,
        Some(("file", path)) => mcproof_suite::bounds::read_text(Path::new(path))
            .map_err(|error| Failure::bad_input("no-secret", format!("--secret {place}: {error}")))?
            .trim()
            .to_owned(),
        _ => {
            let failure = Failure::bad_input("bad-secret", "--secret takes env:NAME or file:PATH");
            return Err(failure.hint("a secret on the command line would be in the history of the shell"));
        }
    };
    let redactor = Redactor::new([found.clone()]);
    if redactor.is_empty() {
        return Err(Failure::bad_input(
            "no-secret",
            format!("--secret {place}: too short to be looked for: {}", mcproof_record::counted(found.len(), "byte")),
        ));
    }
    Ok(found)
}
