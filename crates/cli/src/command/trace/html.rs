//! A trace as one page that opens offline and has no script: each call can be opened. Text of a server is never markup.

use super::lines::{InOrder, header, shown};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcproof_record::Direction;
use mcproof_report::{escape_block, escape_line, html::TOKENS};
use mcproof_trace::calls::{Call, CallKind};
use mcproof_trace::export::ExportError;
use mcproof_trace::{CallStream, Ending, Item, SessionKey, Trace};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::Write;

const STYLE: &str = "
body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
summary { cursor: pointer; display: grid; grid-template-columns: 4rem 6rem 6rem 1fr auto; gap: .5rem; padding: .15rem .25rem; }
summary:hover { background: color-mix(in srgb, currentColor 8%, transparent); }
summary span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.n { text-align: right; font-variant-numeric: tabular-nums; opacity: .7; }
.bad { color: #c62828; font-weight: 600; }
details details, .in { margin-left: 1.5rem; }
pre { overflow: auto; max-height: 30rem; padding: .75rem; border: 1px solid color-mix(in srgb, currentColor 20%, transparent); border-radius: 6px; }
h2 { font-size: 1rem; margin: 2rem 0 .5rem; }
@media (prefers-color-scheme: dark) { .bad { color: #ff8a80; } }
";

/// Characters of a message.
const LONGEST_MESSAGE: usize = 200_000;

pub(super) fn write(trace: Trace, out: &mut dyn Write) -> Result<Ending, ExportError> {
    let style = format!("{TOKENS}{STYLE}");
    let hash = STANDARD.encode(Sha256::digest(style.as_bytes()));
    let command = escape(&escape_line(&trace.manifest().command.join(" "), 300));
    let started = escape(&escape_line(trace.manifest().started_at.as_deref().unwrap_or_default(), 40));
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"content-security-policy\" content=\"default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>MCP trace</title>\n<style>{style}</style>\n</head>\n<body>\n\
         <h1>MCP trace</h1>\n<p>{started} <code>mcproof {command}</code></p>\n"
    )?;
    let mut page = Page { out, session: None, depths: BTreeMap::new() };
    let (mut stream, mut order) = (CallStream::new(trace), InOrder::new());
    while let Some(item) = stream.next() {
        let Item::Call(call) = item? else { continue };
        for call in order.push(call.key, Some(*call)) {
            page.call(&call, &stream)?;
        }
    }
    for call in order.rest() {
        page.call(&call, &stream)?;
    }
    if stream.ending() == Ending::CutOff {
        writeln!(page.out, "<p class=\"bad\">The trace is cut off.</p>")?;
    }
    page.out.write_all(b"</body>\n</html>\n")?;
    page.out.flush()?;
    Ok(stream.ending())
}

struct Page<'a> {
    out: &'a mut dyn Write,
    session: Option<SessionKey>,
    depths: BTreeMap<u64, usize>,
}

impl Page<'_> {
    fn call(&mut self, call: &Call, stream: &CallStream) -> Result<(), ExportError> {
        if self.session != Some(call.session) {
            self.session = Some(call.session);
            writeln!(self.out, "<h2>{}</h2>", escape(&header(call.session, stream.session(call.session))))?;
        }
        let is_inside = call.parent.is_some_and(|parent| self.depths.contains_key(&parent.0));
        self.depths.insert(call.key.0, usize::from(is_inside));
        if self.depths.len() > 100_000 {
            self.depths.pop_first();
        }
        let arrow = if call.direction == Direction::ToServer { "→" } else { "←" };
        let target = call.target.as_deref().unwrap_or_default();
        let title = escape(&escape_line(&format!("{arrow} {} {target}", call.method), 200));
        let class = if call.status.is_error() { "bad" } else { "" };
        let duration = call.duration().filter(|_| call.kind != CallKind::Notification).map(shown).unwrap_or_default();
        writeln!(
            self.out,
            "<details class=\"{}\"><summary><span class=\"n\">{}</span><span class=\"n\">+{:.3}s</span><span class=\"n\">{duration}</span>\
             <span>{title}</span><span class=\"{class}\">{}</span></summary>",
            if is_inside { "in" } else { "" },
            call.key,
            call.start.as_secs_f64(),
            call.status.name(),
        )?;
        if let Some(message) = &call.message {
            writeln!(self.out, "<p class=\"{class}\">{}</p>", escape(&escape_line(message, 2_000)))?;
        }
        if let Some(http) = &call.http {
            let status = http.status.map_or_else(|| "no response".to_owned(), |status| status.to_string());
            writeln!(self.out, "<p><code>{}</code> {status}</p>", escape(&escape_line(&format!("{} {}", http.method, http.url), 500)))?;
        }
        for message in [Some(&call.request), call.response.as_ref()].into_iter().flatten().filter(|message| !message.is_empty()) {
            let pretty = serde_json::from_slice::<Value>(message.as_bytes()).map(|value| format!("{value:#}"));
            let text: String = pretty.unwrap_or_else(|_| message.to_text().into_owned()).chars().take(LONGEST_MESSAGE).collect();
            writeln!(self.out, "<pre>{}</pre>", escape(&escape_block(&text)))?;
        }
        Ok(writeln!(self.out, "</details>")?)
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}
