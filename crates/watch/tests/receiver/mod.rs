//! Services that record what they are sent, on loopback: over HTTP and over SMTP. Each is told how to behave, message by
//! message; when it has been told nothing, it takes what comes.

#![allow(dead_code, reason = "each test program uses some of these")]

use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// What becomes of a message.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Accept,
    /// A status, and more header lines.
    Status(u16, &'static str),
    /// Status 200, with this body.
    Body(&'static str),
    /// It is taken, and the answer is lost.
    Drop,
    /// It is taken, and nothing is ever answered.
    Hang,
}

/// One message as it came.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    /// As the runtime tells the time.
    pub(crate) at: Instant,
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Heard {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    /// Nobody else gets the port when nothing listens any more.
    _port: TcpSocket,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    heard: Mutex<Vec<Heard>>,
    replies: Mutex<VecDeque<Reply>>,
    /// For the next message whose body has this text.
    particular: Mutex<Vec<(String, Reply)>>,
    /// Recipients of mail that came before, as they came.
    recipients: Mutex<BTreeSet<String>>,
}

impl Receiver {
    pub(crate) async fn http() -> Self {
        Self::start(|stream, shared| async move { drop(answer_http(stream, &shared).await) }).await
    }

    pub(crate) async fn smtp() -> Self {
        Self::start(|stream, shared| async move { drop(answer_smtp(stream, &shared).await) }).await
    }

    async fn start<F>(serve: fn(TcpStream, Arc<Shared>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let port = bound((Ipv4Addr::LOCALHOST, 0).into());
        let address = port.local_addr().unwrap();
        let listener = bound(address).listen(1024).unwrap();
        let shared = Arc::<Shared>::default();
        let of_task = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&of_task)));
            }
        });
        Self { address, _port: port, shared, task }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What is done with the next messages.
    pub(crate) fn will(&self, replies: impl IntoIterator<Item = Reply>) {
        self.shared.replies.lock().unwrap().extend(replies);
    }

    /// What is done with the next message whose body has this text, in whichever order they come.
    pub(crate) fn will_if(&self, text: &str, reply: Reply) {
        self.shared.particular.lock().unwrap().push((text.to_owned(), reply));
    }

    /// It takes what comes from now on.
    pub(crate) fn recover(&self) {
        self.shared.replies.lock().unwrap().clear();
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.shared.heard.lock().unwrap().clone()
    }

    /// Nothing listens there any more.
    pub(crate) async fn end(&mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

/// Several of these may have one address, of which one listens.
fn bound(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    socket
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn is_new(&self, recipient: &str) -> bool {
        self.recipients.lock().unwrap().insert(recipient.to_owned())
    }

    fn take(&self, heard: Heard) -> Reply {
        let mut particular = self.particular.lock().unwrap();
        let found = particular.iter().position(|(text, _)| heard.body.contains(text)).map(|found| particular.remove(found).1);
        self.heard.lock().unwrap().push(heard);
        if let Some(reply) = found {
            return reply;
        }
        self.replies.lock().unwrap().pop_front().unwrap_or(Reply::Accept)
    }
}

async fn answer_http(stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut first = String::new();
    if stream.read_line(&mut first).await? == 0 {
        // Whoever connected has died before it said anything.
        return Ok(());
    }
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let reply = shared.take(Heard { at: Instant::now(), path, headers, body: String::from_utf8(body).unwrap() });
    let (status, more, body) = match reply {
        Reply::Accept => (202, "", "ok"),
        Reply::Status(status, more) => (status, more, "ok"),
        Reply::Body(body) => (200, "", body),
        Reply::Drop => return Ok(()),
        Reply::Hang => std::future::pending().await,
    };
    let answer = format!("HTTP/1.1 {status} As Told\r\n{more}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

/// `headers` of a mail are its envelope, the body is the letter with its header.
async fn answer_smtp(stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    stream.write_all(b"220 ready\r\n").await?;
    let mut envelope = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let line = line.trim_end();
        match line.split([' ', ':']).next().unwrap_or_default() {
            "EHLO" => stream.write_all(b"250-here\r\n250-8BITMIME\r\n250 AUTH PLAIN LOGIN\r\n").await?,
            "AUTH" => {
                envelope.push(("auth".to_owned(), line.to_owned()));
                stream.write_all(b"235 welcome\r\n").await?;
            }
            "RCPT" if line.contains("<gone") => stream.write_all(b"550 no such user\r\n").await?,
            "RCPT" if line.contains("<grey") && shared.is_new(line) => {
                stream.write_all(b"451 4.7.1 greylisted\r\n").await?;
            }
            "MAIL" | "RCPT" => {
                envelope.push((line[..4].to_ascii_lowercase(), line.to_owned()));
                stream.write_all(b"250 ok\r\n").await?;
            }
            "DATA" => {
                stream.write_all(b"354 go on\r\n").await?;
                let mut body = String::new();
                loop {
                    let mut line = String::new();
                    stream.read_line(&mut line).await?;
                    if line == ".\r\n" || line.is_empty() {
                        break;
                    }
                    body.push_str(&line);
                }
                match shared.take(Heard { at: Instant::now(), path: String::new(), headers: std::mem::take(&mut envelope), body }) {
                    Reply::Accept | Reply::Body(_) => stream.write_all(b"250 queued\r\n").await?,
                    Reply::Status(code, _) => stream.write_all(format!("{code} as told\r\n").as_bytes()).await?,
                    Reply::Drop => return Ok(()),
                    Reply::Hang => std::future::pending().await,
                }
            }
            "QUIT" => return stream.write_all(b"221 bye\r\n").await,
            _ => stream.write_all(b"502 what\r\n").await?,
        }
    }
}
