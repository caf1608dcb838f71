//! Streams of notifications that a modern client requests.
//! Source: 2026-07-28, basic/patterns/subscriptions.

use super::modern::is_of_legacy_request;
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{ConversationView, WireMessage};
use mcproof_analysis::probes::LISTEN_TO_UNDECLARED;
use mcproof_protocol::{error_code, methods};
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
        judge: Judge::Each(is_acknowledged_first),
        why: "only the acknowledgement shows a client from when on it gets every notification, and which ones it will not get",
        remedy: "send `notifications/subscriptions/acknowledged` as soon as the request is taken, before anything else",
        ..Rule::DEFAULT
    },
    Rule {
        id: "listen-notifications-are-tagged",
        area: Area::Modern,
        requirement: "every message of a subscription carries its id",
        sources: &[must("basic/patterns/subscriptions#receiving-notifications")],
        judge: Judge::Each(notifications_are_tagged),
        why: "over stdio, all subscriptions share one channel, and only the id distinguishes them",
        remedy: "put the id of the `subscriptions/listen` request, with its type, into `_meta` as `io.modelcontextprotocol/subscriptionId`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "listen-filter-is-honored",
        area: Area::Modern,
        requirement: "a server sends only kinds of notifications that the client requested, and grants only those that it declares",
        sources: &[must("basic/patterns/subscriptions#opening-a-stream")],
        judge: Judge::Each(filter_is_honored),
        why: "a client treats a notification that it did not request as an error, or wakes up needlessly",
        remedy: "store the filter of each subscription, and check it before sending",
        ..Rule::DEFAULT
    },
];

/// A `subscriptions/listen` request and its messages.
struct Subscription<'c> {
    request: &'c WireMessage<'c>,
    answer: Option<&'c WireMessage<'c>>,
    notifications: Vec<&'c WireMessage<'c>>,
}

impl Subscription<'_> {
    fn is_refused(&self) -> bool {
        self.answer.is_some_and(|answer| answer.value.get("error").is_some())
    }

    /// What is wrong with a notification according to the filter.
    fn filter_violation(&self, notification: &WireMessage<'_>) -> Option<String> {
        let method = notification.method()?;
        let attempt = |kind: &str| self.request.param("/notifications").and_then(|filter| filter.get(kind));
        let is_on = |kind: &str| attempt(kind) == Some(&Value::Bool(true));
        let uris = || attempt("resourceSubscriptions").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let is_allowed = match method {
            methods::notifications::SUBSCRIPTIONS_ACKNOWLEDGED => {
                let granted = notification.param("/notifications").and_then(Value::as_object);
                let beyond = granted.into_iter().flatten().find(|(kind, value)| match value {
                    Value::Bool(granted) => *granted && !is_on(kind),
                    Value::Array(granted) => {
                        granted.iter().filter_map(Value::as_str).any(|granted| uris().all(|attempt| attempt != granted))
                            && *kind == "resourceSubscriptions"
                    }
                    _ => false,
                });
                return beyond.map(|(kind, value)| format!("the acknowledgement grants `{kind}` {value}, which was not requested"));
            }
            methods::notifications::TOOLS_LIST_CHANGED => is_on("toolsListChanged"),
            methods::notifications::PROMPTS_LIST_CHANGED => is_on("promptsListChanged"),
            methods::notifications::RESOURCES_LIST_CHANGED => is_on("resourcesListChanged"),
            methods::notifications::RESOURCES_UPDATED => match notification.param("/uri").and_then(Value::as_str) {
                // The update may be about a part of the watched resource.
                Some(uri) => uris().any(|watched| uri.starts_with(watched)),
                None => uris().next().is_some(),
            },
            _ => return None,
        };
        (!is_allowed).then(|| format!("`{method}` came on a subscription that did not request it"))
    }
}

fn is_of_a_subscription(method: &str) -> bool {
    method == methods::notifications::SUBSCRIPTIONS_ACKNOWLEDGED
        || method.ends_with("/list_changed")
        || method == methods::notifications::RESOURCES_UPDATED
}

fn is_acknowledgement(notification: &WireMessage<'_>) -> bool {
    notification.method() == Some(methods::notifications::SUBSCRIPTIONS_ACKNOWLEDGED)
}

fn is_nameless(message: &WireMessage<'_>) -> bool {
    message.method().is_none() && ["result", "error"].iter().all(|member| message.value.get(member).is_none())
}

/// What the acknowledgement alone says does not tell how the rest is sent.
const NO_NOTIFICATION: &str =
    "no subscription got a notification after its acknowledgement (calls that change something may cause one: --call)";

/// Every subscription, and the notifications of subscriptions that belong to none.
fn subscriptions<'c>(conversation: &'c ConversationView<'_>) -> (Vec<Subscription<'c>>, Vec<&'c WireMessage<'c>>) {
    let requests = conversation.requests().filter(|(request, _)| request.method() == Some(methods::SUBSCRIPTIONS_LISTEN));
    let mut all: Vec<Subscription<'c>> =
        requests.map(|(request, answer)| Subscription { request, answer, notifications: Vec::new() }).collect();
    let mut stray = Vec::new();
    let initialized = conversation
        .from_client()
        .find(|wire_message| wire_message.method() == Some(methods::INITIALIZE))
        .map(|wire_message| wire_message.frame.id);
    for wire_message in conversation.from_server().filter(|wire_message| wire_message.is_notification()) {
        if initialized.is_some_and(|initialized| wire_message.frame.id > initialized) {
            break;
        }
        let tag = wire_message.meta("subscriptionId");
        if tag.is_none() && is_of_legacy_request(conversation, wire_message) {
            continue;
        }
        let is_ours = |subscription: &Subscription<'_>| match (subscription.request.exchange, wire_message.exchange, tag) {
            (Some(ours), Some(theirs), _) => ours == theirs,
            (_, _, Some(tag)) => subscription.request.id() == Some(tag),
            (_, _, None) => false,
        };
        // A subscription id of no request counts as none.
        let is_nearest = |subscription: &Subscription<'_>| {
            subscription.request.exchange.is_none()
                && subscription.request.frame.id < wire_message.frame.id
                && wire_message.method().is_some_and(is_of_a_subscription)
        };
        let position = all.iter().rposition(is_ours).or_else(|| all.iter().rposition(is_nearest));
        match position.and_then(|position| all.get_mut(position)) {
            Some(subscription) => subscription.notifications.push(wire_message),
            None if wire_message.method().is_some_and(is_of_a_subscription) => stray.push(wire_message),
            None => {}
        }
    }
    (all, stray)
}

/// Why subscriptions cannot be judged if there is none.
fn without_any(conversation: &ConversationView<'_>, all: &[Subscription<'_>]) -> Option<Judgment> {
    if all.iter().any(|subscription| !subscription.is_refused()) {
        return None;
    }
    let declared = ["tools/listChanged", "prompts/listChanged", "resources/listChanged", "resources/subscribe"]
        .into_iter()
        .find(|path| conversation.capability(path).is_some());
    Some(match (declared, all.first().and_then(|subscription| subscription.answer)) {
        (None, None) if conversation.handshake().is_some() => Judgment::NotApplicable("the server declares nothing to subscribe to".into()),
        (_, None) => Judgment::Untestable("no subscription was requested".into()),
        (_, Some(answer)) => {
            let code = answer.value.pointer("/error/code").unwrap_or(&Value::Null);
            Judgment::Untestable(format!("`subscriptions/listen` got error {code}"))
        }
    })
}

fn is_acknowledged_first(conversation: &ConversationView<'_>) -> Judgment {
    let (all, _) = subscriptions(conversation);
    if let Some(judgment) = without_any(conversation, &all) {
        return judgment;
    }
    let (mut seen, mut violations) = (0, Vec::new());
    for subscription in all.iter().filter(|subscription| !subscription.is_refused()) {
        let first = subscription.notifications.first();
        let attempt = subscription.request.frame.id;
        let was_silent = || {
            let probes = conversation.conversation.probes.iter();
            probes.filter(|probed| probed.contains(attempt)).any(|probed| probed.outcome == ProbeOutcome::Silent)
        };
        let status = subscription.request.exchange.and_then(|id| conversation.exchanges.get(&id)?.status());
        if let Some(status) = status.filter(|status| ![200, 401, 403].contains(status)) {
            violations.push(Violation::new(format!("a subscription got status {status}"), [attempt]));
            continue;
        }
        match (first, subscription.answer) {
            (Some(first), _) if first.method() == Some(methods::notifications::SUBSCRIPTIONS_ACKNOWLEDGED) => {
                seen += 1;
                let again = subscription
                    .notifications
                    .iter()
                    .skip(1)
                    .find(|one| one.method() == Some(methods::notifications::SUBSCRIPTIONS_ACKNOWLEDGED));
                violations.extend(
                    again.map(|again| Violation::new("a subscription was acknowledged twice", [attempt, first.frame.id, again.frame.id])),
                );
            }
            // It may have been the acknowledgement, and `message-has-method-or-outcome` tells what is wrong with it.
            (Some(first), _)
                if conversation.from_server().any(|said| (attempt..first.frame.id).contains(&said.frame.id) && is_nameless(said)) => {}
            (Some(first), _) => {
                let message = format!("a subscription began with `{}`", first.method().unwrap_or_default());
                violations.push(Violation::new(message, [attempt, first.frame.id]));
            }
            (None, Some(answer)) => {
                violations.push(Violation::new("a subscription got a response without an acknowledgement", [attempt, answer.frame.id]));
            }
            (None, None) if was_silent() => violations.push(Violation::new("a subscription was not acknowledged in time", [attempt])),
            (None, None) => {}
        }
    }
    violations.extend(refused_beside_others(conversation, &all));
    violations.truncate(1);
    Judgment::of(violations, seen, "the connection ended before a subscription was acknowledged")
}

/// A subscription that was refused although another one began: "messages belonging to other subscriptions MAY be interleaved", so that there
/// may be several.
fn refused_beside_others(conversation: &ConversationView<'_>, all: &[Subscription<'_>]) -> Option<Violation> {
    let is_begun = |subscription: &&Subscription<'_>| {
        subscription.notifications.first().and_then(|first| first.method()) == Some(methods::notifications::SUBSCRIPTIONS_ACKNOWLEDGED)
    };
    let other = all.iter().find(is_begun)?;
    let refused = all.iter().filter(|subscription| {
        subscription.notifications.is_empty() && !conversation.is_within(subscription.request.frame.id, &[LISTEN_TO_UNDECLARED])
    });
    let (request, answer, code) = refused
        .filter_map(|subscription| Some((subscription.request, subscription.answer?)))
        .filter_map(|(request, answer)| Some((request, answer, answer.value.pointer("/error/code")?.as_i64()?)))
        // With a code of its own a server may say how many it takes.
        .find(|(.., code)| *code == error_code::INTERNAL_ERROR)?;
    let mut frames = [other.request.frame.id, request.frame.id, answer.frame.id];
    frames.sort_unstable();
    Some(Violation::new(format!("a subscription got error {code}, although another one was acknowledged"), frames))
}

fn notifications_are_tagged(conversation: &ConversationView<'_>) -> Judgment {
    let (all, _) = subscriptions(conversation);
    if let Some(judgment) = without_any(conversation, &all) {
        return judgment;
    }
    let (mut seen, mut violations) = (0, Vec::new());
    for subscription in &all {
        for notification in &subscription.notifications {
            seen += usize::from(!is_acknowledgement(notification));
            let tag = notification.meta("subscriptionId");
            if tag == subscription.request.id() {
                continue;
            }
            let method = notification.method().unwrap_or_default();
            let how = tag.map_or_else(
                || "no `subscriptionId`".to_owned(),
                |tag| format!("the `subscriptionId` {tag}, not {}", subscription.request.id().unwrap_or(&Value::Null)),
            );
            violations.push(Violation::new(format!("`{method}` has {how}"), [subscription.request.frame.id, notification.frame.id]));
        }
    }
    violations.dedup_by(|later, first| later.message == first.message);
    Judgment::of(violations, seen, NO_NOTIFICATION)
}

/// What came on a subscription when the client had canceled it, and the server had responded to what followed. One notification may
/// have been under way in the server itself; several are not.
fn outlives_cancellation(conversation: &ConversationView<'_>, subscription: &Subscription<'_>) -> Option<Violation> {
    let canceled = conversation.cancellation_of(subscription.request.id()?)?;
    let acknowledgement = |request: &WireMessage<'_>| {
        let mut messages = conversation.from_server();
        messages.find(|wire_message| wire_message.is_notification() && wire_message.meta("subscriptionId") == request.id())
    };
    let mut later = conversation.requests().filter(|(request, _)| request.frame.id > canceled.frame.id);
    let heard = later.find_map(|(request, answer)| answer.or_else(|| acknowledgement(request)))?;
    let late: Vec<_> = subscription.notifications.iter().filter(|notification| notification.frame.id > heard.frame.id).collect();
    let [first, second, ..] = late[..] else { return None };
    let message = format!("`{}` came on a subscription that the client had canceled", first.method().unwrap_or_default());
    Some(Violation::new(message, [subscription.request.frame.id, canceled.frame.id, first.frame.id, second.frame.id]))
}

const SELDOM_REQUESTED: &str = "clients seldom request what is not declared";

/// The acknowledgement "only includes notification types the server actually supports", which are those that it declares.
fn grants_undeclared(conversation: &ConversationView<'_>, subscription: &Subscription<'_>) -> Option<Violation> {
    const CHANGES: [(&str, &str); 3] = [
        ("toolsListChanged", "tools/listChanged"),
        ("promptsListChanged", "prompts/listChanged"),
        ("resourcesListChanged", "resources/listChanged"),
    ];
    let acknowledgement = subscription
        .notifications
        .iter()
        .find(|notification| notification.method() == Some(methods::notifications::SUBSCRIPTIONS_ACKNOWLEDGED))?;
    let granted = |kind: &str| acknowledgement.param("/notifications").and_then(|granted| granted.get(kind)) == Some(&Value::Bool(true));
    let (kind, path) = CHANGES.into_iter().find(|(kind, path)| granted(kind) && conversation.lacks(path))?;
    let message = format!("the acknowledgement grants `{kind}`, and the server does not declare `{}`", path.replace('/', "."));
    let violation = Violation::new(message, [subscription.request.frame.id, acknowledgement.frame.id]);
    Some(Violation { tolerance: Some(SELDOM_REQUESTED), ..violation })
}

fn filter_is_honored(conversation: &ConversationView<'_>) -> Judgment {
    let (all, stray) = subscriptions(conversation);
    let mut violations: Vec<Violation> = Vec::new();
    for subscription in &all {
        // Another rule reports notifications before the acknowledgement.
        let from_acknowledgement = subscription
            .notifications
            .iter()
            .skip_while(|notification| notification.method() != Some(methods::notifications::SUBSCRIPTIONS_ACKNOWLEDGED));
        for notification in from_acknowledgement {
            if let Some(message) = subscription.filter_violation(notification) {
                violations.push(Violation::new(message, [subscription.request.frame.id, notification.frame.id]));
            }
        }
    }
    violations.extend(all.iter().filter_map(|subscription| outlives_cancellation(conversation, subscription)));
    violations.extend(all.iter().find_map(|subscription| grants_undeclared(conversation, subscription)));
    if let Some(first) = stray.first() {
        let method = first.method().unwrap_or_default();
        violations.push(Violation::new(
            format!("`{method}` came outside of any subscription"),
            stray.iter().take(3).map(|wire_message| wire_message.frame.id),
        ));
    }
    violations.dedup_by(|later, first| later.message == first.message);
    let notifications = all.iter().flat_map(|subscription| &subscription.notifications);
    let seen = notifications.filter(|notification| !is_acknowledgement(notification)).count();
    match (violations.is_empty(), without_any(conversation, &all)) {
        (true, Some(judgment)) => judgment,
        _ => Judgment::of(violations, seen, NO_NOTIFICATION),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_analysis::example;

    fn listen(id: u32, probe: &str, filter: &str) -> String {
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let params = format!(r#"{{"notifications":{filter},"_meta":{meta}}}"#);
        format!("@ {probe}\n> {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"subscriptions/listen\",\"params\":{params}}}\n")
    }

    fn acknowledgement(id: u32, granted: &str) -> String {
        let params = format!(r#"{{"notifications":{granted},"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}"#);
        format!("< {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{params}}}\n")
    }

    fn is_broken(judge: fn(&ConversationView<'_>) -> Judgment, text: &str) -> bool {
        let take = example::read(text, "stdio", "2026-07-28");
        matches!(judge(&ConversationView::new(&take)), Judgment::Broken(_))
    }

    #[test]
    fn a_second_subscription_is_taken_as_the_first_was() {
        let first = listen(1, "listen", r#"{"toolsListChanged":true}"#) + &acknowledgement(1, r#"{"toolsListChanged":true}"#);
        let check = |probe: &str, code: i32, expected: bool| {
            let error = format!("< {{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{{\"code\":{code},\"message\":\"no\"}}}}");
            let text = format!("{first}{}{error}", listen(2, probe, "{}"));
            assert_eq!(is_broken(is_acknowledged_first, &text), expected, "{text}");
        };
        check("listen-to-nothing", -32603, true);
        check("listen-to-nothing", -32602, false);
        check("listen-to-undeclared", -32603, false);
        assert!(!is_broken(is_acknowledged_first, &format!("{first}{}{}", listen(2, "listen-to-nothing", "{}"), acknowledgement(2, "{}"))));
    }

    #[test]
    fn what_is_not_declared_is_not_granted() {
        let discovered = |tools: &str| {
            let request = r#"> {"jsonrpc":"2.0","id":0,"method":"server/discover","params":{}}"#;
            let result = format!(r#"{{"supportedVersions":["2026-07-28"],"capabilities":{{"tools":{tools}}}}}"#);
            format!("{request}\n< {{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{result}}}\n")
        };
        let check = |tools: &str, granted: &str, expected: bool| {
            let listened = listen(1, "listen-to-undeclared", r#"{"toolsListChanged":true}"#) + &acknowledgement(1, granted);
            let text = discovered(tools) + &listened;
            assert_eq!(is_broken(filter_is_honored, &text), expected, "{text}");
        };
        check(r#"{"listChanged":true}"#, r#"{"toolsListChanged":true}"#, false);
        check("{}", r#"{"toolsListChanged":true}"#, true);
        check(r#"{"listChanged":false}"#, r#"{"toolsListChanged":true}"#, true);
        check("{}", r#"{"toolsListChanged":false}"#, false);
        check("{}", "{}", false);
    }
}
