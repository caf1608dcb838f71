//! The driver of test libraries: reads request lines, executes them, and writes responses. `docs/drive.md` is the protocol. Knows the
//! methods, not their meaning; no flags, no configuration files and no environment, which whoever owns a drive passes in.

mod callbacks;
mod embedded;
mod envelope;
mod error;
mod judging;
mod outlet;
mod raw_messages;
mod redaction;
mod relay;
mod server_request;
mod servers;
mod sessions;
mod stdin;
mod targets;
mod wire_faults;

pub use embedded::Embedded;
pub use outlet::Output;
pub use targets::{ResolvedTarget, Settings, TargetRequest, TargetResolver};

use callbacks::Callbacks;
use envelope::Incoming;
use error::DriveError;
use mcproof_client::{Canceler, Cancellation, Guardian, ShutdownTimeouts};
use mcproof_record::drive::{CancelParams, HelloParams, HelloResult, METHODS, Nothing, PROTOCOL};
use mcproof_report::{Charset, Color, Style};
use mcproof_system::machine::Parent;
use outlet::Outlet;
use relay::Relays;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use server_request::{PendingRequest, SendState, SentRequest, ServerRequest};
use servers::Servers;
use sessions::{Opening, Sessions};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use stdin::Lines;
use targets::Targets;
use tokio::sync::Notify;
use tokio::time::interval;

/// Everything that a driver has.
struct Drive {
    outlet: Outlet,
    style: Cell<Style>,
    targets: Targets,
    sessions: Sessions,
    servers: Servers,
    relays: Relays,
    callbacks: Callbacks,
    /// Questions that nobody waits for yet, in the order in which they were asked; only where whoever holds the drive looks after them.
    passing: Option<RefCell<Vec<SentRequest>>>,
    /// Whether a task has begun that was not polled yet: no question overtakes it.
    has_begun: Cell<bool>,
    /// The requests in flight, by their ids.
    running: RefCell<HashMap<Value, Canceler>>,
    /// Told when the driver has asked for the end, and everything has ended.
    over: Notify,
}

/// A request that is being done.
struct Context {
    id: Value,
    cancellation: Cancellation,
}

/// The work of a request.
enum Job {
    ServerRequest(Box<PendingRequest>, SendState),
    Open(Result<Box<Opening>, DriveError>),
    /// Its method, and its params as they stand.
    Other(String, String),
}

/// The line of the response.
type Done = Result<Vec<u8>, DriveError>;

/// How often to look whether the parent process lives.
const LOOK: Duration = Duration::from_millis(500);

/// Serves the driver on stdin and `output` until it is gone, does not want more, or `interrupted` is ready, whose value is returned
/// then. `interrupted` is called again after each line, so dropping its future must lose nothing. Needs a `LocalSet`.
///
/// # Errors
/// The system refuses a thread.
pub async fn serve<I>(
    output: Output,
    resolver: Box<dyn TargetResolver>,
    settings: Settings,
    mut interrupted: impl AsyncFnMut() -> I,
) -> io::Result<Option<I>> {
    let outlet = Outlet::open(output)?;
    let mut lines = Lines::open()?;
    let drive = Rc::new(Drive::new(outlet.clone(), Targets::new(resolver, settings, Guardian::of_whole_process())));
    let parent = Parent::now();
    let mut look = interval(LOOK);
    let interrupt = loop {
        tokio::select! {
            biased;
            line = lines.next() => match line {
                Some(line) => drive.accept(&line),
                None => break None,
            },
            interrupt = interrupted() => break Some(interrupt),
            () = drive.over.notified() => break None,
            _ = look.tick() => if parent.is_gone() || outlet.is_closed() {
                break None;
            },
        }
    };
    tokio::select! {
        () = drive.end(ShutdownTimeouts::SHORT) => {}
        _ = interrupted() => {}
    }
    outlet.finish().await;
    Ok(interrupt)
}

impl Drive {
    fn new(outlet: Outlet, targets: Targets) -> Self {
        Self {
            style: Cell::new(Style::default()),
            targets,
            sessions: Sessions::default(),
            servers: Servers::default(),
            relays: Relays::default(),
            callbacks: Callbacks::new(outlet.clone()),
            passing: None,
            has_begun: Cell::new(false),
            running: RefCell::default(),
            over: Notify::new(),
            outlet,
        }
    }

    /// Begins the request of a line.
    fn accept(self: &Rc<Self>, line: &[u8]) {
        if let Some(received) = envelope::notification_of(line, "relay/received") {
            return self.tell_people("relay/received", self.relays.receive(&received));
        }
        if let Some((id, params)) = envelope::request_of(line, "request") {
            return self.begin_request(id.into(), Ok(ServerRequest::request(params)));
        }
        if let Some((id, params)) = envelope::request_of(line, "call") {
            return self.begin_request(id.into(), ServerRequest::call(params));
        }
        // It may be about them.
        self.wait_for_passing();
        match envelope::read(line) {
            // What comes behind it may be about the session already.
            Incoming::Request { id, method, params } if method == "open" => {
                self.begin(id, Job::Open(read(params).and_then(|params| self.take_seat(params))));
            }
            Incoming::Request { id, method, params } => self.begin(id, Job::Other(method.into_owned(), params.to_owned())),
            Incoming::Notification { method, params } => self.tell_people(&method, self.hear(&method, params)),
            Incoming::Response { id, answer } => self.callbacks.answer(&id, answer),
            Incoming::Wrong { id, code, message } => {
                self.outlet.send(DriveError::plain(code, message).line(&id, &self.style.get()));
            }
        }
    }

    fn hear(&self, method: &str, params: &str) -> Result<(), DriveError> {
        match method {
            "relay/received" => self.relays.receive(&read(params)?),
            "relay/closed" => self.relays.close(read(params)?),
            "cancel" => {
                let CancelParams { id, reason } = read(params)?;
                if let Some(canceller) = self.running.borrow().get(&id) {
                    canceller.cancel(reason.unwrap_or_else(|| "canceled by the test".into()));
                }
                Ok(())
            }
            _ => Err(DriveError::no_method(method)),
        }
    }

    fn begin(self: &Rc<Self>, id: Value, job: Job) {
        self.has_begun.set(true);
        let (canceller, cancellation) = Canceler::new();
        self.running.borrow_mut().insert(id.clone(), canceller);
        let drive = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let context = Context { id, cancellation };
            let is_last = matches!(&job, Job::Other(method, _) if method == "shutdown");
            let outcome = match job {
                Job::ServerRequest(asking, sending) => Box::pin(drive.finish(asking, sending, &context)).await,
                Job::Open(Ok(opening)) => Box::pin(drive.open(opening)).await.and_then(|opened| context.done(opened)),
                Job::Open(Err(trouble)) => Err(trouble),
                Job::Other(method, params) => drive.perform(&method, &params, &context).await,
            };
            drive.running.borrow_mut().remove(&context.id);
            let is_over = is_last && outcome.is_ok();
            drive.answer(&context.id, outcome);
            if is_over {
                drive.over.notify_one();
            }
        });
    }

    fn answer(&self, id: &Value, done: Done) {
        self.outlet.send(done.unwrap_or_else(|trouble| self.redacted_trouble(trouble).line(id, &self.style.get())));
    }

    /// What is done is boxed, as questions and openings are: no request carries the room that the largest needs.
    async fn perform(self: &Rc<Self>, method: &str, params: &str, context: &Context) -> Done {
        match method {
            "hello" => context.done(self.greet(read(params)?)?),
            "answers" => context.done(Box::pin(self.change_answers(read(params)?)).await?),
            "request" => Box::pin(self.ask(ServerRequest::request(read(params)?), context)).await,
            "call" => Box::pin(self.ask(ServerRequest::call(read(params)?)?, context)).await,
            "list" => context.done(Box::pin(self.list(read(params)?, context)).await?),
            "read" => Box::pin(self.ask(ServerRequest::read(read(params)?), context)).await,
            "prompt" => Box::pin(self.ask(ServerRequest::prompt(read(params)?), context)).await,
            "complete" => Box::pin(self.ask(ServerRequest::complete(read(params)?), context)).await,
            "ping" => Box::pin(self.ping(read(params)?, context)).await,
            "discover" => context.done(Box::pin(self.discover(read(params)?)).await?),
            "notify" => context.done(Box::pin(self.notify(read(params)?)).await?),
            "raw" => context.done(Box::pin(self.raw(read(params)?, context)).await?),
            "wait" => context.done(Box::pin(self.wait(read(params)?, context)).await?),
            "spawn" => context.done(Box::pin(self.spawn(read(params)?)).await?),
            "stop" => context.done(Box::pin(self.stop(read(params)?)).await?),
            "transcript" => context.done(Box::pin(self.transcript(read(params)?)).await?),
            "expect" => context.done(self.expect(read(params)?)?),
            "snapshot" => context.done(self.snapshot(read(params)?)?),
            "check" => context.done(Box::pin(self.check(read(params)?, context)).await?),
            "contract" => context.done(Box::pin(self.contract(read(params)?, context)).await?),
            "hash" => context.done(Box::pin(self.contract(read(params)?, context)).await?.hashes),
            "diff" => context.done(Box::pin(self.diff(read(params)?, context)).await?),
            "close" => context.done(Box::pin(self.close(read(params)?)).await?),
            "shutdown" => {
                let nothing: Nothing = read(params)?;
                Box::pin(self.end(ShutdownTimeouts::default())).await;
                context.done(nothing)
            }
            _ => Err(DriveError::no_method(method)),
        }
    }

    fn greet(&self, hello: HelloParams) -> Result<HelloResult, DriveError> {
        if let Some(other) = hello.protocol.filter(|wanted| *wanted != PROTOCOL) {
            return Err(DriveError::other_protocol(other));
        }
        self.style.set(Style {
            color: if hello.color { Color::Ansi } else { Color::Plain },
            charset: if hello.unicode == Some(false) { Charset::Ascii } else { Charset::Unicode },
            width: hello.width.unwrap_or(Style::default().width).max(40),
        });
        let methods = METHODS.iter().map(|method| (*method).to_owned()).collect();
        Ok(HelloResult { protocol: PROTOCOL, version: env!("CARGO_PKG_VERSION").into(), methods, pid: std::process::id() })
    }

    /// Prints the error of a notification, which has no response.
    fn tell_people(&self, method: &str, outcome: Result<(), DriveError>) {
        if let Err(trouble) = outcome {
            self.targets.talk(&format!("{method}: {}\n", trouble.message()));
        }
    }

    /// Ends everything that was started.
    async fn end(&self, patience: ShutdownTimeouts) {
        tokio::join!(self.close_all(patience), self.stop_all(patience));
    }
}

impl Context {
    fn done(&self, result: impl Serialize) -> Done {
        Ok(envelope::result(&self.id, &result))
    }

    /// Does something that knows nothing of being canceled.
    async fn unless_canceled<T>(&self, work: impl Future<Output = Result<T, DriveError>>) -> Result<T, DriveError> {
        tokio::select! {
            biased;
            outcome = work => outcome,
            reason = self.cancellation.asked() => Err(DriveError::canceled(&reason)),
        }
    }
}

fn read<'a, T: Deserialize<'a>>(params: &'a str) -> Result<T, DriveError> {
    // serde would take an array for the members in their order.
    if !params.starts_with('{') {
        return Err(DriveError::bad("bad-params", "`params` must be an object"));
    }
    serde_json::from_str(params).map_err(|error| DriveError::bad_params(&error))
}
