use super::*;
use crate::format::{Described, Shape};
use crate::parse::SUITE;
use crate::{Environment, load};
use mcproof_system::files::link;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the value of a key may touch by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// Nothing: it is said to the server, compared with what came, or counts.
    None,
    /// What is inside of it has keys of its own.
    Inside,
    /// It starts a program.
    Starts,
    /// It names variables that are read or set.
    Variables,
    /// It names a file or folder.
    Path,
    /// It names a host.
    Host,
    /// It makes a host believe whom it should not.
    Trust,
}
use Effect::{Host, Inside, None as Nothing, Path as File, Starts, Trust, Variables as Names};

/// Each key of the format. A new one is put here with what it may touch, and with a suite below that is refused if it touches anything.
const KEYS: &[(&str, &[(&str, Effect)])] = &[
    (
        "a suite",
        &[
            ("server", Inside),
            ("servers", Inside),
            ("timeouts", Inside),
            ("answers", Inside),
            ("validate_output", Nothing),
            ("redact", Nothing),
            ("vars", Nothing),
            ("include", File),
            ("profiles", Inside),
            ("tags", Nothing),
            ("skip_rules", Nothing),
            ("allow_faults", Nothing),
            ("isolation", Nothing),
            ("retries", Inside),
            ("faults", Inside),
            ("retry", Inside),
            ("breaker", Inside),
            ("leaks", Inside),
            ("audit", File),
            ("setup", Inside),
            ("teardown", Inside),
            ("before_each", Inside),
            ("after_each", Inside),
            ("tests", Inside),
        ],
    ),
    (
        "a profile",
        &[
            ("server", Inside),
            ("servers", Inside),
            ("vars", Nothing),
            ("timeouts", Inside),
            ("isolation", Nothing),
            ("retries", Inside),
            ("retry", Inside),
            ("breaker", Inside),
            ("faults", Inside),
            ("leaks", Inside),
            ("tags", Nothing),
        ],
    ),
    (
        "a server",
        &[
            ("stdio", Starts),
            ("http", Host),
            ("sse", Host),
            ("era", Nothing),
            ("protocol_version", Nothing),
            ("tls", Inside),
            ("proxy", Host),
            ("auth", Inside),
            ("limits", Inside),
            ("faults", Inside),
        ],
    ),
    (
        "a transport",
        &[
            ("command", Starts),
            ("url", Host),
            ("env", Names),
            ("cwd", File),
            ("headers", Nothing),
            ("port_from", Nothing),
            ("tls", Inside),
            ("proxy", Host),
            ("auth", Inside),
            ("limits", Inside),
            ("faults", Inside),
        ],
    ),
    ("a command", &[("command", Starts), ("env", Names), ("cwd", File)]),
    ("`tls`", &[("ca", File), ("cert", File), ("key", File), ("insecure", Trust)]),
    (
        "`auth`",
        &[
            ("bearer", Nothing),
            ("client_id", Nothing),
            ("client_secret", Nothing),
            ("client_key", File),
            ("client_key_algorithm", Nothing),
            ("scope", Nothing),
            ("issuer", Host),
        ],
    ),
    (
        "`limits`",
        &[
            ("line", Nothing),
            ("body", Nothing),
            ("event", Nothing),
            ("head", Nothing),
            ("depth", Nothing),
            ("values", Nothing),
            ("transcript", Nothing),
        ],
    ),
    (
        "a fault",
        &[
            ("latency", Nothing),
            ("throttle", Nothing),
            ("drip", Nothing),
            ("cut", Nothing),
            ("list_changes", Nothing),
            ("buffer", Nothing),
            ("idle_cut", Nothing),
            ("end_session", Nothing),
            ("expire_token", Nothing),
            ("status", Nothing),
            ("drop", Nothing),
            ("duplicate", Nothing),
            ("reorder", Nothing),
            ("truncate", Nothing),
            ("reset", Nothing),
            ("jitter", Nothing),
            ("retry_after", Nothing),
            ("to", Nothing),
            ("method", Nothing),
            ("tool", Nothing),
            ("first", Nothing),
            ("every", Nothing),
            ("probability", Nothing),
            ("seed", Nothing),
        ],
    ),
    (
        "`timeouts`",
        &[
            ("connect", Nothing),
            ("request", Nothing),
            ("max", Nothing),
            ("tools", Nothing),
            ("test", Nothing),
            ("shutdown", Nothing),
            ("settle", Nothing),
        ],
    ),
    ("`answers`", &[("roots", File), ("elicitation", Nothing), ("sampling", Nothing), ("tasks", Inside), ("validate", Nothing)]),
    ("`tasks`", &[("takes", Nothing), ("poll_interval", Nothing)]),
    ("`retries`", &[("max", Nothing), ("delay", Nothing)]),
    ("`retry`", &[("max", Nothing), ("delay", Nothing), ("on", Nothing), ("force", Nothing)]),
    ("`breaker`", &[("failures", Nothing), ("open", Nothing)]),
    ("`leaks`", &[("repeat", Nothing), ("fds", Nothing), ("processes", Nothing)]),
    ("`audit`", &[("file", File), ("redact", Nothing)]),
    (
        "`skip_if`",
        &[
            ("env", Names),
            ("no_env", Names),
            ("no_command", File),
            ("os", Nothing),
            ("transport", Nothing),
            ("era", Nothing),
            ("lacks", Nothing),
            ("reason", Nothing),
        ],
    ),
    (
        "a test",
        &[
            ("name", Nothing),
            ("answers", Inside),
            ("validate_output", Nothing),
            ("vars", Nothing),
            ("rows", Nothing),
            ("tags", Nothing),
            ("skip_rules", Nothing),
            ("allow_faults", Nothing),
            ("skip", Nothing),
            ("skip_if", Inside),
            ("only", Nothing),
            ("isolation", Nothing),
            ("retries", Inside),
            ("retry", Inside),
            ("breaker", Inside),
            ("faults", Inside),
            ("leaks", Inside),
            ("timeout", Nothing),
            ("setup", Inside),
            ("steps", Inside),
            ("teardown", Inside),
        ],
    ),
    (
        "a step",
        &[
            ("call", Nothing),
            ("tools", Nothing),
            ("federation", Nothing),
            ("prompts", Nothing),
            ("resources", Nothing),
            ("templates", Nothing),
            ("read", File),
            ("prompt", Nothing),
            ("complete", Inside),
            ("handshake", Nothing),
            ("discover", Nothing),
            ("ping", Nothing),
            ("subscribe", File),
            ("unsubscribe", Nothing),
            ("cancel", Inside),
            ("raw", Nothing),
            ("http", Inside),
            ("send_bytes", Inside),
            ("close_stdin", Nothing),
            ("signal", Nothing),
            ("restart", Nothing),
            ("parallel", Inside),
            ("run", Starts),
            ("with", Nothing),
            ("meta", Nothing),
            ("task", Inside),
            ("answers", Inside),
            ("expect", Nothing),
            ("result", Nothing),
            ("tool_error", Nothing),
            ("rpc_error", Nothing),
            ("fails", Nothing),
            ("no_response", Nothing),
            ("notifications", Nothing),
            ("exited", Inside),
            ("save", Nothing),
            ("times", Nothing),
            ("concurrency", Nothing),
            ("distinct", Nothing),
            ("snapshot", File),
            ("redact", Nothing),
            ("validate_output", Nothing),
            ("within", Nothing),
            ("timeout", Nothing),
            ("max_timeout", Nothing),
            ("retry", Inside),
            ("clashes", Nothing),
            ("server", Nothing),
            ("session", Nothing),
        ],
    ),
    ("a completion", &[("prompt", Nothing), ("resource", File), ("argument", Nothing), ("value", Nothing), ("context", Nothing)]),
    ("a task", &[("ttl", Nothing)]),
    ("a cancellation", &[("call", Nothing), ("with", Nothing), ("after", Nothing), ("reason", Nothing)]),
    // The origin is that of the server, whatever the path says (`an_http_step_stays_at_its_origin` of the command line).
    ("an HTTP request", &[("method", Nothing), ("path", Nothing), ("headers", Nothing), ("body", Nothing), ("session", Nothing)]),
    ("bytes", &[("text", Nothing), ("base64", Nothing)]),
    ("an exit", &[("code", Nothing), ("signal", Nothing), ("within", Nothing)]),
];

/// For each key that touches something, suites that do, by the code with which they are refused. `%` on a line of its own stands for a suite that is allowed.
const ATTACKS: &[(&str, &str, &str, &str)] = &[
    ("a suite", "include", "restricted-path", "include: [../secret.yaml]\n%"),
    ("a suite", "include", "restricted-path", "include: [/etc/hosts]\n%"),
    ("a suite", "include", "restricted-path", "include: [link.yaml]\n%"),
    ("a suite", "audit", "restricted-path", "audit: ../audit.jsonl\n%"),
    ("a suite", "audit", "restricted-path", "audit: link.yaml\n%"),
    ("a suite", "audit", "restricted-path", "audit: dangling\n%"),
    ("a suite", "audit", "restricted-path", "audit: \"${tmp}/../../x\"\n%"),
    ("`audit`", "file", "restricted-path", "audit: { file: outside/audit.jsonl }\n%"),
    ("a server", "stdio", "restricted-command", "server: { stdio: sh -c evil }\ntests: [{ name: a, steps: [ping] }]"),
    ("a server", "http", "restricted-host", "server: { http: \"http://evil.test/mcp\" }\ntests: [{ name: a, steps: [ping] }]"),
    ("a server", "http", "restricted-host", "server: { http: \"http://ok.test@evil.test/mcp\" }\ntests: [{ name: a, steps: [ping] }]"),
    ("a server", "http", "restricted-host", "server: { http: \"http://ok.test.evil.test/mcp\" }\ntests: [{ name: a, steps: [ping] }]"),
    ("a server", "http", "restricted-host", "server: { http: \"http://ok.test:81/mcp\" }\ntests: [{ name: a, steps: [ping] }]"),
    ("a server", "sse", "restricted-host", "server: { sse: \"http://169.254.169.254/mcp\" }\ntests: [{ name: a, steps: [ping] }]"),
    (
        "a server",
        "proxy",
        "restricted-host",
        "server: { http: \"http://ok.test/mcp\", proxy: \"evil.test:3128\" }\ntests: [{ name: a, steps: [ping] }]",
    ),
    ("a transport", "command", "restricted-command", "server: { stdio: { command: [sh, -c, evil] } }\ntests: [{ name: a, steps: [ping] }]"),
    ("a transport", "url", "restricted-host", "server: { http: { url: \"http://evil.test/mcp\" } }\ntests: [{ name: a, steps: [ping] }]"),
    (
        "a transport",
        "url",
        "restricted-host",
        "server: { http: { command: \"ok ${port}\", url: \"http://evil.test:${port}/mcp\" } }\ntests: [{ name: a, steps: [ping] }]",
    ),
    (
        "a transport",
        "url",
        "restricted-host",
        "server: { http: { command: ok server, url: \"http://127.0.0.1:6379/mcp\" } }\ntests: [{ name: a, steps: [ping] }]",
    ),
    (
        "a transport",
        "env",
        "restricted-variable",
        "server: { stdio: { command: ok x, env: { LD_PRELOAD: x.so } } }\ntests: [{ name: a, steps: [ping] }]",
    ),
    ("a transport", "cwd", "restricted-path", "server: { stdio: { command: ok x, cwd: .. } }\ntests: [{ name: a, steps: [ping] }]"),
    ("a transport", "cwd", "restricted-path", "server: { stdio: { command: ok x, cwd: outside } }\ntests: [{ name: a, steps: [ping] }]"),
    (
        "a transport",
        "proxy",
        "restricted-host",
        "server: { http: { url: \"http://ok.test/mcp\", proxy: \"http://evil.test\" } }\ntests: [{ name: a, steps: [ping] }]",
    ),
    (
        "a command",
        "command",
        "restricted-command",
        "server: { http: \"http://ok.test/mcp\" }\ntests: [{ name: a, steps: [{ run: { command: evil } }] }]",
    ),
    (
        "a command",
        "env",
        "restricted-variable",
        "server: { http: \"http://ok.test/mcp\" }\ntests: [{ name: a, steps: [{ run: { command: ok x, env: { PATH: . } } }] }]",
    ),
    (
        "a command",
        "cwd",
        "restricted-path",
        "server: { http: \"http://ok.test/mcp\" }\ntests: [{ name: a, steps: [{ run: { command: ok x, cwd: / } }] }]",
    ),
    ("a step", "run", "restricted-command", "server: { http: \"http://ok.test/mcp\" }\ntests: [{ name: a, steps: [{ run: evil }] }]"),
    (
        "a step",
        "run",
        "restricted-command",
        "server: { http: \"http://ok.test/mcp\" }\nteardown: [{ run: evil }]\ntests: [{ name: a, steps: [ping] }]",
    ),
    (
        "a step",
        "run",
        "restricted-command",
        "server: { http: \"http://ok.test/mcp\" }\ntests: [{ name: a, steps: [{ parallel: [{ run: [\"ok x\"] }] }] }]",
    ),
    (
        "`tls`",
        "ca",
        "restricted-path",
        "server: { http: \"https://ok.test/mcp\", tls: { ca: /etc/hosts } }\ntests: [{ name: a, steps: [ping] }]",
    ),
    (
        "`tls`",
        "cert",
        "restricted-path",
        "server: { http: \"https://ok.test/mcp\", tls: { cert: ../secret.yaml } }\ntests: [{ name: a, steps: [ping] }]",
    ),
    (
        "`tls`",
        "key",
        "restricted-path",
        "server: { http: \"https://ok.test/mcp\", tls: { cert: own.yaml, key: link.yaml } }\ntests: [{ name: a, steps: [ping] }]",
    ),
    (
        "`tls`",
        "insecure",
        "restricted-tls",
        "server: { http: \"https://ok.test/mcp\", tls: { insecure: true } }\ntests: [{ name: a, steps: [ping] }]",
    ),
    (
        "`auth`",
        "client_key",
        "restricted-path",
        "server: { http: \"http://ok.test/mcp\", auth: { client_id: a, client_key: ../secret.yaml } }\ntests: [{ name: a, steps: [ping] }]",
    ),
    (
        "`auth`",
        "issuer",
        "restricted-host",
        "server: { http: \"http://ok.test/mcp\", auth: { client_id: a, client_secret: b, issuer: \"https://evil.test\" } }\ntests: [{ name: a, steps: [ping] }]",
    ),
    ("`answers`", "roots", "restricted-path", "answers: { roots: [\"file:///etc\"] }\n%"),
    ("`answers`", "roots", "restricted-path", "answers: { roots: [\"FILE:///%2e%2e/etc\"] }\n%"),
    (
        "`skip_if`",
        "env",
        "restricted-variable",
        "server: { http: \"http://ok.test/mcp\" }\ntests: [{ name: a, skip_if: { env: SECRET=guess }, steps: [ping] }]",
    ),
    (
        "`skip_if`",
        "no_env",
        "restricted-variable",
        "server: { http: \"http://ok.test/mcp\" }\ntests: [{ name: a, skip_if: { no_env: SECRET }, steps: [ping] }]",
    ),
    (
        "`skip_if`",
        "no_command",
        "restricted-path",
        "server: { http: \"http://ok.test/mcp\" }\ntests: [{ name: a, skip_if: { no_command: /root/.ssh/id_rsa }, steps: [ping] }]",
    ),
    (
        "a step",
        "read",
        "restricted-path",
        "server: { http: \"http://ok.test/mcp\" }\ntests: [{ name: a, steps: [{ read: \"file:///etc/passwd\" }] }]",
    ),
    (
        "a step",
        "subscribe",
        "restricted-path",
        "server: { http: \"http://ok.test/mcp\" }\ntests: [{ name: a, steps: [{ subscribe: \"file:///etc/passwd\" }] }]",
    ),
    (
        "a completion",
        "resource",
        "restricted-path",
        "server: { http: \"http://ok.test/mcp\" }\ntests: [{ name: a, steps: [{ complete: { resource: \"file:///etc/{name}\", argument: name, value: p } }] }]",
    ),
    (
        "a step",
        "snapshot",
        "restricted-path",
        "server: { http: \"http://ok.test/mcp\" }\ntests: [{ name: a, steps: [{ tools: true, snapshot: true }] }]",
    ),
];

const ALLOWED: &str = "server: { http: \"http://ok.test/mcp\" }\ntests: [{ name: a, steps: [ping] }]";

/// A folder with a suite of a stranger, links in it that lead out, and something outside to find.
fn checkout() -> tempfile::TempDir {
    let outer = tempfile::tempdir().unwrap();
    let inner = outer.path().join("checkout");
    std::fs::create_dir_all(inner.join("s.snapshots")).unwrap();
    std::fs::create_dir(outer.path().join("elsewhere")).unwrap();
    for (file, text) in
        [("secret.yaml", "vars: { a: 1 }\n"), ("checkout/own.yaml", "vars: { a: 1 }\n"), ("checkout/steps.yaml", "- ping\n")]
    {
        std::fs::write(outer.path().join(file), text).unwrap();
    }
    link(&outer.path().join("secret.yaml"), &inner.join("link.yaml")).unwrap();
    link(&outer.path().join("not-there"), &inner.join("dangling")).unwrap();
    link(&outer.path().join("elsewhere"), &inner.join("outside")).unwrap();
    link(Path::new("own.yaml"), &inner.join("inner-link.yaml")).unwrap();
    link(&outer.path().join("secret.yaml"), &inner.join("s.snapshots/a-1.json")).unwrap();
    outer
}

fn restricted(folder: &Path) -> Environment {
    let restriction = Restriction {
        folders: vec![Folder::at(folder).unwrap()],
        commands: vec![CommandPattern::parse("ok *").unwrap()],
        variables: Variables::Only(BTreeSet::from(["LISTED".to_owned()])),
        hosts: vec!["ok.test:80".parse().unwrap(), "ok.test:443".parse().unwrap()],
        inherited: vec![("PATH".to_owned(), "/bin".to_owned())],
    };
    let variables = ["SECRET", "LISTED"].map(|name| (name.to_owned(), "value".to_owned()));
    Environment { variables: BTreeMap::from(variables), restriction: Some(Arc::new(restriction)), ..Environment::default() }
}

/// Codes and places of what is refused.
fn refused(text: &str, folder: &Path, environment: &Environment) -> Vec<(String, u32)> {
    let file = folder.join("s.mcproof.yaml");
    match load(&file.display().to_string(), text, folder, environment) {
        Ok(_) => Vec::new(),
        Err(mistakes) => mistakes.into_iter().map(|mistake| (mistake.code, mistake.place.map_or(0, |place| place.line))).collect(),
    }
}

fn walk(object: &dyn Described, seen: &mut BTreeMap<&'static str, Vec<&'static str>>) {
    if seen.contains_key(object.name()) {
        return;
    }
    seen.insert(object.name(), object.keys().iter().map(|(name, ..)| *name).collect());
    for (_, _, shape, _) in object.keys() {
        match shape {
            Shape::Object(inner)
            | Shape::ObjectOrList(inner)
            | Shape::ObjectOrFlag(inner)
            | Shape::ObjectOrNumber(inner)
            | Shape::ObjectOrText(inner)
            | Shape::Objects(inner)
            | Shape::List(inner) => walk(inner, seen),
            _ => {}
        }
    }
}

#[test]
fn each_key_of_the_format_is_classified_and_what_touches_anything_is_refused() {
    let mut seen = BTreeMap::new();
    walk(&SUITE, &mut seen);
    let known: BTreeMap<&str, Vec<&str>> =
        KEYS.iter().map(|(object, keys)| (*object, keys.iter().map(|(name, _)| *name).collect())).collect();
    for (object, keys) in &seen {
        let known: BTreeSet<_> = known.get(object).unwrap_or_else(|| panic!("{object} is not classified: {keys:?}")).iter().collect();
        assert_eq!(keys.iter().collect::<BTreeSet<_>>(), known, "{object}: say in KEYS what each key may touch");
    }
    assert_eq!(seen.len(), known.len(), "KEYS holds what the format does not have");
    for (object, keys) in KEYS {
        for (key, effect) in *keys {
            let attacked = ATTACKS.iter().any(|(of, name, ..)| (of, name) == (object, key));
            let touches = !matches!(effect, Nothing | Inside);
            assert_eq!(attacked, touches, "`{key}` of {object}: a key that touches something has a suite in ATTACKS that is refused");
        }
    }
}

#[test]
fn suites_that_reach_out_are_refused_with_their_place() {
    let outer = checkout();
    let folder = outer.path().join("checkout");
    assert_eq!(refused(ALLOWED, &folder, &restricted(&folder)), []);
    for (object, key, code, text) in ATTACKS {
        let text = text.replace("\n%", &format!("\n{ALLOWED}"));
        let found = refused(&text, &folder, &restricted(&folder));
        assert!(
            found.iter().any(|(known, line)| known == code && *line > 0),
            "`{key}` of {object} is not refused with {code} but {found:?}:\n{text}"
        );
        let freely = Environment { restriction: None, ..restricted(&folder) };
        let found = refused(&text, &folder, &freely);
        assert!(!found.iter().any(|(code, _)| code.starts_with("restricted")), "{found:?}:\n{text}");
    }
}

#[test]
fn what_is_allowed_is_done() {
    let outer = checkout();
    let folder = outer.path().join("checkout");
    for text in [
        "include: [own.yaml, inner-link.yaml]\n%",
        "vars: { a: \"${env.LISTED}\" }\n%",
        "audit: \"${tmp}/audit.jsonl\"\n%",
        "audit: new.jsonl\n%",
        "answers: { roots: [\"https://example.com/\"] }\n%",
        "server: { stdio: { command: ok x, env: { LISTED: y } } }\ntests: [{ name: a, steps: [include: steps.yaml] }]",
        "server: { http: { command: \"ok ${port}\", url: \"http://127.0.0.1:${port}/mcp\" } }\ntests: [{ name: a, steps: [ping] }]",
        "server: { http: \"https://ok.test/mcp\" }\ntests: [{ name: a, steps: [{ run: { command: ok x, cwd: \"${tmp}\" } }] }]",
        // Not chosen, so not read.
        "profiles: { other: { server: { stdio: evil } } }\n%",
    ] {
        let text = text.replace("\n%", &format!("\n{ALLOWED}"));
        assert_eq!(refused(&text, &folder, &restricted(&folder)), [], "{text}");
    }
    let chosen = Environment { profile: Some("other".into()), ..restricted(&folder) };
    let text = format!("profiles: {{ other: {{ server: {{ stdio: evil }} }} }}\n{ALLOWED}");
    assert_eq!(refused(&text, &folder, &chosen), [("restricted-command".to_owned(), 1)]);
}

#[test]
fn only_the_port_of_the_url_is_that_of_the_started_server() {
    let restriction = Restriction::default();
    let check = |url: &str, is_own: bool| {
        assert_eq!((fills_in_port(url), restriction.url(url, UrlOwner::Suite).is_ok()), (is_own, is_own), "{url}");
        assert!(restriction.url(url, UrlOwner::Others).is_err(), "{url}");
    };
    check("http://127.0.0.1:${port}/mcp", true);
    check("https://localhost:${port}?at=${port}", true);
    check("http://[::1]:${port}", true);
    check("http://127.0.0.1:22/?${port}", false);
    check("http://127.0.0.1:22/${port}", false);
    check("http://a:${port}@127.0.0.9:7409/", false);
    check("http://${port}:a@127.0.0.1:7409/", false);
    check("http://${port}@127.0.0.1:${port}/", false);
    check("http://127.0.0.1:22${port}/", false);
    check("http://127.0.0.1:22\\@localhost:${port}/", false);
    check("http:22://127.0.0.1:${port}/", false);
}

#[test]
fn variables_are_refused_wherever_they_are_read() {
    let outer = checkout();
    let folder = outer.path().join("checkout");
    for text in ["vars: { a: \"${env.SECRET}\" }\n%", "vars: { a: \"${env.SECRET:-default}\" }\n%", "tags: [\"x${env.NOT_SET}\"]\n%"] {
        let found = refused(&text.replace("\n%", &format!("\n{ALLOWED}")), &folder, &restricted(&folder));
        assert!(found.contains(&("restricted-variable".to_owned(), 1)), "{text}: {found:?}");
    }
}

#[test]
fn two_commands_are_never_one_line() {
    let check = |words: &[&str], expected: &str| {
        assert_eq!(line(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()), expected);
    };
    check(&["node", "server.js", "--port", "${port}"], "node server.js --port ${port}");
    check(&["node server.js"], "'node server.js'");
    check(&["a", "it's", ""], "a 'it'\\''s' ''");
    let pattern = CommandPattern::parse("node server.js *").unwrap();
    let covers = |words: &[&str]| pattern.covers(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    assert!(covers(&["node", "server.js", "--port", "1"]) && covers(&["node", "server.js", "a/b c\nd"]));
    assert!(!covers(&["node server.js", "x"]) && !covers(&["node", "server.js"]) && !covers(&["sh", "-c", "node server.js x"]));
    assert!(CommandPattern::parse(" ").is_err() && CommandPattern::parse("[").is_err());
}
