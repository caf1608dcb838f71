//! What an expectation must not let through: what is forbidden and comes late, what cannot be compared, and what matches everything.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod peers;
mod running;

use peers::root;
use running::run_suite;

/// Tests on a server that does what it is told: a name for each, and its steps. `more` is the rest of the suite.
fn suite(more: &str, tests: &[(&str, &str)]) -> String {
    let server = root().join("crates/cli/tests/servers/obedient.py");
    let tests: String = tests.iter().map(|(name, steps)| format!("  - {{ name: {name}, steps: [{steps}] }}\n")).collect();
    format!("server: {{ era: legacy, stdio: {{ command: [python3, {:?}] }} }}\n{more}tests:\n{tests}", server.display().to_string())
}

fn all_pass(more: &str, tests: &[(&str, &str)]) {
    let ran = run_suite(&suite(more, tests), &[]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains(&format!("{} passed", tests.len())), "{}", ran.stdout);
}

/// Each of them fails, and all of this is said.
fn all_fail(more: &str, tests: &[(&str, &str)], said: &[&str]) {
    let ran = run_suite(&suite(more, tests), &[]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains(&format!("0 passed, {} failed", tests.len())), "{}", ran.stdout);
    // Long sentences are broken at words.
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    said.iter().for_each(|part| assert!(words.contains(part), "{part:?} is not in\n{}", ran.stdout));
}

/// Where the server was slow, nothing would come: the tests wait for as long as it takes.
#[test]
fn what_is_forbidden_may_come_after_the_response() {
    let one = "call: tell, with: { told: [[60, late]] }, notifications";
    let two = "call: tell, with: { told: [[0, once], [60, twice]] }, notifications";
    let message = |data: &str| format!("{{ method: notifications/message, params: {{ level: info, data: {data} }} }}");
    let tests = [
        ("none", format!("{{ {one}: [] }}")),
        ("exactly one", format!("{{ {two}: {{ $exact: [{}] }} }}", message("once"))),
        ("one", format!("{{ {two}: {{ $len: 1 }} }}")),
        ("at most one", format!("{{ {two}: {{ $len: {{ $lte: 1 }} }} }}")),
        ("not this one", format!("{{ {one}: {{ $not: {{ $contains: {{ method: notifications/message }} }} }} }}")),
        ("all of them", format!("{{ {two}: {{ $all: {} }} }}", message("once"))),
    ];
    let tests = tests.each_ref().map(|(name, step)| (*name, step.as_str()));
    all_fail("timeouts: { settle: 60s, request: 60s }\n", &tests, &["list of notifications does not match"]);
}

#[test]
fn a_list_that_may_grow_is_not_waited_for_and_the_others_are_waited_for_in_vain() {
    let two = "call: tell, with: { told: [[0, once], [0, twice]] }, notifications";
    let tests = [
        ("in order", format!("{{ {two}: [{{ params: {{ data: once }} }}, {{ params: {{ data: twice }} }}] }}")),
        ("contains", format!("{{ {two}: {{ $contains: {{ params: {{ data: twice }} }} }} }}")),
        ("at least", format!("{{ {two}: {{ $len: {{ $gte: 2 }} }} }}")),
    ];
    let tests = tests.each_ref().map(|(name, step)| (*name, step.as_str()));
    all_pass("timeouts: { settle: 60s, test: 30s }\n", &tests);
    let silent = [
        ("none", "{ call: tell, notifications: [] }"),
        ("two", "{ call: tell, with: { told: [[0, a], [0, b]] }, notifications: { $len: 2 } }"),
    ];
    all_pass("timeouts: { settle: 50ms }\n", &silent);
}

#[test]
fn an_integer_that_does_not_fit_is_never_taken_for_another_one() {
    let give = |json: &str, rest: &str| format!("{{ call: give, with: {{ json: '{{\"v\": {json}}}' }}, {rest} }}");
    let tests = [
        ("equal", give("-9223372036854775809", "expect: { v: -9223372036854775808 }")),
        ("not", give("1000000000000000000000000000001", "expect: { v: { $not: 1e30 } }")),
        ("saved", give("18446744073709551617", "save: { id: v }")),
        ("snapshot", give("18446744073709551617", "snapshot: true")),
        ("close", give("9007199254740993", "expect: { v: { $close_to: [9007199254740992, 0.5] } }")),
    ];
    let said = [
        "which does not fit 64 bits and cannot be compared exactly",
        "`id` cannot be saved: `v` does not fit 64 bits",
        "leave it out with `redact: ['$.v']`",
        "a number within 0.5 of 9007199254740992",
    ];
    all_fail("", &tests.each_ref().map(|(name, step)| (*name, step.as_str())), &said);
    let valid = [
        // No integer, so that nothing of it is lost.
        ("large", give("6.02e23", "expect: { v: 6.02e23 }, save: { v: v }")),
        ("size", give("18446744073709551617", "expect: { v: { $gt: 18446744073709551615, $close_to: [1.8e19, 1e18] } }")),
        ("fits", give("18446744073709551615", "expect: { v: 18446744073709551615 }, save: { v: v }")),
    ];
    all_pass("", &valid.each_ref().map(|(name, step)| (*name, step.as_str())));
    let refused = |text: &str, arguments: &[&str], said: &str| {
        let ran = run_suite(text, arguments);
        assert!(ran.code == Some(2) && ran.stderr.contains(said), "{:?} {}{}", ran.code, ran.stdout, ran.stderr);
    };
    let sent = suite("", &[("sent", "{ call: show, with: { v: 18446744073709551617 } }")]);
    refused(&sent, &[], "`18446744073709551617` does not fit 64 bits, so that it can neither be sent nor compared exactly");
    let variable = suite("vars: { v: 1 }\n", &[("sent", "{ call: show, with: { v: '${v}' } }")]);
    refused(&variable, &["--var", "v:=18446744073709551617"], "an integer does not fit 64 bits");
}

#[test]
fn a_variable_without_text_is_in_every_text() {
    let empty = "{ call: give, with: { json: '{\"id\": \"\"}' }, save: { id: id } }";
    let say = "call: say, with: { text: abc }, expect";
    let tests = [
        ("contains", format!("{empty}, {{ {say}: {{ $contains: '${{id}}' }} }}")),
        ("contains all", format!("{empty}, {{ {say}: {{ $contains_all: [a, '${{id}}'] }} }}")),
        ("pattern", format!("{empty}, {{ {say}: {{ $regex: '${{id}}' }} }}")),
        ("error", format!("{empty}, {{ call: fail, with: {{ text: abc }}, tool_error: '${{id}}' }}")),
    ];
    let tests = tests.each_ref().map(|(name, steps)| (*name, steps.as_str()));
    all_fail("", &tests, &["every text contains the empty text", "with its variables filled in, matches every text"]);
}

#[test]
fn the_exit_code_of_a_command_is_judged_unless_its_expectation_does() {
    let run = "run: [sh, -c, 'echo 3 rows; exit 3']";
    let fails = ["stdout: { $contains: rows }", "$not: { stdout: x }", "$any: true", "$len: 3"]
        .map(|expect| format!("{{ {run}, expect: {{ {expect} }} }}"));
    let names = ["text", "not", "any", "length"];
    let tests: Vec<(&str, &str)> = names.into_iter().zip(fails.iter().map(String::as_str)).collect();
    all_fail("", &tests, &["`sh` ended with code 3: 3 rows", "`expect: { code: … }`"]);
    let passes = [
        ("code", format!("{{ {run}, expect: {{ code: 3, stdout: {{ $contains: rows }} }} }}")),
        ("not 0", format!("{{ {run}, expect: {{ $not: {{ code: 0 }} }} }}")),
        ("result", format!("{{ {run}, result: {{ code: {{ $gt: 0 }} }} }}")),
    ];
    all_pass("", &passes.each_ref().map(|(name, step)| (*name, step.as_str())));
}

#[test]
fn what_no_host_sends_fails_its_step_unless_it_is_meant() {
    let schema = "{ type: object, properties: { name: { type: string }, age: { type: integer } }, required: [name] }";
    let form = format!("call: ask, with: {{ method: elicitation/create, params: {{ message: m, requestedSchema: {schema} }} }}");
    let prompt = "messages: [{ role: user, content: { type: text, text: hi } }], maxTokens: 5";
    let model = format!("call: ask, with: {{ method: sampling/createMessage, params: {{ {prompt} }} }}");
    let answers = [
        ("a text for an integer", &form, "elicitation: { name: Ann, age: three }"),
        ("no name", &form, "elicitation: { age: 3 }"),
        ("no name by default", &form, "elicitation: accept"),
        ("no result of a model", &model, "sampling: { foo: 1 }"),
    ];
    let write = |rest: &str| answers.map(|(name, asked, answer)| (name, format!("{{ {asked}, answers: {{ {answer}{rest} }} }}")));
    let (invalid, meant) = (write(""), write(", validate: false"));
    let said = [
        "the answer does not fit the form of the server: \"three\" is not of type \"integer\", at `age`",
        "\"name\" is a required property",
        "the answer is not a result of sampling: `role` is missing",
        "`answers: { …, validate: false }` sends it on purpose",
    ];
    all_fail("", &invalid.each_ref().map(|(name, step)| (*name, step.as_str())), &said);
    all_pass("", &meant.each_ref().map(|(name, step)| (*name, step.as_str())));
    let valid = [
        ("a form", format!("{{ {form}, answers: {{ elicitation: {{ name: Ann, age: 3 }} }}, expect: {{ action: accept }} }}")),
        ("no form", format!("{{ {form}, answers: {{ elicitation: decline }}, expect: {{ action: decline }} }}")),
        (
            "a result",
            format!(
                "{{ {model}, answers: {{ sampling: {{ role: assistant, content: {{ type: text, text: x }}, model: m }} }}, expect: {{ model: m }} }}"
            ),
        ),
    ];
    all_pass("", &valid.each_ref().map(|(name, step)| (*name, step.as_str())));
}

#[test]
fn each_of_several_runs_has_notifications_of_its_own() {
    let told = "call: tell, with: { told: [[0, '${n}']] }, times: 3";
    let first = format!("{{ {told}, timeout: 300ms, notifications: [{{ params: {{ data: 1 }} }}] }}");
    all_fail("", &[("only the first", &first)], &["run 2 of 3: list of notifications does not match"]);
    let all = format!("{{ {told}, timeout: 300ms, notifications: {{ $len: 3 }} }}");
    all_fail("", &[("three of each", &all)], &["run 1 of 3: list of notifications does not match"]);
    let one = format!("{{ {told}, notifications: {{ $len: 1 }} }}");
    let its_own = format!("{{ {told}, notifications: [{{ params: {{ data: '${{n}}' }} }}] }}");
    let together = format!("{{ {told}, concurrency: 3, notifications: {{ $len: 3 }} }}");
    all_pass("timeouts: { settle: 50ms }\n", &[("one", &one), ("its own", &its_own), ("together", &together)]);
}
