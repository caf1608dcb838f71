//! What is written comes back, also where the writer was killed, the file was cut, or another program has packed it again.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use mcproof_record::{Direction, ExchangeId, Frame, FrameBody, FrameId};
use mcproof_trace::{
    CallStream, Ending, Item, Manifest, Mark, MarkBody, SessionInfo, SessionKey, Trace, TraceError, TraceLimits, TraceLine, TraceRoom,
    TraceWriter, attach_to, trace_in_memory,
};
use std::fs;
use std::io::{Cursor, ErrorKind};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn frame(id: u64, text: &str) -> Frame {
    let body = FrameBody::Line { bytes: text.into(), unterminated: false };
    Frame { id: FrameId(id), at: Duration::from_micros(id), direction: Direction::FromServer, body }
}

fn info() -> SessionInfo {
    SessionInfo { server: "shop".into(), transport: "stdio".into(), ..SessionInfo::default() }
}

fn write(path: &Path, frames: u64) -> (TraceWriter, SessionKey) {
    let writer = TraceWriter::create(path, Manifest { mcproof: "0".into(), ..Manifest::default() }).unwrap();
    let session = writer.begin_session(info());
    for id in 0..frames {
        writer.frame(session, &frame(id, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)));
        if id == frames / 2 {
            writer.attach("suite/../shop.yaml", b"tests: []\n");
        }
    }
    (writer, session)
}

/// Frames, attachments, other lines, and how the trace ends.
fn read(mut trace: Trace) -> (Vec<u64>, Vec<String>, usize, Ending) {
    let (mut frames, mut attachments, mut others) = (Vec::new(), Vec::new(), 0);
    for line in &mut trace {
        match line.unwrap() {
            TraceLine::Frame(frame) => frames.push(frame.id.0),
            TraceLine::Attachment(attachment) => attachments.push(attachment.name),
            _ => others += 1,
        }
    }
    (frames, attachments, others, trace.ending())
}

#[test]
fn a_trace_in_memory_is_the_same_as_a_file() {
    let written = trace_in_memory(Manifest::default(), |writer| {
        let session = writer.begin_session(info());
        writer.frame(session, &frame(1, "a"));
        writer.attach("probe.json", b"{}");
        writer.frame(session, &frame(2, "b"));
    });
    let (frames, attachments, _, ending) = read(Trace::from_reader(Box::new(Cursor::new(written.unwrap()))).unwrap());
    assert_eq!((frames, attachments, ending), (vec![1, 2], vec!["probe.json".to_owned()], Ending::Complete));
}

#[test]
fn a_trace_reads_back_from_a_file_and_from_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcptrace");
    let (writer, session) = write(&path, 100);
    writer.mark(Mark { session, at: Duration::ZERO, body: MarkBody::Note { text: "here".into() } });
    assert_eq!(writer.finish().unwrap().frames, 100);
    let expected = ((0..100).collect(), vec!["suite/shop.yaml".to_owned()], 3, Ending::Complete);
    assert_eq!(read(Trace::open(&path).unwrap()), expected);
    let bytes = fs::read(&path).unwrap();
    assert_eq!(read(Trace::from_reader(Box::new(Cursor::new(bytes))).unwrap()), expected);
}

#[test]
fn a_completed_trace_knows_its_sessions_from_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcptrace");
    let (writer, session) = write(&path, 3);
    writer.describe_session(SessionInfo { key: session, era: Some("legacy".into()), revision: Some("2025-11-25".into()), ..info() });
    writer.finish().unwrap();
    let revisions: Vec<_> = CallStream::new(Trace::open(&path).unwrap())
        .filter_map(|item| match item.unwrap() {
            Item::Session(session) => Some(session.revision),
            _ => None,
        })
        .collect();
    assert!(!revisions.is_empty() && revisions.iter().all(|revision| revision.as_deref() == Some("2025-11-25")), "{revisions:?}");
}

/// A proxy that listens records its clients together, and both number their requests from 0.
#[test]
fn each_client_of_a_proxy_is_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcptrace");
    let command = ["mcproof", "--color", "never", "proxy", "http://127.0.0.1:1/mcp"].map(str::to_owned).to_vec();
    let writer = TraceWriter::create(&path, Manifest { mcproof: "0".into(), command, ..Manifest::default() }).unwrap();
    let recorded = writer.begin_session(SessionInfo { transport: "http".into(), ..info() });
    let mut id = 0;
    let mut exchange = |number: u64, session: Option<&str>, opens: Option<&str>, request: &str, response: &str| {
        let exchange = ExchangeId(number);
        let headers = |id: Option<&str>| id.map(|id| ("Mcp-Session-Id".to_owned(), id.to_owned())).into_iter().collect();
        let (method, url) = ("POST".to_owned(), "http://127.0.0.1:1/mcp".to_owned());
        let bodies = [
            (Direction::ToServer, FrameBody::HttpRequest { exchange, method, url, headers: headers(session), body: request.into() }),
            (Direction::FromServer, FrameBody::HttpResponse { exchange, status: 200, headers: headers(opens) }),
            (Direction::FromServer, FrameBody::HttpBody { exchange, bytes: response.into() }),
            (Direction::Local, FrameBody::HttpEnd { exchange, error: None }),
        ];
        for (direction, body) in bodies {
            writer.frame(recorded, &Frame { id: FrameId(id), at: Duration::from_micros(id), direction, body });
            id += 1;
        }
    };
    let initialize = |client: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"2025-11-25","clientInfo":{{"name":"{client}"}}}}}}"#
        )
    };
    let initialized = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}"#;
    let (call, called) = (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#);
    exchange(0, None, Some("a"), &initialize("first"), initialized);
    exchange(1, None, Some("b"), &initialize("second"), initialized);
    exchange(2, Some("b"), None, call, called);
    exchange(3, Some("a"), None, call, called);
    writer.finish().unwrap();
    let mut stream = CallStream::new(Trace::open(&path).unwrap());
    let mut calls = Vec::new();
    for item in stream.by_ref() {
        if let Item::Call(call) = item.unwrap() {
            calls.push((call.session.0, call.method.clone(), call.http.map(|http| http.exchange.0)));
        }
    }
    let expected = [(1, "initialize", 0), (2, "initialize", 1), (2, "tools/list", 2), (1, "tools/list", 3)];
    assert_eq!(calls, expected.map(|(session, method, exchange)| (session, method.to_owned(), Some(exchange))));
    let clients = [1, 2].map(|key| stream.session(SessionKey(key)).unwrap().client.clone());
    assert_eq!(clients, [Some("first".to_owned()), Some("second".to_owned())]);
}

#[test]
fn every_frame_of_a_writer_that_was_killed_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("a.mcptrace"), folder.path().join("b.mcptrace"));
    let (writer, session) = write(&path, 100);
    for count in 100..110 {
        // What another process sees of the file is what a kill leaves.
        fs::copy(&path, &copy).unwrap();
        let (frames, attachments, _, ending) = read(Trace::open(&copy).unwrap());
        assert_eq!((frames.len() as u64, attachments.len(), ending), (count, 1, Ending::CutOff));
        writer.frame(session, &frame(count, "more"));
    }
}

#[test]
fn a_file_that_is_cut_anywhere_opens_or_says_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("a.mcptrace"), folder.path().join("b.mcptrace"));
    write(&path, 12).0.finish().unwrap();
    let whole = fs::read(&path).unwrap();
    let mut most = 0;
    for end in 0..whole.len() {
        fs::write(&copy, &whole[..end]).unwrap();
        let Ok(trace) = Trace::open(&copy) else { continue };
        let frames = trace.map_while(Result::ok).filter(|line| matches!(line, TraceLine::Frame(_))).count();
        assert!(frames >= most, "{frames} frames in {end} bytes, and {most} in fewer");
        most = frames;
    }
    assert_eq!(most, 12);
}

#[test]
fn unzip_accepts_a_trace_and_what_zip_packs_again_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcptrace");
    write(&path, 100).0.finish().unwrap();
    let tested = Command::new("unzip").arg("-t").arg(&path).output().unwrap();
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stdout));
    let unpacked = Command::new("unzip").arg("-q").arg(&path).arg("-d").arg(folder.path().join("all")).status().unwrap();
    assert!(unpacked.success());
    let packed = Command::new("zip").args(["-q", "-r", "../b.zip", "."]).current_dir(folder.path().join("all")).status().unwrap();
    assert!(packed.success());
    let (frames, attachments, _, ending) = read(Trace::open(&folder.path().join("b.zip")).unwrap());
    assert_eq!((frames.len(), attachments.len(), ending), (100, 1, Ending::Complete));
}

/// Bytes that cannot be compressed stand in a frame of zstd as they are, so that it unpacks with another byte in it.
#[test]
fn a_trace_of_which_a_byte_was_changed_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcptrace");
    let writer = TraceWriter::create(&path, Manifest::default()).unwrap();
    let session = writer.begin_session(info());
    let noise: String = (1..400_u64).map(|number| format!("{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    writer.frame(session, &frame(1, &format!("marked {noise}")));
    writer.finish().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let place = bytes.windows(6).position(|window| window == b"marked").unwrap_or(bytes.len() / 3);
    bytes[place] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let failed = |trace: Result<Trace, TraceError>| match trace {
        Ok(mut trace) => trace.find_map(Result::err).map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    };
    let told = failed(Trace::open(&path)).unwrap_or_default();
    assert!(told.starts_with("damaged: "), "{told}");
}

#[test]
fn what_exceeds_the_limit_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcptrace");
    let writer = TraceWriter::with_limits(&path, Manifest::default(), TraceLimits { bytes: 5000, ..TraceLimits::default() }).unwrap();
    let session = writer.begin_session(info());
    (0..1000)
        .for_each(|id| writer.frame(session, &frame(id, &format!("{:x}", u128::from(id + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c)))));
    let end = writer.finish().unwrap();
    assert!(end.frames > 10 && end.omitted > 10 && end.frames + end.omitted == 1000, "{end:?}");
    assert!(fs::metadata(&path).unwrap().len() < 8000);
    let omitted: u64 =
        Trace::open(&path).unwrap().map(|line| if let TraceLine::Omitted(omitted) = line.unwrap() { omitted.frames } else { 0 }).sum();
    assert_eq!(omitted, end.omitted);
}

/// Equal lines are packed to next to nothing.
#[test]
fn what_is_kept_in_memory_is_bounded_by_what_it_unpacks_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcptrace");
    let writer = TraceWriter::create(&path, Manifest::default()).unwrap();
    let session = writer.begin_session(info());
    (0..2000).for_each(|_| writer.frame(session, &frame(1, &"x".repeat(1000))));
    writer.finish().unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 100_000);
    let check = |lines: u64, bytes: u64, expected: Option<&str>| {
        let mut read = Trace::open(&path).unwrap().within(TraceRoom { lines, bytes });
        let refused = read.find_map(Result::err).map(|error| error.to_string());
        assert_eq!(refused.as_deref(), expected);
    };
    check(3000, 10 << 20, None);
    check(1000, 10 << 20, Some("it unpacks to more than 1000 lines, the most that is read into memory"));
    check(3000, 1 << 20, Some("it unpacks to more than 1048576 bytes, the most that is read into memory"));
}

#[test]
fn sessions_without_end_are_refused() {
    let check = |sessions: u64, refused: bool| {
        let text: String =
            (1..=sessions).map(|key| format!("{{\"session\":{{\"key\":{key},\"server\":\"a\",\"transport\":\"stdio\"}}}}\n")).collect();
        let lines = format!("{{\"trace\":{{\"format\":1,\"mcproof\":\"0\"}}}}\n{text}");
        let mut stream = CallStream::new(Trace::from_reader(Box::new(Cursor::new(lines.into_bytes()))).unwrap());
        let found = stream.find_map(Result::err).map(|error| error.to_string());
        let expected = refused.then_some("it unpacks to more than 5000 sessions, the most that is read into memory");
        assert_eq!(found.as_deref(), expected);
    };
    check(5000, false);
    check(5001, true);
}

#[test]
fn a_frame_that_no_line_holds_is_counted() {
    let written = trace_in_memory(Manifest::default(), |writer| {
        let session = writer.begin_session(info());
        writer.frame(session, &frame(1, &"\"".repeat(33 << 20)));
        writer.frame(session, &frame(2, "b"));
    });
    let (frames, _, _, ending) = read(Trace::from_reader(Box::new(Cursor::new(written.unwrap()))).unwrap());
    assert_eq!((frames, ending), (vec![2], Ending::Complete));
}

#[test]
fn a_trace_of_a_later_format_is_refused() {
    let text = r#"{"trace":{"format":99,"mcproof":"9"}}"#.as_bytes();
    let refused = Trace::from_reader(Box::new(text)).err().unwrap();
    assert_eq!(refused.to_string(), "written by a newer mcproof: format 99, and this version reads formats up to 1");
}

#[test]
fn what_is_no_trace_is_refused() {
    for (text, expected) in [
        ("", "not a trace: it is empty"),
        ("hello\n", "not a trace: neither a zip nor JSON"),
        ("{\"a\":1}\n", "not a trace: JSON without frames"),
        ("PK\x03\x04", "not a trace: a zip without frames"),
    ] {
        let refused = Trace::from_reader(Box::new(text.as_bytes())).err().unwrap();
        assert_eq!(refused.to_string(), expected);
    }
}

/// What versions before the trace file wrote: `--trace` of a request, of a check, the evidence of an incident, and `--reporter json`.
#[test]
fn what_earlier_versions_wrote_stays_readable() {
    for (name, sessions, calls, first) in FIXTURES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
        let mut stream = CallStream::new(Trace::open(&path).unwrap());
        let items: Vec<Item> = (&mut stream).map(Result::unwrap).collect();
        let methods: Vec<_> =
            items.iter().filter_map(|item| if let Item::Call(call) = item { Some(call.method.as_str()) } else { None }).collect();
        assert_eq!((stream.sessions().count(), methods.len(), methods[0]), (sessions, calls, first), "{name}: {methods:?}");
        assert!(stream.sessions().all(|session| session.transport == "stdio"), "{name}");
        assert_eq!(stream.ending(), Ending::Complete);
    }
}

/// Name, sessions, calls, and the method of the first call.
const FIXTURES: [(&str, usize, usize, &str); 4] = [
    ("transcript.json", 1, 2, "server/discover"),
    ("evidence.json", 1, 2, "server/discover"),
    ("check.json", 1, 3, "tools/list"),
    ("events.jsonl", 1, 3, "server/discover"),
];

#[test]
fn files_are_added_to_a_finished_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcptrace");
    let (writer, _) = write(&path, 5);
    writer.finish().unwrap();
    let before = read(Trace::open(&path).unwrap());
    let file = |name: &str, bytes: &[u8]| (name.to_owned(), bytes.to_vec());
    attach_to(&path, &[file("shot.png", b"\x89PNG\r\n"), file("../log", b"")]).unwrap();
    let after = read(Trace::open(&path).unwrap());
    assert_eq!((&after.0, after.3), (&before.0, Ending::Complete));
    assert_eq!(after.1, [before.1, vec!["shot.png".to_owned(), "log".to_owned()]].concat());
    let found = Trace::open(&path).unwrap().filter_map(|line| match line.unwrap() {
        TraceLine::Attachment(file) if file.name == "shot.png" => Some(file.bytes.as_bytes().to_vec()),
        _ => None,
    });
    assert_eq!(found.collect::<Vec<_>>(), [b"\x89PNG\r\n".to_vec()]);
    // Nothing is added where one of the names is taken.
    let length = fs::metadata(&path).unwrap().len();
    let taken = attach_to(&path, &[file("new", b"1"), file("shot.png", b"2")]).unwrap_err();
    assert_eq!((taken.kind(), fs::metadata(&path).unwrap().len()), (ErrorKind::AlreadyExists, length));
    fs::write(&path, "{}").unwrap();
    assert_eq!(attach_to(&path, &[file("a", b"1")]).unwrap_err().kind(), ErrorKind::InvalidData);
}
