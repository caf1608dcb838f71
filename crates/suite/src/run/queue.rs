//! The cases that have not had their turn, and the servers that are started ahead for the next of them.

use super::case::RunContext;
use super::expand::{GroupKey, Work};
use super::starting::StartingSession;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// Cases by their position in the order in which they are to start. Those of a group follow one another.
pub(super) struct Queue {
    waiting: BTreeMap<usize, Waiting>,
    /// Those that need not wait for another one.
    ready: BTreeSet<usize>,
    /// Those of a group behind the one that is ready or runs.
    behind: HashMap<GroupKey, VecDeque<usize>>,
}

struct Waiting {
    work: Work,
    warm: Option<StartingSession>,
}

impl Queue {
    pub(super) fn of(works: Vec<Work>) -> Self {
        let mut queue = Self { waiting: BTreeMap::new(), ready: BTreeSet::new(), behind: HashMap::new() };
        for (position, work) in works.into_iter().enumerate() {
            match work.group() {
                Some(group) if queue.behind.contains_key(&group) => queue.behind.entry(group).or_default().push_back(position),
                group => {
                    queue.behind.extend(group.map(|group| (group, VecDeque::new())));
                    queue.ready.insert(position);
                }
            }
            queue.waiting.insert(position, Waiting { work, warm: None });
        }
        queue
    }

    /// The first case that need not wait for another one.
    pub(super) fn next(&mut self) -> Option<(Work, Option<StartingSession>)> {
        let Waiting { work, warm } = self.waiting.remove(&self.ready.pop_first()?)?;
        Some((work, warm))
    }

    /// A case of a group has run: the next one may.
    pub(super) fn finished(&mut self, group: Option<&GroupKey>) {
        self.ready.extend(group.and_then(|group| self.behind.get_mut(group)?.pop_front()));
    }

    /// Starts the servers of the next cases, as many as may run at a time.
    pub(super) fn warm_up(&mut self, most: usize, world: &RunContext) {
        for waiting in self.waiting.values_mut().take(most) {
            if waiting.warm.is_none() {
                waiting.warm = StartingSession::start(&waiting.work, world);
            }
        }
    }

    /// Gives up all of them, and says how many. Their servers have ended when this returns.
    pub(super) async fn clear(&mut self) -> usize {
        let left = std::mem::take(&mut self.waiting);
        self.ready.clear();
        self.behind.clear();
        let count = left.len();
        for warm in left.into_values().filter_map(|waiting| waiting.warm) {
            warm.cancel().await;
        }
        count
    }
}
