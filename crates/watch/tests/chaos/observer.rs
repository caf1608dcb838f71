//! Looks at the monitor from outside, as those would who have to notice that it is blind: asks `/healthz`, and counts what is in the
//! database.

use super::timeline::Timeline;
use sqlx::{AnyConnection, Connection as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(200);
/// Whoever does not answer for so long is not well.
const PATIENCE: Duration = Duration::from_millis(1_000);

/// What was seen, in its order. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Sights>>);

#[derive(Default)]
struct Sights {
    /// When new results were there.
    written: Vec<Duration>,
    /// When a dashboard did not answer 200; asked at that time.
    signs: Vec<Duration>,
    results: i64,
}

/// What each dashboard said last.
#[derive(Clone, Default)]
pub(crate) struct Health(Arc<AtomicBool>);

impl Health {
    pub(crate) fn is_well(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Nothing is known until it was asked again.
    pub(crate) fn forget(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Seen {
    pub(crate) fn results(&self) -> i64 {
        self.0.lock().unwrap().results
    }

    /// The longest times without a result and without a sign, the longest first: when each began, and how long it was.
    pub(crate) fn blindness(&self, beats: &[Duration], until: Duration) -> Vec<(Duration, Duration)> {
        let sights = self.0.lock().unwrap();
        let mut unseen: Vec<(Duration, Duration)> = sights
            .written
            .windows(2)
            .map(|pair| {
                let (from, to) = (pair[0], pair[1].min(until));
                let sign = sights.signs.iter().find(|sign| from < **sign && **sign < to).copied().unwrap_or(to);
                // Two that did not come, 5 s apart.
                let beat = beats.iter().rev().find(|beat| **beat <= from).map_or(to, |beat| *beat + Duration::from_secs(11));
                let is_silent = !beats.iter().any(|one| from < *one && *one < beat);
                let sign = if is_silent { sign.min(beat.max(from)) } else { sign };
                (from, sign.saturating_sub(from))
            })
            .collect();
        unseen.sort_by_key(|(_, length)| std::cmp::Reverse(*length));
        unseen
    }
}

/// Asks a dashboard for as long as the runtime lives.
pub(crate) async fn ask(address: SocketAddr, timeline: Timeline, seen: Seen, health: Health) {
    loop {
        let began = timeline.now();
        let answer = timeout(PATIENCE, health_of(address)).await;
        let is_well = matches!(answer, Ok(Ok(true)));
        health.0.store(is_well, Ordering::Relaxed);
        if !is_well {
            // It is told when somebody has waited for it.
            let at = if answer.is_err() { timeline.now() } else { began };
            seen.0.lock().unwrap().signs.push(at);
        }
        sleep(LOOK).await;
    }
}

async fn health_of(address: SocketAddr) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(answer.starts_with(b"HTTP/1.1 200"))
}

/// Counts results for as long as the runtime lives.
pub(crate) async fn count(address: String, timeline: Timeline, seen: Seen) {
    let mut connection: Option<AnyConnection> = None;
    let mut before = (0, 0);
    loop {
        sleep(LOOK).await;
        let counted = timeout(PATIENCE, async {
            let open = match connection.take() {
                Some(open) => open,
                None => AnyConnection::connect(&address).await?,
            };
            // Put back only when it has answered: what is left of a statement is nobody's.
            let mut open = open;
            let row: (i64, i64) = sqlx::query_as("SELECT count(*), COALESCE(MAX(at), 0) FROM result").fetch_one(&mut open).await?;
            connection = Some(open);
            Ok::<_, sqlx::Error>(row)
        });
        if let Ok(Ok(row)) = counted.await
            && row != before
        {
            before = row;
            let mut sights = seen.0.lock().unwrap();
            sights.written.push(timeline.now());
            sights.results = sights.results.max(row.0);
        }
    }
}
