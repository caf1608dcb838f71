//! A client over the pipes of a process, which says and reads lines.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

pub(crate) const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn mcproof() -> Command {
    Command::new(MCPROOF)
}

pub(crate) fn ended_by_signal(status: &ExitStatus) -> bool {
    status.signal().is_some()
}

pub(crate) struct Pipes {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Pipes {
    /// Starts a server and does the handshake with it.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while stdout.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                let text = String::from_utf8_lossy(&std::mem::take(&mut line)).into_owned();
                if sender.send(text).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        let mut pipes = Self { child, stdin, lines, seen: Vec::new() };
        let hello =
            r#""method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}"#;
        pipes.ask(1, hello);
        assert!(pipes.next().contains("serverInfo"));
        pipes.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        pipes.seen.clear();
        pipes
    }

    pub(crate) fn ask(&mut self, id: i64, request: &str) {
        self.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},{request}}}"#));
    }

    fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        // A server that is gone already is what some tests are about.
        let _ = writeln!(stdin, "{line}").and_then(|()| stdin.flush());
    }

    /// The next line that nobody has waited for.
    pub(crate) fn next(&mut self) -> String {
        let line = self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("nothing comes after {:#?}", self.seen));
        let line = line.trim_end_matches('\n').to_owned();
        self.seen.push(line.clone());
        line
    }

    pub(crate) fn wait_for(&mut self, count: usize) {
        while self.seen.len() < count {
            self.next();
        }
    }

    /// How many lines have come.
    pub(crate) fn received(&mut self) -> usize {
        while let Ok(line) = self.lines.try_recv() {
            self.seen.push(line.trim_end_matches('\n').to_owned());
        }
        self.seen.len()
    }

    /// Closes stdin; gives all lines since the handshake, and stderr.
    pub(crate) fn end(mut self) -> (Vec<String>, String) {
        drop(self.stdin.take());
        let said = self.wait();
        self.received();
        (self.seen, said)
    }

    /// Waits until the server closes its output; gives what came, and stderr.
    pub(crate) fn until_closed(mut self) -> (String, String) {
        let mut rest = String::new();
        while let Ok(piece) = self.lines.recv_timeout(PATIENCE) {
            rest += &piece;
        }
        drop(self.stdin.take());
        (rest, self.wait())
    }

    fn wait(&mut self) -> String {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        self.child.wait().unwrap();
        // What was written before the end is read to its end.
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.seen.push(line.trim_end_matches('\n').to_owned());
        }
        said
    }
}
