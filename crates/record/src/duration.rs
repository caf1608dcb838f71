//! Durations as text: one form that is read in sentences, and one that is typed into suites and configuration.

use std::time::Duration;

/// For a sentence: `850 ms`, `60 s`, `2.5 s`; from two minutes on the two largest units, without those that are zero: `12 min 34 s`,
/// `1 h`, `1 d 1 h`.
#[must_use]
pub fn readable(duration: Duration) -> String {
    let millis = duration.as_millis();
    let seconds = duration.as_secs();
    match millis {
        1..1_000 => format!("{millis} ms"),
        0..120_000 if millis.is_multiple_of(1_000) => format!("{seconds} s"),
        0..120_000 => format!("{:.1} s", duration.as_secs_f64()),
        _ => {
            let units = [(seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")];
            let largest = units.iter().skip_while(|(count, _)| *count == 0).take(2);
            largest.filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count} {unit}")).collect::<Vec<_>>().join(" ")
        }
    }
}

/// As it is typed: `90s` is `90s`, `120s` is `2m`, `1500ms` is `1500ms`.
#[must_use]
pub fn typed(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis {
        0 => "0s".to_owned(),
        _ if millis.is_multiple_of(3_600_000) => format!("{}h", millis / 3_600_000),
        _ if millis.is_multiple_of(60_000) => format!("{}m", millis / 60_000),
        _ if millis.is_multiple_of(1_000) => format!("{}s", millis / 1_000),
        _ => format!("{millis}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_in_a_sentence_has_at_most_two_units() {
        for (millis, expected) in [
            (0, "0 s"),
            (1, "1 ms"),
            (999, "999 ms"),
            (2_500, "2.5 s"),
            (60_000, "60 s"),
            (119_000, "119 s"),
            (120_000, "2 min"),
            (754_400, "12 min 34 s"),
            (3_600_000, "1 h"),
            (3_605_000, "1 h"),
            (90_061_000, "1 d 1 h"),
            (86_700_000, "1 d"),
        ] {
            assert_eq!(readable(Duration::from_millis(millis)), expected, "{millis}");
        }
    }

    #[test]
    fn a_typed_duration_has_the_largest_unit_that_divides_it() {
        for (millis, expected) in [(0, "0s"), (250, "250ms"), (1_500, "1500ms"), (90_000, "90s"), (120_000, "2m"), (7_200_000, "2h")] {
            assert_eq!(typed(Duration::from_millis(millis)), expected, "{millis}");
        }
    }
}
