//! Reads one step of a test: its action, and what is expected of it.

mod actions;
mod expectations;
mod lint;
mod objects;
mod redactions;
mod sense;

pub(crate) use expectations::{REDACT_DOC, read_redactions};
pub(crate) use lint::{NO_EXPECTATION, check_case};
pub use objects::{CANCEL, COMPLETE, CancelDraft, CompleteDraft, EXITED, ExitedDraft, HTTP, HttpDraft, SEND_BYTES, SendBytesDraft, TASK};
pub use redactions::redactions;

use super::document::{Entry, Kind, Node};
use super::format::{Fault, Key, Object, Presence, Shape};
use super::plan::{
    Action, Expectations, ExpectedFailure, Listing, NameConflicts, Needs, OutputCheck, Redaction, Repeat, Retry, Server, Snapshot, Spanned,
    Step, TaskCall,
};
use super::reader::Reader;
use super::source::Span;
use crate::judge::{JsonPath, Matcher, Selector, Subject};
use mcproof_analysis::{did_you_mean, listed};
use mcproof_client::Answers;
use mcproof_record::{Diagnostic, Place};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

pub static STEP: Object<StepDraft> = Object {
    name: "a step",
    keys: &[
        actions::CALL,
        actions::TOOLS,
        actions::FEDERATION,
        actions::PROMPTS,
        actions::RESOURCES,
        actions::TEMPLATES,
        actions::READ,
        actions::PROMPT,
        actions::COMPLETION,
        actions::HANDSHAKE,
        actions::DISCOVER,
        actions::PING,
        actions::SUBSCRIBE,
        actions::UNSUBSCRIBE,
        actions::CANCELLATION,
        actions::RAW,
        actions::HTTP_REQUEST,
        actions::BYTES,
        actions::CLOSE_STDIN,
        actions::SIGNAL,
        actions::RESTART,
        Key {
            name: "parallel",
            doc: "runs these steps at the same time",
            shape: Shape::List(&STEP),
            presence: Presence::OneOf,
            read: actions::read_parallel,
        },
        actions::RUN_COMMAND,
        expectations::WITH,
        expectations::META,
        expectations::TASKED,
        expectations::ANSWERING,
        expectations::EXPECT,
        expectations::RESULT,
        expectations::TOOL_ERROR,
        expectations::RPC_ERROR,
        expectations::FAILS,
        expectations::NO_ANSWER,
        expectations::NOTIFICATIONS,
        expectations::EXIT,
        expectations::SAVE,
        expectations::TIMES,
        expectations::CONCURRENCY,
        expectations::DISTINCT,
        expectations::SNAPSHOT,
        expectations::REDACT,
        expectations::VALIDATE_OUTPUT,
        expectations::WITHIN,
        expectations::TIMEOUT,
        expectations::MAX_TIMEOUT,
        expectations::RETRYING,
        expectations::CLASHES,
        expectations::SERVER,
        expectations::SESSION,
    ],
    later: &["retries"],
};

#[derive(Default)]
pub struct StepDraft {
    action: Option<(&'static str, Action, Place)>,
    names: Option<Spanned<Vec<String>>>,
    /// The steps of `parallel`, not read yet.
    children: Vec<Node>,
    with: Option<Map<String, Value>>,
    meta: Map<String, Value>,
    task: Option<TaskCall>,
    answers: Option<Answers>,
    expect: Expectations,
    /// The first failure key.
    failure: Option<(&'static str, Spanned<ExpectedFailure>)>,
    save: Vec<(String, Spanned<Selector>)>,
    times: Option<u32>,
    concurrency: Option<(u32, Span)>,
    distinct: Option<(Spanned<JsonPath>, Span)>,
    /// Its name, if it has one.
    snapshot: Option<(Option<String>, Place)>,
    redact: Vec<Redaction>,
    output: Option<OutputCheck>,
    within: Option<Spanned<Duration>>,
    timeout: Option<Duration>,
    max_timeout: Option<Duration>,
    retry: Option<Retry>,
    clashes: NameConflicts,
    server: Option<(String, Span)>,
    session: Option<String>,
}

/// The variable that counts the runs of a step with `times`.
pub(crate) const COUNTER: &str = "n";

/// The names that a step saves, with the lines that say so.
pub(crate) fn saved_names(step: &Node) -> Vec<(String, u32)> {
    let own = match step.get("save").map(|save| &save.kind) {
        Some(Kind::Map(entries)) => entries.iter().map(|entry| (entry.key.text.clone(), entry.key.span.line)).collect(),
        _ => Vec::new(),
    };
    match step.get("parallel").map(|steps| &steps.kind) {
        Some(Kind::Seq(steps)) => own.into_iter().chain(steps.iter().flat_map(saved_names)).collect(),
        _ => own,
    }
}

pub(crate) fn read_step(reader: &mut Reader<'_>, node: &Node, servers: Option<&BTreeMap<String, Server>>) -> Option<Step> {
    read_within(reader, node, servers, None)
}

/// `outer` is the server of the `parallel` around it, if that names one.
fn read_within(
    reader: &mut Reader<'_>,
    node: &Node,
    servers: Option<&BTreeMap<String, Server>>,
    outer: Option<&(String, Span)>,
) -> Option<Step> {
    let expanded;
    let node = match &node.kind {
        Kind::Text(word) => {
            expanded = expand(reader, word, node)?;
            &expanded
        }
        _ => node,
    };
    let mut draft = StepDraft::default();
    let counts = node.get("times").is_some();
    if counts {
        reader.open.push(COUNTER.to_owned());
    }
    let read = STEP.read(reader, node, &mut draft);
    if counts {
        reader.open.pop();
    }
    if !read {
        return None;
    }
    let before = reader.mistakes();
    let (name, mut action, place) = draft.action.take()?;
    sense::check(reader, node, &draft, name, &action);
    let mut named = draft.server.take().or_else(|| outer.cloned());
    if let (Action::Call { tool, .. }, None) = (&action, &named)
        && let Some((server, tool)) = qualified(tool, servers)
    {
        action = Action::Call { tool, arguments: Map::new() };
        named = Some((server, node.span));
    }
    if let Action::Federation(clashes) = &mut action {
        *clashes = draft.clashes;
    }
    let server = if let Action::Parallel(steps) = &mut action {
        *steps = read_children(reader, &draft.children, servers, named.as_ref());
        Some(None)
    } else if let Action::Run(_) | Action::Federation(_) = &action {
        Some(None)
    } else {
        choose_server(reader, named, servers, node.span).map(Some)
    };
    if let (Action::Call { arguments, .. } | Action::Prompt { arguments, .. }, Some(with)) = (&mut action, draft.with.take()) {
        *arguments = with;
    }
    if let (Some(Some(server)), Some(servers)) = (&server, servers) {
        let (name, needs) = if draft.session.is_some() { ("session", Some(Needs::Http)) } else { (name, action.needs()) };
        sense::check_transport(reader, name, needs, &servers[server], node);
    }
    lint::check_step(reader, node, &draft);
    if reader.mistakes() > before {
        return None;
    }
    let snapshot = draft.snapshot.map(|(name, place)| {
        reader.snapshots += 1;
        let which = name.clone().unwrap_or_else(|| reader.snapshots.to_string());
        if let Some(taken) = reader.snapshot_names.insert(which.clone(), place.clone()) {
            let message = format!("this test has a snapshot called `{which}` already, in line {}", taken.line);
            let diagnostic =
                Diagnostic::error("duplicate-name", message).hint("each snapshot of a test has a file of its own: rename one of them");
            reader.report_at(diagnostic, place.clone());
        }
        let redact = reader.redact.iter().cloned().chain(draft.redact).collect();
        Snapshot { place, name, number: reader.snapshots, redact }
    });
    let repeat = draft.times.map(|times| Repeat {
        times,
        concurrency: draft.concurrency.map_or(1, |(concurrency, _)| concurrency),
        distinct: draft.distinct.map(|(path, _)| path),
    });
    let expect = Expectations { names: draft.names, failure: draft.failure.map(|(_, failure)| failure), ..draft.expect };
    Some(Step {
        place,
        server: server?,
        action,
        meta: draft.meta,
        task: draft.task,
        answers: draft.answers,
        repeat,
        expect,
        save: draft.save,
        snapshot,
        within: draft.within,
        session: draft.session,
        timeout: draft.timeout,
        max_timeout: draft.max_timeout,
        retry: draft.retry,
        output: draft.output.unwrap_or(reader.output),
    })
}

/// The steps of a `parallel`. None of them can use what another saves: nobody knows which comes first.
fn read_children(
    reader: &mut Reader<'_>,
    nodes: &[Node],
    servers: Option<&BTreeMap<String, Server>>,
    outer: Option<&(String, Span)>,
) -> Vec<Step> {
    let mut saved: Vec<(String, u32)> = Vec::new();
    let mut steps = Vec::new();
    for node in nodes {
        for (name, line) in saved_names(node) {
            match saved.iter().find(|(known, _)| *known == name) {
                Some((_, first)) => {
                    let message = format!("`{name}` is saved at the same time in line {first} and in line {line}");
                    let diagnostic = Diagnostic::error("saved-twice", message);
                    reader.report(diagnostic.hint("give each its own name: the order of parallel steps is not defined"), node.span);
                }
                None => saved.push((name, line)),
            }
        }
        let keys = match &node.kind {
            Kind::Text(word) => vec![(word.as_str(), node.span)],
            Kind::Map(entries) => entries.iter().map(|entry| (entry.key.text.as_str(), entry.key.span)).collect(),
            _ => Vec::new(),
        };
        for (name, span) in keys.into_iter().filter(|(name, _)| matches!(*name, "restart" | "parallel")) {
            let diagnostic = Diagnostic::error("inapplicable-key", format!("`{name}` cannot be one of the steps of `parallel`"));
            reader.report(diagnostic.hint("make it a step of its own"), span);
        }
        if let Kind::Map(entries) = &node.kind
            && let Some(entry) = entries.iter().find(|entry| entry.key.text == "answers")
        {
            let message = "`answers` of one step would also apply to the parallel steps beside it";
            let diagnostic = Diagnostic::error("inapplicable-key", message);
            reader.report(diagnostic.hint("write it beside `parallel`, for all of them"), entry.key.span);
        }
        steps.extend(read_within(reader, node, servers, outer));
    }
    steps
}

/// `- tools` is short for `- tools:`.
fn expand(reader: &mut Reader<'_>, word: &str, node: &Node) -> Option<Node> {
    let short = || STEP.keys.iter().filter(|key| matches!(key.shape, Shape::Names | Shape::Nothing)).map(|key| key.name);
    if short().any(|name| name == word) {
        let value = Node { kind: Kind::Null, span: node.span };
        let entry = Entry { key: super::document::Key { text: word.to_owned(), span: node.span }, value };
        return Some(Node { kind: Kind::Map(vec![entry]), span: node.span });
    }
    let diagnostic = Diagnostic::error("unknown-step", format!("`{word}` alone is not a step"));
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
        self.names(reader, node)?;
        self.act(name, Action::List(listing), reader, node)
    }

    /// The exact names of a list, if the value gives some.
    fn names(&mut self, reader: &mut Reader<'_>, node: &Node) -> Result<Place, Fault> {
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
                self.names = Some(Spanned { value, place: place.clone() });
            }
            Kind::Broken => return Err(Fault::Reported),
            _ => return Err(Fault::Shape),
        }
        Ok(place)
    }

    fn fail(&mut self, name: &'static str, value: ExpectedFailure, reader: &mut Reader<'_>, node: &Node) -> Result<(), Fault> {
        if let Some((first, _)) = &self.failure {
            let message = format!("a step fails in one way: `{first}` or `{name}`, not both");
            reader.error("conflicting-keys", message, reader.key);
            return Err(Fault::Reported);
        }
        let place = reader.place_of_pair(node);
        self.failure = Some((name, Spanned { value, place }));
        Ok(())
    }
}

/// `server.tool`, where the suite has several servers and the step names none.
fn qualified(tool: &str, servers: Option<&BTreeMap<String, Server>>) -> Option<(String, String)> {
    let servers = servers.filter(|servers| servers.len() > 1)?;
    let of = |server: &String| Some((server.clone(), tool.strip_prefix(server.as_str())?.strip_prefix('.')?.to_owned()));
    // A name may begin with that of another server: the longest is meant.
    servers.keys().filter_map(of).filter(|(_, tool)| !tool.is_empty()).max_by_key(|(server, _)| server.len())
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
    let matcher = Matcher::compile(&resolved, subject, reader.source, &mut reader.diagnostics).ok_or(Fault::Reported)?;
    reader.warnings.extend(matcher.weaknesses());
    Ok(matcher)
}
