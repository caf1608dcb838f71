//! HTTP responses, up to their bytes. Knows the deviations of heads and bodies, and no MCP.

use super::Server;
use crate::raw_http::Request;
use serde_json::Value;
use std::io::{self, Write as _};
use std::net::TcpStream;

/// A response that has not been sent.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Body,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Bytes(Vec<u8>),
    /// Events that follow.
    Events,
}

/// A piece of a response, as it goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Status line and headers, with the empty line.
    Head,
    /// A whole body.
    Body,
    /// A chunk of an event stream, with its size.
    Chunk,
    /// The chunk of no size that ends a stream.
    End,
}

/// What has become of a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// The connection can take another request.
    pub(super) keeps: bool,
    /// Events are to follow.
    pub(super) streams: bool,
}

impl Response {
    pub(crate) fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::Bytes(Vec::new()) }
    }

    pub(crate) fn json(status: u16, value: &Value) -> Self {
        Self::json_text(status, value.to_string())
    }

    /// The same from its text.
    pub(crate) fn json_text(status: u16, text: String) -> Self {
        Self { body: Body::Bytes(text.into_bytes()), ..Self::new(status).with("content-type", "application/json") }
    }

    pub(crate) fn text(status: u16, text: &str) -> Self {
        Self { body: Body::Bytes(text.as_bytes().to_vec()), ..Self::new(status).with("content-type", "text/plain; charset=utf-8") }
    }

    /// An event stream. It may not wait in a proxy.
    pub(crate) fn events() -> Self {
        let headers = Self::new(200).with("content-type", "text/event-stream").with("cache-control", "no-cache");
        Self { body: Body::Events, ..headers.with("x-accel-buffering", "no").with("transfer-encoding", "chunked") }
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.remove(name);
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.headers.retain(|(known, _)| known != name);
    }

    /// Whether this is an event stream.
    pub(crate) fn streams(&self) -> bool {
        self.body == Body::Events
    }

    /// Sends the head, and the body if it is complete.
    pub(super) fn send(mut self, server: &Server, request: &Request, mut connection: &TcpStream) -> io::Result<Sent> {
        server.deviation.response(request, &mut self);
        let body = match &self.body {
            Body::Bytes(bytes) => bytes.clone(),
            Body::Events => Vec::new(),
        };
        // No response with this status has a body, and so it has no length (RFC 9110, 8.6).
        if !self.streams() && self.status != 204 && self.header("content-length").is_none() && self.header("transfer-encoding").is_none() {
            self.set("content-length", &body.len().to_string());
        }
        let lasting = match self.header("content-length") {
            Some(length) => length.parse() == Ok(body.len()),
            None => self.status == 204 || self.header("transfer-encoding").is_some(),
        };
        let closes = self.header("connection") == Some("close") || request.is_last();
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status)).into_bytes();
        for (name, value) in &self.headers {
            head.extend(format!("{name}: {value}\r\n").bytes());
        }
        head.extend(b"\r\n");
        let mut bytes = server.deviation.wire(Part::Head, head);
        if !self.streams() {
            bytes.extend(server.deviation.wire(Part::Body, body));
        }
        connection.write_all(&bytes)?;
        Ok(Sent {
            keeps: lasting && !closes && !server.deviates(crate::zoo::InternalDeviation::ConnectionsCloseUnsaid),
            streams: self.streams(),
        })
    }
}

/// A piece of an event stream, as a chunk.
pub(super) fn chunk(server: &Server, bytes: &[u8]) -> Vec<u8> {
    let framed = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    server.deviation.wire(Part::Chunk, framed)
}

/// The end of an event stream.
pub(super) fn last_chunk(server: &Server) -> Vec<u8> {
    server.deviation.wire(Part::End, b"0\r\n\r\n".to_vec())
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        _ => "Other",
    }
}
