//! Instances of one server behind a load balancer without session affinity.
//! Source: 2026-07-28, basic, statelessness.

use super::ConversationView;
use super::flaws::name_of;
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use mcproof_analysis::AttemptOutcome;
use mcproof_protocol::methods;
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) const RULES: &[Rule] = &[Rule {
    id: "replicas-are-interchangeable",
    area: Area::Modern,
    requirement: "any instance responds to any request, whichever instance got the previous one",
    sources: &[
        RequirementSource {
            revisions: revisions::SESSIONS,
            level: RequirementLevel::Portability,
            source: "basic/transports#session-management",
        },
        RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source: "basic#statelessness" },
    ],
    on: AppliesTo::Http,
    judge: Judge::Together(interchangeable),
    why: "a load balancer sends each request to any instance, so with two instances every second request fails",
    remedy: "put the state for later requests into the request (cursors, handles) or into a store that all instances share",
    ..Rule::DEFAULT
}];

fn interchangeable(all: &[&ConversationView<'_>]) -> Judgment {
    let (mut seen, mut violations) = (0, Vec::new());
    for (position, conversation) in all.iter().enumerate() {
        for (probe, what) in [("replica-list", "the first page of the tools"), ("replica-next-page", "a cursor of the first instance")] {
            let Some(attempt) = conversation.probe(probe) else { continue };
            seen += 1;
            let url = attempt.probed.subject.as_deref().unwrap_or_default();
            let message = match attempt.answer {
                AttemptOutcome::Result { value, .. } if probe == "replica-list" => difference(all, conversation, value)
                    .map(|difference| format!("{url} lists other tools than the first instance: {difference}")),
                AttemptOutcome::Result { .. } => None,
                other => Some(format!("{url}, requested with {what}, returned {}", other.describe())),
            };
            violations.extend(message.map(|message| Violation { conversation: position, ..Violation::new(message, attempt.frames()) }));
        }
    }
    match seen {
        0 if has_sessions(all) => Judgment::NotApplicable("the server has sessions, which belong to the instance that created them".into()),
        0 => Judgment::Untestable("only one instance is known; name another one with `--replica URL`".into()),
        _ => Judgment::from_violations(violations),
    }
}

/// How the first page of another instance differs from that of the first one, in the same revision.
fn difference(all: &[&ConversationView<'_>], replica: &ConversationView<'_>, result: &Value) -> Option<String> {
    let twin = all
        .iter()
        .find(|other| other.conversation.name == "replica's twin" && other.conversation.revision == replica.conversation.revision)?;
    let (items, _) = twin.listed(methods::TOOLS_LIST, "tools").next()?;
    let names = |items: &[Value]| items.iter().map(|tool| name_of(tool).to_owned()).collect::<BTreeSet<_>>();
    let (here, there) = (names(items), names(result.get("tools")?.as_array()?));
    let missing = here.difference(&there).next().map(|name| format!("`{name}` is missing"));
    missing.or_else(|| there.difference(&here).next().map(|name| format!("`{name}` is new")))
}

fn has_sessions(all: &[&ConversationView<'_>]) -> bool {
    let has_id = |headers: &[(String, String)]| headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"));
    let is_sessionful = |conversation: &&ConversationView<'_>| {
        conversation.exchanges.values().any(|exchange| exchange.response.is_some_and(|response| has_id(response.headers)))
    };
    all.iter().all(|conversation| conversation.is_modern() || is_sessionful(conversation)) && !all.iter().any(|one| one.is_modern())
}
