//! The start of a server and the handshake.
//! Source: basic/lifecycle.

use super::Conversation;
use super::law::{Area, Judge, Judgement, Keyword, Law, On, Rule, Violation, revisions};
use mcproof_record::{FrameBody, Opened};

pub(super) const RULES: &[Rule] = &[Rule {
    id: "server-starts",
    area: Area::Lifecycle,
    law: "a server lives until it has answered the handshake",
    laws: &[Law { revisions: revisions::ALL, keyword: Keyword::Must, source: "basic/lifecycle#initialization" }],
    on: On::Any,
    lenience: None,
    judge: Judge::Each(starts),
    why: "a host sees nothing but a closed pipe, and tells its user that the server failed",
    remedy: "run the command by hand with the same environment and folder, and read what it says",
    sdks: &[],
    bad: r#"
        ! spawned
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}
        ! exited 1"#,
    good: r#"
        ! spawned
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}
        < {"jsonrpc":"2.0","id":1,"result":{}}"#,
}];

fn starts(conversation: &Conversation<'_>) -> Judgement {
    let frames = conversation.frames();
    let asked = conversation.requests().find(|(request, _)| matches!(request.method(), Some("initialize" | "server/discover")));
    let exit = frames.iter().find_map(|frame| match &frame.body {
        FrameBody::Exited { code, signal } => Some((frame, *code, *signal)),
        _ => None,
    });
    let answered = asked.is_some_and(|(_, answer)| answer.is_some());
    match (answered, exit) {
        (true, _) => Judgement::Pass,
        (false, Some((frame, code, signal))) if !matches!(conversation.take.opened, Opened::Bare) => {
            let how = match (code, signal) {
                (Some(code), _) => format!("with code {code}"),
                (None, Some(signal)) => format!("by signal {signal}"),
                (None, None) => "without a word".into(),
            };
            let last = frames.iter().rev().find_map(|frame| match &frame.body {
                FrameBody::Stderr { bytes } => Some(bytes.to_text()),
                _ => None,
            });
            let said = last.map(|line| format!("; its last words: {}", line.trim())).unwrap_or_default();
            let mut evidence: Vec<_> =
                frames.iter().filter(|frame| matches!(frame.body, FrameBody::Stderr { .. })).map(|frame| frame.id).collect();
            evidence.push(frame.id);
            Judgement::Broken(vec![Violation::new(format!("the process ended {how} before it answered the handshake{said}"), evidence)])
        }
        (false, _) => Judgement::Untestable("the handshake was not answered, and the process lived on".into()),
    }
}
