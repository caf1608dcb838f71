//! MCP Apps, the extension `io.modelcontextprotocol/ui`: tools that name a page which a host shows with their results.
//! Source: ext-apps, 2026-01-26. A host that does not know the extension sees plain tools and resources.

use super::flaws::{Flaw, told};
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::{Attempt, AttemptOutcome, ConversationView};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcproof_analysis::named;
use mcproof_analysis::probes::{APP_SCHEME, READ_APP, page_of};
use mcproof_analysis::wording::excerpt;
use mcproof_protocol::methods;
use serde_json::Value;
use std::collections::BTreeSet;

/// Names the extension.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/ui";

const MIME_TYPE: &str = "text/html;profile=mcp-app";

macro_rules! page {
    ($anchor:literal) => {
        concat!("https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/2026-01-26/apps.mdx#", $anchor)
    };
}

const CONTENT: &[RequirementSource] =
    &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Must, source: page!("content-requirements") }];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "app-uri-is-ui",
        area: Area::Apps,
        requirement: "the app page that a tool names in `_meta.ui.resourceUri` has a URI that begins with `ui://`",
        sources: CONTENT,
        judge: Judge::Together(uris_are_ui),
        why: "hosts accept no other URI for an app page, and show only the text of the result",
        remedy: "register the page with a `ui://` URI, and use that URI in the tool",
        sdks: &[(
            "TypeScript",
            "`registerAppResource` and `registerAppTool` of `@modelcontextprotocol/ext-apps/server`, with one constant for both",
        )],
        ..Rule::DEFAULT
    },
    Rule {
        id: "app-page-is-readable",
        area: Area::Apps,
        requirement: "`resources/read` returns the app page that a tool names",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Must, source: page!("behavior") }],
        judge: Judge::Each(page_can_be_read),
        why: "the host has no page to show, and some hosts show an empty frame instead of the result",
        remedy: "register the page as a resource with the URI that the tool names; it does not have to be listed",
        ..Rule::DEFAULT
    },
    Rule {
        id: "app-page-has-mime-type",
        area: Area::Apps,
        requirement: "the contents of an app page have the MIME type `text/html;profile=mcp-app`",
        sources: CONTENT,
        judge: Judge::Each(page_has_mime_type),
        why: "hosts check the type before they show a page of a server, and refuse any other type",
        remedy: "set `mimeType` in the contents that `resources/read` returns, not only in the list",
        sdks: &[("TypeScript", "`RESOURCE_MIME_TYPE` of `@modelcontextprotocol/ext-apps/server`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "app-page-is-html",
        area: Area::Apps,
        requirement: "an app page is an HTML5 document: UTF-8 that begins with `<!doctype html>`",
        sources: CONTENT,
        judge: Judge::Each(page_is_html),
        why: "without the doctype, browsers use quirks mode; a page that is not HTML is shown as text",
        remedy: "send the complete page; put a fragment into a document",
        ..Rule::DEFAULT
    },
    Rule {
        id: "app-tool-has-content",
        area: Area::Apps,
        requirement: "a tool with an app page returns `content` as well",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Must, source: page!("server-behavior") }],
        judge: Judge::Together(tools_have_content),
        why: "the model reads `content` and not the page, and hosts without the extension show nothing else",
        remedy: "return a text block that describes what the page shows",
        ..Rule::DEFAULT
    },
    Rule {
        id: "app-tools-need-declared-extension",
        area: Area::Apps,
        requirement: "tools with an app page are offered only to clients that declare the extension",
        sources: &[RequirementSource { revisions: revisions::ALL, level: RequirementLevel::Should, source: page!("server-behavior") }],
        tolerance: Some("a client without the extension ignores `_meta.ui`, so the same tool works for both"),
        judge: Judge::Together(tools_are_negotiated),
        why: "clients that cannot show the page get a tool that works only with it",
        remedy: "check whether the client declares `io.modelcontextprotocol/ui`; if not, leave out `_meta.ui` and tools that work only with a page",
        sdks: &[("TypeScript", "`getUiCapability(clientCapabilities)` of `@modelcontextprotocol/ext-apps/server`")],
        ..Rule::DEFAULT
    },
];

const NO_APPS: &str = "no tool names a page in `_meta.ui.resourceUri`";

fn name(tool: &Value) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn uris_are_ui(conversations: &[&ConversationView<'_>]) -> Judgment {
    let (mut seen, mut flaws) = (0, Vec::new());
    for (position, conversation) in conversations.iter().enumerate() {
        for (tool, frame) in conversation.tools() {
            let Some(page) = page_of(tool) else { continue };
            seen += 1;
            let detail = match page.as_str() {
                Some(uri) if uri.starts_with(APP_SCHEME) => continue,
                Some(uri) => format!("the page is `{}`", excerpt(uri)),
                None => "the URI of the page is not a string".to_owned(),
            };
            flaws.push(Flaw { subject: name(tool).to_owned(), detail, frames: vec![frame], conversation: position });
        }
    }
    match seen {
        0 => Judgment::NotApplicable(NO_APPS.into()),
        _ => Judgment::from_violations(told("tool", "tools", flaws)),
    }
}

/// Whether the server has apps, as far as a conversation tells.
fn without_apps(conversation: &ConversationView<'_>) -> Judgment {
    let lists = || conversation.requests().any(|(request, answer)| request.method() == Some(methods::TOOLS_LIST) && answer.is_some());
    match conversation.tools().iter().any(|(tool, _)| page_of(tool).is_some()) {
        true => Judgment::NotTried("no app page was read".into()),
        false if lists() => Judgment::NotApplicable(NO_APPS.into()),
        false => Judgment::NotTried("no tools were listed".into()),
    }
}

fn page_can_be_read(conversation: &ConversationView<'_>) -> Judgment {
    let attempt: Vec<Attempt<'_, '_>> = conversation.probes(READ_APP).collect();
    if attempt.is_empty() {
        return without_apps(conversation);
    }
    let is_empty = |attempt: &Attempt<'_, '_>| match attempt.answer {
        AttemptOutcome::Error { .. } => true,
        AttemptOutcome::Result { value, .. } => value.get("contents").and_then(Value::as_array).is_some_and(Vec::is_empty),
        _ => false,
    };
    let answered =
        attempt.iter().filter(|attempt| matches!(attempt.answer, AttemptOutcome::Result { .. } | AttemptOutcome::Error { .. })).count();
    let missing: Vec<_> = attempt.iter().filter(|attempt| is_empty(attempt)).collect();
    let violation = missing.first().map(|first| {
        let names: Vec<String> = missing.iter().map(|attempt| attempt.subject().to_owned()).collect();
        let got = if let AttemptOutcome::Result { .. } = first.answer { "no contents".to_owned() } else { first.answer.describe() };
        Violation::new(format!("reading {}, which a tool names, got {got}", named(&names)), first.frames())
    });
    Judgment::of(violation.into_iter().collect(), answered, "no app page was read in time")
}

/// The contents of pages that were read, and what is wrong with one of them.
fn flaw_of_pages(conversation: &ConversationView<'_>, flaw: impl Fn(&Value) -> Option<String>) -> Judgment {
    let attempt: Vec<Attempt<'_, '_>> = conversation.probes(READ_APP).collect();
    if attempt.is_empty() {
        return without_apps(conversation);
    }
    let (mut seen, mut violations) = (0, Vec::new());
    for attempt in &attempt {
        let AttemptOutcome::Result { value, .. } = attempt.answer else { continue };
        for content in value.get("contents").and_then(Value::as_array).into_iter().flatten() {
            seen += 1;
            let flaw =
                flaw(content).map(|flaw| Violation::new(format!("the page `{}` {flaw}", excerpt(attempt.subject())), attempt.frames()));
            violations.extend(flaw);
        }
    }
    violations.truncate(MOST_TOLD);
    Judgment::of(violations, seen, "no app page was read")
}

const MOST_TOLD: usize = 3;

fn page_has_mime_type(conversation: &ConversationView<'_>) -> Judgment {
    flaw_of_pages(conversation, |content| match content.get("mimeType").and_then(Value::as_str) {
        Some(found) if is_type_of_apps(found) => None,
        Some(found) => Some(format!("has the MIME type `{}`", excerpt(found))),
        None => Some("has no MIME type".to_owned()),
    })
}

/// Type and parameters are compared as media types are: without regard to case and to blanks around the semicolon.
fn is_type_of_apps(found: &str) -> bool {
    let plain: String = found.chars().filter(|one| !one.is_whitespace() && *one != '"').collect();
    let (kind, parameters) = plain.split_once(';').unwrap_or((&plain, ""));
    let (known, profile) = MIME_TYPE.split_once(';').expect("the type has a parameter");
    kind.eq_ignore_ascii_case(known) && parameters.split(';').any(|parameter| parameter.eq_ignore_ascii_case(profile))
}

fn page_is_html(conversation: &ConversationView<'_>) -> Judgment {
    flaw_of_pages(conversation, |content| {
        let text = content.get("text").and_then(Value::as_str).map(|text| text.as_bytes().to_vec());
        // Invalid Base64 is reported by `content-is-base64`.
        let bytes = text.or_else(|| STANDARD.decode(content.get("blob")?.as_str()?).ok())?;
        let Ok(text) = std::str::from_utf8(&bytes) else { return Some("is not valid UTF-8".to_owned()) };
        match without_comments(text).get(..DOCTYPE.len()) {
            Some(start) if start.eq_ignore_ascii_case(DOCTYPE) => None,
            _ if text.trim().is_empty() => Some("is empty".to_owned()),
            _ => Some(format!("does not begin with `<!doctype html>`, but with `{}`", excerpt(text.trim_start()))),
        }
    })
}

const DOCTYPE: &str = "<!doctype html";

/// A document may have comments and blanks before its doctype (WHATWG HTML, writing HTML documents).
fn without_comments(text: &str) -> &str {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    while let Some(comment) = rest.strip_prefix("<!--") {
        rest = comment.split_once("-->").map_or("", |(_, after)| after).trim_start();
    }
    rest
}

fn tools_have_content(conversations: &[&ConversationView<'_>]) -> Judgment {
    let (mut has_apps, mut seen, mut flaws) = (false, 0, Vec::new());
    for (position, conversation) in conversations.iter().enumerate() {
        let tools = conversation.tools();
        let apps: BTreeSet<&str> = tools.iter().filter(|(tool, _)| page_of(tool).is_some()).map(|(tool, _)| name(tool)).collect();
        has_apps |= !apps.is_empty();
        for (request, answer) in conversation.requests().filter(|(request, _)| request.method() == Some(methods::TOOLS_CALL)) {
            let called = request.param("/name").and_then(Value::as_str).filter(|called| apps.contains(called));
            let (Some(called), Some(answer)) = (called, answer) else { continue };
            // A result without the member breaks the form of the message, which another rule tells.
            let Some(content) = answer.value.pointer("/result/content").and_then(Value::as_array) else { continue };
            seen += 1;
            if content.is_empty() {
                let (subject, detail) = (called.to_owned(), "`content` of a result is empty".to_owned());
                flaws.push(Flaw { subject, detail, frames: vec![request.frame.id, answer.frame.id], conversation: position });
            }
        }
    }
    match (has_apps, seen) {
        (false, _) => Judgment::NotApplicable(NO_APPS.into()),
        (true, 0) => Judgment::Untestable("no tool with an app page was called; `--call NAME` allows those that are not read-only".into()),
        _ => Judgment::from_violations(told("tool", "tools", flaws)),
    }
}

/// Whether the client of a request declared the extension: in its handshake, or in the request itself.
fn is_declared(conversation: &ConversationView<'_>, request: &Value) -> bool {
    let handshake = conversation.from_client().find(|wire_message| wire_message.method() == Some(methods::INITIALIZE));
    let of_handshake = handshake.and_then(|wire_message| wire_message.param("/capabilities"));
    let of_request = request.pointer("/params/_meta/io.modelcontextprotocol~1clientCapabilities");
    [of_handshake, of_request].into_iter().flatten().any(|all| all.get("extensions").is_some_and(|all| all.get(EXTENSION).is_some()))
}

fn tools_are_negotiated(conversations: &[&ConversationView<'_>]) -> Judgment {
    let (mut seen, mut flaws) = (0, Vec::new());
    for (position, conversation) in conversations.iter().enumerate() {
        let listed = conversation.requests().filter(|(request, _)| request.method() == Some(methods::TOOLS_LIST));
        for (request, answer) in listed.filter_map(|(request, answer)| Some((request, answer?))) {
            let tools = answer.value.pointer("/result/tools").and_then(Value::as_array).into_iter().flatten();
            for tool in tools.filter(|tool| page_of(tool).is_some()) {
                seen += 1;
                if !is_declared(conversation, &request.value) {
                    let (subject, detail) =
                        (name(tool).to_owned(), "a client without the extension gets the tool with its page".to_owned());
                    flaws.push(Flaw { subject, detail, frames: vec![request.frame.id, answer.frame.id], conversation: position });
                }
            }
        }
    }
    match seen {
        0 => Judgment::NotApplicable(NO_APPS.into()),
        _ => Judgment::from_violations(told("tool", "tools", flaws)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_compared_without_their_spelling() {
        let check = |found: &str, expected: bool| assert_eq!(is_type_of_apps(found), expected, "{found}");
        check("text/html;profile=mcp-app", true);
        check("text/html; profile=mcp-app", true);
        check("Text/HTML; charset=utf-8; profile=\"mcp-app\"", true);
        check("text/html", false);
        check("text/html;profile=mcp", false);
        check("text/html+skybridge", false);
    }

    #[test]
    fn comments_may_stand_before_the_doctype() {
        let check = |text: &str, expected: &str| assert_eq!(without_comments(text), expected, "{text}");
        check("\u{feff} <!-- a --> <!-- b --><!doctype html>", "<!doctype html>");
        check("<p>", "<p>");
        check("<!-- open", "");
    }
}
