//! `mcproof drive`: the real binary, driven over its pipes as a test library does, with demo servers over every transport.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod driver;
mod processes;

use driver::{Driver, MCPROOF};
use processes::is_running;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

fn demo(name: &str, flags: &[&str]) -> Value {
    let words: Vec<&str> = [MCPROOF, "demo", name].into_iter().chain(flags.iter().copied()).collect();
    json!(words)
}

fn inventory(session: &str) -> Value {
    json!({ "session": session, "tool": "check_inventory", "arguments": { "product_id": "PROD-123" } })
}

/// A target for each transport that a server listens on.
fn targets() -> Vec<(&'static str, Value)> {
    let over = |flag: &str, path: &str| json!({ "command": demo("shop", &[flag, "--port", "${port}"]), "url": format!("http://127.0.0.1:${{port}}/{path}") });
    let mut sse = over("--sse", "sse");
    sse["transport"] = json!("sse");
    vec![("stdio", json!({ "command": demo("shop", &[]) })), ("http", over("--http", "mcp")), ("sse", sse)]
}

#[test]
fn a_tool_is_called_over_every_transport() {
    let mut driver = Driver::start();
    for (transport, target) in targets() {
        // Both at once: the call waits until the session is open.
        let open = driver.send("open", json!({ "session": transport, "target": target }));
        let call = driver.send("call", inventory(transport));
        let opened = driver.answer(open);
        assert_eq!(opened["result"]["transport"], transport, "{opened:#}");
        assert!(opened["result"]["pid"].as_u64().is_some());
        let called = driver.answer(call);
        assert_eq!(called["result"]["payload"], json!({ "available": 10, "reserved": 0 }), "{called:#}");
        assert_eq!(called["result"]["is_error"], false);
        assert_eq!(called["result"].get("http").is_some(), transport != "stdio", "{called:#}");
        let closed = driver.result("close", json!({ "session": transport }));
        assert_eq!((&closed["faults"], closed["left_behind"].as_array().unwrap().len()), (&json!([]), 0), "{closed:#}");
        assert!(closed["exit"].is_object());
        // It is gone, and its transcript is not.
        assert_eq!(driver.error("call", inventory(transport))["data"]["kind"], "gone");
        let text = driver.result("transcript", json!({ "session": transport, "frames": false }))["text"].clone();
        assert!(text.as_str().unwrap().contains(" tools/call #"), "{text}");
    }
    assert_eq!(driver.end(), Some(0));
}

#[test]
fn a_hundred_calls_in_flight_do_not_mix() {
    let mut driver = Driver::start();
    driver.result("open", json!({ "session": "s", "target": { "command": demo("tracker", &[]) } }));
    let echo = |word: String| json!({ "session": "s", "tool": "echo", "arguments": { "message": word } });
    let sent: Vec<(u64, String)> =
        (0..100).map(|number| format!("word-{number}")).map(|word| (driver.send("call", echo(word.clone())), word)).collect();
    for (id, word) in sent {
        let answer = driver.answer(id);
        assert!(answer["result"]["text"].as_str().unwrap().contains(&word), "{word}: {answer:#}");
    }
}

#[test]
fn what_goes_wrong_is_told_with_the_wire() {
    let mut driver = Driver::start();
    driver.result("open", json!({ "session": "s", "target": { "command": demo("shop", &[]) } }));
    let refused = driver.error("call", json!({ "session": "s", "tool": "nope" }));
    assert_eq!((&refused["code"], &refused["data"]["kind"]), (&json!(3), &json!("refused")));
    assert_eq!(refused["data"]["error"]["code"], -32602);
    assert!(refused["data"]["text"].as_str().unwrap().contains("→ tools/call"), "{refused:#}");
    let order = |raise: bool| json!({ "session": "s", "tool": "create_order", "arguments": { "product_id": "PROD-123", "quantity": 999 }, "raise_errors": raise });
    let called = driver.result("call", order(false));
    assert_eq!(called["is_error"], true);
    let raised = driver.error("call", order(true));
    assert_eq!(raised["data"]["result"]["isError"], true, "{raised:#}");
    let unopened = driver.error("open", json!({ "session": "x", "target": { "command": ["sh", "-c", "echo no database >&2; exit 3"] } }));
    assert_eq!((&unopened["code"], &unopened["data"]["diagnostic"]["code"]), (&json!(1), &json!("server-exited")));
    assert!(unopened["data"]["text"].as_str().unwrap().contains("no database"), "{unopened:#}");
    let silent = json!({ "session": "y", "target": { "command": ["sleep", "60"] }, "era": "legacy", "timeouts": { "connect_ms": 200 } });
    let diagnostic = driver.error("open", silent)["data"]["diagnostic"].clone();
    // The next step is in the words of this protocol.
    assert_eq!(
        (&diagnostic["code"], &diagnostic["hint"]),
        (&json!("no-response"), &json!("raise `timeouts.connect_ms` if the server starts slowly"))
    );
    let endless = json!({ "session": "w", "target": { "command": ["sleep", "60"] }, "timeouts": { "connect_ms": 0 } });
    let refused = driver.error("open", endless);
    assert_eq!(
        (&refused["data"]["kind"], &refused["message"]),
        (&json!("bad-input"), &json!("`timeouts.connect_ms` must be a number of milliseconds above zero, found 0"))
    );
    // One that dies answers what is in flight, and is told of.
    let died = "read line; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"serverInfo\":{\"name\":\"n\",\"version\":\"1\"}}}'; read line; read line; exit 7";
    driver.result("open", json!({ "session": "z", "target": { "command": ["sh", "-c", died] }, "era": "legacy" }));
    assert_eq!(driver.error("call", json!({ "session": "z", "tool": "t" }))["data"]["kind"], "unanswered");
    assert_eq!(driver.told("session/ended")["params"]["exit"]["code"], 7);
}

/// A legacy server in a shell that says its token wherever a server says anything.
const INDISCREET: &str = r#"
say() { printf '%s\n' "$1"; }
read -r line; say '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"instructions":"use '$TOKEN'","serverInfo":{"name":"n","version":"1"}}}'
read -r line; say '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"'$TOKEN'"}}'
read -r line; say '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"token\":\"'$TOKEN'\"}"}]}}'
read -r line; say '{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"no '$TOKEN'","data":["'$TOKEN'"]}}'
read -r line; say '{"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"'$TOKEN'","inputSchema":{"type":"object"}}]}}'
read -r line; echo "goodbye $TOKEN" >&2; exit 3
"#;
const TOKEN: &str = "s3cr3t-t0k3n-value";

#[test]
fn no_answer_and_no_diagnostic_tells_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.json");
    for shows in [false, true] {
        let mut driver = Driver::start();
        let target = json!({ "command": ["sh", "-c", INDISCREET], "env": { "TOKEN": TOKEN } });
        let opened = driver.result("open", json!({ "session": "s", "target": target, "era": "legacy", "show_secrets": shows }));
        let call = json!({ "session": "s", "tool": "t" });
        let called = driver.result("call", call.clone());
        let refused = driver.error("call", call.clone());
        let listed = driver.result("list", json!({ "session": "s", "what": "tools" }));
        let ended = driver.error("call", call);
        let notified = driver.told("session/notification");
        // What the server said is as it was sent where that is wanted.
        let said = [&opened["instructions"], &called, &refused["data"]["error"], &listed["items"], &notified["params"]];
        for said in said {
            assert_eq!((said.to_string().contains(TOKEN), said.to_string().contains("[redacted]")), (shows, !shows), "{said:#}");
        }
        // What is said about it never tells.
        let wire = driver.result("transcript", json!({ "session": "s" }));
        let expectation = json!({ "token": TOKEN.to_uppercase() });
        let differs = driver.result("expect", json!({ "expectation": expectation, "value": called["payload"], "session": "s" }));
        assert_eq!(differs["ok"], false);
        let hint = differs["diagnostic"]["hint"].as_str().unwrap_or_default();
        assert!(hint.contains("show_secrets"), "{differs:#}");
        let taken = driver.result("snapshot", json!({ "file": file, "value": called["payload"], "update": true }));
        assert_eq!(taken["state"], if shows { "same" } else { "written" });
        let stored = std::fs::read_to_string(&file).unwrap();
        assert!(stored.contains("[redacted]"), "{stored}");
        let texts = [&refused["message"], &refused["data"]["text"], &refused["data"]["diagnostic"], &ended, &wire, &differs];
        for told in texts.map(ToString::to_string).into_iter().chain([stored]) {
            assert!(!told.contains(TOKEN) && !told.contains(&TOKEN.to_uppercase()), "{told}");
        }
        // A second session knows what was a secret in the first, which is over.
        driver.result("close", json!({ "session": "s" }));
        let unopened =
            driver.error("open", json!({ "session": "x", "target": { "command": ["sh", "-c", format!("echo {TOKEN} >&2; exit 3")] } }));
        assert!(!unopened["message"].to_string().contains(TOKEN), "{unopened:#}");
    }
}

#[test]
fn garbage_is_refused_and_the_drive_goes_on() {
    let mut driver = Driver::start();
    let mut check = |line: &str, code: i64| {
        driver.write(line);
        let answer = driver.line();
        assert_eq!((&answer["error"]["code"], answer.get("result")), (&json!(code), None), "{line}: {answer}");
    };
    check("garbage", -32700);
    check("{\"jsonrpc\":\"2.0\",\"id\":1,", -32700);
    check("[]", -32600);
    check("7", -32600);
    check(r#"{"id":1,"method":"hello"}"#, -32600);
    check(r#"{"jsonrpc":"2.0","id":1}"#, -32600);
    check(r#"{"jsonrpc":"2.0","id":[],"method":"hello"}"#, -32600);
    check(r#"{"jsonrpc":"2.0","id":1,"method":"helo"}"#, -32601);
    check(r#"{"jsonrpc":"2.0","id":1,"method":"hello","params":[]}"#, -32602);
    check(r#"{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":99}}"#, -32602);
    check(r#"{"jsonrpc":"2.0","id":1,"method":"call","params":{"session":"s","tol":"x"}}"#, -32602);
    check(r#"{"jsonrpc":"2.0","id":1,"method":"open","params":{"session":"s","target":{}}}"#, -32602);
    check(r#"{"jsonrpc":"2.0","id":1,"method":"open","params":{"session":"s","target":{"url":"x","relay":"lines"}}}"#, -32602);
    check(r#"{"jsonrpc":"2.0","id":1,"method":"call","params":{"session":"s","tool":"x"}}"#, 5);
    check(r#"{"jsonrpc":"2.0","id":1,"method":"call","params":{"session":"s"}}"#, -32602);
    check(r#"{"jsonrpc":"2.0","id":1,"method":"open","params":{"target":{"relay":"lines"}}}"#, -32602);
    driver.tell("relay/received", json!({ "session": "nobody", "data": "x" }));
    assert_eq!(driver.result("hello", json!({ "protocol": 1 }))["protocol"], 1);
    assert_eq!(driver.result("shutdown", json!({})), json!({}));
    assert_eq!(driver.process.wait().unwrap().code(), Some(0));
}

/// A stdio server that stands for an object in the process of the driver.
struct Object {
    process: Child,
    stdin: ChildStdin,
}

impl Object {
    fn start() -> (Self, BufReader<std::process::ChildStdout>) {
        let words = [MCPROOF, "demo", "shop"];
        let mut process = Command::new(words[0]).args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        (Self { process, stdin }, BufReader::new(stdout))
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_server_in_the_process_of_the_driver_is_relayed() {
    for form in ["lines", "messages"] {
        let mut driver = Driver::start();
        let (mut object, mut stdout) = Object::start();
        let open = driver.send("open", json!({ "session": "r", "target": { "relay": form }, "era": "legacy" }));
        let mut calls = Vec::new();
        let mut relay = |driver: &mut Driver, until: u64| loop {
            let message = driver.find(|message| message["method"] == "relay/write" || message["id"] == until);
            let params = &message["params"];
            match (params.get("message"), params["data"].as_str()) {
                _ if message["id"] == until => return message,
                (Some(sent), None) if form == "messages" => {
                    calls.push(sent["method"].clone());
                    writeln!(object.stdin, "{sent}").unwrap();
                    if sent.get("id").is_none() {
                        continue;
                    }
                }
                (None, Some(data)) if form == "lines" => {
                    object.stdin.write_all(data.as_bytes()).unwrap();
                    if !data.contains("\"id\"") {
                        continue;
                    }
                }
                other => panic!("{other:?}"),
            }
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            if form == "messages" {
                // As it stands: spaces are kept.
                let message = line.trim_end().replacen("{\"jsonrpc\"", "{ \"jsonrpc\"", 1);
                driver.write(&format!(r#"{{"jsonrpc":"2.0","method":"relay/received","params":{{"session":"r","message":{message}}}}}"#));
            } else {
                let (one, two) = line.split_at(7);
                driver.tell("relay/received", json!({ "session": "r", "data": one }));
                driver.tell("relay/received", json!({ "session": "r", "data": two }));
            }
        };
        let opened = relay(&mut driver, open);
        assert_eq!(opened["result"]["transport"], "in-memory", "{opened:#}");
        let call = driver.send("call", inventory("r"));
        assert_eq!(relay(&mut driver, call)["result"]["payload"]["available"], 10);
        let frames = driver.result("transcript", json!({ "session": "r", "text": false }))["frames"].clone();
        let answered = frames.as_array().unwrap().last().unwrap()["body"]["bytes"].as_str().unwrap().to_owned();
        assert!(answered.starts_with(if form == "messages" { "{ \"jsonrpc\"" } else { "{\"jsonrpc\"" }), "{answered}");
        let pending = driver.send("call", inventory("r"));
        driver.told("relay/write");
        driver.tell("relay/closed", json!({ "session": "r", "reason": "the object raised KeyError" }));
        let unanswered = driver.answer(pending);
        assert!(unanswered["error"]["data"]["text"].as_str().unwrap().contains("the object raised KeyError"), "{unanswered:#}");
        let close = driver.send("close", json!({ "session": "r" }));
        assert_eq!(driver.told("relay/end")["params"]["session"], "r");
        assert!(driver.answer(close)["result"].get("exit").is_none());
    }
}

#[test]
fn what_a_server_says_right_after_open_counts() {
    let told = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "method": method, "params": params });
    for form in ["lines", "messages"] {
        for era in ["legacy", "modern", "auto"] {
            let mut driver = Driver::start();
            // In one write, so that all of it is there before the session begins.
            let params = json!({ "session": "r", "target": { "relay": form }, "era": era });
            let open = json!({ "jsonrpc": "2.0", "id": 1, "method": "open", "params": params });
            let words = if form == "lines" { ("data", "Traceback\n") } else { ("message", "Traceback") };
            let last_words = told("relay/received", json!({ "session": "r", (words.0): words.1 }));
            let closed = told("relay/closed", json!({ "session": "r", "reason": "no database" }));
            driver.write(&format!("{open}\n{last_words}\n{closed}"));
            let text = driver.answer(1)["error"]["data"]["text"].as_str().unwrap().to_owned();
            assert!(text.contains("no database") && text.contains("Traceback"), "{form} {era}: {text}");
        }
    }
}

#[test]
fn messages_and_bytes_of_a_relay_do_not_overtake_each_other() {
    let mut driver = Driver::start();
    let open = driver.send("open", json!({ "session": "r", "target": { "relay": "messages" }, "era": "legacy" }));
    let hello = sent(&mut driver);
    let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "n", "version": "1" } });
    reply(&mut driver, &json!({ "jsonrpc": "2.0", "id": hello["id"], "result": result }));
    driver.answer(open);
    let call = json!({ "jsonrpc": "2.0", "id": 70, "method": "call", "params": { "session": "r", "tool": "t" } });
    let raw = |id: u64, bytes: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "raw", "params": { "session": "r", "bytes": bytes } });
    // Of one turn, as all lines of one write.
    driver.write(&format!("{}\n{call}\n{}", raw(71, "{\"raw\":1}\n"), raw(72, "no json\n")));
    let written: Vec<Value> = (0..4).map(|_| driver.told("relay/write")["params"].clone()).collect();
    let shown: Vec<&Value> = written.iter().map(|params| params.get("data").unwrap_or(&params["message"])).collect();
    assert_eq!((&shown[1], &shown[3]), (&&json!({ "raw": 1 }), &&json!("no json\n")), "{shown:?}");
    assert_eq!((&shown[0]["method"], &shown[2]["method"]), (&json!("notifications/initialized"), &json!("tools/call")));
    let note = |number: u64| format!(r#"{{"jsonrpc":"2.0","method":"notifications/{number}"}}"#);
    let received = |params: Value| json!({ "jsonrpc": "2.0", "method": "relay/received", "params": params }).to_string();
    let message = |number: u64| {
        let message: Value = serde_json::from_str(&note(number)).unwrap();
        received(json!({ "session": "r", "message": message }))
    };
    let bytes = |text: &str| received(json!({ "session": "r", "data": text }));
    let second = note(2);
    let (half, rest) = second.split_at(9);
    driver.write(
        &[message(1), bytes(half), bytes(&format!("{rest}\n")), message(3), bytes(&format!("{}\n", note(4))), message(5)].join("\n"),
    );
    for number in 1..=5 {
        assert_eq!(driver.told("session/notification")["params"]["method"], format!("notifications/{number}"));
    }
    let said = driver.result("transcript", json!({ "session": "r", "text": false, "last": 5 }))["frames"].clone();
    let said: Vec<&str> = said.as_array().unwrap().iter().map(|frame| frame["body"]["bytes"].as_str().unwrap()).collect();
    assert_eq!(said, (1..=5).map(note).collect::<Vec<_>>());
}

#[test]
fn a_name_is_free_again_when_its_session_is_closed() {
    let mut driver = Driver::start();
    for _ in 0..2 {
        let open = driver.send("open", json!({ "session": "r", "target": { "relay": "messages" }, "era": "legacy" }));
        driver.told("relay/write");
        // While it is opened.
        driver.result("close", json!({ "session": "r" }));
        assert_eq!(driver.answer(open)["error"]["data"]["diagnostic"]["code"], "session-closed");
    }
}

#[test]
fn lines_that_come_in_pieces_or_by_the_thousand_are_read_and_answered() {
    let mut driver = Driver::start();
    let ask = |driver: &mut Driver, word: &str, cuts: &[usize]| {
        let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "expect", "params": { "expectation": word, "value": word } }).to_string();
        let mut rest = line.as_str();
        for cut in cuts {
            let (piece, after) = rest.split_at(*cut);
            driver.write_bytes(piece.as_bytes());
            rest = after;
        }
        driver.write_bytes(format!("{rest}\r\n\n").as_bytes());
        assert_eq!(driver.line()["result"]["ok"], true);
    };
    ask(&mut driver, "x", &[1, 20]);
    // More than a pipe holds.
    ask(&mut driver, &"long ".repeat(100_000), &[70_000]);
    ask(&mut driver, "y", &[]);
    // Nobody reads the answers until all is asked.
    let ids: Vec<u64> = (0..3000).map(|number| driver.send("expect", json!({ "expectation": number, "value": "x".repeat(100) }))).collect();
    for id in ids {
        assert_eq!(driver.answer(id)["result"]["ok"], false);
    }
    // The last line lacks its line feed.
    driver.write_bytes(br#"{"jsonrpc":"2.0","id":9,"method":"shutdown"}"#);
    assert_eq!(driver.end(), Some(0));
}

/// Plays the server of a relay in messages: what our client sent last.
fn sent(driver: &mut Driver) -> Value {
    driver.told("relay/write")["params"]["message"].clone()
}

fn reply(driver: &mut Driver, message: &Value) {
    driver.tell("relay/received", json!({ "session": "r", "message": message }));
}

#[test]
fn the_driver_is_asked_what_a_server_asks() {
    let form = json!({ "message": "who?", "requestedSchema": { "type": "object", "properties": {} } });
    let given = json!({ "action": "accept", "content": { "name": "anna" } });
    let done = json!({ "resultType": "complete", "content": [{ "type": "text", "text": "done" }] });
    for era in ["legacy", "modern"] {
        let mut driver = Driver::start();
        let answers = json!({ "elicitation": "callback", "sampling": "a sample" });
        let open = driver.send("open", json!({ "session": "r", "target": { "relay": "messages" }, "era": era, "answers": answers }));
        let hello = sent(&mut driver);
        let capabilities =
            hello["params"].get("capabilities").unwrap_or_else(|| &hello["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]);
        assert!(capabilities.get("elicitation").is_some() && capabilities.get("roots").is_none(), "{hello:#}");
        let result = json!({
            "protocolVersion": "2025-11-25", "supportedVersions": ["2026-07-28"], "resultType": "complete",
            "capabilities": {}, "serverInfo": { "name": "n", "version": "1" },
        });
        reply(&mut driver, &json!({ "jsonrpc": "2.0", "id": hello["id"], "result": result }));
        driver.answer(open);
        let call = driver.send("call", json!({ "session": "r", "tool": "t" }));
        let first = driver.find(|message| message["params"]["message"]["method"] == "tools/call")["params"]["message"].clone();
        if era == "legacy" {
            reply(&mut driver, &json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": form }));
        } else {
            let wanted =
                json!({ "resultType": "input_required", "inputRequests": { "q": { "method": "elicitation/create", "params": form } } });
            reply(&mut driver, &json!({ "jsonrpc": "2.0", "id": first["id"], "result": wanted }));
        }
        let asked = driver.told("session/ask");
        assert_eq!((&asked["params"]["method"], &asked["params"]["params"]), (&json!("elicitation/create"), &form), "{asked:#}");
        driver.write(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": given }).to_string());
        if era == "legacy" {
            let answered = driver.find(|message| message["params"]["message"]["id"] == "q")["params"]["message"].clone();
            assert_eq!(answered["result"], given);
            reply(&mut driver, &json!({ "jsonrpc": "2.0", "id": first["id"], "result": done }));
        } else {
            let again = sent(&mut driver);
            assert_eq!(again["params"]["inputResponses"]["q"], given, "{again:#}");
            reply(&mut driver, &json!({ "jsonrpc": "2.0", "id": again["id"], "result": done }));
        }
        assert_eq!(driver.answer(call)["result"]["text"], "done");
    }
}

#[test]
fn values_are_held_against_expectations() {
    let mut driver = Driver::start();
    driver.result("open", json!({ "session": "s", "target": { "command": demo("shop", &[]) } }));
    driver.result("call", inventory("s"));
    let ok = driver.result("expect", json!({ "expectation": { "id": { "$regex": "^ORD-" } }, "value": { "id": "ORD-1", "other": 1 } }));
    assert_eq!(ok, json!({ "ok": true }));
    let found = driver.result("expect", json!({ "expectation": { "a": [1, { "$gte": 3 }] }, "value": { "a": [1, 2] }, "session": "s" }));
    assert_eq!((&found["ok"], &found["differences"][0]["path"]), (&json!(false), &json!("a[1]")));
    let text = found["text"].as_str().unwrap();
    assert!(text.contains("at least 3") && text.contains("check_inventory"), "{text}");
    let mistake = driver.error("expect", json!({ "expectation": { "$regx": "x" }, "value": 1 }));
    assert!(mistake["data"]["text"].as_str().unwrap().contains("did you mean `$regex`?"), "{mistake:#}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.json");
    let mut state = |value: Value, update: bool| {
        let found = driver.result("snapshot", json!({ "file": file, "value": value, "update": update, "redact": ["uuid", "$.t"] }));
        found["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(state(json!({ "a": 1, "t": 1 }), false), "new");
    assert_eq!(state(json!({ "a": 1, "t": 1 }), true), "written");
    assert_eq!(state(json!({ "a": 1, "t": 2 }), false), "same");
    assert_eq!(state(json!({ "a": 2, "t": 2 }), false), "differs");
}

#[test]
fn contracts_and_rules_are_judged() {
    let mut driver = Driver::start();
    driver.result("open", json!({ "session": "s", "target": { "command": demo("shop", &[]) } }));
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("mcproof.lock");
    let locked = Command::new(MCPROOF).args(["lock", "--output"]).arg(&lock).args(["--", MCPROOF, "demo", "shop"]).output().unwrap();
    assert!(locked.status.success(), "{locked:?}");
    let kept = driver.result("diff", json!({ "session": "s", "lock": lock }));
    assert_eq!(kept["ok"], true, "{kept:#}");
    let contract = driver.result("contract", json!({ "session": "s" }));
    assert_eq!(contract["hashes"], driver.result("hash", json!({ "session": "s" })));
    driver.result("open", json!({ "session": "t", "target": { "command": demo("tracker", &[]) } }));
    let broken = driver.result("diff", json!({ "session": "t", "lock": lock, "deny": "breaking" }));
    assert_eq!(broken["ok"], false);
    assert!(broken["text"].as_str().unwrap().contains("create_order"), "{broken:#}");
    driver.result("call", inventory("s"));
    let judged = driver.result("check", json!({ "session": "s" }));
    assert_eq!((&judged["ok"], &judged["findings"]), (&json!(true), &json!([])), "{}", judged["text"]);
    let noisy = json!({ "command": ["sh", "-c", format!("echo noise; exec {MCPROOF} demo shop")] });
    let found = driver.result("check", json!({ "target": noisy, "only": ["stdio"] }));
    assert_eq!(found["ok"], false, "{}", found["text"]);
    let rules: BTreeSet<&str> = found["findings"].as_array().unwrap().iter().map(|finding| finding["rule"].as_str().unwrap()).collect();
    assert!(rules.contains("stdio-only-messages-on-stdout"), "{rules:?}");
}

#[test]
fn a_check_for_hosts_starts_the_server_as_they_do() {
    let mut driver = Driver::start();
    let found =
        driver.result("check", json!({ "target": { "command": demo("shop", &[]) }, "only": ["host-starts-server"], "hosts": true }));
    assert_eq!(
        found["report"]["rules"].as_array().unwrap().iter().find(|rule| rule["rule"] == "host-starts-server").unwrap()["judged"]["verdict"],
        "pass",
        "{}",
        found["text"]
    );
    // What only this environment provides is missing there.
    let script = format!("test \"$PWD\" = / && exit 3; exec {MCPROOF} demo shop");
    let found =
        driver.result("check", json!({ "target": { "command": ["sh", "-c", script] }, "hosts": true, "only": ["host-starts-server"] }));
    let text = found["text"].as_str().unwrap();
    assert!(text.contains("in the environment of a desktop host, the server does not start"), "{text}");
}

#[test]
fn several_sessions_share_a_server_that_was_spawned() {
    let mut driver = Driver::start();
    let spawned = driver.result(
        "spawn",
        json!({ "server": "shop", "command": demo("shop", &["--http", "--port", "${port}"]), "url": "http://127.0.0.1:${port}/mcp" }),
    );
    assert!(spawned["port"].as_u64().is_some() && spawned["pid"].as_u64().is_some(), "{spawned}");
    let chosen = driver.result(
        "spawn",
        json!({ "server": "other", "command": demo("shop", &["--http"]), "url": "http://127.0.0.1:${port}/mcp", "port_from": "listening on .*:(\\d+)/" }),
    );
    assert_ne!(chosen["port"], spawned["port"]);
    for session in ["one", "two"] {
        driver.result("open", json!({ "session": session, "target": { "spawned": "shop" }, "era": "legacy" }));
    }
    let order = json!({ "session": "one", "tool": "create_order", "arguments": { "product_id": "PROD-123", "quantity": 2 } });
    driver.result("call", order);
    assert_eq!(driver.result("call", inventory("two"))["payload"]["available"], 8);
    driver.result("close", json!({ "session": "one" }));
    driver.result("close", json!({ "session": "two" }));
    assert!(driver.result("stop", json!({ "server": "shop" }))["exit"].is_object());
    assert_eq!(driver.error("stop", json!({ "server": "shop" }))["data"]["kind"], "gone");
}

#[test]
fn a_request_is_cancelled_and_progress_is_passed_on() {
    let mut driver = Driver::start();
    driver.result("open", json!({ "session": "s", "target": { "command": demo("shop", &["--slow", "4s"]) }, "era": "legacy" }));
    let call = driver.send("call", json!({ "session": "s", "tool": "long_operation", "arguments": { "id": "1" }, "progress": true }));
    let progress = driver.told("session/progress");
    assert_eq!(progress["params"]["id"], call, "{progress:#}");
    driver.tell("cancel", json!({ "id": call, "reason": "enough" }));
    let cancelled = driver.answer(call);
    assert_eq!((&cancelled["error"]["code"], &cancelled["error"]["data"]["kind"]), (&json!(4), &json!("canceled")));
    let text = driver.result("transcript", json!({ "session": "s" }))["text"].clone();
    assert!(text.as_str().unwrap().contains("enough"), "{text}");
}

#[test]
fn whatever_ends_the_driver_leaves_nothing_behind() {
    // What tells of the end: its pipe, the guardian of a drive that was killed, or that the parent is gone.
    for end in ["pipe", "drive", "parent"] {
        let mut driver = if end == "parent" { Driver::start_below_a_shell() } else { Driver::start() };
        let opened = driver.result("open", json!({ "session": "s", "target": { "command": demo("shop", &[]) } }));
        let url = "http://127.0.0.1:${port}/mcp";
        let spawned =
            driver.result("spawn", json!({ "server": "w", "command": demo("shop", &["--http", "--port", "${port}"]), "url": url }));
        let pids = [opened["pid"].as_u64().unwrap(), spawned["pid"].as_u64().unwrap()];
        assert!(pids.into_iter().all(is_running));
        // Kept: with the shell its stdin stays open.
        let mut kept = None;
        if end == "pipe" {
            assert_eq!(driver.end(), Some(0));
        } else {
            driver.process.kill().unwrap();
            driver.process.wait().unwrap();
            kept = Some(driver);
        }
        for _ in 0..200 {
            if !pids.into_iter().any(is_running) {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(!pids.into_iter().any(is_running), "{end}: a server is left behind");
        drop(kept);
    }
}

#[test]
fn messages_keep_the_published_schema() {
    let output = Command::new(MCPROOF).args(["schema", "drive"]).output().unwrap();
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    let validator =
        |part: &str| jsonschema::validator_for(&json!({ "$ref": schema["properties"][part]["$ref"], "$defs": schema["$defs"] })).unwrap();
    let (requests, results, errors, pushes) = (validator("request"), validator("result"), validator("error"), validator("push"));
    let mut driver = Driver::start();
    let open = json!({ "session": "s", "target": { "command": demo("shop", &[]) }, "push": ["frames", "notifications"] });
    for (method, params) in
        [("hello", json!({ "protocol": 1 })), ("open", open), ("call", inventory("s")), ("transcript", json!({ "session": "s" }))]
    {
        assert!(requests.is_valid(&json!({ "method": method, "params": params })), "{method}");
        let result = driver.result(method, params);
        let told = json!({ "method": method, "result": result });
        assert!(results.is_valid(&told), "{method}: {told:#}");
    }
    for params in [json!({ "session": "s", "tool": "t", "tol": 1 }), json!({ "session": "s" }), json!({ "tool": "t" })] {
        assert!(!requests.is_valid(&json!({ "method": "call", "params": params })), "{params}");
    }
    let error = driver.error("call", json!({ "session": "s", "tool": "nope" }));
    assert!(errors.is_valid(&error["data"]), "{error:#}");
    let push = driver.told("session/frame");
    assert!(pushes.is_valid(&json!({ "method": push["method"], "params": push["params"] })), "{push:#}");
}
