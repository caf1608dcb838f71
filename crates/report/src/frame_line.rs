//! One frame as one line, for `--verbose`. Knows frames, not messages.

use crate::{Charset, Color, Style, escape_line};
use mcproof_record::{Direction, Frame, FrameBody};

/// Columns of a frame: far more than a terminal has, because the traffic was requested.
const WIDTH: usize = 4000;

/// With its line feed.
pub fn frame_line(frame: &Frame, style: &Style) -> String {
    let (to, from, local) = match style.charset {
        Charset::Unicode => ("→", "←", "•"),
        Charset::Ascii => (">", "<", "-"),
    };
    let arrow = match frame.direction {
        Direction::ToServer => to,
        Direction::FromServer => from,
        Direction::Local => local,
    };
    let dim = match style.color {
        Color::Ansi => anstyle::Style::new().dimmed(),
        Color::Plain => anstyle::Style::new(),
    };
    let seconds = frame.at.as_secs_f64();
    format!("{dim}+{seconds:.3}s{dim:#} {arrow} {}\n", escape_line(&describe(&frame.body), WIDTH))
}

/// Whether a line was written by this module, and is not other output on stderr.
pub fn is_frame_line(text: &str) -> bool {
    let Some((time, said)) = text.split_once(' ') else { return false };
    let seconds = time.strip_prefix('+').and_then(|time| time.strip_suffix('s'));
    seconds.is_some_and(|seconds| seconds.parse::<f64>().is_ok()) && said.starts_with(['→', '←', '•', '>', '<', '-'])
}

fn describe(body: &FrameBody) -> String {
    match body {
        FrameBody::Line { bytes, unterminated: false } => bytes.to_text().into_owned(),
        FrameBody::Line { bytes, unterminated: true } => format!("{} (no line feed at its end)", bytes.to_text()),
        FrameBody::Stderr { bytes } => format!("stderr  {}", bytes.to_text()),
        FrameBody::Stdout { bytes } => format!("stdout  {}", bytes.to_text()),
        FrameBody::HttpRequest { method, url, headers, body, .. } => {
            let mut text = format!("{method} {url}{}", list(headers));
            if !body.is_empty() {
                text += &format!(" {}", body.to_text());
            }
            text
        }
        FrameBody::HttpResponse { status, headers, .. } => format!("{status}{}", list(headers)),
        FrameBody::HttpBody { bytes, .. } => bytes.to_text().into_owned(),
        FrameBody::SseEvent { bytes, .. } => format!("event  {}", bytes.to_text().trim_end()),
        FrameBody::HttpEnd { error: None, .. } => "end of the response".into(),
        FrameBody::HttpEnd { error: Some(error), .. } => format!("HTTP exchange failed: {error}"),
        FrameBody::Spawned { pid, command } => format!("started process {pid}: {}", command.join(" ")),
        FrameBody::Exited { code: Some(code), .. } => format!("server exited with code {code}"),
        FrameBody::Exited { signal: Some(signal), .. } => format!("server was terminated by signal {signal}"),
        FrameBody::Exited { .. } => "server ended".into(),
        FrameBody::Closed { pipe } => format!("{pipe} closed"),
        FrameBody::Signalled { signal } => format!("sent {signal} to the server"),
        FrameBody::Note { text } => text.clone(),
    }
}

fn list(headers: &[(String, String)]) -> String {
    headers.iter().map(|(name, value)| format!(" [{name}: {value}]")).collect()
}
