//! What a server of earlier revisions does with the discovery of the modern era, which it does not know.
//! Source: 2025-06-18, basic/transports, protocol version header.

use super::ConversationView;
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation};
use mcproof_client::is_gateway;
use mcproof_protocol::{Revision, methods};
use serde_json::Value;

pub(super) const RULES: &[Rule] = &[Rule {
    id: "http-unknown-era-is-refused",
    area: Area::Http,
    requirement: "a server without the modern era refuses `server/discover` with a status from 400 to 499",
    sources: &[RequirementSource {
        revisions: Revision::V2025_06_18..=Revision::V2025_11_25,
        level: RequirementLevel::Must,
        source: "https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#protocol-version-header",
    }],
    on: AppliesTo::Http,
    tolerance: Some("clients fall back to `initialize` after most responses"),
    judge: Judge::Together(discovery_is_refused),
    why: "a client of both eras asks for the modern one first, and falls back to `initialize` when it is refused; after another response it \
          waits, retries, or reports a server that is down",
    remedy: "check `MCP-Protocol-Version` before anything else, and respond with 400 to a version that is not supported",
    ..Rule::DEFAULT
}];

fn discovery_is_refused(all: &[&ConversationView<'_>]) -> Judgment {
    // A server that takes any version is told by http-unknown-version-gets-400.
    let checks_versions = all.iter().any(|conversation| conversation.probes("bad-version").any(|attempt| attempt.status() == Some(400)));
    if !checks_versions {
        return Judgment::NotApplicable("no request of a session was refused because of its version".into());
    }
    let (mut seen, mut violations) = (0, Vec::new());
    for (position, conversation) in all.iter().enumerate() {
        let discoveries = conversation.from_client().filter(|message| message.method() == Some(methods::SERVER_DISCOVER));
        for exchange in discoveries.filter_map(|message| conversation.exchanges.get(&message.exchange?)) {
            // A server that is not ready has said nothing about eras.
            let Some(status) = exchange.status().filter(|status| !is_gateway(*status)) else { continue };
            seen += 1;
            // Who names its versions has told a client all that the refusal would.
            let names_versions = || {
                let discovery = conversation.from_client().find(|message| message.exchange == Some(exchange.id));
                discovery.and_then(|discovery| conversation.answer_to(discovery)).is_some_and(|answer| {
                    answer.value.pointer("/result/supportedVersions").and_then(Value::as_array).is_some_and(|versions| !versions.is_empty())
                })
            };
            if !(400..500).contains(&status) && !names_versions() {
                let told = format!("`{}` got status {status}", methods::SERVER_DISCOVER);
                violations.push(Violation { conversation: position, ..Violation::new(told, exchange.heads()) });
            }
        }
    }
    violations.truncate(1);
    match seen {
        0 => Judgment::NotApplicable("the server was not asked for the modern era, or gave no response".into()),
        _ => Judgment::from_violations(violations),
    }
}
