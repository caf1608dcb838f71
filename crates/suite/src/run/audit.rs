//! Writes down every request of a run, one JSON line each, with what is secret taken out.

use super::expand::Work;
use super::sessions::Open;
use crate::plan::Audit;
use jiff::Timestamp;
use mcproof_client::redaction::{REDACTED, Redactor};
use mcproof_record::{AuditLine, Diagnostic, Exchange, FORMAT_VERSION, FrameBody, StepOutcome};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

/// The audit files of a run. Clones share them.
#[derive(Clone)]
pub(super) struct Audits {
    files: Arc<Mutex<HashMap<PathBuf, Arc<Mutex<File>>>>>,
    sessions: Arc<AtomicU64>,
    began: SystemTime,
    clock: Instant,
}

/// The audit of one case.
pub(super) struct CaseAudit {
    path: PathBuf,
    file: Arc<Mutex<File>>,
    redact: Vec<String>,
}

/// Bytes of a result that are written down.
const MOST_OF_RESULT: usize = 16 << 10;

impl Audits {
    /// `began`: the time of day at which the run began.
    pub(super) fn new(began: SystemTime) -> Self {
        Self { files: Arc::default(), sessions: Arc::default(), began, clock: Instant::now() }
    }

    /// A number for a session, unique in the run.
    pub(super) fn next_session(&self) -> u64 {
        self.sessions.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Opens the audit of a case: the file of the run, or that of its suite. `None` if there is neither.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn open(&self, of_run: Option<&Path>, of_suite: Option<(&Audit, PathBuf)>) -> Result<Option<CaseAudit>, Diagnostic> {
        let redact = of_suite.as_ref().map(|(audit, _)| audit.redact.clone()).unwrap_or_default();
        let Some(path) = of_run.map(Path::to_owned).or(of_suite.map(|(_, path)| path)) else { return Ok(None) };
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match files.get(&path) {
            Some(file) => Arc::clone(file),
            None => {
                let opened =
                    mcproof_system::files::make_folder_of(&path).and_then(|()| OpenOptions::new().create(true).append(true).open(&path));
                let file = Arc::new(Mutex::new(opened.map_err(|error| unwritable(&path, &error))?));
                files.insert(path.clone(), Arc::clone(&file));
                file
            }
        };
        Ok(Some(CaseAudit { path, file, redact }))
    }

    /// Adds the requests of a step.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn write(
        &self,
        audit: &CaseAudit,
        work: &Work,
        step: &StepOutcome,
        opened: impl Fn(&Exchange) -> Option<Target>,
    ) -> Result<(), Diagnostic> {
        let mut lines = Vec::new();
        for exchange in &step.exchanges {
            let Some(target) = opened(exchange) else { continue };
            let line = self.line(audit, work, step, exchange, target);
            serde_json::to_writer(&mut lines, &line).expect("texts, numbers and JSON values always serialize");
            lines.push(b'\n');
        }
        let mut file = audit.file.lock().unwrap_or_else(PoisonError::into_inner);
        // In one call, so that other processes that add to the file cannot tear a line.
        file.write_all(&lines).map_err(|error| unwritable(&audit.path, &error))
    }

    fn line(&self, audit: &CaseAudit, work: &Work, step: &StepOutcome, exchange: &Exchange, target: Target) -> AuditLine {
        let mut hidden = Vec::new();
        let mut arguments = Value::Object(exchange.arguments.clone());
        hide(&mut arguments, &audit.redact, &mut hidden);
        let hidden = Redactor::new(hidden);
        let clean = |text: String| hidden.text(&(target.redacted)(text)).into_owned();
        let arguments = match rewrite(arguments, &clean) {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        };
        let result = target.answer.map(|mut answer| {
            hide(&mut answer, &audit.redact, &mut Vec::new());
            rewrite(answer, &clean)
        });
        let (result, result_bytes) = result.map_or((None, None), bounded);
        let time = Timestamp::try_from(self.began + self.clock.elapsed()).map(|time| time.to_string()).unwrap_or_default();
        AuditLine {
            version: FORMAT_VERSION,
            time,
            suite: work.plan.suite.clone(),
            test: work.plan.name.clone(),
            step: step.title.clone(),
            server: target.server,
            transport: target.transport,
            era: target.era,
            session: target.session,
            method: exchange.method.clone(),
            target: exchange.target.clone().map(clean),
            arguments,
            answer: exchange.answer,
            result,
            result_bytes,
            duration: exchange.duration,
            // What had to be asked again fulfilled nothing, whatever came of it in the end.
            passed: step.passed && !exchange.retried,
        }
    }
}

/// What is known of the session that an exchange belongs to.
pub(super) struct Target {
    server: String,
    transport: String,
    era: String,
    session: u64,
    /// The result or the error, as far as the transcript has it.
    answer: Option<Value>,
    redacted: Box<dyn Fn(String) -> String>,
}

impl Target {
    pub(super) fn of(server: &str, open: &Open, exchange: &Exchange) -> Self {
        let handshake = open.session.handshake();
        let tap = open.tap.clone();
        Self {
            server: server.to_owned(),
            transport: handshake.transport.to_string(),
            era: handshake.era.to_string(),
            session: open.number,
            answer: exchange.frame.and_then(|frame| answer_in(&open.tap.frame(frame)?.body)),
            redacted: Box::new(move |text| tap.redacted(text)),
        }
    }
}

fn answer_in(body: &FrameBody) -> Option<Value> {
    let message: Value = match body {
        FrameBody::Line { bytes, .. } | FrameBody::HttpBody { bytes, .. } => serde_json::from_slice(bytes.as_bytes()).ok()?,
        FrameBody::SseEvent { data, .. } => serde_json::from_slice(data.as_ref()?.as_bytes()).ok()?,
        _ => return None,
    };
    message.get("result").or_else(|| message.get("error")).cloned()
}

/// Blanks out the values of these keys, at any depth, and remembers the texts among them.
fn hide(value: &mut Value, names: &[String], hidden: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                if names.contains(name) {
                    hidden.extend(value.as_str().map(str::to_owned));
                    *value = Value::from(REDACTED);
                } else {
                    hide(value, names, hidden);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, names, hidden)),
        _ => {}
    }
}

pub(super) fn rewrite(value: Value, clean: &impl Fn(String) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(clean(text)),
        Value::Array(items) => items.into_iter().map(|item| rewrite(item, clean)).collect(),
        Value::Object(object) => object.into_iter().map(|(name, value)| (clean(name), rewrite(value, clean))).collect(),
        other => other,
    }
}

/// A large value as the beginning of its text, with its size.
fn bounded(value: Value) -> (Option<Value>, Option<u64>) {
    let text = value.to_string();
    if text.len() <= MOST_OF_RESULT {
        return (Some(value), None);
    }
    let end = text.char_indices().map(|(index, _)| index).take_while(|index| *index <= MOST_OF_RESULT).last().unwrap_or_default();
    (Some(Value::from(&text[..end])), Some(text.len() as u64))
}

fn unwritable(path: &Path, error: &io::Error) -> Diagnostic {
    let diagnostic = Diagnostic::error("audit-not-written", format!("the audit `{}` cannot be written: {error}", path.display()));
    diagnostic.hint("create its folder, or correct `audit` or --audit")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hidden_arguments_are_hidden_wherever_they_stand() {
        let check = |value: Value, expected: Value, secrets: &[&str]| {
            let (mut found, mut hidden) = (value, Vec::new());
            hide(&mut found, &["password".to_owned()], &mut hidden);
            assert_eq!((found, hidden), (expected, secrets.iter().map(|secret| (*secret).to_owned()).collect()));
        };
        check(json!({"password": "hunter2", "user": "ann"}), json!({"password": REDACTED, "user": "ann"}), &["hunter2"]);
        check(json!({"a": [{"password": 7}]}), json!({"a": [{"password": REDACTED}]}), &[]);
        check(json!({"password": "abc"}), json!({"password": REDACTED}), &["abc"]);
    }

    #[test]
    fn a_large_result_is_cut_and_counted() {
        assert_eq!(bounded(json!({"a": 1})), (Some(json!({"a": 1})), None));
        let (kept, bytes) = bounded(json!("ä".repeat(MOST_OF_RESULT)));
        assert_eq!(bytes, Some(2 * MOST_OF_RESULT as u64 + 2));
        assert!(kept.unwrap().as_str().unwrap().len() <= MOST_OF_RESULT);
    }
}
