//! Numbers with their nouns, for messages and reports. Knows nouns whose plural has an `s`.

use std::fmt::Display;

/// `1 test`, `2 tests`.
#[must_use]
pub fn counted<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let plural = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_kind_has_no_plural() {
        assert_eq!(counted(0_usize, "rule"), "0 rules");
        assert_eq!(counted(1_u64, "rule"), "1 rule");
        assert_eq!(counted(-1_i64, "day"), "-1 days");
        assert_eq!(counted(2_u32, "rule"), "2 rules");
    }
}
