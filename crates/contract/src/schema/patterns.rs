//! Whether every text in which one pattern finds something is one in which another does. Knows automata, no schemas.

use regex_automata::dfa::dense::{self, DFA};
use regex_automata::dfa::{Automaton as _, StartKind};
use regex_automata::util::primitives::StateID;
use regex_automata::{Anchored, Input, MatchKind};
use std::collections::HashSet;

/// Bytes of one automaton. Larger ones are not compared.
const LARGEST: usize = 1 << 20;
/// States of the automata together that are looked at.
const MOST_STATES: usize = 5_000;

/// `None` if a pattern is not understood (those that look around are not), or too large.
pub(super) fn is_contained(inner: &str, outer: &str) -> Option<bool> {
    // What JSON strings hold is text: other bytes are no counterexample.
    let (ours, theirs, text) = (automaton(inner)?, automaton(outer)?, automaton("(?s)^.*$")?);
    let start = |dfa: &DFA<Vec<u32>>, anchored| dfa.start_state_forward(&Input::new("").anchored(anchored)).ok();
    let first = (start(&ours, Anchored::No)?, start(&theirs, Anchored::No)?, start(&text, Anchored::Yes)?, false);
    let (mut seen, mut open) = (HashSet::from([first]), vec![first]);
    let is_match_at_end = |dfa: &DFA<Vec<u32>>, state: StateID| dfa.is_match_state(dfa.next_eoi_state(state));
    while let Some((our, their, written, is_found)) = open.pop() {
        let is_ours = is_found || is_match_at_end(&ours, our);
        if is_ours && !is_match_at_end(&theirs, their) && is_match_at_end(&text, written) {
            return Some(false);
        }
        for byte in 0..=u8::MAX {
            let next = (ours.next_state(our, byte), theirs.next_state(their, byte), text.next_state(written, byte));
            if ours.is_quit_state(next.0) || theirs.is_quit_state(next.1) {
                return None;
            }
            // Where theirs has found something, it has for whatever follows.
            if text.is_dead_state(next.2) || theirs.is_match_state(next.1) {
                continue;
            }
            let next = (next.0, next.1, next.2, is_found || ours.is_match_state(next.0));
            if seen.insert(next) {
                open.push(next);
            }
        }
        if seen.len() > MOST_STATES {
            return None;
        }
    }
    Some(true)
}

fn automaton(pattern: &str) -> Option<DFA<Vec<u32>>> {
    let limits = dense::Config::new().dfa_size_limit(Some(LARGEST)).determinize_size_limit(Some(LARGEST));
    let config = limits.start_kind(StartKind::Both).match_kind(MatchKind::All).accelerate(false);
    dense::Builder::new().configure(config).build(pattern).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_compared_by_what_they_match() {
        let check = |inner, outer, expected| assert_eq!(is_contained(inner, outer), expected, "{inner} in {outer}");
        check("^[a-z]+$", "^[a-z0-9]+$", Some(true));
        check("^[a-z0-9]+$", "^[a-z]+$", Some(false));
        check("^abc$", "abc", Some(true));
        check("abc", "^abc$", Some(false));
        check("abc", "b", Some(true));
        check("^(a|b|c)$", "^[a-c]$", Some(true));
        check("^[a-c]$", "^(a|b|c)$", Some(true));
        check("a", "(?s)^.*a.*$", Some(true));
        check("^a{2,4}$", "^a{1,5}$", Some(true));
        check("^a{2,4}$", "^a{3,5}$", Some(false));
        check("^é$", "^.$", Some(true));
        check("^x-", "^x", Some(true));
        check("", "^.", Some(false));
        check("^.", "", Some(true));
        check("(?!x)", "a", None);
        check("^\\w{500}$", "^a$", None);
    }
}
