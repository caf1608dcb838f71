//! The exit codes of all commands, and the text that documents them.

use std::fmt::Write as _;
use std::process::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Passed,
    Failed,
    BadInput,
    Unreachable,
    NothingSelected,
    OurBug,
    Interrupted,
    Terminated,
    /// That of the server, in whose place `mcproof proxy` stands.
    OfServer(u8),
}

const MEANINGS: [(Exit, &str); 8] = [
    (Exit::Passed, "passed"),
    (Exit::Failed, "failed: a test, a check, a tool (isError), or a request without a result"),
    (Exit::BadInput, "invalid input: a flag, a file or a name"),
    (Exit::Unreachable, "server could not be reached or started"),
    (Exit::NothingSelected, "nothing was tested: nothing was selected, or everything was skipped"),
    (Exit::OurBug, "internal error in mcproof"),
    (Exit::Interrupted, "interrupted by Ctrl-C"),
    (Exit::Terminated, "terminated by SIGTERM"),
];

/// The exit codes as a section of a help text.
pub(crate) fn help() -> String {
    let mut text = String::from("Exit codes:\n");
    for (exit, meaning) in MEANINGS {
        writeln!(text, "  {:>3}  {meaning}", exit.code()).expect("a String takes all text");
    }
    text
}

/// The meaning of the exit code of another mcproof process.
#[cfg(feature = "servers")]
pub(crate) fn meaning(code: i32) -> Option<&'static str> {
    MEANINGS.iter().find(|(exit, _)| i32::from(exit.code()) == code).map(|(_, meaning)| *meaning)
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Failed => 1,
            Self::BadInput => 2,
            Self::Unreachable => 3,
            Self::NothingSelected => 4,
            Self::OurBug => 70,
            Self::Interrupted => 130,
            Self::Terminated => 143,
            Self::OfServer(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
