//! HTTP+SSE of 2024-11-05: a stream at `/sse` that says first where to post, and brings every answer.

use super::reply::{Body, Responded, open_stream};
use super::{HttpKind, Visit, empty, guard, not_allowed, text};
use crate::mock::player::{Started, play_after};
use crate::mock::server::{MessageKind, kind};
use crate::mock::session::Session;
use crate::mock::stdio;
use bytes::Bytes;
use hyper::{Method, Response};
use mcproof_record::read_message;
use serde_json::Value;
use std::sync::Arc;

pub(super) const PATH: &str = "/sse";
const MESSAGES: &str = "/messages";
const SESSION: &str = "session=";

pub(super) async fn route(visit: Visit<'_>, method: &Method, path: &str, query: &str) -> Responded {
    debug_assert_eq!(visit.site.kind, HttpKind::Sse);
    match (path, method) {
        (PATH, &Method::GET) => Ok(open(&visit)),
        (MESSAGES, &Method::POST) => Ok(post(&visit, query).await),
        (PATH | MESSAGES, _) => Ok(not_allowed()),
        _ => Ok(text(404, "not found: the event stream is at /sse")),
    }
}

fn open(visit: &Visit<'_>) -> Response<Body> {
    let session = Session::new(uuid::Uuid::new_v4().to_string());
    visit.site.keep(Arc::clone(&session));
    let endpoint = Bytes::from(format!("event: endpoint\ndata: {MESSAGES}?{SESSION}{}\n\n", session.id));
    open_stream(visit.site, session, Some(endpoint))
}

async fn post(visit: &Visit<'_>, query: &str) -> Response<Body> {
    let id = query.split('&').find_map(|part| part.strip_prefix(SESSION)).unwrap_or_default();
    let Some(session) = visit.site.session(id) else {
        return text(404, "this session is unknown or has ended");
    };
    if !guard::is_json(&visit.headers) {
        return text(415, "messages are application/json");
    }
    let mock = &visit.site.mock;
    let Some(outlet) = session.outlet() else { return text(404, "the event stream of this session is closed") };
    match read_message(&visit.body) {
        Err(error) => return text(400, &format!("Parse error: {error}")),
        Ok(Value::Array(batch)) => {
            if let Some(refused) = stdio::batch_error(&session, &batch) {
                return text(400, refused["error"]["message"].as_str().unwrap_or_default());
            }
            let (mock, session) = (Arc::clone(mock), Arc::clone(&session));
            visit.site.own(async move {
                let responses = stdio::play_batch(&mock, &session, batch, &outlet).await;
                if !responses.is_empty() {
                    outlet.message(Value::Array(responses)).await;
                }
            });
        }
        Ok(message) => match kind(&message) {
            Err(reason) => return text(400, &reason),
            Ok(MessageKind::Response) => session.respond(message),
            Ok(MessageKind::Notification) => {
                let after = mock.noted(&session, &message);
                let (mock, session) = (Arc::clone(mock), Arc::clone(&session));
                visit.site.own(async move { play_after(&mock, &session, after).await });
            }
            Ok(MessageKind::Request) => {
                let started = Started::of(mock, stdio::call(mock, &session, message));
                let mock = Arc::clone(mock);
                visit.site.own(async move { started.play(&mock, outlet).await });
            }
        },
    }
    empty(202)
}
