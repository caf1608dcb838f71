//! Animals that pages in browsers cannot talk to.

use super::twist::Twist;
use super::{Animal, BOTH, HTTP, LEGACY, WEB, animal};

pub(super) const ANIMALS: &[Animal] = &[
    animal(
        "preflight-gets-405",
        "answers preflights with 405",
        "cors-preflight-needs-no-credentials",
        WEB,
        BOTH,
        Twist::Response(|request, response| {
            if request.method == "OPTIONS" {
                response.status = 405
            }
        }),
    ),
    animal(
        "preflight-gets-401",
        "wants credentials for a preflight",
        "cors-preflight-needs-no-credentials",
        WEB,
        BOTH,
        Twist::Response(|request, response| {
            if request.method == "OPTIONS" {
                response.status = 401
            }
        }),
    ),
    animal(
        "preflight-without-post",
        "allows pages GET only",
        "cors-preflight-allows-methods",
        WEB,
        BOTH,
        Twist::Response(|request, response| {
            if request.method == "OPTIONS" {
                response.set("access-control-allow-methods", "GET");
            }
        }),
    ),
    animal(
        "preflight-without-headers",
        "allows pages no header but Content-Type",
        "cors-preflight-allows-headers",
        WEB,
        BOTH,
        Twist::Response(|request, response| {
            if request.method == "OPTIONS" {
                response.set("access-control-allow-headers", "content-type");
            }
        }),
    ),
    animal(
        "answers-unreadable",
        "lets pages ask, and not read the answer",
        "cors-response-allows-origin",
        WEB,
        BOTH,
        Twist::Response(|request, response| {
            if request.method != "OPTIONS" && response.status < 400 {
                response.remove("access-control-allow-origin");
            }
        }),
    ),
    animal(
        "session-id-hidden",
        "hides the session id from pages",
        "cors-exposes-session-id",
        HTTP,
        LEGACY,
        Twist::Response(|request, response| {
            if request.header("origin").is_some() {
                response.set("access-control-expose-headers", "WWW-Authenticate");
            }
        }),
    ),
    animal(
        "challenge-hidden",
        "hides WWW-Authenticate from pages",
        "cors-exposes-www-authenticate",
        HTTP,
        BOTH,
        Twist::Guarded(|request, response| {
            if request.header("origin").is_some() {
                response.set("access-control-expose-headers", "Mcp-Session-Id");
            }
        }),
    ),
    animal(
        "errors-unreadable",
        "lets pages read results, and no refusals",
        "cors-error-response-allows-origin",
        WEB,
        BOTH,
        Twist::Response(|_, response| {
            if response.status >= 400 {
                response.remove("access-control-allow-origin");
            }
        }),
    ),
    animal(
        "credentials-for-all",
        "allows every page, with credentials",
        "cors-credentials-need-known-origin",
        WEB,
        BOTH,
        Twist::Response(|request, response| {
            if request.header("origin").is_some() {
                response.set("access-control-allow-origin", "*");
                response.set("access-control-allow-credentials", "true");
            }
        }),
    ),
];
