//! "Did you mean …" for names that a person typed.

/// The nearest candidate, if it is near enough to be a slip of the fingers.
pub(crate) fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = typed.chars().count();
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&typed.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= length.max(candidate.chars().count()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A hint that names the nearest candidate, or else all of them; `None` if there are none.
pub(crate) fn hint(typed: &str, candidates: &[&str]) -> Option<String> {
    match nearest(typed, candidates.iter().copied()) {
        Some(near) => Some(format!("did you mean `{near}`?")),
        None if candidates.is_empty() => None,
        None => Some(format!("known: {}", candidates.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_names_are_suggested() {
        let check = |typed, expected| assert_eq!(nearest(typed, ["tracker", "shop", "--method"]), expected, "{typed}");
        check("trackr", Some("tracker"));
        check("Shop", Some("shop"));
        check("--methd", Some("--method"));
        check("--port", None);
        check("report", None);
        check("", None);
    }
}
