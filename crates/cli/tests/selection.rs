//! Which tests `mcproof test` runs, in which order, and when it stops: selection, shards, shuffles, reruns, warm starts, watching.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Six tests on two transports; two of them fail.
const SUITE: &str = "\
server:
  stdio: mcproof demo tracker
  http: { command: \"mcproof demo tracker --http --port ${port}\", url: \"http://127.0.0.1:${port}/mcp\" }
tests:
  - name: tools are listed
    steps: [tools: [echo, create_issue, get_issue, list_issues]]
  - name: echo answers
    steps: [{ call: echo, with: { message: hi }, expect: { $text: hi } }]
  - name: echo is (badly) expected
    steps:
      - tools
      - { call: echo, with: { message: hi }, expect: { $text: ho } }
  - name: an unknown tool fails
    steps: [{ call: nope, fails: true }]
  - name: an unknown tool answers
    steps: [{ call: nope, within: 9s }]
  - name: ping
    steps: [{ handshake: , expect: { serverInfo: {} } }]
";

/// A folder of its own for one test, with what the runs in it remember.
struct World {
    folder: tempfile::TempDir,
}

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl World {
    fn new(suite: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("s.mcproof.yaml"), suite).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut mcproof = Command::new(env!("CARGO_BIN_EXE_mcproof"));
        mcproof.current_dir(self.folder.path()).env("XDG_STATE_HOME", self.path(".state")).env_remove("CI").args(arguments);
        mcproof
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let output = self.command(arguments).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The cases that would run, as `name [transport]`.
    fn planned(&self, arguments: &[&str]) -> Vec<String> {
        let ran = self.run(&[&["plan", "--json"], arguments].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let plan: Value = serde_json::from_str(&ran.stdout).unwrap();
        plan["tests"].as_array().unwrap().iter().map(|planned| title(&planned["test"])).collect()
    }
}

fn title(case: &Value) -> String {
    format!("{} [{}]", case["name"].as_str().unwrap(), case["transport"].as_str().unwrap())
}

impl Ran {
    fn events(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn of_kind(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["event"] == kind).collect()
    }
}

#[test]
fn a_selection_takes_what_it_names() {
    let world = World::new(SUITE);
    let check = |arguments: &[&str], expected: &[&str]| assert_eq!(world.planned(arguments), expected, "{arguments:?}");
    check(&["-E", "name(ping)"], &["ping [stdio]", "ping [http]"]);
    check(&["--filter", "name(=ping) & transport(=http)"], &["ping [http]"]);
    check(
        &["-E", "name(=ping) & transport(http)", "-E", "name(/^tools/) and transport(stdio)"],
        &["tools are listed [stdio]", "ping [http]"],
    );
    check(&["-E", "suite(s.mcproof) & server(server) & name(badly)", "--transport", "stdio"], &["echo is (badly) expected [stdio]"]);
    check(&["s.mcproof.yaml::ping", "--transport", "http"], &["ping [http]"]);
    check(&["./s.mcproof.yaml:11", "--transport", "http"], &["echo is (badly) expected [http]"]);
    check(&["s.mcproof.yaml:9", "s.mcproof.yaml::ping", "--transport", "http"], &["echo is (badly) expected [http]", "ping [http]"]);
    assert_eq!(world.planned(&["s.mcproof.yaml:9", "s.mcproof.yaml"]).len(), 12);
    // However it is spelled, it is one file.
    let absolute = world.path("s.mcproof.yaml").display().to_string();
    assert_eq!(world.planned(&["s.mcproof.yaml", "./s.mcproof.yaml", ".", &absolute]).len(), 12);
    check(
        &["./s.mcproof.yaml::ping", &format!("{absolute}:9"), "--transport", "http"],
        &["echo is (badly) expected [http]", "ping [http]"],
    );
    assert_eq!(world.planned(&["--repeat", "3"]).len(), 36);
}

#[test]
fn a_command_that_replaces_the_suites_own_has_its_variables_and_folder() {
    let world = World::new(
        "server: { stdio: { command: x, env: { STORE: \"${tmp}/store\", SET: suite }, cwd: sub } }\ntests: [{ name: a, steps: [ping] }]\n",
    );
    std::fs::create_dir(world.path("sub")).unwrap();
    let script = "echo \"store=$STORE set=$SET folder=$(basename $PWD)\" >&2; exit 3";
    let ran = world.run(&["test", "-e", "SET=typed", "--", "sh", "-c", script]);
    let told = ran.stdout.lines().find(|line| line.trim_start().starts_with("stderr")).unwrap_or(&ran.stdout).to_owned();
    assert!(told.contains("/store set=typed folder=sub") && !told.contains("store=/store"), "{told}");
    let ran = world.run(&["test", "--cwd", ".", "--", "sh", "-c", script]);
    assert!(!ran.stdout.contains("folder=sub"), "{}", ran.stdout);
    assert!(ran.stdout.contains("/store set=suite folder="), "{}", ran.stdout);
}

#[test]
fn nothing_after_the_two_dashes_is_refused() {
    let world = World::new(SUITE);
    for arguments in [&["test", "--"][..], &["plan", ".", "--"], &["tools", "--"], &["check", "--"], &["lock", "--"], &["init", "--"]] {
        let ran = world.run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.stdout);
        assert!(ran.stderr.contains("no command follows `--`"), "{}", ran.stderr);
    }
}

#[test]
fn suites_run_whatever_git_ignores_and_others_are_named() {
    let world = World::new("server: { stdio: mcproof demo shop }\ntests: [{ name: here, steps: [tools] }]\n");
    let text = std::fs::read_to_string(world.path("s.mcproof.yaml")).unwrap();
    for folder in ["build", "node_modules", ".hidden"] {
        std::fs::create_dir(world.path(folder)).unwrap();
        std::fs::write(world.path(folder).join("x.mcproof.yaml"), text.replace("here", folder)).unwrap();
    }
    std::fs::write(world.path(".gitignore"), "build/\n").unwrap();
    assert_eq!(world.planned(&[]), ["build [stdio]", "here [stdio]"]);
    let ran = world.run(&["test"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert!(ran.stderr.contains("warning: the suite `./.hidden/x.mcproof.yaml` is left out; name it to run it"), "{}", ran.stderr);
    assert_eq!(world.planned(&["node_modules"]), ["node_modules [stdio]"]);
    let ran = world.run(&["plan", ".", ".hidden/x.mcproof.yaml"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    // Each folder that is named has to have a suite, also beside others.
    std::fs::create_dir(world.path("billing")).unwrap();
    std::fs::write(world.path("billing").join("s.mcproofs.yaml"), &text).unwrap();
    for arguments in [&["test", "build", "billing"][..], &["plan", "billing", "s.mcproof.yaml"]] {
        let ran = world.run(arguments);
        assert_eq!(ran.code, Some(4), "{arguments:?}: {}", ran.stdout);
        assert!(ran.stderr.contains("no suites found in billing") && ran.stderr.contains("`*.mcproof.yaml`"), "{}", ran.stderr);
    }
    std::fs::remove_file(world.path("s.mcproof.yaml")).unwrap();
    std::fs::remove_dir_all(world.path("build")).unwrap();
    let ran = world.run(&["test"]);
    assert_eq!(ran.code, Some(4));
    assert!(ran.stderr.contains("no suites found in .") && ran.stderr.contains("`./.hidden/x.mcproof.yaml`"), "{}", ran.stderr);
}

#[test]
fn only_is_refused_where_nobody_works_on_a_test() {
    let world = World::new(
        "server: { stdio: mcproof demo shop }\ntests:\n  - { name: a, only: true, steps: [tools] }\n  - { name: b, steps: [tools] }\n",
    );
    let run = |arguments: &[&str]| {
        let output = world.command(arguments).env("CI", "true").output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for verb in ["test", "plan"] {
        let (code, told) = run(&[verb]);
        assert_eq!(code, Some(2), "{told}");
        assert!(told.contains("only 1 of 2 tests of this suite are run, but `CI` is set") && told.contains("--allow-only"), "{told}");
        assert!(told.contains("s.mcproof.yaml:3:"), "{told}");
        assert_eq!(run(&[verb, "--allow-only"]).0, Some(0));
    }
    assert_eq!(world.run(&["test"]).code, Some(0));
}

#[test]
fn what_is_malformed_is_not_shown_as_it_may_be_a_secret() {
    let world = World::new(SUITE);
    let check = |arguments: &[&str], said: &str| {
        let ran = world.run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}");
        assert!(!ran.stderr.contains("s3cret") && ran.stderr.contains(said), "{}", ran.stderr);
    };
    check(
        &["tools", "http://h", "--header", "Authorization=Bearer s3cret"],
        "'Authorization=…' for '--header <NAME: VALUE>': expected 'Authorization: VALUE'",
    );
    check(&["tools", "http://h", "--header", "s3cret"], "expected 'NAME: VALUE'");
    check(&["tools", "http://h", "--header", "Authorization:", "Bearer", "s3cret"], "--header 'Authorization: VALUE'");
    check(&["tools", "-e", "API_KEY s3cret", "--", "true"], "expected 'API_KEY=VALUE'");
    check(&["test", "--url", "http://h", "--header", "Authorization=s3cret"], "expected 'Authorization: VALUE'");
    check(&["test", "-e", "API_KEY s3cret", "--", "true"], "expected 'API_KEY=VALUE'");
    check(&["test", "--var", "password s3cret"], "--var password …: expected NAME=TEXT");
    check(&["test", "--url", "htp://ann:s3cret@h"], "htp://[redacted]@h");
    check(&["tools", "http://ann:s3cret@"], "[redacted]@");
    check(&["tools", "http://h", "--bearer", "env:"], "--bearer: nothing follows the colon");
}

#[test]
fn a_variable_that_no_suite_has_is_told() {
    let world = World::new("server: { stdio: mcproof demo shop }\nvars: { least: 1 }\ntests: [{ name: '${least}', steps: [tools] }]\n");
    let ran = world.run(&["plan", "--var", "leest:=2"]);
    assert!(ran.stderr.contains("no suite has the variable `leest` of --var"), "{}", ran.stderr);
    let ran = world.run(&["plan", "--var", "least:=2"]);
    assert!(ran.code == Some(0) && !ran.stderr.contains("--var"), "{}", ran.stderr);
}

#[test]
fn a_line_takes_the_tests_in_which_it_is() {
    let suite = "\
# A comment.
tests:
  - name: one ${n}
    rows: [{ n: 1 }, { n: 2 }]
    steps:
      - tools

      # Before a step.
      - call: echo
        with:
          message: |-
            several
            lines

  # Before the next test.
  - { name: two, steps: [tools] }
teardown: [tools]
server: { stdio: mcproof demo tracker }
";
    let world = World::new(suite);
    for (line, expected) in suite.lines().enumerate().map(|(index, text)| match index + 1 {
        line @ 3..=13 => (line, &["one 1 [stdio]", "one 2 [stdio]"][..]),
        line if text.contains("name: two") => (line, &["two [stdio]"][..]),
        line => (line, &[][..]),
    }) {
        let place = format!("s.mcproof.yaml:{line}");
        match expected {
            [] => assert_eq!(world.run(&["plan", &place]).code, Some(4), "{place}"),
            _ => assert_eq!(world.planned(&[&place]), expected, "{place}"),
        }
    }
}

#[test]
fn a_selection_of_nothing_is_never_green() {
    let world = World::new(SUITE);
    let check = |arguments: &[&str], code: i32, said: &[&str]| {
        for command in ["plan", "test"] {
            let ran = world.run(&[&[command], arguments].concat());
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{arguments:?}: {}", ran.stderr);
            for part in said {
                assert!(ran.stderr.contains(part), "{part:?} is not in\n{}", ran.stderr);
            }
        }
    };
    check(&["-E", "name(pnig)"], 4, &["none of 12 tests matches the filter", "did you mean `ping`?"]);
    check(&["-E", "tag(smoke)"], 4, &["none of 12 tests", "none has any tag"]);
    check(&["-E", "name(ping) & name(echo)"], 4, &["every condition is met by some test, but all together by none"]);
    check(&["s.mcproof.yaml::pnig"], 4, &["s.mcproof.yaml has no test called `pnig`", "did you mean `ping`?"]);
    check(&["s.mcproof.yaml:2"], 4, &["no test at s.mcproof.yaml:2", "the nearest one is `tools are listed` in"]);
    check(&["s.mcproof.yaml:4"], 4, &["no test at s.mcproof.yaml:4"]);
    check(&["s.mcproof.yaml:19"], 4, &["no test at s.mcproof.yaml:19", "the nearest one is `ping` in lines"]);
    check(&["s.mcproof.yaml:999"], 4, &["no test at s.mcproof.yaml:999", "`ping`"]);
    check(&["--transport", "sse"], 4, &["no test uses a transport"]);
    check(&["nothing.yaml::ping"], 2, &["`nothing.yaml::ping` does not exist"]);
    check(&["--shard", "3/2"], 2, &["the last is 2/2"]);
    // One of several that selects nothing is told, too.
    let ran = world.run(&["test", "-E", "name(=ping)", "-E", "name(pnig)"]);
    assert!(ran.stdout.contains("one of the filters matches no test") && ran.stdout.contains("did you mean `ping`?"), "{}", ran.stdout);
    check(&["-E", "name(ping) & tga(x)"], 2, &["--filter:1:14", "name(ping) & tga(x)", "^^^", "did you mean `tag`?"]);
}

/// Tags of a profile, and `only`, select while a suite is read.
#[test]
fn what_a_suite_selects_by_itself_is_a_selection() {
    let profiles = "profiles: { staging: { tags: [read-only] }, smoke: { tags: [smoke] } }\n";
    let tests = "  - { name: reads, tags: [readonly], steps: [ping] }\n  - { name: writes, tags: [smoke], steps: [ping] }\n";
    let world = World::new(&format!("server: {{ stdio: mcproof demo tracker }}\n{profiles}tests:\n{tests}"));
    let check = |arguments: &[&str], said: &[&str]| {
        for command in ["plan", "test"] {
            let ran = world.run(&[&[command], arguments].concat());
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(4), ""), "{arguments:?}: {}", ran.stderr);
            said.iter().for_each(|part| assert!(ran.stderr.contains(part), "{part:?} is not in\n{}", ran.stderr));
        }
    };
    let none = "the profile `staging` selects none of 2 tests: none has the tag `read-only`";
    for more in [&[][..], &["--repeat", "3"], &["-E", "name(reads)"], &["s.mcproof.yaml::reads"]] {
        check(&[&["--profile", "staging"], more].concat(), &[none, "did you mean `readonly`?"]);
    }
    let ran = world.run(&["plan", "--profile", "smoke"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("1 test, 1 not selected"), "{}{}", ran.stdout, ran.stderr);
    check(
        &["--profile", "smoke", "s.mcproof.yaml::reads"],
        &["`reads` of s.mcproof.yaml is left out, because it has no tag of the profile"],
    );
    // Another suite, from which the profile selects something, does not hide it.
    std::fs::write(
        world.path("t.mcproof.yaml"),
        format!("include: [s.mcproof.yaml]\n{profiles}tests: [{{ name: looks, tags: [read-only], steps: [ping] }}]\n"),
    )
    .unwrap();
    let ran = world.run(&["test", "--profile", "staging"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("the profile `staging` selects no test of ./s.mcproof.yaml"), "{}", ran.stdout);
    std::fs::remove_file(world.path("t.mcproof.yaml")).unwrap();

    let only = tests.replace("name: writes,", "name: writes, only: true,");
    std::fs::write(world.path("s.mcproof.yaml"), format!("server: {{ stdio: mcproof demo tracker }}\ntests:\n{only}")).unwrap();
    let left_out = "s.mcproof.yaml is left out, because another test has `only: true`";
    check(&["s.mcproof.yaml::reads"], &[left_out, "take `only` out"]);
    check(&["s.mcproof.yaml:3"], &[left_out]);
    check(&["-E", "name(=reads)"], &["none of 1 test matches the filter", left_out]);
}

#[test]
fn every_case_is_in_one_shard() {
    let world = World::new(SUITE);
    let shards: Vec<Vec<String>> = ["1/3", "2/3", "3/3"].iter().map(|shard| world.planned(&["--shard", shard])).collect();
    let all: BTreeSet<String> = shards.iter().flatten().cloned().collect();
    assert_eq!((shards.iter().map(Vec::len).sum::<usize>(), all.len()), (12, 12));
    assert!(shards.iter().all(|shard| shard.len() == 4), "{shards:?}");
    // However the file is named.
    let absolute = world.path("s.mcproof.yaml").canonicalize().unwrap();
    for (number, before) in (1..).zip(&shards) {
        assert_eq!(world.planned(&["--shard", &format!("{number}/3"), absolute.to_str().unwrap()]), *before);
    }
}

/// A matrix of jobs has as many jobs as somebody wrote there, whatever is selected.
#[test]
fn a_shard_without_tests_passes_and_says_so() {
    let world = World::new(SUITE);
    let one = ["-E", "name(=ping)", "--transport", "stdio"];
    let ran: Vec<_> = ["1/2", "2/2"].iter().map(|shard| world.run(&[&["test", "--shard", shard], &one[..]].concat())).collect();
    assert!(ran.iter().all(|ran| ran.code == Some(0)), "{}{}", ran[0].stdout, ran[1].stdout);
    let empty: Vec<_> = ran.iter().filter(|ran| ran.stdout.contains("/2 has no tests: only 1 test is selected")).collect();
    assert_eq!(empty.len(), 1, "{}{}", ran[0].stdout, ran[1].stdout);
    for shard in ["1/2", "2/2"] {
        assert_eq!(world.run(&["plan", "--shard", shard, "-E", "name(=ping)", "--transport", "stdio"]).code, Some(0));
        let none = world.run(&["test", "--shard", shard, "-E", "name(pnig)"]);
        assert!(none.code == Some(4) && none.stderr.contains("none of 12 tests matches"), "{}{}", none.stdout, none.stderr);
    }
}

#[test]
fn a_seed_repeats_an_order() {
    let world = World::new(SUITE);
    let order = |arguments: &[&str]| {
        let ran = world.run(&[&["test", "--json", "--jobs", "1"], arguments].concat());
        let run_started = ran.of_kind("run-started").remove(0);
        let title = |event: &Value| title(&run_started["tests"][usize::try_from(event["id"].as_u64().unwrap()).unwrap()]);
        (run_started["seed"].as_u64(), ran.of_kind("test-started").iter().map(title).collect::<Vec<String>>())
    };
    let (seed, written) = order(&[]);
    assert_eq!((seed, &written), (None, &world.planned(&[])));
    let (seed, shuffled) = order(&["--seed", "7"]);
    assert_eq!((seed, &shuffled), (Some(7), &world.planned(&["--shuffle", "--seed", "7"])));
    assert_ne!(shuffled, written);
    let sorted = |mut cases: Vec<String>| {
        cases.sort();
        cases
    };
    assert_eq!(sorted(shuffled), sorted(written));
    let (seed, shuffled) = order(&["--shuffle"]);
    let seed = seed.unwrap().to_string();
    assert_eq!(order(&["--seed", &seed]).1, shuffled);
    let ran = world.run(&["test", "--seed", &seed, "-E", "name(ping)"]);
    assert!(ran.stdout.ends_with(&format!(", shuffled with --seed {seed}\n")), "{}", ran.stdout);
    assert!(ran.stdout.starts_with("running 2 tests from 1 suite, 10 not selected"), "{}", ran.stdout);
}

#[test]
fn fail_fast_cancels_what_has_not_started() {
    let world = World::new(SUITE);
    let check = |flag: &str, failed: u64, canceled: u64| {
        let ran = world.run(&["test", "--json", "--jobs", "1", "--transport", "stdio", flag]);
        let counts = &ran.of_kind("run-finished")[0]["counts"];
        assert_eq!((ran.code, counts["failed"].as_u64(), counts["canceled"].as_u64()), (Some(1), Some(failed), Some(canceled)), "{flag}");
        ran
    };
    let ran = check("--fail-fast", 1, 3);
    let notice = &ran.of_kind("notice")[0]["diagnostic"];
    assert_eq!(notice["message"], "stopped after 1 failure, before 3 further tests ran");
    check("-x", 1, 3);
    check("--fail-fast=2", 2, 1);
    assert_eq!(check("--fail-fast=3", 2, 0).of_kind("notice"), Vec::<Value>::new());
}

#[test]
fn what_did_not_pass_is_run_again() {
    let world = World::new(SUITE);
    let stdio = ["--transport", "stdio"];
    let unfinished = |arguments: &[&str]| world.planned(&[&stdio, arguments, &["--rerun-failed"]].concat());
    let ran = world.run(&[&["plan", "--rerun-failed"], &stdio[..]].concat());
    assert!(ran.stderr.contains("no earlier run in this directory is recorded, so all tests run"), "{}", ran.stderr);
    assert!(ran.stdout.ends_with("6 tests, 6 not selected\n"), "{}", ran.stdout);

    world.run(&[&["test", "--jobs", "1", "-x"], &stdio[..]].concat());
    let failed = "echo is (badly) expected [stdio]";
    let never_ran = ["an unknown tool fails [stdio]", "an unknown tool answers [stdio]", "ping [stdio]"];
    assert_eq!(unfinished(&[]), [&[failed], &never_ran[..]].concat());
    // Another selection leaves the others as they are.
    world.run(&["test", "-E", "name(ping)"]);
    assert_eq!(unfinished(&[]), [&[failed], &never_ran[..2]].concat());
    world.run(&[&["test", "--rerun-failed", "--repeat", "2"], &stdio[..]].concat());
    assert_eq!(unfinished(&[]), [failed, "an unknown tool answers [stdio]"]);

    let fixed = SUITE.replace("$text: ho", "$text: hi").replace("{ call: nope, within: 9s }", "{ call: nope, fails: true }");
    std::fs::write(world.path("s.mcproof.yaml"), fixed).unwrap();
    assert_eq!(world.run(&["test", "--last-failed", "-q"]).stdout.split(" in ").next(), Some("2 passed"));
    let ran = world.run(&["test", "--rerun-failed"]);
    assert_eq!(ran.code, Some(4));
    assert!(ran.stderr.contains("none of 12 tests failed or was left unfinished in the last run"), "{}", ran.stderr);
}

#[test]
fn a_memory_that_cannot_be_read_is_told_and_written_anew() {
    let world = World::new(SUITE);
    world.run(&["test", "-E", "name(badly)"]);
    let folder = world.path(".state/mcproof/last-run");
    let file = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    for broken in ["{", "[]", "\u{0}", r#"{"version":99,"folder":"/","unfinished":[]}"#] {
        std::fs::write(&file, broken).unwrap();
        let ran = world.run(&["test", "--rerun-failed", "--transport", "stdio"]);
        assert!(ran.stderr.contains("cannot read the record of earlier runs, so all tests run: "), "{}", ran.stderr);
        assert!(ran.stdout.contains("4 passed, 2 failed"), "{}", ran.stdout);
        assert_eq!(world.planned(&["--rerun-failed"]).len(), 2);
    }
}

#[test]
fn repetitions_are_cases_of_their_own() {
    let world = World::new(SUITE);
    let ran = world.run(&["test", "--repeat", "3", "s.mcproof.yaml::ping", "--transport", "stdio"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains("ping #1\n") && ran.stdout.contains("ping #3\n") && ran.stdout.contains("3 passed"), "{}", ran.stdout);
}

#[test]
fn a_plan_reads_well() {
    let ran = World::new(SUITE).run(&["plan", "-E", "name(badly) | name(ping)"]);
    let expected = "./s.mcproof.yaml\n    9  echo is (badly) expected [stdio, http]\n   11    list tools\n   12    call echo\n   \
                    17  ping [stdio, http]\n   18    handshake\n\n4 tests, 8 not selected\n";
    assert_eq!(ran.stdout, expected);
}

/// Two tests of four share a server; the shop forgets nothing.
const SHARED: &str = "\
server: { stdio: mcproof demo shop }
isolation: file
tests:
  - name: one is sold
    tags: [smoke, sale]
    steps: [{ call: create_order, with: { product_id: PROD-123, quantity: 1 }, expect: { status: pending } }]
  - name: nine are left
    tags: [stock]
    steps: [{ call: check_inventory, with: { product_id: PROD-123 }, expect: { available: 9 } }]
  - name: eight are left
    tags: [stock]
    steps: [{ call: check_inventory, with: { product_id: PROD-123 }, expect: { available: 8 } }]
  - name: it answers
    tags: [smoke]
    steps: [{ tools: , expect: { calculate: {} } }]
";

#[test]
fn a_shared_server_is_shared_within_one_repetition_only() {
    let world = World::new(SHARED);
    let ran = world.run(&["test", "--repeat", "5", "-E", "!name(eight)", "-q"]);
    assert!(ran.stdout.starts_with("15 passed"), "{}", ran.stdout);
    let ran = world.run(&["test", "--repeat", "2", "--jobs", "1", "-x", "--json"]);
    let counts = &ran.of_kind("run-finished")[0]["counts"];
    assert_eq!((ran.code, &counts["passed"], &counts["canceled"]), (Some(1), &2.into(), &5.into()));
}

#[test]
fn tags_select() {
    let world = World::new(SHARED);
    let check = |filter: &str, expected: &[&str]| assert_eq!(world.planned(&["-E", filter]), expected, "{filter}");
    check("tag(smoke)", &["one is sold [stdio]", "it answers [stdio]"]);
    check("tag(smoke) & !tag(sale)", &["it answers [stdio]"]);
    check("tag(s*) & not (tag(smoke) or name(eight))", &["nine are left [stdio]"]);
}

const ANSWER: &str = r#"printf '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n'"#;
const TOOLS: &str = r#"printf '{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}\n'"#;

/// The server of the first case answers only when that of the second one has died, which was started ahead.
#[test]
fn a_server_that_dies_before_its_turn_fails_its_own_case_only() {
    let patient = format!("read -r l; {ANSWER}; read -r l; until test -e died; do sleep 0.01; done; read -r l; {TOOLS}; read -r l");
    let mortal = format!("read -r l; {ANSWER}; read -r l; echo lost the database >&2; touch died; exit 3");
    let server = |script: &str| format!("{{ stdio: {{ command: [sh, -c, {script:?}] }} }}");
    let world = World::new(&format!(
        "servers:\n  patient: {}\n  mortal: {}\ntests:\n  - {{ name: one, steps: [{{ tools: [], server: patient }}] }}\n  - {{ name: two, steps: [{{ tools: [], server: patient }}] }}\n  \
         - {{ name: three, steps: [{{ tools: [], server: mortal }}] }}\n",
        server(&patient),
        server(&mortal)
    ));
    let ran = world.run(&["test", "--era", "legacy", "--jobs", "2", "--json"]);
    let mut finished = ran.of_kind("test-finished");
    finished.sort_by_key(|event| event["id"].as_u64());
    let verdicts: Vec<Value> = finished.iter().map(|event| event["verdict"].clone()).collect();
    assert_eq!(verdicts, ["pass", "pass", "fail"], "{}", ran.stdout);
    let finished = &finished[2];
    let message = finished["diagnostics"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("server exited with code 3"), "{message}");
    assert!(finished.to_string().contains("lost the database"), "{finished}");
    let kinds: Vec<Value> = ran.events().iter().map(|event| event["event"].clone()).collect();
    assert_eq!(kinds.iter().filter(|kind| *kind == "test-started").count(), 3);
    assert_eq!(kinds.len(), 8, "{kinds:?}");
}

/// A server counts what it was asked; warm or cold, each case finds a new one.
#[test]
fn no_server_is_shared() {
    let suite = "server: { stdio: mcproof demo shop }\ntests:\n  - name: a\n    steps:\n      \
                 - { call: create_order, with: { product_id: PROD-123, quantity: 1 } }\n      \
                 - { call: check_inventory, with: { product_id: PROD-123 }, expect: { available: 9 } }\n";
    let world = World::new(suite);
    for flags in [&["--jobs", "1"][..], &["--jobs", "4"], &["--jobs", "2", "--no-warm-start"]] {
        let ran = world.run(&[&["test", "--repeat", "12", "-q"], flags].concat());
        assert!(ran.stdout.starts_with("12 passed"), "{flags:?}: {}", ran.stdout);
    }
}

/// The lines of a pipe, as they come.
fn lines(pipe: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || BufReader::new(pipe).lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    receiver
}

/// Skips lines up to the one that has to come.
fn until(lines: &mpsc::Receiver<String>, part: &str) {
    let mut seen = Vec::new();
    while let Ok(line) = lines.recv_timeout(Duration::from_secs(60)) {
        if line.contains(part) {
            return;
        }
        seen.push(line);
    }
    panic!("{part:?} never came, but\n{}", seen.join("\n"));
}

#[test]
fn watching_runs_again_when_a_file_changes() {
    let world = World::new(SUITE);
    std::fs::write(world.path(".gitignore"), "*.log\n").unwrap();
    let mcproof = world
        .command(&["test", "--watch", "--transport", "stdio", "-E", "name(ping) | name(badly)"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Also when the test fails, nothing goes on watching.
    let mut mcproof = KilledOnDrop(mcproof);
    let stdout = lines(mcproof.0.stdout.take().unwrap());
    let stderr = lines(mcproof.0.stderr.take().unwrap());
    until(&stdout, "1 passed, 1 failed");
    until(&stderr, "watching; press Ctrl-C to quit");
    // Excluded, so that only what follows counts.
    std::fs::write(world.path("server.log"), "x").unwrap();
    let suite = world.path("s.mcproof.yaml");
    std::fs::write(&suite, SUITE.replace("$text: ho", "$text: hi")).unwrap();
    until(&stdout, "2 passed");
    until(&stderr, "watching; press Ctrl-C to quit");
    std::fs::write(&suite, SUITE.replace("handshake: ,", "handshak: ,")).unwrap();
    until(&stderr, "did you mean `handshake`?");
    until(&stderr, "watching; press Ctrl-C to quit");
    std::fs::create_dir(world.path("lib")).unwrap();
    std::fs::write(&suite, SUITE).unwrap();
    until(&stdout, "1 passed, 1 failed");
    until(&stderr, "watching; press Ctrl-C to quit");
    std::fs::write(world.path("lib/server.js"), "x").unwrap();
    until(&stdout, "1 passed, 1 failed");
    until(&stderr, "watching; press Ctrl-C to quit");
    kill(Pid::from_raw(i32::try_from(mcproof.0.id()).unwrap()), Signal::SIGINT).unwrap();
    assert_eq!(mcproof.0.wait().unwrap().code(), Some(130));
}

struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

#[test]
fn the_schema_of_suites_is_printed() {
    let ran = World::new(SUITE).run(&["schema"]);
    let schema: Value = serde_json::from_str(&ran.stdout).unwrap();
    let validator = jsonschema::draft202012::options().build(&schema).unwrap();
    let step = |step: Value| serde_json::json!({ "server": { "stdio": "x" }, "tests": [{ "name": "a", "steps": [step] }] });
    assert!(validator.is_valid(&step("tools".into())));
    assert!(!validator.is_valid(&step("tols".into())));
    assert_eq!(schema, serde_json::from_str::<Value>(&World::new(SUITE).run(&["schema", "suite"]).stdout).unwrap());
}
