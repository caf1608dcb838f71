//! Servers whose process lives on between probes, so that what it takes and how often it dies can be seen.

use crate::config::{TargetKind, TargetSpec};
use mcproof_client::Session;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What an earlier probe left.
pub(super) enum Earlier {
    Alive(Box<Session>),
    /// There was a process, and it is no more.
    Dead,
    /// There was none, or there is not to be one.
    Never,
}

/// Sessions by target. One that is being used is not in here.
#[derive(Default)]
pub(super) struct KeptSessions(Mutex<Sessions>);

/// With the target as it was then; no session if its process has ended.
type Sessions = BTreeMap<String, (Arc<TargetSpec>, Option<Session>)>;

impl KeptSessions {
    pub(super) fn take(&self, spec: &Arc<TargetSpec>) -> Earlier {
        match self.lock().remove(&spec.name) {
            // A target that was changed begins anew; dropping a session ends its process.
            Some((known, _)) if !spec.keep || !are_alike(&known, spec) => Earlier::Never,
            Some((_, Some(session))) if session.exit().is_none() && session.closed_because().is_none() => Earlier::Alive(Box::new(session)),
            Some(_) => Earlier::Dead,
            None => Earlier::Never,
        }
    }

    pub(super) fn keep(&self, spec: &Arc<TargetSpec>, session: Session) {
        self.lock().insert(spec.name.clone(), (Arc::clone(spec), Some(session)));
    }

    /// The next process is not the first one.
    pub(super) fn died(&self, spec: &Arc<TargetSpec>) {
        self.lock().insert(spec.name.clone(), (Arc::clone(spec), None));
    }

    pub(super) fn end_others(&self, targets: &BTreeMap<String, Arc<TargetSpec>>) {
        self.lock().retain(|name, _| targets.contains_key(name));
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether one process and its session can be that of both.
fn are_alike(one: &TargetSpec, other: &TargetSpec) -> bool {
    let facts = |spec: &TargetSpec| match &spec.kind {
        TargetKind::Server(server) => {
            let launch = server.bindings.first().and_then(|binding| binding.launch.clone());
            Some((launch, server.era, server.protocol_version.clone(), spec.timeout))
        }
        TargetKind::Monitor(_) | TargetKind::Push { .. } => None,
    };
    facts(one) == facts(other)
}
