//! Keys of rows. They sort by the time at which they were made.

use crate::moment::Moment;
use siphasher::sip::SipHasher13;
use std::hash::{Hash as _, Hasher as _};
use uuid::{Builder, ClockSequence, Timestamp, Uuid};

/// A key of its own; those of one context sort in the order in which they are made.
pub(super) fn new(context: impl ClockSequence<Output = impl Into<u128>>, now: Moment) -> String {
    let seconds = u64::try_from(now.0.div_euclid(1_000)).unwrap_or(0);
    let nanos = u32::try_from(now.0.rem_euclid(1_000)).unwrap_or(0) * 1_000_000;
    Uuid::new_v7(Timestamp::from_unix(context, seconds, nanos)).to_string()
}

/// When a key was made, if it was made by [`new`].
pub(super) fn made_at(id: &str) -> Option<Moment> {
    let millis = Uuid::parse_str(id).ok()?.as_u128() >> 80;
    i64::try_from(millis).ok().map(Moment)
}

/// A key that is the same whoever makes it: two notifiers that write the same row write it once.
pub(super) fn derived(at: Moment, parts: &[&str]) -> String {
    let mut random = [0; 10];
    for (half, seed) in random.chunks_mut(5).zip([1, 2]) {
        let mut hasher = SipHasher13::new_with_keys(0, seed);
        parts.hash(&mut hasher);
        half.copy_from_slice(&hasher.finish().to_be_bytes()[..half.len()]);
    }
    let millis = u64::try_from(at.0).unwrap_or(0);
    Builder::from_unix_timestamp_millis(millis, &random).into_uuid().to_string()
}
