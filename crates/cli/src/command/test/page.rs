//! `mcproof test --ui`: the page of `mcproof ui` with the tests at its side. Each run is a process of its own with the flags that were typed.

use crate::command::ui;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::settings;
use mcproof_record::{CasePlan, Diagnostic};
use mcproof_suite::run::Filter;
use mcproof_system::{commands, signals};
use mcproof_ui::TestRunner;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

pub(super) fn run(listen: Option<SocketAddr>, no_open: bool) -> Result<Exit, Failure> {
    let program =
        std::env::current_exe().map_err(|error| Failure::bad_input("no-program", format!("cannot find this program: {error}")))?;
    let arguments = without_page(std::env::args_os().skip(1).collect());
    ui::serve_tests(listen, no_open, Arc::new(Process { program, arguments, folder: settings::current_folder() }))
}

struct Process {
    program: PathBuf,
    /// As typed, without what is about the page.
    arguments: Vec<OsString>,
    folder: PathBuf,
}

impl TestRunner for Process {
    fn command(&self, filter: Option<&str>) -> Command {
        let mut command = Command::new(&self.program);
        let (flags, rest): (Vec<OsString>, Vec<OsString>) = match self.arguments.iter().position(|word| word == "--") {
            Some(at) => (self.arguments[..at].to_vec(), self.arguments[at..].to_vec()),
            None => (self.arguments.clone(), Vec::new()),
        };
        let is_traced = flags.iter().filter_map(|word| word.to_str()).any(|word| word == "--trace" || word.starts_with("--trace="));
        match filter {
            // The tests on the page are those that were selected already.
            Some(filter) => command.args(without_selection(flags)).args(["--filter", filter]),
            None => command.args(flags),
        };
        // The page shows the messages of each test, also of one that passes.
        command.args(["--json", "--every-wire"]);
        if !is_traced {
            // The page keeps the traffic.
            command.args(["--trace", "off"]);
        }
        command.args(rest).current_dir(&self.folder);
        commands::interruptible(&mut command);
        command
    }

    fn select(&self, filter: &str, cases: &[CasePlan]) -> Result<Vec<bool>, Box<Diagnostic>> {
        let filter = Filter::parse(filter)?;
        Ok(cases.iter().map(|case| filter.matches(case)).collect())
    }

    fn stop(&self, process: u32) {
        // It ends its servers before itself. One that is gone needs no signal.
        signals::interrupt(process);
    }
}

/// The words of the command line that a run takes as well.
fn without_page(words: Vec<OsString>) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--") => {
                kept.push(word);
                kept.extend(words);
                break;
            }
            Some("--ui" | "--no-open") => {}
            Some("--listen") => drop(words.next()),
            Some(text) if text.starts_with("--listen=") => {}
            _ => kept.push(word),
        }
    }
    kept
}

/// The flags without those that select tests.
fn without_selection(flags: Vec<OsString>) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut words = flags.into_iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("-E" | "--filter" | "--shard") => drop(words.next()),
            Some("--rerun-failed" | "--last-failed") => {}
            Some(text) if text.starts_with("-E") || text.starts_with("--filter=") || text.starts_with("--shard=") => {}
            _ => kept.push(word),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_gives_the_messages_of_each_test() {
        let arguments = ["test", "a.yaml", "--", "node", "x.js"].map(OsString::from).to_vec();
        let process = Process { program: PathBuf::from("mcproof"), arguments, folder: PathBuf::from(".") };
        let words = |filter| process.command(filter).get_args().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>();
        assert_eq!(words(None), ["test", "a.yaml", "--json", "--every-wire", "--trace", "off", "--", "node", "x.js"]);
        assert_eq!(words(Some("all()"))[2..5], ["--filter", "all()", "--json"]);
    }

    #[test]
    fn a_run_gets_the_flags_that_are_not_about_the_page() {
        let check = |typed: &[&str], expected: &[&str]| {
            assert_eq!(without_page(typed.iter().map(OsString::from).collect()), expected.iter().map(OsString::from).collect::<Vec<_>>());
        };
        check(&["test", "--ui", "a.yaml", "-j", "1"], &["test", "a.yaml", "-j", "1"]);
        check(&["test", "--listen", "127.0.0.1:1", "--ui", "--no-open"], &["test"]);
        let selected = without_selection(["test", "-E", "a", "--filter=b", "-Ec", "--rerun-failed", "x.yaml"].map(OsString::from).to_vec());
        assert_eq!(selected, ["test", "x.yaml"].map(OsString::from));
        check(&["test", "--listen=127.0.0.1:1", "--ui", "--", "x", "--ui"], &["test", "--", "x", "--ui"]);
    }
}
