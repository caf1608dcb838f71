//! The contract in a trace: what the recorded traffic shows of it, as a lock beside the frames. Knows calls and traces, no sessions.

use mcproof_contract::{ChangedList, GatheredContracts, TraceFailure, parse, write};
use mcproof_record::{ContractLock, Direction, Frame, Raw};
use mcproof_trace::calls::{Call, CallKind, CallStatus, CallTracker, Update};
use mcproof_trace::{CONTRACT, CallStream, Item, SessionKey, TraceError, TraceWriter};
use std::collections::BTreeMap;
use std::fmt;

/// Gathers the contract while frames are recorded, or calls are read.
#[derive(Default)]
pub(crate) struct ShownContract {
    /// Of frames; whoever has calls does not need it.
    tracker: CallTracker,
    gathered: GatheredContracts,
}

impl ShownContract {
    /// Takes the next frame of a session, as it is recorded: redacted.
    pub(crate) fn frame(&mut self, session: SessionKey, frame: &Frame) {
        let updates = self.tracker.feed(session, frame);
        self.updates(&updates);
    }

    /// Takes what a tracker of somebody else has found.
    pub(crate) fn updates(&mut self, updates: &[Update]) {
        for update in updates {
            if let Update::Ended(call) = update {
                self.call(call);
            }
        }
    }

    /// Takes a call that has ended.
    pub(crate) fn call(&mut self, call: &Call) {
        match (call.direction, call.kind, call.status) {
            (Direction::FromServer, CallKind::Notification, _) => self.gathered.notified(call.session.0, &call.method),
            (Direction::FromServer | Direction::Local, ..) | (_, _, CallStatus::Pending | CallStatus::InputRequired) => {}
            (Direction::ToServer, ..) => {
                let response = call.response.as_ref().map(Raw::as_bytes).unwrap_or_default();
                self.gathered.add(call.session.0, &call.method, call.request.as_bytes(), response);
            }
        }
    }

    /// What was shown.
    ///
    /// # Errors
    /// There was no handshake, or no list was read to its end.
    pub(crate) fn lock(self) -> Result<ContractLock, TraceFailure> {
        self.lock_with_changes().map(|(lock, _)| lock)
    }

    /// The same, and the lists that were not the same throughout.
    fn lock_with_changes(mut self) -> Result<(ContractLock, Vec<ChangedList>), TraceFailure> {
        // A response counts, also where its stream is still open.
        let rest = self.tracker.finish();
        self.updates(&rest);
        self.gathered.finish().map(|(contracts, changed)| (ContractLock::new(None, contracts), changed))
    }

    /// Adds it to a trace that is about to end, if there is one.
    pub(crate) fn attach(self, writer: &TraceWriter) {
        if let Ok(lock) = self.lock() {
            attach(writer, &lock);
        }
    }
}

/// Adds a contract to a trace.
pub(crate) fn attach(writer: &TraceWriter, lock: &ContractLock) {
    writer.attach(CONTRACT, write(lock).as_bytes());
}

/// Why a trace shows no contract: a fragment after "it".
#[derive(Debug)]
pub(crate) enum NoContract {
    TooLittle(TraceFailure),
    SeveralServers(Vec<String>),
    /// Not with this one.
    OtherServers(String, Vec<String>),
}

impl fmt::Display for NoContract {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLittle(failure) => failure.fmt(formatter),
            Self::SeveralServers(names) => write!(formatter, "has sessions with several servers: {}", names.join(", ")),
            Self::OtherServers(name, names) => write!(formatter, "has no session with `{name}`, only with {}", names.join(", ")),
        }
    }
}

/// The contract of a server, or of the only one, in a trace that is read to its end: the one that was attached, else, as in a trace that was cut
/// off, what its calls show. With the lists that were not the same throughout.
///
/// # Errors
/// The trace cannot be read.
pub(crate) fn of_stream(
    stream: &mut CallStream,
    server: Option<&str>,
) -> Result<Result<(ContractLock, Vec<ChangedList>), NoContract>, TraceError> {
    let (mut servers, mut attached) = (BTreeMap::<SessionKey, String>::new(), None);
    let mut shown = BTreeMap::<String, ShownContract>::new();
    for item in stream {
        match item? {
            Item::Session(session) => drop(servers.insert(session.key, session.server)),
            Item::Call(call) => {
                let server = servers.get(&call.session).cloned().unwrap_or_default();
                shown.entry(server).or_default().call(&call);
            }
            Item::Attachment(file) if file.name == CONTRACT => attached = read(file.bytes.as_bytes()),
            _ => {}
        }
    }
    let mut names: Vec<String> = servers.into_values().collect();
    names.sort();
    names.dedup();
    Ok(match (server, names.as_slice()) {
        (Some(server), names) if !names.iter().any(|name| name == server) => {
            Err(NoContract::OtherServers(server.to_owned(), names.to_vec()))
        }
        (Some(server), [_, _, ..]) => shown.remove(server).unwrap_or_default().lock_with_changes().map_err(NoContract::TooLittle),
        (None, [_, _, ..]) => Err(NoContract::SeveralServers(names)),
        (_, [] | [_]) => {
            let of_calls = shown.pop_first().map_or_else(ShownContract::default, |(_, shown)| shown).lock_with_changes();
            match attached {
                Some(lock) => Ok((lock, of_calls.map(|(_, changed)| changed).unwrap_or_default())),
                None => of_calls.map_err(NoContract::TooLittle),
            }
        }
    })
}

/// The contract of a trace, as it was attached; nothing if it is not as it was written.
pub(crate) fn read(bytes: &[u8]) -> Option<ContractLock> {
    parse(std::str::from_utf8(bytes).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_record::{FrameBody, FrameId};
    use serde_json::{Value, json};
    use std::time::Duration;

    #[test]
    fn frames_show_the_lists_that_were_read() {
        let mut shown = ShownContract::default();
        let mut id = 0;
        let mut line = |direction: Direction, message: &Value| {
            id += 1;
            let body = FrameBody::Line { bytes: Raw::from(message.to_string().as_str()), unterminated: false };
            shown.frame(SessionKey(1), &Frame { id: FrameId(id), at: Duration::from_millis(id), direction, body });
        };
        let result = json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {}, "prompts": {} } });
        line(Direction::ToServer, &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "capabilities": {} } }));
        line(Direction::FromServer, &json!({ "jsonrpc": "2.0", "id": 1, "result": result }));
        line(Direction::ToServer, &json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
        line(Direction::FromServer, &json!({ "jsonrpc": "2.0", "id": 2, "result": { "tools": [{ "name": "a" }] } }));
        line(Direction::ToServer, &json!({ "jsonrpc": "2.0", "id": 3, "method": "prompts/list" }));
        let lock = shown.lock().unwrap();
        let contract = &lock.contracts["legacy/minimal"];
        assert_eq!((&contract.tools, &contract.prompts), (&Some(vec![json!({ "name": "a" })]), &None));
        // The request for the prompts has no response.
        assert_eq!(contract.partial.as_ref().unwrap().failed, ["prompts/list"]);
        assert_eq!(read(write(&lock).as_bytes()), Some(lock));
    }
}
