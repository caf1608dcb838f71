//! Answers from a suite: the requests of its tests with the responses that they expect, played as a recording of them would be. Knows no
//! transports.

use crate::failure::Failure;
use crate::faults::told;
use crate::output;
use crate::suites::folder_of;
use mcproof_protocol::{Era, methods};
use mcproof_record::{Direction, Frame, FrameBody, FrameId, Transcript};
use mcproof_relay::mock::{Answers, Ignored, RecordedAnswers, Recording, Repetition};
use mcproof_report::escape_line;
use mcproof_suite::Environment;
use mcproof_suite::run::{MadeEvent, MadeExchange, MadeSession, Rehearsal, rehearse};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// Characters of what a step does, and of the reason why it is not served.
const LONGEST_TEXT: usize = 300;

/// What the tests of a suite expect. Steps for which there is no response are told on stderr.
pub(super) fn read(
    path: &Path,
    text: &str,
    environment: &Environment,
    ignored: &[String],
    repetition: Repetition,
) -> Result<Box<dyn Answers>, Failure> {
    let suite = mcproof_suite::load(&path.display().to_string(), text, folder_of(path), environment).map_err(told)?;
    if suite.servers.len() > 1 {
        let names: Vec<&str> = suite.servers.keys().map(String::as_str).collect();
        let message = format!("{} has several servers, but a mock replaces one: {}", path.display(), names.join(", "));
        return Err(Failure::bad_input("several-servers", message).hint("name a suite of one server, or a trace"));
    }
    let mut rehearsal = rehearse(&suite);
    for step in &rehearsal.unmade {
        let [title, why] = [&step.title, &step.why].map(|text| escape_line(text, LONGEST_TEXT));
        output::talk(&format!("note: {}:{}: `{title}` is not served: {why}\n", step.place.file, step.place.line));
    }
    if rehearsal.sessions.is_empty() && rehearsal.lists.is_empty() && !rehearsal.is_described {
        let failure = Failure::bad_input("nothing-to-serve", format!("no step of {} describes a response", path.display()));
        return Err(failure.hint("a mock serves the handshake, calls, reads, prompts, completions and lists of a suite"));
    }
    let eras = match rehearsal.only.take() {
        // Else a suite says nothing of eras: its tests pass in both.
        None => vec![Era::Legacy, Era::Modern],
        Some((era, because)) => {
            let because = escape_line(&because, LONGEST_TEXT);
            output::talk(&format!("note: the mock speaks only the {era} era: {because} needs it\n"));
            vec![era]
        }
    };
    let version = rehearsal.version.take();
    let recording = Recording::of(&transcripts(rehearsal));
    Ok(Box::new(RecordedAnswers::new(recording, Ignored(ignored.to_vec()), repetition).in_eras(eras).pinned(version)))
}

/// The sessions as if they had been recorded over stdio.
fn transcripts(Rehearsal { mut sessions, mut lists, about, .. }: Rehearsal) -> Vec<Transcript> {
    if sessions.is_empty() {
        sessions.push(MadeSession::default());
    }
    // Whoever declares a feature is asked for its lists.
    let listings = [
        ("tools", methods::TOOLS_LIST, "tools"),
        ("prompts", methods::PROMPTS_LIST, "prompts"),
        ("resources", methods::RESOURCES_LIST, "resources"),
        ("resources", methods::RESOURCES_TEMPLATES_LIST, "resourceTemplates"),
    ];
    for (_, method, member) in listings.into_iter().filter(|(feature, ..)| about["capabilities"].get(feature).is_some()) {
        lists.entry(method).or_insert_with(|| json!({ member: [] }));
    }
    let play = |MadeSession { capabilities, exchanges }: MadeSession| {
        let mut played = PlayedSession::default();
        let client = json!({ "name": "mcproof", "version": "0" });
        let offered = json!({ "protocolVersion": about["protocolVersion"], "capabilities": capabilities, "clientInfo": client });
        played.exchange(methods::INITIALIZE, offered, &[], Some(Ok(about.clone())));
        for (method, result) in &lists {
            played.exchange(method, json!({}), &[], Some(Ok(result.clone())));
        }
        for MadeExchange { method, params, events, response, .. } in exchanges {
            played.exchange(method, Value::Object(params), &events, response);
        }
        played.0
    };
    sessions.into_iter().map(play).collect()
}

/// The frames of a session so far.
#[derive(Default)]
struct PlayedSession(Transcript);

impl PlayedSession {
    /// Adds a request, what the server says before it responds, and its response, if it has one.
    fn exchange(&mut self, method: &str, params: Value, events: &[MadeEvent], response: Option<Result<Value, Value>>) {
        let id = self.0.frames.len();
        self.message(Direction::ToServer, &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        for event in events {
            match event {
                MadeEvent::Notification { method, params } => {
                    self.message(Direction::FromServer, &json!({ "jsonrpc": "2.0", "method": method, "params": params }));
                }
                MadeEvent::Request { method, params, response } => {
                    let id = format!("server-{}", self.0.frames.len());
                    self.message(Direction::FromServer, &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
                    self.message(Direction::ToServer, &response_of(&json!(id), response));
                }
            }
        }
        if let Some(response) = response {
            self.message(Direction::FromServer, &response_of(&json!(id), &response));
        }
    }

    fn message(&mut self, direction: Direction, message: &Value) {
        let body = FrameBody::Line { bytes: message.to_string().as_str().into(), unterminated: false };
        let id = FrameId(self.0.frames.len() as u64);
        self.0.frames.push(Frame { id, at: Duration::ZERO, direction, body });
    }
}

fn response_of(id: &Value, response: &Result<Value, Value>) -> Value {
    match response {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
    }
}
