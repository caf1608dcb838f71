//! Durations as counts in buckets that grow by the same factor: two histograms add up to that of both, and a percentile is off
//! by two percent at the most. Written sparsely, because most have a handful of values.

use std::collections::BTreeMap;
use std::time::Duration;

/// From one bucket to the next.
const GROWTH: f64 = 1.04;
/// A day in microseconds: nothing takes longer.
const LONGEST: f64 = 86_400e6;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: BTreeMap<u32, u64>,
}

impl Histogram {
    pub fn record(&mut self, duration: Duration) {
        *self.counts.entry(bucket(duration)).or_default() += 1;
    }

    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.counts {
            *self.counts.entry(*bucket).or_default() += count;
        }
    }

    pub fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The duration that this share of all (0 to 1) does not exceed; none if there are none.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let count = self.count();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "counts are far from 2^52"
        )]
        let rank = ((count as f64 * share.clamp(0.0, 1.0)).ceil() as u64).max(1);
        let mut seen = 0;
        self.counts
            .iter()
            .find(|(_, count)| {
                seen += **count;
                seen >= rank
            })
            .map(|(bucket, _)| middle(*bucket))
    }

    /// Pairs of numbers: how many buckets further, and how many values.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut before = 0;
        for (bucket, count) in &self.counts {
            write(&mut bytes, u64::from(bucket - before));
            write(&mut bytes, *count);
            before = *bucket;
        }
        bytes
    }

    /// What cannot be read is no histogram.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let mut counts = BTreeMap::new();
        let mut bucket: u32 = 0;
        while !bytes.is_empty() {
            bucket = bucket.checked_add(u32::try_from(read(&mut bytes)?).ok()?)?;
            counts.insert(bucket, read(&mut bytes)?);
        }
        Some(Self { counts })
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the logarithm of a day is a small number")]
fn bucket(duration: Duration) -> u32 {
    let micros = (duration.as_secs_f64() * 1e6).clamp(1.0, LONGEST);
    (micros.ln() / GROWTH.ln()).round() as u32
}

fn middle(bucket: u32) -> Duration {
    Duration::from_secs_f64(GROWTH.powf(f64::from(bucket)) / 1e6)
}

/// Seven bits a byte, the lowest first.
fn write(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f).checked_shl(shift)?;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(micros: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        micros.iter().for_each(|micros| histogram.record(Duration::from_micros(*micros)));
        histogram
    }

    #[test]
    fn five_minutes_of_results_take_a_few_bytes() {
        assert!(of(&[12_000, 12_500, 13_000, 80_000, 12_100]).to_bytes().len() <= 12);
    }

    #[test]
    fn what_is_no_histogram_is_none() {
        assert_eq!(Histogram::from_bytes(&[0x80]), None);
        assert_eq!(Histogram::from_bytes(&[0xff; 20]), None);
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    proptest! {
        #[test]
        fn bytes_come_back_and_parts_add_up(one in prop::collection::vec(1..3_600_000_000u64, 0..50), two in prop::collection::vec(1..100_000u64, 0..50)) {
            let (first, second) = (of(&one), of(&two));
            prop_assert_eq!(Histogram::from_bytes(&first.to_bytes()), Some(first.clone()));
            let mut merged = first;
            merged.merge(&second);
            prop_assert_eq!(merged, of(&[one, two].concat()));
        }

        #[test]
        fn a_percentile_is_off_by_two_percent_at_most(mut values in prop::collection::vec(1..3_600_000_000u64, 1..200), percent in 1..=100usize) {
            let found = of(&values).quantile(percent as f64 / 100.0).unwrap().as_secs_f64() * 1e6;
            values.sort_unstable();
            let exact = values[(values.len() * percent).div_ceil(100).max(1) - 1] as f64;
            prop_assert!((found / exact - 1.0).abs() < 0.021 || (found - exact).abs() < 1.0, "{} for {}", found, exact);
        }
    }
}
