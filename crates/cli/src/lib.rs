//! `mcproof`, the command line: reads what was typed, hands it to one command, and ends with a documented exit code. And what of
//! it runs without a process of its own.

mod arguments;
mod authorization;
mod changes;
mod command;
mod contracts;
mod conversation;
mod diagnosis;
mod drive;
mod duration;
mod exit;
mod failure;
mod habits;
mod last_run;
mod later;
mod network;
mod oddities;
mod one_shot;
mod output;
mod present;
mod printing;
mod reporters;
mod request;
mod restriction;
mod selection;
mod settings;
mod starter;
mod status;
mod suggest;
mod suites;
mod target;
mod typed;
mod wire;

pub use drive::Embedded;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use command::{Command, inspect};
use conversation::Watching;
use exit::Exit;
use settings::ColorWhen;
use std::process::ExitCode;

/// Proves that an MCP server works, over the real wire
#[derive(Debug, Parser)]
#[command(name = "mcproof", version, propagate_version = true, arg_required_else_help = true, after_help = exit::help())]
struct CommandLine {
    /// Show more: the wire on stderr as it happens, or with `test` what each case proved
    #[arg(short, long, global = true)]
    verbose: bool,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: ColorWhen,
    #[command(subcommand)]
    command: Command,
}

/// The command line of this process.
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(blame_us));
    let mut grammar = CommandLine::command();
    let typed = match inspect::rewrite(std::env::args_os().collect(), &grammar) {
        Ok(typed) => typed,
        Err(failure) => {
            printing::tell(&failure);
            return failure.exit.into();
        }
    };
    let parsed = grammar.try_get_matches_from_mut(&typed).and_then(|matches| CommandLine::from_arg_matches(&matches));
    let line = match parsed {
        Ok(line) => line,
        // Help and version are no errors; clap knows which is which, and where each of them goes.
        Err(mut error) => {
            habits::advise(&mut error, &typed);
            let _ = error.print();
            return if error.use_stderr() { Exit::BadInput } else { Exit::Passed }.into();
        }
    };
    settings::choose_colors(line.color);
    let watching = if line.verbose { Watching::Wire } else { Watching::Off };
    match line.command.run(watching) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            printing::tell(&failure);
            failure.exit.into()
        }
    }
}

/// A panic is our fault, never the server's. Whatever was started is ended by the guardian when this process is gone.
#[expect(clippy::exit, reason = "with an exit code of its own, instead of the signal that an abort would show")]
fn blame_us(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map(|location| format!(" at {}:{}", location.file(), location.line())).unwrap_or_default();
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let message = text.unwrap_or("no message");
    output::talk(&format!(
        "this is a bug of mcproof, not of your server{place}: {message}\nplease report it with the command that you ran\n"
    ));
    std::process::exit(i32::from(Exit::OurBug.code()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_consistent() {
        CommandLine::command().debug_assert();
    }
}
