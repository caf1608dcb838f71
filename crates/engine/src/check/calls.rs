//! Calls of the tools that may be called, with arguments made from their schemas and with wrong ones.

use super::arguments::{self, Unusual};
use super::visit::{Bird, Visit};
use super::{Found, Inquiry, Permission};
use crate::rules::Conversation;
use mcproof_record::Take;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Tools that are called with arguments as they should be, and with wrong ones.
const MOST_TOOLS: usize = 20;
/// Tools that are called with unusual arguments.
const MOST_ODD_TOOLS: usize = 3;
/// Properties of one tool that are left out, or given another type.
const MOST_PROPERTIES: usize = 2;
/// A call is cancelled after this.
const PATIENCE: Duration = Duration::from_millis(1500);
/// For all calls of a kind together.
const BUDGET: Duration = Duration::from_secs(3);

/// A tool that may be called, with arguments that its schema accepts.
#[derive(Clone, Debug)]
pub(super) struct Callable {
    pub(super) name: String,
    pub(super) tool: Value,
    pub(super) arguments: Value,
}

/// What may be called, as far as it is known before a conversation.
pub(super) struct Tools(pub(super) Vec<Callable>);

impl Tools {
    /// Those of a list. If there are many, the ones that were named come first, then a sample over the whole list.
    fn of(tools: &[Value], permission: &Permission) -> Self {
        let needs_task = |tool: &Value| tool.pointer("/execution/taskSupport") == Some(&json!("required"));
        let callable = |tool: &Value| {
            let name = tool.get("name")?.as_str()?.to_owned();
            let arguments = arguments::minimal(tool.get("inputSchema")?)?;
            Some(Callable { name, tool: tool.clone(), arguments })
        };
        let allowed = tools.iter().filter(|tool| permission.allows(tool) && !needs_task(tool));
        let (mut first, rest): (Vec<&Value>, Vec<&Value>) = allowed.partition(|tool| permission.names(tool));
        let room = MOST_TOOLS.saturating_sub(first.len());
        let step = rest.len().div_ceil(room.max(1)).max(1);
        first.extend(rest.into_iter().step_by(step).take(room));
        Self(first.into_iter().filter_map(callable).collect())
    }

    pub(super) fn in_takes(takes: &[Take], permission: &Permission) -> Self {
        let listed = takes.iter().find_map(|take| {
            let conversation = Conversation::new(take);
            let tools: Vec<Value> = conversation.tools().into_iter().map(|(tool, _)| tool.clone()).collect();
            (!tools.is_empty()).then_some(tools)
        });
        Self::of(&listed.unwrap_or_default(), permission)
    }
}

impl Callable {
    pub(super) fn call(&self, probe: &'static str, arguments: Value) -> Bird {
        let params = json!({ "name": self.name, "arguments": arguments });
        Bird { probe, subject: self.name.clone(), method: "tools/call", params }
    }

    fn schema(&self) -> &Value {
        &self.tool["inputSchema"]
    }
}

/// What every client does: calls that are right, and those that a model gets wrong.
pub(super) async fn take(visit: &mut Visit<'_>, tools: &[Value]) {
    let tools = Tools::of(tools, &visit.inquiry.calls).0;
    if tools.is_empty() || visit.is_over() {
        return;
    }
    learn_headers(visit, &tools).await;
    let until = Instant::now() + BUDGET;
    let right: Vec<Bird> = tools.iter().map(|tool| tool.call("call", tool.arguments.clone())).collect();
    let landed = visit.flock(&right, PATIENCE, until).await;
    let mut wrong = Vec::new();
    for (tool, _) in tools.iter().zip(&landed).filter(|(_, landed)| landed.answer.is_some()) {
        let missing = arguments::missing(tool.schema(), &tool.arguments);
        wrong.extend(missing.into_iter().take(MOST_PROPERTIES).map(|variant| tool.call("call-missing-argument", variant.arguments)));
        let mistyped = arguments::mistyped(tool.schema(), &tool.arguments);
        wrong.extend(mistyped.into_iter().take(MOST_PROPERTIES).map(|variant| tool.call("call-wrong-type", variant.arguments)));
    }
    visit.flock(&wrong, PATIENCE, until.max(Instant::now() + BUDGET / 3)).await;
}

/// A client whose arguments are unusual, and that looks whether the server still answers. A server that does not is started
/// again for what comes next.
pub(super) async fn talk(inquiry: &Inquiry, found: Found, tools: &Tools) -> Vec<Take> {
    // Those with a text come first, because more can be tried on them.
    let mut tools: Vec<&Callable> = tools.0.iter().collect();
    tools.sort_by_key(|tool| arguments::unusual(tool.schema(), &tool.arguments, Unusual::Unicode).is_none());
    tools.truncate(MOST_ODD_TOOLS);
    let mut takes = Vec::new();
    let mut visit: Option<Visit<'_>> = None;
    let until = Instant::now() + BUDGET;
    for unusual in Unusual::EVERY {
        let calls = tools.iter().filter_map(|tool| {
            let variant = arguments::unusual(tool.schema(), &tool.arguments, unusual)?;
            Some(tool.call(probe_of(unusual), variant.arguments))
        });
        let calls: Vec<Bird> = calls.collect();
        if calls.is_empty() || Instant::now() >= until {
            continue;
        }
        let mut current = match visit.take() {
            Some(open) => open,
            None => match Visit::open_in(inquiry, "odd arguments", found).await {
                Ok(mut open) => {
                    open.ask("list", Some("tools/list"), "tools/list", json!({})).await;
                    open
                }
                Err(failed) => {
                    takes.push(failed.0);
                    return takes;
                }
            },
        };
        let mut is_alive = true;
        for call in calls {
            let landed = current.flock(&[call], PATIENCE, until.max(Instant::now() + PATIENCE / 3)).await;
            // An answer shows that it lives; without one, only what it says next does.
            let was_answered = landed.iter().all(|landed| landed.answer.is_some());
            if !was_answered && !current.is_alive_after(probe_of(unusual)).await {
                is_alive = false;
                break;
            }
        }
        if is_alive && current.is_alive_after(probe_of(unusual)).await {
            visit = Some(current);
        } else {
            takes.push(current.end().await);
        }
    }
    if let Some(visit) = visit {
        takes.push(visit.end().await);
    }
    takes
}

/// The name under which a rule finds what was tried.
fn probe_of(unusual: Unusual) -> &'static str {
    match unusual {
        Unusual::Extra => "call-extra-argument",
        Unusual::Null => "call-null-argument",
        Unusual::Boundary => "call-boundary-argument",
        Unusual::Unicode => "call-unicode-argument",
        Unusual::Large => "call-large-argument",
    }
}

/// Modern HTTP: a session that has listed the tools mirrors arguments into headers, as a client has to.
async fn learn_headers(visit: &mut Visit<'_>, tools: &[Callable]) {
    let needs_headers = tools.iter().any(|tool| memchr::memmem::find(tool.tool.to_string().as_bytes(), b"\"x-mcp-header\"").is_some());
    if needs_headers && visit.is_modern() {
        // A list that fails was judged when it was asked for; the calls show the rest.
        let _ = visit.session().list("tools/list", "tools", PATIENCE).await;
    }
}
