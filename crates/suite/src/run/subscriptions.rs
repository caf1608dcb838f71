//! What a case asked to be told about. Knows how each era asks, not what comes.
//! Source: 2025-11-25, server/resources, subscriptions; 2026-07-28, basic/patterns/subscriptions.

use super::sessions::Open;
use super::step::{Answer, ErrorResponse, answer, scene};
use crate::interpolate_text;
use crate::judge::Payload;
use crate::plan::{Listing, Topic};
use mcproof_analysis::diagnosis;
use mcproof_client::{ListenFailure, Subscription};
use mcproof_protocol::{Era, methods};
use mcproof_record::{Diagnostic, FrameId};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The subscriptions of a session, by what they are about. Those of the modern era are open requests, which end with it; those of the legacy
/// era are only known to the server.
#[derive(Default)]
pub(super) struct Subscriptions(Mutex<BTreeMap<String, Option<Subscription>>>);

impl Subscriptions {
    pub(super) async fn open(
        &self,
        topic: &Topic,
        open: &Open,
        scope: &Map<String, Value>,
        deadline: Duration,
    ) -> Result<Answer, Diagnostic> {
        let topic = filled(topic, scope)?;
        if open.session.handshake().era == Era::Legacy {
            let answer = ask(methods::RESOURCES_SUBSCRIBE, &topic, open, deadline).await?;
            if answer.result.is_ok() {
                self.all().insert(topic.name().to_owned(), None);
            }
            return Ok(answer);
        }
        let (key, wanted) = match &topic {
            Topic::Resource(uri) => ("resourceSubscriptions", json!([uri])),
            Topic::List(Listing::Tools) => ("toolsListChanged", json!(true)),
            Topic::List(Listing::Prompts) => ("promptsListChanged", json!(true)),
            Topic::List(Listing::Resources | Listing::ResourceTemplates) => ("resourcesListChanged", json!(true)),
        };
        let started = Instant::now();
        let subscription = match open.session.listen(Map::from_iter([(key.to_owned(), wanted.clone())]), deadline).await {
            Ok(subscription) => subscription,
            Err(ListenFailure::Call(failure)) => {
                return Err(diagnosis::of_call_failure(&failure, methods::SUBSCRIPTIONS_LISTEN, &scene(open).await));
            }
            Err(ListenFailure::Rpc { error, frame }) => {
                let payload = Payload::of(error.to_value());
                return Ok(Answer { result: Err(ErrorResponse::Rpc(error)), payload, frame: Some(frame), elapsed: started.elapsed() });
            }
            Err(failure) => {
                let diagnostic = Diagnostic::error("subscription-failed", failure.to_string());
                return Err(diagnostic.evidence(diagnosis::evidence(&open.tap.transcript(), None)));
            }
        };
        let granted = subscription.granted().cloned().unwrap_or_else(|| json!({}));
        let frame = subscription.acknowledged().frame;
        if granted.get(key) != Some(&wanted) {
            let message = format!("the server acknowledges the subscription without granting `{key}: {wanted}`");
            let diagnostic = Diagnostic::error("subscription-not-granted", message);
            let evidence = diagnosis::evidence(&open.tap.transcript(), Some(frame));
            return Err(Diagnostic { actual: Some(granted.to_string()), ..diagnostic }.evidence(evidence));
        }
        self.all().insert(topic.name().to_owned(), Some(subscription));
        Ok(done(granted, Some(frame), started.elapsed()))
    }

    pub(super) async fn close(
        &self,
        topic: &Topic,
        open: &Open,
        scope: &Map<String, Value>,
        deadline: Duration,
    ) -> Result<Answer, Diagnostic> {
        let topic = filled(topic, scope)?;
        let subscribed = self.all().remove(topic.name());
        match subscribed {
            Some(Some(subscription)) => {
                subscription.close();
                Ok(done(json!({}), None, Duration::ZERO))
            }
            Some(None) => ask(methods::RESOURCES_UNSUBSCRIBE, &topic, open, deadline).await,
            None => {
                let message = format!("this test is not subscribed to {}", topic.name());
                let hint = "`subscribe` first, in the same test; a request without a subscription is sent with `raw`";
                Err(Diagnostic::error("not-subscribed", message).hint(hint))
            }
        }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Option<Subscription>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn filled(topic: &Topic, scope: &Map<String, Value>) -> Result<Topic, Diagnostic> {
    match topic {
        Topic::List(listing) => Ok(Topic::List(*listing)),
        Topic::Resource(uri) => match interpolate_text(uri, scope) {
            Ok(uri) => Ok(Topic::Resource(uri)),
            Err(missing) => Err(Diagnostic::error("unknown-variable", missing.to_string())),
        },
    }
}

/// Before 2026-07-28, changes of lists are told without being asked for, if the server declares it.
async fn ask(method: &str, topic: &Topic, open: &Open, deadline: Duration) -> Result<Answer, Diagnostic> {
    let uri = match topic {
        Topic::Resource(uri) => uri,
        Topic::List(listing) => return declared(*listing, open),
    };
    match open.session.request(method, json!({ "uri": uri }).as_object().cloned(), deadline).await {
        Ok(reply) => Ok(answer(reply, false)),
        Err(failure) => Err(diagnosis::of_call_failure(&failure, method, &scene(open).await)),
    }
}

fn declared(listing: Listing, open: &Open) -> Result<Answer, Diagnostic> {
    let key = match listing {
        Listing::Tools => "tools",
        Listing::Prompts => "prompts",
        Listing::Resources | Listing::ResourceTemplates => "resources",
    };
    let capabilities = &open.session.handshake().capabilities;
    if capabilities.pointer(&format!("/{key}/listChanged")) != Some(&Value::Bool(true)) {
        let message = format!("the server does not declare notifications for changes of its {}", listing.noun());
        let diagnostic =
            Diagnostic::error("not-declared", message).hint(format!("declare the capability `{key}: {{ listChanged: true }}`"));
        return Err(Diagnostic { actual: Some(capabilities.to_string()), ..diagnostic });
    }
    Ok(done(json!({}), None, Duration::ZERO))
}

fn done(result: Value, frame: Option<FrameId>, elapsed: Duration) -> Answer {
    Answer { payload: Payload::of(result.clone()), result: Ok(result), frame, elapsed }
}
