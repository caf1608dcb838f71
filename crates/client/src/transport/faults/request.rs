//! Faults on a POST before the server sees it.

use super::{FaultDirection, FaultInjector, InjectedFault, Subject};
use crate::Tap;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::header::{CONTENT_LENGTH, HeaderValue};
use std::future::pending;
use std::time::Duration;
use tokio::time::sleep;

/// What becomes of a request.
pub(in crate::transport) enum Admission {
    /// It goes out, and `subject` says what its response answers.
    Sent {
        request: Request<Full<Bytes>>,
        subject: Subject,
    },
    /// It goes out twice; the first response is thrown away.
    SentTwice {
        request: Request<Full<Bytes>>,
        subject: Subject,
    },
    Reset,
    /// It is answered in place of the server.
    Answered {
        status: u16,
        retry_after: Option<Duration>,
    },
}

/// Decides on a request that carries a message. One that is dropped waits for ever: the deadline is the caller's.
pub(in crate::transport) async fn admit(injector: &FaultInjector, tap: &Tap, mut request: Request<Full<Bytes>>) -> Admission {
    let body = request.body().clone().collect().await.map(|collected| collected.to_bytes()).unwrap_or_default();
    let toward = FaultDirection::Server;
    let subject = injector.read(toward, &body);
    let treatment = injector.treat(toward, &subject);
    if let Some(note) = injector.delayed(&treatment, &subject) {
        tap.note(note);
    }
    let sending = treatment.bytes_per_second.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(body.len() as f64 / rate.max(1) as f64));
    sleep(treatment.delay + sending).await;
    if let Some(planned) = treatment.planned {
        let did = |words: String| tap.note(injector.did(planned, words));
        match planned.disturbance {
            InjectedFault::Drop => {
                did(format!("dropped {subject}"));
                return pending().await;
            }
            InjectedFault::Duplicate => {
                did(format!("sent {subject} twice"));
                return Admission::SentTwice { request, subject };
            }
            InjectedFault::Truncate => {
                did(format!("cut off the second half of {subject}"));
                let half = body.slice(..body.len() / 2);
                request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(half.len()));
                *request.body_mut() = Full::new(half);
            }
            InjectedFault::Reset => {
                did(format!("broke the connection in place of {subject}"));
                return Admission::Reset;
            }
            InjectedFault::Status { code, retry_after } => {
                did(format!("answered {subject} with status {code}; the server never saw it"));
                return Admission::Answered { status: code, retry_after };
            }
            InjectedFault::Reorder => match injector.overtaken(toward).await {
                true => drop(did(format!("let another message overtake {subject}"))),
                false => drop(tap.note(format!("no message came that could overtake {subject}"))),
            },
            InjectedFault::Latency { .. } | InjectedFault::Throttle { .. } => {}
        }
    }
    injector.pass(toward);
    Admission::Sent { request, subject }
}
