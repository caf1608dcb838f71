//! `mcproof drive`: the driver of test libraries for other languages, over stdin and stdout. Finds targets as all commands do.

use crate::authorization::browser::Consent;
use crate::conversation::{self, Interrupts};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::network::NetworkArgs;
use crate::target::{self, Resolved, TargetArgs, Words};
use crate::{output, settings};
use mcproof_check::HostStart;
use mcproof_client::{Target, inherited_secrets};
use mcproof_drive::{Output, ResolvedTarget, Settings, TargetRequest, TargetResolver};
use mcproof_record::Diagnostic;
use std::io;
use tokio::task::LocalSet;

/// Run the driver of the test libraries, as JSON-RPC over stdio
///
/// Test libraries start this command. docs/drive.md describes the protocol, and `mcproof schema drive` prints the schema of its messages.
/// All servers that it has started end when its stdin is closed.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    network: NetworkArgs,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let network = &arguments.network;
    // Unreadable files are reported before any request.
    network.network()?;
    let resolver = Box::new(Resolver(TargetArgs::of_network(network)));
    let settings = Settings {
        limits: network.limits().limits(),
        tap: network.limits().tap_bounds(),
        secrets: inherited_secrets(&settings::variables()),
        talk: output::talk,
    };
    let output = Output { write, write_at_once: output::data_at_once, is_pipe: output::stdout_is_pipe() };
    conversation::run(LocalSet::new().run_until(async {
        let mut interrupts = Interrupts::new()?;
        let interrupt = mcproof_drive::serve(output, resolver, settings, async || interrupts.next().await).await;
        let interrupt = interrupt.map_err(|error| Failure::bad_input("no-thread", format!("cannot start a thread: {error}")))?;
        Ok(interrupt.unwrap_or(Exit::Passed))
    }))?
}

fn write(bytes: &[u8]) -> io::Result<()> {
    output::data(bytes).map_err(|failure| io::Error::other(failure.diagnostic.message))
}

/// Finds servers as if they were typed behind these flags.
struct Resolver(TargetArgs);

impl Resolver {
    /// What would have been typed: the words, and the flags.
    fn typed(&self, wanted: TargetRequest) -> Result<(Vec<String>, TargetArgs), Diagnostic> {
        let starts = !wanted.command.is_empty();
        let (words, server_url): (Vec<String>, Option<String>) = match wanted.url {
            Some(url) if starts => (vec![url], None),
            url => (Vec::new(), url),
        };
        let mut arguments = self.0.clone();
        arguments.command = wanted.command;
        arguments.server = wanted.server;
        arguments.server_url = server_url;
        arguments.config = wanted.config;
        arguments.env = wanted.env;
        arguments.cwd = wanted.cwd;
        arguments.header = wanted.headers.iter().map(check_header).collect::<Result<_, _>>()?;
        arguments.transport = wanted.transport;
        arguments.era = wanted.era;
        arguments.protocol_version = wanted.protocol_version;
        arguments.timeout = Some(wanted.timeout);
        arguments.connect_timeout = wanted.connect_timeout;
        Ok((words, arguments))
    }
}

impl TargetResolver for Resolver {
    fn resolve(&self, wanted: TargetRequest) -> Result<ResolvedTarget, Diagnostic> {
        let (words, arguments) = self.typed(wanted)?;
        let resolved = arguments.resolve_named(&words, Words::Name, &Consent::AtTerminal).map_err(|failure| *failure.diagnostic)?;
        let Resolved { target, options, secrets, timeout, tap, .. } = resolved;
        Ok(ResolvedTarget { target, options, secrets, timeout, tap })
    }

    fn host_start(&self, wanted: TargetRequest, target: &Target) -> Option<HostStart> {
        let (words, arguments) = self.typed(wanted).ok()?;
        arguments.host_start(&words, target)
    }
}

fn check_header((name, value): &(String, String)) -> Result<(String, String), Diagnostic> {
    target::parse_header(&format!("{name}: {value}"))
        .map_err(|_| Diagnostic::error("bad-header", format!("`{name}` cannot be sent as a header")))
}
