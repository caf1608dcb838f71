//! A server that answers as recorded: over any transport and in either era, whatever was recorded. What it says comes from a source of
//! answers (`Answers`): a recording, the lock of a contract, or whoever implements it.

mod answers;
mod contract;
pub(crate) mod era;
mod http;
mod matching;
mod player;
mod recorded;
mod recording;
mod server;
mod session;
mod stdio;

pub use answers::{Answers, Miss, MissReason, Nearest, Script, ServerFacts, SessionState};
pub use contract::ContractAnswers;
pub use http::{HttpKind, serve_http};
pub use matching::Ignored;
pub use recorded::{RecordedAnswers, Repetition};
pub use recording::{
    CallNumbers, Origin, Outcome, Question, RecordedNotification, RecordedRequest, RecordedSession, Recording, Step, TimedStep,
};
pub use server::{Mock, MockEvent, MockOptions, ResponseCheck};
pub use stdio::serve_stdio;
