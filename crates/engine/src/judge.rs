//! Pure judgement of answers and transcripts. No I/O, no clock.

mod matcher;
mod path;
mod payload;
mod text;

pub use matcher::Matcher;
pub use path::{JsonPath, PathError};
pub use payload::Payload;
pub use text::TextPattern;
