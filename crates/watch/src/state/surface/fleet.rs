//! The contracts of a fleet whose instances differ: one that was not seen in it before is weighed as any change is. Knows hashes, not
//! contracts.

use super::{Counted, Drift};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

/// Contracts that are no news any more; a fleet does not have more.
const MOST_KNOWN: usize = 50;
/// Contracts that were seen once; in a fleet where each is another one they are many.
const MOST_GLIMPSED: usize = 10;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Fleet {
    /// What was weighed, or accepted lately.
    known: VecDeque<String>,
    /// Seen once, and looked at for suspicious texts only.
    glimpsed: VecDeque<String>,
    /// Of a fleet that was mixed before any contract was certain: none of these is promised more than the others.
    pub(super) origins: Vec<String>,
    /// When it began, the contract was another one each time.
    pub(super) is_unstable: bool,
}

impl Fleet {
    pub(super) fn know(&mut self, contract: &str) {
        self.glimpsed.retain(|glimpsed| glimpsed != contract);
        if !self.known.iter().any(|known| known == contract) {
            push(&mut self.known, contract, MOST_KNOWN);
        }
    }

    /// As long as it is not mixed, it knows what was accepted lately, and nothing else.
    pub(super) fn forget(&mut self, is_forgotten: impl Fn(&String) -> bool) {
        self.known.retain(|known| !is_forgotten(known));
    }

    /// It is mixed from now on: what else was seen lately is weighed besides the `other` one.
    pub(super) fn begin(&mut self, accepted: &str, other: &str, recent: &VecDeque<String>) -> Vec<Drift> {
        let before = self.others(accepted);
        let mut drifts = Vec::new();
        for contract in recent.iter().collect::<BTreeSet<_>>() {
            if contract == other || contract == accepted || before.contains(contract) {
                continue;
            }
            let is_glimpse = self.is_unstable || recent.iter().filter(|seen| *seen == contract).count() == 1;
            drifts.push(self.drift(accepted, contract, before.clone(), if is_glimpse { Counted::Suspicion } else { Counted::Whole }));
            if is_glimpse {
                push(&mut self.glimpsed, contract, MOST_GLIMPSED);
            } else {
                self.know(contract);
            }
        }
        if self.is_unstable {
            push(&mut self.glimpsed, other, MOST_GLIMPSED);
        } else {
            self.know(other);
        }
        drifts
    }

    /// What is seen while it is mixed: nothing, unless it is new. What is new counts when it is seen for the second time; suspicious texts
    /// count at once, since what is another one each time is never seen twice.
    pub(super) fn meet(&mut self, accepted: &str, seen: &str) -> Option<Drift> {
        if self.known.iter().any(|known| known == seen) {
            return None;
        }
        let known = self.others(accepted);
        if !self.glimpsed.iter().any(|glimpsed| glimpsed == seen) {
            // The last one first: it is most like this one.
            let others = self.glimpsed.iter().rev().cloned().chain(known).collect();
            push(&mut self.glimpsed, seen, MOST_GLIMPSED);
            return Some(self.drift(accepted, seen, others, Counted::Suspicion));
        }
        if self.is_unstable {
            return None;
        }
        self.know(seen);
        Some(self.drift(accepted, seen, known, Counted::Whole))
    }

    fn others(&self, accepted: &str) -> Vec<String> {
        self.known.iter().rev().filter(|known| known.as_str() != accepted).cloned().collect()
    }

    fn drift(&self, accepted: &str, new: &str, others: Vec<String>, counted: Counted) -> Drift {
        Drift {
            old: accepted.to_owned(),
            new: new.to_owned(),
            others,
            agreed: None,
            is_mixed: true,
            is_unstable: self.is_unstable,
            is_added: true,
            counted,
            is_announced: false,
        }
    }
}

fn push(contracts: &mut VecDeque<String>, contract: &str, most: usize) {
    contracts.push_back(contract.to_owned());
    if contracts.len() > most {
        contracts.pop_front();
    }
}
