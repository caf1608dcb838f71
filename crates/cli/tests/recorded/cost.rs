//! What the proxy costs: the time that it adds to a round trip, in pairs with and without it, and its memory after many frames.

use super::servers::Folder;
use super::started::{Listening, proxy};
use super::{mcproof, peers::Start};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

/// Round trips over one transport, in microseconds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Delay {
    pub(crate) transport: String,
    pub(crate) round_trips: usize,
    /// Without and with the proxy.
    pub(crate) p50: [f64; 2],
    pub(crate) p99: [f64; 2],
    /// Processes that wanted to run, on average over a minute, of all of the machine.
    pub(crate) load: f64,
}

/// The highest memory of the proxy, in KiB, after so many frames.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Memory {
    pub(crate) transport: String,
    pub(crate) frames: u64,
    pub(crate) peak: u64,
}

const BLOCKS: usize = 60;
const IN_A_BLOCK: usize = 100;
const PING: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"check_inventory","arguments":{"product_id":"PROD-123"}}}"#;
const PONG: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"available\":10}"}],"structuredContent":{"available":10}}}"#;
/// Lines that are under way at the same time: as many as fit into pipes.
const FRAMES: [u64; 2] = [100_000, 1_000_000];

/// Something that sends a request and waits for the response.
trait RoundTrip {
    fn once(&mut self);
}

pub(crate) fn delays() -> Vec<Delay> {
    let folder = Folder::of("delays").0;
    fs::create_dir_all(&folder).unwrap();
    let trace = folder.join("delay.mcptrace");
    // The proxy keeps a recording that exists.
    let _ = fs::remove_file(&trace);
    let trace = trace.to_str().unwrap();
    let mut plain = Pipes::start(&["cat"]);
    let mut relayed = Pipes::start(&[mcproof(), "proxy", "--trace", trace, "--", "cat"]);
    let stdio = paired("stdio", [&mut plain, &mut relayed]);
    let server = answering();
    let between = before(&server, Some(Path::new(trace)), &folder);
    let mut plain = Connection::to(&server);
    let mut relayed = Connection::to(&between.url);
    vec![stdio, paired("Streamable HTTP", [&mut plain, &mut relayed])]
}

/// One after the other in blocks, so that both have the same machine.
fn paired<T: RoundTrip>(transport: &str, mut both: [&mut T; 2]) -> Delay {
    let mut times: [Vec<f64>; 2] = Default::default();
    for trip in &mut both {
        (0..IN_A_BLOCK).for_each(|_| trip.once());
    }
    for block in 0..BLOCKS {
        for which in if block % 2 == 0 { [0, 1] } else { [1, 0] } {
            for _ in 0..IN_A_BLOCK {
                let began = Instant::now();
                both[which].once();
                times[which].push(began.elapsed().as_secs_f64() * 1e6);
            }
        }
    }
    times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    let at = |share: f64| [0, 1].map(|which: usize| times[which][(times[which].len() as f64 * share) as usize]);
    let load = fs::read_to_string("/proc/loadavg").unwrap().split(' ').next().unwrap().parse().unwrap();
    Delay { transport: transport.to_owned(), round_trips: times[0].len(), p50: at(0.5), p99: at(0.99), load }
}

pub(crate) fn memory() -> Vec<Memory> {
    let folder = Folder::of("memory").0;
    fs::create_dir_all(&folder).unwrap();
    let trace = folder.join("memory.mcptrace");
    let mut all = Vec::new();
    for frames in FRAMES {
        let mut pipes = Pipes::start(&[mcproof(), "proxy", "--trace", trace.to_str().unwrap(), "--", "cat"]);
        // Each line is a frame on its way to the server, and one on its way back.
        pipes.flood(frames / 2);
        all.push(Memory { transport: "stdio".into(), frames, peak: peak(pipes.child.id().cast_signed()) });
    }
    let server = answering();
    for frames in FRAMES {
        let between = before(&server, Some(&trace), &folder);
        let mut connection = Connection::to(&between.url);
        // A request, the head of the response, its body, and its end.
        (0..frames / 4).for_each(|_| connection.once());
        all.push(Memory { transport: "Streamable HTTP".into(), frames, peak: peak(between.pid()) });
    }
    // Each measurement has a recording of its own.
    let _ = fs::remove_dir_all(&folder);
    all
}

fn peak(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok()).unwrap()
}

fn before(url: &str, trace: Option<&Path>, folder: &Path) -> Listening {
    proxy(&Start { command: Vec::new(), env: Vec::new(), cwd: None, url: Some(url.to_owned()) }, trace, folder).unwrap()
}

struct Pipes {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Pipes {
    fn start(words: &[&str]) -> Self {
        let mut command = Command::new(words[0]);
        let mut child = command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout }
    }

    /// Sends lines as fast as they are taken, and reads them again.
    fn flood(&mut self, lines: u64) {
        let mut stdin = self.child.stdin.take().unwrap();
        let writer = thread::spawn(move || {
            (0..lines).for_each(|_| writeln!(stdin, "{PING}").unwrap());
            stdin
        });
        let mut line = Vec::new();
        for _ in 0..lines {
            line.clear();
            assert!(self.stdout.read_until(b'\n', &mut line).unwrap() > 0);
        }
        self.child.stdin = Some(writer.join().unwrap());
    }
}

impl RoundTrip for Pipes {
    fn once(&mut self) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(PING.as_bytes()).unwrap();
        stdin.write_all(b"\n").unwrap();
        let mut line = Vec::new();
        assert!(self.stdout.read_until(b'\n', &mut line).unwrap() > 0);
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// A client that keeps its connection.
struct Connection {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Connection {
    fn to(url: &str) -> Self {
        let authority = url.trim_start_matches("http://").split('/').next().unwrap();
        let stream = TcpStream::connect(authority).unwrap();
        stream.set_nodelay(true).unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {authority}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             content-length: {}\r\n\r\n",
            PING.len()
        );
        Self { stream: BufReader::new(stream), head }
    }
}

impl RoundTrip for Connection {
    fn once(&mut self) {
        self.stream.get_mut().write_all((self.head.clone() + PING).as_bytes()).unwrap();
        let length = length_of_body(&mut self.stream).unwrap();
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        assert_eq!(body, PONG.as_bytes());
    }
}

/// Reads a head; `None` at the end.
fn length_of_body(stream: &mut impl BufRead) -> Option<usize> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            return Some(length);
        }
        length = line.strip_prefix("content-length:").map_or(length, |value| value.trim().parse().unwrap());
    }
}

/// A server that answers everything the same, at once; it ends with this process.
fn answering() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            stream.set_nodelay(true).unwrap();
            thread::spawn(move || {
                let mut stream = BufReader::new(stream);
                let response = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{PONG}", PONG.len());
                while let Some(length) = length_of_body(&mut stream) {
                    let mut body = vec![0; length];
                    if stream.read_exact(&mut body).and_then(|()| stream.get_mut().write_all(response.as_bytes())).is_err() {
                        return;
                    }
                }
            });
        }
    });
    url
}
