//! Runs a session for a command: opens it, shows the traffic, handles Ctrl-C, writes the trace, ends the server. Knows no requests.

use crate::diagnosis;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::recording::Recording;
use crate::settings;
use crate::target::Resolved;
use mcproof_client::{Guardian, Session, ShutdownTimeouts, Tap, open_session};
use mcproof_record::Frame;
use mcproof_report::frame_line;
use mcproof_system::EndRequest;
use mcproof_system::pipes::stdin_is_gone;
use mcproof_system::signals::EndRequests;
use std::pin::pin;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{io, thread};
use tokio::time::{sleep, timeout};

/// How much of the wire is shown while it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watching {
    Off,
    Wire,
}

/// Opens a session, lets `work` use it, and ends it. Whatever happens, the trace is written and nothing is left running.
pub(crate) fn hold(
    resolved: &Resolved,
    watching: Watching,
    work: impl AsyncFnOnce(&Session) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let recording = resolved.trace.as_deref().map(|path| Recording::create(path, resolved)).transpose()?;
    let tap = Tap::with(resolved.tap, resolved.secrets.clone(), Recording::observer(recording.as_ref(), watching));
    tap.keep_secret_arguments();
    let outcome = run(converse(resolved, &tap, work))?;
    if let Some(recording) = recording {
        recording.finish(&tap)?;
    }
    outcome
}

/// Runs a future on a runtime of its own, without waiting afterwards for a read of stdin that never ends.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    let failed = |error| Failure::bad_input("no-runtime", format!("cannot start the async runtime: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let outcome = runtime.block_on(future);
    runtime.shutdown_background();
    Ok(outcome)
}

/// Ctrl-C and SIGTERM. From the moment that this exists they no longer end the process by themselves. One that nobody waits for,
/// because something is being computed, ends it all the same, a moment later.
pub(crate) struct Interrupts(Signals);

struct Signals(EndRequests);

/// Number of signals that were awaited.
static SEEN: AtomicUsize = AtomicUsize::new(0);

/// How long whoever waits for a signal may take to see it.
const UNSEEN: Duration = Duration::from_secs(1);

impl Interrupts {
    pub(crate) fn new() -> Result<Self, Failure> {
        Self::of(Hangup::Ends)
    }

    /// For whoever does something else when the terminal ends.
    pub(crate) fn but_hangup() -> Result<Self, Failure> {
        Self::of(Hangup::IsElsewhere)
    }

    fn of(hangup: Hangup) -> Result<Self, Failure> {
        static OVERSEER: Once = Once::new();
        let signals =
            Signals::of(hangup).map_err(|error| Failure::bad_input("no-signals", format!("cannot listen for signals: {error}")))?;
        // Without it, which is possible where there are too many threads, only what waits for signals obeys them.
        OVERSEER.call_once(|| drop(thread::Builder::new().name("signals".into()).spawn(move || end_unseen(hangup))));
        Ok(Self(signals))
    }

    /// Waits for the next one. Cancelling this loses none.
    pub(crate) async fn next(&mut self) -> Exit {
        let exit = self.0.next().await;
        SEEN.fetch_add(1, Ordering::Relaxed);
        exit
    }

    /// Goes on with `work` until it is done or the user ends it. Then it stands still, so that nothing is concluded from servers that end, and
    /// they are given the time to do so.
    pub(crate) async fn or_end<T>(&mut self, guardian: &Guardian, work: impl Future<Output = T>) -> Result<T, Exit> {
        let mut work = pin!(work);
        let exit = tokio::select! {
            done = &mut work => return Ok(done),
            exit = self.next() => exit,
        };
        self.end_servers(guardian).await;
        Err(exit)
    }

    /// Asks the servers to end, and waits shortly until they have, unless the user asks once more. Whoever holds what is left of them kills it.
    pub(crate) async fn end_servers(&mut self, guardian: &Guardian) {
        let family = guardian.ask_to_end();
        let ended = async {
            while !guardian.is_idle() {
                sleep(LOOK).await;
            }
        };
        tokio::select! {
            _ = timeout(ShutdownTimeouts::SHORT.end_of_input + ShutdownTimeouts::SHORT.terminate, ended) => {}
            _ = self.next() => {}
        }
        for descendant in family {
            descendant.kill_if_alive();
        }
    }
}

/// Waits for the end of the terminal on stdin, which no signal tells to whoever is not in its foreground, or was started to ignore it.
pub(crate) async fn terminal_end() {
    while !stdin_is_gone() {
        sleep(TERMINAL_LOOK).await;
    }
}

/// How often to look whether the terminal is still there.
const TERMINAL_LOOK: Duration = Duration::from_millis(200);

/// How often to look whether the servers have ended.
const LOOK: Duration = Duration::from_millis(10);

/// What the end of the terminal means, by SIGHUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hangup {
    Ends,
    IsElsewhere,
}

impl Signals {
    fn of(hangup: Hangup) -> io::Result<Self> {
        let listen = if hangup == Hangup::Ends { EndRequests::with_hangup } else { EndRequests::new };
        listen().map(Self)
    }

    async fn next(&mut self) -> Exit {
        match self.0.next().await {
            EndRequest::Interrupt => Exit::Interrupted,
            EndRequest::Terminate => Exit::Terminated,
        }
    }
}

/// Ends the process at the first signal that is not awaited in time.
#[expect(clippy::exit, reason = "whoever would end it in good order is busy with something else")]
fn end_unseen(hangup: Hangup) {
    let oversee = async {
        let mut signals = Signals::of(hangup)?;
        loop {
            let seen = SEEN.load(Ordering::Relaxed);
            let exit = signals.next().await;
            sleep(UNSEEN).await;
            if SEEN.load(Ordering::Relaxed) == seen {
                std::process::exit(exit.code().into());
            }
        }
    };
    // Where there is no runtime for it, the user has to send SIGKILL.
    let _: Result<io::Result<()>, Failure> = run(oversee);
}

async fn converse(resolved: &Resolved, tap: &Tap, work: impl AsyncFnOnce(&Session) -> Result<Exit, Failure>) -> Result<Exit, Failure> {
    let mut interrupts = Interrupts::new()?;
    let opening = open_session(&resolved.target, &resolved.options, tap);
    let opened = match interrupts.or_end(&resolved.options.guardian, opening).await {
        Ok(opened) => opened,
        Err(exit) => return Ok(exit),
    };
    let session = opened.map_err(|failure| diagnosis::of_connect_failure(&failure, tap, resolved))?;
    let (outcome, patience) = tokio::select! {
        outcome = work(&session) => (outcome, ShutdownTimeouts::default()),
        exit = interrupts.next() => (Ok(exit), ShutdownTimeouts::SHORT),
    };
    let outcome = outcome.map_err(|failure| failure.redacted(tap));
    tokio::select! {
        _ = session.close_within(patience) => outcome,
        exit = interrupts.next() => Ok(exit),
    }
}

pub(crate) type Observer = Box<dyn Fn(&Frame) + Send + Sync>;

/// What is done with each frame as it happens.
pub(crate) fn observer(watching: Watching) -> Option<Observer> {
    match watching {
        Watching::Off => None,
        Watching::Wire => {
            let style = settings::style();
            Some(Box::new(move |frame| output::talk(&frame_line(frame, &style))))
        }
    }
}
