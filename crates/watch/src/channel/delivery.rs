//! Brings a payload to its service: connects, looks whether it may still be sent, sends it, and says what came of that. Knows
//! connections and statuses, not what the payload says.

use super::mail::Mail;
use super::{Payload, Post};
use crate::config::Secret;
use crate::moment::Moment;
use futures_util::future::join_all;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, TlsParameters};
use lettre::transport::smtp::commands;
use lettre::transport::smtp::extension::{ClientId, Extension, MailBodyParameter, MailParameter};
use lettre::transport::smtp::response::Response;
use mcproof_client::{HttpCall, Network};
use mcproof_report::escape;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;
use url::Url;

const PATIENCE: Duration = Duration::from_secs(10);

/// The way to the services.
#[derive(Clone, Debug)]
pub struct DeliveryClient {
    network: Network,
    /// Connecting and sending together. With half of a lease before it, it ends before the lease does.
    patience: Duration,
}

/// Why a payload was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryFailure {
    /// Another attempt may fare better.
    Passing {
        why: String,
        /// How long the service wants to be left alone.
        after: Option<Duration>,
        /// The service may have taken it, and only its answer was lost.
        maybe_taken: bool,
    },
    /// It will not be taken however often it is sent.
    Refused(String),
    /// It was taken, but not for all: what the service said, with those who do not have it and why.
    Partly {
        said: String,
        /// The addresses, or the keys of alerts, among them for which another attempt may fare better.
        left: Vec<String>,
    },
    /// Nothing was sent: whoever asked has no right to it any more.
    TooLate,
}

const AGENT: [&str; 2] = ["user-agent", concat!("mcproof/", env!("CARGO_PKG_VERSION"))];
/// How much of an answer is told.
const EXCERPT: usize = 200;
/// Slack's documentation of incoming webhooks, "handling errors".
const SLACK_ERRORS: [&str; 15] = [
    "action_prohibited",
    "channel_is_archived",
    "channel_not_found",
    "invalid_payload",
    "invalid_token",
    "no_active_hooks",
    "no_service",
    "no_service_id",
    "no_team",
    "no_text",
    "posting_to_general_channel_denied",
    "rollup_error",
    "team_disabled",
    "too_many_attachments",
    "user_not_found",
];
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

impl DeliveryClient {
    pub fn new(network: Network) -> Self {
        Self { network, patience: PATIENCE }
    }

    /// With another limit than 10 s for each message.
    #[must_use]
    pub fn within(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// A failure that took so long kept others waiting.
    pub fn slow(&self) -> Duration {
        self.patience / 3
    }

    /// Brings a payload to its service. `may_send` is asked when the connection is there, right before anything is sent. Gives
    /// what the service answered, in a few words.
    ///
    /// # Errors
    /// It was not taken, or nobody knows whether it was.
    pub async fn deliver(&self, payload: &Payload, now: Moment, may_send: &(dyn Fn() -> bool + Sync)) -> Result<String, DeliveryFailure> {
        match payload {
            Payload::Post(post) => self.post_in_time(post, now, may_send).await,
            Payload::Posts(posts) => self.post_all(posts, now, may_send).await,
            Payload::Mail(mail) => {
                let mut is_sent = false;
                let outcome = timeout(self.patience, send_mail(mail, may_send, &mut is_sent)).await;
                outcome.unwrap_or_else(|_| Err(self.nothing_came(is_sent)))
            }
            Payload::Nothing => Ok("nothing to send".to_owned()),
        }
    }

    fn nothing_came(&self, is_sent: bool) -> DeliveryFailure {
        let why = match is_sent {
            true => format!("no response within {} s", self.patience.as_secs_f64()),
            false => format!("no connection within {} s", self.patience.as_secs_f64()),
        };
        passing(why, is_sent)
    }

    /// Fetches a URL that only wants to be fetched, and gives the status.
    ///
    /// # Errors
    /// It did not answer with success in time.
    pub async fn fetch(&self, url: &Secret) -> Result<u16, String> {
        let url = Url::parse(url.expose()).map_err(|_| "its URL cannot be used".to_owned())?;
        let fetched = async {
            let connected = HttpCall::connect(&url, &self.network).await?;
            connected.send("GET", &[AGENT.map(str::to_owned).into()], Vec::new()).await
        };
        match timeout(self.patience, fetched).await {
            Ok(Ok(answer)) if (200..300).contains(&answer.status) => Ok(answer.status),
            Ok(Ok(answer)) => Err(format!("status {}", answer.status)),
            Ok(Err(broken)) => Err(broken.to_string()),
            Err(_) => Err(format!("no response within {} s", self.patience.as_secs_f64())),
        }
    }

    /// Each of them at the same time, so that none waits for one that hangs. What the service takes or refuses for good, because it was
    /// deleted there, say, is not sent again because of the others, as soon as it has taken any.
    async fn post_all(
        &self,
        posts: &[(String, Post)],
        now: Moment,
        may_send: &(dyn Fn() -> bool + Sync),
    ) -> Result<String, DeliveryFailure> {
        let outcomes = join_all(posts.iter().map(|(_, post)| self.post_in_time(post, now, may_send))).await;
        let (mut taken, mut told, mut left) = (None, Vec::new(), Vec::new());
        // How long the service wants to be left alone, and whether it may have taken one.
        let mut passes: Option<(Option<Duration>, bool)> = None;
        for ((key, _), outcome) in posts.iter().zip(outcomes) {
            let why = match outcome {
                Ok(said) => {
                    taken = Some(said);
                    continue;
                }
                Err(DeliveryFailure::Refused(why)) => why,
                Err(DeliveryFailure::Passing { why, after, maybe_taken }) => {
                    let (longest, may_be) = passes.unwrap_or_default();
                    passes = Some((longest.max(after), may_be || maybe_taken));
                    left.push(key.clone());
                    why
                }
                Err(DeliveryFailure::TooLate | DeliveryFailure::Partly { .. }) => {
                    left.push(key.clone());
                    "not sent in time".to_owned()
                }
            };
            told.push(format!("{key}: {why}"));
        }
        let told = told.join(", ");
        match (taken, passes) {
            (Some(said), _) if told.is_empty() => Ok(said),
            (Some(said), _) => Err(DeliveryFailure::Partly { said: format!("{said}; not taken: {told}"), left }),
            (None, Some((after, maybe_taken))) => Err(DeliveryFailure::Passing { why: told, after, maybe_taken }),
            (None, None) if left.is_empty() => Err(DeliveryFailure::Refused(told)),
            (None, None) => Err(DeliveryFailure::TooLate),
        }
    }

    async fn post_in_time(&self, post: &Post, now: Moment, may_send: &(dyn Fn() -> bool + Sync)) -> Result<String, DeliveryFailure> {
        let mut is_sent = false;
        let outcome = timeout(self.patience, self.post(post, now, may_send, &mut is_sent)).await;
        outcome.unwrap_or_else(|_| Err(self.nothing_came(is_sent)))
    }

    async fn post(
        &self,
        post: &Post,
        now: Moment,
        may_send: &(dyn Fn() -> bool + Sync),
        is_sent: &mut bool,
    ) -> Result<String, DeliveryFailure> {
        let url = Url::parse(post.url.expose()).map_err(|_| DeliveryFailure::Refused("its URL cannot be used".to_owned()))?;
        let connected = HttpCall::connect(&url, &self.network).await.map_err(|broken| passing(broken.to_string(), false))?;
        if !may_send() {
            return Err(DeliveryFailure::TooLate);
        }
        *is_sent = true;
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("accept".to_owned(), "application/json".to_owned()),
            AGENT.map(str::to_owned).into(),
        ];
        headers.extend(post.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())));
        let sent = connected.send(post.method, &headers, post.body.clone()).await;
        let answer = sent.map_err(|broken| passing(broken.to_string(), true))?;
        let text = String::from_utf8_lossy(&answer.body);
        let excerpt: String = escape(&post.redacted(text.trim())).chars().take(EXCERPT).collect();
        let said = if excerpt.is_empty() { format!("status {}", answer.status) } else { format!("status {}: {excerpt}", answer.status) };
        match answer.status {
            200..=299 if tells_failure(&text) => Err(passing(said, false)),
            200..=299 if !post.success.is_of_service(answer.status, &text) => {
                Err(passing(format!("{said}, which is not a response of this service"), false))
            }
            200..=299 => Ok(said),
            408 | 429 | 500..=599 => {
                let after = answer.header("retry-after").and_then(|value| retry_after(value, now));
                // A limit is kept before anything is done; other failures may come late.
                Err(DeliveryFailure::Passing { why: said, after, maybe_taken: answer.status != 429 })
            }
            _ => Err(DeliveryFailure::Refused(said)),
        }
    }
}

/// Whether a body says that nothing was delivered, although the status says success: `{"ok": false}` and `{"success": false}` as of
/// Slack's and Telegram's interfaces and those made like them, `{"result": "failure"}` as of Splunk On-Call, an `error` or `errors`
/// without any of these, an error code of Slack's incoming webhooks, the sentence of Microsoft Teams (incoming webhooks: a message that is
/// throttled or too large gets 200), and a page for people, such as that of a proxy where one signs in.
fn tells_failure(body: &str) -> bool {
    let body = body.trim();
    match serde_json::from_str::<Value>(body) {
        Ok(Value::Object(members)) => {
            let is = |value: bool| ["ok", "success"].iter().any(|key| members.get(*key) == Some(&Value::Bool(value)));
            let word = |key: &str| members.get(key).and_then(Value::as_str).map(str::to_ascii_lowercase);
            let is_word = |key: &str| matches!(word(key).as_deref(), Some("failure" | "failed" | "fail" | "error"));
            let has = |key: &str| members.get(key).is_some_and(is_told);
            is(false) || is_word("result") || is_word("status") || !is(true) && (has("error") || has("errors"))
        }
        Ok(Value::String(text)) => tells_failure(&text),
        Ok(_) => false,
        Err(_) => {
            let begin: String = body.chars().take(14).collect::<String>().to_ascii_lowercase();
            let is_page = begin.starts_with("<!doctype html") || begin.starts_with("<html");
            is_page || SLACK_ERRORS.contains(&body) || body.starts_with("Webhook message delivery failed")
        }
    }
}

/// Whether the value of `error` or `errors` says that there is one.
fn is_told(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Bool(true) => true,
    }
}

fn passing(why: String, maybe_taken: bool) -> DeliveryFailure {
    DeliveryFailure::Passing { why, after: None, maybe_taken }
}

/// Seconds, or a date (RFC 9110, 10.2.3).
fn retry_after(value: &str, now: Moment) -> Option<Duration> {
    let value = value.trim();
    let wait = match value.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok()?,
        Err(_) => {
            let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
            Moment(date.as_millisecond()).since(now)
        }
    };
    Some(wait.min(LONGEST_WAIT))
}

async fn send_mail(mail: &Mail, may_send: &(dyn Fn() -> bool + Sync), is_sent: &mut bool) -> Result<String, DeliveryFailure> {
    let mut connection = connect(mail.relay.expose()).await?;
    if !may_send() {
        connection.abort().await;
        return Err(DeliveryFailure::TooLate);
    }
    *is_sent = true;
    let (response, Refusals { told, left }) = match hand_over(&mut connection, mail).await {
        Ok(taken) => taken,
        Err(error) => {
            connection.abort().await;
            return Err(of_smtp(&error, true));
        }
    };
    let said = response.first_line().map(|line| escape(line).chars().take(EXCERPT).collect::<String>()).unwrap_or_default();
    // It was taken: what becomes of the connection is of no consequence.
    let _ = connection.quit().await;
    let said = format!("{} {said}", response.code());
    if told.is_empty() {
        return Ok(said);
    }
    Err(DeliveryFailure::Partly { said: format!("{said}; not sent to {}", told.join(", ")), left })
}

/// For whom a server does not take a mail that it takes for others.
#[derive(Default)]
struct Refusals {
    /// Each of them, with what the server said.
    told: Vec<String>,
    /// The addresses that it refuses for a moment only, such as a greylisted one (a code that begins with 4: RFC 5321, section 4.2.1).
    left: Vec<String>,
}

/// Sends the mail to whom the server takes it for, and gives the others with what it said of them (RFC 5321, section 3.3: each recipient is
/// taken or refused by itself). An error if it takes it for nobody.
async fn hand_over(connection: &mut AsyncSmtpConnection, mail: &Mail) -> Result<(Response, Refusals), lettre::transport::smtp::Error> {
    if mail.envelope.to().len() < 2 {
        return Ok((connection.send(&mail.envelope, &mail.letter).await?, Refusals::default()));
    }
    let mut parameters = Vec::new();
    if mail.envelope.from().into_iter().chain(mail.envelope.to()).any(|address| !address.to_string().is_ascii()) {
        parameters.push(MailParameter::SmtpUtfEight);
    }
    if !mail.letter.is_ascii() && connection.server_info().supports_feature(Extension::EightBitMime) {
        parameters.push(MailParameter::Body(MailBodyParameter::EightBitMime));
    }
    connection.command(commands::Mail::new(mail.envelope.from().cloned(), parameters)).await?;
    let (mut refused, mut last) = (Refusals::default(), None);
    for address in mail.envelope.to() {
        if let Err(error) = connection.command(commands::Rcpt::new(address.clone(), Vec::new())).await {
            // Without an answer nothing is known of the others either.
            if !error.is_permanent() && !error.is_transient() {
                return Err(error);
            }
            let why: String = escape(&told_by(&error)).chars().take(EXCERPT).collect();
            refused.told.push(format!("{address} ({why})"));
            // What may pass is tried again.
            if error.is_transient() {
                refused.left.push(address.to_string());
            }
            if error.is_transient() || last.is_none() {
                last = Some(error);
            }
        }
    }
    if let Some(error) = last.filter(|_| refused.told.len() == mail.envelope.to().len()) {
        return Err(error);
    }
    connection.command(commands::Data).await?;
    Ok((connection.message(&mail.letter).await?, refused))
}

async fn connect(relay: &str) -> Result<AsyncSmtpConnection, DeliveryFailure> {
    let refused = |why: &str| DeliveryFailure::Refused(why.to_owned());
    let url = Url::parse(relay).map_err(|_| refused("the URL of the mail server cannot be used"))?;
    let host = url.host_str().ok_or_else(|| refused("the URL of the mail server has no host"))?.trim_matches(['[', ']']).to_owned();
    let tls = || TlsParameters::new(host.clone()).map_err(|error| refused(&format!("TLS cannot be set up: {error}")));
    let wrapped = url.scheme() == "smtps";
    let wish = url.query_pairs().find(|(key, _)| key == "tls").map(|(_, value)| value.into_owned());
    let port = url.port().unwrap_or(if wrapped { 465 } else { 587 });
    let hello = ClientId::default();
    let wrapping = if wrapped { Some(tls()?) } else { None };
    let connecting = AsyncSmtpConnection::connect_tokio1((host.as_str(), port), Some(PATIENCE), &hello, wrapping, None);
    let mut connection = connecting.await.map_err(|error| of_smtp(&error, false))?;
    let user = decoded(url.username());
    if !wrapped {
        // A password is never sent in the clear, unless the URL says so.
        let is_unwanted = wish.as_deref() == Some("none");
        let required = wish.as_deref() == Some("required") || (!user.is_empty() && !is_unwanted);
        if connection.can_starttls() && !is_unwanted {
            connection.starttls(tls()?, &hello).await.map_err(|error| of_smtp(&error, false))?;
        } else if required {
            return Err(refused("the mail server does not offer TLS; to send without it, add `?tls=none` to its URL"));
        }
    }
    if !user.is_empty() {
        let credentials = Credentials::new(user, decoded(url.password().unwrap_or_default()));
        connection.auth(&[Mechanism::Plain, Mechanism::Login], &credentials).await.map_err(|error| of_smtp(&error, false))?;
    }
    Ok(connection)
}

fn of_smtp(error: &lettre::transport::smtp::Error, maybe_taken: bool) -> DeliveryFailure {
    let why: String = escape(&told_by(error)).chars().take(EXCERPT).collect();
    match error.is_permanent() {
        true => DeliveryFailure::Refused(why),
        // What the server answered is an answer.
        false => DeliveryFailure::Passing { why, after: None, maybe_taken: maybe_taken && !error.is_transient() },
    }
}

fn told_by(error: &lettre::transport::smtp::Error) -> String {
    let (told, source) = (error.to_string(), std::error::Error::source(error).map(ToString::to_string));
    match source {
        // Some errors say it themselves.
        Some(source) if !told.ends_with(&source) => format!("{told}: {source}"),
        _ => told,
    }
}

/// Undoes percent-encoding.
fn decoded(text: &str) -> String {
    url::form_urlencoded::parse(format!("x={}", text.replace('+', "%2B")).as_bytes())
        .next()
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_may_say_when_to_come_again() {
        let now = Moment(1_445_412_480_000);
        let check = |value: &str, seconds: Option<u64>| {
            assert_eq!(retry_after(value, now).map(|wait| wait.as_secs()), seconds, "{value}");
        };
        check("30", Some(30));
        check(" 2.5 ", Some(2));
        check("0", Some(0));
        check("-1", None);
        check("soon", None);
        check("1000000", Some(3600));
        check("Wed, 21 Oct 2015 07:28:30 GMT", Some(30));
        check("Wed, 21 Oct 2015 07:00:00 GMT", Some(0));
    }

    #[test]
    fn a_success_may_be_a_failure_in_its_body() {
        let check = |body: &str, is_failure: bool| assert_eq!(tells_failure(body), is_failure, "{body}");
        let failures = [
            r#"{"ok":false,"error":"channel_is_archived"}"#,
            r#" {"success": false} "#,
            r#"{"result":"failure","message":"unknown key"}"#,
            r#"{"result":"Error"}"#,
            r#"{"status":"error","message":"no such key"}"#,
            r#"{"error":"invalid_auth"}"#,
            r#"{"errors":["unknown user"]}"#,
            "invalid_payload",
            "<!DOCTYPE html><title>Sign in</title>",
            "  <html lang=en><body>Sign in</body></html>",
            "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429",
            r#""Webhook message delivery failed with error: the payload is too large""#,
        ];
        failures.into_iter().for_each(|body| check(body, true));
        for body in [
            "",
            "ok",
            "1",
            "true",
            "false",
            "{}",
            r#"{"ok":true}"#,
            r#"{"ok":"false"}"#,
            r#"{"ok":true,"error":"a warning"}"#,
            r#"{"error":null,"errors":[]}"#,
            r#"{"error":""}"#,
            r#"{"status":"success"}"#,
            "message_sent",
            "<b>thanks</b>",
            r#"{"result":"success"}"#,
            r#"[{"ok":false}]"#,
            "delivery failed",
        ] {
            check(body, false);
        }
    }

    #[test]
    fn users_and_passwords_of_urls_are_decoded() {
        let check = |text: &str, expected: &str| assert_eq!(decoded(text), expected);
        check("ann%40example.com", "ann@example.com");
        check("a+b", "a+b");
        check("", "");
        check("p%26q", "p&q");
    }
}
