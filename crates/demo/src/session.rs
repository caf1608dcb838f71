//! What one connection remembers. A legacy session has its own notes; the modern revision has no sessions,
//! so that its notes belong to the process and every caller reads the same ones.

// Logging is deprecated since 2026-07-28, and still what the earlier revisions speak.
#![expect(deprecated, reason = "a demo speaks every revision, deprecated parts included")]

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use rmcp::{
    RoleServer,
    model::{LoggingLevel, ProtocolVersion},
    service::RequestContext,
};

use crate::patient::Phase;

/// Keys and values that a caller asked to remember.
pub(crate) type Notes = HashMap<String, String>;

/// The memory of one connection.
pub(crate) struct Session {
    /// Tells sessions apart within the process.
    pub(crate) number: u64,
    own: Mutex<Notes>,
    shared: Arc<Mutex<Notes>>,
    level: Mutex<Option<LoggingLevel>>,
    phase: Phase,
}

impl Session {
    /// A session whose modern notes are `shared` with all others.
    pub(crate) fn new(shared: Arc<Mutex<Notes>>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            own: Mutex::default(),
            shared,
            level: Mutex::default(),
            phase: Phase::default(),
        }
    }

    /// How far the connection is; a clone follows along.
    pub(crate) fn phase(&self) -> &Phase {
        &self.phase
    }

    /// The notes that a request may see.
    pub(crate) fn notes(&self, context: &RequestContext<RoleServer>) -> MutexGuard<'_, Notes> {
        let notes = if is_modern(context) { &self.shared } else { &self.own };
        notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the answer to `logging/setLevel`.
    pub(crate) fn set_level(&self, level: LoggingLevel) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    /// Whether the peer asked for messages of `level`: with `logging/setLevel`, or in the `_meta` of a modern
    /// request. One that asked for nothing gets nothing.
    pub(crate) fn wants(&self, level: LoggingLevel, context: &RequestContext<RoleServer>) -> bool {
        let least = if is_modern(context) { context.meta.log_level() } else { *self.level.lock().unwrap_or_else(PoisonError::into_inner) };
        least.is_some_and(|least| level as u8 >= least as u8)
    }
}

/// Whether a request is of the revision without sessions, or a later one.
pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::NO_INITIALIZE)
}
