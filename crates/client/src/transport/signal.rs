//! The signals that a test can send to a server. Knows their names, and no processes.

use nix::sys::signal::Signal;
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessSignal(Signal);

/// A name that is no signal's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown signal `{0}`")]
pub struct UnknownSignal(pub String);

impl ProcessSignal {
    /// How a supervisor asks a process to end.
    pub const TERMINATE: Self = Self(Signal::SIGTERM);
    pub const KILL: Self = Self(Signal::SIGKILL);

    /// As people write them; `SIG` may stand before each.
    pub const NAMES: &[&str] = &["TERM", "INT", "HUP", "QUIT", "KILL", "USR1", "USR2", "STOP", "CONT", "ABRT", "PIPE", "SEGV"];

    /// As the system numbers it.
    pub fn number(self) -> i32 {
        self.0 as i32
    }

    pub(crate) fn get(self) -> Signal {
        self.0
    }
}

impl FromStr for ProcessSignal {
    type Err = UnknownSignal;

    fn from_str(name: &str) -> Result<Self, UnknownSignal> {
        let upper = name.to_ascii_uppercase();
        let short = upper.strip_prefix("SIG").unwrap_or(&upper);
        let known = Self::NAMES.contains(&short).then(|| format!("SIG{short}"));
        known.and_then(|full| full.parse().ok()).map(Self).ok_or_else(|| UnknownSignal(name.to_owned()))
    }
}

impl fmt::Display for ProcessSignal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.as_str().trim_start_matches("SIG"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_signal() {
        for name in ProcessSignal::NAMES {
            assert_eq!(name.parse::<ProcessSignal>().map(|signal| signal.to_string()), Ok((*name).to_owned()));
        }
        assert_eq!("sigterm".parse::<ProcessSignal>().map(ProcessSignal::number), Ok(15));
        assert_eq!("TREM".parse::<ProcessSignal>(), Err(UnknownSignal("TREM".into())));
    }
}
