//! `mcproof check` on servers that others wrote, and on the demo servers: each finding is one of those that are accepted in
//! `peers/findings`, with the reason why it is true; of the demo servers there is none. So a false alarm fails here, and so
//! does a rule that has gone blind. `docs/field-notes.md` has the frames.
//!
//! One test for each server and transport, so without the usual harness. `-- --renew` takes what is found now; the reasons
//! are then for a person to write.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod peers;

use libtest_mimic::{Arguments, Failed, Trial};
use peers::{Peer, Start, names, root};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, ExitCode};

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");
const TRANSPORTS: [&str; 3] = ["stdio", "http", "sse"];
const DEMOS: [&str; 6] = ["shop", "tracker", "analysis", "data-source", "ml-analysis", "report"];

/// Which interfaces there are is the machine's, not the server's.
const OF_THE_MACHINE: &str = "http-listens-on-loopback";

/// What a server does when it happens to be slow: these wait for a cluster and for a network that are not there, and go on when
/// that is cancelled.
const MATTERS_OF_TIME: [(&str, &str); 2] =
    [("context7", "canceled-request-gets-no-response"), ("kubernetes", "canceled-request-gets-no-response")];

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().collect();
    let is_renewing = words.iter().any(|word| word == "--renew");
    words.retain(|word| word != "--renew");
    let mut trials = Vec::new();
    for transport in TRANSPORTS {
        for name in names().into_iter().filter(|name| Peer::named(name).0[transport].is_object()) {
            trials.push(Trial::test(format!("{name}_over_{transport}"), move || known(&name, transport, is_renewing)));
        }
        if transport == "stdio" {
            trials.push(Trial::test("a_known_defect_of_an_sdk_is_folded", known_defects_are_folded));
            trials.push(Trial::test("an_sdk_beside_a_server_is_not_what_it_is_made_with", what_is_only_installed_is_not_named));
        }
        for demo in DEMOS {
            trials.push(Trial::test(format!("demo_{demo}_over_{transport}"), move || clean(demo, transport)));
        }
    }
    let mut arguments = Arguments::from_iter(words);
    // Servers of Python take longer to start than a check takes, and waiting costs nothing.
    arguments.test_threads.get_or_insert(4);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Nothing but what is known, and all of that.
fn known(name: &str, transport: &str, is_renewing: bool) -> Result<(), Failed> {
    let Start { command, env, cwd, url } = Peer::named(name).start(transport);
    let mut words = vec!["--strict".to_owned(), "--baseline".into(), format!("peers/findings/{name}-{transport}.json")];
    let of_time = MATTERS_OF_TIME.iter().filter(|(server, _)| *server == name);
    words.extend(of_time.flat_map(|(_, rule)| ["--skip".into(), (*rule).to_owned()]));
    words.extend(is_renewing.then(|| "--update-baseline".into()));
    words.extend(env.iter().flat_map(|(key, value)| ["-e".into(), format!("{key}={value}")]));
    words.extend(cwd.into_iter().flat_map(|folder| ["--cwd".into(), folder]));
    words.extend(url);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("field-{name}-{transport}.json"));
    words.extend(["--reporter".into(), "terminal".into(), "--reporter".into(), format!("json={}", file.display())]);
    check(transport, &words, &command)?;
    detected_sdks(&Peer::named(name).0["sdk"], &serde_json::from_slice(&std::fs::read(&file)?)?)
}

/// It is known by what it runs from, however it was started. Other SDKs may be installed beside its own.
fn detected_sdks(package: &Value, report: &Value) -> Result<(), Failed> {
    let sdks = &report["conversations"][0]["sdks"];
    let is_found = sdks.as_array().into_iter().flatten().any(|sdk| sdk["package"] == *package && sdk["version"].is_string());
    if is_found { Ok(()) } else { Err(format!("{package} was not found: {sdks}").into()) }
}

/// As a person sees them: what the TypeScript SDK does stands under its name, and is counted by itself.
fn known_defects_are_folded() -> Result<(), Failed> {
    let Start { command, .. } = Peer::named("everything").start("stdio");
    let output = Command::new(MCPROOF).current_dir(root()).env("NO_COLOR", "1").args(["check", "--"]).args(command).output()?;
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let (own, of_sdk) = said.split_once("(not your code)\n").ok_or_else(|| said.to_string())?;
    let is_folded = own.lines().last().is_some_and(|line| line.starts_with("TypeScript SDK 1."))
        && !own.contains("resource-unknown-code")
        && of_sdk.contains("note     resource-unknown-code: ")
        && of_sdk.contains("\n0 failures, ")
        && of_sdk.contains(" known defects of TypeScript SDK 1.");
    if is_folded && output.status.success() { Ok(()) } else { Err(said.into_owned().into()) }
}

/// A server that was written by hand, with the native modules of an environment in which the Python SDK is installed.
fn what_is_only_installed_is_not_named() -> Result<(), Failed> {
    let Start { command, .. } = Peer::named("sqlite").start("stdio");
    let python = Path::new(&command[0]).with_file_name("python");
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/natural.py");
    let mut mcproof = Command::new(MCPROOF);
    mcproof.current_dir(root()).env("NO_COLOR", "1").args(["check", "--"]).arg(python).arg(server).arg("beside-an-sdk");
    let output = mcproof.output()?;
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let is_its_own = said.contains("warning: an unknown method got the error -32602") && !said.contains("SDK");
    if is_its_own && output.status.success() { Ok(()) } else { Err(said.into_owned().into()) }
}

/// Nothing at all.
fn clean(demo: &str, transport: &str) -> Result<(), Failed> {
    let mut command = vec![MCPROOF.to_owned(), "demo".into(), demo.into()];
    let mut words = vec!["--strict".to_owned(), "--call".into(), "all".into()];
    if transport != "stdio" {
        command.extend([format!("--{transport}"), "--port".into(), "${port}".into()]);
        words.push(format!("http://127.0.0.1:${{port}}/{}", if transport == "sse" { "sse" } else { "mcp" }));
    }
    check(transport, &words, &command)
}

fn check(transport: &str, words: &[String], command: &[String]) -> Result<(), Failed> {
    let mut mcproof = Command::new(MCPROOF);
    mcproof.current_dir(root()).env_remove("GITHUB_ACTIONS").env("NO_COLOR", "1");
    mcproof
        .args(["check", "--connect-timeout", "60s", "--deadline", "5m", "--skip", OF_THE_MACHINE, "--transport", transport])
        .args(words)
        .arg("--")
        .args(command);
    let output = mcproof.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    // So strict that it fails as well if what is accepted is gone: then a rule sees less than it did.
    if output.status.success() { Ok(()) } else { Err(said.into_owned().into()) }
}
