//! A stdio server with several requests under way: what it says goes to whom it is for. Owns the process.

use super::Start;
use crate::proxy::stdio::command_of;
use mcproof_client::transport::{Line, LineReader};
use mcproof_client::{Spawned, Tap};
use mcproof_record::{Direction, FrameBody};
use mcproof_system::{ProcessSignal, signals};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

/// Messages that wait until a client reads them, and lines that wait for the server.
const QUEUE: usize = 256;
/// Messages that wait for a stream on which they can go.
const MOST_WAITING: usize = 1000;
/// Requests that are under way at the same time.
const MOST_OPEN: usize = 1000;
/// Tools that are remembered.
const MOST_TOOLS: usize = 10_000;
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Whether requests keep the ids of their client, or get ones that no other client has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ids {
    Kept,
    Ours,
}

pub(super) struct StdioServer {
    ids: Ids,
    routes: Mutex<Routes>,
    lines: mpsc::Sender<Vec<u8>>,
    /// Taken by the process.
    unsent: Mutex<Option<mpsc::Receiver<Vec<u8>>>>,
    end: watch::Sender<bool>,
    /// Why it has ended.
    ended: watch::Sender<Option<String>>,
}

#[derive(Default)]
struct Routes {
    begun: u64,
    /// When the client was last heard of.
    heard: Option<Instant>,
    /// By the id that the server knows.
    open: HashMap<String, Route>,
    stream: Option<mpsc::Sender<Value>>,
    waiting: VecDeque<Value>,
    /// Descriptions of tools, as far as they were listed.
    tools: HashMap<String, Value>,
}

struct Route {
    /// The id of the client.
    id: Value,
    /// The progress token of the client.
    token: Option<Value>,
    number: u64,
    messages: mpsc::Sender<Value>,
}

/// A request under way. Dropped before its response, it is canceled where requests have no session that goes on.
pub(super) struct Exchange {
    server: Arc<StdioServer>,
    key: String,
    id: Value,
    messages: Option<mpsc::Receiver<Value>>,
    over: bool,
}

impl StdioServer {
    pub(super) fn new(ids: Ids) -> Arc<Self> {
        let (lines, unsent) = mpsc::channel(QUEUE);
        let (end, ended) = (watch::Sender::new(false), watch::Sender::new(None));
        Arc::new(Self { ids, routes: Mutex::default(), lines, unsent: Mutex::new(Some(unsent)), end, ended })
    }

    /// Starts the process, which a task owns from here on.
    pub(super) fn start(self: &Arc<Self>, how: &Start) {
        let Some(unsent) = self.unsent.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        let (server, tap, limit, patience) = (Arc::clone(self), (how.new_tap)(), how.limits.line, how.patience);
        let (command, guardian) = (command_of(&how.launch), how.guardian.clone());
        let words = how.launch.command.clone();
        tokio::spawn(async move {
            let started = match command {
                Ok(command) => guardian.spawn(command).await.map_err(|error| error.to_string()),
                Err(failure) => Err(failure.to_string()),
            };
            let why = match started {
                Err(reason) => format!("`{}` could not be started: {reason}", words.first().map_or("", String::as_str)),
                Ok(spawned) => server.run(spawned, unsent, (&words, limit), patience, &tap).await,
            };
            server.ended.send_replace(Some(why));
            let mut routes = server.routes();
            routes.open.clear();
            routes.stream = None;
        });
    }

    async fn run(
        &self,
        spawned: Spawned,
        mut unsent: mpsc::Receiver<Vec<u8>>,
        (words, limit): (&[String], usize),
        patience: mcproof_client::ShutdownTimeouts,
        tap: &Tap,
    ) -> String {
        let Spawned { mut group, mut child, mut stdin } = spawned;
        tap.record(Direction::Local, FrameBody::Spawned { pid: child.id().unwrap_or_default(), command: words.to_vec() });
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            unreachable!("both streams were requested as pipes");
        };
        let mut end = self.end.subscribe();
        let write = async {
            while let Some(line) = unsent.recv().await {
                tap.record(Direction::ToServer, FrameBody::Line { bytes: line.as_slice().into(), unterminated: false });
                if stdin.write_all(&[&line[..], b"\n"].concat()).await.is_err() || stdin.flush().await.is_err() {
                    break;
                }
            }
        };
        let read = async {
            let mut reader = LineReader::new(stdout, limit);
            while let Ok(line) = reader.next().await {
                let (bytes, unterminated) = match line {
                    Line::Whole(bytes) => (bytes, false),
                    Line::Unterminated(bytes) | Line::TooLong(bytes) => (bytes, true),
                    Line::End => break,
                };
                tap.record(Direction::FromServer, FrameBody::Line { bytes: bytes.into(), unterminated });
                match serde_json::from_slice(bytes) {
                    Ok(message @ Value::Object(_)) => self.route(message).await,
                    _ => drop(tap.note("a line that is not a message is not passed on")),
                }
            }
        };
        let hear = async {
            let mut reader = LineReader::new(stderr, limit);
            let mut own = tokio::io::stderr();
            while let Ok(line) = reader.next().await {
                let (Line::Whole(bytes) | Line::Unterminated(bytes) | Line::TooLong(bytes)) = line else { break };
                tap.record(Direction::FromServer, FrameBody::Stderr { bytes: bytes.into() });
                // Nobody may read it.
                let _ = own.write_all(&[bytes, b"\n"].concat()).await;
            }
        };
        let talk = async { tokio::join!(read, hear) };
        {
            tokio::pin!(write, talk);
            tokio::select! {
                _ = &mut talk => {}
                _ = end.wait_for(|end| *end) => {}
                () = async { write.await; std::future::pending::<()>().await } => {}
            }
        }
        // Closing its stdin asks it to end.
        drop(stdin);
        let status = match timeout(patience.end_of_input, child.wait()).await {
            Ok(status) => status,
            Err(_) => {
                let _ = group.signal(ProcessSignal::TERMINATE);
                match timeout(patience.terminate, child.wait()).await {
                    Ok(status) => status,
                    Err(_) => {
                        let _ = group.signal(ProcessSignal::KILL);
                        child.wait().await
                    }
                }
            }
        };
        group.end();
        match status {
            Ok(status) => {
                tap.record(Direction::Local, FrameBody::Exited { code: status.code(), signal: signals::of_exit(status) });
                format!("the server has ended: {status}")
            }
            Err(error) => format!("the server has ended: {error}"),
        }
    }

    /// The description of a tool, if it was listed.
    pub(super) fn tool(&self, name: &str) -> Option<Value> {
        self.routes().tools.get(name).cloned()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.borrow().is_some() || *self.end.borrow()
    }

    pub(super) fn why_ended(&self) -> String {
        self.ended.borrow().clone().unwrap_or_else(|| "the server closes".into())
    }

    /// How long its client has asked for nothing; `None` while a request is under way or a stream is open.
    pub(super) fn idle(&self) -> Option<Duration> {
        let routes = self.routes();
        let is_idle = routes.open.is_empty() && routes.stream.as_ref().is_none_or(mpsc::Sender::is_closed);
        routes.heard.filter(|_| is_idle).map(|heard| heard.elapsed())
    }

    /// Ends the process and waits until it is gone.
    pub(super) async fn end(&self) {
        self.end.send_replace(true);
        // The task that owns the process has deadlines of its own.
        let _ = self.ended.subscribe().wait_for(Option::is_some).await;
    }

    /// A message that has no response; false if the server is gone.
    pub(super) async fn send(&self, mut message: Value) -> bool {
        if self.ids == Ids::Ours && message["method"] == "notifications/cancelled" {
            // A client without a session cannot name a request of another one; ending the exchange cancels its own.
            return true;
        }
        self.routes().heard = Some(Instant::now());
        if let Some(object) = message.as_object_mut() {
            object.entry("jsonrpc").or_insert_with(|| json!("2.0"));
        }
        self.write(&message).await
    }

    pub(super) async fn request(self: &Arc<Self>, mut message: Value) -> Result<Exchange, String> {
        let (sender, messages) = mpsc::channel(QUEUE);
        let id = message["id"].clone();
        let key = {
            let mut routes = self.routes();
            if routes.open.len() >= MOST_OPEN {
                return Err(format!("{MOST_OPEN} requests are under way"));
            }
            routes.begun += 1;
            routes.heard = Some(Instant::now());
            let number = routes.begun;
            let token = message.pointer("/params/_meta/progressToken").cloned();
            if self.ids == Ids::Ours {
                message["id"] = json!(number);
                if token.is_some() {
                    message["params"]["_meta"]["progressToken"] = json!(number);
                }
            }
            let key = message["id"].to_string();
            if routes.open.contains_key(&key) {
                return Err("a request with this id is under way".into());
            }
            routes.open.insert(key.clone(), Route { id: id.clone(), token, number, messages: sender });
            key
        };
        let exchange = Exchange { server: Arc::clone(self), key, id, messages: Some(messages), over: false };
        match self.write(&message).await {
            true => Ok(exchange),
            false => Err(self.why_ended()),
        }
    }

    /// The stream of what answers no request; none if there is one.
    pub(super) fn listen(&self) -> Option<mpsc::Receiver<Value>> {
        let mut routes = self.routes();
        if routes.stream.as_ref().is_some_and(|stream| !stream.is_closed()) {
            return None;
        }
        let (sender, messages) = mpsc::channel(MOST_WAITING);
        for message in std::mem::take(&mut routes.waiting) {
            // There is room for all that may wait.
            let _ = sender.try_send(message);
        }
        routes.stream = Some(sender);
        routes.heard = Some(Instant::now());
        Some(messages)
    }

    async fn write(&self, message: &Value) -> bool {
        let mut ended = self.ended.subscribe();
        tokio::select! {
            sent = self.lines.send(message.to_string().into_bytes()) => sent.is_ok() && !self.has_ended(),
            _ = ended.wait_for(Option::is_some) => false,
        }
    }

    async fn route(&self, mut message: Value) {
        let sender = {
            let mut routes = self.routes();
            let is_response = message.get("method").is_none();
            let mut listed = Vec::new();
            let found = match is_response {
                true => routes.open.get(&message["id"].to_string()),
                false => routes.of_notification(&message, self.ids),
            };
            match found {
                Some(route) => {
                    if is_response {
                        listed = message.pointer("/result/tools").and_then(Value::as_array).cloned().unwrap_or_default();
                        message["id"] = route.id.clone();
                    } else if let Some(token) = route.token.clone().filter(|_| message["params"].get("progressToken").is_some()) {
                        message["params"]["progressToken"] = token;
                    } else if message["params"]["_meta"].get(SUBSCRIPTION).is_some() {
                        message["params"]["_meta"][SUBSCRIPTION] = route.id.clone();
                    }
                    let sender = route.messages.clone();
                    routes.learn(listed);
                    sender
                }
                // The client does not wait for it any more.
                None if is_response => return,
                None => match routes.stream.clone().filter(|stream| !stream.is_closed()).or_else(|| routes.oldest()) {
                    Some(sender) => sender,
                    None => {
                        if routes.waiting.len() < MOST_WAITING {
                            routes.waiting.push_back(message);
                        }
                        return;
                    }
                },
            }
        };
        // A client that does not read holds the server back, as a pipe would.
        let _ = sender.send(message).await;
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Routes {
    fn learn(&mut self, tools: Vec<Value>) {
        for tool in tools {
            let name = tool.get("name").and_then(Value::as_str).map(str::to_owned);
            if let Some(name) = name.filter(|name| self.tools.len() < MOST_TOOLS || self.tools.contains_key(name)) {
                self.tools.insert(name, tool);
            }
        }
    }

    /// The request that a notification belongs to, by its progress token or its subscription.
    fn of_notification(&self, message: &Value, ids: Ids) -> Option<&Route> {
        let params = message.get("params")?;
        let subscription = params.get("_meta").and_then(|meta| meta.get(SUBSCRIPTION));
        if let Some(token) = params.get("progressToken") {
            return self.open.values().find(|route| match ids {
                Ids::Kept => route.token.as_ref() == Some(token),
                Ids::Ours => token.as_u64() == Some(route.number),
            });
        }
        self.open.get(&subscription?.to_string())
    }

    fn oldest(&self) -> Option<mpsc::Sender<Value>> {
        self.open.values().min_by_key(|route| route.number).map(|route| route.messages.clone())
    }
}

impl Exchange {
    /// The next message; `None` if the server ends before its response.
    pub(super) async fn next(&mut self) -> Option<Value> {
        let message = self.messages.as_mut()?.recv().await?;
        self.saw(&message);
        Some(message)
    }

    /// The messages that are still to come.
    pub(super) fn messages(&mut self) -> mpsc::Receiver<Value> {
        self.messages.take().unwrap_or_else(|| mpsc::channel(1).1)
    }

    pub(super) fn saw(&mut self, message: &Value) {
        self.over |= message.get("method").is_none() && message.get("id") == Some(&self.id);
    }

    /// The response has come.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let is_known = {
            let mut routes = self.server.routes();
            // The client has just taken its response, or has gone.
            routes.heard = Some(Instant::now());
            routes.open.remove(&self.key).is_some()
        };
        if is_known && !self.over && self.server.ids == Ids::Ours {
            let id: Value = serde_json::from_str(&self.key).unwrap_or_default();
            let canceled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
            // Where the server does not read, it learns of it by nothing.
            let _ = self.server.lines.try_send(canceled.to_string().into_bytes());
        }
    }
}
