//! Records a server over stdio.

use crate::Record;
use crate::process::{Cause, end, opened, patience, spawn};
use crate::script::{self, MODERN, Step};
use mcproof_protocol::Era;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// After a few missing responses there is no further wait.
const CHANCES: u32 = 2;

pub(crate) fn look(name: &str, era: Era) -> Record {
    let mut record = Vec::new();
    if era == Era::Legacy {
        for step in script::beginnings() {
            record.extend(converse(name, &[step], era));
        }
    }
    let version = if era == Era::Modern { MODERN } else { "2025-11-25" };
    let mut pipe = Pipe::open(name, era);
    pipe.run(&script::main(version));
    pipe.send_in_two(&script::wide_call(version));
    let held = opened(&pipe.child);
    let (said, ended) = pipe.close();
    record.extend(said);
    record.push(ended);
    record.push(held);
    let mut pipe = Pipe::open(name, era);
    // It listens to signals otherwise only from when it has started.
    pipe.run(&script::main(version)[..1]);
    let Pipe { child, input, patience, .. } = pipe;
    record.push(end(child, Cause::Signal, patience));
    drop(input);
    record
}

/// All messages of a server in a conversation.
pub(crate) fn converse(name: &str, steps: &[Step], era: Era) -> Vec<String> {
    let mut pipe = Pipe::open(name, era);
    pipe.run(steps);
    pipe.close().0
}

struct Pipe {
    child: Child,
    input: ChildStdin,
    lines: Receiver<Vec<u8>>,
    said: Vec<Vec<u8>>,
    chances: u32,
    patience: Duration,
}

impl Pipe {
    fn open(name: &str, era: Era) -> Self {
        let mut child = spawn(name, &["--stdio"], era);
        let (sender, lines) = channel();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            let mut line = Vec::new();
            while output.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) && sender.send(std::mem::take(&mut line)).is_ok() {}
        });
        Self { input: child.stdin.take().unwrap(), child, lines, said: Vec::new(), chances: CHANCES, patience: patience(name) }
    }

    fn run(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Send(message) => {
                    self.send(message.to_string().as_bytes());
                    self.wait_for(&[message]);
                }
                Step::Raw(bytes) => self.send(bytes),
                Step::Together(messages) => {
                    for message in messages {
                        self.send(message.to_string().as_bytes());
                    }
                    self.wait_for(&messages.iter().collect::<Vec<_>>());
                }
                Step::Cancelled(message) => {
                    self.send(message.to_string().as_bytes());
                    self.wait_until(|lines| lines.iter().any(|line| line.contains("\"progress\":1")));
                    let params = json!({ "requestId": message["id"] });
                    self.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string().as_bytes());
                    // As long as the call would have taken; whether an answer comes is what is looked at.
                    self.rest(Duration::from_millis(800));
                }
                Step::Listen(message) => {
                    self.send(message.to_string().as_bytes());
                    self.wait_until(|lines| lines.iter().any(|line| line.contains("acknowledged")));
                }
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        // Whether the server is still there is seen at its end.
        let _ = self.input.write_all(&[bytes, b"\n"].concat());
    }

    /// A request in two writes, the first of which ends within a character.
    fn send_in_two(&mut self, request: &Value) {
        let line = format!("{request}\n").into_bytes();
        let (first, second) = line.split_at(line.iter().position(|byte| !byte.is_ascii()).unwrap() + 1);
        // As above.
        let _ = self.input.write_all(first);
        thread::sleep(Duration::from_millis(50));
        let _ = self.input.write_all(second);
        self.wait_for(&[request]);
    }

    fn wait_for(&mut self, requests: &[&Value]) {
        let wanted: Vec<Value> = requests.iter().filter_map(|request| request.get("id").cloned()).collect();
        let from = self.said.len();
        self.wait_until_since(from, |lines| {
            let answered = |id: &Value| {
                lines
                    .iter()
                    .any(|line| serde_json::from_str::<Value>(line).is_ok_and(|said| said["id"] == *id && said.get("method").is_none()))
            };
            wanted.iter().all(answered)
        });
    }

    fn wait_until(&mut self, holds: impl Fn(&[String]) -> bool) {
        self.wait_until_since(self.said.len(), holds);
    }

    fn wait_until_since(&mut self, from: usize, holds: impl Fn(&[String]) -> bool) {
        let begin = Instant::now();
        let mut lines: Vec<String> = Vec::new();
        while !holds(&lines) && self.chances > 0 {
            match self.lines.recv_timeout(self.patience.saturating_sub(begin.elapsed())) {
                Ok(line) => self.said.push(line),
                Err(RecvTimeoutError::Timeout) => {
                    self.chances -= 1;
                    return;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
            lines = self.said[from..].iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        }
    }

    fn rest(&mut self, time: Duration) {
        let begin = Instant::now();
        while let Ok(line) = self.lines.recv_timeout(time.saturating_sub(begin.elapsed())) {
            self.said.push(line);
        }
    }

    /// All lines, and how the process ended. Calls at once may be answered in any order.
    fn close(mut self) -> (Vec<String>, String) {
        drop(self.input);
        let ended = end(self.child, Cause::Input, self.patience);
        self.said.extend(self.lines.iter());
        let line = |line: &Vec<u8>| String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into_owned();
        let mut lines: Vec<String> = self.said.iter().map(line).filter(|line| !script::is_chance(line)).collect();
        lines.sort_unstable();
        (lines, ended)
    }
}
