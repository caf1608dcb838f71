//! From what a server said to the tests of a suite. Knows what is worth a test, not how values are compared or written.

use super::expectation::{self, Known, literal, member};
use super::exploration::{Asked, Explored, List, NOBODY, NOWHERE, Outcome, Subject, may_be_called};
use super::now::Now;
use super::{BaseEnvironment, yaml};
use mcproof_analysis::differences::output_flaw;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Characters of a name of the server's in the name of a test.
const LONGEST_NAME: usize = 60;
/// Names that are listed one by one.
const MOST_NAMES: usize = 500;

/// One test.
pub(super) struct Case {
    pub(super) kind: Kind,
    pub(super) is_to_review: bool,
    name: String,
    is_read_only: bool,
    comment: Option<&'static str>,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A tool, by an answer of it.
    Called,
    /// A tool, by what the list says of it.
    Listed,
    Other,
}

struct Step {
    action: &'static str,
    /// Lists have none.
    object: Option<Value>,
    rest: Vec<(&'static str, Value)>,
}

impl Case {
    fn new(name: impl Into<String>, step: Step) -> Self {
        Self { kind: Kind::Other, is_to_review: false, name: name.into(), is_read_only: true, comment: None, step }
    }

    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        if let Some(comment) = self.comment {
            text += &format!("  # {comment}\n");
        }
        text += &format!("  - name: {}\n", yaml::scalar(&escaped(&self.name)));
        if self.is_read_only {
            text += "    tags: [read-only]\n";
        }
        text += "    steps:\n";
        let mut lines = String::new();
        let Step { action, object, rest } = &self.step;
        match object {
            Some(object) => yaml::entry(&mut lines, 8, action, &escaped_value(object), None),
            None => lines += &format!("        {action}:\n"),
        }
        for (key, value) in rest {
            let is_to_review = *key == "with" && self.is_to_review;
            yaml::entry(&mut lines, 8, key, &escaped_value(value), is_to_review.then_some("review"));
        }
        text + "      - " + &lines[8..]
    }
}

/// The tests for all that a server said.
pub(super) fn draft(interviewed: &Explored, now: &Now, surroundings: &BaseEnvironment) -> Vec<Case> {
    let mut cases = vec![handshake(interviewed)];
    let lists = [
        ("tools", "name", "exact list of tools", &interviewed.tools),
        ("prompts", "name", "exact list of prompts", &interviewed.prompts),
        ("resources", "uri", "exact list of resources", &interviewed.resources),
        ("templates", "uriTemplate", "exact list of resource templates", &interviewed.templates),
    ];
    cases.extend(lists.into_iter().filter_map(|(action, key, title, list)| listing(action, key, title, list, surroundings)));
    let answers = Answers { interviewed, now, surroundings };
    for tool in interviewed.tools.items() {
        cases.extend(answers.tool(tool));
    }
    cases.extend(interviewed.asked.iter().filter_map(|asked| answers.beside_tools(asked)));
    let mut names = BTreeSet::new();
    for case in &mut cases {
        let name = case.name.clone();
        let mut number = 1;
        while !names.insert(case.name.clone()) {
            number += 1;
            case.name = format!("{name} ({number})");
        }
    }
    cases
}

fn handshake(interviewed: &Explored) -> Case {
    let handshake = interviewed.handshake();
    let mut expect = Map::new();
    if let Some(name) = handshake.server_info.as_ref().and_then(|info| info.get("name")).and_then(Value::as_str) {
        expect.insert("serverInfo".into(), json!({ "name": literal(name) }));
    }
    let capabilities = handshake.capabilities.as_object().into_iter().flatten();
    let declared =
        capabilities.filter(|(_, value)| value.is_object()).filter_map(|(key, _)| Some((member(key)?, json!({ "$type": "object" }))));
    expect.insert("capabilities".into(), Value::Object(declared.collect()));
    Case::new("server info and capabilities", Step { action: "handshake", object: None, rest: vec![("expect", Value::Object(expect))] })
}

fn listing(action: &'static str, key: &str, title: &str, list: &List, surroundings: &BaseEnvironment) -> Option<Case> {
    let List::Items { items, again } = list else { return None };
    let all: Vec<&str> = items.iter().filter_map(|item| item.get(key)?.as_str()).collect();
    let again = again.as_ref()?;
    let steady: Vec<&str> =
        all.iter().copied().filter(|name| !name.is_empty() && again.contains(*name) && !is_private(name, surroundings)).collect();
    // What is empty now will be filled one day: that proves nothing.
    if steady.is_empty() {
        return None;
    }
    let is_steady = steady.len() == all.len() && again.len() == all.len();
    if is_steady && all.len() <= MOST_NAMES {
        return Some(Case::new(title, Step { action, object: Some(json!(all)), rest: Vec::new() }));
    }
    let some: Vec<Value> = steady.into_iter().take(MOST_NAMES).map(literal).collect();
    let name = format!("the {action} are listed");
    let mut case = Case::new(name, Step { action, object: None, rest: vec![("expect", json!({ "$contains_all": some }))] });
    case.comment = Some("review: parts of the list differ between runs or machines");
    case.is_to_review = true;
    Some(case)
}

struct Answers<'a> {
    interviewed: &'a Explored,
    now: &'a Now,
    surroundings: &'a BaseEnvironment,
}

impl Answers<'_> {
    /// A tool as it answers, or else as it is listed, and what it refuses.
    fn tool(&self, tool: &Value) -> Vec<Case> {
        let name = tool["name"].as_str().unwrap_or_default();
        let asked = |wanted: &dyn Fn(&Subject) -> bool| self.interviewed.asked.iter().find(|asked| wanted(&asked.subject));
        let called = asked(&|subject| *subject == Subject::Tool(name.to_owned()));
        let mut cases = vec![called.and_then(|called| self.called(tool, name, called)).unwrap_or_else(|| self.listed(tool, name, called))];
        let without = asked(&|subject| matches!(subject, Subject::ToolWithout { tool, .. } if tool == name));
        if let Some(asked) = without
            && let Subject::ToolWithout { property, .. } = &asked.subject
        {
            let title = format!("{} requires {}", shown(name), shown(property));
            cases.extend(refused(title, asked, call(name, asked)));
        }
        let is_read_only = tool.pointer("/annotations/readOnlyHint") == Some(&Value::Bool(true));
        for case in cases.iter_mut().filter(|case| case.kind != Kind::Listed) {
            case.is_read_only = is_read_only;
        }
        cases
    }

    fn called(&self, tool: &Value, name: &str, asked: &Asked) -> Option<Case> {
        let arguments = asked.arguments();
        let has_arguments = arguments.as_object().is_some_and(|arguments| !arguments.is_empty());
        let mut step = call(name, asked);
        match (&asked.first, &asked.second) {
            (Outcome::Result(first), Outcome::Result(second)) => {
                step.rest.push(expectation::of_call(first, second, &self.known(&arguments, is_open(tool))));
                let mut case = Case::new(format!("{} responds", shown(name)), step);
                let schema = tool.get("outputSchema");
                if schema.is_some_and(|schema| [first, second].iter().any(|result| output_flaw(schema, result).is_some())) {
                    case.step.rest.push(("validate_output", json!(false)));
                    case.comment = Some("review: the result does not match its `outputSchema`");
                }
                case.is_to_review = has_arguments || case.comment.is_some();
                case.kind = Kind::Called;
                Some(case)
            }
            (first, second) if first.is_refusal() && second.is_refusal() && !is_open(tool) => {
                let mut case = refused(format!("{} rejects arguments that it cannot use", shown(name)), asked, step)?;
                case.comment = Some("review: the server rejected all arguments that were tried; replace them");
                case.is_to_review = true;
                case.kind = Kind::Called;
                Some(case)
            }
            _ => None,
        }
    }

    /// What the list says of a tool that was not called, or not to any avail.
    fn listed(&self, tool: &Value, name: &str, asked: Option<&Asked>) -> Case {
        let schema = &tool["inputSchema"];
        let mut expected = Map::new();
        if let Some(kind) = schema["type"].as_str() {
            expected.insert("type".into(), literal(kind));
        }
        let properties = schema["properties"].as_object().into_iter().flatten();
        let types: Map<String, Value> = properties
            .filter_map(|(property, schema)| {
                let kind = schema.get("type").and_then(Value::as_str).map(literal);
                Some((member(property)?, kind.map_or_else(|| json!({ "$any": true }), |kind| json!({ "type": kind }))))
            })
            .collect();
        if !types.is_empty() {
            expected.insert("properties".into(), Value::Object(types));
        }
        let required: Vec<Value> = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .filter(|name| !name.is_empty())
            .map(literal)
            .collect();
        if !required.is_empty() {
            expected.insert("required".into(), json!({ "$contains_all": required }));
        }
        let of_tool = match expected.is_empty() {
            true => json!({ "name": literal(name) }),
            false => json!({ "inputSchema": expected }),
        };
        let expect = match member(name) {
            Some(key) => json!({ key: of_tool }),
            None => json!({ "$contains": { "name": literal(name) } }),
        };
        let title = format!("{} is listed with its input schema", shown(name));
        let mut case = Case::new(title, Step { action: "tools", object: None, rest: vec![("expect", expect)] });
        case.kind = Kind::Listed;
        case.is_to_review = true;
        case.comment = Some(match asked {
            _ if !self.interviewed.calls.allows(tool) => "review: not called, because it does not declare itself read-only",
            _ if !may_be_called(tool, &self.interviewed.calls) => "review: not called, because it requires a task",
            None => "review: not called, because no arguments were found that its schema accepts",
            Some(Asked { first: Outcome::Asks, .. } | Asked { second: Outcome::Asks, .. }) => {
                "review: it asks the client for input, which `answers` gives"
            }
            Some(Asked { first: Outcome::Nothing, .. }) => "review: the call returned no usable response in time",
            Some(asked) if asked.first.is_refusal() && is_open(tool) => {
                "review: it rejected all arguments that were tried, perhaps because of a system that it depends on"
            }
            Some(_) => "review: of two calls, only one got a response",
        });
        case
    }

    fn beside_tools(&self, asked: &Asked) -> Option<Case> {
        let step = |action, object: &str| Step { action, object: Some(json!(object)), rest: Vec::new() };
        match &asked.subject {
            Subject::Tool(_) | Subject::ToolWithout { .. } => None,
            Subject::UnknownTool => refused("an unknown tool fails".into(), asked, step("call", NOBODY)),
            Subject::UnknownResource => refused("an unknown resource fails".into(), asked, step("read", NOWHERE)),
            Subject::UnknownPrompt => refused("an unknown prompt fails".into(), asked, step("prompt", NOBODY)),
            Subject::Resource(uri) if is_private(uri, self.surroundings) => None,
            Subject::Resource(uri) => self.answered(format!("{} can be read", shown(uri)), asked, step("read", uri), "contents"),
            Subject::Prompt(name) => {
                let mut step = step("prompt", name);
                step.rest.extend(given(asked));
                self.answered(format!("{} is a prompt", shown(name)), asked, step, "messages")
            }
        }
    }

    fn answered(&self, title: String, asked: &Asked, mut step: Step, key: &str) -> Option<Case> {
        let (Outcome::Result(first), Outcome::Result(second)) = (&asked.first, &asked.second) else { return None };
        let is_to_review = !step.rest.is_empty();
        let arguments = asked.arguments();
        let expected = expectation::of_values(first.get(key)?, second.get(key)?, &self.known(&arguments, false));
        step.rest.push(("expect", json!({ key: expected })));
        Some(Case { is_to_review, ..Case::new(title, step) })
    }

    fn known<'a>(&'a self, arguments: &'a Value, is_open: bool) -> Known<'a> {
        Known { arguments, now: self.now, surroundings: self.surroundings, is_open, was_repeated: true }
    }
}

fn call(name: &str, asked: &Asked) -> Step {
    Step { action: "call", object: Some(json!(name)), rest: given(asked).into_iter().collect() }
}

fn given(asked: &Asked) -> Option<(&'static str, Value)> {
    let arguments = asked.arguments();
    arguments.as_object().is_some_and(|arguments| !arguments.is_empty()).then_some(("with", arguments))
}

fn is_private(text: &str, surroundings: &BaseEnvironment) -> bool {
    surroundings.private.iter().any(|private| text.contains(private)) || surroundings.holds_secret(text)
}

/// A test that something is refused, as it was both times.
fn refused(title: String, asked: &Asked, mut step: Step) -> Option<Case> {
    step.rest.push(match (&asked.first, &asked.second) {
        (Outcome::ToolError, Outcome::ToolError) => ("tool_error", json!(true)),
        (Outcome::Rpc(first), Outcome::Rpc(second)) if first.code == second.code => ("rpc_error", json!({ "code": first.code })),
        (first, second) if first.is_refusal() && second.is_refusal() => ("fails", json!(true)),
        _ => return None,
    });
    Some(Case::new(title, step))
}

/// Whether what a tool answers depends on more than the server (2025-03-26 to 2026-07-28, schema, `ToolAnnotations`).
fn is_open(tool: &Value) -> bool {
    tool.pointer("/annotations/openWorldHint") == Some(&Value::Bool(true))
}

/// A name of the server's, in the name of a test.
fn shown(name: &str) -> String {
    match name.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// What a server wrote is no variable.
fn escaped(text: &str) -> String {
    text.replace("${", "$${")
}

fn escaped_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(escaped(text)),
        Value::Array(items) => Value::Array(items.iter().map(escaped_value).collect()),
        Value::Object(members) => Value::Object(members.iter().map(|(key, value)| (key.clone(), escaped_value(value))).collect()),
        other => other.clone(),
    }
}
