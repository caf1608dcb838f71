//! Answers from a suite: the requests of its tests with the responses that they expect, played as a recording of them would be. Knows no
//! transports.

use crate::failure::Failure;
use crate::faults::told;
use crate::output;
use crate::suites::folder_of;
use mcproof_protocol::{Revision, methods};
use mcproof_record::{Direction, Frame, FrameBody, FrameId, Transcript};
use mcproof_relay::mock::{Answers, Ignored, RecordedAnswers, Recording, Repetition};
use mcproof_report::escape_line;
use mcproof_suite::Environment;
use mcproof_suite::run::{MadeExchange, Rehearsal, rehearse};
use serde_json::{Map, Value, json};
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
    let rehearsal = rehearse(&suite);
    for step in &rehearsal.unmade {
        let [title, why] = [&step.title, &step.why].map(|text| escape_line(text, LONGEST_TEXT));
        output::talk(&format!("note: {}:{}: `{title}` is not served: {why}\n", step.place.file, step.place.line));
    }
    if rehearsal.sessions.is_empty() && rehearsal.lists.is_empty() {
        let failure = Failure::bad_input("nothing-to-serve", format!("no step of {} describes a response", path.display()));
        return Err(failure.hint("a mock serves the calls, reads, prompts, completions and lists of a suite"));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().split('.').next().unwrap_or_default().to_owned();
    let recording = Recording::of(&transcripts(&name, rehearsal));
    // A suite says nothing of eras: its tests pass in both.
    Ok(Box::new(RecordedAnswers::new(recording, Ignored(ignored.to_vec()), repetition).in_both_eras()))
}

/// The sessions as if they had been recorded over stdio.
fn transcripts(name: &str, Rehearsal { mut sessions, mut lists, .. }: Rehearsal) -> Vec<Transcript> {
    if sessions.is_empty() {
        sessions.push(Vec::new());
    }
    // Whoever declares resources is asked for both.
    if lists.contains_key(methods::RESOURCES_LIST) || lists.contains_key(methods::RESOURCES_TEMPLATES_LIST) {
        lists.entry(methods::RESOURCES_LIST).or_insert_with(|| json!({ "resources": [] }));
        lists.entry(methods::RESOURCES_TEMPLATES_LIST).or_insert_with(|| json!({ "resourceTemplates": [] }));
    }
    let features = [
        (methods::TOOLS_LIST, "tools"),
        (methods::PROMPTS_LIST, "prompts"),
        (methods::RESOURCES_LIST, "resources"),
        (methods::COMPLETION_COMPLETE, "completions"),
    ];
    let is_asked = |method: &str| sessions.iter().flatten().any(|exchange| exchange.method == method);
    let offered = features.into_iter().filter(|(method, _)| lists.contains_key(method) || is_asked(method));
    let capabilities: Map<String, Value> = offered.map(|(_, capability)| (capability.to_owned(), json!({}))).collect();
    let revision = Revision::LATEST_LEGACY.as_str();
    let shaken = json!({ "protocolVersion": revision, "capabilities": capabilities, "serverInfo": { "name": name, "version": "0" } });
    let client = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "mcproof", "version": "0" } });
    let play = |session: Vec<MadeExchange>| {
        let mut transcript = Transcript::default();
        say(&mut transcript, methods::INITIALIZE, &client, &Ok(shaken.clone()));
        for (method, result) in &lists {
            say(&mut transcript, method, &json!({}), &Ok(result.clone()));
        }
        for MadeExchange { method, params, response, .. } in session {
            say(&mut transcript, method, &Value::Object(params), &response);
        }
        transcript
    };
    sessions.into_iter().map(play).collect()
}

/// Adds a request and its response.
fn say(transcript: &mut Transcript, method: &str, params: &Value, response: &Result<Value, Value>) {
    let id = transcript.frames.len() as u64;
    let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let response = match response {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
    };
    for (place, direction, message) in [(0, Direction::ToServer, request), (1, Direction::FromServer, response)] {
        let body = FrameBody::Line { bytes: message.to_string().as_str().into(), unterminated: false };
        transcript.frames.push(Frame { id: FrameId(id + place), at: Duration::ZERO, direction, body });
    }
}
