//! `mcproof review`: accepts or rejects pending snapshots, one by one.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::restriction::RestrictionArgs;
use crate::{output, settings};
use mcproof_record::{Diagnostic, Severity};
use mcproof_report::diagnostic;
use mcproof_suite as suite;
use mcproof_suite::run::snapshot::{self, Pending};
use std::io::{self, BufRead};
use std::path::PathBuf;

/// Review new and changed snapshots
///
/// On a terminal, prompts to accept or reject each snapshot. Otherwise, lists the snapshots and exits with 1 if any is pending.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Suite files, or directories to search for them
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Accept all snapshots
    #[arg(long, conflicts_with = "reject")]
    accept: bool,
    /// Reject all snapshots
    #[arg(long)]
    reject: bool,
    #[command(flatten)]
    restriction: RestrictionArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    Accept,
    Reject,
    Skip,
    Quit,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let suites = suite::discover(&arguments.paths).map_err(|diagnostic| Failure::new(Exit::BadInput, diagnostic))?.suites;
    permit(arguments, &suites)?;
    let waiting = snapshot::waiting(&suites).map_err(|reason| Failure::bad_input("snapshot-unusable", reason))?;
    if waiting.is_empty() {
        output::show("no snapshots to review\n")?;
        return Ok(Exit::Passed);
    }
    let decide: &mut dyn FnMut(&Pending) -> io::Result<Decision> = match (arguments.accept, arguments.reject) {
        (true, _) => &mut |_| Ok(Decision::Accept),
        (_, true) => &mut |_| Ok(Decision::Reject),
        _ if output::stdout_is_terminal() && settings::stdin_is_terminal() => &mut |_| ask(&mut io::stdin().lock()),
        _ => &mut |_| Ok(Decision::Skip),
    };
    let (mut accepted, mut rejected) = (0_u32, 0_u32);
    let total = u32::try_from(waiting.len()).unwrap_or(u32::MAX);
    for pending in &waiting {
        output::show(&format!("{}\n", diagnostic::render(&describe(pending), &settings::style())))?;
        let failed = |error: io::Error| Failure::bad_input("snapshot-unusable", format!("{}: {error}", pending.file.display()));
        match decide(pending).map_err(failed)? {
            Decision::Accept => {
                pending.accept().map_err(failed)?;
                accepted += 1;
            }
            Decision::Reject => {
                pending.reject().map_err(failed)?;
                rejected += 1;
            }
            Decision::Skip => {}
            Decision::Quit => break,
        }
    }
    let left = total - accepted - rejected;
    output::show(&format!("{accepted} accepted, {rejected} rejected, {left} pending\n"))?;
    Ok(if left == 0 { Exit::Passed } else { Exit::Failed })
}

/// A snapshot that waits is shown, and takes the place of another: with --restricted, each of them has to lie where files may.
fn permit(arguments: &Arguments, suites: &[PathBuf]) -> Result<(), Failure> {
    let Some(restriction) = arguments.restriction.restriction(&arguments.paths, [])? else { return Ok(()) };
    let of_suite = |suite: &PathBuf| {
        restriction.path(suite, &suite.display().to_string())?;
        snapshot::permit(&restriction, suite)
    };
    suites.iter().try_for_each(of_suite).map_err(|refused| Failure::new(Exit::BadInput, refused))
}

fn describe(pending: &Pending) -> Diagnostic {
    let file = pending.file.display();
    let message = match pending.reviewed {
        Some(_) => format!("snapshot {file} differs"),
        None => format!("snapshot {file} is new"),
    };
    let actual = serde_json::to_string_pretty(&pending.now).ok();
    let differences = pending.differences();
    let diagnostic = Diagnostic { severity: Severity::Note, ..Diagnostic::error("snapshot", message) };
    Diagnostic { differences, actual, ..diagnostic }
}

/// Prompts until the input is valid. The end of the input ends the review.
fn ask(input: &mut dyn BufRead) -> io::Result<Decision> {
    loop {
        output::talk("[a]ccept, [r]eject, [s]kip, [q]uit? ");
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(Decision::Quit);
        }
        match line.trim().to_ascii_lowercase().as_str() {
            "a" | "accept" => return Ok(Decision::Accept),
            "r" | "reject" => return Ok(Decision::Reject),
            "s" | "skip" => return Ok(Decision::Skip),
            "q" | "quit" => return Ok(Decision::Quit),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_asked_until_it_is_answered() {
        let check = |typed: &str, expected| assert_eq!(ask(&mut typed.as_bytes()).unwrap(), expected, "{typed:?}");
        check("a\n", Decision::Accept);
        check("what\n\nReject\n", Decision::Reject);
        check(" s \n", Decision::Skip);
        check("q", Decision::Quit);
        check("", Decision::Quit);
        check("x", Decision::Quit);
    }
}
