//! Latencies as counts in buckets, so that those of many minutes add up to those of a day. Pure.

use std::collections::BTreeMap;

/// Buckets for each doubling: a quantile is off by 3 % at most.
const STEPS: u64 = 16;
const FORMAT: u8 = 1;

/// Microseconds, by bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    counts: BTreeMap<u16, u64>,
}

impl Latency {
    pub fn record(&mut self, micros: u64) {
        *self.counts.entry(bucket(micros)).or_default() += 1;
    }

    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.counts {
            *self.counts.entry(*bucket).or_default() += count;
        }
    }

    pub fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Microseconds that this share of all did not take longer than; none if there are none.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let count = self.count();
        let rank = ((count as f64 * share).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        for (bucket, number) in &self.counts {
            seen += number;
            if seen >= rank {
                return Some(middle(*bucket));
            }
        }
        None
    }

    /// As the store keeps it: the format, then pairs of the distance to the last bucket and a count, each as LEB128.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        let mut last = 0;
        for (bucket, count) in &self.counts {
            push(&mut bytes, u64::from(bucket - last));
            push(&mut bytes, *count);
            last = *bucket;
        }
        bytes
    }

    /// What cannot be read counts as nothing: a broken blob must not take a page away.
    pub fn read(bytes: &[u8]) -> Self {
        let Some((&FORMAT, mut rest)) = bytes.split_first() else { return Self::default() };
        let mut counts = BTreeMap::new();
        let mut last = 0_u16;
        while let (Some(distance), Some(count)) = (pull(&mut rest), pull(&mut rest)) {
            let Some(bucket) = u16::try_from(distance).ok().and_then(|distance| last.checked_add(distance)) else { break };
            counts.insert(bucket, count);
            last = bucket;
        }
        Self { counts }
    }
}

fn bucket(micros: u64) -> u16 {
    if micros < STEPS {
        return u16::try_from(micros).expect("it is less than 16");
    }
    let power = u64::from(micros.ilog2());
    u16::try_from((power - 3) * STEPS + (micros >> (power - 4)) - STEPS).expect("64 powers of 16 steps fit")
}

fn middle(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    if bucket < STEPS {
        return bucket;
    }
    let power = (bucket / STEPS + 3).min(63);
    let width = 1 << (power - 4);
    (bucket % STEPS + STEPS) * width + width / 2
}

fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(u8::try_from(number & 0x7f).expect("seven bits") | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).expect("seven bits"));
}

fn pull(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_quantile_is_near_the_truth_also_after_a_merge_and_a_stay_in_the_store(
            mut some in prop::collection::vec(1_u64..60_000_000, 1..200), others in prop::collection::vec(1_u64..60_000_000, 0..200),
        ) {
            let of = |micros: &[u64]| {
                let mut latency = Latency::default();
                micros.iter().for_each(|micros| latency.record(*micros));
                Latency::read(&latency.bytes())
            };
            let mut both = of(&some);
            both.merge(&of(&others));
            some.extend(&others);
            some.sort_unstable();
            prop_assert_eq!(both.count(), some.len() as u64);
            for share in [0.5, 0.95, 0.99] {
                let rank = ((some.len() as f64 * share).ceil() as usize).max(1);
                let (truth, found) = (some[rank - 1] as f64, both.quantile(share).unwrap() as f64);
                prop_assert!((found - truth).abs() <= truth * 0.035 + 1.0, "{found} instead of {truth}");
            }
        }

        #[test]
        fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Latency::read(&bytes).quantile(0.5);
        }
    }
}
