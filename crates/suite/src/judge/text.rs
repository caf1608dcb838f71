//! Patterns for text: `/regex/flags` or plain text, either of which may hold `${saved}` values.

use crate::document::{Kind, Node};
use crate::source::Source;
use crate::{MissingVariable, interpolate_text, template};
use mcproof_analysis::matches_every_text;
use mcproof_record::Diagnostic;
use regex::Regex;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// `/regex/flags`, or plain text.
#[derive(Clone, Debug)]
pub struct TextPattern(Form);

#[derive(Clone, Debug)]
enum Form {
    Plain(String),
    Regex(Pattern),
}

impl TextPattern {
    /// Reads the text of a node; the flags are `i`, `m`, `s` and `x`.
    pub fn compile(node: &Node, source: &Source, diagnostics: &mut Vec<Diagnostic>) -> Option<Self> {
        let Kind::Text(text) = &node.kind else {
            if node.kind != Kind::Broken {
                let message = format!("expected a string or a pattern such as /no such order/i, found {}", node.kind.noun());
                diagnostics.push(Diagnostic::error("wrong-type", message).at(source.place(node.span)));
            }
            return None;
        };
        if delimited(text).is_none() {
            return Some(Self(Form::Plain(text.clone())));
        }
        Pattern::compile(text, node, source, diagnostics).map(|pattern| Self(Form::Regex(pattern)))
    }

    /// Whether every text contains it.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(&self.0, Form::Plain(plain) if plain.is_empty())
    }

    /// Why no text could fail to match this pattern, if that is so.
    pub(crate) fn weakness(&self) -> Option<&'static str> {
        match &self.0 {
            Form::Regex(pattern) if pattern.matches_everything() => Some("this pattern matches every text"),
            Form::Plain(_) | Form::Regex(_) => None,
        }
    }

    /// Whether it can be used at all.
    ///
    /// # Errors
    /// Says which variable has no value, or why the pattern is not valid with its values.
    pub(crate) fn usable(&self, scope: &Map<String, Value>) -> Result<(), String> {
        match &self.0 {
            Form::Plain(plain) => interpolate_text(plain, scope).map(|_| ()).map_err(|missing| missing.to_string()),
            Form::Regex(pattern) => pattern.regex(scope).map(|_| ()),
        }
    }

    /// Whether it can be looked for in a text.
    ///
    /// # Errors
    /// Those of [`TextPattern::usable`], and that there is nothing to look for.
    pub(crate) fn usable_within(&self, scope: &Map<String, Value>) -> Result<(), String> {
        self.usable(scope)?;
        match &self.0 {
            Form::Plain(plain) if interpolate_text(plain, scope).is_ok_and(|plain| plain.is_empty()) => {
                Err("every text contains the empty text".to_owned())
            }
            Form::Plain(_) | Form::Regex(_) => Ok(()),
        }
    }

    /// A plain text has to be the whole text. A text whose variables have no value matches nothing.
    pub fn matches_exactly(&self, text: &str, scope: &Map<String, Value>) -> bool {
        match &self.0 {
            Form::Plain(plain) => interpolate_text(plain, scope).is_ok_and(|plain| plain == text),
            Form::Regex(pattern) => pattern.regex(scope).is_ok_and(|regex| regex.is_match(text)),
        }
    }

    /// A plain text may stand anywhere in the text. A text whose variables have no value matches nothing.
    pub fn matches_within(&self, text: &str, scope: &Map<String, Value>) -> bool {
        match &self.0 {
            Form::Plain(plain) => interpolate_text(plain, scope).is_ok_and(|plain| text.contains(&plain)),
            Form::Regex(_) => self.matches_exactly(text, scope),
        }
    }

    /// A text that matches, if one is found.
    pub(crate) fn example(&self, scope: &Map<String, Value>) -> Option<String> {
        match &self.0 {
            Form::Plain(plain) => interpolate_text(plain, scope).ok(),
            Form::Regex(pattern) => pattern.example(scope),
        }
    }

    /// What [`TextPattern::matches_exactly`] asks for, in words.
    pub fn describe_exactly(&self, scope: &Map<String, Value>) -> String {
        match &self.0 {
            Form::Plain(plain) => format!("the text {}", quoted(plain, scope)),
            Form::Regex(pattern) => format!("text that matches {}", pattern.describe(scope)),
        }
    }

    /// What [`TextPattern::matches_within`] asks for, in words.
    pub fn describe_within(&self, scope: &Map<String, Value>) -> String {
        match &self.0 {
            Form::Plain(plain) => format!("text that contains {}", quoted(plain, scope)),
            Form::Regex(_) => self.describe_exactly(scope),
        }
    }
}

/// A regular expression that may hold `${saved}` values, which then match literally.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    body: String,
    flags: String,
    /// `None` if a run has to fill in values first.
    compiled: Option<Regex>,
}

impl Pattern {
    /// `/regex/flags`, or a regular expression without slashes.
    pub(crate) fn compile(text: &str, node: &Node, source: &Source, diagnostics: &mut Vec<Diagnostic>) -> Option<Self> {
        let (body, flags) = delimited(text).unwrap_or((text, ""));
        let mut pattern = Self { body: body.to_owned(), flags: flags.to_owned(), compiled: None };
        if !template::is_template(body) {
            match source.pattern(body, flags, |size| builder(body, flags).size_limit(size).build()).map_err(|error| regex_reason(&error)) {
                Ok(regex) => pattern.compiled = Some(regex),
                Err(reason) => {
                    let place = source.place(source.part(node.span, text));
                    diagnostics.push(Diagnostic::error("bad-regex", format!("this pattern is not valid: {reason}")).at(place));
                    return None;
                }
            }
        }
        Some(pattern)
    }

    /// Whether there is no text in which it finds nothing.
    pub(crate) fn matches_everything(&self) -> bool {
        matches_every_text(&self.body, &self.flags)
    }

    pub(crate) fn regex(&self, scope: &Map<String, Value>) -> Result<Cow<'_, Regex>, String> {
        if let Some(regex) = &self.compiled {
            return Ok(Cow::Borrowed(regex));
        }
        build(&self.filled(scope)?, &self.flags).map(Cow::Owned)
    }

    /// The same for names that have no case.
    pub(crate) fn regex_without_case(&self, scope: &Map<String, Value>) -> Result<Regex, String> {
        build(&self.filled(scope)?, &format!("{}i", self.flags))
    }

    /// A text that it finds something in, if one is found.
    pub(crate) fn example(&self, scope: &Map<String, Value>) -> Option<String> {
        let regex = self.regex(scope).ok()?;
        super::example::of_pattern(&self.filled(scope).ok()?).filter(|text| regex.is_match(text))
    }

    pub(crate) fn describe(&self, scope: &Map<String, Value>) -> String {
        format!("/{}/{}", self.fill(scope).unwrap_or_else(|_| self.body.clone()), self.flags)
    }

    /// The body with its variables, which leave something that can fail.
    fn filled(&self, scope: &Map<String, Value>) -> Result<String, String> {
        let body = self.fill(scope).map_err(|missing| missing.to_string())?;
        match self.compiled.is_none() && matches_every_text(&body, &self.flags) {
            true => Err(format!("`/{body}/`, with its variables filled in, matches every text")),
            false => Ok(body),
        }
    }

    fn fill(&self, scope: &Map<String, Value>) -> Result<String, MissingVariable> {
        template::interpolate_rendered(&self.body, scope, |value| match value {
            Value::String(text) => regex::escape(text),
            other => regex::escape(&other.to_string()),
        })
    }
}

/// The pattern and the flags of `/pattern/flags`.
fn delimited(text: &str) -> Option<(&str, &str)> {
    let (body, flags) = text.strip_prefix('/')?.rsplit_once('/')?;
    (!body.is_empty() && flags.chars().all(|flag| "imsx".contains(flag))).then_some((body, flags))
}

fn build(body: &str, flags: &str) -> Result<Regex, String> {
    builder(body, flags).build().map_err(|error| regex_reason(&error))
}

fn builder(body: &str, flags: &str) -> regex::RegexBuilder {
    let has = |flag| flags.contains(flag);
    let mut builder = regex::RegexBuilder::new(body);
    builder.case_insensitive(has('i')).multi_line(has('m')).dot_matches_new_line(has('s')).ignore_whitespace(has('x'));
    builder
}

/// The last line of a regex error: the lines before it draw the pattern, which our own diagnostic shows.
pub(crate) fn regex_reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).trim_end_matches('.').to_owned()
}

fn quoted(template: &str, scope: &Map<String, Value>) -> String {
    Value::String(interpolate_text(template, scope).unwrap_or_else(|_| template.to_owned())).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Span;
    use serde_json::json;

    fn compile(text: &str) -> (Option<TextPattern>, Vec<Diagnostic>) {
        let mut diagnostics = Vec::new();
        let node = Node { kind: Kind::Text(text.into()), span: Span { file: 0, line: 1, column: 1, length: 1 } };
        (TextPattern::compile(&node, &Source::new("f", text), &mut diagnostics), diagnostics)
    }

    #[test]
    fn plain_text_is_literal_and_slashes_make_a_pattern() {
        let scope = json!({"id": "a.b", "n": 3}).as_object().cloned().unwrap();
        let check = |pattern: &str, text: &str, exactly: bool, within: bool| {
            let compiled = compile(pattern).0.unwrap();
            assert_eq!(
                (compiled.matches_exactly(text, &scope), compiled.matches_within(text, &scope)),
                (exactly, within),
                "{pattern} {text}"
            );
        };
        check("abc", "abc", true, true);
        check("abc", "xabcx", false, true);
        check("abc", "ABC", false, false);
        check("a.c", "abc", false, false);
        check("/a.c/", "xabcx", true, true);
        check("/^a.c$/", "xabcx", false, false);
        check("/ABC/i", "abc", true, true);
        check("/a.b/s", "a\nb", true, true);
        check("/^b$/m", "a\nb", true, true);
        check("/a b/x", "ab", true, true);
        check("/usr/bin", "/usr/bin", true, true);
        check("/", "/", true, true);
        check("//", "//", true, true);
        check("order ${id}", "no order a.b here", false, true);
        check("/^${id}$/", "a.b", true, true);
        check("/^${id}$/", "axb", false, false);
        check("/${n}0{2}/", "x300", true, true);
        check("${nope}", "", false, false);
        check("/${nope}/", "", false, false);
    }

    #[test]
    fn a_bad_pattern_says_why() {
        let (pattern, diagnostics) = compile("/(abc/");
        assert!(pattern.is_none());
        assert_eq!(diagnostics[0].message, "this pattern is not valid: unclosed group");
    }
}
