//! Reads `channels:`: the services that tell people.

use super::leaves::{Read, Secrecy, one_of, optional, read_secret, read_secret_url, read_url, required};
use super::{ChannelSpec, Secret};
use crate::channel::{Kind as MessageKind, Message, Templates, template};
use crate::incident::{Class, Detail, Severity};
use crate::moment::Moment;
use lettre::message::Mailbox;
use mcproof_record::Diagnostic;
use mcproof_suite::document::{Entry, Key as Written, Kind, Node};
use mcproof_suite::format::{Fault, Key, Object, Shape};
use mcproof_suite::reader::Reader;
use mcproof_suite::source::Span;
use serde_json::Value;
use url::Url;

const PAGERDUTY_URL: &str = "https://events.pagerduty.com/v2/enqueue";
const TELEGRAM_URL: &str = "https://api.telegram.org";
const PUSHOVER_URL: &str = "https://api.pushover.net/1/messages.json";
const JIRA_URL: &str = "https://api.atlassian.com/jsm/ops/integration/v2/alerts";

/// One value of `channels:`.
pub(super) static CHANNEL: Object<ChannelDraft> = Object {
    name: "a channel",
    keys: &[
        one_of(
            "pagerduty",
            "PagerDuty, by its Events API v2: a routing key, or a map",
            Shape::ObjectOrText(&PAGERDUTY),
            |reader, node, draft| {
                let found = read_short(reader, node, &PAGERDUTY, "routing_key")?;
                let url = found.url.unwrap_or_else(|| PAGERDUTY_URL.to_owned());
                let webhook_secret = found.webhook_secret;
                fill(draft, found.secret.map(|routing_key| ChannelSpec::PagerDuty { routing_key, url, webhook_secret }))
            },
        ),
        one_of(
            "jira",
            "alerts of Jira Service Management: the API key of an integration, or a map",
            Shape::ObjectOrText(&JIRA),
            |reader, node, draft| {
                let found = read_short(reader, node, &JIRA, "api_key")?;
                let url = found.url.unwrap_or_else(|| JIRA_URL.to_owned());
                fill(draft, found.secret.map(|api_key| ChannelSpec::Jira { url, api_key }))
            },
        ),
        one_of("alertmanager", "the root of a Prometheus Alertmanager", Shape::Text, |reader, node, draft| {
            let url = read_secret_url(reader, node, Secrecy::Public)?;
            fill(draft, Some(ChannelSpec::Alertmanager { url }))
        }),
        one_of("slack", "an incoming webhook of Slack: its URL, or a map", Shape::ObjectOrText(&SLACK), |reader, node, draft| {
            let mut found = Signed::default();
            let expanded = expanded(reader, node, "url")?;
            if !SLACK.read(reader, &expanded, &mut found) {
                return Err(Fault::Reported);
            }
            fill(draft, found.url.map(|url| ChannelSpec::Slack { url, signing_secret: found.signing_secret }))
        }),
        url_key("discord", "a webhook of Discord", |reader, node, draft| {
            let url = read_secret_url(reader, node, Secrecy::Secret)?;
            fill(draft, Some(ChannelSpec::Discord { url }))
        }),
        url_key("teams", "the URL of a workflow of Teams that posts what it gets", |reader, node, draft| {
            let url = read_secret_url(reader, node, Secrecy::Secret)?;
            fill(draft, Some(ChannelSpec::Teams { url }))
        }),
        one_of("smtp", "mail", Shape::Object(&SMTP), |reader, node, draft| {
            let mut found = Mail::default();
            if !SMTP.read(reader, node, &mut found) {
                return Err(Fault::Reported);
            }
            fill(draft, found.url.map(|url| ChannelSpec::Smtp { url, from: found.from, to: found.to }))
        }),
        one_of("webhook", "any service that takes JSON: a URL, or a map", Shape::ObjectOrText(&WEBHOOK), |reader, node, draft| {
            let mut found = Hook::default();
            let expanded = expanded(reader, node, "url")?;
            if !WEBHOOK.read(reader, &expanded, &mut found) {
                return Err(Fault::Reported);
            }
            fill(draft, found.url.map(|url| ChannelSpec::Webhook { url, secret: found.secret }))
        }),
        one_of("ntfy", "ntfy: the URL of a topic, or a map", Shape::ObjectOrText(&NTFY), |reader, node, draft| {
            let mut found = Topic::default();
            let expanded = expanded(reader, node, "url")?;
            if !NTFY.read(reader, &expanded, &mut found) {
                return Err(Fault::Reported);
            }
            fill(draft, found.place.map(|(url, topic)| ChannelSpec::Ntfy { url, topic, token: found.token }))
        }),
        one_of("telegram", "a bot of Telegram", Shape::Object(&TELEGRAM), |reader, node, draft| {
            let found = read_account(reader, node, &TELEGRAM)?;
            let url = found.url.unwrap_or_else(|| TELEGRAM_URL.to_owned());
            fill(draft, found.token.map(|token| ChannelSpec::Telegram { url, token, chat: found.to }))
        }),
        one_of("matrix", "a room of Matrix", Shape::Object(&MATRIX), |reader, node, draft| {
            let found = read_account(reader, node, &MATRIX)?;
            let spec = found.url.zip(found.token).map(|(url, token)| ChannelSpec::Matrix { url, token, room: found.to });
            fill(draft, spec)
        }),
        one_of("pushover", "Pushover", Shape::Object(&PUSHOVER), |reader, node, draft| {
            let found = read_account(reader, node, &PUSHOVER)?;
            let url = found.url.unwrap_or_else(|| PUSHOVER_URL.to_owned());
            fill(draft, found.token.zip(found.user).map(|(token, user)| ChannelSpec::Pushover { url, token, user }))
        }),
        url_key("google_chat", "a webhook of Google Chat", |reader, node, draft| {
            let url = read_secret_url(reader, node, Secrecy::Secret)?;
            fill(draft, Some(ChannelSpec::GoogleChat { url }))
        }),
        one_of("incident_io", "alert events of incident.io, from an HTTP source", Shape::Object(&INCIDENT_IO), |reader, node, draft| {
            let found = read_account(reader, node, &INCIDENT_IO)?;
            fill(draft, found.url.zip(found.token).map(|(url, token)| ChannelSpec::IncidentIo { url, token }))
        }),
        url_key("grafana_oncall", "a formatted webhook of Grafana IRM or OnCall", |reader, node, draft| {
            let url = read_secret_url(reader, node, Secrecy::Secret)?;
            fill(draft, Some(ChannelSpec::GrafanaOncall { url }))
        }),
        url_key("splunk_oncall", "the REST endpoint of Splunk On-Call, with the routing key", |reader, node, draft| {
            let url = read_secret_url(reader, node, Secrecy::Secret)?;
            fill(draft, Some(ChannelSpec::SplunkOncall { url }))
        }),
        optional("title", TITLE_DOC, Shape::Text, |reader, node, draft| {
            draft.templates.title = Some(read_template(reader, node)?);
            draft.key = Some(reader.key);
            Ok(())
        }),
        optional("text", TEXT_DOC, Shape::Text, |reader, node, draft| {
            draft.templates.text = Some(read_template(reader, node)?);
            draft.key = Some(reader.key);
            Ok(())
        }),
        url_key("webex", "an incoming webhook of Webex", |reader, node, draft| {
            let url = read_secret_url(reader, node, Secrecy::Secret)?;
            fill(draft, Some(ChannelSpec::Webex { url }))
        }),
    ],
    later: &["email", "sms"],
};

const TITLE_DOC: &str = "a template of the title, such as `{{ severity|upper }}: {{ target }}`";
const TEXT_DOC: &str = "a template of the text, in place of the message and all that is known of it";

/// A channel that is being read.
#[derive(Default)]
pub(super) struct ChannelDraft {
    spec: Option<ChannelSpec>,
    templates: Templates,
    /// Of the last template.
    key: Option<Span>,
}

/// A template that works for messages of every kind.
fn read_template(reader: &mut Reader<'_>, node: &Node) -> Result<String, Fault> {
    let source = reader.text(node)?;
    let examples: Vec<Value> =
        MessageKind::ALL.into_iter().flat_map(|kind| [example(kind, Known::All), example(kind, Known::Little)]).collect();
    match template::check(&source, &examples) {
        Ok(()) => Ok(source),
        Err(mistake) => {
            let line = mistake
                .line
                .filter(|_| source.trim().contains('\n'))
                .map(|line| format!("line {line} of the template: "))
                .unwrap_or_default();
            let diagnostic = Diagnostic::error("bad-template", format!("{line}{}", mistake.what));
            reader.report(Diagnostic { hint: mistake.hint, ..diagnostic }, node.span);
            Err(Fault::Reported)
        }
    }
}

/// How much an example says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    All,
    /// Only what every message says.
    Little,
}

fn example(kind: MessageKind, known: Known) -> Value {
    let is_known = known == Known::All;
    let text = |text: &str| is_known.then(|| text.to_owned());
    let members = if is_known { vec!["shop".to_owned(), "desk".to_owned()] } else { Vec::new() };
    let detail = Detail {
        layer: text("connect"),
        reason: text("server-unreachable"),
        message: "refused".into(),
        hint: text("start it"),
        members,
        ..Detail::default()
    };
    let message = Message {
        id: "1".into(),
        kind,
        incident: "1".into(),
        alerts: 0..=0,
        subject: "shop".into(),
        class: Class::Availability,
        severity: Severity::Page,
        title: "shop is down".into(),
        detail,
        since: Moment(0),
        resolved: (kind == MessageKind::Resolve).then_some(Moment(1)),
        acknowledged_by: text("ann"),
        evidence: text("1"),
        public_url: text("https://status.example.com"),
        templates: None,
        known_at: Moment(1),
        now: Moment(1),
    };
    message.values()
}

const fn url_key(name: &'static str, doc: &'static str, read: Read<ChannelDraft>) -> Key<ChannelDraft> {
    one_of(name, doc, Shape::Text, read)
}

/// A service that is given a key.
#[derive(Default)]
struct Keyed {
    secret: Option<Secret>,
    url: Option<String>,
    webhook_secret: Option<Secret>,
}

static PAGERDUTY: Object<Keyed> = Object {
    name: "`pagerduty`",
    keys: &[
        required("routing_key", "the integration key of a service", Shape::Text, read_key),
        optional("url", "where events are sent, such as that of the European region", Shape::Text, read_place),
        optional(
            "webhook_secret",
            "the secret of a V3 webhook subscription to `/hooks/CHANNEL`: who acknowledges in PagerDuty acknowledges here",
            Shape::Text,
            |reader, node, draft| {
                draft.webhook_secret = Some(read_secret(reader, node, Secrecy::Secret)?);
                Ok(())
            },
        ),
    ],
    later: &[],
};

#[derive(Default)]
struct Signed {
    url: Option<Secret>,
    signing_secret: Option<Secret>,
}

static SLACK: Object<Signed> = Object {
    name: "`slack`",
    keys: &[
        required("url", "the incoming webhook", Shape::Text, |reader, node, draft| {
            draft.url = Some(read_secret_url(reader, node, Secrecy::Secret)?);
            Ok(())
        }),
        optional(
            "signing_secret",
            "the signing secret of the app, whose interactivity goes to `/hooks/CHANNEL`: messages have a button to acknowledge",
            Shape::Text,
            |reader, node, draft| {
                draft.signing_secret = Some(read_secret(reader, node, Secrecy::Secret)?);
                Ok(())
            },
        ),
    ],
    later: &[],
};

static JIRA: Object<Keyed> = Object {
    name: "`jira`",
    keys: &[
        required("api_key", "the key of an API integration", Shape::Text, read_key),
        optional("url", "where alerts are created", Shape::Text, read_place),
    ],
    later: &[],
};

fn read_key(reader: &mut Reader<'_>, node: &Node, draft: &mut Keyed) -> Result<(), Fault> {
    draft.secret = Some(read_secret(reader, node, Secrecy::Secret)?);
    Ok(())
}

fn read_place(reader: &mut Reader<'_>, node: &Node, draft: &mut Keyed) -> Result<(), Fault> {
    draft.url = Some(read_url(reader, node)?);
    Ok(())
}

#[derive(Default)]
struct Mail {
    url: Option<Secret>,
    from: String,
    to: Vec<String>,
}

static SMTP: Object<Mail> = Object {
    name: "`smtp`",
    keys: &[
        required("url", "smtps://USER:PASSWORD@HOST, or smtp:// with `?tls=required`", Shape::Text, |reader, node, draft| {
            draft.url = Some(read_smtp_url(reader, node)?);
            Ok(())
        }),
        required("from", "the sender, such as `mcproof <watch@example.com>`", Shape::Text, |reader, node, draft| {
            draft.from = read_address(reader, node)?;
            Ok(())
        }),
        required("to", "who gets it", Shape::TextOrTexts, |reader, node, draft| {
            draft.to = match &node.kind {
                Kind::Seq(items) => items.iter().map(|item| read_address(reader, item)).collect::<Result<_, _>>()?,
                _ => vec![read_address(reader, node)?],
            };
            if draft.to.is_empty() {
                reader.error("no-recipients", "this mail has no recipients", node.span);
                return Err(Fault::Reported);
            }
            Ok(())
        }),
    ],
    later: &[],
};

#[derive(Default)]
struct Hook {
    url: Option<Secret>,
    secret: Option<Secret>,
}

static WEBHOOK: Object<Hook> = Object {
    name: "`webhook`",
    keys: &[
        required("url", "what each message is posted to", Shape::Text, |reader, node, draft| {
            draft.url = Some(read_secret_url(reader, node, Secrecy::Public)?);
            Ok(())
        }),
        optional("secret", "signs the body, so that the service knows who sent it", Shape::Text, |reader, node, draft| {
            draft.secret = Some(read_secret(reader, node, Secrecy::Secret)?);
            Ok(())
        }),
    ],
    later: &["headers"],
};

#[derive(Default)]
struct Topic {
    /// The root of the server, and the topic.
    place: Option<(String, String)>,
    token: Option<Secret>,
}

static NTFY: Object<Topic> = Object {
    name: "`ntfy`",
    keys: &[
        required("url", "the URL of the topic, such as https://ntfy.sh/my-topic", Shape::Text, |reader, node, draft| {
            // Whoever knows the name of a topic can read it.
            let url = read_secret_url(reader, node, Secrecy::Public)?;
            let parsed = Url::parse(url.expose()).map_err(|_| Fault::Shape)?;
            let path = parsed.path().trim_matches('/');
            let (folder, topic) = path.rsplit_once('/').unwrap_or(("", path));
            let is_topic =
                (1..=64).contains(&topic.len()) && topic.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
            if !is_topic {
                let diagnostic = Diagnostic::error("bad-topic", "this URL does not end with the name of a topic");
                let hint = "a topic has at most 64 letters, digits, `-` and `_`: https://ntfy.sh/my-topic";
                reader.report(diagnostic.hint(hint), node.span);
                return Err(Fault::Reported);
            }
            let origin = &parsed[..url::Position::BeforePath];
            draft.place = Some((format!("{origin}/{folder}"), topic.to_owned()));
            Ok(())
        }),
        optional("token", "an access token of the server", Shape::Text, |reader, node, draft| {
            draft.token = Some(read_secret(reader, node, Secrecy::Secret)?);
            Ok(())
        }),
    ],
    later: &[],
};

/// Somebody's account at a service, and whom it writes to.
#[derive(Default)]
struct Account {
    url: Option<String>,
    token: Option<Secret>,
    user: Option<Secret>,
    to: String,
}

fn read_account(reader: &mut Reader<'_>, node: &Node, object: &Object<Account>) -> Result<Account, Fault> {
    let mut found = Account::default();
    if object.read(reader, node, &mut found) { Ok(found) } else { Err(Fault::Reported) }
}

fn read_account_token(reader: &mut Reader<'_>, node: &Node, draft: &mut Account) -> Result<(), Fault> {
    draft.token = Some(read_secret(reader, node, Secrecy::Secret)?);
    Ok(())
}

fn read_account_url(reader: &mut Reader<'_>, node: &Node, draft: &mut Account) -> Result<(), Fault> {
    draft.url = Some(read_url(reader, node)?.trim_end_matches('/').to_owned());
    Ok(())
}

static TELEGRAM: Object<Account> = Object {
    name: "`telegram`",
    keys: &[
        required("token", "the token of the bot, as BotFather gives it", Shape::Text, |reader, node, draft| {
            read_account_token(reader, node, draft)?;
            let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b":-_".contains(&byte);
            if !draft.token.as_ref().is_some_and(|token| token.expose().bytes().all(is_token)) {
                let diagnostic = Diagnostic::error("bad-token", "this is not a bot token");
                reader.report(diagnostic.hint("BotFather issues tokens such as 123456:ABC-DEF"), node.span);
                return Err(Fault::Reported);
            }
            Ok(())
        }),
        required("chat", "the number of the chat, or `@name` of a channel", Shape::Text, |reader, node, draft| {
            draft.to = match &reader.final_value(node).kind {
                Kind::Number(number) => number.to_string(),
                _ => reader.text(node)?,
            };
            Ok(())
        }),
        optional("url", "another server of the Bot API", Shape::Text, read_account_url),
    ],
    later: &[],
};

static INCIDENT_IO: Object<Account> = Object {
    name: "`incident_io`",
    keys: &[
        required("url", "the URL of the source: https://api.incident.io/v2/alert_events/http/ID", Shape::Text, read_account_url),
        required("token", "the token of the source", Shape::Text, read_account_token),
    ],
    later: &[],
};

static MATRIX: Object<Account> = Object {
    name: "`matrix`",
    keys: &[
        required("url", "the homeserver, such as https://matrix.example.com", Shape::Text, read_account_url),
        required("token", "an access token of the user that posts there", Shape::Text, read_account_token),
        required("room", "the id of the room, such as `!abc:example.com`", Shape::Text, |reader, node, draft| {
            draft.to = reader.text(node)?;
            if !draft.to.starts_with('!') {
                let diagnostic = Diagnostic::error("bad-room-id", format!("`{}` is not a room id", draft.to));
                reader.report(diagnostic.hint("room ids are in the settings of the room and begin with `!`"), node.span);
                return Err(Fault::Reported);
            }
            Ok(())
        }),
    ],
    later: &[],
};

static PUSHOVER: Object<Account> = Object {
    name: "`pushover`",
    keys: &[
        required("token", "the token of the application", Shape::Text, read_account_token),
        required("user", "the key of the user or group that is notified", Shape::Text, |reader, node, draft| {
            draft.user = Some(read_secret(reader, node, Secrecy::Secret)?);
            Ok(())
        }),
        optional("url", "where messages are sent", Shape::Text, read_account_url),
    ],
    later: &[],
};

/// Reads one channel.
pub(super) fn read_channel(reader: &mut Reader<'_>, node: &Node) -> Option<(ChannelSpec, Option<Templates>)> {
    let mut draft = ChannelDraft::default();
    if !CHANNEL.read(reader, node, &mut draft) {
        return None;
    }
    if let (Some(ChannelSpec::Webhook { .. }), Some(key)) = (&draft.spec, draft.key) {
        let diagnostic = Diagnostic::error("inapplicable-key", "a webhook cannot have templates: its JSON has a fixed format");
        reader.report(diagnostic.hint("format the text from the JSON in the receiver"), key);
        return None;
    }
    let has_own = draft.key.is_some();
    Some((draft.spec?, has_own.then_some(draft.templates)))
}

fn fill(draft: &mut ChannelDraft, found: Option<ChannelSpec>) -> Result<(), Fault> {
    draft.spec = Some(found.ok_or(Fault::Reported)?);
    Ok(())
}

fn read_short(reader: &mut Reader<'_>, node: &Node, object: &Object<Keyed>, main: &str) -> Result<Keyed, Fault> {
    let mut found = Keyed::default();
    let node = expanded(reader, node, main)?;
    if object.read(reader, &node, &mut found) { Ok(found) } else { Err(Fault::Reported) }
}

/// A text stands for the map that has only this key.
fn expanded(reader: &Reader<'_>, node: &Node, main: &str) -> Result<Node, Fault> {
    match &node.kind {
        Kind::Map(_) => Ok(node.clone()),
        Kind::Text(_) => {
            let entry = Entry { key: Written { text: main.to_owned(), span: reader.key }, value: node.clone() };
            Ok(Node { kind: Kind::Map(vec![entry]), span: node.span })
        }
        Kind::Broken => Err(Fault::Reported),
        _ => Err(Fault::Shape),
    }
}

pub(super) fn read_smtp_url(reader: &mut Reader<'_>, node: &Node) -> Result<Secret, Fault> {
    // Only a password makes it a secret.
    let written = reader.text(node)?;
    let has_password = Url::parse(&written).is_ok_and(|url| url.password().is_some());
    let secret = read_secret(reader, node, if has_password { Secrecy::Secret } else { Secrecy::Public })?;
    let parsed = Url::parse(secret.expose());
    if let Ok(url) = &parsed
        && let Some((key, value)) = url.query_pairs().find(|(key, value)| key != "tls" || !matches!(&**value, "required" | "none"))
    {
        let diagnostic = Diagnostic::error("bad-url", format!("unknown mail server option `{key}={value}`"));
        reader.report(diagnostic.hint("options are `tls=required` and `tls=none`"), node.span);
        return Err(Fault::Reported);
    }
    match parsed {
        Ok(url) if matches!(url.scheme(), "smtp" | "smtps") && url.has_host() => Ok(secret),
        _ => {
            let diagnostic = Diagnostic::error("bad-url", "this is not a mail server URL");
            reader.report(diagnostic.hint("write `smtps://HOST` or `smtp://HOST`"), node.span);
            Err(Fault::Reported)
        }
    }
}

pub(super) fn read_address(reader: &mut Reader<'_>, node: &Node) -> Result<String, Fault> {
    let written = reader.text(node)?;
    match written.parse::<Mailbox>() {
        Ok(_) => Ok(written),
        Err(_) => {
            let diagnostic = Diagnostic::error("bad-address", format!("`{written}` is not a mail address"));
            reader.report(diagnostic.hint("write `ann@example.com`, or `\"Ann <ann@example.com>\"`"), node.span);
            Err(Fault::Reported)
        }
    }
}
