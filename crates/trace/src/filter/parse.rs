//! Reads the filter language. Stops at the first mistake, which it places.

use super::{Comparison, Condition, FilterError, Glob, Operator, Term};
use crate::calls::{CallKind, CallStatus};
use mcproof_record::Direction;
use std::time::Duration;

const KEYS: [&str; 19] = [
    "method",
    "tool",
    "prompt",
    "uri",
    "target",
    "server",
    "transport",
    "client",
    "test",
    "id",
    "status",
    "kind",
    "dir",
    "session",
    "call",
    "code",
    "http",
    "duration",
    "at",
];

/// Parentheses inside each other.
const DEEPEST: usize = 50;

pub(super) fn filter(text: &str) -> Result<Condition, FilterError> {
    let mut parser = Parser { symbols: text.chars().collect(), place: 0, depth: 0 };
    let condition = parser.any()?;
    match parser.peek() {
        None => Ok(condition),
        Some(_) => Err(error("`)` without `(`", parser.place, 1).with_hint("remove it, or quote the value")),
    }
}

struct Parser {
    symbols: Vec<char>,
    place: usize,
    depth: usize,
}

/// A word: where it begins, its text, and how much of it stands before the first quote, if there is one.
struct Word {
    place: usize,
    text: String,
    bare: Option<usize>,
}

impl Parser {
    fn any(&mut self) -> Result<Condition, FilterError> {
        let mut choices = vec![self.all()?];
        while self.take_word("OR") {
            choices.push(self.operand("OR")?);
        }
        Ok(if choices.len() == 1 { choices.remove(0) } else { Condition::Any(choices) })
    }

    fn operand(&mut self, after: &str) -> Result<Condition, FilterError> {
        let place = self.place;
        match self.all()? {
            Condition::All(none) if none.is_empty() => {
                Err(error(format!("nothing follows `{after}`"), place.saturating_sub(after.len()), after.len()))
            }
            condition => Ok(condition),
        }
    }

    fn all(&mut self) -> Result<Condition, FilterError> {
        let mut conditions = Vec::new();
        loop {
            self.skip_space();
            match self.peek() {
                None | Some(')') => break,
                Some(_) if self.at_word("OR") => {
                    if conditions.is_empty() && self.depth == 0 && self.place == self.leading_space() {
                        return Err(error("nothing stands before `OR`", self.place, 2));
                    }
                    break;
                }
                Some(_) if self.at_word("AND") => {
                    self.place += 3;
                }
                Some(_) => conditions.push(self.one()?),
            }
        }
        Ok(if conditions.len() == 1 { conditions.remove(0) } else { Condition::All(conditions) })
    }

    fn one(&mut self) -> Result<Condition, FilterError> {
        let place = self.place;
        match self.peek() {
            Some('-') => {
                self.place += 1;
                match self.peek() {
                    None | Some(' ' | ')') => Err(error("nothing follows `-`", place, 1)),
                    Some('-') => Err(error("`-` twice", place, 2).with_hint("quote a text that begins with `-`")),
                    Some(_) => Ok(Condition::Not(Box::new(self.one()?))),
                }
            }
            Some('(') => {
                self.place += 1;
                self.depth += 1;
                if self.depth > DEEPEST {
                    return Err(error(format!("more than {DEEPEST} parentheses inside each other"), place, 1));
                }
                let condition = self.any()?;
                if self.peek() != Some(')') {
                    return Err(error("`(` without `)`", place, 1));
                }
                self.place += 1;
                self.depth -= 1;
                if condition == Condition::All(Vec::new()) {
                    return Err(error("nothing stands in the parentheses", place, self.place - place));
                }
                Ok(condition)
            }
            _ => self.word().and_then(term),
        }
    }

    /// Up to the next space or parenthesis outside of quotes.
    fn word(&mut self) -> Result<Word, FilterError> {
        let (place, mut text, mut bare) = (self.place, String::new(), None);
        while let Some(symbol) = self.peek().filter(|symbol| !symbol.is_whitespace() && !matches!(symbol, '(' | ')')) {
            self.place += 1;
            if symbol != '"' {
                text.push(symbol);
                continue;
            }
            bare.get_or_insert(text.chars().count());
            let quote = self.place - 1;
            loop {
                let Some(quoted) = self.peek() else { return Err(error("the quote is not closed", quote, 1)) };
                self.place += 1;
                match quoted {
                    '"' => break,
                    '\\' => {
                        let Some(escaped) = self.peek() else { return Err(error("the quote is not closed", quote, 1)) };
                        self.place += 1;
                        text.push(escaped);
                    }
                    other => text.push(other),
                }
            }
        }
        Ok(Word { place, text, bare })
    }

    fn peek(&self) -> Option<char> {
        self.symbols.get(self.place).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.place += 1;
        }
    }

    fn leading_space(&self) -> usize {
        self.symbols.iter().take_while(|symbol| symbol.is_whitespace()).count()
    }

    fn at_word(&self, word: &str) -> bool {
        let end = self.place + word.len();
        let ends = self.symbols.get(end).is_none_or(|symbol| symbol.is_whitespace() || matches!(symbol, '(' | ')'));
        ends && self.symbols.get(self.place..end).is_some_and(|found| found.iter().copied().eq(word.chars()))
    }

    fn take_word(&mut self, word: &str) -> bool {
        self.skip_space();
        let found = self.at_word(word);
        if found {
            self.place += word.len();
        }
        found
    }
}

fn term(word: Word) -> Result<Condition, FilterError> {
    let length = word.text.chars().count().max(1);
    let bare: String = word.text.chars().take(word.bare.unwrap_or(usize::MAX)).collect();
    let Some((key, _)) = bare.split_once(':') else {
        return Ok(Condition::Term(Term::Text(word.text.to_lowercase())));
    };
    let value = &word.text[key.len() + 1..];
    let at = word.place + key.chars().count() + 1;
    let wide = value.chars().count().max(1);
    if value.is_empty() && word.bare.is_none() {
        return Err(error(format!("nothing follows `{key}:`"), word.place, length).with_hint("write a value, such as `*`"));
    }
    let glob = || Glob::new(value);
    let term = match key {
        "method" => Term::Method(glob()),
        "tool" => Term::Tool(glob()),
        "prompt" => Term::Prompt(glob()),
        "uri" => Term::Uri(glob()),
        "target" => Term::Target(glob()),
        "server" => Term::Server(glob()),
        "transport" => Term::Transport(glob()),
        "client" => Term::Client(glob()),
        "test" => Term::Test(glob()),
        "id" => Term::Id(glob()),
        "text" => Term::Text(value.to_lowercase()),
        "status" => status(value, at, wide)?,
        "kind" => Term::Kind(chosen(value, &KINDS, "kind", at, wide)?),
        "dir" => Term::Direction(chosen(value, &DIRECTIONS, "direction", at, wide)?),
        "session" => Term::Session(whole(value, at, wide)?),
        "call" => Term::Call(whole(value, at, wide)?),
        "code" => Term::Code(number(value, at, wide)?),
        "http" => Term::Http(number(value, at, wide)?),
        "duration" => Term::Duration(duration(value, "durations", at, wide)?),
        "at" => Term::At(duration(value, "times", at, wide)?),
        _ => {
            let names = KEYS.into_iter().chain(["text"]);
            let hint = near(key, names).map_or_else(
                || format!("for a text with a colon, write text:\"{}\"", word.text),
                |near| format!("did you mean `{near}:`?"),
            );
            return Err(error(format!("unknown key `{key}`"), word.place, key.chars().count().max(1)).with_hint(hint));
        }
    };
    Ok(Condition::Term(term))
}

const KINDS: [(&str, CallKind); 4] = [
    ("request", CallKind::Request),
    ("notification", CallKind::Notification),
    ("http", CallKind::Http),
    ("unmatched", CallKind::Unmatched),
];

const DIRECTIONS: [(&str, Direction); 4] = [
    ("in", Direction::FromServer),
    ("out", Direction::ToServer),
    ("from-server", Direction::FromServer),
    ("to-server", Direction::ToServer),
];

fn status(value: &str, at: usize, length: usize) -> Result<Term, FilterError> {
    if value == "error" {
        return Ok(Term::AnyError);
    }
    let names: Vec<_> = CallStatus::ALL.into_iter().map(|status| (status.name(), status)).collect();
    chosen(value, &names, "status", at, length).map(Term::Status).map_err(|mut wrong| {
        let all = std::iter::once("error").chain(names.iter().map(|(name, _)| *name));
        wrong.hint = near(value, all).map(|near| format!("did you mean `{near}`?"));
        if value.parse::<i64>().is_ok() {
            wrong.hint = Some("write http: for an HTTP status, code: for a JSON-RPC error".into());
        } else if wrong.hint.is_none() {
            let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
            wrong.hint = Some(format!("one of error, {}", names.join(", ")));
        }
        wrong
    })
}

fn chosen<T: Copy>(value: &str, choices: &[(&str, T)], what: &str, at: usize, length: usize) -> Result<T, FilterError> {
    if let Some((_, chosen)) = choices.iter().find(|(name, _)| *name == value) {
        return Ok(*chosen);
    }
    let hint = near(value, choices.iter().map(|(name, _)| *name)).map(|near| format!("did you mean `{near}`?"));
    Err(FilterError { hint, ..error(format!("unknown {what} `{value}`"), at, length) })
}

fn whole(value: &str, at: usize, length: usize) -> Result<u64, FilterError> {
    value.parse().map_err(|_| error(format!("`{value}` is not a number"), at, length))
}

fn operator(value: &str) -> (Option<Operator>, &str) {
    let operators =
        [(">=", Operator::AtLeast), ("<=", Operator::AtMost), (">", Operator::Above), ("<", Operator::Below), ("=", Operator::Equal)];
    let found = operators.into_iter().find_map(|(sign, operator)| Some((operator, value.strip_prefix(sign)?)));
    found.map_or((None, value), |(operator, rest)| (Some(operator), rest))
}

fn number(value: &str, at: usize, length: usize) -> Result<Comparison<i64>, FilterError> {
    let (operator, digits) = operator(value);
    let value = digits.parse().map_err(|_| error(format!("`{digits}` is not a number"), at, length))?;
    Ok(Comparison { operator: operator.unwrap_or(Operator::Equal), value })
}

fn duration(value: &str, what: &str, at: usize, length: usize) -> Result<Comparison<Duration>, FilterError> {
    let (operator, rest) = operator(value);
    let wrong = |message: String, hint: &str| error(message, at, length).with_hint(hint);
    let Some(operator) = operator.filter(|operator| *operator != Operator::Equal) else {
        return Err(wrong(format!("`{value}` does not say which {what}"), "begin with `>`, `>=`, `<` or `<=`"));
    };
    let digits = rest.trim_end_matches(|symbol: char| symbol.is_ascii_alphabetic() || symbol == 'µ');
    let unit = match &rest[digits.len()..] {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        _ => return Err(wrong(format!("`{rest}` has no unit"), "write a unit: us, ms, s or m, as in `>500ms`")),
    };
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds = Some(digits).filter(|_| is_plain).and_then(|digits| digits.parse::<f64>().ok());
    let value = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds * unit).ok());
    value.map(|value| Comparison { operator, value }).ok_or_else(|| wrong(format!("`{rest}` is not a duration"), "as in `>500ms`"))
}

fn near<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = names.map(|name| (strsim::damerau_levenshtein(word, name), name));
    scored.filter(|(distance, name)| *distance <= (name.len() / 3).max(1)).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

fn error(message: impl Into<String>, column: usize, length: usize) -> FilterError {
    FilterError { message: message.into(), column, length, hint: None }
}

impl FilterError {
    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
