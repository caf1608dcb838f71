//! What people are told, before it takes the form of a service. All that a server said is made harmless and short here:
//! control characters become visible, and long texts end early.

use super::template::{self, Templates};
use crate::incident::{Class, Detail, Severity};
use crate::moment::{Moment, span};
use mcproof_report::escape;
use serde_json::{Value, json};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Why somebody is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Trigger,
    /// It is worse than it was, or something else.
    Update,
    /// Nobody has acknowledged it.
    Reminder,
    /// Nobody has acknowledged it for so long that others are told.
    Escalation,
    /// Somebody has.
    Acknowledge,
    Resolve,
}

impl Kind {
    pub const ALL: [Self; 6] = [Self::Trigger, Self::Update, Self::Reminder, Self::Escalation, Self::Acknowledge, Self::Resolve];

    /// As it is written in the outbox.
    pub fn word(self) -> &'static str {
        match self {
            Self::Trigger => "trigger",
            Self::Update => "update",
            Self::Reminder => "reminder",
            Self::Escalation => "escalation",
            Self::Acknowledge => "acknowledge",
            Self::Resolve => "resolve",
        }
    }

    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.word())
    }
}

#[derive(Clone, Debug)]
pub struct Message {
    /// Of this message, the same each time that it is tried.
    pub id: String,
    pub kind: Kind,
    /// Of the incident: the key by which services know what belongs together.
    pub incident: String,
    /// The alerts of it at a service that keeps them: one more for each time that it became more severe. From the first one that may be
    /// open there to the one that it is now.
    pub alerts: RangeInclusive<usize>,
    /// A target, or the host or region of a storm.
    pub subject: String,
    pub class: Class,
    pub severity: Severity,
    pub title: String,
    pub detail: Detail,
    pub since: Moment,
    pub resolved: Option<Moment>,
    pub acknowledged_by: Option<String>,
    /// The key of the report and the transcript.
    pub evidence: Option<String>,
    /// The root of the dashboard.
    pub public_url: Option<String>,
    /// What the channel says in words of its own.
    pub templates: Option<Arc<Templates>>,
    /// What it says of the incident was so then: the incident was read later.
    pub known_at: Moment,
    /// When it is sent.
    pub now: Moment,
}

/// Words of ours and of a server, with what they are.
pub(super) struct Fact {
    pub(super) label: &'static str,
    pub(super) text: String,
}

/// Longer texts are cut, whatever a service would take: people read these on a phone.
const LONGEST_TITLE: usize = 250;
const LONGEST_TEXT: usize = 1000;
const LONGEST_NAME: usize = 120;
/// Of what a template makes.
const LONGEST_OWN_TEXT: usize = 4000;
/// Of the targets of a storm.
const MOST_MEMBERS: usize = 20;
/// Between the incident and the number of an alert in its key. No id has it.
const ALERT: char = '.';

impl Message {
    /// One line that says it all.
    pub(super) fn headline(&self) -> String {
        let own = self.templates.as_ref().and_then(|templates| templates.title.as_deref());
        let made = own.and_then(|source| template::render(source, &self.values()).ok()).filter(|made| !made.is_empty());
        made.map_or_else(|| self.usual_headline(), |made| cut(&made.split_whitespace().collect::<Vec<_>>().join(" "), LONGEST_TITLE))
    }

    /// What templates are made of: harmless, and short.
    pub(crate) fn values(&self) -> Value {
        let text = |text: &str| short(text, LONGEST_TEXT);
        let optional = |given: Option<&str>| given.map(text).unwrap_or_default();
        let members: Vec<String> = self.detail.members.iter().take(MOST_MEMBERS).map(|name| short(name, LONGEST_NAME)).collect();
        json!({
            "headline": self.usual_headline(),
            "kind": self.kind.word(),
            "severity": self.severity.word(),
            "class": self.class.word(),
            "incident": self.incident,
            "target": short(&self.subject, LONGEST_NAME),
            "targets": members,
            "title": short(&self.title, LONGEST_TITLE),
            "message": text(&self.detail.message),
            "layer": optional(self.detail.layer.as_deref()),
            "reason": optional(self.detail.reason.as_deref()),
            "hint": optional(self.detail.hint.as_deref()),
            "since": self.since.to_string(),
            "lasted": span(self.resolved.unwrap_or(self.now).since(self.since)),
            "acknowledged_by": optional(self.acknowledged_by.as_deref()),
            "url": self.link().unwrap_or_default(),
            "transcript_url": self.transcript().unwrap_or_default(),
        })
    }

    /// The text in words of the channel, if it has any. One that cannot be made is no reason to tell nobody.
    fn own_text(&self) -> Option<Result<String, String>> {
        let source = self.templates.as_ref()?.text.as_deref()?;
        Some(template::render(source, &self.values()).map(|made| cut(&made, LONGEST_OWN_TEXT)).map_err(|mistake| mistake.what))
    }

    /// The key of the alert that the incident is now, at a service that keeps alerts. Such a service adds what comes under a known key to an
    /// alert that somebody may have acknowledged as something less severe, and wakes nobody.
    pub(super) fn alert_key(&self) -> String {
        match *self.alerts.end() {
            0 => self.incident.clone(),
            number => format!("{}{ALERT}{number}", self.incident),
        }
    }

    /// A message for each alert that it is about: a begin opens the one that the incident is now, and all of them are acknowledged, and end.
    pub(super) fn by_alert(&self) -> impl Iterator<Item = Self> {
        let last = *self.alerts.end();
        let first = if matches!(self.kind, Kind::Acknowledge | Kind::Resolve) { *self.alerts.start() } else { last };
        (first..=last).map(move |number| Self { alerts: number..=number, ..self.clone() })
    }

    fn usual_headline(&self) -> String {
        let (subject, title) = (short(&self.subject, LONGEST_NAME), short(&self.title, LONGEST_TITLE));
        // Most titles name their target.
        let what = if title.contains(&subject) { title } else { format!("{subject}: {title}") };
        match self.kind {
            Kind::Trigger => format!("[{}] {what}", self.severity),
            Kind::Update => format!("[{}, changed] {what}", self.severity),
            Kind::Reminder => format!("[{}, still open] {what}", self.severity),
            Kind::Escalation => format!("[{}, not acknowledged for {}] {what}", self.severity, span(self.now.since(self.since))),
            Kind::Acknowledge => format!("[acknowledged by {}] {what}", self.who()),
            Kind::Resolve => format!("[{}] {what}", self.over()),
        }
    }

    /// The title of the incident, which says that it is over when it is.
    pub(super) fn title(&self) -> String {
        match self.kind {
            Kind::Resolve => format!("{}: {}", self.over(), self.title),
            _ => self.title.clone(),
        }
    }

    fn over(&self) -> String {
        let how = if self.detail.is_unmonitored { "no longer monitored, and not seen to recover," } else { "resolved" };
        self.resolved.map_or_else(|| how.to_owned(), |resolved| format!("{how} after {}", span(resolved.since(self.since))))
    }

    fn who(&self) -> String {
        self.acknowledged_by.as_deref().map_or_else(|| "unknown".to_owned(), |who| short(who, LONGEST_NAME))
    }

    /// What happened, as the diagnostic says it.
    pub(super) fn text(&self) -> String {
        let usual = short(&self.detail.message, LONGEST_TEXT);
        match self.own_text() {
            Some(Ok(own)) => own,
            Some(Err(why)) => format!("{usual}\n(the template of this channel failed: {why})"),
            None => usual,
        }
    }

    /// All else, in the order in which a person wants to know it. Links are not in it. Nothing if the channel has words of its own.
    pub(super) fn facts(&self) -> Vec<Fact> {
        if matches!(self.own_text(), Some(Ok(_))) {
            return Vec::new();
        }
        let mut facts = Vec::new();
        let mut fact = |label, text: String| facts.push(Fact { label, text });
        fact("target", short(&self.subject, LONGEST_NAME));
        fact("class", self.class.to_string());
        if let Some(layer) = &self.detail.layer {
            fact("failed at", short(layer, LONGEST_NAME));
        }
        if let Some(reason) = &self.detail.reason {
            fact("reason", short(reason, LONGEST_NAME));
        }
        fact("since", self.since.to_string());
        if let Some(resolved) = self.resolved {
            let label = if self.detail.is_unmonitored { "unmonitored" } else { "resolved" };
            fact(label, format!("{resolved}, after {}", span(resolved.since(self.since))));
        } else if self.kind != Kind::Trigger {
            fact("for", span(self.now.since(self.since)));
        }
        if !self.detail.members.is_empty() {
            let shown: Vec<String> = self.detail.members.iter().take(MOST_MEMBERS).map(|name| short(name, LONGEST_NAME)).collect();
            let rest = self.detail.members.len().saturating_sub(MOST_MEMBERS);
            let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
            fact("targets", format!("{}{more}", shown.join(", ")));
        }
        if let Some(hint) = &self.detail.hint {
            fact("hint", short(hint, LONGEST_TEXT));
        }
        if self.evidence.is_some() {
            fact("replay", self.replay());
        }
        facts
    }

    /// How to judge the transcript again.
    pub(super) fn replay(&self) -> String {
        let file = self.evidence.as_deref().unwrap_or("evidence");
        format!("download the evidence, then: mcproof probe --replay probe-{file}.json")
    }

    /// The incident on the dashboard.
    pub(super) fn link(&self) -> Option<String> {
        self.public_url.as_ref().map(|root| format!("{root}/incidents/{}", self.incident))
    }

    /// The report and the transcript of the probe that failed.
    pub(super) fn transcript(&self) -> Option<String> {
        Some(format!("{}/evidence/{}", self.public_url.as_ref()?, self.evidence.as_ref()?))
    }

    /// What happened, and all else that is known of it, as plain text.
    pub(super) fn details(&self) -> String {
        let mut lines = vec![self.text(), String::new()];
        lines.extend(self.facts().iter().map(|fact| format!("{:>10}  {}", fact.label, fact.text)));
        lines.join("\n").trim_end().to_owned()
    }

    /// All of it as plain text.
    pub(super) fn plain(&self) -> String {
        let mut lines = vec![self.details()];
        let links = [("incident", self.link()), ("transcript", self.transcript())];
        lines.extend(links.into_iter().filter_map(|(label, link)| Some(format!("{label:>10}  {}", link?))));
        lines.join("\n")
    }
}

/// The incident of the key of an alert, and how often it had become more severe by then.
pub(crate) fn of_alert_key(key: &str) -> (&str, usize) {
    let numbered = key.rsplit_once(ALERT).and_then(|(incident, number)| Some((incident, number.parse().ok()?)));
    numbered.unwrap_or((key, 0))
}

/// A code block of Markdown, which the text cannot end.
pub(super) fn fenced(text: &str) -> String {
    format!("```\n{}\n```", text.replace("```", "'''"))
}

/// Harmless, and no longer than this many characters.
pub(super) fn short(text: &str, most: usize) -> String {
    cut(&escape(text), most)
}

/// No longer than this many characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => {
            let end = text.char_indices().nth(most.saturating_sub(1)).map_or(0, |(end, _)| end);
            format!("{}…", &text[..end])
        }
    }
}
