//! Whether a server that we started could run at all while we waited for it. On a busy machine a process may be ready to run for seconds
//! before it gets a processor: then its silence says nothing about it.

use mcproof_client::transport::processor_wait;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// How often it is looked at.
const TICK: Duration = Duration::from_millis(250);

/// Longer than any wait for a response.
const KEPT: usize = 4 * 60;

/// How long a process has waited for a processor since its start, at some moments of a conversation, from the earliest on.
#[derive(Debug, Default)]
pub(super) struct ProcessorWaits {
    samples: Arc<Mutex<VecDeque<(Instant, Duration)>>>,
    task: Option<JoinHandle<()>>,
}

impl ProcessorWaits {
    /// Of a process, as long as this lives; without an id, of none.
    pub(super) fn of(pid: Option<i32>) -> Self {
        let Some(pid) = pid else { return Self::default() };
        let samples = Arc::<Mutex<VecDeque<_>>>::default();
        let kept = Arc::clone(&samples);
        let task = tokio::spawn(async move {
            while let Some(waited) = processor_wait(pid) {
                keep(&kept, waited);
                sleep(TICK).await;
            }
        });
        Self { samples, task: Some(task) }
    }

    /// Whether the process waited for a processor in half of this time or more, up to now.
    pub(super) fn are_most_of(&self, time: Duration) -> bool {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let began = Instant::now().checked_sub(time);
        let before = samples.iter().rev().find(|(at, _)| began.is_some_and(|began| *at <= began)).or(samples.front());
        let (Some((_, before)), Some((_, now))) = (before, samples.back()) else { return false };
        now.saturating_sub(*before) >= time / 2
    }
}

fn keep(samples: &Mutex<VecDeque<(Instant, Duration)>>, waited: Duration) {
    let mut samples = samples.lock().unwrap_or_else(PoisonError::into_inner);
    if samples.len() == KEPT {
        samples.pop_front();
    }
    samples.push_back((Instant::now(), waited));
}

impl Drop for ProcessorWaits {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_counts_if_the_process_could_run_in_most_of_it() {
        let waits = ProcessorWaits::default();
        assert!(!waits.are_most_of(Duration::from_secs(1)), "nothing is known");
        tokio::time::advance(Duration::from_secs(100)).await;
        // It waited for two of the last four seconds, and for none before.
        for (ago, waited) in [(8, 5), (4, 5), (2, 6), (0, 7)] {
            waits.samples.lock().unwrap().push_back((Instant::now() - Duration::from_secs(ago), Duration::from_secs(waited)));
        }
        assert!(waits.are_most_of(Duration::from_secs(4)));
        assert!(waits.are_most_of(Duration::from_secs(2)));
        assert!(!waits.are_most_of(Duration::from_secs(8)));
        assert!(!waits.are_most_of(Duration::from_secs(60)), "what was before the first sample is not known");
    }
}
