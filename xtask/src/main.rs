//! The development tasks of this repository, as `cargo xtask …`. Knows the command lines of cargo, npm and pip, and nothing of MCP.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a task prints for the person who started it")]

mod bindings;
mod chaos;
mod check;
mod field;
mod fuzz;
mod growth;
mod notice;
mod packages;
mod peers;
mod picture;
mod programs;
mod requirements;
mod sdks;
mod site;
mod stability;
mod strings;
mod supply;
mod systems;
mod test_programs;
mod web;
#[cfg(test)]
mod words;
mod workflows;

use std::path::Path;
use std::process::{Command, ExitCode};

const USAGE: &str = "\
Usage: cargo xtask <TASK>

  check           run all checks that a change must pass, as in CI
  tests           run only the tests, two programs in parallel
  peers [NAME…]   install the servers that the tests use, and print their location
  field [--program PATH] [--verbs LIST] [--page] [NAME…]
                  run the commands of mcproof on published servers (field/) and write docs/field.md; --page only writes it
  field --forms   run every command with every form of target, and servers of each SDK
  stability [--runs N] [--parallel N] [--load N] [--program PATH] [NAME…]
                  check servers repeatedly under load and write docs/stability.md
  fuzz [--seconds N] [TARGET…]
                  fuzz the parsers (lines, sse, jsonrpc, suite), by default for a minute
  bindings [--release | --program PATH] [--bench] [NAME…]
                  build the packages for other languages and test the installed packages (python, node)
  packages [--program PATH] [--static PATH] [--alpine ROOT]
                  build the packages of this platform in the profile `dist`, install each from the file in an empty directory, run
                  the quickstart there, and write docs/packages.md; --static adds the packages of a static program
  packages check  install the packages that `bindings` has tested, and an archive, in empty directories and run the quickstart there
  packages make --target TRIPLE --program PATH [--addon PATH] [--repository URL] OUT
                  make archive, wheel and npm packages of a program
  packages finish --repository URL OUT
                  write the installer and the Homebrew formula for the archives in OUT
  workflows       check the GitHub workflows and the action (actionlint, zizmor)
  mutations [--place 'TRANSPORT ERA'] [--only TEXT] [--sample N] [--again] [--list] [--with-legal] [--page] [--program FILE]
                  apply one mutation at a time to a correct server and verify that `check` does not pass; all mutations
                  take hours, in as many parts as wanted; --page writes docs/mutations.md from what is kept;
                  --program names another mcproof, such as a release build
  zoo [--others]  check every broken server of the testkit over each transport and in each era, and write docs/detection.md;
                  --others tries the official conformance suite and MCP Inspector on them instead, which takes hours
  hostile [--program PATH] [TEXT]
                  run every command on every hostile server (or only where TEXT is in `SERVER TRANSPORT COMMAND`), keep the results,
                  and write docs/hostile.md; takes half an hour; --program names a release build, which is held to the bounds of one
  recorded [--program PATH] [servers [TEXT] | bytes | kills | delay | memory]
                  use real servers with real clients through the proxy, make suites and mocks of the recordings, kill each side, measure
                  the cost, and write docs/recorded.md; takes half an hour, in as many parts as wanted
  chaos [--minutes N] [--seed N] [--database sqlite|postgres]
                  inject random faults into a monitor on each database, by default for ten minutes each; verify that no outage
                  is lost and no alert is false, and write docs/chaos.md
  requirements [--update | --show] FOLDER
                  compare the table of requirements with the sources of the specification: FOLDER holds the
                  repositories of the organization (modelcontextprotocol, ext-tasks, ext-auth, ext-apps) side by side;
                  --update adds new requirements to the table, --show prints them in full
  sdks [--program PATH] [--page] [PACKAGE…]
                  check a minimal correct server with each version of each SDK (sdks/), compare the findings with the table of
                  known defects, and write docs/sdks.md; --page only compares and writes
  strings         list every text in the sources that a user may read, to be proofread
  web [--check]   build the page of `mcproof ui` (crates/ui/web) into crates/ui/assets; --check only compares
  site            build the documentation site into target/site; fail on broken links, anchors and pages without a place
  picture [--program PATH]
                  make the picture of a failure in the README (docs/pictures/failure.svg) from a real run
  supply          check licenses, duplicates, sources and (if the database is reachable) advisories of the crates (deny.toml)
  growth [--program PATH] [--most N] [NAME…]
                  measure processor time and memory for 100 to 100,000 items of each kind and write docs/growth.md
  windows|musl|arm64 FOLDER [--kills N] [--features LIST]
                  build mcproof for this system in a chroot of Debian below FOLDER, run it under wine, in an empty chroot or under
                  qemu, and print a line for each step; chroots are made if they are missing (as root, 4 GB)
  bench           run the benchmarks in the release profile";

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
        ["packages", arguments @ ..] => told(packages::packages(root(), arguments)),
        ["workflows"] => told(workflows::workflows(root())),
        ["mutations", words @ ..] => test_program("zoo", "--mutations", words),
        ["zoo"] => test_program("zoo", "--every-place", &[]),
        ["zoo", "--others"] => test_program("zoo", "--others", &[]),
        ["hostile", words @ ..] => test_program("hostile", "--verbs", words),
        ["recorded", words @ ..] => recorded(words),
        ["chaos", words @ ..] => told(chaos::chaos(root(), words)),
        ["requirements", arguments @ ..] => {
            told(requirements::parse(arguments).and_then(|plan| requirements::compare(root(), &plan)).map(|report| print!("{report}")))
        }
        ["sdks", arguments @ ..] => told(sdks::sdks(root(), arguments)),
        ["strings"] => told(strings::strings(root()).map(|listed| print!("{listed}"))),
        ["web"] => told(web::web(root(), web::Built::Written)),
        ["web", "--check"] => told(web::web(root(), web::Built::Compared)),
        ["site"] => told(site::site(root())),
        ["picture", arguments @ ..] => told(picture::picture(root(), arguments)),
        ["supply"] => told(supply::supply(root())),
        ["growth", arguments @ ..] => told(growth::growth(root(), arguments)),
        [name @ ("windows" | "musl" | "arm64"), arguments @ ..] => told(systems::systems(root(), name, arguments)),
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

/// Against the clients and servers of others.
fn recorded(words: &[&str]) -> bool {
    told(peers::install(root(), &[]).map(drop)) && test_program("recorded", "--chore", words)
}

/// Starts a test program of the command line for what it does beside its tests.
fn test_program(name: &str, chore: &str, words: &[&str]) -> bool {
    let program = ["--test", name, "--", chore];
    let status = Command::new("cargo").args(test_programs::TEST).args(program).args(words).current_dir(root()).status();
    match status {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cannot start cargo: {error}");
            false
        }
    }
}

fn bench() -> bool {
    let status = Command::new("cargo").args(["bench", "--package", "mcproof"]).current_dir(root()).status();
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
