//! Where jobs report in. The token in the path is all that a job has to know; of wrong ones nothing is told, and they are limited.

use super::{Peer, State};
use crate::config::TargetKind;
use crate::push::Said;
use crate::store::Store;
use crate::web::guard::same;
use axum::body::Bytes;
use axum::extract::{Extension, Path, State as Shared};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};

/// Of what a job says beside its report, in bytes.
pub(super) const LARGEST: usize = 64 * 1024;

pub(super) async fn succeeded(state: Shared<State>, peer: Option<Extension<Peer>>, Path(token): Path<String>, body: Bytes) -> Response {
    take(state, peer, &token, Said::Succeeded, &body).await
}

pub(super) async fn other(
    state: Shared<State>,
    peer: Option<Extension<Peer>>,
    Path((token, word)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    // As programs tell how they ended.
    let said = match word.as_str() {
        "start" => Said::Started,
        "fail" => Said::Failed,
        "0" => Said::Succeeded,
        code if code.parse::<u8>().is_ok() => Said::Failed,
        _ => return (StatusCode::NOT_FOUND, "use `/start`, `/fail` or the exit code of the job\n").into_response(),
    };
    take(state, peer, &token, said, &body).await
}

async fn take(Shared(state): Shared<State>, peer: Option<Extension<Peer>>, token: &str, said: Said, body: &[u8]) -> Response {
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
    let message = String::from_utf8_lossy(body);
    let push = async |store: &Store| {
        let now = state.now();
        if said == Said::Started && expectation.overrun(&store.pushed(name).await?, now).is_some() {
            return Ok(());
        }
        store.push(name, said, message.trim(), now).await
    };
    // While another database stands in, jobs are judged by what that knows.
    let place = state.worker_health.keep_place().await;
    let pushed = match state.worker_health.stand_in() {
        Some(Some(memory)) => push(&memory).await,
        _ => {
            drop(place);
            push(&state.store).await
        }
    };
    match pushed {
        Ok(()) => "ok\n".into_response(),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the database does not accept it: send it again\n").into_response(),
    }
}
