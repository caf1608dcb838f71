//! The shapes of everything that a server may say, for all revisions at once: each member with its kind and the revisions
//! that know it. Where the JSON Schema that is published with a revision and its prose differ, the prose is obeyed.

mod answers;
mod capabilities;
mod content;
mod initiatives;
mod tasks;

pub(super) use answers::{CACHE_HINTS, CACHED_RESULTS, ERROR, ERROR_DATA, INPUT_METHODS, INPUT_REQUIRED, RESULT, RESULTS};
pub(super) use initiatives::{NOTIFICATION, NOTIFICATIONS, REQUEST, REQUESTS};
pub(super) use tasks::{TASK_EXTENSION, TASK_RESULT};
