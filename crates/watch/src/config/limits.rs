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

pub(super) const FAILURES_DOC: &str =
    "consecutive failures until the target is down; it is probed again 5 s, 15 s, 30 s … after the first one; default 3";
pub(super) const CONFIRMATIONS_DOC: &str = "when to probe again after a first failure, instead of `failures`: [5s, 15s]";
pub(super) const RECOVERIES_DOC: &str = "consecutive successes until the target is up again; default 2";
pub(super) const FLAPPING_DOC: &str = "when a target counts as flapping";

const MOST: u32 = 20;
const MOST_TIMES: usize = 19;

pub(super) static FLAPPING: Object<Limits> = Object {
    name: "`flapping`",
    keys: &[
        optional("outages", "this many outages are one incident; default 3", Shape::Count, |reader, node, draft| {
            draft.outages = Some(read_count(reader, node, MOST_OUTAGES)?);
            Ok(())
        }),
        optional("within", "if they begin within this time; default 1h", Shape::Duration, |reader, node, draft| {
            draft.within = Some(read_at_least(reader, node, Duration::from_secs(60))?);
            Ok(())
        }),
        optional("calm", "time without a failure until the incident is resolved; default 30m", Shape::Duration, |reader, node, draft| {
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
            let diagnostic = Diagnostic::error("bad-confirmations", "times must increase, and there are at most 19");
            reader.report(diagnostic.hint("count each time from the first failure: [5s, 15s, 30s]"), item.span);
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
    let diagnostic = Diagnostic::error("conflicting-keys", "`failures` and `confirmations` contradict each other");
    let key = reader.key;
    reader.report(diagnostic.hint("remove one of them: `failures` is one more than the number of confirmations"), key);
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
