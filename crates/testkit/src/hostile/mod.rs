//! Hostile servers: raw bytes on a real wire, without an SDK, each with one way to hurt its client. All answer `initialize`
//! as they should; what follows when the tools are asked for is the deed. Knows enough of MCP to get there, and no client.

mod deeds;
mod http;
mod wire;

use deeds::{Deed, deed};
use std::io::{self, BufRead as _};
use wire::{Framing, Wire};

pub use crate::reach::Reach;
pub use deeds::{Peer, peers};

/// What was typed is no peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("usage: hostile NAME --stdio | --http PORT | --sse PORT, where NAME is one of {}", names())]
pub struct Usage;

fn names() -> String {
    peers().iter().map(|peer| peer.name).collect::<Vec<_>>().join(", ")
}

/// Reads `NAME --stdio`, `NAME --http PORT` or `NAME --sse PORT`; what follows marks the process and means nothing. They
/// answer at every path.
///
/// # Errors
/// It is none of these.
pub fn parse(arguments: &[String]) -> Result<(&'static Peer, Reach), Usage> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (name, words) = words.split_first().ok_or(Usage)?;
    let (reach, _) = Reach::parse(words).ok_or(Usage)?;
    peers().iter().find(|peer| peer.name == *name).map(|peer| (peer, reach)).ok_or(Usage)
}

/// Is that server until its client has gone, or longer: ending it is the client's concern.
///
/// # Errors
/// The client has gone, or the port is taken.
pub fn run(peer: &'static Peer, reach: Reach) -> io::Result<()> {
    match reach {
        Reach::Stdio => over_stdio(peer),
        Reach::Http(port) => http::serve(peer, port, http::Kind::Streamable),
        Reach::Sse(port) => http::serve(peer, port, http::Kind::Sse),
    }
}

fn over_stdio(peer: &Peer) -> io::Result<()> {
    let mut wire = Wire::new(Box::new(io::stdout()), Framing::Lines);
    let mut line = String::new();
    while io::stdin().lock().read_line(&mut line)? > 0 {
        match deed(peer, line.as_bytes()) {
            Deed::Nothing => {}
            Deed::Answer(answer) => wire.send(&answer)?,
            Deed::Attack(id) => (peer.attack)(&mut wire, id)?,
        }
        line.clear();
    }
    Ok(())
}
