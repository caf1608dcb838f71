//! Tools of which no call succeeded, because something is broken inside of them or in front of them, by the look of what they say. Who
//! refuses an argument that was made up says something else. Knows results and conversations, and no violation.

use super::calls::{quotes_an_argument, texts};
use super::{Attempt, AttemptOutcome, ConversationView};
use mcproof_analysis::named;
use mcproof_analysis::wording::excerpt;
use mcproof_protocol::{error_code, methods};
use mcproof_record::{Gap, GapKind};
use regex::Regex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Calls with arguments that the schema allows.
const VALID: [&str; 6] = ["call", "call-all-arguments", "call-other-arguments", "call-with-logs", "call-as-host", "call-repeated"];

/// What runtimes say of a defect in a program, in lower case, which an argument that was made up may have brought about.
const DEFECTS: [&str; 14] = [
    "typeerror",
    "referenceerror",
    "attributeerror",
    "nameerror",
    "is not a function",
    "cannot read propert",
    "undefined (reading",
    "traceback (most recent call last)",
    "'nonetype' object",
    "object has no attribute",
    "object is not subscriptable",
    "nullpointerexception",
    "nil pointer dereference",
    "no such table",
];

/// The same, of what no argument brings about that the schema allows: it is the program that lacks something.
const INDEPENDENT: [&str; 6] = [
    "importerror",
    "modulenotfounderror",
    "no module named",
    "unboundlocalerror",
    "got an unexpected keyword argument",
    "required positional argument",
];

/// How a valid call failed.
enum Failure {
    /// With a result whose text reads like a defect, which an argument may have brought about or not.
    Words { text: String, is_independent: bool },
    /// With an HTTP status and no message.
    Status(u16),
    /// With the code of an internal error, which has a rule and a gap of its own.
    Code,
    /// With anything else that says no: what was made up may not be there.
    Refused,
}

struct BrokenTool {
    name: String,
    conversation: usize,
    /// What it says, or the status that it gets.
    words: String,
    /// Whether what was made up cannot be to blame.
    is_certain: bool,
}

/// That no tool, or one whose arguments cannot be to blame, got as far as a result.
pub(super) fn gap(conversations: &[ConversationView<'_>]) -> Option<Gap> {
    let CalledTools { broken, called, .. } = called_tools(conversations);
    let told: Vec<&BrokenTool> = broken.iter().filter(|tool| tool.is_certain || broken.len() == called).collect();
    let first = told.first()?;
    let names: Vec<String> = told.iter().map(|tool| tool.name.clone()).collect();
    let its = if names.len() == 1 { "its" } else { "their" };
    let message = format!("no call of {} succeeded, so {its} results were not checked: {}", named(&names), first.words);
    let hint = "read the stderr of the server, and what it needs to run its tools; if it needs other arguments, call the tools in a suite";
    Some(Gap { kind: GapKind::NotJudged, message, hint: hint.into(), conversation: Some(first.conversation) })
}

/// Sentences about tools that broke over arguments that were made up, or refused them, while others succeeded.
pub(super) fn in_part(conversations: &[ConversationView<'_>]) -> Vec<String> {
    let CalledTools { broken, refusing, called } = called_tools(conversations);
    let others = broken.iter().filter(|tool| !tool.is_certain && broken.len() != called);
    let broken = others.map(|tool| format!("without a result of `{}`: each valid call of it got {}", tool.name, tool.words));
    let refusing = (!refusing.is_empty()).then(|| format!("without a result of {}: each valid call was refused", named(&refusing)));
    broken.chain(refusing).collect()
}

/// The tools that were called with valid arguments.
struct CalledTools {
    /// Of which each call failed inside or in front of them.
    broken: Vec<BrokenTool>,
    /// Names of the others without a result.
    refusing: Vec<String>,
    /// How many there are in all.
    called: usize,
}

fn called_tools(conversations: &[ConversationView<'_>]) -> CalledTools {
    let mut calls_of = BTreeMap::<String, Vec<(usize, bool, Option<Failure>)>>::new();
    for (conversation, one) in conversations.iter().enumerate() {
        // What gets no response is told otherwise.
        let valid = VALID.into_iter().flat_map(|probe| one.probes(probe)).filter(|attempt| attempt.answer.frame().is_some());
        for attempt in valid {
            let call = (conversation, has_arguments(&attempt), failure(&attempt));
            calls_of.entry(attempt.subject().to_owned()).or_default().push(call);
        }
    }
    let succeeded = succeeded(conversations);
    let mut tools = CalledTools { broken: Vec::new(), refusing: Vec::new(), called: calls_of.len() };
    for (name, calls) in calls_of.into_iter().filter(|(name, _)| !succeeded.contains(name.as_str())) {
        let Some(failures) = calls.iter().map(|(.., failure)| failure.as_ref()).collect::<Option<Vec<&Failure>>>() else { continue };
        if failures.iter().any(|failure| matches!(failure, Failure::Refused)) {
            tools.refusing.push(name);
            continue;
        }
        let words = failures.iter().find_map(|failure| match failure {
            Failure::Words { text, .. } => Some(format!("\"{}\"", excerpt(text))),
            Failure::Status(status) => Some(format!("HTTP status {status}")),
            Failure::Code | Failure::Refused => None,
        });
        let (Some(words), Some((conversation, ..))) = (words, calls.first()) else { continue };
        // A tool may need more rights than the others.
        let is_turned_away = failures.iter().all(|failure| matches!(failure, Failure::Status(status) if *status != 403));
        let is_independent = failures.iter().all(|failure| matches!(failure, Failure::Words { is_independent: true, .. }));
        let is_certain = is_turned_away || is_independent || calls.iter().all(|(_, has_arguments, _)| !has_arguments);
        tools.broken.push(BrokenTool { name, conversation: *conversation, words, is_certain });
    }
    tools
}

/// Names of tools of which any call succeeded, whatever it was made for.
fn succeeded<'c>(conversations: &'c [ConversationView<'_>]) -> BTreeSet<&'c str> {
    let requests = conversations.iter().flat_map(|one| one.requests());
    let calls = requests.filter(|(request, answer)| {
        let result = answer.and_then(|answer| answer.value.get("result"));
        request.method() == Some(methods::TOOLS_CALL) && result.is_some_and(|result| result.get("isError") != Some(&json!(true)))
    });
    calls.filter_map(|(request, _)| request.value.pointer("/params/name")?.as_str()).collect()
}

fn has_arguments(attempt: &Attempt<'_, '_>) -> bool {
    let arguments = attempt.request.and_then(|request| request.param("/arguments"));
    arguments.and_then(Value::as_object).is_some_and(|arguments| !arguments.is_empty())
}

fn failure(attempt: &Attempt<'_, '_>) -> Option<Failure> {
    match attempt.answer {
        AttemptOutcome::Status { status: status @ 400..500, .. } if !matches!(status, 404 | 429) => Some(Failure::Status(status)),
        AttemptOutcome::Error { .. } if attempt.answer.code() == Some(error_code::INTERNAL_ERROR) => Some(Failure::Code),
        AttemptOutcome::Result { value, .. } if attempt.answer.is_refusal() => {
            let text = texts(value);
            let lower = text.to_lowercase();
            // So says Node.js of a network that is not there.
            let is_independent = INDEPENDENT.iter().any(|words| lower.contains(words)) || MISSING_NAME.is_match(&lower);
            let is_defect = is_independent || !lower.contains("fetch failed") && DEFECTS.iter().any(|words| lower.contains(words));
            Some(match is_defect && !quotes_an_argument(attempt, &text) {
                true => Failure::Words { text, is_independent },
                false => Failure::Refused,
            })
        }
        _ if attempt.answer.is_refusal() => Some(Failure::Refused),
        _ => None,
    }
}

/// A name that stands in the source of the program and is not there: a member that is called, or a variable. What is looked up by an
/// argument is written otherwise, as in `handlers[name] is not a function`.
static MISSING_NAME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|[\s:(])[\w$]+(?:\.[\w$]+)+ is not a function|(?:^|: )[\w$]+ is not defined|name '[\w.]+' is not defined")
        .expect("the pattern is valid")
});

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_analysis::example;

    /// Two calls of a tool over HTTP, with what comes back.
    fn calls(tool: &str, arguments: &str, came: &str) -> String {
        let call = |id: u32, probe: &str| {
            let params = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
            let request = format!(r#"{{"jsonrpc":"2.0","id":"{tool}-{id}","method":"tools/call","params":{params}}}"#);
            format!("@ {probe} {tool}\n> POST /mcp\n> {request}\n{}\n! ended\n", came.replace("ID", &format!("\"{tool}-{id}\"")))
        };
        call(1, "call") + &call(2, "call-other-arguments")
    }

    fn result(text: &str, is_error: bool) -> String {
        let content = json!([{ "type": "text", "text": text }]);
        let result = json!({ "content": content, "isError": is_error });
        format!("< 200 content-type: application/json\n< {{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{result}}}")
    }

    #[test]
    fn a_tool_that_is_broken_inside_is_no_success_and_one_that_refuses_is() {
        let check = |text: &str, gap_expected: Option<&str>, parts: usize| {
            let take = example::read(text, "http", "2025-11-25");
            let conversations = [ConversationView::new(&take)];
            let told = gap(&conversations).map(|gap| gap.message);
            assert_eq!(told.as_deref(), gap_expected, "{text}");
            assert_eq!(in_part(&conversations).len(), parts, "{text}");
        };
        let (given, bare, fine) = (r#"{"text":"mcproof"}"#, "{}", result("1", false));
        let defect = result("keyValidator._parse is not a function", true);
        let told = "no call of `add` succeeded, so its results were not checked: \"keyValidator._parse is not a function\"";
        check(&calls("add", given, &defect), Some(told), 0);
        check(&calls("add", bare, &defect), Some(told), 0);
        let both = "no call of `add` and `sum` succeeded, so their results were not checked: \"keyValidator._parse is not a function\"";
        check(&(calls("add", given, &defect) + &calls("sum", given, &defect)), Some(both), 0);
        // Beside tools that work, what was made up may be to blame, unless there was nothing.
        let dynamic = result("handlers[name] is not a function", true);
        check(&(calls("add", given, &dynamic) + &calls("sum", given, &fine)), None, 1);
        check(&(calls("add", given, &result("no such table: notes", true)) + &calls("sum", given, &fine)), None, 1);
        // A name that stands in the program is missing whatever is given.
        check(&(calls("add", given, &defect) + &calls("sum", given, &fine)), Some(told), 0);
        let name = result("Error executing tool add: name 're' is not defined", true);
        let told_name =
            "no call of `add` succeeded, so its results were not checked: \"Error executing tool add: name 're' is not defined\"";
        check(&(calls("add", given, &name) + &calls("sum", given, &fine)), Some(told_name), 0);
        check(&(calls("add", given, &result("mcproof is not defined", true)) + &calls("sum", given, &fine)), None, 1);
        check(&(calls("add", bare, &defect) + &calls("sum", given, &fine)), Some(told), 0);
        check(&calls("add", given, &fine), None, 0);
        check(&calls("add", given, &result("there is no note `mcproof`", true)), None, 1);
        check(&calls("add", given, &result("internal error: mcproof not found", true)), None, 1);
        let refused = "no call of `add` succeeded, so its results were not checked: HTTP status 401";
        check(&(calls("add", given, "< 401\n< no") + &calls("sum", given, &fine)), Some(refused), 0);
        check(&(calls("add", given, "< 403\n< no") + &calls("sum", given, &fine)), None, 1);
        let internal = r#"< 200 content-type: application/json
            < {"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"no"}}"#;
        check(&calls("add", given, internal), None, 0);
    }
}
