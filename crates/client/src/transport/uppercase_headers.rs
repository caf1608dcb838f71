//! A connection that carries one request, the names of its headers in capitals, which hyper would not write. Knows where the
//! head of a request ends, and nothing of what is in it.

use hyper::rt::{Read, ReadBufCursor, Write};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

pub(super) struct UppercaseHeaders<S> {
    inner: S,
    place: HeadPosition,
}

/// Where in a request the next byte belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadPosition {
    /// Up to the end of the line: the first line, or the value of a header.
    Rest,
    Start,
    Name,
    /// The head is over.
    Body,
}

impl HeadPosition {
    /// The byte as it goes out, and the place after it.
    fn write(self, byte: u8) -> (u8, Self) {
        match (self, byte) {
            (Self::Body, _) => (byte, Self::Body),
            (_, b'\n') if self == Self::Start => (byte, Self::Body),
            (_, b'\n') => (byte, Self::Start),
            (Self::Start, b'\r') => (byte, Self::Start),
            (Self::Rest, _) | (_, b':') => (byte, Self::Rest),
            (Self::Start | Self::Name, _) => (byte.to_ascii_uppercase(), Self::Name),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> Vec<u8> {
        let written = bytes.iter().map(|byte| {
            let (byte, next) = self.write(*byte);
            *self = next;
            byte
        });
        written.collect()
    }
}

impl<S> UppercaseHeaders<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner, place: HeadPosition::Rest }
    }
}

impl<S: Read + Unpin> Read for UppercaseHeaders<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, into)
    }
}

impl<S: Write + Unpin> Write for UppercaseHeaders<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.place == HeadPosition::Body {
            return Pin::new(&mut self.inner).poll_write(context, bytes);
        }
        let mut place = self.place;
        let changed = place.write_all(bytes);
        let written = std::task::ready!(Pin::new(&mut self.inner).poll_write(context, &changed))?;
        // Only what was taken counts: the rest comes again.
        self.place.write_all(&bytes[..written]);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_headers_become_capitals_and_nothing_else() {
        let whole = "POST /mcp HTTP/1.1\r\nhost: Here:80\r\nmcp-method: tools/list\r\nempty:\r\n\r\n{\"a\": \"b\"}\r\nmore: x\r\n\r\n";
        let expected = "POST /mcp HTTP/1.1\r\nHOST: Here:80\r\nMCP-METHOD: tools/list\r\nEMPTY:\r\n\r\n{\"a\": \"b\"}\r\nmore: x\r\n\r\n";
        for split in 0..whole.len() {
            let mut place = HeadPosition::Rest;
            let mut written = place.write_all(&whole.as_bytes()[..split]);
            written.extend(place.write_all(&whole.as_bytes()[split..]));
            assert_eq!(String::from_utf8_lossy(&written), expected, "split at {split}");
        }
    }
}
