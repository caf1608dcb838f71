//! `mcproof watch`: the real binary with real files, a server that works or not, and services that take what they are sent.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod heard;
mod monitoring;

use monitoring::*;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use tempfile::TempDir;

const WHOLE: &str = "
listen: 127.0.0.1:7130
public_url: https://status.example.com
targets:
  shop: { http: 'https://mcp.example.com/mcp?key=${env.WATCH_KEY}', every: 2m, tags: paid, objective: 99.9, failures: 2, recoveries: 1 }
  backup: { push: { token: 'env:WATCH_KEY', cron: '0 3 * * *', lasts: 2h } }
  tools: { stdio: 'mcproof demo shop', keep: true }
channels:
  on-call: { pagerduty: 'env:WATCH_KEY' }
  chat: { webhook: 'http://127.0.0.1:9/' }
routes:
  - { severities: [page, security], channels: [on-call, chat], remind_every: 30m, escalate: [{ after: 10m, channels: chat }], repeat: 2 }
  - { channels: chat }
maintenance: [{ name: backups, cron: '0 3 * * *', lasts: 1h }]
";

#[test]
fn check_says_what_it_would_do_and_no_secrets() {
    let folder = folder_with(&[("watch.yaml", WHOLE)]);
    let ran = run(folder.path(), &["watch", "watch.yaml", "--check", "--database", "postgres://ann:s3cret@db/watch"]);
    let expected = "\
database    postgres://ann:***@db/watch
region      local
dashboard   http://127.0.0.1:7130, as https://status.example.com
targets     backup: push at 0 3 * * * (UTC), grace 5m, takes up to 2h, every 1m, timeout 10s
            shop: http https://mcp.example.com/mcp?…, every 2m, timeout 10s, tagged paid, down after 5s, up after 1 good probe, objective 99.9 %
            tools: stdio mcproof …, every 1m, timeout 10s, kept running
channels    chat: webhook
            on-call: pagerduty
routes      page, security: on-call, then chat, again every 30m, after 10m chat, 2 times more
            everything: chat
maintenance backups: 0 3 * * * (UTC), for 1h
";
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), expected, ""));
    let of_worker = run(folder.path(), &["watch", "watch.yaml", "--check", "--role", "worker", "--listen", "127.0.0.1:7130"]);
    assert_eq!((of_worker.code, of_worker.stderr.as_str()), (Some(0), ""));
    let ran = run(folder.path(), &["watch", "watch.yaml", "--check", "--json", "--region", "eu"]);
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((shown["region"].as_str(), shown["targets"][2]["transport"].as_str()), (Some("eu"), Some("stdio")));
    assert!(!ran.stdout.contains("from-the-environment"));
    assert!(!folder.path().join("watch.db").exists());
}

#[test]
fn mistakes_are_told_at_once_and_nothing_is_watched() {
    let folder = folder_with(&[("watch.yaml", "targets: { shop: { htp: x } }\nroutes: [{ channels: chat }]\n")]);
    for arguments in [&["watch", "watch.yaml"][..], &["watch", "watch.yaml", "--check"], &["watch", "test-alert", "watch.yaml"]] {
        let ran = run(folder.path(), arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
        for part in ["did you mean `http`?", "unknown channel `chat`", "watch.yaml:1:20", "2 errors; nothing is monitored"] {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
    }
    assert!(!folder.path().join("watch.db").exists());
    // A warning beside it is no mistake.
    let warned = folder_with(&[("watch.yaml", "channels: { a: { pagerduty: abcdefgh } }\nroutes: [{ channels: b }]\n")]);
    let ran = run(warned.path(), &["watch", "watch.yaml", "--check"]);
    assert!(
        ran.stderr.contains("this file contains a secret in plain text") && ran.stderr.ends_with("\n1 error; nothing is monitored\n"),
        "{}",
        ran.stderr
    );
    let open = folder_with(&[("watch.yaml", "listen: 0.0.0.0:0\n")]);
    for arguments in [&["watch", "watch.yaml"][..], &["watch", "watch.yaml", "--check"]] {
        let ran = run(open.path(), arguments);
        assert!(ran.code == Some(2) && ran.stderr.contains("`login`"), "{arguments:?}: {}", ran.stderr);
    }
    let empty = folder_with(&[("watch.yaml", "targets: {}\n")]);
    let ran = run(empty.path(), &["watch", "watch.yaml", "--once"]);
    assert!(ran.code == Some(4) && ran.stderr.contains("there are no targets"), "{:?} {}", ran.code, ran.stderr);
    let ran = run(folder.path(), &["watch", "none.yaml"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let fine = folder_with(&[("watch.yaml", "targets: { shop: { stdio: x } }\n")]);
    for (arguments, why) in [
        (&["deploy", "watch.yaml", "shop", "--expect", "2834ebce"][..], "64 hexadecimal digits"),
        (&["mute", "watch.yaml", "shop"], "nothing has been monitored yet"),
        (&["ack", "watch.yaml", "x", "--database", "sqlite:none.db"], "there is no database none.db"),
        (&["status", "watch.yaml"], "nothing has been monitored yet"),
    ] {
        let ran = run(fine.path(), &[&["watch"], arguments].concat());
        assert!(ran.code == Some(2) && ran.stderr.contains(why), "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(std::fs::read_dir(fine.path()).unwrap().count(), 1);
}

#[test]
fn a_test_alert_goes_to_each_channel_with_its_end() {
    let (works, refuses) = (Service::answering(202), Service::answering(403));
    let config = format!("channels:\n  good: {{ webhook: '{}' }}\n  bad: {{ webhook: '{}' }}\n", works.url, refuses.url);
    let folder = folder_with(&[("watch.yaml", &config)]);
    let ran = run(folder.path(), &["watch", "test-alert", "watch.yaml"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert_eq!((works.kinds(), refuses.kinds()), (vec!["trigger".to_owned(), "resolve".to_owned()], vec!["trigger".to_owned()]));
    assert!(ran.stdout.contains("FAILED  status 403: ok"), "{}", ran.stdout);
    let heard = works.heard.lock().unwrap().clone();
    assert_eq!((heard[0]["incident"].as_str(), heard[0]["target"].as_str()), (heard[1]["incident"].as_str(), Some("a test")));
    let ran = run(folder.path(), &["watch", "test-alert", "watch.yaml", "good", "--json"]);
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((ran.code, lines.len(), lines[0]["answer"].as_str()), (Some(0), 2, Some("status 202: ok")));
    let ran = run(folder.path(), &["watch", "test-alert", "watch.yaml", "god"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("did you mean `good`?"), "{}", ran.stderr);
    let none = folder_with(&[("watch.yaml", "targets: { a: { stdio: x } }\n")]);
    assert_eq!(run(none.path(), &["watch", "test-alert", "watch.yaml"]).code, Some(4));
}

/// A mail server that has no room for `full@…` now, and takes what comes for others.
fn mail_server() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut line, mut is_letter) = (String::from("CONNECT"), false);
            loop {
                let answer = match line.trim_end() {
                    "" => break,
                    "." => "250 queued",
                    _ if is_letter => "",
                    "CONNECT" => "220 ready",
                    "DATA" => "354 go on",
                    "QUIT" => "221 bye",
                    line if line.starts_with("RCPT TO:<full@") => "452 mailbox full",
                    _ => "250 ok",
                };
                is_letter = answer.starts_with("354") || is_letter && answer.is_empty();
                if !answer.is_empty() && stream.get_mut().write_all(format!("{answer}\r\n").as_bytes()).is_err() {
                    break;
                }
                line.clear();
                // An empty line of a letter is no end.
                if stream.read_line(&mut line).unwrap_or(0) == 0 {
                    break;
                }
                if is_letter && line == "\r\n" {
                    line = "-".to_owned();
                }
            }
        }
    });
    address
}

#[test]
fn a_test_alert_that_one_recipient_does_not_get_has_failed() {
    let smtp = format!("url: 'smtp://{}?tls=none', from: w@example.com", mail_server());
    for (to, code, part) in
        [("[ann@example.com]", 0, "250 queued"), ("[ann@example.com, full@example.com]", 1, "452"), ("[full@example.com]", 1, "452")]
    {
        let config = format!("targets: {{}}\nchannels: {{ mail: {{ smtp: {{ {smtp}, to: {to} }} }} }}\n");
        let folder = folder_with(&[("watch.yaml", &config)]);
        let ran = run(folder.path(), &["watch", "test-alert", "watch.yaml"]);
        assert!(ran.code == Some(code) && ran.stdout.contains(part), "{to}: {}{}", ran.stdout, ran.stderr);
        // Who has the begin gets the end.
        assert_eq!(ran.stdout.contains("resolve"), to.contains("ann"), "{}", ran.stdout);
        assert_eq!(ran.stdout.contains("an alert is tried again for full@example.com"), to.contains(", full"), "{}", ran.stdout);
    }
}

#[test]
fn once_probes_everything_and_tells_what_is_down() {
    let pager = Service::answering(202);
    let config = format!(
        "targets:\n  good: {{ stdio: 'mcproof demo shop' }}\n  bad: {{ http: 'http://127.0.0.1:1/mcp', timeout: 2s }}\nchannels: {{ pager: {{ webhook: '{}' }} }}\n",
        pager.url
    );
    let folder = folder_with(&[("watch.yaml", &config)]);
    let ran = run(folder.path(), &["watch", "watch.yaml", "--once"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[0].starts_with("down") && lines[0].contains("  bad is down: "), "{}", ran.stdout);
    assert!(lines[0].contains("refused"), "{}", ran.stdout);
    assert!(lines[1].starts_with("ok") && lines[1].ends_with("good"), "{}", ran.stdout);
    assert_eq!(pager.kinds(), ["trigger"], "{}", ran.stderr);
    let page = pager.heard.lock().unwrap()[0].clone();
    assert_eq!((page["target"].as_str(), page["class"].as_str()), (Some("bad"), Some("availability")));
    assert!(page["message"].as_str().unwrap().contains("refused"), "{page}");

    let ran = run(folder.path(), &["watch", "status", "watch.yaml"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    let lines: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0].join(" "), "target state contract since last probe open incident");
    assert_eq!((&lines[1][..3], &lines[2][..3]), (&["bad", "down", "unknown"][..], &["good", "ok", "ok"][..]));
    assert!(lines[1].contains(&"availability:") && !lines[2].contains(&"availability:"), "{}", ran.stdout);
    let ran = run(folder.path(), &["watch", "status", "watch.yaml", "--json"]);
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&shown["works"], &shown["targets"][1]["works"]), (&Value::Bool(false), &Value::Bool(true)));
    assert_eq!(shown["targets"][0]["incident"]["class"], "availability");
    assert_eq!((&shown["targets"][0]["contract_state"], &shown["targets"][1]["contract_state"]), (&"unknown".into(), &"ok".into()));
    let ran = run(folder.path(), &["watch", "incidents", "watch.yaml"]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), 2), "{}{}", ran.stdout, ran.stderr);
    let ran = run(folder.path(), &["watch", "incidents", "watch.yaml", "--all", "--json"]);
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, shown["incidents"][0]["subject"].as_str()), (Some(0), Some("bad")), "{}", ran.stdout);
    // Of one who is watched no more nobody asks.
    std::fs::write(folder.path().join("watch.yaml"), "targets: { good: { stdio: 'mcproof demo shop' } }\n").unwrap();
    assert_eq!(run(folder.path(), &["watch", "watch.yaml", "--once"]).code, Some(0));
    assert_eq!(run(folder.path(), &["watch", "status", "watch.yaml"]).code, Some(0));
    let ran = run(folder.path(), &["watch", "incidents", "watch.yaml"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.lines().last()), (Some(0), "", Some("no open incidents")));
    // One that stands in the file, and that nobody monitors, is not healthy.
    let more = "targets: { good: { stdio: 'mcproof demo shop' }, more: { stdio: 'mcproof demo shop' } }\n";
    std::fs::write(folder.path().join("watch.yaml"), more).unwrap();
    let ran = run(folder.path(), &["watch", "status", "watch.yaml"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("not monitored, although") && ran.stderr.contains(": more;"), "{}", ran.stderr);
}

#[test]
fn what_is_silenced_is_told_to_nobody_until_the_silence_ends() {
    let pager = Service::answering(202);
    let config = format!(
        "targets: {{ shop-eu: {{ http: 'http://127.0.0.1:1/mcp', timeout: 2s, tags: paid, failures: 1 }} }}\nchannels: {{ pager: {{ webhook: '{}' }} }}\n",
        pager.url
    );
    let good = config.replace("http: 'http://127.0.0.1:1/mcp'", "stdio: 'mcproof demo shop'");
    let folder = folder_with(&[("watch.yaml", &good)]);
    let watch = |words: &[&str]| run(folder.path(), &[&["watch"], words].concat());
    assert_eq!(watch(&["watch.yaml", "--once"]).code, Some(0));
    for (words, part) in [
        (&["silence", "watch.yaml", "--reason", "x"][..], "--name <PATTERN>"),
        (&["silence", "watch.yaml", "--name", "*"], "--reason <TEXT>"),
        (&["silence", "watch.yaml", "--name", "*", "--reason", " "], "the reason is missing"),
        (&["silence", "watch.yaml", "--name", "shop-ue", "--reason", "x"], "did you mean `shop-eu`? For targets to come, add --future"),
        (&["silence", "watch.yaml", "--name", "SHOP-EU", "--tag", "paid", "--reason", "x"], "no target has a name that matches `SHOP-EU`"),
        (&["silence", "watch.yaml", "--name", "shop-*", "--tag", "payd", "--reason", "x"], "no target has a tag that matches `payd`"),
        (&["mute", "watch.yaml", "shop-ue"], "did you mean `shop-eu`?"),
        (&["mute", "watch.yaml", "shop-eu", "--for", "0"], "`0` is zero"),
        (&["mute", "watch.yaml", "shop-eu", "--for", "3600"], "has no unit"),
        (&["silence", "watch.yaml", "--name", "*", "--reason", "x", "--for", "0"], "`0` is zero"),
        (&["deploy", "watch.yaml", "shop-eu", "--for", "200h"], "a week is the longest"),
        (&["unsilence", "watch.yaml", "nothing"], "no active silence `nothing`"),
        (&["statsu", "watch.yaml"], "did you mean `mcproof watch status`?"),
        (&["statsu"], "did you mean `mcproof watch status`?"),
    ] {
        let ran = watch(words);
        assert!(ran.code == Some(2) && ran.stderr.contains(part), "{words:?}: {}", ran.stderr);
    }
    let future = watch(&["silence", "watch.yaml", "--name", "new-*", "--future", "--reason", "x"]);
    assert_eq!(future.code, Some(0), "{}", future.stderr);
    assert_eq!(watch(&["unsilence", "watch.yaml", future.stdout.split(':').next().unwrap()]).code, Some(0));
    let made = watch(&["silence", "watch.yaml", "--name", "shop-*", "--tag", "pa?d", "--reason", "it moves", "--for", "2h", "--by", "ann"]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let id = made.stdout.split(':').next().unwrap().to_owned();
    let listed = watch(&["silences", "watch.yaml"]).stdout;
    for part in [id.as_str(), "shop-*", "pa?d", "ann", "it moves", "in 1 h 59 min"] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    let listed: Value = serde_json::from_str(&watch(&["silences", "watch.yaml", "--json"]).stdout).unwrap();
    assert_eq!((&listed["silences"][0]["author"], &listed["silences"][0]["reason"]), (&"ann".into(), &"it moves".into()));
    std::fs::write(folder.path().join("watch.yaml"), &config).unwrap();
    assert_eq!(watch(&["watch.yaml", "--once"]).code, Some(1));
    assert_eq!(pager.kinds(), Vec::<String>::new());
    let incidents: Value = serde_json::from_str(&watch(&["incidents", "watch.yaml", "--json"]).stdout).unwrap();
    assert_eq!(incidents["incidents"][0]["subject"], "shop-eu", "it is written down");
    // Whoever looks sees why nobody is told.
    assert!(incidents["incidents"][0]["quiet"].as_str().unwrap().starts_with("silenced until "), "{incidents}");
    assert!(watch(&["incidents", "watch.yaml"]).stdout.contains("open, silenced until "));
    assert_eq!(watch(&["mute", "watch.yaml", "shop-eu", "--for", "48h"]).code, Some(0));
    let status = watch(&["status", "watch.yaml"]);
    assert!(status.code == Some(1) && status.stdout.contains("down, muted until "), "{}", status.stdout);
    assert_eq!(watch(&["mute", "watch.yaml", "shop-eu", "--off"]).code, Some(0));
    assert!(watch(&["status", "watch.yaml"]).stdout.contains("down, silenced until "));
    assert_eq!(watch(&["unsilence", "watch.yaml", &id]).code, Some(0));
    let listed = watch(&["silences", "watch.yaml"]);
    assert_eq!((listed.stdout.as_str(), listed.stderr.as_str()), ("", "no active silences\n"));
    let monitor = Monitor::start(folder.path());
    while pager.kinds().is_empty() {
        thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(pager.kinds(), ["trigger"]);
    drop(monitor);
}

/// Leads to a server, and keeps everything that names this method unanswered for as long as it is slow.
struct SlowDoor {
    url: String,
    is_slow: Arc<AtomicBool>,
    /// Requests that were kept waiting.
    kept: Arc<AtomicUsize>,
}

impl SlowDoor {
    fn before(server: std::net::SocketAddr, method: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (is_slow, kept) = (Arc::new(AtomicBool::new(true)), Arc::<AtomicUsize>::default());
        let (of_thread, counted) = (Arc::clone(&is_slow), Arc::clone(&kept));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (is_slow, kept) = (Arc::clone(&of_thread), Arc::clone(&counted));
                thread::spawn(move || {
                    let server = TcpStream::connect(server).unwrap();
                    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                    let replies = thread::spawn(move || {
                        let (mut server, mut client) = (server, client);
                        let _ = std::io::copy(&mut server, &mut client);
                        let _ = client.shutdown(std::net::Shutdown::Both);
                    });
                    let mut piece = [0; 16 << 10];
                    while let Ok(length @ 1..) = from.read(&mut piece) {
                        if is_slow.load(Ordering::SeqCst) && String::from_utf8_lossy(&piece[..length]).contains(method) {
                            kept.fetch_add(1, Ordering::SeqCst);
                            // Until the client gives up.
                            while matches!(from.read(&mut piece), Ok(1..)) {}
                            break;
                        }
                        if to.write_all(&piece[..length]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(std::net::Shutdown::Both);
                    let _ = replies.join();
                });
            }
        });
        Self { url, is_slow, kept }
    }
}

#[test]
fn what_a_slow_start_kept_from_us_is_no_baseline_and_no_change_of_the_contract() {
    let mut tracker = Command::new(MCPROOF).args(["demo", "tracker", "--http", "--port", "0"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(tracker.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let server = said.split("http://").nth(1).unwrap().split('/').next().unwrap().trim().parse().unwrap();
    let _tracker = Owned(tracker);
    // A slow start cuts the handshake, or one of the lists.
    let doors = [("handshake", "server/discover"), ("tools", "tools/list"), ("prompts", "prompts/list")];
    let doors = doors.map(|(name, method)| (name, SlowDoor::before(server, method)));
    let targets: String = doors.iter().map(|(name, door)| format!("  {name}: {{ http: '{}' }}\n", door.url)).collect();
    let config = format!(
        "listen: 127.0.0.1:0\ndefaults: {{ every: 2s, timeout: 2s, failures: 9 }}\nstorm: 1000\nchannels: {{}}\ntargets:\n  steady: {{ http: 'http://{server}/mcp' }}\n{targets}"
    );
    let folder = folder_with(&[("watch.yaml", &config)]);
    let mut monitor = Monitor::start(folder.path());
    let at = monitor.says("dashboard")["at"].as_str().unwrap().to_owned();
    let json = |path: &str| -> Value { serde_json::from_str(get(&at, path).1.split_once("\r\n\r\n").unwrap().1).unwrap() };
    let contract = |name: &str| json(&format!("/api/targets/{name}"))["contract"].clone();
    until("the contract of the steady one", || !contract("steady").is_null());
    let promised = contract("steady");
    for (name, door) in &doors {
        until(&format!("the slow start of {name}"), || door.kept.load(Ordering::SeqCst) > 1);
        assert!(*name == "handshake" || contract(name).is_null(), "{name}: a list that was cut is no contract");
    }
    until("a contract of the era that was assumed", || !contract("handshake").is_null());
    assert_ne!(contract("handshake"), promised, "the legacy era has another contract");
    for (_, door) in &doors {
        door.is_slow.store(false, Ordering::SeqCst);
    }
    for (name, _) in &doors {
        until(&format!("the whole contract of {name}"), || contract(name) == promised);
    }
    // Slow again for a while: the contract stays what it is.
    let handshake = &doors[0].1;
    let before = handshake.kept.load(Ordering::SeqCst);
    handshake.is_slow.store(true, Ordering::SeqCst);
    until("three more looks at a slow server", || handshake.kept.load(Ordering::SeqCst) > before + 3);
    handshake.is_slow.store(false, Ordering::SeqCst);
    let last = json("/api/targets/handshake")["last_result"].clone();
    until("another result", || json("/api/targets/handshake")["last_result"] != last);
    assert_eq!(contract("handshake"), promised);
    let incidents = json("/api/incidents");
    assert_eq!(incidents["incidents"].as_array().map(Vec::len), Some(0), "{incidents}");
}

/// Ends with the test.
struct Owned(Child);

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a process had in memory at the most since that was forgotten last, in KiB.
fn peak(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn two_hundred_readers_of_the_status_page_cost_no_more_than_a_few() {
    const READERS: usize = 200;
    const MOST: u64 = 48 * 1024;
    let targets: String = (0..2_000).map(|number| format!("  svc-{number:04}: {{ monitor: 'http://127.0.0.1:1/healthz' }}\n")).collect();
    let config =
        format!("listen: 127.0.0.1:0\ndefaults: {{ every: 1h, public: true }}\nstorm: 1000000\nchannels: {{}}\ntargets:\n{targets}");
    let folder = folder_with(&[("watch.yaml", &config)]);
    let mut monitor = Monitor::start(folder.path());
    let at = monitor.says("dashboard")["at"].as_str().unwrap().to_owned();
    let process = monitor.process.id();
    // All of them are known once each of them was probed.
    while get(&at, "/api/targets").1.matches("\"unknown\"").count() > 2_000 {
        thread::sleep(std::time::Duration::from_millis(500));
    }
    let (status, page) = get(&at, "/status");
    assert!(status.contains("200") && page.contains("Page 1 of 40") && page.matches("class=\"public\"").count() == 50, "{status}");
    std::fs::write(format!("/proc/{process}/clear_refs"), "5").unwrap();
    let before = peak(process);
    // All of them have asked before the first one reads.
    let mut readers: Vec<TcpStream> = (0..READERS).map(|_| TcpStream::connect(at.trim_start_matches("http://")).unwrap()).collect();
    for (number, reader) in readers.iter_mut().enumerate() {
        let (page, accept) = (number % 40 + 1, if number % 2 == 0 { "accept-encoding: gzip\r\n" } else { "" });
        write!(reader, "GET /status?page={page} HTTP/1.1\r\nhost: localhost\r\n{accept}connection: close\r\n\r\n").unwrap();
    }
    thread::sleep(std::time::Duration::from_secs(3));
    for reader in &mut readers {
        let mut answer = Vec::new();
        reader.read_to_end(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200") && answer.len() > 10_000, "{} bytes", answer.len());
    }
    let grown = peak(process) - before.min(peak(process));
    assert!(grown < MOST, "{grown} KiB for {READERS} readers, {before} KiB before");
}

#[test]
fn once_offers_a_page_to_every_channel_of_its_route() {
    let (fails, chat) = (Service::answering(503), Service::answering(200));
    let config = format!(
        "targets: {{ bad: {{ http: 'http://127.0.0.1:1/mcp', timeout: 2s }} }}\nroutes: [{{ channels: [gone, fails, chat] }}]\n\
         channels: {{ gone: {{ webhook: 'http://127.0.0.1:1/' }}, fails: {{ webhook: '{}' }}, chat: {{ webhook: '{}' }} }}\n",
        fails.url, chat.url
    );
    let folder = folder_with(&[("watch.yaml", &config)]);
    let ran = run(folder.path(), &["watch", "watch.yaml", "--once"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(chat.kinds(), ["trigger"], "{}", ran.stderr);
    assert!(!fails.kinds().is_empty() && !ran.stderr.contains("no channel accepted the alert"), "{}", ran.stderr);
}

#[test]
fn once_is_no_success_where_nobody_could_be_told() {
    let refuses = Service::saying("429 Too Many Requests\r\nretry-after: 3600".into());
    let config = format!(
        "targets: {{ bad: {{ http: 'http://127.0.0.1:1/mcp', timeout: 2s }} }}\nchannels: {{ pager: {{ webhook: '{}' }} }}\n",
        refuses.url
    );
    let folder = folder_with(&[("watch.yaml", &config)]);
    assert_eq!(run(folder.path(), &["watch", "watch.yaml", "--once"]).code, Some(1));
    // What is down is no reason any more; that nobody knows of it still is.
    std::fs::write(
        folder.path().join("watch.yaml"),
        config.replace("targets: { bad", "targets: { good: { stdio: 'mcproof demo shop' } }\nvars: { bad"),
    )
    .unwrap();
    let ran = run(folder.path(), &["watch", "watch.yaml", "--once"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.starts_with("ok ") && ran.stderr.contains("no channel accepted the alert"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn who_looks_into_the_database_needs_no_secrets() {
    let good = "targets: { shop: { stdio: 'mcproof demo shop' } }\nchannels: {}\n";
    let folder = folder_with(&[("watch.yaml", good)]);
    assert_eq!(run(folder.path(), &["watch", "watch.yaml", "--once"]).code, Some(0));
    let secret = "targets: { shop: { http: 'https://${env.NO_SUCH_HOST}/mcp' } }\nchannels: { chat: { slack: 'env:NO_SUCH_VARIABLE' } }\n";
    std::fs::write(folder.path().join("watch.yaml"), secret).unwrap();
    assert_eq!(run(folder.path(), &["watch", "watch.yaml", "--once"]).code, Some(2));
    for (words, code) in
        [(&["status"][..], 0), (&["incidents"], 0), (&["mute", "shop"], 0), (&["deploy", "shop"], 0), (&["ack", "no-such-incident"], 2)]
    {
        let ran = run(folder.path(), &[&["watch", words[0], "watch.yaml"], &words[1..]].concat());
        assert_eq!(ran.code, Some(code), "{words:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("NO_SUCH"), "{}", ran.stderr);
    }
    std::fs::write(folder.path().join("watch.yaml"), "database: 'env:NO_SUCH_VARIABLE'\n").unwrap();
    let ran = run(folder.path(), &["watch", "status", "watch.yaml"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("`NO_SUCH_VARIABLE` is not set"), "{}", ran.stderr);
}

#[test]
fn once_is_no_success_where_nothing_could_be_found_out() {
    let config = "canaries: 127.0.0.1:1\ntargets: { far: { http: 'http://no-such-name.invalid/mcp', timeout: 2s } }\nchannels: {}\n";
    let folder = folder_with(&[("watch.yaml", config)]);
    let ran = run(folder.path(), &["watch", "watch.yaml", "--once"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("far  inconclusive: connection to no-such-name.invalid:80 failed"), "{}", ran.stdout);
    assert!(ran.stdout.starts_with("unknown "), "{}", ran.stdout);
}

/// A server that repeats its credentials in what it refuses.
#[test]
fn secrets_that_a_server_repeats_reach_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            while let Some(message) = heard::message(&mut stream) {
                let error = "{\"code\":-32000,\"message\":\"bad credential Bearer from-the-environment\"}";
                let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{error}}}", message["id"]);
                let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
                if stream.get_mut().write_all((head + &body).as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    let pager = Service::answering(202);
    let config = format!(
        "targets: {{ shop: {{ http: {{ url: '{url}', headers: {{ authorization: 'Bearer ${{env.WATCH_KEY}}' }} }} }} }}\nchannels: {{ pager: {{ webhook: '{}' }} }}\n",
        pager.url
    );
    let folder = folder_with(&[("watch.yaml", &config)]);
    let ran = run(folder.path(), &["watch", "watch.yaml", "--once"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    let page = pager.heard.lock().unwrap()[0].to_string();
    assert!(page.contains("bad credential [redacted]") && !page.contains("from-the-environment"), "{page}");
    let database = std::fs::read(folder.path().join("watch.db")).unwrap();
    assert!(!String::from_utf8_lossy(&database).contains("from-the-environment"));
}

#[test]
fn a_change_of_the_file_opens_the_dashboard_to_nobody() {
    let closed = "listen: 0.0.0.0:0\nlogin: { tokens: 'env:WATCH_KEY' }\ntargets: {}\nchannels: {}\n";
    let folder = folder_with(&[("watch.yaml", closed)]);
    let mut monitor = Monitor::start(folder.path());
    monitor.says("dashboard");
    std::fs::write(folder.path().join("watch.yaml"), "listen: 127.0.0.1:0\ntargets: {}\nchannels: {}\n").unwrap();
    let said = monitor.says("not-reloaded");
    assert!(said["why"].as_str().unwrap().contains("but `login` is not set"), "{said}");
}

#[test]
fn a_running_monitor_takes_over_changes_of_imported_files() {
    let servers = |names: &[&str]| {
        let server = json!({ "command": MCPROOF, "args": ["demo", "shop"] });
        let servers: serde_json::Map<String, Value> = names.iter().map(|&name| (name.to_owned(), server.clone())).collect();
        json!({ "mcpServers": servers }).to_string()
    };
    let folder = folder_with(&[("watch.yaml", "import: servers.json\n"), ("servers.json", &servers(&["one"]))]);
    let file = folder.path().join("servers.json");
    let mut monitor = Monitor::start(folder.path());
    assert_eq!(monitor.says("started")["targets"], "1");
    std::fs::write(&file, servers(&["one", "two"])).unwrap();
    assert_eq!(monitor.says("reloaded")["targets"], "2");
    std::fs::write(&file, "{").unwrap();
    monitor.says("not-reloaded");
    std::fs::write(&file, servers(&["two"])).unwrap();
    assert_eq!(monitor.says("reloaded")["targets"], "1");
}

#[test]
fn a_hangup_while_the_database_is_opened_ends_nothing() {
    let database = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = format!("database: postgres://{}/watch\ntargets: {{}}\nchannels: {{}}\n", database.local_addr().unwrap());
    let folder = folder_with(&[("watch.yaml", config.as_str())]);
    let mut monitor = Monitor::start(folder.path());
    // It is asked, and says nothing.
    let (asked, _) = database.accept().unwrap();
    monitor.signal("-HUP");
    monitor.signal("-HUP");
    drop(asked);
    // Its port stays taken: what else listens there would be asked.
    thread::spawn(move || database.incoming().for_each(drop));
    // It starts without one.
    assert_eq!(monitor.says("database")["while"], "starting");
    monitor.says("started");
    monitor.signal("-TERM");
    assert_eq!(monitor.process.wait().unwrap().code(), Some(143));
}

#[test]
fn a_monitor_that_starts_without_its_database_tells_an_outage() {
    let pager = Service::answering(202);
    let refused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = format!(
        "listen: 127.0.0.1:0\ndatabase: postgres://{refused}/watch\ntargets: {{ shop: {{ http: 'http://127.0.0.1:1/mcp', every: 1s, timeout: 1s, failures: 1 }} }}\n\
         channels: {{ pager: {{ webhook: '{}' }} }}\n",
        pager.url
    );
    let folder = folder_with(&[("watch.yaml", config.as_str())]);
    let mut monitor = Monitor::start(folder.path());
    let said = monitor.says("database");
    assert!(said["while"] == "starting" && said["why"].as_str().unwrap().starts_with("the database does not answer"), "{said}");
    let at = monitor.says("dashboard")["at"].as_str().unwrap().to_owned();
    until("the page", || pager.kinds() == ["trigger"]);
    let (status, body) = get(&at, "/healthz");
    assert!(status.contains("503") && body.contains("results cannot be written"), "{status} {body}");
    // Whoever cannot stay, or does only a part, says so at once.
    for arguments in [&["watch", "watch.yaml", "--once"][..], &["watch", "watch.yaml", "--role", "worker"]] {
        let ran = run(folder.path(), arguments);
        assert!(ran.code == Some(2) && ran.stderr.contains("the database cannot be used"), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn a_monitor_that_starts_on_a_full_disk_tells_an_outage_and_stores_it_later() {
    let (folder, pager) = (tempfile::tempdir().unwrap(), Service::answering(202));
    let config = format!(
        "listen: 127.0.0.1:0\ntargets: {{ shop: {{ {}, every: 1s, failures: 1, recoveries: 1 }} }}\nchannels: {{ pager: {{ webhook: '{}' }} }}\n",
        fragile(folder.path()),
        pager.url
    );
    std::fs::write(folder.path().join("watch.yaml"), config).unwrap();
    std::fs::write(folder.path().join("broken"), "").unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -S -f 8; exec \"$0\" watch watch.yaml --json", MCPROOF]).current_dir(folder.path());
    let mut monitor = Monitor::spawn(shell.env("XDG_STATE_HOME", "/nowhere"));
    assert_eq!(monitor.says("database")["while"], "starting");
    let at = monitor.says("dashboard")["at"].as_str().unwrap().to_owned();
    until("the page", || pager.kinds() == ["trigger"]);
    assert!(get(&at, "/healthz").0.contains("503"));
    let pid = monitor.process.id().to_string();
    assert!(Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited:unlimited"]).status().unwrap().success());
    monitor.says("standby-ended");
    until("the state of the monitor", || get(&at, "/healthz").0.contains("200"));
    let status = run(folder.path(), &["watch", "status", "watch.yaml"]);
    assert!(status.code == Some(1) && status.stdout.contains("down") && status.stdout.contains("availability"), "{}", status.stdout);
    std::fs::remove_file(folder.path().join("broken")).unwrap();
    until("the end", || pager.kinds() == ["trigger", "resolve"]);
}

#[test]
fn a_running_monitor_takes_over_a_changed_file_and_keeps_the_old_one_where_that_has_mistakes() {
    let pager = Service::answering(202);
    let good = format!(
        "listen: 127.0.0.1:0\ntargets: {{ shop: {{ stdio: 'mcproof demo shop' }} }}\nchannels: {{ pager: {{ webhook: '{}' }} }}\n",
        pager.url
    );
    let folder = folder_with(&[("watch.yaml", &good)]);
    let mut monitor = Monitor::start(folder.path());
    assert_eq!(monitor.says("started")["targets"], "1");
    let at = monitor.says("dashboard")["at"].as_str().unwrap().to_owned();
    let (first, _) = get(&at, "/status");
    assert!(first.starts_with("HTTP/1.1 200"), "{first}");
    std::fs::write(folder.path().join("watch.yaml"), "targets: 5\n").unwrap();
    assert_eq!(monitor.says("mistake")["at"], "watch.yaml:1:10");
    monitor.says("not-reloaded");
    // Whoever looks is told, wherever that is.
    let (head, body) = get(&at, "/healthz");
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("an earlier version of the configuration"), "{head} {body}");
    assert!(get(&at, "/metrics").1.contains("\nmcproof_configuration_rejected 1\n"));
    assert!(get(&at, "/").1.contains("The configuration file was not applied, and an earlier version is in use: watch.yaml:1:10: "));
    let extra = good.replace("targets: {", "targets: { extra: { http: 'http://127.0.0.1:1/mcp', evry: 2s },");
    std::fs::write(folder.path().join("watch.yaml"), &extra).unwrap();
    monitor.says("not-reloaded");
    let status = run(folder.path(), &["watch", "status", "watch.yaml"]);
    for part in
        ["not applied, and an earlier version is in use: watch.yaml:2:", "not monitored, although they stand in the configuration: extra; "]
    {
        assert!(status.code == Some(1) && status.stderr.contains(part), "{}", status.stderr);
    }
    // Nobody has to mend the file to be left alone.
    std::fs::write(folder.path().join("watch.yaml"), format!("{good}  x: [\n")).unwrap();
    monitor.says("not-reloaded");
    let muted = run(folder.path(), &["watch", "mute", "watch.yaml", "shop", "--for", "1m"]);
    assert!(muted.code == Some(0) && muted.stderr.contains("going on with its database"), "{}", muted.stderr);
    let more = good.replace("targets: {", "targets: { dead: { http: 'http://127.0.0.1:1/mcp', every: 2s, timeout: 1s },");
    std::fs::write(folder.path().join("watch.yaml"), more).unwrap();
    assert_eq!(monitor.says("reloaded")["targets"], "2");
    assert!(get(&at, "/metrics").1.contains("\nmcproof_configuration_rejected 0\n"));
    let status = run(folder.path(), &["watch", "status", "watch.yaml"]).stderr;
    assert!(!status.contains("not applied") && !status.contains("not monitored"), "{status}");
    // Fifteen seconds make it certain.
    let sent = monitor.says("sent");
    assert_eq!((sent["kind"].as_str(), sent["channel"].as_str()), (Some("trigger"), Some("pager")));
    assert_eq!(pager.heard.lock().unwrap()[0]["target"], "dead");
    let incident = sent["incident"].as_str().unwrap();
    let desk = |arguments: &[&str]| run(folder.path(), &[&["watch"], arguments].concat());
    let taken = desk(&["ack", "watch.yaml", incident, "--by", "ann"]);
    assert!(taken.stdout.starts_with(&format!("{incident}: acknowledged by ann: dead is down")), "{}", taken.stdout);
    assert_eq!(monitor.says("sent")["kind"], "acknowledge");
    assert_eq!(pager.heard.lock().unwrap()[1]["acknowledged_by"], "ann");
    let again = desk(&["ack", "watch.yaml", incident]);
    assert!(again.code == Some(2) && again.stderr.contains("acknowledged already"), "{}", again.stderr);
    for arguments in
        [&["mute", "watch.yaml", "dead", "--for", "2h"][..], &["mute", "watch.yaml", "dead", "--off"], &["deploy", "watch.yaml", "shop"]]
    {
        assert_eq!(desk(arguments).code, Some(0), "{arguments:?}");
    }
    let unknown = desk(&["deploy", "watch.yaml", "shp"]);
    assert!(unknown.code == Some(2) && unknown.stderr.contains("did you mean `shop`?"), "{}", unknown.stderr);
    monitor.signal("-HUP");
    monitor.says("reloaded");
    monitor.signal("-TERM");
    monitor.says("ending");
    assert_eq!(monitor.process.wait().unwrap().code(), Some(143));
}

/// It does not wait for what a receiver says, which comes too late or never.
#[test]
fn a_monitor_ends_although_a_receiver_hangs() {
    let receiver = TcpListener::bind("127.0.0.1:0").unwrap();
    receiver.set_nonblocking(true).unwrap();
    let config = format!(
        "defaults: {{ every: 2s, timeout: 1s, failures: 1 }}\ntargets: {{ bad: {{ http: 'http://127.0.0.1:1/mcp' }} }}\n\
         channels: {{ pager: {{ webhook: 'http://{}' }} }}\n",
        receiver.local_addr().unwrap()
    );
    let folder = folder_with(&[("watch.yaml", &config)]);
    let mut monitor = Monitor::start(folder.path());
    let mut held = None;
    until("a message", || {
        held = receiver.accept().ok();
        held.is_some()
    });
    monitor.signal("-TERM");
    let asked = std::time::Instant::now();
    while monitor.process.try_wait().unwrap().is_none() {
        assert!(asked.elapsed().as_secs() < 8, "it waits for the receiver");
        thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn a_disk_that_takes_nothing_is_told_and_probing_goes_on_when_it_does_again() {
    let config = "listen: 127.0.0.1:0\ntargets: { shop: { stdio: 'mcproof demo shop', every: 1s } }\nchannels: {}\n";
    let folder = folder_with(&[("watch.yaml", config)]);
    // Without the signal a process is told of its limit as of any other failure.
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; exec \"$0\" watch watch.yaml --json", MCPROOF]).current_dir(folder.path());
    let mut monitor = Monitor::spawn(shell.env("XDG_STATE_HOME", "/nowhere"));
    let at = monitor.says("dashboard")["at"].as_str().unwrap().to_owned();
    let pid = monitor.process.id().to_string();
    let limit = |size: &str| {
        assert!(Command::new("prlimit").args(["--pid", &pid, &format!("--fsize={size}:unlimited")]).status().unwrap().success());
    };
    for round in 0..2 {
        limit("4096");
        let said = monitor.says("database");
        assert!(said["why"].as_str().unwrap().starts_with("the disk"), "{said}");
        assert!(said["hint"].as_str().unwrap().contains("disk"), "{said}");
        let (status, body) = get(&at, "/healthz");
        assert!(status.contains("503") && body.contains("results cannot be written: the disk"), "{status} {body}");
        let more = config.replace("targets: {", &format!("targets: {{ shop{round}: {{ stdio: 'mcproof demo shop', every: 1m }},"));
        std::fs::write(folder.path().join("watch.yaml"), more).unwrap();
        monitor.says("not-reloaded");
        limit("unlimited");
        // Without another change of the file.
        let said = monitor.says_both("reloaded", "database-works-again");
        assert_eq!(said["targets"], "2", "{said}");
        assert!(get(&at, "/healthz").0.contains("200"));
    }
}

#[test]
fn while_results_are_kept_in_memory_all_pages_show_them_and_jobs_can_report_in() {
    let folder = tempfile::tempdir().unwrap();
    let config = format!(
        "listen: 127.0.0.1:0\ntargets:\n  shop: {{ {}, every: 1s, failures: 1, public: true }}\n  \
         backup: {{ push: {{ token: 'env:WATCH_KEY', within: 1h }}, every: 1s }}\nchannels: {{}}\n",
        fragile(folder.path())
    );
    std::fs::write(folder.path().join("watch.yaml"), config).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; exec \"$0\" watch watch.yaml --json", MCPROOF]).current_dir(folder.path());
    let mut monitor = Monitor::spawn(shell.env("XDG_STATE_HOME", "/nowhere").env("WATCH_KEY", "from-the-environment"));
    let at = monitor.says("dashboard")["at"].as_str().unwrap().to_owned();
    let pid = monitor.process.id().to_string();
    let limit = |size: &str| {
        assert!(Command::new("prlimit").args(["--pid", &pid, &format!("--fsize={size}:unlimited")]).status().unwrap().success());
    };
    until("the first result", || get(&at, "/badge/shop.svg").1.contains("shop: up"));
    limit("4096");
    monitor.says("standby");
    std::fs::write(folder.path().join("broken"), "").unwrap();
    until("the outage", || get(&at, "/badge/shop.svg").1.contains("shop: down"));
    for (path, part) in [
        ("/status", "1 of 1 target down."),
        ("/metrics", "mcproof_probe_success{target=\"shop\"} 0"),
        ("/api/targets/shop", "\"down\""),
        ("/", "1 of 2 targets down"),
        ("/", "Results cannot be written"),
    ] {
        let (_, page) = get(&at, path);
        assert!(page.contains(part), "{path}: {part} is not in\n{page}");
    }
    assert!(get(&at, "/healthz").0.contains("503"));
    let (status, body) = get(&at, "/push/from-the-environment");
    assert!(status.contains("200"), "{status} {body}");
    limit("unlimited");
    monitor.says("standby-ended");
    until("the state of the monitor", || get(&at, "/healthz").0.contains("200"));
    assert!(get(&at, "/badge/shop.svg").1.contains("shop: down"));
    let (_, results) = get(&at, "/api/results?target=backup&limit=1");
    assert!(results.contains("\"up\"") || results.contains("\"warning\""), "{results}");
    std::fs::remove_file(folder.path().join("broken")).unwrap();
    until("the end", || get(&at, "/status").1.contains("All systems operational."));
}

/// A monitor of `shop`, which is down as long as there is a file `broken`, whose disk can be made full.
struct OnSmallDisk {
    folder: TempDir,
    monitor: Monitor,
    at: String,
    pager: Service,
}

impl OnSmallDisk {
    /// With `shop` down, of which the pager was told.
    fn paging() -> Self {
        let (folder, pager) = (tempfile::tempdir().unwrap(), Service::answering(202));
        let config = format!(
            "listen: 127.0.0.1:0\ntargets:\n  shop: {{ {}, every: 1s, failures: 1, recoveries: 1 }}\n  \
             desk: {{ stdio: 'mcproof demo shop', every: 1s }}\nchannels: {{ pager: {{ webhook: '{}' }} }}\nroutes: [{{ channels: pager }}]\n",
            fragile(folder.path()),
            pager.url
        );
        std::fs::write(folder.path().join("watch.yaml"), config).unwrap();
        std::fs::write(folder.path().join("broken"), "").unwrap();
        let (monitor, at) = Self::started(folder.path());
        let this = Self { folder, monitor, at, pager };
        until("the page", || this.pager.kinds() == ["trigger"]);
        // What was sent and is not written down would be sent again.
        let path = format!("/incidents/{}", this.incident()["id"].as_str().unwrap());
        until("the note of it", || get(&this.at, &path).1.contains("trigger by pager"));
        this
    }

    fn started(folder: &Path) -> (Monitor, String) {
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; exec \"$0\" watch watch.yaml --json", MCPROOF]).current_dir(folder);
        let mut monitor = Monitor::spawn(shell.env("XDG_STATE_HOME", "/nowhere"));
        let at = monitor.says("dashboard")["at"].as_str().unwrap().to_owned();
        (monitor, at)
    }

    fn start_again(&mut self) {
        (self.monitor, self.at) = Self::started(self.folder.path());
    }

    fn limit(&self, size: &str) {
        let (pid, limit) = (self.monitor.process.id().to_string(), format!("--fsize={size}:unlimited"));
        assert!(Command::new("prlimit").args(["--pid", &pid, &limit]).status().unwrap().success());
    }

    /// The open incident of `shop`.
    fn incident(&self) -> Value {
        let (_, listed) = send(&self.at, "GET", "/api/incidents", "");
        let all = listed["incidents"].as_array().unwrap_or_else(|| panic!("{listed}"));
        all.iter().find(|incident| incident["subject"] == "shop").unwrap_or_else(|| panic!("{listed}")).clone()
    }

    fn acknowledge(&self) -> (u16, Value) {
        let id = self.incident()["id"].as_str().unwrap().to_owned();
        send(&self.at, "POST", &format!("/api/incidents/{id}/acknowledge"), "")
    }

    fn mute(&self, minutes: u32) -> (u16, Value) {
        send(&self.at, "POST", "/api/targets/desk/mute", &format!("{{\"minutes\": {minutes}}}"))
    }

    /// Of what is in the audit log, what was done, the newest first.
    fn done(&self) -> Vec<String> {
        let (_, audit) = send(&self.at, "GET", "/api/audit", "");
        let entries = audit["entries"].as_array().unwrap_or_else(|| panic!("{audit}"));
        entries.iter().map(|entry| format!("{} {}", entry["action"].as_str().unwrap(), entry["outcome"].as_str().unwrap_or("?"))).collect()
    }

    fn muted(&self) -> bool {
        send(&self.at, "GET", "/api/targets/desk", "").1["muted_until"].is_string()
    }
}

#[test]
fn who_acknowledges_or_mutes_on_a_full_disk_is_heard_at_once_and_it_is_written_later() {
    let mut scene = OnSmallDisk::paging();
    scene.limit("4096");
    let (status, told) = scene.acknowledge();
    assert_eq!((status, &told["stored"]), (200, &Value::Bool(false)), "{told}");
    let (status, told) = scene.mute(60);
    assert_eq!((status, &told["stored"]), (200, &Value::Bool(false)), "{told}");
    assert_eq!(scene.acknowledge().0, 409, "two who acknowledge are not one");
    scene.monitor.says("standby");
    until("those who were told", || scene.pager.kinds() == ["trigger", "acknowledge"]);
    assert!(scene.incident()["acknowledged_by"] == "local" && scene.muted());
    assert_eq!(scene.done()[1..], ["mute for 1 h done", "acknowledge done"]);
    // Another process opens the file itself, and says where the monitor listens.
    let mut shell = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" watch ack watch.yaml shop";
    let ran = shell.args(["-c", script, MCPROOF]).current_dir(scene.folder.path()).output().unwrap();
    let stderr = String::from_utf8(ran.stderr).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(ran.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("nothing was recorded"), "{stderr}");
    let hint = "a running monitor accepts it meanwhile and keeps it in memory: acknowledge the incident on http://127.0.0.1:0";
    assert!(stderr.contains(hint) && stderr.contains("/api/incidents/ID/acknowledge"), "{stderr}");
    scene.limit("unlimited");
    scene.monitor.says("standby-ended");
    assert!(scene.incident()["acknowledged_by"] == "local" && scene.muted());
    assert!(scene.mute(30).1.get("stored").is_none());
    scene.monitor.signal("-KILL");
    scene.start_again();
    assert!(scene.incident()["acknowledged_by"] == "local" && scene.muted());
    std::fs::remove_file(scene.folder.path().join("broken")).unwrap();
    until("the end", || scene.pager.kinds() == ["trigger", "acknowledge", "resolve"]);
}

#[test]
fn who_has_to_log_in_can_do_so_on_a_full_disk() {
    let folder = folder_with(&[(
        "watch.yaml",
        "listen: 127.0.0.1:0\nlogin: { tokens: ['env:WATCH_KEY'] }\ntargets: { desk: { stdio: 'mcproof demo shop', every: 1s } }\nchannels: {}\n",
    )]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; exec \"$0\" watch watch.yaml --json", MCPROOF]).current_dir(folder.path());
    let mut monitor = Monitor::spawn(shell.env("XDG_STATE_HOME", "/nowhere").env("WATCH_KEY", "from-the-environment"));
    let at = monitor.says("dashboard")["at"].as_str().unwrap().to_owned();
    until("the first result", || get(&at, "/healthz").0.contains("200"));
    let limit = ["--pid", &monitor.process.id().to_string(), "--fsize=4096:unlimited"];
    assert!(Command::new("prlimit").args(limit).status().unwrap().success());
    let (_, page) = get(&at, "/login");
    let after = |start: &str| page.split_once(start).unwrap().1.split(['"', ';']).next().unwrap().to_owned();
    let (cookie, seal) = (after("mcproof_visit="), after("name=\"seal\" value=\""));
    let form = format!("seal={seal}&token=from-the-environment&next=/");
    let mut stream = TcpStream::connect(at.trim_start_matches("http://")).unwrap();
    let head = format!("host: localhost\r\nconnection: close\r\ncookie: mcproof_visit={cookie}");
    let kind = "content-type: application/x-www-form-urlencoded";
    let request = format!("POST /login HTTP/1.1\r\n{head}\r\n{kind}\r\ncontent-length: {}\r\n\r\n{form}", form.len());
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 303") && answer.contains("mcproof_session="), "{answer}");
}

/// Nothing outlives a process but what is in the database: what is lost is lost as a whole, and said.
#[test]
fn a_process_that_ends_on_a_full_disk_loses_what_was_decided_as_a_whole_and_says_so() {
    let mut scene = OnSmallDisk::paging();
    // With signal 9 there is nobody to write anything, or to say so.
    scene.limit("4096");
    assert_eq!((scene.acknowledge().0, scene.mute(60).0), (200, 200));
    scene.monitor.signal("-KILL");
    scene.start_again();
    assert!(scene.incident().get("acknowledged").is_none() && !scene.muted() && scene.done().is_empty());
    // It goes on from there, also in a process that finds the disk full from the start of its work.
    scene.limit("4096");
    assert_eq!((scene.acknowledge().0, scene.mute(60).0), (200, 200));
    scene.monitor.signal("-TERM");
    let said = scene.monitor.says("standby-lost");
    assert!(
        said["level"] == "error" && said["why"].as_str().unwrap().contains("so results, acknowledgements and mutes are lost: "),
        "{said}"
    );
    scene.monitor.process.wait().unwrap();
    scene.start_again();
    assert!(scene.incident().get("acknowledged").is_none() && !scene.muted());
    // Whoever has room again when it ends writes everything before.
    scene.limit("4096");
    assert_eq!((scene.acknowledge().0, scene.mute(60).0), (200, 200));
    scene.limit("unlimited");
    scene.monitor.signal("-TERM");
    scene.monitor.says("standby-ended");
    scene.monitor.process.wait().unwrap();
    scene.start_again();
    assert!(scene.incident()["acknowledged_by"] == "local" && scene.muted());
    assert_eq!(scene.done(), ["mute for 1 h done", "acknowledge done"]);
}

/// Whenever a process dies while it writes what was decided, all of it is there or nothing.
#[test]
fn a_process_that_dies_while_it_writes_has_written_all_decisions_or_none() {
    let mut scene = OnSmallDisk::paging();
    for wait in [0, 150, 400, 700, 1_000] {
        scene.mute(0);
        scene.limit("4096");
        let is_new = scene.incident().get("acknowledged").is_none();
        let before = scene.done().len();
        assert_eq!(scene.mute(60).0, 200);
        assert_eq!(scene.acknowledge().0, if is_new { 200 } else { 409 });
        scene.limit("unlimited");
        thread::sleep(std::time::Duration::from_millis(wait));
        scene.monitor.signal("-KILL");
        scene.start_again();
        let (is_muted, done) = (scene.muted(), scene.done());
        assert!(!done.iter().any(|entry| entry.ends_with('?')), "{done:?}");
        match is_muted {
            true => assert_eq!((done.len(), scene.incident()["acknowledged_by"].as_str()), (before + 2, Some("local")), "{wait}: {done:?}"),
            false => assert_eq!((done.len(), scene.incident().get("acknowledged").is_none()), (before, is_new), "{wait}: {done:?}"),
        }
    }
    let (_, page) = get(&scene.at, &format!("/incidents/{}", scene.incident()["id"].as_str().unwrap()));
    assert!(page.matches("by local</li>").count() <= 1, "{page}");
    assert_eq!(scene.pager.kinds().iter().filter(|kind| *kind == "trigger").count(), 1);
}

/// A region for which no target is meant: a typing error, or a worker that is not needed.
#[test]
fn a_region_without_targets_is_told_and_is_no_success() {
    let heartbeat = Service::answering(200);
    let config = format!(
        "region: eu\nheartbeat: {{ url: '{}', every: 5s }}\n\
         targets: {{ desk: {{ stdio: 'mcproof demo shop', every: 1s, recoveries: 1, regions: [eu, us] }} }}\nchannels: {{}}\n",
        heartbeat.url
    );
    let folder = folder_with(&[("watch.yaml", config.as_str())]);
    let once = |region: &str| run(folder.path(), &["watch", "watch.yaml", "--once", "--region", region]);
    let told = "no target is probed from the region `asia`, so nothing was probed: the targets name `eu`, `us`; check --region";
    let ran = once("asia");
    assert!(ran.code == Some(4) && ran.stderr.contains(told), "{:?} {}{}", ran.code, ran.stdout, ran.stderr);
    let ran = once("eu");
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    // What another region has found out is shown, and is no result of this run.
    let ran = once("asia");
    assert!(ran.code == Some(4) && ran.stdout.starts_with("ok ") && ran.stderr.contains(told), "{:?} {}", ran.code, ran.stdout);
    for role in ["serve", "worker"] {
        let arguments = ["watch", "watch.yaml", "--json", "--region", "asia", "--role", role];
        let mut monitor = Monitor::spawn(&mut command(folder.path(), &arguments));
        let said = monitor.says("nothing-to-probe");
        assert!(said["level"] == "warning" && said["why"] == "no target is probed from the region `asia`", "{said}");
        if role == "serve" {
            // Of the region `us` nothing was ever heard.
            let said = monitor.says("heartbeat-silent");
            assert!(said["why"].as_str().unwrap().starts_with("no recent results from"), "{said}");
            std::fs::write(folder.path().join("watch.yaml"), config.replace("[eu, us]", "[eu]")).unwrap();
            monitor.says("reloaded");
            monitor.says("nothing-to-probe");
            std::fs::write(folder.path().join("watch.yaml"), &config).unwrap();
        }
    }
}

#[test]
fn a_database_whose_file_is_removed_or_replaced_is_told_until_it_is_back() {
    let config = "listen: 127.0.0.1:0\ntargets: { shop: { stdio: 'mcproof demo shop', every: 1s } }\nchannels: {}\n";
    let folder = folder_with(&[("watch.yaml", config)]);
    let mut monitor = Monitor::start(folder.path());
    let at = monitor.says("dashboard")["at"].as_str().unwrap().to_owned();
    until("the first result", || get(&at, "/healthz").0.contains("200"));
    let (file, aside) = (folder.path().join("watch.db"), folder.path().join("aside.db"));
    std::fs::rename(&file, &aside).unwrap();
    for replaced in [false, true] {
        if replaced {
            std::fs::write(&file, "").unwrap();
        }
        let said = monitor.says("database");
        assert_eq!(said["why"], "the file of the database was removed or replaced");
        assert!(said["hint"].as_str().unwrap().contains("restart the monitor"), "{said}");
        let (status, body) = get(&at, "/healthz");
        assert!(status.contains("503") && body.contains("removed or replaced"), "{status} {body}");
        std::fs::rename(&aside, &file).unwrap();
        monitor.says("database-works-again");
        assert!(get(&at, "/healthz").0.contains("200"));
        std::fs::rename(&file, &aside).unwrap();
    }
}

#[test]
fn once_is_no_success_after_the_interval_became_longer() {
    let folder = tempfile::tempdir().unwrap();
    let configure = |every: &str| {
        let target = format!("{}, every: {every}, failures: 1, recoveries: 1", fragile(folder.path()));
        std::fs::write(folder.path().join("watch.yaml"), format!("targets: {{ shop: {{ {target} }} }}\nchannels: {{}}\n")).unwrap();
    };
    configure("1s");
    let ran = run(folder.path(), &["watch", "watch.yaml", "--once"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    configure("24h");
    std::fs::write(folder.path().join("broken"), "").unwrap();
    let ran = run(folder.path(), &["watch", "watch.yaml", "--once"]);
    assert!(ran.code == Some(1) && ran.stdout.starts_with("down"), "{}{}", ran.stdout, ran.stderr);
    std::fs::remove_file(folder.path().join("broken")).unwrap();
    let ran = run(folder.path(), &["watch", "watch.yaml", "--once"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_damaged_database_is_named_with_what_to_do() {
    let config = "targets: { shop: { stdio: 'mcproof demo shop' } }\nchannels: {}\n";
    let folder = folder_with(&[("watch.yaml", config), ("watch.db", &"no database ".repeat(1000))]);
    for arguments in [&["watch", "watch.yaml", "--once"][..], &["watch", "status", "watch.yaml"]] {
        let ran = run(folder.path(), arguments);
        let is_named = ran.stderr.contains("the file of the database is damaged") && ran.stderr.contains("put a backup in its place");
        assert!(ran.code == Some(2) && is_named, "{}", ran.stderr);
    }
}

#[test]
fn a_damaged_log_of_a_database_is_told() {
    let folder = folder_with(&[("watch.yaml", "targets: { shop: { stdio: 'mcproof demo shop' } }\nchannels: {}\n")]);
    let ran = run(folder.path(), &["watch", "watch.yaml", "--once"]);
    assert!(ran.code == Some(0) && !ran.stderr.contains("write-ahead log"), "{}", ran.stderr);
    let log = folder.path().join("watch.db-wal");
    // A process that ends while its machine is busy may leave what it wrote last in there, and the next one takes that over.
    until("a log with nothing in it", || {
        let is_empty = std::fs::metadata(&log).map_or(0, |log| log.len()) == 0;
        is_empty || run(folder.path(), &["watch", "watch.yaml", "--once"]).code != Some(0)
    });
    std::fs::write(&log, [b'x'; 8192]).unwrap();
    let ran = run(folder.path(), &["watch", "watch.yaml", "--once"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("the write-ahead log of the database was damaged"), "{}", ran.stderr);
    let ran = run(folder.path(), &["watch", "watch.yaml", "--once"]);
    assert!(ran.code == Some(0) && !ran.stderr.contains("write-ahead log"), "{}", ran.stderr);
}

#[test]
fn a_saved_probe_is_judged_again_without_its_server() {
    let folder = folder_with(&[]);
    let ran = run(folder.path(), &["probe", "--trace", "good.json", "--", MCPROOF, "demo", "shop"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = run(folder.path(), &["probe", "--replay", "good.json"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.starts_with("replayed: 0 failures, "), "{}", ran.stdout);
    // A note is no failure, in words and in the exit code.
    run(folder.path(), &["probe", "--trace", "blank.json", "--", "sh", "-c", "echo; exec \"$0\" demo shop", MCPROOF]);
    let ran = run(folder.path(), &["probe", "--replay", "blank.json"]);
    assert!(ran.code == Some(0) && ran.stdout.starts_with("replayed: 0 failures, 0 warnings, 1 note; "), "{:?}: {}", ran.code, ran.stdout);
    // Noise on stdout is seen by whoever looks again.
    let noisy = "echo starting; exec \"$0\" demo shop";
    run(folder.path(), &["probe", "--trace", "noisy.json", "--", "sh", "-c", noisy, MCPROOF]);
    let ran = run(folder.path(), &["probe", "--replay", "noisy.json", "--json"]);
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(ran.code, Some(1), "{shown:#}");
    assert!(shown["rules"].as_array().unwrap().iter().any(|ruling| ruling["rule"].as_str().unwrap().contains("stdout")), "{shown:#}");
    // The evidence of a monitor has the report beside the transcript.
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(folder.path().join("good.json")).unwrap()).unwrap();
    let ran = run(folder.path(), &["probe", "--json", "--", MCPROOF, "demo", "no-such-demo"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    std::fs::write(folder.path().join("evidence.json"), serde_json::json!({ "report": report, "transcript": trace }).to_string()).unwrap();
    let ran = run(folder.path(), &["probe", "--replay", "evidence.json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stdout.starts_with("unreachable: "), "{}", ran.stdout);
    // A trace is judged in the same way.
    for (file, server, code) in [("good.mcptrace", "exec \"$0\" demo shop", 0), ("noisy.mcptrace", noisy, 1)] {
        run(folder.path(), &["probe", "--trace", file, "--", "sh", "-c", server, MCPROOF]);
        let ran = run(folder.path(), &["probe", "--replay", file]);
        assert_eq!(ran.code, Some(code), "{file}: {}{}", ran.stdout, ran.stderr);
    }
    for (text, why) in [("[]", "not a saved probe"), ("{\"version\": 99, \"frames\": []}", "requires a newer mcproof")] {
        std::fs::write(folder.path().join("bad.json"), text).unwrap();
        let ran = run(folder.path(), &["probe", "--replay", "bad.json"]);
        assert!(ran.code == Some(2) && ran.stderr.contains(why), "{text}: {}", ran.stderr);
    }
}

/// Two targets that are down, each on a host of its own.
const BOTH_DOWN: &str = "targets:
  shop: { http: 'http://127.0.0.1:1/mcp', failures: 1 }
  desk: { http: 'http://127.0.0.1:2/mcp', failures: 1 }
";

#[test]
fn a_person_acknowledges_an_incident_by_what_they_have() {
    let folder = folder_with(&[("watch.yaml", BOTH_DOWN)]);
    assert_eq!(run(folder.path(), &["watch", "watch.yaml", "--once"]).code, Some(1));
    let ack = |typed: &str| run(folder.path(), &["watch", "ack", "watch.yaml", typed, "--by", "ann"]);
    let listed = run(folder.path(), &["watch", "incidents", "watch.yaml", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let id = |target: &str| {
        let incidents = listed["incidents"].as_array().unwrap();
        incidents.iter().find(|incident| incident["subject"] == target).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let (shop, desk) = (id("shop"), id("desk"));
    // Both were opened within seconds: their ids begin alike.
    let ran = ack(&shop[..6]);
    assert_eq!(ran.code, Some(2), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains(&shop) && ran.stderr.contains(&desk) && ran.stderr.contains("may be 2 incidents"), "{}", ran.stderr);
    let ran = ack("shp");
    assert!(ran.code == Some(2) && ran.stderr.contains("did you mean `shop`?"), "{}", ran.stderr);
    let ran = ack("shop");
    let is_done = |ran: &Ran, id: &str, name: &str| {
        ran.code == Some(0) && ran.stdout.starts_with(&format!("{id}: acknowledged by ann: {name} is down"))
    };
    assert!(is_done(&ran, &shop, "shop"), "{}{}", ran.stdout, ran.stderr);
    for again in ["shop", &shop] {
        let ran = ack(again);
        assert!(ran.code == Some(2) && ran.stderr.contains("is acknowledged already, by ann"), "{}", ran.stderr);
    }
    let ran = ack(&desk[..desk.len() - 1]);
    assert!(is_done(&ran, &desk, "desk"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the program goes by the clock of the machine, and so do the hours that it is given")]
fn a_route_with_hours_is_used_at_these_hours_only() {
    let (day, night) = (Service::answering(202), Service::answering(202));
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    // The first of January 1970 was a Thursday. Three days from now is neither today nor tomorrow, whenever this is.
    let days = since.as_secs() / 86_400;
    let later = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"][usize::try_from((days + 6) % 7).unwrap()];
    let channels = format!("channels: {{ day: {{ webhook: '{}' }}, night: {{ webhook: '{}' }} }}\n", day.url, night.url);
    let closed = format!("{{ hours: {{ days: {later} }}, channels: day }}");
    let folder = folder_with(&[("watch.yaml", &format!("{BOTH_DOWN}{channels}routes: [{closed}]\n"))]);
    let once = || run(folder.path(), &["watch", "watch.yaml", "--once"]);
    let checked = run(folder.path(), &["watch", "watch.yaml", "--check"]);
    assert!(checked.stdout.contains(&format!("everything, {later} 00:00-24:00 (UTC): day")), "{}", checked.stdout);
    assert!(checked.stderr.contains("only routes with `hours` match pages of `desk`, and of 1 more"), "{}", checked.stderr);
    assert_eq!(once().code, Some(1));
    assert_eq!((day.kinds(), night.kinds()), (Vec::<String>::new(), Vec::new()));
    // What waits is told by the next route that is open.
    std::fs::write(folder.path().join("watch.yaml"), format!("{BOTH_DOWN}{channels}routes: [{closed}, {{ channels: night }}]\n")).unwrap();
    // What is owed is looked for every few seconds only.
    let begun = std::time::Instant::now();
    while night.kinds().len() < 2 && begun.elapsed() < std::time::Duration::from_secs(60) {
        assert_eq!(once().code, Some(1));
    }
    assert_eq!((day.kinds().len(), night.kinds()), (0, vec!["trigger".to_owned(); 2]));
}
