//! Extensions of Goose, in YAML: `cmd` and `args`. Whatever is not written plainly is left alone.

use crate::edit::{Edit, HostFileError, Planned, ServerChange, Splice, has_own_options, is_proxy};
use saphyr_parser::{Event, Parser, ScalarStyle, Span};

const SERVERS: &str = "extensions";
/// Deeper nesting is no configuration.
const DEEPEST: usize = 50;

/// A value with its place, in bytes.
struct Node {
    kind: Kind,
    start: usize,
}

enum Kind {
    Text {
        value: String,
        style: ScalarStyle,
    },
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    /// An alias, or something with an anchor.
    Shared,
}

pub(crate) fn plan(text: &str, edit: Edit, program: &str) -> Result<Vec<Planned>, HostFileError> {
    let root = read(text)?;
    let servers = root.as_ref().and_then(|root| root.get(SERVERS)).ok_or(HostFileError::NoServers(SERVERS))?;
    let Kind::Map(entries) = &servers.kind else { return Err(HostFileError::NoServers(SERVERS)) };
    Ok(entries.iter().filter_map(|(name, entry)| server(text, name.text()?, entry, edit, program)).collect())
}

/// None for what is built into Goose.
fn server(text: &str, name: &str, entry: &Node, edit: Edit, program: &str) -> Option<Planned> {
    let kind = entry.get("type").and_then(Node::text);
    let planned = |change, splices| Some(Planned { name: name.to_owned(), change, splices });
    if entry.get("uri").is_some() {
        return planned(ServerChange::AtUrl, Vec::new());
    }
    if entry.get("cmd").is_none() && kind != Some("stdio") {
        return None;
    }
    let (change, splices) = changes(text, entry, edit, program).unwrap_or((ServerChange::NotUnderstood, Vec::new()));
    planned(change, splices)
}

fn changes(text: &str, entry: &Node, edit: Edit, program: &str) -> Option<(ServerChange, Vec<Splice>)> {
    let command = entry.get("cmd")?;
    let written = written(text, command)?;
    let arguments = entry.get("args");
    let words = match arguments.map(|arguments| &arguments.kind) {
        None => Vec::new(),
        Some(Kind::List(items)) => items.iter().map(|item| item.text().map(str::to_owned)).collect::<Option<Vec<_>>>()?,
        Some(_) => return None,
    };
    match (edit, is_proxy(command.text()?, &words)) {
        (Edit::Install, true) | (Edit::Uninstall, false) => return Some((ServerChange::AsBefore, Vec::new())),
        (Edit::Uninstall, true) if has_own_options(&words) => return Some((ServerChange::OwnOptions, Vec::new())),
        (Edit::Install, false) | (Edit::Uninstall, true) => {}
    }
    let whole = command.start..command.start + written.len();
    if edit == Edit::Install {
        let named = serde_json::Value::from(program).to_string();
        let Some(arguments) = arguments else {
            let added = added(text, command.start, written)?;
            return Some((ServerChange::Installed, vec![Splice { range: whole, text: named + &added }]));
        };
        let (place, before) = before(text, arguments, written)?;
        let before = Splice { range: place..place, text: before };
        return Some((ServerChange::Installed, vec![Splice { range: whole, text: named }, before]));
    }
    let Some(Kind::List(items)) = arguments.map(|arguments| &arguments.kind) else { return None };
    let original = crate::edit::end_of_flags(&words).and_then(|at| items.get(at))?;
    let original = self::written(text, original)?;
    if let Some(added) = added(text, command.start, original).filter(|added| text[whole.end..].starts_with(added.as_str())) {
        let range = whole.start..whole.end + added.len();
        return Some((ServerChange::Uninstalled, vec![Splice { range, text: original.to_owned() }]));
    }
    let (place, before) = before(text, arguments?, original)?;
    let alone = before.trim_end_matches(", ");
    let removed = [before.as_str(), alone].into_iter().find(|removed| text[place..].starts_with(removed))?;
    let removed = Splice { range: place..place + removed.len(), text: String::new() };
    Some((ServerChange::Uninstalled, vec![Splice { range: whole, text: original.to_owned() }, removed]))
}

/// What stands before the arguments of the server, and where.
fn before(text: &str, arguments: &Node, command: &str) -> Option<(usize, String)> {
    let Kind::List(items) = &arguments.kind else { return None };
    if text[arguments.start..].starts_with('[') {
        let comma = if items.is_empty() { "" } else { ", " };
        let is_plain = !command.starts_with(['"', '\'']);
        // What ends a plain word in brackets ends none outside of them.
        if is_plain && command.contains([',', '[', ']', '{', '}', ':', '#']) {
            return None;
        }
        return Some((arguments.start + 1, format!("\"proxy\", \"--\", {command}{comma}")));
    }
    let first = items.first()?;
    let line = line_start(text, first.start);
    let dash = &text[line..first.start];
    let is_dash = dash.trim_start_matches(' ').strip_prefix('-').is_some_and(|rest| !rest.is_empty() && rest.trim().is_empty());
    let newline = newline(text, first.start);
    is_dash.then(|| (line, format!("{dash}\"proxy\"{newline}{dash}\"--\"{newline}{dash}{command}{newline}")))
}

/// The arguments of a server that has none.
fn added(text: &str, command: usize, written: &str) -> Option<String> {
    let line = &text[line_start(text, command)..command];
    let indent = line.strip_suffix("cmd: ").filter(|indent| indent.bytes().all(|byte| byte == b' '))?;
    Some(format!("{}{indent}args: [proxy, \"--\", {written}]", newline(text, command)))
}

fn line_start(text: &str, place: usize) -> usize {
    text[..place].rfind('\n').map_or(0, |end| end + 1)
}

fn newline(text: &str, place: usize) -> &'static str {
    match text[place..].find('\n') {
        Some(end) if text[..place + end].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// A word as it is written, if that is plain to see.
fn written<'t>(text: &'t str, node: &Node) -> Option<&'t str> {
    let Kind::Text { value, style } = &node.kind else { return None };
    let expected = match style {
        ScalarStyle::Plain => value.clone(),
        ScalarStyle::SingleQuoted => format!("'{value}'"),
        ScalarStyle::DoubleQuoted => format!("\"{value}\""),
        ScalarStyle::Literal | ScalarStyle::Folded => return None,
    };
    text[node.start..].starts_with(&expected).then(|| &text[node.start..node.start + expected.len()]).filter(|word| !word.is_empty())
}

impl Node {
    fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text { value, .. } => Some(value),
            _ => None,
        }
    }

    fn get(&self, key: &str) -> Option<&Self> {
        match &self.kind {
            Kind::Map(entries) => entries.iter().find(|(name, _)| name.text() == Some(key)).map(|(_, value)| value),
            _ => None,
        }
    }
}

/// The one document of a file.
fn read(text: &str) -> Result<Option<Node>, HostFileError> {
    let places: Vec<usize> = text.char_indices().map(|(place, _)| place).chain([text.len()]).collect();
    let place = |span: &Span| places.get(span.start.index()).copied().unwrap_or(text.len());
    let mut open: Vec<(Node, Option<Node>)> = Vec::new();
    let mut root = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| HostFileError::Invalid(error.to_string()))?;
        let start = place(&span);
        let done = match event {
            Event::Scalar(value, style, 0, _) => Some(Node { kind: Kind::Text { value: value.into_owned(), style }, start }),
            Event::Scalar(..) | Event::Alias(_) => Some(Node { kind: Kind::Shared, start }),
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() >= DEEPEST => {
                return Err(HostFileError::Invalid(format!("it is nested more than {DEEPEST} levels deep")));
            }
            Event::SequenceStart(..) => {
                open.push((Node { kind: Kind::List(Vec::new()), start }, None));
                None
            }
            Event::MappingStart(..) => {
                open.push((Node { kind: Kind::Map(Vec::new()), start }, None));
                None
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().map(|(node, _)| node),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => None,
        };
        let Some(done) = done else { continue };
        match open.last_mut() {
            None if root.is_some() => return Err(HostFileError::Invalid("it has several documents".into())),
            None => root = Some(done),
            Some((Node { kind: Kind::List(items), .. }, _)) => items.push(done),
            Some((Node { kind: Kind::Map(entries), .. }, key)) => match key.take() {
                None => *key = Some(done),
                Some(name) => entries.push((name, done)),
            },
            Some(_) => unreachable!("only lists and maps are opened"),
        }
    }
    Ok(root)
}
