//! The output of a hostile server: frames messages for its transport, or writes raw bytes. Knows no attack.

use std::io::{self, Write};
use std::thread::sleep;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Lines,
    /// Server-sent events; the head of the response has been sent.
    Events,
    /// An HTTP response whose head has not been sent. Messages make it an event stream.
    Response,
}

/// The channel to the client.
pub(super) struct Wire {
    out: Box<dyn Write>,
    framing: Framing,
}

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

impl Wire {
    pub(super) fn new(out: Box<dyn Write>, framing: Framing) -> Self {
        Self { out, framing }
    }

    pub(super) fn is_response(&self) -> bool {
        self.framing == Framing::Response
    }

    /// One message, framed.
    pub(super) fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.send_all([message])
    }

    /// Messages in as few writes as possible, so that the client finds them together.
    pub(super) fn send_all<'a>(&mut self, messages: impl IntoIterator<Item = &'a [u8]>) -> io::Result<()> {
        const BATCH: usize = 64 << 10;
        self.open_stream()?;
        let mut bytes = Vec::new();
        for message in messages {
            match self.framing {
                Framing::Lines => bytes.extend([message, b"\n"].concat()),
                Framing::Events | Framing::Response => bytes.extend([b"data: ", message, b"\n\n"].concat()),
            }
            if bytes.len() > BATCH {
                self.raw(&bytes)?;
                bytes.clear();
            }
        }
        self.raw(&bytes)
    }

    /// The beginning of a message, without its end.
    pub(super) fn begin(&mut self, beginning: &[u8]) -> io::Result<()> {
        self.open_stream()?;
        if self.framing != Framing::Lines {
            self.raw(b"data: ")?;
        }
        self.raw(beginning)
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.out.flush()
    }

    /// Repeats bytes until the client disconnects, or until this many are written.
    pub(super) fn repeat(&mut self, bytes: &[u8], most: u64) -> io::Result<()> {
        let bytes = bytes.repeat((64 << 10) / bytes.len());
        for _ in 0..most / bytes.len() as u64 {
            self.raw(&bytes)?;
        }
        Ok(())
    }

    /// Writes a byte at intervals.
    pub(super) fn drip(&mut self, byte: u8) -> io::Result<()> {
        loop {
            self.raw(&[byte])?;
            sleep(Duration::from_millis(20));
        }
    }

    /// Keeps the connection open and sends nothing.
    pub(super) fn stay(&mut self) -> ! {
        loop {
            sleep(Duration::from_secs(3600));
        }
    }

    pub(super) fn open_stream(&mut self) -> io::Result<()> {
        if self.framing == Framing::Response {
            self.raw(STREAM.as_bytes())?;
            self.framing = Framing::Events;
        }
        Ok(())
    }
}
