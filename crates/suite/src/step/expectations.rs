//! The keys of a step besides its action: what goes along, what is expected, what is kept.

use super::objects::{EXITED, ExitedDraft, TASK};
use super::{StepDraft, read_matcher};
use crate::answers::ANSWERS;
use crate::document::{Kind, Node};
use crate::format::{Fault, Key, Presence, Shape};
use crate::judge::{JsonPath, Selector, Subject, TextPattern};
use crate::plan::{ExpectedExit, ExpectedFailure, NameConflicts, OutputCheck, Redaction, Spanned, TaskCall};
use crate::reader::Reader;
use crate::resilience::{RETRY, RETRY_DOC, read_no_answer, read_retry};
use crate::run::snapshot;
use mcproof_analysis::did_you_mean;
use mcproof_client::Answers;
use mcproof_record::Diagnostic;
use regex::RegexBuilder;
use serde_json::{Map, Value};
use std::path::Path;
use std::time::Duration;

pub(crate) const REDACT_DOC: &str = "what snapshots replace: `uuid`, `datetime`, `port`, `duration`, paths such as `$.items[*].id`, patterns such as `/ORD-\\d+/`; the rules of a step join those of the suite";

/// How long a server may take to end, where `exited` does not say.
const ENDING: Duration = Duration::from_secs(5);

pub(super) const WITH: Key<StepDraft> = Key {
    name: "with",
    doc: "the arguments of a call or a prompt",
    shape: Shape::Values,
    presence: Presence::Optional,
    read: |reader, node, draft| {
        draft.with = Some(read_map(reader, node)?);
        Ok(())
    },
};

pub(super) const META: Key<StepDraft> = Key {
    name: "meta",
    doc: "sent as `_meta` of the request, such as `{ progressToken: p1 }` to receive its progress",
    shape: Shape::Values,
    presence: Presence::Optional,
    read: |reader, node, draft| {
        draft.meta = read_map(reader, node)?;
        Ok(())
    },
};

pub(super) const TASKED: Key<StepDraft> = Key {
    name: "task",
    doc: "calls the tool as a task, and waits for its end: `true`, or how long the server is asked to keep it",
    shape: Shape::ObjectOrFlag(&TASK),
    presence: Presence::Optional,
    read: |reader, node, draft| {
        let mut task = TaskCall::default();
        draft.task = match &node.kind {
            Kind::Map(_) => TASK.read(reader, node, &mut task).then_some(task).map(Some).ok_or(Fault::Reported)?,
            _ => reader.flag(node)?.then_some(task),
        };
        Ok(())
    },
};

pub(super) const ANSWERING: Key<StepDraft> = Key {
    name: "answers",
    doc: "how the client responds to requests of the server during this step; what it leaves out is as in the test",
    shape: Shape::Object(&ANSWERS),
    presence: Presence::Optional,
    read: |reader, node, draft| {
        let mut answers = Answers::default();
        if !ANSWERS.read(reader, node, &mut answers) {
            return Err(Fault::Reported);
        }
        draft.answers = Some(answers);
        Ok(())
    },
};

pub(super) const EXPECT: Key<StepDraft> = Key {
    name: "expect",
    doc: "matches the payload of the response: of a call its `structuredContent`, else its text, as a value if it is JSON (`$text` matches it as it stands). Integers are compared exactly; one that does not fit 64 bits cannot, and is a difference where it matters (not to `$gt` of a smaller one, nor to `$close_to`)",
    shape: Shape::Matcher,
    presence: Presence::Optional,
    read: |reader, node, draft| {
        draft.expect.payload = Some(read_matcher(reader, node, Subject::Payload)?);
        Ok(())
    },
};

pub(super) const RESULT: Key<StepDraft> = Key {
    name: "result",
    doc: "matches the raw result of the response",
    shape: Shape::Matcher,
    presence: Presence::Optional,
    read: |reader, node, draft| {
        draft.expect.result = Some(read_matcher(reader, node, Subject::Wire)?);
        Ok(())
    },
};

pub(super) const TOOL_ERROR: Key<StepDraft> = Key {
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
                let pattern = TextPattern::compile(&resolved, reader.source, &mut reader.diagnostics).ok_or(Fault::Reported)?;
                if pattern.is_empty() {
                    let diagnostic = Diagnostic::error("cannot-fail", "every text contains the empty text");
                    reader.report(diagnostic.hint("`tool_error: true` expects an error, whatever its text is"), node.span);
                    return Err(Fault::Reported);
                }
                reader.weak(pattern.weakness(), node.span);
                Some(pattern)
            }
            Kind::Broken => return Err(Fault::Reported),
            _ => return Err(Fault::Shape),
        };
        draft.fail("tool_error", ExpectedFailure::Tool(pattern), reader, node)
    },
};

pub(super) const RPC_ERROR: Key<StepDraft> = Key {
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
};

pub(super) const FAILS: Key<StepDraft> = Key {
    name: "fails",
    doc: "expects an error of either kind; what is sent as bytes or as a raw message may also be refused with an HTTP status. A call of a tool that is not listed fails in any case: if its name is almost that of a listed tool, its error has to be described by `rpc_error` or `tool_error`",
    shape: Shape::Flag,
    presence: Presence::Optional,
    read: |reader, node, draft| {
        if reader.flag(node)? { draft.fail("fails", ExpectedFailure::Either, reader, node) } else { Ok(()) }
    },
};

pub(super) const NO_ANSWER: Key<StepDraft> = Key {
    name: "no_response",
    doc: "expects no response: `true`, or the cause (`timeout`, `reset`, `5xx`, `429`, `breaker`). A server that ends by itself is expected only by `reset`",
    shape: Shape::FlagOrRetryCauses,
    presence: Presence::Optional,
    read: |reader, node, draft| {
        let retry_causes = read_no_answer(reader, node)?;
        draft.fail("no_response", ExpectedFailure::NoAnswer(retry_causes), reader, node)
    },
};

pub(super) const NOTIFICATIONS: Key<StepDraft> = Key {
    name: "notifications",
    doc: "matches the list of notifications that came since the step began, each `{ method, params }`. A list names those that have to come, in order, whatever comes between them; `[]` means none, `$exact` no others, and there are `$contains`, `$len`, … It waits for them until the deadline of the step. Where one more could change the outcome (`[]`, `$exact`, `$len: 1`, `$not`, `$all`), it also waits until none has come for `timeouts: { settle }`. Each of the `times` has its own list, unless they run at the same time",
    shape: Shape::Matcher,
    presence: Presence::Optional,
    read: |reader, node, draft| {
        let matcher = read_matcher(reader, node, Subject::Wire)?;
        reader.warnings.extend(matcher.unknown_notifications());
        draft.expect.notifications = Some(matcher);
        Ok(())
    },
};

pub(super) const EXIT: Key<StepDraft> = Key {
    name: "exited",
    doc: "expects that the server's process ends, and how",
    shape: Shape::Object(&EXITED),
    presence: Presence::Optional,
    read: |reader, node, draft| {
        let place = reader.place_of_pair(node);
        let mut exited = ExitedDraft::default();
        if !EXITED.read(reader, node, &mut exited) {
            return Err(Fault::Reported);
        }
        let ExitedDraft { code, signal, within } = exited;
        if code.is_some() && signal.is_some() {
            reader.error("conflicting-keys", "a process that ends by a signal has no exit code: expect one of them", node.span);
            return Err(Fault::Reported);
        }
        draft.expect.exit = Some(Spanned { value: ExpectedExit { code, signal, within: within.unwrap_or(ENDING) }, place });
        Ok(())
    },
};

pub(super) const SAVE: Key<StepDraft> = Key {
    name: "save",
    doc: "saves parts of the response for later steps: variable name to path in what `expect` matches, such as `order: id`; a path that begins with `result.` leads into the raw result, such as `result._meta.key`; a pattern, alone or behind a path, saves a part of a text, such as `order: /order (\\d+)/`: its group `number` as a number, else its first group",
    shape: Shape::Texts,
    presence: Presence::Optional,
    read: |reader, node, draft| {
        draft.save = read_save(reader, node)?;
        Ok(())
    },
};

pub(super) const TIMES: Key<StepDraft> = Key {
    name: "times",
    doc: "how many times the step is repeated; each response is checked, and `${n}` counts from 1",
    shape: Shape::Count,
    presence: Presence::Optional,
    read: |reader, node, draft| {
        draft.times = Some(reader.count(node)?);
        Ok(())
    },
};

pub(super) const CONCURRENCY: Key<StepDraft> = Key {
    name: "concurrency",
    doc: "how many of the `times` run at the same time; their notifications are then one list; 1 if left out",
    shape: Shape::Count,
    presence: Presence::Optional,
    read: |reader, node, draft| {
        draft.concurrency = Some((reader.count(node)?, reader.key));
        Ok(())
    },
};

pub(super) const DISTINCT: Key<StepDraft> = Key {
    name: "distinct",
    doc: "the path of a value that has to differ in all responses of `times`",
    shape: Shape::Text,
    presence: Presence::Optional,
    read: |reader, node, draft| {
        let written = reader.text(node)?;
        let path = read_path(reader, &written, node)?;
        draft.distinct = Some((Spanned { value: path, place: reader.place_of_pair(node) }, reader.key));
        Ok(())
    },
};

pub(super) const SNAPSHOT: Key<StepDraft> = Key {
    name: "snapshot",
    doc: "compares the payload with the reviewed snapshot; a name instead of `true` keeps its file when steps are added before it",
    shape: Shape::Name,
    presence: Presence::Optional,
    read: |reader, node, draft| {
        let place = reader.place_of_pair(node);
        if node.kind != Kind::Bool(false) && !reader.snapshots_permitted {
            let suite = reader.folder.join(Path::new(reader.source.file()).file_name().unwrap_or_default());
            reader.permit(node.span, |restriction| snapshot::permit(restriction, &suite))?;
            reader.snapshots_permitted = true;
        }
        draft.snapshot = match &node.kind {
            Kind::Bool(false) => None,
            Kind::Bool(true) => Some((None, place)),
            _ => {
                let name = reader.text(node)?;
                if name.is_empty() || !name.chars().all(|character| character.is_alphanumeric() || matches!(character, '-' | '_' | '.')) {
                    let diagnostic = Diagnostic::error("bad-name", format!("`{name}` cannot be the name of a snapshot"));
                    reader.report(diagnostic.hint("it is part of a file name: letters, digits, `-`, `_` and `.`"), node.span);
                    return Err(Fault::Reported);
                }
                Some((Some(name), place))
            }
        };
        Ok(())
    },
};

pub(super) const REDACT: Key<StepDraft> = Key {
    name: "redact",
    doc: REDACT_DOC,
    shape: Shape::TextList,
    presence: Presence::Optional,
    read: |reader, node, draft| {
        draft.redact = read_redactions(reader, node)?;
        Ok(())
    },
};

pub(super) const VALIDATE_OUTPUT: Key<StepDraft> = Key {
    name: "validate_output",
    doc: "`false`: the output is not held against the `outputSchema` of the tool, as it is otherwise",
    shape: Shape::Flag,
    presence: Presence::Optional,
    read: |reader, node, draft| {
        draft.output = Some(if reader.flag(node)? { OutputCheck::Validated } else { OutputCheck::Ignored });
        Ok(())
    },
};

pub(super) const WITHIN: Key<StepDraft> = Key {
    name: "within",
    doc: "the response has to arrive in this time",
    shape: Shape::Duration,
    presence: Presence::Optional,
    read: |reader, node, draft| {
        draft.within = Some(reader.spanned_duration(node)?);
        Ok(())
    },
};

pub(super) const TIMEOUT: Key<StepDraft> = Key {
    name: "timeout",
    doc: "how long to wait for the response, instead of the suite's `timeouts: { request }`",
    shape: Shape::Duration,
    presence: Presence::Optional,
    read: |reader, node, draft| {
        draft.timeout = Some(reader.duration(node)?);
        Ok(())
    },
};

pub(super) const MAX_TIMEOUT: Key<StepDraft> = Key {
    name: "max_timeout",
    doc: "asks for progress, each of which starts `timeout` anew, up to this in all; instead of the suite's `timeouts: { max }`",
    shape: Shape::Duration,
    presence: Presence::Optional,
    read: |reader, node, draft| {
        draft.max_timeout = Some(reader.duration(node)?);
        Ok(())
    },
};

pub(super) const RETRYING: Key<StepDraft> = Key {
    name: "retry",
    doc: RETRY_DOC,
    shape: Shape::ObjectOrNumber(&RETRY),
    presence: Presence::Optional,
    read: |reader, node, draft| {
        draft.retry = Some(read_retry(reader, node)?);
        Ok(())
    },
};

pub(super) const CLASHES: Key<StepDraft> = Key {
    name: "clashes",
    doc: "`allowed` where tools of several servers may have the same name",
    shape: Shape::Word(&["allowed", "refused"]),
    presence: Presence::Optional,
    read: |reader, node, draft| {
        draft.clashes = match reader.text(node)?.as_str() {
            "allowed" => NameConflicts::Allowed,
            "refused" => NameConflicts::Refused,
            _ => return Err(Fault::Shape),
        };
        Ok(())
    },
};

pub(super) const SERVER: Key<StepDraft> = Key {
    name: "server",
    doc: "the name of the server to ask, if the suite has several",
    shape: Shape::Text,
    presence: Presence::Optional,
    read: |reader, node, draft| {
        draft.server = Some((reader.text(node)?, node.span));
        Ok(())
    },
};

pub(super) const SESSION: Key<StepDraft> = Key {
    name: "session",
    doc: "a name of your own for another session on the same server, which is opened when a step first names it; over HTTP only",
    shape: Shape::Text,
    presence: Presence::Optional,
    read: |reader, node, draft| {
        draft.session = Some(reader.text(node)?);
        Ok(())
    },
};

fn read_map(reader: &mut Reader<'_>, node: &Node) -> Result<Map<String, Value>, Fault> {
    let resolved = reader.template(node);
    match resolved.to_value() {
        Value::Object(map) => Ok(map),
        Value::Null if resolved.kind != Kind::Null => Err(Fault::Reported),
        _ => Err(Fault::Shape),
    }
}

fn read_save(reader: &mut Reader<'_>, node: &Node) -> Result<Vec<(String, Spanned<Selector>)>, Fault> {
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
            Ok(written) => {
                if let Some(value) = Selector::compile(&written, &entry.value, reader.source, &mut reader.diagnostics) {
                    saved.push((entry.key.text.clone(), Spanned { value, place: reader.place(entry.value.span) }));
                }
            }
            Err(Fault::Shape) => reader.wrong_type("a path such as items[0].id", &entry.value),
            Err(Fault::Reported) => {}
        }
    }
    if reader.mistakes() == before { Ok(saved) } else { Err(Fault::Reported) }
}

fn read_path(reader: &mut Reader<'_>, path: &str, node: &Node) -> Result<JsonPath, Fault> {
    JsonPath::parse(path).map_err(|error| {
        let diagnostic = Diagnostic::error("bad-path", error.message);
        reader.report(error.hint.into_iter().fold(diagnostic, Diagnostic::hint), node.span);
        Fault::Reported
    })
}

pub(crate) fn read_redactions(reader: &mut Reader<'_>, node: &Node) -> Result<Vec<Redaction>, Fault> {
    let items = match &node.kind {
        Kind::Seq(items) => items,
        Kind::Broken => return Err(Fault::Reported),
        _ => return Err(Fault::Shape),
    };
    let mut rules = Vec::new();
    for item in items {
        match reader.text(item) {
            Ok(text) => rules.extend(read_redaction(reader, &text, item)),
            Err(Fault::Shape) => reader.wrong_type("a rule, a path or a pattern", item),
            Err(Fault::Reported) => {}
        }
    }
    Ok(rules)
}

fn read_redaction(reader: &mut Reader<'_>, text: &str, node: &Node) -> Option<Redaction> {
    const RULES: [(&str, Redaction); 4] =
        [("uuid", Redaction::Uuid), ("datetime", Redaction::Datetime), ("port", Redaction::Port), ("duration", Redaction::Duration)];
    if let Some((_, rule)) = RULES.iter().find(|(name, _)| *name == text) {
        return Some(rule.clone());
    }
    if let Some(pattern) = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')).filter(|pattern| !pattern.is_empty()) {
        let build = |size| RegexBuilder::new(pattern).size_limit(size).build();
        return match reader.source.pattern(pattern, "", build) {
            Ok(pattern) => Some(Redaction::Pattern(pattern)),
            Err(error) => {
                let reason = crate::judge::regex_reason(&error);
                reader.error("bad-regex", format!("this pattern is not valid: {reason}"), node.span);
                None
            }
        };
    }
    match serde_json_path::JsonPath::parse(text) {
        Ok(path) => Some(Redaction::Path(text.to_owned(), path)),
        Err(_) => {
            let diagnostic = Diagnostic::error("unknown-redaction", format!("`{text}` is neither a rule, nor a path, nor a pattern"));
            let rules = || RULES.iter().map(|(name, _)| *name);
            let hint = match did_you_mean(text, rules()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    "rules are `uuid`, `datetime`, `port`, `duration`; a path begins with `$.`, a pattern stands between slashes".into()
                }
            };
            reader.report(diagnostic.hint(hint), node.span);
            None
        }
    }
}
