//! Lines on stdout.
//! Source: basic/transports, stdio.

use super::ConversationView;
use super::answers::{gathered, is_message};
use super::rule_definition::{AppliesTo, Area, Judge, Judgment, RequirementLevel, RequirementSource, Rule, Violation, revisions};
use mcproof_analysis::diagnosis::{Audience, served_url_in};
use mcproof_analysis::read_json;
use mcproof_analysis::stdout_lines::{JSON_WHITESPACE, has_half_surrogate, is_header, is_utf_16, remedy_for_line};
use mcproof_analysis::wording::excerpt;
use mcproof_record::{Direction, Frame, FrameBody, FrameId};
use serde_json::Value;
use std::collections::BTreeSet;

const TRANSPORT: &[RequirementSource] = &[
    RequirementSource { revisions: revisions::LEGACY, level: RequirementLevel::Must, source: "basic/transports#stdio" },
    RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source: "basic/transports/stdio" },
];
const ENCODING: &[RequirementSource] = &[
    RequirementSource { revisions: revisions::LEGACY, level: RequirementLevel::Must, source: "basic/transports" },
    RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Must, source: "basic/transports#messages" },
];
const HABITS: &[RequirementSource] = &[
    RequirementSource { revisions: revisions::LEGACY, level: RequirementLevel::Portability, source: "basic/transports#stdio" },
    RequirementSource { revisions: revisions::MODERN, level: RequirementLevel::Portability, source: "basic/transports/stdio" },
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "stdio-only-messages-on-stdout",
        area: Area::Stdio,
        requirement: "a server writes only messages to stdout",
        sources: TRANSPORT,
        on: AppliesTo::Stdio,
        judge: Judge::Each(only_messages),
        why: "a client reads each line as a message; on any other line, some clients log an error, some disconnect, some wait forever",
        remedy: "write logs to stderr, and look for print statements in libraries",
        sdks: &[
            ("Python", "logging goes to stderr by default; `print(…, file=sys.stderr)`"),
            ("TypeScript", "`console.error` instead of `console.log`"),
        ],
        ..Rule::DEFAULT
    },
    Rule {
        id: "stdio-message-on-one-line",
        area: Area::Stdio,
        requirement: "a message contains no line break",
        sources: TRANSPORT,
        on: AppliesTo::Stdio,
        judge: Judge::Each(one_line),
        why: "a line break ends a message, so a client gets fragments that are not valid JSON, and its request gets no response",
        remedy: "serialize messages without indentation",
        sdks: &[("Python", "`json.dumps(message)` without `indent`"), ("TypeScript", "`JSON.stringify(message)` without a third argument")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "stdio-line-is-terminated",
        area: Area::Stdio,
        requirement: "each message ends with a line feed",
        sources: TRANSPORT,
        on: AppliesTo::Stdio,
        judge: Judge::Each(terminated),
        why: "a client waits for the end of the line, then finds two messages on one line and reads neither",
        remedy: "write the line feed with the message, in one call, and flush",
        sdks: &[
            ("Python", "`print(text, flush=True)` or `stdout.write(text + \"\\n\")`"),
            ("TypeScript", "`process.stdout.write(text + '\\n')`"),
        ],
        ..Rule::DEFAULT
    },
    Rule {
        id: "stdio-is-utf8",
        area: Area::Stdio,
        requirement: "messages are UTF-8",
        sources: ENCODING,
        on: AppliesTo::Stdio,
        judge: Judge::Each(utf8),
        why: "clients replace letters with a replacement character, or drop the whole message",
        remedy: "set the encoding of stdout to UTF-8, regardless of the system's encoding",
        sdks: &[("Python", "`sys.stdout.reconfigure(encoding=\"utf-8\")`, or PYTHONUTF8=1")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "stdio-has-no-bom",
        area: Area::Stdio,
        requirement: "no byte order mark stands before a message",
        sources: TRANSPORT,
        on: AppliesTo::Stdio,
        judge: Judge::Each(no_bom),
        why: "to a JSON parser it is an unexpected character, and the message, usually the handshake, is lost",
        remedy: "write UTF-8 without a byte order mark",
        sdks: &[("C#", "`new UTF8Encoding(encoderShouldEmitUTF8Identifier: false)`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "stdio-ends-lines-with-lf",
        area: Area::Stdio,
        requirement: "lines end with a line feed alone",
        sources: HABITS,
        on: AppliesTo::Stdio,
        judge: Judge::Each(line_feeds),
        why: "JSON allows the carriage return, but clients that compare or count bytes fail on it",
        remedy: "open stdout in binary mode, or write \"\\n\" and prevent the runtime from translating it",
        sdks: &[("Python", "`sys.stdout.reconfigure(newline=\"\\n\")`")],
        ..Rule::DEFAULT
    },
    Rule {
        id: "stdio-has-no-blank-lines",
        area: Area::Stdio,
        requirement: "there are no blank lines between messages",
        sources: HABITS,
        on: AppliesTo::Stdio,
        judge: Judge::Each(no_blank_lines),
        why: "a blank line is not a message; strict clients report an error for each of them",
        remedy: "write one line feed after each message",
        ..Rule::DEFAULT
    },
];

const NO_LINE: &str = "the server wrote nothing to stdout";

/// The content of a line of stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineKind {
    Message,
    Blank,
    /// Complete messages, one after the other, or one without a line feed.
    Unterminated,
    /// The first part of a message that contains line breaks, with its number of lines.
    Fragment {
        lines: usize,
    },
    /// A message that was cut off when the process ended.
    Cut,
    Noise,
}

struct StdoutLine<'a> {
    frame: &'a Frame,
    bytes: &'a [u8],
    kind: LineKind,
    /// The frames of its further lines, if any.
    rest: Vec<FrameId>,
}

/// The lines that the server wrote, each with its content; of a message on several lines only the first.
fn lines<'a>(conversation: &ConversationView<'a>) -> Vec<StdoutLine<'a>> {
    let raw: Vec<(&Frame, &[u8], bool)> = conversation
        .frames()
        .iter()
        .filter(|frame| frame.direction == Direction::FromServer)
        .filter_map(|frame| match &frame.body {
            FrameBody::Line { bytes, unterminated } => Some((frame, bytes.as_bytes(), *unterminated)),
            _ => None,
        })
        .collect();
    let messages: BTreeSet<FrameId> = conversation
        .from_server()
        .filter(|wire_message| is_message(&wire_message.value))
        .map(|wire_message| wire_message.frame.id)
        .collect();
    let mut found = Vec::new();
    let mut next = 0;
    while let Some((frame, bytes, unterminated)) = raw.get(next) {
        let kind = match messages.contains(&frame.id) && !unterminated {
            true => LineKind::Message,
            false => classify(bytes, *unterminated, &raw[next..]),
        };
        let count = if let LineKind::Fragment { lines } = kind { lines } else { 1 };
        let rest = raw[next + 1..next + count].iter().map(|(frame, ..)| frame.id).collect();
        found.push(StdoutLine { frame, bytes, kind, rest });
        next += count;
    }
    found
}

fn classify(bytes: &[u8], unterminated: bool, rest: &[(&Frame, &[u8], bool)]) -> LineKind {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}').trim_matches(JSON_WHITESPACE);
    if text.is_empty() {
        return LineKind::Blank;
    }
    let values: Result<Vec<Value>, _> = match read_json(text.as_bytes()) {
        Ok(Some(value)) => Ok(vec![value]),
        // A message that is too large to be parsed is still a message.
        Ok(None) => return if unterminated { LineKind::Unterminated } else { LineKind::Message },
        // Several in a row, or none.
        Err(_) => serde_json::Deserializer::from_str(text).into_iter().collect(),
    };
    let is_message = |value: &Value| value.as_array().map_or_else(|| is_message(value), |all| all.iter().any(is_message));
    match values {
        Ok(values) if !values.iter().all(is_message) => LineKind::Noise,
        Ok(values) if values.len() > 1 || unterminated => LineKind::Unterminated,
        Ok(_) => LineKind::Message,
        Err(error) if unterminated && error.is_eof() && text.starts_with('{') => LineKind::Cut,
        Err(_) if text.starts_with(['{', '[']) => {
            let whole = |count: &usize| {
                let text: Vec<u8> = rest[..*count].iter().flat_map(|(_, bytes, _)| [bytes, b"\n".as_slice()].concat()).collect();
                serde_json::from_slice::<Value>(&text).is_ok_and(|value| is_message(&value))
            };
            (2..=MOST_LINES.min(rest.len())).find(whole).map_or(LineKind::Noise, |lines| LineKind::Fragment { lines })
        }
        Err(_) => LineKind::Noise,
    }
}

/// The maximum number of lines that a single message may be spread over.
const MOST_LINES: usize = 2000;

fn only_messages(conversation: &ConversationView<'_>) -> Judgment {
    let lines = lines(conversation);
    let noise = lines.iter().filter(|line| line.kind == LineKind::Noise);
    if let Some(line) = lines.iter().find(|line| line.kind == LineKind::Noise && is_utf_16(line.bytes)) {
        let message = format!("stdout is UTF-16, and has to be UTF-8: `{}`", excerpt(line.bytes));
        let remedy = remedy_for_line(line.bytes).map(str::to_owned);
        return Judgment::Broken(vec![Violation { remedy, ..Violation::new(message, [line.frame.id]) }]);
    }
    let elsewhere = |line: &StdoutLine<'_>| match conversation.handshake() {
        Some(_) => None,
        None => served_url_in(&String::from_utf8_lossy(line.bytes)).and_then(|url| Audience::CommandLine.serves_http(&url)),
    };
    let violations = noise.map(|line| Violation {
        remedy: remedy_for_line(line.bytes).map(str::to_owned).or_else(|| elsewhere(line)),
        ..Violation::new(format!("a line on stdout {}: `{}`", flaw_of(line.bytes), excerpt(line.bytes)), [line.frame.id])
    });
    let violations = gathered(violations.collect()).into_iter().chain(cut_at_end(conversation, &lines));
    Judgment::of(violations.collect(), lines.len(), NO_LINE)
}

fn flaw_of(line: &[u8]) -> &'static str {
    if has_half_surrogate(line) { "has half of a surrogate pair, so that not every client reads the message" } else { "is not a message" }
}

/// Why a part of a message counts one step less.
const AT_END: &str = "the client had closed stdin, and needs nothing from the server any more";

/// A part of a message, written by a process that ended by itself when its stdin was closed. One that ends earlier, or is killed, is told
/// with that.
fn cut_at_end(conversation: &ConversationView<'_>, lines: &[StdoutLine<'_>]) -> Option<Violation> {
    let cut = lines.iter().find(|line| line.kind == LineKind::Cut)?;
    let before = || conversation.frames().iter().take_while(|frame| frame.id < cut.frame.id);
    let is_end = before().any(|frame| matches!(&frame.body, FrameBody::Closed { pipe } if pipe == "stdin"));
    let is_killed = before().any(|frame| matches!(frame.body, FrameBody::Signalled { .. }));
    (is_end && !is_killed).then(|| Violation {
        tolerance: Some(AT_END),
        remedy: Some("write what is left of a message, and flush stdout, before the process ends".to_owned()),
        ..Violation::new(format!("stdout ends within a message: `{}`", excerpt(cut.bytes)), [cut.frame.id])
    })
}

fn one_line(conversation: &ConversationView<'_>) -> Judgment {
    let lines = lines(conversation);
    let violations = lines.iter().filter_map(|line| {
        let LineKind::Fragment { lines } = line.kind else { return None };
        let frames = std::iter::once(line.frame.id).chain(line.rest.iter().copied());
        Some(Violation::new(format!("a message is spread over {lines} lines"), frames))
    });
    Judgment::of(gathered(violations.collect()), lines.len(), NO_LINE)
}

fn terminated(conversation: &ConversationView<'_>) -> Judgment {
    let lines = lines(conversation);
    // Where a header gives the length of a message, no line feed is missing: the header is one too many.
    let is_framed = lines.iter().any(|line| line.kind == LineKind::Noise && is_header(line.bytes));
    let violations = lines.iter().filter(|line| line.kind == LineKind::Unterminated && !is_framed).map(|line| {
        let message = match &line.frame.body {
            FrameBody::Line { unterminated: true, .. } => "stdout ends with a message that has no line feed".to_owned(),
            _ => format!("messages follow one another without a line feed: `{}`", excerpt(line.bytes)),
        };
        Violation::new(message, [line.frame.id])
    });
    Judgment::of(gathered(violations.collect()), lines.len(), NO_LINE)
}

fn utf8(conversation: &ConversationView<'_>) -> Judgment {
    let lines = lines(conversation);
    // A truncated line may end in the middle of a character, and UTF-16 is told as noise.
    let is_wide = lines.iter().any(|line| line.kind == LineKind::Noise && is_utf_16(line.bytes));
    let whole = lines.iter().filter(|line| line.kind != LineKind::Cut && !is_wide);
    let violations = whole.filter_map(|line| {
        let error = std::str::from_utf8(line.bytes).err()?;
        let byte = line.bytes.get(error.valid_up_to()).copied().unwrap_or_default();
        Some(Violation::new(format!("a line is not valid UTF-8 at byte {} (0x{byte:02x})", error.valid_up_to()), [line.frame.id]))
    });
    Judgment::of(gathered(violations.collect()), lines.len(), NO_LINE)
}

fn no_bom(conversation: &ConversationView<'_>) -> Judgment {
    let lines = lines(conversation);
    let marked = lines.iter().filter(|line| line.bytes.starts_with(b"\xef\xbb\xbf"));
    let violations = marked.map(|line| Violation::new("a line begins with a byte order mark", [line.frame.id]));
    Judgment::of(gathered(violations.collect()), lines.len(), NO_LINE)
}

fn line_feeds(conversation: &ConversationView<'_>) -> Judgment {
    let messages: Vec<StdoutLine<'_>> = lines(conversation).into_iter().filter(|line| line.kind == LineKind::Message).collect();
    let ends: Vec<&StdoutLine<'_>> = messages.iter().filter(|line| line.bytes.ends_with(b"\r")).collect();
    let violation = ends.first().map(|first| {
        let message = format!("{} of {} lines end with a carriage return", ends.len(), messages.len());
        Violation::new(message, [first.frame.id])
    });
    Judgment::of(violation.into_iter().collect(), messages.len(), NO_LINE)
}

fn no_blank_lines(conversation: &ConversationView<'_>) -> Judgment {
    let lines = lines(conversation);
    // A blank line after noise, or before the first one, is part of it.
    let blank = |pair: &&[StdoutLine<'_>]| pair[1].kind == LineKind::Blank && pair[0].kind != LineKind::Noise;
    let mut blank = lines.windows(2).filter(blank).map(|pair| pair[1].frame.id).collect::<Vec<_>>();
    let is_alone = lines.get(1).is_none_or(|next| next.kind != LineKind::Noise);
    blank.extend(lines.first().filter(|line| line.kind == LineKind::Blank && is_alone).map(|line| line.frame.id));
    let count = if blank.len() == 1 { "1 line is".to_owned() } else { format!("{} lines are", blank.len()) };
    let violation = (!blank.is_empty()).then(|| Violation::new(format!("{count} blank"), blank.iter().copied().take(3)));
    Judgment::of(violation.into_iter().collect(), lines.len(), NO_LINE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_analysis::example;
    use mcproof_record::Raw;

    #[test]
    fn a_message_that_is_cut_at_the_end_is_told_unless_the_process_was_killed() {
        let check = |before: &str, line: &str, expected: &[&str]| {
            let mut recorded = example::read(&format!("< {{\"id\":1,\"result\":{{}}}}\n{before}"), "stdio", "2025-11-25");
            let frame = recorded.transcript.frames[0].clone();
            let id = FrameId(recorded.transcript.frames.len() as u64);
            let body = FrameBody::Line { bytes: Raw::from(line), unterminated: true };
            recorded.transcript.frames.push(Frame { id, body, ..frame });
            let told = match only_messages(&ConversationView::new(&recorded)) {
                Judgment::Broken(violations) => violations.into_iter().map(|violation| violation.message).collect(),
                _ => Vec::new(),
            };
            assert_eq!(told, expected, "{before}");
        };
        let cut = r#"{"jsonrpc":"2.0""#;
        check("! closed stdin", cut, &["stdout ends within a message: `{\"jsonrpc\":\"2.0\"`"]);
        check("! closed stdin\n! signal SIGTERM", cut, &[]);
        check("", cut, &[]);
    }

    #[test]
    fn lines_are_classified() {
        let frame = Frame {
            id: FrameId(0),
            at: std::time::Duration::ZERO,
            direction: Direction::FromServer,
            body: FrameBody::Closed { pipe: "stdout".into() },
        };
        let check = |line: &[u8], unterminated: bool, expected: LineKind| {
            assert_eq!(classify(line, unterminated, &[(&frame, line, unterminated)]), expected, "{}", String::from_utf8_lossy(line));
        };
        check(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#, false, LineKind::Message);
        check(br#"{"id":1,"result":{}}"#, false, LineKind::Message);
        check(br#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#, false, LineKind::Message);
        check(b"\xef\xbb\xbf{\"id\":1,\"result\":{}}", false, LineKind::Message);
        check(b"{\"id\":1,\"result\":{\"name\":\"gr\xfcn\"}}", false, LineKind::Message);
        check(b" \r", false, LineKind::Blank);
        // What JSON does not take for whitespace.
        for blank in ["\u{a0}", "\u{c}", "\u{b}", "\u{85}", "\u{2028}"] {
            check(blank.as_bytes(), false, LineKind::Noise);
            check(format!("{blank}{{\"id\":1,\"result\":{{}}}}").as_bytes(), false, LineKind::Noise);
            check(format!("{{\"id\":1,\"result\":{{}}}}{blank}").as_bytes(), false, LineKind::Noise);
        }
        check(b"\t{\"id\":1,\"result\":{}} \r", false, LineKind::Message);
        check(br#"{"id":1,"result":{}}"#, true, LineKind::Unterminated);
        check(b"{\"id\":1,\"result\":{}}\r{\"id\":2,\"result\":{}}", false, LineKind::Unterminated);
        check(br#"{"id":1,"resu"#, true, LineKind::Cut);
        check(br#"{"id":1,"resu"#, false, LineKind::Noise);
        check(br#"{"level":"info","msg":"started"}"#, false, LineKind::Noise);
        check(b"true", false, LineKind::Noise);
        check(b"Listening", false, LineKind::Noise);
        let many = format!("{{\"id\":1,\"result\":[{}0]}}", "0,".repeat(2_000_000));
        check(many.as_bytes(), false, LineKind::Message);
        check(format!("{many}x").as_bytes(), false, LineKind::Noise);
    }
}
