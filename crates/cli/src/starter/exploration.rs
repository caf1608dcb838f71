//! Asks a server for everything that it offers, and calls what may be called: twice, in two sessions, the second time from the
//! end to the beginning, so that what depends on the moment, the process or the order shows. Knows what to ask, not what is
//! expected.

use mcproof_analysis::arguments::{self, Variant};
use mcproof_analysis::json_schema::Schema;
use mcproof_analysis::missing;
use mcproof_check::Permission;
use mcproof_client::jsonrpc::RpcError;
use mcproof_client::{Handshake, ListFailure, Session};
use mcproof_protocol::methods;
use mcproof_record::{Direction, Frame, FrameBody};
use regex::Regex;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

/// For one question. What takes longer is no test for every day.
const PATIENCE: Duration = Duration::from_secs(8);
/// For all questions of a session; what is left then is not asked.
const BUDGET: Duration = Duration::from_secs(120);
/// Arguments that are tried until the server takes some.
const MOST_ATTEMPTS: usize = 5;
/// Resources that are read, and prompts that are got.
const MOST_READ: usize = 20;
/// Nothing has this name.
pub(super) const NOBODY: &str = "mcproof-no-such-thing";
pub(super) const NOWHERE: &str = "mcproof://no/such/resource";

/// What may be asked, and how.
pub(crate) struct Exploration {
    pub calls: Permission,
    /// For each list.
    pub timeout: Duration,
    /// Files and folders that the server was told of: arguments that name one are tried with them.
    pub paths: Vec<String>,
}

/// How far a session of questions is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stage<'a> {
    /// What is being asked about: the name of a tool, a resource or a prompt.
    pub subject: &'a str,
    /// Counted from 1.
    pub number: usize,
    pub of: usize,
}

/// What a server said in one session or in two.
pub(crate) struct Explored {
    pub(super) handshake: Handshake,
    pub(super) tools: List,
    pub(super) prompts: List,
    pub(super) resources: List,
    pub(super) templates: List,
    pub(super) asked: Vec<Asked>,
    pub(super) calls: Permission,
}

impl Explored {
    pub(crate) fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    /// What is wrong with a tool that was to be called, if the server does not list it.
    pub(crate) fn unknown_call(&self) -> Option<String> {
        let List::Items { items, .. } = &self.tools else { return None };
        let names = items.iter().filter_map(|tool| tool.get("name")?.as_str());
        self.calls.unknown(items).iter().find_map(|name| missing("tool", name, names.clone()))
    }

    /// Prompts and resources that are listed, but were not to be had, each with the reason.
    pub(super) fn refused(&self) -> Vec<String> {
        let refused = self.asked.iter().filter_map(|asked| {
            let what = match &asked.subject {
                Subject::Prompt(name) => format!("prompt `{name}`"),
                Subject::Resource(uri) => format!("resource `{uri}`"),
                _ => return None,
            };
            let why = match (&asked.first, &asked.second) {
                (Outcome::Result(_), Outcome::Result(_)) => return None,
                (Outcome::Rpc(error), _) | (_, Outcome::Rpc(error)) => error.to_string(),
                (Outcome::Asks, _) | (_, Outcome::Asks) => "it asks the client for input, which `answers` gives".to_owned(),
                _ => "no usable response in time".to_owned(),
            };
            Some(format!("{what}: {why}"))
        });
        refused.collect()
    }

    pub(super) fn has_bad_lists(&self) -> bool {
        [&self.tools, &self.prompts, &self.resources, &self.templates].iter().any(|list| matches!(list, List::Bad))
    }
}

/// One of the lists.
pub(super) enum List {
    /// The server does not offer it.
    None,
    /// Items without names, or with the same one.
    Bad,
    Items {
        items: Vec<Value>,
        /// Those that a second session listed.
        again: Option<HashSet<String>>,
    },
}

impl List {
    pub(super) fn items(&self) -> &[Value] {
        if let Self::Items { items, .. } = self { items } else { &[] }
    }
}

/// What a question is about.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Subject {
    Tool(String),
    /// A tool, without an argument that it demands.
    ToolWithout {
        tool: String,
        property: String,
    },
    UnknownTool,
    Resource(String),
    UnknownResource,
    Prompt(String),
    UnknownPrompt,
}

impl Subject {
    fn name(&self) -> &str {
        match self {
            Self::Tool(name) | Self::Resource(name) | Self::Prompt(name) | Self::ToolWithout { tool: name, .. } => name,
            Self::UnknownTool | Self::UnknownPrompt => NOBODY,
            Self::UnknownResource => NOWHERE,
        }
    }
}

#[derive(Debug)]
pub(super) struct Asked {
    pub(super) subject: Subject,
    method: &'static str,
    params: Map<String, Value>,
    pub(super) first: Outcome,
    pub(super) second: Outcome,
}

impl Asked {
    fn was_answered(&self) -> bool {
        !matches!(self.first, Outcome::Nothing | Outcome::Asks)
    }

    pub(super) fn arguments(&self) -> Value {
        self.params.get("arguments").cloned().unwrap_or_else(|| json!({}))
    }
}

#[derive(Clone, Debug)]
pub(super) enum Outcome {
    Result(Value),
    /// A result with `isError`.
    ToolError,
    Rpc(RpcError),
    /// The server asked the client for something, which the client has not declared.
    Asks,
    /// No answer, or none that a client can use.
    Nothing,
}

impl Outcome {
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::ToolError | Self::Rpc(_))
    }
}

/// The lists: method, key of the items, capability, what names an item.
const LISTS: [(&str, &str, &str, &str); 4] = [
    (methods::TOOLS_LIST, "tools", "tools", "name"),
    (methods::PROMPTS_LIST, "prompts", "prompts", "name"),
    (methods::RESOURCES_LIST, "resources", "resources", "uri"),
    (methods::RESOURCES_TEMPLATES_LIST, "resourceTemplates", "resources", "uriTemplate"),
];

/// The first session. `told` hears of each subject before it is asked about.
///
/// # Errors
/// The method of a list that could not be had, and why.
pub(crate) async fn interview(
    session: &Session,
    interview: &Exploration,
    told: &mut dyn FnMut(Stage<'_>),
) -> Result<Explored, (&'static str, ListFailure)> {
    let mut lists = [List::None, List::None, List::None, List::None];
    for (list, (method, key, capability, name)) in lists.iter_mut().zip(LISTS) {
        if session.handshake().capabilities.get(capability).is_some_and(Value::is_object) {
            *list = match session.list(method, key, interview.timeout).await {
                Ok(listed) => named(listed.items, name),
                // Many servers declare resources and have no templates.
                Err(ListFailure::Rpc { .. }) => List::None,
                // Clients that ask only for the tools never see it.
                Err(
                    ListFailure::NoArray { .. }
                    | ListFailure::RepeatedCursor { .. }
                    | ListFailure::TooManyPages { .. }
                    | ListFailure::TooLarge { .. }
                    | ListFailure::TooSlow { .. },
                ) if method != methods::TOOLS_LIST => List::Bad,
                Err(failure) => return Err((method, failure)),
            };
        }
    }
    let [tools, prompts, resources, templates] = lists;
    let handshake = session.handshake().clone();
    let mut interviewed = Explored { handshake, tools, prompts, resources, templates, asked: Vec::new(), calls: interview.calls.clone() };
    let mut asking = Asking { session, until: Instant::now() + BUDGET, told, number: 0, of: subjects(&interviewed, interview) };
    let asked = asking.everything(&interviewed, interview).await;
    interviewed.asked = asked;
    Ok(interviewed)
}

/// The second session: the same questions.
pub(crate) async fn interview_again(session: &Session, interviewed: &mut Explored, timeout: Duration, told: &mut dyn FnMut(Stage<'_>)) {
    let Explored { tools, prompts, resources, templates, asked, .. } = interviewed;
    for (list, (method, key, _, name)) in [tools, prompts, resources, templates].into_iter().zip(LISTS) {
        if let List::Items { again, .. } = list
            && let Ok(listed) = session.list(method, key, timeout).await
        {
            let names = listed.items.iter().filter_map(|item| item.get(name)?.as_str().map(str::to_owned));
            *again = Some(names.collect());
        }
    }
    let of = asked.iter().filter(|question| question.was_answered()).count();
    let mut asking = Asking { session, until: Instant::now() + BUDGET, told, number: 0, of };
    for question in asked.iter_mut().rev().filter(|question| question.was_answered()) {
        asking.turn_to(question.subject.name());
        question.second = asking.ask(question.method, &question.params).await;
    }
}

fn named(items: Vec<Value>, name: &str) -> List {
    let mut names = HashSet::new();
    let is_named = |item: &Value| item.get(name).and_then(Value::as_str).is_some_and(|name| names.insert(name.to_owned()));
    if items.iter().all(is_named) { List::Items { items, again: None } } else { List::Bad }
}

/// What the first session asks about.
fn subjects(known: &Explored, interview: &Exploration) -> usize {
    let (resources, prompts) = (known.resources.items().len(), known.prompts.items().len());
    let tools = known.tools.items().iter().filter(|tool| may_be_called(tool, &interview.calls)).count();
    let unknown = [!known.tools.items().is_empty(), resources > 0 || !known.templates.items().is_empty(), prompts > 0];
    tools + resources.min(MOST_READ) + prompts.min(MOST_READ) + unknown.into_iter().filter(|is_asked| *is_asked).count()
}

struct Asking<'a> {
    session: &'a Session,
    until: Instant,
    told: &'a mut dyn FnMut(Stage<'_>),
    /// Subjects so far.
    number: usize,
    of: usize,
}

impl Asking<'_> {
    fn turn_to(&mut self, subject: &str) {
        self.number += 1;
        (self.told)(Stage { subject, number: self.number, of: self.of });
    }

    async fn everything(&mut self, known: &Explored, interview: &Exploration) -> Vec<Asked> {
        let mut asked = Vec::new();
        for tool in known.tools.items().iter().filter(|tool| may_be_called(tool, &interview.calls)) {
            self.turn_to(tool["name"].as_str().unwrap_or_default());
            self.tool(tool, known, interview, &mut asked).await;
        }
        let name = |name: &str| Map::from_iter([("name".to_owned(), json!(name))]);
        let uri = |uri: &str| Map::from_iter([("uri".to_owned(), json!(uri))]);
        if !known.tools.items().is_empty() {
            asked.push(self.subject(Subject::UnknownTool, methods::TOOLS_CALL, call(NOBODY, &json!({}))).await);
        }
        for resource in known.resources.items().iter().take(MOST_READ).filter_map(|resource| resource["uri"].as_str()) {
            asked.push(self.subject(Subject::Resource(resource.to_owned()), methods::RESOURCES_READ, uri(resource)).await);
        }
        if !known.resources.items().is_empty() || !known.templates.items().is_empty() {
            asked.push(self.subject(Subject::UnknownResource, methods::RESOURCES_READ, uri(NOWHERE)).await);
        }
        for prompt in known.prompts.items().iter().take(MOST_READ) {
            let called = prompt["name"].as_str().unwrap_or_default();
            let mut params = name(called);
            let demanded = prompt["arguments"].as_array().into_iter().flatten().filter(|argument| argument["required"] == true);
            let given: Map<String, Value> =
                demanded.filter_map(|argument| Some((argument["name"].as_str()?.to_owned(), json!("mcproof")))).collect();
            if !given.is_empty() {
                params.insert("arguments".into(), Value::Object(given));
            }
            asked.push(self.subject(Subject::Prompt(called.to_owned()), methods::PROMPTS_GET, params).await);
        }
        if !known.prompts.items().is_empty() {
            asked.push(self.subject(Subject::UnknownPrompt, methods::PROMPTS_GET, name(NOBODY)).await);
        }
        asked
    }

    /// Calls a tool until it takes the arguments, and once without one that it demands.
    async fn tool(&mut self, tool: &Value, known: &Explored, interview: &Exploration, asked: &mut Vec<Asked>) {
        let (name, schema) = (tool["name"].as_str().unwrap_or_default(), &tool["inputSchema"]);
        let Some(least) = arguments::minimal(schema) else { return };
        let uris: Vec<&str> = known.resources.items().iter().filter_map(|resource| resource["uri"].as_str()).collect();
        let mut chosen: Option<Asked> = None;
        for arguments in attempts(schema, &least, &interview.paths, &uris) {
            let question = self.question(Subject::Tool(name.to_owned()), methods::TOOLS_CALL, call(name, &arguments)).await;
            let was_taken = matches!(question.first, Outcome::Result(_));
            if was_taken || chosen.is_none() {
                chosen = Some(question);
            }
            if was_taken {
                break;
            }
        }
        let Some(chosen) = chosen else { return };
        if let Some(Variant { property, arguments }) = arguments::missing(schema, &chosen.arguments()).into_iter().next() {
            let subject = Subject::ToolWithout { tool: name.to_owned(), property };
            asked.push(self.question(subject, methods::TOOLS_CALL, call(name, &arguments)).await);
        }
        asked.push(chosen);
    }

    async fn subject(&mut self, subject: Subject, method: &'static str, params: Map<String, Value>) -> Asked {
        self.turn_to(subject.name());
        self.question(subject, method, params).await
    }

    async fn question(&mut self, subject: Subject, method: &'static str, params: Map<String, Value>) -> Asked {
        let first = self.ask(method, &params).await;
        Asked { subject, method, params, first, second: Outcome::Nothing }
    }

    async fn ask(&mut self, method: &str, params: &Map<String, Value>) -> Outcome {
        if Instant::now() >= self.until || self.session.closed_because().is_some() {
            return Outcome::Nothing;
        }
        let begun = self.session.tap().mark();
        let reply = self.session.request_rounds(method, Some(params.clone()), PATIENCE).await;
        if self.session.tap().transcript_since(begun).frames.iter().any(asks_client) {
            return Outcome::Asks;
        }
        match reply {
            Err(_) => Outcome::Nothing,
            Ok(reply) => match reply.answer {
                Err(error) => Outcome::Rpc(error),
                Ok(result) if result.get("resultType").and_then(Value::as_str) == Some("input_required") => Outcome::Asks,
                Ok(result) if result.get("resultType").and_then(Value::as_str).is_some_and(|kind| kind != "complete") => Outcome::Nothing,
                Ok(result) if method == methods::TOOLS_CALL && !result.get("content").is_some_and(Value::is_array) => Outcome::Nothing,
                Ok(result) if result.get("isError") == Some(&Value::Bool(true)) => Outcome::ToolError,
                Ok(result) => Outcome::Result(result),
            },
        }
    }
}

/// Whether a frame brings a request for what a client may offer.
fn asks_client(frame: &Frame) -> bool {
    const FOR: [&str; 3] = [methods::ELICITATION_CREATE, methods::SAMPLING_CREATE_MESSAGE, methods::ROOTS_LIST];
    let bytes = match &frame.body {
        FrameBody::Line { bytes, .. } | FrameBody::HttpBody { bytes, .. } | FrameBody::SseEvent { data: Some(bytes), .. } => bytes,
        _ => return false,
    };
    let message = (frame.direction == Direction::FromServer).then(|| serde_json::from_slice::<Value>(bytes.as_bytes()).ok()).flatten();
    message.is_some_and(|message| message["method"].as_str().is_some_and(|method| FOR.contains(&method)))
}

/// A tool that is called only as a task is none for a plain call (2025-11-25, basic/utilities/tasks, tool-level negotiation).
pub(super) fn may_be_called(tool: &Value, calls: &Permission) -> bool {
    calls.allows(tool) && tool.pointer("/execution/taskSupport").and_then(Value::as_str) != Some("required")
}

fn call(name: &str, arguments: &Value) -> Map<String, Value> {
    Map::from_iter([("name".to_owned(), json!(name)), ("arguments".to_owned(), arguments.clone())])
}

/// The least arguments, and others for servers that want more than their schema says: what its descriptions quote, and the
/// paths and resources that there are.
fn attempts(schema: &Value, least: &Value, paths: &[String], uris: &[&str]) -> Vec<Value> {
    let mut hints: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, value) in least.as_object().into_iter().flatten() {
        let property = &schema["properties"][name];
        if !value.is_string() || property.get("enum").is_some() || property.get("const").is_some() {
            continue;
        }
        let folded = name.to_lowercase();
        let mut of_property: Vec<String> = Vec::new();
        if ["path", "file", "dir", "folder", "repo"].iter().any(|word| folded.contains(word)) {
            of_property.extend(paths.iter().cloned());
        }
        if folded.contains("uri") {
            of_property.extend(uris.iter().map(|uri| (*uri).to_owned()));
        }
        of_property.extend(property["description"].as_str().map(quoted).unwrap_or_default());
        hints.insert(name, of_property);
    }
    let judged = Schema::of(schema);
    let most = hints.values().map(Vec::len).max().unwrap_or_default();
    let mut attempts: Vec<Value> = arguments::telling(schema, least).into_iter().chain([least.clone()]).collect();
    for index in 0..most.min(MOST_ATTEMPTS - 1) {
        let mut arguments = least.clone();
        for (name, of_property) in &hints {
            if let Some(hint) = of_property.get(index).or(of_property.last()) {
                arguments[*name] = json!(hint);
            }
        }
        if judged.as_ref().is_ok_and(|schema| schema.is_valid(&arguments) == Ok(true)) && !attempts.contains(&arguments) {
            attempts.push(arguments);
        }
    }
    attempts
}

/// How descriptions write the forms of texts, each with a text of that form.
const FORMS: [(&str, &str); 3] = [("YYYY-MM-DD", "2026-01-31"), ("HH:MM:SS", "12:00:00"), ("HH:MM", "12:00")];

/// What stands in quotes in a description, examples mostly, or has the form that it names.
fn quoted(description: &str) -> Vec<String> {
    let quotes = Regex::new(r#"'([^'\s](?:[^'\n]{0,60}[^'\s])?)'|"([^"\s](?:[^"\n]{0,60}[^"\s])?)"|`([^`\s](?:[^`\n]{0,60}[^`\s])?)`"#);
    let quotes = quotes.expect("this pattern is valid");
    let found =
        quotes.captures_iter(description).filter_map(|found| found.iter().skip(1).flatten().next().map(|text| text.as_str().to_owned()));
    let formed = FORMS.into_iter().find(|(form, _)| description.contains(form)).map(|(_, text)| text.to_owned());
    found.chain(formed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_wants_besides_its_schema_is_looked_for() {
        let check = |property: &str, schema: Value, expected: &[Value]| {
            let schema = json!({ "type": "object", "properties": { property: schema }, "required": [property] });
            let least = arguments::minimal(&schema).unwrap();
            let found = attempts(&schema, &least, &["/data".to_owned()], &["demo://one"]);
            let found: Vec<Value> = found.iter().map(|arguments| arguments[property].clone()).collect();
            assert_eq!(found, expected, "{property} {schema}");
        };
        let text = |description: &str| json!({ "type": "string", "description": description });
        check("timezone", text("IANA name (e.g., 'Europe/London'), or `UTC`"), &[json!("mcproof"), json!("Europe/London"), json!("UTC")]);
        check("time", text("in 24-hour format (HH:MM)"), &[json!("mcproof"), json!("12:00")]);
        check("repo_path", text("where it lies"), &[json!("mcproof"), json!("/data")]);
        check("uri", text("which"), &[json!("mcproof"), json!("demo://one")]);
        check("count", json!({ "type": "integer", "description": "such as '5'" }), &[json!(1)]);
        check("base", json!({ "type": "number" }), &[json!(3), json!(5), json!(1)]);
        check("seconds", json!({ "type": "number" }), &[json!(1)]);
        check("names", json!({ "type": "array", "items": { "type": "string" } }), &[json!(["mcproof"]), json!([])]);
        check("path", json!({ "type": "string", "enum": ["a", "b"] }), &[json!("a")]);
        check("kind", json!({ "type": "string", "maxLength": 3, "description": "'too long'" }), &[json!("mcp")]);
    }
}
