//! Streams of notifications that a modern client asks for.
//! Source: 2026-07-28, basic/patterns/subscriptions.

use super::rule_definition::{Area, Judge, Judgment, On, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{ConversationView, Said};
use mcproof_record::ProbeOutcome;
use serde_json::Value;

const fn must(source: &'static str) -> RequirementSource {
    RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source }
}

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "listen-is-acknowledged-first",
        area: Area::Modern,
        requirement: "a subscription begins with its acknowledgement",
        sources: &[must("basic/patterns/subscriptions#acknowledgment")],
        on: On::Any,
        tolerance: None,
        judge: Judge::Each(is_acknowledged_first),
        why: "only the acknowledgement tells a client that it misses nothing from now on, and what it will not get",
        remedy: "send `notifications/subscriptions/acknowledged` as soon as the request is taken, before anything else",
        sdks: &[],
        bad: r#"
            @ listen
            > {"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
            < {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#,
        good: r#"
            @ listen
            > {"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
            < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#,
    },
    Rule {
        id: "listen-notifications-are-tagged",
        area: Area::Modern,
        requirement: "everything that comes for a subscription carries its id",
        sources: &[must("basic/patterns/subscriptions#receiving-notifications")],
        on: On::Any,
        tolerance: None,
        judge: Judge::Each(notifications_are_tagged),
        why: "over stdio all subscriptions share one channel, and only the id tells them apart",
        remedy: "put the id of the `subscriptions/listen` request, with its type, into `_meta` as `io.modelcontextprotocol/subscriptionId`",
        sdks: &[],
        bad: r#"
            @ listen
            > {"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
            < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}}}"#,
        good: r#"
            @ listen
            > {"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
            < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#,
    },
    Rule {
        id: "listen-filter-is-honored",
        area: Area::Modern,
        requirement: "a server sends no notification of a kind that the client has not asked for",
        sources: &[must("basic/patterns/subscriptions#opening-a-stream")],
        on: On::Any,
        tolerance: None,
        judge: Judge::Each(filter_is_honoured),
        why: "a client that asked for one thing and gets another treats it as an error, or wakes up for nothing",
        remedy: "keep the filter of each subscription, and compare before sending",
        sdks: &[],
        bad: r#"
            @ listen
            > {"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"promptsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
            < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"promptsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
            < {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#,
        good: r#"
            @ listen
            > {"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"promptsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
            < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"promptsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
            < {"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#,
    },
];

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// A `subscriptions/listen` and what came for it.
struct Listening<'c> {
    request: &'c Said<'c>,
    answer: Option<&'c Said<'c>>,
    notifications: Vec<&'c Said<'c>>,
}

impl Listening<'_> {
    fn is_refused(&self) -> bool {
        self.answer.is_some_and(|answer| answer.value.get("error").is_some())
    }

    /// What is wrong about a notification, in view of the filter.
    fn overstep(&self, notification: &Said<'_>) -> Option<String> {
        let method = notification.method()?;
        let asked = |kind: &str| self.request.param("/notifications").and_then(|filter| filter.get(kind));
        let is_on = |kind: &str| asked(kind) == Some(&Value::Bool(true));
        let uris = || asked("resourceSubscriptions").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let is_allowed = match method {
            ACKNOWLEDGED => {
                let granted = notification.param("/notifications").and_then(Value::as_object);
                let beyond = granted.into_iter().flatten().find(|(kind, value)| match value {
                    Value::Bool(granted) => *granted && !is_on(kind),
                    Value::Array(granted) => {
                        granted.iter().filter_map(Value::as_str).any(|granted| uris().all(|asked| asked != granted))
                            && *kind == "resourceSubscriptions"
                    }
                    _ => false,
                });
                return beyond.map(|(kind, value)| format!("the acknowledgement grants `{kind}` {value}, which was not asked for"));
            }
            "notifications/tools/list_changed" => is_on("toolsListChanged"),
            "notifications/prompts/list_changed" => is_on("promptsListChanged"),
            "notifications/resources/list_changed" => is_on("resourcesListChanged"),
            "notifications/resources/updated" => match notification.param("/uri").and_then(Value::as_str) {
                // The update may be about a part of what is watched.
                Some(uri) => uris().any(|watched| uri.starts_with(watched)),
                None => uris().next().is_some(),
            },
            _ => return None,
        };
        (!is_allowed).then(|| format!("`{method}` came on a subscription that did not ask for it"))
    }
}

fn is_of_a_subscription(method: &str) -> bool {
    method == ACKNOWLEDGED || method.ends_with("/list_changed") || method == "notifications/resources/updated"
}

/// Every subscription, and the notifications of subscriptions that belong to none.
fn listenings<'c>(conversation: &'c ConversationView<'_>) -> (Vec<Listening<'c>>, Vec<&'c Said<'c>>) {
    let requests = conversation.requests().filter(|(request, _)| request.method() == Some("subscriptions/listen"));
    let mut all: Vec<Listening<'c>> = requests.map(|(request, answer)| Listening { request, answer, notifications: Vec::new() }).collect();
    let mut stray = Vec::new();
    let initialized = conversation.from_client().find(|said| said.method() == Some("initialize")).map(|said| said.frame.id);
    for said in conversation.from_server().filter(|said| said.is_notification()) {
        if initialized.is_some_and(|initialized| said.frame.id > initialized) {
            break;
        }
        let tag = said.meta("subscriptionId");
        let is_ours = |listening: &Listening<'_>| match (listening.request.exchange, said.exchange, tag) {
            (Some(ours), Some(theirs), _) => ours == theirs,
            (_, _, Some(tag)) => listening.request.id() == Some(tag),
            (_, _, None) => false,
        };
        // A tag that nobody gave is as good as none.
        let is_nearest = |listening: &Listening<'_>| {
            listening.request.exchange.is_none()
                && listening.request.frame.id < said.frame.id
                && said.method().is_some_and(is_of_a_subscription)
        };
        let position = all.iter().rposition(is_ours).or_else(|| all.iter().rposition(is_nearest));
        match position.and_then(|position| all.get_mut(position)) {
            Some(listening) => listening.notifications.push(said),
            None if said.method().is_some_and(is_of_a_subscription) => stray.push(said),
            None => {}
        }
    }
    (all, stray)
}

/// Why nothing can be said where no subscription came about.
fn without_any(conversation: &ConversationView<'_>, all: &[Listening<'_>]) -> Option<Judgment> {
    if all.iter().any(|listening| !listening.is_refused()) {
        return None;
    }
    let declared = ["tools/listChanged", "prompts/listChanged", "resources/listChanged", "resources/subscribe"]
        .into_iter()
        .find(|path| conversation.capability(path).is_some());
    Some(match (declared, all.first().and_then(|listening| listening.answer)) {
        (None, None) if conversation.handshake().is_some() => {
            Judgment::NotApplicable("the server declares nothing that could be listened to".into())
        }
        (_, None) => Judgment::Untestable("nothing was listened to".into()),
        (_, Some(answer)) => {
            let code = answer.value.pointer("/error/code").unwrap_or(&Value::Null);
            Judgment::Untestable(format!("`subscriptions/listen` got error {code}"))
        }
    })
}

fn is_acknowledged_first(conversation: &ConversationView<'_>) -> Judgment {
    let (all, _) = listenings(conversation);
    if let Some(judgement) = without_any(conversation, &all) {
        return judgement;
    }
    let (mut seen, mut violations) = (0, Vec::new());
    for listening in all.iter().filter(|listening| !listening.is_refused()) {
        let first = listening.notifications.first();
        let asked = listening.request.frame.id;
        let was_silent = || {
            let probes = conversation.conversation.probes.iter();
            probes.filter(|probed| probed.first <= asked && asked < probed.end).any(|probed| probed.outcome == ProbeOutcome::Silent)
        };
        match (first, listening.answer) {
            (Some(first), _) if first.method() == Some(ACKNOWLEDGED) => seen += 1,
            (Some(first), _) => {
                let message = format!("a subscription began with `{}`", first.method().unwrap_or_default());
                violations.push(Violation::new(message, [asked, first.frame.id]));
            }
            (None, Some(answer)) => {
                violations.push(Violation::new("a subscription was answered and never acknowledged", [asked, answer.frame.id]));
            }
            (None, None) if was_silent() => violations.push(Violation::new("a subscription was not acknowledged in time", [asked])),
            (None, None) => {}
        }
    }
    violations.truncate(1);
    Judgment::of(violations, seen, "the connection ended before a subscription was acknowledged")
}

fn notifications_are_tagged(conversation: &ConversationView<'_>) -> Judgment {
    let (all, _) = listenings(conversation);
    if let Some(judgement) = without_any(conversation, &all) {
        return judgement;
    }
    let (mut seen, mut violations) = (0, Vec::new());
    for listening in &all {
        for notification in &listening.notifications {
            seen += 1;
            let tag = notification.meta("subscriptionId");
            if tag == listening.request.id() {
                continue;
            }
            let method = notification.method().unwrap_or_default();
            let how = tag.map_or_else(
                || "no `subscriptionId`".to_owned(),
                |tag| format!("the `subscriptionId` {tag}, not {}", listening.request.id().unwrap_or(&Value::Null)),
            );
            violations.push(Violation::new(format!("`{method}` has {how}"), [listening.request.frame.id, notification.frame.id]));
        }
    }
    violations.dedup_by(|later, first| later.message == first.message);
    Judgment::of(violations, seen, "no subscription brought a notification")
}

fn filter_is_honoured(conversation: &ConversationView<'_>) -> Judgment {
    let (all, stray) = listenings(conversation);
    let mut violations: Vec<Violation> = Vec::new();
    for listening in &all {
        // What comes before the acknowledgement is wrong in any case, and told as that.
        let from_acknowledgement = listening.notifications.iter().skip_while(|notification| notification.method() != Some(ACKNOWLEDGED));
        for notification in from_acknowledgement {
            if let Some(message) = listening.overstep(notification) {
                violations.push(Violation::new(message, [listening.request.frame.id, notification.frame.id]));
            }
        }
    }
    if let Some(first) = stray.first() {
        let method = first.method().unwrap_or_default();
        violations
            .push(Violation::new(format!("`{method}` came outside of any subscription"), stray.iter().take(3).map(|said| said.frame.id)));
    }
    violations.dedup_by(|later, first| later.message == first.message);
    match (violations.is_empty(), without_any(conversation, &all)) {
        (true, Some(judgement)) => judgement,
        _ => Judgment::from_violations(violations),
    }
}
