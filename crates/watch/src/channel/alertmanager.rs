//! Prometheus Alertmanager, API v2. It forgets alerts that nobody repeats, so that the notifier sends them again while the
//! incident is open; it knows them by their labels, which are the same each time.

use super::message::{Kind, Message};
use super::{Post, below};
use crate::config::Secret;
use crate::incident::Severity;
use crate::moment::Moment;
use serde_json::{Value, json};
use std::time::Duration;

/// For how long an alert goes on if it is not repeated: longer than a restart of ours takes.
const LASTS: Duration = Duration::from_secs(15 * 60);

pub(super) fn pack(url: &Secret, message: &Message) -> Result<Option<Post>, String> {
    let place = below(url.expose(), &["api", "v2", "alerts"])?;
    let ends = match message.kind {
        Kind::Acknowledge => return Ok(None),
        Kind::Trigger | Kind::Update | Kind::Reminder | Kind::Escalation => message.now + LASTS,
        Kind::Resolve => message.resolved.unwrap_or(message.now),
    };
    let mut alerts = vec![alert(message, message.severity, ends)];
    if matches!(message.kind, Kind::Update | Kind::Resolve) {
        // The severity is a label, by which people route: as another one it would stay open.
        let others = Severity::ALL.into_iter().filter(|severity| *severity != message.severity);
        alerts.extend(others.map(|severity| alert(message, severity, message.now)));
    }
    Ok(Some(Post::json(place.as_str(), &Value::Array(alerts))))
}

fn alert(message: &Message, severity: Severity, ends: Moment) -> Value {
    let mut annotations = json!({ "summary": message.headline(), "description": message.text() });
    for fact in message.facts() {
        // What else is in a name of an annotation is refused.
        annotations[fact.label.replace(' ', "_")] = fact.text.into();
    }
    // Until when it has gone on, and for how long, changes with each repetition.
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.remove("for");
    }
    let mut alert = json!({
        "labels": {
            "alertname": format!("mcproof-{}", message.class),
            "target": message.subject,
            "class": message.class.word(),
            "severity": severity.word(),
            "incident": message.incident,
        },
        "annotations": annotations,
        "startsAt": message.since.to_string(),
        "endsAt": ends.to_string(),
    });
    if let Some(transcript) = message.transcript() {
        alert["annotations"]["transcript"] = transcript.into();
    }
    if let Some(link) = message.link() {
        alert["generatorURL"] = link.into();
    }
    alert
}
