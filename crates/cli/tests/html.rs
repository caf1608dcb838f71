//! The HTML report of a real run, opened from its file in a real browser: what failed is found, the wire is read, and the page
//! neither complains nor asks for anything.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod browser;
mod peers;

use browser::Page;
use peers::root;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A suite with a server that miscounts, one that is hostile, and one that does not start.
fn report(folder: &Path) -> PathBuf {
    let shop = std::fs::read_to_string(root().join("examples/quickstart/shop.mcproof.yaml")).unwrap();
    std::fs::write(folder.join("shop.mcproof.yaml"), shop.replace("demo shop", "demo shop --miscount")).unwrap();
    let hostile = r#"
server:
  stdio:
    command:
      - sh
      - -c
      - |
        echo '</script><img src=x onerror="document.title=1">' >&2
        read -r line
        printf '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"<b>no\u202e</b>"}}\n'
        cat > /dev/null
tests:
  - name: "</script><script>document.title = 'forged'</script>\u202e"
    steps: [tools]
"#;
    std::fs::write(folder.join("hostile.mcproof.yaml"), hostile).unwrap();
    let dead = "server: { stdio: { command: [sh, -c, \"echo 'Error: DATABASE_URL is required' >&2; exit 3\"] } }\ntests: [{ name: it starts, steps: [tools] }]\n";
    std::fs::write(folder.join("dead.mcproof.yaml"), dead).unwrap();
    let file = folder.join("report.html");
    let output = Command::new(env!("CARGO_BIN_EXE_mcproof"))
        .current_dir(folder)
        .args(["test", "--connect-timeout", "2s", "--coverage", "--reporter"])
        .arg(format!("html={}", file.display()))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    file
}

#[test]
fn a_failure_is_found_by_search_and_its_frames_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = report(folder.path());
    let mut page = Page::new();
    page.look(1280, 900, "light");
    page.open(&file);
    assert_eq!(page.evaluate("document.querySelectorAll('#list button').length"), 11);

    // The search by keyboard, a filter by mouse, the first that fits both.
    page.press("/");
    page.type_text("reduces available");
    assert_eq!(page.evaluate("document.querySelectorAll('#list button').length"), 3);
    page.click("#filters button.chip.http");
    assert_eq!(page.evaluate("document.querySelectorAll('#list button').length"), 1);
    page.press("/");
    page.press("Enter");
    assert_eq!(page.text_of("#detail h2"), "an order reduces the stock");
    let diagnosis = page.text_of(".diagnosis");
    assert!(diagnosis.contains("expected 8, found 7") && diagnosis.contains("shop.mcproof.yaml:23:30"), "{diagnosis}");
    assert!(page.text_of(".proof").contains("http, modern era, protocol 2026-07-28"));
    assert!(page.evaluate("document.querySelectorAll('.frame').length").as_u64().unwrap() > 8);

    // The frame opens, formatted first, then as its bytes.
    page.click("details.frame.request:nth-of-type(n+2) summary");
    let formatted = page.text_of("details[open] .body div pre:not(.raw)");
    assert!(formatted.contains("\n  \"jsonrpc\": \"2.0\""), "{formatted}");
    page.click("details[open] .tools button");
    let raw = page.text_of("details[open] .body div pre.raw");
    assert!(raw.starts_with("{\"jsonrpc\":\"2.0\""), "{raw}");

    // The search is left, and filters add up.
    page.press("/");
    page.press("Escape");
    page.click("#filters button.chip.http");
    assert_eq!(page.evaluate("document.querySelectorAll('#list button').length"), 11);
    page.click("#filters button.chip.fail");
    assert_eq!(page.evaluate("document.querySelectorAll('#list button').length"), 5);
    page.click("#filters button.chip.sse");
    assert_eq!(page.evaluate("document.querySelectorAll('#list button').length"), 1);

    assert_eq!(page.complaints(), Vec::<&serde_json::Value>::new());
    let outside: Vec<&str> = page.requests().into_iter().filter(|url| !url.starts_with("file://")).collect();
    assert!(outside.is_empty(), "{outside:?}");
}

#[test]
fn what_a_server_wrote_stays_text() {
    let folder = tempfile::tempdir().unwrap();
    let file = report(folder.path());
    let mut page = Page::new();
    page.look(1280, 900, "light");
    page.open(&file);
    page.press("/");
    page.type_text("forged");
    page.press("Enter");
    let name = page.text_of("#detail h2");
    assert_eq!(name, "</script><script>document.title = 'forged'</script>\\u{202e}");
    page.evaluate("document.querySelectorAll('details').forEach((row) => { row.open = true; })");
    let body = page.evaluate("document.body.innerText");
    assert!(body.as_str().unwrap().contains("<img src=x onerror="), "{body}");
    assert!(!body.as_str().unwrap().contains('\u{202e}'));
    assert!(page.evaluate("document.title").as_str().unwrap().starts_with("mcproof: "));
    assert_eq!(page.evaluate("document.querySelectorAll('img').length"), 0);
    assert_eq!(page.evaluate("document.querySelectorAll('script').length"), 3);
    assert_eq!(page.complaints(), Vec::<&serde_json::Value>::new());
}

#[test]
fn the_page_fits_a_phone_and_a_desk_by_day_and_by_night() {
    let folder = tempfile::tempdir().unwrap();
    let file = report(folder.path());
    // The pictures are for looking at.
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&pictures).unwrap();
    let mut page = Page::new();
    for (size, width, height) in [("narrow", 390, 844), ("wide", 1360, 900)] {
        for scheme in ["light", "dark"] {
            page.look(width, height, scheme);
            page.open(&file);
            for (view, hash) in [("list", "#list"), ("test", "#test-3"), ("overview", "#overview")] {
                page.evaluate(&format!(
                    "new Promise((done) => {{ location.hash = {hash:?}; requestAnimationFrame(() => requestAnimationFrame(done)); }})"
                ));
                if view == "test" {
                    page.evaluate("document.querySelector('details.frame').open = true");
                }
                let overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth");
                assert!(overflow.as_i64().unwrap() <= 0, "{size} {scheme} {view} is {overflow} pixels too wide");
                std::fs::write(pictures.join(format!("{view}-{size}-{scheme}.png")), page.picture()).unwrap();
            }
            let background = page.evaluate("getComputedStyle(document.body).backgroundColor");
            assert_eq!(background.as_str().unwrap() == "rgb(255, 255, 255)", scheme == "light", "{background}");
            assert_eq!(page.complaints(), Vec::<&serde_json::Value>::new());
        }
    }
}
