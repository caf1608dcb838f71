//! Servers, proxies and mocks that run until they are dropped, and where they listen.

use super::mcproof;
use super::peers::Start;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to listen on a busy machine.
const STARTUP: Duration = Duration::from_secs(60);

/// A program that listens.
pub(crate) struct Listening {
    child: Child,
    pub(crate) url: String,
    said: Arc<Mutex<String>>,
}

impl Listening {
    /// A program that says on stderr where it listens, as the proxy and the mock do.
    pub(crate) fn announced(command: &mut Command) -> Result<Self, String> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut heard = String::new();
        let url = loop {
            let mut line = String::new();
            if stderr.read_line(&mut line).unwrap() == 0 {
                let _ = child.wait();
                return Err(format!("it does not listen: {heard}"));
            }
            heard += &line;
            if let Some((_, url)) = line.trim_end().split_once("listening on ") {
                break url.to_owned();
            }
        };
        let said = Arc::new(Mutex::new(heard));
        let more = Arc::clone(&said);
        thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text);
            *more.lock().unwrap() += &String::from_utf8_lossy(&text);
        });
        Ok(Self { child, url, said })
    }

    /// A server of others, on a free port.
    pub(crate) fn server(start: &Start, folder: &Path) -> Result<Self, String> {
        let port = free_port();
        let filled = |text: &String| text.replace("${port}", &port);
        let mut command = Command::new(&start.command[0]);
        command.args(start.command[1..].iter().map(filled)).envs(start.env.iter().map(|(name, value)| (name, filled(value))));
        let mut child = command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + STARTUP;
        while TcpStream::connect(format!("127.0.0.1:{port}")).is_err() {
            if Instant::now() > deadline || child.try_wait().unwrap().is_some() {
                let _ = child.kill();
                return Err("the server does not listen".into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(Self { child, url: filled(start.url.as_ref().unwrap()), said: Arc::default() })
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Ends it as Ctrl-C or a supervisor does; gives the exit code and what it said.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let _ = kill(Pid::from_raw(self.pid()), Signal::SIGTERM);
        let code = self.child.wait().unwrap().code();
        thread::sleep(Duration::from_millis(20));
        (code, self.said.lock().unwrap().clone())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.pid()), Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

pub(crate) fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

/// A proxy that listens before a server of others, which it starts.
pub(crate) fn proxy(start: &Start, trace: Option<&Path>, folder: &Path) -> Result<Listening, String> {
    let mut command = Command::new(mcproof());
    command.current_dir(folder).args(["proxy", "--listen", "127.0.0.1:0"]);
    match trace {
        Some(trace) => command.arg("--trace").arg(trace),
        None => command.arg("--no-trace"),
    };
    command.args(start.env.iter().flat_map(|(name, value)| ["-e".to_owned(), format!("{name}={value}")]));
    command.args(&start.url);
    if !start.command.is_empty() {
        command.arg("--").args(&start.command);
    }
    Listening::announced(&mut command)
}
