//! The order of versions as npm, PyPI, Go and Cargo write them. No two of them agree on what follows the numbers; all agree that a
//! version with a letter there comes before the release.

/// Compares as versions do: `1.9.0` < `1.30.0`, `2.0.0-beta.5` < `2.0.0`, `4.0.0rc1` < `4.0.0`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    numbers: Vec<u64>,
    is_release: bool,
}

impl Version {
    /// `None` for what does not begin with a number, such as `(devel)`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('v');
        let end = text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
        let (numbers, rest) = text.split_at(end);
        let numbers: Option<Vec<u64>> = numbers.trim_end_matches('.').split('.').map(|number| number.parse().ok()).collect();
        let mut numbers = numbers?;
        // `4.1` and `4.1.0` are the same version.
        while numbers.last() == Some(&0) {
            numbers.pop();
        }
        let is_release = rest.is_empty() || rest.starts_with('+') || rest.starts_with("post");
        Some(Self { numbers, is_release })
    }

    /// Whether whoever has the other one can take this one without a migration, as far as numbers tell. Behind a zero, the second
    /// number counts, as Cargo and npm have it.
    pub(super) fn is_compatible_with(&self, other: &Self) -> bool {
        let leading = |version: &Self| {
            let number = |index: usize| version.numbers.get(index).copied().unwrap_or_default();
            (number(0), if number(0) == 0 { number(1) } else { 0 })
        };
        leading(self) == leading(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_the_order_in_which_they_appeared() {
        let in_order = ["1.9.0", "v1.9.4", "1.30.0", "2.0.0-beta.5", "2.0.0", "2.0.1", "4.0.0rc1", "4.0", "4.1.2", "4.1.2.1"];
        for pair in in_order.windows(2) {
            assert!(Version::parse(pair[0]).unwrap() < Version::parse(pair[1]).unwrap(), "{pair:?}");
        }
        assert_eq!(Version::parse("4.1"), Version::parse("4.1.0"));
        assert_eq!(Version::parse("1.2.3+build"), Version::parse("1.2.3"));
        assert_eq!(Version::parse("(devel)"), None);
        assert_eq!(Version::parse(""), None);
    }

    #[test]
    fn a_new_major_version_is_a_migration_and_so_is_a_new_minor_version_behind_a_zero() {
        let check = |new: &str, old: &str, expected: bool| {
            assert_eq!(Version::parse(new).unwrap().is_compatible_with(&Version::parse(old).unwrap()), expected, "{new} {old}");
        };
        check("1.7.0", "1.0.0", true);
        check("2.0.0", "1.30.0", false);
        check("1.0.0", "0.17.0", false);
        check("0.12.0", "0.8.5", false);
        check("0.8.5", "0.8.0", true);
    }
}
