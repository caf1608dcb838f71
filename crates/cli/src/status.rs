//! A progress line on stderr, on terminals only.

use crate::conversation::Watching;
use crate::{output, settings};
use mcproof_report::escape_line;

/// Ends with whoever holds it: nothing of the line stays.
pub(crate) struct Status {
    is_live: bool,
    is_shown: bool,
}

impl Status {
    /// Where the wire is shown, that is progress enough.
    pub(crate) fn new(watching: Watching) -> Self {
        Self { is_live: watching == Watching::Off && output::stderr_takes_cursor(), is_shown: false }
    }

    /// In place of what was shown before.
    pub(crate) fn show(&mut self, text: &str) {
        if self.is_live {
            // A line that fills the last column would break.
            output::talk(&format!("{CLEAR}{}", escape_line(text, settings::stderr_width() - 1)));
            self.is_shown = true;
        }
    }

    /// Before anything else is said.
    pub(crate) fn end(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            output::talk(CLEAR);
        }
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        self.end();
    }
}

const CLEAR: &str = "\r\x1b[2K";
