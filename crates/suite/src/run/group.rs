//! Cases that share a server and a session: what they hand on to each other.

use super::case::skipped_unasked;
use super::expand::{GroupKey, Work};
use super::sessions::Open;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

/// All groups of a run.
#[derive(Clone)]
pub(super) struct Groups(Arc<Mutex<HashMap<GroupKey, Group>>>);

struct Group {
    /// Cases that are still to come, without those of which it is known that they are skipped.
    left: usize,
    /// The last of these.
    last: Work,
    handed: GroupState,
}

/// What one case of a group leaves to the next.
#[derive(Default)]
pub(super) struct GroupState {
    pub(super) open: BTreeMap<String, Open>,
    pub(super) tmp: Option<Arc<TempDir>>,
    /// What the shared setup saved, once it has run well.
    pub(super) set_up: Option<Map<String, Value>>,
    /// The shared setup has begun, so that the shared teardown has to follow.
    pub(super) owes_teardown: bool,
}

impl Groups {
    pub(super) fn of<'a>(works: impl Iterator<Item = &'a Work>) -> Self {
        let mut groups: HashMap<GroupKey, Group> = HashMap::new();
        for (key, work) in works.filter_map(|work| Some((work.group()?, work))) {
            let group = groups.entry(key).or_insert_with(|| Group { left: 0, last: work.clone(), handed: GroupState::default() });
            if skipped_unasked(work).is_none() {
                group.left += 1;
                group.last = work.clone();
            }
        }
        Self(Arc::new(Mutex::new(groups)))
    }

    /// What the case before left, and whether the case is the last of its group: what the end of the shared server shows is told of a
    /// case that ran.
    pub(super) fn take(&self, key: &GroupKey, work: &Work) -> (GroupState, Last) {
        let mut groups = self.groups();
        let Some(group) = groups.get_mut(key) else { return Default::default() };
        if skipped_unasked(work).is_some() {
            return (std::mem::take(&mut group.handed), Last::No);
        }
        group.left = group.left.saturating_sub(1);
        let last = if group.left == 0 { Last::Yes } else { Last::No };
        (std::mem::take(&mut group.handed), last)
    }

    /// Leaves something to the next case.
    pub(super) fn put(&self, key: &GroupKey, handed: GroupState) {
        if let Some(group) = self.groups().get_mut(key) {
            group.handed = handed;
        }
    }

    /// What was left for cases that will not run, each with the last of them.
    pub(super) fn rest(&self) -> Vec<(Work, GroupState)> {
        self.groups().drain().map(|(_, group)| (group.last, group.handed)).collect()
    }

    fn groups(&self) -> MutexGuard<'_, HashMap<GroupKey, Group>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a case is the last one that needs the server of its group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Last {
    #[default]
    Yes,
    No,
}
