//! Values as people read them. What a server chose goes through [`plain`] before it reaches a page.

use crate::incident::Severity;
use crate::moment::Moment;
use crate::state::{Availability, Surface};
use crate::store::read::Bucket;
use std::fmt::{self, Write as _};
use std::time::Duration;

/// Columns of one line that a server or a user chose.
const LINE: usize = 300;

/// Markup that we made ourselves.
#[derive(Clone, Debug, Default)]
pub(super) struct Html(pub(super) String);

impl fmt::Display for Html {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl askama::filters::HtmlSafe for Html {}

/// A state in a class for the colour, a shape, and a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) class: &'static str,
    pub(super) shape: &'static str,
    pub(super) word: &'static str,
}

pub(super) fn availability(state: Availability) -> Mark {
    let (class, shape, word) = match state {
        Availability::Unknown => ("idle", "○", "waiting"),
        Availability::Ok => ("good", "●", "up"),
        Availability::Suspect => ("warn", "◐", "checking"),
        Availability::Down => ("bad", "■", "down"),
        Availability::Recovering => ("warn", "◑", "recovering"),
        Availability::Flapping => ("bad", "◆", "flapping"),
        Availability::Blind => ("idle", "◌", "blind"),
    };
    Mark { class, shape, word }
}

/// Nothing where the contract is as it should be, or not known yet.
pub(super) fn surface(state: Surface) -> Option<Mark> {
    let (class, shape, word) = match state {
        Surface::Unknown | Surface::Ok => return None,
        Surface::Suspect => ("warn", "◐", "contract differs"),
        Surface::Changed => ("warn", "▲", "contract changed"),
        Surface::Mixed => ("warn", "▲", "mixed fleet"),
    };
    Some(Mark { class, shape, word })
}

/// The worst first.
pub(super) fn rank(availability: Availability, surface: Surface) -> u8 {
    match (availability, surface) {
        (Availability::Down, _) => 0,
        (Availability::Flapping, _) => 1,
        (Availability::Blind, _) => 2,
        (Availability::Suspect, _) => 3,
        (Availability::Recovering, _) => 4,
        (Availability::Ok, Surface::Changed | Surface::Mixed) => 5,
        (Availability::Ok, Surface::Suspect) => 6,
        (Availability::Unknown, _) => 7,
        (Availability::Ok, Surface::Ok | Surface::Unknown) => 8,
    }
}

pub(super) fn severity(severity: Severity) -> Mark {
    let (class, shape) = match severity {
        Severity::Notify => ("warn", "▲"),
        Severity::Page => ("bad", "■"),
        Severity::Security => ("bad", "◆"),
    };
    Mark { class, shape, word: severity.word() }
}

pub(super) fn level(level: &str) -> Mark {
    match level {
        "breaking" => Mark { class: "bad", shape: "■", word: "breaking" },
        "security" => Mark { class: "bad", shape: "◆", word: "security" },
        "mixed-fleet" => Mark { class: "warn", shape: "▲", word: "mixed fleet" },
        "compatible" => Mark { class: "good", shape: "●", word: "compatible" },
        _ => Mark { class: "idle", shape: "○", word: "cosmetic" },
    }
}

/// One line, safe and short.
pub(super) fn plain(text: &str) -> String {
    mcproof_report::escape_line(text, LINE)
}

/// `3 min ago`, with the point in time behind it.
pub(super) fn when(now: Moment, at: Moment) -> Html {
    if at == Moment(0) {
        return Html("never".to_owned());
    }
    let text = if at > now { format!("in {}", span(at.since(now))) } else { format!("{} ago", span(now.since(at))) };
    Html(format!("<time datetime=\"{at}\" title=\"{}\" data-at=\"{}\">{text}</time>", clock(at), at.0))
}

/// `2026-11-21 14:05:09 UTC`, as a time of HTML.
pub(super) fn at(at: Moment) -> Html {
    Html(format!("<time datetime=\"{at}\">{}</time>", clock(at)))
}

pub(super) fn clock(at: Moment) -> String {
    at.to_string().replacen('T', " ", 1).replace('Z', " UTC")
}

/// `2026-11-21`
pub(super) fn date(at: Moment) -> String {
    at.to_string().chars().take(10).collect()
}

/// The two largest units.
pub(crate) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    let two = |large: u64, unit: &str, small: u64, part: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {part}"),
    };
    match () {
        () if days >= 3 => format!("{days} days"),
        () if days > 0 => two(days, if days == 1 { "day" } else { "days" }, hours, "h"),
        () if hours > 0 => two(hours, "h", minutes, "min"),
        () if minutes > 0 => format!("{minutes} min"),
        () => format!("{seconds} s"),
    }
}

/// A latency in microseconds.
pub(super) fn micros(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..10_000 => format!("{:.1} ms", micros as f64 / 1e3),
        10_000..1_000_000 => format!("{:.0} ms", micros as f64 / 1e3),
        1_000_000..60_000_000 => format!("{:.2} s", micros as f64 / 1e6),
        _ => span(Duration::from_micros(micros)),
    }
}

/// `99.9 % up`, of the probes that say anything.
pub(super) fn up(sum: &Bucket) -> Option<String> {
    let conclusive = sum.good + sum.bad;
    (conclusive > 0).then(|| format!("{} up", percent(sum.good, conclusive)))
}

/// Never 100 % where something failed.
fn percent(good: i64, of: i64) -> String {
    let parts = |whole: i64| good.saturating_mul(whole) / of;
    match parts(10_000) {
        10_000.. => "100 %".to_owned(),
        hundredths @ 9_900.. => format!("{}.{:02} %", hundredths / 100, hundredths % 100),
        _ => format!("{}.{} %", parts(1_000) / 10, parts(1_000) % 10),
    }
}

/// `1,234`
pub(super) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 target`, `1,234 targets`
pub(super) fn count(number: usize, noun: &str) -> String {
    format!("{} {noun}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// As one segment of a path.
pub(super) fn segment(text: &str) -> String {
    text.bytes().fold(String::new(), |mut path, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => path.push(char::from(byte)),
            _ => write!(path, "%{byte:02X}").expect("a String takes all text"),
        }
        path
    })
}

/// The start of a hash, as people compare them.
pub(super) fn short_hash(hash: &str) -> String {
    plain(&hash.trim_start_matches("sha256:").chars().take(12).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_well() {
        for (seconds, expected) in
            [(0, "0 s"), (59, "59 s"), (61, "1 min"), (3_600, "1 h"), (5_460, "1 h 31 min"), (90_000, "1 day 1 h"), (400_000, "4 days")]
        {
            assert_eq!(span(Duration::from_secs(seconds)), expected);
        }
        for (good, of, expected) in [
            (1, 1, "100 %"),
            (99_999, 100_000, "99.99 %"),
            (99, 100, "99.00 %"),
            (999, 1_000, "99.90 %"),
            (57, 100, "57.0 %"),
            (29, 100, "29.0 %"),
            (2, 3, "66.6 %"),
            (1, 2, "50.0 %"),
            (0, 7, "0.0 %"),
        ] {
            assert_eq!(percent(good, of), expected, "{good} of {of}");
        }
        for (number, expected) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), expected);
        }
        assert_eq!(segment("a b/ü"), "a%20b%2F%C3%BC");
        assert_eq!(micros(12_345), "12 ms");
    }
}
