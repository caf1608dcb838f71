//! `mcproof mock FILE`: a server that answers as recorded, as locked, as a suite expects, or as written.

mod source;
mod suite;
mod written;

use crate::conversation::{self, Interrupts};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::faults::{FaultArgs, FaultTransport, Faults};
use crate::network::parse_listen_address;
use crate::output;
use mcproof_client::transport::DisturbedLines;
use mcproof_client::{Limits, Network, Tap, TapBounds};
use mcproof_protocol::Era;
use mcproof_record::{Diagnostic, Direction, Frame, FrameBody};
use mcproof_relay::mock::{HttpKind, Mock, MockEvent, MockOptions, Repetition, ResponseCheck, serve_http, serve_stdio};
use mcproof_relay::proxy::{HttpRelay, RelayListener};
use mcproof_report::escape;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Run a server that replays recorded responses, or responds as locked, as a suite expects, or as written
///
/// A request is matched by method, name and canonical arguments; the nth request of a kind gets the nth recorded response, and the last one
/// repeats. A client plays the recorded session that has what it has sent so far. What the server sent in between (progress, logs, its own requests) comes in its place. A request that was not recorded is
/// answered with an error that names the nearest recorded one, is reported on stderr, and makes the exit code 1.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # as the command of a client, over stdio
  mcproof mock session.mcptrace
  # a client that starts its server twice
  mcproof mock session.mcptrace session-2.mcptrace
  # on a free port, which is printed on stderr
  mcproof mock session.mcptrace --transport http
  # results that fit the output schemas
  mcproof mock mcproof.lock --listen 127.0.0.1:3000
  # the responses that the tests expect
  mcproof mock shop.mcproof.yaml
  # hand-written responses
  mcproof mock shop.mock.yaml
  mcproof mock session.mcptrace --fault 'status=503 first=1' --listen 127.0.0.1:3000
  # also for clients of the other era
  mcproof mock session.mcptrace --era both")]
pub(crate) struct Arguments {
    /// Trace, lock (mcproof.lock), suite, or hand-written responses (a .yaml file); several traces or a directory of traces are one
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Transport of the server [default: stdio, or http with --listen]
    #[arg(long, value_name = "TRANSPORT")]
    transport: Option<Kind>,
    /// Address to listen on, with http and sse; port 0 selects a free port, which is printed on stderr
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen_address)]
    listen: Option<SocketAddr>,
    /// Era of the server [default: what was recorded]
    #[arg(long, value_name = "ERA")]
    era: Option<EraKind>,
    /// Keep the recorded time between messages, divided by this factor: 1 for the recorded time, 10 for ten times as fast
    /// [default: no waiting]
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    speed: Option<f64>,
    /// Also fail requests that are sent more often than recorded or were recorded in another session only, and client responses that differ
    /// from the recorded ones
    #[arg(long)]
    strict: bool,
    /// Ignore this JSON pointer into the parameters when requests are compared, such as /arguments/now; may be repeated
    #[arg(long, value_name = "POINTER", value_parser = pointer)]
    ignore: Vec<String>,
    #[command(flatten)]
    faults: FaultArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    Stdio,
    /// Streamable HTTP at /mcp
    Http,
    /// HTTP+SSE at /sse
    Sse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum EraKind {
    /// `initialize`, up to 2025-11-25
    Legacy,
    /// 2026-07-28
    Modern,
    Both,
}

/// The JSON Schema of a mock that is written by hand.
pub(crate) fn written_schema() -> serde_json::Value {
    written::schema()
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let transport = match (arguments.transport, arguments.listen) {
        (Some(Kind::Stdio), Some(_)) => {
            return Err(Failure::bad_input("bad-flags", "`--listen` needs `--transport http` or `--transport sse`"));
        }
        (Some(kind), _) => kind,
        (None, Some(_)) => Kind::Http,
        (None, None) => Kind::Stdio,
    };
    let repetition = if arguments.strict { Repetition::Miss } else { Repetition::LastAnswer };
    let answers = source::read(&arguments.files, &arguments.ignore, repetition)?;
    let options = MockOptions {
        eras: match arguments.era {
            None => Vec::new(),
            Some(EraKind::Legacy) => vec![Era::Legacy],
            Some(EraKind::Modern) => vec![Era::Modern],
            Some(EraKind::Both) => vec![Era::Legacy, Era::Modern],
        },
        speed: arguments.speed,
        responses: if arguments.strict { ResponseCheck::Miss } else { ResponseCheck::Told },
    };
    if transport == Kind::Sse && arguments.era == Some(EraKind::Modern) {
        return Err(Failure::bad_input("bad-flags", "HTTP+SSE exists only in the legacy era").hint("use `--transport http`"));
    }
    let faults = arguments.faults.read(if transport == Kind::Stdio { FaultTransport::Stdio } else { FaultTransport::Http })?;
    let is_behind_faults = faults.is_some();
    let mock = Mock::new(answers, options, move |event| match event {
        // Its clients connect to what stands before it.
        MockEvent::Listening(_) if is_behind_faults => {}
        event => output::talk(&told(&event)),
    });
    if transport == Kind::Sse && !mock.speaks(Era::Legacy) {
        let failure = Failure::bad_input("bad-flags", "HTTP+SSE exists only in the legacy era, and the recording is of the modern era");
        return Err(failure.hint("use `--transport http`, or `--era legacy`"));
    }
    let exit = conversation::run(serve(&mock, transport, arguments.listen, faults.as_ref()))??;
    if let Some(faults) = &faults {
        faults.tell();
    }
    Ok(if mock.misses() > 0 { Exit::Failed } else { exit })
}

async fn serve(mock: &Arc<Mock>, transport: Kind, listen: Option<SocketAddr>, faults: Option<&Faults>) -> Result<Exit, Failure> {
    let mut interrupts = Interrupts::new()?;
    let kind = match transport {
        Kind::Stdio => {
            let served = tokio::select! {
                served = serve_pipes(mock, faults) => served,
                _ = interrupts.next() => Ok(()),
            };
            return match served {
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                    Err(Failure::new(Exit::Failed, Diagnostic::error("mock-failed", format!("the connection failed: {error}"))))
                }
                _ => Ok(Exit::Passed),
            };
        }
        Kind::Http => HttpKind::Streamable,
        Kind::Sse => HttpKind::Sse,
    };
    let address = listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
    let cannot = |error: std::io::Error| Failure::cannot_listen(address, &error);
    let behind = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = TcpListener::bind(if faults.is_some() { behind } else { address }).await.map_err(cannot)?;
    let own = listener.local_addr().map_err(cannot)?;
    let mut relayed = Ok(());
    let stop = async {
        relayed = match faults {
            None => {
                interrupts.next().await;
                Ok(())
            }
            Some(faults) => tokio::select! {
                _ = interrupts.next() => Ok(()),
                relayed = relay_faulty(own, kind, address, faults) => relayed,
            },
        };
    };
    let served = serve_http(mock, listener, kind, stop).await;
    relayed?;
    served.map_err(|error| Failure::new(Exit::Failed, Diagnostic::error("mock-failed", format!("the listener failed: {error}"))))?;
    Ok(Exit::Passed)
}

async fn serve_pipes(mock: &Arc<Mock>, faults: Option<&Faults>) -> std::io::Result<()> {
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let Some(faults) = faults else { return serve_stdio(mock, input, output).await };
    let limits = Limits::default();
    let (from_mock, to_client) = tokio::io::duplex(PIPE);
    let (from_client, to_mock) = tokio::io::duplex(PIPE);
    let mut lines = DisturbedLines::between(from_mock, to_mock, output, input, &faults.injector, limits.line, &unrecorded());
    let served = tokio::select! {
        served = serve_stdio(mock, from_client, to_client) => served,
        // A fault has closed the pipes.
        () = lines.ended() => return Ok(()),
    };
    // What the mock has said last is on its way.
    let _ = tokio::time::timeout(std::time::Duration::from_secs(2), lines.ended()).await;
    served
}

/// Bytes between the mock and its client.
const PIPE: usize = 64 << 10;

/// Stands before the mock and injects faults; returns only if it cannot.
async fn relay_faulty(mock: SocketAddr, kind: HttpKind, address: SocketAddr, faults: &Faults) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::cannot_listen(address, &error);
    let path = if kind == HttpKind::Sse { "sse" } else { "mcp" };
    let url = url::Url::parse(&format!("http://{mock}/{path}")).expect("an address and a path are a URL");
    let relay = HttpRelay::new(&url, &[], Limits::default(), &Network::default(), &unrecorded());
    let relay = relay.map_err(|failure| Failure::bad_input("cannot-listen", failure.to_string()))?;
    let listener = RelayListener::bind(address).await.map_err(cannot)?;
    output::talk(&told(&MockEvent::Listening(listener.url_of(&url).to_string())));
    match relay.disturbed(Some(faults.injector.clone())).serve(listener).await {
        Err(error) => Err(cannot(error)),
        Ok(never) => match never {},
    }
}

/// Notes of faults go to stderr, and no frame is kept.
fn unrecorded() -> Tap {
    let tell = |frame: &Frame| {
        if let (Direction::Local, FrameBody::Note { text }) = (frame.direction, &frame.body)
            && text.starts_with("fault:")
        {
            output::talk(&format!("{}\n", escape(text)));
        }
    };
    Tap::with(TapBounds { first: 0, bytes: 0 }, Vec::new(), Some(Box::new(tell)))
}

fn told(event: &MockEvent) -> String {
    match event {
        MockEvent::Listening(url) => format!("listening on {url}\n"),
        MockEvent::Miss(miss) => format!("error: {}\n", escape(&miss.to_string())),
        MockEvent::Note(text) => format!("note: {}\n", escape(text)),
    }
}

fn speed(text: &str) -> Result<f64, String> {
    let factor = text.trim_end_matches('x').parse::<f64>().ok().filter(|factor| factor.is_finite() && *factor > 0.0);
    factor.ok_or_else(|| "expected a number above 0, such as 1 or 10".into())
}

fn pointer(text: &str) -> Result<String, String> {
    match text.starts_with('/') {
        true => Ok(text.to_owned()),
        false => Err(format!("expected a JSON pointer, such as /arguments/{text}")),
    }
}
