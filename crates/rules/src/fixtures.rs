//! What the tools, resources and prompts of the official conformance suite show, where a server has them. A fixture says by
//! its name what it does; that it does shows that the feature works.
//!
//! Stricter than that suite where it lets a tool pass that does not exist or fails, and milder where a server lacks one: then
//! there is nothing to judge.

pub(super) mod rounds;
pub(super) mod tasks;

use super::calls::texts;
use super::rule_definition::{
    AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Revisions, Rule, Violation, revisions,
};
use mcproof_analysis::named;
use mcproof_analysis::probes::fixtures::{EMBEDDED, ENTERED, OF_TEMPLATE, PROMPTED, SAMPLED, TEMPLATE};
use mcproof_analysis::wording::excerpt;
use mcproof_analysis::{Attempt, AttemptOutcome, ConversationView, WireMessage};
use mcproof_protocol::{Revision, error_code, methods};
use mcproof_record::{FrameBody, FrameId};
use serde_json::{Value, json};

/// The part of a declaration that fixtures have in common.
const FIXTURE: Rule = Rule {
    area: Area::Fixtures,
    why: "the official conformance suite uses this fixture to check whether the server or its SDK has the feature",
    ..Rule::DEFAULT
};

const SINCE: Revisions = revisions::SINCE_2025_06;
const LEGACY: Revisions = Revision::V2025_06_18..=Revision::V2025_11_25;
const NEWEST_LEGACY: Revisions = Revision::V2025_11_25..=Revision::V2025_11_25;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "fixture-content-types",
        requirement: "the tools for text, image, audio, embedded resource and mixed content return that content",
        sources: &[RequirementSource { revisions: SINCE, level: RequirementLevel::Must, source: "server/tools#tool-result" }],
        judge: Judge::Each(content_types),
        remedy: "return the content blocks that the name of the tool announces, each with its data",
        ..FIXTURE
    },
    Rule {
        id: "fixture-error-is-a-result",
        requirement: "the tool that fails returns a result with `isError` and a text with the reason",
        sources: &[
            RequirementSource {
                revisions: Revision::V2024_11_05..=Revision::V2025_03_26,
                level: RequirementLevel::Should,
                source: "server/tools#error-handling",
            },
            RequirementSource { revisions: SINCE, level: RequirementLevel::Must, source: "server/tools#error-handling" },
        ],
        judge: Judge::Each(error_is_a_result),
        remedy: "return each exception of a tool as a result with `isError: true`; JSON-RPC errors are for invalid calls",
        ..FIXTURE
    },
    Rule {
        id: "fixture-logs",
        requirement: "the tool that logs sends three log messages while it runs",
        sources: &[RequirementSource {
            revisions: LEGACY,
            level: RequirementLevel::Must,
            source: "server/utilities/logging#log-message-notifications",
        }],
        judge: Judge::Each(logs),
        remedy: "send each log message as `notifications/message` to the session of the call, if its level allows",
        ..FIXTURE
    },
    Rule {
        id: "fixture-progress",
        requirement: "the tool that reports progress reports it three times, with the token of the call",
        sources: &[
            RequirementSource { revisions: LEGACY, level: RequirementLevel::Must, source: "basic/utilities/progress#progress-flow" },
            RequirementSource {
                revisions: revisions::MODERN,
                level: RequirementLevel::Must,
                source: "basic/patterns/progress#progress-flow",
            },
        ],
        judge: Judge::Each(progress),
        remedy: "send `notifications/progress` with the unchanged `_meta.progressToken` of the call",
        ..FIXTURE
    },
    Rule {
        id: "fixture-sampling",
        requirement: "the tool that samples sends a request to the client, and returns the client response",
        sources: &[RequirementSource { revisions: LEGACY, level: RequirementLevel::Must, source: "client/sampling#creating-messages" }],
        judge: Judge::Each(|conversation| asks_and_tells(conversation, "test_sampling", methods::SAMPLING_CREATE_MESSAGE, SAMPLED)),
        remedy: "send `sampling/createMessage` on the stream of the call, and continue with its result",
        ..FIXTURE
    },
    Rule {
        id: "fixture-elicitation",
        requirement: "the tool that requests user input sends an elicitation, and returns the input",
        sources: &[RequirementSource { revisions: LEGACY, level: RequirementLevel::Must, source: "client/elicitation#protocol-messages" }],
        judge: Judge::Each(|conversation| asks_and_tells(conversation, "test_elicitation", methods::ELICITATION_CREATE, ENTERED)),
        remedy: "send `elicitation/create` on the stream of the call, and continue with its content",
        ..FIXTURE
    },
    Rule {
        id: "fixture-elicitation-defaults",
        requirement: "the form with defaults reaches the client with all defaults: string, integer, number, choice and boolean",
        sources: &[RequirementSource {
            revisions: NEWEST_LEGACY,
            level: RequirementLevel::Must,
            source: "client/elicitation#requested-schema",
        }],
        judge: Judge::Each(|conversation| form(conversation, "test_elicitation_sep1034_defaults", default_flaws)),
        remedy: "send `requestedSchema` unchanged, with every `default`",
        ..FIXTURE
    },
    Rule {
        id: "fixture-elicitation-enums",
        requirement: "the form with choices reaches the client with all kinds of choices: single and multiple, with and without titles",
        sources: &[RequirementSource {
            revisions: NEWEST_LEGACY,
            level: RequirementLevel::Must,
            source: "client/elicitation#requested-schema",
        }],
        judge: Judge::Each(|conversation| form(conversation, "test_elicitation_sep1330_enums", enum_flaws)),
        remedy: "send `requestedSchema` unchanged: `enum`, `oneOf` with `const` and `title`, `enumNames`, and arrays of them",
        ..FIXTURE
    },
    Rule {
        id: "fixture-schema-keywords-are-preserved",
        requirement: "the schema in JSON Schema 2020-12 is listed with all its keywords",
        sources: &[
            RequirementSource { revisions: NEWEST_LEGACY, level: RequirementLevel::Must, source: "server/tools#tool" },
            RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source: "server/tools#tool" },
        ],
        judge: Judge::Each(schema_keywords),
        remedy: "list `inputSchema` unchanged, without a conversion to other types that loses keywords",
        ..FIXTURE
    },
    Rule {
        id: "fixture-resources",
        requirement: "the resources for text, for bytes and of a template return that content",
        sources: &[RequirementSource { revisions: SINCE, level: RequirementLevel::Must, source: "server/resources#resource-contents" }],
        judge: Judge::Each(resources),
        remedy: "return one item of contents with the requested URI, a `mimeType`, and `text` or `blob`",
        ..FIXTURE
    },
    Rule {
        id: "fixture-prompts",
        requirement: "the prompts for text, arguments, an embedded resource and an image return that content",
        sources: &[RequirementSource { revisions: SINCE, level: RequirementLevel::Must, source: "server/prompts#promptmessage" }],
        judge: Judge::Each(prompts),
        remedy: "insert the arguments into the prompt, and return resources and images as content blocks",
        ..FIXTURE
    },
    Rule {
        id: "fixture-stream-resumes",
        requirement: "the tool that closes its stream sends `retry` before, and its response on the resumed stream",
        sources: &[RequirementSource {
            revisions: NEWEST_LEGACY,
            level: RequirementLevel::Should,
            source: "basic/transports#sending-messages-to-the-server",
        }],
        on: AppliesTo::Http,
        judge: Judge::Each(stream_resumes),
        remedy: "send an event with an `id` and a `retry` before closing the stream, store later events, and send them in response to a GET with `Last-Event-ID`",
        ..FIXTURE
    },
    Rule {
        id: "fixture-missing-capability",
        requirement: "the tool that needs sampling gets error -32021, which names sampling, if the client has not declared it",
        sources: &[RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source: "basic#meta" }],
        judge: Judge::Each(missing_capability),
        remedy: "respond with -32021 and `data.requiredCapabilities`, an object keyed by missing capability; over HTTP with status 400",
        ..FIXTURE
    },
    Rule {
        id: "fixture-list-change-is-notified",
        requirement: "the tools that change a list make the server notify each listening client",
        sources: &[RequirementSource {
            revisions: revisions::MODERN,
            level: RequirementLevel::Should,
            source: "server/tools#list-changed-notification",
        }],
        judge: Judge::Each(list_change_is_told),
        remedy: "send the notification on every `subscriptions/listen` stream that requested it, even if another request made the change",
        ..FIXTURE
    },
];

/// Whether the server lists something under this name, URI or template.
fn offers(conversation: &ConversationView<'_>, name: &str) -> bool {
    let is_it = |item: &Value| ["name", "uri", "uriTemplate"].iter().any(|key| item.get(key).and_then(Value::as_str) == Some(name));
    let lists = [
        (methods::TOOLS_LIST, "tools"),
        (methods::RESOURCES_LIST, "resources"),
        (methods::RESOURCES_TEMPLATES_LIST, "resourceTemplates"),
        (methods::PROMPTS_LIST, "prompts"),
    ];
    lists.into_iter().any(|(method, key)| conversation.listed(method, key).any(|(items, _)| items.iter().any(is_it)))
}

/// Looks at what the fixtures of these names answered to a probe: each is either as it should be, or told what is wrong.
fn each(
    conversation: &ConversationView<'_>,
    probe: &str,
    names: &[&str],
    wrong: impl Fn(&Attempt<'_, '_>) -> Result<(), String>,
) -> Judgment {
    let (mut seen, mut violations, mut unasked) = (0, Vec::new(), Vec::new());
    let mut is_offered = false;
    for name in names {
        let Some(attempt) = conversation.probes(probe).find(|attempt| attempt.subject() == *name) else {
            unasked.extend(offers(conversation, name).then(|| (*name).to_owned()));
            continue;
        };
        is_offered = true;
        if matches!(attempt.answer, AttemptOutcome::Silence | AttemptOutcome::Gone | AttemptOutcome::None) {
            continue;
        }
        seen += 1;
        violations.extend(wrong(&attempt).err().map(|message| Violation::new(message, attempt.frames())));
    }
    match (is_offered, unasked.is_empty()) {
        (true, _) => Judgment::of(violations, seen, "the fixtures got no response"),
        (false, true) => Judgment::NotApplicable(format!("the server does not have `{}`", names.join("`, `"))),
        (false, false) => Judgment::Untestable(format!("{} was not tried; a tool may need `--call`", named(&unasked))),
    }
}

/// The result of a fixture that has to succeed.
fn succeeded<'c>(attempt: &Attempt<'_, 'c>) -> Result<&'c Value, String> {
    let failed = || format!("`{}` got {}", attempt.subject(), attempt.answer.describe());
    match attempt.answer {
        AttemptOutcome::Result { value, .. } if value.get("isError") != Some(&Value::Bool(true)) => Ok(value),
        _ => Err(failed()),
    }
}

fn content(result: &Value) -> &[Value] {
    result.get("content").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn is_text(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str).is_some_and(|text| !text.is_empty())
}

/// Whether a content block is of a type, with something in it.
fn is_whole(block: &Value, kind: &str) -> bool {
    let has = |pointer: &str| is_text(block.pointer(pointer));
    block.get("type").and_then(Value::as_str) == Some(kind)
        && match kind {
            "text" => has("/text"),
            "image" | "audio" => has("/data") && has("/mimeType"),
            _ => has("/resource/uri") && (has("/resource/text") || has("/resource/blob")),
        }
}

fn content_types(conversation: &ConversationView<'_>) -> Judgment {
    const WANTED: [(&str, &[&str]); 5] = [
        ("test_simple_text", &["text"]),
        ("test_image_content", &["image"]),
        ("test_audio_content", &["audio"]),
        ("test_embedded_resource", &["resource"]),
        ("test_multiple_content_types", &["text", "image", "resource"]),
    ];
    each(conversation, "fixture", &WANTED.map(|(tool, _)| tool), |attempt| {
        let result = succeeded(attempt)?;
        let wanted = WANTED.iter().find(|(tool, _)| *tool == attempt.subject()).map_or(&[][..], |(_, wanted)| wanted);
        let missing: Vec<String> = wanted
            .iter()
            .filter(|kind| !content(result).iter().any(|block| is_whole(block, kind)))
            .map(|kind| (*kind).to_owned())
            .collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(format!("the content of `{}` has no block of type {}", attempt.subject(), named(&missing))),
        }
    })
}

fn error_is_a_result(conversation: &ConversationView<'_>) -> Judgment {
    each(conversation, "fixture", &["test_error_handling"], |attempt| match attempt.answer {
        AttemptOutcome::Result { value, .. } if value.get("isError") != Some(&Value::Bool(true)) => {
            Err("`test_error_handling` returned a result without `isError`".into())
        }
        AttemptOutcome::Result { value, .. } if texts(value).is_empty() => {
            Err("the result of `test_error_handling` does not name the failure".into())
        }
        AttemptOutcome::Result { .. } => Ok(()),
        answer => Err(format!("`test_error_handling` got {}, not a result with `isError`", answer.describe())),
    })
}

/// How many log messages and reports of progress the fixtures send.
const MESSAGES: usize = 3;

fn logs(conversation: &ConversationView<'_>) -> Judgment {
    each(conversation, "fixture", &["test_tool_with_logging"], |attempt| {
        succeeded(attempt)?;
        // On a stream of its own a message may come after the answer: what is asked next gives it the time.
        let probes = &conversation.conversation.probes;
        let until = probes.iter().filter(|later| later.first >= attempt.probed.end).map(|later| later.end).next();
        let is_meanwhile = |wire_message: &&WireMessage<'_>| {
            attempt.probed.first <= wire_message.frame.id && until.is_none_or(|until| wire_message.frame.id < until)
        };
        let messages = conversation
            .from_server()
            .filter(is_meanwhile)
            .filter(|wire_message| wire_message.method() == Some(methods::notifications::MESSAGE));
        let count = messages.filter(|wire_message| wire_message.param("/level").and_then(Value::as_str) != Some("debug")).count();
        enough(count, "`test_tool_with_logging`", "log messages")
    })
}

fn progress(conversation: &ConversationView<'_>) -> Judgment {
    each(conversation, "fixture", &["test_tool_with_progress"], |attempt| {
        succeeded(attempt)?;
        let token = attempt.request.and_then(|request| request.param("/_meta/progressToken"));
        let reports = conversation.from_server().filter(|wire_message| wire_message.method() == Some(methods::notifications::PROGRESS));
        enough(
            reports.filter(|wire_message| wire_message.param("/progressToken") == token).count(),
            "`test_tool_with_progress`",
            "reports of progress",
        )
    })
}

fn enough(count: usize, who: &str, what: &str) -> Result<(), String> {
    if count < MESSAGES { Err(format!("{who} sends {count} {what}, not {MESSAGES}")) } else { Ok(()) }
}

/// What the server asked of the client while a fixture was asked.
fn asked_back<'c, 'a>(conversation: &'c ConversationView<'a>, attempt: &Attempt<'_, '_>, method: &str) -> Option<&'c WireMessage<'a>> {
    let is_within = |id: FrameId| attempt.probed.contains(id);
    conversation
        .from_server()
        .find(|wire_message| wire_message.is_request() && wire_message.method() == Some(method) && is_within(wire_message.frame.id))
}

fn asks_and_tells(conversation: &ConversationView<'_>, tool: &str, method: &str, answer: &str) -> Judgment {
    each(conversation, "fixture", &[tool], |attempt| {
        if asked_back(conversation, attempt, method).is_none() {
            return Err(format!("`{tool}` does not request `{method}`"));
        }
        let text = texts(succeeded(attempt)?);
        match text.contains(answer) {
            true => Ok(()),
            false => Err(format!("`{tool}` does not return the client response, but \"{}\"", excerpt(&text))),
        }
    })
}

/// Looks at the form that a fixture shows to the user.
fn form(conversation: &ConversationView<'_>, tool: &str, flaws: fn(&Value) -> Vec<String>) -> Judgment {
    let Some(attempt) = conversation.probes("fixture").find(|attempt| attempt.subject() == tool) else {
        return each(conversation, "fixture", &[tool], |_| Ok(()));
    };
    match asked_back(conversation, &attempt, methods::ELICITATION_CREATE) {
        Some(question) => {
            let flaws = flaws(question.param("/requestedSchema/properties").unwrap_or(&Value::Null));
            let violation = || Violation::new(format!("in the form of `{tool}` {}", flaws.join("; ")), [question.frame.id]);
            Judgment::from_violations(if flaws.is_empty() { Vec::new() } else { vec![violation()] })
        }
        None => each(conversation, "fixture", &[tool], |_| Err(format!("`{tool}` does not request `elicitation/create`"))),
    }
}

fn default_flaws(properties: &Value) -> Vec<String> {
    let wanted = [
        ("name", "string", json!("John Doe")),
        ("age", "integer", json!(30)),
        ("score", "number", json!(95.5)),
        ("status", "string", json!("active")),
        ("verified", "boolean", json!(true)),
    ];
    let mut flaws = Vec::new();
    for (name, kind, default) in wanted {
        let property = &properties[name];
        if property["type"] != kind {
            flaws.push(format!("`{name}` is of the type {}, not {kind}", property["type"]));
        } else if property["default"] != default {
            flaws.push(format!("`{name}` has the default {}, not {default}", property["default"]));
        }
    }
    let choices = properties.pointer("/status/enum").and_then(Value::as_array);
    if !choices.is_some_and(|choices| choices.contains(&properties["status"]["default"])) {
        flaws.push("the default of `status` is none of its choices".into());
    }
    flaws
}

fn enum_flaws(properties: &Value) -> Vec<String> {
    // Where the choices are, what is not to be there, and whether each has a title.
    let wanted: [(&str, &str, &[&str]); 5] = [
        ("untitledSingle", "/enum", &["/oneOf", "/enumNames"]),
        ("titledSingle", "/oneOf", &["/enum"]),
        ("legacyEnum", "/enum", &[]),
        ("untitledMulti", "/items/enum", &["/items/anyOf"]),
        ("titledMulti", "/items/anyOf", &["/items/enum"]),
    ];
    let mut flaws = Vec::new();
    for (name, place, absent) in wanted {
        let property = &properties[name];
        let kind = if place.starts_with("/items") { "array" } else { "string" };
        let choices = property.pointer(place).and_then(Value::as_array);
        let titled = |choice: &Value| choice["const"].is_string() && choice["title"].is_string();
        let is_titled = place.ends_with("Of");
        match choices {
            _ if property["type"] != kind => flaws.push(format!("`{name}` is of the type {}, not {kind}", property["type"])),
            None => flaws.push(format!("`{name}` has no choices at `{place}`")),
            Some(choices) if is_titled && !choices.iter().all(titled) => {
                flaws.push(format!("choices of `{name}` lack `const` or `title`"));
            }
            Some(_) => flaws.extend(
                absent.iter().filter(|place| property.pointer(place).is_some()).map(|place| format!("`{name}` has `{place}` as well")),
            ),
        }
    }
    let count = |pointer: &str| properties.pointer(pointer).and_then(Value::as_array).map(Vec::len);
    if count("/legacyEnum/enumNames") != count("/legacyEnum/enum") {
        flaws.push("`legacyEnum` has not as many `enumNames` as choices".into());
    }
    flaws
}

fn schema_keywords(conversation: &ConversationView<'_>) -> Judgment {
    const TOOL: &str = "json_schema_2020_12_tool";
    const KEYWORDS: [(&str, &str); 3] =
        [("$schema", "/$schema"), ("$defs", "/$defs/address"), ("additionalProperties", "/additionalProperties")];
    // Since 2026-07-28 any keyword is allowed (server/tools#tool).
    const MORE: [(&str, &str); 6] = [
        ("allOf", "/allOf"),
        ("anyOf", "/allOf/0/anyOf"),
        ("if", "/if"),
        ("then", "/then"),
        ("else", "/else"),
        ("$anchor", "/$defs/address/$anchor"),
    ];
    let Some((tool, frame)) = conversation.tools().into_iter().find(|(tool, _)| tool["name"] == TOOL) else {
        return Judgment::NotApplicable(format!("the server does not have `{TOOL}`"));
    };
    let schema = &tool["inputSchema"];
    let more = if conversation.is_modern() { &MORE[..] } else { &[] };
    let missing: Vec<String> = KEYWORDS
        .iter()
        .chain(more)
        .filter(|(_, place)| schema.pointer(place).is_none())
        .map(|(keyword, _)| (*keyword).to_owned())
        .collect();
    match missing.is_empty() {
        true => Judgment::Pass,
        false => Judgment::Broken(vec![Violation::new(format!("the listed schema of `{TOOL}` has no {}", named(&missing)), [frame])]),
    }
}

fn resources(conversation: &ConversationView<'_>) -> Judgment {
    each(conversation, "fixture", &["test://static-text", "test://static-binary", TEMPLATE], |attempt| {
        let contents = &succeeded(attempt)?["contents"][0];
        let (uri, member) = match attempt.subject() {
            "test://static-binary" => ("test://static-binary", "blob"),
            TEMPLATE => (OF_TEMPLATE, "text"),
            other => (other, "text"),
        };
        if !is_text(contents.get(member)) || !is_text(contents.get("mimeType")) {
            return Err(format!("the contents of `{uri}` have no `{member}` or no `mimeType`"));
        }
        if attempt.subject() == TEMPLATE && !contents["text"].as_str().unwrap_or_default().contains("123") {
            return Err(format!("what is read from `{uri}` has nothing of the `id` 123"));
        }
        Ok(())
    })
}

fn prompts(conversation: &ConversationView<'_>) -> Judgment {
    const NAMES: [&str; 4] =
        ["test_simple_prompt", "test_prompt_with_arguments", "test_prompt_with_embedded_resource", "test_prompt_with_image"];
    each(conversation, "fixture", &NAMES, |attempt| {
        let messages = succeeded(attempt)?.get("messages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let has = |kind: &str| messages.iter().any(|message| is_whole(&message["content"], kind));
        let name = attempt.subject();
        match name {
            "test_prompt_with_arguments" => {
                let text = json!(messages).to_string();
                let lost: Vec<String> = PROMPTED.into_iter().filter(|value| !text.contains(value)).map(str::to_owned).collect();
                if lost.is_empty() { Ok(()) } else { Err(format!("the arguments {} are missing in `{name}`", named(&lost))) }
            }
            "test_prompt_with_embedded_resource" => {
                let is_it =
                    |message: &Value| message["content"]["resource"]["uri"] == EMBEDDED && is_whole(&message["content"], "resource");
                match messages.iter().any(is_it) {
                    true => Ok(()),
                    false => Err(format!("`{name}` does not embed the given resource `{EMBEDDED}`")),
                }
            }
            "test_prompt_with_image" if !has("image") => Err(format!("`{name}` has no image")),
            "test_simple_prompt" if !has("text") => Err(format!("`{name}` has no text")),
            _ => Ok(()),
        }
    })
}

fn stream_resumes(conversation: &ConversationView<'_>) -> Judgment {
    const TOOL: &str = "test_reconnection";
    let Some(attempt) = conversation.probes("fixture").find(|attempt| attempt.subject() == TOOL) else {
        return each(conversation, "fixture", &[TOOL], |_| Ok(()));
    };
    let Some(http) = attempt.http else { return Judgment::Untestable(format!("`{TOOL}` was not called")) };
    let answered = match attempt.answer {
        AttemptOutcome::Result { frame, .. } | AttemptOutcome::Error { frame, .. } => Some(frame),
        _ => None,
    };
    let came_on = answered
        .and_then(|frame| conversation.from_server().find(|wire_message| wire_message.frame.id == frame))
        .and_then(|wire_message| wire_message.exchange);
    if http.media_type().as_deref() != Some("text/event-stream") || came_on == Some(http.id) {
        return Judgment::Untestable(format!("`{TOOL}` answered without closing its stream"));
    }
    let has_field = |name: &str| {
        let is_it = |line: &&[u8]| line.starts_with(name.as_bytes()) && line.get(name.len()) == Some(&b':');
        http.events.iter().any(|event| match &event.body {
            FrameBody::SseEvent { bytes, .. } => bytes.as_bytes().split(|byte| matches!(byte, b'\n' | b'\r')).any(|line| is_it(&line)),
            _ => false,
        })
    };
    let message = match (has_field("id"), has_field("retry"), answered) {
        (false, ..) => format!("the stream of `{TOOL}` is closed before it had an event with an id, so that it cannot be resumed"),
        (true, false, _) => format!("the stream of `{TOOL}` is closed without `retry`"),
        (true, true, None) => format!("a client that resumes the stream of `{TOOL}` gets no response"),
        (true, true, Some(_)) => return Judgment::Pass,
    };
    let end = http.end.map(|(frame, _)| frame.id);
    Judgment::Broken(vec![Violation::new(message, http.heads().into_iter().chain(end).chain(answered))])
}

fn missing_capability(conversation: &ConversationView<'_>) -> Judgment {
    each(conversation, "fixture-without-capability", &["test_missing_capability"], |attempt| match attempt.answer {
        AttemptOutcome::Error { error, .. } if attempt.answer.code() == Some(error_code::MISSING_CAPABILITY) => {
            if !error.pointer("/data/requiredCapabilities/sampling").is_some_and(Value::is_object) {
                return Err("the error -32021 has no object `sampling` in `data.requiredCapabilities`".into());
            }
            match attempt.status() {
                None | Some(400) => Ok(()),
                Some(status) => Err(format!("the error -32021 comes with status {status}, not 400")),
            }
        }
        answer => Err(format!("`test_missing_capability` without sampling got {}, not error -32021", answer.describe())),
    })
}

fn list_change_is_told(conversation: &ConversationView<'_>) -> Judgment {
    const TOOLS: [(&str, &str, &str); 2] = [
        ("test_trigger_tool_change", methods::notifications::TOOLS_LIST_CHANGED, "tools"),
        ("test_trigger_prompt_change", methods::notifications::PROMPTS_LIST_CHANGED, "prompts"),
    ];
    let names = TOOLS.map(|(tool, ..)| tool);
    let (mut seen, mut violations) = (0, Vec::new());
    for probed in conversation.conversation.probes.iter().filter(|probed| probed.probe == "fixture-change") {
        let within = |wire_message: &&WireMessage<'_>| probed.contains(wire_message.frame.id);
        let Some(call) = conversation.from_client().filter(within).find(|wire_message| wire_message.method() == Some(methods::TOOLS_CALL))
        else {
            continue;
        };
        let answer = conversation.answer_to(call);
        if answer.is_none_or(|answer| answer.value.get("result").is_none()) {
            continue;
        }
        let Some((tool, method, kind)) = TOOLS.iter().find(|(tool, ..)| probed.subject.as_deref() == Some(tool)) else { continue };
        seen += 1;
        if !conversation.from_server().filter(within).any(|wire_message| wire_message.method() == Some(method)) {
            let message = format!("after `{tool}` no listening client was notified that the {kind} have changed");
            violations.push(Violation::new(message, [Some(call), answer].into_iter().flatten().map(|wire_message| wire_message.frame.id)));
        }
    }
    match (seen, names.iter().any(|name| offers(conversation, name))) {
        (0, false) => Judgment::NotApplicable(format!("the server does not have `{}`", names.join("`, `"))),
        _ => Judgment::of(violations, seen, "no list was changed while a client was listening"),
    }
}
