//! Whether a value can fulfil two of several schemas at once. Answers "apart" only where that is certain.

use super::branch::{ARRAY, Branch, NUMBER, OBJECT, STRING, TooComplex, are_equal, expand, expand_below};
use super::document::{Document, Node};

/// Whether no value fulfils two of these, so that "exactly one" is the same as "any". `following` are the references that
/// led here: those are not followed again.
pub(super) fn are_apart<'a>(document: &Document<'a>, options: &[Node<'a>], following: &mut Vec<String>) -> Result<bool, TooComplex> {
    let mut expanded = Vec::new();
    for option in options {
        expanded.push(expand_below(document, option, following)?);
    }
    for (index, one) in expanded.iter().enumerate() {
        for two in &expanded[index + 1..] {
            if !all_apart(document, one, two)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn all_apart<'a>(document: &Document<'a>, one: &[Branch<'a>], two: &[Branch<'a>]) -> Result<bool, TooComplex> {
    for (left, right) in one.iter().flat_map(|left| two.iter().map(move |right| (left, right))) {
        if !branches_are_apart(document, left, right)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn branches_are_apart<'a>(document: &Document<'a>, one: &Branch<'a>, two: &Branch<'a>) -> Result<bool, TooComplex> {
    let common = one.types & two.types;
    if common == 0 {
        return Ok(true);
    }
    if let (Some(values), Some(others)) = (&one.values, &two.values) {
        return Ok(!values.iter().any(|value| others.iter().any(|other| are_equal(value, other))));
    }
    let longer = |longest: Option<u64>, shortest: u64| longest.is_some_and(|longest| longest < shortest);
    let is_above = |one: &Branch<'_>, two: &Branch<'_>| match (one.highest, two.lowest) {
        (Some(highest), Some(lowest)) => {
            highest.value < lowest.value || (highest.value == lowest.value && (highest.is_exclusive || lowest.is_exclusive))
        }
        _ => false,
    };
    if common & !NUMBER == 0 {
        return Ok(is_above(one, two) || is_above(two, one));
    }
    if common == STRING {
        return Ok(longer(one.longest, two.shortest) || longer(two.longest, one.shortest));
    }
    if common == ARRAY {
        return Ok(longer(one.most_items, two.fewest_items) || longer(two.most_items, one.fewest_items));
    }
    if common != OBJECT {
        return Ok(false);
    }
    for name in one.required.union(&two.required) {
        let (left, right) = (one.member(name)?, two.member(name)?);
        if members_are_apart(document, &left, &right)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Looks at plain schemas only: with references in them this would not always end.
fn members_are_apart<'a>(document: &Document<'a>, one: &[Node<'a>], two: &[Node<'a>]) -> Result<bool, TooComplex> {
    let is_plain = |node: &Node<'a>| ["oneOf", "anyOf", "allOf", "$ref"].iter().all(|keyword| node.value.get(keyword).is_none());
    if !one.iter().chain(two).all(is_plain) {
        return Ok(false);
    }
    all_apart(document, &expand(document, one)?, &expand(document, two)?)
}
