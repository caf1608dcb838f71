//! The page with recorded sessions in it, as one file that opens without a server. Knows no trace files: whoever has frames hands them over.

use crate::assets;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcproof_record::Frame;
use serde_json::{Value, json};
use std::io::{self, Write};

/// A page that is being written.
pub struct Viewer<'a> {
    out: &'a mut dyn Write,
    version: &'static str,
}

/// A session of the page.
pub struct ShownSession {
    /// By which its frames name it.
    pub id: u64,
    pub title: String,
    pub transport: String,
}

/// A picture that stands below the sessions.
pub struct ShownPicture {
    name: String,
    /// The subtype of its media type.
    kind: &'static str,
    bytes: Vec<u8>,
}

impl ShownPicture {
    /// A file that every browser shows, by the end of its name; nothing for another one.
    pub fn of(name: &str, bytes: &[u8]) -> Option<Self> {
        let (_, end) = name.rsplit_once('.')?;
        let kind = match end.to_ascii_lowercase().as_str() {
            "png" => "png",
            "jpg" | "jpeg" => "jpeg",
            "gif" => "gif",
            "webp" => "webp",
            _ => return None,
        };
        Some(Self { name: name.to_owned(), kind, bytes: bytes.to_vec() })
    }
}

impl<'a> Viewer<'a> {
    /// Writes all that stands before the sessions.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn begin(out: &'a mut dyn Write, version: &'static str) -> io::Result<Self> {
        let script = inline(assets::script());
        let style = assets::style();
        // A policy of hashes: nothing else runs, whatever stands in the data, and nothing is fetched.
        let policy = format!(
            "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; media-src data:; base-uri 'none'; \
             form-action 'none'; require-trusted-types-for 'script'; trusted-types dompurify",
            hash(&script),
            hash(style)
        );
        write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"content-security-policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n<title>MCP trace</title>\n<style>{style}</style>\n\
             <script type=\"module\">{script}</script>\n</head>\n<body>\n<div id=\"app\"></div>\n\
             <noscript>This page shows a trace with a script of its own: allow scripts for it.</noscript>\n\
             <script type=\"application/x-ndjson\" id=\"recorded\">\n"
        )?;
        Ok(Self { out, version })
    }

    /// Frames of a session, in their order.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn frames(&mut self, session: u64, frames: &[Frame]) -> io::Result<()> {
        self.line(&json!({ "type": "frames", "session": session, "frames": frames }))
    }

    /// Names the sessions, shows the pictures that belong to them, and ends the page.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn end(mut self, sessions: &[ShownSession], pictures: &[ShownPicture]) -> io::Result<()> {
        let connections: Vec<Value> = sessions
            .iter()
            .map(|ShownSession { id, title, transport }| {
                json!({
                    "id": id,
                    "title": title,
                    "spec": crate::ServerSpec { name: title.clone(), transport: Some(transport.clone()), ..Default::default() },
                    "status": "recorded",
                    "diagnostic": null,
                    "sessions": [{ "id": id, "openedMs": 0, "handshake": null }],
                })
            })
            .collect();
        let overview =
            json!({ "type": "state", "revision": 1, "version": self.version, "connections": connections, "asks": [], "known": [] });
        self.line(&overview)?;
        self.out.write_all(b"</script>\n")?;
        if !pictures.is_empty() {
            self.out.write_all(b"<details id=\"attached\" open>\n<summary>Attached pictures</summary>\n")?;
            for picture in pictures {
                self.picture(picture)?;
            }
            self.out.write_all(b"</details>\n")?;
        }
        self.out.write_all(b"</body>\n</html>\n")?;
        self.out.flush()
    }

    fn picture(&mut self, ShownPicture { name, kind, bytes }: &ShownPicture) -> io::Result<()> {
        let (name, data) = (in_markup(name), STANDARD.encode(bytes));
        writeln!(
            self.out,
            "<figure>\n<figcaption>{name}</figcaption>\n<img src=\"data:image/{kind};base64,{data}\" alt=\"{name}\">\n</figure>"
        )
    }

    fn line(&mut self, line: &Value) -> io::Result<()> {
        // `<` stands in texts only, and no text may end the element that it stands in.
        let text = line.to_string().replace('<', "\\u003c");
        self.out.write_all(text.as_bytes())?;
        self.out.write_all(b"\n")
    }
}

/// A script as it may stand in a page: what HTML would read as markup is written with escapes, which mean the same in the texts and patterns
/// that it stands in.
fn inline(script: &str) -> String {
    script.replace("<!--", "\\x3c!--").replace("</script", "\\x3c/script").replace("<script", "\\x3cscript")
}

/// A text as it may stand in markup and its attributes.
fn in_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn hash(text: &str) -> String {
    STANDARD.encode(ring::digest::digest(&ring::digest::SHA256, text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcproof_record::{Direction, FrameBody, FrameId, Raw};
    use std::time::Duration;

    #[test]
    fn what_was_recorded_cannot_leave_its_place() {
        let mut out = Vec::new();
        let mut viewer = Viewer::begin(&mut out, "1").unwrap();
        let bytes = Raw::from(b"</script><script>alert(1)</script><!--".to_vec());
        let body = FrameBody::Line { bytes, unterminated: false };
        viewer.frames(1, &[Frame { id: FrameId(0), at: Duration::ZERO, direction: Direction::FromServer, body }]).unwrap();
        let session = ShownSession { id: 1, title: "</script>".to_owned(), transport: "stdio".to_owned() };
        viewer.end(&[session], &[ShownPicture::of("\"<script>.PNG", b"<script>").unwrap()]).unwrap();
        let page = String::from_utf8(out).unwrap();
        let picture = "<img src=\"data:image/png;base64,PHNjcmlwdD4=\" alt=\"&quot;&lt;script&gt;.PNG\">";
        assert!(page.contains(picture) && ShownPicture::of("server.log", b"").is_none());
        let page = page.to_ascii_lowercase();
        assert_eq!(page.matches("<script").count(), 2, "ours and the data");
        assert_eq!(page.matches("</script").count(), 2);
        assert!(!page.contains("<!--"));
        assert!(page.contains("\\u003c/script>"));
    }
}
