//! The real binary against servers that want authorization: a person with a browser, a machine, and nobody at all. The
//! browser is a script that hands its URL to the test, which goes there as a browser would.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod heard;

use mcproof_testkit::oauth::{self, OauthServers, Wish};
use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const MCPROOF: &str = env!("CARGO_BIN_EXE_mcproof");

/// A user with a folder for everything, and the servers that they talk to.
struct World {
    servers: OauthServers,
    home: TempDir,
}

impl World {
    fn new(wish: Wish) -> Self {
        let (send, receive) = mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                send.send(OauthServers::new(wish).await).unwrap();
                std::future::pending::<()>().await;
            });
        });
        let home = tempfile::tempdir().unwrap();
        let browser = home.path().join("browser");
        fs::write(&browser, format!("#!/bin/sh\nprintf %s \"$1\" > {0}/page.new && mv {0}/page.new {0}/page\n", home.path().display()))
            .unwrap();
        fs::set_permissions(&browser, fs::Permissions::from_mode(0o700)).unwrap();
        Self { servers: receive.recv().unwrap(), home }
    }

    fn url(&self) -> String {
        self.servers.filled("{rs}/mcp")
    }

    fn path(&self, name: &str) -> String {
        self.home.path().join(name).display().to_string()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(MCPROOF);
        command.env_remove("CI").env("XDG_STATE_HOME", self.home.path()).env("BROWSER", self.path("browser"));
        command.args(arguments).current_dir(self.home.path()).stdin(Stdio::null());
        command
    }

    /// Runs where nobody watches.
    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn ping(&self, arguments: &[&str]) -> Output {
        self.run(&[&["ping", &self.url()], arguments].concat())
    }

    /// Goes where the browser was sent, and comes back. Gives what the user reads at last.
    fn consent(&self) -> String {
        let page = self.home.path().join("page");
        let began = Instant::now();
        while !page.exists() {
            assert!(began.elapsed() < Duration::from_secs(20), "no browser was opened");
            thread::sleep(Duration::from_millis(5));
        }
        let url = fs::read_to_string(&page).unwrap();
        fs::remove_file(&page).unwrap();
        let answer = get(&url);
        let back = answer.lines().find_map(|line| line.strip_prefix("location: ")).unwrap();
        get(back)
    }

    fn token_file(&self) -> std::path::PathBuf {
        self.home.path().join("mcproof/auth.json")
    }

    /// No secret that was exchanged stands in any of these texts, nor in any file but the one that is for them.
    #[track_caller]
    fn assert_hidden(&self, texts: &[&str]) {
        let files = fs::read_dir(self.home.path()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        let files: Vec<String> = files.map(|path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()).collect();
        let secrets = self.servers.secrets();
        assert!(!secrets.is_empty());
        for text in texts.iter().copied().chain(files.iter().map(String::as_str)) {
            for secret in &secrets {
                assert!(!OauthServers::tells(text, secret), "{secret} in {text}");
            }
        }
    }
}

/// A process whose stderr is a terminal.
struct AtTerminal {
    child: Child,
    screen: JoinHandle<String>,
}

impl AtTerminal {
    fn start(mut command: Command) -> Self {
        let pty = openpty(None, None).unwrap();
        command.stderr(Stdio::from(pty.slave)).stdout(Stdio::piped());
        let child = command.spawn().unwrap();
        // Or our end of the terminal would keep it open.
        drop(command);
        let mut master = fs::File::from(pty.master);
        let screen = thread::spawn(move || {
            let mut seen = Vec::new();
            let mut buffer = [0; 4096];
            // The end of a terminal is an error.
            while let Ok(count @ 1..) = master.read(&mut buffer) {
                seen.extend_from_slice(&buffer[..count]);
            }
            String::from_utf8_lossy(&seen).into_owned()
        });
        Self { child, screen }
    }

    fn end(self) -> (Option<i32>, String, String) {
        let output = self.child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), self.screen.join().unwrap())
    }
}

fn get(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    stream.write_all(format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    // The authorization server leaves the connection open.
    while !complete(&answer) {
        match stream.read(&mut buffer).unwrap() {
            0 => break,
            count => answer.extend_from_slice(&buffer[..count]),
        }
    }
    String::from_utf8(answer).unwrap()
}

fn complete(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    head.lines().find_map(|line| line.strip_prefix("content-length: ")).is_some_and(|length| body.len() >= length.parse().unwrap())
}

#[track_caller]
fn check(found: &Output, code: i32, stderr: &[&str]) {
    let (out, err) = (String::from_utf8_lossy(&found.stdout), String::from_utf8_lossy(&found.stderr));
    assert!(found.status.code() == Some(code) && stderr.iter().all(|part| err.contains(part)), "{}\n{out}\n{err}", found.status);
}

fn renewable() -> Wish {
    let token = json!({ "access_token": "{access}", "token_type": "Bearer", "refresh_token": "{refresh}", "expires_in": 3600 });
    Wish { token: (200, token), ..OauthServers::usual() }
}

#[test]
fn a_person_signs_in_once_and_the_token_stays_where_it_belongs() {
    let world = World::new(renewable());
    let url = world.url();
    let run = AtTerminal::start(world.command(&["-v", "ping", &url, "--trace", "trace.json"]));
    let read = world.consent();
    let (code, stdout, screen) = run.end();
    assert!(read.starts_with("HTTP/1.1 200 ") && read.contains("You are signed in."), "{read}");
    assert_eq!(code, Some(0), "{stdout}{screen}");
    assert!(screen.contains("The server requires authorization. If no browser opens, open this page:"), "{screen}");
    assert!(screen.contains("Waiting for the redirect to http://127.0.0.1:"), "{screen}");
    world.assert_hidden(&[&stdout, &screen]);
    assert_eq!(fs::metadata(world.token_file()).unwrap().permissions().mode() & 0o777, 0o600);

    // Later, where nobody is.
    check(&world.ping(&[]), 0, &[]);
    check(&world.ping(&["--stored-auth-only"]), 0, &[]);
    check(&world.ping(&["--use-stored-auth"]), 0, &[]);
    world.servers.revoke();
    let renewed = world.run(&["-v", "inspect", &url, "--method", "ping", "--use-stored-auth", "--trace", "trace.json"]);
    check(&renewed, 0, &["refresh"]);
    check(&world.ping(&["--use-stored-auth"]), 0, &[]);
    assert_eq!((world.servers.count("GET as/authorize"), world.servers.count("POST as/token")), (1, 2));

    let listed = world.run(&["inspect", "--list-stored-auth"]);
    check(&listed, 0, &[]);
    let list: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!((&list["storedServerUrls"], &list["tokens"][0]["clientId"]), (&json!([url]), &json!("registered-at-as")));
    assert_eq!((&list["tokens"][0]["renewable"], &list["tokens"][0]["expired"]), (&json!(true), &json!(false)));
    let texts = [&listed.stdout, &renewed.stderr, &renewed.stdout].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    world.assert_hidden(&texts.each_ref().map(String::as_str));

    check(&world.ping(&["--client-id", "another", "--use-stored-auth"]), 2, &["no stored token for"]);
    check(&world.ping(&["--relogin"]), 3, &["no user can consent: stderr is not a terminal"]);
    check(&world.ping(&["--use-stored-auth"]), 2, &["no stored token for", "sign in once on a terminal"]);
    check(&world.run(&["ping", &url, "--wait-for-auth", "1"]), 2, &["after 1 s"]);
}

#[test]
fn where_nobody_is_no_browser_opens_and_the_way_out_is_named() {
    let world = World::new(renewable());
    let plain = ["server requires authorization: HTTP 401", "--bearer env:NAME", "client-credentials"];
    check(&world.ping(&[]), 3, &plain);
    check(&world.ping(&["--auth", "none"]), 3, &plain);
    check(&world.ping(&["--auth", "code"]), 3, &["no user can consent: stderr is not a terminal"]);
    check(&world.ping(&["--stored-auth-only"]), 3, &["--stored-auth-only prevents a browser login"]);
    let mut command = world.command(&["ping", &world.url(), "--auth", "code"]);
    command.env("CI", "true");
    let (code, _, screen) = AtTerminal::start(command).end();
    assert_eq!(code, Some(3));
    assert!(screen.contains("no user can consent: CI is set"), "{screen}");
    assert_eq!((world.servers.count("POST as/register"), world.servers.count("GET as/authorize")), (0, 0));
}

/// Wants a token, and never responds to any other request than those of MCP.
fn stalling() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while heard::message(&mut reader).is_some_and(|message| message.get("method").is_some()) {
                    stream.write_all(b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\n\r\n").unwrap();
                }
                // Until the client leaves.
                let _ = reader.read(&mut [0]);
            });
        }
    });
    url
}

#[test]
fn a_request_for_metadata_that_gets_no_response_is_named_in_time() {
    let url = stalling();
    let home = tempfile::tempdir().unwrap();
    let run = |flags: &[&str]| {
        let mut command = Command::new(MCPROOF);
        command.env_remove("CI").env("XDG_STATE_HOME", home.path()).args(["tools", &url, "--era", "legacy", "--connect-timeout", "1s"]);
        command.args(flags).stdin(Stdio::null()).output().unwrap()
    };
    let client = ["--auth", "client-credentials", "--client-id", "a", "--client-secret", "b"];
    check(&run(&client), 3, &["/.well-known/oauth-protected-resource/mcp: no response within 1 s"]);
    let shorter = run(&[&client[..], &["--auth-timeout", "300ms"]].concat());
    check(&shorter, 3, &["authorization took longer than 300 ms: no response from http://", "/.well-known/oauth-protected-resource/mcp"]);
    // Nothing is asked where nobody can consent.
    check(&run(&["--auth", "code"]), 3, &["no user can consent: stderr is not a terminal"]);
}

#[test]
fn a_refusal_in_the_browser_is_told_and_ctrl_c_ends_the_wait() {
    let refusing = Wish { redirect: "{redirect_uri}?error=access_denied&state={state}&iss={issuer}", ..renewable() };
    let world = World::new(refusing);
    let run = AtTerminal::start(world.command(&["ping", &world.url()]));
    assert!(world.consent().contains("Sign-in failed"));
    let (code, _, screen) = run.end();
    assert_eq!(code, Some(3));
    assert!(screen.contains("the authorization server refused: `access_denied`"), "{screen}");

    let run = AtTerminal::start(world.command(&["ping", &world.url(), "--callback-url", "http://localhost:0/back"]));
    let began = Instant::now();
    while !world.home.path().join("page").exists() {
        assert!(began.elapsed() < Duration::from_secs(20));
        thread::sleep(Duration::from_millis(5));
    }
    kill(Pid::from_raw(run.child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let (code, _, screen) = run.end();
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.contains("redirect to http://localhost:") && screen.contains("/back"), "{screen}");

    let run = AtTerminal::start(world.command(&["ping", &world.url(), "--auth-timeout", "300ms"]));
    let (code, _, screen) = run.end();
    assert_eq!(code, Some(3));
    assert!(screen.contains("authorization took longer than 300 ms"), "{screen}");
}

#[test]
fn one_waits_for_the_token_that_another_gets() {
    let world = World::new(renewable());
    let mut waiting = world.command(&["ping", &world.url(), "--wait-for-auth", "30"]);
    let waiting = waiting.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let run = AtTerminal::start(world.command(&["ping", &world.url()]));
    world.consent();
    assert_eq!(run.end().0, Some(0));
    check(&waiting.wait_with_output().unwrap(), 0, &[]);
    assert_eq!(world.servers.count("POST as/token"), 1);
}

#[test]
fn a_server_that_lets_anybody_in_is_told_to_whoever_gives_a_token() {
    let home = tempfile::tempdir().unwrap();
    let url = "http://127.0.0.1:${port}/mcp";
    let server = ["--", MCPROOF, "demo", "tracker", "--http", "--port", "${port}"];
    for (flags, warnings) in [(&["--bearer", "env:TOKEN"][..], 1), (&["--header", "Authorization: Basic dTpw"][..], 1), (&[][..], 0)] {
        let mut command = Command::new(MCPROOF);
        command.env("XDG_STATE_HOME", home.path()).env("TOKEN", "nobody-gave-this-out").current_dir(home.path()).stdin(Stdio::null());
        let ran = command.args([&["check", url, "--only", "invalid-token-gets-401"], flags, &server].concat()).output().unwrap();
        let told = String::from_utf8_lossy(&ran.stdout).into_owned();
        let is_told = told.contains("credentials were given, but a request without any got a result");
        assert!(is_told == (warnings > 0) && told.contains(&format!("0 failures, {warnings} warning")), "{flags:?}: {told}");
    }
}

#[test]
fn a_client_that_is_refused_is_to_check_its_secret() {
    let world = World::new(Wish { token: (401, serde_json::json!({ "error": "invalid_client" })), ..OauthServers::usual() });
    let ran = world.ping(&["--auth", "client-credentials", "--client-id", "me", "--client-secret", "env:HOME"]);
    check(&ran, 3, &["issued no token: `invalid_client`", "does not accept the client: check --client-id and"]);
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert!(!stderr.contains("this token") && !stderr.contains("rule "), "{stderr}");
}

#[test]
fn a_machine_gets_a_token_for_itself() {
    let world = World::new(OauthServers::usual());
    let (pem, public) = oauth::key_pair();
    fs::write(world.path("secret"), "client secret\n").unwrap();
    let client = ["--auth", "client-credentials", "--client-id", "me"];
    let ping = |arguments: &[&str]| world.ping(&[&client, arguments].concat());
    check(&ping(&["--client-secret", &format!("file:{}", world.path("secret")), "--scope", "a b"]), 0, &[]);
    assert_eq!((world.servers.client_authentication(), world.servers.last("scope")), ("Basic me:client+secret".into(), "a b".into()));
    fs::remove_file(world.path("secret")).unwrap();
    let literal = ping(&["--client-secret", "client secret"]);
    check(&literal, 0, &["warning: --client-secret: other users of this machine can read a secret on the command line"]);
    world.assert_hidden(&[&String::from_utf8_lossy(&literal.stderr)]);
    check(&ping(&["--client-secret", "env:NOT_SET_AT_ALL"]), 2, &["--client-secret: environment variable `NOT_SET_AT_ALL` is not set"]);
    check(&ping(&[]), 2, &["--auth client-credentials requires a client and its credentials", "--client-secret env:NAME"]);
    check(&ping(&["--client-secret", "env:HOME", "--relogin"]), 2, &["`--relogin` cannot be used with --auth client-credentials"]);

    let elsewhere = ["--client-secret", "env:HOME", "--issuer", "https://as.example"];
    let before = world.servers.count("POST as/token");
    check(&ping(&elsewhere), 3, &["the client is registered with https://as.example, but the server now names"]);
    assert_eq!(world.servers.count("POST as/token"), before);

    fs::write(world.path("key.pem"), pem).unwrap();
    let signed = ping(&["--client-key", &world.path("key.pem"), "-v"]);
    check(&signed, 0, &["client_assertion"]);
    let claims = oauth::verified(&world.servers.last("client_assertion"), &public);
    assert_eq!((&claims["iss"], &claims["aud"]), (&json!("me"), &json!(world.servers.filled("{as}"))));
    check(&ping(&["--client-key", &world.path("key.pem"), "--client-key-algorithm", "RS256"]), 2, &["cannot use"]);
    world.assert_hidden(&[&String::from_utf8_lossy(&signed.stderr)]);
    // Nothing of a machine is stored.
    assert!(!world.token_file().exists());
}

#[test]
fn a_token_of_the_user_is_sent_and_never_shown() {
    let world = World::new(OauthServers::usual());
    world.servers.accept("t0ken-of-the-user");
    let mut command = world.command(&["-v", "ping", &world.url(), "--bearer", "env:TOKEN", "--trace", "trace.json"]);
    let found = command.env("TOKEN", "t0ken-of-the-user").output().unwrap();
    check(&found, 0, &["[Authorization: [redacted]]"]);
    let trace = fs::read_to_string(world.path("trace.json")).unwrap();
    assert!(!format!("{trace}{found:?}").contains("t0ken-of-the-user") && !String::from_utf8_lossy(&found.stderr).contains("t0ken"));
    check(&world.ping(&["--bearer", "a b"]), 2, &["--bearer: token contains spaces"]);
    check(&world.ping(&["--bearer", "env:HOME", "--client-id", "x"]), 2, &["cannot be used with"]);
    check(
        &world.ping(&["--bearer", "env:HOME", "--header", "Authorization: x"]),
        2,
        &["`--bearer` cannot be used with an `Authorization` header"],
    );
    check(&world.run(&["ping", "--bearer", "env:HOME", "--", "cat"]), 2, &["`--bearer` requires a URL"]);
}

#[test]
fn stored_tokens_that_cannot_be_read_are_left_alone() {
    let world = World::new(renewable());
    fs::create_dir(world.home.path().join("mcproof")).unwrap();
    fs::write(world.token_file(), "{\"version\": 1, \"tokens\": [\"t0ken").unwrap();
    fs::set_permissions(world.token_file(), fs::Permissions::from_mode(0o600)).unwrap();
    for arguments in [&["ping", &world.url()][..], &["tools", "--list-stored-auth"], &["ping", &world.url(), "--relogin"]] {
        let found = world.run(arguments);
        check(&found, 2, &["invalid JSON at line 1, column", "rm '"]);
        assert!(!String::from_utf8_lossy(&found.stderr).contains("t0ken"));
    }
    assert_eq!(fs::read_to_string(world.token_file()).unwrap(), "{\"version\": 1, \"tokens\": [\"t0ken");
    // Who does not want it does not need it, and who has no place for it neither.
    let mut command = world.command(&["ping", &world.url()]);
    check(&command.env_remove("XDG_STATE_HOME").env_remove("HOME").output().unwrap(), 3, &["HTTP 401"]);
    let mut command = world.command(&["ping", &world.url(), "--use-stored-auth"]);
    check(&command.env_remove("XDG_STATE_HOME").env_remove("HOME").output().unwrap(), 2, &["XDG_STATE_HOME and HOME are not set"]);
    check(&world.ping(&["--auth", "none"]), 3, &["HTTP 401"]);
}

fn suite(world: &World, server: &str) {
    let url = world.url();
    let text = format!("server:\n  http: {{ url: \"{url}\" }}\n{server}tests:\n{}", case("one") + &case("two"));
    fs::write(world.home.path().join("s.mcproof.yaml"), text).unwrap();
}

fn case(name: &str) -> String {
    format!("  - name: {name}\n    steps:\n      - ping\n")
}

#[test]
fn a_suite_is_let_in_by_its_keys_or_by_flags() {
    let world = World::new(renewable());
    let test = |arguments: &[&str]| {
        let mut command = world.command(&[&["test", "--era", "legacy"], arguments].concat());
        command.env("SECRET", "suite-secret").output().unwrap()
    };
    suite(&world, "  auth: { client_id: me, client_secret: \"${env.SECRET}\" }\n");
    let found = test(&["--json"]);
    check(&found, 0, &[]);
    // Its cases share one token.
    assert_eq!((world.servers.client_authentication(), world.servers.count("POST as/token")), ("Basic me:suite-secret".into(), 1));

    suite(&world, "  auth:\n    client_id: me\n    client_secret: suite-secret\n");
    world.servers.revoke();
    let warned = test(&[]);
    check(&warned, 0, &[]);
    for part in ["warning: this file contains a secret in plain text", "5 |     client_secret: ************", "write \"${env.NAME}\""] {
        assert!(text(&warned.stdout).contains(part), "{}", text(&warned.stdout));
    }
    world.assert_hidden_in(&warned);

    world.servers.accept("t0ken-of-the-suite");
    suite(&world, "  auth: { bearer: t0ken-of-the-suite }\n");
    let found = test(&["--json"]);
    check(&found, 0, &[]);
    assert!(text(&found.stdout).contains("\"code\":\"literal-secret\""));
    assert!(!format!("{}{}", text(&found.stdout), text(&found.stderr)).contains("t0ken"));
    world.servers.revoke();
    let refused = test(&["--json"]);
    check(&refused, 3, &[]);
    assert!(text(&refused.stdout).contains("auth: { bearer:") && !text(&refused.stdout).contains("t0ken"), "{}", text(&refused.stdout));

    suite(&world, "");
    let refused = test(&[]);
    assert!(text(&refused.stdout).contains("client_secret:"), "{}", text(&refused.stdout));
    check(&refused, 3, &[]);
    check(&test(&["--auth", "client-credentials", "--client-id", "flag", "--client-secret", "env:SECRET"]), 0, &[]);
    assert_eq!(world.servers.client_authentication(), "Basic flag:suite-secret");
    check(&test(&["--bearer", "env:SECRET"]), 2, &["`--bearer` requires --url"]);
    world.servers.accept("suite-secret");
    check(&test(&["--url", &world.url(), "--bearer", "env:SECRET"]), 0, &[]);
}

#[test]
fn a_suite_uses_what_a_person_got() {
    let world = World::new(renewable());
    suite(&world, "");
    let test = ["test", "--use-stored-auth", "--json"];
    let refused = world.run(&test);
    assert!(text(&refused.stdout).contains("no user can consent: --use-stored-auth prevents a browser login"), "{}", text(&refused.stdout));
    let run = AtTerminal::start(world.command(&["test", "--auth", "code", "--json"]));
    world.consent();
    let (code, stdout, screen) = run.end();
    assert_eq!(code, Some(0), "{stdout}{screen}");
    let found = world.run(&test);
    check(&found, 0, &[]);
    assert_eq!(world.servers.count("GET as/authorize"), 1);
    world.assert_hidden(&[&stdout, &screen, &text(&found.stdout)]);
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl World {
    /// In what was printed; the suite itself holds one.
    #[track_caller]
    fn assert_hidden_in(&self, found: &Output) {
        let printed = text(&found.stdout) + &text(&found.stderr);
        assert!(!printed.contains("suite-secret"), "{printed}");
        for secret in self.servers.secrets() {
            assert!(!OauthServers::tells(&printed, &secret), "{secret} in {printed}");
        }
    }
}

#[test]
fn flags_of_the_inspector_are_taken_or_refused_by_name() {
    let world = World::new(OauthServers::usual());
    let inspect = |flag: &[&str]| world.run(&[&["inspect", &world.url(), "--method", "ping"], flag].concat());
    check(&inspect(&["--print-handoff"]), 2, &["`--print-handoff` is not supported", "--wait-for-auth"]);
    check(&inspect(&["--no-revoke"]), 2, &["`--no-revoke` is not supported", "never revokes tokens"]);
    check(&inspect(&["--client-config", "x"]), 2, &["`--client-config` is not supported"]);
    check(&inspect(&["--callback-url", "http://10.0.0.1/"]), 2, &["on localhost, 127.0.0.1 or [::1]"]);
    check(&inspect(&["--client-metadata-url", "http://me.example/c.json"]), 2, &["expected an https:// URL"]);
    check(&inspect(&["--relogin", "--use-stored-auth"]), 2, &["cannot be used with"]);
    check(&world.run(&["inspect", "--list-stored-auth", "--format", "json"]), 0, &[]);
    check(&world.run(&["inspect", &world.url()]), 2, &["--method"]);
    // Nothing of the folder was touched for that.
    assert!(!Path::new(&world.path("mcproof")).exists());
}
