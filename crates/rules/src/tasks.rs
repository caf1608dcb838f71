//! Calls of 2025-11-25 that create tasks.
//! Source: 2025-11-25, basic/utilities/tasks. The tasks of the extension are judged with fixtures.

use super::answers::{gathered, messages};
use super::lifecycle::of_what_was_never_said;
use super::rule_definition::{
    AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Revisions, Rule, Violation, revisions,
};
use super::sessions::weakness;
use mcproof_analysis::probes::{MISLED, RELATED};
use mcproof_analysis::wording::excerpt;
use mcproof_analysis::{Attempt, AttemptOutcome, ConversationView, WireMessage};
use mcproof_protocol::error_code::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND};
use mcproof_protocol::{Revision, methods};
use mcproof_record::{ExchangeId, FrameId};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const REVISION: Revisions = Revision::V2025_11_25..=Revision::V2025_11_25;
/// Why a MUST is a warning for tools that have to be called as a task.
const REFUSED_IN_RESULT: Option<&str> = Some("the call is refused all the same, with an `isError` result, as by the TypeScript SDK");

/// The fields that these rules have in common.
const OF_TASKS: Rule = Rule { area: Area::Calls, ..Rule::DEFAULT };

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "undeclared-task-request-is-ignored",
        requirement: "a server that does not declare tasks ignores `task` in a call",
        sources: &[RequirementSource {
            revisions: REVISION,
            level: RequirementLevel::Must,
            source: "basic/utilities/tasks#task-support-and-handling",
        }],
        judge: Judge::Each(undeclared_is_ignored),
        why: "a client that sees no declared tasks expects the result of the tool, and never requests that of a task",
        remedy: "declare `tasks.requests.tools.call`, or ignore the parameter `task`",
        ..OF_TASKS
    },
    Rule {
        id: "call-as-task-returns-task",
        requirement: "a call as a task returns the task immediately",
        sources: &[RequirementSource {
            revisions: REVISION,
            level: RequirementLevel::Must,
            source: "basic/utilities/tasks#result-retrieval",
        }],
        judge: Judge::Each(returns_task),
        why: "a client that requested a task waits for its id, and cannot interpret another result",
        remedy: "respond to a call with `task` with a result that has the member `task`, and return the result of the tool from `tasks/result`",
        ..OF_TASKS
    },
    Rule {
        id: "new-task-status-is-working",
        requirement: "a new task has the status `working`",
        sources: &[RequirementSource {
            revisions: REVISION,
            level: RequirementLevel::Must,
            source: "basic/utilities/tasks#task-status-lifecycle",
        }],
        judge: Judge::Each(starts_as_working),
        why: "clients display the status of a task, and do not poll a task that has ended",
        remedy: "store the task as `working` before its work begins, and return it in this status",
        ..OF_TASKS
    },
    Rule {
        id: "task-ids-differ",
        requirement: "no two tasks have the same id",
        sources: &[RequirementSource {
            revisions: REVISION,
            level: RequirementLevel::Must,
            source: "basic/utilities/tasks#task-id-requirements",
        }],
        judge: Judge::Each(ids_differ),
        why: "a request for one task gets the status or the result of another one",
        remedy: "use a random id for each task, such as a UUID",
        ..OF_TASKS
    },
    Rule {
        id: "task-terminal-status-is-final",
        requirement: "a task that has ended keeps its status",
        sources: &[RequirementSource {
            revisions: REVISION,
            level: RequirementLevel::Must,
            source: "basic/utilities/tasks#task-status-lifecycle",
        }],
        judge: Judge::Each(end_is_final),
        why: "clients stop polling when a task has ended, and miss later changes",
        remedy: "check the status before changing it: `completed`, `failed` and `cancelled` are final, even if the work ends after a cancellation",
        ..OF_TASKS
    },
    Rule {
        id: "task-status-names-known-task",
        requirement: "a `notifications/tasks/status` is about a task that the server has named before",
        sources: &[RequirementSource { revisions: REVISION, level: RequirementLevel::Should, source: "" }],
        judge: Judge::Together(pushed_tasks_are_known),
        why: "the client drops it: either the id is wrong, and the client waits for its task, or it is the task of another client",
        remedy: "send the `taskId` of the task as it was returned, and only to the client that created it",
        ..OF_TASKS
    },
    Rule {
        id: "task-result-waits-for-task-end",
        requirement: "`tasks/result` gets its response when the task has ended, and not before",
        sources: &[RequirementSource {
            revisions: REVISION,
            level: RequirementLevel::Must,
            source: "basic/utilities/tasks#result-retrieval",
        }],
        judge: Judge::Each(result_waits),
        why: "a client accepts the first response as the result, and does not repeat the request",
        remedy: "wait for the end of the task before responding to `tasks/result`",
        ..OF_TASKS
    },
    Rule {
        id: "task-result-is-stable",
        requirement: "the result of a completed task is the result of its tool, for every request",
        sources: &[RequirementSource {
            revisions: REVISION,
            level: RequirementLevel::Must,
            source: "basic/utilities/tasks#result-retrieval",
        }],
        judge: Judge::Each(result_is_stable),
        why: "a client whose connection broke requests the result again, and gets none or a different one",
        remedy: "store the result as long as the task exists, and return it from `tasks/result` as the call would have returned it",
        ..OF_TASKS
    },
    Rule {
        id: "task-result-names-its-task",
        requirement: "the result of a task names that task in `_meta`",
        sources: &[RequirementSource {
            revisions: REVISION,
            level: RequirementLevel::Must,
            source: "basic/utilities/tasks#associating-task-related-messages",
        }],
        judge: Judge::Each(result_names_its_task),
        why: "a client with several tasks assigns the result to the wrong one",
        remedy: "set `io.modelcontextprotocol/related-task` in the `_meta` of `tasks/result` to the requested `taskId`",
        ..OF_TASKS
    },
    Rule {
        id: "task-status-has-no-related-task-meta",
        requirement: "messages that already contain the task id do not repeat it in `_meta`",
        sources: &[RequirementSource {
            revisions: REVISION,
            level: RequirementLevel::Should,
            source: "basic/utilities/tasks#associating-task-related-messages",
        }],
        judge: Judge::Each(names_no_related_task),
        why: "the two ids can differ, and clients may use either",
        remedy: "leave `io.modelcontextprotocol/related-task` out of the results of `tasks/get`, `tasks/list` and `tasks/cancel`, and of `notifications/tasks/status`",
        ..OF_TASKS
    },
    Rule {
        id: "task-id-in-params-takes-precedence",
        requirement: "`tasks/get` uses the task id in its params, not the one in `_meta`",
        sources: &[RequirementSource {
            revisions: REVISION,
            level: RequirementLevel::Must,
            source: "basic/utilities/tasks#associating-task-related-messages",
        }],
        judge: Judge::Each(id_in_params_takes_precedence),
        why: "a client that forwards `_meta` of an earlier message gets the status of another task",
        remedy: "read `params.taskId`, and ignore `io.modelcontextprotocol/related-task` in these requests",
        ..OF_TASKS
    },
    Rule {
        id: "task-list-has-each-task",
        requirement: "a task that `tasks/get` returns is also in `tasks/list`",
        sources: &[RequirementSource { revisions: REVISION, level: RequirementLevel::Must, source: "basic/utilities/tasks#task-listing" }],
        judge: Judge::Each(list_has_each),
        why: "after a restart, clients find their tasks through the list, and lose those that are missing",
        remedy: "list all tasks that this client may access, including running ones",
        ..OF_TASKS
    },
    Rule {
        id: "task-cancel-sets-status-cancelled",
        requirement: "the response to `tasks/cancel` has the status `cancelled`",
        sources: &[RequirementSource {
            revisions: REVISION,
            level: RequirementLevel::Must,
            source: "basic/utilities/tasks#task-cancellation",
        }],
        judge: Judge::Each(cancel_cancels),
        why: "the client shows a task that is still running, and its user cancels it again",
        remedy: "set the status before responding to `tasks/cancel`, then stop the work",
        ..OF_TASKS
    },
    Rule {
        id: "ended-task-cannot-be-canceled",
        requirement: "canceling a task that has ended gets error -32602",
        sources: &[RequirementSource {
            revisions: REVISION,
            level: RequirementLevel::Must,
            source: "basic/utilities/tasks#task-cancellation",
        }],
        judge: Judge::Each(ended_cannot_be_canceled),
        why: "the client reports as canceled a task that had already ended",
        remedy: "respond to `tasks/cancel` with -32602 if the status is `completed`, `failed` or `cancelled`",
        ..OF_TASKS
    },
    Rule {
        id: "task-unknown-is-refused",
        requirement: "a task or a cursor that does not exist gets error -32602",
        sources: &[RequirementSource {
            revisions: REVISION,
            level: RequirementLevel::Must,
            source: "basic/utilities/tasks#protocol-errors",
        }],
        judge: Judge::Each(unknown_is_refused),
        why: "clients discard a task after this error, and retry after any other",
        remedy: "respond with -32602 to `tasks/get`, `tasks/result` and `tasks/cancel` with an unknown id, and to `tasks/list` with an unknown cursor",
        ..OF_TASKS
    },
    Rule {
        id: "call-as-task-is-refused-where-forbidden",
        requirement: "a call as a task of a tool without task support gets error -32601",
        sources: &[RequirementSource {
            revisions: REVISION,
            level: RequirementLevel::Should,
            source: "basic/utilities/tasks#tool-level-negotiation",
        }],
        judge: Judge::Each(forbidden_is_refused),
        why: "a client that expects a task cannot interpret a result",
        remedy: "check the `taskSupport` of the tool, and respond with -32601 if it is missing or `forbidden` and the call has `task`",
        ..OF_TASKS
    },
    Rule {
        id: "call-without-needed-task-is-refused",
        requirement: "a call without `task` of a tool that requires a task gets error -32601",
        sources: &[RequirementSource {
            revisions: REVISION,
            level: RequirementLevel::Must,
            source: "basic/utilities/tasks#tool-level-negotiation",
        }],
        judge: Judge::Each(needed_is_wanted),
        why: "a client waits for the result of long work until its request times out",
        remedy: "check the `taskSupport` of the tool, and respond with -32601 if it is `required` and the call has no `task`",
        ..OF_TASKS
    },
    Rule {
        id: "task-progress-ends-with-task",
        requirement: "a task has no progress after its end",
        sources: &[RequirementSource {
            revisions: REVISION,
            level: RequirementLevel::Must,
            source: "basic/utilities/progress#behavior-requirements",
        }],
        judge: Judge::Each(progress_ends_with_task),
        why: "clients discard the token when a task ends; later progress is an error in their log, or is assigned to another request",
        remedy: "stop reporting progress before setting the status",
        ..OF_TASKS
    },
    Rule {
        id: "task-id-is-unguessable",
        requirement: "a task id cannot be guessed from other task ids",
        sources: &[
            RequirementSource {
                revisions: REVISION,
                level: RequirementLevel::Must,
                source: "basic/utilities/tasks#task-isolation-and-access-control",
            },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Must,
                source: "https://modelcontextprotocol.io/seps/2663-tasks-extension",
            },
        ],
        on: AppliesTo::Http,
        judge: Judge::Each(id_is_unguessable),
        why: "anyone who guesses a task id can read its result, respond to its requests, or cancel it",
        remedy: "generate the id with a cryptographic random number generator, with at least 128 bits",
        ..OF_TASKS
    },
];

fn without_tasks(conversation: &ConversationView<'_>) -> Judgment {
    let undeclared = crate::rule_definition::unless_declared(conversation, "tasks/requests/tools/call");
    undeclared.unwrap_or_else(|| Judgment::NotTried("no tool was called as a task".into()))
}

/// Judges the response to each probe.
fn each(conversation: &ConversationView<'_>, probe: &str, flaw: impl Fn(&Attempt<'_, '_>) -> Option<String>) -> Judgment {
    let (mut tried, mut seen, mut violations) = (false, 0, Vec::<Violation>::new());
    for attempt in conversation.probes(probe) {
        tried = true;
        if matches!(attempt.answer, AttemptOutcome::Silence | AttemptOutcome::Gone | AttemptOutcome::None) {
            continue;
        }
        seen += 1;
        violations.extend(flaw(&attempt).map(|message| Violation::new(message, attempt.frames())));
    }
    violations.truncate(1);
    if tried { Judgment::of(violations, seen, "no request about tasks got a response") } else { without_tasks(conversation) }
}

fn id_of(value: &Value) -> Option<&str> {
    value.get("taskId")?.as_str()
}

fn status_of(state: &Value) -> &str {
    state.get("status").and_then(Value::as_str).unwrap_or_default()
}

fn has_ended(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}

/// The task that a request is about.
fn target<'c>(attempt: &Attempt<'_, 'c>) -> Option<&'c str> {
    attempt.request?.param("/taskId")?.as_str()
}

/// The result of a request about a task.
fn result_of<'c>(attempt: &Attempt<'_, 'c>) -> Option<&'c Value> {
    match attempt.answer {
        AttemptOutcome::Result { value, .. } => Some(value),
        _ => None,
    }
}

/// The tasks that calls of the client created, with the frames of the responses.
fn created_tasks<'c>(conversation: &'c ConversationView<'_>) -> Vec<(&'c Value, FrameId)> {
    let calls = conversation.requests().filter(|(request, _)| request.method() == Some(methods::TOOLS_CALL));
    let place = |answer: &'c WireMessage<'_>| {
        let result = answer.value.get("result")?;
        if conversation.is_modern() { Some(result).filter(|result| result["resultType"] == "task") } else { result.get("task") }
    };
    calls.filter_map(|(_, answer)| Some((place(answer?)?, answer?.frame.id))).filter(|(task, _)| id_of(task).is_some()).collect()
}

/// A task at one moment.
struct TaskState<'c> {
    status: &'c str,
    frame: FrameId,
    exchange: Option<ExchangeId>,
}

/// The reported states of each task, in order. Over HTTP, a notification may arrive late, so it does not count. Tasks with the
/// same id are left out, because their states cannot be assigned.
fn reported_states<'c>(conversation: &'c ConversationView<'_>) -> BTreeMap<&'c str, Vec<TaskState<'c>>> {
    let mut all: BTreeMap<&str, Vec<TaskState<'_>>> = BTreeMap::new();
    let on_one_channel = !conversation.is_over("http");
    for server_message in messages(conversation) {
        let result = server_message.value.get("result");
        let of_call = result.and_then(|result| result.get("task"));
        let of_list = result.and_then(|result| result.get("tasks")?.as_array()).into_iter().flatten();
        let pushed = server_message
            .value
            .get("params")
            .filter(|_| on_one_channel && server_message.method() == Some(methods::notifications::TASKS_STATUS));
        for state in of_call.into_iter().chain(result).chain(of_list).chain(pushed) {
            let (Some(id), Some(status)) = (id_of(state), state.get("status").and_then(Value::as_str)) else { continue };
            all.entry(id).or_default().push(TaskState { status, frame: server_message.frame, exchange: server_message.exchange });
        }
    }
    let created = created_tasks(conversation);
    all.retain(|id, _| created.iter().filter(|(task, _)| id_of(task) == Some(*id)).count() < 2);
    all
}

fn pushed_tasks_are_known(all: &[&ConversationView<'_>]) -> Judgment {
    let results = all.iter().flat_map(|conversation| conversation.from_server()).filter_map(|message| message.value.get("result"));
    let tasks = results.flat_map(|result| {
        let listed = result.get("tasks").and_then(Value::as_array).into_iter().flatten();
        [Some(result), result.get("task")].into_iter().flatten().chain(listed)
    });
    let known: BTreeSet<&str> = tasks.filter_map(id_of).collect();
    let (mut seen, mut violations) = (0, Vec::new());
    for (position, conversation) in all.iter().enumerate().filter(|(_, conversation)| !conversation.lacks("tasks")) {
        let mut unknown = Vec::new();
        for message in conversation.from_server().filter(|message| message.method() == Some(methods::notifications::TASKS_STATUS)) {
            seen += 1;
            if let Some(id) = message.param("/taskId").and_then(Value::as_str).filter(|id| !known.contains(id)) {
                let told = format!("the status of the task `{}` was sent, which no response names", excerpt(id));
                unknown.push(Violation { conversation: position, ..Violation::new(told, [message.frame.id]) });
            }
        }
        violations.extend(gathered(unknown));
    }
    match seen {
        0 => Judgment::NotApplicable("the server sent no status of a task unasked".into()),
        _ => of_what_was_never_said(all, violations),
    }
}

/// The next reported status of a task.
fn next_status<'c>(conversation: &'c ConversationView<'_>, attempt: &Attempt<'_, 'c>) -> Option<(&'c str, FrameId)> {
    let until = attempt.answer.frame()?;
    let later = conversation.probes("task-status").filter(|status| status.probed.first > until && target(status) == target(attempt));
    later.filter_map(|status| Some((status_of(result_of(&status)?), status.answer.frame()?))).next()
}

fn undeclared_is_ignored(conversation: &ConversationView<'_>) -> Judgment {
    let Some(attempt) = conversation.probe("task-undeclared") else {
        let declares = conversation.capability("tasks/requests/tools/call").is_some();
        return match declares {
            true => Judgment::NotApplicable("the server declares tasks".into()),
            false => Judgment::NotTried("no tool was called with `task`".into()),
        };
    };
    let works =
        conversation.probes("call").any(|call| call.subject() == attempt.subject() && matches!(call.answer, AttemptOutcome::Result { .. }));
    match attempt.answer {
        AttemptOutcome::Result { value, .. } if value.get("task").is_some() => {
            let message = format!("`{}` called with `task` got a task, but `tasks` is not declared", attempt.subject());
            Judgment::Broken(vec![Violation::new(message, attempt.frames())])
        }
        AttemptOutcome::Result { .. } => Judgment::Pass,
        // Every server of the TypeScript SDK does so, and clients that respect capabilities are not affected.
        AttemptOutcome::Error { .. } if works => Judgment::NotApplicable("the server refuses a call with `task`".into()),
        answer => Judgment::Untestable(format!("a call with `task` got {}", answer.describe())),
    }
}

fn returns_task(conversation: &ConversationView<'_>) -> Judgment {
    each(conversation, "task-create", |attempt| match attempt.answer {
        // The tool may be busy, or refuse the arguments.
        AttemptOutcome::Error { .. } => None,
        AttemptOutcome::Result { value, .. } if value.get("task").is_some_and(Value::is_object) => None,
        answer => Some(format!("`{}` called as a task got {}, not a task", attempt.subject(), answer.describe())),
    })
}

fn starts_as_working(conversation: &ConversationView<'_>) -> Judgment {
    let created = created_tasks(conversation);
    let wrong = created.iter().find(|(task, _)| status_of(task) != "working");
    let violation = wrong.map(|(task, frame)| Violation::new(format!("a new task is `{}`", excerpt(status_of(task))), [*frame]));
    if created.is_empty() { without_tasks(conversation) } else { Judgment::from_violations(violation.into_iter().collect()) }
}

fn ids_differ(conversation: &ConversationView<'_>) -> Judgment {
    let created = created_tasks(conversation);
    let same = created.iter().enumerate().find_map(|(later, (task, frame))| {
        let (_, first) = created[..later].iter().find(|(known, _)| id_of(known) == id_of(task))?;
        let message = format!("two tasks have the id `{}`", excerpt(id_of(task)?));
        Some(Violation::new(message, [*first, *frame]))
    });
    match created.len() {
        0 => without_tasks(conversation),
        1 => Judgment::Untestable("only one task was created".into()),
        _ => Judgment::from_violations(same.into_iter().collect()),
    }
}

fn end_is_final(conversation: &ConversationView<'_>) -> Judgment {
    let (mut ended, mut violations) = (0, Vec::new());
    for states in reported_states(conversation).values() {
        let Some(end) = states.iter().position(|state| has_ended(state.status)) else { continue };
        ended += usize::from(states.len() > end + 1);
        if let Some(other) = states[end..].iter().find(|state| state.status != states[end].status) {
            let message = format!("a task that was `{}` became `{}`", states[end].status, excerpt(other.status));
            violations.push(Violation::new(message, [states[end].frame, other.frame]));
        }
    }
    violations.truncate(1);
    match created_tasks(conversation).is_empty() {
        true => without_tasks(conversation),
        false => Judgment::of(violations, ended, "no task was requested after its end"),
    }
}

fn result_waits(conversation: &ConversationView<'_>) -> Judgment {
    each(conversation, "task-result", |attempt| {
        let (status, _) = next_status(conversation, attempt)?;
        (!has_ended(status) && !status.is_empty())
            .then(|| format!("`tasks/result` got {} while the task was `{}`", attempt.answer.describe(), excerpt(status)))
    })
}

fn result_is_stable(conversation: &ConversationView<'_>) -> Judgment {
    let completed = |attempt: &Attempt<'_, '_>| next_status(conversation, attempt).is_some_and(|(status, _)| status == "completed");
    let Some(first) = conversation.probe("task-result").filter(completed) else {
        let made = !created_tasks(conversation).is_empty();
        return if made { Judgment::Untestable("no task was completed in time".into()) } else { without_tasks(conversation) };
    };
    let broken = |message: String, attempt: &Attempt<'_, '_>| {
        let frames = first.frames().into_iter().chain(attempt.frames()).collect::<BTreeSet<_>>();
        Judgment::Broken(vec![Violation::new(message, frames)])
    };
    let Some(result) = result_of(&first) else {
        return broken(format!("`tasks/result` of a completed task got {}", first.answer.describe()), &first);
    };
    if result.get("content").is_none() {
        return broken("`tasks/result` of a completed task returned a value that is not a tool result".into(), &first);
    }
    let Some(again) = conversation.probe("task-result-again") else { return Judgment::Pass };
    match again.answer {
        AttemptOutcome::Result { value, .. } if value == result => Judgment::Pass,
        AttemptOutcome::Result { .. } => broken("`tasks/result` returned a different result for the second request".into(), &again),
        AttemptOutcome::Error { .. } => broken(format!("`tasks/result` got {} for the second request", again.answer.describe()), &again),
        _ => Judgment::Untestable("the second `tasks/result` got no response".into()),
    }
}

fn result_names_its_task(conversation: &ConversationView<'_>) -> Judgment {
    each(conversation, "task-result", |attempt| {
        // A missing one is reported by the rule about schemas.
        let named = result_of(attempt)?.get("_meta")?.get(RELATED)?.get("taskId")?;
        (named.as_str() != target(attempt))
            .then(|| format!("the result of a task names another task in `_meta`: {}", excerpt(named.to_string())))
    })
}

fn names_no_related_task(conversation: &ConversationView<'_>) -> Judgment {
    const METHODS: [&str; 3] = [methods::TASKS_GET, methods::TASKS_LIST, methods::TASKS_CANCEL];
    let attempt = conversation.requests().filter_map(|(request, answer)| Some((request.method()?, answer?)));
    let answers = attempt.filter(|(method, _)| METHODS.contains(method)).map(|(method, answer)| (method, answer, "/result/_meta"));
    let pushed = conversation.from_server().filter(|wire_message| wire_message.method() == Some(methods::notifications::TASKS_STATUS));
    let all: Vec<_> =
        answers.chain(pushed.map(|wire_message| (methods::notifications::TASKS_STATUS, wire_message, "/params/_meta"))).collect();
    let named =
        all.iter().find(|(_, wire_message, place)| wire_message.value.pointer(place).is_some_and(|meta| meta.get(RELATED).is_some()));
    let violation =
        named.map(|(method, wire_message, _)| Violation::new(format!("`{method}` has `{RELATED}` in `_meta`"), [wire_message.frame.id]));
    if all.is_empty() { without_tasks(conversation) } else { Judgment::from_violations(violation.into_iter().collect()) }
}

fn id_in_params_takes_precedence(conversation: &ConversationView<'_>) -> Judgment {
    let Some(attempt) = conversation.probes("task-status").find(|attempt| attempt.subject() == MISLED) else {
        return without_tasks(conversation);
    };
    match (result_of(&attempt).map(id_of), target(&attempt)) {
        (Some(given), wanted) if given == wanted => Judgment::Pass,
        (Some(_), _) => {
            let message = "`tasks/get` with another task in `_meta` returned that other task";
            Judgment::Broken(vec![Violation::new(message, attempt.frames())])
        }
        (None, _) => Judgment::Untestable(format!("`tasks/get` with another task in `_meta` got {}", attempt.answer.describe())),
    }
}

fn list_has_each(conversation: &ConversationView<'_>) -> Judgment {
    if let Some(judgment) = crate::rule_definition::unless_declared(conversation, methods::TASKS_LIST) {
        return judgment;
    }
    let Some(attempt) = conversation.probe("task-list") else { return without_tasks(conversation) };
    let is_found = |found: &Attempt<'_, '_>| target(found) == Some(attempt.subject()) && result_of(found).is_some();
    let is_there = conversation.probes("task-status").any(|found| is_found(&found) && found.probed.end <= attempt.probed.first);
    let pages: Vec<&WireMessage<'_>> = conversation
        .requests()
        .filter(|(request, _)| request.method() == Some(methods::TASKS_LIST))
        .filter(|(request, _)| attempt.probed.contains(request.frame.id))
        .filter_map(|(_, answer)| answer)
        .collect();
    let is_whole = pages.last().is_some_and(|page| page.value.get("result").is_some_and(|result| result.get("nextCursor").is_none()));
    let listed = pages.iter().filter_map(|page| page.value.pointer("/result/tasks")?.as_array()).flatten();
    match listed.filter_map(id_of).any(|id| id == attempt.subject()) {
        true => Judgment::Pass,
        false if is_there && is_whole => {
            let frames = pages.iter().map(|page| page.frame.id);
            Judgment::Broken(vec![Violation::new("a task that `tasks/get` returns is not in `tasks/list`", frames)])
        }
        false => Judgment::Untestable("`tasks/list` was not read to its last page".into()),
    }
}

fn cancel_cancels(conversation: &ConversationView<'_>) -> Judgment {
    if let Some(judgment) = crate::rule_definition::unless_declared(conversation, methods::TASKS_CANCEL) {
        return judgment;
    }
    each(conversation, "task-cancel", |attempt| {
        let state = result_of(attempt)?;
        let status = status_of(state);
        // The task may have ended in the meantime, which gets an error.
        (status != "cancelled").then(|| format!("`tasks/cancel` returned a task with the status `{}`", excerpt(status)))
    })
}

fn ended_cannot_be_canceled(conversation: &ConversationView<'_>) -> Judgment {
    if let Some(judgment) = crate::rule_definition::unless_declared(conversation, methods::TASKS_CANCEL) {
        return judgment;
    }
    let states = reported_states(conversation);
    each(conversation, "task-cancel-ended", |attempt| {
        let earlier = states.get(target(attempt)?)?.iter().rfind(|state| state.frame < attempt.probed.first)?;
        // A task that was removed since is unknown, which gets the same error.
        (has_ended(earlier.status) && attempt.answer.code() != Some(INVALID_PARAMS))
            .then(|| format!("canceling a task that is `{}` got {}, not error {INVALID_PARAMS}", earlier.status, attempt.answer.describe()))
    })
}

fn unknown_is_refused(conversation: &ConversationView<'_>) -> Judgment {
    each(conversation, "task-unknown", |attempt| {
        let what = if attempt.subject() == methods::TASKS_LIST { "an unknown cursor" } else { "an unknown task" };
        (attempt.answer.code() != Some(INVALID_PARAMS))
            .then(|| format!("`{}` with {what} got {}, not error {INVALID_PARAMS}", attempt.subject(), attempt.answer.describe()))
    })
}

fn forbidden_is_refused(conversation: &ConversationView<'_>) -> Judgment {
    each(conversation, "task-forbidden", |attempt| {
        (attempt.answer.code() != Some(METHOD_NOT_FOUND)).then(|| {
            let got = attempt.answer.describe();
            format!("`{}`, a tool without task support, called as a task got {got}, not error {METHOD_NOT_FOUND}", attempt.subject())
        })
    })
}

fn needed_is_wanted(conversation: &ConversationView<'_>) -> Judgment {
    if conversation.probe("task-needed").is_none() && conversation.probe("task-create").is_some() {
        return Judgment::NotApplicable("no tool requires a task".into());
    }
    let is_refused = |attempt: &Attempt<'_, '_>| matches!(attempt.answer, AttemptOutcome::Result { .. }) && attempt.answer.is_refusal();
    let judgment = each(conversation, "task-needed", |attempt| {
        // The section on errors names a different code for requests that require a task.
        (!matches!(attempt.answer.code(), Some(METHOD_NOT_FOUND | INVALID_REQUEST))).then(|| {
            let got = attempt.answer.describe();
            format!("`{}`, which requires a task, called without `task` got {got}, not error {METHOD_NOT_FOUND}", attempt.subject())
        })
    });
    match judgment {
        Judgment::Broken(mut violations) if conversation.probe("task-needed").as_ref().is_some_and(is_refused) => {
            violations.iter_mut().for_each(|violation| violation.tolerance = REFUSED_IN_RESULT);
            Judgment::Broken(violations)
        }
        other => other,
    }
}

fn progress_ends_with_task(conversation: &ConversationView<'_>) -> Judgment {
    let states = reported_states(conversation);
    let calls = conversation.requests().filter(|(request, _)| request.method() == Some(methods::TOOLS_CALL));
    let (mut ended, mut violations) = (0, Vec::new());
    for (call, answer) in calls {
        let id = answer.and_then(|answer| answer.value.pointer("/result/task")).and_then(id_of);
        let (Some(token), Some(states)) = (call.param("/_meta/progressToken"), id.and_then(|id| states.get(id))) else { continue };
        let Some(end) = states.iter().find(|state| has_ended(state.status)) else { continue };
        ended += 1;
        let is_late = |server_message: &super::answers::ServerMessage<'_>| {
            let is_of_it = server_message.method() == Some(methods::notifications::PROGRESS)
                && server_message.value.pointer("/params/progressToken") == Some(token);
            is_of_it && server_message.frame > end.frame && server_message.exchange == end.exchange
        };
        violations.extend(messages(conversation).find(is_late).map(|server_message| {
            Violation::new(format!("progress of a task was sent after it was `{}`", end.status), [end.frame, server_message.frame])
        }));
    }
    violations.truncate(1);
    match created_tasks(conversation).is_empty() {
        true => without_tasks(conversation),
        false => Judgment::of(violations, ended, "no task ended"),
    }
}

fn id_is_unguessable(conversation: &ConversationView<'_>) -> Judgment {
    let created = created_tasks(conversation);
    let ids: Vec<&str> = created.iter().filter_map(|(task, _)| id_of(task)).collect();
    // Another rule reports equal ids.
    let different: BTreeSet<&str> = ids.iter().copied().collect();
    match (ids.len(), different.len()) {
        (0, _) if conversation.is_modern() => return Judgment::NotApplicable("no call created a task".into()),
        (0, _) => return without_tasks(conversation),
        (_, 0 | 1) => return Judgment::Untestable("only one task was created, or all have the same id".into()),
        _ => {}
    }
    let violation = weakness(&ids).map(|weakness| {
        let shown: Vec<String> = different.iter().take(2).map(|id| format!("`{}`", excerpt(*id))).collect();
        Violation::new(format!("task ids {weakness}: {}", shown.join(" and ")), created.iter().take(2).map(|(_, frame)| *frame))
    });
    Judgment::from_violations(violation.into_iter().collect())
}
