//! A progress line on stderr, on terminals only.

use crate::conversation::Watching;
use crate::{output, settings};
use mcproof_report::escape_line;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::time::sleep;

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

    /// Shows how long something has taken so far, once a second.
    pub(crate) async fn during<T>(mut self, what: &str, work: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = sleep(SECOND) => self.show(&format!("{what} ({} s)", began.elapsed().as_secs())),
            }
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

const SECOND: Duration = Duration::from_secs(1);
const CLEAR: &str = "\r\x1b[2K";
