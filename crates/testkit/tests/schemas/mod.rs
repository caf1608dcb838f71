//! The official JSON Schemas of all revisions. They belong to the specification and are not part of this project: they are
//! read from `../shared/spec`, beside the checkout.

use mcproof_protocol::Revision;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Revisions, the newest first.
pub(crate) fn revisions() -> impl Iterator<Item = &'static str> {
    Revision::NEWEST_FIRST.into_iter().map(Revision::as_str)
}

/// Where the specification lies.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec")
}

/// The schemas of all revisions, each definition compiled when it is first asked for.
pub(crate) struct Schemas {
    documents: BTreeMap<&'static str, Value>,
}

impl Schemas {
    /// Only for tests that are ignored without `cfg(official_schemas)`.
    pub(crate) fn read() -> Self {
        let folder = folder();
        let read = |version| {
            let text = std::fs::read_to_string(folder.join(format!("{version}.schema.json"))).unwrap();
            (version, serde_json::from_str(&text).unwrap())
        };
        let documents = revisions().map(read).collect();
        Self { documents }
    }

    /// The document, and its definitions.
    pub(crate) fn document(&self, version: &str) -> (&Value, &Map<String, Value>) {
        let document = &self.documents[version];
        let definitions = document.get("$defs").or(document.get("definitions")).unwrap();
        (document, definitions.as_object().unwrap())
    }

    /// The definition of the request or notification that a client sends with this method.
    pub(crate) fn definition_of(&self, version: &str, method: &str) -> String {
        let (_, definitions) = self.document(version);
        let found = definitions.iter().find(|(_, definition)| definition.pointer("/properties/method/const") == Some(&json!(method)));
        let (name, _) = found.unwrap_or_else(|| panic!("{version} has no {method}"));
        name.clone()
    }

    pub(crate) fn assert_fits(&self, version: &str, definition: &str, value: &Value, place: &dyn std::fmt::Display) {
        let (document, _) = self.document(version);
        let mut schema = document.as_object().unwrap().clone();
        let key = if schema.contains_key("$defs") { "$defs" } else { "definitions" };
        schema.insert("$ref".into(), format!("#/{key}/{definition}").into());
        let validator = jsonschema::options().build(&Value::Object(schema)).unwrap();
        let errors: Vec<String> = validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{version} {definition} at {place}\n{}\n{value:#}", errors.join("\n"));
    }
}
