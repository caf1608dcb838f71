//! Reads a whole suite from its tree. All mistakes are collected; a suite comes out only when there are none.

use super::answers::ANSWERS;
use super::document::{Kind, Node};
use super::format::{Fault, Key, Object, Presence, Shape};
use super::plan::{Case, Server, Suite, Timeouts};
use super::reader::Reader;
use super::server::{SERVER, read_server};
use super::source::{Source, Span};
use super::step::{STEP, read_step, saved_names};
use super::{Environment, document};
use mcproof_client::Answers;
use mcproof_record::Diagnostic;

use std::collections::BTreeMap;
use std::path::Path;

/// The whole file.
pub static SUITE: Object<SuiteDraft> = Object {
    name: "a suite",
    keys: &[
        Key {
            name: "server",
            doc: "the server under test, by transport",
            shape: Shape::Object(&SERVER),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.server = Some((node.clone(), reader.key));
                Ok(())
            },
        },
        Key {
            name: "servers",
            doc: "several servers by name, for tests that talk to more than one",
            shape: Shape::Objects(&SERVER),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.servers = Some((node.clone(), reader.key));
                Ok(())
            },
        },
        Key {
            name: "timeouts",
            doc: "how long to wait for a server",
            shape: Shape::Object(&TIMEOUTS),
            presence: Presence::Optional,
            read: |_, node, draft| {
                draft.timeouts = Some(node.clone());
                Ok(())
            },
        },
        Key {
            name: "answers",
            doc: "how the client answers what a server asks",
            shape: Shape::Object(&ANSWERS),
            presence: Presence::Optional,
            read: |_, node, draft| {
                draft.answers = Some(node.clone());
                Ok(())
            },
        },
        Key {
            name: "vars",
            doc: "variables for `${name}`, in the order in which they are written",
            shape: Shape::Values,
            presence: Presence::Optional,
            // Read before everything else, wherever it stands.
            read: |_, _, _| Ok(()),
        },
        Key {
            name: "tests",
            doc: "the tests, each on a fresh server",
            shape: Shape::List(&TEST),
            presence: Presence::Required,
            read: |reader, node, draft| {
                draft.tests_key = reader.key;
                match &node.kind {
                    Kind::Seq(tests) => draft.tests = Some(tests.clone()),
                    Kind::Broken => return Err(Fault::Reported),
                    Kind::Null => draft.tests = Some(Vec::new()),
                    _ => return Err(Fault::Shape),
                }
                Ok(())
            },
        },
    ],
    later: &["isolation", "setup", "teardown", "retries", "tags", "matrix", "include", "only", "skip_if", "rows"],
};

pub static TIMEOUTS: Object<Timeouts> = Object {
    name: "`timeouts`",
    keys: &[
        Key {
            name: "connect",
            doc: "from the start of a server until its handshake is answered",
            shape: Shape::Duration,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.connect = reader.duration(node)?;
                Ok(())
            },
        },
        Key {
            name: "request",
            doc: "from a request until its answer",
            shape: Shape::Duration,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.request = reader.duration(node)?;
                Ok(())
            },
        },
    ],
    later: &["shutdown", "case", "run"],
};

pub static TEST: Object<TestDraft> = Object {
    name: "a test",
    keys: &[
        Key {
            name: "name",
            doc: "what it proves, unlike any other test of the suite",
            shape: Shape::Text,
            presence: Presence::Required,
            read: |reader, node, draft| {
                let name = reader.text(node)?;
                if name.trim().is_empty() {
                    reader.error("empty-name", "this name is empty", node.span);
                    return Err(Fault::Reported);
                }
                draft.name = Some((name, node.span));
                Ok(())
            },
        },
        Key {
            name: "answers",
            doc: "answers of this test alone; what it leaves out is as in the suite",
            shape: Shape::Object(&ANSWERS),
            presence: Presence::Optional,
            read: |_, node, draft| {
                draft.answers = Some(node.clone());
                Ok(())
            },
        },
        Key {
            name: "vars",
            doc: "variables of this test alone",
            shape: Shape::Values,
            presence: Presence::Optional,
            // Read before the other keys of the test, wherever it stands.
            read: |_, _, _| Ok(()),
        },
        Key {
            name: "steps",
            doc: "what it does, one after the other",
            shape: Shape::List(&STEP),
            presence: Presence::Required,
            read: |reader, node, draft| {
                draft.steps = match &node.kind {
                    Kind::Seq(steps) if !steps.is_empty() => Some(steps.clone()),
                    Kind::Seq(_) | Kind::Null => {
                        let diagnostic = Diagnostic::error("empty-test", "this test has no steps, so it proves nothing");
                        reader.report(diagnostic.hint("add a step such as `- tools`"), reader.key);
                        return Err(Fault::Reported);
                    }
                    Kind::Broken => return Err(Fault::Reported),
                    _ => return Err(Fault::Shape),
                };
                Ok(())
            },
        },
    ],
    later: &["rows", "setup", "teardown", "isolation", "tags", "skip_if", "only", "timeout", "retries", "matrix", "server", "parallel"],
};

#[derive(Default)]
pub struct SuiteDraft {
    server: Option<(Node, Span)>,
    servers: Option<(Node, Span)>,
    timeouts: Option<Node>,
    answers: Option<Node>,
    tests: Option<Vec<Node>>,
    tests_key: Span,
}

#[derive(Default)]
pub struct TestDraft {
    name: Option<(String, Span)>,
    answers: Option<Node>,
    steps: Option<Vec<Node>>,
}

pub(crate) fn parse_suite(source: &Source, folder: &Path, environment: &Environment) -> (Option<Suite>, Vec<Diagnostic>) {
    let (tree, mistakes) = document::parse(source, 0);
    let mut reader = Reader::new(source, folder, environment);
    reader.diagnostics = mistakes;
    let suite = tree.and_then(|tree| read_suite(&mut reader, &tree));
    let mut diagnostics = reader.diagnostics;
    diagnostics.sort_by_key(|diagnostic| diagnostic.place.as_ref().map(|place| (place.line, place.column)));
    (if diagnostics.is_empty() { suite } else { None }, diagnostics)
}

fn read_suite(reader: &mut Reader<'_>, tree: &Node) -> Option<Suite> {
    read_variables(reader, tree);
    let mut draft = SuiteDraft::default();
    SUITE.read(reader, tree, &mut draft);
    let mut timeouts = Timeouts::default();
    if let Some(node) = &draft.timeouts {
        TIMEOUTS.read(reader, node, &mut timeouts);
    }
    let mut answers = Answers::default();
    if let Some(node) = &draft.answers {
        ANSWERS.read(reader, node, &mut answers);
    }
    let servers = read_servers(reader, &draft, tree);
    let mut cases = Vec::new();
    let mut names: BTreeMap<String, u32> = BTreeMap::new();
    for test in draft.tests.as_deref().unwrap_or_default() {
        cases.extend(read_case(reader, test, servers.as_ref(), &answers, &mut names));
    }
    if draft.tests.as_ref().is_some_and(Vec::is_empty) {
        let diagnostic = Diagnostic::error("empty-suite", "this suite has no tests");
        reader.report(diagnostic.hint("a test is `- name: …` with `steps:`"), draft.tests_key);
    }
    Some(Suite { file: reader.source.file().to_owned(), folder: reader.folder.to_owned(), timeouts, servers: servers?, cases })
}

/// `None` if the servers could not be read; then it is already said why.
fn read_servers(reader: &mut Reader<'_>, draft: &SuiteDraft, tree: &Node) -> Option<BTreeMap<String, Server>> {
    if let (Some(_), Some((_, key))) = (&draft.server, &draft.servers) {
        reader.error("two-of-a-kind", "a suite has `server` or `servers`, not both", *key);
        return None;
    }
    if let Some((Node { kind: Kind::Map(entries), .. }, key)) = &draft.servers {
        if let (Some(_), true) = (&reader.environment.server, entries.len() > 1) {
            let message = "this suite has several servers, so that one from the command line cannot take their place";
            reader.error("several-servers", message, *key);
            return None;
        }
        if let (Some(given), [entry]) = (&reader.environment.server, entries.as_slice()) {
            return Some(BTreeMap::from([(entry.key.text.clone(), given.clone())]));
        }
        if entries.is_empty() {
            reader.error("missing-server", "`servers` names none", *key);
            return None;
        }
        let servers: Vec<Option<(String, Server)>> = entries
            .iter()
            .map(|entry| {
                let server = read_server(reader, &entry.key.text, entry.key.span, &entry.value)?;
                Some((entry.key.text.clone(), server))
            })
            .collect();
        return servers.into_iter().collect();
    }
    if let Some((node, _)) = &draft.servers {
        reader.wrong_type(&Shape::Objects(&SERVER).expected(), node);
        return None;
    }
    if let Some(given) = &reader.environment.server {
        return Some(BTreeMap::from([(given.name.clone(), given.clone())]));
    }
    let Some((node, key)) = &draft.server else {
        if matches!(&tree.kind, Kind::Map(entries) if entries.iter().all(|entry| SUITE.keys.iter().any(|key| key.name == entry.key.text))) {
            let diagnostic = Diagnostic::error("missing-server", "this suite does not say which server it tests");
            reader.report(diagnostic.hint("add `server:`, or name a server on the command line"), tree.span);
        }
        return None;
    };
    read_server(reader, "server", *key, node).map(|server| BTreeMap::from([(server.name.clone(), server)]))
}

fn read_case(
    reader: &mut Reader<'_>,
    node: &Node,
    servers: Option<&BTreeMap<String, Server>>,
    answers: &Answers,
    names: &mut BTreeMap<String, u32>,
) -> Option<Case> {
    let of_suite = reader.known.clone();
    let case = read_test(reader, node, servers, answers, names);
    reader.known = of_suite;
    reader.open.clear();
    reader.later.clear();
    case
}

fn read_test(
    reader: &mut Reader<'_>,
    node: &Node,
    servers: Option<&BTreeMap<String, Server>>,
    answers: &Answers,
    names: &mut BTreeMap<String, u32>,
) -> Option<Case> {
    read_variables(reader, node);
    let mut draft = TestDraft::default();
    TEST.read(reader, node, &mut draft);
    if let Some((name, span)) = &draft.name {
        match names.get(name) {
            Some(line) => {
                let diagnostic = Diagnostic::error("duplicate-name", format!("the test in line {line} has this name already"));
                reader.report(diagnostic.hint("reports tell tests apart by their names"), *span);
            }
            None => {
                names.insert(name.clone(), span.line);
            }
        }
    }
    let mut answers = answers.clone();
    if let Some(node) = &draft.answers {
        ANSWERS.read(reader, node, &mut answers);
    }
    let nodes = draft.steps.unwrap_or_default();
    let saved: Vec<Vec<(String, u32)>> = nodes.iter().map(saved_names).collect();
    let mut steps = Vec::new();
    for (index, step) in nodes.iter().enumerate() {
        reader.open = saved[..index].iter().flatten().map(|(name, _)| name.clone()).collect();
        reader.later = saved[index..].iter().flatten().cloned().collect();
        steps.extend(read_step(reader, step, servers));
    }
    let (name, _) = draft.name?;
    Some(Case { name, place: reader.place(node.span), steps, answers, variables: reader.known.clone() })
}

/// Reads the `vars:` of a suite or a test.
fn read_variables(reader: &mut Reader<'_>, node: &Node) {
    if let Some(variables) = node.get("vars")
        && reader.variables(variables) == Err(Fault::Shape)
    {
        reader.wrong_type(&Shape::Values.expected(), variables);
    }
}
