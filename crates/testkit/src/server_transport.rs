//! The transports of the raw servers, as in their command lines. Knows no server.

use std::net::{Ipv4Addr, TcpListener};

/// The transport, and its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerTransport {
    Stdio,
    /// Streamable HTTP on this port of 127.0.0.1.
    Http(u16),
    /// HTTP+SSE on this port of 127.0.0.1.
    Sse(u16),
}

impl ServerTransport {
    /// Reads `--stdio`, `--http PORT` or `--sse PORT`, and returns the remaining arguments.
    pub(crate) fn parse<'a, 'b>(words: &'a [&'b str]) -> Option<(Self, &'a [&'b str])> {
        match words {
            ["--stdio", rest @ ..] => Some((Self::Stdio, rest)),
            ["--http", port, rest @ ..] => Some((Self::Http(port.parse().ok()?), rest)),
            ["--sse", port, rest @ ..] => Some((Self::Sse(port.parse().ok()?), rest)),
            _ => None,
        }
    }
}

/// A port of 127.0.0.1 on which nothing listens now.
///
/// # Panics
/// None is free.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    listener.and_then(|listener| listener.local_addr()).expect("a port of 127.0.0.1 is free").port()
}
