//! What sets an HTTP request apart from the others of its conversation. Knows headers, not why they were sent.

use super::conversation::{ConversationView, HttpExchange};
use super::wording::excerpt;
use std::collections::BTreeMap;

/// Their names on the wire and for a reader.
const HEADERS: [(&str, &str); 6] = [
    ("origin", "Origin"),
    ("host", "Host"),
    ("accept", "Accept"),
    ("content-type", "Content-Type"),
    (SESSION, "Mcp-Session-Id"),
    ("mcp-protocol-version", "MCP-Protocol-Version"),
];

const SESSION: &str = "mcp-session-id";

/// In which headers a request differs from most with the same method of JSON-RPC: ``with `Origin: null` and without `Accept` ``.
pub fn unusual_headers(conversation: &ConversationView<'_>, exchange: &HttpExchange<'_>) -> Option<String> {
    let parts: Vec<String> = HEADERS.iter().filter_map(|(name, title)| unusual(conversation, exchange, name, title)).collect();
    (!parts.is_empty()).then(|| parts.join(" and "))
}

fn unusual(conversation: &ConversationView<'_>, exchange: &HttpExchange<'_>, name: &str, title: &str) -> Option<String> {
    let method_of = |exchange: &HttpExchange<'_>| {
        let message = conversation.from_client().find(|message| message.exchange == Some(exchange.id))?;
        message.method()
    };
    let method = method_of(exchange);
    let mut values = BTreeMap::<Option<&str>, usize>::new();
    for other in conversation.exchanges.values().filter(|other| other.method == exchange.method && method_of(other) == method) {
        *values.entry(other.request_header(name)).or_default() += 1;
    }
    let value = exchange.request_header(name);
    let count = |value: Option<&str>| values.get(&value).copied().unwrap_or_default();
    let rarer = values.values().max().is_some_and(|most| count(value) < *most);
    match value.filter(|_| rarer) {
        // There may be several sessions; their ids tell a reader nothing.
        Some(id) if name == SESSION => {
            let is_known = conversation.exchanges.values().any(|other| other.header(SESSION) == Some(id));
            (!is_known).then(|| "with an unknown session id".to_owned())
        }
        Some(value) => Some(format!("with `{title}: {}`", excerpt(value))),
        None if rarer && value.is_none() => Some(format!("without `{title}`")),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn what_a_request_lacks_or_has_beyond_others_is_told() {
        let post = |headers: &str| {
            let request = format!("> POST /mcp content-type: application/json | {headers}");
            format!("{request}\n> {{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}\n< 200 mcp-session-id: a\n! ended\n")
        };
        let usual = "accept: b | mcp-session-id: a | mcp-protocol-version: 2025-11-25";
        let check = |headers: &str, expected: Option<&str>| {
            let take = example::read(&(post(usual) + &post(usual) + &post(headers)), "http", "2025-11-25");
            let conversation = ConversationView::new(&take);
            let last = conversation.exchanges.values().next_back().unwrap();
            assert_eq!(unusual_headers(&conversation, last).as_deref(), expected, "{headers}");
        };
        check(usual, None);
        check(&format!("{usual} | origin: https://x.example"), Some("with `Origin: https://x.example`"));
        check("mcp-session-id: a | mcp-protocol-version: 2025-11-25", Some("without `Accept`"));
        check("accept: b | mcp-session-id: c | mcp-protocol-version: 2025-11-25", Some("with an unknown session id"));
        check("accept: b | mcp-protocol-version: 1", Some("without `Mcp-Session-Id` and with `MCP-Protocol-Version: 1`"));
    }
}
