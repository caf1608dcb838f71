//! Whole numbers on the command line, and what is said of a word that is none.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Reads a whole number of this range.
pub(crate) fn whole<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text: &str| match text.trim().parse::<T>() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ if !text.is_empty() && text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit()) => {
            Err(format!("expected a whole number from {} to {}", range.start(), range.end()))
        }
        _ => Err("expected a whole number".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    #[test]
    fn what_is_no_whole_number_is_told_in_our_words() {
        let jobs = whole(1..=u16::MAX);
        assert_eq!(jobs("4"), Ok(4));
        let range = Err("expected a whole number from 1 to 65535".to_owned());
        for text in ["0", "65536", "-1"] {
            assert_eq!(jobs(text), range, "{text}");
        }
        for text in ["abc", "", "1.5", "4 jobs"] {
            assert_eq!(jobs(text), Err("expected a whole number".to_owned()), "{text}");
        }
        assert!(whole(NonZeroU32::MIN..=NonZeroU32::MAX)("0").is_err());
    }
}
