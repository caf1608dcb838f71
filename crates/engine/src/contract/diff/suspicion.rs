//! Whether a new text speaks to models behind the back of users.

use serde_json::Value;

pub(super) fn of(_old: Option<&Value>, _new: Option<&Value>) -> Option<String> {
    None
}
