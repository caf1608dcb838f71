//! The cases that have not had their turn, and the servers that are started ahead for the next of them.

use super::case::World;
use super::expand::Work;
use super::group::Busy;
use super::warm::Warm;
use std::collections::VecDeque;

/// In the order in which they are to start.
pub(super) struct Queue(VecDeque<Waiting>);

struct Waiting {
    work: Work,
    warm: Option<Warm>,
}

impl Queue {
    pub(super) fn of(works: Vec<Work>) -> Self {
        Self(works.into_iter().map(|work| Waiting { work, warm: None }).collect())
    }

    /// The first case that need not wait for another one.
    pub(super) fn next(&mut self, busy: &Busy) -> Option<(Work, Option<Warm>)> {
        let next = self.0.iter().position(|waiting| busy.is_free(&waiting.work))?;
        self.0.remove(next).map(|Waiting { work, warm }| (work, warm))
    }

    /// Starts the servers of the next cases, as many as may run at a time.
    pub(super) fn warm_up(&mut self, most: usize, world: &World) {
        for waiting in self.0.iter_mut().take(most) {
            if waiting.warm.is_none() {
                waiting.warm = Warm::start(&waiting.work, world);
            }
        }
    }

    /// Gives up all of them, and says how many. Their servers have ended when this returns.
    pub(super) async fn clear(&mut self) -> usize {
        let left = self.0.len();
        for waiting in self.0.drain(..) {
            if let Some(warm) = waiting.warm {
                warm.cancel().await;
            }
        }
        left
    }
}
