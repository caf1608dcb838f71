//! Holds what tools answer against the `outputSchema` that they declare, without being asked (2025-06-18 to 2026-07-28,
//! server/tools, output schema: servers MUST provide structured results that conform to it). What a session lists anyway is
//! used; a session that lists nothing is asked once.

use super::act::Answer;
use super::judge::is_tool_error;
use crate::judge::pretty;
use crate::plan::{Action, ExpectedFailure, Listing, OutputCheck, Step};
use crate::run::sessions::Open;
use mcproof_analysis::differences::{OutputFlaw, output_flaw};
use mcproof_analysis::{did_you_mean, missing};
use mcproof_client::Listed;
use mcproof_protocol::{Revision, methods};
use mcproof_record::{Diagnostic, Direction, FrameBody, FrameId};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};

/// The first revision with output schemas.
const FIRST: Revision = Revision::V2025_06_18;

/// The output schemas of a session, once its tools were listed.
#[derive(Default)]
pub(in crate::run) struct Outputs(Mutex<Option<OutputSchemas>>);

#[derive(Default)]
struct OutputSchemas {
    /// Of all tools; none if they cannot be listed.
    names: Option<Vec<String>>,
    schemas: HashMap<String, Value>,
    /// The names of the arguments of each tool whose input schema lists them all.
    arguments: HashMap<String, Vec<String>>,
    /// Of tools in earlier lists.
    earlier: HashSet<String>,
    /// The last page of the list.
    frame: Option<FrameId>,
}

impl OutputSchemas {
    fn of(listed: &Listed) -> Self {
        let schema = |tool: &Value| Some((tool.get("name")?.as_str()?.to_owned(), tool.get("outputSchema")?.clone()));
        let all = listed.items.iter().chain(listed.rejected.iter().map(|(tool, _)| tool));
        let names = all.filter_map(|tool| Some(tool.get("name")?.as_str()?.to_owned())).collect();
        let schemas = listed.items.iter().filter_map(schema).collect();
        let arguments = listed.items.iter().filter_map(|tool| {
            let name = tool.get("name")?.as_str()?.to_owned();
            Some((name, listed_arguments(tool.get("inputSchema")?)?))
        });
        Self { names: Some(names), schemas, arguments: arguments.collect(), earlier: HashSet::new(), frame: Some(listed.frame) }
    }

    /// In the place of what was known.
    fn after(self, known: Option<Self>) -> Self {
        let earlier = known.into_iter().flat_map(|known| known.earlier.into_iter().chain(known.names.into_iter().flatten())).collect();
        Self { earlier, ..self }
    }
}

impl Outputs {
    /// The session has listed its tools.
    pub(super) async fn learn(&self, listed: &Listed) {
        let mut known = self.0.lock().await;
        *known = Some(OutputSchemas::of(listed).after(known.take()));
    }

    /// What the response to a call owes to its schema.
    pub(super) async fn check(
        &self,
        step: &Step,
        tool: &Option<String>,
        answer: &Answer,
        open: &Open,
        deadline: Duration,
    ) -> Vec<Diagnostic> {
        let (Action::Call { .. }, Some(tool), OutputCheck::Validated) = (&step.action, tool, step.output) else { return Vec::new() };
        let Ok(result) = &answer.result else { return Vec::new() };
        let is_complete = result.get("resultType").and_then(Value::as_str).is_none_or(|kind| kind == "complete");
        if is_tool_error(result) || !is_complete || Revision::at(&open.session.handshake().protocol_version) < FIRST {
            return Vec::new();
        }
        let Some(schema) = self.schema(tool, open, deadline).await else { return Vec::new() };
        let found = judge(tool, &schema, result);
        found.into_iter().map(|diagnostic| diagnostic.at(step.place.clone())).collect()
    }

    /// Says so where a call that was refused was one of a tool that the server does not list, with the names that it may have
    /// been meant for.
    pub(super) async fn unknown_tool(&self, tool: &str, answer: &Answer, open: &Open, deadline: Duration) -> Option<String> {
        let was_refused = answer.result.as_ref().map_or(true, is_tool_error);
        let is_over = open.session.closed_because().is_some();
        if !was_refused || is_over {
            return None;
        }
        let known = self.known(open, deadline).await;
        let names = known.as_ref().and_then(|known| known.names.as_ref())?;
        missing("tool", tool, names.iter().map(String::as_str))
    }

    /// Every call of a tool that is not there fails. One that only has to fail, in any way, shows nothing then, if its name is almost that
    /// of a tool. A tool that was listed before is no misspelled one.
    pub(super) async fn misspelled(&self, step: &Step, tool: &str, answer: &Answer, open: &Open, deadline: Duration) -> Option<Diagnostic> {
        if !matches!(step.action, Action::Call { .. }) || !fails_anyhow(step) {
            return None;
        }
        let message = self.unknown_tool(tool, answer, open, deadline).await?;
        let known = self.known(open, deadline).await;
        let OutputSchemas { names, earlier, .. } = known.as_ref()?;
        did_you_mean(tool, names.iter().flatten().map(String::as_str))?;
        let hint = "any call of a tool that is not listed fails; if this one is missing on purpose, describe the error: \
                    `tool_error: /unknown/i` or `rpc_error: { code: -32602 }`";
        (!earlier.contains(tool)).then(|| Diagnostic::error("unknown-tool", message).hint(hint).at(step.place.clone()))
    }

    /// An argument that the tool does not have is ignored by most servers, and refused by the rest: if its name is almost that of one which
    /// the tool has and which was not sent, the step tests something else than what is written.
    pub(super) async fn misspelled_argument(
        &self,
        step: &Step,
        tool: &str,
        sent: &Map<String, Value>,
        open: &Open,
        deadline: Duration,
    ) -> Option<Diagnostic> {
        let is_told = step.expect.failure.is_some() && !fails_anyhow(step);
        let is_over = open.session.closed_because().is_some() || Revision::at(&open.session.handshake().protocol_version) < FIRST;
        if !matches!(step.action, Action::Call { .. }) || is_told || sent.is_empty() || is_over {
            return None;
        }
        let known = self.known(open, deadline).await;
        let names = known.as_ref()?.arguments.get(tool)?;
        let unknown = sent.keys().filter(|name| !names.contains(name));
        let unsent = || names.iter().map(String::as_str).filter(|name| !sent.contains_key(*name));
        let (name, near) = unknown.filter_map(|name| Some((name, did_you_mean(name, unsent())?))).next()?;
        let message = format!("`{tool}` has no argument `{name}`: did you mean `{near}`?");
        let hint = "if it is sent on purpose, describe the error that follows: `tool_error: /unknown/i` or `rpc_error: { code: -32602 }`; \
                    where it is to be ignored, send the call with `raw:`";
        Some(Diagnostic::error("unknown-argument", message).hint(hint).at(step.place.clone()))
    }

    /// The same for prompts, their arguments and resources: what is not there fails in any case. Nothing is asked unless such a failure came.
    pub(super) async fn misspelled_other(
        &self,
        step: &Step,
        target: &str,
        answer: &Answer,
        open: &Open,
        deadline: Duration,
    ) -> Option<Diagnostic> {
        let (listing, noun, arguments) = match &step.action {
            Action::Prompt { arguments, .. } => (Listing::Prompts, "prompt", arguments.keys().map(String::as_str).collect()),
            Action::Complete { reference, argument, .. } if reference.get("name").is_some() => {
                (Listing::Prompts, "prompt", vec![argument.as_str()])
            }
            Action::Read { .. } => (Listing::Resources, "resource", Vec::new()),
            _ => return None,
        };
        // What is missing now may have been there.
        let has_changed = open.session.notifications().iter().any(|came| came.method.ends_with("/list_changed"));
        if !fails_anyhow(step) || answer.result.is_ok() || has_changed || open.session.closed_because().is_some() {
            return None;
        }
        let (list, key) = listing.members();
        // A question of ours, which is no part of the test.
        open.injector.iter().for_each(|injector| injector.pause());
        let listed = open.session.list(listing.method(), list, deadline).await;
        open.injector.iter().for_each(|injector| injector.resume());
        let items = listed.ok()?.items;
        let name_of = |item: &Value| item.get(key).and_then(Value::as_str).map(str::to_owned);
        let names: Vec<String> = items.iter().filter_map(name_of).collect();
        let message = match items.iter().find(|item| name_of(item).as_deref() == Some(target)) {
            None => {
                let near = match listing {
                    Listing::Resources => names.iter().map(String::as_str).find(|known| is_misspelled_uri(target, known)),
                    _ => did_you_mean(target, names.iter().map(String::as_str)),
                }?;
                format!("the server has no {noun} `{target}`: did you mean `{near}`?")
            }
            Some(item) => {
                let known: Vec<&str> = item.get("arguments")?.as_array()?.iter().filter_map(|one| one.get("name")?.as_str()).collect();
                let unsent = || known.iter().copied().filter(|name| !arguments.contains(name));
                let mut unknown = arguments.iter().filter(|name| !known.contains(name));
                let (name, near) = unknown.find_map(|name| Some((name, did_you_mean(name, unsent())?)))?;
                format!("the {noun} `{target}` has no argument `{name}`: did you mean `{near}`?")
            }
        };
        let hint = "what is not listed fails in any case; if it is missing on purpose, describe the error: `rpc_error: { code: -32602 }`";
        Some(Diagnostic::error("unknown-name", message).hint(hint).at(step.place.clone()))
    }

    async fn schema(&self, tool: &str, open: &Open, deadline: Duration) -> Option<Value> {
        self.known(open, deadline).await.as_ref().and_then(|known| known.schemas.get(tool).cloned())
    }

    /// What the last list told, or a new one if it is no longer true.
    async fn known(&self, open: &Open, deadline: Duration) -> MutexGuard<'_, Option<OutputSchemas>> {
        let mut known = self.0.lock().await;
        let stale = known.as_ref().is_some_and(|known| changed_since(open, known.frame));
        if stale || known.is_none() {
            // A tool that can be called without being listed breaks another rule than this one.
            let listed = open.session.list(methods::TOOLS_LIST, "tools", deadline).await;
            let listed = match listed {
                Ok(listed) => OutputSchemas::of(&listed),
                Err(failure) => {
                    let text = format!("responses are not validated against output schemas, because the tools cannot be listed: {failure}");
                    let frame = open.tap.record(Direction::Local, FrameBody::Note { text });
                    OutputSchemas { names: None, frame: Some(frame), ..OutputSchemas::default() }
                }
            };
            *known = Some(listed.after(known.take()));
        }
        known
    }
}

/// Whether a step expects an error and says nothing about it.
fn fails_anyhow(step: &Step) -> bool {
    let expected = step.expect.failure.as_ref().map(|failure| &failure.value);
    let is_any = matches!(expected, Some(ExpectedFailure::Either | ExpectedFailure::Tool(None) | ExpectedFailure::Rpc(None)));
    is_any && step.expect.payload.is_none() && step.expect.result.is_none()
}

/// The members of an input schema; none if it may have others that have no name in it.
fn listed_arguments(schema: &Value) -> Option<Vec<String>> {
    const PLAIN: [&str; 9] = ["$schema", "$id", "$comment", "$defs", "definitions", "type", "title", "description", "required"];
    let members = schema.as_object()?;
    let is_plain = |(name, value): (&String, &Value)| match name.as_str() {
        "properties" => true,
        // Who writes that others are allowed expects some.
        "additionalProperties" => value.as_bool() == Some(false),
        name => PLAIN.contains(&name),
    };
    if !members.iter().all(is_plain) {
        return None;
    }
    Some(members.get("properties")?.as_object()?.keys().cloned().collect())
}

fn changed_since(open: &Open, frame: Option<FrameId>) -> bool {
    open.session
        .notifications()
        .iter()
        .any(|notification| notification.method == methods::notifications::TOOLS_LIST_CHANGED && Some(notification.frame) > frame)
}

fn judge(tool: &str, schema: &Value, result: &Value) -> Option<Diagnostic> {
    let hint = "return what the `outputSchema` declares; `validate_output: false` turns the check off for this step";
    match output_flaw(schema, result)? {
        OutputFlaw::Missing => {
            let message = format!("`{tool}` declares an `outputSchema`, and its result has no `structuredContent`");
            let diagnostic = Diagnostic::error("missing-structured-content", message).hint(hint);
            Some(Diagnostic { actual: Some(pretty(result)), ..diagnostic })
        }
        OutputFlaw::Differs(differences) => {
            let message = format!("the result of `{tool}` breaks the tool's own `outputSchema`");
            let diagnostic = Diagnostic::error("output-breaks-schema", message).hint(hint);
            Some(Diagnostic { differences, actual: result.get("structuredContent").map(pretty), ..diagnostic })
        }
        OutputFlaw::TooCostly(too_costly) => {
            let message = format!("the result of `{tool}` cannot be held against its `outputSchema`: {too_costly}");
            let hint = "make schemas refer to each other less often, or results smaller: clients validate them, too; `validate_output: false` leaves the step unchecked";
            Some(Diagnostic::error("costly-output-schema", message).hint(hint))
        }
        OutputFlaw::NoSchema(reason) => {
            let message = format!("the `outputSchema` of `{tool}` is not a valid JSON Schema: {reason}");
            let diagnostic = Diagnostic::error("bad-output-schema", message);
            Some(Diagnostic {
                actual: Some(pretty(schema)),
                ..diagnostic.hint("correct the schema; clients refuse the tool, or all of them")
            })
        }
    }
}

/// Whether two URIs differ only in how the end of their path is spelled. All that lies in one place is alike, and other numbers are other things.
fn is_misspelled_uri(meant: &str, known: &str) -> bool {
    let (Some((place, end)), Some((place_of_known, known))) = (meant.rsplit_once('/'), known.rsplit_once('/')) else { return false };
    let letters = |text: &str| text.chars().filter(|letter| !letter.is_ascii_digit()).collect::<String>();
    place == place_of_known && letters(end) != letters(known) && did_you_mean(end, [known]).is_some()
}
