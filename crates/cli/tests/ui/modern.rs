//! What the modern era does in another way than before: subscriptions are streams, and each request says its log level.

use crate::browser::Page;
use crate::inspector::{Inspector, choose, click, fill, open_tool, violations, wait_for};
use serde_json::{Value, json};

fn create_issue(page: &mut Page, title: &str) {
    open_tool(page, "create_issue");
    fill(page, "[data-testid=input-project]", "test-project");
    fill(page, "[data-testid=input-title]", title);
    click(page, "send");
    wait_for(page, &format!("document.querySelector('[data-testid=result]')?.innerText.includes('{title}')"));
}

fn open_resource(page: &mut Page) {
    click(page, "nav-resources");
    wait_for(page, "document.querySelector('[data-testid=items-resources] .row')");
    page.click("[data-testid=items-resources] .row");
    wait_for(page, "document.querySelector('[data-testid=resource]')");
}

const SUBSCRIBED: &str = "document.querySelector('[data-testid=subscription]')?.dataset.status";

#[test]
fn a_resource_is_subscribed_to_in_both_eras() {
    for era in ["modern", "legacy"] {
        let inspector = Inspector::start(&["--era", era, "--", env!("CARGO_BIN_EXE_mcproof"), "demo", "tracker"]);
        let mut page = Page::new();
        page.look(1440, 900, "light");
        page.visit(&inspector.url);
        wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'open'");
        open_resource(&mut page);
        click(&mut page, "subscribe");
        wait_for(&mut page, &format!("{SUBSCRIBED} === 'subscribed'"));
        create_issue(&mut page, "First");
        open_resource(&mut page);
        wait_for(&mut page, "document.querySelector('[data-testid=subscription]').innerText.includes('1 update,')");
        assert_eq!(violations(&mut page), json!([]));
        click(&mut page, "unsubscribe");
        wait_for(&mut page, &format!("{SUBSCRIBED} === 'none'"));
        create_issue(&mut page, "Second");
        fill(&mut page, "[data-testid=filter]", "method:notifications/resources/updated");
        wait_for(&mut page, "document.querySelector('[data-testid=calls]').dataset.count === '1'");
        assert_eq!(page.complaints(), Vec::<&Value>::new(), "{era}");
    }
}

#[test]
fn a_log_level_goes_with_each_request() {
    let inspector = Inspector::start(&["--era", "modern", "--", env!("CARGO_BIN_EXE_mcproof"), "demo", "tracker"]);
    let mut page = Page::new();
    page.look(1440, 900, "light");
    page.visit(&inspector.url);
    wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'open'");
    create_issue(&mut page, "Silent");
    click(&mut page, "nav-logs");
    wait_for(&mut page, "document.querySelector('[data-testid=log-level]')?.value === ''");
    choose(&mut page, "log-level", "debug");
    create_issue(&mut page, "Logged");
    click(&mut page, "nav-logs");
    click(&mut page, "tab-log");
    // The issue before it was created without a word.
    wait_for(&mut page, "document.querySelector('[data-testid=log]')?.dataset.count === '1'");
    // The page that is loaded anew finds the level in the traffic.
    page.reload();
    wait_for(&mut page, "document.querySelector('[data-testid=log-level]')?.value === 'debug'");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}
