//! Animals that do not survive what a careless client may send.

use super::server::Heard;
use super::twist::{Twist, die};
use super::{ALL, Animal, BOTH, LEGACY, PIPES, STDIO, animal};
use serde_json::{Value, json};

pub(super) const ANIMALS: &[Animal] = &[
    animal(
        "malformed-json-kills",
        "dies of JSON that is none",
        "malformed-json-is-survived",
        ALL,
        BOTH,
        Twist::Raw(|bytes| {
            let text = std::str::from_utf8(bytes).unwrap_or("null");
            die_if(!text.trim().is_empty() && serde_json::from_str::<Value>(text).is_err());
        }),
    ),
    animal(
        "malformed-json-wedges",
        "stops reading after JSON that is none",
        "malformed-json-is-survived",
        STDIO,
        BOTH,
        Twist::Raw(|bytes| {
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
    animal("batch-kills", "dies of a batch", "batch-is-survived", ALL, BOTH, Twist::Raw(|bytes| die_if(bytes.starts_with(b"[")))),
    animal(
        "invalid-utf8-kills",
        "dies of bytes that are no UTF-8",
        "invalid-utf8-is-survived",
        ALL,
        BOTH,
        Twist::Raw(|bytes| die_if(std::str::from_utf8(bytes).is_err())),
    ),
    animal("blank-line-kills", "dies of a blank line", "blank-line-is-survived", STDIO, BOTH, Twist::Raw(|bytes| die_if(bytes.is_empty()))),
    animal(
        "huge-message-kills",
        "dies of a message of more than two MiB",
        "huge-message-is-survived",
        ALL,
        BOTH,
        Twist::Raw(|bytes| die_if(bytes.len() > 2 << 20)),
    ),
    animal(
        "unknown-notification-kills",
        "dies of a notification that it does not know",
        "unknown-notification-is-survived",
        ALL,
        BOTH,
        Twist::Unasked(|heard| {
            const KNOWN: [&str; 4] =
                ["notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed"];
            die_if(heard.id().is_null() && !heard.method().is_empty() && !KNOWN.contains(&heard.method()));
            Vec::new()
        }),
    ),
    animal(
        "unknown-cancel-kills",
        "dies when a request is cancelled that is not there",
        "unknown-cancel-is-survived",
        ALL,
        BOTH,
        Twist::Unasked(|heard| {
            let cancels = heard.method() == "notifications/cancelled";
            die_if(cancels && !heard.server.is_running(&heard.session, &heard.params()["requestId"]));
            Vec::new()
        }),
    ),
    animal(
        "early-request-kills",
        "dies of a list that is asked for before `initialize`",
        "early-request-is-survived",
        PIPES,
        LEGACY,
        Twist::Unasked(|heard| {
            die_if(!heard.is_modern() && heard.version.is_empty() && heard.method().ends_with("/list"));
            Vec::new()
        }),
    ),
    animal(
        "duplicate-id-kills",
        "dies when an id comes a second time",
        "duplicate-id-is-survived",
        ALL,
        LEGACY,
        Twist::Unasked(|heard| {
            die_if(!heard.id().is_null() && is_known(heard));
            Vec::new()
        }),
    ),
];

/// Whether the session has had a request with this id before.
fn is_known(heard: &Heard) -> bool {
    let mut memory = heard.server.memory();
    let key = format!("{} {}", heard.session.id, heard.id());
    let known = memory.get(&key).is_some();
    memory[key] = json!(true);
    known
}

fn die_if(hurt: bool) {
    if hurt {
        die(1);
    }
}
