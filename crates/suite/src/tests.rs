//! What a person who writes a suite sees: the format as it is designed, and every mistake at its place.

use super::plan::{Action, Binding, ExpectedFailure, Listing, Suite};
use super::source::Source;
use super::{Environment, Kept, document, load};
use mcproof_client::{Proxies, Proxy};
use mcproof_protocol::{EraChoice, Transport};
use mcproof_record::Diagnostic;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const SHOP: &str = include_str!("tests/shop.mcproof.yaml");
const TWELVE_MISTAKES: &str = include_str!("tests/twelve_mistakes.mcproof.yaml");

fn environment() -> Environment {
    let variables = [("HOME", "/home/ann"), ("TOKEN", "s3cret")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    Environment { variables: BTreeMap::from(variables), ..Environment::default() }
}

fn read(text: &str) -> Result<Suite, Vec<Diagnostic>> {
    load("s.yaml", text, Path::new("/suites"), &environment())
}

fn render(diagnostics: &[Diagnostic]) -> Vec<String> {
    let line = |diagnostic: &Diagnostic| {
        let place = diagnostic.place.as_ref().unwrap();
        let covered: String = place.text.chars().skip(place.column as usize - 1).take(place.length as usize).collect();
        let hint = diagnostic.hint.as_ref().map(|hint| format!(" | {hint}")).unwrap_or_default();
        format!("{}:{} `{covered}` {}: {}{hint}", place.line, place.column, diagnostic.code, diagnostic.message)
    };
    diagnostics.iter().map(line).collect()
}

#[test]
fn the_designed_suite_is_read() {
    let suite = read(SHOP).unwrap();
    assert_eq!(suite.file, "s.yaml");
    assert_eq!((suite.timeouts.connect, suite.timeouts.request), (Duration::from_secs(5), Duration::from_secs(10)));
    assert!(suite.timeouts.says_connect && suite.timeouts.says_request);
    let silent = crate::plan::Timeouts::default();
    assert!(!silent.says_connect && !silent.says_request);
    let server = &suite.servers["server"];
    assert_eq!((server.era, server.protocol_version.as_deref()), (EraChoice::Auto, None));
    let transports: Vec<Transport> = server.bindings.iter().map(|binding| binding.transport).collect();
    assert_eq!(transports, [Transport::Stdio, Transport::Http, Transport::Sse]);
    let http = &server.bindings[1];
    assert_eq!(http.launch.as_ref().unwrap().command, ["python", "shop.py", "--http", "--port", "${port}"]);
    assert_eq!(http.launch.as_ref().unwrap().folder, Path::new("/suites"));
    assert_eq!(http.url.as_deref(), Some("http://127.0.0.1:${port}/mcp"));
    let names: Vec<&str> = suite.cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["an order reduces the stock", "too large an order is refused", "an unknown tool fails", "the rest of the format"]);

    let steps = &suite.cases[0].steps;
    assert_eq!(steps.len(), 4);
    assert_eq!((steps[1].place.line, steps[1].place.column, steps[1].place.length), (14, 9, 18));
    assert_eq!(steps[1].save[0].0, "order");
    let Action::Call { tool, arguments } = &steps[2].action else { panic!() };
    assert_eq!((tool.as_str(), Value::from(arguments.clone())), ("process_payment", json!({"order_id": "${order}", "amount": 99.99})));
    assert_eq!(steps[3].within.as_ref().unwrap().value, Duration::from_millis(200));
    assert!(matches!(suite.cases[1].steps[0].expect.failure.as_ref().unwrap().value, ExpectedFailure::Tool(Some(_))));
    assert!(matches!(suite.cases[2].steps[0].expect.failure.as_ref().unwrap().value, ExpectedFailure::Either));

    let rest = &suite.cases[3];
    assert_eq!(rest.variables["who"], json!("Ann"));
    assert!(matches!(rest.steps[0].action, Action::Handshake));
    assert!(matches!(rest.steps[1].action, Action::Ping));
    assert!(matches!(rest.steps[2].action, Action::List(Listing::Tools)));
    assert_eq!(rest.steps[3].expect.names.as_ref().unwrap().value, ["check_inventory", "create_order", "process_payment"]);
    assert!(matches!(rest.steps[6].action, Action::List(Listing::ResourceTemplates)));
    assert!(matches!(&rest.steps[7].action, Action::Read { uri } if uri == "shop://orders/Ann"));
    let Action::Prompt { arguments, .. } = &rest.steps[8].action else { panic!() };
    assert_eq!(Value::from(arguments.clone()), json!({"name": "Ann", "deep": 2}));
    assert_eq!(rest.steps[8].timeout, Some(Duration::from_secs(90)));
    let Action::Complete { reference, argument, value, .. } = &rest.steps[10].action else { panic!() };
    assert_eq!((reference, argument.as_str(), value.as_str()), (&json!({"type": "ref/resource", "uri": "shop://orders/{id}"}), "id", ""));
    assert!(matches!(rest.steps[11].expect.failure.as_ref().unwrap().value, ExpectedFailure::Rpc(Some(_))));
}

#[test]
fn twelve_mistakes_in_one_file_are_reported_at_once() {
    let found = render(&read(TWELVE_MISTAKES).unwrap_err());
    assert_eq!(found.len(), 12);
    insta::assert_snapshot!("twelve_mistakes", found.join("\n"));
}

/// The blocks are `### file`, `### step` (the only step of a suite, its second line) or `### server` (the value of `server:`), then
/// the text.
#[test]
fn every_mistake_has_its_diagnostic() {
    insta::assert_snapshot!("mistakes", each_block(include_str!("tests/mistakes.txt"), |text| read(text).expect_err(text)));
}

#[test]
fn what_proves_nothing_is_warned_of() {
    insta::assert_snapshot!("weak", each_block(include_str!("tests/weak.txt"), |text| read(text).unwrap().notices));
}

#[test]
fn a_profile_that_is_not_chosen_is_read_strictly() {
    let suite =
        |profile: &str| format!("server: {{ stdio: x }}\nprofiles: {{ nightly: {profile} }}\ntests: [{{ name: a, steps: [ping] }}]\n");
    let check = |profile: &str, expected: &[&str]| {
        let found = render(&read(&suite(profile)).expect_err(profile));
        assert_eq!(found.len(), expected.len(), "{found:?}");
        found.iter().zip(expected).for_each(|(found, expected)| assert!(found.contains(expected), "{found} does not say {expected}"));
    };
    check("{ timeouts: { requets: 60s } }", &["did you mean `request`?"]);
    check("{ timeouts: { request: soon }, leaks: { repaet: 3 } }", &["`soon`", "`repaet`"]);
    check("{ faults: [{ latenyc: 1ms }], isolation: fiel }", &["`latenyc`", "`fiel`"]);
    check("{ server: { htpt: { url: \"https://x.example/mcp\" } } }", &["did you mean `http`?"]);
    check(
        "{ server: { http: { url: \"https://x.example/mcp\", auth: { bearre: x } } }, retries: -1 }",
        &["did you mean `bearer`?", "expected"],
    );
    for good in [
        "{ server: { http: { url: \"${env.NOT_SET}\", auth: { bearer: \"${env.NOT_SET}\" } } }, timeouts: { request: \"${wait}\" } }",
        "{ leaks: true, retries: 2, retry: { max: 2 }, isolation: file, timeouts: { tools: { a: 1s } }, faults: { latency: 1ms } }",
    ] {
        assert!(read(&suite(good)).is_ok(), "{good}");
    }
}

#[test]
fn a_name_that_is_almost_one_that_is_used_is_warned_of() {
    let steps = "tests: [{ name: a, steps: [{ call: calculate, with: { product_id: 1 }, expect: 1 }] }]\n";
    let told = |more: &str| render(&read(&format!("server: {{ stdio: x }}\n{more}\n{steps}")).unwrap().notices);
    let check = |more: &str, expected: &str| {
        let told = told(more);
        assert!(matches!(told.as_slice(), [only] if only.contains(expected)), "{told:?}");
    };
    check("timeouts: { tools: { calcluate: 1ms } }", "no step calls `calcluate` | did you mean `calculate`?");
    check(
        "audit: { file: a.jsonl, redact: [produkt_id] }",
        "no step has an argument `produkt_id`, whose value is to be redacted | did you mean `product_id`?",
    );
    for used in ["timeouts: { tools: { calculate: 1ms, report: 1s } }", "audit: { file: a.jsonl, redact: [product_id, password] }"] {
        assert_eq!(told(used), [""; 0], "{used}");
    }
}

/// Each would take the file of the other one.
#[test]
fn two_snapshots_of_a_test_have_two_names() {
    let suite = |steps: &str| format!("server: {{ stdio: x }}\ntests:\n  - name: a\n    steps:\n{steps}");
    let two =
        |one: &str, other: &str| suite(&format!("      - {{ call: x, snapshot: {one} }}\n      - {{ call: x, snapshot: {other} }}\n"));
    for (one, other, called) in [("x", "x", "x"), ("\"2\"", "true", "2")] {
        let found = render(&read(&two(one, other)).expect_err("they are the same file"));
        assert!(
            matches!(found.as_slice(), [only] if only.starts_with("6:") && only.contains(&format!("called `{called}` already, in line 5"))),
            "{found:?}"
        );
    }
    for (one, other) in [("x", "y"), ("true", "true"), ("x", "true")] {
        assert!(read(&two(one, other)).is_ok(), "{one}, {other}");
    }
    let rows = "server: { stdio: x }\ntests:\n  - { name: 'a ${n}', rows: [{ n: 1 }, { n: 2 }], steps: [{ call: x, snapshot: x }] }\n  - { name: b, steps: [{ call: x, snapshot: x }] }\n";
    assert!(read(rows).is_ok());
}

fn each_block(blocks: &str, diagnostics: impl Fn(&str) -> Vec<Diagnostic>) -> String {
    let mut table = String::new();
    for block in blocks.split("### ").skip(1) {
        let (kind, written) = block.split_once('\n').unwrap();
        let one_line = written.trim_end_matches('\n');
        let text = match kind {
            "step" => format!("tests: [{{name: a, steps: [\n {one_line}\n]}}]\nserver: {{stdio: x}}\n"),
            "server" => format!("server: {one_line}\ntests: [{{name: a, steps: [ping]}}]\n"),
            _ => format!("{one_line}\n"),
        };
        let found = render(&diagnostics(&text));
        table += &format!("### {kind}\n{one_line}\n===\n{}\n\n", found.join("\n"));
    }
    table
}

#[test]
fn line_endings_and_byte_order_marks_change_nothing() {
    let windows = format!("\u{feff}{}", TWELVE_MISTAKES.replace('\n', "\r\n"));
    assert_eq!(render(&read(&windows).unwrap_err()), render(&read(TWELVE_MISTAKES).unwrap_err()));
    assert!(read(&format!("\u{feff}{}", SHOP.replace('\n', "\r\n"))).is_ok());
}

#[test]
fn anchors_aliases_and_merge_keys_are_understood() {
    let check = |text: &str, expected: Value| {
        let (node, diagnostics) = document::parse(&Source::new("f", text), 0);
        assert_eq!((node.unwrap().to_value(), diagnostics), (expected, vec![]), "{text}");
    };
    check("a: &x {b: 1}\nc: *x\n", json!({"a": {"b": 1}, "c": {"b": 1}}));
    check("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\n", json!({"a": {"b": 1, "c": 2}, "d": {"c": 3, "b": 1}}));
    check("a: &x {b: 1}\ny: &y {b: 2, c: 2}\nd: {<<: [*x, *y]}\n", json!({"a": {"b": 1}, "y": {"b": 2, "c": 2}, "d": {"b": 1, "c": 2}}));
    check("'<<': 1\n", json!({"<<": 1}));
    check("&k key: 1\nother: *k\n", json!({"key": 1, "other": "key"}));
    check("a: !!str 5\nb: '2'\nc: |\n  x\n  y\nd: on\n2: e\n", json!({"a": "5", "b": "2", "c": "x\ny\n", "d": "on", "2": "e"}));
}

#[test]
fn a_small_file_cannot_become_a_large_tree() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let deep = "[".repeat(200) + &"]".repeat(200);
    let block: String = (0..150).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    for (text, code) in [(bomb.as_str(), "too-many-values"), (&deep, "too-deep"), (&block, "too-deep")] {
        let diagnostics = read(text).unwrap_err();
        assert_eq!(diagnostics[0].code, code);
    }
}

#[test]
fn variables_come_from_the_suite_the_test_and_the_command_line() {
    let text = "vars: {host: h, path: '${host}/p', both: suite}\nserver: {http: 'http://${path}', stdio: {command: ['${env.HOME}/x', 1.10], env: {T: '${env.TOKEN}', N: 2, B: true}, cwd: sub}}\ntests:\n  - {name: a, vars: {both: test, list: [1, '${host}']}, steps: [{call: '${both}', with: {list: '${list}', raw: '$${x}'}}]}\n  - {name: b, steps: [{call: '${both}'}]}\n";
    let tools = |suite: &Suite| -> Vec<String> {
        let tool = |action: &Action| if let Action::Call { tool, .. } = action { tool.clone() } else { String::new() };
        suite.cases.iter().map(|case| tool(&case.steps[0].action)).collect()
    };
    let suite = read(text).unwrap();
    assert_eq!(tools(&suite), ["test", "suite"]);
    assert_eq!(suite.cases[0].variables["list"], json!([1, "h"]));
    let bindings = &suite.servers["server"].bindings;
    assert_eq!(bindings[0].url.as_deref(), Some("http://h/p"));
    let launch = bindings[1].launch.as_ref().unwrap();
    assert_eq!(launch.command, ["/home/ann/x", "1.10"]);
    assert_eq!(launch.env, [("T", "s3cret"), ("N", "2"), ("B", "true")].map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(launch.folder, Path::new("/suites"));
    let Action::Call { arguments, .. } = &suite.cases[0].steps[0].action else { panic!() };
    assert_eq!(Value::from(arguments.clone()), json!({"list": [1, "h"], "raw": "$${x}"}));

    let overrides = json!({"host": "other", "both": "line"}).as_object().cloned().unwrap();
    let suite = load("s.yaml", text, Path::new("/suites"), &Environment { overrides, ..environment() }).unwrap();
    assert_eq!(tools(&suite), ["line", "line"]);
    assert_eq!(suite.servers["server"].bindings[0].url.as_deref(), Some("http://other/p"));
}

#[test]
fn a_server_from_the_command_line_takes_the_place_of_the_suites_own() {
    let given = read(SHOP).unwrap().servers["server"].clone();
    let with_server = Environment { server: Some(given), ..environment() };
    let names = |text: &str| -> Result<Vec<String>, Vec<String>> {
        let suite = load("s.yaml", text, Path::new("/suites"), &with_server).map_err(|diagnostics| render(&diagnostics))?;
        Ok(suite.servers.keys().cloned().collect())
    };
    let tests = "tests: [{name: a, steps: [ping]}]\n";
    assert_eq!(names(tests), Ok(vec!["server".into()]));
    assert_eq!(names(&format!("server: {{stdio: '${{env.NOPE}}'}}\n{tests}")), Ok(vec!["server".into()]));
    assert_eq!(names(&format!("servers: {{shop: {{stdio: x}}}}\n{tests}")), Ok(vec!["shop".into()]));
    let refused =
        "1:1 `servers` several-servers: this suite has several servers, so that one from the command line cannot take their place";
    assert_eq!(names(&format!("servers: {{a: {{stdio: x}}, b: {{stdio: y}}}}\n{tests}")), Err(vec![refused.into()]));
}

#[test]
fn a_command_in_place_of_the_suites_keeps_variables_and_folder() {
    type Seen<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>);
    let newer = "server: {stdio: {command: new 2, env: {SET: anew}}}\ntests: [{name: a, steps: [ping]}]\n";
    let mut given = read(newer).unwrap().servers["server"].clone();
    given.bindings[0].launch.as_mut().unwrap().folder = Path::new("/shell").to_owned();
    let check = |kept: Kept, server: &str, expected: Result<Seen<'_>, &str>| {
        let environment = Environment { server: Some(given.clone()), kept, ..environment() };
        let text = format!("{server}\ntests: [{{name: a, steps: [ping]}}]\n");
        let found = load("s.yaml", &text, Path::new("/suites"), &environment).map_err(|diagnostics| diagnostics[0].code.clone());
        let launch = found.map(|suite| suite.servers.values().next().unwrap().bindings[0].launch.clone().unwrap());
        let seen = launch.as_ref().map(|launch| {
            let env: Vec<(&str, &str)> = launch.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let folder = if launch.cwd.is_some() { "/suites" } else { "/shell" };
            assert_eq!((launch.command.join(" ").as_str(), launch.folder.as_path()), ("new 2", Path::new(folder)), "{server}");
            (env, launch.cwd.as_deref())
        });
        assert_eq!(seen.map_err(String::as_str), expected.map(|(env, cwd)| (env.to_vec(), cwd)), "{server}");
    };
    let own = "server: {stdio: {command: '${env.NOPE}', env: {STORE: '${tmp}', SET: '${env.NOPE}', KEY: '${env.TOKEN}'}, cwd: sub}}";
    let env = [("STORE", "${tmp}"), ("KEY", "s3cret"), ("SET", "anew")];
    check(Kept::VariablesAndFolder, own, Ok((&env[..], Some("sub"))));
    check(Kept::Variables, own, Ok((&env[..], None)));
    check(Kept::Nothing, own, Ok((&env[2..], None)));
    check(Kept::Variables, &own.replace("server: {", "servers: {shop: {").replace("}}", "}}}"), Ok((&env[..], None)));
    let http = "server: {http: {command: x, url: 'http://h:${port}', env: {PORT: '${port}', A: b}}}";
    check(Kept::Variables, http, Ok((&[("A", "b"), ("SET", "anew")][..], None)));
    check(Kept::Variables, "server: {stdio: x}", Ok((&env[2..], None)));
    check(Kept::Variables, "server: {http: 'http://h'}", Ok((&env[2..], None)));
    check(Kept::Variables, "server: {stdio: {command: x, env: {A: '${env.NOPE}'}}}", Err("missing-environment-variable"));
    check(Kept::Variables, "server: {stdio: {command: x, env: a}}", Err("wrong-type"));
}

#[test]
fn the_network_of_a_transport_goes_before_that_of_its_server() {
    let text = "server:\n  stdio: x\n  http: {url: 'http://h', proxy: none, limits: {body: 1k}, headers: {Authorization: own}}\n  sse: 'http://h/sse'\n  proxy: 'http://p:1'\n  auth: {bearer: '${env.TOKEN}'}\n  limits: {body: 2k, depth: 9, line: 3k}\n  tls: {insecure: true}\ntests: [{name: a, steps: [tools: [a]]}]\n";
    let suite = read(text).unwrap();
    assert_eq!(render(&suite.notices).len(), 1);
    let [stdio, http, sse] = suite.servers["server"].bindings.as_slice() else { panic!() };
    let limits = |binding: &Binding| (binding.reach.limits.body, binding.reach.limits.depth, binding.reach.limits.line);
    assert_eq!((limits(stdio), limits(http)), ((Some(2048), Some(9), Some(3072)), (Some(1024), Some(9), Some(3072))));
    let proxy = Proxies::Always(Proxy::parse("http://p:1").unwrap());
    assert_eq!((&stdio.reach.proxy, &http.reach.proxy, &sse.reach.proxy), (&None, &Some(Proxies::None), &Some(proxy)));
    let header = |value: &str| vec![("Authorization".to_owned(), value.to_owned())];
    assert_eq!((&stdio.headers, &http.headers, &sse.headers), (&vec![], &header("own"), &header("Bearer s3cret")));
    let unverified = |binding: &Binding| binding.reach.tls.as_ref().is_some_and(|tls| format!("{tls:?}").contains("verification: Off"));
    assert_eq!((unverified(stdio), unverified(http), unverified(sse)), (false, true, true));
}

#[test]
fn a_secret_in_the_file_is_a_warning_and_never_shown() {
    let text = "server: {http: 'http://h', auth: {client_id: a, client_secret: hunter2, scope: a b, issuer: 'https://as'}}\ntests: [{name: a, steps: [tools: [a]]}]\n";
    let suite = read(text).unwrap();
    assert_eq!(render(&suite.notices)[0].split(": ").next(), Some("1:49 `client_secret` literal-secret"));
    assert!(!format!("{suite:?}").contains("hunter2"), "{suite:?}");
    let authorization = suite.servers["server"].bindings[0].reach.authorization.as_ref().unwrap();
    assert_eq!(authorization.scopes.as_deref(), Some(&["a".to_owned(), "b".to_owned()][..]));
    let with_a_mistake = read(&text.replace("steps", "step")).unwrap_err();
    assert!(with_a_mistake.len() > 1 && !format!("{with_a_mistake:?}").contains("hunter2"), "{with_a_mistake:?}");
}

/// Cuts, doubles and replaces parts of good and bad suites: whatever comes out, reading it ends, and never without a reason.
#[test]
fn no_text_makes_the_parser_panic() {
    const PARTS: &[&str] = &[
        "\n", "\t", " ", ":", "- ", "{", "}", "[", "]", "\"", "'", "${", "}", "$", "&a ", "*a", "<<: ", "!t ", "|", ">", "#", "---\n",
        "...", "é", "\u{feff}", "\r", "\u{0}", "🦀", "?", ",", "%", "@", "`", "0x", "1e999", "$regex", "/", "(", "steps", "tests",
        "server", "~",
    ];
    let mut seed: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % (below as u64)).unwrap()
    };
    let broken = include_str!("tests/mistakes.txt");
    for round in 0..4_000 {
        let sample = [SHOP, TWELVE_MISTAKES, broken][round % 3];
        let mut text: Vec<char> = sample.chars().collect();
        if round % 3 == 2 {
            let start = random(text.len());
            text = text[start..(start + 300).min(text.len())].to_vec();
        }
        for _ in 0..=random(6) {
            let at = random(text.len().max(1)).min(text.len());
            let end = (at + random(12)).min(text.len());
            match random(3) {
                0 => drop(text.drain(at..end)),
                1 => drop(text.splice(at..end, PARTS[random(PARTS.len())].chars())),
                _ => {
                    let copy = text[at..end].to_vec();
                    text.splice(at..at, copy);
                }
            }
        }
        let text: String = text.into_iter().collect();
        if let Err(diagnostics) = read(&text) {
            assert!(!diagnostics.is_empty() && diagnostics.iter().all(|diagnostic| diagnostic.place.is_some()), "{text}");
        }
    }
}
