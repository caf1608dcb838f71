//! Filter expressions: which cases a run takes, such as `tag(smoke) & transport(stdio) & !name(/slow/)`.
//! Judges what a plan says of a case; knows neither suites nor servers.

mod parse;
#[cfg(test)]
mod tests;

use globset::GlobMatcher;
use mcproof_analysis::{did_you_mean, listed};
use mcproof_record::{CasePlan, Diagnostic};
use regex::Regex;
use std::collections::BTreeSet;

/// The language in a few lines, for help texts.
pub const FILTER_HELP: &str = "\
Filter expressions:
  name(TEXT) suite(TEXT)                 contain TEXT
  tag(TEXT) transport(TEXT) server(TEXT) are TEXT, in which * and ? are wildcards
  (=TEXT) exactly, (~TEXT) contains, (/REGEX/) or (/REGEX/i), (#GLOB): for any of them
  A & B, A | B, !A, (A), all(), none(); or `and`, `or`, `not`
  \\ before a parenthesis that has no partner takes it as text
";

/// A condition on cases.
#[derive(Clone, Debug)]
pub struct Filter {
    expression: Expression,
}

impl Filter {
    /// # Errors
    /// Says what is wrong, with its place in the expression.
    pub fn parse(text: &str) -> Result<Self, Box<Diagnostic>> {
        Ok(Self { expression: parse::parse(text)? })
    }

    pub fn matches(&self, case: &CasePlan) -> bool {
        self.expression.holds(case)
    }

    /// For each condition that no case meets: what it is, and which names are near.
    pub(crate) fn unmet(&self, cases: &[CasePlan]) -> Vec<String> {
        let mut conditions = Vec::new();
        self.expression.conditions(&mut conditions);
        conditions.into_iter().filter(|condition| !cases.iter().any(|case| condition.holds(case))).map(|it| it.explain(cases)).collect()
    }
}

#[derive(Clone, Debug)]
enum Expression {
    All,
    None,
    Is(Condition),
    Not(Box<Expression>),
    Every(Vec<Expression>),
    Any(Vec<Expression>),
}

impl Expression {
    fn holds(&self, case: &CasePlan) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Is(condition) => condition.holds(case),
            Self::Not(inner) => !inner.holds(case),
            Self::Every(parts) => parts.iter().all(|part| part.holds(case)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(case)),
        }
    }

    fn conditions<'a>(&'a self, found: &mut Vec<&'a Condition>) {
        match self {
            Self::All | Self::None => {}
            Self::Is(condition) => found.push(condition),
            Self::Not(inner) => inner.conditions(found),
            Self::Every(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.conditions(found)),
        }
    }
}

/// `field(text)`.
#[derive(Clone, Debug)]
struct Condition {
    field: Field,
    text: TextMatch,
    /// As it was written.
    written: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Name,
    Tag,
    Transport,
    Server,
    Suite,
}

#[derive(Clone, Debug)]
enum TextMatch {
    Equals(String),
    Contains(String),
    Regex(Regex),
    Glob { written: String, glob: GlobMatcher },
}

impl Condition {
    fn holds(&self, case: &CasePlan) -> bool {
        self.field.values(case).into_iter().any(|value| self.text.matches(value))
    }

    fn explain(&self, cases: &[CasePlan]) -> String {
        let values: BTreeSet<&str> = cases.iter().flat_map(|case| self.field.values(case)).collect();
        let typed = match &self.text {
            TextMatch::Equals(text) | TextMatch::Contains(text) | TextMatch::Glob { written: text, .. } => Some(text.as_str()),
            TextMatch::Regex(_) => None,
        };
        let nothing = format!("no test has {}", self.written);
        match typed.and_then(|typed| nearest(typed, &values)) {
            Some(near) => format!("{nothing}, did you mean `{near}`?"),
            None if values.is_empty() => format!("{nothing}: none has any {}", self.field.noun()),
            None => format!("{nothing}: {} are {}", self.field.plural(), listed(values)),
        }
    }
}

/// The value that was probably meant, or the one with the word that was probably meant.
fn nearest<'a>(typed: &str, values: &BTreeSet<&'a str>) -> Option<&'a str> {
    let folded = typed.to_lowercase();
    let inside = || values.iter().copied().find(|value| value.to_lowercase().contains(&folded));
    let word = || {
        let words = values.iter().flat_map(|value| value.split_whitespace());
        let near = did_you_mean(typed, words)?;
        values.iter().copied().find(|value| value.split_whitespace().any(|word| word == near))
    };
    did_you_mean(typed, values.iter().copied()).or_else(inside).or_else(word)
}

impl Field {
    /// Each with the names by which it can be called.
    const ALL: [(Self, &'static [&'static str]); 5] = [
        (Self::Name, &["name", "test"]),
        (Self::Tag, &["tag"]),
        (Self::Transport, &["transport"]),
        (Self::Server, &["server"]),
        (Self::Suite, &["suite", "file"]),
    ];

    fn named(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, names)| names.contains(&word)).map(|(field, _)| *field)
    }

    fn values(self, case: &CasePlan) -> Vec<&str> {
        match self {
            Self::Name => vec![&case.name],
            Self::Tag => case.tags.iter().map(String::as_str).collect(),
            Self::Transport => vec![&case.transport],
            Self::Server => case.servers.iter().map(String::as_str).collect(),
            Self::Suite => {
                let file_name = case.suite.rsplit('/').next().unwrap_or(&case.suite);
                vec![&case.suite, file_name]
            }
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Tag => "tag",
            Self::Transport => "transport",
            Self::Server => "server",
            Self::Suite => "suite",
        }
    }

    fn plural(self) -> String {
        format!("{}s", self.noun())
    }

    /// Names and paths are long, and a part of them says which is meant; the others are single words.
    fn contains_by_default(self) -> bool {
        matches!(self, Self::Name | Self::Suite)
    }
}

impl TextMatch {
    fn matches(&self, value: &str) -> bool {
        match self {
            Self::Equals(text) => value == text,
            Self::Contains(text) => value.contains(text),
            Self::Regex(regex) => regex.is_match(value),
            Self::Glob { glob, .. } => glob.is_match(value),
        }
    }
}
