//! A trace as calls, in one pass: lines go in, and calls come out as they end. Its memory depends on what is open.

use crate::calls::{Call, CallTracker, SessionFacts, Update};
use crate::line::{Attachment, Mark, Omitted, TraceLine, TracedFrame};
use crate::manifest::{Manifest, SessionInfo, SessionKey};
use crate::reader::{Ending, Trace, TraceError};
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
}

impl CallStream {
    pub fn new(trace: Trace) -> Self {
        // A completed trace knows from the start what its sessions turned out to be.
        let sessions = trace.manifest().sessions.iter().map(|session| (session.key, session.clone())).collect();
        Self { trace, tracker: CallTracker::new(), sessions, waiting: VecDeque::new(), is_over: false }
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

    fn take(&mut self, line: TraceLine) {
        match line {
            TraceLine::Session(session) => {
                let complete = self.trace.manifest().sessions.iter().find(|known| known.key == session.key);
                let session = complete.cloned().unwrap_or(session);
                self.sessions.insert(session.key, session.clone());
                self.waiting.push_back(Item::Session(session));
            }
            TraceLine::Frame(traced) => {
                let key = traced.session;
                let frame = traced.clone().into_frame();
                self.waiting.push_back(Item::Frame(traced));
                let updates = self.tracker.feed(key, &frame);
                self.learn(key);
                self.keep_ended(updates);
            }
            TraceLine::Mark(mark) => self.waiting.push_back(Item::Mark(mark)),
            TraceLine::Attachment(attachment) => self.waiting.push_back(Item::Attachment(attachment)),
            TraceLine::Omitted(omitted) => self.waiting.push_back(Item::Omitted(omitted)),
            TraceLine::Trace(_) | TraceLine::End(_) => {}
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
                    let updates = self.tracker.finish();
                    self.keep_ended(updates);
                }
            }
        }
    }
}
