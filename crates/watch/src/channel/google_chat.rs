//! A webhook of Google Chat: <https://developers.google.com/workspace/chat/quickstart/webhooks>. Texts of a card take some HTML, so that
//! what a server said is escaped; an incident is one thread.

use super::Post;
use super::message::{Kind, Message, cut};
use crate::config::Secret;
use serde_json::{Value, json};
use url::Url;

/// In characters: a message has 32 kB.
const LONGEST_TITLE: usize = 250;
const LONGEST_TEXT: usize = 1_500;
const LONGEST_FACT: usize = 300;
const MOST_FACTS: usize = 12;

pub(super) fn pack(url: &Secret, message: &Message) -> Result<Post, String> {
    let mut address = Url::parse(url.expose()).map_err(|error| format!("its URL cannot be used: {error}"))?;
    address.query_pairs_mut().append_pair("messageReplyOption", "REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD");
    let mut widgets = Vec::new();
    if message.kind != Kind::Acknowledge {
        let text = escaped(&cut(&message.text(), LONGEST_TEXT));
        if !text.is_empty() {
            widgets.push(json!({ "textParagraph": { "text": text } }));
        }
        let facts = message.facts().into_iter().filter(|fact| !fact.text.is_empty()).take(MOST_FACTS);
        let fact = |label: &str, text: &str| json!({ "decoratedText": { "topLabel": label, "text": escaped(&cut(text, LONGEST_FACT)), "wrapText": true } });
        widgets.extend(facts.map(|found| fact(found.label, &found.text)));
    }
    let links = [("Incident", message.link()), ("Transcript", message.transcript())];
    let buttons: Vec<Value> =
        links.into_iter().filter_map(|(text, link)| Some(json!({ "text": text, "onClick": { "openLink": { "url": link? } } }))).collect();
    if !buttons.is_empty() {
        widgets.push(json!({ "buttonList": { "buttons": buttons } }));
    }
    if widgets.is_empty() {
        widgets.push(json!({ "textParagraph": { "text": escaped(&message.headline()) } }));
    }
    let card = json!({
        "header": { "title": cut(&message.headline(), LONGEST_TITLE), "subtitle": message.class.word() },
        "sections": [{ "widgets": widgets }],
    });
    let body = json!({ "thread": { "threadKey": message.incident }, "cardsV2": [{ "cardId": message.id, "card": card }] });
    Ok(Post::json(address.as_str(), &body))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
