//! The flags as typed, for the command that repeats a test. Omits the flags that select tests or only change the output.

use crate::malformed::without_password;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use mcproof_client::redaction::Redactor;
use mcproof_client::{Launch, Target};
use mcproof_report::Repeat;
use std::collections::BTreeMap;

/// Flags that the command to repeat has anyway, or has no use for.
const LEFT_OUT: &[&str] = &[
    "coverage",
    "only",
    "skip",
    "target",
    "trace",
    "update_baseline",
    "every_wire",
    "fail_fast",
    "fail_on_flaky",
    "filters",
    "jobs",
    "json",
    "no_warm_start",
    "paths",
    "quiet",
    "repeat",
    "reporters",
    "rerun_failed",
    "seed",
    "shard",
    "shuffle",
    "watch",
];
/// Flags whose values hold secrets after this sign.
const SECRET: &[(&str, char)] = &[("env", '='), ("header", ':'), ("headers", ':')];

/// Flags whose values are secrets, unless they only say where one is.
const WHOLLY_SECRET: &[&str] = &["bearer", "client_secret"];

/// The flags that were typed, by the names of their fields. As a field it has to stand first: each field takes its value out of
/// the matches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Typed(BTreeMap<String, Vec<String>>);

impl Typed {
    /// `grammar` knows how each flag is written.
    pub(crate) fn repeat(&self, grammar: &Command) -> Repeat {
        let mut repeat = Repeat::default();
        for argument in grammar.get_arguments() {
            let id = argument.get_id().as_str();
            let Some(values) = self.0.get(id).filter(|_| !LEFT_OUT.contains(&id)) else { continue };
            let values = values.iter().map(|value| without_secret(id, value));
            let flag = argument.get_long().map(|long| format!("--{long}"));
            match flag.or_else(|| argument.get_short().map(|short| format!("-{short}"))) {
                None => repeat.server.extend(without_credentials(values.collect())),
                Some(flag) if argument.get_action().takes_values() => {
                    repeat.flags.extend(values.flat_map(|value| [flag.clone(), value]));
                }
                Some(flag) => repeat.flags.push(flag),
            }
        }
        repeat
    }
}

/// The words of a command, without the values of flags that hold credentials.
fn without_credentials(words: Vec<String>) -> Vec<String> {
    let secrets = Target::Stdio(Launch { command: words.clone(), ..Launch::default() }).secrets();
    let secrets = Redactor::new(secrets);
    words.into_iter().map(|word| secrets.text(&word).into_owned()).collect()
}

fn without_secret(id: &str, value: &str) -> String {
    if WHOLLY_SECRET.contains(&id) && !value.starts_with("env:") && !value.starts_with("file:") {
        return "[redacted]".to_owned();
    }
    let sign = SECRET.iter().find(|(secret, _)| *secret == id).map(|(_, sign)| *sign);
    match sign.and_then(|sign| Some((value.split_once(sign)?.0, sign))) {
        Some((name, ':')) => format!("{name}: [redacted]"),
        Some((name, sign)) => format!("{name}{sign}[redacted]"),
        None => without_password(value),
    }
}

impl clap::FromArgMatches for Typed {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut typed = Self::default();
        typed.update_from_arg_matches(matches)?;
        Ok(typed)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for id in matches.ids().map(clap::Id::as_str) {
            // Groups of flags have ids as well, but no values.
            if let Ok(Some(values)) = matches.try_get_raw(id)
                && matches.value_source(id) == Some(ValueSource::CommandLine)
            {
                self.0.insert(id.to_owned(), values.map(|value| value.to_string_lossy().into_owned()).collect());
            }
        }
        Ok(())
    }
}

impl clap::Args for Typed {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args as _, FromArgMatches as _};

    #[derive(Debug, clap::Args)]
    struct Grammar {
        #[command(flatten)]
        typed: Typed,
        paths: Vec<String>,
        #[arg(long)]
        era: Option<String>,
        #[arg(long = "var")]
        variables: Vec<String>,
        #[arg(short = 'e', long = "env")]
        env: Vec<String>,
        #[arg(long = "header")]
        headers: Vec<String>,
        #[arg(long)]
        bearer: Option<String>,
        #[arg(long)]
        insecure: bool,
        #[arg(short, long, default_value_t = 4)]
        jobs: u16,
        #[arg(last = true)]
        command: Vec<String>,
    }

    fn check(typed: &[&str], flags: &[&str], server: &[&str]) {
        let grammar = Grammar::augment_args(Command::new("test").no_binary_name(true));
        let matches = grammar.clone().try_get_matches_from(typed).unwrap();
        let repeat = Grammar::from_arg_matches(&matches).unwrap().typed.repeat(&grammar);
        assert_eq!((repeat.flags.as_slice(), repeat.server.as_slice()), (owned(flags).as_slice(), owned(server).as_slice()));
    }

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn what_selects_no_case_is_typed_again() {
        check(&[], &[], &[]);
        check(&["a.yaml", "-j", "2"], &[], &[]);
        check(&["--insecure", "--era", "modern"], &["--era", "modern", "--insecure"], &[]);
        check(&["--var", "a=1", "--var", "b=2", "--", "node", "s.js"], &["--var", "a=1", "--var", "b=2"], &["node", "s.js"]);
    }

    #[test]
    fn secrets_are_not_printed() {
        check(&["-e", "KEY=hunter2"], &["--env", "KEY=[redacted]"], &[]);
        check(&["--header", "Authorization: Bearer x"], &["--header", "Authorization: [redacted]"], &[]);
        check(&["--", "server", "--token=hunter2", "--port", "80"], &[], &["server", "--token=[redacted]", "--port", "80"]);
        check(&["--bearer", "hunter2"], &["--bearer", "[redacted]"], &[]);
        check(&["--bearer", "env:TOKEN"], &["--bearer", "env:TOKEN"], &[]);
        check(&["--era", "http://me:p@ss@host/a@b"], &["--era", "http://[redacted]@host/a@b"], &[]);
        check(&["--era", "http://host/a@b"], &["--era", "http://host/a@b"], &[]);
    }
}
