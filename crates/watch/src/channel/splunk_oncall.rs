//! The REST endpoint of Splunk On-Call (VictorOps):
//! <https://help.splunk.com/en/splunk-observability-cloud/splunk-on-call/integrations-with-splunk-on-call/rest-endpoint-integration-for-splunk-on-call>.
//! The key is the incident, and a new one each time that it becomes more severe. What is sent is plain text.

use super::Post;
use super::message::{Kind, Message, cut};
use crate::config::Secret;
use crate::incident::Severity;
use serde_json::json;

/// In characters; none is documented.
const LONGEST_NAME: usize = 250;
const LONGEST_MESSAGE: usize = 10_000;

pub(super) fn pack(url: &Secret, message: &Message) -> Post {
    let kind = match (message.kind, message.severity) {
        (Kind::Acknowledge, _) => "ACKNOWLEDGEMENT",
        (Kind::Resolve, _) => "RECOVERY",
        (_, Severity::Notify) => "WARNING",
        (_, Severity::Page | Severity::Security) => "CRITICAL",
    };
    let mut event = json!({
        "message_type": kind,
        "entity_id": message.alert_key(),
        "entity_display_name": cut(&message.headline(), LONGEST_NAME),
        "state_message": cut(&message.plain(), LONGEST_MESSAGE),
        "state_start_time": message.since.0.div_euclid(1_000),
        "monitoring_tool": "mcproof",
    });
    if let (Kind::Acknowledge, Some(who)) = (message.kind, &message.acknowledged_by) {
        event["ack_author"] = cut(who, LONGEST_NAME).into();
    }
    Post::json(url.expose(), &event)
}
