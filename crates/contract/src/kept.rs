//! Compares one session with a lock: for the tests of a program, whose client matches no client profile of a lock.

use super::diff::{Extent, Side, diff};
use super::profile::Visitor;
use mcproof_record::{ChangeLevel, Contract, ContractDiff};
use std::collections::BTreeMap;

/// How a session differs from what was locked for a client of its era. Where several kinds were locked, the one counts that
/// comes closest. It is taken for the same kind of client: a tool that is not there is gone, not perhaps kept from this one.
/// `None` if nothing was locked for its era.
pub fn kept(locked: &BTreeMap<String, Contract>, lock: &str, (key, contract): &(String, Contract), session: &str) -> Option<ContractDiff> {
    let era = |key: &str| Visitor::of_key(key).ok().map(|(visitor, _)| visitor.era);
    let of_era = locked.iter().filter(|(known, _)| era(known).is_some() && era(known) == era(key));
    let differences = of_era.map(|(known, promised)| {
        let promised = BTreeMap::from([(known.clone(), promised.clone())]);
        let shown = BTreeMap::from([(known.clone(), contract.clone())]);
        let old = Side { name: lock, contracts: &promised, extent: Extent::Whole };
        diff(old, Side { name: session, contracts: &shown, extent: Extent::Part })
    });
    differences.min_by_key(|diff| (diff.count(ChangeLevel::Breaking), diff.changes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn contract(tools: &[&str]) -> Contract {
        let tool = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" } });
        let mut contract = Contract { tools: Some(tools.iter().map(tool).collect()), ..Contract::default() };
        contract.hashes.full = tools.join(" ");
        contract
    }

    #[test]
    fn the_closest_contract_of_the_era_counts_and_what_is_missing_is_gone() {
        let locked = BTreeMap::from([("legacy/full".to_owned(), contract(&["a", "b"])), ("legacy/minimal".to_owned(), contract(&["a"]))]);
        let check = |key: &str, tools: &[&str], expected: Option<(usize, &str)>| {
            let found = kept(&locked, "lock", &(key.to_owned(), contract(tools)), "s");
            assert_eq!(found.map(|found| (found.changes.len(), found.keys.concat())), expected.map(|(count, key)| (count, key.to_owned())));
        };
        check("legacy/own", &["a", "b"], Some((0, "legacy/full")));
        check("legacy/own", &["a"], Some((0, "legacy/minimal")));
        check("legacy/own", &[], Some((1, "legacy/minimal")));
        check("modern/own", &["a"], None);
    }
}
