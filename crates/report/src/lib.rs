//! Shows what happened: sinks and pure functions over `mcproof_record`. Never sees the engine, the client or the environment.

pub mod agent;
pub mod check;
pub mod contract;
mod defects;
pub mod diagnostic;
pub mod escape;
pub mod explain;
mod findings;
mod frame_line;
pub mod github;
pub mod html;
pub mod json;
pub mod junit;
pub mod plan;
pub mod probe;
mod repeat;
mod reporter;
pub mod sarif;
mod style;
pub mod tap;
pub mod terminal;
mod words;

pub use escape::{escape, escape_block, escape_json, escape_line};
pub use frame_line::{frame_line, is_frame_line};
pub use repeat::Repeat;
pub use reporter::Reporter;
pub use style::{Charset, Color, Style};
