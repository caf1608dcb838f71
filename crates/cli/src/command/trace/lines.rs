//! Calls as lines, in the order in which they began.

use mcproof_record::{Direction, FrameId};
use mcproof_report::{Charset, Color, Style, escape_line};
use mcproof_trace::calls::{Call, CallKey, CallKind, CallStatus};
use mcproof_trace::{SessionInfo, SessionKey};
use std::collections::BTreeMap;
use std::time::Duration;

/// Calls that wait for one that began before them.
const MOST_WAITING: usize = 10_000;

/// Calls whose depth is known.
const MOST_DEPTHS: usize = 100_000;

/// Columns of a message.
const LONGEST_MESSAGE: usize = 200;

/// Puts calls that come as they end into the order in which they began, as long as not too many wait.
pub(super) struct InOrder {
    next: u64,
    /// Those that are not shown are there as nothing.
    waiting: BTreeMap<CallKey, Option<Call>>,
}

impl InOrder {
    pub(super) fn new() -> Self {
        Self { next: 1, waiting: BTreeMap::new() }
    }

    /// A call has ended, which may not be shown. Gives those whose turn it is now.
    pub(super) fn push(&mut self, key: CallKey, call: Option<Call>) -> Vec<Call> {
        self.waiting.insert(key, call);
        let mut ready = Vec::new();
        while let Some(first) = self.waiting.first_entry() {
            let is_next = first.key().0 <= self.next;
            if !is_next && self.waiting.len() <= MOST_WAITING {
                break;
            }
            let Some((key, call)) = self.waiting.pop_first() else { break };
            self.next = self.next.max(key.0 + 1);
            ready.extend(call);
        }
        ready
    }

    pub(super) fn rest(self) -> impl Iterator<Item = Call> {
        self.waiting.into_values().flatten()
    }
}

/// What rules report, in the place of what it is about: after the call with that frame, or before the first call that begins after it.
#[derive(Default)]
pub(super) struct Findings {
    waiting: BTreeMap<SessionKey, WaitingFindings>,
    /// The frame with which the last call of each session began that is shown.
    reached: BTreeMap<SessionKey, FrameId>,
    count: usize,
}

/// Those of a session that are not shown yet.
#[derive(Default)]
struct WaitingFindings {
    by_frame: BTreeMap<FrameId, Vec<String>>,
    of_session: Vec<String>,
}

impl Findings {
    /// Takes a finding. Gives it back if what it is about is shown already.
    pub(super) fn push(&mut self, session: SessionKey, frame: Option<FrameId>, text: String) -> Option<String> {
        let is_shown = self.reached.get(&session).is_some_and(|reached| frame.is_none_or(|frame| frame <= *reached));
        if is_shown || self.count >= MOST_WAITING {
            return Some(text);
        }
        self.count += 1;
        let waiting = self.waiting.entry(session).or_default();
        match frame {
            Some(frame) => waiting.by_frame.entry(frame).or_default().push(text),
            None => waiting.of_session.push(text),
        }
        None
    }

    /// Those that stand before a call, which is shown next.
    pub(super) fn before(&mut self, call: &Call) -> Vec<String> {
        let (Some(waiting), Some(begun)) = (self.waiting.get_mut(&call.session), call.frames.first()) else { return Vec::new() };
        let mut found = Vec::new();
        while let Some(earliest) = waiting.by_frame.first_entry().filter(|earliest| earliest.key() < begun) {
            found.extend(earliest.remove());
        }
        self.count -= found.len();
        found
    }

    /// Those that stand after a call, which was just shown.
    pub(super) fn after(&mut self, call: &Call) -> Vec<String> {
        if let Some(begun) = call.frames.first() {
            let reached = self.reached.entry(call.session).or_insert(*begun);
            *reached = (*begun).max(*reached);
        }
        let Some(waiting) = self.waiting.get_mut(&call.session) else { return Vec::new() };
        let mut found: Vec<String> = call.frames.iter().filter_map(|frame| waiting.by_frame.remove(frame)).flatten().collect();
        found.append(&mut waiting.of_session);
        self.count -= found.len();
        found
    }

    /// Those of frames after the last call, and of sessions without calls.
    pub(super) fn rest(self) -> impl Iterator<Item = (SessionKey, String)> {
        let of_session = |(session, waiting): (SessionKey, WaitingFindings)| {
            waiting.by_frame.into_values().flatten().chain(waiting.of_session).map(move |text| (session, text))
        };
        self.waiting.into_iter().flat_map(of_session)
    }
}

/// Writes calls as a tree: what happened during a call stands below it.
pub(super) struct Tree<'a> {
    style: &'a Style,
    depths: BTreeMap<CallKey, usize>,
    session: Option<SessionKey>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(style: &'a Style) -> Self {
        Self { style, depths: BTreeMap::new(), session: None }
    }

    /// A line for the call, after one for its session if that is another one than before.
    pub(super) fn line(&mut self, call: &Call, session: Option<&SessionInfo>) -> String {
        let text = self.begin(call.session, session);
        let depth = call.parent.and_then(|parent| self.depths.get(&parent)).map_or(0, |depth| depth + 1).min(8);
        self.depths.insert(call.key, depth);
        if self.depths.len() > MOST_DEPTHS {
            self.depths.pop_first();
        }
        text + &line(call, depth, self.style)
    }

    /// What is no call of a session, after a line for the session if that is another one than before.
    pub(super) fn beside(&mut self, key: SessionKey, session: Option<&SessionInfo>, text: &str) -> String {
        self.begin(key, session) + text
    }

    fn begin(&mut self, key: SessionKey, session: Option<&SessionInfo>) -> String {
        if self.session == Some(key) {
            return String::new();
        }
        let gap = if self.session.is_none() { "" } else { "\n" };
        self.session = Some(key);
        format!("{gap}{}\n", header(key, session))
    }
}

pub(super) fn header(key: SessionKey, session: Option<&SessionInfo>) -> String {
    let mut text = format!("session {key}");
    if let Some(session) = session {
        let parts = [
            Some(session.server.as_str()),
            Some(session.transport.as_str()),
            session.era.as_deref(),
            session.revision.as_deref(),
            session.client.as_deref(),
            session.test.as_deref(),
        ];
        let shown: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).map(|part| escape_line(part, 80)).collect();
        text += &format!("  {}", shown.join("  "));
    }
    text
}

pub(super) fn line(call: &Call, depth: usize, style: &Style) -> String {
    let (times, text) = parts(call, style);
    format!("{times}{:indent$}{text}\n", "", indent = INDENT * depth)
}

/// Columns by which a call stands to the right of the one that it belongs to.
pub(super) const INDENT: usize = 2;

/// Number and times of a call, and what it is about. Between the two goes the indentation.
pub(super) fn parts(call: &Call, style: &Style) -> (String, String) {
    let (to, from) = match style.charset {
        Charset::Unicode => ("→", "←"),
        Charset::Ascii => (">", "<"),
    };
    let arrow = if call.direction == Direction::ToServer { to } else { from };
    let color = |color: anstyle::AnsiColor| match style.color {
        Color::Ansi => anstyle::Style::new().fg_color(Some(color.into())),
        Color::Plain => anstyle::Style::new(),
    };
    let mark = match call.status {
        status if status.is_error() => color(anstyle::AnsiColor::Red),
        CallStatus::Ok => color(anstyle::AnsiColor::Green),
        _ => color(anstyle::AnsiColor::Yellow),
    };
    let duration = call.duration().filter(|_| call.kind != CallKind::Notification).map(shown).unwrap_or_default();
    let subject = call.target.as_deref().map(|target| format!(" {}", escape_line(target, 100))).unwrap_or_default();
    let mut text = format!("{arrow} {}{subject}", escape_line(&call.method, 100));
    if call.kind != CallKind::Notification || call.status != CallStatus::Ok {
        text += &format!("  {mark}{}{mark:#}", call.status.name());
    }
    if let Some(code) = call.code {
        text += &format!(" {code}");
    }
    if let Some(message) = &call.message {
        text += &format!("  {}", escape_line(message, LONGEST_MESSAGE));
    }
    (format!("{:>5}  +{:.3}s  {duration:>9}  ", call.key.0, call.start.as_secs_f64()), text)
}

/// A duration in three or four digits.
pub(super) fn shown(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        _ if seconds < 0.001 => format!("{:.0} µs", seconds * 1e6),
        _ if seconds < 0.01 => format!("{:.1} ms", seconds * 1e3),
        _ if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(session: u32, frames: &[u64]) -> Call {
        let value = json!({
            "key": 1, "session": session, "kind": "request", "direction": "to-server", "method": "ping", "start_us": 0, "status": "ok",
            "frames": frames, "request": "",
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_finding_stands_after_what_it_is_about() {
        let mut findings = Findings::default();
        let (one, two) = (SessionKey(1), SessionKey(2));
        for (session, frame, text) in [
            (one, Some(5), "of the second"),
            (one, Some(9), "of the first"),
            (one, Some(7), "between"),
            (one, None, "of all"),
            (two, Some(0), "of another"),
            (one, Some(99), "of the end"),
        ] {
            assert_eq!(findings.push(session, frame.map(FrameId), text.to_owned()), None);
        }
        let mut shown = Vec::new();
        for call in [call(1, &[1, 9]), call(1, &[4, 5]), call(1, &[8])] {
            shown.extend(findings.before(&call));
            shown.push(format!("call {}", call.frames[0].0));
            shown.extend(findings.after(&call));
        }
        let expected = ["call 1", "of the first", "of all", "call 4", "of the second", "between", "call 8"];
        assert_eq!(shown, expected);
        // What comes late is about what was shown.
        assert_eq!(findings.push(one, Some(FrameId(8)), "late".to_owned()), Some("late".to_owned()));
        assert_eq!(findings.push(one, Some(FrameId(10)), "later".to_owned()), None);
        let rest: Vec<(u32, String)> = findings.rest().map(|(session, text)| (session.0, text)).collect();
        assert_eq!(rest, [(1, "later".to_owned()), (1, "of the end".to_owned()), (2, "of another".to_owned())]);
    }
}
