//! Messages that fit, and what is said of those that do not. That the verdicts are those of the official schemas is shown by
//! `tests/official_messages.rs`; here are the sentences, and what no schema covers.

use super::{About, base64_flaws, flaws, sampling_result_flaws};
use serde_json::{Value, json};

const OLDEST: &str = "2024-11-05";
const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// The flaws as `pointer message`.
fn check(message: &Value, about: About<'_>, revision: &str, expected: &[&str]) {
    let found: Vec<String> = flaws(message, about, revision).iter().map(|flaw| format!("{} {}", flaw.pointer, flaw.message)).collect();
    assert_eq!(found, expected, "{revision} {message:#}");
}

fn check_result(method: &str, result: Value, revision: &str, expected: &[&str]) {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "result": result });
    check(&message, About::Response { method, params: Some(&json!({})) }, revision, expected);
}

fn check_initiative(method: &str, params: Value, revision: &str, expected: &[&str]) {
    let mut message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    if !method.starts_with("notifications/") {
        message["id"] = json!(7);
    }
    check(&message, About::Itself, revision, expected);
}

#[test]
fn the_envelope_is_judged() {
    let check = |message: Value, expected: &[&str]| {
        check(&message, About::Response { method: "ping", params: None }, LEGACY, expected);
    };
    check(json!({ "jsonrpc": "2.0", "id": 1, "result": {} }), &[]);
    check(json!([]), &[" the message is an array; it has to be an object"]);
    check(json!({ "id": 1, "result": {} }), &["/jsonrpc `jsonrpc` is missing; it has to be \"2.0\""]);
    check(json!({ "jsonrpc": 2.0, "id": 1, "result": {} }), &["/jsonrpc `jsonrpc` is 2.0; it has to be \"2.0\""]);
    check(json!({ "jsonrpc": "2.0", "id": null, "result": {} }), &["/id `id` is null; it has to be a string or an integer"]);
    check(json!({ "jsonrpc": "2.0", "id": 1.5, "result": {} }), &["/id `id` is 1.5; it has to be a string or an integer"]);
    check(json!({ "jsonrpc": "2.0", "result": {} }), &["/id `id` is missing; it has to be the id of the request"]);
    check(json!({ "jsonrpc": "2.0", "id": 1 }), &[" the message has neither `method` nor `result` nor `error`"]);
    check(json!({ "jsonrpc": "2.0", "id": 1, "result": [] }), &["/result `result` is an array; it has to be an object"]);
    check(
        json!({ "jsonrpc": "2.0", "id": 1, "result": {}, "error": {} }),
        &["/error `error` stands beside a `result`; a response has one of them"],
    );
    check(json!({ "jsonrpc": "2.0", "id": 1, "method": 5 }), &["/method `method` is 5; it has to be a string"]);
    check(json!({ "jsonrpc": "2.0", "method": "ping" }), &["/id `id` is missing; it has to be there, because `ping` is a request"]);
    check(
        json!({ "jsonrpc": "2.0", "id": 1, "method": "notifications/message", "params": { "level": "info", "data": null } }),
        &["/id `id` is 1; a notification must not have it"],
    );
}

#[test]
fn what_a_client_returns_of_a_model_is_judged() {
    let check = |result: Value, expected: &[&str]| {
        let found: Vec<String> = sampling_result_flaws(&result).into_iter().map(|flaw| flaw.pointer).collect();
        assert_eq!(found, expected, "{result}");
    };
    let block = json!({ "type": "text", "text": "x" });
    check(json!({ "role": "assistant", "content": block, "model": "m" }), &[]);
    check(json!({ "role": "assistant", "content": [block], "model": "m", "stopReason": "endTurn" }), &[]);
    check(json!({ "foo": 1 }), &["/result/role", "/result/content", "/result/model"]);
    check(json!({ "role": "model", "content": "x", "model": 3 }), &["/result/role", "/result/content", "/result/model"]);
    check(json!("x"), &["/result"]);
}

#[test]
fn errors_are_judged_by_their_code() {
    let check = |error: Value, revision: &str, expected: &[&str]| {
        check(&json!({ "jsonrpc": "2.0", "id": 1, "error": error }), About::Itself, revision, expected);
    };
    check(json!({ "code": -32601, "message": "no" }), OLDEST, &[]);
    check(json!("no"), OLDEST, &["/error `error` is \"no\"; it has to be an object"]);
    check(
        json!({ "code": "-32601" }),
        OLDEST,
        &[
            "/error/code `error.code` is \"-32601\"; it has to be an integer",
            "/error/message `error.message` is missing; it has to be a string",
        ],
    );
    check(json!({ "code": -32042, "message": "no" }), "2025-06-18", &[]);
    check(json!({ "code": -32042, "message": "no" }), LEGACY, &["/error/data `error.data` is missing; it has to be an object"]);
    check(json!({ "code": -32042, "message": "no" }), MODERN, &["/error/code `error.code` is -32042, which only 2025-11-25 has"]);
    check(json!({ "code": -32002, "message": "no" }), LEGACY, &[]);
    check(
        json!({ "code": -32002, "message": "no" }),
        MODERN,
        &["/error/code `error.code` is -32002, which this revision replaced by -32602"],
    );
    check(
        json!({ "code": -32050, "message": "no" }),
        MODERN,
        &["/error/code `error.code` is -32050, which is reserved and means nothing yet"],
    );
    check(json!({ "code": -32019, "message": "no" }), MODERN, &[]);
    check(json!({ "code": -32020, "message": "no" }), MODERN, &[]);
    check(
        json!({ "code": -32022, "message": "no", "data": { "supported": MODERN } }),
        MODERN,
        &[
            "/error/data/requested `error.data.requested` is missing; it has to be a string",
            "/error/data/supported `error.data.supported` is \"2026-07-28\"; it has to be an array",
        ],
    );
}

#[test]
fn errors_may_have_a_null_id_and_since_2025_11_25_none() {
    let error = json!({ "code": -32700, "message": "no" });
    for revision in [OLDEST, LEGACY, MODERN] {
        check(&json!({ "jsonrpc": "2.0", "id": null, "error": error }), About::Itself, revision, &[]);
    }
    let bare = json!({ "jsonrpc": "2.0", "error": error });
    check(&bare, About::Itself, LEGACY, &[]);
    check(&bare, About::Itself, "2025-06-18", &["/id `id` is missing; it has to be the id of the request"]);
}

#[test]
fn sentences_name_the_thing_and_not_its_number() {
    let list = |tool: Value| json!({ "tools": [{ "name": "ok", "inputSchema": { "type": "object" } }, tool] });
    let check = |tool: Value, expected: &[&str]| check_result("tools/list", list(tool), LEGACY, expected);
    check(
        json!({ "name": "weather", "inputSchema": {} }),
        &["/result/tools/1/inputSchema/type `inputSchema.type` of tool `weather` is missing; it has to be \"object\""],
    );
    check(
        json!({ "name": "weather", "inputSchema": { "type": "object", "properties": { "city": true } } }),
        &["/result/tools/1/inputSchema/properties/city `inputSchema.properties.city` of tool `weather` is true; it has to be an object"],
    );
    check(
        json!({ "name": "weather", "inputSchema": { "type": "object" }, "icons": [{ "src": "icon.png" }], "title": null }),
        &[
            "/result/tools/1/title `title` of tool `weather` is null; it has to be a string",
            "/result/tools/1/icons/0/src `icons[0].src` of tool `weather` is \"icon.png\"; it has to be an absolute URI",
        ],
    );
    check(json!({ "inputSchema": { "type": "object" } }), &["/result/tools/1/name `tools[1].name` is missing; it has to be a string"]);
    check(json!("weather"), &["/result/tools/1 `tools[1]` is \"weather\"; it has to be an object"]);
}

#[test]
fn values_are_shown_in_short() {
    let long = "n".repeat(5000);
    let result = json!({ "tools": [{ "name": long, "inputSchema": long, "description": 1, "execution": { "taskSupport": long } }] });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "result": result });
    let found = flaws(&message, About::Response { method: "tools/list", params: None }, LEGACY);
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|flaw| flaw.message.contains("nnn…") && flaw.message.len() < 250), "{found:?}");
}

#[test]
fn at_most_a_hundred_flaws_are_reported() {
    for (method, result) in [
        ("tools/list", json!({ "tools": vec![json!(5); 5000] })),
        ("resources/read", json!({ "_meta": 5, "contents": vec![json!({ "text": 5, "uri": 5, "mimeType": 5 }); 5000] })),
    ] {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "result": result });
        assert_eq!(flaws(&message, About::Response { method, params: None }, LEGACY).len(), 100, "{method}");
    }
}

#[test]
fn content_knows_what_its_revision_knows() {
    let check = |block: Value, revision: &str, expected: &[&str]| {
        check_result("tools/call", json!({ "resultType": "complete", "content": [block] }), revision, expected);
    };
    let audio = json!({ "type": "audio", "data": "aGk=", "mimeType": "audio/wav" });
    check(audio.clone(), "2025-03-26", &[]);
    check(
        audio,
        OLDEST,
        &[
            "/result/content/0/type `content[0].type` is \"audio\", which 2024-11-05 does not have; it has to be \"text\", \"image\" or \"resource\"",
        ],
    );
    check(
        json!({ "text": "hi" }),
        OLDEST,
        &["/result/content/0/type `content[0].type` is missing; it has to be \"text\", \"image\" or \"resource\""],
    );
    check(
        json!({ "type": "resource", "resource": { "uri": "a:b", "blob": 5 } }),
        MODERN,
        &["/result/content/0/resource/blob `content[0].resource.blob` is 5; it has to be a string of base64"],
    );
    check(
        json!({ "type": "resource", "resource": { "uri": "a:b" } }),
        MODERN,
        &["/result/content/0/resource `content[0].resource` has none of `text`, `blob`"],
    );
    check(
        json!({ "type": "text", "text": "", "annotations": { "audience": ["robot"], "priority": 2 } }),
        MODERN,
        &[
            "/result/content/0/annotations/audience/0 `content[0].annotations.audience[0]` is \"robot\"; it has to be \"user\" or \"assistant\"",
            "/result/content/0/annotations/priority `content[0].annotations.priority` is 2; it has to be a number from 0 to 1",
        ],
    );
    check(
        json!({ "type": "resource_link", "name": "map", "uri": "no scheme" }),
        LEGACY,
        &["/result/content/0/uri `uri` of resource `map` is \"no scheme\"; it has to be an absolute URI"],
    );
}

#[test]
fn structured_content_is_an_object_until_2026_07_28() {
    let result = json!({ "resultType": "complete", "content": [], "structuredContent": [1] });
    check_result("tools/call", result.clone(), "2025-03-26", &[]);
    for revision in ["2025-06-18", LEGACY] {
        let flaw = "/result/structuredContent `structuredContent` is an array; it has to be an object";
        check_result("tools/call", result.clone(), revision, &[flaw]);
    }
    check_result("tools/call", result, MODERN, &[]);
}

#[test]
fn meta_keys_have_a_syntax_since_2025_06_18() {
    let check = |key: &str, fits: bool| {
        let result = json!({ "_meta": { key: 1 } });
        check_result("ping", result.clone(), "2025-03-26", &[]);
        let message = json!({ "jsonrpc": "2.0", "id": 1, "result": result });
        assert_eq!(flaws(&message, About::Itself, "2025-06-18").is_empty(), fits, "{key:?}");
    };
    for key in ["a", "", "7", "progressToken", "traceparent", "a.b_c-d", "com.example/", "com.example/a", "io.model-context/x.y", "x1/y"] {
        check(key, true);
    }
    for key in ["_fastmcp", "-a", "a-", "a b", "ä", "/a", "a//b", "a/b/c", "1com/a", "com./a", ".com/a", "com-/a", "com_x/a", "com/_a"] {
        check(key, false);
    }
    check_result(
        "ping",
        json!({ "_meta": { "_own": 1 } }),
        LEGACY,
        &[
            "/result/_meta/_own `_meta._own` is not a valid key for `_meta`; it has to begin and end with a letter or a digit, after a prefix such as `com.example/` if any",
        ],
    );
}

#[test]
fn results_say_what_they_are_since_2026_07_28() {
    let check = |method: &str, result: Value, expected: &[&str]| check_result(method, result, MODERN, expected);
    check_result("tools/call", json!({ "content": [] }), LEGACY, &[]);
    check(
        "tools/call",
        json!({ "content": [] }),
        &["/result/resultType `resultType` is missing; it has to be \"complete\", or what else the result is"],
    );
    check("x/unknown", json!({ "resultType": "complete" }), &[]);
    check(
        "tools/call",
        json!({ "resultType": "done" }),
        &["/result/resultType `resultType` is \"done\", which is defined neither by MCP nor by an extension that the request declares"],
    );
    check("tools/call", json!({ "resultType": "input_required", "requestState": "s" }), &[]);
    check("tools/call", json!({ "resultType": "input_required" }), &["/result `result` has neither `inputRequests` nor `requestState`"]);
    check(
        "tools/list",
        json!({ "resultType": "input_required", "requestState": "s" }),
        &[
            "/result/resultType `resultType` is \"input_required\", which is only allowed in a response to tools/call, prompts/get, resources/read",
        ],
    );
    check(
        "prompts/get",
        json!({ "resultType": "input_required", "inputRequests": { "a": { "method": "ping" }, "b": { "method": "roots/list" } } }),
        &[
            "/result/inputRequests/a/method `inputRequests.a.method` is \"ping\"; it has to be \"elicitation/create\", \"sampling/createMessage\" or \"roots/list\"",
        ],
    );
}

#[test]
fn lists_say_how_long_they_may_be_kept_since_2026_07_28() {
    check_result("tools/list", json!({ "tools": [] }), LEGACY, &[]);
    check_result(
        "tools/list",
        json!({ "resultType": "complete", "tools": [], "ttlMs": -1, "cacheScope": "shared" }),
        MODERN,
        &[
            "/result/ttlMs `ttlMs` is -1; it has to be an integer of 0 or more",
            "/result/cacheScope `cacheScope` is \"shared\"; it has to be \"public\" or \"private\"",
        ],
    );
    check_result("tools/call", json!({ "resultType": "complete", "content": [] }), MODERN, &[]);
}

#[test]
fn the_handshake_is_judged_by_its_own_era() {
    let info = json!({ "name": "n", "version": "1" });
    let legacy = json!({ "protocolVersion": LEGACY, "capabilities": {}, "serverInfo": info });
    check_result("initialize", legacy, MODERN, &[]);
    let modern = json!({ "supportedVersions": [MODERN], "capabilities": {}, "resultType": "complete" });
    for revision in [LEGACY, MODERN] {
        check_result(
            "server/discover",
            modern.clone(),
            revision,
            &[
                "/result/ttlMs `ttlMs` is missing; it has to be an integer of 0 or more",
                "/result/cacheScope `cacheScope` is missing; it has to be \"public\" or \"private\"",
            ],
        );
    }
}

#[test]
fn an_unknown_revision_counts_as_the_newest_before_it() {
    for (revision, fits) in [("2023-01-01", true), ("2025-05-01", true), ("2025-06-19", false), ("DRAFT-2027", true)] {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "result": { "resultType": "complete", "content": [], "structuredContent": [] } });
        let found = flaws(&message, About::Response { method: "tools/call", params: None }, revision);
        assert_eq!(found.is_empty(), fits, "{revision}: {found:?}");
    }
}

#[test]
fn calls_of_2025_11_25_that_request_a_task_return_one() {
    let times = json!({ "createdAt": "2025-11-25T10:30:00Z", "lastUpdatedAt": "yesterday" });
    let task = json!({ "taskId": "t", "status": "running", "createdAt": times["createdAt"], "lastUpdatedAt": times["lastUpdatedAt"] });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "result": { "task": task } });
    let params = json!({ "name": "n", "task": {} });
    check(
        &message,
        About::Response { method: "tools/call", params: Some(&params) },
        LEGACY,
        &[
            "/result/task/status `task.status` is \"running\"; it has to be \"working\", \"input_required\", \"completed\", \"failed\" or \"cancelled\"",
            "/result/task/lastUpdatedAt `task.lastUpdatedAt` is \"yesterday\"; it has to be a date with a time (ISO 8601)",
            "/result/task/ttl `task.ttl` is missing; it has to be an integer or null",
        ],
    );
    let unasked = ["/result/content `content` is missing; it has to be an array"];
    check(&message, About::Response { method: "tools/call", params: Some(&json!({ "name": "n" })) }, LEGACY, &unasked);
    check_result("tasks/result", json!({ "content": [] }), LEGACY, &["/result/_meta `_meta` is missing; it has to be an object"]);
}

#[test]
fn tasks_of_the_extension_need_a_client_that_declares_it() {
    let task = json!({ "taskId": "t", "status": "working", "createdAt": "2026-07-28T10:30:00Z",
        "lastUpdatedAt": "2026-07-28T10:30:00+02:00", "ttlMs": null, "resultType": "task" });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "result": task });
    let params =
        |extension: &str| json!({ "_meta": { "io.modelcontextprotocol/clientCapabilities": { "extensions": { extension: {} } } } });
    let undeclared =
        ["/result/resultType `resultType` is \"task\", which needs a request that declares the extension `io.modelcontextprotocol/tasks`"];
    for (method, params, expected) in [
        ("tools/call", Some(params("io.modelcontextprotocol/tasks")), &[][..]),
        ("tools/call", None, &[]),
        ("tools/call", Some(params("com.example/other")), &undeclared),
        ("tools/call", Some(json!({})), &undeclared),
        (
            "tasks/get",
            Some(params("io.modelcontextprotocol/tasks")),
            &["/result/resultType `resultType` is \"task\", which is only allowed in a response to tools/call"],
        ),
    ] {
        check(&message, About::Response { method, params: params.as_ref() }, MODERN, expected);
    }
    let other = json!({ "jsonrpc": "2.0", "id": 1, "result": { "resultType": "stream" } });
    check(&other, About::Response { method: "tools/call", params: Some(&params("com.example/other")) }, MODERN, &[]);
}

#[test]
fn tasks_of_the_extension_carry_what_belongs_to_their_status() {
    let with = |status: &str, more: Value| {
        let mut task = json!({ "taskId": "t", "status": status, "createdAt": "2026-07-28T10:30:00Z",
            "lastUpdatedAt": "2026-07-28T10:30:00", "ttlMs": 5, "pollIntervalMs": 5 });
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        task
    };
    let form = json!({ "method": "elicitation/create", "params": { "message": "?", "requestedSchema": { "type": "object" } } });
    for (status, more, expected) in [
        ("working", json!({}), None),
        ("cancelled", json!({}), None),
        ("completed", json!({ "result": { "content": [] } }), None),
        ("failed", json!({ "error": { "code": -32603, "message": "no" } }), None),
        ("input_required", json!({}), Some(("inputRequests", "is missing; it has to be an object"))),
        ("completed", json!({}), Some(("result", "is missing; it has to be an object"))),
        ("completed", json!({ "result": {} }), Some(("result.content", "is missing; it has to be an array"))),
        ("failed", json!({ "error": { "code": 1 } }), Some(("error.message", "is missing; it has to be a string"))),
        (
            "input_required",
            json!({ "inputRequests": { "k": form } }),
            Some(("inputRequests.k.params.requestedSchema.properties", "is missing; it has to be an object")),
        ),
    ] {
        let expect = |root: &str| {
            expected.map(|(path, text)| format!("{root}/{} `{path}` {text}", path.replace('.', "/"))).into_iter().collect::<Vec<_>>()
        };
        let expected: Vec<String> = expect("/result");
        let task = with(status, more.clone());
        let mut result = task.clone();
        result["resultType"] = json!("complete");
        check_result("tasks/get", result, MODERN, &expected.iter().map(String::as_str).collect::<Vec<_>>());
        let expected: Vec<String> = expect("/params");
        check_initiative("notifications/tasks", task, MODERN, &expected.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn notifications_and_requests_are_judged() {
    check_initiative(
        "notifications/progress",
        json!({ "progress": "half" }),
        OLDEST,
        &[
            "/params/progressToken `progressToken` is missing; it has to be a string or an integer",
            "/params/progress `progress` is \"half\"; it has to be a number",
        ],
    );
    check_initiative("notifications/x/own", json!({ "any": 1 }), OLDEST, &[]);
    check_initiative("notifications/x/own", json!([1]), OLDEST, &["/params `params` is an array; it has to be an object"]);
    check(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }), About::Itself, OLDEST, &[]);
    check(
        &json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated" }),
        About::Itself,
        OLDEST,
        &["/params `params` is missing; it has to be an object"],
    );
    check_initiative(
        "elicitation/create",
        json!({ "mode": "link", "message": "?" }),
        LEGACY,
        &["/params/mode `mode` is \"link\"; it has to be \"form\" or \"url\""],
    );
    check_initiative(
        "elicitation/create",
        json!({ "message": "?", "requestedSchema": { "type": "object", "properties": { "a": { "type": "object" } } } }),
        "2025-06-18",
        &[
            "/params/requestedSchema/properties/a/type `requestedSchema.properties.a.type` is \"object\"; it has to be \"string\", \"number\", \"integer\" or \"boolean\"",
        ],
    );
    check_initiative(
        "sampling/createMessage",
        json!({ "messages": [{ "role": "system", "content": [] }], "maxTokens": 0.5 }),
        OLDEST,
        &[
            "/params/messages/0/role `messages[0].role` is \"system\"; it has to be \"user\" or \"assistant\"",
            "/params/messages/0/content `messages[0].content` is an array; it has to be an object",
            "/params/maxTokens `maxTokens` is 0.5; it has to be an integer",
        ],
    );
    // Elicitation is younger than this: whether it may be asked at all is a question of capabilities.
    check_initiative("elicitation/create", json!({}), OLDEST, &[]);
}

#[test]
fn base64_is_judged_separately() {
    let check = |data: &str, expected: &[&str]| {
        let content = json!([
            { "type": "text", "text": "%" },
            { "type": "image", "data": data, "mimeType": "image/png" },
            { "type": "resource", "resource": { "uri": "a:b", "blob": data } },
        ]);
        let result = json!({ "content": content, "structuredContent": { "data": "%", "blob": "%" } });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "result": result });
        let about = About::Response { method: "tools/call", params: None };
        assert_eq!(flaws(&message, about, LEGACY), []);
        let found: Vec<_> = base64_flaws(&message, about, LEGACY);
        let sentences: Vec<_> = found.iter().map(|flaw| flaw.message.as_str()).collect();
        let places: Vec<_> = found.iter().map(|flaw| flaw.pointer.as_str()).collect();
        assert_eq!(sentences, expected, "{data:?}");
        assert!(expected.is_empty() || places == ["/result/content/1/data", "/result/content/2/resource/blob"], "{places:?}");
    };
    let both = |why: &str| {
        [format!("`content[1].data` is not valid base64: {why}"), format!("`content[2].resource.blob` is not valid base64: {why}")]
    };
    for good in ["", "aGk=", "aGkh", "+/+/"] {
        check(good, &[]);
    }
    for (bad, why) in [
        ("%", "its byte 0 is outside the alphabet"),
        ("aGk=\n", "its byte 4 is outside the alphabet"),
        ("aG-_", "it uses the base64url alphabet; use `+` and `/`"),
        ("aGk", "it is truncated, or lacks padding"),
        ("a", "it is truncated, or lacks padding"),
        ("aGl=", "it ends with bits that do not form a byte"),
    ] {
        check(bad, &both(why).each_ref().map(String::as_str));
    }
    let broken = json!({ "jsonrpc": 1, "id": 1, "result": { "content": 5 } });
    assert_eq!(base64_flaws(&broken, About::Response { method: "tools/call", params: None }, LEGACY), []);
}
