//! Contracts side by side: two servers, one in both eras, a server with its lock; by the palette and by an address.

use crate::browser::Page;
use crate::inspector::{Inspector, choose, click, fill, violations, wait_for};
use crate::policies::SERVER;
use serde_json::{Value, json};
use std::process::Command;

/// Two versions of a server, in a folder of their own.
fn opened() -> (Inspector, Page) {
    let folder = tempfile::tempdir().unwrap();
    let server = folder.path().join("answers.py");
    std::fs::write(&server, SERVER).unwrap();
    let server = server.to_str().unwrap();
    let servers = json!({ "mcpServers": {
        "one": { "command": "python3", "args": [server] },
        "two": { "command": "python3", "args": [server, "second"] },
    } });
    std::fs::write(folder.path().join(".mcp.json"), servers.to_string()).unwrap();
    let inspector = Inspector::start_in(folder, "ui", &["one", "two"]);
    let mut page = Page::new();
    page.look(1440, 900, "light");
    page.visit(&inspector.url);
    wait_for(&mut page, "document.querySelectorAll('[data-testid=server][data-status=open]').length === 2");
    click(&mut page, "server");
    (inspector, page)
}

fn compare(page: &mut Page, verdict: &str) {
    click(page, "run-compare");
    wait_for(page, &format!("document.querySelector('[data-testid=compare-verdict]')?.dataset.verdict === '{verdict}'"));
}

fn changes(page: &mut Page) -> Value {
    page.evaluate(
        "[...document.querySelectorAll('[data-testid=change]')].map((one) => [one.dataset.subject, one.dataset.what, \
         ...[...one.querySelectorAll('[data-testid=change-one]')].map((change) => change.dataset.level)])",
    )
}

#[test]
fn two_servers_are_compared_as_the_command_line_does() {
    let (inspector, mut page) = opened();
    click(&mut page, "search");
    wait_for(&mut page, "document.activeElement?.closest('[data-testid=palette]')");
    page.type_text("compare contracts");
    page.press("Enter");
    wait_for(&mut page, "document.querySelector('[data-testid=compare-old]')?.value === '1'");
    compare(&mut page, "breaking");
    let expected = json!([
        ["tool `roots`", "changed", "breaking"],
        ["tool `sample`", "removed", "breaking"],
        ["tool `extra`", "added", "compatible"],
        ["the server", "changed", "cosmetic"]
    ]);
    assert_eq!(changes(&mut page), expected);
    let run =
        Command::new(env!("CARGO_BIN_EXE_mcproof")).args(["diff", "one", "two", "--json"]).current_dir(inspector.folder.path()).output();
    let diff: Value = serde_json::from_slice(&run.unwrap().stdout).unwrap();
    let subjects: Vec<&Value> = diff["changes"].as_array().unwrap().iter().map(|change| &change["subject"]).collect();
    let shown = expected.as_array().unwrap().iter().map(|one| &one[0]);
    assert_eq!(shown.collect::<Vec<_>>(), subjects);
    assert!(page.text_of("[data-testid=compare-facts]").contains("answers 2"));
    assert_eq!(violations(&mut page), json!([]));
    click(&mut page, "tab-cosmetic");
    wait_for(&mut page, "document.querySelectorAll('[data-testid=change]').length === 1");
    // The other way round, what was new is gone.
    click(&mut page, "compare-swap");
    compare(&mut page, "breaking");
    assert_eq!(changes(&mut page)[0], json!(["tool `extra`", "removed", "breaking"]));
    // The address leads to it in another tab, where nothing is visited before a click.
    let place = page.evaluate("location.hash.slice(1)");
    let mut other = Page::new();
    other.look(360, 800, "dark");
    other.visit(&format!("{}&at={}", inspector.url, place.as_str().unwrap().replace('%', "%25")));
    wait_for(&mut other, "document.querySelector('[data-testid=compare-old]')?.value === '2'");
    assert_eq!(other.evaluate("document.querySelector('[data-testid=compare]').dataset.status"), "idle");
    compare(&mut other, "breaking");
    assert_eq!(violations(&mut other), json!([]));
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn a_server_is_compared_with_its_lock() {
    let (inspector, mut page) = opened();
    let lock = |server: &str| {
        let file = inspector.folder.path().join("mcproof.lock");
        let _ = std::fs::remove_file(&file);
        let locked =
            Command::new(env!("CARGO_BIN_EXE_mcproof")).args(["lock", server]).current_dir(inspector.folder.path()).output().unwrap();
        assert!(locked.status.success() && file.exists(), "{}", String::from_utf8_lossy(&locked.stderr));
    };
    lock("one");
    click(&mut page, "nav-compare");
    choose(&mut page, "compare-old", "file");
    wait_for(&mut page, "document.querySelector('[data-testid=compare-old-file]')?.value === 'mcproof.lock'");
    compare(&mut page, "breaking");
    choose(&mut page, "compare-new", "1");
    compare(&mut page, "same");
    // A file that is not there is named.
    fill(&mut page, "[data-testid=compare-old-file]", "other.lock");
    page.evaluate("document.querySelector('[data-testid=compare-old-file]').dispatchEvent(new Event('change', { bubbles: true }))");
    wait_for(&mut page, "location.hash.includes('other.lock')");
    click(&mut page, "run-compare");
    wait_for(&mut page, "document.querySelector('[data-testid=compare]')?.dataset.status === 'failed'");
    assert!(page.text_of(".problem").contains("other.lock"));
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn one_server_is_compared_in_its_two_eras() {
    let inspector = Inspector::start(&["--", env!("CARGO_BIN_EXE_mcproof"), "demo", "shop"]);
    let mut page = Page::new();
    page.look(1440, 900, "light");
    page.visit(&inspector.url);
    wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'open'");
    click(&mut page, "nav-compare");
    // Which era it is was chosen, and is no change.
    wait_for(&mut page, "document.querySelector('[data-testid=compare-new-era]')?.value === 'modern'");
    click(&mut page, "run-compare");
    wait_for(&mut page, "document.querySelector('[data-testid=compare]')?.dataset.status === 'done'");
    wait_for(&mut page, "document.querySelector('[data-testid=not-compared]')?.innerText.includes('protocol versions')");
    let levels = page.evaluate("[...document.querySelectorAll('[data-testid=change-one]')].map((one) => one.innerText).join('\\n')");
    assert!(!levels.as_str().unwrap().contains("no longer supported"), "{levels}");
    assert!(page.text_of("[data-testid=compare-facts]").contains("modern/full"));
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}
