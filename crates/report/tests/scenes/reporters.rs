//! The same runs through every reporter, as golden texts; and what a hostile server or suite cannot do to any of them.

use super::{difference, frames, line, outcome, place, plain, two_differences};
use insta::assert_snapshot;
use mcproof_record::{
    Aftermath, AnswerKind, Blame, Branch, CaseId, CaseOutcome, CasePlan, Counts, Coverage, CoveredItem, Diagnostic, Event, Evidence,
    Exchange, FORMAT_VERSION, FrameBody, ItemKind, Parting, Proof, ServerState, SessionTranscript, StepOutcome, Transcript, Verdict,
};
use mcproof_report::agent::Agent;
use mcproof_report::github::Github;
use mcproof_report::html::Html;
use mcproof_report::junit::Junit;
use mcproof_report::tap::Tap;
use mcproof_report::terminal::{Detail, Progress, Terminal};
use mcproof_report::{Repeat, Reporter};
use serde_json::Value;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

fn case(id: u32, name: &str, transport: &str, tags: &[&str]) -> CasePlan {
    CasePlan {
        id: CaseId(id),
        suite: "suites/shop.mcproof.yaml".into(),
        name: name.into(),
        transport: transport.into(),
        line: 14 + id,
        repetition: 0,
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        servers: vec!["shop".into()],
    }
}

fn proof(transport: &str) -> Proof {
    Proof { server: "shop".into(), transport: transport.into(), era: "modern".into(), protocol_version: "2026-07-28".into() }
}

fn step(title: &str, at: u64, millis: u64, passed: bool, answer: AnswerKind) -> StepOutcome {
    let text = format!("      - call: {title}");
    StepOutcome {
        title: format!("call {title}"),
        server: "shop".into(),
        place: place(20, &text, title),
        at: Duration::from_millis(at),
        duration: Duration::from_millis(millis),
        passed,
        exchanges: vec![Exchange {
            method: "tools/call".into(),
            target: Some(title.into()),
            arguments: serde_json::Map::new(),
            answer,
            retried: false,
            duration: Duration::from_millis(millis),
            frame: None,
        }],
    }
}

fn item(kind: ItemKind, name: &str, argument: Option<&str>, uses: u32) -> CoveredItem {
    CoveredItem { kind, name: name.into(), argument: argument.map(str::to_owned), uses }
}

/// One case for each thing that can come of one.
fn every_verdict() -> Vec<Event> {
    let cases = vec![
        case(0, "an order reduces the stock", "stdio", &["smoke"]),
        case(1, "an order reduces the stock", "http", &["smoke"]),
        case(2, "a refund is paid", "stdio", &[]),
        case(3, "a payment is retried", "stdio", &["slow", "money"]),
        case(4, "the archive is read", "stdio", &[]),
        case(5, "the last one", "stdio", &[]),
        case(6, "the shop opens", "stdio", &[]),
    ];
    let passed = CaseOutcome {
        proof: vec![proof("stdio")],
        steps: vec![step("check_inventory", 12, 3, true, AnswerKind::Result)],
        ..CaseOutcome::new(CaseId(0), Verdict::Pass, Duration::from_millis(43))
    };
    let wire = two_differences().evidence.map(|evidence| evidence.frames).unwrap_or_default();
    let failed = CaseOutcome {
        proof: vec![proof("http")],
        diagnostics: vec![two_differences()],
        steps: vec![step("create_order", 12, 3, true, AnswerKind::Result), step("check_inventory", 15, 40, false, AnswerKind::Result)],
        aftermath: vec![Aftermath {
            server: "shop".into(),
            state: ServerState::Answers,
            blame: Blame::ServerOrSuite,
            message: "still responds to `ping`".into(),
        }],
        transcripts: vec![SessionTranscript { server: "shop".into(), transcript: Transcript { frames: wire, dropped: 3 } }],
        ..CaseOutcome::new(CaseId(1), Verdict::Fail, Duration::from_millis(61))
    };
    let died = Diagnostic::error("server-exited", "server exited with code 3, 212 ms after start, before responding to `tools/call`")
        .at(place(31, "      - call: refund", "refund"))
        .evidence(Evidence {
            frames: frames(vec![
                (200, '>', line(r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"refund","arguments":{}}}"#)),
                (212, '.', FrameBody::Exited { code: Some(3), signal: None }),
            ]),
            omitted: 2,
            stderr: vec!["Error: no such table: refunds".into()],
        })
        .hint("run `node shop.js` by hand to see the whole trace");
    let dead = CaseOutcome {
        diagnostics: vec![died],
        aftermath: vec![Aftermath {
            server: "shop".into(),
            state: ServerState::Died,
            blame: Blame::Server,
            message: "exited with code 3".into(),
        }],
        ..CaseOutcome::new(CaseId(2), Verdict::Fail, Duration::from_millis(230))
    };
    let flaky =
        CaseOutcome { proof: vec![proof("stdio")], attempts: 2, ..CaseOutcome::new(CaseId(3), Verdict::Flaky, Duration::from_millis(90)) };
    let note =
        Diagnostic { severity: mcproof_record::Severity::Note, ..Diagnostic::warning("skipped", "`skip_if` holds: no archive here") };
    let skipped = CaseOutcome { diagnostics: vec![note], ..CaseOutcome::new(CaseId(4), Verdict::Skipped, Duration::ZERO) };
    let warned = CaseOutcome {
        proof: vec![proof("stdio")],
        diagnostics: vec![Diagnostic::warning("stdio-ends-with-stdin", "the server did not end when its stdin was closed")],
        ..CaseOutcome::new(CaseId(6), Verdict::Pass, Duration::from_millis(20))
    };
    let mut events = vec![Event::RunStarted { version: FORMAT_VERSION, cases, left_out: 0, seed: None }];
    events.extend([passed, dead, failed, flaky, skipped, warned].map(Event::CaseFinished));
    events.extend([
        Event::TransportSpecific {
            suite: "suites/shop.mcproof.yaml".into(),
            name: "an order reduces the stock".into(),
            failed: vec!["http".into()],
            passed: vec!["stdio".into()],
            parting: Some(Box::new(Parting {
                step: "call check_inventory".into(),
                passed: Branch {
                    transport: "stdio".into(),
                    frame: frames(vec![(4, '<', line(r#"{"jsonrpc":"2.0","id":4,"result":{"available":10}}"#))]).pop(),
                },
                failed: Branch { transport: "http".into(), frame: None },
            })),
        },
        Event::Notice {
            diagnostic: Diagnostic::warning("no-expectation", "the test `the shop opens` expects nothing, so it cannot fail")
                .hint("add `expect`"),
        },
        Event::Covered(Coverage {
            suite: "suites/shop.mcproof.yaml".into(),
            server: "shop".into(),
            items: vec![
                item(ItemKind::Tool, "check_inventory", None, 2),
                item(ItemKind::ToolError, "check_inventory", None, 0),
                item(ItemKind::ToolArgument, "check_inventory", Some("product_id"), 2),
                item(ItemKind::Tool, "cancel_order", None, 0),
                item(ItemKind::ToolError, "cancel_order", None, 0),
                item(ItemKind::ToolArgument, "cancel_order", Some("reason"), 0),
                item(ItemKind::Resource, "shop://catalog", None, 0),
            ],
        }),
        Event::RunFinished {
            counts: Counts { passed: 2, flaky: 1, failed: 2, skipped: 1, canceled: 1 },
            duration: Duration::from_millis(842),
        },
    ]);
    events
}

const EVIL: &str =
    "\u{1b}[2J\u{202e}</script><!-- ]]> <img src=x onerror=alert(1)> `\n::error::forged\r\n# \u{0}\u{fffe}\u{feff} %0A ``` @all";

/// A run in which everything that a server or a suite can choose is hostile.
fn hostile() -> Vec<Event> {
    let evil = || EVIL.to_owned();
    let plan = |id, name: &str| CasePlan {
        suite: evil(),
        name: name.into(),
        transport: evil(),
        tags: vec![evil()],
        servers: vec![evil()],
        ..case(id, "", "", &[])
    };
    let mut diagnostic = Diagnostic::error(EVIL, EVIL).at(place(9, EVIL, "onerror")).hint(EVIL).evidence(Evidence {
        frames: frames(vec![
            (1, '<', line(EVIL)),
            (2, '<', FrameBody::Stderr { bytes: vec![0xff, 0x1b, b'<'].into() }),
            (3, '.', FrameBody::Note { text: evil() }),
        ]),
        omitted: 0,
        stderr: vec![evil()],
    });
    diagnostic.differences = vec![difference(EVIL, EVIL, EVIL, None)];
    diagnostic.actual = Some(evil());
    let transcript = Transcript { frames: diagnostic.evidence.clone().map(|evidence| evidence.frames).unwrap_or_default(), dropped: 0 };
    let outcome = |id, verdict| CaseOutcome {
        proof: vec![Proof { server: evil(), transport: evil(), era: evil(), protocol_version: evil() }],
        attempts: 2,
        diagnostics: vec![diagnostic.clone()],
        steps: vec![StepOutcome { title: evil(), server: evil(), ..step(EVIL, 0, 1, false, AnswerKind::Nothing) }],
        aftermath: vec![Aftermath { server: evil(), state: ServerState::Hung, blame: Blame::Server, message: evil() }],
        transcripts: vec![SessionTranscript { server: evil(), transcript: transcript.clone() }],
        ..CaseOutcome::new(CaseId(id), verdict, Duration::from_millis(5))
    };
    let branch = || Branch { transport: evil(), frame: frames(vec![(1, '<', line(EVIL))]).pop() };
    let parting = Parting { step: evil(), passed: branch(), failed: branch() };
    vec![
        Event::RunStarted {
            version: FORMAT_VERSION,
            cases: vec![plan(0, EVIL), plan(1, "flaky"), plan(2, "skipped"), plan(3, "never ran")],
            left_out: 0,
            seed: None,
        },
        Event::CaseFinished(outcome(0, Verdict::Fail)),
        Event::CaseFinished(outcome(1, Verdict::Flaky)),
        Event::CaseFinished(outcome(2, Verdict::Skipped)),
        Event::TransportSpecific {
            suite: evil(),
            name: evil(),
            failed: vec![evil()],
            passed: vec![evil()],
            parting: Some(Box::new(parting)),
        },
        Event::Notice { diagnostic: diagnostic.clone() },
        Event::Covered(Coverage { suite: evil(), server: evil(), items: vec![item(ItemKind::ToolArgument, EVIL, Some(EVIL), 0)] }),
        Event::RunFinished {
            counts: Counts { failed: 1, flaky: 1, skipped: 1, canceled: 1, ..Counts::default() },
            duration: Duration::from_millis(84),
        },
    ]
}

fn feed<R: Reporter>(mut reporter: R, events: &[Event]) -> R {
    events.iter().for_each(|event| reporter.event(event).expect("a Vec takes all bytes"));
    reporter
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("a report is UTF-8")
}

fn agent(events: &[Event]) -> String {
    let repeat = Repeat { flags: vec!["--era".into(), "modern".into()], server: vec![] };
    text(feed(Agent::new(Vec::new(), repeat), events).into_inner())
}

fn tap(events: &[Event]) -> String {
    text(feed(Tap::new(Vec::new()), events).into_inner())
}

fn junit(events: &[Event]) -> String {
    text(feed(Junit::new(Vec::new()), events).into_inner())
}

/// The commands and the summary.
fn github(events: &[Event]) -> (String, String) {
    let sink = Github::new(Vec::new(), Some(Vec::new()), "packages/shop/".into(), Some("word".into()));
    let (commands, summary) = feed(sink, events).into_inner();
    (text(commands), text(summary.unwrap_or_default()))
}

fn html(events: &[Event]) -> String {
    text(feed(Html::new(Vec::new()), events).into_inner())
}

/// The JSON of a page's data.
fn data(page: &str, id: &str) -> Value {
    let (_, rest) = page.split_once(&format!("id=\"{id}\">")).expect("the page has its data");
    let (json, _) = rest.split_once("</script>").expect("the data ends");
    serde_json::from_str(json).expect("the data is JSON")
}

#[test]
fn a_person_sees_every_verdict_with_its_reason() {
    let sink = Terminal::new(Vec::new(), plain(), Detail::Normal, Progress::Off);
    assert_snapshot!(text(feed(sink, &every_verdict()).into_inner()));
}

#[test]
fn the_time_left_is_estimated_from_what_is_done() {
    let cases = (0..9).map(|id| case(id, "x", "stdio", &[])).collect();
    let mut events = vec![Event::RunStarted { version: FORMAT_VERSION, cases, left_out: 0, seed: None }];
    events.extend([0, 1].map(|id| Event::CaseStarted { id: CaseId(id) }));
    events.push(outcome(0, Verdict::Pass, 3000, "stdio", vec![]));
    events.push(Event::CaseStarted { id: CaseId(2) });
    let sink = Terminal::new(Vec::new(), plain(), Detail::Normal, Progress::Live);
    let text = text(feed(sink, &events).into_inner());
    // Eight cases of three seconds each, two at a time.
    assert!(text.ends_with("1/9 done, about 12 s left, running x [stdio], x [stdio]"), "{text:?}");
}

#[test]
fn an_agent_reads_the_likeliest_cause_first() {
    assert_snapshot!(agent(&every_verdict()));
    let passed = [every_verdict()[0].clone(), every_verdict()[1].clone()];
    let finished = Event::RunFinished { counts: Counts { passed: 1, ..Counts::default() }, duration: Duration::from_millis(42) };
    assert_eq!(agent(&[&passed[..], &[finished]].concat()), "PASSED: 1 passed in 0.04 s\n");
}

#[test]
fn tap_comes_in_the_order_of_the_plan() {
    assert_snapshot!(tap(&every_verdict()));
    // A point is written as soon as all before it are.
    assert_eq!(tap(&every_verdict()[..2]).matches("\nok ").count(), 1);
    assert_eq!(tap(&every_verdict()[..3]).matches("\nnot ok ").count(), 0);
}

/// Checks a document with libxml2 against the schema that CI systems use.
fn validate(document: &str) -> Result<(), String> {
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenes/junit.xsd");
    let xmllint = Command::new("xmllint")
        .args(["--noout", "--nonet", "--schema", schema, "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut xmllint = xmllint.expect("xmllint is installed: `apt-get install libxml2-utils`, or run `cargo xtask check`");
    xmllint.stdin.take().expect("it is piped").write_all(document.as_bytes()).expect("xmllint reads");
    let output = xmllint.wait_with_output().expect("xmllint ends");
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

#[test]
fn junit_is_what_ci_systems_read() {
    let document = junit(&every_verdict());
    validate(&document).unwrap();
    validate(&junit(&hostile())).unwrap();
    validate(&junit(&[Event::RunStarted { version: 1, cases: vec![], left_out: 0, seed: None }, every_verdict().pop().unwrap()])).unwrap();
    let flaw = document.replace("failures=\"1\"", "failures=\"one\"");
    assert!(validate(&flaw).unwrap_err().contains("failures"));
    assert_snapshot!(document);
}

#[test]
fn github_annotates_lines_and_gets_a_summary() {
    let (commands, summary) = github(&every_verdict());
    assert_snapshot!(format!("{commands}\n{summary}"));
}

#[test]
fn every_report_tells_repetitions_apart() {
    let repeated = |id: u32, repetition: u32| CasePlan { repetition, ..case(id, "it holds", "stdio", &[]) };
    let cases = (0..5).map(|id| repeated(id, id + 1)).collect();
    let mut events = vec![Event::RunStarted { version: FORMAT_VERSION, cases, left_out: 0, seed: None }];
    let failure = || vec![Diagnostic::error("x", "it broke")];
    events.push(outcome(0, Verdict::Pass, 1, "stdio", vec![]));
    events.extend([1, 2, 4].map(|id| outcome(id, Verdict::Fail, 1, "stdio", failure())));
    events.push(outcome(3, Verdict::Flaky, 1, "stdio", vec![]));
    events.extend(every_verdict().pop());
    let (commands, summary) = github(&events);
    let page = data(&html(&events), "tests").to_string();
    let junit = junit(&events);
    validate(&junit).unwrap();
    let check = |report: &str, expected: &[&str]| {
        expected.iter().for_each(|part| assert_eq!(report.matches(part).count(), 1, "{part:?} is not once in\n{report}"));
    };
    check(&junit, &["name=\"it holds #1\"", "name=\"it holds #2\"", "name=\"it holds #5\""]);
    check(&tap(&events), &["> it holds \\#1 [stdio]", "> it holds \\#2 [stdio]", "> it holds \\#5 [stdio]"]);
    check(&page, &["\"it holds #1\"", "\"it holds #5\""]);
    check(&agent(&events), &["it holds #2-3, #5 [stdio]"]);
    check(&commands, &["title=it holds #2-3%2C #5 [stdio]"]);
    check(&summary, &["it holds \\#2-3, \\#5 [stdio]"]);
    let sink = Terminal::new(Vec::new(), plain(), Detail::Normal, Progress::Off);
    check(&text(feed(sink, &events).into_inner()), &["it holds #1\n", "it holds #2-3, #5\n"]);
}

#[test]
fn github_shows_ten_annotations_and_tells_of_the_rest() {
    let cases: Vec<CasePlan> = (0..40).map(|id| case(id, &format!("case {id}"), "stdio", &[])).collect();
    let mut events = vec![Event::RunStarted { version: FORMAT_VERSION, cases, left_out: 0, seed: None }];
    events.extend((0..40).map(|id| outcome(id, Verdict::Fail, 1, "stdio", vec![Diagnostic::error("x", format!("failure {id}"))])));
    events.extend(every_verdict().pop());
    let (commands, summary) = github(&events);
    assert_eq!(commands.matches("::error ").count(), 9);
    assert!(commands.ends_with("::notice title=mcproof::31 more findings are in the log and the summary\n"), "{commands}");
    assert_eq!(summary.matches("### ").count(), 40);
}

#[test]
fn a_page_holds_the_run_and_fetches_nothing() {
    let page = html(&every_verdict());
    let (run, cases) = (data(&page, "run"), data(&page, "tests"));
    assert_eq!(run["summary"], "2 passed, 1 flaky, 2 failed, 1 skipped, 1 canceled in 0.84 s");
    assert_eq!(run["coverage"][0]["percent"], 28);
    let verdicts: Vec<&str> = cases.as_array().unwrap().iter().map(|case| case["outcome"]["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["pass", "fail", "fail", "flaky", "skipped", "canceled", "pass"]);
    let failed = &cases[1]["outcome"];
    assert_eq!(failed["diagnostics"][0]["diff"][1], serde_json::json!(["-", "  \"available\": 10,"]));
    assert!(failed["sessions"][0]["frames"][0]["said"].as_str().unwrap().starts_with("tools/call #4 {"));
    assert_eq!(failed["sessions"][0]["dropped"], 3);
    // A case without transcripts shows what its diagnosis has.
    assert_eq!(cases[2]["outcome"]["sessions"][0]["frames"][1]["said"], "exited with code 3");
    let markup: String = page.lines().filter(|line| line.starts_with('<')).collect();
    assert!(!markup.contains("src=") && !markup.contains("href=") && !page.contains("@import") && !page.contains("url("));
}

#[test]
fn a_page_is_cut_to_what_a_browser_likes_and_says_so() {
    let huge = format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{}"}}"#, "语".repeat(10_000));
    let cases: Vec<CasePlan> = (0..200).map(|id| case(id, &format!("case {id}"), "stdio", &[])).collect();
    let all = frames((0..1000).map(|at| (at, '<', line(&huge))).collect());
    let mut sink = Html::new(Vec::new());
    sink.event(&Event::RunStarted { version: FORMAT_VERSION, cases, left_out: 0, seed: None }).unwrap();
    for id in 0..200 {
        let verdict = if id % 2 == 0 { Verdict::Pass } else { Verdict::Fail };
        let transcript = Transcript { frames: all.clone(), dropped: 0 };
        let outcome = CaseOutcome {
            transcripts: vec![SessionTranscript { server: "shop".into(), transcript }],
            ..CaseOutcome::new(CaseId(id), verdict, Duration::from_millis(1))
        };
        sink.event(&Event::CaseFinished(outcome)).unwrap();
    }
    sink.event(&every_verdict().pop().unwrap()).unwrap();
    let page = text(sink.into_inner());
    assert!(page.len() < 40 << 20, "{} bytes", page.len());
    let cases = data(&page, "tests");
    let session = &cases[0]["outcome"]["sessions"][0];
    assert_eq!((&session["between"], &session["after"]), (&serde_json::json!(600), &serde_json::json!(50)));
    let frame = &session["frames"][0];
    assert_eq!((frame["cut"].as_bool(), frame["size"].as_u64()), (Some(true), Some(huge.len() as u64)));
    assert!(frame["text"].as_str().unwrap().len() <= 16 * 1024);
    // What passed takes no room from what failed.
    assert!(cases[1]["outcome"]["sessions"][0]["frames"].as_array().unwrap().len() == 400);
    assert!(cases[199]["outcome"]["sessions"][0]["unshown"].as_u64().unwrap() > 0);
}

#[test]
fn nothing_hostile_leaves_any_reporter() {
    let terminal = |detail| text(feed(Terminal::new(Vec::new(), plain(), detail, Progress::Off), &hostile()).into_inner());
    let (commands, summary) = github(&hostile());
    let page = html(&hostile());
    let reports = [
        ("terminal", terminal(Detail::Verbose)),
        ("agent", agent(&hostile())),
        ("tap", tap(&hostile())),
        ("junit", junit(&hostile())),
        ("github", commands.clone()),
        ("summary", summary.clone()),
        ("html", page.clone()),
    ];
    for (name, report) in &reports {
        let evil = report.chars().find(|character| "\u{1b}\u{202e}\u{0}\u{feff}\r".contains(*character));
        assert_eq!(evil, None, "{name}: {report}");
        assert!(!report.lines().any(|line| line.starts_with("::error::forged")), "{name}: {report}");
        assert!(report.contains("onerror"), "{name} shows what came: {report}");
    }
    // In TAP, every line is ours: a point, a part of a block, a comment.
    assert_eq!(tap(&hostile()).lines().filter(|line| line.starts_with("not ok ")).count(), 2);
    assert!(!junit(&hostile()).contains("<img"));
    assert!(!summary.contains("<img src") || summary.lines().all(|line| !line.contains("<img src") || !line.starts_with(['#', '-', '|'])));
    // The only ends of scripts are ours: two of data, one of the script.
    assert_eq!(page.matches("</script>").count(), 3);
    assert!(!page.contains("<img") && data(&page, "tests")[0]["plan"]["name"].as_str().unwrap().contains("</script><!-- ]]> <img"));
    let commands = commands.lines().filter(|line| !line.starts_with("::")).collect::<Vec<_>>();
    assert!(commands.is_empty(), "{commands:?}");
}

#[test]
fn hostile_reports_are_golden_too() {
    assert_snapshot!("hostile_agent", agent(&hostile()));
    assert_snapshot!("hostile_tap", tap(&hostile()));
    assert_snapshot!("hostile_junit", junit(&hostile()));
    let (commands, summary) = github(&hostile());
    assert_snapshot!("hostile_github", format!("{commands}\n{summary}"));
}
