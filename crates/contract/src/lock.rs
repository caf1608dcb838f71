//! The text of `mcproof.lock`: JSON with one member a line, always in the same order. Knows no files.

use mcproof_record::{ContractHashes, ContractLock, FORMAT_VERSION};
use serde_json::Value;

/// Why a text is no lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    #[error("is not valid JSON: {reason}")]
    NoJson { reason: String },
    #[error("is not a lock: it has no `contracts`")]
    NoLock,
    #[error("was written by a newer mcproof: it has version {found}, and this one reads version {FORMAT_VERSION}")]
    Newer { found: u64 },
    #[error("is damaged: {reason}")]
    Damaged { reason: String },
    #[error("is damaged: the contract `{key}` does not match its hash")]
    Changed { key: String },
}

/// The lock as text.
pub fn write(lock: &ContractLock) -> String {
    let mut text = serde_json::to_string_pretty(lock).expect("a lock has text keys only");
    text.push('\n');
    text
}

/// Reads what [`write()`] wrote, also earlier versions of it.
///
/// # Errors
/// The text is something else, is newer, or was changed by hand without its hashes.
pub fn parse(text: &str) -> Result<ContractLock, LockError> {
    let value: Value = serde_json::from_str(text).map_err(|error| LockError::NoJson { reason: error.to_string() })?;
    if !value.get("contracts").is_some_and(Value::is_object) {
        return Err(LockError::NoLock);
    }
    match value.get("version").and_then(Value::as_u64) {
        Some(found) if found > u64::from(FORMAT_VERSION) => return Err(LockError::Newer { found }),
        Some(1..) => {}
        _ => return Err(LockError::Damaged { reason: "it has no `version`".into() }),
    }
    let lock: ContractLock = serde_json::from_value(value).map_err(|error| LockError::Damaged { reason: error.to_string() })?;
    for (key, contract) in &lock.contracts {
        let tools = super::tools_hash(contract.tools.as_deref().unwrap_or_default());
        if contract.hashes.tools != tools || contract.hashes.full != super::full_hash(contract) {
            return Err(LockError::Changed { key: key.clone() });
        }
    }
    Ok(lock)
}

/// The text of a lock in which texts were replaced, such as secrets, with the hashes of what it has now. `None` if it is no lock any more.
pub fn rehashed(text: &str) -> Option<String> {
    let mut lock: ContractLock = serde_json::from_str(text).ok()?;
    for contract in lock.contracts.values_mut() {
        let tools = super::tools_hash(contract.tools.as_deref().unwrap_or_default());
        contract.hashes = ContractHashes { tools, full: super::full_hash(contract) };
    }
    Some(write(&lock))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::of_parts;
    use mcproof_record::Contract;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[test]
    fn a_lock_reads_back_and_tells_what_is_wrong_with_others() {
        let contract = of_parts(Contract::default(), Some(vec![json!({ "name": "a" })]), None, None, None);
        let lock = ContractLock::new(None, BTreeMap::from([("legacy/full".to_owned(), contract)]));
        let text = write(&lock);
        assert_eq!(parse(&text), Ok(lock));
        let check = |text: &str, expected: &str| assert_eq!(parse(text).unwrap_err().to_string(), expected);
        check("{", "is not valid JSON: EOF while parsing an object at line 1 column 1");
        check("{}", "is not a lock: it has no `contracts`");
        check(r#"{"contracts": {}}"#, "is damaged: it has no `version`");
        check(
            &text.replace("\"version\": 1", "\"version\": 2"),
            "was written by a newer mcproof: it has version 2, and this one reads version 1",
        );
        check(&text.replace("\"a\"", "\"b\""), "is damaged: the contract `legacy/full` does not match its hash");
        check(&text.replace("capabilities", "capability"), "is damaged: missing field `capabilities`");
        let replaced = rehashed(&text.replace("\"a\"", "\"b\"")).unwrap();
        assert_eq!(parse(&replaced).unwrap().contracts["legacy/full"].tools, Some(vec![json!({ "name": "b" })]));
        assert_eq!(rehashed("{"), None);
    }
}
