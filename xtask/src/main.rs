//! The chores of this repository, as `cargo xtask …`. Knows cargo, npm and pip by their command lines; knows nothing of MCP.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a chore talks to the person who started it")]

mod bindings;
mod chaos;
mod check;
mod field;
mod fuzz;
mod growth;
mod peers;
mod programs;
mod requirements;
mod sdks;
mod stability;
mod supply;
mod test_programs;

use std::path::Path;
use std::process::{Command, ExitCode};

const USAGE: &str = "\
usage: cargo xtask <chore>

  check           everything that a change must pass, the same as in CI
  tests           only the tests, two programs at a time
  peers [NAME…]   only installs the real servers that the tests run against, and says where they are
  field [--program PATH] [--page] [NAME…]
                  runs the commands of mcproof on published servers (field/), and writes docs/field.md; --page only writes it
  field --forms   every command in every form in which a server can be named, and servers of each SDK
  stability [--runs N] [--load N] [NAME…]
                  checks servers again and again on a busy machine, and writes docs/stability.md
  fuzz [--seconds N] [TARGET…]
                  looks for inputs that break the parsers (lines, sse, jsonrpc, suite), a minute if not told otherwise
  bindings [--release | --program PATH] [--bench] [NAME…]
                  builds the packages for other languages, and tests what they install (python, node)
  mutations [--place 'TRANSPORT ERA'] [--only TEXT] [--sample N] [--list] [--with-legal]
                  changes one thing at a time in what a correct server says, and checks that no check of it is green; all of
                  them take about an hour, and write docs/mutations.md
  hostile [TEXT]  every command on every hostile server of the testkit (or those with TEXT in their name), and writes
                  docs/hostile.md; half an hour
  chaos [--minutes N] [--seed N] [--database sqlite|postgres]
                  random faults for a monitor on each database, ten minutes on each if not told otherwise; checks that no outage
                  is lost and nothing is told that was not so, and writes docs/chaos.md
  requirements [--update | --show] FOLDER
                  compares the table of normative sentences with the specification's sources: FOLDER holds the
                  repositories of the organization (modelcontextprotocol, ext-tasks, ext-auth, ext-apps) side by side;
                  --update writes what is new into the table, --show prints the sentences in full
  sdks [--program PATH] [--page] [PACKAGE…]
                  checks the smallest correct server with each version of each SDK (sdks/), compares what it is told with the table
                  of known defects, and writes docs/sdks.md; --page only writes and compares
  supply          licences, duplicates, sources and (where their database can be reached) advisories of the crates (deny.toml)
  growth [--program PATH] [--most N] [NAME…]
                  what more of something costs in time and memory, from 100 to 10,000 of it; writes docs/growth.md
  bench           the benchmarks, in the release profile";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let passed = match arguments.as_slice() {
        ["check"] => check::check(root()),
        ["tests"] => told(test_programs::build(root()).and_then(|programs| test_programs::run(root(), &programs))),
        ["peers", names @ ..] => install_peers(names),
        ["field", "--forms"] => told(field::forms(root())),
        ["field", arguments @ ..] => told(field::field(root(), arguments)),
        ["stability", arguments @ ..] => told(stability::Plan::parse(arguments).and_then(|plan| stability::stability(root(), &plan))),
        ["fuzz", arguments @ ..] => told(fuzz::parse(arguments).and_then(|plan| fuzz::fuzz(root(), &plan))),
        ["bindings", arguments @ ..] => told(bindings::bindings(root(), arguments)),
        ["mutations", words @ ..] => mutations(words),
        ["hostile", words @ ..] => test_program("hostile", "--verbs", words),
        ["chaos", words @ ..] => told(chaos::chaos(root(), words)),
        ["requirements", arguments @ ..] => {
            told(requirements::parse(arguments).and_then(|plan| requirements::compare(root(), &plan)).map(|report| print!("{report}")))
        }
        ["sdks", arguments @ ..] => told(sdks::sdks(root(), arguments)),
        ["supply"] => told(supply::supply(root())),
        ["growth", arguments @ ..] => told(growth::growth(root(), arguments)),
        ["bench"] => bench(),
        ["help" | "-h" | "--help"] => {
            println!("{USAGE}");
            true
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn install_peers(names: &[&str]) -> bool {
    match peers::install(root(), names) {
        Ok(installed) => {
            for peer in installed {
                println!("{:<21} {}", peer.name, peer.folder.display());
            }
            true
        }
        Err(failure) => {
            eprintln!("{failure}");
            false
        }
    }
}

fn told(outcome: Result<(), String>) -> bool {
    match outcome {
        Ok(()) => true,
        Err(failure) => {
            eprintln!("{failure}");
            false
        }
    }
}

/// A part of them says what came of each; only the whole is worth a page.
fn mutations(words: &[&str]) -> bool {
    let all: &[&str] = if words.is_empty() { &["--write"] } else { &[] };
    test_program("zoo", "--mutations", &[words, all].concat())
}

/// Starts a test program of the command line for what it does beside its tests.
fn test_program(name: &str, chore: &str, words: &[&str]) -> bool {
    let program = ["test", "--package", "mcproof-cli", "--test", name, "--", chore];
    let status = Command::new("cargo").args(program).args(words).current_dir(root()).status();
    match status {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cannot start cargo: {error}");
            false
        }
    }
}

fn bench() -> bool {
    let status = Command::new("cargo").args(["bench", "--package", "mcproof-cli"]).current_dir(root()).status();
    match status {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cannot start cargo: {error}");
            false
        }
    }
}

/// The top of the checkout: this package lies right below it.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace")
}
