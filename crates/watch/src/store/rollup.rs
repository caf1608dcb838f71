//! Many results as a few numbers: for five minutes, an hour, a day. A stretch is always counted anew from what is beneath it,
//! so that doing it twice changes nothing.

use super::read::Bucket;
use super::values::Values;
use super::{Dialect, Store, StoreFailure};
use crate::latency::Latency;
use crate::moment::{DAY, FIVE_MINUTES, HOUR, Moment, millis};
use crate::schedule::Grid;
use crate::state::Verdict;
use sqlx::{Any, Row as _, Transaction};
use std::collections::BTreeMap;
use std::time::Duration;

/// Results of a slot may arrive so late.
const LATE: Duration = Duration::from_secs(30);
/// Targets in one transaction.
const TARGETS: usize = 200;

/// A target, as far as its schedule tells what was to be expected.
struct Planned {
    name: String,
    grid: Grid,
    /// The slot that was running when it was made known, and its first one.
    first: Moment,
}

impl Store {
    /// Counts everything from a little before `since` up to the last five minutes that are over, and says until when.
    ///
    /// # Errors
    /// The database failed; what was counted before stays.
    pub async fn roll_up(&self, since: Moment, now: Moment) -> Result<Moment, StoreFailure> {
        let until = (now - LATE).floor(FIVE_MINUTES);
        if since.floor(FIVE_MINUTES) >= until {
            return Ok(since);
        }
        let targets = self.planned().await?;
        let first = targets.iter().map(|target| target.first).min().unwrap_or(now);
        // What came too late for its own five minutes is counted with the next ones.
        let from = since.max(first).floor(FIVE_MINUTES) - FIVE_MINUTES;
        for some in targets.chunks(TARGETS) {
            let mut transaction = self.begin().await?;
            let fine = results(&mut transaction, some, from, until).await?;
            write(&mut transaction, some, FIVE_MINUTES, &fine, until).await?;
            for (width, beneath) in [(HOUR, FIVE_MINUTES), (DAY, HOUR)] {
                let counts = merged(&mut transaction, some, width, beneath, from.floor(width), until).await?;
                write(&mut transaction, some, width, &counts, until).await?;
            }
            transaction.commit().await?;
        }
        Ok(until)
    }

    async fn planned(&self) -> Result<Vec<Planned>, StoreFailure> {
        let rows = sqlx::query("SELECT name, every, created FROM target WHERE removed IS NULL ORDER BY name").fetch_all(&self.pool).await?;
        let planned = |row: &sqlx::any::AnyRow| {
            let (name, every): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
            let grid = Grid::new(&name, Duration::from_millis(every.unsigned_abs()));
            Ok(Planned { name, grid, first: grid.slot_at_or_before(Moment(row.try_get(2)?)) })
        };
        Ok(rows.iter().map(planned).collect::<Result<_, sqlx::Error>>()?)
    }
}

/// Counts by target and beginning of a stretch.
type Stretches = BTreeMap<(String, Moment), Bucket>;

/// What the results of one slot say: by region the newest conclusive one.
#[derive(Default)]
struct Slot {
    regions: BTreeMap<String, (i64, bool)>,
    durations: Vec<u64>,
}

impl Slot {
    /// A slot is bad if most places say so.
    fn counts(&self) -> Bucket {
        let bad = self.regions.values().filter(|(_, is_up)| !is_up).count();
        let mut counts = Bucket::default();
        match (self.regions.len(), bad * 2 > self.regions.len()) {
            (0, _) => counts.inconclusive = 1,
            (_, true) => counts.bad = 1,
            (_, false) => counts.good = 1,
        }
        self.durations.iter().for_each(|micros| counts.latency.record(*micros));
        counts
    }
}

async fn results(
    transaction: &mut Transaction<'_, Any>,
    targets: &[Planned],
    from: Moment,
    until: Moment,
) -> Result<Stretches, StoreFailure> {
    let names = Values::names(Dialect::of(transaction), targets.iter().map(|target| target.name.as_str()));
    let statement = format!(
        "SELECT target, slot, region, attempt, verdict, duration FROM result \
         WHERE target IN (VALUES {{}}) AND slot >= {} AND slot < {} ORDER BY target, slot",
        from.0, until.0
    );
    let mut slots: BTreeMap<(String, i64), Slot> = BTreeMap::new();
    for row in names.query(&statement).fetch_all(&mut **transaction).await? {
        let slot = slots.entry((row.try_get(0)?, row.try_get(1)?)).or_default();
        let (region, attempt, verdict): (String, i64, String) = (row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
        let Some(verdict) = Verdict::of_word(&verdict).filter(|verdict| *verdict != Verdict::Inconclusive) else { continue };
        let newest = slot.regions.entry(region).or_insert((attempt, verdict.is_up()));
        *newest = (*newest).max((attempt, verdict.is_up()));
        if verdict.is_up() {
            slot.durations.push(row.try_get::<i64, _>(5)?.unsigned_abs());
        }
    }
    let mut stretches = Stretches::new();
    for ((target, slot), found) in slots {
        stretches.entry((target, Moment(slot).floor(FIVE_MINUTES))).or_default().add(&found.counts());
    }
    Ok(stretches)
}

async fn merged(
    transaction: &mut Transaction<'_, Any>,
    targets: &[Planned],
    width: Duration,
    beneath: Duration,
    from: Moment,
    until: Moment,
) -> Result<Stretches, StoreFailure> {
    let names = Values::names(Dialect::of(transaction), targets.iter().map(|target| target.name.as_str()));
    let statement = format!(
        "SELECT target, start, good, bad, inconclusive, histogram FROM rollup \
         WHERE target IN (VALUES {{}}) AND width = {} AND start >= {} AND start < {}",
        millis(beneath),
        from.0,
        until.0
    );
    let mut stretches = Stretches::new();
    for row in names.query(&statement).fetch_all(&mut **transaction).await? {
        let start: i64 = row.try_get(1)?;
        let latency = Latency::read(&row.try_get::<Vec<u8>, _>(5)?);
        let counts = Bucket { good: row.try_get(2)?, bad: row.try_get(3)?, inconclusive: row.try_get(4)?, latency, ..Bucket::default() };
        stretches.entry((row.try_get(0)?, Moment(start).floor(width))).or_default().add(&counts);
    }
    Ok(stretches)
}

async fn write(
    transaction: &mut Transaction<'_, Any>,
    targets: &[Planned],
    width: Duration,
    stretches: &Stretches,
    until: Moment,
) -> Result<(), StoreFailure> {
    const ROWS: usize = 500;
    let planned: BTreeMap<&str, &Planned> = targets.iter().map(|target| (target.name.as_str(), target)).collect();
    let stretches: Vec<_> = stretches.iter().collect();
    for some in stretches.chunks(ROWS) {
        let mut values = Values::new(Dialect::of(transaction));
        for ((target, start), counts) in some {
            let Some(planned) = planned.get(target.as_str()) else { continue };
            let (begin, end) = ((*start).max(planned.first), (*start + width).min(until));
            let had = counts.good + counts.bad + counts.inconclusive;
            let missed = i64::try_from(planned.grid.slots_between(begin, end)).map_or(i64::MAX, |slots| (slots - had).max(0));
            values.row(|row| {
                row.add(target.clone()).add(millis(width)).add(start.0).add(counts.good).add(counts.bad);
                row.add(counts.inconclusive).add(missed).add(counts.latency.bytes());
            });
        }
        if !values.is_empty() {
            let statement = "INSERT INTO rollup (target, width, start, good, bad, inconclusive, missed, histogram) VALUES {} \
                 ON CONFLICT (target, width, start) DO UPDATE SET good = excluded.good, bad = excluded.bad, \
                 inconclusive = excluded.inconclusive, missed = excluded.missed, histogram = excluded.histogram";
            values.query(statement).execute(&mut **transaction).await?;
        }
    }
    Ok(())
}
