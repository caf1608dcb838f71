//! Whether tools behave as their annotations claim, judged by what the server shows before and after a call.
//! Source: schema, ToolAnnotations.
//!
//! An observation counts if the previous one, with no call in between, was equal; a change counts if it lasts longer than
//! a change caused by a clock. That a call has its effect once is only said by an observer that showed the effect of the first call.

use super::ConversationView;
use super::flaws::{Flaw, told};
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, revisions};
use mcproof_analysis::{Attempt, AttemptOutcome, WireMessage, named};
use mcproof_protocol::Revision;
use mcproof_record::{Conversation, FrameId, Probed};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A change that is still observed after this time is not caused by a clock.
const LASTING: Duration = Duration::from_secs(1);

/// How the probes of all calls begin.
const ANY_CALL: &str = "state-call";
/// The probe of the first of two calls.
const FIRST_CALL: &str = "state-call-first";
/// Observers that a reason names.
const MOST_NAMED: usize = 3;

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
    let (mut tools, mut restless): (BTreeSet<String>, BTreeSet<&str>) = Default::default();
    for (position, conversation) in all.iter().enumerate() {
        let probes = &conversation.conversation.probes;
        for (index, probed) in probes.iter().enumerate().filter(|(_, probed)| probed.probe == call) {
            called = true;
            let attempt = conversation.attempt(probed);
            if !matches!(attempt.answer, AttemptOutcome::Result { .. }) || attempt.answer.is_refusal() {
                continue;
            }
            succeeded = true;
            tools.extend(probed.subject.clone());
            // The newest observations come first in those before the call, and last in those after it.
            let before = observations(conversation, probes[..index].iter().rev());
            let after = observations(conversation, probes[index + 1..].iter());
            let shown_by = showing(conversation, &probes[..index], &before);
            for (observer, before) in before {
                let [now, earlier, ..] = before.as_slice() else { continue };
                if before.iter().any(|one| one.seen != now.seen) {
                    restless.insert(observer);
                }
                let Some([first, rest @ ..]) = after.get(observer).map(Vec::as_slice) else { continue };
                if now.seen != earlier.seen {
                    continue;
                }
                let has_changed = first.seen != now.seen;
                let lasts = |later: &Observation| {
                    later.seen == first.seen && conversation.elapsed(first.frame, later.frame).is_some_and(|time| time >= LASTING)
                };
                if has_changed && rest.iter().any(lasts) {
                    judged += 1;
                    flaws.push(flaw(&attempt, observer, (now, first), position, claim));
                    break;
                }
                // What did not show the effect of the first call would not show that of the second.
                if claim.hint.is_some() || (!has_changed && shown_by.contains(observer)) {
                    judged += 1;
                }
            }
        }
    }
    match (judged, called, succeeded) {
        (1.., ..) => Judgment::from_violations(told("tool", "tools", flaws)),
        (0, false, _) => Judgment::Untestable("no such tool was called; `--call NAME` allows those that are not read-only".into()),
        (0, true, false) => Judgment::Untestable("no call of such a tool succeeded with arguments made from its schema".into()),
        (0, true, true) if claim.hint.is_none() => Judgment::Untestable(unobserved(&tools, &restless)),
        (0, true, true) => Judgment::Untestable("no observable state of the server stays the same without a call".into()),
    }
}

/// Why nothing can be said of calls that were repeated. `restless` are the observers that differ without a call.
fn unobserved(tools: &BTreeSet<String>, restless: &BTreeSet<&str>) -> String {
    let tools: Vec<String> = tools.iter().cloned().collect();
    let nothing = format!("no list, resource or read-only tool shows the effect of the first call of {}", named(&tools));
    let restless: Vec<&str> = restless.iter().copied().take(MOST_NAMED).collect();
    if restless.is_empty() { nothing } else { format!("{nothing}; without a call, these change as well: {}", restless.join(", ")) }
}

/// The observers that showed the effect of the first of two calls: they said the same twice before it, and the same for longer than a
/// clock would after it, but something else. `probes` are those before the second call, `between` what was seen since the first one,
/// the newest first.
fn showing<'a>(
    conversation: &ConversationView<'a>,
    probes: &'a [Probed],
    between: &BTreeMap<&'a str, Vec<Observation>>,
) -> BTreeSet<&'a str> {
    let call = probes.iter().rposition(|probed| probed.probe.starts_with(ANY_CALL));
    let Some(call) = call.filter(|call| probes[*call].probe == FIRST_CALL) else { return BTreeSet::new() };
    let before = observations(conversation, probes[..call].iter().rev());
    let shows = |observer: &str, between: &[Observation]| {
        let Some([now, earlier, ..]) = before.get(observer).map(Vec::as_slice) else { return false };
        let [newest, .., oldest] = between else { return false };
        now.seen == earlier.seen
            && now.seen != newest.seen
            && between.iter().all(|one| one.seen == newest.seen)
            && conversation.elapsed(oldest.frame, newest.frame).is_some_and(|time| time >= LASTING)
    };
    between.iter().filter(|(observer, seen)| shows(observer, seen)).map(|(observer, _)| *observer).collect()
}

/// Tools whose call was repeated as after a lost response, and of them those of which nothing showed the effect of the first call, so
/// that nothing is known of a second one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepeatedTools {
    pub repeated: BTreeSet<String>,
    pub unobserved: BTreeSet<String>,
}

/// What a check knows of the calls that it repeated.
pub fn repeated_tools(recorded: &[Conversation]) -> RepeatedTools {
    let (mut repeated, mut observed) = (BTreeSet::new(), BTreeSet::new());
    for conversation in &ConversationView::all(recorded) {
        let probes = &conversation.conversation.probes;
        let is_repeated = |probed: &Probed| [LOST_RESPONSE.call, IDEMPOTENT.call].contains(&&*probed.probe);
        for (index, probed) in probes.iter().enumerate().filter(|(_, probed)| is_repeated(probed)) {
            let between = observations(conversation, probes[..index].iter().rev());
            if !showing(conversation, &probes[..index], &between).is_empty() {
                observed.extend(probed.subject.clone());
            }
            repeated.extend(probed.subject.clone());
        }
    }
    RepeatedTools { unobserved: repeated.difference(&observed).cloned().collect(), repeated }
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
    for probed in probes.take_while(|probed| !probed.probe.starts_with(ANY_CALL)).filter(|probed| probed.probe == "observe") {
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
