//! Results by the method of their request, and errors by their code.

use super::super::shape::Kind::{Any, Count, Flag, Id, Integer, List, ListOfAtMost, Map, Meta, Object, OneOf, Text};
use super::super::shape::{Member, Shape, may, must, shape};
use super::capabilities;
use super::content::{BLOCK, IMPLEMENTATION, PROMPT, PROMPT_MESSAGE, RESOURCE, RESOURCE_CONTENTS, RESOURCE_TEMPLATE, STRUCTURED, TOOL};
use super::server_messages::{ELICITATION_BY_URL, INPUT_REQUEST};
use super::tasks::{DETAILED_TASK, RELATED_TASK, TASK};
use mcproof_protocol::Revision::{V2025_11_25, V2026_07_28};

/// The members of all results. `resultType` is judged by its value.
pub(in super::super) static RESULT: Shape = shape(&[may("_meta", Meta(&RESULT_META))]);

static RESULT_META: Shape = shape(&[
    may("io.modelcontextprotocol/serverInfo", Object(&IMPLEMENTATION)).since(V2026_07_28),
    may("io.modelcontextprotocol/related-task", Object(&RELATED_TASK)).only(V2025_11_25),
]);

/// Results by method, when they are complete.
pub(in super::super) static RESULTS: &[Member] = &[
    must("initialize", Object(&INITIALIZE)),
    must("server/discover", Object(&DISCOVER)),
    must("tools/list", Object(&LIST_TOOLS)),
    must("tools/call", Object(&CALL_TOOL)),
    must("prompts/list", Object(&LIST_PROMPTS)),
    must("prompts/get", Object(&GET_PROMPT)),
    must("resources/list", Object(&LIST_RESOURCES)),
    must("resources/templates/list", Object(&LIST_RESOURCE_TEMPLATES)),
    must("resources/read", Object(&READ_RESOURCE)),
    must("completion/complete", Object(&COMPLETE)),
    must("subscriptions/listen", Object(&LISTEN)).since(V2026_07_28),
    must("tasks/get", Object(&TASK)).only(V2025_11_25),
    must("tasks/get", DETAILED_TASK).since(V2026_07_28),
    must("tasks/cancel", Object(&TASK)).only(V2025_11_25),
    must("tasks/list", Object(&LIST_TASKS)).only(V2025_11_25),
    must("tasks/result", Object(&TASK_PAYLOAD)).only(V2025_11_25),
];

/// Methods whose complete results state how long they may be cached, since 2026-07-28.
pub(in super::super) static CACHED_RESULTS: &[&str] =
    &["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"];

pub(in super::super) static CACHE_HINTS: Shape = shape(&[must("ttlMs", Count), must("cacheScope", OneOf(&["public", "private"]))]);

/// The only methods whose result may be `input_required` (2026-07-28, basic/patterns/mrtr, supported requests).
pub(in super::super) static INPUT_METHODS: &[&str] = &["tools/call", "prompts/get", "resources/read"];

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
    (-32020, may("data", Any).since(V2026_07_28)),
    (-32021, must("data", Object(&MISSING_CAPABILITY)).since(V2026_07_28)),
    (-32022, must("data", Object(&UNSUPPORTED_VERSION)).since(V2026_07_28)),
    (-32042, must("data", Object(&URL_ELICITATION)).only(V2025_11_25)),
];

static MISSING_CAPABILITY: Shape = shape(&[must("requiredCapabilities", Object(&capabilities::CLIENT))]);
static UNSUPPORTED_VERSION: Shape = shape(&[must("requested", Text), must("supported", List(&Text))]);
static URL_ELICITATION: Shape = shape(&[must("elicitations", List(&Object(&ELICITATION_BY_URL)))]);
