//! Broken servers that web pages cannot use.

use super::deviation::Deviation;
use super::{BOTH, BrokenServer, HTTP, LEGACY, MODERN, WEB, broken_server};

pub(super) const BROKEN_SERVERS: &[BrokenServer] = &[
    broken_server(
        "preflight-gets-405",
        "answers preflights with 405",
        "cors-preflight-needs-no-credentials",
        WEB,
        BOTH,
        Deviation::Response(|request, response| {
            if request.method == "OPTIONS" {
                response.status = 405
            }
        }),
    ),
    broken_server(
        "preflight-gets-401",
        "wants credentials for a preflight",
        "cors-preflight-needs-no-credentials",
        WEB,
        BOTH,
        Deviation::Response(|request, response| {
            if request.method == "OPTIONS" {
                response.status = 401
            }
        }),
    ),
    broken_server(
        "preflight-without-post",
        "allows pages GET and DELETE only",
        "cors-preflight-allows-methods",
        WEB,
        BOTH,
        Deviation::Response(|request, response| {
            if request.method == "OPTIONS" {
                response.set("access-control-allow-methods", "GET, DELETE");
            }
        }),
    ),
    broken_server(
        "preflight-without-delete",
        "does not allow pages to end their sessions",
        "cors-preflight-allows-delete",
        HTTP,
        LEGACY,
        Deviation::Response(|request, response| {
            if request.method == "OPTIONS" {
                response.set("access-control-allow-methods", "GET, POST");
            }
        }),
    ),
    broken_server(
        "preflight-without-params",
        "does not allow pages the headers for the arguments of tools",
        "cors-preflight-allows-headers",
        HTTP,
        MODERN,
        Deviation::Response(|request, response| {
            if request.method == "OPTIONS" {
                response.set("access-control-allow-headers", "content-type, authorization, mcp-protocol-version, mcp-method, mcp-name");
            }
        }),
    ),
    broken_server(
        "preflight-without-headers",
        "allows pages no header but Content-Type",
        "cors-preflight-allows-headers",
        WEB,
        BOTH,
        Deviation::Response(|request, response| {
            if request.method == "OPTIONS" {
                response.set("access-control-allow-headers", "content-type");
            }
        }),
    ),
    broken_server(
        "answers-unreadable",
        "lets pages ask, and not read the answer",
        "cors-response-allows-origin",
        WEB,
        BOTH,
        Deviation::Response(|request, response| {
            if request.method != "OPTIONS" && response.status < 400 {
                response.remove("access-control-allow-origin");
            }
        }),
    ),
    broken_server(
        "session-id-hidden",
        "hides the session id from pages",
        "cors-exposes-session-id",
        HTTP,
        LEGACY,
        Deviation::Response(|request, response| {
            if request.header("origin").is_some() {
                response.set("access-control-expose-headers", "WWW-Authenticate");
            }
        }),
    ),
    broken_server(
        "challenge-hidden",
        "hides WWW-Authenticate from pages",
        "cors-exposes-www-authenticate",
        HTTP,
        BOTH,
        Deviation::Guarded(|request, response| {
            if request.header("origin").is_some() {
                response.set("access-control-expose-headers", "Mcp-Session-Id");
            }
        }),
    ),
    broken_server(
        "errors-unreadable",
        "lets pages read results, and no refusals",
        "cors-error-response-allows-origin",
        WEB,
        BOTH,
        Deviation::Response(|_, response| {
            if response.status >= 400 {
                response.remove("access-control-allow-origin");
            }
        }),
    ),
    broken_server(
        "credentials-for-all",
        "allows every page, with credentials",
        "cors-credentials-need-known-origin",
        WEB,
        BOTH,
        Deviation::Response(|request, response| {
            if request.header("origin").is_some() {
                response.set("access-control-allow-origin", "*");
                response.set("access-control-allow-credentials", "true");
            }
        }),
    ),
];
