//! What every reporter is. Knows no reporter.

use mcproof_record::Event;
use std::io;

/// A sink of the events of a run. It gets all of them, in order; the last one is [`Event::RunFinished`], also when the run was
/// stopped, so that a report is always complete in form.
pub trait Reporter {
    /// Writes what the event adds to the report, if that is already known.
    ///
    /// # Errors
    /// The report could not be written. What is written so far may be cut.
    fn event(&mut self, event: &Event) -> io::Result<()>;
}
