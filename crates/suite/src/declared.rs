//! Holds what a run does not read, such as the profiles that were not chosen, against its declaration. Knows keys and kinds of values,
//! not what they mean together: whoever reads them says that.

use super::document::{Entry, Kind, Node};
use super::format::{Described, Fault, Shape};
use super::reader::Reader;

/// Reports unknown keys and values of the wrong kind. A value with a variable in it is not looked at.
pub(crate) fn check(reader: &mut Reader<'_>, shape: Shape, node: &Node) {
    let fits = match (shape, &node.kind) {
        (_, Kind::Broken | Kind::Null) => true,
        (_, Kind::Text(text)) if text.contains("${") => true,
        (
            Shape::Object(object)
            | Shape::ObjectOrList(object)
            | Shape::ObjectOrFlag(object)
            | Shape::ObjectOrNumber(object)
            | Shape::ObjectOrText(object),
            Kind::Map(entries),
        ) => {
            check_keys(reader, object, entries);
            true
        }
        (Shape::ObjectOrList(object) | Shape::List(object), Kind::Seq(items)) => {
            items.iter().for_each(|item| check(reader, Shape::Object(object), item));
            true
        }
        (Shape::Objects(object), Kind::Map(entries)) => {
            entries.iter().for_each(|entry| check(reader, Shape::Object(object), &entry.value));
            true
        }
        (Shape::Durations, Kind::Map(entries)) => {
            entries.iter().for_each(|entry| check(reader, Shape::Duration, &entry.value));
            true
        }
        (Shape::Duration, Kind::Text(_) | Kind::Number(_)) => reader.duration(node) != Err(Fault::Shape),
        (Shape::Flag | Shape::ObjectOrFlag(_), Kind::Bool(_)) => true,
        (Shape::Number | Shape::ObjectOrNumber(_), Kind::Number(number)) => number.as_u64().is_some(),
        (Shape::Count, Kind::Number(number)) => number.as_u64().is_some_and(|count| count > 0),
        (Shape::Word(words), Kind::Text(text)) => words.contains(&text.as_str()),
        (Shape::Text | Shape::ObjectOrText(_), kind) => !matches!(kind, Kind::Seq(_) | Kind::Map(_)),
        (
            Shape::Object(_)
            | Shape::Objects(_)
            | Shape::ObjectOrList(_)
            | Shape::ObjectOrFlag(_)
            | Shape::ObjectOrNumber(_)
            | Shape::List(_)
            | Shape::Durations
            | Shape::Duration
            | Shape::Flag
            | Shape::Number
            | Shape::Count
            | Shape::Word(_),
            _,
        ) => false,
        // The others take values of several kinds.
        _ => true,
    };
    if !fits {
        reader.wrong_type(&shape.expected(), node);
    }
}

fn check_keys(reader: &mut Reader<'_>, object: &'static dyn Described, entries: &[Entry]) {
    let keys = object.keys();
    for Entry { key, value } in entries {
        match keys.iter().find(|(name, ..)| *name == key.text) {
            Some((_, _, shape, _)) => check(reader, *shape, value),
            None => reader.report(object.unknown_key(&key.text), key.span),
        }
    }
}
