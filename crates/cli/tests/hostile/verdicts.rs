//! What mcproof has to say about each hostile server.

pub(crate) struct Expected {
    pub(crate) peer: &'static str,
    pub(crate) on: &'static [&'static str],
    /// The code of the first error, or `pass`.
    pub(crate) verdict: &'static str,
    /// A part of its message.
    pub(crate) says: &'static str,
}

/// Short for servers that only the deadline ends; all others get the time that an unoptimized build on a busy machine takes.
pub(crate) fn timeout(peer: &str) -> &'static str {
    const SHORT: [&str; 7] =
        ["slow-drip", "slow-head", "silent", "head-only", "answer-after-cancel", "endless-interim", "endless-chunk-size"];
    const ALSO_SENDS: [&str; 4] = ["endless-line-ends", "large-unknown-ids", "large-event-names", "ping-flood"];
    match peer {
        _ if SHORT.contains(&peer) => "700ms",
        _ if ALSO_SENDS.contains(&peer) => "2s",
        _ => "120s",
    }
}

const fn row(peer: &'static str, on: &'static [&'static str], verdict: &'static str, says: &'static str) -> Expected {
    Expected { peer, on, verdict, says }
}

const ALL: &[&str] = &["stdio", "http", "sse"];
const STDIO: &[&str] = &["stdio"];
const HTTP: &[&str] = &["http"];
const SSE: &[&str] = &["sse"];
const EVENTS: &[&str] = &["http", "sse"];

pub(crate) const VERDICTS: &[Expected] = &[
    row("endless-message", STDIO, "too-long", "server sent more than 16777216 bytes without a line end"),
    row("endless-message", EVENTS, "event-too-large", "an event is larger than 16777216 bytes"),
    row("endless-line-ends", STDIO, "no-response", "meanwhile the server wrote an empty line on stdout"),
    row("endless-line-ends", EVENTS, "no-response", "within 2 s"),
    row("endless-json-body", HTTP, "body-too-large", "the body is larger than 16777216 bytes"),
    row("endless-chunk-size", HTTP, "no-response", "nothing of its body came"),
    row("endless-head", HTTP, "head-too-large", "the head of the response is larger than 65536 bytes"),
    row("endless-headers", HTTP, "head-too-large", "has more than 100 headers"),
    row("endless-interim", HTTP, "no-response", "no response began"),
    row("gzip-bomb", HTTP, "body-too-large", "the body is larger than 16777216 bytes"),
    row("gzip-bomb-event", HTTP, "event-too-large", "an event is larger than 16777216 bytes"),
    row("notification-flood", ALL, "pass", ""),
    row("large-notifications", ALL, "pass", ""),
    row("large-unknown-ids", ALL, "no-response", "a response with id \"xxx"),
    row("large-event-names", EVENTS, "no-response", "a message in an event named `xxx"),
    row("ping-flood", EVENTS, "no-response", "within 2 s"),
    row("ping-flood", STDIO, "no-response", "a request while 200 of its requests, or 1 MiB of them, wait"),
    row("stderr-flood", STDIO, "pass", ""),
    row("large-answer", ALL, "unexpected-names", ""),
    row("many-values", ALL, "json-too-many-values", "more than 250000 JSON values"),
    row("many-tools", ALL, "json-too-many-values", "more than 250000 JSON values"),
    row("deep-json", ALL, "json-too-deep", "JSON nested deeper than 127 levels"),
    row("slow-drip", STDIO, "no-response", "the beginning of a line without a line feed"),
    row("slow-drip", HTTP, "no-response", "bytes of its body came"),
    row("slow-drip", SSE, "no-response", "within 700 ms"),
    row("slow-head", HTTP, "no-response", "no response began"),
    row("silent", ALL, "no-response", "within 700 ms"),
    row("head-only", HTTP, "no-response", "a response began, but nothing of its body came"),
    row("invalid-utf8", ALL, "not-a-message", "not UTF-8 from byte"),
    row("answer-before-request", ALL, "unknown-id", "a response with id 2, which was never requested"),
    row("duplicate-answer", ALL, "answered-twice", "another response with id 2"),
    row("wrong-id-type", ALL, "id-of-another-type", "id \"2\", a string, where the request had the number 2"),
    row("answer-after-cancel", ALL, "no-response", "within 700 ms"),
    row("escapes-in-names", ALL, "unexpected-names", ""),
    row("escapes-in-errors", ALL, "unexpected-outcome", ""),
    row("escapes-on-stderr", STDIO, "server-exited", "before responding to `tools/list`"),
    row("left-child", STDIO, "server-exited", "before responding to `tools/list`"),
];
