//! Whether tools behave as their annotations claim, judged by what the server shows before and after a call.
//! Source: schema, ToolAnnotations.
//!
//! An observation counts if the previous one, with no call in between, was equal; a change counts if it lasts longer than
//! a change caused by a clock.

use super::ConversationView;
use super::flaws::{Flaw, told};
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, revisions};
use mcproof_analysis::{Attempt, AttemptOutcome, WireMessage};
use mcproof_protocol::Revision;
use mcproof_record::{FrameId, Probed};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// A change that is still observed after this time is not caused by a clock.
const LASTING: Duration = Duration::from_secs(1);

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "read-only-changes-nothing",
        area: Area::Calls,
        requirement: "a tool with `readOnlyHint: true` makes no observable change",
        sources: &[
            RequirementSource {
                revisions: Revision::V2025_03_26..=Revision::V2025_03_26,
                level: RequirementLevel::Security,
                source: "server/tools#tool",
            },
            RequirementSource { revisions: revisions::SINCE_2025_06, level: RequirementLevel::Security, source: "schema#toolannotations" },
        ],
        judge: Judge::Together(|all| unchanged(all, &READ_ONLY)),
        why: "hosts call read-only tools without asking their user",
        remedy: "set `readOnlyHint` to false, or move the change into a separate tool",
        ..Rule::DEFAULT
    },
    Rule {
        id: "idempotent-changes-nothing-twice",
        area: Area::Calls,
        requirement: "the second call of a tool with `idempotentHint: true`, with the same arguments, makes no observable change",
        sources: &[
            RequirementSource {
                revisions: Revision::V2025_03_26..=Revision::V2025_03_26,
                level: RequirementLevel::Must,
                source: "server/tools#tool",
            },
            RequirementSource { revisions: revisions::SINCE_2025_06, level: RequirementLevel::Must, source: "schema#toolannotations" },
        ],
        judge: Judge::Together(|all| unchanged(all, &IDEMPOTENT)),
        why: "clients repeat an idempotent call after its response was lost",
        remedy: "remove `idempotentHint`, or check whether the requested change was already made",
        ..Rule::DEFAULT
    },
    Rule {
        id: "lost-response-doubles-no-effect",
        area: Area::Calls,
        requirement: "a call that a client repeats after a lost response has its effect once",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Portability, source: "" }],
        judge: Judge::Together(|all| unchanged(all, &LOST_RESPONSE)),
        why: "clients and agents repeat a call when its response is lost, and the effect is there twice: two orders, two messages",
        remedy: "accept a key of the client in the arguments and return the earlier result for the same key, or look for what was already made",
        ..Rule::DEFAULT
    },
];

/// One observation.
struct Observation {
    seen: Value,
    frame: FrameId,
}

/// After which call nothing may have changed.
struct Claim {
    /// The probe of the call.
    call: &'static str,
    hint: Option<&'static str>,
}

const READ_ONLY: Claim = Claim { call: "state-call", hint: Some("readOnlyHint") };
const IDEMPOTENT: Claim = Claim { call: "state-call-again", hint: Some("idempotentHint") };
const LOST_RESPONSE: Claim = Claim { call: "state-call-repeated", hint: None };

fn unchanged(all: &[&ConversationView<'_>], claim: &Claim) -> Judgment {
    let call = claim.call;
    match claim.hint {
        Some(hint) if !all.iter().flat_map(|conversation| conversation.tools()).any(|(tool, _)| claims(tool, hint)) => {
            return Judgment::NotApplicable(format!("no tool claims `{hint}`"));
        }
        None if !all.iter().any(|conversation| conversation.conversation.probes.iter().any(|probed| probed.probe == call)) => {
            return Judgment::NotApplicable("no call was repeated, which `--lost-response` does".into());
        }
        _ => {}
    }
    let (mut called, mut succeeded, mut judged, mut flaws) = (false, false, 0_usize, Vec::new());
    for (position, conversation) in all.iter().enumerate() {
        let probes = &conversation.conversation.probes;
        for (index, probed) in probes.iter().enumerate().filter(|(_, probed)| probed.probe == call) {
            called = true;
            let attempt = conversation.attempt(probed);
            if !matches!(attempt.answer, AttemptOutcome::Result { .. }) || attempt.answer.is_refusal() {
                continue;
            }
            succeeded = true;
            // The newest observations come first in those before the call, and last in those after it.
            let before = observations(conversation, probes[..index].iter().rev());
            let after = observations(conversation, probes[index + 1..].iter());
            for (observer, before) in before {
                let [now, earlier, ..] = before.as_slice() else { continue };
                let Some([first, rest @ ..]) = after.get(observer).map(Vec::as_slice) else { continue };
                if now.seen != earlier.seen {
                    continue;
                }
                judged += 1;
                let lasts = |later: &Observation| {
                    later.seen == first.seen && conversation.elapsed(first.frame, later.frame).is_some_and(|time| time >= LASTING)
                };
                if first.seen != now.seen && rest.iter().any(lasts) {
                    flaws.push(flaw(&attempt, observer, (now, first), position, claim));
                    break;
                }
            }
        }
    }
    match (judged, called, succeeded) {
        (1.., ..) => Judgment::from_violations(told("tool", "tools", flaws)),
        (0, false, _) => Judgment::Untestable("no such tool was called; `--call NAME` allows those that are not read-only".into()),
        (0, true, false) => Judgment::Untestable("no call of such a tool succeeded with arguments made from its schema".into()),
        (0, true, true) => Judgment::Untestable("no observable state of the server stays the same without a call".into()),
    }
}

/// Whether a tool has the hint; a read-only tool is idempotent anyway.
fn claims(tool: &Value, hint: &str) -> bool {
    let is_set = |name: &str| tool.pointer(&format!("/annotations/{name}")) == Some(&Value::Bool(true));
    is_set(hint) && (hint == "readOnlyHint" || !is_set("readOnlyHint"))
}

fn flaw(
    attempt: &Attempt<'_, '_>,
    observer: &str,
    (before, after): (&Observation, &Observation),
    conversation: usize,
    claim: &Claim,
) -> Flaw {
    let call = attempt.request.map(|request| request.frame.id);
    Flaw {
        subject: attempt.probed.subject.clone().unwrap_or_default(),
        detail: match claim.hint {
            Some(hint) => format!("it has `{hint}`, but {observer} changes after a call of it"),
            None => format!("{observer} changes again when the same call is sent again"),
        },
        frames: [Some(before.frame), call, Some(after.frame)].into_iter().flatten().collect(),
        conversation,
    }
}

/// What each observer saw, up to the next call.
fn observations<'a>(conversation: &ConversationView<'a>, probes: impl Iterator<Item = &'a Probed>) -> BTreeMap<&'a str, Vec<Observation>> {
    let mut found: BTreeMap<&str, Vec<Observation>> = BTreeMap::new();
    for probed in probes.take_while(|probed| !probed.probe.starts_with("state-call")).filter(|probed| probed.probe == "observe") {
        let attempt = conversation.attempt(probed);
        let answer = attempt.answer;
        if let (AttemptOutcome::Result { value, frame }, false, Some(observer)) = (answer, answer.is_refusal(), &probed.subject) {
            let mut seen = value.clone();
            if let Some(object) = seen.as_object_mut() {
                object.shift_remove("_meta");
                if attempt.request.and_then(WireMessage::method).is_some_and(|method| method.ends_with("/list")) {
                    object.values_mut().for_each(in_any_order);
                }
            }
            found.entry(observer).or_default().push(Observation { seen, frame });
        }
    }
    found
}

/// Another rule judges whether the order of a list stays the same.
fn in_any_order(list: &mut Value) {
    if let Some(items) = list.as_array_mut() {
        items.sort_by_cached_key(Value::to_string);
    }
}
