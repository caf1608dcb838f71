//! Lists of tools, resources, templates and prompts: pages, duplicates, order, change.
//! Source: server/utilities/pagination; server/tools, server/resources, server/prompts.

use super::modern::{identity, key_of};
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{Attempt, AttemptOutcome, ConversationView};
use mcproof_analysis::named;
use mcproof_analysis::probes::{MOST_IDLE_PAGES, MOST_PAGES};
use mcproof_protocol::{error_code, methods};
use mcproof_record::{FrameId, counted};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "list-pagination-ends",
        area: Area::Lists,
        requirement: "a list has a last page, and no cursor repeats",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Must,
            source: "server/utilities/pagination#pagination-model",
        }],
        judge: Judge::Each(pagination_ends),
        why: "clients follow cursors until there is none; a repeated cursor keeps them in an endless loop",
        remedy: "leave `nextCursor` out of the last page, and use the cursor of the request",
        ..Rule::DEFAULT
    },
    Rule {
        id: "list-has-no-duplicates",
        area: Area::Lists,
        requirement: "no name of a tool or prompt and no URI is listed twice",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Must, source: "server/tools" }],
        judge: Judge::Each(no_duplicates),
        why: "clients call by name: of two items with the same name one cannot be called, and some hosts reject the whole list",
        remedy: "use a unique name for each item, and check whether pages overlap",
        ..Rule::DEFAULT
    },
    Rule {
        id: "list-unknown-cursor-is-refused",
        area: Area::Lists,
        requirement: "an unknown cursor gets error -32602",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Should,
            source: "server/utilities/pagination#error-handling",
        }],
        judge: Judge::Each(unknown_cursor_is_refused),
        why: "a client with an expired cursor gets the first page again, and treats it as the next",
        remedy: "respond with -32602 to an unknown cursor, even if there is only one page",
        ..Rule::DEFAULT
    },
    Rule {
        id: "list-order-is-stable",
        area: Area::Lists,
        requirement: "a list that has not changed keeps its order",
        sources: &[
            RequirementSource { revisions: revisions::LEGACY, level: RequirementLevel::Portability, source: "" },
            RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Should, source: "server/tools#capabilities" },
        ],
        judge: Judge::Each(order_is_stable),
        why: "tools are part of a model's prompt; a different order invalidates its cache, so each request is slower and costs more",
        remedy: "sort the list, or store it in an ordered structure",
        sdks: &[("Go", "the order of a `map` differs each time: sort its keys")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "list-does-not-change-unannounced",
        area: Area::Lists,
        requirement: "a list does not change between requests without a `list_changed` notification",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Should,
            source: "server/tools#list-changed-notification",
        }],
        judge: Judge::Each(does_not_change_unannounced),
        why: "clients use the list that they have, and models call tools that no longer exist or whose description has changed",
        remedy: "return the same list to each request; if it can change, declare `listChanged` and send the `list_changed` notification",
        ..Rule::DEFAULT
    },
    Rule {
        id: "list-does-not-depend-on-calls",
        area: Area::Lists,
        requirement: "calls do not change which tools are listed",
        sources: &[RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source: "server/tools#capabilities" }],
        judge: Judge::Each(does_not_depend_on_calls),
        why: "the next request may reach another instance of the server or come from another client, which the call has not affected",
        remedy: "list every tool from the start, and respond to calls that are too early with `isError` and a text that names what is missing",
        ..Rule::DEFAULT
    },
];

/// A list, page by page, as far as pages were answered with results.
struct ListedPages<'c> {
    method: &'c str,
    pages: Vec<Page<'c>>,
    /// The page after the last one came.
    is_complete: bool,
    /// What the cursor of the last page got, if that was no page.
    refused: Option<(String, Vec<FrameId>)>,
}

struct Page<'c> {
    items: &'c [Value],
    next: Option<&'c Value>,
    frame: FrameId,
    evidence: Vec<FrameId>,
}

impl<'c> ListedPages<'c> {
    /// What was listed under a probe, each list once.
    fn of(conversation: &'c ConversationView<'_>, probe: &str) -> Vec<Self> {
        let mut walks: Vec<Self> = Vec::new();
        for attempt in conversation.probes(probe) {
            let Some(method) = attempt.request.and_then(|request| request.method()) else { continue };
            let position = walks.iter().position(|walk| walk.method == method).unwrap_or_else(|| {
                walks.push(Self { method, pages: Vec::new(), is_complete: false, refused: None });
                walks.len() - 1
            });
            let AttemptOutcome::Result { value, frame } = attempt.answer else {
                walks[position].is_complete = false;
                if matches!(attempt.answer, AttemptOutcome::Error { .. } | AttemptOutcome::Status { .. }) {
                    walks[position].refused = Some((attempt.answer.describe(), attempt.frames()));
                }
                continue;
            };
            let items = value.get(key_of(method)).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let next = value.get("nextCursor").filter(|cursor| !cursor.is_null());
            walks[position].is_complete = next.is_none();
            walks[position].pages.push(Page { items, next, frame, evidence: attempt.frames() });
        }
        walks.retain(|walk| !walk.pages.is_empty());
        walks
    }

    /// The tools that were listed under a probe, which may be one page or all of them.
    fn of_tools(conversation: &'c ConversationView<'_>, probe: &str) -> Option<Self> {
        let mut walk = Self { method: methods::TOOLS_LIST, pages: Vec::new(), is_complete: false, refused: None };
        let probes: Vec<_> = conversation.conversation.probes.iter().filter(|probed| probed.probe == probe).collect();
        for (request, answer) in conversation.requests().filter(|(request, _)| request.method() == Some(walk.method)) {
            let is_within = probes.iter().any(|probed| probed.contains(request.frame.id));
            let Some(answer) = answer.filter(|_| is_within) else { continue };
            let items = answer.value.pointer("/result/tools").and_then(Value::as_array)?;
            let next = answer.value.pointer("/result/nextCursor").filter(|cursor| !cursor.is_null());
            walk.is_complete = next.is_none();
            let frames = vec![request.frame.id, answer.frame.id];
            walk.pages.push(Page { items, next, frame: answer.frame.id, evidence: frames });
        }
        (!walk.pages.is_empty()).then_some(walk)
    }

    fn names(&self) -> Vec<&'c str> {
        self.pages.iter().flat_map(|page| page.items.iter().filter_map(identity)).collect()
    }

    /// The page that gives a cursor that an earlier one gave.
    fn repetition(&self) -> Option<(usize, &'c Value)> {
        let mut known = HashSet::new();
        self.pages.iter().enumerate().find_map(|(later, page)| {
            let cursor = page.next?;
            (!known.insert(cursor)).then_some((later, cursor))
        })
    }

    fn evidence(&self) -> impl Iterator<Item = FrameId> {
        self.pages.iter().take(3).map(|page| page.frame)
    }
}

const NO_LIST: &str = "no list request got a result";

fn pagination_ends(conversation: &ConversationView<'_>) -> Judgment {
    let walks = ListedPages::of(conversation, "list");
    let (mut violations, mut unfinished) = (Vec::new(), None);
    for walk in &walks {
        if let Some((later, cursor)) = walk.repetition() {
            let message = format!("page {} of `{}` has the cursor {cursor}, as an earlier page", later + 1, walk.method);
            let first = walk.pages.iter().find(|page| page.next == Some(cursor)).map(|page| page.frame);
            violations.push(Violation::new(message, first.into_iter().chain(walk.pages[later].evidence.iter().copied())));
            continue;
        }
        let mut seen = BTreeSet::new();
        let idle = walk.pages.iter().rev().take(MOST_IDLE_PAGES).filter(|page| page.next.is_some()).count() == MOST_IDLE_PAGES && {
            let (early, late) = walk.pages.split_at(walk.pages.len() - MOST_IDLE_PAGES);
            seen.extend(early.iter().flat_map(|page| page.items.iter().filter_map(identity)));
            late.iter().flat_map(|page| page.items.iter().filter_map(identity)).all(|name| seen.contains(name))
        };
        if idle {
            let message =
                format!("`{}` has no end: the last {MOST_IDLE_PAGES} of {} pages brought nothing new", walk.method, walk.pages.len());
            violations.push(Violation::new(message, walk.pages.iter().rev().take(2).map(|page| page.frame)));
            continue;
        }
        let leads_on = walk.pages.last().is_some_and(|page| page.next.is_some());
        if let Some((answer, frames)) = walk.refused.as_ref().filter(|_| leads_on) {
            let message = format!("page {} of `{}` leads on, and its cursor got {answer}", walk.pages.len(), walk.method);
            violations.push(Violation::new(message, walk.pages.last().map(|page| page.frame).into_iter().chain(frames.iter().copied())));
            continue;
        }
        // There may be as many resources as there are files; nobody has as many tools.
        if leads_on && walk.pages.len() >= MOST_PAGES && matches!(walk.method, methods::TOOLS_LIST | methods::PROMPTS_LIST) {
            let message = format!("`{}` has no end: page {} still leads to another one", walk.method, walk.pages.len());
            violations.push(Violation::new(message, walk.pages.iter().rev().take(2).map(|page| page.frame)));
        } else if leads_on {
            unfinished = Some(format!("page {} of `{}` leads on, and the next one was not listed", walk.pages.len(), walk.method));
        }
    }
    violations.extend(refused_again(conversation, &walks));
    match unfinished {
        Some(why) if violations.is_empty() => Judgment::Untestable(why),
        _ => Judgment::of(violations, walks.len(), NO_LIST),
    }
}

/// That a list which was listed to its end leads on again, and refuses its own cursor then: who lists anew, as after a `list_changed`
/// notification, is left with the first pages.
fn refused_again(conversation: &ConversationView<'_>, first: &[ListedPages<'_>]) -> Option<Violation> {
    let was_whole = |walk: &ListedPages<'_>| first.iter().any(|known| known.method == walk.method && known.is_complete);
    let again = ["list-again", "list-after-calls"].into_iter().flat_map(|probe| ListedPages::of(conversation, probe));
    again.filter(was_whole).find_map(|walk| {
        let last = walk.pages.last().filter(|page| page.next.is_some())?;
        let (answer, frames) = walk.refused.as_ref()?;
        let message = format!(
            "page {} of `{}` leads on, and its cursor got {answer}, although the whole list came before",
            walk.pages.len(),
            walk.method
        );
        let remedy = "accept a cursor as often as it is sent: the same list may be requested again in a session".to_owned();
        Some(Violation { remedy: Some(remedy), ..Violation::new(message, [last.frame].into_iter().chain(frames.iter().copied())) })
    })
}

/// The position of a page that begins with the last item of the page before it.
fn overlap(walk: &ListedPages<'_>) -> Option<usize> {
    let last = |page: usize| walk.pages[page].items.last().and_then(identity);
    let first = |page: usize| walk.pages[page].items.first().and_then(identity);
    (1..walk.pages.len()).find(|page| last(page - 1).is_some() && last(page - 1) == first(*page))
}

fn no_duplicates(conversation: &ConversationView<'_>) -> Judgment {
    let walks = ListedPages::of(conversation, "list");
    let mut violations = Vec::new();
    // Where pages come again, so do their items.
    for walk in walks.iter().filter(|walk| walk.repetition().is_none()) {
        let (mut seen, mut known, mut twice) = (BTreeSet::new(), BTreeSet::new(), Vec::<String>::new());
        for name in walk.names() {
            if !seen.insert(name) && known.insert(name) {
                twice.push(name.to_owned());
            }
        }
        if let Some(page) = overlap(walk) {
            let message = format!("page {} of `{}` begins with what page {} ends with", page + 1, walk.method, page);
            violations.push(Violation::new(message, walk.pages[page - 1..=page].iter().map(|page| page.frame)));
        } else if !twice.is_empty() {
            let verb = if twice.len() == 1 { "is" } else { "are" };
            violations.push(Violation::new(format!("{} {verb} listed twice by `{}`", named(&twice), walk.method), walk.evidence()));
        }
    }
    Judgment::of(violations, walks.len(), NO_LIST)
}

fn unknown_cursor_is_refused(conversation: &ConversationView<'_>) -> Judgment {
    let answered: Vec<Attempt<'_, '_>> = conversation
        .probes("unknown-cursor")
        .filter(|attempt| match attempt.answer {
            AttemptOutcome::Result { .. } => true,
            // Where the list fails without a cursor as well, this says nothing about cursors.
            AttemptOutcome::Error { .. } => conversation.gives_results(attempt.subject()),
            _ => false,
        })
        .collect();
    let (ignoring, refusing): (Vec<_>, Vec<_>) =
        answered.iter().partition(|attempt| matches!(attempt.answer, AttemptOutcome::Result { .. }));
    let mut violations = Vec::new();
    if let Some(first) = ignoring.first() {
        let methods: Vec<String> = ignoring.iter().map(|attempt| attempt.subject().to_owned()).collect();
        let violation = Violation::new(format!("an unknown cursor got a page of {}", named(&methods)), first.frames());
        violations.push(Violation { tolerance: Some(CURSORS_ARE_IGNORED), ..violation });
    }
    if let Some(other) = refusing.iter().find(|attempt| attempt.answer.code().is_some_and(|code| code != error_code::INVALID_PARAMS)) {
        let message = format!("an unknown cursor of `{}` got {}, not error -32602", other.subject(), other.answer.describe());
        violations.push(Violation::new(message, other.frames()));
    }
    Judgment::of(violations, answered.len(), "no list was requested with an unknown cursor")
}

const CURSORS_ARE_IGNORED: &str = "nearly all servers without pages ignore cursors";

/// The lists that were walked twice, both times to the end.
fn twice<'c>(conversation: &'c ConversationView<'_>) -> Vec<(ListedPages<'c>, ListedPages<'c>)> {
    let mut again = ListedPages::of(conversation, "list-again");
    let first = ListedPages::of(conversation, "list").into_iter().filter(|walk| walk.is_complete);
    first
        .filter_map(|walk| {
            let position = again.iter().position(|other| other.method == walk.method && other.is_complete)?;
            Some((walk, again.swap_remove(position)))
        })
        .collect()
}

/// The tools before and after calls, in the revisions in which calls may change them, where a notification of that can arrive.
fn around_calls<'c>(conversation: &'c ConversationView<'_>) -> Option<(ListedPages<'c>, ListedPages<'c>)> {
    let has_stream = || conversation.exchanges.values().any(|exchange| exchange.method == "GET" && exchange.status() == Some(200));
    if conversation.is_modern() || conversation.is_over("http") && !has_stream() {
        return None;
    }
    let walk = |probe: &str| ListedPages::of_tools(conversation, probe).filter(|walk| walk.is_complete);
    Some((walk("list").or_else(|| walk("list-for-calls"))?, walk("list-after-calls")?))
}

const NOT_TWICE: &str = "no list was requested twice";

fn order_is_stable(conversation: &ConversationView<'_>) -> Judgment {
    let walks = twice(conversation);
    let mut violations = Vec::new();
    for (first, second) in &walks {
        let (before, after) = (first.names(), second.names());
        let is_same_set = before.len() == after.len() && before.iter().collect::<BTreeSet<_>>() == after.iter().collect::<BTreeSet<_>>();
        let differing = before.iter().zip(&after).position(|(before, after)| before != after);
        if let Some(position) = differing.filter(|_| is_same_set) {
            let message = format!(
                "`{}` returned the same {} items in another order: at first `{}` was number {}, then `{}`",
                first.method,
                before.len(),
                before[position],
                position + 1,
                after[position]
            );
            violations.push(Violation::new(message, first.evidence().take(1).chain(second.evidence().take(1))));
        }
    }
    Judgment::of(violations, walks.len(), NOT_TWICE)
}

fn does_not_change_unannounced(conversation: &ConversationView<'_>) -> Judgment {
    let walks: Vec<_> = twice(conversation).into_iter().chain(around_calls(conversation)).collect();
    let mut violations = Vec::new();
    for (first, second) in &walks {
        let kind = first.method.split('/').next().unwrap_or_default();
        let (Some(from), Some(to)) = (first.pages.first().map(|page| page.frame), second.pages.last().map(|page| page.frame)) else {
            continue;
        };
        let notification = format!("notifications/{kind}/list_changed");
        // One that is still on its way counts, so that a list in the making is not charged.
        let is_announced = conversation
            .from_server()
            .any(|wire_message| wire_message.frame.id > from && wire_message.method() == Some(notification.as_str()));
        if let Some(change) = change(first, second).filter(|_| !is_announced) {
            violations.push(Violation::new(format!("`{}` changed without `{notification}`: {change}", first.method), [from, to]));
        }
    }
    Judgment::of(violations, walks.len(), NOT_TWICE)
}

fn does_not_depend_on_calls(conversation: &ConversationView<'_>) -> Judgment {
    let walk = |probe: &str| ListedPages::of_tools(conversation, probe).filter(|walk| walk.is_complete);
    let (Some(first), Some(last)) = (walk("list").or_else(|| walk("list-for-calls")), walk("list-after-calls")) else {
        return Judgment::NotTried("the tools were not listed again after calls".into());
    };
    let (Some(from), Some(to)) = (first.pages.last().map(|page| page.frame), last.pages.first().map(|page| page.frame)) else {
        return Judgment::NotTried("the tools were not listed again after calls".into());
    };
    let calls = conversation.requests().filter(|(request, answer)| {
        let frame = request.frame.id;
        request.method() == Some(methods::TOOLS_CALL)
            && from < frame
            && frame < to
            && answer.is_some_and(|answer| answer.value.get("result").is_some())
    });
    let calls: Vec<FrameId> = calls.map(|(request, _)| request.frame.id).collect();
    let Some(call) = calls.first() else { return Judgment::Untestable("no call got a result".into()) };
    // What changes without a call is the matter of another rule.
    let is_other = |probe: &str, than: &ListedPages<'_>| walk(probe).is_some_and(|again| change(than, &again).is_some());
    let changes_anyway = is_other("list-again", &first) || is_other("list-after-calls-again", &last);
    let violation = change(&first, &last)
        .filter(|_| !changes_anyway)
        .map(|change| Violation::new(format!("`tools/list` changed after {}: {change}", counted(calls.len(), "call")), [from, *call, to]));
    Judgment::from_violations(violation.into_iter().collect())
}

/// What is different about the second walk, but for the order.
fn change(first: &ListedPages<'_>, second: &ListedPages<'_>) -> Option<String> {
    let (before, after): (BTreeSet<_>, BTreeSet<_>) = (first.names().into_iter().collect(), second.names().into_iter().collect());
    let some = |names: Vec<&&str>| named(&names.into_iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    let (gone, new): (Vec<_>, Vec<_>) = (before.difference(&after).collect(), after.difference(&before).collect());
    match (gone.is_empty(), new.is_empty()) {
        (true, false) => return Some(format!("{} came", some(new))),
        (false, true) => return Some(format!("{} went", some(gone))),
        (false, false) => return Some(format!("{} went and {} came", some(gone), some(new))),
        (true, true) => {}
    }
    // Resources tell their size and when they were modified, which may change at any time.
    if !matches!(first.method, methods::TOOLS_LIST | methods::PROMPTS_LIST) {
        return None;
    }
    let mut later: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for item in second.pages.iter().flat_map(|page| page.items) {
        later.entry(identity(item).unwrap_or_default()).or_default().push(item);
    }
    let is_there = |name: &str, item: &Value| later.get(name).is_some_and(|forms| forms.contains(&item));
    let mut items = first.pages.iter().flat_map(|page| page.items).filter_map(|item| Some((identity(item)?, item)));
    let (other, _) = items.find(|(name, item)| !is_there(name, item))?;
    Some(format!("`{other}` has a different description"))
}
