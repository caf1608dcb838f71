//! The dashboard as people see it, in a real browser: what they look for is there, what servers say stays text, and nothing
//! complains.

use crate::browser::Page;
use crate::data::HOSTILE;
use crate::{Dashboard, with_token};
use mcproof_watch::config::Config;
use serde_json::Value;
use std::path::Path;

/// Waits until an expression is true: pages change when news come.
fn wait(page: &mut Page, expression: &str) {
    let look = format!(
        "new Promise((done) => {{ const look = () => {{ if ({expression}) done(true); else requestAnimationFrame(look); }}; look(); }})"
    );
    assert_eq!(page.evaluate(&look), Value::Bool(true), "{expression}");
}

#[test]
fn a_target_is_found_by_keyboard_and_its_change_is_read() {
    let dashboard = Dashboard::new(Config::default());
    let mut page = Page::new();
    page.look(1280, 900, "light");
    page.visit(&dashboard.url("/"));
    assert!(page.text_of("#answer h1").contains("3 of 13 targets down"));
    assert_eq!(page.evaluate("document.querySelectorAll('#rows > .row').length"), 13);
    assert!(page.text_of("#rows > .row:first-child").contains("down"), "the worst is the first");
    page.press("/");
    page.type_text("svc-0003");
    assert_eq!(page.evaluate("document.querySelectorAll('#rows > .row:not([hidden])').length"), 1);
    assert!(page.text_of("#shown").contains("1 of 13"));
    page.press("Enter");
    assert_eq!(page.evaluate("document.activeElement.textContent"), "svc-0003");
    page.events.clear();
    page.press("Enter");
    page.wait_for_load();
    assert!(page.text_of("h1").contains("svc-0003"));
    assert_eq!(page.evaluate("document.querySelectorAll('svg.bars rect').length > 90"), true);
    assert_eq!(page.evaluate("document.querySelectorAll('svg.chart path.line').length"), 3);
    page.press("j");
    assert_eq!(page.evaluate("document.activeElement.textContent"), "what changed");
    page.events.clear();
    page.press("Enter");
    page.wait_for_load();
    assert!(page.text_of("h1").contains("The contract changed"));
    assert!(page.text_of(".difference").contains("argument `currency` is required now"));
    page.press("?");
    assert_eq!(page.evaluate("document.querySelector('#keys').open"), true);
    assert_eq!(page.complaints(), Vec::<&Value>::new());
    let own = dashboard.url("/");
    let outside: Vec<&str> = page.requests().into_iter().filter(|url| !url.starts_with(&own)).collect();
    assert!(outside.is_empty(), "{outside:?}");
}

#[test]
fn an_incident_is_acknowledged_and_its_wire_is_searched() {
    let dashboard = Dashboard::new(with_token("open sesame"));
    let mut page = Page::new();
    page.look(1280, 900, "light");
    page.visit(&dashboard.url("/incidents/incident-1"));
    assert_eq!(page.text_of("h1"), "Log in");
    page.evaluate("document.querySelector('[name=token]').focus()");
    page.type_text("open sesame");
    page.events.clear();
    page.press("Enter");
    page.wait_for_load();
    assert!(page.text_of("h1").contains("svc-0001 is down"));
    page.evaluate("document.querySelector('input.wire').focus()");
    page.type_text("needle");
    assert_eq!(page.evaluate("document.querySelectorAll('.frame:not([hidden])').length"), 1);
    assert_eq!(page.text_of(".found"), "1 of 4 frames");
    page.click(".frame:not([hidden]) summary");
    assert!(page.text_of(".frame[open] pre").contains("needle"));
    page.events.clear();
    page.click("#acknowledge");
    page.wait_for_load();
    assert!(page.text_of(".facts").contains("by token"));
    assert_eq!(page.evaluate("document.querySelectorAll('#acknowledge').length"), 0);
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn news_come_without_loading_the_page_again() {
    let dashboard = Dashboard::new(Config::default());
    let mut page = Page::new();
    page.look(1280, 900, "light");
    page.visit(&dashboard.url("/"));
    page.evaluate("document.title = 'the same page'");
    wait(&mut page, "document.querySelector('#live').textContent.includes('live')");
    dashboard.runtime.block_on(dashboard.data.run("UPDATE target SET availability = 'down' WHERE name = 'svc-0012'"));
    dashboard.bell.send("svc-0012".to_owned()).unwrap();
    wait(&mut page, "document.getElementById('t-svc-0012').dataset.rank === '0'");
    assert!(page.text_of("#t-svc-0012").contains("down"));
    wait(&mut page, "document.querySelector('#answer').textContent.includes('4 of 13')");
    assert_eq!(page.evaluate("document.title"), "the same page");
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn rows_that_no_longer_fit_the_filter_go() {
    let dashboard = Dashboard::new(Config::default());
    let mut page = Page::new();
    page.look(1280, 900, "light");
    page.visit(&dashboard.url("/?state=down"));
    wait(&mut page, "document.querySelector('#live').textContent.includes('live')");
    for (statement, name, expression) in [
        ("UPDATE target SET availability = 'down' WHERE name = 'svc-0012'", "svc-0012", "document.getElementById('t-svc-0012')"),
        ("UPDATE target SET availability = 'ok' WHERE name = 'svc-0012'", "svc-0012", "!document.getElementById('t-svc-0012')"),
        ("UPDATE target SET availability = 'ok'", "*", "document.querySelectorAll('#rows > .row').length === 0"),
    ] {
        dashboard.runtime.block_on(dashboard.data.run(statement));
        dashboard.bell.send(name.to_owned()).unwrap();
        wait(&mut page, expression);
        // Nothing but what was told of has changed.
        if name != "*" {
            assert_eq!(page.evaluate("document.getElementById('t-svc-0001') !== null"), true, "{statement}");
        }
    }
    assert_eq!(page.complaints(), Vec::<&Value>::new());
}

#[test]
fn what_a_server_said_is_never_markup() {
    let dashboard = Dashboard::new(Config::default());
    let mut page = Page::new();
    page.look(1280, 900, "light");
    let name: String = HOSTILE.bytes().map(|byte| format!("%{byte:02X}")).collect();
    for path in [
        "/",
        "/incidents",
        "/incidents/incident-2",
        "/changes/change-1",
        "/evidence/evidence-1",
        "/status",
        &format!("/targets/{name}"),
        &format!("/status/{name}"),
    ] {
        page.visit(&dashboard.url(path));
        page.evaluate("document.querySelectorAll('details').forEach((row) => { row.open = true; })");
        assert_eq!(page.evaluate("document.querySelectorAll('img[src=x]').length"), 0, "{path}");
        assert_eq!(page.evaluate("document.querySelectorAll('script').length"), 1, "{path}");
        let body = page.evaluate("document.body.innerText");
        assert!(body.as_str().unwrap().contains("<img src=x onerror=alert(1)>"), "{path} shows it as text: {body}");
        assert!(!body.as_str().unwrap().contains('\u{202e}'), "{path}");
        let dialogs = page.events.iter().filter(|event| event["method"] == "Page.javascriptDialogOpening").count();
        assert_eq!(dialogs, 0, "{path}");
        assert_eq!(page.complaints(), Vec::<&Value>::new(), "{path}");
    }
}

#[test]
fn pages_fit_a_phone_and_a_desk_by_day_and_by_night() {
    let dashboard = Dashboard::new(Config::default());
    let locked = Dashboard::new(with_token("t"));
    // The pictures are for looking at.
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("watch");
    std::fs::create_dir_all(&pictures).unwrap();
    let mut page = Page::new();
    for (size, width, height) in [("narrow", 360, 780), ("wide", 1360, 900)] {
        for scheme in ["light", "dark"] {
            page.look(width, height, scheme);
            for (view, path) in [
                ("overview", "/"),
                ("target", "/targets/svc-0001"),
                ("well", "/targets/svc-0003?span=7d"),
                ("incident", "/incidents/incident-1"),
                ("change", "/changes/change-1"),
                ("incidents", "/incidents"),
                ("maintenance", "/maintenance"),
                ("status", "/status"),
                ("hostile", "/incidents/incident-2"),
            ] {
                page.visit(&dashboard.url(path));
                let overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth");
                assert!(overflow.as_i64().unwrap() <= 0, "{size} {scheme} {view} is {overflow} pixels too wide");
                std::fs::write(pictures.join(format!("{view}-{size}-{scheme}.png")), page.picture()).unwrap();
                assert_eq!(page.complaints(), Vec::<&Value>::new(), "{view}");
            }
            page.visit(&locked.url("/login"));
            std::fs::write(pictures.join(format!("login-{size}-{scheme}.png")), page.picture()).unwrap();
            let background = page.evaluate("getComputedStyle(document.body).backgroundColor");
            assert_eq!(background.as_str().unwrap() == "rgb(255, 255, 255)", scheme == "light", "{background}");
        }
    }
}
