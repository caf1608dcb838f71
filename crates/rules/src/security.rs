//! Which clients may access a server, and what its errors disclose.
//! Source: basic/transports, security warning.

use super::connections::is_loopback;
use super::http::{evidence, is_served, is_success, told};
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{Attempt, ConversationView};
use mcproof_analysis::wording::excerpt;
use mcproof_protocol::Revision;
use mcproof_record::FrameId;
use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;

const WARNING: &[RequirementSource] = &[
    RequirementSource { revisions: revisions::LEGACY, level: RequirementLevel::Must, source: "basic/transports#security-warning" },
    RequirementSource {
        revisions: revisions::MODERN,
        level: RequirementLevel::Must,
        source: "basic/transports/streamable-http#security-%26-endpoint",
    },
];

const PRACTICE: &[RequirementSource] = &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Security, source: "" }];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "origin-is-validated",
        area: Area::Security,
        requirement: "a request with a foreign `Origin` gets status 403",
        sources: WARNING,
        on: AppliesTo::Web,
        tolerance: Some("most deployed servers do not comply"),
        judge: Judge::Each(origin_is_validated),
        why: "with DNS rebinding, a web page in any browser on the machine calls the tools of a local server and reads the responses",
        remedy: "compare `Origin`, if present, with the expected origins, and respond to others (including `null`) with 403",
        sdks: &[
            ("TypeScript", "`enableDnsRebindingProtection: true` with `allowedOrigins` in the options of the transport"),
            ("Python", "`TransportSecuritySettings(enable_dns_rebinding_protection=True, allowed_origins=[...])`"),
            ("rmcp", "`StreamableHttpServerConfig` with `allowed_origins`"),
        ],
    },
    Rule {
        id: "host-is-validated",
        area: Area::Security,
        requirement: "a local server refuses requests with a foreign `Host`",
        sources: PRACTICE,
        on: AppliesTo::Web,
        tolerance: Some("the specification requires only `Origin`, and many servers check neither"),
        judge: Judge::Each(host_is_validated),
        why: "browsers send no `Origin` with a same-origin GET; after DNS rebinding, only the foreign name in `Host` shows the attack",
        remedy: "compare `Host` with the names and the port of the server, and respond to others with 403",
        sdks: &[
            ("TypeScript", "`enableDnsRebindingProtection: true` with `allowedHosts`, or `createMcpExpressApp()`"),
            ("Python", "`TransportSecuritySettings(enable_dns_rebinding_protection=True, allowed_hosts=[...])`"),
        ],
    },
    Rule {
        id: "origin-absent-is-accepted",
        area: Area::Security,
        requirement: "a request without `Origin` is served",
        sources: WARNING,
        on: AppliesTo::Web,
        judge: Judge::Each(origin_absent_is_accepted),
        why: "only browsers send the header, so every other client is locked out",
        remedy: "check `Origin` only if it is present",
        ..Rule::DEFAULT
    },
    Rule {
        id: "errors-hide-stack-traces",
        area: Area::Security,
        requirement: "an error contains no stack trace",
        sources: PRACTICE,
        tolerance: Some("good practice, not a requirement of the specification"),
        judge: Judge::Each(errors_hide_stack_traces),
        why: "attackers look for paths, versions and the structure of the code, and a model wastes context on them",
        remedy: "log the stack trace, and send only the message",
        sdks: &[
            ("TypeScript", "express shows traces unless `NODE_ENV=production`; write an error handler"),
            ("FastMCP", "`FastMCP(mask_error_details=True)`"),
        ],
        ..Rule::DEFAULT
    },
    Rule {
        id: "errors-hide-secrets",
        area: Area::Security,
        requirement: "an error contains no passwords, keys or tokens",
        sources: PRACTICE,
        judge: Judge::Each(errors_hide_secrets),
        why: "errors go to the model, its provider, and every log in between",
        remedy: "replace error messages of libraries with your own",
        sdks: &[("FastMCP", "`FastMCP(mask_error_details=True)`")],
        ..Rule::DEFAULT
    },
];

fn origin_is_validated(conversation: &ConversationView<'_>) -> Judgment {
    if conversation.probe("plain").is_none() {
        return Judgment::NotTried("no request with an origin was sent".into());
    }
    if !is_served(conversation) {
        return Judgment::Untestable("even a request without an origin was refused, so refusals are not conclusive".into());
    }
    let foreign_origins =
        [("a foreign origin", "evil-origin"), ("the origin `null`", "null-origin"), ("the foreign origin", "lookalike-origin")];
    let tried: Vec<(String, Attempt<'_, '_>)> = foreign_origins
        .into_iter()
        .flat_map(|(what, probe)| conversation.probes(probe).map(move |attempt| (what, attempt)))
        .filter(|(_, attempt)| attempt.status().is_some())
        .map(|(what, attempt)| match attempt.probed.subject.as_deref() {
            Some(origin) if attempt.probed.probe == "lookalike-origin" => (format!("{what} `{origin}`"), attempt),
            _ => (what.to_owned(), attempt),
        })
        .collect();
    let opens_streams = conversation.probe("get").is_some_and(|attempt| attempt.status() == Some(200));
    // Earlier revisions do not specify the status.
    let has_status = Revision::at(&conversation.conversation.revision) >= Revision::V2025_11_25;
    let wrong: Vec<_> = tried
        .iter()
        .filter(|(_, attempt)| match attempt.status().unwrap_or_default() {
            403 => false,
            // It may be refused for what it is.
            status if attempt.subject() == "DELETE" => is_success(status),
            // Streams are optional, and may be refused for other reasons.
            400..500 if attempt.subject() == "GET" && conversation.is_over("http") && !opens_streams => false,
            400..500 => has_status,
            _ => true,
        })
        .collect();
    // Both methods and several names of this machine are tried; one of each is enough to report.
    let mut wrong = wrong;
    wrong.dedup_by(|later, earlier| later.1.probed.probe == earlier.1.probed.probe);
    let method = |attempt: &Attempt<'_, '_>| match attempt.subject() {
        "GET" => " of a GET",
        "DELETE" => " of a DELETE",
        _ => "",
    };
    let descriptions: Vec<String> =
        wrong.iter().map(|(what, attempt)| format!("{what}{} got {}", method(attempt), told(attempt))).collect();
    let frames = wrong.iter().flat_map(|(_, attempt)| evidence(attempt));
    let violation = (!wrong.is_empty()).then(|| Violation::new(descriptions.join(", and "), frames));
    Judgment::of(violation.into_iter().collect(), tried.len(), "no request with an origin got a response")
}

fn host_is_validated(conversation: &ConversationView<'_>) -> Judgment {
    let Some(url) = conversation.probe("plain").and_then(|plain| plain.http).map(|http| http.url) else {
        return Judgment::NotTried("no request with a foreign host was sent".into());
    };
    if !is_loopback(url) {
        return Judgment::NotApplicable("the server is not local, so checking its name is up to its proxy".into());
    }
    if !is_served(conversation) {
        return Judgment::Untestable("even a plain request was refused, so refusals are not conclusive".into());
    }
    let tried: Vec<Attempt<'_, '_>> = conversation.probes("evil-host").filter(|attempt| attempt.status().is_some()).collect();
    let wrong = tried.iter().find(|attempt| attempt.status().is_some_and(is_success));
    let violation = wrong.map(|attempt| {
        let host = attempt.http.and_then(|http| http.request_header("host")).unwrap_or_default();
        // The port is the server's own, and another one each time.
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        Violation::new(format!("a request with `Host: {host}` got {}", told(attempt)), evidence(attempt))
    });
    Judgment::of(violation.into_iter().collect(), tried.len(), "no request with a foreign host got a response")
}

fn origin_absent_is_accepted(conversation: &ConversationView<'_>) -> Judgment {
    let Some(plain) = conversation.probe("plain") else { return Judgment::NotTried("no plain request was sent".into()) };
    let own = conversation.probe("own-origin");
    match (plain.status(), own.as_ref().and_then(Attempt::status)) {
        (Some(status), _) if is_success(status) => Judgment::Pass,
        (Some(_), Some(status)) if is_success(status) => {
            let message =
                format!("a request without `Origin` got {}, but with the server's own origin it got status {status}", told(&plain));
            Judgment::Broken(vec![Violation::new(message, evidence(&plain).into_iter().chain(own.iter().flat_map(evidence)))])
        }
        _ => Judgment::Untestable("requests were refused with and without an origin".into()),
    }
}

/// The error messages of the server: errors, results with `isError`, and bodies with an error status.
fn errors(conversation: &ConversationView<'_>) -> Vec<(FrameId, String)> {
    let mut errors = Vec::new();
    for wire_message in conversation.from_server() {
        let is_tool_error = wire_message.value.pointer("/result/isError") == Some(&Value::Bool(true));
        let part = wire_message.value.get("error").or_else(|| wire_message.value.get("result").filter(|_| is_tool_error));
        let mut text = String::new();
        if let Some(part) = part {
            collect(part, &mut text);
            errors.push((wire_message.frame.id, text));
        }
    }
    for exchange in conversation.exchanges.values().filter(|exchange| exchange.status().is_some_and(|status| status >= 400)) {
        if let Some((frame, body)) = exchange.body.filter(|(frame, _)| !errors.iter().any(|(known, _)| known == &frame.id)) {
            errors.push((frame.id, String::from_utf8_lossy(body).into_owned()));
        }
    }
    errors
}

/// All texts in a value, one per line.
pub(super) fn collect(value: &Value, text: &mut String) {
    match value {
        Value::String(found) => {
            text.push_str(found);
            text.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, text)),
        Value::Object(members) => members.values().for_each(|member| collect(member, text)),
        _ => {}
    }
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("patterns of the program are valid")
}

/// Traces of Python, JavaScript, Go, Rust, the JVM, .NET, Ruby and PHP, also in pages of HTML.
static TRACES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"Traceback \(most recent call last\)",
        r#"(?m)^\s*File ".+", line \d+"#,
        r"(?m)(?:^|<br ?/?>|\\n)(?:\s|&nbsp;)*at [^\n<]{1,200}:\d+:\d+\)?",
        r"goroutine \d+ \[\w+",
        r"panicked at .{0,200}\.rs:\d+",
        r"stack backtrace:",
        r"(?m)^\s*at [\w$.<>]+\([\w$]+\.(?:java|kt|scala|groovy):\d+\)",
        r"(?m)^\s*at .{1,200} in .{1,200}:line \d+",
        r"\.rb:\d+:in [`']",
        r"#\d+ .{1,200}\.php\(\d+\)",
    ]
    .iter()
    .map(|text| pattern(text))
    .collect()
});

fn trace(text: &str) -> Option<&str> {
    TRACES.iter().find_map(|pattern| pattern.find(text)).map(|found| found.as_str().trim())
}

/// Patterns of secrets, each with its name.
static SECRETS: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    [
        ("a URL with a password", r"\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@]+:[^\s/@]{3,}@"),
        ("an API key", r"\bsk-[A-Za-z0-9_-]{20,}"),
        ("an API key", r"\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}"),
        ("a token of GitHub", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})"),
        ("a key of AWS", r"\bAKIA[0-9A-Z]{16}\b"),
        ("a key of Google", r"\bAIza[0-9A-Za-z_-]{35}"),
        ("a token of Slack", r"\bxox[abeprs]-[A-Za-z0-9-]{10,}"),
        ("a private key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
        ("a JSON web token", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
        ("a password", r"(?i)\b(?:password|passwd|pwd)=[^\s;&'\x22<>*\[]{4,}"),
    ]
    .into_iter()
    .map(|(what, text)| (what, pattern(text)))
    .collect()
});

/// The secret in a text: its name, and where it begins.
pub(super) fn secret(text: &str) -> Option<(&'static str, &str)> {
    let is_empty = |found: &str| {
        ["undefined", "null", "none", "true", "false", "redacted"].iter().any(|word| found.to_ascii_lowercase().ends_with(word))
    };
    SECRETS.iter().find_map(|(what, pattern)| {
        let found = pattern.find_iter(text).map(|found| found.as_str()).find(|found| !is_empty(found))?;
        Some((*what, found))
    })
}

fn errors_hide_stack_traces(conversation: &ConversationView<'_>) -> Judgment {
    let errors = errors(conversation);
    let wrong: Vec<_> = errors.iter().filter_map(|(frame, text)| Some((*frame, trace(text)?, text))).collect();
    let violation = wrong.first().map(|(_, found, _)| {
        let more = if wrong.len() > 1 { format!(" (and {} more)", wrong.len() - 1) } else { String::new() };
        let violation = Violation::new(
            format!("an error contains a stack trace: `{}`{more}", excerpt(found)),
            wrong.iter().take(3).map(|(frame, ..)| *frame),
        );
        // The page of Express's default error handler, which is independent of MCP.
        let is_express = wrong.iter().all(|(.., text)| text.contains("&nbsp;"));
        let remedy =
            is_express.then(|| "set `NODE_ENV=production` in the environment of the server, or write an Express error handler".to_owned());
        Violation { remedy, ..violation }
    });
    Judgment::of(violation.into_iter().collect(), errors.len(), "the server sent no error")
}

fn errors_hide_secrets(conversation: &ConversationView<'_>) -> Judgment {
    let errors = errors(conversation);
    let wrong: Vec<_> = errors.iter().filter_map(|(frame, text)| Some((*frame, secret(text)?))).collect();
    let violation = wrong.first().map(|(_, (what, found))| {
        // Enough to find the secret, but not enough to use it.
        let beginning: String = found.chars().take(8).collect();
        Violation::new(format!("an error contains {what}: `{}…`", excerpt(beginning)), wrong.iter().take(3).map(|(frame, _)| *frame))
    });
    Judgment::of(violation.into_iter().collect(), errors.len(), "the server sent no error")
}

#[cfg(test)]
mod tests {
    use super::{secret, trace};

    #[test]
    fn stack_traces_are_distinguished_from_messages() {
        let check = |text: &str, expected: bool| assert_eq!(trace(text).is_some(), expected, "{text}");
        check("Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>", true);
        check("Error: no\n    at Server.handle (/srv/dist/server.js:112:15)", true);
        check(
            "SyntaxError: Unexpected end<br> &nbsp; &nbsp;at JSON.parse (&lt;anonymous&gt;)<br> &nbsp; &nbsp;at parse (/srv/node_modules/body-parser/lib/types/json.js:92:19)",
            true,
        );
        check("goroutine 1 [running]:", true);
        check("thread 'main' panicked at src/main.rs:4:5", true);
        check("java.lang.NullPointerException\n\tat com.example.Tool.call(Tool.java:42)", true);
        check("   at Shop.Tools.Add(Int32 a) in C:\\src\\Tools.cs:line 12", true);
        check("app.rb:12:in `call'", true);
        check("#0 /srv/app.php(12): call()", true);
        check("invalid arguments at path /a: expected a number", false);
        check("unknown tool", false);
        check("meet me at the gate at 12:30:00", false);
        check("", false);
    }

    #[test]
    fn secrets_are_distinguished_from_names_and_placeholders() {
        let check = |text: &str, expected: Option<&str>| assert_eq!(secret(text).map(|(what, _)| what), expected, "{text}");
        check("postgres://app:correct-horse@db:5432/app", Some("a URL with a password"));
        check("invalid key sk-live-4f9bD81kQmZr7TtXw2Yc0PqL", Some("an API key"));
        check("Server=db;User=app;Password=hunter2!;", Some("a password"));
        check("-----BEGIN RSA PRIVATE KEY-----", Some("a private key"));
        check("AKIAIOSFODNN7EXAMPLE is no key", Some("a key of AWS"));
        check("password=undefined", None);
        check("pwd=[redacted]", None);
        check("password: required", None);
        check("http://127.0.0.1:3000/mcp", None);
        check("see https://example.com/a:b@c", None);
        check("the task-list is empty", None);
    }
}
