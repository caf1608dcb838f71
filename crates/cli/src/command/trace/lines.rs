//! Calls as lines, in the order in which they began.

use mcproof_record::Direction;
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
        let mut text = String::new();
        if self.session != Some(call.session) {
            text = format!("{}{}\n", if self.session.is_none() { "" } else { "\n" }, header(call.session, session));
            self.session = Some(call.session);
        }
        let depth = call.parent.and_then(|parent| self.depths.get(&parent)).map_or(0, |depth| depth + 1).min(8);
        self.depths.insert(call.key, depth);
        if self.depths.len() > MOST_DEPTHS {
            self.depths.pop_first();
        }
        text + &line(call, depth, self.style)
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
