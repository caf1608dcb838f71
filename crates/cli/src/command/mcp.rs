//! `mcproof mcp`: the commands as an MCP server, for coding agents that test the server that they write.

mod job;
mod journal;
mod limits;
mod server;
mod tool_output;
mod tools;

use crate::conversation::{self, Interrupts};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::settings;
use limits::LimitArgs;
use mcproof_demo::patient::{Phase, serve_transport};
use mcproof_record::Diagnostic;
use rmcp::transport::async_rw::AsyncRwTransport;
use server::Server;
use std::io::ErrorKind;

/// Serve these commands to coding agents, as an MCP server over stdio
#[derive(Debug, clap::Args)]
#[command(after_help = "Example for .mcp.json:
  { \"mcpServers\": { \"mcproof\": { \"command\": \"mcproof\", \"args\": [\"mcp\"] } } }

To restrict an agent that reads untrusted content to this project, use
  \"args\": [\"mcp\", \"--folder\", \".\", \"--allow-command\", \"node server.js*\"]")]
pub(crate) struct Arguments {
    #[command(flatten)]
    limits: LimitArgs,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let limits = arguments.limits.limits()?;
    let binary = settings::own_binary().ok_or_else(|| Failure::bad_input("no-binary", "cannot find the mcproof executable"))?;
    conversation::run(async {
        let mut interrupts = Interrupts::new()?;
        let mut stopped = None;
        let stop = async { stopped = Some(interrupts.next().await) };
        let phase = Phase::default();
        let (input, output) = rmcp::transport::stdio_pipes();
        let server = Server::new(binary, phase.clone(), limits);
        let served = serve_transport(server, phase, AsyncRwTransport::new_server(input, output), stop).await;
        match served {
            // A client that is gone has ended us, as clients do.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(Failure::new(Exit::Failed, Diagnostic::error("transport-failed", format!("connection to the client failed: {error}"))))
            }
            _ => Ok(stopped.unwrap_or(Exit::Passed)),
        }
    })?
}
