//! Mutations: the correct server with one thing changed mechanically, wherever it sends that thing. A mutation has a short name
//! that repeats it (`zoo none --http 0 --mutate 'result:tools/list delete /result/tools'`), and the list of all of them comes
//! from a journal of what the server really sent. Knows no rule and no check.

mod bytes;
mod catalogue;
mod journal;
mod message;

pub use catalogue::catalogue;

use super::server::{Part, Received, Response};
use crate::raw_http::Request;
use journal::Journal;
use serde_json::Value;
use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    /// What this thread is about to send: a message, and the response that carries it. A message becomes bytes in the thread
    /// that says it, so that nothing else can come in between.
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
    static RESPONSE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// A message without a subject, such as the error for an unreadable message.
const UNNAMED: &str = "error:-";

/// One change: of what, which, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mutation {
    /// `result:METHOD`, `error:METHOD`, `notification:METHOD` or `request:METHOD`, with `#` and the name of what was called or
    /// read; or `response:` with the HTTP method, the method of the message and the status; or `stream` for its end.
    subject: String,
    operation: String,
    /// A JSON pointer or a header.
    place: String,
}

impl Mutation {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.splitn(3, ' ');
        let mut word = || words.next().map(str::to_owned);
        Some(Self { subject: word()?, operation: word()?, place: word().unwrap_or_default() })
    }
}

/// Applies a mutation between the correct server and the wire, and records a journal.
#[derive(Debug, Default)]
pub(super) struct Mutator {
    mutation: Option<Mutation>,
    /// Which occurrence is changed; all of them without one.
    nth: Option<usize>,
    occurrences: AtomicUsize,
    /// The file that is written when something was changed.
    witness: Option<PathBuf>,
    journal: Option<Journal>,
    pub(super) has_fixtures: bool,
    pub(super) guards: bool,
}

impl Mutator {
    /// Reads `--mutate MUTATION`, `--nth N`, `--witness FILE` and `--journal FILE`. `None` if there is none of the first and
    /// the last.
    pub(super) fn parse(server: &str, words: &[&str]) -> Option<Self> {
        let after = |flag: &str| words.iter().position(|word| *word == flag).and_then(|place| words.get(place + 1)).copied();
        let mutation = after("--mutate").and_then(Mutation::parse);
        let journal = after("--journal").map(|path| Journal::new(path.into()));
        if mutation.is_none() && journal.is_none() {
            return None;
        }
        Some(Self {
            mutation,
            nth: after("--nth").and_then(|nth| nth.parse().ok()),
            witness: after("--witness").map(PathBuf::from),
            journal,
            has_fixtures: server == "fixtures",
            guards: server == "guarded",
            ..Self::default()
        })
    }

    /// The mutation, if it is one of this subject.
    fn of(&self, subject: &str) -> Option<&Mutation> {
        let meant =
            |known: &str| known == subject || known == "*" || known.strip_suffix('*').is_some_and(|start| subject.starts_with(start));
        self.mutation.as_ref().filter(|mutation| meant(&mutation.subject))
    }

    /// Whether to change this occurrence. Called only if there is something to change.
    fn strikes(&self) -> bool {
        let count = self.occurrences.fetch_add(1, Ordering::Relaxed) + 1;
        let strikes = self.nth.is_none_or(|nth| nth == count);
        if let Some(witness) = self.witness.as_ref().filter(|_| strikes) {
            // Without the file the test fails, because nothing seems to have changed.
            let _ = fs::write(witness, "changed\n");
        }
        strikes
    }

    fn note(&self, form: &str, subject: &str, value: impl FnOnce() -> Value) {
        if let Some(journal) = &self.journal {
            journal.note(form, subject, value);
        }
    }

    /// A message before it is sent; it may be dropped or become several.
    pub(super) fn outgoing(&self, received: &Received, mut message: Value) -> Vec<Value> {
        let subject = subject(received, &message);
        self.note("message", &subject, || message.clone());
        let changed = self.of(&subject).filter(|mutation| message::changes(mutation, &message)).filter(|_| self.strikes());
        MESSAGE.set(subject);
        let Some(mutation) = changed else { return vec![message] };
        match mutation.operation.as_str() {
            "drop" => Vec::new(),
            "double" => vec![message.clone(), message],
            _ => {
                message::edit(mutation, &mut message);
                vec![message]
            }
        }
    }

    /// The next message of this thread has another subject.
    pub(super) fn message_sent() {
        MESSAGE.set(String::new());
    }

    fn subject_of_message() -> String {
        MESSAGE.with_borrow(|subject| if subject.is_empty() { UNNAMED.to_owned() } else { subject.clone() })
    }

    /// The text of a message.
    pub(super) fn json(&self, message: &Value) -> String {
        let subject = Self::subject_of_message();
        match self.of(&subject).filter(|mutation| message::repeats(mutation, message)).filter(|_| self.strikes()) {
            Some(mutation) => message::with_repetition(message, &mutation.place),
            None => message.to_string(),
        }
    }

    /// The bytes of a message, in the form of a line, an event or a chunk.
    fn framed(&self, form: &str, subject: &str, bytes: Vec<u8>) -> Vec<u8> {
        self.note(form, subject, || Value::Null);
        match self.of(subject).filter(|mutation| mutation.operation.split(':').next() == Some(form)) {
            Some(mutation) => match bytes::change(mutation, &bytes) {
                Some(changed) if self.strikes() => changed,
                _ => bytes,
            },
            None => bytes,
        }
    }

    /// The text of a message that is a body. What is said twice stands in it twice, since nothing can follow it.
    pub(super) fn body(&self, message: &Value) -> String {
        let text = self.json(message);
        match self.of(&Self::subject_of_message()).is_some_and(|mutation| mutation.operation == "double") {
            true => format!("{text}\n{text}"),
            false => text,
        }
    }

    pub(super) fn line(&self, message: &Value) -> Vec<u8> {
        self.framed("line", &Self::subject_of_message(), super::deviation::line(&self.json(message)))
    }

    pub(super) fn event(&self, message: &Value) -> Vec<u8> {
        self.framed("event", &Self::subject_of_message(), super::deviation::event(&self.json(message)))
    }

    pub(super) fn endpoint(&self, path: &str) -> Vec<u8> {
        MESSAGE.set("endpoint".to_owned());
        self.framed("event", "endpoint", super::deviation::endpoint(path))
    }

    pub(super) fn response(&self, request: &Request, response: &Response) {
        RESPONSE.set(format!("response:{}:{}", request_name(request), response.status));
    }

    pub(super) fn wire(&self, part: Part, bytes: Vec<u8>) -> Vec<u8> {
        let response = || RESPONSE.with_borrow(String::clone);
        match part {
            Part::Head => {
                let subject = response();
                self.note("head", &subject, || Value::from(String::from_utf8_lossy(&bytes).into_owned()));
                self.framed("head", &subject, bytes)
            }
            Part::Body if bytes.is_empty() => bytes,
            Part::Body => self.framed("body", &response(), bytes),
            Part::Chunk => self.framed("chunk", &Self::subject_of_message(), bytes),
            Part::End => self.framed("end", "stream", bytes),
        }
    }
}

/// What a message is, in a word: the kind, the method, and what was called or read.
fn subject(received: &Received, message: &Value) -> String {
    if let Some(method) = message["method"].as_str() {
        let kind = if message.get("id").is_some() { "request" } else { "notification" };
        return format!("{kind}:{method}");
    }
    let kind = match (message.get("result"), message.get("error")) {
        (Some(_), _) => "result",
        (None, Some(_)) => "error",
        (None, None) => "other",
    };
    let params = received.params();
    let name = params["name"].as_str().or_else(|| params["uri"].as_str()).filter(|_| kind == "result").unwrap_or_default();
    // What was asked for on purpose to be refused has many names.
    let name: String = if name.len() > 60 { "long".to_owned() } else { name.replace(char::is_whitespace, "_") };
    let separator = if name.is_empty() { "" } else { "#" };
    format!("{kind}:{}{separator}{name}", received.method())
}

fn request_name(request: &Request) -> String {
    let method = serde_json::from_slice::<Value>(&request.body).ok().and_then(|message| message["method"].as_str().map(str::to_owned));
    match method {
        Some(method) => format!("{}:{}", request.method, method.replace(char::is_whitespace, "_")),
        None => request.method.clone(),
    }
}
