//! Whether a new text speaks to models behind the back of users, where the old one did not: what a server was trusted for is not
//! what it says now.

use crate::schema::below;
use mcproof_analysis::texts::{control_character, hidden_character, hidden_instruction};
use serde_json::Value;
use std::collections::BTreeSet;

/// Values inside each other that are looked at.
const DEEPEST: usize = 64;

/// What the new text does that the old one did not: a lowercase fragment that goes on after "the new text".
pub(super) fn of(old: Option<&str>, new: &str) -> Option<String> {
    let before = old.and_then(ill);
    ill(new).filter(|found| before.as_ref() != Some(found))
}

/// The first text anywhere in an item that is new and ill, and its JSON pointer. Names of members are read by models, too.
pub(super) fn anywhere(old: &Value, new: &Value) -> Option<(String, String)> {
    let mut known = BTreeSet::new();
    visit(old, "", DEEPEST, &mut |_, text| {
        known.insert(text.to_owned());
        None
    });
    visit(new, "", DEEPEST, &mut |pointer, text| {
        let is_new = !known.contains(text) && !pointer.ends_with("/pattern");
        let before = old.pointer(pointer).and_then(Value::as_str);
        (is_new && of(before, text).is_some()).then(|| (pointer.to_owned(), text.to_owned()))
    })
}

fn ill(text: &str) -> Option<String> {
    let hidden = || hidden_character(text).map(|found| format!("contains the invisible character U+{:04X}", u32::from(found)));
    let control = || control_character(text).map(|found| format!("contains the control character U+{:04X}", u32::from(found)));
    hidden_instruction(text).map(str::to_owned).or_else(hidden).or_else(control)
}

type Found = Option<(String, String)>;

fn visit(value: &Value, pointer: &str, depth: usize, look: &mut impl FnMut(&str, &str) -> Found) -> Found {
    let depth = depth.checked_sub(1)?;
    match value {
        Value::String(text) => look(pointer, text),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(index, item)| visit(item, &below(pointer, &index.to_string()), depth, look))
        }
        Value::Object(members) => members.iter().find_map(|(name, value)| {
            let inside = below(pointer, name);
            look(&inside, name).or_else(|| visit(value, &inside, depth, look))
        }),
        _ => None,
    }
}
