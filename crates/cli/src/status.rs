//! A progress line on stderr: on terminals in place of the one before, elsewhere only of what takes long.

use crate::conversation::Watching;
use crate::{output, settings};
use mcproof_report::escape_line;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Ends with whoever holds it: nothing of the line stays.
pub(crate) struct Status {
    form: Form,
    is_shown: bool,
}

/// What is told of the progress.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// One line, in place of the one before.
    Replaced,
    /// Elsewhere than on a terminal.
    Lines,
    Nothing,
}

impl Status {
    /// Where the wire is shown, that is progress enough.
    pub(crate) fn new(watching: Watching) -> Self {
        let form = match (watching, output::stderr_takes_cursor()) {
            (Watching::Off, true) => Form::Replaced,
            (Watching::Off, false) => Form::Lines,
            _ => Form::Nothing,
        };
        Self { form, is_shown: false }
    }

    /// In place of what was shown before.
    pub(crate) fn show(&mut self, text: &str) {
        if self.form == Form::Replaced {
            // A line that fills the last column would break.
            output::talk(&format!("{CLEAR}{}", escape_line(text, settings::stderr_width() - 1)));
            self.is_shown = true;
        }
    }

    /// The next of many steps, the first of which began so long ago. Where nothing can be replaced it is a line of its own, as soon as they
    /// take long.
    pub(crate) fn step(&mut self, text: &str, elapsed: Duration) {
        self.show(text);
        if self.form == Form::Lines && elapsed >= LONG {
            output::talk(&format!("{}\n", escape_line(text, WIDTH)));
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

/// Steps that take no longer are not told line by line.
const LONG: Duration = Duration::from_secs(2);
/// Of a line where there is no terminal.
const WIDTH: usize = 120;
const SECOND: Duration = Duration::from_secs(1);
const CLEAR: &str = "\r\x1b[2K";
