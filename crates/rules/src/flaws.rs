//! The same flaw of many things, told once. Knows no rule.

use super::ConversationView;
use super::rule_definition::{Judgment, Violation};
use mcproof_record::FrameId;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Names that are told; of the others the number.
const MOST_NAMES: usize = 3;
/// Kinds of flaws that are told one by one.
const MOST_KINDS: usize = 8;

/// What is wrong with one thing.
#[derive(Clone, Debug)]
pub(super) struct Flaw {
    /// The name of the thing.
    pub(super) subject: String,
    /// What is wrong, the same words for the same flaw.
    pub(super) detail: String,
    pub(super) frames: Vec<FrameId>,
    pub(super) conversation: usize,
}

/// One violation for each kind of flaw; `one` and `many` name the things. What several conversations show counts once.
pub(super) fn told(one: &str, many: &str, flaws: Vec<Flaw>) -> Vec<Violation> {
    let mut kinds: Vec<Vec<Flaw>> = Vec::new();
    // There may be tens of thousands of things, all with the same flaw, or each with another.
    let (mut by_detail, mut told) = (HashMap::<String, usize>::new(), HashSet::<(usize, String)>::new());
    for flaw in flaws {
        let kind = *by_detail.entry(flaw.detail.clone()).or_insert_with(|| {
            kinds.push(Vec::new());
            kinds.len() - 1
        });
        if told.insert((kind, flaw.subject.clone())) {
            kinds[kind].push(flaw);
        }
    }
    let rest = kinds.split_off(kinds.len().min(MOST_KINDS));
    let mut violations: Vec<Violation> = kinds.iter().map(|kind| of_kind(one, many, kind)).collect();
    if let Some(first) = rest.first().map(|kind| &kind[0]) {
        let things = rest.iter().map(Vec::len).sum::<usize>();
        let message = format!("{things} more {many} are wrong in ways of their own; the next is `{}`: {}", first.subject, first.detail);
        let conversation = first.conversation;
        violations.push(Violation { conversation, ..Violation::new(message, first.frames.iter().copied()) });
    }
    violations
}

fn of_kind(one: &str, many: &str, kind: &[Flaw]) -> Violation {
    let names: Vec<String> = kind.iter().take(MOST_NAMES).map(|flaw| format!("`{}`", flaw.subject)).collect();
    let things = if kind.len() == 1 { one } else { many };
    let more = match kind.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let conversation = kind[0].conversation;
    let shown = kind.iter().filter(|flaw| flaw.conversation == conversation).take(MOST_NAMES);
    let mut frames: Vec<FrameId> = shown.flat_map(|flaw| flaw.frames.iter().copied()).collect();
    frames.sort_unstable();
    frames.dedup();
    Violation { conversation, ..Violation::new(format!("{things} {}{more}: {}", names.join(", "), kind[0].detail), frames) }
}

/// Looks at every tool that was listed, once for each of its forms, and tells what is wrong with it.
pub(super) fn each_tool(conversations: &[&ConversationView<'_>], wrong: impl Fn(&Value) -> Vec<String>) -> Judgment {
    let mut known: HashMap<&str, Vec<&Value>> = HashMap::new();
    let mut flaws = Vec::new();
    for (position, conversation) in conversations.iter().enumerate() {
        for (tool, frame) in conversation.tools() {
            let forms = known.entry(name_of(tool)).or_default();
            if forms.contains(&tool) {
                continue;
            }
            forms.push(tool);
            let subject = name_of(tool).to_owned();
            flaws.extend(wrong(tool).into_iter().map(|detail| Flaw {
                subject: subject.clone(),
                detail,
                frames: vec![frame],
                conversation: position,
            }));
        }
    }
    match known.is_empty() {
        true => Judgment::NotApplicable("the server lists no tools".into()),
        false => Judgment::from_violations(told("tool", "tools", flaws)),
    }
}

/// The name of a listed thing, as far as it has one.
pub(super) fn name_of(item: &Value) -> &str {
    item.get("name").and_then(Value::as_str).unwrap_or("(without a name)")
}
