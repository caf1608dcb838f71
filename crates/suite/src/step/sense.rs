//! Which keys of a step mean something together. Knows the names of keys, not what they do.

use super::{STEP, StepDraft};
use crate::document::{Entry, Kind, Node};
use crate::format::Presence;
use crate::plan::{Action, Needs, Server};
use crate::reader::Reader;
use crate::source::Span;
use mcproof_analysis::listed;
use mcproof_record::Diagnostic;

/// Actions that list names, each page a request.
const LISTS: &[&str] = &["tools", "prompts", "resources", "templates"];
const ONE_REQUEST: &[&str] = &["call", "read", "prompt", "complete", "discover", "ping"];
/// Requests in another form, or as they stand.
const OTHER_REQUESTS: &[&str] = &["subscribe", "unsubscribe", "raw", "send_bytes"];
const HTTP: &[&str] = &["http"];
const FEDERATION: &[&str] = &["federation"];
const RUN: &[&str] = &["run"];
/// What is sent without waiting for its response.
const UNANSWERED: &[&str] = &["cancel", "close_stdin", "signal"];

/// Each key that is not for all actions, with those that it is for.
const MEANING: &[(&str, &[&[&str]])] = &[
    ("with", &[&["call", "prompt"]]),
    ("meta", &[ONE_REQUEST]),
    ("task", &[&["call"]]),
    ("answers", &[ONE_REQUEST, LISTS, OTHER_REQUESTS, HTTP, FEDERATION, &["cancel", "parallel"]]),
    ("expect", &[ONE_REQUEST, LISTS, OTHER_REQUESTS, HTTP, FEDERATION, RUN, &["handshake"]]),
    ("result", &[ONE_REQUEST, LISTS, OTHER_REQUESTS, HTTP, FEDERATION, RUN, &["handshake"]]),
    ("tool_error", &[&["call", "raw"]]),
    ("rpc_error", &[ONE_REQUEST, LISTS, OTHER_REQUESTS]),
    ("fails", &[ONE_REQUEST, LISTS, OTHER_REQUESTS]),
    ("no_response", &[ONE_REQUEST, LISTS]),
    ("retry", &[ONE_REQUEST, LISTS]),
    ("clashes", &[FEDERATION]),
    ("notifications", &[ONE_REQUEST, LISTS, OTHER_REQUESTS, HTTP, UNANSWERED]),
    ("exited", &[&["send_bytes", "close_stdin", "signal"]]),
    ("save", &[ONE_REQUEST, LISTS, OTHER_REQUESTS, HTTP, FEDERATION, RUN, &["handshake"]]),
    ("times", &[ONE_REQUEST, LISTS, OTHER_REQUESTS, HTTP]),
    ("snapshot", &[ONE_REQUEST, LISTS, OTHER_REQUESTS, HTTP, FEDERATION, RUN, &["handshake"]]),
    ("redact", &[ONE_REQUEST, LISTS, OTHER_REQUESTS, HTTP, FEDERATION, RUN, &["handshake"]]),
    ("validate_output", &[&["call"]]),
    ("within", &[ONE_REQUEST, LISTS, OTHER_REQUESTS, HTTP, FEDERATION, RUN]),
    ("session", &[ONE_REQUEST, LISTS, OTHER_REQUESTS, HTTP, &["cancel", "handshake"]]),
    ("max_timeout", &[ONE_REQUEST]),
    ("timeout", &[ONE_REQUEST, LISTS, OTHER_REQUESTS, HTTP, FEDERATION, RUN, UNANSWERED]),
];

/// Keys that look at the result of an action.
const OF_A_RESULT: &[&str] = &["expect", "result", "save", "snapshot"];

/// Reports keys that can never hold together, or that mean nothing for the action.
pub(super) fn check(reader: &mut Reader<'_>, node: &Node, draft: &StepDraft, action: &str, done: &Action) {
    let Kind::Map(entries) = &node.kind else { return };
    let mut meaningless = |message: String, hint: &str, span: Span| {
        reader.report(Diagnostic::error("inapplicable-key", message).hint(hint), span);
    };
    let mut all_mean_something = true;
    if let (Action::Run(_), Some((_, span))) = (done, &draft.server) {
        meaningless("`server` means nothing for `run`".into(), "leave it out", *span);
    }
    if let (Action::Federation(_), Some((_, span))) = (done, &draft.server) {
        meaningless("`server` means nothing for `federation`, which asks all of them".into(), "leave it out", *span);
    }
    for Entry { key, .. } in entries {
        let Some((name, actions)) = MEANING.iter().find(|(name, _)| *name == key.text) else { continue };
        let actions = actions.concat();
        if !actions.contains(&action) {
            meaningless(format!("`{name}` means nothing for `{action}`"), &hint(name, action, &actions), key.span);
            all_mean_something = false;
        }
    }
    if !all_mean_something {
        return;
    }
    let span_of = |name: &str| entries.iter().find(|entry| entry.key.text == name).map(|entry| entry.key.span);
    for (name, given) in
        [("concurrency", draft.concurrency.as_ref().map(|(_, key)| *key)), ("distinct", draft.distinct.as_ref().map(|(_, key)| *key))]
    {
        if let Some(key) = given.filter(|_| draft.times.is_none()) {
            meaningless(format!("`{name}` means nothing without `times`"), "say how often the step is done: `times: 10`", key);
        }
    }
    if let (Some(_), Some(key)) = (draft.times, span_of("save").or(span_of("snapshot"))) {
        meaningless(
            "`times` returns several responses, and none of them can be saved".into(),
            "leave out `times`, or use `distinct` to compare the responses",
            key,
        );
    }
    if let (None, Some(key)) = (&draft.snapshot, span_of("redact")) {
        meaningless("`redact` means nothing without `snapshot`".into(), "add `snapshot: true`", key);
    }
    if draft.task.is_some() {
        for name in ["retry", "no_response"] {
            if let Some(key) = span_of(name) {
                let hint = "leave one of them out: a task that does not end by the deadline of its step is canceled, and fails";
                meaningless(format!("`{name}` means nothing with `task`"), hint, key);
            }
        }
    }
    if is_unanswered(done) {
        for name in ["expect", "result", "tool_error", "rpc_error", "fails", "save", "snapshot", "within"] {
            if let Some(key) = span_of(name) {
                let hint = "a request has an `id` and a `method`; what follows can be matched with `notifications`";
                meaningless(format!("`{name}` needs a response, which only a request gets"), hint, key);
            }
        }
        return;
    }
    let Some((failure, _)) = &draft.failure else { return };
    if draft.names.is_some()
        && let Some(key) = span_of(failure)
    {
        meaningless(format!("`{failure}` contradicts the names that `{action}` lists"), "leave one of them out", key);
    }
    if *failure == "tool_error" {
        return;
    }
    for name in OF_A_RESULT {
        if let Some(key) = span_of(name) {
            let hint = match *failure {
                "no_response" => "leave one of them out",
                _ => "put expectations of an error into `rpc_error: { code, message, data }` or use `tool_error`",
            };
            meaningless(format!("`{name}` needs a result, which `{failure}` rules out"), hint, key);
        }
    }
}

/// Reports an action that none of the server's transports can do. Where some can, the others are skipped when it is run, and so is a
/// test whose server was swapped for one that cannot do what another server of the file can.
pub(super) fn check_transport(reader: &mut Reader<'_>, name: &str, needs: Option<Needs>, server: &Server, node: &Node) {
    // A server from the command line may have other transports than the one that the suite was written for.
    if reader.environment.server.is_some() {
        return;
    }
    // So may one of a profile.
    let is_swapped = reader.swapped.contains(&server.name);
    let needs = needs.filter(|needs| !is_swapped || !reader.offered.contains(needs));
    if let Some(needs) = needs.filter(|needs| !server.bindings.iter().any(|binding| binding.offers(*needs))) {
        let message = format!("`{name}` needs {}, which `{}` does not have", needs.noun(), server.name);
        let span = match &node.kind {
            Kind::Map(entries) => entries.iter().find(|entry| entry.key.text == name).map_or(node.span, |entry| entry.key.span),
            _ => node.span,
        };
        reader.error("unusable-action", message, span);
    }
}

/// A raw message that is no request.
fn is_unanswered(action: &Action) -> bool {
    matches!(action, Action::Raw(message) if !(message.contains_key("id") && message.contains_key("method")))
}

fn hint(key: &str, action: &str, actions: &[&str]) -> String {
    match key {
        "tool_error" if !matches!(action, "http" | "run" | "handshake" | "parallel") => {
            "only tools return `isError`; write `rpc_error`".into()
        }
        "rpc_error" | "fails" | "tool_error" if action == "handshake" => "a test whose handshake fails never gets to its steps".into(),
        "rpc_error" | "fails" | "tool_error" if action == "run" => "expect its code: `expect: { code: 1 }`".into(),
        "rpc_error" | "fails" | "tool_error" if action == "http" => "expect a status instead, such as `expect: { status: 404 }`".into(),
        _ if action == "parallel" => "write it at the steps that it is for".into(),
        "with" => "only `call` and `prompt` take arguments".into(),
        _ if actions.len() <= 8 => format!("only {} can have it", listed(actions.iter().copied())),
        _ => {
            let all = STEP.keys.iter().filter(|key| key.presence == Presence::OneOf).map(|key| key.name);
            format!("it is for all actions but {}", listed(all.filter(|name| !actions.contains(name))))
        }
    }
}
