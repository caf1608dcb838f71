//! A driver for tests: starts `mcproof drive`, sends lines and reads lines. Knows JSON-RPC, no method.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");

pub(crate) struct Driver {
    pub(crate) process: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next: u64,
    /// Came while something else was waited for.
    kept: VecDeque<Value>,
}

impl Driver {
    pub(crate) fn start() -> Self {
        Self::run(Command::new(MCPROOF).arg("drive"))
    }

    /// Of a shell, whose death closes no pipe.
    pub(crate) fn start_below_a_shell() -> Self {
        Self::run(Command::new("sh").args(["-c", "\"$0\" drive; true", MCPROOF]))
    }

    fn run(command: &mut Command) -> Self {
        let mut process = command.env("NO_PROXY", "*").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (stdin, stdout) = (process.stdin.take(), BufReader::new(process.stdout.take().unwrap()));
        Self { process, stdin, stdout, next: 0, kept: VecDeque::new() }
    }

    pub(crate) fn write(&mut self, line: &str) {
        self.write_bytes(format!("{line}\n").as_bytes());
    }

    /// A piece of a line, or several lines.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Sends a request and gives its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        id
    }

    pub(crate) fn tell(&mut self, method: &str, params: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// The next line.
    pub(crate) fn line(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.stdout.read_line(&mut line).unwrap() > 0, "drive has ended");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The first message that fits; others are kept for later.
    pub(crate) fn find(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(position) = self.kept.iter().position(&fits) {
            return self.kept.remove(position).unwrap();
        }
        loop {
            let message = self.line();
            if fits(&message) {
                return message;
            }
            self.kept.push_back(message);
        }
    }

    /// The answer to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.find(|message| message["id"] == id && message.get("method").is_none())
    }

    /// Something that is told unasked.
    pub(crate) fn told(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method)
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// The result of a request that has one.
    pub(crate) fn result(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer:#}");
        answer["result"].clone()
    }

    /// The error of a request that has none.
    pub(crate) fn error(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params);
        answer.get("error").unwrap_or_else(|| panic!("{method}: {answer:#}")).clone()
    }

    /// Closes stdin, and waits for the end.
    pub(crate) fn end(mut self) -> Option<i32> {
        self.stdin.take();
        self.process.wait().unwrap().code()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
