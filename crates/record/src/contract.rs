//! The contract of a server, as `mcproof.lock` stores it, and its changes. Plain data; filled and compared elsewhere.

use crate::FORMAT_VERSION;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The lock file: the contract of one server, for each kind of client that was locked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContractLock {
    pub version: u32,
    /// How the server was reached, if that contains no secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<LockedTarget>,
    /// By kind of client: `legacy/full`, `modern/minimal`, with `/` and the name of an identity where there is one.
    pub contracts: BTreeMap<String, Contract>,
}

impl ContractLock {
    pub fn new(target: Option<LockedTarget>, contracts: BTreeMap<String, Contract>) -> Self {
        Self { version: FORMAT_VERSION, target, contracts }
    }
}

/// How the server was reached: by `command`, `url` or `server`; a command beside a URL starts what listens there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LockedTarget {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Where the command was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The names of the variables that were set for it; their values may be secret and are not stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The name of a server in a configuration file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// What a server offers to one kind of client. Lists are sorted; a list that is `None` was not requested, because the
/// server does not offer it or it was not needed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Contract {
    pub hashes: ContractHashes,
    /// Set if only what some client happened to request is known, as from a trace: revisions and lists that are missing may exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<PartialContract>,
    /// The revisions of this era that the server supports, newest first.
    pub protocol_versions: Vec<String>,
    /// Name, version and other facts that the server sends about itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Value>,
    pub capabilities: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<Vec<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_templates: Option<Vec<Value>>,
}

impl Contract {
    /// Whether what is missing in it may exist all the same.
    pub fn is_partial(&self) -> bool {
        self.partial.is_some()
    }
}

/// What recorded traffic leaves open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartialContract {
    /// The methods of lists that were requested, and that the server did not return.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

/// Each is `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContractHashes {
    /// Over the sorted pairs of name and input schema of the tools.
    pub tools: String,
    /// Over the whole contract.
    pub full: String,
}

/// What a change means for clients of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ChangeLevel {
    /// Programs do not notice it.
    Cosmetic,
    /// What worked before still works.
    Compatible,
    /// Something that worked before may fail, or mean something else.
    Breaking,
}

/// One difference between two contracts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContractChange {
    pub level: ChangeLevel,
    /// What kind of change it is, such as `tool-removed`.
    pub code: String,
    /// The kinds of clients for which it is one.
    pub keys: Vec<String>,
    /// What changed, such as ``tool `echo` ``.
    pub subject: String,
    /// JSON pointer into the subject, as it is now, or as it was if it is gone.
    pub pointer: String,
    /// A lowercase fragment without a final dot.
    pub reason: String,
    /// Set if the new text gives hidden instructions to models, and the old one did not: what it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspicion: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
}

/// All differences between two sides, the worst first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContractDiff {
    pub version: u32,
    /// What was compared, in words.
    pub old: String,
    pub new: String,
    /// The kinds of clients that were compared.
    pub keys: Vec<String>,
    /// What could not be compared, each with the reason: a lowercase fragment without a final dot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<String>,
    /// Set if a server did not return a part of what was not compared: whether that part changed is unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inconclusive: bool,
    pub changes: Vec<ContractChange>,
}

impl ContractDiff {
    pub fn count(&self, level: ChangeLevel) -> usize {
        self.changes.iter().filter(|change| change.level == level).count()
    }

    /// Whether anything but the version of the server changed: a release with the same contract is not drift.
    pub fn is_drift(&self) -> bool {
        self.changes.iter().any(|change| !(change.subject == "the server" && change.pointer == "/version"))
    }

    /// Whether a change is of this level or above. A suspicious text counts as breaking.
    pub fn reaches(&self, level: ChangeLevel) -> bool {
        self.changes.iter().any(|change| change.level >= level || change.suspicion.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A file of version 1, which every later reader must read.
    const WRITTEN_BY_VERSION_1: &str = r#"{
  "version": 1,
  "target": { "command": ["node", "server.js"], "variables": ["API_KEY"] },
  "contracts": {
    "legacy/full": {
      "hashes": { "tools": "sha256:00", "full": "sha256:01" },
      "protocol_versions": ["2025-11-25"],
      "server": { "name": "s", "version": "1" },
      "capabilities": { "tools": {} },
      "tools": [{ "inputSchema": { "type": "object" }, "name": "t" }]
    }
  }
}"#;

    #[test]
    fn a_lock_of_version_1_reads_and_writes_back() {
        let lock: ContractLock = serde_json::from_str(WRITTEN_BY_VERSION_1).unwrap();
        let contract = &lock.contracts["legacy/full"];
        assert_eq!(contract.tools.as_deref(), Some(&[json!({ "inputSchema": { "type": "object" }, "name": "t" })][..]));
        assert_eq!(contract.prompts, None);
        let written: Value = serde_json::to_value(&lock).unwrap();
        assert_eq!(written, serde_json::from_str::<Value>(WRITTEN_BY_VERSION_1).unwrap());
    }

    #[test]
    fn a_contract_of_a_trace_is_marked_as_partial() {
        let hashes = "{ \"tools\": \"sha256:00\", \"full\": \"sha256:01\" }";
        let check = |mark: &str, expected: Option<&[&str]>| {
            let text = format!("{{ \"hashes\": {hashes}, {mark} \"protocol_versions\": [], \"capabilities\": {{}} }}");
            let contract: Contract = serde_json::from_str(&text).unwrap();
            let failed = contract.partial.as_ref().map(|partial| partial.failed.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!((failed.as_deref(), contract.is_partial()), (expected, expected.is_some()));
            assert_eq!(serde_json::to_value(&contract).unwrap(), serde_json::from_str::<Value>(&text).unwrap());
        };
        check("", None);
        check("\"partial\": {},", Some(&[]));
        check("\"partial\": { \"failed\": [\"tools/list\"] },", Some(&["tools/list"]));
    }
}
