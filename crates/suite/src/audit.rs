//! Reads `audit:`: where every request of a suite is written down.

use super::document::{Kind, Node};
use super::format::{Fault, Key, Object, Presence, Shape};
use super::plan::Audit;
use super::reader::Reader;
use super::test::TMP;

/// `audit:`, or its `file` alone.
pub static AUDIT: Object<AuditDraft> = Object {
    name: "`audit`",
    keys: &[
        Key {
            name: "file",
            doc: "the file, relative to the suite, to which one JSON line is appended per request; may contain `${tmp}`",
            shape: Shape::Text,
            presence: Presence::Required,
            read: |reader, node, draft| {
                draft.file = reader.template_text(node)?;
                Ok(())
            },
        },
        Key {
            name: "redact",
            doc: "names of arguments whose values are redacted",
            shape: Shape::TextList,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.redact = reader.texts(node)?;
                Ok(())
            },
        },
    ],
    later: &[],
};

#[derive(Default)]
pub struct AuditDraft {
    file: String,
    redact: Vec<String>,
}

pub(crate) fn read_audit(reader: &mut Reader<'_>, node: &Node) -> Result<Audit, Fault> {
    let mut draft = AuditDraft::default();
    reader.open = vec![TMP.to_owned()];
    let readable = match &node.kind {
        Kind::Map(_) => {
            if AUDIT.read(reader, node, &mut draft) {
                Ok(())
            } else {
                Err(Fault::Reported)
            }
        }
        _ => reader.template_text(node).map(|file| draft.file = file),
    };
    reader.open.clear();
    readable?;
    let base = reader.folder;
    reader.permit(node.span, |restriction| restriction.template_path(base, &draft.file))?;
    Ok(Audit { file: draft.file, redact: draft.redact })
}
