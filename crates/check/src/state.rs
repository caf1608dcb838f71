//! A client that looks at what the server says of itself before and after a call: whether a tool that claims to change
//! nothing changes nothing, and whether a call that is repeated, as after a lost response, has its effect twice. Observers are the lists, resources, and the other read-only tools.
//!
//! A clock must not look like a change: an observer counts only if it said the same twice before the call, and if what it
//! says afterwards stays the same for longer than a clock would let it. Where calls are repeated on request, this holds for the effect
//! of the first call as well: what does not show that one would not show a second.

use super::calls::{Callable, Tools};
use super::explorer::{Explorer, ParallelRequest, ResponseOutcome};
use super::{CheckOptions, RepeatedCalls};
use mcproof_protocol::{EraChoice, methods};
use mcproof_record::Conversation;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

const MOST_RESOURCES: usize = 4;
const MOST_OBSERVING_TOOLS: usize = 6;
const MOST_JUDGED_TOOLS: usize = 6;
const PATIENCE: Duration = Duration::from_millis(1000);
const BUDGET: Duration = Duration::from_secs(3);
/// Where repeated calls are what was asked for.
const MOST_REPEATED_TOOLS: usize = 24;
const BUDGET_ON_REQUEST: Duration = Duration::from_secs(30);
/// Clocks and meters mostly tell seconds.
const LONGER_THAN_A_CLOCK: Duration = Duration::from_millis(1100);

/// A call of a read-only tool that was followed by a look. The probes of all calls that are begin with it.
pub(super) const CALL: &str = "state-call";
/// The first call of an idempotent tool, whose effect is what it is.
const FIRST_CALL: &str = "state-call-first";
/// The second, with the same arguments.
pub(super) const SAME_CALL: &str = "state-call-again";
/// The second call of a tool that does not claim to be idempotent, as a client sends it whose response was lost.
const REPEATED_CALL: &str = "state-call-repeated";
pub(super) const LOOK: &str = "observe";

/// Of this kind of conversation.
const NAME: &str = "observer";

pub(super) async fn explore(check_options: &CheckOptions, era: EraChoice, tools: &Tools) -> Vec<Conversation> {
    let Some(claims) = AnnotatedTools::of(tools, check_options.repeats) else { return Vec::new() };
    match Explorer::open_in(check_options, NAME, era).await {
        Ok(mut explorer) => {
            observe(&mut explorer, &claims).await;
            vec![explorer.end().await]
        }
        Err(failed) => vec![failed.0],
    }
}

/// The tools whose claims can be judged.
struct AnnotatedTools<'t> {
    read_only: Vec<&'t Callable>,
    idempotent: Vec<&'t Callable>,
    /// Without a claim; called again only on request.
    others: Vec<&'t Callable>,
}

impl<'t> AnnotatedTools<'t> {
    /// `None` if there is nothing to judge.
    fn of(tools: &'t Tools, repeats: RepeatedCalls) -> Option<Self> {
        let (read_only, others): (Vec<&Callable>, Vec<&Callable>) = tools.0.iter().partition(|tool| hint(tool, "readOnlyHint"));
        let (idempotent, mut others): (Vec<&Callable>, Vec<&Callable>) = others.into_iter().partition(|tool| hint(tool, "idempotentHint"));
        if repeats == RepeatedCalls::OfIdempotentTools {
            others.clear();
        }
        (!read_only.is_empty() || !idempotent.is_empty() || !others.is_empty()).then_some(Self { read_only, idempotent, others })
    }
}

fn hint(tool: &Callable, name: &str) -> bool {
    tool.tool.pointer(&format!("/annotations/{name}")) == Some(&Value::Bool(true))
}

/// In a conversation that is under way. It goes on if the server is well.
pub(super) async fn observe_in<'a>(explorer: Explorer<'a>, tools: &Tools) -> (Vec<Conversation>, Option<Explorer<'a>>) {
    let Some(claims) = AnnotatedTools::of(tools, explorer.check_options.repeats) else { return (Vec::new(), Some(explorer)) };
    let mut explorer = explorer.renamed(NAME);
    observe(&mut explorer, &claims).await;
    let (take, well) = explorer.hand_over().await;
    (vec![take], well)
}

async fn observe(explorer: &mut Explorer<'_>, claims: &AnnotatedTools<'_>) {
    let is_asked_for = explorer.check_options.repeats == RepeatedCalls::OfAllTools;
    let until = Instant::now() + if is_asked_for { BUDGET_ON_REQUEST } else { BUDGET };
    // The judges read in the same conversation what the tools claim.
    explorer.send_request("list-for-calls", Some(methods::TOOLS_LIST), methods::TOOLS_LIST, json!({})).await;
    let observers = observers(explorer, &claims.read_only, |tool| hint(tool, "openWorldHint")).await;
    let read_only = claims.read_only.iter().take(MOST_JUDGED_TOOLS).map(|tool| (*tool, &[CALL][..]));
    let idempotent = claims.idempotent.iter().take(MOST_JUDGED_TOOLS).map(|tool| (*tool, &[FIRST_CALL, SAME_CALL][..]));
    let others = claims.others.iter().take(MOST_REPEATED_TOOLS).map(|tool| (*tool, &[FIRST_CALL, REPEATED_CALL][..]));
    if try_each(explorer, others.chain(read_only), &observers, until).await != Next::Nothing {
        // Somebody has named these, whatever time the looks at others took.
        try_each(explorer, idempotent, &observers, until.max(Instant::now() + BUDGET)).await;
    }
}

/// What may be tried after a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    AnyTool,
    /// The time for tools of this kind is up.
    OtherKind,
    Nothing,
}

async fn try_each<'t>(
    explorer: &mut Explorer<'_>,
    tools: impl Iterator<Item = (&'t Callable, &'t [&'static str])>,
    observers: &[ParallelRequest],
    until: Instant,
) -> Next {
    for (tool, calls) in tools {
        let next = try_tool(explorer, tool, observers, calls, until).await;
        if next != Next::AnyTool {
            return next;
        }
    }
    Next::AnyTool
}

/// Looks, calls, and looks again, for each of the calls.
async fn try_tool(
    explorer: &mut Explorer<'_>,
    tool: &Callable,
    observers: &[ParallelRequest],
    calls: &[&'static str],
    until: Instant,
) -> Next {
    let others: Vec<ParallelRequest> = observers.iter().filter(|observer| observer.subject != subject_of(tool)).cloned().collect();
    let mut before = look(explorer, &others, until).await;
    for call in calls {
        let second = look(explorer, &others, until).await;
        let stable: Vec<bool> = before.iter().zip(&second).map(|(one, two)| one.is_some() && one == two).collect();
        match (explorer.is_over(), Instant::now() >= until) {
            (true, _) => return Next::Nothing,
            (false, true) => return Next::OtherKind,
            (false, false) if !stable.contains(&true) => return Next::AnyTool,
            (false, false) => {}
        }
        // A call that was cut short would still go on.
        let whole = Instant::now() + PATIENCE;
        let outcomes = explorer.request_in_parallel(&[tool.call(call, tool.arguments.clone())], PATIENCE, whole).await;
        // What goes on in the background may change something later, and would be taken for the effect of the next call.
        if outcomes.iter().any(|outcome| outcome.response.is_none()) {
            return Next::Nothing;
        }
        // What was refused had no effect that could double.
        if calls.len() > 1 && outcomes.into_iter().any(|outcome| seen(outcome.response).is_none()) {
            return Next::AnyTool;
        }
        let after = look(explorer, &others, until).await;
        let has_changed = second.iter().zip(&after).zip(&stable).any(|((before, after), stable)| *stable && before != after);
        let is_judged = *call != FIRST_CALL || explorer.check_options.repeats == RepeatedCalls::OfAllTools;
        if has_changed && is_judged {
            tokio::time::sleep(LONGER_THAN_A_CLOCK).await;
            look(explorer, &others, Instant::now() + PATIENCE).await;
        }
        before = after;
    }
    Next::AnyTool
}

/// One look through each observer; `None` where it saw nothing that can be compared.
async fn look(explorer: &mut Explorer<'_>, observers: &[ParallelRequest], until: Instant) -> Vec<Option<Value>> {
    let outcomes = explorer.request_in_parallel(observers, PATIENCE, until).await;
    outcomes.into_iter().map(|outcome| seen(outcome.response)).collect()
}

fn seen(answer: ResponseOutcome) -> Option<Value> {
    let mut result = answer?.ok()?;
    let object = result.as_object_mut()?;
    object.shift_remove("_meta");
    (object.get("isError") != Some(&Value::Bool(true))).then_some(result)
}

fn subject_of(tool: &Callable) -> String {
    format!("tool `{}`", tool.name)
}

/// All that can be looked at, and answers.
async fn observers(explorer: &mut Explorer<'_>, read_only: &[&Callable], is_open: impl Fn(&Callable) -> bool) -> Vec<ParallelRequest> {
    let mut found = Vec::new();
    let until = Instant::now() + BUDGET;
    let look_at = |subject: String, method: &'static str, params: Value| ParallelRequest { probe: LOOK, subject, method, params };
    for (method, capability) in [(methods::RESOURCES_LIST, "resources"), (methods::PROMPTS_LIST, "prompts"), (methods::TOOLS_LIST, "tools")]
    {
        let is_light = method != methods::TOOLS_LIST || !explorer.check_options.budget.lists_many();
        if is_light && explorer.session().handshake().capabilities.get(capability).is_some() {
            found.push(look_at(format!("`{method}`"), method, json!({})));
        }
    }
    if explorer.session().handshake().capabilities.get("resources").is_some()
        && let Some(Ok(listed)) =
            explorer.send_request("list-for-calls", Some(methods::RESOURCES_LIST), methods::RESOURCES_LIST, json!({})).await
    {
        let uris =
            listed.get("resources").and_then(Value::as_array).into_iter().flatten().filter_map(|resource| resource.get("uri")?.as_str());
        found.extend(
            uris.take(MOST_RESOURCES).map(|uri| look_at(format!("resource `{uri}`"), methods::RESOURCES_READ, json!({ "uri": uri }))),
        );
    }
    // What a tool finds in the world outside is not the state of the server.
    let tools = read_only.iter().filter(|tool| !is_open(tool)).take(MOST_OBSERVING_TOOLS);
    found.extend(
        tools.map(|tool| look_at(subject_of(tool), methods::TOOLS_CALL, json!({ "name": tool.name, "arguments": tool.arguments }))),
    );
    let outcomes = explorer.request_in_parallel(&found, PATIENCE, until).await;
    let answers = outcomes.into_iter().map(|outcome| outcome.took < PATIENCE / 4 && seen(outcome.response).is_some());
    found.into_iter().zip(answers).filter(|(_, answers)| *answers).map(|(request, _)| request).collect()
}
