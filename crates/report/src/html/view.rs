//! The data of the page: facts of the run, made safe and cut to a readable size, with a note of what was cut. Knows no markup.

use crate::diagnostic::{diff, wire};
use crate::escape::{escape, escape_block, substitute};
use crate::words;
use mcproof_record::{
    CaseOutcome, CasePlan, Coverage, Diagnostic, Direction, Evidence, Exchange, Frame, FrameBody, Place, Raw, SessionTranscript, Severity,
    StepOutcome, Transcript, Verdict,
};
use serde::Serialize;
use serde_json::{Value, json};

/// Bytes of one frame that are shown.
const FRAME: usize = 16 * 1024;
/// Frames of one session: its first ones, and its last ones.
const FIRST: usize = 50;
const LAST: usize = 350;
/// Bytes of all frames in one report. A browser can open more, but slowly.
const REPORT: usize = 32 * 1024 * 1024;
/// Columns of one line of a list.
pub(super) const LINE: usize = 240;
/// Lines of stderr, differences, lines of a diff.
const LINES: usize = 500;

/// The remaining room for frames in a report. Cases that passed may use half of it, so that failures always have the rest.
pub(super) struct Budget {
    failed: usize,
    passed: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { failed: REPORT / 2, passed: REPORT / 2 }
    }
}

/// One frame as a page shows it. All text in it is safe to show as text.
#[derive(Clone, Debug, Serialize)]
pub struct ShownFrame {
    #[serde(rename = "n")]
    pub number: u64,
    /// Microseconds since the transcript began.
    #[serde(rename = "us")]
    pub micros: u64,
    /// `out`, `in` or `local`.
    #[serde(rename = "dir")]
    pub direction: &'static str,
    pub kind: &'static str,
    /// The frame in one line.
    pub said: Option<String>,
    /// It is likely the problem.
    #[serde(rename = "bad")]
    pub is_bad: bool,
    /// Lines before the content: a start line, headers.
    pub head: Vec<String>,
    /// The content where it is text.
    pub text: Option<String>,
    #[serde(rename = "json")]
    pub is_json: bool,
    /// The bytes, where they are not the text.
    pub raw: Option<String>,
    /// Bytes of the content.
    pub size: Option<usize>,
    #[serde(rename = "cut")]
    pub is_cut: bool,
}

/// The frames of a transcript as a page shows them: the first ones and the last ones, and how many are left out between.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    pub first: Vec<ShownFrame>,
    pub between: usize,
    pub last: Vec<ShownFrame>,
    /// Frames that were seen and not stored.
    pub dropped: u64,
}

pub fn wire(transcript: &Transcript) -> Wire {
    let all = &transcript.frames;
    let between = all.len().saturating_sub(FIRST + LAST);
    let split = if between > 0 { FIRST } else { all.len() };
    let shown = |frames: &[Frame]| frames.iter().map(|frame| self::frame(frame, all)).collect();
    Wire { first: shown(&all[..split]), between, last: shown(&all[split + between..]), dropped: transcript.dropped }
}

pub(super) fn plan(plan: &CasePlan) -> Value {
    json!({
        "suite": escape(&plan.suite),
        "name": escape(&words::case_name(plan)),
        "transport": escape(&plan.transport),
        "line": plan.line,
        "tags": texts(&plan.tags),
        "servers": texts(&plan.servers),
    })
}

pub(super) fn outcome(outcome: &CaseOutcome, budget: &mut Budget) -> Value {
    let room = if outcome.verdict == Verdict::Fail { &mut budget.failed } else { &mut budget.passed };
    json!({
        "verdict": outcome.verdict,
        "ms": millis(outcome.duration),
        "attempts": outcome.attempts,
        "proof": outcome.proof.iter().map(|proof| escape(&words::proof(proof)).into_owned()).collect::<Vec<_>>(),
        "diagnostics": outcome.diagnostics.iter().map(diagnostic).collect::<Vec<_>>(),
        "steps": outcome.steps.iter().map(step).collect::<Vec<_>>(),
        "aftermath": words::aftermath(&outcome.aftermath, &outcome.diagnostics).iter().map(|after| escape(after).into_owned()).collect::<Vec<_>>(),
        "sessions": sessions(outcome, room),
    })
}

/// A case that never finished.
pub(super) fn canceled() -> Value {
    json!({ "verdict": Verdict::Canceled, "ms": 0, "attempts": 0, "proof": [], "diagnostics": [], "steps": [], "aftermath": [], "sessions": [] })
}

pub(super) fn diagnostic(diagnostic: &Diagnostic) -> Value {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let differences = diagnostic.differences.iter().take(LINES).map(|difference| {
        json!({
            "path": escape(&difference.path),
            "expected": cut(&difference.expected, FRAME).0,
            "actual": cut(&difference.actual, FRAME).0,
            "place": difference.place.as_ref().or(diagnostic.place.as_ref()).map(place),
        })
    });
    let diff = diff::against_expected(diagnostic)
        .map(|lines| lines.into_iter().take(LINES).map(|(sign, text)| json!([sign, escape_block(&text)])).collect::<Vec<_>>());
    json!({
        "code": escape(&diagnostic.code),
        "severity": severity,
        "message": escape_block(&diagnostic.message),
        "place": diagnostic.place.as_ref().map(place),
        "differences": differences.collect::<Vec<_>>(),
        "more": diagnostic.differences.len().saturating_sub(LINES),
        "diff": diff,
        "actual": diagnostic.actual.as_ref().map(|actual| escape_block(actual)),
        "stderr": diagnostic.evidence.as_ref().map(|evidence| texts(&evidence.stderr)),
        "hint": diagnostic.hint.as_ref().map(|hint| escape(hint)),
    })
}

pub(super) fn coverage(coverage: &Coverage) -> Value {
    let unused: Vec<Value> = words::unused(coverage).iter().map(|(label, names)| json!([label, texts(names)])).collect();
    json!({
        "suite": escape(&coverage.suite),
        "server": escape(&coverage.server),
        "summary": words::coverage(coverage),
        "percent": coverage.percent(),
        "unused": unused,
    })
}

fn place(place: &Place) -> Value {
    // Columns do not change; a tab counts as one.
    let text = substitute(&place.text, '\u{fffd}', |_| false).replace('\t', " ");
    json!({ "file": escape(&place.file), "line": place.line, "column": place.column, "length": place.length, "text": text })
}

fn step(step: &StepOutcome) -> Value {
    json!({
        "title": escape(&step.title),
        "server": escape(&step.server),
        "place": format!("{}:{}", escape(&step.place.file), step.place.line),
        "at": millis(step.at),
        "ms": millis(step.duration),
        "passed": step.passed,
        "exchanges": step.exchanges.iter().map(exchange).collect::<Vec<_>>(),
    })
}

fn exchange(exchange: &Exchange) -> Value {
    let target = exchange.target.as_ref().map(|target| format!(" {}", escape(target))).unwrap_or_default();
    json!({ "request": format!("{}{target}", escape(&exchange.method)), "answer": exchange.answer, "ms": millis(exchange.duration) })
}

/// The transcripts, or where there are none, what the diagnoses show of them.
fn sessions(outcome: &CaseOutcome, room: &mut usize) -> Vec<Value> {
    if !outcome.transcripts.is_empty() {
        return outcome.transcripts.iter().map(|session| self::session(session, room)).collect();
    }
    let evidence = outcome.diagnostics.iter().filter_map(|diagnostic| diagnostic.evidence.as_ref());
    let shown = |Evidence { frames, omitted, .. }: &Evidence| {
        let refs: Vec<&Frame> = frames.iter().collect();
        json!({ "server": "", "before": omitted, "between": 0, "dropped": 0, "frames": self::frames(&refs, frames, room), "unshown": 0 })
    };
    evidence.map(shown).collect()
}

fn session(session: &SessionTranscript, room: &mut usize) -> Value {
    let all = &session.transcript.frames;
    let between = all.len().saturating_sub(FIRST + LAST);
    let stored: Vec<&Frame> = if between > 0 { all[..FIRST].iter().chain(&all[FIRST + between..]).collect() } else { all.iter().collect() };
    let frames = frames(&stored, all, room);
    json!({
        "server": escape(&session.server),
        "before": 0,
        "between": between,
        "after": FIRST,
        "dropped": session.transcript.dropped,
        "unshown": stored.len() - frames.len(),
        "frames": frames,
    })
}

/// As many as there is room for.
fn frames(stored: &[&Frame], all: &[Frame], room: &mut usize) -> Vec<Value> {
    let mut shown = Vec::new();
    for frame in stored {
        let value = json!(self::frame(frame, all));
        let size = value.to_string().len();
        if size > *room {
            break;
        }
        *room -= size;
        shown.push(value);
    }
    shown
}

fn frame(frame: &Frame, all: &[Frame]) -> ShownFrame {
    let direction = match frame.direction {
        Direction::ToServer => "out",
        Direction::FromServer => "in",
        Direction::Local => "local",
    };
    let Content { kind, head, body, raw } = content(&frame.body);
    let mut summary = wire::summary(frame, all);
    if summary.is_none() && matches!(frame.body, FrameBody::HttpEnd { .. }) {
        summary = Some(("end of the exchange".to_owned(), false));
    }
    let text = body.map(|body| cut(body, FRAME));
    let raw = raw.map(cut_raw);
    let size = text.as_ref().map(|(_, size)| *size).or(raw.as_ref().map(|(_, size)| *size));
    ShownFrame {
        number: frame.id.0,
        micros: u64::try_from(frame.at.as_micros()).unwrap_or(u64::MAX),
        direction,
        kind,
        said: summary.as_ref().map(|(text, _)| crate::escape_line(text, LINE)),
        is_bad: summary.is_some_and(|(_, is_bad)| is_bad),
        head,
        text: text.map(|(text, _)| text),
        is_json: body.is_some_and(|body| serde_json::from_str::<serde::de::IgnoredAny>(body).is_ok()),
        raw: raw.map(|(text, _)| text),
        size,
        is_cut: size.is_some_and(|size| size > FRAME),
    }
}

/// The parts of a frame.
#[derive(Default)]
struct Content<'a> {
    kind: &'static str,
    /// Lines before the content: a start line, headers.
    head: Vec<String>,
    /// The content where it is text.
    body: Option<&'a str>,
    /// The bytes, where they are not the text.
    raw: Option<&'a Raw>,
}

fn content(body: &FrameBody) -> Content<'_> {
    let bytes = |kind: &'static str, bytes: &'_ Raw| -> (&'static str, bool) { (kind, std::str::from_utf8(bytes.as_bytes()).is_ok()) };
    let of = |kind: &'static str, raw| {
        let (kind, is_text) = bytes(kind, raw);
        Content { kind, body: text_of(raw), raw: (!is_text).then_some(raw), ..Content::default() }
    };
    let headers = |headers: &[(String, String)]| {
        headers.iter().map(|(name, value)| escape(&format!("{name}: {value}")).into_owned()).collect::<Vec<_>>()
    };
    match body {
        FrameBody::Line { bytes, unterminated } => {
            let head = if *unterminated { vec!["the stream ended without a line feed".to_owned()] } else { Vec::new() };
            Content { head, ..of("line", bytes) }
        }
        FrameBody::Stderr { bytes } => of("stderr", bytes),
        FrameBody::Stdout { bytes } => of("stdout", bytes),
        FrameBody::HttpRequest { method, url, headers: sent, body, .. } => {
            let mut head = vec![escape(&format!("{method} {url}")).into_owned()];
            head.extend(headers(sent));
            Content { head, ..of("request", body) }
        }
        FrameBody::HttpResponse { status, headers: came, .. } => {
            let mut head = vec![format!("status {status}")];
            head.extend(headers(came));
            Content { kind: "response", head, ..Content::default() }
        }
        FrameBody::HttpBody { bytes, .. } => of("body", bytes),
        FrameBody::SseEvent { bytes, event, id, data, .. } => {
            let named = |name: &str, value: &Option<String>| value.as_ref().map(|value| escape(&format!("{name}: {value}")).into_owned());
            let head = [named("event", event), named("id", id)].into_iter().flatten().collect();
            Content { kind: "event", head, body: data.as_ref().and_then(text_of), raw: Some(bytes) }
        }
        FrameBody::HttpEnd { .. } => Content { kind: "end", ..Content::default() },
        FrameBody::Spawned { pid, command } => {
            Content { kind: "start", head: vec![format!("process {pid}"), escape(&command.join(" ")).into_owned()], ..Content::default() }
        }
        FrameBody::Exited { .. } => Content { kind: "exit", ..Content::default() },
        FrameBody::Closed { .. } => Content { kind: "close", ..Content::default() },
        FrameBody::Signalled { .. } => Content { kind: "signal", ..Content::default() },
        FrameBody::Note { .. } => Content { kind: "note", ..Content::default() },
    }
}

fn text_of(raw: &Raw) -> Option<&str> {
    std::str::from_utf8(raw.as_bytes()).ok().filter(|text| !text.is_empty())
}

/// At most `most` bytes of a text, made safe, and its whole size.
fn cut(text: &str, most: usize) -> (String, usize) {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (escape_block(&text[..end]).into_owned(), text.len())
}

/// The same for bytes, with `\x9b` for bytes that are not text.
fn cut_raw(raw: &Raw) -> (String, usize) {
    let bytes = raw.as_bytes();
    let mut text = String::new();
    for chunk in bytes[..bytes.len().min(FRAME)].utf8_chunks() {
        text.push_str(&escape_block(chunk.valid()));
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    (text, bytes.len())
}

fn texts(texts: &[String]) -> Vec<String> {
    texts.iter().take(LINES).map(|text| escape(text).into_owned()).collect()
}

fn millis(duration: std::time::Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
