//! How the suite format is declared: one table per kind of object, from which reading, messages and the published schema follow.
//! Knows no key by name.

use super::document::{Entry, Kind, Node};
use super::habits::meant;
use super::plan::RetryCause;
use super::reader::Reader;
use super::source::Span;
use mcproof_analysis::{did_you_mean, listed};
use mcproof_record::Diagnostic;

/// A kind of object: its keys, and the keys of the published design that are still to come.
pub struct Object<T: 'static> {
    /// With its article: `a step`.
    pub name: &'static str,
    pub keys: &'static [Key<T>],
    pub later: &'static [&'static str],
}

/// One key: what it is called, what it does, what it takes, and how it is read into a draft.
pub struct Key<T: 'static> {
    pub name: &'static str,
    pub doc: &'static str,
    pub shape: Shape,
    pub presence: Presence,
    pub read: fn(&mut Reader<'_>, &Node, &mut T) -> Result<(), Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Optional,
    Required,
    /// Exactly one of all keys that are marked so.
    OneOf,
}

/// What a key takes.
#[derive(Clone, Copy)]
pub enum Shape {
    Text,
    Duration,
    /// Days or less, for what is kept.
    Period,
    /// Names to durations.
    Durations,
    /// Bytes, with or without a unit.
    Size,
    /// A whole number of at least 1.
    Count,
    /// A number above 0, and 1 at most.
    Share,
    /// What keeps a response from coming, or a list of such words.
    RetryCauses,
    /// A number above 0 and below 100.
    Percentage,
    /// RFC 3339.
    Time,
    /// `true`, or what keeps a response from coming.
    FlagOrRetryCauses,
    /// `true`.
    Flag,
    /// `true` or a name.
    Name,
    /// Nothing, or `true`.
    Nothing,
    Regex,
    /// Nothing, `true`, `all`, or a list of names.
    Names,
    /// A text or a list of texts.
    Command,
    Number,
    /// A list of maps of variables.
    Rows,
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of these words, or a list of some.
    WordOrWords(&'static [&'static str]),
    /// A list of texts.
    TextList,
    /// A text, or a list of texts.
    TextOrTexts,
    /// One of three words, or values for a form.
    Elicitation,
    /// A text or a result.
    Sampling,
    Roots,
    /// A value of any kind.
    Any,
    /// Names to values of any kind.
    Values,
    /// Names to texts.
    Texts,
    /// A value with matchers in it.
    Matcher,
    /// `true` or a text pattern.
    ToolError,
    /// `true` or a matcher over an error.
    RpcError,
    Object(&'static dyn Described),
    /// An object, or a list of such objects.
    ObjectOrList(&'static dyn Described),
    /// An object, or `true` for all that it takes as usual.
    ObjectOrFlag(&'static dyn Described),
    /// An object, or a number that stands for its most important key.
    ObjectOrNumber(&'static dyn Described),
    /// An object, or a text that stands for its most important key.
    ObjectOrText(&'static dyn Described),
    /// Names to objects.
    Objects(&'static dyn Described),
    List(&'static dyn Described),
}

impl Shape {
    pub fn expected(self) -> String {
        let text = match self {
            Self::Text => "a string",
            Self::Duration => "a duration such as 5s",
            Self::Period => "a period such as 7d",
            Self::Durations => "a map of names to durations such as 5s",
            Self::Size => "a size such as 16MiB",
            Self::Count => "a whole number of at least 1",
            Self::Share => "a number above 0, and 1 at most",
            Self::Percentage => "a percentage such as 99.9",
            Self::Time => "a time such as 2027-01-31T02:00:00Z",
            Self::RetryCauses => return format!("one of {}, or a list of them", listed(RetryCause::ALL.map(RetryCause::word))),
            Self::FlagOrRetryCauses => return format!("`true`, or one or more of {}", listed(RetryCause::ALL.map(RetryCause::word))),
            Self::Flag => "`true`",
            Self::Name => "`true` or a name",
            Self::Nothing => "nothing or `true`",
            Self::Regex => "a pattern such as /port (\\d+)/",
            Self::Names => "nothing, `all` or a list of names",
            Self::Command => "a command as a string or as a list of words",
            Self::Number => "a whole number",
            Self::Rows => "a list of rows, each a map of variables",
            Self::WordOrWords(words) => return format!("one of {}, or a list of them", listed(words.iter().copied())),
            Self::ObjectOrList(object) => return format!("{} as a map, or a list of maps", object.name()),
            Self::ObjectOrFlag(object) => return format!("`true`, or {} as a map", object.name()),
            Self::ObjectOrNumber(object) => return format!("{} as a map, or a whole number", object.name()),
            Self::Word(words) => return format!("one of {}", listed(words.iter().copied())),
            Self::TextList => "a list of strings",
            Self::TextOrTexts => "a string or a list of strings",
            Self::Elicitation => "`accept`, `decline`, `cancel`, a map of values or `$result` with a whole result",
            Self::Sampling => "a string, `reject` or a result as a map",
            Self::Roots => "a list of URIs, or of maps such as { uri: file:///home/me/project, name: project }",
            Self::Any => "a value",
            Self::Values => "a map of names to values",
            Self::Texts => "a map of names to strings",
            Self::Matcher => "a value or matchers",
            Self::ToolError => "`true`, a string or a pattern such as /not found/i",
            Self::RpcError => "`true` or a map such as { code: -32602 }",
            Self::Object(object) => return format!("{}, which is a map", object.name()),
            Self::ObjectOrText(object) => return format!("{} as a map, or a string", object.name()),
            Self::Objects(object) => return format!("a map whose every value is {}", object.name()),
            Self::List(object) => return format!("a list whose every item is {}", object.name()),
        };
        text.to_owned()
    }
}

/// A table without its draft type, so that a schema can be made of all tables alike.
pub trait Described: Sync {
    fn name(&self) -> &'static str;
    /// Name, documentation, shape and presence of every key.
    fn keys(&self) -> Vec<(&'static str, &'static str, Shape, Presence)>;
    /// That it has no such key, and which one may have been meant.
    fn unknown_key(&self, typed: &str) -> Diagnostic;
}

impl<T> Described for Object<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn keys(&self) -> Vec<(&'static str, &'static str, Shape, Presence)> {
        self.keys.iter().map(|key| (key.name, key.doc, key.shape, key.presence)).collect()
    }

    fn unknown_key(&self, typed: &str) -> Diagnostic {
        self.unknown(typed)
    }
}

/// Why a value could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It has not the declared shape; whoever knows the declaration says so.
    Shape,
    /// Its diagnostic is already given.
    Reported,
}

impl<T> Object<T> {
    /// Reads a map into a draft and reports all that is wrong with its keys. `false` if something was wrong.
    pub fn read(&self, reader: &mut Reader<'_>, node: &Node, draft: &mut T) -> bool {
        let entries = match &node.kind {
            Kind::Map(entries) => entries,
            Kind::Broken => return false,
            other => {
                reader.error("wrong-type", format!("expected {}, which is a map, found {}", self.name, other.noun()), node.span);
                return false;
            }
        };
        let before = reader.mistakes();
        let outer = reader.key;
        let mut all_known = true;
        let mut chosen: Option<&'static str> = None;
        for Entry { key, value } in entries {
            if reader.is_full(key.span) {
                break;
            }
            let Some(known) = self.keys.iter().find(|known| known.name == key.text) else {
                all_known = false;
                let diagnostic = self.unknown(&key.text);
                reader.report(diagnostic, key.span);
                continue;
            };
            if known.presence == Presence::OneOf {
                match chosen {
                    Some(first) => {
                        reader.error("conflicting-keys", format!("{} has `{first}` or `{}`, not both", self.name, known.name), key.span);
                        continue;
                    }
                    None => chosen = Some(known.name),
                }
            }
            reader.key = key.span;
            if (known.read)(reader, value, draft) == Err(Fault::Shape) {
                reader.wrong_type(&known.shape.expected(), value);
            }
        }
        reader.key = outer;
        // A key that nobody knows was probably meant to be the one that is missing.
        if all_known {
            self.report_missing(reader, entries, node.span, chosen.is_some());
        }
        reader.mistakes() == before
    }

    fn report_missing(&self, reader: &mut Reader<'_>, entries: &[Entry], span: Span, chosen: bool) {
        for key in self.keys.iter().filter(|key| key.presence == Presence::Required) {
            if !entries.iter().any(|entry| entry.key.text == key.name) {
                let missing = Diagnostic::error("missing-key", format!("{} needs `{}`", self.name, key.name));
                reader.report(missing.hint(format!("`{}`: {}", key.name, key.doc)), span);
            }
        }
        let choices: Vec<&str> = self.keys.iter().filter(|key| key.presence == Presence::OneOf).map(|key| key.name).collect();
        if !choices.is_empty() && !chosen {
            reader.error("missing-key", format!("{} needs one of {}", self.name, listed(choices)), span);
        }
    }

    fn unknown(&self, typed: &str) -> Diagnostic {
        if self.later.contains(&typed) {
            return Diagnostic::error("unsupported-key", format!("`{typed}` is not supported by this version"));
        }
        let names = || self.keys.iter().map(|key| key.name);
        let diagnostic = Diagnostic::error("unknown-key", format!("{} has no key `{typed}`", self.name));
        if let Some(hint) = meant(self.name, typed) {
            return diagnostic.hint(hint);
        }
        match did_you_mean(typed, names()) {
            Some(near) => diagnostic.hint(format!("did you mean `{near}`?")),
            // All of them: which one was meant, nobody knows.
            None => diagnostic.hint(format!("keys are {}", names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))),
        }
    }
}
