//! Bounds on what a server says unasked: how much of it is kept, and how much may wait for us. Knows no messages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The newest of what came, within a bound of items and one of bytes on the wire. The very newest is always kept.
#[derive(Debug)]
pub(super) struct BoundedHistory<T> {
    kept: VecDeque<(T, usize)>,
    bytes: usize,
}

/// Items kept; a flood is counted by the tap, not here.
pub(super) const MAX_STORED: usize = 1000;
/// A parsed value takes up to forty times the room of its text.
const MAX_STORED_BYTES: usize = 1 << 20;

impl<T> Default for BoundedHistory<T> {
    fn default() -> Self {
        Self { kept: VecDeque::new(), bytes: 0 }
    }
}

impl<T> BoundedHistory<T> {
    /// Gives how many of the oldest had to go.
    pub(super) fn push(&mut self, item: T, bytes: usize) -> usize {
        self.kept.push_back((item, bytes));
        self.bytes += bytes;
        let mut gone = 0;
        while self.kept.len() > 1
            && (self.kept.len() > MAX_STORED || self.bytes > MAX_STORED_BYTES)
            && let Some((_, bytes)) = self.kept.pop_front()
        {
            self.bytes -= bytes;
            gone += 1;
        }
        gone
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &T> {
        self.kept.iter().map(|(item, _)| item)
    }
}

/// What a server asks of us and has not been answered: it may flood us with requests and never read.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestBacklog(Arc<Mutex<BacklogLoad>>);

#[derive(Debug, Default)]
struct BacklogLoad {
    requests: usize,
    bytes: usize,
}

/// The room that one request takes in the backlog, until this is dropped.
#[derive(Debug)]
pub(crate) struct BacklogSlot {
    backlog: RequestBacklog,
    bytes: usize,
}

/// Requests of a server that may wait for their responses at the same time. Over HTTP each response takes a connection.
pub(super) const MAX_WAITING: usize = 200;
/// Bytes of those. A single larger one is taken.
const MAX_WAITING_BYTES: usize = 1 << 20;

impl RequestBacklog {
    /// `None` if there is no room for another request.
    pub(super) fn admit(&self, bytes: usize) -> Option<BacklogSlot> {
        let mut load = self.load();
        if load.requests >= MAX_WAITING || (load.requests > 0 && load.bytes + bytes > MAX_WAITING_BYTES) {
            return None;
        }
        load.requests += 1;
        load.bytes += bytes;
        Some(BacklogSlot { backlog: self.clone(), bytes })
    }

    fn load(&self) -> MutexGuard<'_, BacklogLoad> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BacklogSlot {
    fn drop(&mut self) {
        let mut load = self.backlog.load();
        load.requests -= 1;
        load.bytes -= self.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_within_both_bounds() {
        let check = |bytes: &[usize], expected: &[usize], gone: usize| {
            let mut newest = BoundedHistory::default();
            let lost: usize = bytes.iter().enumerate().map(|(index, bytes)| newest.push(index, *bytes)).sum();
            assert_eq!(newest.iter().copied().collect::<Vec<_>>(), expected, "{bytes:?}");
            assert_eq!(lost, gone);
        };
        check(&[1, 1, 1], &[0, 1, 2], 0);
        check(&[1, MAX_STORED_BYTES, 1], &[2], 2);
        check(&[1, MAX_STORED_BYTES + 1], &[1], 1);
        let many: Vec<usize> = (1..=MAX_STORED).collect();
        check(&[1; MAX_STORED + 1], &many, 1);
    }

    #[test]
    fn room_is_given_back() {
        let backlog = RequestBacklog::default();
        let large = backlog.admit(MAX_WAITING_BYTES * 2).unwrap();
        assert!(backlog.admit(1).is_none());
        drop(large);
        let rooms: Vec<BacklogSlot> = (0..MAX_WAITING).filter_map(|_| backlog.admit(1)).collect();
        assert_eq!(rooms.len(), MAX_WAITING);
        assert!(backlog.admit(1).is_none());
        drop(rooms);
        assert!(backlog.admit(1).is_some());
    }
}
