//! Reads `retries:`: how often, and after how long, a test that failed is tried again.

use super::document::{Kind, Node};
use super::format::{Fault, Key, Object, Presence, Shape};
use super::plan::Retries;
use super::reader::Reader;
use mcproof_record::Diagnostic;
use std::time::Duration;

/// More would only hide how broken a test is.
const MOST: u64 = 20;

/// Before the first retry.
pub(crate) const RETRY_DELAY: Duration = Duration::from_millis(200);

pub static RETRIES: Object<Retries> = Object {
    name: "`retries`",
    keys: &[
        Key {
            name: "max",
            doc: "attempts after the first one",
            shape: Shape::Number,
            presence: Presence::Required,
            read: |reader, node, draft| {
                draft.most = read_number(reader, node)?;
                Ok(())
            },
        },
        Key {
            name: "delay",
            doc: "before the first retry; doubled for each one after it, with jitter",
            shape: Shape::Duration,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.delay = reader.duration(node)?;
                Ok(())
            },
        },
    ],
    later: &[],
};

pub(crate) fn read_retries(reader: &mut Reader<'_>, node: &Node) -> Result<Retries, Fault> {
    let mut retries = Retries { most: 0, delay: RETRY_DELAY };
    match &node.kind {
        Kind::Map(_) => {
            if !RETRIES.read(reader, node, &mut retries) {
                return Err(Fault::Reported);
            }
        }
        _ => retries.most = read_number(reader, node)?,
    }
    Ok(retries)
}

fn read_number(reader: &mut Reader<'_>, node: &Node) -> Result<u32, Fault> {
    let number = reader.number(node)?;
    if number > MOST {
        let diagnostic = Diagnostic::error("too-many-retries", format!("a test can be tried again {MOST} times, not {number}"));
        reader.report(diagnostic.hint("find out why it fails instead"), node.span);
        return Err(Fault::Reported);
    }
    u32::try_from(number).map_err(|_| Fault::Shape)
}
