//! The signals that a test can send to a server. Knows their names, and no processes. A system that has no signals sends what comes
//! nearest, or nothing.

use std::fmt;
use std::str::FromStr;

/// A signal of POSIX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessSignal {
    Term,
    Int,
    Hup,
    Quit,
    Kill,
    Usr1,
    Usr2,
    Stop,
    Cont,
    Abrt,
    Pipe,
    Segv,
}

/// Somebody wants this process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndRequest {
    /// A person, at the terminal.
    Interrupt,
    /// Whoever supervises it.
    Terminate,
}

/// A name that is no signal's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown signal `{0}`")]
pub struct UnknownSignal(pub String);

impl ProcessSignal {
    /// How a supervisor asks a process to end.
    pub const TERMINATE: Self = Self::Term;
    pub const KILL: Self = Self::Kill;

    /// As people write them; `SIG` may stand before each.
    pub const NAMES: &[&str] = &["TERM", "INT", "HUP", "QUIT", "KILL", "USR1", "USR2", "STOP", "CONT", "ABRT", "PIPE", "SEGV"];

    const ALL: [Self; 12] = [
        Self::Term,
        Self::Int,
        Self::Hup,
        Self::Quit,
        Self::Kill,
        Self::Usr1,
        Self::Usr2,
        Self::Stop,
        Self::Cont,
        Self::Abrt,
        Self::Pipe,
        Self::Segv,
    ];

    /// As the system numbers it.
    pub fn number(self) -> i32 {
        crate::system::signals::number(self)
    }

    /// With `SIG` before it, as the system writes it.
    pub fn full_name(self) -> String {
        format!("SIG{self}")
    }
}

impl FromStr for ProcessSignal {
    type Err = UnknownSignal;

    fn from_str(name: &str) -> Result<Self, UnknownSignal> {
        let upper = name.to_ascii_uppercase();
        let short = upper.strip_prefix("SIG").unwrap_or(&upper);
        let index = Self::NAMES.iter().position(|known| *known == short);
        index.map(|index| Self::ALL[index]).ok_or_else(|| UnknownSignal(name.to_owned()))
    }
}

impl fmt::Display for ProcessSignal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(Self::NAMES[*self as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_signal() {
        for name in ProcessSignal::NAMES {
            let parsed = name.parse::<ProcessSignal>();
            assert_eq!(parsed.as_ref().map(ToString::to_string), Ok((*name).to_owned()));
            assert_eq!(parsed.map(|signal| ProcessSignal::ALL[signal as usize]), name.parse());
        }
        assert_eq!("sigterm".parse::<ProcessSignal>().map(ProcessSignal::number), Ok(15));
        assert_eq!("TREM".parse::<ProcessSignal>(), Err(UnknownSignal("TREM".into())));
    }
}
