//! `mcproof trace export FILE --suite`.

use super::{open, told, unreadable};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::recording::later_recordings;
use crate::starter::BaseEnvironment;
use crate::starter::recorded::{self, RecordedSession, RecordedSuite};
use crate::{output, settings, whole_file};
use mcproof_client::inherited_secrets;
use mcproof_client::redaction::REDACTED;
use mcproof_client::redaction::Redactor;
use mcproof_record::{Direction, FrameBody, counted, read_message};
use mcproof_report::escape_line;
use mcproof_trace::{CallStream, Item, SessionKey, TraceRoom};
use std::collections::BTreeMap;
use std::path::Path;

/// Steps that are listed because of what they do not compare, and characters of each.
const MOST_LISTED: usize = 50;
const LONGEST_LISTED: usize = 300;

/// Bytes of messages that are read into memory for a suite.
const LARGEST: usize = 512 << 20;

pub(super) fn run(file: &Path, to: Option<&Path>, server: Option<&str>) -> Result<Exit, Failure> {
    let here = settings::current_folder();
    let folder = to.and_then(Path::parent).map(|folder| here.join(folder)).filter(|folder| {
        // Commands run where the suite is.
        folder.canonicalize().ok() != here.canonicalize().ok()
    });
    let runs_in = folder.map(|_| here.display().to_string());
    let suite = translate(file, server, runs_in.as_deref())?;
    if suite.tests == 0 {
        let failure = Failure::bad_input("no-test", "no request in the trace can be a step of a suite");
        return Err(failure.hint(match later_recordings(file).first() {
            // Some clients ask one process what it is, and use another one.
            Some(later) => format!("a later start of the proxy wrote {}: export that one", later.display()),
            None => "record calls of tools, resources or prompts that got a response".to_owned(),
        }));
    }
    let text = &suite.text;
    match to {
        Some(path) => whole_file::write(path, text).map_err(|error| Failure::cannot_write(path, &error))?,
        None => output::plain(text)?,
    }
    if let Some(first) = later_recordings(file).first() {
        let first = escape_line(&first.display().to_string(), LONGEST_LISTED);
        output::talk(&format!("note: {first} is of a later start of the proxy, and is not in the suite\n"));
    }
    output::talk(&format!("{} with {}\n", counted(suite.tests, "test"), counted(suite.steps, "step")));
    for (why, number) in suite.left_out {
        output::talk(&format!("left out {}: {why}\n", counted(number, "request")));
    }
    for (what, all) in [("compared in part", &suite.uncompared), ("sent as recorded, from an earlier response", &suite.stale)] {
        for step in all.iter().take(MOST_LISTED) {
            output::talk(&format!("{what}: {}\n", escape_line(step, LONGEST_LISTED)));
        }
        if let Some(more) = all.len().checked_sub(MOST_LISTED).filter(|more| *more > 0) {
            output::talk(&format!("{what}: {} more\n", counted(more, "step")));
        }
    }
    Ok(Exit::Passed)
}

/// The suite of a trace, without the secrets that are known here; it has no test if no request can be a step. The page of `mcproof ui` writes
/// its sessions in the same way.
///
/// # Errors
/// The trace cannot be read, or has sessions of several servers and none of them is named.
pub(in crate::command) fn translate(file: &Path, server: Option<&str>, runs_in: Option<&str>) -> Result<RecordedSuite, Failure> {
    let sessions = of_one_server(read(file)?, server)?;
    let environment = settings::variables();
    let secrets = Redactor::new(inherited_secrets(&environment));
    let surroundings = BaseEnvironment { now: settings::now(), private: vec![REDACTED.to_owned()], secrets, environment };
    let suite = recorded::write(&sessions, runs_in, &surroundings);
    Ok(RecordedSuite { text: surroundings.secrets.text(&suite.text).into_owned(), ..suite })
}

fn read(file: &Path) -> Result<Vec<RecordedSession>, Failure> {
    let mut stream = CallStream::new(open(file)?.within(TraceRoom::default()));
    let mut sessions: BTreeMap<SessionKey, RecordedSession> = BTreeMap::new();
    let (mut size, mut unread) = (0, 0);
    for item in stream.by_ref() {
        match item.map_err(|error| unreadable(file, &error))? {
            Item::Session(info) => {
                let key = info.key;
                let fresh =
                    RecordedSession { info: info.clone(), era: None, command: None, url: None, credentials: Vec::new(), calls: Vec::new() };
                sessions.entry(key).or_insert(fresh).info = info;
            }
            Item::Frame(frame) => {
                let Some(session) = sessions.get_mut(&frame.session) else { continue };
                unread += usize::from(frame.direction == Direction::ToServer && is_unreadable(&frame.body));
                match frame.body {
                    FrameBody::Spawned { command, .. } => drop(session.command.get_or_insert(command)),
                    // What came first is the endpoint: later requests may go to an authorization server.
                    FrameBody::HttpRequest { url, headers, .. } if session.url.is_none() => {
                        session.url = Some(url);
                        session.credentials = headers.into_iter().filter(|(_, value)| value.contains(REDACTED)).collect();
                    }
                    _ => {}
                }
            }
            Item::Call(call) => {
                size += call.request.len() + call.response.as_ref().map_or(0, mcproof_record::Raw::len);
                if size > LARGEST {
                    return Err(Failure::bad_input("trace-too-large", format!("the messages of the trace have more than {LARGEST} bytes")));
                }
                if let Some(session) = sessions.get_mut(&call.session) {
                    session.calls.push(*call);
                }
            }
            _ => {}
        }
    }
    for (key, session) in &mut sessions {
        session.calls.sort_by_key(|call| call.key);
        session.era = stream.facts(*key).and_then(|facts| facts.era()).map(str::to_owned).or(session.info.era.clone());
    }
    told(stream.ending()).into_iter().for_each(output::talk);
    if unread > 0 {
        output::talk(&format!("left out: {} of the client that cannot be read as JSON\n", counted(unread, "message")));
    }
    Ok(sessions.into_values().collect())
}

/// Whether what a client sent is no step because it is not JSON.
fn is_unreadable(body: &FrameBody) -> bool {
    let bytes = match body {
        FrameBody::Line { bytes, .. } => bytes.as_bytes(),
        // Others, such as forms, go to an authorization server.
        FrameBody::HttpRequest { headers, body, .. } if is_json(headers) => body.as_bytes(),
        _ => return false,
    };
    !bytes.trim_ascii().is_empty() && read_message(bytes).is_err()
}

fn is_json(headers: &[(String, String)]) -> bool {
    headers.iter().any(|(name, value)| name.eq_ignore_ascii_case("content-type") && value.trim_start().starts_with("application/json"))
}

/// A suite tests one server.
fn of_one_server(sessions: Vec<RecordedSession>, wanted: Option<&str>) -> Result<Vec<RecordedSession>, Failure> {
    let mut names: Vec<String> = sessions.iter().map(|session| session.info.server.clone()).collect();
    names.sort_unstable();
    names.dedup();
    let name = match (wanted, names.as_slice()) {
        (Some(wanted), names) if names.iter().any(|name| name == wanted) => wanted.to_owned(),
        (Some(wanted), names) => {
            let failure = Failure::bad_input("no-such-server", format!("the trace has no server `{wanted}`"));
            return Err(failure.hint(format!("it has {}", names.join(", "))));
        }
        (None, [only]) => only.clone(),
        (None, []) => return Err(Failure::bad_input("no-session", "the trace has no session")),
        (None, several) => {
            let failure = Failure::bad_input("several-servers", "the trace has several servers, and a suite of a recording tests one");
            return Err(failure.hint(format!("choose one with --server: {}", several.join(", "))));
        }
    };
    Ok(sessions.into_iter().filter(|session| session.info.server == name).collect())
}
