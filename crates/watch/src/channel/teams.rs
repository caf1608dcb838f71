//! A workflow of Microsoft Teams that posts an adaptive card. What a server said stands in text runs, which have no Markdown.

use super::Post;
use super::message::{Kind, Message, cut};
use crate::config::Secret;
use crate::incident::Severity;
use serde_json::{Value, json};

/// In characters: a message has 28 KB, and each of them may take several bytes.
const LONGEST_TITLE: usize = 300;
const LONGEST_TEXT: usize = 1500;
const LONGEST_FACT: usize = 500;

pub(super) fn pack(url: &Secret, message: &Message) -> Post {
    let style = match (message.kind, message.severity) {
        (Kind::Resolve, _) => "good",
        (Kind::Acknowledge, _) => "accent",
        (_, Severity::Notify) => "warning",
        (_, Severity::Page | Severity::Security) => "attention",
    };
    let run = |text: &str, most: usize| json!({ "type": "TextRun", "text": cut(text, most) });
    let rich = |runs: Vec<Value>| json!({ "type": "RichTextBlock", "inlines": runs });
    let mut title = run(&message.headline(), LONGEST_TITLE);
    title["weight"] = "bolder".into();
    title["size"] = "medium".into();
    title["color"] = style.into();
    let mut body = vec![rich(vec![title])];
    if message.kind != Kind::Acknowledge {
        body.push(rich(vec![run(&message.text(), LONGEST_TEXT)]));
        for fact in message.facts() {
            let mut label = run(&format!("{}: ", fact.label), LONGEST_FACT);
            label["weight"] = "bolder".into();
            body.push(rich(vec![label, run(&fact.text, LONGEST_FACT)]));
        }
    }
    let links = [("Incident", message.link()), ("Transcript", message.transcript())];
    let actions = links.into_iter().filter_map(|(title, link)| Some(json!({ "type": "Action.OpenUrl", "title": title, "url": link? })));
    let card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": { "width": "Full" },
        "body": body,
        "actions": actions.collect::<Vec<Value>>(),
    });
    let attachment = json!({ "contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": null, "content": card });
    Post::json(url.expose(), &json!({ "type": "message", "attachments": [attachment] }))
}
