//! Broken servers that frame the lines of stdio wrongly. What a whole server would get wrong, they usually get wrong in one
//! message, so that the rest of a conversation can be judged.

use super::changes::{is_handshake, lists_tools};
use super::deviation::{Deviation, line};
use super::internal_deviation::InternalDeviation;
use super::{BOTH, BrokenServer, STDIO, broken_server};
use serde_json::Value;
use std::io::{self, Write as _};

pub(super) const BROKEN_SERVERS: &[BrokenServer] = &[
    broken_server(
        "banner",
        "greets on stdout before the first message",
        "stdio-only-messages-on-stdout",
        STDIO,
        BOTH,
        Deviation::Start(|_| io::stdout().write_all(b"Zoo MCP server v1.0.0 running on stdio\n")),
    ),
    broken_server(
        "prints",
        "prints on stdout while it works",
        "stdio-only-messages-on-stdout",
        STDIO,
        BOTH,
        Deviation::Line(|message, json| match lists_tools(message) {
            true => format!("DEBUG: listing 8 tools\n{json}\n").into_bytes(),
            false => line(&json),
        }),
    ),
    broken_server(
        "utf-16",
        "writes a message in UTF-16, as PowerShell does",
        "stdio-only-messages-on-stdout",
        STDIO,
        BOTH,
        Deviation::Line(|message, json| match lists_tools(message) {
            true => format!("{json}\n").encode_utf16().flat_map(u16::to_le_bytes).chain(*b"\n").collect(),
            false => line(&json),
        }),
    ),
    broken_server(
        "logs-json",
        "logs on stdout, in JSON that is no JSON-RPC",
        "stdio-only-messages-on-stdout",
        STDIO,
        BOTH,
        Deviation::Line(|message, json| match lists_tools(message) {
            true => format!("{{\"level\":\"info\",\"msg\":\"listing tools\"}}\n{json}\n").into_bytes(),
            false => line(&json),
        }),
    ),
    broken_server(
        "length-headers",
        "puts a header with the length before a message, as language servers do",
        "stdio-only-messages-on-stdout",
        STDIO,
        BOTH,
        Deviation::Line(|message, json| match lists_tools(message) {
            true => format!("Content-Length: {}\r\n\r\n{json}\n", json.len() + 1).into_bytes(),
            false => line(&json),
        }),
    ),
    broken_server(
        "farewell",
        "says goodbye on stdout when stdin ends",
        "stdio-only-messages-on-stdout",
        STDIO,
        BOTH,
        Deviation::End(|| {
            // Whoever has gone does not hear it.
            let _ = io::stdout().write_all(b"shutting down\n");
        }),
    ),
    broken_server(
        "pretty-printed",
        "prints the list of tools on many lines",
        "stdio-message-on-one-line",
        STDIO,
        BOTH,
        Deviation::Line(|message, json| match lists_tools(message) {
            true => format!("{message:#}\n").into_bytes(),
            false => line(&json),
        }),
    ),
    broken_server(
        "no-break-space-first",
        "puts a no-break space before the list of prompts",
        "stdio-only-messages-on-stdout",
        STDIO,
        BOTH,
        Deviation::Line(|message, json| match message["result"].get("prompts") {
            Some(_) => line(&format!("\u{a0}{json}")),
            None => line(&json),
        }),
    ),
    broken_server(
        "newline-missing",
        "does not end the line of the list of tools",
        "stdio-line-is-terminated",
        STDIO,
        BOTH,
        Deviation::Line(|message, json| match lists_tools(message) {
            true => json.into_bytes(),
            false => line(&json),
        }),
    ),
    broken_server(
        "carriage-returns-only",
        "ends the line of the list of tools with a carriage return alone",
        "stdio-line-is-terminated",
        STDIO,
        BOTH,
        Deviation::Line(|message, json| match lists_tools(message) {
            true => format!("{json}\r").into_bytes(),
            false => line(&json),
        }),
    ),
    broken_server(
        "latin-1",
        "writes a description in Latin-1",
        "stdio-is-utf8",
        STDIO,
        BOTH,
        Deviation::Line(|message, json| if lists_tools(message) { in_latin_1(line(&json)) } else { line(&json) }),
    ),
    broken_server(
        "byte-order-mark",
        "begins with a byte order mark",
        "stdio-has-no-bom",
        STDIO,
        BOTH,
        Deviation::Line(|message, json| if is_handshake(message) { line(&format!("\u{feff}{json}")) } else { line(&json) }),
    ),
    broken_server(
        "carriage-returns",
        "ends lines with a carriage return and a line feed",
        "stdio-ends-lines-with-lf",
        STDIO,
        BOTH,
        Deviation::Line(|_: &Value, json| format!("{json}\r\n").into_bytes()),
    ),
    broken_server(
        "blank-lines",
        "puts a blank line after each message",
        "stdio-has-no-blank-lines",
        STDIO,
        BOTH,
        Deviation::Line(|_: &Value, json| format!("{json}\n\n").into_bytes()),
    ),
    broken_server(
        "decodes-each-read",
        "decodes what each read of stdin brings, also where that ends within a character",
        "message-in-pieces-is-read",
        STDIO,
        BOTH,
        Deviation::Internal(InternalDeviation::DecodesEachRead),
    ),
];

/// The bytes, with the first letter of a description as one that no UTF-8 has there.
pub(super) fn in_latin_1(mut bytes: Vec<u8>) -> Vec<u8> {
    const WORD: &[u8] = b"Returns";
    if let Some(place) = bytes.windows(WORD.len()).position(|word| word == WORD) {
        bytes[place] = 0xfc;
    }
    bytes
}
