//! The response to a POST of Streamable HTTP, which becomes a body or an event stream with the first message; and the
//! streams that a GET opens.

use super::message::{METHOD_NOT_FOUND, Outlet, is_response};
use super::response::{Response, Sent, chunk, last_chunk};
use super::{Ended, Server, http};
use crate::raw_http::Request;
use crate::zoo::InternalDeviation;
use serde_json::Value;
use std::io::{self, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often an open stream looks whether the client is still there.
const TICK: Duration = Duration::from_millis(50);
/// How often a stream that has nothing to say says so.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// What a client takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

/// The response to one POST.
pub(super) struct Reply {
    server: Arc<Server>,
    request: Arc<Request>,
    connection: TcpStream,
    accepts: Accepts,
    /// The answer is best told as an event, because other messages may come before it.
    prefers_events: bool,
    modern: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sent: Option<Sent>,
    answered: bool,
    /// The status of an answer that refuses a malformed request.
    refusal: Option<u16>,
    session: Option<String>,
    gone: bool,
}

impl Reply {
    pub(super) fn new(exchange: &http::Exchange<'_>, accepts: Accepts, prefers_events: bool, modern: bool) -> io::Result<Self> {
        let connection = exchange.connection.try_clone()?;
        let (server, request) = (Arc::clone(exchange.server), Arc::clone(exchange.request));
        Ok(Self { server, request, connection, accepts, prefers_events, modern, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer is a refusal of the request as a whole.
    pub(super) fn refuse_with(&self, status: u16) {
        self.state().refusal = Some(status);
    }

    /// The answer begins a session.
    pub(super) fn name_session(&self, id: &str) {
        self.state().session = Some(id.to_owned());
    }

    /// Ends the response, and says whether the connection can take another request.
    pub(super) fn finish(&self, ended: Ended) -> io::Result<bool> {
        let (sent, answered, gone) = {
            let state = self.state();
            (state.sent, state.answered, state.gone)
        };
        let Some(sent) = sent else {
            // A deviation has swallowed the answer, so that the client waits for it; what was cancelled just ends.
            if ended == Ended::Answered {
                wait_until_gone(&self.connection);
            }
            return Ok(false);
        };
        if !sent.streams {
            return Ok(sent.keeps);
        }
        let stays_open = self.server.deviates(InternalDeviation::StreamsStayOpen)
            || (self.server.deviates(InternalDeviation::StreamsOfCallsStayOpen) && crate::zoo::http::asks(&self.request, "tools/call"));
        if (!answered && ended == Ended::Answered) || stays_open {
            wait_until_gone(&self.connection);
            return Ok(false);
        }
        if gone {
            return Ok(false);
        }
        let end = last_chunk(&self.server);
        (&self.connection).write_all(&end)?;
        Ok(sent.keeps && !end.is_empty())
    }

    /// A subscription ends when the client goes: there is no other way.
    fn dies_if(&self, gone: bool) {
        let lasts = self.request.header("mcp-method") == Some("subscriptions/listen");
        if gone && !lasts && self.server.deviates(InternalDeviation::AbortsKill) {
            crate::zoo::deviation::die(1);
        }
        if let Some(id) =
            self.request.header("mcp-session-id").filter(|_| gone && self.server.deviates(InternalDeviation::AbortsEndSessions))
        {
            self.server.end_session(id);
        }
    }

    fn begin(&self, state: &mut State, response: Response) -> Option<Sent> {
        let mut response = response;
        if let Some(id) = &state.session {
            response.set("mcp-session-id", id);
        }
        state.sent = http::with_cors(response, &self.request).send(&self.server, &self.request, &self.connection).ok();
        state.gone = state.sent.is_none();
        state.sent
    }

    /// The status of an answer that is a body.
    fn status(&self, state: &State, answer: &Value) -> u16 {
        let code = answer["error"]["code"].as_i64();
        match state.refusal {
            Some(status) => status,
            None if self.modern && code == Some(METHOD_NOT_FOUND) => 404,
            // 2026-07-28, basic#meta: a capability that the client lacks.
            None if self.modern && code == Some(-32021) => 400,
            None => 200,
        }
    }
}

impl Outlet for Reply {
    fn send(&self, message: &Value) -> bool {
        let mut state = self.state();
        let answers = is_response(message);
        let sent = match state.sent {
            Some(sent) => sent,
            None if answers && self.accepts.json && (!self.prefers_events || !self.accepts.events || message.get("error").is_some()) => {
                state.answered = true;
                let response = Response::json_text(self.status(&state, message), self.server.deviation.body(message));
                return self.begin(&mut state, response).is_some();
            }
            // What comes before the answer has no place in a body.
            None if !self.accepts.events => return !state.gone,
            None => match self.begin(&mut state, Response::events()) {
                Some(sent) => sent,
                None => return false,
            },
        };
        state.answered |= answers;
        if sent.streams && !state.gone {
            state.gone = (&self.connection).write_all(&chunk(&self.server, &self.server.event(message))).is_err();
        }
        self.dies_if(state.gone);
        !state.gone
    }

    fn is_open(&self) -> bool {
        let open = !self.state().gone && is_there(&self.connection);
        self.dies_if(!open);
        open
    }
}

/// An open event stream: the response to a GET.
pub(super) struct Stream {
    server: Arc<Server>,
    connection: Mutex<TcpStream>,
}

impl Stream {
    pub(super) fn new(server: &Arc<Server>, connection: &TcpStream) -> io::Result<Self> {
        Ok(Self { server: Arc::clone(server), connection: Mutex::new(connection.try_clone()?) })
    }

    /// Bytes as they stand.
    pub(super) fn write(&self, bytes: &[u8]) -> bool {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        connection.write_all(&chunk(&self.server, bytes)).is_ok()
    }

    /// Keeps the stream open until the client has gone, or until that is over.
    pub(super) fn stay(&self, connection: &TcpStream, is_over: impl Fn() -> bool) -> io::Result<()> {
        let mut last = Instant::now();
        while !is_over() {
            if !is_there(connection) {
                return Ok(());
            }
            if last.elapsed() > HEARTBEAT {
                self.write(b": still here\n\n");
                last = Instant::now();
            }
            sleep(TICK);
        }
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        connection.write_all(&last_chunk(&self.server))
    }
}

impl Outlet for Stream {
    fn send(&self, message: &Value) -> bool {
        self.write(&self.server.deviation.event(message))
    }
}

fn wait_until_gone(connection: &TcpStream) {
    while is_there(connection) {
        sleep(TICK);
    }
}

/// Whether the client has not closed the connection. Only the thread that reads from the connection may ask.
fn is_there(connection: &TcpStream) -> bool {
    const MOMENT: Duration = Duration::from_millis(1);
    if connection.set_read_timeout(Some(MOMENT)).is_err() {
        return false;
    }
    let seen = connection.peek(&mut [0]);
    let there = match seen {
        Ok(count) => count > 0,
        Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted),
    };
    connection.set_read_timeout(None).is_ok() && there
}
