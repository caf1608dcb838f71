//! Tasks: a part of 2025-11-25, an extension of 2026-07-28.

use super::super::shape::Kind::{Integer, IntegerOrNull, Map, Object, OneOf, Tagged, Text, Timestamp};
use super::super::shape::{Kind, Member, Shape, Tags, may, must, shape};
use super::results::{CALL_TOOL, ERROR};
use super::server_messages::INPUT_REQUEST;
use mcproof_protocol::Revision::{V2025_11_25, V2026_07_28};

/// The name by which clients and servers declare the extension.
pub(in super::super) const TASK_EXTENSION: &str = "io.modelcontextprotocol/tasks";

const STATUS: Kind = OneOf(&["working", "input_required", "completed", "failed", "cancelled"]);

const ID: Member = must("taskId", Text);
const MESSAGE: Member = may("statusMessage", Text);
const CREATED: Member = must("createdAt", Timestamp);
const UPDATED: Member = must("lastUpdatedAt", Timestamp);
const TTL: Member = must("ttlMs", IntegerOrNull);
const POLL: Member = may("pollIntervalMs", Integer);

/// A task of 2025-11-25.
pub(super) static TASK: Shape =
    shape(&[ID, must("status", STATUS), MESSAGE, CREATED, UPDATED, must("ttl", IntegerOrNull), may("pollInterval", Integer)]);

/// Instead of a tool's result: the task in a member of 2025-11-25, or the result itself in the extension.
pub(in super::super) static TASK_RESULT: Shape = shape(&[
    must("task", Object(&TASK)).only(V2025_11_25),
    ID.since(V2026_07_28),
    must("status", STATUS).since(V2026_07_28),
    MESSAGE.since(V2026_07_28),
    CREATED.since(V2026_07_28),
    UPDATED.since(V2026_07_28),
    TTL.since(V2026_07_28),
    POLL.since(V2026_07_28),
]);

/// A task of the extension with what belongs to its status.
pub(super) const DETAILED_TASK: Kind = Tagged(&DETAILED);

static DETAILED: Tags = Tags {
    by: "status",
    otherwise: None,
    variants: &[
        must("working", Object(&IN_WORK)),
        must("input_required", Object(&WAITING)),
        must("completed", Object(&COMPLETED)),
        must("failed", Object(&FAILED)),
        must("cancelled", Object(&IN_WORK)),
    ],
};

static IN_WORK: Shape = shape(&[ID, MESSAGE, CREATED, UPDATED, TTL, POLL]);
static WAITING: Shape = shape(&[ID, MESSAGE, CREATED, UPDATED, TTL, POLL, must("inputRequests", Map(&INPUT_REQUEST))]);
/// Only calls of tools become tasks.
static COMPLETED: Shape = shape(&[ID, MESSAGE, CREATED, UPDATED, TTL, POLL, must("result", Object(&CALL_TOOL))]);
static FAILED: Shape = shape(&[ID, MESSAGE, CREATED, UPDATED, TTL, POLL, must("error", Object(&ERROR))]);

/// To which task a message belongs.
pub(super) static RELATED_TASK: Shape = shape(&[ID]);
