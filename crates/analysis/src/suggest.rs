//! "Did you mean …": names that are near to what someone typed.

use std::path::Path;

/// The nearest candidate, if it is near enough to be a slip of the fingers.
pub fn did_you_mean<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Nobody mistypes a name that is longer; a server may list names of megabytes.
    const LONGEST: usize = 200;
    let is_short = |name: &str| name.chars().nth(LONGEST).is_none();
    if !is_short(typed) {
        return None;
    }
    let folded = fold(typed);
    let longest = typed.chars().count();
    candidates
        .into_iter()
        .filter(|candidate| *candidate != typed && is_short(candidate))
        .filter_map(|candidate| {
            let distance = strsim::damerau_levenshtein(&folded, &fold(candidate));
            let allowed = (longest.max(candidate.chars().count()) / 3).max(usize::from(longest > 1));
            match (has_swapped_neighbors(&folded, &fold(candidate)), abbreviates(&folded, &fold(candidate))) {
                // Fingers swap letters more often than people shorten words.
                (true, _) => Some((0, candidate)),
                (false, true) => Some((1, candidate)),
                (false, false) => (distance <= allowed).then_some((distance + 1, candidate)),
            }
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Says that a server does not have what was asked of it, and what it may have been meant for; `None` if it has it.
pub fn missing<'a>(noun: &str, name: &str, names: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    missing_from("the server", noun, name, names)
}

/// Says that something has nothing of this name, and what may have been meant; `None` if it has it.
pub fn missing_from<'a>(owner: &str, noun: &str, name: &str, names: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    if names.clone().any(|known| known == name) {
        return None;
    }
    Some(match did_you_mean(name, names.clone()) {
        Some(near) => format!("{owner} has no {noun} `{name}`: did you mean `{near}`?"),
        None if names.clone().next().is_none() => format!("{owner} has no {noun} `{name}`, and lists none at all"),
        None => format!("{owner} has no {noun} `{name}`; it has {}", listed(names)),
    })
}

/// What runs a script, by its name.
pub fn interpreter(path: &Path) -> Option<&'static str> {
    match path.extension()?.to_str()? {
        "py" => Some("python"),
        "js" | "mjs" | "cjs" => Some("node"),
        "ts" => Some("npx tsx"),
        "rb" => Some("ruby"),
        "sh" => Some("sh"),
        _ => None,
    }
}

/// Names in backticks with commas between, cut when there are too many to read.
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 24;
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.len() {
        0..=SHOWN => names.join(", "),
        more => format!("{} and {} more", names[..SHOWN].join(", "), more - SHOWN),
    }
}

/// `reda` for `read`: the same letters, two neighbors of them in the other order.
fn has_swapped_neighbors(typed: &str, candidate: &str) -> bool {
    let (typed, candidate): (Vec<char>, Vec<char>) = (typed.chars().collect(), candidate.chars().collect());
    let Some(first) = typed.iter().zip(&candidate).position(|(one, other)| one != other) else { return false };
    let mut swapped = typed;
    if first + 1 < swapped.len() {
        swapped.swap(first, first + 1);
    }
    swapped == candidate
}

/// The beginning, or `cmd` for `command`: the first letter, then some of the others in their order. Most words can be picked from a long name.
fn abbreviates(typed: &str, candidate: &str) -> bool {
    let mut letters = candidate.chars();
    let is_long = candidate.chars().count() > 3 * typed.chars().count();
    typed.chars().count() > 2
        && (!is_long || candidate.starts_with(typed))
        && typed.chars().next() == candidate.chars().next()
        && typed.chars().all(|letter| letters.any(|other| other == letter))
}

/// Spelling styles are no distance: `toolError` is `tool_error`.
fn fold(name: &str) -> String {
    name.chars().filter(|character| !matches!(character, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_names_are_suggested() {
        let check = |typed, expected| {
            assert_eq!(
                did_you_mean(typed, ["call", "cwd", "command", "tool_error", "expect", "within", "url", "env"]),
                expected,
                "{typed}"
            );
        };
        check("cal", Some("call"));
        check("toolError", Some("tool_error"));
        check("tool-eror", Some("tool_error"));
        check("exepct", Some("expect"));
        check("URL", Some("url"));
        check("uri", Some("url"));
        check("cmd", Some("command"));
        check("cdw", Some("cwd"));
        check("banana", None);
        assert_eq!(did_you_mean("nope", ["notification-gets-no-response"]), None);
        assert_eq!(did_you_mean("auth", ["authorization-is-checked"]), Some("authorization-is-checked"));
        check("x", None);
        check("", None);
    }

    #[test]
    fn swapped_letters_are_the_nearest_slip() {
        let check =
            |typed, candidates: &[&str], expected| assert_eq!(did_you_mean(typed, candidates.iter().copied()), Some(expected), "{typed}");
        check("servesr", &["server", "servers"], "servers");
        check("skpi", &["skip_if", "skip"], "skip");
        check("reda", &["redact", "read"], "read");
        check("$lne", &["$lte", "$len"], "$len");
        check("$get", &["$gt", "$gte"], "$gte");
        check("$let", &["$close_to", "$lte"], "$lte");
    }
}
