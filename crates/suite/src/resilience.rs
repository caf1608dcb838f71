//! Reads `retry:` and `breaker:`: what the client does when a server does not answer. Knows no wire.

use super::document::{Kind, Node};
use super::format::{Fault, Key, Object, Presence, Shape};
use super::plan::{Breaker, Retry, RetryCause};
use super::reader::Reader;
use mcproof_analysis::{did_you_mean, listed};
use mcproof_record::Diagnostic;
use std::time::Duration;

pub(crate) const RETRY_DOC: &str =
    "how often a request without a response is sent again; calls only where the tool declares itself read-only or idempotent";
pub(crate) const BREAKER_DOC: &str = "opens after this many consecutive requests without a response, and then sends none for a while";

/// More would only hide how broken a server is.
const MOST: u64 = 100;

/// `retry:`, or a number for its `max`.
pub static RETRY: Object<Retry> = Object {
    name: "`retry`",
    keys: &[
        Key {
            name: "max",
            doc: "attempts after the first one",
            shape: Shape::Count,
            presence: Presence::Required,
            read: |reader, node, draft| {
                draft.most = read_number(reader, node)?;
                Ok(())
            },
        },
        Key {
            name: "delay",
            doc: "before the first retry; doubled for each one after it, with jitter, and never less than a `Retry-After`",
            shape: Shape::Duration,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.delay = reader.duration(node)?;
                Ok(())
            },
        },
        Key {
            name: "on",
            doc: "what is retried: `timeout`, `reset` (the connection or the response broke off), `5xx`, `429`, `breaker`; the first three if it is left out",
            shape: Shape::RetryCauses,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.on = read_retry_causes(reader, node)?;
                Ok(())
            },
        },
        Key {
            name: "force",
            doc: "`true` retries calls of all tools, even if the call may take effect twice",
            shape: Shape::Flag,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.force = reader.flag(node)?;
                Ok(())
            },
        },
    ],
    later: &[],
};

/// `breaker:`.
pub static BREAKER: Object<Breaker> = Object {
    name: "`breaker`",
    keys: &[
        Key {
            name: "failures",
            doc: "consecutive requests without a response that open it",
            shape: Shape::Count,
            presence: Presence::Required,
            read: |reader, node, draft| {
                draft.failures = read_number(reader, node)?;
                Ok(())
            },
        },
        Key {
            name: "open",
            doc: "how long it stays open; then one request is let through, and its response closes it",
            shape: Shape::Duration,
            presence: Presence::Required,
            read: |reader, node, draft| {
                draft.open = reader.duration(node)?;
                Ok(())
            },
        },
    ],
    later: &[],
};

impl Default for Retry {
    fn default() -> Self {
        let on = vec![RetryCause::Timeout, RetryCause::Reset, RetryCause::ServerError];
        Self { most: 0, delay: Duration::from_millis(100), on, force: false }
    }
}

pub(crate) fn read_retry(reader: &mut Reader<'_>, node: &Node) -> Result<Retry, Fault> {
    let mut retry = Retry::default();
    match &node.kind {
        Kind::Map(_) => {
            if !RETRY.read(reader, node, &mut retry) {
                return Err(Fault::Reported);
            }
        }
        _ => retry.most = read_number(reader, node)?,
    }
    Ok(retry)
}

pub(crate) fn read_breaker(reader: &mut Reader<'_>, node: &Node) -> Result<Breaker, Fault> {
    let mut breaker = Breaker { failures: 0, open: Duration::ZERO };
    if BREAKER.read(reader, node, &mut breaker) { Ok(breaker) } else { Err(Fault::Reported) }
}

/// `no_response:` of a step: `true`, or what kept the response from coming.
pub(crate) fn read_no_answer(reader: &mut Reader<'_>, node: &Node) -> Result<Vec<RetryCause>, Fault> {
    match node.kind {
        Kind::Bool(true) => Ok(RetryCause::ALL.to_vec()),
        _ => read_retry_causes(reader, node),
    }
}

fn read_retry_causes(reader: &mut Reader<'_>, node: &Node) -> Result<Vec<RetryCause>, Fault> {
    let nodes = match &node.kind {
        Kind::Seq(nodes) if !nodes.is_empty() => nodes.as_slice(),
        Kind::Text(_) | Kind::Number(_) => std::slice::from_ref(node),
        Kind::Broken => return Err(Fault::Reported),
        _ => return Err(Fault::Shape),
    };
    let mut retry_causes = Vec::new();
    for node in nodes {
        let word = reader.text(node)?;
        let Some(retry_cause) = RetryCause::ALL.into_iter().find(|retry_cause| retry_cause.word() == word) else {
            let diagnostic = Diagnostic::error("unknown-cause", format!("`{word}` is not a known cause of a missing response"));
            let hint = match did_you_mean(&word, RetryCause::ALL.map(RetryCause::word)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("write one of {}", listed(RetryCause::ALL.map(RetryCause::word))),
            };
            reader.report(diagnostic.hint(hint), node.span);
            return Err(Fault::Reported);
        };
        retry_causes.push(retry_cause);
    }
    Ok(retry_causes)
}

fn read_number(reader: &mut Reader<'_>, node: &Node) -> Result<u32, Fault> {
    match reader.number(node)? {
        0 => Err(Fault::Shape),
        number if number > MOST => {
            let diagnostic = Diagnostic::error("too-many-retries", format!("{MOST} is the most, not {number}"));
            reader.report(diagnostic.hint("a server that needs more has a fault of its own"), node.span);
            Err(Fault::Reported)
        }
        number => u32::try_from(number).map_err(|_| Fault::Shape),
    }
}
