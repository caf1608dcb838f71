//! The capabilities of servers, and those of clients that a server may name.

use super::super::shape::Kind::{Flag, Map, Object};
use super::super::shape::{Shape, may, shape};
use super::content::OBJECT;
use mcproof_protocol::Revision::{V2025_03_26, V2025_11_25, V2026_07_28};

pub(super) static SERVER: Shape = shape(&[
    may("tools", Object(&LISTED)),
    may("prompts", Object(&LISTED)),
    may("resources", Object(&RESOURCES)),
    may("logging", OBJECT),
    may("completions", OBJECT).since(V2025_03_26),
    may("experimental", Map(&OBJECT)),
    may("extensions", Map(&OBJECT)).since(V2026_07_28),
    may("tasks", Object(&TASKS)).only(V2025_11_25),
]);

static LISTED: Shape = shape(&[may("listChanged", Flag)]);
static RESOURCES: Shape = shape(&[may("listChanged", Flag), may("subscribe", Flag)]);

static TASKS: Shape = shape(&[may("list", OBJECT), may("cancel", OBJECT), may("requests", Object(&TASK_REQUESTS))]);
static TASK_REQUESTS: Shape = shape(&[may("tools", Object(&TASK_TOOLS))]);
static TASK_TOOLS: Shape = shape(&[may("call", OBJECT)]);

/// In the error that names missing client capabilities, which only 2026-07-28 has.
pub(super) static CLIENT: Shape = shape(&[
    may("roots", OBJECT),
    may("sampling", Object(&SAMPLING)),
    may("elicitation", Object(&ELICITATION)),
    may("experimental", Map(&OBJECT)),
    may("extensions", Map(&OBJECT)),
]);

static SAMPLING: Shape = shape(&[may("context", OBJECT), may("tools", OBJECT)]);
static ELICITATION: Shape = shape(&[may("form", OBJECT), may("url", OBJECT)]);
