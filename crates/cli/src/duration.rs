//! Durations as people type them: `5s`, `200ms`, `1.5m`, and bare milliseconds.

use std::time::Duration;

/// What `0` stands for, which elsewhere means "no limit": every wait has an end.
const NO_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);

/// # Errors
/// Says what a duration looks like.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no duration such as 5s, 200ms or 1m; a bare number counts milliseconds");
    let number_length = text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(number_length);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit.trim_start() {
        "" | "ms" => number / 1e3,
        "s" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(wrong()),
    };
    if seconds == 0.0 {
        return Ok(NO_LIMIT);
    }
    Duration::try_from_secs_f64(seconds).map(|duration| duration.min(NO_LIMIT)).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        check("0", Some(86_400_000));
        check("900h", Some(86_400_000));
        for text in ["", "s", "5 days", "-1", "1e3", "1.2.3s", "five"] {
            check(text, None);
        }
    }
}
