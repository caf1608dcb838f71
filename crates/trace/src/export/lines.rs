//! The lines of a trace as they are, for `jq`, `grep` and other programs.

use super::ExportError;
use crate::line::TraceLine;
use crate::reader::Trace;
use std::io::Write;

/// Writes a trace as plain lines, which are a trace again.
///
/// # Errors
/// If it cannot be read to its end, or the lines cannot be written.
pub fn write_lines(trace: Trace, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut write = |line: &TraceLine| -> Result<(), ExportError> {
        let mut text = serde_json::to_vec(line).map_err(std::io::Error::from)?;
        text.push(b'\n');
        Ok(out.write_all(&text)?)
    };
    write(&TraceLine::Trace(trace.manifest().clone()))?;
    for line in trace {
        write(&line?)?;
    }
    Ok(out.flush()?)
}
