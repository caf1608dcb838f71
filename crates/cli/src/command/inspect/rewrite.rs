//! Brings the ways in which MCP Inspector's CLI takes a command line into the one that our grammar takes.
//! Knows which flags there are, not what they do.
//!
//! - `COMMAND --its-flag --method M`: a flag that is not ours belongs to the command, unless it looks like a slip.
//! - `COMMAND -- --method M`: the target first, the flags after `--`.
//! - `-- COMMAND --method M`: with no `--method` before, the flags from `--method` on are ours.
//! - `--tool-arg a=1 b=2`: several values after one flag.
//! - `--connect-timeout 0`: no timeout there, the longest one here.

use crate::failure::Failure;
use crate::suggest;
use clap::{Arg, ArgAction, Command};
use std::ffi::{OsStr, OsString};
use std::iter::Peekable;

/// Flags of MCP Inspector's CLI that mean something which this version does not do.
const UNSUPPORTED: [(&[&str], &str); 8] = [
    (&["--catalog", "--rename"], "use --config with a file that names the servers"),
    (&["--client-config"], "use --client-id or --client-metadata-url"),
    (&["--no-revoke"], "omit it: mcproof never revokes tokens, and --relogin only discards them"),
    (&["--print-handoff"], "sign in on a terminal, and use --wait-for-auth in the other process"),
    (&["--app-info", "--advertise-apps"], "MCP Apps are not supported yet"),
    (
        &["--verify", "--require-digests", "--skill-catalog-max-skills", "--skill-catalog-max-bytes"],
        "use `mcproof check`, or tests in a suite",
    ),
    (&["--load", "--load-concurrency", "--load-duration", "--load-requests", "--load-rate"], "load tests are not supported yet"),
    (&["--completion"], "shell completions are not supported yet"),
];

/// The command line as the grammar takes it. Only `inspect` is touched.
pub(crate) fn rewrite(typed: Vec<OsString>, grammar: &Command) -> Result<Vec<OsString>, Failure> {
    let globals = Flags::of(&[grammar]);
    let Some(start) = position_of_inspect(&typed, &globals) else { return Ok(typed) };
    let Some(inspect) = grammar.find_subcommand("inspect") else { return Ok(typed) };
    let flags = Flags::of(&[inspect, grammar]);
    let (head, rest) = typed.split_at(start + 1);
    let mut rewritten = head.to_vec();
    rewritten.extend(rewrite_rest(rest, &flags)?);
    Ok(rewritten)
}

fn position_of_inspect(typed: &[OsString], globals: &Flags) -> Option<usize> {
    let mut index = 1;
    while let Some(token) = typed.get(index).and_then(|token| token.to_str()) {
        match globals.find(token) {
            _ if token == "inspect" => return Some(index),
            Some(Takes::One | Takes::Pairs(_)) => index += 2,
            Some(_) => index += 1,
            None => return None,
        }
    }
    None
}

fn rewrite_rest(rest: &[OsString], flags: &Flags) -> Result<Vec<OsString>, Failure> {
    let is_method = |token: &OsString| token.to_str().is_some_and(|token| token == "--method" || token.starts_with("--method="));
    let is_flag = |token: &OsString| token.to_str().is_some_and(|token| flags.find(token).is_some());
    let Some(at) = rest.iter().position(|token| token == OsStr::new("--")) else {
        let SplitArguments { ours, words } = part(rest, flags)?;
        return Ok(joined(ours, words));
    };
    let (before, after) = (&rest[..at], &rest[at + 1..]);
    if !before.is_empty() && !looks_like_flag(&before[0]) && !before.iter().any(is_flag) {
        let SplitArguments { ours, words } = part(after, flags)?;
        return Ok(joined(ours, [before, words.as_slice()].concat()));
    }
    let (command, behind) = match after.iter().position(is_method) {
        Some(start) if !before.iter().any(is_method) => after.split_at(start),
        _ => (after, &[][..]),
    };
    // Words here are a second target, or a mistake: the grammar tells.
    let SplitArguments { ours, words } = part(&[before, behind].concat(), flags)?;
    Ok([words.as_slice(), ours.as_slice(), &["--".into()], command].concat())
}

/// Our flags with their values, and all else.
struct SplitArguments {
    ours: Vec<OsString>,
    words: Vec<OsString>,
}

fn part(tokens: &[OsString], flags: &Flags) -> Result<SplitArguments, Failure> {
    refuse_unsupported(tokens)?;
    let (mut ours, mut words) = (Vec::new(), Vec::new());
    let mut tokens = tokens.iter().peekable();
    while let Some(token) = tokens.next() {
        match token.to_str().and_then(|text| flags.find(text)) {
            Some(takes) => {
                ours.push(token.clone());
                take_values(takes, token, &mut tokens, &mut ours);
            }
            // Before the target, or nearly one of ours: clap says what is wrong with it.
            None if looks_like_flag(token) && (words.is_empty() || flags.is_slip(token)) => ours.push(token.clone()),
            None => words.push(token.clone()),
        }
    }
    limit_waits(&mut ours);
    Ok(SplitArguments { ours, words })
}

/// Inspector documents `0` as "no timeout". Elsewhere zero is refused, since every wait has a limit.
fn limit_waits(ours: &mut [OsString]) {
    let mut before = OsString::new();
    for token in ours {
        if *token == "--connect-timeout=0" {
            *token = "--connect-timeout=24h".into();
        } else if *token == "0" && before == "--connect-timeout" {
            *token = "24h".into();
        }
        before.clone_from(token);
    }
}

fn take_values<'a>(takes: Takes, flag: &OsString, tokens: &mut Peekable<impl Iterator<Item = &'a OsString>>, into: &mut Vec<OsString>) {
    match takes {
        Takes::Nothing => {}
        Takes::One => into.extend(tokens.next().cloned()),
        Takes::Pairs(sign) => {
            into.extend(tokens.next().cloned());
            while let Some(value) = tokens.next_if(|token| is_pair(token, sign)) {
                into.extend([flag.clone(), value.clone()]);
            }
        }
    }
}

/// Whether a word is one more `key=value`, `key:=JSON` or `Name: value`, and neither a flag nor a URL.
fn is_pair(token: &OsString, sign: char) -> bool {
    let Some((name, value)) = token.to_str().and_then(|token| token.split_once(sign)) else { return false };
    let name = name.strip_suffix(':').unwrap_or(name);
    !looks_like_flag(token) && !name.contains([':', '/']) && !value.starts_with("//")
}

/// A single word or a URL stays a word, which may be a name; more are a command.
fn joined(flags: Vec<OsString>, words: Vec<OsString>) -> Vec<OsString> {
    let is_url = words.first().and_then(|word| word.to_str()).is_some_and(|word| word.contains("://"));
    if words.len() <= 1 || is_url { [words, flags].concat() } else { [flags, vec!["--".into()], words].concat() }
}

fn refuse_unsupported(tokens: &[OsString]) -> Result<(), Failure> {
    for token in tokens.iter().filter_map(|token| token.to_str()) {
        let name = token.split_once('=').map_or(token, |(name, _)| name);
        if let Some((_, why)) = UNSUPPORTED.iter().find(|(names, _)| names.contains(&name)) {
            return Err(Failure::unsupported(format!("`{name}` is not supported by this version")).hint(*why));
        }
    }
    Ok(())
}

fn looks_like_flag(token: &OsString) -> bool {
    let bytes = token.as_encoded_bytes();
    bytes.len() > 1 && bytes[0] == b'-'
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Nothing,
    One,
    /// One, and then as many as there are pairs around this sign.
    Pairs(char),
}

/// The flags after which MCP Inspector takes several values.
const SEVERAL: [(&str, char); 5] = [("tool-arg", '='), ("prompt-args", '='), ("metadata", '='), ("tool-metadata", '='), ("header", ':')];

/// The flags of some commands, by name.
struct Flags {
    long: Vec<(String, Takes)>,
    short: Vec<(char, Takes)>,
}

impl Flags {
    fn of(commands: &[&Command]) -> Self {
        let mut flags = Self {
            long: vec![("help".into(), Takes::Nothing), ("version".into(), Takes::Nothing)],
            short: vec![('h', Takes::Nothing), ('V', Takes::Nothing)],
        };
        for argument in commands.iter().flat_map(|command| command.get_arguments()) {
            let takes = takes(argument);
            let names = argument.get_long().into_iter().chain(argument.get_all_aliases().unwrap_or_default());
            flags.long.extend(names.map(|name| (name.to_owned(), takes)));
            flags.short.extend(argument.get_short().map(|name| (name, takes)));
        }
        flags
    }

    /// What of the following tokens belongs to this one; `None` if it is none of these flags.
    fn find(&self, token: &str) -> Option<Takes> {
        if let Some(long) = token.strip_prefix("--") {
            let (name, takes) = match long.split_once('=') {
                Some((name, _)) => (name, Some(Takes::Nothing)),
                None => (long, None),
            };
            let (_, known) = self.long.iter().find(|(known, _)| known == name)?;
            return Some(takes.unwrap_or(*known));
        }
        let mut letters = token.strip_prefix('-')?.chars();
        let first = letters.next()?;
        let (_, known) = self.short.iter().find(|(known, _)| *known == first)?;
        // The value may be part of the token: `-eKEY=VALUE`.
        Some(if letters.next().is_some() { Takes::Nothing } else { *known })
    }

    /// Whether a flag that is none of ours nearly is one.
    fn is_slip(&self, token: &OsString) -> bool {
        let Some(name) = token.to_str().and_then(|token| token.strip_prefix("--")) else { return false };
        let name = name.split_once('=').map_or(name, |(name, _)| name);
        name.len() > 3 && suggest::did_you_mean(name, self.long.iter().map(|(known, _)| known.as_str())).is_some()
    }
}

fn takes(argument: &Arg) -> Takes {
    let several = argument.get_long().and_then(|name| SEVERAL.iter().find(|(known, _)| *known == name));
    match (argument.get_action(), several) {
        (ArgAction::Set | ArgAction::Append, Some((_, sign))) => Takes::Pairs(*sign),
        (ArgAction::Set | ArgAction::Append, None) => Takes::One,
        _ => Takes::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn check(typed: &str, expected: &str) {
        let rewritten = rewrite(words(typed), &crate::CommandLine::command()).map_err(|failure| failure.diagnostic.message);
        assert_eq!(rewritten, Ok(words(expected)), "{typed}");
    }

    #[test]
    fn a_command_may_come_without_separator() {
        check("m inspect python s.py --method tools/list", "m inspect --method tools/list -- python s.py");
        check("m inspect --method tools/list python s.py", "m inspect --method tools/list -- python s.py");
        check("m inspect npx -y pkg --port 80 --method ping", "m inspect --method ping -- npx -y pkg --port 80");
        check("m inspect s.py --cli --era=legacy -q x --method=ping", "m inspect --era=legacy -q --method=ping -- s.py --cli x");
        check(
            "m inspect -e A=1 s.py x --tool-arg a=1 b=2 --method m",
            "m inspect -e A=1 --tool-arg a=1 --tool-arg b=2 --method m -- s.py x",
        );
        check("m -v --color never inspect s.py x --method m", "m -v --color never inspect --method m -- s.py x");
    }

    #[test]
    fn a_url_or_a_name_stays_a_word() {
        check("m inspect http://h/mcp --method ping", "m inspect http://h/mcp --method ping");
        check("m inspect --method ping tracker", "m inspect tracker --method ping");
        check("m inspect http://h/mcp extra --method ping", "m inspect http://h/mcp extra --method ping");
    }

    #[test]
    fn the_separator_works_both_ways() {
        check("m inspect --method ping -- python s.py --method x", "m inspect --method ping -- python s.py --method x");
        check("m inspect python s.py -x -- --method ping", "m inspect --method ping -- python s.py -x");
        check("m inspect -- python s.py --method ping --json", "m inspect --method ping --json -- python s.py");
        check("m inspect -q -- s.py x --method ping", "m inspect -q --method ping -- s.py x");
    }

    #[test]
    fn slips_and_flags_without_a_target_are_left_to_clap() {
        check("m inspect s.py x --methd ping", "m inspect --methd -- s.py x ping");
        check("m inspect --nonsense", "m inspect --nonsense");
        check("m inspect", "m inspect");
        check("m inspect --help", "m inspect --help");
        check("m inspect --method", "m inspect --method");
    }

    #[test]
    fn one_flag_takes_several_pairs() {
        check(
            "m inspect --tool-arg a=1 b:=2 http://h/?x=1 --method m",
            "m inspect http://h/?x=1 --tool-arg a=1 --tool-arg b:=2 --method m",
        );
        check("m inspect --header A:1 B:2 http://h/ --method m", "m inspect http://h/ --header A:1 --header B:2 --method m");
        check("m inspect --metadata a=1 b=x/y --method m -- s.py", "m inspect --metadata a=1 --metadata b=x/y --method m -- s.py");
        check("m inspect --tool-arg a=1 python s.py --method m", "m inspect --tool-arg a=1 --method m -- python s.py");
    }

    #[test]
    fn no_timeout_is_the_longest_one() {
        check("m inspect http://h/ --connect-timeout 0 --method m", "m inspect http://h/ --connect-timeout 24h --method m");
        check("m inspect --connect-timeout=0 --method m -- s.py 0", "m inspect --connect-timeout=24h --method m -- s.py 0");
        check("m inspect http://h/ --timeout 0 --method m", "m inspect http://h/ --timeout 0 --method m");
        check("m tools --connect-timeout 0 http://h/", "m tools --connect-timeout 0 http://h/");
    }

    #[test]
    fn other_commands_are_not_touched() {
        check("m call inspect a b --x", "m call inspect a b --x");
        check("m", "m");
        check("m --version", "m --version");
    }

    #[test]
    fn what_is_not_there_yet_is_refused_by_name() {
        let refused = |typed| rewrite(words(typed), &crate::CommandLine::command()).unwrap_err().diagnostic.message;
        assert_eq!(refused("m inspect --catalog=x --method ping s.py"), "`--catalog` is not supported by this version");
        assert_eq!(refused("m inspect s.py --load --method ping"), "`--load` is not supported by this version");
    }
}
