//! The services that tell people. A message becomes what a service wants by a pure function; the delivery_client brings it there.
//! Knows nothing of who is to be told, nor of what happens if that fails.

mod alertmanager;
mod delivery;
mod discord;
mod google_chat;
mod grafana_oncall;
mod incident_io;
mod jira;
mod mail;
mod matrix;
mod message;
mod ntfy;
mod pagerduty;
mod pushover;
mod slack;
mod splunk_oncall;
pub(crate) mod subscription;
mod teams;
mod telegram;
pub(crate) mod template;
mod webex;
mod webhook;

pub use delivery::{DeliveryClient, DeliveryFailure};
pub use mail::Mail;
pub(crate) use message::of_alert_key;
pub use message::{Kind, Message};
pub use slack::ACKNOWLEDGE;
pub use template::{Templates, VARIABLES};
pub use webhook::{SIGNATURE_HEADER, signature};

use crate::config::{ChannelSpec, Secret};
use crate::store::operations::hash;
use serde_json::Value;
use url::Url;

/// What is brought to a service.
#[derive(Clone, Debug)]
pub enum Payload {
    Post(Post),
    /// Several that are one message together: each alert that the service keeps of an incident has one of its own, by its key.
    Posts(Vec<(String, Post)>),
    Mail(Box<Mail>),
    /// The service has no such message.
    Nothing,
}

/// JSON that is posted, or put where that is the service's way.
#[derive(Clone, Debug, PartialEq)]
pub struct Post {
    pub method: &'static str,
    /// It may hold a secret.
    pub url: Secret,
    pub headers: Vec<(String, Secret)>,
    pub body: Vec<u8>,
    /// What else must not come up in what is told of the answer.
    pub hidden: Vec<Secret>,
    pub success: Success,
}

/// How a service says that it has taken something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Success {
    /// By its status, and whatever else it says.
    Status,
    /// With 202, or an object of JSON. What answers everything with 200, as a proxy or a parked address does, has taken nothing.
    AcceptedOrJson,
}

impl Success {
    /// Whether a response with a status of success is one of the service.
    fn is_of_service(self, status: u16, body: &str) -> bool {
        self == Self::Status || status == 202 || matches!(serde_json::from_str(body), Ok(Value::Object(_)))
    }
}

impl Post {
    fn json(url: &str, body: &Value) -> Self {
        let (body, success) = (body.to_string().into_bytes(), Success::Status);
        Self { method: "POST", url: Secret::new(url), headers: Vec::new(), body, hidden: Vec::new(), success }
    }

    #[must_use]
    fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), Secret::new(value)));
        self
    }

    /// The text without what this payload keeps secret, should a service repeat it.
    fn redacted(&self, text: &str) -> String {
        let path = Url::parse(self.url.expose()).map(|url| url[url::Position::BeforePath..].to_owned()).unwrap_or_default();
        let headers = self.headers.iter().flat_map(|(_, value)| value.expose().split(' '));
        let hidden = self.hidden.iter().map(|secret| secret.expose());
        let secrets = [self.url.expose(), path.as_str()].into_iter().chain(headers).chain(hidden);
        // A shorter one would star out half of the text without hiding anything.
        secrets.filter(|secret| secret.len() >= SHORTEST_SECRET).fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }
}

const SHORTEST_SECRET: usize = 6;

/// The message as this channel wants it.
///
/// # Errors
/// Says why the channel can never take it: a configuration that was never read, or an address that is none.
pub fn pack(channel: &ChannelSpec, message: &Message) -> Result<Payload, String> {
    Ok(match channel {
        ChannelSpec::PagerDuty { routing_key, url, .. } => by_alert(message, |alert| Ok(Some(pagerduty::pack(url, routing_key, alert))))?,
        ChannelSpec::Jira { url, api_key } => by_alert(message, |alert| jira::pack(url, api_key, alert).map(Some))?,
        ChannelSpec::Alertmanager { url } => alertmanager::pack(url, message)?.map_or(Payload::Nothing, Payload::Post),
        ChannelSpec::Slack { url, signing_secret } => {
            let button = if signing_secret.is_some() { slack::Button::Shown } else { slack::Button::Left };
            Payload::Post(slack::pack(url, message, button))
        }
        ChannelSpec::Discord { url } => Payload::Post(discord::pack(url, message)),
        ChannelSpec::Teams { url } => Payload::Post(teams::pack(url, message)),
        ChannelSpec::Smtp { url, from, to } => Payload::Mail(Box::new(mail::pack(url, from, to, message)?)),
        ChannelSpec::Webhook { url, secret } => Payload::Post(webhook::pack(url, secret.as_ref(), message)),
        ChannelSpec::Ntfy { url, topic, token } => Payload::Post(ntfy::pack(url, topic, token.as_ref(), message)),
        ChannelSpec::Telegram { url, token, chat } => Payload::Post(telegram::pack(url, token, chat, message)),
        ChannelSpec::Matrix { url, token, room } => Payload::Post(matrix::pack(url, token, room, message)?),
        ChannelSpec::Pushover { url, token, user } => Payload::Post(pushover::pack(url, token, user, message)),
        ChannelSpec::GoogleChat { url } => Payload::Post(google_chat::pack(url, message)?),
        ChannelSpec::Webex { url } => Payload::Post(webex::pack(url, message)),
        ChannelSpec::IncidentIo { url, token } => by_alert(message, |alert| Ok(incident_io::pack(url, token, alert)))?,
        ChannelSpec::GrafanaOncall { url } => by_alert(message, |alert| Ok(grafana_oncall::pack(url, alert)))?,
        ChannelSpec::SplunkOncall { url } => by_alert(message, |alert| Ok(Some(splunk_oncall::pack(url, alert))))?,
    })
}

/// For a service that keeps alerts, which takes one of them at a time.
fn by_alert(message: &Message, pack: impl Fn(&Message) -> Result<Option<Post>, String>) -> Result<Payload, String> {
    let by_key = |alert: Message| pack(&alert).map(|post| post.map(|post| (alert.alert_key(), post)));
    let posts = message.by_alert().map(by_key).collect::<Result<Vec<_>, _>>()?;
    let mut posts: Vec<(String, Post)> = posts.into_iter().flatten().collect();
    Ok(match posts.len() {
        0 | 1 => posts.pop().map_or(Payload::Nothing, |(_, post)| Payload::Post(post)),
        _ => Payload::Posts(posts),
    })
}

impl ChannelSpec {
    /// As it is called in the configuration.
    pub fn service(&self) -> &'static str {
        match self {
            Self::PagerDuty { .. } => "pagerduty",
            Self::Jira { .. } => "jira",
            Self::Alertmanager { .. } => "alertmanager",
            Self::Slack { .. } => "slack",
            Self::Discord { .. } => "discord",
            Self::Teams { .. } => "teams",
            Self::Smtp { .. } => "smtp",
            Self::Webhook { .. } => "webhook",
            Self::Ntfy { .. } => "ntfy",
            Self::Telegram { .. } => "telegram",
            Self::Matrix { .. } => "matrix",
            Self::Pushover { .. } => "pushover",
            Self::GoogleChat { .. } => "google_chat",
            Self::Webex { .. } => "webex",
            Self::IncidentIo { .. } => "incident_io",
            Self::GrafanaOncall { .. } => "grafana_oncall",
            Self::SplunkOncall { .. } => "splunk_oncall",
        }
    }

    /// Where it leads, whatever it is called and however it is signed: as a hash, because addresses are secrets.
    pub(crate) fn destination(&self) -> String {
        let parts: Vec<&str> = match self {
            Self::PagerDuty { routing_key, url, .. } => vec![url.as_str(), routing_key.expose()],
            Self::Jira { url, api_key } => vec![url.as_str(), api_key.expose()],
            Self::Alertmanager { url }
            | Self::Slack { url, .. }
            | Self::Discord { url }
            | Self::Teams { url }
            | Self::Webhook { url, .. }
            | Self::GoogleChat { url }
            | Self::Webex { url }
            | Self::GrafanaOncall { url }
            | Self::SplunkOncall { url } => vec![url.expose()],
            Self::Smtp { url, to, .. } => std::iter::once(url.expose()).chain(to.iter().map(String::as_str)).collect(),
            Self::Ntfy { url, topic: place, .. } | Self::Telegram { url, chat: place, .. } | Self::Matrix { url, room: place, .. } => {
                vec![url.as_str(), place.as_str()]
            }
            Self::Pushover { url, user, .. } => vec![url.as_str(), user.expose()],
            Self::IncidentIo { url, .. } => vec![url.as_str()],
        };
        hash(&format!("{} {}", self.service(), parts.join(" ")))
    }

    /// Whether it takes the end of an alert of which it has never heard for an alert: that must not be told to it then.
    pub(crate) fn shows_unknown_ends(&self) -> bool {
        matches!(self, Self::IncidentIo { .. } | Self::GrafanaOncall { .. })
    }

    /// Whether it keeps an alert open until it is told that all is well again, by a key. What may have reached it has to be
    /// closed there; a resolve that it does not know is of no consequence.
    pub fn keeps_alerts(&self) -> bool {
        matches!(
            self,
            Self::PagerDuty { .. }
                | Self::Jira { .. }
                | Self::Alertmanager { .. }
                | Self::IncidentIo { .. }
                | Self::GrafanaOncall { .. }
                | Self::SplunkOncall { .. }
        )
    }

    /// The same, and it keeps it however long nobody says anything of it.
    pub(crate) fn keeps_alerts_for_ever(&self) -> bool {
        self.keeps_alerts() && !matches!(self, Self::Alertmanager { .. })
    }
}

/// A URL with another path behind its own.
fn below(url: &str, segments: &[&str]) -> Result<Url, String> {
    let mut url = Url::parse(url).map_err(|error| format!("its URL cannot be used: {error}"))?;
    url.path_segments_mut().map_err(|()| "its URL cannot be used".to_owned())?.pop_if_empty().extend(segments);
    Ok(url)
}

/// No longer than this many bytes.
fn fit(text: &str, most: usize) -> String {
    const MORE: &str = "…";
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most.saturating_sub(MORE.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}{MORE}", &text[..end])
}

#[cfg(test)]
mod tests;
