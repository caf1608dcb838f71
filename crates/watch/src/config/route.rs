//! Reads `routes:`: who is told of what.

use super::hours::{HOURS, read_hours};
use super::leaves::{choose, optional, read_at_least, read_at_most, read_count, read_items, required};
use super::{Route, Step};
use crate::incident::Severity;
use mcproof_record::Diagnostic;
use mcproof_suite::document::{Kind, Node};
use mcproof_suite::format::{Fault, Object, Shape};
use mcproof_suite::reader::Reader;
use mcproof_suite::source::Span;
use std::time::Duration;

const SEVERITIES: [(&str, Severity); 3] = [("notify", Severity::Notify), ("page", Severity::Page), ("security", Severity::Security)];

pub(super) static ROUTE: Object<RouteDraft> = Object {
    name: "a route",
    keys: &[
        optional("severities", "for these incidents only", Shape::WordOrWords(&["notify", "page", "security"]), |reader, node, draft| {
            let items = match &node.kind {
                Kind::Seq(items) => items.as_slice(),
                _ => std::slice::from_ref(node),
            };
            for item in items {
                draft.route.severities.push(choose(reader, item, &SEVERITIES, "severity")?);
            }
            Ok(())
        }),
        optional("tags", "for targets with one of these tags only", Shape::TextOrTexts, |reader, node, draft| {
            draft.named.tags = read_items(reader, node)?;
            draft.route.tags = texts(&draft.named.tags);
            Ok(())
        }),
        optional("hours", "at these times only; default: always", Shape::ObjectOrList(&HOURS), |reader, node, draft| {
            draft.route.hours = read_hours(reader, node)?;
            Ok(())
        }),
        required(
            "channels",
            "channels in order; the next one is used if the one before it fails for two minutes",
            Shape::TextOrTexts,
            |reader, node, draft| {
                draft.named.channels = read_items(reader, node)?;
                if draft.named.channels.is_empty() {
                    reader.error("no-channels", "this route has no channels", node.span);
                    return Err(Fault::Reported);
                }
                Ok(())
            },
        ),
        optional("remind_every", "repeat the notification until it is acknowledged", Shape::Duration, |reader, node, draft| {
            draft.route.remind_every = Some(read_at_least(reader, node, Duration::from_secs(60))?);
            Ok(())
        }),
        optional(
            "escalate",
            "who else is notified while the incident is not acknowledged, in steps",
            Shape::List(&STEP),
            |reader, node, draft| {
                let Kind::Seq(items) = &node.kind else { return Err(Fault::Shape) };
                for item in items {
                    let mut step = StepDraft::default();
                    if !STEP.read(reader, item, &mut step) {
                        return Err(Fault::Reported);
                    }
                    let last = draft.route.escalate.last().map_or(Duration::ZERO, |last| last.after);
                    if step.after <= last {
                        let diagnostic = Diagnostic::error("bad-step", "this step is not later than the one before it");
                        reader.report(diagnostic.hint("`after` counts from the first page and increases from step to step"), item.span);
                        return Err(Fault::Reported);
                    }
                    let channels = texts(&step.channels);
                    draft.route.escalate.push(Step { after: step.after, channels });
                    draft.others.extend(step.channels);
                }
                Ok(())
            },
        ),
        optional("repeat", "how often the steps of `escalate` are repeated; default 0", Shape::Count, |reader, node, draft| {
            draft.route.repeat = read_count(reader, node, MOST_ROUNDS)?;
            draft.repeat = Some(reader.key);
            Ok(())
        }),
        optional(
            "group_by",
            "tags, or tag patterns with `*` and `?`: targets that share one are notified in one message",
            Shape::TextOrTexts,
            |reader, node, draft| {
                draft.named.group_by = read_items(reader, node)?;
                draft.route.group_by = texts(&draft.named.group_by);
                Ok(())
            },
        ),
        optional(
            "group_wait",
            "how long the first message of a group, and each update, waits for more incidents; default 10s",
            Shape::Duration,
            |reader, node, draft| {
                draft.group_wait = Some((read_at_most(reader, node, LONGEST_GROUP_WAIT)?, reader.key));
                Ok(())
            },
        ),
    ],
    later: &[],
};

/// For the first message of a group to wait for more.
const GROUP_WAIT: Duration = Duration::from_secs(10);
/// A page must be on its way before `--once` ends.
const LONGEST_GROUP_WAIT: Duration = Duration::from_secs(45);
/// More would wake nobody who has slept until then.
const MOST_ROUNDS: u32 = 100;

static STEP: Object<StepDraft> = Object {
    name: "a step",
    keys: &[
        required("after", "time without an acknowledgement, from the first page", Shape::Duration, |reader, node, draft| {
            draft.after = read_at_least(reader, node, Duration::from_secs(60))?;
            Ok(())
        }),
        required("channels", "the channels to notify then, as in a route", Shape::TextOrTexts, |reader, node, draft| {
            draft.channels = read_items(reader, node)?;
            if draft.channels.is_empty() {
                reader.error("no-channels", "this step has no channels", node.span);
                return Err(Fault::Reported);
            }
            Ok(())
        }),
    ],
    later: &[],
};

#[derive(Default)]
struct StepDraft {
    after: Duration,
    channels: Vec<(String, Node)>,
}

#[derive(Default)]
pub(super) struct RouteDraft {
    route: Route,
    named: Named,
    /// Those of its steps.
    others: Vec<(String, Node)>,
    repeat: Option<Span>,
    group_wait: Option<(Duration, Span)>,
}

/// What a route names, and where.
#[derive(Default)]
pub(super) struct Named {
    /// Also those of its steps.
    pub(super) channels: Vec<(String, Node)>,
    pub(super) tags: Vec<(String, Node)>,
    /// Patterns of tags.
    pub(super) group_by: Vec<(String, Node)>,
}

fn texts(items: &[(String, Node)]) -> Vec<String> {
    items.iter().map(|(text, _)| text.clone()).collect()
}

/// As which severity the routes take an incident: one of `security` that none of them takes goes where pages go. Whoever did not think
/// of it is told all the same.
pub(super) fn taken_as(routes: &[Route], severity: Severity, tags: &[String]) -> Severity {
    match severity {
        Severity::Security if !routes.iter().any(|route| route.covers(severity, tags)) => Severity::Page,
        other => other,
    }
}

/// The route, and what it names.
pub(super) fn read_route(reader: &mut Reader<'_>, node: &Node) -> Option<(Route, Named)> {
    let mut draft = RouteDraft::default();
    if !ROUTE.read(reader, node, &mut draft) {
        return None;
    }
    if let Some(key) = draft.repeat.filter(|_| draft.route.escalate.is_empty()) {
        reader.error("inapplicable-key", "`repeat` requires `escalate`", key);
        return None;
    }
    if let Some((_, key)) = draft.group_wait.filter(|_| draft.route.group_by.is_empty()) {
        reader.error("inapplicable-key", "`group_wait` requires `group_by`", key);
        return None;
    }
    if !draft.route.group_by.is_empty() {
        draft.route.group_wait = draft.group_wait.map_or(GROUP_WAIT, |(wait, _)| wait);
    }
    let channels = texts(&draft.named.channels);
    draft.named.channels.extend(draft.others);
    Some((Route { channels, ..draft.route }, draft.named))
}
