//! What happens, as a stream of JSON lines that begins with all that there is: the overview whenever it changes, and frames in batches. A page
//! that reads slowly misses nothing, because it is what was recorded that is read, and not a queue.

use crate::connection::Recorded;
use crate::hub::Hub;
use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use mcproof_record::Frame;
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Frames of one line.
const BATCH_BYTES: usize = 512 << 10;
/// What happens within such a time is told together.
const BURST: Duration = Duration::from_millis(12);
/// How often a quiet stream shows that it lives.
const HEARTBEAT: Duration = Duration::from_secs(15);

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Line<'a> {
    State {
        #[serde(flatten)]
        overview: crate::hub::Overview,
    },
    Frames {
        session: u64,
        frames: &'a [Frame],
    },
    Alive,
}

struct Reader {
    hub: Arc<Hub>,
    bell: watch::Receiver<u64>,
    /// The revision that was told last.
    told: Option<u64>,
    /// The next frame of each session.
    next: HashMap<u64, u64>,
    lines: VecDeque<Bytes>,
}

pub(crate) fn stream(hub: Arc<Hub>) -> Response {
    let mut bell = hub.bell();
    bell.mark_changed();
    let reader = Reader { hub, bell, told: None, next: HashMap::new(), lines: VecDeque::new() };
    let lines = futures_util::stream::unfold(reader, |mut reader| async move {
        let line = reader.line().await;
        Some((Ok::<_, Infallible>(line), reader))
    });
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response()
}

impl Reader {
    async fn line(&mut self) -> Bytes {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return line;
            }
            self.look();
            if !self.lines.is_empty() {
                continue;
            }
            match timeout(HEARTBEAT, self.bell.changed()).await {
                // The hub, which is held here, has the sender.
                Ok(_) => sleep(BURST).await,
                Err(_) => return encoded(&Line::Alive),
            }
        }
    }

    /// Collects what is new. What rings meanwhile is collected next time.
    fn look(&mut self) {
        self.bell.mark_unchanged();
        let (revision, sessions) = {
            let state = self.hub.state();
            let sessions: Vec<Recorded> = state.connections.iter().flat_map(|connection| connection.sessions.iter().cloned()).collect();
            (state.revision, sessions)
        };
        if self.told != Some(revision) {
            let overview = self.hub.overview();
            self.told = Some(overview.revision);
            self.lines.push_back(encoded(&Line::State { overview }));
        }
        self.next.retain(|id, _| sessions.iter().any(|session| session.id == *id));
        for Recorded { id, frames, .. } in sessions {
            let next = self.next.entry(id).or_default();
            let batch = frames.from(*next, BATCH_BYTES);
            let Some(last) = batch.last() else { continue };
            *next = last.id.0 + 1;
            self.lines.push_back(encoded(&Line::Frames { session: id, frames: &batch }));
            // There may be more of it.
            self.bell.mark_changed();
        }
    }
}

fn encoded(line: &Line<'_>) -> Bytes {
    let mut text = serde_json::to_vec(line).expect("lines have text keys only");
    text.push(b'\n');
    text.into()
}
