//! Reads `status:`: the public status page, and who can subscribe to it.

use super::channel::{read_address, read_smtp_url};
use super::leaves::{optional, read_items, required};
use super::reader::unknown;
use super::tags::KnownTags;
use super::target::is_name;
use super::{Secret, TargetSpec};
use mcproof_client::Destinations;
use mcproof_record::Diagnostic;
use mcproof_suite::document::{Kind, Node};
use mcproof_suite::format::{Fault, Object, Shape};
use mcproof_suite::reader::Reader;
use mcproof_suite::source::Span;
use std::collections::BTreeMap;

/// The public status page.
#[derive(Clone, Debug, Default)]
pub struct StatusSpec {
    /// What its messages and its feed are called.
    pub title: Option<String>,
    pub subscriptions: SubscriptionsSpec,
    /// Besides the one of all public targets, in the order of the file.
    pub pages: Vec<StatusPageSpec>,
}

/// A status page of some of the public targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusPageSpec {
    /// What stands behind `/status/`.
    pub name: String,
    pub title: String,
    /// Names; with the tags, those that the page is about.
    pub targets: Vec<String>,
    pub tags: Vec<String>,
}

impl StatusPageSpec {
    pub(crate) fn shows(&self, name: &str, tags: &[String]) -> bool {
        self.targets.iter().any(|target| target == name) || self.tags.iter().any(|tag| tags.contains(tag))
    }
}

/// How readers of the status page can subscribe to it; not at all if both are missing.
#[derive(Clone, Debug, Default)]
pub struct SubscriptionsSpec {
    pub mail: Option<SubscriptionMail>,
    /// Where the webhooks of subscribers may be.
    pub webhook: Option<Destinations>,
}

/// The mail server that sends to subscribers.
#[derive(Clone, Debug)]
pub struct SubscriptionMail {
    pub relay: Secret,
    pub from: String,
}

impl SubscriptionsSpec {
    pub fn is_offered(&self) -> bool {
        self.mail.is_some() || self.webhook.is_some()
    }
}

impl StatusSpec {
    pub(crate) fn page(&self, name: &str) -> Option<&StatusPageSpec> {
        self.pages.iter().find(|page| page.name == name)
    }

    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or("Status")
    }
}

pub(super) static STATUS: Object<StatusDraft> = Object {
    name: "`status`",
    keys: &[
        optional("title", "name of the status page in messages and in its feed; default `Status`", Shape::Text, |reader, node, draft| {
            draft.title = Some(reader.text(node)?);
            Ok(())
        }),
        optional(
            "subscriptions",
            "how readers can subscribe to outages and notices; without it, they cannot",
            Shape::Object(&SUBSCRIPTIONS),
            |reader, node, draft| {
                if SUBSCRIPTIONS.read(reader, node, draft) { Ok(()) } else { Err(Fault::Reported) }
            },
        ),
        optional("pages", "further status pages, each of some of the public targets", Shape::List(&PAGE), |reader, node, draft| {
            let Kind::Seq(items) = &node.kind else {
                reader.wrong_type(&Shape::List(&PAGE).expected(), node);
                return Err(Fault::Reported);
            };
            let before = reader.mistakes();
            for item in items {
                let mut found = PageDraft::default();
                if PAGE.read(reader, item, &mut found) {
                    draft.pages.push((found, item.span));
                }
            }
            if reader.mistakes() > before { Err(Fault::Reported) } else { Ok(()) }
        }),
    ],
    later: &[],
};

static PAGE: Object<PageDraft> = Object {
    name: "a status page",
    keys: &[
        required("path", "path of the page, such as `/status/eu`", Shape::Text, |reader, node, draft| {
            let written = reader.text(node)?;
            let name = written.strip_prefix("/status/").filter(|name| is_name(name) && !name.ends_with(".atom"));
            let Some(name) = name else {
                let diagnostic = Diagnostic::error("bad-path", format!("`{written}` is not the path of a status page"));
                reader.report(diagnostic.hint("write `/status/NAME`; a name consists of letters, digits, `-`, `_` and `.`"), node.span);
                return Err(Fault::Reported);
            };
            draft.name = name.to_owned();
            Ok(())
        }),
        optional("title", "title of the page; default: its name", Shape::Text, |reader, node, draft| {
            draft.title = Some(reader.text(node)?);
            Ok(())
        }),
        optional("targets", "the public targets that it shows", Shape::TextOrTexts, |reader, node, draft| {
            draft.targets = read_items(reader, node)?;
            Ok(())
        }),
        optional("tags", "shows the public targets with one of these tags, too", Shape::TextOrTexts, |reader, node, draft| {
            draft.tags = read_items(reader, node)?;
            Ok(())
        }),
    ],
    later: &[],
};

#[derive(Default)]
struct PageDraft {
    name: String,
    title: Option<String>,
    targets: Vec<(String, Node)>,
    tags: Vec<(String, Node)>,
}

static SUBSCRIPTIONS: Object<StatusDraft> = Object {
    name: "`subscriptions`",
    keys: &[
        optional("mail", "by mail, once the address is confirmed; requires `public_url`", Shape::Object(&MAIL), |reader, node, draft| {
            let (key, mut found) = (reader.key, MailDraft::default());
            if !MAIL.read(reader, node, &mut found) {
                return Err(Fault::Reported);
            }
            draft.mail = found.relay.map(|relay| (SubscriptionMail { relay, from: found.from }, key));
            Ok(())
        }),
        optional(
            "webhook",
            "`true` for webhooks, once the URL has returned a challenge; requires `public_url` and `seal_key`",
            Shape::Flag,
            |reader, node, draft| {
                draft.webhook = reader.flag(node)?.then_some(reader.key);
                Ok(())
            },
        ),
        optional("allow_private", "`true` to allow webhooks with private and loopback addresses", Shape::Flag, |reader, node, draft| {
            draft.allow_private = reader.flag(node)?;
            Ok(())
        }),
    ],
    later: &[],
};

static MAIL: Object<MailDraft> = Object {
    name: "`mail`",
    keys: &[
        required("url", "smtps://USER:PASSWORD@HOST, or smtp:// with `?tls=required`", Shape::Text, |reader, node, draft| {
            draft.relay = Some(read_smtp_url(reader, node)?);
            Ok(())
        }),
        required("from", "the sender, such as `Example status <status@example.com>`", Shape::Text, |reader, node, draft| {
            draft.from = read_address(reader, node)?;
            Ok(())
        }),
    ],
    later: &[],
};

#[derive(Default)]
struct MailDraft {
    relay: Option<Secret>,
    from: String,
}

#[derive(Default)]
pub(super) struct StatusDraft {
    title: Option<String>,
    mail: Option<(SubscriptionMail, Span)>,
    webhook: Option<Span>,
    allow_private: bool,
    pages: Vec<(PageDraft, Span)>,
}

/// What else of the file is there.
pub(super) struct Beside<'a> {
    pub(super) targets: &'a BTreeMap<String, TargetSpec>,
    pub(super) public_url: bool,
    pub(super) seal_key: bool,
}

impl StatusDraft {
    pub(super) fn finish(self, reader: &mut Reader<'_>, beside: &Beside<'_>) -> StatusSpec {
        let mut require = |key: &str, is_there: bool, span: Span, why: &str| {
            if !is_there {
                let diagnostic = Diagnostic::error("missing-key", format!("this requires `{key}`"));
                reader.report(diagnostic.hint(format!("add `{key}`: {why}")), span);
            }
        };
        let links = "messages contain links to confirm and to unsubscribe";
        if let Some((_, span)) = &self.mail {
            require("public_url", beside.public_url, *span, links);
        }
        if let Some(span) = self.webhook {
            require("public_url", beside.public_url, span, links);
            require("seal_key", beside.seal_key, span, "the secrets that sign messages are encrypted with it");
        }
        let pages = read_pages(reader, self.pages, beside.targets);
        let destinations = if self.allow_private { Destinations::Any } else { Destinations::Public };
        let webhook = self.webhook.map(|_| destinations);
        StatusSpec { title: self.title, pages, subscriptions: SubscriptionsSpec { mail: self.mail.map(|(mail, _)| mail), webhook } }
    }
}

/// A page has targets, a path of its own, and no path that belongs to a target.
fn read_pages(reader: &mut Reader<'_>, drafts: Vec<(PageDraft, Span)>, targets: &BTreeMap<String, TargetSpec>) -> Vec<StatusPageSpec> {
    let mut pages: Vec<StatusPageSpec> = Vec::new();
    let known: Vec<String> = targets.keys().cloned().collect();
    for (draft, span) in drafts {
        let mut refuse = |code: &str, message: String, hint: &str| {
            reader.report(Diagnostic::error(code, message).hint(hint.to_owned()), span);
        };
        if draft.targets.is_empty() && draft.tags.is_empty() {
            refuse("no-targets", format!("the status page `{}` shows nothing", draft.name), "add `targets` or `tags`");
        }
        if pages.iter().any(|page| page.name == draft.name) {
            refuse("same-path", format!("there are two status pages `/status/{}`", draft.name), "use another path");
        }
        if targets.get(&draft.name).is_some_and(|target| target.public) {
            refuse("same-path", format!("`/status/{}` is the page of the target `{}`", draft.name, draft.name), "use another path");
        }
        for (name, node) in &draft.targets {
            match targets.get(name) {
                None => unknown(reader, name, node, &known, "target"),
                Some(target) if !target.public => {
                    let diagnostic = Diagnostic::error("not-public", format!("`{name}` is not public"));
                    reader.report(diagnostic.hint("add `public: true` to the target, or remove it here"), node.span);
                }
                Some(_) => {}
            }
        }
        if !targets.is_empty() {
            KnownTags::of(targets).check_all(reader, &draft.tags);
        }
        let PageDraft { name, title, targets, tags } = draft;
        let tags = tags.into_iter().map(|(tag, _)| tag).collect();
        let title = title.unwrap_or_else(|| name.clone());
        pages.push(StatusPageSpec { name, title, targets: targets.into_iter().map(|(name, _)| name).collect(), tags });
    }
    pages
}
