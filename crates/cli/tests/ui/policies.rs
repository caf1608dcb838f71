//! What a server asks is answered by policies that are set in the page, also while a session lives; and its roots. In both eras.

use crate::browser::Page;
use crate::inspector::{Inspector, choose, click, fill, open_tool, violations, wait_for};
use serde_json::{Value, json};
use std::process::Command;

pub(crate) const SERVER: &str = include_str!("answers.py");

const RESULT: &str = "document.querySelector('[data-testid=result]')?.innerText";

/// Such a server, which is connected.
fn opened(words: &[&str]) -> (Inspector, Page) {
    let folder = tempfile::tempdir().unwrap();
    let server = folder.path().join("answers.py");
    std::fs::write(&server, SERVER).unwrap();
    let command: Vec<&str> = ["--", "python3", server.to_str().unwrap()].into_iter().chain(words.iter().copied()).collect();
    let inspector = Inspector::start_in(folder, "ui", &command);
    let mut page = Page::new();
    page.look(1440, 900, "light");
    page.visit(&inspector.url);
    wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'open'");
    (inspector, page)
}

/// Calls a tool, and waits for this in its result.
fn call(page: &mut Page, tool: &str, expected: &str) {
    open_tool(page, tool);
    click(page, "send");
    wait_for(page, &format!("document.querySelector('[data-testid=result]')?.dataset.status === 'ok' && {RESULT}.includes('{expected}')"));
}

/// Waits until the program has confirmed what was changed.
fn confirmed(page: &mut Page) {
    wait_for(page, "document.querySelector('[data-testid=answers]')?.dataset.status === 'set'");
}

/// Sets a script.
fn script(page: &mut Page, text: &str) {
    click(page, "nav-answers");
    fill(page, "[data-testid=policy-script]", text);
    click(page, "script-set");
    confirmed(page);
}

#[test]
fn policies_answer_in_both_eras_and_the_traffic_says_so() {
    for (words, call_marked) in [(&[][..], "elicitation/create"), (&["modern"][..], "tools/call")] {
        let (_inspector, mut page) = opened(words);
        // Without a policy, the user is asked.
        open_tool(&mut page, "ask");
        click(&mut page, "send");
        // Who asks is named, and during which call.
        wait_for(&mut page, "document.querySelector('[data-testid=asks]')?.innerText === 'answers asks'");
        wait_for(&mut page, "document.querySelector('[data-testid=asker]')?.innerText.includes('during tools/call ask')");
        assert!(page.text_of("[data-testid=asker]").contains("answers.py"), "and not only by the name that it gives itself");
        click(&mut page, "decline");
        wait_for(&mut page, &format!("{RESULT}?.includes('decline')"));
        assert_eq!(page.evaluate("document.querySelectorAll('[data-testid=policy-mark]').length"), 0);
        // The session goes on while policies are set.
        click(&mut page, "nav-answers");
        choose(&mut page, "policy-elicitation", "accept");
        choose(&mut page, "policy-sampling", "text");
        fill(&mut page, "[data-testid=policy-text]", "Hello from the policy");
        click(&mut page, "policy-set");
        wait_for(&mut page, "document.querySelector('[data-testid=policy-script]')?.value.includes('Hello from the policy')");
        confirmed(&mut page);
        assert_eq!(violations(&mut page), json!([]));
        call(&mut page, "ask", "blue");
        call(&mut page, "sample", "Hello from the policy");
        assert_eq!(page.evaluate("document.querySelector('[data-testid=tray]') === null"), Value::Bool(true), "{words:?}");
        // The question that a policy has answered says so, the one that the user has answered does not.
        wait_for(&mut page, "document.querySelectorAll('[data-testid=policy-mark]').length === 2");
        page.evaluate("[...document.querySelectorAll('[data-testid=calls] .row')].find((row) => row.querySelector('[data-testid=policy-mark]')).click()");
        wait_for(&mut page, "document.querySelector('[data-testid=by-policy]')?.innerText.includes('elicitation/create')");
        assert!(page.text_of("[data-testid=story] h1").contains(call_marked), "{words:?}");
        // A form with a required field that has no default is for the user, who sees what the policy has.
        open_tool(&mut page, "ask-strictly");
        click(&mut page, "send");
        wait_for(&mut page, "document.querySelector('[data-testid=unfinished]')?.innerText.includes('name')");
        wait_for(&mut page, "document.querySelector('[data-testid=tray] [data-testid=input-color]')?.value === 'blue'");
        fill(&mut page, "[data-testid=tray] [data-testid=input-name]", "Bob");
        click(&mut page, "accept");
        wait_for(&mut page, &format!("{RESULT}?.includes('Bob')"));
        click(&mut page, "nav-answers");
        choose(&mut page, "policy-elicitation", "cancel");
        confirmed(&mut page);
        call(&mut page, "ask", "cancel");
        assert_eq!(page.complaints(), Vec::<&Value>::new(), "{words:?}");
    }
}

/// A rejected sampling request leaves a modern call without the input that it requires.
#[test]
fn a_call_that_still_requires_input_is_not_shown_as_done() {
    let (_inspector, mut page) = opened(&["modern"]);
    open_tool(&mut page, "sample");
    click(&mut page, "send");
    click(&mut page, "decline");
    wait_for(&mut page, "document.querySelector('[data-testid=result]')?.dataset.status === 'input-required'");
    assert!(page.text_of("[data-testid=result]").contains("requires input"));
}

#[test]
fn a_script_has_the_words_of_suites_and_is_saved_as_it_stands() {
    let (inspector, mut page) = opened(&[]);
    script(&mut page, "sampling: hi\nelicitation: maybe");
    wait_for(&mut page, "document.querySelector('[data-testid=script-wrong]')?.innerText.startsWith('line 2: ')");
    script(&mut page, "elicitation: accept\ntasks: true");
    wait_for(&mut page, "document.querySelector('[data-testid=script-wrong]')?.innerText.includes('suites only')");
    script(&mut page, "# The favorite one.\nelicitation: { color: red }\nsampling: hi");
    wait_for(&mut page, "document.querySelector('[data-testid=policy-elicitation]').value === 'script'");
    call(&mut page, "ask", "red");
    // A call that is kept has the policy in its test, and a run of that test passes.
    page.evaluate("document.querySelector('[data-testid=keep]').click()");
    wait_for(&mut page, "document.querySelector('.menu-items button')");
    page.evaluate("[...document.querySelectorAll('.menu-items button')].find((one) => one.innerText === 'Save as test step').click()");
    click(&mut page, "nav-saved");
    fill(&mut page, "[data-testid=save-file]", "kept.mcproof.yaml");
    click(&mut page, "save-suite");
    let suite = inspector.folder.path().join("kept.mcproof.yaml");
    wait_for(&mut page, "[...document.querySelectorAll('.toast')].some((toast) => toast.innerText.includes('Created'))");
    let text = std::fs::read_to_string(&suite).unwrap();
    assert!(
        text.contains("    answers:\n      # The favorite one.\n      elicitation: { color: red }\n      sampling: hi\n    steps:"),
        "{text}"
    );
    assert_eq!(text.matches("answers").count(), 2, "the path of the server and the test, but no step: {text}");
    let run = Command::new(env!("CARGO_BIN_EXE_mcproof")).arg("test").arg(&suite).current_dir(inspector.folder.path()).output().unwrap();
    assert!(run.status.success(), "{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert_eq!(page.complaints().len(), 2, "the two scripts that were refused: {:?}", page.complaints());
}

fn add_root(page: &mut Page, typed: &str) {
    fill(page, "[data-testid=root-new]", typed);
    click(page, "root-new-put");
}

fn roots_are(page: &mut Page, number: usize) {
    wait_for(page, &format!("document.querySelectorAll('[data-testid=root]').length === {number}"));
    confirmed(page);
}

#[test]
fn roots_are_told_to_a_legacy_server_when_they_change() {
    let (_inspector, mut page) = opened(&[]);
    call(&mut page, "state", "roots null");
    click(&mut page, "nav-answers");
    click(&mut page, "roots-declared");
    // The handshake is over.
    wait_for(&mut page, "document.querySelector('[data-testid=roots-late]')");
    add_root(&mut page, "https://example.com");
    wait_for(&mut page, "document.querySelector('[data-testid=root-wrong]')?.innerText.includes('https:')");
    add_root(&mut page, "/home/me/my project");
    roots_are(&mut page, 1);
    assert_eq!(page.text_of("[data-testid=root] code"), "file:///home/me/my%20project");
    click(&mut page, "roots-reconnect");
    wait_for(
        &mut page,
        "document.querySelector('[data-testid=server]')?.dataset.status === 'open' && !document.querySelector('[data-testid=roots-late]')",
    );
    assert_eq!(violations(&mut page), json!([]));
    call(&mut page, "state", "\"listChanged\": true");
    call(&mut page, "roots", "my%20project");
    // One more, which is told at once.
    click(&mut page, "nav-answers");
    add_root(&mut page, "file:///srv/data");
    roots_are(&mut page, 2);
    wait_for(&mut page, "document.querySelector('[data-testid=calls]')?.innerText.includes('notifications/roots/list_changed')");
    call(&mut page, "state", "changed 1");
    call(&mut page, "roots", "file:///srv/data");
    click(&mut page, "nav-answers");
    page.evaluate("document.querySelector('[aria-label=\"Edit root 2\"]').click()");
    fill(&mut page, "[data-testid=root-edit-name]", "data");
    click(&mut page, "root-edit-put");
    wait_for(&mut page, "document.querySelector('[data-testid=policy-script]')?.value.includes('\"name\":\"data\"')");
    confirmed(&mut page);
    page.evaluate("document.querySelector('[aria-label=\"Remove root 1\"]').click()");
    roots_are(&mut page, 1);
    fill(&mut page, "[data-testid=filter]", "method:notifications/roots/*");
    wait_for(&mut page, "document.querySelector('[data-testid=calls]')?.dataset.count === '3'");
    call(&mut page, "state", "changed 3");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn a_modern_server_is_offered_roots_with_each_request() {
    let (_inspector, mut page) = opened(&["modern"]);
    call(&mut page, "state", "roots null");
    click(&mut page, "nav-answers");
    click(&mut page, "roots-declared");
    wait_for(&mut page, "document.querySelector('[data-testid=root-new]')");
    add_root(&mut page, "/srv/data");
    roots_are(&mut page, 1);
    assert_eq!(
        page.evaluate("document.querySelector('[data-testid=roots-late]') === null"),
        Value::Bool(true),
        "no handshake has to come first"
    );
    call(&mut page, "state", "roots {}");
    call(&mut page, "roots", "file:///srv/data");
    assert_eq!(page.evaluate("document.querySelector('[data-testid=calls]').innerText.includes('list_changed')"), Value::Bool(false));
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}
