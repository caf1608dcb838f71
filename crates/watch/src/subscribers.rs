//! Tells the subscribers of the status page what is new there. At least once, each in order; what is not taken is tried again for a day.
//! Apart from alerts: neither waits for the other.

use crate::channel::{DeliveryClient, DeliveryFailure, Payload, subscription};
use crate::config::{Config, Secret, SubscriptionMail};
use crate::moment::Moment;
use crate::news::{NewsItem, news};
use crate::store::subscriptions::{LeasedMessage, Medium, Purpose, SubscriptionContent};
use crate::store::{Store, StoreFailure};
use crate::worker::Plan;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::join_all;
use mcproof_client::Network;
use ring::rand::SecureRandom as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// For how long one process has a message to itself.
const LEASE: Duration = Duration::from_secs(30);
/// Messages that one pass sends at the same time.
const AT_ONCE: i64 = 16;
const TIDY: Duration = Duration::from_secs(3_600);
/// Between two passes in which nothing was sent.
const LOOK: Duration = Duration::from_secs(5);
/// After the first failure; twice as long after each other one.
const FIRST_DELAY: Duration = Duration::from_secs(10);
const LONGEST_DELAY: Duration = Duration::from_secs(3_600);
/// For how long a message is tried.
const PATIENCE: Duration = Duration::from_secs(86_400);

#[derive(Clone, Debug)]
pub struct Subscribers {
    store: Store,
    plan: watch::Receiver<Arc<Plan>>,
    network: Network,
    /// Whom the lease of the chore names.
    name: String,
}

/// A message that was not taken, for the log. It does not name the subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedMessage {
    pub message: String,
    pub why: String,
}

/// Why a message was not taken.
enum Refusal {
    Later(String),
    Never(String),
    /// Somebody else has it by now.
    Lost,
}

impl Subscribers {
    pub fn new(store: Store, plan: watch::Receiver<Arc<Plan>>, network: Network, name: String) -> Self {
        Self { store, plan, network, name }
    }

    /// Writes and sends what is due. Gives what was not taken, and when to look again.
    ///
    /// # Errors
    /// The database failed. What was sent and not written down is sent again.
    pub async fn pass(&self, now: Moment) -> Result<(Vec<FailedMessage>, Moment), StoreFailure> {
        let config = Arc::clone(&self.plan.borrow().config);
        if !config.status.subscriptions.is_offered() {
            return Ok((Vec::new(), now + LOOK));
        }
        let began = Instant::now();
        if self.store.take_chore("subscriptions", &self.name, TIDY, now).await?.is_some() {
            self.store.tidy_subscriptions(now).await?;
            self.store.end_chore("subscriptions", &self.name, now).await?;
        }
        self.store.spread_news(&news(&self.store, now).await?, now).await?;
        let leased = self.store.lease_messages(now, LEASE, AT_ONCE).await?;
        let next = if leased.is_empty() { now + LOOK } else { now };
        let sent = join_all(leased.iter().map(|message| self.send(&config, message, now, began))).await;
        let sent = sent.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok((sent.into_iter().flatten().collect(), next))
    }

    async fn send(
        &self,
        config: &Config,
        message: &LeasedMessage,
        begin: Moment,
        began: Instant,
    ) -> Result<Option<FailedMessage>, StoreFailure> {
        let offered = &config.status.subscriptions;
        let told = match (message.medium, &offered.mail, &offered.webhook) {
            (Medium::Mail, Some(mail), _) => self.mail(config, mail, message, begin, began).await?,
            (Medium::Webhook, _, Some(_)) => self.call(config, message, begin, began).await?,
            _ => Err(Refusal::Later("subscriptions of this kind are not offered any more".into())),
        };
        let now = begin + began.elapsed();
        let (why, is_over) = match told {
            Ok(()) => {
                self.store.message_taken(message, now).await?;
                return Ok(None);
            }
            Err(Refusal::Lost) => return Ok(None),
            Err(Refusal::Later(why)) => (why, now.since(message.created) > PATIENCE),
            Err(Refusal::Never(why)) => (why, true),
        };
        match (is_over, &message.content) {
            // Nobody has said that they want it.
            (true, SubscriptionContent::Question) if message.medium == Medium::Webhook => {
                self.store.remove_subscription(&message.subscription).await?;
            }
            (true, _) => self.store.message_given_up(message, &why, now).await?,
            (false, _) => {
                let factor = 1_u32 << u32::try_from(message.attempts.clamp(0, 16)).unwrap_or(16);
                self.store.message_waits(message, now + (FIRST_DELAY * factor).min(LONGEST_DELAY), &why).await?;
            }
        }
        Ok(Some(FailedMessage { message: message.id.clone(), why }))
    }

    async fn mail(
        &self,
        config: &Config,
        sender: &SubscriptionMail,
        message: &LeasedMessage,
        begin: Moment,
        began: Instant,
    ) -> Result<Result<(), Refusal>, StoreFailure> {
        let title = config.status.title();
        let root = config.public_url.as_deref().unwrap_or_default();
        let status = format!("{root}/status");
        let (subject, text, link) = match &message.content {
            SubscriptionContent::Question => {
                let link = format!("{root}/subscribe/{}", self.token(Purpose::Confirm, message, begin).await?);
                let text = format!(
                    "Somebody, probably you, wants to receive the messages of {title} ({status}) at this address.\n\n\
                     Confirm it within two days:\n{link}\n\n\
                     If it was not you, ignore this mail: nothing else is sent.\n"
                );
                (format!("Confirm your subscription to {title}"), text, None)
            }
            SubscriptionContent::Reminder => {
                let link = self.unsubscribe(root, message, begin).await?;
                let text = format!(
                    "Somebody, probably you, wants to receive the messages of {title} ({status}) at this address. It is subscribed already.\n\n\
                     To change the targets, unsubscribe first, then subscribe again.\n\nUnsubscribe: {link}\n"
                );
                (format!("You are subscribed to {title}"), text, Some(link))
            }
            SubscriptionContent::News(item) => {
                let link = self.unsubscribe(root, message, begin).await?;
                (format!("[{title}] {}", item.title), format!("{}\n\n{status}\n\nUnsubscribe: {link}\n", body(item)), Some(link))
            }
        };
        let mail = subscription::SubscriberMail {
            id: &message.id,
            to: &message.address,
            subject: &subject,
            text: &text,
            unsubscribe: link.as_deref(),
        };
        let now = begin + began.elapsed();
        let payload = match subscription::mail(sender, &mail, now) {
            Ok(payload) => payload,
            Err(why) => return Ok(Err(Refusal::Never(why))),
        };
        Ok(deliver(&self.network, &payload, now, began).await.map(drop))
    }

    async fn call(
        &self,
        config: &Config,
        message: &LeasedMessage,
        begin: Moment,
        began: Instant,
    ) -> Result<Result<(), Refusal>, StoreFailure> {
        let opened = config.seal.as_ref().and_then(|key| key.open(&message.secret).ok()).and_then(|secret| String::from_utf8(secret).ok());
        let Some(secret) = opened.map(Secret::new) else {
            return Ok(Err(Refusal::Later("its secret was encrypted with another `seal_key`".into())));
        };
        let network = Network { destinations: config.status.subscriptions.webhook.clone().unwrap_or_default(), ..self.network.clone() };
        let root = config.public_url.as_deref().unwrap_or_default();
        let item = match &message.content {
            SubscriptionContent::News(item) => item,
            SubscriptionContent::Question | SubscriptionContent::Reminder => {
                let wanted = random_token();
                let now = begin + began.elapsed();
                let payload = subscription::challenge(&message.address, &secret, &message.id, &wanted, now);
                return Ok(match deliver(&network, &payload, now, began).await {
                    Ok(said) if said.contains(&wanted) => {
                        self.store.confirmed(&message.subscription, now).await?;
                        Ok(())
                    }
                    // What it returned instead is nobody's business.
                    Ok(_) => Err(Refusal::Never("it did not return the challenge".into())),
                    Err(refusal) => Err(refusal),
                });
            }
        };
        let unsubscribe = self.unsubscribe(root, message, begin).await?;
        let (now, status) = (begin + began.elapsed(), format!("{root}/status"));
        let links = subscription::Links { status: &status, unsubscribe: &unsubscribe };
        let payload = subscription::webhook(&message.address, &secret, &message.id, item, &links, now);
        Ok(deliver(&network, &payload, now, began).await.map(drop))
    }

    async fn unsubscribe(&self, root: &str, message: &LeasedMessage, now: Moment) -> Result<String, StoreFailure> {
        Ok(format!("{root}/unsubscribe/{}", self.token(Purpose::Unsubscribe, message, now).await?))
    }

    /// Only a hash of it is kept: each attempt to send a message has a token of its own.
    async fn token(&self, purpose: Purpose, message: &LeasedMessage, now: Moment) -> Result<String, StoreFailure> {
        let token = random_token();
        self.store.allow(&token, purpose, &message.subscription, now).await?;
        Ok(token)
    }
}

/// 256 bits, as text that can stand in a URL.
pub(crate) fn random_token() -> String {
    let mut bytes = [0; 32];
    ring::rand::SystemRandom::new().fill(&mut bytes).expect("the system has random numbers");
    URL_SAFE_NO_PAD.encode(bytes)
}

async fn deliver(network: &Network, payload: &Payload, now: Moment, began: Instant) -> Result<String, Refusal> {
    let may_send = || began.elapsed() < LEASE / 2;
    DeliveryClient::new(network.clone()).deliver(payload, now, &may_send).await.or_else(|failure| match failure {
        DeliveryFailure::Passing { why, .. } => Err(Refusal::Later(why)),
        DeliveryFailure::Refused(why) => Err(Refusal::Never(why)),
        DeliveryFailure::TooLate => Err(Refusal::Lost),
        // There is one recipient.
        DeliveryFailure::Partly { said, .. } => Ok(said),
    })
}

fn body(item: &NewsItem) -> String {
    let when = format!("{}\n\n{}", item.at, item.text);
    if item.targets.is_empty() {
        when
    } else {
        format!(
            "{when}\n\nAffects {}",
            item.targets.iter().map(|name| mcproof_report::escape_line(name, name.len())).collect::<Vec<_>>().join(", ")
        )
    }
}
