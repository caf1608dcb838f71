//! Bounds on what a peer may send, and the news that one was hit. Knows no wire.

use std::fmt;

/// Bounds on what a peer may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one line on stdout.
    pub line: usize,
    /// Bytes of one HTTP response body that is no event stream.
    pub body: usize,
    /// Bytes of one server-sent event.
    pub event: usize,
    /// Bytes of the head of an HTTP response.
    pub head: usize,
    /// Of each JSON message.
    pub json: JsonLimits,
}

/// Bounds on the JSON of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonLimits {
    /// Levels of nesting; at most [`JsonLimits::DEEPEST`].
    pub depth: usize,
    /// Values of any kind, nested ones included.
    pub values: usize,
}

impl JsonLimits {
    /// What the parser takes: a bound on its stack.
    pub const DEEPEST: usize = 127;
}

impl Default for JsonLimits {
    /// Far more values than a model could read, and few enough for memory.
    fn default() -> Self {
        Self { depth: Self::DEEPEST, values: 250_000 }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { line: 16 << 20, body: 16 << 20, event: 16 << 20, head: 64 << 10, json: JsonLimits::default() }
    }
}

/// Which of the [`Limits`] was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    Line,
    Body,
    Event,
    Head,
    Depth,
    Values,
}

/// Why something on the wire broke off: in words for users, and which bound was hit, if one was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub bound: Option<Bound>,
    words: String,
}

impl Broken {
    pub(crate) fn at(bound: Bound, words: String) -> Self {
        Self { bound: Some(bound), words }
    }
}

impl From<String> for Broken {
    fn from(words: String) -> Self {
        Self { bound: None, words }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.words)
    }
}
