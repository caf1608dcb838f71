//! Whether each message has the shape that its revision demands.

use super::Conversation;
use super::flaws::{Flaw, told};
use super::law::{Area, Judge, Judgement, Keyword, Law, On, Rule, revisions};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

pub(super) const RULES: &[Rule] = &[Rule {
    id: "content-is-base64",
    area: Area::Schema,
    law: "the data of images, sound and blobs is Base64: the standard alphabet, padded, without line breaks",
    laws: &[Law { revisions: revisions::ALL, keyword: Keyword::Must, source: "server/tools#image-content" }],
    on: On::Any,
    lenience: None,
    judge: Judge::Together(base64_content),
    why: "a client that validates results refuses the whole of it, and others show a broken picture",
    remedy: "encode the bytes with the standard alphabet; no `data:` URL, no URL-safe alphabet, no line breaks",
    sdks: &[
        ("Python", "`base64.b64encode(data).decode()`"),
        ("TypeScript", "`buffer.toString(\"base64\")`"),
        ("Go", "`base64.StdEncoding`; a `[]byte` is encoded by itself"),
    ],
    bad: r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"draw","arguments":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"image","mimeType":"image/png","data":"data:image/png;base64,iVBORw0KGgo="}]}}"#,
    good: r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"draw","arguments":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}]}}"#,
}];

fn base64_content(all: &[&Conversation<'_>]) -> Judgement {
    let (mut seen, mut flaws) = (0, Vec::new());
    for (position, conversation) in all.iter().enumerate() {
        for (request, answer) in conversation.requests() {
            // Only here a server sends content; elsewhere what looks like it is data of its own.
            let Some(method @ ("tools/call" | "prompts/get" | "resources/read")) = request.method() else { continue };
            let Some(answer) = answer else { continue };
            let Some(result) = answer.value.get("result") else { continue };
            let params = request.value.get("params");
            let about = params.and_then(|params| params.get("name").or_else(|| params.get("uri"))?.as_str()).unwrap_or(method);
            for (what, data) in encoded(result) {
                seen += 1;
                if STANDARD.decode(data).is_err() {
                    let detail = format!("{what} {}", why_not(data));
                    flaws.push(Flaw { subject: about.to_owned(), detail, frames: vec![answer.frame.id], conversation: position });
                }
            }
        }
    }
    match seen {
        0 => Judgement::NotApplicable("no image, sound or blob came".into()),
        _ => Judgement::from_violations(told("the answer about", "the answers about", flaws)),
    }
}

/// What is to be Base64 in a result, with its name.
fn encoded(result: &Value) -> Vec<(&'static str, &str)> {
    let list = |key: &str| result.get(key).and_then(Value::as_array).into_iter().flatten();
    let blocks = list("content").chain(list("messages").filter_map(|message| message.get("content")));
    let mut found = Vec::new();
    for block in blocks {
        let text = |key: &str| block.get(key).and_then(Value::as_str);
        match text("type") {
            Some("image") => found.extend(text("data").map(|data| ("the `data` of an image", data))),
            Some("audio") => found.extend(text("data").map(|data| ("the `data` of a sound", data))),
            Some("resource") => found.extend(block.pointer("/resource/blob").and_then(Value::as_str).map(|data| ("a `blob`", data))),
            _ => {}
        }
    }
    found.extend(list("contents").filter_map(|contents| Some(("a `blob`", contents.get("blob")?.as_str()?))));
    found
}

fn why_not(data: &str) -> &'static str {
    match data {
        _ if data.starts_with("data:") => "is a `data:` URL",
        _ if data.contains(char::is_whitespace) => "has spaces or line breaks in its Base64",
        _ if data.contains(['-', '_']) => "has characters of the URL-safe alphabet",
        _ if !data.len().is_multiple_of(4) => "is Base64 without its padding, or cut off",
        _ => "is no Base64",
    }
}
