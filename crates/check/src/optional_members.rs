//! Requests without members that are optional, and with members that any client may add. Knows what is legal, not what a server serves.

use super::explorer::Explorer;
use super::listing::LISTS;
use mcproof_analysis::probes::LEGAL_FORM;
use mcproof_client::ConnectOptions;
use mcproof_protocol::{error_code, methods};
use serde_json::json;

/// What middleware that traces requests, and that of anybody else, adds to `_meta`.
const OTHER_META: [(&str, &str); 2] =
    [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), ("com.example/mcproof", "anything")];

/// Members of the capabilities that are there for what the protocol does not know.
const OPEN_CAPABILITIES: [&str; 2] = ["experimental", "extensions"];

/// What a handshake with these is called.
pub(super) const WITH_OPEN_CAPABILITIES: &str = "`experimental` and `extensions` in the capabilities";

/// The levels that a client may set besides `error`, which every check sets.
pub(super) const OTHER_LEVELS: [&str; 7] = ["debug", "info", "notice", "warning", "critical", "alert", "emergency"];

/// What a level is called that is set.
pub(super) fn level_form(level: &str) -> String {
    format!("the level `{level}`")
}

pub(super) async fn take(explorer: &mut Explorer<'_>) {
    let plain = match (explorer.declares("tools"), explorer.is_modern()) {
        (true, _) => explorer.any_method(),
        (false, true) => methods::SERVER_DISCOVER,
        (false, false) => methods::PING,
    };
    let mut message = explorer.build_request(json!("mcproof-with-other-meta"), plain, json!({}));
    for (key, value) in OTHER_META {
        message["params"]["_meta"][key] = json!(value);
    }
    explorer.send_briefly(LEGAL_FORM, "`traceparent` and `com.example/mcproof` in `_meta`", message).await;
    // In the modern era `params` has to be there.
    if explorer.is_modern() {
        return;
    }
    for (method, _, capability) in LISTS {
        if method != plain && explorer.declares(capability) {
            let mut message = explorer.build_request(json!(format!("mcproof-bare-{method}")), method, json!({}));
            message.as_object_mut().map(|message| message.shift_remove("params"));
            explorer.send_briefly(LEGAL_FORM, "no `params`", message).await;
        }
    }
}

/// As a client that declares something beside the protocol.
pub(super) fn with_open_capabilities(options: &ConnectOptions) -> ConnectOptions {
    let mut options = options.clone();
    for name in OPEN_CAPABILITIES {
        options.client.capabilities.entry(name).or_insert_with(|| json!({ "com.example/mcproof": {} }));
    }
    options
}

/// Whether an error of a handshake may be about what the client declares. Servers of the modern era do not know the handshake.
pub(super) fn may_be_about_capabilities(code: i64) -> bool {
    use error_code::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST};
    matches!(code, INVALID_PARAMS | INVALID_REQUEST | INTERNAL_ERROR)
}
