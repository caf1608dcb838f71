//! Where jobs report in. The token in the path is all that a job has to know; of wrong ones nothing is told, and they are limited.

use super::{Peer, State};
use crate::config::TargetKind;
use crate::push::Said;
use crate::store::Store;
use crate::web::guard::same;
use axum::body::{Body, BodyDataStream};
use axum::extract::{Extension, Path, State as Shared};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use std::time::Duration;
use tokio::time::timeout;

/// Of what a job says beside its report, in bytes: more than is kept of it. The report itself stands in the path.
const LARGEST: usize = 64 * 1024;
/// So much more is read, so that whoever sends it hears the response.
const MOST_THROWN_AWAY: usize = 64 * 1024 * 1024;
/// For what is kept, and for what is not.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn succeeded(state: Shared<State>, peer: Option<Extension<Peer>>, Path(token): Path<String>, body: Body) -> Response {
    take(state, peer, &token, Said::Succeeded, body).await
}

pub(super) async fn other(
    state: Shared<State>,
    peer: Option<Extension<Peer>>,
    Path((token, word)): Path<(String, String)>,
    body: Body,
) -> Response {
    match said_by(&word) {
        Some(said) => take(state, peer, &token, said, body).await,
        None => (StatusCode::NOT_FOUND, "use `/start`, `/fail` or the exit code of the job\n").into_response(),
    }
}

/// As programs tell how they ended: on Windows with any number of 32 bits, which some print with a sign.
fn said_by(word: &str) -> Option<Said> {
    let digits = word.strip_prefix('-').unwrap_or(word);
    match word {
        "start" => Some(Said::Started),
        "fail" => Some(Said::Failed),
        _ if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) => None,
        _ if digits.bytes().all(|digit| digit == b'0') => Some(Said::Succeeded),
        _ => Some(Said::Failed),
    }
}

/// What a body begins with. What does not come, or takes too long, is no reason not to hear of the rest.
async fn beginning(parts: &mut BodyDataStream) -> Vec<u8> {
    let mut kept = Vec::new();
    let reading = async {
        while kept.len() < LARGEST
            && let Some(Ok(part)) = parts.next().await
        {
            kept.extend_from_slice(&part[..part.len().min(LARGEST - kept.len())]);
        }
    };
    // What has come until then is kept.
    let _ = timeout(PATIENCE, reading).await;
    kept
}

/// Most clients look for a response only after they have sent everything.
async fn throw_away(mut parts: BodyDataStream) {
    let mut thrown_away = 0;
    let reading = async {
        while thrown_away < MOST_THROWN_AWAY
            && let Some(Ok(part)) = parts.next().await
        {
            thrown_away += part.len();
        }
    };
    let _ = timeout(PATIENCE, reading).await;
}

async fn take(Shared(state): Shared<State>, peer: Option<Extension<Peer>>, token: &str, said: Said, body: Body) -> Response {
    let config = state.config();
    let mut found = None;
    for (name, spec) in &config.targets {
        if let TargetKind::Push { token: known, expectation } = &spec.kind
            && same(known.expose().as_bytes(), token.as_bytes())
        {
            found = Some((name, expectation));
        }
    }
    let Some((name, expectation)) = found else {
        if state.inner.refusals.count(peer.map(|Extension(peer)| peer), state.now()) {
            return (StatusCode::TOO_MANY_REQUESTS, "too many wrong tokens: wait a minute\n").into_response();
        }
        return (StatusCode::NOT_FOUND, "unknown job token\n").into_response();
    };
    let mut parts = body.into_data_stream();
    let body = beginning(&mut parts).await;
    let message = String::from_utf8_lossy(&body);
    let push = async |store: &Store| {
        let now = state.now();
        if said == Said::Started && expectation.overrun(&store.pushed(name).await?, now).is_some() {
            return Ok(());
        }
        store.push(name, said, message.trim(), now).await
    };
    // While another database stands in, jobs are judged by what that knows.
    let pushed = {
        let place = state.worker_health.keep_place().await;
        match state.worker_health.stand_in() {
            Some(Some(memory)) => push(&memory).await,
            _ => {
                drop(place);
                push(&state.store).await
            }
        }
    };
    throw_away(parts).await;
    match pushed {
        Ok(()) => "ok\n".into_response(),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the database does not accept it: send it again\n").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_but_zero_is_a_failure() {
        for (word, expected) in [
            ("start", Some(Said::Started)),
            ("fail", Some(Said::Failed)),
            ("0", Some(Said::Succeeded)),
            ("00", Some(Said::Succeeded)),
            ("1", Some(Said::Failed)),
            ("256", Some(Said::Failed)),
            ("-1", Some(Said::Failed)),
            ("3221225477", Some(Said::Failed)),
            ("99999999999999999999999", Some(Said::Failed)),
            ("", None),
            ("-", None),
            ("0x1", None),
            ("maybe", None),
        ] {
            assert_eq!(said_by(word), expected, "{word}");
        }
    }
}
