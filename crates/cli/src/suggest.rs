//! "Did you mean …" suggestions for names.

pub(crate) use mcproof_analysis::did_you_mean;

/// A hint that names the nearest candidate, or else all of them; `None` if there are none.
pub(crate) fn hint(typed: &str, candidates: &[&str]) -> Option<String> {
    match did_you_mean(typed, candidates.iter().copied()) {
        Some(near) => Some(format!("did you mean `{near}`?")),
        None if candidates.is_empty() => None,
        None => Some(format!("known: {}", candidates.join(", "))),
    }
}
