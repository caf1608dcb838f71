//! Faults on a POST before the server sees it.

use super::{FAULT_NOTE, FaultDirection, FaultInjector, InjectedFault, Refusal, Subject};
use crate::Tap;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::header::{CONTENT_LENGTH, HeaderValue};
use std::future::pending;
use std::time::Duration;
use tokio::time::sleep;

/// What becomes of a request.
pub enum Admission {
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
    Refused(Refusal),
}

/// Decides on a request. One that is dropped waits for ever: the deadline is the caller's.
pub async fn admit(injector: &FaultInjector, tap: &Tap, mut request: Request<Full<Bytes>>) -> Admission {
    let body = request.body().clone().collect().await.map(|collected| collected.to_bytes()).unwrap_or_default();
    if let Some(refusal) = injector.is_revoked(&request) {
        tap.note(format!("{FAULT_NOTE}answered with status {}, since an earlier fault ended the session or the token", refusal.status));
        return Admission::Refused(refusal);
    }
    if body.is_empty() {
        return Admission::Sent { request, subject: Subject::Unknown };
    }
    let toward = FaultDirection::Server;
    let subject = injector.read(toward, &body);
    let treatment = injector.treat(toward, &subject);
    if let Some(note) = injector.delayed(&treatment, &subject) {
        tap.note(note);
    }
    let sending = match (treatment.spread_over, treatment.bytes_per_second) {
        (Some(over), _) => over,
        (None, Some(rate)) => Duration::from_secs_f64(body.len() as f64 / rate.max(1) as f64),
        (None, None) => Duration::ZERO,
    };
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
            InjectedFault::Truncate | InjectedFault::Cut => {
                did(format!("cut off the second half of {subject}"));
                let half = body.slice(..body.len() / 2);
                request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(half.len()));
                *request.body_mut() = Full::new(half);
            }
            InjectedFault::Reset => {
                did(format!("broke the connection in place of {subject}"));
                return Admission::Reset;
            }
            fault if fault.refuses_requests() => match injector.refuse(fault, &request) {
                Some(refusal) => {
                    did(format!("answered {subject} with status {}; the server never saw it", refusal.status));
                    return Admission::Refused(refusal);
                }
                None => drop(tap.note(format!("{subject} belongs to no session that could end"))),
            },
            InjectedFault::Reorder => match injector.overtaken(toward).await {
                true => drop(did(format!("let another message overtake {subject}"))),
                false => drop(tap.note(format!("no message came that could overtake {subject}"))),
            },
            InjectedFault::Buffer { .. } => {
                tap.note(format!("an HTTP request holds one message: nothing holds {subject} back"));
            }
            _ => {}
        }
    }
    injector.pass(toward);
    Admission::Sent { request, subject }
}
