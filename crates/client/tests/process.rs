//! Servers as processes: they are started again where the era requests it, and nothing of them is left in any end.
//! The servers are shell scripts, for no SDK misbehaves like this.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mcproof_client::{ConnectFailure, ConnectOptions, Launch, ProcessSignal, Session, ShutdownTimeouts, Tap, Target, open_session};
use mcproof_protocol::{Era, EraChoice};
use std::time::{Duration, Instant};

/// `answer N` answers `initialize` with id N, `discovered N` the question for the era, `list N` that for tools, `no N` refuses any.
const LEGACY: &str = r#"
    no() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$1"; }
    list() { printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[]}}\n' "$1"; }
    discovered() { printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}\n' "$1"; }
    answer() { printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}}\n' "$1"; }
"#;

fn script(body: &str) -> Target {
    let command = ["sh", "-c", &format!("{LEGACY}\n{body}")].map(str::to_owned).to_vec();
    Target::Stdio(Launch { command, ..Launch::default() })
}

fn options() -> ConnectOptions {
    let patience = ShutdownTimeouts { end_of_input: Duration::from_millis(300), terminate: Duration::from_millis(300) };
    ConnectOptions { timeout: Some(Duration::from_secs(4)), patience, ..ConnectOptions::default() }
}

async fn open(body: &str) -> Session {
    let options = ConnectOptions { era: EraChoice::Legacy, ..options() };
    open_session(&script(body), &options, &Tap::new()).await.unwrap()
}

/// Processes whose command line holds `marker`, zombies not counted.
fn count(marker: &str) -> usize {
    let lives = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let holds = |pid: &String| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(marker) && lives(pid)
    };
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).filter(holds).count()
}

/// A number of seconds that no other test sleeps: it marks the processes of this one.
fn marker(test: u32) -> String {
    format!("7{test:02}{:06}", std::process::id() % 1_000_000)
}

async fn until_gone(marker: &str) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while count(marker) > 0 {
        assert!(Instant::now() < deadline, "{} processes are left", count(marker));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// `body` runs as a server that has to be up within `patience`; told is the era it is found to live in, or why it is not, how
/// often it was started, and the faults of its session.
async fn check_era(body: &str, patience: Duration, expected: &str) {
    let tap = Tap::new();
    let options = ConnectOptions { timeout: Some(patience), ..options() };
    let found = match open_session(&script(body), &options, &tap).await {
        Ok(session) => {
            let listed = session.request("tools/list", None, Duration::from_secs(20)).await;
            let listed = if listed.is_ok() { "lists" } else { "does not list" };
            let told = format!("{}, {listed}, {} faults", session.handshake().era, session.faults().len());
            session.close().await;
            told
        }
        Err(failure) => failure.to_string(),
    };
    assert_eq!(format!("{found}, {} starts", starts(&tap)), expected, "{body}");
}

#[tokio::test]
async fn a_server_that_says_nothing_to_discover_is_initialized_in_the_same_process() {
    let body = r#"while read -r line; do case "$line" in *'"initialize"'*) answer 2;; *tools/list*) list 3;; esac; done"#;
    check_era(body, Duration::from_secs(8), "legacy, lists, 0 faults, 1 starts").await;
}

/// They answer nothing until both questions are there: that is what a slow start looks like, without a time in it.
#[tokio::test]
async fn a_server_that_takes_most_of_the_time_to_start_is_not_started_twice() {
    let late = |rest: &str| format!("read -r discover; read -r initialize; {rest}");
    let serve = r#"while read -r line; do case "$line" in *tools/list*) list 3;; esac; done"#;
    let patience = Duration::from_secs(8);
    // Each answers in the order in which it was asked, the modern ones with and without a handshake for others.
    for (rest, expected) in [
        ("no 1; answer 2", "legacy, lists, 0 faults, 1 starts"),
        ("discovered 1; no 2", "modern, lists, 0 faults, 1 starts"),
        ("discovered 1; answer 2", "modern, lists, 0 faults, 1 starts"),
        // Out of order: what refuses the one question may yet answer the other, and what answers late is no fault.
        ("no 2; discovered 1", "modern, lists, 0 faults, 1 starts"),
        ("answer 2; no 1", "legacy, lists, 0 faults, 1 starts"),
    ] {
        check_era(&late(&format!("{rest}; {serve}")), patience, expected).await;
    }
}

#[tokio::test]
async fn a_server_that_refuses_or_dies_of_the_second_question_is_started_again() {
    let fresh = r#"read -r line; case "$line" in *'"initialize"'*) answer 1; read -r line; read -r line; list 2; cat >&2; exit;; esac"#;
    for (rest, expected) in [
        ("read -r line; no 2; cat >&2", "legacy, lists, 0 faults, 2 starts"),
        ("read -r line; exit 7", "legacy, lists, 0 faults, 2 starts"),
    ] {
        check_era(&format!("{fresh}; {rest}"), Duration::from_secs(4), expected).await;
    }
}

/// It reads nothing more once it was asked for its era.
#[tokio::test]
async fn a_server_that_is_stuck_in_discover_is_started_again() {
    let fresh = r#"read -r line; case "$line" in *'"initialize"'*) answer 1; read -r line; read -r line; list 2; cat >&2; exit;; esac"#;
    check_era(&format!("{fresh}; exec sleep 60"), Duration::from_secs(8), "legacy, lists, 0 faults, 2 starts").await;
}

/// Servers of the Python SDK do so: one line is read before their work begins, and the second one waits until then.
#[tokio::test]
async fn a_server_that_reads_one_line_before_it_is_ready_is_not_started_again() {
    let serve = r#"while read -r line; do case "$line" in *tools/list*) list 3;; esac; done"#;
    for (rest, expected) in
        [("discovered 1", "modern, lists, 0 faults, 1 starts"), ("no 1; read -r initialize; answer 2", "legacy, lists, 0 faults, 1 starts")]
    {
        check_era(&format!("read -r discover; sleep 4; {rest}; {serve}"), Duration::from_secs(12), expected).await;
    }
}

/// Nothing is known of one that has not read its first line: it may be starting.
#[tokio::test]
async fn a_server_that_reads_nothing_for_long_is_still_asked_for_its_era() {
    let serve = r#"while read -r line; do case "$line" in *server/discover*) discovered 1;; *tools/list*) list 2;; esac; done"#;
    check_era(&format!("sleep 2; {serve}"), Duration::from_secs(8), "modern, lists, 0 faults, 1 starts").await;
}

#[tokio::test]
async fn a_server_that_answers_neither_question_is_not_started_again() {
    let expected = "`initialize`: no response to `initialize` within";
    let tap = Tap::new();
    let options = options();
    let failure = open_session(&script("cat >&2"), &options, &tap).await.err().unwrap().to_string();
    assert!(failure.starts_with(expected), "{failure}");
    assert_eq!(starts(&tap), 1);
}

#[tokio::test]
async fn a_server_that_dies_on_discover_is_started_again_and_initialized() {
    let tap = Tap::new();
    let target = script(r#"read -r line; case "$line" in *'"initialize"'*) answer 1; cat >&2;; *) exit 7;; esac"#);
    let session = open_session(&target, &options(), &tap).await.unwrap();
    assert_eq!(session.handshake().protocol_version, "2025-11-25");
    assert_eq!(starts(&tap), 2);
    session.close().await;
}

#[tokio::test]
async fn a_server_that_refuses_discover_is_initialized_in_the_same_process() {
    let tap = Tap::new();
    let target =
        script(r#"read -r line; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}'; read -r line; answer 2; cat >&2"#);
    let session = open_session(&target, &options(), &tap).await.unwrap();
    assert_eq!(session.handshake().era, Era::Legacy);
    assert_eq!(starts(&tap), 1);
    session.close().await;
}

fn starts(tap: &Tap) -> usize {
    let frames = tap.transcript().frames;
    frames.iter().filter(|frame| matches!(frame.body, mcproof_record::FrameBody::Spawned { .. })).count()
}

#[tokio::test]
async fn an_exit_at_start_tells_code_and_stage() {
    let tap = Tap::new();
    let failure = open_session(&script("echo boom >&2; exit 3"), &options(), &tap).await.err().unwrap();
    let ConnectFailure::Exited { exit, stage } = &failure else { panic!("{failure}") };
    assert_eq!((exit.code, stage.as_str()), (Some(3), "responding to `initialize`"));
    assert_eq!(tap.transcript().tail(0, 1).stderr, ["boom"]);
}

#[tokio::test]
async fn a_server_that_ignores_everything_is_killed_and_reported() {
    let marker = marker(1);
    let session = open(&format!("trap '' TERM; read -r line; answer 1; sleep {marker}")).await;
    let report = session.close().await;
    assert!(report.ignored_end_of_input && report.ignored_terminate, "{report:?}");
    assert_eq!(report.exit.unwrap().signal, Some(9));
    until_gone(&marker).await;
}

#[tokio::test]
async fn a_child_that_left_its_group_is_found_and_ended() {
    let marker = marker(2);
    let session = open(&format!("setsid sleep {marker} & read -r line; answer 1; cat >&2")).await;
    while count(&marker) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let report = session.close().await;
    assert_eq!(report.left_behind.len(), 1, "{report:?}");
    until_gone(&marker).await;
}

#[tokio::test]
async fn a_child_that_ends_soon_after_its_parent_is_not_left_behind() {
    let session = open("( while kill -0 $$ 2>&-; do sleep 0.01; done ) & read -r line; answer 1; cat >&2").await;
    assert_eq!(session.close().await.left_behind, Vec::<i32>::new());
}

#[tokio::test]
async fn a_child_in_the_group_is_left_behind_by_a_signal_to_its_parent_alone() {
    let marker = marker(6);
    let session = open(&format!("sleep {marker} & read -r line; answer 1; cat >&2")).await;
    while count(&marker) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(session.signal_alone(ProcessSignal::TERMINATE));
    assert_eq!(session.wait_for_exit(Duration::from_secs(10)).await.unwrap().signal, Some(15));
    let report = session.close().await;
    assert_eq!(report.left_behind.len(), 1, "{report:?}");
    until_gone(&marker).await;
}

#[tokio::test]
async fn a_child_that_holds_the_pipes_does_not_hold_up_the_end() {
    let marker = marker(3);
    let session = open(&format!("sleep {marker} & read -r line; answer 1; exit 0")).await;
    let started = Instant::now();
    let failure = session.request("tools/list", None, Duration::from_secs(20)).await.unwrap_err();
    assert!(failure.to_string().starts_with("server exited with code 0"), "{failure}");
    session.close().await;
    assert!(started.elapsed() < Duration::from_secs(10));
    until_gone(&marker).await;
}

#[tokio::test]
async fn a_dropped_session_leaves_nothing() {
    let marker = marker(4);
    let session = open(&format!("trap '' TERM; sleep {marker} & setsid sleep {marker} & read -r line; answer 1; wait")).await;
    drop(session);
    until_gone(&marker).await;
}

#[tokio::test]
async fn a_panic_leaves_nothing() {
    let marker = marker(5);
    let body = format!("sleep {marker} & read -r line; answer 1; wait");
    let panicking = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let _session = open(&body).await;
            panic!("on purpose");
        })
    });
    assert!(panicking.join().is_err());
    until_gone(&marker).await;
}

#[tokio::test]
async fn an_endless_line_ends_within_its_bound() {
    let session = open(r"read -r line; answer 1; tr '\0' x </dev/zero").await;
    let failure = session.request("tools/list", None, Duration::from_secs(20)).await.unwrap_err();
    assert_eq!(failure.to_string(), "server sent more than 16777216 bytes without a line end");
    session.close().await;
}

/// Who reads a transcript takes an end for the server's own unless its stdin was closed before.
#[tokio::test]
async fn an_end_that_was_asked_for_comes_after_the_asking() {
    use mcproof_record::FrameBody;
    for (body, round) in [("read -r line; answer 1; while read -r line; do :; done", 30), ("read -r line; answer 1; sleep 700", 1)] {
        for _ in 0..round {
            let tap = Tap::new();
            let options = ConnectOptions { era: EraChoice::Legacy, ..options() };
            open_session(&script(body), &options, &tap).await.unwrap().close().await;
            let frames = tap.transcript().frames;
            let asked = frames.iter().filter(|frame| matches!(&frame.body, FrameBody::Closed { pipe } if pipe == "stdin"));
            let ended = frames.iter().find(|frame| matches!(frame.body, FrameBody::Exited { .. })).unwrap();
            let asked: Vec<_> = asked.map(|frame| frame.id).collect();
            assert!(matches!(&asked[..], [asked] if *asked < ended.id), "{asked:?} and {:?}", ended.id);
        }
    }
}
