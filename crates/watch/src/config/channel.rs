//! Reads `channels:`: the services that tell people.

use super::leaves::{Openness, Read, one_of, optional, read_secret, read_secret_url, read_url, required};
use super::{ChannelSpec, Secret};
use lettre::message::Mailbox;
use mcproof_engine::suite::document::{Entry, Key as Written, Kind, Node};
use mcproof_engine::suite::format::{Fault, Key, Object, Shape};
use mcproof_engine::suite::reader::Reader;
use mcproof_record::Diagnostic;
use url::Url;

const PAGERDUTY_URL: &str = "https://events.pagerduty.com/v2/enqueue";
const JIRA_URL: &str = "https://api.atlassian.com/jsm/ops/integration/v2/alerts";

/// One value of `channels:`.
pub(super) static CHANNEL: Object<Option<ChannelSpec>> = Object {
    name: "a channel",
    keys: &[
        one_of(
            "pagerduty",
            "PagerDuty, by its Events API v2: a routing key, or a map",
            Shape::ObjectOrText(&PAGERDUTY),
            |reader, node, draft| {
                let found = read_short(reader, node, &PAGERDUTY, "routing_key")?;
                let url = found.url.unwrap_or_else(|| PAGERDUTY_URL.to_owned());
                fill(draft, found.secret.map(|routing_key| ChannelSpec::PagerDuty { routing_key, url }))
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
            let url = read_secret_url(reader, node, Openness::Public)?;
            fill(draft, Some(ChannelSpec::Alertmanager { url }))
        }),
        url_key("slack", "an incoming webhook of Slack", |reader, node, draft| {
            let url = read_secret_url(reader, node, Openness::Secret)?;
            fill(draft, Some(ChannelSpec::Slack { url }))
        }),
        url_key("discord", "a webhook of Discord", |reader, node, draft| {
            let url = read_secret_url(reader, node, Openness::Secret)?;
            fill(draft, Some(ChannelSpec::Discord { url }))
        }),
        url_key("teams", "the URL of a workflow of Teams that posts what it gets", |reader, node, draft| {
            let url = read_secret_url(reader, node, Openness::Secret)?;
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
    ],
    later: &["email", "telegram", "sms"],
};

const fn url_key(name: &'static str, doc: &'static str, read: Read<Option<ChannelSpec>>) -> Key<Option<ChannelSpec>> {
    one_of(name, doc, Shape::Text, read)
}

/// A service that is given a key.
#[derive(Default)]
struct Keyed {
    secret: Option<Secret>,
    url: Option<String>,
}

static PAGERDUTY: Object<Keyed> = Object {
    name: "`pagerduty`",
    keys: &[
        required("routing_key", "the integration key of a service", Shape::Text, read_key),
        optional("url", "where events are sent, such as that of the European region", Shape::Text, read_place),
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
    draft.secret = Some(read_secret(reader, node, Openness::Secret)?);
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
                reader.error("nobody", "this mail goes to nobody", node.span);
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
            draft.url = Some(read_secret_url(reader, node, Openness::Public)?);
            Ok(())
        }),
        optional("secret", "signs the body, so that the service knows who sent it", Shape::Text, |reader, node, draft| {
            draft.secret = Some(read_secret(reader, node, Openness::Secret)?);
            Ok(())
        }),
    ],
    later: &["headers"],
};

/// Reads one channel.
pub(super) fn read_channel(reader: &mut Reader<'_>, node: &Node) -> Option<ChannelSpec> {
    let mut draft = None;
    if CHANNEL.read(reader, node, &mut draft) { draft } else { None }
}

fn fill(draft: &mut Option<ChannelSpec>, found: Option<ChannelSpec>) -> Result<(), Fault> {
    *draft = Some(found.ok_or(Fault::Reported)?);
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

fn read_smtp_url(reader: &mut Reader<'_>, node: &Node) -> Result<Secret, Fault> {
    // Only a password makes it a secret.
    let written = reader.text(node)?;
    let has_password = Url::parse(&written).is_ok_and(|url| url.password().is_some());
    let secret = read_secret(reader, node, if has_password { Openness::Secret } else { Openness::Public })?;
    let parsed = Url::parse(&secret.0);
    if let Ok(url) = &parsed
        && let Some((key, value)) = url.query_pairs().find(|(key, value)| key != "tls" || !matches!(&**value, "required" | "none"))
    {
        let diagnostic = Diagnostic::error("bad-url", format!("`{key}={value}` means nothing to a mail server"));
        reader.report(diagnostic.hint("there are `tls=required` and `tls=none`"), node.span);
        return Err(Fault::Reported);
    }
    match parsed {
        Ok(url) if matches!(url.scheme(), "smtp" | "smtps") && url.has_host() => Ok(secret),
        _ => {
            let diagnostic = Diagnostic::error("bad-url", "this is no URL of a mail server");
            reader.report(diagnostic.hint("it starts with `smtps://` or `smtp://`, and names a host"), node.span);
            Err(Fault::Reported)
        }
    }
}

fn read_address(reader: &mut Reader<'_>, node: &Node) -> Result<String, Fault> {
    let written = reader.text(node)?;
    match written.parse::<Mailbox>() {
        Ok(_) => Ok(written),
        Err(_) => {
            let diagnostic = Diagnostic::error("bad-address", format!("`{written}` is no mail address"));
            reader.report(diagnostic.hint("write `ann@example.com`, or `\"Ann <ann@example.com>\"`"), node.span);
            Err(Fault::Reported)
        }
    }
}
