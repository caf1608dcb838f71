//! However mcproof ends, no server process is left behind.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(target_os = "linux")]

mod processes;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use processes::until;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// Starts `mcproof test` on a server that never answers, has two children and ignores SIGTERM; ends mcproof with `signal`
/// once all of that runs; then counts.
fn check(marker: &str, transports: &str, flags: &[&str], servers: usize, signal: Signal) -> ExitStatus {
    // Seconds that nobody else sleeps: they mark the processes of this test.
    let marker = &format!("86{marker}{}", std::process::id());
    check_server(&format!("trap '' TERM; sleep {marker} & sleep {marker} & wait"), 3, marker, transports, flags, servers, signal)
}

/// As above, with a server of which so many processes run.
fn check_server(
    server: &str,
    processes: usize,
    marker: &str,
    transports: &str,
    flags: &[&str],
    servers: usize,
    signal: Signal,
) -> ExitStatus {
    let folder = tempfile::tempdir().unwrap();
    let suite = format!(
        "server:\n  stdio: {{ command: [sh, -c, \"{server}\"] }}\n  http: {{ command: [sh, -c, \"{server}\"], env: {{ PORT: \"${{port}}\" }}, url: \"http://127.0.0.1:${{port}}/\" }}\n\
         tests:\n  - {{ name: one, steps: [tools] }}\n"
    );
    let file = folder.path().join("silent.mcproof.yaml");
    std::fs::write(&file, suite).unwrap();
    let mut mcproof = Command::new(env!("CARGO_BIN_EXE_mcproof"))
        .arg("test")
        .arg(&file)
        // Traces of what is killed stay.
        .current_dir(folder.path())
        .args(["--transport", transports, "--jobs", "2"])
        .args(flags)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until(marker, |count| count == servers * processes);
    kill(Pid::from_raw(i32::try_from(mcproof.id()).unwrap()), signal).unwrap();
    let status = mcproof.wait().unwrap();
    until(marker, |count| count == 0);
    status
}

#[test]
fn ctrl_c_ends_the_servers() {
    assert_eq!(check("1", "stdio,http", &[], 2, Signal::SIGINT).code(), Some(130));
}

#[test]
fn sigterm_ends_the_servers() {
    assert_eq!(check("2", "stdio,http", &[], 2, Signal::SIGTERM).code(), Some(143));
}

#[test]
fn sigkill_ends_the_servers() {
    assert_eq!(check("3", "stdio,http", &[], 2, Signal::SIGKILL).signal(), Some(9));
}

/// What a panic does in the release profile, which aborts.
#[test]
fn an_abort_ends_the_servers() {
    assert_eq!(check("4", "stdio", &[], 1, Signal::SIGABRT).signal(), Some(6));
}

/// Two cases run; the servers of the next two are started ahead.
#[test]
fn warm_servers_end_as_well() {
    assert_eq!(check("5", "stdio,http", &["--repeat", "2"], 4, Signal::SIGINT).code(), Some(130));
    assert_eq!(check("6", "stdio,http", &["--repeat", "2"], 4, Signal::SIGTERM).code(), Some(143));
    assert_eq!(check("7", "stdio,http", &["--repeat", "2"], 4, Signal::SIGKILL).signal(), Some(9));
}

/// Whatever a command does when it is asked to end, its server has time to clean up.
#[test]
fn a_server_cleans_up_before_it_ends() {
    let server = |folder: &Path| {
        let [ready, cleaned] = ["ready", "cleaned"].map(|name| folder.join(name).display().to_string());
        format!("trap ': > {cleaned}; exit' TERM; : > {ready}; while :; do sleep 0.02; done")
    };
    let check = |arguments: &[&str], signal: Signal, code: i32| {
        let folder = tempfile::tempdir().unwrap();
        let server = server(folder.path());
        let suite = format!("server: {{ stdio: {{ command: [sh, -c, \"{server}\"] }} }}\ntests: [{{ name: one, steps: [tools] }}]\n");
        std::fs::write(folder.path().join("s.mcproof.yaml"), suite).unwrap();
        let mut mcproof = Command::new(env!("CARGO_BIN_EXE_mcproof"));
        mcproof.args(arguments).current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if arguments[0] != "test" {
            mcproof.args(["--", "sh", "-c", &server]);
        }
        let mut mcproof = mcproof.spawn().unwrap();
        while !folder.path().join("ready").exists() {
            assert_eq!(mcproof.try_wait().unwrap(), None, "{arguments:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
        // A server that has only just begun may be ready before mcproof knows its process: that one is killed.
        std::thread::sleep(Duration::from_millis(200));
        kill(Pid::from_raw(i32::try_from(mcproof.id()).unwrap()), signal).unwrap();
        assert_eq!(mcproof.wait().unwrap().code(), Some(code), "{arguments:?}");
        assert!(folder.path().join("cleaned").exists(), "{arguments:?} {signal}");
    };
    for arguments in [&["test"][..], &["check"], &["probe"], &["tools"], &["lock"], &["doctor"]] {
        check(arguments, Signal::SIGINT, 130);
        check(arguments, Signal::SIGTERM, 143);
    }
    check(&["test"], Signal::SIGHUP, 143);
    check(&["check"], Signal::SIGHUP, 143);
}

/// One child is a daemon: it has lost its parent, and has a group and a session of its own. Its parent has ended before it.
#[test]
fn what_has_left_its_session_ends_as_well() {
    let signals = [("8", Signal::SIGINT), ("9", Signal::SIGTERM), ("12", Signal::SIGHUP), ("0", Signal::SIGKILL), ("11", Signal::SIGABRT)];
    for (number, signal) in signals {
        let marker = &format!("86{number}{}", std::process::id());
        let server = format!("(setsid sh -c 'sleep {marker} < /dev/null > /dev/null 2>&1 &' &); sleep {marker}; wait");
        check_server(&server, 3, marker, "stdio,http", &[], 2, signal);
    }
}
