//! `mcproof`, the command line: parses the arguments, runs one command, and ends with a documented exit code.

mod arguments;
mod authorization;
mod case_traces;
mod changes;
mod ci_commands;
mod command;
mod contracts;
mod conversation;
mod deferred;
mod diagnosis;
mod duration;
mod exit;
mod failure;
mod faults;
mod habits;
mod json_mistake;
mod last_run;
mod malformed;
mod network;
mod numbers;
mod oddities;
mod offered;
mod one_shot;
mod output;
mod present;
mod printing;
mod recording;
mod reporters;
mod request;
mod restriction;
mod selection;
mod settings;
mod shown_contract;
mod starter;
mod status;
mod suggest;
mod suites;
mod target;
mod traffic;
mod typed;
mod welcome;
mod whole_file;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, ValueEnum as _};
use command::{Command, inspect};
use conversation::Watching;
use exit::Exit;
use failure::Failure;
use settings::ColorWhen;
use std::ffi::OsString;
use std::process::ExitCode;

/// Behind the flags of the command at hand.
const LAST: usize = 1_000;

/// Test, check and monitor MCP servers
#[derive(Debug, Parser)]
#[command(name = "mcproof", version, propagate_version = true, arg_required_else_help = true, disable_help_subcommand = true, after_help = exit::help())]
struct CommandLine {
    /// Print more: the traffic on stderr, or for `test` the evidence of each test
    #[arg(short, long, global = true, display_order = LAST)]
    verbose: bool,
    /// When to use colors
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", display_order = LAST)]
    color: ColorWhen,
    #[command(subcommand)]
    command: Command,
}

/// What a check needs of a stack, with room to spare. The main thread has less on Windows (1 MiB) and wherever `ulimit -s` says so.
const STACK: usize = 8 << 20;

/// The command line of this process, on a thread of its own.
pub fn main() -> ExitCode {
    // Servers decide how large the pieces are.
    mcproof_system::memory::give_back_large_pieces();
    std::panic::set_hook(Box::new(report_panic));
    match std::thread::Builder::new().stack_size(STACK).spawn(run) {
        // Whoever panics ends the process.
        Ok(thread) => thread.join().unwrap_or(ExitCode::FAILURE),
        // Where there is no room for another thread, that is told by the command.
        Err(_) => run(),
    }
}

fn run() -> ExitCode {
    let given: Vec<OsString> = std::env::args_os().collect();
    // What is wrong with the command line is told in colors, too.
    let color = color_of(&given);
    settings::choose_colors(color);
    let mut grammar = CommandLine::command().color(color.of_grammar());
    let typed = match inspect::rewrite(given.clone(), &grammar) {
        Ok(typed) => typed,
        Err(failure) => {
            printing::report(&failure);
            return failure.exit.into();
        }
    };
    let parsed = grammar.try_get_matches_from_mut(&typed).and_then(|matches| CommandLine::from_arg_matches(&matches));
    let line = match parsed {
        Ok(line) => line,
        Err(error) if lacks_command(&error) && has_only_global_flags(&typed) => return show_front_page(&mut grammar),
        // Help and version are no errors; clap knows which is which, and where each of them goes.
        Err(mut error) => {
            habits::advise(&mut error, &typed, &grammar);
            let _ = error.print();
            return if error.use_stderr() { Exit::BadInput } else { Exit::Passed }.into();
        }
    };
    settings::choose_colors(line.color);
    if let Err(failure) = check_dashes(&given) {
        printing::report(&failure);
        return failure.exit.into();
    }
    let watching = if line.verbose { Watching::Wire } else { Watching::Off };
    match line.command.run(watching, CommandLine::command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            printing::report(&failure);
            failure.exit.into()
        }
    }
}

/// What `--color` says, as far as that can be told before the command line is parsed. What follows `--` is of the server.
fn color_of(given: &[OsString]) -> ColorWhen {
    let words: Vec<&str> = given.iter().map(|word| word.to_str().unwrap_or_default()).take_while(|word| *word != "--").collect();
    let value = words.iter().enumerate().find_map(|(place, word)| match *word {
        "--color" => words.get(place + 1).copied(),
        word => word.strip_prefix("--color="),
    });
    value.and_then(|value| ColorWhen::from_str(value, false).ok()).unwrap_or(ColorWhen::Auto)
}

/// A variable of the shell that is empty leaves nothing after `--`: another server than the one that was meant would be used.
fn check_dashes(given: &[OsString]) -> Result<(), Failure> {
    if given.iter().position(|word| word == "--").is_none_or(|place| given.get(place + 1).is_some_and(|word| !word.is_empty())) {
        return Ok(());
    }
    let hint = "write the command that starts the server there, or leave `--` out; a variable of the shell may be empty";
    Err(Failure::bad_input("no-command", "no command follows `--`").hint(hint))
}

fn lacks_command(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand)
}

/// Whether there is nothing but flags that say how any command prints.
fn has_only_global_flags(typed: &[OsString]) -> bool {
    let mut words = typed.iter().skip(1).map(|word| word.to_str().unwrap_or_default());
    while let Some(word) = words.next() {
        match word {
            "-v" | "--verbose" => {}
            "--color" => {
                let _ = words.next();
            }
            word if word.starts_with("--color=") => {}
            _ => return false,
        }
    }
    true
}

/// What `mcproof` alone prints: on a terminal what to type next in this folder, elsewhere the help.
fn show_front_page(grammar: &mut clap::Command) -> ExitCode {
    if output::stdout_is_terminal() {
        return welcome::show().map_or_else(|failure| failure.exit, |()| Exit::Passed).into();
    }
    if let Err(help) = grammar.try_get_matches_from_mut(["mcproof"]) {
        let _ = help.print();
    }
    Exit::BadInput.into()
}

/// A panic is a bug of mcproof, never of the server. The guardian ends all started servers when this process is gone.
#[expect(clippy::exit, reason = "with a separate exit code, instead of the signal of an abort")]
fn report_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map(|location| format!(" at {}:{}", location.file(), location.line())).unwrap_or_default();
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let message = text.unwrap_or("no message");
    output::talk(&format!(
        "internal error in mcproof{place}: {message}\nThis is a bug in mcproof, not in the server. Report it with the command line that caused it.\n"
    ));
    std::process::exit(i32::from(Exit::OurBug.code()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_of_each_command_opens_with_its_summary() {
        let listed: Vec<_> = CommandLine::command().get_subcommands().map(|command| command.get_about().map(ToString::to_string)).collect();
        let mut built = CommandLine::command();
        built.build();
        let shown: Vec<_> = built.get_subcommands().collect();
        assert_eq!(shown.iter().map(|command| command.get_about().map(ToString::to_string)).collect::<Vec<_>>(), listed);
        for command in shown {
            let help = command.clone().render_help().to_string();
            let flags = help.lines().filter(|line| line.trim_start().starts_with('-')).count();
            assert!(flags <= 32, "`{} -h` lists {flags} flags; hide the rare ones from short help", command.get_name());
        }
    }

    #[test]
    fn flags_that_say_how_to_print_count_before_the_command_line_is_parsed() {
        let check = |line: &str, color: ColorWhen, is_bare: bool| {
            let typed: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!((color_of(&typed), has_only_global_flags(&typed)), (color, is_bare), "{line}");
        };
        check("mcproof", ColorWhen::Auto, true);
        check("mcproof -v --color never", ColorWhen::Never, true);
        check("mcproof --color=always --verbose", ColorWhen::Always, true);
        check("mcproof test --color never --bogus", ColorWhen::Never, false);
        check("mcproof --color", ColorWhen::Auto, true);
        check("mcproof --color sometimes", ColorWhen::Auto, true);
        check("mcproof tools -- server --color never", ColorWhen::Auto, false);
    }

    #[test]
    fn two_dashes_are_followed_by_a_command() {
        let check = |line: &str, is_fine: bool| {
            let typed: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(check_dashes(&typed).is_ok(), is_fine, "{line}");
        };
        check("mcproof test", true);
        check("mcproof test -- node server.js", true);
        check("mcproof test -- npx x --", true);
        check("mcproof test a.yaml --", false);
        check("mcproof tools --", false);
    }

    #[test]
    fn the_grammar_is_consistent() {
        CommandLine::command().debug_assert();
    }
}
