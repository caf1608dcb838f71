use super::*;
use proptest::prelude::*;

fn seconds(count: i64) -> Moment {
    Moment(count * 1000)
}

/// Slots of a grid every ten seconds from zero.
fn check(found: impl FnOnce(Grid) -> Moment, expected: i64) {
    assert_eq!(found(Grid { every: 10_000, offset: 0 }), seconds(expected));
}

#[test]
fn slots_are_multiples_of_the_interval() {
    check(|grid| grid.slot_at_or_after(seconds(20)), 20);
    check(|grid| grid.slot_at_or_after(seconds(21)), 30);
    check(|grid| grid.slot_at_or_before(seconds(20)), 20);
    check(|grid| grid.slot_at_or_before(seconds(29)), 20);
    check(|grid| grid.next_slot(seconds(20)), 30);
    // Of another grid: neither at once nor with a gap.
    check(|grid| grid.next_slot(seconds(26)), 40);
    check(|grid| grid.next_slot(seconds(24)), 30);
}

#[test]
fn slots_of_a_stretch_are_counted_without_its_end() {
    let grid = Grid { every: 10_000, offset: 3_000 };
    for (from, until, expected) in [(0, 10, 1), (3, 3, 0), (3, 4, 1), (4, 13, 0), (4, 14, 1), (0, 60, 6), (50, 20, 0)] {
        assert_eq!(grid.slots_between(seconds(from), seconds(until)), expected, "{from} to {until}");
    }
}

#[test]
fn names_spread_over_the_interval() {
    let every = Duration::from_secs(60);
    let mut seconds = [0; 60];
    for number in 0..6000 {
        let slot = Grid::new(&format!("target-{number}"), every).slot_at_or_after(Moment(0));
        seconds[usize::try_from(slot.0 / 1000).unwrap()] += 1;
    }
    assert!(seconds.iter().all(|count| (50..=160).contains(count)), "{seconds:?}");
}

#[test]
fn what_is_new_is_probed_at_once_and_many_spread_before_their_next_slot() {
    let (grid, now) = (Grid { every: 10_000, offset: 0 }, seconds(23));
    let first = |spread: u64| Turn::first(grid, now, Duration::from_secs(spread));
    for (spread, wait) in [(0, 0), (1, 700), (5, 3_500), (60, 3_500)] {
        assert_eq!(first(spread), Turn { slot: seconds(20), attempt: 0, due: now + Duration::from_millis(wait) }, "{spread}");
    }
    assert_eq!(first(0).after(grid, now, None), Turn { slot: seconds(30), attempt: 0, due: seconds(30) });
    assert_eq!(Turn::resumed(grid, now), Turn { slot: seconds(30), attempt: 0, due: seconds(30) });
    let every = Duration::from_secs(60);
    let mut dues = [0; 10];
    for number in 0..5000 {
        let grid = Grid::new(&format!("target-{number}"), every);
        let turn = Turn::first(grid, now, Duration::from_secs(10));
        assert!(turn.slot <= now && turn.due < grid.next_slot(turn.slot), "{turn:?}");
        dues[usize::try_from((turn.due.0 - now.0) / 1000).unwrap()] += 1;
    }
    assert!(dues.iter().all(|count| (400..=600).contains(count)), "{dues:?}");
}

/// What happens to a target between two looks at the clock.
#[derive(Clone, Copy, Debug)]
enum Happening {
    /// Nobody is there.
    Waits {
        millis: i64,
    },
    /// It is probed, if it is due.
    Probed {
        millis: i64,
        confirm: Option<u64>,
    },
    Interval {
        millis: u64,
    },
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let one = prop_oneof![
        3 => (0..120_000i64).prop_map(|millis| Happening::Waits { millis }),
        6 => (1..30_000i64, prop::option::weighted(0.2, 0..20_000u64)).prop_map(|(millis, confirm)| Happening::Probed { millis, confirm }),
        1 => (1_000..120_000u64).prop_map(|millis| Happening::Interval { millis }),
    ];
    prop::collection::vec(one, 1..200)
}

proptest! {
    #[test]
    fn slots_only_grow_and_no_result_comes_twice(start in 0..10_000_000i64, every in 1_000..120_000u64, spread in 0..60u64, tracker in happenings()) {
        let mut grid = Grid::new("target", Duration::from_millis(every));
        let mut now = Moment(start);
        let mut turn = Turn::first(grid, now, Duration::from_secs(spread));
        let mut last = (Moment(i64::MIN), 0);
        for happening in tracker {
            match happening {
                Happening::Waits { millis } => now = Moment(now.0 + millis),
                Happening::Interval { millis } => {
                    grid = Grid::new("target", Duration::from_millis(millis));
                    turn = turn.moved(grid, now);
                }
                Happening::Probed { millis, confirm } => {
                    now = now.max(turn.due);
                    let taken = turn.taken(grid, now);
                    prop_assert!((taken.slot, taken.attempt) > last, "{taken:?} after {last:?}");
                    prop_assert!(taken.slot <= now);
                    last = (taken.slot, taken.attempt);
                    now = Moment(now.0 + millis);
                    let confirm = confirm.filter(|_| taken.attempt < 2).map(Duration::from_millis);
                    turn = taken.after(grid, now, confirm);
                    prop_assert!(turn.due + grid.every() > now, "{turn:?} at {now:?}");
                }
            }
        }
    }

    #[test]
    fn a_target_that_is_always_probed_at_once_misses_no_slot_whatever_its_interval_becomes(
        start in 0..10_000_000i64,
        changes in prop::collection::vec((1_000..120_000u64, 0..300_000i64), 1..20),
    ) {
        let mut grid = Grid::new("target", Duration::from_millis(changes[0].0));
        let mut turn = Turn::first(grid, Moment(start), Duration::ZERO);
        let mut now = Moment(start);
        let mut last: Option<Moment> = None;
        // Of those that held since the last probe.
        let mut longest = grid.every();
        for (every, lasts) in changes {
            grid = Grid::new("target", Duration::from_millis(every));
            turn = turn.moved(grid, now);
            longest = longest.max(grid.every());
            let until = Moment(now.0 + lasts);
            while turn.due <= until {
                now = turn.due;
                if let Some(last) = last {
                    let gap = turn.slot.since(last);
                    prop_assert!(turn.slot > last);
                    prop_assert!(gap <= longest * 3 / 2 + Duration::from_millis(2), "{gap:?} of at most {longest:?}");
                }
                last = Some(turn.slot);
                longest = grid.every();
                turn = turn.taken(grid, now).after(grid, now, None);
            }
            now = until;
        }
    }
}
