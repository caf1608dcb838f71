//! The shapes of everything that a server may send, for all revisions at once: each member with its kind and the revisions
//! that define it. Where the published JSON Schema of a revision and its prose differ, the prose takes precedence.

mod capabilities;
mod content;
mod results;
mod server_messages;
mod tasks;

pub(super) use content::SAMPLING_RESULT;
pub(super) use results::{CACHE_HINTS, CACHED_RESULTS, ERROR, ERROR_DATA, INPUT_METHODS, INPUT_REQUIRED, RESULT, RESULTS};
pub(super) use server_messages::{NOTIFICATION, NOTIFICATIONS, REQUEST, REQUESTS};
pub(super) use tasks::{TASK_EXTENSION, TASK_RESULT};
