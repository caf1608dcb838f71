//! JSON Schemas that somebody else wrote: what it costs to hold values against them is known before it is done, so that none can
//! keep this program busy. Knows JSON Schema, and nothing of tools.

use crate::suggest::did_you_mean;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, ValidationOptions, Validator};
use referencing::{Draft, Registry, Resolver, Uri};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fmt;

/// What may be done for one value: schemas held against values inside of it, each with its keywords.
const MOST_STEPS: u64 = 2_000_000;

/// For a value that costs more than this, only the first error is asked for: each part of it could have one.
const MOST_FOR_ALL_ERRORS: u64 = 100_000;

/// Schemas inside each other, and values inside each other, that are followed.
const DEEPEST: usize = 250;

/// The address of a document that does not name its own.
const NAMELESS: &str = "mcproof:///schema";

/// Keywords with a schema for the same value.
const SAME: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords with schemas for the same value.
const SAME_EACH: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords with schemas by name for the same value. Some have lists of names instead.
const SAME_NAMED: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords about members that other keywords do not name, and about items.
const ABOUT_MEMBERS: [&str; 3] = ["patternProperties", "additionalProperties", "unevaluatedProperties"];
const ABOUT_ITEMS: [&str; 4] = ["items", "additionalItems", "unevaluatedItems", "contains"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// A schema that is ready to have values held against it.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    document: Document,
}

/// Why no value can be held against a schema.
#[derive(Debug)]
pub enum Unusable {
    /// Which of its references cannot be followed.
    LeadsOut(String),
    /// Why it is no schema.
    Invalid(String),
    TooCostly(TooCostly),
}

/// Holding a value against a schema takes more than any client can afford.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooCostly;

impl fmt::Display for TooCostly {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "validating against this schema takes more than {} million steps", MOST_STEPS / 1_000_000)
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeadsOut(why) => write!(formatter, "a reference of this schema cannot be followed: {why}"),
            Self::Invalid(why) => write!(formatter, "this schema is not valid: {why}"),
            Self::TooCostly(too_costly) => too_costly.fmt(formatter),
        }
    }
}

impl Schema {
    /// Formats are asserted as far as the draft of the schema has it so: not since 2019-09.
    pub fn of(schema: &Value) -> Result<Self, Unusable> {
        Self::built(schema, jsonschema::options())
    }

    /// The same with formats asserted, for a schema that somebody wrote to test values. A format that is not known allows every value.
    pub fn with_formats(schema: &Value) -> Result<Self, Unusable> {
        Self::built(schema, jsonschema::options().should_validate_formats(true).should_ignore_unknown_formats(true))
    }

    fn built(schema: &Value, options: ValidationOptions<'_>) -> Result<Self, Unusable> {
        // Before anything is made of it: that follows references, too.
        let document = Document::of(schema)?;
        document.cost_of_any()?;
        match options.build(schema) {
            Ok(validator) => Ok(Self { validator, document }),
            Err(error) if matches!(error.kind(), ValidationErrorKind::Referencing(_)) => Err(Unusable::LeadsOut(error.to_string())),
            Err(error) => Err(Unusable::Invalid(error.to_string())),
        }
    }

    pub fn is_valid(&self, value: &Value) -> Result<bool, TooCostly> {
        self.document.cost_of(value)?;
        Ok(self.validator.is_valid(value))
    }

    /// Where the value breaks the schema, at most so many places. Of a large value only the first one is given.
    pub fn errors<'i>(&'i self, value: &'i Value, most: usize) -> Result<Vec<ValidationError<'i>>, TooCostly> {
        Ok(match self.document.cost_of(value)? {
            0..=MOST_FOR_ALL_ERRORS => self.validator.iter_errors(value).take(most).collect(),
            _ => self.validator.validate(value).err().into_iter().take(most).collect(),
        })
    }
}

/// Whether some value costs too much, even a small one: its schemas for one and the same value multiply.
pub fn explodes(schema: &Value) -> bool {
    matches!(Document::of(schema).map(|document| document.cost_of_any()), Ok(Err(_)))
}

/// Keywords that decide whether a value is valid.
const DECIDING: [&str; 36] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "then",
    "type",
    "uniqueItems",
];
/// Other keywords, of JSON Schema and of what extends it: they are no misspelled ones.
const OTHER: [&str; 16] = [
    "default",
    "definitions",
    "deprecated",
    "description",
    "example",
    "examples",
    "extends",
    "if",
    "not",
    "nullable",
    "title",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
];
/// Shorter names are near to many others.
const SHORTEST_MISSPELLED: usize = 3;

/// Formats of JSON Schema, each of which is asserted by [`Schema::with_formats`].
const FORMATS: [&str; 19] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];
/// Formats of OpenAPI and of others, which are not asserted: they are no misspelled ones.
const OTHER_FORMATS: [&str; 11] = ["binary", "byte", "double", "float", "host", "int32", "int64", "ip", "json", "password", "url"];

/// A name in a schema that means nothing there and is almost a keyword, and that keyword.
pub fn misspelled_keyword(schema: &Value) -> Option<(String, &'static str)> {
    first_in(schema, 0, &|members| {
        let is_unknown = |name: &str| {
            let is_name =
                name.chars().count() >= SHORTEST_MISSPELLED && name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
            is_name && !DECIDING.contains(&name) && !OTHER.contains(&name)
        };
        let unset = || DECIDING.into_iter().filter(|keyword| !members.contains_key(*keyword));
        let unknown = members.keys().filter(|name| is_unknown(name));
        // Nobody abbreviates a keyword: `unit` is a name of its own, and not short for `uniqueItems`.
        let is_whole = |name: &str, keyword: &str| keyword.len().abs_diff(name.len()) <= 2;
        let mut near =
            unknown.filter_map(|name| Some((name.clone(), did_you_mean(name, unset().filter(|keyword| is_whole(name, keyword)))?)));
        near.next()
    })
}

/// A format in a schema that nobody knows and that is almost one of JSON Schema, and that format.
pub fn misspelled_format(schema: &Value) -> Option<(String, &'static str)> {
    first_in(schema, 0, &|members| {
        let format = members.get("format")?.as_str()?;
        let is_unknown = !FORMATS.contains(&format) && !OTHER_FORMATS.contains(&format);
        let near = did_you_mean(format, FORMATS).filter(|_| is_unknown)?;
        Some((format.to_owned(), near))
    })
}

/// What is found first in a schema or in the schemas inside of it.
fn first_in<T>(schema: &Value, depth: usize, find: &dyn Fn(&Map<String, Value>) -> Option<T>) -> Option<T> {
    let members = schema.as_object().filter(|_| depth < DEEPEST)?;
    find(members).or_else(|| {
        members.iter().find_map(|(keyword, value)| {
            let named = match (keyword.as_str(), value) {
                ("$defs" | "definitions", Value::Object(schemas)) => schemas.values().collect(),
                _ => Vec::new(),
            };
            let all = named.into_iter().chain(schemas_for_same(keyword, value)).chain(schemas_for_inner(keyword, value));
            all.into_iter().find_map(|schema| first_in(schema, depth + 1, find))
        })
    })
}

impl From<TooCostly> for Unusable {
    fn from(too_costly: TooCostly) -> Self {
        Self::TooCostly(too_costly)
    }
}

/// A schema, and where its references lead.
#[derive(Debug)]
enum Document {
    Plain(Value),
    WithReferences { registry: Box<Registry<'static>>, address: Uri<String> },
}

impl Document {
    fn of(schema: &Value) -> Result<Self, Unusable> {
        if !has_references(schema) {
            return Ok(Self::Plain(schema.clone()));
        }
        let leads_out = |error: jsonschema::ReferencingError| Unusable::LeadsOut(error.to_string());
        let address = referencing::uri::from_str(NAMELESS).map_err(leads_out)?;
        let registry = Registry::new().add(NAMELESS, schema.clone()).and_then(|builder| builder.prepare()).map_err(leads_out)?;
        Ok(Self::WithReferences { registry: Box::new(registry), address })
    }

    fn root(&self) -> Result<(&Value, Option<Resolver<'_>>), TooCostly> {
        match self {
            Self::Plain(schema) => Ok((schema, None)),
            Self::WithReferences { registry, address } => {
                let (root, resolver, _) = registry.resolver(address.clone()).lookup("#").map_err(|_| TooCostly)?.into_inner();
                Ok((root, Some(resolver)))
            }
        }
    }

    /// What the dearest of its schemas costs for a value that has nothing inside.
    fn cost_of_any(&self) -> Result<u64, TooCostly> {
        let (root, resolver) = self.root()?;
        Multiplied::default().most(root, resolver.as_ref())
    }

    fn cost_of(&self, value: &Value) -> Result<u64, TooCostly> {
        let (root, resolver) = self.root()?;
        let mut held = Held { steps: 0 };
        held.hold(root, resolver.as_ref(), value, 0)?;
        Ok(held.steps)
    }
}

fn has_references(value: &Value) -> bool {
    match value {
        Value::Object(object) => object.iter().any(|(key, value)| REFERENCES.contains(&key.as_str()) || has_references(value)),
        Value::Array(items) => items.iter().any(has_references),
        _ => false,
    }
}

/// What is held against the same value because of this keyword.
fn schemas_for_same<'v>(keyword: &str, value: &'v Value) -> Vec<&'v Value> {
    match value {
        _ if SAME.contains(&keyword) => vec![value],
        Value::Array(schemas) if SAME_EACH.contains(&keyword) => schemas.iter().collect(),
        Value::Object(schemas) if SAME_NAMED.contains(&keyword) => schemas.values().filter(|schema| !schema.is_array()).collect(),
        _ => Vec::new(),
    }
}

/// What is held against some of the values inside because of this keyword.
fn schemas_for_inner<'v>(keyword: &str, value: &'v Value) -> Vec<&'v Value> {
    match (keyword, value) {
        ("properties" | "patternProperties", Value::Object(schemas)) => schemas.values().collect(),
        ("prefixItems" | "items", Value::Array(schemas)) => schemas.iter().collect(),
        ("propertyNames", _) => vec![value],
        _ if ABOUT_MEMBERS.contains(&keyword) || ABOUT_ITEMS.contains(&keyword) => vec![value],
        _ => Vec::new(),
    }
}

/// Where a reference leads. One that leads nowhere is for the validator to tell.
fn follow<'r>(keyword: &str, value: &Value, resolver: Option<&Resolver<'r>>) -> Option<(&'r Value, Resolver<'r>)> {
    if !REFERENCES.contains(&keyword) {
        return None;
    }
    let resolved = match keyword {
        "$recursiveRef" => resolver?.lookup_recursive_ref(),
        _ => resolver?.lookup(value.as_str()?),
    };
    resolved.ok().map(|resolved| (resolved.contents(), resolved.resolver().clone()))
}

/// The resolver inside of a schema, which may have an address of its own.
fn inside<'r>(schema: &Value, resolver: Option<&Resolver<'r>>) -> Option<Resolver<'r>> {
    let resolver = resolver?;
    if schema.get("$id").or(schema.get("id")).is_none_or(|id| !id.is_string()) {
        return Some(resolver.clone());
    }
    let resource = Draft::default().detect(schema).create_resource_ref(schema);
    Some(resolver.in_subresource(resource).unwrap_or_else(|_| resolver.clone()))
}

/// Whether the members that no other keyword has looked at are looked at: all keywords are asked again which those are.
fn asks_again(object: &Map<String, Value>) -> bool {
    ["unevaluatedProperties", "unevaluatedItems"].iter().any(|keyword| object.contains_key(*keyword))
}

/// What schemas cost for the same value, whatever that is. Each is looked at once, however often it is referred to.
#[derive(Default)]
struct Multiplied<'r> {
    /// `None` while it is being looked at.
    known: HashMap<*const Value, Option<u64>>,
    /// Schemas for values inside, which have a cost of their own.
    inner: Vec<(&'r Value, Option<Resolver<'r>>)>,
}

impl<'r> Multiplied<'r> {
    /// The cost of the dearest schema in a document.
    fn most(mut self, root: &'r Value, resolver: Option<&Resolver<'r>>) -> Result<u64, TooCostly> {
        let mut most = self.cost(root, resolver, 0)?;
        while let Some((schema, resolver)) = self.inner.pop() {
            most = most.max(self.cost(schema, resolver.as_ref(), 0)?);
        }
        Ok(most)
    }

    fn cost(&mut self, schema: &'r Value, resolver: Option<&Resolver<'r>>, depth: usize) -> Result<u64, TooCostly> {
        let Some(object) = schema.as_object() else { return Ok(1) };
        match self.known.insert(schema, None) {
            Some(Some(cost)) => {
                self.known.insert(schema, Some(cost));
                return Ok(cost);
            }
            // Again for the same value: this never ends.
            Some(None) => return Err(TooCostly),
            None if depth > DEEPEST => return Err(TooCostly),
            None => {}
        }
        let resolver = inside(schema, resolver);
        let mut cost = 1;
        for (keyword, value) in object {
            self.inner.extend(schemas_for_inner(keyword, value).into_iter().map(|schema| (schema, resolver.clone())));
            for same in schemas_for_same(keyword, value) {
                cost += self.cost(same, resolver.as_ref(), depth + 1)?;
            }
            if let Some((target, resolver)) = follow(keyword, value, resolver.as_ref()) {
                cost += self.cost(target, Some(&resolver), depth + 1)?;
            }
        }
        if asks_again(object) {
            cost *= 2;
        }
        if cost > MOST_STEPS {
            return Err(TooCostly);
        }
        self.known.insert(schema, Some(cost));
        Ok(cost)
    }
}

/// What it costs to hold one value against a schema.
struct Held {
    steps: u64,
}

impl Held {
    fn step(&mut self, steps: usize) -> Result<(), TooCostly> {
        self.steps += steps as u64;
        if self.steps > MOST_STEPS { Err(TooCostly) } else { Ok(()) }
    }

    fn hold(&mut self, schema: &Value, resolver: Option<&Resolver<'_>>, value: &Value, depth: usize) -> Result<(), TooCostly> {
        let Some(object) = schema.as_object() else { return Ok(()) };
        self.step(1)?;
        if depth > DEEPEST {
            return Err(TooCostly);
        }
        let resolver = inside(schema, resolver);
        let resolver = resolver.as_ref();
        for _ in 0..if asks_again(object) { 2 } else { 1 } {
            for (keyword, schemas) in object {
                for same in schemas_for_same(keyword, schemas) {
                    self.hold(same, resolver, value, depth + 1)?;
                }
                if let Some((target, resolver)) = follow(keyword, schemas, resolver) {
                    self.hold(target, Some(&resolver), value, depth + 1)?;
                }
            }
        }
        for (keyword, demanded) in object {
            match (keyword.as_str(), demanded, value) {
                ("properties", Value::Object(schemas), Value::Object(members)) => {
                    self.step(schemas.len() / 8)?;
                    for (name, schema) in schemas {
                        if let Some(member) = members.get(name) {
                            self.hold(schema, resolver, member, depth + 1)?;
                        }
                    }
                }
                ("prefixItems" | "items", Value::Array(schemas), Value::Array(items)) => {
                    for (schema, item) in schemas.iter().zip(items) {
                        self.hold(schema, resolver, item, depth + 1)?;
                    }
                }
                ("enum", Value::Array(options), _) => self.step(options.len())?,
                ("pattern", _, Value::String(text)) => self.step(text.len() / 16)?,
                ("uniqueItems", Value::Bool(true), Value::Array(items)) => self.step(items.len())?,
                ("additionalProperties", schema, Value::Object(members)) => {
                    let named = object.get("properties").and_then(Value::as_object);
                    for (_, member) in members.iter().filter(|(name, _)| named.is_none_or(|named| !named.contains_key(*name))) {
                        self.hold(schema, resolver, member, depth + 1)?;
                    }
                }
                // Which of the members it is about is not asked: it may be all.
                (_, _, Value::Object(members)) if ABOUT_MEMBERS.contains(&keyword.as_str()) => {
                    for schema in schemas_for_inner(keyword, demanded) {
                        for member in members.values() {
                            self.hold(schema, resolver, member, depth + 1)?;
                        }
                    }
                }
                ("propertyNames", schema, Value::Object(members)) => {
                    for _ in members {
                        self.hold(schema, resolver, &Value::Null, depth + 1)?;
                    }
                }
                (_, schema, Value::Array(items)) if ABOUT_ITEMS.contains(&keyword.as_str()) => {
                    for item in items {
                        self.hold(schema, resolver, item, depth + 1)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Each definition asks twice for the next one.
    fn doubled(keyword: &str, times: usize) -> Value {
        let mut all: Map<String, Value> = (0..times)
            .map(|index| {
                let next = json!({ "$ref": format!("#/$defs/d{}", index + 1) });
                (format!("d{index}"), json!({ keyword: [next, next] }))
            })
            .collect();
        all.insert(format!("d{times}"), json!({ "type": "object" }));
        json!({ "type": "object", "$ref": "#/$defs/d0", "$defs": all })
    }

    #[test]
    fn a_misspelled_keyword_is_found_where_schemas_stand() {
        let check = |schema: Value, expected: Option<(&str, &str)>| {
            let found = misspelled_keyword(&schema);
            assert_eq!(found.as_ref().map(|(name, near)| (name.as_str(), *near)), expected, "{schema}");
        };
        check(json!({ "type": "object", "requird": ["a"] }), Some(("requird", "required")));
        check(json!({ "items": { "propertis": {} } }), Some(("propertis", "properties")));
        check(json!({ "anyOf": [true, { "min_length": 1 }] }), Some(("min_length", "minLength")));
        check(json!({ "$defs": { "a": { "patern": "x" } } }), Some(("patern", "pattern")));
        check(json!({ "typ": "integer" }), Some(("typ", "type")));
        // Names of members, values, and what others put into schemas.
        check(json!({ "properties": { "requird": {}, "typ": true }, "required": ["requird"] }), None);
        check(json!({ "enum": [{ "requird": 1 }], "default": { "propertis": 1 } }), None);
        check(
            json!({ "example": 1, "nullable": true, "unit": "ms", "x-requird": 1, "$id": "a", "id": "b", "errorMessage": "no", "order": 1 }),
            None,
        );
    }

    #[test]
    fn formats_are_asserted_where_they_are_asked_for() {
        let check = |format: &str, text: &str, expected: bool| {
            let schema = json!({ "type": "string", "format": format });
            assert_eq!(Schema::with_formats(&schema).unwrap().is_valid(&json!(text)), Ok(expected), "{format} {text}");
            assert_eq!(Schema::of(&schema).unwrap().is_valid(&json!(text)), Ok(true), "{format} {text}");
        };
        check("email", "not an email", false);
        check("email", "a@example.com", true);
        check("date-time", "yesterday", false);
        check("int32", "yesterday", true);
        let near = |schema: Value| misspelled_format(&schema).map(|(_, near)| near);
        assert_eq!(near(json!({ "properties": { "a": { "format": "dat" } } })), Some("date"));
        assert_eq!(near(json!({ "format": "datetime" })), Some("date-time"));
        assert_eq!(near(json!({ "format": "email" })).or(near(json!({ "format": "int32" }))).or(near(json!({ "format": "isbn" }))), None);
    }

    #[test]
    fn what_multiplies_is_found_before_any_value_is_held_against_it() {
        let check = |schema: Value, expected: bool| assert_eq!(explodes(&schema), expected, "{schema}");
        for keyword in ["allOf", "anyOf", "oneOf"] {
            check(doubled(keyword, 60), true);
            check(doubled(keyword, 10), false);
            check(json!({ "type": "object", "properties": { "a": { "items": doubled(keyword, 10) } } }), false);
        }
        check(json!({ "$ref": "#" }), true);
        check(json!({ "allOf": [{ "$ref": "#" }] }), true);
        check(json!({ "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } }, "$ref": "#/$defs/a" }), true);
        check(json!({ "$id": "https://example.com/a", "not": { "$ref": "a" } }), true);
        check(json!({ "$dynamicAnchor": "node", "anyOf": [{ "$dynamicRef": "#node" }] }), true);
        check(json!({ "$anchor": "node", "if": { "$ref": "#node" } }), true);
        check(json!({ "type": "object", "properties": { "next": { "$ref": "#" }, "other": { "$ref": "#" } } }), false);
        check(json!({ "$ref": "#/$defs/nowhere" }), false);
        check(json!({ "dependencies": { "a": ["b"] } }), false);
    }

    #[test]
    fn a_deep_chain_is_too_much_for_a_stack() {
        let chain: Map<String, Value> =
            (0..5_000).map(|index| (format!("d{index}"), json!({ "$ref": format!("#/$defs/d{}", index + 1) }))).collect();
        assert!(explodes(&json!({ "$ref": "#/$defs/d0", "$defs": chain })));
    }

    #[test]
    fn what_multiplies_with_the_depth_of_a_value_is_too_costly_for_deep_values_only() {
        let twice = json!({ "type": "object", "properties": { "a": { "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] } } });
        let schema = Schema::of(&twice).unwrap();
        let deep = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({ "a": inner }));
        assert_eq!(schema.is_valid(&deep(6)), Ok(true));
        assert_eq!(schema.is_valid(&deep(60)), Err(TooCostly));
    }

    #[test]
    fn large_values_are_held_against_ordinary_schemas() {
        let schema = Schema::of(&json!({ "type": "array", "uniqueItems": true, "items": { "type": "integer" } })).unwrap();
        let items: Vec<u32> = (0..200_000).collect();
        assert_eq!(schema.is_valid(&json!(items)), Ok(true));
        let texts = json!(vec!["text"; 200_000]);
        assert_eq!(schema.errors(&texts, 8).unwrap().len(), 1);
        assert_eq!(schema.errors(&json!(["text", 1, "text", "other"]), 2).unwrap().len(), 2);
    }

    #[test]
    fn a_schema_at_the_bound_of_depth_is_held_against_values() {
        let chain: Map<String, Value> =
            (0..DEEPEST - 2).map(|index| (format!("d{index}"), json!({ "$ref": format!("#/$defs/d{}", index + 1) }))).collect();
        let mut schema = json!({ "$ref": "#/$defs/d0", "$defs": chain });
        schema["$defs"][format!("d{}", DEEPEST - 2)] = json!({ "type": "string" });
        assert_eq!(Schema::of(&schema).unwrap().is_valid(&json!(1)), Ok(false));
    }
}
