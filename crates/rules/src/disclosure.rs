//! What passes through hands that may look at it: logs and HTTP headers.
//! Source: server/utilities/logging, security; server/tools, x-mcp-header.

use super::ConversationView;
use super::answers::messages;
use super::asking_users::is_secret_name;
use super::rule_definition::{Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use super::security::{collect, secret};
use mcproof_analysis::wording::excerpt;
use mcproof_protocol::methods;
use serde_json::Value;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "log-hides-secrets",
        area: Area::Security,
        requirement: "a log message holds no passwords, keys or tokens",
        sources: &[RequirementSource {
            revisions: revisions::ALL,
            level: RequirementLevel::Must,
            source: "server/utilities/logging#security",
        }],
        judge: Judge::Each(logs_hide_secrets),
        why: "clients show and store log messages, and hand them to models",
        remedy: "log the name of a setting instead of its value, and URLs without passwords",
        ..Rule::DEFAULT
    },
    Rule {
        id: "header-annotation-holds-no-secret",
        area: Area::Modern,
        requirement: "no argument that takes a secret is marked with `x-mcp-header`",
        sources: &[RequirementSource {
            revisions: revisions::MODERN,
            level: RequirementLevel::Should,
            source: "server/tools#x-mcp-header",
        }],
        judge: Judge::Each(header_annotations_hold_no_secret),
        why: "proxies and gateways can read headers and write them to their logs",
        remedy: "take `x-mcp-header` off this argument",
        ..Rule::DEFAULT
    },
];

fn logs_hide_secrets(conversation: &ConversationView<'_>) -> Judgment {
    let (mut seen, mut violations) = (0, Vec::new());
    for server_message in messages(conversation).filter(|server_message| server_message.method() == Some(methods::notifications::MESSAGE)) {
        seen += 1;
        let mut text = String::new();
        server_message.value.get("params").into_iter().for_each(|params| collect(params, &mut text));
        if let Some((what, found)) = secret(&text) {
            // Enough to find it, and not enough to use it.
            let beginning: String = found.chars().take(8).collect();
            violations.push(Violation::new(format!("a log message holds {what}: `{}…`", excerpt(beginning)), [server_message.frame]));
        }
    }
    violations.truncate(1);
    if seen == 0 { Judgment::NotApplicable("the server logs nothing".into()) } else { Judgment::from_violations(violations) }
}

fn header_annotations_hold_no_secret(conversation: &ConversationView<'_>) -> Judgment {
    let (mut seen, mut violations) = (0, Vec::new());
    for (tool, frame) in conversation.tools() {
        let properties = tool.pointer("/inputSchema/properties").and_then(Value::as_object).into_iter().flatten();
        for (name, _) in properties.filter(|(_, schema)| schema.get("x-mcp-header").is_some()) {
            seen += 1;
            if is_secret_name(name) {
                let tool = tool.get("name").and_then(Value::as_str).unwrap_or_default();
                let message = format!("`{}` of the tool `{}` is sent in a header", excerpt(name), excerpt(tool));
                violations.push(Violation::new(message, [frame]));
            }
        }
    }
    violations.truncate(1);
    if seen == 0 { Judgment::NotApplicable("no argument is sent in a header".into()) } else { Judgment::from_violations(violations) }
}
