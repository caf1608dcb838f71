//! A webhook of Discord. Nobody is mentioned, whatever a server writes, and its Markdown is shown as it stands.

use super::Post;
use super::message::{Kind, Message, cut};
use crate::config::Secret;
use crate::incident::Severity;
use serde_json::{Value, json};

/// In characters. All texts of an embed together have 6000.
const LONGEST_TITLE: usize = 256;
const LONGEST_DESCRIPTION: usize = 2000;
const LONGEST_FIELD: usize = 300;
const MOST_FIELDS: usize = 10;

pub(super) fn pack(url: &Secret, message: &Message) -> Post {
    let color = match (message.kind, message.severity) {
        (Kind::Resolve, _) => 0x2E_A0_43,
        (Kind::Acknowledge, _) => 0x6E_77_81,
        (_, Severity::Notify) => 0xBF_87_00,
        (_, Severity::Page) => 0xCF_22_2E,
        (_, Severity::Security) => 0x82_50_DF,
    };
    let shown = |text: &str, most: usize| cut(&literal(text), most);
    let mut embed = json!({ "title": shown(&message.headline(), LONGEST_TITLE), "color": color, "timestamp": message.now.to_string() });
    if message.kind != Kind::Acknowledge {
        let transcript = message.transcript().map(|link| format!("\n\n[transcript]({link})")).unwrap_or_default();
        embed["description"] = format!("{}{transcript}", shown(&message.text(), LONGEST_DESCRIPTION)).into();
        let fields = message.facts().into_iter().filter(|fact| !fact.text.is_empty()).take(MOST_FIELDS);
        embed["fields"] = fields
            .map(|fact| json!({ "name": fact.label, "value": shown(&fact.text, LONGEST_FIELD), "inline": fact.text.len() < 30 }))
            .collect::<Vec<Value>>()
            .into();
    }
    if let Some(link) = message.link() {
        embed["url"] = link.into();
    }
    Post::json(url.expose(), &json!({ "embeds": [embed], "allowed_mentions": { "parse": [] } }))
}

/// With a backslash before all that Markdown, mentions and links begin with.
fn literal(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '\\' | '*' | '_' | '~' | '`' | '|' | '>' | '<' | '[' | ']' | '(' | ')' | '#' | '-' | '@' | ':') {
            shown.push('\\');
        }
        shown.push(character);
    }
    shown
}
