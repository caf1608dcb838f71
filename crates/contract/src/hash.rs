//! The two hashes of a contract, over canonical JSON (RFC 8785).

use mcproof_record::Contract;
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::io;

/// SHA-256 over the array of `[name, inputSchema]` arrays of all tools, sorted by name: the figure that monitors use. A
/// tool without an input schema has `null` there. Tools of the same name stand in the order of their canonical schemas.
pub fn tools_hash(tools: &[Value]) -> String {
    let mut tools: Vec<&Value> = tools.iter().collect();
    sort(&mut tools, |tool| text(tool, "name"), |tool| canonical(&tool.get("inputSchema")));
    let pairs: Vec<_> = tools.into_iter().map(|tool| (tool.get("name"), tool.get("inputSchema"))).collect();
    sha256(&pairs)
}

/// By name; where several have one name, by what else tells them apart, which takes longer to make.
pub(super) fn sort<T>(items: &mut [T], name: impl Fn(&T) -> &str, rest: impl Fn(&T) -> String) {
    items.sort_by(|one, two| name(one).cmp(name(two)));
    for namesakes in items.chunk_by_mut(|one, two| name(one) == name(two)).filter(|namesakes| namesakes.len() > 1) {
        namesakes.sort_by_cached_key(&rest);
    }
}

/// A member that is a text; nothing if it is none.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// What the full hash is over.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Promised<'a> {
    protocol_versions: &'a [String],
    capabilities: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a [Value]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompts: Option<&'a [Value]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<&'a [Value]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_templates: Option<&'a [Value]>,
}

/// SHA-256 over everything that is promised: all of the contract but its hashes and the server's own version, which says
/// when a promise was made and not what it is.
pub fn full_hash(contract: &Contract) -> String {
    let Contract {
        hashes: _,
        partial: _,
        protocol_versions,
        server,
        capabilities,
        instructions,
        tools,
        prompts,
        resources,
        resource_templates,
    } = contract;
    let mut server = server.clone();
    if let Some(Value::Object(server)) = &mut server {
        server.shift_remove("version");
    }
    let promised = Promised {
        protocol_versions,
        capabilities,
        server,
        instructions: instructions.as_deref(),
        tools: tools.as_deref(),
        prompts: prompts.as_deref(),
        resources: resources.as_deref(),
        resource_templates: resource_templates.as_deref(),
    };
    sha256(&promised)
}

/// A JSON value as RFC 8785 writes it.
pub(super) fn canonical(value: &impl Serialize) -> String {
    serde_json_canonicalizer::to_string(value).expect("a JSON value has text keys and finite numbers")
}

/// The hash of what [`canonical`] would give, whose text is as large as all that a server promises, and is never there.
fn sha256(value: &impl Serialize) -> String {
    let mut hasher = Hasher(Sha256::new());
    serde_json_canonicalizer::to_writer(value, &mut hasher).expect("a JSON value has text keys and finite numbers");
    let mut hash = String::with_capacity("sha256:".len() + 64);
    hash.push_str("sha256:");
    for byte in hasher.0.finalize() {
        write!(hash, "{byte:02x}").expect("a String takes all text");
    }
    hash
}

struct Hasher(Sha256);

impl io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Whoever computes it elsewhere, by this very text, gets the same.
    #[test]
    fn the_tools_hash_is_over_this_text() {
        let tools = [
            json!({ "name": "b", "description": "not in it", "inputSchema": { "type": "object", "properties": { "z": {}, "a": {} } } }),
            json!({ "name": "a", "inputSchema": { "maximum": 1.0, "type": "object" } }),
            json!({ "name": "c" }),
        ];
        let text = r#"[["a",{"maximum":1,"type":"object"}],["b",{"properties":{"a":{},"z":{}},"type":"object"}],["c",null]]"#;
        assert_eq!(canonical(&serde_json::from_str::<Value>(text).unwrap()), text);
        let hash = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(tools_hash(&tools), format!("sha256:{hash}"));
        assert_eq!(tools_hash(&[]), "sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945");
    }

    #[test]
    fn the_full_hash_leaves_out_the_version_of_the_server_only() {
        let contract = Contract { server: Some(json!({ "name": "s", "version": "1" })), tools: Some(vec![]), ..Contract::default() };
        let later = Contract { server: Some(json!({ "version": "2", "name": "s" })), ..contract.clone() };
        assert_eq!(full_hash(&contract), full_hash(&later));
        let others = [
            Contract { server: Some(json!({ "name": "t", "version": "1" })), ..contract.clone() },
            Contract { tools: None, ..contract.clone() },
            Contract { instructions: Some("i".into()), ..contract.clone() },
            Contract { protocol_versions: vec!["2025-11-25".into()], ..contract.clone() },
            Contract { capabilities: json!({ "tools": {} }).as_object().cloned().unwrap(), ..contract.clone() },
            Contract { prompts: Some(vec![]), ..contract.clone() },
        ];
        for other in others {
            assert_ne!(full_hash(&contract), full_hash(&other), "{other:?}");
        }
    }
}
