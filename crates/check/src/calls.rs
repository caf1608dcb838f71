//! Calls of the tools that may be called, with arguments made from their schemas and with wrong ones.

use super::explorer::{AT_ONCE, Explorer, ParallelOutcome, ParallelRequest, left_out_because, timed_out};
use super::listing::whole;
use super::{CheckOptions, Permission, features, growth, tasks};
use mcproof_analysis::arguments::{self, Unusual};
use mcproof_analysis::probes::fixtures::SAMPLED;
use mcproof_analysis::probes::{
    CALL_AS_CANCELING_HOST, CALL_AS_HOST, CALL_AS_LIMITED_HOST, CALL_WITH_CANCEL, CALL_WITH_INPUT, CALLER, EXPLORED_IN_PART, INPUT_ROUNDS,
    LEGAL_FORM, MOST_QUESTIONS, SILENT_AGAIN, SILENT_BESIDE_CANCELED, UNANSWERED_CALL, UNUSUAL_UNANSWERED,
};
use mcproof_analysis::{ConversationView, named};
use mcproof_client::{Answers, Asked, AskedLog, ConnectOptions, Elicitation, Sampling, Subscription};
use mcproof_protocol::{EraChoice, Revision, Transport, meta, methods};
use mcproof_record::{Conversation, FrameId, Opened};
use serde_json::{Map, Value, json};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Tools that are called with arguments as they should be, and with wrong ones.
const MOST_TOOLS: usize = 20;
/// Tools that are called with unusual arguments of each kind before any other is.
const MOST_ODD_TOOLS: usize = 8;
/// Properties of one tool that are left out, or given another type.
const MOST_PROPERTIES: usize = 2;
/// Calls of a tool that miss a bound of its schema, from one for each kind of bound on.
const MOST_BOUNDS: usize = 6;
/// Calls of a tool with other arguments that its schema accepts as well.
const MOST_ALTERNATIVES: usize = 6;
/// A call is cancelled after this.
const PATIENCE: Duration = Duration::from_millis(1200);
/// The first calls of all tools after less, where the server was quick to start: everything else waits for the slowest of them.
const LEAST_PATIENCE: Duration = Duration::from_millis(700);
/// What tools get that did not answer in that time: nothing is known of those that do not answer in this one either.
const LONG_PATIENCE: Duration = Duration::from_secs(5);
/// The same where progress is reported.
const LONGEST_PATIENCE: Duration = Duration::from_secs(12);
/// Tools that are waited for so long: as many as are called at the same time.
const MOST_WAITED_FOR: usize = 6;
/// Tools that require input and get it.
const MOST_ASKING: usize = 4;
/// Until the first of several calls goes out, on a machine that is busy.
const MOMENT: Duration = Duration::from_millis(200);
/// For what calls have left to do.
const REST: Duration = Duration::from_millis(1200);
/// Calls of a tool that was silent at times until one of them is late.
const MOST_PATIENT: usize = 24;
/// Tools that are called like that.
const MOST_AT_TIMES: usize = 2;
/// Calls with something unusual that are repeated with that patience, of each kind.
const MOST_SILENT: usize = 2;
/// For all calls of a kind together, if tools are quick.
const BUDGET: Duration = Duration::from_secs(3);
/// If they take their time, and nobody said that they do.
const LONG_BUDGET: Duration = Duration::from_secs(12);

/// What takes longer is not called any number of times.
const SLOW: Duration = Duration::from_millis(300);
/// A call that takes longer can be cancelled in its midst.
const CANCELABLE: Duration = Duration::from_millis(120);
/// How often one is cancelled until it is certain what came of it.
const CANCELLATIONS: usize = 5;
/// The id of the call that is, but for a number.
const CANCELLED: &str = "mcproof-cancelled";

/// The id of the request that follows the cancellation, but for a number.
const HEARD: &str = "mcproof-cancellation-heard";

/// What a client may declare that can be asked.
const ROOTS: &str = "roots";
const ELICITATION: &str = "elicitation";
const SAMPLING: &str = "sampling";

/// A tool that may be called, with arguments that its schema accepts.
#[derive(Clone, Debug)]
pub(super) struct Callable {
    pub(super) name: String,
    pub(super) tool: Value,
    pub(super) arguments: Value,
}

/// What may be called, as far as it is known before a conversation.
#[derive(Clone, Debug, Default)]
pub(super) struct Tools(pub(super) Vec<Callable>);

impl Tools {
    /// Those of a list. If there are many, the ones that were named come first, then a sample over the whole list.
    pub(super) fn of(tools: &[Value], permission: &Permission) -> Self {
        let allowed = tools.iter().filter(|tool| permission.allows(tool) && !needs_task(tool));
        let (mut first, rest): (Vec<&Value>, Vec<&Value>) = allowed.partition(|tool| permission.names(tool));
        let room = MOST_TOOLS.saturating_sub(first.len()).min(rest.len());
        first.extend((0..room).map(|index| rest[index * rest.len() / room]));
        Self(first.into_iter().filter_map(Callable::of).collect())
    }

    pub(super) fn in_takes(conversations: &[Conversation], permission: &Permission) -> Self {
        let listed = conversations.iter().find_map(|take| {
            let conversation = ConversationView::new(take);
            let tools: Vec<Value> = conversation.tools().into_iter().map(|(tool, _)| tool.clone()).collect();
            (!tools.is_empty()).then_some(tools)
        });
        Self::of(&listed.unwrap_or_default(), permission)
    }
}

impl Callable {
    fn of(tool: &Value) -> Option<Self> {
        let name = tool.get("name")?.as_str()?.to_owned();
        let arguments = arguments::minimal(tool.get("inputSchema")?)?;
        Some(Self { name, tool: tool.clone(), arguments })
    }

    /// All that may be called, be it as a task only.
    fn all(tools: &[Value], permission: &Permission) -> Vec<Self> {
        tools.iter().filter(|tool| permission.allows(tool)).filter_map(Self::of).collect()
    }

    pub(super) fn call(&self, probe: &'static str, arguments: Value) -> ParallelRequest {
        let params = json!({ "name": self.name, "arguments": arguments });
        ParallelRequest { probe, subject: self.name.clone(), method: methods::TOOLS_CALL, params }
    }

    fn schema(&self) -> &Value {
        &self.tool["inputSchema"]
    }

    /// Such a tool may be called again. Most authors say no more than this; `openWorldHint` is then true by default.
    fn reads_only(&self) -> bool {
        self.tool.pointer("/annotations/readOnlyHint") == Some(&json!(true))
    }
}

fn needs_task(tool: &Value) -> bool {
    tool.pointer("/execution/taskSupport") == Some(&json!("required"))
}

/// Of this kind of conversation.
const NAME: &str = CALLER;

/// A client that calls tools as they should be called, and as a model gets it wrong. `None` if nothing may be called. What it finds
/// that may be called is told as soon as it is known.
pub(super) async fn explore(check_options: &CheckOptions, explorer: Explorer<'_>, tell: impl FnOnce(Tools)) -> Option<Conversation> {
    let mut explorer = explorer.with_most_of_time();
    let listed = list(&mut explorer).await;
    let tools = Tools::of(&listed, &check_options.calls);
    tell(tools.clone());
    let Tools(tools) = tools;
    let also_as_tasks = Callable::all(&listed, &check_options.calls);
    if also_as_tasks.is_empty() {
        explorer.end().await;
        return None;
    }
    let allowed = also_as_tasks.iter().filter(|tool| !needs_task(&tool.tool)).count();
    if tools.len() < allowed {
        explorer.record_observation(EXPLORED_IN_PART, &format!("{} of {allowed} tools that may be called were called", tools.len()));
    }
    let spared = listed.iter().filter(|tool| !check_options.calls.allows(tool)).filter_map(|tool| tool.get("name")?.as_str());
    let spared: Vec<String> = spared.map(str::to_owned).collect();
    // `Permission::mark` tells what `all` leaves out.
    if !spared.is_empty() && !check_options.calls.is_all() {
        let were = if spared.len() == 1 { "was" } else { "were" };
        let message = format!("{} {were} not called: not declared read-only (allow calls with --call)", named(&spared));
        explorer.record_observation(EXPLORED_IN_PART, &message);
    }
    // Without its type, as what a check awaits is nested deeply.
    let opening: Pin<Box<dyn Future<Output = Vec<Subscription>> + Send + '_>> = Box::pin(features::open_subscriptions(&mut explorer));
    let subscriptions = opening.await;
    let Called { slow: seem_slow, quick, quickest } = call(&mut explorer, &tools).await;
    features::close_subscriptions(subscriptions).await;
    let goes_on = call_again(&mut explorer, &quick).await;
    call_without_arguments(&mut explorer, &quick).await;
    if let Some(tool) = quickest.filter(|_| goes_on) {
        let others = quick.into_iter().filter(|other| other.name != tool.name && growth::is_harmless(other));
        growth::take(&mut explorer, tool, others).await;
    }
    let last_look = tasks::take(&mut explorer, &also_as_tasks).await;
    // On a busy machine quick ones do as well, so that each is tried until one is.
    let until = Instant::now() + BUDGET;
    for tool in seem_slow {
        if cancel(&mut explorer, tool).await || Instant::now() >= until {
            break;
        }
    }
    let at_times = explorer.silent_at_times();
    for tool in tools.iter().filter(|tool| tool.reads_only() && at_times.contains(&tool.name)).take(MOST_AT_TIMES) {
        wait_for_late(&mut explorer, tool).await;
    }
    if !explorer.is_over() {
        let after = whole(&mut explorer, "list-after-calls", methods::TOOLS_LIST, "tools").await;
        // A list that changes by itself changes again, and then the first change says nothing of the calls.
        if after != listed {
            whole(&mut explorer, "list-after-calls-again", methods::TOOLS_LIST, "tools").await;
        }
    }
    if let Some(last_look) = last_look {
        last_look.take(&mut explorer).await;
    }
    Some(explorer.end().await)
}

/// One who is about to call.
///
/// # Errors
/// There is no conversation in this era. If the server did not respond in time, which says nothing of it where others were served: the one that
/// did not come about, marked as left out.
pub(super) async fn open(check_options: &CheckOptions, era: EraChoice) -> Result<Explorer<'_>, Option<Conversation>> {
    Explorer::open_in(check_options, NAME, era).await.map_err(|failed| {
        let (conversation, failure) = *failed;
        timed_out(&failure).then(|| too_late(conversation, "the process that was to call the tools did not start in time"))
    })
}

/// A conversation that did not come about in time, where that says nothing of the server.
fn too_late(conversation: Conversation, reason: &str) -> Conversation {
    Conversation { opened: Opened::Bare, probes: vec![left_out_because(reason.to_owned(), FrameId(0))], ..conversation }
}

/// A host that has called all tools that only read, and stays: what a call began may end the process later.
pub(super) enum Host<'c> {
    Stays {
        explorer: Box<Explorer<'c>>,
        since: Instant,
        /// What other hosts may declare, of what this one was asked for.
        limits: Vec<Map<String, Value>>,
    },
    Refused(Conversation),
}

impl Host<'_> {
    /// The capabilities of hosts that can do only a part of what this one was asked for.
    pub(super) fn limits(&self) -> Vec<Map<String, Value>> {
        match self {
            Self::Stays { limits, .. } => limits.clone(),
            Self::Refused(_) => Vec::new(),
        }
    }

    pub(super) async fn end(self) -> Conversation {
        let (mut explorer, since) = match self {
            Self::Stays { explorer, since, .. } => (explorer, since),
            Self::Refused(conversation) => return conversation,
        };
        // Another process has met that by its next conversation.
        let rest = REST.saturating_sub(since.elapsed());
        if explorer.kind() == Transport::Stdio && explorer.check_options.budget.left() > rest {
            sleep(rest).await;
            explorer.send_request("after-calls", None, explorer.any_method(), json!({})).await;
        }
        if !explorer.is_modern() {
            change_roots(&mut explorer).await;
        }
        explorer.end().await
    }
}

/// Says that the roots have changed, as a host does whose user opens a folder, and asks for something. Comes last: what a server does then
/// may last.
async fn change_roots(explorer: &mut Explorer<'_>) {
    let method = explorer.any_method();
    let told = json!({ "jsonrpc": "2.0", "method": methods::notifications::ROOTS_LIST_CHANGED });
    explorer.send("roots-changed", None, told).await;
    let message = explorer.build_request(json!("mcproof-roots-changed"), method, json!({}));
    explorer.send_briefly(LEGAL_FORM, "`notifications/roots/list_changed` before it", message).await;
}

/// A host that can be asked: for what its user says, for what a model says, and for its roots. Some tools ask only then.
pub(super) async fn call_as_host<'c>(check_options: &'c CheckOptions, era: EraChoice, tools: &Tools) -> Option<Host<'c>> {
    let calls = calls_of_readers(tools, CALL_AS_HOST);
    if calls.is_empty() {
        return None;
    }
    let asked = AskedLog::default();
    let host = Answers { asked: Some(asked.clone()), ..answers_of_host(|_| true) };
    let answers = check_options.options.answers.clone().or(&host);
    // What a modern server asks for without end is bounded by its rounds.
    let bounded = if era == EraChoice::Modern { answers.clone() } else { answers.clone().up_to(MOST_QUESTIONS) };
    let options = ConnectOptions { era, answers: bounded, roots_change: true, ..check_options.options.clone() };
    let mut explorer = match Explorer::open(check_options, "host", options).await {
        // A slow tool may be called only once by others, with a number.
        Ok(explorer) => explorer.with_texts_as_tokens_first(),
        Err(failed) => return Some(Host::Refused(failed.0)),
    };
    list(&mut explorer).await;
    let outcomes = explorer.request_in_parallel(&calls, PATIENCE, time_for_calls(check_options)).await;
    if explorer.is_modern() {
        for (call, outcome) in calls.iter().zip(&outcomes).filter(|(_, outcome)| requires_input(outcome)).take(MOST_ASKING) {
            if let Some(Ok(result)) = &outcome.response {
                give_input(&mut explorer, &answers, call, result).await;
            }
        }
    } else if asked.all().iter().any(|asked| asked.method == methods::ELICITATION_CREATE) {
        ask_alone(&mut explorer, &answers, &calls, &outcomes).await;
        cancel_forms(&mut explorer, &answers, &asked, &calls, &outcomes).await;
    }
    // That it is still there is seen by what is no call.
    explorer.send_request("after-calls", None, explorer.any_method(), json!({})).await;
    // In the modern era each request declares what it can do.
    let limits = if explorer.is_modern() { Vec::new() } else { limits_after(&asked.all(), Revision::at(explorer.revision())) };
    Some(Host::Stays { explorer: Box::new(explorer), since: Instant::now(), limits })
}

fn calls_of_readers(tools: &Tools, probe: &'static str) -> Vec<ParallelRequest> {
    tools.0.iter().filter(|tool| tool.reads_only()).map(|tool| tool.call(probe, tool.arguments.clone())).collect()
}

/// The answers to what a host declares.
fn answers_of_host(declares: impl Fn(&str) -> bool) -> Answers {
    Answers {
        roots: declares(ROOTS).then(|| vec!["file:///mcproof".into()]),
        // A form may want what nobody knows.
        elicitation: declares(ELICITATION).then_some(Elicitation::Decline),
        sampling: declares(SAMPLING).then(|| Sampling::Text(SAMPLED.into())),
        ..Answers::default()
    }
}

/// What hosts declare that can do only a part of what another one was asked for: forms in both spellings, pages alone, no tools for the
/// model, no model. Who never asks, or asks for no more than every host can do, meets none of them.
fn limits_after(asked: &[Asked], revision: Revision) -> Vec<Map<String, Value>> {
    let needs = |part: &str| asked.iter().any(|asked| asked.part == Some(part));
    let needs_page = needs("url");
    // There are modes from this revision on.
    let needs_form = needs("form") && revision >= Revision::V2025_11_25;
    let needs_model = asked.iter().any(|asked| asked.method == methods::SAMPLING_CREATE_MESSAGE);
    let limits = [
        (needs_page || needs("tools"), json!({ ELICITATION: {}, SAMPLING: {} })),
        (needs_page, json!({ ROOTS: {}, ELICITATION: { "form": {} } })),
        (needs_form, json!({ ROOTS: {}, ELICITATION: { "url": {} } })),
        (needs_model && !needs_form, json!({ ROOTS: {} })),
    ];
    limits.into_iter().filter(|(is_due, _)| *is_due).filter_map(|(_, limit)| limit.as_object().cloned()).collect()
}

/// The same calls by hosts that declare less, each in a conversation of its own: a legacy client declares it once, in the handshake.
pub(super) async fn call_as_limited_hosts(
    check_options: &CheckOptions,
    tools: &Tools,
    limits: Vec<Map<String, Value>>,
) -> Vec<Conversation> {
    let (calls, mut conversations) = (calls_of_readers(tools, CALL_AS_LIMITED_HOST), Vec::new());
    for limit in limits {
        let answers = answers_of_host(|capability| limit.contains_key(capability)).up_to(MOST_QUESTIONS);
        let mut options = ConnectOptions { era: EraChoice::Legacy, answers, ..check_options.options.clone() };
        options.client.capabilities.retain(|name, _| ![ROOTS, ELICITATION, SAMPLING].contains(&name.as_str()));
        options.client.capabilities.extend(limit);
        let conversation = match Explorer::open(check_options, "limited host", options).await {
            Ok(mut explorer) => {
                list(&mut explorer).await;
                explorer.request_in_parallel(&calls, PATIENCE, Instant::now() + BUDGET).await;
                explorer.end().await
            }
            Err(failed) => {
                let (conversation, failure) = *failed;
                match timed_out(&failure) {
                    true => too_late(conversation, "a process that was to call the tools as a host that can do less did not start in time"),
                    false => conversation,
                }
            }
        };
        conversations.push(conversation);
    }
    conversations
}

/// Calls tools by themselves whose calls failed while the user was asked: what is asked over stdio does not say which call it belongs to.
async fn ask_alone(explorer: &mut Explorer<'_>, answers: &Answers, calls: &[ParallelRequest], outcomes: &[ParallelOutcome]) {
    // One that asks without end would be heard in the midst of the others.
    if outcomes.iter().any(|outcome| outcome.response.is_none()) {
        return;
    }
    for (call, _) in calls.iter().zip(outcomes).filter(|(_, outcome)| has_failed(outcome)).take(MOST_ASKING) {
        explorer.session().set_client_responses(answers.clone().up_to(MOST_QUESTIONS));
        explorer.request_in_parallel(std::slice::from_ref(call), PATIENCE, Instant::now() + PATIENCE).await;
    }
}

/// Calls the tools by themselves until those that ask the user did so, who closes each form this time.
async fn cancel_forms(
    explorer: &mut Explorer<'_>,
    answers: &Answers,
    asked: &AskedLog,
    calls: &[ParallelRequest],
    outcomes: &[ParallelOutcome],
) {
    if answers.elicitation != Some(Elicitation::Decline) {
        return;
    }
    let forms = || asked.all().iter().filter(|asked| asked.method == methods::ELICITATION_CREATE).count();
    let (all, until) = (forms(), Instant::now() + BUDGET);
    for (call, _) in calls.iter().zip(outcomes).filter(|(_, outcome)| outcome.response.is_some()) {
        if explorer.is_over() || Instant::now() >= until || forms() >= all * 2 {
            break;
        }
        let call = ParallelRequest { probe: CALL_AS_CANCELING_HOST, ..call.clone() };
        explorer.session().set_client_responses(canceling(answers).up_to(MOST_QUESTIONS));
        for patience in [PATIENCE, LONG_PATIENCE] {
            let outcomes = explorer.request_in_parallel(std::slice::from_ref(&call), patience, Instant::now() + patience + MOMENT).await;
            if outcomes.iter().all(|outcome| outcome.response.is_some()) {
                break;
            }
        }
    }
    explorer.session().set_client_responses(answers.clone().up_to(MOST_QUESTIONS));
}

/// The same answers, of a user who closes each form.
fn canceling(answers: &Answers) -> Answers {
    Answers { elicitation: Some(Elicitation::Cancel), ..answers.clone() }
}

/// The call once more, with the input that it requires.
fn retried(call: &ParallelRequest, probe: &'static str, input: Map<String, Value>) -> ParallelRequest {
    let mut retry = ParallelRequest { probe, ..call.clone() };
    if let Some(params) = retry.params.as_object_mut() {
        params.extend(input);
    }
    retry
}

fn has_failed(outcome: &ParallelOutcome) -> bool {
    match &outcome.response {
        Some(Ok(result)) => result.get("isError") == Some(&json!(true)),
        Some(Err(_)) => true,
        None => false,
    }
}

fn requires_input(outcome: &ParallelOutcome) -> bool {
    matches!(&outcome.response, Some(Ok(result)) if result.get("resultType") == Some(&json!("input_required")))
}

/// Gives a call the input that it requires, and then comes back as a client that can give only some of it, and none.
async fn give_input(explorer: &mut Explorer<'_>, answers: &Answers, call: &ParallelRequest, result: &Value) {
    let mut required = result.clone();
    for _ in 0..INPUT_ROUNDS {
        let Some(input) = explorer.input_for(&required).await else { break };
        let retry = retried(call, CALL_WITH_INPUT, input);
        let outcomes = explorer.request_in_parallel(&[retry], PATIENCE, Instant::now() + PATIENCE).await;
        match outcomes.into_iter().next() {
            Some(outcome) if requires_input(&outcome) => required = outcome.response.and_then(Result::ok).unwrap_or_default(),
            _ => break,
        }
    }
    let requests = result.get("inputRequests").and_then(Value::as_object);
    let has_form = answers.elicitation == Some(Elicitation::Decline)
        && requests.is_some_and(|requests| requests.values().any(|request| request["method"] == methods::ELICITATION_CREATE));
    if has_form && !explorer.is_over() {
        explorer.session().set_client_responses(canceling(answers));
        let canceled = explorer.input_for(result).await;
        explorer.session().set_client_responses(answers.clone());
        if let Some(input) = canceled {
            let retry = retried(call, CALL_WITH_CANCEL, input);
            explorer.request_in_parallel(&[retry], PATIENCE, Instant::now() + PATIENCE).await;
        }
    }
    for capabilities in fewer_capabilities(result) {
        let mut lesser = ParallelRequest { probe: "call-with-fewer-capabilities", ..call.clone() };
        lesser.params["_meta"][meta::CLIENT_CAPABILITIES] = capabilities;
        explorer.request_in_parallel(&[lesser], PATIENCE, Instant::now() + PATIENCE).await;
    }
}

/// What a client may declare that cannot give all the input that a result requires: the first kind of it, of elicitation each mode that is
/// not asked for, and nothing.
fn fewer_capabilities(required: &Value) -> Vec<Value> {
    let requests = || required.get("inputRequests").and_then(Value::as_object).into_iter().flatten().map(|(_, request)| request);
    let first = requests().filter_map(|request| request.get("method")?.as_str()?.split('/').next()).next();
    let mode = |request: &Value| if request.pointer("/params/mode").is_some_and(|mode| mode == "url") { "url" } else { "form" };
    let asks = |wanted: &str| requests().any(|request| request["method"] == methods::ELICITATION_CREATE && mode(request) == wanted);
    let modes = [("url", "form"), ("form", "url")].into_iter().filter(|(asked, _)| asks(asked));
    let modes = modes.map(|(_, other)| json!({ ELICITATION: { other: {} } }));
    first.map(|capability| json!({ capability: {} })).into_iter().chain(modes).chain([json!({})]).collect()
}

/// Calls with unusual arguments, in a conversation of their own.
pub(super) async fn explore_unusual_calls(check_options: &CheckOptions, era: EraChoice, tools: &Tools) -> Vec<Conversation> {
    let (mut conversations, last) = try_each_odd(check_options, era, tools, None).await;
    if let Some(explorer) = last {
        conversations.push(explorer.end().await);
    }
    conversations
}

/// The same in a conversation that is under way. The last one goes on if the server is well.
pub(super) async fn try_odd<'a>(
    check_options: &'a CheckOptions,
    era: EraChoice,
    tools: &Tools,
    explorer: Explorer<'a>,
) -> (Vec<Conversation>, Option<Explorer<'a>>) {
    let (mut conversations, last) = try_each_odd(check_options, era, tools, Some(explorer)).await;
    match last {
        Some(explorer) if explorer.probe_count() > 0 => {
            let (take, well) = explorer.hand_over().await;
            conversations.push(take);
            (conversations, well)
        }
        untried => (conversations, untried),
    }
}

/// Tries what is unusual in one conversation after the other, as long as there is time: a server that does not survive gets a new
/// one for what comes next. Begins with a conversation that is under way, if there is one, and leaves the last one open.
async fn try_each_odd<'a>(
    check_options: &'a CheckOptions,
    era: EraChoice,
    tools: &Tools,
    under_way: Option<Explorer<'a>>,
) -> (Vec<Conversation>, Option<Explorer<'a>>) {
    let (odd, mut conversations) = (odd_calls(&tools.0), Vec::new());
    let mut explorer = under_way.map(|explorer| explorer.renamed(NAME));
    if let (Some(explorer), false) = (&mut explorer, odd.is_empty()) {
        // The judges read in the same conversation what the tools claim.
        list(explorer).await;
    }
    let mut until = time_for_calls(check_options);
    for (unusual, calls) in odd {
        // What comes back of a huge text, on stderr mostly, would crowd out the rest of a transcript.
        let is_apart = unusual == Unusual::Large;
        if is_apart {
            until = time_for_calls(check_options);
        }
        if Instant::now() >= until {
            continue;
        }
        let current = match explorer.take() {
            Some(open) if is_apart || open.is_over() => {
                let (take, still) = open.hand_over().await;
                conversations.push(take);
                still
            }
            current => current,
        };
        let mut current = match current {
            Some(open) => open,
            None => {
                let began = Instant::now();
                let mut fresh = match Explorer::open_in(check_options, NAME, era).await {
                    Ok(fresh) => fresh,
                    Err(failed) => {
                        conversations.push(failed.0);
                        return (conversations, None);
                    }
                };
                // What a start takes is not taken from what is tried on the server.
                until += began.elapsed();
                if !is_apart {
                    list(&mut fresh).await;
                }
                fresh
            }
        };
        if survives(&mut current, unusual, &calls, until).await {
            explorer = Some(current);
        } else {
            conversations.push(current.end().await);
        }
    }
    (conversations, explorer)
}

/// All tools. A session of the modern era over HTTP learns from them which arguments go into headers.
pub(super) async fn list(explorer: &mut Explorer<'_>) -> Vec<Value> {
    let tools = whole(explorer, "list-for-calls", methods::TOOLS_LIST, "tools").await;
    explorer.check_options.budget.listed(tools.len());
    tools
}

/// What is known of tools once they were called.
struct Called<'t> {
    /// Those that seem to take their time, the quickest first.
    slow: Vec<&'t Callable>,
    /// Those that answered at once, of the ones that change nothing.
    quick: Vec<&'t Callable>,
    /// The quickest of those that may be called any number of times.
    quickest: Option<&'t Callable>,
}

/// What every client does: calls that are right, and those that a model gets wrong.
async fn call<'t>(explorer: &mut Explorer<'_>, tools: &'t [Callable]) -> Called<'t> {
    // What changes something is not called again only because it takes its time, so that it gets all of that at once.
    let (readers, writers): (Vec<&Callable>, Vec<&Callable>) = tools.iter().partition(|tool| tool.reads_only());
    let correct = |tool: &&Callable| tool.call("call", tool.arguments.clone());
    let long = explorer.check_options.call_patience.unwrap_or(LONG_PATIENCE).min(explorer.check_options.timeout);
    let once: Vec<ParallelRequest> = writers.iter().map(correct).collect();
    let written = explorer.request_in_parallel(&once, long, Instant::now() + 2 * long).await;
    let (waited_for, in_short) = unanswered(&writers, &written).into_iter().partition(|(_, took)| *took >= long);
    record_unanswered(explorer, &names(waited_for));
    record_unfinished(explorer, &names(in_short));
    let mut calls: Vec<ParallelRequest> = readers.iter().map(correct).collect();
    for tool in tools {
        let missing = arguments::missing(tool.schema(), &tool.arguments);
        calls.extend(missing.into_iter().take(MOST_PROPERTIES).map(|variant| tool.call("call-missing-argument", variant.arguments)));
        let mistyped = arguments::mistyped(tool.schema(), &tool.arguments);
        let inside = arguments::mistyped_inside(tool.schema(), &tool.arguments);
        let mistyped = mistyped.into_iter().take(MOST_PROPERTIES).chain(inside.into_iter().take(MOST_PROPERTIES));
        calls.extend(mistyped.map(|variant| tool.call("call-wrong-type", variant.arguments)));
        let outside = arguments::out_of_range(tool.schema(), &tool.arguments).into_iter().take(MOST_BOUNDS);
        calls.extend(outside.map(|variant| tool.call("call-out-of-range-argument", variant.arguments)));
    }
    for tool in &readers {
        let complete = arguments::complete(tool.schema(), &tool.arguments);
        calls.extend(complete.map(|arguments| tool.call("call-all-arguments", arguments)));
    }
    for tool in &readers {
        let others = arguments::alternatives(tool.schema(), &tool.arguments, MOST_ALTERNATIVES);
        calls.extend(others.into_iter().map(|arguments| tool.call("call-other-arguments", arguments)));
    }
    let patience = explorer.pace().clamp(LEAST_PATIENCE, PATIENCE);
    let read = explorer.request_in_parallel(&calls, patience, time_for_calls(explorer.check_options)).await;
    let (sent, mut unfinished): (Vec<_>, Vec<_>) = unanswered(&readers, &read).into_iter().partition(|(_, took)| !took.is_zero());
    let mut silent: Vec<&Callable> = sent.into_iter().map(|(tool, _)| tool).collect();
    unfinished.extend(silent.split_off(MOST_WAITED_FOR.min(silent.len())).into_iter().map(|tool| (tool, patience)));
    wait_for(explorer, silent).await;
    record_unfinished(explorer, &names(unfinished));
    let outcomes = || readers.iter().zip(&read).chain(writers.iter().zip(&written)).map(|(tool, outcome)| (*tool, outcome));
    let slow = outcomes().filter(|(_, outcome)| matches!(outcome.response, Some(Ok(_))) && outcome.took > CANCELABLE);
    let mut slow: Vec<_> = slow.map(|(tool, outcome)| (outcome.took, tool)).collect();
    slow.sort_by_key(|(took, _)| *took);
    let quick = outcomes().filter(|(tool, outcome)| {
        matches!(&outcome.response, Some(Ok(result)) if result.get("isError") != Some(&json!(true))) && growth::is_harmless(tool)
    });
    // Among others a call takes longer than alone.
    let quickest = quick.filter(|(_, outcome)| outcome.took < SLOW).min_by_key(|(_, outcome)| outcome.took).map(|(tool, _)| tool);
    let is_quick = |outcome: &ParallelOutcome| outcome.response.is_some() && outcome.took < SLOW;
    let answers = |outcome: &ParallelOutcome| outcome.response.is_some() && outcome.took < LEAST_PATIENCE;
    let talkers: Vec<&Callable> = readers.iter().zip(&read).filter(|(_, outcome)| answers(outcome)).map(|(tool, _)| *tool).collect();
    call_with_logs(explorer, &talkers).await;
    let is_result = |outcome: &ParallelOutcome| matches!(outcome.response, Some(Ok(_))) && is_quick(outcome);
    let quick = readers.iter().zip(&read).filter(|(_, outcome)| is_result(outcome)).map(|(tool, _)| *tool).collect();
    Called { slow: slow.into_iter().map(|(_, tool)| tool).collect(), quick, quickest }
}

/// When no more calls of a kind are sent.
fn time_for_calls(check_options: &CheckOptions) -> Instant {
    let share = check_options.budget.share();
    // A tool that never answers is waited for again and again: only who says that tools are slow gets all of the time.
    if check_options.call_patience.is_some() { share } else { share.min(Instant::now() + LONG_BUDGET) }
}

/// Calls tools again that answered at once, with the same arguments: a lock that was never released, or a connection that was never
/// given back, shows only then. False if one of them is silent now, or slow, and the server is not.
async fn call_again(explorer: &mut Explorer<'_>, quick: &[&Callable]) -> bool {
    let mut silent: Vec<&Callable> = quick.to_vec();
    for patience in [PATIENCE, LONG_PATIENCE] {
        let patience = patience.min(explorer.check_options.timeout);
        if silent.is_empty() || explorer.is_over() {
            return true;
        }
        let calls: Vec<ParallelRequest> = silent.iter().map(|tool| tool.call("call-again", tool.arguments.clone())).collect();
        // A moment more, so that what goes out at once has all of its time. What goes out later has less, and tells nothing.
        let outcomes = explorer.request_in_parallel(&calls, patience, Instant::now() + patience + MOMENT).await;
        let is_silent = |outcome: &ParallelOutcome| outcome.response.is_none() && outcome.took >= patience;
        silent = silent.into_iter().zip(&outcomes).filter(|(_, outcome)| is_silent(outcome)).map(|(tool, _)| tool).collect();
        silent.truncate(MOST_WAITED_FOR);
    }
    if silent.is_empty() || explorer.is_over() || !explorer.is_alive_after("call-again").await {
        return true;
    }
    // What still waits for its turn, as where a backend allows a few calls per minute, is not silent.
    let calls: Vec<ParallelRequest> = silent.iter().map(|tool| tool.call("call-again", tool.arguments.clone())).collect();
    let responding = explorer.wait_for_silent(&calls, 1).await;
    for tool in silent {
        if !responding.contains(&tool.name) {
            explorer.record_observation(SILENT_AGAIN, &tool.name);
        } else if !explorer.is_slow_at_times(&tool.name) {
            let message = format!("`{}` got no response to two calls, and one to the next call with the same arguments", tool.name);
            explorer.record_observation(EXPLORED_IN_PART, &message);
        }
    }
    false
}

/// Calls a tool that needs no arguments without the member: clients need not send it.
async fn call_without_arguments(explorer: &mut Explorer<'_>, quick: &[&Callable]) {
    let has_none = |tool: &&&Callable| tool.schema().get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
    let needs_none = || quick.iter().filter(|tool| tool.arguments == json!({}));
    let Some(tool) = needs_none().find(has_none).or_else(|| needs_none().next()).filter(|_| !explorer.is_over()) else { return };
    let params = json!({ "name": tool.name });
    let call = ParallelRequest { probe: LEGAL_FORM, subject: "no `arguments`".into(), method: methods::TOOLS_CALL, params };
    explorer.request_in_parallel(&[call], PATIENCE, Instant::now() + PATIENCE).await;
}

/// Calls with the log turned down, and up as far as it goes, where there is one: what a server logs is judged as any other message.
async fn call_with_logs(explorer: &mut Explorer<'_>, tools: &[&Callable]) {
    if tools.is_empty() || explorer.is_over() || !explorer.declares("logging") {
        return;
    }
    let mut calls: Vec<ParallelRequest> = tools.iter().map(|tool| tool.call("call-with-logs", tool.arguments.clone())).collect();
    for level in ["error", "debug"] {
        if explorer.is_modern() {
            calls.iter_mut().for_each(|call| call.params["_meta"][meta::LOG_LEVEL] = json!(level));
        } else {
            explorer.send_request("set-log-level", Some(level), methods::LOGGING_SET_LEVEL, json!({ "level": level })).await;
        }
        explorer.request_in_parallel(&calls, PATIENCE, time_for_calls(explorer.check_options)).await;
    }
}

/// Those whose call got no response, and how long it was waited for: not at all, if it was not sent.
fn unanswered<'t>(tools: &[&'t Callable], outcomes: &[ParallelOutcome]) -> Vec<(&'t Callable, Duration)> {
    let without = tools.iter().zip(outcomes).filter(|(_, outcome)| outcome.response.is_none());
    without.map(|(tool, outcome)| (*tool, outcome.took)).collect()
}

fn names(tools: Vec<(&Callable, Duration)>) -> Vec<String> {
    tools.into_iter().map(|(tool, _)| tool.name.clone()).collect()
}

/// Tools that had all the time that a call gets.
fn record_unanswered(explorer: &mut Explorer<'_>, names: &[String]) {
    if !explorer.is_over() {
        names.iter().for_each(|name| explorer.record_observation(UNANSWERED_CALL, name));
    }
}

/// Tools that had less, or were not called at all: nothing is known of them.
fn record_unfinished(explorer: &mut Explorer<'_>, names: &[String]) {
    if !explorer.is_over() && !names.is_empty() {
        explorer.record_observation(EXPLORED_IN_PART, &format!("the time for calls was up before {} responded", named(names)));
    }
}

/// Calls tools again that took their time, and waits longer; longest where somebody reports progress, or said that tools are slow.
async fn wait_for(explorer: &mut Explorer<'_>, mut silent: Vec<&Callable>) {
    let told = explorer.check_options.call_patience;
    for patience in [LONG_PATIENCE, told.unwrap_or(LONGEST_PATIENCE)] {
        let patience = patience.min(explorer.check_options.timeout);
        if silent.is_empty() || explorer.is_over() {
            return;
        }
        let calls: Vec<ParallelRequest> = silent.iter().map(|tool| tool.call("call", tool.arguments.clone())).collect();
        let reports = explorer.progress_count();
        let outcomes = explorer.request_in_parallel(&calls, patience, Instant::now() + patience).await;
        silent = silent.into_iter().zip(&outcomes).filter(|(_, outcome)| outcome.response.is_none()).map(|(tool, _)| tool).collect();
        if explorer.progress_count() == reports && told.is_none() {
            break;
        }
    }
    // One that was silent alone was not kept up by others.
    if told.is_none() && silent.len() > 1 {
        silent = wait_for_each(explorer, silent).await;
    }
    record_unanswered(explorer, &silent.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>());
}

/// Calls tools one after the other that took too long beside others: a server may do one call after the other. Gives those that are silent.
async fn wait_for_each<'t>(explorer: &mut Explorer<'_>, silent: Vec<&'t Callable>) -> Vec<&'t Callable> {
    let patience = LONGEST_PATIENCE.min(explorer.check_options.timeout);
    let (until, mut lost, mut unfinished) = (Instant::now() + 2 * patience, Vec::new(), Vec::new());
    for tool in silent {
        if explorer.is_over() || Instant::now() >= until || lost.len() == MOST_SILENT {
            unfinished.push(tool);
            continue;
        }
        let call = tool.call("call", tool.arguments.clone());
        let outcomes = explorer.request_in_parallel(&[call], patience, Instant::now() + patience).await;
        lost.extend(outcomes.iter().any(|outcome| outcome.response.is_none()).then_some(tool));
    }
    // Where each tool that was called is silent, so are the others.
    if lost.len() < MOST_SILENT {
        record_unfinished(explorer, &unfinished.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>());
        unfinished.clear();
    }
    lost.extend(unfinished);
    lost
}

/// Calls a tool by itself, twice, so that it is known how long that takes at least, and cancels further calls of it in their midst, if
/// that is long enough; true if nothing is left to try. A modern client over HTTP cancels by leaving, and hears nothing any more.
async fn cancel(explorer: &mut Explorer<'_>, tool: &Callable) -> bool {
    if explorer.is_modern() && explorer.kind() == Transport::Http {
        return true;
    }
    let mut times = Vec::new();
    for _ in 0..2 {
        let call = tool.call("call-slow", tool.arguments.clone());
        let alone = explorer.request_in_parallel(&[call], PATIENCE, Instant::now() + PATIENCE).await;
        match alone.first().map(|outcome| (&outcome.response, outcome.took)) {
            // What is slow only once is not: the machine was busy.
            Some((Some(Ok(_)), took)) if took > CANCELABLE => times.push(took),
            // That no response came in time says that it is slow, and not how slow.
            Some((None, took)) if !took.is_zero() => {}
            _ => return false,
        }
    }
    let Some(took) = times.into_iter().min() else { return false };
    for turn in 1..=CANCELLATIONS {
        if cancel_once(explorer, tool, took, turn).await == Certainty::Certain {
            break;
        }
    }
    explorer.send_request("after-cancel", None, explorer.any_method(), json!({})).await;
    if tool.reads_only() && !spares_others(explorer, tool, took).await && !explorer.is_over() {
        explorer.record_observation(SILENT_BESIDE_CANCELED, &tool.name);
    }
    true
}

/// Calls a tool that was silent at times until one call takes long, and waits for that: a tool may be slow now and then.
async fn wait_for_late(explorer: &mut Explorer<'_>, tool: &Callable) {
    let call = tool.call("call-patiently", tool.arguments.clone());
    explorer.wait_for_silent(std::slice::from_ref(&call), AT_ONCE).await;
    if explorer.is_slow_at_times(&tool.name) {
        return;
    }
    let until = time_for_calls(explorer.check_options);
    for _ in 0..MOST_PATIENT {
        if explorer.is_over() || Instant::now() >= until {
            return;
        }
        let outcomes = explorer.request_in_parallel(std::slice::from_ref(&call), LONG_PATIENCE, Instant::now() + LONG_PATIENCE).await;
        match outcomes.first() {
            Some(outcome) if outcome.response.is_none() => return,
            Some(outcome) if outcome.took >= LEAST_PATIENCE => return explorer.mark_slow(&tool.name),
            _ => {}
        }
    }
}

fn cancellation_of(explorer: &Explorer<'_>, id: &Value) -> Option<Map<String, Value>> {
    let mut message = explorer.build_request(Value::Null, methods::notifications::CANCELLED, json!({ "requestId": id }));
    message.as_object_mut()?.shift_remove("id");
    message.as_object().cloned()
}

/// Whether a call gets its response although another one is cancelled meanwhile; what happened once may be chance.
async fn spares_others(explorer: &mut Explorer<'_>, tool: &Callable, took: Duration) -> bool {
    /// For the other call, which may have to wait for its turn.
    const KEPT: Duration = Duration::from_secs(3);
    for turn in 1..=2 {
        let call = |explorer: &Explorer<'_>, id: &Value| {
            explorer.build_request(id.clone(), methods::TOOLS_CALL, json!({ "name": tool.name, "arguments": tool.arguments }))
        };
        let ids = [json!(format!("{CANCELLED}-beside-{turn}")), json!(format!("mcproof-beside-cancelled-{turn}"))];
        let [Value::Object(canceled), Value::Object(kept)] = ids.each_ref().map(|id| call(explorer, id)) else { return true };
        let Some(cancellation) = cancellation_of(explorer, &ids[0]) else { return true };
        let started = Instant::now();
        let answer = explorer
            .together("cancel-beside", async |session, deadline| {
                let withdraw = async {
                    sleep(took / 4).await;
                    session.send_message(&cancellation, deadline).await
                };
                let answered = session.send_message(&kept, (took * 4 + KEPT).min(deadline));
                tokio::join!(session.send_message(&canceled, took * 2), answered, withdraw).1
            })
            .await;
        // Where nothing may be asked any more, nothing was waited for.
        if matches!(answer, Ok(Some(_))) || explorer.is_over() || started.elapsed() < KEPT {
            return true;
        }
    }
    false
}

/// Whether an answer tells that the cancellation was not obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Certainty {
    Certain,
    /// The answer may have been under way before the cancellation was read, or that was sent late, as happens on a busy machine.
    Crossed,
}

async fn cancel_once(explorer: &mut Explorer<'_>, tool: &Callable, took: Duration, turn: usize) -> Certainty {
    let id = json!(format!("{CANCELLED}-{turn}"));
    let call = explorer.build_request(id.clone(), methods::TOOLS_CALL, json!({ "name": tool.name, "arguments": tool.arguments }));
    let Some(cancellation) = cancellation_of(explorer, &id) else { return Certainty::Certain };
    let sign = explorer.build_request(json!(format!("{HEARD}-{turn}")), explorer.any_method(), json!({}));
    let (Value::Object(call), Value::Object(sign)) = (call, sign) else {
        return Certainty::Certain;
    };
    let started = Instant::now();
    let (answer, withdrawn) = explorer
        .together("cancel", async |session, deadline| {
            let withdraw = async {
                sleep(took / 4).await;
                let waited = started.elapsed();
                session.send_message(&cancellation, deadline).await?;
                // What is answered after this was read after the cancellation.
                session.send_message(&sign, deadline).await.map(|sign| (waited, sign))
            };
            // What came of it is in the transcript; an answer would come when it came before.
            tokio::join!(session.send_message(&call, took * 2), withdraw)
        })
        .await;
    match (answer, withdrawn) {
        (Ok(Some(answer)), Ok((waited, Some(sign)))) if answer.frame < sign.frame || waited >= took / 2 => Certainty::Crossed,
        _ => Certainty::Certain,
    }
}

/// Calls with unusual arguments, by what is unusual: on the tools on which most can be tried, and then on the others, but for what
/// takes its time.
fn odd_calls(tools: &[Callable]) -> Vec<(Unusual, Vec<OddCall>)> {
    let mut tools: Vec<&Callable> = tools.iter().collect();
    tools.sort_by_key(|tool| arguments::unusual(tool.schema(), &tool.arguments, Unusual::Unicode).is_empty());
    let (first, others) = tools.split_at(MOST_ODD_TOOLS.min(tools.len()));
    let calls = |unusual: Unusual, tool: &Callable| {
        let variants = arguments::unusual(tool.schema(), &tool.arguments, unusual).into_iter();
        let call = |variant| OddCall {
            usual: tool.call("call-usual", tool.arguments.clone()),
            may_take_long: unusual.may_take_long(&variant),
            unusual: tool.call(unusual.probe(), variant.arguments),
        };
        variants.map(call).collect::<Vec<_>>()
    };
    let (large, small): (Vec<Unusual>, Vec<Unusual>) = Unusual::EVERY.into_iter().partition(|unusual| *unusual == Unusual::Large);
    let on = |unusual: &[Unusual], tools: &[&Callable]| {
        let all = unusual.iter().map(|unusual| (*unusual, tools.iter().flat_map(|tool| calls(*unusual, tool)).collect::<Vec<_>>()));
        all.filter(|(_, calls)| !calls.is_empty()).collect::<Vec<_>>()
    };
    // Each kind on one tool before any kind on all of them.
    let (one, more) = first.split_at(first.len().min(1));
    on(&small, one).into_iter().chain(on(&small, more)).chain(on(&small, others)).chain(on(&large, first)).collect()
}

/// A call with something unusual, and one of the same tool without it.
struct OddCall {
    usual: ParallelRequest,
    unusual: ParallelRequest,
    may_take_long: bool,
}

/// One call after the other, so that it is known which of them a server did not survive.
async fn survives(explorer: &mut Explorer<'_>, unusual: Unusual, calls: &[OddCall], until: Instant) -> bool {
    let mut silent = Vec::new();
    for call in calls {
        let least = until.max(Instant::now() + PATIENCE / 3);
        let outcomes = explorer.request_in_parallel(std::slice::from_ref(&call.unusual), PATIENCE, least).await;
        // An answer shows that it lives; without one, only what it says next does.
        let was_answered = outcomes.iter().all(|outcome| outcome.response.is_some());
        if !was_answered && !explorer.is_alive_after(unusual.probe()).await {
            return false;
        }
        // A call that there was no time to wait for says nothing.
        let was_waited_for = outcomes.iter().all(|outcome| outcome.took >= PATIENCE);
        silent.extend((!was_answered && was_waited_for && !call.may_take_long).then_some(call));
        if silent.len() == MOST_SILENT {
            break;
        }
    }
    for call in silent {
        ask_again(explorer, unusual, call).await;
    }
    explorer.is_alive_after(unusual.probe()).await
}

/// Whether a tool answers what is usual at once, and what is unusual not even in a time that is many times as long.
async fn ask_again(explorer: &mut Explorer<'_>, unusual: Unusual, call: &OddCall) {
    let mut ask = async |request: &ParallelRequest, patience: Duration| {
        let outcomes = explorer.request_in_parallel(std::slice::from_ref(request), patience, Instant::now() + patience).await;
        outcomes.into_iter().next().map(|outcome| (matches!(outcome.response, Some(Ok(_))), outcome.took))
    };
    let told = format!("`{}` got no response in time to a call with {}", call.unusual.subject, unusual.told());
    let Some((true, usual)) = ask(&call.usual, PATIENCE).await else {
        if !explorer.is_over() {
            explorer.record_observation(EXPLORED_IN_PART, &format!("{told}, and none to a usual call either"));
        }
        return;
    };
    let again = ParallelRequest { probe: "call-unusual-again", ..call.unusual.clone() };
    // What is that large is copied and logged, and takes its time.
    let patience = if unusual == Unusual::Large { LONGEST_PATIENCE } else { LONG_PATIENCE };
    let is_silent = ask(&again, patience).await.is_some_and(|(is_answered, took)| !is_answered && took >= patience);
    if !is_silent {
        // It was silent once, with nothing wrong about it: usual calls may be as slow at times.
        explorer.wait_for_silent(std::slice::from_ref(&call.usual), AT_ONCE).await;
        return;
    }
    let responds = !explorer.wait_for_silent(std::slice::from_ref(&call.unusual), MOST_SILENT).await.is_empty();
    if !responds && usual * 10 < patience {
        explorer.record_observation(UNUSUAL_UNANSWERED, &format!("{} {}", unusual.probe(), call.unusual.subject));
    } else {
        explorer.record_observation(EXPLORED_IN_PART, &told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_can_do_less_are_those_of_what_was_asked() {
        let check = |asked: &[(&str, Option<&'static str>)], revision: Revision, expected: &[Value]| {
            let asked =
                asked.iter().map(|(method, part)| Asked { method: (*method).to_owned(), part: *part, fields: Vec::new(), flaw: None });
            let limits: Vec<Value> = limits_after(&asked.collect::<Vec<_>>(), revision).into_iter().map(Value::Object).collect();
            assert_eq!(limits, expected);
        };
        let (newest, older) = (Revision::LATEST_LEGACY, Revision::V2025_06_18);
        let (ask, model) = (methods::ELICITATION_CREATE, methods::SAMPLING_CREATE_MESSAGE);
        let plain = json!({ "elicitation": {}, "sampling": {} });
        let only_forms = json!({ "roots": {}, "elicitation": { "form": {} } });
        let only_pages = json!({ "roots": {}, "elicitation": { "url": {} } });
        check(&[], newest, &[]);
        check(&[(methods::ROOTS_LIST, None)], newest, &[]);
        check(&[(ask, Some("url"))], newest, &[plain.clone(), only_forms.clone()]);
        check(&[(ask, Some("form"))], newest, std::slice::from_ref(&only_pages));
        check(&[(ask, Some("form"))], older, &[]);
        check(&[(ask, Some("form")), (ask, Some("url")), (model, None)], newest, &[plain.clone(), only_forms, only_pages]);
        check(&[(model, None)], older, &[json!({ "roots": {} })]);
        check(&[(model, Some("tools"))], newest, &[plain, json!({ "roots": {} })]);
    }

    #[test]
    fn a_request_declares_less_than_its_input_takes() {
        let check = |requests: Value, expected: &[Value]| {
            assert_eq!(fewer_capabilities(&json!({ "inputRequests": requests })), expected, "{requests}");
        };
        let asking = |params: Value| json!({ "method": "elicitation/create", "params": params });
        let (form, page) = (asking(json!({})), asking(json!({ "mode": "url" })));
        let declaring = |modes: Value| json!({ "elicitation": modes });
        let (any, forms, pages) = (declaring(json!({})), declaring(json!({ "form": {} })), declaring(json!({ "url": {} })));
        check(json!({}), &[json!({})]);
        check(json!({ "a": form }), &[any.clone(), pages.clone(), json!({})]);
        check(json!({ "a": page }), &[any.clone(), forms.clone(), json!({})]);
        check(json!({ "a": form, "b": page }), &[any, forms, pages, json!({})]);
        check(json!({ "a": { "method": "sampling/createMessage" } }), &[json!({ "sampling": {} }), json!({})]);
    }
}
