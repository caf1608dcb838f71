//! Bounds on what a server says unasked: how much of it is kept, and how much may wait for us. Knows no messages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The newest of what came, within a bound of items and one of bytes on the wire. The very newest is always kept.
#[derive(Debug)]
pub(super) struct Newest<T> {
    kept: VecDeque<(T, usize)>,
    bytes: usize,
}

/// Items kept; a flood is counted by the tap, not here.
pub(super) const MOST_KEPT: usize = 1000;
/// A parsed value takes up to forty times the room of its text.
const MOST_BYTES_KEPT: usize = 1 << 20;

impl<T> Default for Newest<T> {
    fn default() -> Self {
        Self { kept: VecDeque::new(), bytes: 0 }
    }
}

impl<T> Newest<T> {
    /// Gives how many of the oldest had to go.
    pub(super) fn push(&mut self, item: T, bytes: usize) -> usize {
        self.kept.push_back((item, bytes));
        self.bytes += bytes;
        let mut gone = 0;
        while self.kept.len() > 1
            && (self.kept.len() > MOST_KEPT || self.bytes > MOST_BYTES_KEPT)
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
pub(super) struct Backlog(Arc<Mutex<Load>>);

#[derive(Debug, Default)]
struct Load {
    requests: usize,
    bytes: usize,
}

/// The room that one request takes in the backlog, until this is dropped.
#[derive(Debug)]
pub(crate) struct Room {
    backlog: Backlog,
    bytes: usize,
}

/// Requests of a server that may wait for their answers at the same time. Over HTTP each answer takes a connection.
pub(super) const MOST_WAITING: usize = 200;
/// Bytes of those. A single larger one is taken.
const MOST_BYTES_WAITING: usize = 1 << 20;

impl Backlog {
    /// `None` if there is no room for another request.
    pub(super) fn admit(&self, bytes: usize) -> Option<Room> {
        let mut load = self.load();
        if load.requests >= MOST_WAITING || (load.requests > 0 && load.bytes + bytes > MOST_BYTES_WAITING) {
            return None;
        }
        load.requests += 1;
        load.bytes += bytes;
        Some(Room { backlog: self.clone(), bytes })
    }

    fn load(&self) -> MutexGuard<'_, Load> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Room {
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
            let mut newest = Newest::default();
            let lost: usize = bytes.iter().enumerate().map(|(index, bytes)| newest.push(index, *bytes)).sum();
            assert_eq!(newest.iter().copied().collect::<Vec<_>>(), expected, "{bytes:?}");
            assert_eq!(lost, gone);
        };
        check(&[1, 1, 1], &[0, 1, 2], 0);
        check(&[1, MOST_BYTES_KEPT, 1], &[2], 2);
        check(&[1, MOST_BYTES_KEPT + 1], &[1], 1);
        let many: Vec<usize> = (1..=MOST_KEPT).collect();
        check(&[1; MOST_KEPT + 1], &many, 1);
    }

    #[test]
    fn room_is_given_back() {
        let backlog = Backlog::default();
        let large = backlog.admit(MOST_BYTES_WAITING * 2).unwrap();
        assert!(backlog.admit(1).is_none());
        drop(large);
        let rooms: Vec<Room> = (0..MOST_WAITING).filter_map(|_| backlog.admit(1)).collect();
        assert_eq!(rooms.len(), MOST_WAITING);
        assert!(backlog.admit(1).is_none());
        drop(rooms);
        assert!(backlog.admit(1).is_some());
    }
}
