//! `mcproof drive`: serves the test libraries of other languages over stdin and stdout.

use crate::conversation;
use crate::drive;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::network::NetworkArgs;

/// Serve a test library: sessions, calls and judgement as JSON-RPC over stdin and stdout
///
/// Test libraries start it; docs/drive.md is its protocol, and `mcproof schema drive` the schema of its messages. Everything
/// that it has started ends when its stdin is closed.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    network: NetworkArgs,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    conversation::run(tokio::task::LocalSet::new().run_until(drive::serve(&arguments.network)))?
}
