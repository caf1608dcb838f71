//! The modern era: discovery, self-contained requests, and what this revision removed.
//! Source: 2026-07-28, server/discover, basic, basic/versioning, basic/transports.

use super::answers::and_so_did;
use super::http::evidence;
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{Attempt, AttemptOutcome, ConversationView, WireMessage};
use mcproof_analysis::wording::excerpt;
use mcproof_protocol::{Era, error_code, methods};
use mcproof_record::FrameId;
use serde_json::Value;
use std::collections::BTreeSet;

const fn must(source: &'static str) -> RequirementSource {
    RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source }
}

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "discover-is-implemented",
        area: Area::Modern,
        requirement: "a server of this revision responds to `server/discover` with its versions and capabilities",
        sources: &[must(methods::SERVER_DISCOVER)],
        judge: Judge::Each(discover_is_implemented),
        why: "over stdio, clients use it to detect the era of a server; a server that refuses it is treated as a legacy one",
        remedy: "respond to `server/discover` with `supportedVersions` and `capabilities`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "discover-names-versions",
        area: Area::Modern,
        requirement: "`supportedVersions` lists the versions that a server supports, including the version of the request",
        sources: &[must("server/discover#data-types")],
        judge: Judge::Each(discover_names_versions),
        why: "a client chooses from this list; a missing version is not used, or the client gives up on the server",
        remedy: "list each version as a string, including `2026-07-28`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "result-meta-names-server",
        area: Area::Modern,
        requirement: "a server identifies itself in the `_meta` of its results",
        sources: &[RequirementSource {
            revisions: revisions::MODERN,
            level: RequirementLevel::Should,
            source: "server/discover#data-types",
        }],
        judge: Judge::Each(discover_names_server),
        why: "without a handshake, this is the only place where logs and user interfaces find the name of a server",
        remedy: "put `io.modelcontextprotocol/serverInfo` with `name` and `version` into the `_meta` of the result",
        ..Rule::DEFAULT
    },
    Rule {
        id: "requests-need-no-discovery",
        area: Area::Modern,
        requirement: "any request may be the first on a connection, and gets the same response as it would later",
        sources: &[must("basic#statelessness")],
        judge: Judge::Together(requests_need_no_discovery),
        why: "clients skip discovery, and load balancers send each request to a different instance; a server that depends on earlier requests refuses them",
        remedy: "read version and capabilities from the `_meta` of each request, never from earlier requests",
        ..Rule::DEFAULT
    },
    Rule {
        id: "meta-is-required",
        area: Area::Modern,
        requirement: "a request without `_meta` is refused with error -32602, over HTTP with status 400",
        sources: &[must("basic#meta")],
        judge: Judge::Each(|conversation| versionless(conversation, "without-meta", "a request without `_meta`")),
        why: "a server that guesses the version applies the rules of this version to clients of the next one",
        remedy: "check for `_meta` before anything else, and respond with -32602 if it is missing",
        ..Rule::DEFAULT
    },
    Rule {
        id: "meta-version-is-required",
        area: Area::Modern,
        requirement: "a request whose `_meta` names no version is refused with error -32602, over HTTP with status 400",
        sources: &[must("basic#meta")],
        judge: Judge::Each(|conversation| versionless(conversation, "without-version", "a request whose `_meta` names no version")),
        why: "a server that guesses the version applies the rules of this version to clients of the next one",
        remedy: "respond with -32602 if `io.modelcontextprotocol/protocolVersion` is missing",
        ..Rule::DEFAULT
    },
    Rule {
        id: "meta-capabilities-are-required",
        area: Area::Modern,
        requirement: "a request whose `_meta` has no client capabilities is refused with error -32602, over HTTP with status 400",
        sources: &[must("basic#meta")],
        judge: Judge::Each(|conversation| {
            refused(conversation, "without-capabilities", "a request whose `_meta` has no client capabilities", INVALID_PARAMETERS)
        }),
        why: "a server that assumes capabilities sends requests that clients cannot fulfill",
        remedy: "respond with -32602 if `io.modelcontextprotocol/clientCapabilities` is missing",
        ..Rule::DEFAULT
    },
    Rule {
        id: "meta-client-info-is-optional",
        area: Area::Modern,
        requirement: "a request whose `_meta` does not name the client is served",
        sources: &[must("basic#meta")],
        judge: Judge::Each(client_info_is_optional),
        why: "clients may be configured not to identify themselves",
        remedy: "do not require `io.modelcontextprotocol/clientInfo`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "unsupported-version-error-names-versions",
        area: Area::Modern,
        requirement: "a version that a server does not speak is refused with the error -32022, which names the requested and the supported versions; \
              over HTTP with the status 400",
        sources: &[must("basic/versioning#protocol-version-negotiation")],
        judge: Judge::Each(unsupported_version_is_named),
        why: "without a handshake, this error is how a client learns which version to try next",
        remedy: "respond with -32022, `data.supported` (a list of versions) and `data.requested`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "removed-methods-are-refused",
        area: Area::Modern,
        requirement: "methods that this revision removed are refused as unknown methods",
        sources: &[must("changelog#major-changes")],
        judge: Judge::Each(removed_methods_are_refused),
        why: "a client that uses them relies on state that another instance of the server does not have",
        remedy: "respond with -32601 to `ping`, `logging/setLevel`, `resources/subscribe` and `resources/unsubscribe` with modern `_meta`, and to `initialize` unless earlier revisions are supported as well",
        ..Rule::DEFAULT
    },
    Rule {
        id: "legacy-handshake-names-versions",
        area: Area::Modern,
        requirement: "a server without legacy revisions names its versions in the error response to `initialize`",
        sources: &[RequirementSource {
            revisions: revisions::MODERN,
            level: RequirementLevel::Should,
            source: "basic/versioning#backward-compatibility-with-initialization-based-versions",
        }],
        judge: Judge::Each(legacy_handshake_names_versions),
        why: "a legacy client can only show this error; without the versions its user cannot see that a newer client is needed",
        remedy: "respond to `initialize` with an error whose message or `data.supported` lists the supported versions",
        ..Rule::DEFAULT
    },
    Rule {
        id: "unknown-method-gets-404",
        area: Area::Modern,
        requirement: "over HTTP, error -32601 has status 404",
        sources: &[must("basic/transports/streamable-http#protocol-version-header")],
        on: AppliesTo::Http,
        judge: Judge::Each(unknown_method_gets_404),
        why: "gateways and monitors read the status, not the body, and treat 200 as success",
        remedy: "send status 404 with error -32601",
        ..Rule::DEFAULT
    },
    Rule {
        id: "error-has-http-status-400",
        area: Area::Modern,
        requirement: "over HTTP, the errors -32020, -32021 and -32022 have status 400",
        sources: &[must("schema#missingrequiredclientcapabilityerror")],
        on: AppliesTo::Http,
        judge: Judge::Each(errors_have_their_status),
        why: "gateways and monitors read the status, not the body, and treat 200 as success",
        remedy: "send status 400 with the error; detect it before the response begins",
        ..Rule::DEFAULT
    },
    Rule {
        id: "server-sends-no-requests",
        area: Area::Modern,
        requirement: "a server of this revision sends no requests; it requests input with an `input_required` result",
        sources: &[must("basic/patterns/mrtr")],
        judge: Judge::Each(server_sends_no_requests),
        why: "clients of this revision do not respond to requests, so the server waits forever",
        remedy: "respond with `resultType` `input_required` and put the request into `inputRequests`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "modern-response-has-no-session-id",
        area: Area::Modern,
        requirement: "responses to requests of this revision carry no `Mcp-Session-Id`",
        sources: &[must("basic/transports/streamable-http#backward-compatibility")],
        on: AppliesTo::Http,
        judge: Judge::Each(no_session_id),
        why: "this revision has no sessions; proxies that see the header pin a client to one instance",
        remedy: "leave the header out of responses to requests with modern `_meta`",
        ..Rule::DEFAULT
    },
];

/// An error code, and the HTTP status that has to come with it.
#[derive(Clone, Copy)]
pub(super) struct ExpectedRefusal {
    pub(super) code: i64,
    pub(super) status: u16,
}

const INVALID_PARAMETERS: ExpectedRefusal = ExpectedRefusal { code: error_code::INVALID_PARAMS, status: 400 };
const UNSUPPORTED_VERSION: ExpectedRefusal = ExpectedRefusal { code: error_code::UNSUPPORTED_VERSION, status: 400 };

/// The errors whose status does not depend on the request: schema, HeaderMismatchError, MissingRequiredClientCapabilityError
/// and UnsupportedProtocolVersionError.
const WITH_STATUS: [ExpectedRefusal; 3] = [
    ExpectedRefusal { code: error_code::HEADER_MISMATCH, status: 400 },
    ExpectedRefusal { code: error_code::MISSING_CAPABILITY, status: 400 },
    UNSUPPORTED_VERSION,
];

/// Probes whose own rules judge the status.
const OF_OTHER_RULES: [&str; 5] = ["header", "unsupported-version", "without-", "use-", "fixture"];

/// What is wrong with a refusal, in the words that follow "got"; `None` if nothing is. The outer `None`: no response shows it.
pub(super) fn flaw_of(attempt: &Attempt<'_, '_>, expected: ExpectedRefusal) -> Option<Option<String>> {
    let status = attempt.status();
    if matches!(status, Some(401 | 403)) {
        return None;
    }
    let got = match attempt.answer {
        AttemptOutcome::Silence | AttemptOutcome::Gone | AttemptOutcome::None => return None,
        answer => answer.describe(),
    };
    let with_status = |got: String| match status {
        Some(status) if !matches!(attempt.answer, AttemptOutcome::Status { .. }) => format!("{got} with status {status}"),
        _ => got,
    };
    let is_right = attempt.answer.code() == Some(expected.code) && status.is_none_or(|status| status == expected.status);
    Some((!is_right).then(|| {
        let status = if status.is_some() { format!(" with status {}", expected.status) } else { String::new() };
        format!("{}, not error {}{status}", with_status(got), expected.code)
    }))
}

/// Methods for which an invalid `server/discover` is a valid refusal.
fn refused(conversation: &ConversationView<'_>, probe: &str, what: &str, expected: ExpectedRefusal) -> Judgment {
    let elsewhere = match probe {
        // A request that names no version may belong to an earlier one.
        "without-meta" if supports_legacy(conversation) => return judge_refusals(conversation, probe, what, expected),
        "without-meta" => "use-without-meta",
        "without-capabilities" => "use-without-capabilities",
        "unsupported-version" => "use-in-unsupported-version",
        _ => return judge_refusals(conversation, probe, what, expected),
    };
    let judgment = judge_refusals(conversation, probe, what, expected);
    let mut served = conversation.probes(elsewhere).filter(|attempt| matches!(attempt.answer, AttemptOutcome::Result { .. }));
    match (judgment, served.next()) {
        (Judgment::Pass | Judgment::Untestable(_), Some(attempt)) => {
            let message = format!("{what} got a result, if its method is `{}`", attempt.subject());
            Judgment::Broken(vec![Violation::new(message, attempt.frames())])
        }
        (judgment, _) => judgment,
    }
}

/// All probes of this name have to be refused.
fn judge_refusals(conversation: &ConversationView<'_>, probe: &str, what: &str, expected: ExpectedRefusal) -> Judgment {
    let judge = |attempt: Attempt<'_, '_>| {
        if is_undiscoverable(&attempt) {
            return Judgment::Untestable("`server/discover`, with which it was tried, does not exist".into());
        }
        match flaw_of(&attempt, expected) {
            None => Judgment::Untestable(format!("{what} got {}", attempt.answer.describe())),
            Some(None) => Judgment::Pass,
            Some(Some(flaw)) => Judgment::Broken(vec![Violation::new(format!("{what} got {flaw}"), attempt.frames())]),
        }
    };
    let mut judged: Vec<Judgment> = conversation.probes(probe).map(judge).collect();
    match judged.iter().position(|one| matches!(one, Judgment::Broken(_))) {
        Some(broken) => judged.swap_remove(broken),
        None => judged.into_iter().next().unwrap_or_else(|| Judgment::Untestable(format!("{what} was not tried"))),
    }
}

/// Whether a probe failed because of the method that it used. Over stdio, a server without discovery is not
/// known to be modern, so it gets no such requests.
fn is_undiscoverable(attempt: &Attempt<'_, '_>) -> bool {
    let is_discovery = attempt.request.and_then(WireMessage::method) == Some(methods::SERVER_DISCOVER);
    is_discovery && attempt.status().is_some() && attempt.answer.code() == Some(error_code::METHOD_NOT_FOUND)
}

/// A request that names no version has to be refused. Over stdio, a server of both eras may treat it as a legacy request
/// and refuse it as such.
fn versionless(conversation: &ConversationView<'_>, probe: &str, what: &str) -> Judgment {
    let is_ambiguous = conversation.probe(probe).is_some_and(|attempt| attempt.status().is_none() && attempt.answer.code().is_some());
    if is_ambiguous && supports_legacy(conversation) {
        return Judgment::Pass;
    }
    refused(conversation, probe, what, INVALID_PARAMETERS)
}

fn legacy_handshake_names_versions(conversation: &ConversationView<'_>) -> Judgment {
    if supports_legacy(conversation) {
        return Judgment::NotApplicable("the server supports earlier revisions as well".into());
    }
    let Some(attempt) = conversation.probe("legacy-handshake") else {
        return Judgment::NotTried("no legacy client connected".into());
    };
    match attempt.answer {
        AttemptOutcome::Error { error, .. } if error.to_string().contains(&conversation.conversation.revision) => Judgment::Pass,
        AttemptOutcome::Error { .. } => {
            let message =
                format!("`initialize` got {}, which does not name {}", attempt.answer.describe(), conversation.conversation.revision);
            Judgment::Broken(vec![Violation::new(message, attempt.frames())])
        }
        answer => Judgment::Untestable(format!("`initialize` got {}", answer.describe())),
    }
}

/// Whether the server turned out to support earlier revisions as well.
pub(super) fn supports_legacy(conversation: &ConversationView<'_>) -> bool {
    conversation.conversation.probes.iter().any(|probed| probed.probe == "speaks-legacy")
}

/// Whether a message of the server may belong to a request that a server of both eras serves as one of an earlier revision: one that does not
/// name the revision of the conversation, in its metadata and over HTTP in its header. Where nothing shows what a message belongs to, that is
/// the last request before it, and each that has no response by then.
pub(super) fn is_of_legacy_request(conversation: &ConversationView<'_>, message: &WireMessage<'_>) -> bool {
    if !supports_legacy(conversation) {
        return false;
    }
    let revision = Some(conversation.conversation.revision.as_str());
    let is_legacy = |request: &WireMessage<'_>| {
        let exchange = request.exchange.and_then(|id| conversation.exchanges.get(&id));
        let lacks_header = exchange.is_some_and(|exchange| exchange.request_header("mcp-protocol-version") != revision);
        lacks_header || request.meta("protocolVersion").and_then(Value::as_str) != revision
    };
    let mut earlier = conversation.requests().rev().filter(|(request, _)| request.frame.id < message.frame.id);
    if let Some(exchange) = message.exchange {
        return earlier.any(|(request, _)| request.exchange == Some(exchange) && is_legacy(request));
    }
    let Some((last, _)) = earlier.next() else { return false };
    is_legacy(last) || earlier.any(|(request, answer)| is_legacy(request) && answer.is_none_or(|answer| answer.frame.id > message.frame.id))
}

/// The discoveries that have all their metadata, with their responses.
fn discoveries<'c>(conversation: &'c ConversationView<'_>) -> Vec<(&'c WireMessage<'c>, &'c WireMessage<'c>)> {
    let whole = |request: &WireMessage<'_>| {
        request.method() == Some(methods::SERVER_DISCOVER)
            && request.meta("protocolVersion").and_then(Value::as_str) == Some(conversation.conversation.revision.as_str())
            && ["clientCapabilities", "clientInfo"].iter().all(|key| request.meta(key).is_some())
    };
    conversation.requests().filter(|(request, _)| whole(request)).filter_map(|(request, answer)| Some((request, answer?))).collect()
}

const NO_DISCOVERY: &str = "no `server/discover` request got a result";

fn discover_is_implemented(conversation: &ConversationView<'_>) -> Judgment {
    let answered = discoveries(conversation);
    let flaw = |answer: &WireMessage<'_>| match (answer.value.get("result"), answer.value.get("error")) {
        (Some(result), _) if result.get("capabilities").is_some_and(Value::is_object) => None,
        (Some(_), _) => Some("the response to `server/discover` has no `capabilities`".to_owned()),
        // These codes show that the server is modern and refuses something else.
        (None, Some(error))
            if matches!(
                error.get("code").and_then(Value::as_i64),
                Some(error_code::UNSUPPORTED_VERSION | error_code::MISSING_CAPABILITY | error_code::HEADER_MISMATCH)
            ) =>
        {
            None
        }
        (None, Some(error)) => Some(format!("`server/discover` got error {}", error.get("code").unwrap_or(&Value::Null))),
        (None, None) => None,
    };
    let violations =
        answered.iter().filter_map(|(request, answer)| Some(Violation::new(flaw(answer)?, [request.frame.id, answer.frame.id])));
    Judgment::of(violations.take(1).collect(), answered.len(), "no `server/discover` request got a response")
}

/// Judges the first discovery that has a result.
fn of_discovery(conversation: &ConversationView<'_>, flaw: impl Fn(&WireMessage<'_>, &Value) -> Option<String>) -> Judgment {
    let answered = discoveries(conversation);
    let found = answered.iter().find_map(|(request, answer)| Some((request, answer, answer.value.get("result")?)));
    let Some((request, answer, result)) = found else { return Judgment::Untestable(NO_DISCOVERY.into()) };
    let violation = flaw(request, result).map(|message| Violation::new(message, [request.frame.id, answer.frame.id]));
    Judgment::from_violations(violation.into_iter().collect())
}

fn discover_names_versions(conversation: &ConversationView<'_>) -> Judgment {
    let judgment = versions_are_listed(conversation);
    match refused_although_listed(conversation).filter(|_| !matches!(judgment, Judgment::Broken(_))) {
        Some(violation) => Judgment::Broken(vec![violation]),
        None => judgment,
    }
}

/// A version that a discovery lists, and an error for an unsupported version does not. That may leave out the versions of the legacy era.
fn refused_although_listed(conversation: &ConversationView<'_>) -> Option<Violation> {
    let discoveries = conversation.requests().filter(|(request, _)| request.method() == Some(methods::SERVER_DISCOVER));
    let mut lists = discoveries.filter_map(|(_, answer)| Some((answer?, answer?.value.pointer("/result/supportedVersions")?.as_array()?)));
    let (discovered, listed) = lists.next()?;
    let listed = || listed.iter().filter_map(Value::as_str).filter(|version| Era::of(version) != Some(Era::Legacy));
    let requests = conversation.requests().filter(|(request, _)| request.method() != Some(methods::INITIALIZE));
    requests.filter_map(|(request, answer)| Some((request, answer?))).find_map(|(request, refusal)| {
        let error = refusal.value.get("error").filter(|error| error.get("code") == Some(&Value::from(error_code::UNSUPPORTED_VERSION)))?;
        let supported = error.pointer("/data/supported")?.as_array().filter(|supported| !supported.is_empty())?;
        let missing = listed().find(|version| supported.iter().all(|other| other.as_str() != Some(version)))?;
        let message = format!("`supportedVersions` has `{}`, which error -32022 does not list as supported", excerpt(missing));
        let mut frames = [discovered.frame.id, request.frame.id, refusal.frame.id];
        frames.sort_unstable();
        Some(Violation::new(message, frames))
    })
}

fn versions_are_listed(conversation: &ConversationView<'_>) -> Judgment {
    of_discovery(conversation, |request, result| {
        let versions = match result.get("supportedVersions") {
            None => return Some("the response to `server/discover` has no `supportedVersions`".into()),
            Some(Value::Array(versions)) => versions,
            Some(other) => return Some(format!("`supportedVersions` is not an array: {other}")),
        };
        if let Some(odd) = versions.iter().find(|version| version.as_str().is_none_or(str::is_empty)) {
            return Some(format!("`supportedVersions` contains {odd}, which is not a version"));
        }
        let attempt = request.meta("protocolVersion")?;
        (!versions.contains(attempt))
            .then(|| format!("`supportedVersions` is {}, without {attempt}, the version of the request", Value::from(versions.clone())))
    })
}

fn discover_names_server(conversation: &ConversationView<'_>) -> Judgment {
    of_discovery(conversation, |_, result| {
        let info = result.pointer("/_meta/io.modelcontextprotocol~1serverInfo");
        let missing = ["name", "version"].into_iter().find(|key| info.and_then(|info| info.get(key)?.as_str()).is_none());
        let elsewhere = if result.get("serverInfo").is_some() { "; it is beside `_meta`, where clients do not look for it" } else { "" };
        match (info, missing) {
            (None, _) => Some(format!("the response to `server/discover` has no `serverInfo` in its `_meta`{elsewhere}")),
            (Some(_), Some(key)) => Some(format!("the `serverInfo` of the response to `server/discover` has no `{key}`")),
            (Some(_), None) => None,
        }
    })
}

/// The key of the items in the results of a list.
pub(super) fn key_of(method: &str) -> &'static str {
    match method {
        methods::TOOLS_LIST => "tools",
        methods::RESOURCES_LIST => "resources",
        methods::RESOURCES_TEMPLATES_LIST => "resourceTemplates",
        _ => "prompts",
    }
}

/// What identifies an item of a list.
pub(super) fn identity(item: &Value) -> Option<&str> {
    ["uri", "uriTemplate", "name"].iter().find_map(|key| item.get(key)?.as_str())
}

fn requests_need_no_discovery(conversations: &[&ConversationView<'_>]) -> Judgment {
    let mut missing = "the server lists no items that a first request could use".to_owned();
    let (mut seen, mut violations) = (0, Vec::new());
    let firsts =
        conversations.iter().enumerate().flat_map(|(position, one)| one.probes("first-message").map(move |first| (position, *one, first)));
    for (position, conversation, first) in firsts {
        if conversation.is_over("stdio") && conversation.from_server().next().is_none() {
            "the server did not respond in time, and may still have been starting".clone_into(&mut missing);
            continue;
        }
        let method = first.subject();
        let later: Vec<Attempt<'_, '_>> = conversations
            .iter()
            .flat_map(|other| {
                ["list", "list-again"].into_iter().filter_map(|probe| other.probes(probe).find(|attempt| attempt.subject() == method))
            })
            .collect();
        let names = |answer: &AttemptOutcome<'_>| match answer {
            AttemptOutcome::Result { value, .. } => {
                let items = value.get(key_of(method)).and_then(Value::as_array);
                items.map(|items| items.iter().filter_map(identity).map(str::to_owned).collect::<BTreeSet<_>>())
            }
            _ => None,
        };
        let works_later = later.is_empty() || later.iter().any(|attempt| matches!(attempt.answer, AttemptOutcome::Result { .. }));
        let violation = match (&first.answer, works_later) {
            (AttemptOutcome::Result { .. }, _) => {
                seen += 1;
                let now = names(&first.answer);
                let all: Vec<_> = later.iter().map(|attempt| names(&attempt.answer)).collect();
                let is_stable = all.len() == 2 && all[0].is_some() && all[0] == all[1];
                // Changes caused by calls belong to `list-does-not-depend-on-calls`.
                let is_of_calls =
                    || conversations.iter().any(|other| other.probes("list-after-calls").any(|attempt| names(&attempt.answer) == now));
                let differs = is_stable && now.is_some() && now != all[0] && !is_of_calls();
                differs.then(|| format!("`{method}` before any discovery lists other items than later on another connection"))
            }
            (AttemptOutcome::Gone | AttemptOutcome::None, _) | (_, false) => {
                missing = format!("`{method}` before any discovery got {}", first.answer.describe());
                None
            }
            (answer, true) => Some(format!("`{method}` before any discovery got {}", answer.describe())),
        };
        violations.extend(violation.map(|message| Violation { conversation: position, ..Violation::new(message, first.frames()) }));
    }
    Judgment::of(violations, seen, &missing)
}

fn client_info_is_optional(conversation: &ConversationView<'_>) -> Judgment {
    let what = "a request that does not name its client";
    let is_served = |method: &str| {
        conversation.probes("use-right").any(|right| right.subject() == method && matches!(right.answer, AttemptOutcome::Result { .. }))
    };
    // Other errors may be of the call.
    let of_request = [error_code::INVALID_REQUEST, error_code::INVALID_PARAMS];
    let is_refused =
        |attempt: &Attempt<'_, '_>| attempt.answer.code().is_some_and(|code| of_request.contains(&code)) && is_served(attempt.subject());
    if let Some(refused) = conversation.probes("use-without-client-info").find(is_refused) {
        let message = format!("{what} got {}, if its method is `{}`", refused.answer.describe(), refused.subject());
        return Judgment::Broken(vec![Violation::new(message, refused.frames())]);
    }
    let Some(attempt) = conversation.probe("without-client-info") else {
        return Judgment::Untestable(format!("{what} was not tried"));
    };
    match attempt.answer {
        AttemptOutcome::Result { .. } => Judgment::Pass,
        AttemptOutcome::Error { .. } if !is_undiscoverable(&attempt) => {
            Judgment::Broken(vec![Violation::new(format!("{what} got {}", attempt.answer.describe()), attempt.frames())])
        }
        _ => Judgment::Untestable(format!("{what} got {}", attempt.answer.describe())),
    }
}

fn unsupported_version_is_named(conversation: &ConversationView<'_>) -> Judgment {
    let judgment = refused(conversation, "unsupported-version", "a request in an unknown version", UNSUPPORTED_VERSION);
    if matches!(judgment, Judgment::Broken(_)) {
        return judgment;
    }
    let violations: Vec<Violation> = conversation
        .requests()
        .filter_map(|(request, response)| Some((request, response?)))
        .filter(|(_, response)| response.value.pointer("/error/code").and_then(Value::as_i64) == Some(error_code::UNSUPPORTED_VERSION))
        .filter_map(|(request, response)| {
            let requested = match request.method() {
                Some(methods::INITIALIZE) => request.param("/protocolVersion"),
                _ => request.meta("protocolVersion"),
            };
            let flaw = unsupported_version_flaw(requested, response.value.pointer("/error/data"))?;
            let message = format!("error -32022 for `{}` {flaw}", excerpt(request.method().unwrap_or_default()));
            Some(Violation::new(message, [request.frame.id, response.frame.id]))
        })
        .chain(closed_upon_unknown_versions(conversation))
        .take(1)
        .collect();
    if violations.is_empty() { judgment } else { Judgment::Broken(violations) }
}

/// That requests in unknown versions lose their connections, at a server that serves what comes after them. One alone may be chance, and a
/// server that is gone afterwards has another fault.
fn closed_upon_unknown_versions(conversation: &ConversationView<'_>) -> Option<Violation> {
    let attempts = ["unsupported-version", "use-in-unsupported-version"].into_iter().flat_map(|probe| conversation.probes(probe));
    let closed: Vec<_> = attempts.filter(|attempt| attempt.http.is_some() && matches!(attempt.answer, AttemptOutcome::Gone)).collect();
    let [first, _, ..] = closed.as_slice() else { return None };
    let last = closed.iter().filter_map(|attempt| Some(attempt.http?.request.id)).max()?;
    let is_served_later = conversation.exchanges.values().any(|exchange| exchange.request.id > last && exchange.status().is_some());
    let message = "a request in an unknown version got no response, because the connection was closed";
    is_served_later.then(|| Violation::new(message, evidence(first)))
}

/// What is wrong with the `data` of an error -32022: `{ supported: string[], requested: string }` (2026-07-28, schema,
/// `UnsupportedProtocolVersionError`).
fn unsupported_version_flaw(requested: Option<&Value>, data: Option<&Value>) -> Option<String> {
    let (supported, named) = (data.and_then(|data| data.get("supported")), data.and_then(|data| data.get("requested")));
    let Some(supported) = supported else { return Some("has no `data.supported`".into()) };
    let versions = supported.as_array().filter(|list| !list.is_empty() && list.iter().all(Value::is_string));
    let Some(versions) = versions else {
        return Some(format!("has a `data.supported` that is not a list of versions: {supported}"));
    };
    if requested.is_some_and(|requested| versions.contains(requested)) {
        return Some("lists the refused version as supported".into());
    }
    if let Some(unknown) = versions.iter().filter_map(Value::as_str).find(|version| !is_version(version)) {
        return Some(format!("lists {} as supported, which is not a version of the protocol", excerpt(unknown)));
    }
    match named {
        None => Some("has no `data.requested`".into()),
        Some(named) if requested.is_some_and(|requested| requested != named) => Some(format!("has {named} as `data.requested`")),
        Some(_) => None,
    }
}

/// A date, be it of a revision that was never released or is newer than this program, or the name of a draft.
fn is_version(version: &str) -> bool {
    version.starts_with("DRAFT") || version.parse::<jiff::civil::Date>().is_ok()
}

fn removed_methods_are_refused(conversation: &ConversationView<'_>) -> Judgment {
    if conversation.probe("unknown-method").is_some_and(|attempt| matches!(attempt.answer, AttemptOutcome::Result { .. })) {
        return Judgment::Untestable("the server responds to any method with a result".into());
    }
    // Another code for unknown methods is the subject of a rule of its own.
    let usual_code = conversation.probe("unknown-method").and_then(|attempt| attempt.answer.code()).unwrap_or(error_code::METHOD_NOT_FOUND);
    let mut seen = 0;
    let mut violations = Vec::new();
    for attempt in conversation.probes("removed-method") {
        let method = attempt.subject();
        let flaw = match &attempt.answer {
            // The server supports earlier revisions, too: this is how they begin.
            AttemptOutcome::Result { .. } if method == methods::INITIALIZE => continue,
            AttemptOutcome::Result { .. } => Some(format!("`{method}` still returns a result")),
            // A server of both eras may refuse this request with an error of its earlier revisions.
            AttemptOutcome::Error { .. }
                if method != methods::INITIALIZE
                    && (attempt.status().is_some() || !supports_legacy(conversation))
                    && ![Some(error_code::METHOD_NOT_FOUND), Some(usual_code)].contains(&attempt.answer.code()) =>
            {
                Some(format!("`{method}`, which this revision removed, got {}", attempt.answer.describe()))
            }
            AttemptOutcome::Error { .. } => None,
            _ => continue,
        };
        seen += 1;
        violations.extend(flaw.map(|flaw| Violation::new(flaw, attempt.frames())));
    }
    Judgment::of(violations, seen, "no request with a removed method got a response")
}

fn errors_have_their_status(conversation: &ConversationView<'_>) -> Judgment {
    let is_of_other_rule = |frame: FrameId| {
        let mut probes =
            conversation.conversation.probes.iter().filter(|probed| OF_OTHER_RULES.iter().any(|start| probed.probe.starts_with(start)));
        probes.any(|probed| probed.contains(frame))
    };
    let (mut seen, mut violations) = (0, Vec::new());
    for (request, answer) in conversation.requests().filter(|(request, _)| !is_of_other_rule(request.frame.id)) {
        let code = answer.and_then(|answer| answer.value.pointer("/error/code")?.as_i64());
        let Some(expected) = WITH_STATUS.into_iter().find(|known| Some(known.code) == code) else { continue };
        let Some((exchange, status)) =
            request.exchange.and_then(|id| conversation.exchanges.get(&id)).and_then(|one| Some((one, one.status()?)))
        else {
            continue;
        };
        seen += 1;
        if status != expected.status && violations.is_empty() {
            let method = request.method().unwrap_or_default();
            let message = format!("`{method}` got error {} with status {status}, not {}", expected.code, expected.status);
            let frames = exchange.heads().into_iter().chain(answer.map(|answer| answer.frame.id));
            violations.push(Violation::new(message, frames));
        }
    }
    Judgment::of(violations, seen, "no request got one of these errors")
}

fn unknown_method_gets_404(conversation: &ConversationView<'_>) -> Judgment {
    let tried = conversation.probes("unknown-method").chain(conversation.probes("removed-method"));
    let refused: Vec<Attempt<'_, '_>> =
        tried.filter(|attempt| attempt.answer.code() == Some(error_code::METHOD_NOT_FOUND) && attempt.status().is_some()).collect();
    let mut wrong = refused.iter().filter(|attempt| attempt.status() != Some(404));
    let Some(first) = wrong.next() else {
        return Judgment::of(Vec::new(), refused.len(), "no unknown method got error -32601");
    };
    let method = first.request.and_then(WireMessage::method).unwrap_or_default();
    let others = and_so_did(wrong.count());
    let status = first.status().unwrap_or_default();
    Judgment::Broken(vec![Violation::new(format!("`{method}` got error -32601 with status {status}{others}"), first.frames())])
}

/// Where a server of both eras accepted a legacy handshake, if it did.
fn turned_legacy(conversation: &ConversationView<'_>) -> Option<FrameId> {
    let initialized = conversation.requests().find(|(request, answer)| {
        request.method() == Some(methods::INITIALIZE) && answer.is_some_and(|answer| answer.value.get("result").is_some())
    });
    initialized.map(|(request, _)| request.frame.id)
}

fn server_sends_no_requests(conversation: &ConversationView<'_>) -> Judgment {
    let turned = turned_legacy(conversation);
    let messages: Vec<_> =
        conversation.from_server().filter(|wire_message| turned.is_none_or(|turned| wire_message.frame.id < turned)).collect();
    let is_asking = |wire_message: &&&WireMessage<'_>| wire_message.is_request() && !is_of_legacy_request(conversation, wire_message);
    let asking: Vec<_> = messages.iter().filter(is_asking).collect();
    let mut violations = Vec::new();
    if let Some(first) = asking.first() {
        let others = if asking.len() > 1 { format!(", the first of {}", asking.len()) } else { String::new() };
        let message = format!("the server sent the request `{}`{others}", first.method().unwrap_or_default());
        violations.push(Violation::new(message, asking.iter().take(3).map(|wire_message| wire_message.frame.id)));
    }
    Judgment::of(violations, messages.len(), "the server sent no message")
}

fn no_session_id(conversation: &ConversationView<'_>) -> Judgment {
    let modern = conversation
        .from_client()
        .filter(|wire_message| wire_message.meta("protocolVersion").is_some() && wire_message.method() != Some(methods::INITIALIZE));
    let answered: Vec<_> = modern
        .filter_map(|wire_message| Some((wire_message, conversation.exchanges.get(&wire_message.exchange?)?)))
        // Without the header, the server may have treated it as a legacy request.
        .filter(|(wire_message, exchange)| {
            exchange.response.is_some()
                && exchange.request_header("mcp-protocol-version") == wire_message.meta("protocolVersion").and_then(Value::as_str)
        })
        .collect();
    let mut with_id = answered.iter().filter(|(_, exchange)| exchange.header("mcp-session-id").is_some());
    let violations = with_id.next().map(|(wire_message, exchange)| {
        let method = wire_message.method().unwrap_or_default();
        Violation::new(format!("the response to `{method}` has an `Mcp-Session-Id`"), exchange.heads())
    });
    Judgment::of(violations.into_iter().collect(), answered.len(), "no request got a response")
}
