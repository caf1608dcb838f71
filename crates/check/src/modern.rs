//! A client of the modern era: stateless requests with their metadata, and what is wrong with requests that lack it.

use super::calls::Tools;
use super::explorer::{Explorer, FailedDiscovery, headers_of_post};
use super::features::NO_RESOURCE;
use super::optional_members::{OTHER_LEVELS, level_form};
use super::{CheckOptions, EraOutcome, EraSupport, MODERN_CODES, Permission, is_of_gateway, listing, modern_headers};
use mcproof_analysis::ConversationView;
use mcproof_analysis::probes::LEGAL_FORM;
use mcproof_client::{CallFailure, ConnectFailure, ConnectOptions, HeaderCase, Target, Unanswered};
use mcproof_protocol::{EraChoice, Revision, Transport, error_code, meta, methods};
use mcproof_record::{Conversation, Direction, FrameBody, Opened};
use serde_json::{Value, json};
use std::pin::Pin;
use tokio::sync::oneshot;
use tokio::time::sleep;

/// No revision of the protocol.
pub(super) const UNKNOWN_VERSION: &str = "1900-01-01";

/// Neither is this: servers that ask for "at least" take it for one.
pub(super) const FUTURE_VERSION: &str = "2099-12-31";

/// A list: its method, the key of its items, and its capability.
type List = (&'static str, &'static str, &'static str);

/// The process of a server that is not modern is handed on, to whoever wants to talk with it in another way.
pub(super) async fn explore<'a>(check_options: &'a CheckOptions, eras: &EraSupport, hand_on: oneshot::Sender<Explorer<'a>>) -> EraOutcome {
    // What a server remembers of a discovery may outlast the connection: over HTTP nothing may come before this.
    let unprepared = match &check_options.target {
        Target::Http { launch: None, kind, .. } if *kind != Some(Transport::Sse) => unprepared(check_options).await,
        _ => None,
    };
    let opened = match &check_options.target {
        Target::Stdio(_) => Explorer::discover(check_options, "modern", is_of_other_era(check_options, eras)).await,
        Target::Http { .. } => {
            let options = ConnectOptions { era: EraChoice::Modern, ..check_options.options.clone() };
            Explorer::open(check_options, "modern", options).await.map_err(|failed| {
                let (take, failure) = *failed;
                FailedDiscovery { take, failure, still: None }
            })
        }
    };
    eras.report_modern(opened.is_ok());
    match opened {
        Ok(mut explorer) => {
            let kind = explorer.kind();
            let lists: Vec<List> = listing::LISTS.into_iter().filter(|(_, _, capability)| explorer.declares(capability)).collect();
            let first = lists.first().copied();
            let logs = explorer.declares("logging");
            let (conversations, stateless) = match kind {
                Transport::Stdio | Transport::InMemory => {
                    let touring = async {
                        listing::explore(&mut explorer).await;
                        undeclared_logs(&mut explorer, first, logs).await;
                        explorer.end().await
                    };
                    tokio::join!(touring, stateless(check_options, eras, kind, &lists, logs))
                }
                Transport::Http | Transport::Sse => {
                    listing::explore(&mut explorer).await;
                    undeclared_logs(&mut explorer, first, logs).await;
                    (explorer.end().await, stateless(check_options, eras, kind, &lists, logs).await)
                }
            };
            EraOutcome {
                conversations: std::iter::once(conversations).chain(stateless).chain(unprepared).collect(),
                kind: Some(kind),
                failure: None,
            }
        }
        Err(FailedDiscovery { mut take, failure, mut still }) => {
            let mut conversations = Vec::new();
            // A refusal of its own is enough to ask on, which need not wait for the other client.
            let is_refused = matches!(failure, ConnectFailure::BadResult { .. } | ConnectFailure::Refused { .. });
            let is_legacy = !is_refused && eras.is_legacy().await;
            let undiscovered = match &failure {
                ConnectFailure::BadResult { .. } => Undiscovered::Broken,
                // Only modern servers know these errors.
                ConnectFailure::Refused { error, .. } if MODERN_CODES.contains(&error.code) => {
                    conversations.extend(spellings(check_options).await);
                    Undiscovered::Broken
                }
                ConnectFailure::Refused { .. } => look_undiscovered(check_options, eras, &mut still).await,
                // HTTP+SSE belongs to the legacy era alone.
                ConnectFailure::NoModernSse => Undiscovered::OtherEra,
                failure if claims_modern_era(failure, &take) => Undiscovered::Broken,
                // One that speaks no era at all is told with its handshakes.
                ConnectFailure::NoCommonVersion { .. } if !is_legacy => Undiscovered::Broken,
                _ if !is_legacy => Undiscovered::OtherEra,
                // It says which versions it speaks, and clients go on with one of them (servers of the Go SDK), if that is all it does.
                ConnectFailure::NoCommonVersion { .. } => {
                    // Without its type, as what a check awaits is nested deeply.
                    let unlisted: Pin<Box<dyn Future<Output = Option<Conversation>> + Send + '_>> =
                        Box::pin(serves_unlisted(check_options, &mut still));
                    unlisted.await.map_or(Undiscovered::OtherEra, |other| Undiscovered::Modern(Box::new(other)))
                }
                failure => match look_undiscovered(check_options, eras, &mut still).await {
                    // Nothing was said of this era, and nothing is known of it.
                    Undiscovered::Silent if tells_nothing(failure) || take.opened == Opened::Bare => Undiscovered::Broken,
                    other => other,
                },
            };
            let unwanted = match undiscovered {
                Undiscovered::Broken => still,
                Undiscovered::Modern(other) => {
                    conversations.push(*other);
                    still
                }
                Undiscovered::OtherEra | Undiscovered::Silent => {
                    take.opened = Opened::OtherEra;
                    // Nobody may want it.
                    still.and_then(|explorer| hand_on.send(explorer).err())
                }
            };
            if let Some(unwanted) = unwanted {
                unwanted.end().await;
            }
            conversations.insert(0, take);
            EraOutcome { conversations, kind: None, failure: Some(failure) }
        }
    }
}

/// Over once a server that speaks the legacy era has kept this client waiting for much longer than the other one.
async fn is_of_other_era(check_options: &CheckOptions, eras: &EraSupport) {
    if let (true, Some(patience)) = (eras.is_legacy().await, check_options.budget.other_era()) {
        return sleep(patience).await;
    }
    std::future::pending().await
}

/// A request before any discovery.
async fn unprepared(check_options: &CheckOptions) -> Option<Conversation> {
    let mut explorer = Explorer::bare(check_options, "unprepared", Transport::Http, Revision::MODERN.as_str()).await.ok()?;
    explorer.send_request("first-message", Some(methods::TOOLS_LIST), methods::TOOLS_LIST, json!({})).await;
    Some(explorer.end().await)
}

/// Whether a server that refuses everything does so because of the spelling of headers.
async fn spellings(check_options: &CheckOptions) -> Option<Conversation> {
    let kind = super::explorer::transport_of(check_options);
    if kind != Transport::Http {
        return None;
    }
    let mut explorer = Explorer::bare(check_options, "spellings", kind, Revision::MODERN.as_str()).await.ok()?;
    modern_headers::spellings(&mut explorer).await;
    Some(explorer.end().await)
}

/// What a server is that did not let itself be discovered.
enum Undiscovered {
    /// Modern all the same, as this conversation shows.
    Modern(Box<Conversation>),
    /// Modern by what it says, or not known: the failed discovery is what there is to judge.
    Broken,
    OtherEra,
    /// It gave no response that tells, as a server of another era may.
    Silent,
}

/// Whether a server says that it supports this revision, or one that is later, in a result of `server/discover` that cannot be used: it has
/// the wrong content type or status, is in an array or a text that is not JSON, or lists no version of the request's.
fn claims_modern_era(failure: &ConnectFailure, take: &Conversation) -> bool {
    match failure {
        // An error that names other versions is right. A result is not, unless it is that of a legacy server which knows discovery.
        ConnectFailure::NoCommonVersion { supported } => {
            let is_result = ConversationView::new(take).handshake().is_some();
            is_result && supported.iter().any(|version| version.as_str() > Revision::LATEST_LEGACY.as_str())
        }
        _ => take.transcript.frames.iter().filter(|frame| frame.direction == Direction::FromServer).any(|frame| match &frame.body {
            FrameBody::Line { bytes, .. } | FrameBody::HttpBody { bytes, .. } | FrameBody::SseEvent { bytes, .. } => {
                lists_modern_revision(&bytes.to_text())
            }
            _ => false,
        }),
    }
}

fn lists_modern_revision(text: &str) -> bool {
    let mut lists = text.split("supportedVersions").skip(1).filter_map(|rest| rest.split(']').next());
    lists.any(|list| list.contains(Revision::MODERN.as_str()))
}

/// Whether a failure says nothing about eras: nothing was reached, or somebody before the server let nobody in.
fn tells_nothing(failure: &ConnectFailure) -> bool {
    match failure {
        ConnectFailure::Start(_)
        | ConnectFailure::Unauthorized { .. }
        | ConnectFailure::AddressTaken { .. }
        | ConnectFailure::OtherListens { .. }
        | ConnectFailure::NotListening { .. }
        | ConnectFailure::NotLocated { .. } => true,
        ConnectFailure::Unanswered { failure: CallFailure::Unanswered(unanswered), .. } => match unanswered {
            Unanswered::Unreachable(_) => true,
            Unanswered::Response { head, .. } => is_of_gateway(head.status),
        },
        _ => false,
    }
}

/// Asks a server that did not let itself be discovered for something else: a legacy server answers `server/discover` with any error, or not
/// at all, and a modern one without discovery does as well.
async fn look_undiscovered(check_options: &CheckOptions, eras: &EraSupport, still: &mut Option<Explorer<'_>>) -> Undiscovered {
    // The process that refused is as good as another one to hear that it is not modern.
    if let Some(refused) = still.as_mut()
        && serves_modern_era(refused).await == Some(false)
    {
        return Undiscovered::OtherEra;
    }
    // One that is modern after all, or does not respond, is not handed on: a late response would come into the next conversation.
    if let Some(refused) = still.take() {
        refused.end().await;
    }
    let kind = super::explorer::transport_of(check_options);
    let opened = Explorer::bare(check_options, "undiscovered", kind, Revision::MODERN.as_str()).await;
    let Ok(mut explorer) = opened else { return Undiscovered::Silent };
    // Without its type, as what a check awaits is nested deeply.
    let served: Pin<Box<dyn Future<Output = Option<bool>> + Send + '_>> = Box::pin(serves_modern_era(&mut explorer));
    let is_modern = tokio::select! {
        is_modern = served => is_modern,
        () = is_of_other_era(check_options, eras) => None,
    };
    let take = explorer.end().await;
    match is_modern {
        Some(true) => Undiscovered::Modern(Box::new(take)),
        Some(false) => Undiscovered::OtherEra,
        None if was_refused(&take) => Undiscovered::OtherEra,
        None => Undiscovered::Silent,
    }
}

/// The conversation in which a server that lists only other versions at its discovery serves a list in this one all the same. Whoever refuses
/// it has said the same twice.
async fn serves_unlisted(check_options: &CheckOptions, still: &mut Option<Explorer<'_>>) -> Option<Conversation> {
    if check_options.budget.is_one_at_a_time()
        && let Some(refused) = still.take()
    {
        refused.end().await;
    }
    let kind = super::explorer::transport_of(check_options);
    let mut explorer = Explorer::bare(check_options, "undiscovered", kind, Revision::MODERN.as_str()).await.ok()?;
    let answer = first_list(&mut explorer).await;
    let take = explorer.end().await;
    answer.is_some_and(|answer| answer.is_ok() && is_modern(&answer)).then_some(take)
}

/// Whether a server refused a request itself, without a message: as those of earlier revisions do with a version that they do not know.
fn was_refused(take: &Conversation) -> bool {
    let is_refusal = |status: u16| (400..500).contains(&status) && !is_of_gateway(status) && !matches!(status, 401 | 403);
    take.transcript.frames.iter().any(|frame| matches!(frame.body, FrameBody::HttpResponse { status, .. } if is_refusal(status)))
}

/// Whether a server responds to a list as one of the modern era does; `None` if it does not respond. One without tools may have another list.
async fn serves_modern_era(explorer: &mut Explorer<'_>) -> Option<bool> {
    first_list(explorer).await.map(|answer| is_modern(&answer))
}

/// The response to the first list that the server knows, or to the last one if it knows none.
async fn first_list(explorer: &mut Explorer<'_>) -> Option<Result<Value, i64>> {
    let mut unknown = None;
    for (method, ..) in listing::LISTS {
        match explorer.send_request("undiscovered", Some(method), method, json!({})).await {
            Some(Err(error_code::METHOD_NOT_FOUND)) => unknown = Some(Err(error_code::METHOD_NOT_FOUND)),
            Some(answer) => return Some(answer),
            None => break,
        }
    }
    unknown
}

/// Legacy servers may answer a list before their handshake; they know neither this member nor these errors.
fn is_modern(answer: &Result<Value, i64>) -> bool {
    match answer {
        Ok(result) => result.get("resultType").is_some(),
        Err(code) => MODERN_CODES.contains(code),
    }
}

/// Requests without a discovery before them, which have to be understood each by itself.
async fn stateless(check_options: &CheckOptions, eras: &EraSupport, kind: Transport, lists: &[List], logs: bool) -> Option<Conversation> {
    let mut explorer = Explorer::bare(check_options, "stateless", kind, Revision::MODERN.as_str()).await.ok()?;
    let mut listed = Vec::new();
    for (method, key, _) in lists {
        let result = explorer.send_request("first-message", Some(method), method, json!({})).await.and_then(Result::ok);
        listed.push((*method, result.and_then(|result| result.get(key).cloned()).unwrap_or_default()));
    }
    without_metadata(&mut explorer).await;
    versions(&mut explorer).await;
    let uses = uses(&explorer.check_options.calls, &listed);
    misuse(&mut explorer, &uses).await;
    if let (true, Some((method, ..))) = (logs, lists.first()) {
        log_levels(&mut explorer, method).await;
    }
    if kind == Transport::Http {
        modern_headers::take(&mut explorer).await;
    }
    removed(&mut explorer).await;
    if !eras.is_legacy().await {
        legacy_handshake(&mut explorer).await;
    }
    Some(explorer.end().await)
}

/// Requests that lack a part of their metadata.
async fn without_metadata(explorer: &mut Explorer<'_>) {
    for (probe, lacks) in [
        ("without-meta", None),
        ("without-version", Some("protocolVersion")),
        ("without-capabilities", Some("clientCapabilities")),
        ("without-client-info", Some("clientInfo")),
    ] {
        let mut message = explorer.build_message(methods::SERVER_DISCOVER, json!({}));
        match (lacks, message["params"].as_object_mut()) {
            (None, Some(params)) => _ = params.remove("_meta"),
            (Some(key), Some(params)) => {
                if let Some(meta) = params.get_mut("_meta").and_then(Value::as_object_mut) {
                    meta.remove(&format!("io.modelcontextprotocol/{key}"));
                }
            }
            (_, None) => {}
        }
        explorer.send(probe, lacks, message).await;
    }
}

/// What clients do once they know what there is: a list again, a call that is allowed, the reading of a resource, and a prompt.
fn uses(calls: &Permission, listed: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
    let items = |wanted: &str| listed.iter().find(|(method, _)| *method == wanted).and_then(|(_, items)| items.as_array());
    let Tools(tools) = Tools::of(items(methods::TOOLS_LIST).map_or(&[][..], Vec::as_slice), calls);
    let call = tools.first().map(|tool| (methods::TOOLS_CALL, json!({ "name": tool.name, "arguments": tool.arguments })));
    let uri = items(methods::RESOURCES_LIST).and_then(|resources| resources.first()?.get("uri"));
    let read = uri.map(|uri| (methods::RESOURCES_READ, json!({ "uri": uri })));
    let is_free = |prompt: &&Value| {
        let arguments = prompt.get("arguments").and_then(Value::as_array).into_iter().flatten();
        arguments.into_iter().all(|argument| argument.get("required") != Some(&Value::Bool(true)))
    };
    let prompt = items(methods::PROMPTS_LIST).and_then(|prompts| prompts.iter().find(is_free)?.get("name"));
    let get = prompt.map(|name| (methods::PROMPTS_GET, json!({ "name": name })));
    call.into_iter().chain(read).chain(get).chain(listed.iter().rev().take(1).map(|(method, _)| (*method, json!({})))).collect()
}

/// The same with wrong metadata. What is refused of `server/discover` may be served elsewhere.
async fn misuse(explorer: &mut Explorer<'_>, uses: &[(&'static str, Value)]) {
    for (method, params) in uses {
        let message = explorer.build_message(method, params.clone());
        explorer.send("use-right", Some(method), message).await;
        for probe in ["use-without-meta", "use-without-capabilities", "use-without-client-info", "use-in-unsupported-version"] {
            let mut message = explorer.build_message(method, params.clone());
            let Some(params) = message["params"].as_object_mut() else { continue };
            match probe {
                "use-without-meta" => _ = params.remove("_meta"),
                "use-without-capabilities" | "use-without-client-info" => {
                    let key = if probe == "use-without-client-info" { "clientInfo" } else { "clientCapabilities" };
                    if let Some(meta) = params.get_mut("_meta").and_then(Value::as_object_mut) {
                        meta.remove(&format!("io.modelcontextprotocol/{key}"));
                    }
                }
                _ => params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(UNKNOWN_VERSION),
            }
            explorer.send(probe, Some(method), message).await;
        }
    }
}

async fn versions(explorer: &mut Explorer<'_>) {
    for version in [UNKNOWN_VERSION, FUTURE_VERSION] {
        let mut message = explorer.build_message(methods::SERVER_DISCOVER, json!({}));
        message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(version);
        explorer.send("unsupported-version", Some(version), message).await;
    }
}

/// Logs are asked for with each request.
async fn log_levels(explorer: &mut Explorer<'_>, method: &str) {
    for (probe, level) in [("log-level", "error"), ("unknown-log-level", "mcproof-loudest")] {
        let mut message = explorer.build_message(method, json!({}));
        message["params"]["_meta"][meta::LOG_LEVEL] = json!(level);
        explorer.send(probe, Some(level), message).await;
    }
    for level in OTHER_LEVELS {
        let mut message = explorer.build_message(method, json!({}));
        message["params"]["_meta"][meta::LOG_LEVEL] = json!(level);
        explorer.send_briefly(LEGAL_FORM, &level_form(level), message).await;
    }
}

/// The same of a server that has not declared that it logs.
async fn undeclared_logs(explorer: &mut Explorer<'_>, first: Option<(&str, &str, &str)>, logs: bool) {
    if let Some((method, ..)) = first.filter(|_| !logs) {
        let mut message = explorer.build_message(method, json!({}));
        message["params"]["_meta"][meta::LOG_LEVEL] = json!("debug");
        explorer.send("undeclared-log-level", Some("debug"), message).await;
    }
}

/// What a legacy client says first.
fn handshake() -> Value {
    json!({
        "protocolVersion": Revision::LATEST_LEGACY.as_str(),
        "capabilities": {},
        "clientInfo": { "name": "mcproof", "version": "1" },
    })
}

/// What a legacy client says to a server that is none of its era.
async fn legacy_handshake(explorer: &mut Explorer<'_>) {
    let message = json!({ "jsonrpc": "2.0", "id": "mcproof-legacy", "method": "initialize", "params": handshake() });
    if explorer.kind() == Transport::Http {
        explorer.post("legacy-handshake", methods::INITIALIZE, &message, headers_of_post(), HeaderCase::Lower).await;
    } else {
        explorer.send("legacy-handshake", Some(methods::INITIALIZE), message).await;
    }
}

/// What earlier revisions had, asked for by requests of this one. `initialize` comes last, since it may change what a server
/// of both eras takes the connection for.
async fn removed(explorer: &mut Explorer<'_>) {
    // Whoever answers anything answers these as well.
    explorer.send_request("unknown-method", None, "mcproof/no-such-method", json!({})).await;
    let listed = explorer.send_request("list-for-removed", Some(methods::RESOURCES_LIST), methods::RESOURCES_LIST, json!({})).await;
    let uri = match &listed {
        Some(Ok(result)) => result.pointer("/resources/0/uri").cloned().unwrap_or(json!(NO_RESOURCE)),
        _ => json!(NO_RESOURCE),
    };
    for (method, params) in [
        (methods::PING, json!({})),
        (methods::LOGGING_SET_LEVEL, json!({ "level": "error" })),
        (methods::RESOURCES_SUBSCRIBE, json!({ "uri": uri })),
        (methods::RESOURCES_UNSUBSCRIBE, json!({ "uri": uri })),
        (methods::INITIALIZE, handshake()),
    ] {
        let message = explorer.build_message(method, params);
        if explorer.kind() == Transport::Http {
            // With the header that some servers want for any URI, so that they do not stumble over its absence.
            let question = modern_headers::Question::new(method, message["params"].clone());
            explorer.post("removed-method", method, &message, question.headers, HeaderCase::Lower).await;
        } else {
            explorer.send("removed-method", Some(method), message).await;
        }
    }
}
