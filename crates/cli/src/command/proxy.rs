//! `mcproof proxy`: stands between a client and a server, passes everything on, and records it.

mod bridge;
mod install;
mod judgment;
mod live_judgment;
mod recording;

use crate::conversation::{self, Interrupts, Watching};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::faults::{FaultArgs, FaultTransport};
use crate::network::{NetworkArgs, parse_listen_address};
use crate::target::{parse_header, parse_url, parse_variable};
use crate::{output, settings};
use judgment::FailOn;
use mcproof_client::{
    BaseEnvironment, ConnectOptions, Endpoint, Guardian, Launch, ShutdownTimeouts, Startup, Tap, Target, given_secrets, inherited_secrets,
    open_bare,
};
use mcproof_protocol::Transport;
use mcproof_relay::proxy::{
    HttpRelay, LineFaults, Recorder, RecorderLimits, RelayFailure, RelayListener, command_of, end_like, relay_stdio,
};
use recording::Recording;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// Record the traffic between a client and a server
///
/// Without --listen, the proxy is the command of a stdio server in a client's configuration: bytes pass unchanged in both directions to
/// the command after `--`, and the proxy ends with its exit code. With a URL in its place, messages go to a server over Streamable HTTP.
///
/// With --listen, the proxy serves the URL of a server at an address of its own, or the command of a stdio server over Streamable HTTP.
/// The traffic is written to a trace, without secrets, which `mcproof trace` reads.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  # as the command in a client's configuration
  mcproof proxy -- node server.js
  # the same, to a server at a URL
  mcproof proxy https://example.com/mcp
  mcproof proxy --listen 127.0.0.1:8080 https://example.com/mcp
  # a stdio server over HTTP
  mcproof proxy --listen 127.0.0.1:8080 -- node server.js
  mcproof proxy --listen 127.0.0.1:0 'http://127.0.0.1:${port}/mcp' -- node a.js --port '${port}'
  # route all servers of a host through the proxy
  mcproof proxy install claude-desktop
  mcproof proxy --fault 'drop tool=search first=1' -- node server.js
  mcproof proxy --trace session.mcptrace --fail-on error -- node server.js")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<install::Action>,
    /// URL of the server; a command comes last, after `--`
    ///
    /// With a URL and a command, the command starts the server at the URL, and `${port}` in both is a free port.
    url: Option<String>,
    /// Command that starts the server
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Accept connections of clients at this address; port 0 is a free port
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen_address)]
    listen: Option<SocketAddr>,
    /// Write the trace to this file or directory [default: a file in the state directory]
    ///
    /// A file that exists is kept: the trace is then beside it, with a number in its name, such as `session-2.mcptrace`. stderr says where.
    #[arg(long, value_name = "PATH")]
    trace: Option<PathBuf>,
    /// Write no trace
    #[arg(long, conflicts_with = "trace")]
    no_trace: bool,
    /// Judge the traffic by the rules of `check` at the end, and exit with 1 for findings of this severity
    #[arg(long, value_name = "SEVERITY", default_value = "never")]
    fail_on: FailOn,
    /// Set an environment variable for the server; may be repeated
    #[arg(short, value_name = "NAME=VALUE", value_parser = parse_variable)]
    env: Vec<(String, String)>,
    /// Start the server in this directory
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Send this HTTP header with every request; may be repeated
    #[arg(long, value_name = "NAME: VALUE", value_parser = parse_header)]
    header: Vec<(String, String)>,
    #[command(flatten)]
    faults: FaultArgs,
    #[command(flatten)]
    network: NetworkArgs,
}

/// How long a server may take from its start until it accepts connections.
const STARTUP: Duration = Duration::from_secs(30);

pub(crate) fn run(arguments: &Arguments, watching: Watching) -> Result<Exit, Failure> {
    if let Some(action) = &arguments.action {
        return install::run(action);
    }
    match (&arguments.listen, &arguments.url, arguments.command.is_empty()) {
        (None, None, false) => arguments.relay_pipes(watching),
        (Some(address), Some(url), _) => arguments.relay_http(*address, url, watching),
        (None, Some(url), _) => bridge::outward(arguments, url, watching),
        (Some(address), None, false) => bridge::inward(arguments, *address, watching),
        (_, None, true) => Err(Failure::bad_input("no-server", "no server given")
            .hint("add its command after `--`, or --listen ADDRESS and its URL: mcproof proxy -- node server.js")),
    }
}

impl Arguments {
    fn relay_pipes(&self, watching: Watching) -> Result<Exit, Failure> {
        if !self.header.is_empty() {
            return Err(Failure::bad_input("transport-mismatch", "`--header` requires a URL, but a command is reached over stdio"));
        }
        let faults = self.faults.read(FaultTransport::Stdio)?;
        let launch = self.launch(None);
        let target = Target::Stdio(launch.clone());
        let recording = Recording::begin(&self.recorded(&target), self.secrets(&target), watching)?;
        let guardian = Guardian::of_whole_process();
        let tap = recording.new_session();
        let limits = RecorderLimits { line: self.network.limits().limits().line, ..RecorderLimits::default() };
        let lines = faults.as_ref().map(|faults| LineFaults { injector: faults.injector.clone(), limit: limits.line });
        let relayed = conversation::run(async {
            let spawned = guardian.spawn(command_of(&launch)?).await.map_err(|reason| {
                let program = launch.command.first().cloned().unwrap_or_default();
                match reason.kind() {
                    std::io::ErrorKind::NotFound => RelayFailure::NotFound { program },
                    _ => RelayFailure::NotStarted { program, reason },
                }
            })?;
            let host = mcproof_system::pipes::take_host_pipes()?;
            relay_stdio(spawned, &launch, host, Recorder::start(tap, limits)?, ShutdownTimeouts::default(), lines.as_ref()).await
        })?;
        if let Some(faults) = &faults {
            faults.tell();
        }
        let end = relayed.map_err(|failure| {
            if !matches!(failure, RelayFailure::System(_)) {
                recording.discard();
            }
            unreachable_server(&failure)
        })?;
        match recording.finish()? {
            Exit::Passed => Ok(Exit::OfServer(end_like(end))),
            other => Ok(other),
        }
    }

    fn relay_http(&self, address: SocketAddr, url: &str, watching: Watching) -> Result<Exit, Failure> {
        let faults = self.faults.read(FaultTransport::Http)?;
        let (url, launch) = self.addressed(url)?;
        let endpoint = Endpoint { url: url.clone(), headers: self.header.clone() };
        let target = Target::Http { endpoint, kind: None, launch, locate: None };
        let recording = Recording::begin(&self.recorded(&target), self.secrets(&target), watching)?;
        let network = self.network.network()?;
        let limits = self.network.limits().limits();
        let tap = recording.new_session();
        conversation::run(async {
            let mut interrupts = Interrupts::new()?;
            let unusable = |message: String| Failure::bad_input("bad-url", message);
            let relay = HttpRelay::new(&url, &self.header, limits, &network, &tap).map_err(|failure| unusable(failure.to_string()))?;
            let relay = relay.disturbed(faults.as_ref().map(|faults| faults.injector.clone()));
            let cannot = |error: std::io::Error| Failure::cannot_listen(address, &error);
            let listener = RelayListener::bind(address).await.map_err(cannot)?;
            let server = tokio::select! {
                server = self.start_http(&target, &tap, &network) => server?,
                _ = interrupts.next() => return Ok(()),
            };
            output::talk(&format!("mcproof proxy: listening on {}\n", listener.url_of(&url)));
            if !listener.is_loopback() {
                output::talk("warning: clients on other machines can use the server through this address\n");
            }
            tokio::select! {
                served = relay.serve(listener) => match served {
                    Err(error) => Err(cannot(error)),
                    Ok(never) => match never {},
                },
                _ = interrupts.next() => Ok(()),
            }?;
            if let Some(server) = server {
                server.close_within(ShutdownTimeouts::default()).await;
            }
            Ok(())
        })??;
        if let Some(faults) = &faults {
            faults.tell();
        }
        recording.finish()
    }

    /// Starts the server behind a URL, if there is a command for it.
    async fn start_http(
        &self,
        target: &Target,
        tap: &Tap,
        network: &mcproof_client::Network,
    ) -> Result<Option<mcproof_client::Session>, Failure> {
        if self.command.is_empty() {
            return Ok(None);
        }
        let options = ConnectOptions {
            timeout: Some(STARTUP),
            startup: Startup::Over,
            network: network.clone(),
            guardian: Guardian::of_whole_process(),
            ..ConnectOptions::default()
        };
        let opened = open_bare(target, Transport::Http, "2025-11-25", &options, tap).await;
        opened.map(Some).map_err(|failure| {
            Failure::new(Exit::Unreachable, mcproof_record::Diagnostic::error("server-not-started", failure.to_string()))
        })
    }

    /// The URL with its port, and the command that starts a server there, if there is one.
    fn addressed(&self, url: &str) -> Result<(Url, Option<Launch>), Failure> {
        let port = if url.contains(PORT) || self.command.iter().any(|word| word.contains(PORT)) { Some(free_port()?) } else { None };
        let url = port.as_ref().map_or_else(|| url.to_owned(), |port| url.replace(PORT, port));
        let url = parse_url(&url)?;
        Ok((url, (!self.command.is_empty()).then(|| self.launch(port.as_deref()))))
    }

    fn without_faults(&self) -> Result<(), Failure> {
        match self.faults.read(FaultTransport::Http)? {
            None => Ok(()),
            Some(_) => Err(Failure::unsupported("faults between two transports")
                .hint("put another proxy before this one, and give it the faults: mcproof proxy --fault … -- mcproof proxy URL")),
        }
    }

    fn launch(&self, port: Option<&str>) -> Launch {
        let filled = |text: &String| port.map_or_else(|| text.clone(), |port| text.replace(PORT, port));
        Launch {
            command: self.command.iter().map(filled).collect(),
            env: self.env.iter().map(|(name, value)| (name.clone(), filled(value))).collect(),
            folder: self.cwd.clone(),
            surroundings: BaseEnvironment::Ours,
        }
    }

    fn secrets(&self, target: &Target) -> Vec<String> {
        let mut secrets = target.secrets();
        secrets.extend(given_secrets(&self.env, &self.header));
        secrets.extend(inherited_secrets(&settings::variables()));
        secrets
    }

    fn recorded(&self, target: &Target) -> recording::Recorded {
        let (transport, server) = match target {
            Target::Stdio(_) => ("stdio", self.command.join(" ")),
            Target::Http { endpoint, .. } => ("http", endpoint.url.to_string()),
        };
        recording::Recorded {
            transport: transport.into(),
            server,
            started: crate::recording::started(target),
            faults: recording::RecordedFaults { words: self.faults.words(), seed: self.faults.seed(), file: self.faults.file() },
            trace: match (&self.trace, self.no_trace) {
                (_, true) => recording::TracePlace::Nowhere,
                (Some(path), false) => recording::TracePlace::Given(path.clone()),
                (None, false) => recording::TracePlace::StateFolder,
            },
            bounds: self.network.limits().tap_bounds(),
            fail_on: self.fail_on,
        }
    }
}

/// Stands for a free port.
const PORT: &str = "${port}";

fn free_port() -> Result<String, Failure> {
    let port = mcproof_client::free_port().map(|port| port.to_string());
    port.map_err(|error| Failure::bad_input("no-port", format!("no free port: {error}")).hint("replace `${port}` with a port"))
}

fn unreachable_server(failure: &RelayFailure) -> Failure {
    let code = match failure {
        RelayFailure::NotFound { .. } => "command-not-found",
        RelayFailure::NoFolder(_) => "no-such-folder",
        RelayFailure::NotStarted { .. } | RelayFailure::System(_) => "server-not-started",
    };
    Failure::new(Exit::Unreachable, mcproof_record::Diagnostic::error(code, failure.to_string()))
}
