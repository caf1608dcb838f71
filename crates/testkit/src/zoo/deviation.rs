//! Deviations: the points at which the correct server can be changed. Knows no single broken server.

use super::InternalDeviation;
use super::mutation::Mutator;
use super::server::{Catalogue, Part, Received, Response, Server};
use crate::raw_http::Request;
use crate::server_transport::ServerTransport;
use serde_json::Value;
use std::io;
use uuid::Uuid;

/// One change of the server. Functions get what the correct server would do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deviation {
    Nothing,
    /// What is offered.
    Catalogue(fn(&mut Catalogue)),
    /// The bytes of a message of the client, before it is parsed.
    Raw(fn(&[u8])),
    /// The bytes of a message of the client that the server cannot read.
    Unread(fn(&[u8]) -> bool),
    /// A message of the client, before it is handled.
    Incoming(fn(&mut Value)),
    /// Messages that are sent before a request is handled, or on a notification.
    Extra(fn(&Received) -> Vec<Value>),
    /// A message to the client; it may be dropped or become several.
    Outgoing(fn(&Received, Value) -> Vec<Value>),
    /// The same, of a server with the fixtures of the official conformance suite.
    Fixtures(fn(&Received, Value) -> Vec<Value>),
    /// The response with the list of tools.
    Tools(fn(&mut Value)),
    /// The error in a response.
    Errors(fn(&mut Value)),
    /// The result of a method.
    Result(&'static str, fn(&Received, &mut Value)),
    /// A message and its JSON, as the bytes of a line.
    Line(fn(&Value, String) -> Vec<u8>),
    /// A message and its JSON, as the bytes of an event.
    Event(fn(&Value, String) -> Vec<u8>),
    /// The first event of HTTP+SSE, from the host and the path of the endpoint.
    Endpoint(fn(&str, &str) -> Vec<u8>),
    SessionId(fn(&Server) -> String),
    /// An HTTP response before the request is checked.
    Rejects(fn(&Request) -> Option<Response>),
    /// An HTTP response before it is sent.
    Response(fn(&Request, &mut Response)),
    /// The same, of a server that requires a token.
    Guarded(fn(&Request, &mut Response)),
    /// The bytes of an HTTP response.
    Wire(fn(Part, Vec<u8>) -> Vec<u8>),
    /// What happens before the server listens.
    Start(fn(ServerTransport) -> io::Result<()>),
    /// What happens when stdin has ended.
    End(fn()),
    Internal(InternalDeviation),
    /// One thing is changed mechanically.
    Mutated(&'static Mutator),
}

impl Deviation {
    pub(crate) fn start(&self, transport: ServerTransport) -> io::Result<()> {
        match self {
            Self::Start(change) => change(transport),
            _ => Ok(()),
        }
    }

    pub(crate) fn end(&self) {
        if let Self::End(change) = self {
            change();
        }
    }

    pub(crate) fn raw(&self, bytes: &[u8]) {
        if let Self::Raw(change) = self {
            change(bytes);
        }
    }

    /// What the server reads of the bytes of a message.
    pub(crate) fn readable<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        match self {
            Self::Unread(is_unread) if is_unread(bytes) => b"?",
            _ => bytes,
        }
    }

    pub(crate) fn incoming(&self, message: &mut Value) {
        if let Self::Incoming(change) = self {
            change(message);
        }
    }

    pub(crate) fn extra(&self, received: &Received) -> Vec<Value> {
        match self {
            Self::Extra(change) => change(received),
            _ => Vec::new(),
        }
    }

    pub(crate) fn outgoing(&self, received: &Received, mut message: Value) -> Vec<Value> {
        match self {
            Self::Outgoing(change) | Self::Fixtures(change) => return change(received, message),
            Self::Mutated(mutator) => return mutator.outgoing(received, message),
            Self::Tools(change) if message["result"]["tools"].is_array() => change(&mut message),
            Self::Errors(change) if message.get("error").is_some() => change(&mut message["error"]),
            Self::Result(method, change) if received.method() == *method && message.get("result").is_some() => {
                change(received, &mut message["result"]);
            }
            _ => {}
        }
        vec![message]
    }

    /// The message was sent.
    pub(crate) fn message_sent(&self) {
        if let Self::Mutated(_) = self {
            Mutator::message_sent();
        }
    }

    /// The text of a message that is an HTTP body.
    pub(crate) fn body(&self, message: &Value) -> String {
        match self {
            Self::Mutated(mutator) => mutator.body(message),
            _ => message.to_string(),
        }
    }

    pub(crate) fn has_fixtures(&self) -> bool {
        match self {
            Self::Fixtures(_) => true,
            Self::Mutated(mutator) => mutator.has_fixtures,
            _ => false,
        }
    }

    pub(crate) fn line(&self, message: &Value) -> Vec<u8> {
        match self {
            Self::Mutated(mutator) => mutator.line(message),
            Self::Line(change) => change(message, message.to_string()),
            _ => line(&message.to_string()),
        }
    }

    pub(crate) fn event(&self, message: &Value) -> Vec<u8> {
        match self {
            Self::Event(change) => change(message, message.to_string()),
            Self::Mutated(mutator) => mutator.event(message),
            _ => event(&message.to_string()),
        }
    }

    pub(crate) fn endpoint(&self, host: &str, path: &str) -> Vec<u8> {
        match self {
            Self::Endpoint(change) => change(host, path),
            Self::Mutated(mutator) => mutator.endpoint(path),
            _ => endpoint(path),
        }
    }

    pub(crate) fn session_id(&self, server: &Server) -> String {
        match self {
            Self::SessionId(change) => change(server),
            _ => Uuid::new_v4().to_string(),
        }
    }

    pub(crate) fn rejected(&self, request: &Request) -> Option<Response> {
        match self {
            Self::Rejects(change) => change(request),
            _ => None,
        }
    }

    pub(crate) fn response(&self, request: &Request, response: &mut Response) {
        match self {
            Self::Response(change) | Self::Guarded(change) => change(request, response),
            Self::Mutated(mutator) => mutator.response(request, response),
            _ => {}
        }
    }

    pub(crate) fn wire(&self, part: Part, bytes: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Wire(change) => change(part, bytes),
            Self::Mutated(mutator) => mutator.wire(part, bytes),
            _ => bytes,
        }
    }

    /// Whether the server requires a token.
    pub(crate) fn guards(&self) -> bool {
        match self {
            Self::Guarded(_) | Self::Internal(InternalDeviation::AnyTokenIsGood) => true,
            Self::Mutated(mutator) => mutator.guards,
            _ => false,
        }
    }
}

/// A message as a line.
pub(crate) fn line(json: &str) -> Vec<u8> {
    format!("{json}\n").into_bytes()
}

/// A message as an event.
pub(crate) fn event(json: &str) -> Vec<u8> {
    format!("event: message\ndata: {json}\n\n").into_bytes()
}

/// The event with the URL for POST requests.
pub(crate) fn endpoint(path: &str) -> Vec<u8> {
    format!("event: endpoint\ndata: {path}\n\n").into_bytes()
}

/// Ends the process at once, from any thread.
#[expect(clippy::exit, reason = "some broken servers crash")]
pub(crate) fn die(code: i32) -> ! {
    std::process::exit(code)
}
