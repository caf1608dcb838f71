//! What people type out of habit, and how it is said here: better advice than the grammar has for a word that it does not know.

use crate::suggest::did_you_mean;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use std::ffi::OsString;

/// Puts the advice in the place of the grammar's own, which would send the words after `--`, where the server's command stands.
pub(crate) fn advise(error: &mut Error, typed: &[OsString]) {
    let subcommand = typed.iter().skip(1).filter_map(|word| word.to_str()).find(|word| !word.starts_with('-')).unwrap_or_default();
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let near = text(ContextKind::SuggestedArg).zip(text(ContextKind::InvalidArg));
    let is_slip = near.is_some_and(|(near, word)| did_you_mean(&word, [near.as_str()]).is_some());
    let advice = match error.kind() {
        ErrorKind::InvalidSubcommand => text(ContextKind::InvalidSubcommand).and_then(|word| of_subcommand(&word)),
        ErrorKind::UnknownArgument => text(ContextKind::InvalidArg)
            .and_then(|word| of_flag(subcommand, &word).or_else(|| of_argument(subcommand, &word).filter(|_| !is_slip))),
        _ => None,
    };
    if error.kind() == ErrorKind::UnknownArgument {
        error.remove(ContextKind::Suggested);
    }
    if let Some(advice) = advice {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(advice)]));
    }
}

fn of_subcommand(word: &str) -> Option<String> {
    let meant = match word {
        "run" | "exec" => "`mcproof test` runs suites",
        "list" | "ls" => "`mcproof tools`, `prompts`, `resources` and `templates` list what a server has",
        "contract" | "snapshot" | "verify" => "`mcproof lock` writes a contract, `mcproof lock --verify` holds a server against it",
        "lint" | "validate" | "audit" | "conformance" | "scan" => "`mcproof check` holds a server against the rules of the protocol",
        "version" => "`mcproof --version` tells it",
        "ui" | "inspector" => "`mcproof inspect` sends a request; `mcproof test --reporter html=FILE` has the whole wire to look at",
        _ => return None,
    };
    Some(meant.to_owned())
}

/// Flags of other test runners.
fn of_flag(subcommand: &str, word: &str) -> Option<String> {
    let meant = match (subcommand, word) {
        ("test" | "plan", "-k" | "-g" | "-t" | "--grep" | "--name" | "--testNamePattern") => {
            "tests are chosen with -E, as in -E 'name(TEXT)' or -E 'tag(TEXT)'"
        }
        ("test" | "plan", "--tag" | "--tags" | "-m" | "--group") => "tests are chosen by tag with -E 'tag(NAME)'",
        ("test", "--list" | "--list-tests" | "--collect-only" | "--co" | "--dry-run" | "-n") => {
            "`mcproof plan` lists the tests that would run"
        }
        ("test", "--bail" | "--maxfail" | "--exitfirst") => "--fail-fast stops after the first failure, --fail-fast=N after N",
        ("test", "--lf" | "--last-failed" | "--only-failures") => "--rerun-failed runs what did not pass the last time",
        ("test", "-u" | "--update" | "--updateSnapshot") => "--update-snapshots takes what comes as reviewed",
        ("test", "--workers" | "--parallel" | "--threads") => "--jobs N runs N tests at the same time",
        ("watch", "--restricted" | "--allow-command" | "--allow-env" | "--allow-host" | "--allow-path") => {
            "the file of a monitor says what is started, reached, read and told to whom, so it is never restricted: run files that you trust, or run it in a sandbox without secrets"
        }
        ("drive", "--restricted" | "--allow-command" | "--allow-env" | "--allow-host" | "--allow-path") => {
            "the test library says what is started, reached and read, so it is never restricted: run tests of strangers in a sandbox without secrets"
        }
        ("test", "--junit" | "--junitxml" | "--junit-xml") => "a report goes to a file with --reporter junit=FILE",
        _ => return None,
    };
    Some(meant.to_owned())
}

fn of_argument(subcommand: &str, word: &str) -> Option<String> {
    let takes_command = !matches!(subcommand, "explain" | "schema" | "review" | "demo" | "mcp" | "drive" | "watch");
    match (subcommand, word) {
        ("inspect", "--cli") => Some("`mcproof inspect` is what that switches to: leave it out".into()),
        ("call" | "prompt", flag) if flag.starts_with("--") => {
            Some(format!("what a tool or prompt takes is written {}=VALUE", flag.trim_start_matches('-')))
        }
        (_, word) if !word.starts_with('-') && takes_command => {
            Some(format!("a command that starts a server comes after `--`, as in `mcproof {subcommand} -- node server.js`"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn habits_are_answered_with_what_is_written_here() {
        let check = |found: Option<String>, expected: Option<&str>| match expected {
            Some(part) => assert!(found.as_ref().is_some_and(|found| found.contains(part)), "{found:?}"),
            None => assert_eq!(found, None),
        };
        check(of_subcommand("run"), Some("mcproof test"));
        check(of_subcommand("banana"), None);
        check(of_argument("tools", "server.js"), Some("mcproof tools -- node"));
        check(of_flag("test", "-k"), Some("-E 'name(TEXT)'"));
        check(of_flag("test", "--list"), Some("mcproof plan"));
        check(of_flag("plan", "--tag"), Some("-E 'tag(NAME)'"));
        check(of_flag("tools", "--tag"), None);
        check(of_flag("watch", "--restricted"), Some("a sandbox without secrets"));
        check(of_flag("drive", "--allow-env"), Some("a sandbox without secrets"));
        check(of_subcommand("lint"), Some("mcproof check"));
        check(of_argument("call", "--city"), Some("city=VALUE"));
        check(of_argument("tools", "--jsn"), None);
        check(of_argument("schema", "x"), None);
    }
}
