//! Traces in the formats of other tools. Knows those formats; writes to whatever takes bytes.

mod har;
mod lines;
mod otlp;
mod time;

pub use har::write_har;
pub use lines::write_lines;
pub use otlp::write_otlp;

use crate::TraceError;
use std::io;

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Read(#[from] TraceError),
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
}
