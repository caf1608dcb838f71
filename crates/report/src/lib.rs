//! Shows what happened: sinks and pure functions over `mcproof_record`. Never sees the engine, the client or the environment.

pub mod diagnostic;
pub mod escape;
pub mod json;
mod style;
pub mod terminal;

pub use escape::{escape, escape_block, escape_line};
pub use style::{Charset, Color, Style};
