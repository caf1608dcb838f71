//! Compiles an expectation from the tree of a suite, collecting all mistakes. Knows no responses.

use super::matcher::{Matcher, Order, Others, Test, TypeName};
use super::text::{Pattern, TextPattern};
use crate::document::{Entry, Kind, Node};
use crate::source::{Source, Span};
use crate::template;
use mcproof_analysis::json_schema::{Schema, misspelled_format, misspelled_keyword};
use mcproof_analysis::{did_you_mean, listed};
use mcproof_record::Diagnostic;
use serde_json::Value;
use std::sync::Arc;

/// What a matcher is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A payload, which may have a text.
    Payload,
    /// A value as it was on the wire.
    Wire,
}

/// One `$`-key: its name, what it means, and how it is read.
pub struct MatcherKey {
    pub name: &'static str,
    pub doc: &'static str,
    read: fn(&mut Compiler<'_>, &Node) -> Option<Test>,
}

/// All `$`-keys. Their names, their documentation and their readers are declared only here.
pub const MATCHER_KEYS: &[MatcherKey] = &[
    MatcherKey { name: "$regex", doc: "a string that matches the pattern", read: |compiler, node| compiler.regex(node) },
    MatcherKey { name: "$gt", doc: "a number (or a string) above this one", read: |compiler, node| compiler.order(node, Order::Above) },
    MatcherKey {
        name: "$gte",
        doc: "a number (or a string) of at least this one",
        read: |compiler, node| compiler.order(node, Order::AtLeast),
    },
    MatcherKey { name: "$lt", doc: "a number (or a string) below this one", read: |compiler, node| compiler.order(node, Order::Below) },
    MatcherKey {
        name: "$lte",
        doc: "a number (or a string) of at most this one",
        read: |compiler, node| compiler.order(node, Order::AtMost),
    },
    MatcherKey {
        name: "$len",
        doc: "the length of a string (in characters), an array or an object: a number or a matcher",
        read: |compiler, node| compiler.length(node),
    },
    MatcherKey {
        name: "$type",
        doc: "one of string, number, integer, boolean, array, object, null, or a list of them",
        read: |compiler, node| compiler.type_name(node),
    },
    MatcherKey {
        name: "$any",
        doc: "true: any value, as long as it is there",
        read: |compiler, node| compiler.flag(node, "$any", Test::Any),
    },
    MatcherKey {
        name: "$all",
        doc: "a matcher for every element of an array or every value of an object, of which there has to be one at least",
        read: |compiler, node| compiler.nested(node, Test::All),
    },
    MatcherKey {
        name: "$contains",
        doc: "a part of a string, an element of an array, a key of an object, or (where it is an object itself) a value of an object",
        read: |compiler, node| compiler.contains(node),
    },
    MatcherKey {
        name: "$contains_all",
        doc: "a list of what `$contains` takes; all of them have to be there",
        read: |compiler, node| compiler.contains_all(node),
    },
    MatcherKey {
        name: "$json",
        doc: "a string that is JSON, and a matcher for the value in it",
        read: |compiler, node| compiler.nested(node, Test::Json),
    },
    MatcherKey {
        name: "$schema",
        doc: "a JSON Schema that the value has to satisfy, with each `format` that it names",
        read: |compiler, node| compiler.schema(node),
    },
    MatcherKey { name: "$text", doc: "the text of the whole response: exact, or a /pattern/", read: |compiler, node| compiler.text(node) },
    MatcherKey {
        name: "$not",
        doc: "a matcher that must not match, of a value with which it can be compared: a text for `$regex`, `$json`, `$uuid` and `$datetime`, a value of the same type for `$gt`, `$close_to` and plain values, what has parts for `$len` and `$contains`; `$not: null` is for any value",
        read: |compiler, node| compiler.inner(node, Test::Not),
    },
    MatcherKey {
        name: "$one_of",
        doc: "a list of matchers, of which at least one has to match",
        read: |compiler, node| compiler.one_of(node),
    },
    MatcherKey { name: "$close_to", doc: "a number: {value, within} or [value, within]", read: |compiler, node| compiler.close_to(node) },
    MatcherKey { name: "$uuid", doc: "true: a UUID", read: |compiler, node| compiler.flag(node, "$uuid", Test::Uuid) },
    MatcherKey {
        name: "$datetime",
        doc: "true: a date and time by RFC 3339",
        read: |compiler, node| compiler.flag(node, "$datetime", Test::Datetime),
    },
    MatcherKey {
        name: "$exact",
        doc: "a matcher whose objects may have no other keys, at any depth",
        read: |compiler, node| compiler.exact(node),
    },
    MatcherKey {
        name: "$absent",
        doc: "true: the key must not be there",
        read: |compiler, node| compiler.flag(node, "$absent", Test::Absent),
    },
];

impl Matcher {
    /// Reads an expectation; `None` if it has a mistake, which is then among the diagnostics.
    pub fn compile(node: &Node, subject: Subject, source: &Source, diagnostics: &mut Vec<Diagnostic>) -> Option<Self> {
        Compiler { source, diagnostics, others: Others::Allowed, text_allowed: subject == Subject::Payload }.compile(node)
    }
}

struct Compiler<'a> {
    source: &'a Source,
    diagnostics: &'a mut Vec<Diagnostic>,
    others: Others,
    /// Only the root of a payload has a text.
    text_allowed: bool,
}

impl Compiler<'_> {
    fn compile(&mut self, node: &Node) -> Option<Matcher> {
        let test = match &node.kind {
            Kind::Broken => return None,
            Kind::Seq(items) => {
                let outer = std::mem::replace(&mut self.text_allowed, false);
                let elements = self.all(items);
                self.text_allowed = outer;
                Test::Elements(elements?)
            }
            Kind::Map(entries) => return self.map(entries, node),
            scalar => Test::Equals(scalar.to_value()),
        };
        Some(self.matcher(test, node))
    }

    fn matcher(&self, test: Test, node: &Node) -> Matcher {
        Matcher { test, place: self.source.place(node.span), written: node.to_value() }
    }

    /// Compiles all of them, so that all mistakes are found.
    fn all(&mut self, nodes: &[Node]) -> Option<Vec<Matcher>> {
        let compiled: Vec<Option<Matcher>> = nodes.iter().map(|node| self.compile(node)).collect();
        compiled.into_iter().collect()
    }

    fn map(&mut self, entries: &[Entry], node: &Node) -> Option<Matcher> {
        let mut complete = true;
        let mut members = Vec::new();
        let mut tests = Vec::new();
        for Entry { key, value } in entries {
            if let Some(literal) = key.text.strip_prefix('$').filter(|rest| !rest.starts_with('$')) {
                match MATCHER_KEYS.iter().find(|known| known.name == key.text) {
                    Some(known) => match (known.read)(self, value) {
                        Some(test) => {
                            let span = if value.span.line == key.span.line { pair(key.span, value.span) } else { key.span };
                            let written = value.to_value();
                            tests.push(Matcher { test, place: self.source.place(span), written });
                        }
                        None => complete = false,
                    },
                    None => {
                        self.unknown(&key.text, literal, key.span);
                        complete = false;
                    }
                }
                continue;
            }
            let name = if key.text.starts_with("$$") { &key.text[1..] } else { &key.text };
            let outer = std::mem::replace(&mut self.text_allowed, false);
            match self.compile(value) {
                Some(matcher) => members.push((name.to_owned(), matcher)),
                None => complete = false,
            }
            self.text_allowed = outer;
        }
        if let (Some((name, _)), Some(scalar)) = (members.first(), tests.iter().find(|matcher| matcher.test.is_for_scalars())) {
            let message = format!("a value that has a key `{name}` is an object, which this matcher never matches");
            let hint = format!("`${name}` is the matcher, if that was meant; else give each its own level");
            self.diagnostics.push(Diagnostic::error("never-matches", message).at(scalar.place.clone()).hint(hint));
            complete = false;
        }
        if !complete {
            return None;
        }
        if members.is_empty() && tests.len() == 1 {
            return tests.pop();
        }
        if !members.is_empty() || tests.is_empty() {
            let test = Test::Members { members, others: self.others };
            tests.insert(0, self.matcher(test, node));
        }
        if tests.len() == 1 { tests.pop() } else { Some(self.matcher(Test::Every(tests), node)) }
    }

    fn unknown(&mut self, key: &str, literal: &str, span: Span) {
        let names = || MATCHER_KEYS.iter().map(|known| known.name);
        let diagnostic = Diagnostic::error("unknown-matcher", format!("unknown matcher `{key}`")).at(self.source.place(span));
        self.diagnostics.push(match did_you_mean(key, names()) {
            Some(near) => diagnostic.hint(format!("did you mean `{near}`? A key that is really named so is written `$${literal}`")),
            None => diagnostic.hint(format!("matchers are {}; a key that is really named so is written `$${literal}`", listed(names()))),
        });
    }

    fn wrong(&mut self, expected: &str, node: &Node) {
        if node.kind != Kind::Broken {
            let message = format!("expected {expected}, found {}", node.kind.noun());
            self.diagnostics.push(Diagnostic::error("wrong-type", message).at(self.source.place(node.span)));
        }
    }

    /// A matcher of a part of the value.
    fn nested(&mut self, node: &Node, test: fn(Box<Matcher>) -> Test) -> Option<Test> {
        let outer = std::mem::replace(&mut self.text_allowed, false);
        let test = self.inner(node, test);
        self.text_allowed = outer;
        test
    }

    /// A matcher of the same value.
    fn inner(&mut self, node: &Node, test: fn(Box<Matcher>) -> Test) -> Option<Test> {
        self.compile(node).map(Box::new).map(test)
    }

    fn regex(&mut self, node: &Node) -> Option<Test> {
        let Kind::Text(text) = &node.kind else {
            self.wrong("a pattern such as \"^ORD-\" or /^ord-/i", node);
            return None;
        };
        if text.is_empty() {
            return self.cannot_fail("an empty pattern matches every text", "write what has to be in the text", node);
        }
        Pattern::compile(text, node, self.source, self.diagnostics).map(Test::Regex)
    }

    fn order(&mut self, node: &Node, order: Order) -> Option<Test> {
        match &node.kind {
            Kind::Number(_) | Kind::Text(_) => Some(Test::Order { order, bound: node.to_value() }),
            _ => {
                self.wrong("a number", node);
                None
            }
        }
    }

    fn length(&mut self, node: &Node) -> Option<Test> {
        match &node.kind {
            Kind::Number(_) | Kind::Map(_) => self.nested(node, Test::Length),
            Kind::Text(text) if template::is_template(text) => self.nested(node, Test::Length),
            _ => {
                self.wrong("a length such as 3 or { $gte: 1 }", node);
                None
            }
        }
    }

    fn type_name(&mut self, node: &Node) -> Option<Test> {
        let names: Vec<&Node> = match &node.kind {
            Kind::Seq(items) if !items.is_empty() => items.iter().collect(),
            _ => vec![node],
        };
        let types: Vec<Option<TypeName>> = names.into_iter().map(|name| self.one_type(name)).collect();
        types.into_iter().collect::<Option<_>>().map(Test::Type)
    }

    fn one_type(&mut self, node: &Node) -> Option<TypeName> {
        let written = match &node.kind {
            Kind::Text(text) => text.as_str(),
            // A plain `null` is the type as well.
            Kind::Null => "null",
            _ => {
                self.wrong("a type such as string or a list of types", node);
                return None;
            }
        };
        let found = TypeName::ALL.iter().find(|(name, _)| *name == written).map(|(_, found)| *found);
        if found.is_none() {
            let names = || TypeName::ALL.iter().map(|(name, _)| *name);
            let diagnostic = Diagnostic::error("unknown-type", format!("`{written}` is not a JSON type")).at(self.source.place(node.span));
            self.diagnostics.push(match did_you_mean(written, names()) {
                Some(near) => diagnostic.hint(format!("did you mean `{near}`?")),
                None => diagnostic.hint(format!("types are {}", listed(names()))),
            });
        }
        found
    }

    fn flag(&mut self, node: &Node, name: &str, test: Test) -> Option<Test> {
        match (&node.kind, &test) {
            (Kind::Bool(true), _) => Some(test),
            (Kind::Bool(false), Test::Absent) => Some(Test::Any),
            (Kind::Broken, _) => None,
            _ => {
                let instead = if matches!(test, Test::Any) { "`$absent: true`".to_owned() } else { format!("`$not: {{ {name}: true }}`") };
                let diagnostic = Diagnostic::error("wrong-type", format!("`{name}` takes only `true`")).at(self.source.place(node.span));
                self.diagnostics.push(diagnostic.hint(format!("for the opposite write {instead}")));
                None
            }
        }
    }

    fn schema(&mut self, node: &Node) -> Option<Test> {
        if !matches!(node.kind, Kind::Map(_) | Kind::Bool(_)) {
            self.wrong("a JSON Schema", node);
            if let (Kind::Text(_), Some(last)) = (&node.kind, self.diagnostics.pop()) {
                self.diagnostics.push(last.hint("for a key that is really named `$schema` write `$$schema`"));
            }
            return None;
        }
        let schema = node.to_value();
        if let Some((name, near)) = misspelled_keyword(&schema) {
            let diagnostic = Diagnostic::error("unknown-keyword", format!("`{name}` is not a keyword of JSON Schema"));
            self.diagnostics.push(diagnostic.at(self.source.place(node.span)).hint(format!("did you mean `{near}`?")));
            return None;
        }
        if let Some((name, near)) = misspelled_format(&schema).filter(|(name, _)| !template::is_template(name)) {
            let diagnostic = Diagnostic::error("unknown-format", format!("`{name}` is not a format of JSON Schema"));
            self.diagnostics.push(diagnostic.at(self.source.place(node.span)).hint(format!("did you mean `{near}`?")));
            return None;
        }
        if has_template(&schema) {
            return Some(Test::Schema { schema, compiled: None });
        }
        match Schema::with_formats(&schema) {
            Ok(compiled) => Some(Test::Schema { schema, compiled: Some(Arc::new(compiled)) }),
            Err(unusable) => {
                let diagnostic = Diagnostic::error("bad-schema", unusable.to_string());
                self.diagnostics.push(diagnostic.at(self.source.place(node.span)));
                None
            }
        }
    }

    fn text(&mut self, node: &Node) -> Option<Test> {
        if !self.text_allowed {
            let diagnostic =
                Diagnostic::error("misplaced-matcher", "`$text` applies to the whole response").at(self.source.place(node.span));
            self.diagnostics
                .push(diagnostic.hint("write it directly under `expect:`; for a string inside of it use `$regex` or `$contains`"));
            return None;
        }
        TextPattern::compile(node, self.source, self.diagnostics).map(Test::Text)
    }

    fn cannot_fail(&mut self, why: &str, hint: &str, node: &Node) -> Option<Test> {
        self.diagnostics.push(Diagnostic::error("cannot-fail", why).at(self.source.place(node.span)).hint(hint));
        None
    }

    fn contains(&mut self, node: &Node) -> Option<Test> {
        match &node.kind {
            Kind::Text(part) if part.is_empty() => {
                let hint = "write what has to be in it; an empty element of a list is `{ $len: 0 }`";
                self.cannot_fail("every text contains the empty text", hint, node)
            }
            _ => self.nested(node, Test::Contains),
        }
    }

    fn contains_all(&mut self, node: &Node) -> Option<Test> {
        let Kind::Seq(items) = &node.kind else {
            self.wrong("a list of values or matchers", node);
            return None;
        };
        if items.is_empty() {
            return self.cannot_fail("nothing is looked for", "write what has to be in it", node);
        }
        // All mistakes are found.
        let empty: Vec<&Node> = items.iter().filter(|item| matches!(&item.kind, Kind::Text(part) if part.is_empty())).collect();
        empty.iter().for_each(|item| drop(self.contains(item)));
        let outer = std::mem::replace(&mut self.text_allowed, false);
        let parts = self.all(items).map(Test::ContainsAll);
        self.text_allowed = outer;
        parts.filter(|_| empty.is_empty())
    }

    fn one_of(&mut self, node: &Node) -> Option<Test> {
        match &node.kind {
            Kind::Seq(items) if !items.is_empty() => self.all(items).map(Test::OneOf),
            _ => {
                self.wrong("a list of values or matchers", node);
                None
            }
        }
    }

    fn close_to(&mut self, node: &Node) -> Option<Test> {
        let parts = match &node.kind {
            Kind::Seq(items) => (items.len() == 2).then(|| (items[0].to_value(), items[1].to_value())),
            Kind::Map(entries) if entries.len() == 2 => {
                node.get("value").zip(node.get("within")).map(|(value, within)| (value.to_value(), within.to_value()))
            }
            _ => None,
        };
        let numbers = parts.and_then(|(value, within)| value.as_number().cloned().zip(within.as_f64()));
        if numbers.is_none() {
            self.wrong("{ value: 99.99, within: 0.01 } or [99.99, 0.01]", node);
        }
        if numbers.as_ref().is_some_and(|(_, within)| *within < 0.0) {
            let diagnostic = Diagnostic::error("bad-distance", "`within` is how far a number may be away, and cannot be negative");
            self.diagnostics.push(diagnostic.at(self.source.place(node.span)));
            return None;
        }
        numbers.map(|(value, within)| Test::CloseTo { value, within })
    }

    fn exact(&mut self, node: &Node) -> Option<Test> {
        let outer = std::mem::replace(&mut self.others, Others::Refused);
        let compiled = self.compile(node);
        self.others = outer;
        compiled.map(|matcher| Test::Every(vec![matcher]))
    }
}

fn pair(key: Span, value: Span) -> Span {
    Span { length: (value.column + value.length).saturating_sub(key.column).max(key.length), ..key }
}

fn has_template(value: &Value) -> bool {
    match value {
        Value::String(text) => template::is_template(text),
        Value::Array(items) => items.iter().any(has_template),
        Value::Object(members) => members.values().any(has_template),
        _ => false,
    }
}
