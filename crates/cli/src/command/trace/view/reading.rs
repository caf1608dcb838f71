//! Reads a trace in a thread of its own, again whenever it has grown, and gives its calls as rows. Knows no screen.

use super::super::lines::{INDENT, header, line, parts};
use mcproof_report::{Charset, Color, Style, escape_block, escape_line, frame_line};
use mcproof_trace::calls::{Call, CallKey, CallStatus};
use mcproof_trace::filter::Filter;
use mcproof_trace::{CallStream, Ending, Item, MarkBody, SessionKey, Trace, TraceError};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::successors;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Rows that are kept; earlier ones are left out.
const MOST_ROWS: usize = 200_000;

/// Lines of one call.
const MOST_LINES: usize = 20_000;

/// Steps of indentation.
const DEEPEST: usize = 8;

/// How often a trace is looked at, unless reading it takes longer than a quarter of that.
const EVERY: Duration = Duration::from_millis(250);

/// One line of the list.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) subject: Subject,
    /// Without control characters.
    pub(super) text: String,
    pub(super) tone: Tone,
}

/// What a row is about.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Subject {
    Call(CallKey),
    /// A session or a finding, with all that there is to say.
    Note(Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Heading,
    Fine,
    Open,
    Wrong,
}

/// What a trace holds by now.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    pub(super) rows: Vec<Row>,
    /// Calls, also those that do not match.
    pub(super) count: usize,
    /// Rows that were left out.
    pub(super) dropped: usize,
    /// Whether more may come.
    pub(super) is_open: bool,
    /// Why it cannot be read any further.
    pub(super) error: Option<String>,
}

pub(super) enum Wish {
    Filter(Filter),
    Whole(CallKey),
}

pub(super) enum News {
    Calls(Calls),
    /// A call with its messages and frames, as lines without control characters.
    Whole(CallKey, Vec<String>),
}

/// A reader that runs until it is dropped.
pub(super) struct Reading {
    wishes: Sender<Wish>,
    news: Receiver<News>,
}

impl Reading {
    pub(super) fn begin(file: PathBuf, filter: Filter, charset: Charset) -> Self {
        let ((wishes, wished), (told, news)) = (channel(), channel());
        let style = Style { color: Color::Plain, charset, width: usize::MAX };
        thread::spawn(move || follow(&file, filter, &style, &wished, &told));
        Self { wishes, news }
    }

    pub(super) fn news(&self) -> Option<News> {
        self.news.try_recv().ok()
    }

    pub(super) fn wish(&self, wish: Wish) {
        // Without a reader there is nothing to wish for.
        let _ = self.wishes.send(wish);
    }
}

fn follow(file: &Path, mut filter: Filter, style: &Style, wished: &Receiver<Wish>, told: &Sender<News>) {
    let mut seen = None;
    let mut pause = EVERY;
    loop {
        let now = state(file);
        if seen != Some(now) {
            let began = Instant::now();
            if told.send(News::Calls(read(file, &filter, style))).is_err() {
                return;
            }
            (seen, pause) = (Some(now), EVERY.max(4 * began.elapsed()));
        }
        match wished.recv_timeout(pause) {
            Ok(Wish::Filter(wanted)) => (filter, seen) = (wanted, None),
            Ok(Wish::Whole(key)) => {
                let lines = whole(file, key, style).unwrap_or_else(|error| vec![escape_line(&error.to_string(), 300)]);
                if told.send(News::Whole(key, lines)).is_err() {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Differs if the file was written to.
fn state(file: &Path) -> Option<(u64, SystemTime)> {
    let about = file.metadata().ok()?;
    Some((about.len(), about.modified().ok()?))
}

pub(super) fn read(file: &Path, filter: &Filter, style: &Style) -> Calls {
    let mut calls = Calls::default();
    let mut stream = match Trace::open(file) {
        Ok(trace) => CallStream::new(trace),
        Err(error) => return Calls { error: Some(escape_line(&error.to_string(), 300)), ..calls },
    };
    let (mut found, mut parents, mut notes, mut last) = (BTreeMap::new(), BTreeMap::new(), Vec::new(), CallKey(0));
    while let Some(item) = stream.next() {
        match item {
            Ok(Item::Call(mut call)) => {
                settle(&mut call, &stream);
                calls.count += 1;
                last = last.max(call.key);
                parents.extend(call.parent.map(|parent| (call.key, parent)));
                if filter.matches(&call, stream.session(call.session)) {
                    found.insert(call.key, shown(&call, style));
                    if found.len() > MOST_ROWS {
                        found.pop_first();
                        calls.dropped += 1;
                    }
                    if parents.len() > MOST_ROWS {
                        parents.pop_first();
                    }
                }
            }
            Ok(Item::Mark(mark)) => {
                if let MarkBody::Finding { rule, message, .. } = &mark.body {
                    let text = format!("       finding  {}  {}", escape_line(rule, 80), escape_line(message, 300));
                    let subject = Subject::Note(vec![escape_line(rule, 200), String::new(), escape_block(message).into_owned()]);
                    notes.push((last, Row { subject, text, tone: Tone::Wrong }));
                }
            }
            Ok(_) => {}
            Err(error) => calls.error = Some(escape_line(&error.to_string(), 300)),
        }
    }
    calls.is_open = stream.ending() == Ending::CutOff;
    calls.rows = in_order(found, &parents, notes, &stream);
    calls
}

/// What is open in a trace that is being written is pending, not lost.
fn settle(call: &mut Call, stream: &CallStream) {
    if stream.ending() == Ending::CutOff && call.status == CallStatus::NoResponse {
        (call.status, call.end, call.message) = (CallStatus::Pending, None, None);
    }
}

/// What is kept of a call: not its messages, which may be large.
struct Shown {
    session: SessionKey,
    times: String,
    text: String,
    tone: Tone,
}

fn shown(call: &Call, style: &Style) -> Shown {
    let tone = match call.status {
        status if status.is_error() => Tone::Wrong,
        CallStatus::Ok => Tone::Fine,
        _ => Tone::Open,
    };
    let (times, text) = parts(call, style);
    Shown { session: call.session, times, text, tone }
}

/// As calls began, each below the heading of its session; findings stand behind what came before them.
fn in_order(
    found: BTreeMap<CallKey, Shown>,
    parents: &BTreeMap<CallKey, CallKey>,
    notes: Vec<(CallKey, Row)>,
    stream: &CallStream,
) -> Vec<Row> {
    let mut notes = notes.into_iter().peekable();
    let (mut rows, mut session) = (Vec::new(), None);
    for (key, shown) in found {
        while let Some((_, note)) = notes.next_if(|(after, _)| *after < key) {
            rows.push(note);
        }
        if session != Some(shown.session) {
            session = Some(shown.session);
            let text = header(shown.session, stream.session(shown.session));
            rows.push(Row { subject: Subject::Note(vec![text.clone()]), text, tone: Tone::Heading });
        }
        let depth = successors(parents.get(&key), |parent| parents.get(parent)).take(DEEPEST).count();
        let text = format!("{}{:indent$}{}", shown.times, "", shown.text, indent = INDENT * depth);
        rows.push(Row { subject: Subject::Call(key), text, tone: shown.tone });
    }
    rows.extend(notes.map(|(_, note)| note));
    rows
}

/// A call as a whole: its line, its messages and its frames.
fn whole(file: &Path, key: CallKey, style: &Style) -> Result<Vec<String>, TraceError> {
    let mut stream = CallStream::new(Trace::open(file)?);
    let call = loop {
        match stream.next() {
            Some(Ok(Item::Call(mut call))) if call.key == key => {
                settle(&mut call, &stream);
                break call;
            }
            Some(item) => drop(item?),
            None => return Ok(vec!["this call is not in the trace any more".to_owned()]),
        }
    };
    let mut lines = vec![header(call.session, stream.session(call.session)), line(&call, 0, style).trim_end().to_owned()];
    for (title, message) in [("request", Some(&call.request)), ("response", call.response.as_ref())] {
        if let Some(message) = message.filter(|message| !message.is_empty()) {
            let text = match serde_json::from_slice::<Value>(message.as_bytes()) {
                Ok(value) => format!("{value:#}"),
                Err(_) => message.to_text().into_owned(),
            };
            lines.extend([String::new(), title.to_owned()]);
            lines.extend(escape_block(&text).lines().take(MOST_LINES).map(str::to_owned));
        }
    }
    lines.extend([String::new(), "frames".to_owned()]);
    let wanted: BTreeSet<_> = call.frames.iter().copied().collect();
    for item in CallStream::new(Trace::open(file)?) {
        if let Item::Frame(frame) = item?
            && frame.session == call.session
            && wanted.contains(&frame.id)
        {
            lines.extend(frame_line(&frame.into_frame(), style).lines().map(str::to_owned));
        }
        if lines.len() >= MOST_LINES {
            lines.push("more is left out: `mcproof trace show FILE ID` prints all of it".to_owned());
            break;
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_record::{Direction, Frame, FrameBody, FrameId};
    use mcproof_trace::{Manifest, SessionInfo, TraceWriter};
    use std::cell::Cell;

    fn style() -> Style {
        Style { color: Color::Plain, charset: Charset::Ascii, width: usize::MAX }
    }

    #[test]
    fn what_is_written_appears_and_what_has_no_response_is_pending_until_the_trace_ends() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let writer = TraceWriter::create(file.path(), Manifest::default()).unwrap();
        let session = writer.begin_session(SessionInfo { server: "shop".into(), transport: "stdio".into(), ..SessionInfo::default() });
        let count = Cell::new(0);
        let send = |direction, message: Value| {
            let line = message.to_string().into_bytes();
            let id = FrameId(count.replace(count.get() + 1));
            writer.frame(
                session,
                &Frame { id, at: Duration::ZERO, direction, body: FrameBody::Line { bytes: line.into(), unterminated: false } },
            );
        };
        send(
            Direction::ToServer,
            serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "buy\u{1b}[31m"}}),
        );
        let every = Filter::parse("").unwrap();
        let open = read(file.path(), &every, &style());
        assert!(open.is_open && open.error.is_none() && open.count == 1, "{open:?}");
        assert_eq!(open.rows[1].tone, Tone::Open);
        assert!(
            open.rows[0].text.contains("shop") && open.rows[1].text.contains("tools/call buy") && !open.rows[1].text.contains('\u{1b}'),
            "{open:?}"
        );

        send(Direction::FromServer, serde_json::json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "sold out"}}));
        let answered = read(file.path(), &every, &style());
        assert!(answered.rows[1].tone == Tone::Wrong && answered.rows[1].text.contains("sold out"), "{answered:?}");
        assert_eq!(read(file.path(), &Filter::parse("status:ok").unwrap(), &style()).rows, []);

        send(Direction::ToServer, serde_json::json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}));
        writer.finish().unwrap();
        let ended = read(file.path(), &every, &style());
        assert!(!ended.is_open && ended.rows[2].text.contains("no-response"), "{ended:?}");
        let lines = whole(file.path(), CallKey(1), &style()).unwrap();
        assert!(lines.iter().any(|line| line.contains("-32603")) && lines.contains(&"frames".to_owned()), "{lines:?}");
    }

    #[test]
    fn a_file_that_is_no_trace_is_told_not_shown_as_empty() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "hello").unwrap();
        assert!(read(file.path(), &Filter::parse("").unwrap(), &style()).error.is_some());
    }
}
