//! Broken servers that crash or hang on unusual requests.

use super::deviation::{Deviation, die};
use super::server::Received;
use super::{ALL, BOTH, BrokenServer, LEGACY, PIPES, STDIO, broken_server};
use serde_json::{Value, json};

pub(super) const BROKEN_SERVERS: &[BrokenServer] = &[
    broken_server(
        "malformed-json-kills",
        "dies of JSON that is none",
        "malformed-json-is-survived",
        ALL,
        BOTH,
        Deviation::Raw(|bytes| {
            let text = std::str::from_utf8(bytes).unwrap_or("null");
            die_if(!text.trim().is_empty() && serde_json::from_str::<Value>(text).is_err());
        }),
    ),
    broken_server(
        "malformed-json-wedges",
        "stops reading after JSON that is none",
        "malformed-json-is-survived",
        STDIO,
        BOTH,
        Deviation::Raw(|bytes| {
            let text = std::str::from_utf8(bytes).unwrap_or("null");
            if !text.trim().is_empty() && serde_json::from_str::<Value>(text).is_err() {
                // All that comes is swallowed, so that it still ends with its input. The server holds its own handle of it.
                if let Ok(mut input) = std::fs::File::open("/dev/stdin") {
                    let _ = std::io::copy(&mut input, &mut std::io::sink());
                }
                die(0);
            }
        }),
    ),
    broken_server(
        "batch-kills",
        "dies of a batch",
        "batch-is-survived",
        ALL,
        BOTH,
        Deviation::Raw(|bytes| die_if(bytes.starts_with(b"["))),
    ),
    broken_server(
        "invalid-utf8-kills",
        "dies of bytes that are no UTF-8",
        "invalid-utf8-is-survived",
        ALL,
        BOTH,
        Deviation::Raw(|bytes| die_if(std::str::from_utf8(bytes).is_err())),
    ),
    broken_server(
        "blank-line-kills",
        "dies of a blank line",
        "blank-line-is-survived",
        STDIO,
        BOTH,
        Deviation::Raw(|bytes| die_if(bytes.is_empty())),
    ),
    broken_server(
        "huge-message-kills",
        "dies of a message of more than two MiB",
        "huge-message-is-survived",
        ALL,
        BOTH,
        Deviation::Raw(|bytes| die_if(bytes.len() > 2 << 20)),
    ),
    broken_server(
        "unknown-notification-kills",
        "dies of a notification that it does not know",
        "unknown-notification-is-survived",
        ALL,
        BOTH,
        Deviation::Extra(|received| {
            const KNOWN: [&str; 4] =
                ["notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed"];
            die_if(received.id().is_null() && !received.method().is_empty() && !KNOWN.contains(&received.method()));
            Vec::new()
        }),
    ),
    broken_server(
        "unknown-cancel-kills",
        "dies when a request is cancelled that is not there",
        "unknown-cancel-is-survived",
        ALL,
        BOTH,
        Deviation::Extra(|received| {
            let cancels = received.method() == "notifications/cancelled";
            die_if(cancels && !received.server.is_running(&received.session, &received.params()["requestId"]));
            Vec::new()
        }),
    ),
    broken_server(
        "early-request-kills",
        "dies of a list that is asked for before `initialize`",
        "early-request-is-survived",
        PIPES,
        LEGACY,
        Deviation::Extra(|received| {
            die_if(!received.is_modern() && received.version.is_empty() && received.method().ends_with("/list"));
            Vec::new()
        }),
    ),
    broken_server(
        "duplicate-id-kills",
        "dies when an id comes a second time",
        "duplicate-id-is-survived",
        ALL,
        LEGACY,
        Deviation::Extra(|received| {
            die_if(!received.id().is_null() && is_known(received));
            Vec::new()
        }),
    ),
];

/// Whether the session has had a request with this id before.
fn is_known(received: &Received) -> bool {
    let mut memory = received.server.memory();
    let key = format!("{} {}", received.session.id, received.id());
    let known = memory.get(&key).is_some();
    memory[key] = json!(true);
    known
}

fn die_if(hurt: bool) {
    if hurt {
        die(1);
    }
}
