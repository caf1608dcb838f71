//! Reads one test of a suite: its steps, what surrounds them, and the rows that make several cases of it.

use super::answers::ANSWERS;
use super::bounds::{MOST_STEPS, STEP as STEP_WEIGHT};
use super::document::{Kind, Node};
use super::faults::{FAULT, FAULTS_DOC, read_faults};
use super::format::{Fault, Key, Object, Presence, Shape};
use super::leaks::{LEAKS, LEAKS_DOC, read_leaks};
use super::plan::{
    Breaker, Case, Fault as PlannedFault, Hooks, Isolation, Leaks, OutputCheck, Retries, Retry, Server, Skip, SkippedRule, Step,
};
use super::reader::Reader;
use super::resilience::{BREAKER, BREAKER_DOC, RETRY, RETRY_DOC, read_breaker, read_retry};
use super::retries::{RETRIES, read_retries};
use super::skip::{SKIP_IF, read_skipped_rules, read_skips};
use super::source::Span;
use super::step::{STEP, check_case, read_step, saved_names};
use super::template::weight;
use mcproof_analysis::wording::shortened;
use mcproof_client::Answers;
use mcproof_record::Diagnostic;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

pub static TEST: Object<TestDraft> = Object {
    name: "a test",
    keys: &[
        Key {
            name: "name",
            doc: "the name of the test, unique in the suite; may contain variables of a row",
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
            doc: "client responses of this test; others are those of the suite",
            shape: Shape::Object(&ANSWERS),
            presence: Presence::Optional,
            read: |_, node, draft| {
                draft.answers = Some(node.clone());
                Ok(())
            },
        },
        Key {
            name: "validate_output",
            doc: "`validate_output` for this test",
            shape: Shape::Flag,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.output = Some(if reader.flag(node)? { OutputCheck::Validated } else { OutputCheck::Ignored });
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
            name: "rows",
            doc: "runs the test once for each row, which is a map of variables",
            shape: Shape::Rows,
            presence: Presence::Optional,
            // Read before the other keys of the test, wherever it stands.
            read: |_, _, _| Ok(()),
        },
        Key {
            name: "tags",
            doc: "tags to select the test by, in addition to those of the suite",
            shape: Shape::TextList,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.tags = reader.texts(node)?;
                Ok(())
            },
        },
        Key {
            name: "skip_rules",
            doc: "further rules that this test is not judged by",
            shape: Shape::TextList,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.skip_rules = read_skipped_rules(reader, node)?;
                Ok(())
            },
        },
        Key {
            name: "allow_faults",
            doc: "in place of the suite's: whether what the server does wrong besides its responses fails no test",
            shape: Shape::Flag,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.allows_faults = Some(reader.flag(node)?);
                Ok(())
            },
        },
        Key {
            name: "skip",
            doc: "does not run the test, for this reason",
            shape: Shape::Text,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let reason = reader.text(node)?;
                draft.skips.push(Skip { reason, transports: Vec::new(), era: None, lacks: None });
                Ok(())
            },
        },
        Key {
            name: "skip_if",
            doc: "does not run the test where all of these conditions hold",
            shape: Shape::Object(&SKIP_IF),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.skips.extend(read_skips(reader, node)?);
                Ok(())
            },
        },
        Key {
            name: "only",
            doc: "runs only the tests of the suite that have `only`",
            shape: Shape::Flag,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.only = reader.flag(node)?.then_some(reader.key);
                Ok(())
            },
        },
        Key {
            name: "isolation",
            doc: "`test` starts a server for this test, `file` shares one with the other tests of the file",
            shape: Shape::Word(&["test", "file"]),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.isolation = Some(read_isolation(reader, node)?);
                Ok(())
            },
        },
        Key {
            name: "retries",
            doc: "how often the test is retried when it fails; if it passes then, it is flaky",
            shape: Shape::ObjectOrNumber(&RETRIES),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.retries = Some(read_retries(reader, node)?);
                Ok(())
            },
        },
        Key {
            name: "retry",
            doc: RETRY_DOC,
            shape: Shape::ObjectOrNumber(&RETRY),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.retry = Some(read_retry(reader, node)?);
                Ok(())
            },
        },
        Key {
            name: "breaker",
            doc: BREAKER_DOC,
            shape: Shape::Object(&BREAKER),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.breaker = Some(read_breaker(reader, node)?);
                Ok(())
            },
        },
        Key {
            name: "faults",
            doc: FAULTS_DOC,
            shape: Shape::ObjectOrList(&FAULT),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.faults_key = Some(reader.key);
                draft.faults = read_faults(reader, node)?;
                Ok(())
            },
        },
        Key {
            name: "leaks",
            doc: LEAKS_DOC,
            shape: Shape::ObjectOrFlag(&LEAKS),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.leaks = Some(read_leaks(reader, node)?);
                Ok(())
            },
        },
        Key {
            name: "timeout",
            doc: "for the whole test with its setup, in place of the suite's `timeouts: { test }`",
            shape: Shape::Duration,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.timeout = Some(reader.duration(node)?);
                Ok(())
            },
        },
        Key {
            name: "setup",
            doc: "steps before the others",
            shape: Shape::List(&STEP),
            presence: Presence::Optional,
            read: |_, node, draft| read_list(node, &mut draft.setup),
        },
        Key {
            name: "steps",
            doc: "the steps of the test, in order",
            shape: Shape::List(&STEP),
            presence: Presence::Required,
            read: |reader, node, draft| match &node.kind {
                Kind::Null => Err(report_empty(reader)),
                Kind::Seq(steps) if steps.is_empty() => Err(report_empty(reader)),
                _ => read_list(node, &mut draft.steps),
            },
        },
        Key {
            name: "teardown",
            doc: "steps after the others, even if they failed",
            shape: Shape::List(&STEP),
            presence: Presence::Optional,
            read: |_, node, draft| read_list(node, &mut draft.teardown),
        },
    ],
    later: &["matrix", "server", "parallel"],
};

#[derive(Default)]
pub struct TestDraft {
    name: Option<(String, Span)>,
    answers: Option<Node>,
    output: Option<OutputCheck>,
    tags: Vec<String>,
    skip_rules: Vec<SkippedRule>,
    allows_faults: Option<bool>,
    skips: Vec<Skip>,
    only: Option<Span>,
    isolation: Option<Isolation>,
    retries: Option<Retries>,
    retry: Option<Retry>,
    breaker: Option<Breaker>,
    faults: Vec<PlannedFault>,
    faults_key: Option<Span>,
    /// `Some(None)` where the test asks for none.
    leaks: Option<Option<Leaks>>,
    timeout: Option<Duration>,
    setup: Vec<Node>,
    steps: Vec<Node>,
    teardown: Vec<Node>,
}

/// What a suite gives each of its tests.
pub(crate) struct Defaults<'a> {
    pub(crate) servers: Option<&'a BTreeMap<String, Server>>,
    pub(crate) answers: Answers,
    pub(crate) tags: Vec<String>,
    pub(crate) skip_rules: Vec<SkippedRule>,
    pub(crate) allows_faults: bool,
    pub(crate) isolation: Isolation,
    pub(crate) retries: Retries,
    pub(crate) retry: Option<Retry>,
    pub(crate) breaker: Option<Breaker>,
    pub(crate) leaks: Option<Leaks>,
    pub(crate) timeout: Option<Duration>,
    /// Around all cases that share a server, or around each one that does not.
    pub(crate) shared: Hooks,
    /// Around each case.
    pub(crate) each: Hooks,
    /// What those steps save.
    pub(crate) saved: Vec<String>,
    /// What they take, by estimate, in bytes.
    pub(crate) weight_of_hooks: usize,
}

/// The cases of a test: one, or one for each row.
pub(crate) struct Read {
    pub(crate) cases: Vec<Case>,
    pub(crate) only: Option<Span>,
}

/// `names` holds the names of the cases before, with their places.
pub(crate) fn read_test(reader: &mut Reader<'_>, node: &Node, defaults: &Defaults<'_>, names: &mut BTreeMap<String, Span>) -> Read {
    let of_suite = reader.known.clone();
    let before = reader.mistakes();
    reader.read_variables(node);
    let of_test = reader.known.clone();
    let mut read = Read { cases: Vec::new(), only: None };
    for row in rows(reader, node) {
        if reader.is_full(node.span) {
            break;
        }
        reader.known.clone_from(&of_test);
        for (name, value) in row.iter().flatten() {
            if !reader.environment.overrides.contains_key(name) {
                reader.known.insert(name.clone(), value.clone());
            }
        }
        read.cases.extend(read_case(reader, node, row.as_deref(), defaults, names, &mut read.only));
        // The other rows would only repeat the same mistakes.
        if reader.mistakes() > before {
            break;
        }
    }
    reader.known = of_suite;
    reader.open = Vec::new();
    reader.later.clear();
    reader.later_from = 0;
    read
}

fn read_case(
    reader: &mut Reader<'_>,
    node: &Node,
    row: Option<&[(String, Value)]>,
    defaults: &Defaults<'_>,
    names: &mut BTreeMap<String, Span>,
    only: &mut Option<Span>,
) -> Option<Case> {
    let mut draft = TestDraft::default();
    TEST.read(reader, node, &mut draft);
    *only = draft.only;
    let written = node.get("name").map(|name| name.to_value());
    if let (Some((name, _)), Some(row)) = (&mut draft.name, row)
        && !written.is_some_and(|written| written.as_str().is_some_and(|written| written.contains("${")))
    {
        *name = with_row(name, row);
    }
    if let Some((name, span)) = &draft.name {
        match names.get(name) {
            Some(first) if row.is_none() || (first.file, first.line) != (span.file, span.line) => {
                let file = if first.file == span.file { String::new() } else { format!(" of {}", reader.place(*first).file) };
                let message = format!("the test in line {}{file} has this name already", first.line);
                let diagnostic = Diagnostic::error("duplicate-name", message);
                reader.report(diagnostic.hint("reports tell tests apart by their names"), *span);
            }
            Some(_) => {
                let diagnostic = Diagnostic::error("duplicate-name", format!("two rows of this test are called `{name}`"));
                reader.report(diagnostic.hint("give the rows different values, or put what differs into the name"), *span);
            }
            None => {
                names.insert(name.clone(), *span);
            }
        }
    }
    let mut answers = defaults.answers.clone();
    if let Some(node) = &draft.answers {
        ANSWERS.read(reader, node, &mut answers);
    }
    let isolation = draft.isolation.unwrap_or(defaults.isolation);
    let mut saved = defaults.saved.clone();
    // What surrounds all cases has taken the first numbers.
    let (of_suite, taken, names_taken) = (reader.output, reader.snapshots, reader.snapshot_names.clone());
    reader.output = draft.output.unwrap_or(reader.output);
    let setup = read_steps(reader, &draft.setup, defaults.servers, &mut saved);
    let steps = read_steps(reader, &draft.steps, defaults.servers, &mut saved);
    let teardown = read_steps(reader, &draft.teardown, defaults.servers, &mut saved);
    (reader.output, reader.snapshots, reader.snapshot_names) = (of_suite, taken, names_taken);
    let leaks = draft.leaks.take().unwrap_or_else(|| defaults.leaks.clone());
    let is_skipped = draft.skips.iter().any(|skip| skip.transports.is_empty() && skip.era.is_none() && skip.lacks.is_none());
    // Faults that hit nothing fail a test, and so do leaks.
    if steps.len() == draft.steps.len() && draft.faults.is_empty() && leaks.is_none() && !is_skipped {
        check_case(reader, &steps, node.span);
    }
    let own = match isolation {
        Isolation::Test => Some(&defaults.shared),
        Isolation::File => None,
    };
    // All of it is written out once more for each case.
    let variables: usize = reader.known.values().map(weight).sum();
    reader.spend(STEP_WEIGHT + variables + defaults.weight_of_hooks);
    if reader.is_full(node.span) {
        return None;
    }
    let outer = || own.into_iter().chain([&defaults.each]);
    let hooks = Hooks {
        setup: outer().flat_map(|hooks| hooks.setup.clone()).chain(setup).collect(),
        teardown: teardown.into_iter().chain([&defaults.each].into_iter().chain(own).flat_map(|hooks| hooks.teardown.clone())).collect(),
    };
    let mut tags = defaults.tags.clone();
    tags.extend(draft.tags);
    tags.dedup();
    let skip_rules = defaults.skip_rules.iter().cloned().chain(draft.skip_rules).collect();
    check_own_server(reader, isolation, draft.faults_key, leaks.as_ref(), node.span);
    let (name, _) = draft.name?;
    Some(Case {
        name,
        place: reader.place(node.span),
        // Where the next one begins is not known here.
        last_line: node.span.line,
        tags,
        skip_rules,
        allows_faults: draft.allows_faults.unwrap_or(defaults.allows_faults),
        skips: draft.skips,
        isolation,
        retries: draft.retries.unwrap_or(defaults.retries),
        faults: draft.faults,
        retry: draft.retry.or_else(|| defaults.retry.clone()),
        breaker: draft.breaker.or(defaults.breaker),
        leaks,
        timeout: draft.timeout.or(defaults.timeout),
        hooks,
        steps,
        answers,
        variables: reader.known.clone(),
    })
}

/// What changes a server, or counts what it holds, needs one that no other test uses.
fn check_own_server(reader: &mut Reader<'_>, isolation: Isolation, faults: Option<Span>, leaks: Option<&Leaks>, test: Span) {
    let hint = "write `isolation: test` in this test";
    if isolation == Isolation::Test {
        return;
    }
    if let Some(key) = faults {
        let diagnostic = Diagnostic::error("shared-server", "`faults` of one test would hit the other tests that share its server");
        reader.report(diagnostic.hint(hint), key);
    }
    if leaks.is_some() {
        let diagnostic = Diagnostic::error("shared-server", "`leaks` needs a server that no other test uses");
        reader.report(diagnostic.hint(hint), test);
    }
}

/// Reads steps in order. Each may use what those before it save; their names are added to `saved`.
pub(crate) fn read_steps(
    reader: &mut Reader<'_>,
    nodes: &[Node],
    servers: Option<&BTreeMap<String, Server>>,
    saved: &mut Vec<String>,
) -> Vec<Step> {
    if let Some(node) = nodes.get(MOST_STEPS) {
        reader.error("too-many-steps", format!("more than {MOST_STEPS} steps"), node.span);
        return Vec::new();
    }
    let names: Vec<Vec<(String, u32)>> = nodes.iter().map(saved_names).collect();
    let mut steps = Vec::new();
    reader.open = saved.iter().cloned().chain([TMP.to_owned()]).collect();
    reader.later = names.iter().flatten().cloned().collect();
    for (node, names) in nodes.iter().zip(names) {
        if reader.is_full(node.span) {
            break;
        }
        reader.spend(STEP_WEIGHT);
        steps.extend(read_step(reader, node, servers));
        reader.later_from += names.len();
        let names = names.into_iter().map(|(name, _)| name);
        reader.open.extend(names.clone());
        saved.extend(names);
    }
    reader.open.clear();
    reader.later.clear();
    reader.later_from = 0;
    steps
}

/// A fresh folder of each case, or of all cases that share a server.
pub(crate) const TMP: &str = "tmp";

pub(crate) fn read_isolation(reader: &mut Reader<'_>, node: &Node) -> Result<Isolation, Fault> {
    match reader.text(node)?.as_str() {
        "test" => Ok(Isolation::Test),
        "file" => Ok(Isolation::File),
        // An older word for it.
        "case" => {
            let diagnostic = Diagnostic::error("wrong-type", "expected one of `test`, `file`, found `case`");
            reader.report(diagnostic.hint("did you mean `test`?"), node.span);
            Err(Fault::Reported)
        }
        _ => Err(Fault::Shape),
    }
}

pub(crate) fn read_list(node: &Node, into: &mut Vec<Node>) -> Result<(), Fault> {
    match &node.kind {
        Kind::Seq(items) => into.extend(items.iter().cloned()),
        Kind::Null => {}
        Kind::Broken => return Err(Fault::Reported),
        _ => return Err(Fault::Shape),
    }
    Ok(())
}

fn report_empty(reader: &mut Reader<'_>) -> Fault {
    let diagnostic = Diagnostic::error("empty-test", "this test has no steps, so it proves nothing");
    reader.report(diagnostic.hint("add a step such as `- tools`"), reader.key);
    Fault::Reported
}

/// The variables of each row; one `None` for a test without rows.
fn rows(reader: &mut Reader<'_>, test: &Node) -> Vec<Option<Vec<(String, Value)>>> {
    let Some(node) = test.get("rows") else { return vec![None] };
    let rows = match &node.kind {
        Kind::Seq(rows) if !rows.is_empty() => rows,
        Kind::Seq(_) | Kind::Null => {
            let diagnostic = Diagnostic::error("empty-rows", "this test has no rows, so it would never run");
            reader.report(diagnostic.hint("a row is a map such as `- { id: 1, expected: ok }`"), node.span);
            return vec![None];
        }
        _ => {
            reader.wrong_type(&Shape::Rows.expected(), node);
            return vec![None];
        }
    };
    rows.iter()
        .map(|row| {
            let Kind::Map(entries) = &row.kind else {
                reader.wrong_type("a row, which is a map of variables", row);
                return Some(Vec::new());
            };
            let values = entries.iter().map(|entry| {
                reader.variable_name(&entry.key.text, entry.key.span);
                (entry.key.text.clone(), reader.final_value(&entry.value).to_value())
            });
            Some(values.collect())
        })
        .collect()
}

/// The name of a test with the values of one of its rows.
fn with_row(name: &str, row: &[(String, Value)]) -> String {
    const MOST: usize = 60;
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let values = row.iter().map(|(name, value)| format!("{name}={}", text(value))).collect::<Vec<_>>().join(", ");
    format!("{name} [{}]", shortened(&values, MOST))
}
