//! A trace as calls, in one pass: lines go in, and calls come out as they end. Its memory depends on what is open. What a proxy recorded of
//! several clients becomes a session for each of them.

use crate::calls::{Call, CallTracker, SessionFacts, Update};
use crate::line::{Attachment, Mark, Omitted, TraceLine, TracedFrame};
use crate::manifest::{Manifest, SessionInfo, SessionKey};
use crate::reader::{Ending, MOST_SESSIONS, Trace, TraceError};
use mcproof_record::Frame;
use mcproof_record::clients::ClientStream;
use std::collections::{BTreeMap, VecDeque};

/// What a trace holds, in order; a call comes when it has ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Session(SessionInfo),
    Frame(TracedFrame),
    Call(Box<Call>),
    Mark(Mark),
    Attachment(Attachment),
    Omitted(Omitted),
}

pub struct CallStream {
    trace: Trace,
    tracker: CallTracker,
    sessions: BTreeMap<SessionKey, SessionInfo>,
    waiting: VecDeque<Item>,
    is_over: bool,
    /// Of a proxy.
    clients: Option<Clients>,
}

/// The sessions of the clients that a proxy recorded together.
#[derive(Default)]
struct Clients {
    /// By the session in the file.
    streams: BTreeMap<SessionKey, ClientStream>,
    /// The session of each client. The first one has that of the file, unless it was given away.
    keys: BTreeMap<(SessionKey, usize), SessionKey>,
    /// Those in the file, and the largest that was given away.
    last: SessionKey,
}

impl Clients {
    /// The session of a client, and whether it is new.
    fn key(&mut self, recorded: SessionKey, client: usize) -> (SessionKey, bool) {
        if let Some(known) = self.keys.get(&(recorded, client)) {
            return (*known, false);
        }
        let is_free = client == 0 && self.keys.values().all(|taken| *taken != recorded);
        let key = if is_free { recorded } else { SessionKey(self.last.0.saturating_add(1)) };
        self.last = self.last.max(key);
        self.keys.insert((recorded, client), key);
        (key, true)
    }
}

/// Whether this is the command line of a proxy. Flags may stand before the subcommand, of which `--color` takes a word of its own.
fn is_of_proxy(command: &[String]) -> bool {
    let is_subcommand = |at: &usize| !command[*at].starts_with('-') && command[*at - 1] != "--color";
    (1..command.len()).find(is_subcommand).is_some_and(|at| command[at] == "proxy")
}

impl CallStream {
    pub fn new(trace: Trace) -> Self {
        // A completed trace knows from the start what its sessions turned out to be.
        let sessions: BTreeMap<_, _> = trace.manifest().sessions.iter().map(|session| (session.key, session.clone())).collect();
        let last = sessions.keys().next_back().copied().unwrap_or_default();
        let clients = is_of_proxy(&trace.manifest().command).then(|| Clients { last, ..Clients::default() });
        Self { trace, tracker: CallTracker::new(), sessions, waiting: VecDeque::new(), is_over: false, clients }
    }

    pub fn manifest(&self) -> &Manifest {
        self.trace.manifest()
    }

    pub fn ending(&self) -> Ending {
        self.trace.ending()
    }

    /// A session, as far as it is known by now.
    pub fn session(&self, key: SessionKey) -> Option<&SessionInfo> {
        self.sessions.get(&key)
    }

    pub fn sessions(&self) -> impl Iterator<Item = &SessionInfo> {
        self.sessions.values()
    }

    /// What the messages of a session have told by now.
    pub fn facts(&self, key: SessionKey) -> Option<&SessionFacts> {
        self.tracker.facts(key)
    }

    fn keep_ended(&mut self, updates: Vec<Update>) {
        let ended = updates.into_iter().filter_map(|update| match update {
            Update::Ended(call) => Some(Item::Call(call)),
            Update::Began(_) | Update::Answered(_) => None,
        });
        self.waiting.extend(ended);
    }

    /// What a session line did not say, the messages may.
    fn learn(&mut self, key: SessionKey) {
        if let (Some(session), Some(facts)) = (self.sessions.get_mut(&key), self.tracker.facts(key))
            && session.revision.is_none()
            && facts.revision.is_some()
        {
            session.revision.clone_from(&facts.revision);
            session.era = session.era.take().or_else(|| facts.era().map(str::to_owned));
        }
    }

    /// The session line of a proxy tells of its last client what its messages tell of each.
    fn learn_of_client(&mut self, key: SessionKey) {
        let (Some(session), Some(facts)) = (self.sessions.get_mut(&key), self.tracker.facts(key)) else { return };
        if facts.client.is_some() && session.client != facts.client {
            session.client.clone_from(&facts.client);
        }
        if facts.revision.is_some() && session.revision != facts.revision {
            session.revision.clone_from(&facts.revision);
            session.era = facts.era().map(str::to_owned);
        }
    }

    /// The session of which a line of the file tells.
    fn first_of(&mut self, recorded: SessionKey) -> SessionKey {
        self.clients.as_mut().map_or(recorded, |clients| clients.key(recorded, 0).0)
    }

    /// The session of a client. What belongs to nobody is of the first one.
    fn session_of(&mut self, recorded: SessionKey, client: usize) -> SessionKey {
        let first = self.first_of(recorded);
        let Some(clients) = &mut self.clients else { return recorded };
        if clients.keys.len() >= MOST_SESSIONS && !clients.keys.contains_key(&(recorded, client)) {
            return first;
        }
        let (key, is_new) = clients.key(recorded, client);
        if is_new {
            let first = self.sessions.get(&first).cloned().unwrap_or_default();
            let session = SessionInfo { key, era: None, revision: None, client: None, ..first };
            self.sessions.insert(key, session.clone());
            self.waiting.push_back(Item::Session(session));
        }
        key
    }

    fn take_frame(&mut self, recorded: SessionKey, frame: Frame) {
        let Some(clients) = &mut self.clients else {
            self.push_frame(recorded, frame);
            self.learn(recorded);
            return;
        };
        for (client, frame) in clients.streams.entry(recorded).or_default().feed(frame) {
            let key = self.session_of(recorded, client.unwrap_or_default());
            self.push_frame(key, frame);
            let stream = self.clients.as_ref().and_then(|clients| clients.streams.get(&recorded));
            match client {
                None => self.learn(key),
                Some(client) if stream.is_some_and(|stream| stream.is_undecided(client)) => {}
                Some(_) => self.learn_of_client(key),
            }
        }
    }

    fn push_frame(&mut self, key: SessionKey, frame: Frame) {
        let updates = self.tracker.feed(key, &frame);
        self.waiting.push_back(Item::Frame(TracedFrame::new(key, frame)));
        self.keep_ended(updates);
    }

    fn take(&mut self, line: TraceLine) {
        match line {
            TraceLine::Session(session) => {
                let complete = self.trace.manifest().sessions.iter().find(|known| known.key == session.key);
                let session = complete.cloned().unwrap_or(session);
                let session = SessionInfo { key: self.first_of(session.key), ..session };
                self.sessions.insert(session.key, session.clone());
                self.waiting.push_back(Item::Session(session));
            }
            TraceLine::Frame(traced) => self.take_frame(traced.session, traced.into_frame()),
            TraceLine::Mark(mark) => {
                let session = self.first_of(mark.session);
                self.waiting.push_back(Item::Mark(Mark { session, ..mark }));
            }
            TraceLine::Attachment(attachment) => self.waiting.push_back(Item::Attachment(attachment)),
            TraceLine::Omitted(omitted) => {
                let session = self.first_of(omitted.session);
                self.waiting.push_back(Item::Omitted(Omitted { session, ..omitted }));
            }
            TraceLine::Trace(_) | TraceLine::End(_) => {}
        }
    }

    /// What waits for the rest of a trace that has ended.
    fn take_rest(&mut self) {
        let streams = self.clients.iter_mut().flat_map(|clients| &mut clients.streams);
        let rest: Vec<(SessionKey, Vec<Frame>)> = streams.map(|(recorded, stream)| (*recorded, stream.finish())).collect();
        for (recorded, frames) in rest {
            let key = self.first_of(recorded);
            frames.into_iter().for_each(|frame| self.push_frame(key, frame));
        }
    }
}

impl Iterator for CallStream {
    type Item = Result<Item, TraceError>;

    /// An error comes after what was read before it; after the error come the calls that were open.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.waiting.pop_front() {
                return Some(Ok(item));
            }
            if self.is_over {
                return None;
            }
            match self.trace.next() {
                Some(Ok(line)) => self.take(line),
                Some(Err(error)) => return Some(Err(error)),
                None => {
                    self.is_over = true;
                    self.take_rest();
                    let updates = self.tracker.finish();
                    self.keep_ended(updates);
                }
            }
        }
    }
}
