//! A client that writes its HTTP itself and sees how a response ends.

use super::pipes::{MCPROOF, mcproof};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// A program that listens, and the URL that it has named.
pub(crate) struct Listening {
    child: Option<Child>,
    pub(crate) url: String,
}

impl Listening {
    /// Starts a program that says where it listens after these words on stderr.
    pub(crate) fn start(mut command: Command, words: &str) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let url = loop {
            let mut line = String::new();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "it does not listen");
            if let Some((_, url)) = line.trim().split_once(words) {
                break url.split_whitespace().next().unwrap().to_owned();
            }
        };
        child.stderr = Some(stderr.into_inner());
        Self { child: Some(child), url }
    }

    /// The shop, which proxies share.
    pub(crate) fn shop(transport: &str) -> Self {
        let path = if transport == "sse" { "sse" } else { "mcp" };
        let mut command = mcproof();
        command.args(["proxy", "--listen", "127.0.0.1:0", "--no-trace"]).arg(format!("http://127.0.0.1:${{port}}/{path}"));
        command.args(["--", MCPROOF, "demo", "shop", "--transport", transport, "--port", "${port}"]);
        Self::start(command, "listening on ")
    }

    /// A proxy in front of it with these faults.
    pub(crate) fn proxied(&self, faults: &[&str]) -> Self {
        let mut command = mcproof();
        command.args(["proxy", "--listen", "127.0.0.1:0", "--no-trace"]).args(faults.iter().flat_map(|fault| ["--fault", fault]));
        command.arg(&self.url);
        Self::start(command, "listening on ")
    }

    /// Ends it; gives what it said on stderr since.
    pub(crate) fn end(mut self) -> String {
        let child = self.child.take().unwrap();
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM);
            let _ = child.wait();
        }
    }
}

/// A response as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    /// 0 if there was none.
    pub(crate) status: u16,
    headers: String,
    pub(crate) body: String,
    /// It came to its end.
    pub(crate) is_whole: bool,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let found = |line: &str| {
            line.split_once(':').filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
        };
        self.headers.lines().find_map(found)
    }

    fn read(stream: TcpStream) -> Self {
        let mut reader = BufReader::new(stream);
        let mut headers = String::new();
        while reader.read_line(&mut headers).is_ok_and(|count| count > 0) && !headers.ends_with("\r\n\r\n") {}
        let status = headers.split_whitespace().nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        let mut answer = Self { status, headers, body: String::new(), is_whole: false };
        let mut body = Vec::new();
        if answer.header("transfer-encoding").is_some() {
            loop {
                let mut size = String::new();
                if reader.read_line(&mut size).unwrap_or_default() == 0 {
                    break;
                }
                let Ok(size) = usize::from_str_radix(size.trim(), 16) else { break };
                let mut chunk = vec![0; size + 2];
                if reader.read_exact(&mut chunk).is_err() {
                    break;
                }
                if size == 0 {
                    answer.is_whole = true;
                    break;
                }
                body.extend_from_slice(&chunk[..size]);
            }
        } else if let Some(length) = answer.header("content-length").and_then(|length| length.parse().ok()) {
            body = vec![0; length];
            answer.is_whole = reader.read_exact(&mut body).is_ok();
        }
        answer.body = String::from_utf8_lossy(&body).into_owned();
        answer
    }
}

fn send(url: &str, method: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut request = format!("{method} /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    if method == "POST" {
        request += &format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    }
    stream.write_all(format!("{request}\r\n{body}").as_bytes()).unwrap();
    stream
}

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#;
const READY: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A session over Streamable HTTP.
pub(crate) struct Connection {
    url: String,
    session: String,
}

impl Connection {
    pub(crate) fn open(url: &str) -> Self {
        let greeted = Answer::read(send(url, "POST", &[("accept", "application/json, text/event-stream")], HELLO));
        assert_eq!(greeted.status, 200, "{greeted:?}");
        let client = Self { url: url.to_owned(), session: greeted.header("mcp-session-id").unwrap_or_default() };
        assert_eq!(client.post(READY, &[]).status, 202);
        client
    }

    pub(crate) fn post(&self, body: &str, headers: &[(&str, &str)]) -> Answer {
        self.send("POST", body, headers)
    }

    /// The stream of the server, to its end.
    pub(crate) fn get(&self) -> Answer {
        self.send("GET", "", &[])
    }

    fn send(&self, method: &str, body: &str, more: &[(&str, &str)]) -> Answer {
        let accepts = if method == "GET" { "text/event-stream" } else { "application/json, text/event-stream" };
        let mut headers = vec![("accept", accepts), ("mcp-protocol-version", "2025-11-25")];
        if !self.session.is_empty() {
            headers.push(("mcp-session-id", &self.session));
        }
        headers.extend(more);
        Answer::read(send(&self.url, method, &headers, body))
    }
}

/// A call over HTTP+SSE: the status of its POST, and how many responses to it come before that to the ping after it.
pub(crate) fn over_sse(url: &str, call: &str) -> (u16, usize) {
    let mut stream = BufReader::new(send(url, "GET", &[("accept", "text/event-stream")], ""));
    let mut data = move || loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream ended");
        if let Some(data) = line.trim().strip_prefix("data:") {
            return data.trim().to_owned();
        }
    };
    let endpoint = data();
    let base = &url[..url.rfind('/').unwrap()];
    let endpoint = if endpoint.starts_with("http") { endpoint } else { format!("{base}{endpoint}") };
    let post = |body: &str| Answer::read(send(&endpoint, "POST", &[], body)).status;
    post(HELLO);
    assert!(data().contains("serverInfo"));
    post(READY);
    let status = post(&format!(r#"{{"jsonrpc":"2.0","id":2,{call}}}"#));
    let mut count = 0;
    if status == 202 {
        assert!(data().contains("\"id\":2"));
        count = 1;
    }
    post(r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#);
    while !data().contains("\"id\":3") {
        count += 1;
    }
    (status, count)
}
