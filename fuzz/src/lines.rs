//! Lines are the same wherever the stream is cut, and equal those of a plain split.

use crate::pieces;
use mcproof_client::transport::{Line, LineReader};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, ReadBuf};

const LIMIT: usize = 24;

/// # Panics
/// If the property does not hold.
pub fn check(bytes: &[u8]) {
    let (pieces, whole) = pieces(bytes);
    assert_eq!(lines(pieces), expected(whole));
}

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Whole(Vec<u8>),
    Unterminated(Vec<u8>),
    TooLong(Vec<u8>),
}

fn lines<'a>(pieces: impl Iterator<Item = &'a [u8]> + Unpin) -> Vec<Seen> {
    let mut reader = LineReader::new(Pieces(pieces), LIMIT);
    let mut seen = Vec::new();
    loop {
        let mut next = pin!(reader.next());
        let Poll::Ready(Ok(line)) = next.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            unreachable!("the pieces are always ready and never fail");
        };
        seen.push(match line {
            Line::Whole(bytes) => Seen::Whole(bytes.to_vec()),
            Line::Unterminated(bytes) => Seen::Unterminated(bytes.to_vec()),
            Line::TooLong(bytes) => Seen::TooLong(bytes.to_vec()),
            Line::End => return seen,
        });
    }
}

fn expected(whole: &[u8]) -> Vec<Seen> {
    let mut lines: Vec<&[u8]> = whole.split(|byte| *byte == b'\n').collect();
    let last = lines.pop().unwrap_or_default();
    let bounded = |line: &[u8], within: fn(Vec<u8>) -> Seen| match line.get(..LIMIT) {
        Some(beginning) if line.len() > LIMIT => Seen::TooLong(beginning.to_vec()),
        _ => within(line.to_vec()),
    };
    let last = (!last.is_empty()).then(|| bounded(last, Seen::Unterminated));
    lines.into_iter().map(|line| bounded(line, Seen::Whole)).chain(last).collect()
}

/// A stream that returns one piece per read.
struct Pieces<I>(I);

impl<'a, I: Iterator<Item = &'a [u8]> + Unpin> AsyncRead for Pieces<I> {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Some(piece) = self.0.next() {
            into.put_slice(piece);
        }
        Poll::Ready(Ok(()))
    }
}
