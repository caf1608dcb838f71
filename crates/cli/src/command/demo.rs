//! `mcproof demo NAME`: the demo servers.

use crate::conversation::{self, Interrupts};
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::numbers::whole;
use clap::builder::PossibleValuesParser;
use mcproof_demo::{DEFAULT_HOST, DemoError, DemoName, DemoOptions, DemoTransport, NAMES, serve};
use mcproof_record::Diagnostic;
use std::time::Duration;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcproof tools -- mcproof demo tracker
  mcproof demo shop --http --port 3000
")]
pub(crate) struct Arguments {
    #[arg(value_name = "NAME", help = names_help(), hide_possible_values = true, value_parser = PossibleValuesParser::new(NAMES.map(DemoName::as_str)))]
    name: String,
    /// Transport of the server
    #[arg(long, value_name = "TRANSPORT", default_value = "stdio")]
    transport: Kind,
    /// Serve Streamable HTTP at /mcp, as --transport http
    #[arg(long, conflicts_with_all = ["transport", "sse"])]
    http: bool,
    /// Serve HTTP+SSE at /sse, as --transport sse
    #[arg(long, conflicts_with = "transport")]
    sse: bool,
    /// Port to listen on; 0 selects a free port, which is printed on stderr
    #[arg(long, default_value_t = 0, value_name = "PORT", value_parser = whole(0..=u16::MAX))]
    port: u16,
    /// Address to listen on
    #[arg(long, default_value = DEFAULT_HOST, value_name = "ADDRESS")]
    host: String,
    /// Make the shop remove one item too many from its stock, as a bug to find
    #[arg(long)]
    miscount: bool,
    /// Duration of the slow tools
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    slow: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    Stdio,
    Http,
    Sse,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let options = arguments.options()?;
    conversation::run(async {
        let mut interrupts = Interrupts::new()?;
        let stop = async {
            interrupts.next().await;
        };
        match serve(options, stop).await {
            Ok(()) => Ok(Exit::Passed),
            // The client is gone, which is how it ends a server.
            Err(DemoError::Transport(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Exit::Passed),
            Err(error @ DemoError::Bind { .. }) => {
                Err(Failure::bad_input("cannot-listen", error.to_string()).hint("use another --port, or 0 for a free port"))
            }
            Err(error) => Err(Failure::new(Exit::Failed, Diagnostic::error("demo-failed", error.to_string()))),
        }
    })?
}

impl Arguments {
    fn options(&self) -> Result<DemoOptions, Failure> {
        let name = self.name.parse().map_err(|error: mcproof_demo::UnknownDemo| Failure::bad_input("unknown-demo", error.to_string()))?;
        let mut options = DemoOptions::new(name);
        let kind = match (self.http, self.sse) {
            (true, _) => Kind::Http,
            (_, true) => Kind::Sse,
            _ => self.transport,
        };
        let (host, port) = (self.host.clone(), self.port);
        options.transport = match kind {
            Kind::Stdio => DemoTransport::Stdio,
            Kind::Http => DemoTransport::Http { host, port },
            Kind::Sse => DemoTransport::Sse { host, port },
        };
        options.miscount = self.miscount;
        options.slow = self.slow.unwrap_or(options.slow);
        Ok(options)
    }
}

fn names_help() -> String {
    NAMES.map(|name| format!("{name}: {}", name.about())).join("\n")
}
