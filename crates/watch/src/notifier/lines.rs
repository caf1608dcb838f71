//! The ways to the services, as far as they keep others waiting: of a channel that does not respond, one message at a time finds out
//! whether it does again, so that hundreds that wait for it do not hold up what goes to others. Knows no messages.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// By the names of channels. Clones share what they know.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines(Arc<Mutex<BTreeMap<String, Line>>>);

#[derive(Debug, Default)]
struct Line {
    /// It did not respond the last time.
    hangs: bool,
    /// Messages that are on their way.
    under_way: usize,
}

/// One message on its way. What becomes of one that is dropped says nothing about the channel.
#[derive(Debug)]
pub(super) struct UnderWay<'a> {
    lines: &'a Lines,
    channel: &'a str,
}

impl Lines {
    /// A message may be sent; not while another one waits for a channel that does not respond.
    pub(super) fn enter<'a>(&'a self, channel: &'a str) -> Option<UnderWay<'a>> {
        let mut lines = self.lock();
        let line = lines.entry(channel.to_owned()).or_default();
        if line.hangs && line.under_way > 0 {
            return None;
        }
        line.under_way += 1;
        Some(UnderWay { lines: self, channel })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnderWay<'_> {
    /// The channel responded, or did not for so long that others waited.
    pub(super) fn leave(self, hangs: bool) {
        if let Some(line) = self.lines.lock().get_mut(self.channel) {
            line.hangs = hangs;
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Some(line) = self.lines.lock().get_mut(self.channel) {
            line.under_way -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_that_hangs_is_tried_by_one_message_at_a_time_until_it_responds() {
        let lines = Lines::default();
        let (first, second) = (lines.enter("chat").unwrap(), lines.enter("chat").unwrap());
        first.leave(true);
        assert!(lines.enter("chat").is_none(), "the second one still waits");
        assert!(lines.enter("duty").is_some(), "others are not concerned");
        second.leave(true);
        let third = lines.enter("chat").unwrap();
        assert!(lines.enter("chat").is_none());
        third.leave(false);
        let (fourth, fifth) = (lines.enter("chat").unwrap(), lines.enter("chat"));
        assert!(fifth.is_some());
        drop((fourth, fifth));
        assert_eq!(lines.lock().get("chat").map(|line| line.under_way), Some(0));
    }
}
