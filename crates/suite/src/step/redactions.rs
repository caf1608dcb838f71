//! The rules of snapshots that stand in no suite, but in the arguments of a program.

use super::read_redactions;
use crate::Environment;
use crate::document::{Kind, Node};
use crate::plan::Redaction;
use crate::reader::Reader;
use crate::source::{Source, Span, to_u32};
use mcproof_record::Diagnostic;
use std::path::Path;

/// The rules of snapshots that stand in no suite.
///
/// # Errors
/// All mistakes.
pub fn redactions(rules: &[String]) -> Result<Vec<Redaction>, Vec<Diagnostic>> {
    let source = Source::new("redact", &rules.join("\n"));
    let environment = Environment::default();
    let mut reader = Reader::new(&source, Path::new(""), &environment);
    let node = |(rule, line): (&String, u32)| Node {
        kind: Kind::Text(rule.clone()),
        span: Span { line, column: 1, length: to_u32(rule.chars().count()), ..Span::default() },
    };
    let list = Node { kind: Kind::Seq(rules.iter().zip(1..).map(node).collect()), span: Span { line: 1, column: 1, ..Span::default() } };
    let read = read_redactions(&mut reader, &list);
    match read {
        Ok(read) if reader.diagnostics.is_empty() => Ok(read),
        _ => Err(reader.diagnostics),
    }
}
