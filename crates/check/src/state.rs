//! A client that looks at what the server says of itself before and after a call: whether a tool that claims to change
//! nothing changes nothing. Observers are the lists, resources, and the other read-only tools.
//!
//! A clock must not look like a change: an observer counts only if it said the same twice before the call, and if what it
//! says afterwards stays the same for longer than a clock would let it.

use super::Inquiry;
use super::calls::{Callable, Tools};
use super::visit::{Answered, Bird, Visit};
use mcproof_client::EraChoice;
use mcproof_record::Take;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

const MOST_RESOURCES: usize = 4;
const MOST_OBSERVING_TOOLS: usize = 6;
const MOST_JUDGED_TOOLS: usize = 6;
const PATIENCE: Duration = Duration::from_millis(1000);
const BUDGET: Duration = Duration::from_secs(3);
/// Clocks and meters mostly tell seconds.
const LONGER_THAN_A_CLOCK: Duration = Duration::from_millis(1100);

/// Read-only tools whose call was followed by a look.
pub(super) const CALL: &str = "state-call";
/// The first call of an idempotent tool, whose effect is what it is.
const FIRST_CALL: &str = "state-call-first";
/// The second, with the same arguments.
pub(super) const SAME_CALL: &str = "state-call-again";
pub(super) const LOOK: &str = "observe";

/// Of this kind of conversation.
const NAME: &str = "observer";

pub(super) async fn talk(inquiry: &Inquiry, era: EraChoice, tools: &Tools) -> Vec<Take> {
    let Some(claims) = Claims::of(tools) else { return Vec::new() };
    match Visit::open_in(inquiry, NAME, era).await {
        Ok(mut visit) => {
            observe(&mut visit, &claims).await;
            vec![visit.end().await]
        }
        Err(failed) => vec![failed.0],
    }
}

/// The tools whose claims can be judged.
struct Claims<'t> {
    read_only: Vec<&'t Callable>,
    idempotent: Vec<&'t Callable>,
}

impl<'t> Claims<'t> {
    /// `None` if no tool claims anything.
    fn of(tools: &'t Tools) -> Option<Self> {
        let (read_only, others): (Vec<&Callable>, Vec<&Callable>) = tools.0.iter().partition(|tool| hint(tool, "readOnlyHint"));
        let idempotent: Vec<&Callable> = others.into_iter().filter(|tool| hint(tool, "idempotentHint")).collect();
        (!read_only.is_empty() || !idempotent.is_empty()).then_some(Self { read_only, idempotent })
    }
}

fn hint(tool: &Callable, name: &str) -> bool {
    tool.tool.pointer(&format!("/annotations/{name}")) == Some(&Value::Bool(true))
}

/// In a conversation that is under way. It goes on if the server is well.
pub(super) async fn observe_in<'a>(visit: Visit<'a>, tools: &Tools) -> (Vec<Take>, Option<Visit<'a>>) {
    let Some(claims) = Claims::of(tools) else { return (Vec::new(), Some(visit)) };
    let mut visit = visit.goes_on_as(NAME);
    observe(&mut visit, &claims).await;
    let (take, well) = visit.hand_over().await;
    (vec![take], well)
}

async fn observe(visit: &mut Visit<'_>, claims: &Claims<'_>) {
    let until = Instant::now() + BUDGET;
    // The judges read in the same conversation what the tools claim.
    visit.ask("list-for-calls", Some("tools/list"), "tools/list", json!({})).await;
    let observers = observers(visit, &claims.read_only, |tool| hint(tool, "openWorldHint")).await;
    let read_only = claims.read_only.iter().take(MOST_JUDGED_TOOLS).map(|tool| (*tool, &[CALL][..]));
    let idempotent = claims.idempotent.iter().take(MOST_JUDGED_TOOLS).map(|tool| (*tool, &[FIRST_CALL, SAME_CALL][..]));
    for (tool, calls) in read_only.chain(idempotent) {
        if !try_tool(visit, tool, &observers, calls, until).await {
            return;
        }
    }
}

/// Looks, calls, and looks again, for each of the calls. `false` if the conversation cannot go on.
async fn try_tool(visit: &mut Visit<'_>, tool: &Callable, observers: &[Bird], calls: &[&'static str], until: Instant) -> bool {
    let others: Vec<Bird> = observers.iter().filter(|observer| observer.subject != subject_of(tool)).cloned().collect();
    let mut before = look(visit, &others, until).await;
    for call in calls {
        let second = look(visit, &others, until).await;
        let stable: Vec<bool> = before.iter().zip(&second).map(|(one, two)| one.is_some() && one == two).collect();
        if visit.is_over() || Instant::now() >= until || !stable.contains(&true) {
            return !visit.is_over() && Instant::now() < until;
        }
        let landed = visit.flock(&[tool.call(call, tool.arguments.clone())], PATIENCE, until).await;
        // What goes on in the background may change something later, and would be taken for the effect of the next call.
        if landed.iter().any(|landed| landed.answer.is_none()) {
            return false;
        }
        let after = look(visit, &others, until).await;
        let has_changed = second.iter().zip(&after).zip(&stable).any(|((before, after), stable)| *stable && before != after);
        if has_changed && *call != FIRST_CALL {
            tokio::time::sleep(LONGER_THAN_A_CLOCK).await;
            look(visit, &others, Instant::now() + PATIENCE).await;
        }
        before = after;
    }
    true
}

/// One look through each observer; `None` where it saw nothing that can be compared.
async fn look(visit: &mut Visit<'_>, observers: &[Bird], until: Instant) -> Vec<Option<Value>> {
    let landed = visit.flock(observers, PATIENCE, until).await;
    landed.into_iter().map(|landed| seen(landed.answer)).collect()
}

fn seen(answer: Answered) -> Option<Value> {
    let mut result = answer?.ok()?;
    let object = result.as_object_mut()?;
    object.shift_remove("_meta");
    (object.get("isError") != Some(&Value::Bool(true))).then_some(result)
}

fn subject_of(tool: &Callable) -> String {
    format!("tool `{}`", tool.name)
}

/// All that can be looked at, and answers.
async fn observers(visit: &mut Visit<'_>, read_only: &[&Callable], is_open: impl Fn(&Callable) -> bool) -> Vec<Bird> {
    let mut found = Vec::new();
    let until = Instant::now() + BUDGET;
    let look_at = |subject: String, method: &'static str, params: Value| Bird { probe: LOOK, subject, method, params };
    for (method, capability) in [("resources/list", "resources"), ("prompts/list", "prompts"), ("tools/list", "tools")] {
        let is_light = method != "tools/list" || !visit.inquiry.budget.lists_many();
        if is_light && visit.session().handshake().capabilities.get(capability).is_some() {
            found.push(look_at(format!("`{method}`"), method, json!({})));
        }
    }
    if visit.session().handshake().capabilities.get("resources").is_some()
        && let Some(Ok(listed)) = visit.ask("list-for-calls", Some("resources/list"), "resources/list", json!({})).await
    {
        let uris =
            listed.get("resources").and_then(Value::as_array).into_iter().flatten().filter_map(|resource| resource.get("uri")?.as_str());
        found.extend(uris.take(MOST_RESOURCES).map(|uri| look_at(format!("resource `{uri}`"), "resources/read", json!({ "uri": uri }))));
    }
    // What a tool finds in the world outside is not the state of the server.
    let tools = read_only.iter().filter(|tool| !is_open(tool)).take(MOST_OBSERVING_TOOLS);
    found.extend(tools.map(|tool| look_at(subject_of(tool), "tools/call", json!({ "name": tool.name, "arguments": tool.arguments }))));
    let landed = visit.flock(&found, PATIENCE, until).await;
    let answers = landed.into_iter().map(|landed| landed.took < PATIENCE / 4 && seen(landed.answer).is_some());
    found.into_iter().zip(answers).filter(|(_, answers)| *answers).map(|(bird, _)| bird).collect()
}
