//! What the reviewed list of legal mutations quotes from a schema stands there: each quoted text in the definition that the row
//! names, each optional member as one that may be absent. The schemas are read from `../shared/spec`, beside the checkout.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

const LIST: &str = include_str!("../../cli/tests/zoo/legal_mutations.txt");

/// What stands for each era: the revision in which the mutated server speaks.
const ERAS: [(&str, &str); 2] = [("legacy", "2025-11-25"), ("modern", "2026-07-28")];

fn schemas() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec")
}

fn definitions(revision: &str) -> Map<String, Value> {
    let text = std::fs::read_to_string(schemas().join(format!("{revision}.schema.json"))).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    document.get("$defs").or(document.get("definitions")).unwrap().as_object().unwrap().clone()
}

/// Without marks and line breaks.
fn plain(text: &str) -> String {
    let letters: String = text.chars().filter(|character| !['`', '*', '_'].contains(character)).collect();
    letters.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Every description in a definition.
fn descriptions(value: &Value, found: &mut String) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("description").and_then(Value::as_str).map(|text| format!("{} ", plain(text))));
            members.values().for_each(|member| descriptions(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| descriptions(item, found)),
        _ => {}
    }
}

/// The texts between quotation marks.
fn quoted(words: &str) -> impl Iterator<Item = &str> {
    words.split('"').skip(1).step_by(2)
}

/// The member that the words begin with, and whether it may be absent: `total?: number` or `name: string`.
fn member(words: &str) -> Option<(&str, bool)> {
    let (name, _) = words.split_once(": ")?;
    let bare = name.strip_suffix('?').unwrap_or(name);
    let is_name = !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_name.then_some((bare, bare != name))
}

/// What is wrong with a row in a revision that has the definition.
fn flaw(definition: &Value, words: &str) -> Option<String> {
    let mut text = String::new();
    descriptions(definition, &mut text);
    if let Some(missing) = quoted(words).find(|quotation| !text.contains(plain(quotation).trim_end_matches('.'))) {
        return Some(format!("`{missing}` does not stand there"));
    }
    let (name, is_optional) = member(words)?;
    let is_required = definition["required"].as_array().into_iter().flatten().any(|required| required == name);
    // Members of members are named by themselves.
    let is_nested =
        definition.pointer(&format!("/properties/{name}")).is_none() && definition.to_string().contains(&format!("\"{name}\":"));
    match definition.pointer(&format!("/properties/{name}")).is_some() {
        true if is_required == is_optional => Some(format!("`{name}` is {}", if is_required { "required" } else { "optional" })),
        false if !is_nested => Some(format!("there is no member `{name}`")),
        _ => None,
    }
}

#[test]
#[cfg_attr(not(official_schemas), ignore = "the official schemas are not beside the checkout (../shared/spec)")]
fn quotations_of_the_schemas_stand_there() {
    let known = ERAS.map(|(era, revision)| (era, definitions(revision)));
    let (mut seen, mut wrong) = (0, Vec::new());
    for line in LIST.lines().filter(|line| !line.is_empty() && !line.starts_with("//")) {
        let [_, places, page, words] = line.split(" | ").collect::<Vec<_>>()[..] else { panic!("the columns of `{line}`") };
        let Some(anchor) = page.strip_prefix("schema#") else { continue };
        let is_of = |era: &str| places.split(", ").any(|place| !ERAS.iter().any(|(other, _)| *other != era && place.ends_with(other)));
        let mut has_any = false;
        for (era, definitions) in known.iter().filter(|(era, _)| is_of(era)) {
            let Some(definition) = definitions.iter().find(|(name, _)| name.eq_ignore_ascii_case(anchor)).map(|(_, found)| found) else {
                continue;
            };
            has_any = true;
            wrong.extend(flaw(definition, words).map(|flaw| format!("{era}: {flaw}: {line}")));
        }
        seen += 1;
        if !has_any {
            wrong.push(format!("no schema of its eras has the definition: {line}"));
        }
    }
    assert!(seen > 0, "no row quotes a schema");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
