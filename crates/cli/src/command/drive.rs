//! `mcproof drive`: the driver of test libraries for other languages, over stdin and stdout.

use crate::conversation;
use crate::drive;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::network::NetworkArgs;

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
    conversation::run(tokio::task::LocalSet::new().run_until(drive::serve(&arguments.network)))?
}
