//! The tap: every byte of a session passes it on its way, below JSON, and is kept as a frame with its time.
//! Knows no messages.

use mcproof_record::{Direction, Frame, FrameBody, FrameId, Raw, Transcript};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

type Observer = Box<dyn Fn(&Frame) + Send + Sync>;

/// Records frames. Clones share one transcript.
#[derive(Clone)]
pub struct Tap(Arc<Inner>);

struct Inner {
    start: Instant,
    state: Mutex<State>,
    /// Sees each frame as it is recorded, also those that are later dropped.
    observer: Option<Observer>,
    bounds: TapBounds,
    secrets: Vec<String>,
}

#[derive(Default)]
struct State {
    next: u64,
    first: Vec<Frame>,
    last: VecDeque<Frame>,
    dropped: u64,
    bytes: usize,
}

/// What a tap keeps. The first frames (the handshake) and the newest are worth most; the middle of a flood is counted.
#[derive(Clone, Copy, Debug)]
pub struct TapBounds {
    /// Frames kept from the start of the session.
    pub first: usize,
    /// Bytes of the newest frames kept after those.
    pub bytes: usize,
}

impl Default for TapBounds {
    fn default() -> Self {
        Self { first: 64, bytes: 16 << 20 }
    }
}

/// Rough cost of a frame besides its bytes, so that a flood of empty lines is bounded as well.
const FRAME_OVERHEAD: usize = 256;

impl Tap {
    pub fn new() -> Self {
        Self::with(TapBounds::default(), Vec::new(), None)
    }

    /// `secrets` are replaced before anything is recorded; `observer` is called for each frame.
    pub fn with(bounds: TapBounds, secrets: Vec<String>, observer: Option<Observer>) -> Self {
        // Very short values would blank out half of a transcript without hiding anything worth hiding.
        let secrets = secrets.into_iter().filter(|secret| secret.len() >= 4).collect();
        Self(Arc::new(Inner { start: Instant::now(), state: Mutex::default(), observer, bounds, secrets }))
    }

    pub fn record(&self, direction: Direction, body: FrameBody) -> FrameId {
        let body = if self.0.secrets.is_empty() { body } else { redact(body, &self.0.secrets) };
        let mut state = self.state();
        // The clock is read under the lock: frames are ordered by id and by time alike.
        let frame = Frame { id: FrameId(state.next), at: self.0.start.elapsed(), direction, body };
        state.next += 1;
        if let Some(observer) = &self.0.observer {
            observer(&frame);
        }
        let id = frame.id;
        if state.first.len() < self.0.bounds.first {
            state.first.push(frame);
        } else {
            state.bytes += size(&frame);
            state.last.push_back(frame);
            while state.bytes > self.0.bounds.bytes && state.last.len() > 1 {
                if let Some(old) = state.last.pop_front() {
                    state.bytes -= size(&old);
                    state.dropped += 1;
                }
            }
        }
        id
    }

    pub(crate) fn note(&self, text: impl Into<String>) -> FrameId {
        self.record(Direction::Local, FrameBody::Note { text: text.into() })
    }

    /// Everything that is kept so far.
    pub fn transcript(&self) -> Transcript {
        let state = self.state();
        let frames = state.first.iter().chain(&state.last).cloned().collect();
        Transcript { frames, dropped: state.dropped }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Tap {
    fn default() -> Self {
        Self::new()
    }
}

fn size(frame: &Frame) -> usize {
    let bytes = match &frame.body {
        FrameBody::Line { bytes, .. } | FrameBody::Stderr { bytes } | FrameBody::Stdout { bytes } | FrameBody::HttpBody { bytes, .. } => {
            bytes.len()
        }
        // The data of an event is kept beside its raw bytes.
        FrameBody::SseEvent { bytes, .. } => bytes.len() * 2,
        FrameBody::HttpRequest { body, headers, url, .. } => body.len() + url.len() + headers_size(headers),
        FrameBody::HttpResponse { headers, .. } => headers_size(headers),
        _ => 0,
    };
    bytes + FRAME_OVERHEAD
}

fn headers_size(headers: &[(String, String)]) -> usize {
    headers.iter().map(|(name, value)| name.len() + value.len() + 48).sum()
}

const REDACTED: &str = "[redacted]";

fn redact(body: FrameBody, secrets: &[String]) -> FrameBody {
    let text = |value: String| secrets.iter().fold(value, |value, secret| value.replace(secret.as_str(), REDACTED));
    let raw = |value: Raw| match std::str::from_utf8(value.as_bytes()) {
        Ok(found) if secrets.iter().any(|secret| found.contains(secret.as_str())) => Raw::from(text(found.to_owned()).as_str()),
        _ => value,
    };
    let pairs = |values: Vec<(String, String)>| values.into_iter().map(|(name, value)| (name, text(value))).collect();
    match body {
        FrameBody::Line { bytes, unterminated } => FrameBody::Line { bytes: raw(bytes), unterminated },
        FrameBody::Stderr { bytes } => FrameBody::Stderr { bytes: raw(bytes) },
        FrameBody::Stdout { bytes } => FrameBody::Stdout { bytes: raw(bytes) },
        FrameBody::HttpRequest { exchange, method, url, headers, body } => {
            FrameBody::HttpRequest { exchange, method, url: text(url), headers: pairs(headers), body: raw(body) }
        }
        FrameBody::HttpResponse { exchange, status, headers } => FrameBody::HttpResponse { exchange, status, headers: pairs(headers) },
        FrameBody::HttpBody { exchange, bytes } => FrameBody::HttpBody { exchange, bytes: raw(bytes) },
        FrameBody::SseEvent { exchange, bytes, event, id, data } => {
            FrameBody::SseEvent { exchange, bytes: raw(bytes), event, id, data: data.map(text) }
        }
        FrameBody::HttpEnd { exchange, error } => FrameBody::HttpEnd { exchange, error: error.map(text) },
        FrameBody::Spawned { pid, command } => FrameBody::Spawned { pid, command: command.into_iter().map(text).collect() },
        FrameBody::Note { text: note } => FrameBody::Note { text: text(note) },
        other @ (FrameBody::Exited { .. } | FrameBody::Closed { .. } | FrameBody::Signalled { .. }) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> FrameBody {
        FrameBody::Line { bytes: text.into(), unterminated: false }
    }

    #[test]
    fn a_flood_keeps_the_first_and_the_last_frames_and_counts_the_rest() {
        let tap = Tap::with(TapBounds { first: 2, bytes: 3 * (FRAME_OVERHEAD + 1) }, vec![], None);
        for _ in 0..100 {
            tap.record(Direction::FromServer, line("x"));
        }
        let transcript = tap.transcript();
        let ids: Vec<u64> = transcript.frames.iter().map(|frame| frame.id.0).collect();
        assert_eq!(ids, [0, 1, 97, 98, 99]);
        assert_eq!(transcript.dropped, 95);
    }

    #[test]
    fn secrets_never_reach_a_frame() {
        let tap = Tap::with(TapBounds::default(), vec!["hunter2".into()], None);
        tap.record(Direction::ToServer, line(r#"{"token":"hunter2"}"#));
        let exchange = mcproof_record::ExchangeId(0);
        let headers = vec![("authorization".into(), "Bearer hunter2".into())];
        tap.record(
            Direction::ToServer,
            FrameBody::HttpRequest { exchange, method: "POST".into(), url: "http://h/?k=hunter2".into(), headers, body: "hunter2".into() },
        );
        tap.record(
            Direction::FromServer,
            FrameBody::SseEvent { exchange, bytes: "data: hunter2\n\n".into(), event: None, id: None, data: Some("hunter2".into()) },
        );
        let text = serde_json::to_string(&tap.transcript()).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
        assert_eq!(text.matches(REDACTED).count(), 6);
    }
}
