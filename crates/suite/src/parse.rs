//! Reads a whole suite from its tree. All mistakes are collected; a suite comes out only when there are none.

use super::answers::ANSWERS;
use super::audit::{AUDIT, read_audit};
use super::auth::literal_secrets;
use super::document::{self, Kind, Node};
use super::faults::{FAULT, FAULTS_DOC, read_faults};
use super::file_kind::{FileKind, other_kind};
use super::format::{Fault, Key, Object, Presence, Shape};
use super::given_server::in_place_of;
use super::include::read_tree;
use super::leaks::{LEAKS, LEAKS_DOC, read_leaks};
use super::plan::{
    Action, Audit, Breaker, Case, Fault as PlannedFault, Hooks, Isolation, Leaks, LeftOut, LeftOutBy, OutputCheck, ProfileTags, Retries,
    Retry, Server, SkippedRule, Step, Suite, Timeouts,
};
use super::profile::{self, PROFILE};
use super::reader::Reader;
use super::resilience::{BREAKER, BREAKER_DOC, RETRY, RETRY_DOC, read_breaker, read_retry};
use super::retries::{RETRIES, read_retries};
use super::server::{SERVER, read_server};
use super::skip::{ALLOW_FAULTS_DOC, SKIP_RULES_DOC, read_skipped_rules};
use super::source::{Source, Span};
use super::step::{REDACT_DOC, STEP, read_redactions};
use super::test::{Defaults, TEST, read_isolation, read_list, read_steps, read_test};
use super::{Environment, ONLY};
use mcproof_analysis::did_you_mean;
use mcproof_client::Answers;
use mcproof_record::Diagnostic;

use std::collections::{BTreeMap, BTreeSet};
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
            doc: "how the client responds to requests of the server",
            shape: Shape::Object(&ANSWERS),
            presence: Presence::Optional,
            read: |_, node, draft| {
                draft.answers = Some(node.clone());
                Ok(())
            },
        },
        Key {
            name: "validate_output",
            doc: "`false`: do not validate results of tools against their `outputSchema`",
            shape: Shape::Flag,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.output = if reader.flag(node)? { OutputCheck::Validated } else { OutputCheck::Ignored };
                Ok(())
            },
        },
        Key {
            name: "redact",
            doc: REDACT_DOC,
            shape: Shape::TextList,
            presence: Presence::Optional,
            read: |reader, node, _| {
                reader.redact = read_redactions(reader, node)?;
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
            name: "include",
            doc: "files whose keys are added to those of this suite: servers, variables, hooks and tests, but also `timeouts`, `answers`, `tags`, `faults`, profiles and the rest",
            shape: Shape::TextList,
            presence: Presence::Optional,
            // Put into the tree before it is read.
            read: |_, _, _| Ok(()),
        },
        Key {
            name: "profiles",
            doc: "by name: settings for another deployment, selected with --profile",
            shape: Shape::Objects(&PROFILE),
            presence: Presence::Optional,
            // Laid over the tree before it is read.
            read: |_, _, _| Ok(()),
        },
        Key {
            name: "tags",
            doc: "tags of all tests of the suite, to select them by",
            shape: Shape::TextList,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.tags = reader.texts(node)?;
                Ok(())
            },
        },
        Key {
            name: "skip_rules",
            doc: SKIP_RULES_DOC,
            shape: Shape::TextList,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.skip_rules = read_skipped_rules(reader, node)?;
                Ok(())
            },
        },
        Key {
            name: "allow_faults",
            doc: ALLOW_FAULTS_DOC,
            shape: Shape::Flag,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.allows_faults = reader.flag(node)?;
                Ok(())
            },
        },
        Key {
            name: "isolation",
            doc: "`test` for a fresh server for each test, `file` for one server and session for all of them",
            shape: Shape::Word(&["test", "file"]),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.isolation = read_isolation(reader, node)?;
                Ok(())
            },
        },
        Key {
            name: "retries",
            doc: "how often a failed test is retried; if it passes then, it is flaky",
            shape: Shape::ObjectOrNumber(&RETRIES),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.retries = read_retries(reader, node)?;
                Ok(())
            },
        },
        Key {
            name: "faults",
            doc: FAULTS_DOC,
            shape: Shape::ObjectOrList(&FAULT),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.faults = read_faults(reader, node)?;
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
            name: "leaks",
            doc: LEAKS_DOC,
            shape: Shape::ObjectOrFlag(&LEAKS),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.leaks = read_leaks(reader, node)?;
                Ok(())
            },
        },
        Key {
            name: "audit",
            doc: "the file to which each request is added, with its arguments, result, duration and verdict, as one JSON line",
            shape: Shape::ObjectOrText(&AUDIT),
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.audit = Some(read_audit(reader, node)?);
                Ok(())
            },
        },
        Key {
            name: "setup",
            doc: "steps before a server's first test: before each one, unless they share a server",
            shape: Shape::List(&STEP),
            presence: Presence::Optional,
            read: |_, node, draft| read_list(node, &mut draft.setup),
        },
        Key {
            name: "teardown",
            doc: "steps after a server's last test, even if it failed",
            shape: Shape::List(&STEP),
            presence: Presence::Optional,
            read: |_, node, draft| read_list(node, &mut draft.teardown),
        },
        Key {
            name: "before_each",
            doc: "steps before each test",
            shape: Shape::List(&STEP),
            presence: Presence::Optional,
            read: |_, node, draft| read_list(node, &mut draft.before_each),
        },
        Key {
            name: "after_each",
            doc: "steps after each test, even if it failed",
            shape: Shape::List(&STEP),
            presence: Presence::Optional,
            read: |_, node, draft| read_list(node, &mut draft.after_each),
        },
        Key {
            name: "tests",
            doc: "the tests, in order",
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
    later: &["matrix"],
};

pub static TIMEOUTS: Object<Timeouts> = Object {
    name: "`timeouts`",
    keys: &[
        Key {
            name: "connect",
            doc: "from the start of a server until the response to its handshake",
            shape: Shape::Duration,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.connect = reader.duration(node)?;
                draft.says_connect = true;
                Ok(())
            },
        },
        Key {
            name: "request",
            doc: "from a request until its response",
            shape: Shape::Duration,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.request = reader.duration(node)?;
                draft.says_request = true;
                Ok(())
            },
        },
        Key {
            name: "max",
            doc: "requests progress notifications; each restarts `request`, up to this time in total",
            shape: Shape::Duration,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.max = Some(reader.duration(node)?);
                Ok(())
            },
        },
        Key {
            name: "tools",
            doc: "timeouts of calls by tool name, in place of `request`",
            shape: Shape::Durations,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                let Kind::Map(entries) = &node.kind else { return Err(Fault::Shape) };
                for entry in entries {
                    match reader.duration(&entry.value) {
                        Ok(duration) => {
                            draft.tools.insert(entry.key.text.clone(), duration);
                        }
                        Err(Fault::Shape) => reader.wrong_type(&Shape::Duration.expected(), &entry.value),
                        Err(Fault::Reported) => {}
                    }
                }
                Ok(())
            },
        },
        Key {
            name: "test",
            doc: "for a whole test with its setup",
            shape: Shape::Duration,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.test = Some(reader.duration(node)?);
                Ok(())
            },
        },
        Key {
            name: "shutdown",
            doc: "how long a server may take to end after its stdin closes, and again after SIGTERM",
            shape: Shape::Duration,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.shutdown = Some(reader.duration(node)?);
                Ok(())
            },
        },
        Key {
            name: "settle",
            doc: "how long the server has to be silent before `notifications` that limit what comes, such as `[]` or `$len: 1`, are as expected",
            shape: Shape::Duration,
            presence: Presence::Optional,
            read: |reader, node, draft| {
                draft.settle = reader.duration(node)?;
                Ok(())
            },
        },
    ],
    later: &["run"],
};

#[derive(Default)]
pub struct SuiteDraft {
    server: Option<(Node, Span)>,
    servers: Option<(Node, Span)>,
    timeouts: Option<Node>,
    answers: Option<Node>,
    output: OutputCheck,
    tags: Vec<String>,
    skip_rules: Vec<SkippedRule>,
    allows_faults: bool,
    isolation: Isolation,
    retries: Retries,
    /// On the way to each of its servers.
    faults: Vec<PlannedFault>,
    retry: Option<Retry>,
    breaker: Option<Breaker>,
    leaks: Option<Leaks>,
    audit: Option<Audit>,
    setup: Vec<Node>,
    teardown: Vec<Node>,
    before_each: Vec<Node>,
    after_each: Vec<Node>,
    tests: Option<Vec<Node>>,
    tests_key: Span,
}

pub(crate) fn parse_suite(mut source: Source, folder: &Path, environment: &Environment) -> (Option<Suite>, Vec<Diagnostic>) {
    let (tree, mistakes) = read_tree(&mut source, folder, environment.restriction.as_deref());
    source.mask(&tree.as_ref().map(literal_secrets).unwrap_or_default());
    let mut reader = Reader::new(&source, folder, environment);
    reader.diagnostics = mistakes;
    let suite = tree.and_then(|tree| {
        if let Some((other, span)) = other_kind(&tree, FileKind::Suite) {
            reader.report(other, span);
            return None;
        }
        let (tree, tags) = profile::apply(&mut reader, tree);
        read_suite(&mut reader, &tree, &tags)
    });
    let is_flawless = reader.mistakes() == 0;
    let mut diagnostics = reader.diagnostics;
    let in_place = |diagnostic: &Diagnostic| diagnostic.place.as_ref().map(|place| (place.file != source.file(), place.line, place.column));
    diagnostics.sort_by_key(in_place);
    match suite.filter(|_| is_flawless) {
        Some(mut suite) => {
            suite.notices.extend(diagnostics);
            (Some(suite), Vec::new())
        }
        None => (None, diagnostics),
    }
}

/// Runs the tests that have one of `tags`, which a profile names, or all if there are none.
fn read_suite(reader: &mut Reader<'_>, tree: &Node, tags: &[String]) -> Option<Suite> {
    reader.read_variables(tree);
    let mut draft = SuiteDraft::default();
    SUITE.read(reader, tree, &mut draft);
    if reader.is_full(tree.span) {
        return None;
    }
    reader.output = draft.output;
    let mut timeouts = Timeouts::default();
    if let Some(node) = &draft.timeouts {
        TIMEOUTS.read(reader, node, &mut timeouts);
    }
    let mut answers = Answers::default();
    if let Some(node) = &draft.answers {
        ANSWERS.read(reader, node, &mut answers);
    }
    let mut servers = read_servers(reader, &draft, tree);
    for binding in servers.iter_mut().flatten().flat_map(|(_, server)| &mut server.bindings) {
        binding.reach.faults.extend(draft.faults.iter().cloned());
    }
    let mut saved = Vec::new();
    let room = reader.room();
    let mut steps = |nodes: &[Node], reader: &mut Reader<'_>| read_steps(reader, nodes, servers.as_ref(), &mut saved);
    let shared = steps(&draft.setup, reader);
    let each = steps(&draft.before_each, reader);
    let after_each = steps(&draft.after_each, reader);
    let teardown = steps(&draft.teardown, reader);
    let defaults = Defaults {
        servers: servers.as_ref(),
        answers,
        tags: draft.tags,
        skip_rules: draft.skip_rules,
        allows_faults: draft.allows_faults,
        isolation: draft.isolation,
        retries: draft.retries,
        retry: draft.retry,
        breaker: draft.breaker,
        leaks: draft.leaks,
        timeout: timeouts.test,
        shared: Hooks { setup: shared, teardown },
        each: Hooks { setup: each, teardown: after_each },
        saved,
        weight_of_hooks: room - reader.room(),
    };
    let (mut all, mut only) = (Vec::new(), None);
    let mut names: BTreeMap<String, Span> = BTreeMap::new();
    let mut starts: Vec<Span> = draft.tests.iter().flatten().map(|test| test.span).chain(keys(tree).map(|key| key.span)).collect();
    starts.sort();
    for test in draft.tests.as_deref().unwrap_or_default() {
        let mut read = read_test(reader, test, &defaults, &mut names);
        let last_line = last_line(reader.source, test.span, &starts);
        read.cases.iter_mut().for_each(|case| case.last_line = last_line);
        only = only.or(read.only);
        all.extend(read.cases.into_iter().map(|case| (case, read.only.is_some())));
    }
    if draft.tests.as_ref().is_some_and(Vec::is_empty) {
        let diagnostic = Diagnostic::error("empty-suite", "this suite has no tests");
        reader.report(diagnostic.hint("a test is `- name: …` with `steps:`"), draft.tests_key);
    }
    warn_of_misspelled(reader, tree, all.iter().map(|(case, _)| case), &defaults.shared);
    let mut notices = std::mem::take(&mut reader.warnings);
    notices.sort_by_key(|notice| notice.place.as_ref().map(|place| (place.file.clone(), place.line, place.column)));
    // The rows of a test share their places.
    notices.dedup_by(|one, other| one.code == other.code && one.place == other.place);
    if let Some(key) = only {
        let chosen = all.iter().filter(|(_, is_chosen)| *is_chosen).count();
        let message = format!("only {chosen} of {} tests of this suite are run", all.len());
        let notice = Diagnostic::warning(ONLY, message).at(reader.place(key));
        notices.push(notice.hint("take `only` out when you are done"));
    }
    let (mut cases, mut left_out) = (Vec::new(), Vec::new());
    for (case, is_chosen) in all {
        if only.is_some() && !is_chosen {
            left_out.push(LeftOut { case, by: LeftOutBy::Only });
        } else if !tags.is_empty() && !case.tags.iter().any(|tag| tags.contains(tag)) {
            left_out.push(LeftOut { case, by: LeftOutBy::Profile });
        } else {
            cases.push(case);
        }
    }
    let (file, folder) = (reader.source.file().to_owned(), reader.folder.to_owned());
    let shared = defaults.shared;
    let uses_tmp = reader.source.mentions("${tmp}");
    let profile = reader.environment.profile.clone().filter(|_| !tags.is_empty());
    let profile_tags = profile.map(|profile| ProfileTags { profile, tags: tags.to_vec() });
    let (servers, audit) = (servers?, draft.audit);
    Some(Suite { file, folder, timeouts, servers, shared, cases, audit, uses_tmp, left_out, profile_tags, notices })
}

/// Names in `timeouts: { tools }` and `audit: { redact }` that no step uses, where a name that is used is almost the same.
fn warn_of_misspelled<'a>(reader: &mut Reader<'_>, tree: &Node, cases: impl Iterator<Item = &'a Case>, shared: &'a Hooks) {
    let of_case = |case: &'a Case| [&case.hooks.setup, &case.steps, &case.hooks.teardown];
    let steps = cases.flat_map(of_case).chain([&shared.setup, &shared.teardown]).flatten().flat_map(Step::leaves);
    let (mut tools, mut arguments) = (BTreeSet::new(), BTreeSet::new());
    for step in steps {
        if let Action::Call { tool, arguments: given } | Action::Cancel { tool, arguments: given, .. } = &step.action {
            tools.insert(tool.as_str());
            arguments.extend(given.keys().map(String::as_str));
        }
    }
    let mut warn = |name: &str, used: &BTreeSet<&str>, message: String, span: Span| {
        if let Some(near) = did_you_mean(name, used.iter().copied()).filter(|_| !used.contains(name)) {
            reader.warn(Diagnostic::warning("unused-name", message).hint(format!("did you mean `{near}`?")), span);
        }
    };
    if let Some(Kind::Map(entries)) = tree.get("timeouts").and_then(|timeouts| timeouts.get("tools")).map(|node| &node.kind) {
        for entry in entries {
            let message = format!("this timeout is never used: no step calls `{}`", entry.key.text);
            warn(&entry.key.text, &tools, message, entry.key.span);
        }
    }
    if let Some(Kind::Seq(names)) = tree.get("audit").and_then(|audit| audit.get("redact")).map(|node| &node.kind) {
        for node in names {
            if let Kind::Text(name) = &node.kind {
                warn(name, &arguments, format!("no step has an argument `{name}`, whose value is to be redacted"), node.span);
            }
        }
    }
}

fn keys(tree: &Node) -> impl Iterator<Item = &document::Key> {
    let entries = match &tree.kind {
        Kind::Map(entries) => entries.as_slice(),
        _ => &[],
    };
    entries.iter().map(|entry| &entry.key)
}

/// The last line of what starts at `span`: before whatever comes next, blank lines and comments left aside. `starts` is sorted.
fn last_line(source: &Source, span: Span, starts: &[Span]) -> u32 {
    let next = starts.partition_point(|start| (start.file, start.line) <= (span.file, span.line));
    let next = starts.get(next).filter(|start| start.file == span.file);
    let end = next.map_or_else(|| source.count_lines(span.file), |start| start.line - 1);
    let says_something = |line: &u32| {
        let text = source.line(Span { line: *line, ..span }).trim();
        !text.is_empty() && !text.starts_with('#')
    };
    (span.line..=end).rev().find(says_something).unwrap_or(span.line)
}

/// `None` if the servers could not be read; then it is already said why.
fn read_servers(reader: &mut Reader<'_>, draft: &SuiteDraft, tree: &Node) -> Option<BTreeMap<String, Server>> {
    let environment = reader.environment;
    if let (Some(_), Some((_, key))) = (&draft.server, &draft.servers) {
        reader.error("conflicting-keys", "a suite has `server` or `servers`, not both", *key);
        return None;
    }
    if let Some((Node { kind: Kind::Map(entries), .. }, key)) = &draft.servers {
        if let (Some(_), true) = (&reader.environment.server, entries.len() > 1) {
            let message = "this suite has several servers, so that one from the command line cannot take their place";
            reader.error("several-servers", message, *key);
            return None;
        }
        if let (Some(given), [entry]) = (&environment.server, entries.as_slice()) {
            return in_place_of(reader, Some(&entry.value), given).map(|server| BTreeMap::from([(entry.key.text.clone(), server)]));
        }
        if entries.is_empty() {
            reader.error("missing-server", "`servers` names none", *key);
            return None;
        }
        if let Some(entry) = entries.iter().find(|entry| is_transport(&entry.key.text, &entry.value)) {
            let message = format!("`{}` is a transport, and `servers` holds servers by their names", entry.key.text);
            reader.report(Diagnostic::error("wrong-type", message).hint("if there is one server only, write `server:`"), entry.key.span);
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
    if let Some(given) = &environment.server {
        let own = draft.server.as_ref().map(|(own, _)| own);
        return in_place_of(reader, own, given).map(|server| BTreeMap::from([(server.name.clone(), server)]));
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

/// Whether an entry of `servers` says how to reach a server, and not which one.
fn is_transport(name: &str, value: &Node) -> bool {
    let says_how = match &value.kind {
        Kind::Map(entries) => entries.iter().any(|entry| matches!(entry.key.text.as_str(), "command" | "url")),
        kind => matches!(kind, Kind::Text(_)),
    };
    matches!(name, "stdio" | "http" | "sse") && says_how
}
