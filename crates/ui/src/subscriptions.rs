//! Subscriptions to resources in the modern era: a stream for each, open until the user, the server or the session ends it. What comes over it
//! is in the frames, where the page finds it. In the legacy era, a subscription is a request like any other.
//! Source: 2026-07-28, basic/patterns/subscriptions.

use crate::connection;
use crate::hub::{Hub, HubFailure};
use crate::requests::Outcome;
use mcproof_analysis::diagnosis::{Audience, Scene, of_call_failure};
use mcproof_client::{ListenFailure, Session, Subscription, SubscriptionFailure};
use mcproof_protocol::methods;
use mcproof_record::{Diagnostic, FrameId};
use serde::Deserialize;
use serde_json::{Map, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::oneshot;

/// Until the server has acknowledged one.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(30);
/// Looks at a stream that says nothing.
const LOOK: Duration = Duration::from_secs(3600);
/// Of one session: each is an open request.
const MOST: usize = 64;
/// What is subscribed to, in the request and in its acknowledgement.
const RESOURCES: &str = "resourceSubscriptions";

/// The open ones of a session, by URI.
#[derive(Clone, Default)]
pub(crate) struct Subscriptions(Arc<Mutex<BTreeMap<String, Open>>>);

struct Open {
    acknowledged: FrameId,
    /// The stream is closed when this is dropped.
    _stop: oneshot::Sender<()>,
}

impl Subscriptions {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn uris(&self) -> Vec<String> {
        self.all().keys().cloned().collect()
    }

    /// Closes all of them.
    pub(crate) fn end(&self) {
        self.all().clear();
    }

    /// Forgets one that is over, unless another of the same resource was opened since.
    fn forget(&self, uri: &str, acknowledged: FrameId) {
        let mut all = self.all();
        if all.get(uri).is_some_and(|open| open.acknowledged == acknowledged) {
            all.remove(uri);
        }
    }
}

/// Whether a resource is to be subscribed to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wish {
    uri: String,
    open: bool,
}

pub(crate) async fn change(hub: &Arc<Hub>, id: u64, Wish { uri, open }: Wish) -> Result<Outcome, HubFailure> {
    let live = connection::live(hub, id)?;
    let subscriptions = live.subscriptions.clone();
    let mut outcome = Outcome::of(live.recorded);
    if !open {
        hub.change(|_| drop(subscriptions.all().remove(&uri)));
        return Ok(outcome);
    }
    let known = subscriptions.uris();
    if known.contains(&uri) {
        return Ok(outcome);
    }
    if known.len() >= MOST {
        let diagnostic = Diagnostic::error("too-many-subscriptions", format!("{MOST} resources are subscribed to already"));
        outcome.failure = Some(diagnostic.hint("unsubscribe from one first"));
        return Ok(outcome);
    }
    let held = Arc::clone(&live.session).read_owned().await;
    let session = held.as_ref().ok_or(HubFailure::NotOpen)?;
    let wanted = json!([uri]);
    let subscription = match session.listen(Map::from_iter([(RESOURCES.to_owned(), wanted.clone())]), ACKNOWLEDGED_WITHIN).await {
        Ok(subscription) => subscription,
        Err(ListenFailure::Rpc { error, frame }) => {
            outcome.error = Some(session.tap().redacted_value(error.to_value()));
            outcome.frame = Some(frame);
            return Ok(outcome);
        }
        Err(failure) => {
            outcome.failure = Some(diagnosed(session, failure).await);
            return Ok(outcome);
        }
    };
    let acknowledged = subscription.acknowledged().frame;
    outcome.frame = Some(acknowledged);
    if subscription.granted().and_then(|granted| granted.get(RESOURCES)) != Some(&wanted) {
        let message = "the server acknowledges the subscription without granting this resource";
        outcome.failure = Some(Diagnostic::error("subscription-not-granted", message).hint("look at the acknowledgement in the traffic"));
        return Ok(outcome);
    }
    let (stop, stopped) = oneshot::channel();
    hub.change(|_| drop(subscriptions.all().insert(uri.clone(), Open { acknowledged, _stop: stop })));
    tokio::spawn(listen(Arc::downgrade(hub), subscriptions, uri, acknowledged, subscription, stopped));
    Ok(outcome)
}

async fn diagnosed(session: &Session, failure: ListenFailure) -> Diagnostic {
    let tap = session.tap();
    let diagnostic = match failure {
        ListenFailure::Call(failure) => {
            let scene = Scene::of(session, tap, Audience::CommandLine).await;
            of_call_failure(&failure, methods::SUBSCRIPTIONS_LISTEN, &scene)
        }
        other => Diagnostic::error("subscription-failed", other.to_string()),
    };
    diagnostic.map_text(|text| tap.redacted(text))
}

/// Holds a stream until it is over.
async fn listen(
    hub: Weak<Hub>,
    subscriptions: Subscriptions,
    uri: String,
    acknowledged: FrameId,
    mut subscription: Subscription,
    mut stopped: oneshot::Receiver<()>,
) {
    loop {
        let next = tokio::select! {
            next = subscription.next(LOOK) => next,
            _ = &mut stopped => return,
        };
        if let Err(SubscriptionFailure::Ended(_)) = next {
            break;
        }
    }
    subscriptions.forget(&uri, acknowledged);
    if let Some(hub) = hub.upgrade() {
        hub.change(|_| ());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_that_is_over_does_not_forget_the_one_after_it() {
        let subscriptions = Subscriptions::default();
        let open = |frame| {
            let (stop, stopped) = oneshot::channel();
            subscriptions.all().insert("a://b".to_owned(), Open { acknowledged: FrameId(frame), _stop: stop });
            stopped
        };
        let mut first = open(1);
        let mut second = open(2);
        assert!(first.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Closed), "the first stream is to be closed");
        subscriptions.forget("a://b", FrameId(1));
        assert_eq!(subscriptions.uris(), ["a://b"]);
        assert!(second.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Empty));
        subscriptions.forget("a://b", FrameId(2));
        assert!(subscriptions.uris().is_empty());
    }
}
