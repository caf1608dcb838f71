//! PagerDuty, Events API v2. The key is the incident, and a new one each time that it becomes more severe: what is sent again under one key
//! changes nothing there (<https://support.pagerduty.com/docs/event-management>, "Deduplicate Alerts").

use super::message::{Kind, Message, cut};
use super::{Post, Success};
use crate::config::Secret;
use crate::incident::Severity;
use serde_json::{Map, Value, json};

/// Of `payload.summary`, in characters.
const LONGEST_SUMMARY: usize = 1024;

pub(super) fn pack(url: &str, routing_key: &Secret, message: &Message) -> Post {
    let action = match message.kind {
        Kind::Trigger | Kind::Update | Kind::Reminder | Kind::Escalation => "trigger",
        Kind::Acknowledge => "acknowledge",
        Kind::Resolve => "resolve",
    };
    let mut event = json!({ "routing_key": routing_key.expose(), "event_action": action, "dedup_key": message.alert_key() });
    if action == "trigger" {
        let details: Map<String, Value> = message.facts().into_iter().map(|fact| (fact.label.to_owned(), fact.text.into())).collect();
        let mut details = Value::Object(details);
        details["message"] = message.text().into();
        event["payload"] = json!({
            "summary": cut(&message.headline(), LONGEST_SUMMARY),
            "source": cut(&message.subject, LONGEST_SUMMARY),
            "severity": match message.severity {
                Severity::Notify => "warning",
                Severity::Page => "critical",
                Severity::Security => "error",
            },
            "timestamp": message.since.to_string(),
            "component": "mcp",
            "class": message.class.word(),
            "custom_details": details,
        });
        event["client"] = "mcproof".into();
        let links = [("the incident", message.link()), ("the transcript", message.transcript())];
        let links: Vec<Value> = links.into_iter().filter_map(|(text, link)| Some(json!({ "href": link?, "text": text }))).collect();
        if let Some(link) = message.link() {
            event["client_url"] = link.into();
            event["links"] = links.into();
        }
    }
    // <https://developer.pagerduty.com/docs/send-alert-event>: 202, with an object.
    Post { hidden: vec![routing_key.clone()], success: Success::AcceptedOrJson, ..Post::json(url, &event) }
}
