//! Bounds on what a peer may send, and the news that one was hit. Knows no wire.

use mcproof_protocol::Transport;
use serde_json::Value;
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

impl Limits {
    /// How many times as much as one message the pages of a list may hold together.
    const MESSAGES_OF_A_LIST: usize = 4;

    /// What all pages of a list may hold together, on this transport.
    pub(crate) fn of_a_list(&self, transport: Transport) -> ListRoom {
        let (bound, message) = match transport {
            Transport::InMemory | Transport::Stdio => (Bound::Line, self.line),
            Transport::Http if self.body >= self.event => (Bound::Body, self.body),
            Transport::Http | Transport::Sse => (Bound::Event, self.event),
        };
        let most = |of_one: usize| of_one.saturating_mul(Self::MESSAGES_OF_A_LIST);
        ListRoom { bound, bytes: Room::of(most(message)), values: Room::of(most(self.json.values)) }
    }
}

/// What the pages of one list may hold together, and how much of it they have taken: each page keeps within the [`Limits`] of a message,
/// and there may be thousands of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListRoom {
    /// Which limit bounds the bytes.
    bound: Bound,
    bytes: Room,
    values: Room,
}

#[derive(Clone, Copy, Debug)]
struct Room {
    most: usize,
    taken: usize,
}

impl Room {
    fn of(most: usize) -> Self {
        Self { most, taken: 0 }
    }

    fn take(&mut self, more: usize) {
        self.taken = self.taken.saturating_add(more);
    }

    fn overfull(self) -> Option<usize> {
        (self.taken > self.most).then_some(self.most)
    }
}

impl ListRoom {
    /// Takes the room of an item.
    ///
    /// # Errors
    /// The limit that was hit, and how many bytes of text or values all pages may have.
    pub(crate) fn take(&mut self, item: &Value) -> Result<(), (Bound, usize)> {
        let (bytes, values) = measured(item);
        self.bytes.take(bytes);
        self.values.take(values);
        self.overfull()
    }

    /// Takes the room of a cursor: pages without items may be large, too.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub(crate) fn take_cursor(&mut self, cursor: &str) -> Result<(), (Bound, usize)> {
        self.bytes.take(cursor.len());
        self.overfull()
    }

    fn overfull(&self) -> Result<(), (Bound, usize)> {
        let values = self.values.overfull().map(|most| (Bound::Values, most));
        values.or_else(|| self.bytes.overfull().map(|most| (self.bound, most))).map_or(Ok(()), Err)
    }
}

/// Bytes of the texts in a value, each other scalar counted as one, and how many values it has. No deeper than a message may be nested.
pub(crate) fn measured(value: &Value) -> (usize, usize) {
    let add = |(bytes, values): (usize, usize), (more, inner): (usize, usize)| (bytes + more, values + inner);
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => (1, 1),
        Value::String(text) => (text.len(), 1),
        Value::Array(items) => items.iter().map(measured).fold((0, 1), add),
        Value::Object(members) => members.iter().map(|(name, member)| add((name.len(), 0), measured(member))).fold((0, 1), add),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_has_room_for_four_messages() {
        let limits = Limits { line: 10, body: 20, event: 30, json: JsonLimits { values: 3, ..JsonLimits::default() }, ..Limits::default() };
        let check = |transport: Transport, items: &[Value], expected: Result<(), (Bound, usize)>| {
            let mut room = limits.of_a_list(transport);
            assert_eq!(items.iter().try_for_each(|item| room.take(item)), expected, "{transport}: {items:?}");
        };
        let of = |length: usize| Value::String("x".repeat(length));
        check(Transport::Stdio, &[of(20), json!({ "key": "x".repeat(17) })], Ok(()));
        check(Transport::Stdio, &[of(20), json!({ "key": "x".repeat(18) })], Err((Bound::Line, 40)));
        check(Transport::Sse, &[of(100), of(21)], Err((Bound::Event, 120)));
        check(Transport::Http, &[of(100), of(20)], Ok(()));
        let mut room = limits.of_a_list(Transport::Stdio);
        assert_eq!(room.take_cursor(&"x".repeat(20)).and_then(|()| room.take(&of(20))), Ok(()), "cursors and items share the room");
        assert_eq!(room.take_cursor("x"), Err((Bound::Line, 40)));
        check(Transport::Stdio, &[json!([1, 2, 3, 4, 5]), json!([1, 2, 3, 4, 5])], Ok(()));
        check(Transport::Stdio, &[json!([1, 2, 3, 4, 5]), json!([1, 2, 3, 4, 5, 6])], Err((Bound::Values, 12)));
    }
}
