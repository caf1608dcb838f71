//! Reads a filter expression. Written by hand, because what it says about a mistake is the better half of it.
//! Knows no cases.

use super::{Condition, Expression, Field, TextMatch};
use crate::judge::regex_reason;
use globset::GlobBuilder;
use mcproof_analysis::{did_you_mean, listed};
use mcproof_record::{Diagnostic, Place};
use regex::RegexBuilder;

/// Parentheses and `!` inside of each other.
const DEEPEST: usize = 64;

pub(super) fn parse(text: &str) -> Result<Expression, Box<Diagnostic>> {
    let mut parser = Parser { text: text.chars().map(|each| if each.is_control() { ' ' } else { each }).collect(), at: 0, depth: 0 };
    parser.skip_spaces();
    if parser.peek().is_none() {
        return Err(parser.error("this filter is empty", 0..1, "write a condition such as name(login) or tag(smoke)"));
    }
    let expression = parser.either()?;
    match parser.peek() {
        None => Ok(expression),
        Some(')') => Err(parser.error("this `)` closes nothing", parser.at..parser.at + 1, "remove it, or write `\\)` within a text")),
        Some(_) => {
            let word = parser.word_ahead();
            let message = format!("expected `&`, `|` or the end of the filter, found `{}`", parser.shown(word.clone()));
            Err(parser.error(&message, word, "write `&` for both of two conditions, `|` for one of them"))
        }
    }
}

type Range = std::ops::Range<usize>;

struct Parser {
    text: Vec<char>,
    /// Index of the next character.
    at: usize,
    depth: usize,
}

impl Parser {
    fn either(&mut self) -> Result<Expression, Box<Diagnostic>> {
        let mut parts = vec![self.both()?];
        while let Some(operator) = self.operator(&["||", "|"], "or") {
            parts.push(self.operand(operator, Self::both)?);
        }
        Ok(Expression::Any(parts))
    }

    fn both(&mut self) -> Result<Expression, Box<Diagnostic>> {
        let mut parts = vec![self.single()?];
        while let Some(operator) = self.operator(&["&&", "&"], "and") {
            parts.push(self.operand(operator, Self::single)?);
        }
        Ok(Expression::Every(parts))
    }

    /// What has to follow an operator.
    fn operand(
        &mut self,
        operator: Range,
        read: impl Fn(&mut Self) -> Result<Expression, Box<Diagnostic>>,
    ) -> Result<Expression, Box<Diagnostic>> {
        if matches!(self.peek(), None | Some(')')) {
            let message = format!("expected a condition after `{}`", self.shown(operator.clone()));
            return Err(self.error(&message, operator, "write one such as name(login), or remove the operator"));
        }
        read(self)
    }

    fn single(&mut self) -> Result<Expression, Box<Diagnostic>> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error("this filter is nested too deeply", self.at..self.at + 1, "write several --filter instead of `|`"));
        }
        let expression = if let Some(operator) = self.operator(&["!"], "not") {
            Expression::Not(Box::new(self.operand(operator, Self::single)?))
        } else if self.peek() == Some('(') {
            self.group()?
        } else {
            self.condition()?
        };
        self.depth -= 1;
        self.skip_spaces();
        Ok(expression)
    }

    fn group(&mut self) -> Result<Expression, Box<Diagnostic>> {
        let open = self.at..self.at + 1;
        self.at += 1;
        self.skip_spaces();
        if self.peek() == Some(')') {
            return Err(self.error("these parentheses are empty", open.start..self.at + 1, "put a condition between them"));
        }
        let inner = self.either()?;
        match self.peek() {
            Some(')') => {
                self.at += 1;
                Ok(inner)
            }
            None => Err(self.error("this `(` is never closed", open, "add `)`")),
            Some(_) => {
                let word = self.word_ahead();
                let message = format!("expected `&`, `|` or `)`, found `{}`", self.shown(word.clone()));
                Err(self.error(&message, word, "write `&` for both of two conditions, `|` for one of them"))
            }
        }
    }

    fn condition(&mut self) -> Result<Expression, Box<Diagnostic>> {
        let start = self.at;
        while self.peek().is_some_and(|each| each.is_alphanumeric() || matches!(each, '_' | '-')) {
            self.at += 1;
        }
        let name = start..self.at;
        let word = self.shown(name.clone());
        if word.is_empty() {
            let found = self.peek().map(String::from).unwrap_or_default();
            let message = format!("expected a condition, found `{found}`");
            return Err(self.error(&message, start..start + 1, "a condition is such as name(login) or tag(smoke)"));
        }
        self.skip_spaces();
        let field = Field::named(&word);
        let is_constant = matches!(word.as_str(), "all" | "none");
        if self.peek() != Some('(') {
            return Err(match field.is_some() || is_constant {
                true => self.error(&format!("expected `(` after `{word}`"), name, &format!("write {word}(…)")),
                false => self.unknown(&word, name, &format!("to find tests by a word, write name({word}) or tag({word})")),
            });
        }
        if field.is_none() && !is_constant {
            return Err(self.unknown(&word, name, ""));
        }
        let open = self.at;
        self.at += 1;
        self.skip_spaces();
        let Some(field) = field else {
            if self.peek() != Some(')') {
                return Err(self.error(&format!("`{word}()` takes nothing"), name, &format!("write {word}()")));
            }
            self.at += 1;
            return Ok(if word == "all" { Expression::All } else { Expression::None });
        };
        let text = self.matcher(field, open)?;
        // `matcher` stops at the parenthesis that closes it.
        self.at += 1;
        Ok(Expression::Is(Condition { field, text, written: self.shown(start..self.at) }))
    }

    fn unknown(&self, word: &str, name: Range, otherwise: &str) -> Box<Diagnostic> {
        let names = || Field::ALL.iter().flat_map(|(_, names)| names.iter().copied()).chain(["all", "none"]);
        let hint = match did_you_mean(word, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if otherwise.is_empty() => format!("a condition is one of {}", listed(names())),
            None => otherwise.to_owned(),
        };
        self.error(&format!("invalid filter: unknown condition `{word}`"), name, &hint)
    }

    fn matcher(&mut self, field: Field, open: usize) -> Result<TextMatch, Box<Diagnostic>> {
        match self.peek() {
            Some('/') => self.regex(open),
            Some('=') => self.after_sign(open).map(|(text, _)| TextMatch::Equals(text)),
            Some('~') => self.after_sign(open).map(|(text, _)| TextMatch::Contains(text)),
            Some('#') => {
                let (text, range) = self.after_sign(open)?;
                self.glob(text, range)
            }
            _ => {
                let (text, range) = self.plain(open)?;
                if field.contains_by_default() { Ok(TextMatch::Contains(text)) } else { self.glob(text, range) }
            }
        }
    }

    fn after_sign(&mut self, open: usize) -> Result<(String, Range), Box<Diagnostic>> {
        self.at += 1;
        self.skip_spaces();
        self.plain(open)
    }

    /// Text up to the parenthesis that closes the condition, without the spaces around it.
    fn plain(&mut self, open: usize) -> Result<(String, Range), Box<Diagnostic>> {
        let start = self.at;
        let mut text = String::new();
        // What an escaped space ends with is meant.
        let mut kept = 0;
        let mut nested = 0_usize;
        loop {
            match self.peek() {
                None => return Err(self.error("this `(` is never closed", open..open + 1, "add `)`, or write `\\(` if it is text")),
                Some('\\') => {
                    self.at += 1;
                    let Some(escaped) = self.peek() else { continue };
                    text.push(escaped);
                    kept = text.len();
                }
                Some(')') if nested == 0 => break,
                Some(each) => {
                    match each {
                        '(' => nested += 1,
                        ')' => nested -= 1,
                        _ => {}
                    }
                    text.push(each);
                    if !each.is_whitespace() {
                        kept = text.len();
                    }
                }
            }
            self.at += 1;
        }
        text.truncate(kept);
        if text.is_empty() {
            return Err(self.error("expected a text between the parentheses", open..self.at + 1, "write the text to look for"));
        }
        Ok((text, start..self.at))
    }

    fn regex(&mut self, open: usize) -> Result<TextMatch, Box<Diagnostic>> {
        let start = self.at;
        self.at += 1;
        let mut pattern = String::new();
        loop {
            match self.peek() {
                None => return Err(self.error("this pattern has no end", start..self.text.len(), "end it with `/`")),
                Some('/') => break,
                Some('\\') if self.text.get(self.at + 1) == Some(&'/') => {
                    pattern.push('/');
                    self.at += 1;
                }
                Some('\\') => {
                    pattern.push('\\');
                    self.at += 1;
                    pattern.extend(self.peek());
                }
                Some(each) => pattern.push(each),
            }
            self.at += 1;
        }
        self.at += 1;
        let ignores_case = self.peek() == Some('i');
        self.at += usize::from(ignores_case);
        let range = start..self.at;
        self.skip_spaces();
        if self.peek() != Some(')') {
            return Err(match self.peek() {
                None => self.error("this `(` is never closed", open..open + 1, "add `)`"),
                Some(other) => {
                    let message = format!("expected `)` after the pattern, found `{other}`");
                    self.error(&message, self.at..self.at + 1, "write `\\/` for a slash in a pattern; the only flag is `i`")
                }
            });
        }
        let regex = RegexBuilder::new(&pattern).case_insensitive(ignores_case).build();
        regex.map(TextMatch::Regex).map_err(|error| {
            self.error(
                &format!("this pattern is not valid: {}", regex_reason(&error)),
                range,
                "to match literal text, put `=` before it, as in name(=a[1])",
            )
        })
    }

    fn glob(&self, written: String, range: Range) -> Result<TextMatch, Box<Diagnostic>> {
        match GlobBuilder::new(&written).build() {
            Ok(glob) => Ok(TextMatch::Glob { written, glob: glob.compile_matcher() }),
            Err(error) => {
                let message = format!("this glob is not valid: {}", error.kind());
                Err(self.error(&message, range, "to match literal text, put `=` before it, as in name(=a[1])"))
            }
        }
    }

    /// Takes an operator, written as a sign or as a word.
    fn operator(&mut self, signs: &[&str], word: &str) -> Option<Range> {
        self.skip_spaces();
        let start = self.at;
        let ahead = |sign: &str| self.text[start..].iter().copied().take(sign.chars().count()).eq(sign.chars());
        let length = signs.iter().find(|sign| ahead(sign)).map(|sign| sign.chars().count()).or_else(|| {
            let after = self.text.get(start + word.chars().count());
            let ends = after.is_none_or(|each| !each.is_alphanumeric() && !matches!(each, '_' | '-'));
            (ends && ahead(word)).then(|| word.chars().count())
        })?;
        self.at += length;
        let range = start..self.at;
        self.skip_spaces();
        Some(range)
    }

    fn word_ahead(&self) -> Range {
        let length = self.text[self.at..].iter().take_while(|each| each.is_alphanumeric()).count();
        self.at..self.at + length.max(1)
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn shown(&self, range: Range) -> String {
        self.text[range.start..range.end.min(self.text.len())].iter().collect()
    }

    fn error(&self, message: &str, range: Range, hint: &str) -> Box<Diagnostic> {
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let place = Place {
            file: "--filter".to_owned(),
            line: 1,
            column: number(range.start + 1),
            length: number(range.len().max(1)),
            text: self.text.iter().collect(),
        };
        Box::new(Diagnostic::error("bad-filter", message).at(place).hint(hint))
    }
}
