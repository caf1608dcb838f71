//! Whether web pages can use a server: judged if requested, or if the server responds as if web pages were meant to use it.
//! Source: the Fetch standard, CORS protocol.

use super::http::{evidence, is_success};
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{Attempt, ConversationView, HttpExchange};
use mcproof_analysis::wording::excerpt;
use mcproof_protocol::Revision;

const FETCH: &[RequirementSource] = &[RequirementSource {
    revisions: revisions::ALL,
    level: RequirementLevel::Must,
    source: "https://fetch.spec.whatwg.org/#http-cors-protocol",
}];

const EXPOSED: &str = "https://fetch.spec.whatwg.org/#http-access-control-expose-headers";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "cors-preflight-needs-no-credentials",
        area: Area::Cors,
        requirement: "a preflight without credentials gets a success status and `Access-Control-Allow-Origin`",
        sources: FETCH,
        on: AppliesTo::Web,
        judge: Judge::Each(preflight_is_open),
        why: "browsers send a preflight before they post JSON, never with a token; if it is refused, the page gets an error without a reason",
        remedy: "respond to OPTIONS with 204 and the CORS headers, before authorization is checked",
        sdks: &[
            ("TypeScript", "`app.use(cors({ origin, exposedHeaders: ['Mcp-Session-Id', 'WWW-Authenticate'] }))` before everything else"),
            ("Python", "Starlette's `CORSMiddleware` as the outermost one"),
        ],
        ..Rule::DEFAULT
    },
    Rule {
        id: "cors-preflight-allows-methods",
        area: Area::Cors,
        requirement: "a preflight that lists methods allows POST",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Should,
            source: "https://fetch.spec.whatwg.org/#http-access-control-allow-methods",
        }],
        on: AppliesTo::Web,
        judge: Judge::Each(preflight_allows_methods),
        why: "browsers let POST pass in any case, but a list without it is probably wrong, and proxies may enforce it",
        remedy: "respond with `Access-Control-Allow-Methods: GET, POST, DELETE`",
        sdks: &[("TypeScript", "`cors({ methods: ['GET', 'POST', 'DELETE'] })`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "cors-preflight-allows-delete",
        area: Area::Cors,
        requirement: "a preflight allows DELETE if the server has sessions that a DELETE ends",
        sources: &[RequirementSource {
            revisions: revisions::SESSIONS,
            level: RequirementLevel::Must,
            source: "https://fetch.spec.whatwg.org/#cors-preflight-fetch",
        }],
        on: AppliesTo::Http,
        judge: Judge::Each(preflight_allows_delete),
        why: "the browser does not send the request, so that each page leaves its session behind",
        remedy: "respond with `Access-Control-Allow-Methods: GET, POST, DELETE`",
        sdks: &[("TypeScript", "`cors({ methods: ['GET', 'POST', 'DELETE'] })`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "cors-preflight-allows-headers",
        area: Area::Cors,
        requirement: "a preflight allows every header that a client sends",
        sources: FETCH,
        on: AppliesTo::Web,
        judge: Judge::Each(preflight_allows_headers),
        why: "if one header is not allowed, the browser does not send the request",
        remedy: "list the headers of the protocol in `Access-Control-Allow-Headers`, or repeat those that the preflight requests",
        sdks: &[("TypeScript", "`cors()` repeats what is asked for, unless `allowedHeaders` is set")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "cors-response-allows-origin",
        area: Area::Cors,
        requirement: "a response to a page names its origin in `Access-Control-Allow-Origin`",
        sources: FETCH,
        on: AppliesTo::Web,
        judge: Judge::Each(answer_allows_origin),
        why: "the request is executed, but the page cannot read the response",
        remedy: "set the header on every response, not only on the preflight",
        ..Rule::DEFAULT
    },
    Rule {
        id: "cors-exposes-session-id",
        area: Area::Cors,
        requirement: "a response with a session id lets pages read the id",
        sources: &[RequirementSource { revisions: revisions::SESSIONS, level: RequirementLevel::Must, source: EXPOSED }],
        on: AppliesTo::Http,
        judge: Judge::Each(exposes_session_id),
        why: "a page that cannot read the id sends its next request without it, and is refused",
        remedy: "set `Access-Control-Expose-Headers: Mcp-Session-Id` on the responses, not only on the preflight",
        sdks: &[
            ("TypeScript", "`cors({ exposedHeaders: ['Mcp-Session-Id'] })`"),
            ("Python", "`CORSMiddleware(expose_headers=[\"Mcp-Session-Id\"])`"),
        ],
        ..Rule::DEFAULT
    },
    Rule {
        id: "cors-exposes-www-authenticate",
        area: Area::Cors,
        requirement: "a 401 with `WWW-Authenticate` lets pages read this header",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Must, source: EXPOSED }],
        on: AppliesTo::Web,
        judge: Judge::Each(exposes_www_authenticate),
        why: "a page that cannot read the header cannot find out where to sign in",
        remedy: "list `WWW-Authenticate` in `Access-Control-Expose-Headers` of the 401",
        sdks: &[("TypeScript", "`cors({ exposedHeaders: ['Mcp-Session-Id', 'WWW-Authenticate'] })`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "cors-error-response-allows-origin",
        area: Area::Cors,
        requirement: "an error response names the origin of the page in `Access-Control-Allow-Origin`, too",
        sources: FETCH,
        on: AppliesTo::Web,
        judge: Judge::Each(error_answers_allow_origin),
        why: "the page gets a network error instead of the status, and cannot start a new session or sign in",
        remedy: "put the CORS middleware before everything that writes error responses",
        ..Rule::DEFAULT
    },
    Rule {
        id: "cors-credentials-need-known-origin",
        area: Area::Cors,
        requirement: "credentials are allowed only for known origins",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Security,
            source: "https://fetch.spec.whatwg.org/#cors-protocol-and-credentials",
        }],
        on: AppliesTo::Web,
        judge: Judge::Each(credentials_are_not_for_all),
        why: "any page that a user visits can call the tools with the user's cookies, and read the responses",
        remedy: "leave out `Access-Control-Allow-Credentials`, or allow only listed origins",
        sdks: &[("TypeScript", "`cors({ origin: [...], credentials: true })`, never `origin: true` with credentials")],
        ..Rule::DEFAULT
    },
];

/// The preflight of a page, if pages concern this server.
fn preflight<'a, 'c>(conversation: &'c ConversationView<'a>) -> Result<(Attempt<'a, 'c>, &'c HttpExchange<'a>), Judgment> {
    let Some(attempt) = conversation.probe("preflight") else { return Err(Judgment::NotTried("no preflight was sent".into())) };
    let Some(http) = attempt.http.filter(|http| http.response.is_some()) else {
        return Err(Judgment::Untestable("the preflight got no response".into()));
    };
    let response = http.response.map(|response| response.headers).unwrap_or_default();
    let welcomes_pages = response.iter().any(|(name, _)| name.starts_with("access-control-allow-"));
    match attempt.probed.subject.is_some() || welcomes_pages {
        true => Ok((attempt, http)),
        false => Err(Judgment::NotApplicable("browser checks were not requested, and the server does not respond to preflights".into())),
    }
}

/// Whether a response lets the page that asked for it in.
fn allows_origin(http: &HttpExchange<'_>) -> bool {
    let allowed = http.header("access-control-allow-origin").map(str::trim);
    allowed.is_some_and(|allowed| allowed == "*" || Some(allowed) == http.request_header("origin"))
}

/// Names in a list of a header, in lower case.
fn names(http: &HttpExchange<'_>, header: &str) -> Vec<String> {
    let values = http.response.map(|response| response.headers).unwrap_or_default().iter();
    let values = values.filter(|(name, _)| name.eq_ignore_ascii_case(header));
    values.flat_map(|(_, value)| value.split(',')).map(|name| name.trim().to_ascii_lowercase()).filter(|name| !name.is_empty()).collect()
}

fn allowed_origin(http: &HttpExchange<'_>) -> String {
    http.header("access-control-allow-origin").map_or_else(
        || "no `Access-Control-Allow-Origin`".to_owned(),
        |origin| format!("`Access-Control-Allow-Origin: {}`", excerpt(origin)),
    )
}

/// MCP asks no server to serve pages: what is broken for them is an error only if browser checks were requested.
fn broken(conversation: &ConversationView<'_>, message: String, attempt: &Attempt<'_, '_>) -> Judgment {
    let is_asked_for = conversation.probe("preflight").is_some_and(|preflight| preflight.probed.subject.is_some());
    let tolerance =
        (!is_asked_for).then_some("no requirement of MCP asks a server to serve web pages; with --browser it counts as an error");
    Judgment::Broken(vec![Violation { tolerance, ..Violation::new(message, evidence(attempt)) }])
}

fn preflight_is_open(conversation: &ConversationView<'_>) -> Judgment {
    let (attempt, http) = match preflight(conversation) {
        Ok(found) => found,
        Err(judgment) => return judgment,
    };
    match http.status() {
        Some(status) if !is_success(status) => broken(conversation, format!("a preflight got status {status}"), &attempt),
        _ if !allows_origin(http) => broken(conversation, format!("the response to a preflight has {}", allowed_origin(http)), &attempt),
        _ => Judgment::Pass,
    }
}

/// A preflight that is open, so that it is worth looking at what it allows.
fn open_preflight<'a, 'c>(conversation: &'c ConversationView<'a>) -> Result<(Attempt<'a, 'c>, &'c HttpExchange<'a>), Judgment> {
    let (attempt, http) = preflight(conversation)?;
    match http.status().is_some_and(is_success) && allows_origin(http) {
        true => Ok((attempt, http)),
        false => Err(Judgment::Untestable("the preflight was refused: see cors-preflight-needs-no-credentials".into())),
    }
}

fn has_sessions(conversation: &ConversationView<'_>) -> bool {
    conversation.exchanges.values().any(|exchange| exchange.header("mcp-session-id").is_some())
}

fn preflight_allows_methods(conversation: &ConversationView<'_>) -> Judgment {
    let (attempt, http) = match open_preflight(conversation) {
        Ok(found) => found,
        Err(judgment) => return judgment,
    };
    let allowed = names(http, METHODS);
    match allowed.is_empty() || allows(&allowed, "post") {
        true => Judgment::Pass,
        false => broken(conversation, "the preflight does not allow POST".into(), &attempt),
    }
}

const METHODS: &str = "access-control-allow-methods";

fn allows(methods: &[String], method: &str) -> bool {
    methods.iter().any(|known| known == method || known == "*")
}

fn preflight_allows_delete(conversation: &ConversationView<'_>) -> Judgment {
    let (attempt, http) = match open_preflight(conversation) {
        Ok(found) => found,
        Err(judgment) => return judgment,
    };
    let ends_sessions = has_sessions(conversation) && conversation.probe("delete").and_then(|attempt| attempt.status()) != Some(405);
    match ends_sessions {
        false => Judgment::NotApplicable("no session is ended by a DELETE".into()),
        true if allows(&names(http, METHODS), "delete") => Judgment::Pass,
        true => broken(conversation, "the preflight does not allow DELETE".into(), &attempt),
    }
}

fn preflight_allows_headers(conversation: &ConversationView<'_>) -> Judgment {
    let (attempt, http) = match open_preflight(conversation) {
        Ok(found) => found,
        Err(judgment) => return judgment,
    };
    let revision = conversation.conversation.revision.as_str();
    let is_modern = conversation.is_modern();
    let wants_token = conversation.exchanges.values().any(|exchange| exchange.status() == Some(401));
    let needed = [
        ("content-type", true),
        // `*` does not stand for this one.
        ("authorization", wants_token),
        ("mcp-protocol-version", Revision::at(revision).has_version_header()),
        ("mcp-session-id", !is_modern && has_sessions(conversation)),
        ("mcp-method", is_modern),
        ("mcp-name", is_modern),
    ];
    let allowed = names(http, "access-control-allow-headers");
    let is_allowed = |name: &str| allowed.iter().any(|known| known == name || (known == "*" && name != "authorization"));
    let missing: Vec<String> =
        needed.into_iter().filter(|(name, is_needed)| *is_needed && !is_allowed(name)).map(|(name, _)| format!("`{name}`")).collect();
    if !missing.is_empty() {
        return broken(conversation, format!("the preflight does not allow {}", missing.join(", ")), &attempt);
    }
    parameters_are_allowed(conversation)
}

/// The preflight of a call whose arguments go into headers: its subject names them.
fn parameters_are_allowed(conversation: &ConversationView<'_>) -> Judgment {
    let Some(attempt) = conversation.probe("preflight-params") else { return Judgment::Pass };
    let Some(http) = attempt.http else { return Judgment::Untestable("the preflight of a tool's headers got no response".into()) };
    if let Some(status) = http.status().filter(|status| !is_success(*status)) {
        return broken(conversation, format!("the preflight that names {} got status {status}", excerpt(attempt.subject())), &attempt);
    }
    let allowed = names(http, "access-control-allow-headers");
    let subject = attempt.subject().to_owned();
    let is_missing = |name: &&str| !allowed.iter().any(|known| known == name || known == "*");
    let missing: Vec<String> = subject.split(", ").filter(is_missing).map(|name| format!("`{}`", excerpt(name))).collect();
    match !missing.is_empty() {
        true => broken(conversation, format!("the preflight does not allow {}", missing.join(", ")), &attempt),
        false => Judgment::Pass,
    }
}

fn answer_allows_origin(conversation: &ConversationView<'_>) -> Judgment {
    if let Err(judgment) = open_preflight(conversation) {
        return judgment;
    }
    let answers: Vec<_> = conversation.probes("page").filter(|attempt| attempt.status().is_some_and(is_success)).collect();
    let wrong = answers.iter().find_map(|attempt| attempt.http.filter(|http| !allows_origin(http)).map(|http| (attempt, http)));
    match (answers.is_empty(), wrong) {
        (true, _) => Judgment::Untestable("no request of a page was served".into()),
        (false, None) => Judgment::Pass,
        (false, Some((attempt, http))) => broken(conversation, format!("the response to a page has {}", allowed_origin(http)), attempt),
    }
}

/// Whether pages may read this header of a response.
fn exposes(http: &HttpExchange<'_>, name: &str) -> bool {
    names(http, "access-control-expose-headers").iter().any(|known| known == name || known == "*")
}

fn exposes_session_id(conversation: &ConversationView<'_>) -> Judgment {
    if let Err(judgment) = open_preflight(conversation) {
        return judgment;
    }
    let opened = conversation.probes("page").find(|attempt| attempt.http.is_some_and(|http| http.header("mcp-session-id").is_some()));
    match opened {
        None => Judgment::NotApplicable("no session was opened for a page".into()),
        Some(attempt) if attempt.http.is_some_and(|http| exposes(http, "mcp-session-id")) => Judgment::Pass,
        Some(attempt) => broken(conversation, "the response to a page does not expose `Mcp-Session-Id`".into(), &attempt),
    }
}

fn exposes_www_authenticate(conversation: &ConversationView<'_>) -> Judgment {
    if let Err(judgment) = open_preflight(conversation) {
        return judgment;
    }
    let is_challenge = |http: &HttpExchange<'_>| http.status() == Some(401) && http.header("www-authenticate").is_some();
    match conversation.probe("page-anonymous").filter(|attempt| attempt.http.is_some_and(is_challenge)) {
        None => Judgment::NotApplicable("the server requires no authorization of pages".into()),
        Some(attempt) if attempt.http.is_some_and(|http| exposes(http, "www-authenticate")) => Judgment::Pass,
        Some(attempt) => broken(conversation, "the 401 for a page does not expose `WWW-Authenticate`".into(), &attempt),
    }
}

fn error_answers_allow_origin(conversation: &ConversationView<'_>) -> Judgment {
    if let Err(judgment) = open_preflight(conversation) {
        return judgment;
    }
    let refusals = ["page-error", "page-anonymous"].into_iter().flat_map(|probe| conversation.probes(probe));
    let refusals: Vec<_> = refusals.filter(|attempt| attempt.status().is_some_and(|status| status >= 400)).collect();
    let wrong = refusals.iter().find_map(|attempt| attempt.http.filter(|http| !allows_origin(http)).map(|http| (attempt, http)));
    match (refusals.is_empty(), wrong) {
        (true, _) => Judgment::Untestable("no request of a page was refused".into()),
        (false, None) => Judgment::Pass,
        (false, Some((attempt, http))) => broken(
            conversation,
            format!("the status {} for a page has {}", http.status().unwrap_or_default(), allowed_origin(http)),
            attempt,
        ),
    }
}

fn credentials_are_not_for_all(conversation: &ConversationView<'_>) -> Judgment {
    if let Err(judgment) = preflight(conversation) {
        return judgment;
    }
    let Some(attempt) = conversation.probe("preflight-evil") else {
        return Judgment::Untestable("no request of a foreign page was sent".into());
    };
    let Some(http) = attempt.http.filter(|http| http.response.is_some()) else {
        return Judgment::Untestable("a foreign page got no response".into());
    };
    let with_credentials = http.header("access-control-allow-credentials").is_some_and(|value| value.trim() == "true");
    match with_credentials && allows_origin(http) {
        false => Judgment::Pass,
        true => {
            let origin = http.request_header("origin").unwrap_or_default();
            broken(conversation, format!("{origin} gets {} and `Access-Control-Allow-Credentials: true`", allowed_origin(http)), &attempt)
        }
    }
}
