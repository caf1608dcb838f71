//! Kills the client, the proxy or the server at random moments, over stdio, over HTTP and over both bridges between them, and counts the
//! processes that are left.

use super::mcproof;
use super::servers::Folder;
use super::started::Listening;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What came of all rounds.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Kills {
    pub(crate) rounds: usize,
    /// By who was killed, over what, and by which signal.
    pub(crate) done: BTreeMap<String, usize>,
    /// Processes that were left.
    pub(crate) left: usize,
    /// The longest time until the last process was gone.
    pub(crate) slowest: Duration,
    pub(crate) wrong: Vec<String>,
}

/// What stands between the client and the server.
const FORMS: [&str; 4] = ["stdio", "http", "stdio to http", "http to stdio"];
const VICTIMS: [&str; 3] = ["client", "proxy", "server"];
const SIGNALS: [Signal; 3] = [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGINT];
/// From the start of the client; a whole conversation is under way by its end.
const LATEST: u64 = 900;
/// A server is given 2 s to end by itself, 2 s after SIGTERM, and the machine is busy.
const PATIENCE: Duration = Duration::from_secs(20);
/// Inherited by all processes of a round.
const MARK: &str = "MCPROOF_TEST_ROUND";

/// Every second server stands behind a shell that ignores whatever asks it to end, and so does a child of that.
const STUBBORN: &str = "trap '' TERM INT HUP; sleep 1000 & \"$@\"; while :; do sleep 1; done";

pub(crate) fn run(rounds: usize, seed: u64) -> Kills {
    let mut kills = Kills::default();
    let mut random = Random(seed);
    for round in 0..rounds {
        let form = FORMS[round % FORMS.len()];
        let victim = VICTIMS[(round / FORMS.len()) % VICTIMS.len()];
        let signal = SIGNALS[(round / (FORMS.len() * VICTIMS.len())) % SIGNALS.len()];
        let is_stubborn = (round / 2) % 2 == 1;
        let after = Duration::from_millis(random.below(LATEST));
        let label =
            format!("{victim} over {form} by {signal} after {} ms{}", after.as_millis(), if is_stubborn { ", stubborn" } else { "" });
        let ended = Round { form, victim, signal, is_stubborn, after, mark: format!("{}-{round}", std::process::id()) }.run();
        kills.rounds += 1;
        *kills.done.entry(format!("{victim}, {form}, {signal}")).or_default() += 1;
        match ended {
            Ok(took) => kills.slowest = kills.slowest.max(took),
            Err(left) => {
                kills.left += left.len().max(1);
                kills.wrong.push(format!("round {round}: {label}: {}", left.join("; ")));
            }
        }
    }
    kills
}

/// A command that is interrupted by SIGINT, also where this process, started in the background by a script, is not.
fn interruptible(program: &str) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", program]);
    command
}

struct Round {
    form: &'static str,
    victim: &'static str,
    signal: Signal,
    is_stubborn: bool,
    after: Duration,
    mark: String,
}

impl Round {
    fn server(&self, flags: &[&str]) -> Vec<String> {
        let plain: Vec<String> = [&[mcproof(), "demo", "shop"], flags].concat().into_iter().map(str::to_owned).collect();
        let stubborn = ["sh", "-c", STUBBORN, "stubborn"].map(str::to_owned);
        if self.is_stubborn { [&stubborn[..], &plain].concat() } else { plain }
    }

    /// How long it took until everything was gone, or what was still there.
    fn run(&self) -> Result<Duration, Vec<String>> {
        let folder = Folder::of("kills").0;
        fs::create_dir_all(&folder).unwrap();
        let over_http = self.server(&["--http", "--port", "${port}"]);
        let url = "http://127.0.0.1:${port}/mcp".to_owned();
        let proxy =
            |flags: &[&str]| [&[mcproof(), "proxy", "--no-trace"], flags].concat().into_iter().map(str::to_owned).collect::<Vec<_>>();
        let (listening, server, behind) = match self.form {
            "stdio" => (None, self.server(&[]), [proxy(&["--"]), self.server(&[])].concat()),
            "stdio to http" => (None, over_http.clone(), [proxy(&[&url, "--"]), over_http].concat()),
            form => {
                let (flags, server) = match form {
                    "http" => (vec!["--listen", "127.0.0.1:0", &url, "--"], over_http),
                    _ => (vec!["--listen", "127.0.0.1:0", "--"], self.server(&[])),
                };
                let words = [proxy(&flags), server.clone()].concat();
                let mut command = interruptible(&words[0]);
                command.args(&words[1..]).current_dir(&folder).env(MARK, &self.mark);
                let listening = Listening::announced(&mut command).map_err(|why| vec![why])?;
                let url = listening.url.clone();
                (Some(listening), server, vec![url])
            }
        };
        let mut client = interruptible("python3");
        client.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorded/talker.py")).args(&behind);
        client.current_dir(&folder).env(MARK, &self.mark).stdout(Stdio::null()).stderr(Stdio::null());
        let mut client = client.spawn().unwrap();
        thread::sleep(self.after);
        let proxy = listening.as_ref().map(Listening::pid).or_else(|| children_of(client.id()).first().copied());
        let victim = match self.victim {
            "client" => Some(client.id().cast_signed()),
            "proxy" => proxy,
            _ => marked(&self.mark).into_iter().find(|(_, words)| is_end_of(&server, words)).map(|(pid, _)| pid),
        };
        // It may not have been started yet, or be over: then the end of the client is what there is to see.
        if let Some(pid) = victim {
            let _ = kill(Pid::from_raw(pid), self.signal);
        }
        if victim.is_none() {
            let _ = client.kill();
        }
        let began = Instant::now();
        let ended = self.settle(&mut client, listening, began);
        let _ = client.kill();
        let _ = client.wait();
        let ended = ended.and_then(|took| self.none_left(None, began).map(|more| took.max(more)));
        for (pid, _) in marked(&self.mark) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        ended
    }

    /// A proxy that listens outlives its clients and its server, and is ended as a person would. A shell that outlives its server keeps the pipes
    /// open, so that its client ends by itself. Every other has to end because of the kill.
    fn settle(&self, client: &mut Child, listening: Option<Listening>, began: Instant) -> Result<Duration, Vec<String>> {
        match listening {
            Some(listening) => {
                if self.victim != "proxy" {
                    thread::sleep(Duration::from_millis(200));
                }
                let _ = client.kill();
                let _ = client.wait();
                drop(listening);
                self.none_left(None, began)
            }
            None if self.victim == "client" || (self.victim == "server" && self.is_stubborn) => {
                if self.victim == "server" {
                    thread::sleep(Duration::from_millis(200));
                    let _ = client.kill();
                }
                wait_for(client);
                self.none_left(None, began)
            }
            None => self.none_left(Some(client.id()), began),
        }
    }

    fn none_left(&self, but: Option<u32>, began: Instant) -> Result<Duration, Vec<String>> {
        loop {
            let mut left = marked(&self.mark);
            left.retain(|(pid, _)| but.is_none_or(|but| but.cast_signed() != *pid));
            if left.is_empty() {
                return Ok(began.elapsed());
            }
            if began.elapsed() > PATIENCE {
                return Err(left.into_iter().map(|(pid, words)| format!("{pid} {}", words.join(" "))).collect());
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// What was killed is a zombie until somebody waits for it.
fn wait_for(child: &mut Child) {
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() && began.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether this is the server itself, and not the shell before it.
fn is_end_of(server: &[String], words: &[String]) -> bool {
    let plain = server.iter().rposition(|word| word == mcproof()).map_or(server, |place| &server[place..]);
    words.len() == plain.len() && words.iter().zip(plain).all(|(word, known)| word == known || known.contains("${port}"))
}

/// Processes that inherited the mark, with their command lines; zombies have none.
fn marked(mark: &str) -> Vec<(i32, Vec<String>)> {
    let entry = format!("{MARK}={mark}");
    let mut found = Vec::new();
    for folder in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = folder.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let environment = fs::read(folder.path().join("environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes()) {
            let line = fs::read(folder.path().join("cmdline")).unwrap_or_default();
            let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
            found.push((pid, words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()));
        }
    }
    found
}

fn children_of(pid: u32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Numbers that are the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}
