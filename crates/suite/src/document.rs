//! YAML text to a tree whose every node knows its place. Knows what JSON can say, not what a suite means.

use super::bounds::{MOST_KEYS, MOST_LINES, MOST_MISTAKES, MOST_VALUES};
use super::scalar::read_plain;
use super::source::{Source, Span, to_u32};
use super::syntax::explain;
use crate::judge::is_long;
use mcproof_record::Diagnostic;
use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Number, Value};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Deeper nesting than any person writes; it bounds recursion everywhere behind this file.
const MAXIMUM_DEPTH: usize = 100;

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub kind: Kind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    Seq(Vec<Node>),
    Map(Vec<Entry>),
    /// Something whose mistake is already reported; nothing more should be said about it.
    Broken,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub key: Key,
    pub value: Node,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    pub text: String,
    pub span: Span,
}

impl Node {
    pub fn to_value(&self) -> Value {
        self.kind.to_value()
    }

    /// A node for a value that stands for what is written at `span`.
    pub fn from_value(value: &Value, span: Span) -> Self {
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(value) => Kind::Bool(*value),
            Value::Number(number) => Kind::Number(number.clone()),
            Value::String(text) => Kind::Text(text.clone()),
            Value::Array(items) => Kind::Seq(items.iter().map(|item| Self::from_value(item, span)).collect()),
            Value::Object(members) => Kind::Map(
                members
                    .iter()
                    .map(|(key, value)| Entry { key: Key { text: key.clone(), span }, value: Self::from_value(value, span) })
                    .collect(),
            ),
        };
        Self { kind, span }
    }

    /// The value of a key, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.kind {
            Kind::Map(entries) => entries.iter().find(|entry| entry.key.text == key).map(|entry| &entry.value),
            _ => None,
        }
    }
}

impl Kind {
    pub fn to_value(&self) -> Value {
        match self {
            Self::Null | Self::Broken => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::String(text.clone()),
            Self::Seq(items) => Value::Array(items.iter().map(Node::to_value).collect()),
            Self::Map(entries) => {
                Value::Object(entries.iter().map(|entry| (entry.key.text.clone(), entry.value.to_value())).collect::<Map<_, _>>())
            }
        }
    }

    /// As it is called in a message: `a list`, `a number`, …
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Null | Self::Broken => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::Seq(items) if items.is_empty() => "an empty list",
            Self::Seq(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

/// Reads the one YAML document of a file. `None` when there is no tree to go on with; then there is at least one diagnostic.
pub fn parse(source: &Source, file: u16) -> (Option<Node>, Vec<Diagnostic>) {
    let mut builder =
        Builder { source, file, open: Vec::new(), root: None, anchors: BTreeMap::new(), documents: 0, diagnostics: Vec::new() };
    if usize::try_from(source.count_lines(file)).is_ok_and(|lines| lines > MOST_LINES) {
        let diagnostic = Diagnostic::error("too-many-lines", format!("more than {MOST_LINES} lines"));
        let last = Span { file, line: to_u32(MOST_LINES) + 1, column: 1, length: 1 };
        builder.diagnostics.push(diagnostic.at(source.place(last)));
        return (None, builder.diagnostics);
    }
    for event in Parser::new_from_str(source.text(file)) {
        let outcome = match event {
            Ok((event, span)) => builder.accept(event, span),
            Err(error) => {
                let position = Span { file, line: to_u32(error.marker().line()), column: to_u32(error.marker().col()) + 1, length: 1 };
                let bracket = builder.open.iter().rev().find(|frame| frame.flow).map(|frame| frame.start);
                builder.diagnostics.push(explain(source, position, error.info(), bracket));
                Err(Stop)
            }
        };
        if outcome.is_err() {
            return (None, builder.diagnostics);
        }
    }
    if builder.root.is_none() && builder.diagnostics.is_empty() {
        let empty = Diagnostic::error("empty-file", "the file is empty").at(source.place(Span { file, line: 1, column: 1, length: 1 }));
        builder.diagnostics.push(empty.hint("a suite starts with `server:` and `tests:`"));
    }
    (builder.root, builder.diagnostics)
}

/// A mistake after which no tree can be trusted; its diagnostic is already recorded.
struct Stop;

struct Builder<'a> {
    source: &'a Source,
    file: u16,
    open: Vec<Frame>,
    root: Option<Node>,
    /// By the parser's number: the tree, the count of its nodes, its depth.
    anchors: BTreeMap<usize, (Node, usize, usize)>,
    documents: usize,
    diagnostics: Vec<Diagnostic>,
}

/// A list or map that is not yet closed.
struct Frame {
    start: Span,
    flow: bool,
    anchor: usize,
    content: Content,
}

enum Content {
    Seq(Vec<Node>),
    /// `lines` tells where a key is set already.
    Map {
        entries: Vec<Entry>,
        lines: HashMap<String, u32>,
        merged: Vec<Node>,
        key: Option<PendingKey>,
    },
}

struct PendingKey {
    key: Key,
    merges: bool,
}

impl Builder<'_> {
    fn accept(&mut self, event: Event<'_>, span: saphyr_parser::Span) -> Result<(), Stop> {
        let position = Span { file: self.file, line: to_u32(span.start.line()), column: to_u32(span.start.col()) + 1, length: 1 };
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    let place = self.source.place(Span { length: 3, ..position });
                    let diagnostic = Diagnostic::error("several-documents", "a second YAML document starts here").at(place);
                    return self.stop(diagnostic.hint("a suite is one document: move the rest to a file of its own"));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let span = self.extent(position, &span);
                let kind = self.scalar(&text, style, tag.as_deref(), span);
                if let Some(Frame { content: Content::Map { key: key @ None, .. }, .. }) = self.open.last_mut() {
                    let merges = text == "<<" && style == ScalarStyle::Plain;
                    *key = Some(PendingKey { key: Key { text: text.into_owned(), span }, merges });
                    if anchor > 0 {
                        self.anchors.insert(anchor, (Node { kind, span }, 1, 1));
                    }
                    return Ok(());
                }
                let nothing_written = text.is_empty() && style == ScalarStyle::Plain;
                let span = if nothing_written { self.key_before().unwrap_or(span) } else { span };
                self.place_node(Node { kind, span }, anchor)
            }
            Event::Alias(id) => {
                let span = self.extent(position, &span);
                let Some((count, depth)) = self.anchors.get(&id).map(|(_, count, depth)| (*count, *depth)) else {
                    return self.stop(Diagnostic::error("recursive-anchor", "this anchor holds itself").at(self.source.place(span)));
                };
                self.count(count, span)?;
                self.check_depth(depth, span)?;
                let node = self.anchors[&id].0.clone();
                if let Some(Frame { content: Content::Map { key: key @ None, .. }, .. }) = self.open.last_mut()
                    && let Kind::Text(text) = &node.kind
                {
                    *key = Some(PendingKey { key: Key { text: text.clone(), span }, merges: false });
                    return Ok(());
                }
                self.place_node(node, 0)
            }
            Event::SequenceStart(anchor, tag) => {
                self.open_frame(position, !span.is_empty(), anchor, tag.as_deref(), Content::Seq(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                let content = Content::Map { entries: Vec::new(), lines: HashMap::new(), merged: Vec::new(), key: None };
                self.open_frame(position, !span.is_empty(), anchor, tag.as_deref(), content)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close_frame(&span),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn open_frame(&mut self, start: Span, flow: bool, anchor: usize, tag: Option<&Tag>, content: Content) -> Result<(), Stop> {
        self.check_tag(tag, start);
        self.check_depth(1, start)?;
        if let Some(Frame { content: Content::Map { key: None, .. }, .. }) = self.open.last() {
            let diagnostic = Diagnostic::error("key-not-text", "a key must be text").at(self.source.place(start));
            return self.stop(diagnostic.hint("put quotes around a text that starts with `{` or `[`, such as \"${name}\""));
        }
        self.open.push(Frame { start, flow, anchor, content });
        Ok(())
    }

    fn close_frame(&mut self, span: &saphyr_parser::Span) -> Result<(), Stop> {
        let frame = self.open.pop().expect("the parser closes what it opened");
        let flow_end = (frame.flow && to_u32(span.end.line()) == frame.start.line).then(|| to_u32(span.end.col()) + 1);
        let of_flow = match flow_end {
            Some(end) => Span { length: end.saturating_sub(frame.start.column), ..frame.start },
            None => self.source.rest_of_line(frame.start),
        };
        let node = match frame.content {
            Content::Seq(items) => Node { kind: Kind::Seq(items), span: if frame.flow { of_flow } else { frame.start } },
            Content::Map { mut entries, merged, .. } => {
                let span = if frame.flow { of_flow } else { entries.first().map_or(frame.start, first_pair) };
                let mut known: HashSet<String> = match merged.is_empty() {
                    true => HashSet::new(),
                    false => entries.iter().map(|entry| entry.key.text.clone()).collect(),
                };
                for map in merged {
                    self.merge(&mut entries, &mut known, map);
                }
                Node { kind: Kind::Map(entries), span }
            }
        };
        self.place_node(node, frame.anchor)
    }

    fn merge(&mut self, entries: &mut Vec<Entry>, known: &mut HashSet<String>, node: Node) {
        match node.kind {
            Kind::Map(merged) => {
                for entry in merged {
                    if known.insert(entry.key.text.clone()) {
                        entries.push(entry);
                    }
                }
            }
            Kind::Seq(items) if items.iter().all(|item| matches!(item.kind, Kind::Map(_))) => {
                for item in items {
                    self.merge(entries, known, item);
                }
            }
            other => {
                let message = format!("`<<` merges a map, found {}", other.noun());
                self.diagnostics.push(Diagnostic::error("wrong-type", message).at(self.source.place(node.span)));
            }
        }
    }

    /// Puts a finished node where it belongs: into the innermost open list or map, or at the root.
    fn place_node(&mut self, node: Node, anchor: usize) -> Result<(), Stop> {
        self.count(1, node.span)?;
        if anchor > 0 {
            let (count, depth) = measure(&node);
            // It is kept beside the tree. Anchors within anchors would keep the same values again and again.
            self.count(count, node.span)?;
            self.anchors.insert(anchor, (node.clone(), count, depth));
        }
        match self.open.last_mut().map(|frame| &mut frame.content) {
            None => self.root = Some(node),
            Some(Content::Seq(items)) => items.push(node),
            Some(Content::Map { entries, lines, merged, key }) => match key.take() {
                Some(PendingKey { merges: true, .. }) => merged.push(node),
                Some(PendingKey { key, .. }) => match lines.get(&key.text) {
                    Some(line) => {
                        let message = format!("`{}` is already set in line {line}", key.text);
                        self.diagnostics.push(Diagnostic::error("duplicate-key", message).at(self.source.place(key.span)));
                    }
                    None if entries.len() >= MOST_KEYS => {
                        let diagnostic = Diagnostic::error("too-many-keys", format!("more than {MOST_KEYS} keys in one map"));
                        return self.stop(diagnostic.at(self.source.place(key.span)));
                    }
                    None => {
                        lines.insert(key.text.clone(), key.span.line);
                        entries.push(Entry { key, value: node });
                    }
                },
                None => {
                    let diagnostic = Diagnostic::error("key-not-text", "a key must be text").at(self.source.place(node.span));
                    return self.stop(diagnostic);
                }
            },
        }
        Ok(())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Kind {
        let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
        self.check_tag(tag, span);
        if style != ScalarStyle::Plain || is_text {
            return Kind::Text(text.to_owned());
        }
        read_plain(text).unwrap_or_else(|number| {
            let (message, hint) = match is_long(&number) {
                true => (
                    format!("`{number}` does not fit 64 bits, so that it can neither be sent nor compared exactly"),
                    "put it in quotes if it is a text; an exponent, as in `1.8e19`, tells its size",
                ),
                false => (format!("JSON has no number `{number}`"), "put it in quotes to send it as text"),
            };
            self.diagnostics.push(Diagnostic::error("no-json-number", message).at(self.source.place(span)).hint(hint));
            Kind::Broken
        })
    }

    fn check_tag(&mut self, tag: Option<&Tag>, span: Span) {
        if let Some(tag) = tag.filter(|tag| !tag.is_yaml_core_schema()) {
            let message = format!("the tag `{}{}` means nothing here", tag.handle, tag.suffix);
            self.diagnostics
                .push(Diagnostic::error("unknown-tag", message).at(self.source.place(span)).hint("quote a text that starts with `!`"));
        }
    }

    fn count(&mut self, values: usize, span: Span) -> Result<(), Stop> {
        if self.diagnostics.len() >= MOST_MISTAKES {
            return Err(Stop);
        }
        if self.source.count_values(values) <= MOST_VALUES {
            return Ok(());
        }
        let message = format!("more than {MOST_VALUES} values, those that aliases repeat included");
        self.stop(Diagnostic::error("too-many-values", message).at(self.source.place(span)))
    }

    fn check_depth(&mut self, added: usize, span: Span) -> Result<(), Stop> {
        if self.open.len() + added <= MAXIMUM_DEPTH {
            return Ok(());
        }
        self.stop(Diagnostic::error("too-deep", format!("more than {MAXIMUM_DEPTH} levels of nesting")).at(self.source.place(span)))
    }

    fn stop(&mut self, diagnostic: Diagnostic) -> Result<(), Stop> {
        self.diagnostics.push(diagnostic);
        Err(Stop)
    }

    /// The key whose value comes next: the best place for a value that is not written at all.
    fn key_before(&self) -> Option<Span> {
        match &self.open.last()?.content {
            Content::Map { key, .. } => key.as_ref().map(|pending| pending.key.span),
            Content::Seq(_) => None,
        }
    }

    fn extent(&self, start: Span, span: &saphyr_parser::Span) -> Span {
        if span.start.line() == span.end.line() {
            Span { length: to_u32(span.end.col().saturating_sub(span.start.col())), ..start }
        } else {
            self.source.rest_of_line(start)
        }
    }
}

/// The first pair of a block map stands for the whole map.
fn first_pair(entry: &Entry) -> Span {
    let (key, value) = (entry.key.span, entry.value.span);
    let end = if value.line == key.line && value.column > key.column { value.column + value.length } else { key.column + key.length };
    Span { length: end.saturating_sub(key.column), ..key }
}

/// How many nodes a tree has, and how deep it is.
fn measure(node: &Node) -> (usize, usize) {
    let over = |children: &mut dyn Iterator<Item = &Node>| {
        let (count, depth) = children.map(measure).fold((0, 0), |(count, depth), child| (count + child.0, depth.max(child.1)));
        (count + 1, depth + 1)
    };
    match &node.kind {
        Kind::Seq(items) => over(&mut items.iter()),
        Kind::Map(entries) => over(&mut entries.iter().map(|entry| &entry.value)),
        _ => (1, 0),
    }
}
