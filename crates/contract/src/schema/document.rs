//! A JSON Schema with the places in it, and its references followed. Knows dialects, not what schemas accept.

use serde_json::Value;

/// A schema with all that its references may point into.
pub(super) struct Document<'a> {
    root: &'a Value,
    dialect: Dialect,
}

/// What a schema's keywords mean. Later drafts differ from these in nothing that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Up to draft-07: beside `$ref` nothing counts, and `prefixItems` is no keyword.
    Draft7,
    /// 2019-09 and 2020-12. MCP takes the latter where a schema does not say.
    Draft2020,
}

/// A schema inside of a document.
#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    pub(super) value: &'a Value,
    pub(super) pointer: String,
}

impl<'a> Document<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        let named = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let is_old = ["draft-03", "draft-04", "draft-06", "draft-07"].iter().any(|draft| named.contains(draft));
        Self { root, dialect: if is_old { Dialect::Draft7 } else { Dialect::Draft2020 } }
    }

    pub(super) fn root(&self) -> Node<'a> {
        Node { value: self.root, pointer: String::new() }
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// What a reference inside of the document points to; `None` for all others.
    pub(super) fn resolve(&self, reference: &str) -> Option<Node<'a>> {
        let pointer = reference.strip_prefix('#')?;
        Some(Node { value: self.root.pointer(pointer)?, pointer: pointer.to_owned() })
    }

    pub(super) fn has(&self, pointer: &str) -> bool {
        self.root.pointer(pointer).is_some()
    }
}

impl<'a> Node<'a> {
    /// What lies below, if it is there.
    pub(super) fn below(&self, keyword: &str) -> Option<Self> {
        Some(Self { value: self.value.get(keyword)?, pointer: below(&self.pointer, keyword) })
    }

    /// A member of a keyword that holds schemas by name.
    pub(super) fn named(&self, keyword: &str, name: &str) -> Option<Self> {
        let value = self.value.get(keyword)?.get(name)?;
        Some(Self { value, pointer: below(&below(&self.pointer, keyword), name) })
    }

    /// The schemas of a keyword that holds a list of them.
    pub(super) fn each(&self, keyword: &str) -> Vec<Self> {
        let base = below(&self.pointer, keyword);
        let items = self.value.get(keyword).and_then(Value::as_array).into_iter().flatten().enumerate();
        items.map(|(index, value)| Self { value, pointer: below(&base, &index.to_string()) }).collect()
    }
}

/// A JSON pointer with one more token.
pub(crate) fn below(pointer: &str, token: &str) -> String {
    format!("{pointer}/{}", token.replace('~', "~0").replace('/', "~1"))
}

/// Keywords that say nothing about what is accepted.
pub(super) const ANNOTATIONS: [&str; 17] = [
    "title",
    "description",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
    "$id",
    "id",
    "$schema",
    "$anchor",
    "$vocabulary",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
];

/// A schema without what says nothing about what is accepted. Names of members may look like annotations, and stay.
pub(super) fn stripped(schema: &Value) -> Value {
    match schema {
        Value::Object(keywords) => {
            let kept = keywords.iter().filter(|(keyword, _)| !ANNOTATIONS.contains(&keyword.as_str()));
            let inner = |(keyword, value): (&String, &Value)| {
                let value = match (keyword.as_str(), value) {
                    ("properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas", Value::Object(named)) => {
                        Value::Object(named.iter().map(|(name, schema)| (name.clone(), stripped(schema))).collect())
                    }
                    // Sets, and some servers write them in another order each time.
                    ("required" | "type", Value::Array(names)) => {
                        let mut names = names.clone();
                        names.sort_by(|one, two| one.as_str().cmp(&two.as_str()));
                        Value::Array(names)
                    }
                    ("enum" | "const", value) => value.clone(),
                    (_, value) => stripped(value),
                };
                (keyword.clone(), value)
            };
            Value::Object(kept.map(inner).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(stripped).collect()),
        other => other.clone(),
    }
}

/// Whether a reference stands anywhere in it.
pub(super) fn has_reference(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            members.iter().any(|(key, value)| matches!(key.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef") || has_reference(value))
        }
        Value::Array(items) => items.iter().any(has_reference),
        _ => false,
    }
}
