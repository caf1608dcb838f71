//! Real servers that real clients use through the proxy: each recording becomes a suite that passes at once, and a mock by which the
//! same client prints the same.

use super::MCPROOF;
use super::peers::{Peer, names, root};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

/// Servers that are recorded at the same time: most of it is waiting for their starts.
const AT_ONCE: usize = 4;

/// A client with a tool to call, which starts the server itself.
fn client(number: usize) -> Vec<String> {
    let path = |relative: &str| {
        let path = root().join(relative);
        assert!(path.exists(), "{} is not there: run `cargo xtask peers` first", path.display());
        path.display().to_string()
    };
    match number % 2 {
        0 => vec![path("target/peers/python/mcp1/bin/python"), path("crates/cli/tests/recorded/client.py")],
        _ => vec!["node".into(), path("crates/cli/tests/recorded/client.mjs")],
    }
}

fn run(command: &[String], env: &[(String, String)]) -> Output {
    let sdk = root().join("target/peers/node/everything/node_modules/@modelcontextprotocol");
    let mut program = Command::new(&command[0]);
    program.args(&command[1..]).envs(env.iter().cloned()).env("SDK", sdk);
    program.stdin(Stdio::null()).output().unwrap()
}

/// What goes wrong with this server, if anything does.
fn record_and_use(name: &str, number: usize, folder: &Path) -> Result<(), String> {
    let peer = Peer::named(name);
    let start = peer.start("stdio");
    let trace = folder.join(format!("{name}.mcptrace")).display().to_string();
    let suite = folder.join(format!("{name}.mcproof.yaml"));
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let begin = [client(number), vec![peer.0["example"].to_string()]].concat();
    let succeed = |what: &str, output: Output| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() { Ok(printed) } else { Err(format!("{name}: {what}: {printed}{said}")) }
    };
    let recorded = run(&[begin.clone(), words(&[MCPROOF, "proxy", "--trace", &trace, "--"]), start.command.clone()].concat(), &start.env);
    let recorded = succeed("recording", recorded)?;
    if !recorded.contains("\"tools\"") {
        return Err(format!("{name}: the client printed no tools: {recorded}"));
    }
    let exported = succeed("export", run(&words(&[MCPROOF, "trace", "export", &trace, "--suite"]), &start.env))?;
    std::fs::write(&suite, &exported).unwrap();
    let tested = succeed("test", run(&words(&[MCPROOF, "test", "--trace", "off", &suite.display().to_string()]), &start.env))?;
    let calls = exported.matches("- call:").count();
    if !tested.contains(" passed") || (calls == 0 && !peer.0["example"].is_null()) {
        return Err(format!("{name}: the suite proves nothing: {tested}{exported}"));
    }
    let mocked = succeed("mock", run(&[begin, words(&[MCPROOF, "mock", &trace])].concat(), &start.env))?;
    if mocked == recorded { Ok(()) } else { Err(format!("{name}: recorded\n{recorded}mocked\n{mocked}")) }
}

#[test]
fn recordings_of_real_clients_become_suites_and_mocks() {
    let folder = tempfile::tempdir().unwrap();
    let names = names();
    assert!(names.len() >= 10, "{names:?}");
    let (left, wrong) = (Mutex::new(names.iter().enumerate()), Mutex::new(Vec::new()));
    let next = || left.lock().unwrap().next();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((number, name)) = next() {
                    if let Err(reason) = record_and_use(name, number, folder.path()) {
                        wrong.lock().unwrap().push(reason);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {}: {}", wrong.len(), names.len(), wrong.join("\n"));
}
