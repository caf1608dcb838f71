//! What a transcript shows: the conversation in it, and the diagnosis of a failure. Knows no suites and no rules; does no I/O.

pub mod arguments;
mod conversation;
pub mod diagnosis;
pub mod differences;
#[doc(hidden)]
pub mod example;
pub mod json_schema;
pub mod messages;
pub mod oddities;
pub mod offer;
mod patterns;
pub mod probes;
pub mod stdout_lines;
mod suggest;
pub mod texts;
mod unread;
mod unusual_headers;
pub mod wording;

pub use conversation::{
    Attempt, AttemptOutcome, ConversationView, HttpExchange, MOST_NOTIFICATIONS, TooMuch, USUAL_PROBES, WireMessage, is_error_response,
    read_json,
};
pub use patterns::matches_every_text;
pub use suggest::{did_you_mean, interpreter, listed, missing, missing_from};
pub use unread::has_escaped_line_end;
pub use unusual_headers::unusual_headers;
pub use wording::named;
