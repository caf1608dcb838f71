//! Over stdin and stdout: a message on each line. Ends when stdin does.

use super::message::{INVALID_REQUEST, MessageKind, PARSE_ERROR, kind, readable_id};
use super::session::{MODERN, Session};
use super::{Outlet, Received, RpcError, Server, batch, dispatch, modern, note};
use crate::zoo::InternalDeviation;
use mcproof_protocol::Era;
use serde_json::Value;
use std::io::{self, BufRead, Write as _};
use std::sync::Arc;
use std::thread::JoinHandle;

struct Lines(Arc<Server>);

impl Outlet for Lines {
    fn send(&self, message: &Value) -> bool {
        let bytes = self.0.deviation.line(message);
        let mut out = io::stdout().lock();
        out.write_all(&bytes).and_then(|()| out.flush()).is_ok()
    }
}

pub(super) fn serve(server: &Arc<Server>) -> io::Result<()> {
    let outlet: Arc<dyn Outlet> = Arc::new(Lines(Arc::clone(server)));
    let session = server.open_session();
    session.attach(Arc::clone(&outlet));
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    let mut working: Vec<JoinHandle<()>> = Vec::new();
    while read_line(server, &mut input, &mut line)? > 0 {
        working.retain(|thread| !thread.is_finished());
        working.extend(hear(server, &session, line.trim_ascii(), &outlet));
        line.clear();
    }
    server.cancel_all();
    for thread in working {
        // A deviation that panics is none; the thread has said why on stderr.
        let _ = thread.join();
    }
    server.deviation.end();
    Ok(())
}

/// Adds the next line, and says how many bytes it has.
fn read_line(server: &Server, input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<usize> {
    if !server.deviates(InternalDeviation::DecodesEachRead) {
        return input.read_until(b'\n', line);
    }
    let mut count = 0;
    loop {
        let read = input.fill_buf()?;
        let end = read.iter().position(|byte| *byte == b'\n').map(|end| end + 1);
        let used = end.unwrap_or(read.len());
        line.extend_from_slice(String::from_utf8_lossy(&read[..used]).as_bytes());
        input.consume(used);
        count += used;
        if end.is_some() || used == 0 {
            return Ok(count);
        }
    }
}

fn hear(server: &Arc<Server>, session: &Arc<Session>, line: &[u8], outlet: &Arc<dyn Outlet>) -> Option<JoinHandle<()>> {
    server.deviation.raw(line);
    if line.is_empty() {
        return None;
    }
    let mut message = match serde_json::from_slice::<Value>(server.deviation.readable(line)) {
        Ok(Value::Array(messages)) => {
            match batch::check(server, session, &messages) {
                Ok(()) => batch::answer_all(server, session, messages, outlet),
                Err(fault) => refuse(server, session, &fault, outlet),
            }
            return None;
        }
        Ok(message) => message,
        Err(error) => {
            refuse(server, session, &RpcError::new(PARSE_ERROR, format!("Parse error: {error}")), outlet);
            return None;
        }
    };
    server.deviation.incoming(&mut message);
    let kind = match kind(&message) {
        Ok(kind) => kind,
        Err(fault) => {
            match readable_id(&message) {
                Some(id) => drop(outlet.send(&fault.answer(Some(id)))),
                None => refuse(server, session, &fault, outlet),
            }
            return None;
        }
    };
    let era = era(server, session, &message, kind);
    let version = match era {
        Era::Modern => MODERN.to_owned(),
        Era::Legacy => session.version().unwrap_or_default(),
    };
    let received = Received { server: Arc::clone(server), session: Arc::clone(session), message, era, version };
    if kind != MessageKind::Request {
        note(&received, kind);
        return None;
    }
    if era == Era::Modern
        && let Err(fault) = check_modern(&received)
    {
        received.send(fault.answer(Some(received.id())), outlet.as_ref());
        return None;
    }
    dispatch(received, outlet)
}

/// "A request carrying modern per-request `_meta` is served statelessly; an `initialize` request selects legacy semantics,
/// scoped to the process" (2026-07-28, basic/versioning).
fn era(server: &Server, session: &Session, message: &Value, kind: MessageKind) -> Era {
    if !server.knows(Era::Modern) {
        return Era::Legacy;
    }
    let handshake = kind == MessageKind::Request && matches!(message["method"].as_str(), Some("initialize" | "ping"));
    let legacy = !modern::is_modern(message) && (handshake || session.version().is_some());
    if legacy && server.knows(Era::Legacy) { Era::Legacy } else { Era::Modern }
}

fn check_modern(received: &Received) -> Result<(), RpcError> {
    modern::check_handshake(&received.message)?;
    modern::check_meta(&received.message)?;
    modern::check_version(modern::version(&received.message).unwrap_or_default())
}

/// Refuses what has no id that could be read. Only two revisions can say so: in the others an error must have an id.
fn refuse(server: &Server, session: &Session, fault: &RpcError, outlet: &Arc<dyn Outlet>) {
    debug_assert!(matches!(fault.code, PARSE_ERROR | INVALID_REQUEST));
    if session.version().as_deref() == Some("2025-11-25") || !server.knows(Era::Legacy) {
        outlet.send(&fault.answer(None));
    }
}
