//! Who has subscribed to the status page, and the messages that wait for them. Kept apart from the outbox: a subscriber who cannot be
//! reached is no reason to say that alerts are not delivered. Tokens are kept as hashes.

use super::values::Values;
use super::{Store, StoreFailure, ids};
use crate::moment::{Moment, millis};
use crate::news::NewsItem;
use ring::digest::{SHA256, digest};
use sqlx::Row as _;
use sqlx::any::AnyRow;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;
use uuid::NoContext;

/// Subscriptions, confirmed or not.
const MOST: i64 = 20_000;
/// Requests that lead to a message, within an hour: others could have us write to any number of strangers.
const MOST_PER_HOUR: i64 = 300;
const HOUR: Duration = Duration::from_secs(3_600);
/// Until the same address is written to again because somebody has asked for it; each time, it is at least twice as long.
const ASK_AGAIN: Duration = Duration::from_secs(600);
/// What is not confirmed by then is forgotten.
const UNCONFIRMED: Duration = Duration::from_secs(48 * 3_600);
/// For how long a link to unsubscribe is good.
const LINKS: Duration = Duration::from_secs(400 * 86_400);
/// For how long messages are kept.
const KEPT: Duration = Duration::from_secs(14 * 86_400);
/// News that is older is told to nobody any more.
const FRESH: Duration = Duration::from_secs(86_400);
/// So many messages in a row that were given up end a subscription.
const MOST_FAILURES: i64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    Mail,
    Webhook,
}

impl Medium {
    fn word(self) -> &'static str {
        match self {
            Self::Mail => "mail",
            Self::Webhook => "webhook",
        }
    }

    fn of_word(word: &str) -> Option<Self> {
        [Self::Mail, Self::Webhook].into_iter().find(|medium| medium.word() == word)
    }
}

/// What a token is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Confirm,
    Unsubscribe,
}

impl Purpose {
    fn word(self) -> &'static str {
        match self {
            Self::Confirm => "confirm",
            Self::Unsubscribe => "unsubscribe",
        }
    }
}

/// What somebody has asked for.
#[derive(Clone, Debug)]
pub struct SubscriptionRequest<'a> {
    pub medium: Medium,
    pub address: &'a str,
    /// Empty: all.
    pub targets: &'a [String],
    /// Sealed; signs what a webhook is sent.
    pub secret: &'a [u8],
}

/// What a message says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SubscriptionContent {
    /// Whether they want it.
    Question,
    /// They have subscribed before.
    Reminder,
    News(Box<NewsItem>),
}

/// A message that this process has leased.
#[derive(Clone, Debug)]
pub(crate) struct LeasedMessage {
    pub(crate) id: String,
    pub(crate) subscription: String,
    pub(crate) content: SubscriptionContent,
    pub(crate) medium: Medium,
    pub(crate) address: String,
    pub(crate) secret: Vec<u8>,
    pub(crate) created: Moment,
    pub(crate) attempts: i64,
    epoch: i64,
}

impl Store {
    /// Writes down that somebody wants to subscribe, and a message that asks them to confirm it. Nothing happens if there are too many, or
    /// if the same address was asked just now: whoever asks is not told the difference.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn request_subscription(&self, wanted: &SubscriptionRequest<'_>, now: Moment) -> Result<(), StoreFailure> {
        let mut transaction = self.begin().await?;
        let (all, lately): (i64, i64) =
            sqlx::query_as("SELECT count(*), COALESCE(SUM(CASE WHEN asked > $1 THEN 1 ELSE 0 END), 0) FROM subscription")
                .bind((now - HOUR).0)
                .fetch_one(&mut *transaction)
                .await?;
        let statement =
            format!("SELECT id, confirmed, asked, created FROM subscription WHERE medium = $1 AND address = $2 {}", self.dialect.lock());
        let known: Option<(String, Option<i64>, i64, i64)> = sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(wanted.medium.word())
            .bind(wanted.address)
            .fetch_optional(&mut *transaction)
            .await?;
        let targets = serde_json::Value::from(wanted.targets.to_vec()).to_string();
        let is_soon = known.as_ref().is_some_and(|(_, _, asked, created)| {
            let pause = Moment(*asked).since(Moment(*created)).max(ASK_AGAIN);
            *asked <= now.0 && Moment(*asked) + pause > now
        });
        if is_soon || lately >= MOST_PER_HOUR || (known.is_none() && all >= MOST) {
            return Ok(());
        }
        let (id, kind) = match known {
            Some((id, Some(_), ..)) => {
                let query = sqlx::query("UPDATE subscription SET asked = $1 WHERE id = $2").bind(now.0).bind(&id);
                query.execute(&mut *transaction).await?;
                // What works is not exchanged because somebody asks for it.
                if wanted.medium == Medium::Webhook {
                    transaction.commit().await?;
                    return Ok(());
                }
                (id, "reminder")
            }
            Some((id, None, ..)) => {
                let query = sqlx::query("UPDATE subscription SET asked = $1, targets = $2, secret = $3 WHERE id = $4");
                query.bind(now.0).bind(targets).bind(wanted.secret).bind(&id).execute(&mut *transaction).await?;
                (id, "question")
            }
            None => {
                let id = ids::new(NoContext, now);
                let statement = "INSERT INTO subscription (id, medium, address, targets, secret, created, asked) \
                                 VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT DO NOTHING";
                let query = sqlx::query(statement).bind(&id).bind(wanted.medium.word()).bind(wanted.address).bind(targets);
                query.bind(wanted.secret).bind(now.0).execute(&mut *transaction).await?;
                (id, "question")
            }
        };
        let statement = "INSERT INTO subscription_message (id, subscription, kind, content, created, due) \
                         SELECT $1, $2, $3, '', $4, $4 WHERE EXISTS (SELECT 1 FROM subscription WHERE id = $2)";
        sqlx::query(statement).bind(ids::new(NoContext, now)).bind(&id).bind(kind).bind(now.0).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Makes a token good for this. It is nowhere but in the message that it is for.
    ///
    /// # Errors
    /// The database does not respond.
    pub(crate) async fn allow(&self, token: &str, purpose: Purpose, subscription: &str, now: Moment) -> Result<(), StoreFailure> {
        let statement = "INSERT INTO subscription_token (hash, subscription, purpose, created) VALUES ($1, $2, $3, $4)";
        let query = sqlx::query(statement).bind(hash(token)).bind(subscription).bind(purpose.word()).bind(now.0);
        query.execute(&self.writer).await?;
        Ok(())
    }

    /// Whether a token is good for this.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn is_allowed(&self, token: &str, purpose: Purpose, now: Moment) -> Result<bool, StoreFailure> {
        Ok(self.subscription_of(token, purpose, now).await?.is_some())
    }

    async fn subscription_of(&self, token: &str, purpose: Purpose, now: Moment) -> Result<Option<String>, StoreFailure> {
        let lasts = match purpose {
            Purpose::Confirm => UNCONFIRMED,
            Purpose::Unsubscribe => LINKS,
        };
        let statement = "SELECT subscription.id FROM subscription_token JOIN subscription ON subscription.id = subscription_token.subscription \
                         WHERE hash = $1 AND purpose = $2 AND subscription_token.created > $3";
        let query = sqlx::query_scalar(statement).bind(hash(token)).bind(purpose.word()).bind((now - lasts).0);
        Ok(query.fetch_optional(&self.pool).await?)
    }

    /// Somebody wants it. False if the token is not good for that.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn confirm_subscription(&self, token: &str, now: Moment) -> Result<bool, StoreFailure> {
        let Some(id) = self.subscription_of(token, Purpose::Confirm, now).await? else { return Ok(false) };
        self.confirmed(&id, now).await?;
        Ok(true)
    }

    pub(crate) async fn confirmed(&self, id: &str, now: Moment) -> Result<(), StoreFailure> {
        let statement = "UPDATE subscription SET confirmed = $1 WHERE id = $2 AND confirmed IS NULL";
        sqlx::query(statement).bind(now.0).bind(id).execute(&self.writer).await?;
        Ok(())
    }

    /// Nobody is told any more, and what was known of them is gone. False if the token is not good for that.
    ///
    /// # Errors
    /// The database does not respond.
    pub async fn unsubscribe(&self, token: &str, now: Moment) -> Result<bool, StoreFailure> {
        let Some(id) = self.subscription_of(token, Purpose::Unsubscribe, now).await? else { return Ok(false) };
        self.remove_subscription(&id).await?;
        Ok(true)
    }

    pub(crate) async fn remove_subscription(&self, id: &str) -> Result<(), StoreFailure> {
        let mut transaction = self.begin().await?;
        for statement in [
            "DELETE FROM subscription_message WHERE subscription = $1",
            "DELETE FROM subscription_token WHERE subscription = $1",
            "DELETE FROM subscription WHERE id = $1",
        ] {
            sqlx::query(statement).bind(id).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Writes a message for each subscriber to each piece of news that none was written for yet. How many processes do so does not matter.
    pub(crate) async fn spread_news(&self, news: &[NewsItem], now: Moment) -> Result<(), StoreFailure> {
        let fresh: Vec<&NewsItem> = news.iter().filter(|item| item.at > now - FRESH && item.at <= now).collect();
        if fresh.is_empty() {
            return Ok(());
        }
        let known: Vec<String> =
            sqlx::query_scalar("SELECT id FROM subscription_news WHERE at > $1").bind((now - FRESH).0).fetch_all(&self.pool).await?;
        let known: BTreeSet<String> = known.into_iter().collect();
        for item in fresh.into_iter().rev().filter(|item| !known.contains(&item.id)) {
            let mut transaction = self.begin().await?;
            let statement = "INSERT INTO subscription_news (id, at) VALUES ($1, $2) ON CONFLICT DO NOTHING";
            let is_first = sqlx::query(statement).bind(&item.id).bind(item.at.0).execute(&mut *transaction).await?.rows_affected() > 0;
            if !is_first {
                continue;
            }
            let statement = "SELECT id, targets FROM subscription WHERE confirmed <= $1 ORDER BY id";
            let subscribers: Vec<(String, String)> = sqlx::query_as(statement).bind(item.at.0).fetch_all(&mut *transaction).await?;
            let wanted = |targets: &str| item.concerns(&serde_json::from_str::<Vec<String>>(targets).unwrap_or_default());
            let content = serde_json::to_string(item).expect("news has text keys only");
            let wanting: Vec<&String> = subscribers.iter().filter(|(_, targets)| wanted(targets)).map(|(id, _)| id).collect();
            for some in wanting.chunks(200) {
                let mut values = Values::new(self.dialect);
                for id in some {
                    values.row(|row| {
                        row.add(ids::derived(item.at, &[&item.id, id])).add((*id).clone()).add(content.clone()).add(now.0);
                    });
                }
                let statement = "INSERT INTO subscription_message (id, subscription, kind, content, created, due) \
                                 SELECT v.column1, v.column2, 'news', v.column3, v.column4, v.column4 FROM (VALUES {}) AS v \
                                 WHERE 1 = 1 ON CONFLICT DO NOTHING";
                values.query(statement).execute(&mut *transaction).await?;
            }
            transaction.commit().await?;
        }
        Ok(())
    }

    /// Leases messages that are due, of each subscriber the earliest.
    pub(crate) async fn lease_messages(&self, now: Moment, lease: Duration, most: i64) -> Result<Vec<LeasedMessage>, StoreFailure> {
        const WAITS: &str = "candidate.delivered IS NULL AND candidate.due <= $1 \
             AND (candidate.lease_until <= $1 OR candidate.lease_until > $2 + $4) AND NOT EXISTS (SELECT 1 FROM subscription_message earlier \
             WHERE earlier.subscription = candidate.subscription AND earlier.delivered IS NULL AND earlier.id < candidate.id)";
        // Whoever only reads does not wait for those who write.
        let statement = "SELECT id FROM subscription_message WHERE delivered IS NULL AND due <= $1 LIMIT 1";
        let found: Option<String> = sqlx::query_scalar(statement).bind(now.0).fetch_optional(&self.pool).await?;
        if found.is_none() {
            return Ok(Vec::new());
        }
        let statement = format!(
            "WITH due AS (SELECT candidate.id FROM subscription_message candidate WHERE {WAITS} ORDER BY candidate.due, candidate.id LIMIT $3 {}) \
             UPDATE subscription_message SET lease_until = $2, epoch = subscription_message.epoch + 1 FROM due \
             WHERE subscription_message.id = due.id RETURNING subscription_message.id, subscription_message.subscription, \
             subscription_message.kind, subscription_message.content, subscription_message.created, subscription_message.attempts, \
             subscription_message.epoch",
            self.dialect.skip_locked()
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(now.0).bind((now + lease).0).bind(most).bind(millis(lease));
        let rows = query.fetch_all(&self.writer).await?;
        let mut messages = Vec::with_capacity(rows.len());
        for row in &rows {
            let statement = "SELECT medium, address, secret FROM subscription WHERE id = $1";
            let subscriber = sqlx::query(statement).bind(row.try_get::<String, _>("subscription")?).fetch_optional(&self.pool).await?;
            // Of somebody who has left just now, the messages are gone as well.
            if let Some(subscriber) = subscriber {
                messages.push(leased(row, &subscriber)?);
            }
        }
        Ok(messages)
    }

    /// It was taken. False if it is somebody else's by now.
    pub(crate) async fn message_taken(&self, message: &LeasedMessage, now: Moment) -> Result<bool, StoreFailure> {
        let statement =
            "UPDATE subscription_message SET delivered = $1, lease_until = 0, attempts = attempts + 1 WHERE id = $2 AND epoch = $3";
        let query = sqlx::query(statement).bind(now.0).bind(&message.id).bind(message.epoch);
        let is_ours = query.execute(&self.writer).await?.rows_affected() > 0;
        if is_ours {
            let statement = "UPDATE subscription SET failures = 0 WHERE id = $1 AND failures > 0";
            sqlx::query(statement).bind(&message.subscription).execute(&self.writer).await?;
        }
        Ok(is_ours)
    }

    /// It was not taken; it is tried again at that time.
    pub(crate) async fn message_waits(&self, message: &LeasedMessage, due: Moment, why: &str) -> Result<(), StoreFailure> {
        let statement = "UPDATE subscription_message SET due = $1, last_error = $2, lease_until = 0, attempts = attempts + 1 \
                         WHERE id = $3 AND epoch = $4";
        sqlx::query(statement).bind(due.0).bind(why).bind(&message.id).bind(message.epoch).execute(&self.writer).await?;
        Ok(())
    }

    /// It will not be taken. A subscriber who takes nothing at all is one no more.
    pub(crate) async fn message_given_up(&self, message: &LeasedMessage, why: &str, now: Moment) -> Result<(), StoreFailure> {
        let statement = "UPDATE subscription_message SET delivered = $1, last_error = $2, lease_until = 0 WHERE id = $3 AND epoch = $4";
        let query = sqlx::query(statement).bind(now.0).bind(why).bind(&message.id).bind(message.epoch);
        if query.execute(&self.writer).await?.rows_affected() == 0 {
            return Ok(());
        }
        let statement = "UPDATE subscription SET failures = failures + 1 WHERE id = $1 RETURNING failures";
        let failures: Option<i64> = sqlx::query_scalar(statement).bind(&message.subscription).fetch_optional(&self.writer).await?;
        if failures.is_some_and(|failures| failures >= MOST_FAILURES) {
            self.remove_subscription(&message.subscription).await?;
        }
        Ok(())
    }

    /// Forgets what was not confirmed, and what is old.
    pub(crate) async fn tidy_subscriptions(&self, now: Moment) -> Result<(), StoreFailure> {
        for (statement, before) in [
            ("DELETE FROM subscription WHERE confirmed IS NULL AND asked < $1", now - UNCONFIRMED),
            ("DELETE FROM subscription_message WHERE delivered < $1", now - KEPT),
            ("DELETE FROM subscription_news WHERE at < $1", now - FRESH * 2),
            ("DELETE FROM subscription_token WHERE created < $1", now - LINKS),
        ] {
            sqlx::query(statement).bind(before.0).execute(&self.writer).await?;
        }
        for table in ["subscription_message", "subscription_token"] {
            let statement = format!("DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM subscription WHERE id = {table}.subscription)");
            sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&self.writer).await?;
        }
        Ok(())
    }
}

fn hash(token: &str) -> String {
    let mut text = String::new();
    for byte in digest(&SHA256, token.as_bytes()).as_ref() {
        write!(text, "{byte:02x}").expect("a String takes all text");
    }
    text
}

fn leased(row: &AnyRow, subscriber: &AnyRow) -> Result<LeasedMessage, sqlx::Error> {
    let (kind, content): (String, String) = (row.try_get("kind")?, row.try_get("content")?);
    let content = match kind.as_str() {
        "question" => SubscriptionContent::Question,
        "reminder" => SubscriptionContent::Reminder,
        _ => SubscriptionContent::News(serde_json::from_str(&content).map_err(|error| sqlx::Error::Decode(Box::new(error)))?),
    };
    let medium: String = subscriber.try_get("medium")?;
    Ok(LeasedMessage {
        id: row.try_get("id")?,
        subscription: row.try_get("subscription")?,
        content,
        medium: Medium::of_word(&medium).unwrap_or(Medium::Mail),
        address: subscriber.try_get("address")?,
        secret: subscriber.try_get("secret")?,
        created: Moment(row.try_get("created")?),
        attempts: row.try_get("attempts")?,
        epoch: row.try_get("epoch")?,
    })
}
