//! One cause, one finding: a server that serves nothing any more breaks whatever it is asked next. The rule that says so, and
//! the step after judging that puts the findings which follow from it under it. Pure, like all judges.

use super::ConversationView;
use super::answers::{Pairing, Request, death, died_of_abuse, first_abuse};
use super::connections::{connections_in_the_way, is_unended, waits_for_connections};
use super::follows;
use super::http_messages::NO_ANSWERS_TO_GET;
use super::jsonrpc::RESPONSES;
use super::lifecycle::reason_of;
use super::lost_sessions::{flickering, refusal, short_lived};
use super::rule_definition::{Area, Judge, Judgment, Rule, Violation};
use super::sse_sessions::{ON_ITS_STREAM, OWN_STREAM};
use mcproof_analysis::probes::{SAME_ID, parallel_number};
use mcproof_analysis::{HttpExchange, messages};
use mcproof_protocol::{Era, Revision, error_code::INTERNAL_ERROR, methods};
use mcproof_record::{Finding, FrameBody, FrameId, Judged, Opened, ProbeOutcome, RuleResult, Severity};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The rule that tells it.
pub(super) const GOES_ON: &str = "requests-continue-to-be-served";

/// The rule that tells how a process ended.
const STAYS_ALIVE: &str = "server-stays-alive";

/// The rule that tells that even the handshake was not served.
const HANDSHAKE: &str = "initialize-gets-result";

/// What to do about connections that are in the way of one another.
const SIDE_BY_SIDE: &str =
    "serve each connection in a thread or task of its own (`ThreadingHTTPServer`, not `HTTPServer`), and each request on it";

/// Fewer requests that fail in the same way may have reasons of their own.
pub(super) const LEAST_FAILING: usize = 3;

pub(super) const RULES: &[Rule] = &[Rule {
    id: GOES_ON,
    area: Area::Lifecycle,
    requirement: "a server continues to serve ordinary requests",
    sources: RESPONSES,
    judge: Judge::Together(goes_on),
    why: "a server that fails at every request is of no use, whatever else is right or wrong about it",
    remedy: "check the log of the server for the first request that failed; the findings that it caused disappear with it",
    ..Rule::DEFAULT
}];

/// Requests that a healthy server answers, or refuses with an error that says why.
const ORDINARY: [&str; 7] = [
    methods::INITIALIZE,
    methods::SERVER_DISCOVER,
    methods::PING,
    methods::TOOLS_LIST,
    methods::PROMPTS_LIST,
    methods::RESOURCES_LIST,
    methods::RESOURCES_TEMPLATES_LIST,
];

pub(super) const HANDSHAKES: [&str; 2] = [methods::INITIALIZE, methods::SERVER_DISCOVER];

/// In which way requests fail.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Failure {
    Status(u16),
    /// A success whose body is a page, as a proxy shows it while nobody is behind it.
    Page,
    /// The connection ended without a response.
    Closed,
    InternalError,
    Silence,
    /// Connections are in the way of one another.
    Blocked,
    /// How the process ended.
    End(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(formatter, "got status {status}"),
            Self::Page => write!(formatter, "got an HTML page instead of an MCP response"),
            Self::Closed => write!(formatter, "got no response, because the connection was closed"),
            Self::InternalError => write!(formatter, "got the error {INTERNAL_ERROR}"),
            Self::Silence | Self::Blocked => write!(formatter, "got no response"),
            Self::End(how) => formatter.write_str(how),
        }
    }
}

/// An ordinary request and what came of it.
pub(super) struct Outcome<'c> {
    pub(super) method: &'c str,
    pub(super) frames: Vec<FrameId>,
    /// `None` if it was served.
    pub(super) failure: Option<Failure>,
}

/// In time, as long as the server was only sent what it has to serve.
fn outcomes<'c>(conversation: &'c ConversationView<'_>) -> Vec<Outcome<'c>> {
    all_outcomes(conversation).0
}

/// The outcomes, and those of requests that were refused with a status from 300 to 499.
pub(super) fn all_outcomes<'c>(conversation: &'c ConversationView<'_>) -> (Vec<Outcome<'c>>, Vec<Outcome<'c>>) {
    let pairing = Pairing::of(conversation);
    let end = first_abuse(conversation);
    // Where the process ended, that is why its connections were closed.
    let is_alive = death(conversation).is_none();
    let (mut outcomes, mut refused) = (Vec::new(), Vec::new());
    for wire_message in
        conversation.from_client().filter(|wire_message| wire_message.is_request() && end.is_none_or(|end| wire_message.frame.id < end))
    {
        let Some(method) = wire_message.method().filter(|method| ORDINARY.contains(method)) else { continue };
        let is_parallel = wire_message.param("/_meta/progressToken").and_then(parallel_number).is_some();
        if is_parallel || wire_message.param("/cursor").is_some() {
            continue;
        }
        let Some(request) = pairing.requests.iter().position(|request| request.frame == wire_message.frame.id) else { continue };
        let reply = pairing.answer_to(request);
        let exchange = wire_message.exchange.and_then(|id| conversation.exchanges.get(&id));
        let response = exchange.and_then(|exchange| exchange.response);
        let closed = exchange.and_then(|exchange| exchange.end).filter(|(_, broken)| broken.is_some() && response.is_none());
        let frames = [Some(wire_message.frame.id), response.map(|response| response.frame.id), reply.map(|reply| reply.frame)];
        let frames = frames.into_iter().chain([closed.map(|(frame, _)| frame.id)]).flatten().collect();
        let probed = conversation.conversation.probes.iter().find(|probed| probed.contains(wire_message.frame.id));
        let failure = match (reply, response) {
            (_, Some(response)) if response.status >= 500 => Some(Failure::Status(response.status)),
            (Some(reply), _) if code(reply.value) == Some(INTERNAL_ERROR) => Some(Failure::InternalError),
            // No handshake is in a session that may have ended.
            (_, Some(response)) if response.status == 404 && method == methods::INITIALIZE => Some(Failure::Status(404)),
            (_, Some(response)) if !(200..300).contains(&response.status) => {
                // Refused for what else was wrong about it, or for whatever is sent.
                refused.push(Outcome { method, frames, failure: Some(Failure::Status(response.status)) });
                continue;
            }
            (Some(_), _) => None,
            (None, Some(_)) if exchange.is_some_and(is_page) => Some(Failure::Page),
            (None, _) if closed.is_some() && is_alive => Some(Failure::Closed),
            (None, _) if probed.is_some_and(|probed| probed.outcome == ProbeOutcome::Silent) => Some(Failure::Silence),
            // What became of it is told by how the conversation ended.
            (None, _) => continue,
        };
        outcomes.push(Outcome { method, frames, failure });
    }
    (outcomes, refused)
}

fn is_page(exchange: &HttpExchange<'_>) -> bool {
    let is_html = exchange.header("content-type").is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/html"));
    is_html && exchange.status().is_some_and(|status| (200..300).contains(&status))
}

pub(super) fn code(reply: &Value) -> Option<i64> {
    reply.pointer("/error/code").and_then(Value::as_i64)
}

/// What keeps a server from serving anything.
pub(super) struct ServerFailure {
    pub(super) failure: Failure,
    /// Whether anything was served before.
    pub(super) was_up: bool,
    pub(super) message: String,
    /// Position of the conversation that shows it best.
    pub(super) conversation: usize,
    pub(super) frames: Vec<FrameId>,
    pub(super) scope: Scope,
}

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Everything,
    /// Conversations of the legacy era.
    Sessions,
}

/// The way in which everything fails from some request on, in all conversations, if there is one.
fn outage(conversations: &[&ConversationView<'_>]) -> Option<ServerFailure> {
    if let Some(blocked) = blocked(conversations) {
        return Some(blocked);
    }
    let all: Vec<_> = conversations.iter().map(|conversation| all_outcomes(conversation)).collect();
    lasting(conversations, &all)
        .or_else(|| refusal(conversations, &all))
        .or_else(|| flickering(conversations))
        .or_else(|| short_lived(conversations))
        .or_else(|| now_and_then(&all))
}

/// That connections are in the way of one another: whatever has no response has none for that reason.
fn blocked(conversations: &[&ConversationView<'_>]) -> Option<ServerFailure> {
    let shown = |(position, one): (usize, &&ConversationView<'_>)| Some((position, connections_in_the_way(one)?));
    let (conversation, (message, frames)) = conversations.iter().enumerate().find_map(shown)?;
    let message = message.to_owned();
    Some(ServerFailure { failure: Failure::Blocked, was_up: true, message, conversation, frames, scope: Scope::Everything })
}

fn lasting(conversations: &[&ConversationView<'_>], all: &[(Vec<Outcome<'_>>, Vec<Outcome<'_>>)]) -> Option<ServerFailure> {
    // What is posted to the URL of a stream of HTTP+SSE is nothing that its server has to serve.
    let is_sse = conversations.iter().any(|conversation| conversation.is_over("sse"));
    let is_served = |conversation: &ConversationView<'_>| !is_sse || !conversation.is_over("http");
    let served = conversations.iter().zip(all).map(|(one, (outcomes, _))| if is_served(one) { outcomes.as_slice() } else { &[] });
    let all: Vec<(usize, &[Outcome<'_>])> = served.enumerate().collect();
    let failure = all.iter().flat_map(|(_, outcomes)| *outcomes).find_map(|outcome| outcome.failure.clone())?;
    let fails = |outcome: &&Outcome<'_>| outcome.failure.as_ref() == Some(&failure);
    // Whoever serves something afterwards is not down.
    let is_lasting = |outcomes: &[Outcome<'_>]| {
        let later = outcomes.iter().skip_while(|outcome| outcome.failure.is_none());
        // A handshake is where a session begins, and not what it is for.
        let counts = |outcome: &&Outcome<'_>| outcome.failure.is_some() || !HANDSHAKES.contains(&outcome.method);
        later.filter(counts).all(|outcome| outcome.failure.as_ref() == Some(&failure))
    };
    if !all.iter().all(|(_, outcomes)| is_lasting(outcomes)) {
        return None;
    }
    let failing = || all.iter().flat_map(|(_, outcomes)| *outcomes).filter(fails);
    let count = failing().count();
    let served_first = all.iter().filter(|(_, outcomes)| outcomes.iter().any(|outcome| fails(&outcome)));
    // The conversation that came furthest shows it best.
    let (conversation, best) = served_first.max_by_key(|(_, outcomes)| outcomes.len())?;
    let served: Vec<&str> = best.iter().take_while(|outcome| outcome.failure.is_none()).map(|outcome| outcome.method).collect();
    // Over HTTP, one conversation follows the other: what an earlier one was served came before.
    let follows = served.is_empty() && !conversations[*conversation].is_over("stdio");
    let earlier = all.iter().take_while(|(position, _)| follows && position < conversation);
    let earlier = earlier.flat_map(|(position, outcomes)| outcomes.iter().map(move |outcome| (*position, outcome)));
    let earlier = earlier.filter(|(_, outcome)| outcome.failure.is_none());
    let earlier: Vec<(usize, &str)> = earlier.map(|(position, outcome)| (position, outcome.method)).collect();
    // What fails may be an era, and not what comes later.
    let era = |position: usize| Revision::at(&conversations[position].conversation.revision).era();
    let is_of_other_era = earlier.iter().all(|(position, _)| era(*position) != era(*conversation));
    let methods: BTreeSet<&str> = failing().map(|outcome| outcome.method).collect();
    let is_enough = match (served.is_empty(), earlier.is_empty()) {
        (true, true) => count > 1,
        (true, false) => true,
        (false, _) => count >= LEAST_FAILING && methods.len() > 1,
    };
    if !is_enough {
        return None;
    }
    let message = match (served.as_slice(), earlier.as_slice()) {
        ([], []) => format!("each of {count} ordinary requests {failure}"),
        ([], before) => {
            let eras = is_of_other_era.then(|| (era(before[0].0), era(*conversation)));
            let subject = match (before, eras) {
                ([(_, only)], None) => format!("`{only}` was"),
                ([(_, only)], Some((earlier, _))) => format!("`{only}` of the {earlier} era was"),
                (several, None) => format!("{} requests of an earlier session were", several.len()),
                (several, Some((earlier, _))) => format!("{} requests of the {earlier} era were", several.len()),
            };
            let of_era = eras.map(|(_, later)| format!(" of the {later} era")).unwrap_or_default();
            let later = match count {
                1 => format!("the next request{of_era}"),
                _ => format!("each of the {count} ordinary requests{of_era} after that"),
            };
            format!("{subject} served, and {later} {failure}")
        }
        ([only], _) => format!("`{only}` was served, and each of the {count} ordinary requests after it {failure}"),
        ([first, .., last], _) => {
            let served = served.len();
            format!("{served} requests were served, `{first}` to `{last}`, and each of the {count} ordinary ones after them {failure}")
        }
    };
    let first = best.iter().position(|outcome| fails(&outcome)).unwrap_or_default();
    let frames = shown(best[first.saturating_sub(1)..].iter());
    let is_first = |exchange: &&HttpExchange<'_>| exchange.heads().iter().any(|frame| best[first].frames.contains(frame));
    let why = conversations[*conversation].exchanges.values().find(is_first).map(reason_of).unwrap_or_default();
    let message = format!("{message}{why}");
    let was_up = !served.is_empty() || !earlier.is_empty();
    Some(ServerFailure { failure, was_up, message, conversation: *conversation, frames, scope: Scope::Everything })
}

/// Ordinary requests that now and then get a status of the server's own trouble, and are served at other times: an overloaded
/// process, or one bad instance of several. What only one method or one kind of request gets has another reason.
fn now_and_then(all: &[(Vec<Outcome<'_>>, Vec<Outcome<'_>>)]) -> Option<ServerFailure> {
    let outcomes = || all.iter().enumerate().flat_map(|(position, (outcomes, _))| outcomes.iter().map(move |outcome| (position, outcome)));
    let served: BTreeSet<&str> = outcomes().filter(|(_, outcome)| outcome.failure.is_none()).map(|(_, outcome)| outcome.method).collect();
    let (failure, status) = outcomes().find_map(|(_, outcome)| match outcome.failure {
        Some(Failure::Status(status @ 500..)) => Some((outcome.failure.clone(), status)),
        _ => None,
    })?;
    let failing: Vec<_> = outcomes().filter(|(_, outcome)| outcome.failure == failure && served.contains(outcome.method)).collect();
    let methods: BTreeSet<&str> = failing.iter().map(|(_, outcome)| outcome.method).collect();
    let positions: BTreeSet<usize> = failing.iter().map(|(position, _)| *position).collect();
    if failing.len() < LEAST_FAILING || methods.len() < 2 || positions.len() < 2 {
        return None;
    }
    let message = format!(
        "{} of {} ordinary requests got status {status}, while others like them were served: {}",
        failing.len(),
        outcomes().count(),
        first_of(&methods)
    );
    let conversation = failing[0].0;
    let frames = shown(failing.iter().filter(|(position, _)| *position == conversation).map(|(_, outcome)| *outcome));
    Some(ServerFailure { failure: Failure::Status(status), was_up: true, message, conversation, frames, scope: Scope::Everything })
}

/// The frames of the first few outcomes.
pub(super) fn shown<'o, 'c: 'o>(outcomes: impl Iterator<Item = &'o Outcome<'c>>) -> Vec<FrameId> {
    let frames: BTreeSet<FrameId> = outcomes.take(LEAST_FAILING).flat_map(|outcome| outcome.frames.iter().copied()).collect();
    frames.into_iter().collect()
}

/// The names of the first few methods.
fn first_of(methods: &BTreeSet<&str>) -> String {
    let named: Vec<String> = methods.iter().take(3).map(|method| format!("`{method}`")).collect();
    named.join(", ")
}

/// Processes that end in the same way, upon different ordinary requests.
fn ends(conversations: &[&ConversationView<'_>]) -> Option<ServerFailure> {
    let mut by_how: BTreeMap<String, Vec<(usize, FrameId, String)>> = BTreeMap::new();
    for (position, conversation) in conversations.iter().enumerate() {
        let Some(death) = death(conversation) else { continue };
        let is_end = |body: &FrameBody| {
            matches!(body, FrameBody::Exited { .. }) || matches!(body, FrameBody::HttpEnd { .. }) && conversation.is_over("sse")
        };
        let is_exit = conversation.frames().iter().any(|frame| frame.id == death.frame && is_end(&frame.body));
        let last = conversation.from_client().rfind(|wire_message| wire_message.frame.id < death.frame);
        if let (true, Some(method)) = (is_exit, last.and_then(|wire_message| wire_message.method())) {
            by_how.entry(death.how.clone()).or_default().push((position, death.frame, method.to_owned()));
        }
    }
    let (how, all) = by_how.into_iter().max_by_key(|(_, all)| all.len())?;
    let methods: BTreeSet<&str> = all.iter().map(|(_, _, method)| method.as_str()).collect();
    // What it does not survive by itself tells more, if that is all.
    let is_own = |position: usize, frame: FrameId| {
        let conversation = conversations[position];
        conversation.conversation.opened == Opened::Yes
            && death(conversation).is_some_and(|death| death.frame == frame && !died_of_abuse(conversation, &death))
    };
    let (conversation, frame, _) = all.iter().find(|(position, frame, _)| is_own(*position, *frame))?;
    if methods.len() < 2 {
        return None;
    }
    let message = format!("{how} in {} conversations, after different messages: {}", all.len(), first_of(&methods));
    Some(ServerFailure {
        failure: Failure::End(how),
        was_up: true,
        message,
        conversation: *conversation,
        frames: vec![*frame],
        scope: Scope::Everything,
    })
}

fn goes_on(conversations: &[&ConversationView<'_>]) -> Judgment {
    match outage(conversations) {
        Some(ServerFailure { was_up: false, .. }) => Judgment::Untestable("even the handshake was not served".into()),
        Some(ServerFailure { message, conversation, frames, failure, .. }) => {
            let remedy = (failure == Failure::Blocked).then(|| SIDE_BY_SIDE.to_owned());
            Judgment::Broken(vec![Violation { conversation, remedy, ..Violation::new(message, frames) }])
        }
        None if conversations.iter().any(|one| outcomes(one).iter().any(|outcome| outcome.failure.is_none())) => Judgment::Pass,
        None => Judgment::Untestable("no ordinary request got a response".into()),
    }
}

/// Puts the findings that follow from another one under it.
pub(super) fn fold(results: &mut [RuleResult], conversations: &[ConversationView<'_>]) {
    let concerned: Vec<&ConversationView<'_>> = conversations.iter().filter(|one| one.conversation.opened != Opened::OtherEra).collect();
    fold_crossed(results, conversations);
    fold_unreadable(results, conversations);
    fold_malformed(results, conversations);
    fold_changed_state(results);
    fold_exchanged(results, conversations);
    follows::fold(results, conversations);
    let is_broken = |results: &[RuleResult], rule: &str| {
        results.iter().any(|result| result.rule == rule && matches!(result.judged, Judged::Broken { .. }))
    };
    if let Some(ServerFailure { failure, was_up, scope, .. }) = outage(&concerned) {
        let cause = if was_up { GOES_ON } else { HANDSHAKE };
        if is_broken(results, cause) {
            fold_under(results, conversations, cause, &failure, scope);
            match failure {
                Failure::Closed => fold_end(results, cause),
                Failure::Silence => fold_silence(results, cause),
                _ => {}
            }
            return;
        }
    }
    if is_broken(results, STAYS_ALIVE)
        && let Some(ServerFailure { failure, message, .. }) = ends(&concerned)
    {
        let told = results.iter_mut().filter(|result| result.rule == STAYS_ALIVE).flat_map(findings).next();
        if let Some(cause) = told {
            cause.message = message;
        }
        fold_under(results, conversations, STAYS_ALIVE, &failure, Scope::Everything);
    }
}

/// A process that ended is why its connections were closed.
fn fold_end(results: &mut [RuleResult], rule: &str) {
    let mut how = None;
    for finding in results.iter_mut().filter(|result| result.rule == STAYS_ALIVE).flat_map(findings) {
        finding.cause = Some(rule.to_owned());
        how.get_or_insert_with(|| finding.message.clone());
    }
    let cause = results.iter_mut().filter(|result| result.rule == rule).flat_map(findings).next();
    if let (Some(cause), Some(how)) = (cause, how) {
        cause.message = format!("{}: {how}", cause.message);
    }
}

/// When responses reach the wrong client, it receives responses it did not request, and its own never arrive.
fn fold_crossed(results: &mut [RuleResult], conversations: &[ConversationView<'_>]) {
    let is_of_two =
        |finding: &Finding| [OWN_STREAM, SAME_ID].iter().any(|probe| conversations[finding.conversation].probes(probe).next().is_some());
    let is_told = |result: &mut RuleResult, cause: &str| result.rule == cause && findings(result).any(|finding| is_of_two(finding));
    let Some(cause) = [ON_ITS_STREAM, NO_ANSWERS_TO_GET].into_iter().find(|cause| results.iter_mut().any(|result| is_told(result, cause)))
    else {
        return;
    };
    for result in results.iter_mut().filter(|result| result.rule != cause) {
        findings(result).filter(|finding| is_of_two(finding)).for_each(|finding| finding.cause = Some(cause.to_owned()));
    }
}

/// A client whose responses go to another client waits in vain, although the server goes on serving.
fn fold_silence(results: &mut [RuleResult], silence: &str) {
    let crosses = |result: &mut RuleResult| result.rule == ON_ITS_STREAM && findings(result).any(|finding| finding.cause.is_none());
    if !results.iter_mut().any(crosses) {
        return;
    }
    for result in results.iter_mut().filter(|result| result.rule != ON_ITS_STREAM) {
        let is_silence = result.rule == silence;
        let follows = |finding: &&mut Finding| finding.cause.as_deref() == Some(silence) || is_silence && finding.cause.is_none();
        findings(result).filter(follows).for_each(|finding| finding.cause = Some(ON_ITS_STREAM.to_owned()));
    }
}

/// The rules that tell that a tool which only reads changes what can be seen, and that another one changes it twice.
const CHANGES: [&str; 2] = ["read-only-changes-nothing", "idempotent-changes-nothing-twice"];

/// What a tool changes that only reads changes at any time: another tool cannot be blamed for it.
fn fold_changed_state(results: &mut [RuleResult]) {
    let [cause, follows] = CHANGES;
    let what = |message: &str| Some(message.split_once(", but ")?.1.to_owned());
    let reading = results.iter_mut().filter(|result| result.rule == cause).flat_map(findings);
    let changed: BTreeSet<String> = reading.filter_map(|finding| what(&finding.message)).collect();
    for finding in results.iter_mut().filter(|result| result.rule == follows).flat_map(findings) {
        if what(&finding.message).is_some_and(|what| changed.contains(&what)) {
            finding.cause = Some(cause.to_owned());
        }
    }
}

/// The rule that tells that responses go to other requests than their own.
const CONCURRENT: &str = "concurrent-responses-match-requests";

/// What a call gets while another one waits may be the response to that one.
fn fold_exchanged(results: &mut [RuleResult], conversations: &[ConversationView<'_>]) {
    if !results.iter_mut().any(|result| result.rule == CONCURRENT && findings(result).next().is_some()) {
        return;
    }
    let concurrent: Vec<BTreeSet<FrameId>> = conversations.iter().map(concurrent_calls).collect();
    for result in results.iter_mut().filter(|result| result.rule != CONCURRENT) {
        let follows = |finding: &&mut Finding| finding.frames.iter().any(|frame| concurrent[finding.conversation].contains(frame));
        findings(result).filter(follows).for_each(|finding| finding.cause = Some(CONCURRENT.to_owned()));
    }
}

/// The frames of responses to calls that came while another call waited.
fn concurrent_calls(conversation: &ConversationView<'_>) -> BTreeSet<FrameId> {
    let pairing = Pairing::of(conversation);
    let call = |(index, request): (usize, &Request<'_>)| {
        (request.method() == methods::TOOLS_CALL).then(|| Some((request.frame, pairing.answer_to(index)?.frame)))?
    };
    let calls: Vec<(FrameId, FrameId)> = pairing.requests.iter().enumerate().filter_map(call).collect();
    let overlaps = |one: &(FrameId, FrameId), other: &(FrameId, FrameId)| one != other && one.0 < other.1 && other.0 < one.1;
    calls.iter().filter(|one| calls.iter().any(|other| overlaps(one, other))).map(|(_, response)| *response).collect()
}

/// The rules that tell that a body cannot be read, whatever it is about.
const UNREADABLE_BODIES: [&str; 3] = ["http-content-encoding-is-right", "http-body-length-is-correct", "http-body-is-utf8"];

/// What a response says that cannot be read is not known: whatever else is found wrong with it follows from that.
fn fold_unreadable(results: &mut [RuleResult], conversations: &[ConversationView<'_>]) {
    for cause in UNREADABLE_BODIES {
        let told = results.iter_mut().filter(|result| result.rule == cause).flat_map(findings).next();
        if told.is_none() {
            continue;
        }
        let unreadable: Vec<BTreeSet<FrameId>> = conversations.iter().map(unreadable_responses).collect();
        for result in results.iter_mut().filter(|result| !UNREADABLE_BODIES.contains(&result.rule.as_str())) {
            let follows = |finding: &&mut Finding| finding.frames.iter().any(|frame| unreadable[finding.conversation].contains(frame));
            findings(result).filter(follows).for_each(|finding| finding.cause = Some(cause.to_owned()));
        }
        return;
    }
}

/// Whether a message has the fault of a rule.
type IsMalformed = fn(&Value, Era) -> bool;

/// The rules that tell that the parts of a response on which everything else about it rests have the wrong type.
const MALFORMED: [(&str, IsMalformed); 2] =
    [("message-matches-schema", has_malformed_result), ("error-has-code-and-message", has_malformed_error)];

/// Whether a call succeeded, for example, is not known from a result that is not an object, or that says `"isError": "false"`.
fn fold_malformed(results: &mut [RuleResult], conversations: &[ConversationView<'_>]) {
    for (cause, is_malformed) in MALFORMED {
        if !results.iter_mut().any(|result| result.rule == cause && findings(result).next().is_some()) {
            continue;
        }
        let frames = |one: &ConversationView<'_>| -> BTreeSet<FrameId> {
            let era = if one.is_modern() { Era::Modern } else { Era::Legacy };
            one.from_server()
                .filter(|wire_message| is_malformed(&wire_message.value, era))
                .map(|wire_message| wire_message.frame.id)
                .collect()
        };
        let malformed: Vec<BTreeSet<FrameId>> = conversations.iter().map(frames).collect();
        for result in results.iter_mut().filter(|result| result.rule != cause) {
            let rests_on_capabilities = OF_CAPABILITIES.contains(&result.rule.as_str()) && cause == MALFORMED[0].0;
            let follows = |finding: &&mut Finding| {
                let is_malformed = |frame: &FrameId| malformed[finding.conversation].contains(frame);
                let declares_nothing = || rests_on_capabilities && has_no_capabilities(&conversations[finding.conversation]);
                finding.cause.is_none() && (finding.frames.iter().any(is_malformed) || declares_nothing())
            };
            findings(result).filter(follows).for_each(|finding| finding.cause = Some(cause.to_owned()));
        }
    }
}

/// Rules that hold against a server what it has not declared.
const OF_CAPABILITIES: [&str; 2] = ["capability-is-declared", "discover-is-implemented"];

/// Whether the handshake lacks the object in which capabilities are declared.
fn has_no_capabilities(conversation: &ConversationView<'_>) -> bool {
    conversation.handshake().is_some_and(|(result, _)| !result.get("capabilities").is_some_and(Value::is_object))
}

/// Before 2026-07-28, structured content is an object.
fn has_malformed_result(message: &Value, era: Era) -> bool {
    let Some(result) = message.get("result") else { return false };
    let is_other = |member: &str, is_right: fn(&Value) -> bool| result.get(member).is_some_and(|value| !is_right(value));
    !result.is_object()
        || is_other("isError", Value::is_boolean)
        || messages::misspelt(result, "isError").is_some()
        || era == Era::Legacy && is_other("structuredContent", Value::is_object)
}

fn has_malformed_error(message: &Value, _: Era) -> bool {
    message.get("error").is_some_and(|error| !error.get("code").is_some_and(Value::is_i64))
}

/// The frames of responses with a body that broke off or is not UTF-8.
fn unreadable_responses(conversation: &ConversationView<'_>) -> BTreeSet<FrameId> {
    let is_unreadable = |exchange: &&HttpExchange<'_>| {
        let is_broken = exchange.response.is_some() && exchange.end.is_some_and(|(_, broken)| broken.is_some());
        is_broken || exchange.body.is_some_and(|(_, bytes)| std::str::from_utf8(bytes).is_err())
    };
    let is_unreadable = |exchange: &&HttpExchange<'_>| is_unreadable(exchange) || is_unended(conversation, exchange);
    let frames = conversation.exchanges.values().filter(is_unreadable).flat_map(|exchange| {
        let others = [exchange.body.map(|(frame, _)| frame.id), exchange.end.map(|(frame, _)| frame.id)];
        exchange.heads().into_iter().chain(others.into_iter().flatten())
    });
    frames.collect()
}

/// The first finding of the rule is the cause, and as severe as the worst that follows from it.
fn fold_under(results: &mut [RuleResult], conversations: &[ConversationView<'_>], rule: &str, failure: &Failure, scope: Scope) {
    let is_concerned = |conversation: &&ConversationView<'_>| scope == Scope::Everything || !conversation.is_modern();
    let of = |conversation| Some(conversation).filter(is_concerned).map(|conversation| affected(conversation, failure)).unwrap_or_default();
    let affected: Vec<BTreeSet<FrameId>> = conversations.iter().map(of).collect();
    let (mut worst, mut is_first) = (Severity::Note, true);
    for result in results.iter_mut() {
        let is_own = result.rule == rule;
        for finding in findings(result) {
            if is_own && is_first {
                is_first = false;
            } else if finding.frames.iter().any(|frame| affected[finding.conversation].contains(frame)) {
                finding.cause = Some(rule.to_owned());
                worst = worst.max(finding.severity);
            }
        }
    }
    if let Some(cause) = results.iter_mut().filter(|result| result.rule == rule).flat_map(findings).next() {
        cause.severity = cause.severity.max(worst);
    }
}

fn findings(result: &mut RuleResult) -> impl Iterator<Item = &mut Finding> {
    let findings = match &mut result.judged {
        Judged::Broken { findings } => findings.as_mut_slice(),
        _ => &mut [],
    };
    findings.iter_mut()
}

/// The frames of a conversation that show a way to fail: whoever cites one of them speaks of it.
fn affected(conversation: &ConversationView<'_>, failure: &Failure) -> BTreeSet<FrameId> {
    match failure {
        Failure::Status(_) | Failure::Page => {
            let fails = |exchange: &&HttpExchange<'_>| match failure {
                Failure::Status(status) => exchange.status() == Some(*status),
                _ => is_page(exchange),
            };
            let failing = conversation.exchanges.values().filter(fails);
            let frames = failing.flat_map(|exchange| {
                let others = [exchange.body.map(|(frame, _)| frame.id), exchange.end.map(|(frame, _)| frame.id)];
                exchange.heads().into_iter().chain(others.into_iter().flatten())
            });
            frames.collect()
        }
        Failure::Closed => {
            let failing = conversation.exchanges.values().filter(|exchange| exchange.response.is_none());
            failing.flat_map(|exchange| [Some(exchange.request.id), exchange.end.map(|(frame, _)| frame.id)]).flatten().collect()
        }
        Failure::InternalError => {
            let failing = conversation.from_server().filter(|wire_message| code(&wire_message.value) == Some(INTERNAL_ERROR));
            failing.map(|wire_message| wire_message.frame.id).collect()
        }
        Failure::Blocked => waits_for_connections(conversation),
        Failure::Silence => {
            let unanswered = conversation.requests().filter(|(_, answer)| answer.is_none());
            unanswered.map(|(request, _)| request.frame.id).collect()
        }
        Failure::End(how) => death(conversation).filter(|death| death.how == *how).map(|death| death.frame).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Strictness, example, judge_one};
    use super::*;
    use mcproof_record::Conversation;

    const INITIALIZED: &str = r#"> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}
        < {"jsonrpc":"2.0","id":1,"result":{}}"#;

    fn failing(id: u32, method: &str) -> String {
        format!(
            "> {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}\n\
             < {{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32603,\"message\":\"Internal error\"}}}}"
        )
    }

    fn served(id: u32, method: &str) -> String {
        format!("> {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}\n< {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}")
    }

    fn take(lines: &[String]) -> Conversation {
        example::read(&lines.join("\n"), "stdio", "2025-11-25")
    }

    /// What is told of conversations; nothing if the server goes on.
    fn check(conversations: &[&[String]], expected: Option<&str>) {
        let recorded: Vec<Conversation> = conversations.iter().map(|lines| take(lines)).collect();
        let conversations: Vec<ConversationView<'_>> = recorded.iter().map(ConversationView::new).collect();
        let told = match judge_one(&RULES[0], &conversations, Strictness::Tolerant).judged {
            Judged::Broken { findings } => Some(findings[0].message.clone()),
            _ => None,
        };
        assert_eq!(told.as_deref(), expected, "{conversations:?}", conversations = recorded.len());
    }

    #[test]
    fn a_server_that_serves_nothing_from_some_request_on_is_told_with_what_it_served() {
        let initialized = INITIALIZED.to_owned();
        let down = [initialized.clone(), failing(2, "ping"), failing(3, "tools/list"), failing(4, "ping")];
        let told = "`initialize` was served, and each of the 3 ordinary requests after it got the error -32603";
        check(&[&down], Some(told));
        // One list that fails is that list's fault.
        check(&[&[initialized.clone(), failing(2, "tools/list"), failing(3, "tools/list"), served(4, "ping")]], None);
        check(&[&[initialized.clone(), failing(2, "tools/list"), failing(3, "tools/list"), failing(4, "tools/list")]], None);
        // So is what another conversation shows to work.
        check(&[&down, &[initialized.clone(), failing(2, "tools/list"), served(3, "ping")]], None);
        check(&[&[initialized, served(2, "ping")]], None);
        check(&[&[failing(1, "initialize")], &[failing(1, "initialize")]], None);
    }

    #[test]
    fn over_http_an_earlier_session_shows_that_the_server_was_there() {
        let asked = |method: &str, head: &str, body: &str| {
            let request = format!("> POST /mcp\n> {{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{{}}}}\n");
            format!("{request}{head}\n{body}")
        };
        let check = |conversations: &[String], expected: Option<&str>| {
            let recorded: Vec<Conversation> = conversations.iter().map(|text| example::read(text, "http", "2025-11-25")).collect();
            let conversations: Vec<ConversationView<'_>> = recorded.iter().map(ConversationView::new).collect();
            let told = match judge_one(&RULES[0], &conversations, Strictness::Tolerant).judged {
                Judged::Broken { findings } => Some(findings[0].message.clone()),
                _ => None,
            };
            assert_eq!(told.as_deref(), expected);
        };
        let served = asked("initialize", "< 200 content-type: application/json", r#"< {"jsonrpc":"2.0","id":1,"result":{}}"#);
        let status = |status: &str| asked("initialize", &format!("< {status}"), "");
        let closed = asked("initialize", "! broken connection reset", "");
        let told = "`initialize` was served, and each of the 2 ordinary requests after that got status 500";
        check(&[served.clone(), status("500"), status("500")], Some(told));
        let told = "`initialize` was served, and the next request got status 404";
        check(&[served.clone(), status("404")], Some(told));
        let told = "`initialize` was served, and the next request got no response, because the connection was closed";
        check(&[served.clone(), closed.clone()], Some(told));
        let of_eras = [(served.clone(), "2025-11-25"), (asked("server/discover", "! broken connection reset", ""), "2026-07-28")];
        let recorded = of_eras.map(|(text, revision)| example::read(&text, "http", revision));
        let Judged::Broken { findings } =
            judge_one(&RULES[0], &recorded.each_ref().map(ConversationView::new), Strictness::Tolerant).judged
        else {
            panic!("the modern era is not served")
        };
        let told = "`initialize` of the legacy era was served, and the next request of the modern era got no response, because the connection was closed";
        assert_eq!(findings[0].message, told);
        // A handshake that is refused for what it is.
        check(&[served.clone(), status("400")], None);
        // What was not served before is no outage, and what is served afterwards is none either.
        check(&[status("500"), status("500")], None);
        let listed = asked("tools/list", "< 200 content-type: application/json", r#"< {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#);
        check(&[served, closed.clone(), format!("{closed}\n{listed}")], None);
    }

    fn finding(frames: Vec<FrameId>) -> Finding {
        Finding {
            severity: Severity::Error,
            level: "MUST".into(),
            tolerance: None,
            message: "m".into(),
            conversation: 0,
            frames,
            source: String::new(),
            remedy: String::new(),
            cause: None,
            defect: None,
            accepted: false,
        }
    }

    fn result(rule: &str, findings: Vec<Finding>) -> RuleResult {
        RuleResult { rule: rule.into(), area: "a".into(), requirement: "l".into(), judged: Judged::Broken { findings } }
    }

    #[test]
    fn whoever_waits_for_a_response_that_another_client_gets_waits_because_of_that() {
        let causes = |others: Vec<RuleResult>| {
            let after = Finding { cause: Some(GOES_ON.to_owned()), ..finding(Vec::new()) };
            let mut results = vec![result(GOES_ON, vec![finding(Vec::new())]), result("ping", vec![after, finding(Vec::new())])];
            results.extend(others);
            fold_silence(&mut results, GOES_ON);
            results.iter_mut().flat_map(findings).map(|finding| finding.cause.clone()).collect::<Vec<_>>()
        };
        let under = |cause: &str| Some(cause.to_owned());
        assert_eq!(causes(Vec::new()), [None, under(GOES_ON), None]);
        let crossed = vec![result(ON_ITS_STREAM, vec![finding(Vec::new())])];
        assert_eq!(causes(crossed), [under(ON_ITS_STREAM), under(ON_ITS_STREAM), None, None]);
    }

    #[test]
    fn what_cites_a_failing_response_follows_from_the_outage_and_nothing_else_does() {
        let down = [INITIALIZED.to_owned(), failing(2, "ping"), failing(3, "tools/list"), failing(4, "ping")];
        let recorded = [take(&down)];
        let frame = |id: u64| FrameId(id);
        let frames: Vec<FrameId> = recorded[0].transcript.frames.iter().map(|frame| frame.id).collect();
        let conversations: Vec<ConversationView<'_>> = recorded.iter().map(ConversationView::new).collect();
        let own = judge_one(&RULES[0], &conversations, Strictness::Tolerant);
        let mut results = vec![
            own,
            result("ping", vec![finding(vec![frames[2], frames[3]])]),
            result("initialize", vec![finding(vec![frames[0], frames[1]])]),
            result("nowhere", vec![finding(vec![frame(900)])]),
        ];
        fold(&mut results, &conversations);
        let causes: Vec<Option<String>> = results.iter_mut().flat_map(findings).map(|finding| finding.cause.clone()).collect();
        assert_eq!(causes, [None, Some(GOES_ON.to_owned()), None, None]);
    }
}
