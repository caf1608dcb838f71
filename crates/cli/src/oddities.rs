//! Messages of a server that only some clients accept: a warning, or a failure with `--strict`.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::settings;
use mcproof_analysis::diagnosis::Audience;
use mcproof_analysis::oddities::{Odd, Oddities};
use mcproof_client::Session;
use mcproof_record::Diagnostic;
use mcproof_report::diagnostic;

/// Number of kinds that are printed; the rest is counted.
const KINDS_TOLD: usize = 5;

#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct StrictArgs {
    /// Treat warnings as failures
    ///
    /// A warning is a message that clients tolerate although it violates the specification.
    #[arg(long)]
    strict: bool,
}

impl StrictArgs {
    pub(crate) fn oddities(self) -> Oddities {
        if self.strict { Oddities::Fail } else { Oddities::Warn }
    }
}

/// Tells what was odd so far.
pub(crate) fn warn(session: &Session) {
    let Odd { kinds, count } = Odd::of(session, Audience::CommandLine, Oddities::Warn);
    let (style, told) = (settings::style(), kinds.len().min(KINDS_TOLD));
    for kind in kinds.into_iter().take(told) {
        let kind = kind.map_text(|text| session.tap().redacted(text));
        output::talk(&diagnostic::render(&Diagnostic { evidence: None, ..kind }, &style));
    }
    if count > told {
        output::talk(&format!("… and {} more unexpected messages; save all with --trace FILE\n", count - told));
    }
}

/// # Errors
/// Something was odd, and who asks is strict.
pub(crate) fn judge(session: &Session, oddities: Oddities) -> Result<(), Failure> {
    let count = if oddities == Oddities::Fail { session.faults().len() } else { 0 };
    let message = match count {
        0 => return Ok(()),
        1 => "the server sent a message that some clients reject".to_owned(),
        count => format!("the server sent {count} messages that some clients reject"),
    };
    Err(Failure::new(Exit::Failed, Diagnostic::error("not-strict", message)))
}
