//! `mcproof mock FILE`: a server that answers as recorded or as locked.

mod source;

use crate::conversation::{self, Interrupts};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use mcproof_protocol::Era;
use mcproof_record::Diagnostic;
use mcproof_relay::mock::{HttpKind, Mock, MockEvent, MockOptions, Repetition, ResponseCheck, serve_http, serve_stdio};
use mcproof_report::escape;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Run a server that answers as recorded
///
/// A request is matched by method, name and canonical arguments; the nth request of a kind gets the nth recorded answer, and the last one
/// repeats. What the server sent in between (progress, logs, its own requests) comes in its place. A request that was not recorded is
/// answered with an error that names the nearest recorded one, is reported on stderr, and makes the exit code 1.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof mock session.mcptrace                       as the command of a client, over stdio
  mcproof mock session.mcptrace --transport http      on a free port, which is printed on stderr
  mcproof mock mcproof.lock --listen 127.0.0.1:3000   results that fit the output schemas
  mcproof mock session.mcptrace --era both            also for clients of the other era")]
pub(crate) struct Arguments {
    /// Trace, or lock (mcproof.lock)
    file: PathBuf,
    /// Transport of the server [default: stdio, or http with --listen]
    #[arg(long, value_name = "TRANSPORT")]
    transport: Option<Kind>,
    /// Address to listen on, with http and sse; port 0 selects a free port, which is printed on stderr
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Era of the server [default: what was recorded]
    #[arg(long, value_name = "ERA")]
    era: Option<EraKind>,
    /// Wait as long as was recorded: 1 for the recorded time, 10 for a tenth of it [default: as fast as possible]
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    speed: Option<f64>,
    /// Also fail requests that are sent more often than recorded, and client responses that differ from the recorded ones
    #[arg(long)]
    strict: bool,
    /// Ignore this JSON pointer into the parameters when requests are compared, such as /arguments/now; may be repeated
    #[arg(long, value_name = "POINTER", value_parser = pointer)]
    ignore: Vec<String>,
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
    let answers = source::read(&arguments.file, &arguments.ignore, repetition)?;
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
    let mock = Mock::new(answers, options, |event| output::talk(&told(&event)));
    if transport == Kind::Sse && !mock.speaks(Era::Legacy) {
        let failure = Failure::bad_input("bad-flags", "HTTP+SSE exists only in the legacy era, and the recording is of the modern era");
        return Err(failure.hint("use `--transport http`, or `--era legacy`"));
    }
    let exit = conversation::run(serve(&mock, transport, arguments.listen))??;
    Ok(if mock.misses() > 0 { Exit::Failed } else { exit })
}

async fn serve(mock: &Arc<Mock>, transport: Kind, listen: Option<SocketAddr>) -> Result<Exit, Failure> {
    let mut interrupts = Interrupts::new()?;
    let kind = match transport {
        Kind::Stdio => {
            let served = tokio::select! {
                served = serve_stdio(mock, tokio::io::stdin(), tokio::io::stdout()) => served,
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
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let failure = Failure::bad_input("cannot-listen", format!("cannot listen on {address}: {error}"));
        failure.hint("use another --listen, or port 0 for a free port")
    })?;
    let stop = async {
        interrupts.next().await;
    };
    let served = serve_http(mock, listener, kind, stop).await;
    served.map_err(|error| Failure::new(Exit::Failed, Diagnostic::error("mock-failed", format!("the listener failed: {error}"))))?;
    Ok(Exit::Passed)
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
