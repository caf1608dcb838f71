//! What people see, as golden texts: change them by looking at them.

use insta::assert_snapshot;
use mcproof_record::{
    CaseId, CaseOutcome, CasePlan, Counts, Diagnostic, Difference, Direction, Event, Evidence, ExchangeId, FORMAT_VERSION, Frame,
    FrameBody, FrameId, Place, Proof, Verdict,
};
use mcproof_report::diagnostic::{render, render_all};
use mcproof_report::json::JsonLines;
use mcproof_report::terminal::{Detail, Progress, Terminal};
use mcproof_report::{Charset, Color, Reporter as _, Style};
use std::time::Duration;

#[path = "scenes/defects.rs"]
mod defects;
#[path = "scenes/reporters.rs"]
mod reporters;

const LINE: &str = "        expect: { available: 10, status: in stock }";

fn plain() -> Style {
    Style::default()
}

/// The place of `part` in `text`.
fn place(line: u32, text: &str, part: &str) -> Place {
    let start = text.find(part).expect("the part stands in the text");
    Place {
        file: "shop.mcproof.yaml".into(),
        line,
        column: text[..start].chars().count() as u32 + 1,
        length: part.chars().count() as u32,
        text: text.into(),
    }
}

fn difference(path: &str, expected: &str, actual: &str, place: Option<Place>) -> Difference {
    Difference { path: path.into(), expected: expected.into(), actual: actual.into(), place }
}

/// Frames from milliseconds, directions and bodies.
fn frames(frames: Vec<(u64, char, FrameBody)>) -> Vec<Frame> {
    let direction = |sign| match sign {
        '>' => Direction::ToServer,
        '<' => Direction::FromServer,
        _ => Direction::Local,
    };
    frames
        .into_iter()
        .zip(0..)
        .map(|((millis, sign, body), id)| Frame { id: FrameId(id), at: Duration::from_millis(millis), direction: direction(sign), body })
        .collect()
}

fn line(text: &str) -> FrameBody {
    FrameBody::Line { bytes: text.into(), unterminated: false }
}

fn evidence(frames: Vec<Frame>, omitted: u64, stderr: &[&str]) -> Evidence {
    Evidence { frames, omitted, stderr: stderr.iter().map(|line| (*line).to_owned()).collect() }
}

fn two_differences() -> Diagnostic {
    let mut diagnostic = Diagnostic::error("unexpected-value", "response does not match in 2 places")
        .at(place(24, LINE, "{ available: 10, status: in stock }"))
        .evidence(evidence(
            frames(vec![
                (41, '>', line(r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"check_inventory","arguments":{"product_id":"PROD-123"}}}"#)),
                (43, '<', line(r#"{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"{\"available\":8,\"status\":\"low\"}"}],"structuredContent":{"available":8,"status":"low"}}}"#)),
            ]),
            6,
            &[],
        ));
    diagnostic.differences = vec![
        difference("available", "10", "8", Some(place(24, LINE, "10"))),
        difference("status", "\"in stock\"", "\"low\"", Some(place(24, LINE, "in stock"))),
    ];
    diagnostic.actual = Some("{\n  \"available\": 8,\n  \"status\": \"low\"\n}".into());
    diagnostic
}

#[test]
fn a_failed_expectation_points_at_each_difference() {
    assert_snapshot!(render(&two_differences(), &plain()));
}

#[test]
fn colours_come_only_when_asked_for() {
    let style = Style { color: Color::Ansi, ..plain() };
    assert_snapshot!(render(&two_differences(), &style).replace('\u{1b}', "␛"));
}

#[test]
fn without_utf_8_everything_is_ascii() {
    let mut diagnostic = two_differences();
    diagnostic.hint = Some("prüfe → it".into());
    diagnostic.differences[0].actual = "\"日本\"".into();
    let text = render(&diagnostic, &Style { charset: Charset::Ascii, ..plain() });
    assert!(text.is_ascii(), "{text}");
    assert_snapshot!(text);
}

#[test]
fn a_narrow_terminal_gets_narrow_lines() {
    let text = render(&two_differences(), &Style { width: 60, ..plain() });
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    assert_snapshot!(text);
}

#[test]
fn what_a_rule_says_keeps_its_end() {
    let path = "/home/somebody/".to_owned() + &"folder/".repeat(60);
    let message = format!("a host that is started elsewhere finds no such file; the absolute path is {path}server.py");
    let narrow = Style { width: 60, ..plain() };
    let rule = render(&Diagnostic::error("host-starts-server", &*message), &narrow);
    assert!(rule.contains(&message), "{rule}");
    let quote = render(&Diagnostic::error("unexpected-outcome", &*message), &narrow);
    assert!(quote.contains('…') && !quote.contains("server.py"), "{quote}");
    // What is longer than a screen lacks its middle.
    let endless = render(&Diagnostic::error("host-starts-server", message.replace("folder/", &"folder/".repeat(50))), &narrow);
    assert!(endless.contains('…') && endless.trim_end().ends_with("server.py") && endless.len() < 1100, "{endless}");
}

#[test]
fn differences_on_several_lines_share_one_drawing() {
    let mut diagnostic = Diagnostic::error("unexpected-value", "response does not match in 4 places");
    diagnostic.differences = vec![
        difference(
            "id",
            "a string that matches /^ORD-/",
            "missing; there is `order_id`",
            Some(place(31, "          id: { $regex: \"^ORD-\" }", "{ $regex: \"^ORD-\" }")),
        ),
        difference("items[0].name", "\"Laptop\"", "\"Phone\"", Some(place(33, "            - name: Laptop", "Laptop"))),
        difference("items[0].quantity", "at least 2", "1", Some(place(34, "              quantity: { $gte: 2 }", "2"))),
        difference("status", "\"pending\"", "\"refused\"", Some(place(40, "          status: pending", "pending"))),
    ];
    diagnostic.actual = Some(
        "{\n  \"order_id\": \"ORD-1\",\n  \"items\": [\n    {\n      \"name\": \"Phone\",\n      \"quantity\": 1\n    }\n  ],\n  \"note\": null,\n  \"total\": 99.5,\n  \"currency\": \"EUR\",\n  \"status\": \"refused\"\n}".into(),
    );
    assert_snapshot!(render(&diagnostic, &plain()));
}

#[test]
fn long_values_are_listed_from_where_they_differ() {
    let mut diagnostic = Diagnostic::error("unexpected-value", "response does not match");
    let lorem = "The order was accepted and will be shipped within three working days; ".repeat(3);
    diagnostic.differences = vec![difference(
        "message",
        &format!("\"{lorem}thank you\""),
        &format!("\"{lorem}sorry\""),
        Some(place(12, "          message: *accepted", "*accepted")),
    )];
    assert_snapshot!(render(&diagnostic, &plain()));
}

#[test]
fn many_differences_are_capped() {
    let mut diagnostic = Diagnostic::error("unexpected-value", "response does not match in 50 places");
    diagnostic.differences = (0..50)
        .map(|index| {
            difference(&format!("items[{index}]"), "a number", "\"x\"", Some(place(7, "    expect: { $all: { $type: number } }", "number")))
        })
        .collect();
    assert_snapshot!(render(&diagnostic, &plain()));
}

#[test]
fn an_outcome_without_differences_shows_what_was_found() {
    let mut diagnostic = Diagnostic::error("unexpected-outcome", "expected an `isError` result, but the call succeeded").at(place(
        30,
        "        tool_error: /insufficient inventory/i",
        "/insufficient inventory/i",
    ));
    diagnostic.actual = Some("{\n  \"status\": \"pending\",\n  \"quantity\": 999\n}".into());
    assert_snapshot!(render(&diagnostic, &plain()));
}

#[test]
fn a_text_that_came_is_read_as_text_and_only_once() {
    let mut diagnostic =
        Diagnostic::error("unexpected-outcome", "expected a failure, but the call succeeded").at(place(30, "        fails: true", "true"));
    diagnostic.actual = Some(format!("\"It went well:\\n  \\u001b[31m3 orders\\n{}\"", "and so on, ".repeat(12)));
    assert_snapshot!(render(&diagnostic, &plain()));
    let mut told = Diagnostic::error("unexpected-outcome", "expected success, found an `isError` result: no \"such\" tool");
    told.actual = Some("\"no \\\"such\\\" tool\"".into());
    assert_eq!(render(&told, &plain()), "error: expected success, found an `isError` result: no \"such\" tool\n");
}

#[test]
fn a_server_that_exits_at_start_is_named() {
    let text = "  stdio: { command: node server.js }";
    let diagnostic = Diagnostic::error("server-exited", "server exited with code 1, 212 ms after start, before responding to `initialize`")
        .at(place(3, text, "node server.js"))
        .evidence(evidence(
            frames(vec![
                (0, '.', FrameBody::Spawned { pid: 4711, command: vec!["node".into(), "server.js".into()] }),
                (2, '>', line(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"mcproof","version":"0.1.0"}}}"#)),
                (209, '.', FrameBody::Closed { pipe: "stdout".into() }),
                (212, '.', FrameBody::Exited { code: Some(1), signal: None }),
            ]),
            0,
            &["node:internal/modules/cjs/loader:1148", "  throw err;", "  ^", "", "Error: Cannot find module './db'"],
        ))
        .hint("run `node server.js` by hand to see the whole trace");
    assert_snapshot!(render(&diagnostic, &plain()));
}

#[test]
fn a_timeout_shows_what_the_server_said_instead() {
    let text = "      - call: long_operation";
    let diagnostic = Diagnostic::error("timeout", "no response to `tools/call` within 10.0 s")
        .at(place(41, text, "long_operation"))
        .evidence(evidence(
            frames(vec![
                (35, '>', line(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"long_operation","arguments":{"id":"1"},"_meta":{"progressToken":1}}}"#)),
                (36, '<', line(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"total":100}}"#)),
                (40, '<', line("starting worker...")),
                (10035, '.', FrameBody::Note { text: "no answer to request #7 within 10.0 s; the next request was not sent because the server was still busy with this one".into() }),
            ]),
            4,
            &["worker pool: 0 of 4 free"],
        ))
        .hint("raise `timeouts.request`, or `within` of this step");
    assert_snapshot!(render(&diagnostic, &plain()));
}

fn request(exchange: u64, method: &str, body: &str) -> FrameBody {
    let url = "http://127.0.0.1:8000/mcp".into();
    FrameBody::HttpRequest { exchange: ExchangeId(exchange), method: method.into(), url, headers: vec![], body: body.into() }
}

fn response(exchange: u64, status: u16, content_type: &str) -> FrameBody {
    FrameBody::HttpResponse { exchange: ExchangeId(exchange), status, headers: vec![("content-type".into(), content_type.into())] }
}

#[test]
fn an_http_exchange_is_readable() {
    let body = |exchange, text: &str| FrameBody::HttpBody { exchange: ExchangeId(exchange), bytes: text.into() };
    let end = |exchange, error: Option<&str>| FrameBody::HttpEnd { exchange: ExchangeId(exchange), error: error.map(Into::into) };
    let diagnostic =
        Diagnostic::error("http-unknown-session-is-404", "an unknown session was answered with 400 instead of 404").evidence(evidence(
            frames(vec![
                (10, '>', request(0, "POST", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)),
                (22, '<', response(0, 200, "application/json")),
                (22, '<', body(0, "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": {}\n}\n")),
                (22, '.', end(0, None)),
                (30, '>', request(1, "POST", r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#)),
                (31, '>', request(2, "GET", "")),
                (33, '<', FrameBody::HttpResponse { exchange: ExchangeId(1), status: 400, headers: vec![] }),
                (33, '<', body(1, "Bad Request: no such session")),
                (33, '.', end(1, None)),
                (90, '.', end(2, Some("the connection was closed before an answer"))),
            ]),
            0,
            &[],
        ));
    assert_snapshot!(render(&diagnostic, &plain()));
}

#[test]
fn a_hostile_server_cannot_paint_on_the_terminal() {
    let event = |event: Option<&str>, data: Option<&str>, raw: &str| FrameBody::SseEvent {
        exchange: ExchangeId(0),
        bytes: raw.into(),
        event: event.map(Into::into),
        id: None,
        data: data.map(Into::into),
    };
    let evil =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\u{202e}evil\u{2066} \u{9b}31m\u{200b}\"}]}}";
    let mut diagnostic = Diagnostic::error("unexpected-value", "response does not match: \u{1b}[2J\u{1b}]0;pwned\u{7}\nerror: forged")
        .at(place(9, "        expect: { $text: fine\u{202e} }", "fine\u{202e}"))
        .evidence(evidence(
            frames(vec![
                (3, '>', request(0, "GET", "")),
                (5, '<', response(0, 200, "text/event-stream\u{1b}[31m")),
                (6, '<', event(Some("endpoint"), Some("/messages?session=1"), "event: endpoint\ndata: /messages?session=1\n\n")),
                (7, '<', event(None, None, ": ping\n\n")),
                (9, '<', event(Some("message"), Some(evil), "")),
                (9, '.', FrameBody::HttpEnd { exchange: ExchangeId(0), error: None }),
            ]),
            0,
            &["\u{1b}[1m\u{1b}[31mboom\u{1b}[0m\r", "\u{feff}hidden"],
        ))
        .hint("look at \u{1b}[8mthis");
    diagnostic.differences = vec![difference(
        "",
        "\"fine\"",
        "\"\u{202e}evil\u{2066} \u{1b}[31m\u{200b}\"",
        Some(place(9, "        expect: { $text: fine\u{202e} }", "fine\u{202e}")),
    )];
    let text = render(&diagnostic, &plain());
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{2066}', '\u{9b}', '\u{7}', '\u{feff}', '\u{200b}', '\r']), "{text:?}");
    assert!(!text.contains("\nerror: forged"), "{text}");
    assert_snapshot!(text);
}

#[test]
fn every_mistake_of_a_suite_is_shown() {
    let mistakes = [
        Diagnostic::error("unknown-key", "unknown key `expects`")
            .at(place(7, "        expects: { available: 10 }", "expects"))
            .hint("did you mean `expect`?"),
        Diagnostic::error("wrong-type", "`within` is a duration, not a list").at(place(12, "\twithin: [200ms]", "[200ms]")),
        Diagnostic::error("unknown-variable", "nothing defines `ordr`")
            .at(place(18, "        with: { order_id: \"${ordr}\" }", "${ordr}"))
            .hint("did you mean `order`? line 13 saves it"),
    ];
    assert_snapshot!(render_all(&mistakes, &plain()));
}

#[test]
fn wide_characters_and_endless_lines_keep_their_carets() {
    let wide = "\texpect: { 名前: 日本語テキスト, 数: 10 }";
    let endless = format!("        expect: {{ text: \"{}\", available: 10, more: \"{}\" }}", "x".repeat(3000), "y".repeat(2000));
    let answer = format!(r#"{{"jsonrpc":"2.0","id":3,"result":{{"text":"{}"}}}}"#, "語".repeat(5000));
    let mut diagnostic = Diagnostic::error("unexpected-value", "response does not match in 2 places").evidence(evidence(
        frames(vec![(8, '<', line(&answer))]),
        0,
        &["z".repeat(5000).as_str()],
    ));
    diagnostic.differences = vec![
        difference("名前", "\"日本語テキスト\"", "\"中文\"", Some(place(5, wide, "日本語テキスト"))),
        difference("available", "10", "8", Some(place(6, &endless, "10"))),
    ];
    let text = render(&diagnostic, &plain());
    assert!(text.lines().all(|line| unicode_width::UnicodeWidthStr::width(line) <= 100), "{text}");
    assert_snapshot!(text);
}

#[test]
fn odd_places_and_widths_do_no_harm() {
    let odd = |line, column, length, text: &str| Place { file: "".into(), line, column, length, text: text.into() };
    let places = [
        odd(0, 0, 0, ""),
        odd(1, 9, 9, "abc"),
        odd(u32::MAX, u32::MAX, u32::MAX, "a\nb\rc"),
        odd(5, 2, 400, "é\u{301}日\t\u{1b}"),
        odd(7, 1, 1, "e\u{301}"),
        odd(1, 2500, 1, &"日".repeat(5000)),
        odd(1, 10, 1, &"日".repeat(5000)),
    ];
    for width in [0, 1, 20, 41, 100, 10_000] {
        for color in [Color::Plain, Color::Ansi] {
            for charset in [Charset::Unicode, Charset::Ascii] {
                let style = Style { color, charset, width };
                let mut all = two_differences();
                all.differences.extend(places.iter().map(|place| difference("a[0]", "1", "2", Some(place.clone()))));
                let text = render(&all, &style);
                assert!(text.ends_with('\n') && (charset == Charset::Unicode || text.is_ascii()), "{text}");
                for place in &places {
                    assert!(render(&Diagnostic::error("a", "b").at(place.clone()), &style).starts_with(['e', '\u{1b}']));
                }
            }
        }
    }
}

fn outcome(id: u32, verdict: Verdict, millis: u64, transport: &str, diagnostics: Vec<Diagnostic>) -> Event {
    let proof = Proof { server: "shop".into(), transport: transport.into(), era: "legacy".into(), protocol_version: "2025-11-25".into() };
    let duration = Duration::from_millis(millis);
    Event::CaseFinished(CaseOutcome { proof: vec![proof], diagnostics, ..CaseOutcome::new(CaseId(id), verdict, duration) })
}

fn run() -> Vec<Event> {
    let cases = ["an order reduces the stock", "too large an order is refused"];
    let cases: Vec<CasePlan> = cases
        .iter()
        .flat_map(|name| ["stdio", "http", "sse"].map(|transport| (name, transport)))
        .zip(0..)
        .map(|((name, transport), id)| CasePlan {
            id: CaseId(id),
            suite: "shop.mcproof.yaml".into(),
            name: (*name).into(),
            transport: transport.into(),
            line: 1,
            repetition: 0,
            tags: vec![],
            servers: vec![],
        })
        .collect();
    let refused = || {
        Diagnostic::error("unexpected-outcome", "expected an `isError` result, but the call succeeded").at(place(
            30,
            "        tool_error: /insufficient inventory/i",
            "/insufficient inventory/i",
        ))
    };
    let warning = Diagnostic::warning("stdio-ends-with-stdin", "the server did not end when its stdin was closed");
    let mut events = vec![Event::RunStarted { version: FORMAT_VERSION, cases, left_out: 0, seed: None }];
    events.extend((0..6).map(|id| Event::CaseStarted { id: CaseId(id) }));
    events.extend([
        outcome(1, Verdict::Fail, 61, "http", vec![two_differences()]),
        outcome(0, Verdict::Pass, 43, "stdio", vec![warning]),
        outcome(3, Verdict::Fail, 38, "stdio", vec![refused()]),
        outcome(2, Verdict::Pass, 112, "sse", vec![]),
        outcome(4, Verdict::Fail, 73, "http", vec![refused()]),
        outcome(5, Verdict::Canceled, 12345, "sse", vec![]),
        Event::TransportSpecific {
            suite: "shop.mcproof.yaml".into(),
            name: "an order reduces the stock".into(),
            failed: vec!["http".into()],
            passed: vec!["stdio".into(), "sse".into()],
            parting: None,
        },
        Event::RunFinished {
            counts: Counts { passed: 2, failed: 3, canceled: 1, ..Counts::default() },
            duration: Duration::from_millis(842),
        },
    ]);
    events
}

fn report(events: &[Event], style: Style, detail: Detail, progress: Progress) -> String {
    let mut terminal = Terminal::new(Vec::new(), style, detail, progress);
    for event in events {
        terminal.event(event).expect("a Vec takes all bytes");
    }
    String::from_utf8(terminal.into_inner()).expect("a report is UTF-8")
}

#[test]
fn a_run_ends_with_its_failures_and_a_summary() {
    assert_snapshot!(report(&run(), plain(), Detail::Normal, Progress::Off));
}

#[test]
fn a_server_that_never_starts_is_one_finding() {
    let cases: Vec<CasePlan> = (0..60)
        .map(|id| CasePlan {
            id: CaseId(id),
            suite: "shop.mcproof.yaml".into(),
            name: format!("case {id}"),
            transport: "stdio".into(),
            line: 1,
            repetition: 0,
            tags: vec![],
            servers: vec![],
        })
        .collect();
    let mut events = vec![Event::RunStarted { version: FORMAT_VERSION, cases, left_out: 0, seed: None }];
    events.extend((0..60).map(|id| {
        let message = format!("server exited with code 1, {} ms after start, before responding to `initialize`", 200 + id);
        outcome(id, Verdict::Fail, 200, "stdio", vec![Diagnostic::error("server-exited", message)])
    }));
    events.push(Event::RunFinished {
        counts: Counts { passed: 0, failed: 60, canceled: 0, ..Counts::default() },
        duration: Duration::from_secs(7),
    });
    assert_snapshot!(report(&events, plain(), Detail::Quiet, Progress::Off));
}

#[test]
fn verbose_shows_what_the_wire_proved() {
    let text = report(&run(), plain(), Detail::Verbose, Progress::Off);
    assert_snapshot!(text.split("\n\n").next().unwrap());
}

#[test]
fn quiet_says_nothing_of_what_passed() {
    let mut events = run();
    let passed = |event: &Event| !matches!(event, Event::CaseFinished(outcome) if outcome.verdict != Verdict::Pass || !outcome.diagnostics.is_empty());
    events.retain(|event| passed(event) && !matches!(event, Event::TransportSpecific { .. } | Event::RunFinished { .. }));
    events.push(Event::RunFinished {
        counts: Counts { passed: 1, failed: 0, canceled: 0, ..Counts::default() },
        duration: Duration::from_millis(9),
    });
    assert_eq!(report(&events, plain(), Detail::Quiet, Progress::Off), "1 passed in 0.01 s\n");
    assert!(report(&run(), plain(), Detail::Quiet, Progress::Off).contains("✗ FAIL [http]"));
}

#[test]
fn a_pipe_gets_no_escape_sequence_and_a_terminal_leaves_no_rest() {
    assert!(!report(&run(), plain(), Detail::Normal, Progress::Off).contains('\u{1b}'));
    let live = report(&run(), plain(), Detail::Normal, Progress::Live);
    assert!(live.contains("0/6 done, running an order reduces the stock [stdio], "));
    // What stays on the screen once every line that was written over is gone.
    let stays: String = live.split('\n').map(|line| line.rsplit("\r\u{1b}[2K").next().unwrap()).collect::<Vec<_>>().join("\n");
    assert_eq!(stays, report(&run(), plain(), Detail::Normal, Progress::Off));
}

#[test]
fn one_test_is_no_plural() {
    let case = CasePlan {
        id: CaseId(0),
        suite: "a.mcproof.yaml".into(),
        name: "x\ny\u{1b}[2J".into(),
        transport: "stdio".into(),
        line: 1,
        repetition: 0,
        tags: vec![],
        servers: vec![],
    };
    let events = [
        Event::RunStarted { version: FORMAT_VERSION, cases: vec![case], left_out: 0, seed: None },
        outcome(0, Verdict::Pass, 5, "stdio", vec![]),
        Event::RunFinished {
            counts: Counts { passed: 1, failed: 0, canceled: 0, ..Counts::default() },
            duration: Duration::from_millis(84),
        },
    ];
    let expected = "running 1 test from 1 suite\nPASS  0.005 s [stdio] a.mcproof.yaml > x\\ny\\u{1b}[2J\n\n1 passed in 0.08 s\n";
    assert_eq!(report(&events, Style { charset: Charset::Ascii, ..plain() }, Detail::Normal, Progress::Off), expected);
}

#[test]
fn json_lines_read_back_as_the_events() {
    let mut sink = JsonLines::new(Vec::new());
    for event in &run() {
        sink.event(event).unwrap();
    }
    let text = String::from_utf8(sink.into_inner()).unwrap();
    let back: Vec<Event> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(back, run());
    assert!(text.ends_with('\n'));
}
