//! Chooses lines of a long output: the first ones, the last ones, and those that look like the reason of a failure.
//! Knows the words of common runtimes, not who wrote the lines.

use std::collections::BTreeSet;

/// Words at the beginning of a line that looks like a reason; those that end with `error` or `exception`, too.
const WORDS: [&str; 8] = ["fatal", "panic", "panicked", "traceback", "failed", "failure", "cannot", "unable"];

/// Words in which a reason is looked for: behind a time and the name of a logger.
const SEARCHED: usize = 4;

/// Whether a line looks like the reason of a failure. A program that prints its usage after an error, or a stack, has it on an early line.
#[must_use]
pub fn names_reason(line: &str) -> bool {
    let line = line.trim_start();
    if line.starts_with(['-', '#']) || line.starts_with("at ") {
        return false;
    }
    line.split_whitespace().take(SEARCHED).any(|word| {
        let word = word.trim_matches(|character: char| !character.is_alphanumeric()).to_ascii_lowercase();
        // `error[E0433]` is a compiler's.
        WORDS.contains(&word.as_str()) || word.ends_with("error") || word.ends_with("exception") || word.starts_with("error[")
    })
}

/// At most `most` of these lines, in their order. Where some are left out behind the first of them, a line `… 60 lines` says so.
#[must_use]
pub fn telling_lines<T: AsRef<str>>(lines: &[T], most: usize) -> Vec<String> {
    let kept = chosen(lines, most);
    let mut told = Vec::with_capacity(kept.len());
    let mut next = kept.first().copied().unwrap_or_default();
    for index in kept {
        match index - next {
            0 => {}
            1 => told.push("… 1 line".to_owned()),
            number => told.push(format!("… {number} lines")),
        }
        told.push(lines[index].as_ref().to_owned());
        next = index + 1;
    }
    told
}

/// A quarter of what is kept are first lines, and up to a quarter reasons that lie between them and the last lines.
fn chosen<T: AsRef<str>>(lines: &[T], most: usize) -> BTreeSet<usize> {
    if lines.len() <= most {
        return (0..lines.len()).collect();
    }
    let first = most / 4;
    let reasons = most.div_ceil(4).min(most.saturating_sub(1));
    let between = first..lines.len() - (most - first - reasons);
    let mut kept: BTreeSet<usize> = between.filter(|index| names_reason(lines[*index].as_ref())).take(reasons).collect();
    let last = lines.len() - (most - first - kept.len());
    kept.extend((0..first).chain(last..lines.len()));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_look_like_a_reason_are_told_from_others() {
        for line in [
            "Error: no current-context is set",
            "ModuleNotFoundError: No module named 'mcp'",
            "Traceback (most recent call last):",
            "thread 'main' panicked at src/main.rs:3:5:",
            "panic: runtime error: index out of range",
            "2026-11-28T12:00:00Z ERROR shop::server: no database",
            "[ERROR] no database",
            "error[E0433]: failed to resolve",
            "Exception in thread \"main\" java.lang.NullPointerException",
            "  Cannot open the database",
        ] {
            assert!(names_reason(line), "{line}");
        }
        for line in [
            "      --error string   Where errors go",
            "    at Error.captureStackTrace (node:internal/errors:1:1)",
            "  File \"error.py\", line 3, in <module>",
            "Usage: shop [flags]",
            "listening on port 3000",
            "0 errors",
            "",
        ] {
            assert!(!names_reason(line), "{line}");
        }
    }

    #[test]
    fn of_many_lines_the_first_the_last_and_the_reasons_are_kept() {
        let check = |reasons: &[usize], most: usize, expected: &str| {
            let lines: Vec<String> =
                (0..100).map(|index| if reasons.contains(&index) { format!("Error: {index}") } else { index.to_string() }).collect();
            assert_eq!(telling_lines(&lines, most).join(", "), expected, "{reasons:?} {most}");
        };
        check(&[], 8, "0, 1, … 92 lines, 94, 95, 96, 97, 98, 99");
        check(&[0], 8, "Error: 0, 1, … 92 lines, 94, 95, 96, 97, 98, 99");
        check(&[50], 8, "0, 1, … 48 lines, Error: 50, … 44 lines, 95, 96, 97, 98, 99");
        check(&[2, 94, 95], 8, "0, 1, Error: 2, … 91 lines, Error: 94, … 1 line, 96, 97, 98, 99");
        check(&[0, 50], 3, "Error: 0, … 97 lines, 98, 99");
        check(&[], 1, "99");
        check(&[0], 1, "99");
        check(&[0], 0, "");
        assert_eq!(telling_lines(&["a", "b", "c"], 3), ["a", "b", "c"]);
        assert_eq!(telling_lines(&["a", "b", "c", "d", "e"], 4), ["a", "… 1 line", "c", "d", "e"]);
    }
}
