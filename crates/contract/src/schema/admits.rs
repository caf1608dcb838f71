//! Whether one value fulfils schemas. Says that it does not know where a keyword is only compared as it stands.

use super::branch::{Branch, are_equal, concerns, expand, type_of};
use super::document::{Document, Node};
use regex::Regex;
use serde_json::{Value, json};

/// Values inside each other that are looked at.
const DEEPEST: usize = 64;

/// `None` if that is not known.
pub(super) fn admits<'a>(document: &Document<'a>, all: &[Node<'a>], value: &Value) -> Option<bool> {
    to_depth(document, all, value, DEEPEST)
}

fn to_depth<'a>(document: &Document<'a>, all: &[Node<'a>], value: &Value, depth: usize) -> Option<bool> {
    let mut is_certain = depth > 0;
    for branch in expand(document, all).ok()? {
        match branch_admits(document, &branch, value, depth.checked_sub(1)?) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => is_certain = false,
        }
    }
    is_certain.then_some(false)
}

fn branch_admits<'a>(document: &Document<'a>, branch: &Branch<'a>, value: &Value, depth: usize) -> Option<bool> {
    let kind = type_of(value);
    if branch.types & kind == 0 || branch.values.as_ref().is_some_and(|values| !values.iter().any(|known| are_equal(known, value))) {
        return Some(false);
    }
    let mut verdict = branch.opaque.iter().all(|(keyword, _)| !concerns(keyword, kind)).then_some(true);
    let mut fold = |part: Option<bool>| match part {
        Some(false) => verdict = Some(false),
        None if verdict == Some(true) => verdict = None,
        _ => {}
    };
    match value {
        Value::Number(number) => fold(Some(number_fits(branch, number.as_f64()?))),
        Value::String(text) => fold(text_fits(branch, text)),
        Value::Array(items) => {
            let count = items.len() as u64;
            let repeats = items.iter().enumerate().any(|(index, item)| items[..index].iter().any(|earlier| are_equal(earlier, item)));
            fold(Some(
                branch.fewest_items <= count && branch.most_items.is_none_or(|most| count <= most) && !(branch.is_unique && repeats),
            ));
            for (index, item) in items.iter().enumerate() {
                fold(to_depth(document, &branch.item(index), item, depth));
            }
        }
        Value::Object(members) => {
            let count = members.len() as u64;
            fold(Some(branch.fewest_members <= count && branch.most_members.is_none_or(|most| count <= most)));
            fold(Some(branch.required.iter().all(|name| members.contains_key(*name))));
            for (name, member) in members {
                fold(branch.member(name).ok().and_then(|all| to_depth(document, &all, member, depth)));
            }
        }
        _ => {}
    }
    verdict
}

fn number_fits(branch: &Branch<'_>, number: f64) -> bool {
    branch.lowest.is_none_or(|bound| number > bound.value || (number == bound.value && !bound.is_exclusive))
        && branch.highest.is_none_or(|bound| number < bound.value || (number == bound.value && !bound.is_exclusive))
        && branch.steps.iter().all(|step| is_multiple(number, *step))
}

fn text_fits(branch: &Branch<'_>, text: &str) -> Option<bool> {
    let length = text.chars().count() as u64;
    if length < branch.shortest || branch.longest.is_some_and(|longest| length > longest) {
        return Some(false);
    }
    for pattern in &branch.patterns {
        if !Regex::new(pattern).ok()?.is_match(text) {
            return Some(false);
        }
    }
    for format in &branch.formats {
        let schema = json!({ "format": format });
        let validator = jsonschema::options().should_validate_formats(true).should_ignore_unknown_formats(true).build(&schema).ok()?;
        if !validator.is_valid(&Value::from(text)) {
            return Some(false);
        }
    }
    Some(true)
}

/// Whether one number is a whole multiple of another, within what a float can tell.
pub(super) fn is_multiple(number: f64, step: f64) -> bool {
    let times = number / step;
    (times - times.round()).abs() < 1e-9 * times.abs().max(1.0)
}
