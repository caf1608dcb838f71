//! A step that runs a command of its own: seeds a database, builds a fixture, looks at what a server left behind.

use super::sessions::fill_launch;
use crate::judge::Payload;
use crate::plan::Launch;
use mcproof_analysis::diagnosis;
use mcproof_client::{Guardian, StartFailure, Tap, Target, run_command};
use mcproof_record::{Diagnostic, FrameBody, Transcript};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::Duration;

/// Lines that a failure shows.
const LINES: usize = 20;

/// What a command did: `{ code, stdout, stderr }`, as it was, so that it can be compared and saved. The secrets that it was
/// given are told to `keeper`.
pub(super) async fn run(
    launch: &Launch,
    own_binary: Option<&Path>,
    scope: &Map<String, Value>,
    guardian: &Guardian,
    limit: Duration,
    keeper: &Tap,
) -> Result<Payload, Diagnostic> {
    let launch = fill_launch(launch, own_binary, scope)?;
    Target::Stdio(launch.clone()).secrets().iter().for_each(|secret| keeper.keep_secret(secret));
    let shown = diagnosis::shell_line(&launch.command);
    let tap = Tap::new();
    let ended = run_command(&launch, guardian, &tap, limit).await.map_err(|failure| {
        let hint = match &failure {
            StartFailure::NotFound { .. } => "check the spelling, and that it is on the PATH; no shell reads the command",
            StartFailure::NoInterpreter { .. } => diagnosis::NO_INTERPRETER,
            _ => "run it by hand to see why",
        };
        Diagnostic::error("command-not-started", format!("`{shown}`: {failure}")).hint(hint)
    })?;
    let transcript = tap.transcript();
    let Some(exit) = ended else {
        let message = format!("`{shown}` did not end within {} ms", limit.as_millis());
        let diagnostic = Diagnostic::error("command-timeout", message).hint("give the step a longer `timeout`");
        return Err(Diagnostic { evidence: Some(keeper.redacted_transcript(transcript).tail(LINES, LINES)), ..diagnostic });
    };
    let code = exit.code.map_or_else(|| json!(format!("signal {}", exit.signal.unwrap_or_default())), |code| json!(code));
    let (stdout, stderr) = output(&transcript);
    Ok(Payload::of(json!({ "code": code, "stdout": stdout, "stderr": stderr })))
}

/// Why a command that was not expected to fail failed.
pub(super) fn failure(launch: &Launch, payload: &Payload) -> Option<Diagnostic> {
    let code = payload.value.get("code").filter(|code| **code != json!(0))?;
    let program = launch.command.first().map_or("", String::as_str);
    let said = ["stderr", "stdout"].iter().filter_map(|name| payload.value.get(name).and_then(Value::as_str));
    let last = said.flat_map(|text| telling(text)).next().unwrap_or_default();
    let message = format!("`{program}` ended with code {code}{}{last}", if last.is_empty() { "" } else { ": " });
    let diagnostic = Diagnostic::error("command-failed", message);
    let actual = serde_json::to_string_pretty(&payload.value).unwrap_or_default();
    Some(Diagnostic { actual: Some(actual), ..diagnostic }.hint("expect another code with `expect: { code: … }` if that is right"))
}

/// The last line of an output that is not indented: what is indented explains the line above it.
fn telling(text: &str) -> Option<&str> {
    let mut lines = text.lines().rev().filter(|line| !line.trim().is_empty());
    let last = lines.clone().next()?;
    Some(lines.find(|line| !line.starts_with([' ', '\t'])).unwrap_or(last).trim())
}

fn output(transcript: &Transcript) -> (String, String) {
    let (mut stdout, mut stderr) = (String::new(), String::new());
    for frame in &transcript.frames {
        let (into, bytes) = match &frame.body {
            FrameBody::Stdout { bytes } => (&mut stdout, bytes),
            FrameBody::Stderr { bytes } => (&mut stderr, bytes),
            _ => continue,
        };
        into.push_str(&bytes.to_text());
        into.push('\n');
    }
    (stdout, stderr)
}
