//! The body of a request that goes out in two writes, a moment apart, so that it arrives in two segments. Knows bytes, not what they say.

use bytes::Bytes;
use hyper::body::{Body, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// Between the two pieces of a message: a server that is not busy has read the first one by then.
pub(super) const BETWEEN_PIECES: Duration = Duration::from_millis(50);

pub(super) struct CutBody {
    first: Option<Bytes>,
    /// Begins when the first piece is handed out.
    pause: Option<Pin<Box<Sleep>>>,
    second: Option<Bytes>,
}

impl CutBody {
    /// `at`: the byte with which the second piece begins.
    pub(super) fn new(body: Vec<u8>, at: usize) -> Self {
        let mut first = Bytes::from(body);
        let second = first.split_off(at.min(first.len()));
        Self { first: Some(first), pause: None, second: Some(second) }
    }
}

impl Body for CutBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(first) = self.first.take() {
            self.pause = Some(Box::pin(sleep(BETWEEN_PIECES)));
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(context));
            self.pause = None;
        }
        Poll::Ready(self.second.take().map(|second| Ok(Frame::data(second))))
    }

    fn is_end_stream(&self) -> bool {
        self.second.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    #[tokio::test(flavor = "current_thread")]
    async fn a_body_comes_in_two_pieces_and_is_whole() {
        for at in 0..=4 {
            let mut body = CutBody::new(b"four".to_vec(), at);
            let mut pieces = Vec::new();
            while let Some(Ok(frame)) = body.frame().await {
                pieces.push(frame.into_data().unwrap());
            }
            assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [at, 4 - at]);
            assert_eq!(pieces.concat(), b"four");
        }
    }
}
