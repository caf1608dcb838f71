//! Hostile servers: raw bytes on a real wire, without an SDK, each with one attack on its client. All handle `initialize`
//! correctly; the attack follows on `tools/list`. Knows enough MCP for that, and no client.

mod attacks;
mod http;
mod wire;

use attacks::{Reaction, reaction};
use mcproof_protocol::Transport;
use std::io::{self, BufRead as _};
use wire::{Framing, Wire};

pub use crate::server_transport::ServerTransport;
pub use attacks::{HostileServer, hostile_servers};

/// The command line names no hostile server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("usage: hostile NAME --stdio | --http PORT | --sse PORT, where NAME is one of {}", names())]
pub struct Usage;

fn names() -> String {
    hostile_servers().iter().map(|peer| peer.name).collect::<Vec<_>>().join(", ")
}

/// Reads `NAME --stdio`, `NAME --http PORT` or `NAME --sse PORT`; other arguments only mark the process. They
/// respond at every path.
///
/// # Errors
/// The command line has another form.
pub fn parse(arguments: &[String]) -> Result<(&'static HostileServer, ServerTransport), Usage> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (name, words) = words.split_first().ok_or(Usage)?;
    let (transport, _) = ServerTransport::parse(words).ok_or(Usage)?;
    hostile_servers().iter().find(|peer| peer.name == *name).map(|peer| (peer, transport)).ok_or(Usage)
}

/// Runs that server until its client disconnects, or longer: the client has to stop it.
///
/// # Errors
/// The client has disconnected, or the port is in use.
pub fn run(peer: &'static HostileServer, transport: ServerTransport) -> io::Result<()> {
    match transport {
        ServerTransport::Stdio => over_stdio(peer),
        ServerTransport::Http(port) => http::serve(peer, port, Transport::Http),
        ServerTransport::Sse(port) => http::serve(peer, port, Transport::Sse),
    }
}

fn over_stdio(peer: &HostileServer) -> io::Result<()> {
    let mut wire = Wire::new(Box::new(io::stdout()), Framing::Lines);
    let mut line = String::new();
    while io::stdin().lock().read_line(&mut line)? > 0 {
        match reaction(peer, line.as_bytes()) {
            Reaction::Nothing => {}
            Reaction::Respond(answer) => wire.send(&answer)?,
            Reaction::Attack(id) => (peer.attack)(&mut wire, id)?,
        }
        line.clear();
    }
    Ok(())
}
