//! When and where a message is tried again that was not taken. Pure, but for the jitter.

use crate::channel::{DeliveryFailure, Kind};
use crate::moment::Moment;
use crate::store::outbox::Retry;
use backon::{BackoffBuilder as _, ExponentialBuilder};
use std::time::Duration;

/// So long a channel is tried before the next one is.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(30);
/// Between two rounds through all channels.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// An end that every channel refuses is nobody's concern any more after this; an acknowledgement sooner.
const RESOLVE_LASTS: Duration = Duration::from_secs(24 * 3600);
const ACKNOWLEDGE_LASTS: Duration = Duration::from_secs(3600);

/// What is known of the message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tried {
    pub(super) kind: Kind,
    pub(super) created: Moment,
    /// In the route.
    pub(super) channels: usize,
    pub(super) hop: i64,
    /// On this hop, without the one that failed now.
    pub(super) attempts: i64,
    pub(super) tried_since: Moment,
    /// See [`PATIENCE`].
    pub(super) patience: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Again(Retry),
    GiveUp,
}

/// What follows from an attempt that failed. Pages are never given up: after the last channel the first one is tried again.
pub(super) fn after(tried: &Tried, delivery_failure: &DeliveryFailure, now: Moment) -> Next {
    let Tried { kind, created, hop, attempts, tried_since, patience, .. } = *tried;
    let age = now.since(created);
    let is_over = match (kind, delivery_failure) {
        (Kind::Resolve, DeliveryFailure::Refused(_)) => age > RESOLVE_LASTS,
        (Kind::Acknowledge, _) => age > ACKNOWLEDGE_LASTS,
        _ => false,
    };
    if is_over {
        return Next::GiveUp;
    }
    let channels = i64::try_from(tried.channels.max(1)).unwrap_or(i64::MAX);
    let round = hop / channels;
    let is_last = (hop + 1) % channels == 0;
    // Where there is another channel, nobody waits for one that wants to be left alone.
    let wanted = match delivery_failure {
        DeliveryFailure::Passing { after: Some(after), .. } if channels == 1 => *after,
        _ => Duration::ZERO,
    };
    let moved = |due: Moment| Next::Again(Retry { due, hop: hop + 1, attempts: 0, tried_since: due });
    match delivery_failure {
        DeliveryFailure::Passing { after, .. } if round == 0 => {
            let delay = delay(attempts).max(after.unwrap_or(Duration::ZERO));
            let end = tried_since + patience;
            if now + delay < end {
                Next::Again(Retry { due: now + delay, hop, attempts: attempts + 1, tried_since })
            } else {
                moved(end.max(now + wanted))
            }
        }
        _ if is_last => moved(now + pause(round).max(wanted)),
        _ => moved(now),
    }
}

fn delay(attempts: i64) -> Duration {
    let growing = ExponentialBuilder::default().with_min_delay(FIRST_DELAY).with_max_delay(LONGEST_DELAY).with_jitter();
    let mut delays = growing.without_max_times().build();
    delays.nth(usize::try_from(attempts).unwrap_or(0).min(10)).unwrap_or(LONGEST_DELAY)
}

fn pause(round: i64) -> Duration {
    let doubled = u32::try_from(round.saturating_sub(1)).unwrap_or(0).min(10);
    (FIRST_PAUSE * 2_u32.pow(doubled)).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: Moment = Moment(1_000_000);

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn passing() -> DeliveryFailure {
        DeliveryFailure::Passing { why: "status 500".into(), after: None, maybe_taken: true }
    }

    /// Lets every attempt fail, and gives when (in seconds) and on which channel each of them was.
    fn tracker(channels: usize, delivery_failure: &DeliveryFailure, until: Duration) -> Vec<(u64, usize)> {
        attempts_within(PATIENCE, channels, delivery_failure, until)
    }

    fn attempts_within(patience: Duration, channels: usize, delivery_failure: &DeliveryFailure, until: Duration) -> Vec<(u64, usize)> {
        let mut row = Retry { due: BEGIN, hop: 0, attempts: 0, tried_since: BEGIN };
        let mut attempts = Vec::new();
        while row.due < BEGIN + until {
            let now = row.due;
            attempts.push((now.since(BEGIN).as_secs(), usize::try_from(row.hop).unwrap() % channels));
            let Retry { hop, attempts, tried_since, .. } = row;
            let tried = Tried { kind: Kind::Trigger, created: BEGIN, channels, hop, attempts, tried_since, patience };
            let Next::Again(next) = after(&tried, delivery_failure, now) else { panic!("a page was given up") };
            row = next;
        }
        attempts
    }

    #[test]
    fn the_next_channel_is_tried_after_two_minutes_and_then_all_of_them_for_ever() {
        let attempts = tracker(2, &passing(), seconds(3600));
        let first = |channel: usize, from: u64| attempts.iter().find(|(at, on)| *on == channel && *at >= from).unwrap().0;
        assert_eq!(attempts[0], (0, 0));
        assert_eq!(first(1, 0), 120);
        // A second after the first one, then ever later.
        assert!((1..=2).contains(&attempts[1].0), "{attempts:?}");
        assert!(attempts.iter().filter(|(at, _)| *at < 120).count() > 5, "{attempts:?}");
        assert_eq!(first(0, 120), 240);
        let later: Vec<_> = attempts.iter().filter(|(at, _)| *at >= 240).copied().collect();
        assert_eq!(later[..8], [(240, 0), (240, 1), (270, 0), (270, 1), (330, 0), (330, 1), (450, 0), (450, 1)]);
        let gaps: Vec<u64> = later.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert_eq!(gaps.iter().max(), Some(&300));
        assert!(later.last().unwrap().0 > 3000);
    }

    #[test]
    fn a_refusal_moves_on_at_once() {
        let attempts = tracker(3, &DeliveryFailure::Refused("status 404".into()), seconds(100));
        assert_eq!(attempts, [(0, 0), (0, 1), (0, 2), (30, 0), (30, 1), (30, 2), (60, 0), (60, 1), (60, 2)]);
    }

    #[test]
    fn who_does_not_stay_tries_every_channel_within_seconds() {
        let attempts = attempts_within(seconds(3), 3, &passing(), seconds(20));
        let first = |channel: usize| attempts.iter().find(|(_, on)| *on == channel).unwrap().0;
        assert_eq!([first(0), first(1), first(2)], [0, 3, 6], "{attempts:?}");
    }

    #[test]
    fn a_single_channel_is_tried_for_ever() {
        let attempts = tracker(1, &passing(), seconds(1200));
        assert!(attempts.iter().all(|(_, channel)| *channel == 0));
        assert!(attempts.iter().any(|(at, _)| *at == 120));
        let attempts = tracker(1, &DeliveryFailure::Refused("status 400".into()), seconds(1200));
        assert_eq!(attempts.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 30, 60, 120, 240, 480, 780, 1080]);
    }

    #[test]
    fn a_service_is_left_alone_as_long_as_it_wants_unless_another_one_waits_for_its_turn() {
        let check = |channels: usize, hop: i64, wait: u64, (due, next): (u64, i64)| {
            let delivery_failure = DeliveryFailure::Passing { why: "status 429".into(), after: Some(seconds(wait)), maybe_taken: false };
            let tried = Tried { kind: Kind::Trigger, created: BEGIN, channels, hop, attempts: 0, tried_since: BEGIN, patience: PATIENCE };
            let due = BEGIN + seconds(due);
            let (attempts, tried_since) = if next == hop { (1, BEGIN) } else { (0, due) };
            let expected = Retry { due, hop: next, attempts, tried_since };
            assert_eq!(after(&tried, &delivery_failure, BEGIN), Next::Again(expected), "{channels} {hop} {wait}");
        };
        check(2, 0, 40, (40, 0));
        check(2, 0, 600, (120, 1));
        check(2, 2, 600, (0, 3));
        check(2, 3, 600, (30, 4));
        check(1, 0, 40, (40, 0));
        check(1, 0, 600, (600, 1));
        check(1, 1, 600, (600, 2));
        check(1, 5, 10, (300, 6));
    }

    #[test]
    fn only_what_no_longer_matters_is_given_up() {
        let check = |kind: Kind, delivery_failure: &DeliveryFailure, hours: u64, given_up: bool| {
            let tried = Tried { kind, created: BEGIN, channels: 1, hop: 9, attempts: 0, tried_since: BEGIN, patience: PATIENCE };
            let next = after(&tried, delivery_failure, BEGIN + seconds(hours * 3600 + 1));
            assert_eq!(next == Next::GiveUp, given_up, "{kind} {delivery_failure:?} {hours}");
        };
        let refused = DeliveryFailure::Refused(String::new());
        check(Kind::Trigger, &refused, 24 * 365, false);
        check(Kind::Trigger, &passing(), 24 * 365, false);
        check(Kind::Reminder, &refused, 24 * 365, false);
        check(Kind::Resolve, &passing(), 24 * 365, false);
        check(Kind::Resolve, &refused, 23, false);
        check(Kind::Resolve, &refused, 24, true);
        check(Kind::Acknowledge, &passing(), 1, true);
        check(Kind::Acknowledge, &passing(), 0, false);
    }
}
