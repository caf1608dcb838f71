//! HTTP+SSE of 2024-11-05: a stream at `/sse` that says first where to post, and brings every answer.

use super::http::{Exchange, is_json, with_cors};
use super::message::{INVALID_REQUEST, MessageKind, Outlet, PARSE_ERROR, kind};
use super::reply::Stream;
use super::response::Response;
use super::{Received, RpcError, Server, batch, dispatch, note};
use crate::zoo::InternalDeviation;
use mcproof_protocol::Era;
use serde_json::Value;
use std::io;
use std::sync::Arc;

pub(super) const PATH: &str = "/sse";
const MESSAGES: &str = "/messages";

pub(super) fn route(exchange: &Exchange<'_>) -> io::Result<bool> {
    match (exchange.request.path().trim_end_matches('/'), exchange.request.method.as_str()) {
        (PATH, "GET") => open(exchange),
        (MESSAGES, "POST") => post(exchange),
        (PATH | MESSAGES, _) => exchange.not_allowed(),
        _ => exchange.send(Response::text(404, "there is nothing here")),
    }
}

fn open(exchange: &Exchange<'_>) -> io::Result<bool> {
    let (server, connection) = (exchange.server, exchange.connection);
    let opened = with_cors(Response::events(), exchange.request).send(server, exchange.request, connection)?;
    if !opened.streams {
        return Ok(opened.keeps);
    }
    let session = server.open_session();
    let stream = Arc::new(Stream::new(server, connection)?);
    session.attach(Arc::<Stream>::clone(&stream));
    let host = exchange.request.header("host").unwrap_or_default();
    stream.write(&server.deviation.endpoint(host, &format!("{MESSAGES}?session={}", session.id)));
    stream.stay(connection, || session.has_ended())?;
    server.end_session(&session.id);
    Ok(false)
}

fn post(exchange: &Exchange<'_>) -> io::Result<bool> {
    let (server, request) = (exchange.server, exchange.request);
    let id = request.target.split_once("session=").map(|(_, id)| id).unwrap_or_default();
    let Ok(session) = server.session(id) else {
        return exchange.send(Response::text(404, "this session is not known"));
    };
    let Some(outlet) = session.outlet() else {
        return exchange.send(Response::text(404, "this session is over"));
    };
    if !is_json(server, request) {
        return exchange.send(Response::text(415, "messages are application/json"));
    }
    server.deviation.raw(&request.body);
    let refuse = |fault: &RpcError| exchange.send(Response::text(400, &fault.message));
    let mut message = match serde_json::from_slice::<Value>(server.deviation.readable(&request.body)) {
        Ok(Value::Array(messages)) => {
            if let Err(fault) = batch::check(server, &session, &messages) {
                return refuse(&fault);
            }
            let keeps = exchange.send(Response::new(202))?;
            batch::answer_all(server, &session, messages, &outlet);
            return Ok(keeps);
        }
        Ok(message) => message,
        Err(error) => return refuse(&RpcError::new(PARSE_ERROR, format!("Parse error: {error}"))),
    };
    server.deviation.incoming(&mut message);
    let kind = match kind(&message) {
        Ok(kind) => kind,
        Err(fault) => return refuse(&RpcError::new(INVALID_REQUEST, fault.message)),
    };
    if kind == MessageKind::Request && message["method"] == "initialize" && server.deviates(InternalDeviation::AnswersGoToTheLast) {
        *server.memory() = Value::from(session.id.clone());
    }
    let outlet = misled(server).unwrap_or(outlet);
    let version = session.version().unwrap_or_default();
    let received = Received { server: Arc::clone(server), session, message, era: Era::Legacy, version };
    let keeps = exchange.send(Response::new(202))?;
    if kind == MessageKind::Request {
        drop(dispatch(received, &outlet))
    } else {
        note(&received, kind)
    }
    Ok(keeps)
}

/// Where responses go instead of to the client that asked.
fn misled(server: &Server) -> Option<Arc<dyn Outlet>> {
    if server.deviates(InternalDeviation::AnswersGoToAll) {
        let all = server.all_sessions().into_iter().filter_map(|session| session.outlet()).collect();
        return Some(Arc::new(Everybody(all)));
    }
    let last = server.memory().as_str().map(str::to_owned).filter(|_| server.deviates(InternalDeviation::AnswersGoToTheLast))?;
    server.session(&last).ok()?.outlet()
}

/// All clients that are there.
struct Everybody(Vec<Arc<dyn Outlet>>);

impl Outlet for Everybody {
    fn send(&self, message: &Value) -> bool {
        self.0.iter().filter(|outlet| outlet.send(message)).count() > 0
    }
}
