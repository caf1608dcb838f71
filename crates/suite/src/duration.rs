//! Durations as people write them: `5s`, `200ms`, `1m30s`, `2 min`.

use std::time::Duration;

/// What is wrong with a duration: `reason` continues a sentence that begins with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadDuration {
    pub reason: String,
    pub hint: String,
}

/// No server is waited for longer than this.
const MAXIMUM: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// # Errors
/// Says what is wrong, and how a duration is written.
pub fn parse_duration(text: &str) -> Result<Duration, BadDuration> {
    let bad = |reason: &str, hint: String| Err(BadDuration { reason: reason.to_owned(), hint });
    let usual = || "durations are written 5s, 200ms, 1m30s or 1h".to_owned();
    let zero = || bad("is zero", "write a duration above zero".to_owned());
    let mut rest = text.trim();
    if rest.is_empty() {
        return bad("is not a valid duration", usual());
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let Ok(number) = number.parse::<f64>() else { return bad("is not a valid duration", usual()) };
        let after = after.trim_start();
        let letters = after.find(|character: char| !character.is_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let seconds = match unit {
            "ms" | "milliseconds" | "millisecond" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            // Zero is zero in every unit: to ask for one would lead from one mistake to the next.
            "" if total.is_zero() && Duration::try_from_secs_f64(number).is_ok_and(|read| read.is_zero()) => return zero(),
            "" => return bad("has no unit", format!("write {text}s for seconds or {text}ms for milliseconds")),
            unknown => return bad(&format!("has the unknown unit `{unknown}`"), "units are ms, s, m and h".to_owned()),
        };
        total = match Duration::try_from_secs_f64(number * seconds).ok().and_then(|part| total.checked_add(part)) {
            Some(sum) if sum <= MAXIMUM => sum,
            _ => return bad("is too long", "a week is the longest".to_owned()),
        };
        rest = after.trim_start();
    }
    if total.is_zero() { zero() } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        let check = |text: &str, expected: Result<u64, &str>| {
            let found = parse_duration(text).map(|duration| u64::try_from(duration.as_millis()).unwrap()).map_err(|bad| bad.reason);
            assert_eq!(found, expected.map_err(str::to_owned), "{text}");
        };
        check("5s", Ok(5_000));
        check("200ms", Ok(200));
        check("1m30s", Ok(90_000));
        check("1m 30s", Ok(90_000));
        check("2 min", Ok(120_000));
        check("1.5s", Ok(1_500));
        check("1h", Ok(3_600_000));
        check(" 3 seconds ", Ok(3_000));
        check("5", Err("has no unit"));
        check("1m30", Err("has no unit"));
        check("5 parsecs", Err("has the unknown unit `parsecs`"));
        check("5S", Err("has the unknown unit `S`"));
        check("soon", Err("is not a valid duration"));
        check("", Err("is not a valid duration"));
        check("-5s", Err("is not a valid duration"));
        check("1.2.3s", Err("is not a valid duration"));
        check("0s", Err("is zero"));
        check("0", Err("is zero"));
        check("0.0", Err("is zero"));
        check("1m0", Err("has no unit"));
        check("9999999999h", Err("is too long"));
        check("8000000s", Err("is too long"));
    }
}
