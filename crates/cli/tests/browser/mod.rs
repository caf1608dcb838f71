//! Drives a headless Chromium over the DevTools protocol, as far as the tests of pages need it. Knows no page.

#![allow(dead_code, reason = "each test binary uses its part of this")]

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tungstenite::{Message, WebSocket};

/// One page in a browser of its own. The browser ends with it.
pub(crate) struct Page {
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    next: u64,
    /// What the browser told besides answers, oldest first.
    pub(crate) events: Vec<Value>,
    process: Child,
    _profile: tempfile::TempDir,
}

/// Longer than any page takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

impl Page {
    pub(crate) fn new() -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut process = Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--hide-scrollbars", "--remote-debugging-port=0", "about:blank"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("chromium is installed: `apt-get install chromium`, or run `cargo xtask check`");
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
        let url =
            lines.find_map(|line| line.strip_prefix("DevTools listening on ").map(str::to_owned)).expect("chromium tells its address");
        // Its talk is read to the end, so that it never waits for us.
        std::thread::spawn(move || lines.for_each(drop));
        let authority = url.strip_prefix("ws://").unwrap().split('/').next().unwrap();
        let stream = TcpStream::connect(authority).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let (socket, _) = tungstenite::client(url.as_str(), stream).unwrap();
        let mut page = Self { socket, session: None, next: 0, events: Vec::new(), process, _profile: profile };
        let target = page.ask("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let session = page.ask("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        page.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.ask(&format!("{domain}.enable"), json!({}));
        }
        page
    }

    /// Opens a file and waits until it is loaded.
    pub(crate) fn open(&mut self, file: &Path) {
        self.visit(&format!("file://{}", file.display()));
    }

    /// Opens an address and waits until it is loaded.
    pub(crate) fn visit(&mut self, url: &str) {
        self.events.clear();
        self.ask("Page.navigate", json!({ "url": url }));
        self.wait_for_load();
    }

    /// Loads the page anew, and waits until that is done.
    pub(crate) fn reload(&mut self) {
        self.events.clear();
        self.ask("Page.reload", json!({}));
        self.wait_for_load();
    }

    /// Waits until a page is loaded that a click asked for.
    pub(crate) fn wait_for_load(&mut self) {
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let message = self.read();
            self.events.push(message);
        }
    }

    /// The value of an expression; a promise is awaited.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let answer = self.ask("Runtime.evaluate", json!({ "expression": expression, "returnByValue": true, "awaitPromise": true }));
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// The text of the first element that a selector finds, once there is one: pages draw when they get to it.
    pub(crate) fn text_of(&mut self, selector: &str) -> String {
        let look = format!(
            "new Promise((done) => {{ const look = () => {{ const found = document.querySelector({selector:?}); \
             if (found) done(found.textContent); else requestAnimationFrame(look); }}; look(); }})"
        );
        self.evaluate(&look).as_str().unwrap().to_owned()
    }

    /// Presses and releases a key, as a person would.
    pub(crate) fn press(&mut self, key: &str) {
        let text = if key.chars().count() == 1 { key } else { "" };
        let code = if key == "Enter" { 13 } else { 0 };
        let text = if key == "Enter" { "\r" } else { text };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            self.ask("Input.dispatchKeyEvent", json!({ "type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code }));
        }
    }

    pub(crate) fn type_text(&mut self, text: &str) {
        self.ask("Input.insertText", json!({ "text": text }));
    }

    /// A click of the mouse in the middle of the first element that a selector finds, once that stays where it is, and nothing covers it.
    pub(crate) fn click(&mut self, selector: &str) {
        let middle = format!(
            "new Promise((done) => {{ const until = performance.now() + 2000; let before = ''; const look = () => {{ \
             const found = document.querySelector({selector:?}); found.scrollIntoView({{ block: 'center' }}); \
             const box = found.getBoundingClientRect(); const at = [box.x + box.width / 2, box.y + box.height / 2]; \
             const rests = before === at.join() && found.contains(document.elementFromPoint(...at)); before = at.join(); \
             if (rests || performance.now() > until) done(at); else setTimeout(look, 20); }}; look(); }})"
        );
        let at = self.evaluate(&middle);
        for kind in ["mousePressed", "mouseReleased"] {
            self.ask("Input.dispatchMouseEvent", json!({ "type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1 }));
        }
    }

    /// A window of this size, with light or dark preferred.
    pub(crate) fn look(&mut self, width: u32, height: u32, scheme: &str) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.ask("Emulation.setDeviceMetricsOverride", metrics);
        self.ask("Emulation.setEmulatedMedia", json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] }));
    }

    /// A picture of what is seen, as PNG.
    pub(crate) fn picture(&mut self) -> Vec<u8> {
        use base64::Engine as _;
        let data = self.ask("Page.captureScreenshot", json!({ "format": "png" }));
        base64::engine::general_purpose::STANDARD.decode(data["data"].as_str().unwrap()).unwrap()
    }

    /// What the page complained of so far: exceptions, errors on the console, refused resources.
    pub(crate) fn complaints(&self) -> Vec<&Value> {
        let is_complaint = |event: &&Value| match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => true,
            "Runtime.consoleAPICalled" => matches!(event["params"]["type"].as_str(), Some("error" | "warning" | "assert")),
            "Log.entryAdded" => true,
            _ => false,
        };
        self.events.iter().filter(is_complaint).collect()
    }

    /// The addresses that were asked for.
    pub(crate) fn requests(&self) -> Vec<&str> {
        let sent = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        sent.filter_map(|event| event["params"]["request"]["url"].as_str()).collect()
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(message.to_string())).unwrap();
        loop {
            let mut answer = self.read();
            if answer["id"] == self.next {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    fn read(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.socket.read().expect("chromium answers within a minute") {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
