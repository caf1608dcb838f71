//! Reads `leaks:`: what a server may not leave behind. Knows no processes.

use super::document::{Kind, Node};
use super::format::{Fault, Key, Object, Presence, Shape};
use super::plan::Leaks;
use super::reader::Reader;
use mcproof_record::Diagnostic;

pub(crate) const LEAKS_DOC: &str = "`true`, or limits: repeats the steps in fresh sessions, and fails if the server holds more processes or file descriptors than before, or sessions that were ended";

/// Few enough that a test still ends.
const MOST_REPEATS: u64 = 1000;

/// `leaks:` as a map.
pub static LEAKS: Object<LeaksDraft> = Object {
    name: "`leaks`",
    keys: &[
        Key {
            name: "repeat",
            doc: "how often the steps are repeated; default: 10",
            shape: Shape::Count,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let repeat = reader.number(node)?;
                if repeat == 0 {
                    return Err(Fault::Shape);
                }
                if repeat > MOST_REPEATS {
                    let diagnostic = Diagnostic::error("too-many-repeats", format!("{MOST_REPEATS} is the most, not {repeat}"));
                    reader.report(diagnostic.hint("what leaks shows after a few repeats"), node.span);
                    return Err(Fault::Reported);
                }
                draft.repeat = Some(u32::try_from(repeat).map_err(|_| Fault::Shape)?);
                Ok(())
            },
        },
        Key {
            name: "fds",
            doc: "additional file descriptors that the server may have after all repeats; default: none",
            shape: Shape::Number,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.descriptors = u32::try_from(reader.number(node)?).map_err(|_| Fault::Shape)?;
                Ok(())
            },
        },
        Key {
            name: "processes",
            doc: "additional processes that the server may have after all repeats; default: none",
            shape: Shape::Number,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.processes = u32::try_from(reader.number(node)?).map_err(|_| Fault::Shape)?;
                Ok(())
            },
        },
    ],
    later: &[],
};

#[derive(Default)]
pub struct LeaksDraft {
    repeat: Option<u32>,
    descriptors: u32,
    processes: u32,
}

/// `None` for `false`, by which a test leaves out what its suite asks for.
pub(crate) fn read_leaks(reader: &mut Reader<'_>, node: &Node) -> Result<Option<Leaks>, Fault> {
    let place = reader.place_of_pair(node);
    let mut draft = LeaksDraft::default();
    match &node.kind {
        Kind::Map(_) if LEAKS.read(reader, node, &mut draft) => {}
        Kind::Map(_) => return Err(Fault::Reported),
        _ if !reader.flag(node)? => return Ok(None),
        _ => {}
    }
    let LeaksDraft { repeat, descriptors, processes } = draft;
    Ok(Some(Leaks { repeat: repeat.unwrap_or(10), descriptors, processes, place }))
}
