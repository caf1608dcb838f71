//! The exit codes, the same for every command, and the one text that documents them.

use std::fmt::Write as _;
use std::process::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Passed = 0,
    Failed = 1,
    BadInput = 2,
    Unreachable = 3,
    NothingSelected = 4,
    OurBug = 70,
    Interrupted = 130,
    Terminated = 143,
}

const MEANINGS: [(Exit, &str); 8] = [
    (Exit::Passed, "passed"),
    (Exit::Failed, "failed: a verdict, a tool (isError), or a request without a result"),
    (Exit::BadInput, "bad input: a flag, a file or a name"),
    (Exit::Unreachable, "the server could not be reached or started"),
    (Exit::NothingSelected, "nothing was selected, or all of it was skipped: nothing was tested"),
    (Exit::OurBug, "a bug of mcproof"),
    (Exit::Interrupted, "ended by Ctrl-C"),
    (Exit::Terminated, "ended by SIGTERM"),
];

/// The exit codes as a section of a help text.
pub(crate) fn help() -> String {
    let mut text = String::from("Exit codes:\n");
    for (exit, meaning) in MEANINGS {
        writeln!(text, "  {:>3}  {meaning}", exit.code()).expect("a String takes all text");
    }
    text
}

/// What the exit code of another process of ours says.
pub(crate) fn meaning(code: i32) -> Option<&'static str> {
    MEANINGS.iter().find(|(exit, _)| i32::from(exit.code()) == code).map(|(_, meaning)| *meaning)
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
