//! Requests without members that are optional, and with members that any client may add. Knows what is legal, not what a server serves.

use super::explorer::Explorer;
use super::listing::LISTS;
use super::spellings;
use mcproof_analysis::probes::LEGAL_FORM;
use mcproof_client::ConnectOptions;
use mcproof_protocol::{Revision, error_code, methods};
use serde_json::{Map, Value, json};

/// What middleware that traces requests, and that of anybody else, adds to `_meta`.
const OTHER_META: [(&str, &str); 2] =
    [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), ("com.example/mcproof", "anything")];

/// Members of the capabilities that are there for what the protocol does not know.
const OPEN_CAPABILITIES: [&str; 2] = ["experimental", "extensions"];

/// What a handshake with these is called.
pub(super) const WITH_OPEN_CAPABILITIES: &str = "`experimental` and `extensions` in the capabilities";

/// What a handshake is called whose `clientInfo` has what a client may say of itself.
pub(super) const WITH_FURTHER_INFO: &str = "optional members in `clientInfo`, such as `title`";

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
    spellings::take(explorer, plain).await;
    // In the modern era `params` has to be there, and each request tells who the client is.
    if explorer.is_modern() {
        let mut message = explorer.build_request(json!("mcproof-with-further-info"), plain, json!({}));
        for (name, value) in further_info(Revision::MODERN) {
            message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"][&name] = value;
        }
        explorer.send_briefly(LEGAL_FORM, WITH_FURTHER_INFO, message).await;
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

/// As a client that says all that it may of itself in this revision.
pub(super) fn with_further_info(options: ConnectOptions, revision: Revision) -> ConnectOptions {
    let mut options = options;
    options.client.further_info = further_info(revision);
    options
}

/// The optional members of `clientInfo` (2025-06-18 and 2025-11-25, schema, `Implementation`).
fn further_info(revision: Revision) -> Map<String, Value> {
    let icon = json!({ "src": "https://example.com/mcproof.png", "mimeType": "image/png", "sizes": ["48x48"] });
    let members = [
        (Revision::V2025_06_18, "title", json!("Mcproof")),
        (Revision::V2025_11_25, "description", json!("A test client")),
        (Revision::V2025_11_25, "websiteUrl", json!("https://example.com/")),
        (Revision::V2025_11_25, "icons", json!([icon])),
    ];
    members.into_iter().filter(|(since, ..)| revision >= *since).map(|(_, name, value)| (name.to_owned(), value)).collect()
}

/// Whether an error of a handshake may be about what the client declares. Servers of the modern era do not know the handshake.
pub(super) fn may_be_about_client(code: i64) -> bool {
    use error_code::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST};
    matches!(code, INVALID_PARAMS | INVALID_REQUEST | INTERNAL_ERROR)
}
