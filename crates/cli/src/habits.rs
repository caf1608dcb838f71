//! Hints for subcommands and flags of other tools, where clap would only report an unknown word.

use crate::malformed;
use crate::suggest::did_you_mean;
use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use std::ffi::OsString;

/// Puts the advice in the place of the grammar's own, which would send the words after `--`, where the server's command stands.
pub(crate) fn advise(error: &mut Error, typed: &[OsString], grammar: &Command) {
    let mut words = typed.iter().skip(1).filter_map(|word| word.to_str()).filter(|word| !word.starts_with('-'));
    let subcommand = words.next().unwrap_or_default();
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let near = text(ContextKind::SuggestedArg).zip(text(ContextKind::InvalidArg));
    let is_slip = near.is_some_and(|(near, word)| did_you_mean(&word, [near.as_str()]).is_some());
    // A value in the wrong form may be a secret.
    let shown = match error.kind() {
        ErrorKind::ValueValidation => {
            let value = text(ContextKind::InvalidArg).zip(text(ContextKind::InvalidValue));
            value.map(|(flag, value)| (ContextKind::InvalidValue, without_secret(&flag, &value)))
        }
        ErrorKind::UnknownArgument => unquoted_header(typed).and_then(|_| {
            text(ContextKind::InvalidArg).filter(|word| !word.starts_with('-')).map(|_| (ContextKind::InvalidArg, "…".to_owned()))
        }),
        _ => None,
    };
    let advice = match error.kind() {
        ErrorKind::UnknownArgument if shown.is_some() => unquoted_header(typed),
        ErrorKind::ValueValidation => unquoted_header(typed),
        ErrorKind::InvalidSubcommand => text(ContextKind::InvalidSubcommand).and_then(|word| of_subcommand(subcommand, &word)),
        ErrorKind::UnknownArgument => text(ContextKind::InvalidArg)
            .and_then(|word| of_flag(subcommand, &word).or_else(|| of_argument(subcommand, &word).filter(|_| !is_slip))),
        ErrorKind::ArgumentConflict if text(ContextKind::InvalidArg).is_some_and(|flag| flag.starts_with("--call ")) => {
            Some("separate the names of tools with commas: --call ONE,OTHER".to_owned())
        }
        // Of a command that takes a file or a command of its own, a misspelled one is taken for the file.
        ErrorKind::ArgumentConflict => words.next().and_then(|word| of_slip(grammar, subcommand, word)),
        _ => None,
    };
    if let Some((kind, shown)) = shown {
        error.insert(kind, ContextValue::String(shown));
    }
    if error.kind() == ErrorKind::UnknownArgument {
        error.remove(ContextKind::Suggested);
    }
    if let Some(advice) = advice {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
        // The grammar's own shows the flag that it would have proposed.
        if let Some(usage) = usage_of(grammar, typed).filter(|_| error.kind() == ErrorKind::UnknownArgument) {
            error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
        }
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(advice)]));
    }
}

/// What is shown of the value of a flag, of which the grammar says how it is written.
fn without_secret(flag: &str, value: &str) -> String {
    match flag.contains("<NAME: VALUE>") || flag.contains("<NAME=VALUE>") {
        true => malformed::shown(value),
        false => malformed::without_password(value),
    }
}

/// The remedy for a header whose value is a word of its own.
fn unquoted_header(typed: &[OsString]) -> Option<String> {
    let words: Vec<&str> = typed.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    let name = words.windows(2).find_map(|pair| pair[1].strip_suffix(':').filter(|_| pair[0] == "--header"))?;
    Some(format!("quote the header as a whole: --header '{name}: VALUE'"))
}

/// How the command that was typed is used, without a flag of it in particular.
fn usage_of(grammar: &Command, typed: &[OsString]) -> Option<StyledStr> {
    let mut grammar = grammar.clone();
    grammar.build();
    let mut command = &mut grammar;
    for word in typed.iter().skip(1).filter_map(|word| word.to_str()).filter(|word| !word.starts_with('-')) {
        if command.find_subcommand(word).is_none() {
            break;
        }
        command = command.find_subcommand_mut(word)?;
    }
    Some(command.render_usage())
}

fn of_slip(grammar: &Command, subcommand: &str, word: &str) -> Option<String> {
    let near = did_you_mean(word, grammar.find_subcommand(subcommand)?.get_subcommands().map(Command::get_name))?;
    Some(format!("did you mean `mcproof {subcommand} {near}`?"))
}

fn of_subcommand(subcommand: &str, word: &str) -> Option<String> {
    let meant = match word {
        // A file, and no misspelled command.
        _ if subcommand == "trace" && word.contains('.') => {
            return Some(format!("print a trace with `mcproof trace show {word}`, or browse it with `mcproof trace view {word}`"));
        }
        "run" | "exec" => "run suites with `mcproof test`",
        "list" | "ls" => "use `mcproof tools`, `prompts`, `resources` or `templates`",
        "contract" | "snapshot" | "verify" => "lock a contract with `mcproof lock`, and verify it with `mcproof lock --verify`",
        "lint" | "validate" | "audit" | "conformance" | "scan" => "check a server with `mcproof check`",
        "watch" if cfg!(not(feature = "monitor")) => {
            "this build of mcproof has no monitor; install one that has: `cargo install --path crates/cli`, or the container image"
        }
        "mcp" | "demo" if cfg!(not(feature = "servers")) => {
            "this build of mcproof serves nothing; install one that does: `cargo install --path crates/cli`"
        }
        "version" => "use `mcproof --version`",
        "ui" | "inspector" => {
            "send a request with `mcproof inspect`, or browse the traffic of tests with `mcproof test --reporter html=FILE`"
        }
        _ => return None,
    };
    Some(meant.to_owned())
}

/// Flags of other test runners.
fn of_flag(subcommand: &str, word: &str) -> Option<String> {
    let meant = match (subcommand, word) {
        ("test" | "plan", "-k" | "-g" | "-t" | "--grep" | "--name" | "--testNamePattern") => {
            "select tests with -E, as in -E 'name(TEXT)' or -E 'tag(TEXT)'"
        }
        ("test" | "plan", "--tag" | "--tags" | "-m" | "--group") => "select tests by tag with -E 'tag(NAME)'",
        ("test", "--list" | "--list-tests" | "--collect-only" | "--co" | "--dry-run") => "list tests with `mcproof plan`",
        ("test", "-n") => "run N tests at a time with --jobs N, or list the tests with `mcproof plan`",
        ("test", "--bail" | "--maxfail" | "--exitfirst") => "use --fail-fast, or --fail-fast=N to stop after N failures",
        ("test", "--lf" | "--last-failed" | "--only-failures") => "use --rerun-failed",
        ("test", "-u" | "--update" | "--updateSnapshot") => "use --update-snapshots",
        ("test", "--workers" | "--parallel" | "--threads") => "use --jobs N",
        ("test", "--retries" | "--retry" | "--reruns") => "set `retries` in the suite, for all of its tests or for one",
        (
            "tools" | "resources" | "templates" | "prompts" | "call" | "read" | "prompt" | "ping" | "check" | "probe" | "lock" | "inspect",
            "--env",
        ) => "set a variable of the server with -e NAME=VALUE",
        ("watch", "--restricted" | "--allow-command" | "--allow-env" | "--allow-host" | "--allow-path") => {
            "the monitor configuration is never restricted: use only a trusted file, or a sandbox without secrets"
        }
        ("drive", "--restricted" | "--allow-command" | "--allow-env" | "--allow-host" | "--allow-path") => {
            "the test library is never restricted: run untrusted tests in a sandbox without secrets"
        }
        ("test", "--junit" | "--junitxml" | "--junit-xml") => "use --reporter junit=FILE",
        ("test" | "check", "--output" | "-o" | "--outputFile" | "--format") => {
            "write a report with --reporter NAME=FILE, such as junit=junit.xml"
        }
        ("check", "--rule" | "--rules" | "--select") => "judge only some rules with --only RULES",
        ("check", "--ignore" | "--exclude" | "--disable") => "leave out rules with --skip RULES",
        ("call" | "prompt", "--arg" | "--argument" | "--tool-arg") => "write the arguments after the name, as NAME=VALUE",
        ("proxy" | "mock" | "ui" | "watch", "--port" | "-p" | "--host") => "use --listen ADDRESS:PORT, such as --listen 127.0.0.1:8080",
        _ => return None,
    };
    Some(meant.to_owned())
}

fn of_argument(subcommand: &str, word: &str) -> Option<String> {
    let takes_command = !matches!(subcommand, "explain" | "schema" | "review" | "demo" | "mcp" | "drive" | "watch");
    match (subcommand, word) {
        ("inspect", "--cli") => Some("omit it: `mcproof inspect` is always the command line".into()),
        ("call" | "prompt", flag) if flag.starts_with("--") => {
            Some(format!("write arguments of a tool or prompt as {}=VALUE", flag.trim_start_matches('-')))
        }
        (_, word) if !word.starts_with('-') && takes_command => {
            Some(format!("put the command that starts the server after `--`, as in `mcproof {subcommand} -- node server.js`"))
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
        check(of_subcommand("run", "run"), Some("mcproof test"));
        check(of_subcommand("banana", "banana"), None);
        check(of_subcommand("trace", "a.mcptrace"), Some("mcproof trace show a.mcptrace"));
        check(of_subcommand("trace", "shwo"), None);
        check(of_argument("tools", "server.js"), Some("mcproof tools -- node"));
        check(of_flag("test", "-k"), Some("-E 'name(TEXT)'"));
        check(of_flag("test", "--list"), Some("mcproof plan"));
        check(of_flag("test", "-n"), Some("--jobs N"));
        check(of_flag("check", "--rule"), Some("--only RULES"));
        check(of_flag("test", "--retries"), Some("`retries` in the suite"));
        check(of_flag("tools", "--env"), Some("-e NAME=VALUE"));
        check(of_flag("test", "--env"), None);
        check(of_flag("call", "--arg"), Some("NAME=VALUE"));
        check(of_flag("proxy", "--port"), Some("--listen 127.0.0.1:8080"));
        check(of_flag("plan", "--tag"), Some("-E 'tag(NAME)'"));
        check(of_flag("tools", "--tag"), None);
        check(of_flag("watch", "--restricted"), Some("a sandbox without secrets"));
        check(of_flag("drive", "--allow-env"), Some("a sandbox without secrets"));
        check(of_subcommand("lint", "lint"), Some("mcproof check"));
        check(of_argument("call", "--city"), Some("city=VALUE"));
        check(of_argument("tools", "--jsn"), None);
        check(of_argument("schema", "x"), None);
        let grammar = Command::new("mcproof").subcommand(Command::new("watch").subcommand(Command::new("status")));
        check(of_slip(&grammar, "watch", "statsu"), Some("did you mean `mcproof watch status`?"));
        check(of_slip(&grammar, "watch", "watch.yaml"), None);
        check(of_slip(&grammar, "test", "statsu"), None);
        let typed = ["mcproof", "watch", "status", "--grep", "x"].map(OsString::from);
        check(unquoted_header(&["tools", "--header", "X-Key:", "Bearer", "x"].map(OsString::from)), Some("'X-Key: VALUE'"));
        check(unquoted_header(&["mcproof", "tools", "--header", "A: b"].map(OsString::from)), None);
        check(Some(without_secret("--header <NAME: VALUE>", "Authorization=s3cret")), Some("Authorization=…"));
        check(Some(without_secret("--url <URL>", "htp://a:s3cret@h")), Some("htp://[redacted]@h"));
        check(usage_of(&grammar, &typed).map(|usage| usage.to_string()), Some("Usage: mcproof watch status"));
    }
}
