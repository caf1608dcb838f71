//! Twists: the points at which the correct server can be changed. Knows no animal.

use super::Slip;
use super::mutation::Meddler;
use super::server::{Catalogue, Heard, Part, Response, Server};
use crate::raw_http::Request;
use crate::reach::Reach;
use serde_json::Value;
use std::io;
use uuid::Uuid;

/// One change of the server. What a function gets is what the correct server would do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Twist {
    Nothing,
    /// What is offered.
    Catalogue(fn(&mut Catalogue)),
    /// The bytes of a message of the client, before anybody reads it.
    Raw(fn(&[u8])),
    /// A message of the client, before anything is done about it.
    Hears(fn(&mut Value)),
    /// What is said before a request is worked on, or upon a notification.
    Unasked(fn(&Heard) -> Vec<Value>),
    /// A message to the client; it may become none or several.
    Says(fn(&Heard, Value) -> Vec<Value>),
    /// The same, of a server with the fixtures of the official conformance suite.
    Fixtures(fn(&Heard, Value) -> Vec<Value>),
    /// The answer with the list of tools.
    Tools(fn(&mut Value)),
    /// The error in an answer.
    Errors(fn(&mut Value)),
    /// The result of a method.
    Result(&'static str, fn(&Heard, &mut Value)),
    /// A message and its JSON, as the bytes of a line.
    Line(fn(&Value, String) -> Vec<u8>),
    /// A message and its JSON, as the bytes of an event.
    Event(fn(&Value, String) -> Vec<u8>),
    /// The first event of HTTP+SSE, from the host and the path of the endpoint.
    Endpoint(fn(&str, &str) -> Vec<u8>),
    SessionId(fn(&Server) -> String),
    /// A response before anything was looked at.
    Refuses(fn(&Request) -> Option<Response>),
    /// A response before it goes out.
    Response(fn(&Request, &mut Response)),
    /// The same, of a server that wants a token.
    Guarded(fn(&Request, &mut Response)),
    /// The bytes of a response.
    Wire(fn(Part, Vec<u8>) -> Vec<u8>),
    /// What happens before the server listens.
    Start(fn(Reach) -> io::Result<()>),
    /// What happens when stdin has ended.
    End(fn()),
    Slip(Slip),
    /// One thing is changed mechanically.
    Mutated(&'static Meddler),
}

impl Twist {
    pub(crate) fn start(&self, reach: Reach) -> io::Result<()> {
        match self {
            Self::Start(change) => change(reach),
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

    pub(crate) fn hears(&self, message: &mut Value) {
        if let Self::Hears(change) = self {
            change(message);
        }
    }

    pub(crate) fn unasked(&self, heard: &Heard) -> Vec<Value> {
        match self {
            Self::Unasked(change) => change(heard),
            _ => Vec::new(),
        }
    }

    pub(crate) fn said(&self, heard: &Heard, mut message: Value) -> Vec<Value> {
        match self {
            Self::Says(change) | Self::Fixtures(change) => return change(heard, message),
            Self::Mutated(meddler) => return meddler.said(heard, message),
            Self::Tools(change) if message["result"]["tools"].is_array() => change(&mut message),
            Self::Errors(change) if message.get("error").is_some() => change(&mut message["error"]),
            Self::Result(method, change) if heard.method() == *method && message.get("result").is_some() => {
                change(heard, &mut message["result"]);
            }
            _ => {}
        }
        vec![message]
    }

    /// What was said has gone out.
    pub(crate) fn spoken(&self) {
        if let Self::Mutated(_) = self {
            Meddler::spoken();
        }
    }

    /// The text of a message that is a body.
    pub(crate) fn body(&self, message: &Value) -> String {
        match self {
            Self::Mutated(meddler) => meddler.body(message),
            _ => message.to_string(),
        }
    }

    pub(crate) fn has_fixtures(&self) -> bool {
        match self {
            Self::Fixtures(_) => true,
            Self::Mutated(meddler) => meddler.has_fixtures,
            _ => false,
        }
    }

    pub(crate) fn line(&self, message: &Value) -> Vec<u8> {
        match self {
            Self::Mutated(meddler) => meddler.line(message),
            Self::Line(change) => change(message, message.to_string()),
            _ => line(&message.to_string()),
        }
    }

    pub(crate) fn event(&self, message: &Value) -> Vec<u8> {
        match self {
            Self::Event(change) => change(message, message.to_string()),
            Self::Mutated(meddler) => meddler.event(message),
            _ => event(&message.to_string()),
        }
    }

    pub(crate) fn endpoint(&self, host: &str, path: &str) -> Vec<u8> {
        match self {
            Self::Endpoint(change) => change(host, path),
            Self::Mutated(meddler) => meddler.endpoint(path),
            _ => endpoint(path),
        }
    }

    pub(crate) fn session_id(&self, server: &Server) -> String {
        match self {
            Self::SessionId(change) => change(server),
            _ => Uuid::new_v4().to_string(),
        }
    }

    pub(crate) fn refused(&self, request: &Request) -> Option<Response> {
        match self {
            Self::Refuses(change) => change(request),
            _ => None,
        }
    }

    pub(crate) fn response(&self, request: &Request, response: &mut Response) {
        match self {
            Self::Response(change) | Self::Guarded(change) => change(request, response),
            Self::Mutated(meddler) => meddler.response(request, response),
            _ => {}
        }
    }

    pub(crate) fn wire(&self, part: Part, bytes: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Wire(change) => change(part, bytes),
            Self::Mutated(meddler) => meddler.wire(part, bytes),
            _ => bytes,
        }
    }

    /// Whether the server wants a token.
    pub(crate) fn guards(&self) -> bool {
        match self {
            Self::Guarded(_) | Self::Slip(Slip::AnyTokenIsGood) => true,
            Self::Mutated(meddler) => meddler.guards,
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

/// The event that tells where to post.
pub(crate) fn endpoint(path: &str) -> Vec<u8> {
    format!("event: endpoint\ndata: {path}\n\n").into_bytes()
}

/// Ends the process at once, from any thread.
#[expect(clippy::exit, reason = "servers that crash are what some rows are about")]
pub(crate) fn die(code: i32) -> ! {
    std::process::exit(code)
}
