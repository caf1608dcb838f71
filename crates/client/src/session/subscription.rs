//! What a server says unasked, by subscription: `subscriptions/listen` as an open stream, and `resources/subscribe` before
//! it. Knows the tag that tells subscriptions apart, not what is subscribed to.
//! Source: 2026-07-28, basic/patterns/subscriptions; 2025-11-25, server/resources, subscriptions.

use super::dispatcher::Waiting;
use super::modern::declare_tasks;
use super::notifications::Notification;
use super::wire::{Wire, refusal};
use super::{CallFailure, Reply, Session};
use crate::jsonrpc::{RequestId, RpcError};
use mcproof_protocol::{Era, methods};
use mcproof_record::FrameId;
use mcproof_record::duration::readable;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Why a subscription could not be opened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ListenFailure {
    #[error("`subscriptions/listen` came with 2026-07-28; this server speaks {version}, which uses `resources/subscribe` instead")]
    NotInThisRevision { version: String },
    #[error(transparent)]
    Call(#[from] CallFailure),
    #[error("`subscriptions/listen` returned {error}")]
    Rpc { error: RpcError, frame: FrameId },
    #[error("`subscriptions/listen` returned a response without acknowledging the subscription")]
    NeverAcknowledged { frame: FrameId },
    #[error("the subscription begins with `{method}` instead of its acknowledgement")]
    NotAcknowledgedFirst { method: String, frame: FrameId },
}

/// Why a subscription gave no notification.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SubscriptionFailure {
    #[error("no notification of the subscription within {}", readable(*.after))]
    TimedOut { after: Duration },
    #[error("{0}")]
    Ended(SubscriptionEnd),
}

/// How a subscription ended, if not by us.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SubscriptionEnd {
    /// By the response to `subscriptions/listen`, which is the graceful way.
    #[error("the server ended the subscription with {}", match &.0.answer { Ok(_) => "its answer".to_owned(), Err(error) => error.to_string() })]
    Answered(Reply),
    #[error("the server canceled the subscription")]
    Cancelled { frame: FrameId },
    #[error("the subscription broke off: {0}")]
    Broken(CallFailure),
}

/// An open `subscriptions/listen`. Dropping it cancels it.
#[derive(Debug)]
pub struct Subscription {
    request: Open,
    /// Where its next notification is looked for.
    position: u64,
    acknowledged: Notification,
    ended: Option<SubscriptionEnd>,
}

/// The request that stays open for as long as we listen.
struct Open {
    waiting: Waiting,
    wire: Weak<Wire>,
    /// The server has ended it, so that there is nothing to cancel.
    over: bool,
}

impl Session {
    /// Opens a stream of the notifications in `filter` (the `notifications` of the request), and waits until the server
    /// has acknowledged it.
    ///
    /// # Errors
    /// There is no such stream in this era, or the first thing that came was no acknowledgement.
    pub async fn listen(&self, filter: Map<String, Value>, deadline: Duration) -> Result<Subscription, ListenFailure> {
        if self.handshake.era == Era::Legacy {
            return Err(ListenFailure::NotInThisRevision { version: self.handshake.protocol_version.clone() });
        }
        let mut params = Map::new();
        if filter.contains_key("taskIds") {
            declare_tasks(&self.profile(), &mut params);
        }
        params.insert("notifications".into(), Value::Object(filter));
        let outgoing = self.outgoing(methods::SUBSCRIPTIONS_LISTEN, Some(params.into()));
        let mut permission = self.wire.permission(&outgoing);
        loop {
            if let Some(permission) = &mut permission {
                permission.prepare().await;
            }
            let mut position = self.dispatcher.notifications.position();
            let waiting = self.wire.begin(&self.dispatcher, outgoing.clone(), deadline.into())?;
            let mut request = Open { waiting, wire: Arc::downgrade(&self.wire), over: false };
            let outcome = match request.next(&mut position, Instant::now() + deadline).await {
                Some(Ok(acknowledged)) if acknowledged.method == methods::notifications::SUBSCRIPTIONS_ACKNOWLEDGED => {
                    return Ok(Subscription { request, position, acknowledged, ended: None });
                }
                Some(Ok(Notification { method, frame, .. })) => return Err(ListenFailure::NotAcknowledgedFirst { method, frame }),
                Some(Err(outcome)) => outcome,
                None => {
                    return Err(
                        CallFailure::TimedOut { method: methods::SUBSCRIPTIONS_LISTEN.to_owned(), after: deadline, stage: None }.into()
                    );
                }
            };
            match (&mut permission, refusal(&outcome)) {
                (Some(permission), Some(head)) => permission.obtain(head).await?,
                _ => {
                    let Reply { answer, frame, .. } = outcome?;
                    return Err(match answer {
                        Ok(_) => ListenFailure::NeverAcknowledged { frame },
                        Err(error) => ListenFailure::Rpc { error, frame },
                    });
                }
            }
        }
    }

    /// Asks for updates of a resource, as the legacy era does. They come among [`Session::notifications`].
    ///
    /// # Errors
    /// As [`Session::request`].
    pub async fn subscribe(&self, uri: &str, deadline: Duration) -> Result<Reply, CallFailure> {
        self.request(methods::RESOURCES_SUBSCRIBE, json!({ "uri": uri }).as_object().cloned(), deadline).await
    }

    /// Takes [`Session::subscribe`] back.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub async fn unsubscribe(&self, uri: &str, deadline: Duration) -> Result<Reply, CallFailure> {
        self.request(methods::RESOURCES_UNSUBSCRIBE, json!({ "uri": uri }).as_object().cloned(), deadline).await
    }
}

impl Subscription {
    /// The id that tags its notifications.
    pub fn id(&self) -> &RequestId {
        &self.request.waiting.id
    }

    /// The server's acknowledgement.
    pub fn acknowledged(&self) -> &Notification {
        &self.acknowledged
    }

    /// What the server agreed to send, which may be less than was requested.
    pub fn granted(&self) -> Option<&Value> {
        self.acknowledged.param("/notifications")
    }

    /// The next notification of this subscription, however long ago it came. Cancel safe.
    ///
    /// # Errors
    /// None came in time, or the subscription has ended.
    pub async fn next(&mut self, deadline: Duration) -> Result<Notification, SubscriptionFailure> {
        if let Some(end) = &self.ended {
            return Err(SubscriptionFailure::Ended(end.clone()));
        }
        let end = match self.request.next(&mut self.position, Instant::now() + deadline).await {
            None => return Err(SubscriptionFailure::TimedOut { after: deadline }),
            Some(Ok(Notification { frame, method, .. })) if method == methods::notifications::CANCELLED => {
                SubscriptionEnd::Cancelled { frame }
            }
            Some(Ok(notification)) => return Ok(notification),
            Some(Err(Ok(reply))) => SubscriptionEnd::Answered(reply),
            Some(Err(Err(failure))) => SubscriptionEnd::Broken(failure),
        };
        self.request.over = true;
        Err(SubscriptionFailure::Ended(self.ended.insert(end).clone()))
    }

    /// Cancels it, the way that the transport has: by closing its HTTP exchange, else by `notifications/cancelled`.
    pub fn close(self) {
        drop(self);
    }
}

impl Open {
    /// What comes first: a notification of this request, or its response. `None` when the time is up. Not to be asked again
    /// once it has given the response.
    async fn next(&mut self, position: &mut u64, end: Instant) -> Option<Result<Notification, Result<Reply, CallFailure>>> {
        let dispatcher = Arc::clone(self.waiting.dispatcher());
        let id = self.waiting.id.clone();
        tokio::select! {
            // What was said before the end counts first.
            biased;
            Some(notification) = dispatcher.notifications.next(position, |notification| belongs(notification, &id)) => Some(Ok(notification)),
            outcome = self.waiting.reply() => {
                self.over = true;
                Some(Err(outcome.map(Reply::read)))
            }
            () = sleep_until(end) => None,
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(wire) = self.wire.upgrade().filter(|_| !self.over) {
            wire.cancel(&self.waiting.id, Era::Modern, "the subscription is no longer needed");
        }
    }
}

impl std::fmt::Debug for Open {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Open").field("id", &self.waiting.id).field("over", &self.over).finish()
    }
}

/// By its tag; over HTTP also by the response that carried it, if it has none.
fn belongs(notification: &Notification, id: &RequestId) -> bool {
    let tag = match notification.method.as_str() {
        methods::notifications::CANCELLED => notification.param("/requestId"),
        _ => notification.param("/_meta/io.modelcontextprotocol~1subscriptionId"),
    };
    match tag {
        Some(tag) => *tag == json!(id),
        None => notification.carried_by.as_ref() == Some(id),
    }
}
