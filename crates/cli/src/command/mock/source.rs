//! What a mock answers from: the file, and what it is. Knows files, no servers.

use super::suite;
use super::written::{self, WrittenAnswers};
use crate::command::trace;
use crate::failure::Failure;
use crate::faults::told;
use crate::recording::later_recordings;
use crate::{contracts, output, settings};
use mcproof_record::{Direction, Transcript};
use mcproof_relay::mock::{Answers, CallNumbers, ContractAnswers, Ignored, RecordedAnswers, RecordedSession, Recording, Repetition};
use mcproof_report::{escape, escape_line};
use mcproof_suite::Environment;
use mcproof_suite::file_kind::is_suite;
use mcproof_trace::calls::CallKind;
use mcproof_trace::{CallStream, Item, SessionKey, Trace, TraceError, TraceLine, TraceRoom};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Characters of the name of a tool in a message.
const LONGEST_NAME: usize = 100;

/// Reads a trace, a lock, a suite, or what is written by hand; several traces, or those of a directory, as one.
pub(super) fn read(paths: &[PathBuf], ignored: &[String], repetition: Repetition) -> Result<Box<dyn Answers>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => files.extend(traces_in(path)?),
            false => files.push(path.clone()),
        }
    }
    let [path] = files.as_slice() else {
        let (mut sessions, mut room) = (Vec::new(), TraceRoom::default());
        for file in &files {
            sessions.extend(recording(file, Some(&mut room))?.sessions);
        }
        return recorded(&files, Recording { sessions }, ignored, repetition);
    };
    let is_written = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    if !is_written {
        return read_base(path, ignored, repetition);
    }
    let cannot = |error: std::io::Error| Failure::cannot_read(path, &error);
    let text = mcproof_suite::bounds::read_text(path).map_err(cannot)?;
    let environment = Environment { variables: settings::variables(), ..Environment::default() };
    if is_suite(&text) {
        return suite::read(path, &text, &environment, ignored, repetition);
    }
    let mock = written::load(path, &text, &environment).map_err(told)?;
    let base = match &mock.base {
        None => None,
        Some((base, place)) => {
            let read = read_base(base, ignored, repetition);
            Some(read.map_err(|failure| failure.at(place.clone()))?)
        }
    };
    Ok(Box::new(WrittenAnswers::new(mock, base)))
}

/// The traces in a directory, in the order of their names.
fn traces_in(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let cannot = |error: std::io::Error| Failure::cannot_read(folder, &error);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        if path.is_file() && path.extension().is_some_and(|extension| extension == "mcptrace") {
            files.push(path);
        }
    }
    files.sort();
    match files.is_empty() {
        true => Err(Failure::bad_input("empty-recording", format!("{} has no trace (*.mcptrace)", folder.display()))),
        false => Ok(files),
    }
}

fn read_base(path: &Path, ignored: &[String], repetition: Repetition) -> Result<Box<dyn Answers>, Failure> {
    if let Some(text) = lock_text(path)? {
        let answers = ContractAnswers::new(&contracts::read_lock(path, &text)?);
        if answers.leaves_out_tasks() {
            output::talk(
                "note: a lock does not say how tasks go on, so that the mock declares none and lists its tools without `execution`\n",
            );
        }
        for tool in answers.unmade() {
            let tool = escape_line(tool, LONGEST_NAME);
            let why = "no value was found that its output schema accepts; a call of it makes the exit code 1";
            output::talk(&format!("note: `{tool}` has no result: {why}\n"));
        }
        return Ok(Box::new(answers));
    }
    let later: Vec<String> = later_recordings(path).iter().map(|file| escape(&file.display().to_string()).into_owned()).collect();
    if !later.is_empty() {
        let first = escape(&path.display().to_string()).into_owned();
        output::talk(&format!("note: {} is of a later start; to have all: mcproof mock {first} {}\n", later.join(", "), later.join(" ")));
    }
    recorded(&[path.to_owned()], recording(path, None)?, ignored, repetition)
}

fn recorded(files: &[PathBuf], recording: Recording, ignored: &[String], repetition: Repetition) -> Result<Box<dyn Answers>, Failure> {
    let names = files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" ");
    if recording.sessions.is_empty() {
        let failure = Failure::bad_input("empty-recording", format!("{names} has no request of a client"));
        return Err(failure.hint("record one with `--trace FILE` of another command, such as `mcproof call`"));
    }
    if recording.eras().is_empty() {
        let failure = Failure::bad_input("no-handshake", format!("no server got through the handshake in {names}"));
        return Err(failure.hint(format!("`mcproof trace show {names}` shows what was recorded")));
    }
    if !recording.sessions.iter().any(RecordedSession::has_handshake) {
        output::talk("note: no `server/discover` was recorded: the name and the capabilities of the mock are made up from what was used\n");
    }
    Ok(Box::new(RecordedAnswers::new(recording, Ignored(ignored.to_vec()), repetition)))
}

/// The text of a file that is a lock.
fn lock_text(path: &Path) -> Result<Option<String>, Failure> {
    /// Bytes in which a lock names its contracts, or is none.
    const LARGEST: u64 = 64 << 20;
    let cannot = |error: std::io::Error| Failure::cannot_read(path, &error);
    let about = fs::metadata(path).map_err(cannot)?;
    if !about.is_file() || about.len() > LARGEST {
        return Ok(None);
    }
    let bytes = mcproof_suite::bounds::read_input(path).map_err(cannot)?;
    let is_lock = bytes.trim_ascii_start().starts_with(b"{")
        && serde_json::from_slice::<serde_json::Value>(&bytes).is_ok_and(|value| value.get("contracts").is_some());
    Ok(if is_lock { String::from_utf8(bytes).ok() } else { None })
}

/// The sessions of a trace, which takes its part of the room that several share. Its requests have the numbers that `mcproof trace show` gives them.
fn recording(path: &Path, mut room: Option<&mut TraceRoom>) -> Result<Recording, Failure> {
    let cannot = |error: TraceError| match error {
        TraceError::TooLarge { .. } => trace::unreadable(path, &error),
        _ => Failure::bad_input("cannot-read", format!("cannot read {}: {error}", path.display()))
            .hint("a mock takes a trace (`--trace FILE` of other commands) or a lock (`mcproof lock`)"),
    };
    let mut sessions: BTreeMap<SessionKey, Transcript> = BTreeMap::new();
    let given = room.as_deref().copied().unwrap_or_default();
    for line in Trace::open(path).map_err(cannot)?.within(given) {
        if let TraceLine::Frame(frame) = line.map_err(cannot)? {
            if let Some(room) = &mut room {
                let bytes = serde_json::to_vec(&frame).map_or(0, |text| text.len() as u64);
                **room = TraceRoom { lines: room.lines.saturating_sub(1), bytes: room.bytes.saturating_sub(bytes) };
            }
            sessions.entry(frame.session).or_default().frames.push(frame.into_frame());
        }
    }
    let mut numbers = CallNumbers::new();
    let keys: Vec<SessionKey> = sessions.keys().copied().collect();
    let transcripts: Vec<Transcript> = sessions.into_values().collect();
    // A pipe can be read only once.
    if !path.is_file() {
        return Ok(Recording::of(&transcripts));
    }
    for item in CallStream::new(Trace::open(path).map_err(cannot)?.within(given)) {
        let Item::Call(call) = item.map_err(cannot)? else { continue };
        // A further client of a proxy has a session there that is not in the file.
        let place = keys.iter().position(|key| *key == call.session).or_else(|| (transcripts.len() == 1).then_some(0));
        if let (CallKind::Request, Direction::ToServer, Some(place), Some(first)) = (call.kind, call.direction, place, call.frames.first())
        {
            numbers.entry((place, *first)).or_default().push(call.key.0);
        }
    }
    // They come as they end.
    numbers.values_mut().for_each(|calls| calls.sort_unstable());
    Ok(Recording::numbered(&transcripts, &numbers))
}
