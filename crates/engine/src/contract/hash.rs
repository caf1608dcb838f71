//! The two hashes of a contract, over canonical JSON (RFC 8785).

use mcproof_record::Contract;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// SHA-256 over the array of `[name, inputSchema]` arrays of all tools, sorted by name: the figure that monitors use. A
/// tool without an input schema has `null` there. Tools of the same name stand in the order of their canonical schemas.
pub fn tools_hash(tools: &[Value]) -> String {
    let pair = |tool: &Value| json!([tool.get("name"), tool.get("inputSchema")]);
    let mut pairs: Vec<Value> = tools.iter().map(pair).collect();
    pairs.sort_by_cached_key(|pair| (pair[0].as_str().unwrap_or_default().to_owned(), canonical(&pair[1])));
    sha256(&canonical(&Value::Array(pairs)))
}

/// SHA-256 over everything that is promised: all of the contract but its hashes and the server's own version, which says
/// when a promise was made and not what it is.
pub fn full_hash(contract: &Contract) -> String {
    let Contract { hashes: _, protocol_versions, server, capabilities, instructions, tools, prompts, resources, resource_templates } =
        contract;
    let mut server = server.clone();
    if let Some(Value::Object(server)) = &mut server {
        server.shift_remove("version");
    }
    let mut whole = json!({ "protocolVersions": protocol_versions, "capabilities": capabilities });
    let optional = [
        ("server", server),
        ("instructions", instructions.clone().map(Value::from)),
        ("tools", tools.clone().map(Value::from)),
        ("prompts", prompts.clone().map(Value::from)),
        ("resources", resources.clone().map(Value::from)),
        ("resourceTemplates", resource_templates.clone().map(Value::from)),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            whole[name] = value;
        }
    }
    sha256(&canonical(&whole))
}

/// A JSON value as RFC 8785 writes it.
pub(super) fn canonical(value: &Value) -> String {
    serde_json_canonicalizer::to_string(value).expect("a JSON value has text keys and finite numbers")
}

fn sha256(text: &str) -> String {
    let mut hash = String::from("sha256:");
    for byte in Sha256::digest(text) {
        write!(hash, "{byte:02x}").expect("a String takes all text");
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever computes it elsewhere, by this very text, gets the same.
    #[test]
    fn the_tools_hash_is_over_this_text() {
        let tools = [
            json!({ "name": "b", "description": "not in it", "inputSchema": { "type": "object", "properties": { "z": {}, "a": {} } } }),
            json!({ "name": "a", "inputSchema": { "maximum": 1.0, "type": "object" } }),
            json!({ "name": "c" }),
        ];
        let text = r#"[["a",{"maximum":1,"type":"object"}],["b",{"properties":{"a":{},"z":{}},"type":"object"}],["c",null]]"#;
        assert_eq!(tools_hash(&tools), sha256(text));
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
