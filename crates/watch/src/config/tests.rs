//! What a person who writes a configuration sees: the format as it is documented, and every mistake at its place.

use super::*;
use mcproof_record::Diagnostic;
use mcproof_suite::Environment;
use mcproof_suite::habits::habits_of;
use serde_json::{Value, json};
use std::path::Path;

const WHOLE: &str = include_str!("tests/whole.yaml");

fn environment() -> Environment {
    let variables = [
        ("TOKEN", "s3cret"),
        ("TENANT", "blue"),
        ("PAGERDUTY_KEY", "pd-key"),
        ("JIRA_KEY", "jira-key"),
        ("SLACK_URL", "https://hooks.example.com/services/abc"),
        ("HOOK_SECRET", "hook-secret"),
        ("SEAL_KEY", "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"),
        ("DASHBOARD_TOKEN", "a-dashboard-token"),
        ("ANN_TOKEN", "the-token-of-ann"),
        ("SYNC_TOKEN", "the-token-of-the-sync"),
        ("BACKUP_TOKEN", "the-token-of-the-backup"),
        ("OSCAR_TOKEN", "the-token-of-oscar"),
        ("NTFY_TOKEN", "tk_ntfy"),
        ("TELEGRAM_TOKEN", "123:telegram-token"),
        ("MATRIX_TOKEN", "matrix-token"),
        ("PUSHOVER_TOKEN", "pushover-token"),
        ("PUSHOVER_USER", "pushover-user"),
        ("CHAT_URL", "https://chat.example.com/hook?key=chat-key"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Environment { variables: BTreeMap::from(variables), ..Environment::default() }
}

fn read(text: &str) -> Result<Loaded, Vec<Diagnostic>> {
    load("w.yaml", text, &Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config"), &environment())
}

fn render(diagnostics: &[Diagnostic]) -> Vec<String> {
    let line = |diagnostic: &Diagnostic| {
        let place = diagnostic.place.as_ref().unwrap();
        let covered: String = place.text.chars().skip(place.column as usize - 1).take(place.length as usize).collect();
        let severity = format!("{:?}", diagnostic.severity).to_lowercase();
        let hint = diagnostic.hint.as_ref().map(|hint| format!(" | {hint}")).unwrap_or_default();
        format!("{}:{} `{covered}` {severity} {}: {}{hint}", place.line, place.column, diagnostic.code, diagnostic.message)
    };
    diagnostics.iter().map(line).collect()
}

#[test]
fn words_of_other_monitors_get_the_key_that_is_meant() {
    for (words, hint) in habits_of("a target") {
        let is_key = |word: &str| target::TARGET.keys.iter().any(|key| key.name == word);
        assert!(!words.iter().any(|word| is_key(word)), "{words:?}");
        if let Some(suggested) = hint.strip_prefix("did you mean `").and_then(|rest| rest.strip_suffix("`?")) {
            assert!(is_key(suggested), "{hint}");
        }
    }
    let check = |text: &str, expected: &str| {
        let mistakes = read(text).unwrap_err().into_iter().filter(|mistake| mistake.severity == mcproof_record::Severity::Error);
        let hints: Vec<Option<String>> = mistakes.map(|mistake| mistake.hint).collect();
        assert_eq!(hints, [Some(expected.to_owned())], "{text}");
    };
    check("targets: { shop: { http: 'http://h/', interval: 5s } }\n", "did you mean `every`?");
    check("targets: { shop: { http: 'http://h/' } }\nservers: {}\n", "did you mean `targets`?");
    check("targets: { shop: { http: 'http://h/' } }\nalerts: {}\n", "did you mean `channels`?");
}

#[test]
fn every_key_is_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("key.txt"), "key-from-file\n").unwrap();
    let servers = json!({ "mcpServers": {
        "shop": { "command": "never" },
        "files": { "command": "npx", "args": ["-y", "files", "${TENANT}"], "env": { "A": "${NO:-b}" }, "cwd": "sub" },
        "remote": { "type": "sse", "url": "https://remote.example.com/sse", "headers": { "X": "${env.NOT}" } },
    }});
    std::fs::write(folder.path().join("servers.json"), servers.to_string().replace("${env.NOT}", "y")).unwrap();
    let Loaded { config, warnings } = load("w.yaml", WHOLE, folder.path(), &environment()).unwrap();
    assert_eq!(render(&warnings), Vec::<String>::new());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let shown = format!("{config:#?}").replace(&path("").trim_end_matches('/').to_owned(), "FOLDER");
    insta::with_settings!({ filters => vec![(r"(?s)kind: Server\(\n.*?\n            \),\n            every", "kind: Server,\n            every")] }, { insta::assert_snapshot!("whole", shown) });
    for secret in [
        "s3cret",
        "pd-key",
        "jira-key",
        "hooks.example.com",
        "hook-secret",
        "1d1e1f",
        "a-dashboard-token",
        "key-from-file",
        "the-token-of-ann",
        "the-token-of-the-backup",
        "tk_ntfy",
        "telegram-token",
        "matrix-token",
        "pushover-",
        "chat-key",
    ] {
        let shown = shown.lines().filter(|line| line.contains(secret) && !line.contains("Bearer")).collect::<Vec<_>>();
        assert_eq!(shown, Vec::<&str>::new(), "{secret}");
    }
    assert_eq!(config.channels.len(), 19);
    let Some(ChannelSpec::PagerDuty { routing_key, .. }) = config.channels.get("europe") else { panic!() };
    assert_eq!(routing_key, &Secret::new("key-from-file"));
    assert_eq!(config.targets.keys().collect::<Vec<_>>(), ["backup", "files", "other monitor", "remote", "shop", "sync", "tools"]);
}

/// The blocks are `### what they are about`, then a file.
#[test]
fn every_mistake_has_its_diagnostic() {
    let mut table = String::new();
    for block in include_str!("tests/mistakes.txt").split("### ").skip(1) {
        let (about, text) = block.split_once('\n').unwrap();
        let found = read(text).err().unwrap_or_else(|| panic!("{about}: {text}"));
        table += &format!("### {about}\n{}\n===\n{}\n\n", text.trim_end(), render(&found).join("\n"));
    }
    assert!(!table.contains("a-token-that-is-long-enough\n1"), "{table}");
    insta::assert_snapshot!("mistakes", table);
}

#[test]
fn what_is_odd_is_a_warning() {
    let check = |text: &str, expected: &[&str]| assert_eq!(render(&read(text).unwrap().warnings), expected, "{text}");
    check("targets: { a: { stdio: x } }\nchannels: { chat: { slack: 'env:SLACK_URL' } }\n", &[]);
    check(
        "targets: { a: { stdio: x } }\n",
        &[
            "1:1 `targets: { a: { stdio: x } }` warning no-channels-configured: no alerts are sent: there are no `channels` | add `channels`, unless the dashboard is enough",
        ],
    );
    for empty in ["channels: {}", "channels:"] {
        check(
            &format!("targets: {{ a: {{ stdio: x }} }}\n{empty}\n"),
            &[
                "2:1 `channels` warning no-channels-configured: no alerts are sent: `channels` is empty | add `channels`, unless the dashboard is enough",
            ],
        );
    }
    let told = "targets: { a: { stdio: x, tags: prod }, b: { stdio: x }, c: { stdio: x } }\nchannels: { w: { webhook: 'https://x/' } }\n";
    for empty in ["routes: []", "routes:"] {
        check(
            &format!("{told}{empty}\n"),
            &[
                "3:1 `routes` warning empty-routes: `routes` is empty: as without it, all alerts are sent to all channels | add a route, or remove `routes`",
            ],
        );
    }
    check(&format!("{told}routes: [{{ severities: page, channels: w }}, {{ severities: notify, channels: w }}]\n"), &[]);
    check(
        &format!("{told}routes: [{{ severities: page, channels: w }}]\n"),
        &[
            "3:9 `[{ severities: page, channels: w }]` warning no-matching-route: no route matches incidents of the severity `notify` of `a`, and of 2 more: nobody is told | end `routes` with a route without `severities` and `tags`, unless pages are enough",
        ],
    );
    check(
        &format!("{told}routes: [{{ tags: prd, channels: w }}, {{ channels: w, group_by: 'team-*' }}]\n"),
        &[
            "3:18 `prd` warning unknown-tag: no target of this file has the tag `prd` | did you mean `prod`?",
            "3:63 `'team-*' ` warning unknown-tag: no target of this file has a tag that matches `team-*` | only targets that are added through the API could have it",
        ],
    );
    check(
        &format!("{told}maintenance: [{{ name: m, tags: [prod, test], cron: '0 3 29 2 *', lasts: 1h }}]\n"),
        &[
            "3:39 `test` warning unknown-tag: no target of this file has the tag `test` | only targets that are added through the API could have it",
        ],
    );
    check(
        &format!("{told}status: {{ pages: [{{ path: /status/p, tags: pord }}] }}\n"),
        &["3:44 `pord` warning unknown-tag: no target of this file has the tag `pord` | did you mean `prod`?"],
    );
    check(&format!("{told}routes: [{{ tags: prod, channels: w }}, {{ channels: w }}]\n"), &[]);
    check(
        &format!("{told}routes: [{{ tags: prod, channels: w }}]\n"),
        &[
            "3:9 `[{ tags: prod, channels: w }]` warning no-matching-route: no route matches pages of `b`, and of 1 more: no alert is sent when it fails | end `routes` with a route without `severities` and `tags`",
        ],
    );
    check(
        "listen: 0.0.0.0:7130\n",
        &[
            "1:1 `listen` warning dashboard-without-login: the dashboard is not served at 0.0.0.0:7130, which other machines can reach, without `login` | add `login`, or listen on 127.0.0.1",
        ],
    );
    check("listen: 0.0.0.0:7130\nlogin: { tokens: 'env:DASHBOARD_TOKEN' }\n", &[]);
    let literal = "warning literal-secret: this file contains a secret in plain text | write `env:NAME` and set NAME in the environment of mcproof, or write `file:PATH`";
    check("channels: { a: { pagerduty: abcdefgh } }\n", &[&format!("1:18 `pagerduty` {literal}")]);
    check("channels: { a: { webhook: 'https://ann:pass@x/' } }\n", &[&format!("1:18 `webhook` {literal}")]);
    check("channels: { a: { webhook: 'https://x/' } }\n", &[]);
    check("database: postgres://ann:pass@db/watch\n", &[&format!("1:1 `database` {literal}")]);
    check("database: postgres:///watch\n", &[]);
    let silent = "channels: { w: { webhook: 'https://x/' } }\n";
    // The address of a database, and not what is in it.
    check(&format!("{silent}targets: {{ a: {{ stdio: {{ command: x, env: {{ DATABASE_URL: 'file:dev.db' }} }} }} }}\n"), &[]);
    check(
        &format!("{silent}targets: {{ a: {{ stdio: x, tags: storage }}, b: {{ stdio: x, depends_on: 'tag:storge' }} }}\n"),
        &["2:71 `'tag:storge' ` warning unknown-tag: no target of this file has the tag `storge` | did you mean `tag:storage`?"],
    );
}

#[test]
fn what_could_never_be_told_is_a_mistake() {
    let check = |text: &str, expected: &[&str]| {
        let found = read(&format!("channels: {{ w: {{ webhook: 'https://x/' }} }}\n{text}")).err().unwrap_or_default();
        assert_eq!(render(&found), expected, "{text}");
    };
    let jobs = |one: &str, other: &str| {
        format!("targets:\n  a: {{ push: {{ within: 1h, token: '{one}' }} }}\n  b: {{ push: {{ within: 1h, token: '{other}' }} }}\n")
    };
    check(&jobs("env:BACKUP_TOKEN", "env:SYNC_TOKEN"), &[]);
    for other in ["env:BACKUP_TOKEN", "${env.BACKUP_TOKEN}"] {
        check(
            &jobs("env:BACKUP_TOKEN", other),
            &[&format!(
                "4:35 `'{other}' ` error duplicate-token: this token is that of `a` already | use a token of its own for each job; generate one with `openssl rand -hex 32`"
            )],
        );
    }
    let never =
        "never comes: no month has this day | minute, hour, day of the month, month, weekday; `0 3 L * *` is the last day of each month";
    check(
        "targets: { a: { push: { token: 'env:SYNC_TOKEN', cron: '0 3 31 2 *' } } }\n",
        &[&format!("2:56 `'0 3 31 2 *' ` error bad-cron: `0 3 31 2 *` {never}")],
    );
    check(
        "maintenance: [{ name: m, cron: '0 3 31 4,6,9,11 *', lasts: 1h }]\n",
        &[&format!("2:32 `'0 3 31 4,6,9,11 *'` error bad-cron: `0 3 31 4,6,9,11 *` {never}")],
    );
    check("maintenance: [{ name: m, cron: '0 3 29 2 *', lasts: 1h }, { name: n, cron: '0 3 L * *', lasts: 1h }]\n", &[]);
}

#[test]
fn no_place_that_is_shown_tells_a_secret() {
    let text = "channels: { a: { pagerduty: abcdefgh }, b: { slack: 'https://hooks.example.com/services/T0/B0/xyz' }, c: 5 }\nseal_key: 1234567\nlogin: { tokens: [my-secret-token-1] }\ntargets: { t: { http: 'http://x/', auth: { bearer: tok-1234 }, evry: 1 } }\n";
    let mistakes = read(text).unwrap_err();
    assert!(mistakes.len() > 4);
    for secret in ["abcdefgh", "services/T0", "my-secret-token-1", "tok-1234"] {
        let shown = mistakes.iter().find(|mistake| format!("{mistake:?}").contains(secret));
        assert!(shown.is_none(), "{secret}: {shown:?}");
    }
}

#[test]
fn the_first_route_that_fits_is_taken_and_without_routes_all_channels_in_their_order() {
    let config = read(WHOLE.split("import:").next().unwrap()).unwrap().config;
    assert!(config.route(Severity::Page, &[], Moment(0)).is_none());
    let text = "channels: { z: { slack: 'env:SLACK_URL' }, a: { slack: 'env:SLACK_URL' } }\n";
    let check = |routes: &str, severity: Severity, tags: &[&str], expected: Option<&[&str]>| {
        let config = read(&format!("{text}{routes}")).unwrap().config;
        let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
        let found = config.route(severity, &tags, Moment(0)).map(|route| route.channels.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(found.as_deref(), expected, "{routes}");
    };
    check("", Severity::Notify, &[], Some(&["z", "a"]));
    check("routes: []\n", Severity::Notify, &[], Some(&["z", "a"]));
    // What threatens goes where pages go, unless a route names it.
    let routes = "routes: [{ severities: notify, channels: a }, { severities: page, channels: z }]\n";
    check(routes, Severity::Security, &[], Some(&["z"]));
    let routes = "routes: [{ severities: page, channels: z }, { severities: security, channels: a }]\n";
    check(routes, Severity::Security, &[], Some(&["a"]));
    let routes = "routes: [{ severities: page, channels: z }, { severities: security, tags: paid, channels: a }]\n";
    check(routes, Severity::Security, &["free"], Some(&["z"]));
    check(routes, Severity::Notify, &[], None);
    let routes = "routes: [{ severities: page, tags: paid, channels: z }, { severities: [security, page], channels: a }]\n";
    check(routes, Severity::Page, &["paid"], Some(&["z"]));
    check(routes, Severity::Page, &["free"], Some(&["a"]));
    check(routes, Severity::Security, &["paid"], Some(&["a"]));
    check(routes, Severity::Notify, &["paid"], None);
}

#[test]
fn what_an_imported_file_cannot_be() {
    let check = |file: &str, expected: &str| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("s.json"), file).unwrap();
        let found = load("w.yaml", "import: s.json\n", folder.path(), &environment()).unwrap_err();
        assert_eq!(found[0].message, expected, "{file}");
        assert_eq!(found[0].place.as_ref().map(|place| (place.line, place.column)), Some((1, 9)));
    };
    check("{", "`s.json` is not valid JSON: EOF while parsing an object at line 1 column 1");
    check("{}", "`s.json` has no `mcpServers`");
    check(r#"{"mcpServers":{"a":{}}}"#, "the server `a` of `s.json` has neither `command` nor `url`");
    check(r#"{"mcpServers":{"a":{"command":"x","url":"y"}}}"#, "the server `a` of `s.json` has both `command` and `url`");
    check(
        r#"{"mcpServers":{"a":{"command":"x","type":"ws"}}}"#,
        "the server `a` of `s.json` has the unknown type `ws`; types are stdio, http and sse",
    );
    check(r#"{"mcpServers":{"a":{"command":"${NOPE}"}}}"#, "the server `a` of `s.json` uses `${NOPE}`, which is not set");
    check(r#"{"mcpServers":{"a":{"url":"ws://x"}}}"#, "this is not an HTTP URL");
}

#[test]
fn servers_that_are_disabled_in_an_imported_file_are_left_out() {
    let servers = json!({ "mcpServers": {
        "shop": { "command": "x" },
        "old": { "command": "${NOT_SET}", "disabled": true },
        "off": { "url": "https://x/", "enabled": false },
        "on": { "url": "https://x/", "enabled": true, "disabled": false },
        "own": { "command": "x", "disabled": true },
    }});
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.json"), servers.to_string()).unwrap();
    let text = "import: s.json\nchannels: { w: { webhook: 'https://x/' } }\ntargets: { own: { stdio: y } }\n";
    let Loaded { config, warnings } = load("w.yaml", text, folder.path(), &environment()).unwrap();
    assert_eq!(config.targets.keys().collect::<Vec<_>>(), ["on", "own", "shop"]);
    let hint = "enable it there, or add it to `targets`";
    assert_eq!(
        render(&warnings),
        [
            format!(
                "1:9 `s.json` note server-disabled: the server `old` of `s.json` has `disabled: true`, so it is not monitored | {hint}"
            ),
            format!(
                "1:9 `s.json` note server-disabled: the server `off` of `s.json` has `enabled: false`, so it is not monitored | {hint}"
            ),
        ]
    );
}

#[test]
fn a_configuration_is_made_of_its_imports_and_of_the_files_with_its_secrets() {
    let check = |text: &str, expected: &[&str]| {
        let expected: Vec<_> = expected.iter().map(|path| Path::new("/etc/w").join(path)).collect();
        assert_eq!(files_of("w.yaml", text, Path::new("/etc/w"), &environment()), expected, "{text}");
    };
    check("import: s.json\n", &["s.json"]);
    check("vars: { dir: /srv }\nimport: ['${dir}/a.json', b.json]\nlisten: nonsense\n", &["/srv/a.json", "b.json"]);
    check("channels: { a: { slack: 'file:url.txt' }, b: { slack: 'env:SLACK_URL' } }\n", &["url.txt"]);
    check("targets: { a: { stdio: x } }\n", &[]);
    check("- a\n", &[]);
}

#[test]
fn a_file_that_is_no_yaml_still_names_its_database_where_that_is_certain() {
    let check = |text: &str, expected: Option<&str>| {
        let found = database_of_broken("w.yaml", text, Path::new("/etc/w"), &environment());
        assert_eq!(found.as_deref(), expected, "{text}");
    };
    check("# database: x\ntargets:\n  database: { stdio: x }\n  x: [\n", Some("sqlite:/etc/w/w.db"));
    check("targets: {\ndatabase: 'sqlite:/var/w.db'\n", Some("sqlite:/var/w.db"));
    check("database: sqlite:a.db\ndatabase: sqlite:b.db\n x: [\n", None);
    check("database: 'sqlite:${dir}/a.db'\nvars: { dir: /srv }\n x: [\n", None);
    check("\"database\": sqlite:a.db\nx: [\n", None);
    check("{ database: sqlite:a.db, x: [\n", None);
    check(" database: sqlite:a.db\n x: [\n", None);
    assert_eq!(targets_of("w.yaml", "targets: { a: { evry: 5 }, b: 7 }\nlisten: nonsense\n"), ["a", "b"]);
    assert_eq!(targets_of("w.yaml", "targets: 5\n"), [""; 0]);
}

#[test]
fn the_examples_of_the_guide_are_read_and_it_names_every_key() {
    let guide = include_str!("../../../../docs/guide/monitoring.md");
    let blocks: Vec<&str> = guide.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 4, "{}", blocks.len());
    for block in blocks {
        if let Err(mistakes) = read(block) {
            panic!("{block}\n{:#?}", render(&mistakes));
        }
    }
    let schema = config_schema();
    let own = [
        "a target",
        "a configuration",
        "`defaults`",
        "a route",
        "a step",
        "`flapping`",
        "`login`",
        "a user",
        "`proxy`",
        "a channel",
        "hours",
    ];
    let keys = |object: &Value| object["properties"].as_object().map(|keys| keys.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
    let mut all = keys(&schema);
    for name in own {
        all.extend(keys(&schema["$defs"][name.replace('`', "").trim_start_matches("a ")]));
    }
    all.extend(crate::channel::VARIABLES.map(|(name, _)| format!("| `{name}` |")));
    let unnamed: Vec<String> = all.into_iter().filter(|key| !guide.contains(key.as_str())).collect();
    assert_eq!(unnamed, Vec::<String>::new());
}

#[test]
fn another_monitor_has_a_health_endpoint() {
    for (url, expected) in [("http://a/healthz", 0), ("http://a/-/healthy", 0), ("http://a/", 1), ("http://a", 1), ("http://a/?x", 1)] {
        let text = format!("channels: {{ w: {{ webhook: 'https://x/' }} }}\ntargets: {{ m: {{ monitor: '{url}' }} }}\n");
        let warnings = read(&text).unwrap().warnings;
        assert_eq!(warnings.iter().filter(|warning| warning.code == "no-health-path").count(), expected, "{url}");
    }
}

#[test]
fn the_schema_takes_what_is_right_and_refuses_what_is_not() {
    use mcproof_suite::{document, source::Source};
    let schema = config_schema();
    let validator = jsonschema::draft202012::options().build(&schema).unwrap();
    let value = |text: &str| document::parse(&Source::new("w.yaml", text), 0).0.unwrap().to_value();
    let whole = value(WHOLE);
    let errors: Vec<String> = validator.iter_errors(&whole).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert_eq!(errors, Vec::<String>::new());
    assert!(validator.is_valid(&schema["examples"][0]));
    let mut refused = 0;
    for block in include_str!("tests/mistakes.txt").split("### ").skip(1) {
        let (_, text) = block.split_once('\n').unwrap();
        let codes: Vec<String> = read(text).unwrap_err().into_iter().map(|mistake| mistake.code).collect();
        if codes.iter().any(|code| matches!(code.as_str(), "unknown-key" | "missing-key" | "wrong-type")) && codes[0] != "bad-name" {
            refused += usize::from(!validator.is_valid(&value(text)));
        }
    }
    assert!(refused >= 8, "{refused}");
    let described = schema["$defs"].as_object().unwrap().values().filter_map(|object| object["properties"].as_object()).flatten();
    assert!(described.clone().count() > 60);
    assert!(described.into_iter().all(|(_, property)| property["description"].is_string()));
    assert_eq!(schema["properties"]["targets"]["type"], Value::from("object"));
}
