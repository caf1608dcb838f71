//! Steps and tests that prove less than they seem to. Warnings: the suite can be run as it is.

use super::StepDraft;
use crate::document::Node;
use crate::plan::{Action, NameConflicts, Step, Topic};
use crate::reader::Reader;
use crate::source::Span;
use mcproof_record::Diagnostic;

pub(super) fn check_step(reader: &mut Reader<'_>, node: &Node, draft: &StepDraft) {
    if let (Some(1), Some((_, key))) = (draft.times, &draft.distinct) {
        let warning = Diagnostic::warning("cannot-fail", "a single response is always distinct");
        reader.warn(warning.hint("raise `times`"), *key);
    }
    if let (Some(within), Some(timeout)) = (&draft.within, draft.timeout)
        && within.value >= timeout
        && let Some(value) = node.get("within")
    {
        let warning = Diagnostic::warning("cannot-fail", "the step is given up before `within` can be exceeded");
        reader.warn(warning.hint("make `within` shorter than `timeout`"), value.span);
    }
}

/// The code of the warning about a test that expects nothing.
pub(crate) const NO_EXPECTATION: &str = "no-expectation";

/// A test of which no step looks at a response.
pub(crate) fn check_case(reader: &mut Reader<'_>, steps: &[Step], span: Span) {
    let mut leaves = steps.iter().flat_map(Step::leaves).peekable();
    if leaves.peek().is_none() || leaves.any(expects) {
        return;
    }
    let mut titles: Vec<String> = Vec::new();
    for step in steps.iter().flat_map(Step::leaves) {
        let title = format!("`{}`", step.action.title());
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    let message = format!("this test expects nothing: it proves that there is a response to {}, not what it contains", titles.join(", "));
    let warning = Diagnostic::warning(NO_EXPECTATION, message);
    reader.warn(warning.hint("add `expect:` to a step, or the names that a list should have, such as `tools: [search]`"), span);
}

fn expects(step: &Step) -> bool {
    let expect = &step.expect;
    let answer = expect.payload.is_some() || expect.result.is_some() || expect.names.is_some() || expect.failure.is_some();
    let rest = expect.notifications.is_some() || expect.exit.is_some() || step.within.is_some() || step.snapshot.is_some();
    let kept = !step.save.is_empty() || step.repeat.as_ref().is_some_and(|repeat| repeat.distinct.is_some());
    // Names that clash are a failure, a call that does not become a task is one, a call that is answered before it is canceled is a failure, and so is a change of lists that is not offered.
    let by_itself =
        matches!(step.action, Action::Cancel { .. } | Action::Subscribe(Topic::List(_)) | Action::Federation(NameConflicts::Refused));
    answer || rest || kept || step.task.is_some() || by_itself
}
