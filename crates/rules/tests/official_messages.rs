//! Our verdict on a message is that of the official JSON Schema of its revision: on every official example, on messages made
//! from the schemas themselves, and on all that become of them when one thing in them is changed. Where we differ, we do so
//! on purpose, and `DIFFERENCES` says why. The schemas belong to the specification and are not part of this project: they
//! are read from `../shared/spec`, beside the checkout.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use jsonschema::Validator;
use mcproof_analysis::messages::{About, MessageFlaw, flaws};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const MODERN: &str = "2026-07-28";

/// Results by method. Those that a revision has no definition for are not asked for in it.
const RESULTS: [(&str, &str); 19] = [
    ("initialize", "InitializeResult"),
    ("server/discover", "DiscoverResult"),
    ("ping", "EmptyResult"),
    ("logging/setLevel", "EmptyResult"),
    ("resources/subscribe", "EmptyResult"),
    ("tools/list", "ListToolsResult"),
    ("tools/call", "CallToolResult"),
    ("prompts/list", "ListPromptsResult"),
    ("prompts/get", "GetPromptResult"),
    ("resources/list", "ListResourcesResult"),
    ("resources/templates/list", "ListResourceTemplatesResult"),
    ("resources/read", "ReadResourceResult"),
    ("completion/complete", "CompleteResult"),
    ("subscriptions/listen", "SubscriptionsListenResult"),
    ("tasks/get", "GetTaskResult"),
    ("tasks/cancel", "CancelTaskResult"),
    ("tasks/list", "ListTasksResult"),
    ("tasks/result", "GetTaskPayloadResult"),
    ("x/unknown", "EmptyResult"),
];

/// The one example that contradicts the prose: a complete result of `resources/read` has to say how long it may be kept
/// (server/utilities/caching). The schema allows it as a result that needs input, and asks for none.
const WRONG_EXAMPLES: [(&str, &str); 2] =
    [("read-resource-result-response.json", "/result/ttlMs"), ("read-resource-result-response.json", "/result/cacheScope")];

/// One place where our verdict is not that of the published JSON Schema.
struct Difference {
    why: &'static str,
    side: Side,
}

enum Side {
    /// We refuse what the schema allows: whether this flaw is of that kind.
    Stricter(fn(&Sample, &MessageFlaw) -> bool),
    /// We allow what the schema refuses: the change by which the schema would allow it, too.
    Laxer(fn(&mut Value)),
}

const DIFFERENCES: [Difference; 14] = [
    Difference {
        why: "a `resultType` that the client does not know is invalid, and so is one that the method may not have \
              (2026-07-28, basic/index, result type; basic/patterns/mrtr, supported requests)",
        side: Side::Stricter(|_, flaw| flaw.pointer == "/result/resultType"),
    },
    Difference {
        why: "a result that needs input has at least one of `inputRequests` and `requestState` (2026-07-28, basic/patterns/mrtr)",
        side: Side::Stricter(|_, flaw| flaw.message.ends_with("has neither `inputRequests` nor `requestState`")),
    },
    Difference {
        why: "times of tasks are ISO 8601 (2025-11-25, basic/utilities/tasks)",
        side: Side::Stricter(|_, flaw| flaw.message.ends_with("a date with a time (ISO 8601)")),
    },
    Difference {
        why: "a completion has at most 100 values in every revision; the schema says so in JSON since 2026-07-28",
        side: Side::Stricter(|sample, flaw| sample.revision != MODERN && flaw.pointer == "/result/completion/values"),
    },
    Difference {
        why: "keys of `_meta` have a syntax since 2025-06-18 (basic/index, `_meta`)",
        side: Side::Stricter(|sample, flaw| sample.revision >= "2025-06-18" && flaw.message.contains("is not a valid key for `_meta`")),
    },
    Difference {
        why: "`_meta` of the params of any request or notification is an object, and its known keys have their types, also \
              where a definition does not repeat it (2025-11-25, elicitation and tasks)",
        side: Side::Stricter(|_, flaw| flaw.pointer == "/params/_meta"),
    },
    Difference {
        why: "a notification has no id (JSON-RPC 2.0, notification; basic/index of every revision)",
        side: Side::Stricter(|_, flaw| flaw.pointer == "/id" && flaw.message.ends_with("a notification must not have it")),
    },
    Difference {
        why: "an answer has a result or an error, not both (JSON-RPC 2.0, response object)",
        side: Side::Stricter(|_, flaw| flaw.message.contains("stands beside a `result`")),
    },
    Difference {
        why: "what `tasks/result` answers is the result of the call of a tool, the only request that a server may be given as \
              a task, and says of which task (2025-11-25, basic/utilities/tasks, related tasks)",
        side: Side::Stricter(|sample, flaw| sample.method == "tasks/result" && flaw.pointer.starts_with("/result/")),
    },
    Difference {
        why: "codes of errors that are replaced, or reserved and not defined, are not sent (2026-07-28, basic/index, error codes)",
        side: Side::Stricter(|sample, flaw| sample.revision == MODERN && flaw.pointer == "/error/code"),
    },
    Difference {
        why: "the extension for tasks adds `taskIds` to the filter of subscriptions",
        side: Side::Stricter(|sample, flaw| sample.revision == MODERN && flaw.pointer.starts_with("/params/notifications/taskIds")),
    },
    Difference {
        why: "the id of an error is null where the request had none that could be read (JSON-RPC 2.0, response object)",
        side: Side::Laxer(|message| {
            if message.get("error").is_some() && message["id"].is_null() {
                message["id"] = json!(1);
            }
        }),
    },
    Difference {
        why: "null and fractions are JSON; the schema of 2026-07-28 forgot them where a capability or metadata may be any JSON",
        side: Side::Laxer(|message| {
            for place in places(message) {
                let inside = ["/capabilities/", "/requiredCapabilities/", "/metadata/"].iter().any(|name| place.contains(name));
                let value = message.pointer_mut(&place).unwrap();
                if inside && (value.is_null() || value.is_f64()) {
                    *value = json!(1);
                }
            }
        }),
    },
    Difference {
        why: "whether a template of URIs parses is judged by a rule of its own",
        side: Side::Laxer(|message| {
            for place in places(message).iter().filter(|place| place.ends_with("/uriTemplate")) {
                let value = message.pointer_mut(place).unwrap();
                if value.is_string() {
                    *value = json!("file:///{path}");
                }
            }
        }),
    },
];

/// A message, and what is official about it.
#[derive(Clone)]
struct Sample {
    revision: &'static str,
    kind: Kind,
    /// That it answers; empty for what answers nothing.
    method: String,
    params: Value,
    /// The definition of what is inside.
    definition: String,
    message: Value,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Result,
    Error,
    Notification,
    Request,
}

#[test]
#[cfg_attr(not(official_schemas), ignore = "the official schemas are not beside the checkout (../shared/spec)")]
fn every_official_example_fits_and_so_does_what_becomes_of_it_or_not() {
    let folder = folder();
    let mut comparison = Comparison::default();
    let mut oracle = Oracle::read(&folder, MODERN);
    let (mut wrapped, mut of_clients) = (0, 0);
    for definition in std::fs::read_dir(folder.join("examples-2026-07-28")).unwrap() {
        let definition = definition.unwrap().path();
        for file in std::fs::read_dir(&definition).unwrap() {
            let file = file.unwrap();
            let example = serde_json::from_slice(&std::fs::read(file.path()).unwrap()).unwrap();
            let name = definition.file_name().unwrap().to_str().unwrap();
            let Some(sample) = wrap(name, &example) else {
                of_clients += 1;
                continue;
            };
            wrapped += 1;
            let flaws = flaws(&sample.message, sample.about(), MODERN);
            let places: Vec<_> = flaws.iter().map(|flaw| flaw.pointer.as_str()).collect();
            let expected = WRONG_EXAMPLES.iter().filter(|(name, _)| file.file_name() == **name).map(|(_, place)| *place);
            assert_eq!(places, expected.collect::<Vec<_>>(), "{name}: {flaws:?} in {:#}", sample.message);
            comparison.compare_mutations(&mut oracle, &sample);
        }
    }
    println!("{wrapped} examples of servers, {of_clients} of clients, {comparison}");
    assert!(wrapped > 80, "{wrapped} examples");
    comparison.assert_agreement();
}

#[test]
#[cfg_attr(not(official_schemas), ignore = "the official schemas are not beside the checkout (../shared/spec)")]
fn messages_made_from_the_schemas_are_judged_as_the_schemas_judge_them() {
    let folder = folder();
    let mut comparison = Comparison::default();
    for revision in REVISIONS {
        let mut oracle = Oracle::read(&folder, revision);
        let mut seen = BTreeSet::new();
        for choice in 0..10 {
            for sample in oracle.samples(choice) {
                if seen.insert(sample.message.to_string()) {
                    assert_eq!(
                        flaws(&sample.message, sample.about(), revision),
                        [],
                        "{revision} {}: {:#}",
                        sample.definition,
                        sample.message
                    );
                    comparison.compare_mutations(&mut oracle, &sample);
                }
            }
        }
        println!("{revision}: {} messages", seen.len());
        assert!(seen.len() > 30, "{revision}: {}", seen.len());
    }
    println!("{comparison}");
    comparison.assert_agreement();
    comparison.assert_every_difference_was_met();
}

/// How often the verdicts were the same, and where not.
#[derive(Default)]
struct Comparison {
    fitting: usize,
    wrong: usize,
    argued: BTreeMap<usize, usize>,
    unexplained: Vec<String>,
}

impl Comparison {
    fn compare_mutations(&mut self, oracle: &mut Oracle, sample: &Sample) {
        self.compare(oracle, sample);
        for message in mutations(&sample.message) {
            self.compare(oracle, &Sample { message, ..sample.clone() });
        }
    }

    fn compare(&mut self, oracle: &mut Oracle, sample: &Sample) {
        let official = oracle.complaints(sample);
        let ours = flaws(&sample.message, sample.about(), sample.revision);
        let explanations: Option<Vec<usize>> = match (official.is_empty(), ours.is_empty()) {
            (true, true) => {
                self.fitting += 1;
                return;
            }
            (false, false) => {
                self.wrong += 1;
                return;
            }
            (true, false) => {
                let row = |flaw| DIFFERENCES.iter().position(|row| matches!(row.side, Side::Stricter(is) if is(sample, flaw)));
                ours.iter().map(row).collect()
            }
            (false, true) => DIFFERENCES
                .iter()
                .position(|difference| {
                    let mut changed = sample.clone();
                    matches!(difference.side, Side::Laxer(change) if {
                        change(&mut changed.message);
                        oracle.complaints(&changed).is_empty()
                    })
                })
                .map(|row| vec![row]),
        };
        match explanations {
            Some(explanations) => explanations.into_iter().for_each(|row| *self.argued.entry(row).or_default() += 1),
            None => self.unexplained.push(format!(
                "{} {} {}\n  ours      {:?}\n  official  {official:?}\n  {}",
                sample.revision,
                sample.definition,
                sample.method,
                ours.iter().map(|flaw| &flaw.message).collect::<Vec<_>>(),
                sample.message
            )),
        }
    }

    fn assert_agreement(&self) {
        let shown = self.unexplained.iter().take(12).cloned().collect::<Vec<_>>().join("\n");
        assert!(self.unexplained.is_empty(), "{} verdicts differ\n{shown}", self.unexplained.len());
    }

    fn assert_every_difference_was_met(&self) {
        for (row, difference) in DIFFERENCES.iter().enumerate() {
            assert!(self.argued.contains_key(&row), "never met: {}", difference.why);
        }
    }
}

impl std::fmt::Display for Comparison {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let argued: usize = self.argued.values().sum();
        write!(formatter, "{} messages that fit, {} that do not, {argued} argued differences", self.fitting, self.wrong)
    }
}

impl Sample {
    fn about(&self) -> About<'_> {
        match self.method.as_str() {
            "" => About::Itself,
            method => About::Response { method, params: Some(&self.params) },
        }
    }

    fn result(revision: &'static str, method: &str, definition: &str, result: Value) -> Self {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "result": result });
        Self { revision, kind: Kind::Result, method: method.to_owned(), params: json!({}), definition: definition.to_owned(), message }
    }

    fn other(revision: &'static str, kind: Kind, definition: &str, message: Value) -> Self {
        Self { revision, kind, method: String::new(), params: Value::Null, definition: definition.to_owned(), message }
    }
}

/// A whole message of a server around an example of 2026-07-28; `None` where only clients say such a thing.
fn wrap(definition: &str, example: &Value) -> Option<Sample> {
    let result = |method: &str, definition: &str, result: Value| Some(Sample::result(MODERN, method, definition, result));
    let call = |content: Value| result("tools/call", "CallToolResult", json!({ "resultType": "complete", "content": [content] }));
    let cached = |method: &str, definition: &str, mut listed: Value| {
        let hints = json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
        listed.as_object_mut().unwrap().extend(hints.as_object().unwrap().clone());
        result(method, definition, listed)
    };
    let ask = |request: Value| {
        let attempt = json!({ "resultType": "input_required", "inputRequests": { "key": request } });
        result("tools/call", "InputRequiredResult", attempt)
    };
    let sample = |params: Value| ask(json!({ "method": "sampling/createMessage", "params": params }));
    let elicit = |params: Value| ask(json!({ "method": "elicitation/create", "params": params }));
    let notify = |definition: &str, method: &str| {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": example });
        Some(Sample::other(MODERN, Kind::Notification, definition, message))
    };
    let example = example.clone();
    if let Some((method, definition)) = RESULTS.iter().find(|(_, result)| *result == definition) {
        return result(method, definition, example);
    }
    if let Some((method, inner)) = RESULTS.iter().find(|(_, result)| definition == format!("{result}Response")) {
        return Some(Sample { message: example, ..Sample::result(MODERN, method, inner, Value::Null) });
    }
    match definition {
        "TextContent" | "ImageContent" | "AudioContent" | "EmbeddedResource" | "ResourceLink" => call(example),
        "TextResourceContents" | "BlobResourceContents" => cached("resources/read", "ReadResourceResult", json!({ "contents": [example] })),
        "Tool" => cached("tools/list", "ListToolsResult", json!({ "tools": [example] })),
        "Resource" => cached("resources/list", "ListResourcesResult", json!({ "resources": [example] })),
        "ServerCapabilities" => {
            cached("server/discover", "DiscoverResult", json!({ "supportedVersions": [MODERN], "capabilities": example }))
        }
        "InputRequiredResult" => result("tools/call", definition, example),
        "InputRequests" => result("tools/call", "InputRequiredResult", json!({ "resultType": "input_required", "inputRequests": example })),
        "CreateMessageRequest" | "ElicitRequest" | "ListRootsRequest" => ask(example),
        "CreateMessageRequestParams" => sample(example),
        "ElicitRequestFormParams" | "ElicitRequestURLParams" => elicit(example),
        "SamplingMessage" => sample(json!({ "maxTokens": 1, "messages": [example] })),
        "ToolUseContent" | "ToolResultContent" => sample(json!({ "maxTokens": 1, "messages": [{ "role": "user", "content": [example] }] })),
        "ModelPreferences" => sample(json!({ "maxTokens": 1, "messages": [], "modelPreferences": example })),
        "BooleanSchema"
        | "NumberSchema"
        | "StringSchema"
        | "TitledMultiSelectEnumSchema"
        | "TitledSingleSelectEnumSchema"
        | "UntitledMultiSelectEnumSchema"
        | "UntitledSingleSelectEnumSchema" => {
            elicit(json!({ "message": "?", "requestedSchema": { "type": "object", "properties": { "field": example } } }))
        }
        "CancelledNotificationParams" => notify("CancelledNotification", "notifications/cancelled"),
        "LoggingMessageNotificationParams" => notify("LoggingMessageNotification", "notifications/message"),
        "ProgressNotificationParams" => notify("ProgressNotification", "notifications/progress"),
        "ResourceUpdatedNotificationParams" => notify("ResourceUpdatedNotification", "notifications/resources/updated"),
        _ if definition.ends_with("Notification") => Some(Sample::other(MODERN, Kind::Notification, definition, example)),
        "ParseError" | "InternalError" | "InvalidParamsError" | "MethodNotFoundError" => {
            let message = json!({ "jsonrpc": "2.0", "id": 1, "error": example });
            Some(Sample::other(MODERN, Kind::Error, "Error", message))
        }
        _ if definition.ends_with("Error") => Some(Sample::other(MODERN, Kind::Error, definition, example)),
        "ClientCapabilities" => {
            let error = json!({ "code": -32021, "message": "m", "data": { "requiredCapabilities": example } });
            let message = json!({ "jsonrpc": "2.0", "id": 1, "error": error });
            Some(Sample::other(MODERN, Kind::Error, "MissingRequiredClientCapabilityError", message))
        }
        "CallToolRequest"
        | "CallToolRequestParams"
        | "CompleteRequest"
        | "CompleteRequestParams"
        | "CreateMessageResult"
        | "DiscoverRequest"
        | "ElicitResult"
        | "GetPromptRequest"
        | "GetPromptRequestParams"
        | "InputResponses"
        | "ListPromptsRequest"
        | "ListResourceTemplatesRequest"
        | "ListResourcesRequest"
        | "ListRootsResult"
        | "ListToolsRequest"
        | "PaginatedRequestParams"
        | "ReadResourceRequest"
        | "Root"
        | "SubscriptionsListenRequest" => None,
        _ => panic!("no message around an example of {definition}"),
    }
}

/// All that a message becomes when one thing in it is changed.
fn mutations(message: &Value) -> Vec<Value> {
    let places = places(message);
    let others = [
        json!(null),
        json!(true),
        json!(-1),
        json!(7),
        json!(1.5),
        json!(2.0),
        json!(""),
        json!("nope"),
        json!("a b"),
        json!("https://example.com/a"),
        json!("/{"),
        json!([]),
        json!({}),
        json!([7]),
        json!(["text"]),
        json!({ "key": 7 }),
        json!({ "key": {} }),
        json!({ "type": "string" }),
    ];
    let mut all = Vec::new();
    for place in &places {
        let mut with = |value: Option<Value>| all.push(replaced(message, place, value));
        with(None);
        others.iter().for_each(|other| with(Some(other.clone())));
        match message.pointer(place).unwrap() {
            Value::Object(object) => {
                for (key, value) in [
                    ("x-extra", json!(null)),
                    ("-bad", json!(7)),
                    ("_meta", json!(7)),
                    ("_meta", json!({ "a/b": 1 })),
                    ("taskIds", json!(7)),
                    ("id", json!(7)),
                    ("error", json!(7)),
                    ("text", json!("t")),
                    ("blob", json!("t")),
                ] {
                    let mut extended = object.clone();
                    extended.insert(key.to_owned(), value);
                    with(Some(extended.into()));
                }
            }
            Value::Array(items) => {
                for item in others.iter().chain(items.first()) {
                    let mut extended = items.clone();
                    extended.push(item.clone());
                    with(Some(extended.into()));
                }
                with(Some(vec![json!("value"); 101].into()));
            }
            _ => {}
        }
    }
    if message.pointer("/error/code").is_some() {
        all.extend(
            [-32000, -32002, -32020, -32021, -32022, -32042, -32050, -32602, 1]
                .map(|code| replaced(message, "/error/code", Some(code.into()))),
        );
    }
    for key in ["_meta", "id", "error"] {
        let mut extended = message.as_object().unwrap().clone();
        extended.insert(key.to_owned(), json!({ "code": 1, "message": "m" }));
        all.push(extended.into());
    }
    all
}

/// All places in a message, as RFC 6901 writes them.
fn places(message: &Value) -> Vec<String> {
    let mut places = Vec::new();
    collect_places(message, &mut String::new(), &mut places);
    places
}

fn collect_places(value: &Value, place: &mut String, places: &mut Vec<String>) {
    let mut within = |key: &str, value: &Value| {
        let length = place.len();
        place.push('/');
        place.push_str(&key.replace('~', "~0").replace('/', "~1"));
        places.push(place.clone());
        collect_places(value, place, places);
        place.truncate(length);
    };
    match value {
        Value::Object(object) => object.iter().for_each(|(key, value)| within(key, value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(index, value)| within(&index.to_string(), value)),
        _ => {}
    }
}

fn replaced(message: &Value, place: &str, value: Option<Value>) -> Value {
    let mut message = message.clone();
    match value {
        Some(value) => *message.pointer_mut(place).unwrap() = value,
        None => {
            let (parent, key) = place.rsplit_once('/').unwrap();
            match message.pointer_mut(parent).unwrap() {
                Value::Object(object) => drop(object.shift_remove(&key.replace("~1", "/").replace("~0", "~"))),
                Value::Array(items) => drop(items.remove(key.parse().unwrap())),
                _ => unreachable!("a place is in an object or an array"),
            }
        }
    }
    message
}

/// The official schema of a revision, each definition compiled once.
struct Oracle {
    revision: &'static str,
    document: Value,
    definitions: Map<String, Value>,
    validators: BTreeMap<String, Validator>,
}

impl Oracle {
    fn read(folder: &Path, revision: &'static str) -> Self {
        let text = std::fs::read_to_string(folder.join(format!("{revision}.schema.json"))).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let definitions = document.get("$defs").or(document.get("definitions")).unwrap().as_object().unwrap().clone();
        Self { revision, document, definitions, validators: BTreeMap::new() }
    }

    /// What the schema has against a message: in the envelope, and in what it carries.
    fn complaints(&mut self, sample: &Sample) -> Vec<(String, String)> {
        let message = &sample.message;
        let (envelope, newer) = match sample.kind {
            Kind::Result => ("JSONRPCResponse", "JSONRPCResultResponse"),
            Kind::Error => ("JSONRPCError", "JSONRPCErrorResponse"),
            Kind::Notification => ("JSONRPCNotification", "JSONRPCNotification"),
            Kind::Request => ("JSONRPCRequest", "JSONRPCRequest"),
        };
        let envelope = if self.definitions.contains_key(newer) { newer } else { envelope };
        let mut complaints = self.validate(envelope, message);
        match sample.kind {
            Kind::Result => {
                let definition = match message["result"]["resultType"].as_str() {
                    Some("input_required") if self.revision == MODERN => "InputRequiredResult",
                    Some(_) if sample.definition == "InputRequiredResult" => "CallToolResult",
                    _ => &sample.definition,
                };
                if let Some(result) = message.get("result") {
                    complaints.extend(self.validate(definition, result));
                }
            }
            Kind::Error => {
                let code = message["error"]["code"].as_i64().unwrap_or_default();
                if let Some(definition) = self.error_definition(code) {
                    complaints.extend(self.validate(&definition, message));
                }
            }
            Kind::Notification | Kind::Request => {
                let method = message["method"].as_str().unwrap_or_default();
                if let Some(definition) = self.initiative_definition(method) {
                    complaints.extend(self.validate(&definition, message));
                }
            }
        }
        complaints
    }

    fn validate(&mut self, definition: &str, value: &Value) -> Vec<(String, String)> {
        let document = &self.document;
        let validator = self.validators.entry(definition.to_owned()).or_insert_with(|| {
            let mut schema = document.as_object().unwrap().clone();
            let key = if schema.contains_key("$defs") { "$defs" } else { "definitions" };
            schema.insert("$ref".into(), format!("#/{key}/{definition}").into());
            // Draft 7 ignores what stands beside a reference, but for the definitions.
            jsonschema::options().should_validate_formats(true).build(&Value::Object(schema)).unwrap()
        });
        if validator.is_valid(value) {
            return Vec::new();
        }
        validator.iter_errors(value).map(|error| (error.instance_path().to_string(), error.to_string())).collect()
    }

    /// Of an error whose code has a meaning of its own.
    fn error_definition(&self, code: i64) -> Option<String> {
        let has_code = |definition: &Value| definition.pointer("/properties/error/allOf/1/properties/code/const") == Some(&json!(code));
        self.definitions.iter().find(|(_, definition)| has_code(definition)).map(|(name, _)| name.clone())
    }

    /// Of a notification or a request that a server may send.
    fn initiative_definition(&self, method: &str) -> Option<String> {
        let of_servers = self.initiatives();
        of_servers.into_iter().find(|name| self.definitions[name].pointer("/properties/method/const") == Some(&json!(method)))
    }

    fn initiatives(&self) -> Vec<String> {
        let members = |name: &str| self.definitions.get(name).and_then(|union| union["anyOf"].as_array()).cloned().unwrap_or_default();
        let names = members("ServerNotification").into_iter().chain(members("ServerRequest"));
        names.map(|member| member["$ref"].as_str().unwrap().rsplit_once('/').unwrap().1.to_owned()).collect()
    }

    /// A message of each kind, with everything that may be in it. Of each union, `choice` says which variant.
    fn samples(&self, choice: usize) -> Vec<Sample> {
        let revision = self.revision;
        let mut samples = Vec::new();
        for (method, definition) in RESULTS {
            let Some(schema) = self.definitions.get(definition) else { continue };
            let mut result = self.instance(schema, choice, "", 0);
            if method == "tasks/result" {
                result = self.instance(&self.definitions["CallToolResult"], choice, "", 0);
                result["_meta"] = json!({ "io.modelcontextprotocol/related-task": { "taskId": "t" } });
            }
            samples.push(Sample::result(revision, method, definition, result));
        }
        if let Some(schema) = self.definitions.get("InputRequiredResult") {
            let mut result = self.instance(schema, choice, "", 0);
            result["resultType"] = json!("input_required");
            samples.push(Sample::result(revision, "prompts/get", "InputRequiredResult", result.clone()));
            result.as_object_mut().unwrap().shift_remove("inputRequests");
            samples.push(Sample::result(revision, "tools/call", "InputRequiredResult", result));
        }
        if let Some(schema) = self.definitions.get("CreateTaskResult") {
            let mut sample = Sample::result(revision, "tools/call", "CreateTaskResult", self.instance(schema, choice, "", 0));
            // Without `task` it would be the usual result of a call.
            sample.params = json!({ "task": {} });
            samples.push(sample);
        }
        for definition in self.initiatives() {
            let mut message = self.instance(&self.definitions[&definition], choice, "", 0);
            let kind = if definition.ends_with("Request") { Kind::Request } else { Kind::Notification };
            message["jsonrpc"] = json!("2.0");
            if kind == Kind::Request {
                message["id"] = json!(7);
            }
            samples.push(Sample::other(revision, kind, &definition, message));
        }
        for (name, schema) in &self.definitions {
            if schema.pointer("/properties/error").is_some() {
                samples.push(Sample::other(revision, Kind::Error, name, self.instance(schema, choice, "", 0)));
            }
        }
        samples
    }

    /// A value that fits a schema and has all that it names.
    fn instance(&self, schema: &Value, choice: usize, name: &str, depth: usize) -> Value {
        if let Some(reference) = schema["$ref"].as_str() {
            return self.instance(&self.definitions[reference.rsplit_once('/').unwrap().1], choice, name, depth + 1);
        }
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if let Some(values) = schema["enum"].as_array() {
            return values[choice % values.len()].clone();
        }
        if let Some(variants) = schema["anyOf"].as_array() {
            // Any JSON may be in any JSON, but not for ever.
            let variant = if depth > 12 { variants.len() - 1 } else { choice % variants.len() };
            return self.instance(&variants[variant], choice, name, depth + 1);
        }
        if let Some(parts) = schema["allOf"].as_array() {
            let parts = parts.iter().map(|part| self.instance(part, choice, name, depth + 1));
            return parts.flat_map(|part| part.as_object().unwrap().clone()).collect::<Map<_, _>>().into();
        }
        let types = match &schema["type"] {
            Value::Array(types) => types.iter().map(|name| name.as_str().unwrap()).collect(),
            Value::String(name) => vec![name.as_str()],
            _ => vec![],
        };
        match types.get(choice % types.len().max(1)).copied() {
            Some("string") => match (schema["format"].as_str(), name) {
                (Some("uri"), _) => "https://example.com/a?b=c#d".into(),
                (Some("uri-template"), _) => "file:///{path}".into(),
                (Some("byte"), _) => "aGk=".into(),
                (_, "createdAt" | "lastUpdatedAt") => "2026-07-28T10:00:00Z".into(),
                (_, "resultType") => "complete".into(),
                _ => "some text".into(),
            },
            Some("integer") => 3.into(),
            Some("number") => 0.5.into(),
            Some("boolean") => true.into(),
            Some("null") => Value::Null,
            Some("array") => vec![self.instance(&schema["items"], choice, "", depth + 1)].into(),
            Some("object") => {
                let properties = schema["properties"].as_object().into_iter().flatten();
                let mut object: Map<_, _> =
                    properties.map(|(name, schema)| (name.clone(), self.instance(schema, choice, name, depth + 1))).collect();
                if let Some(more @ Value::Object(_)) = schema.get("additionalProperties") {
                    object.insert("key".into(), self.instance(more, choice, "", depth + 1));
                }
                object.into()
            }
            _ => "anything".into(),
        }
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec")
}
