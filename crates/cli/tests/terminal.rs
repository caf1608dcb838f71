//! What a person does at a real terminal: reviews snapshots, and presses the keys of `--watch`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::{OpenptyResult, Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;
use rexpect::session::{PtySession, spawn_command};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
const PATIENCE_MILLIS: u64 = 60_000;

fn start(folder: &Path, arguments: &[&str]) -> PtySession {
    let mut mcproof = plain(folder, arguments);
    mcproof.env("NO_COLOR", "1");
    spawn_command(mcproof, Some(PATIENCE_MILLIS)).unwrap()
}

fn plain(folder: &Path, arguments: &[&str]) -> Command {
    // What is started in the background of a script ignores SIGINT, and so would this: a terminal starts nothing in that way.
    let mut mcproof = Command::new("env");
    mcproof.args(["--default-signal=INT", env!("CARGO_BIN_EXE_mcproof")]).args(arguments);
    mcproof.current_dir(folder).env("XDG_STATE_HOME", folder.join(".state")).env("COLUMNS", "100");
    mcproof
}

/// Waits until the screen shows this.
#[track_caller]
fn shows(terminal: &mut PtySession, text: &str) {
    if let Err(error) = terminal.exp_string(text) {
        panic!("{text:?} never came: {error}");
    }
}

#[track_caller]
fn ends_with_code(terminal: &mut PtySession, code: i32) {
    terminal.exp_eof().unwrap();
    assert!(
        matches!(terminal.process().wait().unwrap(), WaitStatus::Exited(_, found) if found == code),
        "{:?}",
        terminal.process().status()
    );
}

fn with_pending(names: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.mcproof.yaml"), "").unwrap();
    let snapshots = folder.path().join("s.snapshots");
    std::fs::create_dir(&snapshots).unwrap();
    for name in names {
        std::fs::write(snapshots.join(format!("{name}.json")), "{\"price\": 1}").unwrap();
        std::fs::write(snapshots.join(format!("{name}.json.new")), "{\"price\": 2}").unwrap();
    }
    (folder, snapshots)
}

fn is_new(snapshots: &Path, name: &str) -> bool {
    std::fs::read_to_string(snapshots.join(format!("{name}.json"))).unwrap().contains('2')
}

fn waits(snapshots: &Path, name: &str) -> bool {
    snapshots.join(format!("{name}.json.new")).exists()
}

const QUESTION: &str = "[a]ccept, [r]eject, [s]kip, [q]uit? ";

#[test]
fn a_review_does_what_is_typed() {
    let (folder, snapshots) = with_pending(&["a", "b", "c", "d", "e"]);
    let mut terminal = start(folder.path(), &["review"]);
    // A key that means nothing is asked about again.
    for (shown, typed) in [("a.json differs", "what"), ("", "a"), ("b.json differs", "r"), ("c.json differs", "s"), ("d.json differs", "Q")]
    {
        shows(&mut terminal, shown);
        shows(&mut terminal, QUESTION);
        terminal.send_line(typed).unwrap();
    }
    shows(&mut terminal, "1 accepted, 1 rejected, 3 pending");
    ends_with_code(&mut terminal, 1);
    assert!(is_new(&snapshots, "a") && !waits(&snapshots, "a"));
    assert!(!is_new(&snapshots, "b") && !waits(&snapshots, "b"));
    for name in ["c", "d", "e"] {
        assert!(!is_new(&snapshots, name) && waits(&snapshots, name), "{name}");
    }
}

#[test]
fn a_review_ends_with_the_input_and_with_ctrl_c() {
    for key in ['d', 'c'] {
        let (folder, snapshots) = with_pending(&["a", "b"]);
        let mut terminal = start(folder.path(), &["review"]);
        shows(&mut terminal, QUESTION);
        terminal.send_line("a").unwrap();
        shows(&mut terminal, QUESTION);
        terminal.send_control(key).unwrap();
        if key == 'd' {
            shows(&mut terminal, "1 accepted, 0 rejected, 1 pending");
            ends_with_code(&mut terminal, 1);
        } else {
            terminal.exp_eof().unwrap();
            terminal.process().wait().unwrap();
        }
        // What was decided is done.
        assert!(is_new(&snapshots, "a") && !is_new(&snapshots, "b") && waits(&snapshots, "b"), "{key}");
    }
}

const SUITE: &str = "\
server: { stdio: mcproof demo tracker }
tests:
  - { name: right, steps: [{ call: echo, with: { message: hi }, expect: { $text: hi } }] }
  - { name: wrong, steps: [{ call: echo, with: { message: hi }, expect: { $text: ho } }] }
";
const WATCHING: &str = "press Enter to run all tests, f to run failed tests, q or Ctrl-C to quit";

#[test]
fn the_keys_of_watch_run_again_and_end() {
    for (last, code) in [(None, 0), (Some('c'), 130)] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("s.mcproof.yaml"), SUITE).unwrap();
        let mut terminal = start(folder.path(), &["test", "--watch"]);
        for (typed, summary) in [
            (None, "1 passed, 1 failed"),
            (Some("r"), "1 passed, 1 failed"),
            (Some("f"), "0 passed, 1 failed"),
            (Some(""), "1 passed, 1 failed"),
        ] {
            if let Some(typed) = typed {
                terminal.send_line(typed).unwrap();
            }
            shows(&mut terminal, summary);
            shows(&mut terminal, WATCHING);
        }
        // What means nothing does nothing.
        terminal.send_line("x").unwrap();
        match last {
            Some(key) => terminal.send_control(key).unwrap(),
            None => assert!(terminal.send_line("q").is_ok()),
        }
        ends_with_code(&mut terminal, code);
    }
}

#[test]
fn ctrl_c_in_the_middle_of_a_watched_run_ends_it_with_its_servers() {
    let folder = tempfile::tempdir().unwrap();
    let server = "sh -c 'echo $$ > pid; exec sleep 1000'";
    let suite = format!("server: {{ stdio: {{ command: {server:?} }} }}\ntests: [{{ name: a, steps: [tools] }}]\n");
    std::fs::write(folder.path().join("s.mcproof.yaml"), suite).unwrap();
    let mut terminal = start(folder.path(), &["test", "--watch", "--era", "legacy"]);
    let pid = loop {
        match std::fs::read_to_string(folder.path().join("pid")).unwrap_or_default().trim().parse::<i32>() {
            Ok(pid) => break pid,
            Err(_) => assert_eq!(terminal.process().status(), Some(WaitStatus::StillAlive)),
        }
    };
    terminal.send_control('c').unwrap();
    shows(&mut terminal, "1 canceled");
    ends_with_code(&mut terminal, 130);
    // On a busy machine the guardian may still be at it: `docs/systems.md` promises three seconds, and this waits for more.
    let is_there = || kill(Pid::from_raw(pid), None).is_ok();
    let begun = Instant::now();
    while is_there() && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!is_there(), "the server still runs");
}

#[test]
fn a_first_suite_shows_which_tool_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/odd.py").display().to_string();
    let words = ["init", "--", "python3", &server, "sound"];
    let mut mcproof = plain(folder.path(), &words);
    mcproof.env("TERM", "xterm").env_remove("NO_COLOR");
    let mut terminal = spawn_command(mcproof, Some(PATIENCE_MILLIS)).unwrap();
    for line in
        ["exploring the server", "\r\u{1b}[2K1/2 echo", "\r\u{1b}[2K2/2 ", "\r\u{1b}[2K", "repeating", "\u{1b}[2K2/2 echo", "next: "]
    {
        shows(&mut terminal, line);
    }
    ends_with_code(&mut terminal, 0);
    // Nothing of it is for a pipe.
    let output = plain(folder.path(), &[&["init", "--force"], &words[1..]].concat()).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && text.contains("exploring the server") && !text.contains("1/2") && !text.contains('\r'), "{text}");
}

#[test]
fn a_trace_is_viewed_while_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let call = |tool: &str, arguments: &[&str]| {
        let words =
            [&["call", tool], arguments, &["--trace", "a.mcptrace", "--", env!("CARGO_BIN_EXE_mcproof"), "demo", "tracker"]].concat();
        plain(folder.path(), &words).output().unwrap();
    };
    call("list_issues", &[]);
    // Whoever tests gives the terminal no size.
    let view = || {
        let mut mcproof = Command::new("sh");
        let script = "stty cols 100 rows 30; exec \"$0\" trace view a.mcptrace";
        mcproof.args(["-c", script, env!("CARGO_BIN_EXE_mcproof")]).current_dir(folder.path());
        spawn_command(mcproof, Some(PATIENCE_MILLIS)).unwrap()
    };
    let mut terminal = view();
    shows(&mut terminal, "list_issues");
    // Another session writes to the same file.
    call("no_such_tool", &[]);
    shows(&mut terminal, "no_such_tool");
    terminal.send("q").unwrap();
    terminal.flush().unwrap();
    ends_with_code(&mut terminal, 0);

    for end in ["\u{3}", "SIGTERM"] {
        let mut terminal = view();
        shows(&mut terminal, "no_such_tool");
        if end == "SIGTERM" {
            terminal.process_mut().signal(Signal::SIGTERM).unwrap();
        } else {
            terminal.send(end).unwrap();
            terminal.flush().unwrap();
        }
        // The screen of before is back, whatever ended it.
        shows(&mut terminal, "\u{1b}[?1049l");
        ends_with_code(&mut terminal, if end == "SIGTERM" { 143 } else { 0 });
    }
    let piped = plain(folder.path(), &["trace", "view", "a.mcptrace"]).output().unwrap();
    let text = String::from_utf8(piped.stderr).unwrap();
    assert!(piped.status.code() == Some(2) && text.contains("mcproof trace show a.mcptrace"), "{text}");
}

/// No signal comes with the end of this one, as of one whose window is closed while the command is not in its foreground.
#[test]
fn a_view_ends_with_its_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = ["call", "list_issues", "--trace", "a.mcptrace", "--", env!("CARGO_BIN_EXE_mcproof"), "demo", "tracker"];
    plain(folder.path(), &recorded).output().unwrap();
    let size = Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    let OpenptyResult { master, slave } = openpty(&size, None).unwrap();
    // The command is not to hold the other end of its own terminal.
    fcntl(&master, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
    let end = || Stdio::from(slave.try_clone().unwrap());
    let mut view = plain(folder.path(), &["trace", "view", "a.mcptrace"]);
    let mut view = view.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    drop(slave);
    let (mut master, mut shown, mut piece) = (File::from(master), Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&shown).contains("list_issues") {
        let count = master.read(&mut piece).unwrap();
        shown.extend_from_slice(&piece[..count]);
    }
    drop(master);
    let began = Instant::now();
    let status = loop {
        if let Some(status) = view.try_wait().unwrap() {
            break status;
        }
        assert!(began.elapsed() < Duration::from_millis(PATIENCE_MILLIS), "it goes on without a terminal");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(status.code(), Some(143));
}

/// A supervisor that ends it has not seen it fail.
#[test]
fn the_inspector_ends_well_when_it_is_asked_to() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let folder = tempfile::tempdir().unwrap();
        let mut mcproof = plain(folder.path(), &["ui", "--no-open", "--listen", "127.0.0.1:0"]);
        let mut running = mcproof.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // Its address is printed once it listens, and for signals as well.
        assert!(BufReader::new(running.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap() > 0);
        kill(Pid::from_raw(running.id().try_into().unwrap()), signal).unwrap();
        assert_eq!(running.wait().unwrap().code(), Some(0), "{signal}");
    }
}
