//! For the fuzz targets (`fuzz/`): what nothing else needs from outside.

use crate::plan::{Action, Step};
use serde_json::{Map, Value};

/// The arguments of a step that calls a tool, as a run fills them in.
pub fn arguments_of_call(step: &Step) -> Option<&Map<String, Value>> {
    match &step.action {
        Action::Call { arguments, .. } => Some(arguments),
        _ => None,
    }
}
