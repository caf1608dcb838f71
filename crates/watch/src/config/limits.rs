//! Reads how much it takes until something counts. Each key may stand in `defaults:` and in a target.

use super::leaves::{optional, read_at_least, read_count};
use crate::state::Thresholds;
use mcproof_record::Diagnostic;
use mcproof_suite::document::{Kind, Node};
use mcproof_suite::format::{Fault, Object, Shape};
use mcproof_suite::reader::Reader;
use std::time::Duration;

/// What was said of it, in one place.
#[derive(Clone, Default)]
pub(super) struct Limits {
    confirmations: Option<Vec<Duration>>,
    recoveries: Option<u32>,
    outages: Option<u32>,
    within: Option<Duration>,
    calm: Option<Duration>,
}

pub(super) const FAILURES_DOC: &str = "failures in a row until it is down, the later ones 5 s, 15 s, 30 s … after the first; 3 if missing";
pub(super) const CONFIRMATIONS_DOC: &str =
    "when a failure is looked at again, counted from the first one, instead of `failures`: [5s, 15s]";
pub(super) const RECOVERIES_DOC: &str = "good probes in a row until it is up again; 2 if missing";
pub(super) const FLAPPING_DOC: &str = "how often it has to go down to be told of as one that flaps";

const MOST: u32 = 20;
const MOST_TIMES: usize = 19;

pub(super) static FLAPPING: Object<Limits> = Object {
    name: "`flapping`",
    keys: &[
        optional("outages", "so many outages are one story; 3 if missing", Shape::Count, |reader, node, draft| {
            draft.outages = Some(read_count(reader, node, MOST_OUTAGES)?);
            Ok(())
        }),
        optional("within", "if they begin within this time; 1h if missing", Shape::Duration, |reader, node, draft| {
            draft.within = Some(read_at_least(reader, node, Duration::from_secs(60))?);
            Ok(())
        }),
        optional("calm", "without any failure, until it is over; 30m if missing", Shape::Duration, |reader, node, draft| {
            draft.calm = Some(read_at_least(reader, node, Duration::from_secs(60))?);
            Ok(())
        }),
    ],
    later: &[],
};

/// As good as never.
const MOST_OUTAGES: u32 = 1_000;

pub(super) fn failures(reader: &mut Reader<'_>, node: &Node, draft: &mut Limits) -> Result<(), Fault> {
    let number = read_count(reader, node, MOST)?;
    only_one_of_both(reader, draft)?;
    draft.confirmations = Some(Thresholds::after(number));
    Ok(())
}

pub(super) fn confirmations(reader: &mut Reader<'_>, node: &Node, draft: &mut Limits) -> Result<(), Fault> {
    let items = match &node.kind {
        Kind::Seq(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let mut times: Vec<Duration> = Vec::new();
    for item in items {
        let time = read_at_least(reader, item, Duration::from_secs(1))?;
        if times.last().is_some_and(|last| *last >= time) || times.len() >= MOST_TIMES {
            let diagnostic = Diagnostic::error("bad-confirmations", "this is not after the one before it, or there are too many");
            reader.report(diagnostic.hint("all count from the first failure on: [5s, 15s, 30s]; there are 19 at most"), item.span);
            return Err(Fault::Reported);
        }
        times.push(time);
    }
    only_one_of_both(reader, draft)?;
    draft.confirmations = Some(times);
    Ok(())
}

fn only_one_of_both(reader: &mut Reader<'_>, draft: &Limits) -> Result<(), Fault> {
    if draft.confirmations.is_none() {
        return Ok(());
    }
    let diagnostic = Diagnostic::error("two-of-a-kind", "`failures` and `confirmations` both say how often it has to fail");
    let key = reader.key;
    reader.report(diagnostic.hint("`failures` is one more than there are confirmations: leave it out"), key);
    Err(Fault::Reported)
}

pub(super) fn recoveries(reader: &mut Reader<'_>, node: &Node, draft: &mut Limits) -> Result<(), Fault> {
    draft.recoveries = Some(read_count(reader, node, MOST)?);
    Ok(())
}

pub(super) fn flapping(reader: &mut Reader<'_>, node: &Node, draft: &mut Limits) -> Result<(), Fault> {
    if FLAPPING.read(reader, node, draft) { Ok(()) } else { Err(Fault::Reported) }
}

impl Limits {
    /// With what others say where this says nothing, and what is usual where they do not either.
    pub(super) fn over(&self, others: &Self) -> Thresholds {
        let usual = Thresholds::default();
        Thresholds {
            confirmations: self.confirmations.clone().or_else(|| others.confirmations.clone()).unwrap_or(usual.confirmations),
            recoveries: self.recoveries.or(others.recoveries).unwrap_or(usual.recoveries),
            outages: self.outages.or(others.outages).unwrap_or(usual.outages),
            within: self.within.or(others.within).unwrap_or(usual.within),
            calm: self.calm.or(others.calm).unwrap_or(usual.calm),
        }
    }
}
