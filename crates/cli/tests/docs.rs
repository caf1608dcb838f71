//! The documentation, typed as a reader would: every `console` block is run in a terminal, in a folder of its page with the files that
//! the page shows, and prints what the page says. One test for each page, so without the usual harness. With `--write [PAGE]` the
//! program puts what the commands print into the pages instead.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a test adds to the PATH that it was given")]

#[path = "documentation/matching.rs"]
mod matching;
#[path = "documentation/page.rs"]
mod page;
mod peers;
#[path = "documentation/room.rs"]
mod room;

use libtest_mimic::{Arguments, Failed, Trial};
use mcproof_suite::reference::tables;
use page::{Block, Page};
use peers::root;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What a reader follows from the first line to the last. The pages about the inside of the project are for reading only.
const FOLDERS: [&str; 4] = ["docs/tutorial", "docs/guide", "docs/reference", "docs/explanation"];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((_, names)) = words.split_first().filter(|(first, _)| *first == "--write") {
        for path in pages() {
            let name = name(&path);
            if names.is_empty() || names.iter().any(|wanted| name.contains(wanted.as_str())) {
                Page::read(&path).write(&path);
            }
        }
        return ExitCode::SUCCESS;
    }
    let mut trials: Vec<Trial> = pages().into_iter().map(|path| Trial::test(name(&path), move || check(&path))).collect();
    trials.push(Trial::test("generated_pages_are_up_to_date", generated_pages_are_up_to_date));
    trials.push(Trial::test("every_key_of_suites_is_in_an_example", every_key_of_suites_is_in_an_example));
    trials.push(Trial::test("every_schema_is_in_the_table_of_formats", every_schema_is_in_the_table_of_formats));
    trials.push(Trial::test("commands_that_are_not_run_have_flags_that_exist", commands_that_are_not_run_have_flags_that_exist));
    trials.push(Trial::test("the_readme_is_short", the_readme_is_short));
    trials.push(Trial::test("output_is_compared", || matching::tests().map_err(Failed::from)));
    let mut arguments = Arguments::from_args();
    // Most of the time is spent waiting for servers to start.
    arguments.test_threads.get_or_insert(4);
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md"), root().join("docs/index.md")];
    for folder in FOLDERS {
        let entries = std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    pages.sort();
    pages
}

fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

fn check(path: &Path) -> Result<(), Failed> {
    let page = Page::read(path);
    let unmarked: Vec<String> = page.blocks().filter(|block| block.needs_a_reason()).map(Block::place).collect();
    if !unmarked.is_empty() {
        let rule = "is neither run nor a file: make it a `console` block or give it a title, or say why not in a line before it, `<!-- not run: WHY -->`";
        return Err(format!("{} {rule}", unmarked.join(", ")).into());
    }
    Ok(page.run()?)
}

/// The commands of indented blocks: their flags are in the help.
fn commands_that_are_not_run_have_flags_that_exist() -> Result<(), Failed> {
    let help = |words: &[&str]| {
        let ran = Command::new(env!("CARGO_BIN_EXE_mcproof")).args(words).arg("--help").output().unwrap();
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        text.contains(&format!("mcproof {}", words.join(" "))).then_some(text)
    };
    let texts: Vec<(String, String)> = pages().iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect();
    let mut known: BTreeMap<Vec<&str>, Option<String>> = BTreeMap::new();
    let mut unknown = Vec::new();
    let mut read = 0;
    for (page, text) in &texts {
        let mut is_fenced = false;
        for line in text.lines() {
            is_fenced ^= line.starts_with("```");
            let Some(typed) = line.strip_prefix("    ").filter(|_| !is_fenced).and_then(|line| line.trim_start().strip_prefix("mcproof "))
            else {
                continue;
            };
            // What comes behind is for the server, the shell or the reader.
            let typed = [" -- ", " | ", " && ", " > ", " # "].iter().fold(typed, |typed, end| typed.split(*end).next().unwrap_or(typed));
            let words: Vec<&str> = typed.split_whitespace().collect();
            // Output of the program begins like a command.
            if words.first().is_some_and(|first| first.ends_with(':')) {
                continue;
            }
            let is_command = |word: &&&str| word.bytes().all(|byte| byte == b'-' || byte.is_ascii_lowercase()) && !word.starts_with('-');
            let depth = words.iter().take_while(is_command).count().min(2);
            let found = (1..=depth).rev().find_map(|depth| {
                let path = &words[..depth];
                known.entry(path.to_vec()).or_insert_with(|| help(path)).clone()
            });
            read += 1;
            let Some(found) = found else {
                unknown.push(format!("{page}: mcproof {typed}"));
                continue;
            };
            let flags: BTreeSet<&str> = found.split(|letter: char| letter != '-' && !letter.is_ascii_alphanumeric()).collect();
            let typed_flags = words.iter().filter(|word| word.starts_with("--")).map(|word| word.split('=').next().unwrap_or(word));
            unknown.extend(typed_flags.filter(|flag| !flags.contains(flag)).map(|flag| format!("{page}: mcproof {typed}: no {flag}")));
        }
    }
    assert!(read > 30, "only {read} commands were found");
    if unknown.is_empty() { Ok(()) } else { Err(unknown.join("\n").into()) }
}

/// Regenerate with `cargo run -p mcproof -- reference docs/reference`.
fn generated_pages_are_up_to_date() -> Result<(), Failed> {
    let kept = root().join("docs/reference");
    let folder = tempfile::tempdir()?;
    std::os::unix::fs::symlink(kept.join("examples"), folder.path().join("examples"))?;
    let ran = Command::new(env!("CARGO_BIN_EXE_mcproof")).arg("reference").arg(folder.path()).output()?;
    if !ran.status.success() {
        return Err(String::from_utf8_lossy(&ran.stderr).into_owned().into());
    }
    for page in ["commands.md", "suites.md"] {
        if std::fs::read(folder.path().join(page))? != std::fs::read(kept.join(page)).unwrap_or_default() {
            return Err(format!("docs/reference/{page} is old: run `cargo run -p mcproof -- reference docs/reference`").into());
        }
    }
    Ok(())
}

fn every_key_of_suites_is_in_an_example() -> Result<(), Failed> {
    let mut missing = Vec::new();
    for table in tables() {
        let file = format!("docs/reference/examples/{}.mcproof.yaml", table.name.to_lowercase());
        let Ok(example) = std::fs::read_to_string(root().join(&file)) else {
            missing.push(format!("{file} is missing"));
            continue;
        };
        let is_used = |key: &str| {
            example.match_indices(key).any(|(at, _)| {
                let (before, after) = (&example[..at], &example[at + key.len()..]);
                let starts = before.ends_with(['{', ' ', '\n', '[']) || before.is_empty();
                starts && (after.starts_with(':') || (before.ends_with("- ") && after.starts_with('\n')))
            })
        };
        missing.extend(table.rows.iter().filter(|row| !is_used(row.key)).map(|row| format!("{file}: no `{}`", row.key)));
    }
    if missing.is_empty() { Ok(()) } else { Err(missing.join("\n").into()) }
}

fn every_schema_is_in_the_table_of_formats() -> Result<(), Failed> {
    let help = Command::new(env!("CARGO_BIN_EXE_mcproof")).args(["schema", "--help"]).output()?;
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let names = help.lines().filter_map(|line| line.trim().strip_prefix("- ")?.split_once(':')).map(|(name, _)| name);
    // That of `--color`.
    let names: Vec<&str> = names.filter(|name| *name != "auto").collect();
    let page = std::fs::read_to_string(root().join("docs/reference/formats.md"))?;
    let missing: Vec<&str> = names.iter().copied().filter(|name| !page.contains(&format!("\n| `{name}` |"))).collect();
    if names.contains(&"suite") && missing.is_empty() { Ok(()) } else { Err(format!("{missing:?} of {names:?}").into()) }
}

fn the_readme_is_short() -> Result<(), Failed> {
    let lines = std::fs::read_to_string(root().join("README.md"))?.lines().count();
    if lines <= 120 { Ok(()) } else { Err(format!("README.md has {lines} lines, and 120 are enough").into()) }
}
