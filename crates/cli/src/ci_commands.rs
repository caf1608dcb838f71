//! Breaks up what a CI system would obey in the output of a job, wherever it stands in a line: `##vso[…]` and `##[…]` of Azure Pipelines,
//! `##teamcity[…]` of TeamCity. None of it is ever ours. Knows bytes, no reports. What other systems obey needs control characters (GitLab),
//! which are escaped everywhere, or is paused by the reporter for GitHub.

use crate::settings;
use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::LazyLock;

/// In JSON, the same character.
const ESCAPED: &[u8] = b"\\u0023";

/// Whether the output is read by such a system.
fn is_read() -> bool {
    static READ: LazyLock<bool> = LazyLock::new(settings::obeys_number_signs);
    *READ
}

/// A text in which nothing is a command.
pub(crate) fn broken_up(text: &str) -> Cow<'_, str> {
    if is_read() { in_parts([text]) } else { Cow::Borrowed(text) }
}

fn in_parts<'a>(parts: impl IntoIterator<Item = &'a str>) -> Cow<'static, str> {
    let (mut breaker, mut clean) = (Breaker::default(), Vec::new());
    parts.into_iter().for_each(|part| breaker.push(part.as_bytes(), &mut clean));
    breaker.finish(&mut clean);
    Cow::Owned(String::from_utf8(clean).expect("only ASCII was put between characters"))
}

/// A stream in which nothing is a command, however it is cut into pieces.
pub(crate) struct BrokenUp<W: Write> {
    inner: W,
    breaker: Option<Breaker>,
}

impl<W: Write> BrokenUp<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, breaker: is_read().then(Breaker::default) }
    }
}

impl<W: Write> Write for BrokenUp<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(breaker) = &mut self.breaker else { return self.inner.write(bytes) };
        let mut clean = Vec::with_capacity(bytes.len());
        breaker.push(bytes, &mut clean);
        self.inner.write_all(&clean)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W: Write> Drop for BrokenUp<W> {
    fn drop(&mut self) {
        let mut rest = Vec::new();
        if let Some(breaker) = &mut self.breaker {
            breaker.finish(&mut rest);
        }
        // Nobody is left to be told.
        drop(self.inner.write_all(&rest));
    }
}

#[derive(Default)]
struct Breaker {
    /// The byte before was a number sign.
    follows: bool,
    /// A second number sign waits for what comes next.
    holds: bool,
}

impl Breaker {
    fn push(&mut self, bytes: &[u8], clean: &mut Vec<u8>) {
        for byte in bytes {
            if self.holds {
                // Each command begins like this, and hardly anything else does.
                clean.extend_from_slice(if matches!(byte, b'[' | b'v' | b'V' | b't' | b'T') { ESCAPED } else { b"#" });
            }
            self.holds = *byte == b'#' && self.follows;
            self.follows = *byte == b'#';
            if !self.holds {
                clean.push(*byte);
            }
        }
    }

    fn finish(&mut self, clean: &mut Vec<u8>) {
        if std::mem::take(&mut self.holds) {
            clean.push(b'#');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_broken_up_and_nothing_else_is_changed() {
        let check = |text: &str, expected: &str| {
            assert_eq!(in_parts([text]), expected);
            // However it comes.
            let each: Vec<String> = text.chars().map(String::from).collect();
            assert_eq!(in_parts(each.iter().map(String::as_str)), expected);
        };
        check("a ##vso[task.x]b", "a #\\u0023vso[task.x]b");
        check("##[error]x", "#\\u0023[error]x");
        check("##TeamCity[a]", "#\\u0023TeamCity[a]");
        check("###[error]", "##\\u0023[error]");
        check("## Title # [a](b) #1 ß##", "## Title # [a](b) #1 ß##");
        check("#", "#");
        check("", "");
        let json = in_parts([r#"{"a":"\\##vso[x]"}"#]);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["a"], "\\##vso[x]");
    }
}
