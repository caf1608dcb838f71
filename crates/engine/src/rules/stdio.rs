//! Lines on stdin and stdout, and the end of a process.
//! Source: basic/transports, stdio; basic/lifecycle, shutdown.

use super::Conversation;
use super::law::{Area, Judge, Judgement, Keyword, Law, On, Rule, Violation, revisions};
use mcproof_record::{Direction, Frame, FrameBody, FrameId};
use serde_json::Value;

const TRANSPORT: &[Law] = &[
    Law { revisions: revisions::LEGACY, keyword: Keyword::Must, source: "basic/transports#stdio" },
    Law { revisions: revisions::MODERN, keyword: Keyword::Must, source: "basic/transports/stdio" },
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "stdio-only-messages-on-stdout",
        area: Area::Stdio,
        law: "a server writes nothing to stdout but messages",
        laws: TRANSPORT,
        on: On::Stdio,
        lenience: None,
        judge: Judge::Each(only_messages),
        why: "a client reads each line as a message; on one that is none, some log an error, some hang up, some wait for ever",
        remedy: "write logs to stderr, and look for prints in libraries",
        sdks: &[
            ("Python", "logging goes to stderr by default; `print(…, file=sys.stderr)`"),
            ("TypeScript", "`console.error` instead of `console.log`"),
        ],
        bad: r#"
            < Listening on stdio
            > {"jsonrpc":"2.0","id":1,"method":"ping"}
            < {"jsonrpc":"2.0","id":1,"result":{}}"#,
        good: r#"
            > {"jsonrpc":"2.0","id":1,"method":"ping"}
            < {"jsonrpc":"2.0","id":1,"result":{}}"#,
    },
    Rule {
        id: "stdio-message-on-one-line",
        area: Area::Stdio,
        law: "a message has no line break in it",
        laws: TRANSPORT,
        on: On::Stdio,
        lenience: None,
        judge: Judge::Each(one_line),
        why: "a line break ends a message, so that a client gets fragments that are no JSON, and its request is never answered",
        remedy: "serialize messages without indentation",
        sdks: &[("Python", "`json.dumps(message)` without `indent`"), ("TypeScript", "`JSON.stringify(message)` without a third argument")],
        bad: r#"
            > {"jsonrpc":"2.0","id":1,"method":"ping"}
            < {
            <   "jsonrpc": "2.0", "id": 1,
            <   "result": {}
            < }"#,
        good: r#"
            > {"jsonrpc":"2.0","id":1,"method":"ping"}
            < {"jsonrpc":"2.0","id":1,"result":{}}"#,
    },
    Rule {
        id: "stdio-exits-on-end-of-input",
        area: Area::Process,
        law: "a server exits soon after its stdin was closed",
        laws: &[
            Law { revisions: revisions::LEGACY, keyword: Keyword::Should, source: "basic/lifecycle#stdio" },
            Law { revisions: revisions::MODERN, keyword: Keyword::Should, source: "basic/transports/stdio" },
        ],
        on: On::Stdio,
        lenience: None,
        judge: Judge::Each(exits_on_end_of_input),
        why: "closing stdin is how a host says goodbye; what does not hear it piles up as orphans or has to be killed",
        remedy: "end the process when reading stdin gives end of file, timers and open connections notwithstanding",
        sdks: &[("TypeScript", "`process.stdin.on('end', () => process.exit(0))`")],
        bad: r"
            ! spawned
            ! closed stdin
            ~ 5000
            ! signal SIGTERM
            ! exited 0",
        good: r"
            ! spawned
            ! closed stdin
            ~ 20
            ! exited 0",
    },
];

/// A line of stdout that is no message.
struct Noise {
    frames: Vec<FrameId>,
    text: String,
    /// It is a message, but for its line breaks.
    is_broken_message: bool,
}

/// Lines that are no JSON, those together that are one message together.
fn noise(conversation: &Conversation<'_>) -> (Vec<Noise>, usize) {
    let lines: Vec<(&Frame, &[u8])> = conversation
        .frames()
        .iter()
        .filter(|frame| frame.direction == Direction::FromServer)
        .filter_map(|frame| match &frame.body {
            FrameBody::Line { bytes, unterminated: false } if !bytes.as_bytes().trim_ascii().is_empty() => Some((frame, bytes.as_bytes())),
            _ => None,
        })
        .collect();
    let is_json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).is_ok_and(|value| value.is_object() || value.is_array());
    let mut found = Vec::new();
    let mut next = 0;
    while let Some((_, bytes)) = lines.get(next) {
        if is_json(bytes) {
            next += 1;
            continue;
        }
        let message = matches!(bytes.trim_ascii().first(), Some(b'{' | b'[')).then(|| {
            (2..=MOST_LINES.min(lines.len() - next)).find(|count| {
                let whole: Vec<u8> = lines[next..next + count].iter().flat_map(|(_, bytes)| [bytes, b"\n".as_slice()].concat()).collect();
                is_json(&whole)
            })
        });
        let count = message.flatten();
        let frames = lines[next..next + count.unwrap_or(1)].iter().map(|(frame, _)| frame.id).collect();
        found.push(Noise { frames, text: shown(bytes), is_broken_message: count.is_some() });
        next += count.unwrap_or(1);
    }
    (found, lines.len())
}

/// Lines that one message may be spread over before nobody would call it one.
const MOST_LINES: usize = 2000;

fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 60;
    let text = String::from_utf8_lossy(bytes);
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

fn only_messages(conversation: &Conversation<'_>) -> Judgement {
    let (noise, lines) = noise(conversation);
    let violations = noise.into_iter().filter(|noise| !noise.is_broken_message);
    let violations =
        violations.map(|noise| Violation::new(format!("a line on stdout is no message: `{}`", noise.text), noise.frames)).collect();
    Judgement::of(violations, lines, "the server wrote nothing to stdout")
}

fn one_line(conversation: &Conversation<'_>) -> Judgement {
    let (noise, lines) = noise(conversation);
    let violations = noise.into_iter().filter(|noise| noise.is_broken_message);
    let violations =
        violations.map(|noise| Violation::new(format!("a message is spread over {} lines", noise.frames.len()), noise.frames)).collect();
    Judgement::of(violations, lines, "the server wrote nothing to stdout")
}

fn exits_on_end_of_input(conversation: &Conversation<'_>) -> Judgement {
    let frames = conversation.frames();
    let closed = frames.iter().rfind(|frame| matches!(&frame.body, FrameBody::Closed { pipe } if pipe == "stdin"));
    let Some(closed) = closed else { return Judgement::Untestable("its stdin was never closed while it ran".into()) };
    let later = || frames.iter().filter(|frame| frame.id > closed.id);
    match later().find(|frame| matches!(frame.body, FrameBody::Exited { .. } | FrameBody::Signalled { .. })) {
        Some(frame) if matches!(frame.body, FrameBody::Signalled { .. }) => {
            let seconds = (frame.at - closed.at).as_secs_f64();
            Judgement::Broken(vec![Violation::new(
                format!("it still ran {seconds:.0} s after its stdin was closed"),
                [closed.id, frame.id],
            )])
        }
        Some(_) => Judgement::Pass,
        None => Judgement::Untestable("its end was not waited for".into()),
    }
}
