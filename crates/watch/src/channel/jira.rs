//! Alerts of Jira Service Management, by its integration events. The incident is the alias, with a new one each time that it
//! becomes more severe: while an alert with that alias is open, another one only counts up.

use super::message::{Kind, Message, cut};
use super::{Post, Success, below};
use crate::config::Secret;
use crate::incident::Severity;
use serde_json::{Map, Value, json};

/// In characters.
const LONGEST_MESSAGE: usize = 130;
const LONGEST_DESCRIPTION: usize = 15_000;
const LONGEST_NOTE: usize = 25_000;

pub(super) fn pack(url: &str, api_key: &Secret, message: &Message) -> Result<Post, String> {
    let with_alias = |action: &str| {
        let mut place = below(url, &[&message.alert_key(), action])?;
        place.query_pairs_mut().append_pair("identifierType", "alias");
        Ok::<_, String>(place.to_string())
    };
    let note = || json!({ "source": "mcproof", "note": cut(&message.headline(), LONGEST_NOTE) });
    let post = match message.kind {
        Kind::Acknowledge => Post::json(&with_alias("acknowledge")?, &note()),
        Kind::Resolve => Post::json(&with_alias("close")?, &note()),
        Kind::Trigger | Kind::Update | Kind::Reminder | Kind::Escalation => Post::json(url, &alert(message)),
    };
    Ok(Post { success: Success::AcceptedOrJson, ..post.header("authorization", &format!("GenieKey {}", api_key.expose())) })
}

fn alert(message: &Message) -> Value {
    let details: Map<String, Value> = message.facts().into_iter().map(|fact| (fact.label.to_owned(), tagless(&fact.text).into())).collect();
    json!({
        "message": cut(&tagless(&message.headline()), LONGEST_MESSAGE),
        "alias": message.alert_key(),
        "description": cut(&tagless(&message.plain()), LONGEST_DESCRIPTION),
        "entity": cut(&message.subject, LONGEST_MESSAGE),
        "source": "mcproof",
        "tags": ["mcproof", message.class.word(), message.severity.word()],
        "priority": match message.severity {
            Severity::Notify => "P4",
            Severity::Page => "P1",
            Severity::Security => "P2",
        },
        "details": details,
    })
}

/// Descriptions are shown as HTML.
fn tagless(text: &str) -> String {
    text.replace('<', "‹").replace('>', "›")
}
