//! Which case is which, whatever else is in the suites: what parts a run between machines, and what shuffles it.
//! Knows names only, so that it is the same on every machine, wherever a test stands and however its file is named.

use mcproof_record::{CaseKey, CasePlan};
use mcproof_system::files::without_dots;
use siphasher::sip::SipHasher13;
use std::fmt;
use std::hash::Hasher as _;
use std::path::Path;
use std::str::FromStr;

/// One of several parts of a run. Each case is in exactly one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Counted from 1.
    index: u32,
    count: u32,
}

impl Shard {
    /// Whether each of these cases is in this part. They are dealt out in the order of their hashes, so that no part has more
    /// than one case more than another, and slow neighbors come into different ones.
    pub(super) fn holds(self, keys: &[CaseKey]) -> Vec<bool> {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by_cached_key(|position| hash(&keys[*position], 0, 0));
        let mut held = vec![false; keys.len()];
        let skipped = usize::try_from(self.index - 1).unwrap_or(usize::MAX);
        for position in order.into_iter().skip(skipped).step_by(usize::try_from(self.count).unwrap_or(usize::MAX)) {
            held[position] = true;
        }
        held
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text.split_once('/').and_then(|(index, count)| Some((index.trim().parse().ok()?, count.trim().parse().ok()?)));
        match numbers {
            Some((index, count)) if 1 <= index && index <= count => Ok(Self { index, count }),
            Some((_, 0)) => Err("the number of parts must be at least 1".to_owned()),
            Some((_, count)) => Err(format!("the first of {count} shards is 1/{count}, the last is {count}/{count}")),
            None => Err("a shard is written as 2/5: the second of five".to_owned()),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.index, self.count)
    }
}

/// `folder` is where the run was started.
pub fn case_key(case: &CasePlan, folder: &Path) -> CaseKey {
    CaseKey { suite: relative(&case.suite, folder), name: case.name.clone(), transport: case.transport.clone() }
}

/// A name for what belongs to a folder but is kept elsewhere.
pub fn folder_name(folder: &Path) -> String {
    let mut hasher = SipHasher13::new();
    hasher.write(folder.as_os_str().as_encoded_bytes());
    format!("{:016x}", hasher.finish())
}

/// The place of a case in an order that `seed` gives.
pub(super) fn shuffled(case: &CasePlan, folder: &Path, seed: u32) -> u64 {
    hash(&case_key(case, folder), u64::from(seed), u64::from(case.repetition))
}

/// The same on every machine.
fn hash(key: &CaseKey, seed: u64, more: u64) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(seed, more);
    for part in [&key.suite, &key.name, &key.transport] {
        hasher.write(part.as_bytes());
        // No text holds this byte, so that parts cannot run into each other.
        hasher.write_u8(0xff);
    }
    hasher.finish()
}

/// The same text for `a.yaml`, `./a.yaml` and its absolute path.
fn relative(file: &str, folder: &Path) -> String {
    let plain = without_dots(&folder.join(file));
    plain.strip_prefix(folder).unwrap_or(&plain).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> CaseKey {
        CaseKey { suite: "s".into(), name: name.into(), transport: "stdio".into() }
    }

    #[test]
    fn each_case_is_in_one_shard_and_all_shards_have_as_many() {
        for (cases, count) in [(700, 1), (700, 2), (700, 7), (5, 2), (5, 4), (5, 5), (2, 5), (0, 3)] {
            let keys: Vec<CaseKey> = (0..cases).map(|number: usize| key(&number.to_string())).collect();
            let shards: Vec<Vec<bool>> = (1..=count).map(|index| Shard { index, count }.holds(&keys)).collect();
            for case in 0..cases {
                assert_eq!(shards.iter().filter(|held| held[case]).count(), 1);
            }
            let sizes: Vec<usize> = shards.iter().map(|held| held.iter().filter(|is_held| **is_held).count()).collect();
            let fair = cases / sizes.len();
            assert!(sizes.iter().all(|size| (fair..=fair + 1).contains(size)), "{sizes:?}");
        }
        // The order in which cases are written moves none.
        let (there, back) = (["a", "b", "c", "d", "e"].map(key), ["e", "d", "c", "b", "a"].map(key));
        let half = Shard { index: 1, count: 2 };
        let mut held = half.holds(&back);
        held.reverse();
        assert_eq!(half.holds(&there), held);
        // Machines and versions agree on it.
        assert_eq!(hash(&key("a"), 0, 0), 9_765_917_481_684_916_905);
    }

    #[test]
    fn a_path_is_the_same_however_it_is_written() {
        let check = |file: &str, expected: &str| assert_eq!(relative(file, Path::new("/home/me")), expected, "{file}");
        check("a.yaml", "a.yaml");
        check("./a.yaml", "a.yaml");
        check("x/../a.yaml", "a.yaml");
        check("/home/me/x/a.yaml", "x/a.yaml");
        check("../you/a.yaml", "/home/you/a.yaml");
        check("/tmp/a.yaml", "/tmp/a.yaml");
    }

    #[test]
    fn a_shard_reads_as_people_write_it() {
        let check =
            |text: &str, expected: Option<&str>| assert_eq!(text.parse::<Shard>().ok().map(|it| it.to_string()).as_deref(), expected);
        check("1/1", Some("1/1"));
        check("2/5", Some("2/5"));
        check(" 2 / 5 ", Some("2/5"));
        for text in ["", "2", "0/5", "6/5", "1/0", "-1/2", "a/b", "1/2/3"] {
            check(text, None);
        }
    }
}
