//! The file of `--trace`: a trace that grows while the command runs, or, where its name ends in `.json`, the transcript as one document at
//! the end. Knows taps and files, no requests.

use crate::conversation::{self, Observer, Watching};
use crate::failure::Failure;
use crate::settings;
use crate::shown_contract::{self, ShownContract};
use crate::target::Resolved;
use crate::whole_file::WholeFile;
use mcproof_check::ConversationWatcher;
use mcproof_client::redaction::Redactor;
use mcproof_client::{Tap, Target, given_secrets};
use mcproof_record::{ContractLock, Conversation, FORMAT_VERSION, Frame, FrameBody, Transcript};
use mcproof_system::files;
use mcproof_trace::calls::CallTracker;
use mcproof_trace::{Manifest, SessionInfo, SessionKey, TraceLimits, TraceWriter};
use std::borrow::Cow;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The name of the file of one of several recordings: the proxy keeps what is there, and numbers what it writes next.
pub(crate) fn numbered(path: &Path, number: usize) -> PathBuf {
    if number == 1 {
        return path.to_owned();
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Recordings beside one that later starts of the same proxy wrote.
pub(crate) fn later_recordings(path: &Path) -> Vec<PathBuf> {
    /// More than these are not named.
    const MOST: usize = 20;
    if !path.is_file() {
        return Vec::new();
    }
    (2..=MOST).map(|number| numbered(path, number)).take_while(|file| file.is_file()).collect()
}

pub(crate) enum Recording {
    Document(PathBuf, WholeFile),
    Trace(Box<LiveTrace>),
}

pub(crate) struct LiveTrace {
    path: PathBuf,
    writer: TraceWriter,
    session: SessionInfo,
    /// Of each tap that was made, the newest last.
    keys: Arc<Mutex<Vec<SessionKey>>>,
    shown: Arc<Mutex<ShownContract>>,
}

impl Recording {
    /// Before the server is started: a mistyped path must not cost a run.
    pub(crate) fn create(path: &Path, resolved: &Resolved) -> Result<Self, Failure> {
        if is_document(path) {
            let file = WholeFile::begin(path).map_err(|error| Failure::cannot_write(path, &error))?;
            return Ok(Self::Document(path.to_owned(), file));
        }
        let secrets = Redactor::new(resolved.secrets.clone());
        let session = SessionInfo {
            // The last word of a command may be the value of a flag.
            server: secrets.text(&name_of(&resolved.target)).into_owned(),
            transport: if matches!(resolved.target, Target::Stdio(_)) { "stdio" } else { "http" }.to_owned(),
            client: Some("mcproof".into()),
            ..started(&resolved.target)
        };
        let path = file_of(path);
        let writer = create(&path, manifest(&secrets))?;
        Ok(Self::Trace(Box::new(LiveTrace { path, writer, session, keys: Arc::default(), shown: Arc::default() })))
    }

    /// What is done with the frames of a new tap.
    pub(crate) fn observer(recording: Option<&Self>, watching: Watching) -> Option<Observer> {
        let shown = conversation::observer(watching);
        let Some(Self::Trace(live)) = recording else { return shown };
        let key = live.writer.begin_session(live.session.clone());
        live.keys.lock().unwrap_or_else(PoisonError::into_inner).push(key);
        let (writer, contract) = (live.writer.clone(), Arc::clone(&live.shown));
        Some(Box::new(move |frame| {
            writer.frame(key, frame);
            contract.lock().unwrap_or_else(PoisonError::into_inner).frame(key, frame);
            if let Some(show) = &shown {
                show(frame);
            }
        }))
    }

    /// Completes the file. `tap` is the newest one.
    pub(crate) fn finish(self, tap: &Tap) -> Result<(), Failure> {
        match self {
            Self::Document(path, file) => write_document(file, &tap.transcript()).map_err(|error| Failure::cannot_write(&path, &error)),
            Self::Trace(live) => {
                let LiveTrace { path, writer, session, keys, shown } = *live;
                let key = keys.lock().unwrap_or_else(PoisonError::into_inner).last().copied();
                if let Some(key) = key {
                    writer.describe_session(tap.look(|frames| described(SessionInfo { key, ..session }, frames)));
                }
                std::mem::take(&mut *shown.lock().unwrap_or_else(PoisonError::into_inner)).attach(&writer);
                finish(writer, &path)
            }
        }
    }
}

/// Whether a file is written in the form of earlier versions, which other programs read.
pub(crate) fn is_document(path: &Path) -> bool {
    !path.is_dir() && path.extension().is_some_and(|extension| extension == "json")
}

/// The trace of a check while it runs: what a check leaves that does not come to its end.
pub(crate) struct CheckTrace {
    path: PathBuf,
    writer: TraceWriter,
    session: SessionInfo,
}

impl CheckTrace {
    /// Before the server is started: a mistyped path must not cost a check.
    pub(crate) fn begin(path: &Path, server: String, target: &Target, secrets: &Redactor) -> Result<Self, Failure> {
        let path = file_of(path);
        let transport = if matches!(target, Target::Stdio(_)) { "stdio" } else { "http" }.to_owned();
        let session = SessionInfo { server, transport, ..SessionInfo::default() };
        Ok(Self { writer: create(&path, manifest(secrets))?, session, path })
    }

    /// Each conversation is a session, from its first frame on.
    pub(crate) fn watcher(&self) -> ConversationWatcher {
        let (writer, session) = (self.writer.clone(), self.session.clone());
        Arc::new(move |name: &str| {
            let (writer, key) = (writer.clone(), OnceLock::new());
            let session = SessionInfo { client: Some(name.to_owned()), ..session.clone() };
            Box::new(move |frame: &Frame| writer.frame(*key.get_or_init(|| writer.begin_session(session.clone())), frame))
        })
    }

    /// Nothing more comes. Gives its file, which is there as it is until [`write_check`] writes over it.
    pub(crate) fn end(self) -> Result<PathBuf, Failure> {
        finish(self.writer, &self.path)?;
        Ok(self.path)
    }
}

/// Writes the conversations of a check, each a session; `report` is everything else of it. A trace that is there is written over as a whole.
pub(crate) fn write_check(
    path: &Path,
    target: &str,
    conversations: &[Conversation],
    report: &[u8],
    secrets: &Redactor,
) -> Result<(), Failure> {
    write_whole(&file_of(path), manifest(secrets), |writer| {
        for talk in conversations {
            let session = SessionInfo {
                server: target.to_owned(),
                transport: talk.transport.clone(),
                client: Some(talk.name.clone()),
                revision: Some(talk.revision.clone()),
                ..SessionInfo::default()
            };
            write_transcript(writer, session, &talk.transcript);
        }
        if let Ok(contracts) = mcproof_contract::of_check(conversations) {
            shown_contract::attach(writer, &ContractLock::new(None, contracts));
        }
        writer.attach("check.json", report);
    })
}

/// Writes a trace that takes the place of another one only when all of it is there.
pub(crate) fn write_whole(path: &Path, manifest: Manifest, write: impl FnOnce(&TraceWriter)) -> Result<(), Failure> {
    let written = WholeFile::begin(path).and_then(|file| {
        let writer = TraceWriter::onto(file.file()?, manifest, TraceLimits::default())?;
        write(&writer);
        writer.finish()?;
        file.keep()
    });
    written.map_err(|error| cannot_write(path, &error))
}

/// Adds a session that is over, and what it shows of the contract.
pub(crate) fn add_transcript(writer: &TraceWriter, shown: &mut ShownContract, session: SessionInfo, transcript: &Transcript) -> SessionKey {
    let key = write_transcript(writer, session, transcript);
    transcript.frames.iter().for_each(|frame| shown.frame(key, frame));
    key
}

fn write_transcript(writer: &TraceWriter, session: SessionInfo, transcript: &Transcript) -> SessionKey {
    let key = writer.begin_session(described(session, &mut transcript.frames.iter()));
    transcript.frames.iter().for_each(|frame| writer.frame(key, frame));
    writer.omit(key, transcript.dropped, "the limit of the transcript was reached");
    key
}

pub(crate) fn create(path: &Path, manifest: Manifest) -> Result<TraceWriter, Failure> {
    create_within(path, manifest, TraceLimits::default())
}

/// The same, of which frames beyond these limits are not stored.
pub(crate) fn create_within(path: &Path, manifest: Manifest, limits: TraceLimits) -> Result<TraceWriter, Failure> {
    let created = files::make_folder_of(path).and_then(|()| TraceWriter::with_limits(path, manifest, limits));
    created.map_err(|error| cannot_write(path, &error))
}

/// A trace, which goes to no pipe.
pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::cannot_write(path, error);
    if error.kind() == io::ErrorKind::NotSeekable {
        return failure.hint("name a file; `mcproof trace export FILE --jsonl` prints its lines");
    }
    failure
}

pub(crate) fn finish(writer: TraceWriter, path: &Path) -> Result<(), Failure> {
    writer.finish().map(drop).map_err(|error| Failure::cannot_write(path, &error))
}

/// What a trace of this process says about it.
pub(crate) fn manifest(secrets: &Redactor) -> Manifest {
    Manifest {
        mcproof: env!("CARGO_PKG_VERSION").to_owned(),
        command: without_secrets(settings::command_line(), secrets),
        started_at: jiff::Timestamp::try_from(settings::now()).ok().map(|now| now.to_string()),
        ..Manifest::default()
    }
}

/// A file, or a new one in a folder.
fn file_of(path: &Path) -> PathBuf {
    if !path.is_dir() {
        return path.to_owned();
    }
    let moment = jiff::Timestamp::try_from(settings::now()).map(|now| now.strftime("%Y%m%dT%H%M%S").to_string()).unwrap_or_default();
    path.join(format!("{moment}-{}.mcptrace", std::process::id()))
}

/// Flags whose values, or the part after the sign, are never recorded.
const SECRET_FLAGS: [&str; 7] = ["-e", "--env", "--header", "-H", "--headers", "--bearer", "--client-secret"];

fn without_secrets(words: Vec<String>, secrets: &Redactor) -> Vec<String> {
    let mut follows = false;
    let mut clean = Vec::new();
    for word in words {
        let flag = SECRET_FLAGS.iter().find(|flag| word == **flag);
        let joined = SECRET_FLAGS
            .iter()
            .find(|flag| word.len() > flag.len() && word.starts_with(**flag) && (flag.len() == 2 || word.as_bytes()[flag.len()] == b'='));
        clean.push(match (follows, joined) {
            (true, _) => masked(&word),
            (false, Some(flag)) => format!("{flag}{}", masked(&word[flag.len()..])),
            (false, None) => secrets.text(&word).into_owned(),
        });
        follows = flag.is_some();
    }
    clean
}

/// A name stays, its value goes. Where a secret is stands in no need of hiding.
fn masked(value: &str) -> String {
    if value.starts_with("env:") || value.starts_with("file:") {
        return value.to_owned();
    }
    let (sign, rest) = if let Some(rest) = value.strip_prefix('=') { ("=", rest) } else { ("", value) };
    match rest.find(['=', ':']) {
        Some(place) => format!("{sign}{}[redacted]", &rest[..=place]),
        None => format!("{sign}[redacted]"),
    }
}

/// Whether a frame is what only HTTP+SSE begins with.
pub(crate) fn names_endpoint(frame: &Frame) -> bool {
    matches!(&frame.body, FrameBody::SseEvent { event: Some(event), .. } if event == "endpoint")
}

/// How a server is started, as far as no frame tells.
pub(crate) fn started(target: &Target) -> SessionInfo {
    let (launch, port) = match target {
        Target::Stdio(launch) => (Some(launch), None),
        Target::Http { endpoint, launch, .. } => (launch.as_ref(), endpoint.url.port()),
    };
    let Some(launch) = launch else { return SessionInfo::default() };
    let secrets = Redactor::new([target.secrets(), given_secrets(&launch.env, &[])].concat());
    let said = |(name, value): &(String, String)| {
        let is_secret = matches!(secrets.text(value), Cow::Owned(_));
        let with_port = port.map(|port| with_port(value, port)).filter(|with_port| with_port != value && !is_secret);
        (name.clone(), with_port.unwrap_or_else(|| format!("${{env.{name}}}")))
    };
    let cwd = launch.folder.as_ref().map(|folder| settings::current_folder().join(folder).display().to_string());
    SessionInfo { env: launch.env.iter().map(said).collect(), cwd, ..SessionInfo::default() }
}

/// A text with `${port}` in the place of the port.
pub(crate) fn with_port(text: &str, port: u16) -> String {
    let number = port.to_string();
    let is_digit = |symbol: Option<char>| symbol.is_some_and(|symbol| symbol.is_ascii_digit());
    let (mut replaced, mut rest) = (String::new(), text);
    while let Some(place) = rest.find(&number) {
        let (before, after) = (&rest[..place], &rest[place + number.len()..]);
        let is_part = is_digit(before.chars().next_back()) || is_digit(after.chars().next());
        replaced += before;
        replaced += if is_part { &number } else { "${port}" };
        rest = after;
    }
    replaced + rest
}

/// With what its messages tell.
fn described(session: SessionInfo, frames: &mut dyn Iterator<Item = &Frame>) -> SessionInfo {
    let (mut tracker, mut is_sse) = (CallTracker::new(), false);
    for frame in frames {
        is_sse |= names_endpoint(frame);
        tracker.feed(session.key, frame);
    }
    let Some(facts) = tracker.facts(session.key) else { return session };
    SessionInfo {
        era: facts.era().map(str::to_owned).or(session.era),
        revision: facts.revision.clone().or(session.revision),
        transport: if is_sse { "sse".into() } else { session.transport },
        ..session
    }
}

fn name_of(target: &Target) -> String {
    match target {
        Target::Http { endpoint, .. } => {
            let mut url = endpoint.url.clone();
            // A URL without a host takes neither, and has none.
            let _ = url.set_password(None).and_then(|()| url.set_username(""));
            url.set_query(None);
            url.to_string()
        }
        Target::Stdio(launch) => {
            let words = launch.command.iter().filter(|word| !word.starts_with('-'));
            let mut names = words.map(|word| Path::new(word).file_name().unwrap_or_default().to_string_lossy().into_owned());
            names.next_back().unwrap_or_default()
        }
    }
}

fn write_document(file: WholeFile, transcript: &Transcript) -> io::Result<()> {
    let document = serde_json::json!({ "version": FORMAT_VERSION, "frames": transcript.frames, "dropped": transcript.dropped });
    let mut writer = file.writer()?;
    serde_json::to_writer_pretty(&mut writer, &document)?;
    writer.write_all(b"\n")?;
    writer.flush()?;
    file.keep()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_in_a_trace_holds_no_secret() {
        let check = |words: &[&str], expected: &[&str]| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(without_secrets(words, &Redactor::new(["hunter22".to_owned()])), expected);
        };
        check(&["-e", "A=bc", "--header=X: y", "x"], &["-e", "A=[redacted]", "--header=X:[redacted]", "x"]);
        check(&["--bearer", "abc", "--bearer", "env:TOKEN"], &["--bearer", "[redacted]", "--bearer", "env:TOKEN"]);
        check(&["-eA=bc", "http://a?key=hunter22"], &["-eA=[redacted]", "http://a?key=[redacted]"]);
    }
}
