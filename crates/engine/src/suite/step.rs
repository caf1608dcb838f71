//! Reads one step of a test: its action, and what is expected of it.

use super::document::{Entry, Kind, Node};
use super::format::{Fault, Key, Object, Presence, Shape};
use super::plan::{Action, Expectations, ExpectedFailure, Listing, Server, Spanned, Step};
use super::reader::Reader;
use super::server::{RUN, read_launch};
use super::source::Span;
use super::suggest::{did_you_mean, listed};
use crate::judge::{JsonPath, Matcher, Subject, TextPattern};
use mcproof_record::{Diagnostic, Place};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

pub static STEP: Object<StepDraft> = Object {
    name: "a step",
    keys: &[
        Key {
            name: "call",
            doc: "calls the tool of this name, with the arguments in `with`",
            shape: Shape::Text,
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                let tool = reader.template_text(node)?;
                draft.act("call", Action::Call { tool, arguments: Map::new() }, reader, node)
            },
        },
        Key {
            name: "tools",
            doc: "lists the tools; a list of names is the exact set",
            shape: Shape::Names,
            presence: Presence::OneOf,
            read: |reader, node, draft| draft.list("tools", Listing::Tools, reader, node),
        },
        Key {
            name: "prompts",
            doc: "lists the prompts; a list of names is the exact set",
            shape: Shape::Names,
            presence: Presence::OneOf,
            read: |reader, node, draft| draft.list("prompts", Listing::Prompts, reader, node),
        },
        Key {
            name: "resources",
            doc: "lists the resources; a list of URIs is the exact set",
            shape: Shape::Names,
            presence: Presence::OneOf,
            read: |reader, node, draft| draft.list("resources", Listing::Resources, reader, node),
        },
        Key {
            name: "templates",
            doc: "lists the resource templates; a list of URI templates is the exact set",
            shape: Shape::Names,
            presence: Presence::OneOf,
            read: |reader, node, draft| draft.list("templates", Listing::ResourceTemplates, reader, node),
        },
        Key {
            name: "read",
            doc: "reads the resource at this URI",
            shape: Shape::Text,
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                let uri = reader.template_text(node)?;
                draft.act("read", Action::Read { uri }, reader, node)
            },
        },
        Key {
            name: "prompt",
            doc: "gets the prompt of this name, with the arguments in `with`",
            shape: Shape::Text,
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                let name = reader.template_text(node)?;
                draft.act("prompt", Action::Prompt { name, arguments: Map::new() }, reader, node)
            },
        },
        Key {
            name: "complete",
            doc: "asks for completions of an argument",
            shape: Shape::Object(&COMPLETE),
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                let mut completion = CompleteDraft::default();
                if !COMPLETE.read(reader, node, &mut completion) {
                    return Err(Fault::Reported);
                }
                let CompleteDraft { reference, argument, value } = completion;
                draft.act("complete", Action::Complete { reference, argument, value }, reader, node)
            },
        },
        Key {
            name: "handshake",
            doc: "what the handshake or discovery said",
            shape: Shape::Nothing,
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                reader.nothing_or_true(node)?;
                draft.act("handshake", Action::Handshake, reader, node)
            },
        },
        Key {
            name: "ping",
            doc: "sends a ping",
            shape: Shape::Nothing,
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                reader.nothing_or_true(node)?;
                draft.act("ping", Action::Ping, reader, node)
            },
        },
        Key {
            name: "run",
            doc: "runs a command and waits for its end; the payload is `{ code, stdout, stderr }`, and the code has to be 0 unless `expect` says more",
            shape: Shape::ObjectOrText(&RUN),
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                let launch = read_launch(reader, node)?;
                draft.act("run", Action::Run(launch), reader, node)
            },
        },
        Key {
            name: "with",
            doc: "the arguments of a call or a prompt",
            shape: Shape::Values,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let key = reader.key;
                let resolved = reader.template(node);
                draft.with = match resolved.to_value() {
                    Value::Object(arguments) => Some((arguments, key)),
                    Value::Null if resolved.kind != Kind::Null => return Err(Fault::Reported),
                    _ => return Err(Fault::Shape),
                };
                Ok(())
            },
        },
        Key {
            name: "expect",
            doc: "matches the payload of the answer",
            shape: Shape::Matcher,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.expect_key = Some(reader.key);
                draft.expect.payload = Some(read_matcher(reader, node, Subject::Payload)?);
                Ok(())
            },
        },
        Key {
            name: "result",
            doc: "matches the raw result of the answer",
            shape: Shape::Matcher,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.result_key = Some(reader.key);
                draft.expect.result = Some(read_matcher(reader, node, Subject::Wire)?);
                Ok(())
            },
        },
        Key {
            name: "tool_error",
            doc: "expects a result with `isError`, whose text contains this text or matches this pattern",
            shape: Shape::ToolError,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let pattern = match &node.kind {
                    Kind::Bool(false) => return Ok(()),
                    Kind::Bool(true) => None,
                    Kind::Text(_) => {
                        let resolved = reader.template(node);
                        let pattern = TextPattern::compile(&resolved, reader.source, &mut reader.diagnostics);
                        Some(pattern.ok_or(Fault::Reported)?)
                    }
                    Kind::Broken => return Err(Fault::Reported),
                    _ => return Err(Fault::Shape),
                };
                draft.fail("tool_error", ExpectedFailure::Tool(pattern), reader, node)
            },
        },
        Key {
            name: "rpc_error",
            doc: "expects a JSON-RPC error, whose code, message and data match",
            shape: Shape::RpcError,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let matcher = match &node.kind {
                    Kind::Bool(false) => return Ok(()),
                    Kind::Bool(true) => None,
                    Kind::Map(_) => Some(read_matcher(reader, node, Subject::Wire)?),
                    Kind::Broken => return Err(Fault::Reported),
                    _ => return Err(Fault::Shape),
                };
                draft.fail("rpc_error", ExpectedFailure::Rpc(matcher), reader, node)
            },
        },
        Key {
            name: "fails",
            doc: "expects an error of either kind",
            shape: Shape::Flag,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                if reader.flag(node)? { draft.fail("fails", ExpectedFailure::Either, reader, node) } else { Ok(()) }
            },
        },
        Key {
            name: "save",
            doc: "saves parts of the answer for later steps: variable name to path, such as `order: id`",
            shape: Shape::Texts,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.save_key = Some(reader.key);
                draft.save = read_save(reader, node)?;
                Ok(())
            },
        },
        Key {
            name: "within",
            doc: "the answer has to come in this time",
            shape: Shape::Duration,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.within = Some(reader.spanned_duration(node)?);
                Ok(())
            },
        },
        Key {
            name: "timeout",
            doc: "how long to wait for the answer, instead of the suite's `timeouts: { request }`",
            shape: Shape::Duration,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.timeout = Some(reader.duration(node)?);
                Ok(())
            },
        },
        Key {
            name: "server",
            doc: "the name of the server to ask, if the suite has several",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.server = Some((reader.text(node)?, node.span));
                Ok(())
            },
        },
    ],
    later: &[
        "times",
        "concurrency",
        "distinct",
        "notifications",
        "snapshot",
        "answers",
        "discover",
        "subscribe",
        "cancel",
        "raw",
        "http",
        "send_bytes",
        "close_stdin",
        "signal",
        "restart",
        "parallel",
        "retries",
    ],
};

/// The value of `complete:`.
pub static COMPLETE: Object<CompleteDraft> = Object {
    name: "a completion",
    keys: &[
        Key {
            name: "prompt",
            doc: "the name of the prompt whose argument is completed",
            shape: Shape::Text,
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                draft.reference = json!({"type": "ref/prompt", "name": reader.template_text(node)?});
                Ok(())
            },
        },
        Key {
            name: "resource",
            doc: "the URI template of the resource whose argument is completed",
            shape: Shape::Text,
            presence: Presence::OneOf,
            read: |reader, node, draft| {
                draft.reference = json!({"type": "ref/resource", "uri": reader.template_text(node)?});
                Ok(())
            },
        },
        Key {
            name: "argument",
            doc: "the name of the argument",
            shape: Shape::Text,
            presence: Presence::Required,
            read: |reader, node, draft| {
                draft.argument = reader.text(node)?;
                Ok(())
            },
        },
        Key {
            name: "value",
            doc: "what is typed so far",
            shape: Shape::Text,
            presence: Presence::Required,
            read: |reader, node, draft| {
                draft.value = reader.template_text(node)?;
                Ok(())
            },
        },
    ],
    later: &["context"],
};

#[derive(Default)]
pub struct StepDraft {
    action: Option<(&'static str, Action, Place)>,
    names: Option<Spanned<Vec<String>>>,
    with: Option<(Map<String, Value>, Span)>,
    expect: Expectations,
    expect_key: Option<Span>,
    result_key: Option<Span>,
    /// The first failure key: name, key, failure.
    failure: Option<(&'static str, Span, Spanned<ExpectedFailure>)>,
    save: Vec<(String, Spanned<JsonPath>)>,
    save_key: Option<Span>,
    within: Option<Spanned<Duration>>,
    timeout: Option<Duration>,
    server: Option<(String, Span)>,
}

#[derive(Default)]
pub struct CompleteDraft {
    reference: Value,
    argument: String,
    value: String,
}

/// The names that a step saves, with the lines that say so.
pub(crate) fn saved_names(step: &Node) -> Vec<(String, u32)> {
    match step.get("save").map(|save| &save.kind) {
        Some(Kind::Map(entries)) => entries.iter().map(|entry| (entry.key.text.clone(), entry.key.span.line)).collect(),
        _ => Vec::new(),
    }
}

pub(crate) fn read_step(reader: &mut Reader<'_>, node: &Node, servers: Option<&BTreeMap<String, Server>>) -> Option<Step> {
    let expanded;
    let node = match &node.kind {
        Kind::Text(word) => {
            expanded = expand(reader, word, node)?;
            &expanded
        }
        _ => node,
    };
    let mut draft = StepDraft::default();
    if !STEP.read(reader, node, &mut draft) {
        return None;
    }
    let before = reader.mistakes();
    let (name, mut action, place) = draft.action.take()?;
    check_sense(reader, &draft, name);
    let server = match (&action, &draft.server) {
        (Action::Run(_), None) => Some(None),
        (Action::Run(_), Some((_, span))) => {
            reader.error("meaningless-key", "`server` means nothing for `run`", *span);
            None
        }
        _ => choose_server(reader, draft.server, servers, node.span).map(Some),
    };
    if let (Action::Call { arguments, .. } | Action::Prompt { arguments, .. }, Some((with, _))) = (&mut action, draft.with) {
        *arguments = with;
    }
    if reader.mistakes() > before {
        return None;
    }
    let expect = Expectations { names: draft.names, failure: draft.failure.map(|(_, _, failure)| failure), ..draft.expect };
    Some(Step { place, server: server?, action, expect, save: draft.save, within: draft.within, timeout: draft.timeout })
}

/// `- tools` is short for `- tools:`.
fn expand(reader: &mut Reader<'_>, word: &str, node: &Node) -> Option<Node> {
    let short = || STEP.keys.iter().filter(|key| matches!(key.shape, Shape::Names | Shape::Nothing)).map(|key| key.name);
    if short().any(|name| name == word) {
        let value = Node { kind: Kind::Null, span: node.span };
        let entry = Entry { key: super::document::Key { text: word.to_owned(), span: node.span }, value };
        return Some(Node { kind: Kind::Map(vec![entry]), span: node.span });
    }
    let diagnostic = Diagnostic::error("unknown-step", format!("`{word}` alone is no step"));
    let hint = match did_you_mean(word, short()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("a step is a map such as `call: {word}`, or one of {}", listed(short())),
    };
    reader.report(diagnostic.hint(hint), node.span);
    None
}

impl StepDraft {
    fn act(&mut self, name: &'static str, action: Action, reader: &Reader<'_>, node: &Node) -> Result<(), Fault> {
        self.action = Some((name, action, reader.place_of_pair(node)));
        Ok(())
    }

    fn list(&mut self, name: &'static str, listing: Listing, reader: &mut Reader<'_>, node: &Node) -> Result<(), Fault> {
        let place = reader.place_of_pair(node);
        match &node.kind {
            Kind::Null | Kind::Bool(true) => {}
            Kind::Text(word) if word == "all" => {}
            Kind::Seq(items) => {
                let names: Vec<Option<String>> = items
                    .iter()
                    .map(|item| {
                        let name = reader.text(item);
                        if name == Err(Fault::Shape) {
                            reader.wrong_type("a name", item);
                        }
                        name.ok()
                    })
                    .collect();
                let value = names.into_iter().collect::<Option<_>>().ok_or(Fault::Reported)?;
                self.names = Some(Spanned { value, place });
            }
            Kind::Broken => return Err(Fault::Reported),
            _ => return Err(Fault::Shape),
        }
        self.act(name, Action::List(listing), reader, node)
    }

    fn fail(&mut self, name: &'static str, value: ExpectedFailure, reader: &mut Reader<'_>, node: &Node) -> Result<(), Fault> {
        if let Some((first, _, _)) = &self.failure {
            let message = format!("a step fails in one way: `{first}` or `{name}`, not both");
            reader.error("two-of-a-kind", message, reader.key);
            return Err(Fault::Reported);
        }
        let place = reader.place_of_pair(node);
        self.failure = Some((name, reader.key, Spanned { value, place }));
        Ok(())
    }
}

/// Keys that can never hold together, or that mean nothing for the action.
fn check_sense(reader: &mut Reader<'_>, draft: &StepDraft, action: &str) {
    let mut meaningless = |message: String, hint: &str, span: Span| {
        reader.report(Diagnostic::error("meaningless-key", message).hint(hint), span);
    };
    if let Some((_, key)) = &draft.with
        && !matches!(action, "call" | "prompt")
    {
        meaningless(format!("`with` means nothing for `{action}`"), "only `call` and `prompt` take arguments", *key);
    }
    let Some((failure, key, _)) = &draft.failure else { return };
    if action == "run" {
        meaningless(format!("`{failure}` means nothing for `run`"), "expect its code: `expect: { code: 1 }`", *key);
        return;
    }
    if action == "handshake" {
        meaningless(format!("`{failure}` means nothing for `handshake`"), "a test whose handshake fails never gets to its steps", *key);
        return;
    }
    if *failure == "tool_error" && action != "call" {
        meaningless(format!("`tool_error` means nothing for `{action}`"), "only tools answer with `isError`; write `rpc_error`", *key);
        return;
    }
    if draft.names.is_some() {
        meaningless(format!("`{failure}` contradicts the names that `{action}` lists"), "leave one of them out", *key);
    }
    if *failure == "tool_error" {
        return;
    }
    for (name, key) in [("expect", draft.expect_key), ("result", draft.result_key), ("save", draft.save_key)] {
        if let Some(key) = key {
            let hint = "put expectations of an error into `rpc_error: { code, message, data }` or use `tool_error`";
            meaningless(format!("`{name}` needs a result, which `{failure}` rules out"), hint, key);
        }
    }
}

fn choose_server(
    reader: &mut Reader<'_>,
    named: Option<(String, Span)>,
    servers: Option<&BTreeMap<String, Server>>,
    step: Span,
) -> Option<String> {
    // A server that could not be read must not make its steps look wrong.
    let servers = servers?;
    let names = || servers.keys().map(String::as_str);
    match named {
        Some((name, _)) if servers.contains_key(&name) => Some(name),
        Some((name, span)) => {
            let diagnostic = Diagnostic::error("unknown-server", format!("this suite has no server `{name}`"));
            reader.report(
                match did_you_mean(&name, names()) {
                    Some(near) => diagnostic.hint(format!("did you mean `{near}`?")),
                    None => diagnostic.hint(format!("servers are {}", listed(names()))),
                },
                span,
            );
            None
        }
        None if servers.len() == 1 => servers.keys().next().cloned(),
        None => {
            let diagnostic = Diagnostic::error("missing-key", "this step does not say which server it asks");
            reader.report(diagnostic.hint(format!("add `server:` with one of {}", listed(names()))), step);
            None
        }
    }
}

fn read_matcher(reader: &mut Reader<'_>, node: &Node, subject: Subject) -> Result<Matcher, Fault> {
    let resolved = reader.template(node);
    Matcher::compile(&resolved, subject, reader.source, &mut reader.diagnostics).ok_or(Fault::Reported)
}

fn read_save(reader: &mut Reader<'_>, node: &Node) -> Result<Vec<(String, Spanned<JsonPath>)>, Fault> {
    let entries = match &node.kind {
        Kind::Map(entries) => entries,
        Kind::Broken => return Err(Fault::Reported),
        _ => return Err(Fault::Shape),
    };
    let before = reader.mistakes();
    let mut saved = Vec::new();
    for entry in entries {
        reader.variable_name(&entry.key.text, entry.key.span);
        match reader.text(&entry.value) {
            Ok(path) => match JsonPath::parse(&path) {
                Ok(value) => saved.push((entry.key.text.clone(), Spanned { value, place: reader.place(entry.value.span) })),
                Err(error) => {
                    let diagnostic = Diagnostic::error("bad-path", error.message);
                    let diagnostic = error.hint.into_iter().fold(diagnostic, Diagnostic::hint);
                    reader.report(diagnostic, entry.value.span);
                }
            },
            Err(Fault::Shape) => reader.wrong_type("a path such as items[0].id", &entry.value),
            Err(Fault::Reported) => {}
        }
    }
    if reader.mistakes() == before { Ok(saved) } else { Err(Fault::Reported) }
}
