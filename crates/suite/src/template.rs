//! `${name}` in the strings of a suite: found at load time, filled at load time where the value is known, and at run time where
//! only a run knows it. Reads nothing from outside; what it may use is passed in.

use super::TMP;
use super::bounds::{MOST_MISTAKES, too_large};
use super::document::{Entry, Kind, Node};
use super::restriction::Restriction;
use super::source::Source;
use mcproof_analysis::{did_you_mean, listed};
use mcproof_record::Diagnostic;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A `${name}` that a run cannot fill.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`${{{name}}}` has no value")]
pub struct MissingVariable {
    /// As it is written, with its path.
    pub name: String,
}

/// Fills `${name}` in all strings of a value; `$${` becomes `${`. A string that is exactly one `${name}` takes the value with
/// its type, elsewhere a string is inserted as it is and anything else as JSON. Keys are left alone.
///
/// # Errors
/// Names the first variable that `scope` does not hold.
pub fn interpolate(value: &Value, scope: &Map<String, Value>) -> Result<Value, MissingVariable> {
    match value {
        Value::String(text) => interpolate_string(text, scope),
        Value::Array(items) => items.iter().map(|item| interpolate(item, scope)).collect::<Result<_, _>>().map(Value::Array),
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| Ok((key.clone(), interpolate(value, scope)?)));
            members.collect::<Result<_, _>>().map(Value::Object)
        }
        other => Ok(other.clone()),
    }
}

/// Like [`interpolate`], for what has to stay text: a name, a URL, a word of a command.
///
/// # Errors
/// Names the first variable that `scope` does not hold.
pub fn interpolate_text(text: &str, scope: &Map<String, Value>) -> Result<String, MissingVariable> {
    interpolate_rendered(text, scope, render)
}

/// Like [`interpolate_text`], with another way to write the values.
pub(crate) fn interpolate_rendered(
    text: &str,
    scope: &Map<String, Value>,
    render: impl Fn(&Value) -> String,
) -> Result<String, MissingVariable> {
    let mut filled = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Dollar => filled.push_str("${"),
            Piece::Reference(reference) => filled.push_str(&render(reference.look_up(scope).ok_or_else(|| reference.missing())?)),
            Piece::Malformed(part) => filled.push_str(part),
        }
    }
    Ok(filled)
}

/// Whether a run has to look at this text at all.
pub(crate) fn is_template(text: &str) -> bool {
    text.contains("${")
}

/// Whether a name can stand in `${…}` and in `save:`.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && text.chars().all(|character| character.is_alphanumeric() || matches!(character, '_' | '-'))
}

/// What a text may use while a suite is loaded.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) known: &'a Map<String, Value>,
    pub(crate) environment: &'a BTreeMap<String, String>,
    /// Names that only a run can fill; they win over known ones.
    pub(crate) open: &'a [String],
    /// Names that a later step saves, with the line that says so.
    pub(crate) later: &'a [(String, u32)],
    pub(crate) restriction: Option<&'a Restriction>,
}

/// What becomes of the strings that [`resolve`] returns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// They are final text.
    Final,
    /// They are templates that a run interpolates, so that `${` from a value is escaped.
    Template,
}

/// Fills what is known in all strings below `node`, and reports what nobody can ever fill.
pub(crate) fn resolve(node: &Node, outcome: Outcome, scope: Scope<'_>, source: &Source, diagnostics: &mut Vec<Diagnostic>) -> Node {
    if diagnostics.len() >= MOST_MISTAKES {
        return Node { kind: Kind::Broken, span: node.span };
    }
    if !source.take(NODE + if let Kind::Text(text) = &node.kind { text.len() } else { 0 }) {
        return full(node, source, diagnostics);
    }
    let mut walk = |child: &Node| resolve(child, outcome, scope, source, diagnostics);
    let kind = match &node.kind {
        Kind::Seq(items) => Kind::Seq(items.iter().map(walk).collect()),
        Kind::Map(entries) => Kind::Map(entries.iter().map(|entry| Entry { key: entry.key.clone(), value: walk(&entry.value) }).collect()),
        Kind::Text(text) if is_template(text) => return resolve_text(text, node, outcome, scope, source, diagnostics),
        other => other.clone(),
    };
    Node { kind, span: node.span }
}

fn resolve_text(text: &str, node: &Node, outcome: Outcome, scope: Scope<'_>, source: &Source, diagnostics: &mut Vec<Diagnostic>) -> Node {
    let whole = pieces(text).nth(1).is_none();
    let mut filled = String::new();
    let mut broken = false;
    for piece in pieces(text) {
        if diagnostics.len() >= MOST_MISTAKES {
            break;
        }
        let problem = match piece {
            Piece::Text(text) => {
                filled.push_str(text);
                None
            }
            Piece::Dollar => {
                filled.push_str(if outcome == Outcome::Template { "$${" } else { "${" });
                None
            }
            Piece::Malformed(part) => Some((part, Box::new(malformed(part)))),
            Piece::Reference(reference) => match scope.find(&reference) {
                Ok(Found::Open) => {
                    filled.push_str(reference.written);
                    None
                }
                Ok(Found::Known(value)) if !source.take(weight(value.get())) => return full(node, source, diagnostics),
                Ok(Found::Known(value)) if whole => {
                    let value = value.take();
                    let value = if outcome == Outcome::Template { escape(value) } else { value };
                    return Node::from_value(&value, node.span);
                }
                Ok(Found::Known(value)) => {
                    let value = render(value.get());
                    filled.push_str(&if outcome == Outcome::Template { value.replace("${", "$${") } else { value });
                    None
                }
                Err(problem) => Some((reference.written, problem)),
            },
        };
        if let Some((part, problem)) = problem {
            broken = true;
            diagnostics.push(problem.at(source.place(source.part(node.span, part))));
        }
    }
    Node { kind: if broken { Kind::Broken } else { Kind::Text(filled) }, span: node.span }
}

enum Found<'a> {
    Known(Owned<'a>),
    Open,
}

/// A value that is only copied where it has to be: it may be large, and what refuses it must not copy it.
enum Owned<'a> {
    Variable(&'a Value),
    Text(Value),
}

impl Owned<'_> {
    fn get(&self) -> &Value {
        match self {
            Self::Variable(value) => value,
            Self::Text(value) => value,
        }
    }

    fn take(self) -> Value {
        match self {
            Self::Variable(value) => value.clone(),
            Self::Text(value) => value,
        }
    }
}

/// What a value takes besides its text, by estimate.
const NODE: usize = 160;

/// What a value takes once it is filled in, by estimate.
pub(crate) fn weight(value: &Value) -> usize {
    NODE + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        // As a node of the tree, and as a value.
        Value::String(text) => 2 * text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => members.iter().map(|(key, value)| NODE + key.len() + weight(value)).sum(),
    }
}

fn full(node: &Node, source: &Source, diagnostics: &mut Vec<Diagnostic>) -> Node {
    // Told once: nothing is filled in from here on.
    let told = too_large();
    if !diagnostics.iter().any(|known| known.code == told.code) {
        diagnostics.push(told.at(source.place(node.span)));
    }
    Node { kind: Kind::Broken, span: node.span }
}

impl<'a> Scope<'a> {
    fn find(&self, reference: &Reference<'_>) -> Result<Found<'a>, Box<Diagnostic>> {
        if reference.name == "env" {
            return self.find_in_environment(reference).map(|value| Found::Known(Owned::Text(value)));
        }
        if self.open.iter().any(|open| open == reference.name) {
            return Ok(Found::Open);
        }
        if reference.default.is_some() {
            let message = format!("`{}` has a default, which only `${{env.NAME:-default}}` may have", reference.written);
            return Err(Diagnostic::error("bad-variable", message).into());
        }
        if let Some(value) = reference.look_up(self.known) {
            return Ok(Found::Known(Owned::Variable(value)));
        }
        if let Some(value) = self.known.get(reference.name) {
            let message = format!("`{}` leads nowhere in `{}`", reference.written, reference.name);
            // Only the shape of the value: it may come from the environment and be secret.
            let shape = match value {
                Value::Object(members) => format!("has the keys {}", listed(members.keys().map(String::as_str))),
                Value::Array(items) => format!("is a list of {}", items.len()),
                _ => "is a single value".to_owned(),
            };
            return Err(Diagnostic::error("unknown-variable", message).hint(format!("`{}` {shape}", reference.name)).into());
        }
        if let Some((_, line)) = self.later.iter().find(|(name, _)| name == reference.name) {
            let message = format!("`{}` is used before it is saved", reference.written);
            return Err(Diagnostic::error("variable-not-saved-yet", message).hint(format!("line {line} saves it")).into());
        }
        let names: Vec<&str> = self.known.keys().chain(self.open).map(String::as_str).filter(|name| *name != TMP).collect();
        let diagnostic = Diagnostic::error("unknown-variable", format!("undefined variable `{}`", reference.written));
        Err(Box::new(match did_you_mean(reference.name, names.iter().copied()) {
            Some(near) => diagnostic.hint(format!("did you mean `${{{near}}}`?")),
            None if names.is_empty() => diagnostic.hint(format!("set it under `vars:` or with `--var {}=…`", reference.name)),
            None => diagnostic.hint(format!("set it under `vars:`; defined here: {}", listed(names))),
        }))
    }

    fn find_in_environment(&self, reference: &Reference<'_>) -> Result<Value, Box<Diagnostic>> {
        let [Access::Key(name)] = reference.path.as_slice() else {
            let message = format!("`{}` does not name an environment variable", reference.written);
            return Err(Diagnostic::error("bad-variable", message).hint("write `${env.NAME}`").into());
        };
        if let Some(restriction) = self.restriction {
            restriction.variable(name).map_err(Box::new)?;
        }
        // As in a shell, `:-` also replaces an empty value.
        match (self.environment.get(*name), reference.default) {
            (Some(value), None) => Ok(Value::String(value.clone())),
            (Some(value), Some(_)) if !value.is_empty() => Ok(Value::String(value.clone())),
            (_, Some(default)) => Ok(Value::String(default.to_owned())),
            (None, None) => {
                let diagnostic = Diagnostic::error("missing-environment-variable", format!("the environment variable `{name}` is not set"));
                Err(Box::new(match did_you_mean(name, self.environment.keys().map(String::as_str)) {
                    Some(near) => diagnostic.hint(format!("did you mean `{near}`? A default is written `${{env.{name}:-default}}`")),
                    None => diagnostic.hint(format!("set it, or give a default: `${{env.{name}:-default}}`")),
                }))
            }
        }
    }
}

fn malformed(part: &str) -> Diagnostic {
    let hint = "a variable is written `${name}`, `${name.key[0]}` or `${env.NAME:-default}`; a literal `${` is written `$${`";
    let message = if part.ends_with('}') { format!("`{part}` is not a valid variable") } else { "this `${` is not closed".to_owned() };
    Diagnostic::error("bad-variable", message).hint(hint)
}

fn render(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Makes a template that interpolates to just this value.
fn escape(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace("${", "$${")),
        Value::Array(items) => Value::Array(items.into_iter().map(escape).collect()),
        Value::Object(members) => Value::Object(members.into_iter().map(|(key, value)| (key, escape(value))).collect()),
        other => other,
    }
}

fn interpolate_string(text: &str, scope: &Map<String, Value>) -> Result<Value, MissingVariable> {
    let mut all = pieces(text);
    if let (Some(Piece::Reference(reference)), None) = (all.next(), all.next()) {
        return reference.look_up(scope).cloned().ok_or_else(|| reference.missing());
    }
    interpolate_text(text, scope).map(Value::String)
}

enum Piece<'a> {
    Text(&'a str),
    /// `$${`, which stands for `${`.
    Dollar,
    Reference(Reference<'a>),
    /// `${…` that is no reference.
    Malformed(&'a str),
}

struct Reference<'a> {
    written: &'a str,
    name: &'a str,
    path: Vec<Access<'a>>,
    default: Option<&'a str>,
}

enum Access<'a> {
    Key(&'a str),
    Index(usize),
}

impl Reference<'_> {
    fn look_up<'v>(&self, scope: &'v Map<String, Value>) -> Option<&'v Value> {
        self.path.iter().try_fold(scope.get(self.name)?, |value, access| match access {
            Access::Key(key) => value.get(key),
            Access::Index(index) => value.get(index),
        })
    }

    fn missing(&self) -> MissingVariable {
        MissingVariable { name: self.written.trim_start_matches("${").trim_end_matches('}').to_owned() }
    }
}

/// Splits a text at its variables, from left to right.
fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(after) = rest.strip_prefix("$${") {
            rest = after;
            return Some(Piece::Dollar);
        }
        if rest.starts_with("${") {
            let Some(end) = rest.find('}') else { return Some(Piece::Malformed(std::mem::take(&mut rest))) };
            let (written, after) = rest.split_at(end + 1);
            rest = after;
            return Some(read_reference(written).map_or(Piece::Malformed(written), Piece::Reference));
        }
        let end = rest
            .match_indices('$')
            .map(|(index, _)| index)
            .find(|index| rest[*index..].starts_with("${") || rest[*index..].starts_with("$${"));
        let (plain, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(Piece::Text(plain))
    })
}

fn read_reference(written: &str) -> Option<Reference<'_>> {
    let inner = written.strip_prefix("${")?.strip_suffix('}')?;
    let (path, default) = match inner.split_once(":-") {
        Some((path, default)) => (path, Some(default)),
        None => (inner, None),
    };
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (name, mut rest) = path.split_at(end);
    if !is_name(name) {
        return None;
    }
    let mut accesses = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (key, remainder) = after.split_at(end);
            if key.is_empty() || key.contains(char::is_whitespace) {
                return None;
            }
            accesses.push(Access::Key(key));
            rest = remainder;
        } else {
            let (index, remainder) = rest.strip_prefix('[')?.split_once(']')?;
            accesses.push(Access::Index(index.parse().ok()?));
            rest = remainder;
        }
    }
    Some(Reference { written, name, path: accesses, default })
}

/// Where the templates of a text stand, as byte ranges, so that a command is not split inside of them.
pub(crate) fn template_ranges(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut at = 0;
    let mut ranges = Vec::new();
    for piece in pieces(text) {
        let length = match &piece {
            Piece::Text(text) | Piece::Malformed(text) => text.len(),
            Piece::Dollar => "$${".len(),
            Piece::Reference(reference) => reference.written.len(),
        };
        if !matches!(piece, Piece::Text(_)) {
            ranges.push(at..at + length);
        }
        at += length;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Span;
    use serde_json::json;

    fn scope() -> Map<String, Value> {
        let scope =
            json!({"n": 2, "name": "Ann", "order": {"id": "ORD-1", "items": [{"sku": "a"}, {"sku": "b"}]}, "raw": "${n}", "list": [1, 2]});
        scope.as_object().cloned().unwrap()
    }

    #[test]
    fn a_run_fills_variables_with_their_type_or_as_text() {
        let check = |template: Value, expected: Value| assert_eq!(interpolate(&template, &scope()).unwrap(), expected, "{template}");
        check(json!("plain"), json!("plain"));
        check(json!("${n}"), json!(2));
        check(json!("${list}"), json!([1, 2]));
        check(json!("n=${n}"), json!("n=2"));
        check(json!("${n}${n}"), json!("22"));
        check(json!("Hi ${name}!"), json!("Hi Ann!"));
        check(json!("${order.id}"), json!("ORD-1"));
        check(json!("${order.items[1].sku}/${list}"), json!("b/[1,2]"));
        check(json!("$${n}"), json!("${n}"));
        check(json!("$$${n}"), json!("$${n}"));
        check(json!("cost: $5, ${n}$"), json!("cost: $5, 2$"));
        check(json!("${raw}"), json!("${n}"));
        check(json!("is ${raw}"), json!("is ${n}"));
        check(json!({"${n}": ["${n}", {"deep": "${name}"}]}), json!({"${n}": [2, {"deep": "Ann"}]}));
        check(json!(null), json!(null));
        let missing = |template: &str, name: &str| {
            assert_eq!(interpolate(&json!([template]), &scope()).unwrap_err(), MissingVariable { name: name.into() });
        };
        missing("${nope}", "nope");
        missing("a ${order.nope} b", "order.nope");
        missing("${list[7]}", "list[7]");
    }

    #[test]
    fn loading_fills_what_is_known_and_leaves_the_rest_to_the_run() {
        let known = scope();
        let environment = BTreeMap::from([("HOME".to_owned(), "/h".to_owned()), ("EMPTY".to_owned(), String::new())]);
        let open = ["port".to_owned()];
        let later = [("late".to_owned(), 7)];
        let scope = Scope { known: &known, environment: &environment, open: &open, later: &later, restriction: None };
        let check = |text: &str, outcome: Outcome, expected: Result<Value, &str>| {
            let source = Source::new("f", text);
            let span = Span { file: 0, line: 1, column: 1, length: 1 };
            let mut diagnostics = Vec::new();
            let node = resolve(&Node { kind: Kind::Text(text.into()), span }, outcome, scope, &source, &mut diagnostics);
            let found = match diagnostics.first() {
                Some(problem) => Err(format!(
                    "{}: {} ({})",
                    problem.place.as_ref().unwrap().column,
                    problem.message,
                    problem.hint.as_deref().unwrap_or("")
                )),
                None => Ok(node.to_value()),
            };
            assert_eq!(found, expected.map_err(str::to_owned), "{text}");
        };
        check("${n}", Outcome::Final, Ok(json!(2)));
        check("a${n}", Outcome::Final, Ok(json!("a2")));
        check("${port}", Outcome::Template, Ok(json!("${port}")));
        check("http://h:${port}/${name}", Outcome::Template, Ok(json!("http://h:${port}/Ann")));
        check("${raw}", Outcome::Final, Ok(json!("${n}")));
        check("${raw}", Outcome::Template, Ok(json!("$${n}")));
        check("x${raw}", Outcome::Template, Ok(json!("x$${n}")));
        check("$${n}", Outcome::Final, Ok(json!("${n}")));
        check("$${n}", Outcome::Template, Ok(json!("$${n}")));
        check("${env.HOME}/x", Outcome::Final, Ok(json!("/h/x")));
        check("${env.NOPE:-d:-e}", Outcome::Final, Ok(json!("d:-e")));
        check("${env.EMPTY:-d}", Outcome::Final, Ok(json!("d")));
        check("${env.EMPTY}", Outcome::Final, Ok(json!("")));
        check(
            "x ${env.HOMR}",
            Outcome::Final,
            Err("3: the environment variable `HOMR` is not set (did you mean `HOME`? A default is written `${env.HOMR:-default}`)"),
        );
        check(
            "${env.ZZZZ}",
            Outcome::Final,
            Err("1: the environment variable `ZZZZ` is not set (set it, or give a default: `${env.ZZZZ:-default}`)"),
        );
        check("é ${nam}", Outcome::Final, Err("3: undefined variable `${nam}` (did you mean `${name}`?)"));
        check("${order.nope}", Outcome::Final, Err("1: `${order.nope}` leads nowhere in `order` (`order` has the keys `id`, `items`)"));
        check("${late}", Outcome::Final, Err("1: `${late}` is used before it is saved (line 7 saves it)"));
        check(
            "${zzzzz}",
            Outcome::Final,
            Err("1: undefined variable `${zzzzz}` (set it under `vars:`; defined here: `n`, `name`, `order`, `raw`, `list`, `port`)"),
        );
        let how = "(a variable is written `${name}`, `${name.key[0]}` or `${env.NAME:-default}`; a literal `${` is written `$${`)";
        check("a ${n", Outcome::Final, Err(&format!("3: this `${{` is not closed {how}")));
        check("${a b}", Outcome::Final, Err(&format!("1: `${{a b}}` is not a valid variable {how}")));
        check("${}", Outcome::Final, Err(&format!("1: `${{}}` is not a valid variable {how}")));
        check("${env}", Outcome::Final, Err("1: `${env}` does not name an environment variable (write `${env.NAME}`)"));
        check("${n:-3}", Outcome::Final, Err("1: `${n:-3}` has a default, which only `${env.NAME:-default}` may have ()"));
    }
}
