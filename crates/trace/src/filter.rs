//! The filter language of traces: `method:tools/call status:error duration:>500ms -tool:ping`. The same in the command line, the proxy and
//! the viewer; `filter_cases.json` is the table against which every implementation is tested. Knows calls, no files.

mod parse;

use crate::calls::{Call, CallKind, CallStatus};
use crate::manifest::SessionInfo;
use mcproof_record::Direction;
use serde_json::Value;
use std::time::Duration;

/// Cases for every implementation of the language: `calls`, `matches` and `errors`.
pub const FILTER_CASES: &str = include_str!("filter_cases.json");

/// A parsed filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter(Condition);

/// Why a text is no filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FilterError {
    /// A lowercase fragment without a final dot.
    pub message: String,
    /// Where, in characters from 0.
    pub column: usize,
    /// Characters, at least 1.
    pub length: usize,
    /// What to write instead.
    pub hint: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Term(Term),
}

#[derive(Clone, Debug, PartialEq)]
enum Term {
    Method(Glob),
    Tool(Glob),
    Prompt(Glob),
    Uri(Glob),
    Target(Glob),
    Server(Glob),
    Transport(Glob),
    Client(Glob),
    Test(Glob),
    Id(Glob),
    Status(CallStatus),
    AnyError,
    Kind(CallKind),
    Direction(Direction),
    Session(u64),
    Call(u64),
    Code(Comparison<i64>),
    Http(Comparison<i64>),
    Duration(Comparison<Duration>),
    /// Of its beginning, counted from that of the session.
    At(Comparison<Duration>),
    /// In lower case.
    Text(String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Comparison<T> {
    operator: Operator,
    value: T,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    Above,
    AtLeast,
    Below,
    AtMost,
}

/// A value in which `*` is any text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Glob(Vec<String>);

impl Filter {
    /// Reads a filter. An empty text matches every call.
    ///
    /// # Errors
    /// If it is no filter, with the place of the first mistake.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        parse::filter(text).map(Self)
    }

    /// Whether a call matches. Without its session, nothing about the server matches.
    pub fn matches(&self, call: &Call, session: Option<&SessionInfo>) -> bool {
        self.0.matches(call, session)
    }
}

impl Condition {
    fn matches(&self, call: &Call, session: Option<&SessionInfo>) -> bool {
        match self {
            Self::All(conditions) => conditions.iter().all(|condition| condition.matches(call, session)),
            Self::Any(conditions) => conditions.iter().any(|condition| condition.matches(call, session)),
            Self::Not(condition) => !condition.matches(call, session),
            Self::Term(term) => term.matches(call, session),
        }
    }
}

impl Term {
    fn matches(&self, call: &Call, session: Option<&SessionInfo>) -> bool {
        let target = |glob: &Glob, method: &str| call.method == method && call.target.as_ref().is_some_and(|target| glob.matches(target));
        match self {
            Self::Method(glob) => glob.matches(&call.method),
            Self::Tool(glob) => target(glob, "tools/call"),
            Self::Prompt(glob) => target(glob, "prompts/get"),
            Self::Uri(glob) => call.method.starts_with("resources/") && call.target.as_ref().is_some_and(|target| glob.matches(target)),
            Self::Target(glob) => call.target.as_ref().is_some_and(|target| glob.matches(target)),
            Self::Server(glob) => session.is_some_and(|session| glob.matches(&session.server)),
            Self::Transport(glob) => session.is_some_and(|session| glob.matches(&session.transport)),
            Self::Client(glob) => session.and_then(|session| session.client.as_ref()).is_some_and(|client| glob.matches(client)),
            Self::Test(glob) => session.and_then(|session| session.test.as_ref()).is_some_and(|test| glob.matches(test)),
            Self::Id(glob) => match &call.id {
                None => false,
                Some(Value::String(id)) => glob.matches(id),
                Some(id) => glob.matches(&id.to_string()),
            },
            Self::Status(status) => call.status == *status,
            Self::AnyError => call.status.is_error(),
            Self::Kind(kind) => call.kind == *kind,
            Self::Direction(direction) => call.direction == *direction,
            Self::Session(key) => u64::from(call.session.0) == *key,
            Self::Call(key) => call.key.0 == *key,
            Self::Code(comparison) => call.code.is_some_and(|code| comparison.holds(code)),
            Self::Http(comparison) => {
                call.http.as_ref().and_then(|http| http.status).is_some_and(|status| comparison.holds(i64::from(status)))
            }
            Self::Duration(comparison) => call.duration().is_some_and(|duration| comparison.holds(duration)),
            Self::At(comparison) => comparison.holds(call.start),
            Self::Text(needle) => {
                let has = |text: &str| text.to_lowercase().contains(needle);
                has(&call.method)
                    || call.target.as_deref().is_some_and(has)
                    || call.message.as_deref().is_some_and(has)
                    || has(&call.request.to_text())
                    || call.response.as_ref().is_some_and(|response| has(&response.to_text()))
            }
        }
    }
}

impl<T: PartialOrd> Comparison<T> {
    fn holds(&self, value: T) -> bool {
        match self.operator {
            Operator::Equal => value == self.value,
            Operator::Above => value > self.value,
            Operator::AtLeast => value >= self.value,
            Operator::Below => value < self.value,
            Operator::AtMost => value <= self.value,
        }
    }
}

impl Glob {
    fn new(text: &str) -> Self {
        Self(text.split('*').map(str::to_owned).collect())
    }

    /// Greedy from the left, with the last part at the end: no more work than the length of both.
    fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.0.split_first() else { return false };
        let Some((last, middle)) = rest.split_last() else { return text == first };
        let Some(mut left) = text.strip_prefix(first.as_str()) else { return false };
        for part in middle {
            match left.find(part.as_str()) {
                Some(place) => left = &left[place + part.len()..],
                None => return false,
            }
        }
        left.ends_with(last.as_str())
    }
}
