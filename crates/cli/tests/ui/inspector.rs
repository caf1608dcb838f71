//! A page that `mcproof` serves, and hands for it.

#![allow(dead_code, reason = "each test binary uses its part of this")]

use crate::browser::Page;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything takes on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// An inspector; it ends with this.
pub(crate) struct Inspector {
    process: Child,
    pub(crate) url: String,
    /// Where it was started.
    pub(crate) folder: tempfile::TempDir,
}

impl Inspector {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), "ui", arguments)
    }

    /// Of a command that serves the page, in a folder of its own.
    pub(crate) fn start_in(state: tempfile::TempDir, command: &str, arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_mcproof"))
            .args([command, "--no-open", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .current_dir(state.path())
            .env("XDG_STATE_HOME", state.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(url.contains("#token="), "the address of the page is printed: {url:?}");
        Self { process, url: url.trim().to_owned(), folder: state }
    }

    pub(crate) fn authority(&self) -> &str {
        self.url.strip_prefix("http://").unwrap().split('/').next().unwrap()
    }

    pub(crate) fn token(&self) -> &str {
        self.url.split_once("#token=").unwrap().1
    }

    /// Sends these bytes, and gives the status of the response and the rest of it.
    pub(crate) fn send(&self, request: &str) -> (u16, String) {
        send_to(self.authority(), request)
    }
}

pub(crate) fn send_to(authority: &str, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(authority).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response);
    let text = String::from_utf8_lossy(&response).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    (status, text)
}

impl Drop for Inspector {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(10) {
            if let Ok(Some(_)) = self.process.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until an expression is true in the page.
/// The page of a server in Python, which is written into a folder of its own, once it is open.
pub(crate) fn opened_on(file: &str, server: &str) -> (Inspector, Page) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(file), server).unwrap();
    let inspector = Inspector::start_in(folder, "ui", &["--", "python3", file]);
    let mut page = Page::new();
    page.look(1440, 900, "light");
    page.visit(&inspector.url);
    wait_for(&mut page, "document.querySelector('[data-testid=overview]')?.dataset.status === 'open'");
    (inspector, page)
}

pub(crate) fn wait_for(page: &mut Page, condition: &str) {
    let look = format!(
        "new Promise((done) => {{ const until = performance.now() + 50000; const look = () => {{ let found = false; \
         try {{ found = Boolean({condition}); }} catch {{ }} \
         if (found || performance.now() > until) done(found); else setTimeout(look, 30); }}; look(); }})"
    );
    let found = page.evaluate(&look);
    assert_eq!(found, Value::Bool(true), "{condition}: {}", page.evaluate("document.body.innerText.slice(0, 3000)"));
}

pub(crate) fn id(name: &str) -> String {
    format!("[data-testid={name}]")
}

pub(crate) fn click(page: &mut Page, name: &str) {
    wait_for(page, &format!("document.querySelector('{}')", id(name)));
    page.click(&id(name));
}

pub(crate) fn open_tool(page: &mut Page, tool: &str) {
    click(page, "nav-tools");
    // Of a long list only the rows exist that are seen.
    fill(page, ".side-search input", tool);
    let row = format!(
        "[...document.querySelectorAll('[data-testid=items-tools] .row')].find((row) => row.querySelector('.offer-name').textContent === '{tool}')"
    );
    wait_for(page, &row);
    page.evaluate(&format!("{row}.click()"));
    page.evaluate(
        "(() => { const search = document.querySelector('.side-search input'); search.value = ''; \
         search.dispatchEvent(new Event('input', { bubbles: true })); })()",
    );
    wait_for(page, &format!("document.querySelector('[data-testid=tool] h1').textContent === '{tool}'"));
}

/// Types into a field, as a person would.
pub(crate) fn fill(page: &mut Page, selector: &str, text: &str) {
    wait_for(page, &format!("document.querySelector('{selector}')"));
    page.evaluate(&format!("document.querySelector('{selector}').focus(); document.querySelector('{selector}').select?.()"));
    page.type_text(text);
}

/// Chooses an option of a field.
pub(crate) fn choose(page: &mut Page, field: &str, value: &str) {
    page.evaluate(&format!(
        "(() => {{ const field = document.querySelector('[data-testid={field}]'); field.value = '{value}'; \
         field.dispatchEvent(new Event('change', {{ bubbles: true }})); }})()"
    ));
}

/// What axe finds wrong by WCAG 2.2 AA in what is shown. The frame of an app is the app's own matter.
pub(crate) fn violations(page: &mut Page) -> Value {
    let axe = crate::peers::root().join("crates/ui/web/node_modules/axe-core/axe.min.js");
    let axe = std::fs::read_to_string(&axe).expect("axe-core is installed: run `cargo xtask web --check`");
    page.evaluate(&format!("if (!window.axe) {{ {axe} }}; true"));
    page.evaluate(
        "axe.run({ exclude: ['.app-frame'] }, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'], iframes: false }).then((found) => \
         found.violations.map((one) => one.id + ': ' + one.nodes.map((node) => node.html + ' ' + node.failureSummary).slice(0, 3).join(' | ')))",
    )
}
