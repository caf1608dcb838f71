//! Pure judgment of responses and transcripts. No I/O, no clock.

mod compare;
mod compile;
mod example;
mod expectation;
mod growth;
mod header_names;
mod matcher;
mod number;
mod path;
mod payload;
mod redact;
mod selector;
#[cfg(test)]
mod tests;
mod text;
mod weakness;

pub use compare::is_datetime;
pub use compile::{MATCHER_KEYS, MatcherKey, Subject};
pub use expectation::{expect, mismatch, pretty};
pub use matcher::Matcher;
pub(crate) use number::{equality, is_long, large_number};
pub use number::{has_large_number, has_long_integer};
pub use path::{JsonPath, PathError};
pub use payload::{Numbers, Origin, Payload};
pub(crate) use redact::{changes, redact};
pub use selector::Selector;
pub use text::TextPattern;
pub(crate) use text::regex_reason;
pub use weakness::looks_like_a_pattern;
