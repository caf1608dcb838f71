//! Splits bytes into lines. Knows newlines, not JSON.

use std::io;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// What comes next on a stream of lines. The line feed itself is not part of a line; a carriage return is.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    Whole(&'a [u8]),
    /// The stream ended without a line feed.
    Unterminated(&'a [u8]),
    /// The line is longer than the limit; this is its beginning. What follows up to the line feed is skipped.
    TooLong(&'a [u8]),
    End,
}

/// Reads lines of at most `limit` bytes. `next` may be canceled at any time: bytes that were read stay in the reader.
pub struct LineReader<R> {
    source: R,
    buffer: Vec<u8>,
    /// Start of what has not been handed out.
    start: usize,
    /// Up to where the search for a line feed has come.
    searched: usize,
    limit: usize,
    skipping: bool,
}

const CHUNK: usize = 64 << 10;

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub fn new(source: R, limit: usize) -> Self {
        Self { source, buffer: Vec::new(), start: 0, searched: 0, limit, skipping: false }
    }

    /// The line that has begun and not ended.
    pub fn begun(&self) -> Option<&[u8]> {
        Some(&self.buffer[self.start..]).filter(|begun| !begun.is_empty())
    }

    pub async fn next(&mut self) -> io::Result<Line<'_>> {
        loop {
            if let Some(offset) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let (start, end) = (self.start, self.searched + offset);
                self.start = end + 1;
                self.searched = self.start;
                if std::mem::take(&mut self.skipping) {
                    continue;
                }
                return Ok(match end - start > self.limit {
                    true => Line::TooLong(&self.buffer[start..start + self.limit]),
                    false => Line::Whole(&self.buffer[start..end]),
                });
            }
            self.searched = self.buffer.len();
            if self.skipping {
                self.start = self.searched;
            } else if self.searched - self.start > self.limit {
                let start = self.start;
                self.start = self.searched;
                self.skipping = true;
                return Ok(Line::TooLong(&self.buffer[start..start + self.limit]));
            }
            self.make_room();
            if self.source.read_buf(&mut self.buffer).await? == 0 {
                let start = self.start;
                self.start = self.buffer.len();
                self.searched = self.start;
                return Ok(match start == self.start || self.skipping {
                    true => Line::End,
                    false => Line::Unterminated(&self.buffer[start..]),
                });
            }
        }
    }

    /// Moves what is open to the front, and gives memory back after a long line.
    fn make_room(&mut self) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
            if self.buffer.capacity() > 4 * CHUNK && self.buffer.len() < CHUNK {
                self.buffer.shrink_to(CHUNK);
            }
        }
        if self.buffer.capacity() - self.buffer.len() < CHUNK / 4 {
            self.buffer.reserve(CHUNK.max(self.buffer.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio::io::ReadBuf;

    /// Gives its chunks one read each.
    struct Chunks(VecDeque<Vec<u8>>);

    impl AsyncRead for Chunks {
        fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            if let Some(chunk) = self.0.pop_front() {
                into.put_slice(&chunk);
            }
            Poll::Ready(Ok(()))
        }
    }

    async fn lines(chunks: impl IntoIterator<Item = &[u8]>, limit: usize) -> Vec<String> {
        let mut reader = LineReader::new(Chunks(chunks.into_iter().filter(|chunk| !chunk.is_empty()).map(<[u8]>::to_vec).collect()), limit);
        let mut found = Vec::new();
        loop {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            found.push(match reader.next().await.unwrap() {
                Line::Whole(bytes) => text(bytes),
                Line::Unterminated(bytes) => text(bytes) + "…",
                Line::TooLong(bytes) => text(bytes) + "!",
                Line::End => return found,
            });
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn lines_are_the_same_wherever_the_stream_is_cut() {
        let check = async |input: &str, expected: &[&str]| {
            let input = input.as_bytes();
            for first in 0..=input.len() {
                for second in first..=input.len() {
                    let found = lines([&input[..first], &input[first..second], &input[second..]], 8).await;
                    assert_eq!(found, expected, "cut at {first} and {second}");
                }
            }
        };
        check("", &[]).await;
        check("a\nbc\n", &["a", "bc"]).await;
        check("a\r\n\n b", &["a\r", "", " b…"]).await;
        check("12345678\n123456789\nx\n", &["12345678", "12345678!", "x"]).await;
        check("123456789abcdef", &["12345678!"]).await;
    }

    proptest! {
        #[test]
        fn any_chunks_give_the_lines_of_the_whole_stream(
            bytes in prop::collection::vec(prop::sample::select(b"ab\r\n\n\xff".to_vec()), 0..200),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).chain([0, bytes.len()]).collect();
            cuts.sort_unstable();
            let chunks = cuts.windows(2).map(|ends| &bytes[ends[0]..ends[1]]);
            prop_assert_eq!(runtime.block_on(lines(chunks, 8)), runtime.block_on(lines([&bytes[..]], 8)));
        }
    }
}
