//! Messages that a server initiates: notifications and requests, each with its params.

use super::super::shape::Kind::{
    Any, Choice, Exactly, Flag, Fraction, Id, Integer, List, Map, Meta, Number, Object, OneOf, Tagged, Text, Uri,
};
use super::super::shape::{Kind, Member, Shape, Tags, Variant, may, must, shape, variant};
use super::content::{ANYTHING, OBJECT, SAMPLING_MESSAGE, TOOL};
use super::tasks::{DETAILED_TASK, TASK};
use mcproof_protocol::Revision::{V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};
use mcproof_protocol::methods;

/// Params by method, besides those of every notification; required if the method must have some.
pub(in super::super) static NOTIFICATIONS: &[Member] = &[
    must(methods::notifications::CANCELLED, Object(&CANCELLED)),
    must(methods::notifications::PROGRESS, Object(&PROGRESS)),
    must(methods::notifications::MESSAGE, Object(&LOG_MESSAGE)),
    may(methods::notifications::TOOLS_LIST_CHANGED, Object(&NOTIFICATION)),
    may(methods::notifications::PROMPTS_LIST_CHANGED, Object(&NOTIFICATION)),
    may(methods::notifications::RESOURCES_LIST_CHANGED, Object(&NOTIFICATION)),
    must(methods::notifications::RESOURCES_UPDATED, Object(&UPDATED)),
    must(methods::notifications::ELICITATION_COMPLETE, Object(&ELICITATION_COMPLETE)).only(V2025_11_25),
    must(methods::notifications::TASKS_STATUS, Object(&TASK)).only(V2025_11_25),
    must(methods::notifications::TASKS, DETAILED_TASK).since(V2026_07_28),
    must(methods::notifications::SUBSCRIPTIONS_ACKNOWLEDGED, Object(&ACKNOWLEDGED)).since(V2026_07_28),
];

/// The same for requests. Since 2026-07-28, servers put these into their results.
pub(in super::super) static REQUESTS: &[Member] = &[
    may(methods::PING, Object(&REQUEST)).until(V2025_11_25),
    may(methods::ROOTS_LIST, Object(&REQUEST)),
    must(methods::SAMPLING_CREATE_MESSAGE, Object(&SAMPLING)),
    must(methods::ELICITATION_CREATE, Object(&FORM)).only(V2025_06_18),
    must(methods::ELICITATION_CREATE, ELICITATION).since(V2025_11_25),
    must(methods::TASKS_GET, Object(&OF_TASK)).only(V2025_11_25),
    must(methods::TASKS_RESULT, Object(&OF_TASK)).only(V2025_11_25),
    must(methods::TASKS_CANCEL, Object(&OF_TASK)).only(V2025_11_25),
    may(methods::TASKS_LIST, Object(&PAGE)).only(V2025_11_25),
];

/// A request inside a result of 2026-07-28: without an id, because the client response is identified by its key.
pub(super) const INPUT_REQUEST: Kind = Tagged(&INPUT_REQUESTS);

static INPUT_REQUESTS: Tags = Tags {
    by: "method",
    otherwise: None,
    variants: &[
        must(methods::ELICITATION_CREATE, Object(&ASK_ELICITATION)),
        must(methods::SAMPLING_CREATE_MESSAGE, Object(&ASK_SAMPLING)),
        must(methods::ROOTS_LIST, Object(&ASK_ROOTS)),
    ],
};

static ASK_ELICITATION: Shape = shape(&[must("params", ELICITATION)]);
static ASK_SAMPLING: Shape = shape(&[must("params", Object(&SAMPLING))]);
static ASK_ROOTS: Shape = shape(&[may("params", Object(&REQUEST))]);

static TAGGED: Shape = shape(&[may("io.modelcontextprotocol/subscriptionId", Id).since(V2026_07_28)]);

/// Params of any notification.
pub(in super::super) static NOTIFICATION: Shape = shape(&[may("_meta", Meta(&TAGGED))]);

static CANCELLED: Shape = shape(&[
    must("requestId", Id).until(V2025_06_18),
    // A task is canceled with a separate request, so 2025-11-25 does not require the id.
    may("requestId", Id).only(V2025_11_25),
    must("requestId", Id).since(V2026_07_28),
    may("reason", Text),
]);

static PROGRESS: Shape =
    shape(&[must("progressToken", Id), must("progress", Number), may("total", Number), may("message", Text).since(V2025_03_26)]);

static LOG_MESSAGE: Shape = shape(&[
    must("level", OneOf(&["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"])),
    must("data", Any),
    may("logger", Text),
]);

static UPDATED: Shape = shape(&[must("uri", Uri)]);

static ELICITATION_COMPLETE: Shape = shape(&[must("elicitationId", Text)]);

static ACKNOWLEDGED: Shape = shape(&[must("notifications", Object(&FILTER))]);

static FILTER: Shape = shape(&[
    may("toolsListChanged", Flag),
    may("promptsListChanged", Flag),
    may("resourcesListChanged", Flag),
    may("resourceSubscriptions", List(&Text)),
    // Of the extension for tasks.
    may("taskIds", List(&Text)),
]);

const REQUEST_META: Member = may("_meta", Meta(&PROGRESSING)).until(V2025_11_25);
static PROGRESSING: Shape = shape(&[may("progressToken", Id)]);

/// Params of any request.
pub(in super::super) static REQUEST: Shape = shape(&[REQUEST_META, may("_meta", Meta(&ANYTHING)).since(V2026_07_28)]);
static OF_TASK: Shape = shape(&[must("taskId", Text)]);
static PAGE: Shape = shape(&[may("cursor", Text)]);

const TASK_WANTED: Member = may("task", Object(&TASK_METADATA)).only(V2025_11_25);
static TASK_METADATA: Shape = shape(&[may("ttl", Integer)]);

static SAMPLING: Shape = shape(&[
    must("messages", List(&Object(&SAMPLING_MESSAGE))),
    must("maxTokens", Integer),
    may("modelPreferences", Object(&MODEL_PREFERENCES)),
    may("systemPrompt", Text),
    may("includeContext", OneOf(&["none", "thisServer", "allServers"])),
    may("temperature", Number),
    may("stopSequences", List(&Text)),
    may("metadata", OBJECT),
    may("tools", List(&Object(&TOOL))).since(V2025_11_25),
    may("toolChoice", Object(&TOOL_CHOICE)).since(V2025_11_25),
    TASK_WANTED,
]);

static MODEL_PREFERENCES: Shape = shape(&[
    may("hints", List(&Object(&MODEL_HINT))),
    may("costPriority", Fraction),
    may("speedPriority", Fraction),
    may("intelligencePriority", Fraction),
]);
static MODEL_HINT: Shape = shape(&[may("name", Text)]);
static TOOL_CHOICE: Shape = shape(&[may("mode", OneOf(&["auto", "required", "none"]))]);

const ELICITATION: Kind = Tagged(&MODES);

static MODES: Tags =
    Tags { by: "mode", otherwise: Some("form"), variants: &[must("form", Object(&FORM)), must("url", Object(&ELICITATION_BY_URL))] };

static FORM: Shape = shape(&[must("message", Text), must("requestedSchema", Object(&REQUESTED_SCHEMA)), TASK_WANTED]);

pub(super) static ELICITATION_BY_URL: Shape = shape(&[
    must("mode", Exactly("url")),
    must("message", Text),
    must("url", Uri),
    must("elicitationId", Text).only(V2025_11_25),
    TASK_WANTED,
    // Also where an error carries it; then there is no enclosing request.
    REQUEST_META,
]);

/// The subset of JSON Schema for forms: an object of primitive values.
static REQUESTED_SCHEMA: Shape = shape(&[
    must("type", Exactly("object")),
    must("properties", Map(&FIELD)),
    may("required", List(&Text)),
    may("$schema", Text).since(V2025_11_25),
]);

const FIELD: Kind = Tagged(&FIELDS);

static FIELDS: Tags = Tags {
    by: "type",
    otherwise: None,
    variants: &[
        must("string", Choice(TEXT_FIELDS)),
        must("number", Object(&NUMBER_FIELD)),
        must("integer", Object(&NUMBER_FIELD)),
        must("boolean", Object(&FLAG_FIELD)),
        must("array", Choice(SEVERAL_FIELDS)).since(V2025_11_25),
    ],
};

static TEXT_FIELDS: &[Variant] = &[
    variant("/oneOf", Object(&TITLED_CHOICE_FIELD)).since(V2025_11_25),
    variant("/enumNames", Object(&NAMED_CHOICE_FIELD)),
    variant("/enum", Object(&CHOICE_FIELD)),
    variant("", Object(&TEXT_FIELD)),
];

static SEVERAL_FIELDS: &[Variant] = &[variant("/items/anyOf", Object(&TITLED_SEVERAL_FIELD)), variant("", Object(&SEVERAL_FIELD))];

const FIELD_TITLE: Member = may("title", Text);
const FIELD_DESCRIPTION: Member = may("description", Text);
const TEXT_DEFAULT: Member = may("default", Text).since(V2025_11_25);

static TEXT_FIELD: Shape = shape(&[
    FIELD_TITLE,
    FIELD_DESCRIPTION,
    TEXT_DEFAULT,
    may("format", OneOf(&["email", "uri", "date", "date-time"])),
    may("minLength", Integer),
    may("maxLength", Integer),
]);
static NUMBER_FIELD: Shape =
    shape(&[FIELD_TITLE, FIELD_DESCRIPTION, may("default", Number).since(V2025_11_25), may("minimum", Number), may("maximum", Number)]);
static FLAG_FIELD: Shape = shape(&[FIELD_TITLE, FIELD_DESCRIPTION, may("default", Flag)]);
static CHOICE_FIELD: Shape = shape(&[FIELD_TITLE, FIELD_DESCRIPTION, TEXT_DEFAULT, must("enum", List(&Text))]);
static NAMED_CHOICE_FIELD: Shape =
    shape(&[FIELD_TITLE, FIELD_DESCRIPTION, TEXT_DEFAULT, must("enum", List(&Text)), may("enumNames", List(&Text))]);
static TITLED_CHOICE_FIELD: Shape = shape(&[FIELD_TITLE, FIELD_DESCRIPTION, TEXT_DEFAULT, must("oneOf", List(&Object(&OPTION)))]);
static OPTION: Shape = shape(&[must("const", Text), must("title", Text)]);

const FEWEST: Member = may("minItems", Integer);
const MOST: Member = may("maxItems", Integer);
const SEVERAL_DEFAULT: Member = may("default", List(&Text));

static SEVERAL_FIELD: Shape = shape(&[FIELD_TITLE, FIELD_DESCRIPTION, SEVERAL_DEFAULT, FEWEST, MOST, must("items", Object(&CHOICE_ITEMS))]);
static CHOICE_ITEMS: Shape = shape(&[must("type", Exactly("string")), must("enum", List(&Text))]);
static TITLED_SEVERAL_FIELD: Shape =
    shape(&[FIELD_TITLE, FIELD_DESCRIPTION, SEVERAL_DEFAULT, FEWEST, MOST, must("items", Object(&TITLED_ITEMS))]);
static TITLED_ITEMS: Shape = shape(&[must("anyOf", List(&Object(&OPTION)))]);
