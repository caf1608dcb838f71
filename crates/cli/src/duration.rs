//! Durations on the command line: `5s`, `200ms`, `1.5m`, and bare milliseconds.

use mcproof_suite::{BadDuration, parse_duration};
use std::time::Duration;

/// Every wait has a limit, and none is longer: `0` is refused, and does not stand for "no limit".
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A bare number below it is meant as seconds: no server responds so fast each time.
const FEWEST_MILLIS: u64 = 100;

/// # Errors
/// The message describes a valid duration.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    match text.trim().parse::<u64>() {
        Ok(0) => with_unit(text),
        Ok(few) if few < FEWEST_MILLIS => Err(format!("a bare number counts milliseconds: write {few}s for seconds, or {few}ms")),
        Ok(millis) => Ok(Duration::from_millis(millis).min(LONGEST)),
        Err(_) => match parse_duration(text) {
            Ok(duration) => Ok(duration.min(LONGEST)),
            Err(BadDuration { reason, hint }) => Err(format!("`{text}` {reason}; {hint}, and a bare number counts milliseconds")),
        },
    }
}

/// Where no other tool's habit has to be kept, a bare number is a mistake, as it is in suites: `5` could be seconds.
///
/// # Errors
/// The message describes a valid duration.
pub(crate) fn with_unit(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(duration) => Ok(duration.min(LONGEST)),
        Err(BadDuration { reason, hint }) => Err(format!("`{text}` {reason}; {hint}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_unit_is_told_apart_from_none_at_all() {
        assert_eq!(with_unit("5s"), Ok(Duration::from_secs(5)));
        assert!(with_unit("5").is_err_and(|said| said.contains("`5` has no unit; write 5s")));
    }

    #[test]
    fn durations_read_as_people_type_them() {
        let check = |text, millis: Option<u64>| assert_eq!(parse(text).ok(), millis.map(Duration::from_millis), "{text:?}");
        check("15000", Some(15_000));
        check("200ms", Some(200));
        check("5s", Some(5_000));
        check("1.5s", Some(1_500));
        check("2m", Some(120_000));
        check("2 min", Some(120_000));
        check("1h", Some(3_600_000));
        check("48h", Some(86_400_000));
        check("1m30s", Some(90_000));
        assert!(parse("5").is_err_and(|said| said.contains("write 5s for seconds, or 5ms")));
        check("100", Some(100));
        for zero in ["0", "0s", "0ms", "0.0", " 0 "] {
            for read in [parse, with_unit] {
                assert!(read(zero).is_err_and(|said| said.contains("is zero; write a duration above zero")), "{zero:?}");
            }
        }
        for text in ["", "s", "900h", "5 days", "-1", "1e3", "1.2.3s", "five"] {
            check(text, None);
        }
    }
}
