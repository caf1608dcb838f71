//! Comparison of two lock files: a contract has no difference from itself, additions and removals are reported in both directions, a
//! lock file is read as it was written, and every difference can be shown. Each line is a contract, or a list of tools as JSON.

use crate::lines_of;
use mcproof_contract::fuzzed;
use mcproof_contract::{self as contract, Extent, Side};
use mcproof_record::{Contract, ContractLock};
use mcproof_report::{Style, contract as shown};
use serde_json::Value;
use std::collections::BTreeMap;

/// # Panics
/// If a property does not hold.
pub fn check(bytes: &[u8]) {
    let (old, new) = lines_of(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        // Every error of a lock file is reported.
        if let Err(failure) = contract::parse(text) {
            assert!(!failure.to_string().is_empty());
        }
    }
    let (Some(old), Some(new)) = (contracts(old), contracts(new)) else { return };
    for one in [&old, &new] {
        let lock = ContractLock::new(None, one.clone());
        assert_eq!(contract::parse(&contract::write(&lock)).as_ref(), Ok(&lock), "a lock is read as it was written");
        let same = compare(one, one);
        assert!(!same.is_drift(), "{same:?}");
    }
    let (there, back) = (compare(&old, &new), compare(&new, &old));
    assert_eq!(there.is_drift(), back.is_drift(), "{there:?}\n{back:?}");
    let is_same = old.values().zip(new.values()).all(|(old, new)| old.hashes.full == new.hashes.full);
    assert!(!is_same || !there.is_drift(), "what has the same hash has no difference: {there:?}");
    let text = shown::terminal(&there, &Style::default());
    let hostile = text.chars().find(|character| character.is_control() && *character != '\n');
    assert_eq!(hostile, None, "{text:?}");
}

fn contracts(bytes: &[u8]) -> Option<BTreeMap<String, Contract>> {
    let contract = match serde_json::from_slice::<Value>(bytes).ok()? {
        Value::Array(tools) => fuzzed::contract_of_tools(tools),
        value => fuzzed::with_hashes(serde_json::from_value(value).ok()?),
    };
    Some(BTreeMap::from([("legacy/full".to_owned(), contract)]))
}

fn compare(old: &BTreeMap<String, Contract>, new: &BTreeMap<String, Contract>) -> mcproof_record::ContractDiff {
    let side = |name, contracts| Side { name, contracts, extent: Extent::Whole };
    contract::diff(side("old", old), side("new", new))
}
