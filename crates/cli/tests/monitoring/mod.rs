//! A monitor that runs as a process of its own, a server that works or not, and services that keep what they are sent.

#![allow(dead_code, reason = "each test program uses some of these")]

use super::heard;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use tempfile::TempDir;

pub(crate) const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");

pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(MCPROOF);
    command.env("XDG_STATE_HOME", "/nowhere").env("NO_PROXY", "*").env("WATCH_KEY", "from-the-environment");
    command.args(arguments).current_dir(folder);
    command
}

pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Ran {
    let output = command(folder, arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

pub(crate) fn folder_with(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// A service that answers each message with a status, and keeps what it was sent.
pub(crate) struct Service {
    pub(crate) url: String,
    pub(crate) heard: Arc<Mutex<Vec<Value>>>,
}

impl Service {
    pub(crate) fn answering(status: u16) -> Self {
        Self::saying(format!("{status} As Told"))
    }

    /// The status, and headers if there are any.
    pub(crate) fn saying(head: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let heard = Arc::<Mutex<Vec<Value>>>::default();
        let of_thread = Arc::clone(&heard);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                if let Some(message) = heard::message(&mut stream) {
                    of_thread.lock().unwrap().push(message);
                    let answer = format!("HTTP/1.1 {head}\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
                    stream.get_mut().write_all(answer.as_bytes()).unwrap();
                }
            }
        });
        Self { url, heard }
    }

    pub(crate) fn kinds(&self) -> Vec<String> {
        self.heard.lock().unwrap().iter().map(|message| message["kind"].as_str().unwrap().to_owned()).collect()
    }
}

/// A monitor that runs, and what it says.
pub(crate) struct Monitor {
    pub(crate) process: Child,
    pub(crate) stderr: BufReader<ChildStderr>,
}

impl Monitor {
    pub(crate) fn start(folder: &Path) -> Self {
        Self::spawn(&mut command(folder, &["watch", "watch.yaml", "--json"]))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        Self { process, stderr }
    }

    /// Reads until it says this.
    pub(crate) fn says(&mut self, event: &str) -> Value {
        let mut heard = String::new();
        loop {
            let mut line = String::new();
            assert!(self.stderr.read_line(&mut line).unwrap() > 0, "it ended without saying `{event}`:\n{heard}");
            heard += &line;
            let said: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            if said["event"] == event {
                return said;
            }
        }
    }

    /// In any order; what it says with the first of them.
    pub(crate) fn says_both(&mut self, event: &str, other: &str) -> Value {
        let (mut said, mut said_other) = (None, false);
        loop {
            let mut line = String::new();
            assert!(self.stderr.read_line(&mut line).unwrap() > 0, "it ended without saying `{event}` and `{other}`");
            let line: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            said_other |= line["event"] == other;
            if line["event"] == event {
                said = Some(line);
            }
            if let (Some(said), true) = (&said, said_other) {
                return said.clone();
            }
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.process.id().to_string()]).status().unwrap().success());
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits for a fact.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = std::time::Instant::now();
    while !is_so() {
        assert!(begin.elapsed().as_secs() < 120, "{what} never came");
        thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// The first line of what the dashboard answers, and the rest.
pub(crate) fn get(at: &str, path: &str) -> (String, String) {
    let mut page = TcpStream::connect(at.trim_start_matches("http://")).unwrap();
    page.write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    page.read_to_string(&mut answer).unwrap();
    let (first, rest) = answer.split_once("\r\n").unwrap();
    (first.to_owned(), rest.to_owned())
}

/// A response to JSON that is sent: its status, and its body.
pub(crate) fn send(at: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(at.trim_start_matches("http://")).unwrap();
    let head = "host: localhost\r\nconnection: close\r\ncontent-type: application/json";
    let request = format!("{method} {path} HTTP/1.1\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap_or_default())
}

/// A server that starts as long as there is no file `broken` in the folder.
pub(crate) fn fragile(folder: &Path) -> String {
    let script = format!("test -e '{}' && exit 1\nexec '{MCPROOF}' demo shop\n", folder.join("broken").display());
    std::fs::write(folder.join("shop.sh"), script).unwrap();
    format!("stdio: 'sh {}'", folder.join("shop.sh").display())
}
