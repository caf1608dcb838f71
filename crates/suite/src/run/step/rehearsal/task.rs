//! A call that becomes a task, as a client sees it: the task, its end, and the result. Knows the forms of both eras.
//! Source: 2025-11-25, basic/utilities/tasks; SEP-2663.

use mcproof_protocol::{Era, methods};
use serde_json::{Map, Value, json};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A request with its parameters, and the result or the `error` that it gets.
pub(super) type MadeRequest = (&'static str, Map<String, Value>, Result<Value, Value>);

/// The capability of a server with tasks.
pub(super) fn capability(era: Era) -> Value {
    match era {
        Era::Legacy => json!({ "tasks": { "requests": { "tools": { "call": {} } } } }),
        Era::Modern => json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } }),
    }
}

/// The requests that a client sends because of the nth task, with their responses.
pub(super) fn exchanges(era: Era, mut params: Map<String, Value>, result: Value, nth: u32) -> Vec<MadeRequest> {
    let id = id_of(nth);
    let asked = Map::from_iter([("taskId".to_owned(), json!(id))]);
    let has_failed = result.get("isError") == Some(&json!(true));
    match era {
        Era::Legacy => {
            let state = |status: &str| {
                let time = "2026-01-02T03:04:05Z";
                json!({ "taskId": id, "status": status, "createdAt": time, "lastUpdatedAt": time, "ttl": null, "pollInterval": 20 })
            };
            params.insert("task".to_owned(), json!({}));
            let mut result = result;
            if !result["_meta"].is_object() {
                result["_meta"] = json!({});
            }
            result["_meta"]["io.modelcontextprotocol/related-task"] = json!({ "taskId": id });
            vec![
                (methods::TOOLS_CALL, params, Ok(json!({ "task": state("working") }))),
                (methods::TASKS_GET, asked.clone(), Ok(state(if has_failed { "failed" } else { "completed" }))),
                (methods::TASKS_RESULT, asked, Ok(result)),
            ]
        }
        Era::Modern => {
            let state = |kind: &str, status: &str| {
                let time = "2026-01-02T03:04:05Z";
                json!({
                    "resultType": kind, "taskId": id, "status": status, "createdAt": time, "lastUpdatedAt": time, "ttlMs": null,
                    "pollIntervalMs": 20,
                })
            };
            let mut ended = state("complete", "completed");
            ended["result"] = result;
            vec![(methods::TOOLS_CALL, params, Ok(state("task", "working"))), (methods::TASKS_GET, asked, Ok(ended))]
        }
    }
}

/// The same in each run of the mock, and not to be guessed from another one.
fn id_of(nth: u32) -> String {
    let part = |salt: &str| {
        let mut hasher = DefaultHasher::new();
        (salt, nth).hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", part("task"), part("mock"))
}
