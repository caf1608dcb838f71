//! Calling tools: arguments that are wrong, results that are.
//! Source: server/tools.

use super::ConversationView;
use super::flaws::{Flaw, name_of, told};
use super::http::evidence;
use super::modern_headers::mirrors;
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use mcproof_analysis::arguments::{self, Unusual};
use mcproof_analysis::differences::{OutputFlaw, output_flaw};
use mcproof_analysis::json_schema::{Schema, explodes};
use mcproof_analysis::wording::{excerpt, shortened};
use mcproof_analysis::{Attempt, AttemptOutcome, WireMessage};
use mcproof_protocol::error_code::{HEADER_MISMATCH, INTERNAL_ERROR, INVALID_PARAMS};
use mcproof_protocol::methods;
use mcproof_record::{ABRIDGED, FrameId, ProbeOutcome};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};

const VALIDATION: &[RequirementSource] =
    &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Must, source: "server/tools#security-considerations" }];
const SURVIVAL: &[RequirementSource] =
    &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Should, source: "server/tools#security-considerations" }];
/// JSON-RPC 2.0: a request that is valid gets a response.
const VALID_CALL: &[RequirementSource] = &[RequirementSource {
    revisions: revisions::ALL,
    level: RequirementLevel::Must,
    source: "https://www.jsonrpc.org/specification#response_object",
}];
const ERRORS: &[RequirementSource] =
    &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Must, source: "server/tools#error-handling" }];

/// The rules that a call with something unusual leaves a server alive differ in what is unusual only.
macro_rules! survival {
    ($id:literal, $unusual:ident, $sources:expr, $law:literal, $why:literal) => {
        Rule {
            id: $id,
            area: Area::Calls,
            requirement: $law,
            sources: $sources,
            judge: Judge::Together(|all| survived(all, Unusual::$unusual)),
            why: $why,
            remedy: "validate arguments before using them, and return each exception of a tool as a result with `isError`",
            ..Rule::DEFAULT
        }
    };
}

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "call-unknown-tool-is-refused",
        area: Area::Calls,
        requirement: "a call to a tool that does not exist gets an error",
        sources: ERRORS,
        judge: Judge::Each(unknown_tool_is_refused),
        why: "a model that used a wrong name treats the response as the tool's result",
        remedy: "respond with error -32602, or with a result that has `isError`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "listed-tool-is-callable",
        area: Area::Calls,
        requirement: "a call of a listed tool that its schema allows is not refused as a call of an unknown one, and reaches the tool",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Should, source: "server/tools#calling-tools" }],
        judge: Judge::Together(listed_is_callable),
        why: "a model picks a tool from the list, and every call of it fails",
        remedy: "register each tool under the name that `tools/list` returns",
        ..Rule::DEFAULT
    },
    Rule {
        id: "call-unknown-tool-code",
        area: Area::Calls,
        requirement: "a call to a tool that does not exist gets JSON-RPC error -32602",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Portability,
            source: "server/tools#error-handling",
        }],
        judge: Judge::Each(unknown_tool_code),
        why: "clients detect by the code that their list is outdated; a result goes to the model instead",
        remedy: "respond with error -32602 before the tools' own error handling is reached",
        ..Rule::DEFAULT
    },
    Rule {
        id: "call-without-name-is-refused",
        area: Area::Calls,
        requirement: "a call without a tool name gets an error",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Should, source: "server/tools#error-handling" }],
        judge: Judge::Each(without_name_is_refused),
        why: "the call runs a tool that the client did not request",
        remedy: "respond with error -32602 to a call without `name` in its `params`",
        ..Rule::DEFAULT
    },
    Rule {
        id: "call-missing-argument-is-refused",
        area: Area::Calls,
        requirement: "a call without an argument that the tool's schema requires gets an error",
        sources: VALIDATION,
        judge: Judge::Together(|all| invalid_is_refused(all, "call-missing-argument", "requires an argument")),
        why: "an error shows a model which argument is missing; a result misleads it",
        remedy: "validate the arguments with `inputSchema` before the tool runs, and respond with `isError` and the missing argument",
        sdks: &[
            ("TypeScript", "`registerTool` with an `inputSchema` of zod checks; the low-level `setRequestHandler` does not"),
            ("Python", "a function with type hints is checked; the low-level `call_tool` with `validate_input=False` is not"),
            ("Go", "`mcp.AddTool` checks; `Server.AddTool` does not"),
        ],
        ..Rule::DEFAULT
    },
    Rule {
        id: "call-out-of-range-argument-is-refused",
        area: Area::Calls,
        requirement: "a call with a value outside of the bounds or the enumeration in the tool's schema gets an error",
        sources: VALIDATION,
        tolerance: Some("many tools use the nearest allowed value instead"),
        judge: Judge::Together(|all| invalid_is_refused(all, "call-out-of-range-argument", "declares a bound of an argument")),
        why: "a model that asks for 1,000 items and gets 100 takes them for all that there are",
        remedy: "validate the arguments with `inputSchema` before the tool runs, or remove bounds that the tool does not have",
        ..Rule::DEFAULT
    },
    Rule {
        id: "call-wrong-type-is-refused",
        area: Area::Calls,
        requirement: "a call with an argument of a type that the tool's schema does not allow gets an error",
        sources: VALIDATION,
        judge: Judge::Together(|all| invalid_is_refused(all, "call-wrong-type", "declares the type of an argument")),
        why: "the tool uses `[object Object]`, or finds nothing and returns that as a valid result",
        remedy: "validate the arguments with `inputSchema` before the tool runs, and respond with `isError` and the invalid argument",
        sdks: &[
            ("TypeScript", "`registerTool` with an `inputSchema` of zod checks; the low-level `setRequestHandler` does not"),
            ("Python", "a function with type hints is checked; the low-level `call_tool` with `validate_input=False` is not"),
            ("Go", "`mcp.AddTool` checks; `Server.AddTool` does not"),
        ],
        ..Rule::DEFAULT
    },
    Rule {
        id: "call-argument-errors-are-results",
        area: Area::Calls,
        requirement: "invalid arguments are reported in a result with `isError`",
        sources: &[RequirementSource {
            revisions: revisions::SINCE_2025_11,
            level: RequirementLevel::Portability,
            source: "server/tools#error-handling",
        }],
        judge: Judge::Together(errors_are_results),
        why: "hosts show JSON-RPC errors to users and `isError` to the model, which can correct its call",
        remedy: "catch validation errors, and respond with `isError: true` and a text that states what to change",
        ..Rule::DEFAULT
    },
    Rule {
        id: "call-output-matches-schema",
        area: Area::Calls,
        requirement: "the `structuredContent` of a tool is valid under its `outputSchema`",
        sources: &[RequirementSource {
            revisions: revisions::SINCE_2025_06,
            level: RequirementLevel::Must,
            source: "server/tools#output-schema",
        }],
        judge: Judge::Together(output_fits),
        why: "clients validate results, and report an invalid one as an error",
        remedy: "return the declared structure, or correct the schema",
        ..Rule::DEFAULT
    },
    Rule {
        id: "call-structured-has-text",
        area: Area::Calls,
        requirement: "a result with `structuredContent` has a text block as well",
        sources: &[RequirementSource {
            revisions: revisions::SINCE_2025_06,
            level: RequirementLevel::Should,
            source: "server/tools#structured-content",
        }],
        judge: Judge::Together(structured_has_text),
        why: "hosts without support for structured results show their model nothing",
        remedy: "add the same JSON as a text block to `content`",
        sdks: &[("TypeScript", "`content: [{ type: \"text\", text: JSON.stringify(output) }], structuredContent: output`")],
        ..Rule::DEFAULT
    },
    survival!(
        "call-extra-argument-is-survived",
        Extra,
        SURVIVAL,
        "a server survives a call with an argument that the tool does not have",
        "models invent arguments, and newer clients send some that older servers do not know"
    ),
    survival!(
        "call-null-argument-is-survived",
        Null,
        SURVIVAL,
        "a server survives a call with null for an argument",
        "many clients send null for an argument that a model left out"
    ),
    survival!(
        "call-boundary-argument-is-survived",
        Boundary,
        SURVIVAL,
        "a server survives a call with an argument at a limit: an empty string, no items, the smallest or the largest number",
        "models send such values, and a loop or a division that does not expect them can crash the server"
    ),
    survival!(
        "call-unicode-argument-is-survived",
        Unicode,
        VALID_CALL,
        "a server survives a call with a string of unusual characters",
        "real text contains such characters: NUL, marks that change the writing direction, and characters beyond 16 bits"
    ),
    survival!(
        "call-large-argument-is-survived",
        Large,
        SURVIVAL,
        "a server survives a call with a string of one mebibyte",
        "agents pass whole files as arguments"
    ),
];

fn unknown_tool_is_refused(conversation: &ConversationView<'_>) -> Judgment {
    let Some(attempt) = conversation.probe("unknown-tool") else { return no_tools(conversation) };
    match attempt.answer {
        AttemptOutcome::Result { .. } if !attempt.answer.is_refusal() => {
            let message = format!("a call of `{}`, which does not exist, got {}", subject(&attempt), attempt.answer.describe());
            Judgment::Broken(vec![Violation::new(message, attempt.frames())])
        }
        _ if attempt.answer.is_refusal() => Judgment::Pass,
        _ => Judgment::Untestable(format!("a call of an unknown tool got {}", attempt.answer.describe())),
    }
}

fn listed_is_callable(all: &[&ConversationView<'_>]) -> Judgment {
    let (mut answered, mut seen, mut flaws) = (0, 0, Vec::new());
    let unknown: Vec<Attempt<'_, '_>> = all.iter().filter_map(|conversation| conversation.probe("unknown-tool")).collect();
    let mut failed = Vec::new();
    // What the server says of a call that failed, by what we say of it.
    let mut reasons: BTreeMap<String, String> = BTreeMap::new();
    let is_quoted = unknown.iter().any(|unknown| refusal_text(&unknown.answer).is_some_and(|text| text.contains(unknown.subject())));
    for (position, conversation) in all.iter().enumerate() {
        for attempt in conversation.probes("call").filter(|attempt| attempt.answer.frame().is_some()) {
            answered += 1;
            // A refusal says something only beside that of an unknown tool.
            seen += usize::from(is_quoted || !attempt.answer.is_refusal());
            if unknown.iter().any(|unknown| is_refused_as_unknown(&attempt, unknown)) {
                let detail = "a call is refused as one of a tool that does not exist".to_owned();
                flaws.push(Flaw { subject: attempt.subject().to_owned(), detail, frames: attempt.frames(), conversation: position });
            } else if let Some(code) = fault_of_server(conversation, &attempt) {
                seen += 1;
                let detail = format!("a call with arguments that its schema allows got error {code}");
                if let Some(reason) = error_message(&attempt) {
                    reasons.entry(detail.clone()).or_insert_with(|| format!(": \"{}\"", shortened(reason, 120)));
                }
                failed.push(Flaw { subject: attempt.subject().to_owned(), detail, frames: attempt.frames(), conversation: position });
            }
        }
    }
    match (answered, seen) {
        (0, _) => nothing_called(all, "is callable"),
        (_, 0) => Judgment::Untestable("all calls were refused, and the error for an unknown tool does not name it".into()),
        _ => {
            let failed = told("tool", "tools", failed).into_iter().map(|violation| {
                let reason =
                    reasons.iter().find(|(detail, _)| violation.message.ends_with(detail.as_str())).map(|(_, reason)| reason.as_str());
                let message = violation.message + reason.unwrap_or_default();
                Violation { message, remedy: Some(RETURN_RESULTS.into()), ..violation }
            });
            Judgment::from_violations(told("tool", "tools", flaws).into_iter().chain(failed).collect())
        }
    }
}

const RETURN_RESULTS: &str = "look at the error on the wire: the handler throws or returns something else than a result; return `content`, and report what fails in a result with `isError`";

/// The code of the error that a call got whose arguments are not to blame: the server says so, the tool declares that it takes
/// none, or it reports arguments that are invalid in a result.
fn fault_of_server(conversation: &ConversationView<'_>, attempt: &Attempt<'_, '_>) -> Option<i64> {
    let takes_nothing = || {
        let tools = conversation.tools();
        let tool = tools.iter().find(|(tool, _)| name_of(tool) == attempt.subject());
        tool.is_some_and(|(tool, _)| tool.pointer("/inputSchema/properties").and_then(Value::as_object).is_some_and(Map::is_empty))
    };
    let reports_in_results = || {
        let mut wrong = conversation.probes("call-missing-argument").chain(conversation.probes("call-wrong-type"));
        wrong.any(|wrong| {
            wrong.subject() == attempt.subject() && matches!(wrong.answer, AttemptOutcome::Result { .. }) && wrong.answer.is_refusal()
        })
    };
    attempt.answer.code().filter(|code| match *code {
        INTERNAL_ERROR => !error_message(attempt).is_some_and(|message| quotes_an_argument(attempt, message)),
        INVALID_PARAMS => takes_nothing() || reports_in_results(),
        _ => false,
    })
}

pub(super) fn error_message<'c>(attempt: &Attempt<'_, 'c>) -> Option<&'c str> {
    match &attempt.answer {
        AttemptOutcome::Error { error, .. } => error.get("message")?.as_str(),
        _ => None,
    }
}

/// Whether what a call got quotes a text of the arguments: then it is about that text, whatever its code says.
pub(super) fn quotes_an_argument(attempt: &Attempt<'_, '_>, message: &str) -> bool {
    let Some(request) = attempt.request else { return false };
    let arguments = request.param("/arguments").and_then(Value::as_object).into_iter().flat_map(Map::values);
    arguments.filter_map(Value::as_str).any(|text| text.len() >= LEAST_QUOTED && message.contains(text))
}

/// A shorter text stands in any message.
const LEAST_QUOTED: usize = 4;

/// Whether the refusal of a request reads like that of one for a name that does not exist, which quotes that name.
pub(super) fn is_refused_as_unknown(attempt: &Attempt<'_, '_>, unknown: &Attempt<'_, '_>) -> bool {
    let (Some(refusal), Some(model)) = (refusal_text(&attempt.answer), refusal_text(&unknown.answer)) else { return false };
    model.contains(unknown.subject())
        && attempt.subject() != unknown.subject()
        && model.replace(unknown.subject(), attempt.subject()) == refusal
}

/// All texts of a result.
pub(super) fn texts(result: &Value) -> String {
    let blocks = result.get("content").and_then(Value::as_array).into_iter().flatten();
    blocks.filter_map(|block| block.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
}

/// The error of a response, or the content of a result with `isError`.
fn refusal_text(answer: &AttemptOutcome<'_>) -> Option<String> {
    match answer {
        AttemptOutcome::Error { error, .. } => Some(error.to_string()),
        AttemptOutcome::Result { value, .. } if answer.is_refusal() => Some(value.get("content")?.to_string()),
        _ => None,
    }
}

fn unknown_tool_code(conversation: &ConversationView<'_>) -> Judgment {
    let Some(attempt) = conversation.probe("unknown-tool") else { return no_tools(conversation) };
    match attempt.answer.code() {
        Some(INVALID_PARAMS) => Judgment::Pass,
        // A success is worse than a wrong code, and told by the rule for it.
        _ if !attempt.answer.is_refusal() => Judgment::Untestable(format!("a call of an unknown tool got {}", attempt.answer.describe())),
        _ => {
            let message = format!("a call to a tool that does not exist got {}", attempt.answer.describe());
            Judgment::Broken(vec![Violation::new(message, attempt.frames())])
        }
    }
}

fn without_name_is_refused(conversation: &ConversationView<'_>) -> Judgment {
    let Some(attempt) = conversation.probe("call-without-name") else { return no_tools(conversation) };
    match attempt.answer {
        AttemptOutcome::Result { .. } if !attempt.answer.is_refusal() => {
            Judgment::Broken(vec![Violation::new(format!("a call without `name` got {}", attempt.answer.describe()), attempt.frames())])
        }
        _ if attempt.answer.is_refusal() => Judgment::Pass,
        _ => Judgment::Untestable(format!("a call without `name` got {}", attempt.answer.describe())),
    }
}

fn no_tools(conversation: &ConversationView<'_>) -> Judgment {
    let is_missing = conversation.handshake().is_some() && conversation.capability("tools").is_none();
    match is_missing {
        true => Judgment::NotApplicable("the server has no tools".into()),
        false => Judgment::Untestable("no tools were listed, so none were called".into()),
    }
}

fn subject<'c>(attempt: &'c Attempt<'_, '_>) -> &'c str {
    attempt.probed.subject.as_deref().unwrap_or_default()
}

/// Why there is nothing to say about calls.
fn nothing_called(all: &[&ConversationView<'_>], what: &str) -> Judgment {
    let has_tools = all.iter().any(|conversation| !conversation.tools().is_empty());
    let has_called = all.iter().any(|conversation| conversation.probes("call").next().is_some());
    let is_read_only = |tool: &Value| tool.pointer("/annotations/readOnlyHint") == Some(&Value::Bool(true));
    let may_call = all.iter().any(|conversation| conversation.tools().iter().any(|(tool, _)| is_read_only(tool)));
    match (has_tools, has_called) {
        (false, _) => Judgment::NotApplicable("the server lists no tools".into()),
        (true, false) if may_call => Judgment::Untestable("no arguments were found that the schema of a read-only tool accepts".into()),
        (true, false) => Judgment::Untestable("no tool may be called: none has `readOnlyHint: true` or is named in `--call`".into()),
        (true, true) => Judgment::NotApplicable(format!("no tool that may be called {what}")),
    }
}

fn invalid_is_refused(all: &[&ConversationView<'_>], probe: &str, what: &str) -> Judgment {
    let (mut tried, mut answered, mut undecided, mut flaws) = (0, 0, 0, Vec::new());
    for (position, conversation) in all.iter().enumerate() {
        let tools = conversation.tools();
        // A tool that refuses the right arguments in the same words has not looked at them.
        let right: Vec<_> =
            conversation.probes("call").filter_map(|right| Some((subject(&right).to_owned(), refusal_text(&right.answer)?))).collect();
        for attempt in conversation.probes(probe) {
            tried += 1;
            let name = subject(&attempt);
            if let Some(text) = refusal_text(&attempt.answer) {
                let is_refused_anyway = right.iter().any(|(tool, refusal)| tool == name && *refusal == text);
                *(if is_refused_anyway { &mut undecided } else { &mut answered }) += 1;
                continue;
            }
            let AttemptOutcome::Result { value, .. } = attempt.answer else { continue };
            let tool = tools.iter().find(|(tool, _)| tool.get("name").and_then(Value::as_str) == Some(name));
            let schema = tool.and_then(|(tool, _)| tool.get("inputSchema"));
            let arguments = attempt.request.and_then(|request| request.value.pointer("/params/arguments"));
            let (Some(schema), Some(arguments), true) = (schema, arguments, is_final(value)) else { continue };
            let Some(detail) = invalidity(schema, arguments) else { continue };
            answered += 1;
            flaws.push(Flaw { subject: name.to_owned(), detail, frames: attempt.frames(), conversation: position });
        }
    }
    match (tried, answered) {
        (0, _) => nothing_called(all, what),
        (_, 0) if undecided > 0 => Judgment::Untestable("the tools refused calls with valid arguments in the same words".into()),
        (_, 0) => Judgment::Untestable("no such call got a response in time".into()),
        _ => Judgment::from_violations(told("tool", "tools", flaws)),
    }
}

/// Why arguments are none by a schema.
fn invalidity(schema: &Value, arguments: &Value) -> Option<String> {
    let schema = Schema::of(schema).ok()?;
    let error = schema.errors(arguments, 1).ok()?.pop()?;
    Some(match error.kind() {
        jsonschema::error::ValidationErrorKind::Required { property } => {
            format!("a call without the required `{}` succeeded", property.as_str().unwrap_or_default())
        }
        _ => {
            let place = error.instance_path().to_string();
            let value = excerpt(error.instance().to_string());
            format!("a call with {value} for `{}` succeeded", place.trim_start_matches('/'))
        }
    })
}

/// Not one that asks for more, or that promises a result.
fn is_final(result: &Value) -> bool {
    let is_complete = result.get("resultType").and_then(Value::as_str).is_none_or(|kind| kind == "complete");
    is_complete && result.get("task").is_none()
}

fn errors_are_results(all: &[&ConversationView<'_>]) -> Judgment {
    let (mut seen, mut flaws) = (0, Vec::new());
    for (position, conversation) in all.iter().enumerate() {
        // A tool that refuses the right arguments in the same way refuses something else.
        let called: Vec<_> = conversation.probes("call").collect();
        let refuses_all = |attempt: &Attempt<'_, '_>| {
            called.iter().any(|right| {
                right.subject() == attempt.subject() && right.answer.code().is_some_and(|code| attempt.answer.code() == Some(code))
            })
        };
        // A mirrored header that is missing, because there is none for such a value, is refused before the arguments are, be it
        // with another code than it should.
        let tools = conversation.tools();
        let is_mirrored = |name: &str| tools.iter().any(|(tool, _)| tool.get("name").is_some_and(|known| known == name) && mirrors(tool));
        let misses_header = |attempt: &Attempt<'_, '_>| {
            conversation.is_modern() && attempt.status().is_some_and(|status| status >= 400) && is_mirrored(attempt.subject())
        };
        let wrong = conversation.probes("call-missing-argument").chain(conversation.probes("call-wrong-type"));
        for attempt in wrong.filter(|attempt| !refuses_all(attempt)) {
            seen += usize::from(attempt.answer.is_refusal());
            if let Some(code) = attempt.answer.code().filter(|code| *code != HEADER_MISMATCH && !misses_header(&attempt)) {
                let detail = format!("invalid arguments get JSON-RPC error {code}");
                flaws.push(Flaw { subject: subject(&attempt).to_owned(), detail, frames: attempt.frames(), conversation: position });
            }
        }
    }
    match seen {
        0 => nothing_called(all, "refuses arguments"),
        _ => Judgment::from_violations(told("tool", "tools", flaws)),
    }
}

/// Calls that succeeded: the tool's name, the result, its frame.
fn succeeded<'c>(conversation: &'c ConversationView<'_>) -> impl Iterator<Item = (&'c str, &'c Value, FrameId)> {
    let of = |(request, answer): (&'c WireMessage<'_>, Option<&'c WireMessage<'_>>)| {
        let name = request.value.pointer("/params/name")?.as_str()?;
        let result = answer?.value.get("result").filter(|result| result.is_object())?;
        let is_success = result.get("isError") != Some(&json!(true)) && is_final(result);
        is_success.then_some((name, result, answer?.frame.id))
    };
    conversation.requests().filter(|(request, _)| request.method() == Some(methods::TOOLS_CALL)).filter_map(of)
}

/// Tools whose results take too long to validate, before no result is validated any more: the first ones are told.
const MOST_COSTLY: usize = 8;

fn output_fits(all: &[&ConversationView<'_>]) -> Judgment {
    let (mut promised, mut seen, mut flaws) = (false, 0, Vec::new());
    let mut costly = HashSet::new();
    for (position, conversation) in all.iter().enumerate() {
        let tools = conversation.tools();
        let schema = |name: &str| {
            let (tool, _) = tools.iter().find(|(tool, _)| tool.get("name").and_then(Value::as_str) == Some(name))?;
            tool.get("outputSchema").filter(|schema| schema.is_object())
        };
        promised |= tools.iter().any(|(tool, _)| tool.get("outputSchema").is_some_and(Value::is_object));
        for (name, result, frame) in succeeded(conversation) {
            let Some(schema) = schema(name) else { continue };
            if costly.len() > MOST_COSTLY || costly.contains(name) {
                continue;
            }
            let detail = match output_flaw(schema, result) {
                // Other rules tell of these.
                Some(OutputFlaw::NoSchema(_)) => continue,
                Some(OutputFlaw::TooCostly(_)) if explodes(schema) => continue,
                Some(OutputFlaw::TooCostly(too_costly)) => {
                    costly.insert(name);
                    Some(format!("a result cannot be validated: {too_costly}"))
                }
                Some(OutputFlaw::Missing) => Some("a result has no `structuredContent`".to_owned()),
                Some(OutputFlaw::Differs(differences)) => differences
                    .first()
                    .map(|first| format!("`{}` is {}, which is not {}", first.path, excerpt(&first.actual), first.expected)),
                None => None,
            };
            seen += 1;
            flaws.extend(detail.map(|detail| Flaw { subject: name.to_owned(), detail, frames: vec![frame], conversation: position }));
        }
    }
    match (promised, seen) {
        (false, _) => Judgment::NotApplicable("no tool has an `outputSchema`".into()),
        (true, 0) => Judgment::Untestable(
            "no tool with an `outputSchema` returned a result; `--call NAME` allows tools that are not read-only".into(),
        ),
        _ => Judgment::from_violations(told("tool", "tools", flaws)),
    }
}

fn structured_has_text(all: &[&ConversationView<'_>]) -> Judgment {
    let (mut seen, mut flaws) = (0, Vec::new());
    for (position, conversation) in all.iter().enumerate() {
        let structured = succeeded(conversation).filter(|(_, result, _)| result.get("structuredContent").is_some_and(|it| !it.is_null()));
        for (name, result, frame) in structured {
            // Content that is no list breaks the form of the message, which another rule tells.
            let Some(blocks) = result.get("content").and_then(Value::as_array) else { continue };
            seen += 1;
            let texts: Vec<&Value> = blocks.iter().filter(|block| block.get("type") == Some(&json!("text"))).collect();
            let detail = match texts[..] {
                [] if is_empty_list(&result["structuredContent"]) => Some("an empty list is `structuredContent` without a text"),
                [] => Some("a result has `structuredContent` but no text"),
                [text] if is_other_json(text, &result["structuredContent"]) => {
                    Some("a result has a text block whose JSON differs from its `structuredContent`")
                }
                _ => None,
            };
            if let Some(detail) = detail.map(str::to_owned) {
                flaws.push(Flaw { subject: name.to_owned(), detail, frames: vec![frame], conversation: position });
            }
        }
    }
    match seen {
        0 => Judgment::NotApplicable("no result had `structuredContent`".into()),
        _ => Judgment::from_violations(told("tool", "tools", flaws)),
    }
}

/// Whether there is nothing to tell but that there is nothing: a list as SDKs wrap it.
fn is_empty_list(structured: &Value) -> bool {
    let members = structured.as_object().into_iter().flat_map(Map::values).collect::<Vec<_>>();
    matches!(members[..], [only] if only.as_array().is_some_and(Vec::is_empty))
}

/// Whether a text begins as JSON of an object does, or is a list as JSON, and is neither the structured content, nor what that wraps as
/// its only member, nor a text in it.
fn is_other_json(text: &Value, structured: &Value) -> bool {
    let Some(text) = text.get("text").and_then(Value::as_str) else { return false };
    if structured.as_object().is_some_and(|members| members.values().any(|member| member.as_str() == Some(text))) {
        return false;
    }
    let parsed = serde_json::from_str::<Value>(text).ok();
    if parsed.is_none() && text.starts_with("{\"") {
        return !text.contains(ABRIDGED);
    }
    let wrapped = structured.as_object().filter(|members| members.len() == 1).and_then(|members| members.values().next());
    parsed.is_some_and(|parsed| (parsed.is_object() || parsed.is_array()) && parsed != *structured && Some(&parsed) != wrapped)
}

fn survived(all: &[&ConversationView<'_>], unusual: Unusual) -> Judgment {
    let probe = unusual.probe();
    let after = format!("{probe}-after");
    let (mut seen, mut flaws) = (0, Vec::new());
    for (position, conversation) in all.iter().enumerate() {
        let mut last = None;
        for probed in &conversation.conversation.probes {
            if probed.probe == probe {
                last = Some(conversation.attempt(probed));
            } else if probed.probe == after
                && let Some(call) = last.take()
            {
                seen += 1;
                // The frames of the answer may have been crowded out by what a server logs of a call.
                let next = conversation.attempt(probed);
                let detail = match (probed.outcome, next.status()) {
                    (ProbeOutcome::Done, _) => continue,
                    (ProbeOutcome::Silent, _) => "the server no longer responds after such a call".to_owned(),
                    (ProbeOutcome::Gone, Some(status)) => format!("the next request after such a call got status {status}"),
                    (ProbeOutcome::Gone, None) => "the server has exited or disconnected after such a call".to_owned(),
                };
                // That the next request was one too many for a limit is told by its status.
                let told = next.status().map(|_| evidence(&next)).unwrap_or_default();
                let frames = call.frames().into_iter().chain(told).chain(end_of(conversation)).collect();
                flaws.push(Flaw { subject: subject(&call).to_owned(), detail, frames, conversation: position });
            }
        }
    }
    let has_place = |(tool, _): (&Value, FrameId)| {
        let is_called = || {
            all.iter()
                .any(|one| one.probes("call").any(|attempt| tool.get("name").and_then(Value::as_str) == attempt.probed.subject.as_deref()))
        };
        let schema = tool.get("inputSchema")?;
        (is_called() && !arguments::unusual(schema, &arguments::minimal(schema)?, unusual).is_empty()).then_some(())
    };
    match seen {
        0 if all.iter().flat_map(|conversation| conversation.tools()).any(|tool| has_place(tool).is_some()) => {
            Judgment::Untestable("there was no time left to try it".into())
        }
        0 => nothing_called(all, "has a place for such an argument"),
        _ => Judgment::from_violations(told("tool", "tools", flaws)),
    }
}

/// The frame of the end of the process, if it ended by itself.
fn end_of(conversation: &ConversationView<'_>) -> Option<FrameId> {
    let exit = conversation.frames().iter().find(|frame| matches!(frame.body, mcproof_record::FrameBody::Exited { .. }))?;
    Some(exit.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_analysis::example;

    #[test]
    fn results_that_nobody_can_validate_are_told_and_soon_not_validated_any_more() {
        let dear = json!({ "type": "object", "additionalProperties": { "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] } });
        let deep = (0..40).fold(json!({}), |inner, _| json!({ "a": inner }));
        let tools: Vec<Value> = (0..40).map(|tool| json!({ "name": format!("t{tool}"), "outputSchema": dear })).collect();
        let message = |id: usize, kind: &str, what: Value| json!({ "jsonrpc": "2.0", "id": id, kind: what });
        let mut text = format!("> {}\n", json!({ "jsonrpc": "2.0", "id": 0, "method": "tools/list" }));
        text += &format!("< {}\n", message(0, "result", json!({ "tools": tools })));
        for id in 1..=200 {
            let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": format!("t{}", id % 40) } });
            text += &format!("> {call}\n< {}\n", message(id, "result", json!({ "content": [], "structuredContent": deep })));
        }
        let recorded = example::read(&text, "stdio", "2025-11-25");
        let conversation = ConversationView::new(&recorded);
        let Judgment::Broken(violations) = output_fits(&[&conversation]) else { panic!("no result was validated") };
        let told: Vec<&str> = violations.iter().map(|violation| violation.message.as_str()).collect();
        assert!(
            told[0].contains("a result cannot be validated: validating against this schema takes more than 2 million steps"),
            "{told:?}"
        );
    }
}
