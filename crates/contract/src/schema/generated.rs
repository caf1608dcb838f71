//! Inputs by chance, for a schema: what a caller might send who reads it. What comes out is held against the schema by whoever
//! asks, so it may be wrong here and there.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Schemas inside each other that are followed.
const DEEPEST: usize = 6;

/// Makes inputs for one schema.
pub(super) struct Generator<'a> {
    root: &'a Value,
    /// Numbers and texts that lie at the edges of some schemas.
    numbers: Vec<Value>,
    texts: Vec<String>,
    rng: Rng,
}

impl<'a> Generator<'a> {
    /// `edges` are schemas whose bounds and values are worth trying.
    pub(super) fn new(root: &'a Value, edges: &[&Value], seed: u64) -> Self {
        let mut numbers: Vec<Value> = (-3..13).map(Value::from).collect();
        numbers.extend([json!(0.5), json!(-1.5), json!(2.25), json!(1000)]);
        let mut texts: Vec<String> =
            ["", "a", "ab", "abc", "abcd", "ABC", "a1", "12", "ÄÖ", "x-1", "hello world"].map(str::to_owned).to_vec();
        texts.push("x".repeat(12));
        let formatted = [
            "2026-01-31",
            "2026-01-31T12:00:00Z",
            "me@example.com",
            "mé@example.com",
            "https://example.com/a",
            "/a",
            "3f2c9a52-7d1b-4a86-9d0e-5b8c6a1f2e47",
            "192.0.2.1",
            "example.com",
        ];
        texts.extend(formatted.map(str::to_owned));
        edges.iter().for_each(|schema| collect(schema, &mut numbers, &mut texts));
        Self { root, numbers, texts, rng: Rng::with_seed(seed) }
    }

    pub(super) fn input(&mut self) -> Value {
        self.value(self.root, 0)
    }

    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if depth > DEEPEST {
            return Value::Null;
        }
        let Some(whole) = self.flat(schema, depth) else { return self.anything(depth) };
        if let Some(fixed) = whole.get("const") {
            return fixed.clone();
        }
        if let Some(values) = whole.get("enum").and_then(Value::as_array).filter(|values| !values.is_empty()) {
            return values[self.rng.usize(..values.len())].clone();
        }
        let named: Vec<&str> = match whole.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ if whole.contains_key("properties") => vec!["object"],
            _ => vec!["null", "boolean", "integer", "number", "string", "array", "object"],
        };
        match named[self.rng.usize(..named.len())] {
            "null" => Value::Null,
            "boolean" => json!(self.rng.bool()),
            "integer" | "number" => self.numbers[self.rng.usize(..self.numbers.len())].clone(),
            "array" => self.array(&whole, depth),
            "object" => self.object(&whole, depth),
            _ => json!(self.texts[self.rng.usize(..self.texts.len())]),
        }
    }

    /// The schema with one of each of its alternatives, and all that its parts and references demand.
    fn flat(&mut self, schema: &Value, depth: usize) -> Option<Map<String, Value>> {
        let mut whole = schema.as_object()?.clone();
        let mut parts = Vec::new();
        if let Some(target) =
            whole.shift_remove("$ref").and_then(|reference| self.root.pointer(reference.as_str()?.strip_prefix('#')?).cloned())
        {
            parts.push(target);
        }
        if let Some(Value::Array(all)) = whole.shift_remove("allOf") {
            parts.extend(all);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(options)) = whole.shift_remove(keyword) {
                parts.push(options[self.rng.usize(..options.len())].clone());
            }
        }
        for part in parts {
            let Some(part) = (depth < DEEPEST).then(|| self.flat(&part, depth + 1)).flatten() else { continue };
            for (keyword, value) in part {
                match (whole.get_mut(&keyword), value) {
                    (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
                    (Some(Value::Array(known)), Value::Array(more)) if keyword == "required" => known.extend(more),
                    (_, value) => {
                        whole.insert(keyword, value);
                    }
                }
            }
        }
        Some(whole)
    }

    fn array(&mut self, schema: &Map<String, Value>, depth: usize) -> Value {
        let count = |keyword: &str| schema.get(keyword).and_then(Value::as_u64).map(|count| count as usize);
        let least = count("minItems").unwrap_or(0);
        let length = (least + self.rng.usize(..4)).min(count("maxItems").unwrap_or(usize::MAX));
        let is_old = self.root.get("$schema").and_then(Value::as_str).is_some_and(|dialect| dialect.contains("draft-07"));
        let first = schema
            .get("prefixItems")
            .filter(|_| !is_old)
            .or_else(|| schema.get("items"))
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let rest = schema.get("items").filter(|items| !items.is_array()).cloned().unwrap_or(Value::Bool(true));
        let items = (0..length).map(|index| self.value(first.get(index).unwrap_or(&rest), depth + 1));
        items.collect()
    }

    fn object(&mut self, schema: &Map<String, Value>, depth: usize) -> Value {
        let required: Vec<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let mut members = Map::new();
        for (name, inner) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if required.contains(&name.as_str()) || (depth < DEEPEST - 2 && self.rng.u8(..3) > 0) {
                members.insert(name.clone(), self.value(inner, depth + 1));
            }
        }
        let additional = schema.get("additionalProperties").cloned().unwrap_or(Value::Bool(true));
        for name in required {
            if !members.contains_key(name) {
                members.insert(name.to_owned(), self.value(&additional, depth + 1));
            }
        }
        // Names that no schema knows: whoever sends them knows only that they are let through.
        if additional != Value::Bool(false) && self.rng.u8(..4) == 0 {
            members.insert(format!("extra{}", self.rng.u8(..3)), self.value(&additional, depth + 1));
        }
        for (pattern, inner) in schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten() {
            let name = format!("{}1", pattern.trim_start_matches('^'));
            members.insert(name, self.value(inner, depth + 1));
        }
        Value::Object(members)
    }

    fn anything(&mut self, depth: usize) -> Value {
        match self.rng.u8(..6) {
            0 => Value::Null,
            1 => json!(self.rng.bool()),
            2 => self.numbers[self.rng.usize(..self.numbers.len())].clone(),
            3 if depth < DEEPEST => json!([self.anything(depth + 1)]),
            4 if depth < DEEPEST => json!({ "k": self.anything(depth + 1) }),
            _ => json!(self.texts[self.rng.usize(..self.texts.len())]),
        }
    }
}

fn collect(schema: &Value, numbers: &mut Vec<Value>, texts: &mut Vec<String>) {
    match schema {
        Value::Number(number) => {
            let value = number.as_f64().unwrap_or_default();
            let near = [value, value - 1.0, value + 1.0, value + 0.5, value * 2.0];
            numbers.extend(near.map(|near| if near.fract() == 0.0 { json!(near as i64) } else { json!(near) }));
            texts.push("y".repeat(value.clamp(0.0, 50.0) as usize));
            texts.push("y".repeat(value.clamp(0.0, 50.0) as usize + 1));
        }
        Value::Object(members) => members.values().for_each(|value| collect(value, numbers, texts)),
        Value::Array(items) => items.iter().for_each(|value| collect(value, numbers, texts)),
        _ => {}
    }
}
