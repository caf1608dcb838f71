//! Results by the method of their request, and errors by their code.

use super::super::shape::Kind::{Any, Count, Flag, Id, Integer, List, ListOfAtMost, Map, Meta, Object, OneOf, Text};
use super::super::shape::{Member, Shape, may, must, shape};
use super::capabilities;
use super::content::{BLOCK, IMPLEMENTATION, PROMPT, PROMPT_MESSAGE, RESOURCE, RESOURCE_CONTENTS, RESOURCE_TEMPLATE, STRUCTURED, TOOL};
use super::server_messages::{ELICITATION_BY_URL, INPUT_REQUEST};
use super::tasks::{DETAILED_TASK, RELATED_TASK, TASK};
use mcproof_protocol::Revision::{V2025_11_25, V2026_07_28};
use mcproof_protocol::{error_code, methods};

/// The members of all results. `resultType` is judged by its value.
pub(in super::super) static RESULT: Shape = shape(&[may("_meta", Meta(&RESULT_META))]);

static RESULT_META: Shape = shape(&[
    may("io.modelcontextprotocol/serverInfo", Object(&IMPLEMENTATION)).since(V2026_07_28),
    may("io.modelcontextprotocol/related-task", Object(&RELATED_TASK)).only(V2025_11_25),
]);

/// Results by method, when they are complete.
pub(in super::super) static RESULTS: &[Member] = &[
    must(methods::INITIALIZE, Object(&INITIALIZE)),
    must(methods::SERVER_DISCOVER, Object(&DISCOVER)),
    must(methods::TOOLS_LIST, Object(&LIST_TOOLS)),
    must(methods::TOOLS_CALL, Object(&CALL_TOOL)),
    must(methods::PROMPTS_LIST, Object(&LIST_PROMPTS)),
    must(methods::PROMPTS_GET, Object(&GET_PROMPT)),
    must(methods::RESOURCES_LIST, Object(&LIST_RESOURCES)),
    must(methods::RESOURCES_TEMPLATES_LIST, Object(&LIST_RESOURCE_TEMPLATES)),
    must(methods::RESOURCES_READ, Object(&READ_RESOURCE)),
    must(methods::COMPLETION_COMPLETE, Object(&COMPLETE)),
    must(methods::SUBSCRIPTIONS_LISTEN, Object(&LISTEN)).since(V2026_07_28),
    must(methods::TASKS_GET, Object(&TASK)).only(V2025_11_25),
    must(methods::TASKS_GET, DETAILED_TASK).since(V2026_07_28),
    must(methods::TASKS_CANCEL, Object(&TASK)).only(V2025_11_25),
    must(methods::TASKS_LIST, Object(&LIST_TASKS)).only(V2025_11_25),
    must(methods::TASKS_RESULT, Object(&TASK_PAYLOAD)).only(V2025_11_25),
];

/// Methods whose complete results state how long they may be cached, since 2026-07-28.
pub(in super::super) static CACHED_RESULTS: &[&str] = &[
    methods::SERVER_DISCOVER,
    methods::TOOLS_LIST,
    methods::PROMPTS_LIST,
    methods::RESOURCES_LIST,
    methods::RESOURCES_TEMPLATES_LIST,
    methods::RESOURCES_READ,
];

pub(in super::super) static CACHE_HINTS: Shape = shape(&[must("ttlMs", Count), must("cacheScope", OneOf(&["public", "private"]))]);

/// The only methods whose result may be `input_required` (2026-07-28, basic/patterns/mrtr, supported requests).
pub(in super::super) static INPUT_METHODS: &[&str] = &[methods::TOOLS_CALL, methods::PROMPTS_GET, methods::RESOURCES_READ];

pub(in super::super) static INPUT_REQUIRED: Shape = shape(&[may("inputRequests", Map(&INPUT_REQUEST)), may("requestState", Text)]);

const NEXT_CURSOR: Member = may("nextCursor", Text);

static INITIALIZE: Shape = shape(&[
    must("protocolVersion", Text),
    must("capabilities", Object(&capabilities::SERVER)),
    must("serverInfo", Object(&IMPLEMENTATION)),
    may("instructions", Text),
]);

static DISCOVER: Shape =
    shape(&[must("supportedVersions", List(&Text)), must("capabilities", Object(&capabilities::SERVER)), may("instructions", Text)]);

static LIST_TOOLS: Shape = shape(&[must("tools", List(&Object(&TOOL))), NEXT_CURSOR]);
static LIST_PROMPTS: Shape = shape(&[must("prompts", List(&Object(&PROMPT))), NEXT_CURSOR]);
static LIST_RESOURCES: Shape = shape(&[must("resources", List(&Object(&RESOURCE))), NEXT_CURSOR]);
static LIST_RESOURCE_TEMPLATES: Shape = shape(&[must("resourceTemplates", List(&Object(&RESOURCE_TEMPLATE))), NEXT_CURSOR]);

pub(super) static CALL_TOOL: Shape = shape(&[must("content", List(&BLOCK)), may("isError", Flag), STRUCTURED]);

static GET_PROMPT: Shape = shape(&[may("description", Text), must("messages", List(&Object(&PROMPT_MESSAGE)))]);

static READ_RESOURCE: Shape = shape(&[must("contents", List(&RESOURCE_CONTENTS))]);

static COMPLETE: Shape = shape(&[must("completion", Object(&COMPLETION))]);

/// The limit of 100 is part of every revision; only the newest JSON Schema has it.
static COMPLETION: Shape = shape(&[must("values", ListOfAtMost(100, &Text)), may("total", Integer), may("hasMore", Flag)]);

static LISTEN: Shape = shape(&[must("_meta", Meta(&LISTEN_META))]);
static LISTEN_META: Shape = shape(&[must("io.modelcontextprotocol/subscriptionId", Id)]);

static LIST_TASKS: Shape = shape(&[must("tasks", List(&Object(&TASK))), NEXT_CURSOR]);

/// The result that the tool call would have returned, and the task it belongs to (2025-11-25, basic/utilities/tasks, related tasks).
static TASK_PAYLOAD: Shape =
    shape(&[must("content", List(&BLOCK)), may("isError", Flag), STRUCTURED, must("_meta", Meta(&TASK_PAYLOAD_META))]);
static TASK_PAYLOAD_META: Shape = shape(&[must("io.modelcontextprotocol/related-task", Object(&RELATED_TASK))]);

pub(in super::super) static ERROR: Shape = shape(&[must("code", Integer), must("message", Text), may("data", Any)]);

/// The members that belong to the error codes that MCP defines, each with its revisions.
pub(in super::super) static ERROR_DATA: &[(i64, Member)] = &[
    (error_code::HEADER_MISMATCH, may("data", Any).since(V2026_07_28)),
    (error_code::MISSING_CAPABILITY, must("data", Object(&MISSING_CAPABILITY)).since(V2026_07_28)),
    (error_code::UNSUPPORTED_VERSION, must("data", Object(&UNSUPPORTED_VERSION)).since(V2026_07_28)),
    (-32042, must("data", Object(&URL_ELICITATION)).only(V2025_11_25)),
];

static MISSING_CAPABILITY: Shape = shape(&[must("requiredCapabilities", Object(&capabilities::CLIENT))]);
static UNSUPPORTED_VERSION: Shape = shape(&[must("requested", Text), must("supported", List(&Text))]);
static URL_ELICITATION: Shape = shape(&[must("elicitations", List(&Object(&ELICITATION_BY_URL)))]);
