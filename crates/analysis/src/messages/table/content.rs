//! Descriptions of tools, prompts and resources, and the content that they return.

use super::super::shape::Kind::{
    Base64, Choice, Exactly, Flag, Fraction, Integer, List, Map, Meta, Object, OneOf, OneOrList, Tagged, Text, Uri,
};
use super::super::shape::{Kind, Member, Shape, Tags, Variant, may, must, named, shape, variant};
use mcproof_protocol::Revision::{V2025_03_26, V2025_06_18, V2025_11_25};

const ROLE: Kind = OneOf(&["user", "assistant"]);

/// An object with unknown members.
pub(super) static ANYTHING: Shape = shape(&[]);
pub(super) const OBJECT: Kind = Object(&ANYTHING);

/// `_meta` of a part of a message. Parts of messages have it since 2025-06-18.
pub(super) const META: Member = may("_meta", Meta(&ANYTHING)).since(V2025_06_18);
const TITLE: Member = may("title", Text).since(V2025_06_18);
const ICONS: Member = may("icons", List(&ICON_KIND)).since(V2025_11_25);
const NOTES: Member = may("annotations", Object(&ANNOTATIONS));

static ANNOTATIONS: Shape = shape(&[may("audience", List(&ROLE)), may("priority", Fraction), may("lastModified", Text).since(V2025_06_18)]);

static ICON_KIND: Kind = Object(&ICON);
static ICON: Shape = shape(&[must("src", Uri), may("mimeType", Text), may("sizes", List(&Text)), may("theme", OneOf(&["light", "dark"]))]);

pub(super) static IMPLEMENTATION: Shape = shape(&[
    must("name", Text),
    must("version", Text),
    TITLE,
    ICONS,
    may("description", Text).since(V2025_11_25),
    may("websiteUrl", Uri).since(V2025_11_25),
]);

pub(super) static TOOL: Shape = named(
    "tool",
    &[
        must("name", Text),
        TITLE,
        may("description", Text),
        must("inputSchema", Object(&INPUT_SCHEMA)),
        may("outputSchema", Object(&OUTPUT_SCHEMA)).since(V2025_06_18),
        may("annotations", Object(&TOOL_ANNOTATIONS)).since(V2025_03_26),
        may("execution", Object(&TOOL_EXECUTION)).only(V2025_11_25),
        ICONS,
        META,
    ],
);

/// Until 2025-11-25, the schemas of tools were a subset of JSON Schema; a separate rule judges whether they compile.
static INPUT_SCHEMA: Shape = shape(&[
    must("type", Exactly("object")),
    may("properties", Map(&OBJECT)).until(V2025_11_25),
    may("required", List(&Text)).until(V2025_11_25),
    may("$schema", Text).since(V2025_11_25),
]);

static OUTPUT_SCHEMA: Shape = shape(&[
    must("type", Exactly("object")).until(V2025_11_25),
    may("properties", Map(&OBJECT)).until(V2025_11_25),
    may("required", List(&Text)).until(V2025_11_25),
    may("$schema", Text).since(V2025_11_25),
]);

static TOOL_ANNOTATIONS: Shape = shape(&[
    may("title", Text),
    may("readOnlyHint", Flag),
    may("destructiveHint", Flag),
    may("idempotentHint", Flag),
    may("openWorldHint", Flag),
]);

static TOOL_EXECUTION: Shape = shape(&[may("taskSupport", OneOf(&["forbidden", "optional", "required"]))]);

pub(super) static PROMPT: Shape =
    named("prompt", &[must("name", Text), TITLE, may("description", Text), may("arguments", List(&Object(&PROMPT_ARGUMENT))), ICONS, META]);

static PROMPT_ARGUMENT: Shape = shape(&[must("name", Text), TITLE, may("description", Text), may("required", Flag)]);

pub(super) static PROMPT_MESSAGE: Shape = shape(&[must("role", ROLE), must("content", BLOCK)]);

pub(super) static RESOURCE: Shape = named(
    "resource",
    &[
        must("uri", Uri),
        must("name", Text),
        TITLE,
        may("description", Text),
        may("mimeType", Text),
        may("size", Integer),
        NOTES,
        ICONS,
        META,
    ],
);

/// A separate rule judges whether the template parses.
pub(super) static RESOURCE_TEMPLATE: Shape = named(
    "resource template",
    &[must("uriTemplate", Text), must("name", Text), TITLE, may("description", Text), may("mimeType", Text), NOTES, ICONS, META],
);

pub(super) const RESOURCE_CONTENTS: Kind = Choice(CONTENTS_VARIANTS);

static CONTENTS_VARIANTS: &[Variant] = &[variant("/text", Object(&TEXT_CONTENTS)), variant("/blob", Object(&BLOB_CONTENTS))];

static TEXT_CONTENTS: Shape = shape(&[must("uri", Uri), must("text", Text), may("mimeType", Text), META]);
static BLOB_CONTENTS: Shape = shape(&[must("uri", Uri), must("blob", Base64), may("mimeType", Text), META]);

/// A block of content in the result of a tool, or in a message of a prompt.
pub(super) const BLOCK: Kind = Tagged(&BLOCKS);

static BLOCKS: Tags = Tags {
    by: "type",
    otherwise: None,
    variants: &[
        must("text", Object(&TEXT)),
        must("image", Object(&MEDIA)),
        must("audio", Object(&MEDIA)).since(V2025_03_26),
        must("resource", Object(&EMBEDDED)),
        must("resource_link", Object(&RESOURCE)).since(V2025_06_18),
    ],
};

static TEXT: Shape = shape(&[must("text", Text), NOTES, META]);
static MEDIA: Shape = shape(&[must("data", Base64), must("mimeType", Text), NOTES, META]);
static EMBEDDED: Shape = shape(&[must("resource", RESOURCE_CONTENTS), NOTES, META]);

pub(super) static SAMPLING_MESSAGE: Shape = shape(&[
    must("role", ROLE),
    must("content", SAMPLING_BLOCK).until(V2025_06_18),
    must("content", OneOrList(&SAMPLING_BLOCK)).since(V2025_11_25),
    may("_meta", Meta(&ANYTHING)).since(V2025_11_25),
]);

/// What a client returns of a model, in the terms of the revisions in which the content may be a list.
pub(in super::super) static SAMPLING_RESULT: Shape = shape(&[
    must("role", ROLE),
    must("content", OneOrList(&SAMPLING_BLOCK)),
    must("model", Text),
    may("stopReason", Text),
    may("_meta", Meta(&ANYTHING)),
]);

const SAMPLING_BLOCK: Kind = Tagged(&SAMPLING_BLOCKS);

static SAMPLING_BLOCKS: Tags = Tags {
    by: "type",
    otherwise: None,
    variants: &[
        must("text", Object(&TEXT)),
        must("image", Object(&MEDIA)),
        must("audio", Object(&MEDIA)).since(V2025_03_26),
        must("tool_use", Object(&TOOL_USE)).since(V2025_11_25),
        must("tool_result", Object(&TOOL_RESULT)).since(V2025_11_25),
    ],
};

static TOOL_USE: Shape = shape(&[must("id", Text), must("name", Text), must("input", OBJECT), META]);

static TOOL_RESULT: Shape = shape(&[must("toolUseId", Text), must("content", List(&BLOCK)), may("isError", Flag), STRUCTURED, META]);

/// An object in earlier revisions, any JSON since 2026-07-28.
pub(super) const STRUCTURED: Member = may("structuredContent", OBJECT).since(V2025_06_18).until(V2025_11_25);
