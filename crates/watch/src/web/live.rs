//! Follows what workers write to the store, whoever they are and wherever they run: tells open pages and the metrics. And says
//! whether the monitor itself is well.

use super::State;
use crate::moment::Moment;
use crate::otlp::Origin;
use crate::store::StoreFailure;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{self, Stream};
use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::sync::PoisonError;
use std::time::{Duration, Instant};
use tokio::sync::broadcast::error::RecvError;

/// Between two looks at the store.
const EVERY: Duration = Duration::from_secs(2);
/// Names of one burst are told together.
const BURST: Duration = Duration::from_millis(500);
/// A result is looked for among the slots of this long, when one is new.
const RECENT: Duration = Duration::from_secs(600);
/// Without any result for this many intervals of the target that is probed most often, the monitor is not well.
const INTERVALS: i64 = 3;
/// A probe may take this long before it is missed.
const GRACE: Duration = Duration::from_secs(60);

/// What was seen last of each target and region.
#[derive(Default)]
struct Seen {
    /// Whether something is wrong with the monitor itself, or its file was not taken over.
    trouble: (bool, bool),
    at: HashMap<String, (Moment, Moment)>,
    results: HashMap<(String, String), (Moment, i64)>,
    incidents: BTreeSet<String>,
    began: bool,
}

/// For as long as we serve.
pub(super) async fn follow(state: &State) {
    let mut seen = Seen::default();
    loop {
        // A store that does not answer now may do so later; `/healthz` tells of it.
        let looked = look(state, &mut seen).await;
        *state.inner.unread.lock().unwrap_or_else(PoisonError::into_inner) = looked.err().map(|failure| failure.to_string());
        tokio::time::sleep(EVERY).await;
    }
}

/// Tells a collector, if there is one, for as long as we serve.
pub(super) async fn export(state: &State) {
    loop {
        tokio::time::sleep(crate::otlp::EVERY).await;
        let Some(root) = state.config().otlp.clone() else { continue };
        // A collector that is gone must not trouble the monitor: what it did not take waits.
        if let Ok(readings) = crate::metrics::read(state).await {
            let origin = Origin { instance: state.instance.clone(), began: state.inner.started };
            let (spans, counted) = (&state.inner.spans, state.metrics.counted());
            let exported = crate::otlp::export(&root, &state.network, spans, &readings, &counted, &origin, state.now()).await;
            state.metrics.exported(exported.err().as_ref());
        }
    }
}

async fn look(state: &State, seen: &mut Seen) -> Result<(), StoreFailure> {
    let mut changed = Vec::new();
    // Pages that are open say so as well as those that are opened.
    let trouble = (state.worker_health.report().trouble.is_some(), state.worker_health.rejection().is_some());
    if trouble != seen.trouble {
        seen.trouble = trouble;
        let _ = state.bell.send("*".to_owned());
    }
    let live = state.live();
    for target in live.freshness().await? {
        if seen.at.get(&target.name) != Some(&target.last) {
            seen.at.insert(target.name.clone(), target.last);
            changed.push(target.name);
        }
    }
    if !changed.is_empty() {
        *state.inner.news.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
    let news = live.results_since(&changed, state.now() - RECENT).await?;
    for result in news {
        let key = (result.target.clone(), result.region.clone());
        let position = (result.slot, result.attempt);
        if seen.results.get(&key).is_none_or(|last| *last < position) {
            seen.results.insert(key, position);
            // What was there before us was counted by whoever was there.
            if seen.began {
                state.metrics.observe(&result);
                if state.config().otlp.is_some() {
                    state.inner.spans.push(&result);
                }
            }
        }
    }
    let open = live.incidents(crate::store::read::Which::Open, None, 1_000).await?;
    if !state.stands_in() {
        let about = open.iter().map(|incident| (incident.id.clone(), (incident.subject.clone(), incident.class)));
        *state.inner.open.lock().unwrap_or_else(PoisonError::into_inner) = about.collect();
    }
    let open: BTreeSet<String> = open.into_iter().map(|incident| format!("{} {:?}", incident.id, incident.acknowledged)).collect();
    if open != seen.incidents {
        seen.incidents = open;
        changed.push("*".to_owned());
    }
    if seen.began {
        for name in changed {
            let _ = state.bell.send(name);
        }
    }
    seen.began = true;
    Ok(())
}

/// The names of targets of which something changed, in bursts, as JSON arrays. `*` is an incident, or that some were lost.
pub(super) async fn events(Shared(state): Shared<State>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let bell = state.bell.subscribe();
    let closing = state.inner.closing.subscribe();
    let stream = stream::unfold((bell, closing), |(mut bell, mut closing)| async move {
        let first = tokio::select! {
            first = bell.recv() => first,
            () = super::closed(&mut closing) => return None,
        };
        let mut names = BTreeSet::new();
        match first {
            Ok(name) => names.insert(name),
            Err(RecvError::Lagged(_)) => names.insert("*".to_owned()),
            Err(RecvError::Closed) => return None,
        };
        let end = tokio::time::Instant::now() + BURST;
        while let Ok(next) = tokio::time::timeout_at(end, bell.recv()).await {
            match next {
                Ok(name) => names.insert(name),
                Err(RecvError::Lagged(_)) => names.insert("*".to_owned()),
                Err(RecvError::Closed) => break,
            };
        }
        let event = Event::default().event("changed").data(serde_json::json!(names).to_string());
        Some((Ok(event), (bell, closing)))
    });
    Sse::new(stream).keep_alive(KeepAlive::new().interval(Duration::from_secs(15)))
}

/// 200 as long as the database answers, results are written and pages are taken. A file that was not taken over is told, and is no reason
/// to start the process anew: that would end with the mistakes of the file.
pub(super) async fn health(Shared(state): Shared<State>) -> Response {
    let (status, told) = match problem(&state).await {
        // Everybody may ask: what is wrong with the file is told on the dashboard.
        None if state.worker_health.rejection().is_some() => {
            (StatusCode::OK, "ok, with an earlier version of the configuration: the file was not applied\n".to_owned())
        }
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    };
    (status, told).into_response()
}

fn unanswered(why: &str) -> String {
    format!("the database does not respond: {}", super::shown::plain(why))
}

async fn problem(state: &State) -> Option<String> {
    if let Some(why) = state.worker_health.report().problem() {
        return Some(super::shown::plain(&why));
    }
    let targets = match state.store.freshness().await {
        Ok(targets) => targets,
        Err(failure) => return Some(unanswered(&failure.to_string())),
    };
    // At the start what is due has waited for us.
    if state.now() > state.inner.started + GRACE {
        match state.store.unprobed_regions(state.now()).await {
            Ok(unprobed) if unprobed.is_empty() => {}
            Ok(unprobed) => return Some(format!("nobody probes from {}", unprobed.join(", "))),
            Err(failure) => return Some(unanswered(&failure.to_string())),
        }
    }
    // Whatever is monitored now, or nothing.
    match state.store.overdue_page(state.now()).await {
        Ok(None) => {}
        Ok(Some(waited)) => return Some(format!("no channel accepted the alert for {}", super::shown::span(waited))),
        Err(failure) => return Some(unanswered(&failure.to_string())),
    }
    if let Some(why) = &*state.inner.unread.lock().unwrap_or_else(PoisonError::into_inner) {
        return Some(unanswered(why));
    }
    let shortest = targets.iter().map(|target| target.every).min()?;
    let patience = Duration::from_millis(u64::try_from(shortest.saturating_mul(INTERVALS)).unwrap_or(0)) + GRACE;
    // What is inconclusive says nothing about a target, but it was written.
    let silence = state.inner.news.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
    (silence > patience).then(|| format!("no result has been written for {}", super::shown::span(silence)))
}
